/* instantiate_flat.cu - the entry points of the rows of flat.def: <row's name>_nn, _nt, _tn and _tt,
 * by the ops of A and B. They use clusters; other images than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_direct.cuh"
#include "cuda/mainloop/flat_sums.cuh"

#define WS_CUDA_FLAT_ENTRY(name, a_k, b_k, t, bm, bn, k_groups, steps, blocks, cluster)             \
  extern "C" __global__ void __launch_bounds__(WS_FLAT_THREADS(k_groups), blocks)                   \
      name(const __grid_constant__ ws_gemm_args args) {                                             \
    extern __shared__ __align__(128) unsigned char shared[];                                        \
    using config = ws::flat_config<ws::type_##t, bm, bn, k_groups, steps, cluster>;                 \
    static_assert(blocks * (config::shared_bytes + 1024) <= 228 * 1024, "the blocks fit (cc 9.0)"); \
    ws::direct_kernel<config, ws::flat_sums<config, a_k, b_k>>{args, shared}.run();                 \
  }
#define WS_CUDA_FLAT_NAME(t, bm, bn, k_groups, steps, cluster, ops) \
  t##gemm_flat_##bm##x##bn##_s##steps##_g##k_groups##_k##cluster##_##ops
#define WS_CUDA_FLAT_ROW(t, bm, bn, k_groups, steps, blocks, cluster, rate)                                                      \
  WS_CUDA_FLAT_ENTRY(WS_CUDA_FLAT_NAME(t, bm, bn, k_groups, steps, cluster, nn), false, true, t, bm, bn, k_groups, steps,        \
                     blocks, cluster)                                                                                            \
  WS_CUDA_FLAT_ENTRY(WS_CUDA_FLAT_NAME(t, bm, bn, k_groups, steps, cluster, nt), false, false, t, bm, bn, k_groups, steps,       \
                     blocks, cluster)                                                                                            \
  WS_CUDA_FLAT_ENTRY(WS_CUDA_FLAT_NAME(t, bm, bn, k_groups, steps, cluster, tn), true, true, t, bm, bn, k_groups, steps, blocks, \
                     cluster)                                                                                                    \
  WS_CUDA_FLAT_ENTRY(WS_CUDA_FLAT_NAME(t, bm, bn, k_groups, steps, cluster, tt), true, false, t, bm, bn, k_groups, steps,        \
                     blocks, cluster)
#include "cuda/rows/flat.def"
#endif
