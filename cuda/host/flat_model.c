/* flat_model.c - see flat_model.h: the bytes of the matrix, an SM's blocks one after the other or
 * beside each other. Fitted to 32x8 rows at eleven shapes of suite decode (H200, 2026-11-24;
 * bench/NOTES.md). */
#include "cuda/host/flat_model.h"

#include <math.h>

#include "core/tile.h"

const ws_flat_terms ws_flat_terms_h200 = {
    .begin_and_end_us = 6,
    .cluster_us = 0.7,
    .memory_per_us = 3.85e+06,
    .sm_per_us = 4.5e+04,
    .single_few = 0.2,
};

enum { LINE = 8 /* elements of 16 bytes */ };

/* What does not come by whole 16 bytes along k is for other rows: such loads of single elements are
 * there so that every call is right. */
static bool is_made_for(const ws_problem *p, bool matrix_is_a) {
  const bool matrix_along_k = matrix_is_a ? p->a.trans : !p->b.trans;
  return matrix_along_k && p->k % LINE == 0;
}

double ws_flat_us(const ws_flat_terms *t, const ws_problem *p, const ws_cuda_row *row, int n_sms) {
  const bool matrix_is_a = row->bm > row->bn;
  const int64_t few = matrix_is_a ? p->n : p->m, n_few = matrix_is_a ? row->bn : row->bm, n_x = matrix_is_a ? row->bm : row->bn;
  if (!is_made_for(p, matrix_is_a) || few > n_few) return HUGE_VAL;
  const int64_t n_blocks = p->batch_count * ws_ceil_div(p->m, row->bm) * ws_ceil_div(p->n, row->bn) * row->cluster;
  const double active = (double)ws_min(n_blocks, n_sms), rate = fmin(t->sm_per_us, t->memory_per_us / active);
  const double block_bytes = (double)n_x * (double)p->k * 2 / row->cluster;
  const bool few_along_k = matrix_is_a ? !p->b.trans : p->a.trans;
  return t->begin_and_end_us + (row->cluster > 1 ? t->cluster_us : 0) +
         (double)ws_ceil_div(n_blocks, n_sms) * block_bytes / rate * (few_along_k ? 1 : 1 + t->single_few);
}
