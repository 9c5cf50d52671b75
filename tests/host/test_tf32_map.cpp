// test_tf32_map.cpp - what rows of tf32m.def do with the boxes of a tensor map, on the host: the producer's copies, splitters that turn a
// B along n and make low slices, the places of A's fragments, and marks. TMA is a model of it: boxes of 32 floats, of one slice rounded
// to TF32 (to nearest, ties to even), swizzled by 128 bytes, with zeros beyond the tensor, as measured on an H200 (test_gpu_maps.c has
// the kernels themselves).
#include "host_device.h"

#define WS_CUDA_PTX_TMA_CUH
#define WS_CUDA_PTX_MMA_TF32_CUH
#define WS_CUDA_PTX_WGMMA_REGISTERS_CUH
#include <cuda.h>

namespace ws {
void cp_async_bulk_tensor_load(uint32_t to, const void *map, int x, int y, int z, uint32_t barrier);
inline float ld_shared(uint32_t from) {
  float x;
  memcpy(&x, host_shared + from, sizeof x);
  return x;
}
inline uint32_t ld_shared_32(uint32_t from) {
  uint32_t x;
  memcpy(&x, host_shared + from, sizeof x);
  return x;
}
inline void ld_shared_four(float (&x)[4], uint32_t from) { memcpy(x, host_shared + from, sizeof x); }
inline void st_shared_byte(uint32_t to, uint32_t x) { host_shared[to] = (unsigned char)x; }
inline void st_shared_four(uint32_t to, const float (&x)[4]) { memcpy(host_shared + to, x, sizeof x); }
// Known by name alone.
void mma_tf32(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2]);
void mma_tf32_first(float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2]);
template <bool X> uint64_t wgmma_descriptor(uint32_t, uint32_t);
void wgmma_fence();
void wgmma_commit_group();
template <int N> void wgmma_wait_group();
template <int N> void hold_in_place(float (&)[N]);
template <int N> void wgmma_tf32(float (&)[N], const uint32_t (&)[4], uint64_t, int);
} // namespace ws

#include "cuda/mainloop/tf32_map_load.cuh"
#include "cuda/mainloop/tf32_map_sums.cuh"

#include <cmath>
#include <vector>

extern "C" {
#include "support/check.h"
}

namespace {

struct check_random rng;
enum { LINE = 32, LINE_BYTES = 128, ATOM_BYTES = 1024 };

// What a map holds here: lines of floats, products of so many lines.
struct tensor {
  const float *data;
  int64_t length, n_lines, n_products, ld, stride;
  int box_lines;
  bool rounds;
  float at(int64_t along, int64_t line, int64_t product) const {
    const bool is_in = along >= 0 && along < length && line >= 0 && line < n_lines && product >= 0 && product < n_products;
    const float x = is_in ? data[product * stride + line * ld + along] : 0;
    return rounds ? ws::tf32_of(x) : x;
  }
};
static_assert(sizeof(tensor) <= sizeof(CUtensorMap), "a map holds it");

} // namespace

void ws::cp_async_bulk_tensor_load(uint32_t to, const void *map, int x, int y, int z, uint32_t) {
  tensor t;
  memcpy(&t, map, sizeof t);
  REQUIRE(to % ATOM_BYTES == 0, "a box at %u", to);
  for (int line = 0; line < t.box_lines; line++)
    for (int i = 0; i < LINE; i++) {
      const float value = t.at(x + i, y + line, z);
      memcpy(host_shared + to + line * LINE_BYTES + ((i / 4 ^ line % 8) << 4) + i % 4 * 4, &value, sizeof value);
    }
}

