/* test_threads.c - how many threads a call uses and why: affinity mask, cgroup quota, environment,
 * handle, calling thread; when threads are made; and what the other WSGEMM_* variables do.
 *
 * The library reads the environment on its first call, so every case runs in forked children and
 * the parent never calls it. */
#define _GNU_SOURCE
#include "support/cgroups.h"
#include "support/process.h"
#include "support/rows.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static wsgemm_gemm_desc large(void) {
  return gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2000, 2000, 2000);
}

static int threads_for_large(wsgemm_handle *h) {
  const wsgemm_gemm_desc d = large();
  return (int)explained_number(h, &d, "threads", -1);
}

/* Ones times ones: every element is k. */
static void multiply(wsgemm_handle *h, int64_t side) {
  const int64_t k = 30;
  double *x = malloc((size_t)(side * k) * sizeof *x), *c = malloc((size_t)(side * side) * sizeof *c);
  REQUIRE(x && c, "memory");
  for (int64_t i = 0; i < side * k; i++) x[i] = 1;
  const wsgemm_status status =
      wsgemm_dgemm(h, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, side, side, k, 1, x, side, x, side, 0, c, side);
  int64_t n_wrong = 0;
  for (int64_t i = 0; i < side * side; i++) n_wrong += !(c[i] == (double)k);
  CHECK(status == WSGEMM_SUCCESS && n_wrong == 0, "dgemm of %lld: %s, %lld elements wrong", (long long)side,
        wsgemm_status_name(status), (long long)n_wrong);
  free(x);
  free(c);
}

/* ---- When threads are made ------------------------------------------------------------------- */

static void first_need_child(void *unused) {
  (void)unused;
  wsgemm_handle *h = NULL;
  process_start_first_thread();
  const int n_before = process_n_threads();
  CHECK(n_before >= 1, "%d threads", n_before);
  CHECK(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, 3) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int64_t side = 1; side <= 48; side++) multiply(h, side);
  CHECK(process_n_threads() == n_before, "small products took the process from %d to %d threads", n_before, process_n_threads());
  multiply(h, 500);
  CHECK(process_n_threads() == n_before + 2, "a call for 3 threads took the process from %d to %d", n_before,
        process_n_threads());
  multiply(h, 500);
  CHECK(process_n_threads() == n_before + 2, "a second call took the process from %d to %d", n_before, process_n_threads());
  wsgemm_destroy(h);
}
static void first_need(void) { check_in_child("first need", first_need_child, NULL); }

/* A second thread comes with the time that a product takes: of FP64 at half, of complex numbers at
 * a quarter, at an eighth of the multiply-adds of floats. */
static void types_child(void *unused) {
  static const struct {
    wsgemm_type type;
    int64_t least; /* m = n = k */
  } cubes[] = {{WSGEMM_F32, 101}, {WSGEMM_F64, 80}, {WSGEMM_C32, 64}, {WSGEMM_C64, 51}};
  wsgemm_handle *h = NULL;
  (void)unused;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, 2) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (size_t i = 0; i < sizeof cubes / sizeof cubes[0]; i++)
    for (int64_t n = cubes[i].least - 1; n <= cubes[i].least; n++) {
      const wsgemm_gemm_desc d = gemm_desc(cubes[i].type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, n, n, n);
      const long long n_threads = explained_number(h, &d, "threads", -1);
      CHECK(n_threads == (n == cubes[i].least ? 2 : 1), "type %c, n = %lld: %lld threads", type_letter(cubes[i].type),
            (long long)n, n_threads);
    }
  wsgemm_destroy(h);
}
static void types(void) { check_in_child("types", types_child, NULL); }

/* The pool's threads take no signals: one that the program's own thread blocks stays pending. */
static volatile sig_atomic_t n_signals;
static void count_signal(int number) {
  (void)number;
  n_signals++;
}

