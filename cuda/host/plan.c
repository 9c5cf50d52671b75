/* plan.c - see plan.h: the rows that can run a product, and the one that a model of their speed
 * prefers. */
#include "cuda/host/plan.h"

#include <math.h>

#include "core/region_items.h"
#include "core/status.h"
#include "cuda/host/choice_memo.h"
#include "cuda/host/direct_model.h"
#include "cuda/host/dmma_model.h"
#include "cuda/host/flat_model.h"
#include "cuda/host/outer_model.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/sliced_model.h"
#include "cuda/host/slices.h"
#include "cuda/host/small.h"
#include "cuda/host/tma_maps.h"
#include "cuda/host/wgmma_model.h"
#include "cuda/rows/rows.h"
#include "cuda/rows/tf32_rows.h"

static ws_tile_grid grid_of(int64_t m, int64_t n, int64_t n_batch, const ws_cuda_row *row) {
  return (ws_tile_grid){.n_batch = n_batch,
                        .n_rows = ws_ceil_div(m, (int64_t)row->bm * row->cluster_m),
                        .n_cols = ws_ceil_div(n, row->bn),
                        .coarse = row->coarse * ws_cluster_n(row),
                        .swizzle = row->kind == WS_ROW_DIRECT ? ws_ceil_div(m, row->bm) : 8};
}

ws_tile_grid ws_gpu_plan_grid(const ws_problem *p, const ws_cuda_row *row, int64_t n_splits) {
  return grid_of(p->m, p->n, p->batch_count * n_splits, row);
}

/* Of 16-bit products: where the operand along m stays in the L2, items follow each other along the columns of C, whose lines then
 * are whole before they leave the L2 (bench/NOTES.md). */
static bool goes_along_columns(const ws_problem *p, const ws_cuda_row *row) {
  enum { STAYING_BYTES = 8 << 20 };
  return row->kind == WS_ROW_WGMMA && ws_is_half(p->a.type) && p->m * p->k * ws_types[p->a.type].bytes <= STAYING_BYTES;
}

/* Of the planned product, or a chunk of it. */
static ws_tile_grid grid_of_plan(const ws_gpu_plan *plan, const ws_problem *p) {
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  ws_tile_grid grid = plan->is_across ? grid_of(p->n, p->m, p->batch_count, row) : ws_gpu_plan_grid(p, row, plan->split.n_splits);
  if (goes_along_columns(p, row)) grid.swizzle = plan->is_across ? 1 : grid.n_rows;
  return grid;
}

/* Times of rows that are not by map, by type: fitted to all candidates of 300 to 500 shapes
 * (`bench_choices --dump`, H200, 2026-11-22), so that the row with the least time is the fastest,
 * or near it; the times themselves are within a quarter. */
typedef struct tiled_model {
  double item_k, item_us; /* an item costs as much again as so many k, and so many us */
  /* With so many warps an SM reaches half of its full speed; with so many more where k is short,
   * which is waiting for the most part. */
  double half_warps, half_short;
  /* Copies beside multiply-adds: of an element along m or n for each k, in the unit of bm * bn /
   * rate. */
  double single_mn, single_k, vectors_k;
} tiled_model;
static const tiled_model tiled[WS_N_TYPES] = {[WSGEMM_F32] = {75, 0.12, 8, 0, 0.14, 0.155, 0.155},
                                              [WSGEMM_C32] = {47, 0.5, 3, 6, 0, 0.24, 0.24},
                                              [WSGEMM_F64] = {165, 0.65, 3, 112, 0.2, 0.11, 0},
                                              [WSGEMM_C64] = {114, 0, 3, 130, 0.05, 0.05, 0.12},
                                              [WSGEMM_F16] = {0, 0, 2, 0, 0, 0, 0},
                                              [WSGEMM_BF16] = {0, 0, 2, 0, 0, 0, 0}};

static bool is_fma16(const ws_cuda_row *row) { return row->kind == WS_ROW_TILED && row->is_fma && ws_is_half(row->type); }

/* Rows of multiply-adds of half precision are made like those of floats; nobody has measured them
 * yet. */
static const tiled_model *model_of(const ws_cuda_row *row) { return &tiled[is_fma16(row) ? WSGEMM_F32 : row->type]; }

static double share_of_speed(double warps, double half) { return warps / (warps + half); }

static double copy_cost(const tiled_model *model, int32_t mode) {
  return mode == WS_COPY_VECTORS_MN ? 0
         : mode == WS_COPY_ALONG_MN ? model->single_mn
         : mode == WS_COPY_ALONG_K  ? model->single_k
                                    : model->vectors_k;
}

