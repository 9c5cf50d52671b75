/* level3.c - Level 3 on the GPU beside cuBLAS: one process, in turn, the same random data, L2 flushed
 * before every timing, medians of event timings; results compared.
 *
 *   bench_gpu_level3 [--routines symm,syrk,...] [--types sdcz] [--sizes N,N] [--columns N] [--samples N]
 *   [--json FILE] [--commit ID] [--kernel ROW]
 *
 * Squares; symm, trmm and trsm: n right-hand sides (or --columns), on the left, lower, not transposed.
 * --kernel: this row of ours, where it can run. A line a case, with the time that a call takes before it
 * returns: both rates in TFLOP/s (complex: 4 times as many), the ratio, and the largest difference in units of
 * eps times the largest element. Exit code 1: a difference is too large, or there is no cuBLAS; 77: no
 * GPU. */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/harness/clock.h"
#include "bench/harness/flush_gpu.h"
#include "bench/harness/library.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "cublas_level3.h"
#include "operands.h"

enum { MOST_SAMPLES = 64 };
static const char *const names[] = {"", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "trsm"};

static struct {
  void *library, *handle;
  cudaStream_t stream;
  wsgemm_handle *ours;
  int n_samples;
  int64_t columns; /* 0: n */
  FILE *json;      /* or NULL */
  char device[256], peer[64], commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
} bench = {.n_samples = 9};

/* n x n; B and C are of ours, or of cuBLAS's; `given` is what both begin with. */
typedef struct square {
  wsgemm_type type;
  wsgemm_routine routine;
  int64_t n, columns;
  void *a, *b, *given, *c[2];
  size_t bytes;
} square;

static bool run_peer(const square *s) {
  char name[64];
  void *f;
  const void *one = scalar_of(s->type, 1);
  static const double zero[2];
  snprintf(name, sizeof name, "cublas%c%s_v2_64", letters[s->type] - 'a' + 'A', names[s->routine]);
  f = dlsym(bench.library, name);
  if (!f) return false;
  const int64_t n = s->n;
  void *h = bench.handle, *c = s->c[1];
#define AS(type) (*(type **)(void *)&f)
  switch (s->routine) {
  case WSGEMM_SYMM:
  case WSGEMM_HEMM:
    return AS(symm_fn)(h, CUBLAS_LEFT, CUBLAS_LOWER, n, s->columns, one, s->a, n, s->b, n, zero, c, n) == 0;
  case WSGEMM_SYRK:
  case WSGEMM_HERK:
    return AS(syrk_fn)(h, CUBLAS_LOWER, CUBLAS_N, n, n, one, s->a, n, zero, c, n) == 0;
  case WSGEMM_SYR2K:
  case WSGEMM_HER2K:
    return AS(syr2k_fn)(h, CUBLAS_LOWER, CUBLAS_N, n, n, one, s->a, n, s->b, n, zero, c, n) == 0;
  case WSGEMM_TRMM: /* out of place, as cuBLAS has it: into B, which it takes, too */
    return AS(trmm_fn)(h, CUBLAS_LEFT, CUBLAS_LOWER, CUBLAS_N, CUBLAS_NON_UNIT, n, s->columns, one, s->a, n, c, n, c, n) == 0;
  case WSGEMM_TRSM:
    return AS(trsm_fn)(h, CUBLAS_LEFT, CUBLAS_LOWER, CUBLAS_N, CUBLAS_NON_UNIT, n, s->columns, one, s->a, n, c, n) == 0;
  default:
    return false;
  }
#undef AS
}

static bool run_ours(const square *s) {
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  const bool in_place = s->routine == WSGEMM_TRMM || s->routine == WSGEMM_TRSM;
  d.routine = s->routine, d.type = s->type, d.uplo = WSGEMM_LOWER, d.m = d.k = s->n, d.n = s->columns;
  memcpy(&d.alpha, scalar_of(s->type, 1), is_wide(s->type) ? 16 : 8);
  d.a = s->a, d.lda = d.ldb = s->n;
  d.b = in_place ? s->c[0] : s->b;
  if (!in_place) d.c = s->c[0], d.ldc = s->n;
  if (wsgemm_level3(bench.ours, &d) == WSGEMM_SUCCESS) return true;
  printf("%s\n", wsgemm_last_error());
  return false;
}

static bool run_one(const square *s, int which) { return which ? run_peer(s) : run_ours(s); }
static bool reset(const square *s, int which) {
  return cudaMemcpyAsync(s->c[which], s->given, s->bytes, cudaMemcpyDeviceToDevice, bench.stream) == cudaSuccess;
}

