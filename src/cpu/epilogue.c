/* epilogue.c - bias, activation, scale, residual and column sums of a product (see
 * wsgemm_epilogue).
 *
 * Half precision: gemm_half.c applies them to its sums, before the only rounding. Floats and
 * doubles lose nothing by being stored in between, so there the product is made first, by whatever
 * path, and a walk over C in a team job does the rest; as it does where there is no product at all.
 * Column sums are made last, from what was stored.
 *
 * Invariant: each element of C is computed by itself, and each column summed in an order that
 * follows from its length. */
#include "cpu/epilogue.h"

#include <math.h>
#include <string.h>

#include "core/tile.h"
#include "cpu/paths.h"
#include "cpu/team.h"

/* Elements of C that are converted at a time; partial sums of a column; columns that are summed at
 * a time. */
enum { BLOCK = 512, SUM_LANES = 16, SUM_COLUMNS = 64 };

/* ---- activations ----------------------------------------------------------------------------- */

/* z / (1 + exp(-t)), t of z's sign: in the form whose exponential cannot overflow, and without one
 * where it would change nothing. */
static double logistic(double z, double t) {
  if (isgreater(t, 40)) return z;
  if (isless(t, -800)) return -0.0; /* the limit; exp(t) is far below the least double */
  const double e = exp(-fabs(t));
  return isless(t, 0) ? z * e / (1 + e) : z / (1 + e);
}

static double silu(double z) { return logistic(z, z); }

/* (1 + tanh(u)) / 2 = 1 / (1 + exp(-2 u)). Beyond 50 on either side nothing is left to compute, and
 * z^3 may overflow. */
static double gelu_tanh(double z) {
  const double sqrt_8_over_pi = 1.5957691216057308;
  if (isgreater(fabs(z), 50)) return z > 0 ? z : -0.0;
  return logistic(z, sqrt_8_over_pi * (z + 0.044715 * (z * z * z)));
}

static double gelu_erf(double z) {
  const double sqrt_half = 0.70710678118654752;
  if (isgreater(fabs(z), 50)) return z > 0 ? z : -0.0;
  return 0.5 * z * erfc(-z * sqrt_half);
}

/* ---- a block of C ---------------------------------------------------------------------------- */

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(x) JOIN(x, R)
#define R float
#define BETA s
#include "cpu/epilogue_steps.h"
#undef R
#undef BETA
#define R double
#define BETA d
#include "cpu/epilogue_steps.h"
#undef R
#undef BETA

static const char *at(const void *base, int64_t elements, int bytes) { return (const char *)base + elements * bytes; }

/* Out of line: what is converted takes room on the stack that others do not need. */
static __attribute__((noinline)) void apply_floats(const ws_problem *p, const ws_cpu_row *row, int64_t m, int64_t n,
                                                   int64_t n_bias, const void *bias, const void *residual, void *x, int64_t ldx) {
  const ws_epilogue *e = &p->epilogue;
  float bias_floats[BLOCK], residual_floats[BLOCK];
  int64_t ld_residual = e->ld_residual;
  if (bias && ws_is_half(e->type_bias)) {
    row->convert->widen[e->type_bias](n_bias, 1, bias, n_bias, bias_floats, n_bias);
    bias = bias_floats;
  }
  if (residual && ws_is_half(p->c.type)) {
    row->convert->widen[p->c.type](m, n, residual, ld_residual, residual_floats, m);
    residual = residual_floats, ld_residual = m;
  }
  apply_float(e, m, n, x, ldx, bias, residual, ld_residual);
}

void ws_epilogue_apply(const ws_problem *p, const ws_cpu_row *row, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n,
                       void *x, int64_t ldx) {
  const ws_epilogue *e = &p->epilogue;
  const int64_t n_bias = e->bias_per_row ? m : n, bias_at = batch * e->stride_bias + (e->bias_per_row ? i : j);
  const int64_t residual_at = batch * e->stride_residual + i + j * e->ld_residual;
  const void *bias = e->bias ? at(e->bias, bias_at, ws_types[e->type_bias].bytes) : NULL;
  const void *residual = e->residual ? at(e->residual, residual_at, ws_types[p->c.type].bytes) : NULL;
  if (p->c.type == WSGEMM_F64) {
    apply_double(e, m, n, x, ldx, bias, residual, e->ld_residual);
    return;
  }
  apply_floats(p, row, m, n, n_bias, bias, residual, x, ldx);
}

/* ---- all of C -------------------------------------------------------------------------------- */

typedef struct walk {
  const ws_problem *p;
  const ws_plan *plan;
  /* of the two steps: elements, then sums; the columns are the caller's */
  ws_tile_grid blocks, columns;
  /* elements are walked over; they hold a product, which alpha and beta are in */
  bool walks, has_product;
} walk;

enum { ELEMENTS, SUMS, N_STEPS };

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const walk *w = context;
  n_items[1] = 0;
  if (step == ELEMENTS)
    n_items[0] = w->walks ? ws_tile_items(&w->blocks) : 0;
  else
    n_items[0] = w->p->epilogue.column_sums ? ws_tile_items(&w->columns) : 0;
}

static void walk_tile(const walk *w, const ws_tile *t) {
  const ws_problem *p = w->p;
  const int64_t bm = w->plan->bm, bn = w->plan->bn;
  const int64_t i0 = t->row * bm, i1 = ws_min(p->m, i0 + bm), j0 = t->col * bn, j1 = ws_min(p->n, j0 + bn);
  const int64_t n_rows = ws_min(i1 - i0, BLOCK), n_cols = BLOCK / n_rows;
  for (int64_t j = j0; j < j1; j += n_cols)
    for (int64_t i = i0; i < i1; i += n_rows) {
      const int64_t m = ws_min(n_rows, i1 - i), n = ws_min(n_cols, j1 - j);
      if (p->c.type == WSGEMM_F64)
        walk_block_double(p, w->plan->row, w->has_product, t->batch, i, j, m, n);
      else
        walk_block_float(p, w->plan->row, w->has_product, t->batch, i, j, m, n);
    }
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const walk *w = context;
  const ws_problem *p = w->p;
  (void)worker, (void)kind;
  const ws_tile t = ws_tile_at(step == ELEMENTS ? &w->blocks : &w->columns, item_idx);
  if (step == ELEMENTS) {
    walk_tile(w, &t);
    return;
  }
  const int64_t first = t.col * SUM_COLUMNS, n = ws_min(SUM_COLUMNS, (p->epilogue.transposed ? p->m : p->n) - first);
  if (p->c.type == WSGEMM_F64)
    sum_columns_double(p, w->plan->row, t.batch, first, n);
  else
    sum_columns_float(p, w->plan->row, t.batch, first, n);
}

void ws_epilogue_walk(const ws_call *call, const ws_problem *p, bool walks, bool has_product) {
  if (!walks && !p->epilogue.column_sums) return;
  ws_plan plan;
  ws_plan_walk(call, p, &plan);
  walk w = {.p = p, .plan = &plan, .walks = walks, .has_product = has_product};
  w.blocks = (ws_tile_grid){p->batch_count, ws_ceil_div(p->m, plan.bm), ws_ceil_div(p->n, plan.bn), 1, 1};
  w.columns = (ws_tile_grid){p->batch_count, 1, ws_ceil_div(p->epilogue.transposed ? p->m : p->n, SUM_COLUMNS), 1, 1};
  const ws_team_job job = {plan.policy, plan.n_threads, N_STEPS, &w, NULL, count, item};
  ws_team_run(&job);
}
