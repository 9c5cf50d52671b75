/* test_driver_load.c - what happens while the library's first call loads the GPU driver, here
 * late_driver.c: forks, cancels, other first calls. CTest puts that on LD_LIBRARY_PATH. A hang is
 * the defect itself: each case runs in a forked child with an alarm. */
#define _GNU_SOURCE
#include "support/process.h"
#include "wsgemm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANG_S = 60, SIDE = 300 };

static void multiply(const char *who) {
  static double x[SIDE * SIDE];
  static _Thread_local double c[SIDE * SIDE];
  wsgemm_handle *h = NULL;
  CHECK(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, 3) == WSGEMM_SUCCESS, "%s: handle", who);
  c[0] = c[SIDE * SIDE - 1] = 1;
  CHECK(wsgemm_dgemm(h, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, SIDE, SIDE, 1, x, SIDE, x, SIDE, 3, c, SIDE) ==
                WSGEMM_SUCCESS &&
            c[0] == 3 && c[SIDE * SIDE - 1] == 3,
        "%s: %s, C: %g .. %g", who, wsgemm_last_error(), c[0], c[SIDE * SIDE - 1]);
  wsgemm_destroy(h);
}

/* A variable of the driver's; -1: it is not loaded. */
static int ask_driver(const char *variable) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
  const int *value = driver ? dlsym(driver, variable) : NULL;
  return value ? *value : -1;
}
static void expect_driver(const char *who) {
  CHECK(ask_driver("late_driver_is_whole") == 1, "%s: the driver is in state %d", who, ask_driver("late_driver_is_whole"));
}

static void nothing_more(void *who) { multiply(who); }

static void live_on(void *who) {
  alarm(HANG_S);
  expect_driver(who);
  multiply(who);
  if (process_may_fork_beside_threads()) check_in_child(who, nothing_more, who);
  multiply(who);
}

/* ---- Beside a thread that loads the driver --------------------------------------------------- */

/* A thread in its first call, in the driver's constructor, until it is let go on. */
struct loading {
  pthread_t thread;
  int go[2], there[2];
};

static void *first_call(void *unused) {
  multiply("the first caller");
  return unused;
}

static void loading_begin(struct loading *self) {
  char byte, text[32];
  REQUIRE(pipe(self->go) == 0 && pipe(self->there) == 0, "pipes");
  snprintf(text, sizeof text, "%d %d", self->there[1], self->go[0]);
  setenv("LATE_DRIVER", "wait", 1), setenv("LATE_DRIVER_FDS", text, 1);
  REQUIRE(pthread_create(&self->thread, NULL, first_call, NULL) == 0, "thread");
  REQUIRE(read(self->there[0], &byte, 1) == 1, "the driver's constructor does not run");
}

static void loading_go_on(struct loading *self) {
  REQUIRE(write(self->go[1], "x", 1) == 1, "write");
  pthread_join(self->thread, NULL);
}

static _Atomic pid_t other;
static atomic_bool other_is_through;

/* Until the other thread is through, or waits for the first caller. */
static void wait_for_other(void) {
  while (atomic_load(&other) == 0) sched_yield();
  for (int n_asleep = 0; !atomic_load(&other_is_through) && n_asleep < 50; usleep(1000))
    n_asleep = process_thread_is_asleep(atomic_load(&other)) ? n_asleep + 1 : 0;
}

static void beside_loading(void *(*other_main)(void *)) {
  struct loading loading;
  pthread_t thread;
  alarm(HANG_S);
  loading_begin(&loading);
  REQUIRE(pthread_create(&thread, NULL, other_main, NULL) == 0, "thread");
  wait_for_other();
  loading_go_on(&loading);
  pthread_join(thread, NULL);
  live_on("the process");
}

static void child_body(void *unused) {
  (void)unused;
  live_on("a child forked while the driver is loaded");
}

static void *fork_thread(void *unused) {
  int status = -1;
  atomic_store(&other, (pid_t)syscall(SYS_gettid));
  fflush(NULL);
  const pid_t child = fork();
  /* its own child, which counts its checks */
  if (child == 0) _exit(!check_in_child("a child", child_body, NULL));
  atomic_store(&other_is_through, true);
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x",
        (unsigned)status);
  return unused;
}

static void *call_thread(void *unused) {
  atomic_store(&other, (pid_t)syscall(SYS_gettid));
  multiply("another first caller");
  atomic_store(&other_is_through, true);
  return unused;
}

static void fork_beside_child(void *unused) {
  (void)unused;
  beside_loading(fork_thread);
}

static void call_beside_child(void *unused) {
  (void)unused;
  beside_loading(call_thread);
}

/* ---- In the thread that loads it ------------------------------------------------------------- */

static void forking_driver_child(void *unused) {
  int status = -1;
  (void)unused;
  alarm(HANG_S);
  setenv("LATE_DRIVER", "fork", 1);
  multiply("both sides of a driver that forks");
  const int child = ask_driver("late_driver_child");
  live_on("both sides of a driver that forks");
  if (child > 0) /* the parent */
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x",
          (unsigned)status);
  else
    CHECK(child == 0, "the driver has not forked");
}

static void cancelled_child(void *unused) {
  (void)unused;
  alarm(HANG_S);
  setenv("LATE_DRIVER", "cancel", 1);
  process_check_cancelled(nothing_more, "a cancelled caller");
  live_on("after a cancel");
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static void in_child(void (*body)(void *), bool forks) {
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  const bool is_ours = driver && dlsym(driver, "late_driver_is_whole");
  if (driver) dlclose(driver);
  if (!is_ours)
    check_skip("late_driver is not on LD_LIBRARY_PATH");
  else if (forks && !process_may_fork_beside_threads())
    check_skip("a child of this build may not allocate");
  else
    check_in_child("beside the loading of the driver", body, NULL);
}
static void forked(void) { in_child(fork_beside_child, true); }
static void called(void) { in_child(call_beside_child, false); }
static void forks_itself(void) { in_child(forking_driver_child, true); }
static void cancelled(void) { in_child(cancelled_child, false); }

static const struct check_case cases[] = {
    {"forked", forked}, {"called", called}, {"forks_itself", forks_itself}, {"cancelled", cancelled}};
CHECK_MAIN("driver_load", cases)
