/* test_special.c - the numbers that are no ordinary numbers: what must not be read is not read, NaN
 * and Inf spread as in the reference, subnormals are kept, padding raises no exception, and the
 * caller's floating-point environment stays as it was.
 *
 * The guards round every matrix (matrix.h) are at work in all suites; here they are paired with
 * data that make a stray zero or a stray lane show: Inf times a padded 0 would raise FE_INVALID. */
#include "support/process.h"
#include "support/rows.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <string.h>

static struct check_random rng;
static struct rows_of_type rows;

/* What the row's m and n are when the layout is row-major. */
static wsgemm_gemm_desc desc_for(wsgemm_type type, int64_t down, int64_t across, int64_t k) {
  const wsgemm_layout layout = draw_layout(&rng);
  const bool transposed = layout == WSGEMM_ROW_MAJOR;
  return gemm_desc(type, layout, draw_op(type, &rng), draw_op(type, &rng), transposed ? across : down, transposed ? down : across,
                   k);
}

/* ---- What is not read ------------------------------------------------------------------------ */

/* alpha = 0 or k = 0: A and B are not read (NULL, or pages without access), C = beta C exactly;
 * beta = 0: C is not read. */
static void unread_operands(void) {
  rng = check_random_from(50);
  for (int type = 0; type < N_TYPES; type++) {
    const wsgemm_type t = (wsgemm_type)type;
    struct stage stage = stage_new(t, 40, 40, 10, FILL_INTEGER, &rng);
    static const double betas[][2] = {{0, 0}, {1, 0}, {-1, 0}, {2, -3}, {0.5, 0}};
    for (int turn = 0; turn < 400 / check_scale(); turn++) {
      const bool no_k = turn % 2, is_null = turn / 2 % 2;
      wsgemm_gemm_desc d = desc_for(t, check_random_in(&rng, 1, 40), check_random_in(&rng, 1, 40), no_k ? 0 : 10);
      d.alpha = no_k ? scalar_make(t, 1.5, -2) : scalar_make(t, turn % 3 ? 0 : -0.0, turn % 5 ? 0 : -0.0);
      d.beta = scalar_make(t, betas[turn % 5][0], betas[turn % 5][1]);
      const struct layout_of_case where = layout_drawn(&rng);
      case_store(&stage, &d, &where);
      d.a = is_null ? NULL : stage.arena[0].low - 8; /* the page without access */
      d.b = is_null ? NULL : stage.arena[1].low + stage.arena[1].bytes;
      stage.product.k = d.k; /* all zero: the product is never extended */
      char text[DESCRIPTION_BYTES];
      CHECK(gemm_typed(NULL, &d) == WSGEMM_SUCCESS, "%s: %s", gemm_describe(&d, text), wsgemm_last_error());
      case_judge(&stage, &d, JUDGE_EXACT, no_k ? "k = 0" : "alpha = 0");
    }
    stage_free(&stage);
  }
}

/* m = 0, n = 0 or no product in the batch: nothing is touched, whatever the pointers. */
static void nothing_to_do(void) {
  for (int type = 0; type < N_TYPES; type++)
    for (int what = 0; what < 3; what++) {
      wsgemm_gemm_desc d =
          gemm_desc((wsgemm_type)type, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, what == 0 ? 0 : 5, what == 1 ? 0 : 5, 5);
      if (what == 2) d.batch_count = 0;
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "NULL pointers: %s", wsgemm_last_error());
      struct arena arena = arena_new(1);
      d.a = d.b = d.c = arena.low + arena.bytes; /* no access */
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "pointers to nothing: %s", wsgemm_last_error());
      arena_free(&arena);
    }
}

/* ---- NaN and Inf ----------------------------------------------------------------------------- */

static void sow(struct values *values, int n_seeds) {
  static const double seeds[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0};
  for (int i = 0; i < n_seeds; i++) {
    const int64_t at = check_random_in(&rng, 0, values->rows * values->cols - 1);
    if (check_random_in(&rng, 0, 1) || !values->is_complex)
      values->re[at] = seeds[check_random_in(&rng, 0, 3)];
    else
      values->im[at] = seeds[check_random_in(&rng, 0, 3)];
  }
}

/* Random shapes with a few NaN, Inf and 0 in A, B and C: every component of C is of the reference's
 * class. */
