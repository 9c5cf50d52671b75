/* flat_model.h - how long a row of flat.def takes for a flat product of 16-bit elements, on an H200:
 * by sizes and ops alone, as a row decides about the order of summation. */
#ifndef WS_CUDA_FLAT_MODEL_H
#define WS_CUDA_FLAT_MODEL_H
#include "core/problem.h"
#include "cuda/host/device.h"

/* us, or what a us brings, of doubles only: tools/fit_model.py reads their names here. */
typedef struct ws_flat_terms {
  double begin_and_end_us, cluster_us;
  double memory_per_us, sm_per_us; /* bytes of the matrix, to all SMs and to one */
  double single_few;               /* so much longer where the few are not contiguous along k */
} ws_flat_terms;
extern const ws_flat_terms ws_flat_terms_h200;

/* us; infinite for products that other rows are made for. */
double ws_flat_us(const ws_flat_terms *terms, const ws_problem *p, const ws_cuda_row *row, int n_sms);
#endif
