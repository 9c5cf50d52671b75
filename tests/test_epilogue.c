/* test_epilogue.c - bias, activation, scale, residual and column sums of wsgemm_gemm against the same steps one after the other: a plain
 * product (for half precision into floats, so that nothing is rounded early), then each step rounded as the header says. Without an
 * activation, and with RELU, the result is that number; the other activations may be an ulp off, so C lies between what the neighbours of
 * the exact one give.
 *
 * A batch is one matrix here, whose products follow each other; so its guards are those of a matrix. */
#include "rows.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What stands in an arena of its own: two operands, C, the plain product, and the parts of the epilogue. */
enum { A, B, C, PLAIN, BIAS, RESIDUAL, SUMS, N_ARENAS };
enum { MOST = 140, MOST_K = 500, MOST_BATCH = 3 };
static struct arena arenas[N_ARENAS];
static struct check_random dice;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&dice, low, high); }

static void open_arenas(void) {
  for (int i = 0; i < N_ARENAS; i++)
    if (!arenas[i].low) arenas[i] = arena_new((size_t)(MOST + MAX_PAD) * (MOST_K + MAX_PAD) * MOST_BATCH * sizeof(double));
}

/* A type of A and B, and of C. */
static const wsgemm_type type_pairs[][2] = {{WSGEMM_F32, WSGEMM_F32},  {WSGEMM_F64, WSGEMM_F64}, {WSGEMM_F16, WSGEMM_F16},
                                            {WSGEMM_F16, WSGEMM_BF16}, {WSGEMM_F16, WSGEMM_F32}, {WSGEMM_BF16, WSGEMM_BF16},
                                            {WSGEMM_BF16, WSGEMM_F16}, {WSGEMM_BF16, WSGEMM_F32}};
enum { N_PAIRS = sizeof type_pairs / sizeof type_pairs[0] };
static const wsgemm_epilogue activations[] = {WSGEMM_EPILOGUE_NONE, WSGEMM_EPILOGUE_RELU, WSGEMM_EPILOGUE_GELU_TANH,
                                              WSGEMM_EPILOGUE_GELU_ERF, WSGEMM_EPILOGUE_SILU};
enum { N_ACTIVATIONS = sizeof activations / sizeof activations[0] };
static bool is_exact(wsgemm_epilogue activation) { return activation <= WSGEMM_EPILOGUE_RELU; }

/* ---- the steps ------------------------------------------------------------------------------------------------------------------ */

/* A number of the type that sums are made in. Products and sums of two floats are exact enough in double to be rounded once more. */
static double step(bool is_double, double x) {
  volatile double rounded = x; /* volatile: no compiler makes one step of two */
  return is_double ? rounded : (double)(float)rounded;
}

static long double activated(wsgemm_epilogue activation, long double z) {
  if (isnan(z)) return z;
  if (isinf(z)) return z > 0 || activation == WSGEMM_EPILOGUE_NONE ? z : 0;
  switch (activation) {
  case WSGEMM_EPILOGUE_NONE:
    return z;
  case WSGEMM_EPILOGUE_RELU:
    return z < 0 ? 0 : z;
  case WSGEMM_EPILOGUE_GELU_TANH:
    /* (1 + tanh(u)) / 2 without what cancels below 0 */
    return z / (1 + expl(-2 * sqrtl(2 / acosl(-1)) * (z + 0.044715L * z * z * z)));
  case WSGEMM_EPILOGUE_GELU_ERF:
    return z / 2 * erfcl(-z / sqrtl(2));
  case WSGEMM_EPILOGUE_SILU:
    return z / (1 + expl(-z));
  }
  return z;
}

/* The least and the largest that the activation may be. */
static void activation_bounds(wsgemm_epilogue activation, bool is_double, double z, double bounds[2]) {
  const long double exact = activated(activation, z);
  if (is_exact(activation) || !isfinite(z)) {
    bounds[0] = bounds[1] = (double)exact;
  } else if (is_double) {
    const long double error = 8 * fabsl((long double)z) * 0x1p-53L + 0x1p-1074L;
    bounds[0] = (double)(exact - error), bounds[1] = (double)(exact + error);
  } else {
    bounds[0] = (double)nextafterf((float)exact, -INFINITY), bounds[1] = (double)nextafterf((float)exact, INFINITY);
  }
}

static bool same(double x, double y) { return isnan(x) ? isnan(y) : x == y; }

/* ---- one case ------------------------------------------------------------------------------------------------------------------- */

/* What a case has beside its descriptor. */
struct parts {
  bool has_bias, has_residual, residual_is_c, has_sums;
  int pad[N_ARENAS];
  enum place place[N_ARENAS];
  struct matrix stored[N_ARENAS];
};

/* A vector for each product: the columns of a matrix. */
static struct matrix vectors_place(int arena, wsgemm_type type, int64_t n, int64_t count, const struct parts *parts) {
  return matrix_place(&arenas[arena], type, WSGEMM_COL_MAJOR, n, count, (n > 0 ? n : 1) + parts->pad[arena], parts->place[arena]);
}

/* The products of a batch one after the other: below each other, or beside each other. */
static struct matrix batch_place(int arena, wsgemm_type type, const wsgemm_gemm_desc *d, int64_t ld, const struct parts *parts) {
  const bool below = d->layout == WSGEMM_ROW_MAJOR;
  return matrix_place(&arenas[arena], type, d->layout, d->m * (below ? d->batch_count : 1), d->n * (below ? 1 : d->batch_count),
                      ld, parts->place[arena]);
}

