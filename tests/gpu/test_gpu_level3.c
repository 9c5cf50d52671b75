/* test_gpu_level3.c - Level 3 on device memory: every routine and type at the edges of tiles,
 * diagonal blocks and halves, against dense references: exact on small whole numbers, within the
 * contract's bounds on others; what is not to be read is NaN, what is not to be written keeps
 * its bits; strides of batches, in place and not, graphs, policies, and triangles of any
 * scaling. */
#include "gpu.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long double complex number;
static struct check_random rng;

/* One call, and what its result must be. */
struct level3_case {
  wsgemm_level3_desc d;
  bool whole;
  int pad;          /* of lds and strides */
  double workspace; /* share of what the call asks for that the handle gets; 0: the library's own */
  double scaling;   /* of trsm's triangle: rows and columns by powers of two up to this exponent */
  bool beta_zero;   /* and C is NaN */
  bool alpha_zero;  /* and A is NULL, and B where it is not written */
  bool b_is_a;
};

/* A matrix as it lies in host and device memory, between guards; and what it means. */
struct operand {
  int64_t rows, columns, ld, stride, batch;
  bool by_rows; /* row-major */
  wsgemm_type type;
  size_t bytes;
  unsigned char *host, *device;
  number *value; /* rows x columns, column by column, of each product */
};
enum { GUARD = 64 };

static number rounded(wsgemm_type type, number x) {
  const bool wide = type_is_double(type);
  const long double re = wide ? (double)creall(x) : (float)creall(x), im = wide ? (double)cimagl(x) : (float)cimagl(x);
  return re + (type_is_complex(type) ? im * I : 0);
}

static void put(const struct operand *o, int64_t at, number x) {
  double wide[2] = {(double)creall(x), (double)cimagl(x)};
  float narrow[2] = {(float)wide[0], (float)wide[1]};
  memcpy(o->host + ((size_t)at + GUARD) * type_bytes(o->type), type_is_double(o->type) ? (void *)wide : (void *)narrow,
         type_bytes(o->type));
}

static number get(const struct operand *o, const unsigned char *from, int64_t at) {
  double wide[2] = {0};
  float narrow[2] = {0};
  memcpy(type_is_double(o->type) ? (void *)wide : (void *)narrow, from + ((size_t)at + GUARD) * type_bytes(o->type),
         type_bytes(o->type));
  return type_is_double(o->type) ? wide[0] + wide[1] * I : narrow[0] + narrow[1] * I;
}

static number drawn(wsgemm_type type, bool whole) {
  const number re = whole ? (long double)check_random_in(&rng, -2, 2) : check_random_unit(&rng),
               im = whole ? (long double)check_random_in(&rng, -2, 2) : check_random_unit(&rng);
  return rounded(type, re + (type_is_complex(type) ? im * I : 0));
}

static int64_t place_of(const struct operand *o, int64_t b, int64_t i, int64_t j) {
  return b * o->stride + (o->by_rows ? i * o->ld + j : j * o->ld + i);
}
static number *value_of(const struct operand *o, int64_t b, int64_t i, int64_t j) {
  return &o->value[(b * o->columns + j) * o->rows + i];
}

/* All NaN in memory but for its elements. */
static struct operand operand_new(const struct level3_case *t, int64_t rows, int64_t columns) {
  const wsgemm_type type = t->d.type;
  const int64_t batch = t->d.batch_count;
  const bool by_rows = t->d.layout == WSGEMM_ROW_MAJOR, whole = t->whole;
  struct operand o = {.rows = rows, .columns = columns, .batch = batch, .by_rows = by_rows, .type = type};
  o.ld = (by_rows ? columns : rows) + t->pad;
  if (o.ld == 0) o.ld = 1;
  o.stride = o.ld * (by_rows ? rows : columns) + t->pad;
  if (o.stride == 0) o.stride = 1;
  o.bytes = ((size_t)(o.stride * batch) + 2 * GUARD) * type_bytes(type);
  o.host = malloc(o.bytes);
  o.value = calloc((size_t)(rows * columns * batch), sizeof *o.value);
  REQUIRE(o.host && o.value, "memory");
  memset(o.host, 0xff, o.bytes);
  for (int64_t b = 0; b < batch; b++)
    for (int64_t j = 0; j < columns; j++)
      for (int64_t i = 0; i < rows; i++) {
        *value_of(&o, b, i, j) = drawn(type, whole);
        put(&o, place_of(&o, b, i, j), *value_of(&o, b, i, j));
      }
  return o;
}

static void operand_free(struct operand *o) { free(o->host), free(o->value), gpu_free(o->device); }
static void upload(struct operand *o) { o->device = gpu_copy(o->host, o->bytes); }
static void *first_of(const struct operand *o) { return o->device + GUARD * type_bytes(o->type); }

/* Its other triangle (and of a unit triangle the diagonal) is NaN in memory; `value` becomes
 * what it stands for. */
