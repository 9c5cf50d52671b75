/* test_workers.c - what the pool's threads take from the call that they work for, and what they
 * keep of the one that made them (nothing): floating-point environment and flags, signals,
 * processors, name.
 *
 * Products run under FIXED_BLOCKS, where everybody's own share waits for him: so every worker has
 * entered each job. Every case runs in a forked child, whose first call is its own. */
#define _GNU_SOURCE
#include "support/process.h"
#include "support/rows.h"

#include <dirent.h>
#include <fenv.h>
#include <float.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { N_THREADS = 3 };

static wsgemm_handle *handle_for(int n_threads) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, n_threads) == WSGEMM_SUCCESS &&
              wsgemm_set_policy(h, WSGEMM_POLICY_FIXED_BLOCKS) == WSGEMM_SUCCESS,
          "handle: %s", wsgemm_last_error());
  return h;
}

enum { MOST_OTHERS = 16 };
static pid_t helpers[MOST_OTHERS];
static int n_helpers;

/* The threads of this process but the caller and `helpers`. */
static int other_threads(pid_t threads[MOST_OTHERS]) {
  DIR *tasks = opendir("/proc/self/task");
  int n = 0;
  REQUIRE(tasks, "/proc/self/task");
  for (const struct dirent *task = readdir(tasks); task && n < MOST_OTHERS; task = readdir(tasks)) {
    const pid_t thread = (pid_t)atoi(task->d_name);
    bool is_known = task->d_name[0] == '.' || thread == (pid_t)syscall(SYS_gettid);
    for (int i = 0; i < n_helpers; i++) is_known |= helpers[i] == thread;
    if (!is_known) threads[n++] = thread;
  }
  closedir(tasks);
  return n;
}

/* The pool's, once the library has been used. */
static int workers_of_library(pid_t workers[MOST_OTHERS]) {
  const int n = other_threads(workers);
  CHECK(n == N_THREADS - 1, "%d workers", n);
  return n;
}

/* What the library's own threads are not to be mistaken for: a sanitizer's. */
static void note_helpers(void) {
  process_start_first_thread();
  n_helpers = 0;
  n_helpers = other_threads(helpers);
}

/* ---- Floating-point environment -------------------------------------------------------------- */

static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
enum { N_ENVIRONMENTS = 2 * (int)(sizeof roundings / sizeof roundings[0]), SIDE = 160 };

static void enter_environment(int number) {
  REQUIRE(fesetround(roundings[number / 2]) == 0, "fesetround");
  process_flush_to_zero(number % 2);
}

static unsigned long long digest_in(int environment, struct stage *stage, wsgemm_type type, wsgemm_handle *h) {
  const struct layout_of_case where = layout_tight();
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, SIDE, SIDE, SIDE);
  /* Then the elements of C are near the least normal number, some of them subnormal. */
  if (!type_is_half(type)) d.alpha = scalar_make(type, type_is_double(type) ? DBL_MIN : FLT_MIN, 0);
  case_store(stage, &d, &where);
  enter_environment(environment);
  const wsgemm_status status = wsgemm_gemm(h, &d);
  enter_environment(0);
  CHECK(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return matrix_digest(&stage->stored[2]);
}

/* The first call, which makes the workers, in each environment; then calls in all of them. */
static void environments_child(void *argument) {
  const int first = *(const int *)argument;
  struct check_random rng = check_random_from(200);
  struct stage stages[N_TYPES];
  unsigned long long in_nearest[N_TYPES];
  int n_other_bits = 0;
  for (int type = 0; type < N_TYPES; type++) stages[type] = stage_new((wsgemm_type)type, SIDE, SIDE, SIDE, FILL_UNIFORM, &rng);
  enter_environment(first);
  wsgemm_handle *alone = handle_for(1), *team = handle_for(N_THREADS);
  digest_in(first, &stages[WSGEMM_F64], WSGEMM_F64, team);
  for (int environment = 0; environment < N_ENVIRONMENTS; environment++)
    for (int type = 0; type < N_TYPES; type++) {
      const unsigned long long expected = digest_in(environment, &stages[type], (wsgemm_type)type, alone);
      if (environment == 0) in_nearest[type] = expected;
      n_other_bits += expected != in_nearest[type];
      CHECK(digest_in(environment, &stages[type], (wsgemm_type)type, team) == expected,
            "first call in environment %d: type %c has other bits with %d threads in environment %d", first,
            type_letter((wsgemm_type)type), N_THREADS, environment);
    }
  CHECK(n_other_bits > N_TYPES, "the environments make no difference: %d", n_other_bits);
  wsgemm_destroy(alone), wsgemm_destroy(team);
  for (int type = 0; type < N_TYPES; type++) stage_free(&stages[type]);
}

