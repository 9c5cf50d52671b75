/* test_loader.c - products beside dlopen, whose lock is held while a library's constructor runs:
 * they do not wait for it. A hang is the defect itself: each case runs in a forked child with an
 * alarm. */
#define _GNU_SOURCE
#include "support/process.h"
#include "wsgemm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANG_S = 60, SIDE = 300 };

static void multiply(void) {
  static double x[SIDE * SIDE], c[SIDE * SIDE];
  for (int i = 0; i < SIDE * SIDE; i++) x[i] = 1;
  CHECK(wsgemm_set_num_threads(NULL, 3) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(wsgemm_dgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, SIDE, 1, x, SIDE, x, SIDE, 0, c,
                     SIDE) == WSGEMM_SUCCESS,
        "%s", wsgemm_last_error());
  CHECK(c[0] == SIDE && c[SIDE * SIDE - 1] == SIDE, "C: %g .. %g", c[0], c[SIDE * SIDE - 1]);
}

static void load_late_library(void) {
  void *library = dlopen(LATE_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  CHECK(library, "%s", dlerror());
}

/* ---- A constructor that waits for a thread that multiplies ----------------------------------- */

static void joining_child(void *argument) {
  const bool is_first_call = *(const bool *)argument;
  alarm(HANG_S);
  if (!is_first_call) multiply();
  setenv("LATE_LIBRARY", "join", 1);
  load_late_library();
  multiply();
}

/* The first call of a library that knows of GPUs looks for a driver, by dlopen. */
static bool looks_for_drivers(void) {
  char text[4096];
  wsgemm_config(text, sizeof text);
  return strstr(text, "cuda") != NULL;
}

static void constructor_joins(void) {
  for (int i = 0; i < (looks_for_drivers() ? 1 : 2); i++) {
    bool is_first_call = i;
    check_in_child(is_first_call ? "the first call" : "a later call", joining_child, &is_first_call);
  }
}

/* ---- A constructor that takes its time ------------------------------------------------------- */

static void *load_thread(void *unused) {
  load_late_library();
  return unused;
}

static void forked_child(void *unused) {
  (void)unused;
  alarm(HANG_S);
  multiply();
}

/* A thread in dlopen, whose constructor has begun, and waits until it is let go on. */
struct loading {
  pthread_t thread;
  int go[2], there[2];
};

static void loading_begin(struct loading *self, const char *task) {
  char byte, text[32];
  REQUIRE(pipe(self->go) == 0 && pipe(self->there) == 0, "pipes");
  snprintf(text, sizeof text, "%d %d", self->there[1], self->go[0]);
  setenv("LATE_LIBRARY", task, 1), setenv("LATE_LIBRARY_FDS", text, 1);
  REQUIRE(pthread_create(&self->thread, NULL, load_thread, NULL) == 0, "thread");
  REQUIRE(read(self->there[0], &byte, 1) == 1, "the constructor does not run");
}

static void loading_go_on(struct loading *self) {
  REQUIRE(write(self->go[1], "x", 1) == 1, "write");
  pthread_join(self->thread, NULL);
}

static void beside_child(void *unused) {
  struct loading loading;
  (void)unused;
  alarm(HANG_S);
  multiply();
  loading_begin(&loading, "wait");
  multiply();
  if (process_may_fork_beside_threads()) check_in_child("a child forked beside dlopen", forked_child, NULL);
  loading_go_on(&loading);
}
static void beside_dlopen(void) { check_in_child("beside dlopen", beside_child, NULL); }

/* ---- A constructor that meets another thread's first call ------------------------------------ */

static _Atomic pid_t caller;
static atomic_bool has_returned;

static void *first_call(void *unused) {
  atomic_store(&caller, (pid_t)syscall(SYS_gettid));
  multiply();
  atomic_store(&has_returned, true);
  return unused;
}

/* The first caller has looked for a driver: it waits for the loader's lock, or is through, where it
 * needs none. */
static void wait_for_caller(void) {
  while (atomic_load(&caller) == 0) sched_yield();
  for (int n_asleep = 0; !atomic_load(&has_returned) && n_asleep < 50; usleep(1000))
    n_asleep = process_thread_is_asleep(atomic_load(&caller)) ? n_asleep + 1 : 0;
}

static void meeting_child(void *task) {
  struct loading loading;
  pthread_t thread;
  alarm(HANG_S);
  loading_begin(&loading, task);
  REQUIRE(pthread_create(&thread, NULL, first_call, NULL) == 0, "thread");
  wait_for_caller();
  loading_go_on(&loading);
  pthread_join(thread, NULL);
  multiply();
  if (process_may_fork_beside_threads()) check_in_child("a later child", forked_child, NULL);
}

static void constructor_calls(void) { check_in_child("calls beside a first call", meeting_child, (void *)(uintptr_t) "call"); }

static void constructor_forks(void) {
  if (process_may_fork_beside_threads())
    check_in_child("forks beside a first call", meeting_child, (void *)(uintptr_t) "fork");
  else
    check_skip("a child of this build may not allocate");
}

static const struct check_case cases[] = {{"constructor_joins", constructor_joins},
                                          {"beside_dlopen", beside_dlopen},
                                          {"constructor_calls", constructor_calls},
                                          {"constructor_forks", constructor_forks}};
CHECK_MAIN("loader", cases)
