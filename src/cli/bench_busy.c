/* bench_busy.c - suite `busy`: the mean time of products of small and middle size beside a loop that
 * takes one core for good.
 *
 * Means, not medians: a call that waits for a worker whose core is taken waits for a time slice of the
 * other process, a hundred times as long as a small product, and one in fifty is enough to double the
 * mean. Each candidate runs alone (idle) and then beside the loop, by turns. "Ours" is wsgemm with all
 * threads; the others are wsgemm with one, which such a loop hardly touches, and the peers. A run in which
 * the loop had much less than a core beside that one says nothing, and fails. */
#define _GNU_SOURCE
#include "bench.h"
#include "bench_neighbour.h"

#include <string.h>

enum { N_OWN = 2, MOST_CANDIDATES = N_OWN + BENCH_MAX_PEERS };

/* Long enough for many time slices, and for a worker to be given up and tried again. */
#define WINDOW_S 0.4

/* Of its core the loop must have so much beside one thread of ours: others, or weights of the system, may leave it less. */
#define LEAST_SHARE 0.8

typedef struct means {
  double idle_s, busy_s, share; /* sums over the windows, then means of a call */
  int64_t n_idle, n_busy;
} means;

static bool add_window(const bench_candidate *candidate, const bench_neighbour *nb, means *m) {
  const int64_t n_calls = (int64_t)(WINDOW_S / candidate->call_s) + 1, n_idle = n_calls / 8 + 1;
  double busy;
  if (!ws_bench_enter(candidate, true) || candidate->run(candidate, n_idle) < 0) return false;
  const double idle = candidate->run(candidate, n_idle);
  const double share = ws_bench_beside_neighbour(nb, candidate, n_calls, &busy);
  if (idle < 0 || busy < 0) return false;
  m->idle_s += idle, m->n_idle += n_idle;
  m->busy_s += busy, m->n_busy += n_calls;
  m->share += share;
  return true;
}

static void report(bench_session *s, const bench_suite *suite, const bench_case *c, const bench_candidate *candidates,
                   int n_candidates, const means *m, int n_rounds) {
  for (int i = 1; i < n_candidates; i++) {
    bench_record r = ws_bench_record(suite, c);
    r.unit = "us";
    r.peer = candidates[i].label;
    r.ours = m[0].busy_s * 1e6;
    r.theirs = m[i].busy_s * 1e6;
    r.ratio = m[i].busy_s / m[0].busy_s;
    r.idle_s = m[0].idle_s;
    r.busy_s = m[0].busy_s;
    r.busy_share = m[0].share;
    r.n_samples = n_rounds;
    ws_bench_emit(s, &r);
    ws_bench_line(s, "%-22s %-32s %10.1f %10.1f %10.1f %10.1f %8.3f", c->name, candidates[i].label, m[0].idle_s * 1e6,
                  m[i].idle_s * 1e6, r.ours, r.theirs, r.ratio);
  }
}

static bool run_case(bench_session *s, const bench_suite *suite, const bench_case *c, bench_candidate *candidates,
                     int n_candidates) {
  const bench_timing timing = ws_bench_suite_timing(s, suite);
  means m[MOST_CANDIDATES] = {{0}};
  bench_neighbour nb;
  bool good = true;
  if (!ws_bench_prepare(candidates, n_candidates, timing.min_time_s, true, s->error, sizeof s->error)) return false;
  if (!ws_bench_neighbour_start(&nb, BENCH_PERIOD_NS, s->error, sizeof s->error)) return false;
  for (int round = 0; good && round < timing.n_samples; round++)
    for (int i = 0; good && i < n_candidates; i++) {
      const int at = (i + round) % n_candidates;
      good = add_window(&candidates[at], &nb, &m[at]);
      if (!good) snprintf(s->error, sizeof s->error, "%s failed while it was timed", candidates[at].label);
    }
  ws_bench_neighbour_stop(&nb);
  for (int i = 0; i < n_candidates; i++)
    m[i].idle_s /= (double)m[i].n_idle, m[i].busy_s /= (double)m[i].n_busy, m[i].share /= timing.n_samples;
  if (good && m[1].share < LEAST_SHARE) {
    snprintf(s->error, sizeof s->error, "the loop had %.2f of its core beside one thread: this machine gives no core for good",
             m[1].share);
    good = false;
  }
  if (good) report(s, suite, c, candidates, n_candidates, m, timing.n_samples);
  return good;
}

static bool prepare_and_run(bench_session *s, const bench_suite *suite, const bench_case *c) {
  bench_candidate candidates[MOST_CANDIDATES] = {{0}};
  bench_problem p;
  if (!ws_bench_problem_make(&p, &c->shape)) {
    snprintf(s->error, sizeof s->error, "out of memory");
    return false;
  }
  bool good = ws_bench_own_candidate(&candidates[0], "wsgemm", &p, c->n_threads, WSGEMM_POLICY_AUTO, 0) &&
              ws_bench_own_candidate(&candidates[1], "wsgemm 1 thread", &p, 1, WSGEMM_POLICY_AUTO, 0);
  if (!good) snprintf(s->error, sizeof s->error, "wsgemm: %.400s", wsgemm_last_error());
  for (int i = 0; i < c->n_peers; i++) ws_bench_peer_candidate(&candidates[N_OWN + i], c->peers[i], &p, c->n_threads);
  good = good && run_case(s, suite, c, candidates, N_OWN + c->n_peers);
  for (int i = 0; i < MOST_CANDIDATES; i++) ws_bench_candidate_free(&candidates[i]);
  ws_bench_problem_free(&p);
  return good;
}

bool ws_bench_run_busy(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases) {
  bool good = true;
  if (s->device.n_cores < 2) {
    snprintf(s->error, sizeof s->error, "suite busy needs two cores; this process may use one");
    return false;
  }
  ws_bench_line(s, "%-22s %-32s %10s %10s %10s %10s %8s", "mean, us", "beside", "idle", "its idle", "busy", "its busy",
                "speedup");
  for (int i = 0; good && i < n_cases; i++) {
    ws_bench_progress(s, i, n_cases, cases[i].name);
    good = prepare_and_run(s, suite, &cases[i]);
  }
  return good;
}