static void signals_child(void *unused) {
  (void)unused;
  sigset_t one, pending;
  struct sigaction action = {.sa_handler = count_signal};
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0, "sigaction");
  REQUIRE(wsgemm_set_num_threads(NULL, 4) == WSGEMM_SUCCESS, "threads");
  multiply(NULL, 500);
  REQUIRE(pthread_sigmask(SIG_BLOCK, &one, NULL) == 0 && kill(getpid(), SIGUSR1) == 0, "signal");
  multiply(NULL, 500);
  CHECK(n_signals == 0 && sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1, "a worker took the signal");
  REQUIRE(pthread_sigmask(SIG_UNBLOCK, &one, NULL) == 0, "unblock");
  CHECK(n_signals == 1, "%d signals in the program's own thread", (int)n_signals);
}
static void signals(void) { check_in_child("signals", signals_child, NULL); }

/* ---- Affinity, environment ------------------------------------------------------------------- */

struct limits {
  int n_processors;     /* to keep; 0: as they are */
  const char *variable; /* WSGEMM_NUM_THREADS */
  bool is_ignored;      /* it makes no sense: one warning */
};

static void limits_child(void *argument) {
  const struct limits *limits = argument;
  if (limits->n_processors > 0) REQUIRE(process_keep_processors(limits->n_processors), "affinity");
  if (limits->variable) setenv("WSGEMM_NUM_THREADS", limits->variable, 1);
  const int most = process_n_processors(), wanted = limits->variable && !limits->is_ignored ? atoi(limits->variable) : most;
  const int n = wsgemm_default_num_threads();
  CHECK(n >= 1 && n <= (wanted < most ? wanted : most), "%d threads on %d processors with WSGEMM_NUM_THREADS=%s", n, most,
        limits->variable ? limits->variable : "");
  if (limits->n_processors == 1) CHECK(n == 1, "%d threads on one processor", n);
  CHECK(strstr(wsgemm_last_error(), "WSGEMM_NUM_THREADS") != NULL ? limits->is_ignored : !limits->is_ignored, "\"%s\"",
        wsgemm_last_error());
  CHECK(threads_for_large(NULL) == n, "a large call would use %d threads, not %d", threads_for_large(NULL), n);
  int from_handle = -1;
  CHECK(wsgemm_get_num_threads(NULL, &from_handle) == WSGEMM_SUCCESS && from_handle == 0, "the default handle says %d",
        from_handle);
  multiply(NULL, 300);
}

static void affinity_and_environment(void) {
  static const struct limits table[] = {{0, NULL, false}, {1, NULL, false},  {2, NULL, false},  {0, "1", false},
                                        {2, "1", false},  {1, "7", false},   {0, "200", false}, {0, "0", true},
                                        {0, "-3", true},  {0, "many", true}, {0, "2x", true},   {0, "99999999999999", true},
                                        {0, "1.5", true}, {0, "", false}};
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    struct limits limits = table[i];
    if (limits.variable && !*limits.variable) limits.variable = NULL;
    if (limits.n_processors <= process_n_processors())
      check_in_child(limits.variable ? limits.variable : "no variable", limits_child, &limits);
  }
}

/* ---- cgroup quota: files of our own over /proc/self/cgroup and /sys/fs/cgroup ---------------- */

struct quota {
  /* cpu.max of three nested cgroups, this process in the innermost; NULL: no such file */
  const char *root, *outer, *inner;
  int n_processors; /* the tightest, rounded up; 0: none */
};

static void quota_child(void *argument) {
  const struct quota *quota = argument;
  REQUIRE(cgroups_enter("cpu.max", quota->root, quota->outer, quota->inner), "cgroups");
  const int most = process_n_processors(),
            expected = quota->n_processors > 0 && quota->n_processors < most ? quota->n_processors : most;
  CHECK(wsgemm_default_num_threads() == expected, "%d threads on %d processors, expected %d", wsgemm_default_num_threads(), most,
        expected);
  char text[4096], line[64];
  wsgemm_machine(text, sizeof text);
  if (quota->n_processors > 0)
    snprintf(line, sizeof line, "cgroup quota: %d ", quota->n_processors);
  else
    snprintf(line, sizeof line, "cgroup quota: none");
  CHECK(strstr(text, line) != NULL, "wsgemm_machine does not say \"%s\":\n%s", line, text);
}

