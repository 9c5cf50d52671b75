/* gemm_vector.c - m = 1 or n = 1: matrix-vector products. Items are runs of rows of the matrix; each owns its part of the result. */
#include "core/tile.h"
#include "cpu/paths.h"
#include "cpu/team.h"

typedef struct vector_run {
  const ws_plan *plan;
  ws_scale scale;
  int bytes;
  /* y = op(M) x for each product of the batch */
  int64_t n_batch, m, k;
  const char *matrix, *x;
  char *y;
  bool trans;
  int64_t ld, incx, incy, stride_matrix, stride_x, stride_y;
} vector_run;

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const vector_run *run = context;
  (void)step;
  n_items[0] = run->n_batch * ws_ceil_div(run->m, run->plan->bm);
  n_items[1] = 0;
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const vector_run *run = context;
  (void)worker, (void)step, (void)kind;
  const int64_t per_product = ws_ceil_div(run->m, run->plan->bm), batch = item_idx / per_product;
  const int64_t first = item_idx % per_product * run->plan->bm, last = ws_min(run->m, first + run->plan->bm);
  for (int64_t i = first; i < last; i += WS_VEC_ROWS)
    run->plan->row->ukr->gemv(ws_min(WS_VEC_ROWS, last - i), run->k,
                              run->matrix + (batch * run->stride_matrix + (run->trans ? i * run->ld : i)) * run->bytes, run->ld,
                              run->trans, run->x + batch * run->stride_x * run->bytes, run->incx,
                              run->y + (batch * run->stride_y + i * run->incy) * run->bytes, run->incy, &run->scale);
}

void ws_vector_run(const ws_problem *p, const ws_plan *plan) {
  vector_run run = {.plan = plan,
                    .scale = p->scale,
                    .bytes = ws_types[p->type].bytes,
                    .n_batch = p->batch_count,
                    .k = p->k,
                    .y = p->c,
                    .stride_y = p->stride_c};
  if (!plan->swap) { /* n = 1: c = op(A) b */
    run.m = p->m;
    run.matrix = p->a, run.ld = p->lda, run.trans = p->a_trans, run.stride_matrix = p->stride_a;
    run.x = p->b, run.incx = p->b_trans ? p->ldb : 1, run.stride_x = p->stride_b;
    run.incy = 1;
  } else { /* m = 1: c^T = op(B)^T op(A)^T */
    run.m = p->n;
    run.matrix = p->b, run.ld = p->ldb, run.trans = !p->b_trans, run.stride_matrix = p->stride_b;
    run.x = p->a, run.incx = p->a_trans ? 1 : p->lda, run.stride_x = p->stride_a;
    run.incy = p->ldc;
    run.scale.conj_a = p->scale.conj_b, run.scale.conj_b = p->scale.conj_a;
  }
  const ws_team_job job = {plan->policy, plan->n_threads, 1, &run, NULL, count, item};
  ws_team_run(&job);
}
