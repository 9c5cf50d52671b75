/* backend.c - the GPU backend's host side: which row, scheduler, grid and workspace a call gets, and its launch.
 *
 * A call allocates nothing and waits for nothing: one launch on the handle's stream. What a device needs once (its record, its kernels)
 * is device.c's business. Row, scheduler and grid never change the bits of C, except that a row sums in its own way. */
#include "backend.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "kernel_args.h"
#include "locate.h"
#include "operand_copies.h"
#include "split.h"
#include "wgmma_maps.h"

bool ws_cuda_may_have_devices;

void ws_cuda_init(void) {
  ws_driver_load();
  ws_cuda_may_have_devices = ws_cuda.is_loaded;
}

int ws_cuda_kernel_count(void) { return ws_cuda_row_count(); }
const char *ws_cuda_kernel_name(int row_idx) { return ws_cuda_row_at(row_idx)->name; }
wsgemm_type ws_cuda_kernel_type(int row_idx) { return ws_cuda_row_at(row_idx)->type; }

int ws_cuda_kernel_find(const char *name) {
  for (int r = 0; r < ws_cuda_row_count(); r++)
    if (strcmp(ws_cuda_row_at(r)->name, name) == 0) return r;
  return -1;
}

/* ---- operands ----------------------------------------------------------------------------------------------------------------- */

static bool is_aligned(const void *pointer, int64_t step, int64_t stride, int element_bytes, int bytes) {
  return (((uintptr_t)pointer | (uintptr_t)(step * element_bytes) | (uintptr_t)(stride * element_bytes)) &
          (uintptr_t)(bytes - 1)) == 0;
}

static ws_operand operand_of(const ws_problem *p, const void *data, int64_t ld, bool along_k, int64_t stride, bool conj) {
  const int bytes = ws_types[p->type].bytes;
  ws_operand op = {.data = data, .step_mn = along_k ? ld : 1, .step_k = along_k ? 1 : ld, .stride = stride, .conj = conj};
  const bool is_vectors = is_aligned(data, ld, stride, bytes, 16);
  if (along_k)
    op.mode = is_vectors ? WS_COPY_VECTORS_K : WS_COPY_ALONG_K;
  else
    op.mode = is_vectors ? WS_COPY_VECTORS_MN : WS_COPY_ALONG_MN;
  op.whole_elements = is_aligned(data, ld, stride, bytes, bytes);
  op.pairs = is_aligned(data, ld, stride, bytes, 4);
  return op;
}

static ws_operand operand_a(const ws_problem *p) { return operand_of(p, p->a, p->lda, p->a_trans, p->stride_a, p->scale.conj_a); }

static ws_operand operand_b(const ws_problem *p) {
  return operand_of(p, p->b, p->ldb, !p->b_trans, p->stride_b, p->scale.conj_b);
}

/* ---- plan -------------------------------------------------------------------------------------------------------------------- */

typedef struct gpu_plan {
  const ws_problem *problem;
  ws_row_kind kind;        /* of the rows made for it */
  bool single_a, single_b; /* come by single elements (simt: copies along k always do) */
  ws_split split;
  int row_idx;
  const ws_device_kernel *kernel;
  ws_sched sched;
  bool fixed_work;
  ws_tile_grid grid;
  int64_t n_items;
  ws_launch_state *state; /* of the call, once it has been asked for */
} gpu_plan;

/* Every part of a split product counts as a product. */
static ws_tile_grid grid_for(const ws_problem *p, const ws_cuda_row *row, int64_t n_parts) {
  return (ws_tile_grid){.n_batch = p->batch_count * n_parts,
                        .n_rows = ws_ceil_div(p->m, row->bm),
                        .n_cols = ws_ceil_div(p->n, row->bn),
                        .coarse = row->coarse * row->cluster,
                        .group = 8};
}

/* The share of its full speed that a multiprocessor reaches with so many warps: fits `--suite rows` (H200, 2026-11-21). */
static double share_of_speed(double warps, double half) { return warps / (warps + half); }

/* What copies of a block of A and of B cost for each k, in the unit of row_cost: those by single elements. Beside multiply-adds they take
 * issue slots; so many for each element along m or n (H200, 2026-11-21; d and z keep such operands as they are or, misaligned, were not
 * fitted). */
