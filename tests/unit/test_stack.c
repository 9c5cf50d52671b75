/* test_stack.c - how much stack a call needs of the thread that makes it: what the header says is
 * enough, for products on every path, with epilogues and without memory, first calls, Level 3, and
 * tuning; and that the library's own threads have what they need. Each runs in a forked child, on a thread
 * with no more. */
#define _GNU_SOURCE
#include "support/folder.h"
#include "support/level3_call.h"
#include "support/process.h"
#include "support/rows.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Of the header: all of the thread's stack, with what the C library keeps there. */
enum { PROMISED_BYTES = 32 * 1024, PROMISED_BYTES_OF_TUNING = 64 * 1024, PROMISED_BYTES_BESIDE_AMX = 64 * 1024 };
enum { MOST = 700 };

struct call {
  wsgemm_type type;
  int64_t m, n, k;
  int n_threads;
  bool is_first, has_memory, has_epilogue, is_invariant, is_checked;
  int64_t batch_count; /* 0: one product */
};

static char operands[3][MOST * MOST * 16], bias[MOST * 8];

static void *make_call(void *argument) {
  const struct call *call = argument;
  const struct rlimit none = {1, 1};
  wsgemm_handle *h = NULL;
  wsgemm_gemm_desc d = gemm_desc(call->type, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, call->m, call->n, call->k);
  d.a = operands[0], d.b = operands[1], d.c = operands[2];
  if (call->has_epilogue) {
    d.epilogue = WSGEMM_EPILOGUE_GELU_ERF, d.type_bias = call->type, d.bias = bias;
    d.residual = d.c, d.ld_residual = d.ldc;
  }
  if (call->batch_count) d.batch_count = call->batch_count, d.stride_c = call->m * call->n;
  wsgemm_create(&h);
  wsgemm_set_num_threads(h, call->n_threads);
  wsgemm_set_invariant(h, call->is_invariant), wsgemm_set_check(h, call->is_checked);
  if (!call->has_memory) setrlimit(RLIMIT_AS, &none);
  return (void *)(intptr_t)wsgemm_gemm(h, &d);
}

/* Ragged groups of as many rows as there are columns in one of them. */
static void *make_groups(void *argument) {
  const struct call *call = argument;
  wsgemm_grouped_desc d = WSGEMM_GROUPED_DESC_INIT;
  wsgemm_handle *h = NULL;
  int64_t ends[] = {call->m / 4, call->m / 4, call->m};
  d.type_a = d.type_b = d.type_c = call->type;
  d.type_scalar = call->type == WSGEMM_F16 || call->type == WSGEMM_BF16 ? WSGEMM_F32 : call->type;
  d.ragged = WSGEMM_RAGGED_M, d.group_count = sizeof ends / sizeof ends[0], d.offsets = ends;
  d.transb = WSGEMM_TRANS, d.m = call->m, d.n = call->n, d.k = call->k;
  d.a = operands[0], d.lda = call->m, d.b = operands[1], d.ldb = call->n, d.c = operands[2], d.ldc = call->m;
  wsgemm_create(&h);
  wsgemm_set_num_threads(h, call->n_threads);
  return (void *)(intptr_t)wsgemm_gemm_grouped(h, &d);
}

static void *tune(void *file) {
  static char lines[1 << 16];
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 100, 100, 100);
  options.is_exhaustive = 1, options.budget_ms = 1, options.file = file;
  wsgemm_status status = wsgemm_autotune(NULL, &d, &options);
  if (!status && wsgemm_tuning_read(file, lines, sizeof lines) == 0) status = WSGEMM_INTERNAL_ERROR;
  if (!status) status = wsgemm_tuning_import(lines, file, NULL);
  if (!status) status = wsgemm_tuning_clear(file);
  if (!status && wsgemm_machine(lines, sizeof lines) == 0) status = WSGEMM_INTERNAL_ERROR;
  return (void *)(intptr_t)status;
}

