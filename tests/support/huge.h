/* huge.h - matrices beyond 2^31 elements, of which little exists: mapped sparsely, or one small file
 * over and over. Where the system refuses such mappings a suite skips the case. */
#ifndef WSGEMM_TESTS_HUGE_H
#define WSGEMM_TESTS_HUGE_H

#include "matrix.h"

#define BEYOND (INT64_C(1) << 31)

/* Whether the case is to be left out here, and says so: under an emulator, whose own page tables
 * would take gigabytes; if it takes long, under a sanitizer. */
bool is_too_much_here(bool takes_long);

/* Zeros, until they are written; NULL: refused. */
void *map_sparse(size_t bytes);

/* n floats, in pieces that are one and the same memory; NULL: refused. */
float *map_over_and_over(int64_t n_floats, size_t piece_bytes);

/* A call that adds the squares of k elements to c, -1 at first; k is beyond 2^31, and all are zero but
 * four, one of them behind 2^31, one at the end. */
typedef wsgemm_status long_sum_call(int64_t k, const float *x, float *c);
void check_long_sum(long_sum_call *call);

/* A matrix of more than 2^31 rows, and its result, each one 2 MiB file mapped over and over, so that
 * every element comes out the same. false: the system refuses, and the case is skipped. */
struct tall {
  int64_t m;
  float *in, *out;
};
bool tall_map(struct tall *t);
void tall_unmap(const struct tall *t);
/* All elements of `in`; `out` is cleared. */
void tall_fill(const struct tall *t, float in);
void check_tall(const struct tall *t, float expected, const char *what);

/* A copy whose columns (or rows) are BEYOND + 7 elements apart. false: the system maps no such
 * memory. */
bool matrix_far_apart(const struct matrix *near, struct matrix *far);
void matrix_unmap(const struct matrix *far);

#endif
