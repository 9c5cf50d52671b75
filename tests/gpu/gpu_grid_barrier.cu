/* gpu_grid_barrier.cu - cuda/grid_barrier.* on a GPU: what one block wrote before a barrier is what
 * all others read after it (a litmus test through lines that the reader's L1 holds), no block runs
 * ahead, the state serves launch after launch, and the host's check refuses what would hang.
 *
 *   nvcc -std=c++17 -O2 -gencode arch=compute_90a,code=sm_90a -I . -I src
 *   tests/gpu/gpu_grid_barrier.cu -o gpu_grid_barrier
 *
 * One line for each case; exit 0 if all passed, 1 if not (also when a barrier hangs), 77 without a
 * GPU. WSGEMM_TEST_SCALE=s in the environment runs one part in s of the rounds. Needs a GPU that
 * nobody else is using: a barrier waits for blocks to be placed. */
#include <algorithm>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <unistd.h>
#include <vector>

#include "cuda/sched/grid_barrier.cuh"

using ws::barrier_order;

namespace {

constexpr int exit_skipped = 77;
constexpr unsigned max_seconds = 420; /* all cases together take about a minute (estimated) */
int n_failed = 0, n_cases = 0;

/* One line for a case. */
__attribute__((format(printf, 2, 3))) void report(bool passed, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  printf("%s ", passed ? "ok    " : "FAILED");
  vprintf(format, arguments);
  printf("\n");
  fflush(stdout);
  va_end(arguments);
  n_cases++;
  n_failed += !passed;
}

void must(cudaError_t status, const char *what) {
  if (status == cudaSuccess) return;
  printf("FAILED %s: %s\n", what, cudaGetErrorString(status));
  exit(1);
}

void on_alarm(int) {
  const char text[] = "FAILED a barrier hangs, or the GPU is not ours alone: time is up\n";
  if (write(STDOUT_FILENO, text, sizeof text - 1) < 0) _exit(2);
  _exit(1);
}

template <class T> T *device_zeros(size_t n) {
  T *p = nullptr;
  must(cudaMalloc(&p, n * sizeof(T)), "cudaMalloc");
  must(cudaMemset(p, 0, n * sizeof(T)), "cudaMemset");
  return p;
}

template <class T> std::vector<T> host_copy(const T *p, size_t n) {
  std::vector<T> copy(n);
  must(cudaMemcpy(copy.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost), "copy from the device");
  return copy;
}

struct device {
  int n_sms, max_shared, shared_per_sm; /* bytes: of one block (opt-in), of an SM */
  uint32_t scale;
};

/* Dynamic shared memory of which one block fits on an SM and two do not. */
int shared_for_one(const device &gpu) { return std::min(gpu.max_shared, gpu.shared_per_sm / 2 + 1024); }

template <class Kernel> int64_t resident_blocks(const device &gpu, Kernel kernel, int n_threads, int n_shared) {
  int per_sm = 0;
  must(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, gpu.max_shared), "shared memory of a kernel");
  must(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, kernel, n_threads, n_shared), "occupancy");
  return int64_t(gpu.n_sms) * per_sm;
}

/* Whether no arrival is left over in the state: then the next launch finds it as it must be. */
bool is_at_rest(const ws_grid_barrier *state) { return (host_copy(state, 1)[0].word & ~WS_GRID_BARRIER_SENSE) == 0; }

/* ---- 1. Litmus: message passing between blocks of different SMs ------------------------------ */

enum { count_stale, count_foreign, count_bad_rounds, count_oldest, n_counts };

struct litmus_args {
  ws_grid_barrier *barrier;
  uint32_t *slots; /* [ring][block][word], a word every `stride` words */
  unsigned long long *counts;
  uint32_t *smids; /* [block] */
  uint32_t first_round, n_rounds;
  uint32_t n_words, stride, ring;
  uint32_t n_warm; /* how many places of the ring are read before the first round */
  bool by_ca;      /* the readers' instruction: ld.weak.ca, or the plain ld.weak */
};

