/* wgmma_model.c - see wgmma_model.h: rounds of items, of which each takes what the tensor cores or
 * the way from the L2 to the SM take for its k blocks, and what begins and ends it; and no less than
 * memory takes for all.
 *
 * The constants are fitted to all rows of some hundred products drawn at random (bench_gpu_gemm
 * --suite rows, H200, 2026-11-24; bench/NOTES.md), the more to a row the nearer it is to the best,
 * so that the row with the least time is the fastest, or near it. */
#include "cuda/host/wgmma_model.h"

#include <math.h>

#include "core/tile.h"
#include "cuda/rows/rows.h"

enum { LINE_BYTES = 128, TMA_BYTES = 16, BOX = 64 };

/* us, and what a us brings. Of two numbers the first is of kernels that stay, the second of those
 * that end with their item. */
static const double launch_us[] = {6.54, 3.78}, item_us[] = {0.357, 1.76};
static const double sums_per_us = 2048.0 * 1755, unit_share[] = {0.90, 1.02, 1.09}; /* with 1, 2, 3 consumers */
/* To an SM: asked of the L2, where a line of 128 bytes that straddles two counts as more; and come
 * from there, also what another block asked for. */
static const double asked_per_us = 112.9e3, straddling = 0.48, come_per_us = 129.8e3;
static const double memory_per_us = 3.72e6;
/* Of an element, by one consumer; a store that takes long takes so much longer. */
static const double store_us = 1.365e-4, full_store_us = 5.7e-4;
/* Parts of k: the cluster meets, and an element is sent. Blocks that load for each other begin
 * together. */
static const double meet_us = 1.38, exchange_us = 1.08e-4, pair_us = 0.5;

/* How many clusters of so many blocks are resident: those of 4 and 8 have to fit into a GPC, some of
 * which have fewer SMs (cudaOccupancyMaxActiveClusters of an H200: 30 and 15). */
static int64_t most_clusters(int cluster, int n_sms) {
  return ws_max(1, cluster == 8 ? n_sms * 15 / 132 : cluster == 4 ? n_sms * 30 / 132 : n_sms / cluster);
}

/* What is not even aligned for TMA comes from a copy of whole lines. */
static double cost_of_lines(int64_t ld, double straddles) {
  return ld * 2 % TMA_BYTES == 0 && ld * 2 % LINE_BYTES ? 1 + straddles : 1;
}

/* What comes to a block of an operand for a k block, in bytes. */
static double loaded_bytes(bool along_k, int64_t x, int item_x) {
  const int64_t step = along_k ? 8 : BOX, lines = ws_min(ws_ceil_div(item_x, step), ws_ceil_div(x, step)) * step;
  return (double)lines * LINE_BYTES;
}

static double operand_bytes(int64_t x, int64_t k, int64_t ld) {
  return (double)x * (double)k * 2 * cost_of_lines(ld, straddling / 4);
}

/* What hides the others takes most of the time, but not quite where they are alike. */
static double largest(double x, double y, double z) { return sqrt(sqrt(x * x * x * x + y * y * y * y + z * z * z * z)); }

static int consumers_of(const ws_cuda_row *row) { return row->n_threads / 128 - (row->is_once ? 0 : 1); }

static double k_block_us(const ws_problem *p, const ws_cuda_row *row) {
  const int width = row->bn * row->coarse, n_shared = row->cluster / row->cluster_splits;
  const double a = loaded_bytes(p->a.trans, p->m, row->bm), b = loaded_bytes(!p->b.trans, p->n, width);
  const double asked = a / n_shared * cost_of_lines(p->a.ld, straddling) + b * cost_of_lines(p->b.ld, straddling);
  return largest((double)row->bm * width * WS_WGMMA_BK / (sums_per_us * unit_share[consumers_of(row) - 1]), asked / asked_per_us,
                 (a + b) / come_per_us);
}

/* What an item takes besides its k blocks. */
static double begin_and_end_us(const ws_cuda_row *row, bool is_full) {
  const int splits = row->cluster_splits;
  const double elements = (double)row->bm * row->bn * row->coarse, own = elements / consumers_of(row) / splits;
  double us = item_us[row->is_once] + own * (store_us + (is_full && !row->ping_pong ? full_store_us : 0));
  if (splits > 1) us += meet_us + elements * (splits - 1) / splits * exchange_us;
  return row->cluster > splits ? us + pair_us : us;
}

double ws_wgmma_us(const ws_problem *p, const ws_cuda_row *row, int n_sms, bool is_full) {
  const int64_t columns = row->coarse * row->cluster / row->cluster_splits;
  const int64_t n_items = p->batch_count * ws_ceil_div(p->m, row->bm) * ws_ceil_div(ws_ceil_div(p->n, row->bn), columns);
  const int64_t of_place = ws_ceil_div(n_items, most_clusters(row->cluster, n_sms)); /* one after the other, or beside it */
  const int64_t n_k = ws_ceil_div(ws_ceil_div(p->k, WS_WGMMA_BK), row->cluster_splits);
  const double us = (double)of_place * (double)n_k * k_block_us(p, row) +
                    (double)ws_ceil_div(of_place, row->blocks) * begin_and_end_us(row, is_full);
  const double bytes = (double)p->batch_count * (operand_bytes(p->m, p->k, p->a.ld) + operand_bytes(p->n, p->k, p->b.ld) +
                                                 (double)p->m * (double)p->n * 2);
  /* ping-pong: nothing is multiplied beside the last store */
  const double last_us = is_full && row->ping_pong ? full_store_us * row->bm * row->bn * row->coarse : 0;
  return launch_us[row->is_once] + largest(us, bytes / memory_per_us, 0) + last_us;
}
