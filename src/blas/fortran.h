/* fortran.h - the Fortran entry point of each family. fortran.c expands routines.def through these
 * macros once for each width of INT; ENTRY(name) makes the symbol, WAY says how it was called. */
#ifndef WS_BLAS_FORTRAN_H
#define WS_BLAS_FORTRAN_H

#include "blas/batch.h"
#include "blas/matcopy.h"
#include "blas/run.h"

#define SIZE const INT *

#define FORTRAN_GEMM(name, scalar, element, result)                                                                      \
  WS_BLAS_EXPORT void ENTRY(name)(const char *transa, const char *transb, SIZE m, SIZE n, SIZE k, const scalar *alpha,   \
                                  const element *a, SIZE lda, const element *b, SIZE ldb, const scalar *beta, result *c, \
                                  SIZE ldc) {                                                                            \
    run_##name(WAY, op_of(*transa), op_of(*transb), *m, *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);               \
  }
#define FORTRAN_gemm(name, x) FORTRAN_GEMM(name, SCALAR_##x, ELEMENT_##x, ELEMENT_##x)
#define FORTRAN_half(name, x) FORTRAN_GEMM(name, float, ELEMENT_##x, float)
#define FORTRAN_bgemm(name, x) FORTRAN_GEMM(name, wsgemm_bf16, wsgemm_bf16, wsgemm_bf16)

#define FORTRAN_gemmtr(name, x)                                                                                            \
  WS_BLAS_EXPORT void ENTRY(name)(const char *uplo, const char *transa, const char *transb, SIZE n, SIZE k,                \
                                  const SCALAR_##x *alpha, const ELEMENT_##x *a, SIZE lda, const ELEMENT_##x *b, SIZE ldb, \
                                  const SCALAR_##x *beta, ELEMENT_##x *c, SIZE ldc) {                                      \
    run_##name(WAY, uplo_of(*uplo), op_of(*transa), op_of(*transb), *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);     \
  }

#define FORTRAN_symm(name, x)                                                                                             \
  WS_BLAS_EXPORT void ENTRY(name)(const char *side, const char *uplo, SIZE m, SIZE n, const SCALAR_##x *alpha,            \
                                  const ELEMENT_##x *a, SIZE lda, const ELEMENT_##x *b, SIZE ldb, const SCALAR_##x *beta, \
                                  ELEMENT_##x *c, SIZE ldc) {                                                             \
    run_##name(WAY, side_of(*side), uplo_of(*uplo), *m, *n, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                    \
  }

#define FORTRAN_RANK_K(name, scalar, element)                                                                                 \
  WS_BLAS_EXPORT void ENTRY(name)(const char *uplo, const char *trans, SIZE n, SIZE k, const scalar *alpha, const element *a, \
                                  SIZE lda, const scalar *beta, element *c, SIZE ldc) {                                       \
    run_##name(WAY, uplo_of(*uplo), op_of(*trans), *n, *k, *alpha, a, *lda, *beta, c, *ldc);                                  \
  }
#define FORTRAN_syrk(name, x) FORTRAN_RANK_K(name, SCALAR_##x, ELEMENT_##x)
#define FORTRAN_herk(name, x) FORTRAN_RANK_K(name, REAL_##x, ELEMENT_##x)

#define FORTRAN_RANK_2K(name, alpha_type, beta_type, element)                                                                \
  WS_BLAS_EXPORT void ENTRY(name)(const char *uplo, const char *trans, SIZE n, SIZE k, const alpha_type *alpha,              \
                                  const element *a, SIZE lda, const element *b, SIZE ldb, const beta_type *beta, element *c, \
                                  SIZE ldc) {                                                                                \
    run_##name(WAY, uplo_of(*uplo), op_of(*trans), *n, *k, *alpha, a, *lda, b, *ldb, *beta, c, *ldc);                        \
  }
#define FORTRAN_syr2k(name, x) FORTRAN_RANK_2K(name, SCALAR_##x, SCALAR_##x, ELEMENT_##x)
#define FORTRAN_her2k(name, x) FORTRAN_RANK_2K(name, SCALAR_##x, REAL_##x, ELEMENT_##x)

#define FORTRAN_trmm(name, x)                                                                                               \
  WS_BLAS_EXPORT void ENTRY(name)(const char *side, const char *uplo, const char *transa, const char *diag, SIZE m, SIZE n, \
                                  const SCALAR_##x *alpha, const ELEMENT_##x *a, SIZE lda, ELEMENT_##x *b, SIZE ldb) {      \
    run_##name(WAY, side_of(*side), uplo_of(*uplo), op_of(*transa), diag_of(*diag), *m, *n, *alpha, a, *lda, b, *ldb);      \
  }

/* One value for each group, one pointer for each product. */
#define FORTRAN_batch(name, x)                                                                                                  \
  WS_BLAS_EXPORT void ENTRY(name)(const char *transa, const char *transb, SIZE m, SIZE n, SIZE k, const SCALAR_##x *alpha,      \
                                  const ELEMENT_##x *const *a, SIZE lda, const ELEMENT_##x *const *b, SIZE ldb,                 \
                                  const SCALAR_##x *beta, ELEMENT_##x *const *c, SIZE ldc, SIZE group_count, SIZE group_size) { \
    RUN_GROUPS(name, x, WSGEMM_COL_MAJOR, op_of, alpha[i], beta[i], *group_count)                                               \
  }

#define FORTRAN_strided(name, x)                                                                                                \
  WS_BLAS_EXPORT void ENTRY(name)(const char *transa, const char *transb, SIZE m, SIZE n, SIZE k, const SCALAR_##x *alpha,      \
                                  const ELEMENT_##x *a, SIZE lda, SIZE stride_a, const ELEMENT_##x *b, SIZE ldb, SIZE stride_b, \
                                  const SCALAR_##x *beta, ELEMENT_##x *c, SIZE ldc, SIZE stride_c, SIZE batch_count) {          \
    RUN_STRIDED(name, x, WSGEMM_COL_MAJOR, op_of(*transa), op_of(*transb), *m, *n, *k, *alpha, a, *lda, *stride_a, b, *ldb,     \
                *stride_b, *beta, c, *ldc, *stride_c, *batch_count)                                                             \
  }

#define FORTRAN_omatcopy(name, x)                                                                                      \
  WS_BLAS_EXPORT void ENTRY(name)(const char *order, const char *trans, SIZE rows, SIZE cols, const SCALAR_##x *alpha, \
                                  const ELEMENT_##x *a, SIZE lda, ELEMENT_##x *b, SIZE ldb) {                          \
    const ws_blas_matcopy copy = {copy_layout_of(*order), copy_op_of(*trans), *rows, *cols, a, *lda, b, *ldb};         \
    ws_blas_omatcopy((ws_blas_caller){WS_BLAS_##name, WAY}, TYPE_##x, alpha, &copy);                                   \
  }

#define FORTRAN_imatcopy(name, x)                                                                                      \
  WS_BLAS_EXPORT void ENTRY(name)(const char *order, const char *trans, SIZE rows, SIZE cols, const SCALAR_##x *alpha, \
                                  ELEMENT_##x *a, SIZE lda, SIZE ldb) {                                                \
    const ws_blas_matcopy copy = {copy_layout_of(*order), copy_op_of(*trans), *rows, *cols, a, *lda, a, *ldb};         \
    ws_blas_imatcopy((ws_blas_caller){WS_BLAS_##name, WAY}, TYPE_##x, alpha, &copy);                                   \
  }

#endif