static int64_t batch_stride(const wsgemm_gemm_desc *d, int64_t ld) { return ld * (d->layout == WSGEMM_ROW_MAJOR ? d->m : d->n); }

static double get(const struct matrix *x, const wsgemm_gemm_desc *d, int64_t batch, int64_t i, int64_t j) {
  double re, im;
  const bool below = d->layout == WSGEMM_ROW_MAJOR;
  matrix_get(x, i + (below ? batch * d->m : 0), j + (below ? 0 : batch * d->n), &re, &im);
  return re;
}

static double get_of(const struct matrix *vectors, int64_t batch, int64_t i) {
  double re, im;
  matrix_get(vectors, i, batch, &re, &im);
  return re;
}

static void fill(struct matrix *x, double scale) {
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++) matrix_set(x, i, j, scale * check_random_unit(&dice), 0);
}

static bool is_trans(wsgemm_op op) { return op == WSGEMM_TRANS; }

static bool reads_c(const wsgemm_gemm_desc *d) {
  double beta[2];
  scalar_get(d->type_a, &d->beta, beta);
  return beta[0] != 0;
}

/* Stores all that a case reads, and makes its plain product: floats for half precision, by the same kernels in the same order. */
static void store(wsgemm_handle *handle, wsgemm_gemm_desc *d, struct parts *parts) {
  struct matrix *x = parts->stored;
  const bool is_double = d->type_c == WSGEMM_F64;
  const int64_t rows_a = is_trans(d->transa) ? d->k : d->m, cols_a = is_trans(d->transa) ? d->m : d->k;
  const int64_t rows_b = is_trans(d->transb) ? d->n : d->k, cols_b = is_trans(d->transb) ? d->k : d->n;
  const wsgemm_gemm_desc least = gemm_desc(d->type_a, d->layout, d->transa, d->transb, d->m, d->n, d->k);
  d->lda = least.lda + parts->pad[A], d->ldb = least.ldb + parts->pad[B], d->ldc = least.ldc + parts->pad[C];
  d->ld_residual = parts->residual_is_c ? d->ldc : least.ldc + parts->pad[RESIDUAL];
  x[A] = matrix_place(&arenas[A], d->type_a, d->layout, rows_a, cols_a, d->lda, parts->place[A]);
  x[B] = matrix_place(&arenas[B], d->type_a, d->layout, rows_b, cols_b, d->ldb, parts->place[B]);
  x[C] = batch_place(C, d->type_c, d, d->ldc, parts);
  fill(&x[A], 1), fill(&x[B], 1);
  d->a = x[A].elements, d->b = x[B].elements, d->c = x[C].elements;
  d->stride_a = d->stride_b = 0, d->stride_c = batch_stride(d, d->ldc);
  x[BIAS] = vectors_place(BIAS, d->type_bias, d->bias_per == WSGEMM_BIAS_PER_ROW ? d->m : d->n, d->batch_count, parts);
  fill(&x[BIAS], 2);
  if (parts->has_bias) d->bias = x[BIAS].elements, d->stride_bias = x[BIAS].ld;
  x[RESIDUAL] = parts->residual_is_c ? x[C] : batch_place(RESIDUAL, d->type_c, d, d->ld_residual, parts);
  if (!parts->residual_is_c) fill(&x[RESIDUAL], 3);
  if (parts->has_residual) d->residual = x[RESIDUAL].elements, d->stride_residual = batch_stride(d, d->ld_residual);
  x[SUMS] = vectors_place(SUMS, is_double ? WSGEMM_F64 : WSGEMM_F32, d->n, d->batch_count, parts);
  matrix_store_nan(&x[SUMS]);
  if (parts->has_sums) d->column_sums = x[SUMS].elements, d->stride_column_sums = x[SUMS].ld;
  if (reads_c(d) || (parts->has_residual && parts->residual_is_c))
    fill(&x[C], 3);
  else
    matrix_store_nan(&x[C]);
  wsgemm_gemm_desc plain = gemm_desc(d->type_a, d->layout, d->transa, d->transb, d->m, d->n, d->k);
  plain.type_c = is_double ? WSGEMM_F64 : WSGEMM_F32;
  plain.alpha = d->alpha, plain.beta = d->beta, plain.batch_count = d->batch_count;
  plain.a = d->a, plain.lda = d->lda, plain.b = d->b, plain.ldb = d->ldb;
  x[PLAIN] = batch_place(PLAIN, plain.type_c, d, plain.ldc, parts);
  for (int64_t i = 0; i < x[C].rows; i++)
    for (int64_t j = 0; j < x[C].cols; j++) {
      double re, im;
      matrix_get(&x[C], i, j, &re, &im);
      matrix_set(&x[PLAIN], i, j, re, 0);
    }
  plain.c = x[PLAIN].elements, plain.stride_c = batch_stride(d, plain.ldc);
  REQUIRE(wsgemm_gemm(handle, &plain) == WSGEMM_SUCCESS, "the plain product: %s", wsgemm_last_error());
}

static const char *describe(const wsgemm_gemm_desc *d, char text[2 * DESCRIPTION_BYTES]) {
  char product[DESCRIPTION_BYTES];
  snprintf(text, 2 * DESCRIPTION_BYTES, "%s batch=%lld act=%d bias=%s%c out_scale=%g residual=%s sums=%d",
           gemm_describe(d, product), (long long)d->batch_count, (int)d->epilogue,
           !d->bias                             ? "none "
           : d->bias_per == WSGEMM_BIAS_PER_ROW ? "row "
                                                : "column ",
           type_letter(d->type_bias), d->out_scale,
           !d->residual          ? "none"
           : d->residual == d->c ? "c"
                                 : "other",
           d->column_sums != NULL);
  return text;
}

