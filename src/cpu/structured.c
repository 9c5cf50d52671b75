/* structured.c - see structured.h. */
#include "cpu/structured.h"

#include <string.h>

#include "core/tile.h"

/* Between C and a copy of the tile, whose columns are t->m elements long. */
static void copy_region(const ws_problem *p, const ws_tile_work *t, char *tile, bool to_c) {
  const int bytes = ws_types[p->c.type].bytes;
  for (int64_t j = 0; j < t->n; j++) {
    const int64_t column = t->j + j;
    const ws_k_range rows = ws_rows_in_region(p->c.region, t->i, t->m, column);
    if (rows.begin >= rows.end) continue;
    char *copy = tile + (rows.begin - t->i + j * t->m) * bytes, *c = ws_c_at(p, t->batch, rows.begin, column, bytes);
    memcpy(to_c ? c : copy, to_c ? copy : c, (size_t)((rows.end - rows.begin) * bytes));
    if (p->c.real_diagonal && ws_region_has(WS_LOWER, column, rows.begin) && column < rows.end)
      ws_clear_im(p->c.type, to_c ? ws_c_at(p, t->batch, column, column, bytes) : tile + (column - t->i + j * t->m) * bytes);
  }
}

/* Leaves out whole vectors of rows and columns that the region has nothing of. */
static ws_tile_work trimmed(const ws_problem *p, const ws_ukr_set *ukr, int form, const ws_tile_work *given) {
  const int bytes = ws_types[p->c.type].bytes;
  ws_tile_work t = *given;
  if (p->c.region == WS_LOWER) {
    const int64_t above = ws_max(0, t.j - t.i) / ukr->vl * ukr->vl;
    t.i += above, t.m -= above, t.a += above * bytes;
    t.n = ws_min(t.n, t.i + t.m - t.j);
  } else {
    const int64_t left = ws_max(0, t.i - t.j);
    t.j += left, t.n -= left, t.b += left * (form == WS_B_ROWS ? 1 : t.b_ld) * bytes;
    t.m = ws_min(t.m, t.j + t.n - t.i);
  }
  return t;
}

void ws_tile_in_region(const ws_problem *p, const ws_ukr_set *ukr, int form, const ws_tile_work *given, const ws_scale *scale,
                       const ws_tile_work *second, const ws_scale *scale_of_second) {
  enum { MOST_BYTES = 64 * WS_MV_MAX * WS_NR_MAX };
  _Alignas(64) char tile[MOST_BYTES];
  const ws_tile_work t = trimmed(p, ukr, form, given);
  if (!scale->beta_zero) {
    memset(tile, 0, (size_t)(t.m * t.n * ws_types[p->c.type].bytes));
    copy_region(p, &t, tile, false);
  }
  ws_ukr_fn *const run = ukr->tile[form][(t.m - 1) / ukr->vl][t.n - 1];
  run(t.k, t.a, t.a_ld, t.b, t.b_ld, tile, t.m, scale, t.m);
  if (second) {
    const ws_tile_work u = trimmed(p, ukr, form, second);
    run(u.k, u.a, u.a_ld, u.b, u.b_ld, tile, u.m, scale_of_second, u.m);
  }
  copy_region(p, &t, tile, true);
}

/* A register tile beside the region's edge; the lines from `next` on are asked for. k_half: ws_half_k. */
static void run_tile(const ws_problem *p, const ws_ukr_set *ukr, const ws_tile_work *t, int64_t k_half, const ws_scale *scale,
                     const char *next) {
  char *c = ws_c_at(p, t->batch, t->i, t->j, ws_types[p->c.type].bytes);
  if (t->m == ukr->mr && t->n == ukr->nr && k_half > 0)
    ukr->half[WS_B_ROWS][ws_half_of(p)](t->k, k_half, t->a, ukr->mr, t->b, ukr->nr, c, p->c.ld, scale);
  else if (t->m == ukr->mr && t->n == ukr->nr)
    ukr->full(t->k, t->a, t->b, c, p->c.ld, scale, next);
  else
    ukr->tile[WS_B_ROWS][t->m > ukr->vl][t->n - 1](t->k, t->a, ukr->mr, t->b, ukr->nr, c, p->c.ld, scale, t->m);
}

/* The tile of the second product, whose panels lie behind those of the first. Only where there is one: a copy of what has just been stored
 * by parts would wait for all stores of the tile before, which are C's. */
static ws_tile_work of_second_product(const ws_tile_work *t, const ws_panels *panels) {
  ws_tile_work u = *t;
  u.a += panels->a_second, u.b += panels->b_second;
  return u;
}

static void run_on_edge(const ws_problem *p, const ws_ukr_set *ukr, const ws_tile_work *t, const ws_panels *panels,
                        const ws_scale *scale, const ws_scale *of_second) {
  if (p->second) {
    const ws_tile_work u = of_second_product(t, panels);
    ws_tile_in_region(p, ukr, WS_B_ROWS, t, scale, &u, of_second);
  } else {
    ws_tile_in_region(p, ukr, WS_B_ROWS, t, scale, NULL, of_second);
  }
}

void ws_sweep_structured(const ws_problem *p, const ws_ukr_set *ukr, int64_t batch, int64_t k_first, int64_t k_count,
                         const ws_panels *panels, int64_t i_first, int64_t m, int64_t j_first, int64_t n) {
  enum { CACHE_LINE = 64 };
  const int64_t bytes = ws_types[p->a.type].bytes, mr = ukr->mr, nr = ukr->nr;
  const int64_t panel_bytes = nr * k_count * bytes;
  const ws_scale first = ws_scale_first(p), later = ws_scale_later(p);
  ws_scale of_second = first;
  if (p->second) of_second = ws_scale_first(p->second);
  for (int64_t j = 0; j < n; j += nr) {
    ws_tile_work t = {.a_ld = mr, .b_ld = nr, .batch = batch, .j = j_first + j, .n = ws_min(nr, n - j)};
    const char *b = panels->b + j * k_count * bytes;
    int64_t ahead = 0; /* bytes of the next panel asked for so far */
    for (int64_t i = 0; i < m; i += mr) {
      t.i = i_first + i, t.m = ws_min(mr, m - i);
      if (!ws_region_meets(p->c.region, t.i, t.m, t.j, t.n) && p->c.region != WS_ALL) continue;
      const ws_tile_k k = ws_tile_k_of(p, t.i, t.m, t.j, t.n, k_first, k_count);
      if (k.begin >= k.end) continue;
      t.k = k.end - k.begin;
      t.a = panels->a + (i * k_count + k.begin * mr) * bytes, t.b = b + k.begin * nr * bytes;
      const char *next = j + nr < n && ahead < panel_bytes ? b + panel_bytes + ahead : b;
      const ws_scale *scale = k.first ? &first : &later;
      if (ws_meets_edge(p->c.region, t.i, t.m, t.j, t.n)) {
        run_on_edge(p, ukr, &t, panels, scale, &of_second);
        continue;
      }
      const int64_t k_half = ws_half_k(p, ukr, t.i, &k, k_first);
      run_tile(p, ukr, &t, k_half, scale, next);
      if (k_half == 0) ahead += t.k / 4 * CACHE_LINE;
      if (!p->second) continue;
      const ws_tile_work u = of_second_product(&t, panels);
      run_tile(p, ukr, &u, 0, &of_second, next + panels->b_second);
    }
  }
}
