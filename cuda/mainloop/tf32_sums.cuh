/* tf32_sums.cuh - the consumers' half of gemm_tf32.cuh: a warp's sums over the k blocks in shared memory.
 *
 *   x = high + low: high the nearest TF32, ties to even, low what it leaves, of which the units cut a bit
 *   two slices: 8 k at a time low high + high low + high high on the tensor cores, these added in FP32
 *   one slice:  high high through all of k on the tensor cores
 *
 * Of complex numbers an instruction's first 4 k are the real parts of 4 k, the others the imaginary ones:
 * of A as they are, of B (re, -im) for the real part of a sum, (im, re) for the imaginary one.
 *
 * Elements come from lines of either layout as they are, and are split in registers. Those below
 * 2^-113 (one slice: subnormal ones), but zeros, have no two slices: their rows and columns are marked. */
#ifndef WS_CUDA_TF32_SUMS_CUH
#define WS_CUDA_TF32_SUMS_CUH
#include "cuda/mainloop/tf32_load.cuh"
#include "cuda/ptx/convert.cuh"
#include "cuda/ptx/mma_tf32.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/shared/products.cuh"

namespace ws {

template <class Config> struct tf32_sums {
  static constexpr int n_m = Config::wm / 16, n_n = Config::wn / 8, n_steps = 4, unit = Config::unit;
  static constexpr bool is_complex = unit == 2;
  static constexpr uint32_t pitch_a = Config::a_k ? WS_TF32_PITCH_K : WS_TF32_PITCH_X(unit, Config::bm),
                            pitch_b = Config::b_k ? WS_TF32_PITCH_K : WS_TF32_PITCH_X(unit, Config::bn);
  /* below this magnitude; in bits, shifted left, and 1 less, so that 0 is the largest */
  static constexpr uint32_t least_exponent = Config::n_slices == 1 ? 1 : 127 - 113, too_small = (least_exponent << 24) - 1;

  float sum[unit][n_m][n_n][4];
  uint32_t a[n_m][4], b[n_n][2]; /* as they are, of the next step */
  uint32_t least;
  uint32_t sign_a, sign_b; /* complex: of the imaginary parts */
  uint32_t a_at, b_at;     /* of this lane's first element in a stage */

  static __device__ __forceinline__ int warp() { return int(threadIdx.x / 32); }
  static __device__ __forceinline__ int g() { return int(threadIdx.x % 32 / 4); }
  static __device__ __forceinline__ int t() { return int(threadIdx.x % 4); }
  static __device__ __forceinline__ int group() { return warp() / Config::group_warps; }
  static __device__ __forceinline__ int m_first() { return warp() % Config::group_warps % Config::warps_m * Config::wm; }
  static __device__ __forceinline__ int n_first() { return warp() % Config::group_warps / Config::warps_m * Config::wn; }

  template <bool K> static __device__ __forceinline__ uint32_t place(const float *first, int64_t ld, int x, uint32_t pitch) {
    const int shift = tf32_shift(first, ld, K ? g() : t());
    return 4 * (K ? (x + g()) * pitch + unit * t() + shift : t() * pitch + unit * (x + g()) + shift);
  }

  __device__ __forceinline__ tf32_sums(const float *first_a, int64_t ld_a, const float *first_b, int64_t ld_b, conjugation conj)
      : least(~0u), sign_a(conj.a ? 0x80000000u : 0), sign_b(conj.b ? 0x80000000u : 0) {
    a_at = uint32_t(group() * Config::group_bytes) + place<Config::a_k>(first_a, ld_a, m_first(), pitch_a);
    b_at = uint32_t(group() * Config::group_bytes + Config::a_bytes) + place<Config::b_k>(first_b, ld_b, n_first(), pitch_b);
    float *all = &sum[0][0][0][0];
#pragma unroll
    for (int i = 0; i < unit * n_m * n_n * 4; i++) all[i] = 0;
  }

  /* From there to element x and k of a stage; and to what the second half of an instruction's k takes. */
  template <bool K> static __device__ __forceinline__ constexpr uint32_t offset(int x, int k, uint32_t pitch) {
    return 4 * (K ? uint32_t(x) * pitch + uint32_t(k * unit) : uint32_t(k) * pitch + uint32_t(x * unit));
  }
  template <bool K> static constexpr uint32_t second(uint32_t pitch) { return is_complex ? 4 : 4 * (K ? 4 : 4 * pitch); }
  static constexpr uint32_t second_a = second<Config::a_k>(pitch_a), second_b = second<Config::b_k>(pitch_b);

  /* of_a, of_b: this lane's first element of a step */
  __device__ __forceinline__ void read_a(uint32_t of_a) {
#pragma unroll
    for (int i = 0; i < n_m; i++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        a[i][e] = ld_shared_32(of_a + offset<Config::a_k>(i * 16 + e % 2 * 8, 0, pitch_a) + e / 2 * second_a);
  }
  __device__ __forceinline__ void read_b(uint32_t of_b, int j) {
#pragma unroll
    for (int e = 0; e < 2; e++) b[j][e] = ld_shared_32(of_b + offset<Config::b_k>(j * 8, 0, pitch_b) + e * second_b);
  }

  /* The slices of an element; of a NaN they are NaN. */
  static __device__ __forceinline__ void cut(uint32_t bits, uint32_t &high, uint32_t &low) {
    const float x = __uint_as_float(bits), rounded = tf32_of(x);
    high = __float_as_uint(rounded);
    if constexpr (Config::n_slices > 1) low = __float_as_uint(x - rounded);
  }
  __device__ __forceinline__ void split(uint32_t bits, uint32_t &high, uint32_t &low) {
    least = min(least, 2 * bits - 1);
    cut(bits, high, low);
  }

  /* A step, whose elements have been read; reads the next one's as soon as these are split. */
  __device__ __forceinline__ void multiply(uint32_t next_a, uint32_t next_b) {
    uint32_t high_a[n_m][4], low_a[n_m][4];
#pragma unroll
    for (int i = 0; i < n_m; i++)
#pragma unroll
      for (int e = 0; e < 4; e++) split(is_complex && e >= 2 ? a[i][e] ^ sign_a : a[i][e], high_a[i][e], low_a[i][e]);
    read_a(next_a);
#pragma unroll
    for (int j = 0; j < n_n; j++) {
      uint32_t high_b[2], low_b[2];
#pragma unroll
      for (int e = 0; e < 2; e++) split(is_complex && e == 1 ? b[j][e] ^ sign_b : b[j][e], high_b[e], low_b[e]);
      read_b(next_b, j);
      if constexpr (is_complex) {
        const uint32_t high_re[2] = {high_b[0], high_b[1] ^ 0x80000000u}, low_re[2] = {low_b[0], low_b[1] ^ 0x80000000u};
        const uint32_t high_im[2] = {high_b[1], high_b[0]}, low_im[2] = {low_b[1], low_b[0]};
        add_products(0, j, high_a, low_a, high_re, low_re);
        add_products(1, j, high_a, low_a, high_im, low_im);
      } else {
        add_products(0, j, high_a, low_a, high_b, low_b);
      }
    }
  }

  using fragments = uint32_t[n_m][4];
  __device__ __forceinline__ void add_products(int part_of_sum, int j, const fragments &high_a, const fragments &low_a,
                                               const uint32_t (&high_b)[2], const uint32_t (&low_b)[2]) {
    auto &to = sum[part_of_sum];
    if constexpr (Config::n_slices == 1) {
#pragma unroll
      for (int i = 0; i < n_m; i++) mma_tf32(to[i][j], high_a[i], high_b);
    } else {
      float part[n_m][4];
#pragma unroll
      for (int i = 0; i < n_m; i++) mma_tf32_first(part[i], low_a[i], high_b);
#pragma unroll
      for (int i = 0; i < n_m; i++) mma_tf32(part[i], high_a[i], low_b);
#pragma unroll
      for (int i = 0; i < n_m; i++) mma_tf32(part[i], high_a[i], high_b);
#pragma unroll
      for (int i = 0; i < n_m; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) to[i][j][e] += part[i][e];
    }
  }

  __device__ __forceinline__ void read_first(uint32_t stage) {
    read_a(stage + a_at);
#pragma unroll
    for (int j = 0; j < n_n; j++) read_b(stage + b_at, j);
  }

  /* One block, of which n_k exist, if that many; wait: until the next one has come, if there is one. Behind the last
   * block something is read, and not used. */
  template <class Wait>
  __device__ __forceinline__ void advance(uint32_t stage, uint32_t next_stage, int n_k, Wait wait, uint32_t marks) {
    constexpr int step_k = WS_TF32_STEP(unit);
    constexpr uint32_t next_a = offset<Config::a_k>(0, WS_TF32_STEP(unit), pitch_a),
                       next_b = offset<Config::b_k>(0, WS_TF32_STEP(unit), pitch_b);
    uint32_t of_a = stage + a_at, of_b = stage + b_at;
    /* one after the other: side by side they would need more registers */
#pragma unroll 1
    for (int left = min(n_steps, (n_k + step_k - 1) / step_k) - 1; left >= 0; left--) {
      of_a += next_a, of_b += next_b;
      if (left == 0) wait(), of_a = next_stage + a_at, of_b = next_stage + b_at;
      multiply(of_a, of_b);
    }
    if (__any_sync(~0u, least < too_small)) {
      mark(stage + a_at, stage + b_at, marks + m_first() + g(), marks + Config::bm + n_first() + g());
      set_mark(marks + Config::bm + Config::bn);
      least = ~0u;
    }
  }

  static __device__ __forceinline__ void set_mark(uint32_t at) { st_shared_byte(at, 1); }
  static __device__ __forceinline__ bool is_too_small(uint32_t at) {
    bool is = false;
#pragma unroll
    for (int part = 0; part < unit; part++) is |= 2 * ld_shared_32(at + 4 * part) - 1 < too_small;
    return is;
  }
  /* Looks at the warp's part of the block once more: which rows of A and columns of B have one that is
   * too small. What it gets is this lane's first one's. */
  static __device__ __forceinline__ void mark(uint32_t of_a, uint32_t of_b, uint32_t rows, uint32_t columns) {
#pragma unroll 1
    for (int k = 0; k < Config::bk; k += 4) {
#pragma unroll 1
      for (int x = 0; x < Config::wm; x += 8)
        if (is_too_small(of_a + offset<Config::a_k>(x, k, pitch_a))) set_mark(rows + x);
#pragma unroll 1
      for (int x = 0; x < Config::wn; x += 8)
        if (is_too_small(of_b + offset<Config::b_k>(x, k, pitch_b))) set_mark(columns + x);
    }
  }

  /* Of a real number: element e of piece (i, j), as mma.sync has it. */
  __device__ __forceinline__ float at(int i, int j, int e) const { return sum[0][i][j][e]; }

  __device__ __forceinline__ bool is_finite() const {
    float zero[4] = {};
    const float *all = &sum[0][0][0][0];
#pragma unroll
    for (int i = 0; i < unit * n_m * n_n * 4; i++) zero[i % 4] = fmaf(all[i], 0, zero[i % 4]);
    return zero[0] + zero[1] + (zero[2] + zero[3]) == 0;
  }

  /* To columns of C. */
  __device__ __forceinline__ void store(float *to) const {
    float *const first = to + (n_first() + 2 * t()) * Config::sum_pitch + unit * (m_first() + g());
#pragma unroll
    for (int part = 0; part < unit; part++)
#pragma unroll
      for (int i = 0; i < n_m; i++)
#pragma unroll
        for (int j = 0; j < n_n; j++)
#pragma unroll
          for (int e = 0; e < 4; e++)
            first[(8 * j + e % 2) * Config::sum_pitch + unit * (16 * i + e / 2 * 8) + part] = sum[part][i][j][e];
  }
};

} // namespace ws
#endif
