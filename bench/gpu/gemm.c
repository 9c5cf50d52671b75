/* gemm.c - GEMM on the GPU beside cuBLAS: one process, in turn, the same random data, L2 flushed before every timing, medians of event
 * timings; results compared. Suites:
 *
 *   square, skinny   the issues' shapes           odd         16-bit types: nothing begins at whole 16 bytes
 *   rows             each row that can run them   best        16-bit types: beside the best of cuBLASLt's proposals
 *   policies         who works on what            invariant   what invariant mode costs
 *   demo             three squares                epilogue    real types: what bias, activation and so on cost
 *   pedantic, tf32   s: the math modes            accuracy    s: errors (accuracy.h)
 *   sliced           s: squares up to 16384       spread      s: elements of all sizes from 2^-20 to 2^20
 *   packed           s, c: B packed beforehand                heat        m and n from 16 to 8192 at k = 4096
 *
 * of which demo and epilogue need no cuBLAS.
 *
 *   bench_gpu_gemm [--suite NAME[,NAME]] [--types sdczhb] [--shapes OPS,M,N,K[;OPS,M,N,K]] [--json FILE] [--commit ID] [--samples N]
 *                  [--workspace own|asked]
 *
 * --shapes: these instead of the suites' own. --workspace: the library's own (default), or of the size that it asks for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accuracy.h"
#include "cublas.h"
#include "cublaslt.h"
#include "operands.h"
#include "shapes.h"

enum { MAX_GIVEN = 64 };
static shape given[MAX_GIVEN];
static char given_ops[MAX_GIVEN][3];
static int n_given;
/* What was asked for with --shapes, if anything was. */
static shape_list or_given(shape_list own) { return n_given ? (shape_list){given, n_given} : own; }

typedef struct arm {
  char label[96];
  const char *policy, *kernel; /* kernel: the one that is forced, or NULL */
  wsgemm_handle *handle;       /* NULL: cuBLAS, or cuBLASLt */
  const epilogue *epilogue;    /* NULL: none */
  int candidate;               /* of cuBLASLt, from 1 on; 0: none */
  double ms[200], median;
} arm;
enum { MAX_ARMS = 24 };

static struct {
  const char *suites, *types, *json, *commit;
  int samples;
  bool asked_workspace, packs_b;
} options = {"square", "sdczhb", NULL, "", 15, false, false};

static cudaStream_t stream;
static cudaEvent_t before, after;
static char device_name[256];

typedef struct problem {
  wsgemm_type type;
  wsgemm_layout layout;
  wsgemm_op op_a, op_b;
  int64_t m, n, k, lda, ldb, ldc, shift;
  void *a, *b, *c, *bias, *residual, *sums; /* the last three: of the epilogue, or NULL */
  void *packed_memory;                      /* of packed_b, NULL: none */
  wsgemm_packed *packed_b;
} problem;

static wsgemm_gemm_desc desc_of(const arm *x, const problem *p) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.layout = p->layout, d.transa = p->op_a, d.transb = p->op_b;
  d.type_a = d.type_b = d.type_c = p->type, d.type_scalar = is_half(p->type) ? WSGEMM_F32 : p->type;
  d.m = p->m, d.n = p->n, d.k = p->k;
  if (is_wide(p->type))
    d.alpha.z = (wsgemm_cdouble){1, 0};
  else
    d.alpha.c = (wsgemm_cfloat){1, 0};
  d.a = p->a, d.lda = p->lda, d.b = p->b, d.ldb = p->ldb, d.c = p->c, d.ldc = p->ldc;
  d.packed_b = p->packed_b;
  if (x->epilogue) {
    d.epilogue = x->epilogue->activation, d.out_scale = x->epilogue->out_scale;
    d.bias_per = WSGEMM_BIAS_PER_COLUMN, d.type_bias = p->type, d.ld_residual = p->ldc;
    if (x->epilogue->has_bias) d.bias = p->bias;
    if (x->epilogue->has_residual) d.residual = p->residual;
    if (x->epilogue->has_sums) d.column_sums = p->sums;
  }
  return d;
}