static void cgroup_quota(void) {
  static const struct quota table[] = {
      {NULL, NULL, NULL, 0},
      {"max 100000\n", "max 100000\n", "max 100000\n", 0},
      {NULL, NULL, "100000 100000\n", 1},
      {NULL, NULL, "10000 100000\n", 1},  /* a tenth of a processor: one thread */
      {NULL, NULL, "100001 100000\n", 2}, /* rounded up */
      {NULL, "50000 50000\n", "max 100000\n", 1},
      {"200000 100000\n", "100000 100000\n", "700000 100000\n", 1},
      {"100000 100000\n", NULL, NULL, 1},
      {NULL, NULL, "650000 100000\n", 7},
      {NULL, NULL, "nonsense\n", 0},
      {NULL, NULL, "", 0},
  };
  if (!cgroups_can_enter()) {
    check_skip("no mount namespace of our own (not root?)");
    return;
  }
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    struct quota quota = table[i];
    check_in_child(quota.inner ? quota.inner : "no inner quota", quota_child, &quota);
  }
}

/* ---- Handle and calling thread --------------------------------------------------------------- */

static atomic_int local_limit_tid;

/* The kernel counts a thread a little longer than until it is joined. */
static void wait_until_gone(int tid) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d", tid);
  while (access(path, F_OK) == 0) usleep(100);
}

static void *local_limit_thread(void *argument) {
  atomic_store(&local_limit_tid, (int)syscall(SYS_gettid));
  CHECK(wsgemm_set_num_threads_local(-1) == 0, "a new thread starts with a limit of %d", wsgemm_set_num_threads_local(-1));
  CHECK(threads_for_large(argument) == 6, "another thread's limit works here: %d threads", threads_for_large(argument));
  return NULL;
}

static void per_handle_and_thread_child(void *unused) {
  (void)unused;
  wsgemm_handle *six = NULL, *two = NULL;
  CHECK(wsgemm_create(&six) == WSGEMM_SUCCESS && wsgemm_create(&two) == WSGEMM_SUCCESS, "handles");
  CHECK(wsgemm_set_num_threads(six, 6) == WSGEMM_SUCCESS && wsgemm_set_num_threads(two, 2) == WSGEMM_SUCCESS, "threads");
  CHECK(threads_for_large(six) == 6 && threads_for_large(two) == 2, "%d and %d threads", threads_for_large(six),
        threads_for_large(two));
  CHECK(threads_for_large(NULL) == wsgemm_default_num_threads(), "the default handle would use %d", threads_for_large(NULL));
  CHECK(wsgemm_set_num_threads_local(3) == 0, "the old limit");
  CHECK(wsgemm_set_num_threads_local(-5) == 3 && wsgemm_set_num_threads_local(-1) == 3, "asking changes the limit");
  CHECK(threads_for_large(six) == 3 && threads_for_large(two) == 2, "%d and %d threads under a limit of 3",
        threads_for_large(six), threads_for_large(two));
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, local_limit_thread, six) == 0, "thread");
  pthread_join(thread, NULL);
  wait_until_gone(atomic_load(&local_limit_tid));
  const int n_before = process_n_threads();
  CHECK(wsgemm_set_num_threads_local(1) == 3, "the old limit");
  multiply(six, 500);
  CHECK(process_n_threads() == n_before, "a thread limited to 1 made threads");
  CHECK(wsgemm_set_num_threads_local(0) == 1, "the old limit");
  CHECK(threads_for_large(six) == 6, "%d threads without a limit", threads_for_large(six));
  CHECK(wsgemm_set_num_threads(six, 0) == WSGEMM_SUCCESS && threads_for_large(six) == wsgemm_default_num_threads(),
        "back to the default");
  wsgemm_destroy(six);
  wsgemm_destroy(two);
}
static void per_handle_and_thread(void) { check_in_child("limits", per_handle_and_thread_child, NULL); }

/* ---- The other variables --------------------------------------------------------------------- */

