/* instantiate_tf32.cu - the entry points of the rows of tf32.def: <entry's name>_nn, _nt, _tn and _tt, by the
 * ops of A and B. They use clusters and setmaxnreg; other images than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_tf32.cuh"
#include "cuda/rows/parts.h"

#define WS_CUDA_TF32_ENTRY(name, a_k, b_k, t, slices, bm, bn, wm, wn, k_groups, stages, blocks)               \
  extern "C" __global__ void __launch_bounds__(WS_TF32_THREADS(bm, bn, wm, wn, k_groups), blocks)             \
      name(const __grid_constant__ ws_gemm_args args) {                                                       \
    extern __shared__ __align__(1024) unsigned char shared[];                                                 \
    using config = ws::tf32_config<ws::type_##t, slices, bm, bn, wm, wn, k_groups, stages, blocks, a_k, b_k>; \
    __shared__ typename ws::tf32_kernel<config>::shared_place at;                                             \
    ws::tf32_kernel<config>{args, shared, at, ws::shared_address(shared)}.run(at);                            \
  }
#define WS_CUDA_TF32_ENTRIES(name, ...)                    \
  WS_CUDA_TF32_ENTRY(name##_nn, false, true, __VA_ARGS__)  \
  WS_CUDA_TF32_ENTRY(name##_nt, false, false, __VA_ARGS__) \
  WS_CUDA_TF32_ENTRY(name##_tn, true, true, __VA_ARGS__)   \
  WS_CUDA_TF32_ENTRY(name##_tt, true, false, __VA_ARGS__)
#define WS_CUDA_TF32_NAME(t, slices, bm, bn, k_groups) t##gemm_tf32x##slices##_##bm##x##bn##_g##k_groups
#define WS_CUDA_TF32_ENTRIES_OF(name, ...) WS_CUDA_TF32_ENTRIES(name, __VA_ARGS__)
#define WS_CUDA_TF32_ROW(t, slices, bm, bn, wm, wn, k_groups, stages, blocks, cluster, rate)                               \
  WS_IF_PARTS_##cluster(WS_CUDA_TF32_ENTRIES_OF(WS_CUDA_TF32_NAME(t, slices, bm, bn, k_groups), t, slices, bm, bn, wm, wn, \
                                                k_groups, stages, blocks))
#include "cuda/rows/tf32.def"
#endif
