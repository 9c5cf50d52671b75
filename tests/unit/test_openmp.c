/* test_openmp.c - inside an OpenMP parallel region a call works alone: the region has its threads
 * already. Outside it does not, and the bits are the same. Skipped where the compiler has no
 * OpenMP. */
#include "support/process.h"
#include "support/rows.h"

static void parallel_region(void) {
#ifndef _OPENMP
  check_skip("built without OpenMP");
#else
  enum { N = 4 };
  struct check_random rng = check_random_from(90);
  struct stage stage[N];
  wsgemm_gemm_desc d[N];
  wsgemm_handle *h = NULL;
  unsigned long long expected[N];
  const struct layout_of_case where = layout_tight();
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, 3) == WSGEMM_SUCCESS, "handle");
  for (int i = 0; i < N; i++) {
    stage[i] = stage_new(WSGEMM_F32, 300, 200, 150, FILL_UNIFORM, &rng);
    d[i] = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 200, 150);
    case_store(&stage[i], &d[i], &where);
  }
  int n_after_first = 0, n_explained[N];
#pragma omp parallel for num_threads(N)
  for (int i = 0; i < N; i++) {
    n_explained[i] = (int)explained_number(h, &d[i], "threads", -1);
    CHECK(wsgemm_gemm(h, &d[i]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  n_after_first = process_n_threads();
  for (int i = 0; i < N; i++) {
    CHECK(n_explained[i] == 1, "a call inside the region would use %d threads", n_explained[i]);
    expected[i] = matrix_digest(&stage[i].stored[2]);
    case_store(&stage[i], &d[i], &where);
  }
  CHECK(explained_number(h, &d[0], "threads", -1) == 3, "a call outside would use %lld threads",
        explained_number(h, &d[0], "threads", -1));
  for (int i = 0; i < N; i++) {
    CHECK(wsgemm_gemm(h, &d[i]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(matrix_digest(&stage[i].stored[2]) == expected[i], "other bits outside the region");
    stage_free(&stage[i]);
  }
  CHECK(process_n_threads() == n_after_first + 2, "the pool's threads were made in the region, or not at all: %d, then %d",
        n_after_first, process_n_threads());
  wsgemm_destroy(h);
#endif
}

static const struct check_case cases[] = {{"parallel_region", parallel_region}};
CHECK_MAIN("openmp", cases)
