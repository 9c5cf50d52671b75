/* host_device.cpp - see host_device.h. */
#include "host_device.h"

#include "fibers.h"

extern "C" {
#include "support/check.h"
}

host_dim threadIdx, blockIdx, blockDim, gridDim;
unsigned char *host_shared;

namespace {

constexpr int most_threads = 512, most_barriers = 16;

struct copy {
  uint32_t to;
  const void *from;
  int n_bytes, n_bytes_to;
};

struct barrier {
  int n_arrived, phase;
};

struct thread_state {
  std::vector<std::vector<copy>> groups; /* complete ones, the oldest first */
  std::vector<copy> open;
  int n_barriers;
  const barrier *waits_for; /* until its phase is another one */
  int phase;
  bool has_ended;
};

struct block {
  int n_threads;
  bool is_backwards;
  uint32_t shared_bytes;
  thread_state thread[most_threads];
  barrier named[most_barriers], of_warp[most_threads / 32];
  double handed_on[most_threads]; /* what a thread shows to its warp */
  int first() const { return is_backwards ? n_threads - 1 : 0; }
  bool can_go_on(const thread_state &t) const { return !t.has_ended && (!t.waits_for || t.waits_for->phase != t.phase); }
  /* The next one that can go on, in the order of the threads, round and round. */
  int next(int t) const {
    bool all_ended = true;
    for (int step = 1; step <= n_threads; step++) {
      const int other = (t + (is_backwards ? n_threads - step : step)) % n_threads;
      if (can_go_on(thread[other])) return other;
      all_ended = all_ended && thread[other].has_ended;
    }
    if (!all_ended) check_abandon(__FILE__, __LINE__, "all_ended", "all threads wait at barriers");
    return fibers::caller;
  }
};
block *running;

fibers &pool() {
  static fibers all(most_threads);
  return all;
}

thread_state &own() { return running->thread[threadIdx.x]; }

void make(const copy &c) {
  memcpy(host_shared + c.to, c.from, size_t(c.n_bytes));
  memset(host_shared + c.to + c.n_bytes, 0, size_t(c.n_bytes_to - c.n_bytes));
}

void arrive(barrier &b, int n_threads) {
  if (++b.n_arrived == n_threads) b.n_arrived = 0, b.phase++;
}

/* The thread after the last one to come is the first to go on. */
void arrive_and_wait(barrier &b, int n_threads) {
  const int t = int(threadIdx.x);
  own().waits_for = &b, own().phase = b.phase;
  arrive(b, n_threads);
  const int next = running->next(t);
  if (next != t) pool().switch_to(next);
  threadIdx.x = unsigned(t);
  own().waits_for = nullptr;
}

} // namespace

void __syncthreads() {
  own().n_barriers++;
  arrive_and_wait(running->named[0], running->n_threads);
}
void __syncwarp() { arrive_and_wait(running->of_warp[threadIdx.x / 32], 32); }
double host_from_lane(double x, int lane) {
  running->handed_on[threadIdx.x] = x;
  __syncwarp();
  const double other = running->handed_on[threadIdx.x / 32 * 32 + unsigned(lane)];
  __syncwarp();
  return other;
}

namespace ws {
void host_barrier_sync(int which, int n_threads) { arrive_and_wait(running->named[which], n_threads); }
void host_barrier_arrive(int which, int n_threads) { arrive(running->named[which], n_threads); }
} // namespace ws

void host_copy_later(uint32_t to, const void *from, int n_bytes, int n_bytes_to) {
  const bool is_good = n_bytes >= 0 && n_bytes <= n_bytes_to && to % uint32_t(n_bytes_to) == 0 &&
                       reinterpret_cast<uintptr_t>(from) % uintptr_t(n_bytes_to) == 0 &&
                       to + uint32_t(n_bytes_to) <= running->shared_bytes;
  if (!is_good)
    check_abandon(__FILE__, __LINE__, "is_good", "cp.async of %d of %d bytes from %p to %u", n_bytes, n_bytes_to, from, to);
  own().open.push_back({to, from, n_bytes, n_bytes_to});
}

void host_copies_group() {
  own().groups.push_back(own().open);
  own().open.clear();
}

void host_copies_wait(int n_newest) {
  std::vector<std::vector<copy>> &groups = own().groups;
  while (groups.size() > size_t(n_newest)) {
    for (const copy &c : groups.front()) make(c);
    groups.erase(groups.begin());
  }
}

bool host_run_block(int n_threads, int shared_bytes, bool is_backwards, const std::function<void()> &program) {
  static block b;
  REQUIRE(n_threads <= most_threads && n_threads % 32 == 0, "%d threads", n_threads);
  std::vector<unsigned char> memory(size_t(shared_bytes) + 128, 0xff);
  b = {};
  b.n_threads = n_threads, b.is_backwards = is_backwards, b.shared_bytes = uint32_t(shared_bytes);
  host_shared = memory.data() + (128 - reinterpret_cast<uintptr_t>(memory.data()) % 128) % 128;
  running = &b;
  pool().live = [&](int t) {
    threadIdx.x = unsigned(t);
    program();
    b.thread[t].has_ended = true;
    return b.next(t);
  };
  pool().switch_to(b.first());
  for (int t = 1; t < n_threads; t++)
    if (b.thread[t].n_barriers != b.thread[0].n_barriers) return false;
  for (const barrier &named : b.named)
    if (named.n_arrived != 0) return false;
  return true;
}

/* ---- conversions, from what the formats say -------------------------------------------------- */

namespace ws {

float float_of_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude = exponent == 31  ? (fraction ? NAN : INFINITY)
                          : exponent == 0 ? ldexpf(float(fraction), -24)
                                          : ldexpf(float(1024 + fraction), exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

float float_of_bf16(uint16_t bits) {
  const uint32_t all = uint32_t(bits) << 16;
  float x;
  memcpy(&x, &all, sizeof x);
  return x;
}

uint16_t f16_of(float x) {
  const uint16_t sign = signbit(x) ? 0x8000 : 0;
  if (isnan(x)) return 0x7fff;
  const double magnitude = fabs(double(x));
  const int exponent = magnitude < 0x1p-14 ? -14 : magnitude >= 0x1p16 ? 16 : ilogb(magnitude);
  /* to even; may reach the next power of two */
  const double in_ulps = nearbyint(ldexp(magnitude, 10 - exponent));
  if (exponent == 16 || ldexp(in_ulps, exponent - 10) > 65504) return sign | 0x7c00;
  return uint16_t(sign | (((exponent + 14) << 10) + int(in_ulps)));
}

uint16_t bf16_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  if (isnan(x)) return 0x7fff;
  return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace ws