enum filling { SYMMETRIC, HERMITIAN, TRIANGULAR };
static void keep_triangle(struct operand *o, enum filling filling, bool upper, bool unit) {
  for (int64_t b = 0; b < o->batch; b++)
    for (int64_t j = 0; j < o->columns; j++)
      for (int64_t i = 0; i < o->rows; i++) {
        number *x = value_of(o, b, i, j);
        const bool is_stored = i == j || (i < j) == upper;
        if (!is_stored || (unit && i == j)) put(o, place_of(o, b, i, j), NAN + NAN * I);
        if (i == j && unit) *x = 1;
        if (i == j && filling == HERMITIAN) *x = creall(*x);
        if (!is_stored)
          *x = filling == TRIANGULAR ? 0 : filling == HERMITIAN ? conjl(*value_of(o, b, j, i)) : *value_of(o, b, j, i);
      }
}

static number op_at(const struct operand *o, int64_t b, wsgemm_op op, int64_t i, int64_t j) {
  const bool trans = op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS, conj = op == WSGEMM_CONJ_TRANS || op == WSGEMM_CONJ_NO_TRANS;
  const number x = trans ? *value_of(o, b, j, i) : *value_of(o, b, i, j);
  return conj ? conjl(x) : x;
}

static long double size1(number x) { return fabsl(creall(x)) + fabsl(cimagl(x)); }
static long double unit_of(wsgemm_type type) { return type_is_double(type) ? 0x1p-53L : 0x1p-24L; }

static bool is_her(wsgemm_routine r) { return r == WSGEMM_HEMM || r == WSGEMM_HERK || r == WSGEMM_HER2K; }
static bool has_region(wsgemm_routine r) {
  return r == WSGEMM_SYRK || r == WSGEMM_HERK || r == WSGEMM_SYR2K || r == WSGEMM_HER2K || r == WSGEMM_GEMMTR;
}

static void set_scalar(wsgemm_type type, wsgemm_scalar *s, number x) {
  const double wide[2] = {(double)creall(x), (double)cimagl(x)};
  const float narrow[2] = {(float)wide[0], (float)wide[1]};
  memcpy(s, type_is_double(type) ? (const void *)wide : (const void *)narrow, type_is_double(type) ? sizeof wide : sizeof narrow);
}

static const char *const names[] = {"", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "trsm"};
static void describe(const struct level3_case *t, char text[200]) {
  const wsgemm_level3_desc *d = &t->d;
  snprintf(text, 200, "%c%s side %d uplo %d ops %d %d diag %d m %lld n %lld k %lld batch %lld math %d pad %d%s%s%s workspace %g",
           type_letter(d->type), names[d->routine], d->side, d->uplo, d->transa, d->transb, d->diag, (long long)d->m,
           (long long)d->n, (long long)d->k, (long long)d->batch_count, d->math, t->pad, t->whole ? " whole" : "",
           d->c ? " elsewhere" : "", d->layout == WSGEMM_ROW_MAJOR ? " row-major" : "", t->workspace);
}

/* Of products: both elements rounded to 11 bits. */
static const long double tf32_share = 0x1p-10L + 0x1p-22L;

/* C, element by element: expected value and bound. false: it keeps its bits. */
static bool expected(const struct level3_case *t, const struct operand *a, const struct operand *b, const struct operand *c,
                     number alpha, number beta, int64_t p, int64_t i, int64_t j, number *sum, long double *bound) {
  const wsgemm_level3_desc *d = &t->d;
  const wsgemm_routine r = d->routine;
  if (has_region(r) && i != j && (i < j) != (d->uplo == WSGEMM_UPPER)) return false;
  const bool left = d->side == WSGEMM_LEFT, her = is_her(r);
  const int64_t k = has_region(r) ? d->k : left ? d->m : d->n;
  const wsgemm_op turned = her ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS;
  const bool no_trans = d->transa == WSGEMM_NO_TRANS;
  number total = 0, twin = 0;
  long double size = 0;
  for (int64_t q = 0; q < k; q++) {
    number x = 0, y = 0;
    if (r == WSGEMM_SYMM || r == WSGEMM_HEMM) {
      x = left ? *value_of(a, p, i, q) : *value_of(b, p, i, q), y = left ? *value_of(b, p, q, j) : *value_of(a, p, q, j);
    } else if (r == WSGEMM_TRMM) {
      x = left ? op_at(a, p, d->transa, i, q) : *value_of(b, p, i, q);
      y = left ? *value_of(b, p, q, j) : op_at(a, p, d->transa, q, j);
    } else if (r == WSGEMM_GEMMTR) {
      x = op_at(a, p, d->transa, i, q), y = op_at(b, p, d->transb, q, j);
    } else {
      const struct operand *other = r == WSGEMM_SYR2K || r == WSGEMM_HER2K ? b : a;
      x = no_trans ? *value_of(a, p, i, q) : op_at(a, p, turned, i, q);
      y = no_trans ? op_at(other, p, turned, q, j) : *value_of(other, p, q, j);
      if (other == b) {
        const number v = no_trans ? *value_of(b, p, i, q) : op_at(b, p, turned, i, q),
                     w = no_trans ? op_at(a, p, turned, q, j) : *value_of(a, p, q, j);
        twin += v * w, size += size1(v) * size1(w);
      }
    }
    total += x * y, size += size1(x) * size1(y);
  }
  number old = c ? *value_of(c, p, i, j) : 0;
  if (her && has_region(r) && i == j) old = creall(old);
  *sum = alpha * total + (her ? conjl(alpha) : alpha) * twin + (beta == 0 ? 0 : beta * old);
  if (her && has_region(r) && i == j) *sum = creall(*sum);
  const bool is_tf32 = d->math == WSGEMM_MATH_TF32 && !type_is_double(d->type), is_twice = r == WSGEMM_SYR2K || r == WSGEMM_HER2K;
  const long double length = (long double)(is_twice ? 2 * k : k) * (is_tf32 && type_is_complex(d->type) ? 2 : 1);
  *bound = (length + 2) * unit_of(d->type) * (size1(alpha) * size + size1(beta) * (beta == 0 ? 0 : size1(old)));
  if (is_tf32) *bound += tf32_share * size1(alpha) * size;
  return true;
}