static void spreading_of(wsgemm_type type) {
  rows_open(&rows, type);
  const int64_t kc = rows.max_kc;
  for (int turn = 0; turn < 600 / check_scale(); turn++) {
    const bool is_large = turn % 50 == 1, is_long = turn % 20 == 0;
    const int64_t m = check_random_in(&rng, 1, is_large ? 130 : is_long ? 9 : 2 * rows.row[0].mr + 3);
    const int64_t n = check_random_in(&rng, 1, is_large ? 130 : is_long ? 9 : 2 * rows.row[0].nr + 3);
    const int64_t k = is_long ? kc + check_random_in(&rng, -1, 9) : check_random_in(&rng, 1, is_large ? 40 : 12);
    struct stage stage = stage_new(type, m, n, k, FILL_UNIFORM, &rng);
    sow(&stage.a, (int)check_random_in(&rng, 0, 3));
    sow(&stage.b, (int)check_random_in(&rng, 0, 3));
    sow(&stage.c, (int)check_random_in(&rng, 0, 2));
    product_extend(&stage.product, &stage.a, &stage.b, k);
    for (int i = 0; i < rows.n_rows; i++) {
      wsgemm_gemm_desc d = gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), m, n, k);
      d.alpha = turn % 3 ? scalar_make(type, 1, 0) : scalar_make(type, -0.5, 0.25);
      d.beta = turn % 4 == 0 ? scalar_make(type, 0, 0) : turn % 4 == 1 ? scalar_make(type, 1, 0) : scalar_make(type, 2, -1);
      const struct layout_of_case where = layout_drawn(&rng);
      char text[DESCRIPTION_BYTES];
      int64_t i_bad = -1, j_bad = -1;
      case_store(&stage, &d, &where);
      CHECK(gemm_typed(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const bool same = reference_same_class(&d, &stage.product, &stage.c, &stage.stored[2], &i_bad, &j_bad);
      double re = 0, im = 0;
      if (!same) matrix_get(&stage.stored[2], i_bad, j_bad, &re, &im);
      CHECK(same, "%s: %s: element (%lld, %lld) is (%g, %g): of another class than the reference's", rows.row[i].name,
            gemm_describe(&d, text), (long long)i_bad, (long long)j_bad, re, im);
      case_guards_intact(&stage, &d, rows.row[i].name);
    }
    stage_free(&stage);
  }
  rows_close(&rows);
}

/* alpha = Inf multiplies the sum of each block of k: Inf where these have one sign, as those of positive
 * numbers; else NaN may be, but not where k is one block. */
