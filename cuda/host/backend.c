/* backend.c - the GPU backend's host side: the launches and the workspace that a call gets.
 *
 * A call waits for nothing: its launches go onto the handle's stream. What a device needs once (its record, its kernels) is device.c's
 * business, memory lending.c's; rows, schedulers and grids are plan.c's. */
#include "cuda/host/backend.h"

#include <stdio.h>
#include <string.h>

#include "cuda/host/device.h"
#include "cuda/host/launch.h"
#include "cuda/host/locate.h"
#include "cuda/host/operand_copies.h"
#include "cuda/host/plan.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/slices.h"
#include "cuda/host/tma_maps.h"

bool ws_cuda_may_have_devices;

void ws_cuda_init(void) {
  ws_driver_load();
  ws_device_init();
  ws_cuda_may_have_devices = ws_cuda.is_loaded;
}

void ws_cuda_forked(void) { ws_driver_forked(); }

int ws_cuda_kernel_count(void) { return ws_cuda_row_count(); }
const char *ws_cuda_kernel_name(int row_idx) { return ws_cuda_row_at(row_idx)->name; }
wsgemm_type ws_cuda_kernel_type(int row_idx) { return ws_cuda_row_at(row_idx)->type; }

int ws_cuda_kernel_find(const char *name) {
  for (int r = 0; r < ws_cuda_row_count(); r++)
    if (strcmp(ws_cuda_row_at(r)->name, name) == 0) return r;
  return -1;
}

/* ---- launch ------------------------------------------------------------------------------------------------------------------ */

/* A call on its way: where to, and with which memory. What of the handle may change meanwhile it has from its beginning. */
typedef struct gpu_call {
  wsgemm_handle *h;
  ws_device *device;
  CUstream stream;
  ws_caller_workspace workspace;
  ws_loan loan;
  int64_t n_taken; /* the first bytes of the workspace, or of the memory for copies, that are in use */
} gpu_call;

/* The state of this call in device memory; NULL: all are taken, or none can be had. */
static wsgemm_status find_state(gpu_call *call, ws_launch_state **state) {
  const CUresult result = ws_lend_state(call->device, &call->loan, state);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(call->h, "stream", result);
}

/* What of the caller's workspace the call has not taken yet. *found = NULL: it lies on another device. */
static void find_workspace(gpu_call *call, char **found, int64_t *bytes) {
  const ws_caller_workspace *w = &call->workspace;
  const bool is_here = w->device == call->device->ordinal;
  *bytes = w->bytes - call->n_taken;
  *found = is_here ? w->memory + call->n_taken : NULL;
  if (is_here)
    ws_lending_hold(call->device, &call->loan, w->memory, w->bytes); /* another thread's call may use it on the same stream */
}

/* NULL: there is none. */
static wsgemm_status find_sums(gpu_call *call, char **found, int64_t *bytes) {
  *found = NULL, *bytes = WS_SUMS_BYTES;
  if (call->workspace.memory) {
    find_workspace(call, found, bytes);
    return WSGEMM_SUCCESS;
  }
  const CUresult result = ws_lend_sums(call->device, &call->loan, found);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(call->h, "partial sums", result);
}

/* Memory for copies, after what the call has taken of it already. need: with that. *found = NULL: there is none in the caller's workspace. */
static wsgemm_status find_copies(gpu_call *call, const ws_copies_need *need, char **found, int64_t *bytes) {
  if (call->workspace.memory) {
    find_workspace(call, found, bytes);
    return WSGEMM_SUCCESS;
  }
  const char *lacks;
  const CUresult result = ws_lend_copies(call->device, &call->loan, need, found, bytes, &lacks);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    return ws_fail(call->h, WSGEMM_ALLOC_FAILED,
                   "no room on device %d for %s: this product needs %lld bytes, and at the least %lld (wsgemm_set_workspace)",
                   call->device->ordinal, lacks, (long long)need->whole, (long long)need->least);
  if (result != CUDA_SUCCESS) return ws_fail_cuda(call->h, "memory for copies", result);
  *found += call->n_taken, *bytes -= call->n_taken;
  return WSGEMM_SUCCESS;
}

static ws_gemm_args args_of_plan(const ws_gpu_plan *plan) {
  ws_gemm_args args = ws_gemm_args_of(plan->problem);
  args.grid = plan->grid;
  args.sched.n_items = (uint32_t)plan->n_items;
  return args;
}

