/* trsm_plan.c - how a triangular system on the CPU is divided: path, right sides of an item,
 * threads, memory; and the same in words. */
#include "cpu/trsm_plan.h"

#include "core/policy.h"
#include "core/processors.h"
#include "core/tile.h"
#include "cpu/backend.h"
#include "cpu/plan.h"

enum { ITEMS_PER_THREAD = 4, GROUPS_PER_ITEM = 8 };
/* Right sides of a chunk, at least: T is packed once for each chunk. */
enum { LEAST_CHUNK = 1024 };

static int64_t round_up(int64_t x, int64_t unit) { return ws_ceil_div(x, unit) * unit; }

static int threads_for(const ws_call *call, const ws_tuned *tuned, double work) {
  const int wanted = tuned->tuning.threads;
  if (wanted == 1 || (wanted == 0 && work < 2 * WS_WORK_PER_THREAD)) return 1;
  const int limit = ws_thread_limit(call);
  return wanted > 0 ? (int)ws_min(wanted, limit) : ws_threads_sharing(limit, work, WS_WORK_PER_THREAD);
}

/* ---- what tuning has found ------------------------------------------------------------------- */

ws_tuning_kind ws_cpu_tuning_kind_of_system(const ws_call *call, const ws_system *s) {
  ws_tuning_kind kind = ws_tuning_kind_of_system(s);
  kind.numerics = WS_NUMERICS_CHAIN, kind.workers = ws_thread_limit(call);
  return kind;
}

/* Out of line: a small system has no use for it. */
__attribute__((noinline)) static ws_tuned tuned_for(const ws_call *call, const ws_system *s, const ws_solve *v,
                                                    const ws_cpu_row *row) {
  ws_tuned tuned = ws_tuned_model();
  if (s->tuning) {
    tuned = (ws_tuned){*s->tuning, WS_TUNED_BY_SEARCH, true};
  } else if (ws_tune_has_table(WS_TUNE_CPU)) {
    const ws_tuning_kind kind = ws_cpu_tuning_kind_of_system(call, s);
    const ws_tuning_shape shape = {s->m, s->n, v->m, s->batch_count};
    tuned = ws_tune_find(WS_TUNE_CPU, &kind, &shape);
  }
  return ws_tuned_for_row(&tuned, row);
}

/* Right sides of an item, and those whose panels are in memory at a time. */
static void take_tuned(const ws_solve *v, ws_solve_plan *plan) {
  const ws_tuning *tuning = &plan->tuned.tuning;
  if (tuning->mc > 0) plan->item_n = round_up(ws_min(tuning->mc, v->n), v->ukr->mr);
  if (tuning->nc > 0) *(v->n_blocks == 1 ? &plan->panels_n : &plan->chunk) = round_up(ws_min(tuning->nc, v->n), v->ukr->mr);
}

/* ---- the plan -------------------------------------------------------------------------------- */

/* Right sides whose panels take so many bytes, in whole panels. */
static int64_t right_sides_in(const ws_solve *v, int64_t bytes, int64_t unknowns) {
  return ws_max(v->ukr->mr, bytes / (unknowns * v->bytes) / v->ukr->mr * v->ukr->mr);
}

static int64_t share_of(const ws_solve *v, const ws_solve_plan *plan) {
  return round_up(ws_ceil_div(v->n, plan->n_threads * ITEMS_PER_THREAD), v->ukr->mr);
}

/* A triangle in L1 meets one panel after the other; of a larger one, a group of rows in L1 meets
 * panels in L2. */
static void plan_one_block(const ws_solve *v, int64_t packed_bytes, ws_solve_plan *plan) {
  const ws_machine *machine = ws_machine_get();
  const bool is_in_l1 = packed_bytes <= machine->l1d_bytes / 2;
  plan->panels_n = is_in_l1 ? v->ukr->mr : right_sides_in(v, machine->l2_bytes / 4, v->m);
  plan->chunk = v->n;
  plan->item_n = plan->n_threads == 1 ? v->n : share_of(v, plan);
}

static void plan_blocks(const ws_solve *v, ws_solve_plan *plan) {
  const ws_machine *machine = ws_machine_get();
  const int64_t most = right_sides_in(v, machine->l2_bytes * 4 / 10, v->kb);
  const int64_t in_l3 = machine->near_l3_bytes / 8 / (v->m * v->bytes),
                least = LEAST_CHUNK * (int64_t)ws_ceil_div(plan->n_threads, 8);
  plan->chunk = round_up(ws_ceil_div(v->n, ws_ceil_div(v->n, ws_max(in_l3, least))), v->ukr->mr);
  plan->item_n = plan->n_threads == 1 ? most : ws_min(most, share_of(v, plan));
}

/* Whether right sides alone do not keep the threads busy, so that two steps for each block pay: a
 * few blocks are soon done. */
static bool is_narrow(const ws_solve *v, int n_threads) {
  const int64_t items_each = v->n_blocks < 4 ? 1 : ITEMS_PER_THREAD;
  return n_threads > 1 && v->n_blocks > 1 && ws_ceil_div(v->n, v->ukr->mr) < n_threads * items_each;
}