/* Of columns, every so many are looked at: the reference takes long. */
static int64_t column_step = 1;
static int64_t first_column(void) { return check_random_in(&rng, 0, column_step - 1); }

static void check_product(const struct level3_case *t, const struct operand *a, const struct operand *b, const struct operand *c,
                          const struct operand *result, const unsigned char *after, number alpha, number beta) {
  char text[200];
  describe(t, text);
  int64_t n_wrong = 0;
  for (int64_t p = 0; p < result->batch; p++)
    for (int64_t j = first_column(); j < result->columns; j += column_step)
      for (int64_t i = 0; i < result->rows; i++) {
        number sum;
        long double bound;
        const size_t at = ((size_t)place_of(result, p, i, j) + GUARD) * type_bytes(result->type);
        if (!expected(t, a, b, c, alpha, beta, p, i, j, &sum, &bound)) {
          n_wrong += memcmp(after + at, result->host + at, type_bytes(result->type)) != 0;
          continue;
        }
        const number x = get(result, after, place_of(result, p, i, j));
        const long double difference = fmaxl(fabsl(creall(x - sum)), fabsl(cimagl(x - sum)));
        const bool is_right = t->whole ? difference == 0 : difference <= bound;
        if (!is_right && n_wrong++ == 0)
          CHECK(false, "%s: (%lld, %lld) of %lld: %Lg %Lg, not %Lg %Lg, bound %Lg", text, (long long)i, (long long)j,
                (long long)p, creall(x), cimagl(x), creall(sum), cimagl(sum), bound);
      }
  CHECK(n_wrong == 0, "%s: %lld elements", text, (long long)n_wrong);
}

/* |alpha B - op(A) X| <= 8 gamma_{k+2} |op(A)| |X| */
static void check_solution(const struct level3_case *t, const struct operand *a, const struct operand *b,
                           const struct operand *result, const unsigned char *after, number alpha) {
  const wsgemm_level3_desc *d = &t->d;
  const bool left = d->side == WSGEMM_LEFT;
  const int64_t k = left ? d->m : d->n;
  char text[200];
  describe(t, text);
  int64_t n_wrong = 0;
  long double worst = 0;
  for (int64_t p = 0; p < result->batch; p++)
    for (int64_t j = first_column(); j < result->columns; j += column_step)
      for (int64_t i = 0; i < result->rows; i++) {
        number rest = alpha * *value_of(b, p, i, j);
        long double size = 0;
        for (int64_t q = 0; q < k; q++) {
          const number f = left ? op_at(a, p, d->transa, i, q) : op_at(a, p, d->transa, q, j),
                       x = get(result, after, left ? place_of(result, p, q, j) : place_of(result, p, i, q));
          if (f == 0) continue;
          rest -= f * x, size += size1(f) * size1(x);
        }
        const bool is_tf32 = d->math == WSGEMM_MATH_TF32 && !type_is_double(d->type);
        const long double bound = 8 * (long double)(k + 2) * unit_of(d->type) * size + (is_tf32 ? tf32_share * size : 0),
                          wrong = fmaxl(fabsl(creall(rest)), fabsl(cimagl(rest)));
        if (!(wrong <= (t->whole ? 0 : bound))) n_wrong++;
        if (bound > 0) worst = fmaxl(worst, wrong / bound);
      }
  CHECK(n_wrong == 0, "%s: %lld elements, worst %Lg of the bound", text, (long long)n_wrong, worst);
}

static void check_guards(const struct level3_case *t, const struct operand *o, unsigned char *after) {
  char text[200];
  describe(t, text);
  const int64_t n_lines = o->by_rows ? o->rows : o->columns, length = o->by_rows ? o->columns : o->rows;
  for (int64_t p = 0; p < o->batch; p++)
    for (int64_t line = 0; line < n_lines; line++) {
      const size_t at = ((size_t)(p * o->stride + line * o->ld) + GUARD) * type_bytes(o->type);
      memcpy(after + at, o->host + at, (size_t)length * type_bytes(o->type));
    }
  CHECK(memcmp(after, o->host, o->bytes) == 0, "%s: written beside the matrix", text);
}

/* Rows and columns of a triangle by powers of two; a diagonal that keeps the solution's size. */
static void shape_triangle(struct operand *a, const struct level3_case *t) {
  for (int64_t p = 0; p < a->batch; p++)
    for (int64_t j = 0; j < a->columns; j++)
      for (int64_t i = 0; i < a->rows; i++) {
        number x = *value_of(a, p, i, j);
        if (t->whole && i == j) x = check_random_in(&rng, 0, 1) ? 1 : -2;
        if (!t->whole && i == j) x = x + (creall(x) < 0 ? -1 : 1);
        if (!t->whole && i != j) x *= 4 / (long double)(a->rows + 4);
        if (t->scaling > 0)
          x *= exp2l(floorl(t->scaling * sinl((long double)(7 * i)))) * exp2l(floorl(t->scaling * cosl((long double)(5 * j))));
        *value_of(a, p, i, j) = rounded(a->type, x);
        put(a, place_of(a, p, i, j), *value_of(a, p, i, j));
      }
}

