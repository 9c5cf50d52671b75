/* instantiate_sliced.cu - floats on Hopper's matrix units: the sliced rows of kernels.def (<row's name>_queue), and the kernels before and after
 * them. Only cc 9.0 has these instructions; other images have none of these entries. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "mainloop_simt.cuh"
#include "marked_kernel.cuh"
#include "slice_kernels.cuh"
#include "wgmma_kernel.cuh"

#define WS_SLICED_ELEMENT_f16x3 __half
#define WS_SLICED_ELEMENT_f16x1 __half
#define WS_SLICED_ELEMENT_bf16x6 __nv_bfloat16
#define WS_CUDA_ROW(...)
#define WS_CUDA_WGMMA_ROW(...)
#define WS_CUDA_SLICED_ROW(t, product, bm, bn, coarse, consumers, stages, cluster, rate)                               \
  extern "C" __global__ void __launch_bounds__(WS_WGMMA_THREADS(consumers), 1)                                         \
      t##gemm_##product##_##bm##x##bn##x64_c##coarse##_##cluster##_queue(const __grid_constant__ ws_wgmma_args args) { \
    extern __shared__ __align__(1024) unsigned char shared[];                                                          \
    using config = ws::wgmma_config<WS_SLICED_ELEMENT_##product, bm, bn, coarse, consumers, false, stages,             \
                                    WS_WGMMA_BLOCKS_##cluster, WS_WGMMA_K_PARTS_##cluster, WS_SLICES_##product>;       \
    ws::wgmma_kernel<config>{args, shared}.run();                                                                      \
  }
#include "kernels.def"

extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, 4) maxima(const __grid_constant__ ws_slice_args args) {
  ws::find_maxima(args);
}
extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, 3) slices_1(const __grid_constant__ ws_slice_args args) {
  ws::cut_slices<1>(args);
}
extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, 3) slices_2(const __grid_constant__ ws_slice_args args) {
  ws::cut_slices<2>(args);
}
extern "C" __global__ void __launch_bounds__(WS_SLICE_THREADS, 3) slices_3(const __grid_constant__ ws_slice_args args) {
  ws::cut_slices<3>(args);
}

using marked_config = ws::row_config<ws::type_s, WS_MARKED_BM, WS_MARKED_BN, WS_MARKED_BK, WS_MARKED_TM, WS_MARKED_TN, 1,
                                     WS_MARKED_STAGES, WS_OWNER_simt, WS_PAD_simt, WS_KEEPS_K_simt>;
extern "C" __device__ unsigned long long ws_n_marked_ever;
extern "C" __device__ unsigned long long ws_n_marked_ever = 0;
extern "C" __global__ void __launch_bounds__(marked_config::n_threads) smarked(const __grid_constant__ ws_marked_args args) {
  ws::gemm_marked<marked_config, ws::tiled_product<marked_config, ws::mainloop_simt>>(args, &ws_n_marked_ever);
}
#endif
