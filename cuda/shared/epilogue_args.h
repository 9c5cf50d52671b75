/* epilogue_args.h - arguments of a kernel about C and the epilogue (wsgemm_epilogue in wsgemm.h),
 * as in the problem (src/core/problem.h). Shared by C and CUDA. */
#ifndef WS_CUDA_EPILOGUE_ARGS_H
#define WS_CUDA_EPILOGUE_ARGS_H
#include <stdint.h>

/* What C, or a bias, is beside A and B of 16 bits. */
typedef enum ws_half_c_type { WS_HALF_C_F32, WS_HALF_C_F16, WS_HALF_C_BF16 } ws_half_c_type;

/* Row i, column j of product b of the batch:
 *   bias(b * stride_bias + (bias_per_row ? i : j)), residual(b * stride_residual + i + j *
 *   ld_residual), which is of C's type */
typedef struct ws_epilogue_args {
  int32_t is_any; /* 0: there is no epilogue, and nothing else of this is looked at */
  int32_t activation, bias_per_row;
  int32_t type_bias;           /* ws_half_c_type, where C has one */
  const void *bias, *residual; /* NULL: none */
  int64_t stride_bias, ld_residual, stride_residual;
  double out_scale;
} ws_epilogue_args;

/* Sums of columns j of C over i, or (transposed) of rows i over j, to sums[b * stride_sums + j or
 * i]. */
typedef struct ws_column_sums_args {
  int64_t m, n, n_batch;
  const void *c;
  int64_t ldc, stride_c;
  void *sums; /* floats; doubles if C is of doubles */
  int64_t stride_sums;
  int32_t transposed;
  int32_t type_c; /* ws_half_c_type, where C has one */
} ws_column_sums_args;
#endif
