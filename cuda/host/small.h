/* small.h - batches of small products: how many matrices a block of gemm_small.cuh takes at a time, how they
 * lie in its shared memory, and what the rows of small.def take of time. */
#ifndef WS_CUDA_SMALL_H
#define WS_CUDA_SMALL_H
#include "core/problem.h"
#include "cuda/host/device.h"
#include "cuda/shared/small_args.h"

typedef struct ws_small_shape {
  int n_threads, shared_bytes;
  int blocks; /* of an SM */
} ws_small_shape;

/* Whether the rows can have it: as gemm's, small, whose store has no steps of an epilogue; and whether they are the best for it. By
 * sizes, types and ops alone. */
bool ws_small_may_take(const ws_problem *p);
bool ws_small_is_quick(const ws_problem *p);

/* Of one that they can have: whether the row has enough threads and memory for a matrix; its time, on an H200; its items. */
bool ws_small_takes(const ws_problem *p, const ws_cuda_row *row);
double ws_small_us(const ws_problem *p, const ws_cuda_row *row, int n_sms);
int64_t ws_small_items(const ws_problem *p, const ws_cuda_row *row);

ws_small_shape ws_small_args_of(const ws_problem *p, const ws_cuda_row *row, ws_small_args *args);
/* The same of a batch whose matrices lie at pointers (ws_small_places), with lds of the problem. */
ws_small_shape ws_small_args_at_places(const ws_problem *p, const ws_cuda_row *row, ws_small_args *args);
#endif
