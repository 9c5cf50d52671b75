/* test_level3_special.c - what a Level 3 call must not read, what NaN and Inf do, quick returns,
 * zeros on a diagonal to divide by, subnormal numbers, and the caller's floating-point
 * environment. */
#include "support/level3_call.h"
#include "support/level3_reference.h"
#include "support/process.h"
#include "support/rows.h"

#include <fenv.h>
#include <math.h>

static struct check_random rng;

static void for_all(void (*run)(wsgemm_routine routine, wsgemm_type type)) {
  for (int t = 0; t < N_LEVEL3_TYPES; t++)
    for (int r = 0; r < N_ROUTINES; r++)
      if (routine_has_type(all_routines[r], (wsgemm_type)t)) run(all_routines[r], (wsgemm_type)t);
}

static wsgemm_level3_desc draw_desc(wsgemm_routine routine, wsgemm_type type, int64_t most) {
  const struct variant v = draw_variant(routine, type, &rng);
  return level3_desc(routine, type, draw_layout(&rng), &v, check_random_in(&rng, 1, most), check_random_in(&rng, 1, most),
                     check_random_in(&rng, 1, most));
}

/* ---- What is not read -------------------------------------------------------------------------- */

/* alpha = 0 or k = 0: A and B are not read (NULL, or pages without access); the result is beta C,
 * for trmm and trsm 0. */
static void unread_of(wsgemm_routine routine, wsgemm_type type) {
  static const double betas[][2] = {{0, 0}, {1, 0}, {-1, 0}, {2, -3}, {0.5, 0}};
  struct level3_stage stage = level3_stage_new(type, 40, 40, FILL_INTEGER, &rng);
  for (int turn = 0; turn < 60 / check_scale() + 20; turn++) {
    const bool no_k = turn % 2 && routine_has_k(routine), is_null = turn / 2 % 2;
    const bool is_real = routine == WSGEMM_HERK || routine == WSGEMM_HER2K;
    wsgemm_level3_desc d = draw_desc(routine, type, 40);
    if (no_k) d.k = 0;
    d.alpha = no_k ? scalar_make(type, 1.5, routine == WSGEMM_HERK ? 0 : -2) : scalar_make(type, turn % 3 ? 0 : -0.0, 0);
    if (!routine_is_triangular(routine)) d.beta = scalar_make(type, betas[turn % 5][0], is_real ? 0 : betas[turn % 5][1]);
    const struct layout_of_case where = layout_drawn(&rng);
    const enum form form = routine_is_triangular(routine) ? FORM_TYPED : (enum form)(turn / 4 % 2);
    level3_store(&stage, &d, &where, form, JUDGE_EXACT);
    d.a = is_null ? NULL : stage.arena[0].low - 16; /* no access */
    if (stage.out_idx == 2) d.b = is_null ? NULL : stage.arena[1].low + stage.arena[1].bytes;
    char text[DESCRIPTION_BYTES];
    const wsgemm_status status = form == FORM_TYPED ? level3_typed(NULL, &d) : wsgemm_level3(NULL, &d);
    CHECK(status == WSGEMM_SUCCESS, "%s: %s", level3_describe(&d, text), wsgemm_last_error());
    level3_judge(&stage, &d, JUDGE_EXACT, no_k ? "k = 0" : "alpha = 0");
  }
  level3_stage_free(&stage);
}

static void unread_operands(void) {
  rng = check_random_from(360);
  for_all(unread_of);
}

/* m = 0, n = 0 or an empty batch: nothing is touched, whatever the pointers. */
static void nothing_of(wsgemm_routine routine, wsgemm_type type) {
  struct arena arena = arena_new(1);
  for (int what = 0; what < 6; what++) {
    wsgemm_level3_desc d = draw_desc(routine, type, 9);
    void *const nowhere = what % 2 ? arena.low + arena.bytes : NULL;
    d.a = d.b = d.c = nowhere;
    d.lda = d.ldb = d.ldc = 9;
    if (what / 2 == 0) d.n = 0;
    if (what / 2 == 1) *(routine_has_k(routine) ? &d.n : &d.m) = 0;
    if (what / 2 == 2) d.batch_count = 0;
    char text[DESCRIPTION_BYTES];
    CHECK(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS, "%s: %s", level3_describe(&d, text), wsgemm_last_error());
    if (what / 2 < 2) CHECK(level3_typed(NULL, &d) == WSGEMM_SUCCESS, "%s: %s", level3_describe(&d, text), wsgemm_last_error());
  }
  arena_free(&arena);
}

static void nothing_to_do(void) {
  rng = check_random_from(361);
  for_all(nothing_of);
}

/* ---- NaN, Inf, zeros on a diagonal ------------------------------------------------------------- */

static void sow(struct values *x, int64_t rows, int64_t cols, bool nan_only) {
  static const double seeds[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0};
  const int64_t at = check_random_in(&rng, 0, rows - 1) * x->cols + check_random_in(&rng, 0, cols - 1);
  const bool in_im = x->is_complex && check_random_in(&rng, 0, 1);
  (in_im ? x->im : x->re)[at] = seeds[nan_only ? 0 : check_random_in(&rng, 0, 3)];
}

