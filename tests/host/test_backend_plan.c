/* test_backend_plan.c - that a call on device memory is planned once: how often it goes through the
 * table of rows, however many chunks of C it takes; and what rows and models say that no launch
 * shows. The linker puts a counter before ws_cuda_row_count (--wrap), which every search through
 * the rows asks before each row and at its end. */
#include "cuda/host/direct_model.h"
#include "cuda/host/plan.h"
#include "cuda/host/split.h"
#include "cuda/rows/parts.h"
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

/* ---- the order of sums ------------------------------------------------------------------------- */

/* Parts of k within a block and a cluster, and what an operand is cut into: rows of one kind that agree in these add in one order, and
 * no others may take each other's place. Of one slice warps and warpgroups add alike. */
static bool adds_alike(const ws_cuda_row *x, const ws_cuda_row *y) {
  return x->k_groups == y->k_groups && x->cluster_splits == y->cluster_splits && x->n_slices == y->n_slices &&
         (x->n_slices < 2 || (x->slice_places > 0) == (y->slice_places > 0)) && x->is_flat == y->is_flat &&
         (x->type != WSGEMM_C32 || x->stays == y->stays);
}

static bool sums_parts(ws_row_kind kind) { return kind == WS_ROW_DIRECT || kind == WS_ROW_DMMA || kind == WS_ROW_TF32; }

CHILD_CASE(orders) {
  (void)unused;
  int n_alike = 0, n_unlike = 0;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (!sums_parts(row->kind)) continue;
    const ws_problem p = {
        .a.type = row->type, .b.type = row->type, .c.type = row->type, .m = 640, .n = 640, .k = 640, .batch_count = 1};
    const ws_gpu_plan plan = {
        .problem = &p, .kind = row->kind, .n_slices = row->n_slices, .takes_fma = row->is_fma, .row_idx = r};
    for (int other = 0; other < n_all_gpu_rows; other++) {
      if (gpu_rows[other].type != row->type || gpu_rows[other].kind != row->kind) continue;
      const bool is_alike = adds_alike(row, &gpu_rows[other]);
      n_alike += is_alike && other != r, n_unlike += !is_alike;
      CHECK(is_alike || !ws_gpu_plan_may_take(&plan, other), "%s may take the place of %s", gpu_rows[other].name, row->name);
    }
  }
  CHECK(n_alike >= 20 && n_unlike >= 20, "%d pairs alike, %d not", n_alike, n_unlike);
}

/* Rows that share entry points differ in their blocks of k alone, and one of them, from which the entry points are made, has one. */
static void entries(void) {
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    int n_of_one = 0;
    for (int i = 0; row->any_parts && i < n_all_gpu_rows; i++) {
      const ws_cuda_row *other = &gpu_rows[i];
      const size_t length = ws_entry_length(row);
      if (!other->any_parts || ws_entry_length(other) != length || strncmp(other->name, row->name, length) != 0) continue;
      CHECK(i == r || other->cluster != row->cluster, "%s is there twice", row->name);
      CHECK(other->type == row->type && other->bm == row->bm && other->bn == row->bn && other->bk == row->bk &&
                other->stages == row->stages && other->n_threads == row->n_threads && other->shared_bytes == row->shared_bytes &&
                other->blocks == row->blocks && other->k_groups == row->k_groups && other->n_slices == row->n_slices &&
                other->slice_places == row->slice_places,
            "%s is launched as %s", other->name, row->name);
      n_of_one += other->cluster == 1;
    }
    CHECK(!row->any_parts || n_of_one == 1, "%s: %d rows of one block", row->name, n_of_one);
    CHECK(!row->any_parts || row->cluster <= WS_MOST_PARTS, "%s: %d blocks", row->name, row->cluster);
  }
}

static double vector_us(int64_t k) {
  const ws_problem p = {.a = {.type = WSGEMM_F16, .trans = true}, .m = 4200, .n = 1, .k = k, .batch_count = 1};
  const ws_split split = ws_split_for(&p, 132, false);
  return ws_vector_us(&ws_direct_terms_h200, &p, &split, 132);
}

/* Lines that are no whole 16 bytes long take longer, though they are shorter. */
static void times_of_vectors(void) {
  for (int64_t k = 1000; k < 30000; k += 1000)
    CHECK(vector_us(k - 1) > vector_us(k), "k = %lld: %g and %g us", (long long)k, vector_us(k - 1), vector_us(k));
}

static const struct check_case cases[] = {{"entries", entries},       {"orders", orders},
                                          {"sliced", sliced},         {"others", others},
                                          {"remembered", remembered}, {"times_of_vectors", times_of_vectors}};
CHECK_MAIN("backend_plan", cases)
