/* test_place.c - src/cpu/place.h alone: who finds his processor taken is given a free one that he
 * may use, and his affinity stays as it was. */
#define _GNU_SOURCE
#include "support/check.h"

#include <sched.h>

#include "cpu/place.h"

static cpu_set_t allowed;

static int nth_allowed(int n) {
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed) && n-- == 0) return cpu;
  return -1;
}

static void set_affinity(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  CHECK(sched_setaffinity(0, sizeof one, &one) == 0, "cannot move to processor %d", cpu);
}

static bool affinity_is(const cpu_set_t *wanted) {
  cpu_set_t now;
  return sched_getaffinity(0, sizeof now, &now) == 0 && CPU_EQUAL(&now, wanted);
}

static bool is_claimed(ws_places *places, int cpu) { return atomic_load(&places->claimed[cpu / 64]) >> cpu % 64 & 1; }

static int n_claimed(ws_places *places) {
  int n = 0;
  for (int cpu = 0; cpu < WS_PLACE_CPUS; cpu++) n += is_claimed(places, cpu);
  return n;
}

static void take_place(ws_places *places) {
  const int processor = ws_places_claim(places);
  if (processor < 0) return;
  ws_place_move(processor);
  CHECK(sched_getcpu() == processor, "not moved to processor %d", processor);
}

/* Each claim of one thread finds the processor taken that it claimed before, so it travels over all
 * that it may use. */
static void every_worker_apart(void) {
  static ws_places places;
  const int n_cpus = CPU_COUNT(&allowed);
  if (n_cpus < 2) {
    check_skip("one processor");
    return;
  }
  ws_places_clear(&places);
  set_affinity(nth_allowed(0));
  take_place(&places);
  CHECK(is_claimed(&places, nth_allowed(0)) && n_claimed(&places) == 1, "the first claim claims where it runs");
  sched_setaffinity(0, sizeof allowed, &allowed);
  for (int n = 2; n <= n_cpus && n <= 4; n++) {
    /* back to a processor that is taken */
    for (int cpu = 0, left = n - 1; left > 0 && cpu < n_cpus; cpu++)
      if (is_claimed(&places, nth_allowed(cpu))) {
        set_affinity(nth_allowed(cpu));
        sched_setaffinity(0, sizeof allowed, &allowed);
        break;
      }
    take_place(&places);
    CHECK(n_claimed(&places) == n, "%d workers claimed %d processors", n, n_claimed(&places));
    CHECK(affinity_is(&allowed), "the affinity has changed");
  }
}

/* More workers than processors: the last ones stay where they are. */
static void none_left(void) {
  static ws_places places;
  ws_places_clear(&places);
  for (int i = 0; i < CPU_COUNT(&allowed) + 3; i++) {
    take_place(&places);
    CHECK(affinity_is(&allowed), "the affinity has changed");
  }
  CHECK(n_claimed(&places) <= CPU_COUNT(&allowed), "%d processors claimed of %d", n_claimed(&places), CPU_COUNT(&allowed));
}

/* A bound thread is never taken off its processor. */
static void bound_stays(void) {
  static ws_places places;
  ws_places_clear(&places);
  const int home = nth_allowed(CPU_COUNT(&allowed) - 1);
  set_affinity(home);
  for (int i = 0; i < 3; i++) take_place(&places);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(home, &one);
  CHECK(affinity_is(&one) && sched_getcpu() == home, "a bound thread was moved");
  CHECK(n_claimed(&places) == 1 && is_claimed(&places, home), "it claims its own processor only");
  sched_setaffinity(0, sizeof allowed, &allowed);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {
      {"every_worker_apart", every_worker_apart}, {"none_left", none_left}, {"bound_stays", bound_stays}};
  sched_getaffinity(0, sizeof allowed, &allowed);
  return check_main("place", cases, sizeof cases / sizeof *cases, argc, argv);
}
