/* gemm.c - GEMM on the GPU beside cuBLAS: one process, in turn, the same random data, L2 flushed
 * before every timing, medians of event timings; results compared. --list prints the suites.
 *
 *   bench_gpu_gemm [--suite NAME[,NAME]] [--types sdczhb] [--shapes OPS,M,N,K[;OPS,M,N,K]] [--seed
 *   N] [--count N] [--distribution classes|uniform|aligned] [--sides LEAST,MOST] [--depth LEAST,MOST] [--math default|pedantic|tf32]
 *                  [--json FILE] [--commit ID] [--samples N] [--workspace own|asked] [--rows TEXT] [--list]
 *
 * --shapes: these instead of the suites' own. --rows: of suites rows and row_times those with TEXT
 * in their names. --seed, --count: which shapes suites random, decode and row_times draw, and how many
 * (60); samples of random are 9.
 * --distribution: classes (random_shapes.h: square, flat, small, ragged, in turn), or uniform or aligned (its
 * classes of these names; half precision: multiples of 8), whose smaller side of C is from LEAST to MOST
 * (--sides), and whose k (--depth). --math: the class of suites random, rows and row_times, which is then in their names; tf32 beside
 * cuBLAS in its mode of that name. --workspace: the library's own (default), or
 * of the size that it asks for. Exit code 1: a result was wrong (it gives no figure), or there is no
 * cuBLAS;
 * 77: no GPU. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy.h"
#include "bench/harness/cublas.h"
#include "bench/harness/cublaslt.h"
#include "bench/harness/random_shapes.h"
#include "bench/harness/stats.h"
#include "breakdown.h"
#include "calls.h"
#include "candidates.h"
#include "decode.h"
#include "row_times.h"

enum { MAX_GIVEN = 64, RANDOM_LEAST = 16, RANDOM_MOST = 8192, RANDOM_SAMPLES = 9, MAX_RANDOM = 1000 };
static shape given[MAX_GIVEN];
static char given_ops[MAX_GIVEN][3];
static int n_given, n_wrong;
static struct {
  const char *suites, *types, *json, *commit, *rows;
  bool packs_b, is_uniform, is_aligned, has_device_scalars; /* device_scalars: alpha and beta there; not filed */
  uint64_t seed;
  int n_random;
  ws_random_sides sides;
  int class_idx; /* of `classes` */
} options = {.suites = "square", .types = letters, .seed = 1, .n_random = 60};

/* What was asked for with --shapes, if anything was. */
static shape_list or_given(shape_list own) { return n_given ? (shape_list){given, n_given} : own; }

/* Differences beyond this times sqrt(k) are those of a wrong element, not of another order of
 * summation. */
static double tolerance_of(const char *suite, wsgemm_type type, const shape *s) {
  const double unit = is_wide(type)                    ? 0x1p-53
                      : strncmp(suite, "tf32", 4) == 0 ? 0x1p-18
                      : type == WSGEMM_F16             ? 0x1p-18
                      : type == WSGEMM_BF16            ? 0x1p-15
                                                       : 0x1p-24;
  return unit * 512 * (s->is_spread ? ldexp(1, SPREAD_EXPONENTS) : 1);
}

/* The last candidate's speedup, 0: a result was wrong; and what cuBLAS took. */
typedef struct outcome {
  double speedup, peer_ms;
} outcome;

