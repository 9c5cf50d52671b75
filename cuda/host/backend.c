/* backend.c - the GPU backend as the rest of the library sees it: places a problem, plans it,
 * executes the plan, and says in words what it would do.
 *
 * A call waits for nothing: its launches go onto the handle's stream. What a device needs once (its
 * record, its kernels) is device.c's business, memory lending.c's; what is launched is decided in
 * gemm_plan.c, written down in lower.c, and done in executor.c. */
#include "cuda/host/backend.h"

#include <math.h>
#include <string.h>

#include "core/status.h"
#include "cuda/host/executor.h"
#include "cuda/host/grouped.h"
#include "cuda/host/level3.h"
#include "cuda/host/locate.h"
#include "cuda/host/lower.h"
#include "cuda/host/products.h"
#include "cuda/host/small.h"

bool ws_cuda_start(void) {
  ws_driver_load();
  ws_device_init();
  return ws_cuda.is_loaded;
}

/* ---- products -------------------------------------------------------------------------------- */

/* Without what is packed on another device: managed memory may be used on any. */
static ws_problem on_this_device(const ws_problem *p, int device) {
  ws_problem here = *p;
  if (here.has_packed) {
    ws_packed_pair *packed = &here.packed;
    if (packed->a && packed->a->device != device) packed->a = NULL;
    if (packed->b && packed->b->device != device) packed->b = NULL;
  }
  return here;
}

/* Whether one launch does both products of C: of double precision, with the same alpha. */
static bool takes_second(const ws_call *call, const ws_problem *p, const ws_device *device) {
  const ws_scale *a = &p->scale, *b = &p->second->scale;
  const bool has_same_alpha = ws_types[p->a.type].bytes < 8 || (a->alpha.d[0] == b->alpha.d[0] && a->alpha.d[1] == b->alpha.d[1]);
  int n_slices;
  return has_same_alpha && ws_reads_structure(ws_gpu_kind_for(call, p, device, &n_slices), p->a.type);
}

static wsgemm_status run_both(ws_executor *x, const ws_problem *p) {
  if (takes_second(x->call, p, x->device)) return ws_run_gemm(x, p);
  ws_problem first = *p;
  first.second = NULL;
  const wsgemm_status status = ws_run_gemm(x, &first);
  return status ? status : ws_run_gemm(x, p->second);
}

wsgemm_status ws_run_problem(ws_executor *x, const ws_problem *p) {
  if (ws_has_second(p)) return run_both(x, p);
  return ws_is_structured(p) ? ws_run_structured(x, p) : ws_run_gemm(x, p);
}

static wsgemm_status run_gemm(ws_executor *x, const void *what) { return ws_run_problem(x, what); }

/* Launches onto the handle's stream, with its context current. */
typedef wsgemm_status run_work(ws_executor *x, const void *what);

static wsgemm_status on_device(const ws_call *call, int ordinal, run_work *work, const void *what) {
  ws_executor x;
  bool is_pushed;
  const wsgemm_status status = ws_executor_open(&x, call, ordinal, &is_pushed);
  return status ? status : ws_executor_close(&x, is_pushed, work(&x, what));
}

static wsgemm_status run_system(ws_executor *x, const void *what) { return ws_run_system(x, what); }

wsgemm_status ws_cuda_solve(const ws_call *call, const ws_system *s, int device) {
  return on_device(call, device, run_system, s);
}

wsgemm_status ws_cuda_gemm(const ws_call *call, const ws_problem *p, int device) {
  if (!p->has_packed) return on_device(call, device, run_gemm, p);
  const ws_problem here = on_this_device(p, device);
  return on_device(call, device, run_gemm, &here);
}

static wsgemm_status run_grouped(ws_executor *x, const void *what) { return ws_run_grouped(x, what); }

wsgemm_status ws_cuda_grouped(const ws_call *call, const ws_groups *groups, int device) {
  return on_device(call, device, run_grouped, groups);
}

static wsgemm_status run_product(ws_executor *x, const void *what) { return ws_run_gemm(x, what); }

wsgemm_status ws_cuda_product(const ws_call *call, const ws_problem *p, int device) {
  return on_device(call, device, run_product, p);
}

/* ---- packed operands ------------------------------------------------------------------------- */

static wsgemm_status run_packing(ws_executor *x, const void *what) {
  ws_launch_list list;
  const wsgemm_status status = ws_lower_packing(x->call->h, what, x->device, &list);
  return status ? status : ws_execute(x, &list);
}

static size_t size_of(double bytes) { return bytes < 0x1p63 ? (size_t)bytes : SIZE_MAX; }

