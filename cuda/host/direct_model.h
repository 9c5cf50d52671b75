/* direct_model.h - what small and flat products of 16-bit elements take by direct rows, and what by
 * wgmma rows. From sizes, ops, row and SMs alone, as it decides about the order of summation:
 * operands count as if their lds were no longer than they must be. */
#ifndef WS_CUDA_DIRECT_MODEL_H
#define WS_CUDA_DIRECT_MODEL_H
#include "core/problem.h"
#include "cuda/host/device.h"

/* us between two events, launch included, L2 flushed. */
double ws_direct_us(const ws_problem *p, const ws_cuda_row *row, int64_t n_items, int n_sms);
/* The same of a wgmma row, whose own time is us (wgmma_model.h), with the copies of operands that
 * TMA does not take. */
double ws_wgmma_and_copies_us(const ws_problem *p, double us);

/* Whether the product is so small that the two are worth comparing. */
bool ws_may_be_direct(const ws_problem *p);
#endif
