/* wgmma_args.h - what a kernel on Hopper's matrix units is told at its launch. Shared by C and CUDA; one constant parameter. */
#ifndef WS_CUDA_WGMMA_ARGS_H
#define WS_CUDA_WGMMA_ARGS_H
#include <cuda.h>
#include <stdint.h>

#include "sched.h"
#include "tile.h"

/* The tensor maps are of 3 dimensions: the contiguous one, the other one, the products of the batch; boxes of 64 elements (128 bytes,
 * swizzled) of the first. */
typedef struct ws_wgmma_args {
  CUtensorMap a, b, c; /* c: not looked at if !c_by_map */
  ws_sched_args sched;
  ws_tile_grid grid;
  int64_t m, n, k;
  void *c_data;
  int64_t ldc, stride_c;
  float alpha, beta;
  int32_t a_k, b_k; /* contiguous along k */
  int32_t c_by_map; /* C may be stored by its map: 16-byte aligned */
} ws_wgmma_args;
#endif
