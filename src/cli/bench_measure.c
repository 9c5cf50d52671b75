/* bench_measure.c - times candidates in turn.
 *
 * One sample is as many calls as fill min_time; the candidates take turns (the first one changes
 * from round to round), and a candidate's figure is the median of its samples, so that a drifting
 * clock or a busy neighbour hits all candidates alike. Before its samples an candidate makes
 * warm-up calls: they refill the caches that the candidate before has taken.
 *
 * Threads: a library's workers may spin for a long while after a call (OpenBLAS: 2^28 clock ticks
 * of sched_yield, 0.1 s), and would take the next candidate's cores. So, when a candidate with
 * threads is in play, a turn begins by sleeping until the CPU clock of this process stands still,
 * and then takes several samples at once. */
#define _GNU_SOURCE
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADED_BLOCK = 3, MAX_SAMPLES = 10000, PARK_N_QUIET = 16 };
#define WARM_CALL_S 0.05 /* longer calls have no warm-up: cold caches are below 1 % of them */
/* A window counts as quiet if the process used less CPU time than this in it. What a thread uses on
 * another processor shows up in the process's clock only at its timer ticks, 4 ms apart (HZ = 250)
 * or even 10: the quiet windows must outlast a tick. */
#define PARK_WINDOW_S 0.001
#define PARK_QUIET_S 0.00005
#define PARK_LIMIT_S 1.0
#define TYPICAL_PARK_S 0.1 /* for the budget only */

static double longest_park_s;

