/* dmma_model.c - see dmma_model.h: an SM's blocks one after the other and beside each other, each
 * bound by its products or by its copies. */
#include "cuda/host/dmma_model.h"

#include <math.h>

#include "core/tile.h"
#include "cuda/rows/dmma_rows.h"
#include "cuda/shared/kernel_args.h"

const ws_dmma_terms ws_dmma_terms_h200 = {
    .launch_us = 4.5,
    .item_us = 0.6,
    .mma_per_us = 225e3,
    .alone = 0.8,
    .pair_bytes = 40e3,
    .word_bytes = 20e3,
    .part_us = 0.6,
    .sum_us = 0.2,
    .memory_per_us = 3.5e6,
    .store_per_us = 30e3,
};

/* Of a stage's k blocks, bytes by the time that they take. */
static double copy_us(const ws_dmma_terms *t, const ws_dmma_product *product, const ws_cuda_row *row, bool copies_p_singly) {
  const bool a_pairs = (product->mode_a == WS_COPY_VECTORS_MN || product->mode_a == WS_COPY_VECTORS_K) && !copies_p_singly;
  const bool b_pairs = product->mode_b == WS_COPY_VECTORS_MN || product->mode_b == WS_COPY_VECTORS_K;
  return WS_DMMA_LINE_BYTES * row->k_groups *
         (row->bm / (a_pairs ? t->pair_bytes : t->word_bytes) + row->bn / (b_pairs ? t->pair_bytes : t->word_bytes));
}

/* Clusters that find a place at once: not every group of SMs is a multiple of their blocks. */
static double places_of(const ws_cuda_row *row, int n_sms) {
  const double share = row->cluster <= 2 ? 1 : 0.9;
  return fmax(1, floor(share * n_sms * row->blocks / row->cluster));
}

double ws_dmma_us(const ws_dmma_terms *t, const ws_problem *p, const ws_dmma_product *product, const ws_cuda_row *row, int n_sms) {
  const bool is_complex = p->a.type == WSGEMM_C64;
  const double stage_k = (double)row->bk * row->k_groups, k = (double)p->k, element = ws_types[p->a.type].bytes;
  const double n_stages = ceil(ceil(k / stage_k) / row->cluster), multiply_adds = (is_complex ? 4.0 : 1.0) * row->bm * row->bn;
  const double mma_us = multiply_adds * stage_k / t->mma_per_us;
  const double stage_us = fmax(mma_us, copy_us(t, product, row, !is_complex && p->a.trans && !p->b.trans));
  const double item_us = n_stages * stage_us + t->item_us + row->bm * row->bn * element / row->cluster / t->store_per_us;
  const double places = places_of(row, n_sms), n_items = (double)product->n_items, rounds = floor(n_items / places);
  const double left = n_items - rounds * places, each = ceil(left * row->cluster / n_sms);
  const double last = left == 0 ? 0 : each < row->blocks ? each / t->alone : each;
  const double parts = row->cluster > 1 ? t->part_us + t->sum_us * row->bm * row->bn * row->k_groups * 1e-3 : 0;
  const double bytes = element * ((double)p->m * k + k * (double)p->n + (double)p->m * (double)p->n) * (double)p->batch_count;
  return t->launch_us + fmax((rounds * row->blocks + last) * item_us + parts, bytes / t->memory_per_us);
}