static bool judge_sums(const wsgemm_gemm_desc *d, const struct parts *parts) {
  const struct matrix *c = &parts->stored[C], *sums = &parts->stored[SUMS];
  const long double u = d->type_c == WSGEMM_F64 ? 0x1p-53L : 0x1p-24L;
  bool passed = true;
  for (int64_t batch = 0; batch < d->batch_count; batch++)
    for (int64_t j = 0; j < d->n; j++) {
      long double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < d->m; i++)
        sum += (long double)get(c, d, batch, i, j), magnitude += fabsl((long double)get(c, d, batch, i, j));
      const double got = get_of(sums, batch, j);
      char text[2 * DESCRIPTION_BYTES];
      if (!(fabsl((long double)got - sum) <= (long double)d->m * u * magnitude))
        passed = CHECK(false, "%s: the sum of column %lld is %.9g, not %.9Lg", describe(d, text), (long long)j, got, sum);
    }
  return passed;
}

static bool judge(const wsgemm_gemm_desc *d, const struct parts *parts, const double *residual_before) {
  const bool is_double = d->type_c == WSGEMM_F64;
  const double out_scale = step(is_double, d->out_scale);
  const struct matrix *x = parts->stored;
  int64_t at = 0;
  int n_wrong = 0;
  char text[2 * DESCRIPTION_BYTES];
  for (int64_t batch = 0; batch < d->batch_count; batch++)
    for (int64_t i = 0; i < d->m; i++)
      for (int64_t j = 0; j < d->n; j++, at++) {
        double z = get(&x[PLAIN], d, batch, i, j), bounds[2];
        if (d->bias) z = step(is_double, z + get_of(&x[BIAS], batch, d->bias_per == WSGEMM_BIAS_PER_ROW ? i : j));
        activation_bounds(d->epilogue, is_double, z, bounds);
        for (int side = 0; side < 2; side++) {
          bounds[side] = step(is_double, out_scale * bounds[side]);
          if (d->residual) bounds[side] = step(is_double, bounds[side] + residual_before[at]);
          bounds[side] = type_round(d->type_c, bounds[side]);
        }
        const double got = get(&x[C], d, batch, i, j);
        const bool between = (got >= bounds[0] && got <= bounds[1]) || (got >= bounds[1] && got <= bounds[0]);
        if (!(is_exact(d->epilogue) ? same(got, bounds[0]) : between) && n_wrong++ == 0)
          CHECK(false, "%s: element (%lld, %lld) of product %lld is %.17g, not %.17g .. %.17g", describe(d, text), (long long)i,
                (long long)j, (long long)batch, got, bounds[0], bounds[1]);
      }
  bool passed = CHECK(n_wrong == 0, "%s: %d elements are wrong", describe(d, text), n_wrong);
  for (int arena = 0; arena < N_ARENAS; arena++) {
    int64_t byte_idx = 0;
    if (arena != PLAIN && !(arena == RESIDUAL && parts->residual_is_c) && !matrix_guard_intact(&x[arena], &byte_idx))
      passed =
          CHECK(false, "%s: byte %lld from the start of array %d was written", describe(d, text), (long long)byte_idx, arena);
  }
  return d->column_sums ? judge_sums(d, parts) && passed : passed;
}

/* Stores, calls, judges. */
static bool run_parts(wsgemm_handle *handle, wsgemm_gemm_desc *d, struct parts *parts) {
  static double residual[MOST * MOST * MOST_BATCH];
  char text[2 * DESCRIPTION_BYTES];
  store(handle, d, parts);
  int64_t at = 0;
  for (int64_t batch = 0; d->residual && batch < d->batch_count; batch++)
    for (int64_t i = 0; i < d->m; i++)
      for (int64_t j = 0; j < d->n; j++) residual[at++] = get(&parts->stored[RESIDUAL], d, batch, i, j);
  const unsigned long long digests[] = {matrix_digest(&parts->stored[A]), matrix_digest(&parts->stored[B]),
                                        matrix_digest(&parts->stored[BIAS])};
  feclearexcept(FE_ALL_EXCEPT);
  const wsgemm_status status = wsgemm_gemm(handle, d);
  const int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  if (!CHECK(status == WSGEMM_SUCCESS, "%s: %s", describe(d, text), wsgemm_last_error())) return false;
  CHECK(raised == 0, "%s: floating-point exceptions %#x were raised", describe(d, text), (unsigned)raised);
  CHECK(digests[0] == matrix_digest(&parts->stored[A]) && digests[1] == matrix_digest(&parts->stored[B]) &&
            digests[2] == matrix_digest(&parts->stored[BIAS]),
        "%s: A, B or the bias was written", describe(d, text));
  return judge(d, parts, residual);
}

static struct parts draw_parts(wsgemm_gemm_desc *d) {
  static const double scales[] = {1, 1, 0.5, -3, 0.3};
  struct parts parts = {.has_bias = drawn(0, 2) > 0, .has_residual = drawn(0, 1), .has_sums = drawn(0, 1)};
  parts.residual_is_c = parts.has_residual && drawn(0, 1);
  for (int i = 0; i < N_ARENAS; i++)
    parts.pad[i] = (int)(drawn(0, 1) * drawn(1, MAX_PAD)), parts.place[i] = (enum place)drawn(0, 2);
  d->bias_per = (wsgemm_bias)drawn(0, 1);
  d->type_bias = type_is_half(d->type_c) && drawn(0, 1) ? WSGEMM_F32 : d->type_c;
  d->out_scale = scales[drawn(0, 4)];
  return parts;
}