static void environments(void) {
  for (int first = check_scale() > 1 ? 3 : 0; first<N_ENVIRONMENTS; first += check_scale()> 1 ? 4 : 1)
    check_in_child("environments", environments_child, &first);
}

/* x times a row of ones: which rows of C overflow is x's doing. Returns the flags that the call
 * raised. */
static int flags_of(wsgemm_handle *h, int n_large) {
  enum { M = 900, N = 300, K = 4 };
  static double a[M * K], b[K * N], c[M * N];
  for (int i = 0; i < M; i++)
    for (int p = 0; p < K; p++) a[i * K + p] = i >= M - n_large ? DBL_MAX : 1;
  for (int at = 0; at < K * N; at++) b[at] = 1;
  feclearexcept(FE_ALL_EXCEPT);
  CHECK(wsgemm_dgemm(h, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K, 1, a, K, b, N, 0, c, N) == WSGEMM_SUCCESS,
        "%s", wsgemm_last_error());
  const int raised = fetestexcept(FE_ALL_EXCEPT);
  feclearexcept(FE_ALL_EXCEPT);
  CHECK(c[0] == K && (c[M * N - 1] > DBL_MAX) == (n_large > 0), "C: %g .. %g", c[0], c[M * N - 1]);
  return raised;
}

static void flags_child(void *unused) {
  (void)unused;
  wsgemm_handle *alone = handle_for(1), *team = handle_for(N_THREADS);
  for (int turn = 0; turn < 20; turn++) {
    const int n_large = turn % 2 ? 0 : 5, expected = flags_of(alone, n_large), raised = flags_of(team, n_large);
    CHECK(((expected & FE_OVERFLOW) != 0) == (n_large > 0), "one thread raised %#x", (unsigned)expected);
    CHECK(raised == expected, "%d threads raised %#x, one %#x", N_THREADS, (unsigned)raised, (unsigned)expected);
  }
  wsgemm_destroy(alone), wsgemm_destroy(team);
}
static void flags(void) { check_in_child("flags", flags_child, NULL); }

/* ---- Signals --------------------------------------------------------------------------------- */

/* Signals that tell a thread of what it has itself done, which a program may repair and go on. */
static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

static unsigned long long blocked_signals(pid_t thread) {
  char path[64], line[256];
  unsigned long long mask = 0;
  snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)thread);
  FILE *status = fopen(path, "re");
  REQUIRE(status, "%s", path);
  bool found = false;
  while (!found && fgets(line, sizeof line, status)) found = sscanf(line, "SigBlk: %llx", &mask) == 1;
  fclose(status);
  CHECK(found, "no SigBlk in %s", path);
  return mask;
}

static char *barrier_low;
static size_t barrier_bytes, page_bytes;
static atomic_int n_by_caller, n_by_workers;
static pid_t caller;

/* A write barrier, as a garbage collector has it: the page is opened, and the write is made
 * again. */
static void open_page(int number, siginfo_t *info, void *context) {
  char *const at = info->si_addr;
  (void)number, (void)context;
  if (at < barrier_low || at >= barrier_low + barrier_bytes) _exit(3);
  atomic_fetch_add(syscall(SYS_gettid) == caller ? &n_by_caller : &n_by_workers, 1);
  mprotect(barrier_low + (size_t)(at - barrier_low) / page_bytes * page_bytes, page_bytes, PROT_READ | PROT_WRITE);
}

