/* driver.c - finds the CUDA driver's entry points, and knows when they must not be called. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

ws_driver ws_cuda;

typedef CUresult(CUDAAPI *get_proc_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static const struct {
  const char *name;
  int version;
  size_t offset; /* of its member in ws_driver */
} entries[] = {
#define WS_DRIVER_ROW(name, version) {#name, version, offsetof(ws_driver, name)},
    WS_DRIVER_ENTRIES(WS_DRIVER_ROW) WS_DRIVER_COMMAND_ENTRIES(WS_DRIVER_ROW)
#undef WS_DRIVER_ROW
};

static _Atomic bool is_used, is_lost;

void ws_driver_note_use(void) {
  if (!atomic_load_explicit(&is_used, memory_order_relaxed)) atomic_store_explicit(&is_used, true, memory_order_relaxed);
}

bool ws_driver_is_lost(void) { return atomic_load_explicit(&is_lost, memory_order_relaxed); }

static void after_fork_child(void) { atomic_store_explicit(&is_lost, atomic_load(&is_used), memory_order_relaxed); }

/* rt_sigprocmask copies the new mask in before it looks at `how`: with a `how` that does not exist it answers EFAULT or EINVAL, and
 * changes nothing. The mask is aligned down, so that it lies in the pointer's page. */
bool ws_is_readable(const void *pointer) {
  enum { NO_SUCH_HOW = -1, MASK_BYTES = 8 };
  const int errno_before = errno;
  const bool is_bad =
      syscall(SYS_rt_sigprocmask, NO_SUCH_HOW, (uintptr_t)pointer & ~(uintptr_t)(MASK_BYTES - 1), NULL, MASK_BYTES) != 0 &&
      errno == EFAULT;
  errno = errno_before;
  return !is_bad;
}

/* ISO C has no cast from an object pointer to a function pointer; their bytes are copied. */
void ws_driver_load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
  if (!library) return;
  ws_cuda.is_loaded = true;
  pthread_atfork(NULL, NULL, after_fork_child);
  if (!symbol) {
    ws_cuda.missing = "cuGetProcAddress_v2";
    return;
  }
  get_proc_address get;
  memcpy(&get, &symbol, sizeof get);
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
    void *found = NULL;
    if (get(entries[i].name, &found, entries[i].version, CU_GET_PROC_ADDRESS_DEFAULT, NULL) != CUDA_SUCCESS || !found)
      ws_cuda.missing = entries[i].name;
    memcpy((char *)&ws_cuda + entries[i].offset, &found, sizeof found);
  }
}
