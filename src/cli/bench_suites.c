/* bench_suites.c - the one table of suites, and how a suite becomes a list of cases.
 *
 * A suite is routines x shapes x thread counts and the runner that compares; the options of the command may replace each of the
 * first three. Every case is column-major without transposition unless the suite goes through all op pairs and layouts. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static const int64_t square_sizes[] = {256, 512, 1000, 1024, 1100, 1536, 2048, 3000, 4096, 0};
static const int64_t small_sizes[] = {8,  12, 16, 20, 24, 31,  32,  33,  40,  48,  56,  63, 64,
                                      65, 72, 80, 88, 96, 100, 104, 112, 120, 127, 128, 0};
static const int64_t half_sizes[] = {128, 256, 512, 1024, 2048, 4096, 0};
static const int64_t policy_sizes[] = {1024, 2048, 4096, 0};
static const int64_t coarse_sizes[] = {64, 128, 256, 512, 1024, 2048, 0};
static const int64_t steal_sizes[] = {4096, 6144, 0};
static const int64_t ops_sizes[] = {1024, 0};
static const int64_t demo_sizes[] = {512, 1024, 2048, 0};
static const bench_shape odd_shapes[] = {
    {.m = 1, .n = 4096, .k = 4096},  {.m = 4096, .n = 1, .k = 4096},  {.m = 4096, .n = 4096, .k = 1},
    {.m = 64, .n = 64, .k = 65536},  {.m = 16, .n = 4096, .k = 4096}, {.m = 4096, .n = 16, .k = 4096},
    {.m = 4096, .n = 4096, .k = 16},
};
static const bench_shape heat_shapes[] = {
    {.m = 16, .n = 16, .k = 1024},     {.m = 16, .n = 64, .k = 1024},     {.m = 16, .n = 256, .k = 1024},
    {.m = 16, .n = 1024, .k = 1024},   {.m = 16, .n = 4096, .k = 1024},   {.m = 64, .n = 16, .k = 1024},
    {.m = 64, .n = 64, .k = 1024},     {.m = 64, .n = 256, .k = 1024},    {.m = 64, .n = 1024, .k = 1024},
    {.m = 64, .n = 4096, .k = 1024},   {.m = 256, .n = 16, .k = 1024},    {.m = 256, .n = 64, .k = 1024},
    {.m = 256, .n = 256, .k = 1024},   {.m = 256, .n = 1024, .k = 1024},  {.m = 256, .n = 4096, .k = 1024},
    {.m = 1024, .n = 16, .k = 1024},   {.m = 1024, .n = 64, .k = 1024},   {.m = 1024, .n = 256, .k = 1024},
    {.m = 1024, .n = 1024, .k = 1024}, {.m = 1024, .n = 4096, .k = 1024}, {.m = 4096, .n = 16, .k = 1024},
    {.m = 4096, .n = 64, .k = 1024},   {.m = 4096, .n = 256, .k = 1024},  {.m = 4096, .n = 1024, .k = 1024},
    {.m = 4096, .n = 4096, .k = 1024},
};

#define DISTURBED 0.03 /* share of the machine taken by others from which on a run is called disturbed */

