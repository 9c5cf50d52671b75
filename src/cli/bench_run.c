/* bench_run.c - the runners: what is measured against what in each kind of suite.
 *
 * peers     wsgemm against every peer that has the routine, and the FMA peak, case by case
 * scan      wsgemm with all threads against wsgemm with one
 * dips      every size against the mean of its two neighbours; all sizes are candidates of one
 *           measurement
 * half      half precision against wsgemm's own sgemm: no peer has it
 * policies  every policy and COARSE_FACTOR against fixed blocks
 * coarse    every COARSE_FACTOR against the one that the library chooses
 * "ours" and "theirs" are rates; a ratio above 1 is good for wsgemm, or for the candidate that the
 * line is about. */
#include "bench.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNIT "GF/s"

static double rate(const bench_candidate *candidate) { return candidate->flops / candidate->call_s * 1e-9; }

static void free_candidates(bench_candidate *candidates, int n_candidates) {
  for (int i = 0; i < n_candidates; i++) ws_bench_candidate_free(&candidates[i]);
}

static bool fail_candidate(bench_session *s, const char *label) {
  snprintf(s->error, sizeof s->error, "%s: %.400s", label, wsgemm_last_error());
  return false;
}

/* Puts "case of suite" before an error that a measurement left. */
static bool fail_case(bench_session *s, const bench_suite *suite, const bench_case *c) {
  char reason[sizeof s->error];
  memcpy(reason, s->error, sizeof reason);
  char routine[BENCH_ROUTINE_BYTES];
  ws_bench_routine(&c->shape, routine);
  snprintf(s->error, sizeof s->error, "%s, %s %s: %.300s", suite->name, routine, c->name, reason);
  return false;
}

/* ---- Geometric mean and minimum of a group of ratios ----------------------------------------- */

typedef struct group {
  int n_threads, shape_class;
  char routine[BENCH_ROUTINE_BYTES];
  ws_bench_mean ratio, peak;
  char least_name[WS_RANDOM_CASE_BYTES];
} group;

/* gemm: 4 types, 2 thread counts, 5 classes of shapes at most (-1: none); Level 3: 6 routines of a
 * real type, 9 of a complex one, 2 thread counts: 60; and room */
enum { MAX_GROUPS = 64 };

static void group_add(group *groups, const bench_case *c, double ratio, double peak_fraction) {
  char routine[BENCH_ROUTINE_BYTES];
  int i = 0;
  ws_bench_routine(&c->shape, routine);
  while (
      i < MAX_GROUPS - 1 && groups[i].ratio.n &&
      (strcmp(groups[i].routine, routine) != 0 || groups[i].n_threads != c->n_threads || groups[i].shape_class != c->shape_class))
    i++;
  group *g = &groups[i];
  if (ws_bench_mean_add(&g->ratio, ratio)) snprintf(g->least_name, sizeof g->least_name, "%s", c->name);
  ws_bench_mean_add(&g->peak, peak_fraction);
  memcpy(g->routine, routine, sizeof routine);
  g->n_threads = c->n_threads;
  g->shape_class = c->shape_class;
}

static void group_print(bench_session *s, const group *groups, const char *against, bool with_peak) {
  for (int i = 0; i < MAX_GROUPS && groups[i].ratio.n; i++) {
    const group *g = &groups[i];
    char peak[64] = "", class_text[32] = "";
    if (with_peak) snprintf(peak, sizeof peak, "; of peak %.2f, least %.2f", ws_bench_mean_of(&g->peak), g->peak.least);
    if (g->shape_class >= 0)
      snprintf(class_text, sizeof class_text, ", %s (%d)", ws_shape_class_name(g->shape_class), g->ratio.n);
    ws_bench_line(s, "  %s, %d thread%s%s: %s %.3f in the geometric mean, least %.3f (%s)%s", g->routine, g->n_threads,
                  g->n_threads == 1 ? "" : "s", class_text, against, ws_bench_mean_of(&g->ratio), g->ratio.least, g->least_name,
                  peak);
  }
}

/* ---- Shapes drawn at random, by size --------------------------------------------------------- */

