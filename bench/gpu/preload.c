/* preload.c - what the cuBLAS interposer takes, beside the real cuBLAS: random calls of each row of
 * src/cublas/wins.def but those of cuBLASLt and of batches by pointers (bench_gpu_batched has these), one
 * process, in turn, L2 flushed before every timing, medians of event timings. A row that loses to cuBLAS
 * anywhere does not belong into the table.
 *
 *   bench_gpu_preload [--library FILE] [--shapes N] [--seed N] [--samples N] [--json FILE] [--commit ID]
 *
 * A line a call and one a row: geometric mean and least ratio. Exit code 1: a call failed or its results
 * differ from cuBLAS's by more than twice the bound of a product in its precision; 77: no GPU. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/clock.h"
#include "bench/harness/flush_gpu.h"
#include "bench/harness/library.h"
#include "bench/harness/random.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "cublas/wins.h"
#include "cublas_level3.h"
#include "operands.h"

enum {
  OURS,
  THEIRS,
  N_SIDES,
  MOST_SAMPLES = 64,
  MOST_SIZE = 6000,
  R_32F = 0,
  R_16F = 2,
  C_32F = 4,
  R_16BF = 14,
  COMPUTE_32F = 68
};

static const char *const routines[] = {"gemm", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "trsm"};

typedef int gemm_fn(void *, int, int, int64_t, int64_t, int64_t, const void *, const void *, int, int64_t, const void *, int,
                    int64_t, const void *, void *, int, int64_t, int, int);
static struct {
  void *library[N_SIDES], *handle;
  int (*set_math)(void *, int);
  cudaStream_t stream;
  int n_samples, n_shapes;
  uint64_t random;
  FILE *json; /* or NULL */
  char device[256], peer[64], commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
} bench = {.n_samples = 7, .n_shapes = 12, .random = 1};

/* A call as cuBLAS has it: ops, sides and triangles are its numbers. */
typedef struct product {
  const ws_cublas_win *row;
  int transa, transb, side, uplo;
  int64_t m, n, k, lda, ldb, ldc;
  void *a, *b, *c[N_SIDES];
  size_t bytes; /* of C */
} product;

static int run(const product *p, int which) {
  static const float one[2] = {1, 0}, zero[2] = {0, 0};
  static const char upper[] = "SDCZ";
  static const int types[] = {R_32F, 1, C_32F, 5, R_16F, R_16BF};
  char name[64] = "cublasGemmEx_64";
  const int type = types[p->row->type];
  if (p->row->routine != WSGEMM_GEMM)
    snprintf(name, sizeof name, "cublas%c%s_v2_64", upper[p->row->type], routines[p->row->routine]);
  void *f = dlsym(bench.library[which], name), *const h = bench.handle, *const c = p->c[which];
  if (!f) return -1;
#define AS(type) (*(type **)(void *)&f)
  switch (p->row->routine) {
  case WSGEMM_SYMM:
  case WSGEMM_HEMM:
    return AS(symm_fn)(h, p->side, p->uplo, p->m, p->n, one, p->a, p->lda, p->b, p->ldb, zero, c, p->ldc);
  case WSGEMM_SYRK:
  case WSGEMM_HERK:
    return AS(syrk_fn)(h, p->uplo, p->transa, p->n, p->k, one, p->a, p->lda, zero, c, p->ldc);
  case WSGEMM_SYR2K:
    return AS(syr2k_fn)(h, p->uplo, p->transa, p->n, p->k, one, p->a, p->lda, p->b, p->ldb, zero, c, p->ldc);
  case WSGEMM_TRMM:
    return AS(trmm_fn)(h, p->side, p->uplo, p->transa, 0, p->m, p->n, one, p->a, p->lda, p->b, p->ldb, c, p->ldc);
  case WSGEMM_TRSM:
    return AS(trsm_fn)(h, p->side, p->uplo, p->transa, 0, p->m, p->n, one, p->a, p->lda, c, p->ldc);
  default:
    return AS(gemm_fn)(h, p->transa, p->transb, p->m, p->n, p->k, one, p->a, type, p->lda, p->b, type, p->ldb, zero, c, type,
                       p->ldc, COMPUTE_32F, -1);
  }
#undef AS
}

