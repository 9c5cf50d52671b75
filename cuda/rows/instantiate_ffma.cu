/* instantiate_ffma.cu - the entry points of the rows of ffma.def: <entry's name>_nn, _nt, _tn and _tt,
 * by the ops of A and B. They use clusters and setmaxnreg; other images than that of cc 9.0 have none
 * of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_ffma.cuh"
#include "cuda/rows/parts.h"

#define WS_CUDA_FFMA_ENTRY(name, op, a_k, b_k, t, bm, bn, wm, wn, k_groups, stages, blocks)           \
  extern "C" __global__ void __launch_bounds__(WS_DMMA_THREADS(bm, bn, wm, wn, k_groups), blocks)     \
      name##_##op(const __grid_constant__ ws_copied_args args) {                                      \
    extern __shared__ __align__(1024) unsigned char shared[];                                         \
    using config = ws::ffma_config<ws::type_##t, bm, bn, wm, wn, k_groups, stages, blocks, a_k, b_k>; \
    using kernel = ws::ffma_kernel<config>;                                                           \
    __shared__ typename kernel::shared_place at;                                                      \
    kernel::run(kernel{{args.gemm, shared, at, args}});                                               \
  }
#define WS_CUDA_FFMA_NAME(t, bm, bn, k_groups) t##gemm_ffma_##bm##x##bn##_g##k_groups
#define WS_CUDA_FFMA_ENTRIES(name, ...)                   \
  WS_CUDA_FFMA_ENTRY(name, nn, false, true, __VA_ARGS__)  \
  WS_CUDA_FFMA_ENTRY(name, nt, false, false, __VA_ARGS__) \
  WS_CUDA_FFMA_ENTRY(name, tn, true, true, __VA_ARGS__)   \
  WS_CUDA_FFMA_ENTRY(name, tt, true, false, __VA_ARGS__)
#define WS_CUDA_FFMA_ROW(t, bm, bn, wm, wn, k_groups, stages, blocks, cluster, rate) \
  WS_IF_PARTS_##cluster(                                                             \
      WS_CUDA_FFMA_ENTRIES_OF(WS_CUDA_FFMA_NAME(t, bm, bn, k_groups), t, bm, bn, wm, wn, k_groups, stages, blocks))
#define WS_CUDA_FFMA_ENTRIES_OF(name, ...) WS_CUDA_FFMA_ENTRIES(name, __VA_ARGS__)
#include "cuda/rows/ffma.def"
#endif
