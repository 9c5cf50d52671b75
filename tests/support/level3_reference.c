/* level3_reference.c - the plain Level 3 routines and the judgement: see level3_reference.h. It
 * calls nothing of the library.
 *
 * Invariant: an element is accepted by long double sums only if it lies further inside the bound
 * than those can be off; else 113-bit sums decide. NaN is never accepted. */
#include "level3_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_conjugated(wsgemm_op op) { return op == WSGEMM_CONJ_TRANS || op == WSGEMM_CONJ_NO_TRANS; }

static struct values dense_new(int64_t rows, int64_t cols, bool is_complex) {
  const size_t n = (size_t)(rows * cols) + 1;
  struct values x = {rows, cols, is_complex, calloc(n, sizeof(double)), calloc(n, sizeof(double))};
  REQUIRE(x.re && x.im, "memory for %zu values", n);
  return x;
}

/* op of the upper left rows x cols corner. */
static struct values dense_op(const struct values *x, int64_t rows, int64_t cols, wsgemm_op op) {
  const bool swap = op_transposes(op);
  struct values y = dense_new(swap ? cols : rows, swap ? rows : cols, x->is_complex);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) {
      const int64_t to = swap ? j * rows + i : i * cols + j;
      y.re[to] = x->re[i * x->cols + j];
      y.im[to] = is_conjugated(op) ? -x->im[i * x->cols + j] : x->im[i * x->cols + j];
    }
  return y;
}

/* The symmetric or Hermitian matrix of which the triangle uplo is given. */
static struct values dense_symmetric(const struct values *x, int64_t size, wsgemm_uplo uplo, bool is_hermitian) {
  struct values y = dense_new(size, size, x->is_complex);
  for (int64_t i = 0; i < size; i++)
    for (int64_t j = 0; j < size; j++) {
      const bool is_given = uplo == WSGEMM_UPPER ? i <= j : i >= j;
      const int64_t from = is_given ? i * x->cols + j : j * x->cols + i;
      y.re[i * size + j] = x->re[from];
      y.im[i * size + j] = !is_hermitian ? x->im[from] : i == j ? 0 : is_given ? x->im[from] : -x->im[from];
    }
  return y;
}

static struct values dense_triangle(const struct values *x, int64_t size, const wsgemm_level3_desc *d) {
  struct values given = dense_new(size, size, x->is_complex);
  for (int64_t i = 0; i < size; i++)
    for (int64_t j = 0; j < size; j++) {
      const bool is_unit = i == j && d->diag == WSGEMM_UNIT, is_given = d->uplo == WSGEMM_UPPER ? i <= j : i >= j;
      given.re[i * size + j] = is_unit ? 1 : is_given ? x->re[i * x->cols + j] : 0;
      given.im[i * size + j] = is_unit || !is_given ? 0 : x->im[i * x->cols + j];
    }
  struct values y = dense_op(&given, size, size, d->transa);
  values_free(&given);
  return y;
}

bool level3_is_written(const wsgemm_level3_desc *d, int64_t i, int64_t j) {
  return !routine_writes_triangle(d->routine) || (d->uplo == WSGEMM_UPPER ? i <= j : i >= j);
}

static wsgemm_op flipped(wsgemm_op op, bool conjugate) {
  const bool is_trans = !op_transposes(op), is_conj = is_conjugated(op) != conjugate;
  return is_trans ? (is_conj ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS) : (is_conj ? WSGEMM_CONJ_NO_TRANS : WSGEMM_NO_TRANS);
}

