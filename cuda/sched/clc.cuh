/* clc.cuh - WS_SCHED_CLC (sched.h), device half: the protocol of clc_protocol.cuh over the
 * instructions of cuda/ptx/clc.cuh.
 *
 * Left to the launch: blocks of one dimension, clusters of CLUSTER_BLOCKS along x, a grid of
 * n_items blocks rounded up to whole clusters, a device of cc >= 10.0. Code for older devices
 * traps, so that one file can be built for a list of architectures. Clusters of two need a target
 * named with a or f (sm_100a, sm_120f ..). Takes 24 bytes of static shared memory. Compiled and
 * model-checked, never run on hardware. */
#ifndef WS_CUDA_SCHED_CLC_CUH
#define WS_CUDA_SCHED_CLC_CUH
#include "cuda/ptx/clc.cuh"
#include "cuda/sched/clc_protocol.cuh"
#include "cuda/sched/sched.h"

namespace ws {

/* The primitives of one thread; result and barrier are its block's. */
template <int CLUSTER_BLOCKS> struct clc_instructions {
  using result = clc_result;
  static constexpr int cluster_blocks = CLUSTER_BLOCKS;
  static constexpr barrier_scope scope = CLUSTER_BLOCKS > 1 ? barrier_scope::cluster : barrier_scope::cta;

  result *shared_result;
  uint64_t *shared_barrier;

  __device__ bool is_first_thread() const { return threadIdx.x == 0; }
  __device__ uint32_t own_ctaid() const { return blockIdx.x; }
  __device__ uint32_t block_rank() const {
    if constexpr (CLUSTER_BLOCKS > 1) return cluster_ctaid_x();
    return 0;
  }
  __device__ void sync_block() const { __syncthreads(); }
  __device__ void sync_cluster() const { barrier_cluster_sync(); }

  __device__ void init_barrier() const { mbarrier_init(shared_barrier, 1); }
  __device__ void release_barrier_init() const { fence_mbarrier_init_release(); }
  __device__ void arrive_expect_tx(uint32_t n_bytes) const { mbarrier_arrive_expect_tx_relaxed<scope>(shared_barrier, n_bytes); }
  __device__ void wait(uint32_t parity) const {
    while (!mbarrier_try_wait_parity_acquire<scope>(shared_barrier, parity)) {
    }
  }

  __device__ void acquire_result_reads() const { fence_proxy_async_generic_acquire(); }
  __device__ void release_result_reads() const { fence_proxy_async_generic_release(); }
  __device__ void request() const { clusterlaunchcontrol_try_cancel(shared_result, shared_barrier); }
  __device__ void request_multicast() const { clusterlaunchcontrol_try_cancel_multicast(shared_result, shared_barrier); }
  __device__ result read_result() const { return *shared_result; }
  __device__ bool is_canceled(result r) const { return clusterlaunchcontrol_query_cancel_is_canceled(r); }
  __device__ uint32_t first_ctaid(result r) const { return clusterlaunchcontrol_query_cancel_get_first_ctaid_x(r); }
};

template <int CLUSTER_BLOCKS> struct sched_clc_of {
  static_assert(CLUSTER_BLOCKS == 1 || CLUSTER_BLOCKS == 2, "larger clusters lose SMs, and are not modelled");
  static constexpr bool keeps_blocks = false;
  const ws_sched_args &args;
  __device__ explicit sched_clc_of(const ws_sched_args &sched_args) : args(sched_args) {}

  template <class Body> __device__ __forceinline__ void for_each_item(Body body) {
#if __CUDA_ARCH__ >= 1000
#ifndef __CUDA_ARCH_FAMILY_SPECIFIC__
    static_assert(CLUSTER_BLOCKS == 1, "multicast::cluster::all needs a target named with a or f, such as sm_100a or sm_120f");
#endif
    __shared__ clc_result result;
    __shared__ uint64_t barrier;
    const clc_instructions<CLUSTER_BLOCKS> instructions{&result, &barrier};
    clc::for_each_item(instructions, args.n_items, body);
#else
    __trap();
#endif
  }
};

using sched_clc = sched_clc_of<1>;
using sched_clc_pair = sched_clc_of<2>;

} // namespace ws
#endif
