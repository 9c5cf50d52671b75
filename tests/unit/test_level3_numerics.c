/* test_level3_numerics.c - every Level 3 routine against the 113-bit reference, componentwise, with
 * the bound of the header: random and spread numbers on every registry row, sums longer than a k
 * block, all of one sign, and trsm for triangles that are well conditioned, random, graded, near
 * singular, and Hilbert's, unit and not. */
#include "support/level3_call.h"
#include "support/rows.h"

#include <math.h>

static struct check_random rng;
static struct rows_of_type rows;

static bool run_bound(struct level3_stage *stage, int i, wsgemm_level3_desc *d) {
  const struct layout_of_case where = layout_drawn(&rng);
  draw_scalars(d, JUDGE_BOUND, &rng);
  return run_level3(stage, rows.handle[i], d, &where, (enum form)check_random_in(&rng, 0, N_FORMS - 1), JUDGE_BOUND,
                    rows.row[i].name);
}

static void products_of(wsgemm_type type, enum fill fill, int n_turns) {
  rows_open(&rows, type);
  const int64_t kc = rows.max_kc;
  struct level3_stage stage = level3_stage_new(type, kc + 72, kc + 72, fill, &rng);
  for (int i = 0; i < rows.n_rows; i++)
    for (int r = 0; r < N_ROUTINES; r++) {
      if (!routine_has_type(all_routines[r], type) || all_routines[r] == WSGEMM_TRSM) continue;
      for (int turn = 0; turn < (n_turns + check_scale() - 1) / check_scale(); turn++) {
        const struct variant v = draw_variant(all_routines[r], type, &rng);
        const bool is_long = turn % 8 == 0;
        int64_t m = check_random_in(&rng, 1, 2 * rows.row[i].mr + 3), n = check_random_in(&rng, 1, 2 * rows.row[i].nr + 3);
        int64_t k = check_random_in(&rng, 0, 40);
        if (is_long && routine_has_k(all_routines[r]))
          k = kc + check_random_in(&rng, -1, 70);
        else if (is_long)
          *(v.side == WSGEMM_LEFT ? &m : &n) = rows.kc[i] + check_random_in(&rng, -1, 2);
        REQUIRE(wsgemm_set_num_threads(rows.handle[i], 1 + turn % 3) == WSGEMM_SUCCESS, "threads");
        wsgemm_level3_desc d = level3_desc(all_routines[r], type, draw_layout(&rng), &v, m, n, k);
        run_bound(&stage, i, &d);
      }
    }
  level3_stage_free(&stage);
  rows_close(&rows);
}

/* ---- Sums of one sign -------------------------------------------------------------------------- */

static void make_positive(struct values *x) {
  for (int64_t at = 0; at < x->rows * x->cols; at++) x->re[at] = fabs(x->re[at]), x->im[at] = x->is_complex ? fabs(x->im[at]) : 0;
}

/* One rounding too many per term, or a sum that is rounded to memory after each block, would leave
 * the bound here first. */
static void one_sign(void) {
  const int64_t size = 3 * 700;
  rng = check_random_from(324);
  for (int t = 0; t < N_LEVEL3_TYPES; t++) {
    struct level3_stage stage = level3_stage_new((wsgemm_type)t, size, size, FILL_UNIFORM, &rng);
    for (int x = 0; x < 3; x++) make_positive(&stage.x[x]);
    for (int r = 0; r < N_ROUTINES; r++) {
      const wsgemm_routine routine = all_routines[r];
      if (!routine_has_type(routine, (wsgemm_type)t) || routine == WSGEMM_TRSM) continue;
      const struct variant v = draw_variant(routine, (wsgemm_type)t, &rng);
      const bool is_left = v.side == WSGEMM_LEFT;
      const int64_t length = size / check_scale();
      wsgemm_level3_desc d = level3_desc(routine, (wsgemm_type)t, draw_layout(&rng), &v, is_left ? length : 2,
                                         routine_has_k(routine) ? 3
                                         : is_left              ? 2
                                                                : length,
                                         length);
      d.alpha = scalar_make(d.type, 1.7, 0), d.beta = scalar_make(d.type, routine_is_triangular(routine) ? 0 : 0.3, 0);
      const struct layout_of_case where = layout_tight();
      run_level3(&stage, NULL, &d, &where, FORM_DESCRIPTOR, JUDGE_BOUND, "one sign");
    }
    level3_stage_free(&stage);
  }
}

