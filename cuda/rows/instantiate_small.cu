/* instantiate_small.cu - the entry points of the rows of small.def: <row's name>_nn, _nt, _tn and _tt, by
 * the ops of A and B; of batches with pointers to their matrices _groups_nn and so on. Images other than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_small.cuh"
#include "cuda/rows/small_rows.h"

#define WS_CUDA_SMALL_ENTRY(name, a_k, b_k, t, owner, bm, bn, blocks)                                                       \
  extern "C" __global__ void __launch_bounds__(WS_SMALL_THREADS, blocks) name(const __grid_constant__ ws_small_args args) { \
    extern __shared__ __align__(128) char shared[];                                                                         \
    __shared__ uint64_t full[WS_SMALL_STAGES];                                                                              \
    using config = ws::small_config<ws::type_##t, bm, bn, a_k, b_k>;                                                        \
    static_assert(ws::small_by_##owner<config>::owner_threads == WS_SMALL_OWNER_##owner, "as C sees it");                   \
    ws::small_kernel<ws::small_by_##owner<config>, config, ws::small_strides>{args, {}, shared, full}.run();                \
  }
#define WS_CUDA_SMALL_PLACES_ENTRY(name, a_k, b_k, t, owner, bm, bn, blocks)                                   \
  extern "C" __global__ void __launch_bounds__(WS_SMALL_THREADS, blocks)                                       \
      name(const __grid_constant__ ws_small_args args, const __grid_constant__ ws_small_places places) {       \
    extern __shared__ __align__(128) char shared[];                                                            \
    __shared__ uint64_t full[WS_SMALL_STAGES];                                                                 \
    using config = ws::small_config<ws::type_##t, bm, bn, a_k, b_k>;                                           \
    ws::small_kernel<ws::small_by_##owner<config>, config, ws_small_places>{args, places, shared, full}.run(); \
  }
#define WS_CUDA_SMALL_NAME(t, bm, bn, ops) t##gemm_small_##bm##x##bn##_##ops
#define WS_CUDA_SMALL_ROW(t, owner, bm, bn, blocks, rate)                                                      \
  WS_CUDA_SMALL_PLACES_ENTRY(WS_CUDA_SMALL_NAME(t, bm, bn, groups_nn), false, true, t, owner, bm, bn, blocks)  \
  WS_CUDA_SMALL_PLACES_ENTRY(WS_CUDA_SMALL_NAME(t, bm, bn, groups_nt), false, false, t, owner, bm, bn, blocks) \
  WS_CUDA_SMALL_PLACES_ENTRY(WS_CUDA_SMALL_NAME(t, bm, bn, groups_tn), true, true, t, owner, bm, bn, blocks)   \
  WS_CUDA_SMALL_PLACES_ENTRY(WS_CUDA_SMALL_NAME(t, bm, bn, groups_tt), true, false, t, owner, bm, bn, blocks)  \
  WS_CUDA_SMALL_ENTRY(WS_CUDA_SMALL_NAME(t, bm, bn, nn), false, true, t, owner, bm, bn, blocks)                \
  WS_CUDA_SMALL_ENTRY(WS_CUDA_SMALL_NAME(t, bm, bn, nt), false, false, t, owner, bm, bn, blocks)               \
  WS_CUDA_SMALL_ENTRY(WS_CUDA_SMALL_NAME(t, bm, bn, tn), true, true, t, owner, bm, bn, blocks)                 \
  WS_CUDA_SMALL_ENTRY(WS_CUDA_SMALL_NAME(t, bm, bn, tt), true, false, t, owner, bm, bn, blocks)
#include "cuda/rows/small.def"
#endif