static bool has_b(wsgemm_routine r) { return r != WSGEMM_SYRK && r != WSGEMM_HERK; }

/* Where only bits count: the reference takes long. */
static bool checks_result = true;

/* Memory of the suite's own that a call works in, with a guard behind it. */
struct lent {
  unsigned char *memory;
  size_t bytes;
};
enum { LENT_GUARD = 4096, PATTERN = 0xa5 };

static struct lent lend(wsgemm_handle *h, const struct level3_case *t) {
  enum { ALIGN = 256 };
  struct lent lent = {NULL, 0};
  char text[200];
  describe(t, text);
  if (t->workspace == 0) return lent;
  size_t asked = 0;
  REQUIRE(wsgemm_level3_workspace_size(h, &t->d, &asked) == WSGEMM_SUCCESS, "%s: %s", text, wsgemm_last_error());
  lent.bytes = (size_t)((double)asked * t->workspace) / ALIGN * ALIGN + ALIGN;
  lent.memory = gpu_alloc(lent.bytes + LENT_GUARD);
  GPU(cudaMemset(lent.memory, PATTERN, lent.bytes + LENT_GUARD));
  REQUIRE(wsgemm_set_workspace(h, lent.memory, lent.bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return lent;
}

static int64_t n_bytes_used; /* of workspaces, so far */

static void take_back(wsgemm_handle *h, const struct level3_case *t, struct lent *lent) {
  char text[200];
  describe(t, text);
  if (!lent->memory) return;
  unsigned char *bytes = malloc(lent->bytes + LENT_GUARD);
  REQUIRE(bytes != NULL, "memory");
  GPU(cudaMemcpy(bytes, lent->memory, lent->bytes + LENT_GUARD, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < lent->bytes; i++) n_bytes_used += bytes[i] != PATTERN;
  bool is_whole = true;
  for (size_t i = lent->bytes; i < lent->bytes + LENT_GUARD; i++) is_whole = is_whole && bytes[i] == PATTERN;
  CHECK(is_whole, "%s: written behind a workspace of %zu bytes", text, lent->bytes);
  REQUIRE(wsgemm_set_workspace(h, NULL, 0) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  gpu_free(lent->memory), free(bytes);
}

/* `elsewhere`: trmm and trsm into c. Returns a digest of the result. */
static unsigned long long run_level3(wsgemm_handle *h, struct level3_case t, bool elsewhere) {
  wsgemm_level3_desc *d = &t.d;
  const wsgemm_routine r = d->routine;
  const bool of_triangle = r == WSGEMM_TRMM || r == WSGEMM_TRSM, left = d->side == WSGEMM_LEFT,
             structured = of_triangle || r == WSGEMM_SYMM || r == WSGEMM_HEMM,
             no_trans = d->transa == WSGEMM_NO_TRANS || d->transa == WSGEMM_CONJ_NO_TRANS;
  if (has_region(r)) d->m = d->n;
  const int64_t size = left ? d->m : d->n, batch = d->batch_count;
  struct operand a = structured ? operand_new(&t, size, size) : operand_new(&t, no_trans ? d->n : d->k, no_trans ? d->k : d->n);
  struct operand b = {0}, c = {0};
  const bool b_no_trans = r == WSGEMM_GEMMTR ? d->transb == WSGEMM_NO_TRANS || d->transb == WSGEMM_CONJ_NO_TRANS : no_trans;
  if (structured)
    b = operand_new(&t, d->m, d->n);
  else if (r == WSGEMM_GEMMTR)
    b = operand_new(&t, b_no_trans ? d->k : d->n, b_no_trans ? d->n : d->k);
  else if (has_b(r))
    b = operand_new(&t, no_trans ? d->n : d->k, no_trans ? d->k : d->n);
  const bool has_c = !of_triangle || elsewhere;
  if (has_c) c = operand_new(&t, d->m, d->n);
  if (of_triangle) shape_triangle(&a, &t);
  if (structured)
    keep_triangle(&a,
                  of_triangle        ? TRIANGULAR
                  : r == WSGEMM_HEMM ? HERMITIAN
                                     : SYMMETRIC,
                  d->uplo == WSGEMM_UPPER, of_triangle && d->diag == WSGEMM_UNIT);
  number alpha = t.whole ? (r == WSGEMM_TRSM ? 1 : 2) : 0.75L, beta = of_triangle ? 0 : t.whole ? -1 : 0.5L;
  if (type_is_complex(d->type) && !t.whole && r != WSGEMM_HERK) alpha += 0.5L * I;
  if (type_is_complex(d->type) && !t.whole && !is_her(r) && !of_triangle) beta += 0.25L * I;
  if (t.alpha_zero) alpha = 0;
  if (t.beta_zero) beta = 0;
  if (t.beta_zero && has_c) memset(c.host, 0xff, c.bytes);
  if (r == WSGEMM_TRSM && t.whole) /* B such that the solution is whole: A times whole numbers */
    for (int64_t p = 0; p < batch; p++) {
      number *x = malloc(sizeof *x * (size_t)(d->m * d->n));
      memcpy(x, value_of(&b, p, 0, 0), sizeof *x * (size_t)(d->m * d->n));
      for (int64_t j = 0; j < d->n; j++)
        for (int64_t i = 0; i < d->m; i++) {
          number sum = 0;
          for (int64_t q = 0; q < size; q++)
            sum += left ? op_at(&a, p, d->transa, i, q) * x[j * d->m + q] : x[q * d->m + i] * op_at(&a, p, d->transa, q, j);
          *value_of(&b, p, i, j) = sum;
          put(&b, place_of(&b, p, i, j), sum);
        }
      free(x);
    }
  upload(&a);
  d->a = first_of(&a), d->lda = a.ld, d->stride_a = a.stride;
  if (b.host) upload(&b), d->b = first_of(&b), d->ldb = b.ld, d->stride_b = b.stride;
  if (t.b_is_a) d->b = d->a, d->ldb = d->lda, d->stride_b = d->stride_a;
  if (t.alpha_zero) d->a = NULL;
  if (t.alpha_zero && !of_triangle) d->b = NULL;
  if (has_c) upload(&c), d->c = first_of(&c), d->ldc = c.ld, d->stride_c = c.stride;
  set_scalar(d->type, &d->alpha, alpha), set_scalar(d->type, &d->beta, beta);
  char text[200];
  describe(&t, text);
  struct lent lent = lend(h, &t);
  const wsgemm_status status = wsgemm_level3(h, d);
  REQUIRE(status == WSGEMM_SUCCESS, "%s: %s", text, wsgemm_last_error());
  GPU(cudaDeviceSynchronize());
  take_back(h, &t, &lent);
  const struct operand *result = has_c ? &c : &b;
  unsigned char *after = malloc(result->bytes);
  GPU(cudaMemcpy(after, result->device, result->bytes, cudaMemcpyDeviceToHost));
  const unsigned long long digest = gpu_digest(result->device, result->bytes);
  if (checks_result && r == WSGEMM_TRSM)
    check_solution(&t, &a, &b, result, after, alpha);
  else if (checks_result)
    check_product(&t, &a, t.b_is_a ? &a : &b, of_triangle ? NULL : &c, result, after, alpha, beta);
  check_guards(&t, result, after);
  free(after);
  operand_free(&a);
  if (b.host) operand_free(&b);
  if (has_c) operand_free(&c);
  return digest;
}

static int64_t size_at_edge(int64_t most) {
  static const int64_t sizes[] = {1, 2, 3, 7, 31, 32, 33, 63, 64, 65, 96, 127, 128, 129, 160, 191, 192, 193, 255, 257, 300};
  int64_t size;
  do size = sizes[check_random_in(&rng, 0, (long long)(sizeof sizes / sizeof sizes[0]) - 1)];
  while (size > most);
  return size;
}

static bool exists(wsgemm_routine r, wsgemm_type type) { return type_is_complex(type) || !is_her(r); }

static struct level3_case drawn_case(wsgemm_routine r, wsgemm_type type, bool whole) {
  struct level3_case t = {.d = WSGEMM_LEVEL3_DESC_INIT, .whole = whole, .pad = (int)check_random_in(&rng, 0, 1) * 3};
  wsgemm_level3_desc *d = &t.d;
  const int64_t most = type_is_complex(type) ? 200 : 300;
  d->routine = r, d->type = type;
  d->side = check_random_in(&rng, 0, 1) ? WSGEMM_LEFT : WSGEMM_RIGHT;
  d->uplo = check_random_in(&rng, 0, 1) ? WSGEMM_UPPER : WSGEMM_LOWER;
  d->diag = check_random_in(&rng, 0, 1) ? WSGEMM_UNIT : WSGEMM_NON_UNIT;
  d->m = size_at_edge(most), d->n = size_at_edge(most), d->k = size_at_edge(most);
  d->batch_count = check_random_in(&rng, 0, 3) == 0 ? 2 : 1;
  d->layout = check_random_in(&rng, 0, 1) ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR;
  static const wsgemm_op all[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS, WSGEMM_CONJ_TRANS, WSGEMM_CONJ_NO_TRANS};
  const bool any = r == WSGEMM_GEMMTR || r == WSGEMM_TRMM || r == WSGEMM_TRSM;
  d->transa = all[check_random_in(&rng, 0, any ? 3 : 1)], d->transb = any ? all[check_random_in(&rng, 0, 3)] : WSGEMM_NO_TRANS;
  if ((r == WSGEMM_HERK || r == WSGEMM_HER2K) && d->transa == WSGEMM_TRANS) d->transa = WSGEMM_CONJ_TRANS;
  if (r == WSGEMM_SYMM || r == WSGEMM_HEMM) d->transa = WSGEMM_NO_TRANS;
  return t;
}

static void routines(bool whole, wsgemm_math math, int count, unsigned long long salt) {
  rng = check_random_from(salt);
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int r = WSGEMM_SYMM; r <= WSGEMM_TRSM; r++)
    for (int type = WSGEMM_F32; type <= WSGEMM_C64; type++)
      for (int i = 0; i < count && exists((wsgemm_routine)r, (wsgemm_type)type); i++) {
        struct level3_case t = drawn_case((wsgemm_routine)r, (wsgemm_type)type, whole);
        t.d.math = math;
        run_level3(h, t, i % 3 == 2);
      }
  wsgemm_destroy(h);
}

static void exact(void) { routines(true, WSGEMM_MATH_DEFAULT, 24 / check_scale() + 6, 301); }
static void bounds(void) { routines(false, WSGEMM_MATH_DEFAULT, 16 / check_scale() + 6, 302); }
static void pedantic(void) { routines(true, WSGEMM_MATH_PEDANTIC, 6, 303), routines(false, WSGEMM_MATH_PEDANTIC, 6, 304); }
/* Whole numbers are exact in TF32, too. */
static void tf32(void) { routines(true, WSGEMM_MATH_TF32, 4, 305), routines(false, WSGEMM_MATH_TF32, 4, 312); }

/* Large enough for slices, and for several halves; also in TF32. */
static void larger(void) {
  static const int64_t sizes[] = {513, 1025, 640, 600};
  rng = check_random_from(306);
  wsgemm_handle *h = NULL;
  column_step = 7;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int r = WSGEMM_SYMM; r <= WSGEMM_TRSM; r++)
    for (int type = WSGEMM_F32; type <= WSGEMM_C32; type += 2)
      for (int i = 0; i < 3 && exists((wsgemm_routine)r, (wsgemm_type)type); i++) {
        struct level3_case t = drawn_case((wsgemm_routine)r, (wsgemm_type)type, i == 0 && r != WSGEMM_TRSM);
        if (i == 2) t.d.math = WSGEMM_MATH_TF32;
        const bool left = t.d.side == WSGEMM_LEFT;
        const int64_t size = sizes[type == WSGEMM_F32 ? i % 2 : 2 + i % 2];
        t.d.batch_count = 1;
        if (has_region(t.d.routine))
          t.d.n = size, t.d.k = 150;
        else
          t.d.m = left ? size : 70, t.d.n = left ? 70 : size;
        run_level3(h, t, false);
      }
  column_step = 1;
  wsgemm_destroy(h);
}

/* In workspaces of the caller's: all that a call asks for, parts of it, and next to nothing; within
 * the same bounds, and nothing written behind them. Floats for what is by slices, doubles for what
 * is written out, or a copy of right-hand sides. */
static void workspaces(void) {
  static const double shares[] = {1, 0.6, 0.25, 1e-9};
  rng = check_random_from(311);
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  n_bytes_used = 0, column_step = 11;
  for (int r = WSGEMM_SYMM; r <= WSGEMM_TRSM; r++)
    for (int type = WSGEMM_F32; type <= WSGEMM_C32; type++)
      for (int i = 0; i < 4 && exists((wsgemm_routine)r, (wsgemm_type)type); i++) {
        struct level3_case t = drawn_case((wsgemm_routine)r, (wsgemm_type)type, false);
        const int64_t size = check_random_in(&rng, type == WSGEMM_C32 ? 300 : 500, type == WSGEMM_C32 ? 450 : 700);
        t.d.batch_count = 1, t.workspace = shares[i];
        t.d.m = t.d.n = size, t.d.k = 150;
        if (!has_region(t.d.routine)) *(t.d.side == WSGEMM_LEFT ? &t.d.n : &t.d.m) = 150;
        run_level3(h, t, i % 2 == 1);
      }
  column_step = 1;
  CHECK(n_bytes_used > 0, "no call used the workspace that it was given");
  wsgemm_destroy(h);
}

/* Doubles, of which one triangle is read where it lies, in many blocks beside its diagonal and across it; and two products of a C. */
static void where_they_lie(void) {
  rng = check_random_from(314);
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  column_step = 5;
  for (int r = WSGEMM_SYMM; r <= WSGEMM_TRMM; r++)
    for (int type = WSGEMM_F64; type <= WSGEMM_C64; type += 2)
      for (int i = 0; i < 10 && exists((wsgemm_routine)r, (wsgemm_type)type); i++) {
        struct level3_case t = drawn_case((wsgemm_routine)r, (wsgemm_type)type, i % 2 == 1);
        const int64_t size = check_random_in(&rng, 33, 420), other = i % 5 == 4 ? 1 : check_random_in(&rng, 2, 150);
        const bool left = t.d.side == WSGEMM_LEFT;
        t.d.batch_count = 1 + i % 3 / 2;
        if (type == WSGEMM_C64 && i % 3 == 0) t.d.alpha.z.im = 0; /* of her2k both at once */
        if (has_region(t.d.routine))
          t.d.n = size, t.d.k = 1 + other;
        else
          t.d.m = left ? size : other, t.d.n = left ? other : size;
        run_level3(h, t, i % 4 == 2);
      }
  column_step = 1;
  wsgemm_destroy(h);
}

/* What is not to be read: C where beta is 0, A and B where alpha is 0 or nothing is summed; sizes of 0; and a B that is A. */
static void unread(void) {
  rng = check_random_from(315);
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int r = WSGEMM_SYMM; r <= WSGEMM_TRSM; r++)
    for (int type = WSGEMM_F32; type <= WSGEMM_C64; type++)
      for (int i = 0; i < 8 && exists((wsgemm_routine)r, (wsgemm_type)type); i++) {
        struct level3_case t = drawn_case((wsgemm_routine)r, (wsgemm_type)type, i % 2 == 1);
        t.beta_zero = i % 4 < 2, t.alpha_zero = i == 1 || i == 2;
        t.b_is_a = i > 4 && (r == WSGEMM_SYR2K || r == WSGEMM_HER2K);
        if (i == 3 || i == 4) t.d.k = 0;
        if (i == 5) t.d.n = 0;
        if (i == 6) t.d.m = 0;
        run_level3(h, t, i % 3 == 2);
      }
  wsgemm_destroy(h);
}

/* Triangles whose rows and columns differ by many powers of two. */
static void any_scaling(void) {
  rng = check_random_from(307);
  for (int type = WSGEMM_F32; type <= WSGEMM_C64; type++)
    for (int i = 0; i < 12; i++) {
      struct level3_case t = drawn_case(WSGEMM_TRSM, (wsgemm_type)type, false);
      t.scaling = type_is_double((wsgemm_type)type) ? 60 : 12, t.d.diag = WSGEMM_NON_UNIT,
      t.d.math = i % 4 == 3 ? WSGEMM_MATH_PEDANTIC : WSGEMM_MATH_DEFAULT;
      /* whose inverse is not much larger than it is */
      t.d.m = size_at_edge(200), t.d.n = size_at_edge(65);
      if (t.d.side == WSGEMM_RIGHT) {
        const int64_t m = t.d.m;
        t.d.m = t.d.n, t.d.n = m;
      }
      run_level3(NULL, t, false);
    }
}

/* More right sides than the multiprocessors of any GPU have blocks of 16 for: systems by slices, diagonal blocks of which the last
 * one is of any size; scaled, and whole numbers. */
static void many_sides(void) {
  static const int64_t sizes[] = {128, 129, 159, 160, 200, 252, 480, 511, 512, 513, 516, 700};
  enum { N_SIZES = sizeof sizes / sizeof sizes[0] };
  rng = check_random_from(313);
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  column_step = 97;
  for (int i = 0; i < 3 * N_SIZES; i++) {
    const int64_t size = sizes[i % N_SIZES], others = 2600 + check_random_in(&rng, 0, 100);
    struct level3_case t = drawn_case(WSGEMM_TRSM, WSGEMM_F32, size < 140 && i >= N_SIZES);
    if (i % 5 == 2) t.scaling = 12, t.d.diag = WSGEMM_NON_UNIT, t.whole = false;
    const bool left = t.d.side == WSGEMM_LEFT;
    t.d.batch_count = 1 + i % 2;
    t.d.m = left ? size : others / t.d.batch_count, t.d.n = left ? others / t.d.batch_count : size;
    run_level3(h, t, i % 3 == 1);
  }
  column_step = 1;
  wsgemm_destroy(h);
}

/* The same bits by every scheduler, in a graph, and (invariant mode) of a part of the columns. */
static void bits(void) {
  for (int r = WSGEMM_SYMM; r <= WSGEMM_TRSM; r++)
    for (int type = WSGEMM_F32; type <= WSGEMM_C64; type++) {
      unsigned long long first = 0;
      if (!exists((wsgemm_routine)r, (wsgemm_type)type)) continue;
      for (int policy = 0; policy < N_POLICIES; policy++) {
        wsgemm_handle *h = NULL;
        rng = check_random_from(308);
        struct level3_case t = drawn_case((wsgemm_routine)r, (wsgemm_type)type, false);
        t.d.m = t.d.n = 257, t.d.k = 130, t.d.batch_count = 1;
        if (!has_region(t.d.routine)) t.d.m = t.d.side == WSGEMM_LEFT ? 257 : 70, t.d.n = t.d.side == WSGEMM_LEFT ? 70 : 257;
        REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_policy(h, all_policies[policy]) == WSGEMM_SUCCESS, "handle");
        checks_result = policy == 0;
        const unsigned long long digest = run_level3(h, t, false);
        checks_result = true;
        if (policy == 0) first = digest;
        CHECK(digest == first, "%c%s under policy %d", type_letter((wsgemm_type)type), names[r], all_policies[policy]);
        wsgemm_destroy(h);
      }
    }
}

