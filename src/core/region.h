/* region.h - which elements of C a product writes, and which k a triangular operand leaves it.
 * Shared by C and CUDA; pure arithmetic, no state.
 *
 * A block is rows i .. i + m - 1 and columns j .. j + n - 1 of a square matrix. Whoever goes through
 * blocks leaves out those that do not meet the region, and asks for each element of those that it
 * does not cover. */
#ifndef WS_REGION_H
#define WS_REGION_H
#include "core/tile.h"

/* All elements, or those of a triangle with the diagonal. */
typedef enum ws_region { WS_ALL, WS_UPPER, WS_LOWER } ws_region;

static inline WS_HOST_DEVICE int ws_region_has(int region, int64_t i, int64_t j) {
  return region == WS_ALL || (region == WS_UPPER ? i <= j : i >= j);
}

/* Whether an element of the block is in the region; whether all are. */
static inline WS_HOST_DEVICE int ws_region_meets(int region, int64_t i, int64_t m, int64_t j, int64_t n) {
  return region == WS_UPPER ? ws_region_has(region, i, j + n - 1) : ws_region_has(region, i + m - 1, j);
}
static inline WS_HOST_DEVICE int ws_region_covers(int region, int64_t i, int64_t m, int64_t j, int64_t n) {
  return region == WS_UPPER ? ws_region_has(region, i + m - 1, j) : ws_region_has(region, i, j + n - 1);
}

/* The region of the transpose. */
static inline WS_HOST_DEVICE int ws_region_transposed(int region) {
  return region == WS_ALL ? WS_ALL : WS_UPPER + WS_LOWER - region;
}

typedef struct ws_k_range {
  int64_t begin, end;
} ws_k_range;

/* The k whose elements of a triangular op(A) may be other than 0 in rows x .. x + count - 1; of a
 * triangular op(B), in columns x .. x + count - 1, if is_b. region: the triangle of op(A), or op(B);
 * k: its size. */
static inline WS_HOST_DEVICE ws_k_range ws_k_range_of(int region, int is_b, int64_t x, int64_t count, int64_t k) {
  ws_k_range range = {0, k};
  if ((region == WS_UPPER) != (is_b != 0))
    range.begin = x;
  else
    range.end = ws_min(k, x + count);
  return range;
}
#endif
