/* structured_run.c - the way in of products with structured operands or a region of C: plans them
 * and takes the plan's path; scales C where there is no product. */
#include "cpu/run.h"
#include "cpu/structured.h"

/* C = beta C within the region. */
static void scale_region(const ws_problem *p, const ws_cpu_row *row) {
  const int bytes = ws_types[p->c.type].bytes;
  for (int64_t batch = 0; batch < p->batch_count; batch++)
    for (int64_t j = 0; j < p->n; j++) {
      const ws_k_range rows = ws_rows_in_region(p->c.region, 0, p->m, j);
      ws_problem column = *p;
      column.batch_count = column.n = 1, column.m = rows.end - rows.begin;
      column.c.data = ws_c_at(p, batch, rows.begin, j, bytes);
      if (!p->scale.beta_one) ws_cpu_scale(&column, row);
      if (p->c.real_diagonal) ws_clear_im(p->c.type, ws_c_at(p, batch, j, j, bytes));
    }
}

wsgemm_status ws_cpu_structured(const ws_call *call, const ws_problem *p) {
  const ws_cpu_row *row = ws_row_for(call, p->a.type);
  if (ws_product_is_zero(p)) {
    scale_region(p, row);
    return WSGEMM_SUCCESS;
  }
  ws_plan plan;
  ws_plan_structured(call, p, &plan);
  if (plan.path == WS_PATH_PACKED && ws_packed_run(p, &plan)) return WSGEMM_SUCCESS;
  if (plan.path == WS_PATH_PACKED) plan.n_threads = 1; /* out of memory: the same sums, slower */
  ws_direct_structured(p, &plan);
  return WSGEMM_SUCCESS;
}
