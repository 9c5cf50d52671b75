/* level3.c - see level3.h.
 *
 * A structured operand of size n, halved again and again at multiples of the diagonal blocks' size:
 *
 *   system     solve the part that depends on no other, take its product from the other part, solve that
 *   in place   the same backwards: multiply the part that depends on the other, add the product, then the
 *              other part
 *   product    all diagonal blocks in one launch, then blocks beside the diagonal, from the smallest to
 *              the largest, those of a size in one batch
 *
 * Where floats are multiplied by slices, the diagonal blocks of a product are as large as the memory for
 * slices allows: making slices of them reads their one triangle (slices.cuh), and the product passes over
 * the zeros. Rows of double precision read a triangle, or one of a symmetric F64, where it lies, of all of the
 * operand at once. Other products have diagonal blocks of at most COPIED_MOST written out in full. */
#include "cuda/host/level3.h"

#include <math.h>
#include <string.h>

#include "cuda/host/gemm_plan.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/products.h"
#include "cuda/shared/triangle_args.h"

static const struct {
  int n, add_n; /* of products in place, elsewhere */
} block_sizes[] = {[WSGEMM_F32] = {WS_TRIANGLE_N_s, WS_TRIANGLE_ADD_N_s},
                   [WSGEMM_F64] = {WS_TRIANGLE_N_d, WS_TRIANGLE_ADD_N_d},
                   [WSGEMM_C32] = {WS_TRIANGLE_N_c, WS_TRIANGLE_ADD_N_c},
                   [WSGEMM_C64] = {WS_TRIANGLE_N_z, WS_TRIANGLE_ADD_N_z}};

static int64_t upper_half(int64_t n, int64_t block) { return ws_ceil_div(ws_ceil_div(n, 2), block) * block; }

/* Right-hand sides: the part's rows if the structured operand stands on the left, else its
 * columns. */
typedef struct ws_sides {
  void *data;
  int64_t ld, stride;
} ws_sides;

/* One call. X and Y are `other` columns, or (is_right) rows, of n elements each. */
typedef struct level3_call {
  ws_executor *x;
  const ws_matrix *a; /* structured, n x n */
  bool is_right;
  int64_t n, other, n_batch;
  ws_sides from, to; /* the same where it works in place */
  ws_scale scale;
  wsgemm_math math;
  bool in_place;
  int64_t block;            /* small diagonal blocks, at whole multiples of which halves are cut */
  bool lacks_slices;        /* a build without those kernels */
  ws_triangle_work solving; /* of a system */
  int64_t large_n; /* the size of diagonal blocks by one product: by slices, in place, or written out; 0: there are none */
} level3_call;