/* Who works on what, and how many workers (blocks, or clusters of them) there are. */
static wsgemm_status set_sched(gpu_call *call, ws_gpu_plan *plan, ws_sched_args *args, int64_t *n_workers) {
  const int n_sms = call->device->n_sms;
  const int64_t n_resident = (int64_t)plan->kernel->blocks_per_sm * n_sms / ws_cuda_row_at(plan->row_idx)->cluster;
  if (plan->sched == WS_SCHED_QUEUE) {
    ws_launch_state *state = NULL;
    if (plan->n_items > n_resident) { /* else every worker has one item, and there is nothing to steal */
      const wsgemm_status status = find_state(call, &state);
      if (status) return status;
    }
    if (state) {
      args->queue = &state->queue;
      args->quantum = plan->quantum;
      ws_sched_spread_last(args, n_resident, n_sms);
    } else { /* the same items in the same way, unstolen */
      plan->sched = WS_SCHED_STATIC;
    }
  }
  *n_workers = ws_sched_grid(plan->sched, plan->n_items, n_resident, args->quantum, plan->fixed_work);
  return WSGEMM_SUCCESS;
}

static wsgemm_status launch_tiled(gpu_call *call, ws_gpu_plan *plan) {
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  ws_gemm_args args = args_of_plan(plan);
  int64_t n_blocks;
  const wsgemm_status status = set_sched(call, plan, &args.sched, &n_blocks);
  if (status) return status;
  return ws_launch(call->h, plan->kernel->kernel, n_blocks, row->n_threads, row->shared_bytes, 1, WS_BEGIN_AFTER, call->stream,
                   &args);
}

/* All blocks wait for each other, so they are launched as one that fits the device as a whole (cooperative): two such launches on two
 * streams cannot each hold half of it. Who may steal what is no question then. *done: whether there is memory for that, and room: a context
 * may have a few of the device's multiprocessors. */
static wsgemm_status launch_together(gpu_call *call, const ws_gpu_plan *plan, ws_gemm_args *args, bool *done) {
  ws_launch_state *state = NULL;
  int64_t bytes = 0;
  char *sums = NULL;
  wsgemm_status status = find_state(call, &state);
  if (!status && state) status = find_sums(call, &sums, &bytes);
  *done = status || (sums && bytes >= plan->split.bytes);
  if (status || !*done) return status;
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  const int64_t n_resident = (int64_t)plan->kernel->blocks_per_sm * call->device->n_sms;
  args->split.sums = sums, args->split.barrier = &state->barrier;
  const CUresult result = ws_try_launch(plan->kernel->kernel, ws_min(plan->n_items, n_resident), row->n_threads,
                                        row->shared_bytes, 1, WS_BEGIN_TOGETHER, call->stream, args);
  *done = result != CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return result == CUDA_SUCCESS || !*done ? WSGEMM_SUCCESS : ws_fail_cuda(call->h, "launch", result);
}

/* Without memory for the sums every block works on all parts of its tile, one after the other: the same sums in the same order. */
static wsgemm_status launch_split(gpu_call *call, ws_gpu_plan *plan) {
  const ws_split *split = &plan->split;
  const ws_split_args parts = {.n_parts = (int32_t)split->n_parts, .part_k = split->part_k, .ld = split->ld};
  ws_gemm_args args = args_of_plan(plan);
  bool done;
  args.split = parts;
  const wsgemm_status status = launch_together(call, plan, &args, &done);
  if (done) return status;
  const int row_idx = ws_gpu_plan_smallest_row(plan);
  const ws_cuda_row *row = ws_cuda_row_at(row_idx);
  CUresult result;
  plan->kernel = ws_device_kernel_get(call->device, row_idx, WS_ENTRY_SPLIT, &result);
  if (!plan->kernel) return ws_fail_kernel(call->h, row->name, call->device, result);
  args.split = parts;
  args.grid = ws_gpu_plan_grid(plan->problem, row, 1);
  args.sched.n_items = (uint32_t)ws_tile_items(&args.grid);
  return ws_launch(call->h, plan->kernel->kernel, args.sched.n_items, row->n_threads, row->shared_bytes + row->total_bytes, 1,
                   WS_BEGIN_AFTER, call->stream, &args);
}

