/* instantiate_tf32w.cu - the entry points of the rows of tf32w.def: <entry's name>_nn, _nt, _tn and _tt, by the
 * ops of A and B. They use clusters, setmaxnreg and wgmma; other images than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_tf32_stays.cuh"
#include "cuda/rows/parts.h"

#define WS_CUDA_TF32W_ENTRY(name, a_k, b_k, t, slices, bm, bn, k_groups, stages, places, blocks)               \
  extern "C" __global__ void __launch_bounds__(WS_TF32W_THREADS(bm, k_groups), blocks)                         \
      name(const __grid_constant__ ws_gemm_args args) {                                                        \
    extern __shared__ __align__(1024) unsigned char shared[];                                                  \
    using config = ws::tf32w_config<ws::type_##t, slices, bm, bn, k_groups, stages, places, blocks, a_k, b_k>; \
    __shared__ typename ws::tf32_kernel<config>::shared_place at;                                              \
    ws::tf32_kernel<config>{args, shared, at, ws::shared_address(shared)}.run(at);                             \
  }
#define WS_CUDA_TF32W_STAYS_ENTRY(name, a_k, b_k, t, slices, bm, bn, stages, places, blocks)               \
  extern "C" __global__ void __launch_bounds__(WS_TF32W_THREADS(bm, 1), blocks)                            \
      name(const __grid_constant__ ws_gemm_args args) {                                                    \
    extern __shared__ __align__(1024) unsigned char shared[];                                              \
    using config = ws::tf32w_stays_config<ws::type_##t, slices, bm, bn, stages, places, blocks, a_k, b_k>; \
    __shared__ typename ws::tf32_kernel<config>::place ring[config::n_items + 1];                          \
    ws::tf32_staying<config>{args, shared, ring, ws::shared_address(shared)}.run();                        \
  }
#define WS_CUDA_TF32W_ENTRIES(entry, name, ...)                                          \
  entry(name##_nn, false, true, __VA_ARGS__) entry(name##_nt, false, false, __VA_ARGS__) \
      entry(name##_tn, true, true, __VA_ARGS__) entry(name##_tt, true, false, __VA_ARGS__)
#define WS_CUDA_TF32W_NAME(t, slices, bm, bn, k_groups) t##gemm_tf32w##slices##_##bm##x##bn##_g##k_groups
#define WS_CUDA_TF32W_STAYS_NAME(t, slices, bm, bn) t##gemm_tf32w##slices##_##bm##x##bn##_g1_k1_stays
#define WS_CUDA_TF32W_ENTRIES_OF(entry, name, ...) WS_CUDA_TF32W_ENTRIES(entry, name, __VA_ARGS__)
#define WS_CUDA_TF32W_ROW(t, slices, bm, bn, k_groups, stages, places, blocks, cluster, rate)                             \
  WS_IF_PARTS_##cluster(WS_CUDA_TF32W_ENTRIES_OF(WS_CUDA_TF32W_ENTRY, WS_CUDA_TF32W_NAME(t, slices, bm, bn, k_groups), t, \
                                                 slices, bm, bn, k_groups, stages, places, blocks))
#define WS_CUDA_TF32W_STAYS(t, slices, bm, bn, stages, places, blocks, rate)                                                  \
  WS_CUDA_TF32W_ENTRIES_OF(WS_CUDA_TF32W_STAYS_ENTRY, WS_CUDA_TF32W_STAYS_NAME(t, slices, bm, bn), t, slices, bm, bn, stages, \
                           places, blocks)
#include "cuda/rows/tf32w.def"
#endif
