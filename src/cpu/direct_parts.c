/* direct_parts.c - the direct path where whole tiles would read short pieces of far or partial cache lines: the rows of a block take some
 * columns of A, in long runs, before they take the next ones (plan.c's k_of_part, cpu/kernels/ukr_tile.h). */
#include "core/tile.h"
#include "cpu/paths.h"
#include "cpu/rectangle.h"
#include "cpu/room.h"

/* Columns k1 .. k1 + k of A, of the rows and columns of r. */
static void add_part(const ws_problem *p, const ws_plan *plan, const ws_rectangle *r, const ws_scale *scale, int64_t k1,
                     int64_t k, int part, char *sums) {
  const ws_ukr_set *ukr = plan->row->ukr;
  const int bytes = ws_types[p->a.type].bytes, n_real = ws_types[p->a.type].n_real;
  ws_part_fn *const(*const tiles)[WS_NR_MAX] = ukr->part[p->b.trans ? WS_B_ROWS : WS_B_COLS];
  for (int64_t m, i = r->i0; i < r->i1; i += m) {
    m = ws_min(ukr->mr, r->i1 - i);
    const int64_t n_vectors = ws_vectors_of(m, ukr->vl);
    const char *a = ws_operand_at(&p->a, r->batch, i, k1, bytes);
    for (int64_t n, j = r->j0; j < r->j1; j += n) {
      n = ws_strip(r->j1 - j, ukr->nr);
      char *c = plan->c_by_rows ? ws_c_at(p, r->batch, j, i, bytes) : ws_c_at(p, r->batch, i, j, bytes);
      tiles[n_vectors - 1][n - 1](k, a, p->a.ld, ws_operand_at(&p->b, r->batch, k1, j, bytes), p->b.ld, c, p->c.ld, scale, m,
                                  sums, part);
      sums += n_vectors * ukr->vl * n * n_real * bytes;
    }
  }
}

void ws_direct_parts(const ws_problem *p, const ws_plan *plan, const ws_rectangle *all, const ws_scale *scale, int64_t k0,
                     int64_t kb) {
  const int64_t mr = plan->row->mr, column_bytes = mr * ws_types[p->a.type].n_real * ws_types[p->a.type].bytes;
  const int64_t n_columns = ws_min(all->j1 - all->j0, WS_SUMS_BYTES / column_bytes),
                n_rows = WS_SUMS_BYTES / (column_bytes * n_columns) * mr;
  const ws_room room = ws_room_take(WS_SUMS_BYTES);
  ws_rectangle r = *all;
  for (r.j0 = all->j0; r.j0 < all->j1; r.j0 = r.j1) {
    r.j1 = ws_min(all->j1, r.j0 + n_columns);
    for (r.i0 = all->i0; r.i0 < all->i1; r.i0 = r.i1) {
      r.i1 = ws_min(all->i1, r.i0 + n_rows);
      for (int64_t k, at = 0; at < kb; at += k) {
        k = ws_min(plan->k_of_part, kb - at);
        const int part =
            (at == 0 ? WS_PART_FIRST : 0) | (at + k == kb ? WS_PART_LAST : 0) | (plan->c_by_rows ? WS_PART_BY_ROWS : 0);
        add_part(p, plan, &r, scale, k0 + at, k, part, room.at);
      }
    }
  }
  ws_room_give(&room);
}