/* ---- launch: rows that take their operands in a form of their own ---------------------------------------------------------------- */

/* With A and B where the copy engine takes them; scales: of slices, or NULL. */
static wsgemm_status launch_wgmma(gpu_call *call, const ws_problem *p, int n_slices, const ws_lines *a, const ws_lines *b,
                                  const ws_wgmma_scales *scales) {
  ws_gpu_plan plan;
  wsgemm_status status = ws_gpu_plan_make(call->h, p, call->device, scales ? WS_ROW_SLICED : WS_ROW_WGMMA, n_slices, &plan);
  if (status) return status;
  const ws_cuda_row *row = ws_cuda_row_at(plan.row_idx);
  ws_wgmma_args args = {.grid = plan.grid, .sched = {.n_items = (uint32_t)plan.n_items}};
  int64_t n_clusters;
  if (scales) args.scales = *scales;
  const CUresult result = ws_wgmma_args_make(p, a, b, row, &args);
  if (result != CUDA_SUCCESS) return ws_fail_cuda(call->h, "tensor map", result);
  status = set_sched(call, &plan, &args.sched, &n_clusters);
  if (status) return status;
  return ws_launch(call->h, plan.kernel->kernel, n_clusters * row->cluster, row->n_threads, row->shared_bytes, row->cluster,
                   scales ? WS_BEGIN_EARLY : WS_BEGIN_AFTER, call->stream, &args);
}

/* What the pieces of a product share: memory for their operands, used by one piece after the other, as the stream keeps their order. */
typedef struct pieces_call {
  gpu_call *call;
  char *memory_a, *memory_b;
  int n_slices;
} pieces_call;

static wsgemm_status copy_and_multiply(void *context, const ws_problem *piece, const ws_piece_place *place) {
  const pieces_call *pieces = context;
  ws_lines a = ws_lines_of_a(piece), b = ws_lines_of_b(piece);
  ws_pitch_args copies = {0};
  ws_pitch_operand unneeded;
  if (!ws_lines_are_whole(&a)) ws_copy_lines(&a, pieces->memory_a, place->new_a ? &copies.operand[0] : &unneeded);
  if (!ws_lines_are_whole(&b)) ws_copy_lines(&b, pieces->memory_b, place->new_b ? &copies.operand[1] : &unneeded);
  wsgemm_status status = WSGEMM_SUCCESS;
  if (copies.operand[0].n_lines + copies.operand[1].n_lines > 0)
    status = ws_launch_pitch(pieces->call->h, &copies, pieces->call->device, pieces->call->stream);
  if (status) return status;
  return launch_wgmma(pieces->call, piece, 0, &a, &b, NULL);
}

/* Both passes that cut; or of three slices, whose scales are known, the second. */
static wsgemm_status cut(const gpu_call *call, ws_slice_args *args) {
  const wsgemm_status status = args->n_slices < 3 ? ws_launch_maxima(call->h, args, call->device, call->stream) : WSGEMM_SUCCESS;
  return status ? status : ws_launch_slices(call->h, args, call->device, call->stream);
}

static wsgemm_status multiply_slices(gpu_call *call, const ws_problem *piece, const ws_sliced *sliced) {
  ws_slice_args args = sliced->args;
  wsgemm_status status = WSGEMM_SUCCESS;
  if (ws_slice_parts(&args) > 0) status = cut(call, &args);
  if (status) return status;
  return launch_wgmma(call, piece, args.n_slices, &sliced->a, &sliced->b, &sliced->scales);
}

/* All kernels of a product of slices, before the first of them writes to C. ARCH_MISMATCH: this build has none of them. */
static wsgemm_status find_kernels(const gpu_call *call, const ws_problem *piece, int n_slices) {
  const int is_complex = piece->type == WSGEMM_C32, slices = WS_KERNEL_SLICES + 3 * is_complex;
  const int plain[] = {WS_KERNEL_MAXIMA, slices + n_slices - 1, slices + 2, WS_KERNEL_MARKED + is_complex};
  ws_gpu_plan plan;
  for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
    CUresult result;
    if (!ws_device_plain_kernel(call->device, plain[i], &result)) return ws_fail_kernel(call->h, "slices", call->device, result);
  }
  const wsgemm_status status = ws_gpu_plan_make(call->h, piece, call->device, WS_ROW_SLICED, n_slices, &plan);
  return status || n_slices < 2 ? status : ws_gpu_plan_make(call->h, piece, call->device, WS_ROW_SLICED, 3, &plan);
}

