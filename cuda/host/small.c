/* small.c - see small.h. */
#include "cuda/host/small.h"

#include <math.h>

#include "cuda/host/problem_args.h"
#include "cuda/rows/small_rows.h"

static int rounded_up(int n, int to) { return (n + to - 1) / to * to; }

/* ---- layout in shared memory --------------------------------------------------------------------- */

/* Bytes of one copy: as many as its lines are aligned to, and have whole. */
static int unit_of(const ws_matrix *x, int line_bytes, int element_bytes) {
  int unit = 16;
  while (unit > 2 && (line_bytes % unit || !ws_is_aligned(x->data, x->ld, x->stride, element_bytes, unit))) unit /= 2;
  return unit;
}

/* The matrices follow each other without gaps, from a multiple of 16 bytes on, so that what an item has before its first element is
 * another one's. */
static bool is_packed(const ws_matrix *x, int64_t len, int64_t n_lines) {
  return x->ld == len && x->stride == len * n_lines && (uintptr_t)x->data % 16 == 0;
}

/* In units of 16 bytes an odd number, where threads side by side read other lines or other matrices: so they read other banks. */
static int odd_pitch(int bytes) { return rounded_up(bytes, 16) | 16; }

/* by_warp: for ldmatrix, with zeros up to a whole step of k. may_be_raw: if no line is aligned. */
static ws_small_operand operand_of(const ws_matrix *x, bool along_k, int64_t size, int64_t k, bool by_warp, bool may_be_raw) {
  const int element = ws_types[x->type].bytes, len = (int)(along_k ? k : size), n_lines = (int)(along_k ? size : k);
  ws_small_operand op = {.step_line = x->ld * element,
                         .step_matrix = x->stride * element,
                         .unit = unit_of(x, len * element, element),
                         .n_lines = n_lines,
                         .line_bytes = len * element};
  op.is_raw = may_be_raw && op.unit < 16 && is_packed(x, len, n_lines);
  if (op.is_raw) {
    op.pitch = op.line_bytes, op.matrix = op.pitch * n_lines;
    return op;
  }
  const int step = by_warp ? WS_SMALL_MMA_K : 1, filled_bytes = rounded_up(len, along_k ? step : 1) * element;
  op.n_filled = rounded_up(n_lines, along_k ? 1 : step), op.n_pieces = (filled_bytes + op.unit - 1) / op.unit;
  op.pitch = along_k || by_warp ? odd_pitch(filled_bytes) : rounded_up(filled_bytes, 16);
  op.matrix = odd_pitch(op.pitch * op.n_filled);
  return op;
}

static bool is_by_warp(const ws_cuda_row *row) { return !row->is_fma; }

static void set_operands(const ws_problem *p, const ws_cuda_row *row, bool may_be_raw, ws_small_args *args) {
  args->a = operand_of(&p->a, p->a.trans, p->m, p->k, is_by_warp(row), may_be_raw);
  args->b = operand_of(&p->b, !p->b.trans, p->n, p->k, is_by_warp(row), may_be_raw);
}

/* An item's, with what a raw one has before its first element, and what a vector at its end reads beyond it. */
static int bytes_of(const ws_small_operand *op, int n_together) {
  return rounded_up(op->matrix * n_together, 16) + (op->is_raw ? 32 : 0);
}

static int stage_bytes(const ws_small_args *args, int n_together) {
  return bytes_of(&args->a, n_together) + bytes_of(&args->b, n_together);
}

/* Which lines the block's threads take: of a piece of each there are so many threads, for lines of a matrix, or of several. */
static void set_steps(ws_small_operand *op, int n_threads) {
  if (op->is_raw) return;
  const int n_threads_of_piece = n_threads / op->n_pieces;
  op->lines_apart = n_threads_of_piece < op->n_filled ? n_threads_of_piece : op->n_filled;
  op->matrices_apart = n_threads_of_piece / op->lines_apart;
  op->by_pieces = ws_divisor_of(op->n_pieces), op->by_lines = ws_divisor_of(op->lines_apart);
}

/* ---- items --------------------------------------------------------------------------------------- */