__host__ __device__ uint32_t message(uint32_t round, uint32_t block, uint32_t word) {
  return round + block * 0x01000193u + word * 0x9E3779B1u;
}

__device__ uint32_t *place(const litmus_args &args, uint32_t ring_idx, uint32_t block, uint32_t word) {
  return args.slots + (size_t(ring_idx * gridDim.x + block) * args.n_words + word) * args.stride;
}

__device__ uint32_t read_word(const litmus_args &args, const uint32_t *p) {
  return args.by_ca ? ws::ld_weak_ca(p) : ws::ld_weak(p);
}

/* Before any round: messages of round 0 everywhere. */
__global__ void litmus_fill(const __grid_constant__ litmus_args args) {
  for (uint32_t ring_idx = 0; ring_idx < args.ring; ring_idx++)
    for (uint32_t word = threadIdx.x; word < args.n_words; word += blockDim.x)
      *place(args, ring_idx, blockIdx.x, word) = message(0, blockIdx.x, word);
}

/* A round: every block writes its message, all meet, every block reads the messages of all others;
 * each thread reads words that other threads wrote. What makes an old value visible if the barrier
 * under test (ORDER) orders too little:
 *
 *     write r | barrier under test | read r, vote | separator | write r + 1 | barrier under test | read r + 1, vote | ..
 *                                    the reader's L1 holds the line from here to here ------------^ and hits it, unless emptied
 *
 * The separator keeps a writer from overwriting what is still being read. It is relaxed in both
 * runs, because an acquire in it would empty the reader's L1 for the barrier under test. No order
 * is needed there: the vote needs the loaded values, so the loads are over. Without SEPARATED there
 * are two buffers in turn and only the barrier under test, as a program would use it. */
template <barrier_order ORDER, bool SEPARATED> __global__ void litmus(const __grid_constant__ litmus_args args) {
  const uint32_t me = blockIdx.x, n_blocks = gridDim.x;
  const uint32_t n_reads = (n_blocks - 1) * args.n_words;
  unsigned long long n_stale = 0, n_foreign = 0;
  uint32_t n_bad_rounds = 0, oldest = 0, warm = 0;
  if (threadIdx.x == 0) args.smids[me] = ws::smid();
  for (uint32_t ring_idx = 0; ring_idx < args.n_warm; ring_idx++)
    for (uint32_t i = threadIdx.x; i < n_reads; i += blockDim.x)
      warm |= read_word(args, place(args, ring_idx, (me + 1 + i / args.n_words) % n_blocks, i % args.n_words));
  if (__syncthreads_or(warm != 0) && args.n_rounds == 0) return; /* the values are there */
  ws::grid_sync<barrier_order::relaxed>(args.barrier, n_blocks);

  for (uint32_t round = args.first_round; round < args.first_round + args.n_rounds; round++) {
    const uint32_t ring_idx = round % args.ring;
    for (uint32_t word = threadIdx.x; word < args.n_words; word += blockDim.x)
      ws::st_weak(place(args, ring_idx, me, word), message(round, me, word));
    ws::grid_sync<ORDER>(args.barrier, n_blocks);
    bool is_bad = false;
    for (uint32_t i = threadIdx.x; i < n_reads; i += blockDim.x) {
      const uint32_t other = (me + 1 + i / args.n_words) % n_blocks, word = args.n_words - 1 - i % args.n_words;
      const uint32_t seen = read_word(args, place(args, ring_idx, other, word)) - message(0, other, word);
      if (seen == round) continue;
      is_bad = true;
      if (seen < round) {
        n_stale++;
        oldest = max(oldest, round - seen);
      } else {
        n_foreign++; /* a later round, or no message at all: wrong under any order */
      }
    }
    n_bad_rounds += __syncthreads_or(is_bad) != 0;
    if constexpr (SEPARATED) ws::grid_sync<barrier_order::relaxed>(args.barrier, n_blocks);
  }
  if (n_stale > 0) atomicAdd(&args.counts[count_stale], n_stale);
  if (n_foreign > 0) atomicAdd(&args.counts[count_foreign], n_foreign);
  if (threadIdx.x == 0) atomicAdd(&args.counts[count_bad_rounds], (unsigned long long)n_bad_rounds);
  if (oldest > 0) atomicMax(&args.counts[count_oldest], (unsigned long long)oldest);
}