/* Every pair of types x activation x layout x part of the epilogue, at sizes round the edges of tiles. */
static void against_steps(void) {
  static const int64_t sizes[] = {1, 2, 3, 7, 16, 17, 31, 33, 64, 65, 100, MOST};
  static const int64_t ks[] = {0, 1, 3, 8, 40, MOST_K};
  static const double alphas[] = {1, 0.75, 0}, betas[] = {0, 1, -0.5};
  open_arenas();
  dice = check_random_from(160);
  for (int pair = 0; pair < N_PAIRS; pair++)
    for (int act = 0; act < N_ACTIVATIONS; act++)
      for (int layout = 0; layout < 2; layout++)
        for (int turn = 0; turn < 60 / check_scale() + 3; turn++) {
          const wsgemm_type type = type_pairs[pair][0];
          const int most = turn % 8 == 0 ? 11 : 6;
          wsgemm_gemm_desc d = gemm_desc(type, all_layouts[layout], draw_op(type, &dice), draw_op(type, &dice),
                                         sizes[drawn(0, most)], sizes[drawn(0, most)], ks[drawn(0, 5)]);
          d.type_c = type_pairs[pair][1];
          d.epilogue = activations[act];
          d.alpha = scalar_make(type, alphas[drawn(0, 2)], 0), d.beta = scalar_make(type, betas[drawn(0, 2)], 0);
          d.batch_count = drawn(0, 3) ? 1 : drawn(1, MOST_BATCH);
          struct parts parts = draw_parts(&d);
          if (!run_parts(NULL, &d, &parts)) break;
        }
}

/* ---- activations over the whole range ------------------------------------------------------------------------------------------ */

/* C = act(C), by k = 0 and beta = 1, of n numbers in a row; also what flags were raised. */
static int activate(wsgemm_type type, wsgemm_type type_c, wsgemm_epilogue activation, int64_t n, void *c) {
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, n, 1, 0);
  d.type_c = type_c, d.beta = scalar_make(type, 1, 0), d.epilogue = activation, d.c = c;
  feclearexcept(FE_ALL_EXCEPT);
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
}

static void judge_activations(wsgemm_type type_c, wsgemm_epilogue activation, int64_t n, const struct matrix *before,
                              const struct matrix *after) {
  int n_wrong = 0;
  for (int64_t i = 0; i < n; i += check_scale()) { /* a slow machine judges fewer of them */
    double bounds[2];
    const double z = get_of(before, 0, i), got = get_of(after, 0, i);
    activation_bounds(activation, type_c == WSGEMM_F64, z, bounds);
    for (int side = 0; side < 2; side++) bounds[side] = type_round(type_c, bounds[side]);
    const bool right = isnan(z) ? isnan(got) : got >= bounds[0] && got <= bounds[1];
    if (!right && n_wrong++ == 0)
      CHECK(false, "%c: activation %d of %.17g is %.17g, not %.17g .. %.17g", type_letter(type_c), (int)activation, z, got,
            bounds[0], bounds[1]);
  }
  CHECK(n_wrong == 0, "%c: activation %d: %d of %lld numbers are wrong", type_letter(type_c), (int)activation, n_wrong,
        (long long)n);
}

/* All halves; floats and doubles of every size and sign, with NaN, Inf, zeros, the least and the largest among them. Nothing finite or
 * infinite raises more than underflow. */
static void whole_range(void) {
  enum { N = 65536 };
  static const double strange[] = {0, -0.0, INFINITY, -INFINITY, 1e30, -1e30, -40, 40, -50, 50, -87.5, -104, -745, -800.5, 1e-40};
  enum { N_STRANGE = sizeof strange / sizeof strange[0] };
  struct arena places[2] = {arena_new(N * sizeof(double)), arena_new(N * sizeof(double))};
  dice = check_random_from(161);
  for (int pair = 0; pair < N_PAIRS; pair++)
    for (int act = 0; act < N_ACTIVATIONS; act++)
      for (int with_nan = 0; with_nan < 2; with_nan++) {
        const wsgemm_type type = type_pairs[pair][0], type_c = type_pairs[pair][1];
        struct matrix x[2];
        for (int i = 0; i < 2; i++) x[i] = matrix_place(&places[i], type_c, WSGEMM_COL_MAJOR, N, 1, N, PLACE_END);
        for (int64_t i = 0; i < N; i++) {
          double z = ldexp(check_random_unit(&dice), (int)drawn(-150, 12));
          if (i % 8 == 0)
            z = type_c == WSGEMM_F64 ? ldexp(check_random_unit(&dice), (int)drawn(-1074, 1024)) : strange[i % N_STRANGE];
          if (i < N_STRANGE) z = strange[i];
          if (i == N_STRANGE) z = type_largest(type_c);
          if (i == N_STRANGE + 1) z = type_least(type_c);
          if (with_nan && i % 5 == 0) z = (double)NAN;
          matrix_set(&x[0], i, 0, z, 0);
          if (type_is_half(type_c)) {
            const uint16_t bits = (uint16_t)i;
            memcpy(x[0].elements + 2 * i, &bits, sizeof bits);
            if (!with_nan && isnan(get_of(&x[0], 0, i))) matrix_set(&x[0], i, 0, 0.25, 0);
          }
        }
        memcpy(x[1].elements, x[0].elements, matrix_extent_bytes(&x[0]));
        const int raised = activate(type, type_c, activations[act], N, x[1].elements);
        /* Signalling NaNs may raise INVALID. */
        if (!with_nan) CHECK(raised == 0, "%c: activation %d raised %#x", type_letter(type_c), act, (unsigned)raised);
        judge_activations(type_c, activations[act], N, &x[0], &x[1]);
      }
  arena_free(&places[0]), arena_free(&places[1]);
}

