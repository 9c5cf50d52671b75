/* wgmma_model.h - how long a row of wgmma kernels takes for a product of 16-bit elements: what
 * plan.c weighs such rows by. Times are those of an H200, with the launch. */
#ifndef WS_CUDA_WGMMA_MODEL_H
#define WS_CUDA_WGMMA_MODEL_H
#include <stdbool.h>

#include "core/problem.h"
#include "cuda/host/device.h"

/* us. is_full: the store reads C, or goes through steps of an epilogue that take time. */
double ws_wgmma_us(const ws_problem *p, const ws_cuda_row *row, int n_sms, bool is_full);
#endif