/* Geometric means of ratios by what is counted of a shape: its fewest rows or columns, or its multiply-adds. */
enum { MOST_BUCKETS = 7 };
typedef struct by_size {
  const char *what;
  double ends[MOST_BUCKETS - 1]; /* the last of each bucket but the last one */
  ws_bench_mean mean[MOST_BUCKETS];
} by_size;

typedef struct sizes {
  by_size few, work;
} sizes;

static sizes no_sizes(void) {
  return (sizes){{.what = "min(m, n)", .ends = {4, 8, 16, 24, 64, 256}},
                 {.what = "m n k", .ends = {1e4, 1e5, 1e6, 1e7, 1e8, 1e9}}};
}

static void by_size_add(by_size *b, double size, double ratio) {
  int i = 0;
  while (i < MOST_BUCKETS - 1 && size > b->ends[i]) i++;
  ws_bench_mean_add(&b->mean[i], ratio);
}

static void sizes_add(sizes *s, const bench_shape *shape, double ratio) {
  by_size_add(&s->few, (double)(shape->m < shape->n ? shape->m : shape->n), ratio);
  by_size_add(&s->work, (double)shape->m * (double)shape->n * (double)shape->k, ratio);
}

static void by_size_print(bench_session *s, const char *routine, int n_threads, const by_size *b) {
  char line[256];
  int used = snprintf(line, sizeof line, "  %s, %d thread%s, by %s:", routine, n_threads, n_threads == 1 ? "" : "s", b->what);
  for (int i = 0; i < MOST_BUCKETS; i++) {
    if (!b->mean[i].n) continue;
    used += snprintf(line + used, sizeof line - (size_t)used, "  %s%g %.3f (%d)", i < MOST_BUCKETS - 1 ? "to " : "above ",
                     b->ends[i < MOST_BUCKETS - 1 ? i : i - 1], ws_bench_mean_of(&b->mean[i]), b->mean[i].n);
  }
  ws_bench_line(s, "%s", line);
}

/* Of the cases begun with `first`, which are of one routine and thread count. */
static void sizes_print(bench_session *s, const bench_case *first, const sizes *by) {
  char routine[BENCH_ROUTINE_BYTES];
  ws_bench_routine(&first->shape, routine);
  by_size_print(s, routine, first->n_threads, &by->few);
  by_size_print(s, routine, first->n_threads, &by->work);
}

static void label_case(char *label, size_t bytes, const bench_case *c) {
  char routine[BENCH_ROUTINE_BYTES];
  ws_bench_routine(&c->shape, routine);
  snprintf(label, bytes, "%s %s, %dt", routine, c->name, c->n_threads);
}

static int label_width(const bench_suite *suite) { return suite->n_random ? 74 : 30; }

/* ---- Against the peers ----------------------------------------------------------------------- */

static void print_peers_head(bench_session *s, int width) {
  char line[256];
  int used = snprintf(line, sizeof line, "%-*s %8s %5s", width, UNIT, "wsgemm", "peak");
  for (int i = 0; i < s->n_peers; i++) used += snprintf(line + used, sizeof line - (size_t)used, "   peer %d speedup", i + 1);
  if (s->n_peers > 1) snprintf(line + used, sizeof line - (size_t)used, "  least");
  ws_bench_line(s, "%s", line);
}

