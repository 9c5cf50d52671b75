/* copy_tile.cuh - brings one k block of an operand into shared memory, whatever its layout, alignment and edges.
 *
 * In shared memory a k block stands as BK rows of PITCH elements, x (m or n) running along a row, so that a thread reads its
 * fragment as vectors. From global memory it comes in one of three ways (ws_copy_mode): 16 bytes along x, single elements along x, or
 * single elements along k. Copies along k are given to the lanes as 8 of k times 4 of x: 8 neighbours in memory are a whole sector, and
 * the pitch puts the 32 targets into different banks. What lies outside the operand becomes zero; nothing is read there. */
#ifndef WS_CUDA_COPY_TILE_CUH
#define WS_CUDA_COPY_TILE_CUH
#include "kernel_args.h"
#include "ptx_copy.cuh"

namespace ws {

/* One operand's tile for one work item: X elements along m or n. The block's threads stand n_along_x times n_threads / n_along_x over
 * the tile, `width` elements each, and step over it; k_first: neighbouring threads are neighbours along k, which is contiguous. */
template <class Config, int X, int PITCH> struct operand_tile {
  using real = typename Config::real;
  using element = typename Config::element;
  static constexpr int element_bytes = int(sizeof(element)), real_bytes = int(sizeof(real));
  static constexpr int n_threads = Config::n_threads, bk = Config::bk;

  template <int N_ALONG_X, int WIDTH, bool K_FIRST> struct pattern {
    static constexpr int n_along_x = N_ALONG_X, n_along_p = n_threads / N_ALONG_X, width = WIDTH, x_step = N_ALONG_X * WIDTH;
    static constexpr bool k_first = K_FIRST;
    static_assert(n_threads % N_ALONG_X == 0 && X % x_step == 0, "the threads step over whole tiles");
    static __device__ __forceinline__ int x() {
      return (K_FIRST ? int(threadIdx.x) / n_along_p : int(threadIdx.x) % N_ALONG_X) * WIDTH;
    }
    static __device__ __forceinline__ int p() { return K_FIRST ? int(threadIdx.x) % n_along_p : int(threadIdx.x) / N_ALONG_X; }
  };
  using vectors = pattern < X / Config::vec<n_threads ? X / Config::vec : n_threads, Config::vec, false>;
  using along_mn = pattern < X<n_threads ? X : n_threads, 1, false>;
  using along_k = pattern<n_threads / 8, 1, true>;

  const ws_operand &op;
  const element *from;    /* this thread's first element of the next k block */
  uint32_t target_offset; /* where it goes in a stage, in bytes */
  int n_x;                /* elements along x that exist, at most X */

  __device__ operand_tile(const ws_operand &operand, int64_t batch, int64_t first_x, int64_t size_x, int64_t first_p)
      : op(operand), n_x(int(ws_min(X, size_x - first_x))) {
    const bool is_vectors = op.mode == WS_COPY_VECTORS, is_along_k = op.mode == WS_COPY_ALONG_K;
    const int x = is_vectors ? vectors::x() : is_along_k ? along_k::x() : along_mn::x();
    const int p = is_vectors ? vectors::p() : is_along_k ? along_k::p() : along_mn::p();
    from = static_cast<const element *>(op.data) + batch * op.stride + (first_x + x) * op.step_mn + (first_p + p) * op.step_k;
    target_offset = uint32_t((p * PITCH + x) * element_bytes);
  }

  /* The next k block, of which n_k (<= BK) rows exist, to `stage`. The caller commits. */
  __device__ __forceinline__ void copy_next(const element *stage, int n_k) {
    const uint32_t target = shared_address(stage) + target_offset;
    if (op.mode == WS_COPY_VECTORS)
      copy_by<vectors>(target, n_k);
    else if (op.mode == WS_COPY_ALONG_K)
      copy_by<along_k>(target, n_k);
    else
      copy_by<along_mn>(target, n_k);
    from += bk * op.step_k;
  }

private:
  template <class Pattern> __device__ __forceinline__ void copy_by(uint32_t to, int n_k) const {
    if (n_x == X && n_k == bk)
      copy_inside<Pattern>(to);
    else
      copy_at_edge<Pattern>(to, n_k);
  }

  template <class Pattern> __device__ __forceinline__ void copy_inside(uint32_t to) const {
    if (Pattern::n_along_p > bk && Pattern::p() >= bk) return;
    const int64_t step_x = Pattern::k_first ? Pattern::x_step * op.step_mn : Pattern::x_step;
    const int64_t step_p = Pattern::k_first ? Pattern::n_along_p : Pattern::n_along_p * op.step_k;
    const element *column = from;
#pragma unroll
    for (int x = 0; x < X; x += Pattern::x_step, column += step_x) {
      const element *at = column;
#pragma unroll
      for (int p = 0; p < bk; p += Pattern::n_along_p, at += step_p)
        copy_one<Pattern::width>(to + uint32_t((p * PITCH + x) * element_bytes), at, Pattern::width);
    }
  }

  /* Small rather than fast. */
  template <class Pattern> __device__ __forceinline__ void copy_at_edge(uint32_t to, int n_k) const {
    if (Pattern::n_along_p > bk && Pattern::p() >= bk) return;
#pragma unroll 1
    for (int x = 0; x < X; x += Pattern::x_step)
#pragma unroll 1
      for (int p = 0; p < bk; p += Pattern::n_along_p) {
        const int inside = Pattern::p() + p < n_k ? min(max(n_x - Pattern::x() - x, 0), Pattern::width) : 0;
        const element *at = inside > 0 ? from + x * op.step_mn + p * op.step_k : static_cast<const element *>(op.data);
        copy_one<Pattern::width>(to + uint32_t((p * PITCH + x) * element_bytes), at, inside);
      }
  }

  template <int WIDTH> __device__ __forceinline__ void copy_one(uint32_t target, const element *source, int inside) const {
    if (WIDTH > 1 || Config::unit == 1 || op.whole_elements) {
      constexpr int bytes = WIDTH * element_bytes;
      if constexpr (bytes == copy_bytes)
        cp_async_16(target, source, inside * element_bytes);
      else
        cp_async<bytes>(target, source, inside * element_bytes);
    } else {
      const real *parts = reinterpret_cast<const real *>(source);
      cp_async<real_bytes>(target, parts, inside * real_bytes);
      cp_async<real_bytes>(target + real_bytes, parts + 1, inside * real_bytes);
    }
  }
};

} // namespace ws
#endif
