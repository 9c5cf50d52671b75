/* test_tensor_core.c - the model of the tensor core (tensor_core.h), and on it the bound of
 * products by slices under operands made to break it. What the model must reproduce was measured on
 * an H200 (2026-11-23). */
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "support/adversary.h"
#include "support/check.h"
#include "support/fused_model.h"
#include "support/reference.h"
#include "support/sliced_model.h"
#include "support/tensor_core.h"

enum { MOST_K = 4096 };
static float a[MOST_K], b[MOST_K];

/* ---- The step -------------------------------------------------------------------------------- */

static wide power(int e) {
  wide x = 1;
  for (; e > 0; e--) x *= 2;
  for (; e < 0; e++) x /= 2;
  return x;
}

__extension__ typedef __int128 whole;
static wide truncated(wide x, int grid) {
  const wide n = x * power(-grid);
  if (n > -1 && n < 1) return 0;
  return (wide)(whole)n * power(grid);
}

static int exponent_field(float x, int least) { return ilogbf(x) > least ? ilogbf(x) : least; }

/* The definition in tensor_core.h, in wide arithmetic. */
static float step_by_definition(int least, int n, float sum) {
  int most = sum != 0 ? exponent_field(sum, -126) : -126;
  wide total = 0;
  for (int p = 0; p < n; p++) {
    if (a[p] == 0 || b[p] == 0) continue;
    const int e = exponent_field(a[p], least) + exponent_field(b[p], least);
    if (e > most) most = e;
  }
  for (int p = 0; p < n; p++) total += truncated((wide)a[p] * b[p], most - TENSOR_FRACTION_BITS_CC90);
  total += truncated(sum, most - TENSOR_FRACTION_BITS_CC90);
  if (total == 0) return 0;
  const int e = ilogb((double)total);
  /* (double) may round up to the next power of two */
  const int floor_e = (total < 0 ? -total : total) < power(e) ? e - 1 : e;
  return (float)truncated(total, (floor_e > -126 ? floor_e : -126) - 23);
}

static void steps(void) {
  static const struct {
    tensor_format format;
    int least, bits;
  } formats[] = {{TENSOR_F16, -14, 11}, {TENSOR_BF16, -126, 8}, {TENSOR_TF32, -126, 11}};
  struct check_random random = check_random_from(1);
  int n_wrong = 0;
  for (int i = 0; i < 200000 / check_scale(); i++) {
    const int f = i % 3, n = tensor_core_step_k(formats[f].format);
    adversary_of_elements(&random, formats[f].least, formats[f].bits, n, a, b);
    const float sum = i % 4 == 0 ? 0 : (float)ldexp(check_random_unit(&random), (int)check_random_in(&random, -60, 20));
    const float got = tensor_core_step(formats[f].format, TENSOR_FRACTION_BITS_CC90, n, a, b, sum),
                expected = step_by_definition(formats[f].least, n, sum);
    if (got != expected && ++n_wrong < 5) printf("format %d: %a in place of %a\n", f, (double)got, (double)expected);
  }
  CHECK(n_wrong == 0, "%d steps differ from the definition", n_wrong);
  a[0] = INFINITY, b[0] = 1, a[1] = b[1] = 1;
  CHECK(isinf(tensor_core_step(TENSOR_F16, 25, 2, a, b, 1)), "infinity");
  b[0] = 0;
  CHECK(isnan(tensor_core_step(TENSOR_F16, 25, 2, a, b, 1)), "infinity times 0");
}

/* ---- Errors ---------------------------------------------------------------------------------- */

static wide size(wide x) { return x < 0 ? -x : x; }

/* |got - a . b| in parts of (gamma_{k+2} + more) |a| . |b| + beyond. */
static double part_with(int64_t k, double more, double beyond, float got) {
  const double u = 0x1p-24, gamma = (double)(k + 2) * u / (1 - (double)(k + 2) * u);
  wide exact = 0, magnitude = 0;
  for (int64_t p = 0; p < k; p++) {
    const wide product = (wide)a[p] * b[p];
    exact += product, magnitude += size(product);
  }
  const wide error = size(got - exact), bound = (gamma + more) * magnitude + beyond;
  return error == 0 ? 0 : bound == 0 ? INFINITY : (double)(error / bound);
}

