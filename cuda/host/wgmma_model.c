/* wgmma_model.c - see wgmma_model.h: rounds of items, of which each takes what the tensor cores or
 * the way from the L2 to the SM take for its k blocks, and what begins and ends it; and no less than
 * memory takes for all.
 *
 * The terms are fitted by tools/fit_model.py to all rows of some hundred products drawn at random
 * (bench_gpu_gemm --suite row_times, H200; bench/NOTES.md), so that the row with the least time is
 * the fastest, or near it. */
#include "cuda/host/wgmma_model.h"

#include "core/tile.h"
#include "cuda/host/problem_args.h"
#include "cuda/rows/rows.h"

enum { LINE_BYTES = 128, SECTOR_BYTES = 32, TMA_BYTES = 16, BOX = 64 };

const ws_wgmma_terms ws_wgmma_terms_h200 = {
    .launch_us = {7.734, 4.765, 5.247},
    .pair_us = 1.259,
    .share_us = 0.003913,
    .ping_pong_us = 0.9692,
    .later_item_us = 1.266,
    .store_us = 0.0001453,
    .full_store_us = 0.00057,
    .lines_us = 0.0001725,
    .lines_within_sector_us = 9.302e-06,
    .step_us = 0.03298,
    .sums_per_us = 4.214e+06,
    .unit_share = {1.902, 0.8718, 0.9232},
    .latency_us = 0.2101,
    .short_box_us = 0.009993,
    .short_step_us = 0.03368,
    .sm_per_us = 2.239e+05,
    .l2_per_us = 3.798e+07,
    .straddling = {0.9745, 0},
    .within_sector = {1.522, 2.569},
    .read_per_us = 9.504e+06,
    .write_per_us = 3.296e+07,
    .written_within_sector = 0.8822,
    .meet_us = 0.02144,
    .exchange_us = 0.0003199,
};

/* Parts of d that x takes, both whole numbers. As doubles, as 64-bit integers take longer to divide,
 * and every new product asks for all rows; just as exact. */
static double parts_of(double x, double d) { return (double)(int64_t)((x + d - 1) / d); }

/* What is not even aligned for TMA comes from a copy of whole lines. */
static double cost_of_lines(const ws_wgmma_terms *t, int64_t length, bool along_k) {
  const int64_t bytes = length * 2;
  if (bytes % TMA_BYTES || bytes % LINE_BYTES == 0) return 1;
  return 1 + t->straddling[along_k] + (bytes % SECTOR_BYTES ? t->within_sector[along_k] : 0);
}
static int64_t length_of_a(const ws_problem *p) { return p->a.trans ? p->k : p->m; }
static int64_t length_of_b(const ws_problem *p) { return p->b.trans ? p->n : p->k; }

/* What comes to a block of an operand for a k block, in bytes. Lines as short as an item of 16 or 32
 * is wide cost the L2 as much as whole ones. */
static double loaded_bytes(bool along_k, int64_t x, int item_x) {
  const int64_t step = along_k ? 8 : BOX, lines = ws_min((item_x + step - 1) / step, (x + step - 1) / step) * step;
  return (double)lines * LINE_BYTES;
}
static double kept_share(bool along_k, int item_x) { return along_k ? 1 : (double)WS_WGMMA_A_LINE(item_x) / BOX; }

/* Times that hide each other: the longer one, and a little more where the other is nearly as long:
 * about the sixth root of the sum of their sixth powers, without a root. */
static double longer(double us, double other_us) {
  const double most = us > other_us ? us : other_us, part = (us + other_us - most) / most, cube = part * part * part;
  return most * (1 + cube * cube / (6 + 2.16 * cube * cube));
}

static int consumers_of(const ws_cuda_row *row) { return row->n_threads / 128 - (row->is_once ? 0 : 1); }

static bool may_be_bare(const ws_problem *p) {
  enum { WHOLE = TMA_BYTES / 2 };
  return p->c.type == p->a.type && ws_has_plain_store(p) && p->m % WHOLE == 0 && length_of_a(p) % WHOLE == 0 &&
         length_of_b(p) % WHOLE == 0;
}

ws_wgmma_product ws_wgmma_look_at(const ws_wgmma_terms *t, const ws_problem *p, int n_sms, bool is_full) {
  const double batch = (double)p->batch_count, m = (double)p->m, n = (double)p->n, k = (double)p->k;
  const double writes = p->m * 2 % SECTOR_BYTES ? 1 + t->written_within_sector : 1;
  const int n_short = (!p->a.trans && p->m < BOX) + (p->b.trans && p->n < BOX);
  ws_wgmma_product product = {.problem = p,
                              .n_sms = n_sms,
                              .is_full = is_full,
                              .is_bare = may_be_bare(p),
                              .n_k_blocks = ws_ceil_div(p->k, WS_WGMMA_BK),
                              .byte_us = 1 / t->sm_per_us,
                              .byte_of_a_us = cost_of_lines(t, length_of_a(p), p->a.trans) / t->l2_per_us,
                              .byte_of_b_us = cost_of_lines(t, length_of_b(p), !p->b.trans) / t->l2_per_us,
                              .memory_us = batch * 2 * ((m + n) * k / t->read_per_us + m * n * writes / t->write_per_us),
                              .latency_us = t->latency_us + n_short * t->short_box_us,
                              .step_us = t->step_us + n_short * t->short_step_us};
  for (int i = 0; i < 3; i++) product.element_us[i] = WS_WGMMA_BK / (t->sums_per_us * t->unit_share[i]);
  return product;
}