wsgemm_status ws_cuda_packed_bytes(const ws_call *call, const ws_problem *p, bool is_a, int device_ordinal, int *n_slices,
                                   size_t *bytes) {
  wsgemm_status status;
  const ws_device *device = ws_device_get(call->h, device_ordinal, &status);
  if (!device) return status;
  *n_slices = ws_gpu_slices_to_pack(call, p, device);
  *bytes = *n_slices > 0 ? size_of(ws_packed_bytes(p, is_a, *n_slices)) : 0;
  return status;
}

wsgemm_status ws_cuda_prepack(const ws_call *call, const wsgemm_packed *packed) {
  return on_device(call, packed->device, run_packing, packed);
}

bool ws_cuda_is_on(const void *memory, int device) {
  const ws_location l = ws_locate(memory);
  return !l.unknown && l.is_device && l.device == device;
}

/* ---- workspace ------------------------------------------------------------------------------- */

wsgemm_status ws_cuda_workspace_bytes(const ws_call *call, const ws_problem *p, int device_ordinal, size_t *bytes) {
  wsgemm_status status;
  const ws_device *device = ws_device_get(call->h, device_ordinal, &status);
  if (!device) return status;
  const ws_problem here = on_this_device(p, device_ordinal);
  *bytes = size_of(ws_is_structured(p) ? ws_cut_structured(call, p, device, HUGE_VAL).bytes
                                       : ws_gpu_workspace_bytes(call, &here, device));
  return status;
}

wsgemm_status ws_cuda_solve_workspace_bytes(const ws_call *call, const ws_system *s, int device_ordinal, size_t *bytes) {
  wsgemm_status status;
  const ws_device *device = ws_device_get(call->h, device_ordinal, &status);
  if (device) *bytes = size_of(ws_cut_system(call, s, device).bytes);
  return status;
}