/* Candidates beside candidate 0, which is cuBLAS. */
static outcome beside_cublas(const char *suite, wsgemm_type type, const shape *s, const candidate *candidates, int n_candidates) {
  char case_name[WS_RANDOM_CASE_BYTES], sizes[64];
  outcome last = {0, 0};
  problem p = make_problem(type, WSGEMM_COL_MAJOR, s);
  candidate used[MAX_CANDIDATES];
  int n_used = 0;
  for (int i = 0; i < n_candidates; i++)
    if (takes_kernel(&candidates[i], &p)) used[n_used++] = candidates[i];
  snprintf(case_name, sizeof case_name, "%s %s", s->ops, sizes_of(s, sizes));
  if (s->drawn) {
    ws_random_shape_case(s->drawn, case_name);
    p.case_class = ws_shape_class_name(s->drawn->shape_class);
  }
  if (options.packs_b) pack_b(&used[1], &p);
  for (int i = 1; i < n_used; i++) {
    const double d = difference(&used[0], &used[i], &p);
    if (d <= tolerance_of(suite, type, s)) continue;
    printf("WRONG: %s %s differs from cuBLAS by %.3g sqrt(k); again by %.3g; from itself by %.3g, cuBLAS from itself by %.3g\n",
           case_name, used[i].label, d, difference(&used[0], &used[i], &p), difference(&used[i], &used[i], &p),
           difference(&used[0], &used[0], &p));
    n_wrong++;
    used[i--] = used[--n_used];
  }
  if (n_used > 1) measure(used, n_used, &p);
  for (int i = 1; i < n_used; i++) {
    if (strcmp(used[i].label, "auto") == 0) explained_kernel(&used[i], &p, used[i].label);
    report(suite, case_name, &p, &used[i], &used[0], ws_bench_cublas_version());
    last = (outcome){used[0].median / used[i].median, used[0].median};
  }
  free_problem(&p);
  return last;
}

static void set_math(candidate *x, wsgemm_math math) {
  if (wsgemm_set_math(x->handle, math) != WSGEMM_SUCCESS) exit(1);
}

static void print_mean(const char *suite, wsgemm_type type, const char *what, const ws_bench_mean *mean) {
  if (mean->n)
    printf("%s %cgemm%s: speedup over cuBLAS %.3f in the geometric mean of %d, least %.3f\n", suite, letters[type], what,
           ws_bench_mean_of(mean), mean->n, mean->least);
}

