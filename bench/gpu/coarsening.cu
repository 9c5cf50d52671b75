/* coarsening.cu - what COARSE_FACTOR costs and saves, over size and COARSE_FACTOR, on the kernels
 * of cuda/kernels/teaching.cuh:
 *
 *   scale, scale_x4   c = alpha a, element float or float4: nothing to save
 *   tiled32_c         a tile of A for COARSE tiles of B: something to save, while there are blocks
 *                     enough
 *   held32_c          the same, but sums and shared memory grow with COARSE, so that fewer blocks
 *                     fit on a multiprocessor
 *   held32_c_pressed  one COARSE of it, with shared memory asked for in vain: what fewer blocks
 *                     alone cost
 *
 *   coarsening [--json FILE] [--commit ID] [--quick]
 *
 * All COARSE_FACTORs of one kernel and size take turns, in a rotating order, on the same operands
 * (which caches therefore hold, if they can); a sample is a graph of launches in a row that fills
 * half a millisecond, and the figure its median for one launch. A wrong result is an error, gives
 * no figure, and the exit code is 1. */
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bench/harness/clock.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "cuda/kernels/teaching.cuh"

using namespace ws::teaching;

namespace {

constexpr int n_quick_samples = 7, n_full_samples = 21, n_warm_ups = 2, max_launches = 64, n_checked = 4096;
constexpr float sample_ms = 0.5f, alpha = 1.0f / 3;

void must(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "coarsening: %s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

/* Matrices of n x n, or vectors of n floats. */
struct operands {
  const float *a, *b;
  float *c;
  int64_t n;
};

struct kernel_case {
  const char *routine;
  int coarse, n_threads, dynamic_bytes; /* bytes of shared memory */
  const void *function;
  int64_t (*n_blocks)(int64_t n);
  void (*launch)(const kernel_case &, const operands &, cudaStream_t);
  bool is_pressed = false;
};

template <int COARSE> int64_t tiled_blocks(int64_t n) {
  /* 0: n does not fit */
  return teaching_fits(n, COARSE) ? (n / tile_width) * (n / (tile_width * COARSE)) : 0;
}

template <int COARSE> dim3 tiled_grid(int64_t n) { return dim3(unsigned(n / (tile_width * COARSE)), unsigned(n / tile_width)); }

template <int COARSE> void launch_tiled32_c(const kernel_case &, const operands &o, cudaStream_t stream) {
  const dim3 block(tile_width, tile_width);
  tiled32_c<COARSE, false><<<tiled_grid<COARSE>(o.n), block, 0, stream>>>(o.a, o.b, o.c, int(o.n), nullptr);
}

template <int COARSE> void launch_held32_c(const kernel_case &k, const operands &o, cudaStream_t stream) {
  const dim3 block(tile_width, tile_width / held_rows);
  held32_c<COARSE><<<tiled_grid<COARSE>(o.n), block, size_t(k.dynamic_bytes), stream>>>(o.a, o.b, o.c, int(o.n));
}

template <typename T, int COARSE> int64_t scale_blocks(int64_t n) {
  constexpr int64_t n_each = int64_t(scale_threads) * COARSE * (sizeof(T) / sizeof(float));
  return n % n_each == 0 ? n / n_each : 0;
}

template <typename T, int COARSE> void launch_scale(const kernel_case &, const operands &o, cudaStream_t stream) {
  const unsigned n_blocks = unsigned(scale_blocks<T, COARSE>(o.n));
  scale<T, COARSE><<<n_blocks, scale_threads, 0, stream>>>(alpha, (const T *)o.a, (T *)o.c);
}

template <int COARSE> kernel_case tiled_case() {
  constexpr auto kernel = tiled32_c<COARSE, false>;
  return {"tiled32_c", COARSE, tile_width * tile_width, 0, (const void *)kernel, tiled_blocks<COARSE>, launch_tiled32_c<COARSE>};
}

template <int COARSE> kernel_case held_case() {
  constexpr auto kernel = held32_c<COARSE>;
  return {"held32_c",
          COARSE,
          tile_width * tile_width / held_rows,
          held_shared_bytes(COARSE),
          (const void *)kernel,
          tiled_blocks<COARSE>,
          launch_held32_c<COARSE>};
}

template <typename T, int COARSE> kernel_case scale_case() {
  constexpr auto kernel = scale<T, COARSE>;
  const char *routine = sizeof(T) == sizeof(float) ? "scale" : "scale_x4";
  return {routine, COARSE, scale_threads, 0, (const void *)kernel, scale_blocks<T, COARSE>, launch_scale<T, COARSE>};
}

std::vector<kernel_case> tiled_cases() {
  return {tiled_case<1>(), tiled_case<2>(), tiled_case<4>(), tiled_case<8>(), tiled_case<16>(), tiled_case<32>()};
}

std::vector<kernel_case> held_cases() {
  return {held_case<1>(), held_case<2>(), held_case<4>(), held_case<8>(), held_case<16>(), held_case<32>()};
}

/* The first as it comes, the others with so much shared memory that only 3, 2, 1 blocks fit. */
std::vector<kernel_case> pressed_cases(const cudaDeviceProp &properties) {
  std::vector<kernel_case> cases;
  for (const int n_blocks : {0, 3, 2, 1}) {
    kernel_case k = held_case<8>();
    k.routine = "held32_c_pressed";
    k.is_pressed = true;
    if (n_blocks) {
      const size_t share = properties.sharedMemPerMultiprocessor / size_t(n_blocks) - properties.reservedSharedMemPerBlock;
      k.dynamic_bytes = std::max(k.dynamic_bytes, int(share));
    }
    cases.push_back(k);
  }
  return cases;
}

template <typename T> std::vector<kernel_case> scale_cases() {
  return {scale_case<T, 1>(), scale_case<T, 2>(),  scale_case<T, 4>(),
          scale_case<T, 8>(), scale_case<T, 16>(), scale_case<T, 32>()};
}

/* ---- Operands and results -------------------------------------------------------------------- */

/* Element i of a vector: -1 .. 1, so that the check needs no copy of it. */
__host__ __device__ float element(int64_t i) {
  uint32_t x = uint32_t(i) * 2654435761u;
  x = (x ^ x >> 15) * 2246822519u;
  return float(int32_t(x ^ x >> 13)) * 0x1p-31f;
}

__global__ void fill(float *x) {
  const int64_t i = int64_t(blockIdx.x) * scale_threads + threadIdx.x;
  x[i] = element(i);
}

__global__ void count_wrong(const float *c, unsigned long long *n_wrong) {
  const int64_t i = int64_t(blockIdx.x) * scale_threads + threadIdx.x;
  if (!(c[i] == alpha * element(i))) atomicAdd(n_wrong, 1ull);
}

float *device_floats(size_t n) {
  float *x;
  must(cudaMalloc(&x, n * sizeof *x), "cudaMalloc");
  return x;
}

struct matrices {
  struct sample {
    int64_t at;
    double sum, magnitude; /* of products, in double */
  };
  std::vector<float> a, b;
  std::vector<sample> samples; /* elements of C that are checked */
  operands o;
  explicit matrices(int64_t n) : a(size_t(n * n)), b(size_t(n * n)) {
    std::mt19937 random(20261122);
    for (std::vector<float> *x : {&a, &b})
      for (float &entry : *x) entry = float(int32_t(random())) * 0x1p-31f; /* -1 .. 1 */
    float *device_a = device_floats(a.size()), *device_b = device_floats(b.size());
    must(cudaMemcpy(device_a, a.data(), a.size() * sizeof(float), cudaMemcpyHostToDevice), "copy of A");
    must(cudaMemcpy(device_b, b.data(), b.size() * sizeof(float), cudaMemcpyHostToDevice), "copy of B");
    /* the launches are in a stream that does not wait for them */
    must(cudaDeviceSynchronize(), "copies");
    o = {device_a, device_b, device_floats(a.size()), n};
    const bool is_small = n * n <= n_checked;
    std::mt19937_64 draw(1);
    for (int64_t i = 0; i < (is_small ? n * n : n_checked); i++)
      samples.push_back(sample_at(is_small ? i : int64_t(draw() % uint64_t(n * n))));
  }
  sample sample_at(int64_t at) const {
    sample s = {at, 0, 0};
    for (int64_t k = 0; k < o.n; k++) {
      const double product = double(a[size_t(at / o.n * o.n + k)]) * b[size_t(k * o.n + at % o.n)];
      s.sum += product;
      s.magnitude += std::fabs(product);
    }
    return s;
  }
  matrices(const matrices &) = delete;
  ~matrices() {
    for (const void *p : {(const void *)o.a, (const void *)o.b, (const void *)o.c}) must(cudaFree((void *)p), "cudaFree");
  }
  bool is_right(const kernel_case &k, cudaStream_t stream) const;
};

struct vectors {
  operands o;
  explicit vectors(int64_t n) {
    float *a = device_floats(size_t(n));
    fill<<<unsigned(n / scale_threads), scale_threads>>>(a);
    must(cudaDeviceSynchronize(), "fill");
    o = {a, nullptr, device_floats(size_t(n)), n};
  }
  vectors(const vectors &) = delete;
  ~vectors() {
    for (const void *p : {(const void *)o.a, (const void *)o.c}) must(cudaFree((void *)p), "cudaFree");
  }
  bool is_right(const kernel_case &k, cudaStream_t stream) const;
};

void launch(const kernel_case &k, const operands &o, cudaStream_t stream) {
  k.launch(k, o, stream);
  must(cudaGetLastError(), k.routine);
}

/* Launches the kernel on a C of NaN. */
void make_result(const kernel_case &k, const operands &o, size_t n_elements, cudaStream_t stream) {
  must(cudaMemsetAsync(o.c, 0xFF, n_elements * sizeof(float), stream), "cudaMemset");
  launch(k, o, stream);
  must(cudaStreamSynchronize(stream), k.routine);
}

/* Whether every element was written, and those of a sample (all of a small C) are within
 * gamma_(n+2) |A||B| of the product in double. */
bool matrices::is_right(const kernel_case &k, cudaStream_t stream) const {
  const int64_t n = o.n;
  std::vector<float> c(a.size());
  make_result(k, o, c.size(), stream);
  must(cudaMemcpy(c.data(), o.c, c.size() * sizeof(float), cudaMemcpyDeviceToHost), "copy of C");
  const int64_t n_unwritten = std::count_if(c.begin(), c.end(), [](float x) { return std::isnan(x); });
  if (n_unwritten) {
    fprintf(stderr, "coarsening: %s n=%lld c=%d: %lld elements are NaN\n", k.routine, (long long)n, k.coarse,
            (long long)n_unwritten);
    return false;
  }
  const double u = 0x1p-24, gamma = double(n + 2) * u / (1 - double(n + 2) * u);
  for (const sample &x : samples) {
    if (std::fabs(c[size_t(x.at)] - x.sum) <= gamma * x.magnitude) continue;
    fprintf(stderr, "coarsening: %s n=%lld c=%d: element (%lld, %lld) is %g, not %g (bound %g)\n", k.routine, (long long)n,
            k.coarse, (long long)(x.at / n), (long long)(x.at % n), c[size_t(x.at)], x.sum, gamma * x.magnitude);
    return false;
  }
  return true;
}

bool vectors::is_right(const kernel_case &k, cudaStream_t stream) const {
  unsigned long long *device_wrong, n_wrong = 0;
  must(cudaMalloc(&device_wrong, sizeof n_wrong), "cudaMalloc");
  must(cudaMemset(device_wrong, 0, sizeof n_wrong), "cudaMemset");
  make_result(k, o, size_t(o.n), stream);
  count_wrong<<<unsigned(o.n / scale_threads), scale_threads>>>(o.c, device_wrong);
  must(cudaGetLastError(), "count_wrong");
  must(cudaMemcpy(&n_wrong, device_wrong, sizeof n_wrong, cudaMemcpyDeviceToHost), "count_wrong");
  must(cudaFree(device_wrong), "cudaFree");
  if (n_wrong)
    fprintf(stderr, "coarsening: %s n=%lld c=%d: %llu elements are wrong\n", k.routine, (long long)o.n, k.coarse, n_wrong);
  return n_wrong == 0;
}

/* ---- Measuring ------------------------------------------------------------------------------- */

struct candidate {
  const kernel_case *k;
  int n_launches; /* of a sample */
  cudaGraphExec_t graph;
  std::vector<double> samples; /* us a launch */
  double median;
};

struct bench {
  cudaStream_t stream;
  cudaEvent_t begin, end;
  int n_samples;
  cudaDeviceProp device;
  FILE *json;
  char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
};

cudaGraphExec_t graph_of(const bench &b, const kernel_case &k, const operands &o, int n_launches) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  must(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < n_launches; i++) launch(k, o, b.stream);
  must(cudaStreamEndCapture(b.stream, &graph), "capture");
  must(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  must(cudaGraphDestroy(graph), "cudaGraphDestroy");
  return ready;
}

double graph_us(const bench &b, const candidate &x) {
  float ms = 0;
  must(cudaEventRecord(b.begin, b.stream), "event");
  must(cudaGraphLaunch(x.graph, b.stream), x.k->routine);
  must(cudaEventRecord(b.end, b.stream), "event");
  must(cudaEventSynchronize(b.end), x.k->routine);
  must(cudaEventElapsedTime(&ms, b.begin, b.end), "event");
  return 1000.0 * ms / x.n_launches;
}

candidate make_candidate(const bench &b, const kernel_case &k, const operands &o) {
  candidate x = {&k, 1, graph_of(b, k, o, 1), {}, 0};
  graph_us(b, x); /* the first launch loads the code */
  const double wanted = std::ceil(1000 * sample_ms / graph_us(b, x));
  must(cudaGraphExecDestroy(x.graph), "cudaGraphExecDestroy");
  x.n_launches = int(std::min(std::max(wanted, 1.0), double(max_launches)));
  x.graph = graph_of(b, k, o, x.n_launches);
  return x;
}

void measure_in_turn(const bench &b, std::vector<candidate> &candidates) {
  for (int round = -n_warm_ups; round < b.n_samples; round++)
    for (size_t i = 0; i < candidates.size(); i++) {
      candidate &x = candidates[(i + size_t(round + n_warm_ups)) % candidates.size()];
      const double us = graph_us(b, x);
      if (round >= 0) x.samples.push_back(us);
    }
  for (candidate &x : candidates) x.median = ws_bench_median(x.samples.data(), int(x.samples.size()));
}

/* ---- The tables ------------------------------------------------------------------------------ */

struct resources {
  int registers, shared_bytes, blocks_per_sm;
};

resources resources_of(const kernel_case &k) {
  cudaFuncAttributes attributes;
  resources r = {};
  if (k.dynamic_bytes)
    must(cudaFuncSetAttribute(k.function, cudaFuncAttributeMaxDynamicSharedMemorySize, k.dynamic_bytes), "cudaFuncSetAttribute");
  /* As much shared memory as there is: else the driver's guess at the division from L1 would be
   * measured too. */
  if (k.dynamic_bytes)
    must(cudaFuncSetAttribute(k.function, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared),
         "cudaFuncSetAttribute");
  must(cudaFuncGetAttributes(&attributes, k.function), "cudaFuncGetAttributes");
  must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&r.blocks_per_sm, k.function, k.n_threads, size_t(k.dynamic_bytes)),
       "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  r.registers = attributes.numRegs;
  r.shared_bytes = int(attributes.sharedSizeBytes) + k.dynamic_bytes;
  return r;
}

/* base: the candidate it is compared with, or NULL. */
void report(const bench &b, const candidate &x, const candidate *base, int64_t n, double work, const char *rate_unit) {
  const int n_sms = b.device.multiProcessorCount;
  const kernel_case &k = *x.k;
  const resources r = resources_of(k);
  const int64_t n_blocks = k.n_blocks(n);
  const int n_samples = int(x.samples.size());
  const double us = x.median, rate = work / us * 1e-3, waves = double(n_blocks) / (double(r.blocks_per_sm) * n_sms);
  printf("  c=%-2d %11.2f us %9.1f %-7s %8lld blocks, %2d an SM, %8.2f waves, %3d registers, %6d bytes shared\n", k.coarse, us,
         rate, rate_unit, (long long)n_blocks, r.blocks_per_sm, waves, r.registers, r.shared_bytes);
  char name[64];
  snprintf(name, sizeof name, "n=%lld c=%d%s%s", (long long)n, k.coarse, k.is_pressed ? " blocks_per_sm=" : "",
           k.is_pressed ? std::to_string(r.blocks_per_sm).c_str() : "");
  if (!b.json) return;
  ws_bench_result line = {};
  line.suite = "coarsening", line.routine = k.routine, line.case_name = name, line.policy = "none";
  line.device = b.device.name, line.peer = !base          ? "none"
                                           : k.is_pressed ? "wsgemm with as many blocks as fit"
                                                          : "wsgemm COARSE_FACTOR 1";
  line.ours = us, line.unit = "us", line.commit = b.commit, line.date = b.date;
  if (base) line.theirs = base->median, line.ratio = base->median / us;
  ws_bench_result_begin(b.json, &line);
  const struct {
    const char *name;
    double value;
  } more[] = {{"n", double(n)},
              {"coarse", double(k.coarse)},
              {"rate", rate},
              {"blocks", double(n_blocks)},
              {"blocks_per_sm", double(r.blocks_per_sm)},
              {"sms", double(n_sms)},
              {"waves", waves},
              {"registers", double(r.registers)},
              {"shared_bytes", double(r.shared_bytes)},
              {"samples", double(n_samples)},
              {"spread", ws_bench_spread(x.samples.data(), n_samples)}};
  for (const auto &m : more) ws_bench_result_number(b.json, m.name, m.value);
  ws_bench_result_text(b.json, "rate_unit", rate_unit);
  ws_bench_result_end(b.json);
}

/* All cases that divide the problem and fit on the device. Returns how many came out wrong. */
template <typename PROBLEM>
int run_size(const bench &b, const PROBLEM &p, const std::vector<kernel_case> &cases, double work, const char *rate_unit) {
  std::vector<candidate> candidates;
  int n_wrong = 0;
  for (const kernel_case &k : cases) {
    if (k.n_blocks(p.o.n) == 0 || size_t(k.dynamic_bytes) > b.device.sharedMemPerBlockOptin) continue;
    resources_of(k); /* allows its shared memory */
    if (p.is_right(k, b.stream))
      candidates.push_back(make_candidate(b, k, p.o));
    else
      n_wrong++;
  }
  if (candidates.empty()) return n_wrong;
  measure_in_turn(b, candidates);
  printf("%s n=%lld\n", cases[0].routine, (long long)p.o.n);
  const candidate *base = candidates[0].k == &cases[0] ? &candidates[0] : nullptr;
  for (const candidate &x : candidates) {
    report(b, x, base, p.o.n, work, rate_unit);
    must(cudaGraphExecDestroy(x.graph), "cudaGraphExecDestroy");
  }
  fflush(stdout);
  return n_wrong;
}

int run_matrices(const bench &b, int64_t n) {
  const matrices p(n);
  const double n_operations = 2.0 * double(n) * double(n) * double(n);
  int n_wrong = 0;
  for (const std::vector<kernel_case> &cases : {tiled_cases(), held_cases(), pressed_cases(b.device)})
    n_wrong += run_size(b, p, cases, n_operations, "GFLOP/s");
  return n_wrong;
}

int run_vectors(const bench &b, int64_t n) {
  const vectors p(n);
  const double n_bytes = 2.0 * sizeof(float) * double(n);
  int n_wrong = 0;
  for (const std::vector<kernel_case> &cases : {scale_cases<float>(), scale_cases<float4>()})
    n_wrong += run_size(b, p, cases, n_bytes, "GB/s");
  return n_wrong;
}

} // namespace

