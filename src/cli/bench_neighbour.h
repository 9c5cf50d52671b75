/* bench_neighbour.h - a process that keeps one core busy, for suites steal and busy.
 *
 * A child process, tied to the last core that this one may use. It makes no library call and no
 * allocation, and dies with its parent. */
#ifndef WSGEMM_CLI_BENCH_NEIGHBOUR_H
#define WSGEMM_CLI_BENCH_NEIGHBOUR_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Its period, of which it burns a part; how long until the scheduler has learnt that its core is loaded. */
enum { BENCH_PERIOD_NS = 10 * 1000 * 1000, BENCH_LEAD_NS = 50 * 1000 * 1000 };

typedef struct bench_neighbour {
  atomic_int *busy; /* shared with the child */
  pid_t child;
  clockid_t clock; /* the child's CPU clock */
} bench_neighbour;

/* It is idle until it is told to be busy. burn_ns: CPU time in each period; if the core was not free
 * enough for that, the next period begins at once. False with one line in error. */
bool ws_bench_neighbour_start(bench_neighbour *neighbour, int64_t burn_ns, char *error, size_t bytes);
void ws_bench_neighbour_stop(bench_neighbour *neighbour);

/* The part of the core that it got while a candidate ran n_calls calls, whose time is in *seconds. */
typedef struct bench_candidate bench_candidate;
double ws_bench_beside_neighbour(const bench_neighbour *neighbour, const bench_candidate *candidate, int64_t n_calls,
                                 double *seconds);
#endif