struct level3_sums level3_sums_new(const struct level3_stage *stage, const wsgemm_level3_desc *d) {
  struct level3_sums s = {.n_products = 1, .m = d->m, .n = d->n, .k = level3_sum_length(d)};
  int64_t rows[3], cols[3];
  const struct values *a = &stage->x[0], *b = &stage->x[1];
  level3_shapes(d, rows, cols);
  scalar_get(d->type, &d->alpha, s.scalar[0]);
  const bool is_hermitian = d->routine == WSGEMM_HEMM || d->routine == WSGEMM_HERK || d->routine == WSGEMM_HER2K;
  const bool is_left = d->side == WSGEMM_LEFT;
  struct values structured = {0};
  switch (d->routine) {
  case WSGEMM_SYMM:
  case WSGEMM_HEMM:
    structured = dense_symmetric(a, rows[0], d->uplo, is_hermitian);
    break;
  case WSGEMM_TRMM:
  case WSGEMM_TRSM:
    structured = dense_triangle(a, rows[0], d);
    break;
  case WSGEMM_SYRK:
  case WSGEMM_HERK:
    s.left[0] = dense_op(a, rows[0], cols[0], d->transa);
    s.right[0] = dense_op(a, rows[0], cols[0], flipped(d->transa, is_hermitian));
    break;
  case WSGEMM_SYR2K:
  case WSGEMM_HER2K:
    s.n_products = 2;
    s.left[0] = dense_op(a, rows[0], cols[0], d->transa);
    s.right[0] = dense_op(b, rows[1], cols[1], flipped(d->transa, is_hermitian));
    s.left[1] = dense_op(b, rows[1], cols[1], d->transa);
    s.right[1] = dense_op(a, rows[0], cols[0], flipped(d->transa, is_hermitian));
    s.scalar[1][0] = s.scalar[0][0], s.scalar[1][1] = is_hermitian ? -s.scalar[0][1] : s.scalar[0][1];
    break;
  case WSGEMM_GEMMTR:
    s.left[0] = dense_op(a, rows[0], cols[0], d->transa);
    s.right[0] = dense_op(b, rows[1], cols[1], d->transb);
    break;
  }
  if (structured.re) {
    s.left[0] = is_left ? structured : dense_op(b, d->m, d->n, WSGEMM_NO_TRANS);
    s.right[0] = is_left ? dense_op(b, d->m, d->n, WSGEMM_NO_TRANS) : structured;
  }
  if (routine_writes_triangle(d->routine)) s.m = d->n;
  return s;
}

void level3_sums_free(struct level3_sums *s) {
  for (int p = 0; p < s->n_products; p++) values_free(&s->left[p]), values_free(&s->right[p]);
}

/* One element in a type wide enough: the sum over all products, with their scalars, and of absolute
 * values. DEFINE_ELEMENT(name, real) defines one for sums in `real`. */
struct element_of {
  wide re, im, magnitude;
};
#define DEFINE_ELEMENT(name, real)                                                   \
  static struct element_of name(const struct level3_sums *s, int64_t i, int64_t j) { \
    real re = 0, im = 0, magnitude = 0;                                              \
    for (int p = 0; p < s->n_products; p++) {                                        \
      const struct values *x = &s->left[p], *y = &s->right[p];                       \
      const double *scalar = s->scalar[p];                                           \
      real sum_re = 0, sum_im = 0, sum_abs = 0;                                      \
      if (scalar[0] == 0 && scalar[1] == 0) continue;                                \
      for (int64_t l = 0; l < s->k; l++) {                                           \
        const double x_re = x->re[i * x->cols + l], y_re = y->re[l * y->cols + j];   \
        sum_re += (real)x_re * y_re;                                                 \
        if (!x->is_complex) {                                                        \
          sum_abs += (real)fabs(x_re) * fabs(y_re);                                  \
          continue;                                                                  \
        }                                                                            \
        const double x_im = x->im[i * x->cols + l], y_im = y->im[l * y->cols + j];   \
        sum_re -= (real)x_im * y_im;                                                 \
        sum_im += (real)x_re * y_im + (real)x_im * y_re;                             \
        sum_abs += (real)(fabs(x_re) + fabs(x_im)) * (fabs(y_re) + fabs(y_im));      \
      }                                                                              \
      re += scalar[0] * sum_re - (scalar[1] != 0 ? scalar[1] * sum_im : 0);          \
      im += scalar[0] * sum_im + (scalar[1] != 0 ? scalar[1] * sum_re : 0);          \
      magnitude += (fabs(scalar[0]) + fabs(scalar[1])) * sum_abs;                    \
    }                                                                                \
    return (struct element_of){re, im, magnitude};                                   \
  }
