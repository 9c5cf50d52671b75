/* run.h - what Fortran and CBLAS have in common: run_NAME() for each routine of routines.def, with
 * arguments by value in column-major terms: check, quick return of the reference BLAS, the call.
 *
 * Quick returns look at no pointer: nothing to write, or nothing to add and beta = 1. (trmm and
 * trsm with alpha = 0 write zeros.) */
#ifndef WS_BLAS_RUN_H
#define WS_BLAS_RUN_H

#include <stddef.h>

#include "blas/arguments.h"
#include "blas/types.h"

#define IS_ZERO(x, value) ZERO_##x(value)
#define IS_ONE(x, value) ONE_##x(value)

#define RUN_gemm(name, x)                                                                                                        \
  WS_BLAS_INLINE void run_##name(int way, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k, SCALAR_##x alpha, \
                                 const ELEMENT_##x *a, int64_t lda, const ELEMENT_##x *b, int64_t ldb, SCALAR_##x beta,          \
                                 ELEMENT_##x *c, int64_t ldc) {                                                                  \
    if (!good_gemm((ws_blas_caller){WS_BLAS_##name, way}, transa, transb, m, n, k, lda, ldb, ldc)) return;                       \
    if (m == 0 || n == 0 || ((k == 0 || IS_ZERO(x, alpha)) && IS_ONE(x, beta))) return;                                          \
    ws_blas_begin(WS_BLAS_##name, (double)m *(double)n *(double)k);                                                              \
    ws_blas_end(WS_BLAS_##name,                                                                                                  \
                wsgemm_##x##gemm(NULL, WSGEMM_COL_MAJOR, transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));         \
  }

#define RUN_gemmtr(name, x)                                                                                                   \
  WS_BLAS_INLINE void run_##name(int way, wsgemm_uplo uplo, wsgemm_op transa, wsgemm_op transb, int64_t n, int64_t k,         \
                                 SCALAR_##x alpha, const ELEMENT_##x *a, int64_t lda, const ELEMENT_##x *b, int64_t ldb,      \
                                 SCALAR_##x beta, ELEMENT_##x *c, int64_t ldc) {                                              \
    if (!good_gemmtr((ws_blas_caller){WS_BLAS_##name, way}, uplo, transa, transb, n, k, lda, ldb, ldc)) return;               \
    if (n == 0 || ((k == 0 || IS_ZERO(x, alpha)) && IS_ONE(x, beta))) return;                                                 \
    ws_blas_begin(WS_BLAS_##name, (double)n *(double)(n + 1) / 2 * (double)k);                                                \
    ws_blas_end(WS_BLAS_##name,                                                                                               \
                wsgemm_##x##gemmtr(NULL, WSGEMM_COL_MAJOR, uplo, transa, transb, n, k, alpha, a, lda, b, ldb, beta, c, ldc)); \
  }

/* symm, hemm */
#define RUN_symm(name, x)                                                                                                      \
  WS_BLAS_INLINE void run_##name(int way, wsgemm_side side, wsgemm_uplo uplo, int64_t m, int64_t n, SCALAR_##x alpha,          \
                                 const ELEMENT_##x *a, int64_t lda, const ELEMENT_##x *b, int64_t ldb, SCALAR_##x beta,        \
                                 ELEMENT_##x *c, int64_t ldc) {                                                                \
    if (!good_symm((ws_blas_caller){WS_BLAS_##name, way}, side, uplo, m, n, lda, ldb, ldc)) return;                            \
    if (m == 0 || n == 0 || (IS_ZERO(x, alpha) && IS_ONE(x, beta))) return;                                                    \
    ws_blas_begin(WS_BLAS_##name, (double)m *(double)n *(double)(side == WSGEMM_LEFT ? m : n));                                \
    ws_blas_end(WS_BLAS_##name, wsgemm_##name(NULL, WSGEMM_COL_MAJOR, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc)); \
  }

#define RUN_RANK_K(name, x, scalar, is_zero, is_one, is_complex, is_hermitian)                                          \
  WS_BLAS_INLINE void run_##name(int way, wsgemm_uplo uplo, wsgemm_op trans, int64_t n, int64_t k, scalar alpha,        \
                                 const ELEMENT_##x *a, int64_t lda, scalar beta, ELEMENT_##x *c, int64_t ldc) {         \
    const bool has_op = has_rank_op(trans, is_complex, is_hermitian);                                                   \
    if (!good_rank((ws_blas_caller){WS_BLAS_##name, way}, uplo, has_op, trans, n, k, lda, false, 0, ldc)) return;       \
    if (n == 0 || ((k == 0 || is_zero(alpha)) && is_one(beta))) return;                                                 \
    ws_blas_begin(WS_BLAS_##name, (double)n *(double)(n + 1) / 2 * (double)k);                                          \
    ws_blas_end(WS_BLAS_##name, wsgemm_##name(NULL, WSGEMM_COL_MAJOR, uplo, trans, n, k, alpha, a, lda, beta, c, ldc)); \
  }
#define RUN_syrk(name, x) RUN_RANK_K(name, x, SCALAR_##x, ZERO_##x, ONE_##x, IS_COMPLEX_##x, false)
#define RUN_herk(name, x) RUN_RANK_K(name, x, REAL_##x, ZERO_d, ONE_d, true, true)

#define RUN_RANK_2K(name, x, scalar, is_one, is_complex, is_hermitian)                                                          \
  WS_BLAS_INLINE void run_##name(int way, wsgemm_uplo uplo, wsgemm_op trans, int64_t n, int64_t k, SCALAR_##x alpha,            \
                                 const ELEMENT_##x *a, int64_t lda, const ELEMENT_##x *b, int64_t ldb, scalar beta,             \
                                 ELEMENT_##x *c, int64_t ldc) {                                                                 \
    const bool has_op = has_rank_op(trans, is_complex, is_hermitian);                                                           \
    if (!good_rank((ws_blas_caller){WS_BLAS_##name, way}, uplo, has_op, trans, n, k, lda, true, ldb, ldc)) return;              \
    if (n == 0 || ((k == 0 || IS_ZERO(x, alpha)) && is_one(beta))) return;                                                      \
    ws_blas_begin(WS_BLAS_##name, (double)n *(double)(n + 1) * (double)k);                                                      \
    ws_blas_end(WS_BLAS_##name, wsgemm_##name(NULL, WSGEMM_COL_MAJOR, uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc)); \
  }
#define RUN_syr2k(name, x) RUN_RANK_2K(name, x, SCALAR_##x, ONE_##x, IS_COMPLEX_##x, false)
#define RUN_her2k(name, x) RUN_RANK_2K(name, x, REAL_##x, ONE_d, true, true)

/* trmm, trsm */
#define RUN_trmm(name, x)                                                                                                       \
  WS_BLAS_INLINE void run_##name(int way, wsgemm_side side, wsgemm_uplo uplo, wsgemm_op transa, wsgemm_diag diag, int64_t m,    \
                                 int64_t n, SCALAR_##x alpha, const ELEMENT_##x *a, int64_t lda, ELEMENT_##x *b, int64_t ldb) { \
    if (!good_trmm((ws_blas_caller){WS_BLAS_##name, way}, side, uplo, transa, diag, m, n, lda, ldb)) return;                    \
    if (m == 0 || n == 0) return;                                                                                               \
    ws_blas_begin(WS_BLAS_##name, (double)m *(double)n *(double)(side == WSGEMM_LEFT ? m : n) / 2);                             \
    ws_blas_end(WS_BLAS_##name, wsgemm_##name(NULL, WSGEMM_COL_MAJOR, side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb));  \
  }

/* sbgemm, shgemm: halves into floats */
#define RUN_half(name, x)                                                                                                    \
  WS_BLAS_INLINE void run_##name(int way, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k, float alpha,  \
                                 const ELEMENT_##x *a, int64_t lda, const ELEMENT_##x *b, int64_t ldb, float beta, float *c, \
                                 int64_t ldc) {                                                                              \
    if (!good_gemm((ws_blas_caller){WS_BLAS_##name, way}, transa, transb, m, n, k, lda, ldb, ldc)) return;                   \
    if (m == 0 || n == 0 || ((k == 0 || alpha == 0) && beta == 1)) return;                                                   \
    wsgemm_gemm_desc desc = WSGEMM_GEMM_DESC_INIT;                                                                           \
    desc.transa = transa, desc.transb = transb, desc.type_a = desc.type_b = TYPE_##x;                                        \
    desc.m = m, desc.n = n, desc.k = k, desc.alpha.s = alpha, desc.beta.s = beta;                                            \
    desc.a = a, desc.lda = lda, desc.b = b, desc.ldb = ldb, desc.c = c, desc.ldc = ldc;                                      \
    ws_blas_begin(WS_BLAS_##name, (double)m *(double)n *(double)k);                                                          \
    ws_blas_end(WS_BLAS_##name, wsgemm_gemm(NULL, &desc));                                                                   \
  }

/* A bfloat16 as a float: exact. */
WS_BLAS_INLINE float float_of_bf16(wsgemm_bf16 x) {
  const union {
    uint32_t bits;
    float value;
  } u = {(uint32_t)x << 16};
  return u.value;
}

/* Halves into halves; the scalars are halves, too. */
#define RUN_bgemm(name, x)                                                                                                      \
  WS_BLAS_INLINE void run_##name(int way, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k,                  \
                                 wsgemm_bf16 alpha, const wsgemm_bf16 *a, int64_t lda, const wsgemm_bf16 *b, int64_t ldb,       \
                                 wsgemm_bf16 beta, wsgemm_bf16 *c, int64_t ldc) {                                               \
    if (!good_gemm((ws_blas_caller){WS_BLAS_##name, way}, transa, transb, m, n, k, lda, ldb, ldc)) return;                      \
    const float al = float_of_bf16(alpha), be = float_of_bf16(beta);                                                            \
    if (m == 0 || n == 0 || ((k == 0 || al == 0) && be == 1)) return;                                                           \
    ws_blas_begin(WS_BLAS_##name, (double)m *(double)n *(double)k);                                                             \
    ws_blas_end(WS_BLAS_##name, wsgemm_bgemm(NULL, WSGEMM_COL_MAJOR, transa, transb, m, n, k, al, a, lda, b, ldb, be, c, ldc)); \
  }

/* Their own files: batch.c, matcopy.c. */
#define RUN_batch(name, x)
#define RUN_strided(name, x)
#define RUN_omatcopy(name, x)
#define RUN_imatcopy(name, x)

#define ROUTINE(name, family, letter) RUN_##family(name, letter)
#include "blas/routines.def"
#undef ROUTINE

#endif
