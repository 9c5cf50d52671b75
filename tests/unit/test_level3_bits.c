/* test_level3_bits.c - one result: the bits of a Level 3 call depend neither on the number of
 * threads, nor on the policy, the COARSE_FACTOR, the run, other callers, the form of the call, or
 * where the operands lie; nor are they another's in a child after fork(). Triangles are uneven
 * work, so the parts of threads differ more than gemm's do. */
#include "support/level3_call.h"
#include "support/process.h"
#include "support/rows.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const wsgemm_policy policies[] = {WSGEMM_POLICY_AUTO, WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS,
                                         WSGEMM_POLICY_STEAL};
static const int coarse_factors[] = {0, 1, 2, 3, 4, 8, 64};
static const int64_t shapes[][3] = {{310, 290, 300}, {97, 430, 500}, {420, 60, 64}, {33, 31, 450}, {500, 500, 24}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0], LARGEST = 500 };

static wsgemm_handle *handle_with(int n_threads, wsgemm_policy policy, int coarse_factor) {
  wsgemm_handle *handle = NULL;
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS && wsgemm_set_num_threads(handle, n_threads) == WSGEMM_SUCCESS &&
              wsgemm_set_policy(handle, policy) == WSGEMM_SUCCESS &&
              wsgemm_set_coarse_factor(handle, coarse_factor) == WSGEMM_SUCCESS,
          "handle: %s", wsgemm_last_error());
  return handle;
}

static struct level3_stage stage_for(wsgemm_type type, wsgemm_routine routine, struct check_random *rng) {
  struct level3_stage stage = level3_stage_new(type, LARGEST, LARGEST, FILL_UNIFORM, rng);
  if (routine == WSGEMM_TRSM) level3_fill_triangle(&stage, TRIANGLE_DOMINANT, rng);
  return stage;
}

static wsgemm_level3_desc desc_of(wsgemm_type type, wsgemm_routine routine, int shape, struct check_random *rng) {
  const struct variant v = draw_variant(routine, type, rng);
  wsgemm_level3_desc d = level3_desc(routine, type, draw_layout(rng), &v, shapes[shape][0], shapes[shape][1], shapes[shape][2]);
  const bool real_alpha = routine == WSGEMM_HERK, real_beta = real_alpha || routine == WSGEMM_HER2K;
  d.alpha = scalar_make(type, 0.75, real_alpha ? 0 : -0.3);
  if (!routine_is_triangular(routine)) d.beta = scalar_make(type, -1.1, real_beta ? 0 : 0.6);
  return d;
}

static unsigned long long digest_of(struct level3_stage *stage, wsgemm_handle *handle, wsgemm_level3_desc *d,
                                    const struct layout_of_case *where, enum form form) {
  char text[DESCRIPTION_BYTES];
  level3_store(stage, d, where, form, JUDGE_BOUND);
  const wsgemm_status status = form == FORM_TYPED ? level3_typed(handle, d) : wsgemm_level3(handle, d);
  CHECK(status == WSGEMM_SUCCESS, "%s: %s", level3_describe(d, text), wsgemm_last_error());
  return level3_digest(stage);
}

static void settings(void) {
  struct check_random rng = check_random_from(340);
  for (int t = 0; t < N_LEVEL3_TYPES; t++)
    for (int r = 0; r < N_ROUTINES; r++) {
      const wsgemm_type type = (wsgemm_type)t;
      if (!routine_has_type(all_routines[r], type)) continue;
      struct level3_stage stage = stage_for(type, all_routines[r], &rng);
      for (int shape = 0; shape < N_SHAPES; shape++) {
        if (check_random_in(&rng, 1, check_scale()) > 2) continue;
        const struct layout_of_case where = layout_drawn(&rng);
        wsgemm_level3_desc d = desc_of(type, all_routines[r], shape, &rng);
        wsgemm_handle *alone = handle_with(1, WSGEMM_POLICY_AUTO, 0);
        const unsigned long long expected = digest_of(&stage, alone, &d, &where, FORM_TYPED);
        wsgemm_destroy(alone);
        for (int n_threads = 1; n_threads <= 8; n_threads++) {
          const int p = (int)check_random_in(&rng, 0, 3), c = (int)check_random_in(&rng, 0, 6);
          if (n_threads > 4 && n_threads != 8 && check_random_in(&rng, 0, check_scale()) > 0) continue;
          if (check_scale() > 6 && n_threads % 2 == 1) continue;
          wsgemm_handle *handle = handle_with(n_threads, policies[p], coarse_factors[c]);
          char text[DESCRIPTION_BYTES];
          CHECK(digest_of(&stage, handle, &d, &where, FORM_TYPED) == expected,
                "%s: bits change with %d threads, policy %d, COARSE_FACTOR %d", level3_describe(&d, text), n_threads,
                (int)policies[p], coarse_factors[c]);
          wsgemm_destroy(handle);
        }
      }
      level3_stage_free(&stage);
    }
}

