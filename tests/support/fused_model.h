/* fused_model.h - products of floats as cuda/kernels/gemm_fused.cuh and rows tf32w2 (gemm_tf32.cuh) split and sum
 * them, one element of C at a time, on the model of the tensor core. */
#ifndef WSGEMM_TESTS_FUSED_MODEL_H
#define WSGEMM_TESTS_FUSED_MODEL_H
#include <stdbool.h>
#include <stdint.h>

/* The cross products: of TF32 slices, or of BF16; or, in rows tf32w2, of TF32 slices in one sum with the others. */
typedef enum fused_cross { FUSED_CROSS_TF32, FUSED_CROSS_BF16, FUSED_IN_ONE_SUM } fused_cross;

/* The least k of which the kernel's bound is gamma_{k+2} (gemm_fused.cuh derives 136 and 80, docs/numerics.md 35). */
static inline int fused_least_k(fused_cross cross) {
  return cross == FUSED_CROSS_BF16 ? 144 : cross == FUSED_CROSS_TF32 ? 80 : 40;
}

/* Whether slices stand for all of k elements; an infinity or NaN shows in the sum. */
bool fused_model_stands_for(int64_t k, const float *x);

/* alpha = 1, beta = 0: a row of R times a column of S, k cut into n_parts (the blocks of a cluster). */
float fused_model_dot(fused_cross cross, int64_t k, int n_parts, const float *r, const float *s);

#endif
