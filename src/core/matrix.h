/* matrix.h - a matrix of each product of a batch, as it lies in memory: an operand, which is read,
 * or the result, which is written. */
#ifndef WS_MATRIX_H
#define WS_MATRIX_H
#include <stdbool.h>
#include <stdint.h>

#include "core/types.h"

/* op(X), which a product reads. Element (i, j) of op(X) is at data[i + j * ld], or at data[j + i *
 * ld] if trans; that of product b of the batch b * stride elements further on. */
typedef struct ws_matrix {
  const void *data;
  int64_t ld, stride;
  wsgemm_type type;
  bool trans, conj; /* conj: of complex types only */
} ws_matrix;

/* C, which a product writes, and reads if beta is not 0. Element (i, j) is at data[i + j * ld]. */
typedef struct ws_result {
  void *data;
  int64_t ld, stride;
  wsgemm_type type; /* that of the operands, except that halves may give another half or floats */
} ws_result;
#endif
