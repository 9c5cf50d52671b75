/* lower.c - see lower.h. */
#include "cuda/host/lower.h"

#include "cuda/host/operand_copies.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/slices.h"
#include "cuda/host/tma_maps.h"
#include "cuda/host/wgmma_model.h"

/* ---- rows ------------------------------------------------------------------------------------ */

/* Who works on what, and how many workers (blocks, or clusters of them) there are. If every worker
 * has one item, there is nothing to steal. */
static ws_launch *add_row(const ws_gpu_plan *plan, const ws_device *device, ws_begin begin, ws_launch_list *list) {
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  const int64_t n_resident = row->kind == WS_ROW_WGMMA
                                 ? (int64_t)plan->kernel->blocks_per_sm * ws_most_clusters(row->cluster, device->n_sms)
                                 : (int64_t)plan->kernel->blocks_per_sm * device->n_sms / row->cluster;
  const bool is_queue = plan->sched == WS_SCHED_QUEUE, steals = is_queue && plan->n_items > n_resident;
  const ws_sched without_state = is_queue ? WS_SCHED_STATIC : plan->sched;
  const int64_t n_workers = ws_sched_grid(without_state, plan->n_items, n_resident, 0, plan->fixed_work);
  ws_launch *l =
      ws_launch_add(list, row->name, plan->kernel->kernel, n_workers * row->cluster, row->n_threads, row->shared_bytes, begin);
  l->cluster = row->cluster;
  if (steals) {
    const int64_t n_thieves = ws_sched_grid(WS_SCHED_QUEUE, plan->n_items, n_resident, plan->quantum, plan->fixed_work);
    l->stealing = (ws_stealing){true, plan->quantum, n_resident, n_thieves * row->cluster};
  }
  return l;
}

/* The product that is launched: rows by maps may compute C transposed (ws_maps_are_across). */
static ws_problem launched_problem(const ws_gpu_plan *plan) {
  return plan->is_across ? ws_problem_across(plan->problem) : *plan->problem;
}

static ws_gemm_args args_of_plan(const ws_gpu_plan *plan) {
  const ws_problem p = launched_problem(plan);
  ws_gemm_args args = ws_gemm_args_of(&p);
  args.grid = plan->grid;
  args.sched.n_items = (uint32_t)plan->n_items;
  return args;
}

/* Of rows that work out an item's place in every thread. */
static void set_divisors(const ws_gpu_plan *plan, ws_gemm_args *args) {
  args->tiles = ws_tile_divisors_of(&plan->grid), args->sharers = ws_divisor_of(ws_cuda_row_at(plan->row_idx)->cluster);
}

/* All of them are set: the rest is the arguments' of other kernels. */
static void set_copied(const ws_problem *p, ws_copied_args *args) {
  const bool of_b = p->b.structure != WS_GENERAL;
  const ws_matrix *structured = of_b ? &p->b : &p->a;
  args->gemm.structured = structured->structure == WS_GENERAL ? 0 : of_b ? 2 : 1;
  args->structure = structured->structure, args->stored = (int32_t)ws_triangle_of(structured);
  args->is_twice = ws_has_second(p);
}

static ws_split_args parts_of(const ws_split *split) {
  return (ws_split_args){.n_splits = (int32_t)split->n_splits, .k_per_split = split->k_per_split, .ld = split->ld};
}

/* All blocks wait for each other, so they are launched as one that fits the device as a whole
 * (cooperative): two such launches on two streams cannot each hold half of it. Who may steal what
 * is no question then. */
static void add_split(const ws_gpu_plan *plan, const ws_device *device, ws_launch_list *list) {
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  const int64_t n_resident = (int64_t)plan->kernel->blocks_per_sm * device->n_sms;
  ws_launch *l = ws_launch_add(list, row->name, plan->kernel->kernel, ws_min(plan->n_items, n_resident), row->n_threads,
                               row->shared_bytes, WS_BEGIN_COOPERATIVE);
  l->args.gemm = args_of_plan(plan);
  l->args.gemm.split = parts_of(&plan->split);
  l->sums_bytes = plan->split.bytes;
}

/* Every block works on all parts of its tile, one after the other: the same sums in the same order.
 * No block waits for another, so Cluster Launch Control may hand out the tiles. */
