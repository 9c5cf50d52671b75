/* level3.c - see level3.h.
 *
 * A structured operand of size n, halved again and again at multiples of the diagonal blocks' size:
 *
 *   system     solve the part that depends on no other, take its product from the other part, solve that
 *   in place   the same backwards: multiply the part that depends on the other, add the product, then the
 *              other part
 *   product    all diagonal blocks in one launch, then blocks beside the diagonal, from the smallest to
 *              the largest, those of a size in one batch */
#include "cuda/host/level3.h"

#include <string.h>

#include "cuda/host/gemm_plan.h"
#include "cuda/host/products.h"
#include "cuda/shared/triangle_args.h"

static const struct {
  int n, add_n;
} block_sizes[] = {[WSGEMM_F32] = {WS_TRIANGLE_N_s, WS_TRIANGLE_ADD_N_s},
                   [WSGEMM_F64] = {WS_TRIANGLE_N_d, WS_TRIANGLE_ADD_N_d},
                   [WSGEMM_C32] = {WS_TRIANGLE_N_c, WS_TRIANGLE_ADD_N_c},
                   [WSGEMM_C64] = {WS_TRIANGLE_N_z, WS_TRIANGLE_ADD_N_z}};

int ws_diagonal_block(wsgemm_type type, bool adds) { return adds ? block_sizes[type].add_n : block_sizes[type].n; }

static int64_t upper_half(int64_t n, int64_t block) { return ws_ceil_div(ws_ceil_div(n, 2), block) * block; }

/* Right-hand sides: the part's rows if the structured operand stands on the left, else its columns. */
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
} level3_call;

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

/* false: there is none. */
static bool find_largest(const level3_call *c, ws_problem *largest) {
  const ws_scale scale = scale_of(c->a->type, NULL, 1, NULL, 1);
  const int64_t half = upper_half(c->n, block_sizes[c->a->type].n);
  if (half < c->n) *largest = product_of(c, half, half, 0, half, &scale);
  return half < c->n;
}

