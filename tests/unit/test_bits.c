/* test_bits.c - one result: the bits of C depend neither on the number of threads, nor on the
 * policy, the COARSE_FACTOR, the run, other callers, or where the operands lie. Each is compared
 * with one thread's result by a digest of all of C's bits. */
#include "support/rows.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const wsgemm_policy policies[] = {WSGEMM_POLICY_AUTO, WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS,
                                         WSGEMM_POLICY_STEAL};
static const int coarse_factors[] = {0, 1, 2, 3, 4, 8, 64};
/* The first is packed, with several k blocks, in all types (see find_packed; for half precision: of
 * several tiles); then ragged, long, thin, flat, small, vectors. */
static int64_t shapes[][3] = {{0, 0, 700},     {333, 250, 97},  {64, 64, 3000}, {1000, 20, 150},
                              {20, 1000, 150}, {120, 120, 120}, {1, 3000, 300}, {3000, 1, 300}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

static wsgemm_handle *handle_with(int n_threads, wsgemm_policy policy, int coarse_factor) {
  wsgemm_handle *handle = NULL;
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS && wsgemm_set_num_threads(handle, n_threads) == WSGEMM_SUCCESS &&
              wsgemm_set_policy(handle, policy) == WSGEMM_SUCCESS &&
              wsgemm_set_coarse_factor(handle, coarse_factor) == WSGEMM_SUCCESS,
          "handle: %s", wsgemm_last_error());
  return handle;
}

