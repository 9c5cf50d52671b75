/* test_tile.c - src/core/tile.h alone: items and tiles correspond one to one on any grid, bands go
 * down before across, and ragged edges are cut, never dropped. */
#include "support/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/region_items.h"

/* Every tile of the grid is covered by exactly one item, and every item lies inside the grid. */
static void check_cover(const ws_tile_grid *g) {
  const int64_t n_tiles = g->n_batch * g->n_rows * g->n_cols, n_items = ws_tile_items(g);
  unsigned char *covered = calloc((size_t)n_tiles + 1, 1);
  REQUIRE(covered != NULL, "memory");
  const ws_tile_divisors by = ws_tile_divisors_of(g);
  bool inside = true;
  for (int64_t item = 0; item < n_items && inside; item++) {
    const ws_tile t = ws_tile_at(g, item);
    inside = t.batch >= 0 && t.batch < g->n_batch && t.row >= 0 && t.row < g->n_rows && t.col >= 0 && t.n_col >= 1 &&
             t.n_col <= g->coarse && t.col + t.n_col <= g->n_cols && t.col % g->coarse == 0;
    CHECK(inside, "item %lld of grid %lld x %lld x %lld coarse %lld group %lld: batch %lld row %lld col %lld + %lld",
          (long long)item, (long long)g->n_batch, (long long)g->n_rows, (long long)g->n_cols, (long long)g->coarse,
          (long long)g->swizzle, (long long)t.batch, (long long)t.row, (long long)t.col, (long long)t.n_col);
    const ws_tile same = ws_tile_at_32(g, (uint32_t)item);
    CHECK(same.batch == t.batch && same.row == t.row && same.col == t.col && same.n_col == t.n_col,
          "item %lld of grid %lld x %lld x %lld coarse %lld group %lld: row %lld col %lld in 32 bits, row %lld col %lld in 64",
          (long long)item, (long long)g->n_batch, (long long)g->n_rows, (long long)g->n_cols, (long long)g->coarse,
          (long long)g->swizzle, (long long)same.row, (long long)same.col, (long long)t.row, (long long)t.col);
    const ws_tile_place place = ws_tile_place_at(&by, (uint32_t)item);
    CHECK(place.batch == t.batch && place.row == t.row && place.strip * g->coarse == t.col,
          "item %lld of grid %lld x %lld x %lld coarse %lld group %lld: row %lld strip %lld without divisions", (long long)item,
          (long long)g->n_batch, (long long)g->n_rows, (long long)g->n_cols, (long long)g->coarse, (long long)g->swizzle,
          (long long)place.row, (long long)place.strip);
    for (int64_t col = t.col; inside && col < t.col + t.n_col; col++) covered[(t.batch * g->n_rows + t.row) * g->n_cols + col]++;
  }
  int64_t n_wrong = 0;
  for (int64_t i = 0; i < n_tiles; i++) n_wrong += covered[i] != 1;
  CHECK(n_wrong == 0, "%lld of %lld tiles not covered exactly once: grid %lld x %lld x %lld coarse %lld group %lld",
        (long long)n_wrong, (long long)n_tiles, (long long)g->n_batch, (long long)g->n_rows, (long long)g->n_cols,
        (long long)g->coarse, (long long)g->swizzle);
  free(covered);
}

/* Quotients by a multiplication: where they are nearest to the next one, and drawn at random. */
static void check_divisor(int64_t d, struct check_random *random) {
  const int64_t most = (INT64_C(1) << 31) - 1, last = most / d * d;
  const ws_divisor by = ws_divisor_of(d);
  int64_t n[40] = {0, 1, d - 1, d, last - 1, last, most};
  for (int i = 7; i < 40; i++)
    n[i] = i % 2 ? check_random_in(random, 0, most) : check_random_in(random, 0, most / d) * d - i % 4 / 2;
  for (int i = 0; i < 40; i++) {
    const int64_t x = n[i] < 0 ? 0 : n[i];
    CHECK(ws_divide((uint32_t)x, &by) == x / d, "%lld / %lld = %lld, not %u", (long long)x, (long long)d, (long long)(x / d),
          ws_divide((uint32_t)x, &by));
  }
}

static void divisors(void) {
  struct check_random random = check_random_from(3);
  for (int64_t d = 1; d <= 4096; d++) check_divisor(d, &random);
  for (int shift = 12; shift < 31; shift++)
    for (int64_t more = -2; more <= 2; more++) check_divisor((INT64_C(1) << shift) + more, &random);
  for (int i = 0; i < 20000 / check_scale(); i++)
    check_divisor(check_random_in(&random, 1, (INT64_C(1) << check_random_in(&random, 1, 31)) - 1), &random);
}

static void small_grids(void) {
  for (int64_t batch = 1; batch <= 2; batch++)
    for (int64_t rows = 1; rows <= 7; rows++)
      for (int64_t cols = 1; cols <= 9; cols++)
        for (int64_t coarse = 1; coarse <= 10; coarse++)
          for (int64_t group = 1; group <= 8; group++) check_cover(&(ws_tile_grid){batch, rows, cols, coarse, group});
}

static void random_grids(void) {
  struct check_random random = check_random_from(1);
  for (int i = 0; i < 3000 / check_scale(); i++)
    check_cover(&(ws_tile_grid){check_random_in(&random, 1, 4), check_random_in(&random, 1, 60), check_random_in(&random, 1, 90),
                                check_random_in(&random, 1, 64), check_random_in(&random, 1, 64)});
}

/* Within a group the row changes fastest; a group is left only when it is done; products follow
 * each other. */