/* Half of the lds are multiples of 128 bytes, unless the row wants odd ones. */
static int64_t draw_ld(const ws_cublas_win *row, int64_t rows) {
  const int64_t multiple = 128 / (int64_t)type_bytes(row->type);
  if (row->layout == ODD) return (rows | 1) + 2 * (int64_t)ws_random_below(&bench.random, 20);
  return ws_random_below(&bench.random, 2) ? (rows + multiple - 1) / multiple * multiple
                                           : rows + (int64_t)ws_random_below(&bench.random, 60);
}

static product draw(const ws_cublas_win *row) {
  product p = {.row = row};
  const bool has_triangle =
      row->routine == WSGEMM_SYMM || row->routine == WSGEMM_HEMM || row->routine == WSGEMM_TRMM || row->routine == WSGEMM_TRSM;
  const bool is_rank = row->routine >= WSGEMM_SYRK && row->routine <= WSGEMM_HER2K, is_her = row->routine == WSGEMM_HERK;
  do {
    p.m = ws_random_size(&bench.random, row->least_mn, MOST_SIZE), p.n = ws_random_size(&bench.random, row->least_mn, MOST_SIZE);
    p.k = ws_random_size(&bench.random, row->least_k, MOST_SIZE);
    p.side = (int)ws_random_below(&bench.random, 2), p.uplo = (int)ws_random_below(&bench.random, 2);
    p.transa = (int)ws_random_below(&bench.random, 2) * (is_her ? 2 : 1), p.transb = (int)ws_random_below(&bench.random, 2);
    if (is_rank) p.m = p.n;
    if (has_triangle) p.k = p.side == 0 ? p.m : p.n;
  } while ((double)p.m * (double)p.n * (double)p.k < row->least_products);
  const bool is_trans = !has_triangle && p.transa != 0;
  const int64_t rows_b = has_triangle ? p.m : is_rank ? (is_trans ? p.k : p.n) : p.transb ? p.n : p.k;
  const int64_t cols_b = has_triangle ? p.n : is_rank ? (is_trans ? p.n : p.k) : p.transb ? p.k : p.n;
  p.lda = draw_ld(row, is_trans || has_triangle ? p.k : p.m), p.ldb = draw_ld(row, rows_b), p.ldc = draw_ld(row, p.m);
  p.a = random_matrix(row->type, p.lda * (has_triangle || !is_trans ? p.k : p.m)), p.b = random_matrix(row->type, p.ldb * cols_b);
  p.bytes = type_bytes(row->type) * (size_t)(p.ldc * p.n);
  for (int w = 0; w < N_SIDES; w++) GPU(cudaMalloc(&p.c[w], p.bytes));
  return p;
}

/* trsm: a triangle with k on its diagonal, and right-hand sides in C. */
static void *draw_right_sides(const product *p) {
  const float diagonal[2] = {(float)p->k, 0};
  const size_t bytes = type_bytes(p->row->type);
  if (p->row->routine != WSGEMM_TRSM) return NULL;
  for (int64_t i = 0; i < p->k; i++)
    GPU(cudaMemcpy((char *)p->a + (size_t)(i * (p->lda + 1)) * bytes, diagonal, bytes, cudaMemcpyHostToDevice));
  return random_matrix(p->row->type, p->ldc * p->n);
}

static void begin_c(const product *p, int which, const void *given) {
  if (given) GPU(cudaMemcpyAsync(p->c[which], given, p->bytes, cudaMemcpyDeviceToDevice, bench.stream));
}

