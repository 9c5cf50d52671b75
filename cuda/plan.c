/* plan.c - see plan.h: the rows that can run a product, and the one that a model of their speed prefers. */
#include "plan.h"

#include "problem_args.h"
#include "rows.h"
#include "sliced.h"
#include "wgmma_maps.h"

ws_tile_grid ws_gpu_plan_grid(const ws_problem *p, const ws_cuda_row *row, int64_t n_parts) {
  return (ws_tile_grid){.n_batch = p->batch_count * n_parts,
                        .n_rows = ws_ceil_div(p->m, row->bm),
                        .n_cols = ws_ceil_div(p->n, row->bn),
                        .coarse = row->coarse * row->cluster / row->k_parts,
                        .group = 8};
}

/* The share of its full speed that a multiprocessor reaches with so many warps: fits `--suite rows` (H200, 2026-11-21). */
static double share_of_speed(double warps, double half) { return warps / (warps + half); }

/* What copies of a block of A and of B cost for each k, in the unit of row_cost: those by single elements. Beside multiply-adds they take
 * issue slots; so many for each element along m or n (H200, 2026-11-21; d and z keep such operands as they are or, misaligned, were not
 * fitted). */
static double copy_cost(const ws_gpu_plan *plan, const ws_cuda_row *row) {
  static const double single[WS_N_TYPES] = {[WSGEMM_F32] = 0.06, [WSGEMM_C32] = 0.03};
  return single[row->type] * ((plan->single_a ? row->bm : 0) + (plan->single_b ? row->bn * row->coarse : 0));
}

/* The same unit as row_cost's. A multiprocessor has one block, so the last round takes as long as the others; an item costs as much again as
 * so many k: its first stage comes late, and its sums are stored (H200, 2026-11-22). */
static double wgmma_cost(const ws_problem *p, const ws_cuda_row *row, int64_t n_items, int n_sms) {
  const double shared_a_k = row->cluster > row->k_parts ? 40 : 0; /* blocks that load for each other also begin together */
  const double item_k = (row->turns ? 100 : ws_is_simple(p) ? 256 : 850) + shared_a_k;
  return (double)ws_ceil_div(n_items, ws_max(1, n_sms / row->cluster)) * row->bm * row->bn * row->coarse / row->rate *
         (1.0 / row->k_parts + item_k / ((double)p->k * ws_types[p->type].n_real));
}

/* Time in no particular unit: rounds of as many items as fit, then what is left, spread evenly (ws_sched_spread_last). */
static double row_cost(const ws_gpu_plan *plan, const ws_cuda_row *row, int n_sms) {
  const ws_tile_grid grid = ws_gpu_plan_grid(plan->problem, row, plan->split.n_parts);
  if (ws_is_by_map(row->kind)) return wgmma_cost(plan->problem, row, ws_tile_items(&grid), n_sms);
  const int64_t n_items = ws_tile_items(&grid), places = (int64_t)n_sms * row->blocks;
  const double warps = row->n_threads / 32.0, half = row->type == WSGEMM_F64 || row->type == WSGEMM_C64 ? 3 : 2;
  const double item = (double)row->bm * row->bn * row->coarse / row->rate + copy_cost(plan, row);
  const double each = (double)ws_ceil_div(n_items % places, n_sms);
  const double last = each > 0 ? each * share_of_speed(row->blocks * warps, half) / share_of_speed(each * warps, half) : 0;
  return ((double)(n_items / places) * row->blocks + last) * item;
}

static bool can_run(const ws_cuda_row *row, const ws_gpu_plan *plan) {
  const ws_problem *p = plan->problem;
  if (row->type != p->type || (plan->split.n_parts > 1 && !row->splits)) return false;
  switch (row->kind) {
  case WS_ROW_VECTOR:
    return row->bn == 1 ? p->n == 1 : p->m == 1;
  case WS_ROW_WGMMA:
    return plan->kind == WS_ROW_WGMMA && (!row->is_plain || ws_is_plain(p)) &&
           (row->k_parts == 1 || (!plan->is_invariant && p->k >= WS_WGMMA_LEAST_K_IN_PARTS));
  case WS_ROW_SLICED:
    return plan->kind == WS_ROW_SLICED && row->n_slices == plan->n_slices;
  default:
    return true;
  }
}

/* Matrix-vector products have rows of their own; so have 16-bit types where there are matrix units for them. */
static bool is_made_for(const ws_cuda_row *row, const ws_gpu_plan *plan) { return can_run(row, plan) && row->kind == plan->kind; }

