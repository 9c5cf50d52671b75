/* float_copies.c - see float_copies.h. */
#include "cuda/host/float_copies.h"

#include "cuda/host/problem_args.h"

/* ALIGN: of a copy, in bytes; PITCH: floats of a line of the L2. */
enum { ALIGN = 256, PITCH = 32 };

/* x of its elements lie along m or n; n_batch: of them that differ, n_paid: that are paid for, so that no choice goes by strides. */
typedef struct copied_operand {
  int64_t x, k, n_batch, n_paid, pitch;
} copied_operand;

static copied_operand operand_of(const ws_problem *p, const ws_matrix *matrix, int64_t x) {
  const bool are_many = p->batch_count > 1 && matrix->stride != 0;
  return (copied_operand){x, p->k, are_many ? p->batch_count : 1, p->batch_count, ws_ceil_div(x, PITCH) * PITCH};
}

static double bytes_of(const copied_operand *op) {
  const double bytes = (double)op->pitch * (double)op->k * (double)op->n_paid * sizeof(float);
  return (double)ws_ceil_div((int64_t)bytes, ALIGN) * ALIGN;
}

/* With a launch; a byte is read and written (one H200, bench/NOTES.md). */
static double copies_us(double bytes) {
  const double launch_us = 2.5, bytes_per_us = 2.2e6;
  return launch_us + 2 * bytes / bytes_per_us;
}

/* Fewer products are over before copies could pay. */
bool ws_float_copies_may_pay(const ws_call *call, const ws_problem *p, const ws_device *device, ws_row_kind kind) {
  const double least_products = 64e6;
  return device->cc == WS_BY_MAP_CC && kind == WS_ROW_TILED && p->a.type == WSGEMM_F32 && ws_is_plain(p) &&
         !ws_forced_row(call->forced[WS_CUDA], p->a.type) &&
         (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count >= least_products;
}

ws_float_copies ws_float_copies_for(const ws_call *call, const ws_gpu_plan *direct, const ws_device *device) {
  const ws_problem *p = direct->problem;
  ws_float_copies best = {.us = ws_gpu_best_us(direct, device)};
  if (direct->split.n_splits > 1 || !ws_float_copies_may_pay(call, p, device, direct->kind)) return best;
  const copied_operand a = operand_of(p, &p->a, p->m), b = operand_of(p, &p->b, p->n);
  for (int which = 1; which < 4; which++) {
    const bool of_a = which & 1, of_b = which & 2;
    if ((of_a && direct->mode_a == WS_COPY_VECTORS_MN) || (of_b && direct->mode_b == WS_COPY_VECTORS_MN)) continue;
    const double bytes = (of_a ? bytes_of(&a) : 0) + (of_b ? bytes_of(&b) : 0);
    if (bytes > WS_COPIES_BYTES) continue; /* the library has no memory of more */
    ws_gpu_plan plan = *direct;
    if (of_a) plan.mode_a = WS_COPY_VECTORS_MN;
    if (of_b) plan.mode_b = WS_COPY_VECTORS_MN;
    const double us = ws_gpu_best_us(&plan, device) + copies_us(bytes);
    if (us < best.us) best = (ws_float_copies){of_a, of_b, bytes, us};
  }
  return best;
}

/* trans: of a matrix whose lines are along m or n. */
static char *copy_to(ws_matrix *matrix, bool trans, const copied_operand *op, char *to, ws_float_copy_operand *args) {
  *args = (ws_float_copy_operand){.from = matrix->data,
                                  .to = (float *)to,
                                  .n_x = op->x,
                                  .n_k = op->k,
                                  .n_batch = op->n_batch,
                                  .ld = matrix->ld,
                                  .stride = matrix->stride,
                                  .pitch = op->pitch,
                                  .transposed = matrix->trans != trans};
  matrix->data = to, matrix->trans = trans, matrix->ld = op->pitch;
  matrix->stride = op->n_batch > 1 ? op->pitch * op->k : 0;
  return to ? to + (int64_t)bytes_of(op) : NULL;
}

void ws_float_copies_make(const ws_problem *p, const ws_float_copies *copies, char *memory, ws_problem *copied,
                          ws_float_copy_args *args) {
  const copied_operand a = operand_of(p, &p->a, p->m), b = operand_of(p, &p->b, p->n);
  *copied = *p, *args = (ws_float_copy_args){0};
  if (copies->of_a) memory = copy_to(&copied->a, false, &a, memory, &args->operand[0]);
  if (copies->of_b) copy_to(&copied->b, true, &b, memory, &args->operand[1]);
}
