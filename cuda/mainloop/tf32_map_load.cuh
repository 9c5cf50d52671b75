/* tf32_map_load.cuh - operands of rows of gemm_tf32.cuh by tensor maps: TMA loads from global memory to a stage, issued by one
 * thread, and what splitters make of B: lines of k of one that is contiguous along n, and low slices.
 *
 * TMA swizzles lines of 128 bytes: 16 bytes number c of line i are at c ^ (i % 8).
 *   along k   a line is 32 k of one x
 *   along x   a box is 32 lines of 32 x, a k each; the next box has the next 32 x
 * What lies beyond the operand is zeros. High slices are rounded to TF32 to nearest, ties to even, by TMA or as it does; low ones are
 * what they leave. */
#ifndef WS_CUDA_TF32_MAP_LOAD_CUH
#define WS_CUDA_TF32_MAP_LOAD_CUH
#include "cuda/mainloop/tf32_sums.cuh"
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
  __device__ __forceinline__ void ask(uint32_t to, uint32_t barrier) const { ask(map, to, barrier); }
  /* By another map of the same operand. */
  __device__ __forceinline__ void ask(const CUtensorMap *by, uint32_t to, uint32_t barrier) const {
#pragma unroll
    for (int box = 0; box < n_boxes; box++)
      cp_async_bulk_tensor_load(to + uint32_t(box * box_bytes), by, K ? k : x + box * WS_TF32_LINE, K ? x : k, product, barrier);
  }
  __device__ __forceinline__ void advance() { k += WS_TF32_LINE; }
};

/* Of B's part of a stage splitters make what wgmma does not find there: low slices of two; of a B that is contiguous along n, which
 * they transpose, high ones, too. */
template <class Config> struct tf32_map_splitter {
  using sums = tf32_sums<Config>;
  static constexpr int n_warps = Config::n_splitters / 32, line_bytes = WS_TF32M_LINE_BYTES;
  static constexpr bool has_low = Config::n_slices > 1;
  /* parts of four lines, and how many of them a warp has in a round */
  static constexpr int part_lines = 4, part_bytes = part_lines * line_bytes, n_parts = Config::bn / part_lines,
                       n_of_warp = (n_parts + n_warps - 1) / n_warps, n_at_once = n_of_warp < 6 ? n_of_warp : 6;

  uint32_t marks; /* of columns */

  static __device__ __forceinline__ int lane() { return int(threadIdx.x % 32); }
  static __device__ __forceinline__ int warp() { return (int(threadIdx.x) - Config::n_threads + Config::n_splitters) / 32; }

  static __device__ __forceinline__ void look_at(float x, uint32_t &least) { least = min(least, 2 * __float_as_uint(x) - 1); }
  __device__ __forceinline__ void mark(int column) const { sums::set_mark(marks + column), sums::set_mark(marks + Config::bn); }

  /* Lines of k: low slices take the places of the elements; a lane has 16 bytes of each four lines. */
  __device__ __forceinline__ void split(uint32_t b) const {
    const uint32_t chunk = uint32_t(lane() * 16);
#pragma unroll 1
    for (int first = warp(); first < n_parts; first += n_at_once * n_warps) {
      float y[n_at_once][4] = {};
      uint32_t least = ~0u;
#pragma unroll
      for (int i = 0; i < n_at_once; i++)
        if (first + i * n_warps < n_parts) ld_shared_four(y[i], b + chunk + uint32_t((first + i * n_warps) * part_bytes));
#pragma unroll
      for (int i = 0; i < n_at_once * 4; i++) look_at(y[i / 4][i % 4], least);
      if (least < sums::too_small) mark_lines(b + chunk, first);
#pragma unroll
      for (int i = 0; i < n_at_once; i++) {
#pragma unroll
        for (int e = 0; e < 4; e++) y[i][e] -= tf32_of(y[i][e]);
        if (first + i * n_warps < n_parts) st_shared_four(b + chunk + uint32_t((first + i * n_warps) * part_bytes), y[i]);
      }
    }
  }
  /* Looks at this lane's elements of a round once more. */
  __device__ __forceinline__ void mark_lines(uint32_t of_lane, int first) const {
#pragma unroll 1
    for (int part = first; part < min(first + n_at_once * n_warps, n_parts); part += n_warps)
#pragma unroll 1
      for (int e = 0; e < 4; e++)
        if (sums::is_too_small(of_lane + uint32_t(part * part_bytes + e * 4))) mark(part * part_lines + lane() / 8);
  }

  /* A lane transposes 16 k of one column at a time, or 8 that it splits, too. */
  __device__ __forceinline__ void turn(uint32_t b, uint32_t to) const {
    constexpr int pieces = has_low ? 2 : 4, parts_k = 8 / pieces, n_turned = Config::bn / 32 * parts_k;
    const uint32_t chunk = uint32_t(lane() / 4);
    uint32_t from[4];
#pragma unroll
    for (int e = 0; e < 4; e++) from[e] = uint32_t(e * line_bytes) + ((chunk ^ uint32_t(e)) << 4) + uint32_t(lane() % 4 * 4);
#pragma unroll 1
    for (int part = warp(); part < n_turned; part += n_warps) {
      const int column = part / parts_k * 32 + lane(), first = part % parts_k * pieces;
      const uint32_t source = b + uint32_t((part / parts_k * 32 + first * 4) * line_bytes),
                     line = to + uint32_t(column * line_bytes);
      const uint32_t place = uint32_t(first) ^ uint32_t(lane() % 8);
      float y[pieces][4];
#pragma unroll
      for (int p = 0; p < pieces; p++)
#pragma unroll
        for (int e = 0; e < 4; e++) y[p][e] = ld_shared((source + from[e] + uint32_t(p * 4 * line_bytes)) ^ uint32_t(p % 2 * 64));
      if constexpr (has_low) {
        uint32_t least = ~0u;
#pragma unroll
        for (int p = 0; p < pieces; p++) {
          float low[4];
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const float x = y[p][e];
            look_at(x, least), y[p][e] = tf32_of(x), low[e] = x - y[p][e];
          }
          st_shared_four(line + Config::slice_bytes + ((place ^ uint32_t(p)) << 4), low);
        }
        if (least < sums::too_small) mark(column);
      }
#pragma unroll
      for (int p = 0; p < pieces; p++) st_shared_four(line + ((place ^ uint32_t(p)) << 4), y[p]);
    }
  }
};

} // namespace ws
#endif
