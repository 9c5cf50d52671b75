/* float_copies.h - copies of FP32 operands for tiled rows, which read aligned operands with m or n contiguous 16 bytes at a time, and
 * all others element by element. Copies change no bits: they are made where they save time, and left out where memory is short. */
#ifndef WS_CUDA_FLOAT_COPIES_H
#define WS_CUDA_FLOAT_COPIES_H
#include "cuda/host/plan.h"
#include "cuda/shared/float_copy_args.h"

typedef struct ws_float_copies {
  bool of_a, of_b;  /* neither: none are made */
  double bytes, us; /* us: of the product with them */
} ws_float_copies;

/* Whether a product by rows of that kind is one for which copies are worth a look: asked on every call, without a model. */
bool ws_float_copies_may_pay(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind);

/* Of a product by tiled rows, with the time of the model: direct has the modes that its operands are read by without copies. */
ws_float_copies ws_float_copies_for(const ws_call *call, const ws_gpu_plan *direct, const ws_device *device);

/* The problem with copies in `memory` (NULL: no address yet), as long as p is; and how they are made. */
void ws_float_copies_make(const ws_problem *p, const ws_float_copies *copies, char *memory, ws_problem *copied,
                          ws_float_copy_args *args);
#endif
