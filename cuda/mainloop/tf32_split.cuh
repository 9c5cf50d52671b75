/* tf32_split.cuh - the splitters of rows of gemm_tf32.cuh by wgmma: B's elements of a k block, from a stage as they
 * came to slices as wgmma takes them: lines of 32 k, 128 bytes, swizzled; high ones, then low ones (tf32_sums.cuh). */
#ifndef WS_CUDA_TF32_SPLIT_CUH
#define WS_CUDA_TF32_SPLIT_CUH
#include "cuda/mainloop/tf32_sums.cuh"

namespace ws {

template <class Config> struct tf32_splitter {
  using sums = tf32_sums<Config>;
  static constexpr int n_warps = Config::n_splitters / 32;
  static constexpr uint32_t pitch = sums::pitch_b, too_small = sums::too_small;
  /* Of lines of k a warp takes 8 x 4 k at a time, an element a lane: x = lane / 4. Of lines of x 32 x 4 k, a lane's 4 k in
   * one piece: x = lane. */
  static constexpr int x_of_warp = Config::b_k ? 8 : 32, e_of_lane = Config::b_k ? 1 : 4;

  uint32_t from[e_of_lane], to, marks;

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return int(threadIdx.x) / 32 % n_warps; }
  static __device__ __forceinline__ int x() { return Config::b_k ? lane() / 4 : lane(); }

  __device__ __forceinline__ tf32_splitter(const float *first, int64_t ld, uint32_t marks_at) {
    if constexpr (Config::b_k) {
      from[0] = Config::a_bytes + 4 * (x() * pitch + lane() % 4 + tf32_shift(first, ld, x()));
      to = x() * 128 + x() % 8 * 16 + lane() % 4 * 4;
    } else {
#pragma unroll
      for (int e = 0; e < 4; e++) from[e] = Config::a_bytes + 4 * (e * pitch + x() + tf32_shift(first, ld, e));
      to = x() * 128 + x() % 8 * 16;
    }
    marks = marks_at + Config::bm + x();
  }

  static __device__ __forceinline__ void store(uint32_t at, const uint32_t (&y)[1]) { store_shared(at, y[0]); }
  static __device__ __forceinline__ void store(uint32_t at, const uint32_t (&y)[4]) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]) : "memory");
  }

  /* All that this warp has of a k block: 8 pieces of 4 k of its x, all the warps' x_of_warp apart. */
  __device__ __forceinline__ void split(uint32_t stage, uint32_t slices) const {
    /* warps_x warps share an x's pieces, n_pieces at a time */
    constexpr int n_blocks = Config::bn / x_of_warp,
                  n_pieces = Config::b_k        ? 8
                             : 4 < 2 * n_blocks ? 4
                                                : 2 * n_blocks,
                  warps_x = 8 / n_pieces;
    const int piece = warp() % warps_x * n_pieces;
#pragma unroll 1
    for (int block = warp() / warps_x; block < n_blocks; block += n_warps / warps_x) {
      const uint32_t source =
          stage + uint32_t(block * x_of_warp) * (Config::b_k ? 4 * pitch : 4) + uint32_t(piece) * (Config::b_k ? 16 : 16 * pitch);
      const uint32_t line = slices + to + uint32_t(block * x_of_warp * 128);
      uint32_t y[n_pieces][e_of_lane], least = ~0u;
#pragma unroll
      for (int p = 0; p < n_pieces; p++)
#pragma unroll
        for (int e = 0; e < e_of_lane; e++) y[p][e] = ld_shared_32(source + from[e] + p * (Config::b_k ? 16 : 16 * pitch));
#pragma unroll
      for (int p = 0; p < n_pieces; p++) {
        uint32_t high[e_of_lane], low[e_of_lane];
#pragma unroll
        for (int e = 0; e < e_of_lane; e++) {
          const uint32_t bits = y[p][e];
          least = min(least, 2 * bits - 1);
          high[e] = bits + 0x1000;
          if constexpr (Config::n_slices > 1) {
            high[e] &= 0xffffe000;
            low[e] = __float_as_uint(__uint_as_float(bits) - __uint_as_float(high[e]));
          }
        }
        const uint32_t at = line ^ uint32_t((piece + p) * 16);
        store(at, high);
        if constexpr (Config::n_slices > 1) store(at + Config::slice_bytes, low);
      }
      if (least < too_small) {
        sums::set_mark(marks + block * x_of_warp);
        sums::set_mark(marks - x() + Config::bn);
      }
    }
  }
};

} // namespace ws
#endif