static double part_of_bound(int64_t k, float got) { return part_with(k, 0, 0, got); }

/* One subnormal number with a large partner, in every step of 16: as wgmma and mma.sync rows of an
 * H200 had it. */
static void measured_elements(void) {
  for (int p = 0; p < 16; p++) a[p] = p ? 0x1.ffcp-13f : 0x1p-24f, b[p] = p ? 0x1p-13f : 0x1p14f;
  const double of_f16 = part_of_bound(16, tensor_core_dot(TENSOR_F16, 25, 16, a, b, 0));
  for (int p = 0; p < 16; p++) a[p] = p ? 0x1.fcp-13f : 0x1p-133f, b[p] = p ? 0x1p-13f : 0x1p126f;
  const double of_bf16 = part_of_bound(16, tensor_core_dot(TENSOR_BF16, 25, 16, a, b, 0));
  CHECK(fabs(of_f16 - 426) < 1, "F16: %.2f times the bound; on the GPU it was 426 times", of_f16);
  CHECK(fabs(of_bf16 - 53) < 1, "BF16: %.2f times the bound; on the GPU it was 53 times", of_bf16);
}

static void put_measured(int64_t k) {
  for (int64_t p = 0; p < k; p++) {
    a[p] = p == 0 ? 0x1p14f : p % 16 == 1 ? 0x1p-24f : 0x1.ffcp-13f;
    b[p] = p == 0 ? 0 : p % 16 == 1 ? 0x1p14f : 0x1p-13f;
  }
}

/* The rule of 632f9fa, which looked at what slices leave out alone. */
static void measured_slices(void) {
  static const struct {
    int64_t k;
    double part;
  } measured[] = {{128, 58.5}, {512, 14.9}, {2048, 3.7}, {4096, 1.87}};
  for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++) {
    const int64_t k = measured[i].k;
    sliced_by by;
    put_measured(k);
    const double before = part_of_bound(k, sliced_model_dot(2, sliced_model_rule_by_rest, k, a, b, &by));
    CHECK(by == SLICED_BY_TWO && fabs(before / measured[i].part - 1) < 0.02,
          "k = %d: %.3f times the bound; on the GPU it was %.2f times", (int)k, before, measured[i].part);
    const double now = part_of_bound(k, sliced_model_dot(2, sliced_model_rule, k, a, b, &by));
    CHECK(by == SLICED_BY_THREE && now < 1, "k = %d: %.3f times the bound, from %d slices", (int)k, now, (int)by);
  }
}

/* ---- Adversaries ----------------------------------------------------------------------------- */

static int64_t k_drawn(struct check_random *random) {
  static const int64_t all[] = {128, 128, 129, 143, 144, 160, 256, 512, 1000};
  return all[check_random_in(random, 0, 8)];
}

/* How many of so many products a rule leaves beyond the bound; the worst of those that came from
 * each arithmetic. */
typedef struct outcome {
  int n_beyond, n_by[4];
  double worst[4];
} outcome;

static outcome run_adversaries(int n_slices, slices_rule *rule, int n) {
  struct check_random random = check_random_from(2);
  /* of elements with 11 significant bits */
  const double of_rounded = n_slices == 1 ? 0x1p-10 + 0x1p-22 : 0;
  outcome all = {0};
  for (int i = 0; i < n; i++) {
    const int64_t k = k_drawn(&random);
    sliced_by by;
    adversary_of_slices(&random, k, a, b);
    const double part = part_with(k, of_rounded, 0, sliced_model_dot(n_slices, rule, k, a, b, &by));
    all.n_by[by]++, all.n_beyond += !(part <= 1);
    if (!(part <= all.worst[by])) all.worst[by] = part;
  }
  return all;
}

