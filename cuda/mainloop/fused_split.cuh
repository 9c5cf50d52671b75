/* fused_split.cuh - floats into slices for the tensor cores, for gemm_fused.cuh: of S by splitters,
 * from shared memory to shared memory; of R by consumers, in registers. */
#ifndef WS_CUDA_FUSED_SPLIT_CUH
#define WS_CUDA_FUSED_SPLIT_CUH
#include "cuda/mainloop/fused_load.cuh"
#include "cuda/ptx/convert.cuh"

namespace ws {

/* ---- Elements, by their bits ----------------------------------------------------------------- */

/* Below this an element's low slice would not reach 2^-21 of it; in bits, shifted left. */
constexpr uint32_t fused_least = 2 * (uint32_t(127 - 113) << 23) - 1;
/* 0 has two TF32 slices, too */
__device__ __forceinline__ bool is_too_small(uint32_t bits) { return 2 * bits - 1 < fused_least; }
__device__ __forceinline__ uint32_t high_part(uint32_t bits) { return bits & 0xffffe000; }
/* The least magnitude of some elements, 0 included; NaN is none. */
__device__ __forceinline__ float least_of(float least, uint32_t bits) { return fminf(least, fabsf(__uint_as_float(bits))); }
/* Whether one of them may be too small, by their least. */
__device__ __forceinline__ bool may_be_too_small(float least) { return least < __uint_as_float((fused_least >> 1) + 1); }
__device__ __forceinline__ uint32_t difference(uint32_t a, uint32_t b) {
  return __float_as_uint(__uint_as_float(a) - __uint_as_float(b));
}
__device__ __forceinline__ uint32_t bf16_pair(uint32_t a, uint32_t b) {
  return bf16x2_of(__uint_as_float(a), __uint_as_float(b));
}

/* ---- S: splitters ---------------------------------------------------------------------------- */

__device__ __forceinline__ void store_four(uint32_t to, uint4 x) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

/* Eight k of one x of S: k 8 part on. */
struct fused_eight {
  int x, part;
};
/* Of unit number so of a stage: 32 x and 8 k, or 8 x and 32 k. */
template <class Config> __device__ __forceinline__ fused_eight fused_place(int unit) {
  const int lane = int(threadIdx.x) % 32;
  if constexpr (Config::s_x) return {unit / 4 * 32 + lane, unit % 4};
  return {unit * 8 + lane % 8, lane / 8};
}
template <class Config>
__device__ __forceinline__ void load_eight(const ws_fused_operand &op, uint32_t from, fused_eight place, uint32_t (&bits)[8]) {
  const int x = place.x, part = place.part;
  if constexpr (Config::s_x) {
#pragma unroll
    for (int i = 0; i < 8; i++)
      bits[i] = ld_shared_32(from + (Config::tma ? x / 32 * 4096 + (part * 8 + i) * 128 + ((x % 32 / 4 ^ i) * 16 + x % 4 * 4)
                                                 : (part * 8 + i) * Config::s_pitch + (x + fused_shift(op, i)) * 4));
  } else if constexpr (Config::tma) {
    float four[2][4];
#pragma unroll
    for (int i = 0; i < 2; i++) ld_shared_four(four[i], from + x * 128 + ((2 * part + i ^ x % 8) * 16));
#pragma unroll
    for (int i = 0; i < 8; i++) bits[i] = __float_as_uint(four[i / 4][i % 4]);
  } else {
    float four[3][4];
#pragma unroll
    for (int i = 0; i < 3; i++) ld_shared_four(four[i], from + x * Config::s_pitch + (2 * part + i) * 16);
    const int shifted = fused_shift(op, x);
    uint32_t by_one[10];
#pragma unroll
    for (int i = 0; i < 10; i++) by_one[i] = __float_as_uint(shifted & 1 ? four[(i + 1) / 4][(i + 1) % 4] : four[i / 4][i % 4]);
#pragma unroll
    for (int i = 0; i < 8; i++) bits[i] = shifted & 2 ? by_one[i + 2] : by_one[i];
  }
}

/* Of TF32 slices low goes beside the line as it was, of BF16
 * both: high in the first half of a line, low in the second, each 16 k in the order in which the
 * consumers have R's (bf16_of). */
template <class Config>
__device__ __forceinline__ void split_eight(uint32_t stage, const uint32_t (&bits)[8], fused_eight place, uint8_t *is_bad_x) {
  const int x = place.x, part = place.part;
  uint32_t high[8], low[8];
  float least = 1;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    high[i] = high_part(bits[i]);
    low[i] = difference(bits[i], high[i]);
    least = least_of(least, bits[i]);
  }
  if (may_be_too_small(least)) {
    bool is_bad = false;
#pragma unroll
    for (int i = 0; i < 8; i++) is_bad |= is_too_small(bits[i]);
    if (is_bad) is_bad_x[x] = 1;
  }
  const uint32_t line = stage + x * 128;
  const auto chunk = [&](int c) { return uint32_t((c ^ x % 8) * 16); };
  if constexpr (Config::writes_high) {
    store_four(line + Config::high_at + chunk(2 * part), {high[0], high[1], high[2], high[3]});
    store_four(line + Config::high_at + chunk(2 * part + 1), {high[4], high[5], high[6], high[7]});
  }
  if constexpr (Config::cross_bf16) {
    store_four(line + Config::low_at + chunk(part), {bf16_pair(high[0], high[4]), bf16_pair(high[1], high[5]),
                                                     bf16_pair(high[2], high[6]), bf16_pair(high[3], high[7])});
    store_four(line + Config::low_at + chunk(4 + part),
               {bf16_pair(low[0], low[4]), bf16_pair(low[1], low[5]), bf16_pair(low[2], low[6]), bf16_pair(low[3], low[7])});
  } else {
    store_four(line + Config::low_at + chunk(2 * part), {low[0], low[1], low[2], low[3]});
    store_four(line + Config::low_at + chunk(2 * part + 1), {low[4], low[5], low[6], low[7]});
  }
}

