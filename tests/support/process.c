/* process.c - threads, affinity and control register of this process: see process.h. */
#define _GNU_SOURCE
#include "process.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif !defined(__aarch64__)
#include <fenv.h>
#endif

int process_n_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int n = 0;
  if (!tasks) return -1;
  for (const struct dirent *task = readdir(tasks); task; task = readdir(tasks)) n += task->d_name[0] != '.';
  closedir(tasks);
  return n;
}

static void *nothing(void *argument) { return argument; }

void process_start_first_thread(void) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, nothing, NULL) == 0, "thread");
  pthread_join(thread, NULL);
}

bool process_thread_is_asleep(pid_t thread) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
  FILE *stat = fopen(path, "re");
  if (!stat) return false; /* it has ended */
  const bool found = fscanf(stat, "%*d (%*[^)]) %c", &state) == 1;
  fclose(stat);
  CHECK(found, "no state in %s", path);
  return state == 'S';
}

struct cancelled {
  void (*call)(void *argument);
  void *argument;
  bool has_returned;
};

static void *cancelled_thread(void *given) {
  struct cancelled *self = given;
  pthread_cancel(pthread_self());
  self->call(self->argument);
  self->has_returned = true;
  pthread_testcancel();
  return given;
}

void process_check_cancelled(void (*call)(void *argument), void *argument) {
  struct cancelled self = {call, argument, false};
  pthread_t thread;
  void *result = NULL;
  REQUIRE(pthread_create(&thread, NULL, cancelled_thread, &self) == 0 && pthread_join(thread, &result) == 0, "thread");
  CHECK(self.has_returned, "the call was cancelled in its middle");
  CHECK(result == PTHREAD_CANCELED, "the cancel did not come after the call");
}

int process_n_processors(void) {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0, "affinity");
  return CPU_COUNT(&set);
}

bool process_keep_processors(int n) {
  cpu_set_t set, kept;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return false;
  CPU_ZERO(&kept);
  for (int cpu = 0; cpu < CPU_SETSIZE && n > 0; cpu++)
    if (CPU_ISSET(cpu, &set)) {
      CPU_SET(cpu, &kept);
      n--;
    }
  return n == 0 && sched_setaffinity(0, sizeof kept, &kept) == 0;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define UNDER_SANITIZER 1
#endif

bool process_may_fork_beside_threads(void) {
#if defined(UNDER_SANITIZER) || defined(WSGEMM_TESTS_EMULATED)
  return false;
#else
  return true;
#endif
}

unsigned long long process_control_register(void) {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3fu;
#elif defined(__aarch64__)
  unsigned long long fpcr;
  __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
#else
  return (unsigned long long)fegetround();
#endif
}

void process_flush_to_zero(bool enabled) {
#if defined(__x86_64__)
  _mm_setcsr(enabled ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u);
#elif defined(__aarch64__)
  const unsigned long long bit = 1ULL << 24, fpcr = process_control_register();
  __asm__ volatile("msr fpcr, %0" : : "r"(enabled ? fpcr | bit : fpcr & ~bit));
#else
  (void)enabled;
#endif
}