static void two_slices(void) {
  const int n = 100000 / check_scale();
  const outcome now = run_adversaries(2, sliced_model_rule, n), before = run_adversaries(2, sliced_model_rule_by_rest, n / 5);
  printf("%d adversaries: %d from two slices, at worst %.3f of the bound; %d from three, %.3f; %d from multiply-adds, %.3f\n", n,
         now.n_by[2], now.worst[2], now.n_by[3], now.worst[3], now.n_by[0], now.worst[0]);
  printf("by what slices leave out alone: %d of %d beyond it, at worst %.1f times\n", before.n_beyond, n / 5, before.worst[2]);
  CHECK(now.n_beyond == 0, "%d of %d products are beyond the bound", now.n_beyond, n);
  CHECK(now.n_by[2] > n / 5 && now.n_by[3] > n / 5 && now.n_by[0] > 0, "the adversaries miss an arithmetic");
  CHECK(before.n_beyond > 0, "the adversaries do not find what they were made for");
}

/* All elements the same, beside the largest ones, which meet zeros: just beyond half a place of
 * slice 0 and of slice 1, so that each leaves out as much as it can of a number from `least` on. */
static double part_of_equal(slices_rule *rule, double least) {
  const int k = 128;
  const double half_place = 0x1p-25;
  sliced_by by;
  for (int p = 0; p < k; p++) a[p] = b[p] = (float)(least + half_place + half_place * 0x1p-11);
  a[0] = b[1] = 0x1p14f, b[0] = a[1] = 0;
  return part_of_bound(k, sliced_model_dot(2, rule, k, a, b, &by));
}

static bool rule_from_17(int n_slices, float x, float scaled) {
  return n_slices == 2 ? x == 0 || fabsf(scaled) >= 0x1p-17f : sliced_model_rule(n_slices, x, scaled);
}

/* A slice 0 one place below its field costs all other products of its step most. */
static void put_truncated(void) {
  for (int p = 0; p < 128; p++) {
    a[p] = p % 32 == 0 ? 0x1.004048p-15f : 0x1.ffcp-14f;
    b[p] = p % 32 == 0 ? 0x1.00a022p13f : p % 32 < 16 ? 0x1.ffcp-14f : 0x1.ffcp-15f;
  }
  a[126] = b[127] = 0x1p14f, b[126] = a[127] = 0;
}

/* How near the rule comes to the bound, and that a laxer one goes beyond it. */
static void rule_is_needed(void) {
  const double of_rule = part_of_equal(sliced_model_rule, 0x1p-15), of_laxer = part_of_equal(rule_from_17, 0x1p-17);
  sliced_by by;
  put_truncated();
  const double truncated = part_of_bound(128, sliced_model_dot(2, sliced_model_rule, 128, a, b, &by));
  printf("equal elements: %.3f of the bound, from 2^-17 on %.3f; truncated products %.3f\n", of_rule, of_laxer, truncated);
  CHECK(of_rule > 0.2 && of_rule < 1, "equal elements: %.3f of the bound", of_rule);
  CHECK(by == SLICED_BY_TWO && truncated > 0.3 && truncated < 1, "truncated products: %.3f of the bound, from %d slices",
        truncated, (int)by);
  CHECK(of_laxer > 2, "from 2^-17 on: %.3f of the bound", of_laxer);
}

/* A complex product is one of reals with 2 k: [re a, -im a] times [re b, im b] is re, [im a, re a]
 * times it im. The worst part of one, in parts of gamma_n |a| . |b|. */
static double complex_part(int n_slices, slices_rule *rule, int64_t k, int64_t n, const float *x, const float *y, int n_by[4]) {
  static float row[2][2 * MOST_K];
  wide exact[2] = {0, 0}, magnitude = 0;
  for (int64_t p = 0; p < 2 * k; p += 2) {
    row[0][p] = x[p], row[0][p + 1] = -x[p + 1], row[1][p] = x[p + 1], row[1][p + 1] = x[p];
    exact[0] += (wide)x[p] * y[p] - (wide)x[p + 1] * y[p + 1], exact[1] += (wide)x[p] * y[p + 1] + (wide)x[p + 1] * y[p];
    magnitude += (size(x[p]) + size(x[p + 1])) * (size(y[p]) + size(y[p + 1]));
  }
  const double u = 0x1p-24, gamma = (double)n * u / (1 - (double)n * u), of_rounded = n_slices == 1 ? 0x1p-10 + 0x1p-22 : 0;
  double worst = 0;
  for (int part = 0; part < 2; part++) {
    sliced_by by;
    const float got = sliced_model_dot(n_slices, rule, 2 * k, row[part], y, &by);
    worst = fmax(worst, (double)(size(got - exact[part]) / ((gamma + of_rounded) * magnitude)));
    n_by[by]++;
  }
  return worst;
}

