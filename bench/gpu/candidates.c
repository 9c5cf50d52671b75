/* candidates.c - see candidates.h. */
#include "candidates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/cublas.h"
#include "bench/harness/cublaslt.h"
#include "bench/harness/flush_gpu.h"
#include "bench/harness/random.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"

gpu_bench bench = {.samples = 15};

/* Ones of both widths, then zeros: alpha and beta, real or complex. */
void use_device_scalars(void) {
  const struct {
    float s[4];
    double d[6];
  } scalars = {{1}, {1}};
  GPU(cudaMalloc((void **)&bench.device_scalars, sizeof scalars));
  GPU(cudaMemcpy((void *)bench.device_scalars, &scalars, sizeof scalars, cudaMemcpyHostToDevice));
}

static wsgemm_gemm_desc desc_of(const candidate *x, const problem *p) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.layout = p->layout, d.transa = p->op_a, d.transb = p->op_b;
  d.type_a = d.type_b = d.type_c = p->type, d.type_scalar = is_half(p->type) ? WSGEMM_F32 : p->type;
  d.m = p->m, d.n = p->n, d.k = p->k;
  if (is_wide(p->type))
    d.alpha.z = (wsgemm_cdouble){1, 0};
  else
    d.alpha.c = (wsgemm_cfloat){1, 0};
  if (bench.device_scalars) {
    const char *const at = (const char *)bench.device_scalars + (is_wide(p->type) ? 16 : 0);
    d.scalar_mode = WSGEMM_SCALAR_DEVICE, d.alpha.device = at, d.beta.device = at + 32;
  }
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

bool candidate_run(const candidate *x, const problem *p) {
  if (x->proposal) return ws_bench_cublaslt_gemm(x->proposal - 1, p->a, p->b, p->c, bench.stream);
  if (!x->handle)
    return ws_bench_cublas_gemm(p->type, p->op_a, p->op_b, p->m, p->n, p->k, p->a, p->lda, p->b, p->ldb, p->c, p->ldc);
  const wsgemm_gemm_desc d = desc_of(x, p);
  if (wsgemm_gemm(x->handle, &d) == WSGEMM_SUCCESS) return true;
  fprintf(stderr, "%s: %s\n", x->label, wsgemm_last_error());
  return false;
}

double candidate_time(const candidate *x, const problem *p) {
  float ms = 0;
  if (!ws_bench_flush_gpu(bench.stream)) exit(1);
  GPU(cudaEventRecord(bench.before, bench.stream));
  if (!candidate_run(x, p)) exit(1);
  GPU(cudaEventRecord(bench.after, bench.stream));
  GPU(cudaEventSynchronize(bench.after));
  GPU(cudaEventElapsedTime(&ms, bench.before, bench.after));
  return ms;
}

/* Largest difference of the two candidates' C over a sample of its columns, relative to sqrt(k). */
double difference(const candidate *x, const candidate *y, const problem *p) {
  const int64_t columns = p->n < 64 ? p->n : 64, n_parts = is_complex(p->type) ? 2 : 1;
  const int64_t elements = (columns - 1) * p->ldc + p->m;
  const size_t bytes = (size_t)elements * type_bytes(p->type);
  const char *from = (const char *)p->c + (size_t)((p->n - columns) * p->ldc) * type_bytes(p->type);
  void *host[2] = {malloc(bytes), malloc(bytes)};
  const candidate *candidates[2] = {x, y};
  double largest = 0;
  for (int i = 0; i < 2; i++) {
    GPU(cudaMemsetAsync(p->c, 0xff, (size_t)((p->n - 1) * p->ldc + p->m) * type_bytes(p->type), bench.stream));
    if (!candidate_run(candidates[i], p)) exit(1);
    GPU(cudaMemcpyAsync(host[i], from, bytes, cudaMemcpyDeviceToHost, bench.stream));
    GPU(cudaStreamSynchronize(bench.stream));
  }
  for (int64_t i = 0; i < elements * n_parts; i++) {
    if (i / n_parts % p->ldc >= p->m) continue;
    const double d = fabs(get_real(p->type, host[0], (size_t)i) - get_real(p->type, host[1], (size_t)i));
    if (!(d <= largest)) largest = d;
  }
  free(host[0]), free(host[1]);
  return largest / sqrt((double)p->k);
}

double flops_of(const problem *p) { return 2.0 * (double)p->m * (double)p->n * (double)p->k * (is_complex(p->type) ? 4 : 1); }

void report(const char *suite, const char *case_name, const problem *p, const candidate *ours, const candidate *theirs,
            const char *peer) {
  const double rate = flops_of(p) / ours->median * 1e-9, peer_rate = flops_of(p) / theirs->median * 1e-9;
  const char routine[] = {letters[p->type], 'g', 'e', 'm', 'm', 0};
  printf("%-9s %s %-*s %-34s %8.2f %8.2f %7.3f\n", suite, routine, p->case_class ? 72 : 24, case_name, ours->label, rate,
         peer_rate, rate / peer_rate);
  if (!bench.json) return;
  const ws_bench_result r = {.suite = suite,
                             .routine = routine,
                             .case_name = case_name,
                             .policy = ours->policy,
                             .device = bench.device,
                             .peer = peer,
                             .ours = rate,
                             .theirs = peer_rate,
                             .unit = "TFLOP/s",
                             .ratio = rate / peer_rate,
                             .commit = bench.commit,
                             .date = bench.date};
  ws_bench_result_begin(bench.json, &r);
  ws_bench_result_text(bench.json, "kernel", ours->label);
  if (p->case_class) ws_bench_result_text(bench.json, "class", p->case_class);
  ws_bench_result_number(bench.json, "samples", bench.samples);
  ws_bench_result_number(bench.json, "spread", ours->spread);
  ws_bench_result_end(bench.json);
}

