/* types.h - element types by letter, as the entry points' macros need them, and cuBLAS's enumerators
 * as wsgemm's: those that wsgemm does not have make a call bad, which is cuBLAS's then. */
#ifndef WS_CUBLAS_TYPES_H
#define WS_CUBLAS_TYPES_H

#include "cublas/cublas.h"

#define ELEMENT_s float
#define ELEMENT_d double
#define ELEMENT_c cuComplex
#define ELEMENT_z cuDoubleComplex
#define REAL_c float
#define REAL_z double
#define TYPE_s WSGEMM_F32
#define TYPE_d WSGEMM_F64
#define TYPE_c WSGEMM_C32
#define TYPE_z WSGEMM_C64
#define TYPE_OF_REAL_c WSGEMM_F32
#define TYPE_OF_REAL_z WSGEMM_F64

static inline wsgemm_op op_of(cublasOperation_t op, bool *is_bad) {
  if (op != CUBLAS_OP_N && op != CUBLAS_OP_T && op != CUBLAS_OP_C) *is_bad = true;
  return op == CUBLAS_OP_N ? WSGEMM_NO_TRANS : op == CUBLAS_OP_T ? WSGEMM_TRANS : WSGEMM_CONJ_TRANS;
}
static inline wsgemm_uplo uplo_of(cublasFillMode_t uplo, bool *is_bad) {
  if (uplo != CUBLAS_FILL_MODE_UPPER && uplo != CUBLAS_FILL_MODE_LOWER) *is_bad = true;
  return uplo == CUBLAS_FILL_MODE_UPPER ? WSGEMM_UPPER : WSGEMM_LOWER;
}
static inline wsgemm_side side_of(cublasSideMode_t side, bool *is_bad) {
  if (side != CUBLAS_SIDE_LEFT && side != CUBLAS_SIDE_RIGHT) *is_bad = true;
  return side == CUBLAS_SIDE_LEFT ? WSGEMM_LEFT : WSGEMM_RIGHT;
}
static inline wsgemm_diag diag_of(cublasDiagType_t diag, bool *is_bad) {
  if (diag != CUBLAS_DIAG_UNIT && diag != CUBLAS_DIAG_NON_UNIT) *is_bad = true;
  return diag == CUBLAS_DIAG_UNIT ? WSGEMM_UNIT : WSGEMM_NON_UNIT;
}

/* Types of A, B, C and the arithmetic between them; false: wsgemm has no such product. */
static inline bool set_types(ws_cublas_call *call, cudaDataType a, cudaDataType b, cudaDataType c, cublasComputeType_t compute) {
  static const struct {
    cudaDataType_t ab, c;
    wsgemm_type type, type_c, scalar;
    cublasComputeType_t least, most; /* of the type's compute types: default and pedantic */
  } products[] = {
      {CUDA_R_32F, CUDA_R_32F, WSGEMM_F32, WSGEMM_F32, WSGEMM_F32, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
      {CUDA_R_64F, CUDA_R_64F, WSGEMM_F64, WSGEMM_F64, WSGEMM_F64, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC},
      {CUDA_C_32F, CUDA_C_32F, WSGEMM_C32, WSGEMM_C32, WSGEMM_C32, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
      {CUDA_C_64F, CUDA_C_64F, WSGEMM_C64, WSGEMM_C64, WSGEMM_C64, CUBLAS_COMPUTE_64F, CUBLAS_COMPUTE_64F_PEDANTIC},
      {CUDA_R_16F, CUDA_R_16F, WSGEMM_F16, WSGEMM_F16, WSGEMM_F32, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
      {CUDA_R_16F, CUDA_R_32F, WSGEMM_F16, WSGEMM_F32, WSGEMM_F32, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
      {CUDA_R_16BF, CUDA_R_16BF, WSGEMM_BF16, WSGEMM_BF16, WSGEMM_F32, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
      {CUDA_R_16BF, CUDA_R_32F, WSGEMM_BF16, WSGEMM_F32, WSGEMM_F32, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_PEDANTIC},
  };
  for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
    if (products[i].ab != a || products[i].ab != b || products[i].c != c) continue;
    wsgemm_gemm_desc *const d = &call->desc.gemm;
    const bool is_single = products[i].type == WSGEMM_F32 || products[i].type == WSGEMM_C32;
    const bool is_tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 && is_single;
    if (compute != products[i].least && compute != products[i].most && !is_tf32) return false;
    d->type_a = d->type_b = products[i].type;
    d->type_c = products[i].type_c;
    d->type_scalar = call->type_alpha = call->type_beta = products[i].scalar;
    d->math = is_tf32 ? WSGEMM_MATH_TF32 : compute == products[i].most ? WSGEMM_MATH_PEDANTIC : WSGEMM_MATH_INHERIT;
    return true;
  }
  return false;
}

#endif
