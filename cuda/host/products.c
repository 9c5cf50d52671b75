/* products.c - see products.h. */
#include "cuda/host/products.h"

#include "core/status.h"
#include "cuda/host/lower.h"

/* The chunks of a product share memory for their operands, used by one chunk after the other, as
 * the stream keeps their order. */
typedef struct chunks_call {
  ws_executor *executor;
  const ws_gemm_plan *plan;
  char *a_at, *b_at;
} chunks_call;

static wsgemm_status run_chunk(void *context, const ws_problem *chunk, const ws_chunk_place *place) {
  const chunks_call *call = context;
  ws_executor *x = call->executor;
  ws_launch_list list;
  const wsgemm_status status = ws_lower_chunk(x->call->h, call->plan, chunk, place, call->a_at, call->b_at, x->device, &list);
  return status ? status : ws_execute(x, &list);
}

/* memory: for the operands' other form, if they need one. */
static wsgemm_status run_in_chunks(ws_executor *x, const ws_gemm_plan *plan, char *memory, int64_t bytes) {
  const ws_problem *p = plan->product;
  ws_chunk_bytes *const bytes_of = ws_bytes_of_form(plan->n_slices);
  ws_chunks chunks = plan->chunks;
  chunks_call call = {x, plan, memory, memory};
  if (memory) {
    double of_a, of_b;
    if (bytes + plan->residual_bytes < plan->need.whole) ws_chunks_for(p, bytes_of, (double)bytes, &chunks);
    ws_chunks_bytes(p, bytes_of, &chunks, &of_a, &of_b);
    call.b_at = memory + (int64_t)of_a;
  }
  return ws_for_each_chunk(p, &chunks, run_chunk, &call);
}

/* Where there is no memory for copies the row reads the operands themselves, with the same bits. */
static wsgemm_status run_copies(ws_executor *x, ws_gemm_plan *plan, char *memory, int64_t bytes) {
  ws_launch_list list = {.n = 0};
  ws_float_copy_args args;
  if (!memory || (double)bytes < plan->copies.bytes) {
    plan->row.problem = plan->product;
    return WSGEMM_SUCCESS;
  }
  ws_float_copies_make(plan->product, &plan->copies, memory, &plan->copied, &args);
  const wsgemm_status status = ws_add_float_copy(x->call->h, &args, x->device, &list);
  return status ? status : ws_execute(x, &list);
}

static wsgemm_status run_product(ws_executor *x, ws_gemm_plan *plan, char *memory, int64_t bytes) {
  if (ws_is_by_map(plan->row.kind)) return run_in_chunks(x, plan, memory, bytes);
  ws_launch_list list;
  wsgemm_status status = plan->copies.bytes > 0 ? run_copies(x, plan, memory, bytes) : WSGEMM_SUCCESS;
  if (status) return status;
  status = ws_lower_product(x->call->h, plan, x->device, &list);
  if (!status) status = ws_execute(x, &list);
  if (status || !list.lacks_sums) return status;
  status = ws_lower_without_sums(x->call->h, plan, x->device, &list);
  return status ? status : ws_execute(x, &list);
}

wsgemm_status ws_run_gemm(ws_executor *x, const ws_problem *p) {
  ws_gemm_plan plan;
  ws_launch_list list;
  char *memory = NULL;
  int64_t bytes = 0;
  wsgemm_status status = ws_gemm_plan_make(x->call, p, x->device, &x->workspace, false, &plan);
  if (!status && plan.need.whole > 0) status = ws_executor_copies(x, &plan.need, &memory, &bytes);
  if (!status) status = ws_lower_first(x->call->h, &plan, memory, x->device, &list);
  if (!status) status = ws_execute(x, &list);
  x->n_taken = plan.residual_bytes;
  if (!status && plan.multiplies)
    status = run_product(x, &plan, memory ? memory + plan.residual_bytes : NULL, bytes - plan.residual_bytes);
  if (!status) status = ws_lower_last(x->call->h, &plan, x->device, &list);
  return status ? status : ws_execute(x, &list);
}

/* Rows for flat and small products number their items by the whole's shape, and split sums are of
 * all of C. */
bool ws_has_parts(const ws_gemm_plan *plan) {
  const ws_row_kind kind = ws_cuda_row_at(plan->row.row_idx)->kind;
  return plan->row.split.n_splits == 1 && kind != WS_ROW_VECTOR && kind != WS_ROW_DIRECT && kind != WS_ROW_SMALL &&
         !plan->has_steps;
}

wsgemm_status ws_run_part(ws_executor *x, const ws_gemm_plan *whole, const ws_problem *part, char *memory, int64_t bytes) {
  ws_gemm_plan plan = *whole;
  plan.problem = plan.product = part;
  plan.need.whole = 0;
  plan.chunks = (ws_chunks){part->m, part->n, 1};
  if (ws_is_by_map(plan.row.kind)) {
    if (memory && !ws_chunks_for(part, ws_bytes_of_form(plan.n_slices), (double)bytes, &plan.chunks))
      return ws_fail(x->call->h, WSGEMM_ALLOC_FAILED, "no room on device %d for a part of C", x->device->ordinal);
  } else if (part->m != whole->product->m || part->n != whole->product->n) {
    plan.row = ws_gpu_plan_of_chunk(&whole->row, part);
  } else {
    plan.row.problem = part;
  }
  return run_product(x, &plan, memory, bytes);
}