DEFINE_ELEMENT(element_fast, long double)
DEFINE_ELEMENT(element_wide, wide)

/* Whole numbers: all sums at once, exact in double. re, im: m x n. */
static void whole_sums(const struct level3_sums *s, double *re, double *im) {
  double *row_re = calloc((size_t)s->n + 1, sizeof *row_re), *row_im = calloc((size_t)s->n + 1, sizeof *row_im);
  REQUIRE(row_re && row_im, "memory");
  for (int p = 0; p < s->n_products; p++)
    for (int64_t i = 0; i < s->m; i++) {
      const struct values *x = &s->left[p], *y = &s->right[p];
      memset(row_re, 0, (size_t)s->n * sizeof *row_re), memset(row_im, 0, (size_t)s->n * sizeof *row_im);
      for (int64_t l = 0; l < s->k; l++) {
        const double x_re = x->re[i * x->cols + l], x_im = x->im[i * x->cols + l];
        const double *y_re = y->re + l * y->cols, *y_im = y->im + l * y->cols;
        if (x_re == 0 && x_im == 0) continue; /* the other triangle */
        for (int64_t j = 0; j < s->n; j++) row_re[j] += x_re * y_re[j];
        for (int64_t j = 0; x->is_complex && j < s->n; j++) row_re[j] -= x_im * y_im[j];
        for (int64_t j = 0; x->is_complex && j < s->n; j++) row_im[j] += x_re * y_im[j] + x_im * y_re[j];
      }
      for (int64_t j = 0; j < s->n; j++) {
        re[i * s->n + j] += s->scalar[p][0] * row_re[j] - s->scalar[p][1] * row_im[j];
        im[i * s->n + j] += s->scalar[p][0] * row_im[j] + s->scalar[p][1] * row_re[j];
      }
    }
  free(row_re);
  free(row_im);
}

void level3_make_right_side(struct level3_stage *stage, const wsgemm_level3_desc *d) {
  double alpha[2];
  struct level3_stage of_solution = *stage;
  of_solution.x[1] = stage->solution;
  struct level3_sums s = level3_sums_new(&of_solution, d);
  scalar_get(d->type, &d->alpha, alpha);
  const double norm = alpha[0] * alpha[0] + alpha[1] * alpha[1];
  s.scalar[0][0] = norm > 0 ? alpha[0] / norm : 0, s.scalar[0][1] = norm > 0 ? -alpha[1] / norm : 0;
  double *re = calloc((size_t)(s.m * s.n) + 1, sizeof *re), *im = calloc((size_t)(s.m * s.n) + 1, sizeof *im);
  REQUIRE(re && im, "memory");
  whole_sums(&s, re, im);
  struct values *b = &stage->x[1];
  for (int64_t i = 0; i < s.m; i++)
    for (int64_t j = 0; j < s.n; j++) b->re[i * b->cols + j] = re[i * s.n + j], b->im[i * b->cols + j] = im[i * s.n + j];
  free(re);
  free(im);
  level3_sums_free(&s);
}

/* beta C, or for trsm -alpha B: added to an element, the magnitude only for the former. */
static void add_addend(struct element_of *e, const struct values *x, int64_t i, int64_t j, const double scalar[2], bool is_real,
                       bool counts) {
  if (scalar[0] == 0 && scalar[1] == 0) return;
  const double re = x->re[i * x->cols + j], im = is_real ? 0 : x->im[i * x->cols + j];
  e->re += (wide)scalar[0] * re;
  e->im += (wide)scalar[0] * im;
  if (scalar[1] != 0) { /* as gemm: a real scalar times Inf makes no NaN of the other part */
    e->re -= (wide)scalar[1] * im;
    e->im += (wide)scalar[1] * re;
  }
  if (counts) e->magnitude += (wide)(fabs(scalar[0]) + fabs(scalar[1])) * (wide)(fabs(re) + fabs(im));
}

static wide wide_abs(wide x) { return x < 0 ? -x : x; }