wsgemm_status ws_cuda_fallback_count(wsgemm_handle *h, int device, int64_t *count) {
  uint64_t n_fallback;
  if (ws_driver_is_lost()) return ws_fail(h, WSGEMM_NO_DEVICE, "the GPU is lost by fork(); only the parent can use it");
  const wsgemm_status status = ws_device_fallback_count(h, device, &n_fallback);
  if (status) return status;
  *count = (int64_t)n_fallback;
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_cuda_set_workspace(wsgemm_handle *h, void *memory, size_t bytes) {
  enum { ALIGN = 256 };
  int device = -1;
  if (memory) {
    const ws_location l = ws_locate(memory);
    if (l.unknown) return ws_fail_unknown(h, l.unknown);
    if (!l.is_device) return ws_fail(h, WSGEMM_INVALID_POINTER, "workspace is not device memory");
    if ((uintptr_t)memory % ALIGN != 0)
      return ws_fail(h, WSGEMM_INVALID_VALUE, "workspace is aligned to less than %d bytes", ALIGN);
    device = l.device;
  }
  ws_caller_workspace_set(h, &(ws_caller_workspace){memory, (int64_t)(bytes < INT64_MAX ? bytes : INT64_MAX), device});
  return WSGEMM_SUCCESS;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void explain_product(const ws_call *call, const ws_problem *given, int device_ordinal, ws_text *t) {
  const ws_problem here = on_this_device(given, device_ordinal), *p = &here;
  wsgemm_status status;
  bool is_pushed;
  ws_device *device = ws_device_enter(call->h, device_ordinal, ws_stream_get(call->h), &is_pushed, &status);
  ws_gpu_plan plan;
  ws_float_copies copies = {0};
  ws_problem copied;
  int n_slices = 0;
  if (device) {
    const ws_row_kind kind = ws_gpu_kind_in_workspace(call, p, device, &n_slices);
    const ws_caller_workspace workspace = ws_caller_workspace_get(call->h);
    const double most = ws_most_copies_bytes(&workspace, device) - ws_bytes_for_residual(p);
    status =
        ws_gpu_plan_make(call, ws_gemm_with_copies(call, p, device, kind, most, &copies, &copied), device, kind, n_slices, &plan);
    ws_device_leave(is_pushed);
  }
  if (status) {
    ws_text_add(t, "error: %s\n", wsgemm_last_error());
    return;
  }
  static const char *const scheds[WS_N_SCHEDS] = {"static", "queue", "clc", "foreach"};
  const bool is_split = plan.split.n_splits > 1;
  const ws_cuda_row *row = ws_cuda_row_at(plan.row_idx);
  ws_small_args small;
  const int n_blocks = row->kind == WS_ROW_SMALL ? ws_small_args_of(p, row, &small).blocks : plan.kernel->blocks_per_sm;
  ws_text_add(t, "device: %d %s\nkernel: %s\ntile: %dx%d\ncoarse_factor: %d\nscheduler: %s\nitems: %lld\nblocks_per_sm: %d\n",
              device->ordinal, device->name, row->name, row->bm, row->bn, row->coarse, is_split ? "split" : scheds[plan.sched],
              (long long)plan.n_items, n_blocks);
  if (row->kind == WS_ROW_SMALL) ws_text_add(t, "matrices_per_item: %d\n", small.n_together);
  ws_text_add(t, "order: %lld\nquantum: %u\nchosen_by: %s\n", (long long)plan.grid.swizzle, plan.quantum,
              ws_tuned_by_name(plan.tuned.by));
  if (is_split)
    ws_text_add(t, "n_splits: %lld of %lld\nworkspace_bytes: %lld\n", (long long)plan.split.n_splits,
                (long long)plan.split.k_per_split, (long long)plan.split.bytes);
  if (plan.is_across) ws_text_add(t, "transposed: yes (C as the transposed product, its tiles along n)\n");
  if (ws_is_by_map(row->kind))
    ws_text_add(t, "cluster: %d\noperand_copies_bytes: %.0f\n", row->cluster,
                ws_gpu_operand_bytes(call, p, row->kind, n_slices, device));
  if (copies.bytes > 0) ws_text_add(t, "operand_copies_bytes: %.0f\n", copies.bytes);
  if (row->kind == WS_ROW_SLICED && p->has_packed) {
    const bool transposed = p->packed.transposed;
    ws_text_add(t, "packed:%s%s\n", ws_is_packed(p, !transposed, n_slices) ? " a" : "",
                ws_is_packed(p, transposed, n_slices) ? " b" : "");
  }
  if (row->kind == WS_ROW_SLICED)
    ws_text_add(
        t,
        "arithmetic: %s slices of FP16 of each operand%s, scaled by powers of two, their products on the tensor cores, summed "
        "in FP32; %sIEEE FP32 multiply-add where that is not accurate enough\n",
        row->n_slices == 2 ? "two" : "one", p->a.type == WSGEMM_C32 ? ", as a product of real numbers, 2 m x n x 2 k" : "",
        row->n_slices == 2 ? "three slices of BF16, or " : "");
  else if (row->kind == WS_ROW_TF32)
    ws_text_add(
        t,
        "arithmetic: %s of TF32 of each element, their products on the tensor cores, summed in FP32; IEEE FP32 multiply-add "
        "where that is not accurate enough\n",
        row->n_slices == 2 ? "two slices" : "one slice");
  else if (ws_is_half(p->a.type))
    ws_text_add(t,
                row->is_fma ? "arithmetic: %s operands as FP32, IEEE FP32 multiply-add, then one rounding to %s\n"
                            : "arithmetic: exact products of %s, summed in FP32 by the tensor cores, then one rounding to %s\n",
                ws_types[p->a.type].name, ws_types[p->c.type].name);
  else
    ws_text_add(t, "arithmetic: IEEE multiply-add in the data's own type\n");
}

static void explain_cut(const ws_call *call, const ws_level3_cut *cut, const char *blocks, int device, ws_text *t) {
  if (cut->has_product) explain_product(call, &cut->product, device, t);
  ws_text_add(t, "diagonal_blocks: %lld, %s\n", (long long)cut->block, blocks);
}

static void explain_structured(const ws_call *call, const ws_problem *p, int device_ordinal, ws_text *t) {
  wsgemm_status status;
  const ws_device *device = ws_device_get(call->h, device_ordinal, &status);
  if (!device) {
    ws_text_add(t, "error: %s\n", wsgemm_last_error());
    return;
  }
  const ws_caller_workspace workspace = ws_caller_workspace_get(call->h);
  const ws_level3_cut cut = ws_cut_structured(call, p, device, ws_most_copies_bytes(&workspace, device));
  explain_cut(call, &cut,
              cut.by_slices          ? "by slices"
              : cut.is_read_in_place ? "read where they lie"
              : cut.is_written_out   ? "written out"
                                     : "in shared memory",
              device_ordinal, t);
}

void ws_cuda_explain(const ws_call *call, const ws_problem *p, int device, ws_text *t) {
  if (ws_is_structured(p))
    explain_structured(call, p, device, t);
  else
    explain_product(call, p, device, t);
}

void ws_cuda_explain_solve(const ws_call *call, const ws_system *s, int device_ordinal, ws_text *t) {
  wsgemm_status status;
  const ws_device *device = ws_device_get(call->h, device_ordinal, &status);
  if (!device) {
    ws_text_add(t, "error: %s\n", wsgemm_last_error());
    return;
  }
  const ws_level3_cut cut = ws_cut_system(call, s, device);
  explain_cut(call, &cut, "by substitution", device_ordinal, t);
}

void ws_cuda_describe(ws_text *t) {
  if (!ws_cuda.is_loaded)
    ws_text_add(t, "gpu: no driver\n");
  else if (ws_cuda.missing)
    ws_text_add(t, "gpu: the driver is too old: it has no %s\n", ws_cuda.missing);
  else if (ws_driver_is_lost())
    ws_text_add(t, "gpu: lost by fork(); only the parent can use it\n");
  else
    ws_text_add(t, "gpu: driver found; used for device memory\n");
}
