/* matcopy.h - scaled copies of a matrix, as it is or transposed: omatcopy, and imatcopy in place. */
#ifndef WS_BLAS_MATCOPY_H
#define WS_BLAS_MATCOPY_H

#include "blas/arguments.h"

/* B = alpha op(A), A being rows x cols. */
typedef struct ws_blas_matcopy {
  wsgemm_layout layout; /* 0: a bad one */
  wsgemm_op trans;      /* 0: a bad one */
  int64_t rows, cols;
  const void *a;
  int64_t lda;
  void *b; /* imatcopy: A itself */
  int64_t ldb;
} ws_blas_matcopy;

void ws_blas_omatcopy(ws_blas_caller caller, wsgemm_type type, const void *alpha, const ws_blas_matcopy *copy);
void ws_blas_imatcopy(ws_blas_caller caller, wsgemm_type type, const void *alpha, const ws_blas_matcopy *copy);

WS_BLAS_INLINE wsgemm_layout copy_layout_of(char c) {
  return (c | 0x20) == 'c' ? WSGEMM_COL_MAJOR : (c | 0x20) == 'r' ? WSGEMM_ROW_MAJOR : (wsgemm_layout)0;
}
/* As elsewhere, and R: conjugated, not transposed. */
WS_BLAS_INLINE wsgemm_op copy_op_of(char c) { return (c | 0x20) == 'r' ? WSGEMM_CONJ_NO_TRANS : op_of(c); }

#endif
