/* instantiate_tf32w.cu - the entry points of the rows of tf32w.def: <row's name>_nn, _nt, _tn and _tt, by the
 * ops of A and B. They use clusters, setmaxnreg and wgmma; other images than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_tf32.cuh"

#define WS_CUDA_TF32W_ENTRY(name, a_k, b_k, t, slices, bm, bn, k_groups, stages, places, blocks, cluster)               \
  extern "C" __global__ void __launch_bounds__(WS_TF32W_THREADS(bm, k_groups), blocks)                                  \
      name(const __grid_constant__ ws_gemm_args args) {                                                                 \
    extern __shared__ __align__(1024) unsigned char shared[];                                                           \
    using config = ws::tf32w_config<ws::type_##t, slices, bm, bn, k_groups, stages, places, blocks, cluster, a_k, b_k>; \
    __shared__ typename ws::tf32_kernel<config>::place at;                                                              \
    ws::tf32_kernel<config>{args, shared, at, ws::shared_address(shared)}.run();                                        \
  }
#define WS_CUDA_TF32W_ENTRIES(name, ...)                    \
  WS_CUDA_TF32W_ENTRY(name##_nn, false, true, __VA_ARGS__)  \
  WS_CUDA_TF32W_ENTRY(name##_nt, false, false, __VA_ARGS__) \
  WS_CUDA_TF32W_ENTRY(name##_tn, true, true, __VA_ARGS__)   \
  WS_CUDA_TF32W_ENTRY(name##_tt, true, false, __VA_ARGS__)
#define WS_CUDA_TF32W_NAME(t, slices, bm, bn, k_groups, cluster) t##gemm_tf32w##slices##_##bm##x##bn##_g##k_groups##_k##cluster
#define WS_CUDA_TF32W_ENTRIES_OF(name, ...) WS_CUDA_TF32W_ENTRIES(name, __VA_ARGS__)
#define WS_CUDA_TF32W_ROW(t, slices, bm, bn, k_groups, stages, places, blocks, cluster, rate)                             \
  WS_CUDA_TF32W_ENTRIES_OF(WS_CUDA_TF32W_NAME(t, slices, bm, bn, k_groups, cluster), t, slices, bm, bn, k_groups, stages, \
                           places, blocks, cluster)
#include "cuda/rows/tf32w.def"
#endif
