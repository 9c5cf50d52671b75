/* small_args.h - arguments of a kernel for batches of small matrices (gemm_small.cuh). Shared by C and
 * CUDA; one constant parameter. */
#ifndef WS_CUDA_SMALL_ARGS_H
#define WS_CUDA_SMALL_ARGS_H
#include "cuda/shared/kernel_args.h"

/* How an item's matrices of an operand come to shared memory. A line is what is contiguous in memory: of a
 * matrix along m, n or k. */
typedef enum ws_small_copy {
  WS_SMALL_PIECES, /* by cp.async, pieces of lines */
  WS_SMALL_BULK,   /* by bulk copies, whole lines, or whole matrices, which then count as a line */
  /* By one bulk copy: the matrices follow each other in memory without gaps, and stand so in shared memory. It begins at a multiple
   * of 16 bytes, up to 15 before the first element. */
  WS_SMALL_RAW
} ws_small_copy;

typedef struct ws_small_operand {
  int64_t step_line, step_matrix; /* in memory, in bytes */
  int32_t copy;                   /* ws_small_copy */
  int32_t unit;                   /* bytes of a piece: 16, 8, 4 or 2; of a bulk copy */
  int32_t n_lines, line_bytes;    /* of a matrix (raw: line_bytes are the matrix's) */
  /* What is filled: pieces of a line, lines of a matrix, with zeros beyond those that exist */
  int32_t n_pieces, n_filled;
  /* from each piece that a thread copies to its next one: pieces, lines, matrices */
  int32_t next_piece, next_line, next_matrix;
  int32_t pitch, matrix; /* bytes from line to line, from matrix to matrix, in shared memory */
} ws_small_operand;

typedef struct ws_small_args {
  ws_gemm_args gemm; /* sched.n_items: items */
  ws_small_operand a, b;
  int32_t n_batch, n_together; /* matrices; of an item */
  int32_t tiles_m, tiles_n;    /* of a matrix, each a thread's or a warp's */
  int32_t b_at, stage;         /* bytes: where B's are, and from stage to stage */
  int32_t by_vectors;          /* neither operand is raw: read by 16 bytes, or of 16-bit elements by 8 */
} ws_small_args;
#endif
