/* operand_copies.c - see operand_copies.h. */
#include "operand_copies.h"

/* PITCH elements are a line of the L2: lines that straddle two cost the kernels a fifth more of its bandwidth (at ld 4104 a third of their
 * speed, H200). */
enum { BYTES = 2, PITCH = 64, LEAST_SIDE = 256 };

static int64_t pitch_of(int64_t length) { return ws_ceil_div(length, PITCH) * PITCH; }

double ws_copy_bytes(const ws_lines *x) {
  return ws_lines_are_whole(x) ? 0 : (double)pitch_of(x->length) * (double)x->n_lines * (double)x->n_products * BYTES;
}

ws_problem ws_piece_at(const ws_problem *p, const ws_pieces *pieces, int64_t m_first, int64_t n_first, int64_t batch_first) {
  ws_problem piece = *p;
  const int bytes_c = ws_types[p->type_c].bytes;
  piece.m = ws_min(pieces->m, p->m - m_first), piece.n = ws_min(pieces->n, p->n - n_first);
  piece.batch_count = ws_min(pieces->batch, p->batch_count - batch_first);
  piece.a = (const char *)p->a + (batch_first * p->stride_a + m_first * (p->a_trans ? p->lda : 1)) * BYTES;
  piece.b = (const char *)p->b + (batch_first * p->stride_b + n_first * (p->b_trans ? 1 : p->ldb)) * BYTES;
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

/* Of the first piece, which is the largest; whether an operand is taken as it stands must hold for all of them. */
double ws_copies_bytes(const ws_problem *p, const ws_pieces *pieces) {
  const ws_problem first = ws_piece_at(p, pieces, 0, 0, 0);
  const ws_lines a = ws_lines_of_a(&first), b = ws_lines_of_b(&first);
  return ws_copy_bytes(&a) + ws_copy_bytes(&b);
}

static int64_t half_of(int64_t side) { return ws_ceil_div(ws_ceil_div(side, 2), LEAST_SIDE) * LEAST_SIDE; }

/* Products first: a batch of small ones is many. Then the side whose copies are larger. */
bool ws_pieces_for(const ws_problem *p, double bytes, ws_pieces *pieces) {
  *pieces = (ws_pieces){p->m, p->n, p->batch_count};
  while (ws_copies_bytes(p, pieces) > bytes) {
    const ws_problem first = ws_piece_at(p, pieces, 0, 0, 0);
    const ws_lines a = ws_lines_of_a(&first), b = ws_lines_of_b(&first);
    int64_t *side = ws_copy_bytes(&a) >= ws_copy_bytes(&b) ? &pieces->m : &pieces->n;
    if (pieces->batch > 1)
      pieces->batch = ws_ceil_div(pieces->batch, 2);
    else if (*side > LEAST_SIDE)
      *side = half_of(*side);
    else
      return false;
  }
  return true;
}

void ws_copy_lines(ws_lines *x, char *to, ws_pitch_operand *op) {
  const int64_t pitch = pitch_of(x->length);
  *op = (ws_pitch_operand){.from = x->data,
                           .to = to,
                           .length = x->length,
                           .n_lines = x->n_lines,
                           .n_products = x->n_products,
                           .ld = x->ld,
                           .stride = x->stride,
                           .pitch = pitch};
  x->data = to, x->ld = pitch, x->stride = x->n_products > 1 ? pitch * x->n_lines : 0;
}

/* In units of 16 bits, of which C's elements are several. */
double ws_copy_c(ws_problem *p, char *to, ws_pitch_operand *op) {
  const int64_t units = ws_types[p->type_c].bytes / BYTES;
  ws_lines c = {.data = p->c,
                .length = p->m * units,
                .n_lines = p->n,
                .n_products = p->batch_count,
                .ld = p->ldc * units,
                .stride = p->stride_c * units};
  ws_copy_lines(&c, to, op);
  p->epilogue.residual = to, p->epilogue.ld_residual = c.ld / units, p->epilogue.stride_residual = c.stride / units;
  return (double)c.ld * (double)c.n_lines * (double)c.n_products * BYTES;
}
