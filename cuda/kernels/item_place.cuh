/* item_place.cuh - the place of a block's work item, for kernels in which each block, or each cluster, has exactly one. Every thread
 * computes it, without a division, so that none waits for another: the prologue is a large part of a small product's time. */
#ifndef WS_CUDA_ITEM_PLACE_CUH
#define WS_CUDA_ITEM_PLACE_CUH
#include "cuda/kernels/gemm.cuh"
#include "cuda/ptx/param.cuh"

namespace ws {

/* Of a config what items are asked by. */
template <int BM, int BN> struct item_tile { static constexpr int bm = BM, bn = BN, item_n = BN; };

/* Its first element of C, the k that may be other than zero, and whether any of its elements is wanted. */
struct item_place {
  int batch, m, n, k_begin, k_end;
  bool is_wanted;
};

/* Fetches a kernel's arguments into the constant cache, a line by each warp that has nothing else to do yet: first those that the
 * prologue needs, then the others. */
template <class Args, int N> __device__ __forceinline__ void fetch_first_arguments(const Args &args, const uint32_t (&to)[N]) {
  fetch_lines<0, WS_GEMM_FIRST_LINES>(args, to);
}
template <class Args, int N> __device__ __forceinline__ void fetch_other_arguments(const Args &args, const uint32_t (&to)[N]) {
  fetch_lines<WS_GEMM_FIRST_LINES, int((sizeof args + param_line - 1) / param_line)>(args, to);
}

/* Of a region, or with an operand that is triangular. */
template <int BM, int BN> __device__ __forceinline__ item_place part_place_at(const ws_gemm_args &args, uint32_t item_idx) {
  using config = item_tile<BM, BN>;
  const ws_tile tile = args.region.region == WS_ALL ? ws_tile_at_32(&args.grid, item_idx) : item_tile_at<config>(args, item_idx);
  const int row = int(tile.row), col = int(tile.col);
  const ws_k_range k = k_range_of<config>(args, row, col);
  return {int(tile.batch), row * BM, col * BN, int(k.begin), int(k.end), is_item_wanted<config>(args, row, col)};
}

/* Called, not inlined: else all other products jump over it, into code that has to come from memory first. */
template <int BM, int BN> __device__ __noinline__ item_place called_part_place_at(const ws_gemm_args &args, uint32_t item_idx) {
  return part_place_at<BM, BN>(args, item_idx);
}

/* Config: of items of one tile each. CALLS: where the beginning is in a hurry, and there are registers for a call. */
template <class Config, bool CALLS = true>
__device__ __forceinline__ item_place item_place_at(const ws_gemm_args &args, uint32_t item_idx) {
  if (args.region.region != WS_ALL || args.triangular != 0)
    return CALLS ? called_part_place_at<Config::bm, Config::bn>(args, item_idx)
                 : part_place_at<Config::bm, Config::bn>(args, item_idx);
  const ws_tile_place tile = ws_tile_place_at(&args.tiles, item_idx);
  return {int(tile.batch), int(tile.row) * Config::bm, int(tile.strip) * Config::bn, 0, int(args.k), true};
}

} // namespace ws
#endif
