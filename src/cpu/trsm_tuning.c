/* trsm_tuning.c - a triangular system's plan as tuning sees it: its parameters in full, and a model
 * that puts candidates in order. */
#include <math.h>

#include "core/tile.h"
#include "cpu/plan.h"
#include "cpu/trsm_plan.h"

/* Of the paths that have them, right sides of an item, and in memory at a time. */
static ws_tuning tuning_of(const ws_solve *v, const ws_solve_plan *plan) {
  ws_tuning t = {.row = ws_row_find(plan->row->name) + 1, .threads = plan->n_threads};
  if (plan->n_threads > 1) t.policy = (int)plan->policy;
  if (plan->path != WS_SOLVE_BLOCKED) return t;
  t.nc = (int)ws_min(v->n_blocks == 1 ? plan->panels_n : plan->chunk, 1 << 24);
  t.mc = (int)ws_min(plan->item_n, 1 << 24);
  return t;
}

/* Time in ns, as arena.c's of products: T is packed once for each chunk of right sides, whose
 * panels stream through the cache once for each block of unknowns. */
static double model_of(const ws_solve *v, const ws_solve_plan *plan) {
  const ws_machine *machine = ws_machine_get();
  const double memory = 12, l3 = 30, l2 = 80; /* bytes in a ns */
  const double m = (double)v->m, n = (double)v->n, batch = (double)v->batch_count, threads = plan->n_threads;
  const double chunk = (double)ws_min(plan->chunk, v->n), n_chunks = ceil(n / chunk);
  const double items = ceil(chunk / (double)plan->item_n) * (plan->path == WS_SOLVE_BATCH ? batch : 1);
  const double work_ns = m * m * n / 2 * ws_float_products(v->type) / 125;
  const double panel_bytes = (double)ws_min(plan->item_n, v->n) * (double)v->kb * v->bytes;
  const double per_byte = panel_bytes > 0.7 * (double)machine->l2_bytes ? 1 / l3 : 1 / l2;
  const double traffic_ns = m * m / 2 * v->bytes * n_chunks / memory + 2 * m * n * v->bytes / memory +
                            m * n * v->bytes * (double)v->n_blocks * per_byte;
  const double rounds = ceil(items / threads) * threads / items;
  const double hand_over_ns = threads > 1 ? (2000 + 50 * items) * (double)v->n_blocks * n_chunks : 0;
  return batch * (work_ns + traffic_ns) / threads * rounds + hand_over_ns;
}

ws_candidate ws_solve_candidate(const ws_call *call, const ws_system *s, const ws_tuning *wanted) {
  ws_system tried = *s;
  ws_solve v;
  ws_solve_plan plan;
  tried.tuning = wanted;
  ws_solve_plan_make(call, &tried, &v, &plan);
  ws_candidate c = {.tuning = tuning_of(&v, &plan), .model = model_of(&v, &plan)};
  ws_text row = {c.row, sizeof c.row, 0};
  ws_text_add(&row, "%s", plan.row->name);
  return c;
}
