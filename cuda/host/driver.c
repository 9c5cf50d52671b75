/* driver.c - finds the CUDA driver's entry points, and knows when they must not be called. */
#define _GNU_SOURCE
#include "cuda/host/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ws_driver ws_cuda;

typedef CUresult(CUDAAPI *get_proc_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

typedef struct entry {
  const char *name;
  int version;
  size_t offset; /* of its member in ws_driver */
} entry;

#define WS_DRIVER_ROW(name, version) {#name, version, offsetof(ws_driver, name)},
static const entry entries[] = {WS_DRIVER_ENTRIES(WS_DRIVER_ROW)}, optional[] = {WS_DRIVER_OPTIONAL_ENTRIES(WS_DRIVER_ROW)},
                   of_offload[] = {WS_DRIVER_OFFLOAD_ENTRIES(WS_DRIVER_ROW)}, tools[] = {WS_DRIVER_TOOL_ENTRIES(WS_DRIVER_ROW)};
#undef WS_DRIVER_ROW

static _Atomic bool is_used, is_lost, may_be_inherited;

void ws_driver_note_use(void) {
  if (!atomic_load_explicit(&is_used, memory_order_relaxed)) atomic_store_explicit(&is_used, true, memory_order_relaxed);
}

bool ws_driver_is_lost(void) { return atomic_load_explicit(&is_lost, memory_order_relaxed); }

bool ws_driver_may_be_inherited(void) { return atomic_load_explicit(&may_be_inherited, memory_order_relaxed); }

void ws_driver_forked(void) {
  atomic_store_explicit(&is_lost, atomic_load(&is_used), memory_order_relaxed);
  atomic_store_explicit(&may_be_inherited, true, memory_order_relaxed);
}

/* Whether all that ever ran in this process's memory ran in this process: the kernel's flag
 * PF_FORKNOEXEC (proc(5), stat) is set from fork to exec. No flags at all, which other systems show
 * that imitate Linux, say nothing. */
static bool has_begun_by_exec(void) {
  const unsigned long fork_no_exec = 0x40;
  char text[512];
  unsigned long flags = 0;
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[length > 0 ? length : 0] = '\0';
  const char *after_name = strrchr(text, ')'); /* which may hold anything else */
  if (!after_name || sscanf(after_name, ") %*c %*d %*d %*d %*d %*d %lu", &flags) != 1) return false;
  return flags != 0 && (flags & fork_no_exec) == 0;
}

/* rt_sigprocmask copies the new mask in before it looks at `how`: with a `how` that does not exist
 * it answers EFAULT or EINVAL, and changes nothing. The mask is aligned down, so that it lies in
 * the pointer's page. */
bool ws_is_readable(const void *pointer) {
  enum { NO_SUCH_HOW = -1, MASK_BYTES = 8 };
  const int errno_before = errno;
  const bool is_bad =
      syscall(SYS_rt_sigprocmask, NO_SUCH_HOW, (uintptr_t)pointer & ~(uintptr_t)(MASK_BYTES - 1), NULL, MASK_BYTES) != 0 &&
      errno == EFAULT;
  errno = errno_before;
  return !is_bad;
}

/* The first that is missing; NULL: none. ISO C has no cast from an object pointer to a function
 * pointer; their bytes are copied. */
static const char *load(get_proc_address get, const entry *wanted, size_t n_wanted) {
  const char *missing = NULL;
  for (size_t i = 0; i < n_wanted; i++) {
    void *found = NULL;
    if (get(wanted[i].name, &found, wanted[i].version, CU_GET_PROC_ADDRESS_DEFAULT, NULL) != CUDA_SUCCESS || !found)
      missing = wanted[i].name;
    memcpy((char *)&ws_cuda + wanted[i].offset, &found, sizeof found);
  }
  return missing;
}

/* What the loader has said; whoever asks it again hears the same. */
static _Atomic bool is_found;
static _Atomic(void *) found_symbol; /* NULL: no driver, or one too old for it */

void ws_driver_find(void) {
  if (atomic_load(&is_found)) return;
  /* stays open, for each thread that asks */
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return;
  atomic_store(&found_symbol, dlsym(library, "cuGetProcAddress_v2"));
  atomic_store(&is_found, true);
}

static get_proc_address found_get(void) {
  void *const symbol = atomic_load(&found_symbol);
  get_proc_address get;
  memcpy(&get, &symbol, sizeof get);
  return get;
}

void ws_driver_load(void) {
  if (!atomic_load(&is_found)) return;
  ws_cuda.is_loaded = true;
  if (!has_begun_by_exec()) atomic_store_explicit(&may_be_inherited, true, memory_order_relaxed);
  ws_cuda.missing = found_get() ? load(found_get(), entries, sizeof entries / sizeof entries[0]) : "cuGetProcAddress_v2";
  if (found_get()) load(found_get(), optional, sizeof optional / sizeof optional[0]);
}

static const char *missing_of_offload, *missing_tool;
static void load_offload(void) {
  if (found_get()) missing_of_offload = load(found_get(), of_offload, sizeof of_offload / sizeof of_offload[0]);
}

const char *ws_driver_load_offload(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, load_offload);
  return ws_cuda.missing ? ws_cuda.missing : missing_of_offload;
}

static void load_tools(void) {
  if (found_get()) missing_tool = load(found_get(), tools, sizeof tools / sizeof tools[0]);
}

const char *ws_driver_load_tools(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const char *missing = ws_driver_load_offload();
  pthread_once(&once, load_tools);
  return missing ? missing : missing_tool;
}
