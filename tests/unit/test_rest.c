/* test_rest.c - src/cpu/rest.h alone: what is lost to waits stays small beside a processor that is
 * always taken, and one that is free again is soon used. */
#include "support/check.h"

#include "cpu/rest.h"

enum { MS = 1000000 };

/* Calls of call_ns; while workers are called, one waits for a slice every busy_ns. Returns the parts of
 * the time that calls waited, and that the workers rested. */
static void run(int64_t seconds, int64_t busy_ns, double *waited, double *rested) {
  const int64_t call_ns = 20000, slice_ns = 5 * MS, end = seconds * 1000 * MS;
  ws_rest rest = {0, 0};
  int64_t now = MS, n_waited = 0, n_rested = 0;
  for (int64_t used = 0; now < end; now += call_ns) {
    if (ws_rest_is_on(&rest, now)) {
      n_rested += call_ns;
    } else if ((used += call_ns) >= busy_ns) {
      now += slice_ns, n_waited += slice_ns, used = 0;
      ws_rest_begin(&rest, now, slice_ns);
    }
  }
  *waited = (double)n_waited / (double)end, *rested = (double)n_rested / (double)end;
}

static void always_taken(void) {
  double waited, rested;
  run(1, 4 * MS, &waited, &rested);
  CHECK(waited < 0.06, "%.3f of the first second waited", waited);
  run(20, 4 * MS, &waited, &rested);
  CHECK(waited < 0.03 && rested > 0.9, "%.3f waited, %.3f rested", waited, rested);
}

static void now_and_then(void) {
  double waited, rested;
  run(20, 200 * MS, &waited, &rested);
  CHECK(rested < 0.06, "%.3f rested", rested);
}

static void never(void) {
  double waited, rested;
  run(1, 100000 * (int64_t)MS, &waited, &rested);
  CHECK(waited == 0 && rested == 0, "%.3f waited, %.3f rested", waited, rested);
}

/* After the longest rest it is tried again within a third of a second, and what was is forgotten after
 * as long without a wait. */
static void free_again(void) {
  ws_rest rest = {0, 0};
  int64_t now = MS;
  for (int i = 0; i < 20; i++) {
    now += 4 * MS;
    ws_rest_begin(&rest, now, 4 * MS);
    CHECK(rest.until - now < 300 * MS && (i == 0 || rest.length >= 32 * MS), "rest %d: %lld ms", i, (long long)rest.length / MS);
    now = rest.until;
  }
  CHECK(!ws_rest_is_on(&rest, now), "a rest ends");
  now += 2 * rest.length;
  ws_rest_begin(&rest, now, 4 * MS);
  CHECK(rest.length == 8 * MS, "%lld ms after a long time", (long long)rest.length / MS);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {
      {"always_taken", always_taken}, {"now_and_then", now_and_then}, {"never", never}, {"free_again", free_again}};
  return check_main("rest", cases, sizeof cases / sizeof *cases, argc, argv);
}
