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

/* Of a whole in 113 bits, term by term: any doubles. */
static void extend_wide(struct product *p, const struct values *a, const struct values *b, int64_t k) {
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
}

/* A row of sums, each a double and what it has lost (Ogita, Rump, Oishi 2005, "Accurate sum and dot product": off by (k/2^53)^2 of
 * the magnitude at most, and for small whole numbers not at all): a tenth of the time of 113 bits, which the processor does not have. */
struct row {
  double *sum, *lost;
};

/* The upper 26 bits; the others are what is left of x. */
static inline double upper_half(double x) {
  const double t = 134217729.0 * x;
  return t - (t - x);
}

static inline void add_term(struct row row, int64_t j, double term, double lost_of_term) {
  const double before = row.sum[j], sum = before + term, added = sum - before;
  row.sum[j] = sum;
  row.lost[j] += (before - (sum - added)) + (term - added) + lost_of_term;
}

/* A term and its rounding error, of halves whose products are exact (Dekker 1971). */
static void add_products(struct row row, double a, const double *b, const double *b_upper, int64_t n) {
  const double a_upper = upper_half(a), a_lower = a - a_upper;
  for (int64_t j = 0; j < n; j++) {
    const double term = a * b[j], b_lower = b[j] - b_upper[j];
    const double lost = ((a_upper * b_upper[j] - term) + a_upper * b_lower + a_lower * b_upper[j]) + a_lower * b_lower;
    add_term(row, j, term, lost);
  }
}

static void extend_doubles(struct product *p, const struct values *a, const struct values *b, int64_t k) {
  const int64_t n = p->n, n_terms = k - p->k;
  double *upper = malloc((size_t)(2 * n_terms * n + 1) * sizeof *upper), *rows = malloc((size_t)(6 * n + 1) * sizeof *rows);
  REQUIRE(upper && rows, "memory for the halves of %lld x %lld", (long long)n_terms, (long long)n);
  double *upper_im = upper + n_terms * n;
  for (int64_t l = 0; l < n_terms; l++)
    for (int64_t j = 0; j < n; j++) {
      upper[l * n + j] = upper_half(b->re[(p->k + l) * b->cols + j]);
      upper_im[l * n + j] = upper_half(b->im[(p->k + l) * b->cols + j]);
    }
  const struct row re = {rows, rows + n}, im = {rows + 2 * n, rows + 3 * n}, magnitude = {rows + 4 * n, rows + 5 * n};
  for (int64_t i = 0; i < p->m; i++) {
    memset(rows, 0, (size_t)(6 * n) * sizeof *rows);
    for (int64_t l = 0; l < n_terms; l++) {
      const double a_re = a->re[i * a->cols + p->k + l], a_im = a->im[i * a->cols + p->k + l], a_abs = fabs(a_re) + fabs(a_im);
      const double *b_re = b->re + (p->k + l) * b->cols, *b_im = b->im + (p->k + l) * b->cols;
      add_products(re, a_re, b_re, upper + l * n, n);
      if (a->is_complex) {
        add_products(re, -a_im, b_im, upper_im + l * n, n);
        add_products(im, a_re, b_im, upper_im + l * n, n);
        add_products(im, a_im, b_re, upper + l * n, n);
      }
      for (int64_t j = 0; j < n; j++) add_term(magnitude, j, a_abs * (fabs(b_re[j]) + fabs(b_im[j])), 0);
    }
    for (int64_t j = 0; j < n; j++) {
      p->re[i * n + j] += (wide)re.sum[j] + re.lost[j];
      p->im[i * n + j] += (wide)im.sum[j] + im.lost[j];
      p->magnitude[i * n + j] += (wide)magnitude.sum[j] + magnitude.lost[j];
    }
  }
  free(upper);
  free(rows);
}

/* No term, half or error of a term of such numbers overflows or is below the normal range. */
static bool is_moderate(double x) { return x == 0 || (fabs(x) > 0x1p-440 && fabs(x) < 0x1p440); }

static bool are_moderate(const struct values *x, int64_t row, int64_t end_row, int64_t col, int64_t end_col) {
  for (int64_t i = row; i < end_row; i++)
    for (int64_t j = col; j < end_col; j++)
      if (!is_moderate(x->re[i * x->cols + j]) || !is_moderate(x->im[i * x->cols + j])) return false;
  return true;
}

void product_extend(struct product *p, const struct values *a, const struct values *b, int64_t k) {
  REQUIRE(k >= p->k && a->rows >= p->m && a->cols >= k && b->rows >= k && b->cols >= p->n, "reference up to k = %lld",
          (long long)k);
  const bool is_plain = are_moderate(a, 0, p->m, p->k, k) && are_moderate(b, p->k, k, 0, p->n);
  (is_plain ? extend_doubles : extend_wide)(p, a, b, k);
  p->k = k;
}

static void add_whole(double *sum, double a, const double *b, int64_t n) {
  for (int64_t j = 0; j < n; j++) sum[j] += a * b[j];
}

void product_whole(struct product *p, const struct values *a, const struct values *b, int64_t k) {
  const int64_t n = p->n;
  double *re = malloc((size_t)(2 * n + 1) * sizeof *re), *im = re + n;
  REQUIRE(re, "memory");
  for (int64_t i = 0; i < p->m; i++) {
    memset(re, 0, (size_t)(2 * n) * sizeof *re);
    for (int64_t l = 0; l < k; l++) {
      const double a_re = a->re[i * a->cols + l], a_im = a->im[i * a->cols + l];
      const double *b_re = b->re + l * b->cols, *b_im = b->im + l * b->cols;
      add_whole(re, a_re, b_re, n);
      if (!a->is_complex) continue;
      add_whole(re, -a_im, b_im, n);
      add_whole(im, a_re, b_im, n);
      add_whole(im, a_im, b_re, n);
    }
    for (int64_t j = 0; j < n; j++) p->re[i * n + j] = re[j], p->im[i * n + j] = im[j];
  }
  p->k = k;
  free(re);
}

struct element {
  wide re, im;    /* exact but for 2^-80 of the magnitude, or less */
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
