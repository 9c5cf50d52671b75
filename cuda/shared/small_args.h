/* small_args.h - arguments of a kernel for batches of small matrices (gemm_small.cuh). Shared by C and
 * CUDA; one constant parameter. */
#ifndef WS_CUDA_SMALL_ARGS_H
#define WS_CUDA_SMALL_ARGS_H
#include "cuda/shared/kernel_args.h"

/* How an item's matrices of an operand come to shared memory. A line is what is contiguous in memory: of a
 * matrix along m, n or k; a piece is what a thread copies of it at a time, always at the same place of lines. */
typedef struct ws_small_operand {
  int64_t step_line, step_matrix; /* in memory, in bytes */
  /* The matrices follow each other in memory without gaps, and stand so in shared memory, by one bulk copy. It begins at a multiple
   * of 16 bytes, up to 15 before the first element. */
  int32_t is_raw;
  int32_t unit;                /* bytes of a piece: 16, 8, 4 or 2 */
  int32_t n_lines, line_bytes; /* of a matrix */
  int32_t n_pieces, n_filled;  /* pieces of a line, lines of a matrix: with zeros beyond those that exist */
  /* the threads' lines are so far apart, in as many matrices as threads are left for */
  int32_t lines_apart, matrices_apart;
  ws_divisor by_pieces, by_lines; /* n_pieces, lines_apart */
  int32_t pitch, matrix;          /* bytes from line to line, from matrix to matrix, in shared memory */
} ws_small_operand;

typedef struct ws_small_args {
  ws_gemm_args gemm; /* sched.n_items: items */
  ws_small_operand a, b;
  int32_t n_batch, n_together; /* matrices; of an item */
  int32_t tiles_m, tiles_n;    /* of a matrix, each a thread's or a warp's */
  ws_divisor by_tiles, by_tiles_m;
  int32_t b_at, stage; /* bytes: where B's are, and from stage to stage */
  int32_t by_vectors;  /* neither operand is raw: read by 16 bytes, or of 16-bit elements by 8 */
} ws_small_args;

/* Where the matrices of a batch lie, if it has pointers in place of strides; in device memory. */
typedef struct ws_small_places {
  const void *const *a, *const *b;
  void *const *c;
} ws_small_places;
#endif
