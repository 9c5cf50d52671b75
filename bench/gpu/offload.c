/* offload.c - host matrices on GPUs, beside cublasXt and the CPU: products and systems of pageable and of
 * pinned matrices, copies and all, in turn, medians; the same in device memory, and whether C has its
 * bits.
 *
 *   bench_gpu_offload [--suite offload,level3,random] [--sizes 4096,8192] [--types sd] [--memory pageable,pinned]
 *                     [--routines symm,trsm] [--seed N] [--count N] [--devices N] [--samples N] [--cpu-below N]
 *                     [--no-peer 1] [--json FILE] [--commit ID]
 *
 * offload: n x n gemm; level3: the other routines, n x n; random: gemm of random shapes (class uniform of
 * random_shapes.h), where the handle goes by the model (WSGEMM_OFFLOAD_AUTO). --cpu-below: the CPU is measured where m n k
 * is below the cube of that (default 4096). A line a case: TFLOP/s. In result files `link` is the rate that the link alone
 * allows by the rates of plain copies of pinned memory measured here, `in_device_memory` that of the product there. Exit code 1:
 * a call failed, or a bit differs; 77: no GPU. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/clock.h"
#include "bench/harness/random.h"
#include "bench/harness/random_shapes.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "offload_case.h"
#include "offload_xt.h"
#include "operands.h"

/* cublasXt with two sizes of blocks, of which the better one counts. */
enum { OURS, THEIRS, THEIRS_LARGE, CPU, N_TIMED, IN_DEVICE_MEMORY = N_TIMED, N_SIDES };
enum { MOST_SAMPLES = 32, MOST_DEVICES = 8, BLOCK = 2048, LARGE_BLOCK = 4096 };

static struct {
  wsgemm_handle *handle[N_SIDES];
  bool has_peer;
  int n_devices, n_samples;
  double cpu_below;
  double bytes_in_s, bytes_out_s; /* plain copies of pinned memory, a second */
  FILE *json;                     /* or NULL */
  char device[256], peer[64], commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
} bench = {.n_devices = 1, .n_samples = 5, .cpu_below = 4096};

static bool cuda(cudaError_t error) {
  if (error) fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return error == cudaSuccess;
}

/* ---- runs -------------------------------------------------------------------------------------- */

static bool ours(const offload_case *t, int side, const offload_place *where) {
  const wsgemm_status status = offload_call(t, bench.handle[side], where);
  if (status) fprintf(stderr, "%s\n", wsgemm_last_error());
  return status == WSGEMM_SUCCESS;
}

static bool run(const offload_case *t, int side) {
  if (side == THEIRS || side == THEIRS_LARGE)
    return xt_run(t, side == THEIRS ? BLOCK : LARGE_BLOCK) && cuda(cudaDeviceSynchronize());
  const offload_place host = offload_host(t);
  return ours(t, side, &host);
}

/* The case in device memory, where it takes *seconds; C must be what a fresh run on host matrices leaves, unless the model leaves that to
 * the CPU, which has bits of its own. */
static bool has_bits_of_device(const offload_case *t, double *seconds) {
  offload_place there;
  bool is_good = offload_to_device(t, &there) && run(t, OURS) && ours(t, IN_DEVICE_MEMORY, &there) &&
                 cuda(cudaDeviceSynchronize()) && (!offload_is_on_gpus(t, bench.handle[OURS]) || offload_is_equal(t, &there));
  const double begin = ws_bench_now();
  for (int i = 0; i < bench.n_samples && is_good; i++) is_good = ours(t, IN_DEVICE_MEMORY, &there);
  is_good = is_good && cuda(cudaDeviceSynchronize());
  *seconds = (ws_bench_now() - begin) / bench.n_samples;
  offload_drop_device(&there);
  return is_good;
}

/* ---- reports ----------------------------------------------------------------------------------- */

static double flops_per_s(double flops, double seconds) { return seconds > 0 ? flops / seconds * 1e-12 : 0; }

static void write_result(const offload_case *t, const char *suite, const char *case_name, const double rate[N_SIDES]) {
  const char *peer = rate[THEIRS] > 0 ? bench.peer : "none";
  const double in = offload_bytes_in(t) / bench.bytes_in_s, out = offload_bytes_out(t) / bench.bytes_out_s;
  const double ratio = rate[THEIRS] > 0 ? rate[OURS] / rate[THEIRS] : 0;
  char routine[16];
  snprintf(routine, sizeof routine, "%c%s", letters[t->type], offload_routines[t->routine].name);
  const ws_bench_result r = {suite,      routine,      case_name, "auto", bench.device, peer,
                             rate[OURS], rate[THEIRS], "TFLOP/s", ratio,  bench.commit, bench.date};
  ws_bench_result_begin(bench.json, &r);
  ws_bench_result_number(bench.json, "cpu", rate[CPU]);
  ws_bench_result_number(bench.json, "in_device_memory", rate[IN_DEVICE_MEMORY]);
  ws_bench_result_number(bench.json, "link", flops_per_s(offload_flops(t), (in > out ? in : out) / bench.n_devices));
  ws_bench_result_number(bench.json, "samples", bench.n_samples);
  ws_bench_result_end(bench.json);
}

