/* instantiate_sliced.cu - floats on Hopper's tensor cores: the sliced rows of kernels.def (<row's
 * name>_queue), and the kernels before and after them. Only cc 9.0 has these instructions; other
 * images have none of these entries. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/fallback.cuh"
#include "cuda/kernels/gemm_wgmma.cuh"
#include "cuda/kernels/slices.cuh"
#include "cuda/kernels/solve_sliced.cuh"
#include "cuda/mainloop/simt.cuh"

#define WS_SLICED_ELEMENT_f16x3 __half
#define WS_SLICED_ELEMENT_f16x1 __half
#define WS_SLICED_ELEMENT_bf16x6 __nv_bfloat16
#define WS_CUDA_ROW(...)
#define WS_CUDA_DIRECT_ROW(...)
#define WS_CUDA_WGMMA_ROW(...)
#define WS_CUDA_SLICED_ROW(t, product, bm, bn, bk, coarse, consumers, stages, cluster, rate)                                     \
  extern "C" __global__ void __launch_bounds__(WS_WGMMA_THREADS(consumers), 1)                                                   \
      t##gemm_##product##_##bm##x##bn##x##bk##_c##coarse##_##cluster##_queue(const __grid_constant__ ws_wgmma_args args) {       \
    extern __shared__ __align__(1024) unsigned char shared[];                                                                    \
    using config =                                                                                                               \
        ws::wgmma_config<WS_SLICED_ELEMENT_##product, (bm)*WS_SLICED_UNIT_##t, bn, coarse, consumers, false, stages,             \
                         WS_WGMMA_BLOCKS_##cluster, WS_WGMMA_CLUSTER_SPLITS_##cluster, WS_SLICES_##product, WS_SLICED_UNIT_##t>; \
    static_assert((bk)*WS_SLICED_UNIT_##t == WS_WGMMA_BK);                                                                       \
    ws::wgmma_kernel<config, ws::sched_queue_of>{args, shared}.run();                                                            \
  }
#include "cuda/rows/kernels.def"

extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, 4) maxima(const __grid_constant__ ws_slice_args args) {
  ws::find_maxima(args);
}
extern "C" __device__ unsigned long long ws_n_fallback_ever;
extern "C" __device__ unsigned long long ws_n_fallback_ever = 0;

/* Three slices are made of few x, and need registers for finding them. */
#define WS_SLICES_KERNEL(t, n)                                                                          \
  extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, (n) == 3 ? 2 : 4 - WS_SLICED_UNIT_##t) \
      t##slices_##n(const __grid_constant__ ws_slice_args args) {                                       \
    ws::split_slices<n, WS_SLICED_UNIT_##t == 2>(args);                                                 \
  }
#define WS_KERNELS_OF_SLICES(t)                                                                                           \
  WS_SLICES_KERNEL(t, 1)                                                                                                  \
  WS_SLICES_KERNEL(t, 2)                                                                                                  \
  WS_SLICES_KERNEL(t, 3)                                                                                                  \
  using t##_fallback_config =                                                                                             \
      ws::row_config<ws::type_##t, WS_FALLBACK_BM, WS_FALLBACK_BN, WS_FALLBACK_BK, WS_FALLBACK_TM_##t, WS_FALLBACK_TN, 1, \
                     WS_FALLBACK_STAGES_##t, WS_OWNER_simt, WS_PAD_simt, WS_KEEPS_K_simt>;                                \
  extern "C" __global__ void __launch_bounds__(t##_fallback_config::n_threads)                                            \
      t##fallback(const __grid_constant__ ws_fallback_args args) {                                                        \
    ws::gemm_fallback<t##_fallback_config, ws::tiled_product<t##_fallback_config, ws::mainloop_simt>, ws::sched_fixed>(   \
        args, &ws_n_fallback_ever);                                                                                       \
  }
WS_KERNELS_OF_SLICES(s)
WS_KERNELS_OF_SLICES(c)

/* The same where an operand is structured. */
#define WS_STRUCTURED_SLICES_KERNEL(t, n)                                    \
  extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, 2)          \
      t##structured_slices_##n(const __grid_constant__ ws_slice_args args) { \
    ws::split_slices<n, WS_SLICED_UNIT_##t == 2, true>(args);                \
  }
#define WS_KERNELS_OF_STRUCTURED(t)                                       \
  extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, 2)       \
      t##structured_maxima(const __grid_constant__ ws_slice_args args) {  \
    ws::find_maxima<true, WS_SLICED_UNIT_##t == 2>(args);                 \
  }                                                                       \
  WS_STRUCTURED_SLICES_KERNEL(t, 1)                                       \
  WS_STRUCTURED_SLICES_KERNEL(t, 2)                                       \
  WS_STRUCTURED_SLICES_KERNEL(t, 3)                                       \
  extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, 2)       \
      t##expand_structured(const __grid_constant__ ws_expand_args args) { \
    ws::expand_structured<WS_SLICED_UNIT_##t == 2>(args);                 \
  }
WS_KERNELS_OF_STRUCTURED(s)
WS_KERNELS_OF_STRUCTURED(c)

extern "C" __global__ void __launch_bounds__(32 * WS_SLICED_SOLVE_WARPS, 1)
    ssolve_sliced(const __grid_constant__ ws_triangle_args args) {
  ws::solve_by_slices<WS_SLICED_SOLVE_COLUMNS, WS_SLICED_SOLVE_TILES, WS_SLICED_SOLVE_WARPS>(args);
}
#endif