/* As the kernel numbers them (item_tile_at). */
int64_t ws_gpu_plan_items(const ws_problem *p, const ws_cuda_row *row, const ws_tile_grid *grid) {
  if (row->kind == WS_ROW_SMALL) return ws_small_items(p, row);
  const bool only_wanted = (row->kind == WS_ROW_TILED || ws_is_by_copies(row->kind)) &&
                           ws_region_numbers_items(p->c.region, row->bm, (int64_t)row->bn * row->coarse);
  return only_wanted ? ws_region_items(grid) : ws_tile_items(grid);
}

/* Items that have an element of C that is wanted, about. */
static int64_t wanted_items(const ws_problem *p, const ws_tile_grid *grid, double item_m, double item_n) {
  if (ws_region_numbers_items(p->c.region, (int64_t)item_m, (int64_t)item_n)) return ws_region_items(grid);
  return (int64_t)ceil((double)ws_tile_items(grid) * ws_wanted_share(p, item_m + item_n));
}

/* Rounds of as many items as fit, then what is left, spread evenly (ws_sched_spread_last). */
static double tiled_us(const ws_gpu_plan *plan, const ws_cuda_row *row, int n_sms) {
  const tiled_model *model = model_of(row);
  const ws_tile_grid grid = ws_gpu_plan_grid(plan->problem, row, plan->split.n_splits);
  const double warps = row->n_threads / 32.0, width = (double)row->bn * row->coarse;
  const int64_t n_items = wanted_items(plan->problem, &grid, row->bm, width), places = (int64_t)n_sms * row->blocks;
  const double copies = copy_cost(model, plan->mode_a) * row->bm + copy_cost(model, plan->mode_b) * width;
  const double k = (double)plan->split.k_per_split, half = model->half_warps + model->half_short * 200 / (200 + k);
  const double item_us = ws_rated_us_per_k(row, row->bm * width + copies * row->rate) * (k + model->item_k) + model->item_us;
  const double each = (double)ws_ceil_div(n_items % places, n_sms);
  const double last = each > 0 ? each * share_of_speed(row->blocks * warps, half) / share_of_speed(each * warps, half) : 0;
  return ((double)(n_items / places) * row->blocks + last) * item_us;
}

/* A store of 16-bit products that reads C, or goes through steps of an epilogue that take time. */
static bool has_full_store(const ws_gpu_plan *plan) { return plan->kind == WS_ROW_WGMMA && !ws_is_simple(plan->problem); }

/* A plan whose rows are weighed, with what they have in common. */
typedef struct weighing {
  const ws_gpu_plan *plan;
  int n_sms;
  ws_wgmma_product wgmma; /* if it is for such rows */
  ws_sliced_product sliced;
} weighing;

static weighing weighing_of(const ws_gpu_plan *plan, int n_sms) {
  weighing w = {.plan = plan, .n_sms = n_sms};
  if (plan->kind == WS_ROW_WGMMA) w.wgmma = ws_wgmma_look_at(&ws_wgmma_terms_h200, plan->problem, n_sms, has_full_store(plan));
  if (plan->kind == WS_ROW_SLICED) w.sliced = ws_sliced_look_at(plan->problem, plan->n_slices);
  return w;
}

static const ws_dmma_terms *terms_of_copied(const ws_cuda_row *row) {
  if (row->kind == WS_ROW_DMMA) return &ws_dmma_terms_h200[row->type];
  const int n_real = ws_types[row->type].n_real;
  if (row->takes_maps) return &ws_tf32m_terms_h200[row->n_slices - 1];
  return &(row->slice_places > 0 ? ws_tf32w_terms_h200 : ws_tf32_terms_h200)[row->n_slices - 1][n_real - 1];
}

/* Of dmma and tf32 rows. */
static double copied_us(const ws_gpu_plan *plan, const ws_cuda_row *row, int n_sms) {
  const ws_problem *p = plan->problem;
  ws_problem other;
  if (row->takes_maps && ws_maps_are_across(p)) other = ws_problem_across(p), p = &other;
  const ws_tile_grid grid = ws_gpu_plan_grid(p, row, 1);
  const ws_dmma_terms *terms = terms_of_copied(row);
  const int64_t n_items = wanted_items(p, &grid, row->bm, row->bn);
  if (ws_is_outer(row)) return ws_outer_us(&ws_outer_terms_h200[ws_types[row->type].n_real - 1], p, n_items, row, n_sms);
  if (!ws_has_second(p)) return ws_dmma_us(terms, p, n_items, row, n_sms);
  other = *p;
  other.k *= 2;
  return ws_dmma_us(terms, &other, n_items, row, n_sms);
}

