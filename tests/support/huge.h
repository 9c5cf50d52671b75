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

/* A copy whose columns (or rows) are BEYOND + 7 elements apart. false: the system maps no such
 * memory. */
bool matrix_far_apart(const struct matrix *near, struct matrix *far);
void matrix_unmap(const struct matrix *far);

#endif
