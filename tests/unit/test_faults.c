/* test_faults.c - malloc, mmap, madvise, munmap and pthread_create failing, one call after the
 * other; what small products ask of the system (nothing); and a fork while another thread holds the
 * lock on the memory for packing.
 *
 * Each fault (support/faults.h) is tried in a forked child, on a library that has not been used
 * before. */
#define _GNU_SOURCE
#include "support/faults.h"
#include "support/rows.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "cpu/room.h"
#include "cpu/workspace.h"

/* ---- Faults ---------------------------------------------------------------------------------- */

struct tried_product {
  wsgemm_type type;
  int64_t m, n, k;
  bool own_handle;
  struct stage *stage; /* made by the parent, product and all */
};

/* A shape that is packed. The library is asked in a child, so that the parent goes on without
 * having used it. */
static int64_t *shared_number;
static void ask_packed_n(void *type) { CHECK((*shared_number = packed_n(NULL, *(wsgemm_type *)type, 150, 500)) > 0, "packed"); }
static int64_t packed_n_for(wsgemm_type type) {
  if (!shared_number) shared_number = faults_shared(sizeof *shared_number);
  check_in_child("the shape", ask_packed_n, &type);
  return *shared_number + 3;
}

static void *watched_create(void) {
  wsgemm_handle *h = NULL;
  faults_watch();
  const wsgemm_status status = wsgemm_create(&h);
  faults_ignore();
  if (status != WSGEMM_SUCCESS)
    CHECK(status == WSGEMM_ALLOC_FAILED && h == NULL, "wsgemm_create: %s", wsgemm_status_name(status));
  return h;
}

static void fault_child(void *argument) {
  const struct fault *fault = argument;
  const struct tried_product *p = fault->of;
  struct stage *stage = p->stage;
  const struct layout_of_case where = layout_tight();
  wsgemm_gemm_desc d = gemm_desc(p->type, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, p->m, p->n, p->k);
  d.beta = scalar_make(p->type, 1, 0);
  case_store(stage, &d, &where);
  const unsigned long long before = matrix_digest(&stage->stored[2]);
  faults_fail(fault->kind, fault->first, fault->last);
  wsgemm_handle *h = p->own_handle ? watched_create() : NULL;
  REQUIRE(wsgemm_set_num_threads(h, 4) == WSGEMM_SUCCESS, "threads");
  faults_watch();
  const wsgemm_status status = wsgemm_gemm(h, &d);
  faults_ignore();
  char text[DESCRIPTION_BYTES];
  const bool is_untouched = matrix_digest(&stage->stored[2]) == before && case_guards_intact(stage, &d, "fault");
  if (fault_is_survived(fault, status, is_untouched, gemm_describe(&d, text)))
    case_judge(stage, &d, JUDGE_EXACT, fault_kind_names[fault->kind]);
  *fault->is_harmless = faults_count(fault->kind) < fault->first;
  faults_fail(fault->kind, 0, 0);
  /* the trouble is over: all is as if it had never been */
  for (int again = 0; again < 2; again++) {
    case_store(stage, &d, &where);
    CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "after the fault: %s", wsgemm_last_error());
    case_judge(stage, &d, JUDGE_EXACT, "after the fault");
  }
  wsgemm_destroy(h);
}

/* Fails the 1st, 2nd, .. call of one kind until a run gets by without it; then all calls. */
static void each_call_fails(enum fault_kind kind, bool is_used_at_all) {
  struct check_random rng = check_random_from(110);
  int n_faults = 0;
  for (int type = 0; type<N_TYPES; type += check_scale()> 1 ? N_TYPES - 1 : 1) {
    const int64_t shapes[][3] = {{150, packed_n_for((wsgemm_type)type), 500}, {9, 700, 100}, {1, 900, 400}};
    for (int shape = 0; shape < (check_scale() > 1 ? 1 : 3); shape++) {
      struct stage stage = stage_new((wsgemm_type)type, shapes[shape][0], shapes[shape][1], shapes[shape][2], FILL_INTEGER, &rng);
      product_whole(&stage.product, &stage.a, &stage.b, shapes[shape][2]);
      const struct tried_product p = {(wsgemm_type)type, shapes[shape][0], shapes[shape][1],
                                      shapes[shape][2],  type % 2 == 0,    &stage};
      for (int all = 0; all < 2; all++) n_faults += faults_try_each(kind, all, fault_child, &p);
      stage_free(&stage);
    }
  }
  faults_expect_some(kind, n_faults, is_used_at_all);
}

static void malloc_fails(void) { each_call_fails(KIND_MALLOC, true); }
static void mmap_fails(void) { each_call_fails(KIND_MMAP, true); }
static void munmap_fails(void) { each_call_fails(KIND_MUNMAP, false); }
static void madvise_fails(void) { each_call_fails(KIND_MADVISE, false); }
static void pthread_create_fails(void) { each_call_fails(KIND_THREAD, true); }

/* ---- Small products -------------------------------------------------------------------------- */

