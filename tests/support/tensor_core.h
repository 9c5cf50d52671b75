/* tensor_core.h - what a tensor core makes of a product, bit by bit: a model to build adversaries
 * from, and to hold the hardware to.
 *
 * One step takes n pairs of elements and a sum so far (source: arXiv 2511.10909, MMA-Sim; cc 9.0:
 * wgmma and mma.sync alike):
 *
 *   1. each product is exact, with the sum of its factors' exponent fields for an exponent; a
 *      subnormal factor has the field of the least normal number, a product with a zero has none.
 *      The sum so far is one more term, with the field of 2^-126 where it is subnormal; a zero has
 *      none.
 *   2. all terms are aligned to the largest exponent, and truncated (toward zero) below
 *      `fraction_bits` binary places of it
 *   3. they are added exactly, and the sum is rounded toward zero to a float; beyond the range it
 *      is Inf
 *
 * Steps over k follow each other in ascending order. tests/gpu/test_gpu_tensor_core.c compares it
 * with a GPU. */
#ifndef WSGEMM_TESTS_TENSOR_CORE_H
#define WSGEMM_TESTS_TENSOR_CORE_H
#include <stdint.h>

/* Elements, which are floats that the format holds exactly. */
typedef enum tensor_format { TENSOR_F16, TENSOR_BF16, TENSOR_TF32 } tensor_format;

enum { TENSOR_STEP_MOST = 16, TENSOR_FRACTION_BITS_CC90 = 25 };

/* Pairs in one step. */
int tensor_core_step_k(tensor_format format);

/* sum + a . b of n <= TENSOR_STEP_MOST pairs, in one step. */
float tensor_core_step(tensor_format format, int fraction_bits, int n, const float *a, const float *b, float sum);

/* The same of k pairs, in as many steps as it takes. */
float tensor_core_dot(tensor_format format, int fraction_bits, int64_t k, const float *a, const float *b, float sum);

#endif
