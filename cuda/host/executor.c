/* executor.c - see executor.h. */
#include "cuda/host/executor.h"

#include "core/status.h"

wsgemm_status ws_executor_open(ws_executor *x, const ws_call *call, int ordinal, bool *is_pushed) {
  wsgemm_status status;
  *x = (ws_executor){.call = call, .workspace = ws_caller_workspace_get(call->h)};
  x->stream = x->loan.stream = ws_stream_get(call->h);
  x->device = ws_device_enter(call->h, ordinal, x->stream, is_pushed, &status);
  return status;
}

/* A failure of the driver; no ALLOC_FAILED once C may be partly written. */
static wsgemm_status fail(const ws_executor *x, const char *what, CUresult result) {
  if (result == CUDA_SUCCESS) return WSGEMM_SUCCESS;
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !x->has_written) return ws_fail_cuda(x->call->h, what, result);
  return ws_fail(x->call->h, WSGEMM_DEVICE_ERROR, "%s: CUDA_ERROR_OUT_OF_MEMORY, and c may be partly written", what);
}

wsgemm_status ws_executor_close(ws_executor *x, bool is_pushed, wsgemm_status status) {
  const CUresult result = ws_lending_end(x->device, &x->loan);
  if (!status) status = fail(x, "memory of the graph", result);
  ws_device_leave(is_pushed);
  return status;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* NULL: it lies on another device. Held, as another thread's call may use it on the same stream. */
static char *find_workspace(ws_executor *x) {
  const ws_caller_workspace *w = &x->workspace;
  if (w->device != x->device->ordinal) return NULL;
  ws_lending_hold(x->device, &x->loan, w->memory, w->bytes);
  return w->memory;
}

/* What of it is not held. */
static wsgemm_status free_part(const ws_executor *x, char **memory, int64_t *bytes) {
  if (*memory) *memory += x->n_held, *bytes -= x->n_held;
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_executor_copies(ws_executor *x, const ws_copies_need *need, char **memory, int64_t *bytes) {
  if (x->workspace.memory) {
    *memory = find_workspace(x), *bytes = x->workspace.bytes;
    return free_part(x, memory, bytes);
  }
  const char *lacks;
  const CUresult result = ws_lend_copies(x->device, &x->loan, need, memory, bytes, &lacks);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && need->least == 0) {
    *memory = NULL, *bytes = 0;
    return WSGEMM_SUCCESS;
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return ws_fail(x->call->h, WSGEMM_ALLOC_FAILED,
                   "no room on device %d for %s: this product needs %lld bytes, and at the least %lld (wsgemm_set_workspace)",
                   x->device->ordinal, lacks, (long long)need->whole, (long long)need->least);
  return result == CUDA_SUCCESS ? free_part(x, memory, bytes) : ws_fail_cuda(x->call->h, "memory for copies", result);
}

/* The state of this call in device memory; NULL: all are taken, or none can be had. */
static wsgemm_status find_state(ws_executor *x, ws_launch_state **state) {
  const CUresult result = ws_lend_state(x->device, &x->loan, state);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(x->call->h, "stream", result);
}

/* NULL: there are not as many bytes. */
static wsgemm_status find_sums(ws_executor *x, int64_t bytes, char **sums) {
  *sums = NULL;
  if (x->workspace.memory) {
    char *const memory = find_workspace(x);
    const int64_t taken = x->n_taken + x->n_held;
    if (memory && x->workspace.bytes - taken >= bytes) *sums = memory + taken;
    return WSGEMM_SUCCESS;
  }
  if (bytes > WS_SUMS_BYTES) return WSGEMM_SUCCESS;
  const CUresult result = ws_lend_sums(x->device, &x->loan, sums);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(x->call->h, "partial sums", result);
}

/* ---- launches -------------------------------------------------------------------------------- */

static CUresult launch(ws_executor *x, const ws_launch *l) {
  const CUresult result = ws_launch_make(l, x->stream);
  x->has_written |= result == CUDA_SUCCESS && l->writes_output;
  return result;
}

static wsgemm_status make(ws_executor *x, const ws_launch *l) { return fail(x, "launch", launch(x, l)); }

static wsgemm_status make_stealing(ws_executor *x, ws_launch *l) {
  ws_launch_state *state = NULL;
  ws_sched_args *sched = l->is_grouped ? &l->args.grouped.sched : l->is_by_map ? &l->args.wgmma.sched : &l->args.gemm.sched;
  const wsgemm_status status = find_state(x, &state);
  if (status) return status;
  if (state) {
    sched->queue = &state->queue;
    sched->quantum = l->stealing.quantum;
    ws_sched_spread_last(sched, l->stealing.n_resident, x->device->n_sms);
    l->n_blocks = l->stealing.n_blocks;
  }
  return make(x, l);
}

/* *lacks_sums: there is no memory for them, or no room: a context may have a few of the device's
 * SMs. */
static wsgemm_status make_with_sums(ws_executor *x, ws_launch *l, bool *lacks_sums) {
  ws_launch_state *state = NULL;
  char *sums = NULL;
  wsgemm_status status = find_state(x, &state);
  if (!status && state) status = find_sums(x, l->sums_bytes, &sums);
  *lacks_sums = !status && !sums;
  if (status || !sums) return status;
  l->args.gemm.split.sums = sums, l->args.gemm.split.barrier = &state->barrier;
  const CUresult result = launch(x, l);
  *lacks_sums = result == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return *lacks_sums ? WSGEMM_SUCCESS : fail(x, "launch", result);
}

/* The state that launches of the list steal by; they find it again. */
static wsgemm_status provide_state(ws_executor *x, const ws_launch_list *list) {
  ws_launch_state *state;
  for (int i = 0; i < list->n; i++)
    if (list->entry[i].stealing.is_wanted) return find_state(x, &state);
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_execute(ws_executor *x, ws_launch_list *list) {
  wsgemm_status status = provide_state(x, list);
  list->lacks_sums = false;
  for (int i = 0; i < list->n && !status && !list->lacks_sums; i++) {
    ws_launch *l = &list->entry[i];
    if (l->sums_bytes > 0)
      status = make_with_sums(x, l, &list->lacks_sums);
    else
      status = l->stealing.is_wanted ? make_stealing(x, l) : make(x, l);
  }
  return status;
}