static void infinite_alpha_of(wsgemm_type type) {
  enum { SIDE = 40 };
  rows_open(&rows, type);
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < 12; turn++) {
      const bool is_positive = turn % 2 == 0, is_one_block = turn % 3 == 0;
      const int64_t k = is_one_block ? check_random_in(&rng, 1, rows.kc[i]) : rows.kc[i] * check_random_in(&rng, 1, 3) + 5;
      struct stage stage = stage_new(type, SIDE, SIDE, k, FILL_UNIFORM, &rng);
      struct values *const factor[2] = {&stage.a, &stage.b};
      for (int x = 0; x < 2 && is_positive; x++)
        for (int64_t at = 0; at < factor[x]->rows * factor[x]->cols; at++) {
          factor[x]->re[at] = 1, factor[x]->im[at] = x == 1 && factor[x]->is_complex ? 1 : 0;
        }
      wsgemm_gemm_desc d = desc_for(type, SIDE, SIDE, k);
      d.transa = all_ops[check_random_in(&rng, 0, 1)], d.transb = all_ops[check_random_in(&rng, 0, 1)];
      d.alpha = scalar_make(type, INFINITY, 0), d.beta = scalar_make(type, 0, 0);
      const struct layout_of_case where = layout_drawn(&rng);
      case_store(&stage, &d, &where);
      CHECK(gemm_typed(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      int n_finite = 0, n_nan = 0;
      for (int64_t at = 0; at < SIDE * SIDE; at++) {
        double re = 0, im = 0;
        matrix_get(&stage.stored[2], at / SIDE, at % SIDE, &re, &im);
        n_finite += isfinite(re) != 0, n_nan += isnan(re) != 0;
      }
      CHECK(n_finite == 0, "%s, k = %lld: %d finite", rows.row[i].name, (long long)k, n_finite);
      CHECK(n_nan == 0 || !(is_positive || is_one_block), "%s, k = %lld: %d NaN", rows.row[i].name, (long long)k, n_nan);
      stage_free(&stage);
    }
  rows_close(&rows);
}

/* One Inf in A or B, all else positive: exact arithmetic raises nothing, so no flag may rise at any
 * edge of the tile. */
static void flags_beside_inf_of(wsgemm_type type) {
  rows_open(&rows, type);
  const int64_t side = rows.widest, most_k = rows.max_kc + 1;
  struct stage stage = stage_new(type, side, side, most_k, FILL_UNIFORM, &rng);
  struct values *const positive[3] = {&stage.a, &stage.b, &stage.c};
  for (int x = 0; x < 3; x++)
    for (int64_t at = 0; at < positive[x]->rows * positive[x]->cols; at++) {
      positive[x]->re[at] = 1 + fabs(positive[x]->re[at]);
      positive[x]->im[at] = positive[x]->is_complex ? 1 + fabs(positive[x]->im[at]) : 0;
    }
  for (int i = 0; i < rows.n_rows; i++)
    for (int down = 1; down <= 2 * rows.row[i].mr + 1; down++)
      for (int across = 1; across <= 2 * rows.row[i].nr + 1; across++) {
        if (check_random_in(&rng, 1, check_scale()) != 1) continue;
        const int64_t k =
            check_random_in(&rng, 0, 19) == 0 ? rows.kc[i] + check_random_in(&rng, -1, 1) : check_random_in(&rng, 1, 9);
        wsgemm_gemm_desc d = desc_for(type, down, across, k);
        /* op without conjugation, so that all terms of one component have one sign (im) or Inf
         * meets finite terms only (re) */
        d.transa = all_ops[check_random_in(&rng, 0, 1)];
        d.transb = all_ops[check_random_in(&rng, 0, 1)];
        d.beta = scalar_make(type, (double)check_random_in(&rng, 0, 1), 0);
        const bool in_a = check_random_in(&rng, 0, 1);
        struct values *seeded = in_a ? &stage.a : &stage.b;
        const int64_t row = check_random_in(&rng, 0, (in_a ? d.m : k) - 1), col = check_random_in(&rng, 0, (in_a ? k : d.n) - 1);
        const int64_t at = row * seeded->cols + col;
        const double before = seeded->re[at];
        seeded->re[at] = (double)INFINITY;
        const struct layout_of_case where = layout_drawn(&rng);
        case_store(&stage, &d, &where);
        feclearexcept(FE_ALL_EXCEPT);
        const wsgemm_status status = gemm_typed(rows.handle[i], &d);
        const int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW);
        char text[DESCRIPTION_BYTES];
        CHECK(status == WSGEMM_SUCCESS && raised == 0, "%s: %s: Inf at (%lld, %lld) of %c: status %d, exceptions %#x",
              rows.row[i].name, gemm_describe(&d, text), (long long)row, (long long)col, in_a ? 'A' : 'B', (int)status,
              (unsigned)raised);
        bool right = true;
        for (int64_t r = 0; r < d.m; r++)
          for (int64_t c = 0; c < d.n; c++) {
            double re, im;
            matrix_get(&stage.stored[2], r, c, &re, &im);
            right = right && (isinf(re) && re > 0) == (in_a ? r == row : c == col) && !isnan(re) && !isnan(im);
          }
        CHECK(right, "%s: %s: Inf at (%lld, %lld) of %c is not where it should be in C", rows.row[i].name,
              gemm_describe(&d, text), (long long)row, (long long)col, in_a ? 'A' : 'B');
        seeded->re[at] = before;
      }
  stage_free(&stage);
  rows_close(&rows);
}

/* Values near the top of the range whose exact results stay in it: no overflow from padding or from
 * sums of other elements. */
static void near_overflow_of(wsgemm_type type) {
  rows_open(&rows, type);
  const double top = type_largest(type);
  struct stage stage = stage_new(type, rows.widest, rows.widest, 1, FILL_ZERO, &rng);
  for (int64_t at = 0; at < rows.widest; at++) {
    stage.a.re[at] = top / 2;
    /* exactly representable products, the largest is the top itself halved and doubled */
    stage.b.re[at] = at % 2 ? 1 : -2;
    stage.b.im[at] = 0;
  }
  product_extend(&stage.product, &stage.a, &stage.b, 1);
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < 300 / check_scale(); turn++) {
      wsgemm_gemm_desc d =
          desc_for(type, check_random_in(&rng, 1, 2 * rows.row[i].mr + 1), check_random_in(&rng, 1, 2 * rows.row[i].nr + 1), 1);
      const struct layout_of_case where = layout_drawn(&rng);
      run_case(&stage, rows.handle[i], &d, &where, turn % 2, JUDGE_EXACT, rows.row[i].name);
    }
  stage_free(&stage);
  rows_close(&rows);
}