/* Returns the least ratio: that to the fastest peer. A peer that lacks the routine has a dash. */
static double report_peers(bench_session *s, const bench_suite *suite, const bench_case *c, const bench_candidate *candidates,
                           group *groups) {
  const int width = label_width(suite);
  char line[256 + WS_RANDOM_CASE_BYTES], label[WS_RANDOM_CASE_BYTES + 16];
  const bench_candidate *own = &candidates[0], *peak = &candidates[1 + c->n_peers];
  const double of_peak = rate(own) / rate(peak);
  double worst = INFINITY;
  bench_record r = ws_bench_record(suite, c);
  r.policy = "auto";
  r.unit = UNIT;
  r.ours = rate(own);
  r.peak_fraction = of_peak;
  r.spread = own->spread;
  r.n_samples = own->n_samples;

  label_case(label, sizeof label, c);
  int used = snprintf(line, sizeof line, "%-*s %8.1f %5.2f", width, label, rate(own), of_peak);
  for (int i = 0, n_seen = 0; i < s->n_peers; i++) {
    if (n_seen == c->n_peers || c->peers[n_seen] != &s->peers[i]) {
      used += snprintf(line + used, sizeof line - (size_t)used, " %8s %7s", "-", "-");
      continue;
    }
    const bench_candidate *peer = &candidates[1 + n_seen++];
    r.peer = peer->label;
    r.theirs = rate(peer);
    r.ratio = peer->call_s / own->call_s;
    if (r.ratio < worst) worst = r.ratio;
    ws_bench_emit(s, &r);
    used += snprintf(line + used, sizeof line - (size_t)used, " %8.1f %7.3f", rate(peer), r.ratio);
  }
  if (s->n_peers > 1) snprintf(line + used, sizeof line - (size_t)used, " %6.3f", worst);
  if (!s->n_peers) ws_bench_emit(s, &r);
  ws_bench_line(s, "%s", line);
  group_add(groups, c, c->n_peers ? worst : 1, of_peak);
  return c->n_peers ? worst : 1;
}

bool ws_bench_run_peers(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases) {
  const bench_timing timing = ws_bench_suite_timing(s, suite);
  group groups[MAX_GROUPS] = {{0}};
  sizes by = no_sizes();
  const bench_case *first = cases;
  bool good = true;

  print_peers_head(s, label_width(suite));
  for (int i = 0; good && i < n_cases; i++) {
    const bench_case *c = &cases[i];
    bench_candidate candidates[2 + BENCH_MAX_PEERS] = {{0}};
    const int n_candidates = c->n_peers + 2;
    bench_problem p;
    ws_bench_progress(s, i, n_cases, c->name);
    if (!ws_bench_problem_make(&p, &c->shape)) {
      snprintf(s->error, sizeof s->error, "out of memory");
      return fail_case(s, suite, c);
    }
    good =
        ws_bench_own_candidate(&candidates[0], "wsgemm", &p, c->n_threads, WSGEMM_POLICY_AUTO, 0) || fail_candidate(s, "wsgemm");
    for (int j = 0; j < c->n_peers; j++)
      ws_bench_peer_candidate(&candidates[1 + j], c->peers[j], &p, c->shape.batched ? 1 : c->n_threads);
    ws_bench_peak_candidate(&candidates[1 + c->n_peers], ws_bench_is_double(c->shape.type), c->n_threads);
    good = good && ws_bench_measure(candidates, n_candidates, &timing, s->error, sizeof s->error);
    if (good)
      sizes_add(&by, &c->shape, report_peers(s, suite, c, candidates, groups));
    else
      fail_case(s, suite, c);
    free_candidates(candidates, n_candidates);
    ws_bench_problem_free(&p);
    const bool is_last = i + 1 == n_cases || c[1].shape.type != c->shape.type || c[1].n_threads != c->n_threads;
    if (good && is_last && suite->n_random && s->n_peers) sizes_print(s, first, &by);
    if (is_last) by = no_sizes(), first = c + 1;
  }
  if (good && s->n_peers) group_print(s, groups, s->n_peers > 1 ? "speedup over the fastest peer" : "speedup", true);
  return good;
}

/* ---- wsgemm against itself ------------------------------------------------------------------- */

/* Candidate 0 beside candidate 1, whose rate is printed in so many columns. */
static void report_pair(bench_session *s, const bench_suite *suite, const bench_case *c, const bench_candidate candidates[2],
                        int width, group *groups) {
  char label[WS_RANDOM_CASE_BYTES + 16];
  bench_record r = ws_bench_record(suite, c);
  r.policy = "auto";
  r.unit = UNIT;
  r.peer = candidates[1].label;
  r.ours = rate(&candidates[0]);
  r.theirs = rate(&candidates[1]);
  r.ratio = candidates[1].call_s / candidates[0].call_s;
  r.spread = candidates[0].spread;
  r.n_samples = candidates[0].n_samples;
  ws_bench_emit(s, &r);
  label_case(label, sizeof label, c);
  ws_bench_line(s, "%-30s %8.1f %*.1f %7.3f", label, r.ours, width, r.theirs, r.ratio);
  group_add(groups, c, r.ratio, 1);
}

