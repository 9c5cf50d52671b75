/* fused_model.c - see fused_model.h. */
#include "fused_model.h"

#include <math.h>
#include <string.h>

#include "tensor_core.h"
#include "tf32.h"

enum { BLOCK_K = 32, TF32_MASK = -0x2000, BITS = TENSOR_FRACTION_BITS_CC90 };

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static float cut_to_tf32(float x) { return float_of(bits_of(x) & (uint32_t)TF32_MASK); }
/* to nearest even */
static float nearest_bf16(float x) {
  const uint32_t bits = bits_of(x);
  return float_of((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000);
}

bool fused_model_stands_for(int64_t k, const float *x) {
  for (int64_t p = 0; p < k; p++)
    if (x[p] != 0 && fabsf(x[p]) < 0x1p-113f) return false;
  return true;
}

/* A block of 32 k, of which n exist, of rows tf32w2: the sum that is added in FP32. */
static float block_in_one_sum(int n, const float *r, const float *s) {
  const int step = tensor_core_step_k(TENSOR_TF32);
  float high_r[BLOCK_K] = {0}, high_s[BLOCK_K] = {0}, low_r[BLOCK_K] = {0}, low_s[BLOCK_K] = {0}, sum = 0;
  for (int p = 0; p < n; p++) {
    high_r[p] = nearest_tf32(r[p]), high_s[p] = nearest_tf32(s[p]);
    low_r[p] = cut_to_tf32(r[p] - high_r[p]), low_s[p] = cut_to_tf32(s[p] - high_s[p]);
  }
  for (int p = 0; p < BLOCK_K; p += step) sum = tensor_core_step(TENSOR_TF32, BITS, step, low_r + p, high_s + p, sum);
  for (int p = 0; p < BLOCK_K; p += step) sum = tensor_core_step(TENSOR_TF32, BITS, step, high_r + p, low_s + p, sum);
  for (int p = 0; p < BLOCK_K; p += step) sum = tensor_core_step(TENSOR_TF32, BITS, step, high_r + p, high_s + p, sum);
  return sum;
}

/* A block of 32 k: adds to both sums. */
static void add_block(fused_cross cross, int n, const float *r, const float *s, float *total, float *low) {
  float high_r[BLOCK_K] = {0}, high_s[BLOCK_K] = {0}, low_r[BLOCK_K] = {0}, low_s[BLOCK_K] = {0};
  for (int p = 0; p < n; p++) {
    high_r[p] = cross == FUSED_CROSS_BF16 ? nearest_tf32(r[p]) : cut_to_tf32(r[p]);
    high_s[p] = cut_to_tf32(s[p]);
    low_r[p] = r[p] - high_r[p], low_s[p] = s[p] - high_s[p];
  }
  *total += tensor_core_dot(TENSOR_TF32, BITS, BLOCK_K, high_r, high_s, 0);
  for (int p = 0; p < n; p++) {
    if (cross == FUSED_CROSS_BF16) {
      high_r[p] = nearest_bf16(high_r[p]), high_s[p] = nearest_bf16(high_s[p]);
      low_r[p] = nearest_bf16(low_r[p]), low_s[p] = nearest_bf16(low_s[p]);
    } else {
      low_r[p] = cut_to_tf32(low_r[p]), low_s[p] = cut_to_tf32(low_s[p]);
    }
  }
  const tensor_format format = cross == FUSED_CROSS_BF16 ? TENSOR_BF16 : TENSOR_TF32;
  const int step = tensor_core_step_k(format);
  for (int p = 0; p < BLOCK_K; p += step) {
    *low = tensor_core_step(format, BITS, step, high_r + p, low_s + p, *low);
    *low = tensor_core_step(format, BITS, step, low_r + p, high_s + p, *low);
  }
}

float fused_model_dot(fused_cross cross, int64_t k, int n_parts, const float *r, const float *s) {
  const int64_t n_blocks = (k + BLOCK_K - 1) / BLOCK_K;
  float sum = 0;
  for (int part = 0; part < n_parts; part++) {
    float total = 0, low = 0;
    for (int64_t b = n_blocks * part / n_parts; b < n_blocks * (part + 1) / n_parts; b++) {
      const int64_t first = b * BLOCK_K, n = k - first < BLOCK_K ? k - first : BLOCK_K;
      if (cross == FUSED_IN_ONE_SUM)
        total += block_in_one_sum((int)n, r + first, s + first);
      else
        add_block(cross, (int)n, r + first, s + first, &total, &low);
    }
    total += low;
    sum = n_parts == 1 ? total : sum + total;
  }
  return sum;
}
