/* align_copy_args.h - arguments of the kernel that copies operands to where TMA can read them.
 * Shared by C and CUDA. */
#ifndef WS_CUDA_ALIGN_COPY_ARGS_H
#define WS_CUDA_ALIGN_COPY_ARGS_H
#include <stdint.h>

/* n_batch times n_lines lines of `length` elements of 16 bits: line l of product p begins at
 * element p * stride + l * ld of `from`, and at (p * n_lines + l) * pitch of `to`, which is aligned
 * to 16 bytes; pitch is a multiple of 8. */
typedef struct ws_align_copy_operand {
  const void *from;
  void *to;
  int64_t length, n_lines, n_batch, ld, stride, pitch;
} ws_align_copy_operand;

typedef struct ws_align_copy_args {
  ws_align_copy_operand operand[2]; /* n_lines = 0: none */
} ws_align_copy_args;
#endif
