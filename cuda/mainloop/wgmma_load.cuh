/* wgmma_load.cuh - from an operand in global memory to a stage, by TMA (one thread): 64 of k of so
 * many x (m or n), as wgmma wants them (ptx/wgmma.cuh, descriptors). What lies beyond the operand
 * is zeros. */
#ifndef WS_CUDA_WGMMA_LOAD_CUH
#define WS_CUDA_WGMMA_LOAD_CUH
#include "cuda/ptx/tma.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "cuda/rows/rows.h"
#include "cuda/shared/wgmma_args.h"

namespace ws {

/* One box, into this block or (blocks, their bits) into some of the cluster. */
template <bool IS_MULTICAST>
__device__ __forceinline__ void load_box(uint32_t to, const CUtensorMap *map, int along, int line, int batch, uint32_t barrier,
                                         uint32_t blocks) {
  if constexpr (IS_MULTICAST)
    cp_async_bulk_tensor_multicast(to, map, along, line, batch, barrier, uint16_t(blocks));
  else
    cp_async_bulk_tensor_load(to, map, along, line, batch, barrier);
}

/* X rows of A (or columns of B), one k block after the other, as far as the operand has so many at
 * all: what is not loaded counts for no element of C. In slabs of 64 x 64, or (ALONG_K) whole, where
 * lines are along k. N_PARTS equal parts may be asked for one by one: of X lines along k, else of the
 * k of each slab. A warp asks for all copies of an operand, and has 100 ns for a k block: so what is
 * known to the compiler is no question. slice: of operands that consist of slices, which the map has
 * as products. */
template <int X, int N_PARTS, bool ALONG_K> struct line_loader {
  static constexpr int n_boxes = ALONG_K ? 1 : (X + 63) / 64, part_lines = (ALONG_K ? X : wgmma_line) / N_PARTS,
                       line_bytes = 2 * (ALONG_K ? wgmma_line : WS_WGMMA_A_LINE(X));
  const CUtensorMap *map;
  int along, line, product, n_slabs;

  __device__ __forceinline__ line_loader(const ws_wgmma_operand &op, int x, int k, int batch)
      : map(&op.map), along(ALONG_K ? k : x), line(ALONG_K ? x : k), product(op.batch_first + batch * op.batch_step),
        n_slabs(op.n_slabs) {}

  /* Part number `part`, into this block or some of the cluster's. */
  template <bool IS_MULTICAST = false>
  __device__ __forceinline__ void ask_part(int part, uint32_t to, uint32_t barrier, uint32_t blocks = 0, int slice = 0) const {
    constexpr int slab_bytes = wgmma_line * wgmma_line * 2;
    const int first = N_PARTS == 1 ? 0 : part * part_lines;
#pragma unroll
    for (int s = 0; s < n_boxes; s++)
      if (s == 0 || s < n_slabs)
        load_box<IS_MULTICAST>(to + uint32_t(s * slab_bytes + first * line_bytes), map, along + s * 64, line + first,
                               product + slice, barrier, blocks);
  }
  /* All parts, for this block alone. */
  __device__ __forceinline__ void ask(uint32_t to, uint32_t barrier) const {
#pragma unroll
    for (int part = 0; part < N_PARTS; part++) ask_part(part, to, barrier);
  }
  __device__ __forceinline__ void advance() { ALONG_K ? along += wgmma_line : line += wgmma_line; }
};

} // namespace ws
#endif
