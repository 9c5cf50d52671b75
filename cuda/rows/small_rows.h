/* small_rows.h - the shape of the rows of small.def as C sees them. */
#ifndef WS_CUDA_SMALL_ROWS_H
#define WS_CUDA_SMALL_ROWS_H

/* The largest m, n and k; threads and shared memory that a block has at most. */
#define WS_SMALL_MOST 64
#define WS_SMALL_THREADS 256
#define WS_SMALL_STAGES 2
#define WS_SMALL_SHARED_BYTES (160 * 1024)
/* k of a step of matrix instructions. */
#define WS_SMALL_MMA_K 16
/* Threads that own a tile, and whether they multiply by multiply-adds. */
#define WS_SMALL_OWNER_thread 1
#define WS_SMALL_OWNER_warp 32
#define WS_SMALL_IS_FMA_thread 1
#define WS_SMALL_IS_FMA_warp 0
#endif
