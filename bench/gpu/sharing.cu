/* sharing.cu - sgemm, dgemm and half-precision products that do not have the GPU to themselves:
 * each policy through the public API, beside cuBLAS; NN, square.
 *
 *   bench_gpu_sharing [--types sdhb] [--cases idle,priority,held] [--json FILE] [--commit ID]
 *
 * Cases: idle (the price of each policy alone: fixed work begins anew for each item), priority (how
 * long a kernel of the highest priority takes that is launched inside an 8192 product, also for
 * every row with a quantum of 1: suite sharing_rows), held (some SMs belong to a sleeping kernel;
 * and uneven work: on some SMs a busy kernel has half the shared memory and up to half of the issue
 * slots). After every disturbed run C must have the bits of an undisturbed one, and those be near
 * cuBLAS's, or no figure is given. Needs a GPU that nobody else is using. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bench/harness/clock.h"
#include "bench/harness/cublas.h"
#include "bench/harness/flush_gpu.h"
#include "bench/harness/random.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "cuda/ptx/memory.cuh"

namespace {

using steady = std::chrono::steady_clock;

constexpr int n_threads = 256, probe_threads = 1024;
constexpr uint64_t hold_most_ns = 20000000000u; /* a holder leaves even if this program has died */

/* ---- Kernels --------------------------------------------------------------------------------- */

/* Uniform in (-1, 1), by a hash of the index (splitmix64's steps). */
template <class Real> __global__ void fill(Real *x, int64_t n, uint64_t seed) {
  for (int64_t i = int64_t(blockIdx.x) * n_threads + threadIdx.x; i < n; i += int64_t(gridDim.x) * n_threads) {
    uint64_t h = (uint64_t(i) + seed) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u;
    h = (h ^ h >> 27) * 0x94D049BB133111EBu;
    x[i] = Real(double(int64_t(h ^ h >> 31)) * 0x1p-63);
  }
}

__global__ void count_different(const uint32_t *x, const uint32_t *y, int64_t n, unsigned long long *n_different) {
  unsigned long long n_mine = 0;
  for (int64_t i = int64_t(blockIdx.x) * n_threads + threadIdx.x; i < n; i += int64_t(gridDim.x) * n_threads)
    n_mine += x[i] != y[i];
  if (n_mine) atomicAdd(n_different, n_mine);
}

/* Elements that are further apart than the limit; a NaN is. */
template <class Real>
__global__ void count_far(const Real *x, const Real *y, int64_t n, double limit, unsigned long long *n_far) {
  unsigned long long n_mine = 0;
  for (int64_t i = int64_t(blockIdx.x) * n_threads + threadIdx.x; i < n; i += int64_t(gridDim.x) * n_threads)
    n_mine += !(fabs(double(x[i]) - double(y[i])) <= limit);
  if (n_mine) atomicAdd(n_far, n_mine);
}

/* The kernel of high priority. */
__global__ void __launch_bounds__(probe_threads) probe(uint32_t *out) { out[blockIdx.x * probe_threads + threadIdx.x] += 1; }

struct holder {
  uint32_t sm, was_released;
};

struct hold_args {
  uint32_t *release, *n_begun; /* 0 before */
  holder *holders;
  bool is_busy;
};

/* Keeps its place until *release; asks device memory, and seldom. */
__global__ void hold(hold_args args) {
  if (!args.is_busy && threadIdx.x != 0) return;
  const uint64_t begin = ws::globaltimer();
  if (threadIdx.x == 0) {
    args.holders[blockIdx.x].sm = ws::smid();
    ws::atom_add_release_gpu(args.n_begun, 1);
  }
  float x = float(threadIdx.x);
  while (!ws::ld_relaxed_gpu(args.release) && ws::globaltimer() - begin < hold_most_ns) {
    if (!args.is_busy) ws::nanosleep(20000);
    for (int i = 0; args.is_busy && i < 4096; i++) x = fmaf(x, 0.5f, 0.75f);
  }
  /* x is used */
  if (threadIdx.x == 0) args.holders[blockIdx.x].was_released = ws::ld_relaxed_gpu(args.release) && x >= 0;
}

/* ---- Host: errors, candidates, products ------------------------------------------------------ */

