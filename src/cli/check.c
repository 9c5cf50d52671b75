/* The reference that judges products: see check.h.
 *
 * Sums run in pairs of doubles (Ogita, Rump and Oishi's Dot2): each product and each addition is
 * split into its rounded value and its rounding error by fma and Knuth's two-sum, and the errors
 * are summed beside. That is as good as twice the precision of double, so that what the reference
 * itself is off by does not count against any bound here. Needs -ffp-contract=off. */
#include "check.h"
#include "bench/harness/random.h"
#include "types.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#if defined(__FAST_MATH__)
#error "the error-free sums below are not error-free under -ffast-math"
#endif

ws_view ws_view_transposed(ws_view v, bool conjugate) {
  return (ws_view){v.type, v.data, v.n_cols, v.n_rows, v.col_stride, v.row_stride, v.is_conj != conjugate};
}

/* ---- Sums in doubled precision --------------------------------------------------------------- */

typedef struct {
  double hi, lo; /* hi: the sum as plain double arithmetic has it; lo: what it lost */
} sum;

static inline void add_product(sum *s, double a, double b) {
  double p = a * b, p_error = fma(a, b, -p);
  double t = s->hi + p, z = t - s->hi;
  s->lo += (s->hi - (t - z)) + (p - z) + p_error;
  s->hi = t;
}

/* After an overflow or NaN the error part is NaN and says nothing: then hi alone counts. A zero
 * part of a scalar adds nothing, whatever it stands before: kernels are free to leave out such
 * products. */
static void add_scaled(sum *s, double factor, sum x) {
  if (factor == 0) return;
  add_product(s, factor, x.hi);
  if (isfinite(x.hi)) add_product(s, factor, x.lo);
}

typedef struct {
  sum re, im;
  double magnitude; /* |alpha| |A| |B| + |beta| |C| */
  double greatest;  /* most that stood anywhere on the way to it */
} element;

/* A row of A or a column of B, real and imaginary parts apart. */
typedef struct {
  double *re, *im;
} line;

static line line_at(double *workspace, int64_t n) { return (line){workspace, workspace + n}; }

static void read_line(const ws_view *v, int64_t first, int64_t stride, int64_t n, line out) {
  const char *data = v->data;
  const int64_t bytes = ws_cli_types[v->type].bytes;
  const double im_sign = v->is_conj ? -1 : 1;
  switch (v->type) {
  case WSGEMM_F32:
    for (int64_t l = 0; l < n; l++) out.re[l] = *(const float *)(data + (first + l * stride) * bytes);
    break;
  case WSGEMM_F64:
    for (int64_t l = 0; l < n; l++) out.re[l] = *(const double *)(data + (first + l * stride) * bytes);
    break;
  case WSGEMM_F16:
  case WSGEMM_BF16:
    for (int64_t l = 0; l < n; l++) out.re[l] = ws_cli_get(v->type, data, first + l * stride);
    break;
  case WSGEMM_C32:
    for (int64_t l = 0; l < n; l++) {
      const wsgemm_cfloat *z = (const wsgemm_cfloat *)(data + (first + l * stride) * bytes);
      out.re[l] = z->re;
      out.im[l] = im_sign * z->im;
    }
    break;
  case WSGEMM_C64:
    for (int64_t l = 0; l < n; l++) {
      const wsgemm_cdouble *z = (const wsgemm_cdouble *)(data + (first + l * stride) * bytes);
      out.re[l] = z->re;
      out.im[l] = im_sign * z->im;
    }
    break;
  }
}

static wsgemm_cdouble read_element(const ws_view *v, int64_t i, int64_t j) {
  double re = 0, im = 0;
  read_line(v, i * v->row_stride + j * v->col_stride, 0, 1, (line){&re, &im});
  return (wsgemm_cdouble){re, im};
}

static double magnitude_of(wsgemm_cdouble z) { return fabs(z.re) + fabs(z.im); }

static element dot(line a, line b, int64_t k, bool is_complex) {
  element e = {0};
  for (int64_t l = 0; l < k && !is_complex; l++) {
    add_product(&e.re, a.re[l], b.re[l]);
    e.magnitude += fabs(a.re[l] * b.re[l]);
  }
  for (int64_t l = 0; l < k && is_complex; l++) {
    add_product(&e.re, a.re[l], b.re[l]);
    add_product(&e.re, -a.im[l], b.im[l]);
    add_product(&e.im, a.re[l], b.im[l]);
    add_product(&e.im, a.im[l], b.re[l]);
    e.magnitude += (fabs(a.re[l]) + fabs(a.im[l])) * (fabs(b.re[l]) + fabs(b.im[l]));
  }
  return e;
}