/* The forced row if it can run this, else the one with the least cost: of those made for it; of those with the COARSE_FACTOR that the
 * handle asks for, if there are any. */
static int choose_row(wsgemm_handle *h, const ws_gpu_plan *plan, const ws_device *device) {
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

int ws_gpu_plan_smallest_row(const ws_gpu_plan *plan) {
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

/* By elements of its own, not 16 bytes at a time. */
static bool is_single(ws_operand op) { return op.mode == WS_COPY_ALONG_MN || op.mode == WS_COPY_ALONG_K; }

static bool is_invariant(wsgemm_handle *h) { return atomic_load_explicit(&h->invariant, memory_order_relaxed) != 0; }

/* ---- what tuning has found ----------------------------------------------------------------------------------------------------- */

static ws_numerics numerics_of(const ws_gpu_plan *plan, const ws_cuda_row *row) {
  static const ws_numerics of_slices[] = {WS_NUMERICS_CHAIN, WS_NUMERICS_F16X1, WS_NUMERICS_F16X3, WS_NUMERICS_BF16X6};
  switch (row->kind) {
  case WS_ROW_VECTOR:
    return WS_NUMERICS_VECTOR;
  case WS_ROW_WGMMA:
    return row->k_parts > 1 ? WS_NUMERICS_WGMMA_K2 : WS_NUMERICS_WGMMA;
  case WS_ROW_SLICED:
    return of_slices[row->n_slices];
  case WS_ROW_TILED:
    break;
  }
  return plan->split.n_parts > 1 ? WS_NUMERICS_PARTS : WS_NUMERICS_CHAIN;
}

bool ws_gpu_plan_may_take(const ws_gpu_plan *plan, int row_idx) {
  const ws_cuda_row *row = ws_cuda_row_at(row_idx);
  return is_made_for(row, plan) && numerics_of(plan, row) == numerics_of(plan, ws_cuda_row_at(plan->row_idx));
}

double ws_gpu_plan_cost(const ws_gpu_plan *plan, int row_idx, const ws_device *device) {
  return row_cost(plan, ws_cuda_row_at(row_idx), device->n_sms);
}

ws_tuning_kind ws_gpu_tuning_kind(const ws_gpu_plan *plan) {
  const ws_problem *p = plan->problem;
  const bool is_by_map = ws_is_by_map(plan->kind); /* copied, if need be */
  return (ws_tuning_kind){.type = p->type,
                          .type_c = p->type_c,
                          .numerics = numerics_of(plan, ws_cuda_row_at(plan->row_idx)),
                          .a_trans = p->a_trans,
                          .b_trans = p->b_trans,
                          .single_a = !is_by_map && is_single(ws_operand_a(p)),
                          .single_b = !is_by_map && is_single(ws_operand_b(p))};
}

/* What was found for another shape is taken only where the model does not think much worse of it; and no row that the handle does not want. */
static bool may_take(wsgemm_handle *h, const ws_gpu_plan *plan, const ws_device *device, const ws_tuned *tuned) {
  const int row_idx = tuned->tuning->row - 1, coarse = atomic_load_explicit(&h->coarse_factor, memory_order_relaxed);
  const double most_of_model = 1.1;
  if (row_idx < 0 || row_idx == plan->row_idx) return true;
  if (atomic_load_explicit(&h->cuda_kernel[plan->problem->type], memory_order_relaxed)) return false; /* by name */
  if (!ws_gpu_plan_may_take(plan, row_idx) || (coarse > 0 && ws_cuda_row_at(row_idx)->coarse != coarse)) return false;
  return tuned->is_exact ||
         ws_gpu_plan_cost(plan, row_idx, device) <= most_of_model * ws_gpu_plan_cost(plan, plan->row_idx, device);
}

/* For a plan whose row is the model's. */
static ws_tuned tuned_for(wsgemm_handle *h, const ws_gpu_plan *plan, const ws_device *device) {
  const ws_problem *p = plan->problem;
  const int slot = 1 + device->ordinal;
  const ws_tuned of_model = {&ws_tuning_of_model, WS_TUNED_BY_MODEL, false};
  ws_tuned tuned = {p->tuning, WS_TUNED_BY_SEARCH, true};
  if (!p->tuning) {
    if (!ws_tune_has_table(slot)) return of_model;
    const ws_tuning_kind kind = ws_gpu_tuning_kind(plan);
    const ws_tuning_shape shape = {p->m, p->n, p->k, p->batch_count};
    tuned = ws_tune_find(slot, &kind, &shape);
  }
  return may_take(h, plan, device, &tuned) ? tuned : of_model;
}

ws_row_kind ws_gpu_plain_kind(wsgemm_handle *h, const ws_problem *p) {
  return ws_is_matrix_vector(p) && !is_invariant(h) ? WS_ROW_VECTOR : WS_ROW_TILED;
}

/* In invariant mode no model of the time may choose, as it looks at m and n. */
static bool wants_slices(wsgemm_handle *h, const ws_problem *p, int n_slices, const ws_device *device,
                         const ws_cuda_row *forced) {
  if (n_slices == 0 || !ws_slices_fit(p) || is_invariant(h)) return false;
  if (forced) return forced->n_slices == n_slices || (forced->n_slices == 3 && n_slices == 2); /* three come after two */
  return ws_gpu_plain_kind(h, p) == WS_ROW_TILED && ws_slices_gain(p, n_slices, device);
}

int ws_gpu_slices_to_pack(wsgemm_handle *h, const ws_problem *p, const ws_device *device) {
  return device->cc == 90 && !is_invariant(h) && ws_slices_fit(p) ? ws_n_slices(h, p) : 0;
}

ws_row_kind ws_gpu_kind_for(wsgemm_handle *h, const ws_problem *p, const ws_device *device, int *n_slices) {
  const int forced_idx = atomic_load_explicit(&h->cuda_kernel[p->type], memory_order_relaxed);
  const ws_cuda_row *forced = forced_idx ? ws_cuda_row_at(forced_idx - 1) : NULL;
  const ws_row_kind plain = ws_gpu_plain_kind(h, p);
  *n_slices = 0;
  if (device->cc != 90) return plain;
  const int wanted = ws_n_slices(h, p);
  if (wants_slices(h, p, wanted, device, forced)) {
    *n_slices = wanted;
    return WS_ROW_SLICED;
  }
  const bool wants_wgmma =
      ws_is_half(p->type) && ws_wgmma_takes(p) && (forced ? forced->kind == WS_ROW_WGMMA : plain == WS_ROW_TILED);
  return wants_wgmma ? WS_ROW_WGMMA : plain;
}

wsgemm_status ws_gpu_plan_make(wsgemm_handle *h, const ws_problem *p, ws_device *device, ws_row_kind kind, int n_slices,
                               ws_gpu_plan *plan) {
  *plan = (ws_gpu_plan){.problem = p};
  plan->is_invariant = is_invariant(h);
  plan->kind = kind;
  plan->n_slices = n_slices;
  plan->split = !ws_is_by_map(kind) && !plan->is_invariant ? ws_split_for(p, device->n_sms) : ws_split_into(p, 1);
  plan->single_a = ws_operand_a(p).mode != WS_COPY_VECTORS_MN, plan->single_b = ws_operand_b(p).mode != WS_COPY_VECTORS_MN;
  plan->row_idx = choose_row(h, plan, device);
  plan->tuned = tuned_for(h, plan, device);
  const ws_tuning *tuning = plan->tuned.tuning;
  if (tuning->row > 0) plan->row_idx = tuning->row - 1;
  const int forced_policy = atomic_load_explicit(&h->policy, memory_order_relaxed),
            quantum = atomic_load_explicit(&h->quantum, memory_order_relaxed);
  const wsgemm_policy policy = (wsgemm_policy)(forced_policy != WSGEMM_POLICY_AUTO ? forced_policy : tuning->policy);
  plan->quantum = (uint32_t)(quantum > 0 ? quantum : tuning->quantum);
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  plan->sched = sched_for(policy, device);
  plan->fixed_work = policy == WSGEMM_POLICY_FIXED_WORK;
  CUresult result;
  plan->kernel =
      ws_device_kernel_get(device, plan->row_idx, plan->split.n_parts > 1 ? WS_ENTRY_SPLIT : entry_of(plan->sched), &result);
  if (!plan->kernel) return ws_fail_kernel(h, row->name, device, result);
  plan->grid = ws_gpu_plan_grid(p, row, plan->split.n_parts);
  if (tuning->order > 0) plan->grid.group = tuning->order;
  plan->n_items = ws_tile_items(&plan->grid);
  if (plan->n_items > WS_SCHED_MAX_ITEMS / row->cluster)
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "%lld work items of kernel %s; one launch takes %lld", (long long)plan->n_items,
                   row->name, (long long)WS_SCHED_MAX_ITEMS / row->cluster);
  return WSGEMM_SUCCESS;
}
