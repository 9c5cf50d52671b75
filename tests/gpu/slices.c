/* slices.c - rows of slices, and what is drawn, called and judged with them: see slices.h. */
#include "slices.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check_random rng;
struct rows_of_type rows;
int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }
double unit(void) { return check_random_unit(&rng); }
bool heads(void) { return drawn(0, 1) == 1; }

int n_parts(wsgemm_type type) { return type_is_complex(type) ? 2 : 1; }

/* ---- Rows of slices, and what explain says of them ------------------------------------------- */

wsgemm_math math_of(const char *name) { return row_is_of(name, OF_ONE_PRODUCT) ? WSGEMM_MATH_TF32 : WSGEMM_MATH_DEFAULT; }

void open_sliced(wsgemm_type type, const char *families) {
  int n_kept = 0;
  rows_open(&rows, type);
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_handle *h = rows.handle[i];
    if (!is_of_family(&rows.row[i].info, families)) {
      CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
      continue;
    }
    REQUIRE(wsgemm_set_math(h, math_of(rows.row[i].name)) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    rows.row[n_kept] = rows.row[i], rows.handle[n_kept++] = h;
  }
  rows.n_rows = n_kept;
  REQUIRE(n_kept > 0, "no row of type %c is of %s", type_letter(type), families);
}

wsgemm_handle *pedantic_handle(wsgemm_type type) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int i = 0; i < wsgemm_kernel_count(); i++) {
    const wsgemm_kernel_info info = row_info_at(i);
    if (info.type == type && is_of_family(&info, "simt") && info.is_usable) {
      REQUIRE(wsgemm_set_kernel(h, info.name) == WSGEMM_SUCCESS && wsgemm_set_math(h, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS &&
                  wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS,
              "%s", wsgemm_last_error());
      return h;
    }
  }
  REQUIRE(false, "no row of multiply-adds");
  return NULL;
}

void workspace_of(wsgemm_handle *h, void *memory, size_t bytes) {
  REQUIRE(wsgemm_set_workspace(h, memory, bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

const char *kernel_of(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  static char name[128];
  REQUIRE(explained_text(h, d, "kernel", name), "no kernel is explained");
  return name;
}

wsgemm_gemm_desc to_explain(wsgemm_type type, int64_t m, int64_t n, int64_t k) {
  static void *memory;
  if (!memory) memory = gpu_alloc(256);
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, k);
  d.a = d.b = d.c = memory;
  return d;
}

void check_used(int i, int64_t m, int64_t n, int64_t k) {
  const wsgemm_gemm_desc d = to_explain(rows.type, m, n, k);
  const char *row = rows.row[i].name, *kernel = kernel_of(rows.handle[i], &d);
  CHECK(strcmp(kernel, row) == 0, "%lld x %lld x %lld on %s, not %s", (long long)m, (long long)n, (long long)k, kernel, row);
}

int64_t n_fallbacks(void) {
  int64_t n = -1;
  CHECK(wsgemm_get_fallback_count(NULL, 0, &n) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return n;
}

static bool can_slice(wsgemm_type type) {
  for (int i = 0; i < wsgemm_kernel_count(); i++) {
    const wsgemm_kernel_info info = row_info_at(i);
    wsgemm_handle *h = NULL;
    if (info.type != type || !is_of_family(&info, OF_THREE_PRODUCTS) || !info.is_usable) continue;
    REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, info.name) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const wsgemm_gemm_desc d = to_explain(type, 512, 512, 512);
    const bool is_used = strcmp(kernel_of(h, &d), info.name) == 0;
    wsgemm_destroy(h);
    if (is_used) return true;
  }
  return false;
}

void gpu_open_for_slices(wsgemm_type type) {
  gpu_open();
  if (can_slice(type)) return;
  puts("skipped: no row of slices runs on this device");
  exit(CHECK_EXIT_SKIPPED);
}

/* ---- Sizes, scalars, operands ---------------------------------------------------------------- */

int64_t drawn_side(int64_t most) {
  const int64_t edge = 64 * drawn(1, 4) + drawn(-1, 1);
  return drawn(0, 2) == 0 && edge <= most ? edge : drawn(1, most);
}
int64_t drawn_k(int64_t most) {
  const int64_t edge = 64 * drawn(2, 5) + drawn(0, 2) - 1;
  return drawn(0, 2) == 0 && edge >= 128 && edge <= most ? edge : drawn(128, most);
}

static wsgemm_scalar drawn_of(wsgemm_type type, const double (*all)[2], int n) {
  const double *one = all[drawn(0, n - 1)];
  return scalar_make(type, one[0], one[1]);
}

wsgemm_gemm_desc drawn_desc(wsgemm_type type, int64_t m, int64_t n, int64_t k) {
  static const double alphas[][2] = {{1, 0}, {-1, 0},    {1.5, 0},    {-0.5, 0},  {0.7, 0},
                                     {0, 1}, {0, -0.75}, {1.5, -0.5}, {-0.3, 0.7}},
                      betas[][2] = {{0, 0}, {1, 0}, {-0.5, 0}, {0, -0.5}, {0, 1}, {0.25, -0.75}};
  const bool is_complex = type_is_complex(type);
  wsgemm_gemm_desc d = gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), m, n, k);
  d.alpha = drawn_of(type, alphas, is_complex ? 9 : 5);
  d.beta = drawn_of(type, betas, is_complex ? 6 : 3);
  return d;
}

