/* intensity.cu - operations per byte of the kernels of cuda/kernels/teaching.cuh: as derived, as
 * counted at each load, and what they bring in GFLOP/s. A case whose result is wrong, or whose
 * count differs from the derivation, is an error and gives no figure.
 *
 *   intensity [--json FILE] [--commit ID] [--n N] [--only CASE] [--once]         --once: nothing but one launch of each case, for a profiler
 *
 * tools/intensity_bytes.py adds what ncu measures in the launches of --once to the lines of
 * FILE. */
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "bench/harness/clock.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "cuda/kernels/teaching.cuh"

using namespace ws::teaching;

namespace {

constexpr int n_verified = 256, n_samples = 21, n_warm_ups = 3;

struct operands {
  const float *a, *b;
  float *c;
  int n;
  unsigned long long *n_loads; /* elements, added up by the counting kernels */
};

template <bool COUNT> void launch_simple(const operands &o) {
  simple<COUNT><<<dim3(o.n / tile_width, o.n / tile_width), dim3(tile_width, tile_width)>>>(o.a, o.b, o.c, o.n, o.n_loads);
}

template <bool COUNT> void launch_tiled32(const operands &o) {
  tiled32<COUNT><<<dim3(o.n / tile_width, o.n / tile_width), dim3(tile_width, tile_width)>>>(o.a, o.b, o.c, o.n, o.n_loads);
}

template <int COARSE, bool COUNT> void launch_tiled32_c(const operands &o) {
  const dim3 grid(o.n / (tile_width * COARSE), o.n / tile_width);
  tiled32_c<COARSE, COUNT><<<grid, dim3(tile_width, tile_width)>>>(o.a, o.b, o.c, o.n, o.n_loads);
}

struct kernel_case {
  const char *name;
  int coarse; /* tiles of B for one of A in a phase; 0: no tiles */
  void (*launch)(const operands &), (*launch_counting)(const operands &);
};

const kernel_case cases[] = {
    {"simple", 0, launch_simple<false>, launch_simple<true>},
    {"tiled32", 1, launch_tiled32<false>, launch_tiled32<true>},
    {"tiled32_c1", 1, launch_tiled32_c<1, false>, launch_tiled32_c<1, true>},
    {"tiled32_c2", 2, launch_tiled32_c<2, false>, launch_tiled32_c<2, true>},
    {"tiled32_c4", 4, launch_tiled32_c<4, false>, launch_tiled32_c<4, true>},
    {"tiled32_c8", 8, launch_tiled32_c<8, false>, launch_tiled32_c<8, true>},
};

void must(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "intensity: %s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

double operations(int n) { return 2.0 * n * n * n; }

/* simple: each of n^2 threads loads 2 n elements. Tiled: each of n^2 / coarse threads loads 1 +
 * coarse elements in n / 32 phases. */
unsigned long long derived_loads(const kernel_case &k, int n) {
  const unsigned long long n_elements = 1ull * n * n;
  return k.coarse == 0 ? n_elements * 2 * n : n_elements / k.coarse * (1 + k.coarse) * (n / tile_width);
}

double per_byte(double n_operations, unsigned long long n_loads) { return n_operations / (double(n_loads) * sizeof(float)); }

void print_derivation() {
  printf("operations per byte, derived: simple 2 / (2 loads x 4 bytes) = 0.25\n");
  constexpr int tile_bytes = tile_width * tile_width * int(sizeof(float)), tile_ops = 2 * tile_width * tile_width * tile_width;
  for (const int coarse : {1, 2, 4, 8})
    printf("  tiled 32 x 32, COARSE_FACTOR %d: a phase loads 1 + %d tiles = %d bytes for %d x 2 x 32^3 = %d operations: %.4g\n",
           coarse, coarse, (1 + coarse) * tile_bytes, coarse, coarse * tile_ops,
           double(coarse) * tile_ops / ((1 + coarse) * tile_bytes));
}

/* ---- Device side of the bench ---------------------------------------------------------------- */

struct problem {
  std::vector<float> a, b;
  float *device_a, *device_b;
  operands o = {};
  explicit problem(int n) : a(size_t(n) * n), b(size_t(n) * n) {
    std::mt19937 random(20260411);
    for (std::vector<float> *x : {&a, &b})
      for (float &element : *x) element = float(int32_t(random())) * 0x1p-31f; /* -1 .. 1 */
    const size_t n_bytes = a.size() * sizeof(float);
    must(cudaMalloc(&device_a, n_bytes), "cudaMalloc");
    must(cudaMalloc(&device_b, n_bytes), "cudaMalloc");
    must(cudaMalloc(&o.c, n_bytes), "cudaMalloc");
    must(cudaMalloc(&o.n_loads, sizeof *o.n_loads), "cudaMalloc");
    must(cudaMemcpy(device_a, a.data(), n_bytes, cudaMemcpyHostToDevice), "copy of A");
    must(cudaMemcpy(device_b, b.data(), n_bytes, cudaMemcpyHostToDevice), "copy of B");
    must(cudaMemset(o.n_loads, 0, sizeof *o.n_loads), "cudaMemset");
    o.a = device_a;
    o.b = device_b;
    o.n = n;
  }
  ~problem() {
    for (void *p : {(void *)device_a, (void *)device_b, (void *)o.c, (void *)o.n_loads}) must(cudaFree(p), "cudaFree");
  }
};

void launch(void (*kernel)(const operands &), const operands &o) {
  kernel(o);
  must(cudaGetLastError(), "launch");
}

/* Whether every element is within gamma_(n+2) |A||B| of the product in double; C is NaN before. */
bool is_right(const problem &p, void (*kernel)(const operands &), const char *name) {
  const int n = p.o.n;
  const size_t n_bytes = p.a.size() * sizeof(float);
  std::vector<float> c(p.a.size());
  must(cudaMemset(p.o.c, 0xFF, n_bytes), "cudaMemset");
  launch(kernel, p.o);
  must(cudaMemcpy(c.data(), p.o.c, n_bytes, cudaMemcpyDeviceToHost), name);
  const double u = 0x1p-24, gamma = (n + 2) * u / (1 - (n + 2) * u);
  for (int i = 0; i < n; i++) {
    for (int j = 0; j < n; j++) {
      double sum = 0, magnitude = 0;
      for (int k = 0; k < n; k++) {
        const double product = double(p.a[size_t(i) * n + k]) * p.b[size_t(k) * n + j];
        sum += product;
        magnitude += std::fabs(product);
      }
      const double error = std::fabs(c[size_t(i) * n + j] - sum);
      if (error <= gamma * magnitude) continue; /* a NaN is not */
      fprintf(stderr, "intensity: %s n=%d: element (%d, %d) is %g, not %g (bound %g)\n", name, n, i, j, c[size_t(i) * n + j], sum,
              gamma * magnitude);
      return false;
    }
  }
  return true;
}

unsigned long long counted_loads(const problem &p, const kernel_case &k) {
  unsigned long long n_loads = 0;
  must(cudaMemset(p.o.n_loads, 0, sizeof n_loads), "cudaMemset");
  launch(k.launch_counting, p.o);
  must(cudaMemcpy(&n_loads, p.o.n_loads, sizeof n_loads, cudaMemcpyDeviceToHost), k.name);
  return n_loads;
}

/* Milliseconds of one launch. */
std::vector<double> sample_times(const problem &p, const kernel_case &k) {
  std::vector<double> times(n_samples);
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin), "event");
  must(cudaEventCreate(&end), "event");
  for (int i = 0; i < n_warm_ups; i++) launch(k.launch, p.o);
  for (double &time : times) {
    float ms = 0;
    must(cudaEventRecord(begin), "event");
    launch(k.launch, p.o);
    must(cudaEventRecord(end), "event");
    must(cudaEventSynchronize(end), k.name);
    must(cudaEventElapsedTime(&ms, begin, end), "event");
    time = ms;
  }
  must(cudaEventDestroy(begin), "event");
  must(cudaEventDestroy(end), "event");
  return times;
}

