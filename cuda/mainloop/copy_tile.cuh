/* copy_tile.cuh - brings one k block of an operand into shared memory, whatever its layout,
 * alignment and edges.
 *
 * In shared memory a k block is BK rows of PITCH elements, x (m or n) running along a row, so that
 * a thread reads its fragment as vectors. From global memory it comes in one of three ways
 * (ws_copy_mode): 16 bytes along x, single elements along x, or single elements along k. Copies
 * along k are given to the lanes as 8 of k times 4 of x: 8 neighbours in memory are a whole sector,
 * and the pitch puts the 32 targets into different banks. Where the mainloop can read it so (BY_X),
 * a k-contiguous operand is X rows of k_pitch words, k running along a row, and comes by 16 bytes
 * or single elements along k. The parts of a complex element go to planes of their own if the
 * mainloop wants them so (Config::splits): two neighbouring threads share an element, so that a
 * warp still reads whole lines; the planes lie so that the parts of a line go into different banks.
 * Beyond the operand's last k the block is filled up with zeros; nothing is read outside the
 * operand. */
#ifndef WS_CUDA_COPY_TILE_CUH
#define WS_CUDA_COPY_TILE_CUH
#include <type_traits>

#include "cuda/ptx/copy.cuh"
#include "cuda/rows/config.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* One operand's tile for one work item: X elements along m or n, the first of tile number `tile` of
 * TILE_X. The block's threads are arranged n_along_x times n_along_p over the tile, `width`
 * elements each, and step over it; k_first: neighbouring threads are neighbours along k, which is
 * contiguous. PLANE: words from the real to the imaginary parts. */