enum class blocks { pair, one_per_sm, all_resident };

struct litmus_case {
  const char *name;
  blocks n_blocks;
  int n_threads;
  uint32_t n_words, stride, ring;
  bool by_ca;
  bool is_separated;
  bool is_held; /* the reader's L1 holds the lines */
  /* relaxed order must let old values through, or the test is blind; else they are only reported */
  bool must_show;
  uint32_t n_rounds;
};

constexpr uint32_t line = 32;                     /* words in a line of 128 bytes */
constexpr uint32_t max_rounds_of_launch = 250000; /* about a second */

/* In the fifth the reader's own store goes to the line that it holds; in the sixth the L1 has long
 * replaced the line, so that only a late store could show. */
const litmus_case litmus_cases[] = {
    {"pair, 1 word, held in L1", blocks::pair, 32, 1, line, 1, false, true, true, true, 1000000},
    {"pair, 1 word, held in L1, ld.ca", blocks::pair, 32, 1, line, 1, true, true, true, true, 250000},
    {"pair, 1024 words of 32 lines, held in L1", blocks::pair, 1024, 1024, 1, 1, false, true, true, true, 250000},
    {"pair, 64 words of 64 lines, two buffers, one barrier a round", blocks::pair, 64, 64, line, 2, false, false, true, true,
     250000},
    {"pair, both words in one line", blocks::pair, 32, 1, 1, 1, false, true, true, false, 250000},
    {"pair, 256 words of 256 lines, last read 64 rounds ago", blocks::pair, 256, 256, line, 64, false, true, false, false,
     250000},
    {"every SM, one block each", blocks::one_per_sm, 256, 1, line, 1, false, true, true, true, 100000},
    {"every SM x occupancy, 1024 threads", blocks::all_resident, 1024, 1, line, 1, false, true, true, true, 50000},
    {"every SM x occupancy, 256 threads, ld.ca", blocks::all_resident, 256, 1, line, 1, true, true, true, true, 50000},
};