static void faults_child(void *unused) {
  enum { N = 700 };
  struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
  static double a[N * N], b[N * N];
  (void)unused;
  wsgemm_handle *h = handle_for(N_THREADS);
  page_bytes = (size_t)sysconf(_SC_PAGESIZE), barrier_bytes = (N * N * sizeof(double) / page_bytes + 1) * page_bytes;
  caller = (pid_t)syscall(SYS_gettid);
  barrier_low = mmap(NULL, barrier_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(barrier_low != MAP_FAILED && sigaction(SIGSEGV, &action, NULL) == 0, "barrier");
  for (int at = 0; at < N * N; at++) a[at] = b[at] = 1;
  double *c = (double *)(void *)barrier_low;
  /* Who has no core for a while computes nothing of a product: so again, until both have met the barrier. */
  for (int turn = 0; turn < 200 && !(atomic_load(&n_by_workers) > 0 && atomic_load(&n_by_caller) > 0); turn++) {
    REQUIRE(mprotect(barrier_low, barrier_bytes, PROT_NONE) == 0, "barrier");
    CHECK(wsgemm_dgemm(h, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, N, N, N, 1, a, N, b, N, 0, c, N) == WSGEMM_SUCCESS,
          "%s", wsgemm_last_error());
    int n_wrong = 0;
    for (int at = 0; at < N * N; at++) n_wrong += c[at] != N;
    CHECK(n_wrong == 0, "%d elements wrong", n_wrong);
  }
  CHECK(atomic_load(&n_by_workers) > 0 && atomic_load(&n_by_caller) > 0, "%d faults of the caller, %d of workers",
        atomic_load(&n_by_caller), atomic_load(&n_by_workers));
  wsgemm_destroy(h);
}
static void faults_are_repaired(void) { check_in_child("a write barrier", faults_child, NULL); }

static void multiply_with(wsgemm_handle *h) {
  enum { N = 300 };
  static double a[N * N], c[N * N];
  for (int at = 0; at < N * N; at++) a[at] = 1;
  CHECK(wsgemm_dgemm(h, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, N, N, N, 1, a, N, a, N, 0, c, N) == WSGEMM_SUCCESS,
        "%s", wsgemm_last_error());
  CHECK(c[0] == N && c[N * N - 1] == N, "C: %g .. %g", c[0], c[N * N - 1]);
}

/* Whatever the maker of the workers blocks. */
static void mask_child(void *argument) {
  const bool blocks_all = *(const bool *)argument;
  sigset_t set, old;
  note_helpers();
  sigfillset(&set);
  REQUIRE(pthread_sigmask(blocks_all ? SIG_SETMASK : SIG_UNBLOCK, &set, &old) == 0, "mask");
  wsgemm_handle *h = handle_for(N_THREADS);
  multiply_with(h);
  sigset_t now;
  REQUIRE(pthread_sigmask(SIG_SETMASK, &old, &now) == 0, "mask");
  CHECK(sigismember(&now, SIGUSR1) == blocks_all && sigismember(&now, SIGSEGV) == blocks_all, "the caller's mask has changed");
  pid_t workers[MOST_OTHERS];
  const int n_workers = workers_of_library(workers);
  for (int i = 0; i < n_workers; i++) {
    const unsigned long long mask = blocked_signals(workers[i]);
    for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++)
      CHECK(!(mask >> (faults[f] - 1) & 1), "a worker blocks signal %d", faults[f]);
    CHECK((mask >> (SIGUSR1 - 1) & 1) && (mask >> (SIGINT - 1) & 1) && (mask >> (SIGALRM - 1) & 1),
          "a worker takes the program's signals: %#llx", mask);
  }
  wsgemm_destroy(h);
}

static void signal_masks(void) {
  for (int i = 0; i < 2; i++) {
    bool blocks_all = i;
    check_in_child("masks", mask_child, &blocks_all);
  }
}

/* ---- Processors ------------------------------------------------------------------------------ */

