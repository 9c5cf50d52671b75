/* outer_load.cuh - copies of gemm_outer.cuh: one operand's k blocks to shared memory by all threads, in
 * lines as in memory, whatever their alignment. What does not exist is not copied, nor multiplied, nor
 * stored. */
#ifndef WS_CUDA_OUTER_LOAD_CUH
#define WS_CUDA_OUTER_LOAD_CUH
#include "cuda/ptx/copy.cuh"
#include "cuda/rows/outer_config.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* Of X elements along m or n. K: lines are along k. LINE: floats of one in shared memory. */
template <class Config, int X, bool K, int LINE> struct outer_operand {
  static constexpr int unit = Config::unit, n_threads = Config::n_threads;
  static constexpr int n_along = unit * (K ? Config::bk : X), n_lines = K ? X : Config::bk; /* floats; lines */
  static constexpr int element_bytes = 4 * unit;
  static constexpr bool has_vectors = LINE % 4 == 0;

  const char *from; /* the next k block */
  int n_x;          /* that exist, of X */

  static __device__ __forceinline__ int64_t step_line(const ws_operand &op) { return element_bytes * (K ? op.step_mn : op.step_k); }
  __device__ __forceinline__ void seat(const ws_operand &op, int64_t batch, int64_t x_first, int64_t size, int64_t k_first) {
    from = static_cast<const char *>(op.data) + element_bytes * (batch * op.stride + x_first * op.step_mn + k_first * op.step_k);
    n_x = int(ws_min(X, size - x_first));
  }
  __device__ __forceinline__ void advance(const ws_operand &op) { from += Config::bk * element_bytes * op.step_k; }

  /* Asked for anew, so that what follows from it is worked out again and does not live in registers beside the sums. */
  static __device__ __forceinline__ int own_idx() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
  }

  /* WIDTH: bytes of a copy. IS_WHOLE: all of the block exists; else n_k along k. */
  template <int WIDTH, bool IS_WHOLE> __device__ __forceinline__ void copy_as(const ws_operand &op, uint32_t to, int n_k) const {
    constexpr int floats = WIDTH / 4, along = n_along / floats, lines_at_once = n_threads >= along ? n_threads / along : 1;
    constexpr int across = n_threads >= along ? 1 : along / n_threads, n_passes = (n_lines + lines_at_once - 1) / lines_at_once;
    static_assert(n_threads % along == 0 || along % n_threads == 0, "threads lie on whole lines, or parts of one");
    const int thread = own_idx(), c = n_threads >= along ? thread % along : thread, line = n_threads >= along ? thread / along : 0;
    const int64_t step = step_line(op);
    const char *at = from + line * step + c * WIDTH;
    const uint32_t there = to + uint32_t(line * LINE * 4 + c * WIDTH);
    const int along_that_exist = unit * (K ? n_k : n_x), lines_that_exist = K ? n_x : n_k;
#pragma unroll
    for (int i = 0; i < n_passes; i++, at += lines_at_once * step) {
      if (n_lines % lines_at_once != 0 && line + i * lines_at_once >= n_lines) break;
      if (IS_WHOLE || line + i * lines_at_once < lines_that_exist)
#pragma unroll
        for (int a = 0; a < across; a++)
          if (IS_WHOLE || (c + a * n_threads) * floats < along_that_exist)
            copy_one<WIDTH>(there + uint32_t(i * lines_at_once * LINE * 4 + a * n_threads * WIDTH), at + a * n_threads * WIDTH,
                            IS_WHOLE ? WIDTH : 4 * (along_that_exist - (c + a * n_threads) * floats));
      asm volatile("" : "+l"(at)); /* else each address is worked out anew */
    }
  }
  template <int WIDTH> static __device__ __forceinline__ void copy_one(uint32_t to, const void *from, int existing) {
    if constexpr (WIDTH == 16)
      cp_async_16(to, from, min(16, existing));
    else
      cp_async<WIDTH>(to, from, WIDTH);
  }
  template <int WIDTH> __device__ __forceinline__ void copy_by(const ws_operand &op, uint32_t to, int n_k) const {
    if (n_k == Config::bk && n_x == X)
      copy_as<WIDTH, true>(op, to, n_k);
    else
      copy_as<WIDTH, false>(op, to, n_k);
  }
  __device__ __forceinline__ void copy(const ws_operand &op, uint32_t to, int n_k) const {
    if (has_vectors && (op.mode == WS_COPY_VECTORS_MN || op.mode == WS_COPY_VECTORS_K)) {
      if constexpr (has_vectors) copy_by<16>(op, to, n_k);
    } else if (unit == 1 || op.whole_elements) {
      copy_by<element_bytes>(op, to, n_k);
    } else {
      copy_by<4>(op, to, n_k);
    }
  }
};

} // namespace ws
#endif
