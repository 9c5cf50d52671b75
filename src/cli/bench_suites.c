/* bench_suites.c - the one table of suites, and how a suite becomes a list of cases.
 *
 * A suite is routines x shapes x thread counts and the runner that compares; the options of the
 * command may replace each of the first three. Every case is column-major without transposition
 * unless the suite goes through all op pairs and layouts. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

static const int64_t square_sizes[] = {256, 512, 1000, 1024, 1100, 1536, 2048, 3000, 4096, 0};
static const int64_t small_sizes[] = {8,  12, 16, 20, 24, 31,  32,  33,  40,  48,  56,  63, 64,
                                      65, 72, 80, 88, 96, 100, 104, 112, 120, 127, 128, 0};
static const int64_t batched_sizes[] = {4, 6, 8, 12, 16, 24, 32, 48, 64, 0};
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

static const bench_shape busy_shapes[] = {{.m = 24, .n = 37, .k = 1378},
                                          {.m = 128, .n = 128, .k = 128},
                                          {.m = 200, .n = 200, .k = 200},
                                          {.m = 500, .n = 500, .k = 500}};

enum { RANDOM_LEAST = 8, RANDOM_MOST = 2048 };

static const int64_t level3_sizes[] = {64, 128, 256, 512, 1024, 2048, 4096, 0};
static const int64_t triangle_sizes[] = {1024, 2048, 0};
static const wsgemm_routine triangle_routines[] = {WSGEMM_SYRK, WSGEMM_TRMM, WSGEMM_TRSM, 0};
static const wsgemm_routine level3_routines[] = {WSGEMM_SYRK, WSGEMM_HERK,  WSGEMM_GEMMTR, WSGEMM_TRMM, WSGEMM_SYMM,
                                                 WSGEMM_HEMM, WSGEMM_SYR2K, WSGEMM_HER2K,  WSGEMM_TRSM, 0};

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
    {.name = "batched",
     .what = "batches of up to 1024 squares of 4 to 64 beside a loop over them with one thread; one thread and all",
     .routines = "sdcz",
     .run = ws_bench_run_peers,
     .sizes = batched_sizes,
     .batched = true,
     .one_thread = true,
     .all_threads = true,
     .timing = {15, 2e-3, 2}},
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
    {.name = "level3",
     .what = "squares with symmetric and triangular matrices, left, lower, N, non-unit; one thread and all",
     .routines = "sdcz",
     .level3 = level3_routines,
     .run = ws_bench_run_peers,
     .sizes = level3_sizes,
     .complex_limit = 1024,
     .one_thread = true,
     .all_threads = true,
     .timing = {11, 1e-3, 1.5}},
    {.name = "random",
     .what = "shapes drawn at random from 8 to 2048: square, flat, small, ragged; one thread and all",
     .routines = "sdcz",
     .run = ws_bench_run_peers,
     .n_random = 40,
     .one_thread = true,
     .all_threads = true,
     .timing = {11, 1e-3, 1.5}},
    {.name = "wide",
     .what = "m, n and k drawn at random, each from 4 to 4000, all ops; one thread and all",
     .routines = "sdcz",
     .run = ws_bench_run_peers,
     .n_random = 200,
     .is_wide = true,
     .one_thread = true,
     .all_threads = true,
     .timing = {9, 1e-3, 1}},
    {.name = "update",
     .what = "C += A B: the shapes of wide, leading dimensions longer by up to 63; one thread and all",
     .routines = "sdcz",
     .run = ws_bench_run_peers,
     .n_random = 200,
     .is_wide = true,
     .adds = true,
     .one_thread = true,
     .all_threads = true,
     .timing = {9, 1e-3, 1}},
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
    {.name = "triangles",
     .what = "schedule policies and COARSE_FACTOR on triangles, which are uneven work, all threads",
     .routines = "s",
     .level3 = triangle_routines,
     .run = ws_bench_run_policies,
     .sizes = triangle_sizes,
     .all_threads = true,
     .timing = {30, 4e-3, 10}},
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
    {.name = "busy",
     .what = "mean time of small products beside a loop that keeps one core busy",
     .routines = "s",
     .run = ws_bench_run_busy,
     .shapes = busy_shapes,
     .n_shapes = sizeof busy_shapes / sizeof *busy_shapes,
     .all_threads = true,
     .timing = {10, 2e-3, 90}},
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

/* ---- Cases ----------------------------------------------------------------------------------- */

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
  c->shape_class = -1;
  c->n_peers = 0;
  if (shape->m == shape->n && shape->n == shape->k)
    snprintf(c->name, sizeof c->name, "%sn=%lld", prefix, (long long)shape->m);
  else
    snprintf(c->name, sizeof c->name, "%sm=%lld n=%lld k=%lld", prefix, (long long)shape->m, (long long)shape->n,
             (long long)shape->k);
}

