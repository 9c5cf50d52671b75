/* cblas.h - the CBLAS entry point of each family. cblas.c expands routines.def through these macros
 * once for each width of INT.
 *
 * Row-major C = A B is column-major C^T = B^T A^T: operands, sizes, sides and triangles change places
 * here, before sizes and lds are checked, so that those are reported in the order and with the
 * numbers of the reference CBLAS. */
#ifndef WS_BLAS_CBLAS_H
#define WS_BLAS_CBLAS_H

#include "blas/batch.h"
#include "blas/matcopy.h"
#include "blas/run.h"

WS_BLAS_INLINE bool known_op(wsgemm_op op) { return (unsigned)op - WSGEMM_NO_TRANS <= WSGEMM_CONJ_NO_TRANS - WSGEMM_NO_TRANS; }
WS_BLAS_INLINE bool known_uplo(wsgemm_uplo uplo) { return uplo == WSGEMM_UPPER || uplo == WSGEMM_LOWER; }
WS_BLAS_INLINE bool known_side(wsgemm_side side) { return side == WSGEMM_LEFT || side == WSGEMM_RIGHT; }
WS_BLAS_INLINE bool known_diag(wsgemm_diag diag) { return diag == WSGEMM_NON_UNIT || diag == WSGEMM_UNIT; }
WS_BLAS_INLINE wsgemm_uplo other_uplo(wsgemm_uplo uplo) { return uplo == WSGEMM_UPPER ? WSGEMM_LOWER : WSGEMM_UPPER; }
WS_BLAS_INLINE wsgemm_side other_side(wsgemm_side side) { return side == WSGEMM_LEFT ? WSGEMM_RIGHT : WSGEMM_LEFT; }
/* Of a rank k update: with `full` as the transposition that its kind has. */
WS_BLAS_INLINE wsgemm_op other_op(wsgemm_op trans, wsgemm_op full) { return trans == WSGEMM_NO_TRANS ? full : WSGEMM_NO_TRANS; }

#define CALLER(name) ((ws_blas_caller){WS_BLAS_##name, (layout == WSGEMM_ROW_MAJOR ? WS_ROW_MAJOR : WS_COL_MAJOR) | WIDTH})
/* Refuses a bad layout, then bad enumerators: `number` is the argument's in Fortran. */
#define NEED_LAYOUT(name)                                         \
  if (layout != WSGEMM_ROW_MAJOR && layout != WSGEMM_COL_MAJOR) { \
    ws_blas_bad(CALLER(name), 0);                                 \
    return;                                                       \
  }
#define NEED(name, is_good, number)    \
  if (!(is_good)) {                    \
    ws_blas_bad(CALLER(name), number); \
    return;                            \
  }
#define ROW (WS_ROW_MAJOR | WIDTH)
#define COL (WS_COL_MAJOR | WIDTH)

#define CBLAS_GEMM(name, value, load, element, result)                                                                        \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, INT m, INT n, INT k, value alpha, \
                                  const element *a, INT lda, const element *b, INT ldb, value beta, result *c, INT ldc) {     \
    NEED_LAYOUT(name)                                                                                                         \
    NEED(name, known_op(transa), 1)                                                                                           \
    NEED(name, known_op(transb), 2)                                                                                           \
    if (layout == WSGEMM_ROW_MAJOR)                                                                                           \
      run_##name(ROW, transb, transa, n, m, k, load(alpha), b, ldb, a, lda, load(beta), c, ldc);                              \
    else                                                                                                                      \
      run_##name(COL, transa, transb, m, n, k, load(alpha), a, lda, b, ldb, load(beta), c, ldc);                              \
  }
#define CBLAS_gemm(name, x) CBLAS_GEMM(name, VALUE_##x, LOAD_##x, ELEMENT_##x, ELEMENT_##x)
#define CBLAS_half(name, x) CBLAS_GEMM(name, float, LOAD_s, ELEMENT_##x, float)
#define CBLAS_bgemm(name, x) CBLAS_GEMM(name, wsgemm_bf16, LOAD_s, wsgemm_bf16, wsgemm_bf16)