/* ---- The table ------------------------------------------------------------------------------- */

struct options {
  const char *json = nullptr, *only = nullptr, *commit = nullptr;
  int n = 4096;
  bool once = false;
};

int usage() {
  fprintf(stderr, "usage: intensity [--json FILE] [--commit ID] [--n N] [--only CASE] [--once]\ncases:");
  for (const kernel_case &k : cases) fprintf(stderr, " %s", k.name);
  fprintf(stderr, "\n");
  return 2;
}

bool read_options(int argc, char **argv, options *o) {
  for (int i = 1; i < argc; i++) {
    const bool has_value = i + 1 < argc;
    if (!strcmp(argv[i], "--json") && has_value)
      o->json = argv[++i];
    else if (!strcmp(argv[i], "--commit") && has_value)
      o->commit = argv[++i];
    else if (!strcmp(argv[i], "--only") && has_value)
      o->only = argv[++i];
    else if (!strcmp(argv[i], "--n") && has_value)
      o->n = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--once"))
      o->once = true;
    else
      return false;
  }
  return !o->only ||
         std::any_of(std::begin(cases), std::end(cases), [&](const kernel_case &k) { return !strcmp(k.name, o->only); });
}

struct output {
  FILE *json;
  const char *device;
  char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
  /* of the kernel without tiles, with which the others are compared; 0: it was not run */
  double first_gflops = 0;
};

