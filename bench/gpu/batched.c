/* batched.c - bench_gpu_batched: batches of small products beside cuBLAS's, by strides or by pointers, on the GPU:
 * squares, and sizes drawn at random. In turn, the L2 flushed before every timing, medians of event timings; results compared.
 *
 *   bench_gpu_batched [--pointers] [--tf32] [--types sdczhb] [--seed N] [--count N] [--most N] [--samples N] [--json FILE]
 *                     [--commit NAME]
 *
 * --count: how many random batches of each type: m, n, k from 1 to --most (64), log-uniform numbers of matrices, matrices one after
 * the other in memory, or (every third) lines that are longer. --pointers: the same products by arrays of pointers in device memory,
 * cuBLAS's gemmBatched beside wsgemm_gemm_grouped: larger squares, batches of as few as 8. --tf32: F32 and C32 in that mode. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/clock.h"
#include "bench/harness/cublas.h"
#include "bench/harness/flush_gpu.h"
#include "bench/harness/random.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "operands.h"

enum { MOST_SAMPLES = 101, MOST_BYTES = 512 << 20, PATTERN = 1 << 22, COMPARED = 1 << 16 };
static struct {
  const char *types, *json, *commit;
  uint64_t seed;
  int count, samples, most;
  bool by_pointers, in_tf32;
} options = {.types = letters, .seed = 1, .count = 20, .samples = 9, .most = 64};
static cudaStream_t stream;
static cudaEvent_t before, after;
static FILE *json;
static char device[256], commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
static int n_wrong;

typedef struct batch {
  wsgemm_type type;
  const char *ops;              /* "NN" */
  int64_t m, n, k, count, more; /* more: of every ld */
  bool is_drawn;                /* at random */
} batch;

static wsgemm_gemm_desc desc_of(const batch *x) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  const bool trans_a = x->ops[0] != 'N', trans_b = x->ops[1] != 'N';
  d.layout = WSGEMM_COL_MAJOR, d.transa = trans_a ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
  d.transb = trans_b ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
  d.type_a = d.type_b = d.type_c = x->type, d.type_scalar = is_half(x->type) ? WSGEMM_F32 : x->type;
  d.m = x->m, d.n = x->n, d.k = x->k, d.batch_count = x->count;
  d.lda = (trans_a ? x->k : x->m) + x->more, d.ldb = (trans_b ? x->n : x->k) + x->more, d.ldc = x->m + x->more;
  d.stride_a = d.lda * (trans_a ? x->m : x->k), d.stride_b = d.ldb * (trans_b ? x->k : x->n), d.stride_c = d.ldc * x->n;
  if (is_wide(x->type))
    d.alpha.d = 1;
  else
    d.alpha.s = 1;
  return d;
}

/* One pattern again and again. */
static void *repeated(wsgemm_type type, const void *pattern, int64_t elements) {
  char *to;
  const size_t bytes = (size_t)elements * type_bytes(type), all = PATTERN * type_bytes(type);
  GPU(cudaMalloc((void **)&to, bytes));
  for (size_t at = 0; at < bytes; at += all)
    GPU(cudaMemcpyAsync(to + at, pattern, bytes - at < all ? bytes - at : all, cudaMemcpyDeviceToDevice, stream));
  return to;
}

/* Where each product's A, B and C lie: arrays in device memory, of the batch that is measured. */
static const void **places[3];

static void set_places(const wsgemm_gemm_desc *d) {
  const void *const data[] = {d->a, d->b, d->c};
  const int64_t strides[] = {d->stride_a, d->stride_b, d->stride_c};
  const size_t bytes = (size_t)d->batch_count * sizeof(void *);
  const void **const host = malloc(bytes);
  if (!host) perror("places"), exit(1);
  for (int i = 0; i < 3; i++) {
    for (int64_t p = 0; p < d->batch_count; p++)
      host[p] = (const char *)data[i] + (size_t)(p * strides[i]) * type_bytes(d->type_a);
    GPU(cudaMalloc((void **)&places[i], bytes));
    GPU(cudaMemcpyAsync(places[i], host, bytes, cudaMemcpyHostToDevice, stream));
    GPU(cudaStreamSynchronize(stream));
  }
  free(host);
}

