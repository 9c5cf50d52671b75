/* find_tile.cuh - from an item's number to its tile, for the one thread of a block that asks. */
#ifndef WS_CUDA_FIND_TILE_CUH
#define WS_CUDA_FIND_TILE_CUH
#include "tile.h"

namespace ws {

/* The tile that a block is at: in shared memory, where it costs the mainloop no registers. */
struct tile_place {
  int batch, row, col;
};

/* A function of its own: ptxas spills in the main loops of z if it is not. */
static __device__ __noinline__ void find_tile(const ws_tile_grid *grid, uint32_t item_idx, tile_place *at) {
  const ws_tile tile = ws_tile_at_32(grid, item_idx);
  at->batch = int(tile.batch), at->row = int(tile.row), at->col = int(tile.col);
}

} // namespace ws
#endif
