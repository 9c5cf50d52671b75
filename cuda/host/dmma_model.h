/* dmma_model.h - the time of a product of double precision by a row of dmma.def. */
#ifndef WS_CUDA_DMMA_MODEL_H
#define WS_CUDA_DMMA_MODEL_H
#include "core/problem.h"
#include "cuda/host/device.h"

/* What a model of one device is made of; us, bytes, k. */
typedef struct ws_dmma_terms {
  double launch_us;              /* with the event pair */
  double item_us;                /* an item's begin and end, which other blocks of the SM partly hide */
  double mma_per_us;             /* multiply-adds of an SM in a us, if it is full */
  double alone;                  /* share of that speed which four warps that multiply reach */
  double pair_bytes, word_bytes; /* of shared memory an SM fills in a us, by copies of 16 and of 8 bytes */
  double part_us, sum_us;        /* of a cluster; and of each thousand sums that a block reads */
  double memory_per_us;          /* bytes of A, B and C */
  double store_per_us;           /* of C that an SM stores, in bytes */
} ws_dmma_terms;
extern const ws_dmma_terms ws_dmma_terms_h200;

/* n_items: that are wanted; modes: how operands are copied (ws_copy_mode). */
typedef struct ws_dmma_product {
  int64_t n_items;
  int32_t mode_a, mode_b;
} ws_dmma_product;
double ws_dmma_us(const ws_dmma_terms *t, const ws_problem *p, const ws_dmma_product *product, const ws_cuda_row *row, int n_sms);
#endif
