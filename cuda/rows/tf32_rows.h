/* tf32_rows.h - the shape of the rows of tf32.def as C sees them. */
#ifndef WS_CUDA_TF32_ROWS_H
#define WS_CUDA_TF32_ROWS_H

#define WS_TF32_PRODUCERS 128 /* threads that copy */
/* k of a stage, for each group of warps: a line of 128 bytes; of an instruction. */
#define WS_TF32_UNIT_s 1
#define WS_TF32_UNIT_c 2
#define WS_TF32_LINE 32 /* floats */
#define WS_TF32_BK(unit) (WS_TF32_LINE / (unit))
#define WS_TF32_STEP(unit) (8 / (unit))
#define WS_TF32_LEAST_K 24                   /* shorter sums have no proof (docs/numerics.md) */
#define WS_TF32W_LEAST_K(unit) (40 / (unit)) /* likewise, by wgmma of two slices */
#define WS_TF32_WARPS(bm, bn, wm, wn, k_groups) ((bm) * (bn) / ((wm) * (wn)) * (k_groups))
#define WS_TF32_THREADS(bm, bn, wm, wn, k_groups) (WS_TF32_WARPS(bm, bn, wm, wn, k_groups) * 32 + WS_TF32_PRODUCERS)
/* Floats of a line in shared memory, along k or along x: so that reads of a fragment meet all banks. */
#define WS_TF32_PITCH_K (WS_TF32_LINE + 4)
#define WS_TF32_PITCH_X(unit, x) ((x) * (unit) + 8 * (unit))
#define WS_TF32_LARGER(a, b) ((a) > (b) ? (a) : (b))
/* Room for either layout. */
#define WS_TF32_OPERAND_BYTES(unit, x) (4 * WS_TF32_LARGER((x)*WS_TF32_PITCH_K, WS_TF32_BK(unit) * WS_TF32_PITCH_X(unit, x)))
#define WS_TF32_STAGE_BYTES(unit, bm, bn, k_groups) \
  ((WS_TF32_OPERAND_BYTES(unit, bm) + WS_TF32_OPERAND_BYTES(unit, bn)) * (k_groups))
#define WS_TF32_SUM_PITCH(unit, bm) ((bm) * (unit) + 4)
#define WS_TF32_SUM_BYTES(unit, bm, bn, k_groups) (WS_TF32_SUM_PITCH(unit, bm) * (bn)*4 * (k_groups))
/* Barriers, a mark for each row and column, and one for all of them. */
#define WS_TF32_BARRIER_BYTES 256
#define WS_TF32_MARKS_BYTES(bm, bn) ((bm) + (bn) + 16)
#define WS_TF32_CONTROL_BYTES(bm, bn) (WS_TF32_BARRIER_BYTES + WS_TF32_MARKS_BYTES(bm, bn))
/* The sums take the place of the stages. */
#define WS_TF32_BODY_BYTES(unit, bm, bn, k_groups, stages) \
  WS_TF32_LARGER((stages)*WS_TF32_STAGE_BYTES(unit, bm, bn, k_groups), WS_TF32_SUM_BYTES(unit, bm, bn, k_groups))
#define WS_TF32_SHARED_BYTES(unit, bm, bn, k_groups, stages) \
  (WS_TF32_BODY_BYTES(unit, bm, bn, k_groups, stages) + WS_TF32_CONTROL_BYTES(bm, bn))

/* Rows by wgmma: consumers have 16 rows a warp, and B's slices stand before the stages, in places of their own: a line of k for
 * each column, of complex ones for each real part and each imaginary one of a column of C. */
#define WS_TF32_SPLITTERS 128
#define WS_TF32W_THREADS(bm, k_groups) ((bm)*2 * (k_groups) + WS_TF32_PRODUCERS + WS_TF32_SPLITTERS)
#define WS_TF32W_SLICE_BYTES(unit, bn) ((unit) * (bn)*WS_TF32_LINE * 4)
#define WS_TF32W_BODY_BYTES(unit, slices, bm, bn, k_groups, stages, places)           \
  WS_TF32_LARGER((stages)*WS_TF32_STAGE_BYTES(unit, bm, bn, k_groups) +               \
                     (places) * (k_groups) * (slices)*WS_TF32W_SLICE_BYTES(unit, bn), \
                 WS_TF32_SUM_BYTES(unit, bm, bn, k_groups))
#define WS_TF32W_SHARED_BYTES(unit, slices, bm, bn, k_groups, stages, places) \
  (WS_TF32W_BODY_BYTES(unit, slices, bm, bn, k_groups, stages, places) + WS_TF32_CONTROL_BYTES(bm, bn))

/* Rows by tensor maps: a line of 128 bytes of k for each row and column, swizzled, where TMA leaves it or (PLACES, of a B that is
 * contiguous along n) where splitters turn it. Of two slices a B along k has two lines: TMA's high slices, and its elements, in whose
 * places low slices follow. */
#define WS_TF32M_LINE_BYTES (WS_TF32_LINE * 4)
#define WS_TF32M_PRODUCERS 32 /* one of which asks for copies: with the splitters whole warpgroups */
#define WS_TF32M_SPLITTERS(slices, bm) ((slices) > 1 && (bm) > 64 ? 224 : 96) /* two warpgroups wait for their low slices */
#define WS_TF32M_THREADS(slices, bm) ((bm)*2 + WS_TF32M_PRODUCERS + WS_TF32M_SPLITTERS(slices, bm))
#define WS_TF32M_STAGE_LINES(slices, bm, bn, b_k) ((bm) + (bn) * ((b_k) ? (slices) : 1))
#define WS_TF32M_BODY_BYTES(slices, bm, bn, b_k, stages, places)                                                          \
  WS_TF32_LARGER(((stages)*WS_TF32M_STAGE_LINES(slices, bm, bn, b_k) + (places) * (slices) * (bn)) * WS_TF32M_LINE_BYTES, \
                 WS_TF32_SUM_BYTES(1, bm, bn, 1))
/* Of either layout of B. */
#define WS_TF32M_SHARED_BYTES(slices, bm, bn, stages, turned_stages, places)       \
  (WS_TF32_LARGER(WS_TF32M_BODY_BYTES(slices, bm, bn, 1, stages, 0),               \
                  WS_TF32M_BODY_BYTES(slices, bm, bn, 0, turned_stages, places)) + \
   WS_TF32_CONTROL_BYTES(bm, bn))

/* Rows whose blocks stay: of so many items there are places, and marks. */
#define WS_TF32_ITEMS 6
#define WS_TF32W_STAYS_BYTES(unit, slices, bm, bn, k_groups, stages, places) \
  (WS_TF32W_SHARED_BYTES(unit, slices, bm, bn, k_groups, stages, places) + (WS_TF32_ITEMS - 1) * WS_TF32_MARKS_BYTES(bm, bn))
#endif
