/* direct_structured.c - small products with structured operands or a region of C, without memory
 * of their own: also the way out where there is none for packing.
 *
 * A structured or transposed A is packed a panel of rows at a time through the stack, B is read
 * where it is; a structured B is packed a panel of columns at a time, A is read where it is.
 * Blocks of k are those of the packed path, so that both give the same bits; panels follow each
 * other in the order of the blocks, so that C may be the other operand itself. */
#include "core/tile.h"
#include "cpu/paths.h"
#include "cpu/room.h"
#include "cpu/structured.h"
#include "cpu/team.h"

enum { PANEL_ALIGN_BITS = 64 * 8 };

typedef struct direct_run {
  const ws_problem *p;
  const ws_problem *second; /* p->second, if its tiles follow those of p at once; NULL: they do not, or there is none */
  const ws_ukr_set *ukr;
  int bytes;
  bool descends;
  int64_t i0, i1, j0, j1; /* the part of C that is computed */
  int64_t batch, k0, kb;  /* the block */
  const ws_scale *first, *later, *of_second;
} direct_run;

/* The same tile of the second product, whose operands are read where they are. */
static inline ws_tile_work second_of(const direct_run *run, const ws_tile_work *t) {
  const ws_problem *second = run->second;
  ws_tile_work u = *t;
  u.a = ws_operand_at(&second->a, t->batch, t->i, run->k0, run->bytes), u.a_ld = second->a.ld;
  u.b = ws_operand_at(&second->b, t->batch, run->k0, t->j, run->bytes), u.b_ld = second->b.ld;
  return u;
}

/* One tile: whole, or what of it is in the region. */
static inline void run_tile(const direct_run *run, int form, int64_t vectors, const ws_tile_work *t, const ws_scale *scale) {
  const ws_problem *p = run->p;
  ws_tile_work u;
  if (run->second) u = second_of(run, t);
  if (ws_meets_edge(p->c.region, t->i, t->m, t->j, t->n)) {
    ws_tile_in_region(p, run->ukr, form, t, scale, run->second ? &u : NULL, run->of_second);
    return;
  }
  ws_ukr_fn *const tile = run->ukr->tile[form][vectors - 1][t->n - 1];
  char *c = ws_c_at(p, t->batch, t->i, t->j, run->bytes);
  tile(t->k, t->a, t->a_ld, t->b, t->b_ld, c, p->c.ld, scale, t->m);
  if (run->second) tile(u.k, u.a, u.a_ld, u.b, u.b_ld, c, p->c.ld, run->of_second, u.m);
}

/* A panel of rows, t->a at the block's first k, against the columns j0 .. j1 of a B without
 * structure. */
static void rows_times_b(const direct_run *run, ws_tile_work t, int64_t vectors, int64_t j0, int64_t j1) {
  const ws_problem *p = run->p;
  const ws_tile_k k = ws_tile_k_of(p, t.i, t.m, 0, p->n, run->k0, run->kb);
  if (k.begin >= k.end) return;
  const ws_scale *scale = k.first ? run->first : run->later;
  const int form = p->b.trans ? WS_B_ROWS : WS_B_COLS;
  const int64_t most = run->ukr->width[vectors - 1], k_half = ws_half_k(p, run->ukr, t.i, &k, run->k0);
  t.k = k.end - k.begin, t.a += k.begin * t.a_ld * run->bytes, t.b_ld = p->b.ld;
  for (t.j = j0; t.j < j1; t.j += t.n) {
    t.n = ws_min(most, j1 - t.j);
    t.b = ws_operand_at(&p->b, t.batch, run->k0 + k.begin, t.j, run->bytes);
    if (k_half > 0 && t.m == run->ukr->mr && t.n == run->ukr->nr)
      run->ukr->half[form][ws_half_of(p)](t.k, k_half, t.a, t.a_ld, t.b, t.b_ld, ws_c_at(p, t.batch, t.i, t.j, run->bytes),
                                          p->c.ld, scale);
    else
      run_tile(run, form, vectors, &t, scale);
  }
}

