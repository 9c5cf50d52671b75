/* instantiate_outer.cu - the entry points of the rows of outer.def: <row's name>_nn, _nt, _tn and _tt, by
 * the ops of A and B. Other images than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_outer.cuh"

#define WS_CUDA_OUTER_ENTRY(name, op, a_k, b_k, t, lanes, tm, tn, warps, stages, blocks)           \
  extern "C" __global__ void __launch_bounds__(WS_OUTER_THREADS(warps), blocks)                    \
      name##_##op(const __grid_constant__ ws_gemm_args args) {                                     \
    extern __shared__ __align__(128) unsigned char shared[];                                       \
    using config = ws::outer_config<ws::type_##t, lanes, tm, tn, warps, stages, blocks, a_k, b_k>; \
    ws::outer_kernel<config>{args, shared}.run();                                                  \
  }
#define WS_CUDA_OUTER_ENTRIES(name, ...)                   \
  WS_CUDA_OUTER_ENTRY(name, nn, false, true, __VA_ARGS__)  \
  WS_CUDA_OUTER_ENTRY(name, nt, false, false, __VA_ARGS__) \
  WS_CUDA_OUTER_ENTRY(name, tn, true, true, __VA_ARGS__)   \
  WS_CUDA_OUTER_ENTRY(name, tt, true, false, __VA_ARGS__)
#define WS_CUDA_OUTER_ROW(t, bm, bn, lanes, tm, tn, warps, stages, blocks, rate) \
  WS_CUDA_OUTER_ENTRIES(t##gemm_outer_##bm##x##bn, t, lanes, tm, tn, warps, stages, blocks)
#include "cuda/rows/outer.def"
#endif
