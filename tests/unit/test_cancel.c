/* test_cancel.c - a thread that is to be cancelled (pthread_cancel) calls the library: the call
 * ends as ever, the cancel comes after it, and no lock, file or thread is left taken. A hang is the
 * defect itself: each case runs in a forked child with an alarm. */
#define _GNU_SOURCE
#include "support/folder.h"
#include "support/process.h"
#include "wsgemm.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HANG_S = 60, SIDE = 300, TUNED_SIDE = 100 };
static char lines[1 << 16]; /* of a tuning file */
static char file[PATH_BYTES];

static wsgemm_gemm_desc desc_of_product(int64_t side) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.m = d.n = d.k = d.lda = d.ldb = d.ldc = side;
  d.alpha.s = 1;
  return d;
}

static void multiply(int n_threads) {
  static float x[SIDE * SIDE];
  static _Thread_local float c[SIDE * SIDE];
  wsgemm_handle *h = NULL;
  for (int i = 0; i < SIDE * SIDE; i++) x[i] = 1;
  wsgemm_gemm_desc d = desc_of_product(SIDE);
  d.a = d.b = x, d.c = c;
  CHECK(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, n_threads) == WSGEMM_SUCCESS &&
            wsgemm_gemm(h, &d) == WSGEMM_SUCCESS,
        "%s", wsgemm_last_error());
  CHECK(c[0] == SIDE && c[SIDE * SIDE - 1] == SIDE, "C: %g .. %g", c[0], c[SIDE * SIDE - 1]);
  wsgemm_destroy(h);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static int step_with_cancellation_point(void *user, const wsgemm_autotune_step *step) {
  (void)user, (void)step;
  pthread_testcancel();
  return 0;
}

