/* foreach.cuh - WS_SCHED_FOREACH (sched.h), device half: cuda::for_each_canceled_block of the CUDA
 * C++ core libraries.
 *
 * Left to the library: the protocol of Cluster Launch Control. Left to the launch: blocks and a
 * grid of one dimension, n_items blocks, and no clusters (the library cancels single blocks), a
 * device of cc >= 10.0. Code for older devices traps (the library would call body once and steal
 * nothing). Compiled and model-checked, never run on hardware: the model is of our own protocol
 * (clc_protocol.cuh), of this header only the code is looked at. */
#ifndef WS_CUDA_SCHED_FOREACH_CUH
#define WS_CUDA_SCHED_FOREACH_CUH
#include <cuda/work_stealing>

#include "cuda/sched/sched.h"

namespace ws {

struct sched_foreach {
  static constexpr bool keeps_blocks = false;
  const ws_sched_args &args;
  __device__ explicit sched_foreach(const ws_sched_args &sched_args) : args(sched_args) {}

  /* The library does not promise that all threads have left body before one enters it again: that
   * is what the __syncthreads is for. */
  template <class Body> __device__ __forceinline__ void for_each_item(Body body) {
#if __CUDA_ARCH__ >= 1000
    ::cuda::for_each_canceled_block<1>([&](dim3 block_idx) {
      if (block_idx.x < args.n_items) body(int64_t(block_idx.x));
      __syncthreads();
    });
#else
    __trap();
#endif
  }
};

} // namespace ws
#endif
