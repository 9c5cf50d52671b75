/* instantiate_dmma.cu - the entry points of the rows of dmma.def: <entry's name>_nn, _nt, _tn and _tt,
 * by the ops of A and B. They use clusters and setmaxnreg; other images than that of cc 9.0 have none
 * of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_dmma.cuh"
#include "cuda/rows/parts.h"

#define WS_CUDA_DMMA_ENTRY(name, op, t, bm, bn, wp, wq, k_groups, stages, blocks)                             \
  extern "C" __global__ void __launch_bounds__(WS_DMMA_THREADS(bm, bn, wp, wq, k_groups), blocks)             \
      name##_##op(const __grid_constant__ ws_copied_args args) {                                              \
    extern __shared__ __align__(1024) unsigned char shared[];                                                 \
    using config = ws::dmma_config<ws::type_##t, bm, bn, wp, wq, k_groups, stages, blocks, ws::dmma_ops::op>; \
    using kernel = ws::dmma_kernel<config>;                                                                   \
    __shared__ typename kernel::shared_place at;                                                              \
    kernel::run(kernel{args.gemm, shared, at, args});                                                         \
  }
#define WS_CUDA_DMMA_NAME(t, bm, bn, k_groups) t##gemm_dmma_##bm##x##bn##_g##k_groups
#define WS_CUDA_DMMA_ENTRIES(name, ...)     \
  WS_CUDA_DMMA_ENTRY(name, nn, __VA_ARGS__) \
  WS_CUDA_DMMA_ENTRY(name, nt, __VA_ARGS__) \
  WS_CUDA_DMMA_ENTRY(name, tn, __VA_ARGS__) \
  WS_CUDA_DMMA_ENTRY(name, tt, __VA_ARGS__)
#define WS_CUDA_DMMA_ROW(t, bm, bn, wp, wq, k_groups, stages, blocks, cluster, rate) \
  WS_IF_PARTS_##cluster(                                                             \
      WS_CUDA_DMMA_ENTRIES_OF(WS_CUDA_DMMA_NAME(t, bm, bn, k_groups), t, bm, bn, wp, wq, k_groups, stages, blocks))
#define WS_CUDA_DMMA_ENTRIES_OF(name, ...) WS_CUDA_DMMA_ENTRIES(name, __VA_ARGS__)
#include "cuda/rows/dmma.def"
#endif