static double row_us(const weighing *w, const ws_cuda_row *row) {
  switch (row->kind) {
  case WS_ROW_DIRECT:
    return row->is_flat ? ws_flat_us(&ws_flat_terms_h200, w->plan->problem, row, w->n_sms)
                        : ws_direct_us(&ws_direct_terms_h200, w->plan->problem, row, w->n_sms);
  case WS_ROW_DMMA:
  case WS_ROW_TF32:
    return copied_us(w->plan, row, w->n_sms);
  case WS_ROW_WGMMA:
    return ws_wgmma_us(&ws_wgmma_terms_h200, &w->wgmma, row);
  case WS_ROW_SLICED:
    return ws_sliced_us(&w->sliced, w->plan->problem, row, w->n_sms);
  case WS_ROW_SMALL:
    return ws_small_us(w->plan->problem, row, w->n_sms);
  default:
    return tiled_us(w->plan, row, w->n_sms);
  }
}

/* Whether the matrix that a row for vectors reads has k contiguous. */
static bool is_along_k(const ws_problem *p, const ws_cuda_row *row) { return row->bn == 1 ? p->a.trans : !p->b.trans; }

/* Of tf32 rows: shorter sums have no proof. */
static int least_k_of(const ws_cuda_row *row) {
  return (row->takes_maps || row->slice_places > 0) && row->n_slices > 1 ? WS_TF32W_LEAST_K(ws_types[row->type].n_real)
                                                                         : WS_TF32_LEAST_K;
}

static bool can_run(const ws_cuda_row *row, const ws_gpu_plan *plan) {
  const ws_problem *p = plan->problem;
  if (row->type != p->a.type || (plan->split.n_splits > 1 && !row->splits) || (plan->takes_fma && !row->is_fma)) return false;
  switch (row->kind) {
  case WS_ROW_VECTOR:
    return (row->bn == 1 ? p->n == 1 : p->m == 1) && (ws_max(row->bm, row->bn) == 8) == is_along_k(p, row);
  case WS_ROW_WGMMA:
    return plan->kind == WS_ROW_WGMMA && (!row->is_plain || ws_has_plain_store(p)) &&
           (row->cluster_splits == 1 || (!plan->is_invariant && p->k >= WS_WGMMA_CLUSTER_SPLIT_LEAST_K(row->cluster_splits)));
  case WS_ROW_SLICED:
    return plan->kind == WS_ROW_SLICED && row->n_slices == plan->n_slices;
  case WS_ROW_DIRECT:
    return plan->kind == WS_ROW_DIRECT && !plan->is_invariant && ws_is_plain(p);
  case WS_ROW_DMMA:
    return plan->kind == WS_ROW_DMMA && !plan->is_invariant;
  case WS_ROW_TF32:
    /* two will do where one would */
    return plan->kind == WS_ROW_TF32 && row->n_slices >= plan->n_slices && p->k >= least_k_of(row) &&
           (!row->takes_maps || plan->has_maps);
  case WS_ROW_SMALL:
    return plan->kind == WS_ROW_SMALL && ws_small_takes(p, row);
  default:
    return true;
  }
}

/* Matrix-vector products have rows of their own; so have 16-bit types where there are tensor cores
 * for them, and under PEDANTIC. Of the two kinds for vectors, which sum in ways of their own, a
 * product of one row and one column always has the same. */
static bool is_made_for(const ws_cuda_row *row, const ws_gpu_plan *plan) {
  const bool is_other_vector = row->kind == WS_ROW_VECTOR && row->bn > 1 && plan->problem->n == 1;
  return can_run(row, plan) && row->kind == plan->kind && !is_other_vector && (plan->takes_fma || !is_fma16(row));
}

/* The row with the least time: of those made for the product; of those with the COARSE_FACTOR that
 * is asked for, if there are any. */
static ws_choice weigh_rows(const ws_gpu_plan *plan, int coarse, int n_sms) {
  ws_choice best = {-1, HUGE_VAL};
  bool best_fits = false;
  const weighing w = weighing_of(plan, n_sms);
  for (int r = 0; r < ws_cuda_row_count(); r++) {
    const ws_cuda_row *row = ws_cuda_row_at(r);
    if (!is_made_for(row, plan)) continue;
    const bool fits = coarse == 0 || row->coarse == coarse;
    const double us = row_us(&w, row);
    if (best.row_idx < 0 || (fits && !best_fits) || (fits == best_fits && us < best.us))
      best = (ws_choice){r, us}, best_fits = fits;
  }
  return best;
}