template <barrier_order ORDER, bool SEPARATED> void run_litmus(const device &gpu, const litmus_case &c) {
  const auto kernel = litmus<ORDER, SEPARATED>;
  const int n_shared = c.n_blocks == blocks::all_resident ? 0 : shared_for_one(gpu);
  const int64_t n_resident = resident_blocks(gpu, kernel, c.n_threads, n_shared);
  const uint32_t n_sms = uint32_t(gpu.n_sms);
  const uint32_t n_blocks = c.n_blocks == blocks::pair ? 2 : c.n_blocks == blocks::one_per_sm ? n_sms : uint32_t(n_resident);
  if (!ws_grid_barrier_fits(n_blocks, gpu.n_sms, int(n_resident / n_sms)))
    return report(false, "litmus, %s: %u blocks do not fit", c.name, n_blocks);
  const uint32_t n_rounds = std::max(c.n_rounds / gpu.scale, 1000u);
  litmus_args args = {};
  args.barrier = device_zeros<ws_grid_barrier>(1);
  args.slots = device_zeros<uint32_t>(size_t(c.ring) * n_blocks * c.n_words * c.stride);
  args.counts = device_zeros<unsigned long long>(n_counts);
  args.smids = device_zeros<uint32_t>(n_blocks);
  args.n_words = c.n_words;
  args.stride = c.stride;
  args.ring = c.ring;
  args.n_warm = c.is_held ? c.ring : 0;
  args.by_ca = c.by_ca;
  litmus_fill<<<n_blocks, 256>>>(args);
  must(cudaGetLastError(), "launch of litmus_fill");

  size_t fewest_sms = SIZE_MAX;
  for (uint32_t done = 0; done < n_rounds; done += args.n_rounds) {
    args.first_round = done + 1;
    args.n_rounds = std::min(n_rounds - done, max_rounds_of_launch);
    kernel<<<n_blocks, c.n_threads, n_shared>>>(args);
    must(cudaGetLastError(), "launch of litmus");
    must(cudaDeviceSynchronize(), "litmus");
    const std::vector<uint32_t> smids = host_copy(args.smids, n_blocks);
    fewest_sms = std::min(fewest_sms, std::set<uint32_t>(smids.begin(), smids.end()).size());
  }
  const std::vector<unsigned long long> counts = host_copy(args.counts, n_counts);
  const unsigned long long n_stale = counts[count_stale], n_reads = 1ull * n_rounds * n_blocks * (n_blocks - 1) * c.n_words;
  const bool is_ordered = ORDER == barrier_order::ordered, is_spread = fewest_sms == std::min(n_blocks, n_sms);
  const char *note = "";
  bool passed = false;
  if (!is_spread)
    note = "; THE BLOCKS WERE NOT ON DIFFERENT SMS";
  else if (counts[count_foreign] > 0 || !is_at_rest(args.barrier))
    note = "; WRONG UNDER ANY ORDER";
  else if (is_ordered && n_stale > 0)
    note = "; THE BARRIER LETS OLD VALUES THROUGH";
  else if (!is_ordered && c.must_show && n_stale == 0)
    note = "; THIS TEST IS BLIND";
  else
    passed = true;
  report(passed,
         "litmus, %s, %s: %u blocks on %zu SMs, %u rounds, %llu reads, %llu old (%.3f %%; in %llu block-rounds, oldest by %llu), "
         "%llu foreign%s%s",
         is_ordered ? "ordered" : "relaxed", c.name, n_blocks, fewest_sms, n_rounds, n_reads, n_stale,
         100.0 * double(n_stale) / double(n_reads), counts[count_bad_rounds], counts[count_oldest], counts[count_foreign],
         is_ordered || c.must_show ? "" : " (only reported)", note);
  for (void *p : {(void *)args.barrier, (void *)args.slots, (void *)args.counts, (void *)args.smids})
    must(cudaFree(p), "cudaFree");
}

void test_litmus(const device &gpu) {
  for (const litmus_case &c : litmus_cases) {
    if (c.is_separated) {
      run_litmus<barrier_order::ordered, true>(gpu, c);
      run_litmus<barrier_order::relaxed, true>(gpu, c);
    } else {
      run_litmus<barrier_order::ordered, false>(gpu, c);
      run_litmus<barrier_order::relaxed, false>(gpu, c);
    }
  }
}

/* ---- 2. Counting: nobody runs ahead, nobody is left behind ----------------------------------- */

struct count_args {
  ws_grid_barrier *barrier;
  uint32_t *n_arrived; /* 0 at the launch */
  unsigned long long *n_wrong;
  uint64_t *stamps; /* first and last time, or NULL */
  uint32_t n_rounds;
};

/* In each round one thread of every block, another each time, comes late and counts itself; after
 * the barrier all threads see n_blocks * round, through an L1 that holds the count of the round
 * before. A block that did not wait for its own threads, or a barrier that did not wait for a
 * block, counts too few; one that let a block run ahead counts too many. An odd number of barriers,
 * so that launches begin with either sense. */
