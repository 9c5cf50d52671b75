/* faults.c - see faults.h. */
#define _GNU_SOURCE
#include "faults.h"
#include "process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#define KIND_NAME(name) #name,
const char *const fault_kind_names[N_FAULT_KINDS] = {FAULT_KINDS(KIND_NAME)};
#undef KIND_NAME

static atomic_bool is_watching;
static atomic_int n_calls[N_FAULT_KINDS];
static int first_failing[N_FAULT_KINDS], last_failing[N_FAULT_KINDS];

static bool should_fail(enum fault_kind kind) {
  if (!atomic_load(&is_watching)) return false;
  const int number = atomic_fetch_add(&n_calls[kind], 1) + 1;
  return number >= first_failing[kind] && number <= last_failing[kind];
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void *address, size_t bytes);
int __real_madvise(void *address, size_t bytes, int advice);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
void *__real_dlsym(void *library, const char *name);

void *__wrap_malloc(size_t bytes) { return should_fail(KIND_MALLOC) ? (errno = ENOMEM, NULL) : __real_malloc(bytes); }
void *__wrap_calloc(size_t n, size_t bytes) {
  return should_fail(KIND_MALLOC) ? (errno = ENOMEM, NULL) : __real_calloc(n, bytes);
}
void *__wrap_realloc(void *old, size_t bytes) {
  return should_fail(KIND_MALLOC) ? (errno = ENOMEM, NULL) : __real_realloc(old, bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return should_fail(KIND_MALLOC) ? (errno = ENOMEM, NULL) : __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes) {
  return should_fail(KIND_MALLOC) ? ENOMEM : __real_posix_memalign(out, alignment, bytes);
}
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return should_fail(KIND_MMAP) ? (errno = ENOMEM, MAP_FAILED) : __real_mmap(address, bytes, protection, flags, file, offset);
}
int __wrap_munmap(void *address, size_t bytes) {
  return should_fail(KIND_MUNMAP) ? (errno = ENOMEM, -1) : __real_munmap(address, bytes);
}
int __wrap_madvise(void *address, size_t bytes, int advice) {
  return should_fail(KIND_MADVISE) ? (errno = EINVAL, -1) : __real_madvise(address, bytes, advice);
}
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  return should_fail(KIND_THREAD) ? EAGAIN : __real_pthread_create(thread, attributes, start, argument);
}
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
  should_fail(KIND_LOCK); /* counted, never refused */
  return __real_pthread_mutex_lock(mutex);
}
void *__wrap_dlsym(void *library, const char *name) {
  should_fail(KIND_DLSYM); /* counted: it locks */
  return __real_dlsym(library, name);
}

/* ---- what suites ask ------------------------------------------------------------------------- */

void faults_watch(void) { atomic_store(&is_watching, true); }
void faults_ignore(void) { atomic_store(&is_watching, false); }
void faults_fail(enum fault_kind kind, int first, int last) { first_failing[kind] = first, last_failing[kind] = last; }
int faults_count(enum fault_kind kind) { return atomic_load(&n_calls[kind]); }

void faults_count_anew(void) {
  for (int kind = 0; kind < N_FAULT_KINDS; kind++) atomic_store(&n_calls[kind], 0);
}

void faults_expect_none(const char *what) {
  for (int kind = 0; kind < N_FAULT_KINDS; kind++)
    CHECK(faults_count((enum fault_kind)kind) == 0, "%s: %d calls of %s", what, faults_count((enum fault_kind)kind),
          fault_kind_names[kind]);
}

void *faults_shared(size_t bytes) {
  void *shared = __real_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED, "shared memory");
  return shared;
}

int faults_try_each(enum fault_kind kind, bool all, void (*child)(void *fault), const void *of) {
  struct fault fault = {kind, 1, all ? 1 << 30 : 1, faults_shared(sizeof(bool)), of};
  int n_faults = 0;
  do {
    check_in_child(fault_kind_names[kind], child, &fault);
    n_faults += !*fault.is_harmless;
    fault.first++;
    fault.last += !all;
  } while (!*fault.is_harmless && !all);
  __real_munmap(fault.is_harmless, sizeof(bool));
  return n_faults;
}

void faults_expect_some(enum fault_kind kind, int n_faults, bool is_used_at_all) {
  CHECK(n_faults > 0 || !is_used_at_all, "no call of %s was ever made, so none failed", fault_kind_names[kind]);
}

bool fault_is_survived(const struct fault *fault, wsgemm_status status, bool is_untouched, const char *what) {
  if (status == WSGEMM_SUCCESS) return true;
  CHECK(status == WSGEMM_ALLOC_FAILED && is_untouched, "%s %d..%d: %s: %s, and the result must be untouched",
        fault_kind_names[fault->kind], fault->first, fault->last, what, wsgemm_status_name(status));
  return false;
}