/* What the later launches have to do, if anything, only the device knows. */
static wsgemm_status slice_and_multiply(void *context, const ws_problem *piece, const ws_piece_place *place) {
  const pieces_call *pieces = context;
  gpu_call *call = pieces->call;
  const int n_first = pieces->n_slices;
  const ws_sliced sliced = ws_sliced_make(piece, place, n_first, n_first, pieces->memory_a, pieces->memory_b);
  wsgemm_status status = multiply_slices(call, piece, &sliced);
  if (!status && n_first == 2) {
    const ws_sliced in_three = ws_sliced_make(piece, place, n_first, 3, pieces->memory_a, pieces->memory_b);
    status = multiply_slices(call, piece, &in_three);
  }
  if (status) return status;
  ws_marked_args marked = ws_marked_args_of(piece, &sliced);
  return ws_launch_marked(call->h, piece->type, &marked, call->device, call->stream);
}

/* What the operands' other form needs: slices, or copies. */
static ws_piece_bytes *bytes_of_form(int n_slices) { return n_slices > 0 ? ws_sliced_bytes(n_slices) : ws_copies_bytes; }

/* What tuning has found is for the whole product, which is what is looked up, not its pieces. *tuning: room for it. */
static ws_problem with_tuning_of_whole(wsgemm_handle *h, const ws_problem *p, const ws_pieces *pieces, int n_slices,
                                       ws_device *device, ws_tuning *tuning) {
  ws_problem whole = *p;
  ws_gpu_plan plan;
  if (p->tuning || (pieces->m == p->m && pieces->n == p->n && pieces->batch == p->batch_count)) return whole;
  const ws_row_kind kind = n_slices > 0 ? WS_ROW_SLICED : WS_ROW_WGMMA;
  if (ws_gpu_plan_make(h, p, device, kind, n_slices, &plan) == WSGEMM_SUCCESS) {
    *tuning = plan.tuned.tuning;
    whole.tuning = tuning;
  }
  return whole;
}

/* Bytes that a call may have for operands, if the device has room for them: of the caller's workspace, else of the library's own memory. */
static double most_bytes(const ws_caller_workspace *w, const ws_device *device) {
  return !w->memory ? WS_COPIES_BYTES : w->device == device->ordinal ? (double)w->bytes : 0;
}

/* What the product needs beside n_taken bytes. false: more than a call may have. */
static bool needs_copies(const gpu_call *call, const ws_problem *p, int n_slices, ws_copies_need *need) {
  const ws_pieces smallest = ws_smallest_pieces(p);
  ws_pieces pieces;
  double of_a, of_b;
  const double most = most_bytes(&call->workspace, call->device) - (double)call->n_taken;
  if (!ws_pieces_for(p, bytes_of_form(n_slices), most, &pieces)) return false;
  need->whole = call->n_taken + (int64_t)ws_pieces_bytes(p, bytes_of_form(n_slices), &pieces, &of_a, &of_b);
  need->least = call->n_taken + (int64_t)ws_pieces_bytes(p, bytes_of_form(n_slices), &smallest, &of_a, &of_b);
  return true;
}

/* *done: whether there was memory enough for the operands' other form, if they need one. */
static wsgemm_status launch_in_pieces(gpu_call *call, const ws_problem *p, int n_slices, bool *done) {
  const bool is_sliced = n_slices > 0;
  pieces_call context = {.call = call, .n_slices = n_slices};
  ws_piece_bytes *const bytes_of = bytes_of_form(n_slices);
  double of_a, of_b;
  ws_pieces pieces = {p->m, p->n, p->batch_count};
  *done = true;
  if (is_sliced) {
    const wsgemm_status status = find_kernels(call, p, n_slices);
    *done = status != WSGEMM_ARCH_MISMATCH;
    if (status) return *done ? status : WSGEMM_SUCCESS;
  }
  if (bytes_of(p, &of_a, &of_b) > 0) {
    int64_t bytes;
    char *memory = NULL;
    ws_copies_need need;
    *done = needs_copies(call, p, n_slices, &need);
    if (!*done) return WSGEMM_SUCCESS;
    const wsgemm_status status = find_copies(call, &need, &memory, &bytes);
    *done = memory != NULL;
    if (status || !*done) return status;
    ws_pieces_for(p, bytes_of, (double)bytes, &pieces);
    ws_pieces_bytes(p, bytes_of, &pieces, &of_a, &of_b);
    context.memory_a = memory, context.memory_b = memory + (int64_t)of_a;
  }
  ws_tuning tuning;
  const ws_problem whole = with_tuning_of_whole(call->h, p, &pieces, n_slices, call->device, &tuning);
  return ws_for_each_piece(&whole, &pieces, is_sliced ? slice_and_multiply : copy_and_multiply, &context);
}

