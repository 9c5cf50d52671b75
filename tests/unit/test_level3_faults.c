/* test_level3_faults.c - Level 3 calls while malloc, mmap and pthread_create fail, one call after
 * the other: a right result, or ALLOC_FAILED and nothing written; afterwards all is as if it had
 * never been. And what small calls ask of the system: nothing.
 *
 * Linked with the library's objects and with --wrap for each function below (CMakeLists.txt). Each
 * fault is tried in a forked child, on a library that has not been used before. */
#define _GNU_SOURCE
#include "support/level3_call.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum kind { KIND_MALLOC, KIND_MMAP, KIND_THREAD, KIND_LOCK, N_KINDS };
static const char *const kind_names[N_KINDS] = {"malloc", "mmap", "pthread_create", "pthread_mutex_lock"};
static atomic_bool is_watching; /* only while the library runs */
static atomic_int n_calls[N_KINDS];
static int first_failing[N_KINDS], last_failing[N_KINDS]; /* calls by number, from 1; 0: none */

static bool should_fail(enum kind kind) {
  if (!atomic_load(&is_watching)) return false;
  const int number = atomic_fetch_add(&n_calls[kind], 1) + 1;
  return number >= first_failing[kind] && number <= last_failing[kind];
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);

void *__wrap_malloc(size_t bytes) { return should_fail(KIND_MALLOC) ? (errno = ENOMEM, NULL) : __real_malloc(bytes); }
void *__wrap_calloc(size_t n, size_t bytes) {
  return should_fail(KIND_MALLOC) ? (errno = ENOMEM, NULL) : __real_calloc(n, bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return should_fail(KIND_MALLOC) ? (errno = ENOMEM, NULL) : __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes) {
  return should_fail(KIND_MALLOC) ? ENOMEM : __real_posix_memalign(out, alignment, bytes);
}
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return should_fail(KIND_MMAP) ? (errno = ENOMEM, MAP_FAILED) : __real_mmap(address, bytes, protection, flags, file, offset);
}
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
  return should_fail(KIND_THREAD) ? EAGAIN : __real_pthread_create(thread, attributes, start, argument);
}
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
  should_fail(KIND_LOCK); /* counted, never refused */
  return __real_pthread_mutex_lock(mutex);
}

/* ---- Faults ------------------------------------------------------------------------------------ */

struct fault {
  enum kind kind;
  int first, last; /* which calls fail */
  wsgemm_routine routine;
  wsgemm_type type;
  struct variant variant;
  enum form form;
  bool *is_harmless; /* shared with the parent: the run made fewer than `first` such calls */
  struct level3_stage *stage;
};

static void run_once(const struct fault *fault, wsgemm_handle *handle, bool with_fault) {
  const struct layout_of_case where = layout_tight();
  wsgemm_level3_desc d = level3_desc(fault->routine, fault->type, WSGEMM_COL_MAJOR, &fault->variant, 230, 250, 240);
  char text[DESCRIPTION_BYTES];
  if (!routine_is_triangular(fault->routine)) d.beta = scalar_make(fault->type, 2, 0);
  level3_store(fault->stage, &d, &where, fault->form, JUDGE_EXACT);
  const unsigned long long before = level3_digest(fault->stage);
  if (with_fault) first_failing[fault->kind] = fault->first, last_failing[fault->kind] = fault->last;
  atomic_store(&is_watching, with_fault);
  const wsgemm_status status = wsgemm_level3(handle, &d);
  atomic_store(&is_watching, false);
  if (status == WSGEMM_SUCCESS)
    level3_judge(fault->stage, &d, JUDGE_EXACT, kind_names[fault->kind]);
  else
    CHECK(with_fault && status == WSGEMM_ALLOC_FAILED && level3_digest(fault->stage) == before,
          "%s %d..%d: %s: %s, and the result must be untouched", kind_names[fault->kind], fault->first, fault->last,
          level3_describe(&d, text), wsgemm_status_name(status));
}

static void fault_child(void *argument) {
  const struct fault *fault = argument;
  REQUIRE(wsgemm_set_num_threads(NULL, 4) == WSGEMM_SUCCESS, "threads");
  run_once(fault, NULL, true);
  *fault->is_harmless = atomic_load(&n_calls[fault->kind]) < fault->first;
  first_failing[fault->kind] = last_failing[fault->kind] = 0;
  for (int again = 0; again < 2; again++) run_once(fault, NULL, false);
}

/* Fails the 1st, 2nd, .. call of one kind until a run gets by without it; then all calls. */
static void each_call_fails(enum kind kind, bool is_used_at_all) {
  struct check_random rng = check_random_from(390 + (unsigned)kind);
  bool *is_harmless = __real_mmap(NULL, sizeof *is_harmless, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  int n_faults = 0;
  REQUIRE(is_harmless != MAP_FAILED, "shared memory");
  for (int r = 0; r<N_ROUTINES; r += check_scale()> 1 ? 4 : 1) {
    const wsgemm_type type = all_routines[r] == WSGEMM_HEMM || all_routines[r] == WSGEMM_HERK || all_routines[r] == WSGEMM_HER2K
                                 ? WSGEMM_C32
                                 : (wsgemm_type)check_random_in(&rng, 0, N_LEVEL3_TYPES - 1);
    struct level3_stage stage = level3_stage_new(type, 250, 250, FILL_INTEGER, &rng);
    if (all_routines[r] == WSGEMM_TRSM) level3_fill_triangle(&stage, TRIANGLE_SOLVABLE, &rng);
    for (int all = 0; all < 2; all++) {
      struct fault fault = {kind,
                            1,
                            all ? 1 << 30 : 1,
                            all_routines[r],
                            type,
                            draw_variant(all_routines[r], type, &rng),
                            all ? FORM_APART : FORM_DESCRIPTOR,
                            is_harmless,
                            &stage};
      do {
        check_in_child(kind_names[kind], fault_child, &fault);
        n_faults += !*is_harmless;
        fault.first++;
        fault.last += !all;
      } while (!*is_harmless && !all);
    }
    level3_stage_free(&stage);
  }
  CHECK(n_faults > 0 || !is_used_at_all, "no call of %s was ever made, so none failed", kind_names[kind]);
  munmap(is_harmless, sizeof *is_harmless);
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
    for (int kind = 0; kind < N_KINDS; kind++) atomic_store(&n_calls[kind], 0);
    atomic_store(&is_watching, true);
    const wsgemm_status status = level3_typed(NULL, &d);
    atomic_store(&is_watching, false);
    char text[DESCRIPTION_BYTES];
    CHECK(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    for (int kind = 0; kind < N_KINDS; kind++)
      CHECK(atomic_load(&n_calls[kind]) == 0, "%s: %d calls of %s", level3_describe(&d, text), atomic_load(&n_calls[kind]),
            kind_names[kind]);
    level3_stage_free(&stage);
  }
}
static void small_calls(void) { check_in_child("small calls", small_calls_child, NULL); }

static const struct check_case cases[] = {{"malloc_fails", malloc_fails},
                                          {"mmap_fails", mmap_fails},
                                          {"pthread_create_fails", pthread_create_fails},
                                          {"small_calls", small_calls}};
CHECK_MAIN("level3_faults", cases)