void must(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "sharing: %s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

void must_hold(bool condition, const std::string &what) {
  if (condition) return;
  fprintf(stderr, "sharing: %s\n", what.c_str());
  exit(1);
}

double median_of(std::vector<double> values) { return ws_bench_median(values.data(), int(values.size())); }

struct candidate {
  std::string policy, kernel;
  wsgemm_handle *handle; /* NULL: cuBLAS */
};

struct product {
  wsgemm_type type;
  int64_t n;
  void *a, *b, *c;
  std::map<std::string, void *> expected; /* by kernel */
  bool is_half() const { return type == WSGEMM_F16 || type == WSGEMM_BF16; }
  size_t element_bytes() const { return type == WSGEMM_F64 ? 8 : is_half() ? 2 : 4; }
  size_t bytes() const { return size_t(n * n) * element_bytes(); }
};

struct options {
  std::string types = "sd", cases = "idle,priority,held", json, commit;
};

options opts;
cudaDeviceProp device;
cudaStream_t low, high, control;
cudaEvent_t before, after;
unsigned long long *n_found;
uint32_t *probe_out, *words; /* words: release, n_begun */
holder *holders;
bool has_peer;
FILE *json;
char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];

const char letters[] = "sdczhb"; /* by wsgemm_type */

wsgemm_gemm_desc describe(const product &p) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.transa = d.transb = WSGEMM_NO_TRANS;
  d.type_a = d.type_b = d.type_c = p.type;
  d.type_scalar = p.is_half() ? WSGEMM_F32 : p.type;
  d.m = d.n = d.k = d.lda = d.ldb = d.ldc = p.n;
  d.a = p.a, d.b = p.b, d.c = p.c;
  if (p.type == WSGEMM_F64)
    d.alpha.d = 1;
  else
    d.alpha.s = 1;
  return d;
}

void launch(const candidate &x, const product &p) {
  if (!x.handle) {
    must_hold(ws_bench_cublas_gemm(p.type, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, p.n, p.n, p.n, p.a, p.n, p.b, p.n, p.c, p.n),
              "cuBLAS failed");
    return;
  }
  const wsgemm_gemm_desc d = describe(p);
  must_hold(wsgemm_gemm(x.handle, &d) == WSGEMM_SUCCESS, x.policy + " " + x.kernel + ": " + wsgemm_last_error());
}

unsigned n_blocks_for(int64_t n) {
  return unsigned(std::min<int64_t>((n + n_threads - 1) / n_threads, 16 * device.multiProcessorCount));
}

unsigned long long read_found(const char *what) {
  unsigned long long n = 0;
  must(cudaGetLastError(), what);
  must(cudaMemcpyAsync(&n, n_found, sizeof n, cudaMemcpyDeviceToHost, low), what);
  must(cudaStreamSynchronize(low), what);
  return n;
}

/* C after x's run, which has ended. cuBLAS promises no bits where other streams are at work. */
void verify(const candidate &x, const product &p) {
  if (!x.handle) return;
  const int64_t n_words = int64_t(p.bytes() / 4);
  must(cudaMemsetAsync(n_found, 0, sizeof *n_found, low), "cudaMemset");
  count_different<<<n_blocks_for(n_words), n_threads, 0, low>>>(
      static_cast<uint32_t *>(p.c), static_cast<uint32_t *>(p.expected.at(x.kernel)), n_words, n_found);
  const unsigned long long n = read_found("count_different");
  must_hold(n == 0, x.policy + " " + x.kernel + ": " + std::to_string(n) + " words of C differ from those of an undisturbed run");
}

/* C is NaN, and the L2 holds nothing of A and B. */
void prepare(const product &p) {
  must(cudaMemsetAsync(p.c, 0xFF, p.bytes(), low), "cudaMemset");
  must_hold(ws_bench_flush_gpu(low), "the L2 is not flushed");
}

double time_once(const candidate &x, const product &p) {
  float ms = 0;
  prepare(p);
  must(cudaEventRecord(before, low), "event");
  launch(x, p);
  must(cudaEventRecord(after, low), "event");
  must(cudaEventSynchronize(after), x.policy.c_str());
  must(cudaEventElapsedTime(&ms, before, after), "event");
  verify(x, p);
  return ms;
}

