/* test_trsm.c - triangular systems on the CPU: the promised bound in 113-bit arithmetic for all
 * sides, triangles, ops, diagonals and types round every boundary between vectors, groups, panels
 * and blocks; triangles of any scaling; exact whole numbers; what must be neither read nor written;
 * bits over threads, policies and partners; without memory; in a forked child.
 *
 * Calls the backend (cpu/backend.h) with systems as the API makes them. Linked with --wrap for mmap
 * (CMakeLists.txt), so that memory can fail. */
#define _GNU_SOURCE
#include "support/process.h"
#include "support/reference.h"
#include "support/rows.h"

#include <errno.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "cpu/backend.h"
#include "cpu/trsm_plan.h"

static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

static atomic_bool has_no_memory;
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset) {
  return atomic_load(&has_no_memory) ? (errno = ENOMEM, MAP_FAILED)
                                     : __real_mmap(address, bytes, protection, flags, file, offset);
}

/* ---- Systems --------------------------------------------------------------------------------- */

enum kind {
  KIND_TAME,    /* a diagonal near 1, other elements of 1 / order: X is about as large as B */
  KIND_WHOLE,   /* unit, whole numbers in few places: X is exact */
  KIND_GRADED,  /* rows and columns scaled by powers of two over a wide range */
  KIND_HILBERT, /* 1 / (i + j + 1), alternating signs: ill-conditioned */
  KIND_EXTREME, /* a diagonal whose reciprocals overflow or underflow */
  N_KINDS
};

struct shape {
  wsgemm_type type;
  int64_t m, n, batch;
  bool is_right, is_upper, is_unit, in_place;
  wsgemm_op op;
  double alpha[2];
};

/* Values and storage of a system; B's values are kept, as X may be in its place. */
struct system {
  struct shape shape;
  int64_t k;                                  /* order of A */
  double *a, *b;                              /* (re, im), column-major, tight; b: batch after batch */
  struct matrix stored_a, stored_b, stored_x; /* of all the batch: its columns follow each other */
  struct arena arena[3];
};

static double type_rounded(wsgemm_type type, double x) { return type_is_single(type) ? (double)(float)x : x; }

static double element_of(enum kind kind, const struct shape *s, int64_t k, int64_t i, int64_t j) {
  const double x = check_random_unit(&rng);
  const int range = type_is_single(s->type) ? 12 : 90;
  switch (kind) {
  case KIND_TAME:
    return i == j ? 1 + x / 4 : x / (double)k;
  case KIND_WHOLE:
    return i == j ? 1 : drawn(0, k) < 2 ? (double)drawn(-1, 1) : 0;
  case KIND_GRADED:
    return ldexp(i == j ? 1 + x / 2 : x, (int)((i * 7 + j * 13) % (2 * range) - range) / (i == j ? 1 : 2));
  case KIND_HILBERT:
    return ((i + j) % 2 ? -1.0 : 1.0) / (double)(i + j + 1);
  case KIND_EXTREME:
    return i == j ? ldexp(1 + x / 2, i % 3 == 0   ? (type_is_single(s->type) ? 110 : 1000)
                                     : i % 3 == 1 ? (type_is_single(s->type) ? -125 : -1020)
                                                  : 0)
                  : 0;
  case N_KINDS:
    break;
  }
  return 0;
}

static bool is_stored(const struct shape *s, int64_t i, int64_t j) { return i == j ? !s->is_unit : s->is_upper ? i < j : i > j; }

