/* trsm_plan.h - how a triangular system on the CPU is divided. No number of it is part of the
 * numerics. */
#ifndef WS_CPU_TRSM_PLAN_H
#define WS_CPU_TRSM_PLAN_H
#include "cpu/trsm.h"
#include "tune/tuning.h"

/* What packing may take of a stack instead of a workspace. */
enum { WS_SOLVE_SMALL_BYTES = 29 * 1024 };

typedef enum ws_solve_path {
  WS_SOLVE_DIRECT,  /* T where it is, by the calling thread */
  WS_SOLVE_SMALL,   /* T packed by each item, on its stack */
  WS_SOLVE_BATCH,   /* an item is some systems of a batch */
  WS_SOLVE_BLOCKED, /* one system after the other, cut by right sides */
  WS_SOLVE_SPLIT    /* the same, but updates are cut by unknowns */
} ws_solve_path;

typedef struct ws_solve_plan {
  const ws_cpu_row *row;
  ws_solve_path path;
  wsgemm_policy policy;
  int n_threads;
  int64_t n_systems; /* SMALL, BATCH: of an item */
  int64_t chunk;     /* right sides whose panels are in memory at a time */
  int64_t item_n;    /* right sides of an item */
  int64_t panels_n;  /* one block: right sides that a worker packs at a time */
  int64_t groups_n;  /* groups of rows that are packed at a time */
  bool packs_late;   /* and only when they are multiplied with */
  ws_tuned tuned;    /* mc: item_n; nc: chunk, or of one block panels_n */
} ws_solve_plan;

void ws_solve_plan_make(const ws_call *call, const ws_system *s, ws_solve *v, ws_solve_plan *plan);
/* What becomes of a tuning, in full, and the model's time of it. */
ws_candidate ws_solve_candidate(const ws_call *call, const ws_system *s, const ws_tuning *wanted);
#endif