/* One vector of right sides reads T once: packing it pays only where its rows lie far apart and are
 * not in the cache when the next group comes by (Sapphire Rapids, FP64, 1 right side: order 1000
 * 0.27 ms to 0.35, order 4096 10.4 to 7.0). */
static bool direct_pays(const ws_solve *v) {
  const double t_bytes = (double)v->m * (double)v->m * v->bytes;
  return v->n <= v->ukr->vl && v->m > v->ukr->nr && (!v->t_rows_contiguous || t_bytes <= 6 * (double)ws_machine_get()->l2_bytes);
}

/* Without a second look: a small triangle takes less time than a plan. */
static void plan_in_place(const ws_call *call, const ws_solve *v, ws_solve_plan *plan) {
  plan->path = WS_SOLVE_SMALL;
  plan->policy = ws_cpu_policy(call, &ws_tuning_of_model);
  plan->tuned.by = WS_TUNED_BY_MODEL;
  plan->n_threads = 1;
  plan->n_systems = 1, plan->groups_n = GROUPS_PER_ITEM;
  plan->chunk = plan->item_n = v->n, plan->panels_n = v->ukr->mr;
  plan->packs_late = true;
}

void ws_solve_plan_make(const ws_call *call, const ws_system *s, ws_solve *v, ws_solve_plan *plan) {
  plan->row = ws_row_for(call, s->a.type);
  ws_solve_begin(v, s, plan->row);
  if (s->batch_count == 1 && !s->tuning && ws_fits_place(v, v->n)) {
    plan_in_place(call, v, plan);
    return;
  }
  const double work = (double)v->m * (double)v->m * (double)v->n / 2 * ws_float_products(v->type);
  const double products = (double)v->m * (double)v->m * (double)v->n * (double)v->batch_count;
  const bool may_be_tuned = s->tuning || products >= WS_TUNE_LEAST_WORK;
  plan->tuned = may_be_tuned ? tuned_for(call, s, v, plan->row) : ws_tuned_model();
  plan->n_threads = threads_for(call, &plan->tuned, work * (double)v->batch_count);
  plan->policy = ws_cpu_policy(call, &plan->tuned.tuning);
  plan->n_systems = 1;
  plan->groups_n = GROUPS_PER_ITEM;
  const ws_block b = ws_block_at(v, 0, 0);
  const int64_t packed_bytes = ws_packed_diagonal_bytes(v, &b);
  const bool is_small = v->n_blocks == 1 && packed_bytes + ws_panel_bytes(v, 1) <= WS_SOLVE_SMALL_BYTES - 64;
  const bool is_batch = plan->n_threads > 1 && v->batch_count >= 2 * plan->n_threads;
  if (is_batch)
    plan->n_systems =
        ws_max(1, ws_min(ws_ceil_div(v->batch_count, plan->n_threads * ITEMS_PER_THREAD), (int64_t)(WS_WORK_PER_THREAD / work)));
  if (!is_batch && !is_small) plan->n_threads = threads_for(call, &plan->tuned, work);
  if (v->n_blocks == 1)
    plan_one_block(v, packed_bytes, plan);
  else
    plan_blocks(v, plan);
  take_tuned(v, plan);
  if (is_small) plan->panels_n = v->ukr->mr; /* the stack is sure to hold one panel */
  if (is_batch)
    plan->item_n = v->n_blocks == 1 ? v->n : ws_min(v->n, right_sides_in(v, ws_machine_get()->l2_bytes * 4 / 10, v->kb));
  const bool is_split = !is_batch && is_narrow(v, plan->n_threads);
  if (is_split) {
    plan->item_n = v->ukr->mr;
    plan->groups_n = ws_max(1, ws_min(GROUPS_PER_ITEM, ws_left_groups(v, &b) / (plan->n_threads * ITEMS_PER_THREAD)));
  }
  plan->packs_late = is_split || ws_min(plan->chunk, v->n) <= plan->item_n;
  plan->path = plan->n_threads == 1 && direct_pays(v) ? WS_SOLVE_DIRECT
               : is_small                             ? WS_SOLVE_SMALL
               : is_batch                             ? WS_SOLVE_BATCH
               : is_split                             ? WS_SOLVE_SPLIT
                                                      : WS_SOLVE_BLOCKED;
}

void ws_cpu_explain_solve(const ws_call *call, const ws_system *s, int device, ws_text *t) {
  static const char *const paths[] = {"direct", "small", "batch", "blocked", "split"};
  (void)device;
  ws_solve v;
  ws_solve_plan plan;
  ws_solve_plan_make(call, s, &v, &plan);
  ws_text_add(t, "kernel: %s\nregister_tile: %dx%d\npath: trsm %s\n", plan.row->name, plan.row->mr, plan.row->nr,
              paths[plan.path]);
  ws_text_add(t, "k_block: %lld\nright_sides_per_item: %lld\nright_sides_packed: %lld\n", (long long)v.kb, (long long)plan.item_n,
              (long long)(v.n_blocks == 1 ? plan.panels_n : plan.chunk));
  ws_text_add(t, "policy: %s\nthreads: %d\nchosen_by: %s\n", ws_policy_name(plan.policy), plan.n_threads,
              ws_tuned_by_name(plan.tuned.by));
  ws_text_add(t, "arithmetic: IEEE multiply-add in the data's own type, by the diagonal's reciprocals\n");
}