/* The same, remembered. */
static ws_choice best_row(const ws_gpu_plan *plan, int coarse, int n_sms) {
  const ws_problem *p = plan->problem;
  if (!ws_is_plain(p) || p->has_packed) return weigh_rows(plan, coarse, n_sms);
  const ws_choice_key key = {.m = p->m,
                             .n = p->n,
                             .k = p->k,
                             .batch_count = p->batch_count,
                             .n_sms = n_sms,
                             .coarse = coarse,
                             .type = (uint8_t)p->a.type,
                             .type_c = (uint8_t)p->c.type,
                             .kind = (uint8_t)plan->kind,
                             .ops = (uint8_t)(p->a.trans + 2 * p->b.trans),
                             .is_invariant = plan->is_invariant,
                             .takes_fma = plan->takes_fma,
                             .has_plain_store = ws_has_plain_store(p),
                             .is_simple = ws_is_simple(p),
                             .n_slices = (uint8_t)plan->n_slices,
                             .mode_a = (uint8_t)plan->mode_a,
                             .mode_b = (uint8_t)plan->mode_b,
                             .has_maps = plan->has_maps};
  ws_choice choice;
  if (ws_choice_recall(&key, &choice)) return choice;
  choice = weigh_rows(plan, coarse, n_sms);
  ws_choice_keep(&key, &choice);
  return choice;
}

/* The forced row if it can run this, else the best one. */
static int choose_row(const ws_call *call, const ws_gpu_plan *plan, const ws_device *device) {
  const int forced = ws_forced_row(call->forced[WS_CUDA], plan->problem->a.type);
  if (forced && can_run(ws_cuda_row_at(forced - 1), plan)) return forced - 1;
  return best_row(plan, (int)call->settings.coarse, device->n_sms).row_idx;
}

int ws_gpu_plan_smallest_row(const ws_gpu_plan *plan) {
  /* A row that was asked for by name may be of another kind than the product's own, and sums in
   * another way. */
  const ws_cuda_row *chosen = ws_cuda_row_at(plan->row_idx);
  ws_gpu_plan like_chosen = *plan;
  like_chosen.kind = chosen->kind;
  int best = -1;
  for (int r = 0; r < ws_cuda_row_count(); r++) {
    const ws_cuda_row *row = ws_cuda_row_at(r);
    const bool is_alike = chosen->kind != WS_ROW_VECTOR || (row->bn > 1) == (chosen->bn > 1);
    if (r != plan->row_idx && !(is_made_for(row, &like_chosen) && is_alike)) continue;
    if (best < 0 || row->total_bytes < ws_cuda_row_at(best)->total_bytes) best = r;
  }
  return best;
}

/* The architectures that have Cluster Launch Control and machine code of their own in the images;
 * only their code has these entries. */
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

ws_entry ws_entry_of_ops(const ws_problem *p) {
  return p->a.trans ? (p->b.trans ? WS_ENTRY_TT : WS_ENTRY_TN) : p->b.trans ? WS_ENTRY_NT : WS_ENTRY_NN;
}

/* By elements of its own, not 16 bytes at a time. */
static bool is_single(ws_operand op) { return op.mode == WS_COPY_ALONG_MN || op.mode == WS_COPY_ALONG_K; }

/* ---- what tuning has found ------------------------------------------------------------------- */

/* By the parts of k that a row has. */
static ws_numerics numerics_of_flat(const ws_cuda_row *row) {
  if (row->k_groups == 6) return row->cluster == 1 ? WS_NUMERICS_FLAT_G6 : WS_NUMERICS_FLAT_G6_K2;
  return row->cluster == 1 ? WS_NUMERICS_FLAT_G12 : WS_NUMERICS_FLAT_G12_K2;
}

