/* clc_probe.cu - the smallest kernels over each CLC scheduler, for clc_code.py to look at: each
 * thread of a block adds one to the count of every item it is given, through shared memory, as a
 * GEMM kernel would use it.
 *
 * Compiled to PTX and to machine code for every target that has CLC. Compiled and model-checked,
 * never run on hardware. */
#include "cuda/sched/clc.cuh"
#include "cuda/sched/foreach.cuh"

namespace {

template <class Sched> __device__ void count_visits(const ws_sched_args &args, uint32_t *n_visits) {
  __shared__ int64_t current;
  Sched sched(args);
  sched.for_each_item([&](int64_t item_idx) {
    if (threadIdx.x == 0) current = item_idx;
    __syncthreads();
    atomicAdd(&n_visits[current], 1u);
  });
}

} // namespace

extern "C" __global__ void __launch_bounds__(128) probe_clc(const __grid_constant__ ws_sched_args args, uint32_t *n_visits) {
  count_visits<ws::sched_clc>(args, n_visits);
}

extern "C" __global__ void __launch_bounds__(128) probe_foreach(const __grid_constant__ ws_sched_args args, uint32_t *n_visits) {
  count_visits<ws::sched_foreach>(args, n_visits);
}

extern "C" __global__ void __launch_bounds__(128) __cluster_dims__(2, 1, 1)
    probe_clc_pair(const __grid_constant__ ws_sched_args args, uint32_t *n_visits) {
  count_visits<ws::sched_clc_pair>(args, n_visits);
}
