/* pieces.c - see pieces.h. */
#include "cuda/host/chunks.h"

#include "core/tile.h"

enum { LEAST_SIDE = 256 };

ws_problem ws_chunk_at(const ws_problem *p, const ws_chunks *pieces, int64_t m_first, int64_t n_first, int64_t batch_first) {
  ws_problem piece = *p;
  const int bytes = ws_types[p->type].bytes, bytes_c = ws_types[p->type_c].bytes;
  piece.m = ws_min(pieces->m, p->m - m_first), piece.n = ws_min(pieces->n, p->n - n_first);
  piece.batch_count = ws_min(pieces->batch, p->batch_count - batch_first);
  piece.a = (const char *)p->a + (batch_first * p->stride_a + m_first * (p->a_trans ? p->lda : 1)) * bytes;
  piece.b = (const char *)p->b + (batch_first * p->stride_b + n_first * (p->b_trans ? 1 : p->ldb)) * bytes;
  piece.c = (char *)p->c + (batch_first * p->stride_c + m_first + n_first * p->ldc) * bytes_c;
  if (p->has_epilogue) {
    ws_epilogue *e = &piece.epilogue;
    if (e->bias)
      e->bias = (const char *)e->bias +
                (batch_first * e->stride_bias + (e->bias_per_row ? m_first : n_first)) * ws_types[e->type_bias].bytes;
    if (e->residual)
      e->residual = (const char *)e->residual + (batch_first * e->stride_residual + m_first + n_first * e->ld_residual) * bytes_c;
  }
  return piece;
}

ws_chunks ws_smallest_chunks(const ws_problem *p) { return (ws_chunks){ws_min(p->m, LEAST_SIDE), ws_min(p->n, LEAST_SIDE), 1}; }

static int64_t half_of(int64_t side) { return ws_ceil_div(ws_ceil_div(side, 2), LEAST_SIDE) * LEAST_SIDE; }

/* The first piece is the largest. An operand that it takes as it stands may yet begin elsewhere in the next products, if the stride is not
 * aligned; if it is, all do as those. */
double ws_chunks_bytes(const ws_problem *p, ws_chunk_bytes *bytes_of, const ws_chunks *pieces, double *of_a, double *of_b) {
  const ws_problem first = ws_chunk_at(p, pieces, 0, 0, 0);
  bytes_of(&first, of_a, of_b);
  if (pieces->batch < p->batch_count) {
    double next_a, next_b;
    const ws_problem next = ws_chunk_at(p, pieces, 0, 0, pieces->batch);
    bytes_of(&next, &next_a, &next_b);
    *of_a = next_a > *of_a ? next_a : *of_a, *of_b = next_b > *of_b ? next_b : *of_b;
  }
  return *of_a + *of_b;
}

/* Products first: a batch of small ones is many. Then the side whose operand needs more, while it can be cut. */
bool ws_chunks_for(const ws_problem *p, ws_chunk_bytes *bytes_of, double bytes, ws_chunks *pieces) {
  *pieces = (ws_chunks){p->m, p->n, p->batch_count};
  while (true) {
    double of_a, of_b;
    if (ws_chunks_bytes(p, bytes_of, pieces, &of_a, &of_b) <= bytes) return true;
    int64_t *side = of_a >= of_b ? &pieces->m : &pieces->n;
    if (*side <= LEAST_SIDE) side = side == &pieces->m ? &pieces->n : &pieces->m;
    if (pieces->batch > 1)
      pieces->batch = ws_ceil_div(pieces->batch, 2);
    else if (*side > LEAST_SIDE)
      *side = half_of(*side);
    else
      return false;
  }
}

/* A serves a whole row of pieces; B all rows of them, where a row is one piece. */
wsgemm_status ws_for_each_chunk(const ws_problem *p, const ws_chunks *pieces, ws_chunk_work *work, void *context) {
  for (int64_t batch = 0; batch < p->batch_count; batch += pieces->batch)
    for (int64_t m = 0; m < p->m; m += pieces->m)
      for (int64_t n = 0; n < p->n; n += pieces->n) {
        const ws_problem piece = ws_chunk_at(p, pieces, m, n, batch);
        const ws_chunk_place place = {m, n, batch, n == 0, m == 0 || pieces->n < p->n};
        const wsgemm_status status = work(context, &piece, &place);
        if (status) return status;
      }
  return WSGEMM_SUCCESS;
}