/* ---- One thread against all ------------------------------------------------------------------ */

bool ws_bench_run_scan(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases) {
  const bench_timing timing = ws_bench_suite_timing(s, suite);
  group groups[MAX_GROUPS] = {{0}};
  bool good = true;

  ws_bench_line(s, "%-30s %8s %9s %7s", UNIT, "all", "1 thread", "speedup");
  for (int i = 0; good && i < n_cases; i++) {
    const bench_case *c = &cases[i];
    bench_candidate candidates[2] = {{0}};
    bench_problem p;
    ws_bench_progress(s, i, n_cases, c->name);
    if (!ws_bench_problem_make(&p, &c->shape)) {
      snprintf(s->error, sizeof s->error, "out of memory");
      return fail_case(s, suite, c);
    }
    good = (ws_bench_own_candidate(&candidates[0], "wsgemm", &p, c->n_threads, WSGEMM_POLICY_AUTO, 0) &&
            ws_bench_own_candidate(&candidates[1], "wsgemm 1 thread", &p, 1, WSGEMM_POLICY_AUTO, 0)) ||
           fail_candidate(s, "wsgemm");
    good = good && ws_bench_measure(candidates, 2, &timing, s->error, sizeof s->error);
    if (good)
      report_pair(s, suite, c, candidates, 9, groups);
    else
      fail_case(s, suite, c);
    free_candidates(candidates, 2);
    ws_bench_problem_free(&p);
  }
  if (good) group_print(s, groups, "speedup over one thread", false);
  return good;
}

/* ---- Half precision against sgemm ------------------------------------------------------------ */

bool ws_bench_run_half(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases) {
  const bench_timing timing = ws_bench_suite_timing(s, suite);
  group groups[MAX_GROUPS] = {{0}};
  bool good = true;

  ws_bench_line(s, "%-30s %8s %8s %7s", UNIT, "half", "sgemm", "speedup");
  for (int i = 0; good && i < n_cases; i++) {
    const bench_case *c = &cases[i];
    bench_shape single = c->shape;
    single.type = WSGEMM_F32;
    bench_candidate candidates[2] = {{0}};
    bench_problem p = {0}, p_single = {0};
    ws_bench_progress(s, i, n_cases, c->name);
    good = ws_bench_problem_make(&p, &c->shape) && ws_bench_problem_make(&p_single, &single);
    if (!good) snprintf(s->error, sizeof s->error, "out of memory");
    good = good && ((ws_bench_own_candidate(&candidates[0], "wsgemm", &p, c->n_threads, WSGEMM_POLICY_AUTO, 0) &&
                     ws_bench_own_candidate(&candidates[1], "wsgemm sgemm", &p_single, c->n_threads, WSGEMM_POLICY_AUTO, 0)) ||
                    fail_candidate(s, "wsgemm"));
    good = good && ws_bench_measure(candidates, 2, &timing, s->error, sizeof s->error);
    if (good)
      report_pair(s, suite, c, candidates, 8, groups);
    else
      fail_case(s, suite, c);
    free_candidates(candidates, 2);
    ws_bench_problem_free(&p);
    ws_bench_problem_free(&p_single);
  }
  if (good) group_print(s, groups, "speedup over sgemm", false);
  return good;
}

/* ---- Each size against its neighbours -------------------------------------------------------- */

static void report_dips(bench_session *s, const bench_suite *suite, const bench_case *cases, const bench_candidate *candidates,
                        int n_cases) {
  group groups[MAX_GROUPS] = {{0}};
  for (int i = 1; i + 1 < n_cases; i++) {
    const double neighbours = (rate(&candidates[i - 1]) + rate(&candidates[i + 1])) / 2;
    char label[WS_RANDOM_CASE_BYTES + 16];
    bench_record r = ws_bench_record(suite, &cases[i]);
    r.policy = "auto";
    r.unit = UNIT;
    r.peer = "wsgemm neighbours";
    r.ours = rate(&candidates[i]);
    r.theirs = neighbours;
    r.ratio = r.ours / neighbours;
    r.spread = candidates[i].spread;
    r.n_samples = candidates[i].n_samples;
    ws_bench_emit(s, &r);
    label_case(label, sizeof label, &cases[i]);
    ws_bench_line(s, "%-30s %8.1f %10.1f %7.3f", label, r.ours, neighbours, r.ratio);
    group_add(groups, &cases[i], r.ratio, 1);
  }
  group_print(s, groups, "rate over that of the neighbouring sizes", false);
}

