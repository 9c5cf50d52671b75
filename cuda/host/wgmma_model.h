/* wgmma_model.h - how long a row of wgmma kernels takes for a product of 16-bit elements: what
 * plan.c weighs such rows by. Times are those of an H200, with the launch. From sizes, ops, row and
 * SMs alone, as it decides about the order of summation: operands count as if their lds were no
 * longer than they must be. */
#ifndef WS_CUDA_WGMMA_MODEL_H
#define WS_CUDA_WGMMA_MODEL_H
#include <stdbool.h>

#include "core/problem.h"
#include "cuda/host/device.h"

/* What the model's terms are; us, or what a us brings. Doubles only, which tools/fit_model.py fits:
 * it reads their names here. Of [2], the first is of kernels that stay, the second of those that
 * end with their item (is_once). */
typedef struct ws_wgmma_terms {
  double launch_us[2], item_us[2];
  double sums_per_us, unit_share[3]; /* of an SM; of that with 1, 2, 3 consumers */
  /* Bytes to an SM: asked of the L2, and come from there, also what another block asked for; from
   * memory to all of them. */
  double asked_per_us, come_per_us, memory_per_us;
  /* A line of 128 bytes that straddles two of the L2 costs so much more; and where operands of so
   * many bytes do not stay in the L2. */
  double straddling, straddling_far, far_bytes;
  /* From when a copy is asked for to when it is there; a box that ends beyond the operand within
   * its lines takes longer. */
  double latency_us, short_box_us;
  /* Of an element, by one consumer; a store that takes long takes so much longer. */
  double store_us, full_store_us;
  /* Parts of k: the cluster meets, and an element is sent. Blocks that load for each other begin
   * together. */
  double meet_us, exchange_us, pair_us;
} ws_wgmma_terms;
extern const ws_wgmma_terms ws_wgmma_terms_h200;

/* What all rows have in common for a product. */
typedef struct ws_wgmma_product {
  const ws_problem *problem;
  int n_sms;
  bool is_full;
  int64_t n_k_blocks;
  double lines_a, lines_b; /* what their lines cost, as parts of whole ones */
  double memory_us, short_boxes_us;
} ws_wgmma_product;

/* is_full: the store reads C, or goes through steps of an epilogue that take time. */
ws_wgmma_product ws_wgmma_look_at(const ws_wgmma_terms *terms, const ws_problem *p, int n_sms, bool is_full);
/* us */
double ws_wgmma_us(const ws_wgmma_terms *terms, const ws_wgmma_product *product, const ws_cuda_row *row);
#endif