__global__ void count_arrivals(const __grid_constant__ count_args args) {
  const uint32_t n_blocks = gridDim.x;
  const bool has_stamps = args.stamps != nullptr && blockIdx.x == 0 && threadIdx.x == 0;
  unsigned long long n_wrong = 0;
  if (has_stamps) args.stamps[0] = ws::globaltimer();
  ws::grid_sync(args.barrier, n_blocks);
  for (uint32_t round = 1; round <= args.n_rounds; round++) {
    if (threadIdx.x == (round * 37 + blockIdx.x) % blockDim.x) {
      if (round % 4 == 0) ws::nanosleep((round + blockIdx.x * 5) % 16 * 100);
      ws::atom_add_relaxed_gpu(args.n_arrived, 1);
    }
    ws::grid_sync(args.barrier, n_blocks);
    n_wrong += ws::ld_weak(args.n_arrived) != n_blocks * round;
    ws::grid_sync(args.barrier, n_blocks);
  }
  if (n_wrong > 0) atomicAdd(args.n_wrong, n_wrong);
  if (has_stamps) args.stamps[1] = ws::globaltimer();
}

struct counting {
  count_args args = {};
  counting() {
    args.barrier = device_zeros<ws_grid_barrier>(1);
    args.n_arrived = device_zeros<uint32_t>(1);
    args.n_wrong = device_zeros<unsigned long long>(1);
    args.stamps = device_zeros<uint64_t>(2);
  }
  ~counting() {
    for (void *p : {(void *)args.barrier, (void *)args.n_arrived, (void *)args.n_wrong, (void *)args.stamps})
      must(cudaFree(p), "cudaFree");
  }
  void launch(uint32_t n_blocks, int n_threads, uint32_t n_rounds, cudaStream_t stream) {
    args.n_rounds = n_rounds;
    must(cudaMemsetAsync(args.n_arrived, 0, sizeof *args.n_arrived, stream), "cudaMemsetAsync");
    count_arrivals<<<n_blocks, n_threads, 0, stream>>>(args);
    must(cudaGetLastError(), "launch of count_arrivals");
  }
  /* Waits; whether the last launch counted right in all rounds, and all launches saw right
   * counts. */
  bool is_right(uint32_t n_blocks) {
    must(cudaDeviceSynchronize(), "count_arrivals");
    return host_copy(args.n_wrong, 1)[0] == 0 && host_copy(args.n_arrived, 1)[0] == n_blocks * args.n_rounds &&
           is_at_rest(args.barrier);
  }
};

void test_counting(const device &gpu) {
  std::vector<int> sizes = {33, 95, 1000}; /* the last warp is not full */
  for (int n_threads = 32; n_threads <= 1024; n_threads += 32) sizes.push_back(n_threads);
  for (const int n_threads : sizes) {
    const uint32_t n_resident = uint32_t(resident_blocks(gpu, count_arrivals, n_threads, 0)), n_sms = uint32_t(gpu.n_sms);
    std::vector<uint32_t> n_blocks = {1, 2, 3, n_sms - 1, n_sms, n_sms + 1, n_resident / 2 + 1, n_resident - 1, n_resident};
    if (n_threads == 1024) {
      n_blocks.clear();
      for (uint32_t n = 1; n <= n_resident; n++) n_blocks.push_back(n);
    }
    counting count; /* one state for all */
    uint32_t n_launches = 0, n_bad = 0;
    for (const uint32_t n : n_blocks) {
      if (n < 1 || n > n_resident) continue;
      count.launch(n, n_threads, 16, nullptr);
      n_launches++;
      n_bad += !count.is_right(n);
    }
    report(n_bad == 0 && n_launches > 0,
           "counting, blocks of %d threads: %u numbers of blocks up to %u, 16 rounds each, %u wrong", n_threads, n_launches,
           n_resident, n_bad);
  }
}

/* ---- 3. One state for many launches; two states at once -------------------------------------- */

