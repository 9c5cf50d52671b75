/* tf32_rows.h - the shape of the rows of tf32.def as C sees them. */
#ifndef WS_CUDA_TF32_ROWS_H
#define WS_CUDA_TF32_ROWS_H

#define WS_TF32_PRODUCERS 128 /* threads that copy */
#define WS_TF32_BK 32         /* k of a stage, for each group of warps: 128 bytes */
#define WS_TF32_STEP 8        /* k of an instruction */
#define WS_TF32_LEAST_K 24    /* shorter sums have no proof (docs/numerics.md) */
#define WS_TF32_WARPS(bm, bn, wm, wn, k_groups) ((bm) * (bn) / ((wm) * (wn)) * (k_groups))
#define WS_TF32_THREADS(bm, bn, wm, wn, k_groups) (WS_TF32_WARPS(bm, bn, wm, wn, k_groups) * 32 + WS_TF32_PRODUCERS)
/* Floats of a line in shared memory, along k or along x: so that reads of a fragment meet all banks. */
#define WS_TF32_PITCH_K (WS_TF32_BK + 4)
#define WS_TF32_PITCH_X(x) ((x) + 8)
#define WS_TF32_LARGER(a, b) ((a) > (b) ? (a) : (b))
/* Room for either layout. */
#define WS_TF32_OPERAND_BYTES(x) (4 * WS_TF32_LARGER((x)*WS_TF32_PITCH_K, WS_TF32_BK *WS_TF32_PITCH_X(x)))
#define WS_TF32_STAGE_BYTES(bm, bn, k_groups) ((WS_TF32_OPERAND_BYTES(bm) + WS_TF32_OPERAND_BYTES(bn)) * (k_groups))
#define WS_TF32_SUM_PITCH(bm) ((bm) + 4)
#define WS_TF32_SUM_BYTES(bm, bn, k_groups) (WS_TF32_SUM_PITCH(bm) * (bn)*4 * (k_groups))
/* Barriers, and a mark for each row and column. */
#define WS_TF32_BARRIER_BYTES 256
#define WS_TF32_CONTROL_BYTES(bm, bn) (WS_TF32_BARRIER_BYTES + (bm) + (bn))
/* The sums take the place of the stages. */
#define WS_TF32_BODY_BYTES(bm, bn, k_groups, stages) \
  WS_TF32_LARGER((stages)*WS_TF32_STAGE_BYTES(bm, bn, k_groups), WS_TF32_SUM_BYTES(bm, bn, k_groups))
#define WS_TF32_SHARED_BYTES(bm, bn, k_groups, stages) \
  (WS_TF32_BODY_BYTES(bm, bn, k_groups, stages) + WS_TF32_CONTROL_BYTES(bm, bn))
#endif