static double copy_cost(const gpu_plan *plan, const ws_cuda_row *row) {
  static const double single[WS_N_TYPES] = {[WSGEMM_F32] = 0.06, [WSGEMM_C32] = 0.03};
  return single[row->type] * ((plan->single_a ? row->bm : 0) + (plan->single_b ? row->bn * row->coarse : 0));
}

/* The same unit as row_cost's. A multiprocessor has one block, so the last round takes as long as the others; an item costs as much again as
 * so many k: its first stage comes late, and its sums are stored. */
static double wgmma_cost(const ws_problem *p, const ws_cuda_row *row, int64_t n_items, int n_sms) {
  const double item_k = 256;
  return (double)ws_ceil_div(n_items, ws_max(1, n_sms / row->cluster)) * row->bm * row->bn * row->coarse / row->rate *
         (1 + item_k / (double)p->k);
}

/* Time in no particular unit: rounds of as many items as fit, then what is left, spread evenly (ws_sched_spread_last). */
static double row_cost(const gpu_plan *plan, const ws_cuda_row *row, int n_sms) {
  const ws_tile_grid grid = grid_for(plan->problem, row, plan->split.n_parts);
  if (row->kind == WS_ROW_WGMMA) return wgmma_cost(plan->problem, row, ws_tile_items(&grid), n_sms);
  const int64_t n_items = ws_tile_items(&grid), places = (int64_t)n_sms * row->blocks;
  const double warps = row->n_threads / 32.0, half = row->type == WSGEMM_F64 || row->type == WSGEMM_C64 ? 3 : 2;
  const double item = (double)row->bm * row->bn * row->coarse / row->rate + copy_cost(plan, row);
  const double each = (double)ws_ceil_div(n_items % places, n_sms);
  const double last = each > 0 ? each * share_of_speed(row->blocks * warps, half) / share_of_speed(each * warps, half) : 0;
  return ((double)(n_items / places) * row->blocks + last) * item;
}

static bool can_run(const ws_cuda_row *row, const gpu_plan *plan) {
  const ws_problem *p = plan->problem;
  if (row->type != p->type || (plan->split.n_parts > 1 && !row->splits)) return false;
  switch (row->kind) {
  case WS_ROW_VECTOR:
    return row->bn == 1 ? p->n == 1 : p->m == 1;
  case WS_ROW_WGMMA:
    return plan->kind == WS_ROW_WGMMA;
  default:
    return true;
  }
}

/* Matrix-vector products have rows of their own; so have 16-bit types where there are matrix units for them. */
static bool is_made_for(const ws_cuda_row *row, const gpu_plan *plan) { return can_run(row, plan) && row->kind == plan->kind; }

/* The forced row if it can run this, else the one with the least cost: of those made for it; of those with the COARSE_FACTOR that the
 * handle asks for, if there are any. */
static int choose_row(wsgemm_handle *h, const gpu_plan *plan, const ws_device *device) {
  const int forced = atomic_load_explicit(&h->cuda_kernel[plan->problem->type], memory_order_relaxed);
  if (forced && can_run(ws_cuda_row_at(forced - 1), plan)) return forced - 1;
  const int coarse = atomic_load_explicit(&h->coarse_factor, memory_order_relaxed);
  int best = -1;
  bool best_fits = false;
  double best_cost = 0;
  for (int r = 0; r < ws_cuda_row_count(); r++) {
    const ws_cuda_row *row = ws_cuda_row_at(r);
    if (!is_made_for(row, plan)) continue;
    const bool fits = coarse == 0 || row->coarse == coarse;
    const double cost = row_cost(plan, row, device->n_sms);
    if (best < 0 || (fits && !best_fits) || (fits == best_fits && cost < best_cost)) best = r, best_cost = cost, best_fits = fits;
  }
  return best;
}

/* The row whose total takes the least shared memory. */
static int smallest_row(const gpu_plan *plan) {
  int best = -1;
  for (int r = 0; r < ws_cuda_row_count(); r++) {
    const ws_cuda_row *row = ws_cuda_row_at(r);
    if (!is_made_for(row, plan)) continue;
    if (best < 0 || row->total_bytes < ws_cuda_row_at(best)->total_bytes) best = r;
  }
  return best;
}