void test_reuse(const device &gpu) {
  counting count;
  const uint32_t n_launches = std::max(5000 / gpu.scale, 100u);
  uint32_t n_blocks = 0;
  for (uint32_t i = 0; i < n_launches; i++) { /* no wait in between */
    const int n_threads = 32 * (1 + int(i * 7 % 32));
    n_blocks = 1 + i * 53 % uint32_t(resident_blocks(gpu, count_arrivals, n_threads, 0));
    count.launch(n_blocks, n_threads, 1 + i % 3, nullptr);
  }
  report(count.is_right(n_blocks), "reuse: %u launches of other shapes one after the other with one state", n_launches);

  cudaStream_t streams[2];
  for (cudaStream_t &stream : streams) must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  const uint32_t n_resident = uint32_t(resident_blocks(gpu, count_arrivals, 1024, 0));
  for (const uint32_t n_first : {n_resident / 2, n_resident / 4, 2u}) {
    counting two[2];
    const uint32_t n[2] = {n_first, n_resident - n_first};
    const uint32_t n_rounds = std::max(10000 / gpu.scale, 500u);
    must(cudaDeviceSynchronize(), "reuse");
    for (int i = 0; i < 2; i++) two[i].launch(n[i], 1024, n_rounds, streams[i]);
    const bool first_right = two[0].is_right(n[0]), second_right = two[1].is_right(n[1]);
    const std::vector<uint64_t> a = host_copy(two[0].args.stamps, 2), b = host_copy(two[1].args.stamps, 2);
    const double together = double(int64_t(std::min(a[1], b[1]) - std::max(a[0], b[0])));
    const double shorter = double(int64_t(std::min(a[1] - a[0], b[1] - b[0])));
    report(first_right && second_right && together > 0.5 * shorter && shorter > 0,
           "two streams, two states, %u + %u blocks: counts %s and %s, together for %.1f of %.1f ms", n[0], n[1],
           first_right ? "right" : "WRONG", second_right ? "right" : "WRONG", together * 1e-6, shorter * 1e-6);
  }
  for (cudaStream_t stream : streams) must(cudaStreamDestroy(stream), "stream");
}

/* ---- 4. The host's check, against the occupancy calculator and against what a cooperative launch refuses  */

void test_fits(const device &gpu) {
  for (const int n_threads : {32, 128, 256, 512, 1024}) {
    for (const int n_shared : {0, 48 << 10, gpu.max_shared}) {
      const int per_sm = int(resident_blocks(gpu, count_arrivals, n_threads, n_shared) / gpu.n_sms);
      const int64_t n = int64_t(gpu.n_sms) * per_sm;
      const bool is_said = ws_grid_barrier_fits(n, gpu.n_sms, per_sm) == 1 && ws_grid_barrier_fits(n + 1, gpu.n_sms, per_sm) == 0;
      counting count;
      count.args.n_rounds = 4;
      void *arguments[] = {&count.args};
      const cudaError_t fits = cudaLaunchCooperativeKernel((const void *)count_arrivals, dim3(unsigned(n)), dim3(n_threads),
                                                           arguments, n_shared, nullptr);
      const bool is_right = fits == cudaSuccess && count.is_right(uint32_t(n));
      const cudaError_t one_more = cudaLaunchCooperativeKernel((const void *)count_arrivals, dim3(unsigned(n + 1)),
                                                               dim3(n_threads), arguments, n_shared, nullptr);
      cudaGetLastError(); /* the refusal is not an error of the next launch */
      report(per_sm > 0 && is_said && is_right && one_more == cudaErrorCooperativeLaunchTooLarge,
             "fits: %d threads, %d bytes: %lld blocks %s (launch: %s), one more %s (launch: %s)", n_threads, n_shared,
             (long long)n, ws_grid_barrier_fits(n, gpu.n_sms, per_sm) ? "yes" : "NO", cudaGetErrorName(fits),
             ws_grid_barrier_fits(n + 1, gpu.n_sms, per_sm) ? "YES" : "no", cudaGetErrorName(one_more));
    }
  }
  const int64_t limit = int64_t(1) << 31;
  report(!ws_grid_barrier_fits(0, 132, 1) && !ws_grid_barrier_fits(-1, 132, 1) && !ws_grid_barrier_fits(1, 0, 1) &&
             !ws_grid_barrier_fits(1, 132, 0) && !ws_grid_barrier_fits(INT64_MAX, INT_MAX, INT_MAX) &&
             !ws_grid_barrier_fits(limit, INT_MAX, INT_MAX) && ws_grid_barrier_fits(limit - 1, INT_MAX, INT_MAX) == 1 &&
             ws_grid_barrier_fits(1, 1, 1) == 1,
         "fits: nothing, negative numbers and what a word cannot count are refused");
}