static void on_stack_of(size_t bytes, void *(*body)(void *argument), void *argument) {
  pthread_attr_t attr;
  pthread_t thread;
  void *result = NULL;
  REQUIRE(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, bytes) == 0, "a stack of %zu bytes", bytes);
  REQUIRE(pthread_create(&thread, &attr, body, argument) == 0 && pthread_join(thread, &result) == 0, "thread");
  CHECK(result == (void *)WSGEMM_SUCCESS, "status %d", (int)(intptr_t)result);
  pthread_attr_destroy(&attr);
}

static bool has_amx(void) {
  char text[4096];
  return wsgemm_machine(text, sizeof text) > 0 && strstr(text, "amx");
}

static size_t bytes_for(const struct call *call) {
  return call->type == WSGEMM_BF16 && has_amx() ? PROMISED_BYTES_BESIDE_AMX : PROMISED_BYTES;
}

static void call_child(void *argument) {
  const struct call *call = argument;
  if (!call->is_first) CHECK(wsgemm_default_num_threads() > 0, "threads");
  on_stack_of(bytes_for(call), make_call, argument);
}

static void groups_child(void *argument) { on_stack_of(bytes_for(argument), make_groups, argument); }

static void tune_child(void *file) {
  setenv("WSGEMM_TUNE", file, 1);
  on_stack_of(PROMISED_BYTES_OF_TUNING, tune, file);
}

/* The sanitizers' instructions take more. */
static bool is_measurable(void) {
  if (process_may_fork_beside_threads()) return true;
  check_skip("this build needs more stack");
  return false;
}

static void try_in_child(const struct call *given, void (*body)(void *call)) {
  char what[128];
  struct call call = *given;
  snprintf(what, sizeof what, "%cgemm %lld x %lld x %lld, %d threads%s%s%s%s%s", type_letter(call.type), (long long)call.m,
           (long long)call.n, (long long)call.k, call.n_threads, call.is_first ? ", first call" : "",
           call.has_epilogue ? ", epilogue" : "", call.has_memory ? "" : ", no memory", call.is_invariant ? ", invariant" : "",
           call.batch_count ? ", batch" : "");
  check_in_child(what, body, &call);
}
static void try_call(const struct call *given) { try_in_child(given, call_child); }

static const int64_t shapes[][3] = {{5, 5, 5},       {48, 48, 48},    {60, 60, 60},  {100, 100, 100},
                                    {150, 150, 150}, {300, 300, 300}, {70, 70, 70},  {40, 40, 600},
                                    {150, 700, 500}, {1, 700, 700},   {700, 1, 700}, {700, 700, 700}};

