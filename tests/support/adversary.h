/* adversary.h - operands that a tensor core's arithmetic is worst at, made from its model
 * (tensor_core.h): elements of few bits far below the largest that meet large partners, largest
 * elements that meet zeros, products whose low bits the alignment drops, all magnitudes. */
#ifndef WSGEMM_TESTS_ADVERSARY_H
#define WSGEMM_TESTS_ADVERSARY_H
#include <stdint.h>

#include "check.h"

/* A row of A and a column of B, k floats each, multiplied by powers of two as a whole. */
void adversary_of_slices(struct check_random *random, int64_t k, float *a, float *b);

/* Of complex numbers, re and im after each other: adversaries whose imaginary parts are 0, as large
 * as the real ones, or smaller, so that
 * |A| |B| is little more than one of its four products. */
void adversary_of_complex(struct check_random *random, int64_t k, float *a, float *b);

/* Of 16-bit elements: normal and subnormal ones, and zeros, also with the largest partners.
 * min_exponent, bits: of the format (F16: -14 and 11, BF16: -126 and 8). */
void adversary_of_elements(struct check_random *random, int min_exponent, int bits, int64_t k, float *a, float *b);

#endif