/* Threads of a matrix. */
static int threads_of(const ws_problem *p, const ws_cuda_row *row) {
  const int owner = is_by_warp(row) ? WS_SMALL_OWNER_warp : WS_SMALL_OWNER_thread;
  return (int)(ws_ceil_div(p->m, row->bm) * ws_ceil_div(p->n, row->bn)) * owner;
}

/* Matrices of an item: of two warps' worth of threads, or of four warps, in little enough memory for several blocks, and so that all SMs have
 * some. */
static int together_of(const ws_problem *p, const ws_cuda_row *row, const ws_small_args *args) {
  enum { THREADS = 64, STAGE_BYTES = 20 << 10, SMS = 132 };
  const int threads = is_by_warp(row) ? 2 * THREADS : THREADS;
  const int most = (int)ws_min(threads / threads_of(p, row), ws_ceil_div(p->batch_count, SMS));
  int together = 1;
  while (together < most && stage_bytes(args, together + 1) <= STAGE_BYTES) together++;
  return together;
}

bool ws_small_may_take(const ws_problem *p) {
  const bool is_small = ws_max(ws_max(p->m, p->n), p->k) <= WS_SMALL_MOST && p->k > 0;
  return is_small && ws_is_plain(p) && p->batch_count < INT32_MAX && !(ws_is_half(p->a.type) && ws_has_steps(p));
}

bool ws_small_takes(const ws_problem *p, const ws_cuda_row *row) {
  ws_small_args args;
  if (!ws_small_may_take(p) || threads_of(p, row) > WS_SMALL_THREADS) return false;
  set_operands(p, row, false, &args);
  return WS_SMALL_STAGES * stage_bytes(&args, 1) <= WS_SMALL_SHARED_BYTES;
}

int64_t ws_small_items(const ws_problem *p, const ws_cuda_row *row) {
  ws_small_args args;
  set_operands(p, row, true, &args);
  return ws_ceil_div(p->batch_count, together_of(p, row, &args));
}

static ws_small_shape make_args(const ws_problem *p, const ws_cuda_row *row, bool may_be_raw, ws_small_args *args) {
  enum { SM_BYTES = 227 << 10, RESERVED = 1 << 10, MOST_BLOCKS = 32 };
  *args = (ws_small_args){.gemm = ws_gemm_args_of(p)};
  set_operands(p, row, may_be_raw, args);
  const int together = together_of(p, row, args), n_pieces = (int)ws_max(args->a.n_pieces, args->b.n_pieces);
  const int n_threads = rounded_up((int)ws_max(together * threads_of(p, row), n_pieces), 32);
  set_steps(&args->a, n_threads), set_steps(&args->b, n_threads);
  args->by_vectors = !args->a.is_raw && !args->b.is_raw;
  args->tiles_m = (int)ws_ceil_div(p->m, row->bm), args->tiles_n = (int)ws_ceil_div(p->n, row->bn);
  args->by_tiles = ws_divisor_of(args->tiles_m * args->tiles_n), args->by_tiles_m = ws_divisor_of(args->tiles_m);
  args->n_batch = (int32_t)p->batch_count, args->n_together = together;
  args->b_at = bytes_of(&args->a, together), args->stage = stage_bytes(args, together);
  args->gemm.grid.n_batch = p->batch_count;
  args->gemm.sched.n_items = (uint32_t)ws_ceil_div(p->batch_count, together);
  const int shared_bytes = WS_SMALL_STAGES * args->stage, by_memory = SM_BYTES / (shared_bytes + RESERVED),
            by_registers = row->blocks * WS_SMALL_THREADS / n_threads;
  return (ws_small_shape){n_threads, shared_bytes, (int)ws_max(1, ws_min(ws_min(by_memory, by_registers), MOST_BLOCKS))};
}

ws_small_shape ws_small_args_of(const ws_problem *p, const ws_cuda_row *row, ws_small_args *args) {
  return make_args(p, row, true, args);
}

