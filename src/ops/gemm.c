/* dispatch.c - the only way from a checked problem to a kernel, and the words for the way it takes. */
#include "core/cancel.h"
#include "core/internal.h"
#include "core/tile.h"
#include "cuda/host/backend.h"

static wsgemm_status run_on_cpu(wsgemm_handle *h, const ws_problem *p) {
  if (p->has_epilogue) return ws_cpu_gemm_epilogue(h, p);
  const ws_cpu_row *row = ws_row_for(h, p->type);
  if (ws_product_is_zero(p)) {
    if (!p->scale.beta_one) ws_cpu_scale(p, row);
    return WSGEMM_SUCCESS;
  }
  if (ws_is_one_panel(p, row)) {
    ws_cpu_one_panel(p, row);
    return WSGEMM_SUCCESS;
  }
  ws_plan plan;
  ws_plan_make(h, p, &plan);
  ws_cpu_gemm(p, &plan);
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_dispatch(wsgemm_handle *h, const ws_problem *p) {
  if (ws_cuda_may_have_devices) {
    WS_UNCANCELLED;
    int device;
    wsgemm_status status = WSGEMM_SUCCESS;
    const ws_place place = ws_cuda_place(h, p, &device, &status);
    if (place == WS_PLACE_DEVICE) return ws_cuda_gemm(h, p, device);
    if (place == WS_PLACE_BAD) return status;
  }
  return run_on_cpu(h, p);
}

wsgemm_status ws_workspace_bytes(wsgemm_handle *h, const ws_problem *p, size_t *bytes) {
  WS_UNCANCELLED;
  *bytes = 0;
  if (!ws_cuda_may_have_devices || p->m == 0 || p->n == 0 || p->batch_count == 0 || ws_product_is_zero(p)) return WSGEMM_SUCCESS;
  int device;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_place place = ws_cuda_place(h, p, &device, &status);
  return place == WS_PLACE_DEVICE ? ws_cuda_workspace_bytes(h, p, device, bytes) : status;
}

/* "epilogue: bias per row, gelu_tanh, scale 2, residual, column sums": its steps in their order, in the caller's words. */
static void explain_epilogue(const ws_problem *p, ws_text *t) {
  static const char *const activations[] = {"", "relu", "gelu_tanh", "gelu_erf", "silu"};
  const ws_epilogue *e = &p->epilogue;
  const char *between = " ";
  ws_text_add(t, "epilogue:");
  if (e->bias) {
    ws_text_add(t, "%sbias per %s in %s", between, e->bias_per_row != e->swapped ? "row" : "column", ws_types[e->type_bias].name);
    between = ", ";
  }
  if (e->activation) ws_text_add(t, "%s%s", between, activations[e->activation]), between = ", ";
  if (e->out_scale != 1) ws_text_add(t, "%sscale %g", between, e->out_scale), between = ", ";
  if (e->residual) ws_text_add(t, "%sresidual%s", between, ws_residual_is_c(p) ? " in c" : ""), between = ", ";
  if (e->column_sums) ws_text_add(t, "%scolumn sums", between);
  ws_text_add(t, "\n");
}

void ws_explain_problem(wsgemm_handle *h, const ws_problem *p, ws_text *t) {
  WS_UNCANCELLED;
  ws_text_add(t, "problem: %cgemm %c%c m=%lld n=%lld k=%lld batch=%lld\n", ws_types[p->type].letter, p->a_trans ? 't' : 'n',
              p->b_trans ? 't' : 'n', (long long)p->m, (long long)p->n, (long long)p->k, (long long)p->batch_count);
  int device = 0;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_place place = ws_cuda_may_have_devices ? ws_cuda_place(h, p, &device, &status) : WS_PLACE_HOST;
  if (place == WS_PLACE_BAD) {
    ws_text_add(t, "error: %s\n", wsgemm_last_error());
    return;
  }
  ws_text_add(t, "backend: %s\n", place == WS_PLACE_DEVICE ? "cuda" : "cpu");
  if (p->has_epilogue) explain_epilogue(p, t);
  if (p->m == 0 || p->n == 0 || p->batch_count == 0) {
    ws_text_add(t, "path: nothing to do\n");
    return;
  }
  if (ws_product_is_zero(p)) {
    ws_text_add(t, "path: scale C by beta\n");
    return;
  }
  if (atomic_load_explicit(&h->invariant, memory_order_relaxed))
    ws_text_add(t, "invariant: an element's bits do not depend on m, n, the batch, lds, ops or layout\n");
  if (place == WS_PLACE_DEVICE) {
    ws_cuda_explain(h, p, device, t);
    return;
  }
  ws_plan plan;
  ws_plan_make(h, p, &plan);
  ws_text_add(t, "kernel: %s\nregister_tile: %dx%d\npath: %s%s\n", plan.row->name, plan.row->mr, plan.row->nr,
              ws_path_name(plan.path), plan.path == WS_PATH_DIRECT && plan.pack_a ? " (panels of A packed)" : "");
  ws_text_add(t, "k_block: %lld\ntile: %lldx%lld\n", (long long)plan.kc, (long long)plan.bm, (long long)plan.bn);
  if (plan.path == WS_PATH_PACKED) ws_text_add(t, "column_block: %lld\n", (long long)plan.nc);
  ws_text_add(t, "coarse_factor: %d\npolicy: %s\nthreads: %d\nchosen_by: %s\n", plan.coarse, ws_policy_name(plan.policy),
              plan.n_threads, ws_tuned_by_name(plan.tuned.by));
  if (ws_is_half(p->type))
    ws_text_add(t, "arithmetic: %s operands as FP32, IEEE FP32 multiply-add, then one rounding to %s\n", ws_types[p->type].name,
                ws_types[p->type_c].name);
  else
    ws_text_add(t, "arithmetic: IEEE multiply-add in the data's own type\n");
}