int main(int argc, char **argv) {
  const char *json = nullptr, *commit = nullptr;
  bool is_quick = false;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--json") && i + 1 < argc)
      json = argv[++i];
    else if (!strcmp(argv[i], "--commit") && i + 1 < argc)
      commit = argv[++i];
    else if (!strcmp(argv[i], "--quick"))
      is_quick = true;
    else {
      fprintf(stderr, "usage: coarsening [--json FILE] [--commit ID] [--quick]\n");
      return 2;
    }
  }
  bench b = {};
  ws_bench_commit(commit, b.commit);
  ws_bench_date(b.date);
  must(cudaGetDeviceProperties(&b.device, 0), "cudaGetDeviceProperties");
  b.n_samples = is_quick ? n_quick_samples : n_full_samples;
  must(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking), "stream");
  must(cudaEventCreate(&b.begin), "event");
  must(cudaEventCreate(&b.end), "event");
  b.json = json ? fopen(json, "a") : nullptr;
  if (json && !b.json) {
    fprintf(stderr, "coarsening: cannot open %s: %s\n", json, strerror(errno));
    return 1;
  }
  printf("%s, %d multiprocessors\n", b.device.name, b.device.multiProcessorCount);
  const std::vector<int64_t> sizes =
      is_quick ? std::vector<int64_t>{256, 1024, 4096} : std::vector<int64_t>{64, 128, 256, 512, 1024, 2048, 4096};
  const std::vector<int> logs = is_quick ? std::vector<int>{16, 22, 26} : std::vector<int>{14, 16, 18, 20, 22, 24, 26, 28};
  int n_wrong = 0;
  for (const int log : logs) n_wrong += run_vectors(b, int64_t(1) << log);
  for (const int64_t n : sizes) n_wrong += run_matrices(b, n);
  if (b.json && (ferror(b.json) | fclose(b.json))) {
    fprintf(stderr, "coarsening: cannot write %s\n", json);
    return 1;
  }
  return n_wrong > 0;
}
