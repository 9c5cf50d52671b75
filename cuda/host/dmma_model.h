/* dmma_model.h - the time of a product by a row of dmma.def, ffma.def, tf32.def, tf32m.def or tf32w.def: rows whose warps copy
 * for others, or TMA does. */
#ifndef WS_CUDA_DMMA_MODEL_H
#define WS_CUDA_DMMA_MODEL_H
#include "core/problem.h"
#include "cuda/host/device.h"

/* What a model of one device is made of. */
typedef struct ws_dmma_terms {
  double launch_us;              /* with the event pair */
  double item_us;                /* a block's begin and end */
  double mma_per_us;             /* multiply-adds of an SM in a us, if it is full */
  double edge;                   /* that a product of 32 x 32 takes longer than one without edges, by what is copied and read */
  double warp_edge;              /* likewise, by the sides of a warp's part, of one of 32 x 32: what it reads of shared memory */
  double alone;                  /* share of that speed which four warps that multiply reach */
  double pair_bytes, word_bytes; /* that an SM copies in a us, by 16 bytes, by elements */
  double pipeline_us;            /* from a stage's copies to its being full, if the pipeline waits for nothing else */
  double part_us, sum_us;        /* of a cluster; and of each thousand words of 8 bytes that are added up */
  double block_us, large_us;     /* of each block of a cluster; of one of more than WS_PORTABLE_PARTS */
  double memory_per_us;          /* bytes of A, B and C */
  double store_per_us;           /* bytes of C that an SM stores */
  double next_us;                /* from item to item, where blocks stay */
  double staying;                /* so many times as long a stage takes there */
} ws_dmma_terms;
/* By wsgemm_type; those that have such rows. */
extern const ws_dmma_terms ws_dmma_terms_h200[WS_N_TYPES];
/* Of rows tf32, and of rows tf32w: by the number of slices, less one; of real products, of complex ones. */
extern const ws_dmma_terms ws_tf32_terms_h200[2][2], ws_tf32w_terms_h200[2][2];
/* Of rows tf32m, whose operands come by tensor maps; by slices, of one first. */
extern const ws_dmma_terms ws_tf32m_terms_h200[2];

/* By sizes and ops alone, as a row decides about the order of summation: of lds it is thought that
 * they are as small as can be. n_items: that are wanted. */
double ws_dmma_us(const ws_dmma_terms *t, const ws_problem *p, int64_t n_items, const ws_cuda_row *row, int n_sms);
#endif
