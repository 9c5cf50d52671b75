/* tile.h - from the number of a work item to the tiles it covers. Shared by C and CUDA; pure
 * arithmetic, no state.
 *
 * C is cut into n_rows x n_cols tiles, for each of n_batch products. COARSE_FACTOR neighbouring
 * tiles of one row of tiles make a work item, so that one load of A serves them all; the last item
 * of a row may cover fewer. Items are numbered batch by batch, and inside a product in swizzle
 * groups of `swizzle` rows of tiles, down each column of a group before the next column:
 *
 *      swizzle = 2, coarse = 2, 4 x 6 tiles             every item number below n_items is one item,
 *        0 0 2 2 4 4                                  and every tile belongs to exactly one item
 *        1 1 3 3 5 5
 *        6 6 8 8 ..
 *        7 7 9 9 ..
 *
 * A swizzle group keeps a working set of `swizzle` A tiles and one B item alive in the cache that
 * the workers share. */
#ifndef WS_TILE_H
#define WS_TILE_H
#include <stdint.h>

#ifdef __CUDACC__
#define WS_HOST_DEVICE __host__ __device__
#else
#define WS_HOST_DEVICE
#endif

typedef struct ws_tile_grid {
  int64_t n_batch, n_rows, n_cols; /* tiles */
  int64_t coarse;                  /* COARSE_FACTOR >= 1 */
  int64_t swizzle;                 /* rows of tiles in a swizzle group, >= 1 */
} ws_tile_grid;

typedef struct ws_tile {
  int64_t batch, row; /* row of tiles */
  int64_t col, n_col; /* first column of tiles, and how many: 1 .. coarse */
} ws_tile;

static inline WS_HOST_DEVICE int64_t ws_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

static inline WS_HOST_DEVICE int64_t ws_min(int64_t a, int64_t b) { return a < b ? a : b; }

static inline WS_HOST_DEVICE int64_t ws_max(int64_t a, int64_t b) { return a > b ? a : b; }

static inline WS_HOST_DEVICE int64_t ws_tile_items(const ws_tile_grid *g) {
  return g->n_batch * g->n_rows * ws_ceil_div(g->n_cols, g->coarse);
}

static inline WS_HOST_DEVICE ws_tile ws_tile_at(const ws_tile_grid *g, int64_t item_idx) {
  const int64_t n_strips = ws_ceil_div(g->n_cols, g->coarse);
  const int64_t per_product = g->n_rows * n_strips;
  const int64_t in_product = item_idx % per_product;
  const int64_t group = in_product / (g->swizzle * n_strips);
  const int64_t group_rows = ws_min(g->swizzle, g->n_rows - group * g->swizzle);
  const int64_t in_group = in_product - group * g->swizzle * n_strips;
  ws_tile t;
  t.batch = item_idx / per_product;
  t.row = group * g->swizzle + in_group % group_rows;
  t.col = in_group / group_rows * g->coarse;
  t.n_col = ws_min(g->coarse, g->n_cols - t.col);
  return t;
}

/* ws_tile_at in 32-bit arithmetic, for grids of at most UINT32_MAX items and columns of tiles: a
 * GPU takes a microsecond for the other one's divisions. */
static inline WS_HOST_DEVICE ws_tile ws_tile_at_32(const ws_tile_grid *g, uint32_t item_idx) {
  const uint32_t n_rows = (uint32_t)g->n_rows, n_cols = (uint32_t)g->n_cols, coarse = (uint32_t)g->coarse;
  const uint32_t n_strips = (n_cols - 1) / coarse + 1, per_product = n_rows * n_strips;
  const uint32_t swizzle = (uint32_t)ws_min(g->swizzle, g->n_rows), group_items = swizzle * n_strips;
  const uint32_t batch = item_idx / per_product, in_product = item_idx - batch * per_product;
  const uint32_t group = in_product / group_items, in_group = in_product - group * group_items,
                 rows_left = n_rows - group * swizzle;
  const uint32_t group_rows = swizzle < rows_left ? swizzle : rows_left, strip = in_group / group_rows,
                 cols_left = n_cols - strip * coarse;
  ws_tile t;
  t.batch = batch;
  t.row = group * swizzle + (in_group - strip * group_rows);
  t.col = (int64_t)strip * coarse;
  t.n_col = coarse < cols_left ? coarse : cols_left;
  return t;
}

/* Division by a number that is known beforehand, by a multiplication: n / d = 2n * factor / 2^32 /
 * 2^shift for all n < 2^31 (d <= 2^31). Its error is below n / 2^(31 + shift) < 1 / d. */
typedef struct ws_divisor {
  uint32_t d, factor, shift;
} ws_divisor;

static inline ws_divisor ws_divisor_of(int64_t d) {
  ws_divisor x = {(uint32_t)d, 0, 0};
  while ((int64_t)1 << x.shift < d) x.shift++;
  x.factor = (uint32_t)((((uint64_t)1 << (31 + x.shift)) + (uint64_t)d - 1) / (uint64_t)d);
  return x;
}

static inline WS_HOST_DEVICE uint32_t ws_divide(uint32_t n, const ws_divisor *by) {
  return (uint32_t)((uint64_t)(2 * n) * by->factor >> 32) >> by->shift;
}

/* What ws_tile_at divides by; of the last swizzle group, too, which may have fewer rows. */
typedef struct ws_tile_divisors {
  ws_divisor product_items, group_items, swizzle, last_rows;
  uint32_t last_group;
} ws_tile_divisors;

static inline ws_tile_divisors ws_tile_divisors_of(const ws_tile_grid *g) {
  const int64_t n_strips = ws_ceil_div(g->n_cols, g->coarse), swizzle = ws_min(g->swizzle, g->n_rows),
                last_group = (g->n_rows - 1) / swizzle;
  const ws_tile_divisors d = {ws_divisor_of(g->n_rows * n_strips), ws_divisor_of(swizzle * n_strips), ws_divisor_of(swizzle),
                              ws_divisor_of(g->n_rows - last_group * swizzle), (uint32_t)last_group};
  return d;
}

/* Where the item begins, in tiles: ws_tile_at without a division, for grids of less than 2^31
 * items. */
typedef struct ws_tile_place {
  uint32_t batch, row, strip; /* strip: the first column of tiles is strip * coarse */
} ws_tile_place;

static inline WS_HOST_DEVICE ws_tile_place ws_tile_place_at(const ws_tile_divisors *by, uint32_t item_idx) {
  ws_tile_place t;
  t.batch = ws_divide(item_idx, &by->product_items);
  const uint32_t in_product = item_idx - t.batch * by->product_items.d, group = ws_divide(in_product, &by->group_items),
                 in_group = in_product - group * by->group_items.d;
  /* by both numbers of rows, as a GPU would wait for the one that it is */
  const uint32_t strip = ws_divide(in_group, &by->swizzle), strip_of_last = ws_divide(in_group, &by->last_rows);
  const uint32_t row = in_group - strip * by->swizzle.d, row_of_last = in_group - strip_of_last * by->last_rows.d;
  const int is_last = group == by->last_group;
  t.strip = is_last ? strip_of_last : strip;
  t.row = group * by->swizzle.d + (is_last ? row_of_last : row);
  return t;
}
#endif