static void *without_const(const void *given) {
  union {
    const void *given;
    void *wanted;
  } data = {given};
  return data.wanted;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static int bytes_of(const level3_call *c) { return ws_types[c->a->type].bytes; }

/* Rows i .. and columns j .. of op(A), on one side of its diagonal. */
static ws_matrix block_of(const ws_matrix *a, int64_t i, int64_t j) {
  const int64_t p = a->trans ? j : i, q = a->trans ? i : j;
  const bool is_stored = a->stored_upper ? p < q : p > q;
  ws_matrix block = *a;
  block.structure = WS_GENERAL;
  block.data = (const char *)a->data + (is_stored ? p + q * a->ld : q + p * a->ld) * ws_types[a->type].bytes;
  if (!is_stored) block.trans = !a->trans, block.conj = a->conj != (a->structure == WS_HERMITIAN);
  return block;
}

static char *sides_at(const level3_call *c, const ws_sides *s, int64_t first) {
  return (char *)s->data + first * (c->is_right ? s->ld : 1) * bytes_of(c);
}

static ws_matrix operand_at(const level3_call *c, int64_t first) {
  return (ws_matrix){.data = sides_at(c, &c->from, first), .ld = c->from.ld, .stride = c->from.stride, .type = c->a->type};
}

static ws_result result_at(const level3_call *c, int64_t first) {
  return (ws_result){.data = sides_at(c, &c->to, first), .ld = c->to.ld, .stride = c->to.stride, .type = c->a->type};
}

/* alpha (if given, else a real number) and beta (likewise). */
static ws_scale scale_of(wsgemm_type type, const ws_scale *alpha, double real_alpha, const ws_scale *beta, double real_beta) {
  ws_scale s = {.alpha_one = real_alpha == 1,
                .alpha_real = true,
                .beta_one = real_beta == 1,
                .beta_real = true,
                .beta_zero = !beta && real_beta == 0};
  const bool is_double = type == WSGEMM_F64 || type == WSGEMM_C64;
  if (is_double)
    s.alpha.d[0] = real_alpha, s.beta.d[0] = real_beta;
  else
    s.alpha.s[0] = (float)real_alpha, s.beta.s[0] = (float)real_beta;
  if (alpha) {
    memcpy(&s.alpha, &alpha->alpha, sizeof s.alpha);
    s.alpha_one = alpha->alpha_one, s.alpha_real = alpha->alpha_real;
  }
  if (beta) {
    memcpy(&s.beta, &beta->alpha, sizeof s.beta);
    s.beta_one = beta->alpha_one, s.beta_real = beta->alpha_real;
  }
  return s;
}

/* Part `to` (n_to of it) gets its block of the operand times part `from`. */
static ws_problem product_of(const level3_call *c, int64_t to, int64_t n_to, int64_t from, int64_t n_from,
                             const ws_scale *scale) {
  ws_problem p = {.batch_count = c->n_batch, .k = n_from, .scale = *scale, .math = c->math, .c = result_at(c, to)};
  if (c->is_right)
    p.m = c->other, p.n = n_to, p.a = operand_at(c, from), p.b = block_of(c->a, from, to);
  else
    p.m = n_to, p.n = c->other, p.a = block_of(c->a, to, from), p.b = operand_at(c, from);
  return p;
}

/* Whether rows (on the right: columns) depend on those before them. */
static bool is_forward(const level3_call *c) { return (ws_triangle_of(c->a) == WS_LOWER) != c->is_right; }

/* No product of the call needs more memory than this one. false: there is none. */
static bool find_bound(const level3_call *c, ws_problem *largest) {
  const ws_scale scale = scale_of(c->a->type, NULL, 1, NULL, 1);
  const int64_t half = upper_half(c->n, c->block);
  if (half < c->n && is_forward(c)) *largest = product_of(c, half, half, 0, half, &scale);
  if (half < c->n && !is_forward(c)) *largest = product_of(c, 0, half, half, half, &scale);
  return half < c->n;
}

/* ---- large diagonal blocks: by slices, where they lie, or written out ------------------------ */

/* Those written out, or in place, whose right-hand sides are copied. */
enum { COPIED_MOST = 2048 };

/* A copy of right-hand sides that begins with part `at`, n of it, in memory that begins there. */
static ws_sides copy_of(const level3_call *c, int64_t n, char *memory, int64_t *bytes) {
  enum { ALIGN = 256, STEP = 4 };
  const int64_t n_rows = c->is_right ? c->other : n, n_columns = c->is_right ? n : c->other;
  const ws_sides copy = {memory, ws_ceil_div(n_rows, STEP) * STEP, ws_ceil_div(n_rows, STEP) * STEP * n_columns};
  *bytes = ws_ceil_div(copy.stride * c->n_batch * bytes_of(c), ALIGN) * ALIGN;
  return copy;
}

/* The diagonal block at `at`, n of it, of right-hand sides `from`. */
static ws_problem diagonal_product(const level3_call *c, int64_t at, int64_t n, const ws_matrix *from, const ws_scale *scale) {
  ws_problem p = {.batch_count = c->n_batch, .k = n, .scale = *scale, .math = c->math, .c = result_at(c, at)};
  ws_matrix block = *c->a;
  block.data = (const char *)block.data + at * (block.ld + 1) * bytes_of(c);
  p.m = c->is_right ? c->other : n, p.n = c->is_right ? n : c->other;
  p.a = c->is_right ? *from : block, p.b = c->is_right ? block : *from;
  return p;
}

/* Bytes for a block of this size; 0: it is not to be made by slices. */
static double bytes_by_slices(const level3_call *c, int64_t n, const ws_call *call, const ws_device *device) {
  const ws_matrix from = operand_at(c, 0);
  const ws_problem p = diagonal_product(c, 0, n, &from, &c->scale);
  int n_slices;
  double of_a, of_b;
  int64_t of_copy;
  if (c->lacks_slices || ws_gpu_kind_for(call, &p, device, &n_slices) != WS_ROW_SLICED) return 0;
  copy_of(c, n, NULL, &of_copy);
  return ws_bytes_of_form(n_slices)(&p, &of_a, &of_b) + (c->in_place ? (double)of_copy : 0);
}

/* Whether a block of this size is read where it lies. Symmetric and Hermitian ones of C64 are not: reading mirrored blocks costs a tenth of
 * the speed, conjugating them a quarter, writing them out 1 % (bench/NOTES.md). */
static bool is_read_in_place(const level3_call *c, int64_t n, const ws_call *call, const ws_device *device) {
  if (c->a->type == WSGEMM_C64 && !ws_is_triangular((ws_structure)c->a->structure)) return false;
  const ws_matrix from = operand_at(c, 0);
  const ws_problem p = diagonal_product(c, 0, n, &from, &c->scale);
  int n_slices;
  return ws_reads_structure(ws_gpu_kind_for(call, &p, device, &n_slices), c->a->type);
}

/* A diagonal block as a general matrix, in memory that begins there. */
static ws_matrix written_of(const level3_call *c, int64_t n, const char *memory, int64_t *bytes) {
  enum { ALIGN = 256, STEP = 4 };
  ws_matrix x = {.data = memory, .ld = ws_ceil_div(n, STEP) * STEP, .type = c->a->type};
  x.stride = x.ld * n;
  if (ws_is_triangular((ws_structure)c->a->structure))
    x.structure = WS_TRIANGULAR, x.stored_upper = ws_triangle_of(c->a) == WS_UPPER;
  *bytes = ws_ceil_div(x.stride * c->n_batch * bytes_of(c), ALIGN) * ALIGN;
  return x;
}

static double bytes_by_products(const level3_call *c, int64_t n, bool is_written) {
  int64_t of_block, of_copy;
  written_of(c, n, NULL, &of_block), copy_of(c, n, NULL, &of_copy);
  return (is_written ? (double)of_block : 0) + (c->in_place ? (double)of_copy : 0);
}

/* Sets large_n, and says what memory for copies the call needs. false: none. */
static bool find_memory(level3_call *c, const ws_call *call, const ws_device *device, double most, ws_copies_need *need) {
  enum { SLICED_MOST = 4096, STEP = 256 };
  const bool is_read = is_read_in_place(c, c->n, call, device);
  const int64_t most_n = is_read && !c->in_place ? c->n : COPIED_MOST;
  ws_problem largest;
  double bytes = 0;
  c->large_n = 0, *need = (ws_copies_need){0};
  /* In invariant mode the memory for right-hand sides, and so their number, may not decide. */
  for (int64_t count = 1; !call->settings.invariant && c->large_n == 0 && c->n / count > c->block; count *= 2) {
    const int64_t size = ws_min(c->n, ws_ceil_div(ws_ceil_div(c->n, count), STEP) * STEP);
    const double by_slices = bytes_by_slices(c, size, call, device);
    bytes = by_slices > 0 ? by_slices : bytes_by_products(c, size, !is_read);
    if (size <= (by_slices > 0 ? SLICED_MOST : most_n) && bytes <= most) c->large_n = size;
  }
  if (c->large_n < c->n && find_bound(c, &largest)) ws_gemm_most_need(call, &largest, device, most, need);
  if (c->large_n > 0) need->whole = ws_max(need->whole, (int64_t)bytes), need->least = ws_max(need->least, (int64_t)bytes);
  return need->whole > 0;
}

/* Memory for copies is asked for once in a call. */
static wsgemm_status reserve(level3_call *c, bool is_product) {
  ws_executor *x = c->x;
  const double most = ws_most_copies_bytes(&x->workspace, x->device);
  ws_copies_need need = {0};
  ws_problem largest;
  CUresult result;
  char *memory;
  int64_t bytes;
  c->lacks_slices = x->device->cc != WS_BY_MAP_CC || !ws_device_plain_kernel(x->device, WS_KERNEL_STRUCTURED_MAXIMA, &result);
  if (c->lacks_slices && c->solving == WS_TRIANGLE_SLICED)
    c->solving = WS_TRIANGLE_SOLVE, c->block = ws_solve_n(x->device, c->a->type);
  const bool has_need = is_product ? find_memory(c, x->call, x->device, most, &need)
                                   : find_bound(c, &largest) && ws_gemm_most_need(x->call, &largest, x->device, most, &need);
  return has_need ? ws_executor_copies(x, &need, &memory, &bytes) : WSGEMM_SUCCESS;
}

static wsgemm_status copy_lines(const level3_call *c, int64_t n, const ws_sides *from, const ws_sides *to) {
  ws_launch_list list = {.n = 0};
  const wsgemm_type type = c->a->type;
  const int n_real = ws_types[type].n_real;
  const ws_triangle_args args = {.n = (c->is_right ? c->other : n) * n_real,
                                 .n_columns = c->is_right ? n : c->other,
                                 .n_batch = c->n_batch,
                                 .d = from->data,
                                 .x = to->data,
                                 .of_d = {1, from->ld * n_real, from->stride * n_real},
                                 .of_x = {1, to->ld * n_real, to->stride * n_real}};
  const wsgemm_status status = ws_add_copy_lines(c->x->call->h, type, &args, c->x->device, &list);
  return status ? status : ws_execute(c->x, &list);
}

static wsgemm_status write_out(const level3_call *c, int64_t at, int64_t n, const ws_matrix *to) {
  const ws_matrix *a = c->a;
  ws_launch_list list = {.n = 0};
  const ws_triangle_args args = {.work = WS_TRIANGLE_ADD,
                                 .structure = a->structure,
                                 .is_lower = a->trans == a->stored_upper,
                                 .conj = a->conj,
                                 .n = n,
                                 .n_batch = c->n_batch,
                                 .d = (const char *)a->data + at * (a->ld + 1) * bytes_of(c),
                                 .y = without_const(to->data),
                                 .of_d = {a->trans ? a->ld : 1, a->trans ? 1 : a->ld, a->stride},
                                 .of_y = {1, to->ld, to->stride}};
  const wsgemm_status status = ws_add_write_out(c->x->call->h, a->type, &args, c->x->device, &list);
  return status ? status : ws_execute(c->x, &list);
}

static wsgemm_status run_large_diagonal(const level3_call *c, int64_t at, int64_t n, const ws_scale *scale) {
  ws_executor *x = c->x;
  const bool by_slices = bytes_by_slices(c, n, x->call, x->device) > 0;
  const bool is_written = !by_slices && !is_read_in_place(c, n, x->call, x->device);
  const ws_copies_need none = {0};
  ws_matrix from = operand_at(c, at), written;
  char *memory = NULL;
  int64_t bytes = 0, held = 0;
  wsgemm_status status = WSGEMM_SUCCESS;
  if (c->in_place || is_written) status = ws_executor_copies(x, &none, &memory, &bytes);
  if (!status && c->in_place) {
    const ws_sides own = {sides_at(c, &c->from, at), c->from.ld, c->from.stride}, copy = copy_of(c, n, memory, &held);
    status = copy_lines(c, n, &own, &copy);
    from.data = copy.data, from.ld = copy.ld, from.stride = copy.stride;
  }
  ws_problem p = diagonal_product(c, at, n, &from, scale);
  if (!status && is_written) {
    written = written_of(c, n, memory + held, &bytes);
    status = write_out(c, at, n, &written);
    *(c->is_right ? &p.b : &p.a) = written;
    held += bytes;
  }
  x->n_held = held;
  if (!status) status = ws_run_gemm(x, &p);
  x->n_held = 0;
  return status;
}

/* ---- diagonal blocks ------------------------------------------------------------------------- */

static ws_steps steps_of(const level3_call *c, const ws_sides *s) {
  return (ws_steps){c->is_right ? s->ld : 1, c->is_right ? 1 : s->ld, s->stride};
}

/* In the kernel's terms: the transpose of what stands on the right. */
static ws_triangle_args triangle_args(const level3_call *c, ws_triangle_work work, int64_t first, int64_t n,
                                      const ws_scale *scale) {
  const ws_matrix *a = c->a;
  const bool by_rows = a->trans == c->is_right; /* neighbours in memory are rows of D */
  ws_triangle_args args = {.work = work,
                           .structure = a->structure,
                           .is_lower = by_rows != a->stored_upper,
                           .conj = a->conj,
                           .d_vectors =
                               ws_is_aligned(a->data, a->ld, a->stride, bytes_of(c), 16) && first * bytes_of(c) % 16 == 0,
                           .n = n,
                           .n_columns = c->other,
                           .n_batch = c->n_batch,
                           .d = (const char *)a->data + first * (a->ld + 1) * bytes_of(c),
                           .x = sides_at(c, &c->from, first),
                           .y = sides_at(c, &c->to, first),
                           .of_d = {by_rows ? 1 : a->ld, by_rows ? a->ld : 1, a->stride},
                           .of_x = steps_of(c, &c->from),
                           .of_y = steps_of(c, &c->to),
                           .beta_zero = scale->beta_zero};
  memcpy(&args.alpha, &scale->alpha, sizeof args.alpha);
  memcpy(&args.beta, &scale->beta, sizeof args.beta);
  return args;
}

/* Rows counted from the last one make a lower triangle of an upper one. */
static void count_backwards(ws_triangle_args *args, int bytes) {
  args->d = (const char *)args->d + (args->n - 1) * (args->of_d.row + args->of_d.column) * bytes;
  args->x = (char *)args->x + (args->n - 1) * args->of_x.row * bytes;
  args->of_d.row = -args->of_d.row, args->of_d.column = -args->of_d.column, args->of_x.row = -args->of_x.row;
  args->is_lower = true;
}

/* A launch counts groups of right-hand sides in 32 bits, so it takes so many products of a batch. */
static wsgemm_status run_diagonal(const level3_call *c, ws_triangle_work work, int64_t first, int64_t n, const ws_scale *scale) {
  const int64_t most = ws_max(1, WS_SCHED_MAX_ITEMS / ws_ceil_div(c->other, WS_SOLVE_COLUMNS)), bytes = bytes_of(c);
  ws_triangle_args args = triangle_args(c, work, first, n, scale);
  if (work != WS_TRIANGLE_ADD && !args.is_lower) count_backwards(&args, bytes_of(c));
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int64_t done = 0; done < c->n_batch && !status; done += most) {
    ws_launch_list list = {.n = 0};
    ws_triangle_args part = args;
    part.n_batch = ws_min(most, c->n_batch - done), part.d = (const char *)args.d + done * args.of_d.stride * bytes;
    part.x = (char *)args.x + done * args.of_x.stride * bytes, part.y = (char *)args.y + done * args.of_y.stride * bytes;
    status = ws_add_triangle(c->x->call->h, c->a->type, &part, block_sizes[c->a->type].add_n, c->x->device, &list);
    if (!status) status = ws_execute(c->x, &list);
  }
  return status;
}