/* In place, as its matrices point to its arenas. */
static void system_make(struct system *made, const struct shape *shape, enum kind kind) {
  static const enum place places[] = {PLACE_END, PLACE_START, PLACE_ODD};
  *made = (struct system){.shape = *shape, .k = shape->is_right ? shape->n : shape->m};
  const int64_t k = made->k, n_a = k * k * shape->batch, n_b = shape->m * shape->n * shape->batch;
  made->a = calloc((size_t)n_a, 2 * sizeof(double)), made->b = calloc((size_t)n_b, 2 * sizeof(double));
  REQUIRE(made->a && made->b, "memory");
  const int64_t lda = k + drawn(0, 3), ldb = shape->m + drawn(0, 3), ldx = shape->in_place ? ldb : shape->m + drawn(0, 3);
  const size_t bytes = type_bytes(shape->type);
  const int64_t lds[3] = {lda, ldb, ldx}, columns[3] = {k, shape->n, shape->n}, rows[3] = {k, shape->m, shape->m};
  struct matrix *stored[3] = {&made->stored_a, &made->stored_b, &made->stored_x};
  for (int x = 0; x < 3; x++) {
    made->arena[x] = arena_new((size_t)(lds[x] * columns[x] * shape->batch) * bytes + 4096);
    *stored[x] = matrix_place(&made->arena[x], shape->type, WSGEMM_COL_MAJOR, rows[x], columns[x] * shape->batch, lds[x],
                              places[drawn(0, 2)]);
  }
  const bool is_complex = type_is_complex(shape->type);
  for (int64_t j = 0; j < k * shape->batch; j++)
    for (int64_t i = 0; i < k; i++) {
      if (!is_stored(shape, i, j % k)) {
        matrix_set(&made->stored_a, i, j, NAN, NAN);
        if (i == j % k) made->a[2 * (i + j * k)] = 1;
        continue;
      }
      const double re = type_rounded(shape->type, element_of(kind, shape, k, i, j % k));
      const bool has_im =
          is_complex && kind != KIND_HILBERT && (kind != KIND_WHOLE || i != j % k) && (kind != KIND_EXTREME || i == j % k);
      const double im = has_im ? type_rounded(shape->type, element_of(kind, shape, k, i, j % k) / 2) : 0;
      made->a[2 * (i + j * k)] = re, made->a[2 * (i + j * k) + 1] = im;
      matrix_set(&made->stored_a, i, j, re, im);
    }
  for (int64_t j = 0; j < shape->n * shape->batch; j++)
    for (int64_t i = 0; i < shape->m; i++) {
      double z[2] = {0, 0};
      for (int part = 0; part < 1 + is_complex; part++)
        z[part] = kind == KIND_WHOLE ? (double)drawn(-2, 2) : type_rounded(shape->type, check_random_unit(&rng));
      memcpy(made->b + 2 * (i + j * shape->m), z, sizeof z);
      matrix_set(&made->stored_b, i, j, z[0], z[1]);
    }
}

static void system_restore(const struct system *s) {
  for (int64_t j = 0; j < s->shape.n * s->shape.batch; j++)
    for (int64_t i = 0; i < s->shape.m; i++) {
      const double *z = s->b + 2 * (i + j * s->shape.m);
      matrix_set(&s->stored_b, i, j, z[0], z[1]);
    }
  matrix_store_nan(&s->stored_x);
}

static void system_free(struct system *s) {
  free(s->a), free(s->b);
  for (int x = 0; x < 3; x++) arena_free(&s->arena[x]);
}

static const struct matrix *result_of(const struct system *s) { return s->shape.in_place ? &s->stored_b : &s->stored_x; }

static const char *describe(const struct shape *s, char text[200]) {
  snprintf(text, 200, "%c %s %s op %d %s %lld x %lld batch %lld%s alpha %g %g", type_letter(s->type),
           s->is_right ? "right" : "left", s->is_upper ? "upper" : "lower", (int)s->op, s->is_unit ? "unit" : "non-unit",
           (long long)s->m, (long long)s->n, (long long)s->batch, s->in_place ? " in place" : "", s->alpha[0], s->alpha[1]);
  return text;
}

static ws_system ws_system_of(const struct system *s) {
  const struct shape *shape = &s->shape;
  const bool is_complex = type_is_complex(shape->type);
  ws_system out;
  memset(&out, 0, sizeof out);
  out.m = shape->m, out.n = shape->n, out.batch_count = shape->batch, out.is_right = shape->is_right;
  out.a.data = s->stored_a.elements, out.a.ld = s->stored_a.ld, out.a.stride = s->stored_a.ld * s->k, out.a.type = shape->type;
  out.a.trans = op_transposes(shape->op);
  out.a.conj = is_complex && (shape->op == WSGEMM_CONJ_TRANS || shape->op == WSGEMM_CONJ_NO_TRANS);
  out.a.structure = shape->is_unit ? WS_UNIT_TRIANGULAR : WS_TRIANGULAR;
  out.a.stored_upper = shape->is_upper;
  out.b.data = s->stored_b.elements, out.b.ld = s->stored_b.ld, out.b.stride = s->stored_b.ld * shape->n,
  out.b.type = shape->type;
  const struct matrix *x = result_of(s);
  out.x.data = x->elements, out.x.ld = x->ld, out.x.stride = x->ld * shape->n, out.x.type = shape->type;
  for (int part = 0; part < 2; part++)
    if (type_is_single(shape->type))
      out.scale.alpha.s[part] = (float)shape->alpha[part];
    else
      out.scale.alpha.d[part] = shape->alpha[part];
  out.scale.alpha_real = shape->alpha[1] == 0;
  out.scale.alpha_one = out.scale.alpha_real && shape->alpha[0] == 1;
  out.scale.beta_zero = out.scale.beta_real = true;
  return out;
}