/* ---- Triangular systems ------------------------------------------------------------------------ */

/* Solutions grow with the size of a random triangle, in single precision soon beyond the range. */
static int64_t most_size(wsgemm_type type, enum triangle kind) {
  const bool grows = kind == TRIANGLE_RANDOM || kind == TRIANGLE_GRADED || kind == TRIANGLE_NEAR_SINGULAR;
  return kind == TRIANGLE_HILBERT ? 12 : !grows ? 300 : type_is_single(type) ? 70 : 200;
}

static void systems_of(wsgemm_type type) {
  rows_open(&rows, type);
  for (int kind = TRIANGLE_DOMINANT; kind < N_TRIANGLES; kind++) {
    const int64_t most = most_size(type, (enum triangle)kind);
    struct level3_stage stage = level3_stage_new(type, most, most, FILL_UNIFORM, &rng);
    level3_fill_triangle(&stage, (enum triangle)kind, &rng);
    for (int i = 0; i < rows.n_rows; i++) {
      struct variant variants[MAX_VARIANTS];
      const int n_variants = variants_of(WSGEMM_TRSM, type, variants);
      for (int turn = 0; turn < n_variants; turn++) {
        if (check_random_in(&rng, 1, check_scale()) != 1) continue;
        const bool is_left = variants[turn].side == WSGEMM_LEFT;
        const bool is_steep = kind == TRIANGLE_GRADED && variants[turn].diag == WSGEMM_UNIT;
        const bool overflows = kind == TRIANGLE_HUGE && variants[turn].diag == WSGEMM_UNIT;
        const int64_t limit = overflows ? 1 : is_steep ? (type_is_single(type) ? 8 : 60) : most;
        const int64_t size = turn % 8 == 0 ? limit : check_random_in(&rng, 1, limit < 70 ? limit : 70);
        const int64_t other = check_random_in(&rng, 1, most < 40 ? most : 40);
        REQUIRE(wsgemm_set_num_threads(rows.handle[i], 1 + turn % 3) == WSGEMM_SUCCESS, "threads");
        wsgemm_level3_desc d =
            level3_desc(WSGEMM_TRSM, type, draw_layout(&rng), &variants[turn], is_left ? size : other, is_left ? other : size, 0);
        if (!run_bound(&stage, i, &d)) CHECK(false, "that was triangle kind %d", kind);
      }
    }
    level3_stage_free(&stage);
  }
  rows_close(&rows);
}

static void products_single(void) { rng = check_random_from(320), products_of(WSGEMM_F32, FILL_UNIFORM, 32); }
static void products_double(void) { rng = check_random_from(321), products_of(WSGEMM_F64, FILL_UNIFORM, 32); }
static void products_single_complex(void) { rng = check_random_from(322), products_of(WSGEMM_C32, FILL_UNIFORM, 24); }
static void products_double_complex(void) { rng = check_random_from(323), products_of(WSGEMM_C64, FILL_UNIFORM, 24); }
static void spread(void) {
  rng = check_random_from(325);
  for (int t = 0; t < N_LEVEL3_TYPES; t++) products_of((wsgemm_type)t, FILL_SPREAD, 8);
}
static void systems_single(void) { rng = check_random_from(326), systems_of(WSGEMM_F32); }
static void systems_double(void) { rng = check_random_from(327), systems_of(WSGEMM_F64); }
static void systems_single_complex(void) { rng = check_random_from(328), systems_of(WSGEMM_C32); }
static void systems_double_complex(void) { rng = check_random_from(329), systems_of(WSGEMM_C64); }

static const struct check_case cases[] = {{"products_single", products_single},
                                          {"products_double", products_double},
                                          {"products_single_complex", products_single_complex},
                                          {"products_double_complex", products_double_complex},
                                          {"one_sign", one_sign},
                                          {"spread", spread},
                                          {"systems_single", systems_single},
                                          {"systems_double", systems_double},
                                          {"systems_single_complex", systems_single_complex},
                                          {"systems_double_complex", systems_double_complex}};
CHECK_MAIN("level3_numerics", cases)