struct variable {
  const char *name, *value, *key, *explained; /* wsgemm_explain says "key: explained" with it */
  /* it makes no sense: one warning that names it, and the call works */
  bool is_ignored;
};

static void variable_child(void *argument) {
  const struct variable *variable = argument;
  char text[4096], line[256];
  setenv(variable->name, variable->value, 1);
  wsgemm_gemm_desc d = large();
  if (variable->key && strcmp(variable->key, "kernel") == 0)
    for (int type = 0; type < N_TYPES; type++)
      if (variable->explained && variable->explained[0] == type_letters[type])
        d = gemm_desc((wsgemm_type)type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 500, 500, 500);
  wsgemm_explain(NULL, &d, text, sizeof text);
  CHECK((strstr(wsgemm_last_error(), variable->name) != NULL) == variable->is_ignored, "%s=%s: last_error is \"%s\"",
        variable->name, variable->value, wsgemm_last_error());
  if (variable->explained) {
    snprintf(line, sizeof line, "%s: %s\n", variable->key, variable->explained);
    CHECK(strstr(text, line) != NULL, "%s=%s: no \"%s\" in\n%s", variable->name, variable->value, line, text);
  }
  multiply(NULL, 200);
  wsgemm_machine(text, sizeof text);
  CHECK(strstr(text, variable->name) != NULL, "wsgemm_machine does not name %s", variable->name);
  wsgemm_handle *h = NULL; /* handles made afterwards start the same way */
  CHECK(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  wsgemm_explain(h, &d, text, sizeof text);
  if (variable->explained)
    CHECK(strstr(text, line) != NULL, "%s=%s: no \"%s\" for a new handle", variable->name, variable->value, line);
  wsgemm_destroy(h);
}

static void variables(void) {
  static const struct variable table[] = {
      {"WSGEMM_POLICY", "fixed_work", "policy", "fixed_work", false},
      {"WSGEMM_POLICY", "fixed_blocks", "policy", "fixed_blocks", false},
      {"WSGEMM_POLICY", "steal", "policy", "steal", false},
      {"WSGEMM_POLICY", "fair", "policy", "steal", true},
      {"WSGEMM_COARSE_FACTOR", "5", "coarse_factor", "5", false},
      {"WSGEMM_COARSE_FACTOR", "64", "coarse_factor", "64", false},
      {"WSGEMM_COARSE_FACTOR", "65", NULL, NULL, true},
      {"WSGEMM_COARSE_FACTOR", "0", NULL, NULL, true},
      {"WSGEMM_COARSE_FACTOR", "two", NULL, NULL, true},
      {"WSGEMM_ISA", "sse9", NULL, NULL, true},
      {"WSGEMM_KERNEL", "sgemm_unheard_of_3x3", NULL, NULL, true},
      {"WSGEMM_CACHES", "16K,64K,256K", "path", "packed", false},
      {"WSGEMM_CACHES", "64K,16K,256K", NULL, NULL, true},
      {"WSGEMM_CACHES", "16K,64K", NULL, NULL, true},
      {"WSGEMM_CACHES", "16K,64K,256K,1M", NULL, NULL, true},
      {"WSGEMM_CACHES", "16K,64K,", NULL, NULL, true},
      {"WSGEMM_CACHES", "1K,64K,256K", NULL, NULL, true},
      {"WSGEMM_CHECK", "2", NULL, NULL, true},
      {"WSGEMM_CHECK", "1", NULL, NULL, false},
      {"WSGEMM_OFFLOAD", "auto", NULL, NULL, false},
      {"WSGEMM_OFFLOAD", "off", NULL, NULL, false},
      {"WSGEMM_OFFLOAD", "0,3", NULL, NULL, false},
      {"WSGEMM_OFFLOAD", "0,0", NULL, NULL, true},
      {"WSGEMM_OFFLOAD", "0,", NULL, NULL, true},
      {"WSGEMM_OFFLOAD", "64", NULL, NULL, true},
      {"WSGEMM_OFFLOAD", "gpu", NULL, NULL, true},
      {"WSGEMM_INVARIANT", "yes", NULL, NULL, true},
      {"WSGEMM_INVARIANT", "1", "invariant", "an element's bits do not depend on m, n, the batch, lds, ops or layout", false},
  };
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    struct variable variable = table[i];
    check_in_child(variable.value, variable_child, &variable);
  }
}

