/* breakdown.h - speedups over cuBLAS of products drawn at random, in means by what they have in
 * common: min(m, n), the time that cuBLAS takes, the pair of ops. */
#ifndef WSGEMM_BENCH_BREAKDOWN_H
#define WSGEMM_BENCH_BREAKDOWN_H
#include <stdint.h>

#include "bench/harness/stats.h"

enum { N_BY_SIDE = 4, N_BY_TIME = 5, N_BY_OPS = 4 };
typedef struct breakdown {
  ws_bench_mean by_side[N_BY_SIDE], by_time[N_BY_TIME], by_ops[N_BY_OPS];
} breakdown;

/* ops: "NN"; peer_ms: what cuBLAS takes. */
void breakdown_add(breakdown *b, const char *ops, int64_t m, int64_t n, double peer_ms, double speedup);
/* Three lines of a table; those of nothing are "-". */
void breakdown_print(const breakdown *b, char letter);
#endif