static void solve(const struct system *s, wsgemm_handle *h) {
  const ws_call call = ws_call_of(ws_handle(h));
  const ws_system system = ws_system_of(s);
  char text[200];
  system_restore(s);
  CHECK(ws_cpu_solve(&call, &system, 0) == WSGEMM_SUCCESS, "%s", describe(&s->shape, text));
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* op(A) of a product of the batch, or its transpose if A is on the right: T X = alpha B, with X and
 * B transposed as well. */
static void t_element(const struct system *s, int64_t batch, int64_t i, int64_t p, double z[2]) {
  const bool is_trans = op_transposes(s->shape.op) != s->shape.is_right;
  memcpy(z, s->a + 2 * (batch * s->k * s->k + (is_trans ? p + i * s->k : i + p * s->k)), 2 * sizeof *z);
  if (s->shape.op == WSGEMM_CONJ_TRANS || s->shape.op == WSGEMM_CONJ_NO_TRANS) z[1] = -z[1];
}

/* Worst component of |alpha b - T x| / (8 gamma |T| |x|) of one right side; x, b: (re, im). */
static double judge_right_side(const struct system *s, int64_t batch, const double *x, const double *b) {
  const bool is_complex = type_is_complex(s->shape.type);
  const double u = type_is_single(s->shape.type) ? 0x1p-24 : 0x1p-53,
               n = (double)((s->k + (is_complex ? 1 : 2)) * (1 + is_complex));
  const double gamma = n * u / (1 - n * u), *alpha = s->shape.alpha;
  double worst = 0;
  for (int64_t i = 0; i < s->k; i++) {
    wide re = (wide)alpha[0] * b[2 * i] - (wide)alpha[1] * b[2 * i + 1];
    wide im = (wide)alpha[0] * b[2 * i + 1] + (wide)alpha[1] * b[2 * i];
    wide magnitude = 0;
    for (int64_t p = 0; p < s->k; p++) {
      double t[2];
      t_element(s, batch, i, p, t);
      if (t[0] == 0 && t[1] == 0) continue;
      re -= (wide)t[0] * x[2 * p] - (wide)t[1] * x[2 * p + 1];
      im -= (wide)t[0] * x[2 * p + 1] + (wide)t[1] * x[2 * p];
      magnitude += ((wide)fabs(t[0]) + fabs(t[1])) * ((wide)fabs(x[2 * p]) + fabs(x[2 * p + 1]));
    }
    const wide larger = (re < 0 ? -re : re) > (im < 0 ? -im : im) ? (re < 0 ? -re : re) : (im < 0 ? -im : im);
    const double ratio = larger == 0 ? 0 : (double)(larger / (8 * gamma * magnitude));
    if (!(ratio <= worst)) worst = ratio;
  }
  return worst;
}

static void judge(const struct system *s, const char *what, bool is_exact) {
  const struct shape *shape = &s->shape;
  const int64_t n_right = shape->is_right ? shape->m : shape->n;
  const struct matrix *x = result_of(s);
  double *values = calloc((size_t)(4 * s->k), sizeof(double)), worst = 0;
  for (int64_t batch = 0; batch < shape->batch; batch++)
    for (int64_t r = 0; r < n_right; r++) {
      for (int64_t p = 0; p < s->k; p++) {
        const int64_t i = shape->is_right ? r : p, j = batch * shape->n + (shape->is_right ? p : r);
        matrix_get(x, i, j, &values[2 * p], &values[2 * p + 1]);
        memcpy(values + 2 * s->k + 2 * p, s->b + 2 * (i + j * shape->m), 2 * sizeof(double));
      }
      const double ratio = judge_right_side(s, batch, values, values + 2 * s->k);
      if (!(ratio <= worst)) worst = ratio;
    }
  free(values);
  char text[200];
  int64_t byte_idx = 0;
  CHECK(is_exact ? worst == 0 : worst < 1, "%s: %s: worst error %g of the bound", what, describe(shape, text), worst);
  CHECK(matrix_guard_intact(&s->stored_x, &byte_idx) && matrix_guard_intact(&s->stored_b, &byte_idx), "%s: %s: byte %lld", what,
        describe(shape, text), (long long)byte_idx);
}

static const double alphas[][2] = {{1, 0}, {-1, 0}, {0.75, 0}, {0.5, -1.25}};

static struct shape shape_drawn(wsgemm_type type, int64_t m, int64_t n) {
  const bool is_complex = type_is_complex(type);
  const double *alpha = alphas[drawn(0, is_complex ? 3 : 2)];
  static const wsgemm_op ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS, WSGEMM_CONJ_TRANS, WSGEMM_CONJ_NO_TRANS};
  return (struct shape){
      type, m, n, 1, drawn(0, 1), drawn(0, 1), drawn(0, 1), drawn(0, 1), ops[drawn(0, is_complex ? 3 : 1)], {alpha[0], alpha[1]}};
}

static void run_once(const struct shape *shape, enum kind kind, wsgemm_handle *h, const char *what) {
  struct system s;
  system_make(&s, shape, kind);
  solve(&s, h);
  judge(&s, what, kind == KIND_WHOLE);
  system_free(&s);
}

