/* test_level3_huge.c - Level 3 beyond 2^31: leading dimensions, extents, k and m that no int holds.
 * Memory is mapped sparsely, or maps one small file over and over, so that little of it exists;
 * where the system refuses such mappings the case is skipped. */
#define _GNU_SOURCE
#include "support/huge.h"
#include "support/level3_call.h"
#include "support/level3_reference.h"

#include <sys/mman.h>

/* Columns (or rows) more than 2^31 elements apart, in each matrix of each routine. */
static bool far_columns_of(struct level3_stage *stage, wsgemm_level3_desc *d, int far, enum form form) {
  const struct layout_of_case where = layout_tight();
  char text[DESCRIPTION_BYTES];
  int64_t *const lds[3] = {&d->lda, &d->ldb, &d->ldc};
  level3_store(stage, d, &where, form, JUDGE_EXACT);
  if (!lds[far] || *lds[far] == 0) return true;
  struct matrix x;
  if (!matrix_far_apart(&stage->stored[far], &x)) return false;
  *lds[far] = x.ld;
  if (far == 0)
    d->a = x.elements;
  else if (far == 1)
    d->b = x.elements;
  else
    d->c = x.elements;
  CHECK(wsgemm_level3(NULL, d) == WSGEMM_SUCCESS, "%s: %s", level3_describe(d, text), wsgemm_last_error());
  const struct level3_verdict v =
      level3_verdict_of(stage, d, far == stage->out_idx ? &x : &stage->stored[stage->out_idx], JUDGE_EXACT);
  CHECK(v.passed, "%s: wrong at (%lld, %lld): %g, expected %g", level3_describe(d, text), (long long)v.i, (long long)v.j,
        v.got_re, v.expected_re);
  matrix_unmap(&x);
  return true;
}

static void far_columns(void) {
  if (is_too_much_here(false)) return;
  struct check_random rng = check_random_from(380);
  for (int t = 0; t < N_LEVEL3_TYPES; t++)
    for (int r = 0; r < N_ROUTINES; r++) {
      const wsgemm_routine routine = all_routines[r];
      if (!routine_has_type(routine, (wsgemm_type)t)) continue;
      struct level3_stage stage = level3_stage_new((wsgemm_type)t, 6, 6, FILL_INTEGER, &rng);
      if (routine == WSGEMM_TRSM) level3_fill_triangle(&stage, TRIANGLE_SOLVABLE, &rng);
      for (int turn = 0; turn < 12; turn++) {
        const struct variant v = draw_variant(routine, (wsgemm_type)t, &rng);
        wsgemm_level3_desc d = level3_desc(routine, (wsgemm_type)t, all_layouts[turn % 2], &v, 5, 4, 3);
        const bool triangular = routine_is_triangular(routine), has_b = routine != WSGEMM_SYRK && routine != WSGEMM_HERK;
        const int far = turn % 3 == 1 && !has_b ? 2 : turn % 3;
        if (!triangular) d.beta = scalar_make(d.type, -1, 0);
        if (!far_columns_of(&stage, &d, far, triangular && far == 2 ? FORM_APART : FORM_DESCRIPTOR)) {
          level3_stage_free(&stage);
          check_skip("the system maps no such memory");
          return;
        }
      }
      level3_stage_free(&stage);
    }
}

static wsgemm_status add_squares(int64_t k, const float *x, float *c) {
  return wsgemm_ssyrk(NULL, WSGEMM_COL_MAJOR, WSGEMM_UPPER, WSGEMM_TRANS, 1, k, 1, x, k, 1, c, 1);
}
static void long_sum(void) { check_long_sum(add_squares); }

/* A triangle of more than 2^31 elements, all zero but some near its corners and its diagonal. */
static void large_triangle(void) {
  const int64_t n = 46400;
  if (is_too_much_here(true)) return;
  float *a = map_sparse((size_t)(n * n) * sizeof *a), *b = map_sparse(2 * (size_t)n * sizeof *b);
  if (!a || !b) {
    check_skip("the system maps no %lld bytes", (long long)(n * n * 4));
    return;
  }
  float *const c = b + n;
  const int64_t last = n - 1;
  a[0] = 2, a[last] = 3 /* (n - 1, 0) */, a[last + last * n] = 5, a[last + (last - 1) * n] = 7;
  b[0] = 1, b[last - 1] = 10, b[last] = 100;
  CHECK(wsgemm_ssymm(NULL, WSGEMM_COL_MAJOR, WSGEMM_LEFT, WSGEMM_LOWER, n, 1, 1, a, n, b, n, 0, c, n) == WSGEMM_SUCCESS, "%s",
        wsgemm_last_error());
  CHECK(c[0] == 2 + 300 && c[last - 1] == 700 && c[last] == 3 + 70 + 500 && c[1] == 0, "symm: %g %g %g %g", (double)c[0],
        (double)c[last - 1], (double)c[last], (double)c[1]);
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  d.routine = WSGEMM_TRMM, d.uplo = WSGEMM_LOWER, d.m = n, d.n = 1, d.alpha.s = 1;
  d.a = a, d.lda = n, d.b = b, d.ldb = n, d.c = c, d.ldc = n;
  CHECK(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(c[0] == 2 && c[last - 1] == 0 && c[last] == 3 + 70 + 500, "trmm: %g %g %g", (double)c[0], (double)c[last - 1],
        (double)c[last]);
  d.routine = WSGEMM_TRSM, d.diag = WSGEMM_UNIT;
  CHECK(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(c[0] == 1 && c[last - 1] == 10 && c[last] == 100 - 3 - 70, "trsm: %g %g %g", (double)c[0], (double)c[last - 1],
        (double)c[last]);
  munmap(a, (size_t)(n * n) * sizeof *a);
  munmap(b, 2 * (size_t)n * sizeof *b);
}

static void tall(void) {
  static const struct {
    wsgemm_routine routine;
    const char *name;
    float expected;
  } calls[] = {{WSGEMM_SYMM, "symm", 12}, {WSGEMM_TRMM, "trmm", 12}, {WSGEMM_TRSM, "trsm", 3}};
  struct tall t;
  if (!tall_map(&t)) return;
  const float a = 2;
  for (int r = 0; r < 3; r++) {
    tall_fill(&t, 6);
    wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
    d.routine = calls[r].routine, d.side = WSGEMM_RIGHT, d.m = t.m, d.n = 1, d.alpha.s = 1;
    d.a = &a, d.lda = 1, d.b = t.in, d.ldb = t.m, d.c = t.out, d.ldc = t.m;
    CHECK(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    check_tall(&t, calls[r].expected, calls[r].name);
  }
  tall_unmap(&t);
}

static const struct check_case cases[] = {
    {"far_columns", far_columns}, {"long_sum", long_sum}, {"large_triangle", large_triangle}, {"tall", tall}};
CHECK_MAIN("level3_huge", cases)