/* After the first call of the process, products up to 48^3 neither allocate nor lock nor make a
 * thread, in any type, op and layout. */
static void small_products_child(void *unused) {
  (void)unused;
  struct check_random rng = check_random_from(111);
  const struct layout_of_case where = layout_tight();
  for (int type = 0; type < N_TYPES; type++) {
    struct stage stage = stage_new((wsgemm_type)type, 48, 48, 48, FILL_INTEGER, &rng);
    for (int turn = 0; turn < 600 / check_scale(); turn++) {
      wsgemm_gemm_desc d = gemm_desc((wsgemm_type)type, all_layouts[turn % 2], all_ops[check_random_in(&rng, 0, 3)],
                                     all_ops[check_random_in(&rng, 0, 3)], check_random_in(&rng, 1, 48),
                                     check_random_in(&rng, 1, 48), check_random_in(&rng, 0, 48));
      case_store(&stage, &d, &where);
      if (turn == 0) CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "the first call, which reads the environment");
      faults_count_anew();
      faults_watch();
      const wsgemm_status status = turn % 3 ? wsgemm_gemm(NULL, &d) : gemm_typed(NULL, &d);
      faults_ignore();
      char text[DESCRIPTION_BYTES];
      CHECK(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      faults_expect_none(gemm_describe(&d, text));
    }
    stage_free(&stage);
  }
}
static void small_products(void) { check_in_child("small products", small_products_child, NULL); }

/* ... and the counting works: a large product is seen to lock and to map; but not to take the
 * loader's lock. */
static void large_products_are_seen_child(void *unused) {
  (void)unused;
  struct check_random rng = check_random_from(112);
  const int64_t n = packed_n_for(WSGEMM_F64);
  struct stage stage = stage_new(WSGEMM_F64, 150, n, 500, FILL_INTEGER, &rng);
  const struct layout_of_case where = layout_tight();
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 150, n, 500);
  case_store(&stage, &d, &where);
  REQUIRE(wsgemm_set_num_threads(NULL, 3) == WSGEMM_SUCCESS, "threads");
  faults_watch();
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  faults_ignore();
  CHECK(faults_count(KIND_DLSYM) == 0, "%d calls of dlsym", faults_count(KIND_DLSYM));
  CHECK(faults_count(KIND_LOCK) > 0 && faults_count(KIND_MMAP) > 0 && faults_count(KIND_THREAD) == 2,
        "%d locks, %d mappings, %d threads made", faults_count(KIND_LOCK), faults_count(KIND_MMAP), faults_count(KIND_THREAD));
  stage_free(&stage);
}
static void large_products_are_seen(void) { check_in_child("large products", large_products_are_seen_child, NULL); }

/* Memory for packing is kept between calls: the second product of a kind maps nothing. */
static void memory_is_kept_child(void *unused) {
  (void)unused;
  struct check_random rng = check_random_from(113);
  const int64_t n = packed_n_for(WSGEMM_F64);
  struct stage stage = stage_new(WSGEMM_F64, 150, n, 500, FILL_INTEGER, &rng);
  const struct layout_of_case where = layout_tight();
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 150, n, 500);
  case_store(&stage, &d, &where);
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  faults_watch();
  for (int i = 0; i < 5; i++) CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  faults_ignore();
  CHECK(faults_count(KIND_MMAP) == 0 && faults_count(KIND_MALLOC) == 0, "%d mappings and %d allocations", faults_count(KIND_MMAP),
        faults_count(KIND_MALLOC));
  stage_free(&stage);
}
static void memory_is_kept(void) { check_in_child("second calls", memory_is_kept_child, NULL); }

/* ---- Epilogues ------------------------------------------------------------------------------- */

/* C as its own residual, 2 x n and sums of 1 for each element: so C = 1 + 3, of floats, doubles or
 * halves. */
static wsgemm_status add_to_itself(wsgemm_type type, int64_t n, struct matrix *c, double expected) {
  static struct arena places[2];
  for (int i = 0; i < 2; i++)
    if (!places[i].low) places[i] = arena_new(1 << 20);
  struct matrix ones = matrix_place(&places[0], type, WSGEMM_COL_MAJOR, 2, n, 2, PLACE_END);
  *c = matrix_place(&places[1], type, WSGEMM_COL_MAJOR, 2, n, 2, PLACE_END);
  for (int64_t at = 0; at < 2 * n; at++) matrix_set(&ones, at % 2, at / 2, 1, 0), matrix_set(c, at % 2, at / 2, 3, 0);
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, 2, n, 1);
  d.a = d.b = ones.elements, d.ldb = n, d.c = c->elements, d.residual = d.c, d.ld_residual = 2;
  faults_watch();
  const wsgemm_status status = wsgemm_gemm(NULL, &d);
  faults_ignore();
  int n_wrong = 0;
  for (int64_t at = 0; at < 2 * n; at++) {
    double re, im;
    matrix_get(c, at % 2, at / 2, &re, &im);
    n_wrong += re != expected;
  }
  CHECK(n_wrong == 0, "type %c, n = %lld: %d elements are not %g", type_letter(type), (long long)n, n_wrong, expected);
  return status;
}