static unsigned long long digest_of_stored(struct stage *stage, wsgemm_handle *handle, const wsgemm_gemm_desc *d) {
  CHECK(wsgemm_gemm(handle, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return matrix_digest(&stage->stored[2]);
}

static unsigned long long digest_of(struct stage *stage, wsgemm_handle *handle, wsgemm_gemm_desc *d,
                                    const struct layout_of_case *where) {
  case_store(stage, d, where);
  return digest_of_stored(stage, handle, d);
}

/* The same call once more, on C as it was. */
static unsigned long long digest_again(struct stage *stage, wsgemm_handle *handle, const wsgemm_gemm_desc *d) {
  matrix_store(&stage->stored[2], &stage->c, WSGEMM_NO_TRANS);
  return digest_of_stored(stage, handle, d);
}

static wsgemm_gemm_desc desc_of(wsgemm_type type, int shape, int turn) {
  wsgemm_gemm_desc d = gemm_desc(type, all_layouts[turn % 2], all_ops[turn / 2 % n_ops(type)], all_ops[turn / 3 % n_ops(type)],
                                 shapes[shape][0], shapes[shape][1], shapes[shape][2]);
  d.alpha = scalar_make(type, 0.75, -0.3);
  d.beta = scalar_make(type, -1.1, 0.6);
  return d;
}

static bool all_types_are_packed(void) {
  for (int type = 0; type < N_TYPES; type++) {
    const wsgemm_gemm_desc d = desc_of((wsgemm_type)type, 0, type);
    if (!explained_is(NULL, &d, "path", type_is_half((wsgemm_type)type) ? "half" : "packed")) return false;
  }
  return true;
}

static void find_packed(void) {
  for (int64_t n = 9; n < 3000; n += 9) {
    shapes[0][0] = n > 300 ? n : 300, shapes[0][1] = n;
    if (all_types_are_packed()) return;
  }
}

static void settings(void) {
  find_packed();
  struct check_random rng = check_random_from(40);
  for (int type = 0; type < N_TYPES; type++)
    for (int shape = 0; shape < N_SHAPES; shape++) {
      struct stage stage = stage_new((wsgemm_type)type, shapes[shape][0], shapes[shape][1], shapes[shape][2], FILL_UNIFORM, &rng);
      const struct layout_of_case where = layout_drawn(&rng);
      wsgemm_gemm_desc d = desc_of((wsgemm_type)type, shape, type + shape);
      wsgemm_handle *alone = handle_with(1, WSGEMM_POLICY_AUTO, 0);
      const unsigned long long expected = digest_of(&stage, alone, &d, &where);
      const int most_explained = (int)explained_number(alone, &d, "threads", -1);
      CHECK(most_explained == 1, "a handle for one thread would use %d", most_explained);
      wsgemm_destroy(alone);
      for (int n_threads = 1; n_threads <= 16; n_threads++)
        for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
          for (size_t c = 0; c < sizeof coarse_factors / sizeof coarse_factors[0]; c++) {
            if (check_random_in(&rng, 1, 8 * check_scale()) != 1 && !(n_threads == 3 && p == 3 && c == 2)) continue;
            wsgemm_handle *handle = handle_with(n_threads, policies[p], coarse_factors[c]);
            char text[DESCRIPTION_BYTES];
            CHECK(digest_again(&stage, handle, &d) == expected, "%s: bits change with %d threads, policy %d, COARSE_FACTOR %d",
                  gemm_describe(&d, text), n_threads, (int)policies[p], coarse_factors[c]);
            wsgemm_destroy(handle);
          }
      stage_free(&stage);
    }
}

/* The suite must not compare one thread with one thread: these shapes do use several where several
 * are allowed. */
static void threads_are_used(void) {
  find_packed();
  CHECK(all_types_are_packed(), "%lld x %lld x %lld is not packed in all types", (long long)shapes[0][0], (long long)shapes[0][1],
        (long long)shapes[0][2]);
  for (int shape = 0; shape < N_SHAPES; shape++) {
    wsgemm_handle *handle = handle_with(4, WSGEMM_POLICY_AUTO, 0);
    const wsgemm_gemm_desc d = desc_of(WSGEMM_F64, shape, 0);
    const int n_threads = (int)explained_number(handle, &d, "threads", -1);
    CHECK(n_threads >= 2 && n_threads <= 4, "shape %d would use %d of 4 threads", shape, n_threads);
    wsgemm_destroy(handle);
  }
}

static void repeated_runs(void) {
  find_packed();
  struct check_random rng = check_random_from(41);
  for (int type = 0; type < N_TYPES; type++) {
    struct stage stage = stage_new((wsgemm_type)type, shapes[0][0], shapes[0][1], shapes[0][2], FILL_SPREAD, &rng);
    const struct layout_of_case where = layout_tight();
    wsgemm_gemm_desc d = desc_of((wsgemm_type)type, 0, type);
    wsgemm_handle *handle = handle_with(5, WSGEMM_POLICY_STEAL, 1);
    const unsigned long long expected = digest_of(&stage, handle, &d, &where);
    for (int run = 0; run < 100 / check_scale() + 3; run++)
      CHECK(digest_again(&stage, handle, &d) == expected, "type %c: run %d gives other bits", type_letter((wsgemm_type)type),
            run);
    wsgemm_destroy(handle);
    stage_free(&stage);
  }
}

/* Alignment and lds change nothing. */
static void placement(void) {
  find_packed();
  struct check_random rng = check_random_from(42);
  for (int type = 0; type < N_TYPES; type++)
    for (int shape = 0; shape < N_SHAPES; shape++) {
      struct stage stage = stage_new((wsgemm_type)type, shapes[shape][0], shapes[shape][1], shapes[shape][2], FILL_UNIFORM, &rng);
      for (int ops = 0; ops<4; ops += check_scale()> 1 ? 3 : 1) {
        wsgemm_gemm_desc d = desc_of((wsgemm_type)type, shape, shape);
        d.transa = all_ops[ops / 2];
        d.transb = all_ops[ops % 2];
        const struct layout_of_case tight = layout_tight();
        const unsigned long long expected = digest_of(&stage, NULL, &d, &tight);
        for (int turn = 0; turn < (check_scale() > 1 ? 1 : 3); turn++) {
          const struct layout_of_case where = layout_drawn(&rng);
          char text[DESCRIPTION_BYTES];
          CHECK(digest_of(&stage, NULL, &d, &where) == expected, "%s: bits change with lds or place", gemm_describe(&d, text));
        }
      }
      stage_free(&stage);
    }
}

/* ---- Callers at the same time ---------------------------------------------------------------- */

enum { N_CALLERS = 6 };
struct caller {
  pthread_t thread;
  int number;
  bool own_handle;
  unsigned long long expected[N_SHAPES];
};

static void run_all_shapes(struct caller *caller, bool is_first) {
  struct check_random rng = check_random_from(43); /* the same numbers for all callers */
  wsgemm_handle *handle = caller->own_handle ? handle_with(1 + caller->number % 4, policies[caller->number % 4], 0) : NULL;
  const wsgemm_type type = (wsgemm_type)(caller->number % N_TYPES);
  for (int shape = 0; shape < N_SHAPES; shape++) {
    struct stage stage = stage_new(type, shapes[shape][0], shapes[shape][1], shapes[shape][2], FILL_UNIFORM, &rng);
    const struct layout_of_case where = layout_tight();
    wsgemm_gemm_desc d = desc_of(type, shape, caller->number);
    const unsigned long long digest = digest_of(&stage, handle, &d, &where);
    if (is_first)
      caller->expected[shape] = digest;
    else
      CHECK(digest == caller->expected[shape], "caller %d, shape %d: bits change beside other callers", caller->number, shape);
    stage_free(&stage);
  }
  CHECK(wsgemm_destroy(handle) == WSGEMM_SUCCESS, "destroy");
}

static void *caller_main(void *argument) {
  const int n_rounds = check_scale() > 1 ? 1 : 6;
  for (int round = 0; round < n_rounds; round++) run_all_shapes(argument, false);
  return NULL;
}

static void concurrent_callers(void) {
  find_packed();
  static struct caller callers[N_CALLERS];
  for (int own = 0; own < 2; own++) {
    for (int i = 0; i < N_CALLERS; i++) {
      callers[i] = (struct caller){.number = i, .own_handle = own};
      run_all_shapes(&callers[i], true);
    }
    for (int i = 0; i < N_CALLERS; i++)
      REQUIRE(pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]) == 0, "thread");
    for (int i = 0; i < N_CALLERS; i++) pthread_join(callers[i].thread, NULL);
  }
}

