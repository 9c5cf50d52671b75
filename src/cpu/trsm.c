/* trsm.c - triangular systems on the CPU: in which order, by whom and in what memory the blocks of
 * trsm_block.c are worked on.
 *
 * Right sides are independent of each other. They are taken in chunks, whose packed panels stay in
 * the workspace while block after block of unknowns is solved; a work item is some right sides of
 * the chunk. Step s packs the T of block s and solves block s - 1, so packing fills the gaps at the
 * end of a step. Where T is one block, panels need not stay, and each worker has a few of his own.
 *
 * Few right sides: rows of T below a diagonal block are packed by the worker who multiplies with
 * them, as nobody else will (packs_late). If threads outnumber items, each block takes two steps
 * (is_split), its substitution, then the update of the unknowns that are left, cut by these.
 *
 * A small T is packed by each item on its own stack. A batch of many is cut by its systems. */
#include "cpu/trsm.h"
#include "core/tile.h"
#include "cpu/backend.h"
#include "cpu/queue.h"
#include "cpu/room.h"
#include "cpu/team.h"
#include "cpu/trsm_plan.h"
#include "cpu/workspace.h"

enum { ALIGN = 64 };

typedef struct solve_run {
  const ws_solve *v;
  const ws_solve_plan *plan;
  int64_t first_batch, n_batch, n_chunks;
  bool is_split;
  char *diagonal[2]; /* packed diagonal blocks of T, by turns; one worker alone needs one */
  char *left[2];     /* the rows below; those of each worker if packs_late */
  char *y;           /* the chunk's panels; or, for one block, those of each worker */
  int64_t left_bytes, y_bytes;
} solve_run;

/* What a step is about: a block of unknowns for a chunk of right sides; of two halves if split. */
typedef struct place {
  ws_block b;
  int64_t r, n; /* right sides of the chunk */
  int turn;
  bool solves, updates;
} place;

static int64_t n_places(const solve_run *run) {
  return run->n_batch * run->n_chunks * run->v->n_blocks * (run->is_split ? 2 : 1);
}

static place place_at(const solve_run *run, int64_t idx) {
  const int64_t halves = run->is_split ? 2 : 1, block_idx = idx / halves, n_blocks = run->v->n_blocks;
  place at;
  at.b = ws_block_at(run->v, run->first_batch + block_idx / n_blocks / run->n_chunks, block_idx % n_blocks);
  at.r = block_idx / n_blocks % run->n_chunks * run->plan->chunk;
  at.n = ws_min(run->plan->chunk, run->v->n - at.r);
  at.turn = (int)(block_idx % 2);
  at.solves = !run->is_split || idx % 2 == 0;
  at.updates = !run->is_split || idx % 2 == 1;
  return at;
}

/* ---- items ----------------------------------------------------------------------------------- */

static int64_t n_diagonal_items(const solve_run *run, const place *at) {
  return at->solves ? ws_diagonal_groups(run->v, &at->b) : 0;
}

static int64_t n_pack_items(const solve_run *run, const place *at) {
  const int64_t n_left = ws_ceil_div(ws_left_groups(run->v, &at->b), run->plan->groups_n);
  return n_diagonal_items(run, at) + (run->plan->packs_late ? 0 : n_left);
}

/* Groups of rows from `first` on, as many as an item has. */
static int64_t some_groups(const solve_run *run, const place *at, int64_t first) {
  return ws_min(run->plan->groups_n, ws_left_groups(run->v, &at->b) - first);
}

static void pack(const solve_run *run, const place *at, int64_t item_idx) {
  const ws_solve *v = run->v;
  const int64_t n_diagonal = n_diagonal_items(run, at);
  if (item_idx < n_diagonal) {
    ws_pack_diagonal_group(v, &at->b, item_idx, run->diagonal[at->turn]);
    return;
  }
  const int64_t first = (item_idx - n_diagonal) * run->plan->groups_n;
  char *out = run->left[at->turn] + first * v->ukr->nr * (at->b.k1 - at->b.k0) * v->bytes;
  ws_pack_left_groups(v, &at->b, first, some_groups(run, at, first), out);
}

