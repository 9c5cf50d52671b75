/* tf32_load.cuh - the producers' half of gemm_tf32.cuh: one operand's k blocks to shared memory,
 * whatever its layout, alignment and edges.
 *
 * A line (along k, or along x) comes by 16 bytes from the last multiple of 16 before it on, so that it
 * is shifted by 0 to 3 floats, and has a chunk more where it is; consumers read it from there. Lines a
 * multiple of 4 apart (of complex numbers of 2) have the same shift. Beyond the last k, and the operand's edge, there are zeros. */
#ifndef WS_CUDA_TF32_LOAD_CUH
#define WS_CUDA_TF32_LOAD_CUH
#include "cuda/ptx/copy.cuh"
#include "cuda/rows/tf32_config.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* From line to line, in floats, and the first one of a tile's k blocks. UNIT: floats of an element. */
template <int UNIT, bool K> __device__ __forceinline__ int64_t tf32_ld(const ws_operand &op) {
  return UNIT * (K ? op.step_mn : op.step_k);
}
template <int UNIT, bool K>
__device__ __forceinline__ const float *tf32_first(const ws_operand &op, int64_t batch, int64_t x_first, int64_t k_first) {
  const int64_t line = K ? x_first : k_first, along = K ? k_first : x_first;
  return static_cast<const float *>(op.data) + UNIT * (batch * op.stride + along) + line * tf32_ld<UNIT, K>(op);
}

/* How far after a multiple of 16 bytes line number `line` begins, in floats. */
__device__ __forceinline__ int tf32_shift(const float *first, int64_t ld, int line) {
  return int((reinterpret_cast<uintptr_t>(first) >> 2) + uint32_t(line) * uint32_t(ld)) & 3;
}

/* Of X elements along m or n, of UNIT floats. K: contiguous along k. */
template <int UNIT, int X, bool K> struct tf32_operand {
  static constexpr int n_along = K ? WS_TF32_LINE : UNIT * X, n_lines = K ? X : WS_TF32_BK(UNIT), n_chunks = n_along / 4;
  static constexpr int step = WS_TF32_PRODUCERS / n_chunks, n_passes = (n_lines + step - 1) / step;
  static constexpr uint32_t pitch = 4 * (K ? WS_TF32_PITCH_K : WS_TF32_PITCH_X(UNIT, X));
  static_assert(WS_TF32_PRODUCERS % n_chunks == 0 && UNIT * step % 4 == 0 && n_lines <= WS_TF32_PRODUCERS,
                "lines of a thread are alike");

  const char *from, *from_more; /* this thread's first chunk, and the last one of a line, of the next k block */
  int64_t step_line, step_block;
  int shift, shift_more, n_x; /* n_x: that exist, of X */

  static __device__ __forceinline__ int thread() { return int(threadIdx.x % WS_TF32_PRODUCERS); }
  static __device__ __forceinline__ int line() { return thread() / n_chunks; }
  static __device__ __forceinline__ int chunk() { return thread() % n_chunks; }

  __device__ __forceinline__ tf32_operand(const ws_operand &op, int64_t batch, int64_t x_first, int64_t size, int64_t k_first) {
    const float *const first = tf32_first<UNIT, K>(op, batch, x_first, k_first);
    int64_t ld = tf32_ld<UNIT, K>(op);
    asm volatile("" : "+l"(ld)); /* what is made of it has no registers of its own from item to item */
    n_x = int(ws_min(X, size - x_first));
    step_line = 4 * step * ld, step_block = 4 * (K ? n_along : n_lines * ld);
    shift = tf32_shift(first, ld, line()), shift_more = tf32_shift(first, ld, thread());
    from = reinterpret_cast<const char *>(first + line() * ld - shift + 4 * chunk());
    from_more = reinterpret_cast<const char *>(first + thread() * ld - shift_more + 4 * n_chunks);
  }

  /* Bytes that exist of a chunk, of n floats along the line. */
  static __device__ __forceinline__ int bytes_of(int n, int shifted, int of_chunk) {
    return max(0, min(16, 4 * (n + shifted - 4 * of_chunk)));
  }

  /* What exists of a k block. WHOLE: all of it; EDGE: n_x of the X elements, as in a product with fewer rows or columns than the tile;
   * LAST: n_k along k, and n_x. */
  enum part { WHOLE, EDGE, LAST };

  template <part PART> __device__ __forceinline__ void copy_as(uint32_t stage, int n_k) const {
    constexpr bool is_line_whole = PART == WHOLE || (PART == EDGE && K), are_lines_there = PART == WHOLE || (PART == EDGE && !K);
    int n_x_here = n_x;
    int64_t step_here = step_line;
    /* what is made of them has no registers of its own from block to block */
    asm volatile("" : "+r"(n_x_here), "+l"(step_here));
    const int n_there = are_lines_there ? n_lines : K ? n_x_here : n_k, n_of_line = UNIT * (K ? n_k : n_x_here);
    const int n = is_line_whole ? n_along : min(n_along, n_of_line), bytes = is_line_whole ? 16 : bytes_of(n, shift, chunk());
    const char *at = from;
    const uint32_t to = stage + line() * pitch + chunk() * 16;
    /* The last block comes once in a product: its sizes are in few registers. */
#pragma unroll(PART == LAST && n_passes > 4 ? 4 : n_passes)
    for (int i = 0; i < n_passes; i++, at += step_here) {
      if (n_lines % step != 0 && line() + i * step >= n_lines) break;
      /* a copy of no bytes writes zeros and reads nothing */
      if (PART == LAST)
        cp_async_16(to + i * step * pitch, at, line() + i * step < n_there ? bytes : 0);
      else if (are_lines_there || line() + i * step < n_there)
        cp_async_16(to + i * step * pitch, at, bytes);
      else
        cp_async_16(to + i * step * pitch, at, 0);
    }
    if (thread() < n_lines && shift_more > 0)
      cp_async_16(stage + thread() * pitch + n_chunks * 16, from_more,
                  thread() < n_there ? bytes_of(n, shift_more, n_chunks) : 0);
  }

  /* The next k block, of which n_k exist. */
  __device__ __forceinline__ void copy(uint32_t stage, int n_k) const {
    if (n_k < WS_TF32_BK(UNIT))
      copy_as<LAST>(stage, n_k);
    else if (n_x < X)
      copy_as<EDGE>(stage, n_k);
    else
      copy_as<WHOLE>(stage, n_k);
  }
  __device__ __forceinline__ void advance() { from += step_block, from_more += step_block; }
};

} // namespace ws
#endif