static void report(const offload_case *t, const char *suite, const double seconds[N_SIDES], bool is_good) {
  char shape[64], case_name[128];
  double rate[N_SIDES];
  for (int side = 0; side < N_SIDES; side++) rate[side] = flops_per_s(offload_flops(t), seconds[side]);
  if (t->m == t->n && t->n == t->k)
    snprintf(shape, sizeof shape, "%lld", (long long)t->n);
  else
    snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)t->m, (long long)t->n, (long long)t->k);
  snprintf(case_name, sizeof case_name, "%c%c %s %s, %d GPU%s", t->is_transposed[0] ? 'T' : 'N', t->is_transposed[1] ? 'T' : 'N',
           shape, t->is_pinned ? "pinned" : "pageable", bench.n_devices, bench.n_devices > 1 ? "s" : "");
  printf("%c%-5s %-34s %7.2f TF  cublasXt %6.2f  CPU %5.2f  in device memory %6.1f%s\n", letters[t->type],
         offload_routines[t->routine].name, case_name, rate[OURS], rate[THEIRS], rate[CPU], rate[IN_DEVICE_MEMORY],
         is_good ? "" : "  WRONG");
  fflush(stdout);
  if (bench.json) write_result(t, suite, case_name, rate);
}

static bool run_case(offload_case t, const char *suite) {
  static double times[N_TIMED][MOST_SAMPLES];
  const bool has_peer = bench.has_peer && xt_has(&t);
  const bool is_small = (double)t.m * (double)t.n * (double)t.k <= bench.cpu_below * bench.cpu_below * bench.cpu_below;
  const bool takes_part[N_TIMED] = {true, has_peer, has_peer, is_small};
  double seconds[N_SIDES] = {0};
  bool is_good = offload_make(&t);
  for (int i = -1; i < bench.n_samples && is_good; i++) /* the first is none */
    for (int side = N_TIMED - 1; side >= 0 && is_good; side--) {
      if (!takes_part[side]) continue;
      const double begin = ws_bench_now();
      is_good = run(&t, side);
      if (i >= 0) times[side][i] = ws_bench_now() - begin;
    }
  is_good = is_good && has_bits_of_device(&t, &seconds[IN_DEVICE_MEMORY]);
  for (int side = 0; side < N_TIMED; side++)
    if (takes_part[side] && is_good) seconds[side] = ws_bench_median(times[side], bench.n_samples);
  if (seconds[THEIRS_LARGE] > 0 && seconds[THEIRS_LARGE] < seconds[THEIRS]) seconds[THEIRS] = seconds[THEIRS_LARGE];
  report(&t, suite, seconds, is_good);
  offload_drop(&t);
  return is_good;
}

/* ---- suites ------------------------------------------------------------------------------------ */

typedef struct choice {
  const char *suites, *sizes, *types, *memory, *routines;
  uint64_t seed;
  int count;
} choice;

static bool run_squares(const choice *of, bool is_level3) {
  bool is_good = true;
  for (const char *size = of->sizes; size && *size; size = strchr(size, ',') ? strchr(size, ',') + 1 : NULL)
    for (int pinned = 0; pinned < 2; pinned++)
      for (const char *t = of->types; *t && strstr(of->memory, pinned ? "pinned" : "pageable"); t++)
        for (int r = is_level3; r < (is_level3 ? OFFLOAD_N_ROUTINES : 1); r++) {
          const char *letter = strchr(letters, *t);
          const int64_t n = atoll(size);
          if (!letter || (is_level3 && (letter - letters > WSGEMM_C64 || !strstr(of->routines, offload_routines[r].name))))
            continue;
          const offload_case x = {.routine = (offload_routine)r,
                                  .type = (wsgemm_type)(letter - letters),
                                  .m = n,
                                  .n = n,
                                  .k = n,
                                  .is_pinned = pinned};
          is_good &= run_case(x, is_level3 ? "gpu_offload_level3" : "gpu_offload");
        }
  return is_good;
}

static bool run_random(const choice *of) {
  bool is_good = wsgemm_set_offload(bench.handle[OURS], WSGEMM_OFFLOAD_AUTO) == WSGEMM_SUCCESS;
  uint64_t random = of->seed;
  for (int i = 0; i < of->count; i++) {
    const ws_random_shape s = ws_random_uniform_shape_at(of->seed, i, 1, (ws_random_sides){0});
    const char letter = of->types[(size_t)i % strlen(of->types)];
    const offload_case x = {.routine = OFFLOAD_GEMM,
                            .type = (wsgemm_type)(strchr(letters, letter) - letters),
                            .m = s.m,
                            .n = s.n,
                            .k = s.k,
                            .is_transposed = {s.transposed_a, s.transposed_b},
                            .is_pinned = ws_random_below(&random, 2)};
    is_good &= run_case(x, "gpu_offload_random");
  }
  return wsgemm_set_offload(bench.handle[OURS], WSGEMM_OFFLOAD_ALWAYS) == WSGEMM_SUCCESS && is_good;
}

