/* matcopy.c - see matcopy.h. Row-major copies are column-major ones of the transposes.
 *
 * imatcopy needs memory only for a transposition that is not square or changes ld; without it the
 * matrix is left as it was, and stderr says so. */
#include "blas/matcopy.h"

#include <stdlib.h>

enum { TILE = 16 };

/* Complex numbers are multiplied as the reference BLAS does, without C's rules for infinities. */
#define PRODUCT(T, x, y) ((T){(x).re * (y).re - (x).im * (y).im, (x).re * (y).im + (x).im * (y).re})
#define CONJUGATE(T, x) ((T){(x).re, -(x).im})

#define ZERO_ELEMENT 0
#define IS_ZERO_ELEMENT(x) ((x) == 0)
#define SCALED(alpha, x) ((alpha) * (x))
#define CONJUGATED(x) (x)
#define T float
#define NAME(x) x##_s
#include "blas/matcopy_type.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_d
#include "blas/matcopy_type.h"
#undef T
#undef NAME
#undef ZERO_ELEMENT
#undef IS_ZERO_ELEMENT
#undef SCALED
#undef CONJUGATED

#define ZERO_ELEMENT \
  { 0, 0 }
#define IS_ZERO_ELEMENT(x) ((x).re == 0 && (x).im == 0)
#define SCALED(alpha, x) PRODUCT(T, alpha, x)
#define CONJUGATED(x) CONJUGATE(T, x)
#define T wsgemm_cfloat
#define NAME(x) x##_c
#include "blas/matcopy_type.h"
#undef T
#undef NAME
#define T wsgemm_cdouble
#define NAME(x) x##_z
#include "blas/matcopy_type.h"
#undef T
#undef NAME

/* Calls a function of matcopy_type.h with what follows alpha. */
#define FOR_TYPE(type, function, alpha, conj, ...)                    \
  switch (type) {                                                     \
  case WSGEMM_F64:                                                    \
    function##_d((const double *)(alpha), conj, __VA_ARGS__);         \
    break;                                                            \
  case WSGEMM_C32:                                                    \
    function##_c((const wsgemm_cfloat *)(alpha), conj, __VA_ARGS__);  \
    break;                                                            \
  case WSGEMM_C64:                                                    \
    function##_z((const wsgemm_cdouble *)(alpha), conj, __VA_ARGS__); \
    break;                                                            \
  default:                                                            \
    function##_s((const float *)(alpha), conj, __VA_ARGS__);          \
  }

static bool is_conj(wsgemm_op op) { return op == WSGEMM_CONJ_TRANS || op == WSGEMM_CONJ_NO_TRANS; }

/* Numbers are those of the Fortran call, in which the layout is the first argument, too. */
static bool good(ws_blas_caller caller, const ws_blas_matcopy *c, int number_of_ldb) {
  const bool is_row = c->layout == WSGEMM_ROW_MAJOR;
  const int64_t length = is_row ? c->cols : c->rows, count = is_row ? c->rows : c->cols;
  const int info = !c->layout                                               ? 1
                   : !c->trans                                              ? 2
                   : c->rows < 0                                            ? 3
                   : c->cols < 0                                            ? 4
                   : c->lda < least_ld(length)                              ? 7
                   : c->ldb < least_ld(is_trans(c->trans) ? count : length) ? number_of_ldb
                                                                            : 0;
  return info == 0 || ws_blas_bad(caller, caller.way & WS_COL_MAJOR ? info - 1 : info);
}

void ws_blas_omatcopy(ws_blas_caller caller, wsgemm_type type, const void *alpha, const ws_blas_matcopy *copy) {
  if (!good(caller, copy, 9) || copy->rows == 0 || copy->cols == 0) return;
  const bool is_row = copy->layout == WSGEMM_ROW_MAJOR, conj = is_conj(copy->trans);
  const int64_t rows = is_row ? copy->cols : copy->rows, cols = is_row ? copy->rows : copy->cols;
  ws_blas_begin(caller.routine, 0);
  if (is_trans(copy->trans)) {
    FOR_TYPE(type, transpose, alpha, conj, rows, cols, copy->a, copy->lda, copy->b, copy->ldb)
  } else {
    FOR_TYPE(type, copy, alpha, conj, rows, cols, copy->a, copy->lda, copy->b, copy->ldb)
  }
}

static size_t bytes_of(wsgemm_type type) { return type == WSGEMM_F32 ? 4 : type == WSGEMM_C64 ? 16 : 8; }

/* By way of a second matrix, which then is copied as it is. */
static void transpose_by_copy(ws_blas_caller caller, wsgemm_type type, const void *alpha, bool conj, int64_t rows, int64_t cols,
                              const ws_blas_matcopy *copy) {
  static const wsgemm_cdouble one_z = {1, 0};
  static const wsgemm_cfloat one_c = {1, 0};
  const void *const one = type == WSGEMM_F32 || type == WSGEMM_C32 ? (const void *)&one_c : (const void *)&one_z;
  size_t bytes;
  void *const other =
      __builtin_mul_overflow((size_t)rows, (size_t)cols, &bytes) || __builtin_mul_overflow(bytes, bytes_of(type), &bytes)
          ? NULL
          : malloc(bytes);
  if (!other) {
    ws_blas_failed(caller.routine, WSGEMM_ALLOC_FAILED);
    return;
  }
  FOR_TYPE(type, transpose, alpha, conj, rows, cols, copy->a, copy->lda, other, cols)
  FOR_TYPE(type, copy, one, false, cols, rows, other, cols, copy->b, copy->ldb)
  free(other);
}

void ws_blas_imatcopy(ws_blas_caller caller, wsgemm_type type, const void *alpha, const ws_blas_matcopy *copy) {
  if (!good(caller, copy, 8) || copy->rows == 0 || copy->cols == 0) return;
  const bool is_row = copy->layout == WSGEMM_ROW_MAJOR, conj = is_conj(copy->trans);
  const int64_t rows = is_row ? copy->cols : copy->rows, cols = is_row ? copy->rows : copy->cols;
  ws_blas_begin(caller.routine, 0);
  if (!is_trans(copy->trans)) {
    FOR_TYPE(type, copy, alpha, conj, rows, cols, copy->a, copy->lda, copy->b, copy->ldb)
  } else if (rows == cols && copy->lda == copy->ldb) {
    FOR_TYPE(type, transpose_square, alpha, conj, rows, copy->b, copy->lda)
  } else {
    transpose_by_copy(caller, type, alpha, conj, rows, cols, copy);
  }
}
