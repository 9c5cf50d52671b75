/* outer_load.cuh - copies of gemm_outer.cuh: one operand's k blocks to shared memory by all threads, whatever
 * its layout and alignment. There a block is bk lines of X elements along m or n, one for each k.
 *
 * Lines of memory along k are copied element by element, each to another line; those along m or n by 16
 * bytes where they are aligned. Up to an even number of k there are zeros; beyond the operand's edge there is anything,
 * which becomes sums that nobody stores. */
#ifndef WS_CUDA_OUTER_LOAD_CUH
#define WS_CUDA_OUTER_LOAD_CUH
#include "cuda/ptx/copy.cuh"
#include "cuda/rows/outer_config.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* K: lines of memory are along k. */
template <class Config, int X, bool K> struct outer_operand {
  static constexpr int unit = Config::unit, n_threads = Config::n_threads, bk = Config::bk,
                       line_bytes = 4 * WS_OUTER_LINE(unit, X);
  static constexpr int n_along = unit * (K ? bk : X), n_lines = K ? X : bk; /* floats; lines */
  static constexpr int element_bytes = 4 * unit;

  const char *from; /* the next k block */
  int n_x;          /* that exist, of X */

  __device__ __forceinline__ void seat(const ws_operand &op, int64_t batch, int64_t x_first, int64_t size, int64_t k_first) {
    from = static_cast<const char *>(op.data) + element_bytes * (batch * op.stride + x_first * op.step_mn + k_first * op.step_k);
    n_x = int(ws_min(X, size - x_first));
  }
  __device__ __forceinline__ void advance(const ws_operand &op) { from += bk * element_bytes * op.step_k; }

  /* Asked for anew, so that what follows from it is worked out again and does not live in registers beside the sums. */
  static __device__ __forceinline__ int own_idx() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
  }

  /* Shared memory's address of float `along` of line `line`. */
  static __device__ __forceinline__ uint32_t place(int line, int along) {
    if (K) return uint32_t(along / unit * line_bytes + line * element_bytes + along % unit * 4);
    return uint32_t(line * line_bytes + along * 4);
  }

  /* How threads lie for copies of WIDTH bytes: on so many lines at once, or several times across one. */
  template <int WIDTH> static constexpr int along = n_along * 4 / WIDTH;
  template <int WIDTH> static constexpr int at_once = n_threads >= along<WIDTH> ? n_threads / along<WIDTH> : 1;
  template <int WIDTH> static constexpr int across = n_threads >= along<WIDTH> ? 1 : along<WIDTH> / n_threads;
  template <int WIDTH> static __device__ __forceinline__ int first_line(int thread) {
    static_assert(n_threads % along<WIDTH> == 0 || along<WIDTH> % n_threads == 0, "threads lie on whole lines, or parts of one");
    return n_threads >= along<WIDTH> ? thread / along<WIDTH> : 0;
  }
  template <int WIDTH> static __device__ __forceinline__ int first_along(int thread) {
    return thread % (n_threads >= along<WIDTH> ? along<WIDTH> : n_threads) * (WIDTH / 4);
  }
  __device__ __forceinline__ int64_t step(const ws_operand &op) const { return element_bytes * (K ? op.step_mn : op.step_k); }

  /* A block of which all exists. */
  template <int WIDTH> __device__ __forceinline__ void copy_whole(const ws_operand &op, uint32_t to) const {
    const int thread = own_idx(), c = first_along<WIDTH>(thread), line = first_line<WIDTH>(thread);
    const int64_t step_at_once = at_once<WIDTH> * step(op);
    const char *at = from + line * step(op) + c * 4;
    const uint32_t there = to + place(line, c);
#pragma unroll
    for (int i = 0; i < n_lines; i += at_once<WIDTH>, at += step_at_once) {
      if (n_lines % at_once<WIDTH> != 0 && line + i >= n_lines) break;
#pragma unroll
      for (int a = 0; a < across<WIDTH>; a++)
        copy_one<WIDTH>(there + place(i, a * n_threads * WIDTH / 4), at + a * n_threads * WIDTH, WIDTH);
      asm volatile("" : "+l"(at)); /* else each address is worked out anew */
    }
  }

  /* The same of n_k along k; short code. */
  template <int WIDTH> __device__ __forceinline__ void copy_part(const ws_operand &op, uint32_t to, int n_k) const {
    const int thread = own_idx(), line = first_line<WIDTH>(thread), even_k = n_k + n_k % 2; /* with the zeros */
    const int lines = K ? n_x : even_k, real_lines = K ? n_x : n_k, floats = unit * (K ? even_k : n_x);
    const int64_t step_at_once = at_once<WIDTH> * step(op);
#pragma unroll
    for (int a = 0; a < across<WIDTH>; a++) {
      const int c = first_along<WIDTH>(thread) + a * n_threads * WIDTH / 4;
      const int existing = max(0, min(WIDTH, 4 * (unit * (K ? n_k : n_x) - c)));
      const char *at = from + line * step(op) + c * 4;
      uint32_t there = to + place(line, c);
      if (c >= floats) break;
#pragma unroll 1
      for (int l = line; l < lines; l += at_once<WIDTH>, at += step_at_once, there += place(at_once<WIDTH>, 0))
        copy_one<WIDTH>(there, at, l < real_lines ? existing : 0);
    }
  }
  /* Of no bytes: it reads nothing. */
  template <int WIDTH> static __device__ __forceinline__ void copy_one(uint32_t to, const void *from, int existing) {
    if constexpr (WIDTH == 16)
      cp_async_16(to, from, existing);
    else
      cp_async<WIDTH>(to, from, existing);
  }
  template <int WIDTH> __device__ __forceinline__ void copy_by(const ws_operand &op, uint32_t to, int n_k) const {
    if (Config::is_large && n_k == bk && n_x == X)
      copy_whole<WIDTH>(op, to);
    else
      copy_part<WIDTH>(op, to, n_k);
  }
  __device__ __forceinline__ void copy(const ws_operand &op, uint32_t to, int n_k) const {
    if (!K && op.mode == WS_COPY_VECTORS_MN)
      copy_by<K ? element_bytes : 16>(op, to, n_k);
    else if (unit == 1 || op.whole_elements)
      copy_by<element_bytes>(op, to, n_k);
    else
      copy_by<4>(op, to, n_k);
  }
};

} // namespace ws
#endif
