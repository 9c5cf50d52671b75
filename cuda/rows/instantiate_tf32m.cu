/* instantiate_tf32m.cu - the entry points of the rows of tf32m.def: <entry's name>_nn, _nt, _tn and _tt, by the
 * ops of A and B. They use tensor maps, clusters, setmaxnreg and wgmma; other images than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_tf32.cuh"
#include "cuda/rows/parts.h"

#define WS_CUDA_TF32M_ENTRY(name, a_k, b_k, is_across, slices, bm, bn, stages, turned_stages, places, blocks)    \
  extern "C" __global__ void __launch_bounds__(WS_TF32M_THREADS(slices, bm), blocks)                             \
      name(const __grid_constant__ ws_map_args args) {                                                           \
    extern __shared__ __align__(1024) unsigned char shared[];                                                    \
    using config = ws::tf32m_config<slices, bm, bn, stages, turned_stages, places, blocks, a_k, b_k, is_across>; \
    __shared__ typename ws::tf32_kernel<config>::shared_place at;                                                \
    ws::tf32_kernel<config>{args.gemm, shared, at, ws::shared_address(shared)}.run(at);                          \
  }
/* A B with both transposed is computed as C transposed, of which neither is. */
#define WS_CUDA_TF32M_ENTRIES(name, ...)                           \
  WS_CUDA_TF32M_ENTRY(name##_nn, false, true, false, __VA_ARGS__)  \
  WS_CUDA_TF32M_ENTRY(name##_nt, false, false, false, __VA_ARGS__) \
  WS_CUDA_TF32M_ENTRY(name##_tn, true, true, false, __VA_ARGS__)   \
  WS_CUDA_TF32M_ENTRY(name##_tt, false, true, true, __VA_ARGS__)
#define WS_CUDA_TF32M_NAME(t, slices, bm, bn) t##gemm_tf32m##slices##_##bm##x##bn##_g1
#define WS_CUDA_TF32M_ENTRIES_OF(name, ...) WS_CUDA_TF32M_ENTRIES(name, __VA_ARGS__)
#define WS_CUDA_TF32M_ROW(t, slices, bm, bn, stages, turned_stages, places, blocks, cluster, rate) \
  WS_IF_PARTS_##cluster(                                                                           \
      WS_CUDA_TF32M_ENTRIES_OF(WS_CUDA_TF32M_NAME(t, slices, bm, bn), slices, bm, bn, stages, turned_stages, places, blocks))
#include "cuda/rows/tf32m.def"
#endif
