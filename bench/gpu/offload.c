/* offload.c - host matrices on GPUs, beside cublasXt and the CPU: n x n products of pageable and of
 * pinned matrices, copies and all, in turn, medians; and whether C has the bits of the product in
 * device memory.
 *
 *   bench_gpu_offload [--sizes 4096,8192] [--types sd] [--memory pageable,pinned] [--devices N] [--samples N]
 *                     [--cpu-below N] [--json FILE] [--commit ID]
 *
 * --cpu-below: the CPU is measured up to that size (default 4096). Exit code 1: a call failed, or a bit
 * differs; 77: no GPU. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/clock.h"
#include "bench/harness/library.h"
#include "bench/harness/random.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "wsgemm.h"

/* cublasXt with two sizes of blocks, of which the better one counts. */
enum { OURS, THEIRS, THEIRS_LARGE, CPU, N_SIDES, MOST_SAMPLES = 32, MOST_DEVICES = 8, BLOCK = 2048, LARGE_BLOCK = 4096 };
static const char letters[] = "sdczhb";
static const int element_bytes[] = {4, 8, 8, 16, 2, 2};

typedef int xt_gemm_fn(void *, int, int, size_t, size_t, size_t, const void *, const void *, size_t, const void *, size_t,
                       const void *, void *, size_t);
static struct {
  void *xt; /* NULL: there is no such peer */
  xt_gemm_fn *xt_gemm[4];
  int (*set_block)(void *, int);
  wsgemm_handle *handle[N_SIDES]; /* OURS: with devices; THEIRS: for device memory */
  int n_devices, n_samples;
  int64_t cpu_below;
  FILE *json; /* or NULL */
  char device[256], peer[64], commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
} bench = {.n_devices = 1, .n_samples = 5, .cpu_below = 4096};

static bool cuda(cudaError_t error) {
  if (error) fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return error == cudaSuccess;
}

typedef struct matrices {
  wsgemm_type type;
  int64_t n;
  bool is_pinned;
  size_t bytes; /* of each */
  void *of[3];
} matrices;

static void fill(const matrices *m, int which) {
  uint64_t random = 7 + (uint64_t)which;
  const int real = m->type == WSGEMM_C32 ? 4 : m->type == WSGEMM_C64 ? 8 : element_bytes[m->type];
  for (size_t i = 0; i < m->bytes / (size_t)real; i++) {
    const double x = 2 * ws_random_unit(&random) - 1;
    if (real == 8)
      ((double *)m->of[which])[i] = x;
    else if (real == 4)
      ((float *)m->of[which])[i] = (float)x;
    else /* a number from 0.5 to 1, or its negative, in either of the 16-bit formats */
      ((uint16_t *)m->of[which])[i] = (uint16_t)((m->type == WSGEMM_F16 ? 0x3800u : 0x3f00u) | (ws_random(&random) & 0x807fu));
  }
}

static void drop(matrices *m) {
  for (int i = 0; i < 3; i++)
    if (m->is_pinned)
      cudaFreeHost(m->of[i]);
    else
      free(m->of[i]);
}

static bool make(matrices *m) {
  m->bytes = (size_t)(m->n * m->n) * (size_t)element_bytes[m->type];
  for (int i = 0; i < 3; i++) {
    if (m->is_pinned && !cuda(cudaHostAlloc(&m->of[i], m->bytes, 0))) return false;
    if (!m->is_pinned && !(m->of[i] = malloc(m->bytes))) return false;
    fill(m, i); /* C, too: its pages are there */
  }
  return true;
}

static wsgemm_gemm_desc desc_of(const matrices *m, void *const of[3]) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.type_a = d.type_b = d.type_c = m->type, d.m = d.n = d.k = d.lda = d.ldb = d.ldc = m->n;
  d.type_scalar = m->type == WSGEMM_F16 || m->type == WSGEMM_BF16 ? WSGEMM_F32 : m->type;
  d.a = of[0], d.b = of[1], d.c = of[2];
  if (d.type_scalar == WSGEMM_F64 || d.type_scalar == WSGEMM_C64)
    d.alpha.d = 1;
  else
    d.alpha.s = 1;
  return d;
}

