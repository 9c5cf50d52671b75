/* gemm_dots.c - few rows or few columns, with the long operand along k: its lines are read where they
 * are and multiplied with those of the short operand, along k in vectors (kernels/ukr_dots.h).
 *
 * The short operand's lines are copied first, a block of k at a time, if they are not along k
 * themselves. Items are runs of the long side of C; each takes all of k. */
#include "core/tile.h"
#include "cpu/paths.h"
#include "cpu/rectangle.h"
#include "cpu/room.h"
#include "cpu/team.h"
#include "cpu/workspace.h"

enum { LINE = 64 };

typedef struct dots_run {
  const ws_problem *p;
  const ws_plan *plan;
} dots_run;

/* A block of k of some lines of an operand, which follow each other ld elements apart. */
typedef struct lines {
  const char *at;
  int64_t ld;
} lines;

/* The longer side's lines pass by once, a strip at a time; each meets all lines of the other one, which
 * stay near. */
static void tiles(const ws_problem *p, const ws_ukr_set *ukr, const ws_rectangle *r, const ws_scale *scale, int64_t kb, lines a,
                  lines b) {
  const int bytes = ws_types[p->a.type].bytes;
  const int64_t m = r->i1 - r->i0, n = r->j1 - r->j0;
  const bool by_rows = m > n;
  const lines passing = by_rows ? a : b, staying = by_rows ? b : a;
  const int64_t n_passing = by_rows ? m : n, n_staying = by_rows ? n : m;
  const int64_t most_passing = by_rows ? WS_DOTS_ROWS : ukr->dots_n, most_staying = by_rows ? ukr->dots_n : WS_DOTS_ROWS;
  for (int64_t first = 0, count; first < n_passing; first += count) {
    count = ws_strip(n_passing - first, most_passing);
    for (int64_t other = 0, n_other; other < n_staying; other += n_other) {
      n_other = ws_strip(n_staying - other, most_staying);
      const char *x = passing.at + first * passing.ld * bytes, *y = staying.at + other * staying.ld * bytes;
      char *c = ws_c_at(p, r->batch, r->i0 + (by_rows ? first : other), r->j0 + (by_rows ? other : first), bytes);
      if (by_rows)
        ukr->dots(kb, x, passing.ld, y, staying.ld, c, p->c.ld, scale, count, n_other);
      else
        ukr->dots(kb, y, staying.ld, x, passing.ld, c, p->c.ld, scale, n_other, count);
    }
  }
}

/* Lines first .. first + n - 1 of an operand as they are. */
static lines in_place(const ws_problem *p, bool is_b, const ws_rectangle *r, int64_t k0) {
  const int bytes = ws_types[p->a.type].bytes;
  return is_b ? (lines){ws_operand_at(&p->b, r->batch, k0, r->j0, bytes), p->b.ld}
              : (lines){ws_operand_at(&p->a, r->batch, r->i0, k0, bytes), p->a.ld};
}

/* One block of k with one operand copied to `room` by runs of at most `most` lines, each ld long. */
static void block_by_copies(const ws_problem *p, const ws_ukr_set *ukr, const ws_rectangle *all, const ws_scale *scale,
                            int64_t k0, int64_t kb, bool is_b, char *room, int64_t most, int64_t ld) {
  ws_rectangle r = *all;
  for (int64_t n, line = is_b ? all->j0 : all->i0; line < (is_b ? all->j1 : all->i1); line += n) {
    n = ws_min(most, (is_b ? all->j1 : all->i1) - line);
    if (is_b)
      r.j0 = line, r.j1 = line + n;
    else
      r.i0 = line, r.i1 = line + n;
    const lines from = in_place(p, is_b, &r, k0), copied = {room, ld}, other = in_place(p, !is_b, &r, k0);
    ukr->transpose(n, kb, from.at, from.ld, room, ld);
    tiles(p, ukr, &r, scale, kb, is_b ? other : copied, is_b ? copied : other);
  }
}

typedef void block_fn(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r, const ws_scale *scale, int64_t k0,
                      int64_t kb, void *argument);

/* All blocks of k: the first as alpha and beta say, the later ones added. */
static inline void all_blocks(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r, block_fn *block, void *argument) {
  ws_scale scale = ws_scale_first(p);
  for (int64_t k0 = 0; k0 < p->k; k0 += plan->kc) {
    block(p, plan, r, &scale, k0, ws_min(plan->kc, p->k - k0), argument);
    if (k0 == 0 && p->k > plan->kc) scale = ws_scale_later(p);
  }
}

static void plain_block(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r, const ws_scale *scale, int64_t k0,
                        int64_t kb, void *argument) {
  (void)argument;
  tiles(p, plan->row->ukr, r, scale, kb, in_place(p, false, r, k0), in_place(p, true, r, k0));
}

typedef struct copies {
  char *room;
  int64_t most, ld;
  bool is_b;
} copies;