/* Each row of the registry by WSGEMM_KERNEL, each instruction set by WSGEMM_ISA. */
static void forced_row_child(void *argument) {
  const int row = *(const int *)argument;
  char name[64];
  /* a constant table: reads no environment */
  snprintf(name, sizeof name, "%s", wsgemm_kernel_name(row));
  setenv("WSGEMM_KERNEL", name, 1);
  const bool is_usable = wsgemm_kernel_usable(row);
  struct variable variable = {"WSGEMM_KERNEL", name, "kernel", is_usable ? name : NULL, !is_usable};
  variable_child(&variable);
}

static void forced_isa_child(void *argument) {
  const char *isa = argument;
  setenv("WSGEMM_ISA", isa, 1);
  bool is_usable = false, has_type[N_TYPES] = {false}; /* amx has one type only */
  CHECK(wsgemm_default_num_threads() >= 1, "the first call, which reads the environment");
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    const wsgemm_kernel_info info = row_info_at(row);
    if (is_of_family(&info, isa) && info.is_usable) is_usable = has_type[info.type] = true;
  }
  CHECK((strstr(wsgemm_last_error(), "WSGEMM_ISA") != NULL) == !is_usable, "WSGEMM_ISA=%s: \"%s\"", isa, wsgemm_last_error());
  for (int type = 0; type < N_TYPES; type++) {
    const wsgemm_gemm_desc d = gemm_desc((wsgemm_type)type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 500, 500, 500);
    char kernel[128] = "";
    REQUIRE(explained_text(NULL, &d, "kernel", kernel), "WSGEMM_ISA=%s: no kernel", isa);
    if (has_type[type]) CHECK(row_is_of(kernel, isa), "WSGEMM_ISA=%s: %s", isa, kernel);
  }
  multiply(NULL, 150);
}

static void forced_rows(void) {
  static const char *const isas[] = {"amx", "avx512", "avx2", "neon", "ref"};
  for (int row = 0; row < wsgemm_kernel_count(); row++) check_in_child(wsgemm_kernel_name(row), forced_row_child, &row);
  for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
    char isa[16];
    snprintf(isa, sizeof isa, "%s", isas[i]);
    check_in_child(isa, forced_isa_child, isa);
  }
}

/* WSGEMM_CHECK=1 turns check mode on for every handle. */
static void check_variable_child(void *unused) {
  (void)unused;
  setenv("WSGEMM_CHECK", "1", 1);
  int enabled = -1;
  double x[4] = {1, 2, 3, 4};
  CHECK(wsgemm_get_check(NULL, &enabled) == WSGEMM_SUCCESS && enabled == 1, "check mode is %d", enabled);
  CHECK(wsgemm_dgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2, 2, 2, 1, x, 2, x, 2, 0, x, 2) ==
            WSGEMM_INVALID_VALUE,
        "C = A is taken");
  CHECK(x[0] == 1 && x[1] == 2 && x[2] == 3 && x[3] == 4, "C was written");
}
static void check_variable(void) { check_in_child("WSGEMM_CHECK=1", check_variable_child, NULL); }

static const struct check_case cases[] = {{"first_need", first_need},
                                          {"affinity_and_environment", affinity_and_environment},
                                          {"cgroup_quota", cgroup_quota},
                                          {"per_handle_and_thread", per_handle_and_thread},
                                          {"signals", signals},
                                          {"variables", variables},
                                          {"forced_rows", forced_rows},
                                          {"check_variable", check_variable},
                                          {"types", types}};

/* How many threads the model takes is looked at; what a user has tuned is another matter. */
int main(int argc, char **argv) {
  setenv("WSGEMM_TUNE", "off", 1);
  return check_main("threads", cases, sizeof cases / sizeof cases[0], argc, argv);
}
