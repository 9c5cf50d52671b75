/* test_level3_paths.c - products with structure and regions by plans that cpu/plan.c would never
 * make: blocks of one register tile, k blocks of a few panels, any COARSE_FACTOR, policy and thread
 * count, on every row that the machine can run. Values are whole numbers, so that every plan must
 * give, in place or not, the numbers of the public call; what may not be read is NaN. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/structured.h"
#include "ops/level3.h"
#include "support/check.h"

enum { MOST = 90, PAD = 5, ELEMENTS = (MOST + PAD) * MOST, MOST_BYTES = 16 };

static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }
static int64_t either(int64_t x, int64_t y) { return drawn(0, 1) ? x : y; }

static _Alignas(64) char a_memory[ELEMENTS * MOST_BYTES], b_memory[ELEMENTS * MOST_BYTES];
static _Alignas(64) char c_before[ELEMENTS * MOST_BYTES], c_expected[ELEMENTS * MOST_BYTES], c_memory[ELEMENTS * MOST_BYTES];

static void set(wsgemm_type type, char *matrix, int64_t at, double re, double im) {
  if (type == WSGEMM_F32) ((float *)(void *)matrix)[at] = (float)re;
  if (type == WSGEMM_F64) ((double *)(void *)matrix)[at] = re;
  if (type == WSGEMM_C32) ((wsgemm_cfloat *)(void *)matrix)[at] = (wsgemm_cfloat){(float)re, (float)im};
  if (type == WSGEMM_C64) ((wsgemm_cdouble *)(void *)matrix)[at] = (wsgemm_cdouble){re, im};
}

static wsgemm_scalar scalar(wsgemm_type type, double re, double im) {
  wsgemm_scalar s = {.z = {0, 0}};
  set(type, (char *)&s, 0, re, im);
  return s;
}

static void fill(wsgemm_type type, char *matrix) {
  for (int64_t at = 0; at < ELEMENTS; at++) set(type, matrix, at, (double)drawn(-3, 3), (double)drawn(-3, 3));
}

/* NaN in the triangle of a size x size matrix that may not be read, and on a diagonal of ones. */
static void spoil(wsgemm_type type, char *matrix, int64_t size, int64_t ld, bool upper, bool unit) {
  for (int64_t j = 0; j < size; j++)
    for (int64_t i = 0; i < size; i++)
      if ((upper ? i > j : i < j) || (unit && i == j)) set(type, matrix, i + j * ld, NAN, NAN);
}

static bool is_triangular(const wsgemm_level3_desc *d) { return d->routine == WSGEMM_TRMM; }

/* Any column-major call but trsm; of trmm c is not b yet. */
static wsgemm_level3_desc draw_call(wsgemm_type type) {
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  const bool is_complex = type == WSGEMM_C32 || type == WSGEMM_C64;
  do d.routine = (wsgemm_routine)drawn(WSGEMM_SYMM, WSGEMM_TRMM);
  while (!is_complex && (d.routine == WSGEMM_HEMM || d.routine == WSGEMM_HERK || d.routine == WSGEMM_HER2K));
  const bool is_hermitian = d.routine == WSGEMM_HEMM || d.routine == WSGEMM_HERK || d.routine == WSGEMM_HER2K;
  d.type = type;
  d.side = (wsgemm_side)either(WSGEMM_LEFT, WSGEMM_RIGHT);
  d.uplo = (wsgemm_uplo)either(WSGEMM_UPPER, WSGEMM_LOWER);
  d.diag = (wsgemm_diag)either(WSGEMM_UNIT, WSGEMM_NON_UNIT);
  d.transa = (wsgemm_op)drawn(WSGEMM_NO_TRANS, WSGEMM_CONJ_NO_TRANS);
  d.transb = (wsgemm_op)drawn(WSGEMM_NO_TRANS, WSGEMM_CONJ_NO_TRANS);
  if (d.routine >= WSGEMM_SYRK && d.routine <= WSGEMM_HER2K)
    d.transa = (wsgemm_op)either(WSGEMM_NO_TRANS, is_hermitian ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS);
  d.m = drawn(1, MOST), d.n = drawn(1, MOST), d.k = drawn(1, MOST);
  d.lda = d.ldb = d.ldc = MOST + drawn(0, PAD);
  d.alpha = scalar(type, (double)drawn(1, 2), d.routine == WSGEMM_HERK ? 0 : (double)drawn(0, 1));
  d.beta = scalar(type, is_triangular(&d) ? 0 : (double)drawn(0, 2), is_triangular(&d) || is_hermitian ? 0 : (double)drawn(0, 1));
  d.a = a_memory, d.b = b_memory, d.c = c_memory;
  return d;
}