bool ws_bench_run_dips(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases) {
  bench_timing timing = ws_bench_suite_timing(s, suite);
  bench_problem *problems = calloc((size_t)n_cases, sizeof *problems);
  bench_candidate *candidates = calloc((size_t)n_cases, sizeof *candidates);
  bool good = problems && candidates;

  if (!good) snprintf(s->error, sizeof s->error, "%s: out of memory", suite->name);
  for (int i = 0; good && i < n_cases; i++) {
    good = ws_bench_problem_make(&problems[i], &cases[i].shape);
    if (!good) snprintf(s->error, sizeof s->error, "%s: out of memory", suite->name);
    good = good && (ws_bench_own_candidate(&candidates[i], "wsgemm", &problems[i], cases[i].n_threads, WSGEMM_POLICY_AUTO, 0) ||
                    fail_candidate(s, "wsgemm"));
  }
  if (good) {
    ws_bench_progress(s, 0, 1, "all sizes in turn");
    timing.budget_s *= n_cases; /* the budget is meant for one case */
    good = ws_bench_measure(candidates, n_cases, &timing, s->error, sizeof s->error);
  }
  if (good) {
    ws_bench_line(s, "%-30s %8s %10s %7s", UNIT, "wsgemm", "neighbours", "ratio");
    report_dips(s, suite, cases, candidates, n_cases);
  }
  for (int i = 0; problems && candidates && i < n_cases; i++) {
    ws_bench_candidate_free(&candidates[i]);
    ws_bench_problem_free(&problems[i]);
  }
  free(problems);
  free(candidates);
  return good;
}

/* ---- Policies and COARSE_FACTOR -------------------------------------------------------------- */

typedef struct setting {
  const char *label, *policy_name;
  wsgemm_policy policy;
  int coarse_factor; /* 0: automatic */
} setting;

enum { MAX_SETTINGS = 8 };

/* COARSE_FACTOR that the library takes in this candidate; -1: not known. */
static int coarse_factor_taken(const bench_candidate *candidate) {
  const bench_problem *p = candidate->problem;
  const bench_shape *x = &p->shape;
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  int64_t factor = -1;
  if (x->routine) return ws_bench_level3_coarse_factor(candidate);
  d.layout = x->layout;
  d.transa = x->transa;
  d.transb = x->transb;
  d.type_a = d.type_b = d.type_c = x->type;
  d.type_scalar = ws_cli_scalar_type(x->type);
  d.m = x->m;
  d.n = x->n;
  d.k = x->k;
  d.alpha = ws_cli_scalar(x->type, (wsgemm_cdouble){1, 0});
  d.beta = ws_cli_scalar(x->type, (wsgemm_cdouble){0, 0});
  d.a = p->block;
  d.b = p->block + p->b_offset;
  d.c = p->block + p->c_offset;
  d.lda = p->lda;
  d.ldb = p->ldb;
  d.ldc = p->ldc;
  char *text = ws_cli_explain(candidate->handle, &d), *rest = text, *key, *value;
  while (rest && ws_cli_next_line(&rest, &key, &value))
    if (strcmp(key, "coarse_factor") == 0 && !ws_cli_int64(value, 1, INT32_MAX, &factor)) factor = -1;
  free(text);
  return (int)factor;
}

/* wsgemm under some settings, compared with the first of them. */
typedef struct settings_run {
  bench_session *s;
  const bench_suite *suite;
  const setting *settings;
  int n_settings;
  const char *ratio_head;
} settings_run;