/* ---- opening ----------------------------------------------------------------------------------- */

static double rate_of(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind) {
  double best = 0;
  for (int i = 0; i < 5; i++) {
    const double begin = ws_bench_now();
    if (!cuda(cudaMemcpy(to, from, bytes, kind)) || !cuda(cudaDeviceSynchronize())) return 0;
    const double rate = (double)bytes / (ws_bench_now() - begin);
    if (rate > best) best = rate;
  }
  return best;
}

static bool measure_link(void) {
  const size_t bytes = (size_t)256 << 20;
  void *host = NULL, *device = NULL;
  if (!cuda(cudaHostAlloc(&host, bytes, 0)) || !cuda(cudaMalloc(&device, bytes))) return false;
  bench.bytes_in_s = rate_of(device, host, bytes, cudaMemcpyHostToDevice);
  bench.bytes_out_s = rate_of(host, device, bytes, cudaMemcpyDeviceToHost);
  cudaFreeHost(host), cudaFree(device);
  printf("link: %.1f GB/s in, %.1f out\n", 1e-9 * bench.bytes_in_s, 1e-9 * bench.bytes_out_s);
  return bench.bytes_in_s > 0 && bench.bytes_out_s > 0;
}

static bool open_all(bool wants_peer) {
  int n = 0;
  static const int ids[MOST_DEVICES] = {0, 1, 2, 3, 4, 5, 6, 7};
  struct cudaDeviceProp properties;
  if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) return false;
  if (bench.n_devices < 1 || bench.n_devices > n) bench.n_devices = n < MOST_DEVICES ? n : MOST_DEVICES;
  if (!cuda(cudaSetDevice(0)) || !cuda(cudaGetDeviceProperties(&properties, 0))) return false;
  snprintf(bench.device, sizeof bench.device, "%s", properties.name);
  for (int side = 0; side < N_SIDES; side++)
    if (wsgemm_create(&bench.handle[side]) || wsgemm_set_devices(bench.handle[side], ids, side == OURS ? bench.n_devices : 0))
      return false;
  bench.has_peer = wants_peer && xt_open(bench.n_devices, bench.peer);
  return measure_link();
}

int main(int argc, char **argv) {
  choice of = {.suites = "offload",
               .sizes = "4096,8192,16384",
               .types = "sd",
               .memory = "pageable,pinned",
               .routines = "symm,syrk,syr2k,trmm,trsm",
               .seed = 1,
               .count = 40};
  const char *json = NULL, *commit = NULL;
  bool is_good = true, wants_peer = true;
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *value = argv[i + 1];
    if (strcmp(argv[i], "--suite") == 0) of.suites = value;
    if (strcmp(argv[i], "--sizes") == 0) of.sizes = value;
    if (strcmp(argv[i], "--types") == 0) of.types = value;
    if (strcmp(argv[i], "--memory") == 0) of.memory = value;
    if (strcmp(argv[i], "--routines") == 0) of.routines = value;
    if (strcmp(argv[i], "--seed") == 0) of.seed = strtoull(value, NULL, 10);
    if (strcmp(argv[i], "--count") == 0) of.count = atoi(value);
    if (strcmp(argv[i], "--devices") == 0) bench.n_devices = atoi(value);
    if (strcmp(argv[i], "--samples") == 0) bench.n_samples = atoi(value);
    if (strcmp(argv[i], "--cpu-below") == 0) bench.cpu_below = atof(value);
    if (strcmp(argv[i], "--no-peer") == 0) wants_peer = atoi(value) == 0;
    if (strcmp(argv[i], "--json") == 0) json = value;
    if (strcmp(argv[i], "--commit") == 0) commit = value;
  }
  if (bench.n_samples < 1 || bench.n_samples > MOST_SAMPLES) bench.n_samples = 5;
  if (!*of.types || strspn(of.types, letters) != strlen(of.types)) return fprintf(stderr, "--types: of %s\n", letters), 1;
  if (!open_all(wants_peer)) return 77;
  ws_bench_commit(commit, bench.commit);
  ws_bench_date(bench.date);
  if (json && !(bench.json = fopen(json, "a"))) return perror(json), 1;
  if (strstr(of.suites, "offload")) is_good &= run_squares(&of, false);
  if (strstr(of.suites, "level3")) is_good &= run_squares(&of, true);
  if (strstr(of.suites, "random")) is_good &= run_random(&of);
  if (bench.json && (ferror(bench.json) | fclose(bench.json))) return perror(json), 1;
  return is_good ? 0 : 1;
}
