/* gemm_direct.c - small and thin products: B is read where it is, A too, or one panel at a time
 * through the stack or a room (cpu/room.h).
 *
 * No memory is needed here, so this is also the way out when there is none for packing. Items
 * are rectangles of C; each takes all of k, in the same blocks of kc as the packed path, so that
 * both give the same bits. */
#include "core/tile.h"
#include "cpu/paths.h"
#include "cpu/rectangle.h"
#include "cpu/room.h"
#include "cpu/team.h"

enum { PANEL_ALIGN_BITS = 64 * 8 };

/* Panels of A or B, with the longest k block (a multiple of 4 where k is cut), fit into a room. */
enum { BYTES_s = 4, BYTES_d = 8, BYTES_c = 8, BYTES_z = 16, BYTES_h = 4, BYTES_b = 4 };
#define WS_CPU_ROW(t, isa, mr, nr, kc) \
  _Static_assert(((mr) > (nr) ? (mr) : (nr)) * ((kc) + 3) * BYTES_##t <= WS_ROOM_BYTES, "a panel of " #t "gemm_" #isa);
#define WS_CPU_ROWS_AVX512
#define WS_CPU_ROWS_AVX2
#define WS_CPU_ROWS_NEON
#define WS_CPU_ROWS_REF
#include "cpu/kernels/kernels.def"
#undef WS_CPU_ROW
#undef WS_CPU_ROWS_AVX512
#undef WS_CPU_ROWS_AVX2
#undef WS_CPU_ROWS_NEON
#undef WS_CPU_ROWS_REF

typedef struct direct_run {
  const ws_problem *p;
  const ws_plan *plan;
  ws_tile_grid grid;
  bool is_small;
} direct_run;

/* Vectors of the next panel of rows when n are left, for tiles of up to 4: no panel is left with
 * one if that can be helped. */
static inline int64_t panel_vectors(int64_t n, int64_t most) {
  if (most == 3) return n == 4 ? 2 : ws_min(n, 3);
  if (most < 4) return ws_min(n, most);
  return n > 6 ? 4 : n > 4 ? 3 : n;
}

/* The most vectors of a panel for n columns: 3 where all of these are then one strip, not two (FP64
 * 901 x 7 x 507 77 GF/s to 109). */
static inline int64_t most_vectors(const ws_ukr_set *ukr, int64_t n) {
  return ukr->n_vectors == 4 && n > ukr->width[3] && n <= ukr->width[2] ? 3 : ukr->n_vectors;
}

/* Asks for a tile of C that will be written: far columns, which the processor does not see
 * coming. */
static inline void ask_for_c(char *c, int64_t ldc_bytes, int64_t column_bytes, int64_t n) {
  enum { LINE = 64 };
  for (int64_t j = 0; j < n; j++)
    for (int64_t at = 0; at < column_bytes; at += LINE) __builtin_prefetch(c + j * ldc_bytes + at, 1);
}

/* A tile of which C holds the transpose, through the stack: element (i, j) is at c[j + i * ldc]. The tile
 * has its columns along C's rows, which are the longer ones. For an instruction set that has no kernel for it. */
static __attribute__((noinline)) void tile_by_rows(const ws_ukr_set *ukr, ws_ukr_fn *tile, int64_t kb, const char *a,
                                                   int64_t a_ld, const char *b, int64_t b_ld, char *c, int64_t ldc,
                                                   const ws_scale *scale, int64_t m, int64_t n) {
  enum { MOST_VECTORS = 24, VECTOR = 64 };
  _Alignas(VECTOR) char copy[MOST_VECTORS * VECTOR];
  const int64_t ld = (m + ukr->vl - 1) & -(int64_t)ukr->vl; /* a power of two: no division is wanted here */
  if (!scale->beta_zero) ukr->transpose(n, m, c, ldc, copy, ld);
  tile(kb, a, a_ld, b, b_ld, copy, ld, scale, m);
  ukr->transpose(m, n, copy, ld, c, ldc);
}

/* One panel of rows against the columns j0 .. j1. */
static inline void panel_times_b(const ws_problem *p, const ws_ukr_set *ukr, const ws_scale *scale, int bytes, int64_t batch,
                                 const char *a, int64_t a_ld, int64_t vectors, int64_t m, int64_t i, int64_t k0, int64_t kb,
                                 int64_t j0, int64_t j1, const bool c_by_rows, const bool a_is_far) {
  const int form = p->b.trans ? WS_B_ROWS : WS_B_COLS;
  ws_ukr_fn *const *near_tile = ukr->tile[form][vectors - 1], *const *far_tile = ukr->tile[form | WS_A_FAR][vectors - 1];
  const int64_t most = ukr->width[vectors - 1];
  for (int64_t n, j = j0; j < j1; j += n) {
    n = ws_strip(j1 - j, most);
    ws_ukr_fn *const *tile = a_is_far && j == j0 && far_tile[n - 1] ? far_tile : near_tile; /* then it is in L2 */
    const char *b = ws_operand_at(&p->b, batch, k0, j, bytes);
    if (c_by_rows) {
      ws_ukr_fn *const by_rows = tile == near_tile ? ukr->by_rows[form][vectors - 1][n - 1] : NULL;
      char *const c = ws_c_at(p, batch, j, i, bytes);
      if (by_rows)
        by_rows(kb, a, a_ld, b, p->b.ld, c, p->c.ld, scale, m);
      else
        tile_by_rows(ukr, tile[n - 1], kb, a, a_ld, b, p->b.ld, c, p->c.ld, scale, m, n);
    } else {
      tile[n - 1](kb, a, a_ld, b, p->b.ld, ws_c_at(p, batch, i, j, bytes), p->c.ld, scale, m);
    }
  }
}

static inline void pack_panel(const ws_problem *p, const ws_ukr_set *ukr, int64_t batch, int64_t i, int64_t m, int64_t k0,
                              int64_t kb, char *panel) {
  ukr->pack(m, kb, ws_operand_at(&p->a, batch, i, k0, ws_types[p->a.type].bytes), p->a.ld, p->a.trans, panel, ukr->mr);
}

/* A panel at a time, with all columns; or all panels first, and then C in long runs: a strip of columns with each of them. */
static void packed_panels(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r, const ws_scale *scale, int64_t k0,
                          int64_t kb, char *room) {
  const ws_ukr_set *ukr = plan->row->ukr;
  const int bytes = ws_types[p->a.type].bytes;
  const int64_t panel_bytes = ukr->mr * kb * bytes;
  if (plan->by_columns)
    for (int64_t i = r->i0; i < r->i1; i += ukr->mr)
      pack_panel(p, ukr, r->batch, i, ws_min(ukr->mr, r->i1 - i), k0, kb, room + (i - r->i0) / ukr->mr * panel_bytes);
  for (int64_t n, j = r->j0; j < r->j1; j += n) {
    n = plan->by_columns ? ws_strip(r->j1 - j, ukr->nr) : r->j1 - j;
    const char *panel = room;
    for (int64_t i = r->i0; i < r->i1; i += ukr->mr) {
      const int64_t m = ws_min(ukr->mr, r->i1 - i);
      if (!plan->by_columns) pack_panel(p, ukr, r->batch, i, m, k0, kb, room);
      if (plan->asks_for_c && i + 2 * m <= r->i1) ask_for_c(ws_c_at(p, r->batch, i + m, j, bytes), p->c.ld * bytes, m * bytes, n);
      panel_times_b(p, ukr, scale, bytes, r->batch, panel, ukr->mr, ws_vectors_of(m, ukr->vl), m, i, k0, kb, j, j + n,
                    plan->c_by_rows, false);
      if (plan->by_columns) panel += panel_bytes;
    }
  }
}

static __attribute__((noinline)) void packed_on_stack(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r,
                                                      const ws_scale *scale, int64_t k0, int64_t kb, int64_t bytes) {
  char *room = __builtin_alloca_with_align((size_t)bytes, PANEL_ALIGN_BITS);
  packed_panels(p, plan, r, scale, k0, kb, room);
}

/* As many rows at a time as there is room for, where all their panels are packed first. */
static void packed_a(const ws_problem *p, const ws_plan *plan, const ws_rectangle *all, const ws_scale *scale, int64_t k0,
                     int64_t kb) {
  const int64_t mr = plan->row->mr, panel_bytes = mr * kb * ws_types[p->a.type].bytes;
  const int64_t most = plan->by_columns ? mr * ((int64_t)WS_ROOM_BYTES / panel_bytes) : all->i1 - all->i0;
  ws_rectangle r = *all;
  for (r.i0 = all->i0; r.i0 < all->i1; r.i0 = r.i1) {
    r.i1 = ws_min(all->i1, r.i0 + most);
    const int64_t bytes = panel_bytes * (plan->by_columns ? ws_ceil_div(r.i1 - r.i0, mr) : 1);
    if (bytes <= WS_STACK_PANEL_BYTES) {
      packed_on_stack(p, plan, &r, scale, k0, kb, bytes);
      continue;
    }
    const ws_room room = ws_room_take((size_t)bytes);
    packed_panels(p, plan, &r, scale, k0, kb, room.at);
    ws_room_give(&room);
  }
}

static inline void plain_a(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r, const ws_scale *scale, int64_t k0,
                           int64_t kb) {
  const ws_ukr_set *ukr = plan->row->ukr;
  const int bytes = ws_types[p->a.type].bytes;
  const int64_t most = most_vectors(ukr, r->j1 - r->j0);
  for (int64_t n, j = r->j0; j < r->j1; j += n) {
    n = plan->by_columns ? ws_strip(r->j1 - j, ukr->width[most - 1]) : r->j1 - j;
    for (int64_t m, i = r->i0; i < r->i1; i += m) {
      const int64_t vectors = panel_vectors(ws_vectors_of(r->i1 - i, ukr->vl), most);
      m = ws_min(vectors * ukr->vl, r->i1 - i);
      if (plan->asks_for_c && i + 2 * m <= r->i1) ask_for_c(ws_c_at(p, r->batch, i + m, j, bytes), p->c.ld * bytes, m * bytes, n);
      panel_times_b(p, ukr, scale, bytes, r->batch, ws_operand_at(&p->a, r->batch, i, k0, bytes), p->a.ld, vectors, m, i, k0, kb,
                    j, j + n, plan->c_by_rows, plan->asks_for_a);
    }
  }
}

static inline void multiply_block(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r, const ws_scale *scale,
                                  int64_t k0) {
  const int64_t kb = ws_min(plan->kc, p->k - k0);
  if (plan->pack_a)
    packed_a(p, plan, r, scale, k0, kb);
  else if (plan->k_of_part > 0)
    ws_direct_parts(p, plan, r, scale, k0, kb);
  else
    plain_a(p, plan, r, scale, k0, kb);
}

static void multiply(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r) {
  const ws_scale first = ws_scale_first(p);
  multiply_block(p, plan, r, &first, 0);
  if (p->k <= plan->kc) return;
  const ws_scale later = ws_scale_later(p);
  for (int64_t k0 = plan->kc; k0 < p->k; k0 += plan->kc) multiply_block(p, plan, r, &later, k0);
}

/* A small product, one of the batch. */
static inline void small(const ws_problem *p, const ws_ukr_set *ukr, const ws_scale *scale, int64_t batch, const bool c_by_rows) {
  const int bytes = ws_types[p->a.type].bytes;
  if (p->m <= ukr->n_vectors * ukr->vl) {
    panel_times_b(p, ukr, scale, bytes, batch, ws_operand_at(&p->a, batch, 0, 0, bytes), p->a.ld, ws_vectors_of(p->m, ukr->vl),
                  p->m, 0, 0, p->k, 0, p->n, c_by_rows, false);
    return;
  }
  const int64_t most = most_vectors(ukr, p->n);
  for (int64_t m, i = 0; i < p->m; i += m) {
    const int64_t vectors = panel_vectors(ws_vectors_of(p->m - i, ukr->vl), most);
    m = ws_min(vectors * ukr->vl, p->m - i);
    panel_times_b(p, ukr, scale, bytes, batch, ws_operand_at(&p->a, batch, i, 0, bytes), p->a.ld, vectors, m, i, 0, p->k, 0, p->n,
                  c_by_rows, false);
  }
}

/* The same with a transposed A, of products first .. last - 1. */
static __attribute__((noinline)) void small_packed(const ws_problem *p, const ws_ukr_set *ukr, const ws_scale *scale,
                                                   int64_t first, int64_t last, const bool c_by_rows) {
  const int bytes = ws_types[p->a.type].bytes;
  char *panel = __builtin_alloca_with_align((size_t)(ukr->mr * p->k * bytes), PANEL_ALIGN_BITS);
  for (int64_t batch = first; batch < last; batch++)
    for (int64_t i = 0; i < p->m; i += ukr->mr) {
      const int64_t m = ws_min(ukr->mr, p->m - i);
      ukr->pack(m, p->k, ws_operand_at(&p->a, batch, i, 0, bytes), p->a.ld, true, panel, ukr->mr);
      panel_times_b(p, ukr, scale, bytes, batch, panel, ukr->mr, ws_vectors_of(m, ukr->vl), m, i, 0, p->k, 0, p->n, c_by_rows,
                    false);
    }
}

/* Whether products are small, and each is computed whole. */
static bool are_small(const ws_problem *p, const ws_plan *plan) {
  return plan->bm >= p->m && plan->bn >= p->n && plan->kc >= p->k && plan->pack_a == p->a.trans && !plan->by_columns &&
         ws_are_small(p, plan->row);
}

static void small_products(const ws_problem *p, const ws_plan *plan, int64_t first, int64_t last) {
  const ws_scale scale = ws_scale_first(p);
  const ws_ukr_set *ukr = plan->row->ukr;
  if (plan->pack_a)
    small_packed(p, ukr, &scale, first, last, plan->c_by_rows);
  else if (plan->c_by_rows)
    for (int64_t batch = first; batch < last; batch++) small(p, ukr, &scale, batch, true);
  else
    for (int64_t batch = first; batch < last; batch++) small(p, ukr, &scale, batch, false);
}

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const direct_run *run = context;
  (void)step;
  n_items[0] = ws_tile_items(&run->grid);
  n_items[1] = 0;
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const direct_run *run = context;
  (void)worker, (void)step, (void)kind;
  const ws_tile t = ws_tile_at(&run->grid, item_idx);
  const ws_plan *plan = run->plan;
  ws_rectangle r = {0, t.row * plan->bm, ws_min(run->p->m, (t.row + 1) * plan->bm), t.col * plan->bn,
                    ws_min(run->p->n, (t.col + t.n_col) * plan->bn)};
  const int64_t last = ws_min(run->p->batch_count, (t.batch + 1) * plan->n_products);
  if (run->is_small) {
    small_products(run->p, plan, t.batch * plan->n_products, last);
    return;
  }
  for (r.batch = t.batch * plan->n_products; r.batch < last; r.batch++) multiply(run->p, plan, &r);
}

