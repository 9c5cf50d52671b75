/* Makes a Level 3 call on random matrices and judges it as a product of the matrices filled in: see
 * level3_trial.h. */
#include "level3_trial.h"
#include "bench/harness/random.h"
#include "cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Element (i, j) is at data[i * row_stride + j * col_stride]. */
typedef struct {
  wsgemm_type type;
  int64_t rows, cols, row_stride, col_stride, ld;
  void *data;
} matrix;

static bool make(matrix *x, wsgemm_type type, wsgemm_layout layout, int64_t rows, int64_t cols) {
  const bool by_rows = layout == WSGEMM_ROW_MAJOR;
  const int64_t ld = (by_rows ? cols : rows) + 1;
  *x = (matrix){type, rows, cols, by_rows ? ld : 1, by_rows ? 1 : ld, ld, NULL};
  x->data = calloc((size_t)(ld * (by_rows ? rows : cols) + 1), (size_t)ws_cli_types[type].bytes);
  return x->data != NULL;
}

static int n_parts(const matrix *x) { return ws_cli_types[x->type].n_parts; }

static int64_t part_at(const matrix *x, int64_t i, int64_t j, int part) {
  return (i * x->row_stride + j * x->col_stride) * n_parts(x) + part;
}

static double get(const matrix *x, int64_t i, int64_t j, int part) {
  return part < n_parts(x) ? ws_cli_get(x->type, x->data, part_at(x, i, j, part)) : 0;
}

static void set(const matrix *x, int64_t i, int64_t j, double re, double im) {
  ws_cli_set(x->type, x->data, part_at(x, i, j, 0), re);
  if (n_parts(x) == 2) ws_cli_set(x->type, x->data, part_at(x, i, j, 1), im);
}

static void fill(const matrix *x, bool with_nan, uint64_t *random_state) {
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++) {
      const double re = 2 * ws_random_unit(random_state) - 1, im = 2 * ws_random_unit(random_state) - 1;
      set(x, i, j, with_nan ? (double)NAN : re, with_nan ? (double)NAN : im);
    }
}

static ws_view view_of(const matrix *x) {
  return (ws_view){x->type, x->data, x->rows, x->cols, x->row_stride, x->col_stride, false};
}

static bool is_transposed(wsgemm_op op) { return op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS; }
static bool is_conjugated(wsgemm_op op) { return op == WSGEMM_CONJ_TRANS || op == WSGEMM_CONJ_NO_TRANS; }
static bool is_triangular(wsgemm_routine r) { return r == WSGEMM_TRMM || r == WSGEMM_TRSM; }
static bool has_k(wsgemm_routine r) { return r >= WSGEMM_SYRK && r <= WSGEMM_GEMMTR; }

bool ws_level3_trial_is_legal(const ws_level3_trial *t) {
  const bool is_complex = ws_cli_types[t->type].n_parts == 2;
  if (ws_cli_is_hermitian(t->routine) && !is_complex) return false;
  if (t->routine == WSGEMM_SYRK || t->routine == WSGEMM_SYR2K) return t->trans == WSGEMM_NO_TRANS || t->trans == WSGEMM_TRANS;
  if (t->routine == WSGEMM_HERK || t->routine == WSGEMM_HER2K)
    return t->trans == WSGEMM_NO_TRANS || t->trans == WSGEMM_CONJ_TRANS;
  return is_triangular(t->routine) || t->routine == WSGEMM_GEMMTR || t->trans == WSGEMM_NO_TRANS;
}

/* ---- The matrices filled in -------------------------------------------------------------------- */

/* Writes op(x) into the columns of `to` from `first` on, or, if it is to stand transposed, its rows. */
static void put_op(const matrix *x, wsgemm_op op, const matrix *to, int64_t first, bool transposed) {
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++) {
      const bool turn = is_transposed(op) != transposed;
      const int64_t row = turn ? j : i, col = turn ? i : j;
      set(to, transposed ? row + first : row, transposed ? col : col + first, get(x, i, j, 0),
          is_conjugated(op) ? -get(x, i, j, 1) : get(x, i, j, 1));
    }
}

/* The structured A filled in, its op applied; and NaN into A where it must not be read. The diagonal
 * of a triangle is made large, so that solutions stay small. */