static void call_autotune(void) {
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  /* each candidate once, however slow the machine */
  options.is_exhaustive = 1, options.budget_ms = 1;
  options.file = file, options.progress = step_with_cancellation_point;
  const wsgemm_gemm_desc d = desc_of_product(TUNED_SIDE);
  CHECK(wsgemm_autotune(NULL, &d, &options) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
/* Of the library's own table, as on a noisy machine a search may end without a finding. */
static void put_lines(void) {
  static char table[1 << 20];
  int n_lines = 0;
  REQUIRE(wsgemm_tuning_table(table, sizeof table) > 0, "no table");
  CHECK(wsgemm_tuning_import(table, file, &n_lines) == WSGEMM_SUCCESS && n_lines > 0, "%d lines: %s", n_lines,
        wsgemm_last_error());
}
static void call_read(void) {
  CHECK(wsgemm_tuning_read(file, lines, sizeof lines) > 0 && strchr(lines, '\n'), "nothing was read of %s", file);
}
static void call_import(void) {
  int n_lines = 0;
  CHECK(wsgemm_tuning_import(lines, file, &n_lines) == WSGEMM_SUCCESS && n_lines > 0, "%d lines: %s", n_lines,
        wsgemm_last_error());
}
static void call_import_nothing(void) {
  CHECK(wsgemm_tuning_import("", NULL, NULL) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}
static void call_clear(void) { CHECK(wsgemm_tuning_clear(file) == WSGEMM_SUCCESS, "%s", wsgemm_last_error()); }
static void call_machine(void) {
  char text[4096];
  CHECK(wsgemm_machine(text, sizeof text) > 0, "nothing about this machine");
}
static void call_product(void) { multiply(1); }
static void call_team(void) { multiply(4); }

static const struct {
  const char *name;
  void (*call)(void);
} calls[] = {
    {"machine", call_machine},
    {"product", call_product},
    {"team", call_team},
    {"autotune", call_autotune},
    {"read", call_read},
    {"import", call_import},
    {"import_nothing", call_import_nothing},
    {"clear", call_clear},
};
enum { N_CALLS = sizeof calls / sizeof calls[0] };

/* ---- Cancelled in each ----------------------------------------------------------------------- */

struct cancelled {
  void (*call)(void);
  bool has_returned;
};

static void *cancelled_thread(void *argument) {
  struct cancelled *self = argument;
  pthread_cancel(pthread_self());
  self->call();
  self->has_returned = true;
  pthread_testcancel();
  return NULL;
}

/* The caller's state is as it was: a cancel that it does not allow stays pending. */
static void *uncancellable_thread(void *argument) {
  struct cancelled *self = argument;
  int old = -1;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  pthread_cancel(pthread_self());
  self->call();
  pthread_testcancel();
  self->has_returned = true;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
  CHECK(old == PTHREAD_CANCEL_DISABLE, "the caller's cancellation state became %d", old);
  pthread_testcancel();
  return NULL;
}

static void all_again(void *unused) {
  (void)unused;
  alarm(HANG_S);
  call_product(), call_team();
  call_autotune(), put_lines(), call_read(), call_import(), call_import_nothing(), call_clear();
}

static void cancel_in(const char *name, void (*call)(void), void *(*thread_main)(void *)) {
  struct cancelled self = {call, false};
  pthread_t thread;
  void *result = NULL;
  call_autotune(), put_lines(), call_read(); /* so that there are lines */
  REQUIRE(pthread_create(&thread, NULL, thread_main, &self) == 0 && pthread_join(thread, &result) == 0, "thread");
  CHECK(self.has_returned, "%s: cancelled in the middle of the call", name);
  CHECK(result == PTHREAD_CANCELED, "%s: not cancelled after the call", name);
  /* no file is locked, no lock of the library held over a fork */
  check_in_child(name, all_again, NULL);
  all_again(NULL);
}

static void calls_child(void *argument) {
  const int i = *(const int *)argument;
  alarm(HANG_S);
  multiply(2); /* not the first call: test_first_use.c */
  cancel_in(calls[i].name, calls[i].call, cancelled_thread);
  cancel_in(calls[i].name, calls[i].call, uncancellable_thread);
}

static void every_call(void) {
  char folder[PATH_BYTES];
  folder_make(folder);
  folder_path(file, folder, "tuning");
  setenv("WSGEMM_TUNE", file, 1);
  for (int i = 0; i < N_CALLS; i++) check_in_child(calls[i].name, calls_child, &i);
  folder_remove(folder);
}

/* ---- In a handler ---------------------------------------------------------------------------- */

/* A handler that repairs a fault in the middle of a product is a place where a cancel acts; but not
 * while others work with the thread. */
static char *barrier;
static const size_t barrier_bytes = SIDE * SIDE * sizeof(float);

static void open_barrier(int number) {
  (void)number;
  mprotect(barrier, barrier_bytes, PROT_READ | PROT_WRITE);
  pthread_testcancel();
}

static void multiply_into_barrier(void) {
  static float x[SIDE * SIDE];
  for (int i = 0; i < SIDE * SIDE; i++) x[i] = 1;
  REQUIRE(mprotect(barrier, barrier_bytes, PROT_NONE) == 0, "barrier");
  wsgemm_gemm_desc d = desc_of_product(SIDE);
  d.a = d.b = x, d.c = barrier;
  CHECK(wsgemm_set_num_threads(NULL, 3) == WSGEMM_SUCCESS && wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

static void handler_child(void *unused) {
  struct sigaction action = {.sa_handler = open_barrier};
  (void)unused;
  alarm(HANG_S);
  barrier = mmap(NULL, barrier_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(barrier != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0, "barrier");
  for (int turn = 0; turn < 20; turn++) {
    struct cancelled self = {multiply_into_barrier, false};
    pthread_t thread;
    void *result = NULL;
    REQUIRE(pthread_create(&thread, NULL, cancelled_thread, &self) == 0 && pthread_join(thread, &result) == 0, "thread");
    CHECK(self.has_returned && result == PTHREAD_CANCELED, "cancelled in the middle of a product");
  }
  multiply(5);
  CHECK(process_n_threads() >= 5, "the pool is not free: %d threads after a product with 5", process_n_threads());
}

static void in_a_handler(void) { check_in_child("cancels in a handler", handler_child, NULL); }

static const struct check_case cases[] = {{"every_call", every_call}, {"in_a_handler", in_a_handler}};
CHECK_MAIN("cancel", cases)