/* Rows of double precision with the same parts of k ("..._g4_k8") sum alike, whatever their tiles, also beside a triangle's zeros. */
static void rows_of_triangles(void) {
  enum { MOST_ORDERS = 32 };
  static struct rows_of_type rows;
  for (int i = 0; i < 8; i++) {
    const wsgemm_type type = i % 2 ? WSGEMM_C64 : WSGEMM_F64;
    const char *order[MOST_ORDERS];
    unsigned long long first[MOST_ORDERS];
    int n_orders = 0;
    rows_open(&rows, type);
    for (int row = 0; row < rows.n_rows; row++) {
      if (!is_of_family(&rows.row[row].info, "dmma")) continue;
      rng = check_random_from(312 + (unsigned long long)i);
      struct level3_case t = drawn_case(WSGEMM_TRMM, type, false);
      t.d.side = i & 2 ? WSGEMM_LEFT : WSGEMM_RIGHT, t.d.uplo = i & 4 ? WSGEMM_UPPER : WSGEMM_LOWER, t.d.batch_count = 1;
      t.d.m = i & 2 ? 333 : 70, t.d.n = i & 2 ? 70 : 333;
      checks_result = n_orders == 0;
      const unsigned long long digest = run_level3(rows.handle[row], t, true);
      const char *const parts = strstr(rows.row[row].name, "_g");
      int o = 0;
      while (o < n_orders && strcmp(order[o], parts) != 0) o++;
      REQUIRE(o < MOST_ORDERS, "more orders of summation");
      if (o == n_orders) order[n_orders] = parts, first[n_orders++] = digest;
      CHECK(digest == first[o], "%s: other bits than the rows before it, turn %d", rows.row[row].name, i);
    }
    checks_result = true;
    CHECK(n_orders > 1, "no rows");
    rows_close(&rows);
  }
}