/* Each routine of a Level 3 suite that the type has. */
static void add_level3(case_list *list, const bench_suite *suite, bench_shape shape, int n_threads) {
  const bool is_complex = shape.type == WSGEMM_C32 || shape.type == WSGEMM_C64;
  for (const wsgemm_routine *r = suite->level3; *r; r++) {
    shape.routine = *r;
    if (is_complex || !ws_cli_is_hermitian(*r)) add_case(list, &shape, n_threads, "");
  }
}

static void add_ops(case_list *list, const bench_suite *suite, bench_shape shape, int n_threads) {
  static const wsgemm_op ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS};
  static const wsgemm_layout layouts[] = {WSGEMM_COL_MAJOR, WSGEMM_ROW_MAJOR};
  shape.layout = WSGEMM_COL_MAJOR;
  shape.transa = shape.transb = WSGEMM_NO_TRANS;
  if (suite->level3) {
    add_level3(list, suite, shape, n_threads);
    return;
  }
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

static void add_random(case_list *list, const bench_session *s, const bench_suite *suite, wsgemm_type type, int n_threads) {
  const int n_shapes = s->n_random ? s->n_random : suite->n_random;
  for (int i = 0; i < n_shapes && !list->out_of_memory; i++) {
    const ws_random_shape drawn = suite->is_wide ? ws_random_wide_shape_at(s->seed, i, suite->adds)
                                                 : ws_random_shape_at(s->seed, i, RANDOM_LEAST, RANDOM_MOST);
    const bench_shape shape = {.type = type,
                               .layout = WSGEMM_COL_MAJOR,
                               .transa = drawn.transposed_a ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
                               .transb = drawn.transposed_b ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
                               .m = drawn.m,
                               .n = drawn.n,
                               .k = drawn.k,
                               .more_a = drawn.more_a,
                               .more_b = drawn.more_b,
                               .more_c = drawn.more_c,
                               .adds = suite->adds};
    add_case(list, &shape, n_threads, "");
    if (list->out_of_memory) return;
    bench_case *c = &list->cases[list->n_cases - 1];
    c->shape_class = drawn.shape_class;
    ws_random_shape_case(&drawn, c->name);
    if (suite->adds) strncat(c->name, " beta=1", sizeof c->name - strlen(c->name) - 1);
  }
}

static void add_shapes(case_list *list, const bench_session *s, const bench_suite *suite, wsgemm_type type, int n_threads) {
  const bool is_complex = type == WSGEMM_C32 || type == WSGEMM_C64;
  for (int i = 0; i < s->shapes.n; i++) {
    const ws_shape given = s->shapes.at[i];
    if (suite->level3 && (given.m != given.n || given.n != given.k)) continue;
    add_ops(list, suite, (bench_shape){.type = type, .m = given.m, .n = given.n, .k = given.k, .batched = suite->batched},
            n_threads);
  }
  if (s->shapes.n) return;
  for (int i = 0; i < suite->n_shapes; i++) {
    bench_shape shape = suite->shapes[i];
    shape.type = type;
    add_ops(list, suite, shape, n_threads);
  }
  if (suite->n_random) add_random(list, s, suite, type, n_threads);
  for (const int64_t *size = suite->sizes; size && *size; size++)
    if (!is_complex || !suite->complex_limit || *size <= suite->complex_limit)
      add_ops(list, suite, (bench_shape){.type = type, .m = *size, .n = *size, .k = *size, .batched = suite->batched}, n_threads);
  for (int64_t size = suite->first; suite->step && size <= suite->last; size += suite->step)
    add_ops(list, suite, (bench_shape){.type = type, .m = size, .n = size, .k = size}, n_threads);
}