static bool run(const arm *x, const problem *p) {
  if (x->candidate) return cublaslt_gemm(x->candidate - 1, p->a, p->b, p->c, stream);
  if (!x->handle) return cublas_gemm(p->type, p->op_a, p->op_b, p->m, p->n, p->k, p->a, p->lda, p->b, p->ldb, p->c, p->ldc);
  const wsgemm_gemm_desc d = desc_of(x, p);
  if (wsgemm_gemm(x->handle, &d) == WSGEMM_SUCCESS) return true;
  fprintf(stderr, "%s: %s\n", x->label, wsgemm_last_error());
  return false;
}

/* A matrix-vector product reads several times what the L2 holds: nothing of the operands is left there, nor dirty lines (as of a memset), whose
 * way to memory would be part of the next timing. It takes longer than the CPU needs to launch what is timed. */
static void flush_l2(void) {
  enum { M = 16384, K = 4096 }; /* 256 MiB of floats */
  static wsgemm_handle *handle;
  static float *matrix, *vectors;
  if (!handle) {
    GPU(cudaMalloc((void **)&matrix, (size_t)M * K * sizeof(float)));
    GPU(cudaMalloc((void **)&vectors, (M + K) * sizeof(float)));
    GPU(cudaMemsetAsync(matrix, 0, (size_t)M * K * sizeof(float), stream));
    GPU(cudaMemsetAsync(vectors, 0, (M + K) * sizeof(float), stream));
    if (wsgemm_create(&handle) == WSGEMM_SUCCESS) wsgemm_set_stream(handle, stream);
  }
  if (handle && wsgemm_sgemm(handle, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, 1, K, 1, matrix, K, vectors, 1, 0,
                             vectors + K, 1) == WSGEMM_SUCCESS)
    return;
  fprintf(stderr, "flush: %s\n", wsgemm_last_error());
  exit(1);
}

static double time_once(const arm *x, const problem *p) {
  float ms = 0;
  flush_l2();
  GPU(cudaEventRecord(before, stream));
  if (!run(x, p)) exit(1);
  GPU(cudaEventRecord(after, stream));
  GPU(cudaEventSynchronize(after));
  GPU(cudaEventElapsedTime(&ms, before, after));
  return ms;
}