/* The columns that rows i .. i + m - 1 have in the region: those before or behind the diagonal are
 * cut into tiles of their own. */
static void panel_of_rows(const direct_run *run, const ws_tile_work *t, int64_t vectors) {
  const int64_t begin = ws_min(ws_max(run->j0, t->i), run->j1), end = ws_min(ws_max(run->j0, t->i + t->m), run->j1);
  if (run->p->c.region == WS_ALL) {
    rows_times_b(run, *t, vectors, run->j0, run->j1);
    return;
  }
  if (run->p->c.region == WS_LOWER) rows_times_b(run, *t, vectors, run->j0, begin);
  rows_times_b(run, *t, vectors, begin, end);
  if (run->p->c.region == WS_UPPER) rows_times_b(run, *t, vectors, end, run->j1);
}

/* Of two products the panels follow each other in the same memory. */
static void packed_rows(const direct_run *run, char *panel) {
  const ws_problem *p = run->p;
  const ws_ukr_set *ukr = run->ukr;
  const int64_t mr = ukr->mr, n_panels = ws_ceil_div(run->i1 - run->i0, mr);
  direct_run alone = *run, second = *run;
  alone.second = second.second = NULL;
  second.p = p->second, second.first = second.later = run->of_second;
  for (int64_t s = 0; s < n_panels; s++) {
    const int64_t i = run->i0 + (run->descends ? n_panels - 1 - s : s) * mr, m = ws_min(mr, run->i1 - i);
    const ws_part part = {run->batch, i, m, run->k0, run->kb, false};
    ws_pack_operand(&p->a, &part, ukr->pack, panel, mr);
    const ws_tile_work t = {.a = panel, .a_ld = mr, .batch = run->batch, .i = i, .m = m};
    panel_of_rows(&alone, &t, ws_vectors_of(m, ukr->vl));
    if (!p->second) continue;
    ws_pack_operand(&p->second->a, &part, ukr->pack, panel, mr);
    panel_of_rows(&second, &t, ws_vectors_of(m, ukr->vl));
  }
}

static void plain_rows(const direct_run *run) {
  const ws_problem *p = run->p;
  const ws_ukr_set *ukr = run->ukr;
  for (int64_t m, i = run->i0; i < run->i1; i += m) {
    m = ws_min(ukr->mr, run->i1 - i);
    const ws_tile_work t = {
        .a = ws_operand_at(&p->a, run->batch, i, run->k0, run->bytes), .a_ld = p->a.ld, .batch = run->batch, .i = i, .m = m};
    panel_of_rows(run, &t, ws_vectors_of(m, ukr->vl));
  }
}

/* A panel of columns of a structured B, packed, against all rows of an untransposed A. */
static void columns_times_a(const direct_run *run, ws_tile_work t) {
  const ws_problem *p = run->p;
  const ws_ukr_set *ukr = run->ukr;
  const ws_tile_k k = ws_tile_k_of(p, 0, p->m, t.j, t.n, run->k0, run->kb);
  if (k.begin >= k.end) return;
  const ws_scale *scale = k.first ? run->first : run->later;
  t.k = k.end - k.begin, t.b += k.begin * t.b_ld * run->bytes, t.a_ld = p->a.ld;
  for (t.i = run->i0; t.i < run->i1; t.i += t.m) {
    t.m = ws_min(ukr->mr, run->i1 - t.i);
    t.a = ws_operand_at(&p->a, t.batch, t.i, run->k0 + k.begin, run->bytes);
    run_tile(run, WS_B_ROWS, ws_vectors_of(t.m, ukr->vl), &t, scale);
  }
}

