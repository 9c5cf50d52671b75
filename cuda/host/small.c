/* small.c - see small.h. */
#include "cuda/host/small.h"

#include "cuda/host/problem_args.h"

static int rounded_up(int n, int to) { return (n + to - 1) / to * to; }

/* Bytes of one copy: as many as its lines are aligned to. */
static int unit_of(const ws_matrix *x, int element_bytes) {
  int unit = 16;
  while (unit > 2 && !ws_is_aligned(x->data, x->ld, x->stride, element_bytes, unit)) unit /= 2;
  return unit;
}

/* The matrices follow each other without gaps, their elements aligned. */
static bool is_packed(const ws_matrix *x, int64_t len, int64_t n_lines, int element_bytes) {
  return x->ld == len && x->stride == len * n_lines && ws_is_aligned(x->data, 1, 1, element_bytes, element_bytes);
}

/* In units of 16 bytes an odd number, where threads side by side read other lines or other matrices: so they read other banks. */
static int odd_pitch(int bytes) { return rounded_up(bytes, 16) | 16; }

/* by_mma: for ldmatrix, with zeros up to a whole step of k. */
static ws_small_operand operand_of(const ws_matrix *x, bool along_k, int64_t size, int64_t k, bool by_mma) {
  const int element = ws_types[x->type].bytes, len = (int)(along_k ? k : size), n_lines = (int)(along_k ? size : k);
  ws_small_operand op = {.step_line = x->ld * element,
                         .step_matrix = x->stride * element,
                         .unit = unit_of(x, element),
                         .n_lines = n_lines,
                         .line_bytes = len * element};
  op.is_raw = op.unit < 16 && is_packed(x, len, n_lines, element);
  const int step = by_mma ? 16 : 1, filled = rounded_up(n_lines, along_k ? 1 : step), filled_bytes = rounded_up(len, along_k ? step : 1) * element;
  if (op.is_raw) {
    op.unit = 16, op.pitch = op.line_bytes, op.matrix = op.pitch * n_lines, op.line_bytes = op.matrix, op.n_lines = op.n_filled = 1;
  } else {
    op.pitch = along_k || by_mma ? odd_pitch(filled_bytes) : rounded_up(filled_bytes, 16);
    op.matrix = odd_pitch(op.pitch * filled), op.n_filled = filled, op.n_pieces = (filled_bytes + op.unit - 1) / op.unit;
  }
  return op;
}

/* An item's, with what a raw one has before its first element. */
static int bytes_of(const ws_small_operand *op, int n_together) { return rounded_up(op->matrix * n_together, 16) + 16 * op->is_raw; }

/* How n_threads go through an item. */
static void set_steps(ws_small_operand *op, int n_together, int n_threads) {
  if (op->is_raw) op->n_pieces = (op->line_bytes * n_together + 15 + 15) / 16;
  const int lines = n_threads / op->n_pieces;
  op->next_piece = n_threads % op->n_pieces, op->next_line = lines % op->n_filled, op->next_matrix = lines / op->n_filled;
}

bool ws_small_args_of(const ws_problem *p, int tm, int tn, int owner_threads, int most_threads, ws_small_args *args, ws_small_shape *shape) {
  enum { N_STAGES = 2 };
  *args = (ws_small_args){.a = operand_of(&p->a, p->a.trans, p->m, p->k, owner_threads > 1), .b = operand_of(&p->b, !p->b.trans, p->n, p->k, owner_threads > 1)};
  args->by_vectors = !args->a.is_raw && !args->b.is_raw;
  args->tiles_m = (int)((p->m + tm - 1) / tm), args->tiles_n = (int)((p->n + tn - 1) / tn);
  const int tiles = args->tiles_m * args->tiles_n;
  int together = most_threads / (tiles * owner_threads);
  if (together > p->batch_count) together = (int)p->batch_count;
  while (together > 0 && N_STAGES * (bytes_of(&args->a, together) + bytes_of(&args->b, together)) > WS_SMALL_SHARED_BYTES) together--;
  if (together == 0) return false;
  args->n_together = together;
  args->b_at = bytes_of(&args->a, together), args->stage = args->b_at + bytes_of(&args->b, together);
  const int n_threads = rounded_up(together * tiles * owner_threads, 32);
  set_steps(&args->a, together, n_threads), set_steps(&args->b, together, n_threads);
  args->gemm = ws_gemm_args_of(p);
  args->gemm.grid.n_batch = p->batch_count;
  args->gemm.sched.n_items = (uint32_t)((p->batch_count + together - 1) / together);
  *shape = (ws_small_shape){n_threads, N_STAGES * args->stage};
  return true;
}