static void pack_and_update(const solve_run *run, const place *at, int worker, int64_t first, char *y, int64_t n) {
  char *left = run->left[0] + worker * run->left_bytes;
  const int64_t n_groups = some_groups(run, at, first);
  ws_pack_left_groups(run->v, &at->b, first, n_groups, left);
  ws_update_left(run->v, &at->b, left, first, n_groups, y, n);
}

static void update(const solve_run *run, const place *at, int worker, char *y, int64_t n) {
  const int64_t n_groups = ws_left_groups(run->v, &at->b);
  if (!run->plan->packs_late)
    ws_update_left(run->v, &at->b, run->left[at->turn], 0, n_groups, y, n);
  else
    for (int64_t first = 0; first < n_groups; first += run->plan->groups_n) pack_and_update(run, at, worker, first, y, n);
}

/* Right sides r .. r + n - 1 of all, whose panels are at y. */
static void solve(const solve_run *run, const place *at, int64_t r, int64_t n, char *y) {
  const ws_solve *v = run->v;
  if (at->b.is_first) ws_pack_right_sides(v, at->b.batch, r, n, y);
  ws_solve_diagonal(v, &at->b, run->diagonal[at->turn], y, n);
  ws_unpack_unknowns(v, &at->b, r, n, y);
}

static void solve_item(const solve_run *run, const place *at, int worker, int64_t item_idx) {
  const ws_solve *v = run->v;
  const ws_solve_plan *plan = run->plan;
  const int64_t begin = item_idx * plan->item_n, n = ws_min(plan->item_n, at->n - begin);
  if (v->n_blocks == 1) {
    for (int64_t i = 0; i < n; i += plan->panels_n)
      solve(run, at, at->r + begin + i, ws_min(plan->panels_n, n - i), run->y + worker * run->y_bytes);
    return;
  }
  char *y = run->y + begin * v->m * v->bytes;
  solve(run, at, at->r + begin, n, y);
  if (at->updates) update(run, at, worker, y, n);
}

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const solve_run *run = context;
  n_items[WS_ITEM_FIRST] = n_items[WS_ITEM_SECOND] = 0;
  if (step > 0) {
    const place at = place_at(run, step - 1);
    n_items[WS_ITEM_FIRST] =
        at.solves ? ws_ceil_div(at.n, run->plan->item_n) : ws_ceil_div(ws_left_groups(run->v, &at.b), run->plan->groups_n);
  }
  if (step < n_places(run)) {
    const place at = place_at(run, step);
    n_items[WS_ITEM_SECOND] = n_pack_items(run, &at);
  }
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const solve_run *run = context;
  const place at = place_at(run, kind == WS_ITEM_FIRST ? step - 1 : step);
  if (kind == WS_ITEM_SECOND)
    pack(run, &at, item_idx);
  else if (at.solves)
    solve_item(run, &at, worker, item_idx);
  else
    pack_and_update(run, &at, worker, item_idx * run->plan->groups_n, run->y, at.n);
}

