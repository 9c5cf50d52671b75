/* dmma_rows.h - the shape of the rows of dmma.def as C sees them. */
#ifndef WS_CUDA_DMMA_ROWS_H
#define WS_CUDA_DMMA_ROWS_H

#define WS_DMMA_PRODUCERS 128 /* threads that copy */
#define WS_DMMA_LINE_BYTES 128
/* k of a stage, for each group of warps: a line of doubles, or of complex numbers. */
#define WS_DMMA_UNIT_d 1
#define WS_DMMA_UNIT_z 2
#define WS_DMMA_BK(unit) (WS_DMMA_LINE_BYTES / 8 / (unit))
#define WS_DMMA_WARPS(bm, bn, wp, wq, k_groups) ((bm) * (bn) / ((wp) * (wq)) * (k_groups))
#define WS_DMMA_THREADS(bm, bn, wp, wq, k_groups) (WS_DMMA_WARPS(bm, bn, wp, wq, k_groups) * 32 + WS_DMMA_PRODUCERS)
#define WS_DMMA_STAGE_BYTES(bm, bn, k_groups) (((bm) + (bn)) * WS_DMMA_LINE_BYTES * (k_groups))
/* A column of the sums of a tile is longer by so many elements that neighbours are in other banks. */
#define WS_DMMA_SUM_PITCH(unit, bm) ((bm) + 2 / (unit))
#define WS_DMMA_SUM_BYTES(unit, bm, bn, k_groups) (WS_DMMA_SUM_PITCH(unit, bm) * (bn)*8 * (unit) * (k_groups))
#define WS_DMMA_BARRIER_BYTES 256
#define WS_DMMA_LARGER(a, b) ((a) > (b) ? (a) : (b))
/* The sums take the place of the stages. */
#define WS_DMMA_BODY_BYTES(unit, bm, bn, k_groups, stages) \
  WS_DMMA_LARGER((stages)*WS_DMMA_STAGE_BYTES(bm, bn, k_groups), WS_DMMA_SUM_BYTES(unit, bm, bn, k_groups))
#define WS_DMMA_SHARED_BYTES(unit, bm, bn, k_groups, stages) \
  (WS_DMMA_BODY_BYTES(unit, bm, bn, k_groups, stages) + WS_DMMA_BARRIER_BYTES)
#endif