/* The architectures that have Cluster Launch Control and machine code of their own in the images; only their code has these entries. */
static bool has_clc(const ws_device *device) { return device->cc == 100 || device->cc == 120; }

static ws_sched sched_for(wsgemm_policy policy, const ws_device *device) {
  switch (policy) {
  case WSGEMM_POLICY_FIXED_WORK:
  case WSGEMM_POLICY_FIXED_BLOCKS:
    return WS_SCHED_STATIC;
  case WSGEMM_POLICY_STEAL:
    return WS_SCHED_QUEUE;
  case WSGEMM_POLICY_FOREACH:
    return has_clc(device) ? WS_SCHED_FOREACH : WS_SCHED_QUEUE;
  case WSGEMM_POLICY_AUTO:
  case WSGEMM_POLICY_CLC:
    break;
  }
  return has_clc(device) ? WS_SCHED_CLC : WS_SCHED_QUEUE;
}

static ws_entry entry_of(ws_sched sched) {
  return sched == WS_SCHED_CLC ? WS_ENTRY_CLC : sched == WS_SCHED_FOREACH ? WS_ENTRY_FOREACH : WS_ENTRY_QUEUE;
}

static wsgemm_status fail_kernel(wsgemm_handle *h, const char *name, const ws_device *device, CUresult result) {
  if (!ws_device_lacks(result)) return ws_fail_cuda(h, name, result);
  return ws_fail(h, WSGEMM_ARCH_MISMATCH, "kernel %s does not run on device %d (%s, compute capability %d.%d)", name,
                 device->ordinal, device->name, device->cc / 10, device->cc % 10);
}

/* Whether wgmma rows are to run this, if their operands can be brought to them. */
static bool wants_wgmma(wsgemm_handle *h, const ws_problem *p, const ws_device *device) {
  const int forced = atomic_load_explicit(&h->cuda_kernel[p->type], memory_order_relaxed);
  return device->cc == 90 && ws_wgmma_takes(p) && (!forced || ws_cuda_row_at(forced - 1)->kind == WS_ROW_WGMMA);
}

static wsgemm_status make_plan(wsgemm_handle *h, const ws_problem *p, ws_device *device, bool by_wgmma, gpu_plan *plan) {
  const wsgemm_policy policy = (wsgemm_policy)atomic_load_explicit(&h->policy, memory_order_relaxed);
  *plan = (gpu_plan){.problem = p};
  const bool is_invariant = atomic_load_explicit(&h->invariant, memory_order_relaxed) != 0;
  plan->kind = by_wgmma ? WS_ROW_WGMMA : ws_is_matrix_vector(p) && !is_invariant ? WS_ROW_VECTOR : WS_ROW_TILED;
  plan->split = by_wgmma || is_invariant ? ws_split_into(p, 1) : ws_split_for(p, device->n_sms);
  plan->single_a = operand_a(p).mode != WS_COPY_VECTORS_MN, plan->single_b = operand_b(p).mode != WS_COPY_VECTORS_MN;
  plan->row_idx = choose_row(h, plan, device);
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  plan->sched = sched_for(policy, device);
  plan->fixed_work = policy == WSGEMM_POLICY_FIXED_WORK;
  CUresult result;
  plan->kernel =
      ws_device_kernel_get(device, plan->row_idx, plan->split.n_parts > 1 ? WS_ENTRY_SPLIT : entry_of(plan->sched), &result);
  if (!plan->kernel) return fail_kernel(h, row->name, device, result);
  plan->grid = grid_for(p, row, plan->split.n_parts);
  plan->n_items = ws_tile_items(&plan->grid);
  if (plan->n_items > WS_SCHED_MAX_ITEMS / row->cluster)
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "%lld work items of kernel %s; one launch takes %lld", (long long)plan->n_items,
                   row->name, (long long)WS_SCHED_MAX_ITEMS / row->cluster);
  return WSGEMM_SUCCESS;
}

/* ---- launch ------------------------------------------------------------------------------------------------------------------ */

