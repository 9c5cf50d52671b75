/* reference.c - the reference product and the judgement: see reference.h. It calls nothing of the
 * library.
 *
 * Invariant: whatever is accepted without 113-bit arithmetic is accepted by a bound that covers the
 * error of the double arithmetic used for it; NaN is never accepted. */
#include "reference.h"
#include "gemm_call.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static wide wide_abs(wide x) { return x < 0 ? -x : x; }

struct product product_new(int64_t m, int64_t n) {
  const size_t size = (size_t)(m * n + 1);
  struct product p = {m, n, 0, calloc(size, sizeof(wide)), calloc(size, sizeof(wide)), calloc(size, sizeof(wide))};
  REQUIRE(p.re && p.im && p.magnitude, "memory for a reference of %lld x %lld", (long long)m, (long long)n);
  return p;
}

void product_free(struct product *product) {
  free(product->re);
  free(product->im);
  free(product->magnitude);
  *product = (struct product){0};
}

void product_extend(struct product *p, const struct values *a, const struct values *b, int64_t k) {
  REQUIRE(k >= p->k && a->rows >= p->m && a->cols >= k && b->rows >= k && b->cols >= p->n, "reference up to k = %lld",
          (long long)k);
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t l = p->k; l < k; l++) {
      const double a_re = a->re[i * a->cols + l], a_im = a->im[i * a->cols + l];
      for (int64_t j = 0; j < p->n; j++) {
        const double b_re = b->re[l * b->cols + j], b_im = b->im[l * b->cols + j];
        const int64_t at = i * p->n + j;
        p->re[at] += (wide)a_re * b_re;
        if (a->is_complex) {
          p->re[at] -= (wide)a_im * b_im;
          p->im[at] += (wide)a_re * b_im + (wide)a_im * b_re;
        }
        p->magnitude[at] += (wide)((fabs(a_re) + fabs(a_im)) * (fabs(b_re) + fabs(b_im)));
      }
    }
  p->k = k;
}

void product_whole(struct product *product, const struct values *a, const struct values *b, int64_t k) {
  int64_t *sum_re = malloc((size_t)product->n * sizeof *sum_re), *sum_im = malloc((size_t)product->n * sizeof *sum_im);
  int32_t *b_re = malloc((size_t)(k * product->n + 1) * sizeof *b_re),
          *b_im = malloc((size_t)(k * product->n + 1) * sizeof *b_im);
  REQUIRE(sum_re && sum_im && b_re && b_im, "memory");
  for (int64_t l = 0; l < k; l++)
    for (int64_t j = 0; j < product->n; j++) {
      b_re[l * product->n + j] = (int32_t)b->re[l * b->cols + j];
      b_im[l * product->n + j] = (int32_t)b->im[l * b->cols + j];
    }
  for (int64_t i = 0; i < product->m; i++) {
    memset(sum_re, 0, (size_t)product->n * sizeof *sum_re);
    memset(sum_im, 0, (size_t)product->n * sizeof *sum_im);
    for (int64_t l = 0; l < k; l++) {
      const int32_t a_re = (int32_t)a->re[i * a->cols + l], a_im = (int32_t)a->im[i * a->cols + l];
      const int32_t *x = b_re + l * product->n, *y = b_im + l * product->n;
      for (int64_t j = 0; j < product->n; j++) {
        sum_re[j] += a_re * x[j] - a_im * y[j];
        sum_im[j] += a_re * y[j] + a_im * x[j];
      }
    }
    for (int64_t j = 0; j < product->n; j++) {
      product->re[i * product->n + j] = (wide)sum_re[j];
      product->im[i * product->n + j] = (wide)sum_im[j];
    }
  }
  product->k = k;
  free(sum_re);
  free(sum_im);
  free(b_re);
  free(b_im);
}

struct element {
  wide re, im;    /* exact but for 113-bit rounding */
  wide magnitude; /* |alpha| |A| |B| + |beta| |C| */
};

/* A real scalar scales the components: Inf stays Inf, where the full complex product would make Inf
 * * 0 of it. */
static void add_scaled(struct element *e, const double scalar[2], wide re, wide im, wide magnitude) {
  e->re += (wide)scalar[0] * re;
  e->im += (wide)scalar[0] * im;
  if (scalar[1] != 0) {
    e->re -= (wide)scalar[1] * im;
    e->im += (wide)scalar[1] * re;
  }
  e->magnitude += (wide)(fabs(scalar[0]) + fabs(scalar[1])) * magnitude;
}

static bool is_zero(const double scalar[2]) { return scalar[0] == 0 && scalar[1] == 0; }

static struct element element_exact(const struct product *p, int64_t i, int64_t j, const double alpha[2], const double beta[2],
                                    const struct values *c_before) {
  struct element e = {0, 0, 0};
  if (!is_zero(alpha) && p->k > 0) add_scaled(&e, alpha, p->re[i * p->n + j], p->im[i * p->n + j], p->magnitude[i * p->n + j]);
  if (!is_zero(beta)) {
    const double c_re = c_before->re[i * c_before->cols + j], c_im = c_before->im[i * c_before->cols + j];
    add_scaled(&e, beta, c_re, c_im, fabs(c_re) + fabs(c_im));
  }
  return e;
}

/* Accepts most elements at the cost of double arithmetic: the estimate is off by less than 16
 * DBL_EPSILON times the magnitude, and for whole numbers (gamma = 0) not at all. */
