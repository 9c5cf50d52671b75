/* row_times.c - see row_times.h. One line a shape, with the times of cuBLAS, of the library's own
 * choice, and of each row by name.
 *
 * Each candidate first runs once, and those that then take more than SLOW times the least so far are
 * timed no further: 0 is their second time. The others are timed in turn; those near the best of
 * them once more. The first medians name the best row, the second ones time it, so that the best
 * is not just the luckiest. Of products that take long every EVERY-th is run. Results are not
 * compared: suites rows and random do that. */
#include "row_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/cublas.h"
#include "bench/harness/random.h"
#include "bench/harness/stats.h"
#include "candidates.h"

enum { FIRST_SAMPLES = 3, SECOND_SAMPLES = 5, EVERY = 4, TEXT_BYTES = 1 << 14, CUBLAS = 0, CHOICE = 1, FIRST_ROW = 2 };
static const double SLOW = 2.5, NEAR = 1.2, LONG_FLOPS = 2e11;

typedef struct times {
  double warm, first, second; /* ms; 0: not timed */
} times;

static bool is_wanted(const wsgemm_kernel_info *row, wsgemm_type type, const row_times_options *options) {
  const bool for_pedantic = is_half(type) && row->is_fma && strcmp(row->family, "vec") != 0;
  return strcmp(row->backend, "cuda") == 0 && row->type == type && (!options->rows || strstr(row->name, options->rows)) &&
         (options->math == WSGEMM_MATH_PEDANTIC ? row->is_fma : !for_pedantic);
}

static void set_math(candidate *x, wsgemm_math math) {
  if (wsgemm_set_math(x->handle, math) != WSGEMM_SUCCESS) exit(1);
}

