/* host_device.cpp - see host_device.h. */
#include "host_device.h"

#include "fibers.h"

extern "C" {
#include "support/check.h"
}

host_dim threadIdx, blockIdx, blockDim, gridDim;
unsigned char *host_shared;

namespace {

constexpr int most_threads = 288;

struct copy {
  uint32_t to;
  const void *from;
  int n_bytes, n_bytes_to;
};

struct thread_state {
  std::vector<std::vector<copy>> groups; /* complete ones, the oldest first */
  std::vector<copy> open;
  int n_barriers;
};

struct block {
  int n_threads;
  bool is_backwards;
  uint32_t shared_bytes;
  thread_state thread[most_threads];
  int next(int t) const { return is_backwards ? t - 1 : t + 1; }
  int first() const { return is_backwards ? n_threads - 1 : 0; }
  bool is_thread(int t) const { return t >= 0 && t < n_threads; }
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

} // namespace

/* All threads come to as many barriers, so that the one after the last to come is the first to go
 * on. */
void __syncthreads() {
  const int t = int(threadIdx.x), next = running->next(t);
  own().n_barriers++;
  pool().switch_to(running->is_thread(next) ? next : running->first());
  threadIdx.x = unsigned(t);
}

/* Likewise of a warp, whose threads all come to as many before the next barrier of the block. */
void __syncwarp() {
  const int t = int(threadIdx.x), next = running->next(t);
  const bool is_same = running->is_thread(next) && next / 32 == t / 32;
  pool().switch_to(is_same ? next : running->is_backwards ? t / 32 * 32 + 31 : t / 32 * 32);
  threadIdx.x = unsigned(t);
}

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
  REQUIRE(n_threads <= most_threads, "%d threads", n_threads);
  std::vector<unsigned char> memory(size_t(shared_bytes) + 128, 0xff);
  b.n_threads = n_threads, b.is_backwards = is_backwards, b.shared_bytes = uint32_t(shared_bytes);
  for (thread_state &t : b.thread) t = {};
  host_shared = memory.data() + (128 - reinterpret_cast<uintptr_t>(memory.data()) % 128) % 128;
  running = &b;
  pool().live = [&](int t) {
    threadIdx.x = unsigned(t);
    program();
    const int next = b.next(t);
    return b.is_thread(next) ? next : fibers::caller;
  };
  pool().switch_to(b.first());
  for (int t = 1; t < n_threads; t++)
    if (b.thread[t].n_barriers != b.thread[0].n_barriers) return false;
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
