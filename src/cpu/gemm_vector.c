/* gemm_vector.c - m = 1 or n = 1: matrix-vector products. Items are runs of rows of the matrix;
 * each owns its part of the result. */
#include "core/tile.h"
#include "cpu/paths.h"
#include "cpu/team.h"

typedef struct vector_run {
  const ws_plan *plan;
  ws_scale scale; /* conj_a: the matrix's, conj_b: x's */
  int bytes;
  /* y = matrix x for each product of the batch; the matrix is m x k */
  int64_t n_batch, m, k;
  ws_matrix matrix, x;
  ws_result y;
  int64_t incx, incy;
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
  const char *x = (const char *)run->x.data + batch * run->x.stride * run->bytes;
  char *y = (char *)run->y.data + batch * run->y.stride * run->bytes;
  const int64_t rows = ws_vec_rows(ws_types[run->matrix.type].n_real, run->bytes);
  for (int64_t i = first; i < last; i += rows)
    run->plan->row->ukr->gemv(ws_min(rows, last - i), run->k, ws_operand_at(&run->matrix, batch, i, 0, run->bytes),
                              run->matrix.ld, run->matrix.trans, x, run->incx, y + i * run->incy * run->bytes, run->incy,
                              &run->scale);
}

void ws_vector_run(const ws_problem *p, const ws_plan *plan) {
  vector_run run = {.plan = plan,
                    .scale = ws_scale_first(p),
                    .bytes = ws_types[p->a.type].bytes,
                    .n_batch = p->batch_count,
                    .k = p->k,
                    .y = p->c};
  if (!plan->transposed) { /* n = 1: c = op(A) b */
    run.m = p->m, run.matrix = p->a, run.x = p->b;
    run.incx = p->b.trans ? p->b.ld : 1, run.incy = 1;
  } else { /* m = 1: c^T = op(B)^T op(A)^T */
    run.m = p->n, run.matrix = p->b, run.matrix.trans = !p->b.trans, run.x = p->a;
    run.scale.conj_a = p->b.conj, run.scale.conj_b = p->a.conj;
    run.incx = p->a.trans ? 1 : p->a.ld, run.incy = p->c.ld;
  }
  if (run.m == 1 && run.matrix.ld == 1) run.matrix.trans = true; /* one row without gaps is a column as well: read in vectors */
  const ws_team_job job = {plan->policy, plan->n_threads, 1, &run, NULL, count, item};
  ws_team_run(&job);
}
