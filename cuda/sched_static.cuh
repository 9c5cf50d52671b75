/* sched_static.cuh - fixed work and fixed blocks: a block's items are its own index and every gridDim.x-th after it. With a block for
 * each item the hardware balances; with fewer, nobody does. */
#ifndef WS_CUDA_SCHED_STATIC_CUH
#define WS_CUDA_SCHED_STATIC_CUH
#include "sched.h"

namespace ws {

struct sched_static {
  const ws_sched_args &args;
  __device__ explicit sched_static(const ws_sched_args &sched_args) : args(sched_args) {}

  template <class Body> __device__ __forceinline__ void for_each_item(Body body) {
    for (uint64_t item_idx = blockIdx.x; item_idx < args.n_items; item_idx += gridDim.x) {
      body(int64_t(item_idx));
      __syncthreads();
    }
  }
};

} // namespace ws
#endif
