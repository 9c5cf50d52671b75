/* test_backend_plan.c - that a call on device memory is planned once: how often it goes through the
 * table of rows, however many chunks of C it takes. The linker puts a counter before
 * ws_cuda_row_count (--wrap), which every search through the rows asks before each row and at its
 * end. */
#include "fake_slices.h"

#include <string.h>

int __real_ws_cuda_row_count(void);
int __wrap_ws_cuda_row_count(void);
static int n_asked;
int __wrap_ws_cuda_row_count(void) {
  n_asked++;
  return __real_ws_cuda_row_count();
}

static int searches_of(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  n_asked = 0;
  REQUIRE(watched_gemm(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(n_asked % (n_all_gpu_rows + 1) == 0, "%d is no number of whole searches", n_asked);
  return n_asked / (n_all_gpu_rows + 1);
}

/* The time of multiply-adds, a row for two slices, a row for three. */
CHILD_CASE(sliced) {
  (void)unused;
  enum { SEARCHES = 3, N_LAUNCHES = 6 };
  wsgemm_handle *h = forced(NULL);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 2048, 2048, 2048, 0);
  char *workspace = fake_alloc(FAKE_DEVICE, 0, 16 << 20);
  CHECK(searches_of(h, &d) == SEARCHES && fake.n_launches == N_LAUNCHES, "%d searches", searches_of(h, &d));
  REQUIRE(wsgemm_set_workspace(h, workspace, 16 << 20) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(searches_of(h, &d) == SEARCHES && fake.n_launches > 4 * N_LAUNCHES, "%d searches for %d launches", searches_of(h, &d),
        fake.n_launches);
  wsgemm_destroy(h);
}

/* Rows on tensor cores, with copies, at once and in chunks; rows of multiply-adds, with sums and
 * without. */
CHILD_CASE(others) {
  (void)unused;
  wsgemm_handle *h = forced(NULL);
  wsgemm_gemm_desc half = device_desc(WSGEMM_BF16, 2049, 2048, 2048, 0);
  const wsgemm_gemm_desc plain = device_desc(WSGEMM_F64, 1000, 1000, 10, 0), split = device_desc(WSGEMM_F64, 64, 64, 8192, 0);
  char *workspace = fake_alloc(FAKE_DEVICE, 0, 4 << 20);
  CHECK(searches_of(h, &half) == 1 && fake.n_launches == 2, "%d searches, %d launches", searches_of(h, &half), fake.n_launches);
  CHECK(searches_of(h, &plain) == 1, "%d searches", searches_of(h, &plain));
  CHECK(searches_of(h, &split) == 1 && fake.launch[0].is_cooperative, "%d searches", searches_of(h, &split));
  REQUIRE(wsgemm_set_workspace(h, workspace, 4 << 20) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(searches_of(h, &half) == 1 && fake.n_launches > 2, "%d searches, %d launches", searches_of(h, &half), fake.n_launches);
  REQUIRE(wsgemm_set_workspace(h, workspace, 4096) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(searches_of(h, &split) == 2 && !fake.launch[0].is_cooperative, "%d searches",
        searches_of(h, &split)); /* and the smallest row */
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {{"sliced", sliced}, {"others", others}};
CHECK_MAIN("backend_plan", cases)