/* Copies of all lines, or of as many as there is room for: at least one. */
static void copied_block(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r, const ws_scale *scale, int64_t k0,
                         int64_t kb, void *argument) {
  const copies *c = argument;
  block_by_copies(p, plan->row->ukr, r, scale, k0, kb, c->is_b, c->room, c->most, c->ld);
}

static __attribute__((noinline)) void multiply_on_stack(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r,
                                                        const copies *given) {
  _Alignas(LINE) char lines[WS_STACK_PANEL_BYTES];
  copies c = *given;
  c.room = lines;
  all_blocks(p, plan, r, copied_block, &c);
}

/* Of lines that do not all begin in the same set of L1. */
static int64_t copy_ld(int64_t kb, int64_t bytes) { return ((kb * bytes + LINE - 1) / LINE + 1) * LINE / bytes; }

static void multiply(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r) {
  const int64_t bytes = ws_types[p->a.type].bytes, kb = ws_min(plan->kc, p->k);
  if (p->a.trans && !p->b.trans) {
    all_blocks(p, plan, r, plain_block, NULL);
    return;
  }
  copies c = {NULL, 0, copy_ld(kb, bytes), p->b.trans};
  const int64_t n = c.is_b ? r->j1 - r->j0 : r->i1 - r->i0, line_bytes = c.ld * bytes;
  c.most = n;
  if (n * line_bytes <= WS_STACK_PANEL_BYTES) {
    multiply_on_stack(p, plan, r, &c);
    return;
  }
  const bool has_room = n * line_bytes <= (int64_t)WS_ROOM_BYTES;
  ws_workspace *memory = has_room ? NULL : ws_workspace_get((size_t)(n * line_bytes));
  if (memory) {
    c.room = ws_workspace_data(memory);
    all_blocks(p, plan, r, copied_block, &c);
    ws_workspace_put(memory);
    return;
  }
  const ws_room room = ws_room_take(WS_ROOM_BYTES);
  c.room = room.at, c.most = (int64_t)WS_ROOM_BYTES / line_bytes;
  all_blocks(p, plan, r, copied_block, &c);
  ws_room_give(&room);
}

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const dots_run *run = context;
  (void)step;
  n_items[0] = ws_ceil_div(run->p->batch_count, run->plan->n_products) * ws_ceil_div(run->p->m, run->plan->bm) *
               ws_ceil_div(run->p->n, run->plan->bn);
  n_items[1] = 0;
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const dots_run *run = context;
  const ws_problem *p = run->p;
  const ws_plan *plan = run->plan;
  (void)worker, (void)step, (void)kind;
  const int64_t n_rows = ws_ceil_div(p->m, plan->bm), n_cols = ws_ceil_div(p->n, plan->bn);
  const int64_t i0 = item_idx % n_rows * plan->bm, j0 = item_idx / n_rows % n_cols * plan->bn;
  const int64_t first = item_idx / n_rows / n_cols * plan->n_products, last = ws_min(p->batch_count, first + plan->n_products);
  ws_rectangle r = {first, i0, ws_min(p->m, i0 + plan->bm), j0, ws_min(p->n, j0 + plan->bn)};
  for (; r.batch < last; r.batch++) multiply(p, plan, &r);
}

static __attribute__((noinline)) void small_on_stack(const ws_problem *p, const ws_ukr_set *ukr, const ws_rectangle *all,
                                                     const ws_scale *scale, int bytes) {
  _Alignas(LINE) char lines[WS_STACK_PANEL_BYTES];
  const int64_t ld = copy_ld(p->k, bytes);
  block_by_copies(p, ukr, all, scale, 0, p->k, p->b.trans, lines, WS_STACK_PANEL_BYTES / (ld * bytes), ld);
}

void ws_cpu_small_dots(const ws_problem *p, const ws_cpu_row *row) {
  const ws_rectangle all = {0, 0, p->m, 0, p->n};
  const ws_scale *scale = &p->scale;
  ws_scale conjugated;
  if (p->a.conj || p->b.conj) conjugated = ws_scale_first(p), scale = &conjugated;
  if (p->a.trans && !p->b.trans)
    tiles(p, row->ukr, &all, scale, p->k, in_place(p, false, &all, 0), in_place(p, true, &all, 0));
  else
    small_on_stack(p, row->ukr, &all, scale, ws_types[p->a.type].bytes);
}

void ws_dots_run(const ws_problem *p, const ws_plan *plan) {
  if (plan->n_threads == 1) {
    for (int64_t batch = 0; batch < p->batch_count; batch++) {
      const ws_rectangle all = {batch, 0, p->m, 0, p->n};
      multiply(p, plan, &all);
    }
    return;
  }
  dots_run run = {p, plan};
  const ws_team_job job = {plan->policy, plan->n_threads, 1, &run, NULL, count, item};
  ws_team_run(&job);
}