/* ---- halves ---------------------------------------------------------------------------------- */

typedef struct two_parts {
  int64_t first, n_first;   /* depends on nothing of the other one */
  int64_t second, n_second; /* depends on it */
} two_parts;

static two_parts halves_of(const level3_call *c, int64_t at, int64_t n) {
  const int64_t half = upper_half(n, c->block);
  return is_forward(c) ? (two_parts){at, half, at + half, n - half} : (two_parts){at + half, n - half, at, half};
}

/* The largest product of the halves, and of halves of the upper one, which is no smaller than the
 * other. false: there is none. */
static bool find_largest(const level3_call *c, ws_problem *largest) {
  const ws_scale scale = scale_of(c->a->type, NULL, 1, NULL, 1);
  int64_t most = 0;
  for (int64_t n = c->n; n > c->block; n = upper_half(n, c->block)) {
    const two_parts t = halves_of(c, 0, n);
    if (t.n_first * t.n_second <= most) continue;
    most = t.n_first * t.n_second;
    *largest = product_of(c, t.second, t.n_second, t.first, t.n_first, &scale);
  }
  return most > 0;
}

/* is_scaled: these rows have been multiplied by alpha. */
static wsgemm_status solve(const level3_call *c, int64_t at, int64_t n, bool is_scaled) {
  const wsgemm_type type = c->a->type;
  const ws_scale *alpha = is_scaled ? NULL : &c->scale, of_diagonal = scale_of(type, alpha, 1, NULL, 0),
                 of_product = scale_of(type, NULL, -1, alpha, 1);
  if (n <= c->block) return run_diagonal(c, c->solving, at, n, &of_diagonal);
  const two_parts t = halves_of(c, at, n);
  const ws_problem product = product_of(c, t.second, t.n_second, t.first, t.n_first, &of_product);
  wsgemm_status status = solve(c, t.first, t.n_first, is_scaled);
  if (!status) status = ws_run_gemm(c->x, &product);
  return status ? status : solve(c, t.second, t.n_second, true);
}

