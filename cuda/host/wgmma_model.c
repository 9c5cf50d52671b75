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
static const double launch_us[] = {6.63, 3.95}, item_us[] = {0.376, 1.70};
static const double sums_per_us = 2048.0 * 1755, unit_share[] = {0.79, 0.96, 1.035}; /* with 1, 2, 3 consumers */
/* To an SM: asked of the L2, and come from there, also what another block asked for. */
static const double asked_per_us = 103.2e3, come_per_us = 124.4e3, memory_per_us = 3.87e6;
/* A line of 128 bytes that straddles two of the L2 costs so much more; and where operands do not
 * stay in the L2. */
static const double straddling = 0.206, straddling_far = 0.30, far_bytes = 50e6;
/* From when a copy is asked for to when it is there; a box that ends beyond the operand within its
 * lines takes longer. */
static const double latency_us = 0.943, short_box_us = 0.038;
/* Of an element, by one consumer; a store that takes long takes so much longer. */
static const double store_us = 1.43e-4, full_store_us = 5.7e-4;
/* Parts of k: the cluster meets, and an element is sent. Blocks that load for each other begin
 * together. */
static const double meet_us = 1.30, exchange_us = 1.40e-4, pair_us = 0.5;

/* How many clusters of so many blocks are resident: those of 4 and 8 have to fit into a GPC, some of
 * which have fewer SMs (cudaOccupancyMaxActiveClusters of an H200: 30 and 15). */
static int64_t most_clusters(int cluster, int n_sms) {
  return ws_max(1, cluster == 8 ? n_sms * 15 / 132 : cluster == 4 ? n_sms * 30 / 132 : n_sms / cluster);
}

/* Of an operand without an ld, as this decides about the order of summation. What is not even
 * aligned for TMA comes from a copy of whole lines. */
static double cost_of_lines(int64_t length, double straddles) {
  return length * 2 % TMA_BYTES == 0 && length * 2 % LINE_BYTES ? 1 + straddles : 1;
}
static int64_t length_of_a(const ws_problem *p) { return p->a.trans ? p->k : p->m; }
static int64_t length_of_b(const ws_problem *p) { return p->b.trans ? p->n : p->k; }

/* What comes to a block of an operand for a k block, in bytes. */
static double loaded_bytes(bool along_k, int64_t x, int item_x) {
  const int64_t step = along_k ? 8 : BOX, lines = ws_min(ws_ceil_div(item_x, step), ws_ceil_div(x, step)) * step;
  return (double)lines * LINE_BYTES;
}

static double operand_bytes(int64_t x, int64_t k, int64_t length) {
  return (double)x * (double)k * 2 * cost_of_lines(length, (straddling + straddling_far) / 4);
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

static double k_block_us(const ws_problem *p, const ws_cuda_row *row) {
  const int width = row->bn * row->coarse, n_shared = row->cluster / row->cluster_splits;
  const double a = loaded_bytes(p->a.trans, p->m, row->bm), b = loaded_bytes(!p->b.trans, p->n, width);
  const double straddles = straddling + straddling_far * fmin(1, (double)(p->m + p->n) * (double)p->k * 2 / far_bytes);
  const double asked = a / n_shared * cost_of_lines(length_of_a(p), straddles) + b * cost_of_lines(length_of_b(p), straddles);
  const int n_short = (!p->a.trans && p->m < BOX) + (p->b.trans && p->n < BOX);
  const double us[] = {(double)row->bm * width * WS_WGMMA_BK / (sums_per_us * unit_share[consumers_of(row) - 1]),
                       asked / asked_per_us + n_short * short_box_us, (a + b) / come_per_us, latency_us / row->stages};
  return longest(us, sizeof us / sizeof us[0]);
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
  const double bytes = (double)p->batch_count * (operand_bytes(p->m, p->k, length_of_a(p)) +
                                                 operand_bytes(p->n, p->k, length_of_b(p)) + (double)p->m * (double)p->n * 2);
  const double us[] = {(double)of_place * (double)n_k * k_block_us(p, row) +
                           (double)ws_ceil_div(of_place, row->blocks) * begin_and_end_us(row, is_full),
                       bytes / memory_per_us};
  /* ping-pong: nothing is multiplied beside the last store */
  const double last_us = is_full && row->ping_pong ? full_store_us * row->bm * row->bn * row->coarse : 0;
  return launch_us[row->is_once] + longest(us, sizeof us / sizeof us[0]) + last_us;
}