static int set_rows(candidate *candidates, wsgemm_type type, const row_times_options *options) {
  int n = FIRST_ROW;
  candidates[CUBLAS] = (candidate){.label = "cuBLAS", .policy = "none"};
  set_candidate(&candidates[CHOICE], "auto", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  for (int r = 0; r < wsgemm_kernel_count() && n < MAX_CANDIDATES; r++) {
    wsgemm_kernel_info row = {.struct_bytes = sizeof row};
    if (wsgemm_get_kernel_info(r, &row) == WSGEMM_SUCCESS && is_wanted(&row, type, options))
      set_candidate(&candidates[n++], row.name, "auto", WSGEMM_POLICY_AUTO, 0, row.name);
  }
  for (int i = CHOICE; i < n; i++) set_math(&candidates[i], options->math);
  return n;
}

/* In turn, in an order drawn anew each time; medians. */
static void time_in_turn(candidate *candidates, int *chosen, int n_chosen, int n_samples, const problem *p, double *medians) {
  static uint64_t state = 4711;
  for (int s = 0; s < n_samples; s++) {
    ws_random_shuffle(&state, chosen, n_chosen);
    for (int i = 0; i < n_chosen; i++) candidates[chosen[i]].ms[s] = candidate_time(&candidates[chosen[i]], p);
  }
  for (int i = 0; i < n_chosen; i++) medians[chosen[i]] = ws_bench_median(candidates[chosen[i]].ms, n_samples);
}

/* used: those that can run it, the first two among them. */
static void time_all(candidate *candidates, const int *used, int n_used, const problem *p, times *of) {
  static bool has_run[MAX_CANDIDATES];
  double medians[MAX_CANDIDATES], least = HUGE_VAL;
  int chosen[MAX_CANDIDATES], n = 0;
  for (int i = 0; i < n_used; i++) {
    const int c = used[i];
    if (!has_run[c]) candidate_time(&candidates[c], p); /* loads the kernel */
    has_run[c] = true;
    of[c] = (times){.warm = candidate_time(&candidates[c], p)};
    least = fmin(least, of[c].warm);
    if (of[c].warm <= SLOW * least || c < FIRST_ROW) chosen[n++] = c;
  }
  time_in_turn(candidates, chosen, n, FIRST_SAMPLES, p, medians);
  for (int i = 0; i < n; i++) of[chosen[i]].first = medians[chosen[i]];
  least = HUGE_VAL;
  for (int i = 0; i < n; i++)
    if (chosen[i] >= FIRST_ROW) least = fmin(least, medians[chosen[i]]);
  int n_near = 0;
  for (int i = 0; i < n; i++)
    if (chosen[i] < FIRST_ROW || medians[chosen[i]] <= NEAR * least) chosen[n_near++] = chosen[i];
  time_in_turn(candidates, chosen, n_near, SECOND_SAMPLES, p, medians);
  for (int i = 0; i < n_near; i++) of[chosen[i]].second = medians[chosen[i]];
}

/* The row with the least first time; -1: none. */
static int best_of(const int *used, int n_used, const times *of) {
  int best = -1;
  for (int i = 0; i < n_used; i++)
    if (used[i] >= FIRST_ROW && of[used[i]].second > 0 && (best < 0 || of[used[i]].first < of[best].first)) best = used[i];
  return best;
}

/* "name:first/second ...", us, without the routine's name. */
static void put_rows(FILE *f, const candidate *candidates, const int *used, int n_used, const times *of) {
  static char text[TEXT_BYTES];
  size_t at = 0;
  for (int i = 0; i < n_used && at < sizeof text - 128; i++) {
    const times *t = &of[used[i]];
    if (used[i] < FIRST_ROW) continue;
    const int n =
        snprintf(text + at, sizeof text - at, "%s%s:%.2f/%.2f", at ? " " : "", strchr(candidates[used[i]].label, '_') + 1,
                 (t->first > 0 ? t->first : t->warm) * 1e3, t->second * 1e3);
    if (n > 0) at += (size_t)n;
  }
  ws_bench_result_text(f, "rows", text);
}

static void put(const char *suite, const char *case_name, const problem *p, candidate *candidates, const int *used, int n_used,
                const times *of) {
  const char routine[] = {letters[p->type], 'g', 'e', 'm', 'm', 0};
  const double ours = of[CHOICE].second * 1e3, theirs = of[CUBLAS].second * 1e3;
  const int best = best_of(used, n_used, of);
  char kernel[91];
  if (best < 0) return;
  explained_kernel(&candidates[CHOICE], p, kernel);
  printf("%s %s %-60s %8.2f %8.2f us, choice %.3f of the best, best %.3f of cuBLAS | %s | %s\n", suite, routine, case_name, ours,
         theirs, of[best].second / of[CHOICE].second, of[CUBLAS].second / of[best].second, kernel, candidates[best].label);
  if (!bench.json) return;
  const ws_bench_result r = {.suite = suite,
                             .routine = routine,
                             .case_name = case_name,
                             .policy = "auto",
                             .device = bench.device,
                             .peer = ws_bench_cublas_version(),
                             .ours = ours,
                             .theirs = theirs,
                             .unit = "us",
                             .ratio = theirs / ours,
                             .commit = bench.commit,
                             .date = bench.date};
  ws_bench_result_begin(bench.json, &r);
  ws_bench_result_text(bench.json, "kernel", kernel);
  ws_bench_result_text(bench.json, "best", candidates[best].label);
  ws_bench_result_text(bench.json, "class", p->case_class);
  put_rows(bench.json, candidates, used, n_used, of);
  ws_bench_result_end(bench.json);
}

static bool is_too_long(const ws_random_shape *s, int idx) {
  return 2 * (double)s->m * (double)s->n * (double)s->k > LONG_FLOPS && idx % EVERY != 0;
}

void run_row_times(wsgemm_type type, const row_times_options *options) {
  static candidate candidates[MAX_CANDIDATES];
  const int n_candidates = set_rows(candidates, type, options);
  for (int idx = 0; idx < options->n_shapes; idx++) {
    const ws_random_shape drawn = options->draw(idx, type);
    if (is_too_long(&drawn, idx)) continue;
    char ops[3];
    const shape s = shape_of_drawn(&drawn, ops);
    times of[MAX_CANDIDATES];
    int used[MAX_CANDIDATES], n_used = 0;
    char case_name[WS_RANDOM_CASE_BYTES];
    problem p = make_problem(type, WSGEMM_COL_MAJOR, &s);
    p.case_class = ws_shape_class_name(drawn.shape_class);
    ws_random_shape_case(&drawn, case_name);
    for (int i = 0; i < n_candidates; i++)
      if (takes_kernel(&candidates[i], &p)) used[n_used++] = i;
    time_all(candidates, used, n_used, &p, of);
    put(options->suite, case_name, &p, candidates, used, n_used, of);
    free_problem(&p);
  }
  free_candidates(candidates, n_candidates);
}
