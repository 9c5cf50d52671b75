/* flat_model.h - about the time of a flat product by a row of flat.def, on an H200: by sizes and ops
 * alone, as a row decides about the order of summation. */
#ifndef WS_CUDA_FLAT_MODEL_H
#define WS_CUDA_FLAT_MODEL_H
#include "core/problem.h"
#include "cuda/host/device.h"

/* us */
double ws_flat_us(const ws_problem *p, const ws_cuda_row *row, int64_t n_items, int n_sms);
#endif
