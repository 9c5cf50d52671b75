/* instantiate_wgmma.cu - the entry points of the wgmma rows of kernels.def: <row's name>_queue.
 * Only cc 9.0 has these instructions; other images have none of these entries. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_wgmma.cuh"
#include "cuda/kernels/gemm_wgmma_once.cuh"

namespace ws {
template <class Config>
using wgmma_kernel_of =
    std::conditional_t<Config::is_once, wgmma_once_kernel<Config, sched_fixed_of>, wgmma_kernel<Config, sched_queue_of>>;
}

#define WS_WGMMA_ELEMENT_h __half
#define WS_WGMMA_ELEMENT_b __nv_bfloat16
#define WS_CUDA_ROW(...)
#define WS_CUDA_SLICED_ROW(...)
#define WS_CUDA_DIRECT_ROW(...)
#define WS_CUDA_WGMMA_ROW(t, bm, bn, coarse, consumers, ping_pong, stages, cluster, rate)                             \
  using t##wgmma_##bm##x##bn##_c##coarse##_##cluster =                                                                \
      ws::wgmma_config<WS_WGMMA_ELEMENT_##t, bm, bn, coarse, consumers, ping_pong, stages, WS_WGMMA_BLOCKS_##cluster, \
                       WS_WGMMA_CLUSTER_SPLITS_##cluster, 0, 1, WS_WGMMA_ONCE_##cluster>;                             \
  extern "C" __global__ void __launch_bounds__(t##wgmma_##bm##x##bn##_c##coarse##_##cluster::n_threads,               \
                                               t##wgmma_##bm##x##bn##_c##coarse##_##cluster::n_blocks)                \
      t##gemm_wgmma_##bm##x##bn##x64_c##coarse##_##cluster##_queue(const __grid_constant__ ws_wgmma_args args) {      \
    extern __shared__ __align__(1024) unsigned char shared[];                                                         \
    ws::wgmma_kernel_of<t##wgmma_##bm##x##bn##_c##coarse##_##cluster>{args, shared}.run();                            \
  }
#include "cuda/rows/kernels.def"
#endif
