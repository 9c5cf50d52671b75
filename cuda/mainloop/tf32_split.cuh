/* tf32_split.cuh - the splitters of rows of gemm_tf32.cuh by wgmma: B's elements of a k block, from a stage as they
 * came to slices as wgmma takes them: lines of 32 k, 128 bytes, swizzled; high ones, then low ones (tf32_sums.cuh).
 *
 * A column of complex numbers has two lines, of each 4 k the numbers that meet A's real parts and those that meet its
 * imaginary ones: (re, -im) for the real part of C, and as many lines after that (im, re) for the imaginary one. */
#ifndef WS_CUDA_TF32_SPLIT_CUH
#define WS_CUDA_TF32_SPLIT_CUH
#include "cuda/mainloop/tf32_sums.cuh"

namespace ws {

template <class Config> struct tf32_splitter {
  using sums = tf32_sums<Config>;
  static constexpr int unit = Config::unit, n_warps = Config::n_splitters / 32;
  static constexpr bool is_complex = unit == 2;
  static constexpr uint32_t pitch = sums::pitch_b, too_small = sums::too_small;
  /* Of lines of k a warp takes 8 x 4 k at a time, an element a lane: x = lane / 4. Of lines of x 32 x 4 k, a lane's 4 k in
   * one piece: x = lane. */
  static constexpr int x_of_warp = Config::b_k ? 8 : 32, e_of_lane = Config::b_k ? 1 : 4, pieces_of_x = 8 / unit;
  static constexpr uint32_t step_piece = 16 * (Config::b_k ? unit : pitch),
                            step_block = x_of_warp * 4 * (Config::b_k ? pitch : unit);
  /* From a column's first line to its second one. */
  static constexpr uint32_t second_line = Config::bn * WS_TF32_LINE * 4;
  static_assert(Config::bn % x_of_warp == 0, "warps take whole columns");

  uint32_t from[e_of_lane], to, marks;
  uint32_t other; /* complex: from the part of an element that this lane reads first to the other one */
  uint32_t sign;  /* complex: of the imaginary parts */

  static __device__ __forceinline__ int lane() { return int(threadIdx.x % 32); }
  static __device__ __forceinline__ int warp() { return int(threadIdx.x / 32 % n_warps); }
  static __device__ __forceinline__ int x() { return Config::b_k ? lane() / 4 : lane(); }
  /* Half of the lanes read imaginary parts first, so that a warp's reads meet all banks. */
  static __device__ __forceinline__ bool is_im_first() { return is_complex && (Config::b_k ? x() % 2 != 0 : lane() >= 16); }

  __device__ __forceinline__ tf32_splitter(const float *first, int64_t ld, uint32_t marks_at, bool is_conj)
      : other(is_im_first() ? -4u : 4u), sign(is_conj ? 0x80000000u : 0) {
    const int part = is_im_first() ? 1 : 0;
    if constexpr (Config::b_k) {
      from[0] = Config::a_bytes + 4 * (x() * pitch + unit * (lane() % 4) + part + tf32_shift(first, ld, x()));
      to = x() * 128 + x() % 8 * 16 + lane() % 4 * 4;
    } else {
#pragma unroll
      for (int e = 0; e < 4; e++) from[e] = Config::a_bytes + 4 * (e * pitch + unit * x() + part + tf32_shift(first, ld, e));
      to = x() * 128 + x() % 8 * 16;
    }
    marks = marks_at + Config::bm + x();
  }

  static __device__ __forceinline__ void store(uint32_t at, const uint32_t (&y)[1]) { store_shared(at, y[0]); }
  static __device__ __forceinline__ void store(uint32_t at, const uint32_t (&y)[4]) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3]) : "memory");
  }

  /* This lane's elements of a piece, part by part, as they are. */
  __device__ __forceinline__ void read(uint32_t (&y)[unit][e_of_lane], uint32_t source) const {
#pragma unroll
    for (int e = 0; e < e_of_lane; e++) {
      y[0][e] = ld_shared_32(source + from[e]);
      if constexpr (is_complex) {
        const uint32_t first = y[0][e], second = ld_shared_32(source + from[e] + other);
        y[0][e] = is_im_first() ? second : first, y[1][e] = is_im_first() ? first : second;
      }
    }
  }

  static __device__ __forceinline__ void split(const uint32_t (&y)[e_of_lane], uint32_t (&high)[e_of_lane],
                                               uint32_t (&low)[e_of_lane]) {
#pragma unroll
    for (int e = 0; e < e_of_lane; e++) sums::cut(y[e], high[e], low[e]);
  }
  static __device__ __forceinline__ void flip(uint32_t (&y)[e_of_lane], uint32_t bit) {
#pragma unroll
    for (int e = 0; e < e_of_lane; e++) y[e] ^= bit;
  }
  static __device__ __forceinline__ void store_slices(uint32_t at, const uint32_t (&high)[e_of_lane],
                                                      const uint32_t (&low)[e_of_lane]) {
    store(at, high);
    if constexpr (Config::n_slices > 1) store(at + Config::slice_bytes, low);
  }

  /* A piece, to its places in the lines. */
  __device__ __forceinline__ void split_piece(uint32_t (&y)[unit][e_of_lane], uint32_t line, int piece) const {
    uint32_t high[e_of_lane], low[e_of_lane];
    const uint32_t at = line ^ uint32_t(unit * piece * 16);
    split(y[0], high, low);
    store_slices(at, high, low);
    if constexpr (is_complex) {
      const uint32_t meets_im = at ^ 16;
      store_slices(meets_im + second_line, high, low);
      flip(y[1], sign);
      split(y[1], high, low);
      store_slices(at + second_line, high, low);
      flip(high, 0x80000000u), flip(low, 0x80000000u);
      store_slices(meets_im, high, low);
    }
  }

  /* All that this warp has of a k block: pieces of 4 k of its x, all the warps' x_of_warp apart. */
  __device__ __forceinline__ void split(uint32_t stage, uint32_t slices) const {
    /* warps_x warps share an x's pieces, n_pieces at a time */
    constexpr int n_blocks = Config::bn / x_of_warp,
                  n_pieces = Config::b_k        ? pieces_of_x
                             : 4 < 2 * n_blocks ? 4 / unit
                                                : 2 * n_blocks / unit,
                  warps_x = pieces_of_x / n_pieces;
    const int piece = warp() % warps_x * n_pieces;
#pragma unroll 1
    for (int block = warp() / warps_x; block < n_blocks; block += n_warps / warps_x) {
      const uint32_t source = stage + uint32_t(block) * step_block + uint32_t(piece) * step_piece;
      const uint32_t line = slices + to + uint32_t(block * x_of_warp * 128);
      uint32_t y[n_pieces][unit][e_of_lane], least = ~0u;
#pragma unroll
      for (int p = 0; p < n_pieces; p++) read(y[p], source + p * step_piece);
#pragma unroll
      for (int p = 0; p < n_pieces; p++) {
#pragma unroll
        for (int i = 0; i < unit * e_of_lane; i++) least = min(least, 2 * y[p][i / e_of_lane][i % e_of_lane] - 1);
        split_piece(y[p], line, piece + p);
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