/* The same of rows by tensor maps; a number of slices that has no such row says CHAIN. */
static ws_numerics numerics_of_maps(const ws_cuda_row *row) {
#define WS_OF_MAPS(name) \
  { WS_NUMERICS_TF32M1##name, WS_NUMERICS_TF32M2##name }
  static const struct {
    int cluster;
    ws_numerics of_slices[2];
  } orders[] = {{1, WS_OF_MAPS()},    {2, WS_OF_MAPS(_K2)}, {3, WS_OF_MAPS(_K3)},
                {4, WS_OF_MAPS(_K4)}, {8, WS_OF_MAPS(_K8)}, {16, {WS_NUMERICS_CHAIN, WS_NUMERICS_TF32M2_K16}}};
#undef WS_OF_MAPS
  for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
    if (orders[i].cluster == row->cluster) return orders[i].of_slices[row->n_slices - 1];
  return WS_NUMERICS_CHAIN;
}

/* The same of rows whose warps copy for others; every row's are in the table. A family that has no such row says CHAIN, as ffma rows
 * of one part do. */
static ws_numerics numerics_of_copied(const ws_cuda_row *row) {
  if (row->takes_maps) return numerics_of_maps(row);
  enum { DMMA, TF32X1, TF32X2, TF32W2, FFMA, N_FAMILIES };
#define WS_OF_MMA_SYNC(name) WS_NUMERICS_DMMA_##name, WS_NUMERICS_TF32X1_##name, WS_NUMERICS_TF32X2_##name
#define WS_OF_UNITS(name) WS_OF_MMA_SYNC(name), WS_NUMERICS_TF32W2_##name
  static const struct {
    int k_groups, cluster;
    ws_numerics numerics[N_FAMILIES];
  } orders[] = {
      {1, 1, {WS_OF_UNITS(G1), WS_NUMERICS_CHAIN}},
      {1, 2, {WS_OF_UNITS(G1_K2), WS_NUMERICS_CHAIN}},
      {1, 3, {WS_NUMERICS_DMMA_G1_K3, WS_NUMERICS_TF32X1_G1_K3, WS_NUMERICS_CHAIN, WS_NUMERICS_TF32W2_G1_K3, WS_NUMERICS_CHAIN}},
      {1, 4, {WS_OF_UNITS(G1_K4), WS_NUMERICS_CHAIN}},
      {1, 8, {WS_OF_UNITS(G1_K8), WS_NUMERICS_CHAIN}},
      {1,
       16,
       {WS_NUMERICS_DMMA_G1_K16, WS_NUMERICS_TF32X1_G1_K16, WS_NUMERICS_CHAIN, WS_NUMERICS_TF32W2_G1_K16, WS_NUMERICS_CHAIN}},
      {2, 1, {WS_OF_UNITS(G2), WS_NUMERICS_FFMA_G2}},
      {2, 2, {WS_NUMERICS_CHAIN, WS_NUMERICS_CHAIN, WS_NUMERICS_CHAIN, WS_NUMERICS_CHAIN, WS_NUMERICS_FFMA_G2_K2}},
      {2, 4, {WS_OF_UNITS(G2_K4), WS_NUMERICS_FFMA_G2_K4}},
      {2, 8, {WS_OF_UNITS(G2_K8), WS_NUMERICS_FFMA_G2_K8}},
      {2,
       16,
       {WS_NUMERICS_DMMA_G2_K16, WS_NUMERICS_CHAIN, WS_NUMERICS_TF32X2_G2_K16, WS_NUMERICS_TF32W2_G2_K16, WS_NUMERICS_CHAIN}},
      {4, 1, {WS_OF_MMA_SYNC(G4), WS_NUMERICS_CHAIN, WS_NUMERICS_FFMA_G4}},
      {4, 2, {WS_NUMERICS_CHAIN, WS_NUMERICS_TF32X1_G4_K2, WS_NUMERICS_TF32X2_G4_K2, WS_NUMERICS_CHAIN, WS_NUMERICS_CHAIN}},
      {4, 4, {WS_NUMERICS_CHAIN, WS_NUMERICS_TF32X1_G4_K4, WS_NUMERICS_TF32X2_G4_K4, WS_NUMERICS_CHAIN, WS_NUMERICS_FFMA_G4_K4}},
      {4, 8, {WS_OF_MMA_SYNC(G4_K8), WS_NUMERICS_CHAIN, WS_NUMERICS_FFMA_G4_K8}},
      {4,
       16,
       {WS_NUMERICS_DMMA_G4_K16, WS_NUMERICS_TF32X1_G4_K16, WS_NUMERICS_TF32X2_G4_K16, WS_NUMERICS_CHAIN,
        WS_NUMERICS_FFMA_G4_K16}},
  };
#undef WS_OF_UNITS
#undef WS_OF_MMA_SYNC
  const size_t n_orders = sizeof orders / sizeof orders[0];
  size_t i = 0;
  while (i < n_orders - 1 && (orders[i].k_groups != row->k_groups || orders[i].cluster != row->cluster)) i++;
  if (ws_is_outer(row) && row->type == WSGEMM_C32) return WS_NUMERICS_PAIRS;
  const bool is_wgmma_of_two = row->slice_places > 0 && row->n_slices > 1;
  const bool is_fma = ws_is_outer(row) || (row->kind == WS_ROW_DMMA && row->type == WSGEMM_F32);
  return orders[i].numerics[is_fma ? FFMA : is_wgmma_of_two ? TF32W2 : row->n_slices];
}

/* The same; every row's are in the table. */
static ws_numerics numerics_of_direct(const ws_cuda_row *row) {
  static const struct {
    int k_groups, cluster;
    ws_numerics numerics;
  } orders[] = {{1, 1, WS_NUMERICS_DIRECT_G1},   {2, 1, WS_NUMERICS_DIRECT_G2},    {4, 1, WS_NUMERICS_DIRECT_G4},
                {8, 1, WS_NUMERICS_DIRECT_G8},   {4, 8, WS_NUMERICS_DIRECT_G4_K8}, {8, 4, WS_NUMERICS_DIRECT_G8_K4},
                {8, 8, WS_NUMERICS_DIRECT_G8_K8}};
  const size_t n_orders = sizeof orders / sizeof orders[0];
  size_t i = 0;
  while (i < n_orders - 1 && (orders[i].k_groups != row->k_groups || orders[i].cluster != row->cluster)) i++;
  return orders[i].numerics;
}

static ws_numerics numerics_of(const ws_gpu_plan *plan, const ws_cuda_row *row) {
  static const ws_numerics of_slices[] = {WS_NUMERICS_CHAIN, WS_NUMERICS_F16X1, WS_NUMERICS_F16X3, WS_NUMERICS_BF16X6};
  switch (row->kind) {
  case WS_ROW_VECTOR:
    return WS_NUMERICS_VECTOR;
  case WS_ROW_WGMMA:
    return row->cluster_splits == 8   ? WS_NUMERICS_WGMMA_K8
           : row->cluster_splits == 4 ? WS_NUMERICS_WGMMA_K4
           : row->cluster_splits == 2 ? WS_NUMERICS_WGMMA_K2
                                      : WS_NUMERICS_WGMMA;
  case WS_ROW_SLICED:
    return of_slices[row->n_slices];
  case WS_ROW_DIRECT:
    return row->is_flat ? numerics_of_flat(row) : numerics_of_direct(row);
  case WS_ROW_DMMA:
  case WS_ROW_TF32:
    return numerics_of_copied(row);
  case WS_ROW_SMALL: /* one chain, or steps of mma16 in a chain */
    return row->is_fma && ws_is_half(row->type) ? WS_NUMERICS_FMA16 : WS_NUMERICS_CHAIN;
  case WS_ROW_TILED:
    break;
  }
  if (is_fma16(row)) return plan->split.n_splits > 1 ? WS_NUMERICS_FMA16_PARTS : WS_NUMERICS_FMA16;
  return plan->split.n_splits > 1 ? WS_NUMERICS_PARTS : WS_NUMERICS_CHAIN;
}

/* Whether parts of k begin where the k of a tile begins, as those of tf32 rows do: with a triangular operand they are others for
 * tiles of another height. */
static bool has_parts_of_tiles(const ws_gpu_plan *plan, const ws_cuda_row *row) {
  const ws_problem *p = plan->problem;
  return row->kind == WS_ROW_TF32 && row->k_groups * row->cluster_splits > 1 &&
         (ws_is_triangular((ws_structure)p->a.structure) || ws_is_triangular((ws_structure)p->b.structure));
}

bool ws_gpu_plan_may_take(const ws_gpu_plan *plan, int row_idx) {
  const ws_cuda_row *row = ws_cuda_row_at(row_idx);
  if (row_idx != plan->row_idx && has_parts_of_tiles(plan, row)) return false;
  return is_made_for(row, plan) && numerics_of(plan, row) == numerics_of(plan, ws_cuda_row_at(plan->row_idx));
}

double ws_gpu_plan_us(const ws_gpu_plan *plan, int row_idx, const ws_device *device) {
  const weighing w = weighing_of(plan, device->n_sms);
  return row_us(&w, ws_cuda_row_at(row_idx));
}

ws_tuning_kind ws_gpu_tuning_kind(const ws_gpu_plan *plan) {
  const ws_problem *p = plan->problem;
  const bool is_by_map = ws_is_by_map(plan->kind); /* copied, if need be */
  ws_tuning_kind kind = ws_tuning_kind_of(p);
  kind.numerics = numerics_of(plan, ws_cuda_row_at(plan->row_idx));
  kind.single_a = !is_by_map && is_single(ws_operand_a(p));
  kind.single_b = !is_by_map && is_single(ws_operand_b(p));
  kind.full_store = has_full_store(plan);
  kind.partial_lines = ws_tuning_has_partial_lines(&kind, p->a.ld, p->b.ld);
  return kind;
}

/* Tensor cores for 16-bit elements cut small products beside large ones, and beside subnormal
 * numbers with a large partner: PEDANTIC does without. So do the rows for vectors, in any class:
 * chains of lanes and a tree of their sums round no term more often than one chain of k. */
bool ws_gpu_takes_fma(const ws_call *call, const ws_problem *p) {
  return !ws_is_half(p->a.type) || ws_math_of(call, p) == WSGEMM_MATH_PEDANTIC;
}

ws_gpu_plan ws_gpu_plan_without_row(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind,
                                    int n_slices) {
  ws_gpu_plan plan = {.problem = p, .kind = kind, .n_slices = n_slices, .is_invariant = call->settings.invariant};
  if (kind == WS_ROW_TF32)
    plan.n_slices = ws_n_slices(call, p), plan.has_maps = plan.n_slices > 0 && !ws_has_second(p) && ws_maps_take(p);
  plan.takes_fma = (!ws_is_of_hopper(kind) || kind == WS_ROW_SMALL) && ws_gpu_takes_fma(call, p);
  plan.split = ws_is_of_hopper(kind) || plan.is_invariant ? ws_split_into(p, 1) : ws_split_for(p, device->n_sms, plan.takes_fma);
  plan.mode_a = ws_operand_a(p).mode, plan.mode_b = ws_operand_b(p).mode;
  return plan;
}

double ws_gpu_best_us(const ws_gpu_plan *plan, const ws_device *device) { return best_row(plan, 0, device->n_sms).us; }

/* The model's time of a row, in parts of that of the model's row for the plan. */
static double relative_us(const ws_gpu_plan *plan, int row_idx, const ws_device *device) {
  return ws_gpu_plan_us(plan, row_idx, device) / ws_gpu_plan_us(plan, plan->row_idx, device);
}

/* What was found for another shape is taken only where the model does not think much worse of it,
 * nor worse than at that shape, where the model was wrong by so much. */
static bool is_as_good(const ws_call *call, const ws_gpu_plan *plan, const ws_device *device, int row_idx,
                       const ws_tuning_shape *line) {
  const double most = 1.1, most_of_line = 1.03, here = relative_us(plan, row_idx, device);
  if (here > most || here <= most_of_line) return here <= most;
  ws_problem p = *plan->problem;
  p.m = line->m, p.n = line->n, p.k = line->k, p.batch_count = line->batch;
  ws_gpu_plan there = ws_gpu_plan_without_row(call, &p, device, plan->kind, plan->n_slices);
  there.row_idx = choose_row(call, &there, device);
  return here <= most_of_line * relative_us(&there, row_idx, device);
}

/* No row that the handle does not want. line: of what was not found for just this shape. */
static bool may_take(const ws_call *call, const ws_gpu_plan *plan, const ws_device *device, const ws_tuned *tuned,
                     const ws_tuning_shape *line) {
  const int row_idx = tuned->tuning.row - 1, coarse = (int)call->settings.coarse;
  if (row_idx < 0 || row_idx == plan->row_idx) return true;
  if (ws_forced_row(call->forced[WS_CUDA], plan->problem->a.type)) return false; /* by name */
  if (!ws_gpu_plan_may_take(plan, row_idx) || (coarse > 0 && ws_cuda_row_at(row_idx)->coarse != coarse)) return false;
  return tuned->is_exact || is_as_good(call, plan, device, row_idx, line);
}

/* A symmetric operand whose slices are made is multiplied as any other: gemm's lines are the next
 * best. */
static ws_tuned find_line(int slot, const ws_tuning_kind *kind, const ws_tuning_shape *shape, ws_tuning_shape *line) {
  const ws_tuned tuned = ws_tune_find_line(slot, kind, shape, line);
  if (tuned.by != WS_TUNED_BY_MODEL || (kind->routine != WSGEMM_SYMM && kind->routine != WSGEMM_HEMM)) return tuned;
  ws_tuning_kind as_gemm = *kind;
  as_gemm.routine = 0, as_gemm.is_right = false;
  return ws_tune_find_line(slot, &as_gemm, shape, line);
}

/* For a plan whose row is the model's. */
static ws_tuned tuned_for(const ws_call *call, const ws_gpu_plan *plan, const ws_device *device) {
  const ws_problem *p = plan->problem;
  const int slot = 1 + device->ordinal;
  ws_tuning_shape line = {0};
  ws_tuned tuned;
  if (p->tuning) {
    tuned = (ws_tuned){*p->tuning, WS_TUNED_BY_SEARCH, true};
  } else {
    if (!ws_tune_has_table(slot)) return ws_tuned_model();
    const ws_tuning_kind kind = ws_gpu_tuning_kind(plan);
    const ws_tuning_shape shape = {p->m, p->n, p->k, p->batch_count};
    tuned = find_line(slot, &kind, &shape, &line);
  }
  return may_take(call, plan, device, &tuned, &line) ? tuned : ws_tuned_model();
}

static int64_t most_items(const ws_cuda_row *row) { return WS_SCHED_MAX_ITEMS / row->cluster; }

/* All that follows from the tuning and the model's row. */
static CUresult settle(const ws_call *call, ws_device *device, int model_row_idx, ws_gpu_plan *plan) {
  const ws_tuning *tuning = &plan->tuned.tuning;
  plan->row_idx = tuning->row > 0 ? tuning->row - 1 : model_row_idx;
  const int forced_policy = (int)call->settings.policy, quantum = (int)call->settings.quantum;
  const wsgemm_policy policy = (wsgemm_policy)(forced_policy != WSGEMM_POLICY_AUTO ? forced_policy : tuning->policy);
  plan->quantum = (uint32_t)(quantum > 0 ? quantum : tuning->quantum);
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  plan->sched = row->is_once ? WS_SCHED_STATIC : sched_for(policy, device);
  plan->fixed_work = row->is_once || policy == WSGEMM_POLICY_FIXED_WORK;
  ws_entry entry = plan->split.n_splits > 1 ? WS_ENTRY_SPLIT : entry_of(plan->sched);
  if (ws_has_entry_for_ops(row->kind)) /* a block, or a cluster, for each item, whatever the policy, but in rows that stay */
    plan->sched = WS_SCHED_STATIC, plan->fixed_work |= !row->stays, entry = ws_entry_of_ops(plan->problem);
  if (row->kind == WS_ROW_WGMMA && !row->is_once && ws_is_bare(plan->problem)) entry = WS_ENTRY_BARE;
  CUresult result;
  plan->kernel = ws_device_kernel_get(device, plan->row_idx, entry, &result);
  plan->is_across = row->takes_maps ? ws_maps_are_across(plan->problem)
                                    : (entry == WS_ENTRY_BARE || row->is_once) && ws_is_across(plan->problem, row);
  plan->grid = grid_of_plan(plan, plan->problem);
  if (tuning->order > 0 && row->kind != WS_ROW_DIRECT) plan->grid.swizzle = tuning->order;
  plan->n_items = ws_gpu_plan_items(plan->problem, row, &plan->grid);
  return result;
}

wsgemm_status ws_gpu_plan_tell(const ws_call *call, const ws_device *device, const ws_gpu_plan *plan, CUresult found) {
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  if (found != CUDA_SUCCESS) return ws_fail_kernel(call->h, row->name, device, found);
  if (plan->n_items > most_items(row))
    return ws_fail(call->h, WSGEMM_NOT_SUPPORTED, "%lld work items of kernel %s; one launch takes %lld", (long long)plan->n_items,
                   row->name, (long long)most_items(row));
  return WSGEMM_SUCCESS;
}

CUresult ws_gpu_plan_find(const ws_call *call, const ws_problem *p, ws_device *device, ws_row_kind kind, int n_slices,
                          ws_gpu_plan *plan) {
  *plan = ws_gpu_plan_without_row(call, p, device, kind, n_slices);
  const int model_row_idx = plan->row_idx = choose_row(call, plan, device);
  /* by name: what takes its place without memory has the same bits */
  plan->takes_fma |= is_fma16(ws_cuda_row_at(model_row_idx));
  plan->tuned = tuned_for(call, plan, device);
  const CUresult found = settle(call, device, model_row_idx, plan);
  const bool is_good = found == CUDA_SUCCESS && plan->n_items <= most_items(ws_cuda_row_at(plan->row_idx));
  if (is_good || plan->tuned.by == WS_TUNED_BY_MODEL || plan->tuned.by == WS_TUNED_BY_SEARCH) return found;
  plan->tuned = ws_tuned_model(); /* tuning makes no call fail */
  return settle(call, device, model_row_idx, plan);
}

wsgemm_status ws_gpu_plan_make(const ws_call *call, const ws_problem *p, ws_device *device, ws_row_kind kind, int n_slices,
                               ws_gpu_plan *plan) {
  const CUresult found = ws_gpu_plan_find(call, p, device, kind, n_slices, plan);
  return ws_gpu_plan_tell(call, device, plan, found);
}

ws_gpu_plan ws_gpu_plan_of_chunk(const ws_gpu_plan *whole, const ws_problem *chunk) {
  ws_gpu_plan plan = *whole;
  plan.problem = chunk;
  plan.grid = grid_of_plan(&plan, chunk);
  plan.grid.swizzle = whole->grid.swizzle;
  plan.n_items = ws_gpu_plan_items(chunk, ws_cuda_row_at(plan.row_idx), &plan.grid);
  return plan;
}