static bool run_pointers(const wsgemm_gemm_desc *d, wsgemm_handle *h) {
  wsgemm_grouped_desc g = WSGEMM_GROUPED_DESC_INIT;
  void *const *const c = (void *const *)places[2];
  if (!h)
    return ws_bench_cublas_gemm_pointers(d->type_a, d->transa, d->transb, d->m, d->n, d->k, places[0], d->lda, places[1], d->ldb,
                                         c, d->ldc, d->batch_count);
  g.layout = d->layout, g.transa = d->transa, g.transb = d->transb, g.math = d->math;
  g.type_a = d->type_a, g.type_b = d->type_b, g.type_c = d->type_c, g.type_scalar = d->type_scalar;
  g.m = d->m, g.n = d->n, g.k = d->k, g.group_count = d->batch_count;
  g.alpha = d->alpha, g.beta = d->beta;
  g.a_array = places[0], g.b_array = places[1], g.c_array = c;
  g.lda = d->lda, g.ldb = d->ldb, g.ldc = d->ldc;
  return wsgemm_gemm_grouped(h, &g) == WSGEMM_SUCCESS;
}

static bool run(const wsgemm_gemm_desc *d, wsgemm_handle *h) {
  if (options.by_pointers) return run_pointers(d, h);
  if (h) return wsgemm_gemm(h, d) == WSGEMM_SUCCESS;
  return ws_bench_cublas_gemm_batched(d->type_a, d->transa, d->transb, d->m, d->n, d->k, d->a, d->lda, d->stride_a, d->b, d->ldb,
                                      d->stride_b, d->c, d->ldc, d->stride_c, d->batch_count);
}

static double time_of(const wsgemm_gemm_desc *d, wsgemm_handle *h) {
  float ms;
  if (!ws_bench_flush_gpu(stream)) exit(1);
  GPU(cudaEventRecord(before, stream));
  if (!run(d, h)) fprintf(stderr, "failed: %s\n", wsgemm_last_error()), exit(1);
  GPU(cudaEventRecord(after, stream));
  GPU(cudaEventSynchronize(after));
  GPU(cudaEventElapsedTime(&ms, before, after));
  return ms * 1e3;
}

/* The largest difference of C's last elements. */
static double difference(const wsgemm_gemm_desc *d, wsgemm_handle *h) {
  const int64_t all = (d->batch_count - 1) * d->stride_c + (d->n - 1) * d->ldc + d->m, n = all < COMPARED ? all : COMPARED;
  const size_t bytes = (size_t)n * type_bytes(d->type_c), n_reals = (size_t)n * (is_complex(d->type_c) ? 2 : 1);
  wsgemm_handle *const who[] = {NULL, h};
  void *host[2];
  double largest = 0;
  for (int i = 0; i < 2; i++) {
    host[i] = malloc(bytes);
    GPU(cudaMemsetAsync(d->c, 0, (size_t)all * type_bytes(d->type_c), stream));
    if (!host[i] || !run(d, who[i])) fprintf(stderr, "failed: %s\n", wsgemm_last_error()), exit(1);
    GPU(cudaMemcpyAsync(host[i], (char *)d->c + (size_t)(all - n) * type_bytes(d->type_c), bytes, cudaMemcpyDeviceToHost,
                        stream));
    GPU(cudaStreamSynchronize(stream));
  }
  for (size_t i = 0; i < n_reals; i++) {
    const double x = fabs(get_real(d->type_c, host[0], i) - get_real(d->type_c, host[1], i));
    if (!(x <= largest)) largest = x;
  }
  free(host[0]), free(host[1]);
  return largest;
}