static double cpu_time(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void wait_until_parked(void) {
  const double start = ws_bench_now();
  int n_quiet = 0;
  while (n_quiet < PARK_N_QUIET && ws_bench_now() - start < PARK_LIMIT_S) {
    const double used = cpu_time();
    nanosleep(&(struct timespec){0, (long)(1e9 * PARK_WINDOW_S)}, NULL);
    n_quiet = cpu_time() - used < PARK_QUIET_S ? n_quiet + 1 : 0;
  }
  const double waited = ws_bench_now() - start - PARK_N_QUIET * PARK_WINDOW_S;
  if (waited > longest_park_s) longest_park_s = waited;
}

double ws_bench_take_longest_park(void) {
  const double longest = longest_park_s;
  longest_park_s = 0;
  return longest;
}

bool ws_bench_enter(const bench_candidate *candidate, bool threaded) {
  if (threaded) wait_until_parked();
  return !candidate->peer || ws_bench_peer_threads(candidate->peer, candidate->n_threads);
}

/* ---- Do the candidates agree? ---------------------------------------------------------------- */

/* Largest difference of two C; NaN if one holds a NaN (a C that is written whole is filled with NaN
 * before a call), or if the padding between lines was written. */
static double largest_difference(const bench_problem *p, const char *c, const char *reference) {
  const bool wide = ws_bench_is_double(p->shape.type);
  const size_t real_bytes = wide ? sizeof(double) : sizeof(float);
  const size_t n_lines = p->shape.layout == WSGEMM_ROW_MAJOR ? (size_t)p->shape.m : (size_t)p->shape.n;
  const size_t ld_bytes = p->c_bytes / n_lines, line_bytes = ld_bytes - p->c_more_bytes;
  double largest = 0;
  for (size_t line = 0; line < n_lines; line++, c += ld_bytes, reference += ld_bytes) {
    if (memcmp(c + line_bytes, reference + line_bytes, p->c_more_bytes) != 0) return NAN;
    for (size_t i = 0; i < line_bytes / real_bytes; i++) {
      const double d =
          wide ? fabs(((const double *)(const void *)c)[i] - ((const double *)(const void *)reference)[i])
               : fabs((double)((const float *)(const void *)c)[i] - (double)((const float *)(const void *)reference)[i]);
      if (!(d <= largest)) largest = d;
      if (isnan(largest)) return NAN;
    }
  }
  return largest;
}

/* Runs every candidate once and compares with the first candidate on the same problem: wsgemm with
 * itself to the bit, since bits never depend on threads, policy or COARSE_FACTOR; others within 32
 * (k + 8) u, far above rounding (entries are uniform(-1, 1)) and far below a wrong element. */
static bool check_agreement(const bench_candidate *candidates, int n_candidates, bool threaded, char *error, size_t bytes) {
  const bench_candidate *first = NULL;
  char *reference = NULL;
  bool good = true;
  for (int i = 0; good && i < n_candidates; i++) {
    const bench_candidate *candidate = &candidates[i];
    const bench_problem *p = candidate->problem;
    if (!p) continue;
    char *c = p->block + p->c_offset;
    ws_bench_problem_reset(p);
    if (!ws_bench_enter(candidate, threaded)) {
      snprintf(error, bytes, "%s does not take %d threads", candidate->label, candidate->n_threads);
      good = false;
    } else if (candidate->run(candidate, 1) < 0) {
      snprintf(error, bytes, "%s failed: %.300s", candidate->label, wsgemm_last_error());
      good = false;
    } else if (first && first->problem == p) {
      const bool wide = ws_bench_is_double(p->shape.type);
      const double u = wide ? 0x1p-53 : 0x1p-24;
      const double difference = largest_difference(p, c, reference);
      if (first->handle && candidate->handle && memcmp(c, reference, p->c_bytes) != 0) {
        snprintf(error, bytes, "%s and %s differ in their bits", first->label, candidate->label);
        good = false;
      } else if (!(difference <= 32 * ((double)p->shape.k + 8) * u)) {
        snprintf(error, bytes, "%s and %s differ by %.3g: one of them is wrong", first->label, candidate->label, difference);
        good = false;
      }
    } else {
      free(reference);
      reference = malloc(p->c_bytes);
      if (reference)
        memcpy(reference, c, p->c_bytes);
      else
        snprintf(error, bytes, "out of memory for the comparison of results");
      good = reference != NULL;
      first = candidate;
    }
  }
  free(reference);
  return good;
}

/* ---- Timing ---------------------------------------------------------------------------------- */

/* How many calls fill min_time_s. Leaves the time of one call in call_s. */
static bool calibrate(bench_candidate *candidate, double min_time_s, bool threaded) {
  if (!ws_bench_enter(candidate, threaded)) return false;
  for (candidate->n_calls = 1;;) {
    const double seconds = candidate->run(candidate, candidate->n_calls);
    if (seconds < 0) return false;
    candidate->call_s = seconds / (double)candidate->n_calls;
    if (seconds >= min_time_s) return true;
    const double wanted = seconds > 0 ? 1.1 * min_time_s / seconds : 10;
    candidate->n_calls = (int64_t)ceil((double)candidate->n_calls * (wanted < 10 ? wanted : 10));
  }
}

static double sample_time(const bench_candidate *candidate) { return (double)candidate->n_calls * candidate->call_s; }

static int64_t n_warm_calls(const bench_candidate *candidate, bool threaded) {
  if (!candidate->problem || candidate->call_s > WARM_CALL_S) return 0;
  return threaded || candidate->n_calls < 8 ? candidate->n_calls : candidate->n_calls / 8;
}

static bool take_turn(bench_candidate *candidate, int n_samples, bool threaded) {
  if (!ws_bench_enter(candidate, threaded)) return false;
  const int64_t n_warm = n_warm_calls(candidate, threaded);
  if (n_warm && candidate->run(candidate, n_warm) < 0) return false;
  for (int i = 0; i < n_samples; i++) {
    const double seconds = candidate->run(candidate, candidate->n_calls);
    if (seconds < 0) return false;
    candidate->sample_s[candidate->n_samples++] = seconds / (double)candidate->n_calls;
  }
  return true;
}

bool ws_bench_prepare(bench_candidate *candidates, int n_candidates, double min_time_s, bool threaded, char *error,
                      size_t bytes) {
  wait_until_parked(); /* whatever ran before this measurement */
  if (!check_agreement(candidates, n_candidates, threaded, error, bytes)) return false;
  for (int i = 0; i < n_candidates; i++) {
    if (calibrate(&candidates[i], min_time_s, threaded)) continue;
    snprintf(error, bytes, "%s failed while it was timed", candidates[i].label);
    return false;
  }
  return true;
}

bool ws_bench_measure(bench_candidate *candidates, int n_candidates, const bench_timing *timing, char *error, size_t bytes) {
  bool threaded = false;
  double round_s = 0;

  for (int i = 0; i < n_candidates; i++) threaded |= candidates[i].problem && candidates[i].n_threads > 1;
  if (!ws_bench_prepare(candidates, n_candidates, timing->min_time_s, threaded, error, bytes)) return false;
  double longest_s = 0;
  for (int i = 0; i < n_candidates; i++)
    if (candidates[i].call_s > longest_s) longest_s = candidates[i].call_s;
  /* beside longer calls a wait weighs little */
  const int block = threaded && longest_s < WARM_CALL_S ? THREADED_BLOCK : 1;
  for (int i = 0; i < n_candidates; i++)
    round_s += block * sample_time(&candidates[i]) + (double)n_warm_calls(&candidates[i], threaded) * candidates[i].call_s +
               (threaded ? TYPICAL_PARK_S : 0);
  int n_rounds = (timing->n_samples + block - 1) / block;
  if (n_rounds * round_s > timing->budget_s) n_rounds = (int)(timing->budget_s / round_s);
  if (n_rounds * block > MAX_SAMPLES) n_rounds = MAX_SAMPLES / block;
  if (n_rounds < BENCH_MIN_ROUNDS) n_rounds = BENCH_MIN_ROUNDS;

  for (int i = 0; i < n_candidates; i++) {
    candidates[i].n_samples = 0;
    free(candidates[i].sample_s);
    candidates[i].sample_s = malloc(sizeof(double) * (size_t)(n_rounds * block));
    if (!candidates[i].sample_s) {
      snprintf(error, bytes, "out of memory for the samples");
      return false;
    }
  }
  for (int round = 0; round < n_rounds; round++)
    for (int i = 0; i < n_candidates; i++) {
      bench_candidate *candidate = &candidates[(i + round) % n_candidates];
      if (!take_turn(candidate, block, threaded)) {
        snprintf(error, bytes, "%s failed while it was timed", candidate->label);
        return false;
      }
    }
  for (int i = 0; i < n_candidates; i++) {
    bench_candidate *candidate = &candidates[i];
    candidate->call_s = ws_bench_median(candidate->sample_s, candidate->n_samples);
    candidate->spread = ws_bench_spread(candidate->sample_s, candidate->n_samples);
  }
  return true;
}
