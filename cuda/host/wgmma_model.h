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
 * it reads their names here. */
typedef struct ws_wgmma_terms {
  /* Begin and end: of kernels that stay, of those that end with their item (is_once), of those that
   * stay and only store (is_plain, or bare products); and how much longer where blocks load for
   * each other (pair_us of those that stay, share_us of those that end), and by ping-pong. */
  double launch_us[3], pair_us, share_us, ping_pong_us;
  double later_item_us; /* another item of the SM, of kernels that end with theirs */
  double store_us;      /* an element, by one consumer */
  double full_store_us; /* where a store takes long, so much longer (not fitted) */
  /* Of rows that store by lines (wgmma_store.cuh) an element takes so much more, and again where columns of C begin within a
   * sector. */
  double lines_us, lines_within_sector_us;
  /* k blocks. Multiplied: by an SM; by one with 1, 2, 3 consumers. */
  double step_us, sums_per_us, unit_share[3];
  /* Loaded: from when a copy is asked for to when it is there, longer if its box ends beyond the
   * operand within its lines, and then the k block longer; bytes to one SM, and to all. */
  double latency_us, short_box_us, short_step_us, sm_per_us, l2_per_us;
  /* A line of 128 bytes that straddles two of the L2 costs the L2 so much more, one that begins
   * within a sector of 32 bytes so much more again: of an operand along m or n, and along k. */
  double straddling[2], within_sector[2];
  /* Bytes from memory and to it, the latter so much more where columns of C begin within a sector. */
  double read_per_us, write_per_us, written_within_sector;
  /* Parts of k: the cluster meets, and an element is sent. */
  double meet_us, exchange_us;
} ws_wgmma_terms;
extern const ws_wgmma_terms ws_wgmma_terms_h200;

/* What all rows have in common for a product. */
typedef struct ws_wgmma_product {
  const ws_problem *problem;
  int n_sms;
  bool is_full;
  /* By sizes and what is stored, whether ws_is_bare (tma_maps.h) may be true, and rows that stay may
   * compute C transposed: where operands begin, and their lds, decide about no row. */
  bool is_bare;
  int64_t n_k_blocks;
  double element_us[3]; /* of an item, for a k block, with 1, 2, 3 consumers */
  double byte_us;       /* to one SM; the L2's for all of them, of A and of B: */
  double byte_of_a_us, byte_of_b_us;
  double memory_us, latency_us, step_us;
} ws_wgmma_product;

/* is_full: the store reads C, or goes through steps of an epilogue that take time. */
ws_wgmma_product ws_wgmma_look_at(const ws_wgmma_terms *terms, const ws_problem *p, int n_sms, bool is_full);
/* Whether the row computes C transposed, from B and A exchanged, as this is faster; it stores the
 * same bits. */
bool ws_wgmma_is_across(const ws_wgmma_terms *terms, const ws_wgmma_product *product, const ws_cuda_row *row);
/* us, with A and B exchanged or not */
double ws_wgmma_us_as(const ws_wgmma_terms *terms, const ws_wgmma_product *product, const ws_cuda_row *row, bool is_across);
/* us, of the faster of both ways */
double ws_wgmma_us(const ws_wgmma_terms *terms, const ws_wgmma_product *product, const ws_cuda_row *row);
#endif
