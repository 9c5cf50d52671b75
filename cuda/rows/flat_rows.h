/* flat_rows.h - the shape of the rows of flat.def as C sees them. */
#ifndef WS_CUDA_FLAT_ROWS_H
#define WS_CUDA_FLAT_ROWS_H

/* k that the registers of a warp hold of each operand, at a time. */
#define WS_FLAT_STEP 64
#define WS_FLAT_BK(steps) (WS_FLAT_STEP * (steps))
#define WS_FLAT_THREADS(k_groups) (32 * (k_groups))
/* The groups' sums, in columns of BM floats and 8 more. */
#define WS_FLAT_SHARED_BYTES(bm, bn, k_groups) ((k_groups) * (bn) * ((bm) + 8) * 4)
#endif
