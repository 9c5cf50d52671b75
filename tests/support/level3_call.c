/* level3_call.c - making, storing and running one Level 3 case: see level3_call.h. What the result
 * should be is level3_reference.c's.
 *
 * Invariant: run_level3 passes only if the status is SUCCESS, every component is judged good, and
 * everything that the call may not write, inside the matrices and round them, is as it was. */
#include "level3_call.h"
#include "level3_reference.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const wsgemm_routine all_routines[N_ROUTINES] = {WSGEMM_SYMM,  WSGEMM_HEMM,   WSGEMM_SYRK, WSGEMM_HERK, WSGEMM_SYR2K,
                                                 WSGEMM_HER2K, WSGEMM_GEMMTR, WSGEMM_TRMM, WSGEMM_TRSM};
static const char *const routine_names[N_ROUTINES + 1] = {"",      "symm",  "hemm",   "syrk", "herk",
                                                          "syr2k", "her2k", "gemmtr", "trmm", "trsm"};

static bool is_hermitian(wsgemm_routine r) { return r == WSGEMM_HEMM || r == WSGEMM_HERK || r == WSGEMM_HER2K; }
bool routine_has_type(wsgemm_routine r, wsgemm_type type) { return !is_hermitian(r) || type_is_complex(type); }
bool routine_is_triangular(wsgemm_routine r) { return r == WSGEMM_TRMM || r == WSGEMM_TRSM; }
static bool has_two_products(wsgemm_routine r) { return r == WSGEMM_SYR2K || r == WSGEMM_HER2K; }
static bool is_rank_update(wsgemm_routine r) { return r == WSGEMM_SYRK || r == WSGEMM_HERK || has_two_products(r); }
bool routine_writes_triangle(wsgemm_routine r) { return is_rank_update(r) || r == WSGEMM_GEMMTR; }
bool routine_has_k(wsgemm_routine r) { return routine_writes_triangle(r); }

int variants_of(wsgemm_routine r, wsgemm_type type, struct variant variants[MAX_VARIANTS]) {
  int n = 0;
  const bool any_op = routine_is_triangular(r) || r == WSGEMM_GEMMTR;
  for (int uplo = 0; uplo < 2; uplo++)
    for (int side = 0; side < (routine_writes_triangle(r) ? 1 : 2); side++)
      for (int a = 0; a < (any_op ? 4 : is_rank_update(r) ? 3 : 1); a++)
        for (int b = 0; b < (r == WSGEMM_GEMMTR ? 4 : 1); b++)
          for (int diag = 0; diag < (routine_is_triangular(r) ? 2 : 1); diag++) {
            const wsgemm_op op = all_ops[a];
            if (is_rank_update(r) && type_is_complex(type) && op == (is_hermitian(r) ? WSGEMM_TRANS : WSGEMM_CONJ_TRANS))
              continue;
            variants[n++] =
                (struct variant){side ? WSGEMM_RIGHT : WSGEMM_LEFT, uplo ? WSGEMM_LOWER : WSGEMM_UPPER, op,
                                 r == WSGEMM_GEMMTR ? all_ops[b] : WSGEMM_NO_TRANS, diag ? WSGEMM_UNIT : WSGEMM_NON_UNIT};
          }
  return n;
}

int64_t level3_sum_length(const wsgemm_level3_desc *d) {
  return routine_has_k(d->routine) ? d->k : d->side == WSGEMM_LEFT ? d->m : d->n;
}