/* body(an element of the type) */
template <class Body> void with_elements(wsgemm_type type, Body body) {
  switch (type) {
  case WSGEMM_F64:
    return body(double());
  case WSGEMM_F16:
    return body(__half());
  case WSGEMM_BF16:
    return body(__nv_bfloat16());
  default:
    return body(float());
  }
}

/* The result of each kernel, which must be near the first's; nothing is loaded or allocated any
 * more when x runs later. */
void warm_up(const candidate &x, product *p, const candidate &first) {
  prepare(*p);
  launch(x, *p);
  if (!p->expected.count(x.kernel)) {
    void *copy;
    must(cudaMalloc(&copy, p->bytes()), "cudaMalloc");
    must(cudaMemcpyAsync(copy, p->c, p->bytes(), cudaMemcpyDeviceToDevice, low), "copy of C");
    p->expected[x.kernel] = copy;
    const int64_t n = p->n * p->n;
    const void *theirs = p->expected.at(first.kernel);
    const double unit = p->type == WSGEMM_F64 ? 0x1p-53 : p->type == WSGEMM_F16 ? 0x1p-18 : p->is_half() ? 0x1p-15 : 0x1p-24;
    const double limit = unit * 512 * std::sqrt(double(p->n)); /* as in gemm.c */
    must(cudaMemsetAsync(n_found, 0, sizeof *n_found, low), "cudaMemset");
    with_elements(p->type, [&](auto element) {
      using real = decltype(element);
      count_far<<<n_blocks_for(n), n_threads, 0, low>>>(static_cast<real *>(p->c), static_cast<const real *>(theirs), n, limit,
                                                        n_found);
    });
    const unsigned long long n_far = read_found("count_far");
    must_hold(n_far == 0,
              x.policy + " " + x.kernel + ": " + std::to_string(n_far) + " elements far from those of " + first.kernel);
  }
  verify(x, *p);
}

product make_product(wsgemm_type type, int64_t n) {
  product p = {type, n, nullptr, nullptr, nullptr, {}};
  for (void **x : {&p.a, &p.b, &p.c}) {
    must(cudaMalloc(x, p.bytes()), "cudaMalloc");
    const uint64_t seed = uint64_t(x - &p.a + 1) << 40;
    with_elements(type, [&](auto element) {
      fill<<<n_blocks_for(n * n), n_threads, 0, low>>>(static_cast<decltype(element) *>(*x), n * n, seed);
    });
    must(cudaGetLastError(), "fill");
  }
  must(cudaStreamSynchronize(low), "fill");
  return p;
}

void free_product(product *p) {
  for (void *x : {p->a, p->b, p->c}) must(cudaFree(x), "cudaFree");
  for (const auto &e : p->expected) must(cudaFree(e.second), "cudaFree");
}

/* "": none for this product. */
std::string kernel_of(wsgemm_handle *handle, const product &p) {
  char text[1024], name[96];
  const wsgemm_gemm_desc d = describe(p);
  wsgemm_explain(handle, &d, text, sizeof text);
  const char *at = strstr(text, "kernel: ");
  return at && sscanf(at, "kernel: %90s", name) == 1 ? name : "";
}

/* row: NULL for the library's own choice. */
candidate make_candidate(const char *name, wsgemm_policy policy, int quantum, const char *row, const product &p) {
  candidate x = {name, "", nullptr};
  must_hold(!wsgemm_create(&x.handle) && !wsgemm_set_stream(x.handle, low) && !wsgemm_set_policy(x.handle, policy) &&
                !wsgemm_set_quantum(x.handle, quantum) && !wsgemm_set_kernel(x.handle, row),
            std::string(name) + ": " + wsgemm_last_error());
  x.kernel = kernel_of(x.handle, p);
  return x;
}

constexpr int fixed_blocks = 1; /* its place among the policies */

std::vector<candidate> policy_candidates(const product &p) {
  std::vector<candidate> candidates = {make_candidate("fixed_work", WSGEMM_POLICY_FIXED_WORK, 0, nullptr, p),
                                       make_candidate("fixed_blocks", WSGEMM_POLICY_FIXED_BLOCKS, 0, nullptr, p),
                                       make_candidate("steal", WSGEMM_POLICY_STEAL, 0, nullptr, p)};
  for (const int quantum : {1, 4})
    candidates.push_back(make_candidate(("steal_q" + std::to_string(quantum)).c_str(), WSGEMM_POLICY_STEAL, quantum, nullptr, p));
  if (has_peer) candidates.push_back({"cuBLAS", "cuBLAS", nullptr});
  return candidates;
}