/* ---- Cases ----------------------------------------------------------------------------------- */

static const wsgemm_type types[] = {WSGEMM_F32, WSGEMM_F64, WSGEMM_C32, WSGEMM_C64};

/* Every combination of side, triangle, op and diagonal for a few shapes; for every row. */
static void combinations(void) {
  rng = check_random_from(201);
  for (int t = 0; t < 4; t++) {
    struct rows_of_type rows;
    rows_open(&rows, types[t]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int way = 0; way < 64; way++)
        for (int size = 0; size < 4; size++) {
          if (check_scale() > 1 && drawn(0, check_scale() - 1)) continue;
          const int64_t edge = rows.row[i].nr * size;
          struct shape shape = shape_drawn(types[t], edge + drawn(1, rows.row[i].nr), edge + drawn(1, rows.row[i].mr));
          shape.is_right = way & 1, shape.is_upper = way & 2, shape.is_unit = way & 4, shape.in_place = way & 8;
          shape.op = (wsgemm_op[]){WSGEMM_NO_TRANS, WSGEMM_TRANS, WSGEMM_CONJ_TRANS, WSGEMM_CONJ_NO_TRANS}[way >> 4];
          if (!type_is_complex(types[t]) && way >> 4 > 1) continue;
          run_once(&shape, size % 2 ? KIND_TAME : KIND_WHOLE, rows.handle[i], rows.row[i].name);
        }
    rows_close(&rows);
  }
}

/* Orders round vectors, groups and blocks; right sides round vectors and panels. */
static void edges(void) {
  rng = check_random_from(202);
  for (int t = 0; t < 4; t++) {
    struct rows_of_type rows;
    rows_open(&rows, types[t]);
    for (int i = 0; i < rows.n_rows; i++) {
      const int64_t nr = rows.row[i].nr, mr = rows.row[i].mr, kb = rows.kc[i] / nr * nr;
      const int64_t orders[] = {1,  2,      nr - 1, nr,     nr + 1, 2 * nr,     3 * nr + 1,     61,
                                64, kb - 1, kb,     kb + 1, 2 * kb, 2 * kb + 1, 2 * kb + nr + 1};
      const int64_t sides[] = {1, mr / 2 - 1, mr / 2, mr / 2 + 1, mr - 1, mr, mr + 1, 2 * mr + 1, 5 * mr + 3};
      for (size_t o = 0; o < sizeof orders / sizeof orders[0]; o++)
        for (size_t r = 0; r < sizeof sides / sizeof sides[0]; r++) {
          if (sides[r] < 1 || orders[o] < 1) continue;
          if (orders[o] > 2 * nr + 1 && drawn(0, 2 * check_scale() + (orders[o] > 64 ? 20 : 0))) continue;
          struct shape shape = shape_drawn(types[t], orders[o], sides[r]);
          if (shape.is_right) shape.m = sides[r], shape.n = orders[o];
          run_once(&shape, drawn(0, 1) ? KIND_TAME : KIND_WHOLE, rows.handle[i], rows.row[i].name);
        }
    }
    rows_close(&rows);
  }
}

/* Triangles of any scaling. */
static void scalings(void) {
  rng = check_random_from(203);
  for (int t = 0; t < 4; t++)
    for (int turn = 0; turn < 60 / check_scale(); turn++)
      for (enum kind kind = KIND_GRADED; kind < N_KINDS; kind++) {
        struct shape shape = shape_drawn(types[t], drawn(1, kind == KIND_HILBERT ? 14 : 80), drawn(1, 40));
        if (shape.is_right) {
          const int64_t m = shape.m;
          shape.m = shape.n, shape.n = m;
        }
        /* substitution with a graded triangle may overflow: the bound speaks of finite X */
        if (kind == KIND_GRADED && (shape.is_right ? shape.n : shape.m) > 6) shape.m = shape.n = drawn(2, 6);
        if (kind == KIND_EXTREME) shape.alpha[0] = 1, shape.alpha[1] = 0;
        if (kind != KIND_HILBERT) shape.is_unit = false;
        run_once(&shape, kind, NULL, "scaled");
      }
}

static void batches(void) {
  rng = check_random_from(204);
  for (int t = 0; t < 4; t++)
    for (int n_threads = 1; n_threads <= 4; n_threads += 3) {
      REQUIRE(wsgemm_set_num_threads(NULL, n_threads) == WSGEMM_SUCCESS, "threads");
      const int64_t sizes[][3] = {{5, 7, 40}, {60, 20, 17}, {130, 60, 3}, {90, 40, 9}, {300, 5, 9}};
      for (int i = 0; i < 5; i++) {
        if (check_scale() > 6 && (t + i) % 3 != 2) continue;
        struct shape shape = shape_drawn(types[t], sizes[i][0], sizes[i][1]);
        shape.batch = sizes[i][2];
        run_once(&shape, KIND_TAME, NULL, "batch");
      }
    }
  REQUIRE(wsgemm_set_num_threads(NULL, 0) == WSGEMM_SUCCESS, "threads");
}