/* What is compared with what in one call. */
struct comparison {
  const wsgemm_level3_desc *d;
  struct level3_sums sums;
  const struct values *addend;
  double addend_scalar[2];
  bool is_residual; /* trsm: the sums less alpha B should be 0 */
  bool has_real_diagonal;
  bool does_nothing; /* beta = 1, and alpha or k is 0: even an imaginary part of a diagonal stays */
  double gamma, underflow;
};

static struct comparison comparison_of(const struct level3_stage *stage, const wsgemm_level3_desc *d, const struct matrix *out) {
  double alpha[2];
  struct comparison c = {.d = d, .sums = level3_sums_new(stage, d), .addend = &stage->x[2]};
  scalar_get(d->type, &d->alpha, alpha);
  c.is_residual = d->routine == WSGEMM_TRSM;
  c.has_real_diagonal = d->routine == WSGEMM_HERK || d->routine == WSGEMM_HER2K;
  if (!routine_is_triangular(d->routine)) scalar_get(d->type, &d->beta, c.addend_scalar);
  const bool no_product = c.sums.k == 0 || (alpha[0] == 0 && alpha[1] == 0);
  c.does_nothing = no_product && c.addend_scalar[0] == 1 && c.addend_scalar[1] == 0;
  const double u = ldexp(1, type_is_double(d->type) ? -53 : -24);
  const double n_terms = (double)(c.sums.k * c.sums.n_products);
  c.gamma = (n_terms + 2) * u / (1 - (n_terms + 2) * u);
  c.underflow = (2 * n_terms * (fabs(alpha[0]) + fabs(alpha[1])) + 4) * type_least(d->type);
  if (!c.is_residual) return c;
  struct values *solution = d->side == WSGEMM_LEFT ? &c.sums.right[0] : &c.sums.left[0];
  for (int64_t i = 0; i < d->m; i++)
    for (int64_t j = 0; j < d->n; j++) matrix_get(out, i, j, &solution->re[i * d->n + j], &solution->im[i * d->n + j]);
  c.addend = &stage->x[1];
  c.addend_scalar[0] = -alpha[0], c.addend_scalar[1] = -alpha[1];
  c.sums.scalar[0][0] = 1, c.sums.scalar[0][1] = 0;
  c.gamma *= 8;
  return c;
}

static struct element_of element_at(const struct comparison *c, int64_t i, int64_t j, bool fast) {
  struct element_of e = fast ? element_fast(&c->sums, i, j) : element_wide(&c->sums, i, j);
  add_addend(&e, c->addend, i, j, c->addend_scalar, c->has_real_diagonal && i == j, !c->is_residual);
  if (c->has_real_diagonal && i == j) e.im = 0;
  return e;
}

/* Whether the element has an imaginary part, NaN, that stays. */
static bool is_left_as_it_is(const struct comparison *c, int64_t i, int64_t j) {
  return c->does_nothing && c->has_real_diagonal && i == j;
}

/* Judges one element; returns its error over the bound. */
static double ratio_at(const struct comparison *c, const struct matrix *out, int64_t i, int64_t j, struct level3_verdict *v) {
  double re, im;
  matrix_get(out, i, j, &re, &im);
  const double slack = 4 * (double)(c->sums.k * 2 + 8) * (double)LDBL_EPSILON;
  double ratio = (double)NAN;
  for (int fast = slack < c->gamma / 4; fast >= 0; fast--) {
    const struct element_of e = element_at(c, i, j, fast);
    const wide off_re = wide_abs(c->is_residual ? e.re : (wide)re - e.re);
    const wide off_im = wide_abs(c->is_residual ? e.im : (wide)im - e.im);
    const wide bound = (wide)(fast ? c->gamma - slack : c->gamma) * e.magnitude + (fast ? 0 : (wide)c->underflow);
    const wide off = off_re > off_im ? off_re : off_im;
    ratio = isnan(re) || isnan(im) ? (double)NAN : bound > 0 ? (double)(off / bound) : off > 0 ? (double)INFINITY : 0;
    if (c->has_real_diagonal && i == j && im != 0) ratio = (double)INFINITY;
    if (is_left_as_it_is(c, i, j)) ratio = isnan(im) && re == (double)e.re ? 0 : (double)INFINITY;
    if (fast && ratio <= 1) break;
    v->got_re = re, v->got_im = im;
    v->expected_re = (double)e.re, v->expected_im = (double)e.im;
  }
  return ratio;
}