/* NaN and Inf go through bias, scale and residual as through sums; column sums too. */
static void spreading(void) {
  for (int pair = 0; pair < N_PAIRS; pair++) {
    const wsgemm_type type_c = type_pairs[pair][1], type_sums = type_c == WSGEMM_F64 ? WSGEMM_F64 : WSGEMM_F32;
    struct arena places[4];
    struct matrix c, bias, residual, sums;
    for (int i = 0; i < 4; i++) places[i] = arena_new(4096);
    c = matrix_place(&places[0], type_c, WSGEMM_COL_MAJOR, 3, 4, 3, PLACE_END);
    bias = matrix_place(&places[1], type_c, WSGEMM_COL_MAJOR, 4, 1, 4, PLACE_END);
    residual = matrix_place(&places[2], type_c, WSGEMM_COL_MAJOR, 3, 4, 3, PLACE_END);
    sums = matrix_place(&places[3], type_sums, WSGEMM_COL_MAJOR, 4, 1, 4, PLACE_END);
    static const double biases[4] = {NAN, INFINITY, -INFINITY, 1};
    for (int j = 0; j < 4; j++) {
      matrix_set(&bias, j, 0, biases[j], 0);
      for (int i = 0; i < 3; i++)
        matrix_set(&residual, i, j, j == 1 && i == 1 ? -(double)INFINITY : j == 3 && i == 2 ? (double)NAN : 5, 0);
    }
    matrix_store_nan(&c); /* beta = 0: not read */
    wsgemm_gemm_desc d = gemm_desc(type_pairs[pair][0], WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 3, 4, 0);
    d.type_c = type_c, d.type_bias = type_c, d.bias_per = WSGEMM_BIAS_PER_COLUMN, d.bias = bias.elements;
    d.residual = residual.elements, d.ld_residual = 3, d.column_sums = sums.elements, d.c = c.elements;
    d.epilogue = WSGEMM_EPILOGUE_RELU, d.out_scale = 2;
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    static const double expected[4][3] = {{NAN, NAN, NAN}, {INFINITY, NAN, INFINITY}, {5, 5, 5}, {7, 7, NAN}};
    static const double expected_sums[4] = {NAN, NAN, 15, NAN};
    for (int j = 0; j < 4; j++) {
      for (int i = 0; i < 3; i++) {
        double re, im;
        matrix_get(&c, i, j, &re, &im);
        CHECK(same(re, expected[j][i]), "%c: element (%d, %d) is %g, not %g", type_letter(type_c), i, j, re, expected[j][i]);
      }
      CHECK(same(get_of(&sums, 0, j), expected_sums[j]), "%c: sum %d is %g", type_letter(type_c), j, get_of(&sums, 0, j));
    }
    for (int i = 0; i < 4; i++) arena_free(&places[i]);
  }
}

/* ---- bits ------------------------------------------------------------------------------------------------------------------------ */

