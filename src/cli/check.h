/* Is a product right? Compares elements of C = alpha A B + beta C with a reference in doubled
 * precision.
 *
 * It knows nothing of layouts, ops and leading dimensions: matrices come as views with two strides,
 * which the caller makes from what the user sees. So a mistake in turning a problem into a call of
 * the library does not hide from it. */
#ifndef WSGEMM_CLI_CHECK_H
#define WSGEMM_CLI_CHECK_H

#include "wsgemm.h"
#include <stdbool.h>
#include <stdint.h>

/* Element (i, j) is at data + i * row_stride + j * col_stride (counted in elements), to be
 * conjugated if is_conj. */
typedef struct ws_view {
  wsgemm_type type;
  const void *data;
  int64_t n_rows, n_cols, row_stride, col_stride;
  bool is_conj;
} ws_view;

/* The same elements seen as the (conjugate) transpose. */
ws_view ws_view_transposed(ws_view v, bool conjugate);

typedef struct ws_product {
  ws_view a, b, c;            /* m x k, k x n, and the m x n result to judge */
  ws_view before;             /* C before the product; not looked at if beta = 0 */
  wsgemm_cdouble alpha, beta; /* im = 0 for real types */
} ws_product;

/* What was found. The measure is err / bound per component, real and imaginary parts each for
 * themselves, with
 *   bound = gamma_{k+2} (|alpha| |A| |B| + |beta| |C|) + underflow,   gamma_n = n u / (1 - n u),   |z| = |re| + |im|.
 * Of half precision err is what is left of it when the one rounding to C's type, half an ulp, has
 * been taken off; what is rounded beyond that type's range must be an infinity.
 * A NaN or infinity in the operands must show in C as in the reference. Where finite operands
 * overflow on the way, how they do depends on the order of the sum: such an element is counted as
 * not judged. */
typedef struct ws_check {
  int64_t n_checked, n_unjudged;
  double worst;             /* largest err / bound; at least 1, or NaN, means that C is wrong */
  int64_t row_idx, col_idx; /* where, and what is and what should be there */
  bool is_imaginary;
  double got, wanted, bound;
} ws_check;

/* Checks every element if that takes at most max_terms multiply-adds, else a random sample that
 * does, drawn from random rows of random columns, the first and last of both included. False: out
 * of memory. */
bool ws_check_product(const ws_product *p, int64_t max_terms, uint64_t seed, ws_check *out);

/* err < bound everywhere, in the form that NaN fails. */
bool ws_check_passed(const ws_check *check);

/* "err/bound 3.2 at (4, 7): got 1, should be 2", into text. */
void ws_check_describe(const ws_check *check, char *text, size_t bytes);

#endif
