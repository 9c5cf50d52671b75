/* copy_tile16.cuh - brings one k block of an operand of 16-bit elements into shared memory,
 * whatever its layout, alignment and edges.
 *
 * It stands there as in global memory: rows of what is contiguous (BY_X: X rows of BK elements
 * along k; else BK rows of X elements along m or n), 16 bytes apart from each other, so that rows
 * that follow each other begin in different banks. Neighbouring threads copy neighbours in a row,
 * by the widest of three ways for which pointer, ld and stride are aligned:
 *
 *   VECTORS   8 elements at a time, asynchronously
 *   PAIRS     2 elements at a time, asynchronously
 *   SINGLES   each by a load of its own (cp.async knows no 2 bytes), stored by pairs once all loads
 *             of the thread are under way
 *
 * A stored element is seen by all after the barrier that makes asynchronous ones seen (gemm.cuh):
 * both come before it. What is outside the operand, along k or beyond its edge, is zero in shared
 * memory, and never read. */
#ifndef WS_CUDA_COPY_TILE16_CUH
#define WS_CUDA_COPY_TILE16_CUH
#include "cuda/ptx/copy.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* One operand's tile for one work item: X elements along m or n, the first of tile number `tile` of
 * TILE_X. */
template <class Config, int X, int TILE_X, bool BY_X> struct operand_tile16 {
  using element = typename Config::element;
  static constexpr int element_bytes = int(sizeof(element)), bk = Config::bk;
  /* of a thread, in registers */
  static constexpr int n_sums = Config::bm * Config::item_n / Config::n_threads;
  static constexpr int n_columns = BY_X ? bk : X, n_rows = BY_X ? X : bk;
  static constexpr int pitch_bytes = (BY_X ? Config::k_pitch : X + Config::pad) * element_bytes;
  static_assert(element_bytes == 2, "elements of 16 bits");

  /* How the threads are laid over the tile with WIDTH elements each: from `row` on, `rows` at once,
   * in n_steps. */
  template <int WIDTH> struct places {
    static constexpr int along = n_columns / WIDTH, rows = Config::n_threads / along, n_steps = n_rows / rows;
    static_assert(n_columns % WIDTH == 0 && Config::n_threads % along == 0 && n_rows % rows == 0,
                  "the threads step over whole tiles");
    static __device__ __forceinline__ int column() { return int(threadIdx.x) % along * WIDTH; }
    static __device__ __forceinline__ int row() { return int(threadIdx.x) / along; }
  };

  /* How the next k block is copied: whole, or the part of it that exists (EDGE: of every k
   * block). */
  enum path { VECTORS, EDGE_VECTORS, PAIRS, SINGLES };

  const ws_operand &op;
  const element *from;    /* this thread's first element of the k block before the next */
  uint32_t target_offset; /* where it goes in a stage, in bytes */
  int how;                /* path */
  const int64_t &size_x;  /* of the operand */
  /* which of its tiles of TILE_X; references, so that no register is kept for n_x() */
  const int &tile;

  __device__ operand_tile16(const ws_operand &operand, int64_t batch, const int &tile_idx, const int64_t &size, int64_t first_p)
      : op(operand), size_x(size), tile(tile_idx) {
    const bool vectors = op.mode == (BY_X ? WS_COPY_VECTORS_K : WS_COPY_VECTORS_MN);
    const int column = vectors ? places<8>::column() : places<2>::column(), row = vectors ? places<8>::row() : places<2>::row();
    from = static_cast<const element *>(op.data) + batch * op.stride + int64_t(tile) * TILE_X * op.step_mn +
           (first_p - bk) * op.step_k + column + row * row_step();
    target_offset = uint32_t(row * pitch_bytes + column * element_bytes);
    how = vectors ? (n_x() < X ? EDGE_VECTORS : VECTORS) : op.pairs ? PAIRS : SINGLES;
  }

  /* The next k block to `stage`: one of n_whole whole ones, or after these what is left of n_k(),
   * if anything is. The caller commits. */
  template <class SizeK> __device__ __forceinline__ void copy(const element *stage, int n_whole, SizeK n_k) {
    const int n = n_whole > 0 ? bk : n_whole == 0 ? int(uint64_t(n_k()) % bk) : 0;
    if (n == 0) return;
    /* not after the copies, which would be waited for: they still read their addresses */
    from += bk * op.step_k;
    const uint32_t to = shared_address(stage) + target_offset;
    if (how == VECTORS && n == bk)
      copy_vectors(to);
    else if (how <= EDGE_VECTORS)
      copy_part<8>(to, n);
    else if (how == PAIRS)
      copy_part<2>(to, n);
    else
      copy_singles(to, n);
  }

private:
  __device__ __forceinline__ int64_t row_step() const { return BY_X ? op.step_mn : op.step_k; }
  /* Elements along x that exist, at most X. */
  __device__ __forceinline__ int n_x() const { return int(ws_min(X, size_x - int64_t(tile) * TILE_X)); }

  /* From this thread's place on: rows that exist, and elements of each row. */
  template <int WIDTH> __device__ __forceinline__ int n_rows_left(int n_k) const {
    return (BY_X ? n_x() : n_k) - places<WIDTH>::row();
  }
  template <int WIDTH> __device__ __forceinline__ int n_inside(int n_k) const {
    return max(0, min(WIDTH, (BY_X ? n_k : n_x()) - places<WIDTH>::column()));
  }

  __device__ __forceinline__ void copy_vectors(uint32_t to) const {
    using place = places<8>;
    const element *row = from;
#pragma unroll
    for (int step = 0; step < place::n_steps; step++, row += place::rows * row_step())
      cp_async_16(to + uint32_t(step * place::rows * pitch_bytes), row, 16);
  }

  /* With src-size 0 nothing is read, wherever the address is, but it shall be a good one. */
  template <int WIDTH> __device__ __forceinline__ void copy_part(uint32_t to, int n_k) const {
    using place = places<WIDTH>;
    const element *row = from;
    const int n_rows_here = n_rows_left<WIDTH>(n_k), n_here = n_inside<WIDTH>(n_k);
#pragma unroll 2
    for (int step = 0; step < place::n_steps; step++, row += place::rows * row_step(), to += place::rows * pitch_bytes) {
      const int inside = step * place::rows < n_rows_here ? n_here : 0;
      const void *at = inside > 0 ? row : op.data;
      if constexpr (WIDTH == 8)
        cp_async_16(to, at, inside * element_bytes);
      else
        cp_async<WIDTH * element_bytes>(to, at, inside * element_bytes);
    }
  }

  __device__ __forceinline__ void copy_singles(uint32_t to, int n_k) const {
    using place = places<2>;
    /* pairs on their way */
    constexpr int most = n_sums < 64 ? 8 : 4, at_once = place::n_steps < most ? place::n_steps : most;
    static_assert(place::n_steps % at_once == 0);
    const element *row = from;
    const int n_rows_here = n_rows_left<2>(n_k), n_here = n_inside<2>(n_k);
#pragma unroll 1
    for (int step = 0; step < place::n_steps; step += at_once) {
      uint32_t pair[at_once];
#pragma unroll
      for (int u = 0; u < at_once; u++, row += place::rows * row_step()) {
        const int inside = (step + u) * place::rows < n_rows_here ? n_here : 0;
        const uint32_t first = inside > 0 ? __ldg(row) : 0, second = inside > 1 ? __ldg(row + 1) : 0;
        pair[u] = first | second << 16;
      }
#pragma unroll
      for (int u = 0; u < at_once; u++, to += place::rows * pitch_bytes) store_shared(to, pair[u]);
    }
  }
};

} // namespace ws
#endif