/* A few of them in A, B and C: every component of C is of the reference's class. */
static void spreading_of(wsgemm_routine routine, wsgemm_type type) {
  if (routine_is_triangular(routine)) return;
  for (int turn = 0; turn < 30 / check_scale() + 2; turn++) {
    const int64_t most = turn % 20 == 0 ? 130 : 40;
    struct level3_stage stage = level3_stage_new(type, most, most, FILL_UNIFORM, &rng);
    wsgemm_level3_desc d = draw_desc(routine, type, most);
    int64_t rows[3], cols[3], i_bad = -1, j_bad = -1;
    const bool is_real = routine == WSGEMM_HERK;
    level3_shapes(&d, rows, cols);
    for (int x = 0; x < 3; x++)
      for (int64_t n = check_random_in(&rng, 0, x < 2 ? 3 : 2); n > 0 && rows[x] > 0; n--)
        sow(&stage.x[x], rows[x], cols[x], false);
    d.alpha = turn % 3 ? scalar_make(type, 1, 0) : scalar_make(type, -0.5, is_real ? 0 : 0.25);
    d.beta = turn % 4 == 0 ? scalar_make(type, 0, 0) : scalar_make(type, turn % 4, is_real || routine == WSGEMM_HER2K ? 0 : -1);
    const struct layout_of_case where = layout_drawn(&rng);
    char text[DESCRIPTION_BYTES];
    level3_store(&stage, &d, &where, FORM_DESCRIPTOR, JUDGE_BOUND);
    CHECK(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    double re = 0, im = 0;
    const bool same = level3_same_class(&stage, &d, &stage.stored[2], &i_bad, &j_bad);
    if (!same) matrix_get(&stage.stored[2], i_bad, j_bad, &re, &im);
    CHECK(same, "%s: element (%lld, %lld) is (%g, %g): of another class than the reference's", level3_describe(&d, text),
          (long long)i_bad, (long long)j_bad, re, im);
    level3_stage_free(&stage);
  }
}

static void spreading(void) {
  rng = check_random_from(362);
  for_all(spreading_of);
}

/* trmm, trsm: a NaN in B is in the result where it stood, if the diagonal meets it, and never in
 * another column (LEFT; RIGHT: row), whose elements are as good as ever. */
static void triangle_nan_of(wsgemm_routine routine, wsgemm_type type) {
  if (!routine_is_triangular(routine)) return;
  for (int turn = 0; turn < 40 / check_scale() + 4; turn++) {
    const int64_t most = turn % 10 == 0 ? 150 : 40;
    struct level3_stage stage = level3_stage_new(type, most, most, FILL_UNIFORM, &rng);
    level3_fill_triangle(&stage, TRIANGLE_DOMINANT, &rng);
    wsgemm_level3_desc d = draw_desc(routine, type, most);
    struct values *b = &stage.x[1];
    const int64_t i_nan = check_random_in(&rng, 0, d.m - 1), j_nan = check_random_in(&rng, 0, d.n - 1);
    b->re[i_nan * b->cols + j_nan] = (double)NAN;
    const struct layout_of_case where = layout_drawn(&rng);
    char text[DESCRIPTION_BYTES];
    level3_store(&stage, &d, &where, (enum form)check_random_in(&rng, 1, 3), JUDGE_BOUND);
    CHECK(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < d.m; i++)
      for (int64_t j = 0; j < d.n; j++) {
        double re, im;
        matrix_get(&stage.stored[stage.out_idx], i, j, &re, &im);
        const bool beside = d.side == WSGEMM_LEFT ? j != j_nan : i != i_nan;
        if (i == i_nan && j == j_nan) n_wrong += !isnan(re);
        if (beside) n_wrong += !isfinite(re) || !isfinite(im);
      }
    CHECK(n_wrong == 0, "%s: a NaN at (%lld, %lld) of B: %lld elements are wrong", level3_describe(&d, text), (long long)i_nan,
          (long long)j_nan, (long long)n_wrong);
    level3_stage_free(&stage);
  }
}

static void nan_beside_triangles(void) {
  rng = check_random_from(363);
  for_all(triangle_nan_of);
}

/* trsm: a zero on the diagonal is divided by, so its line of X is Inf or NaN; nothing stops or is
 * refused. */
static void singular_of(wsgemm_routine routine, wsgemm_type type) {
  if (routine != WSGEMM_TRSM) return;
  for (int turn = 0; turn < 40 / check_scale() + 4; turn++) {
    struct level3_stage stage = level3_stage_new(type, 90, 90, FILL_UNIFORM, &rng);
    level3_fill_triangle(&stage, TRIANGLE_DOMINANT, &rng);
    wsgemm_level3_desc d = draw_desc(routine, type, 90);
    d.diag = WSGEMM_NON_UNIT;
    struct values *a = &stage.x[0];
    const int64_t size = level3_sum_length(&d), zero_at = check_random_in(&rng, 0, size - 1);
    a->re[zero_at * a->cols + zero_at] = a->im[zero_at * a->cols + zero_at] = 0;
    const struct layout_of_case where = layout_drawn(&rng);
    char text[DESCRIPTION_BYTES];
    level3_store(&stage, &d, &where, FORM_TYPED, JUDGE_BOUND);
    CHECK(level3_typed(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    int64_t n_finite = 0;
    for (int64_t other = 0; other < (d.side == WSGEMM_LEFT ? d.n : d.m); other++) {
      double re, im;
      matrix_get(&stage.stored[1], d.side == WSGEMM_LEFT ? zero_at : other, d.side == WSGEMM_LEFT ? other : zero_at, &re, &im);
      n_finite += isfinite(re) && isfinite(im);
    }
    CHECK(n_finite == 0, "%s: %lld elements are finite though A(%lld, %lld) is 0", level3_describe(&d, text), (long long)n_finite,
          (long long)zero_at, (long long)zero_at);
    level3_stage_free(&stage);
  }
}

static void singular(void) {
  rng = check_random_from(364);
  for_all(singular_of);
}

/* ---- Subnormal numbers, the floating-point environment ----------------------------------------- */

/* Whole numbers times the least positive number, in B (symm, trmm, trsm), A, or C: kept to the last
 * bit. */
static void subnormals_of(wsgemm_routine routine, wsgemm_type type) {
  const double tiny = type_least(type);
  for (int turn = 0; turn < 12; turn++) {
    struct level3_stage stage = level3_stage_new(type, 60, 60, FILL_INTEGER, &rng);
    if (routine == WSGEMM_TRSM) level3_fill_triangle(&stage, TRIANGLE_SOLVABLE, &rng);
    struct values *const small =
        routine_has_k(routine) && routine != WSGEMM_SYRK && routine != WSGEMM_HERK ? &stage.x[0] : &stage.x[1];
    struct values *const scaled[3] = {small, &stage.x[2], &stage.solution};
    for (int x = 0; x < 3; x++)
      for (int64_t at = 0; at < scaled[x]->rows * scaled[x]->cols; at++) scaled[x]->re[at] *= tiny, scaled[x]->im[at] *= tiny;
    wsgemm_level3_desc d = draw_desc(routine, type, 60);
    if (routine == WSGEMM_SYRK || routine == WSGEMM_HERK) d.alpha = scalar_make(type, tiny, 0);
    if (!routine_is_triangular(routine)) d.beta = scalar_make(type, turn % 2 ? 1 : -3, 0);
    const struct layout_of_case where = layout_drawn(&rng);
    level3_store(&stage, &d, &where, FORM_TYPED, JUDGE_EXACT);
    CHECK(level3_typed(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    level3_judge(&stage, &d, JUDGE_EXACT, "subnormal");
    level3_stage_free(&stage);
  }
}

static void subnormals(void) {
  rng = check_random_from(365);
  for_all(subnormals_of);
}

static void environment_of(wsgemm_routine routine, wsgemm_type type) {
  for (int size = 0; size < 2; size++) {
    const int64_t side = size == 0 ? 5 : 150;
    struct level3_stage stage = level3_stage_new(type, side, side, FILL_UNIFORM, &rng);
    if (routine == WSGEMM_TRSM) level3_fill_triangle(&stage, TRIANGLE_DOMINANT, &rng);
    const struct variant v = draw_variant(routine, type, &rng);
    wsgemm_level3_desc d = level3_desc(routine, type, WSGEMM_COL_MAJOR, &v, side, side, side);
    const struct layout_of_case where = layout_tight();
    level3_store(&stage, &d, &where, FORM_TYPED, JUDGE_BOUND);
    const unsigned long long before = process_control_register();
    feraiseexcept(FE_DIVBYZERO);
    CHECK(level3_typed(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(process_control_register() == before, "the control register went from %#llx to %#llx", before,
          process_control_register());
    CHECK(fetestexcept(FE_DIVBYZERO) != 0, "a flag that the caller had raised was cleared");
    feclearexcept(FE_ALL_EXCEPT);
    level3_stage_free(&stage);
  }
}

static void environment(void) {
  static const int roundings[] = {FE_TONEAREST, FE_UPWARD};
  rng = check_random_from(366);
  for (int r = 0; r < 2; r++)
    for (int flush = 0; flush < 2; flush++) {
      REQUIRE(fesetround(roundings[r]) == 0, "fesetround");
      process_flush_to_zero(flush);
      for_all(environment_of);
      CHECK(fegetround() == roundings[r], "rounding mode %d became %d", roundings[r], fegetround());
      process_flush_to_zero(false);
      fesetround(FE_TONEAREST);
    }
}

static const struct check_case cases[] = {{"unread_operands", unread_operands},
                                          {"nothing_to_do", nothing_to_do},
                                          {"spreading", spreading},
                                          {"nan_beside_triangles", nan_beside_triangles},
                                          {"singular", singular},
                                          {"subnormals", subnormals},
                                          {"environment", environment}};
CHECK_MAIN("level3_special", cases)
