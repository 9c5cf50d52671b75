/* direct_load.cuh - brings one k block of an operand of 16-bit elements into the shared memory of a
 * group of warps, whatever its layout, alignment and edges (direct rows).
 *
 * It stands there as in global memory (copy_tile16.cuh): X rows of k, or (not BY_X) rows of X for
 * each k. By the widest of three ways for which pointer, ld and stride are aligned:
 *
 *   VECTORS, PAIRS   8 or 2 elements at a time, asynchronously: load() of the block n_stages - 1
 *                    ahead
 *   SINGLES          each by a load of its own into a register: fetch() of the next block before the
 *                    group multiplies, put() after that
 *
 * What is outside the operand, along k or beyond its edge, is zero in shared memory, and never
 * read. */
#ifndef WS_CUDA_DIRECT_LOAD_CUH
#define WS_CUDA_DIRECT_LOAD_CUH
#include "cuda/ptx/copy.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* The operand's tile of one item: X elements along m or n. */
template <class Config, int X, bool BY_X> struct direct_operand {
  using element = typename Config::element;
  static constexpr int bk = Config::bk, n_columns = BY_X ? bk : X, n_rows = BY_X ? X : bk;
  static constexpr int pitch_bytes = (BY_X ? Config::k_pitch : X + Config::pad) * int(sizeof(element));

  /* Unsigned, as all that is divided here: of the signed it takes four instructions. */
  static __device__ __forceinline__ uint32_t thread() { return threadIdx.x % uint32_t(Config::group_threads); }

  /* How the group is laid over the block with WIDTH elements each. */
  template <int WIDTH> struct places {
    static constexpr int along = n_columns / WIDTH, rows = Config::group_threads / along,
                         n_steps = n_rows > rows ? n_rows / rows : 1;
    static constexpr bool has_idle = rows > n_rows;
    static_assert(n_columns % WIDTH == 0 && Config::group_threads % along == 0 && (has_idle || n_rows % rows == 0),
                  "the threads step over whole blocks");
    static __device__ __forceinline__ int column() { return int(thread() % uint32_t(along)) * WIDTH; }
    static __device__ __forceinline__ int row() { return int(thread() / uint32_t(along)); }
  };
  static constexpr int n_fetched = places<2>::n_steps;

  enum path { VECTORS, PAIRS, SINGLES };
  const element *first; /* this thread's of k block 0 */
  const void *inside;   /* of the operand, for copies of nothing */
  int64_t row_step, k_step;
  int n_x; /* elements along x that exist */
  int how; /* path */

  __device__ __forceinline__ direct_operand(const ws_operand &op, int64_t batch, int64_t x_first, int64_t size)
      : inside(op.data), row_step(BY_X ? op.step_mn : op.step_k), k_step(BY_X ? 1 : op.step_k),
        n_x(int(ws_min(X, size - x_first))) {
    how = op.mode == (BY_X ? WS_COPY_VECTORS_K : WS_COPY_VECTORS_MN) ? VECTORS : op.pairs ? PAIRS : SINGLES;
    const int row = how == VECTORS ? places<8>::row() : places<2>::row(),
              column = how == VECTORS ? places<8>::column() : places<2>::column();
    first = static_cast<const element *>(op.data) + batch * op.stride + x_first * op.step_mn + column + row * row_step;
  }

  /* By copies: elements k .. k + n_k - 1, n_k at least 1, to a stage. The caller commits. */
  __device__ __forceinline__ void load(uint32_t stage, int64_t k, int n_k) const {
    if (how == VECTORS)
      copy<8>(stage, k, n_k);
    else if (how == PAIRS)
      copy<2>(stage, k, n_k);
  }

  /* By single elements: as pairs of loads on their way. */
  struct fetched {
    uint32_t low[n_fetched], high[n_fetched];
  };
  __device__ __forceinline__ void fetch(fetched &to, int64_t k, int n_k) const {
    using place = places<2>;
    if (how != SINGLES) return;
    const element *row = first + k * k_step;
    const int rows_here = rows_left<2>(n_k), here = n_inside<2>(n_k);
#pragma unroll
    for (int s = 0; s < place::n_steps; s++, row += place::rows * row_step) {
      const int n = s * place::rows < rows_here ? here : 0;
      to.low[s] = n > 0 ? __ldg(row) : 0, to.high[s] = n > 1 ? __ldg(row + 1) : 0;
    }
  }
  __device__ __forceinline__ void put(const fetched &from, uint32_t stage) const {
    using place = places<2>;
    if (how != SINGLES || (place::has_idle && place::row() >= n_rows)) return;
    const uint32_t to = stage + uint32_t(place::row() * pitch_bytes + place::column() * int(sizeof(element)));
#pragma unroll
    for (int s = 0; s < place::n_steps; s++)
      store_shared(to + uint32_t(s * place::rows * pitch_bytes), from.low[s] | from.high[s] << 16);
  }

private:
  /* From this thread's place on: rows that exist, and elements of each. */
  template <int WIDTH> __device__ __forceinline__ int rows_left(int n_k) const {
    return (BY_X ? n_x : n_k) - places<WIDTH>::row();
  }
  template <int WIDTH> __device__ __forceinline__ int n_inside(int n_k) const {
    return max(0, min(WIDTH, (BY_X ? n_k : n_x) - places<WIDTH>::column()));
  }

  template <int WIDTH> __device__ __forceinline__ void copy(uint32_t stage, int64_t k, int n_k) const {
    using place = places<WIDTH>;
    if (place::has_idle && place::row() >= n_rows) return;
    const element *row = first + k * k_step;
    uint32_t to = stage + uint32_t(place::row() * pitch_bytes + place::column() * int(sizeof(element)));
    const int rows_here = rows_left<WIDTH>(n_k), here = n_inside<WIDTH>(n_k);
#pragma unroll 4
    for (int s = 0; s < place::n_steps; s++, row += place::rows * row_step, to += place::rows * pitch_bytes) {
      const int n = s * place::rows < rows_here ? here : 0;
      const void *from = n > 0 ? row : inside;
      if constexpr (WIDTH == 8)
        cp_async_16(to, from, n * int(sizeof(element)));
      else
        cp_async<WIDTH *int(sizeof(element))>(to, from, n * int(sizeof(element)));
    }
  }
};

} // namespace ws
#endif
