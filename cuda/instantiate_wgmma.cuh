/* instantiate_wgmma.cuh - the entry points of wgmma rows: <row's name>_queue. Only cc 9.0 has these instructions; other images have none of
 * them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "wgmma_kernel.cuh"

#define WS_CUDA_WGMMA_ENTRY(t, element, bm, bn, coarse, consumers, stages, cluster, rate)                         \
  extern "C" __global__ void __launch_bounds__(WS_WGMMA_THREADS(consumers), 1)                                    \
      t##gemm_wgmma_##bm##x##bn##x64_c##coarse##_x##cluster##_queue(const __grid_constant__ ws_wgmma_args args) { \
    extern __shared__ __align__(1024) unsigned char shared[];                                                     \
    using config = ws::wgmma_config<element, bm, bn, coarse, consumers, stages, cluster>;                         \
    ws::wgmma_kernel<config>{args, shared}.run();                                                                 \
  }
#else
#define WS_CUDA_WGMMA_ENTRY(...)
#endif
