/* gemm.c - see gemm.h. */
#include "ops/gemm.h"

#include "core/cancel.h"
#include "ops/place.h"

/* A device's call is not cancelled in the middle; one on the host has no point at which it could
 * be. Out of line: what it keeps on the stack costs a small product on the host 3 ns. */
__attribute__((noinline)) static wsgemm_status gemm_beside_devices(const ws_call *call, const ws_problem *p) {
  wsgemm_status status = WSGEMM_SUCCESS;
  int device;
  const ws_backend *backend;
  {
    WS_UNCANCELLED;
    backend = ws_backend_for(call, p, &device, &status);
    if (backend && backend != ws_backends[WS_CPU]) return backend->gemm(call, p, device);
  }
  return backend ? backend->gemm(call, p, device) : status;
}

wsgemm_status ws_gemm(const ws_call *call, const ws_problem *p) {
  return ws_devices ? gemm_beside_devices(call, p) : ws_backends[WS_CPU]->gemm(call, p, 0);
}

wsgemm_status ws_gemm_workspace_bytes(const ws_call *call, const ws_problem *p, size_t *bytes) {
  WS_UNCANCELLED;
  *bytes = 0;
  if (!ws_devices || ws_is_empty(p) || ws_product_is_zero(p)) return WSGEMM_SUCCESS;
  int device;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_backend *backend = ws_backend_of(call, p, &device, &status);
  return backend == ws_devices ? backend->workspace_bytes(call, p, device, bytes) : status;
}

/* "epilogue: bias per row, gelu_tanh, scale 2, residual, column sums": its steps in their order, in
 * the caller's words. */
static void explain_epilogue(const ws_problem *p, ws_text *t) {
  static const char *const activations[] = {"", "relu", "gelu_tanh", "gelu_erf", "silu"};
  const ws_epilogue *e = &p->epilogue;
  const char *between = " ";
  ws_text_add(t, "epilogue:");
  if (e->bias) {
    ws_text_add(t, "%sbias per %s in %s", between, e->bias_per_row != e->transposed ? "row" : "column",
                ws_types[e->type_bias].name);
    between = ", ";
  }
  if (e->activation) ws_text_add(t, "%s%s", between, activations[e->activation]), between = ", ";
  if (e->out_scale != 1) ws_text_add(t, "%sscale %g", between, e->out_scale), between = ", ";
  if (e->residual) ws_text_add(t, "%sresidual%s", between, ws_residual_is_c(p) ? " in c" : ""), between = ", ";
  if (e->column_sums) ws_text_add(t, "%scolumn sums", between);
  ws_text_add(t, "\n");
}

void ws_gemm_explain(const ws_call *call, const ws_problem *p, ws_text *t) {
  WS_UNCANCELLED;
  int device;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_backend *backend = ws_backend_for(call, p, &device, &status);
  if (!backend) {
    ws_text_add(t, "error: %s\n", wsgemm_last_error());
    return;
  }
  ws_text_add(t, "backend: %s\n", backend->name);
  if (p->has_epilogue) explain_epilogue(p, t);
  if (ws_is_empty(p)) {
    ws_text_add(t, "path: nothing to do\n");
    return;
  }
  if (ws_product_is_zero(p)) {
    ws_text_add(t, "path: scale C by beta\n");
    return;
  }
  if (call->settings.invariant)
    ws_text_add(t, "invariant: an element's bits do not depend on m, n, the batch, lds, ops or layout\n");
  backend->explain(call, p, device, t);
}
