/* matrix.h - a matrix of each product of a batch, as it lies in memory: an operand, which is read,
 * or the result, which is written. */
#ifndef WS_MATRIX_H
#define WS_MATRIX_H
#include <stdbool.h>
#include <stdint.h>

#include "core/region.h"
#include "core/types.h"

/* What is known of a matrix beside its elements. Of all but GENERAL, which are square, one triangle
 * is stored and read; the other one is its mirror image (HERMITIAN: conjugated, and the imaginary
 * parts of the diagonal count as 0), or zero (TRIANGULAR), of UNIT_TRIANGULAR with a diagonal of
 * ones that is not read. */
typedef enum ws_structure { WS_GENERAL, WS_SYMMETRIC, WS_HERMITIAN, WS_TRIANGULAR, WS_UNIT_TRIANGULAR } ws_structure;

static inline bool ws_is_triangular(ws_structure s) { return s >= WS_TRIANGULAR; }

/* op(X), which a product reads. Element (i, j) of op(X) is at data[i + j * ld], or at data[j + i *
 * ld] if trans; that of product b of the batch b * stride elements further on. */
typedef struct ws_matrix {
  const void *data;
  int64_t ld, stride;
  wsgemm_type type;
  bool trans, conj;  /* conj: of complex types only */
  uint8_t structure; /* ws_structure, of X: before op */
  /* Of all but GENERAL: the stored triangle is data[i + j * ld] with i <= j; else with i >= j. */
  bool stored_upper;
} ws_matrix;

/* C, which a product writes, and reads if beta is not 0. Element (i, j) is at data[i + j * ld]. */
typedef struct ws_result {
  void *data;
  int64_t ld, stride;
  wsgemm_type type; /* that of the operands, except that halves may give another half or floats */
  uint8_t region;   /* ws_region; but for ALL m = n, and the other elements are not read either */
  /* A Hermitian C: imaginary parts of its diagonal count as 0, and are written so. */
  bool real_diagonal;
} ws_result;

/* The triangle of op(X) in which a triangular X is not 0. */
static inline ws_region ws_triangle_of(const ws_matrix *x) { return x->stored_upper != x->trans ? WS_UPPER : WS_LOWER; }
#endif
