/* test_fork.c - after fork() both sides go on multiplying with as many threads as before and the
 * same bits: forks of forks, forks while other threads multiply, and before and after the first
 * use. A side that hangs is ended by CTest. */
#define _GNU_SOURCE
#include "support/process.h"
#include "support/rows.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static struct stage stages[N_TYPES];
static unsigned long long expected[N_TYPES];

static unsigned long long multiply(struct stage *stage, wsgemm_type type, wsgemm_handle *h) {
  const struct layout_of_case where = layout_tight();
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, 260, 220, 190);
  case_store(stage, &d, &where);
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return matrix_digest(&stage->stored[2]);
}

static wsgemm_handle *handle_for(int n_threads) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, n_threads) == WSGEMM_SUCCESS, "handle");
  return h;
}

static void make_stages(void) {
  struct check_random rng = check_random_from(100);
  for (int type = 0; type < N_TYPES; type++) stages[type] = stage_new((wsgemm_type)type, 260, 220, 190, FILL_UNIFORM, &rng);
}

static void free_stages(void) {
  for (int type = 0; type < N_TYPES; type++) stage_free(&stages[type]);
}

static void multiply_all(int n_threads, const char *who) {
  wsgemm_handle *h = handle_for(n_threads);
  for (int type = 0; type < N_TYPES; type++)
    CHECK(multiply(&stages[type], (wsgemm_type)type, h) == expected[type], "%s: other bits with %d threads", who, n_threads);
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

static void expect_bits(void) {
  wsgemm_handle *h = handle_for(1);
  for (int type = 0; type < N_TYPES; type++) expected[type] = multiply(&stages[type], (wsgemm_type)type, h);
  wsgemm_destroy(h);
}

/* `depth` generations, each of which multiplies before, beside and after its child. */
static void generation(void *argument) {
  const int depth = *(const int *)argument;
  multiply_all(3, "before the fork");
  const int n_threads = process_n_threads();
  CHECK(n_threads >= 3, "%d threads after a product with 3", n_threads);
  if (depth > 0) {
    int next = depth - 1;
    check_in_child("the next generation", generation, &next);
  }
  multiply_all(3, "after the fork");
  multiply_all(1, "after the fork");
  CHECK(process_n_threads() == n_threads, "%d threads became %d over a fork", n_threads, process_n_threads());
}

static void generations(void) {
  int depth = 3;
  make_stages();
  expect_bits();
  generation(&depth);
  free_stages();
}

static void whole_life(void *unused) {
  (void)unused;
  expect_bits();
  multiply_all(4, "a child that is first to use the library");
}

static void fork_before_first_use(void) {
  make_stages();
  check_in_child("first use", whole_life, NULL);
  expect_bits();
  multiply_all(4, "the parent");
  free_stages();
}

/* ---- Forks while other threads multiply ------------------------------------------------------ */

static atomic_bool is_over;
struct neighbour {
  pthread_t thread;
  int n_threads;
  struct stage stage;
  atomic_llong n_products;
};

static void *neighbour_main(void *argument) {
  struct neighbour *self = argument;
  wsgemm_handle *h = handle_for(self->n_threads);
  unsigned long long first = 0;
  while (!atomic_load(&is_over)) {
    const unsigned long long digest = multiply(&self->stage, WSGEMM_F64, h);
    if (atomic_fetch_add(&self->n_products, 1) == 0) first = digest;
    CHECK(digest == first, "a neighbour's bits change while the process forks");
  }
  wsgemm_destroy(h);
  return NULL;
}

static void forked_child(void *argument) {
  multiply_all(*(const int *)argument, "a child forked beside other threads");
  multiply_all(3, "a child forked beside other threads");
}

static void beside(int n_threads) {
  static struct neighbour neighbours[2];
  struct check_random rng = check_random_from(101);
  make_stages();
  expect_bits();
  atomic_store(&is_over, false);
  for (int i = 0; i < 2; i++) {
    neighbours[i].n_threads = n_threads;
    atomic_store(&neighbours[i].n_products, 0);
    neighbours[i].stage = stage_new(WSGEMM_F64, 260, 220, 190, FILL_UNIFORM, &rng);
    REQUIRE(pthread_create(&neighbours[i].thread, NULL, neighbour_main, &neighbours[i]) == 0, "thread");
  }
  for (int turn = 0; turn < (check_scale() > 1 ? 5 : 60); turn++) {
    check_in_child("a fork beside other threads", forked_child, &n_threads);
    if (turn % 10 == 0) multiply_all(n_threads, "the parent");
  }
  atomic_store(&is_over, true);
  for (int i = 0; i < 2; i++) {
    pthread_join(neighbours[i].thread, NULL);
    CHECK(atomic_load(&neighbours[i].n_products) > 0, "neighbour %d never multiplied", i);
    stage_free(&neighbours[i].stage);
  }
  free_stages();
}

/* With one thread each no pool is ever made, but memory for packing is shared all the same. Run it
 * in a process of its own. */
static void beside_single(void) { beside(1); }
static void beside_teams(void) { beside(3); }

/* ---- Forks while another thread changes a handle --------------------------------------------- */

static void ignore(void *user, wsgemm_status status, const char *message) { (void)user, (void)status, (void)message; }

static void *change_logger_main(void *handle) {
  while (!atomic_load(&is_over)) {
    CHECK(wsgemm_set_logger(handle, ignore, handle) == WSGEMM_SUCCESS, "set");
    CHECK(wsgemm_set_logger(handle, NULL, NULL) == WSGEMM_SUCCESS, "set");
  }
  return NULL;
}

static void fail_and_set(void *handle) {
  alarm(60);
  CHECK(wsgemm_set_coarse_factor(handle, -1) == WSGEMM_INVALID_VALUE, "a failing call");
  CHECK(wsgemm_set_logger(handle, ignore, NULL) == WSGEMM_SUCCESS, "set");
}

/* A logger that was being set when the process forked is not waited for. */
static void beside_logger_changes(void) {
  wsgemm_handle *h = handle_for(1);
  pthread_t thread;
  atomic_store(&is_over, false);
  REQUIRE(pthread_create(&thread, NULL, change_logger_main, h) == 0, "thread");
  for (int turn = 0; turn < (check_scale() > 1 ? 10 : 100); turn++) check_in_child("a failing call", fail_and_set, h);
  atomic_store(&is_over, true);
  pthread_join(thread, NULL);
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

static const struct check_case cases[] = {{"fork_before_first_use", fork_before_first_use},
                                          {"generations", generations},
                                          {"beside_single", beside_single},
                                          {"beside_teams", beside_teams},
                                          {"beside_logger_changes", beside_logger_changes}};
CHECK_MAIN("fork", cases)