static struct level3_verdict judge_bound(const struct comparison *c, const struct matrix *out) {
  struct level3_verdict worst = {true, 0, -1, -1, 0, 0, 0, 0};
  for (int64_t i = 0; i < c->sums.m; i++)
    for (int64_t j = 0; j < c->sums.n; j++) {
      if (!level3_is_written(c->d, i, j)) continue;
      struct level3_verdict v = {.i = i, .j = j};
      v.worst = ratio_at(c, out, i, j, &v);
      v.passed = v.worst <= 1;
      if (worst.passed && (!v.passed || v.worst > worst.worst)) worst = v;
    }
  return worst;
}

static struct level3_verdict judge_exact(const struct level3_stage *stage, const struct comparison *c, const struct matrix *out) {
  const int64_t m = c->sums.m, n = c->sums.n;
  double *re = calloc((size_t)(m * n) + 1, sizeof *re), *im = calloc((size_t)(m * n) + 1, sizeof *im);
  REQUIRE(re && im, "memory");
  if (!c->is_residual) whole_sums(&c->sums, re, im);
  const bool is_zero = c->is_residual && c->addend_scalar[0] == 0 && c->addend_scalar[1] == 0;
  struct level3_verdict v = {true, 0, -1, -1, 0, 0, 0, 0};
  for (int64_t i = 0; i < m && v.passed; i++)
    for (int64_t j = 0; j < n && v.passed; j++) {
      if (!level3_is_written(c->d, i, j)) continue;
      struct element_of e = {re[i * n + j], im[i * n + j], 0};
      if (!c->is_residual) add_addend(&e, c->addend, i, j, c->addend_scalar, c->has_real_diagonal && i == j, false);
      if (c->has_real_diagonal && i == j) e.im = 0;
      if (c->is_residual && !is_zero) e.re = stage->solution.re[i * stage->solution.cols + j];
      if (c->is_residual && !is_zero) e.im = stage->solution.im[i * stage->solution.cols + j];
      matrix_get(out, i, j, &v.got_re, &v.got_im);
      v.expected_re = (double)e.re, v.expected_im = (double)e.im;
      v.passed = v.got_re == v.expected_re && (is_left_as_it_is(c, i, j) ? isnan(v.got_im) : v.got_im == v.expected_im);
      v.i = i, v.j = j;
    }
  if (v.passed) v.i = v.j = -1;
  free(re);
  free(im);
  return v;
}

bool level3_same_class(const struct level3_stage *stage, const wsgemm_level3_desc *d, const struct matrix *out, int64_t *i_bad,
                       int64_t *j_bad) {
  struct comparison c = comparison_of(stage, d, out);
  bool same = true;
  for (int64_t i = 0; i < c.sums.m && same; i++)
    for (int64_t j = 0; j < c.sums.n && same; j++) {
      if (!level3_is_written(d, i, j)) continue;
      double got[2];
      matrix_get(out, i, j, &got[0], &got[1]);
      const struct element_of e = element_at(&c, i, j, false);
      const double expected[2] = {(double)e.re, (double)e.im};
      for (int part = 0; part < 2; part++)
        same = same && isnan(got[part]) == isnan(expected[part]) && isinf(got[part]) == isinf(expected[part]) &&
               (!isinf(got[part]) || signbit(got[part]) == signbit(expected[part]));
      *i_bad = i, *j_bad = j;
    }
  level3_sums_free(&c.sums);
  return same;
}

struct level3_verdict level3_verdict_of(const struct level3_stage *stage, const wsgemm_level3_desc *d, const struct matrix *out,
                                        enum judge how) {
  struct comparison c = comparison_of(stage, d, out);
  const struct level3_verdict v = how == JUDGE_EXACT ? judge_exact(stage, &c, out) : judge_bound(&c, out);
  level3_sums_free(&c.sums);
  return v;
}
