/* tf32_map_load.cuh - operands of rows of gemm_tf32.cuh by tensor maps: TMA loads from global memory to a stage, issued by one
 * thread, and the transposition of a B that is contiguous along n.
 *
 * TMA rounds to TF32 (to nearest, ties to even) and swizzles lines of 128 bytes: 16 bytes number c of line i are at c ^ (i % 8).
 *   along k   a line is 32 k of one x
 *   along x   a box is 32 lines of 32 x, a k each; the next box has the next 32 x
 * What lies beyond the operand is zeros. */
#ifndef WS_CUDA_TF32_MAP_LOAD_CUH
#define WS_CUDA_TF32_MAP_LOAD_CUH
#include "cuda/ptx/tma.cuh"
#include "cuda/rows/tf32_rows.h"
#include "cuda/shared/map_args.h"

namespace ws {

/* X rows of A, or columns of B, from the map's x on, one k block after the other. */
template <int X, bool K> struct tf32_map_operand {
  static constexpr int n_boxes = K ? 1 : X / WS_TF32_LINE, box_bytes = WS_TF32_LINE * WS_TF32M_LINE_BYTES;
  const CUtensorMap *map;
  int x, k, product;

  __device__ __forceinline__ tf32_map_operand(const ws_map_operand &op, int batch, int first_x, int first_k)
      : map(&op.map), x(first_x), k(first_k), product(op.batch_first + batch * op.batch_step) {}
  __device__ __forceinline__ void ask(uint32_t to, uint32_t barrier) const {
#pragma unroll
    for (int box = 0; box < n_boxes; box++)
      cp_async_bulk_tensor_load(to + uint32_t(box * box_bytes), map, K ? k : x + box * WS_TF32_LINE, K ? x : k, product, barrier);
  }
  __device__ __forceinline__ void advance() { k += WS_TF32_LINE; }
};

/* Splitters transpose a B that is contiguous along n, so that wgmma finds lines along k. */
template <class Config> struct tf32_map_splitter {
  static constexpr int n_warps = Config::n_splitters / 32, line_bytes = WS_TF32M_LINE_BYTES;

  static __device__ __forceinline__ int lane() { return int(threadIdx.x % 32); }
  static __device__ __forceinline__ int warp() { return (int(threadIdx.x) - Config::n_threads + Config::n_splitters) / 32; }

  /* A lane transposes 16 k of one column at a time. */
  static __device__ __forceinline__ void turn(uint32_t b, uint32_t to) {
    constexpr int pieces = 4, n_parts = Config::bn / 32 * 2;
    const uint32_t chunk = uint32_t(lane() / 4);
    uint32_t from[4];
#pragma unroll
    for (int e = 0; e < 4; e++) from[e] = uint32_t(e * line_bytes) + ((chunk ^ uint32_t(e)) << 4) + uint32_t(lane() % 4 * 4);
#pragma unroll 1
    for (int part = warp(); part < n_parts; part += n_warps) {
      const int column = part / 2 * 32 + lane(), first = part % 2 * pieces;
      const uint32_t source = b + uint32_t((part / 2 * 32 + first * 4) * line_bytes), line = to + uint32_t(column * line_bytes);
      const uint32_t place = uint32_t(first) ^ uint32_t(lane() % 8);
      float y[pieces][4];
#pragma unroll
      for (int p = 0; p < pieces; p++)
#pragma unroll
        for (int e = 0; e < 4; e++) y[p][e] = ld_shared((source + from[e] + uint32_t(p * 4 * line_bytes)) ^ uint32_t(p % 2 * 64));
#pragma unroll
      for (int p = 0; p < pieces; p++) st_shared_four(line + ((place ^ uint32_t(p)) << 4), y[p]);
    }
  }
};

} // namespace ws
#endif