static wsgemm_status multiply(const level3_call *c, int64_t at, int64_t n) {
  const ws_scale scale = scale_of(c->a->type, &c->scale, 0, NULL, 1), of_diagonal = scale_of(c->a->type, &c->scale, 0, NULL, 0);
  if (n <= c->block) return run_diagonal(c, WS_TRIANGLE_MULTIPLY, at, n, &of_diagonal);
  if (n <= c->large_n) return run_large_diagonal(c, at, n, &of_diagonal);
  const two_parts t = halves_of(c, at, n);
  const ws_problem product = product_of(c, t.second, t.n_second, t.first, t.n_first, &scale);
  wsgemm_status status = multiply(c, t.second, t.n_second);
  if (!status) status = ws_run_gemm(c->x, &product);
  return status ? status : multiply(c, t.first, t.n_first);
}

/* ---- products elsewhere ---------------------------------------------------------------------- */

/* The blocks (to, from), n_to x n_from, that follow each other `step` apart along the diagonal. */
static wsgemm_status run_blocks(const level3_call *c, int64_t to, int64_t n_to, int64_t from, int64_t n_from, int64_t step,
                                int64_t count) {
  const ws_scale scale = scale_of(c->a->type, &c->scale, 0, NULL, 1);
  ws_problem p = product_of(c, to, n_to, from, n_from, &scale);
  if (c->n_batch == 1 && count > 1) {
    const int64_t of_a = step * (c->a->ld + 1);
    p.batch_count = count, p.c.stride = step * (c->is_right ? c->to.ld : 1);
    p.a.stride = c->is_right ? step * c->from.ld : of_a, p.b.stride = c->is_right ? of_a : step;
    return ws_run_gemm(c->x, &p);
  }
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int64_t i = 0; i < count && !status; i++) {
    p = product_of(c, to + i * step, n_to, from + i * step, n_from, &scale);
    status = ws_run_gemm(c->x, &p);
  }
  return status;
}

