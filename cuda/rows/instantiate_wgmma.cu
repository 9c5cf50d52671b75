/* instantiate_wgmma.cu - the entry points of the wgmma rows of kernels.def: <row's name>_queue, and
 * <row's name>_bare for products that need no more.
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
#define WS_WGMMA_ENTRY(name, entry, ...)                                                                              \
  using name##_##entry##_config = ws::wgmma_config<__VA_ARGS__>;                                                      \
  extern "C" __global__ void __launch_bounds__(name##_##entry##_config::n_threads, name##_##entry##_config::n_blocks) \
      name##_##entry(const __grid_constant__ ws_wgmma_args args) {                                                    \
    extern __shared__ __align__(1024) unsigned char shared[];                                                         \
    ws::wgmma_kernel_of<name##_##entry##_config>{args, shared}.run();                                                 \
  }
/* By WS_WGMMA_ONCE: non-persistent rows have a bare way within (args.is_plain). */
#define WS_WGMMA_BARE_0(name, cluster_m, ...) WS_WGMMA_ENTRY(name, bare, __VA_ARGS__, true, cluster_m)
#define WS_WGMMA_BARE_1(name, ...)
#define WS_JOINED(a, b) a##b
#define WS_JOIN(a, b) WS_JOINED(a, b)
#define WS_WGMMA_ENTRIES(name, once, cluster_m, ...)               \
  WS_WGMMA_ENTRY(name, queue, __VA_ARGS__, once, false, cluster_m) \
  WS_JOIN(WS_WGMMA_BARE_, once)(name, cluster_m, __VA_ARGS__, once)
#define WS_CUDA_WGMMA_ROW(t, bm, bn, coarse, consumers, ping_pong, stages, cluster, rate)                                       \
  WS_WGMMA_ENTRIES(t##gemm_wgmma_##bm##x##bn##x64_c##coarse##_##cluster, WS_WGMMA_ONCE_##cluster, WS_WGMMA_CLUSTER_M_##cluster, \
                   WS_WGMMA_ELEMENT_##t, bm, bn, coarse, consumers, ping_pong, stages, WS_WGMMA_BLOCKS_##cluster,               \
                   WS_WGMMA_CLUSTER_SPLITS_##cluster, 0, 1)
#include "cuda/rows/kernels.def"
#endif