/* Right sides r .. r + count - 1 again, as a system of their own. */
static void some_right_sides(const struct system *s, wsgemm_handle *h, int64_t r, int64_t count) {
  const ws_call call = ws_call_of(ws_handle(h));
  const struct shape *shape = &s->shape;
  const bool is_right = shape->is_right;
  const size_t bytes = type_bytes(shape->type);
  char *x = calloc((size_t)(s->k * count), bytes), text[200];
  ws_system some = ws_system_of(s);
  const char *expected = (const char *)some.x.data + (is_right ? 1 : some.x.ld) * (int64_t)bytes * r;
  some.b.data = (const char *)some.b.data + (is_right ? 1 : some.b.ld) * (int64_t)bytes * r;
  some.x.data = x, some.x.ld = is_right ? count : s->k;
  *(is_right ? &some.m : &some.n) = count;
  ws_cpu_solve(&call, &some, 0);
  const int64_t lines = is_right ? s->k : count, length = is_right ? count : s->k;
  int64_t n_wrong = 0;
  for (int64_t j = 0; j < lines; j++)
    n_wrong +=
        memcmp(x + (size_t)(j * length) * bytes, expected + (size_t)(j * s->stored_x.ld) * bytes, (size_t)length * bytes) != 0;
  CHECK(n_wrong == 0, "%s: right sides %lld to %lld by themselves: %lld lines differ", describe(shape, text), (long long)r,
        (long long)(r + count - 1), (long long)n_wrong);
  free(x);
}

static int64_t n_right_sides(const struct system *s) { return s->shape.is_right ? s->shape.m : s->shape.n; }

/* Small orders, each with many right sides, then with few of them; for every row. */
static void bits_of_few(void) {
  rng = check_random_from(208);
  for (int t = 0; t < 4; t++) {
    struct rows_of_type rows;
    rows_open(&rows, types[t]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int64_t k = 1; k <= 2 * rows.row[i].nr + 1; k++)
        for (int is_right = 0; is_right < 2; is_right++) {
          if (check_scale() > 1 && drawn(0, check_scale() - 1)) continue;
          const int64_t n = 4 * rows.row[i].mr + 1;
          struct shape shape = shape_drawn(types[t], is_right ? n : k, is_right ? k : n);
          shape.is_right = is_right, shape.in_place = false;
          struct system s;
          system_make(&s, &shape, drawn(0, 3) ? KIND_TAME : KIND_EXTREME);
          solve(&s, rows.handle[i]);
          for (int64_t count = 1; count <= rows.row[i].mr + 1; count += 1 + count / 4)
            some_right_sides(&s, rows.handle[i], drawn(0, n - count), count);
          system_free(&s);
        }
    rows_close(&rows);
  }
}

/* The same bits for 1 to 8 threads and every policy; a right side has those that it has alone. */
static void bits(void) {
  rng = check_random_from(205);
  static const int64_t sizes[][2] = {{40, 900}, {300, 130}, {900, 12}, {1100, 3}, {130, 600}, {777, 111}};
  for (int t = 0; t < 4; t++)
    for (int i = 0; i < 6; i++) {
      if (i != t && check_scale() > 1 && drawn(0, check_scale() - 1)) continue;
      struct shape shape = shape_drawn(types[t], sizes[i][0], sizes[i][1]);
      if (shape.is_right) shape.m = sizes[i][1], shape.n = sizes[i][0];
      shape.in_place = false;
      struct system s;
      system_make(&s, &shape, KIND_TAME);
      wsgemm_handle *h = NULL;
      REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, 1) == WSGEMM_SUCCESS, "handle");
      solve(&s, h);
      char text[200];
      const unsigned long long expected = matrix_digest(&s.stored_x);
      for (int n_threads = 2; n_threads <= 8; n_threads += n_threads < 4 ? 1 : 4)
        for (int policy = 0; policy < 4; policy++) {
          static const wsgemm_policy policies[] = {WSGEMM_POLICY_AUTO, WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS,
                                                   WSGEMM_POLICY_STEAL};
          wsgemm_set_num_threads(h, n_threads), wsgemm_set_policy(h, policies[policy]), wsgemm_set_coarse_factor(h, 1 + policy);
          solve(&s, h);
          CHECK(matrix_digest(&s.stored_x) == expected, "%s: %d threads, policy %d", describe(&shape, text), n_threads, policy);
        }
      for (int64_t r = 0, n = n_right_sides(&s); r < n; r += 1 + n / 5) some_right_sides(&s, h, r, 1);
      wsgemm_destroy(h);
      system_free(&s);
    }
}

