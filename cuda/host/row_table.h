/* row_table.h - the rows of kernels.def, vec.def, flat.def, dmma.def, ffma.def, outer.def and tf32.def as the host sees them, for device.c and for the tests of
 * the host side, which do not see into the library. */
#ifndef WS_CUDA_ROW_TABLE_H
#define WS_CUDA_ROW_TABLE_H
#include "cuda/host/device.h"
#include "cuda/rows/dmma_rows.h"
#include "cuda/rows/ffma_rows.h"
#include "cuda/rows/flat_rows.h"
#include "cuda/rows/outer_rows.h"
#include "cuda/rows/rows.h"
#include "cuda/rows/tf32_rows.h"

static const ws_cuda_row ws_cuda_rows[] = {
#define WS_CUDA_ROW(t, mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate) \
  {#t "gemm_" #mainloop "_" #bm "x" #bn "x" #bk "_c" #coarse,                              \
   #mainloop,                                                                              \
   WS_TYPE_##t,                                                                            \
   bm,                                                                                     \
   bn,                                                                                     \
   bk,                                                                                     \
   coarse,                                                                                 \
   stages,                                                                                 \
   WS_ROW_THREADS(mainloop, bm, bn, tm, tn),                                               \
   WS_ROW_SHARED_BYTES(mainloop, WS_ROW_ELEMENT_BYTES_##t, bm, bn, bk, coarse, stages),    \
   blocks,                                                                                 \
   WS_ROW_TOTAL_BYTES(WS_ROW_SUM_BYTES_##t, bm, bn, coarse),                               \
   #mainloop[0] == 'v' ? WS_ROW_VECTOR : WS_ROW_TILED,                                     \
   WS_IS_FMA_##mainloop,                                                                   \
   1,                                                                                      \
   splits,                                                                                 \
   0,                                                                                      \
   1,                                                                                      \
   1,                                                                                      \
   0,                                                                                      \
   0,                                                                                      \
   1,                                                                                      \
   0,                                                                                      \
   0,                                                                                      \
   rate,                                                                                   \
   0},
#define WS_CUDA_WGMMA_ROW(t, bm, bn, coarse, consumers, ping_pong, stages, cluster, rate)                                     \
  {#t "gemm_wgmma_" #bm "x" #bn "x64_c" #coarse "_" #cluster,                                                                 \
   "wgmma",                                                                                                                   \
   WS_TYPE_##t,                                                                                                               \
   bm,                                                                                                                        \
   bn,                                                                                                                        \
   WS_WGMMA_BK,                                                                                                               \
   coarse,                                                                                                                    \
   stages,                                                                                                                    \
   WS_WGMMA_ROW_THREADS(consumers, WS_WGMMA_ONCE_##cluster),                                                                  \
   WS_WGMMA_SHARED_BYTES(bm, bn, coarse, consumers, ping_pong, stages, WS_WGMMA_CLUSTER_SPLITS_##cluster,                     \
                         WS_WGMMA_ONCE_##cluster),                                                                            \
   WS_WGMMA_ROW_BLOCKS(WS_WGMMA_SHARED_BYTES(bm, bn, coarse, consumers, ping_pong, stages, WS_WGMMA_CLUSTER_SPLITS_##cluster, \
                                             WS_WGMMA_ONCE_##cluster)),                                                       \
   0,                                                                                                                         \
   WS_ROW_WGMMA,                                                                                                              \
   0,                                                                                                                         \
   WS_WGMMA_BLOCKS_##cluster,                                                                                                 \
   0,                                                                                                                         \
   WS_WGMMA_IS_PLAIN(bm, (bn) * (coarse), consumers, ping_pong),                                                              \
   WS_WGMMA_CLUSTER_SPLITS_##cluster,                                                                                         \
   WS_WGMMA_CLUSTER_M_##cluster,                                                                                              \
   ping_pong,                                                                                                                 \
   0,                                                                                                                         \
   1,                                                                                                                         \
   WS_WGMMA_ONCE_##cluster,                                                                                                   \
   0,                                                                                                                         \
   rate,                                                                                                                      \
   0},
#define WS_CUDA_SLICED_ROW(t, product, bm, bn, bk, coarse, consumers, stages, cluster, rate) \
  {#t "gemm_" #product "_" #bm "x" #bn "x" #bk "_c" #coarse "_" #cluster,                    \
   #product,                                                                                 \
   WS_TYPE_##t,                                                                              \
   bm,                                                                                       \
   bn,                                                                                       \
   bk,                                                                                       \
   coarse,                                                                                   \
   stages,                                                                                   \
   WS_WGMMA_THREADS(consumers),                                                              \
   WS_SLICED_SHARED_BYTES(WS_SLICES_##product, (bm)*WS_SLICED_UNIT_##t, bn, coarse, stages), \
   1,                                                                                        \
   0,                                                                                        \
   WS_ROW_SLICED,                                                                            \
   0,                                                                                        \
   WS_WGMMA_BLOCKS_##cluster,                                                                \
   0,                                                                                        \
   0,                                                                                        \
   1,                                                                                        \
   1,                                                                                        \
   0,                                                                                        \
   WS_SLICES_##product,                                                                      \
   1,                                                                                        \
   0,                                                                                        \
   0,                                                                                        \
   rate,                                                                                     \
   0},
/* Of gemm_direct.cuh: direct and flat ones. */
#define WS_CUDA_MMA_SYNC_ROW(name, family, t, bm, bn, bk, stages, threads, shared_bytes, k_groups, blocks, cluster, is_flat, \
                             rate)                                                                                           \
  {name,    family, WS_TYPE_##t, bm,      bn, bk, 1, stages,   threads, shared_bytes, blocks, 0, WS_ROW_DIRECT, 0,           \
   cluster, 0,      0,           cluster, 1,  0,  0, k_groups, 0,       is_flat,      rate,   0},
#define WS_CUDA_DIRECT_ROW(t, bm, bn, tm, tn, k_groups, stages, blocks, cluster, rate)                                           \
  WS_CUDA_MMA_SYNC_ROW(#t "gemm_direct_" #bm "x" #bn "x16_g" #k_groups "_k" #cluster, "direct", t, bm, bn, WS_DIRECT_BK, stages, \
                       WS_DIRECT_THREADS(bm, bn, tm, tn, k_groups), WS_DIRECT_SHARED_BYTES(bm, bn, k_groups, stages), k_groups,  \
                       blocks, cluster, 0, rate)
#define WS_CUDA_FLAT_ROW(t, bm, bn, k_groups, steps, blocks, cluster, rate)                                               \
  WS_CUDA_MMA_SYNC_ROW(#t "gemm_flat_" #bm "x" #bn "_s" #steps "_g" #k_groups "_k" #cluster, "flat", t, bm, bn,           \
                       WS_FLAT_BK(steps), 0, WS_FLAT_THREADS(k_groups), WS_FLAT_SHARED_BYTES(bm, bn, k_groups), k_groups, \
                       blocks, cluster, 1, rate)
/* Of gemm_dmma.cuh, gemm_ffma.cuh and gemm_outer.cuh. */
#define WS_CUDA_PARTS_ROW(name, family, t, bm, bn, bk, threads, shared_bytes, k_groups, stages, blocks, cluster, stays, rate) \
  {name, family, WS_TYPE_##t, bm, bn, bk, 1,        stages, threads, shared_bytes, blocks, 0, WS_ROW_DMMA, 1, cluster,        \
   0,    0,      cluster,     1,  0,  0,  k_groups, 0,      0,       rate,         stays},
#define WS_CUDA_DMMA_ROW(t, bm, bn, wp, wq, k_groups, stages, blocks, cluster, rate)                                             \
  WS_CUDA_PARTS_ROW(#t "gemm_dmma_" #bm "x" #bn "_g" #k_groups "_k" #cluster, "dmma", t, bm, bn, WS_DMMA_BK(WS_DMMA_UNIT_##t),   \
                    WS_DMMA_THREADS(bm, bn, wp, wq, k_groups), WS_DMMA_SHARED_BYTES(WS_DMMA_UNIT_##t, bm, bn, k_groups, stages), \
                    k_groups, stages, blocks, cluster, 0, rate)
#define WS_CUDA_FFMA_ROW(t, bm, bn, wm, wn, k_groups, stages, blocks, cluster, rate)                                             \
  WS_CUDA_PARTS_ROW(#t "gemm_ffma_" #bm "x" #bn "_g" #k_groups "_k" #cluster, "ffma", t, bm, bn, WS_FFMA_BK,                     \
                    WS_DMMA_THREADS(bm, bn, wm, wn, k_groups), WS_FFMA_SHARED_BYTES(bm, bn, k_groups, stages), k_groups, stages, \
                    blocks, cluster, 0, rate)
#define WS_CUDA_OUTER_ROW(t, bm, bn, lanes, tm, tn, warps, stages, blocks, rate)                            \
  WS_CUDA_PARTS_ROW(#t "gemm_outer_" #bm "x" #bn, "outer", t, bm, bn, WS_OUTER_BK, WS_OUTER_THREADS(warps), \
                    WS_OUTER_SHARED_BYTES(WS_OUTER_UNIT_##t, bm, bn, stages), 1, stages, blocks, 1, 1, rate)
#define WS_CUDA_TF32_ROW(t, slices, bm, bn, wm, wn, k_groups, stages, blocks, cluster, rate) \
  {#t "gemm_tf32x" #slices "_" #bm "x" #bn "_g" #k_groups "_k" #cluster,                     \
   "tf32x" #slices,                                                                          \
   WS_TYPE_##t,                                                                              \
   bm,                                                                                       \
   bn,                                                                                       \
   WS_TF32_BK(WS_TF32_UNIT_##t),                                                             \
   1,                                                                                        \
   stages,                                                                                   \
   WS_TF32_THREADS(bm, bn, wm, wn, k_groups),                                                \
   WS_TF32_SHARED_BYTES(WS_TF32_UNIT_##t, bm, bn, k_groups, stages),                         \
   blocks,                                                                                   \
   0,                                                                                        \
   WS_ROW_TF32,                                                                              \
   0,                                                                                        \
   cluster,                                                                                  \
   0,                                                                                        \
   0,                                                                                        \
   cluster,                                                                                  \
   1,                                                                                        \
   0,                                                                                        \
   slices,                                                                                   \
   k_groups,                                                                                 \
   0,                                                                                        \
   0,                                                                                        \
   rate,                                                                                     \
   0},
#include "cuda/rows/vec.def" /* first, with the tiled rows: tests count on it */

#include "cuda/rows/kernels.def"

#include "cuda/rows/flat.def"

#include "cuda/rows/dmma.def"
#include "cuda/rows/ffma.def"
#include "cuda/rows/outer.def"
#include "cuda/rows/tf32.def"
#undef WS_CUDA_ROW
#undef WS_CUDA_WGMMA_ROW
#undef WS_CUDA_SLICED_ROW
#undef WS_CUDA_DIRECT_ROW
#undef WS_CUDA_FLAT_ROW
#undef WS_CUDA_DMMA_ROW
#undef WS_CUDA_FFMA_ROW
#undef WS_CUDA_OUTER_ROW
#undef WS_CUDA_PARTS_ROW
#undef WS_CUDA_TF32_ROW
#undef WS_CUDA_MMA_SYNC_ROW
};
enum { WS_N_CUDA_ROWS = sizeof ws_cuda_rows / sizeof ws_cuda_rows[0] };
_Static_assert((int)WS_N_CUDA_ROWS <= (int)WS_MOST_ROWS, "a forced row fits its bits");
#endif