/* Whether the case came out right; prints its line. */
bool run_case(const problem &small, const problem &large, const kernel_case &k, output *out) {
  if (!is_right(small, k.launch, k.name) || !is_right(small, k.launch_counting, k.name)) return false;
  const int n = large.o.n;
  const unsigned long long n_derived = derived_loads(k, n), n_counted = counted_loads(large, k);
  if (n_counted != n_derived) {
    fprintf(stderr, "intensity: %s n=%d: %llu loads counted, %llu derived\n", k.name, n, n_counted, n_derived);
    return false;
  }
  std::vector<double> times = sample_times(large, k);
  const double median = ws_bench_median(times.data(), n_samples), gflops = operations(n) / median * 1e-6;
  printf("%-12s n=%d  operations per byte: derived %6.3f, counted %6.3f  %9.1f GFLOP/s  %8.3f ms (%.3f .. %.3f)\n", k.name, n,
         per_byte(operations(n), n_derived), per_byte(operations(n), n_counted), gflops, median, times.front(), times.back());
  if (&k == cases) out->first_gflops = gflops;
  if (!out->json) return true;
  const std::string name = std::string(k.name) + " n=" + std::to_string(n), peer = std::string("wsgemm kernel ") + cases[0].name;
  const bool has_peer = out->first_gflops > 0;
  ws_bench_result line = {};
  line.suite = "intensity", line.routine = "sgemm", line.case_name = name.c_str(), line.policy = "none";
  line.device = out->device, line.peer = has_peer ? peer.c_str() : "none", line.ours = gflops, line.unit = "GFLOP/s";
  if (has_peer) line.theirs = out->first_gflops, line.ratio = gflops / out->first_gflops;
  line.commit = out->commit, line.date = out->date;
  ws_bench_result_begin(out->json, &line);
  ws_bench_result_number(out->json, "ops_per_byte_derived", per_byte(operations(n), n_derived));
  ws_bench_result_number(out->json, "ops_per_byte_counted", per_byte(operations(n), n_counted));
  ws_bench_result_number(out->json, "median_ms", median);
  ws_bench_result_number(out->json, "samples", n_samples);
  ws_bench_result_number(out->json, "spread", ws_bench_spread(times.data(), n_samples));
  ws_bench_result_end(out->json);
  return true;
}

} // namespace

int main(int argc, char **argv) {
  options o;
  if (!read_options(argc, argv, &o)) return usage();
  for (const kernel_case &k : cases) {
    if ((o.only && strcmp(o.only, k.name)) || teaching_fits(o.n, std::max(k.coarse, 1))) continue;
    fprintf(stderr, "intensity: %s takes n that are multiples of %d, up to 46336\n", k.name, tile_width * std::max(k.coarse, 1));
    return 2;
  }
  if (o.once) {
    const problem p(o.n);
    for (const kernel_case &k : cases)
      if (!o.only || !strcmp(o.only, k.name)) launch(k.launch, p.o);
    must(cudaDeviceSynchronize(), "--once");
    return 0;
  }
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  output out = {};
  out.device = properties.name;
  ws_bench_commit(o.commit, out.commit);
  ws_bench_date(out.date);
  out.json = o.json ? fopen(o.json, "a") : nullptr;
  if (o.json && !out.json) {
    fprintf(stderr, "intensity: cannot open %s: %s\n", o.json, strerror(errno));
    return 1;
  }
  printf("%s\n", properties.name);
  print_derivation();
  const problem small(n_verified), large(o.n);
  int n_failed = 0;
  for (const kernel_case &k : cases)
    if (!o.only || !strcmp(o.only, k.name)) n_failed += !run_case(small, large, k, &out);
  if (out.json && (ferror(out.json) | fclose(out.json))) {
    fprintf(stderr, "intensity: cannot write %s\n", o.json);
    return 1;
  }
  return n_failed > 0;
}
