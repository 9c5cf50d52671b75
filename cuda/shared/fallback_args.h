/* fallback_args.h - arguments of the kernel that computes the elements of C in rows and columns
 * that need FP32. Shared by C and CUDA. */
#ifndef WS_CUDA_FALLBACK_ARGS_H
#define WS_CUDA_FALLBACK_ARGS_H
#include "cuda/shared/kernel_args.h"
#include "cuda/shared/wgmma_args.h"

typedef struct ws_fallback_args {
  ws_gemm_args gemm; /* of the floats themselves; its scheduler is not looked at */
  ws_wgmma_scales scales;
  int32_t counts_a, counts_b; /* its marks have not been counted yet, for another chunk of C */
} ws_fallback_args;

/* Its tile, as those of the simt rows of kernels.def; an element of C takes a thread as many
 * registers as its type has parts, squared. */
#define WS_FALLBACK_BM 64
#define WS_FALLBACK_BN 64
#define WS_FALLBACK_BK 16
#define WS_FALLBACK_TM_s 8
#define WS_FALLBACK_TM_c 4
#define WS_FALLBACK_TN 4
#define WS_FALLBACK_STAGES_s 3
#define WS_FALLBACK_STAGES_c 2 /* all within 48 KiB of shared memory, which a kernel has without asking */
#endif
