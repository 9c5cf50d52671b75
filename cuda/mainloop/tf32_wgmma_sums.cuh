/* tf32_wgmma_sums.cuh - the consumers of rows of gemm_tf32.cuh by wgmma: a warpgroup sums 64 rows of the item.
 *
 * A's elements come from a stage as they are, and are split in registers, as in tf32_sums.cuh; B's slices stand
 * in shared memory (tf32_split.cuh).
 *   two slices: 32 k at a time low high + high low + high high on the tensor cores, these added in FP32
 *   one slice:  high high through all of k on the tensor cores
 *
 * Of complex numbers the first half of the sums are real parts, the others imaginary ones.
 *
 * read() brings the next k block's elements while the units work on what begin() has begun. */
#ifndef WS_CUDA_TF32_WGMMA_SUMS_CUH
#define WS_CUDA_TF32_WGMMA_SUMS_CUH
#include "cuda/mainloop/tf32_sums.cuh"
#include "cuda/ptx/wgmma_registers.cuh"

namespace ws {

template <class Config> struct tf32_wgmma_sums {
  using by_mma = tf32_sums<Config>;
  static constexpr int unit = Config::unit, n_m = 1, n_n = Config::bn / 8, n_steps = 4, n_sums = unit * Config::bn / 2;
  using number_type = typename Config::sum;
  static constexpr uint32_t pitch_a = by_mma::pitch_a, too_small = by_mma::too_small;

  float sum[n_sums];
  float part[Config::n_slices == 1 ? 1 : n_sums]; /* of 32 k */
  uint32_t x[n_steps][4], high[n_steps][4], low[n_steps][4];
  uint32_t a_at; /* of this lane's first element in a stage */
  uint32_t sign; /* complex: of A's imaginary parts */

  static __device__ __forceinline__ int g() { return by_mma::g(); }
  static __device__ __forceinline__ int t() { return by_mma::t(); }
  static __device__ __forceinline__ int group() { return by_mma::group(); }
  static __device__ __forceinline__ int m_first() { return by_mma::m_first(); }
  static __device__ __forceinline__ int n_first() { return 0; }

  __device__ __forceinline__ explicit tf32_wgmma_sums(bool is_conj) : sign(is_conj ? 0x80000000u : 0) {}

  /* At an item's rows of A. */
  __device__ __forceinline__ void seat(const float *first_a, int64_t ld_a) {
    a_at = uint32_t(group() * Config::group_bytes) + by_mma::template place<Config::a_k>(first_a, ld_a, m_first(), pitch_a);
  }
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < n_sums; i++) sum[i] = 0;
  }

  /* A k block, and marks of rows. */
  __device__ __forceinline__ void read(uint32_t stage, uint32_t marks) {
    uint32_t least = ~0u;
#pragma unroll
    for (int s = 0; s < n_steps; s++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        x[s][e] = ld_shared_32(stage + a_at + by_mma::template offset<Config::a_k>(e % 2 * 8, s * WS_TF32_STEP(unit), pitch_a) +
                               e / 2 * by_mma::second_a);
#pragma unroll
    for (int s = 0; s < n_steps; s++)
#pragma unroll
      for (int e = 0; e < 4; e++) least = min(least, 2 * x[s][e] - 1);
    if (least < too_small) mark(stage + a_at, marks + m_first() + g(), marks + Config::bm + Config::bn);
  }
  /* Looks at this lane's elements once more. */
  static __device__ __forceinline__ void mark(uint32_t of_a, uint32_t row, uint32_t any) {
#pragma unroll 1
    for (int k = 0; k < Config::bk; k += 4)
#pragma unroll 1
      for (int half = 0; half < 16; half += 8)
        if (by_mma::is_too_small(of_a + by_mma::template offset<Config::a_k>(half, k, pitch_a))) by_mma::set_mark(row + half);
    by_mma::set_mark(any);
  }

  __device__ __forceinline__ void split() {
#pragma unroll
    for (int s = 0; s < n_steps; s++)
#pragma unroll
      for (int e = 0; e < 4; e++) by_mma::cut(unit == 2 && e >= 2 ? x[s][e] ^ sign : x[s][e], high[s][e], low[s][e]);
  }

  /* None is made between instructions of the units. */
  static __device__ __forceinline__ void hold(uint32_t (&of)[n_steps][4]) {
#pragma unroll
    for (int s = 0; s < n_steps; s++) asm volatile("" : "+r"(of[s][0]), "+r"(of[s][1]), "+r"(of[s][2]), "+r"(of[s][3])::"memory");
  }

  /* slices: high, then low */
  __device__ __forceinline__ void begin(uint32_t slices) {
    const uint64_t of_high = wgmma_descriptor<false>(slices, 0);
    hold(high);
    if constexpr (Config::n_slices > 1) hold(low);
    if constexpr (Config::n_slices == 1) {
      hold_in_place(sum);
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < n_steps; s++) wgmma_tf32(sum, high[s], of_high + s * 2, 1);
    } else {
      const uint64_t of_low = of_high + (Config::slice_bytes >> 4);
      hold_in_place(part);
      wgmma_fence();
#pragma unroll
      for (int s = 0; s < n_steps; s++) wgmma_tf32(part, low[s], of_high + s * 2, s > 0);
      wgmma_commit_group();
#pragma unroll
      for (int s = 0; s < n_steps; s++) wgmma_tf32(part, high[s], of_low + s * 2, 1);
#pragma unroll
      for (int s = 0; s < n_steps; s++) wgmma_tf32(part, high[s], of_high + s * 2, 1);
    }
    wgmma_commit_group();
  }

  /* Until low slices are used, so that other elements can be in their registers. */
  __device__ __forceinline__ void middle() {
    if constexpr (Config::n_slices > 1) wgmma_wait_group<1>();
  }

  __device__ __forceinline__ void end() {
    wgmma_wait_group<0>();
    if constexpr (Config::n_slices == 1) {
      hold_in_place(sum);
    } else {
      hold_in_place(part);
#pragma unroll
      for (int i = 0; i < n_sums; i++) sum[i] += part[i];
    }
  }

  __device__ __forceinline__ number_type at(int, int j, int e) const {
    if constexpr (unit == 2)
      return {sum[4 * j + e], sum[4 * (n_n + j) + e]};
    else
      return sum[4 * j + e];
  }

  __device__ __forceinline__ bool is_finite() const {
    float zero[4] = {};
#pragma unroll
    for (int i = 0; i < n_sums; i++) zero[i % 4] = fmaf(sum[i], 0, zero[i % 4]);
    return zero[0] + zero[1] + (zero[2] + zero[3]) == 0;
  }

  /* To columns of C. */
  __device__ __forceinline__ void store(float *to) const {
    float *const first = to + 2 * t() * Config::sum_pitch + unit * (m_first() + g());
#pragma unroll
    for (int part = 0; part < unit; part++)
#pragma unroll
      for (int j = 0; j < n_n; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          first[(8 * j + e % 2) * Config::sum_pitch + unit * (e / 2 * 8) + part] = sum[4 * (part * n_n + j) + e];
  }
};

} // namespace ws
#endif
