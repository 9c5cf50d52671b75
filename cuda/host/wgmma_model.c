/* wgmma_model.c - see wgmma_model.h: rounds of items, of which each takes what the tensor cores or
 * the way from the L2 to the SM take for its k blocks, and what begins and ends it; and no less than
 * memory takes for all.
 *
 * The terms are fitted by tools/fit_model.py to all rows of some hundred products drawn at random
 * (bench_gpu_gemm --suite row_times, H200; bench/NOTES.md), so that the row with the least time is
 * the fastest, or near it. */
#include "cuda/host/wgmma_model.h"

#include <math.h>

#include "core/tile.h"
#include "cuda/rows/rows.h"

enum { LINE_BYTES = 128, TMA_BYTES = 16, BOX = 64 };

const ws_wgmma_terms ws_wgmma_terms_h200 = {
    .launch_us = {6.63, 3.95},
    .item_us = {0.376, 1.70},
    .sums_per_us = 3594240,
    .unit_share = {0.79, 0.96, 1.035},
    .asked_per_us = 103.2e3,
    .come_per_us = 124.4e3,
    .memory_per_us = 3.87e6,
    .straddling = 0.206,
    .straddling_far = 0.30,
    .far_bytes = 50e6,
    .latency_us = 0.943,
    .short_box_us = 0.038,
    .store_us = 1.43e-4,
    .full_store_us = 5.7e-4,
    .meet_us = 1.30,
    .exchange_us = 1.40e-4,
    .pair_us = 0.5,
};

/* How many clusters of so many blocks are resident: those of 4 and 8 have to fit into a GPC, some of
 * which have fewer SMs (cudaOccupancyMaxActiveClusters of an H200: 30 and 15). */
static int64_t most_clusters(int cluster, int n_sms) {
  return ws_max(1, cluster == 8 ? n_sms * 15 / 132 : cluster == 4 ? n_sms * 30 / 132 : n_sms / cluster);
}

/* What is not even aligned for TMA comes from a copy of whole lines. */
static double cost_of_lines(int64_t length, double straddles) {
  return length * 2 % TMA_BYTES == 0 && length * 2 % LINE_BYTES ? 1 + straddles : 1;
}
static int64_t length_of_a(const ws_problem *p) { return p->a.trans ? p->k : p->m; }
static int64_t length_of_b(const ws_problem *p) { return p->b.trans ? p->n : p->k; }

/* What comes to a block of an operand for a k block, in bytes. */
static double loaded_bytes(bool along_k, int64_t x, int item_x) {
  const int64_t step = along_k ? 8 : BOX, lines = ws_min((item_x + step - 1) / step, (x + step - 1) / step) * step;
  return (double)lines * LINE_BYTES;
}

/* Times that hide each other: the longest, and a little more where others are nearly as long: about
 * the sixth root of the sum of their sixth powers, without a root, as every call asks for all
 * rows. */
static double longest(const double *us, int n) {
  double most = us[0], others = -1;
  for (int i = 1; i < n; i++) most = us[i] > most ? us[i] : most;
  for (int i = 0; i < n; i++) {
    const double part = us[i] / most, cube = part * part * part;
    others += cube * cube;
  }
  return most * (1 + others / (6 + 2.16 * others));
}

static int consumers_of(const ws_cuda_row *row) { return row->n_threads / 128 - (row->is_once ? 0 : 1); }

static double operand_bytes(const ws_wgmma_terms *t, int64_t x, int64_t k, int64_t length) {
  return (double)x * (double)k * 2 * cost_of_lines(length, (t->straddling + t->straddling_far) / 4);
}

ws_wgmma_product ws_wgmma_look_at(const ws_wgmma_terms *t, const ws_problem *p, int n_sms, bool is_full) {
  const double straddles = t->straddling + t->straddling_far * fmin(1, (double)(p->m + p->n) * (double)p->k * 2 / t->far_bytes);
  const double bytes = (double)p->batch_count * (operand_bytes(t, p->m, p->k, length_of_a(p)) +
                                                 operand_bytes(t, p->n, p->k, length_of_b(p)) + (double)p->m * (double)p->n * 2);
  const int n_short = (!p->a.trans && p->m < BOX) + (p->b.trans && p->n < BOX);
  return (ws_wgmma_product){.problem = p,
                            .n_sms = n_sms,
                            .is_full = is_full,
                            .n_k_blocks = ws_ceil_div(p->k, WS_WGMMA_BK),
                            .lines_a = cost_of_lines(length_of_a(p), straddles),
                            .lines_b = cost_of_lines(length_of_b(p), straddles),
                            .memory_us = bytes / t->memory_per_us,
                            .short_boxes_us = n_short * t->short_box_us};
}

static double k_block_us(const ws_wgmma_terms *t, const ws_wgmma_product *product, const ws_cuda_row *row) {
  const ws_problem *p = product->problem;
  const int width = row->bn * row->coarse, n_shared = row->cluster / row->cluster_splits;
  const double a = loaded_bytes(p->a.trans, p->m, row->bm), b = loaded_bytes(!p->b.trans, p->n, width);
  const double asked = a / n_shared * product->lines_a + b * product->lines_b;
  const double us[] = {(double)row->bm * width * WS_WGMMA_BK / (t->sums_per_us * t->unit_share[consumers_of(row) - 1]),
                       asked / t->asked_per_us + product->short_boxes_us, (a + b) / t->come_per_us, t->latency_us / row->stages};
  return longest(us, sizeof us / sizeof us[0]);
}

/* What an item takes besides its k blocks. */
static double begin_and_end_us(const ws_wgmma_terms *t, const ws_cuda_row *row, bool is_full) {
  const int splits = row->cluster_splits;
  const double elements = (double)row->bm * row->bn * row->coarse, own = elements / consumers_of(row) / splits;
  double us = t->item_us[row->is_once] + own * (t->store_us + (is_full && !row->ping_pong ? t->full_store_us : 0));
  if (splits > 1) us += t->meet_us + elements * (splits - 1) / splits * t->exchange_us;
  return row->cluster > splits ? us + t->pair_us : us;
}

double ws_wgmma_us(const ws_wgmma_terms *t, const ws_wgmma_product *product, const ws_cuda_row *row) {
  const ws_problem *p = product->problem;
  const int64_t columns = row->coarse * row->cluster / row->cluster_splits;
  const int64_t n_items = p->batch_count * ws_ceil_div(p->m, row->bm) * ws_ceil_div(ws_ceil_div(p->n, row->bn), columns);
  const int64_t of_place =
      ws_ceil_div(n_items, most_clusters(row->cluster, product->n_sms)); /* one after the other, or beside it */
  const int64_t n_k = ws_ceil_div(product->n_k_blocks, row->cluster_splits);
  const double us[] = {(double)of_place * (double)n_k * k_block_us(t, product, row) +
                           (double)ws_ceil_div(of_place, row->blocks) * begin_and_end_us(t, row, product->is_full),
                       product->memory_us};
  /* ping-pong: nothing is multiplied beside the last store */
  const double last_us = product->is_full && row->ping_pong ? t->full_store_us * row->bm * row->bn * row->coarse : 0;
  return t->launch_us[row->is_once] + longest(us, sizeof us / sizeof us[0]) + last_us;
}
