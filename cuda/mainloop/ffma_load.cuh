/* ffma_load.cuh - the producers' half of gemm_ffma.cuh: one operand's k blocks to shared memory,
 * whatever its layout, alignment and edges.
 *
 * A k block of X rows is X lines of 128 bytes:
 *
 *   k contiguous   line x: 32 floats along k, chunk c of 16 bytes at c ^ x % 8
 *   else           slabs of up to 32 x: line k of a slab: its floats along x
 *
 * so that a warp reads, and writes, all banks. From memory a block comes in words of 16 bytes, or in
 * floats where lines are not aligned. Beyond the last k there are zeros; beyond the operand's edge
 * there is anything, which becomes sums that nobody stores. */
#ifndef WS_CUDA_FFMA_LOAD_CUH
#define WS_CUDA_FFMA_LOAD_CUH
#include "cuda/ptx/copy.cuh"
#include "cuda/rows/ffma_config.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* Where a float of element x and k is in an operand's block. */
template <int X, bool K> struct ffma_layout {
  static constexpr int line = WS_DMMA_LINE_BYTES, bk = WS_FFMA_BK, slab_x = X < 32 ? X : 32;
  static constexpr int k_bytes = slab_x * 4, slab_bytes = bk * k_bytes; /* not K */
  static __device__ __forceinline__ uint32_t place(int x, int k) {
    if (K) return uint32_t(x * line + ((k >> 2 ^ (x & 7)) << 4) + (k & 3) * 4);
    return uint32_t(x / slab_x * slab_bytes + k * k_bytes + x % slab_x * 4);
  }
};

/* Lines are those of memory: along k (K), or along x. */
template <class Config, int X, bool K> struct ffma_operand {
  using layout = ffma_layout<X, K>;
  static constexpr int bk = Config::bk, n_along = K ? bk : X, n_lines = K ? X : bk;
  template <int WIDTH> static constexpr int threads_along = n_along / WIDTH;
  template <int WIDTH> static constexpr int step = WS_DMMA_PRODUCERS / threads_along<WIDTH>; /* lines of a pass */
  template <int WIDTH> static constexpr int n_passes = (n_lines + step<WIDTH> - 1) / step<WIDTH>;

  const float *from; /* this thread's first of the next k block */
  int64_t step_line, step_block;
  uint32_t target;
  int n_x; /* that exist, of X */
  bool by_vectors;

  static __device__ __forceinline__ int thread() { return int(threadIdx.x % WS_DMMA_PRODUCERS); }
  template <int WIDTH> static __device__ __forceinline__ int along() { return thread() % threads_along<WIDTH> * WIDTH; }
  template <int WIDTH> static __device__ __forceinline__ int first_line() { return thread() / threads_along<WIDTH>; }

  template <int WIDTH> __device__ __forceinline__ void start(const float *first) {
    const int c = along<WIDTH>(), l = first_line<WIDTH>();
    from = first + uint32_t(l) * step_line + c;
    target = K ? layout::place(l, c) : layout::place(c, l);
  }

  __device__ __forceinline__ ffma_operand(const ws_operand &op, uint32_t batch, uint32_t x_first, int64_t size,
                                          uint32_t k_first) {
    by_vectors = op.mode == WS_COPY_VECTORS_MN || op.mode == WS_COPY_VECTORS_K;
    n_x = min(X, int(size) - int(x_first));
    step_line = K ? op.step_mn : op.step_k, step_block = K ? bk : bk * step_line;
    const float *const first =
        static_cast<const float *>(op.data) + batch * op.stride + x_first * op.step_mn + k_first * op.step_k;
    if (by_vectors)
      start<4>(first);
    else
      start<1>(first);
  }

  /* Of pass i. Lines of a pass are at most 4 by floats, and else whole eights, so that the chunk changes
   * by bits that the first line has not. */
  template <int WIDTH> static __device__ __forceinline__ uint32_t target_of(uint32_t to, int i) {
    const int l = i * step<WIDTH>;
    if (K) return (to ^ uint32_t((l & 7) << 4)) + uint32_t(l * layout::line);
    return to + uint32_t(l * layout::k_bytes);
  }

  /* PARTIAL: of the lines, or of each line, some part does not exist. n_k: that do. */
  template <int WIDTH, bool PARTIAL> __device__ __forceinline__ void copy_as(uint32_t stage, int n_k) const {
    constexpr int bytes = WIDTH * 4;
    static_assert(!K || step<WIDTH> == 4 || step<WIDTH> % 8 == 0, "see target_of");
    const float *at = from;
    const uint32_t to = stage + target;
    const int in_line = max(0, min(WIDTH, (K ? n_k : n_x) - along<WIDTH>())) * 4;
    const int own_lines = (K ? n_x : n_k) - first_line<WIDTH>();
#pragma unroll
    for (int i = 0; i < n_passes<WIDTH>; i++, at += step<WIDTH> * step_line) {
      if (n_lines % step<WIDTH> != 0 && first_line<WIDTH>() + i * step<WIDTH> >= n_lines) break;
      const uint32_t there = target_of<WIDTH>(to, i);
      /* a copy of no bytes writes zeros and reads nothing */
      const int existing = PARTIAL ? (i * step<WIDTH> < own_lines ? in_line : 0) : bytes;
      if constexpr (WIDTH == 4)
        cp_async_16(there, at, existing);
      else
        cp_async<bytes>(there, at, existing);
      asm volatile("" : "+l"(at)); /* else each address is worked out anew: twice the instructions */
    }
  }

  /* The next k block, of which n_k exist. */
  __device__ __forceinline__ void copy(uint32_t stage, int n_k) const {
    const bool is_whole = n_k >= bk && n_x == X;
    if (by_vectors && is_whole)
      copy_as<4, false>(stage, n_k);
    else if (by_vectors)
      copy_as<4, true>(stage, n_k);
    else if (is_whole)
      copy_as<1, false>(stage, n_k);
    else
      copy_as<1, true>(stage, n_k);
  }
  __device__ __forceinline__ void advance() { from += step_block; }
};

} // namespace ws
#endif