template <class Config, int X, int TILE_X, int PITCH, int PLANE, bool BY_X> struct operand_tile {
  using real = typename Config::real;
  using element = typename Config::element;
  static constexpr int element_bytes = int(sizeof(element)), real_bytes = int(sizeof(real)),
                       word_bytes = int(sizeof(typename Config::word));
  static constexpr int sharers = Config::n_planes, n_movers = Config::n_threads / sharers, bk = Config::bk;
  /* from neighbour to neighbour */
  static constexpr int pitch_x = BY_X ? Config::k_pitch : 1, pitch_p = BY_X ? 1 : PITCH;

  /* The most threads along x, at most `most`, with which all step over whole tiles. */
  static constexpr int fit_along_x(int most, int width_x) {
    int n = most < n_movers ? most : n_movers;
    while (n_movers % n != 0 || X % (n * width_x) != 0) n--;
    return n;
  }

  static __device__ __forceinline__ int mover() { return int(threadIdx.x) / sharers; }
  static __device__ __forceinline__ int part() { return int(threadIdx.x) % sharers; }

  template <int MOST_ALONG_X, int WIDTH_X, int WIDTH_P, bool K_FIRST> struct pattern {
    static constexpr int n_along_x = fit_along_x(MOST_ALONG_X, WIDTH_X), n_along_p = n_movers / n_along_x;
    static constexpr int width = WIDTH_X * WIDTH_P, width_p = WIDTH_P, x_step = n_along_x * WIDTH_X, p_step = n_along_p * WIDTH_P;
    static constexpr bool k_first = K_FIRST, has_idle = p_step > bk;
    static_assert(has_idle || bk % p_step == 0, "the threads step over whole blocks");
    static __device__ __forceinline__ int x() { return (K_FIRST ? mover() / n_along_p : mover() % n_along_x) * WIDTH_X; }
    static __device__ __forceinline__ int p() { return (K_FIRST ? mover() % n_along_p : mover() / n_along_x) * WIDTH_P; }
  };
  static constexpr int vec = Config::vec;
  /* Eight threads along x read a whole line; with few, all further steps are along x, at constant
   * distances. */
  using vectors = std::conditional_t<BY_X, pattern<n_movers * vec / bk, 1, vec, true>,
                                     pattern<(n_movers / bk > 8 ? n_movers / bk : 8), vec, 1, false>>;
  using along_mn = pattern<X, 1, 1, false>;
  using along_k = pattern<BY_X ? n_movers / bk : n_movers / 8, 1, 1, true>;

  /* How a whole k block is copied: one small number, so that the main loop asks little. */
  enum path { VECTORS, ALONG_K, ALONG_MN, EDGE_VECTORS, EDGE_ALONG_K, EDGE_ALONG_MN };

  const ws_operand &op;
  const element *from;    /* this thread's first element of the k block before the next */
  uint32_t target_offset; /* where it goes in a stage, in bytes */
  int how;                /* path */
  const int64_t &size_x;  /* of the operand */
  /* which of its tiles of TILE_X; references, so that no register is kept for n_x() */
  const int &tile;

  __device__ operand_tile(const ws_operand &operand, int64_t batch, const int &tile_idx, const int64_t &size, int64_t first_p)
      : op(operand), size_x(size), tile(tile_idx) {
    const int64_t first_x = int64_t(tile) * TILE_X;
    const int x = by_vectors() ? vectors::x() : by_k() ? along_k::x() : along_mn::x();
    const int p = by_vectors() ? vectors::p() : by_k() ? along_k::p() : along_mn::p();
    from =
        static_cast<const element *>(op.data) + batch * op.stride + (first_x + x) * op.step_mn + (first_p + p - bk) * op.step_k;
    target_offset = uint32_t((p * pitch_p + x * pitch_x + part() * PLANE) * word_bytes);
    how = (by_vectors() ? VECTORS : by_k() ? ALONG_K : ALONG_MN) + (n_x() < X ? EDGE_VECTORS : VECTORS);
  }

  /* Elements along x that exist, at most X. */
  __device__ __forceinline__ int n_x() const { return int(ws_min(X, size_x - int64_t(tile) * TILE_X)); }
  __device__ __forceinline__ bool by_vectors() const {
    return vec > 1 && op.mode == (BY_X ? WS_COPY_VECTORS_K : WS_COPY_VECTORS_MN);
  }
  __device__ __forceinline__ bool by_k() const { return BY_X || op.mode >= WS_COPY_VECTORS_K; }

  /* The next k block to `stage`: one of n_whole whole ones, or after these what is left of n_k(),
   * if anything is. The caller commits. */
  template <class SizeK> __device__ __forceinline__ void copy(const typename Config::word *stage, int n_whole, SizeK n_k) {
    if (n_whole > 0)
      copy_whole(stage);
    else if (const int rest = int(uint64_t(n_k()) % bk); n_whole == 0 && rest > 0)
      copy_rest(stage, rest);
  }

private:
  /* The next k block, which is whole. */
  __device__ __forceinline__ void copy_whole(const typename Config::word *stage) {
    const uint32_t target = next_target(stage);
    if (how == VECTORS)
      copy_block<vectors, false>(target);
    else if (how == ALONG_K)
      copy_block<along_k, false>(target);
    else if (how == ALONG_MN)
      copy_block<along_mn, false>(target);
    else if (how == EDGE_VECTORS)
      copy_block<vectors, true>(target);
    else if (how == EDGE_ALONG_K)
      copy_block<along_k, true>(target);
    else
      copy_block<along_mn, true>(target);
  }

  /* The last k block, of which n_k < BK rows exist, filled up with zeros. */
  __device__ __forceinline__ void copy_rest(const typename Config::word *stage, int n_k) {
    const uint32_t target = next_target(stage);
    if (by_vectors())
      copy_last<vectors>(target, n_k);
    else if (by_k())
      copy_last<along_k>(target, n_k);
    else
      copy_last<along_mn>(target, n_k);
  }

  __device__ __forceinline__ uint32_t next_target(const typename Config::word *stage) {
    /* not after the copies, which would be waited for: they still read their addresses */
    from += bk * op.step_k;
    return shared_address(stage) + target_offset;
  }

  /* Beyond the operand's edge along m or n nothing is copied: what is there becomes sums that
   * nobody stores. */
  template <class Pattern, bool AT_EDGE> __device__ __forceinline__ void copy_block(uint32_t to) const {
    if (Pattern::has_idle && Pattern::p() >= bk) return;
    const int64_t step_x = Pattern::k_first ? Pattern::x_step * op.step_mn : Pattern::x_step;
    const int64_t step_p = Pattern::k_first ? Pattern::p_step : Pattern::p_step * op.step_k;
    const element *column = from;
#pragma unroll
    for (int x = 0; x < X; x += Pattern::x_step, column += step_x) {
      const int in_x = AT_EDGE ? n_x() - Pattern::x() - x : Pattern::width;
      if (AT_EDGE && in_x <= 0) break;
      const element *at = column;
#pragma unroll
      for (int p = 0; p < bk; p += Pattern::p_step, at += step_p)
        copy_one<Pattern::width>(to + uint32_t((p * pitch_p + x * pitch_x) * word_bytes), at,
                                 AT_EDGE && Pattern::width_p == 1 ? min(in_x, Pattern::width) : Pattern::width);
    }
  }

  /* Small rather than fast. */
  template <class Pattern> __device__ __forceinline__ void copy_last(uint32_t to, int n_k) const {
    if (Pattern::has_idle && Pattern::p() >= bk) return;
#pragma unroll 1
    for (int x = 0; x < X; x += Pattern::x_step)
#pragma unroll 1
      for (int p = 0; p < bk; p += Pattern::p_step) {
        /* how many exist from here on */
        const int in_x = n_x() - Pattern::x() - x, in_p = n_k - Pattern::p() - p;
        const int inside = in_x <= 0 || in_p <= 0 ? 0 : min(Pattern::width_p > 1 ? in_p : in_x, Pattern::width);
        const element *at = inside > 0 ? from + x * op.step_mn + p * op.step_k : static_cast<const element *>(op.data);
        copy_one<Pattern::width>(to + uint32_t((p * pitch_p + x * pitch_x) * word_bytes), at, inside);
      }
  }

  template <int WIDTH> __device__ __forceinline__ void copy_one(uint32_t target, const element *source, int inside) const {
    if (WIDTH > 1 || Config::unit == 1 || (!Config::splits && op.whole_elements)) {
      constexpr int bytes = WIDTH * element_bytes;
      if constexpr (bytes == copy_bytes)
        cp_async_16(target, source, inside * element_bytes);
      else
        cp_async<bytes>(target, source, inside * element_bytes);
    } else {
      const real *parts = reinterpret_cast<const real *>(source) + part();
      cp_async<real_bytes>(target, parts, inside * real_bytes);
      if (!Config::splits) cp_async<real_bytes>(target + real_bytes, parts + 1, inside * real_bytes);
    }
  }
};

} // namespace ws
#endif
