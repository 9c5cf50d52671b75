/* place.c - how the workers of one job keep to processors of their own.
 *
 * A kernel that packs threads on few processors wakes a worker on the processor of the thread that
 * calls it, and may leave both there for whole seconds while the next processor sleeps: two threads
 * then take as long as one (bench/NOTES.md). So each worker looks, as it enters a job, whether its
 * processor is taken already, and if so leaves the job and asks once to be moved. Threads are never
 * bound: the scheduler is free to move them again. */
#define _GNU_SOURCE
#include "cpu/place.h"

#include <sched.h>
#include <stdbool.h>

void ws_places_clear(ws_places *places) {
  for (int w = 0; w < WS_PLACE_CPUS / 64; w++) atomic_store_explicit(&places->claimed[w], 0, memory_order_relaxed);
}

#if defined(__linux__)
static bool claim(ws_places *places, int cpu) {
  const uint64_t bit = UINT64_C(1) << cpu % 64;
  return !(atomic_fetch_or_explicit(&places->claimed[cpu / 64], bit, memory_order_relaxed) & bit);
}

int ws_places_claim(ws_places *places) {
  const int here = sched_getcpu();
  cpu_set_t allowed;
  if (here < 0 || here >= WS_PLACE_CPUS || claim(places, here)) return -1;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return -1;
  for (int cpu = 0; cpu < WS_PLACE_CPUS; cpu++)
    if (CPU_ISSET(cpu, &allowed) && claim(places, cpu)) return cpu;
  return -1;
}

void ws_place_move(int processor) {
  cpu_set_t allowed, one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  if (sched_setaffinity(0, sizeof one, &one) == 0) sched_setaffinity(0, sizeof allowed, &allowed);
}
#else
int ws_places_claim(ws_places *places) {
  (void)places;
  return -1;
}
void ws_place_move(int processor) { (void)processor; }
#endif