/* timing: samples, seconds per sample, seconds per case */
const bench_suite ws_bench_suites[] = {
    {.name = "square",
     .what = "square products, one thread",
     .routines = "sdcz",
     .run = ws_bench_run_peers,
     .sizes = square_sizes,
     .complex_limit = 2048,
     .one_thread = true,
     .timing = {21, 2e-3, 8}},
    {.name = "small",
     .what = "square products of 8 to 128, one thread",
     .routines = "sdcz",
     .run = ws_bench_run_peers,
     .sizes = small_sizes,
     .one_thread = true,
     .timing = {31, 2e-3, 4}},
    {.name = "threads",
     .what = "the sizes of square, all threads",
     .routines = "sdcz",
     .run = ws_bench_run_peers,
     .sizes = square_sizes,
     .complex_limit = 2048,
     .all_threads = true,
     .timing = {30, 2e-3, 8}},
    {.name = "half",
     .what = "half precision beside our own sgemm of the same shape, one thread and all",
     .routines = "hb",
     .run = ws_bench_run_half,
     .sizes = half_sizes,
     .one_thread = true,
     .all_threads = true,
     .timing = {21, 2e-3, 8}},
    {.name = "scan",
     .what = "sizes 1 to 512: all threads never slower than one",
     .routines = "s",
     .run = ws_bench_run_scan,
     .first = 1,
     .last = 512,
     .step = 7,
     .all_threads = true,
     .timing = {30, 2e-3, 4}},
    {.name = "dips",
     .what = "sizes 900 to 1300: none far below its neighbours, all threads",
     .routines = "s",
     .run = ws_bench_run_dips,
     .first = 900,
     .last = 1300,
     .step = 20,
     .all_threads = true,
     .timing = {30, 4e-3, 2}},
    {.name = "odd",
     .what = "long and thin products, one thread and all",
     .routines = "sd",
     .run = ws_bench_run_peers,
     .shapes = odd_shapes,
     .n_shapes = sizeof odd_shapes / sizeof *odd_shapes,
     .one_thread = true,
     .all_threads = true,
     .timing = {21, 2e-3, 4}},
    {.name = "ops",
     .what = "NN NT TN TT, column- and row-major, one thread",
     .routines = "sdcz",
     .run = ws_bench_run_peers,
     .sizes = ops_sizes,
     .one_thread = true,
     .all_ops = true,
     .timing = {21, 2e-3, 4}},
    {.name = "heat",
     .what = "m and n from 16 to 4096 at k = 1024, all threads",
     .routines = "sd",
     .run = ws_bench_run_peers,
     .shapes = heat_shapes,
     .n_shapes = sizeof heat_shapes / sizeof *heat_shapes,
     .all_threads = true,
     .timing = {9, 2e-3, 1.5}},
    {.name = "policies",
     .what = "schedule policies and COARSE_FACTOR, all threads",
     .routines = "s",
     .run = ws_bench_run_policies,
     .sizes = policy_sizes,
     .all_threads = true,
     .timing = {60, 4e-3, 30}},
    {.name = "coarse",
     .what = "COARSE_FACTOR beside the one that the library chooses, one thread and all",
     .routines = "sd",
     .run = ws_bench_run_coarse,
     .sizes = coarse_sizes,
     .one_thread = true,
     .all_threads = true,
     .timing = {45, 4e-3, 6}},
    {.name = "steal",
     .what = "policies beside a process that keeps one core half busy",
     .routines = "s",
     .run = ws_bench_run_steal,
     .sizes = steal_sizes,
     .all_threads = true,
     .timing = {9, 2e-3, 90}},
    {.name = "demo",
     .what = "a short look: three sizes, one thread and all",
     .routines = "sd",
     .run = ws_bench_run_peers,
     .sizes = demo_sizes,
     .one_thread = true,
     .all_threads = true,
     .timing = {9, 2e-3, 1}},
};
const int ws_bench_n_suites = sizeof ws_bench_suites / sizeof *ws_bench_suites;

const bench_suite *ws_bench_find_suite(const char *name) {
  for (int i = 0; i < ws_bench_n_suites; i++)
    if (strcmp(ws_bench_suites[i].name, name) == 0) return &ws_bench_suites[i];
  return NULL;
}

bench_timing ws_bench_suite_timing(const bench_session *s, const bench_suite *suite) {
  bench_timing timing = suite->timing;
  if (s->timing.n_samples > 0) timing.n_samples = s->timing.n_samples;
  if (s->timing.min_time_s > 0) timing.min_time_s = s->timing.min_time_s;
  if (s->timing.budget_s > 0) timing.budget_s = s->timing.budget_s;
  return timing;
}

/* ---- Cases --------------------------------------------------------------------------------------------------------------- */

typedef struct case_list {
  bench_case *cases;
  int n_cases;
  bool out_of_memory;
} case_list;

static void add_case(case_list *list, const bench_shape *shape, int n_threads, const char *prefix) {
  bench_case *more = realloc(list->cases, sizeof *more * (size_t)(list->n_cases + 1));
  if (!more) {
    list->out_of_memory = true;
    return;
  }
  list->cases = more;
  bench_case *c = &more[list->n_cases++];
  c->shape = *shape;
  c->n_threads = n_threads;
  if (shape->m == shape->n && shape->n == shape->k)
    snprintf(c->name, sizeof c->name, "%sn=%lld", prefix, (long long)shape->m);
  else
    snprintf(c->name, sizeof c->name, "%sm=%lld n=%lld k=%lld", prefix, (long long)shape->m, (long long)shape->n,
             (long long)shape->k);
}

