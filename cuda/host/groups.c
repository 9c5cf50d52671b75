/* groups.c - see groups.h: the row whose kernel takes all groups, how many blocks they may need, and the
 * arguments. Every group has the same row, chosen by what the host knows of their sizes. */
#include "cuda/host/groups.h"

#include <math.h>

#include "core/status.h"
#include "cuda/host/lower.h"
#include "cuda/host/plan.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/slices.h"
#include "cuda/rows/parts.h"
#include "cuda/rows/tf32_rows.h"

static bool is_ragged(const ws_groups *groups) { return groups->ragged != WSGEMM_RAGGED_NONE; }

/* NULL: a kernel may take them; else what it lacks, in words. */
static const char *lack_of(const ws_executor *x, const ws_groups *groups) {
  const ws_problem *p = &groups->of_all;
  const int64_t most = INT64_C(1) << 30;
  if (x->device->cc != WS_BY_MAP_CC) return "a GPU of compute capability 9.0";
  if (x->call->settings.invariant) return "products outside of invariant mode";
  if (p->m >= most || p->n >= most || p->k >= most || groups->count >= most) return "sizes below 2^30";
  return NULL;
}

/* ---- which row ----------------------------------------------------------------------------------- */

/* Whether all groups have as many tiles, however large these are. */
static bool have_one_size(const ws_groups *groups) {
  return !groups->m && !groups->n && (!is_ragged(groups) || groups->ragged == WSGEMM_RAGGED_K);
}

/* A batch that is as large as they are together, about: of sizes that the host does not know, at most. */
static ws_problem batch_like(const ws_groups *groups) {
  ws_problem p = groups->of_all;
  p.batch_count = groups->count;
  int64_t *const length = groups->ragged == WSGEMM_RAGGED_M   ? &p.m
                          : groups->ragged == WSGEMM_RAGGED_N ? &p.n
                          : groups->ragged == WSGEMM_RAGGED_K ? &p.k
                                                              : NULL;
  if (length) *length = ws_max(1, ws_ceil_div(*length, groups->count));
  return p;
}

/* Small products of one size at pointers have the rows for batches of such. */
static bool may_be_small(const ws_groups *groups, const ws_problem *batch) {
  const bool is_batch = ws_groups_are_alike(groups) && groups->a && groups->b && groups->c && !groups->alpha;
  return is_batch && ws_small_may_take(batch) && !ws_has_steps(batch) && !ws_product_is_zero(batch);
}

static bool may_take(const ws_executor *x, const ws_groups *groups, const ws_problem *batch, const ws_cuda_row *row) {
  if (!row->of_groups || row->type != batch->a.type) return false;
  if (row->kind == WS_ROW_SMALL)
    return may_be_small(groups, batch) && ws_small_takes(batch, row) && (row->is_fma || !ws_gpu_takes_fma(x->call, batch));
  if (row->kind == WS_ROW_DIRECT) return !ws_gpu_takes_fma(x->call, batch);
  if (row->kind == WS_ROW_DMMA) return true;
  const int n_slices = ws_n_slices(x->call, batch);
  return n_slices > 0 && row->n_slices >= n_slices;
}

/* The one with the least time: of small rows, or of all others; -1: none. Of clusters that not every device has room for none. */
static int best_row(const ws_executor *x, const ws_groups *groups, const ws_problem *batch, bool of_small) {
  /* Slices are not made of so few (gemm_tf32.cuh), and rows by multiply-adds, which complex floats have not, have more blocks an SM. */
  const bool has_few_k = batch->a.type == WSGEMM_F32 && batch->k < WS_TF32W_LEAST_K(1);
  int best = -1;
  double least_us = HUGE_VAL;
  for (int r = 0; r < ws_cuda_row_count(); r++) {
    const ws_cuda_row *row = ws_cuda_row_at(r);
    if ((row->kind == WS_ROW_SMALL) != of_small || row->cluster > WS_PORTABLE_PARTS) continue;
    if (!may_take(x, groups, batch, row) || (has_few_k && row->kind == WS_ROW_TF32)) continue;
    const ws_gpu_plan plan = {.problem = batch, .kind = row->kind, .n_slices = row->n_slices};
    const double us = ws_gpu_plan_us(&plan, r, x->device);
    if (us < least_us) best = r, least_us = us;
  }
  return best;
}

/* The forced one if it may take them, else the best; small rows before all others where they are quick, but none of them has threads
 * for any matrix. -1: none. */
static int row_for(const ws_executor *x, const ws_groups *groups) {
  const int forced = ws_forced_row(x->call->forced[WS_CUDA], groups->of_all.a.type);
  const ws_problem batch = batch_like(groups);
  if (forced && may_take(x, groups, &batch, ws_cuda_row_at(forced - 1))) return forced - 1;
  const bool are_small = may_be_small(groups, &batch) && ws_small_is_quick(&batch);
  const int small = are_small ? best_row(x, groups, &batch, true) : -1;
  return small >= 0 ? small : best_row(x, groups, &batch, false);
}

/* Of groups that the host knows: whether one launch is worth more than the best row of each. Arrays are in host memory, and only ends are
 * given to the kernel. */
static bool are_better_together(const ws_executor *x, const ws_groups *groups) {
  enum { TILE = 128 };
  const ws_problem batch = batch_like(groups);
  const int64_t tiles = ws_ceil_div(batch.m, TILE) * ws_ceil_div(batch.n, TILE);
  return is_ragged(groups) && !ws_groups_have_arrays(groups) && groups->count > 1 && groups->count <= WS_GROUPED_MOST_GIVEN &&
         ws_forced_row(x->call->forced[WS_CUDA], batch.a.type) == 0 && 2 * tiles <= x->device->n_sms;
}

/* ---- blocks -------------------------------------------------------------------------------------- */