/* ---- Memory, fork, stack --------------------------------------------------------------------- */

struct both {
  const struct system *s;
  unsigned long long expected;
};

/* In a child: no workspace is kept from before. */
static void solve_without_memory(void *argument) {
  const struct both *both = argument;
  char text[200];
  atomic_store(&has_no_memory, true);
  solve(both->s, NULL);
  atomic_store(&has_no_memory, false);
  CHECK(matrix_digest(&both->s->stored_x) == both->expected, "%s: without memory", describe(&both->s->shape, text));
}

static void solve_in_child(void *argument) {
  const struct both *both = argument;
  char text[200];
  solve(both->s, NULL);
  CHECK(matrix_digest(&both->s->stored_x) == both->expected, "%s: in a child", describe(&both->s->shape, text));
}

/* The parent learns the bits in a child too, so that it never has a workspace to hand down. */
static unsigned long long *shared_digest;
static void learn(void *system) {
  solve(system, NULL);
  *shared_digest = matrix_digest(&((struct system *)system)->stored_x);
  CHECK(true, "learnt");
}

static void no_memory(void) {
  rng = check_random_from(206);
  shared_digest = mmap(NULL, sizeof *shared_digest, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int t = 0; t < 4; t++)
    for (int turn = 0; turn < 12 / check_scale() + 1; turn++) {
      struct shape shape = shape_drawn(types[t], drawn(70, 420), drawn(30, 120));
      shape.is_right = turn & 1, shape.is_upper = turn & 2, shape.in_place = false;
      shape.op = turn & 4 ? WSGEMM_CONJ_TRANS : WSGEMM_NO_TRANS;
      if (shape.is_right) shape.m = drawn(30, 120), shape.n = drawn(70, 900);
      struct system s;
      system_make(&s, &shape, KIND_TAME);
      check_in_child("the bits", learn, &s);
      struct both both = {&s, *shared_digest};
      check_in_child("no memory", solve_without_memory, &both);
      check_in_child("a child", solve_in_child, &both);
      system_free(&s);
    }
  munmap(shared_digest, sizeof *shared_digest);
}

static void forked(void) {
  rng = check_random_from(207);
  struct shape shape = shape_drawn(WSGEMM_F64, 400, 300);
  shape.is_right = shape.in_place = false;
  struct system s;
  system_make(&s, &shape, KIND_TAME);
  REQUIRE(wsgemm_set_num_threads(NULL, 4) == WSGEMM_SUCCESS, "threads");
  solve(&s, NULL);
  struct both both = {&s, matrix_digest(&s.stored_x)};
  for (int i = 0; i < 3; i++) check_in_child("a child", solve_in_child, &both);
  solve(&s, NULL);
  CHECK(matrix_digest(&s.stored_x) == both.expected, "the parent, afterwards");
  REQUIRE(wsgemm_set_num_threads(NULL, 0) == WSGEMM_SUCCESS, "threads");
  system_free(&s);
}

/* A caller's stack of 48 KiB, with what the C library keeps there, is enough on every path. */
static void *solve_on_thread(void *argument) {
  const struct both *both = argument;
  const ws_call call = ws_call_of(ws_handle(NULL));
  const ws_system system = ws_system_of(both->s);
  ws_cpu_solve(&call, &system, 0);
  return NULL;
}

static void stack_child(void *argument) {
  const struct both *both = argument;
  pthread_attr_t attr;
  pthread_t thread;
  char text[200];
  REQUIRE(pthread_attr_init(&attr) == 0 && pthread_attr_setstacksize(&attr, 48 * 1024) == 0, "attributes");
  system_restore(both->s);
  atomic_store(&has_no_memory, both->expected == 1);
  REQUIRE(pthread_create(&thread, &attr, solve_on_thread, argument) == 0 && pthread_join(thread, NULL) == 0, "thread");
  atomic_store(&has_no_memory, false);
  judge(both->s, describe(&both->s->shape, text), false);
}

static void stack(void) {
  rng = check_random_from(209);
  if (!process_may_fork_beside_threads()) {
    check_skip("this build needs more stack");
    return;
  }
  static const int64_t sizes[][2] = {{40, 40}, {48, 20}, {64, 9}, {200, 1}, {300, 10}};
  for (int t = 0; t < 4; t++)
    for (int i = 0; i < 5; i++)
      for (int is_without = 0; is_without < 2; is_without++) {
        struct shape shape = shape_drawn(types[t], sizes[i][0], sizes[i][1]);
        shape.is_right = false;
        struct system s;
        system_make(&s, &shape, KIND_TAME);
        struct both both = {&s, (unsigned long long)is_without};
        check_in_child("stack", stack_child, &both);
        system_free(&s);
      }
}