/* Neither threads nor policy nor COARSE_FACTOR change a bit of C or of the sums; those of a column are the same in both layouts. */
static void bits(void) {
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL};
  enum { M = 520, N = 330, K = 60, BATCH = 2, ROOM = M * N * BATCH };
  const int N_TURNS = 8 / check_scale() + 2;
  static double c[ROOM], c_before[ROOM], first[ROOM], sums[(M + N) * BATCH], first_sums[(M + N) * BATCH];
  static double a[M * K], b[K * N], bias[M + N];
  dice = check_random_from(162);
  for (int pair = 0; pair < N_PAIRS; pair++) {
    const wsgemm_type type = type_pairs[pair][0], type_c = type_pairs[pair][1];
    const struct arena of_a = {(unsigned char *)a, sizeof a}, of_b = {(unsigned char *)b, sizeof b},
                       of_c = {(unsigned char *)c_before, sizeof c_before}, of_bias = {(unsigned char *)bias, sizeof bias};
    struct matrix x[] = {{type, true, M, K, M, (unsigned char *)a, &of_a},
                         {type, true, K, N, K, (unsigned char *)b, &of_b},
                         {type_c, true, M, N * BATCH, M, (unsigned char *)c_before, &of_c},
                         {type_c, true, M, 1, M, (unsigned char *)bias, &of_bias}};
    for (int i = 0; i < 4; i++) fill(&x[i], 1);
    for (int turn = 0; turn < 2 * N_TURNS; turn++) {
      const bool is_first = turn % N_TURNS == 0;
      wsgemm_gemm_desc d = gemm_desc(type, all_layouts[turn / N_TURNS], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
      d.type_c = type_c, d.a = a, d.b = b, d.c = c, d.stride_c = M * N, d.batch_count = BATCH;
      d.beta = scalar_make(type, 0.5, 0), d.epilogue = WSGEMM_EPILOGUE_GELU_ERF;
      d.bias = bias, d.type_bias = type_c, d.residual = c, d.ld_residual = d.ldc, d.stride_residual = M * N, d.out_scale = 0.7;
      d.column_sums = sums, d.stride_column_sums = N;
      memcpy(c, c_before, sizeof c);
      wsgemm_handle *handle = NULL;
      REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS, "handle");
      wsgemm_set_num_threads(handle, is_first ? 1 : (int)drawn(2, 9));
      wsgemm_set_policy(handle, policies[turn % 3]);
      wsgemm_set_coarse_factor(handle, (int)drawn(0, 5));
      CHECK(wsgemm_gemm(handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      wsgemm_destroy(handle);
      const size_t bytes = (size_t)ROOM * type_bytes(type_c);
      if (is_first) memcpy(first, c, bytes), memcpy(first_sums, sums, sizeof sums);
      CHECK(memcmp(first, c, bytes) == 0 && memcmp(first_sums, sums, sizeof sums) == 0,
            "%c to %c: bits change with threads, policy or COARSE_FACTOR", type_letter(type), type_letter(type_c));
    }
  }
}

/* The sum of a column has the same bits whether its elements lie beside each other or not. */
static void sums_in_both_layouts(void) {
  enum { M = 1100, N = 70 };
  open_arenas();
  dice = check_random_from(163);
  for (int pair = 0; pair < N_PAIRS; pair++)
    for (int turn = 0; turn < 12; turn++) {
      const wsgemm_type type_c = type_pairs[pair][1];
      const int64_t m = turn ? drawn(1, turn % 3 ? 40 : M) : M, n = turn ? drawn(1, N) : N;
      static double sums[2][N];
      struct matrix x[2];
      for (int layout = 0; layout < 2; layout++) {
        x[layout] = matrix_place(&arenas[layout], type_c, all_layouts[layout], m, n, layout ? n : m, PLACE_END);
        for (int64_t i = 0; i < m; i++)
          for (int64_t j = 0; j < n; j++) {
            double re = check_random_unit(&dice), im;
            if (layout) matrix_get(&x[0], i, j, &re, &im);
            matrix_set(&x[layout], i, j, re, 0);
          }
        wsgemm_gemm_desc d = gemm_desc(type_pairs[pair][0], all_layouts[layout], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, 0);
        d.type_c = type_c, d.beta = scalar_make(d.type_a, 1, 0), d.c = x[layout].elements, d.column_sums = sums[layout];
        CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      }
      const size_t bytes = (size_t)n * (type_c == WSGEMM_F64 ? sizeof(double) : sizeof(float));
      CHECK(memcmp(sums[0], sums[1], bytes) == 0, "%c: m = %lld, n = %lld: sums of rows and of columns differ",
            type_letter(type_c), (long long)m, (long long)n);
    }
}

/* ---- what is taken and what is refused ------------------------------------------------------------------------------------------ */

/* A descriptor of the first version is taken, not read beyond its end, and may have an activation. */
static void first_version(void) {
  double a[2] = {-3, 2}, b[1] = {2}, c[2] = {7, 7};
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2, 1, 1);
  d.a = a, d.b = b, d.c = c;
  d.struct_bytes = WSGEMM_GEMM_DESC_BASE_BYTES;
  CHECK(d.struct_bytes == 184, "the first version had 184 bytes, not %zu", d.struct_bytes);
  struct arena place = arena_new(d.struct_bytes);
  wsgemm_gemm_desc *shorter = (void *)(place.low + place.bytes - d.struct_bytes);
  memcpy((void *)shorter, &d, d.struct_bytes);
  CHECK(wsgemm_gemm(NULL, shorter) == WSGEMM_SUCCESS && c[0] == -6 && c[1] == 4, "%s: %g %g", wsgemm_last_error(), c[0], c[1]);
  shorter->epilogue = WSGEMM_EPILOGUE_RELU;
  CHECK(wsgemm_gemm(NULL, shorter) == WSGEMM_SUCCESS && c[0] == 0 && c[1] == 4, "%s: %g %g", wsgemm_last_error(), c[0], c[1]);
  char text[1024];
  size_t bytes;
  wsgemm_explain(NULL, shorter, text, sizeof text);
  CHECK(strstr(text, "epilogue: relu\n") != NULL, "%s", text);
  CHECK(wsgemm_get_workspace_size(NULL, shorter, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  arena_free(&place);
}

enum { BAD_M = 3, BAD_N = 4, BAD_K = 5 };
static unsigned char memory[8192] __attribute__((aligned(64)));
static unsigned char *const c_memory = memory + 1024, *const elsewhere = memory + 4096;

struct spoiled {
  const char *what;
  void (*spoil)(wsgemm_gemm_desc *d);
  wsgemm_status answer;
  const char *names, *least; /* stand in last_error */
};
#define SPOIL(name, ...) \
  static void name(wsgemm_gemm_desc *d) { __VA_ARGS__; }
SPOIL(activation_5, d->epilogue = (wsgemm_epilogue)5)
SPOIL(activation_negative, d->epilogue = (wsgemm_epilogue)-1)
SPOIL(bias_per_2, d->bias_per = (wsgemm_bias)2)
SPOIL(type_bias_6, d->type_bias = (wsgemm_type)6)
SPOIL(type_bias_other, d->type_bias = d->type_c == WSGEMM_F64 ? WSGEMM_F32 : WSGEMM_F64)
SPOIL(type_bias_half, d->type_bias = d->type_c == WSGEMM_F16 ? WSGEMM_BF16 : WSGEMM_F16)
SPOIL(ld_residual_small, d->ld_residual = d->ldc - 1)
SPOIL(ld_residual_zero, d->ld_residual = 0)
SPOIL(ld_residual_overflow, d->ld_residual = INT64_MAX / 2)
SPOIL(stride_bias_overflow, d->batch_count = 3, d->stride_bias = INT64_MIN)
SPOIL(stride_residual_overflow, d->batch_count = 3, d->stride_residual = INT64_MAX / 2)
SPOIL(stride_sums_overflow, d->batch_count = 3, d->stride_column_sums = INT64_MAX / 2)
SPOIL(ldc_before_ld_residual, d->ldc = 0, d->ld_residual = 0)
SPOIL(ld_residual_before_pointers, d->ld_residual = 0, d->c = NULL)
SPOIL(c_null, d->c = NULL)
SPOIL(a_null, d->a = NULL)

static const struct spoiled table[] = {
    {"activation 5", activation_5, WSGEMM_INVALID_VALUE, "epilogue is 5", "0 .. 4"},
    {"activation -1", activation_negative, WSGEMM_INVALID_VALUE, "epilogue is -1", "0 .. 4"},
    {"bias_per 2", bias_per_2, WSGEMM_INVALID_VALUE, "bias_per is 2", "0 .. 1"},
    {"type_bias 6", type_bias_6, WSGEMM_INVALID_VALUE, "type_bias is 6", "0 .. 5"},
    {"a bias of another size", type_bias_other, WSGEMM_NOT_SUPPORTED, "type_bias", ""},
    {"a bias of another half", type_bias_half, WSGEMM_NOT_SUPPORTED, "type_bias", ""},
    {"ld_residual one too small", ld_residual_small, WSGEMM_INVALID_VALUE, "ld_residual", "at least"},
    {"ld_residual 0", ld_residual_zero, WSGEMM_INVALID_VALUE, "ld_residual is 0", "at least"},
    {"ld_residual overflows", ld_residual_overflow, WSGEMM_INVALID_VALUE, "ld_residual", "2^63"},
    {"stride_bias overflows", stride_bias_overflow, WSGEMM_INVALID_VALUE, "stride_bias", "2^63"},
    {"stride_residual overflows", stride_residual_overflow, WSGEMM_INVALID_VALUE, "stride_residual", "2^63"},
    {"stride_column_sums overflows", stride_sums_overflow, WSGEMM_INVALID_VALUE, "stride_column_sums", "2^63"},
    {"ldc comes first", ldc_before_ld_residual, WSGEMM_INVALID_VALUE, "ldc is 0", ""},
    {"pointers come last", ld_residual_before_pointers, WSGEMM_INVALID_VALUE, "ld_residual", ""},
    {"no C", c_null, WSGEMM_INVALID_POINTER, "c is NULL", ""},
    {"no A", a_null, WSGEMM_INVALID_POINTER, "a is NULL", ""},
};

/* A good call with everything: C in the middle of the memory, all else elsewhere. */
static wsgemm_gemm_desc good_call(const wsgemm_type types[2], wsgemm_layout layout) {
  wsgemm_gemm_desc d = gemm_desc(types[0], layout, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, BAD_M, BAD_N, BAD_K);
  d.type_c = types[1], d.beta = scalar_make(types[0], 1, 0);
  d.c = c_memory, d.a = elsewhere, d.b = elsewhere + 512;
  d.bias = elsewhere + 1024, d.type_bias = types[1], d.bias_per = WSGEMM_BIAS_PER_COLUMN;
  d.residual = elsewhere + 1536, d.ld_residual = d.ldc;
  d.column_sums = elsewhere + 2048, d.epilogue = WSGEMM_EPILOGUE_SILU;
  return d;
}

static void refused(void) {
  for (size_t row = 0; row < sizeof table / sizeof table[0]; row++)
    for (int pair = 0; pair < N_PAIRS; pair++)
      for (int layout = 0; layout < 2; layout++) {
        wsgemm_gemm_desc d = good_call(type_pairs[pair], all_layouts[layout]);
        memset(memory, 0, sizeof memory);
        memset(c_memory, 0x11, 512), memset(elsewhere + 2048, 0x11, 512);
        table[row].spoil(&d);
        const wsgemm_status status = wsgemm_gemm(NULL, &d);
        CHECK(status == table[row].answer && strstr(wsgemm_last_error(), table[row].names) &&
                  strstr(wsgemm_last_error(), table[row].least),
              "%s: %s: \"%s\"", table[row].what, wsgemm_status_name(status), wsgemm_last_error());
        int n_written = 0;
        for (int i = 0; i < 512; i++) n_written += (c_memory[i] != 0x11) + (elsewhere[2048 + i] != 0x11);
        CHECK(n_written == 0, "%s: %d bytes were written", table[row].what, n_written);
      }
  static const wsgemm_type complex_types[] = {WSGEMM_C32, WSGEMM_C64};
  for (int t = 0; t < 2; t++)
    for (int part = 0; part < 5; part++) {
      const wsgemm_gemm_desc none =
          gemm_desc(complex_types[t], WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, BAD_M, BAD_N, 0);
      wsgemm_gemm_desc d = none;
      d.c = c_memory;
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      if (part == 0) d.epilogue = WSGEMM_EPILOGUE_RELU;
      if (part == 1) d.bias = elsewhere, d.type_bias = complex_types[t];
      if (part == 2) d.residual = elsewhere, d.ld_residual = BAD_M;
      if (part == 3) d.column_sums = elsewhere;
      if (part == 4) d.out_scale = 2;
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_NOT_SUPPORTED && strstr(wsgemm_last_error(), "complex"), "part %d: \"%s\"", part,
            wsgemm_last_error());
    }
}

/* m = 0 or n = 0 or no product in the batch: nothing is read or written, whatever the pointers; NaN as out_scale is an epilogue too. */
static void nothing_to_do(void) {
  for (int pair = 0; pair < N_PAIRS; pair++)
    for (int which = 0; which < 3; which++) {
      wsgemm_gemm_desc d = good_call(type_pairs[pair], all_layouts[which % 2]);
      void *nowhere = (void *)(uintptr_t)64;
      d.a = d.b = d.bias = d.residual = nowhere, d.c = d.column_sums = nowhere;
      *(which == 0 ? &d.m : which == 1 ? &d.n : &d.batch_count) = 0;
      CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
  float c = 3;
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1, 1, 0);
  d.beta.s = 1, d.c = &c, d.out_scale = (double)NAN;
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS && isnan(c), "out_scale = NaN gives %g", (double)c);
}