static bool run_settings_of_case(const settings_run *run, const bench_case *c) {
  bench_session *s = run->s;
  const bench_suite *suite = run->suite;
  const setting *settings = run->settings;
  const int n_settings = run->n_settings;
  const bench_timing timing = ws_bench_suite_timing(s, suite);
  bench_candidate candidates[MAX_SETTINGS] = {{0}};
  bench_problem p;
  bool good = true;

  if (!ws_bench_problem_make(&p, &c->shape)) {
    snprintf(s->error, sizeof s->error, "out of memory");
    return fail_case(s, suite, c);
  }
  for (int j = 0; good && j < n_settings; j++)
    good = ws_bench_own_candidate(&candidates[j], settings[j].label, &p, c->n_threads, settings[j].policy,
                                  settings[j].coarse_factor) ||
           fail_candidate(s, settings[j].label);
  good = good && ws_bench_measure(candidates, n_settings, &timing, s->error, sizeof s->error);
  if (!good) fail_case(s, suite, c);
  for (int j = 0; good && j < n_settings; j++) {
    char label[WS_RANDOM_CASE_BYTES + 16];
    bench_record r = ws_bench_record(suite, c);
    r.policy = settings[j].policy_name;
    r.coarse_factor = settings[j].coarse_factor;
    r.coarse_factor_taken = coarse_factor_taken(&candidates[j]);
    r.unit = UNIT;
    r.peer = candidates[0].label;
    r.ours = rate(&candidates[j]);
    r.theirs = rate(&candidates[0]);
    r.ratio = candidates[0].call_s / candidates[j].call_s;
    r.spread = candidates[j].spread;
    r.n_samples = candidates[j].n_samples;
    ws_bench_emit(s, &r);
    label_case(label, sizeof label, c);
    ws_bench_line(s, "%-18s %-29s %8.1f %7.3f", label, settings[j].label + strlen("wsgemm "), r.ours, r.ratio);
  }
  free_candidates(candidates, n_settings);
  ws_bench_problem_free(&p);
  return good;
}

static bool run_settings(const settings_run *run, const bench_case *cases, int n_cases) {
  bool good = true;
  ws_bench_line(run->s, "%-48s %8s %s", UNIT, "rate", run->ratio_head);
  for (int i = 0; good && i < n_cases; i++) {
    ws_bench_progress(run->s, i, n_cases, cases[i].name);
    good = run_settings_of_case(run, &cases[i]);
  }
  return good;
}

bool ws_bench_run_policies(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases) {
  static const setting settings[] = {
      {"wsgemm fixed_blocks", "fixed_blocks", WSGEMM_POLICY_FIXED_BLOCKS, 0},
      {"wsgemm fixed_work", "fixed_work", WSGEMM_POLICY_FIXED_WORK, 0},
      {"wsgemm steal", "steal", WSGEMM_POLICY_STEAL, 0},
      {"wsgemm steal, COARSE_FACTOR 1", "steal", WSGEMM_POLICY_STEAL, 1},
      {"wsgemm steal, COARSE_FACTOR 2", "steal", WSGEMM_POLICY_STEAL, 2},
      {"wsgemm steal, COARSE_FACTOR 4", "steal", WSGEMM_POLICY_STEAL, 4},
      {"wsgemm steal, COARSE_FACTOR 8", "steal", WSGEMM_POLICY_STEAL, 8},
  };
  const settings_run r = {s, suite, settings, sizeof settings / sizeof *settings, "speedup over fixed_blocks"};
  return run_settings(&r, cases, n_cases);
}

bool ws_bench_run_coarse(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases) {
  static const setting settings[] = {
      {"wsgemm COARSE_FACTOR automatic", "auto", WSGEMM_POLICY_AUTO, 0},
      {"wsgemm COARSE_FACTOR 1", "auto", WSGEMM_POLICY_AUTO, 1},
      {"wsgemm COARSE_FACTOR 2", "auto", WSGEMM_POLICY_AUTO, 2},
      {"wsgemm COARSE_FACTOR 4", "auto", WSGEMM_POLICY_AUTO, 4},
      {"wsgemm COARSE_FACTOR 8", "auto", WSGEMM_POLICY_AUTO, 8},
      {"wsgemm COARSE_FACTOR 16", "auto", WSGEMM_POLICY_AUTO, 16},
      {"wsgemm COARSE_FACTOR 64", "auto", WSGEMM_POLICY_AUTO, 64},
  };
  const settings_run r = {s, suite, settings, sizeof settings / sizeof *settings, "speedup over automatic"};
  return run_settings(&r, cases, n_cases);
}