/* One block, or many alike, on the lower side of the diagonal, and its mirror image; of a
 * triangle the one that is not zero. */
static wsgemm_status run_pair(const level3_call *c, int64_t at, int64_t size, int64_t n_second, int64_t count) {
  const bool is_triangle = ws_is_triangular((ws_structure)c->a->structure);
  wsgemm_status status = WSGEMM_SUCCESS;
  if (!is_triangle || is_forward(c)) status = run_blocks(c, at + size, n_second, at, size, 2 * size, count);
  if (!status && (!is_triangle || !is_forward(c))) status = run_blocks(c, at, size, at + size, n_second, 2 * size, count);
  return status;
}

/* Blocks beside the diagonal of part `at`, n of it, that has been cut into diagonal blocks so
 * large. */
static wsgemm_status add_beside(const level3_call *c, int64_t at, int64_t n, int64_t smallest) {
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int64_t size = smallest; size < n && !status; size *= 2) {
    const int64_t count = n / (2 * size), left = n - count * 2 * size;
    if (count > 0) status = run_pair(c, at, size, size, count);
    if (!status && left > size) status = run_pair(c, at + count * 2 * size, size, left - size, 1);
  }
  return status;
}

static wsgemm_status add_part(const level3_call *c, int64_t at, int64_t n) {
  if (n > c->block && n <= c->large_n) return run_large_diagonal(c, at, n, &c->scale);
  const wsgemm_status status = run_diagonal(c, WS_TRIANGLE_ADD, at, n, &c->scale);
  return status ? status : add_beside(c, at, n, c->block);
}

