/* sliced_model.h - the time of a product of floats by slices (slices.h): all launches of all its chunks. */
#ifndef WS_CUDA_SLICED_MODEL_H
#define WS_CUDA_SLICED_MODEL_H
#include "core/problem.h"
#include "cuda/host/device.h"

/* A product as all its rows see it. */
typedef struct ws_sliced_product {
  bool is_possible;
  int n_shapes;    /* of chunks */
  double n_batch;  /* products of a chunk */
  double first_us; /* before the products, and between chunks */
  struct {
    double m, n, count; /* in elements of C */
  } shape[4];
} ws_sliced_product;

/* n_slices: that are made at first. By sizes and ops alone, as if the library's own memory were used. */
ws_sliced_product ws_sliced_look_at(const ws_problem *p, int n_slices);
double ws_sliced_us(const ws_sliced_product *product, const ws_problem *p, const ws_cuda_row *row, int n_sms);
#endif