#define CBLAS_gemmtr(name, x)                                                                                                    \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op transa, wsgemm_op transb, INT n, INT k,      \
                                  VALUE_##x alpha, const ELEMENT_##x *a, INT lda, const ELEMENT_##x *b, INT ldb, VALUE_##x beta, \
                                  ELEMENT_##x *c, INT ldc) {                                                                     \
    NEED_LAYOUT(name)                                                                                                            \
    NEED(name, known_uplo(uplo), 1)                                                                                              \
    NEED(name, known_op(transa), 2)                                                                                              \
    NEED(name, known_op(transb), 3)                                                                                              \
    if (layout == WSGEMM_ROW_MAJOR)                                                                                              \
      run_##name(ROW, other_uplo(uplo), transb, transa, n, k, LOAD_##x(alpha), b, ldb, a, lda, LOAD_##x(beta), c, ldc);          \
    else                                                                                                                         \
      run_##name(COL, uplo, transa, transb, n, k, LOAD_##x(alpha), a, lda, b, ldb, LOAD_##x(beta), c, ldc);                      \
  }

#define CBLAS_symm(name, x)                                                                                                     \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, INT m, INT n, VALUE_##x alpha,      \
                                  const ELEMENT_##x *a, INT lda, const ELEMENT_##x *b, INT ldb, VALUE_##x beta, ELEMENT_##x *c, \
                                  INT ldc) {                                                                                    \
    NEED_LAYOUT(name)                                                                                                           \
    NEED(name, known_side(side), 1)                                                                                             \
    NEED(name, known_uplo(uplo), 2)                                                                                             \
    if (layout == WSGEMM_ROW_MAJOR)                                                                                             \
      run_##name(ROW, other_side(side), other_uplo(uplo), n, m, LOAD_##x(alpha), a, lda, b, ldb, LOAD_##x(beta), c, ldc);       \
    else                                                                                                                        \
      run_##name(COL, side, uplo, m, n, LOAD_##x(alpha), a, lda, b, ldb, LOAD_##x(beta), c, ldc);                               \
  }

#define CBLAS_RANK_K(name, value, load, element, is_complex, is_hermitian)                                                      \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, INT n, INT k, value alpha,           \
                                  const element *a, INT lda, value beta, element *c, INT ldc) {                                 \
    NEED_LAYOUT(name)                                                                                                           \
    NEED(name, known_uplo(uplo), 1)                                                                                             \
    NEED(name, has_rank_op(trans, is_complex, is_hermitian), 2)                                                                 \
    if (layout == WSGEMM_ROW_MAJOR)                                                                                             \
      run_##name(ROW, other_uplo(uplo), other_op(trans, is_hermitian ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS), n, k, load(alpha), a, \
                 lda, load(beta), c, ldc);                                                                                      \
    else                                                                                                                        \
      run_##name(COL, uplo, trans, n, k, load(alpha), a, lda, load(beta), c, ldc);                                              \
  }
#define CBLAS_syrk(name, x) CBLAS_RANK_K(name, VALUE_##x, LOAD_##x, ELEMENT_##x, IS_COMPLEX_##x, false)
#define CBLAS_herk(name, x) CBLAS_RANK_K(name, REAL_##x, LOAD_s, ELEMENT_##x, true, true)

/* In row-major terms her2k's two products change places, and with them alpha and its conjugate. */
#define CONJ_ALPHA_syr2k(x, alpha) LOAD_##x(alpha)
#define CONJ_ALPHA_her2k(x, alpha) ((SCALAR_##x){LOAD_##x(alpha).re, -LOAD_##x(alpha).im})
#define CBLAS_RANK_2K(name, x, family, beta_type, load_beta, is_complex, is_hermitian)                                          \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, INT n, INT k, VALUE_##x alpha,       \
                                  const ELEMENT_##x *a, INT lda, const ELEMENT_##x *b, INT ldb, beta_type beta, ELEMENT_##x *c, \
                                  INT ldc) {                                                                                    \
    NEED_LAYOUT(name)                                                                                                           \
    NEED(name, known_uplo(uplo), 1)                                                                                             \
    NEED(name, has_rank_op(trans, is_complex, is_hermitian), 2)                                                                 \
    if (layout == WSGEMM_ROW_MAJOR)                                                                                             \
      run_##name(ROW, other_uplo(uplo), other_op(trans, is_hermitian ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS), n, k,                 \
                 CONJ_ALPHA_##family(x, alpha), a, lda, b, ldb, load_beta(beta), c, ldc);                                       \
    else                                                                                                                        \
      run_##name(COL, uplo, trans, n, k, LOAD_##x(alpha), a, lda, b, ldb, load_beta(beta), c, ldc);                             \
  }
#define CBLAS_syr2k(name, x) CBLAS_RANK_2K(name, x, syr2k, VALUE_##x, LOAD_##x, IS_COMPLEX_##x, false)
#define CBLAS_her2k(name, x) CBLAS_RANK_2K(name, x, her2k, REAL_##x, LOAD_s, true, true)