static void expect_workers_on(const cpu_set_t *expected, const char *when) {
  pid_t workers[MOST_OTHERS];
  const int n_workers = workers_of_library(workers);
  for (int i = 0; i < n_workers; i++) {
    cpu_set_t set;
    CHECK(sched_getaffinity(workers[i], sizeof set, &set) == 0 && CPU_EQUAL(&set, expected),
          "%s: a worker may use %d processors, not %d", when, CPU_COUNT(&set), CPU_COUNT(expected));
  }
}

static void limit_to(const cpu_set_t *set) { REQUIRE(sched_setaffinity(0, sizeof *set, set) == 0, "sched_setaffinity"); }

static int nth_processor(const cpu_set_t *set, int n) {
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, set) && n-- == 0) return cpu;
  return -1;
}

/* The workers of a job run where its caller may, whoever made them. */
static void processors_child(void *argument) {
  const bool pinned_first = *(const bool *)argument;
  cpu_set_t all, one[2];
  note_helpers();
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0, "affinity");
  for (int i = 0; i < 2; i++) {
    CPU_ZERO(&one[i]);
    CPU_SET(nth_processor(&all, i), &one[i]);
  }
  wsgemm_handle *h = handle_for(N_THREADS);
  for (int turn = 0; turn < 8; turn++) {
    const int which = (turn + !pinned_first) % 4;
    const cpu_set_t *now = which == 0 ? &one[0] : which == 2 ? &one[1] : &all;
    limit_to(now);
    multiply_with(h);
    expect_workers_on(now, "after a call");
    cpu_set_t after;
    CHECK(sched_getaffinity(0, sizeof after, &after) == 0 && CPU_EQUAL(&after, now), "the caller's own processors have changed");
  }
  wsgemm_destroy(h);
}

static void processors(void) {
  if (process_n_processors() < 2) {
    check_skip("one processor");
    return;
  }
  for (int i = 0; i < 2; i++) {
    bool pinned_first = i;
    check_in_child("processors", processors_child, &pinned_first);
  }
}

static int threads_of_large(void) {
  const wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2000, 2000, 2000);
  return (int)explained_number(NULL, &d, "threads", -1);
}

/* As many threads as the calling thread has processors at that time, whatever the first caller
 * had. */
static void *count_pinned(void *expected) {
  REQUIRE(process_keep_processors(1), "affinity");
  CHECK(wsgemm_default_num_threads() == 1 && threads_of_large() == 1, "%d and %d threads on one processor",
        wsgemm_default_num_threads(), threads_of_large());
  return expected;
}

static void default_child(void *unused) {
  (void)unused;
  cpu_set_t all;
  pthread_t thread;
  const int n_all = process_n_processors();
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0, "affinity");
  count_pinned(NULL); /* the first call */
  limit_to(&all);
  const int n = wsgemm_default_num_threads();
  CHECK(n >= 2 && n <= n_all && threads_of_large() == n, "%d threads on %d processors, %d for a large product", n, n_all,
        threads_of_large());
  REQUIRE(pthread_create(&thread, NULL, count_pinned, NULL) == 0, "thread");
  pthread_join(thread, NULL);
  CHECK(wsgemm_default_num_threads() == n, "%d threads after another thread's call", wsgemm_default_num_threads());
}

static void default_follows_caller(void) {
  if (process_n_processors() < 2)
    check_skip("one processor");
  else
    check_in_child("the default", default_child, NULL);
}

/* ---- Priority and name ----------------------------------------------------------------------- */

static bool take_policy(int policy, int priority) {
  const struct sched_param param = {.sched_priority = priority};
  return sched_setscheduler(0, policy, &param) == 0;
}

