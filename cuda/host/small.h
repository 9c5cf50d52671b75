/* small.h - batches of small products: how many matrices a block of gemm_small.cuh takes at a time, and how
 * they lie in its shared memory. */
#ifndef WS_CUDA_SMALL_H
#define WS_CUDA_SMALL_H
#include "core/problem.h"
#include "cuda/shared/small_args.h"

/* The largest m, n, k, and shared memory of a block. */
enum { WS_SMALL_MOST = 64, WS_SMALL_SHARED_BYTES = 160 << 10, WS_SMALL_MOST_THREADS = 256 };

typedef struct ws_small_shape {
  int n_threads, shared_bytes;
} ws_small_shape;

/* tm x tn: a tile, which belongs to so many threads (of a warp: by matrix instructions). most_threads: of a block, a multiple of 32. False: no such block has room for a matrix. */
bool ws_small_args_of(const ws_problem *p, int tm, int tn, int owner_threads, int most_threads, ws_small_args *args, ws_small_shape *shape);
#endif
