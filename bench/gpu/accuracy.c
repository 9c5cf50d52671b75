/* accuracy.c - see accuracy.h. An error is |C - C^| / (|A| |B|) of an element, in units of u =
 * 2^-24; C and |A| |B| come from cuBLAS's dgemm, whose own errors are 2^29 times smaller. Bias:
 * the mean of (C^ - C) / (|A| |B|). */
#include "accuracy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/harness/cublas.h"
#include "candidates.h"

/* So large that cuBLAS sums all of k in one go, as for large products; drawn numbers are taken
 * again after so many. */
enum { SIDE = 1024, N_DRAWN = 1 << 20, MOST_K = 65536 };

static double between_0_and_1(void) { return (double)drawn_below((size_t)1 << 40) * 0x1p-40; }
static double uniform(int64_t k) { return (void)k, 2 * between_0_and_1() - 1; }
static double positive(int64_t k) { return (void)k, between_0_and_1(); }
static double lognormal(int64_t k) {
  (void)k;
  const double radius = sqrt(-2 * log(1 - between_0_and_1())), angle = 2 * 3.14159265358979324 * between_0_and_1();
  return exp(2 * radius * cos(angle));
}
static double spread_30(int64_t k) { return ldexp(uniform(k), (int)drawn_below(31)); }
/* Sizes within a thousandfold, log-uniform. */
static double thousandfold(int64_t k) { return uniform(k) * pow(1000, between_0_and_1()); }

static const struct {
  const char *name;
  double (*draw)(int64_t k);
} distributions[] = {{"uniform(-1,1)", uniform},
                     {"uniform(0,1)", positive},
                     {"lognormal(0,2)", lognormal},
                     {"exponents over 2^30", spread_30},
                     {"sizes over 1000", thousandfold}};

typedef struct errors {
  double mean, most, bias; /* in u */
} errors;

static errors errors_of(const float *c, const double *exact, const double *magnitudes) {
  errors e = {0, 0, 0};
  for (int i = 0; i < SIDE * SIDE; i++) {
    const double error = ((double)c[i] - exact[i]) / magnitudes[i] * 0x1p24;
    e.mean += fabs(error) / (SIDE * SIDE), e.bias += error / (SIDE * SIDE);
    if (!(fabs(error) <= e.most)) e.most = fabs(error);
  }
  return e;
}

static void write_line(const char *name, int64_t k, const char *what, double ours, double theirs) {
  char case_name[96];
  if (!bench.json) return;
  snprintf(case_name, sizeof case_name, "%s, k = %lld, %s", name, (long long)k, what);
  const ws_bench_result r = {.suite = "accuracy",
                             .routine = "sgemm",
                             .case_name = case_name,
                             .policy = "auto",
                             .device = bench.device,
                             .peer = ws_bench_cublas_version(),
                             .ours = ours,
                             .theirs = theirs,
                             .unit = "2^-24",
                             .ratio = fabs(theirs / ours),
                             .commit = bench.commit,
                             .date = bench.date};
  ws_bench_result_begin(bench.json, &r);
  ws_bench_result_end(bench.json);
}

/* A (SIDE x k, by columns) and B (k x SIDE) as floats, as doubles and as magnitudes. */
typedef struct operand {
  float *single;
  double *wide, *magnitudes;
} operand;

static operand draw_operand(double (*draw)(int64_t), int64_t k) {
  const size_t n = (size_t)(SIDE * k);
  float *single = malloc(n * sizeof *single);
  double *wide = malloc(n * sizeof *wide);
  operand op;
  if (!single || !wide) exit(1);
  for (size_t i = 0; i < n && i < N_DRAWN; i++) single[i] = (float)draw(k);
  for (size_t i = N_DRAWN; i < n; i++) single[i] = i % N_DRAWN ? single[i - N_DRAWN + 1] : single[drawn_below(N_DRAWN)];
  for (size_t i = 0; i < n; i++) wide[i] = (double)single[i];
  GPU(cudaMalloc((void **)&op.single, n * sizeof *single));
  GPU(cudaMalloc((void **)&op.wide, n * sizeof *wide));
  GPU(cudaMalloc((void **)&op.magnitudes, n * sizeof *wide));
  GPU(cudaMemcpy(op.single, single, n * sizeof *single, cudaMemcpyHostToDevice));
  GPU(cudaMemcpy(op.wide, wide, n * sizeof *wide, cudaMemcpyHostToDevice));
  for (size_t i = 0; i < n; i++) wide[i] = fabs(wide[i]);
  GPU(cudaMemcpy(op.magnitudes, wide, n * sizeof *wide, cudaMemcpyHostToDevice));
  free(single), free(wide);
  GPU(cudaDeviceSynchronize()); /* as in operands.c */
  return op;
}

