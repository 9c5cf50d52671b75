/* way.h - which way of computing suits few rows and few columns. */
#ifndef WS_CPU_WAY_H
#define WS_CPU_WAY_H
#include "cpu/plan.h"

/* Register tiles of columns; sums along k in vectors; tiles of the transpose, C written by rows. */
typedef enum ws_way { WS_WAY_OF_TILES, WS_WAY_OF_DOTS, WS_WAY_BY_ROWS } ws_way;
ws_way ws_way_of(const ws_call *call, const ws_problem *p, const ws_cpu_row *row);

/* So many lines of k elements each do not stay in L2. Of any size: bits depend on this, but not on the machine. */
static inline bool ws_is_far(double n_lines, const ws_problem *p) {
  const double far_bytes = 1024.0 * 1024;
  return n_lines * (double)p->k * ws_types[p->a.type].bytes > far_bytes;
}

/* The short operand is not along k. */
static inline bool ws_dots_have_copies(const ws_problem *p) { return !p->a.trans || p->b.trans; }
#endif