/* What a small system packs fits on the stack, whatever the caches: every order, on every row. */
static void small_fits(void) {
  struct rows_of_type rows;
  int n_small = 0;
  for (int t = 0; t < 4; t++) {
    rows_open(&rows, types[t]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int64_t order = 1; order <= 200; order++) {
        const ws_call call = ws_call_of(rows.handle[i]);
        const ws_system system = {.m = order,
                                  .n = 500,
                                  .batch_count = 1,
                                  .a = {.ld = order, .type = types[t], .structure = WS_TRIANGULAR, .stored_upper = order % 2},
                                  .b = {.ld = order, .type = types[t]},
                                  .x = {.ld = order, .type = types[t]}};
        ws_solve v;
        ws_solve_plan plan;
        ws_solve_plan_make(&call, &system, &v, &plan);
        if (plan.path != WS_SOLVE_SMALL) continue;
        const ws_block b = ws_block_at(&v, 0, 0);
        const int64_t bytes = ws_packed_diagonal_bytes(&v, &b) + ws_panel_bytes(&v, plan.panels_n);
        CHECK(bytes <= WS_SOLVE_SMALL_BYTES, "%s, order %d: %d bytes", rows.row[i].name, (int)order, (int)bytes);
        n_small++;
      }
    rows_close(&rows);
  }
  CHECK(n_small >= 100, "only %d are small", n_small);
}

/* The shapes above go every way that there is: what the explanation says. */
static void paths(void) {
  rng = check_random_from(210);
  static const struct {
    int64_t m, n, batch;
    int n_threads;
    const char *path;
  } ways[] = {{300, 1, 1, 1, "trsm direct"},    {20, 40, 1, 1, "trsm small"},     {90, 40, 9, 4, "trsm batch"},
              {300, 130, 1, 4, "trsm blocked"}, {777, 111, 1, 1, "trsm blocked"}, {1100, 20, 1, 8, "trsm split"}};
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
    struct shape shape = shape_drawn(WSGEMM_F64, ways[i].m, ways[i].n);
    shape.batch = ways[i].batch, shape.is_right = false;
    struct system s;
    system_make(&s, &shape, KIND_TAME);
    REQUIRE(wsgemm_set_num_threads(NULL, ways[i].n_threads) == WSGEMM_SUCCESS, "threads");
    const ws_call call = ws_call_of(ws_handle(NULL));
    const ws_system system = ws_system_of(&s);
    char said[1000];
    ws_text text = {said, sizeof said, 0};
    ws_cpu_explain_solve(&call, &system, 0, &text);
    CHECK(strstr(said, ways[i].path), "case %d: not %s but\n%s", (int)i, ways[i].path, said);
    solve(&s, NULL);
    const unsigned long long digest = matrix_digest(result_of(&s));
    REQUIRE(wsgemm_set_num_threads(NULL, 1) == WSGEMM_SUCCESS, "threads");
    solve(&s, NULL);
    CHECK(matrix_digest(result_of(&s)) == digest, "case %d: %s: other bits in one thread", (int)i, ways[i].path);
    system_free(&s);
  }
  REQUIRE(wsgemm_set_num_threads(NULL, 0) == WSGEMM_SUCCESS, "threads");
}

/* ---- Special values -------------------------------------------------------------------------- */

/* A zero on the diagonal makes Inf and NaN of its own unknown and what depends on it, in its right
 * side alone where that is 0 / 0; the lanes that no right side has raise no flag. */
static void zeros_and_flags(void) {
  rng = check_random_from(208);
  for (int t = 0; t < 4; t++)
    for (int64_t k = 1; k <= 40; k += 3) {
      struct shape shape = shape_drawn(types[t], k, drawn(1, 20));
      shape.is_right = shape.is_unit = false;
      struct system s;
      system_make(&s, &shape, KIND_WHOLE);
      const ws_call call = ws_call_of(ws_handle(NULL));
      const ws_system system = ws_system_of(&s);
      system_restore(&s);
      feclearexcept(FE_ALL_EXCEPT);
      ws_cpu_solve(&call, &system, 0);
      char text[200];
      CHECK(!fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_UNDERFLOW), "%s: flags %x", describe(&shape, text),
            (unsigned)fetestexcept(FE_ALL_EXCEPT));
      judge(&s, "flags", true);
      for (int64_t i = 0; i < k; i++) matrix_set(&s.stored_a, i, i, i == k / 2 ? 0 : 1, 0);
      system_restore(&s);
      ws_cpu_solve(&call, &system, 0);
      int64_t n_finite = 0;
      for (int64_t j = 0; j < shape.n; j++) {
        double re, im;
        matrix_get(result_of(&s), k / 2, j, &re, &im);
        n_finite += isfinite(re) && isfinite(im);
      }
      CHECK(n_finite == 0, "%s: %lld quotients by zero are finite", describe(&shape, text), (long long)n_finite);
      system_free(&s);
    }
}

