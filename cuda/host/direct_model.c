/* direct_model.c - see direct_model.h. Fitted to all direct rows at 63 shapes, and to what was
 * launched for the shapes of gpu_half_random.jsonl (H200, 2026-11-24; bench/NOTES.md); but for
 * stored_single, halved by hand when C came to be stored in pairs. */
#include "cuda/host/direct_model.h"

#include "core/tile.h"
#include "cuda/rows/rows.h"

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

double ws_direct_us(const ws_problem *p, const ws_cuda_row *row, int64_t n_items, int n_sms) {
  /* Once: launch, code (longer for larger tiles, and for more loads of a thread), the cluster. */
  const double launch = 3.4, cluster_of_4 = 0.63, cluster_of_8 = 1.0, per_element = 0.3e-3, per_load = 0.078, per_single = 0.1;
  /* For each round of blocks, and for each k block of a part. */
  const double round = 1.0, k_block = 0.33, k_block_single = 0.36;
  /* For each block of an SM: operands, C in single elements. */
  const double block = 0.35, copied = 0.49e-4, stored_single = 0.07e-3;
  const double n_blocks = (double)n_items * row->cluster, of_sm = n_blocks / n_sms;
  const double n_rounds = (double)ws_ceil_div((int64_t)n_blocks, (int64_t)n_sms * row->blocks);
  const double n_k_blocks = (double)ws_ceil_div(p->k, (int64_t)WS_DIRECT_BK * row->k_groups * row->cluster);
  const double threads = (double)row->n_threads / row->k_groups, edges = row->bm + row->bn, tile = (double)row->bm * row->bn;
  const double singles = (row->bm * single_share(lines_of_a(p)) + row->bn * single_share(lines_of_b(p))) / threads;
  const double k = n_k_blocks * WS_DIRECT_BK * row->k_groups;
  const double once = launch + tile * per_element + edges / threads * per_load + singles * per_single +
                      (row->cluster > 4   ? cluster_of_8
                       : row->cluster > 1 ? cluster_of_4
                                          : 0);
  return once + n_rounds * (round + n_k_blocks * (k_block + singles * k_block_single)) +
         of_sm * (block + edges * k * copied + (p->m % 8 ? tile / row->cluster * stored_single : 0));
}

/* A warp copies a line. */
static double copy_us(operand_lines x, double n_batch) {
  const double us_per_element = 2.6e-3, us_per_byte = 0.13e-6;
  if (x.length % 8 == 0) return 0;
  return us_per_element * (double)x.length + us_per_byte * 4 * (double)x.length * (double)x.n * n_batch;
}

double ws_wgmma_and_copies_us(const ws_problem *p, double us) {
  const double copy_launch = 3.8, single_c = 0.8e-6, batch = (double)p->batch_count;
  const double copies = copy_us(lines_of_a(p), batch) + copy_us(lines_of_b(p), batch);
  return us + (copies > 0 ? copy_launch + copies : 0) + (p->m % 8 ? single_c * (double)p->m * (double)p->n * batch : 0);
}

bool ws_may_be_direct(const ws_problem *p) { return (double)p->m * (double)p->n * (double)p->batch_count * (double)p->k < 8e9; }