/* One workspace for all, as they run one after the other. */
static void give_workspace(const candidate *x, const problem *p) {
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

void set_candidate(candidate *x, const char *label, const char *policy_name, wsgemm_policy policy, int quantum,
                   const char *kernel) {
  snprintf(x->label, sizeof x->label, "%s", label);
  x->policy = policy_name, x->kernel = kernel;
  if (wsgemm_create(&x->handle) || wsgemm_set_stream(x->handle, bench.stream) || wsgemm_set_policy(x->handle, policy) ||
      wsgemm_set_quantum(x->handle, quantum) || wsgemm_set_kernel(x->handle, kernel)) {
    fprintf(stderr, "%s: %s\n", label, wsgemm_last_error());
    exit(1);
  }
}

/* Which kernel the call takes. */
void explained_kernel(const candidate *x, const problem *p, char name[91]) {
  char text[1024];
  const wsgemm_gemm_desc d = desc_of(x, p);
  wsgemm_explain(x->handle, &d, text, sizeof text);
  const char *at = strstr(text, "kernel: ");
  name[0] = '\0';
  if (at) sscanf(at, "kernel: %90s", name);
}

/* Whether the candidate runs what it is called after: a kernel that cannot run the problem is
 * replaced by another. */
bool takes_kernel(const candidate *x, const problem *p) {
  char name[91];
  if (!x->handle || !x->kernel) return true;
  explained_kernel(x, p, name);
  return strcmp(name, x->kernel) == 0;
}

/* The order is drawn anew each time: what ran before leaves its mark (power). */
void measure(candidate *candidates, int n_candidates, const problem *p) {
  static uint64_t state = 815;
  int order[MAX_CANDIDATES];
  for (int i = 0; i < n_candidates && bench.asked_workspace; i++)
    if (candidates[i].handle) give_workspace(&candidates[i], p);
  for (int i = 0; i < n_candidates; i++) candidate_time(&candidates[i], p), candidate_time(&candidates[i], p), order[i] = i;
  for (int s = 0; s < bench.samples; s++) {
    ws_random_shuffle(&state, order, n_candidates);
    for (int i = 0; i < n_candidates; i++) candidates[order[i]].ms[s] = candidate_time(&candidates[order[i]], p);
  }
  for (int i = 0; i < n_candidates; i++) {
    candidates[i].median = ws_bench_median(candidates[i].ms, bench.samples);
    candidates[i].spread = ws_bench_spread(candidates[i].ms, bench.samples);
  }
}

static void *shifted(wsgemm_type type, void *matrix, int64_t elements) {
  return (char *)matrix + elements * (int64_t)type_bytes(type);
}

problem make_problem(wsgemm_type type, wsgemm_layout layout, const shape *s) {
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
  p.lda = length_a + s->ld_more + s->more_a, p.ldb = length_b + s->ld_more + s->more_b, p.ldc = length_c + s->ld_more + s->more_c;
  void *(*const draw)(wsgemm_type, int64_t) = s->is_spread ? spread_matrix : random_matrix;
  p.a = shifted(type, draw(type, p.m * p.k / length_a * p.lda + s->shift), s->shift);
  p.b = shifted(type, draw(type, p.k * p.n / length_b * p.ldb + s->shift), s->shift);
  p.c = shifted(type, random_matrix(type, p.m * p.n / length_c * p.ldc + s->shift), s->shift);
  return p;
}

void pack_b(const candidate *x, problem *p) {
  const wsgemm_gemm_desc d = desc_of(x, p);
  size_t bytes = 0;
  if (wsgemm_get_packed_size(x->handle, &d, WSGEMM_OPERAND_B, &bytes) == WSGEMM_SUCCESS && bytes > 0) {
    GPU(cudaMalloc(&p->packed_memory, bytes));
    if (wsgemm_prepack(x->handle, &d, WSGEMM_OPERAND_B, p->packed_memory, bytes, &p->packed_b) == WSGEMM_SUCCESS) return;
  }
  fprintf(stderr, "B is not packed: %s\n", wsgemm_last_error());
  exit(1);
}

void free_problem(problem *p) {
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

const char *sizes_of(const shape *s, char text[64]) {
  snprintf(text, 64, "%lldx%lldx%lld%s%s%s", (long long)s->m, (long long)s->n, (long long)s->k, s->ld_more ? " ld+1" : "",
           s->shift ? " +2 bytes" : "", s->is_spread ? " spread" : "");
  return text;
}

void free_candidates(candidate *candidates, int n_candidates) {
  for (int i = 0; i < n_candidates; i++)
    if (candidates[i].handle) wsgemm_destroy(candidates[i].handle);
}
