/* gemm_plan.c - see gemm_plan.h. */
#include "cuda/host/gemm_plan.h"

#include "core/status.h"
#include "cuda/host/operand_copies.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/slices.h"

ws_chunk_bytes *ws_bytes_of_form(int n_slices) { return n_slices > 0 ? ws_sliced_bytes(n_slices) : ws_align_copies_bytes; }

/* Whether the steps of the epilogue come after the product, in a launch of their own: they are one
 * rounding each anyway, where C is of the type of the sums. */
static bool has_steps_after(const ws_problem *p) { return ws_has_steps(p) && !ws_is_half(p->a.type); }

double ws_bytes_for_residual(const ws_problem *p) {
  ws_problem copied = *p;
  ws_align_copy_operand op;
  return has_steps_after(p) && ws_residual_is_c(p) ? ws_copy_c(&copied, NULL, &op) : 0;
}

double ws_most_copies_bytes(const ws_caller_workspace *w, const ws_device *device) {
  return !w->memory ? WS_COPIES_BYTES : w->device == device->ordinal ? (double)w->bytes : 0;
}

/* What the operands need beside taken bytes, of `most`. false: no chunk of C gets by with that. */
static bool find_need(const ws_problem *p, int n_slices, int64_t taken, double most, ws_chunks *chunks, ws_copies_need *need) {
  ws_chunk_bytes *const bytes_of = ws_bytes_of_form(n_slices);
  double of_a, of_b;
  *chunks = (ws_chunks){p->m, p->n, p->batch_count};
  double whole = bytes_of(p, &of_a, &of_b);
  if (n_slices > 0 && ws_slices_are_shared(p) && of_a <= most - (double)taken) whole = of_a;
  if (whole == 0) return true;
  if (whole > most - (double)taken) {
    if (!ws_chunks_for(p, bytes_of, most - (double)taken, chunks)) return false;
    whole = ws_chunks_bytes(p, bytes_of, chunks, &of_a, &of_b);
  }
  const ws_chunks smallest = ws_smallest_chunks(p);
  need->whole = taken + (int64_t)whole;
  need->least = taken + (int64_t)ws_chunks_bytes(p, bytes_of, &smallest, &of_a, &of_b);
  return true;
}

const ws_problem *ws_gemm_with_copies(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind,
                                      double most, ws_float_copies *copies, ws_problem *copied) {
  *copies = (ws_float_copies){0};
  if (!ws_float_copies_may_pay(call, p, device, kind)) return p;
  const ws_gpu_plan direct = ws_gpu_plan_without_row(call, p, device, kind, 0);
  const ws_float_copies found = ws_float_copies_for(call, &direct, device);
  ws_float_copy_args args;
  if (found.bytes == 0 || found.bytes > most) return p;
  *copies = found;
  ws_float_copies_make(p, copies, NULL, copied, &args);
  return copied;
}

/* Kernels of a product by slices that are no rows, before the first of them writes to C. */
static CUresult find_sliced_kernels(const ws_gemm_plan *plan, ws_device *device) {
  const int is_complex = plan->product->a.type == WSGEMM_C32, slices = WS_KERNEL_SLICES + 3 * is_complex;
  const int structured = WS_KERNEL_STRUCTURED_SLICES + 3 * is_complex;
  const int general[] = {WS_KERNEL_MAXIMA, slices + plan->n_slices - 1, slices + 2, WS_KERNEL_FALLBACK + is_complex,
                         WS_KERNEL_FALLBACK + is_complex},
            of_structure[] = {WS_KERNEL_STRUCTURED_MAXIMA + is_complex, structured + plan->n_slices - 1, structured + 2,
                              WS_KERNEL_FALLBACK + is_complex, WS_KERNEL_EXPAND + is_complex};
  const int *const plain = ws_is_structured(plan->product) ? of_structure : general;
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < sizeof general / sizeof general[0] && !result; i++) ws_device_plain_kernel(device, plain[i], &result);
  return result;
}