static void add_scaled_complex(element *e, wsgemm_cdouble factor, sum re, sum im) {
  add_scaled(&e->re, factor.re, re);
  add_scaled(&e->re, -factor.im, im);
  add_scaled(&e->im, factor.re, im);
  add_scaled(&e->im, factor.im, re);
}

static bool is_zero(wsgemm_cdouble z) { return z.re == 0 && z.im == 0; }

/* alpha ab + beta c. */
static element finish(element ab, const ws_product *p, int64_t i, int64_t j) {
  element e = {.greatest = ab.magnitude, .magnitude = magnitude_of(p->alpha) * ab.magnitude};
  add_scaled_complex(&e, p->alpha, ab.re, ab.im);
  if (!is_zero(p->beta)) {
    wsgemm_cdouble c = read_element(&p->before, i, j);
    add_scaled_complex(&e, p->beta, (sum){c.re, 0}, (sum){c.im, 0});
    e.magnitude += magnitude_of(p->beta) * magnitude_of(c);
  }
  /* Written so that a NaN gets through. */
  if (!(e.greatest >= e.magnitude)) e.greatest = e.magnitude;
  return e;
}

/* ---- Judging --------------------------------------------------------------------------------- */

static double error_bound(const element *e, wsgemm_type type, double n_terms, double alpha_magnitude) {
  const bool is_single = ws_cli_types[type].part_bytes <= 4; /* halves are summed so, too */
  const double u = is_single ? FLT_EPSILON / 2 : DBL_EPSILON / 2, least = is_single ? FLT_TRUE_MIN : DBL_TRUE_MIN;
  const double nu = (n_terms + 2) * u;
  /* Beyond nu = 1/2 gamma means nothing any more; nu itself still bounds a plain sum (Jeannerod and
   * Rump). */
  const double gamma = nu < 0.5 ? nu / (1 - nu) : nu;
  return gamma * e->magnitude + (2 * n_terms * alpha_magnitude + 4) * least;
}

static bool all_finite(line x, int64_t n, bool is_complex) {
  for (int64_t l = 0; l < n; l++)
    if (!isfinite(x.re[l]) || (is_complex && !isfinite(x.im[l]))) return false;
  return true;
}

/* err / bound of a number. Of half precision the one rounding to its type is taken off, and from
 * half an ulp beyond the largest number on it makes an infinity. */
static double judge_number(double got, sum wanted, double bound, wsgemm_type type) {
  const double sought = wanted.hi + wanted.lo, largest = ws_cli_largest(type), beyond = largest + ws_cli_half_ulp(type, largest);
  if (isinf(got)) return fabs(sought) + bound >= beyond && signbit(got) == signbit(sought) ? 0 : INFINITY;
  if (fabs(sought) - bound >= beyond) return INFINITY;
  const double off = fabs((got - wanted.hi) - wanted.lo), rounding = ws_cli_half_ulp(type, fabs(sought) + bound);
  return (off <= rounding ? 0 : off - rounding) / bound;
}

/* err / bound where NaN or infinity is in play: 0 if it shows as it should, else infinite. Which of
 * both a complex product makes of an infinity depends on how it is written, so there only that it
 * is no number counts. */
static double judge_special(double got, double wanted, bool is_complex) {
  if (is_complex) return isfinite(wanted) || !isfinite(got) ? 0 : INFINITY;
  if (isnan(wanted)) return isnan(got) ? 0 : INFINITY;
  if (isinf(wanted)) return got == wanted ? 0 : INFINITY;
  return 0;
}

static void note(ws_check *out, double ratio, int64_t i, int64_t j, bool is_imaginary, double got, double wanted, double bound) {
  if (ratio <= out->worst || isnan(out->worst)) return;
  out->worst = ratio;
  out->row_idx = i;
  out->col_idx = j;
  out->is_imaginary = is_imaginary;
  out->got = got;
  out->wanted = wanted;
  out->bound = bound;
}

typedef struct {
  const ws_product *p;
  int64_t k; /* 0 if alpha = 0 */
  bool is_complex;
  line row, col;
  ws_check *out;
} judge;

