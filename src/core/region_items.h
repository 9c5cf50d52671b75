/* region_items.h - tile.h for a region of C whose items are square: only those that meet it are
 * numbered, so that all of them are work, and a scheduler can share them out evenly. Shared by C
 * and CUDA; pure arithmetic, no state.
 *
 * A triangle of n x n items (n_rows of the grid): those below the diagonal, and on it, group by
 * group of `swizzle` rows, down each column of a group; those above it are their mirror images. */
#ifndef WS_REGION_ITEMS_H
#define WS_REGION_ITEMS_H
#include "core/region.h"

/* item_m x item_n: elements of C. */
static inline WS_HOST_DEVICE int ws_region_numbers_items(int region, int64_t item_m, int64_t item_n) {
  return region != WS_ALL && item_m == item_n;
}

static inline WS_HOST_DEVICE int64_t ws_region_items_of_product(const ws_tile_grid *g) { return g->n_rows * (g->n_rows + 1) / 2; }
static inline WS_HOST_DEVICE int64_t ws_region_items(const ws_tile_grid *g) { return g->n_batch * ws_region_items_of_product(g); }

/* Of a product, in so many groups, which are whole. */
static inline WS_HOST_DEVICE int64_t ws_region_items_before(const ws_tile_grid *g, int64_t n_groups) {
  return g->swizzle * g->swizzle * (n_groups * (n_groups - 1) / 2) + n_groups * (g->swizzle * (g->swizzle + 1) / 2);
}

/* Row and column, in items, of one on or below the diagonal. */
static inline WS_HOST_DEVICE void ws_region_place(const ws_tile_grid *g, int64_t in_product, int64_t *row, int64_t *column) {
  int64_t group = 0, step = 1;
  while (step * g->swizzle < g->n_rows) step *= 2;
  for (; step > 0; step /= 2)
    if ((group + step) * g->swizzle <= g->n_rows && ws_region_items_before(g, group + step) <= in_product) group += step;
  const int64_t first = group * g->swizzle, n_rows = ws_min(g->swizzle, g->n_rows - first);
  int64_t left = in_product - ws_region_items_before(g, group), top = 0;
  if (left < first * n_rows) {
    *row = first + left % n_rows, *column = left / n_rows;
    return;
  }
  left -= first * n_rows;
  while (left >= n_rows - top) left -= n_rows - top++;
  *row = first + top + left, *column = first + top;
}

static inline WS_HOST_DEVICE ws_tile ws_region_tile_at(const ws_tile_grid *g, int region, int64_t item_idx) {
  const int64_t per_product = ws_region_items_of_product(g);
  ws_tile t;
  int64_t row, column;
  t.batch = item_idx / per_product;
  ws_region_place(g, item_idx - t.batch * per_product, &row, &column);
  t.row = region == WS_LOWER ? row : column;
  t.col = (region == WS_LOWER ? column : row) * g->coarse;
  t.n_col = ws_min(g->coarse, g->n_cols - t.col);
  return t;
}
#endif
