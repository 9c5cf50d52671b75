/* test_huge.c - beyond 2^31: leading dimensions, extents, m and k that no int holds. The memory is
 * mapped sparsely or maps one small file over and over, so that little of it exists; where the
 * system refuses such mappings the case is skipped. */
#define _GNU_SOURCE
#include "support/gemm_call.h"
#include "support/huge.h"

/* Columns (or rows) that stand more than 2^31 elements apart, for each operand, op and layout. */
static void far_columns(void) {
  if (is_too_much_here(false)) return;
  struct check_random rng = check_random_from(60);
  const int64_t m = 5, n = 4, k = 3;
  for (int type = 0; type < N_TYPES; type++) {
    const wsgemm_type t = (wsgemm_type)type;
    struct stage stage = stage_new(t, m, n, k, FILL_INTEGER, &rng);
    product_extend(&stage.product, &stage.a, &stage.b, k);
    for (int turn = 0; turn < 3 * 8; turn++) {
      const int far = turn % 3;
      wsgemm_gemm_desc d = gemm_desc(t, all_layouts[turn / 3 % 2], all_ops[turn / 6 % 2], all_ops[turn / 12 % 2], m, n, k);
      int64_t *const lds[3] = {&d.lda, &d.ldb, &d.ldc};
      struct layout_of_case where = layout_tight();
      case_store(&stage, &d, &where);
      struct matrix x;
      if (!matrix_far_apart(&stage.stored[far], &x)) {
        check_skip("the system maps no %zu bytes", matrix_extent_bytes(&x));
        stage_free(&stage);
        return;
      }
      *lds[far] = x.ld;
      if (far == 0)
        d.a = x.elements;
      else if (far == 1)
        d.b = x.elements;
      else
        d.c = x.elements;
      char text[DESCRIPTION_BYTES];
      CHECK(gemm_typed(NULL, &d) == WSGEMM_SUCCESS, "%s: %s", gemm_describe(&d, text), wsgemm_last_error());
      const struct verdict v = reference_judge_exact(&d, &stage.product, &stage.c, far == 2 ? &x : &stage.stored[2]);
      CHECK(v.passed, "%s: wrong at (%lld, %lld): %g, expected %g", gemm_describe(&d, text), (long long)v.i, (long long)v.j,
            v.got_re, v.expected_re);
      matrix_unmap(&x);
    }
    stage_free(&stage);
  }
}

static wsgemm_status add_squares(int64_t k, const float *x, float *c) {
  return wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 1, 1, k, 1, x, k, x, k, 1, c, 1);
}
static void long_sum(void) { check_long_sum(add_squares); }

static void tall_c(void) {
  struct tall t;
  if (!tall_map(&t)) return;
  tall_fill(&t, 3);
  const float b = 2;
  CHECK(wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, t.m, 1, 1, 1, t.in, t.m, &b, 1, 0, t.out, t.m) ==
            WSGEMM_SUCCESS,
        "%s", wsgemm_last_error());
  check_tall(&t, 6, "C");
  tall_unmap(&t);
}

static const struct check_case cases[] = {{"far_columns", far_columns}, {"long_sum", long_sum}, {"tall_c", tall_c}};
CHECK_MAIN("huge", cases)