static void draw_values(const wsgemm_level3_desc *d) {
  const bool has_side = d->routine == WSGEMM_SYMM || d->routine == WSGEMM_HEMM || is_triangular(d);
  fill(d->type, a_memory), fill(d->type, b_memory), fill(d->type, c_before);
  if (has_side)
    spoil(d->type, a_memory, d->side == WSGEMM_LEFT ? d->m : d->n, d->lda, d->uplo == WSGEMM_UPPER,
          is_triangular(d) && d->diag == WSGEMM_UNIT);
  else
    spoil(d->type, c_before, d->n, d->ldc, d->uplo == WSGEMM_UPPER, false);
}

/* A multiple of `unit` up to about `most`. */
static int64_t drawn_multiple(int64_t unit, int64_t most) { return unit * drawn(1, ws_max(1, ws_ceil_div(most, unit))); }

static ws_plan draw_plan(const ws_cpu_row *row, const ws_problem *p, bool is_packed) {
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL};
  const bool of_a = ws_a_is_triangular(p), of_b = p->b.structure != WS_GENERAL;
  ws_plan plan = {.row = row, .path = is_packed ? WS_PATH_PACKED : WS_PATH_DIRECT, .policy = policies[drawn(0, 2)]};
  plan.kc = ws_min(of_a                    ? drawn_multiple(row->mr, p->k)
                   : ws_b_is_triangular(p) ? drawn_multiple(row->nr, p->k)
                                           : drawn(1, p->k),
                   of_a   ? row->kc / row->mr * row->mr
                   : of_b ? row->kc / row->nr * row->nr
                          : row->kc);
  plan.n_threads = drawn(0, 1) ? 1 : (int)drawn(2, 4);
  plan.n_products = 1;
  plan.bm = p->in_place && !of_b && !is_packed ? p->m : drawn_multiple(row->mr, p->m);
  plan.bn = p->in_place && of_b && !is_packed ? p->n : drawn_multiple(row->nr, p->n);
  plan.nc = drawn_multiple(plan.bn, p->n);
  plan.coarse = (int)(p->in_place && of_b ? ws_ceil_div(plan.nc, plan.bn) : drawn(1, 4));
  return plan;
}

/* The call by the path, its products one after the other. */
static void run_path(const wsgemm_level3_desc *d, const ws_cpu_row *row, bool is_packed) {
  ws_lowered lowered;
  ws_level3_lower(d, &lowered);
  for (int i = 0; i < lowered.n_products; i++) {
    const ws_problem *p = &lowered.product[i];
    const ws_plan plan = draw_plan(row, p, is_packed);
    if (is_packed)
      REQUIRE(ws_packed_run(p, &plan), "memory");
    else
      ws_direct_structured(p, &plan);
  }
}