/* ---- 5. Time --------------------------------------------------------------------------------- */

__global__ void only_barriers(ws_grid_barrier *barrier, uint32_t n_rounds) {
  for (uint32_t round = 0; round < n_rounds; round++) ws::grid_sync(barrier, gridDim.x);
}

float milliseconds(ws_grid_barrier *barrier, uint32_t n_blocks, int n_threads, uint32_t n_rounds, cudaEvent_t begin,
                   cudaEvent_t end) {
  float ms = 0;
  must(cudaEventRecord(begin), "event");
  only_barriers<<<n_blocks, n_threads>>>(barrier, n_rounds);
  must(cudaGetLastError(), "launch of only_barriers");
  must(cudaEventRecord(end), "event");
  must(cudaEventSynchronize(end), "only_barriers");
  must(cudaEventElapsedTime(&ms, begin, end), "event");
  return ms;
}

void test_time(const device &gpu) {
  cudaEvent_t begin, end;
  must(cudaEventCreate(&begin), "event");
  must(cudaEventCreate(&end), "event");
  ws_grid_barrier *barrier = device_zeros<ws_grid_barrier>(1);
  const uint32_t n_sms = uint32_t(gpu.n_sms), n_resident = uint32_t(resident_blocks(gpu, only_barriers, 1024, 0));
  for (const uint32_t n_blocks : {2u, n_sms, n_resident}) {
    for (const int n_threads : {32, 256, 1024}) {
      std::vector<double> us;
      /* the difference leaves out the launch; the first is a warm-up */
      for (int i = 0; i < 11; i++) {
        const float few = milliseconds(barrier, n_blocks, n_threads, 1000, begin, end);
        const float many = milliseconds(barrier, n_blocks, n_threads, 11000, begin, end);
        if (i > 0) us.push_back(double(many - few) * 1e3 / 10000);
      }
      std::sort(us.begin(), us.end());
      const double median = (us[4] + us[5]) / 2;
      report(median > 0.05 && median < 100 && is_at_rest(barrier),
             "time: one barrier of %u blocks of %d threads: %.3f us (%.3f .. %.3f)", n_blocks, n_threads, median, us.front(),
             us.back());
    }
  }
  must(cudaFree(barrier), "cudaFree");
  must(cudaEventDestroy(begin), "event");
  must(cudaEventDestroy(end), "event");
}

} // namespace

int main() {
  int n_devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&n_devices);
  if (status == cudaErrorNoDevice || status == cudaErrorInsufficientDriver || (status == cudaSuccess && n_devices == 0)) {
    printf("skipped: no CUDA device (%s)\n", cudaGetErrorName(status));
    return exit_skipped;
  }
  must(status, "cudaGetDeviceCount");
  cudaDeviceProp properties;
  must(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  const char *scale = getenv("WSGEMM_TEST_SCALE");
  const device gpu = {properties.multiProcessorCount, int(properties.sharedMemPerBlockOptin),
                      int(properties.sharedMemPerMultiprocessor), uint32_t(std::max(1, scale ? atoi(scale) : 1))};
  printf("%s, %d SMs, cc %d.%d\n", properties.name, gpu.n_sms, properties.major, properties.minor);
  signal(SIGALRM, on_alarm);
  alarm(max_seconds);

  test_fits(gpu);
  test_counting(gpu);
  test_reuse(gpu);
  test_litmus(gpu);
  test_time(gpu);
  printf("%d cases, %d failed\n", n_cases, n_failed);
  return n_failed > 0 || n_cases == 0;
}