static wsgemm_status launch_product(gpu_call *call, const ws_problem *p) {
  ws_gpu_plan plan;
  int n_slices;
  const ws_row_kind kind = ws_gpu_kind_for(call->h, p, call->device, &n_slices);
  if (ws_is_by_map(kind)) {
    bool done;
    const wsgemm_status status = launch_in_pieces(call, p, n_slices, &done);
    if (status || done) return status;
  }
  const wsgemm_status status = ws_gpu_plan_make(call->h, p, call->device, ws_gpu_plain_kind(call->h, p), 0, &plan);
  if (status) return status;
  return plan.split.n_parts > 1 ? launch_split(call, &plan) : launch_tiled(call, &plan);
}

static size_t size_of(double bytes) { return bytes < 0x1p63 ? (size_t)bytes : SIZE_MAX; }

/* ---- epilogue ------------------------------------------------------------------------------------------------------------------ */

/* Of C as it stands the steps are taken. */
static void keep_c(ws_problem *p) {
  p->scale.beta_zero = false, p->scale.beta_one = true;
  if (p->type == WSGEMM_F64)
    p->scale.beta.d[0] = 1;
  else
    p->scale.beta.s[0] = 1;
}

/* Copies C, its own residual, to where the product does not write. The memory is asked for once, so with the product's. */
static wsgemm_status keep_residual(gpu_call *call, const ws_problem *product, ws_problem *steps) {
  int64_t bytes = 0;
  int n_slices;
  char *memory = NULL;
  ws_pitch_args args = {0};
  ws_problem unplaced = *steps;
  const double needed = ws_copy_c(&unplaced, NULL, &args.operand[0]), most = most_bytes(&call->workspace, call->device);
  if (needed > most)
    return ws_fail(call->h, WSGEMM_ALLOC_FAILED, "no memory for a copy of c, its own residual: %.0f bytes (wsgemm_set_workspace)",
                   needed);
  const ws_copies_need of_c = {(int64_t)needed, (int64_t)needed};
  const ws_row_kind kind = ws_gpu_kind_for(call->h, product, call->device, &n_slices);
  call->n_taken = (int64_t)needed;
  ws_copies_need need = of_c;
  if (ws_is_by_map(kind) && !needs_copies(call, product, n_slices, &need)) need = of_c;
  call->n_taken = 0;
  const wsgemm_status status = find_copies(call, &need, &memory, &bytes);
  if (status) return status;
  ws_copy_c(steps, memory, &args.operand[0]);
  call->n_taken = (int64_t)needed;
  return ws_launch_pitch(call->h, &args, call->device, call->stream);
}

/* The product, then the steps of its epilogue over C; which are one rounding each anyway, where C is of the type of the sums. */
static wsgemm_status launch_apart(gpu_call *call, const ws_problem *p) {
  ws_problem product = *p, steps = *p;
  wsgemm_status status = WSGEMM_SUCCESS;
  product.has_epilogue = false;
  keep_c(&steps);
  if (ws_residual_is_c(p)) status = keep_residual(call, &product, &steps);
  if (!status) status = launch_product(call, &product);
  return status ? status : ws_launch_scale(call->h, &steps, call->device, call->stream);
}

static wsgemm_status launch_all(gpu_call *call, const void *what) {
  const ws_problem *p = what;
  wsgemm_status status = WSGEMM_SUCCESS;
  if (ws_product_is_zero(p)) {
    if (!p->scale.beta_one || ws_has_steps(p)) status = ws_launch_scale(call->h, p, call->device, call->stream);
  } else {
    status = ws_has_steps(p) && !ws_is_half(p->type) ? launch_apart(call, p) : launch_product(call, p);
  }
  if (!status && p->has_epilogue && p->epilogue.column_sums)
    status = ws_launch_column_sums(call->h, p, call->device, call->stream);
  return status;
}

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

