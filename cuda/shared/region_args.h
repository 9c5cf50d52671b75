/* region_args.h - which elements of C a kernel writes, and which k a triangular operand leaves it;
 * by core/region.h, for a C that may be part of a larger one. Shared by C and CUDA. */
#ifndef WS_CUDA_REGION_ARGS_H
#define WS_CUDA_REGION_ARGS_H
#include "core/region.h"

/* Row i and column j of C are row i + first_row and column j + first_column of the square matrix
 * that the region is of. */
typedef struct ws_region_args {
  int32_t region;        /* ws_region */
  int32_t real_diagonal; /* imaginary parts of the diagonal count as 0, and are written so */
  int64_t first_row, first_column;
} ws_region_args;

static inline WS_HOST_DEVICE int ws_region_wants(const ws_region_args *r, int64_t i, int64_t j) {
  return ws_region_has(r->region, i + r->first_row, j + r->first_column);
}

/* Whether an element of the block is wanted. */
static inline WS_HOST_DEVICE int ws_region_wants_of(const ws_region_args *r, int64_t i, int64_t m, int64_t j, int64_t n) {
  return ws_region_meets(r->region, i + r->first_row, m, j + r->first_column, n);
}

/* Whether all are, and none of them is on a diagonal that is real. */
static inline WS_HOST_DEVICE int ws_region_is_plain(const ws_region_args *r, int64_t i, int64_t m, int64_t j, int64_t n) {
  const int64_t row = i + r->first_row, column = j + r->first_column;
  if (r->region == WS_ALL && !r->real_diagonal) return 1;
  if (r->region == WS_ALL) return row + m <= column || column + n <= row;
  return r->region == WS_UPPER ? row + m <= column : column + n <= row;
}

static inline WS_HOST_DEVICE int ws_region_is_real(const ws_region_args *r, int64_t i, int64_t j) {
  return r->real_diagonal && i + r->first_row == j + r->first_column;
}
#endif
