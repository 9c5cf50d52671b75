/* reference.h - what C should be: the plain product in twice the bits of a double or 113, and the
 * promised bound per component.
 *
 * A `product` holds op(A) op(B) and |op(A)| |op(B)| for the first k columns of op(A); it grows with
 * k, so that one product serves all k, and its upper left corners serve all m and n. For complex
 * numbers |z| is |re| + |im|, and re and im are a component each. */
#ifndef WSGEMM_TESTS_REFERENCE_H
#define WSGEMM_TESTS_REFERENCE_H

#include "matrix.h"

#if defined(__x86_64__) || defined(__i386__)
__extension__ typedef __float128 wide;
#else
#include <float.h>
typedef long double wide;
_Static_assert(LDBL_MANT_DIG >= 113, "the reference needs a long double of 113 bits or more");
#endif

struct product {
  int64_t m, n, k;
  wide *re, *im;   /* m x n, row-major */
  wide *magnitude; /* |op(A)| |op(B)| */
};

struct product product_new(int64_t m, int64_t n);
void product_free(struct product *product);

/* Adds the terms from the product's k up to the given one; a has at least m rows and k columns, b k
 * rows and n columns. */
void product_extend(struct product *product, const struct values *a, const struct values *b, int64_t k);

/* The whole product for values that are small whole numbers, summed in doubles, which hold them: fast, for large
 * shapes; leaves the magnitude out, so only reference_judge_exact can use it. */
void product_whole(struct product *product, const struct values *a, const struct values *b, int64_t k);

/* The worst element of a result against alpha * product + beta * c_before. */
struct verdict {
  /* Every component within gamma_{k+2} (|alpha| |A| |B| + |beta| |C|), and half an ulp of a
   * half-precision C, and (2 k |alpha| + 4) times the least positive number of the sums' type. */
  bool passed;
  double worst; /* largest error / bound that was computed exactly; NaN if a component is NaN */
  int64_t i, j; /* where */
  double got_re, got_im, expected_re, expected_im;
};

/* c holds the result of d; c_before what op(C) = C held before (not read if beta is 0). */
struct verdict reference_judge(const wsgemm_gemm_desc *d, const struct product *product, const struct values *c_before,
                               const struct matrix *c);

/* The same with zero tolerance, for whole numbers below 2^50 only: every component equal (the sign
 * of zero apart) to what C's type makes of the exact one. */
struct verdict reference_judge_exact(const wsgemm_gemm_desc *d, const struct product *product, const struct values *c_before,
                                     const struct matrix *c);

/* Whether every component is NaN, +Inf, -Inf or finite as the reference's is; if not, where the
 * first one stands that is not. The values must be such that no sum of finite terms overflows. */
bool reference_same_class(const wsgemm_gemm_desc *d, const struct product *product, const struct values *c_before,
                          const struct matrix *c, int64_t *i_bad, int64_t *j_bad);

#endif
