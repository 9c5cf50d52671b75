/* outer_rows.h - the shape of the rows of outer.def as C sees them. */
#ifndef WS_CUDA_OUTER_ROWS_H
#define WS_CUDA_OUTER_ROWS_H

/* Floats of an element; k of a stage. */
#define WS_OUTER_UNIT_s 1
#define WS_OUTER_UNIT_c 2
#define WS_OUTER_BK 16
#define WS_OUTER_BM(lanes, tm) ((lanes) * (tm))
#define WS_OUTER_BN(lanes, tn, warps) (32 / (lanes) * (tn) * (warps))
#define WS_OUTER_THREADS(warps) (32 * (warps))
/* Floats of a line, of all x of one k: so that elements of neighbouring k meet few of the same banks. */
#define WS_OUTER_LINE(unit, x) ((unit) * (x) + 4)
#define WS_OUTER_OPERAND_BYTES(unit, x) (4 * WS_OUTER_BK * WS_OUTER_LINE(unit, x))
#define WS_OUTER_STAGE_BYTES(unit, bm, bn) (WS_OUTER_OPERAND_BYTES(unit, bm) + WS_OUTER_OPERAND_BYTES(unit, bn))
#define WS_OUTER_TURN_BYTES 16 /* what a stage is of; one more for what comes */
/* Behind the last line of B another one is read, and not used. */
#define WS_OUTER_SHARED_BYTES(unit, bm, bn, stages) \
  ((stages) * (WS_OUTER_STAGE_BYTES(unit, bm, bn) + WS_OUTER_TURN_BYTES) + WS_OUTER_TURN_BYTES + 4 * WS_OUTER_LINE(unit, bn))
#endif