namespace {

// Of a row: what these files ask.
template <int SLICES, int BM, int BN, bool A_K, bool B_K> struct row_config {
  using sum = float;
  static constexpr int unit = 1, n_slices = SLICES, bm = BM, bn = BN, bk = LINE, wm = 16, wn = BN, k_groups = 1;
  static constexpr bool a_k = A_K, b_k = B_K;
  static constexpr int warps_m = BM / 16, group_warps = warps_m, n_warps = warps_m, n_consuming = n_warps * 32,
                       n_splitters = WS_TF32M_SPLITTERS(SLICES, BM), n_threads = WS_TF32M_THREADS(SLICES, BM);
  static constexpr int a_bytes = BM * LINE_BYTES, slice_bytes = BN * LINE_BYTES,
                       group_bytes = WS_TF32M_STAGE_LINES(SLICES, BM, BN, B_K) * LINE_BYTES;
};

// An operand of size x n_k in n_products, and its map for boxes of a tile of X.
struct operand {
  std::vector<float> data;
  ws_map_operand op, high; // as asked for, and rounded
  tensor t;
  bool along_k;
  operand(int64_t size, int64_t n_k, int n_products, bool k, int X, bool rounds) : op{}, high{}, along_k(k) {
    const int64_t length = k ? n_k : size, n_lines = k ? size : n_k, ld = (length + 3) / 4 * 4 + 4 * check_random_in(&rng, 0, 2);
    data.resize(size_t(n_products * n_lines * ld));
    for (float &x : data) x = float(check_random_in(&rng, -(1 << 24), 1 << 24)); // many are none of TF32
    for (int i = 0; !rounds && i < 3; i++)
      data[size_t(check_random_in(&rng, 0, int64_t(data.size()) - 1))] = 0x1.8p-120f; // too small
    t = {data.data(), length, n_lines, n_products, ld, n_lines * ld, k ? X : LINE, rounds};
    tensor of_high = t;
    of_high.rounds = true;
    memcpy(&op.map, &t, sizeof t), memcpy(&high.map, &of_high, sizeof of_high);
    op.batch_step = n_products > 1;
  }
  float at(int64_t x, int64_t k, int batch) const {
    return along_k ? t.at(k, x, batch * op.batch_step) : t.at(x, k, batch * op.batch_step);
  }
};

bool is_too_small(float x) { return x != 0 && std::fabs(x) < 0x1p-113f; }

template <int SLICES, int BM, int BN, bool A_K, bool B_K> void one(bool is_backwards) {
  using config = row_config<SLICES, BM, BN, A_K, B_K>;
  const int64_t m = check_random_in(&rng, 1, 2 * BM + 3), n = check_random_in(&rng, 1, 2 * BN + 3),
                n_k = check_random_in(&rng, 24, 120);
  const int n_products = int(check_random_in(&rng, 1, 3)), batch = int(check_random_in(&rng, 0, n_products - 1));
  const operand a(m, n_k, n_products, A_K, BM, SLICES == 1),
      b(n, n_k, check_random_in(&rng, 0, 1) ? n_products : 1, B_K, BN, SLICES == 1);
  const int m_first = int(check_random_in(&rng, 0, (m - 1) / BM)) * BM,
            n_first = int(check_random_in(&rng, 0, (n - 1) / BN)) * BN;
  // what splitters turn stands before the stage, marks behind it
  constexpr uint32_t stage = SLICES * config::slice_bytes, marks = stage + config::group_bytes, n_marks = BM + BN + 4;
  constexpr bool is_in_place = SLICES > 1 && B_K;
  constexpr uint32_t of_b = stage + config::a_bytes, high = B_K ? of_b : 0, low = high + config::slice_bytes;
  int64_t n_wrong = 0;
  const bool have_met = host_run_block(config::n_threads, int(marks + n_marks), is_backwards, [&] {
    const int thread = int(threadIdx.x);
    ws::tf32_map_operand<BM, A_K> to_a(a.op, batch, m_first, 0);
    ws::tf32_map_operand<BN, B_K> to_b(b.op, batch, n_first, 0);
    ws::tf32_map_sums<config> sums;
    const ws::tf32_map_splitter<config> splitter{marks + BM};
    sums.seat();
    for (int i = thread; i < int(n_marks); i += config::n_threads) host_shared[marks + uint32_t(i)] = 0;
    __syncthreads();
    for (int64_t k = 0; k < n_k; k += LINE) {
      if (thread == config::n_consuming) {
        to_a.ask(stage, 0);
        if (is_in_place) to_b.ask(&b.high.map, high, 0);
        to_b.ask(is_in_place ? low : of_b, 0);
      }
      __syncthreads();
      if (thread < config::n_consuming) {
        sums.read(stage, marks);
        for (int s = 0; s < 4; s++)
          for (int e = 0; e < 4; e++) {
            const int64_t i = m_first + thread / 32 * 16 + thread % 32 / 4 + e % 2 * 8, l = k + 8 * s + thread % 4 + e / 2 * 4;
            const float wanted = a.at(i, l, batch);
            n_wrong += memcmp(&sums.x[s][e], &wanted, sizeof wanted) != 0;
          }
      }
      if (thread >= config::n_threads - config::n_splitters) {
        if (!B_K)
          splitter.turn(of_b, high);
        else if (is_in_place)
          splitter.split(low);
      }
      __syncthreads();
      for (int at = thread; at < BN * LINE; at += config::n_threads) { // as wgmma takes them: a line of k for each column
        const int j = at / LINE, l = at % LINE;
        const uint32_t place = uint32_t(j * LINE_BYTES + ((l / 4 ^ j % 8) << 4) + l % 4 * 4);
        const float wanted = b.at(n_first + j, k + l, batch);
        const float wanted_high = ws::tf32_of(wanted); // of one slice it is rounded already
        n_wrong += ws::ld_shared(high + place) != wanted_high;
        if (SLICES > 1) n_wrong += ws::ld_shared(low + place) != wanted - wanted_high;
      }
      __syncthreads();
      to_a.advance(), to_b.advance();
    }
    if (SLICES > 1 && thread == 0) { // each row and column that has one, and no other
      bool any = false;
      for (int i = 0; i < BM + BN; i++) {
        bool is_marked = false;
        for (int64_t l = 0; l < n_k; l++)
          is_marked |= is_too_small(i < BM ? a.at(m_first + i, l, batch) : b.at(n_first + i - BM, l, batch));
        n_wrong += (host_shared[marks + uint32_t(i)] != 0) != is_marked;
        any |= is_marked;
      }
      n_wrong += (host_shared[marks + BM + BN] != 0) != any;
    }
  });
  CHECK(have_met && n_wrong == 0, "%d slices, %d x %d, A along %s, B along %s: %lld x %lld x %lld: %lld are wrong", SLICES, BM,
        BN, A_K ? "k" : "m", B_K ? "k" : "n", (long long)m, (long long)n, (long long)n_k, (long long)n_wrong);
}

template <int SLICES, int BM, int BN> void all() {
  for (int turn = 0; turn < 24 / check_scale() + 4; turn++)
    one<SLICES, BM, BN, true, true>(turn % 2), one<SLICES, BM, BN, false, true>(turn % 2),
        one<SLICES, BM, BN, false, false>(turn % 2);
}

// Tiles of tf32m.def.
void large() {
  rng = check_random_from(91);
  all<1, 128, 256>(), all<1, 128, 192>(), all<1, 128, 128>();
}
void small() {
  rng = check_random_from(92);
  all<1, 128, 64>(), all<1, 64, 128>(), all<1, 64, 64>(), all<1, 64, 32>();
}
void two_slices() {
  rng = check_random_from(94);
  all<2, 128, 128>(), all<2, 128, 64>(), all<2, 64, 64>(), all<2, 64, 32>();
}

// The slices of an element, of which a unit reads the first 19 bits: a NaN of any pattern stays one (by the instruction that rounds,
// here a model of it), infinity is infinity, ordinary numbers are rounded to TF32 or in two slices give the number itself.
template <int N_SLICES> struct some_config {
  static constexpr int n_slices = N_SLICES, unit = 1, wm = 16, wn = 8, bm = 16, bn = 8, group_warps = 1, warps_m = 1,
                       group_bytes = 0, a_bytes = 0;
  static constexpr bool a_k = true, b_k = true;
};
float read_by_unit(uint32_t bits) { return __uint_as_float(bits & 0xffffe000); }

void cut() {
  rng = check_random_from(93);
  static const uint32_t nans[] = {0x7fffffff, 0xffffffff, 0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001};
  uint32_t high = 0, low = 0;
  for (uint32_t bits : nans) {
    ws::tf32_sums<some_config<1>>::cut(bits, high, low);
    // A payload in the bits that a unit does not read is lost there, as in any TF32.
    CHECK((bits & 0x7fffe000) == 0x7f800000 || std::isnan(read_by_unit(high)), "one slice of %08x is %08x", bits, high);
    ws::tf32_sums<some_config<2>>::cut(bits, high, low);
    CHECK(std::isnan(read_by_unit(high)) || std::isnan(read_by_unit(low)), "two slices of %08x are %08x and %08x", bits, high,
          low);
  }
  for (int sign = 0; sign < 2; sign++) {
    ws::tf32_sums<some_config<1>>::cut(0x7f800000u | uint32_t(sign) << 31, high, low);
    CHECK(std::isinf(read_by_unit(high)) && std::signbit(read_by_unit(high)) == sign, "infinity is %08x", high);
  }
  for (int turn = 0; turn < 100000; turn++) {
    const uint32_t bits = uint32_t(check_random_bits(&rng) >> 32), exponent = bits >> 23 & 255;
    if (exponent == 255 || exponent < 20) continue;
    const float x = __uint_as_float(bits);
    ws::tf32_sums<some_config<1>>::cut(bits, high, low);
    const float whole = read_by_unit(high);
    CHECK(std::isinf(whole) ? exponent == 254 : std::fabs(double(whole) - double(x)) <= std::ldexp(std::fabs(double(x)), -11),
          "one slice of %08x is %08x", bits, high);
    if (exponent == 254) continue;
    ws::tf32_sums<some_config<2>>::cut(bits, high, low);
    CHECK(double(__uint_as_float(high)) + double(__uint_as_float(low)) == double(x) &&
              read_by_unit(high) == __uint_as_float(high),
          "two slices of %08x are %08x and %08x", bits, high, low);
  }
}

} // namespace

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"large", large}, {"small", small}, {"two_slices", two_slices}, {"cut", cut}};
  return check_main("tf32_map", cases, sizeof cases / sizeof cases[0], argc, argv);
}