wsgemm_status ws_lower_without_sums(wsgemm_handle *h, const ws_gemm_plan *whole, ws_device *device, ws_launch_list *list) {
  const ws_gpu_plan *plan = &whole->row;
  const int row_idx = ws_gpu_plan_smallest_row(plan);
  const ws_cuda_row *row = ws_cuda_row_at(row_idx);
  const ws_tile_grid grid = ws_gpu_plan_grid(plan->problem, row, 1);
  const int64_t n_items = ws_gpu_plan_items(plan->problem, row, &grid);
  CUresult result;
  const bool is_clc = plan->sched == WS_SCHED_CLC || plan->sched == WS_SCHED_FOREACH;
  const ws_device_kernel *kernel = ws_device_kernel_get(device, row_idx, is_clc ? WS_ENTRY_SPLIT_CLC : WS_ENTRY_SPLIT, &result);
  if (!kernel) return ws_fail_kernel(h, row->name, device, result);
  list->n = 0;
  ws_launch *l = ws_launch_add(list, row->name, kernel->kernel, n_items, row->n_threads, row->shared_bytes + row->total_bytes,
                               WS_BEGIN_STREAM_ORDERED);
  l->args.gemm = args_of_plan(plan);
  l->args.gemm.split = parts_of(&plan->split), l->args.gemm.grid = grid;
  l->args.gemm.sched.n_items = (uint32_t)n_items;
  return WSGEMM_SUCCESS;
}

ws_launch *ws_add_small(ws_launch_list *list, const ws_cuda_row *row, CUkernel kernel, const ws_small_args *args,
                        const ws_small_shape *shape, const ws_device *device) {
  const int64_t n_resident = (int64_t)shape->blocks * device->n_sms;
  ws_launch *l = ws_launch_add(list, row->name, kernel, ws_min(args->gemm.sched.n_items, n_resident), shape->n_threads,
                               shape->shared_bytes, WS_BEGIN_STREAM_ORDERED);
  l->args.small = *args;
  return l;
}

static void add_small(const ws_gpu_plan *plan, const ws_device *device, ws_launch_list *list) {
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  ws_small_args args;
  const ws_small_shape shape = ws_small_args_of(plan->problem, row, &args);
  ws_add_small(list, row, plan->kernel->kernel, &args, &shape, device);
}

wsgemm_status ws_lower_product(wsgemm_handle *h, const ws_gemm_plan *plan, const ws_device *device, ws_launch_list *list) {
  CUresult result = CUDA_SUCCESS;
  list->n = 0;
  if (plan->row.kind == WS_ROW_SMALL) {
    add_small(&plan->row, device, list);
  } else if (plan->row.split.n_splits > 1) {
    add_split(&plan->row, device, list);
  } else {
    const ws_cuda_row *row = ws_cuda_row_at(plan->row.row_idx);
    ws_launch *l = add_row(&plan->row, device, WS_BEGIN_STREAM_ORDERED, list);
    l->args.gemm = args_of_plan(&plan->row);
    if (ws_is_by_copies(plan->row.kind)) set_divisors(&plan->row, &l->args.gemm);
    if (plan->row.kind == WS_ROW_DMMA) set_copied(plan->row.problem, &l->args.copied);
    if (row->takes_maps) {
      const ws_problem p = launched_problem(&plan->row);
      result = ws_map_args_make(&p, row, &l->args.maps);
    }
  }
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(h, "tensor map", result);
}

/* ---- rows that take their operands by tensor maps -------------------------------------------- */

/* The region of C is the whole problem's. */
static void place_region(ws_region_args *region, const ws_chunk_place *place) {
  region->first_row = place->m, region->first_column = place->n;
}

/* With A and B where TMA takes them; scales: of slices, or NULL. */
static wsgemm_status add_wgmma(wsgemm_handle *h, const ws_gpu_plan *of_whole, const ws_problem *chunk,
                               const ws_chunk_place *place, const ws_strided *a, const ws_strided *b,
                               const ws_wgmma_scales *scales, const ws_device *device, ws_launch_list *list) {
  const ws_gpu_plan plan = ws_gpu_plan_of_chunk(of_whole, chunk);
  ws_launch *l = add_row(&plan, device, WS_BEGIN_PDL, list);
  ws_wgmma_args *args = &l->args.wgmma;
  *args = (ws_wgmma_args){.grid = plan.grid, .sched = {.n_items = (uint32_t)plan.n_items}, .is_across = plan.is_across};
  if (scales) args->scales = *scales;
  l->is_by_map = true;
  const CUresult result = ws_wgmma_args_make(chunk, a, b, ws_cuda_row_at(plan.row_idx), args);
  place_region(&args->region, place);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(h, "tensor map", result);
}