/* Check mode: what is written (C, column_sums) by one element over what else there is; right beside it is no overlap, nor is C its own
 * residual. */
static void overlaps(void) {
  enum { BIASES, RESIDUALS, SUM_VECTOR, SUMS_AND_A, SUMS_AND_BIAS, N_CASES };
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_check(h, 1) == WSGEMM_SUCCESS, "handle");
  for (int pair = 0; pair < N_PAIRS; pair++)
    for (int layout = 0; layout < 2; layout++)
      for (int which = 0; which < N_CASES; which++)
        for (int distance = 0; distance < 2; distance++) {
          wsgemm_gemm_desc d = good_call(type_pairs[pair], all_layouts[layout]);
          const size_t element = type_bytes(d.type_c), of_a = type_bytes(d.type_a), of_sum = d.type_c == WSGEMM_F64 ? 8 : 4;
          unsigned char *const behind_c = c_memory + (BAD_M * BAD_N - 1 + distance) * (int)element;
          memset(memory, 0, sizeof memory);
          const char *first = "c", *second = "";
          if (which == BIASES) d.bias = behind_c, second = "bias";
          if (which == RESIDUALS) d.residual = behind_c, second = "residual";
          /* before C, so that its floats are aligned beside halves */
          if (which == SUM_VECTOR) d.column_sums = c_memory - (BAD_N - 1 + distance) * (int)of_sum, second = "column_sums";
          if (which == SUMS_AND_A)
            d.column_sums = elsewhere + (BAD_M * BAD_K * of_a - 1) / of_sum * of_sum + distance * of_sum, first = "column_sums",
            second = "a";
          if (which == SUMS_AND_BIAS)
            d.column_sums = elsewhere + 1024 + (BAD_N * element - 1) / of_sum * of_sum + distance * of_sum, first = "column_sums",
            second = "bias";
          const wsgemm_status status = wsgemm_gemm(h, &d);
          CHECK(status == (distance ? WSGEMM_SUCCESS : WSGEMM_INVALID_VALUE), "pair %d, case %d, distance %d: %s", pair, which,
                distance, wsgemm_status_name(status));
          char wanted[64];
          snprintf(wanted, sizeof wanted, "%s overlaps %s", first, second);
          if (!distance) CHECK(strstr(wsgemm_last_error(), wanted) != NULL, "\"%s\"", wsgemm_last_error());
        }
  wsgemm_gemm_desc d = good_call(type_pairs[0], WSGEMM_COL_MAJOR);
  memset(memory, 0, sizeof memory);
  d.residual = d.c;
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "C as its own residual: %s", wsgemm_last_error());
  d.ld_residual++;
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_INVALID_VALUE, "C as its own residual with another ld");
  d.ld_residual--, d.batch_count = 2, d.stride_c = 16, d.stride_residual = 0;
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_INVALID_VALUE, "C as its own residual with another stride");
  d.stride_residual = 16, d.stride_column_sums = BAD_N;
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "a batch of C as its own residual: %s", wsgemm_last_error());
  wsgemm_destroy(h);
}