void level3_shapes(const wsgemm_level3_desc *d, int64_t rows[3], int64_t cols[3]) {
  const int64_t size = level3_sum_length(d), n = d->n;
  memset(rows, 0, 3 * sizeof rows[0]), memset(cols, 0, 3 * sizeof cols[0]);
  if (!routine_has_k(d->routine)) { /* structured A; B, C m x n */
    rows[0] = cols[0] = size;
    rows[1] = rows[2] = d->m, cols[1] = cols[2] = n;
    return;
  }
  rows[2] = cols[2] = n;
  rows[0] = op_transposes(d->transa) ? d->k : n, cols[0] = op_transposes(d->transa) ? n : d->k;
  if (has_two_products(d->routine)) rows[1] = rows[0], cols[1] = cols[0];
  if (d->routine == WSGEMM_GEMMTR) rows[1] = op_transposes(d->transb) ? n : d->k, cols[1] = op_transposes(d->transb) ? d->k : n;
}

static bool has_matrix(wsgemm_routine r, int idx) { return idx != 1 || (r != WSGEMM_SYRK && r != WSGEMM_HERK); }

static int64_t least_ld(const wsgemm_level3_desc *d, int64_t rows, int64_t cols) {
  const int64_t line = d->layout == WSGEMM_COL_MAJOR ? rows : cols;
  return line > 1 ? line : 1;
}

wsgemm_level3_desc level3_desc(wsgemm_routine routine, wsgemm_type type, wsgemm_layout layout, const struct variant *v, int64_t m,
                               int64_t n, int64_t k) {
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  int64_t rows[3], cols[3];
  d.routine = routine, d.type = type, d.layout = layout;
  d.side = v->side, d.uplo = v->uplo, d.transa = v->transa, d.transb = v->transb, d.diag = v->diag;
  d.m = routine_has_k(routine) ? 0 : m, d.n = n, d.k = routine_has_k(routine) ? k : 0;
  d.alpha = scalar_make(type, 1, 0), d.beta = scalar_make(type, 0, 0);
  level3_shapes(&d, rows, cols);
  d.lda = least_ld(&d, rows[0], cols[0]), d.ldb = least_ld(&d, rows[1], cols[1]), d.ldc = least_ld(&d, rows[2], cols[2]);
  return d;
}

/* ---- The typed calls --------------------------------------------------------------------------- */

#define SIDED(name, field)                                                                                                   \
  wsgemm_##name(h, d->layout, d->side, d->uplo, d->m, d->n, d->alpha.field, d->a, d->lda, d->b, d->ldb, d->beta.field, d->c, \
                d->ldc)
#define RANK_K(name, alpha_, beta_) \
  wsgemm_##name(h, d->layout, d->uplo, d->transa, d->n, d->k, alpha_, d->a, d->lda, beta_, d->c, d->ldc)
#define RANK_2K(name, beta_, field) \
  wsgemm_##name(h, d->layout, d->uplo, d->transa, d->n, d->k, d->alpha.field, d->a, d->lda, d->b, d->ldb, beta_, d->c, d->ldc)
#define TRIANGLE_OF_C(name, field)                                                                                   \
  wsgemm_##name(h, d->layout, d->uplo, d->transa, d->transb, d->n, d->k, d->alpha.field, d->a, d->lda, d->b, d->ldb, \
                d->beta.field, d->c, d->ldc)
#define TRIANGULAR(name, field)                                                                               \
  wsgemm_##name(h, d->layout, d->side, d->uplo, d->transa, d->diag, d->m, d->n, d->alpha.field, d->a, d->lda, \
                (void *)(uintptr_t)d->b, d->ldb)