/* Runs after each other, places, lds and forms change nothing. */
static void placement(void) {
  struct check_random rng = check_random_from(341);
  for (int t = 0; t < N_LEVEL3_TYPES; t++)
    for (int r = 0; r < N_ROUTINES; r++) {
      const wsgemm_type type = (wsgemm_type)t;
      if (!routine_has_type(all_routines[r], type)) continue;
      struct level3_stage stage = stage_for(type, all_routines[r], &rng);
      for (int shape = 0; shape < N_SHAPES - 1; shape++) {
        if (check_random_in(&rng, 1, check_scale()) > 2) continue;
        wsgemm_level3_desc d = desc_of(type, all_routines[r], shape, &rng);
        const struct layout_of_case tight = layout_tight();
        char text[DESCRIPTION_BYTES];
        const unsigned long long expected = digest_of(&stage, NULL, &d, &tight, FORM_TYPED);
        for (int turn = 0; turn < 4; turn++) {
          const struct layout_of_case where = turn == 0 ? tight : layout_drawn(&rng);
          const enum form form = turn == 1 || (turn == 3 && !routine_is_triangular(d.routine)) ? FORM_DESCRIPTOR
                                 : turn == 2                                                   ? FORM_APART
                                 : turn == 3                                                   ? FORM_SAME
                                                                                               : FORM_TYPED;
          CHECK(digest_of(&stage, NULL, &d, &where, form) == expected, "%s: bits change with place, ld or form %d",
                level3_describe(&d, text), (int)form);
        }
      }
      level3_stage_free(&stage);
    }
}

/* The suite must not compare one thread with one thread. */
static void threads_are_used(void) {
  struct check_random rng = check_random_from(342);
  process_start_first_thread();
  wsgemm_handle *handle = handle_with(3, WSGEMM_POLICY_AUTO, 0);
  for (int r = 0; r < N_ROUTINES; r++) {
    wsgemm_level3_desc d = desc_of(WSGEMM_C64, all_routines[r], 0, &rng);
    struct level3_stage stage = stage_for(WSGEMM_C64, all_routines[r], &rng);
    const struct layout_of_case tight = layout_tight();
    char text[4096], description[DESCRIPTION_BYTES];
    digest_of(&stage, handle, &d, &tight, FORM_TYPED);
    wsgemm_level3_explain(handle, &d, text, sizeof text);
    const char *line = strstr(text, "threads: ");
    CHECK(line && atoi(line + 9) > 1, "%s: %s", level3_describe(&d, description), text);
    level3_stage_free(&stage);
  }
  CHECK(process_n_threads() >= 3, "%d threads after calls that may use 3", process_n_threads());
  wsgemm_destroy(handle);
}

/* ---- Invariant mode -------------------------------------------------------------------------- */

/* Whether the elements that both calls write in the upper left corner have the same bits. */
static bool same_corner(const wsgemm_level3_desc *d, const struct matrix *large, const struct matrix *small) {
  bool same = true;
  for (int64_t i = 0; i < small->rows; i++)
    for (int64_t j = 0; j < small->cols; j++) {
      double x[2], y[2];
      if (routine_writes_triangle(d->routine) && (d->uplo == WSGEMM_UPPER ? i > j : i < j)) continue;
      matrix_get(large, i, j, &x[0], &x[1]);
      matrix_get(small, i, j, &y[0], &y[1]);
      same = same && x[0] == y[0] && x[1] == y[1];
    }
  return same;
}

/* An element does not depend on the size of C: rank updates of fewer rows, right sides of a
 * structured product or a system alone, have the same numbers. */