static void explained(void) {
  wsgemm_gemm_desc d = good_call(type_pairs[0], WSGEMM_ROW_MAJOR);
  d.out_scale = 2;
  CHECK(explained_is(NULL, &d, "epilogue", "bias per column in f32, silu, scale 2, residual, column sums"), "all of it");
  d.bias_per = WSGEMM_BIAS_PER_ROW, d.residual = d.c, d.column_sums = NULL, d.epilogue = WSGEMM_EPILOGUE_GELU_TANH;
  CHECK(explained_is(NULL, &d, "epilogue", "bias per row in f32, gelu_tanh, scale 2, residual in c"), "other parts");
  d.bias = d.residual = NULL, d.out_scale = 1;
  CHECK(explained_is(NULL, &d, "epilogue", "gelu_tanh"), "an activation");
  d.epilogue = WSGEMM_EPILOGUE_NONE;
  char text[1024];
  wsgemm_explain(NULL, &d, text, sizeof text);
  CHECK(strstr(text, "epilogue") == NULL, "%s", text);
}

static const struct check_case cases[] = {{"against_steps", against_steps},
                                          {"whole_range", whole_range},
                                          {"spreading", spreading},
                                          {"bits", bits},
                                          {"sums_in_both_layouts", sums_in_both_layouts},
                                          {"first_version", first_version},
                                          {"refused", refused},
                                          {"nothing_to_do", nothing_to_do},
                                          {"overlaps", overlaps},
                                          {"explained", explained}};
CHECK_MAIN("epilogue", cases)
