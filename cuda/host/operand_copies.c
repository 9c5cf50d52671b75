/* operand_copies.c - see operand_copies.h. */
#include "cuda/host/operand_copies.h"

#include <math.h>

/* PITCH elements are a line of the L2: lines that straddle two cost the kernels a fifth more of its
 * bandwidth (at ld 4104 a third of their speed, H200). */
enum { BYTES = 2, PITCH = 64, ALIGN = 256 };

static int64_t pitch_of(int64_t length) { return ws_ceil_div(length, PITCH) * PITCH; }

double ws_align_copy_bytes(const ws_strided *x) {
  return ws_tma_takes_as_is(x) ? 0 : (double)pitch_of(x->length) * (double)x->n_lines * (double)x->n_batch * BYTES;
}

double ws_align_copies_bytes(const ws_problem *p, double *of_a, double *of_b) {
  const ws_strided a = ws_strided_a(p), b = ws_strided_b(p);
  *of_a = ws_align_copy_bytes(&a), *of_b = ws_align_copy_bytes(&b);
  return *of_a + *of_b;
}

void ws_align_copy_to(ws_strided *x, char *to, ws_align_copy_operand *op) {
  const int64_t pitch = pitch_of(x->length);
  *op = (ws_align_copy_operand){.from = x->data,
                                .to = to,
                                .length = x->length,
                                .n_lines = x->n_lines,
                                .n_batch = x->n_batch,
                                .ld = x->ld,
                                .stride = x->stride,
                                .pitch = pitch};
  x->data = to, x->ld = pitch, x->stride = x->n_batch > 1 ? pitch * x->n_lines : 0;
}

/* In units of 16 bits, of which C's elements are several. */
double ws_copy_c(ws_problem *p, char *to, ws_align_copy_operand *op) {
  const int64_t units = ws_types[p->c.type].bytes / BYTES;
  ws_strided c = {.data = p->c.data,
                  .length = p->m * units,
                  .n_lines = p->n,
                  .n_batch = p->batch_count,
                  .ld = p->c.ld * units,
                  .stride = p->c.stride * units};
  ws_align_copy_to(&c, to, op);
  p->epilogue.residual = to, p->epilogue.ld_residual = c.ld / units, p->epilogue.stride_residual = c.stride / units;
  return ceil((double)c.ld * (double)c.n_lines * (double)c.n_batch * BYTES / ALIGN) * ALIGN;
}
