/* split.h - into how many parts k is cut (split_kernel.cuh). A function of the problem's sizes, its type and the number of
 * multiprocessors alone: the parts decide the order of summation, so neither policy, COARSE_FACTOR, row nor workspace may change them. */
#ifndef WS_CUDA_SPLIT_H
#define WS_CUDA_SPLIT_H
#include "internal.h"
#include "launch_state.h"
#include "tile.h"

typedef struct ws_split {
  int64_t n_parts; /* 1: k is not cut */
  int64_t part_k;  /* the last part may be shorter */
  int64_t ld;      /* of the partial sums: columns begin where 16 bytes may be written at a time */
  int64_t bytes;   /* of all partial sums */
} ws_split;

static inline int ws_is_matrix_vector(const ws_problem *p) { return p->m == 1 || p->n == 1; }

/* Whether the matrix of a matrix-vector product has k contiguous. */
static inline bool ws_vector_along_k(const ws_problem *p) { return p->n == 1 ? p->a_trans : !p->b_trans; }

static inline ws_split ws_split_for(const ws_problem *p, int n_sms) {
  enum { LEAST_PART = 256, PART_STEP = 64, MAX_PARTS = 128, LD_STEP = 4 };
  /* How many items keep a multiprocessor busy: some blocks of the smallest rows; of a matrix-vector product, so many as bring enough
   * bytes on their way (vector_product.cuh). Above `most` items k is left whole. */
  const bool is_vector = ws_is_matrix_vector(p), along_k = is_vector && ws_vector_along_k(p);
  const double per_sm = is_vector ? along_k ? 1 : 8 : 4, most = is_vector && !along_k ? 4.0 : 0.5;
  const double n_items = is_vector ? (double)p->batch_count * (double)ws_ceil_div(ws_max(p->m, p->n), 32)
                                   : (double)p->batch_count * (double)ws_ceil_div(p->m, 32) * (double)ws_ceil_div(p->n, 64);
  ws_split split = {1, p->k, ws_ceil_div(p->m, LD_STEP) * LD_STEP, 0};
  if (n_items > most * n_sms) return split;
  const int64_t sums_bytes = p->batch_count * p->n * split.ld * ws_types[p->type].bytes; /* for one part */
  int64_t n_parts = ws_min((int64_t)(per_sm * n_sms / n_items), p->k / LEAST_PART);
  n_parts = ws_min(ws_min(n_parts, MAX_PARTS), WS_SUMS_BYTES / sums_bytes);
  if (n_parts < 2) return split;
  split.part_k = ws_ceil_div(ws_ceil_div(p->k, n_parts), PART_STEP) * PART_STEP;
  split.n_parts = ws_ceil_div(p->k, split.part_k);
  split.bytes = split.n_parts * sums_bytes;
  return split;
}
#endif