static bool run(const matrices *m, int side) {
  static const double one_d[2] = {1, 0}, zero[2] = {0, 0};
  static const float one_s[2] = {1, 0};
  const bool is_wide = m->type == WSGEMM_F64 || m->type == WSGEMM_C64;
  const size_t n = (size_t)m->n;
  if (side == THEIRS || side == THEIRS_LARGE)
    return bench.set_block(bench.xt, side == THEIRS ? BLOCK : LARGE_BLOCK) == 0 &&
           bench.xt_gemm[m->type](bench.xt, 0, 0, n, n, n, is_wide ? (const void *)one_d : one_s, m->of[0], n, m->of[1], n, zero,
                                  m->of[2], n) == 0 &&
           cuda(cudaDeviceSynchronize());
  const wsgemm_gemm_desc d = desc_of(m, m->of);
  const wsgemm_status status = wsgemm_gemm(bench.handle[side], &d);
  if (status) fprintf(stderr, "%s\n", wsgemm_last_error());
  return status == WSGEMM_SUCCESS;
}

/* C against the same product in device memory. */
static bool has_bits_of_device(const matrices *m) {
  void *of[3] = {NULL, NULL, NULL}, *expected = malloc(m->bytes);
  bool is_good = expected != NULL;
  for (int i = 0; i < 3 && is_good; i++)
    is_good = cuda(cudaMalloc(&of[i], m->bytes)) && cuda(cudaMemcpy(of[i], m->of[i], m->bytes, cudaMemcpyHostToDevice));
  const wsgemm_gemm_desc d = desc_of(m, of);
  is_good = is_good && wsgemm_gemm(bench.handle[THEIRS], &d) == WSGEMM_SUCCESS &&
            cuda(cudaMemcpy(expected, of[2], m->bytes, cudaMemcpyDeviceToHost)) && memcmp(expected, m->of[2], m->bytes) == 0;
  for (int i = 0; i < 3; i++) cudaFree(of[i]);
  free(expected);
  return is_good;
}

static void report(const matrices *m, const double seconds[N_SIDES], bool is_good) {
  const double n = (double)m->n, flops = (m->type == WSGEMM_C32 || m->type == WSGEMM_C64 ? 8 : 2) * n * n * n;
  double tf[N_SIDES];
  for (int side = 0; side < N_SIDES; side++) tf[side] = seconds[side] > 0 ? flops / seconds[side] * 1e-12 : 0;
  char routine[16], case_name[64];
  snprintf(routine, sizeof routine, "%cgemm", letters[m->type]);
  snprintf(case_name, sizeof case_name, "NN %lld %s, %d GPU%s", (long long)m->n, m->is_pinned ? "pinned" : "pageable",
           bench.n_devices, bench.n_devices > 1 ? "s" : "");
  printf("%-6s %-28s %7.1f TF  cublasXt %7.1f TF  CPU %6.2f TF%s\n", routine, case_name, tf[OURS], tf[THEIRS], tf[CPU],
         is_good ? "" : "  WRONG");
  fflush(stdout);
  if (!bench.json) return;
  const ws_bench_result r = {"gpu_offload", routine,
                             case_name,     "auto",
                             bench.device,  tf[THEIRS] > 0 ? bench.peer : "none",
                             tf[OURS],      tf[THEIRS],
                             "TFLOP/s",     tf[THEIRS] > 0 ? tf[OURS] / tf[THEIRS] : 0,
                             bench.commit,  bench.date};
  ws_bench_result_begin(bench.json, &r);
  ws_bench_result_number(bench.json, "cpu", tf[CPU]);
  ws_bench_result_number(bench.json, "samples", bench.n_samples);
  ws_bench_result_end(bench.json);
}

static bool run_case(wsgemm_type type, int64_t n, bool is_pinned) {
  static double times[N_SIDES][MOST_SAMPLES];
  matrices m = {.type = type, .n = n, .is_pinned = is_pinned};
  const bool has_peer = bench.xt && type <= WSGEMM_C64 && bench.xt_gemm[type];
  const bool takes_part[N_SIDES] = {true, has_peer, has_peer, n <= bench.cpu_below};
  double seconds[N_SIDES] = {0};
  bool is_good = make(&m);
  for (int i = -1; i < bench.n_samples && is_good; i++) /* the first is none */
    for (int side = N_SIDES - 1; side >= 0 && is_good; side--) {
      if (!takes_part[side]) continue;
      const double begin = ws_bench_now();
      is_good = run(&m, side);
      if (i >= 0) times[side][i] = ws_bench_now() - begin;
    }
  is_good = is_good && has_bits_of_device(&m);
  for (int side = 0; side < N_SIDES; side++)
    if (takes_part[side] && is_good) seconds[side] = ws_bench_median(times[side], bench.n_samples);
  if (seconds[THEIRS_LARGE] > 0 && seconds[THEIRS_LARGE] < seconds[THEIRS]) seconds[THEIRS] = seconds[THEIRS_LARGE];
  report(&m, seconds, is_good);
  drop(&m);
  return is_good;
}

