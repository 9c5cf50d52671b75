/* backend.c - the CPU backend's way in. */
#include "cpu/backend.h"

#include "cpu/paths.h"
#include "cpu/run.h"

/* Out of line: a small product needs no plan, nor room for one. */
__attribute__((noinline)) static wsgemm_status run_planned(const ws_call *call, const ws_problem *p) {
  ws_plan plan;
  ws_plan_make(call, p, &plan);
  ws_cpu_run(p, &plan);
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_cpu_gemm(const ws_call *call, const ws_problem *p, int device) {
  (void)device;
  if (!ws_is_plain(p)) return ws_cpu_structured(call, p);
  if (p->has_epilogue) return ws_cpu_gemm_epilogue(call, p);
  const ws_cpu_row *row = ws_row_for(call, p->a.type);
  if (ws_product_is_zero(p)) {
    if (!p->scale.beta_one) ws_cpu_scale(p, row);
    return WSGEMM_SUCCESS;
  }
  switch (ws_small_of(call, p, row)) {
  case WS_SMALL:
    ws_cpu_small(p, row);
    return WSGEMM_SUCCESS;
  case WS_SMALL_BY_ROWS:
    ws_cpu_small_by_rows(p, row);
    return WSGEMM_SUCCESS;
  case WS_SMALL_DOTS:
    ws_cpu_small_dots(p, row);
    return WSGEMM_SUCCESS;
  case WS_NOT_SMALL:
    break;
  }
  return run_planned(call, p);
}