/* All steps by one worker. */
static void run_alone(solve_run *run) {
  for (int64_t step = 0; step <= n_places(run); step++) {
    int64_t n_items[WS_N_KINDS];
    count(run, step, n_items);
    for (int kind = 0; kind < WS_N_KINDS; kind++)
      for (int64_t i = 0; i < n_items[kind]; i++) item(run, 0, step, kind, i);
  }
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t round_up(int64_t x, int64_t unit) { return ws_ceil_div(x, unit) * unit; }

typedef struct memory_need {
  int64_t diagonal_bytes, left_bytes, y_bytes;
  int n_diagonals, n_lefts, n_ys;
} memory_need;

/* The largest block of T is the first one, or, going up, where that may be short, the second. */
static memory_need need_of(const ws_solve *v, const ws_solve_plan *plan, int n_workers) {
  const bool is_one = v->n_blocks == 1;
  const int n_turns = n_workers > 1 ? 2 : 1;
  memory_need need = {.n_diagonals = n_turns, .n_lefts = plan->packs_late ? n_workers : n_turns, .n_ys = is_one ? n_workers : 1};
  for (int64_t s = 0; s < ws_min(2, v->n_blocks); s++) {
    const ws_block b = ws_block_at(v, 0, s);
    const int64_t n_groups = plan->packs_late ? plan->groups_n : ws_left_groups(v, &b);
    need.diagonal_bytes = ws_max(need.diagonal_bytes, ws_packed_diagonal_bytes(v, &b));
    need.left_bytes = ws_max(need.left_bytes, ws_packed_left_bytes(v, &b, n_groups));
  }
  need.y_bytes = round_up(ws_panel_bytes(v, is_one ? ws_min(plan->panels_n, v->n) : ws_min(plan->chunk, v->n)), ALIGN);
  return need;
}

static int64_t need_bytes(const memory_need *need) {
  return need->n_diagonals * need->diagonal_bytes + need->n_lefts * need->left_bytes + need->n_ys * need->y_bytes;
}

static solve_run run_in(const ws_solve *v, const ws_solve_plan *plan, const memory_need *need, char *memory) {
  solve_run run = {.v = v, .plan = plan, .n_batch = v->batch_count, .n_chunks = ws_ceil_div(v->n, plan->chunk)};
  run.left_bytes = need->left_bytes, run.y_bytes = need->y_bytes;
  run.diagonal[0] = memory;
  run.diagonal[1] = memory + (need->n_diagonals - 1) * need->diagonal_bytes;
  run.left[0] = memory + need->n_diagonals * need->diagonal_bytes;
  run.left[1] = run.left[0] + (need->n_lefts - 1) * need->left_bytes;
  run.y = run.left[0] + need->n_lefts * need->left_bytes;
  return run;
}

/* ---- a small T: each item packs it for itself, on its stack or in a room ---------------------- */

enum { ON_STACK = 16 * 1024 };

typedef struct small_run {
  const ws_solve *v;
  const ws_solve_plan *plan;
  int64_t n_ranges; /* of right sides */
} small_run;

static void small_count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const small_run *run = context;
  (void)step;
  n_items[0] = ws_ceil_div(run->v->batch_count, run->plan->n_systems) * run->n_ranges;
  n_items[1] = 0;
}

static void solve_small(const ws_solve *v, const ws_solve_plan *plan, int64_t batch, int64_t r, int64_t n, char *packed) {
  const ws_block b = ws_block_at(v, batch, 0);
  char *y = packed + ws_packed_diagonal_bytes(v, &b);
  const int64_t n_groups = ws_diagonal_groups(v, &b);
  for (int64_t g = 0; g < n_groups; g++) ws_pack_diagonal_group(v, &b, g, packed);
  for (int64_t i = 0; i < n; i += plan->panels_n) {
    const int64_t n_panels = ws_min(plan->panels_n, n - i);
    ws_pack_right_sides(v, batch, r + i, n_panels, y);
    ws_solve_diagonal(v, &b, packed, y, n_panels);
    ws_unpack_unknowns(v, &b, r + i, n_panels, y);
  }
}

/* Right sides r .. r + n - 1 of systems first .. last - 1. */
typedef struct small_share {
  int64_t first, last, r, n;
} small_share;

static void solve_systems(const ws_solve *v, const ws_solve_plan *plan, const small_share *s, char *packed) {
  for (int64_t batch = s->first; batch < s->last; batch++)
    if (!ws_solve_in_place(v, batch, s->r, s->n)) solve_small(v, plan, batch, s->r, s->n, packed);
}

static __attribute__((noinline)) void solve_on_stack(const ws_solve *v, const ws_solve_plan *plan, const small_share *s) {
  _Alignas(ALIGN) char packed[ON_STACK];
  solve_systems(v, plan, s, packed);
}

/* Memory for packed ones is taken where the first system needs it. */
static void solve_share(const ws_solve *v, const ws_solve_plan *plan, const small_share *share) {
  small_share s = *share;
  while (s.first < s.last && ws_solve_in_place(v, s.first, s.r, s.n)) s.first++;
  if (s.first == s.last) return;
  const ws_block b = ws_block_at(v, s.first, 0);
  if (ws_packed_diagonal_bytes(v, &b) + ws_panel_bytes(v, plan->panels_n) <= ON_STACK) {
    solve_on_stack(v, plan, &s);
    return;
  }
  const ws_room room = ws_room_take(WS_SOLVE_SMALL_BYTES);
  solve_systems(v, plan, &s, room.at);
  ws_room_give(&room);
}

