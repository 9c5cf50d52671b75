/* dmma_load.cuh - the producers' half of gemm_dmma.cuh: one operand's k blocks to shared memory,
 * whatever its layout, alignment and edges.
 *
 * A k block of X rows is X lines of 128 bytes, in chunks of 16 bytes:
 *
 *   k contiguous   line x, chunk c: at x * 128, chunk c ^ x % 8
 *   else           slabs of a line's length along x: line k of a slab, chunk c: at k * 128, chunk c ^ k % 8
 *
 * so that the reads of dmma_sums.cuh find different banks. From memory a block comes in words of
 * 16 bytes, or in doubles where lines are not aligned, or are not to stay as they lie. Beyond the
 * last k there are zeros; beyond the operand's edge there is anything, which becomes sums that
 * nobody stores. */
#ifndef WS_CUDA_DMMA_LOAD_CUH
#define WS_CUDA_DMMA_LOAD_CUH
#include "cuda/ptx/copy.cuh"
#include "cuda/rows/dmma_config.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* K: contiguous in memory. KEEPS: and in shared memory. Along a line go doubles, of which an element
 * has UNIT. ANEW: made anew for each block, in a loop with few registers, which is to keep nothing of it. */
template <class Config, int X, bool K, bool KEEPS, bool ANEW = false> struct dmma_operand {
  static constexpr int unit = Config::unit, bk = Config::bk, line = Config::line_bytes;
  static constexpr int n_along = (K ? bk : X) * unit, n_lines = K ? X : bk;
  static constexpr bool moves_pairs = K == KEEPS || unit == 2;
  template <int WIDTH>
  static constexpr int threads_along = n_along / WIDTH < WS_DMMA_PRODUCERS ? n_along / WIDTH : WS_DMMA_PRODUCERS;
  template <int WIDTH> static constexpr int n_pieces = n_along / WIDTH / threads_along<WIDTH>; /* of a line, to a thread */
  template <int WIDTH> static constexpr int step = WS_DMMA_PRODUCERS / threads_along<WIDTH>;   /* lines of a pass */
  template <int WIDTH> static constexpr int n_passes = (n_lines + step<WIDTH> - 1) / step<WIDTH>;

  const double *from; /* this thread's first of the next k block */
  int64_t step_line, step_block;
  uint32_t target;
  int n_x; /* that exist, of X */
  bool by_pairs;

  static __device__ __forceinline__ int thread() {
    int t = int(threadIdx.x % WS_DMMA_PRODUCERS); /* of no sign, so that divisions of it are shifts */
    if constexpr (ANEW) asm volatile("" : "+r"(t));
    return t;
  }
  template <int WIDTH> static __device__ __forceinline__ int along() { return thread() % threads_along<WIDTH> * WIDTH; }
  template <int WIDTH> static __device__ __forceinline__ int first_line() { return thread() / threads_along<WIDTH>; }

  /* Of part u of element x and k. */
  static __device__ __forceinline__ uint32_t place(int x, int k, int u) {
    if (KEEPS) k = k * unit + u;
    if (KEEPS) return uint32_t(x * line + ((k >> 1 ^ (x & 7)) << 4) + (k & 1) * 8);
    x = x * unit + u;
    return uint32_t((x >> 4) * (bk * line) + k * line + (((x >> 1 & 7) ^ (k & 7)) << 4) + (x & 1) * 8);
  }

  template <int WIDTH> __device__ __forceinline__ void start(const double *first) {
    const int c = along<WIDTH>(), l = first_line<WIDTH>();
    from = first + uint32_t(l) * step_line + c;
    target = K ? place(l, c / unit, c % unit) : place(c / unit, l, c % unit);
  }

  /* is_mirrored: element (x, k) is read where (k, x) lies. */
  __device__ __forceinline__ dmma_operand(const ws_operand &op, uint32_t batch, uint32_t x_first, int64_t size, uint32_t k_first,
                                          bool is_mirrored = false) {
    const int64_t step_x = is_mirrored ? op.step_k : op.step_mn, step_k = is_mirrored ? op.step_mn : op.step_k;
    by_pairs = moves_pairs && (op.mode == WS_COPY_VECTORS_MN || op.mode == WS_COPY_VECTORS_K);
    n_x = min(X, int(size) - int(x_first));
    step_line = unit * (K ? step_x : step_k), step_block = K ? n_along : n_lines * step_line;
    const double *const first =
        static_cast<const double *>(op.data) + unit * (batch * op.stride + x_first * step_x + k_first * step_k);
    if (by_pairs)
      start<2>(first);
    else
      start<1>(first);
  }

  /* Of pass i: the bits of its lines are others than those of first_line. */
  template <int WIDTH> static __device__ __forceinline__ uint32_t target_of(uint32_t to, int i) {
    const int l = i * step<WIDTH>, turned = l * unit;
    if (K && !KEEPS) return (to ^ uint32_t((turned >> 1 & 7) << 4)) + uint32_t((turned >> 4) * (bk * line) + (turned & 1) * 8);
    if (!K && KEEPS) return (to ^ uint32_t((turned >> 1) << 4)) + uint32_t((turned & 1) * 8);
    return (to ^ uint32_t((l & 7) << 4)) + uint32_t(l * line);
  }
  /* Of doubles so much further along x, whole slabs. */
  static __device__ __forceinline__ uint32_t further(int more) {
    return uint32_t(KEEPS ? more / unit * line : (more >> 4) * (bk * line));
  }

  /* PARTIAL: of the lines, or of each line, some part does not exist. n_k: that do. */
  template <int WIDTH, bool PARTIAL> __device__ __forceinline__ void copy_as(uint32_t stage, int n_k) const {
    constexpr int bytes = WIDTH * 8;
    const double *at = from;
    const uint32_t to = stage + target;
    const int end_along = unit * (K ? n_k : n_x);
    const int own_lines = K ? n_x - first_line<WIDTH>() : n_k - first_line<WIDTH>();
#pragma unroll
    for (int i = 0; i < n_passes<WIDTH>; i++, at += step<WIDTH> * step_line) {
      if (n_lines % step<WIDTH> != 0 && first_line<WIDTH>() + i * step<WIDTH> >= n_lines) break;
#pragma unroll
      for (int piece = 0; piece < n_pieces<WIDTH>; piece++) {
        const int more = piece * threads_along<WIDTH> * WIDTH; /* whole slabs */
        const uint32_t there = target_of<WIDTH>(to, i) + further(more);
        const int in_line = max(0, min(WIDTH, end_along - along<WIDTH>() - more)) * 8;
        /* a copy of no bytes writes zeros and reads nothing */
        const int existing = PARTIAL ? (i * step<WIDTH> < own_lines ? in_line : 0) : bytes;
        if constexpr (WIDTH == 2)
          cp_async_16(there, at + more, existing);
        else
          cp_async<bytes>(there, at + more, existing);
      }
      if constexpr (ANEW) asm volatile("" : "+l"(at)); /* else there are several addresses at a time */
    }
  }

  /* The next k block, of which n_k exist. */
  __device__ __forceinline__ void copy(uint32_t stage, int n_k) const {
    const bool is_whole = n_k >= bk && n_x == X;
    if (by_pairs && is_whole)
      copy_as<2, false>(stage, n_k);
    else if (by_pairs)
      copy_as<2, true>(stage, n_k);
    else if (is_whole)
      copy_as<1, false>(stage, n_k);
    else
      copy_as<1, true>(stage, n_k);
  }
  __device__ __forceinline__ void advance() { from += step_block; }
};

} // namespace ws
#endif
