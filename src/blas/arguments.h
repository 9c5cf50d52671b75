/* arguments.h - the argument checks of each family, in the reference BLAS's order and numbering.
 *
 * All of it is in column-major terms: cblas.c exchanges a row-major call's operands first, as the
 * reference CBLAS does. An enumerator of 0 stands for a letter that was none. A check's value: may
 * the routine go on? Then all that wsgemm.h asks of these arguments holds, but for pointers. */
#ifndef WS_BLAS_ARGUMENTS_H
#define WS_BLAS_ARGUMENTS_H

#include "blas/blas.h"

WS_BLAS_INLINE wsgemm_op op_of(char c) {
  const char lower = (char)(c | 0x20);
  return lower == 'n' ? WSGEMM_NO_TRANS : lower == 't' ? WSGEMM_TRANS : lower == 'c' ? WSGEMM_CONJ_TRANS : (wsgemm_op)0;
}
WS_BLAS_INLINE wsgemm_uplo uplo_of(char c) {
  return (c | 0x20) == 'u' ? WSGEMM_UPPER : (c | 0x20) == 'l' ? WSGEMM_LOWER : (wsgemm_uplo)0;
}
WS_BLAS_INLINE wsgemm_side side_of(char c) {
  return (c | 0x20) == 'l' ? WSGEMM_LEFT : (c | 0x20) == 'r' ? WSGEMM_RIGHT : (wsgemm_side)0;
}
WS_BLAS_INLINE wsgemm_diag diag_of(char c) {
  return (c | 0x20) == 'n' ? WSGEMM_NON_UNIT : (c | 0x20) == 'u' ? WSGEMM_UNIT : (wsgemm_diag)0;
}

WS_BLAS_INLINE bool is_trans(wsgemm_op op) { return op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS; }
WS_BLAS_INLINE int64_t least_ld(int64_t rows) { return rows > 1 ? rows : 1; }

WS_BLAS_INLINE bool good_gemm(ws_blas_caller caller, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k,
                              int64_t lda, int64_t ldb, int64_t ldc) {
  const int64_t rows_a = is_trans(transa) ? k : m, rows_b = is_trans(transb) ? n : k;
  const int info = !transa                  ? 1
                   : !transb                ? 2
                   : m < 0                  ? 3
                   : n < 0                  ? 4
                   : k < 0                  ? 5
                   : lda < least_ld(rows_a) ? 8
                   : ldb < least_ld(rows_b) ? 10
                   : ldc < least_ld(m)      ? 13
                                            : 0;
  return __builtin_expect(info == 0, 1) || ws_blas_bad(caller, info);
}

WS_BLAS_INLINE bool good_gemmtr(ws_blas_caller caller, wsgemm_uplo uplo, wsgemm_op transa, wsgemm_op transb, int64_t n, int64_t k,
                                int64_t lda, int64_t ldb, int64_t ldc) {
  const int64_t rows_a = is_trans(transa) ? k : n, rows_b = is_trans(transb) ? n : k;
  const int info = !uplo                    ? 1
                   : !transa                ? 2
                   : !transb                ? 3
                   : n < 0                  ? 4
                   : k < 0                  ? 5
                   : lda < least_ld(rows_a) ? 8
                   : ldb < least_ld(rows_b) ? 10
                   : ldc < least_ld(n)      ? 13
                                            : 0;
  return __builtin_expect(info == 0, 1) || ws_blas_bad(caller, info);
}

WS_BLAS_INLINE bool good_symm(ws_blas_caller caller, wsgemm_side side, wsgemm_uplo uplo, int64_t m, int64_t n, int64_t lda,
                              int64_t ldb, int64_t ldc) {
  const int info = !side                                         ? 1
                   : !uplo                                       ? 2
                   : m < 0                                       ? 3
                   : n < 0                                       ? 4
                   : lda < least_ld(side == WSGEMM_LEFT ? m : n) ? 7
                   : ldb < least_ld(m)                           ? 9
                   : ldc < least_ld(m)                           ? 12
                                                                 : 0;
  return __builtin_expect(info == 0, 1) || ws_blas_bad(caller, info);
}

/* Which op a routine of rank k updates takes besides NO_TRANS: syrk and syr2k of real types both. */
WS_BLAS_INLINE bool has_rank_op(wsgemm_op trans, bool is_complex, bool is_hermitian) {
  if (trans == WSGEMM_NO_TRANS) return true;
  return is_complex ? trans == (is_hermitian ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS) : is_trans(trans);
}

/* syrk and herk (has_b = false), syr2k and her2k (true): ldb counts with them alone. */
WS_BLAS_INLINE bool good_rank(ws_blas_caller caller, wsgemm_uplo uplo, bool has_op, wsgemm_op trans, int64_t n, int64_t k,
                              int64_t lda, bool has_b, int64_t ldb, int64_t ldc) {
  const int64_t rows = trans == WSGEMM_NO_TRANS ? n : k;
  const int info = !uplo                           ? 1
                   : !has_op                       ? 2
                   : n < 0                         ? 3
                   : k < 0                         ? 4
                   : lda < least_ld(rows)          ? 7
                   : has_b && ldb < least_ld(rows) ? 9
                   : ldc < least_ld(n)             ? (has_b ? 12 : 10)
                                                   : 0;
  return __builtin_expect(info == 0, 1) || ws_blas_bad(caller, info);
}

WS_BLAS_INLINE bool good_trmm(ws_blas_caller caller, wsgemm_side side, wsgemm_uplo uplo, wsgemm_op transa, wsgemm_diag diag,
                              int64_t m, int64_t n, int64_t lda, int64_t ldb) {
  const int info = !side                                         ? 1
                   : !uplo                                       ? 2
                   : !transa                                     ? 3
                   : !diag                                       ? 4
                   : m < 0                                       ? 5
                   : n < 0                                       ? 6
                   : lda < least_ld(side == WSGEMM_LEFT ? m : n) ? 9
                   : ldb < least_ld(m)                           ? 11
                                                                 : 0;
  return __builtin_expect(info == 0, 1) || ws_blas_bad(caller, info);
}

#endif