static int compare_doubles(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

/* Largest difference of the two arms' C over a sample of its columns, relative to sqrt(k). */
static double difference(const arm *x, const arm *y, const problem *p) {
  const int64_t columns = p->n < 64 ? p->n : 64, n_parts = is_complex(p->type) ? 2 : 1;
  const int64_t elements = (columns - 1) * p->ldc + p->m;
  const size_t bytes = (size_t)elements * type_bytes(p->type);
  const char *from = (const char *)p->c + (size_t)((p->n - columns) * p->ldc) * type_bytes(p->type);
  void *host[2] = {malloc(bytes), malloc(bytes)};
  const arm *arms[2] = {x, y};
  double largest = 0;
  for (int i = 0; i < 2; i++) {
    GPU(cudaMemsetAsync(p->c, 0xff, (size_t)((p->n - 1) * p->ldc + p->m) * type_bytes(p->type), stream));
    if (!run(arms[i], p)) exit(1);
    GPU(cudaMemcpyAsync(host[i], from, bytes, cudaMemcpyDeviceToHost, stream));
    GPU(cudaStreamSynchronize(stream));
  }
  for (int64_t i = 0; i < elements * n_parts; i++) {
    if (i / n_parts % p->ldc >= p->m) continue;
    const double d = fabs(get_real(p->type, host[0], (size_t)i) - get_real(p->type, host[1], (size_t)i));
    if (!(d <= largest)) largest = d;
  }
  free(host[0]), free(host[1]);
  return largest / sqrt((double)p->k);
}

static void report(const char *suite, const char *case_name, const problem *p, const arm *ours, const arm *theirs,
                   const char *peer) {
  const double work = 2.0 * (double)p->m * (double)p->n * (double)p->k * (is_complex(p->type) ? 4 : 1);
  const double a = work / ours->median * 1e-9, b = work / theirs->median * 1e-9;
  char date[16];
  const time_t now = time(NULL);
  strftime(date, sizeof date, "%Y-%m-%d", gmtime(&now));
  printf("%-9s %cgemm %-24s %-34s %8.2f %8.2f %7.3f\n", suite, letters[p->type], case_name, ours->label, a, b, a / b);
  if (!options.json) return;
  FILE *f = fopen(options.json, "a");
  if (!f) return;
  fprintf(
      f,
      "{\"suite\": \"%s\", \"routine\": \"%cgemm\", \"case\": \"%s\", \"policy\": \"%s\", \"kernel\": \"%s\", \"device\": "
      "\"%s\", "
      "\"peer\": \"%s\", \"ours\": %.4f, \"theirs\": %.4f, \"unit\": \"TFLOP/s\", \"ratio\": %.4f, \"commit\": \"%s\", \"date\": "
      "\"%s\"}\n",
      suite, letters[p->type], case_name, ours->policy, ours->label, device_name, peer, a, b, a / b, options.commit, date);
  fclose(f);
}

/* One workspace for all, as they run one after the other. */
static void give_workspace(const arm *x, const problem *p) {
  static void *workspace;
  static size_t given_bytes;
  const wsgemm_gemm_desc d = desc_of(x, p);
  size_t bytes = 0;
  if (wsgemm_get_workspace_size(x->handle, &d, &bytes) != WSGEMM_SUCCESS) exit(1);
  if (bytes > given_bytes) {
    GPU(cudaFree(workspace));
    GPU(cudaMalloc(&workspace, bytes));
    given_bytes = bytes;
  }
  if (workspace && wsgemm_set_workspace(x->handle, workspace, given_bytes) != WSGEMM_SUCCESS) exit(1);
}

static void set_arm(arm *x, const char *label, const char *policy_name, wsgemm_policy policy, int quantum, const char *kernel) {
  snprintf(x->label, sizeof x->label, "%s", label);
  x->policy = policy_name, x->kernel = kernel;
  if (wsgemm_create(&x->handle) || wsgemm_set_stream(x->handle, stream) || wsgemm_set_policy(x->handle, policy) ||
      wsgemm_set_quantum(x->handle, quantum) || wsgemm_set_kernel(x->handle, kernel)) {
    fprintf(stderr, "%s: %s\n", label, wsgemm_last_error());
    exit(1);
  }
}

/* Which kernel the call takes. */
static void explained_kernel(const arm *x, const problem *p, char name[91]) {
  char text[1024];
  const wsgemm_gemm_desc d = desc_of(x, p);
  wsgemm_explain(x->handle, &d, text, sizeof text);
  const char *at = strstr(text, "kernel: ");
  name[0] = '\0';
  if (at) sscanf(at, "kernel: %90s", name);
}

/* Whether the arm runs what it is called after: a kernel that cannot run the problem is replaced by another. */
static bool takes_kernel(const arm *x, const problem *p) {
  char name[91];
  if (!x->handle || !x->kernel) return true;
  explained_kernel(x, p, name);
  return strcmp(name, x->kernel) == 0;
}

/* All arms in turn, the order drawn anew each time: what ran before leaves its mark (power). Arm 0 is the one the others are compared
 * with. */
static void measure(arm *arms, int n_arms, const problem *p) {
  int order[MAX_ARMS];
  for (int i = 0; i < n_arms && options.asked_workspace; i++)
    if (arms[i].handle) give_workspace(&arms[i], p);
  for (int i = 0; i < n_arms; i++) time_once(&arms[i], p), time_once(&arms[i], p), order[i] = i;
  for (int s = 0; s < options.samples; s++)
    for (int left = n_arms; left > 0; left--) {
      const size_t drawn = drawn_below((size_t)left);
      arm *x = &arms[order[drawn]];
      order[drawn] = order[left - 1], order[left - 1] = (int)(x - arms);
      x->ms[s] = time_once(x, p);
    }
  for (int i = 0; i < n_arms; i++) {
    qsort(arms[i].ms, (size_t)options.samples, sizeof arms[i].ms[0], compare_doubles);
    arms[i].median = arms[i].ms[options.samples / 2];
  }
}

static void *shifted(wsgemm_type type, void *matrix, int64_t elements) {
  return (char *)matrix + elements * (int64_t)type_bytes(type);
}

static problem make_problem(wsgemm_type type, wsgemm_layout layout, const shape *s) {
  const bool by_columns = layout == WSGEMM_COL_MAJOR, trans_a = s->ops[0] != 'N', trans_b = s->ops[1] != 'N';
  problem p = {.type = type,
               .layout = layout,
               .op_a = trans_a ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
               .op_b = trans_b ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
               .m = s->m,
               .n = s->n,
               .k = s->k,
               .shift = s->shift};
  const int64_t length_a = trans_a == by_columns ? p.k : p.m, length_b = trans_b == by_columns ? p.n : p.k,
                length_c = by_columns ? p.m : p.n;
  p.lda = length_a + s->ld_more, p.ldb = length_b + s->ld_more, p.ldc = length_c + s->ld_more;
  void *(*const draw)(wsgemm_type, int64_t) = s->is_spread ? spread_matrix : random_matrix;
  p.a = shifted(type, draw(type, p.m * p.k / length_a * p.lda + s->shift), s->shift);
  p.b = shifted(type, draw(type, p.k * p.n / length_b * p.ldb + s->shift), s->shift);
  p.c = shifted(type, random_matrix(type, p.m * p.n / length_c * p.ldc + s->shift), s->shift);
  return p;
}

static void pack_b(const arm *x, problem *p) {
  const wsgemm_gemm_desc d = desc_of(x, p);
  size_t bytes = 0;
  if (wsgemm_get_packed_size(x->handle, &d, WSGEMM_OPERAND_B, &bytes) == WSGEMM_SUCCESS && bytes > 0) {
    GPU(cudaMalloc(&p->packed_memory, bytes));
    if (wsgemm_prepack(x->handle, &d, WSGEMM_OPERAND_B, p->packed_memory, bytes, &p->packed_b) == WSGEMM_SUCCESS) return;
  }
  fprintf(stderr, "B is not packed: %s\n", wsgemm_last_error());
  exit(1);
}

static void free_problem(problem *p) {
  wsgemm_packed_destroy(p->packed_b);
  void *const parts[] = {shifted(p->type, p->a, -p->shift),
                         shifted(p->type, p->b, -p->shift),
                         shifted(p->type, p->c, -p->shift),
                         p->bias,
                         p->residual,
                         p->sums,
                         p->packed_memory};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) GPU(cudaFree(parts[i]));
}

