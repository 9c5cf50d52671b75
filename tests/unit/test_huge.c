/* test_huge.c - beyond 2^31: leading dimensions, extents, m and k that no int holds. The memory is
 * mapped sparsely or maps one small file over and over, so that little of it exists; where the
 * system refuses such mappings the case is skipped. */
#define _GNU_SOURCE
#include "support/gemm_call.h"
#include "support/huge.h"

#include <sys/mman.h>

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

/* k beyond 2^31: all terms zero but four, one of them behind 2^31, one at the end. */
static void long_sum(void) {
  const int64_t k = BEYOND + 1029;
  if (is_too_much_here(true)) return;
  float *x = map_sparse((size_t)k * sizeof *x);
  if (!x) {
    check_skip("the system maps no %lld bytes", (long long)k * 4);
    return;
  }
  x[0] = 3, x[BEYOND - 1] = 5, x[BEYOND + 1] = 7, x[k - 1] = 11;
  float c = -1;
  CHECK(wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 1, 1, k, 1, x, k, x, k, 1, &c, 1) == WSGEMM_SUCCESS,
        "%s", wsgemm_last_error());
  CHECK(c == 9 + 25 + 49 + 121 - 1, "%g", (double)c);
  munmap(x, (size_t)k * sizeof *x);
}

/* m beyond 2^31: A and C are each one 2 MiB file mapped over and over, so every element of C must
 * come out the same. */
static void tall_c(void) {
  const int64_t m = BEYOND + 41;
  const size_t piece = (size_t)2 << 20, n_piece = piece / sizeof(float);
  if (is_too_much_here(true)) return;
  float *a = map_over_and_over(m, piece), *c = map_over_and_over(m, piece);
  if (!a || !c) {
    check_skip("the system does not map 2 MiB 4097 times");
    return;
  }
  for (size_t i = 0; i < n_piece; i++) a[i] = 3, c[i] = 0;
  const float b = 2;
  CHECK(wsgemm_sgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, 1, 1, 1, a, m, &b, 1, 0, c, m) ==
            WSGEMM_SUCCESS,
        "%s", wsgemm_last_error());
  int64_t n_wrong = 0;
  for (size_t i = 0; i < n_piece; i++) n_wrong += c[i] != 6;
  CHECK(n_wrong == 0, "%lld elements of C are not 6", (long long)n_wrong);
  munmap(a, (size_t)m * sizeof *a);
  munmap(c, (size_t)m * sizeof *c);
}

static const struct check_case cases[] = {{"far_columns", far_columns}, {"long_sum", long_sum}, {"tall_c", tall_c}};
CHECK_MAIN("huge", cases)