#define OF_TYPE(routine, CALL)                   \
  (d->type == WSGEMM_F32   ? CALL(s##routine, s) \
   : d->type == WSGEMM_F64 ? CALL(d##routine, d) \
   : d->type == WSGEMM_C32 ? CALL(c##routine, c) \
                           : CALL(z##routine, z))
#define SYRK(name, field) RANK_K(name, d->alpha.field, d->beta.field)
#define SYR2K(name, field) RANK_2K(name, d->beta.field, field)

wsgemm_status level3_typed(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  const bool is_single = d->type == WSGEMM_C32;
  switch (d->routine) {
  case WSGEMM_SYMM:
    return OF_TYPE(symm, SIDED);
  case WSGEMM_HEMM:
    return is_single ? SIDED(chemm, c) : SIDED(zhemm, z);
  case WSGEMM_SYRK:
    return OF_TYPE(syrk, SYRK);
  case WSGEMM_HERK:
    return is_single ? RANK_K(cherk, d->alpha.c.re, d->beta.c.re) : RANK_K(zherk, d->alpha.z.re, d->beta.z.re);
  case WSGEMM_SYR2K:
    return OF_TYPE(syr2k, SYR2K);
  case WSGEMM_HER2K:
    return is_single ? RANK_2K(cher2k, d->beta.c.re, c) : RANK_2K(zher2k, d->beta.z.re, z);
  case WSGEMM_GEMMTR:
    return OF_TYPE(gemmtr, TRIANGLE_OF_C);
  case WSGEMM_TRMM:
    return OF_TYPE(trmm, TRIANGULAR);
  case WSGEMM_TRSM:
    return OF_TYPE(trsm, TRIANGULAR);
  }
  return WSGEMM_INTERNAL_ERROR;
}

const char *level3_describe(const wsgemm_level3_desc *d, char text[DESCRIPTION_BYTES]) {
  double alpha[2], beta[2];
  scalar_get(d->type, &d->alpha, alpha);
  scalar_get(d->type, &d->beta, beta);
  snprintf(text, DESCRIPTION_BYTES,
           "%c%s %s %s %s %c%c %s m=%lld n=%lld k=%lld alpha=(%g,%g) beta=(%g,%g) lda=%lld ldb=%lld ldc=%lld%s a%%64=%d b%%64=%d "
           "c%%64=%d",
           type_letter(d->type), routine_names[d->routine], d->layout == WSGEMM_COL_MAJOR ? "col" : "row",
           d->side == WSGEMM_LEFT ? "left" : "right", d->uplo == WSGEMM_UPPER ? "upper" : "lower",
           "NTCR"[d->transa - WSGEMM_NO_TRANS], "NTCR"[d->transb - WSGEMM_NO_TRANS],
           d -> diag == WSGEMM_UNIT ? "unit" : "non-unit", (long long)d->m, (long long)d->n, (long long)d->k, alpha[0], alpha[1],
           beta[0], beta[1], (long long)d->lda, (long long)d->ldb, (long long)d->ldc,
           d->c == d->b   ? " c=b"
           : d->b == d->a ? " b=a"
                          : "",
           (int)((uintptr_t)d->a % 64), (int)((uintptr_t)d->b % 64), (int)((uintptr_t)d->c % 64));
  return text;
}

/* ---- The stage --------------------------------------------------------------------------------- */

struct level3_stage level3_stage_new(wsgemm_type type, int64_t rows, int64_t cols, enum fill fill, struct check_random *random) {
  const int64_t largest = rows > cols ? rows : cols;
  const size_t bytes = (size_t)((largest + MAX_PAD) * (largest + MAX_PAD)) * type_bytes(type);
  struct level3_stage stage = {.type = type, .solution = values_new(type, rows, cols, fill, random)};
  for (int i = 0; i < 3; i++) {
    stage.x[i] = values_new(type, rows, cols, fill, random);
    stage.arena[i] = arena_new(bytes);
  }
  return stage;
}

void level3_stage_free(struct level3_stage *stage) {
  for (int i = 0; i < 3; i++) values_free(&stage->x[i]), arena_free(&stage->arena[i]);
  values_free(&stage->solution);
}

/* Of the solvable triangle: an element off the diagonal is nonzero only from a marked row to a
 * column that is not, so that no product of two of them is. */
static bool is_marked(int64_t i) { return (i * 2654435761u >> 7) % 3 == 0; }

static double off_diagonal(enum triangle kind, int64_t i, int64_t j, double drawn) {
  const int64_t first = i < j ? i : j, last = i < j ? j : i;
  switch (kind) {
  case TRIANGLE_SOLVABLE:
    return is_marked(i) && !is_marked(j) ? floor(4 * drawn) : 0;
  case TRIANGLE_DOMINANT:
  case TRIANGLE_TINY:
  case TRIANGLE_HUGE:
    return drawn / (double)(last + 1);
  case TRIANGLE_HILBERT:
    return 1 / (double)(first + last + 1);
  default:
    return drawn;
  }
}

static double on_diagonal(enum triangle kind, int64_t i, int64_t size, double drawn) {
  const double sign = drawn < 0 ? -1 : 1;
  switch (kind) {
  case TRIANGLE_SOLVABLE:
    return sign;
  case TRIANGLE_HILBERT:
    return 1 / (double)(2 * i + 1);
  case TRIANGLE_NEAR_SINGULAR:
    return i == size / 2 ? 1e-6 * sign : sign * (1 + fabs(drawn));
  default:
    return sign * (1 + fabs(drawn));
  }
}

void level3_fill_triangle(struct level3_stage *stage, enum triangle kind, struct check_random *random) {
  struct values *a = &stage->x[0];
  const bool is_complex = type_is_complex(stage->type);
  for (int64_t i = 0; i < a->rows; i++)
    for (int64_t j = 0; j < a->cols; j++) {
      const double re = check_random_unit(random), im = is_complex ? check_random_unit(random) : 0;
      /* graded: rows over 2^-15 .. 2^15, in an order that mixes large and small ones */
      const int far = type_is_double(stage->type) ? 900 : 90;
      const int exponent = kind == TRIANGLE_GRADED ? (int)(i * 7 % 31) - 15
                           : kind == TRIANGLE_TINY ? -far
                           : kind == TRIANGLE_HUGE ? far
                                                   : 0;
      const double scale = ldexp(1, exponent);
      double x_re = i == j ? on_diagonal(kind, i, a->rows, re) : off_diagonal(kind, i, j, re);
      double x_im = !is_complex ? 0 : i == j ? (kind == TRIANGLE_NEAR_SINGULAR ? 0 : im) : off_diagonal(kind, i, j, im);
      if (kind == TRIANGLE_SOLVABLE && i == j && is_complex) x_im = im < 0 ? x_re : 0, x_re = im < 0 ? 0 : x_re;
      a->re[i * a->cols + j] = type_round(stage->type, scale * x_re);
      a->im[i * a->cols + j] = type_round(stage->type, scale * x_im);
    }
}

/* ---- Storing ----------------------------------------------------------------------------------- */

static bool is_zero(wsgemm_type type, const wsgemm_scalar *scalar) {
  double value[2];
  scalar_get(type, scalar, value);
  return value[0] == 0 && value[1] == 0;
}

/* Whether the call reads element (i, j) of the matrix. */
static bool is_read(const wsgemm_level3_desc *d, int idx, int64_t i, int64_t j) {
  const bool in_triangle = d->uplo == WSGEMM_UPPER ? i <= j : i >= j;
  if (idx < 2 && is_zero(d->type, &d->alpha)) return false;
  if (idx == 0 && !routine_has_k(d->routine))
    return in_triangle && !(i == j && routine_is_triangular(d->routine) && d->diag == WSGEMM_UNIT);
  if (idx == 2) return !routine_is_triangular(d->routine) && !is_zero(d->type, &d->beta) && level3_is_written(d, i, j);
  return true;
}

static void store_matrix(struct level3_stage *stage, const wsgemm_level3_desc *d, int idx) {
  const struct matrix *x = &stage->stored[idx];
  const struct values *from = &stage->x[idx];
  const bool is_real_diagonal =
      (idx == 0 && d->routine == WSGEMM_HEMM) || (idx == 2 && (d->routine == WSGEMM_HERK || d->routine == WSGEMM_HER2K));
  REQUIRE(x->rows <= from->rows && x->cols <= from->cols, "a stage of %lld x %lld is too small for %lld x %lld",
          (long long)from->rows, (long long)from->cols, (long long)x->rows, (long long)x->cols);
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++)
      if (is_read(d, idx, i, j)) {
        const double im = is_real_diagonal && i == j ? (double)NAN : from->im[i * from->cols + j];
        matrix_set(x, i, j, from->re[i * from->cols + j], im);
      } else {
        matrix_set_guard(x, i, j);
      }
}

void level3_store(struct level3_stage *stage, wsgemm_level3_desc *d, const struct layout_of_case *layout, enum form form,
                  enum judge how) {
  int64_t rows[3], cols[3], *const ld[3] = {&d->lda, &d->ldb, &d->ldc};
  const void *at[3] = {0};
  const bool triangular = routine_is_triangular(d->routine);
  const bool is_alias = form == FORM_SAME && has_two_products(d->routine);
  level3_shapes(d, rows, cols);
  if (d->routine == WSGEMM_TRSM && how == JUDGE_EXACT) level3_make_right_side(stage, d);
  for (int64_t i = 0; is_alias && i < rows[0]; i++) {
    struct values *a = &stage->x[0], *b = &stage->x[1];
    memcpy(b->re + i * b->cols, a->re + i * a->cols, (size_t)cols[0] * sizeof *a->re);
    memcpy(b->im + i * b->cols, a->im + i * a->cols, (size_t)cols[0] * sizeof *a->im);
  }
  for (int idx = 0; idx < 3; idx++) {
    if (!has_matrix(d->routine, idx) || (idx == 2 && triangular && form != FORM_APART)) continue;
    *ld[idx] = least_ld(d, rows[idx], cols[idx]) + layout->pad[idx];
    stage->stored[idx] = matrix_place(&stage->arena[idx], d->type, d->layout, rows[idx], cols[idx], *ld[idx], layout->place[idx]);
    store_matrix(stage, d, idx);
    at[idx] = stage->stored[idx].elements;
  }
  if (is_alias) at[1] = at[0], d->ldb = d->lda, stage->stored[1] = stage->stored[0];
  stage->out_idx = triangular && form != FORM_APART ? 1 : 2;
  d->a = at[0], d->b = at[1], d->c = stage->stored[stage->out_idx].elements;
  if (triangular && form != FORM_APART && form != FORM_SAME) d->c = NULL, d->ldc = 0;
  if (triangular && form == FORM_SAME) d->ldc = d->ldb;
}

bool level3_judge(struct level3_stage *stage, const wsgemm_level3_desc *d, enum judge how, const char *who) {
  char text[DESCRIPTION_BYTES];
  bool good = true;
  for (int idx = 0; idx < 3; idx++) {
    const struct matrix *x = &stage->stored[idx];
    int64_t byte_idx = 0;
    if (!has_matrix(d->routine, idx) || (idx == 2 && stage->out_idx == 1)) continue;
    if (!matrix_guard_intact(x, &byte_idx))
      good = CHECK(false, "%s: %s: byte %lld from the start of %c was written", who, level3_describe(d, text),
                   (long long)byte_idx, "ABC"[idx]);
    for (int64_t i = 0; i < x->rows && idx == stage->out_idx && good; i++)
      for (int64_t j = 0; j < x->cols && good; j++)
        if (!level3_is_written(d, i, j) && !matrix_is_guard(x, i, j))
          good = CHECK(false, "%s: %s: (%lld, %lld) of the other triangle was written", who, level3_describe(d, text),
                       (long long)i, (long long)j);
  }
  const struct level3_verdict v = level3_verdict_of(stage, d, &stage->stored[stage->out_idx], how);
  return CHECK(v.passed, "%s: %s: worst at (%lld, %lld): got (%.17g, %.17g), expected (%.17g, %.17g), error/bound %.3g", who,
               level3_describe(d, text), (long long)v.i, (long long)v.j, v.got_re, v.got_im, v.expected_re, v.expected_im,
               v.worst) &&
         good;
}

wsgemm_status level3_call_on_host(struct level3_stage *stage, wsgemm_handle *handle, const wsgemm_level3_desc *d, bool typed) {
  (void)stage;
  return typed ? level3_typed(handle, d) : wsgemm_level3(handle, d);
}

level3_caller *run_level3_caller = level3_call_on_host;

unsigned long long level3_digest(const struct level3_stage *stage) { return matrix_digest(&stage->stored[stage->out_idx]); }

bool run_level3(struct level3_stage *stage, wsgemm_handle *handle, wsgemm_level3_desc *d, const struct layout_of_case *layout,
                enum form form, enum judge how, const char *who) {
  char text[DESCRIPTION_BYTES];
  unsigned long long before[3] = {0};
  level3_store(stage, d, layout, form, how);
  for (int idx = 0; idx < 2; idx++)
    if (has_matrix(d->routine, idx) && idx != stage->out_idx) before[idx] = matrix_digest(&stage->stored[idx]);
  feclearexcept(FE_ALL_EXCEPT);
  const wsgemm_status status = run_level3_caller(stage, handle, d, form == FORM_TYPED);
  const int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
  if (raised != 0)
    CHECK(false, "%s: %s: floating-point exceptions %#x were raised", who, level3_describe(d, text), (unsigned)raised);
  if (status != WSGEMM_SUCCESS)
    return CHECK(false, "%s: %s: %s (%s)", who, level3_describe(d, text), wsgemm_status_name(status), wsgemm_last_error());
  bool unchanged = true;
  for (int idx = 0; idx < 2; idx++)
    if (has_matrix(d->routine, idx) && idx != stage->out_idx)
      unchanged = CHECK(before[idx] == matrix_digest(&stage->stored[idx]), "%s: %s: %c was written", who,
                        level3_describe(d, text), "AB"[idx]) &&
                  unchanged;
  return level3_judge(stage, d, how, who) && unchanged && raised == 0;
}

/* ---- Drawing ----------------------------------------------------------------------------------- */

struct variant draw_variant(wsgemm_routine routine, wsgemm_type type, struct check_random *random) {
  struct variant all[MAX_VARIANTS];
  return all[check_random_in(random, 0, variants_of(routine, type, all) - 1)];
}

static wsgemm_scalar draw_scalar(wsgemm_type type, enum judge how, bool is_real, struct check_random *random) {
  static const double plain[] = {0, 1, -1, 1};
  const int which = (int)check_random_in(random, 0, 7);
  if (which < 4) return scalar_make(type, plain[which], 0);
  if (how == JUDGE_EXACT)
    return scalar_make(type, (double)check_random_in(random, -2, 3), is_real ? 0 : (double)check_random_in(random, -2, 2));
  return scalar_make(type, 2 * check_random_unit(random), is_real ? 0 : 2 * check_random_unit(random));
}

void draw_scalars(wsgemm_level3_desc *d, enum judge how, struct check_random *random) {
  static const double powers[][2] = {{1, 0}, {-1, 0}, {2, 0}, {0.5, 0}, {0, 0}, {0, 1}, {0, -1}, {1, 0}};
  d->alpha = draw_scalar(d->type, how, d->routine == WSGEMM_HERK, random);
  d->beta = draw_scalar(d->type, how, d->routine == WSGEMM_HERK || d->routine == WSGEMM_HER2K, random);
  if (routine_is_triangular(d->routine)) d->beta = scalar_make(d->type, 0, 0);
  if (d->routine == WSGEMM_TRSM && how == JUDGE_EXACT) {
    const double *power = powers[check_random_in(random, 0, type_is_complex(d->type) ? 7 : 4)];
    d->alpha = scalar_make(d->type, power[0], power[1]);
  }
}
