/* instantiate_grouped.cu - the kernels of ragged groups, by the type's letter: _m, columns are ragged and
 * A is contiguous along m; _k, along k; _ragged_k, k is; narrow ones have items of 128 columns. An image of
 * their own. */
#include "cuda/kernels/gemm_grouped.cuh"

#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define WS_GROUPED_ENTRY(name, element, a_x, ragged_k, most_n)                                                \
  extern "C" __global__ void __launch_bounds__(ws::grouped_kernel<element, a_x, ragged_k, most_n>::n_threads, \
                                               ws::grouped_kernel<element, a_x, ragged_k, most_n>::n_blocks)  \
      name(const __grid_constant__ ws_grouped_args args, const __grid_constant__ ws_grouped_ends ends) {      \
    extern __shared__ __align__(1024) unsigned char shared[];                                                 \
    ws::grouped_kernel<element, a_x, ragged_k, most_n>{args, ends, shared}.run();                             \
  }
#define WS_GROUPED(letter, element, form, a_x, ragged_k)                \
  WS_GROUPED_ENTRY(letter##grouped_##form, element, a_x, ragged_k, 256) \
  WS_GROUPED_ENTRY(letter##grouped_narrow_##form, element, a_x, ragged_k, 128)
WS_GROUPED(h, __half, m, true, false)
WS_GROUPED(h, __half, k, false, false)
WS_GROUPED(h, __half, ragged_k, true, true)
WS_GROUPED(b, __nv_bfloat16, m, true, false)
WS_GROUPED(b, __nv_bfloat16, k, false, false)
WS_GROUPED(b, __nv_bfloat16, ragged_k, true, true)
#endif