static const char *sizes_of(const shape *s, char text[64]) {
  snprintf(text, 64, "%lldx%lldx%lld%s%s%s", (long long)s->m, (long long)s->n, (long long)s->k, s->ld_more ? " ld+1" : "",
           s->shift ? " +2 bytes" : "", s->is_spread ? " spread" : "");
  return text;
}

static void free_arms(arm *arms, int n_arms) {
  for (int i = 0; i < n_arms; i++)
    if (arms[i].handle) wsgemm_destroy(arms[i].handle);
}

static double beside_cublas(const char *suite, wsgemm_type type, const shape *s, arm *arms, int n_arms) {
  char case_name[96], sizes[64];
  double last = 0;
  problem p = make_problem(type, WSGEMM_COL_MAJOR, s);
  arm used[MAX_ARMS];
  const int n_given_arms = n_arms;
  for (int i = n_arms = 0; i < n_given_arms; i++)
    if (takes_kernel(&arms[i], &p)) used[n_arms++] = arms[i];
  arms = used;
  snprintf(case_name, sizeof case_name, "%s %s", s->ops, sizes_of(s, sizes));
  /* Orders of summation differ, and 16-bit results are rounded; a wrong element is far off. */
  const double unit = is_wide(type)                ? 0x1p-53
                      : strcmp(suite, "tf32") == 0 ? 0x1p-18
                      : type == WSGEMM_F16         ? 0x1p-18
                      : type == WSGEMM_BF16        ? 0x1p-15
                                                   : 0x1p-24;
  if (options.packs_b) pack_b(&arms[1], &p);
  const double tolerance = unit * 512 * (s->is_spread ? ldexp(1, SPREAD_EXPONENTS) : 1);
  for (int i = 1; i < n_arms; i++) {
    const double d = difference(&arms[0], &arms[i], &p);
    if (!(d <= tolerance)) printf("WRONG: %s %s differs from cuBLAS by %.3g sqrt(k)\n", case_name, arms[i].label, d);
  }
  measure(arms, n_arms, &p);
  for (int i = 1; i < n_arms; i++) {
    if (strcmp(arms[i].label, "auto") == 0) explained_kernel(&arms[i], &p, arms[i].label);
    report(suite, case_name, &p, &arms[i], &arms[0], cublas_version());
    last = arms[0].median / arms[i].median;
  }
  free_problem(&p);
  return last;
}