static void fill_structured(const ws_level3_trial *t, const matrix *a, const matrix *full) {
  const bool triangle = is_triangular(t->routine);
  for (int64_t i = 0; i < a->rows; i++)
    for (int64_t j = 0; j < a->cols; j++) {
      const bool is_given = t->uplo == WSGEMM_UPPER ? i <= j : i >= j;
      const int64_t row = is_transposed(t->trans) ? j : i, col = is_transposed(t->trans) ? i : j;
      double re = get(a, i, j, 0), im = get(a, i, j, 1);
      if (!is_given) {
        if (triangle) set(full, row, col, 0, 0);
        set(a, i, j, NAN, NAN);
        continue;
      }
      if (i == j && triangle) re = re < 0 ? re - 2 : re + 2;
      if (i != j && triangle) re /= (double)a->rows, im /= (double)a->rows;
      if (i == j && t->routine == WSGEMM_HEMM) im = 0;
      set(a, i, j, re, im);
      re = get(a, i, j, 0), im = get(a, i, j, 1);
      if (i == j && t->routine == WSGEMM_HEMM) set(a, i, j, re, NAN);
      if (i == j && t->diag == WSGEMM_UNIT && triangle) set(a, i, j, NAN, NAN), re = 1, im = 0;
      set(full, row, col, re, is_conjugated(t->trans) ? -im : im);
      if (!triangle && i != j) set(full, j, i, re, t->routine == WSGEMM_HEMM ? -im : im);
    }
}

/* ---- The call ---------------------------------------------------------------------------------- */

typedef struct {
  matrix a, b, c, before; /* as the call sees them; what C, or for trmm and trsm B, held */
  matrix left, right;     /* the product that should be in C */
} matrices;

static bool make_all(const ws_level3_trial *t, matrices *x) {
  const bool left = t->side == WSGEMM_LEFT, turned = is_transposed(t->trans);
  const bool two = t->routine == WSGEMM_SYR2K || t->routine == WSGEMM_HER2K;
  const int64_t m = has_k(t->routine) ? t->n : t->m, n = t->n;
  const int64_t k = has_k(t->routine) ? t->k : left ? m : n, size = has_k(t->routine) ? 0 : k, sum = two ? 2 * k : k;
  return make(&x->a, t->type, t->layout,
              size     ? size
              : turned ? k
                       : n,
              size     ? size
              : turned ? n
                       : k) &&
         make(&x->b, t->type, t->layout,
              size                          ? m
              : t->routine == WSGEMM_GEMMTR ? k
                                            : x->a.rows,
              size || t->routine == WSGEMM_GEMMTR ? n : x->a.cols) &&
         make(&x->c, t->type, t->layout, m, n) && make(&x->before, t->type, t->layout, m, n) &&
         make(&x->left, t->type, t->layout, m, sum) && make(&x->right, t->type, t->layout, sum, n);
}

static void free_all(matrices *x) {
  matrix *const all[] = {&x->a, &x->b, &x->c, &x->before, &x->left, &x->right};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]->data);
}

static void prepare(const ws_level3_trial *t, matrices *x, uint64_t *random_state) {
  const wsgemm_op outer = ws_cli_is_hermitian(t->routine) ? WSGEMM_CONJ_NO_TRANS : WSGEMM_NO_TRANS;
  fill(&x->a, false, random_state), fill(&x->b, false, random_state), fill(&x->c, true, random_state);
  if (!has_k(t->routine)) {
    const bool left = t->side == WSGEMM_LEFT;
    fill_structured(t, &x->a, left ? &x->left : &x->right);
    put_op(&x->b, WSGEMM_NO_TRANS, left ? &x->right : &x->left, 0, false);
    put_op(&x->b, WSGEMM_NO_TRANS, &x->before, 0, false);
    return;
  }
  put_op(&x->a, t->trans, &x->left, 0, false);
  if (t->routine == WSGEMM_GEMMTR) {
    put_op(&x->b, WSGEMM_NO_TRANS, &x->right, 0, false);
    return;
  }
  /* op(Y)^T or ^H: transposed, and conjugated once more */
  const wsgemm_op conjugated = outer == WSGEMM_NO_TRANS      ? t->trans
                               : t->trans == WSGEMM_NO_TRANS ? WSGEMM_CONJ_NO_TRANS
                                                             : WSGEMM_TRANS;
  const bool two = t->routine == WSGEMM_SYR2K || t->routine == WSGEMM_HER2K;
  put_op(two ? &x->b : &x->a, conjugated, &x->right, 0, true);
  if (!two) return;
  put_op(&x->b, t->trans, &x->left, t->k, false);
  put_op(&x->a, conjugated, &x->right, t->k, true);
}

