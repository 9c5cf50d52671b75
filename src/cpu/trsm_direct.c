/* trsm_direct.c - a few right sides, or no memory for packing: T is read where it is, a vector of right
 * sides is packed on the stack or in a room, a block of unknowns at a time, and X holds the others. The
 * same sums in the same order as with T packed. */
#include "core/tile.h"
#include "cpu/room.h"
#include "cpu/trsm.h"

/* Of the rows of kernels.def: unknowns of a block for a vector of right sides; a diagonal, and a
 * group's unknowns. */
enum { BLOCK_BYTES = 24 * 1024, ON_STACK = 8 * 1024, GROUP_BYTES = 2 * 1024, ALIGN = 64 };

/* x -= T(i .. i + w - 1, p .. p + k - 1) y */
static void multiply(const ws_solve *v, const ws_block *b, int64_t i, int64_t w, int64_t p, int64_t k, const char *y, char *x) {
  const ws_ukr_set *ukr = v->ukr;
  ukr->tile[v->t_rows_contiguous ? WS_B_ROWS : WS_B_COLS][0][w - 1](k, y, ukr->vl, ws_t_at(v, b->batch, i, p), v->t->ld, x,
                                                                    ukr->vl, b->is_first ? &v->first : &v->later, ukr->vl);
}

/* Its triangle is packed only if the diagonal needs factors. */
static void substitute(const ws_solve *v, const ws_block *b, const ws_group *g, char *x) {
  double inverse[2 * WS_NR_MAX];
  const ws_ukr_set *ukr = v->ukr;
  ws_small_triangle s;
  s.n_lanes = ukr->vl, s.scale = &v->later;
  if (ws_small_triangle_at(v, b->batch, g->g0, g->w, &s, inverse)) {
    ukr->substitute_small(&s, x, ukr->vl, x, ukr->vl);
    return;
  }
  _Alignas(ALIGN) char diagonal[GROUP_BYTES];
  ws_pack_diagonal(v, b, g, diagonal);
  ukr->substitute[0](g->w, diagonal, v->is_unit, ws_diagonal_is_scaled(v, diagonal), v->direction, x);
}

/* y: the block's unknowns. */
static void solve_block(const ws_solve *v, const ws_block *b, char *y) {
  const int64_t n_groups = ws_diagonal_groups(v, b), line = v->ukr->vl * v->bytes;
  for (int64_t step = 0; step < n_groups; step++) {
    const ws_group g = ws_group_at(v, b, v->direction == WS_SOLVE_DOWN ? step : n_groups - 1 - step);
    char *x = y + (g.g0 - b->k0) * line;
    multiply(v, b, g.g0, g.w, g.p0, g.k, y + (g.p0 - b->k0) * line, x);
    substitute(v, b, &g, x);
  }
}

static void update(const ws_solve *v, const ws_block *b, const ws_matrix *from, const ws_lanes *lanes, const char *y) {
  _Alignas(ALIGN) char x[GROUP_BYTES];
  const int64_t nr = v->ukr->nr;
  for (int64_t i = b->l0; i < b->l1; i += nr) {
    const int64_t w = ws_min(nr, b->l1 - i);
    ws_pack_panel(v, from, b->batch, lanes, i, w, x);
    multiply(v, b, i, w, b->k0, b->k1 - b->k0, y, x);
    ws_unpack_panel(v, b->batch, lanes, i, w, x);
  }
}

/* y: room for a block's unknowns. */
static void solve_systems(const ws_solve *v, char *y) {
  const int64_t vl = v->ukr->vl;
  ws_matrix x = *v->b;
  x.data = v->x->data, x.ld = v->x->ld, x.stride = v->x->stride;
  for (int64_t batch = 0; batch < v->batch_count; batch++)
    for (int64_t r = 0; r < v->n; r += vl) {
      const ws_lanes lanes = {r, ws_min(vl, v->n - r), vl};
      for (int64_t s = 0; s < v->n_blocks; s++) {
        const ws_block b = ws_block_at(v, batch, s);
        const ws_matrix *from = b.is_first ? v->b : &x;
        ws_pack_panel(v, from, batch, &lanes, b.k0, b.k1 - b.k0, y);
        solve_block(v, &b, y);
        ws_unpack_panel(v, batch, &lanes, b.k0, b.k1 - b.k0, y);
        update(v, &b, from, &lanes, y);
      }
    }
}

static __attribute__((noinline)) void solve_on_stack(const ws_solve *v) {
  _Alignas(ALIGN) char y[ON_STACK];
  solve_systems(v, y);
}

void ws_solve_directly(const ws_solve *v) {
  const ws_block b = ws_block_at(v, 0, 0);
  if (v->n_blocks == 1 && (b.k1 - b.k0) * v->ukr->vl * v->bytes <= ON_STACK) {
    solve_on_stack(v);
    return;
  }
  const ws_room room = ws_room_take(BLOCK_BYTES);
  solve_systems(v, room.at);
  ws_room_give(&room);
}