/* The largest difference of some columns over twice the bound with |A||B| = k. */
static double difference(const product *p) {
  const double unit = is_half(p->row->type) ? 0x1p-8 : p->row->math == WSGEMM_MATH_TF32 ? 0x1p-10 : 0x1p-24;
  const double bound = 2 * unit * (double)p->k * (is_half(p->row->type) ? 1 : (double)p->k) * (is_complex(p->row->type) ? 2 : 1);
  const size_t n_reals = (size_t)p->m * (is_complex(p->row->type) ? 2 : 1), column = type_bytes(p->row->type) * (size_t)p->ldc;
  void *const host[N_SIDES] = {malloc(column), malloc(column)};
  double worst = 0;
  const bool is_triangle = p->row->routine >= WSGEMM_SYRK && p->row->routine <= WSGEMM_HER2K;
  for (int64_t j = 0; j < p->n && host[0] && host[1]; j += p->n / 7) {
    for (int w = 0; w < N_SIDES; w++)
      GPU(cudaMemcpy(host[w], (char *)p->c[w] + (size_t)j * column, column, cudaMemcpyDeviceToHost));
    const size_t first = is_triangle && p->uplo == 0 ? n_reals * (size_t)j / (size_t)p->m : 0;
    const size_t last = is_triangle && p->uplo == 1 ? n_reals * (size_t)(j + 1) / (size_t)p->m : n_reals;
    for (size_t i = first; i < last; i++) {
      const double off = fabs(get_real(p->row->type, host[0], i) - get_real(p->row->type, host[1], i)) / bound;
      worst = off <= worst ? worst : off;
    }
  }
  free(host[0]), free(host[1]);
  return worst;
}

static void measure(const product *p, const void *given, double us[N_SIDES]) {
  static double times[N_SIDES][MOST_SAMPLES];
  cudaEvent_t begin, end;
  GPU(cudaEventCreate(&begin));
  GPU(cudaEventCreate(&end));
  for (int i = 0; i < bench.n_samples; i++)
    for (int w = 0; w < N_SIDES; w++) {
      float ms;
      begin_c(p, w, given);
      ws_bench_flush_gpu(bench.stream);
      GPU(cudaEventRecord(begin, bench.stream));
      run(p, w);
      GPU(cudaEventRecord(end, bench.stream));
      GPU(cudaEventSynchronize(end));
      GPU(cudaEventElapsedTime(&ms, begin, end));
      times[w][i] = ms * 1e3;
    }
  GPU(cudaEventDestroy(begin));
  GPU(cudaEventDestroy(end));
  for (int w = 0; w < N_SIDES; w++) us[w] = ws_bench_median(times[w], bench.n_samples);
}

static void report(const product *p, const double us[N_SIDES], double wrong) {
  char routine[16], case_name[128];
  snprintf(routine, sizeof routine, "%c%s", letters[p->row->type], routines[p->row->routine]);
  snprintf(case_name, sizeof case_name, "%c%c %lldx%lldx%lld side=%c uplo=%c ld=%lld,%lld,%lld%s", "NTC"[p->transa],
           "NTC"[p->transb], (long long)p -> m, (long long)p -> n, (long long)p -> k, "LR"[p->side], "LU"[p->uplo],
           (long long)p -> lda, (long long)p -> ldb, (long long)p -> ldc, p -> row -> math == WSGEMM_MATH_TF32 ? " tf32" : "");
  printf("%-6s %-60s %9.1f us  cuBLAS %9.1f us  ratio %5.2f  differs by %.2g\n", routine, case_name, us[OURS], us[THEIRS],
         us[THEIRS] / us[OURS], wrong);
  fflush(stdout);
  if (!bench.json) return;
  const ws_bench_result r = {"gpu_preload", routine,   case_name,  "auto", bench.device,
                             bench.peer,    us[OURS],  us[THEIRS], "us",   us[THEIRS] / us[OURS],
                             bench.commit,  bench.date};
  ws_bench_result_begin(bench.json, &r);
  ws_bench_result_number(bench.json, "samples", bench.n_samples);
  ws_bench_result_end(bench.json);
}

