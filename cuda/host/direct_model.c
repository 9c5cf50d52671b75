/* direct_model.c - see direct_model.h. The terms are fitted by tools/fit_model.py, as those of
 * wgmma_model.c are. */
#include "cuda/host/direct_model.h"

#include "core/tile.h"
#include "cuda/host/wgmma_model.h"
#include "cuda/rows/rows.h"

const ws_direct_terms ws_direct_terms_h200 = {
    .launch_us = 2.857,
    .cluster_of_4_us = 0.3618,
    .cluster_of_8_us = 0.3546,
    .per_element_us = 0.0005745,
    .per_load_us = 0.466,
    .per_single_us = 0.02242,
    .round_us = 0.8391,
    .k_block_us = 0.2994,
    .k_block_single_us = 0.457,
    .block_us = 0.419,
    .copied_us = 3.826e-05,
    .stored_single_us = 5.18e-07,
    .read_us = 6.925e-08,
    .copy_launch_us = 4.215,
    .copy_element_us = 0.001925,
    .copy_byte_us = 2.495e-07,
    .copy_line_us = 3.3e-04, /* 51 x 29 x 63 x 24025 and 43 x 40 x 41 x 20000, bench/NOTES.md */
    .copy_single_c_us = 1.417e-06,
    .vector_launch_us = 4.911,
    .vector_parts_us = 2.173,
    .vector_k_us = 0.0005,
    .vector_round_us = 2.707,
    .vector_byte_us = 1.675e-07,
    .vector_odd_byte_us = 3.105e-07,
};

/* What is contiguous, and how many there are of it in one product. */
typedef struct operand_lines {
  int64_t length, n;
} operand_lines;
static operand_lines lines_of_a(const ws_problem *p) {
  return p->a.trans ? (operand_lines){p->k, p->m} : (operand_lines){p->m, p->k};
}
static operand_lines lines_of_b(const ws_problem *p) {
  return p->b.trans ? (operand_lines){p->n, p->k} : (operand_lines){p->k, p->n};
}

/* How much of single loads an operand takes: none by 8 elements at a time, half by pairs. */
static double single_share(operand_lines x) { return x.length % 8 == 0 ? 0 : x.length % 2 == 0 ? 0.5 : 1; }

double ws_direct_us(const ws_direct_terms *t, const ws_problem *p, const ws_cuda_row *row, int n_sms) {
  const int64_t n_items = p->batch_count * ws_ceil_div(p->m, row->bm) * ws_ceil_div(p->n, row->bn);
  const double n_blocks = (double)n_items * row->cluster, of_sm = n_blocks / n_sms;
  const double n_rounds = (double)ws_ceil_div(n_items, (int64_t)ws_most_clusters(row->cluster, n_sms) * row->blocks);
  const double n_k_blocks = (double)ws_ceil_div(p->k, (int64_t)WS_DIRECT_BK * row->k_groups * row->cluster);
  const double threads = (double)row->n_threads / row->k_groups, edges = row->bm + row->bn, tile = (double)row->bm * row->bn;
  const double singles = (row->bm * single_share(lines_of_a(p)) + row->bn * single_share(lines_of_b(p))) / threads;
  const double k = n_k_blocks * WS_DIRECT_BK * row->k_groups;
  const double once = t->launch_us + tile * t->per_element_us + edges / threads * t->per_load_us + singles * t->per_single_us +
                      (row->cluster > 4   ? t->cluster_of_8_us
                       : row->cluster > 1 ? t->cluster_of_4_us
                                          : 0);
  const double read_bytes = (double)p->batch_count * (double)(p->m + p->n) * (double)p->k * 2;
  return once + read_bytes * t->read_us +
         n_rounds * (t->round_us + n_k_blocks * (t->k_block_us + singles * t->k_block_single_us)) +
         of_sm * (t->block_us + edges * k * t->copied_us + (p->m % 8 ? tile / row->cluster * t->stored_single_us : 0));
}

/* A warp copies a line. */
static double copy_us(const ws_direct_terms *t, operand_lines x, double n_batch) {
  if (x.length % 8 == 0) return 0;
  const double n_lines = (double)x.n * n_batch; /* of one product they are few, beside so many warps */
  return t->copy_element_us * (double)x.length + t->copy_byte_us * 4 * (double)x.length * n_lines +
         (n_batch > 1 ? t->copy_line_us * n_lines : 0);
}

double ws_wgmma_copies_us(const ws_direct_terms *t, const ws_problem *p) {
  const double batch = (double)p->batch_count;
  const double copies = copy_us(t, lines_of_a(p), batch) + copy_us(t, lines_of_b(p), batch);
  return (copies > 0 ? t->copy_launch_us + copies : 0) +
         (p->m % 8 ? t->copy_single_c_us * (double)p->m * (double)p->n * batch : 0);
}

/* Waves are fractional: a block starts as soon as another one ends. */
double ws_vector_us(const ws_direct_terms *t, const ws_problem *p, const ws_split *split, int n_sms) {
  const ws_vector_items items = ws_vector_items_of(p, n_sms);
  const double bytes = (double)ws_max(p->m, p->n) * (double)p->k * (double)p->batch_count * ws_types[p->a.type].bytes;
  return t->vector_launch_us + (split->n_splits > 1 ? t->vector_parts_us : 0) + (double)split->k_per_split * t->vector_k_us +
         items.n * (double)split->n_splits / items.places * t->vector_round_us +
         bytes * (p->k % 8 == 0 ? t->vector_byte_us : t->vector_odd_byte_us);
}

bool ws_may_be_direct(const ws_problem *p) { return (double)p->m * (double)p->n * (double)p->batch_count * (double)p->k < 8e9; }
