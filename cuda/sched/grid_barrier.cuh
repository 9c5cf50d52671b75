/* grid_barrier.cuh - a barrier over all blocks of a launch, for kernels whose blocks are all
 * resident. grid_barrier.h has the state, and the host's check that they are.
 *
 * Promise: what any thread of any block wrote before its grid_sync, with plain stores, is seen by
 * plain loads of every thread of every block after the same grid_sync; and what was read before is
 * not touched by what is written after. Invariant: between two barriers the count is 0, so that the
 * next launch may have another number of blocks; a sense of one bit suffices, because a block that
 * still waits for a flip has not arrived at the next barrier, which therefore cannot flip it
 * back. */
#ifndef WS_CUDA_GRID_BARRIER_CUH
#define WS_CUDA_GRID_BARRIER_CUH
#include "cuda/ptx/memory.cuh"
#include "cuda/shared/grid_barrier.h"

namespace ws {

/* ordered is the barrier. relaxed makes the blocks meet just so, but orders no other access: for
 * the litmus test, which shows that the release and the acquire are needed. The two differ in these
 * two instructions and in nothing else. */
enum class barrier_order { ordered, relaxed };

template <barrier_order ORDER> __device__ __forceinline__ uint32_t grid_barrier_arrive(uint32_t *word, uint32_t step) {
  if constexpr (ORDER == barrier_order::ordered) /* partner: the acquire in grid_barrier_look of every block, this one included */
    return atom_add_release_gpu(word, step);
  else
    return atom_add_relaxed_gpu(word, step);
}

/* Each acquire empties the L1 of its SM, of which another block there that still works takes
 * notice. */
template <barrier_order ORDER> __device__ __forceinline__ uint32_t grid_barrier_look(const uint32_t *word) {
  if constexpr (ORDER == barrier_order::ordered)
    return ld_acquire_gpu(word); /* partner: the release in grid_barrier_arrive of every block */
  else
    return ld_relaxed_gpu(word);
}

/* How long a block that waits leaves the word to those that arrive, in ns: a small part of a trip
 * to the L2 (chosen, not measured). */
constexpr uint32_t grid_barrier_pause_ns = 20;

/* All threads of all n_blocks blocks of the launch call this, and the same number of times.
 * n_blocks = number of blocks of the grid.
 *
 *     block 0     plain stores | sync | add 2^31 - (n_blocks - 1), release | acquire until the sense has flipped | sync | plain loads
 *     the others  plain stores | sync | add 1, release                     | acquire until the sense has flipped | sync | plain loads
 *
 * Whoever comes last carries the sum over to 2^31: the flip. The arrivals are atomic additions to
 * one word, so an acquire that reads the value of the last of them has synchronised with the
 * releases of them all, not only with the last. The word cannot flip again before this block's next
 * arrival, so `before` holds the sense of this barrier. */
template <barrier_order ORDER = barrier_order::ordered>
__device__ __forceinline__ void grid_sync(ws_grid_barrier *state, uint32_t n_blocks) {
  __syncthreads(); /* the block's accesses come before its first thread's release */
  if ((threadIdx.x | threadIdx.y | threadIdx.z) == 0) {
    const bool is_first_block = (blockIdx.x | blockIdx.y | blockIdx.z) == 0;
    const uint32_t step = is_first_block ? WS_GRID_BARRIER_SENSE - (n_blocks - 1) : 1;
    const uint32_t before = grid_barrier_arrive<ORDER>(&state->word, step);
    while (((grid_barrier_look<ORDER>(&state->word) ^ before) & WS_GRID_BARRIER_SENSE) == 0) nanosleep(grid_barrier_pause_ns);
  }
  __syncthreads(); /* the first thread's acquire comes before the block's accesses */
}

} // namespace ws
#endif