std::vector<candidate> row_candidates(const product &p) {
  std::vector<candidate> candidates;
  for (int r = 0; r < wsgemm_kernel_count(); r++) {
    wsgemm_kernel_info row = {};
    row.struct_bytes = sizeof row;
    if (wsgemm_get_kernel_info(r, &row) || strcmp(row.backend, "cuda") != 0 || row.type != p.type || !row.is_usable) continue;
    const candidate x = make_candidate("steal_q1", WSGEMM_POLICY_STEAL, 1, row.name, p);
    if (x.kernel == row.name)
      candidates.push_back(x);
    else
      wsgemm_destroy(x.handle);
  }
  return candidates;
}

void free_candidates(const std::vector<candidate> &candidates) {
  for (const candidate &x : candidates)
    if (x.handle) wsgemm_destroy(x.handle);
}

void warm_up_all(const std::vector<candidate> &candidates, product *p) {
  const candidate first = has_peer ? candidate{"cuBLAS", "cuBLAS", nullptr} : candidates[0];
  warm_up(first, p, first);
  for (const candidate &x : candidates) warm_up(x, p, first);
}

/* A line of JSON; theirs (0: none) is cuBLAS's value of the same, in times: a ratio above 1 means
 * that cuBLAS's is worse. */
void record(const char *suite, const product &p, const std::string &name, const candidate &x, double value, const char *unit,
            const char *more_name, double more, double theirs) {
  if (!json) return;
  const char routine[] = {letters[p.type], 'g', 'e', 'm', 'm', 0};
  ws_bench_result line = {};
  line.suite = suite, line.routine = routine, line.case_name = name.c_str(), line.policy = x.policy.c_str();
  line.device = device.name, line.peer = theirs > 0 ? ws_bench_cublas_version() : "none";
  line.ours = value, line.theirs = theirs, line.unit = unit, line.ratio = theirs / value;
  line.commit = commit, line.date = date;
  ws_bench_result_begin(json, &line);
  ws_bench_result_text(json, "kernel", x.kernel.c_str());
  ws_bench_result_number(json, more_name, more);
  ws_bench_result_end(json);
}

void print_head(const std::vector<candidate> &candidates) {
  printf("%-32s", "");
  for (const candidate &x : candidates) printf(" %12s", x.policy.c_str());
  printf("\n");
}

/* A line of the table: a figure for each candidate. */
void print_line(const product &p, const std::string &name, const std::vector<double> &values, const char *unit) {
  printf("%cgemm %-26s", letters[p.type], name.c_str());
  for (const double v : values) printf(" %12.4g", v);
  printf("  %s\n", unit);
  fflush(stdout);
}

/* The line, and one of JSON for each candidate; cuBLAS is the last. */
void report(const product &p, const std::string &name, const std::vector<candidate> &candidates,
            const std::vector<double> &values, const char *unit, const char *more_name, const std::vector<double> &more) {
  print_line(p, name, values, unit);
  for (size_t i = 0; i < candidates.size(); i++)
    record("sharing", p, name, candidates[i], values[i], unit, more_name, more[i], has_peer ? values.back() : 0);
}

std::vector<double> scaled(std::vector<double> values, double by) {
  for (double &v : values) v *= by;
  return values;
}

std::vector<double> first_of(const std::vector<double> &values, size_t n) {
  return {values.begin(), values.begin() + ptrdiff_t(n)};
}

/* Each candidate once, in a new order each time: what ran before leaves its mark on the clocks (a
 * dgemm of 8192 was 12 % slower behind one neighbour than behind another; H200, 2026-11-21). */
std::vector<int> shuffled(size_t n) {
  static uint64_t state = 20260411;
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  ws_random_shuffle(&state, order.data(), int(n));
  return order;
}