/* As if every pointer were a multiple of 16: the kernel looks. */
ws_small_shape ws_small_args_at_places(const ws_problem *p, const ws_cuda_row *row, ws_small_args *args) {
  ws_problem aligned = *p;
  aligned.a.data = aligned.b.data = aligned.c.data = NULL;
  aligned.a.stride = aligned.b.stride = aligned.c.stride = 0;
  return make_args(&aligned, row, false, args);
}

/* ---- time ---------------------------------------------------------------------------------------- */

/* Of an SM's warps, in instructions: fitted to all rows of 460 random batches (H200, 2026-11-25; bench/NOTES.md). */
typedef struct small_terms {
  double launch_us, bytes_per_us;
  double tile, stored, multiplied; /* of a tile; of each element of C; of each of them and each k (of warps: 256 of them, 16 k) */
  double vector_read, element_read; /* of each line of the operands and each k, where all are aligned, and where not */
} small_terms;
static const small_terms by_thread[WS_N_TYPES] =
    {[WSGEMM_F32] = {6.8, 3.3e6, 680, 24, 0.58, 0.64, 3.15}, [WSGEMM_F64] = {6.6, 3.1e6, 94, 74, 0.34, 2.9, 5.5},
     [WSGEMM_C32] = {6.8, 2.9e6, 0, 86, 6.3, 1.03, 0.94},    [WSGEMM_C64] = {6.7, 2.4e6, 0, 0, 23, 0, 0.02},
     [WSGEMM_F16] = {6.2, 2.1e6, 420, 38, 0.99, 1.4, 3.2},   [WSGEMM_BF16] = {6.2, 2.1e6, 420, 38, 0.99, 1.4, 3.2}},
                         by_warp = {5.6, 2.4e6, 150, 290, 15, 0.27, 140};

/* Without gaps between lines and matrices: no row is chosen by pointers and lds. */
static bool is_aligned(const ws_problem *p) {
  const int bytes = ws_types[p->a.type].bytes;
  return (p->a.trans ? p->k : p->m) * bytes % 16 == 0 && (p->b.trans ? p->n : p->k) * bytes % 16 == 0;
}

double ws_small_us(const ws_problem *p, const ws_cuda_row *row, int n_sms) {
  const double scheduled_per_us = 4 * 1750; /* instructions of an SM */
  const bool warps = is_by_warp(row);
  const small_terms *t = warps ? &by_warp : &by_thread[p->a.type];
  const double tiles = (double)(ws_ceil_div(p->m, row->bm) * ws_ceil_div(p->n, row->bn)) / (warps ? 1 : 32);
  const double elements = (double)row->bm * row->bn / (warps ? 256 : 1), lines = (double)(row->bm + row->bn) / (warps ? 32 : 1);
  const double k = warps ? (double)ws_ceil_div(p->k, WS_SMALL_MMA_K) : (double)p->k;
  const double instructions =
      tiles * (t->tile + t->stored * elements +
               k * (t->multiplied * elements + (is_aligned(p) ? t->vector_read : t->element_read) * lines));
  const double batch = (double)p->batch_count, sm_us = batch / n_sms * instructions / scheduled_per_us;
  const double bytes = batch * (double)(p->m * p->k + p->k * p->n + p->m * p->n) * ws_types[p->a.type].bytes;
  return t->launch_us + pow(pow(bytes / t->bytes_per_us, 4) + pow(sm_us, 4), 0.25);
}

/* To which (m n k)^(1/3) they were 1.5 times as fast as the other rows, of 460 random batches: these have better units for large
 * products. Half precision: to which they were faster in the mean, of 36 (2026-11-28; bench/NOTES.md). */
bool ws_small_is_quick(const ws_problem *p) {
  enum { LEAST_BATCH = 16 };
  static const double most[WS_N_TYPES] = {
      [WSGEMM_F32] = 48, [WSGEMM_F64] = 20, [WSGEMM_C32] = 48, [WSGEMM_C64] = 14, [WSGEMM_F16] = 46, [WSGEMM_BF16] = 46};
  return p->batch_count >= LEAST_BATCH && cbrt((double)(p->m * p->n * p->k)) <= most[p->a.type];
}