/* Subnormal operands and results come out exactly, on the calling thread and on others. */
static void subnormals_of(wsgemm_type type) {
  rows_open(&rows, type);
  const double tiny = type_least(type);
  const int64_t side = 200, k = 5;
  struct stage stage = stage_new(type, side, side, k, FILL_ZERO, &rng);
  for (int64_t i = 0; i < side; i++) {
    stage.a.re[i * k + i % k] = tiny * (double)(1 + i % 7);
    for (int64_t l = 0; l < k; l++) stage.b.re[l * side + i] = (double)(l % 3);
    for (int64_t j = 0; j < side; j++) stage.c.re[i * side + j] = tiny * (double)(j % 5);
  }
  product_extend(&stage.product, &stage.a, &stage.b, k);
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < 12; turn++) {
      REQUIRE(wsgemm_set_num_threads(rows.handle[i], turn < 8 ? 1 : 4) == WSGEMM_SUCCESS, "threads");
      wsgemm_gemm_desc d = turn < 8 ? desc_for(type, check_random_in(&rng, 1, 2 * rows.row[i].mr + 1),
                                               check_random_in(&rng, 1, 2 * rows.row[i].nr + 1), k)
                                    : desc_for(type, side, side, k);
      d.beta = scalar_make(type, turn % 2 ? 1 : -3, 0);
      const struct layout_of_case where = layout_drawn(&rng);
      case_store(&stage, &d,
                 &where); /* underflow, exact, may raise no flag, but multiplying by 0 may be inexact nowhere either */
      feclearexcept(FE_ALL_EXCEPT);
      CHECK(gemm_typed(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const int raised = fetestexcept(FE_ALL_EXCEPT);
#ifdef __x86_64__
      const int allowed = 0;
#else
      const int allowed =
          ~(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT); /* input-denormal and the like */
#endif
      CHECK((raised & ~allowed) == 0, "%s: exceptions %#x from exact subnormal arithmetic", rows.row[i].name, (unsigned)raised);
      bool exact = true;
      for (int64_t r = 0; r < d.m; r++)
        for (int64_t c = 0; c < d.n; c++) {
          double re, im, beta[2];
          matrix_get(&stage.stored[2], r, c, &re, &im);
          scalar_get(type, &d.beta, beta);
          exact = exact && im == 0 &&
                  re == stage.a.re[r * k + r % k] * stage.b.re[(r % k) * side + c] + beta[0] * stage.c.re[r * side + c];
        }
      char text[DESCRIPTION_BYTES];
      CHECK(exact, "%s: %s: subnormal numbers were lost", rows.row[i].name, gemm_describe(&d, text));
    }
  stage_free(&stage);
  rows_close(&rows);
}

/* ---- The caller's floating-point environment ------------------------------------------------- */

static void call_some(void) {
  const int64_t large = check_scale() > 6 ? 130 : 260; /* with the small caches that go with the scale this is large, too */
  for (int type = 0; type < N_TYPES; type++)
    for (int size = 0; size < 3; size++) {
      const int64_t side = size == 0 ? 5 : size == 1 ? 90 : large;
      struct stage stage = stage_new((wsgemm_type)type, side, side, side, FILL_UNIFORM, &rng);
      wsgemm_gemm_desc d = gemm_desc((wsgemm_type)type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, side, side, side);
      const struct layout_of_case where = layout_tight();
      case_store(&stage, &d, &where);
      const unsigned long long before = process_control_register();
      feraiseexcept(FE_DIVBYZERO);
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      CHECK(process_control_register() == before, "the control register went from %#llx to %#llx", before,
            process_control_register());
      CHECK(fetestexcept(FE_DIVBYZERO) != 0, "a flag that the caller had raised was cleared");
      feclearexcept(FE_ALL_EXCEPT);
      stage_free(&stage);
    }
}

static void environment(void) {
  static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  rng = check_random_from(55);
  for (size_t r = 0; r < sizeof roundings / sizeof roundings[0]; r++)
    for (int flush = 0; flush < 2; flush++) {
      REQUIRE(fesetround(roundings[r]) == 0, "fesetround");
      process_flush_to_zero(flush);
      call_some();
      CHECK(fegetround() == roundings[r], "rounding mode %d became %d", roundings[r], fegetround());
      process_flush_to_zero(false);
      fesetround(FE_TONEAREST);
    }
}

static void for_all_types(unsigned salt, void (*run)(wsgemm_type type)) {
  rng = check_random_from(salt);
  for (int type = 0; type < N_TYPES; type++) run((wsgemm_type)type);
}

static void spreading(void) { for_all_types(51, spreading_of); }
static void infinite_alpha(void) { for_all_types(56, infinite_alpha_of); }
static void flags_beside_inf(void) { for_all_types(52, flags_beside_inf_of); }
static void near_overflow(void) { for_all_types(53, near_overflow_of); }
static void subnormals(void) { for_all_types(54, subnormals_of); }

static const struct check_case cases[] = {{"unread_operands", unread_operands},
                                          {"nothing_to_do", nothing_to_do},
                                          {"spreading", spreading},
                                          {"infinite_alpha", infinite_alpha},
                                          {"flags_beside_inf", flags_beside_inf},
                                          {"near_overflow", near_overflow},
                                          {"subnormals", subnormals},
                                          {"environment", environment}};
CHECK_MAIN("special", cases)