static ws_gemm_args args_of(const ws_problem *p) {
  static const ws_half_c_type half_c_types[WS_N_TYPES] = {
      [WSGEMM_F32] = WS_HALF_C_F32, [WSGEMM_F16] = WS_HALF_C_F16, [WSGEMM_BF16] = WS_HALF_C_BF16};
  ws_gemm_args args = {.m = p->m, .n = p->n, .k = p->k, .c = p->c, .ldc = p->ldc, .stride_c = p->stride_c};
  args.a = operand_a(p);
  args.b = operand_b(p);
  memcpy(&args.alpha, &p->scale.alpha, sizeof args.alpha);
  memcpy(&args.beta, &p->scale.beta, sizeof args.beta);
  args.beta_zero = p->scale.beta_zero;
  args.c_vectors = is_aligned(p->c, p->ldc, p->stride_c, ws_types[p->type_c].bytes, 16);
  args.type_c = half_c_types[p->type_c];
  return args;
}

/* cluster: blocks that are placed together; all_resident: all of them run at once, or none. */
static wsgemm_status launch(wsgemm_handle *h, CUkernel kernel, int64_t n_blocks, int n_threads, int shared_bytes, int cluster,
                            bool all_resident, CUstream stream, void *args) {
  CUlaunchAttribute attributes[2];
  unsigned n_attributes = 0;
  if (all_resident)
    attributes[n_attributes++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
  if (cluster > 1)
    attributes[n_attributes++] =
        (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value = {.clusterDim = {(unsigned)cluster, 1, 1}}};
  CUlaunchConfig config = {.gridDimX = (unsigned)n_blocks,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = (unsigned)n_threads,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .sharedMemBytes = (unsigned)shared_bytes,
                           .hStream = stream,
                           .attrs = attributes,
                           .numAttrs = n_attributes};
  void *parameters[] = {args};
  const CUresult result = ws_cuda.cuLaunchKernelEx(&config, (CUfunction)kernel, parameters, NULL);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(h, "launch", result);
}

static wsgemm_status launch_scale(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream) {
  enum { N_THREADS = 256, BLOCKS_PER_SM = 8 };
  CUresult result;
  CUkernel kernel = ws_device_plain_kernel(device, WS_KERNEL_SCALE + (int)p->type_c, &result);
  if (!kernel) return fail_kernel(h, "scale", device, result);
  ws_gemm_args args = args_of(p);
  args.grid.n_batch = p->batch_count;
  const double blocks = (double)p->m * (double)p->n * (double)p->batch_count / N_THREADS + 1;
  const double most = (double)device->n_sms * BLOCKS_PER_SM;
  return launch(h, kernel, (int64_t)(blocks < most ? blocks : most), N_THREADS, 0, 1, false, stream, &args);
}

/* The state of this launch in device memory; NULL: all are taken, or none can be had. */
static wsgemm_status find_state(wsgemm_handle *h, ws_device *device, CUstream stream, ws_launch_state **state) {
  CUstreamCaptureStatus capturing;
  const CUresult result = ws_cuda.cuStreamIsCapturing(stream, &capturing);
  if (result != CUDA_SUCCESS) return ws_fail_cuda(h, "stream", result);
  *state = ws_device_launch_state(device, stream, capturing != CU_STREAM_CAPTURE_STATUS_NONE);
  return WSGEMM_SUCCESS;
}

/* The caller's workspace, else the library's own; *bytes: how much that is. NULL: there is none. */
static void *find_memory(wsgemm_handle *h, ws_device *device, ws_memory which, const ws_launch_state *state, int64_t *bytes) {
  void *given = atomic_load_explicit(&h->workspace, memory_order_relaxed);
  *bytes = which == WS_MEMORY_SUMS ? WS_SUMS_BYTES : WS_COPIES_BYTES;
  if (!given) return state ? ws_device_memory(device, which, state) : NULL;
  *bytes = (int64_t)atomic_load_explicit(&h->workspace_bytes, memory_order_relaxed);
  return atomic_load_explicit(&h->workspace_device, memory_order_relaxed) == device->ordinal ? given : NULL;
}

static ws_gemm_args args_of_plan(const gpu_plan *plan) {
  ws_gemm_args args = args_of(plan->problem);
  args.grid = plan->grid;
  args.sched.n_items = (uint32_t)plan->n_items;
  return args;
}

/* Who works on what, and how many workers (blocks, or clusters of them) there are. */
static wsgemm_status set_sched(wsgemm_handle *h, ws_device *device, CUstream stream, gpu_plan *plan, ws_sched_args *args,
                               int64_t *n_workers) {
  const int64_t n_resident = (int64_t)plan->kernel->blocks_per_sm * device->n_sms / ws_cuda_row_at(plan->row_idx)->cluster;
  if (plan->sched == WS_SCHED_QUEUE) {
    if (plan->n_items > n_resident && !plan->state) { /* else every worker has one item, and there is nothing to steal */
      const wsgemm_status status = find_state(h, device, stream, &plan->state);
      if (status) return status;
    }
    if (plan->n_items > n_resident && plan->state) {
      args->queue = &plan->state->queue;
      args->quantum = (uint32_t)atomic_load_explicit(&h->quantum, memory_order_relaxed);
      ws_sched_spread_last(args, n_resident, device->n_sms);
    } else { /* the same items in the same way, unstolen */
      plan->sched = WS_SCHED_STATIC;
    }
  }
  *n_workers = ws_sched_grid(plan->sched, plan->n_items, n_resident, args->quantum, plan->fixed_work);
  return WSGEMM_SUCCESS;
}

static wsgemm_status launch_tiled(wsgemm_handle *h, ws_device *device, CUstream stream, gpu_plan *plan) {
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  ws_gemm_args args = args_of_plan(plan);
  int64_t n_blocks;
  const wsgemm_status status = set_sched(h, device, stream, plan, &args.sched, &n_blocks);
  if (status) return status;
  return launch(h, plan->kernel->kernel, n_blocks, row->n_threads, row->shared_bytes, 1, false, stream, &args);
}

/* All blocks wait for each other, so they are launched as one that fits the device as a whole (cooperative): two such launches on two
 * streams cannot each hold half of it. Who may steal what is no question then. */
static wsgemm_status launch_split(wsgemm_handle *h, ws_device *device, CUstream stream, gpu_plan *plan) {
  ws_launch_state *state = NULL;
  const wsgemm_status status = find_state(h, device, stream, &state);
  if (status) return status;
  const ws_split *split = &plan->split;
  ws_gemm_args args = args_of_plan(plan);
  args.split = (ws_split_args){.n_parts = (int32_t)split->n_parts, .part_k = split->part_k, .ld = split->ld};
  int64_t bytes;
  void *sums = find_memory(h, device, WS_MEMORY_SUMS, state, &bytes);
  args.split.sums = state && bytes >= split->bytes ? sums : NULL;
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  const int64_t n_resident = (int64_t)plan->kernel->blocks_per_sm * device->n_sms;
  if (args.split.sums) {
    args.split.barrier = &state->barrier;
    return launch(h, plan->kernel->kernel, ws_min(plan->n_items, n_resident), row->n_threads, row->shared_bytes, 1, true, stream,
                  &args);
  }
  const int row_idx = smallest_row(plan);
  row = ws_cuda_row_at(row_idx);
  CUresult result;
  plan->kernel = ws_device_kernel_get(device, row_idx, WS_ENTRY_SPLIT, &result);
  if (!plan->kernel) return fail_kernel(h, row->name, device, result);
  args.grid = grid_for(plan->problem, row, 1);
  args.sched.n_items = (uint32_t)ws_tile_items(&args.grid);
  return launch(h, plan->kernel->kernel, args.sched.n_items, row->n_threads, row->shared_bytes + row->total_bytes, 1, false,
                stream, &args);
}

/* ---- launch: wgmma rows -------------------------------------------------------------------------------------------------------- */

/* With A and B where the copy engine takes them. */
static wsgemm_status launch_wgmma(wsgemm_handle *h, const ws_problem *p, const ws_lines *a, const ws_lines *b, ws_device *device,
                                  CUstream stream, ws_launch_state *state) {
  gpu_plan plan;
  wsgemm_status status = make_plan(h, p, device, true, &plan);
  if (status) return status;
  const ws_cuda_row *row = ws_cuda_row_at(plan.row_idx);
  ws_wgmma_args args = {.grid = plan.grid, .sched = {.n_items = (uint32_t)plan.n_items}};
  int64_t n_clusters;
  plan.state = state;
  const CUresult result = ws_wgmma_args_make(p, a, b, row, &args);
  if (result != CUDA_SUCCESS) return ws_fail_cuda(h, "tensor map", result);
  status = set_sched(h, device, stream, &plan, &args.sched, &n_clusters);
  if (status) return status;
  return launch(h, plan.kernel->kernel, n_clusters * row->cluster, row->n_threads, row->shared_bytes, row->cluster, false, stream,
                &args);
}

static wsgemm_status launch_pitch(wsgemm_handle *h, ws_pitch_args *args, ws_device *device, CUstream stream) {
  enum { N_THREADS = 256, N_WARPS = N_THREADS / 32, BLOCKS_PER_SM = 8 };
  CUresult result;
  CUkernel kernel = ws_device_plain_kernel(device, WS_KERNEL_PITCH, &result);
  if (!kernel) return fail_kernel(h, "pitch", device, result);
  const int64_t n_lines =
      ws_max(args->operand[0].n_lines * args->operand[0].n_products, args->operand[1].n_lines * args->operand[1].n_products);
  return launch(h, kernel, ws_min(ws_ceil_div(n_lines, N_WARPS), (int64_t)device->n_sms * BLOCKS_PER_SM), N_THREADS, 0, 1, false,
                stream, args);
}

/* Piece by piece: copies of its operands, then its product; the stream keeps that order, so all pieces share the memory. A's copy serves
 * a whole row of pieces, B's all of them if there is only one row. */
static wsgemm_status launch_copied(wsgemm_handle *h, const ws_problem *p, const ws_pieces *pieces, char *memory,
                                   ws_device *device, CUstream stream, ws_launch_state *state) {
  const ws_problem largest = ws_piece_at(p, pieces, 0, 0, 0);
  const ws_lines first_a = ws_lines_of_a(&largest);
  char *const memory_b = memory + (int64_t)ws_copy_bytes(&first_a);
  for (int64_t batch = 0; batch < p->batch_count; batch += pieces->batch)
    for (int64_t m = 0; m < p->m; m += pieces->m)
      for (int64_t n = 0; n < p->n; n += pieces->n) {
        const ws_problem piece = ws_piece_at(p, pieces, m, n, batch);
        ws_lines a = ws_lines_of_a(&piece), b = ws_lines_of_b(&piece);
        ws_pitch_args copies = {0};
        ws_pitch_operand unneeded;
        const bool copies_a = n == 0, copies_b = m == 0 || pieces->n < p->n;
        if (!ws_lines_are_whole(&a)) ws_copy_lines(&a, memory, copies_a ? &copies.operand[0] : &unneeded);
        if (!ws_lines_are_whole(&b)) ws_copy_lines(&b, memory_b, copies_b ? &copies.operand[1] : &unneeded);
        wsgemm_status status = WSGEMM_SUCCESS;
        if (copies.operand[0].n_lines + copies.operand[1].n_lines > 0) status = launch_pitch(h, &copies, device, stream);
        if (!status) status = launch_wgmma(h, &piece, &a, &b, device, stream, state);
        if (status) return status;
      }
  return WSGEMM_SUCCESS;
}

/* *done: whether there was memory enough for the copies that it needs, if any. */
static wsgemm_status try_wgmma(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream, bool *done) {
  const ws_lines a = ws_lines_of_a(p), b = ws_lines_of_b(p);
  *done = true;
  if (ws_lines_are_whole(&a) && ws_lines_are_whole(&b)) return launch_wgmma(h, p, &a, &b, device, stream, NULL);
  ws_launch_state *state = NULL;
  ws_pieces pieces;
  int64_t bytes;
  const wsgemm_status status = find_state(h, device, stream, &state);
  if (status) return status;
  char *memory = find_memory(h, device, WS_MEMORY_COPIES, state, &bytes);
  *done = memory && ws_pieces_for(p, (double)bytes, &pieces);
  return *done ? launch_copied(h, p, &pieces, memory, device, stream, state) : WSGEMM_SUCCESS;
}

static wsgemm_status launch_product(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream) {
  gpu_plan plan;
  if (wants_wgmma(h, p, device)) {
    bool done;
    const wsgemm_status status = try_wgmma(h, p, device, stream, &done);
    if (status || done) return status;
  }
  const wsgemm_status status = make_plan(h, p, device, false, &plan);
  if (status) return status;
  return plan.split.n_parts > 1 ? launch_split(h, device, stream, &plan) : launch_tiled(h, device, stream, &plan);
}

wsgemm_status ws_cuda_gemm(wsgemm_handle *h, const ws_problem *p, int device_ordinal) {
  wsgemm_status status;
  ws_device *device = ws_device_get(h, device_ordinal, &status);
  if (!device) return status;
  CUcontext current = NULL;
  CUdevice current_device = -1;
  if (ws_cuda.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current) ws_cuda.cuCtxGetDevice(&current_device);
  const bool pushes = current_device != device->ordinal;
  CUresult result = pushes ? ws_cuda.cuCtxPushCurrent(device->context) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return ws_fail_cuda(h, "context", result);
  CUstream stream = (CUstream)atomic_load_explicit(&h->stream, memory_order_relaxed);
  if (!ws_product_is_zero(p))
    status = launch_product(h, p, device, stream);
  else if (!p->scale.beta_one)
    status = launch_scale(h, p, device, stream);
  if (pushes) ws_cuda.cuCtxPopCurrent(&current);
  return status;
}

/* ---- workspace --------------------------------------------------------------------------------------------------------------- */

wsgemm_status ws_cuda_workspace_bytes(wsgemm_handle *h, const ws_problem *p, int device_ordinal, size_t *bytes) {
  wsgemm_status status;
  ws_device *device = ws_device_get(h, device_ordinal, &status);
  if (device && wants_wgmma(h, p, device))
    *bytes = (size_t)ws_copies_bytes(p, &(ws_pieces){p->m, p->n, p->batch_count});
  else if (device)
    *bytes = (size_t)ws_split_for(p, device->n_sms).bytes;
  return status;
}

wsgemm_status ws_cuda_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes) {
  enum { ALIGN = 256 };
  int device = -1;
  if (workspace) {
    const ws_location l = ws_locate(workspace);
    if (l.unknown) return ws_fail_unknown(h, l.unknown);
    if (!l.is_device) return ws_fail(h, WSGEMM_INVALID_POINTER, "workspace is not device memory");
    if ((uintptr_t)workspace % ALIGN != 0)
      return ws_fail(h, WSGEMM_INVALID_VALUE, "workspace is aligned to less than %d bytes", ALIGN);
    device = l.device;
  }
  atomic_store(&h->workspace, workspace);
  atomic_store(&h->workspace_bytes, bytes);
  atomic_store(&h->workspace_device, device);
  return WSGEMM_SUCCESS;
}