/* Memory for copies is asked for once in a call: here for the largest of its products. */
static wsgemm_status reserve(const level3_call *c) {
  ws_problem largest;
  ws_copies_need need;
  char *memory;
  int64_t bytes;
  if (!find_largest(c, &largest)) return WSGEMM_SUCCESS;
  if (!ws_gemm_most_need(c->x->call, &largest, c->x->device, &c->x->workspace, &need)) return WSGEMM_SUCCESS;
  return ws_executor_copies(c->x, &need, &memory, &bytes);
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

static wsgemm_status run_diagonal(const level3_call *c, ws_triangle_work work, int64_t first, int64_t n, const ws_scale *scale) {
  ws_executor *x = c->x;
  ws_launch_list list = {.n = 0};
  ws_triangle_args args = triangle_args(c, work, first, n, scale);
  if (work != WS_TRIANGLE_ADD && !args.is_lower) count_backwards(&args, bytes_of(c));
  const wsgemm_status status = ws_add_triangle(x->call->h, c->a->type, &args, block_sizes[c->a->type].add_n, x->device, &list);
  return status ? status : ws_execute(x, &list);
}

/* ---- halves ---------------------------------------------------------------------------------- */

typedef struct two_parts {
  int64_t first, n_first;   /* depends on nothing of the other one */
  int64_t second, n_second; /* depends on it */
} two_parts;

/* Whether rows (on the right: columns) depend on those before them. */
static bool is_forward(const level3_call *c) { return (ws_triangle_of(c->a) == WS_LOWER) != c->is_right; }

static two_parts halves_of(const level3_call *c, int64_t at, int64_t n) {
  const int64_t half = upper_half(n, block_sizes[c->a->type].n);
  return is_forward(c) ? (two_parts){at, half, at + half, n - half} : (two_parts){at + half, n - half, at, half};
}

/* is_scaled: these rows have been multiplied by alpha. */
static wsgemm_status solve(const level3_call *c, int64_t at, int64_t n, bool is_scaled) {
  const wsgemm_type type = c->a->type;
  const ws_scale *alpha = is_scaled ? NULL : &c->scale, of_diagonal = scale_of(type, alpha, 1, NULL, 0),
                 of_product = scale_of(type, NULL, -1, alpha, 1);
  if (n <= block_sizes[type].n) return run_diagonal(c, WS_TRIANGLE_SOLVE, at, n, &of_diagonal);
  const two_parts t = halves_of(c, at, n);
  const ws_problem product = product_of(c, t.second, t.n_second, t.first, t.n_first, &of_product);
  wsgemm_status status = solve(c, t.first, t.n_first, is_scaled);
  if (!status) status = ws_run_gemm(c->x, &product);
  return status ? status : solve(c, t.second, t.n_second, true);
}

static wsgemm_status multiply(const level3_call *c, int64_t at, int64_t n) {
  const ws_scale scale = scale_of(c->a->type, &c->scale, 0, NULL, 1);
  if (n <= block_sizes[c->a->type].n) return run_diagonal(c, WS_TRIANGLE_MULTIPLY, at, n, &scale);
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

/* One block, or many alike, on the lower side of the diagonal, and its mirror image; of a triangle the
 * one that is not zero. */
static wsgemm_status run_pair(const level3_call *c, int64_t at, int64_t size, int64_t n_second, int64_t count) {
  const bool is_triangle = ws_is_triangular((ws_structure)c->a->structure);
  wsgemm_status status = WSGEMM_SUCCESS;
  if (!is_triangle || is_forward(c)) status = run_blocks(c, at + size, n_second, at, size, 2 * size, count);
  if (!status && (!is_triangle || !is_forward(c))) status = run_blocks(c, at, size, at + size, n_second, 2 * size, count);
  return status;
}

static wsgemm_status add_product(const level3_call *c) {
  const int64_t smallest = block_sizes[c->a->type].add_n;
  wsgemm_status status = run_diagonal(c, WS_TRIANGLE_ADD, 0, c->n, &c->scale);
  for (int64_t size = smallest; size < c->n && !status; size *= 2) {
    const int64_t count = c->n / (2 * size), left = c->n - count * 2 * size;
    if (count > 0) status = run_pair(c, 0, size, size, count);
    if (!status && left > size) status = run_pair(c, count * 2 * size, size, left - size, 1);
  }
  return status;
}

static level3_call call_of_product(const ws_problem *p) {
  const bool is_right = p->b.structure != WS_GENERAL;
  const ws_matrix *from = is_right ? &p->a : &p->b;
  union {
    const void *given;
    void *wanted;
  } data = {from->data};
  return (level3_call){.a = is_right ? &p->b : &p->a,
                       .is_right = is_right,
                       .n = p->k,
                       .other = is_right ? p->m : p->n,
                       .n_batch = p->batch_count,
                       .from = {data.wanted, from->ld, from->stride},
                       .to = {p->c.data, p->c.ld, p->c.stride},
                       .scale = p->scale,
                       .math = p->math};
}

wsgemm_status ws_run_structured(ws_executor *x, const ws_problem *p) {
  if (ws_product_is_zero(p)) return ws_run_gemm(x, p);
  level3_call c = call_of_product(p);
  c.x = x;
  const wsgemm_status status = reserve(&c);
  if (status) return status;
  return p->in_place ? multiply(&c, 0, c.n) : add_product(&c);
}

/* ---- systems --------------------------------------------------------------------------------- */

static wsgemm_status copy_sides(ws_executor *x, const ws_system *s) {
  ws_launch_list list = {.n = 0};
  const int n_real = ws_types[s->b.type].n_real;
  const ws_triangle_args args = {.n = s->m * n_real,
                                 .n_columns = s->n,
                                 .n_batch = s->batch_count,
                                 .d = s->b.data,
                                 .x = s->x.data,
                                 .of_d = {1, s->b.ld * n_real, s->b.stride * n_real},
                                 .of_x = {1, s->x.ld * n_real, s->x.stride * n_real}};
  const wsgemm_status status = ws_add_copy_lines(x->call->h, s->b.type, &args, x->device, &list);
  return status ? status : ws_execute(x, &list);
}

static level3_call call_of_system(const ws_system *s) {
  const ws_sides sides = {s->x.data, s->x.ld, s->x.stride};
  return (level3_call){.a = &s->a,
                       .is_right = s->is_right,
                       .n = s->is_right ? s->n : s->m,
                       .other = s->is_right ? s->m : s->n,
                       .n_batch = s->batch_count,
                       .from = sides,
                       .to = sides,
                       .scale = s->scale,
                       .math = s->math};
}

wsgemm_status ws_run_system(ws_executor *x, const ws_system *s) {
  level3_call c = call_of_system(s);
  c.x = x;
  wsgemm_status status = reserve(&c);
  if (!status && s->b.data != s->x.data) status = copy_sides(x, s);
  return status ? status : solve(&c, 0, c.n, false);
}

/* ---- what they need -------------------------------------------------------------------------- */

bool ws_largest_of_structured(const ws_problem *p, ws_problem *largest) {
  const level3_call c = call_of_product(p);
  return find_largest(&c, largest);
}

bool ws_largest_of_system(const ws_system *s, ws_problem *largest) {
  const level3_call c = call_of_system(s);
  return find_largest(&c, largest);
}

double ws_structured_bytes(const ws_call *call, const ws_problem *p, const ws_device *device) {
  ws_problem largest;
  return ws_largest_of_structured(p, &largest) ? ws_gpu_workspace_bytes(call, &largest, device) : 0;
}

double ws_system_bytes(const ws_call *call, const ws_system *s, const ws_device *device) {
  ws_problem largest;
  return ws_largest_of_system(s, &largest) ? ws_gpu_workspace_bytes(call, &largest, device) : 0;
}