/* What the suite leaves out of what was asked for, and why. */
static void tell_left_out(bench_session *s, const bench_suite *suite, char letter, bool fits) {
  const bool is_complex = letter == 'c' || letter == 'z';
  if (!fits && suite->run == ws_bench_run_half)
    ws_bench_line(s, "%s: %cgemm is not run: this suite compares half precision with sgemm", suite->name, letter);
  else if (!fits)
    ws_bench_line(s, "%s: %cgemm is not run: no peer has half precision; suite half compares it with sgemm", suite->name, letter);
  for (const int64_t *size = suite->sizes; fits && is_complex && suite->complex_limit && !s->shapes.n && size && *size; size++)
    if (*size > suite->complex_limit)
      ws_bench_line(s, "%s: %c%s n=%lld is not run: complex squares end at %lld (time)", suite->name, letter,
                    suite->level3 ? "..." : "gemm", (long long)*size, (long long)suite->complex_limit);
  for (int i = 0; fits && suite->level3 && i < s->shapes.n; i++) {
    const ws_shape x = s->shapes.at[i];
    if (x.m != x.n || x.n != x.k)
      ws_bench_line(s, "%s: %lldx%lldx%lld is not run: this suite has squares", suite->name, (long long)x.m, (long long)x.n,
                    (long long)x.k);
  }
}

/* Each case gets the peers that have its routine. A suite that compares with them leaves out those that
 * no peer has. */
static void give_peers(bench_session *s, const bench_suite *suite, case_list *list) {
  bool is_told[WSGEMM_BF16 + 1][WSGEMM_TRSM + 1] = {{false}};
  int n_kept = 0;
  for (int i = 0; i < list->n_cases; i++) {
    bench_case *c = &list->cases[i];
    for (int j = 0; j < s->n_peers; j++)
      if (ws_bench_peer_has(&s->peers[j], &c->shape)) c->peers[c->n_peers++] = &s->peers[j];
    if (c->n_peers || !s->n_peers || suite->run != ws_bench_run_peers) {
      list->cases[n_kept++] = *c;
      continue;
    }
    bool *told = &is_told[c->shape.type][c->shape.routine];
    char routine[BENCH_ROUTINE_BYTES];
    ws_bench_routine(&c->shape, routine);
    if (!*told) ws_bench_line(s, "%s: %s is not run: no peer has it", suite->name, routine);
    *told = true;
  }
  list->n_cases = n_kept;
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
    /* no peer has them */
    const bool fits = ws_bench_is_half(type) == (suite->run == ws_bench_run_half);
    tell_left_out(s, suite, *r, fits);
    for (int i = 0; fits && i < n_counts; i++) add_shapes(&list, s, suite, type, counts[i]);
  }
  give_peers(s, suite, &list);
  bool good = !list.out_of_memory;
  if (!good) snprintf(s->error, sizeof s->error, "out of memory");
  if (good && list.n_cases > 0) {
    s->n_suites_run++;
    ws_bench_load_begin();
    ws_bench_line(s, "%s: %s", suite->name, suite->what);
    good = suite->run(s, suite, list.cases, list.n_cases);
  }
  if (good && list.n_cases > 0) {
    ws_bench_progress(s, 0, 0, NULL);
    const double park_s = ws_bench_take_longest_park();
    if (park_s > 0.001)
      ws_bench_line(s, "  longest wait until the threads of the library before were asleep: %.0f ms", 1e3 * park_s);
    const double others = ws_bench_load_others();
    if (others >= 0)
      ws_bench_line(s, "  meanwhile other processes and guests took %.1f %% of the machine%s", 100 * others,
                    others > DISTURBED ? ": a disturbed run" : "");
    ws_bench_line(s, "%s", "");
  }
  free(list.cases);
  return good;
}