static void small_item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const small_run *run = context;
  const ws_solve_plan *plan = run->plan;
  (void)worker, (void)step, (void)kind;
  const int64_t r = item_idx % run->n_ranges * plan->item_n, first = item_idx / run->n_ranges * plan->n_systems;
  const small_share share = {first, ws_min(run->v->batch_count, first + plan->n_systems), r, ws_min(plan->item_n, run->v->n - r)};
  solve_share(run->v, plan, &share);
}

static void run_small(const ws_solve *v, const ws_solve_plan *plan) {
  if (plan->n_threads == 1) {
    solve_share(v, plan, &(small_share){0, v->batch_count, 0, v->n});
    return;
  }
  small_run run = {v, plan, ws_ceil_div(v->n, plan->item_n)};
  const ws_team_job job = {plan->policy, plan->n_threads, 1, &run, NULL, small_count, small_item};
  ws_team_run(&job);
}

/* ---- a batch, cut by its systems ------------------------------------------------------------- */

typedef struct batch_run {
  const ws_solve *v;
  const ws_solve_plan *plan;
  memory_need need;
  char *memory; /* of each worker */
} batch_run;

static void batch_count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const batch_run *run = context;
  (void)step;
  n_items[0] = ws_ceil_div(run->v->batch_count, run->plan->n_systems);
  n_items[1] = 0;
}

static void batch_item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const batch_run *all = context;
  (void)step, (void)kind;
  solve_run run = run_in(all->v, all->plan, &all->need, all->memory + worker * need_bytes(&all->need));
  run.first_batch = item_idx * all->plan->n_systems;
  run.n_batch = ws_min(all->plan->n_systems, all->v->batch_count - run.first_batch);
  run_alone(&run);
}

static bool run_batch(const ws_solve *v, const ws_solve_plan *plan) {
  batch_run run = {.v = v, .plan = plan, .need = need_of(v, plan, 1)};
  ws_workspace *memory = ws_workspace_get((size_t)(plan->n_threads * need_bytes(&run.need)));
  if (!memory) return false;
  run.memory = ws_workspace_data(memory);
  const ws_team_job job = {plan->policy, plan->n_threads, 1, &run, NULL, batch_count, batch_item};
  ws_team_run(&job);
  ws_workspace_put(memory);
  return true;
}

/* ---- one system after the other -------------------------------------------------------------- */

static bool run_blocked(const ws_solve *v, const ws_solve_plan *plan) {
  const memory_need need = need_of(v, plan, plan->n_threads);
  ws_workspace *memory = ws_workspace_get((size_t)need_bytes(&need));
  if (!memory) return false;
  solve_run run = run_in(v, plan, &need, ws_workspace_data(memory));
  run.is_split = plan->path == WS_SOLVE_SPLIT;
  const ws_team_job job = {plan->policy, plan->n_threads, n_places(&run) + 1, &run, NULL, count, item};
  ws_team_run(&job);
  ws_workspace_put(memory);
  return true;
}

wsgemm_status ws_cpu_solve(const ws_call *call, const ws_system *s, int device) {
  (void)device;
  ws_solve v;
  ws_solve_plan plan;
  ws_solve_plan_make(call, s, &v, &plan);
  switch (plan.path) {
  case WS_SOLVE_DIRECT:
    break;
  case WS_SOLVE_SMALL:
    run_small(&v, &plan);
    return WSGEMM_SUCCESS;
  case WS_SOLVE_BATCH:
    if (run_batch(&v, &plan)) return WSGEMM_SUCCESS;
    break;
  case WS_SOLVE_BLOCKED:
  case WS_SOLVE_SPLIT:
    if (run_blocked(&v, &plan)) return WSGEMM_SUCCESS;
    break;
  }
  ws_solve_directly(&v);
  return WSGEMM_SUCCESS;
}
