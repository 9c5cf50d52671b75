/* strategies.cu - what each way to hand out blocks' work costs and brings, on data[i] *= alpha
 * where alpha has an expensive prologue: fixed work, fixed blocks, stealing (ticket queue),
 * stealing with a quantum (a block leaves after so many items).
 *
 *   strategies [--json FILE] [--commit ID]        "theirs": fixed blocks in the same case
 *
 * Cases: prologue (its price), priority (how long a kernel of the highest priority waits), uneven
 * (items of cost 1 .. 32), held (some SMs belong to a sleeping kernel). After every launch each
 * element must have been scaled exactly once and the queue must be back at zero, or no figure is
 * given. Needs a GPU that nobody else is using. */
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/harness/clock.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "cuda/ptx/memory.cuh"
#include "cuda/sched/queue.cuh"

namespace {

constexpr int n_threads = 1024;        /* of a block; an item has as many elements */
constexpr int n_shared = 1024;         /* bytes: so that no block fits on an SM that a holder has */
constexpr int64_t max_items = 1 << 17; /* 512 MiB of data */
constexpr uint32_t long_prologue = 64; /* rounds after which the scalar does not move any more */

/* ---- Kernels --------------------------------------------------------------------------------- */

/* n_rounds dependent multiply-adds toward the fixed point 1.5, which is reached exactly in fewer
 * than 32; the compiler cannot know. */
__host__ __device__ float settle(float x, uint32_t n_rounds) {
  for (uint32_t i = 0; i < n_rounds; i++) x = fmaf(x, 0.5f, 0.75f);
  return x;
}

__host__ __device__ float compute_scalar(uint32_t n_rounds) { return settle(1.25f, n_rounds); }

struct scale_args {
  ws_sched_args sched;
  float *data;
  const uint32_t *costs;   /* rounds of each item, or NULL for none */
  uint64_t *first_item_ns; /* when item 0 was begun, or NULL */
  uint32_t prologue;       /* rounds */
};

/* One element a thread and item, as in the example; an item with a cost keeps the block busy before
 * it. */
__global__ void __launch_bounds__(n_threads) vector_scale(const __grid_constant__ scale_args args) {
  const float alpha = compute_scalar(args.prologue);
  ws::sched_queue sched(args.sched);
  sched.for_each_item([&](int64_t item_idx) {
    if (args.first_item_ns && item_idx == 0 && threadIdx.x == 0) *args.first_item_ns = ws::globaltimer();
    const float factor = args.costs ? settle(alpha, args.costs[item_idx]) : alpha;
    args.data[item_idx * n_threads + threadIdx.x] *= factor;
  });
}

__host__ __device__ float initial(int64_t i) { return float(1 + uint32_t(i) * 2654435761u % 1000003u); }

__global__ void fill(float *data) {
  const int64_t i = int64_t(blockIdx.x) * n_threads + threadIdx.x;
  data[i] = initial(i);
}

__global__ void count_wrong(const float *data, float factor, unsigned long long *n_wrong) {
  const int64_t i = int64_t(blockIdx.x) * n_threads + threadIdx.x;
  if (!(data[i] == initial(i) * factor)) atomicAdd(n_wrong, 1ull);
}

struct hold_stamps {
  uint64_t begin_ns, end_ns;
  uint32_t sm;
};

/* Takes an SM through its shared memory and sleeps on a timer (polling memory would disturb the
 * others). */
__global__ void hold(uint64_t n_ns, hold_stamps *stamps) {
  if (threadIdx.x != 0) return;
  const uint64_t begin = ws::globaltimer();
  while (ws::globaltimer() - begin < n_ns) ws::nanosleep(10000);
  stamps[blockIdx.x] = {begin, ws::globaltimer(), ws::smid()};
}

/* ---- Host ------------------------------------------------------------------------------------ */

struct policy {
  const char *name;
  ws_sched sched;
  int64_t quantum;
  int fixed_work;
};

const policy policies[] = {
    {"fixed_work", WS_SCHED_STATIC, 0, 1},
    {"fixed_blocks", WS_SCHED_STATIC, 0, 0},
    {"steal", WS_SCHED_QUEUE, 0, 0},
    {"steal_q8", WS_SCHED_QUEUE, 8, 0},
};
constexpr int n_policies = int(std::size(policies)), fixed_blocks = 1;

void must(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  fprintf(stderr, "strategies: %s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

void must_hold(bool condition, const char *what) {
  if (condition) return;
  fprintf(stderr, "strategies: %s\n", what);
  exit(1);
}

double median_of(std::vector<double> values) { return ws_bench_median(values.data(), int(values.size())); }

double max_of(const std::vector<double> &values) { return *std::max_element(values.begin(), values.end()); }

void sleep_us(int us) { std::this_thread::sleep_for(std::chrono::microseconds(us)); }

struct bench {
  int n_sms, max_shared;
  int64_t n_resident; /* blocks of vector_scale */
  std::string device;
  FILE *json = nullptr;
  char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
  cudaStream_t low, high;
  cudaEvent_t low_begin, low_end, high_begin, high_end;
  float *data, *high_data;
  uint32_t *costs;
  uint64_t *first_item_ns;
  hold_stamps *stamps;
  unsigned long long *n_wrong;
  ws_ticket_queue *queue;

  /* theirs: that of fixed blocks; all values are times, or times over others. 0: there is none. */
  void report(const std::string &name, const char *policy_name, double value, double theirs, const char *unit,
              const char *more_name, double more) const {
    printf("%-22s %-13s %10.4g %s (%s %.4g)\n", name.c_str(), policy_name, value, unit, more_name, more);
    fflush(stdout);
    if (!json) return;
    ws_bench_result line = {};
    line.suite = "strategies", line.routine = "vector_scale", line.case_name = name.c_str(), line.policy = policy_name;
    line.device = device.c_str(), line.peer = theirs > 0 ? "wsgemm fixed_blocks" : "none", line.ours = value, line.unit = unit;
    line.theirs = theirs, line.ratio = theirs / value, line.commit = commit, line.date = date;
    ws_bench_result_begin(json, &line);
    ws_bench_result_number(json, more_name, more);
    ws_bench_result_end(json);
  }
};

template <class T> void allocate(T **p, size_t n) {
  must(cudaMalloc(p, n * sizeof(T)), "cudaMalloc");
  must(cudaMemset(*p, 0, n * sizeof(T)), "cudaMemset");
}

int64_t resident_blocks(int n_sms) {
  int per_sm = 0;
  must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, vector_scale, n_threads, n_shared), "occupancy");
  return int64_t(n_sms) * per_sm;
}

void open_bench(bench *b) {
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  b->device = properties.name;
  b->n_sms = properties.multiProcessorCount;
  b->max_shared = int(properties.sharedMemPerBlockOptin);
  b->n_resident = resident_blocks(b->n_sms);
  must(cudaFuncSetAttribute(hold, cudaFuncAttributeMaxDynamicSharedMemorySize, b->max_shared), "shared memory of hold");
  int least = 0, greatest = 0;
  must(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities");
  must_hold(least != greatest, "this device has no stream priorities");
  must(cudaStreamCreateWithPriority(&b->low, cudaStreamNonBlocking, least), "stream");
  must(cudaStreamCreateWithPriority(&b->high, cudaStreamNonBlocking, greatest), "stream");
  for (cudaEvent_t *event : {&b->low_begin, &b->low_end, &b->high_begin, &b->high_end}) must(cudaEventCreate(event), "event");
  allocate(&b->data, max_items * n_threads);
  allocate(&b->high_data, size_t(b->n_sms) * n_threads);
  allocate(&b->costs, max_items);
  allocate(&b->first_item_ns, 1);
  allocate(&b->stamps, size_t(b->n_sms));
  allocate(&b->n_wrong, 1);
  allocate(&b->queue, 1);
  must(cudaDeviceSynchronize(), "set-up");
}

struct work {
  int64_t n_items;
  uint32_t prologue; /* with costs: long_prologue, so that the factor does not depend on them */
  bool has_costs;
};

void set_costs(const bench &b, const std::vector<uint32_t> &costs) {
  must_hold(int64_t(costs.size()) <= max_items, "too many items");
  must(cudaMemcpy(b.costs, costs.data(), costs.size() * sizeof(uint32_t), cudaMemcpyHostToDevice), "copy of costs");
}

void prepare(const bench &b, float *data, int64_t n_items) {
  must_hold(n_items <= max_items, "too many items");
  fill<<<unsigned(n_items), n_threads>>>(data);
  must(cudaGetLastError(), "launch of fill");
  must(cudaMemset(b.first_item_ns, 0, sizeof(uint64_t)), "cudaMemset");
  must(cudaDeviceSynchronize(), "fill");
}

void launch(const bench &b, const policy &p, const work &w, float *data, cudaStream_t stream) {
  scale_args args = {};
  args.sched = {uint32_t(w.n_items), uint32_t(p.quantum), p.sched == WS_SCHED_QUEUE ? b.queue : nullptr};
  args.data = data;
  args.costs = w.has_costs ? b.costs : nullptr;
  args.first_item_ns = data == b.data ? b.first_item_ns : nullptr;
  args.prologue = w.prologue;
  const int64_t n_blocks = ws_sched_grid(p.sched, w.n_items, b.n_resident, p.quantum, p.fixed_work);
  vector_scale<<<unsigned(n_blocks), n_threads, n_shared, stream>>>(args);
  must(cudaGetLastError(), p.name);
}

/* Waits for the device; what the launch of w on data must have left. */
void verify(const bench &b, const policy &p, const work &w, float *data) {
  must(cudaDeviceSynchronize(), p.name);
  unsigned long long n_wrong = 0;
  ws_ticket_queue queue;
  must(cudaMemset(b.n_wrong, 0, sizeof n_wrong), "cudaMemset");
  count_wrong<<<unsigned(w.n_items), n_threads>>>(data, compute_scalar(w.prologue), b.n_wrong);
  must(cudaGetLastError(), "launch of count_wrong");
  must(cudaMemcpy(&n_wrong, b.n_wrong, sizeof n_wrong, cudaMemcpyDeviceToHost), "count_wrong");
  must(cudaMemcpy(&queue, b.queue, sizeof queue, cudaMemcpyDeviceToHost), "copy of the queue");
  if (n_wrong == 0 && queue.next == 0 && queue.n_left == 0) return;
  fprintf(stderr, "strategies: %s, %lld items: %llu elements wrong, queue left at %u, %u\n", p.name, (long long)w.n_items,
          n_wrong, queue.next, queue.n_left);
  exit(1);
}

double elapsed_ms(cudaEvent_t begin, cudaEvent_t end) {
  float ms = 0;
  must(cudaEventElapsedTime(&ms, begin, end), "event");
  return ms;
}

/* Milliseconds of one verified launch. */
double time_once(const bench &b, const policy &p, const work &w) {
  prepare(b, b.data, w.n_items);
  must(cudaEventRecord(b.low_begin, b.low), "event");
  launch(b, p, w, b.data, b.low);
  must(cudaEventRecord(b.low_end, b.low), "event");
  verify(b, p, w, b.data);
  return elapsed_ms(b.low_begin, b.low_end);
}

/* The policies in turn, n_samples times after one warm-up. */
std::vector<double> medians_in_turn(const bench &b, const work &w, int n_samples) {
  std::vector<double> samples[n_policies], medians;
  for (int i = -1; i < n_samples; i++) {
    for (int p = 0; p < n_policies; p++) {
      const double ms = time_once(b, policies[p], w);
      if (i >= 0) samples[p].push_back(ms);
    }
  }
  for (const std::vector<double> &s : samples) medians.push_back(median_of(s));
  return medians;
}

/* ---- Cases ----------------------------------------------------------------------------------- */

/* (a) The same 256 MiB under prologues of several lengths. */
void measure_prologue(const bench &b) {
  std::vector<double> without;
  for (const uint32_t prologue : {0u, 64u, 256u, 1024u, 4096u}) {
    const std::vector<double> ms = medians_in_turn(b, {1 << 16, prologue, false}, 11);
    if (prologue == 0) without = ms;
    for (int p = 0; p < n_policies; p++)
      b.report("prologue rounds=" + std::to_string(prologue), policies[p].name, ms[p], ms[fixed_blocks], "ms",
               "times_no_prologue", ms[p] / without[p]);
  }
}

/* (b) From the launch of a small kernel in the stream of the highest priority to its end, while the
 * other runs (about 30 ms, items of about 70 us). Both events are in the high stream: the first is
 * recorded at once, for that stream has nothing before it. */
void measure_priority(const bench &b) {
  constexpr int n_trials = 31;
  const work low_work = {std::min(b.n_resident * 400, max_items), long_prologue, true},
             high_work = {b.n_sms, long_prologue, false};
  const policy &small = policies[0]; /* fixed work */
  set_costs(b, std::vector<uint32_t>(size_t(low_work.n_items), 8192));
  /* the last: beside nothing */
  std::vector<double> latency_us[n_policies + 1], low_ms[n_policies + 1];
  for (int i = -1; i < n_trials; i++) {
    for (int p = 0; p <= n_policies; p++) {
      const bool is_beside = p < n_policies;
      prepare(b, b.high_data, high_work.n_items);
      prepare(b, b.data, low_work.n_items);
      must(cudaEventRecord(b.low_begin, b.low), "event");
      if (is_beside) launch(b, policies[p], low_work, b.data, b.low);
      must(cudaEventRecord(b.low_end, b.low), "event");
      sleep_us(3000 + 137 * (i + 1)); /* another moment in each trial */
      must(cudaEventRecord(b.high_begin, b.high), "event");
      launch(b, small, high_work, b.high_data, b.high);
      must(cudaEventRecord(b.high_end, b.high), "event");
      must(cudaDeviceSynchronize(), "priority");
      verify(b, small, high_work, b.high_data);
      if (is_beside) {
        verify(b, policies[p], low_work, b.data);
        must_hold(elapsed_ms(b.low_begin, b.high_begin) > 0 && elapsed_ms(b.high_begin, b.low_end) > 0,
                  "the kernel of high priority was not launched while the other ran");
      }
      if (i < 0) continue;
      latency_us[p].push_back(elapsed_ms(b.high_begin, b.high_end) * 1e3);
      low_ms[p].push_back(elapsed_ms(b.low_begin, b.low_end));
    }
  }
  for (int p = 0; p <= n_policies; p++) {
    const char *name = p < n_policies ? policies[p].name : "idle";
    b.report("priority latency", name, median_of(latency_us[p]), p < n_policies ? median_of(latency_us[fixed_blocks]) : 0, "us",
             "max", max_of(latency_us[p]));
    if (p < n_policies)
      b.report("priority low kernel", name, median_of(low_ms[p]), median_of(low_ms[fixed_blocks]), "ms", "max",
               max_of(low_ms[p]));
  }
}

/* (c) Items of 1 .. 32 units, few of them long (a uniform number to the fourth power), in random
 * order and the long ones last. Ideal: as many rounds in equal items, as many for each block (fixed
 * blocks). */
void measure_uneven(const bench &b) {
  constexpr uint32_t unit_rounds = 512;
  constexpr int n_samples = 21;
  const work w = {b.n_resident * 64, long_prologue, true};
  std::vector<uint32_t> uneven(static_cast<size_t>(w.n_items)), even(uneven.size());
  std::mt19937 random(20260411);
  uint64_t total = 0;
  for (uint32_t &cost : uneven) {
    cost = unit_rounds * (1 + uint32_t(31.999 * std::pow(random() * 0x1p-32, 4)));
    total += cost;
  }
  for (size_t i = 0; i < even.size(); i++) even[i] = uint32_t(total / even.size() + (i < total % even.size()));
  std::vector<uint32_t> ascending = uneven;
  std::sort(ascending.begin(), ascending.end());
  double ideal_ms = 0;
  for (const auto &[name, costs] : {std::pair{"uneven none", even}, {"uneven random", uneven}, {"uneven ascending", ascending}}) {
    set_costs(b, costs);
    const std::vector<double> ms = medians_in_turn(b, w, n_samples);
    if (ideal_ms == 0) ideal_ms = ms[fixed_blocks];
    for (int p = 0; p < n_policies; p++)
      b.report(name, policies[p].name, ms[p] / ideal_ms, ms[fixed_blocks] / ideal_ms, "times ideal", "ms", ms[p]);
  }
}

/* One launch while n_held SMs sleep; the stamps prove that they did, from before its first item
 * until after its end. */
double time_held(const bench &b, const policy &p, const work &w, int n_held, uint64_t hold_ns) {
  prepare(b, b.data, w.n_items);
  hold<<<n_held, 32, b.max_shared, b.high>>>(hold_ns, b.stamps);
  must(cudaGetLastError(), "launch of hold");
  sleep_us(1000);
  must(cudaEventRecord(b.low_begin, b.low), "event");
  launch(b, p, w, b.data, b.low);
  must(cudaEventRecord(b.low_end, b.low), "event");
  verify(b, p, w, b.data);
  const double ms = elapsed_ms(b.low_begin, b.low_end);
  std::vector<hold_stamps> stamps(static_cast<size_t>(n_held));
  uint64_t first_item_ns = 0;
  must(cudaMemcpy(stamps.data(), b.stamps, stamps.size() * sizeof stamps[0], cudaMemcpyDeviceToHost), "copy of stamps");
  must(cudaMemcpy(&first_item_ns, b.first_item_ns, sizeof first_item_ns, cudaMemcpyDeviceToHost), "copy of stamps");
  std::set<uint32_t> sms;
  for (const hold_stamps &s : stamps) {
    sms.insert(s.sm);
    must_hold(s.begin_ns < first_item_ns && first_item_ns + uint64_t(ms * 1e6) < s.end_ns, "an SM was not held all the time");
  }
  must_hold(int(sms.size()) == n_held, "two holders on one SM");
  return ms;
}

/* (d) Equal items with 8, 16, 32 SMs held. Ideal: n_sms / (n_sms - n_held) of the time on the idle
 * device. */
void measure_held(const bench &b) {
  constexpr int n_trials = 11;
  const work w = {b.n_resident * 64, long_prologue, true};
  set_costs(b, std::vector<uint32_t>(size_t(w.n_items), 8192));
  const std::vector<double> idle_ms = medians_in_turn(b, w, n_trials);
  for (int p = 0; p < n_policies; p++)
    b.report("held sms=0", policies[p].name, idle_ms[p], idle_ms[fixed_blocks], "ms", "sms", b.n_sms);
  const uint64_t hold_ns = uint64_t((5 * *std::max_element(idle_ms.begin(), idle_ms.end()) + 5) * 1e6);
  for (const int n_held : {8, 16, 32}) {
    if (n_held >= b.n_sms) continue;
    const double ideal = double(b.n_sms) / (b.n_sms - n_held);
    std::vector<double> samples[n_policies];
    for (int i = -1; i < n_trials; i++) {
      for (int p = 0; p < n_policies; p++) {
        const double ms = time_held(b, policies[p], w, n_held, hold_ns);
        if (i >= 0) samples[p].push_back(ms);
      }
    }
    for (int p = 0; p < n_policies; p++) {
      const double ratio = median_of(samples[p]) / idle_ms[p];
      must_hold(ratio > 0.9 * ideal, "faster than the free SMs can be: the held ones took part");
      b.report("held sms=" + std::to_string(n_held), policies[p].name, ratio,
               median_of(samples[fixed_blocks]) / idle_ms[fixed_blocks], "times idle", "ideal", ideal);
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  const char *path = nullptr, *commit = nullptr;
  for (int i = 1; i < argc; i += 2) {
    const char **value = !strcmp(argv[i], "--json") ? &path : !strcmp(argv[i], "--commit") ? &commit : nullptr;
    if (!value || i + 1 == argc) {
      fprintf(stderr, "usage: strategies [--json FILE] [--commit ID]\n");
      return 2;
    }
    *value = argv[i + 1];
  }
  bench b;
  ws_bench_commit(commit, b.commit);
  ws_bench_date(b.date);
  open_bench(&b);
  if (path && !(b.json = fopen(path, "a"))) {
    fprintf(stderr, "strategies: cannot open %s: %s\n", path, strerror(errno));
    return 1;
  }
  printf("%s, %d SMs, %lld blocks of %d threads fit\n", b.device.c_str(), b.n_sms, (long long)b.n_resident, n_threads);
  measure_prologue(b);
  measure_priority(b);
  measure_uneven(b);
  measure_held(b);
  if (b.json && (ferror(b.json) | fclose(b.json))) {
    fprintf(stderr, "strategies: cannot write %s\n", path);
    return 1;
  }
  return 0;
}