static bool run_row(const ws_cublas_win *row) {
  ws_bench_mean mean = {0};
  bool is_good = bench.set_math(bench.handle, row->math == WSGEMM_MATH_TF32 ? 3 : 0) == 0;
  for (int i = 0; i < bench.n_shapes && is_good; i++) {
    const product p = draw(row);
    void *const given = draw_right_sides(&p);
    double us[N_SIDES];
    for (int w = 0; w < N_SIDES; w++) {
      begin_c(&p, w, given);
      is_good &= run(&p, w) == 0;
    }
    GPU(cudaStreamSynchronize(bench.stream));
    const double wrong = is_good ? difference(&p) : 0;
    if (is_good) measure(&p, given, us), report(&p, us, wrong), ws_bench_mean_add(&mean, us[THEIRS] / us[OURS]);
    is_good &= wrong <= 1;
    GPU(cudaFree(p.a)), GPU(cudaFree(p.b)), GPU(cudaFree(p.c[0])), GPU(cudaFree(p.c[1])), GPU(cudaFree(given));
  }
  printf("%c%s%s: %d calls, geometric mean %.2f, least %.2f%s\n", letters[row->type], routines[row->routine],
         row->math == WSGEMM_MATH_TF32 ? " tf32" : "", mean.n, ws_bench_mean_of(&mean), mean.least, is_good ? "" : ": WRONG");
  return is_good;
}

static bool open_libraries(const char *interposer) {
  static const char *const files[] = {"libcublas.so.13", "libcublas.so.12"};
  int (*create)(void **), (*set_stream)(void *, cudaStream_t), (*property)(int, int *);
  bench.library[THEIRS] = ws_bench_load(files, 2);
  bench.library[OURS] = ws_bench_load(&interposer, 1);
  if (!bench.library[OURS] || !bench.library[THEIRS]) return printf("%s\n", dlerror()), false;
  if (!ws_bench_find(bench.library[OURS], "cublasCreate_v2", &create) ||
      !ws_bench_find(bench.library[OURS], "cublasSetStream_v2", &set_stream) ||
      !ws_bench_find(bench.library[THEIRS], "cublasSetMathMode", &bench.set_math) ||
      !ws_bench_find(bench.library[THEIRS], "cublasGetProperty", &property))
    return false;
  ws_bench_cuda_version("cuBLAS", property, bench.peer);
  return create(&bench.handle) == 0 && set_stream(bench.handle, bench.stream) == 0;
}

int main(int argc, char **argv) {
  const char *json = NULL, *commit = NULL, *library = WSGEMM_CUBLAS_FILE_NAME;
  bool is_good = true;
  struct cudaDeviceProp properties;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--library") == 0) library = argv[i + 1];
    if (strcmp(argv[i], "--shapes") == 0) bench.n_shapes = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--seed") == 0) bench.random = strtoull(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--samples") == 0) bench.n_samples = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--json") == 0) json = argv[i + 1];
    if (strcmp(argv[i], "--commit") == 0) commit = argv[i + 1];
  }
  if (bench.n_samples < 1 || bench.n_samples > MOST_SAMPLES) bench.n_samples = 7;
  if (cudaSetDevice(0) != cudaSuccess || cudaStreamCreate(&bench.stream) != cudaSuccess) return 77;
  GPU(cudaGetDeviceProperties(&properties, 0));
  snprintf(bench.device, sizeof bench.device, "%s", properties.name);
  ws_bench_commit(commit, bench.commit);
  ws_bench_date(bench.date);
  if (!open_libraries(library)) return 1;
  if (json && !(bench.json = fopen(json, "a"))) {
    perror(json);
    return 1;
  }
  for (size_t i = 0; i < sizeof wins / sizeof wins[0]; i++)
    if (wins[i].routine < WSGEMM_GEMM_EPILOGUE) is_good &= run_row(&wins[i]);
  if (bench.json && (ferror(bench.json) | fclose(bench.json))) {
    perror(json);
    return 1;
  }
  return is_good ? 0 : 1;
}