static void invariant_of(wsgemm_type type, wsgemm_routine routine, struct check_random *rng) {
  static const int64_t many = 150;
  struct level3_stage large = stage_for(type, routine, rng), small = large;
  wsgemm_handle *handle = handle_with(2, WSGEMM_POLICY_AUTO, 0);
  REQUIRE(wsgemm_set_invariant(handle, 1) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int i = 0; i < 3; i++) small.arena[i] = arena_new(large.arena[i].bytes);
  for (int64_t few = 1; few <= 64; few += few) {
    struct variant v = draw_variant(routine, type, rng);
    if (!routine_has_k(routine)) v.side = WSGEMM_LEFT; /* the number of right sides is n */
    const struct layout_of_case where = layout_drawn(rng);
    const wsgemm_layout layout = draw_layout(rng);
    wsgemm_level3_desc d = level3_desc(routine, type, layout, &v, 120, many, 300);
    wsgemm_level3_desc of_few = level3_desc(routine, type, layout, &v, 120, few, 300);
    char text[DESCRIPTION_BYTES];
    digest_of(&large, handle, &d, &where, FORM_DESCRIPTOR);
    digest_of(&small, handle, &of_few, &where, FORM_DESCRIPTOR);
    CHECK(same_corner(&d, &large.stored[large.out_idx], &small.stored[small.out_idx]), "%s: other numbers than in n = %lld",
          level3_describe(&of_few, text), (long long)many);
  }
  for (int i = 0; i < 3; i++) arena_free(&small.arena[i]);
  level3_stage_free(&large);
  CHECK(wsgemm_destroy(handle) == WSGEMM_SUCCESS, "destroy");
}

static void invariant(void) {
  struct check_random rng = check_random_from(344);
  for (int t = 0; t < N_LEVEL3_TYPES; t++)
    for (int r = 0; r < N_ROUTINES; r++)
      if (routine_has_type(all_routines[r], (wsgemm_type)t)) invariant_of((wsgemm_type)t, all_routines[r], &rng);
}

/* ---- Callers at the same time, and after a fork ------------------------------------------------ */

enum { N_CALLERS = 4 };
struct caller {
  pthread_t thread;
  int number;
  bool own_handle;
  unsigned long long expected[N_ROUTINES];
};

static void run_all(struct caller *caller, bool is_first) {
  struct check_random rng = check_random_from(343 + (unsigned)caller->number);
  wsgemm_handle *handle = caller->own_handle ? handle_with(1 + caller->number % 4, policies[caller->number % 4], 0) : NULL;
  const wsgemm_type type = (wsgemm_type)(caller->number % N_LEVEL3_TYPES);
  for (int r = 0; r<N_ROUTINES; r += check_scale()> 1 ? 2 : 1) {
    if (!routine_has_type(all_routines[r], type)) continue;
    struct level3_stage stage = stage_for(type, all_routines[r], &rng);
    wsgemm_level3_desc d = desc_of(type, all_routines[r], (caller->number + r) % N_SHAPES, &rng);
    const struct layout_of_case where = layout_drawn(&rng);
    const unsigned long long digest = digest_of(&stage, handle, &d, &where, FORM_TYPED);
    if (is_first)
      caller->expected[r] = digest;
    else
      CHECK(digest == caller->expected[r], "caller %d, routine %d: other bits", caller->number, (int)all_routines[r]);
    level3_stage_free(&stage);
  }
  CHECK(wsgemm_destroy(handle) == WSGEMM_SUCCESS, "destroy");
}

static void *caller_main(void *argument) {
  for (int round = 0; round < (check_scale() > 1 ? 1 : 4); round++) run_all(argument, false);
  return NULL;
}

static void concurrent_callers(void) {
  static struct caller callers[N_CALLERS];
  for (int own = check_scale() > 1; own < 2; own++) {
    for (int i = 0; i < N_CALLERS; i++) {
      callers[i] = (struct caller){.number = i, .own_handle = own};
      run_all(&callers[i], true);
    }
    for (int i = 0; i < N_CALLERS; i++)
      REQUIRE(pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]) == 0, "thread");
    for (int i = 0; i < N_CALLERS; i++) pthread_join(callers[i].thread, NULL);
  }
}

static void run_in_child(void *caller) { run_all(caller, false); }

/* Parent and children, of which one is forked from the other, give the same bits with threads. */
static void generations(void *caller) {
  run_all(caller, false);
  check_in_child("a child of a child", run_in_child, caller);
  run_all(caller, false);
}

static void after_fork(void) {
  static struct caller caller;
  for (int i = 0; i<N_CALLERS; i += check_scale()> 1 ? 3 : 1) {
    caller = (struct caller){.number = i, .own_handle = true};
    run_all(&caller, true);
    check_in_child("a child", generations, &caller);
    run_all(&caller, false);
  }
}

static const struct check_case cases[] = {{"settings", settings},
                                          {"placement", placement},
                                          {"threads_are_used", threads_are_used},
                                          {"invariant", invariant},
                                          {"concurrent_callers", concurrent_callers},
                                          {"after_fork", after_fork}};
CHECK_MAIN("level3_bits", cases)
