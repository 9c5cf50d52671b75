/* plan.h - how a call on the CPU is divided. */
#ifndef WS_CPU_PLAN_H
#define WS_CPU_PLAN_H
#include "core/problem.h"
#include "cpu/rows.h"

typedef enum ws_path {
  WS_PATH_DIRECT, /* B as it is, A as it is or one panel at a time packed on the stack */
  WS_PATH_VECTOR, /* m = 1 or n = 1: a matrix-vector product */
  WS_PATH_DOTS,   /* few rows or columns, the longer operand along k: sums along k in vectors */
  WS_PATH_PACKED, /* B packed once for all workers, or by each, or read in place; A by the worker of its rows */
  /* half precision: FP32 copies of A, B and C, a block at a time, by the worker of it */
  WS_PATH_HALF
} ws_path;

/* The k block of DOTS, in those of its row. */
enum { WS_DOTS_BLOCKS = 2, WS_DOTS_BLOCKS_FAR = 16 };

/* Where the workers of PACKED read B. */
typedef enum ws_b_source {
  WS_B_PACKED_ONCE, /* packed for all of them */
  WS_B_OF_EACH,     /* each packs all of it for himself */
  WS_B_IN_PLACE     /* where it is */
} ws_b_source;

typedef struct ws_plan {
  const ws_cpu_row *row;
  ws_path path;
  bool pack_a; /* DIRECT: pack panels of A */
  /* DIRECT: a strip of columns at a time, not a panel of rows: C in long runs */
  bool by_columns;
  bool asks_for_a;      /* DIRECT: A comes from far away, columns apart */
  int k_of_part;        /* DIRECT: all rows take so many columns of A before they take the next ones; 0: all of them */
  bool asks_for_c;      /* direct: each tile of C is asked for while the one before is computed */
  bool transposed;      /* computed as its transpose: m = 1, few rows, or few columns */
  bool c_by_rows;       /* DIRECT, transposed: the tiles of C are written by rows */
  int64_t kc;           /* k block: a function of the row and of k alone */
  int64_t bm, bn;       /* tile of the queue, in elements of C */
  int64_t n_products;   /* DIRECT, HALF: of a batch, in one work item */
  int64_t nc;           /* PACKED: columns of B packed at a time */
  ws_b_source b_source; /* PACKED */
  bool own_columns;     /* PACKED: workers begin with columns of their own */
  int coarse, n_threads;
  int thread_limit; /* of the call; 0: not asked for yet */
  wsgemm_policy policy;
  ws_tuned tuned;
} ws_plan;

/* Columns of a packed product that is soon done with a block of A. */
enum { WS_FEW_COLUMNS = 128 };

/* The largest panel that goes to the stack: callers may have little of it. Larger ones are in a room
 * (cpu/workspace.h). */
enum { WS_STACK_PANEL_BYTES = 16 * 1024 };

/* Sums of a product that goes by parts of k, at a time: they stay in L1. */
enum { WS_SUMS_BYTES = 32 * 1024 };

enum { WS_SMALL_WORK = 1 << 16 };

static inline bool ws_is_small_as(const ws_problem *p, const ws_cpu_row *row, int64_t m, int64_t n) {
  enum { SMALL = 64 * 64 };
  const bool is_one_panel = m <= row->ukr->n_vectors * row->ukr->vl;
  return m > 1 && n > 1 && m <= SMALL && n <= SMALL && p->k <= SMALL && n * p->k <= SMALL && p->k <= row->kc &&
         (is_one_panel || (m * n <= SMALL && m * n * p->k <= WS_SMALL_WORK)) && !ws_is_half(p->a.type);
}
/* Products so small that what is done beside each of them would be felt. */
static inline bool ws_are_small(const ws_problem *p, const ws_cpu_row *row) {
  return ws_is_small_as(p, row, p->m, p->n) &&
         (!p->a.trans || row->mr * p->k * ws_types[p->a.type].bytes <= WS_STACK_PANEL_BYTES);
}
/* One that is not planned, either: straight to the direct path. */
static inline bool ws_is_small(const ws_problem *p, const ws_cpu_row *row) { return p->batch_count == 1 && ws_are_small(p, row); }
/* As its transpose, C by rows. */
static inline bool ws_is_small_by_rows(const ws_problem *p, const ws_cpu_row *row) {
  return p->batch_count == 1 && p->b.trans && ws_is_small_as(p, row, p->n, p->m);
}
/* By sums along k, whose block is all of k and whose copies go to the stack, a line at least. */
static inline bool ws_is_small_dots(const ws_problem *p, const ws_cpu_row *row) {
  return p->m > 1 && p->n > 1 && p->batch_count == 1 && p->k <= WS_DOTS_BLOCKS * row->kc && p->m * p->n * p->k <= WS_SMALL_WORK;
}

/* Whether a product needs a plan. */
typedef enum ws_small { WS_NOT_SMALL, WS_SMALL, WS_SMALL_BY_ROWS, WS_SMALL_DOTS } ws_small;
ws_small ws_small_of(const ws_call *call, const ws_problem *p, const ws_cpu_row *row);
void ws_plan_make(const ws_call *call, const ws_problem *p, ws_plan *plan);
/* A product with a structured operand or a region of C. */
void ws_plan_structured(const ws_call *call, const ws_problem *p, ws_plan *plan);
/* Of at most `limit` threads, those that have so much work each; from the work of two on. In whole
 * numbers, which raise no flag of inexact arithmetic. */
static inline int ws_threads_sharing(int limit, double work, double work_per_thread) {
  return work < limit * work_per_thread ? (int)((int64_t)work / (int64_t)work_per_thread) : limit;
}
/* Multiply-adds of floats for each thread: below, handing over costs more than it saves (measured,
 * Zen 5, 2 cores). */
#define WS_WORK_PER_THREAD (80.0 * 80 * 80)
/* What was found, unless it was for another row. */
ws_tuned ws_tuned_for_row(const ws_tuned *tuned, const ws_cpu_row *row);
/* Of the handle's and the tuned policy, that of the CPU. */
wsgemm_policy ws_cpu_policy(const ws_call *call, const ws_tuning *tuning);
/* Multiply-adds of floats that take as long as one of this type. */
double ws_float_products(wsgemm_type type);
/* For a walk over the elements of C alone: row, tile, threads, policy. */
void ws_plan_walk(const ws_call *call, const ws_problem *p, ws_plan *plan);
const char *ws_path_name(ws_path path);
#endif
