/* level3_reference.h - what a Level 3 call should give: structured matrices filled in, the plain
 * sums, and the promised bound per component (level3_call.h makes and stores the cases). */
#ifndef WSGEMM_TESTS_LEVEL3_REFERENCE_H
#define WSGEMM_TESTS_LEVEL3_REFERENCE_H

#include "level3_call.h"

/* The sums of a call: the result is sum over products of scalar * left right, plus beta C. */
struct level3_sums {
  int n_products;
  struct values left[2], right[2];
  double scalar[2][2];
  int64_t m, n, k; /* of each product */
};
struct level3_sums level3_sums_new(const struct level3_stage *stage, const wsgemm_level3_desc *d);
void level3_sums_free(struct level3_sums *sums);

/* Whether (i, j) belongs to what the call writes. */
bool level3_is_written(const wsgemm_level3_desc *d, int64_t i, int64_t j);

/* For trsm to be judged exactly: b becomes op(A) solution / alpha (LEFT; RIGHT alike). */
void level3_make_right_side(struct level3_stage *stage, const wsgemm_level3_desc *d);

struct level3_verdict {
  bool passed;
  double worst; /* largest error / bound; NaN if a component is NaN */
  int64_t i, j; /* where; -1: nowhere */
  double got_re, got_im, expected_re, expected_im;
};
/* Every component of `out` within the header's bound, or for JUDGE_EXACT equal to the exact one. */
struct level3_verdict level3_verdict_of(const struct level3_stage *stage, const wsgemm_level3_desc *d, const struct matrix *out,
                                        enum judge how);

/* Whether every component is NaN, +Inf, -Inf or finite as the reference's is (any routine but trmm
 * and trsm); if not, where the first one stands that is not. */
bool level3_same_class(const struct level3_stage *stage, const wsgemm_level3_desc *d, const struct matrix *out, int64_t *i_bad,
                       int64_t *j_bad);

#endif