static void priorities_child(void *argument) {
  static const struct {
    int policy, priority;
  } callers[] = {{SCHED_OTHER, 0}, {SCHED_FIFO, 1}, {SCHED_OTHER, 0}, {SCHED_RR, 2}, {SCHED_FIFO, 2}};
  enum { N = sizeof callers / sizeof callers[0] };
  const int first = *(const int *)argument;
  note_helpers();
  wsgemm_handle *h = handle_for(N_THREADS);
  for (int turn = 0; turn < N; turn++) {
    const int i = (first + turn) % N;
    REQUIRE(take_policy(callers[i].policy, callers[i].priority), "policy");
    multiply_with(h);
    REQUIRE(take_policy(SCHED_OTHER, 0), "policy");
    pid_t workers[MOST_OTHERS];
    const int n_workers = workers_of_library(workers);
    for (int w = 0; w < n_workers; w++) {
      struct sched_param param = {-1};
      const int policy = sched_getscheduler(workers[w]);
      CHECK(policy == callers[i].policy && sched_getparam(workers[w], &param) == 0 && param.sched_priority == callers[i].priority,
            "a caller of policy %d, priority %d has a worker of policy %d, priority %d", callers[i].policy, callers[i].priority,
            policy, param.sched_priority);
    }
  }
  wsgemm_destroy(h);
}

static void priorities(void) {
  if (!take_policy(SCHED_FIFO, 1) || !take_policy(SCHED_OTHER, 0)) {
    check_skip("no real-time priority for this process");
    return;
  }
  for (int first = 0; first < 2; first++) check_in_child("priorities", priorities_child, &first);
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double seconds_of(wsgemm_handle *h) {
  const double begin_s = now_s();
  multiply_with(h);
  return now_s() - begin_s;
}

/* A real-time caller on one processor does not leave it to threads of no priority: a worker that
 * came there before it had the caller's would wait for as long as the system lets real-time threads
 * work (0.95 s of each second), or for ever. The product alone takes half a second under TSan, so a
 * caller without workers says what it takes there. */
static void one_processor_child(void *unused) {
  enum { N_TURNS = 5 };
  const double stuck_s = 0.4;
  cpu_set_t all, one;
  int n_stuck = 0;
  (void)unused;
  alarm(60);
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0, "affinity");
  CPU_ZERO(&one);
  CPU_SET(nth_processor(&all, 0), &one);
  wsgemm_handle *h = handle_for(N_THREADS), *alone = handle_for(1);
  for (int turn = 0; turn < N_TURNS; turn++) {
    multiply_with(h); /* workers without a priority, on any processor */
    limit_to(&one);
    REQUIRE(take_policy(SCHED_FIFO, 1), "policy");
    const double s = seconds_of(h), alone_s = seconds_of(alone);
    REQUIRE(take_policy(SCHED_OTHER, 0), "policy");
    limit_to(&all);
    n_stuck += s > 2 * alone_s + stuck_s;
  }
  CHECK(n_stuck <= N_TURNS / 2, "%d of %d products wait for a worker", n_stuck, N_TURNS);
  wsgemm_destroy(h), wsgemm_destroy(alone);
}

static void real_time_on_one_processor(void) {
  if (!take_policy(SCHED_FIFO, 1) || !take_policy(SCHED_OTHER, 0))
    check_skip("no real-time priority for this process");
  else if (process_n_processors() < 2)
    check_skip("one processor");
  else
    check_in_child("a real-time caller", one_processor_child, NULL);
}

/* Tools that list threads tell whose they are. */
static void names_child(void *unused) {
  char path[64], name[32] = "";
  pid_t workers[MOST_OTHERS];
  (void)unused;
  note_helpers();
  wsgemm_handle *h = handle_for(N_THREADS);
  multiply_with(h);
  const int n_workers = workers_of_library(workers);
  for (int i = 0; i < n_workers; i++) {
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", (int)workers[i]);
    FILE *comm = fopen(path, "re");
    CHECK(comm && fgets(name, sizeof name, comm) && strcmp(name, "wsgemm\n") == 0, "a worker is called %s", name);
    if (comm) fclose(comm);
  }
  wsgemm_destroy(h);
}
static void names(void) { check_in_child("names", names_child, NULL); }

static const struct check_case cases[] = {{"environments", environments},
                                          {"flags", flags},
                                          {"faults_are_repaired", faults_are_repaired},
                                          {"signal_masks", signal_masks},
                                          {"processors", processors},
                                          {"default_follows_caller", default_follows_caller},
                                          {"priorities", priorities},
                                          {"real_time_on_one_processor", real_time_on_one_processor},
                                          {"names", names}};
CHECK_MAIN("workers", cases)