struct lines lines_of(const struct stage *stage, bool is_b, int part) {
  const struct values *x = is_b ? &stage->b : &stage->a;
  double *const first = part ? x->im : x->re;
  const int parts = x->is_complex ? 2 : 1;
  return is_b ? (struct lines){first, x->cols, x->rows, 1, x->cols, parts}
              : (struct lines){first, x->rows, x->cols, x->cols, 1, parts};
}
double *element(const struct lines *x, int64_t line, int64_t p) { return &x->part[line * x->next_line + p * x->next_k]; }
void put(const struct lines *x, int64_t line, int64_t p, double value) { *element(x, line, p) = type_round(WSGEMM_F32, value); }

void fill_each(const struct lines *x, double (*draw)(void)) {
  for (int64_t line = 0; line < x->n; line++)
    for (int64_t p = 0; p < x->k; p++) put(x, line, p, draw());
}

void fill_c(const struct stage *stage) {
  for (int64_t at = 0; at < stage->product.m * stage->product.n; at++) {
    stage->c.re[at] = type_round(WSGEMM_F32, unit() * (double)stage->product.magnitude[at]);
    if (stage->c.is_complex) stage->c.im[at] = type_round(WSGEMM_F32, unit() * (double)stage->product.magnitude[at]);
  }
}

double number(int e) {
  const double x = fmin(type_round(WSGEMM_F32, ldexp(1 + fabs(unit()), e)), type_largest(WSGEMM_F32));
  return heads() ? x : -x;
}

void store_and_call(struct stage *stage, wsgemm_handle *h, wsgemm_gemm_desc *d, const struct layout_of_case *where,
                    const char *who) {
  case_store(stage, d, where);
  CHECK(call_on_device(stage, h, d, heads()) == WSGEMM_SUCCESS, "%s: %s", who, wsgemm_last_error());
  case_guards_intact(stage, d, who);
}

/* ---- The bound ------------------------------------------------------------------------------- */

double gamma_of(int64_t k) {
  const double u = FLT_EPSILON / 2;
  return (double)(k + 2) * u / (1 - (double)(k + 2) * u);
}

/* As a real number where its imaginary part is 0, so that Inf is no NaN then. */
static void add_scaled(double sum[2], const double scalar[2], double re, double im) {
  sum[0] += scalar[0] * re, sum[1] += scalar[0] * im;
  if (scalar[1] != 0) sum[0] -= scalar[1] * im, sum[1] += scalar[1] * re;
}

/* Of C's parts one may be NaN, and the other need not. */
static double size_of(double re, double im) { return (isfinite(re) ? fabs(re) : 0) + (isfinite(im) ? fabs(im) : 0); }

int judge_at_the_ends(const struct stage *stage, const wsgemm_gemm_desc *d, double lost, const char *who) {
  const struct product *p = &stage->product;
  double alpha[2], beta[2];
  scalar_get(d->type_a, &d->alpha, alpha), scalar_get(d->type_a, &d->beta, beta);
  const double alpha_size = fabs(alpha[0]) + fabs(alpha[1]), beta_size = fabs(beta[0]) + fabs(beta[1]),
               gamma = gamma_of(d->k) + 64 * DBL_EPSILON, underflow = (2 * (double)d->k * alpha_size + 4) * 0x1p-149;
  int n_wrong = 0, n_subnormal = 0;
  for (int64_t i = 0; i < d->m; i++)
    for (int64_t j = 0; j < d->n; j++) {
      const int64_t at = i * p->n + j;
      const double old_re = beta_size != 0 ? stage->c.re[at] : 0, old_im = beta_size != 0 ? stage->c.im[at] : 0;
      const double bound =
          (gamma + lost) * alpha_size * (double)p->magnitude[at] + gamma * beta_size * size_of(old_re, old_im) + underflow;
      double wanted[2] = {0, 0}, got[2];
      add_scaled(wanted, alpha, (double)p->re[at], (double)p->im[at]);
      add_scaled(wanted, beta, old_re, old_im);
      matrix_get(&stage->stored[2], i, j, &got[0], &got[1]);
      for (int part = 0; part < n_parts(d->type_a); part++) {
        char text[DESCRIPTION_BYTES];
        if (!isfinite(wanted[part])) continue;
        n_subnormal += got[part] != 0 && fabs(got[part]) < (double)FLT_MIN;
        if (!(fabs(got[part] - wanted[part]) <= bound) && n_wrong++ == 0)
          CHECK(false, "%s: %s: part %d of (%lld, %lld) is %.9g, not %.9g; error/bound %.3g", who, gemm_describe(d, text), part,
                (long long)i, (long long)j, got[part], wanted[part], fabs(got[part] - wanted[part]) / bound);
      }
    }
  CHECK(n_wrong == 0, "%s: %d parts of elements are wrong", who, n_wrong);
  return n_subnormal;
}