/* Launches onto the handle's stream, with its context current. */
typedef wsgemm_status launch_work(gpu_call *call, const void *what);

static wsgemm_status on_device(wsgemm_handle *h, int ordinal, launch_work *work, const void *what) {
  wsgemm_status status;
  bool is_pushed;
  gpu_call call = {.h = h, .workspace = ws_caller_workspace_get(h)};
  call.stream = call.loan.stream = (CUstream)atomic_load_explicit(&h->stream, memory_order_relaxed);
  call.device = ws_device_enter(h, ordinal, call.stream, &is_pushed, &status);
  if (!call.device) return status;
  status = work(&call, what);
  const CUresult result = ws_lending_end(call.device, &call.loan);
  if (!status && result != CUDA_SUCCESS) status = ws_fail_cuda(h, "memory of the graph", result);
  ws_device_leave(is_pushed);
  return status;
}

wsgemm_status ws_cuda_gemm(wsgemm_handle *h, const ws_problem *p, int device) {
  if (!p->has_packed) return on_device(h, device, launch_all, p);
  const ws_problem here = on_this_device(p, device);
  return on_device(h, device, launch_all, &here);
}

/* ---- packed operands ------------------------------------------------------------------------------------------------------------- */

static wsgemm_status launch_packing(gpu_call *call, const void *what) {
  const wsgemm_packed *packed = what;
  ws_slice_args args = ws_packing_args(packed, packed->n_slices);
  const wsgemm_status status = cut(call, &args);
  if (status || packed->n_slices != 2) return status;
  args = ws_packing_args(packed, 3); /* marks what three slices would not do for */
  return cut(call, &args);
}

wsgemm_status ws_cuda_packed_bytes(wsgemm_handle *h, const ws_problem *p, bool is_a, int device_ordinal, int *n_slices,
                                   size_t *bytes) {
  wsgemm_status status;
  const ws_device *device = ws_device_get(h, device_ordinal, &status);
  if (!device) return status;
  *n_slices = ws_gpu_slices_to_pack(h, p, device);
  *bytes = *n_slices > 0 ? size_of(ws_packed_bytes(p, is_a, *n_slices)) : 0;
  return status;
}

wsgemm_status ws_cuda_prepack(wsgemm_handle *h, const wsgemm_packed *packed) {
  return on_device(h, packed->device, launch_packing, packed);
}

bool ws_cuda_is_on(const void *memory, int device) {
  const ws_location l = ws_locate(memory);
  return !l.unknown && l.is_device && l.device == device;
}

/* ---- workspace --------------------------------------------------------------------------------------------------------------- */

/* See launch_apart. */
static double bytes_for_residual(const ws_problem *p) {
  ws_problem copied = *p;
  ws_pitch_operand op;
  return ws_has_steps(p) && !ws_is_half(p->type) && ws_residual_is_c(p) ? ws_copy_c(&copied, NULL, &op) : 0;
}

/* For another form of operands, or for partial sums. */
static double bytes_for_operands(wsgemm_handle *h, const ws_problem *p, ws_row_kind kind, int n_slices, const ws_device *device) {
  double of_a, of_b;
  return ws_is_by_map(kind) ? bytes_of_form(n_slices)(p, &of_a, &of_b) : (double)ws_gpu_split_for(h, p, device, kind).bytes;
}

wsgemm_status ws_cuda_workspace_bytes(wsgemm_handle *h, const ws_problem *p, int device_ordinal, size_t *bytes) {
  wsgemm_status status;
  const ws_device *device = ws_device_get(h, device_ordinal, &status);
  if (!device) return status;
  int n_slices;
  const ws_problem here = on_this_device(p, device_ordinal);
  const ws_row_kind kind = ws_gpu_kind_for(h, &here, device, &n_slices);
  *bytes = size_of(bytes_for_operands(h, &here, kind, n_slices, device) + bytes_for_residual(p));
  return status;
}