/* A column lies along either side: C = A b by columns, and the same memory by rows, where the library sees a transposed problem. */
static void either_layout(void) {
  enum { MOST = 60, ROOM = MOST * MOST * 16 };
  struct check_random rng = check_random_from(44);
  static _Alignas(64) char a[ROOM], b[MOST * 16], c[2][MOST * 16];
  for (int turn = 0; turn < 4000 / check_scale() + 200; turn++) {
    const wsgemm_type type = (wsgemm_type)(turn % N_TYPES);
    if (type_is_half(type)) continue;
    const size_t bytes = type_bytes(type), real = type == WSGEMM_F32 || type == WSGEMM_C32 ? sizeof(float) : sizeof(double);
    for (size_t at = 0; at < ROOM / real; at++) {
      const double x = 2 * check_random_unit(&rng) - 1;
      if (real == sizeof(float))
        ((float *)(void *)a)[at] = (float)x;
      else
        ((double *)(void *)a)[at] = x;
    }
    memcpy(b, a + ROOM / 2, sizeof b);
    const int64_t m = check_random_in(&rng, 1, MOST), k = check_random_in(&rng, 1, MOST);
    const bool trans = turn / 2 % 2;
    wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, trans ? WSGEMM_TRANS : WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, 1, k);
    d.alpha = scalar_make(type, 1.5, 0);
    d.a = a, d.b = b, d.c = c[0], d.lda = trans ? k : m, d.ldb = k, d.ldc = m;
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    d.layout = WSGEMM_ROW_MAJOR, d.transa = trans ? WSGEMM_NO_TRANS : WSGEMM_TRANS, d.ldb = d.ldc = 1, d.c = c[1];
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(memcmp(c[0], c[1], (size_t)m * bytes) == 0, "type %d: %lld x 1 x %lld, A %s", type, (long long)m, (long long)k,
          trans ? "along k" : "along m");
  }
}

static const struct check_case cases[] = {
    {"settings", settings},           {"either_layout", either_layout}, {"threads_are_used", threads_are_used},
    {"repeated_runs", repeated_runs}, {"placement", placement},         {"concurrent_callers", concurrent_callers}};
CHECK_MAIN("bits", cases)
