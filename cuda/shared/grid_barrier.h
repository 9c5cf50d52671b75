/* grid_barrier.h - the state of a barrier over all blocks of a launch, and its host half. Shared by
 * C and CUDA; the device half is grid_barrier.cuh.
 *
 * The state is zeroed once, when its memory is allocated; after any number of barriers and
 * launches, of whatever numbers of blocks, it needs no reset. Launches that may run at the same
 * time have states of their own.
 *
 * A block that waits keeps its place on its SM, so a barrier of more blocks than fit at once never
 * ends: ws_grid_barrier_fits says whether they do. The blocks must also find their places free:
 * another kernel on the device may only be one that ends by itself. */
#ifndef WS_CUDA_GRID_BARRIER_H
#define WS_CUDA_GRID_BARRIER_H
#include <stdint.h>

/* The top bit is the sense, flipped by each barrier as its last block arrives; the bits below count
 * arrivals, and are 0 again then. */
#define WS_GRID_BARRIER_SENSE UINT32_C(0x80000000)

typedef struct ws_grid_barrier {
  uint32_t word;
  uint32_t pad[31]; /* a line of 128 bytes of its own: waiting blocks poll it */
} ws_grid_barrier;

/* 1 if all n_blocks blocks can be resident at once, else 0 and the launch must not be made.
 * blocks_per_sm: of this kernel with its block size and shared memory, as
 * cudaOccupancyMaxActiveBlocksPerMultiprocessor tells. */
static inline int ws_grid_barrier_fits(int64_t n_blocks, int n_sms, int blocks_per_sm) {
  if (n_blocks < 1 || n_sms < 1 || blocks_per_sm < 1) return 0;
  return n_blocks <= (int64_t)n_sms * blocks_per_sm && n_blocks < (int64_t)WS_GRID_BARRIER_SENSE;
}
#endif
