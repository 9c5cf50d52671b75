/* place.c - the processors that a thread may run on, and how the workers of one job keep to processors of their own.
 *
 * A kernel that packs threads on few processors wakes a worker on the processor of the thread that calls it, and may leave both
 * there for whole seconds while the next processor sleeps: two threads then take as long as one (bench/NOTES.md). So each worker
 * looks, as it enters a job, whether its processor is taken already, and if so asks once to be moved. Threads are never bound:
 * the scheduler is free to move them again. */
#define _GNU_SOURCE
#include "cpu/place.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

/* ---- affinity ----------------------------------------------------------------------------------------------------------------- */

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

/* ---- places --------------------------------------------------------------------------------------------------------------------- */

void ws_places_clear(ws_places *places) {
  for (int w = 0; w < WS_PLACE_CPUS / 64; w++) atomic_store_explicit(&places->claimed[w], 0, memory_order_relaxed);
}

#if defined(__linux__)
static bool claim(ws_places *places, int cpu) {
  const uint64_t bit = UINT64_C(1) << cpu % 64;
  return !(atomic_fetch_or_explicit(&places->claimed[cpu / 64], bit, memory_order_relaxed) & bit);
}

void ws_places_claim(ws_places *places) {
  const int here = sched_getcpu();
  if (here < 0 || here >= WS_PLACE_CPUS || claim(places, here)) return;
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0; cpu < WS_PLACE_CPUS; cpu++) {
    if (!CPU_ISSET(cpu, &allowed) || !claim(places, cpu)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) continue; /* it went offline, say */
    sched_setaffinity(0, sizeof allowed, &allowed);
    return;
  }
}
#else
void ws_places_claim(ws_places *places) { (void)places; }
#endif