static wsgemm_status add_product(const level3_call *c) {
  const int64_t size = c->large_n > 0 ? c->large_n : c->n;
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int64_t at = 0; at < c->n && !status; at += size) status = add_part(c, at, ws_min(size, c->n - at));
  return status ? status : add_beside(c, 0, c->n, size);
}

static level3_call call_of_product(const ws_problem *p) {
  const bool is_right = p->b.structure != WS_GENERAL;
  const ws_matrix *from = is_right ? &p->a : &p->b;
  return (level3_call){.a = is_right ? &p->b : &p->a,
                       .is_right = is_right,
                       .n = p->k,
                       .other = is_right ? p->m : p->n,
                       .n_batch = p->batch_count,
                       .from = {without_const(from->data), from->ld, from->stride},
                       .to = {p->c.data, p->c.ld, p->c.stride},
                       .scale = p->scale,
                       .math = p->math,
                       .in_place = p->in_place,
                       .block = p->in_place ? block_sizes[p->a.type].n : block_sizes[p->a.type].add_n};
}

wsgemm_status ws_run_structured(ws_executor *x, const ws_problem *p) {
  if (ws_product_is_zero(p)) return ws_run_gemm(x, p);
  level3_call c = call_of_product(p);
  c.x = x;
  const wsgemm_status status = reserve(&c, true);
  if (status) return status;
  return p->in_place ? multiply(&c, 0, c.n) : add_product(&c);
}

