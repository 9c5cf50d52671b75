/* ffma_rows.h - the shape of the rows of ffma.def as C sees them. */
#ifndef WS_CUDA_FFMA_ROWS_H
#define WS_CUDA_FFMA_ROWS_H
#include "cuda/rows/dmma_rows.h"

/* k of a stage, for each group of warps: a line of floats. */
#define WS_FFMA_BK (WS_DMMA_LINE_BYTES / 4)
#define WS_FFMA_STAGE_BYTES(bm, bn, k_groups) (((bm) + (bn)) * WS_DMMA_LINE_BYTES * (k_groups))
/* Columns of sums begin where 16 bytes may be read, and neighbours in other banks. */
#define WS_FFMA_SUM_PITCH(bm) ((bm) + 4)
#define WS_FFMA_SUM_BYTES(bm, bn, k_groups) (WS_FFMA_SUM_PITCH(bm) * (bn)*4 * (k_groups))
/* The sums take the place of the stages. */
#define WS_FFMA_BODY_BYTES(bm, bn, k_groups, stages) \
  WS_DMMA_LARGER((stages)*WS_FFMA_STAGE_BYTES(bm, bn, k_groups), WS_FFMA_SUM_BYTES(bm, bn, k_groups))
#define WS_FFMA_SHARED_BYTES(bm, bn, k_groups, stages) (WS_FFMA_BODY_BYTES(bm, bn, k_groups, stages) + WS_DMMA_BARRIER_BYTES)
#endif