/* Of the lower triangle, in eps of the largest element. */
static double difference(const square *s) {
  const size_t n_reals = s->bytes / (is_wide(s->type) ? 8 : 4), per_column = n_reals / (size_t)s->columns;
  void *host[2];
  double most = 0, worst = 0;
  for (int w = 0; w < 2; w++) {
    host[w] = malloc(s->bytes);
    if (!host[w]) return NAN;
    GPU(cudaMemcpy(host[w], s->c[w], s->bytes, cudaMemcpyDeviceToHost));
  }
  for (size_t j = 0; j < (size_t)s->columns; j += 7)
    for (size_t i = j < (size_t)s->n ? j * per_column / (size_t)s->n : 0; i < per_column; i++) {
      const double x = get_real(s->type, host[0], j * per_column + i), y = get_real(s->type, host[1], j * per_column + i);
      most = fmax(most, fabs(y)), worst = fabs(x - y) <= worst ? worst : fabs(x - y);
    }
  free(host[0]), free(host[1]);
  return worst / most / (is_wide(s->type) ? 0x1p-53 : 0x1p-24);
}

static double flops_of(const square *s) {
  const double n = (double)s->n, all = 2 * n * n * (double)s->columns * (is_complex(s->type) ? 4 : 1);
  const bool is_half =
      s->routine == WSGEMM_SYRK || s->routine == WSGEMM_HERK || s->routine == WSGEMM_TRMM || s->routine == WSGEMM_TRSM;
  return is_half ? all / 2 : all;
}

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* us: of both; [2]: of our call on the host. */
static bool measure(const square *s, double us[3]) {
  static double times[2][MOST_SAMPLES], of_call[MOST_SAMPLES];
  cudaEvent_t begin, end;
  GPU(cudaEventCreate(&begin));
  GPU(cudaEventCreate(&end));
  bool is_good = true;
  for (int i = 0; i < bench.n_samples && is_good; i++)
    for (int w = 0; w < 2 && is_good; w++) {
      float ms;
      is_good = reset(s, w) && ws_bench_flush_gpu(bench.stream);
      GPU(cudaEventRecord(begin, bench.stream));
      const double begun = now_us();
      is_good = is_good && run_one(s, w);
      if (w == 0) of_call[i] = now_us() - begun;
      GPU(cudaEventRecord(end, bench.stream));
      GPU(cudaEventSynchronize(end));
      GPU(cudaEventElapsedTime(&ms, begin, end));
      times[w][i] = ms * 1e3;
    }
  GPU(cudaEventDestroy(begin));
  GPU(cudaEventDestroy(end));
  for (int w = 0; w < 2; w++) us[w] = ws_bench_median(times[w], bench.n_samples);
  us[2] = ws_bench_median(of_call, bench.n_samples);
  return is_good;
}

/* A well-conditioned triangle, for trsm. */
static void add_to_diagonal(const square *s) {
  const size_t bytes = type_bytes(s->type), n = (size_t)s->n;
  const double x = (double)n;
  const float narrow[2] = {(float)x, 0};
  const double wide[2] = {x, 0};
  unsigned char *host = malloc(bytes * n);
  if (!host) exit(1);
  for (size_t i = 0; i < n; i++) memcpy(host + i * bytes, is_wide(s->type) ? (const void *)wide : (const void *)narrow, bytes);
  GPU(cudaMemcpy2D(s->a, (n + 1) * bytes, host, bytes, bytes, n, cudaMemcpyHostToDevice));
  free(host);
}

/* A line of the result file (suite gpu_level3). */
static void file_result(const square *s, const double us[3]) {
  char routine[16], case_name[64];
  if (!bench.json) return;
  snprintf(routine, sizeof routine, "%c%s", letters[s->type], names[s->routine]);
  snprintf(case_name, sizeof case_name, s->columns == s->n ? "n=%lld" : "n=%lld columns=%lld", (long long)s->n,
           (long long)s->columns);
  const double flops = flops_of(s) * 1e-6;
  const ws_bench_result r = {.suite = "gpu_level3",
                             .routine = routine,
                             .case_name = case_name,
                             .policy = "auto",
                             .device = bench.device,
                             .peer = bench.peer,
                             .ours = flops / us[0],
                             .theirs = flops / us[1],
                             .unit = "TFLOP/s",
                             .ratio = us[1] / us[0],
                             .commit = bench.commit,
                             .date = bench.date};
  ws_bench_result_begin(bench.json, &r);
  ws_bench_result_number(bench.json, "samples", bench.n_samples);
  ws_bench_result_number(bench.json, "call_us", us[2]);
  ws_bench_result_end(bench.json);
}

