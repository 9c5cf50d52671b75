/* marked_args.h - what the kernel is told that computes the elements of C in unfit rows and columns. Shared by C and CUDA. */
#ifndef WS_CUDA_MARKED_ARGS_H
#define WS_CUDA_MARKED_ARGS_H
#include "kernel_args.h"
#include "wgmma_args.h"

typedef struct ws_marked_args {
  ws_gemm_args gemm; /* of the floats themselves; its scheduler is not looked at */
  ws_wgmma_scales scales;
  int32_t counts_a, counts_b; /* its marks have not been counted for another piece of C */
} ws_marked_args;

/* Its tile, as those of the simt rows of kernels.def. */
#define WS_MARKED_BM 64
#define WS_MARKED_BN 64
#define WS_MARKED_BK 16
#define WS_MARKED_TM 8
#define WS_MARKED_TN 4
#define WS_MARKED_STAGES 3
#endif