/* false: this build has no such rows for the device. No failure: there are others. */
static bool plan_sliced(const ws_call *call, ws_device *device, ws_gemm_plan *plan, wsgemm_status *status) {
  const bool has_two = plan->n_slices == 2;
  *status = WSGEMM_SUCCESS;
  CUresult result = find_sliced_kernels(plan, device);
  if (!result) result = ws_gpu_plan_find(call, plan->product, device, WS_ROW_SLICED, plan->n_slices, &plan->row);
  if (!result && has_two) result = ws_gpu_plan_find(call, plan->product, device, WS_ROW_SLICED, 3, &plan->row_of_three);
  if (result != CUDA_SUCCESS) {
    if (!ws_device_lacks(result)) *status = ws_fail_kernel(call->h, "slices", device, result);
    return !ws_device_lacks(result);
  }
  *status = ws_gpu_plan_tell(call, device, &plan->row, result);
  if (!*status && has_two) *status = ws_gpu_plan_tell(call, device, &plan->row_of_three, result);
  return true;
}

/* Whether a build that has no code of the rows for this device alone can do without them. */
static bool has_other_rows(const ws_call *call, const ws_problem *p) {
  return !ws_is_structured(p) && !ws_has_second(p) && !ws_forced_row(call->forced[WS_CUDA], p->a.type);
}

static wsgemm_status plan_product(const ws_call *call, ws_device *device, double most, bool in_parts, ws_gemm_plan *plan) {
  const ws_problem *p = plan->product;
  const ws_copies_need of_residual = {plan->residual_bytes, plan->residual_bytes, 0};
  const ws_row_kind kind = ws_gpu_kind_for(call, p, device, &plan->n_slices);
  plan->need = of_residual;
  if (ws_is_by_map(kind) && find_need(p, plan->n_slices, plan->residual_bytes, most, &plan->chunks, &plan->need)) {
    if (kind == WS_ROW_WGMMA) return ws_gpu_plan_make(call, p, device, kind, 0, &plan->row);
    wsgemm_status status;
    if (plan_sliced(call, device, plan, &status)) return status;
  }
  plan->n_slices = 0;
  plan->need = of_residual;
  const ws_row_kind plain = ws_gpu_plain_kind(call, p), other = ws_is_by_map(kind) ? plain : kind;
  if (!in_parts)
    p = ws_gemm_with_copies(call, p, device, other, most - (double)plan->residual_bytes, &plan->copies, &plan->copied);
  plan->need.optional = (int64_t)plan->copies.bytes, plan->need.whole += plan->need.optional;
  const CUresult found = ws_gpu_plan_find(call, p, device, other, 0, &plan->row);
  if (other == plain || !ws_device_lacks(found) || !has_other_rows(call, p))
    return ws_gpu_plan_tell(call, device, &plan->row, found);
  return ws_gpu_plan_make(call, p, device, plain, 0, &plan->row);
}

/* The steps are taken of C as it is. */
static void keep_c(ws_problem *p) {
  p->scale.beta_zero = false, p->scale.beta_one = true;
  if (p->a.type == WSGEMM_F64)
    p->scale.beta.d[0] = 1;
  else
    p->scale.beta.s[0] = 1;
}