wsgemm_status ws_cuda_fallback_count(wsgemm_handle *h, int device, int64_t *count) {
  uint64_t n_marked;
  if (ws_driver_is_lost()) return ws_fail(h, WSGEMM_NO_DEVICE, "the GPU is lost by fork(); only the parent can use it");
  const wsgemm_status status = ws_device_n_marked(h, device, &n_marked);
  if (status) return status;
  *count = (int64_t)n_marked;
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

ws_row_kind ws_gpu_kind_in_workspace(wsgemm_handle *h, const ws_problem *p, const ws_device *device, int *n_slices) {
  const ws_row_kind kind = ws_gpu_kind_for(h, p, device, n_slices);
  if (!ws_is_by_map(kind)) return kind;
  const ws_caller_workspace w = ws_caller_workspace_get(h);
  ws_pieces pieces;
  if (ws_pieces_for(p, bytes_of_form(*n_slices), most_bytes(&w, device) - bytes_for_residual(p), &pieces)) return kind;
  *n_slices = 0;
  return ws_gpu_plain_kind(h, p);
}

/* ---- words ------------------------------------------------------------------------------------------------------------------- */

void ws_cuda_explain(wsgemm_handle *h, const ws_problem *given, int device_ordinal, ws_text *t) {
  const ws_problem here = on_this_device(given, device_ordinal), *p = &here;
  wsgemm_status status;
  bool is_pushed;
  ws_device *device = ws_device_enter(h, device_ordinal, NULL, &is_pushed, &status);
  ws_gpu_plan plan;
  int n_slices = 0;
  if (device) {
    const ws_row_kind kind = ws_gpu_kind_in_workspace(h, p, device, &n_slices);
    status = ws_gpu_plan_make(h, p, device, kind, n_slices, &plan);
    ws_device_leave(is_pushed);
  }
  if (status) {
    ws_text_add(t, "error: %s\n", wsgemm_last_error());
    return;
  }
  static const char *const scheds[WS_N_SCHEDS] = {"static", "queue", "clc", "foreach"};
  const bool is_split = plan.split.n_parts > 1;
  const ws_cuda_row *row = ws_cuda_row_at(plan.row_idx);
  ws_text_add(t, "device: %d %s\nkernel: %s\ntile: %dx%d\ncoarse_factor: %d\nscheduler: %s\nitems: %lld\nblocks_per_sm: %d\n",
              device->ordinal, device->name, row->name, row->bm, row->bn, row->coarse, is_split ? "split" : scheds[plan.sched],
              (long long)plan.n_items, plan.kernel->blocks_per_sm);
  ws_text_add(t, "order: %lld\nquantum: %u\nchosen_by: %s\n", (long long)plan.grid.group, plan.quantum,
              ws_tuned_by_name(plan.tuned.by));
  if (is_split)
    ws_text_add(t, "k_parts: %lld of %lld\nworkspace_bytes: %lld\n", (long long)plan.split.n_parts, (long long)plan.split.part_k,
                (long long)plan.split.bytes);
  if (ws_is_by_map(row->kind))
    ws_text_add(t, "cluster: %d\noperand_copies_bytes: %.0f\n", row->cluster,
                bytes_for_operands(h, p, row->kind, n_slices, device));
  if (row->kind == WS_ROW_SLICED && p->has_packed) {
    const bool swap = p->packed.swapped;
    ws_text_add(t, "packed:%s%s\n", ws_is_packed(p, !swap, n_slices) ? " a" : "", ws_is_packed(p, swap, n_slices) ? " b" : "");
  }
  if (row->kind == WS_ROW_SLICED)
    ws_text_add(
        t,
        "arithmetic: %s slices of FP16 of each operand%s, scaled by powers of two, their products on the matrix units, summed "
        "in FP32; %sIEEE FP32 multiply-add where that is not accurate enough\n",
        row->n_slices == 2 ? "two" : "one", p->type == WSGEMM_C32 ? ", as a product of real numbers, 2 m x n x 2 k" : "",
        row->n_slices == 2 ? "three slices of BF16, or " : "");
  else if (ws_is_half(p->type))
    ws_text_add(t,
                row->is_fma ? "arithmetic: %s operands as FP32, IEEE FP32 multiply-add, then one rounding to %s\n"
                            : "arithmetic: exact products of %s, summed in FP32 by the matrix units, then one rounding to %s\n",
                ws_types[p->type].name, ws_types[p->type_c].name);
  else
    ws_text_add(t, "arithmetic: IEEE multiply-add in the data's own type\n");
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
