/* float_copies.h - copies of operands of floats for tiled rows, which read lines along m or n by 16 bytes, and all else element by
 * element. They change no bits, so they are made where they save time, and left out where there is no memory. */
#ifndef WS_CUDA_FLOAT_COPIES_H
#define WS_CUDA_FLOAT_COPIES_H
#include "cuda/host/plan.h"
#include "cuda/shared/float_copy_args.h"

typedef struct ws_float_copies {
  bool of_a, of_b;  /* neither: none are made */
  double bytes, us; /* us: of the product with them */
} ws_float_copies;

/* Of a product by tiled rows: direct has the modes that its operands are read by without copies. */
ws_float_copies ws_float_copies_for(const ws_call *call, const ws_gpu_plan *direct, const ws_device *device);

/* The problem with copies in `memory` (NULL: no address yet), as long as p is; and how they are made. */
void ws_float_copies_make(const ws_problem *p, const ws_float_copies *copies, char *memory, ws_problem *copied,
                          ws_float_copy_args *args);
#endif