/* x = 1 / 0 is Inf, of any number of right sides, and no more than a division by zero: lanes without a right side are not
 * multiplied by Inf. */
static void flags_of_empty_lanes(void) {
  enum { MOST_N = 39 };
  const float zero = 0;
  const double zero_d = 0;
  for (int layout = 0; layout < 2; layout++)
    for (int64_t n = 1; n <= MOST_N; n++) {
      float b[MOST_N];
      double b_d[MOST_N];
      const wsgemm_layout order = layout ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR;
      const int64_t ld = layout ? n : 1;
      for (int64_t j = 0; j < n; j++) b[j] = 1, b_d[j] = 1;
      feclearexcept(FE_ALL_EXCEPT);
      CHECK(wsgemm_strsm(NULL, order, WSGEMM_LEFT, WSGEMM_UPPER, WSGEMM_NO_TRANS, WSGEMM_NON_UNIT, 1, n, 1, &zero, 1, b, ld) ==
                    WSGEMM_SUCCESS &&
                wsgemm_dtrsm(NULL, order, WSGEMM_LEFT, WSGEMM_UPPER, WSGEMM_NO_TRANS, WSGEMM_NON_UNIT, 1, n, 1, &zero_d, 1, b_d,
                             ld) == WSGEMM_SUCCESS,
            "%s", wsgemm_last_error());
      CHECK(!fetestexcept(FE_INVALID), "%lld right sides, layout %d", (long long)n, layout);
      for (int64_t j = 0; j < n; j++) CHECK(isinf(b[j]) && isinf(b_d[j]), "right side %lld of %lld", (long long)j, (long long)n);
    }
}

/* An Inf off the diagonal makes Inf of the last unknown, of any number of right sides, and raises no flag. */
static void flags_of_infinite_elements(void) {
  enum { MOST_N = 20, MOST_M = 14 };
  for (int kind = 0; kind < 8; kind++) {
    const bool is_upper = kind & 1, is_unit = kind & 2;
    const wsgemm_layout order = kind & 4 ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR;
    for (int64_t m = 2; m <= MOST_M; m++)
      for (int64_t n = 1; n <= MOST_N; n++) {
        float t[MOST_M * MOST_M], b[MOST_M * MOST_N];
        double t_d[MOST_M * MOST_M], b_d[MOST_M * MOST_N];
        const int64_t from = is_upper ? m - 1 : 0, last = m - 1 - from, ld = order == WSGEMM_ROW_MAJOR ? n : m;
        for (int64_t i = 0; i < m * m; i++) t[i] = i % (m + 1) == 0 ? 1 : 0.25F;
        t[order == WSGEMM_ROW_MAJOR ? last * m + from : last + from * m] = INFINITY;
        for (int64_t i = 0; i < m * m; i++) t_d[i] = (double)t[i];
        for (int64_t i = 0; i < m * n; i++) b[i] = 1, b_d[i] = 1;
        feclearexcept(FE_ALL_EXCEPT);
        CHECK(wsgemm_strsm(NULL, order, WSGEMM_LEFT, is_upper ? WSGEMM_UPPER : WSGEMM_LOWER, WSGEMM_NO_TRANS,
                           is_unit ? WSGEMM_UNIT : WSGEMM_NON_UNIT, m, n, 1, t, m, b, ld) == WSGEMM_SUCCESS &&
                  wsgemm_dtrsm(NULL, order, WSGEMM_LEFT, is_upper ? WSGEMM_UPPER : WSGEMM_LOWER, WSGEMM_NO_TRANS,
                               is_unit ? WSGEMM_UNIT : WSGEMM_NON_UNIT, m, n, 1, t_d, m, b_d, ld) == WSGEMM_SUCCESS,
              "%s", wsgemm_last_error());
        CHECK(!fetestexcept(FE_INVALID), "kind %d, %lld unknowns, %lld right sides", kind, (long long)m, (long long)n);
        for (int64_t j = 0; j < n; j++) {
          const int64_t at = order == WSGEMM_ROW_MAJOR ? last * n + j : last + j * m;
          CHECK(isinf(b[at]) && isinf(b_d[at]), "right side %lld of %lld", (long long)j, (long long)n);
        }
      }
  }
}

static const struct check_case cases[] = {{"flags_of_empty_lanes", flags_of_empty_lanes},
                                          {"flags_of_infinite_elements", flags_of_infinite_elements},
                                          {"combinations", combinations},
                                          {"edges", edges},
                                          {"scalings", scalings},
                                          {"batches", batches},
                                          {"bits", bits},
                                          {"bits_of_few", bits_of_few},
                                          {"no_memory", no_memory},
                                          {"forked", forked},
                                          {"stack", stack},
                                          {"small_fits", small_fits},
                                          {"paths", paths},
                                          {"zeros_and_flags", zeros_and_flags}};
CHECK_MAIN("trsm", cases)