/* Tiles of so many groups along their rows, or columns: at most, if they are ragged. */
static double tiles_along(int64_t size, int tile, int64_t count, bool is_of_ragged) {
  if (!is_of_ragged) return (double)ws_ceil_div(size, tile);
  return (double)ws_min(size, size / tile + count); /* each group adds less than one */
}

static double blocks_for(const ws_groups *groups, const ws_cuda_row *row) {
  const ws_problem *p = &groups->of_all;
  const bool of_m = groups->ragged == WSGEMM_RAGGED_M, of_n = groups->ragged == WSGEMM_RAGGED_N;
  return tiles_along(p->m, row->bm, groups->count, of_m) * tiles_along(p->n, row->bn, groups->count, of_n) *
         (of_m || of_n ? 1 : (double)groups->count) * row->cluster;
}

/* ---- arguments ----------------------------------------------------------------------------------- */

static ws_group_args args_of(const ws_groups *groups, const ws_cuda_row *row) {
  ws_problem p = groups->of_all;
  const bool of_m = groups->ragged == WSGEMM_RAGGED_M, of_n = groups->ragged == WSGEMM_RAGGED_N,
             of_k = groups->ragged == WSGEMM_RAGGED_K;
  ws_group_args args = {.common.gemm = ws_gemm_args_of(&p)};
  const int bytes = ws_types[p.a.type].bytes;
  args.common.gemm.sharers = ws_divisor_of(row->cluster);
  args.a = (ws_group_matrix){p.a.data, groups->a, groups->lda, p.a.ld, of_m || of_k ? 0 : p.a.stride, p.a.trans, bytes};
  args.b = (ws_group_matrix){p.b.data, groups->b, groups->ldb, p.b.ld, of_n || of_k ? 0 : p.b.stride, !p.b.trans, bytes};
  args.c = (ws_group_matrix){.data = p.c.data,
                             .array = (const void *const *)groups->c,
                             .ld_array = groups->ldc,
                             .ld = p.c.ld,
                             .stride = of_m || of_n ? 0 : p.c.stride,
                             .bytes = ws_types[p.c.type].bytes};
  args.alpha = groups->alpha, args.beta = groups->beta;
  args.ends = groups->arrays_are_here ? NULL : groups->ends;
  args.m = groups->m, args.n = groups->n, args.k = groups->k;
  args.ragged = (int32_t)groups->ragged, args.index_bytes = groups->index_bytes;
  args.n_groups = (int32_t)groups->count;
  args.reads_operands = !ws_product_is_zero(&p);
  args.bias_bytes = p.has_epilogue ? ws_types[p.epilogue.type_bias].bytes : 0;
  if (have_one_size(groups)) args.product_tiles = ws_divisor_of(ws_ceil_div(p.m, row->bm) * ws_ceil_div(p.n, row->bn));
  return args;
}

ws_grouped_ends ws_given_ends(const ws_groups *groups) {
  ws_grouped_ends ends = {{0}};
  for (int64_t i = 0; groups->arrays_are_here && i < groups->count; i++) ends.end[i] = (int32_t)ws_group_end(groups, i);
  return ends;
}

static wsgemm_status run_small(ws_executor *x, const ws_groups *groups, const ws_cuda_row *row, CUkernel kernel,
                               ws_launch_list *list) {
  const ws_problem batch = batch_like(groups);
  const ws_small_places places = {groups->a, groups->b, groups->c};
  ws_small_args args;
  const ws_small_shape shape = ws_small_args_at_places(&batch, row, &args);
  ws_add_small(list, row, kernel, &args, &shape, x->device)->more = &places;
  return ws_execute(x, list);
}

wsgemm_status ws_run_groups(ws_executor *x, const ws_groups *groups) {
  wsgemm_handle *h = x->call->h;
  if (groups->arrays_are_here && !are_better_together(x, groups)) return WSGEMM_NOT_SUPPORTED;
  const char *lack = lack_of(x, groups);
  const int row_idx = lack ? -1 : row_for(x, groups);
  if (!lack && row_idx < 0) lack = "tensor cores, or FP32 and FP64 by multiply-adds";
  const bool are_small = row_idx >= 0 && ws_cuda_row_at(row_idx)->kind == WS_ROW_SMALL;
  if (!lack && !are_small && blocks_for(groups, ws_cuda_row_at(row_idx)) > INT32_MAX) lack = "fewer tiles";
  if (lack && groups->arrays_are_here) return WSGEMM_NOT_SUPPORTED;
  if (lack) return ws_fail(h, WSGEMM_NOT_SUPPORTED, "arrays or scalars in device memory: built in for %s", lack);
  CUresult result;
  const ws_cuda_row *row = ws_cuda_row_at(row_idx);
  const ws_entry entry = (ws_entry)(ws_entry_of_ops(&groups->of_all) + (WS_ENTRY_GROUPS_NN - WS_ENTRY_NN));
  const ws_device_kernel *kernel = ws_device_kernel_get(x->device, row_idx, entry, &result);
  if (!kernel && groups->arrays_are_here && ws_device_lacks(result)) return WSGEMM_NOT_SUPPORTED;
  if (!kernel) return ws_fail_kernel(h, row->name, x->device, result);
  ws_launch_list list = {.n = 0};
  if (are_small) return run_small(x, groups, row, kernel->kernel, &list);
  ws_launch *l = ws_launch_add(&list, row->name, kernel->kernel, (int64_t)blocks_for(groups, row), row->n_threads,
                               row->shared_bytes, WS_BEGIN_STREAM_ORDERED);
  l->cluster = row->cluster, l->args.groups = args_of(groups, row);
  const ws_grouped_ends ends = ws_given_ends(groups);
  l->more = &ends;
  return ws_execute(x, &list);
}
