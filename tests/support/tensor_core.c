/* tensor_core.c - see tensor_core.h. Terms are whole numbers of 64 bits: the largest has at most 2
 * + fraction_bits bits before truncation's place, and there are at most 17 of them. */
#include "tensor_core.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>

static const struct {
  int least_exponent, fraction_bits, step_k;
} formats[] = {[TENSOR_F16] = {-14, 10, 16}, [TENSOR_BF16] = {-126, 7, 16}, [TENSOR_TF32] = {-126, 10, 8}};

/* significand 2^(exponent - the fraction's bits), with the exponent that the field stands for. */
typedef struct term {
  int64_t significand;
  int exponent, fraction_bits;
} term;

static term term_of(float x, int least_exponent, int fraction_bits) {
  term t = {0, least_exponent, fraction_bits};
  if (x != 0 && ilogbf(x) > least_exponent) t.exponent = ilogbf(x);
  t.significand = (int64_t)ldexp((double)x, fraction_bits - t.exponent);
  return t;
}

static term product_of(const term *a, const term *b) {
  return (term){a->significand * b->significand, a->exponent + b->exponent, a->fraction_bits + b->fraction_bits};
}

/* In units of 2^-fraction_bits of 2^exponent, toward zero. */
static int64_t aligned(const term *t, int exponent, int fraction_bits) {
  const int shift = fraction_bits - t->fraction_bits + t->exponent - exponent;
  if (shift >= 0) return t->significand * (INT64_C(1) << shift);
  if (shift < -62) return 0;
  return t->significand / (INT64_C(1) << -shift);
}

/* sum 2^exponent, toward zero. */
static float to_float(int64_t sum, int exponent) {
  uint64_t magnitude = sum < 0 ? -(uint64_t)sum : (uint64_t)sum;
  while (magnitude >= UINT64_C(1) << 24 || (exponent < -149 && magnitude > 0)) magnitude >>= 1, exponent++;
  const double value = ldexp((double)magnitude, exponent);
  return (float)(sum < 0 ? -value : value);
}

int tensor_core_step_k(tensor_format format) { return formats[format].step_k; }

float tensor_core_step(tensor_format format, int fraction_bits, int n, const float *a, const float *b, float sum) {
  const int least = formats[format].least_exponent, bits = formats[format].fraction_bits;
  term terms[TENSOR_STEP_MOST + 1] = {term_of(isfinite(sum) ? sum : 0, -126, 23)};
  int exponent = sum == 0 ? INT_MIN : terms[0].exponent, n_terms = 1;
  double plain = sum;
  bool is_finite = isfinite(sum);
  for (int p = 0; p < n; p++) {
    plain += (double)a[p] * (double)b[p];
    is_finite = is_finite && isfinite(a[p]) && isfinite(b[p]);
    if (!is_finite || a[p] == 0 || b[p] == 0) continue;
    const term of_a = term_of(a[p], least, bits), of_b = term_of(b[p], least, bits);
    terms[n_terms] = product_of(&of_a, &of_b);
    if (terms[n_terms].exponent > exponent) exponent = terms[n_terms].exponent;
    n_terms++;
  }
  if (!is_finite) return (float)plain;
  if (exponent == INT_MIN) return 0;
  int64_t total = 0;
  for (int t = 0; t < n_terms; t++) total += aligned(&terms[t], exponent, fraction_bits);
  return to_float(total, exponent - fraction_bits);
}

float tensor_core_dot(tensor_format format, int fraction_bits, int64_t k, const float *a, const float *b, float sum) {
  const int step_k = formats[format].step_k;
  for (int64_t p = 0; p < k; p += step_k)
    sum = tensor_core_step(format, fraction_bits, k - p < step_k ? (int)(k - p) : step_k, a + p, b + p, sum);
  return sum;
}
