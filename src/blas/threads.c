/* threads.c - thread controls under OpenBLAS's names, so that programs and threadpoolctl find them.
 *
 * They set the limit of wsgemm's default handle, which all entry points use, and pass it on to the
 * BLAS that does Level 1 and 2 if it is loaded and has such a function. OPENBLAS_NUM_THREADS,
 * GOTO_NUM_THREADS and OMP_NUM_THREADS are obeyed, the first that is set, unless WSGEMM_NUM_THREADS
 * is. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "blas/blas.h"

enum { MOST_THREADS = 256 };

/* 0: as many as the library finds good. */
static void limit(int n_threads) {
  wsgemm_set_num_threads(NULL, n_threads < 0 ? 0 : n_threads > MOST_THREADS ? MOST_THREADS : n_threads);
}

static int n_allowed_processors(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  const long n = sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (int)n;
}

/* A number as large as the machine's is no limit: the library's own count follows affinity. */
__attribute__((constructor)) static void obey_environment(void) {
  if (getenv("WSGEMM_NUM_THREADS")) return;
  static const char *const names[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *const value = getenv(names[i]);
    const int n = value ? atoi(value) : 0;
    if (n < 1) continue;
    if (n < n_allowed_processors()) limit(n);
    return;
  }
}

static void set_threads(int n_threads) {
  limit(n_threads == wsgemm_default_num_threads() ? 0 : n_threads);
  ws_blas_limit_peer(n_threads);
}

static int get_threads(void) {
  int n_threads = 0;
  wsgemm_get_num_threads(NULL, &n_threads);
  return n_threads > 0 ? n_threads : wsgemm_default_num_threads();
}

/* ---- OpenBLAS's interface, for C and for Fortran ----------------------------------------------- */

WS_BLAS_EXPORT void openblas_set_num_threads(int n_threads) { set_threads(n_threads); }
WS_BLAS_EXPORT void openblas_set_num_threads_(const int *n_threads) { set_threads(*n_threads); }
WS_BLAS_EXPORT void goto_set_num_threads(int n_threads) { set_threads(n_threads); }
WS_BLAS_EXPORT void goto_set_num_threads_(const int *n_threads) { set_threads(*n_threads); }
WS_BLAS_EXPORT int openblas_get_num_threads(void) { return get_threads(); }
WS_BLAS_EXPORT int openblas_get_num_threads_(void) { return get_threads(); }

/* Of calls by this thread; the old limit, 0: none. */
WS_BLAS_EXPORT int openblas_set_num_threads_local(int n_threads) {
  return wsgemm_set_num_threads_local(n_threads < 0 ? 0 : n_threads);
}

WS_BLAS_EXPORT int openblas_get_num_procs(void) { return n_allowed_processors(); }
WS_BLAS_EXPORT int openblas_get_num_procs_(void) { return n_allowed_processors(); }

/* OpenBLAS's number for threads of its own, neither none nor OpenMP's. */
WS_BLAS_EXPORT int openblas_get_parallel(void) { return 1; }
WS_BLAS_EXPORT int openblas_get_parallel_(void) { return 1; }

/* ---- texts ------------------------------------------------------------------------------------ */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char config[256], corename[32];

/* The line "isa: ..." of wsgemm_machine. */
static void make_texts(void) {
  char machine[4096];
  wsgemm_machine(machine, sizeof machine);
  const char *const line = strstr(machine, "\nisa: ");
  snprintf(corename, sizeof corename, "%.*s", line ? (int)strcspn(line + 6, "\n") : 7, line ? line + 6 : "unknown");
  snprintf(config, sizeof config, "wsgemm %s %s MAX_THREADS=%d", wsgemm_version_string(), corename, MOST_THREADS);
}

WS_BLAS_EXPORT char *openblas_get_config(void) {
  pthread_once(&once, make_texts);
  return config;
}

WS_BLAS_EXPORT char *openblas_get_corename(void) {
  pthread_once(&once, make_texts);
  return corename;
}
