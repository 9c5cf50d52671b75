/* instantiate_groups.cu - the entry points of rows for groups (groups.h): <entry's name>_groups_nn, _nt, _tn
 * and _tt, by the ops of A and B: the row's kernel, for the product that its block finds (group_product.cuh).
 * They use setmaxnreg and wgmma; other images than that of cc 9.0 have none of them. */
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#include "cuda/kernels/gemm_direct.cuh"
#include "cuda/kernels/gemm_ffma.cuh"
#include "cuda/kernels/gemm_tf32.cuh"
#include "cuda/kernels/group_product.cuh"
#include "cuda/rows/groups.h"
#include "cuda/rows/parts.h"

namespace ws {

/* What a block does, by the kernel of its row. */
template <class Config, template <class> class Kernel>
__device__ __forceinline__ void run_copied_group(const ws_group_args &args, const ws_grouped_ends &ends, unsigned char *shared) {
  using kernel = Kernel<Config>;
  __shared__ group_product product;
  __shared__ typename kernel::shared_place at;
  if (!group_finder<Config>(args, ends).find(product)) return;
  if constexpr (std::is_same_v<kernel, dmma_kernel<Config>>)
    kernel::run_item(kernel{product.gemm, shared, at, args.common}, product.item, product.rank);
  else
    kernel::run_item(kernel{{product.gemm, shared, at, args.common}}, product.item, product.rank);
}
template <class Config>
__device__ __forceinline__ void run_tf32_group(const ws_group_args &args, const ws_grouped_ends &ends, unsigned char *shared) {
  __shared__ group_product product;
  __shared__ typename tf32_kernel<Config>::shared_place at;
  if (group_finder<Config>(args, ends).find(product))
    tf32_kernel<Config>{product.gemm, shared, at, shared_address(shared)}.run_item(at, product.item, product.rank);
}
template <class Config, bool A_K, bool B_K>
__device__ __forceinline__ void run_direct_group(const ws_group_args &args, const ws_grouped_ends &ends, unsigned char *shared) {
  __shared__ group_product product;
  if (group_finder<Config>(args, ends).find(product))
    direct_kernel<Config, direct_sums<Config, A_K, B_K>>{product.gemm, shared}.run_tile(product.tile);
}

} // namespace ws

/* ...: the function that a block runs */
#define WS_GROUPS_ENTRY(name, n_threads, blocks, ...)                                                  \
  extern "C" __global__ void __launch_bounds__(n_threads, blocks)                                      \
      name(const __grid_constant__ ws_group_args args, const __grid_constant__ ws_grouped_ends ends) { \
    extern __shared__ __align__(1024) unsigned char shared[];                                          \
    __VA_ARGS__(args, ends, shared);                                                                   \
  }