static void tell(const batch *x, const char *case_name, const char *kernel, double ours, double theirs, double spread) {
  const char routine[] = {letters[x->type], 'g', 'e', 'm', 'm', 0};
  const double bytes = (double)(x->m * x->k + x->k * x->n + x->m * x->n) * (double)x->count * (double)type_bytes(x->type);
  const char *const suite = options.by_pointers ? "pointer_batches" : "batched";
  printf("%s %s %-32s %-30s %8.1f us %8.1f us %7.3f %6.0f GB/s\n", suite, routine, case_name, kernel, ours, theirs, theirs / ours,
         bytes / ours * 1e-3);
  if (!json) return;
  const ws_bench_result r = {suite, routine, case_name, "auto",        device, ws_bench_cublas_version(),
                             ours,  theirs,  "us",      theirs / ours, commit, date};
  ws_bench_result_begin(json, &r);
  ws_bench_result_text(json, "class", x->is_drawn ? "random" : "squares");
  ws_bench_result_text(json, "kernel", kernel);
  ws_bench_result_number(json, "samples", options.samples);
  ws_bench_result_number(json, "spread", spread);
  ws_bench_result_end(json);
}

static void measure(const batch *x, const void *pattern, wsgemm_handle *h, ws_bench_mean *mean) {
  wsgemm_gemm_desc d = desc_of(x);
  double us[2][MOST_SAMPLES];
  char case_name[96], text[1024], kernel[91] = "";
  d.a = repeated(x->type, pattern, d.stride_a * x->count), d.b = repeated(x->type, pattern, d.stride_b * x->count);
  d.c = repeated(x->type, pattern, d.stride_c * x->count);
  if (options.by_pointers) set_places(&d);
  const bool is_tf32 = options.in_tf32 && (x->type == WSGEMM_F32 || x->type == WSGEMM_C32);
  if (is_tf32) d.math = WSGEMM_MATH_TF32;
  snprintf(case_name, sizeof case_name, "%s %lldx%lldx%lld%s x%lld%s", x->ops, (long long)x->m, (long long)x->n, (long long)x->k,
           x->more ? " ld+1" : "", (long long)x->count, is_tf32 ? " tf32" : "");
  const double unit = x->type == WSGEMM_F16    ? 0x1p-11
                      : x->type == WSGEMM_BF16 ? 0x1p-8
                      : is_wide(x->type)       ? 0x1p-46
                      : is_tf32                ? 0x1p-10
                                               : 0x1p-18;
  const double distance = difference(&d, h);
  if (!(distance <= 8 * unit * sqrt((double)x->k))) printf("WRONG: %s differs by %g\n", case_name, distance), n_wrong++;
  for (int s = -2; s < options.samples; s++)
    for (int i = 0; i < 2; i++) us[i][s < 0 ? 0 : s] = time_of(&d, i ? NULL : h);
  if (!options.by_pointers) wsgemm_explain(h, &d, text, sizeof text); /* of groups it says nothing */
  const char *at = options.by_pointers ? NULL : strstr(text, "kernel: ");
  if (at) sscanf(at, "kernel: %90s", kernel);
  const double ours = ws_bench_median(us[0], options.samples), theirs = ws_bench_median(us[1], options.samples);
  tell(x, case_name, kernel, ours, theirs, ws_bench_spread(us[0], options.samples));
  ws_bench_mean_add(mean, theirs / ours);
  GPU(cudaFree((void *)d.a)), GPU(cudaFree((void *)d.b)), GPU(cudaFree(d.c));
  for (int i = 0; i < 3 && options.by_pointers; i++) GPU(cudaFree(places[i]));
}

/* So many that all matrices have no more than MOST_BYTES. */
static int64_t most_that_fit(const batch *x, int64_t wanted) {
  const wsgemm_gemm_desc d = desc_of(x);
  const int64_t fit = MOST_BYTES / ((d.stride_a + d.stride_b + d.stride_c) * (int64_t)type_bytes(x->type));
  return wanted < fit ? wanted : fit;
}

static batch drawn(wsgemm_type type, uint64_t *state, int idx) {
  static const char *const ops[] = {"NN", "NT", "TN", "TT"};
  batch x = {.type = type, .ops = ops[ws_random_below(state, 4)], .more = idx % 3 == 2, .is_drawn = true};
  int64_t *const sizes[] = {&x.m, &x.n, &x.k};
  for (int i = 0; i < 3; i++) *sizes[i] = 1 + (int64_t)ws_random_below(state, (uint64_t)options.most);
  if (options.by_pointers) {
    x.count = most_that_fit(&x, ws_random_size(state, 8, 50000));
    return x;
  }
  const int64_t largest = (x.m > x.n ? x.m : x.n) * (x.k > x.m ? x.k : x.m) * (int64_t)type_bytes(type) * 2;
  x.count = ws_random_size(state, 1000, 50000);
  if (x.count > MOST_BYTES / largest) x.count = MOST_BYTES / largest;
  return x;
}

