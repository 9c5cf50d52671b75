/* grouped.c - groups of products on the CPU: all groups and their tiles are one queue of work.
 *
 * Items are about equally much work: several small groups one after the other, one group, or a
 * rectangle of the C of a large one. Each is computed by one thread, along the path and in the blocks of
 * k that the group's product alone would have, so its bits are those. Along the paths by tiles these do
 * not depend on how C is cut; groups of the other paths stay whole.
 *
 *   unit       first .. last        items
 *   small      groups 0 .. 17       1            the work of one item, or less
 *   large      group 18             3 x 2        rectangles of bm x bn
 *   ...                                          item to unit: by first_item, which ascends */
#include <stdatomic.h>

#include "core/groups.h"
#include "core/processors.h"
#include "core/status.h"
#include "core/tile.h"
#include "cpu/backend.h"
#include "cpu/epilogue.h"
#include "cpu/paths.h"
#include "cpu/queue.h"
#include "cpu/run.h"
#include "cpu/team.h"
#include "cpu/workspace.h"

typedef struct unit {
  int64_t first, last; /* groups; of a large one both are it */
  int64_t bm, bn;      /* 0: whole */
  int64_t first_item;
} unit;

typedef struct grouped_run {
  const ws_groups *groups;
  ws_call alone; /* the call, with one thread */
  unit *units;   /* one more than there are, for its first_item */
  int64_t n_units;
  _Atomic int status;
} grouped_run;

/* In half multiply-adds of floats, what a group costs at least among them. In whole numbers: those of
 * floating point would raise flags. */
static int64_t work_of(const ws_problem *p) {
  enum { LEAST = 400 };
  const int64_t most = INT64_C(1) << 45;
  int64_t work;
  if (__builtin_mul_overflow(p->m, p->n, &work) || __builtin_mul_overflow(work, p->k, &work) || work > most) work = most;
  return LEAST + work * ws_types[p->a.type].n_real * ws_types[p->a.type].bytes / 2;
}

static int64_t work_of_all(const ws_groups *groups) {
  const int64_t most = INT64_C(1) << 52;
  int64_t work = 0;
  ws_problem p;
  ws_product_of_group(groups, 0, &p);
  if (ws_groups_are_alike(groups)) {
    if (ws_is_empty(&p)) return 0;
    return __builtin_mul_overflow(work_of(&p), groups->count, &work) ? most : ws_min(most, work);
  }
  for (int64_t group = 0; group < groups->count; group++) {
    ws_set_group(groups, group, &p);
    if (!ws_is_empty(&p)) work = ws_min(most, work + work_of(&p));
  }
  return work;
}

/* ---- cutting --------------------------------------------------------------------------------- */

/* Whether tiles of C have the bits that they have in the whole. */
static bool may_be_cut(const ws_problem *p, const ws_plan *plan) {
  if (ws_product_is_zero(p) || plan->transposed || plan->c_by_rows) return false;
  if (p->has_epilogue && !ws_is_half(p->a.type) && ws_residual_is_c(p)) return false; /* kept whole before */
  return plan->path == WS_PATH_DIRECT || plan->path == WS_PATH_PACKED || plan->path == WS_PATH_HALF;
}

static int64_t round_up(int64_t x, int64_t unit) { return ws_ceil_div(x, unit) * unit; }

/* Halves the longer side until the rectangles are so little work, or small. */
static void cut(const ws_problem *p, const ws_plan *plan, int64_t work_each, unit *u) {
  const int64_t least_m = 4 * plan->row->mr, least_n = 8 * plan->row->nr;
  int64_t work = work_of(p);
  u->bm = p->m, u->bn = p->n;
  while (work > work_each + work_each / 2 && (u->bm > least_m || u->bn > least_n)) {
    if (u->bn <= least_n || (u->bm > least_m && u->bm >= u->bn))
      u->bm = round_up(ws_ceil_div(u->bm, 2), plan->row->mr);
    else
      u->bn = round_up(ws_ceil_div(u->bn, 2), plan->row->nr);
    work /= 2;
  }
}

static int64_t items_of(const grouped_run *run, const unit *u) {
  if (u->bm == 0) return 1;
  ws_problem p;
  ws_product_of_group(run->groups, u->first, &p);
  return ws_ceil_div(p.m, u->bm) * ws_ceil_div(p.n, u->bn);
}