/* How SMs work on items: each on so many, one after the other or beside it, of so many k blocks, while
 * n_active SMs do. */
typedef struct rounds {
  double n_items, of_sm, n_k, n_active;
} rounds;

/* m and n as the kernel has them, which exchanges them where it computes C transposed; and which
 * operand is along k. */
typedef struct sides {
  int64_t m, n;
  bool a_along_k, b_along_k;
  double byte_of_a_us, byte_of_b_us;
} sides;
static sides sides_of(const ws_wgmma_product *product, bool is_across) {
  const ws_problem *p = product->problem;
  return is_across ? (sides){p->n, p->m, !p->b.trans, p->a.trans, product->byte_of_b_us, product->byte_of_a_us}
                   : (sides){p->m, p->n, p->a.trans, !p->b.trans, product->byte_of_a_us, product->byte_of_b_us};
}

static double k_block_us(const ws_wgmma_product *product, const ws_cuda_row *row, const rounds *r, const sides *x) {
  const int width = row->bn * row->coarse;
  const double a = loaded_bytes(x->a_along_k, x->m, row->bm) / ws_cluster_n(row),
               b = loaded_bytes(x->b_along_k, x->n, width) / row->cluster_m;
  const double n_blocks = row->blocks < r->of_sm ? row->blocks : r->of_sm;
  const double multiplied_us = (double)row->bm * width * product->element_us[consumers_of(row) - 1];
  const double came = a * ws_cluster_n(row) * kept_share(x->a_along_k, row->bm) + b * row->cluster_m;
  const double loaded_us = product->latency_us / (row->stages * n_blocks) + came * product->byte_us +
                           (a * x->byte_of_a_us + b * x->byte_of_b_us) * r->n_active;
  return product->step_us + longer(multiplied_us, loaded_us);
}

/* What an item takes besides its k blocks. */
static double store_us(const ws_wgmma_terms *t, const ws_wgmma_product *product, const ws_cuda_row *row, bool is_across) {
  const bool is_full = product->is_full, by_lines = !is_across && row->bm > BOX && row->bm % BOX && row->cluster_splits == 1;
  const int splits = row->cluster_splits;
  const double elements = (double)row->bm * row->bn * row->coarse, own = elements / consumers_of(row) / splits;
  const double lines_us = by_lines ? t->lines_us + (product->problem->m * 2 % SECTOR_BYTES ? t->lines_within_sector_us : 0) : 0;
  const double us = own * (t->store_us + lines_us + (is_full && !row->ping_pong ? t->full_store_us : 0));
  return splits > 1 ? us + t->meet_us + elements * (splits - 1) / splits * t->exchange_us : us;
}

static double launch_us(const ws_wgmma_terms *t, const ws_wgmma_product *product, const ws_cuda_row *row) {
  const double us = t->launch_us[row->is_once ? 1 : row->is_plain || product->is_bare ? 2 : 0];
  const double share_us = row->cluster == row->cluster_splits ? 0 : row->is_once ? t->share_us : t->pair_us;
  return us + share_us + (row->ping_pong ? t->ping_pong_us : 0);
}

double ws_wgmma_us_as(const ws_wgmma_terms *t, const ws_wgmma_product *product, const ws_cuda_row *row, bool is_across) {
  const sides x = sides_of(product, is_across);
  const double rows = (double)row->bm * row->cluster_m, columns = (double)row->bn * row->coarse * ws_cluster_n(row);
  rounds r = {.n_items = (double)product->problem->batch_count * parts_of((double)x.m, rows) * parts_of((double)x.n, columns),
              .n_k = row->cluster_splits > 1 ? parts_of((double)product->n_k_blocks, row->cluster_splits)
                                             : (double)product->n_k_blocks};
  r.of_sm = parts_of(r.n_items, ws_most_clusters(row->cluster, product->n_sms));
  r.n_active = r.n_items * row->cluster / r.of_sm;
  const double n_rounds = row->blocks > 1 ? parts_of(r.of_sm, row->blocks) : r.of_sm;
  const double items_us = r.of_sm * r.n_k * k_block_us(product, row, &r, &x) + n_rounds * store_us(t, product, row, is_across) +
                          (row->is_once ? (n_rounds - 1) * t->later_item_us : 0);
  /* ping-pong: nothing is multiplied beside the last store */
  const double last_us = product->is_full && row->ping_pong ? t->full_store_us * row->bm * row->bn * row->coarse : 0;
  return launch_us(t, product, row) + longer(items_us, product->memory_us) + last_us;
}

bool ws_wgmma_is_across(const ws_wgmma_terms *t, const ws_wgmma_product *product, const ws_cuda_row *row) {
  return product->is_bare && ws_wgmma_us_as(t, product, row, true) < ws_wgmma_us_as(t, product, row, false);
}

double ws_wgmma_us(const ws_wgmma_terms *t, const ws_wgmma_product *product, const ws_cuda_row *row) {
  const double us = ws_wgmma_us_as(t, product, row, false),
               across_us = product->is_bare ? ws_wgmma_us_as(t, product, row, true) : us;
  return us < across_us ? us : across_us;
}