/* entry: makes one of them, of a pair of ops, with whether A and B have k contiguous */
#define WS_GROUPS_ENTRIES(entry, name, ...)                                                                    \
  entry(name##_groups_nn, nn, false, true, __VA_ARGS__) entry(name##_groups_nt, nt, false, false, __VA_ARGS__) \
      entry(name##_groups_tn, tn, true, true, __VA_ARGS__) entry(name##_groups_tt, tt, true, false, __VA_ARGS__)
#define WS_GROUPS_ENTRIES_OF(entry, name, ...) WS_GROUPS_ENTRIES(entry, name, __VA_ARGS__)

#define WS_GROUPS_DMMA(name, op, a_k, b_k, t, bm, bn, wp, wq, k_groups, stages, blocks)                                 \
  WS_GROUPS_ENTRY(                                                                                                      \
      name, WS_DMMA_THREADS(bm, bn, wp, wq, k_groups), blocks,                                                          \
      ws::run_copied_group<                                                                                             \
          ws::groups_config<ws::dmma_config<ws::type_##t, bm, bn, wp, wq, k_groups, stages, blocks, ws::dmma_ops::op>>, \
          ws::dmma_kernel>)
#define WS_GROUPS_FFMA(name, op, a_k, b_k, t, bm, bn, wm, wn, k_groups, stages, blocks)                                          \
  WS_GROUPS_ENTRY(                                                                                                               \
      name, WS_DMMA_THREADS(bm, bn, wm, wn, k_groups), blocks,                                                                   \
      ws::run_copied_group<ws::groups_config<ws::ffma_config<ws::type_##t, bm, bn, wm, wn, k_groups, stages, blocks, a_k, b_k>>, \
                           ws::ffma_kernel>)
#define WS_GROUPS_TF32(name, op, a_k, b_k, t, slices, bm, bn, wm, wn, k_groups, stages, blocks) \
  WS_GROUPS_ENTRY(                                                                              \
      name, WS_TF32_THREADS(bm, bn, wm, wn, k_groups), blocks,                                  \
      ws::run_tf32_group<                                                                       \
          ws::groups_config<ws::tf32_config<ws::type_##t, slices, bm, bn, wm, wn, k_groups, stages, blocks, a_k, b_k>>>)
#define WS_GROUPS_TF32W(name, op, a_k, b_k, t, slices, bm, bn, k_groups, stages, places, blocks) \
  WS_GROUPS_ENTRY(                                                                               \
      name, WS_TF32W_THREADS(bm, k_groups), blocks,                                              \
      ws::run_tf32_group<                                                                        \
          ws::groups_config<ws::tf32w_config<ws::type_##t, slices, bm, bn, k_groups, stages, places, blocks, a_k, b_k>>>)
#define WS_GROUPS_DIRECT(name, op, a_k, b_k, t, bm, bn, tm, tn, k_groups, stages, blocks) \
  WS_GROUPS_ENTRY(                                                                        \
      name, WS_DIRECT_THREADS(bm, bn, tm, tn, k_groups), blocks,                          \
      ws::run_direct_group<ws::groups_config<ws::direct_config<ws::type_##t, bm, bn, tm, tn, k_groups, stages, 1>>, a_k, b_k>)

#define WS_CUDA_ROW(...)
#define WS_CUDA_WGMMA_ROW(...)
#define WS_CUDA_SLICED_ROW(...)
#define WS_CUDA_TF32W_STAYS(...)
#define WS_CUDA_DMMA_ROW(t, bm, bn, wp, wq, k_groups, stages, blocks, cluster, rate)                                            \
  WS_IF_PARTS_##cluster(WS_IF_OF_GROUPS(t##_dmma_##bm##x##bn##_g##k_groups,                                                     \
                                        WS_GROUPS_ENTRIES_OF(WS_GROUPS_DMMA, t##gemm_dmma_##bm##x##bn##_g##k_groups, t, bm, bn, \
                                                             wp, wq, k_groups, stages, blocks)))
#define WS_CUDA_FFMA_ROW(t, bm, bn, wm, wn, k_groups, stages, blocks, cluster, rate)                                            \
  WS_IF_PARTS_##cluster(WS_IF_OF_GROUPS(t##_ffma_##bm##x##bn##_g##k_groups,                                                     \
                                        WS_GROUPS_ENTRIES_OF(WS_GROUPS_FFMA, t##gemm_ffma_##bm##x##bn##_g##k_groups, t, bm, bn, \
                                                             wm, wn, k_groups, stages, blocks)))
#define WS_CUDA_TF32_ROW(t, slices, bm, bn, wm, wn, k_groups, stages, blocks, cluster, rate)                                    \
  WS_IF_PARTS_##cluster(WS_IF_OF_GROUPS(t##_tf32x##slices##_##bm##x##bn##_g##k_groups,                                          \
                                        WS_GROUPS_ENTRIES_OF(WS_GROUPS_TF32, t##gemm_tf32x##slices##_##bm##x##bn##_g##k_groups, \
                                                             t, slices, bm, bn, wm, wn, k_groups, stages, blocks)))
#define WS_CUDA_TF32W_ROW(t, slices, bm, bn, k_groups, stages, places, blocks, cluster, rate)                                    \
  WS_IF_PARTS_##cluster(WS_IF_OF_GROUPS(t##_tf32w##slices##_##bm##x##bn##_g##k_groups,                                           \
                                        WS_GROUPS_ENTRIES_OF(WS_GROUPS_TF32W, t##gemm_tf32w##slices##_##bm##x##bn##_g##k_groups, \
                                                             t, slices, bm, bn, k_groups, stages, places, blocks)))
#define WS_CUDA_DIRECT_ROW(t, bm, bn, tm, tn, k_groups, stages, blocks, cluster, rate)                                        \
  WS_IF_OF_GROUPS(t##_direct_##bm##x##bn##_g##k_groups##_k##cluster,                                                          \
                  WS_GROUPS_ENTRIES_OF(WS_GROUPS_DIRECT, t##gemm_direct_##bm##x##bn##x16_g##k_groups##_k##cluster, t, bm, bn, \
                                       tm, tn, k_groups, stages, blocks))
#include "cuda/rows/dmma.def"
#include "cuda/rows/ffma.def"
#include "cuda/rows/kernels.def"
#include "cuda/rows/tf32.def"
#include "cuda/rows/tf32w.def"
#endif
