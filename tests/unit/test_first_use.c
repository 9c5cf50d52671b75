/* test_first_use.c - a fork, or a cancel, in the middle of the library's first call: all is as if
 * it had come before or after it.
 *
 * The first call is held up where it asks for the cgroup's quota, which is in its middle: linked
 * with --wrap for ws_cgroup_least. A hang is the defect itself: each case runs in a forked child
 * with an alarm. */
#define _GNU_SOURCE
#include "support/process.h"
#include "wsgemm.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANG_S = 60 };

double __real_ws_cgroup_least(const char *file, double (*value)(const char *text));
static void (*in_the_middle)(void); /* NULL: nothing is done there */

double __wrap_ws_cgroup_least(const char *file, double (*value)(const char *text)) {
  if (in_the_middle) in_the_middle();
  return __real_ws_cgroup_least(file, value);
}

/* Ones times ones with 3 threads. */
static void multiply(const char *who) {
  enum { SIDE = 400, K = 30 };
  static double x[SIDE * K], c[SIDE * SIDE];
  for (int i = 0; i < SIDE * K; i++) x[i] = 1;
  CHECK(wsgemm_set_num_threads(NULL, 3) == WSGEMM_SUCCESS, "%s: %s", who, wsgemm_last_error());
  const wsgemm_status status =
      wsgemm_dgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, SIDE, SIDE, K, 1, x, SIDE, x, SIDE, 0, c, SIDE);
  int n_wrong = 0;
  for (int i = 0; i < SIDE * SIDE; i++) n_wrong += c[i] != K;
  CHECK(status == WSGEMM_SUCCESS && n_wrong == 0, "%s: %s, %d elements wrong", who, wsgemm_status_name(status), n_wrong);
}

static void nothing_more(void *who) { multiply(who); }

/* Multiplies, forks, and multiplies again, both sides. */
static void live_on(void *who) {
  alarm(HANG_S);
  in_the_middle = NULL;
  multiply(who);
  check_in_child(who, nothing_more, who);
  multiply(who);
}

/* ---- A fork ---------------------------------------------------------------------------------- */

static atomic_bool is_in_the_middle, has_forked;
static _Atomic pid_t forking_thread;

/* Until the fork is through, or waits for us. */
static void wait_for_fork(void) {
  atomic_store(&is_in_the_middle, true);
  while (atomic_load(&forking_thread) == 0) sched_yield();
  while (!atomic_load(&has_forked) && !process_thread_is_asleep(atomic_load(&forking_thread))) sched_yield();
}

static void *first_call(void *unused) {
  multiply("the first caller");
  return unused;
}

static void forked_child(void *unused) {
  (void)unused;
  live_on("a child forked in the middle of the first call");
}

static void fork_child(void *unused) {
  pthread_t thread;
  (void)unused;
  alarm(HANG_S);
  in_the_middle = wait_for_fork;
  REQUIRE(pthread_create(&thread, NULL, first_call, NULL) == 0, "thread");
  while (!atomic_load(&is_in_the_middle)) sched_yield();
  fflush(NULL);
  atomic_store(&forking_thread, (pid_t)syscall(SYS_gettid));
  const pid_t child = fork();
  if (child == 0) /* its own child, which counts its checks */
    _exit(!check_in_child("a child in the middle", forked_child, NULL));
  atomic_store(&has_forked, true);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x",
        (unsigned)status);
  pthread_join(thread, NULL);
  live_on("the parent of a fork in the middle of the first call");
}

static void forked(void) {
  if (!process_may_fork_beside_threads())
    check_skip("a child of this build may not allocate");
  else
    check_in_child("a fork in the middle", fork_child, NULL);
}

/* What a first call loads may fork: the same thread, which then is in the middle on both sides. */
static void fork_here(void) {
  in_the_middle = NULL;
  const pid_t child = fork();
  REQUIRE(child >= 0, "fork");
  if (child == 0) return;
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %#x",
        (unsigned)status);
}

static void own_fork_child(void *unused) {
  (void)unused;
  alarm(HANG_S);
  in_the_middle = fork_here;
  multiply("both sides of a fork by the first call");
  live_on("both sides of a fork by the first call");
}
static void forks_itself(void) { check_in_child("a fork by the first call", own_fork_child, NULL); }

/* ---- A cancel -------------------------------------------------------------------------------- */

static void cancel_child(void *unused) {
  (void)unused;
  alarm(HANG_S);
  in_the_middle = pthread_testcancel;
  process_check_cancelled(nothing_more, "a cancelled caller");
  live_on("after a cancelled first call");
}
static void cancelled(void) { check_in_child("a cancel in the middle", cancel_child, NULL); }

static const struct check_case cases[] = {{"forked", forked}, {"forks_itself", forks_itself}, {"cancelled", cancelled}};
CHECK_MAIN("first_use", cases)