static void products(void) {
  if (!is_measurable()) return;
  for (int type = 0; type < N_TYPES; type++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
      for (int n_threads = 1; n_threads <= 4; n_threads += 3)
        try_call(&(struct call){(wsgemm_type)type, shapes[s][0], shapes[s][1], shapes[s][2], n_threads, .is_first = s % 2,
                                .has_memory = true});
}

static void epilogues(void) {
  if (!is_measurable()) return;
  for (int type = 0; type < N_TYPES; type++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
      if (!type_is_complex((wsgemm_type)type))
        try_call(&(struct call){(wsgemm_type)type, shapes[s][0], shapes[s][1], shapes[s][2], 4, .has_memory = true,
                                .has_epilogue = true});
}

/* Batches, invariant mode, checks. */
static void modes(void) {
  if (!is_measurable()) return;
  for (int type = 0; type < N_TYPES; type++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      struct call call = {(wsgemm_type)type, shapes[s][0], shapes[s][1], shapes[s][2], s % 2 ? 4 : 1, .has_memory = true};
      call.is_checked = true;
      try_call(&call);
      call.is_invariant = true;
      try_call(&call);
      call.is_invariant = call.is_checked = false;
      call.batch_count = MOST * MOST / (call.m * call.n); /* as many as C has room for */
      try_call(&call);
    }
}

static void groups(void) {
  if (!is_measurable()) return;
  for (int type = 0; type < N_TYPES; type++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
      try_in_child(&(struct call){(wsgemm_type)type, shapes[s][0], shapes[s][1], shapes[s][2], s % 2 ? 4 : 1, .has_memory = true},
                   groups_child);
}

static void without_memory(void) {
  if (!is_measurable()) return;
  for (int type = 0; type < N_TYPES; type++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
      try_call(&(struct call){(wsgemm_type)type, shapes[s][0], shapes[s][1], shapes[s][2], .n_threads = 1});
}

static void tuning(void) {
  char folder[PATH_BYTES], file[PATH_BYTES];
  if (!is_measurable()) return;
  folder_make(folder);
  check_in_child("tuning", tune_child, (void *)(uintptr_t)folder_path(file, folder, "tuning"));
  folder_remove(folder);
}

/* ---- The library's own threads --------------------------------------------------------------- */

/* As RLIMIT_STACK has it at the process's start: threads of which nobody says more have little. */
static void set_small_default(void) {
  pthread_attr_t attr;
  const size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN), small = 24 * 1024, bytes = least > small ? least : small;
  REQUIRE(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, bytes) == 0 && pthread_setattr_default_np(&attr) == 0,
          "a default of %zu bytes", bytes);
  pthread_attr_destroy(&attr);
}

static void worker_child(void *argument) {
  const struct call *call = argument;
  set_small_default();
  setenv("WSGEMM_POLICY", "fixed_blocks", 1); /* each thread has a share, which waits for it */
  CHECK(make_call(argument) == (void *)WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(process_n_threads() == call->n_threads, "%d threads", process_n_threads());
}

static void workers(void) {
  if (!is_measurable()) return;
  for (int type = 0; type < N_TYPES; type++)
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
      struct call call = {(wsgemm_type)type, shapes[s][0], shapes[s][1], shapes[s][2], 4, .is_first = true, .has_memory = true};
      if (call.m * call.n * call.k >= INT64_C(300) * 300 * 300) try_in_child(&call, worker_child);
    }
}

/* ---- Level 3 --------------------------------------------------------------------------------- */

struct level3_run {
  wsgemm_level3_desc d;
  int n_threads;
  bool has_memory;
};

static void *make_level3(void *argument) {
  const struct level3_run *run = argument;
  const struct rlimit none = {1, 1};
  wsgemm_handle *h = NULL;
  wsgemm_create(&h);
  wsgemm_set_num_threads(h, run->n_threads);
  if (!run->has_memory) setrlimit(RLIMIT_AS, &none);
  return (void *)(intptr_t)wsgemm_level3(h, &run->d);
}

static void level3_child(void *argument) { on_stack_of(PROMISED_BYTES, make_level3, argument); }

static void level3(void) {
  static const int64_t sizes[][2] = {{16, 16}, {60, 60},   {150, 150}, {300, 300}, {700, 7},
                                     {5, 700}, {700, 700}, {64, 384},  {384, 64}};
  struct check_random rng = check_random_from(120);
  if (!is_measurable()) return;
  for (int r = 0; r < N_ROUTINES; r++)
    for (int type = 0; type < N_LEVEL3_TYPES; type++)
      for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        if (!routine_has_type(all_routines[r], (wsgemm_type)type)) continue;
        const struct variant v = draw_variant(all_routines[r], (wsgemm_type)type, &rng);
        struct level3_run run = {.n_threads = s % 2 ? 4 : 1, .has_memory = check_random_in(&rng, 0, 2) > 0};
        char what[DESCRIPTION_BYTES];
        run.d = level3_desc(all_routines[r], (wsgemm_type)type, WSGEMM_COL_MAJOR, &v, sizes[s][0], sizes[s][1], sizes[s][0]);
        run.d.a = operands[0], run.d.b = operands[1];
        run.d.c = routine_is_triangular(all_routines[r]) ? NULL : operands[2];
        check_in_child(level3_describe(&run.d, what), level3_child, &run);
      }
}

static const struct check_case cases[] = {
    {"products", products}, {"epilogues", epilogues}, {"modes", modes},  {"groups", groups}, {"without_memory", without_memory},
    {"tuning", tuning},     {"workers", workers},     {"level3", level3}};
CHECK_MAIN("stack", cases)