/* A captured call gives the eager call's bits, whenever its graph is launched. */
static void graphs(void) {
  enum { N = 700 };
  cudaStream_t stream;
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_stream(h, stream) == WSGEMM_SUCCESS, "handle");
  static const wsgemm_routine all[] = {WSGEMM_SYMM, WSGEMM_SYRK, WSGEMM_TRMM, WSGEMM_TRSM};
  for (int i = 0; i < 4; i++) {
    const size_t bytes = sizeof(float) * N * N;
    float *host = malloc(bytes);
    rng = check_random_from(309);
    for (int e = 0; e < N * N; e++) host[e] = (float)(check_random_unit(&rng) + (e % (N + 1) == 0 ? 30 : 0));
    void *a = gpu_copy(host, bytes), *b = gpu_copy(host, bytes), *c = gpu_copy(host, bytes);
    wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
    d.routine = all[i], d.m = d.n = d.k = N, d.a = a, d.b = b, d.c = c, d.lda = d.ldb = d.ldc = N, d.alpha.s = 1, d.beta.s = 0;
    REQUIRE(wsgemm_level3(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaStreamSynchronize(stream));
    const unsigned long long eager = gpu_digest(c, bytes);
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    const wsgemm_status status = wsgemm_level3(h, &d);
    GPU(cudaStreamEndCapture(stream, &graph));
    REQUIRE(status == WSGEMM_SUCCESS, "%s captured: %s", names[all[i]], wsgemm_last_error());
    GPU(cudaGraphInstantiate(&exec, graph, 0));
    for (int again = 0; again < 2; again++) {
      gpu_put(c, host, bytes);
      GPU(cudaGraphLaunch(exec, stream));
      GPU(cudaStreamSynchronize(stream));
      CHECK(gpu_digest(c, bytes) == eager, "%s in a graph", names[all[i]]);
    }
    GPU(cudaGraphExecDestroy(exec));
    GPU(cudaGraphDestroy(graph));
    gpu_free(a), gpu_free(b), gpu_free(c), free(host);
  }
  wsgemm_destroy(h);
  GPU(cudaStreamDestroy(stream));
}