static void complex_numbers(void) {
  static float x[2 * MOST_K], y[2 * MOST_K];
  struct check_random random = check_random_from(4);
  /* with fewer the laxer rule might get away */
  const int n = 20000 / (check_scale() < 4 ? check_scale() : 4);
  int n_beyond = 0, n_beyond_before = 0, n_beyond_of_one = 0, n_by[4] = {0}, n_by_others[4] = {0};
  for (int i = 0; i < n; i++) {
    const int64_t k = k_drawn(&random);
    adversary_of_complex(&random, k, x, y);
    n_beyond += !(complex_part(2, sliced_model_rule, k, k + 2, x, y, n_by) <= 1);
    if (i % 4 == 0) n_beyond_before += !(complex_part(2, sliced_model_rule_by_rest, k, k + 2, x, y, n_by_others) <= 1);
    if (i % 4 == 1) n_beyond_of_one += !(complex_part(1, sliced_model_rule, k, 2 * k + 2, x, y, n_by_others) <= 1);
  }
  CHECK(n_beyond == 0 && n_by[2] > n / 5 && n_by[3] > n / 5,
        "%d of %d products are beyond the bound; %d parts from two slices, %d from three", n_beyond, n, n_by[2], n_by[3]);
  CHECK(n_beyond_before > 0, "the adversaries do not find what they were made for");
  CHECK(n_beyond_of_one == 0, "%d products of one slice are beyond the bound of TF32", n_beyond_of_one);
}

/* One sum through all of 2 k, of elements of 11 bits: a large pair first, then products that lose
 * nearly all that is truncated. So of C32 in TF32 the bound is gamma_{2k+2}, not gamma_{k+2}. */
static void complex_one_slice(void) {
  static float x[2 * MOST_K], y[2 * MOST_K];
  const int k = 512;
  int n_by[4] = {0};
  for (int p = 0; p < 2 * k; p++) x[p] = 0x1.ffcp0f, y[p] = p % 16 >= 13 ? 0x1.ffcp2f : 0x1.ffcp1f;
  x[0] = y[0] = 0x1p14f, x[1] = y[1] = 0;
  const float one = tensor_core_dot(TENSOR_F16, TENSOR_FRACTION_BITS_CC90, 2 * k, x, y, 0);
  double exact = 0, magnitude = 0;
  for (int p = 0; p < 2 * k; p += 2) {
    exact += (double)x[p] * (double)y[p] + (double)x[p + 1] * (double)y[p + 1];
    magnitude += (double)(x[p] + x[p + 1]) * (double)(y[p] + y[p + 1]);
  }
  const double gamma = (k + 2) * 0x1p-24, part = fabs((double)one - exact) / (gamma * magnitude);
  CHECK(part > 1.1 && part < 2, "%.3f of gamma_{k+2}", part);
  CHECK(complex_part(1, sliced_model_rule, k, 2 * k + 2, x, y, n_by) <= 1 && n_by[1] == 2, "beyond the bound of TF32");
}

static void one_slice(void) {
  const int n = 50000 / check_scale();
  const outcome now = run_adversaries(1, sliced_model_rule, n);
  printf("%d adversaries: %d from one slice, at worst %.3f of the bound\n", n, now.n_by[1], now.worst[1]);
  CHECK(now.n_beyond == 0 && now.n_by[1] > n / 20, "%d of %d products are beyond the bound, %d from a slice", now.n_beyond, n,
        now.n_by[1]);
}

/* What a subnormal element may cost the others of its step: k 2^-24 times the least normal number
 * times the largest partner of a subnormal one. */