/* ---- R: consumers ---------------------------------------------------------------------------- */

/* Marks rows 0 and 1 of which an element is too small. */
template <int N> __device__ __forceinline__ void note_small(const uint32_t (&x)[N][4], bool (&is_bad)[2]) {
  float least[2] = {1, 1};
#pragma unroll
  for (int s = 0; s < N; s++)
#pragma unroll
    for (int i = 0; i < 4; i++) least[s % 2] = least_of(least[s % 2], x[s][i]);
  if (may_be_too_small(fminf(least[0], least[1]))) {
#pragma unroll
    for (int s = 0; s < N; s++)
#pragma unroll
      for (int i = 0; i < 4; i++) is_bad[i % 2] |= is_too_small(x[s][i]);
  }
}
/* Of elements of both rows the nearest TF32, and what these leave. */
template <int N> __device__ __forceinline__ void split_registers(uint32_t (&x)[N][4], uint32_t (&rest)[N][4], bool (&is_bad)[2]) {
  note_small(x, is_bad);
#pragma unroll
  for (int s = 0; s < N; s++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const uint32_t bits = x[s][i];
      x[s][i] = __float_as_uint(tf32_of(__uint_as_float(bits))), rest[s][i] = difference(bits, x[s][i]);
    }
}
/* Two steps of 8 k as one of 16 of BF16: its k 2q, 2q + 1, 2q + 8, 2q + 9 are q, q + 4, q + 8, q +
 * 12 of these. */
__device__ __forceinline__ void bf16_of(uint32_t (&pairs)[4], const uint32_t (&first)[4], const uint32_t (&second)[4]) {
  pairs[0] = bf16_pair(first[0], first[2]), pairs[1] = bf16_pair(first[1], first[3]);
  pairs[2] = bf16_pair(second[0], second[2]), pairs[3] = bf16_pair(second[1], second[3]);
}

} // namespace ws
#endif
