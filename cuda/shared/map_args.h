/* map_args.h - arguments of rows of gemm_tf32.cuh whose operands come by tensor maps. Shared by C and CUDA; one constant parameter. */
#ifndef WS_CUDA_MAP_ARGS_H
#define WS_CUDA_MAP_ARGS_H
#include <cuda.h>

#include "cuda/shared/kernel_args.h"

/* A or B, by lines: what is contiguous is a line. The map has 3 dimensions: along a line, from line to line, from product to product;
 * boxes of 32 floats (128 bytes, swizzled) of some lines. Product b of the batch is the map's batch_first + b * batch_step. */
typedef struct ws_map_operand {
  CUtensorMap map;
  int32_t batch_first, batch_step;
} ws_map_operand;

typedef struct ws_map_args {
  ws_gemm_args gemm; /* A and B where they are, for what is mended */
  ws_map_operand a, b;
  ws_map_operand b_high; /* of two slices: B rounded to TF32 */
} ws_map_args;
#endif