static void run_in_class(const char *suite, wsgemm_type type, shape_list shapes, wsgemm_math math) {
  candidate candidates[2] = {{.label = "cuBLAS", .policy = "none"}};
  ws_bench_mean mean = {0};
  set_candidate(&candidates[1], "auto", bench.asked_workspace ? "auto, workspace as asked" : "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  set_math(&candidates[1], math);
  shapes = or_given(shapes);
  for (int i = 0; i < shapes.count; i++) {
    const double speedup = beside_cublas(suite, type, &shapes.first[i], candidates, 2).speedup;
    if (speedup > 0) ws_bench_mean_add(&mean, speedup);
  }
  print_mean(suite, type, "", &mean);
  free_candidates(candidates, 2);
}

static void run_in_default(const char *suite, wsgemm_type type, shape_list shapes) {
  run_in_class(suite, type, shapes, WSGEMM_MATH_DEFAULT);
}

/* ---- Suites ---------------------------------------------------------------------------------- */

static void run_square(wsgemm_type type) { run_in_default("square", type, is_half(type) ? LIST(half_square) : LIST(square)); }
static void run_decode(wsgemm_type type) {
  static shape shapes[DECODE_MOST];
  run_in_default("decode", type, (shape_list){shapes, decode_shapes(options.seed, options.n_random, shapes)});
}
static void run_skinny(wsgemm_type type) { run_in_default("skinny", type, is_half(type) ? LIST(half_skinny) : LIST(skinny)); }
static void run_odd(wsgemm_type type) { run_in_default("odd", type, LIST(half_odd)); }
static void run_sliced(wsgemm_type type) { run_in_default("sliced", type, LIST(sliced)); }
static void run_spread(wsgemm_type type) { run_in_default("spread", type, LIST(spread)); }
static void run_pedantic(wsgemm_type type) {
  run_in_class("pedantic", type, is_half(type) ? LIST(half_square) : LIST(square), WSGEMM_MATH_PEDANTIC);
}
static void run_errors(wsgemm_type type) {
  (void)type;
  run_accuracy();
}

static ws_random_shape drawn_shape(int idx, wsgemm_type type) {
  if (!options.is_uniform) return ws_random_shape_at(options.seed, idx, RANDOM_LEAST, RANDOM_MOST);
  ws_random_shape drawn =
      ws_random_uniform_shape_at(options.seed, idx, is_half(type) || options.is_aligned ? 8 : 1, options.sides);
  if (options.is_aligned) drawn.shape_class = WS_SHAPE_ALIGNED;
  return drawn;
}

/* What --math may name, and what suites are called then. */
static const struct {
  const char *name, *random, *random_uniform, *random_aligned, *row_times, *rows;
  wsgemm_math math;
} classes[] = {
    {"default", "random", "random", "random_aligned", "row_times", "rows", WSGEMM_MATH_DEFAULT},
    {"pedantic", "pedantic_random", "pedantic_random_uniform", "pedantic_random_aligned", "pedantic_row_times", "pedantic_rows",
     WSGEMM_MATH_PEDANTIC},
    {"tf32", "tf32_random", "tf32_random_uniform", "tf32_random_aligned", "tf32_row_times", "tf32_rows", WSGEMM_MATH_TF32}};
enum { N_CLASSES = sizeof classes / sizeof classes[0] };

static void run_rows_at_random(wsgemm_type type) {
  const row_times_options of_rows = {options.n_random, options.rows, drawn_shape, classes[options.class_idx].row_times,
                                     classes[options.class_idx].math};
  ws_bench_cublas_set_tf32(of_rows.math == WSGEMM_MATH_TF32);
  run_row_times(type, &of_rows);
  ws_bench_cublas_set_tf32(false);
}

/* The same shapes for all types; the means by class, by size, by time and by ops. */
static void run_random(wsgemm_type type) {
  const int n_samples = bench.samples;
  const wsgemm_math math = classes[options.class_idx].math;
  const char *suite = options.is_aligned   ? classes[options.class_idx].random_aligned
                      : options.is_uniform ? classes[options.class_idx].random_uniform
                                           : classes[options.class_idx].random;
  ws_bench_mean means[WS_SHAPE_ALIGNED + 1] = {{0}}, all = {0};
  breakdown parts = {0};
  candidate candidates[2] = {{.label = "cuBLAS", .policy = "none"}};
  set_candidate(&candidates[1], "auto", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  set_math(&candidates[1], math);
  ws_bench_cublas_set_tf32(math == WSGEMM_MATH_TF32);
  if (n_samples > RANDOM_SAMPLES) bench.samples = RANDOM_SAMPLES;
  for (int i = 0; i < options.n_random; i++) {
    const ws_random_shape drawn = drawn_shape(i, type);
    char ops[3];
    const shape s = shape_of_drawn(&drawn, ops);
    const outcome o = beside_cublas(suite, type, &s, candidates, 2);
    if (!(o.speedup > 0)) continue;
    ws_bench_mean_add(&means[drawn.shape_class], o.speedup);
    ws_bench_mean_add(&all, o.speedup);
    breakdown_add(&parts, ops, s.m, s.n, o.peer_ms, o.speedup);
  }
  bench.samples = n_samples;
  ws_bench_cublas_set_tf32(false);
  for (int c = 0; c <= WS_SHAPE_ALIGNED; c++) {
    char what[32];
    snprintf(what, sizeof what, ", %s", ws_shape_class_name(c));
    print_mean(suite, type, what, &means[c]);
  }
  print_mean(suite, type, ", all classes", &all);
  breakdown_print(&parts, letters[type]);
  free_candidates(candidates, 2);
}

/* The shapes for a heat map over m and n. */
static void run_heat(wsgemm_type type) {
  enum { LEAST = 16, MOST = 8192, K = 4096, N_SIZES = 10 };
  static shape shapes[N_SIZES * N_SIZES];
  int count = 0;
  for (int64_t m = LEAST; m <= MOST; m *= 2)
    for (int64_t n = LEAST; n <= MOST; n *= 2) shapes[count++] = (shape)SHAPE("NN", m, n, K);
  run_in_default("heat", type, (shape_list){shapes, count});
}

static void run_packed(wsgemm_type type) {
  options.packs_b = true;
  run_in_default("packed", type, LIST(packed));
  options.packs_b = false;
}

/* Beside cuBLAS in its mode of that name; what both round away differs. */
static void run_tf32(wsgemm_type type) {
  ws_bench_cublas_set_tf32(true);
  run_in_class("tf32", type, LIST(square), WSGEMM_MATH_TF32);
  ws_bench_cublas_set_tf32(false);
}

/* Where there is no cuBLAS. */
static void run_alone(const char *suite, wsgemm_type type, shape_list shapes) {
  candidate own = {.policy = "auto"};
  set_candidate(&own, "auto", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  shapes = or_given(shapes);
  for (int i = 0; i < shapes.count; i++) {
    problem p = make_problem(type, WSGEMM_COL_MAJOR, &shapes.first[i]);
    measure(&own, 1, &p);
    explained_kernel(&own, &p, own.label);
    printf("%-9s %cgemm %s %-21lld %-34s %8.2f %8s %7s\n", suite, letters[type], shapes.first[i].ops, (long long)p.m, own.label,
           flops_of(&p) / own.median * 1e-9, "-", "-");
    free_problem(&p);
  }
  free_candidates(&own, 1);
}

static bool has_cublas;
static void run_demo(wsgemm_type type) {
  if (has_cublas)
    run_in_default("demo", type, LIST(demo));
  else
    run_alone("demo", type, LIST(demo));
}

static void run_rows(wsgemm_type type) {
  candidate candidates[MAX_CANDIDATES] = {{.label = "cuBLAS", .policy = "none"}};
  const wsgemm_math math = classes[options.class_idx].math;
  int n_candidates = 1;
  for (int r = 0; r < wsgemm_kernel_count() && n_candidates < MAX_CANDIDATES; r++) {
    wsgemm_kernel_info row = {.struct_bytes = sizeof row};
    if (wsgemm_get_kernel_info(r, &row) || strcmp(row.backend, "cuda") != 0 || row.type != type) continue;
    if (options.rows && !strstr(row.name, options.rows)) continue;
    set_candidate(&candidates[n_candidates], row.name, "auto", WSGEMM_POLICY_AUTO, 0, row.name);
    set_math(&candidates[n_candidates++], math);
  }
  const shape_list shapes = or_given(is_half(type) ? LIST(half_square) : LIST(square));
  ws_bench_cublas_set_tf32(math == WSGEMM_MATH_TF32);
  for (int i = 0; i < shapes.count; i++)
    beside_cublas(classes[options.class_idx].rows, type, &shapes.first[i], candidates, n_candidates);
  ws_bench_cublas_set_tf32(false);
  free_candidates(candidates, n_candidates);
}

static void run_policies(wsgemm_type type) {
  candidate candidates[6] = {{.label = "cuBLAS", .policy = "none"}};
  set_candidate(&candidates[1], "fixed_work", "fixed_work", WSGEMM_POLICY_FIXED_WORK, 0, NULL);
  set_candidate(&candidates[2], "fixed_blocks", "fixed_blocks", WSGEMM_POLICY_FIXED_BLOCKS, 0, NULL);
  set_candidate(&candidates[3], "steal", "steal", WSGEMM_POLICY_STEAL, 0, NULL);
  set_candidate(&candidates[4], "steal quantum 1", "steal quantum 1", WSGEMM_POLICY_STEAL, 1, NULL);
  set_candidate(&candidates[5], "steal quantum 4", "steal quantum 4", WSGEMM_POLICY_STEAL, 4, NULL);
  const shape_list shapes = or_given(LIST(few));
  for (int i = 0; i < shapes.count; i++) beside_cublas("policies", type, &shapes.first[i], candidates, 6);
  free_candidates(candidates, 6);
}

/* Each epilogue beside the same product without one. */
static void run_epilogue(wsgemm_type type) {
  candidate candidates[1 + N_EPILOGUES] = {0};
  set_candidate(&candidates[0], "wsgemm without epilogue", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  for (int e = 0; e < N_EPILOGUES; e++) {
    set_candidate(&candidates[1 + e], epilogues[e].name, "auto", WSGEMM_POLICY_AUTO, 0, NULL);
    candidates[1 + e].epilogue = &epilogues[e];
  }
  const shape_list shapes = or_given(LIST(layers));
  for (int i = 0; i < shapes.count; i++) {
    const shape *s = &shapes.first[i];
    char case_name[96], sizes[64];
    problem p = make_problem(type, WSGEMM_ROW_MAJOR, s);
    p.bias = random_matrix(type, p.n), p.residual = random_matrix(type, p.m * p.n);
    p.sums = random_matrix(is_wide(type) ? WSGEMM_F64 : WSGEMM_F32, p.n);
    measure(candidates, 1 + N_EPILOGUES, &p);
    for (int e = 0; e < N_EPILOGUES; e++) {
      snprintf(case_name, sizeof case_name, "%s %s", epilogues[e].name, sizes_of(s, sizes));
      explained_kernel(&candidates[1 + e], &p, candidates[1 + e].label);
      report("epilogue", case_name, &p, &candidates[1 + e], &candidates[0], candidates[0].label);
    }
    free_problem(&p);
  }
  free_candidates(candidates, 1 + N_EPILOGUES);
}

/* Beside the fastest of the kernels that cuBLASLt's heuristic proposes, each measured. */
static void run_beside_best(wsgemm_type type) {
  const shape_list lists[] = {LIST(half_square), LIST(half_skinny)};
  ws_bench_mean mean = {0};
  for (int l = 0; l < (n_given ? 1 : 2); l++) {
    const shape_list shapes = or_given(lists[l]);
    for (int i = 0; i < shapes.count; i++) {
      candidate candidates[1 + WS_BENCH_CUBLASLT_MOST] = {0};
      const shape *s = &shapes.first[i];
      char case_name[96], sizes[64], peer[64];
      problem p = make_problem(type, WSGEMM_COL_MAJOR, s);
      const int n_proposals = ws_bench_cublaslt_propose(type, p.op_a, p.op_b, p.m, p.n, p.k, p.lda, p.ldb, p.ldc);
      if (n_proposals < 1) exit(1);
      set_candidate(&candidates[0], "auto", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
      for (int c = 1; c <= n_proposals; c++) candidates[c].proposal = c;
      measure(candidates, 1 + n_proposals, &p);
      int best = 1;
      for (int c = 2; c <= n_proposals; c++)
        if (candidates[c].median < candidates[best].median) best = c;
      explained_kernel(&candidates[0], &p, candidates[0].label);
      snprintf(case_name, sizeof case_name, "%s %s", s->ops, sizes_of(s, sizes));
      snprintf(peer, sizeof peer, "%s, best of %d proposals", ws_bench_cublaslt_version(), n_proposals);
      report("best", case_name, &p, &candidates[0], &candidates[best], peer);
      ws_bench_mean_add(&mean, candidates[best].median / candidates[0].median);
      free_candidates(candidates, 1);
      free_problem(&p);
    }
  }
  print_mean("best", type, "", &mean);
}

/* Invariant mode beside the default. */
static void run_invariant(wsgemm_type type) {
  const shape_list lists[] = {is_half(type) ? LIST(half_square) : LIST(square), is_half(type) ? LIST(half_skinny) : LIST(skinny)};
  candidate candidates[2] = {0};
  set_candidate(&candidates[0], "wsgemm by default", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  set_candidate(&candidates[1], "auto", "invariant", WSGEMM_POLICY_AUTO, 0, NULL);
  wsgemm_set_invariant(candidates[1].handle, 1);
  for (int l = 0; l < (n_given ? 1 : 2); l++) {
    const shape_list shapes = or_given(lists[l]);
    for (int i = 0; i < shapes.count; i++) {
      const shape *s = &shapes.first[i];
      char case_name[96], sizes[64];
      problem p = make_problem(type, WSGEMM_COL_MAJOR, s);
      measure(candidates, 2, &p);
      explained_kernel(&candidates[1], &p, candidates[1].label);
      snprintf(case_name, sizeof case_name, "%s %s", s->ops, sizes_of(s, sizes));
      report("invariant", case_name, &p, &candidates[1], &candidates[0], candidates[0].label);
      free_problem(&p);
    }
  }
  free_candidates(candidates, 2);
}

/* ---- The command line ------------------------------------------------------------------------ */

static const struct suite {
  const char *name, *types, *what;
  bool needs_cublas;
  void (*run)(wsgemm_type type);
} suites[] = {
    {"square", "sdczhb", "squares and a few other large products", true, run_square},
    {"random", "sdczhb", "shapes drawn at random from 16 to 8192: square, flat, small, ragged", true, run_random},
    {"calls", "sdczhb", "what a call costs its thread: alone, in chains of 1000, with a wait", true, run_calls},
    {"decode", "hb", "few tokens times weights, and flat shapes drawn at random", true, run_decode},
    {"skinny", "sdczhb", "few rows or few tiles", true, run_skinny},
    {"heat", "sdczhb", "m and n from 16 to 8192 at k = 4096", true, run_heat},
    {"odd", "hb", "nothing begins at whole 16 bytes", true, run_odd},
    {"demo", "sdczhb", "three squares; without cuBLAS the rates alone", false, run_demo},
    {"pedantic", "shb", "FP32 multiply-adds only", true, run_pedantic},
    {"sliced", "s", "squares up to 16384", true, run_sliced},
    {"spread", "s", "elements of all sizes from 2^-20 to 2^20", true, run_spread},
    {"packed", "sc", "B packed beforehand", true, run_packed},
    {"tf32", "s", "WSGEMM_MATH_TF32 beside cuBLAS's TF32", true, run_tf32},
    {"accuracy", "s", "errors (accuracy.h)", true, run_errors},
    {"rows", "sdczhb", "each kernel row that can run the product", true, run_rows},
    {"row_times", "sdczhb", "the same of products drawn at random, a line each, for fitting models", true, run_rows_at_random},
    {"best", "hb", "beside the fastest of cuBLASLt's proposals", true, run_beside_best},
    {"invariant", "sdczhb", "what invariant mode costs", true, run_invariant},
    {"policies", "sdczhb", "who works on what", true, run_policies},
    {"epilogue", "sdhb", "what bias, activation and so on cost", false, run_epilogue},
};
enum { N_SUITES = sizeof suites / sizeof suites[0] };

static void print_suites(FILE *f) {
  for (int i = 0; i < N_SUITES; i++) fprintf(f, "  %-10s %-7s %s\n", suites[i].name, suites[i].types, suites[i].what);
}

/* A number of the list "a,b" is the suite; NULL: the list is at its end. False: there is no such
 * suite. */
static bool next_suite(const char **list, const struct suite **found) {
  const size_t length = strcspn(*list, ",");
  *found = NULL;
  if (length == 0) return **list == '\0';
  for (int i = 0; i < N_SUITES; i++)
    if (strlen(suites[i].name) == length && strncmp(suites[i].name, *list, length) == 0) *found = &suites[i];
  *list += length + ((*list)[length] == ',');
  return *found != NULL;
}

static bool suites_are_known(void) {
  const struct suite *s;
  const char *rest = options.suites;
  while (next_suite(&rest, &s))
    if (!s) return true;
  return false;
}

static bool parse_shapes(const char *text) {
  for (n_given = 0; n_given < MAX_GIVEN; n_given++) {
    shape *s = &given[n_given];
    long long m, n, k;
    int used = 0;
    if (sscanf(text, "%2[NT],%lld,%lld,%lld%n", given_ops[n_given], &m, &n, &k, &used) != 4 || !given_ops[n_given][1] || m < 1 ||
        n < 1 || k < 1)
      return false;
    *s = (shape){.ops = given_ops[n_given], .m = m, .n = n, .k = k};
    text += used;
    if (*text == '\0') return ++n_given;
    if (*text++ != ';') return false;
  }
  return false;
}

static bool parse(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *name = argv[i], *value = argv[i + 1];
    if (strcmp(name, "--suite") == 0)
      options.suites = value;
    else if (strcmp(name, "--types") == 0)
      options.types = value;
    else if (strcmp(name, "--shapes") == 0) {
      if (!parse_shapes(value)) return false;
    } else if (strcmp(name, "--json") == 0)
      options.json = value;
    else if (strcmp(name, "--rows") == 0)
      options.rows = value;
    else if (strcmp(name, "--commit") == 0)
      options.commit = value;
    else if (strcmp(name, "--scalars") == 0)
      options.has_device_scalars = strcmp(value, "device") == 0;
    else if (strcmp(name, "--workspace") == 0)
      bench.asked_workspace = strcmp(value, "asked") == 0;
    else if (strcmp(name, "--samples") == 0)
      bench.samples = atoi(value);
    else if (strcmp(name, "--seed") == 0)
      options.seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--distribution") == 0) {
      options.is_aligned = strcmp(value, "aligned") == 0;
      options.is_uniform = options.is_aligned || strcmp(value, "uniform") == 0;
      if (!options.is_uniform && strcmp(value, "classes") != 0) return false;
    } else if (strcmp(name, "--sides") == 0) {
      long long least, most;
      if (sscanf(value, "%lld,%lld", &least, &most) != 2 || least < 1 || most < least) return false;
      options.sides.least = least, options.sides.most = most;
    } else if (strcmp(name, "--depth") == 0) {
      long long least, most;
      if (sscanf(value, "%lld,%lld", &least, &most) != 2 || least < 1 || most < least) return false;
      options.sides.least_k = least, options.sides.most_k = most;
    } else if (strcmp(name, "--math") == 0) {
      for (options.class_idx = 0; strcmp(value, classes[options.class_idx].name) != 0;)
        if (++options.class_idx == N_CLASSES) return false;
    } else if (strcmp(name, "--count") == 0)
      options.n_random = atoi(value);
    else
      return false;
  }
  if (options.json && options.has_device_scalars) return false;
  return argc % 2 == 1 && bench.samples >= 1 && bench.samples <= 200 && options.n_random >= 1 && options.n_random <= MAX_RANDOM &&
         *options.types && strspn(options.types, letters) == strlen(options.types) && suites_are_known();
}

static bool open_device(void) {
  struct cudaDeviceProp properties;
  int n_devices = 0;
  if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) return false;
  GPU(cudaGetDeviceProperties(&properties, 0));
  snprintf(bench.device, sizeof bench.device, "%s", properties.name);
  GPU(cudaStreamCreateWithFlags(&bench.stream, cudaStreamNonBlocking));
  GPU(cudaEventCreate(&bench.before));
  GPU(cudaEventCreate(&bench.after));
  return true;
}

static void run_suites(wsgemm_type type) {
  const struct suite *s;
  for (const char *rest = options.suites; next_suite(&rest, &s) && s;) {
    if (!strchr(s->types, letters[type]))
      printf("%s: %cgemm is not run: the suite is for %s\n", s->name, letters[type], s->types);
    else if (s->needs_cublas && !has_cublas)
      printf("%s: %cgemm is not run: it needs cuBLAS\n", s->name, letters[type]);
    else
      s->run(type);
  }
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    print_suites(stdout);
    return 0;
  }
  if (!parse(argc, argv)) {
    fputs("usage: bench_gpu_gemm [--suite NAME[,NAME]] [--types sdczhb] [--shapes OPS,M,N,K[;OPS,M,N,K]] [--seed N] [--count N]\n"
          "                      [--distribution classes|uniform|aligned] [--sides LEAST,MOST] [--depth LEAST,MOST]\n"
          "                      [--math default|pedantic|tf32] [--scalars value|device]\n"
          "                      [--json FILE] [--commit ID] [--samples N] [--workspace own|asked] [--rows TEXT] "
          "[--list]\nsuites:\n",
          stderr);
    print_suites(stderr);
    return 2;
  }
  ws_bench_commit(options.commit, bench.commit);
  ws_bench_date(bench.date);
  if (!open_device()) {
    puts("skipped: no GPU");
    return 77;
  }
  if (options.has_device_scalars) use_device_scalars();
  if (options.json && !(bench.json = fopen(options.json, "a"))) {
    perror(options.json);
    return 1;
  }
  has_cublas = ws_bench_cublas_open(bench.stream);
  if (!has_cublas && strcmp(options.suites, "demo") != 0 && strcmp(options.suites, "epilogue") != 0) return 1;
  printf("%s, %s; TFLOP/s, L2 flushed, medians of %d\n", bench.device, has_cublas ? ws_bench_cublas_version() : "no cuBLAS",
         bench.samples);
  printf("%-9s %5s %-24s %-34s %8s %8s %7s\n", "suite", "", "case", "kernel or policy", "wsgemm", "cuBLAS", "speedup");
  for (const char *t = options.types; *t; t++) run_suites((wsgemm_type)(strchr(letters, *t) - letters));
  if (bench.json && (ferror(bench.json) | fclose(bench.json))) {
    fprintf(stderr, "bench_gpu_gemm: cannot write %s\n", options.json);
    return 1;
  }
  if (n_wrong) fprintf(stderr, "bench_gpu_gemm: %d results were wrong\n", n_wrong);
  return n_wrong > 0;
}