/* Judges C(i, j); the column of B is in place already. */
static void judge_element(judge *g, int64_t i, int64_t j) {
  const ws_product *p = g->p;
  /* of what it is summed in */
  const double largest = ws_cli_types[p->c.type].part_bytes <= 4 ? FLT_MAX : DBL_MAX;
  read_line(&p->a, i * p->a.row_stride, p->a.col_stride, g->k, g->row);
  const element e = finish(dot(g->row, g->col, g->k, g->is_complex), p, i, j);
  const wsgemm_cdouble got = read_element(&p->c, i, j);
  const double gots[2] = {got.re, got.im};
  const sum wanted[2] = {e.re, e.im};

  const bool in_range = e.greatest <= largest;
  if (!in_range) {
    const wsgemm_cdouble c = is_zero(p->beta) ? (wsgemm_cdouble){0, 0} : read_element(&p->before, i, j);
    if (all_finite(g->row, g->k, g->is_complex) && all_finite(g->col, g->k, g->is_complex) && isfinite(c.re) && isfinite(c.im)) {
      g->out->n_unjudged++;
      return;
    }
  }
  const double bound = error_bound(&e, p->c.type, (double)g->k, magnitude_of(p->alpha));
  for (int part = 0; part < 1 + g->is_complex; part++) {
    const double sought = wanted[part].hi + (isfinite(wanted[part].hi) ? wanted[part].lo : 0);
    const double ratio = in_range ? judge_number(gots[part], wanted[part], bound, p->c.type)
                                  : judge_special(gots[part], wanted[part].hi, g->is_complex);
    note(g->out, ratio, i, j, part == 1, gots[part], sought, bound);
  }
  g->out->n_checked++;
}

/* ---- Which elements -------------------------------------------------------------------------- */

/* The idx-th of n_picked out of 0 .. n - 1: the first, the last, and others at random; all of them
 * if n_picked = n. */
static int64_t pick(int64_t idx, int64_t n_picked, int64_t n, uint64_t *random_state) {
  if (n_picked >= n || idx == 0) return idx;
  if (idx == 1) return n - 1;
  return (int64_t)(ws_random(random_state) % (uint64_t)n);
}

static int64_t clamp(int64_t x, int64_t least, int64_t most) { return x < least ? least : x > most ? most : x; }

bool ws_check_product(const ws_product *p, int64_t max_terms, uint64_t seed, ws_check *out) {
  const int64_t m = p->c.n_rows, n = p->c.n_cols;
  const bool is_complex = ws_cli_types[p->c.type].n_parts == 2;
  const int64_t k = is_zero(p->alpha) ? 0 : p->a.n_cols;
  *out = (ws_check){0};
  if (m == 0 || n == 0) return true;

  double *workspace = malloc(sizeof(double) * 4 * (size_t)(k + 1));
  if (!workspace) return false;
  judge g = {p, k, is_complex, line_at(workspace, k + 1), line_at(workspace + 2 * (k + 1), k + 1), out};

  const int64_t terms = (k + 1) * (is_complex ? 4 : 1), n_most = max_terms / terms > 4 ? max_terms / terms : 4;
  int64_t n_cols = n, n_rows = m;
  if (m > n_most / n) {
    const int64_t side = (int64_t)sqrt((double)n_most);
    n_rows = clamp(side, 1, m);
    n_cols = clamp(n_most / n_rows, 1, n);
    n_rows = clamp(n_most / n_cols, 1, m);
  }
  out->worst = -1; /* the first element, however right, shall be noted */
  for (int64_t col_idx = 0; col_idx < n_cols; col_idx++) {
    const int64_t j = pick(col_idx, n_cols, n, &seed);
    read_line(&p->b, j * p->b.col_stride, p->b.row_stride, k, g.col);
    for (int64_t row_idx = 0; row_idx < n_rows; row_idx++) judge_element(&g, pick(row_idx, n_rows, m, &seed), j);
  }
  if (out->worst < 0) out->worst = 0;
  free(workspace);
  return true;
}

bool ws_check_passed(const ws_check *check) { return check->worst < 1; }

void ws_check_describe(const ws_check *check, char *text, size_t bytes) {
  snprintf(text, bytes, "err/bound %.3g in element (%" PRId64 ", %" PRId64 ")%s: got %.9g, should be %.9g", check->worst,
           check->row_idx, check->col_idx, check->is_imaginary ? ", imaginary part" : "", check->got, check->wanted);
}