static bool run_case(wsgemm_routine routine, wsgemm_type type, int64_t n, ws_bench_mean *mean) {
  square s = {.type = type, .routine = routine, .n = n};
  const bool has_columns = routine == WSGEMM_SYMM || routine == WSGEMM_HEMM || routine == WSGEMM_TRMM || routine == WSGEMM_TRSM;
  s.columns = bench.columns && has_columns ? bench.columns : n, s.bytes = type_bytes(type) * (size_t)(n * s.columns);
  s.a = random_matrix(type, n * n), s.b = random_matrix(type, n * s.columns), s.given = random_matrix(type, n * s.columns);
  for (int w = 0; w < 2; w++) GPU(cudaMalloc(&s.c[w], s.bytes));
  if (routine == WSGEMM_TRSM) add_to_diagonal(&s);
  double us[3], wrong = 0;
  bool is_good = reset(&s, 0) && reset(&s, 1) && run_one(&s, 0) && run_one(&s, 1);
  GPU(cudaStreamSynchronize(bench.stream));
  if (is_good) wrong = difference(&s);
  is_good = is_good && wrong <= 64 * sqrt((double)n) && measure(&s, us);
  if (is_good) {
    const double flops = flops_of(&s) * 1e-6;
    ws_bench_mean_add(mean, us[1] / us[0]);
    file_result(&s, us);
    printf("%c%-6s %6lld  %8.1f us  %7.1f TF   cuBLAS %7.1f TF   ratio %6.2f   call %6.1f us   differs by %.0f\n", letters[type],
           names[routine], (long long)n, us[0], flops / us[0], flops / us[1], us[1] / us[0], us[2], wrong);
  } else {
    printf("WRONG: %c%s %lld differs by %.3g\n", letters[type], names[routine], (long long)n, wrong);
  }
  fflush(stdout);
  GPU(cudaFree(s.a)), GPU(cudaFree(s.b)), GPU(cudaFree(s.given)), GPU(cudaFree(s.c[0])), GPU(cudaFree(s.c[1]));
  return is_good;
}

/* Names of device and peer for the result file. */
static void name_them(void) {
  int (*get_version)(void *, int *), version = 0;
  struct cudaDeviceProp properties;
  if (cudaGetDeviceProperties(&properties, 0) == cudaSuccess) snprintf(bench.device, sizeof bench.device, "%s", properties.name);
  if (ws_bench_find(bench.library, "cublasGetVersion_v2", &get_version)) get_version(bench.handle, &version);
  snprintf(bench.peer, sizeof bench.peer, "cuBLAS %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static bool open_peer(void) {
  static const char *const libraries[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so"};
  int (*create)(void **), (*set_stream)(void *, cudaStream_t);
  bench.library = ws_bench_load(libraries, 3);
  return bench.library && ws_bench_find(bench.library, "cublasCreate_v2", &create) &&
         ws_bench_find(bench.library, "cublasSetStream_v2", &set_stream) && create(&bench.handle) == 0 &&
         set_stream(bench.handle, bench.stream) == 0;
}

int main(int argc, char **argv) {
  const char *routines = "symm,syrk,syr2k,trmm,trsm,hemm,herk,her2k", *types = "sdcz", *sizes = "1024,2048,4096,8192";
  const char *json = NULL, *commit = NULL, *kernel = NULL;
  bool is_good = true;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--routines") == 0) routines = argv[i + 1];
    if (strcmp(argv[i], "--types") == 0) types = argv[i + 1];
    if (strcmp(argv[i], "--sizes") == 0) sizes = argv[i + 1];
    if (strcmp(argv[i], "--columns") == 0) bench.columns = atoll(argv[i + 1]);
    if (strcmp(argv[i], "--samples") == 0) bench.n_samples = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--json") == 0) json = argv[i + 1];
    if (strcmp(argv[i], "--commit") == 0) commit = argv[i + 1];
    if (strcmp(argv[i], "--kernel") == 0) kernel = argv[i + 1];
  }
  if (bench.n_samples < 1 || bench.n_samples > MOST_SAMPLES) bench.n_samples = 9;
  if (cudaSetDevice(0) != cudaSuccess || cudaStreamCreate(&bench.stream) != cudaSuccess) return 77;
  if (!open_peer() || wsgemm_create(&bench.ours) != WSGEMM_SUCCESS ||
      wsgemm_set_stream(bench.ours, bench.stream) != WSGEMM_SUCCESS) {
    puts("no cuBLAS");
    return 1;
  }
  if (kernel && wsgemm_set_kernel(bench.ours, kernel) != WSGEMM_SUCCESS) {
    puts(wsgemm_last_error());
    return 1;
  }
  ws_bench_commit(commit, bench.commit);
  ws_bench_date(bench.date);
  name_them();
  if (json && !(bench.json = fopen(json, "a"))) {
    perror(json);
    return 1;
  }
  for (int type = WSGEMM_F32; type <= WSGEMM_C64; type++)
    for (int r = WSGEMM_SYMM; r <= WSGEMM_TRSM; r++) {
      const bool is_asked = strstr(routines, names[r]) && strchr(types, letters[type]), is_her = names[r][0] == 'h';
      ws_bench_mean mean = {0};
      if (!is_asked || (is_her && !is_complex((wsgemm_type)type))) continue;
      for (const char *at = sizes; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        is_good &= run_case((wsgemm_routine)r, (wsgemm_type)type, atoll(at), &mean);
      if (mean.n > 0)
        printf("%c%-6s geometric mean %.2f, least %.2f\n", letters[type], names[r], ws_bench_mean_of(&mean), mean.least);
    }
  if (bench.json && (ferror(bench.json) | fclose(bench.json))) {
    perror(json);
    return 1;
  }
  return is_good ? 0 : 1;
}
