/* sliced_model.c - see sliced_model.h. */
#include "sliced_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cuda/rows/rows.h"
#include "cuda/shared/slice_args.h"
#include "matrix.h"
#include "tensor_core.h"

enum { MOST_SLICES = 3 };

/* A row of A or a column of B. */
typedef struct line {
  int exponent; /* of the scale */
  sliced_by by;
  float *slice[MOST_SLICES];
} line;

bool sliced_model_rule(int n_slices, float x, float scaled) { return ws_slices_stand_for(n_slices, x, scaled) != 0; }

static uint32_t bits_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffff;
}

/* The n slices of one number, scaled; what they leave of it. */
static float cut(int n_slices, float y, float slice[MOST_SLICES]) {
  float rest = y;
  for (int s = 0; s < n_slices; s++) {
    slice[s] = (float)type_round(n_slices == 3 ? WSGEMM_BF16 : WSGEMM_F16, rest);
    rest -= slice[s];
    if (n_slices == 2 && s == 0) rest *= 2048;
  }
  return n_slices == 2 ? rest / 2048 : rest;
}

bool sliced_model_rule_by_rest(int n_slices, float x, float scaled) {
  float slice[MOST_SLICES];
  const float magnitude = fabsf(scaled), rest = fabsf(cut(n_slices, scaled, slice));
  if (x != 0 && scaled == 0) return false;
  if (n_slices == 3) return rest == 0 && (scaled == 0 || magnitude >= 0x1p-54f);
  if (n_slices == 1) return rest <= 0x1p-11f * magnitude;
  return fabsf(scaled - slice[0]) <= 0x1p-10f * magnitude && rest <= 0x1p-20f * magnitude;
}

static sliced_by slices_that_stand(int n_slices, slices_rule *rule, int64_t k, const float *x, float scale) {
  for (int64_t p = 0; p < k; p++) {
    if (!isfinite(x[p])) return SLICED_BY_FMA;
    if (!rule(n_slices, x[p], x[p] * scale)) return n_slices == 2 ? slices_that_stand(3, rule, k, x, scale) : SLICED_BY_FMA;
  }
  return (sliced_by)n_slices;
}

static line line_of(int n_slices, slices_rule *rule, int64_t k, const float *x) {
  uint32_t most = 0;
  for (int64_t p = 0; p < k; p++) most = bits_of(x[p]) > most ? bits_of(x[p]) : most;
  line l = {.exponent = ws_slice_exponent(most)};
  l.by = slices_that_stand(n_slices, rule, k, x, ldexpf(1, l.exponent));
  return l;
}

static void cut_line(line *l, int n_slices, int64_t k, const float *x) {
  for (int s = 0; s < n_slices; s++) {
    l->slice[s] = calloc((size_t)k, sizeof(float));
    REQUIRE(l->slice[s] != NULL, "memory");
  }
  for (int64_t p = 0; p < k; p++) {
    float slice[MOST_SLICES];
    cut(n_slices, x[p] * ldexpf(1, l->exponent), slice);
    for (int s = 0; s < n_slices; s++) l->slice[s][p] = slice[s];
  }
}

static void free_line(line *l) {
  for (int s = 0; s < MOST_SLICES; s++) free(l->slice[s]);
}

/* The order of gemm_wgmma.cuh: `high` of a chunk by itself; `low` of two slices through all of k,
 * of three chunk by chunk. */
static float sum_slices(int n_slices, int64_t k, const line *a, const line *b) {
  static const int low_products[][2] = {{0, 1}, {1, 0}, {1, 1}, {0, 2}, {2, 0}};
  const tensor_format format = n_slices == 3 ? TENSOR_BF16 : TENSOR_F16;
  const int bits = TENSOR_FRACTION_BITS_CC90, step_k = tensor_core_step_k(format), n_low = n_slices == 3 ? 5 : 2;
  float total = 0, low = 0;
  if (n_slices == 1) return tensor_core_dot(format, bits, k, a->slice[0], b->slice[0], 0);
  for (int64_t first = 0; first < k; first += WS_SLICED_CHUNK_K) {
    const int64_t end = first + WS_SLICED_CHUNK_K < k ? first + WS_SLICED_CHUNK_K : k;
    const float high = tensor_core_dot(format, bits, end - first, a->slice[0] + first, b->slice[0] + first, 0);
    if (n_slices == 3) low = 0;
    for (int64_t p = first; p < end; p += step_k)
      for (int i = 0; i < n_low; i++)
        low = tensor_core_step(format, bits, (int)(end - p < step_k ? end - p : step_k), a->slice[low_products[i][0]] + p,
                               b->slice[low_products[i][1]] + p, low);
    if (n_slices == 3) total += low;
    total += high;
  }
  return n_slices == 3 ? total : fmaf(low, 0x1p-11f, total);
}

/* As sliced_store.cuh: in two steps, of which the first is exact unless the second makes 0 of
 * it. */
static float scaled_back(float x, int e) {
  e = e < -240 ? -240 : e;
  const int first = e >> 1;
  return x * ldexpf(1, first) * ldexpf(1, e - first);
}

static float multiply_adds(int64_t k, const float *a, const float *b) {
  float sum = 0;
  for (int64_t p = 0; p < k; p++) sum = fmaf(a[p], b[p], sum);
  return sum;
}

float sliced_model_dot(int n_slices, slices_rule *rule, int64_t k, const float *a, const float *b, sliced_by *by) {
  line of_a = line_of(n_slices, rule, k, a), of_b = line_of(n_slices, rule, k, b);
  *by = of_a.by == SLICED_BY_FMA || of_b.by == SLICED_BY_FMA ? SLICED_BY_FMA : of_a.by > of_b.by ? of_a.by : of_b.by;
  if (*by == SLICED_BY_FMA) return multiply_adds(k, a, b);
  cut_line(&of_a, (int)*by, k, a), cut_line(&of_b, (int)*by, k, b);
  const float sum = sum_slices((int)*by, k, &of_a, &of_b);
  free_line(&of_a), free_line(&of_b);
  return scaled_back(sum, -of_a.exponent - of_b.exponent);
}