static wsgemm_status add_copied(wsgemm_handle *h, const ws_gemm_plan *plan, const ws_problem *chunk, const ws_chunk_place *place,
                                char *a_at, char *b_at, ws_device *device, ws_launch_list *list) {
  ws_strided a = ws_strided_a(chunk), b = ws_strided_b(chunk);
  ws_align_copy_args copies = {0};
  ws_align_copy_operand unneeded;
  if (!ws_tma_takes_as_is(&a)) ws_align_copy_to(&a, a_at, place->new_a ? &copies.operand[0] : &unneeded);
  if (!ws_tma_takes_as_is(&b)) ws_align_copy_to(&b, b_at, place->new_b ? &copies.operand[1] : &unneeded);
  wsgemm_status status = WSGEMM_SUCCESS;
  if (copies.operand[0].n_lines + copies.operand[1].n_lines > 0) status = ws_add_align_copy(h, &copies, device, list);
  return status ? status : add_wgmma(h, &plan->row, chunk, place, &a, &b, NULL, device, list);
}

static wsgemm_status add_slices_and_product(wsgemm_handle *h, const ws_gpu_plan *row, const ws_problem *chunk,
                                            const ws_chunk_place *place, const ws_sliced *sliced, ws_device *device,
                                            ws_launch_list *list) {
  wsgemm_status status = WSGEMM_SUCCESS;
  if (ws_slice_parts(&sliced->args) > 0) status = ws_add_slices(h, &sliced->args, device, list);
  return status ? status : add_wgmma(h, row, chunk, place, &sliced->a, &sliced->b, &sliced->scales, device, list);
}

/* What the later launches have to do, if anything, only the device knows. */
static wsgemm_status add_sliced(wsgemm_handle *h, const ws_gemm_plan *plan, const ws_problem *chunk, const ws_chunk_place *place,
                                char *a_at, char *b_at, ws_device *device, ws_launch_list *list) {
  const int n_first = plan->n_slices;
  const ws_sliced sliced = ws_sliced_make(chunk, place, n_first, n_first, a_at, b_at);
  wsgemm_status status = add_slices_and_product(h, &plan->row, chunk, place, &sliced, device, list);
  if (!status && n_first == 2) {
    const ws_sliced in_three = ws_sliced_make(chunk, place, n_first, 3, a_at, b_at);
    status = add_slices_and_product(h, &plan->row_of_three, chunk, place, &in_three, device, list);
  }
  if (status) return status;
  ws_problem of_floats = *chunk;
  ws_expand_args expand;
  if (ws_expand(&sliced, &of_floats, &expand)) status = ws_add_expand(h, chunk->a.type, &expand, device, list);
  if (status) return status;
  ws_fallback_args args = ws_fallback_args_of(&of_floats, &sliced);
  place_region(&args.gemm.region, place);
  return ws_add_fallback(h, chunk->a.type, &args, device, list);
}

wsgemm_status ws_lower_chunk(wsgemm_handle *h, const ws_gemm_plan *plan, const ws_problem *chunk, const ws_chunk_place *place,
                             char *a_at, char *b_at, ws_device *device, ws_launch_list *list) {
  list->n = 0;
  /* Nothing of it is wanted, and neither operand's state is to be begun or counted with it. */
  const bool is_wanted = ws_region_meets(chunk->c.region, place->m, chunk->m, place->n, chunk->n);
  if (!is_wanted && !place->new_a && place->m > 0) return WSGEMM_SUCCESS;
  return (plan->n_slices > 0 ? add_sliced : add_copied)(h, plan, chunk, place, a_at, b_at, device, list);
}

wsgemm_status ws_lower_packing(wsgemm_handle *h, const wsgemm_packed *packed, ws_device *device, ws_launch_list *list) {
  list->n = 0;
  ws_slice_args args = ws_packing_args(packed, packed->n_slices);
  const wsgemm_status status = ws_add_slices(h, &args, device, list);
  if (status || packed->n_slices != 2) return status;
  args = ws_packing_args(packed, 3); /* marks what three slices would not do for */
  return ws_add_slices(h, &args, device, list);
}

/* ---- before and after ------------------------------------------------------------------------ */

wsgemm_status ws_lower_first(wsgemm_handle *h, ws_gemm_plan *plan, char *residual_at, ws_device *device, ws_launch_list *list) {
  list->n = 0;
  if (plan->residual_bytes == 0) return WSGEMM_SUCCESS;
  ws_align_copy_args args = {0};
  ws_copy_c(&plan->steps, residual_at, &args.operand[0]);
  return ws_add_align_copy(h, &args, device, list);
}

wsgemm_status ws_lower_last(wsgemm_handle *h, const ws_gemm_plan *plan, ws_device *device, ws_launch_list *list) {
  const ws_problem *p = plan->problem;
  wsgemm_status status = WSGEMM_SUCCESS;
  list->n = 0;
  if (plan->has_steps) status = ws_add_scale(h, &plan->steps, device, list);
  if (!status && p->has_epilogue && p->epilogue.column_sums) status = ws_add_column_sums(h, p, device, list);
  return status;
}
