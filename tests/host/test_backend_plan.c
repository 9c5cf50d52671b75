/* test_backend_plan.c - that a call on device memory is planned once: how often it goes through the
 * table of rows, however many chunks of C it takes. The linker puts a counter before
 * ws_cuda_row_count (--wrap), which every search through the rows asks before each row and at its
 * end. */
#include "fake_slices.h"

#include <pthread.h>
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

/* The times of rows tf32, ffma and tiled, a row for two slices, a row for three, and what a thread has forgotten of these: it
 * remembers two questions of a kind. */
CHILD_CASE(sliced) {
  (void)unused;
  enum { MOST_SEARCHES = 6, N_LAUNCHES = 6 };
  wsgemm_handle *h = forced(NULL);
  const wsgemm_gemm_desc d = device_desc(WSGEMM_F32, 2048, 2048, 2048, 0);
  char *workspace = fake_alloc(FAKE_DEVICE, 0, 16 << 20);
  int n_searches = searches_of(h, &d);
  CHECK(n_searches <= MOST_SEARCHES && fake.n_launches == N_LAUNCHES, "%d searches", n_searches);
  REQUIRE(wsgemm_set_workspace(h, workspace, 16 << 20) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  n_searches = searches_of(h, &d);
  CHECK(n_searches <= MOST_SEARCHES && fake.n_launches > 4 * N_LAUNCHES, "%d searches for %d launches", n_searches,
        fake.n_launches);
  wsgemm_destroy(h);
}

/* Rows on tensor cores, with copies, at once and in chunks; rows of multiply-adds, with sums and
 * without. */
CHILD_CASE(others) {
  (void)unused;
  wsgemm_handle *h = forced(NULL);
  wsgemm_gemm_desc half = device_desc(WSGEMM_BF16, 2049, 2048, 2048, 0);
  const wsgemm_gemm_desc plain = device_desc(WSGEMM_F64, 1000, 1000, 10, 0);
  wsgemm_gemm_desc split = device_desc(WSGEMM_C32, 64, 64, 8192, 0);
  split.math = WSGEMM_MATH_PEDANTIC; /* tf32 rows do not cut k into items */
  char *workspace = fake_alloc(FAKE_DEVICE, 0, 4 << 20);
  int n_searches = searches_of(h, &half);
  CHECK(n_searches == 1 && fake.n_launches == 2, "%d searches, %d launches", n_searches, fake.n_launches);
  n_searches = searches_of(h, &plain);
  CHECK(n_searches == 1, "%d searches", n_searches);
  n_searches = searches_of(h, &split); /* both kinds of multiply-adds, and the row */
  CHECK(n_searches <= 3 && fake.launch[0].is_cooperative, "%d searches", n_searches);
  REQUIRE(wsgemm_set_workspace(h, workspace, 4 << 20) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  n_searches = searches_of(h, &half); /* it is remembered */
  CHECK(n_searches == 0 && fake.n_launches > 2, "%d searches, %d launches", n_searches, fake.n_launches);
  REQUIRE(wsgemm_set_workspace(h, workspace, 4096) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  n_searches = searches_of(h, &split);
  CHECK(n_searches <= 3 && !fake.launch[0].is_cooperative, "%d searches", n_searches); /* and the smallest row */
  wsgemm_destroy(h);
}

/* ---- What a thread remembers ----------------------------------------------------------------- */

typedef struct question {
  wsgemm_handle *h;
  wsgemm_gemm_desc d;
  char text[1500];
} question;

static void *ask(void *argument) {
  question *q = argument;
  wsgemm_explain(q->h, &q->d, q->text, sizeof q->text);
  return NULL;
}

/* Base, or the base with one thing changed. */
static void vary(question *q, int what) {
  q->d =
      device_desc(what == 1 ? WSGEMM_BF16 : WSGEMM_F16, what == 2 ? 264 : 512, what == 3 ? 40 : 512, what == 4 ? 4096 : 512, 0);
  if (what == 5) q->d.transa = WSGEMM_TRANS, q->d.lda = q->d.k;
  if (what == 6) q->d.transb = WSGEMM_TRANS, q->d.ldb = q->d.n;
  if (what == 7) q->d.batch_count = 20;
  if (what == 8) q->d.beta.s = 1;
  if (what == 9) q->d.type_c = WSGEMM_F32;
  if (what == 10) q->d.epilogue = WSGEMM_EPILOGUE_GELU_TANH;
  if (what == 11) q->d.math = WSGEMM_MATH_PEDANTIC;
  if (what == 14) q->d.m = 511;
  if (what >= 15) q->d = device_desc(WSGEMM_F16, 384, 3008, 1976, 0); /* where C's type makes another order of sums better */
  if (what == 16) q->d.type_c = WSGEMM_BF16;
  REQUIRE(wsgemm_set_coarse_factor(q->h, what == 12 ? 2 : 0) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(wsgemm_set_invariant(q->h, what == 13) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

/* The plan is the one of a thread that remembers nothing, whatever came before; and the same product
 * again costs no search. */
CHILD_CASE(remembered) {
  (void)unused;
  enum { N_WAYS = 17 };
  static question here, there;
  here.h = there.h = forced(NULL);
  int n_texts = 0;
  char first[sizeof here.text] = "";
  for (int turn = 0; turn < 3; turn++)
    for (int what = 0; what < N_WAYS; what++) {
      pthread_t thread;
      vary(&here, what), there.d = here.d;
      ask(&here);
      REQUIRE(pthread_create(&thread, NULL, ask, &there) == 0 && pthread_join(thread, NULL) == 0, "a thread");
      CHECK(strcmp(here.text, there.text) == 0, "way %d, turn %d: after others\n%s\nin a new thread\n%s", what, turn, here.text,
            there.text);
      n_asked = 0;
      ask(&here);
      CHECK(n_asked == 0 || what == 11 || what == 13, "way %d, turn %d: %d questions for what is known", what, turn, n_asked);
      if (what == 0) strcpy(first, here.text);
      n_texts += strcmp(first, here.text) != 0;
    }
  CHECK(n_texts >= 30, "only %d plans differ", n_texts);
  wsgemm_destroy(here.h);
}

static const struct check_case cases[] = {{"sliced", sliced}, {"others", others}, {"remembered", remembered}};
CHECK_MAIN("backend_plan", cases)