#define CBLAS_trmm(name, x)                                                                                                     \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, wsgemm_op transa, wsgemm_diag diag, \
                                  INT m, INT n, VALUE_##x alpha, const ELEMENT_##x *a, INT lda, ELEMENT_##x *b, INT ldb) {      \
    NEED_LAYOUT(name)                                                                                                           \
    NEED(name, known_side(side), 1)                                                                                             \
    NEED(name, known_uplo(uplo), 2)                                                                                             \
    NEED(name, known_op(transa), 3)                                                                                             \
    NEED(name, known_diag(diag), 4)                                                                                             \
    if (layout == WSGEMM_ROW_MAJOR)                                                                                             \
      run_##name(ROW, other_side(side), other_uplo(uplo), transa, diag, n, m, LOAD_##x(alpha), a, lda, b, ldb);                 \
    else                                                                                                                        \
      run_##name(COL, side, uplo, transa, diag, m, n, LOAD_##x(alpha), a, lda, b, ldb);                                         \
  }

#define SCALARS_OF_s(values) (values)
#define SCALARS_OF_d(values) (values)
#define SCALARS_OF_c(values) ((const wsgemm_cfloat *)(values))
#define SCALARS_OF_z(values) ((const wsgemm_cdouble *)(values))
#define ARRAY_s const float *
#define ARRAY_d const double *
#define ARRAY_c const void *
#define ARRAY_z const void *
#define op_or_none(op) (known_op(op) ? (op) : (wsgemm_op)0)

#define CBLAS_batch(name, x)                                                                                                \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, const wsgemm_op *transa, const wsgemm_op *transb, const INT *m,     \
                                  const INT *n, const INT *k, ARRAY_##x alpha, const ELEMENT_##x *const *a, const INT *lda, \
                                  const ELEMENT_##x *const *b, const INT *ldb, ARRAY_##x beta, ELEMENT_##x *const *c,       \
                                  const INT *ldc, INT group_count, const INT *group_size) {                                 \
    const int WAY = CALLER(name).way;                                                                                       \
    NEED_LAYOUT(name)                                                                                                       \
    RUN_GROUPS(name, x, layout, op_or_none, SCALARS_OF_##x(alpha)[i], SCALARS_OF_##x(beta)[i], group_count)                 \
  }

#define CBLAS_strided(name, x)                                                                                                 \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, INT m, INT n, INT k,               \
                                  VALUE_##x alpha, const ELEMENT_##x *a, INT lda, INT stride_a, const ELEMENT_##x *b, INT ldb, \
                                  INT stride_b, VALUE_##x beta, ELEMENT_##x *c, INT ldc, INT stride_c, INT batch_count) {      \
    const int WAY = CALLER(name).way;                                                                                          \
    NEED_LAYOUT(name)                                                                                                          \
    RUN_STRIDED(name, x, layout, op_or_none(transa), op_or_none(transb), m, n, k, LOAD_##x(alpha), a, lda, stride_a, b, ldb,   \
                stride_b, LOAD_##x(beta), c, ldc, stride_c, batch_count)                                                       \
  }

#define ADDRESS_s(value) (&(value))
#define ADDRESS_d(value) (&(value))
#define ADDRESS_c(value) (value)
#define ADDRESS_z(value) (value)

#define CBLAS_omatcopy(name, x)                                                                               \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_op trans, INT rows, INT cols, VALUE_##x alpha, \
                                  const ELEMENT_##x *a, INT lda, ELEMENT_##x *b, INT ldb) {                   \
    NEED_LAYOUT(name)                                                                                         \
    const ws_blas_matcopy copy = {layout, op_or_none(trans), rows, cols, a, lda, b, ldb};                     \
    ws_blas_omatcopy((ws_blas_caller){WS_BLAS_##name, COL}, TYPE_##x, ADDRESS_##x(alpha), &copy);             \
  }

#define CBLAS_imatcopy(name, x)                                                                                                \
  WS_BLAS_EXPORT void ENTRY(name)(wsgemm_layout layout, wsgemm_op trans, INT rows, INT cols, VALUE_##x alpha, ELEMENT_##x * a, \
                                  INT lda, INT ldb) {                                                                          \
    NEED_LAYOUT(name)                                                                                                          \
    const ws_blas_matcopy copy = {layout, op_or_none(trans), rows, cols, a, lda, a, ldb};                                      \
    ws_blas_imatcopy((ws_blas_caller){WS_BLAS_##name, COL}, TYPE_##x, ADDRESS_##x(alpha), &copy);                              \
  }

#endif