static void add_ops(case_list *list, const bench_suite *suite, bench_shape shape, int n_threads) {
  static const wsgemm_op ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS};
  static const wsgemm_layout layouts[] = {WSGEMM_COL_MAJOR, WSGEMM_ROW_MAJOR};
  shape.layout = WSGEMM_COL_MAJOR;
  shape.transa = shape.transb = WSGEMM_NO_TRANS;
  if (!suite->all_ops) {
    add_case(list, &shape, n_threads, "");
    return;
  }
  for (int i = 0; i < 8; i++) {
    char prefix[16];
    shape.layout = layouts[i / 4];
    shape.transa = ops[i / 2 % 2];
    shape.transb = ops[i % 2];
    snprintf(prefix, sizeof prefix, "%c%c %s ", "NT"[i / 2 % 2], "NT"[i % 2], i / 4 ? "row" : "col");
    add_case(list, &shape, n_threads, prefix);
  }
}

static void add_shapes(case_list *list, const bench_session *s, const bench_suite *suite, wsgemm_type type, int n_threads) {
  const bool is_complex = type == WSGEMM_C32 || type == WSGEMM_C64;
  const bench_shape *shapes = s->n_shapes ? s->shapes : suite->shapes;
  const int n_shapes = s->n_shapes ? s->n_shapes : suite->n_shapes;
  for (int i = 0; i < n_shapes; i++) {
    bench_shape shape = shapes[i];
    shape.type = type;
    add_ops(list, suite, shape, n_threads);
  }
  if (s->n_shapes) return;
  for (const int64_t *size = suite->sizes; size && *size; size++)
    if (!is_complex || !suite->complex_limit || *size <= suite->complex_limit)
      add_ops(list, suite, (bench_shape){.type = type, .m = *size, .n = *size, .k = *size}, n_threads);
  for (int64_t size = suite->first; suite->step && size <= suite->last; size += suite->step)
    add_ops(list, suite, (bench_shape){.type = type, .m = size, .n = size, .k = size}, n_threads);
}

bool ws_bench_run_suite(bench_session *s, const bench_suite *suite) {
  static const char letters[] = "sdczhb";
  const char *routines = s->routines ? s->routines : suite->routines;
  int counts[2], n_counts = 0;
  case_list list = {0};

  if (s->n_threads) {
    counts[n_counts++] = s->n_threads;
  } else {
    if (suite->one_thread) counts[n_counts++] = 1;
    if (suite->all_threads && (wsgemm_default_num_threads() > 1 || !n_counts)) counts[n_counts++] = wsgemm_default_num_threads();
  }
  for (const char *r = routines; *r; r++) {
    const wsgemm_type type = (wsgemm_type)(strchr(letters, *r) - letters);
    const bool fits = ws_bench_is_half(type) == (suite->run == ws_bench_run_half); /* no peer has them */
    for (int i = 0; fits && i < n_counts; i++) add_shapes(&list, s, suite, type, counts[i]);
  }
  bool good = !list.out_of_memory && list.n_cases > 0;
  if (list.out_of_memory)
    snprintf(s->error, sizeof s->error, "out of memory");
  else if (!good)
    snprintf(s->error, sizeof s->error, "%s has none of these routines", suite->name);
  if (good) {
    ws_bench_load_begin();
    ws_bench_line(s, "%s: %s", suite->name, suite->what);
    good = suite->run(s, suite, list.cases, list.n_cases);
  }
  if (good) {
    ws_bench_progress(s, 0, 0, NULL);
    const double park_s = ws_bench_take_longest_park();
    if (park_s > 0.001)
      ws_bench_line(s, "  longest wait for the threads of the arm before to fall asleep: %.0f ms", 1e3 * park_s);
    const double others = ws_bench_load_others();
    if (others >= 0)
      ws_bench_line(s, "  meanwhile other processes and guests took %.1f %% of the machine%s", 100 * others,
                    others > DISTURBED ? ": a disturbed run" : "");
    ws_bench_line(s, "%s", "");
  }
  free(list.cases);
  return good;
}