/* Medians, the candidates in turn. */
std::vector<double> time_in_turn(const std::vector<candidate> &candidates, const product &p, int n_samples) {
  std::vector<std::vector<double>> ms(candidates.size());
  std::vector<double> medians;
  for (int s = 0; s < n_samples; s++)
    for (const int i : shuffled(candidates.size())) ms[i].push_back(time_once(candidates[i], p));
  for (const std::vector<double> &m : ms) medians.push_back(median_of(m));
  return medians;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

void measure_idle(wsgemm_type type) {
  for (const int64_t n : {1024, 2048, 4096, 8192}) {
    product p = make_product(type, n);
    const std::vector<candidate> candidates = policy_candidates(p);
    warm_up_all(candidates, &p);
    if (n == 1024) print_head(candidates);
    const std::vector<double> ms = time_in_turn(candidates, p, n <= 2048 ? 101 : n <= 4096 ? 31 : 11);
    report(p, "idle n=" + std::to_string(n), candidates, scaled(ms, 1 / ms[fixed_blocks]), "times fixed_blocks", "ms", ms);
    free_candidates(candidates);
    free_product(&p);
  }
}

double ms_since(steady::time_point t) { return std::chrono::duration<double, std::milli>(steady::now() - t).count(); }

/* Milliseconds from before its launch to its end, on the host's clock. */
double time_probe() {
  const steady::time_point begin = steady::now();
  probe<<<unsigned(device.multiProcessorCount), probe_threads, 0, high>>>(probe_out);
  must(cudaStreamSynchronize(high), "probe");
  const double ms = ms_since(begin);
  must(cudaGetLastError(), "probe");
  return ms;
}

/* The probe at a random moment well inside the product, which takes about gemm_ms. */
double time_probe_inside(const candidate &x, const product &p, double moment_ms) {
  prepare(p);
  must(cudaStreamSynchronize(low), "prepare");
  launch(x, p);
  must(cudaEventRecord(after, low), "event");
  for (const steady::time_point begin = steady::now(); ms_since(begin) < moment_ms;) continue;
  must_hold(cudaEventQuery(after) == cudaErrorNotReady,
            x.policy + ": the product had ended before the other kernel was launched");
  cudaGetLastError(); /* "not ready" is no error */
  const double ms = time_probe();
  must(cudaEventSynchronize(after), x.policy.c_str());
  verify(x, p);
  return ms;
}

/* (b) Also what a policy, or a row with a quantum of 1, costs when nobody wants the GPU: times the
 * best of all. */
void measure_priority(wsgemm_type type) {
  constexpr int n_trials = 15;
  /* many milliseconds */
  const int64_t n = type == WSGEMM_F16 || type == WSGEMM_BF16 ? 16384 : 8192;
  product p = make_product(type, n);
  std::vector<candidate> policies = policy_candidates(p), all = policies;
  const std::vector<candidate> rows = row_candidates(p);
  print_head(policies);
  all.insert(all.end(), rows.begin(), rows.end());
  warm_up_all(all, &p);
  const std::vector<double> ms = time_in_turn(all, p, 9);
  std::vector<double> ours(ms);
  if (has_peer) ours.erase(ours.begin() + ptrdiff_t(policies.size()) - 1);
  const double best = *std::min_element(ours.begin(), ours.end());
  std::mt19937 random(20260411);
  std::vector<std::vector<double>> waits(all.size());
  std::vector<double> idle_waits, medians, most;
  for (int t = -1; t < n_trials; t++) {
    const double fraction = 0.15 + 0.6 * (random() * 0x1p-32);
    for (const int i : shuffled(all.size())) {
      const double wait = time_probe_inside(all[i], p, fraction * ms[i]);
      if (t >= 0) waits[i].push_back(wait);
    }
    if (t >= 0) idle_waits.push_back(time_probe());
  }
  for (const std::vector<double> &w : waits) {
    medians.push_back(median_of(w));
    most.push_back(*std::max_element(w.begin(), w.end()));
  }
  const std::string name = "priority n=" + std::to_string(n);
  const std::string cost_name = "cost n=" + std::to_string(n);
  const double idle_wait = median_of(idle_waits), idle_most = *std::max_element(idle_waits.begin(), idle_waits.end());
  printf("%cgemm %s, beside nothing: %.4g ms (max %.4g)\n", letters[type], name.c_str(), idle_wait, idle_most);
  record("sharing", p, name, {"idle", "none", nullptr}, idle_wait, "ms", "max", idle_most, 0);
  const size_t n_policies = policies.size();
  report(p, name, policies, first_of(medians, n_policies), "ms", "max", first_of(most, n_policies));
  print_line(p, name + ", max", first_of(most, n_policies), "ms");
  report(p, cost_name, policies, first_of(scaled(ms, 1 / best), n_policies), "times the best", "ms", first_of(ms, n_policies));
  for (size_t i = n_policies; i < all.size(); i++) {
    printf("%-34s quantum 1: wait %.4g ms (max %.4g), %.4g ms alone, %.4g times the best\n", all[i].kernel.c_str(), medians[i],
           most[i], ms[i], ms[i] / best);
    record("sharing_rows", p, name, all[i], medians[i], "ms", "max", most[i], has_peer ? medians[n_policies - 1] : 0);
    record("sharing_rows", p, cost_name, all[i], ms[i] / best, "times the best", "ms", ms[i],
           has_peer ? ms[n_policies - 1] / best : 0);
  }
  free_candidates(policies);
  free_candidates(rows);
  free_product(&p);
}

struct situation {
  const char *name;
  int n_held;
  bool is_busy;
};

/* Runs body while n_held SMs are not free; they are different ones, and none was left before the
 * end. */
void while_held(const situation &s, const std::function<void()> &body) {
  if (s.n_held > 0) {
    const size_t half = device.sharedMemPerMultiprocessor / 2 - device.reservedSharedMemPerBlock;
    const size_t shared = s.is_busy ? half : device.sharedMemPerBlockOptin;
    must(cudaMemset(words, 0, 2 * sizeof *words), "cudaMemset");
    must(cudaDeviceSynchronize(), "hold");
    hold<<<unsigned(s.n_held), s.is_busy ? 256 : 32, shared, high>>>({words, words + 1, holders, s.is_busy});
    must(cudaGetLastError(), "hold");
    const steady::time_point begin = steady::now();
    for (uint32_t n_begun = 0; n_begun < uint32_t(s.n_held);) {
      must(cudaMemcpyAsync(&n_begun, words + 1, sizeof n_begun, cudaMemcpyDeviceToHost, control), "hold");
      must(cudaStreamSynchronize(control), "hold");
      must_hold(ms_since(begin) < 5000, "not all holders could begin");
    }
  }
  body();
  if (s.n_held > 0) {
    const uint32_t one = 1;
    must(cudaMemcpyAsync(words, &one, sizeof one, cudaMemcpyHostToDevice, control), "release");
    must(cudaStreamSynchronize(control), "release");
    must(cudaStreamSynchronize(high), "release");
    std::vector<holder> seen(static_cast<size_t>(s.n_held));
    must(cudaMemcpy(seen.data(), holders, seen.size() * sizeof seen[0], cudaMemcpyDeviceToHost), "holders");
    std::set<uint32_t> sms;
    for (const holder &h : seen) {
      sms.insert(h.sm);
      must_hold(h.was_released, "a holder did not wait for its release");
    }
    must_hold(int(sms.size()) == s.n_held, "two holders on one SM");
  }
}

/* (c), (d) Ideal: n_sms / (n_sms - n_held) of the time on the idle device, and a little less where
 * power limits the clocks. Uneven: unknown, for a busy kernel takes what it gets. */
void measure_held(wsgemm_type type) {
  constexpr int n_samples = 5;
  const situation situations[] = {
      {"idle", 0, false}, {"held", 8, false}, {"held", 16, false}, {"held", 32, false}, {"uneven", 32, true}};
  for (const int64_t n : {4096, 8192}) {
    if (type == WSGEMM_F64 && n == 4096) continue;
    product p = make_product(type, n);
    const std::vector<candidate> candidates = policy_candidates(p);
    warm_up_all(candidates, &p);
    std::map<const situation *, std::vector<std::vector<double>>> ms;
    for (int t = -1; t < n_samples; t++)
      for (const situation &s : situations) {
        ms[&s].resize(candidates.size());
        while_held(s, [&] {
          for (const int i : shuffled(candidates.size())) {
            const double once = time_once(candidates[i], p);
            if (t >= 0) ms[&s][i].push_back(once);
          }
        });
      }
    std::vector<double> idle_ms;
    print_head(candidates);
    for (const situation &s : situations) {
      std::vector<double> medians, ratios;
      for (const std::vector<double> &m : ms[&s]) medians.push_back(median_of(m));
      if (&s == situations) {
        idle_ms = medians;
        continue;
      }
      for (size_t i = 0; i < candidates.size(); i++) ratios.push_back(medians[i] / idle_ms[i]);
      const double ideal = double(device.multiProcessorCount) / (device.multiProcessorCount - s.n_held);
      const std::string name = std::string(s.name) + " sms=" + std::to_string(s.n_held) + " n=" + std::to_string(n);
      report(p, name, candidates, ratios, "times idle", s.is_busy ? "ms" : "ideal",
             s.is_busy ? medians : std::vector<double>(candidates.size(), ideal));
    }
    free_candidates(candidates);
    free_product(&p);
  }
}

/* ---- Set-up ---------------------------------------------------------------------------------- */

bool parse(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--types"))
      opts.types = argv[i + 1];
    else if (!strcmp(argv[i], "--cases"))
      opts.cases = argv[i + 1];
    else if (!strcmp(argv[i], "--json"))
      opts.json = argv[i + 1];
    else if (!strcmp(argv[i], "--commit"))
      opts.commit = argv[i + 1];
    else
      return false;
  }
  return argc % 2 == 1 && opts.types.find_first_not_of("sdhb") == std::string::npos;
}

