/* instantiate_direct.cu - the entry points of the direct rows of kernels.def: <row's name>_nn, _nt,
 * _tn and _tt, by the ops of A and B: one kernel for all would be four times as long, and code comes
 * from memory, too. They use clusters; other images than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_direct.cuh"

#define WS_CUDA_ROW(...)
#define WS_CUDA_WGMMA_ROW(...)
#define WS_CUDA_SLICED_ROW(...)
#define WS_CUDA_DIRECT_ENTRY(name, a_k, b_k, t, bm, bn, warp_m, warp_n, k_groups, stages, blocks, cluster)  \
  extern "C" __global__ void __launch_bounds__(WS_DIRECT_THREADS(bm, bn, warp_m, warp_n, k_groups), blocks) \
      name(const __grid_constant__ ws_gemm_args args) {                                                     \
    extern __shared__ __align__(128) unsigned char shared[];                                                \
    using config = ws::direct_config<ws::type_##t, bm, bn, warp_m, warp_n, k_groups, stages, cluster>;      \
    static_assert(blocks * (config::shared_bytes + 1024) <= 228 * 1024, "the blocks fit (cc 9.0)");         \
    ws::direct_kernel<config, ws::direct_sums<config, a_k, b_k>>{args, shared}.run();                       \
  }
#define WS_CUDA_DIRECT_NAME(t, bm, bn, k_groups, cluster, ops) t##gemm_direct_##bm##x##bn##x16_g##k_groups##_k##cluster##_##ops
#define WS_CUDA_DIRECT_ROW(t, bm, bn, warp_m, warp_n, k_groups, stages, blocks, cluster, rate)                                   \
  WS_CUDA_DIRECT_ENTRY(WS_CUDA_DIRECT_NAME(t, bm, bn, k_groups, cluster, nn), false, true, t, bm, bn, warp_m, warp_n, k_groups,  \
                       stages, blocks, cluster)                                                                                  \
  WS_CUDA_DIRECT_ENTRY(WS_CUDA_DIRECT_NAME(t, bm, bn, k_groups, cluster, nt), false, false, t, bm, bn, warp_m, warp_n, k_groups, \
                       stages, blocks, cluster)                                                                                  \
  WS_CUDA_DIRECT_ENTRY(WS_CUDA_DIRECT_NAME(t, bm, bn, k_groups, cluster, tn), true, true, t, bm, bn, warp_m, warp_n, k_groups,   \
                       stages, blocks, cluster)                                                                                  \
  WS_CUDA_DIRECT_ENTRY(WS_CUDA_DIRECT_NAME(t, bm, bn, k_groups, cluster, tt), true, false, t, bm, bn, warp_m, warp_n, k_groups,  \
                       stages, blocks, cluster)
#include "cuda/rows/kernels.def"
#endif
