/* sliced_model.h - products by slices (cuda/shared/slice_args.h) as cuda/kernels/slices.cuh cuts
 * them and cuda/kernels/gemm_wgmma.cuh sums them, one element of C at a time, on the model of the
 * tensor core. The rule for which elements slices stand, and the scales, are the kernels' own. */
#ifndef WSGEMM_TESTS_SLICED_MODEL_H
#define WSGEMM_TESTS_SLICED_MODEL_H
#include <stdbool.h>
#include <stdint.h>

/* What an element of C comes from. */
typedef enum sliced_by { SLICED_BY_FMA = 0, SLICED_BY_ONE = 1, SLICED_BY_TWO = 2, SLICED_BY_THREE = 3 } sliced_by;

/* Which numbers slices stand for. */
typedef bool slices_rule(int n_slices, float x, float scaled);
/* The kernels' rule; and one by what slices leave out alone, as there was at 632f9fa (but for a
 * tolerance that grew with k), which the tests must see fail. */
slices_rule sliced_model_rule, sliced_model_rule_by_rest;

/* alpha = 1, beta = 0, of real numbers: row of A times column of B. n_slices: at first (1 or 2).
 * *by: which arithmetic it was. */
float sliced_model_dot(int n_slices, slices_rule *rule, int64_t k, const float *a, const float *b, sliced_by *by);

#endif
