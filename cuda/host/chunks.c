/* chunks.c - see chunks.h. */
#include "cuda/host/chunks.h"

#include "core/tile.h"

enum { LEAST_SIDE = 256 };

ws_problem ws_chunk_at(const ws_problem *p, const ws_chunks *chunks, int64_t m_first, int64_t n_first, int64_t batch_first) {
  ws_problem chunk = *p;
  const int bytes = ws_types[p->a.type].bytes, bytes_c = ws_types[p->c.type].bytes;
  chunk.m = ws_min(chunks->m, p->m - m_first), chunk.n = ws_min(chunks->n, p->n - n_first);
  chunk.batch_count = ws_min(chunks->batch, p->batch_count - batch_first);
  chunk.a.data = (const char *)p->a.data + (batch_first * p->a.stride + m_first * (p->a.trans ? p->a.ld : 1)) * bytes;
  chunk.b.data = (const char *)p->b.data + (batch_first * p->b.stride + n_first * (p->b.trans ? 1 : p->b.ld)) * bytes;
  chunk.c.data = (char *)p->c.data + (batch_first * p->c.stride + m_first + n_first * p->c.ld) * bytes_c;
  if (p->has_epilogue) {
    ws_epilogue *e = &chunk.epilogue;
    if (e->bias)
      e->bias = (const char *)e->bias +
                (batch_first * e->stride_bias + (e->bias_per_row ? m_first : n_first)) * ws_types[e->type_bias].bytes;
    if (e->residual)
      e->residual = (const char *)e->residual + (batch_first * e->stride_residual + m_first + n_first * e->ld_residual) * bytes_c;
  }
  return chunk;
}

ws_chunks ws_smallest_chunks(const ws_problem *p) { return (ws_chunks){ws_min(p->m, LEAST_SIDE), ws_min(p->n, LEAST_SIDE), 1}; }

static int64_t half_of(int64_t side) { return ws_ceil_div(ws_ceil_div(side, 2), LEAST_SIDE) * LEAST_SIDE; }

/* The first chunk is the largest. An operand that it takes as it is may yet begin elsewhere in
 * the next products, if the stride is not aligned; if it is, all do as those. */
double ws_chunks_bytes(const ws_problem *p, ws_chunk_bytes *bytes_of, const ws_chunks *chunks, double *of_a, double *of_b) {
  const ws_problem first = ws_chunk_at(p, chunks, 0, 0, 0);
  bytes_of(&first, of_a, of_b);
  if (chunks->batch < p->batch_count) {
    double next_a, next_b;
    const ws_problem next = ws_chunk_at(p, chunks, 0, 0, chunks->batch);
    bytes_of(&next, &next_a, &next_b);
    *of_a = next_a > *of_a ? next_a : *of_a, *of_b = next_b > *of_b ? next_b : *of_b;
  }
  return *of_a + *of_b;
}

/* Products first: a batch of small ones is many. Then the side whose operand needs more, while it
 * can be split. */
bool ws_chunks_for(const ws_problem *p, ws_chunk_bytes *bytes_of, double bytes, ws_chunks *chunks) {
  *chunks = (ws_chunks){p->m, p->n, p->batch_count};
  while (true) {
    double of_a, of_b;
    if (ws_chunks_bytes(p, bytes_of, chunks, &of_a, &of_b) <= bytes) return true;
    int64_t *side = of_a >= of_b ? &chunks->m : &chunks->n;
    if (*side <= LEAST_SIDE) side = side == &chunks->m ? &chunks->n : &chunks->m;
    if (chunks->batch > 1)
      chunks->batch = ws_ceil_div(chunks->batch, 2);
    else if (*side > LEAST_SIDE)
      *side = half_of(*side);
    else
      return false;
  }
}

/* A serves a whole row of chunks; B all rows of them, where a row is one chunk. */
wsgemm_status ws_for_each_chunk(const ws_problem *p, const ws_chunks *chunks, ws_chunk_work *work, void *context) {
  for (int64_t batch = 0; batch < p->batch_count; batch += chunks->batch)
    for (int64_t m = 0; m < p->m; m += chunks->m)
      for (int64_t n = 0; n < p->n; n += chunks->n) {
        const ws_problem chunk = ws_chunk_at(p, chunks, m, n, batch);
        const ws_chunk_place place = {m, n, batch, n == 0, m == 0 || chunks->n < p->n};
        const wsgemm_status status = work(context, &chunk, &place);
        if (status) return status;
      }
  return WSGEMM_SUCCESS;
}