/* Those that come last, before anything is launched. */
static wsgemm_status find_last_kernels(wsgemm_handle *h, ws_device *device, const ws_gemm_plan *plan) {
  const ws_problem *p = plan->problem;
  CUresult result;
  if (plan->has_steps && !ws_device_plain_kernel(device, WS_KERNEL_SCALE + (int)p->c.type, &result))
    return ws_fail_kernel(h, "scale", device, result);
  if (p->has_epilogue && p->epilogue.column_sums &&
      !ws_device_plain_kernel(device, WS_KERNEL_COLUMN_SUMS + (int)p->c.type, &result))
    return ws_fail_kernel(h, "column sums", device, result);
  if (plan->need.whole > plan->need.optional && plan->n_slices == 0 &&
      !ws_device_plain_kernel(device, WS_KERNEL_ALIGN_COPY, &result))
    return ws_fail_kernel(h, "align_copy", device, result);
  if (plan->copies.bytes > 0 && !ws_device_plain_kernel(device, WS_KERNEL_FLOAT_COPY, &result))
    return ws_fail_kernel(h, "float_copy", device, result);
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_gemm_plan_make(const ws_call *call, const ws_problem *p, ws_device *device, const ws_caller_workspace *workspace,
                                bool in_parts, ws_gemm_plan *plan) {
  wsgemm_status status = WSGEMM_SUCCESS;
  plan->problem = p, plan->n_slices = 0, plan->residual_bytes = 0, plan->need = (ws_copies_need){0};
  plan->copies = (ws_float_copies){0};
  plan->multiplies = !ws_product_is_zero(p);
  plan->has_steps = plan->multiplies ? has_steps_after(p) : !p->scale.beta_one || ws_has_steps(p);
  if (plan->has_steps) plan->steps = *p;
  if (plan->multiplies) {
    const double residual = ws_bytes_for_residual(p), most = ws_most_copies_bytes(workspace, device);
    if (residual > 0 && residual > most)
      return ws_fail(call->h, WSGEMM_ALLOC_FAILED,
                     "no memory for a copy of c, its own residual: %.0f bytes (wsgemm_set_workspace)", residual);
    plan->residual_bytes = (int64_t)residual;
    plan->product = p;
    if (plan->has_steps) {
      plan->without_epilogue = *p;
      plan->without_epilogue.has_epilogue = false;
      plan->product = &plan->without_epilogue;
      keep_c(&plan->steps);
    }
    status = plan_product(call, device, most, in_parts, plan);
  }
  return status ? status : find_last_kernels(call->h, device, plan);
}

bool ws_gemm_most_need(const ws_call *call, const ws_problem *p, const ws_device *device, double most, ws_copies_need *need) {
  const int n_slices = ws_gpu_slices_to_pack(call, p, device);
  ws_chunks chunks;
  *need = (ws_copies_need){0};
  return n_slices > 0 && find_need(p, n_slices, 0, most, &chunks, need) && need->whole > 0;
}

/* ---- workspace ------------------------------------------------------------------------------- */

double ws_gpu_operand_bytes(const ws_call *call, const ws_problem *p, ws_row_kind kind, int n_slices, const ws_device *device) {
  double of_a, of_b;
  if (ws_is_by_map(kind)) return ws_bytes_of_form(n_slices)(p, &of_a, &of_b);
  ws_float_copies copies;
  ws_problem copied;
  ws_gemm_with_copies(call, p, device, kind, WS_COPIES_BYTES, &copies, &copied);
  return copies.bytes > 0 ? copies.bytes : (double)ws_gpu_split_for(call, p, device, kind).bytes;
}

double ws_gpu_workspace_bytes(const ws_call *call, const ws_problem *p, const ws_device *device) {
  int n_slices;
  const ws_row_kind kind = ws_gpu_kind_for(call, p, device, &n_slices);
  return ws_gpu_operand_bytes(call, p, kind, n_slices, device) + ws_bytes_for_residual(p);
}

ws_row_kind ws_gpu_kind_in_workspace(const ws_call *call, const ws_problem *p, const ws_device *device, int *n_slices) {
  const ws_row_kind kind = ws_gpu_kind_for(call, p, device, n_slices);
  if (!ws_is_by_map(kind)) return kind;
  const ws_caller_workspace w = ws_caller_workspace_get(call->h);
  ws_chunks chunks;
  if (ws_chunks_for(p, ws_bytes_of_form(*n_slices), ws_most_copies_bytes(&w, device) - ws_bytes_for_residual(p), &chunks))
    return kind;
  *n_slices = 0;
  return ws_gpu_plain_kind(call, p);
}