static wsgemm_status call(wsgemm_handle *h, const ws_level3_trial *t, const matrices *x) {
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  wsgemm_status status = WSGEMM_SUCCESS;
  d.routine = t->routine, d.layout = t->layout, d.side = t->side, d.transa = t->trans, d.diag = t->diag, d.type = t->type;
  d.m = has_k(t->routine) ? 0 : t->m, d.n = t->n, d.k = has_k(t->routine) ? t->k : 0;
  d.alpha = ws_cli_scalar(t->type, (wsgemm_cdouble){1, 0}), d.beta = ws_cli_scalar(t->type, (wsgemm_cdouble){0, 0});
  d.a = x->a.data, d.lda = x->a.ld, d.b = x->b.data, d.ldb = x->b.ld, d.c = x->c.data, d.ldc = x->c.ld;
  for (int triangle = 0; triangle < (has_k(t->routine) ? 2 : 1) && status == WSGEMM_SUCCESS; triangle++) {
    d.uplo = !has_k(t->routine) ? t->uplo : triangle ? WSGEMM_LOWER : WSGEMM_UPPER;
    status = wsgemm_level3(h, &d);
  }
  return status;
}

bool ws_level3_trial_run(wsgemm_handle *h, const ws_level3_trial *t, int64_t max_terms, uint64_t seed, ws_check *out,
                         char why[WS_TRIAL_WHY_BYTES]) {
  const bool solves = t->routine == WSGEMM_TRSM;
  const double residual_factor = 8; /* of the bound of a residual */
  matrices x = {0};
  *out = (ws_check){0};
  bool ok = make_all(t, &x);
  if (!ok) snprintf(why, WS_TRIAL_WHY_BYTES, "out of memory");
  if (ok) {
    prepare(t, &x, &seed);
    const wsgemm_status status = call(h, t, &x);
    ok = status == WSGEMM_SUCCESS;
    if (!ok) snprintf(why, WS_TRIAL_WHY_BYTES, "%.*s", WS_TRIAL_WHY_BYTES - 1, ws_cli_why(status));
  }
  if (ok) {
    /* A X should be B: the residual is judged as the error of a product in B's place */
    if (solves) put_op(&x.c, WSGEMM_NO_TRANS, t->side == WSGEMM_LEFT ? &x.right : &x.left, 0, false);
    const ws_product p = {.a = view_of(&x.left),
                          .b = view_of(&x.right),
                          .c = view_of(solves ? &x.before : &x.c),
                          .before = view_of(&x.before),
                          .alpha = {1, 0}};
    ok = ws_check_product(&p, max_terms, seed, out);
    if (!ok) snprintf(why, WS_TRIAL_WHY_BYTES, "out of memory");
    if (solves) out->worst /= residual_factor;
    if (ok && !ws_check_passed(out)) ok = false, ws_check_describe(out, why, WS_TRIAL_WHY_BYTES);
  }
  free_all(&x);
  return ok;
}

void ws_level3_trial_describe(const ws_level3_trial *t, char *text, size_t bytes) {
  static const char *const names[] = {"", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "trsm"};
  const bool sided = !has_k(t->routine);
  snprintf(text, bytes, "%c%s%s%s %c%s %" PRId64 " x %" PRId64, ws_cli_types[t->type].letter, names[t->routine],
           !sided                   ? ""
           : t->side == WSGEMM_LEFT ? " left"
                                    : " right",
           !sided                    ? ""
           : t->uplo == WSGEMM_UPPER ? " upper"
                                     : " lower",
           "NTCR"[t->trans - WSGEMM_NO_TRANS], is_triangular(t->routine) && t->diag == WSGEMM_UNIT ? " unit" : "",
           sided ? t->m : t->n, sided ? t->n : t->k);
}