static void packed_columns(const direct_run *run, char *panel) {
  const ws_problem *p = run->p;
  const int64_t nr = run->ukr->nr, n_panels = ws_ceil_div(run->j1 - run->j0, nr);
  for (int64_t s = 0; s < n_panels; s++) {
    const int64_t j = run->j0 + (run->descends ? n_panels - 1 - s : s) * nr, n = ws_min(nr, run->j1 - j);
    const ws_part part = {run->batch, j, n, run->k0, run->kb, true};
    ws_pack_operand(&p->b, &part, run->ukr->pack, panel, nr);
    const ws_tile_work t = {.b = panel, .b_ld = nr, .batch = run->batch, .j = j, .n = n};
    columns_times_a(run, t);
  }
}

static void packed(const direct_run *run, char *panel) {
  if (run->p->b.structure != WS_GENERAL)
    packed_columns(run, panel);
  else
    packed_rows(run, panel);
}

static __attribute__((noinline)) void packed_on_stack(const direct_run *run, int64_t bytes) {
  packed(run, __builtin_alloca_with_align((size_t)bytes, PANEL_ALIGN_BITS));
}

static void multiply_block(const direct_run *run) {
  const ws_problem *p = run->p;
  if (p->b.structure == WS_GENERAL && p->a.structure == WS_GENERAL && !p->a.trans) {
    plain_rows(run);
    return;
  }
  const int64_t lines = p->b.structure != WS_GENERAL ? run->ukr->nr : run->ukr->mr, bytes = lines * run->kb * run->bytes;
  if (bytes <= WS_STACK_PANEL_BYTES) {
    packed_on_stack(run, bytes);
    return;
  }
  const ws_room room = ws_room_take((size_t)bytes);
  packed(run, room.at);
  ws_room_give(&room);
}

/* All of k for the part of C. */
static void multiply(direct_run *run, const ws_plan *plan) {
  const ws_problem *p = run->p;
  const int64_t n_blocks = ws_ceil_div(p->k, plan->kc);
  for (int64_t s = 0; s < n_blocks; s++) {
    run->k0 = (run->descends ? n_blocks - 1 - s : s) * plan->kc;
    run->kb = ws_min(plan->kc, p->k - run->k0);
    multiply_block(run);
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct direct_job {
  direct_run run; /* what all parts have alike */
  const ws_plan *plan;
  ws_tile_grid grid;
} direct_job;

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const direct_job *job = context;
  (void)step;
  n_items[0] = ws_tile_items(&job->grid);
  n_items[1] = 0;
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const direct_job *job = context;
  const ws_plan *plan = job->plan;
  (void)worker, (void)step, (void)kind;
  const ws_tile t = ws_tile_at(&job->grid, item_idx);
  direct_run run = job->run;
  run.batch = t.batch;
  run.i0 = t.row * plan->bm, run.i1 = ws_min(run.p->m, run.i0 + plan->bm);
  run.j0 = t.col * plan->bn, run.j1 = ws_min(run.p->n, run.j0 + plan->bn);
  multiply(&run, plan);
}

void ws_direct_structured(const ws_problem *p, const ws_plan *plan) {
  ws_scale first, later, of_second;
  direct_job job = {{.p = p,
                     .second = p->second,
                     .ukr = plan->row->ukr,
                     .bytes = ws_types[p->a.type].bytes,
                     .descends = ws_k_descends(p),
                     .i1 = p->m,
                     .j1 = p->n,
                     .first = &p->scale,
                     .of_second = &of_second,
                     .later = &later},
                    plan,
                    {p->batch_count, ws_ceil_div(p->m, plan->bm), ws_ceil_div(p->n, plan->bn), 1, 1}};
  /* copies cost the smallest products more than what they are for */
  if (p->a.conj || p->b.conj) first = ws_scale_first(p), job.run.first = &first;
  if (p->second) of_second = ws_scale_first(p->second);
  if (p->k > plan->kc) later = ws_scale_later(p);
  if (plan->n_threads == 1) {
    for (job.run.batch = 0; job.run.batch < p->batch_count; job.run.batch++) multiply(&job.run, plan);
    return;
  }
  const ws_team_job team = {plan->policy, plan->n_threads, 1, &job, NULL, count, item};
  ws_team_run(&team);
}