bool wants(const char *name) { return opts.cases.find(name) != std::string::npos; }

void open_device() {
  /* a wait is timed on the host's clock */
  must(cudaSetDeviceFlags(cudaDeviceScheduleSpin), "cudaSetDeviceFlags");
  must(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
  int least = 0, greatest = 0;
  must(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities");
  must_hold(least != greatest, "this device has no stream priorities");
  must(cudaStreamCreateWithPriority(&low, cudaStreamNonBlocking, least), "stream");
  must(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, greatest), "stream");
  must(cudaStreamCreateWithFlags(&control, cudaStreamNonBlocking), "stream");
  must(cudaEventCreate(&before), "event");
  must(cudaEventCreate(&after), "event");
  const size_t n_sms = size_t(device.multiProcessorCount), probe_bytes = n_sms * probe_threads * sizeof *probe_out;
  must(cudaMalloc(&n_found, sizeof *n_found), "cudaMalloc");
  must(cudaMalloc(&probe_out, probe_bytes), "cudaMalloc");
  must(cudaMalloc(&words, 2 * sizeof *words), "cudaMalloc");
  must(cudaMalloc(&holders, n_sms * sizeof *holders), "cudaMalloc");
  must(cudaMemset(probe_out, 0, probe_bytes), "cudaMemset");
  must(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, int(device.sharedMemPerBlockOptin)), "hold");
  /* Others' blocks are to fit beside a holder of half the shared memory. */
  must(cudaFuncSetAttribute(hold, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared), "hold");
  has_peer = ws_bench_cublas_open(low);
}

} // namespace

int main(int argc, char **argv) {
  int n_devices = 0;
  if (!parse(argc, argv)) {
    fprintf(stderr, "usage: bench_gpu_sharing [--types sdhb] [--cases idle,priority,held] [--json FILE] [--commit ID]\n");
    return 2;
  }
  if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
    puts("skipped: no GPU");
    return 77;
  }
  ws_bench_commit(opts.commit.c_str(), commit);
  ws_bench_date(date);
  open_device();
  if (!opts.json.empty()) must_hold((json = fopen(opts.json.c_str(), "a")) != nullptr, "cannot open " + opts.json);
  printf("%s, %d SMs, %s\n", device.name, device.multiProcessorCount, has_peer ? ws_bench_cublas_version() : "no cuBLAS");
  for (const char letter : opts.types) {
    const wsgemm_type type = wsgemm_type(strchr(letters, letter) - letters);
    if (wants("idle")) measure_idle(type);
    if (wants("priority")) measure_priority(type);
    if (wants("held")) measure_held(type);
  }
  if (json) must_hold(!(ferror(json) | fclose(json)), "cannot write " + opts.json);
  return 0;
}
