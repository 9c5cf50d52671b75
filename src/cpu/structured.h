/* structured.h - what the paths of the CPU share for products with structured operands or a
 * region of C: the order of their blocks, and register tiles of which only a part may be
 * computed or stored.
 *
 * Order. The blocks of k are taken so that the first one that an element of C gets anything from
 * holds the diagonal of the triangular operand: upwards where the triangle is op(A)'s upper or
 * op(B)'s lower one, else downwards. Then C may be B (or A) itself: a block of its rows
 * (columns) is written for the first time after it has been read for the last time. */
#ifndef WS_CPU_STRUCTURED_H
#define WS_CPU_STRUCTURED_H
#include "cpu/pack_operand.h"
#include "cpu/paths.h"

static inline bool ws_a_is_triangular(const ws_problem *p) { return ws_is_triangular((ws_structure)p->a.structure); }
static inline bool ws_b_is_triangular(const ws_problem *p) { return ws_is_triangular((ws_structure)p->b.structure); }

/* Whether the blocks of k, and of columns of a triangular op(B), are taken downwards. */
static inline bool ws_k_descends(const ws_problem *p) {
  if (ws_a_is_triangular(p)) return ws_triangle_of(&p->a) == WS_LOWER;
  return ws_b_is_triangular(p) && ws_triangle_of(&p->b) == WS_UPPER;
}

/* The k of a block that a register tile takes, from the block's own k on; first: the tile gets
 * nothing from blocks before this one. */
typedef struct ws_tile_k {
  int64_t begin, end;
  bool first;
} ws_tile_k;

static inline ws_tile_k ws_tile_k_of(const ws_problem *p, int64_t i, int64_t m, int64_t j, int64_t n, int64_t k_first,
                                     int64_t k_count) {
  ws_tile_k k = {0, k_count, k_first == 0};
  const bool of_a = ws_a_is_triangular(p);
  if (!of_a && !ws_b_is_triangular(p)) return k;
  const int64_t line = of_a ? i : j;
  const ws_k_range range = ws_panel_k(of_a ? &p->a : &p->b, !of_a, line, of_a ? m : n, k_first, k_count);
  k.begin = range.begin, k.end = range.end;
  k.first = line >= k_first && line < k_first + k_count;
  return k;
}

/* Of the whole tile of rows from i on, how many steps of k only one of its two vectors of rows has other than zeros of a
 * triangular op(A) in: the first ones of an upper triangle, the last ones of a lower one (ws_half_of). */
static inline int64_t ws_half_k(const ws_problem *p, const ws_ukr_set *ukr, int64_t i, const ws_tile_k *k, int64_t k_first) {
  if (!ws_a_is_triangular(p)) return 0;
  const int64_t middle = i + ukr->vl - k_first;
  return ws_max(0, ws_triangle_of(&p->a) == WS_UPPER ? ws_min(middle, k->end) - k->begin : k->end - ws_max(middle, k->begin));
}
static inline int ws_half_of(const ws_problem *p) { return ws_triangle_of(&p->a) == WS_UPPER ? WS_HALF_FIRST : WS_HALF_LAST; }

/* A register tile's work: operands at the first k of it, C at (i, j). */
typedef struct ws_tile_work {
  int64_t k;
  const char *a;
  int64_t a_ld;
  const char *b;
  int64_t b_ld;
  int64_t batch, i, m, j, n;
} ws_tile_work;

/* Of the tile, some of which is in C's region, those elements; others are neither read nor written.
 * form: of B. second: of p->second, the same tile, or NULL. */
void ws_tile_in_region(const ws_problem *p, const ws_ukr_set *ukr, int form, const ws_tile_work *t, const ws_scale *scale,
                       const ws_tile_work *second, const ws_scale *scale_of_second);

/* The rows of a column within the region, of rows i .. i + m - 1. */
static inline ws_k_range ws_rows_in_region(int region, int64_t i, int64_t m, int64_t column) {
  ws_k_range rows = {i, i + m};
  if (region == WS_UPPER) rows.end = ws_min(rows.end, column + 1);
  if (region == WS_LOWER) rows.begin = ws_max(rows.begin, column);
  return rows;
}

/* Whether the tile has elements that are not in the region, or are on its edge. */
static inline bool ws_meets_edge(int region, int64_t i, int64_t m, int64_t j, int64_t n) {
  return region == WS_UPPER ? i + m - 1 >= j : region == WS_LOWER && j + n - 1 >= i;
}

/* Packed operands, and how many bytes further on those of p->second are. */
typedef struct ws_panels {
  const char *a, *b;
  int64_t a_second, b_second;
} ws_panels;
/* Packed panels of A, rows i .. i + m - 1, times packed panels of B, columns j .. j + n - 1, over a
 * block of k: see ws_sweep. Then the same of p->second, a register tile at a time. */
void ws_sweep_structured(const ws_problem *p, const ws_ukr_set *ukr, int64_t batch, int64_t k_first, int64_t k_count,
                         const ws_panels *panels, int64_t i, int64_t m, int64_t j, int64_t n);

/* A planned product by the direct path. */
void ws_direct_structured(const ws_problem *p, const ws_plan *plan);
#endif