/* ---- words ------------------------------------------------------------------------------------------------------------------- */

void ws_cuda_explain(wsgemm_handle *h, const ws_problem *p, int device_ordinal, ws_text *t) {
  wsgemm_status status;
  ws_device *device = ws_device_get(h, device_ordinal, &status);
  gpu_plan plan;
  CUcontext popped;
  if (device && ws_cuda.cuCtxPushCurrent(device->context) == CUDA_SUCCESS) {
    status = make_plan(h, p, device, wants_wgmma(h, p, device), &plan);
    ws_cuda.cuCtxPopCurrent(&popped);
  } else if (device) {
    status = ws_fail(h, WSGEMM_DEVICE_ERROR, "the context of device %d cannot be used", device_ordinal);
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
  if (is_split)
    ws_text_add(t, "k_parts: %lld of %lld\nworkspace_bytes: %lld\n", (long long)plan.split.n_parts, (long long)plan.split.part_k,
                (long long)plan.split.bytes);
  if (row->kind == WS_ROW_WGMMA)
    ws_text_add(t, "cluster: %d\noperand_copies_bytes: %.0f\n", row->cluster,
                ws_copies_bytes(p, &(ws_pieces){p->m, p->n, p->batch_count}));
  if (ws_is_half(p->type))
    ws_text_add(t, "arithmetic: exact products of %s, summed in FP32 by the matrix units, then one rounding to %s\n",
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
