/* bench_neighbour.c - see bench_neighbour.h. */
#define _GNU_SOURCE
#include "bench_neighbour.h"
#include "bench.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void sleep_ns(int64_t ns) {
  struct timespec t = {ns / 1000000000, ns % 1000000000};
  while (nanosleep(&t, &t) && errno == EINTR) {
  }
}

/* Where the scheduler shares among sessions: how nice this one is (0: not known), and makes it so. */
static int session_nice(void) {
  int nice = 0;
  FILE *f = fopen("/proc/self/autogroup", "re");
  if (!f) return 0;
  if (fscanf(f, "%*s nice %d", &nice) != 1) nice = 0;
  fclose(f);
  return nice;
}
static void set_session_nice(int nice) {
  FILE *f = nice ? fopen("/proc/self/autogroup", "we") : NULL;
  if (!f) return;
  fprintf(f, "%d", nice);
  fclose(f);
}

static _Noreturn void neighbour_main(atomic_int *busy, int64_t burn_ns) {
  for (;;) {
    if (!atomic_load_explicit(busy, memory_order_relaxed)) {
      sleep_ns(BENCH_PERIOD_NS / 10);
      continue;
    }
    const int64_t start = now_ns(CLOCK_MONOTONIC), used = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    while (now_ns(CLOCK_PROCESS_CPUTIME_ID) - used < burn_ns) {
    }
    const int64_t rest = start + BENCH_PERIOD_NS - now_ns(CLOCK_MONOTONIC);
    if (rest > 0) sleep_ns(rest);
  }
}

static int last_core(void) {
  cpu_set_t set;
  int last = 0;
  if (sched_getaffinity(0, sizeof set, &set)) return 0;
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, &set)) last = i;
  return last;
}

bool ws_bench_neighbour_start(bench_neighbour *nb, int64_t burn_ns, char *error, size_t bytes) {
  cpu_set_t set;
  const pid_t parent = getpid();
  const int nice = session_nice();
  CPU_ZERO(&set);
  CPU_SET(last_core(), &set);
  nb->busy = mmap(NULL, sizeof *nb->busy, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (nb->busy == MAP_FAILED) {
    snprintf(error, bytes, "cannot map memory for the neighbour: %s", strerror(errno));
    return false;
  }
  fflush(NULL); /* nothing may be in a buffer twice */
  nb->child = fork();
  if (nb->child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setsid(); /* as another program has it, of the same weight: a session that was given more took its core back at once */
    set_session_nice(nice);
    if (getppid() != parent || sched_setaffinity(0, sizeof set, &set)) _exit(1);
    neighbour_main(nb->busy, burn_ns);
  }
  if (nb->child < 0 || clock_getcpuclockid(nb->child, &nb->clock)) {
    snprintf(error, bytes, "cannot start the neighbour: %s", strerror(errno));
    munmap(nb->busy, sizeof *nb->busy);
    if (nb->child > 0) {
      kill(nb->child, SIGKILL);
      waitpid(nb->child, NULL, 0);
    }
    return false;
  }
  return true;
}

void ws_bench_neighbour_stop(bench_neighbour *nb) {
  kill(nb->child, SIGKILL);
  waitpid(nb->child, NULL, 0);
  munmap(nb->busy, sizeof *nb->busy);
}

double ws_bench_beside_neighbour(const bench_neighbour *nb, const bench_candidate *candidate, int64_t n_calls, double *seconds) {
  atomic_store(nb->busy, 1);
  sleep_ns(BENCH_LEAD_NS); /* the child wakes, and the scheduler learns that its core is loaded */
  const int64_t start = now_ns(CLOCK_MONOTONIC), child_start = now_ns(nb->clock);
  *seconds = candidate->run(candidate, n_calls);
  const int64_t child_used = now_ns(nb->clock) - child_start, window = now_ns(CLOCK_MONOTONIC) - start;
  atomic_store(nb->busy, 0);
  sleep_ns(BENCH_PERIOD_NS);
  return (double)child_used / (double)window;
}