static double of_subnormals(int64_t k, double least_normal) {
  double largest = 0;
  for (int64_t p = 0; p < k; p++) {
    if (a[p] != 0 && fabs((double)a[p]) < least_normal) largest = fmax(largest, fabs((double)b[p]));
    if (b[p] != 0 && fabs((double)b[p]) < least_normal) largest = fmax(largest, fabs((double)a[p]));
  }
  return (double)k * 0x1p-24 * least_normal * largest;
}

/* hgemm and bgemm: the bound, with what subnormal elements may add. */
static void elements(void) {
  static const struct {
    tensor_format format;
    int least, bits;
  } formats[] = {{TENSOR_F16, -14, 11}, {TENSOR_BF16, -126, 8}};
  struct check_random random = check_random_from(3);
  const int n = 100000 / check_scale();
  int n_beyond = 0, n_beyond_plain = 0, n_beyond_of_normal = 0;
  for (int i = 0; i < n; i++) {
    const int f = i % 2;
    const int64_t k = check_random_in(&random, 1, i % 8 ? 64 : 1000);
    adversary_of_elements(&random, formats[f].least, formats[f].bits, k, a, b);
    const float got = tensor_core_dot(formats[f].format, TENSOR_FRACTION_BITS_CC90, k, a, b, 0);
    const double more = of_subnormals(k, ldexp(1, formats[f].least)), below_range = 2 * (double)k * 0x1p-149;
    n_beyond += !(part_with(k, 0, more + below_range, got) <= 1);
    if (part_with(k, 0, below_range, got) <= 1) continue;
    n_beyond_plain++, n_beyond_of_normal += more == 0;
  }
  CHECK(n_beyond == 0, "%d of %d sums are beyond the bound", n_beyond, n);
  CHECK(n_beyond_plain > 0 && n_beyond_of_normal == 0, "beyond the bound of normal numbers: %d, of which %d have only such",
        n_beyond_plain, n_beyond_of_normal);
}

/* ---- Slices of floats as they are (fused_model.h) -------------------------------------------- */

/* All elements the same, of which high and low are as far from BF16 as can be. */
static void put_far_from_bf16(int64_t k) {
  for (int64_t p = 0; p < k; p++) a[p] = 0x1.0102p0f + 0x1.01p-12f, b[p] = 0x1.01p0f + 0x1.01fep-11f;
}

static double worst_of_fused(fused_cross cross, int n) {
  struct check_random random = check_random_from(3);
  double worst = 0;
  for (int i = 0; i < n; i++) {
    int64_t k = fused_least_k(cross) + check_random_in(&random, 0, i % 4 ? 40 : 900);
    if (i % 8 == 0)
      put_far_from_bf16(k = fused_least_k(cross));
    else if (i % 8 == 1)
      for (int64_t p = 0; p < k; p++)
        a[p] = (float)check_random_in(&random, 1 << 23, 1 << 24), b[p] = (float)check_random_in(&random, 1 << 23, 1 << 24);
    else
      adversary_of_slices(&random, k, a, b);
    if (!fused_model_stands_for(k, a) || !fused_model_stands_for(k, b)) continue;
    const double part = part_of_bound(k, fused_model_dot(cross, k, i % 3 ? 1 : 2, a, b));
    if (!(part <= worst)) worst = part;
  }
  return worst;
}

static void fused(void) {
  const int n = 20000 / check_scale();
  static const char *const names[] = {"cross products of TF32", "of BF16", "all in one sum"};
  for (int cross = FUSED_CROSS_TF32; cross <= FUSED_IN_ONE_SUM; cross++) {
    const double worst = worst_of_fused((fused_cross)cross, n);
    printf("%d adversaries, %s: at worst %.3f of the bound\n", n, names[cross], worst);
    CHECK(worst <= 1, "%s: at worst %.3f of the bound", names[cross], worst);
  }
}

static const struct check_case cases[] = {{"steps", steps},
                                          {"measured_elements", measured_elements},
                                          {"measured_slices", measured_slices},
                                          {"two_slices", two_slices},
                                          {"rule_is_needed", rule_is_needed},
                                          {"complex_numbers", complex_numbers},
                                          {"complex_one_slice", complex_one_slice},
                                          {"one_slice", one_slice},
                                          {"elements", elements},
                                          {"fused", fused}};
CHECK_MAIN("tensor_core", cases)
