/* processors.c - see processors.h. */
#define _GNU_SOURCE
#include "core/processors.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include "core/cgroup.h"

/* ---- affinity: of the calling thread, not of the process, as another thread's may differ, nor remembered, as it may change  */

/* Not by sched_getaffinity, which does not tell how long the system's masks are. */
void ws_affinity_get(ws_affinity *affinity) {
  affinity->bytes = 0;
#if defined(__linux__)
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof affinity->word, affinity->word);
  if (bytes > 0 && (size_t)bytes <= sizeof affinity->word) affinity->bytes = (size_t)bytes;
#endif
}

int ws_affinity_count(const ws_affinity *affinity) {
  int n = 0;
  for (size_t w = 0; w < affinity->bytes / sizeof affinity->word[0]; w++) n += __builtin_popcountl(affinity->word[w]);
  return n;
}

bool ws_affinity_equal(const ws_affinity *x, const ws_affinity *y) {
  return x->bytes == y->bytes && memcmp(x->word, y->word, x->bytes) == 0;
}

void ws_affinity_set(const ws_affinity *affinity) {
#if defined(__linux__)
  if (affinity->bytes > 0) (void)!syscall(SYS_sched_setaffinity, 0, affinity->bytes, affinity->word);
#else
  (void)affinity;
#endif
}

static int count_affinity(void) {
  ws_affinity affinity;
  ws_affinity_get(&affinity);
  return ws_affinity_count(&affinity);
}

/* ---- the process ----------------------------------------------------------------------------- */

static ws_processors found;
const ws_processors *ws_processors_get(void) { return &found; }

static int count_online(void) {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 && online < INT_MAX ? (int)online : 0;
}

/* Whole processors, rounded up, of cpu.max: "QUOTA PERIOD", or "max PERIOD". */
static double processors_of(const char *text) {
  long long quota, period;
  if (sscanf(text, "%lld %lld", &quota, &period) != 2 || quota <= 0 || period <= 0) return HUGE_VAL;
  return ceil((double)quota / (double)period);
}

static int count_quota(void) {
  const double least = ws_cgroup_least("cpu.max", processors_of);
  return least < INT_MAX ? (int)least : 0;
}

static int tighter(int limit, int other) { return other > 0 && other < limit ? other : limit; }

void ws_processors_init(int env_threads) {
  found.quota = count_quota();
  found.threads = tighter(tighter(tighter(WS_MAX_WORKERS, count_online()), found.quota), env_threads);
}

/* ---- a call ---------------------------------------------------------------------------------- */

static _Thread_local int limit_of_thread;

int ws_default_threads(void) { return found.threads > 1 ? tighter(found.threads, count_affinity()) : found.threads; }

int ws_set_limit_of_thread(int n_threads) {
  const int old = limit_of_thread;
  if (n_threads >= 0) limit_of_thread = n_threads;
  return old;
}

/* Inside a parallel region of OpenMP every thread of the team may call us at once: then each works
 * alone. We need not be linked with the runtime: it is found if it is in the global scope (the
 * program's own libraries, and what was loaded with RTLD_GLOBAL) as we are loaded. To look for it
 * on each call, for one that is loaded later, would take the loader's lock: a call would wait for
 * any dlopen in another thread, for ever if that one's constructor waits for the call. */
extern int omp_in_parallel(void) __attribute__((weak));

static bool in_openmp_parallel(void) { return omp_in_parallel && omp_in_parallel() != 0; }

int ws_thread_limit(const ws_call *call) {
  const int own = (int)call->settings.n_threads;
  int limit = tighter(own > 0 ? own : found.threads, limit_of_thread);
  if (limit > 1 && own == 0) limit = tighter(limit, count_affinity());
  return limit > 1 && in_openmp_parallel() ? 1 : limit;
}