void ws_cpu_small(const ws_problem *p, const ws_cpu_row *row) {
  const ws_scale *scale = &p->scale; /* a copy of it costs the smallest products 3 ns */
  ws_scale conjugated;
  if (p->a.conj || p->b.conj) conjugated = ws_scale_first(p), scale = &conjugated;
  if (p->a.trans)
    small_packed(p, row->ukr, scale, 0, 1, false);
  else
    small(p, row->ukr, scale, 0, false);
}

void ws_cpu_small_by_rows(const ws_problem *given, const ws_cpu_row *row) {
  ws_problem p;
  ws_transpose_problem(given, &p);
  p.c.ld = given->c.ld;
  p.scale.conj_a = p.a.conj, p.scale.conj_b = p.b.conj;
  small(&p, row->ukr, &p.scale, 0, true);
}

void ws_direct_run(const ws_problem *p, const ws_plan *plan) {
  const bool is_small = are_small(p, plan);
  if (plan->n_threads == 1 && is_small) {
    small_products(p, plan, 0, p->batch_count);
    return;
  }
  if (plan->n_threads == 1) {
    for (int64_t batch = 0; batch < p->batch_count; batch++) {
      const ws_rectangle all = {batch, 0, p->m, 0, p->n};
      multiply(p, plan, &all);
    }
    return;
  }
  direct_run run = {
      p,
      plan,
      {ws_ceil_div(p->batch_count, plan->n_products), ws_ceil_div(p->m, plan->bm), ws_ceil_div(p->n, plan->bn), plan->coarse, 1},
      is_small};
  const ws_team_job job = {plan->policy, plan->n_threads, 1, &run, NULL, count, item};
  ws_team_run(&job);
}
