/* rows.h - the rows of kernels.def as C sees them: what the backend must know of a kernel to choose and launch it. The formulas for
 * threads and shared memory are those of config.cuh. */
#ifndef WS_CUDA_ROWS_H
#define WS_CUDA_ROWS_H

/* Threads that own one tm x tn part of a tile, and by how many elements a row of k is longer in shared memory than its tile. */
#define WS_OWNER_simt 1
#define WS_OWNER_mma 32
#define WS_OWNER_vec 8
#define WS_PAD_simt(unit) 4
#define WS_PAD_mma(unit) (4 / (unit))
#define WS_PAD_vec(unit) 4

#define WS_ROW_THREADS(mainloop, bm, bn, tm, tn) ((bm) / (tm) * ((bn) / (tn)) * WS_OWNER_##mainloop)
#define WS_ROW_SHARED_BYTES(mainloop, unit, element_bytes, bm, bn, bk, coarse, stages) \
  ((stages) * (bk) * ((bm) + (bn) * (coarse) + 2 * WS_PAD_##mainloop(unit)) * (element_bytes))
/* What a split product needs besides, if it has no memory for its partial sums. */
#define WS_ROW_TOTAL_BYTES(element_bytes, bm, bn, coarse) ((bm) * (bn) * (coarse) * (element_bytes))
#endif