static void grouped_order(void) {
  struct check_random random = check_random_from(2);
  for (int i = 0; i < 2000 / check_scale(); i++) {
    const ws_tile_grid g = {check_random_in(&random, 1, 3), check_random_in(&random, 1, 20), check_random_in(&random, 1, 20),
                            check_random_in(&random, 1, 8), check_random_in(&random, 1, 8)};
    ws_tile before = ws_tile_at(&g, 0);
    bool ordered = before.batch == 0 && before.row == 0 && before.col == 0;
    for (int64_t item = 1; item < ws_tile_items(&g); item++) {
      const ws_tile t = ws_tile_at(&g, item);
      const int64_t group = before.row / g.swizzle, last_row = ws_min((group + 1) * g.swizzle, g.n_rows) - 1;
      const bool next_row = t.batch == before.batch && t.row == before.row + 1 && t.col == before.col;
      const bool next_col = t.batch == before.batch && t.row == group * g.swizzle && t.col == before.col + before.n_col;
      const bool next_band = t.batch == before.batch && t.row == last_row + 1 && t.col == 0;
      const bool next_product = t.batch == before.batch + 1 && t.row == 0 && t.col == 0;
      const bool band_done = before.row == last_row, row_done = before.col + before.n_col == g.n_cols;
      ordered = ordered && (!band_done ? next_row : !row_done ? next_col : last_row + 1 < g.n_rows ? next_band : next_product);
      before = t;
    }
    CHECK(ordered, "order of grid %lld x %lld x %lld coarse %lld group %lld", (long long)g.n_batch, (long long)g.n_rows,
          (long long)g.n_cols, (long long)g.coarse, (long long)g.swizzle);
  }
}

/* On one side of a square's diagonal every item is there once, and none of the other side; groups of
 * rows follow each other. */
static void check_region(const ws_tile_grid *g, int region) {
  const int64_t n = g->n_rows, n_items = ws_region_items(g);
  unsigned char *covered = calloc((size_t)(g->n_batch * n * n) + 1, 1);
  REQUIRE(covered != NULL, "memory");
  int64_t before = 0, n_wrong = n_items != g->n_batch * (n * (n + 1) / 2);
  for (int64_t item = 0; item < n_items; item++) {
    const ws_tile t = ws_region_tile_at(g, region, item);
    const int64_t strip = t.col / g->coarse, group = (region == WS_LOWER ? t.row : strip) / g->swizzle,
                  place = t.batch * n + group;
    const bool is_good = t.batch >= 0 && t.batch < g->n_batch && t.row >= 0 && t.row < n && t.col >= 0 && strip < n &&
                         (region == WS_LOWER ? t.row >= strip : t.row <= strip) && place >= before &&
                         t.n_col == ws_min(g->coarse, g->n_cols - t.col);
    n_wrong += !is_good || covered[(t.batch * n + t.row) * n + strip]++ > 0;
    before = place;
  }
  CHECK(n_wrong == 0, "%lld of %lld items of region %d: grid %lld x %lld x %lld coarse %lld group %lld", (long long)n_wrong,
        (long long)n_items, region, (long long)g->n_batch, (long long)n, (long long)g->n_cols, (long long)g->coarse,
        (long long)g->swizzle);
  free(covered);
}

static void regions(void) {
  struct check_random random = check_random_from(3);
  for (int i = 0; i < 3000 / check_scale(); i++) {
    const int64_t n = check_random_in(&random, 1, i % 10 == 0 ? 150 : 30), coarse = check_random_in(&random, 1, 4);
    ws_tile_grid g = {.n_batch = check_random_in(&random, 1, 3), .n_rows = n, .coarse = coarse};
    g.n_cols = n * coarse - check_random_in(&random, 0, coarse - 1), g.swizzle = check_random_in(&random, 1, 12);
    check_region(&g, i % 2 ? WS_LOWER : WS_UPPER);
  }
}

/* The picture at the top of tile.h. */
static void picture(void) {
  static const int64_t item_of[4][6] = {{0, 0, 2, 2, 4, 4}, {1, 1, 3, 3, 5, 5}, {6, 6, 8, 8, 10, 10}, {7, 7, 9, 9, 11, 11}};
  const ws_tile_grid g = {1, 4, 6, 2, 2};
  CHECK(ws_tile_items(&g) == 12, "%lld items", (long long)ws_tile_items(&g));
  for (int64_t item = 0; item < 12; item++) {
    const ws_tile t = ws_tile_at(&g, item);
    for (int64_t col = t.col; col < t.col + t.n_col; col++)
      CHECK(item_of[t.row][col] == item, "tile (%lld, %lld) belongs to item %lld", (long long)t.row, (long long)col,
            (long long)item_of[t.row][col]);
  }
}

/* Grids far beyond 2^31 tiles: the last item is the last tile. */
static void huge_grid(void) {
  const ws_tile_grid g = {3, INT64_C(1) << 31, (INT64_C(1) << 20) + 1, 4, 8};
  const int64_t n_items = ws_tile_items(&g);
  const ws_tile last = ws_tile_at(&g, n_items - 1);
  CHECK(n_items == 3 * (INT64_C(1) << 31) * ((INT64_C(1) << 18) + 1), "%lld items", (long long)n_items);
  CHECK(last.batch == 2 && last.row == g.n_rows - 1 && last.col == INT64_C(1) << 20 && last.n_col == 1,
        "last item: batch %lld row %lld col %lld + %lld", (long long)last.batch, (long long)last.row, (long long)last.col,
        (long long)last.n_col);
}

static const struct check_case cases[] = {
    {"divisors", divisors}, {"small_grids", small_grids}, {"random_grids", random_grids}, {"grouped_order", grouped_order},
    {"regions", regions},   {"picture", picture},         {"huge_grid", huge_grid}};
CHECK_MAIN("tile", cases)
