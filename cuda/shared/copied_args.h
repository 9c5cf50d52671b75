/* copied_args.h - arguments of the rows whose own warps copy their operands (dmma.def, ffma.def): a
 * product, and what only these rows know. Shared by C and CUDA. */
#ifndef WS_CUDA_COPIED_ARGS_H
#define WS_CUDA_COPIED_ARGS_H
#include "cuda/shared/kernel_args.h"

typedef struct ws_copied_args {
  ws_gemm_args gemm;
  /* Of the operand gemm.structured: what it is (ws_structure), and the triangle (ws_region) of op(A), or op(B), that is stored. */
  int32_t structure, stored;
  /* A B + B A in place of A B, where A and B lie alike: the k of the second product follow those of the first. */
  int32_t is_twice;
} ws_copied_args;
#endif