static bool is_surely_within(const struct product *p, int64_t i, int64_t j, const double alpha[2], const double beta[2],
                             const struct values *c_before, double gamma, wsgemm_type type_c, double got_re, double got_im) {
  const int64_t at = i * p->n + j;
  const double p_re = (double)p->re[at], p_im = (double)p->im[at];
  double c_re = 0, c_im = 0;
  if (!is_zero(beta)) {
    c_re = c_before->re[i * c_before->cols + j];
    c_im = c_before->im[i * c_before->cols + j];
  }
  const double re = alpha[0] * p_re - alpha[1] * p_im + (beta[0] * c_re - beta[1] * c_im);
  const double im = alpha[0] * p_im + alpha[1] * p_re + (beta[0] * c_im + beta[1] * c_re);
  const double magnitude =
      (fabs(alpha[0]) + fabs(alpha[1])) * (double)p->magnitude[at] + (fabs(beta[0]) + fabs(beta[1])) * (fabs(c_re) + fabs(c_im));
  if (gamma == 0) return got_re == type_round(type_c, re) && got_im == type_round(type_c, im);
  const double tolerance = (gamma - 16 * DBL_EPSILON) * magnitude;
  return fabs(got_re - re) < tolerance && fabs(got_im - im) < tolerance;
}

static struct verdict judge(const wsgemm_gemm_desc *d, const struct product *p, const struct values *c_before,
                            const struct matrix *c, bool exactly) {
  struct verdict verdict = {true, 0, -1, -1, 0, 0, 0, 0};
  const double unit = type_is_double(d->type_a) ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
  const double gamma = exactly ? 0 : (double)(d->k + 2) * unit / (1 - (double)(d->k + 2) * unit);
  double alpha[2], beta[2];
  scalar_get(d->type_a, &d->alpha, alpha);
  scalar_get(d->type_a, &d->beta, beta);
  /* What products, sums and results below the normal range may add. */
  const double least = type_is_double(d->type_a) ? 0x1p-1074 : 0x1p-149;
  const wide underflow = (2 * (wide)d->k * (fabs(alpha[0]) + fabs(alpha[1])) + 4) * least;
  REQUIRE(p->k == d->k && p->m >= d->m && p->n >= d->n, "a reference of k = %lld for k = %lld", (long long)p->k, (long long)d->k);
  for (int64_t i = 0; i < d->m; i++)
    for (int64_t j = 0; j < d->n; j++) {
      double re, im;
      matrix_get(c, i, j, &re, &im);
      if (is_surely_within(p, i, j, alpha, beta, c_before, gamma, d->type_c, re, im)) continue;
      struct element e = element_exact(p, i, j, alpha, beta, c_before);
      wide bound = (wide)gamma * e.magnitude;
      if (exactly)
        e.re = (wide)type_round(d->type_c, (double)e.re);
      else
        bound += underflow + (wide)type_half_ulp(d->type_c, fabs((double)e.re) + (double)bound);
      const wide off_re = wide_abs((wide)re - e.re), off_im = wide_abs((wide)im - e.im);
      const bool passed = off_re <= bound && off_im <= bound;
      const wide off = off_re > off_im ? off_re : off_im;
      const double ratio = isnan(re) || isnan(im) ? (double)NAN
                                                  : (double)(bound > 0 ? off / bound
                                                             : off > 0 ? (wide)INFINITY
                                                                       : 0);
      const bool is_worse =
          verdict.i < 0 || (!passed && verdict.passed) || (passed == verdict.passed && !(ratio <= verdict.worst));
      if (is_worse && !isnan(verdict.worst))
        verdict = (struct verdict){verdict.passed && passed, ratio, i, j, re, im, (double)e.re, (double)e.im};
    }
  return verdict;
}

struct verdict reference_judge(const wsgemm_gemm_desc *d, const struct product *product, const struct values *c_before,
                               const struct matrix *c) {
  return judge(d, product, c_before, c, false);
}

struct verdict reference_judge_exact(const wsgemm_gemm_desc *d, const struct product *product, const struct values *c_before,
                                     const struct matrix *c) {
  return judge(d, product, c_before, c, true);
}

enum number_class { NUMBER_FINITE, NUMBER_NAN, NUMBER_PLUS_INF, NUMBER_MINUS_INF };
static enum number_class class_of(double x) {
  return isnan(x) ? NUMBER_NAN : isinf(x) ? (x > 0 ? NUMBER_PLUS_INF : NUMBER_MINUS_INF) : NUMBER_FINITE;
}

bool reference_same_class(const wsgemm_gemm_desc *d, const struct product *p, const struct values *c_before,
                          const struct matrix *c, int64_t *i_bad, int64_t *j_bad) {
  double alpha[2], beta[2];
  scalar_get(d->type_a, &d->alpha, alpha);
  scalar_get(d->type_a, &d->beta, beta);
  for (int64_t i = 0; i < d->m; i++)
    for (int64_t j = 0; j < d->n; j++) {
      double re, im;
      matrix_get(c, i, j, &re, &im);
      const struct element e = element_exact(p, i, j, alpha, beta, c_before);
      if (class_of(re) != class_of((double)e.re) || class_of(im) != class_of((double)e.im)) {
        *i_bad = i;
        *j_bad = j;
        return false;
      }
    }
  return true;
}
