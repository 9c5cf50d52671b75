/* outer_model.h - the time of a product by a row of outer.def, whose blocks take items one after the other. */
#ifndef WS_CUDA_OUTER_MODEL_H
#define WS_CUDA_OUTER_MODEL_H
#include "core/problem.h"
#include "cuda/host/device.h"

/* What a model of one device is made of. */
typedef struct ws_outer_terms {
  double launch_us;                /* with the event pair, a block's begin and its last stores */
  double stage_us;                 /* a stage, however few its products */
  double fma_per_us;               /* multiply-adds of an SM, if it is full */
  double half_warps;               /* so many warps reach half of that */
  double edge;                     /* that a product of 32 x 32 takes longer than one without edges */
  double vector_bytes, word_bytes; /* that an SM copies in a us, by 16 bytes, by less */
  double item_us;                  /* of an item, besides */
  double store_per_us;             /* bytes of C that an SM stores */
  double overlap;       /* the share of the shorter ones of products, copies and stores that the longest does not hide */
  double memory_per_us; /* bytes of A, B and C */
} ws_outer_terms;
extern const ws_outer_terms ws_outer_terms_h200[2]; /* real, complex */

/* By sizes and ops alone, as a row decides about the order of summation: of lds it is thought that
 * they are as small as can be. n_items: that are wanted. */
double ws_outer_us(const ws_outer_terms *t, const ws_problem *p, int64_t n_items, const ws_cuda_row *row, int n_sms);
#endif
