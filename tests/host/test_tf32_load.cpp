// test_tf32_load.cpp - the producers' copies of cuda/mainloop/tf32_load.cuh on the host: after each k block every float of it is what the
// operand has there, or 0 beyond its edge and the last k; and no copy reads beyond the operand's last element.
//
// What the compiler makes of the code, and how fast it is, only hardware can tell.
#include "host_device.h"

#include "cuda/mainloop/tf32_load.cuh"

#include <cstdlib>

extern "C" {
#include "support/check.h"
}

namespace {

struct check_random rng;

// Of X elements of UNIT floats; the operand has `size` of them and n_k of k, its lines are `ld` floats apart, and it starts `lead` floats
// after a multiple of 16 bytes.
template <int UNIT, int X, bool K> void one(int64_t size, int64_t n_k, int64_t gap, int lead, bool is_backwards) {
  using operand = ws::tf32_operand<UNIT, X, K>;
  constexpr int block = WS_TF32_BK(UNIT), bytes = int(operand::pitch) * operand::n_lines;
  const int64_t length = K ? n_k : size, n_lines = K ? size : n_k, ld = length + gap; // in elements
  // The last element ends where the memory does.
  const size_t n_floats = size_t(lead + UNIT * ((n_lines - 1) * ld + length)), n_bytes = (4 * n_floats + 15) / 16 * 16;
  char *const memory = static_cast<char *>(aligned_alloc(16, n_bytes + 16));
  REQUIRE(memory, "memory");
  float *const data = reinterpret_cast<float *>(memory);
  for (size_t i = 0; i < (n_bytes + 16) / 4; i++) data[i] = i < n_floats ? float(1 + i % 8388608) : NAN;
  ws_operand op = {};
  op.data = data + lead, op.step_mn = K ? ld : 1, op.step_k = K ? 1 : ld;
  const auto expected = [&](int64_t x, int64_t k, int part) {
    return x < size && k < n_k ? data[lead + UNIT * (K ? x * ld + k : k * ld + x) + part] : 0.0f;
  };

  const int64_t n_tiles = (size + X - 1) / X, x_first = check_random_in(&rng, 0, n_tiles - 1) * X;
  int64_t n_wrong = 0;
  const bool have_met = host_run_block(WS_TF32_PRODUCERS, bytes, is_backwards, [&] {
    operand from(op, 0, x_first, size, 0);
    for (int64_t k = 0; k < n_k; k += block) {
      from.copy(0, int(n_k - k < block ? n_k - k : block));
      ws::cp_async_commit();
      ws::cp_async_wait<0>();
      __syncthreads();
      for (int line = int(threadIdx.x); line < operand::n_lines; line += WS_TF32_PRODUCERS) {
        const int64_t start = K ? (x_first + line) * ld + k : (k + line) * ld + x_first;
        const int shift = int((reinterpret_cast<uintptr_t>(data + lead + UNIT * start) >> 2) & 3);
        for (int f = 0; f < operand::n_along; f++) {
          float got;
          memcpy(&got, host_shared + line * int(operand::pitch) + 4 * (f + shift), sizeof got);
          const int64_t x = x_first + (K ? line : f / UNIT), at_k = k + (K ? f / UNIT : line);
          n_wrong += !(got == expected(x, at_k, f % UNIT));
        }
      }
      __syncthreads();
      from.advance();
    }
  });
  CHECK(have_met && n_wrong == 0, "%d floats, X = %d, along %s: size %lld, k %lld, gap %lld, lead %d: %lld are wrong", UNIT, X,
        K ? "k" : "x", (long long)size, (long long)n_k, (long long)gap, lead, (long long)n_wrong);
  free(memory);
}

template <int UNIT, int X, bool K> void all() {
  constexpr int block = WS_TF32_BK(UNIT);
  for (int turn = 0; turn < 400 / check_scale() + 12; turn++) {
    const bool is_whole = turn % 4 == 0;
    const int64_t size = is_whole ? X * check_random_in(&rng, 1, 2) : check_random_in(&rng, 1, turn % 4 == 1 ? X : 2 * X + 5);
    const int64_t n_k = turn % 3 == 0 ? block * check_random_in(&rng, 1, 3) : check_random_in(&rng, 1, 3 * block + 1);
    one<UNIT, X, K>(size, n_k, check_random_in(&rng, 0, 9), UNIT * int(check_random_in(&rng, 0, 3 / UNIT)), turn % 2);
  }
}

template <int UNIT, int X> void both() { all<UNIT, X, true>(), all<UNIT, X, false>(); }

// X of the rows in tf32.def and tf32w.def.
void floats() {
  rng = check_random_from(81);
  both<1, 32>(), both<1, 64>(), both<1, 128>();
}
void complex_numbers() {
  rng = check_random_from(82);
  both<2, 32>(), both<2, 64>(), both<2, 128>();
}

const struct check_case cases[] = {{"floats", floats}, {"complex_numbers", complex_numbers}};

} // namespace

CHECK_MAIN("tf32_load", cases)