/* ---- systems --------------------------------------------------------------------------------- */

/* Where products of its size are made by slices, and the other kernel's blocks of 16 right-hand sides do not all have an SM of
 * their own: until then it is as quick. */
static bool solves_by_slices(const ws_call *call, const ws_system *s, const ws_device *device) {
  const ws_problem like = {.m = s->m,
                           .n = s->n,
                           .k = s->is_right ? s->n : s->m,
                           .batch_count = s->batch_count,
                           .scale = s->scale,
                           .a = s->is_right ? s->b : s->a,
                           .b = s->is_right ? s->a : s->b,
                           .c = s->x,
                           .math = s->math};
  const int64_t other = s->is_right ? s->m : s->n;
  return s->a.type == WSGEMM_F32 && ws_gpu_slices_to_pack(call, &like, device) > 0 &&
         (double)ws_ceil_div(other, WS_SOLVE_COLUMNS) * (double)s->batch_count > device->n_sms;
}

static level3_call call_of_system(const ws_call *call, const ws_system *s, const ws_device *device) {
  const ws_sides sides = {s->x.data, s->x.ld, s->x.stride};
  const bool by_slices = solves_by_slices(call, s, device);
  return (level3_call){.a = &s->a,
                       .is_right = s->is_right,
                       .n = s->is_right ? s->n : s->m,
                       .other = s->is_right ? s->m : s->n,
                       .n_batch = s->batch_count,
                       .from = sides,
                       .to = sides,
                       .scale = s->scale,
                       .math = s->math,
                       .solving = by_slices ? WS_TRIANGLE_SLICED : WS_TRIANGLE_SOLVE,
                       .block = by_slices ? WS_SLICED_SOLVE_N : ws_solve_n(device, s->a.type)};
}

wsgemm_status ws_run_system(ws_executor *x, const ws_system *s) {
  level3_call c = call_of_system(x->call, s, x->device);
  c.x = x;
  const ws_sides given = {without_const(s->b.data), s->b.ld, s->b.stride};
  wsgemm_status status = reserve(&c, false);
  if (!status && s->b.data != s->x.data) status = copy_lines(&c, c.n, &given, &c.to);
  return status ? status : solve(&c, 0, c.n, false);
}

/* ---- what they are cut into, and need -------------------------------------------------------- */

ws_level3_cut ws_cut_structured(const ws_call *call, const ws_problem *p, const ws_device *device, double most) {
  level3_call c = call_of_product(p);
  ws_copies_need need;
  find_memory(&c, call, device, most, &need);
  ws_level3_cut cut = {.block = c.large_n > 0 ? c.large_n : ws_min(c.n, c.block), .bytes = (double)need.whole};
  if (c.large_n > 0) {
    const ws_matrix from = operand_at(&c, 0);
    cut.product = diagonal_product(&c, 0, c.large_n, &from, &c.scale);
    cut.has_product = true, cut.by_slices = bytes_by_slices(&c, c.large_n, call, device) > 0;
    cut.is_read_in_place = !cut.by_slices && is_read_in_place(&c, c.large_n, call, device);
    cut.is_written_out = !cut.by_slices && !cut.is_read_in_place;
    int64_t bytes;
    if (cut.is_written_out) *(c.is_right ? &cut.product.b : &cut.product.a) = written_of(&c, c.large_n, NULL, &bytes);
  } else {
    cut.has_product = find_largest(&c, &cut.product);
  }
  return cut;
}

ws_level3_cut ws_cut_system(const ws_call *call, const ws_system *s, const ws_device *device) {
  const level3_call c = call_of_system(call, s, device);
  ws_level3_cut cut = {.block = ws_min(c.n, c.block)};
  cut.has_product = find_largest(&c, &cut.product);
  if (cut.has_product) cut.bytes = ws_gpu_workspace_bytes(call, &cut.product, device);
  return cut;
}
