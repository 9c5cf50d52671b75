/* row_table.h - the rows of kernels.def, vec.def, flat.def, small.def, dmma.def, ffma.def, outer.def, tf32.def, tf32m.def and tf32w.def as
 * the host sees them, for device.c and for the tests of the host side, which do not see into the library. What a kind of row says nothing
 * of is 0. */
#ifndef WS_CUDA_ROW_TABLE_H
#define WS_CUDA_ROW_TABLE_H
#include "cuda/host/device.h"
#include "cuda/rows/dmma_rows.h"
#include "cuda/rows/ffma_rows.h"
#include "cuda/rows/flat_rows.h"
#include "cuda/rows/groups.h"
#include "cuda/rows/outer_rows.h"
#include "cuda/rows/rows.h"
#include "cuda/rows/small_rows.h"
#include "cuda/rows/tf32_rows.h"

static const ws_cuda_row ws_cuda_rows[] = {
/* Members that all rows have. */
#define WS_ROW_MEMBERS(row_name, row_family, t, m, n, k, row_stages, threads, bytes, row_blocks, speed)         \
  .name = row_name, .family = row_family, .type = WS_TYPE_##t, .bm = m, .bn = n, .bk = k, .stages = row_stages, \
  .n_threads = threads, .shared_bytes = bytes, .blocks = row_blocks, .rate = speed
/* Of those that have no COARSE_FACTOR, and whose cluster is one item's. */
#define WS_PARTS_MEMBERS(row_cluster, groups) \
  .coarse = 1, .cluster = row_cluster, .cluster_splits = row_cluster, .cluster_m = 1, .k_groups = groups
#define WS_WGMMA_BYTES_OF(bm, bn, coarse, consumers, ping_pong, stages, cluster) \
  WS_WGMMA_SHARED_BYTES(bm, bn, coarse, consumers, ping_pong, stages, WS_WGMMA_CLUSTER_SPLITS_##cluster, WS_WGMMA_ONCE_##cluster)

#define WS_CUDA_ROW(t, mainloop, bm, bn, bk, tm, tn, coarsening, stages, blocks, has_split, rate)                         \
  {WS_ROW_MEMBERS(#t "gemm_" #mainloop "_" #bm "x" #bn "x" #bk "_c" #coarsening, #mainloop, t, bm, bn, bk, stages,        \
                  WS_ROW_THREADS(mainloop, bm, bn, tm, tn),                                                               \
                  WS_ROW_SHARED_BYTES(mainloop, WS_ROW_ELEMENT_BYTES_##t, bm, bn, bk, coarsening, stages), blocks, rate), \
   .kind = #mainloop[0] == 'v' ? WS_ROW_VECTOR : WS_ROW_TILED,                                                            \
   .coarse = coarsening,                                                                                                  \
   .total_bytes = WS_ROW_TOTAL_BYTES(WS_ROW_SUM_BYTES_##t, bm, bn, coarsening),                                           \
   .is_fma = WS_IS_FMA_##mainloop,                                                                                        \
   .splits = has_split,                                                                                                   \
   .cluster = 1,                                                                                                          \
   .cluster_splits = 1,                                                                                                   \
   .cluster_m = 1,                                                                                                        \
   .k_groups = 1},
#define WS_CUDA_WGMMA_ROW(t, bm, bn, coarsening, consumers, alternate, stages, blocks, rate)                               \
  {WS_ROW_MEMBERS(#t "gemm_wgmma_" #bm "x" #bn "x64_c" #coarsening "_" #blocks, "wgmma", t, bm, bn, WS_WGMMA_BK, stages,   \
                  WS_WGMMA_ROW_THREADS(consumers, WS_WGMMA_ONCE_##blocks),                                                 \
                  WS_WGMMA_BYTES_OF(bm, bn, coarsening, consumers, alternate, stages, blocks),                             \
                  WS_WGMMA_ROW_BLOCKS(WS_WGMMA_BYTES_OF(bm, bn, coarsening, consumers, alternate, stages, blocks)), rate), \
   .kind = WS_ROW_WGMMA,                                                                                                   \
   .coarse = coarsening,                                                                                                   \
   .cluster = WS_WGMMA_BLOCKS_##blocks,                                                                                    \
   .is_plain = WS_WGMMA_IS_PLAIN(bm, (bn) * (coarsening), consumers, alternate),                                           \
   .cluster_splits = WS_WGMMA_CLUSTER_SPLITS_##blocks,                                                                     \
   .cluster_m = WS_WGMMA_CLUSTER_M_##blocks,                                                                               \
   .ping_pong = alternate,                                                                                                 \
   .k_groups = 1,                                                                                                          \
   .is_once = WS_WGMMA_ONCE_##blocks},
#define WS_CUDA_SLICED_ROW(t, product, bm, bn, bk, coarsening, consumers, stages, blocks, rate)                              \
  {WS_ROW_MEMBERS(#t "gemm_" #product "_" #bm "x" #bn "x" #bk "_c" #coarsening "_" #blocks, #product, t, bm, bn, bk, stages, \
                  WS_WGMMA_THREADS(consumers),                                                                               \
                  WS_SLICED_SHARED_BYTES(WS_SLICES_##product, (bm)*WS_SLICED_UNIT_##t, bn, coarsening, stages), 1, rate),    \
   .kind = WS_ROW_SLICED,                                                                                                    \
   .coarse = coarsening,                                                                                                     \
   .cluster = WS_WGMMA_BLOCKS_##blocks,                                                                                      \
   .cluster_splits = 1,                                                                                                      \
   .cluster_m = 1,                                                                                                           \
   .n_slices = WS_SLICES_##product,                                                                                          \
   .k_groups = 1},
#define WS_CUDA_DIRECT_ROW(t, bm, bn, tm, tn, groups, stages, blocks, cluster, rate)                                        \
  {WS_ROW_MEMBERS(#t "gemm_direct_" #bm "x" #bn "x16_g" #groups "_k" #cluster, "direct", t, bm, bn, WS_DIRECT_BK, stages,   \
                  WS_DIRECT_THREADS(bm, bn, tm, tn, groups), WS_DIRECT_SHARED_BYTES(bm, bn, groups, stages), blocks, rate), \
   .kind = WS_ROW_DIRECT, .of_groups = WS_IS_OF_GROUPS(t##_direct_##bm##x##bn##_g##groups##_k##cluster),                    \
   WS_PARTS_MEMBERS(cluster, groups)},
#define WS_CUDA_FLAT_ROW(t, bm, bn, groups, steps, blocks, cluster, rate)                                                      \
  {WS_ROW_MEMBERS(#t "gemm_flat_" #bm "x" #bn "_s" #steps "_g" #groups "_k" #cluster, "flat", t, bm, bn, WS_FLAT_BK(steps), 0, \
                  WS_FLAT_THREADS(groups), WS_FLAT_SHARED_BYTES(bm, bn, groups), blocks, rate),                                \
   .kind = WS_ROW_DIRECT, .is_flat = true, WS_PARTS_MEMBERS(cluster, groups)},
#define WS_CUDA_DMMA_ROW(t, bm, bn, wp, wq, groups, stages, blocks, cluster, rate)                                         \
  {WS_ROW_MEMBERS(#t "gemm_dmma_" #bm "x" #bn "_g" #groups "_k" #cluster, "dmma", t, bm, bn, WS_DMMA_BK(WS_DMMA_UNIT_##t), \
                  stages, WS_DMMA_THREADS(bm, bn, wp, wq, groups),                                                         \
                  WS_DMMA_SHARED_BYTES(WS_DMMA_UNIT_##t, bm, bn, groups, stages), blocks, rate),                           \
   .kind = WS_ROW_DMMA,                                                                                                    \
   .is_fma = true,                                                                                                         \
   .any_parts = true,                                                                                                      \
   .of_groups = WS_IS_OF_GROUPS(t##_dmma_##bm##x##bn##_g##groups),                                                         \
   WS_PARTS_MEMBERS(cluster, groups)},
#define WS_CUDA_FFMA_ROW(t, bm, bn, wm, wn, groups, stages, blocks, cluster, rate)                                      \
  {WS_ROW_MEMBERS(#t "gemm_ffma_" #bm "x" #bn "_g" #groups "_k" #cluster, "ffma", t, bm, bn, WS_FFMA_BK, stages,        \
                  WS_DMMA_THREADS(bm, bn, wm, wn, groups), WS_FFMA_SHARED_BYTES(bm, bn, groups, stages), blocks, rate), \
   .kind = WS_ROW_DMMA,                                                                                                 \
   .is_fma = true,                                                                                                      \
   .any_parts = true,                                                                                                   \
   .of_groups = WS_IS_OF_GROUPS(t##_ffma_##bm##x##bn##_g##groups),                                                      \
   WS_PARTS_MEMBERS(cluster, groups)},
#define WS_CUDA_OUTER_ROW(t, bm, bn, lanes, tm, tn, warps, stages, blocks, rate)                                  \
  {WS_ROW_MEMBERS(#t "gemm_outer_" #bm "x" #bn, "outer", t, bm, bn, WS_OUTER_BK, stages, WS_OUTER_THREADS(warps), \
                  WS_OUTER_SHARED_BYTES(WS_OUTER_UNIT_##t, bm, bn, stages), blocks, rate),                        \
   .kind = WS_ROW_DMMA, .is_fma = true, .stays = true, WS_PARTS_MEMBERS(1, 1)},
#define WS_CUDA_TF32_ROW(t, slices, bm, bn, wm, wn, groups, stages, blocks, cluster, rate)                        \
  {WS_ROW_MEMBERS(#t "gemm_tf32x" #slices "_" #bm "x" #bn "_g" #groups "_k" #cluster, "tf32x" #slices, t, bm, bn, \
                  WS_TF32_BK(WS_TF32_UNIT_##t), stages, WS_TF32_THREADS(bm, bn, wm, wn, groups),                  \
                  WS_TF32_SHARED_BYTES(WS_TF32_UNIT_##t, bm, bn, groups, stages), blocks, rate),                  \
   .kind = WS_ROW_TF32,                                                                                           \
   .n_slices = slices,                                                                                            \
   .any_parts = true,                                                                                             \
   .of_groups = WS_IS_OF_GROUPS(t##_tf32x##slices##_##bm##x##bn##_g##groups),                                     \
   WS_PARTS_MEMBERS(cluster, groups)},
#define WS_TF32W_MEMBERS(row_name, bytes, t, slices, bm, bn, groups, stages, places, blocks, cluster, rate)                \
  WS_ROW_MEMBERS(row_name, "tf32w" #slices, t, bm, bn, WS_TF32_BK(WS_TF32_UNIT_##t), stages, WS_TF32W_THREADS(bm, groups), \
                 bytes(WS_TF32_UNIT_##t, slices, bm, bn, groups, stages, places), blocks, rate),                           \
      .kind = WS_ROW_TF32, .n_slices = slices, .slice_places = places, WS_PARTS_MEMBERS(cluster, groups)
#define WS_CUDA_TF32W_ROW(t, slices, bm, bn, groups, stages, places, blocks, cluster, rate)                                   \
  {WS_TF32W_MEMBERS(#t "gemm_tf32w" #slices "_" #bm "x" #bn "_g" #groups "_k" #cluster, WS_TF32W_SHARED_BYTES, t, slices, bm, \
                    bn, groups, stages, places, blocks, cluster, rate),                                                       \
   .any_parts = true, .of_groups = WS_IS_OF_GROUPS(t##_tf32w##slices##_##bm##x##bn##_g##groups)},
#define WS_CUDA_TF32W_STAYS(t, slices, bm, bn, stages, places, blocks, rate)                                                    \
  {WS_TF32W_MEMBERS(#t "gemm_tf32w" #slices "_" #bm "x" #bn "_g1_k1_stays", WS_TF32W_STAYS_BYTES, t, slices, bm, bn, 1, stages, \
                    places, blocks, 1, rate),                                                                                   \
   .stays = true},
#define WS_CUDA_TF32M_ROW(t, slices, bm, bn, stages, turned_stages, places, blocks, cluster, rate)                             \
  {WS_ROW_MEMBERS(#t "gemm_tf32m" #slices "_" #bm "x" #bn "_g1_k" #cluster, "tf32m" #slices, t, bm, bn, WS_TF32_BK(1), stages, \
                  WS_TF32M_THREADS(slices, bm), WS_TF32M_SHARED_BYTES(slices, bm, bn, stages, turned_stages, places), blocks,  \
                  rate),                                                                                                       \
   .kind = WS_ROW_TF32,                                                                                                        \
   .n_slices = slices,                                                                                                         \
   .takes_maps = true,                                                                                                         \
   .any_parts = true,                                                                                                          \
   WS_PARTS_MEMBERS(cluster, 1)},
/* Threads, shared memory: what a block has at most. */
#define WS_CUDA_SMALL_ROW(t, owner, bm, bn, blocks, rate)                                                                        \
  {WS_ROW_MEMBERS(#t "gemm_small_" #bm "x" #bn, "small", t, bm, bn, 1, WS_SMALL_STAGES, WS_SMALL_THREADS, WS_SMALL_SHARED_BYTES, \
                  blocks, rate),                                                                                                 \
   .kind = WS_ROW_SMALL, .is_fma = WS_SMALL_IS_FMA_##owner, .of_groups = true, WS_PARTS_MEMBERS(1, 1)},
#include "cuda/rows/vec.def" /* first, with the tiled rows: tests count on it */

#include "cuda/rows/kernels.def"

#include "cuda/rows/flat.def"
#include "cuda/rows/small.def"

#include "cuda/rows/dmma.def"
#include "cuda/rows/ffma.def"
#include "cuda/rows/outer.def"
#include "cuda/rows/tf32.def"
#include "cuda/rows/tf32m.def"
#include "cuda/rows/tf32w.def"
#undef WS_CUDA_ROW
#undef WS_CUDA_WGMMA_ROW
#undef WS_CUDA_SLICED_ROW
#undef WS_CUDA_DIRECT_ROW
#undef WS_CUDA_FLAT_ROW
#undef WS_CUDA_SMALL_ROW
#undef WS_CUDA_DMMA_ROW
#undef WS_CUDA_FFMA_ROW
#undef WS_CUDA_OUTER_ROW
#undef WS_CUDA_TF32_ROW
#undef WS_CUDA_TF32W_ROW
#undef WS_CUDA_TF32W_STAYS
#undef WS_CUDA_TF32M_ROW
#undef WS_TF32W_MEMBERS
#undef WS_WGMMA_BYTES_OF
#undef WS_PARTS_MEMBERS
#undef WS_ROW_MEMBERS
};
enum { WS_N_CUDA_ROWS = sizeof ws_cuda_rows / sizeof ws_cuda_rows[0] };
_Static_assert((int)WS_N_CUDA_ROWS <= (int)WS_MOST_ROWS, "a forced row fits its bits");
#endif
