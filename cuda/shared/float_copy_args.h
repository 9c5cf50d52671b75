/* float_copy_args.h - arguments of the kernel that copies FP32 operands to where tiled rows read them 16 bytes at a time.
 * Shared by C and CUDA. */
#ifndef WS_CUDA_FLOAT_COPY_ARGS_H
#define WS_CUDA_FLOAT_COPY_ARGS_H
#include <stdint.h>

/* Element (x, k) of product b, x along m or n, is at from[b * stride + x + k * ld], or (transposed) from[b * stride + k + x * ld], and comes
 * to to[(b * n_k + k) * pitch + x]. */
typedef struct ws_float_copy_operand {
  const float *from;
  float *to;
  int64_t n_x, n_k, n_batch, ld, stride, pitch;
  int32_t transposed;
} ws_float_copy_operand;

typedef struct ws_float_copy_args {
  ws_float_copy_operand operand[2]; /* n_k = 0: none */
} ws_float_copy_args;

/* A block's share at a time, by so many threads. */
#define WS_FLOAT_COPY_X 128
#define WS_FLOAT_COPY_K 32
#define WS_FLOAT_COPY_THREADS 256
#endif