/* How many units; run->units has room for as many as there are groups, and one. */
static int64_t make_units(grouped_run *run, int64_t work_each) {
  int64_t n = 0, n_items = 0, in_unit = 0;
  bool is_open = false;
  ws_problem p = ws_shared_by_groups(run->groups);
  for (int64_t group = 0; group < run->groups->count; group++) {
    ws_set_group(run->groups, group, &p);
    if (ws_is_empty(&p)) continue;
    const int64_t work = work_of(&p);
    ws_plan plan;
    const bool is_large = work > 2 * work_each;
    if (is_large) ws_plan_make(&run->alone, &p, &plan);
    if (is_open && (is_large || in_unit + work > work_each)) run->units[n++].first_item = n_items++, is_open = false;
    if (is_large && may_be_cut(&p, &plan)) {
      unit *u = &run->units[n++];
      *u = (unit){group, group, 0, 0, n_items};
      cut(&p, &plan, work_each, u);
      n_items += items_of(run, u);
      continue;
    }
    if (!is_open) run->units[n] = (unit){group, group, 0, 0, 0}, in_unit = 0, is_open = true;
    run->units[n].last = group;
    in_unit += work;
  }
  if (is_open) run->units[n++].first_item = n_items++;
  run->units[n].first_item = n_items;
  return n;
}

/* ---- running --------------------------------------------------------------------------------- */

static void run_whole(grouped_run *run, int64_t first, int64_t last) {
  ws_problem p = ws_shared_by_groups(run->groups);
  for (int64_t group = first; group <= last; group++) {
    ws_set_group(run->groups, group, &p);
    if (ws_is_empty(&p)) continue;
    const wsgemm_status status = ws_cpu_gemm(&run->alone, &p, 0);
    if (status) atomic_store_explicit(&run->status, (int)status, memory_order_relaxed);
  }
}

/* m x n elements of C from (i, j) on, as a product of their own. */
static ws_problem part_of(const ws_problem *p, int64_t i, int64_t j, int64_t m, int64_t n) {
  const int bytes = ws_types[p->a.type].bytes, c_bytes = ws_types[p->c.type].bytes;
  ws_problem part = *p;
  part.m = m, part.n = n;
  part.a.data = ws_operand_at(&p->a, 0, i, 0, bytes), part.b.data = ws_operand_at(&p->b, 0, 0, j, bytes);
  part.c.data = ws_c_at(p, 0, i, j, c_bytes);
  if (!p->has_epilogue) return part;
  ws_epilogue *e = &part.epilogue;
  e->residual = ws_moved(e->residual, i + j * e->ld_residual, c_bytes);
  e->bias = ws_moved(e->bias, e->bias_per_row ? i : j, ws_types[e->type_bias].bytes);
  return part;
}

static void run_part(grouped_run *run, const unit *u, int64_t in_unit) {
  ws_problem p;
  ws_product_of_group(run->groups, u->first, &p);
  ws_plan plan;
  ws_plan_make(&run->alone, &p, &plan); /* of the whole: its path, row and blocks of k */
  const int64_t n_rows = ws_ceil_div(p.m, u->bm), i = in_unit % n_rows * u->bm, j = in_unit / n_rows * u->bn;
  const ws_problem part = part_of(&p, i, j, ws_min(u->bm, p.m - i), ws_min(u->bn, p.n - j));
  ws_cpu_run(&part, &plan);
  if (part.has_epilogue) ws_epilogue_walk(&run->alone, &part, !ws_is_half(p.a.type), true);
}

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const grouped_run *run = context;
  (void)step;
  n_items[0] = run->units[run->n_units].first_item;
  n_items[1] = 0;
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  grouped_run *run = context;
  (void)worker, (void)step, (void)kind;
  int64_t low = 0, high = run->n_units; /* units[low].first_item <= item_idx < units[high].first_item */
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (run->units[middle].first_item <= item_idx)
      low = middle;
    else
      high = middle;
  }
  const unit *u = &run->units[low];
  if (u->bm == 0)
    run_whole(run, u->first, u->last);
  else
    run_part(run, u, item_idx - u->first_item);
}

wsgemm_status ws_cpu_grouped(const ws_call *call, const ws_groups *groups, int device) {
  (void)device;
  enum { ITEMS_PER_THREAD = 8 };
  grouped_run run = {.groups = groups, .alone = *call};
  run.alone.settings.n_threads = 1;
  const int64_t work = work_of_all(groups);
  const double each = 2 * WS_WORK_PER_THREAD; /* of a thread */
  const int n_threads = (double)work < 2 * each ? 1 : ws_threads_sharing(ws_thread_limit(call), (double)work, each);
  ws_workspace *memory = n_threads > 1 ? ws_workspace_get((size_t)(groups->count + 1) * sizeof(unit)) : NULL;
  if (memory) {
    run.units = ws_workspace_data(memory);
    run.n_units = make_units(&run, work / ((int64_t)n_threads * ITEMS_PER_THREAD));
    const ws_team_job job = {ws_cpu_policy(call, &ws_tuning_of_model), n_threads, 1, &run, NULL, count, item};
    ws_team_run(&job);
    ws_workspace_put(memory);
  } else {
    run_whole(&run, 0, groups->count - 1);
  }
  return (wsgemm_status)atomic_load_explicit(&run.status, memory_order_relaxed);
}