static void run_in_class(const char *suite, wsgemm_type type, shape_list shapes, wsgemm_math math) {
  arm arms[2] = {{.label = "cuBLAS", .policy = "none"}};
  double product = 1, least = 1e9;
  set_arm(&arms[1], "auto", options.asked_workspace ? "auto, workspace as asked" : "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  if (wsgemm_set_math(arms[1].handle, math) != WSGEMM_SUCCESS) exit(1);
  shapes = or_given(shapes);
  for (int i = 0; i < shapes.count; i++) {
    const double ratio = beside_cublas(suite, type, &shapes.first[i], arms, 2);
    product *= pow(ratio, 1.0 / shapes.count);
    if (ratio < least) least = ratio;
  }
  printf("%s %cgemm: geometric mean %.3f, least %.3f\n", suite, letters[type], product, least);
  free_arms(arms, 2);
}

static void run_against_cublas(const char *suite, wsgemm_type type, shape_list shapes) {
  run_in_class(suite, type, shapes, WSGEMM_MATH_DEFAULT);
}

/* The shapes for a heat map over m and n. */
static void run_heat(wsgemm_type type) {
  enum { LEAST = 16, MOST = 8192, K = 4096, N_SIZES = 10 };
  static shape shapes[N_SIZES * N_SIZES];
  int count = 0;
  for (int64_t m = LEAST; m <= MOST; m *= 2)
    for (int64_t n = LEAST; n <= MOST; n *= 2) shapes[count++] = (shape)SHAPE("NN", m, n, K);
  run_against_cublas("heat", type, (shape_list){shapes, count});
}

static void run_packed(wsgemm_type type) {
  options.packs_b = true;
  run_in_class("packed", type, LIST(packed), WSGEMM_MATH_DEFAULT);
  options.packs_b = false;
}

/* Beside cuBLAS in its mode of that name; what both round away differs. */
static void run_tf32(void) {
  cublas_set_tf32(true);
  run_in_class("tf32", WSGEMM_F32, LIST(square), WSGEMM_MATH_TF32);
  cublas_set_tf32(false);
}

/* Where there is no cuBLAS. */
static void run_alone(const char *suite, wsgemm_type type, shape_list shapes) {
  arm own = {.policy = "auto"};
  set_arm(&own, "auto", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  shapes = or_given(shapes);
  for (int i = 0; i < shapes.count; i++) {
    problem p = make_problem(type, WSGEMM_COL_MAJOR, &shapes.first[i]);
    measure(&own, 1, &p);
    explained_kernel(&own, &p, own.label);
    const double work = 2.0 * (double)p.m * (double)p.n * (double)p.k * (is_complex(type) ? 4 : 1);
    printf("%-9s %cgemm %s %-21lld %-34s %8.2f %8s %7s\n", suite, letters[type], shapes.first[i].ops, (long long)p.m, own.label,
           work / own.median * 1e-9, "-", "-");
    free_problem(&p);
  }
  free_arms(&own, 1);
}

static void run_rows(wsgemm_type type) {
  arm arms[MAX_ARMS] = {{.label = "cuBLAS", .policy = "none"}};
  int n_arms = 1;
  for (int r = 0; r < wsgemm_kernel_count() && n_arms < MAX_ARMS; r++) {
    const char *name = wsgemm_kernel_name(r);
    if (strcmp(wsgemm_kernel_backend(r), "cuda") != 0 || name[0] != letters[type]) continue;
    set_arm(&arms[n_arms++], name, "auto", WSGEMM_POLICY_AUTO, 0, name);
  }
  const shape_list shapes = or_given(is_half(type) ? LIST(half_square) : LIST(square));
  for (int i = 0; i < shapes.count; i++) beside_cublas("rows", type, &shapes.first[i], arms, n_arms);
  free_arms(arms, n_arms);
}

static void run_policies(wsgemm_type type) {
  arm arms[6] = {{.label = "cuBLAS", .policy = "none"}};
  set_arm(&arms[1], "fixed_work", "fixed_work", WSGEMM_POLICY_FIXED_WORK, 0, NULL);
  set_arm(&arms[2], "fixed_blocks", "fixed_blocks", WSGEMM_POLICY_FIXED_BLOCKS, 0, NULL);
  set_arm(&arms[3], "steal", "steal", WSGEMM_POLICY_STEAL, 0, NULL);
  set_arm(&arms[4], "steal quantum 1", "steal quantum 1", WSGEMM_POLICY_STEAL, 1, NULL);
  set_arm(&arms[5], "steal quantum 4", "steal quantum 4", WSGEMM_POLICY_STEAL, 4, NULL);
  const shape_list shapes = or_given(LIST(few));
  for (int i = 0; i < shapes.count; i++) beside_cublas("policies", type, &shapes.first[i], arms, 6);
  free_arms(arms, 6);
}

/* Each epilogue beside the same product without one. */
static void run_epilogues(wsgemm_type type) {
  arm arms[1 + N_EPILOGUES] = {0};
  set_arm(&arms[0], "wsgemm without epilogue", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  for (int e = 0; e < N_EPILOGUES; e++) {
    set_arm(&arms[1 + e], epilogues[e].name, "auto", WSGEMM_POLICY_AUTO, 0, NULL);
    arms[1 + e].epilogue = &epilogues[e];
  }
  const shape_list shapes = or_given(LIST(layers));
  for (int i = 0; i < shapes.count; i++) {
    const shape *s = &shapes.first[i];
    char case_name[96], sizes[64];
    problem p = make_problem(type, WSGEMM_ROW_MAJOR, s);
    p.bias = random_matrix(type, p.n), p.residual = random_matrix(type, p.m * p.n);
    p.sums = random_matrix(is_wide(type) ? WSGEMM_F64 : WSGEMM_F32, p.n);
    measure(arms, 1 + N_EPILOGUES, &p);
    for (int e = 0; e < N_EPILOGUES; e++) {
      snprintf(case_name, sizeof case_name, "%s %s", epilogues[e].name, sizes_of(s, sizes));
      explained_kernel(&arms[1 + e], &p, arms[1 + e].label);
      report("epilogue", case_name, &p, &arms[1 + e], &arms[0], arms[0].label);
    }
    free_problem(&p);
  }
  free_arms(arms, 1 + N_EPILOGUES);
}

/* Beside the fastest of the kernels that cuBLASLt's heuristic proposes, each measured. */
static void run_beside_best(wsgemm_type type) {
  const shape_list lists[] = {LIST(half_square), LIST(half_skinny)};
  double product = 1, least = 1e9;
  int n_cases = 0;
  for (int l = 0; l < (n_given ? 1 : 2); l++) {
    const shape_list shapes = or_given(lists[l]);
    for (int i = 0; i < shapes.count; i++, n_cases++) {
      arm arms[1 + CUBLASLT_MOST] = {0};
      const shape *s = &shapes.first[i];
      char case_name[96], sizes[64], peer[64];
      problem p = make_problem(type, WSGEMM_COL_MAJOR, s);
      const int n_candidates = cublaslt_propose(type, p.op_a, p.op_b, p.m, p.n, p.k, p.lda, p.ldb, p.ldc);
      if (n_candidates < 1) exit(1);
      set_arm(&arms[0], "auto", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
      for (int c = 1; c <= n_candidates; c++) arms[c].candidate = c;
      measure(arms, 1 + n_candidates, &p);
      int best = 1;
      for (int c = 2; c <= n_candidates; c++)
        if (arms[c].median < arms[best].median) best = c;
      explained_kernel(&arms[0], &p, arms[0].label);
      snprintf(case_name, sizeof case_name, "%s %s", s->ops, sizes_of(s, sizes));
      snprintf(peer, sizeof peer, "%s, cublasLt's best of %d", cublas_version(), n_candidates);
      report("best", case_name, &p, &arms[0], &arms[best], peer);
      const double ratio = arms[best].median / arms[0].median;
      product *= ratio, least = ratio < least ? ratio : least;
      free_arms(arms, 1);
      free_problem(&p);
    }
  }
  printf("best %cgemm: geometric mean %.3f, least %.3f\n", letters[type], pow(product, 1.0 / n_cases), least);
}

/* Invariant mode beside the default. */
static void run_invariant(wsgemm_type type) {
  const shape_list lists[] = {is_half(type) ? LIST(half_square) : LIST(square), is_half(type) ? LIST(half_skinny) : LIST(skinny)};
  arm arms[2] = {0};
  set_arm(&arms[0], "wsgemm by default", "auto", WSGEMM_POLICY_AUTO, 0, NULL);
  set_arm(&arms[1], "auto", "invariant", WSGEMM_POLICY_AUTO, 0, NULL);
  wsgemm_set_invariant(arms[1].handle, 1);
  for (int l = 0; l < (n_given ? 1 : 2); l++) {
    const shape_list shapes = or_given(lists[l]);
    for (int i = 0; i < shapes.count; i++) {
      const shape *s = &shapes.first[i];
      char case_name[96], sizes[64];
      problem p = make_problem(type, WSGEMM_COL_MAJOR, s);
      measure(arms, 2, &p);
      explained_kernel(&arms[1], &p, arms[1].label);
      snprintf(case_name, sizeof case_name, "%s %s", s->ops, sizes_of(s, sizes));
      report("invariant", case_name, &p, &arms[1], &arms[0], arms[0].label);
      free_problem(&p);
    }
  }
  free_arms(arms, 2);
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
    if (strcmp(argv[i], "--suite") == 0)
      options.suites = argv[i + 1];
    else if (strcmp(argv[i], "--types") == 0)
      options.types = argv[i + 1];
    else if (strcmp(argv[i], "--shapes") == 0) {
      if (!parse_shapes(argv[i + 1])) return false;
    } else if (strcmp(argv[i], "--json") == 0)
      options.json = argv[i + 1];
    else if (strcmp(argv[i], "--commit") == 0)
      options.commit = argv[i + 1];
    else if (strcmp(argv[i], "--workspace") == 0)
      options.asked_workspace = strcmp(argv[i + 1], "asked") == 0;
    else if (strcmp(argv[i], "--samples") == 0)
      options.samples = atoi(argv[i + 1]);
    else
      return false;
  }
  return argc % 2 == 1 && options.samples >= 1 && options.samples <= 200;
}

int main(int argc, char **argv) {
  struct cudaDeviceProp properties;
  int n_devices = 0;
  if (!parse(argc, argv)) {
    fputs("usage: bench_gpu_gemm [--suite "
          "square,skinny,heat,odd,best,rows,policies,invariant,demo,epilogue,pedantic,sliced,spread,packed,tf32,accuracy] "
          "[--types "
          "sdczhb] [--shapes OPS,M,N,K[;OPS,M,N,K]] [--json FILE] [--commit ID] [--samples N] [--workspace own|asked]\n",
          stderr);
    return 2;
  }
  if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
    puts("skipped: no GPU");
    return 77;
  }
  GPU(cudaGetDeviceProperties(&properties, 0));
  snprintf(device_name, sizeof device_name, "%s", properties.name);
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  GPU(cudaEventCreate(&before));
  GPU(cudaEventCreate(&after));
  const bool has_peer = cublas_open(stream);
  if (!has_peer && strcmp(options.suites, "demo") != 0 && strcmp(options.suites, "epilogue") != 0) return 1;
  printf("%s, %s; TFLOP/s, L2 flushed, medians of %d\n", device_name, has_peer ? cublas_version() : "no cuBLAS", options.samples);
  printf("%-9s %5s %-24s %-34s %8s %8s %7s\n", "suite", "", "case", "kernel or policy", "ours", "theirs", "ratio");
  for (const char *t = options.types; *t; t++) {
    const char *at = strchr(letters, *t);
    if (!at) continue;
    const wsgemm_type type = (wsgemm_type)(at - letters);
    if (strstr(options.suites, "square")) run_against_cublas("square", type, is_half(type) ? LIST(half_square) : LIST(square));
    if (strstr(options.suites, "skinny")) run_against_cublas("skinny", type, is_half(type) ? LIST(half_skinny) : LIST(skinny));
    if (strstr(options.suites, "heat")) run_heat(type);
    if (strstr(options.suites, "odd") && is_half(type)) run_against_cublas("odd", type, LIST(half_odd));
    if (strstr(options.suites, "demo"))
      has_peer ? run_against_cublas("demo", type, LIST(demo)) : run_alone("demo", type, LIST(demo));
    if (strstr(options.suites, "pedantic") && (type == WSGEMM_F32 || is_half(type)))
      run_in_class("pedantic", type, is_half(type) ? LIST(half_square) : LIST(square), WSGEMM_MATH_PEDANTIC);
    if (strstr(options.suites, "sliced") && type == WSGEMM_F32) run_against_cublas("sliced", type, LIST(sliced));
    if (strstr(options.suites, "spread") && type == WSGEMM_F32) run_against_cublas("spread", type, LIST(spread));
    if (strstr(options.suites, "packed") && !is_wide(type) && !is_half(type)) run_packed(type);
    if (strstr(options.suites, "tf32") && type == WSGEMM_F32) run_tf32();
    if (strstr(options.suites, "accuracy") && type == WSGEMM_F32) run_accuracy(stream, device_name, options.json, options.commit);
    if (strstr(options.suites, "rows")) run_rows(type);
    if (strstr(options.suites, "best") && is_half(type)) run_beside_best(type);
    if (strstr(options.suites, "invariant")) run_invariant(type);
    if (strstr(options.suites, "policies")) run_policies(type);
    if (strstr(options.suites, "epilogue") && !is_complex(type)) run_epilogues(type);
  }
  return 0;
}
