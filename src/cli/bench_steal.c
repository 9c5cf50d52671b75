/* bench_steal.c - suite `steal`: what is left of each policy's speed while another process keeps
 * one core half busy.
 *
 * A child process (bench_neighbour.h) burns CPU time for half of every period. Each candidate is timed
 * alone (idle) and then beside the child (busy), in every round. The child's CPU time is
 * read from its own clock over exactly the timed window, so that
 *   ideal = idle time x cores / (cores - share of one core that the child really got)
 * is what a scheduler could reach that wastes nothing. A candidate is given by busy time / ideal;
 * 1.0 is perfect. */
#define _GNU_SOURCE
#include "bench.h"
#include "bench_neighbour.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 100 };

typedef struct steal_result {
  double idle_s[MAX_ROUNDS], busy_s[MAX_ROUNDS], share[MAX_ROUNDS], over_ideal[MAX_ROUNDS];
} steal_result;

/* Policies first; "ours" is the first row. */
static const struct {
  const char *label, *policy_name;
  wsgemm_policy policy;
} own_rows[] = {{"wsgemm steal", "steal", WSGEMM_POLICY_STEAL},
                {"wsgemm fixed_work", "fixed_work", WSGEMM_POLICY_FIXED_WORK},
                {"wsgemm fixed_blocks", "fixed_blocks", WSGEMM_POLICY_FIXED_BLOCKS}};
enum { N_OWN = sizeof own_rows / sizeof *own_rows, MAX_STEAL_CANDIDATES = N_OWN + BENCH_MAX_PEERS };

/* The same number of calls idle and busy. */
static bool time_round(const bench_candidate *candidate, const bench_neighbour *nb, steal_result *result, int round) {
  double busy;
  if (!ws_bench_enter(candidate, true)) return false;
  const double idle = candidate->run(candidate, candidate->n_calls);
  result->share[round] = ws_bench_beside_neighbour(nb, candidate, candidate->n_calls, &busy);
  if (idle < 0 || busy < 0) return false;
  result->idle_s[round] = idle / (double)candidate->n_calls;
  result->busy_s[round] = busy / (double)candidate->n_calls;
  return true;
}

/* Medians in place: the idle time is the median over all rounds, the rest is by round. */
static void conclude(steal_result *result, int n_rounds, int n_cores) {
  const double idle = ws_bench_median(result->idle_s, n_rounds);
  result->idle_s[0] = idle;
  for (int i = 0; i < n_rounds; i++) result->over_ideal[i] = result->busy_s[i] / (idle * n_cores / (n_cores - result->share[i]));
  result->busy_s[0] = ws_bench_median(result->busy_s, n_rounds);
  result->share[0] = ws_bench_median(result->share, n_rounds);
  result->over_ideal[0] = ws_bench_median(result->over_ideal, n_rounds);
}

static void report(bench_session *s, const bench_suite *suite, const bench_case *c, const bench_candidate *candidates,
                   int n_candidates, const steal_result *results, int n_rounds) {
  for (int i = 0; i < n_candidates; i++) {
    bench_record r = ws_bench_record(suite, c);
    r.policy = i < N_OWN ? own_rows[i].policy_name : "none";
    r.unit = "GF/s";
    r.peer = candidates[i].label;
    r.ours = candidates[0].flops / results[0].busy_s[0] * 1e-9;
    r.theirs = candidates[i].flops / results[i].busy_s[0] * 1e-9;
    r.ratio = results[i].busy_s[0] / results[0].busy_s[0];
    r.idle_s = results[i].idle_s[0];
    r.busy_s = results[i].busy_s[0];
    r.busy_share = results[i].share[0];
    r.over_ideal = results[i].over_ideal[0];
    r.n_samples = n_rounds;
    ws_bench_emit(s, &r);
    ws_bench_line(s, "%-8s %-32s %8.1f %8.1f %7.2f %10.3f %9.3f", c->name, candidates[i].label,
                  candidates[i].flops / r.idle_s * 1e-9, r.theirs, r.busy_share, r.over_ideal, r.ratio);
  }
}

static bool run_case(bench_session *s, const bench_suite *suite, const bench_case *c, bench_candidate *candidates,
                     int n_candidates, steal_result *results) {
  const bench_timing timing = ws_bench_suite_timing(s, suite);
  const double min_time_s = 20e-9 * BENCH_PERIOD_NS; /* a window of many periods of the child */
  double round_s = 0;
  bench_neighbour nb;
  bool good = true;

  if (!ws_bench_prepare(candidates, n_candidates, min_time_s, true, s->error, sizeof s->error)) return false;
  for (int i = 0; i < n_candidates; i++) /* idle, busy, pauses */
    round_s += 2.5 * (double)candidates[i].n_calls * candidates[i].call_s + 0.1;
  int n_rounds = timing.n_samples < MAX_ROUNDS ? timing.n_samples : MAX_ROUNDS;
  if (n_rounds * round_s > timing.budget_s) n_rounds = (int)(timing.budget_s / round_s);
  if (n_rounds < BENCH_MIN_ROUNDS) n_rounds = BENCH_MIN_ROUNDS;

  if (!ws_bench_neighbour_start(&nb, BENCH_PERIOD_NS / 2, s->error, sizeof s->error)) return false;
  for (int round = 0; good && round < n_rounds; round++)
    for (int i = 0; good && i < n_candidates; i++) {
      const int at = (i + round) % n_candidates;
      good = time_round(&candidates[at], &nb, &results[at], round);
      if (!good) snprintf(s->error, sizeof s->error, "%s failed while it was timed", candidates[at].label);
    }
  ws_bench_neighbour_stop(&nb);
  for (int i = 0; good && i < n_candidates; i++) conclude(&results[i], n_rounds, s->device.n_cores);
  if (good) report(s, suite, c, candidates, n_candidates, results, n_rounds);
  return good;
}

bool ws_bench_run_steal(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases) {
  steal_result *results;
  bool good = true;
  if (s->device.n_cores < 2) {
    snprintf(s->error, sizeof s->error, "suite steal needs two cores; this process may use one");
    return false;
  }
  results = calloc(MAX_STEAL_CANDIDATES, sizeof *results);
  if (!results) {
    snprintf(s->error, sizeof s->error, "out of memory");
    return false;
  }
  ws_bench_line(s, "%-8s %-32s %8s %8s %7s %10s %9s", "GF/s", "", "idle", "busy", "share", "over ideal", "to steal");
  for (int i = 0; good && i < n_cases; i++) {
    const bench_case *c = &cases[i];
    bench_candidate candidates[MAX_STEAL_CANDIDATES] = {{0}};
    const int n_candidates = N_OWN + c->n_peers;
    bench_problem p;
    ws_bench_progress(s, i, n_cases, c->name);
    good = ws_bench_problem_make(&p, &c->shape);
    if (!good) {
      snprintf(s->error, sizeof s->error, "out of memory");
      break;
    }
    for (int j = 0; good && j < N_OWN; j++) {
      good = ws_bench_own_candidate(&candidates[j], own_rows[j].label, &p, c->n_threads, own_rows[j].policy, 0);
      if (!good) snprintf(s->error, sizeof s->error, "%s: %.400s", own_rows[j].label, wsgemm_last_error());
    }
    for (int j = 0; j < c->n_peers; j++) ws_bench_peer_candidate(&candidates[N_OWN + j], c->peers[j], &p, c->n_threads);
    good = good && run_case(s, suite, c, candidates, n_candidates, results);
    for (int j = 0; j < n_candidates; j++) ws_bench_candidate_free(&candidates[j]);
    ws_bench_problem_free(&p);
  }
  free(results);
  return good;
}