static void run_type(wsgemm_type type, wsgemm_handle *h) {
  static const int strided[][2] = {{8, 20000}, {16, 20000}, {32, 20000}, {64, 4000}, {128, 4000}};
  static const int by_pointers[][2] = {{16, 20000}, {32, 20000}, {64, 4000}, {128, 4000}, {256, 4000}};
  const int(*const squares)[2] = options.by_pointers ? by_pointers : strided;
  void *const pattern = random_matrix(type, PATTERN);
  ws_bench_mean of_squares = {0}, of_random = {0};
  uint64_t state = options.seed;
  for (size_t i = 0; i < sizeof strided / sizeof strided[0]; i++) {
    const int64_t size = squares[i][0];
    batch x = {.type = type, .ops = "NN", .m = size, .n = size, .k = size, .count = squares[i][1]};
    if (options.by_pointers) x.count = most_that_fit(&x, x.count);
    measure(&x, pattern, h, &of_squares);
  }
  for (int i = 0; i < options.count; i++) {
    const batch x = drawn(type, &state, i);
    measure(&x, pattern, h, &of_random);
  }
  printf("%s %cgemm: speedup over cuBLAS of squares %.3f, least %.3f", options.by_pointers ? "pointer_batches" : "batched",
         letters[type], ws_bench_mean_of(&of_squares), of_squares.least);
  if (of_random.n) printf("; of %d random batches %.3f, least %.3f", of_random.n, ws_bench_mean_of(&of_random), of_random.least);
  puts("");
  GPU(cudaFree(pattern));
}

static bool parse(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char *const name = argv[i];
    bool *const flag = strcmp(name, "--pointers") == 0 ? &options.by_pointers
                       : strcmp(name, "--tf32") == 0   ? &options.in_tf32
                                                       : NULL;
    if (flag) {
      *flag = true;
      continue;
    }
    if (++i == argc) return false;
    const char *const value = argv[i];
    if (strcmp(name, "--types") == 0)
      options.types = value;
    else if (strcmp(name, "--json") == 0)
      options.json = value;
    else if (strcmp(name, "--commit") == 0)
      options.commit = value;
    else if (strcmp(name, "--seed") == 0)
      options.seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--count") == 0)
      options.count = atoi(value);
    else if (strcmp(name, "--most") == 0)
      options.most = atoi(value);
    else if (strcmp(name, "--samples") == 0)
      options.samples = atoi(value);
    else
      return false;
  }
  return options.samples >= 1 && options.samples <= MOST_SAMPLES && options.count >= 0 && options.most >= 1 &&
         options.most <= 1024 && *options.types && strspn(options.types, letters) == strlen(options.types);
}

int main(int argc, char **argv) {
  struct cudaDeviceProp properties;
  wsgemm_handle *h = NULL;
  if (!parse(argc, argv)) {
    fputs("usage: bench_gpu_batched [--pointers] [--tf32] [--types sdczhb] [--seed N] [--count N] [--most N] [--samples N] "
          "[--json FILE] [--commit NAME]\n",
          stderr);
    return 2;
  }
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return puts("no GPU"), 77;
  snprintf(device, sizeof device, "%s", properties.name);
  ws_bench_commit(options.commit, commit), ws_bench_date(date);
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  GPU(cudaEventCreate(&before)), GPU(cudaEventCreate(&after));
  if (!ws_bench_cublas_open(stream) || wsgemm_create(&h) || wsgemm_set_stream(h, stream)) return 1;
  if (options.json && !(json = fopen(options.json, "a"))) return perror(options.json), 1;
  ws_bench_cublas_set_tf32(options.in_tf32);
  for (const char *t = options.types; *t; t++) run_type((wsgemm_type)(strchr(letters, *t) - letters), h);
  wsgemm_destroy(h);
  if (json && fclose(json)) return perror(options.json), 1;
  return n_wrong > 0;
}
