/* chunks.h - products whose operands are worked into another form first: split into chunks of C
 * whose operands, in that form, fit into the memory there is. No sum is split, so its bits do not
 * depend on that. */
#ifndef WS_CUDA_CHUNKS_H
#define WS_CUDA_CHUNKS_H
#include "core/problem.h"

/* Rows and columns of C, and products of the batch, worked on at a time. */
typedef struct ws_chunks {
  int64_t m, n, batch;
} ws_chunks;

/* Bytes that a chunk needs in all, and those for each operand. */
typedef double ws_chunk_bytes(const ws_problem *chunk, double *of_a, double *of_b);

/* Those that the largest chunk needs, and all others have enough with. */
double ws_chunks_bytes(const ws_problem *p, ws_chunk_bytes *bytes_of, const ws_chunks *chunks, double *of_a, double *of_b);

/* The largest chunks that need at most so many bytes; false: there are none. */
bool ws_chunks_for(const ws_problem *p, ws_chunk_bytes *bytes_of, double bytes, ws_chunks *chunks);

/* The smallest that there are. */
ws_chunks ws_smallest_chunks(const ws_problem *p);

/* What of the problem begins with this row, column and product; its column sums are the whole
 * problem's. */
ws_problem ws_chunk_at(const ws_problem *p, const ws_chunks *chunks, int64_t m_first, int64_t n_first, int64_t batch_first);

/* Where a chunk begins; A, or B, is the same as in the chunk before unless it is new. */
typedef struct ws_chunk_place {
  int64_t m, n, product;
  bool new_a, new_b;
} ws_chunk_place;
typedef wsgemm_status ws_chunk_work(void *context, const ws_problem *chunk, const ws_chunk_place *place);

/* One chunk after the other, to the first that fails. */
wsgemm_status ws_for_each_chunk(const ws_problem *p, const ws_chunks *chunks, ws_chunk_work *work, void *context);
#endif
