/* outer_rows.h - the shape of the rows of outer.def as C sees them. */
#ifndef WS_CUDA_OUTER_ROWS_H
#define WS_CUDA_OUTER_ROWS_H

/* Floats of an element; k of a stage. */
#define WS_OUTER_UNIT_s 1
#define WS_OUTER_UNIT_c 2
#define WS_OUTER_BK 16
#define WS_OUTER_BM(tm) (32 * (tm))
#define WS_OUTER_BN(tn, warps) ((tn) * (warps))
#define WS_OUTER_THREADS(warps) (32 * (warps))
/* Room for either layout; a k-contiguous A has lines of an odd number of elements. */
#define WS_OUTER_A_BYTES(unit, bm) (4 * (unit) * (bm) * (WS_OUTER_BK + 1))
#define WS_OUTER_B_BYTES(unit, bn) (4 * (unit) * (bn)*WS_OUTER_BK)
#define WS_OUTER_STAGE_BYTES(unit, bm, bn) (WS_OUTER_A_BYTES(unit, bm) + WS_OUTER_B_BYTES(unit, bn))
#define WS_OUTER_TURN_BYTES 16 /* what a stage is of; one more for what comes */
#define WS_OUTER_SHARED_BYTES(unit, bm, bn, stages) \
  ((stages) * (WS_OUTER_STAGE_BYTES(unit, bm, bn) + WS_OUTER_TURN_BYTES) + WS_OUTER_TURN_BYTES)
#endif