static void open_xt(void) {
  static const char *const files[] = {"libcublas.so.13", "libcublas.so.12"};
  static const char *const names[] = {"cublasXtSgemm", "cublasXtDgemm", "cublasXtCgemm", "cublasXtZgemm"};
  int (*create)(void **), (*select)(void *, int, int *), (*property)(int, int *), ids[MOST_DEVICES];
  void *library = ws_bench_load(files, 2);
  for (int i = 0; i < MOST_DEVICES; i++) ids[i] = i;
  if (!library || !ws_bench_find(library, "cublasXtCreate", &create) ||
      !ws_bench_find(library, "cublasXtDeviceSelect", &select) ||
      !ws_bench_find(library, "cublasXtSetBlockDim", &bench.set_block) || !ws_bench_find(library, "cublasGetProperty", &property))
    return;
  for (int t = 0; t < 4; t++) ws_bench_find(library, names[t], &bench.xt_gemm[t]);
  ws_bench_cuda_version("cublasXt", property, bench.peer);
  if (create(&bench.xt) != 0 || select(bench.xt, bench.n_devices, ids) != 0) bench.xt = NULL;
}

static bool open_all(void) {
  int n = 0, ids[MOST_DEVICES];
  struct cudaDeviceProp properties;
  if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) return false;
  if (bench.n_devices < 1 || bench.n_devices > n) bench.n_devices = n < MOST_DEVICES ? n : MOST_DEVICES;
  for (int i = 0; i < MOST_DEVICES; i++) ids[i] = i;
  if (!cuda(cudaSetDevice(0)) || !cuda(cudaGetDeviceProperties(&properties, 0))) return false;
  snprintf(bench.device, sizeof bench.device, "%s", properties.name);
  for (int side = 0; side < N_SIDES; side++)
    if (wsgemm_create(&bench.handle[side]) || wsgemm_set_devices(bench.handle[side], ids, side == OURS ? bench.n_devices : 0))
      return false;
  open_xt();
  return true;
}

int main(int argc, char **argv) {
  const char *json = NULL, *commit = NULL, *sizes = "4096,8192,16384", *types = "sd", *memory = "pageable,pinned";
  bool is_good = true;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--sizes") == 0) sizes = argv[i + 1];
    if (strcmp(argv[i], "--types") == 0) types = argv[i + 1];
    if (strcmp(argv[i], "--memory") == 0) memory = argv[i + 1];
    if (strcmp(argv[i], "--devices") == 0) bench.n_devices = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--samples") == 0) bench.n_samples = atoi(argv[i + 1]);
    if (strcmp(argv[i], "--cpu-below") == 0) bench.cpu_below = atoll(argv[i + 1]);
    if (strcmp(argv[i], "--json") == 0) json = argv[i + 1];
    if (strcmp(argv[i], "--commit") == 0) commit = argv[i + 1];
  }
  if (bench.n_samples < 1 || bench.n_samples > MOST_SAMPLES) bench.n_samples = 5;
  if (!open_all()) return 77;
  ws_bench_commit(commit, bench.commit);
  ws_bench_date(bench.date);
  if (json && !(bench.json = fopen(json, "a"))) return perror(json), 1;
  for (const char *size = sizes; size && *size; size = strchr(size, ',') ? strchr(size, ',') + 1 : NULL)
    for (int pinned = 0; pinned < 2; pinned++) {
      if (!strstr(memory, pinned ? "pinned" : "pageable")) continue;
      for (const char *t = types; *t; t++)
        if (strchr(letters, *t)) is_good &= run_case((wsgemm_type)(strchr(letters, *t) - letters), atoll(size), pinned);
    }
  if (bench.json && (ferror(bench.json) | fclose(bench.json))) return perror(json), 1;
  return is_good ? 0 : 1;
}
