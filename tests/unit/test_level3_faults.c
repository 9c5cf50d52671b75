/* test_level3_faults.c - Level 3 calls while malloc, mmap and pthread_create fail, one call after
 * the other: a right result, or ALLOC_FAILED and nothing written; afterwards all is as if it had
 * never been. And what small calls ask of the system: nothing.
 *
 * Each fault (support/faults.h) is tried in a forked child, on a library that has not been used
 * before. */
#define _GNU_SOURCE
#include "support/faults.h"
#include "support/level3_call.h"

/* ---- Faults ------------------------------------------------------------------------------------ */

struct level3_call {
  wsgemm_routine routine;
  wsgemm_type type;
  struct variant variant;
  enum form form;
  struct level3_stage *stage;
};

static void run_once(const struct fault *fault, wsgemm_handle *handle, bool with_fault) {
  const struct level3_call *call = fault->of;
  const struct layout_of_case where = layout_tight();
  wsgemm_level3_desc d = level3_desc(call->routine, call->type, WSGEMM_COL_MAJOR, &call->variant, 230, 250, 240);
  char text[DESCRIPTION_BYTES];
  if (!routine_is_triangular(call->routine)) d.beta = scalar_make(call->type, 2, 0);
  level3_store(call->stage, &d, &where, call->form, JUDGE_EXACT);
  const unsigned long long before = level3_digest(call->stage);
  if (with_fault) faults_fail(fault->kind, fault->first, fault->last), faults_watch();
  const wsgemm_status status = wsgemm_level3(handle, &d);
  faults_ignore();
  const bool is_untouched = with_fault && level3_digest(call->stage) == before;
  if (fault_is_survived(fault, status, is_untouched, level3_describe(&d, text)))
    level3_judge(call->stage, &d, JUDGE_EXACT, fault_kind_names[fault->kind]);
}

static void fault_child(void *argument) {
  const struct fault *fault = argument;
  REQUIRE(wsgemm_set_num_threads(NULL, 4) == WSGEMM_SUCCESS, "threads");
  run_once(fault, NULL, true);
  *fault->is_harmless = faults_count(fault->kind) < fault->first;
  faults_fail(fault->kind, 0, 0);
  for (int again = 0; again < 2; again++) run_once(fault, NULL, false);
}

/* Fails the 1st, 2nd, .. call of one kind until a run gets by without it; then all calls. */
static void each_call_fails(enum fault_kind kind, bool is_used_at_all) {
  struct check_random rng = check_random_from(390 + (unsigned)kind);
  int n_faults = 0;
  for (int r = 0; r<N_ROUTINES; r += check_scale()> 1 ? 4 : 1) {
    const wsgemm_type type = all_routines[r] == WSGEMM_HEMM || all_routines[r] == WSGEMM_HERK || all_routines[r] == WSGEMM_HER2K
                                 ? WSGEMM_C32
                                 : (wsgemm_type)check_random_in(&rng, 0, N_LEVEL3_TYPES - 1);
    struct level3_stage stage = level3_stage_new(type, 250, 250, FILL_INTEGER, &rng);
    if (all_routines[r] == WSGEMM_TRSM) level3_fill_triangle(&stage, TRIANGLE_SOLVABLE, &rng);
    for (int all = 0; all < 2; all++) {
      const struct level3_call call = {all_routines[r], type, draw_variant(all_routines[r], type, &rng),
                                       all ? FORM_APART : FORM_DESCRIPTOR, &stage};
      n_faults += faults_try_each(kind, all, fault_child, &call);
    }
    level3_stage_free(&stage);
  }
  faults_expect_some(kind, n_faults, is_used_at_all);
}

static void malloc_fails(void) { each_call_fails(KIND_MALLOC, false); }
static void mmap_fails(void) { each_call_fails(KIND_MMAP, true); }
static void pthread_create_fails(void) { each_call_fails(KIND_THREAD, true); }

/* ---- Small calls ------------------------------------------------------------------------------- */

/* After the first call of the process, calls up to 16 neither allocate nor lock nor make a thread. */
static void small_calls_child(void *unused) {
  (void)unused;
  struct check_random rng = check_random_from(395);
  for (int turn = 0; turn < 2000 / check_scale(); turn++) {
    const wsgemm_routine routine = all_routines[turn % N_ROUTINES];
    const wsgemm_type type = (wsgemm_type)(turn / N_ROUTINES % N_LEVEL3_TYPES);
    if (!routine_has_type(routine, type)) continue;
    struct level3_stage stage = level3_stage_new(type, 16, 16, FILL_INTEGER, &rng);
    if (routine == WSGEMM_TRSM) level3_fill_triangle(&stage, TRIANGLE_SOLVABLE, &rng);
    const struct variant v = draw_variant(routine, type, &rng);
    const struct layout_of_case where = layout_drawn(&rng);
    wsgemm_level3_desc d = level3_desc(routine, type, all_layouts[turn % 2], &v, check_random_in(&rng, 1, 16),
                                       check_random_in(&rng, 1, 16), check_random_in(&rng, 0, 16));
    level3_store(&stage, &d, &where, FORM_TYPED, JUDGE_EXACT);
    if (turn == 0) wsgemm_level3(NULL, &d); /* reads the environment */
    level3_store(&stage, &d, &where, FORM_TYPED, JUDGE_EXACT);
    faults_count_anew();
    faults_watch();
    const wsgemm_status status = level3_typed(NULL, &d);
    faults_ignore();
    char text[DESCRIPTION_BYTES];
    CHECK(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    faults_expect_none(level3_describe(&d, text));
    level3_stage_free(&stage);
  }
}
static void small_calls(void) { check_in_child("small calls", small_calls_child, NULL); }

static const struct check_case cases[] = {{"malloc_fails", malloc_fails},
                                          {"mmap_fails", mmap_fails},
                                          {"pthread_create_fails", pthread_create_fails},
                                          {"small_calls", small_calls}};
CHECK_MAIN("level3_faults", cases)