/* In invariant mode the bits of a column do not depend on how many there are. */
static void invariant(void) {
  enum { N = 300, COLUMNS = 65, PART = 3 };
  static const wsgemm_routine all[] = {WSGEMM_SYMM, WSGEMM_TRMM, WSGEMM_TRSM};
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "handle");
  for (int r = 0; r < 3; r++)
    for (int type = WSGEMM_F32; type <= WSGEMM_C64; type++) {
      const size_t element = type_bytes((wsgemm_type)type), bytes = element * N * N;
      unsigned char *host = malloc(bytes);
      rng = check_random_from(310);
      for (size_t e = 0; e < bytes / 4; e++) {
        const float narrow = (float)check_random_unit(&rng);
        const double wide = check_random_unit(&rng);
        if (!type_is_double((wsgemm_type)type)) memcpy(host + 4 * e, &narrow, 4);
        if (type_is_double((wsgemm_type)type) && e % 2 == 0) memcpy(host + 4 * e, &wide, 8);
      }
      void *a = gpu_copy(host, bytes), *b = gpu_copy(host, bytes), *c[2];
      unsigned long long digest[2];
      for (int part = 0; part < 2; part++) {
        c[part] = gpu_alloc(bytes);
        wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
        d.routine = all[r], d.type = (wsgemm_type)type, d.m = N, d.n = part ? PART : COLUMNS, d.diag = WSGEMM_UNIT;
        d.a = a, d.b = b, d.c = c[part], d.lda = d.ldb = d.ldc = N;
        set_scalar(d.type, &d.alpha, 1), set_scalar(d.type, &d.beta, 0);
        REQUIRE(wsgemm_level3(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        GPU(cudaDeviceSynchronize());
        digest[part] = gpu_digest(c[part], element * N * PART);
      }
      CHECK(digest[0] == digest[1], "%c%s: the first columns alone have other bits", type_letter((wsgemm_type)type),
            names[all[r]]);
      gpu_free(a), gpu_free(b), gpu_free(c[0]), gpu_free(c[1]), free(host);
    }
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {{"exact", exact},
                                          {"bounds", bounds},
                                          {"pedantic", pedantic},
                                          {"tf32", tf32},
                                          {"larger", larger},
                                          {"any_scaling", any_scaling},
                                          {"bits", bits},
                                          {"graphs", graphs},
                                          {"invariant", invariant},
                                          {"workspaces", workspaces},
                                          {"where_they_lie", where_they_lie},
                                          {"unread", unread},
                                          {"many_sides", many_sides},
                                          {"rows_of_triangles", rows_of_triangles}};

int main(int argc, char **argv) {
  gpu_open();
  return check_main("gpu_level3", cases, sizeof cases / sizeof cases[0], argc, argv);
}
