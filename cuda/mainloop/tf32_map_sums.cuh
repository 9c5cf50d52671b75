/* tf32_map_sums.cuh - the consumers of rows of gemm_tf32.cuh by tensor maps: as those of tf32_wgmma_sums.cuh, but that A comes from
 * swizzled lines, and, of one slice, is rounded to TF32 already. */
#ifndef WS_CUDA_TF32_MAP_SUMS_CUH
#define WS_CUDA_TF32_MAP_SUMS_CUH
#include "cuda/mainloop/tf32_wgmma_sums.cuh"

namespace ws {

template <class Config> struct tf32_map_sums : tf32_wgmma_sums<Config> {
  using base = tf32_wgmma_sums<Config>;
  using by_mma = typename base::by_mma;
  using base::a_at, base::g, base::high, base::low, base::m_first, base::n_steps, base::t, base::x;
  static constexpr uint32_t line_bytes = WS_TF32M_LINE_BYTES, eight_lines = 8 * line_bytes;

  __device__ __forceinline__ tf32_map_sums() : base(false) {
#pragma unroll
    for (int s = 0; s < n_steps; s++)
#pragma unroll
      for (int e = 0; e < 4; e++) high[s][e] = 0;
  }

  /* This lane's first element: row m_first + g, k = t; chunks of 16 bytes are numbered within a line (tf32_map_load.cuh). */
  __device__ __forceinline__ void seat() {
    const int m = m_first() + g();
    if constexpr (Config::a_k)
      a_at = uint32_t(m) * line_bytes + uint32_t(g() << 4) + uint32_t(4 * t());
    else
      a_at = uint32_t(m / WS_TF32_LINE * WS_TF32_LINE + t()) * line_bytes +
             ((uint32_t(m % WS_TF32_LINE / 4) ^ uint32_t(t())) << 4) + uint32_t(m % 4 * 4);
  }
  /* Element e of a step's fragment: of row 8 (e % 2) and k 4 (e / 2) further. Stages begin at multiples of an atom. */
  __device__ __forceinline__ uint32_t place_of(uint32_t stage, int step, int e) const {
    const uint32_t row = uint32_t(e % 2), half = uint32_t(e / 2);
    if constexpr (Config::a_k)
      return ((stage + a_at) ^ ((2 * uint32_t(step) + half) << 4)) + row * eight_lines;
    else
      return ((stage + a_at) ^ (row << 5) ^ (half << 6)) + uint32_t(step) * eight_lines + half * 4 * line_bytes;
  }

  __device__ __forceinline__ void read(uint32_t stage) {
#pragma unroll
    for (int s = 0; s < n_steps; s++)
#pragma unroll
      for (int e = 0; e < 4; e++) x[s][e] = ld_shared_32(place_of(stage, s, e));
  }
  /* Likewise, and of two slices marks of rows. */
  __device__ __forceinline__ void read(uint32_t stage, uint32_t marks) {
    read(stage);
    if constexpr (Config::n_slices > 1) {
      uint32_t least = ~0u;
#pragma unroll
      for (int s = 0; s < n_steps; s++)
#pragma unroll
        for (int e = 0; e < 4; e++) least = min(least, 2 * x[s][e] - 1);
      if (least < base::too_small) mark(stage, marks);
    }
  }
  /* Looks at this lane's elements once more. */
  __device__ __forceinline__ void mark(uint32_t stage, uint32_t marks) const {
#pragma unroll 1
    for (int s = 0; s < n_steps; s++)
#pragma unroll 1
      for (int e = 0; e < 4; e++)
        if (by_mma::is_too_small(place_of(stage, s, e))) by_mma::set_mark(marks + uint32_t(m_first() + g() + e % 2 * 8));
    by_mma::set_mark(marks + Config::bm + Config::bn);
  }

  /* What has been read becomes what is multiplied. The units read A's registers until end(), while read() fills others; but ptxas
   * takes a register for free once an instruction of the units is issued (CUDA 13.0; bench/NOTES.md). So of one slice the old ones are
   * used here, behind end(): nothing is 0, which the compiler does not know. Of two its allocation has been right without, which
   * tests/host/wgmma_registers.py looks at; low slices are through before read() begins (middle()). */
  __device__ __forceinline__ void take(uint32_t nothing) {
#pragma unroll
    for (int s = 0; s < n_steps; s++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        if constexpr (Config::n_slices == 1) {
          high[s][e] = x[s][e] | (high[s][e] & nothing);
        } else {
          by_mma::cut(x[s][e], high[s][e], low[s][e]);
        }
      }
  }
};

} // namespace ws
#endif