/* A small C that is its own residual asks nothing of the system. A large one of floats or doubles
 * is copied; without memory for that, it is refused and stays as it was. */
static void residuals_child(void *unused) {
  (void)unused;
  static const wsgemm_type types[] = {WSGEMM_F32, WSGEMM_F64, WSGEMM_F16, WSGEMM_BF16};
  struct matrix c;
  REQUIRE(wsgemm_set_num_threads(NULL, 1) == WSGEMM_SUCCESS, "threads");
  for (int t = 0; t < 4; t++) {
    const bool is_copied = !type_is_half(types[t]);
    CHECK(add_to_itself(types[t], 20, &c, 4) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    faults_count_anew();
    CHECK(add_to_itself(types[t], 200, &c, 4) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    faults_expect_none("C as its own residual");
    faults_fail(KIND_MMAP, 1, 1 << 30);
    const wsgemm_status status = add_to_itself(types[t], 20000, &c, is_copied ? 3 : 4);
    CHECK(status == (is_copied ? WSGEMM_ALLOC_FAILED : WSGEMM_SUCCESS), "type %c: %s", type_letter(types[t]),
          wsgemm_status_name(status));
    faults_fail(KIND_MMAP, 0, 0);
  }
  for (int t = 0; t < 4; t++) CHECK(add_to_itself(types[t], 20000, &c, 4) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
static void residuals(void) { check_in_child("residuals", residuals_child, NULL); }

/* ---- rooms ------------------------------------------------------------------------------------ */

/* Where no more can be mapped the library's own room serves, and then those that are free again; the one that could not be
 * mapped is there later. */
static void rooms_child(void *unused) {
  (void)unused;
  enum { MOST = 64 };
  ws_room held[MOST];
  int n = 0;
  faults_fail(KIND_MMAP, 2, 1 << 30); /* one slab of rooms is mapped */
  faults_watch();
  do held[n] = ws_room_take(1);
  while (held[n++].idx >= 0 && n < MOST);
  REQUIRE(n > 2 && held[n - 1].idx < 0, "%d rooms of one slab", n);
  ws_room_give(&held[n - 1]);
  ws_room_give(&held[1]);
  const ws_room again = ws_room_take(1);
  CHECK(again.at == held[1].at, "a free room is not used where no other can be mapped");
  faults_fail(KIND_MMAP, 0, 0);
  faults_ignore();
  const ws_room next = ws_room_take(1);
  CHECK(next.idx == n - 1, "room %d, not the first of the next slab, %d", next.idx, n - 1);
  ws_room_give(&next);
  ws_room_give(&again);
  for (int i = 0; i < n - 1; i++)
    if (i != 1) ws_room_give(&held[i]);
}
static void rooms(void) { check_in_child("rooms", rooms_child, NULL); }

/* ---- fork beside a thread that is taking memory for packing ---------------------------------- */

static atomic_bool is_held;
static void *holder_main(void *unused) {
  (void)unused;
  ws_workspace_lock();
  atomic_store(&is_held, true);
  usleep(100000); /* long enough for the fork below to come first, if nothing makes it wait */
  ws_workspace_unlock();
  return NULL;
}

static void packed_product(void *unused) {
  (void)unused;
  struct check_random rng = check_random_from(114);
  const int64_t n = packed_n(NULL, WSGEMM_F64, 150, 500);
  struct stage stage = stage_new(WSGEMM_F64, 150, n, 500, FILL_INTEGER, &rng);
  const struct layout_of_case where = layout_tight();
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 150, n, 500);
  product_whole(&stage.product, &stage.a, &stage.b, 500);
  REQUIRE(wsgemm_set_num_threads(NULL, 1) == WSGEMM_SUCCESS, "threads");
  run_case(&stage, NULL, &d, &where, true, JUDGE_EXACT, "a child forked beside packing");
  stage_free(&stage);
}

/* One thread everywhere, so that no pool is ever made. A child that hangs is ended by CTest. */
static void fork_beside_packing(void) {
  pthread_t holder;
  packed_product(NULL);
  REQUIRE(pthread_create(&holder, NULL, holder_main, NULL) == 0, "thread");
  while (!atomic_load(&is_held)) usleep(1000);
  check_in_child("a fork beside packing", packed_product, NULL);
  pthread_join(holder, NULL);
}

static const struct check_case cases[] = {{"malloc_fails", malloc_fails},
                                          {"mmap_fails", mmap_fails},
                                          {"munmap_fails", munmap_fails},
                                          {"madvise_fails", madvise_fails},
                                          {"pthread_create_fails", pthread_create_fails},
                                          {"small_products", small_products},
                                          {"large_products_are_seen", large_products_are_seen},
                                          {"memory_is_kept", memory_is_kept},
                                          {"rooms", rooms},
                                          {"residuals", residuals},
                                          {"fork_beside_packing", fork_beside_packing}};
CHECK_MAIN("faults", cases)
