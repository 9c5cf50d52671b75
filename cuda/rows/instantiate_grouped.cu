/* instantiate_grouped.cu - the kernels of ragged groups, by the type's letter: _m, columns are ragged and
 * A is contiguous along m; _k, along k; _ragged_k, k is. An image of their own. */
#include "cuda/kernels/gemm_grouped.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WS_GROUPED(name, element, a_x, ragged_k)                                                         \
  extern "C" __global__ void __launch_bounds__(ws::grouped_kernel<element, a_x, ragged_k>::n_threads, 1) \
      name(const __grid_constant__ ws_grouped_args args) {                                               \
    extern __shared__ __align__(1024) unsigned char shared[];                                            \
    ws::grouped_kernel<element, a_x, ragged_k>{args, shared}.run();                                      \
  }
WS_GROUPED(hgrouped_m, __half, true, false)
WS_GROUPED(hgrouped_k, __half, false, false)
WS_GROUPED(hgrouped_ragged_k, __half, true, true)
WS_GROUPED(bgrouped_m, __nv_bfloat16, true, false)
WS_GROUPED(bgrouped_k, __nv_bfloat16, false, false)
WS_GROUPED(bgrouped_ragged_k, __nv_bfloat16, true, true)
#endif
