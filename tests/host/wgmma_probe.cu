/* wgmma_probe.cu - kernels of cuda/kernels/gemm_wgmma.cuh in each form that a cluster has, for
 * wgmma_code.py to look at; never run. */
#include "cuda/kernels/gemm_wgmma.cuh"
#include "cuda/kernels/gemm_wgmma_once.cuh"

#define PROBE(name, threads, ...)                                                                             \
  extern "C" __global__ void __launch_bounds__(threads, 1) name(const __grid_constant__ ws_wgmma_args args) { \
    extern __shared__ __align__(1024) unsigned char shared[];                                                 \
    ws::wgmma_kernel<ws::wgmma_config<__half, __VA_ARGS__>, ws::sched_queue_of>{args, shared}.run();          \
  }
PROBE(probe_x1, WS_WGMMA_THREADS(1), 64, 64, 1, 1, 0, 10, 1, 1)
PROBE(probe_x2, WS_WGMMA_THREADS(1), 128, 64, 1, 1, 0, 8, 2, 1)
PROBE(probe_x24, WS_WGMMA_THREADS(1), 96, 64, 1, 1, 0, 8, 8, 1, 0, 1, false, true, 2)
PROBE(probe_x2_turns, WS_WGMMA_THREADS(2), 128, 64, 2, 2, 1, 6, 2, 1)
PROBE(probe_sliced_x1, WS_WGMMA_THREADS(1), 64, 64, 1, 1, false, 6, 1, 1, 2, 1)
PROBE(probe_sliced_x2, WS_WGMMA_THREADS(2), 128, 64, 2, 2, false, 3, 2, 1, 2, 1)

#define PROBE_ONCE(name, consumers, parts, ...)                                       \
  extern "C" __global__ void __launch_bounds__(WS_WGMMA_ROW_THREADS(consumers, 1), 1) \
      name(const __grid_constant__ ws_wgmma_args args) {                              \
    extern __shared__ __align__(1024) unsigned char shared[];                         \
    using config = ws::wgmma_config<__half, __VA_ARGS__, parts, parts, 0, 1, true>;   \
    ws::wgmma_once_kernel<config, ws::sched_fixed_of>{args, shared}.run();            \
  }
PROBE_ONCE(probe_k1, 1, 1, 64, 64, 1, 1, 0, 13)
PROBE_ONCE(probe_k2, 2, 2, 144, 64, 2, 2, 0, 5)
PROBE_ONCE(probe_k8, 1, 8, 16, 64, 1, 1, 0, 13)
