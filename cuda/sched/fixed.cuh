/* fixed.cuh - WS_SCHED_STATIC (sched.h), device half: a worker's items are its own index and every
 * n_workers-th after it.
 *
 * With a worker for each item the hardware balances (fixed work); with fewer, nobody does (fixed
 * blocks). There is no quantum: what a block leaves, nobody would take. What is no tile (elements,
 * columns, groups) is shared out by the same two numbers. */
#ifndef WS_CUDA_SCHED_FIXED_CUH
#define WS_CUDA_SCHED_FIXED_CUH
#include "cuda/ptx/cluster.cuh"
#include "cuda/sched/sched.h"

namespace ws {

/* A worker: CLUSTER blocks, which count as one. */
template <int CLUSTER = 1> __device__ __forceinline__ uint32_t worker_idx() { return blockIdx.x / CLUSTER; }
template <int CLUSTER = 1> __device__ __forceinline__ uint32_t n_workers() { return gridDim.x / CLUSTER; }

/* The worker of this block, and which of its blocks it is; blocks: of a worker, as the host launches them. */
struct worker_block {
  uint32_t worker, rank;
};
__device__ __forceinline__ worker_block worker_block_of(const ws_divisor &blocks) {
  const uint32_t worker = ws_divide(blockIdx.x, &blocks);
  return {worker, blockIdx.x - worker * blocks.d};
}

template <int CLUSTER> struct sched_fixed_of {
  static constexpr bool keeps_blocks = true;
  const ws_sched_args &args;
  __device__ explicit sched_fixed_of(const ws_sched_args &sched_args) : args(sched_args) {}

  static __device__ __forceinline__ uint32_t first() { return worker_idx<CLUSTER>(); }
  static __device__ __forceinline__ uint32_t after(uint32_t item_idx) { return item_idx + n_workers<CLUSTER>(); }

  /* The index outlives body in shared memory, where it costs the mainloop no registers. */
  template <class Body> __device__ __forceinline__ void for_each_item(Body body) {
    __shared__ uint32_t item_idx;
    if (threadIdx.x == 0) item_idx = first();
    __syncthreads();
    while (item_idx < args.n_items) {
      body(int64_t(item_idx));
      __syncthreads(); /* item_idx has been read, and body's shared memory is free */
      if (threadIdx.x == 0) item_idx = after(item_idx);
      __syncthreads();
    }
  }
};
using sched_fixed = sched_fixed_of<1>;

} // namespace ws
#endif