/* The same numbers: a sum that is 0 has the sign that its blocks of k give it. */
static bool is_same(const wsgemm_level3_desc *d, int64_t rows) {
  const int64_t parts = ws_types[d->type].n_real;
  for (int64_t j = 0; j < d->n; j++)
    for (int64_t at = j * d->ldc * parts; at < (j * d->ldc + rows) * parts; at++) {
      const bool is_single = d->type == WSGEMM_F32 || d->type == WSGEMM_C32;
      const double x = is_single ? (double)((float *)(void *)c_memory)[at] : ((double *)(void *)c_memory)[at];
      const double y = is_single ? (double)((float *)(void *)c_expected)[at] : ((double *)(void *)c_expected)[at];
      if (x != y && !(isnan(x) && isnan(y))) return false;
    }
  return true;
}

static void check_row(const ws_cpu_row *row) {
  const size_t bytes = (size_t)(ELEMENTS * ws_types[row->type].bytes);
  const int n_calls = 120 / check_scale() + 10;
  for (int call = 0; call < n_calls; call++) {
    wsgemm_level3_desc d = draw_call(row->type);
    draw_values(&d);
    memcpy(c_memory, c_before, bytes);
    const wsgemm_status status = wsgemm_level3(NULL, &d);
    CHECK(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    memcpy(c_expected, c_memory, bytes);
    for (int run = 0; run < 4; run++) {
      const bool in_place = is_triangular(&d) && run % 2 == 1, is_packed = run >= 2;
      wsgemm_level3_desc now = d;
      memcpy(c_memory, in_place ? b_memory : c_before, bytes);
      if (in_place) now.b = c_memory;
      run_path(&now, row, is_packed);
      const bool same = is_same(&d, is_triangular(&d) || d.routine <= WSGEMM_HEMM ? d.m : d.n);
      CHECK(same, "%s routine %d side %d uplo %d ops %d %d diag %d m=%d n=%d k=%d, %s%s", row->name, (int)d.routine, (int)d.side,
            (int)d.uplo, (int)d.transa, (int)d.transb, (int)d.diag, (int)d.m, (int)d.n, (int)d.k, is_packed ? "packed" : "direct",
            in_place ? " in place" : "");
    }
  }
}

static void every_row(void) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "a first call readies the library");
  rng = check_random_from(20);
  for (int r = 0; r < ws_row_count(); r++)
    if (ws_row_usable(r) && !ws_is_half(ws_row(r)->type)) check_row(ws_row(r));
  wsgemm_destroy(h);
}

/* A triangle of one element: a plain product, whose row or column without gaps is read in vectors. */
static void of_one(void) {
  enum { K = 5000 };
  rng = check_random_from(21);
  float *const x = (float *)(void *)a_memory, c = NAN;
  double expected = 0;
  for (int p = 0; p < K; p++) x[p] = (float)drawn(-9, 9), expected += (double)x[p] * (double)x[p];
  for (int trans = 0; trans < 2; trans++) {
    wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
    d.n = 1, d.k = K, d.transa = trans ? WSGEMM_TRANS : WSGEMM_NO_TRANS, d.lda = trans ? K : 1, d.ldc = 1;
    d.alpha.s = 1, d.a = x, d.c = &c;
    char text[2000];
    wsgemm_level3_explain(NULL, &d, text, sizeof text);
    CHECK(strstr(text, "path: vector"), "%s", text);
    CHECK(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS && (double)c == expected, "trans %d: %g, not %g", trans, (double)c, expected);
  }
  for (int ops = 0; ops < 4; ops++) {
    const wsgemm_op of_a = ops & 1 ? WSGEMM_TRANS : WSGEMM_NO_TRANS, of_b = ops & 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
    CHECK(wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, of_a, of_b, 1, 1, K, 1, x, ops & 1 ? K : 1, x, ops & 2 ? 1 : K, 0, &c, 1) ==
                  WSGEMM_SUCCESS &&
              (double)c == expected,
          "ops %d: %g, not %g", ops, (double)c, expected);
  }
}

static const struct check_case cases[] = {{"every_row", every_row}, {"of_one", of_one}};
CHECK_MAIN("level3_paths", cases)