static void free_operand(operand *op) {
  GPU(cudaFree(op->single));
  GPU(cudaFree(op->wide));
  GPU(cudaFree(op->magnitudes));
}

static void dgemm(int64_t k, const double *a, const double *b, double *c, double *host, cudaStream_t stream) {
  if (!ws_bench_cublas_gemm(WSGEMM_F64, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, k, a, SIDE, b, k, c, SIDE)) exit(1);
  GPU(cudaMemcpyAsync(host, c, sizeof *c * SIDE * SIDE, cudaMemcpyDeviceToHost, stream));
  GPU(cudaStreamSynchronize(stream));
}

void run_accuracy(void) {
  const cudaStream_t stream = bench.stream;
  static double exact[SIDE * SIDE], magnitudes[SIDE * SIDE];
  static float ours[SIDE * SIDE], theirs[SIDE * SIDE];
  wsgemm_handle *h;
  float *c;
  double *wide_c;
  GPU(cudaMalloc((void **)&c, sizeof ours));
  GPU(cudaMalloc((void **)&wide_c, sizeof exact));
  if (wsgemm_create(&h) || wsgemm_set_stream(h, stream)) exit(1);
  printf("|C - C^| / (|A| |B|) in 2^-24: mean, most, bias;  ours (slices), ours (default), cuBLAS\n");
  for (size_t d = 0; d < sizeof distributions / sizeof distributions[0]; d++)
    for (int64_t k = 16; k <= MOST_K; k *= 4) {
      operand a = draw_operand(distributions[d].draw, k), b = draw_operand(distributions[d].draw, k);
      errors by[3];
      dgemm(k, a.wide, b.wide, wide_c, exact, stream);
      dgemm(k, a.magnitudes, b.magnitudes, wide_c, magnitudes, stream);
      for (int way = 0; way < 2; way++) {
        if (wsgemm_set_kernel(h, way == 0 ? "sgemm_f16x3_128x64x64_c2_x1" : NULL) != WSGEMM_SUCCESS ||
            wsgemm_sgemm(h, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, k, 1, a.single, SIDE, b.single, k, 0,
                         c, SIDE) != WSGEMM_SUCCESS)
          exit(1);
        GPU(cudaMemcpyAsync(ours, c, sizeof ours, cudaMemcpyDeviceToHost, stream));
        GPU(cudaStreamSynchronize(stream));
        by[way] = errors_of(ours, exact, magnitudes);
      }
      if (!ws_bench_cublas_gemm(WSGEMM_F32, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, k, a.single, SIDE, b.single, k, c,
                                SIDE))
        exit(1);
      GPU(cudaMemcpyAsync(theirs, c, sizeof theirs, cudaMemcpyDeviceToHost, stream));
      GPU(cudaStreamSynchronize(stream));
      by[2] = errors_of(theirs, exact, magnitudes);
      printf("%-20s %6lld", distributions[d].name, (long long)k);
      for (int i = 0; i < 3; i++) printf("  | %8.3f %8.2f %+9.4f", by[i].mean, by[i].most, by[i].bias);
      printf("\n");
      write_line(distributions[d].name, k, "mean", by[0].mean, by[2].mean);
      write_line(distributions[d].name, k, "most", by[0].most, by[2].most);
      write_line(distributions[d].name, k, "bias", by[0].bias, by[2].bias);
      free_operand(&a), free_operand(&b);
    }
  wsgemm_destroy(h);
  GPU(cudaFree(c));
  GPU(cudaFree(wide_c));
}
