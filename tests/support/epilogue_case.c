/* epilogue_case.c - cases of the epilogue, from values to verdict: see epilogue_case.h. Who is
 * called is left to the suites. */
#include "epilogue_case.h"

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const wsgemm_type type_pairs[N_TYPE_PAIRS][2] = {{WSGEMM_F32, WSGEMM_F32},  {WSGEMM_F64, WSGEMM_F64}, {WSGEMM_F16, WSGEMM_F16},
                                                 {WSGEMM_F16, WSGEMM_BF16}, {WSGEMM_F16, WSGEMM_F32}, {WSGEMM_BF16, WSGEMM_BF16},
                                                 {WSGEMM_BF16, WSGEMM_F16}, {WSGEMM_BF16, WSGEMM_F32}};
const wsgemm_epilogue activations[N_ACTIVATIONS] = {WSGEMM_EPILOGUE_NONE, WSGEMM_EPILOGUE_RELU, WSGEMM_EPILOGUE_GELU_TANH,
                                                    WSGEMM_EPILOGUE_GELU_ERF, WSGEMM_EPILOGUE_SILU};
static bool is_exact(wsgemm_epilogue activation) { return activation <= WSGEMM_EPILOGUE_RELU; }

static wsgemm_status call_where_they_are(const struct arena *arenas, int n_arenas, wsgemm_handle *handle,
                                         const wsgemm_gemm_desc *d) {
  (void)arenas, (void)n_arenas;
  return wsgemm_gemm(handle, d);
}

struct epilogue_backend epilogue_backend = {call_where_they_are, false};

/* ---- the steps ------------------------------------------------------------------------------- */

/* A number of the type that sums are made in. Products and sums of two floats are exact enough in
 * double to be rounded once more. */
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
static void activation_bounds(const wsgemm_gemm_desc *d, double z, double bounds[2]) {
  const bool is_double = d->type_c == WSGEMM_F64;
  const long double exact = activated(d->epilogue, z);
  if (is_exact(d->epilogue) || !isfinite(z)) {
    bounds[0] = bounds[1] = (double)exact;
  } else if (is_double || (epilogue_backend.has_short_half_acts && type_is_half(d->type_a))) {
    const long double error =
        8 * fabsl((long double)z) * (is_double ? 0x1p-53L : 0x1p-24L) + (is_double ? 0x1p-1074L : 0x1p-149L);
    bounds[0] = (double)(exact - error), bounds[1] = (double)(exact + error);
  } else {
    bounds[0] = (double)nextafterf((float)exact, -INFINITY), bounds[1] = (double)nextafterf((float)exact, INFINITY);
  }
}

static wsgemm_type type_of_sums(wsgemm_type type_c) { return type_c == WSGEMM_F64 ? WSGEMM_F64 : WSGEMM_F32; }

static bool same(double x, double y) { return isnan(x) ? isnan(y) : x == y; }

/* ---- one case -------------------------------------------------------------------------------- */

struct epilogue_stage epilogue_stage_new(int64_t most, int64_t most_k, unsigned long long salt) {
  const size_t line = (size_t)(most + MAX_PAD), operand = line * (size_t)(most_k + MAX_PAD), results = line * line * MOST_BATCH;
  struct epilogue_stage stage = {.rng = check_random_from(salt)};
  for (int part = 0; part < N_PARTS; part++) stage.arena[part] = arena_new((part <= PART_B ? operand : results) * sizeof(double));
  stage.residual = malloc(results * sizeof(double));
  REQUIRE(stage.residual != NULL, "memory");
  return stage;
}

void epilogue_stage_free(struct epilogue_stage *stage) {
  for (int part = 0; part < N_PARTS; part++) arena_free(&stage->arena[part]);
  free(stage->residual);
}

/* A vector for each product: the columns of a matrix. */
static struct matrix vectors_place(struct epilogue_stage *stage, const struct epilogue_case *x, int part, wsgemm_type type,
                                   int64_t n) {
  return matrix_place(&stage->arena[part], type, WSGEMM_COL_MAJOR, n, x->d.batch_count, (n > 0 ? n : 1) + x->pad[part],
                      x->place[part]);
}

/* The products of a batch one after the other: below each other, or beside each other. */
static struct matrix batch_place(struct epilogue_stage *stage, const struct epilogue_case *x, int part, wsgemm_type type,
                                 int64_t ld) {
  const wsgemm_gemm_desc *d = &x->d;
  const bool below = d->layout == WSGEMM_ROW_MAJOR;
  return matrix_place(&stage->arena[part], type, d->layout, d->m * (below ? d->batch_count : 1),
                      d->n * (below ? 1 : d->batch_count), ld, x->place[part]);
}

static int64_t batch_stride(const wsgemm_gemm_desc *d, int64_t ld) { return ld * (d->layout == WSGEMM_ROW_MAJOR ? d->m : d->n); }

static double get(const struct epilogue_case *x, int part, int64_t batch, int64_t i, int64_t j) {
  double re, im;
  const bool below = x->d.layout == WSGEMM_ROW_MAJOR;
  matrix_get(&x->stored[part], i + (below ? batch * x->d.m : 0), j + (below ? 0 : batch * x->d.n), &re, &im);
  return re;
}

static double get_of(const struct matrix *vectors, int64_t batch, int64_t i) {
  double re, im;
  matrix_get(vectors, i, batch, &re, &im);
  return re;
}

static void fill(struct check_random *rng, const struct matrix *x, double scale) {
  for (int64_t i = 0; i < x->rows; i++)
    for (int64_t j = 0; j < x->cols; j++) matrix_set(x, i, j, scale * check_random_unit(rng), 0);
}

static bool is_trans(wsgemm_op op) { return op == WSGEMM_TRANS; }

static bool reads_c(const wsgemm_gemm_desc *d) {
  double beta[2];
  scalar_get(d->type_a, &d->beta, beta);
  return beta[0] != 0;
}

struct epilogue_case epilogue_case_draw(struct epilogue_stage *stage, int pair, int activation, wsgemm_layout layout, int64_t m,
                                        int64_t n, int64_t k) {
  static const double alphas[] = {1, 0.75, 0}, betas[] = {0, 1, -0.5}, scales[] = {1, 1, 0.5, -3, 0.3};
  struct check_random *rng = &stage->rng;
  const wsgemm_type type = type_pairs[pair][0];
  const wsgemm_op op_a = all_ops[check_random_in(rng, 0, 1)], op_b = all_ops[check_random_in(rng, 0, 1)];
  struct epilogue_case x = {.d = gemm_desc(type, layout, op_a, op_b, m, n, k)};
  x.d.type_c = type_pairs[pair][1];
  x.d.epilogue = activations[activation];
  x.d.alpha = scalar_make(type, alphas[check_random_in(rng, 0, 2)], 0);
  x.d.beta = scalar_make(type, betas[check_random_in(rng, 0, 2)], 0);
  x.d.batch_count = check_random_in(rng, 0, 3) ? 1 : check_random_in(rng, 1, MOST_BATCH);
  x.has_bias = check_random_in(rng, 0, 2) > 0, x.has_sums = check_random_in(rng, 0, 1);
  x.has_residual = check_random_in(rng, 0, 1), x.residual_is_c = x.has_residual && check_random_in(rng, 0, 1);
  for (int part = 0; part < N_PARTS; part++) {
    x.pad[part] = (int)(check_random_in(rng, 0, 1) * check_random_in(rng, 1, MAX_PAD));
    x.place[part] = (enum place)check_random_in(rng, 0, 2);
  }
  x.d.bias_per = (wsgemm_bias)check_random_in(rng, 0, 1);
  x.d.type_bias = type_is_half(x.d.type_c) && check_random_in(rng, 0, 1) ? WSGEMM_F32 : x.d.type_c;
  x.d.out_scale = scales[check_random_in(rng, 0, 4)];
  return x;
}

/* Floats for half precision, by the same kernels in the same order. */
static void make_plain(struct epilogue_stage *stage, wsgemm_handle *handle, struct epilogue_case *x) {
  const wsgemm_gemm_desc *d = &x->d;
  const struct matrix *c = &x->stored[PART_C];
  wsgemm_gemm_desc plain = gemm_desc(d->type_a, d->layout, d->transa, d->transb, d->m, d->n, d->k);
  plain.type_c = type_of_sums(d->type_c);
  plain.alpha = d->alpha, plain.beta = d->beta, plain.batch_count = d->batch_count;
  plain.a = d->a, plain.lda = d->lda, plain.b = d->b, plain.ldb = d->ldb;
  const struct matrix product = x->stored[PART_PLAIN] = batch_place(stage, x, PART_PLAIN, plain.type_c, plain.ldc);
  for (int64_t i = 0; i < c->rows; i++)
    for (int64_t j = 0; j < c->cols; j++) {
      double re, im;
      matrix_get(c, i, j, &re, &im);
      matrix_set(&product, i, j, re, 0);
    }
  plain.c = product.elements, plain.stride_c = batch_stride(d, plain.ldc);
  REQUIRE(epilogue_backend.call(stage->arena, N_PARTS, handle, &plain) == WSGEMM_SUCCESS, "the plain product: %s",
          wsgemm_last_error());
}

void epilogue_case_store(struct epilogue_stage *stage, wsgemm_handle *handle, struct epilogue_case *x) {
  struct check_random *rng = &stage->rng;
  struct matrix *stored = x->stored;
  wsgemm_gemm_desc *d = &x->d;
  const int64_t rows_a = is_trans(d->transa) ? d->k : d->m, cols_a = is_trans(d->transa) ? d->m : d->k;
  const int64_t rows_b = is_trans(d->transb) ? d->n : d->k, cols_b = is_trans(d->transb) ? d->k : d->n;
  const wsgemm_gemm_desc least = gemm_desc(d->type_a, d->layout, d->transa, d->transb, d->m, d->n, d->k);
  d->lda = least.lda + x->pad[PART_A], d->ldb = least.ldb + x->pad[PART_B], d->ldc = least.ldc + x->pad[PART_C];
  d->ld_residual = x->residual_is_c ? d->ldc : least.ldc + x->pad[PART_RESIDUAL];
  stored[PART_A] = matrix_place(&stage->arena[PART_A], d->type_a, d->layout, rows_a, cols_a, d->lda, x->place[PART_A]);
  stored[PART_B] = matrix_place(&stage->arena[PART_B], d->type_a, d->layout, rows_b, cols_b, d->ldb, x->place[PART_B]);
  stored[PART_C] = batch_place(stage, x, PART_C, d->type_c, d->ldc);
  fill(rng, &stored[PART_A], 1), fill(rng, &stored[PART_B], 1);
  d->a = stored[PART_A].elements, d->b = stored[PART_B].elements, d->c = stored[PART_C].elements;
  d->stride_a = d->stride_b = 0, d->stride_c = batch_stride(d, d->ldc);
  stored[PART_BIAS] = vectors_place(stage, x, PART_BIAS, d->type_bias, d->bias_per == WSGEMM_BIAS_PER_ROW ? d->m : d->n);
  fill(rng, &stored[PART_BIAS], 2);
  if (x->has_bias) d->bias = stored[PART_BIAS].elements, d->stride_bias = stored[PART_BIAS].ld;
  stored[PART_RESIDUAL] = x->residual_is_c ? stored[PART_C] : batch_place(stage, x, PART_RESIDUAL, d->type_c, d->ld_residual);
  if (!x->residual_is_c) fill(rng, &stored[PART_RESIDUAL], 3);
  if (x->has_residual) d->residual = stored[PART_RESIDUAL].elements, d->stride_residual = batch_stride(d, d->ld_residual);
  stored[PART_SUMS] = vectors_place(stage, x, PART_SUMS, type_of_sums(d->type_c), d->n);
  matrix_store_nan(&stored[PART_SUMS]);
  if (x->has_sums) d->column_sums = stored[PART_SUMS].elements, d->stride_column_sums = stored[PART_SUMS].ld;
  if (reads_c(d) || (x->has_residual && x->residual_is_c))
    fill(rng, &stored[PART_C], 3);
  else
    matrix_store_nan(&stored[PART_C]);
  make_plain(stage, handle, x);
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

/* gamma_{m - 1} times the sum of magnitudes, and a little for the sum that it is compared with. */
static bool judge_sums(const struct epilogue_case *x) {
  const wsgemm_gemm_desc *d = &x->d;
  const long double nu = (long double)(d->m - 1) * (d->type_c == WSGEMM_F64 ? 0x1p-53L : 0x1p-24L);
  const long double relative = nu / (1 - nu) + (long double)(d->m - 1) * 0x1p-63L;
  bool passed = true;
  for (int64_t batch = 0; batch < d->batch_count; batch++)
    for (int64_t j = 0; j < d->n; j++) {
      long double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < d->m; i++) {
        const long double element = get(x, PART_C, batch, i, j);
        sum += element, magnitude += fabsl(element);
      }
      const double got = get_of(&x->stored[PART_SUMS], batch, j);
      char text[2 * DESCRIPTION_BYTES];
      if (!(fabsl((long double)got - sum) <= relative * magnitude))
        passed = CHECK(false, "%s: the sum of column %lld is %.9g, not %.9Lg", describe(d, text), (long long)j, got, sum);
    }
  return passed;
}

/* What an element may be. */
static void element_bounds(const struct epilogue_case *x, int64_t batch, int64_t i, int64_t j, double residual,
                           double bounds[2]) {
  const wsgemm_gemm_desc *d = &x->d;
  const bool is_double = d->type_c == WSGEMM_F64;
  const double out_scale = step(is_double, d->out_scale);
  double z = get(x, PART_PLAIN, batch, i, j);
  if (d->bias) z = step(is_double, z + get_of(&x->stored[PART_BIAS], batch, d->bias_per == WSGEMM_BIAS_PER_ROW ? i : j));
  activation_bounds(d, z, bounds);
  for (int side = 0; side < 2; side++) {
    bounds[side] = step(is_double, out_scale * bounds[side]);
    if (d->residual) bounds[side] = step(is_double, bounds[side] + residual);
    bounds[side] = type_round(d->type_c, bounds[side]);
  }
}

static bool judge(const struct epilogue_stage *stage, const struct epilogue_case *x) {
  const wsgemm_gemm_desc *d = &x->d;
  int64_t at = 0;
  int n_wrong = 0;
  char text[2 * DESCRIPTION_BYTES];
  for (int64_t batch = 0; batch < d->batch_count; batch++)
    for (int64_t i = 0; i < d->m; i++)
      for (int64_t j = 0; j < d->n; j++, at++) {
        double bounds[2];
        element_bounds(x, batch, i, j, stage->residual[at], bounds);
        const double got = get(x, PART_C, batch, i, j);
        const bool between = (got >= bounds[0] && got <= bounds[1]) || (got >= bounds[1] && got <= bounds[0]);
        if (!(is_exact(d->epilogue) ? same(got, bounds[0]) : between) && n_wrong++ == 0)
          CHECK(false, "%s: element (%lld, %lld) of product %lld is %.17g, not %.17g .. %.17g", describe(d, text), (long long)i,
                (long long)j, (long long)batch, got, bounds[0], bounds[1]);
      }
  bool passed = CHECK(n_wrong == 0, "%s: %d elements are wrong", describe(d, text), n_wrong);
  for (int part = 0; part < N_PARTS; part++) {
    int64_t byte_idx = 0;
    if (part != PART_PLAIN && !(part == PART_RESIDUAL && x->residual_is_c) && !matrix_guard_intact(&x->stored[part], &byte_idx))
      passed = CHECK(false, "%s: byte %lld from the start of array %d was written", describe(d, text), (long long)byte_idx, part);
  }
  return d->column_sums ? judge_sums(x) && passed : passed;
}

bool epilogue_case_run(struct epilogue_stage *stage, wsgemm_handle *handle, struct epilogue_case *x) {
  static const int read_only[] = {PART_A, PART_B, PART_BIAS, PART_RESIDUAL};
  unsigned long long digests[4];
  char text[2 * DESCRIPTION_BYTES];
  wsgemm_gemm_desc *d = &x->d;
  epilogue_case_store(stage, handle, x);
  int64_t at = 0;
  for (int64_t batch = 0; batch < d->batch_count; batch++)
    for (int64_t i = 0; i < d->m; i++)
      for (int64_t j = 0; j < d->n; j++) stage->residual[at++] = d->residual ? get(x, PART_RESIDUAL, batch, i, j) : 0;
  for (int i = 0; i < 4; i++) digests[i] = matrix_digest(&x->stored[read_only[i]]);
  feclearexcept(FE_ALL_EXCEPT);
  const wsgemm_status status = epilogue_backend.call(stage->arena, N_PARTS, handle, d);
  const int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
  if (!CHECK(status == WSGEMM_SUCCESS, "%s: %s", describe(d, text), wsgemm_last_error())) return false;
  CHECK(raised == 0, "%s: floating-point exceptions %#x were raised", describe(d, text), (unsigned)raised);
  bool unchanged = true;
  for (int i = 0; i < (x->residual_is_c ? 3 : 4); i++) unchanged &= digests[i] == matrix_digest(&x->stored[read_only[i]]);
  CHECK(unchanged, "%s: A, B, the bias or the residual was written", describe(d, text));
  return judge(stage, x);
}

/* ---- against the steps ----------------------------------------------------------------------- */

void epilogue_against_steps(void) {
  enum { MOST = 140, MOST_K = 500 };
  static const int64_t sizes[] = {1, 2, 3, 7, 16, 17, 31, 33, 64, 65, 100, MOST};
  static const int64_t ks[] = {0, 1, 3, 8, 40, MOST_K};
  struct epilogue_stage stage = epilogue_stage_new(MOST, MOST_K, 160);
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
    for (int act = 0; act < N_ACTIVATIONS; act++)
      for (int layout = 0; layout < 2; layout++)
        for (int turn = 0; turn < 60 / check_scale() + 3; turn++) {
          const int most = turn % 8 == 0 ? 11 : 6;
          const int64_t m = sizes[check_random_in(&stage.rng, 0, most)], n = sizes[check_random_in(&stage.rng, 0, most)];
          const int64_t k = ks[check_random_in(&stage.rng, 0, 5)];
          struct epilogue_case x = epilogue_case_draw(&stage, pair, act, all_layouts[layout], m, n, k);
          if (!epilogue_case_run(&stage, NULL, &x)) break;
        }
  epilogue_stage_free(&stage);
}

/* ---- activations over the whole range -------------------------------------------------------- */

enum { N_VALUES = 65536, SIDE = 256 };

static void draw_values(struct check_random *rng, const struct matrix *x, bool with_nan) {
  static const double strange[] = {0, -0.0, INFINITY, -INFINITY, 1e30, -1e30, -40, 40, -50, 50, -87.5, -104, -745, -800.5, 1e-40};
  enum { N_STRANGE = sizeof strange / sizeof strange[0] };
  for (int64_t i = 0; i < N_VALUES; i++) {
    double z = ldexp(check_random_unit(rng), (int)check_random_in(rng, -150, 12));
    if (i % 8 == 0)
      z = x->type == WSGEMM_F64 ? ldexp(check_random_unit(rng), (int)check_random_in(rng, -1074, 1024)) : strange[i % N_STRANGE];
    if (i < N_STRANGE) z = strange[i];
    if (i == N_STRANGE) z = type_largest(x->type);
    if (i == N_STRANGE + 1) z = type_least(x->type);
    if (with_nan && i % 5 == 0) z = (double)NAN;
    matrix_set(x, i, 0, z, 0);
    if (type_is_half(x->type)) {
      const uint16_t bits = (uint16_t)i;
      memcpy(x->elements + 2 * i, &bits, sizeof bits);
      if (!with_nan && isnan(get_of(x, 0, i))) matrix_set(x, i, 0, 0.25, 0);
    }
  }
}

/* Every check_scale()th: a slow machine judges fewer of them. */
static void judge_activations(const wsgemm_gemm_desc *d, const struct matrix *before, const struct matrix *after) {
  int n_wrong = 0;
  for (int64_t i = 0; i < N_VALUES; i += check_scale()) {
    double bounds[2];
    const double z = get_of(before, 0, i), got = get_of(after, 0, i);
    activation_bounds(d, z, bounds);
    for (int side = 0; side < 2; side++) bounds[side] = type_round(d->type_c, bounds[side]);
    const bool right = isnan(z) ? isnan(got) : got >= bounds[0] && got <= bounds[1];
    if (!right && n_wrong++ == 0)
      CHECK(false, "%c to %c, k = %lld: activation %d of %.17g is %.17g, not %.17g .. %.17g", type_letter(d->type_a),
            type_letter(d->type_c), (long long)d->k, (int)d->epilogue, z, got, bounds[0], bounds[1]);
  }
  CHECK(n_wrong == 0, "%c to %c: activation %d: %d of %d numbers are wrong", type_letter(d->type_a), type_letter(d->type_c),
        (int)d->epilogue, n_wrong, (int)N_VALUES);
}

/* C = act(k zeros + C), by beta = 1: as one column where there is no product, else as a square. */
void epilogue_whole_range(void) {
  struct arena places[3];
  struct matrix before;
  struct check_random rng = check_random_from(161);
  for (int i = 0; i < 3; i++) places[i] = arena_new(N_VALUES * sizeof(double));
  unsigned char *values = malloc(N_VALUES * sizeof(double));
  REQUIRE(values != NULL, "memory");
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
    for (int act = 0; act < N_ACTIVATIONS; act++)
      for (int turn = 0; turn < 4; turn++) {
        const wsgemm_type type = type_pairs[pair][0], type_c = type_pairs[pair][1];
        const bool with_nan = turn % 2;
        const int64_t k = turn / 2, m = k ? SIDE : N_VALUES, n = N_VALUES / m;
        wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, k);
        const struct matrix a = matrix_place(&places[0], type, d.layout, m, k, m, PLACE_END),
                            b = matrix_place(&places[1], type, d.layout, k, n, d.ldb, PLACE_END),
                            c = matrix_place(&places[2], type_c, d.layout, N_VALUES, 1, N_VALUES, PLACE_END);
        fill(&rng, &a, 0), fill(&rng, &b, 0);
        draw_values(&rng, &c, with_nan);
        memcpy(values, c.elements, matrix_extent_bytes(&c));
        before = c, before.elements = values;
        d.type_c = type_c, d.beta = scalar_make(type, 1, 0), d.epilogue = activations[act];
        d.a = a.elements, d.b = b.elements, d.c = c.elements;
        feclearexcept(FE_ALL_EXCEPT);
        CHECK(epilogue_backend.call(places, 3, NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        const int raised = fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
        /* Signalling NaNs may raise INVALID. */
        if (!with_nan) CHECK(raised == 0, "%c: activation %d raised %#x", type_letter(type_c), act, (unsigned)raised);
        judge_activations(&d, &before, &c);
      }
  free(values);
  for (int i = 0; i < 3; i++) arena_free(&places[i]);
}

void epilogue_spreading(void) {
  enum { N = 6, M = 3, COLUMNS = 4 };
  struct arena places[N];
  struct check_random rng = check_random_from(164);
  for (int i = 0; i < N; i++) places[i] = arena_new(4096);
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
    for (int k = 0; k < 2; k++) {
      const wsgemm_type type = type_pairs[pair][0], type_c = type_pairs[pair][1];
      const struct matrix c = matrix_place(&places[0], type_c, WSGEMM_COL_MAJOR, M, COLUMNS, M, PLACE_END),
                          bias = matrix_place(&places[1], type_c, WSGEMM_COL_MAJOR, COLUMNS, 1, COLUMNS, PLACE_END),
                          residual = matrix_place(&places[2], type_c, WSGEMM_COL_MAJOR, M, COLUMNS, M, PLACE_END),
                          sums = matrix_place(&places[3], type_of_sums(type_c), WSGEMM_COL_MAJOR, COLUMNS, 1, COLUMNS, PLACE_END),
                          a = matrix_place(&places[4], type, WSGEMM_COL_MAJOR, M, k, M, PLACE_END),
                          b = matrix_place(&places[5], type, WSGEMM_COL_MAJOR, k, COLUMNS, 1, PLACE_END);
      static const double biases[COLUMNS] = {NAN, INFINITY, -INFINITY, 1};
      for (int j = 0; j < COLUMNS; j++) {
        matrix_set(&bias, j, 0, biases[j], 0);
        for (int i = 0; i < M; i++)
          matrix_set(&residual, i, j, j == 1 && i == 1 ? -(double)INFINITY : j == 3 && i == 2 ? (double)NAN : 5, 0);
      }
      fill(&rng, &a, 0), fill(&rng, &b, 0);
      matrix_store_nan(&c); /* beta = 0: not read */
      wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, COLUMNS, k);
      d.type_c = type_c, d.type_bias = type_c, d.bias_per = WSGEMM_BIAS_PER_COLUMN, d.bias = bias.elements;
      d.residual = residual.elements, d.ld_residual = M, d.column_sums = sums.elements;
      d.a = a.elements, d.b = b.elements, d.c = c.elements;
      d.epilogue = WSGEMM_EPILOGUE_RELU, d.out_scale = 2;
      CHECK(epilogue_backend.call(places, N, NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      static const double expected[COLUMNS][M] = {{NAN, NAN, NAN}, {INFINITY, NAN, INFINITY}, {5, 5, 5}, {7, 7, NAN}};
      static const double expected_sums[COLUMNS] = {NAN, NAN, 15, NAN};
      for (int j = 0; j < COLUMNS; j++) {
        for (int i = 0; i < M; i++) {
          const double got = get_of(&c, j, i);
          CHECK(same(got, expected[j][i]), "%c: element (%d, %d) is %g, not %g", type_letter(type_c), i, j, got, expected[j][i]);
        }
        CHECK(same(get_of(&sums, 0, j), expected_sums[j]), "%c: sum %d is %g", type_letter(type_c), j, get_of(&sums, 0, j));
      }
    }
  for (int i = 0; i < N; i++) arena_free(&places[i]);
}

/* ---- bits ------------------------------------------------------------------------------------ */

void epilogue_same_bits(int64_t m, int64_t n, int64_t k, epilogue_settings *set) {
  enum { BATCH = 2, N = 5 };
  const int64_t longest = m > n ? m : n;
  const size_t sizes[N] = {(size_t)(m * k), (size_t)(k * n), (size_t)(m * n * BATCH), (size_t)longest, (size_t)(n * BATCH)};
  const int n_turns = 8 / check_scale() + 2;
  struct arena places[N];
  struct check_random rng = check_random_from(162);
  for (int i = 0; i < N; i++) places[i] = arena_new(sizes[i] * sizeof(double));
  unsigned char *c_before = malloc(sizes[2] * sizeof(double));
  REQUIRE(c_before != NULL, "memory");
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++) {
    const wsgemm_type type = type_pairs[pair][0], type_c = type_pairs[pair][1];
    const wsgemm_type types[N] = {type, type, type_c, type_c, type_of_sums(type_c)};
    struct matrix x[N];
    unsigned long long first[2] = {0, 0};
    for (int i = 0; i < N; i++) {
      x[i] = matrix_place(&places[i], types[i], WSGEMM_COL_MAJOR, (int64_t)sizes[i], 1, (int64_t)sizes[i], PLACE_START);
      fill(&rng, &x[i], 1);
    }
    memcpy(c_before, x[2].elements, matrix_extent_bytes(&x[2]));
    for (int turn = 0; turn < 2 * n_turns; turn++) {
      wsgemm_gemm_desc d = gemm_desc(type, all_layouts[turn / n_turns], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, k);
      d.type_c = type_c, d.a = x[0].elements, d.b = x[1].elements, d.c = x[2].elements;
      d.stride_c = m * n, d.batch_count = BATCH;
      d.beta = scalar_make(type, 0.5, 0), d.epilogue = WSGEMM_EPILOGUE_GELU_ERF, d.out_scale = 0.7;
      d.bias = x[3].elements, d.type_bias = type_c;
      d.residual = d.c, d.ld_residual = d.ldc, d.stride_residual = d.stride_c;
      d.column_sums = x[4].elements, d.stride_column_sums = n;
      memcpy(x[2].elements, c_before, matrix_extent_bytes(&x[2]));
      matrix_store_nan(&x[4]);
      wsgemm_handle *handle = NULL;
      REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS, "handle");
      set(handle, turn % n_turns, &rng);
      CHECK(epilogue_backend.call(places, N, handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      wsgemm_destroy(handle);
      const unsigned long long now[2] = {matrix_digest(&x[2]), matrix_digest(&x[4])};
      if (turn % n_turns == 0) memcpy(first, now, sizeof first);
      CHECK(memcmp(first, now, sizeof first) == 0, "%c to %c, turn %d: bits of %s change with the settings", type_letter(type),
            type_letter(type_c), turn, first[0] != now[0] ? "C" : "the sums");
    }
  }
  free(c_before);
  for (int i = 0; i < N; i++) arena_free(&places[i]);
}

/* First by columns, in every other turn after a product; then the same C by rows. */
void epilogue_sums_in_both_layouts(void) {
  enum { M = 1100, N = 70, MOST_K = 60, N_PLACES = 5 };
  struct arena places[N_PLACES];
  struct check_random rng = check_random_from(163);
  for (int i = 0; i < N_PLACES; i++) places[i] = arena_new(M * N * sizeof(double));
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
    for (int turn = 0; turn < 24; turn++) {
      const wsgemm_type type = type_pairs[pair][0], type_c = type_pairs[pair][1];
      const int64_t m = turn > 1 ? check_random_in(&rng, 1, turn % 3 ? 40 : M) : M;
      const int64_t n = turn > 1 ? check_random_in(&rng, 1, N) : N;
      unsigned long long digests[2];
      struct matrix c[2];
      for (int layout = 0; layout < 2; layout++) {
        const int64_t k = layout == 0 && turn % 2 ? check_random_in(&rng, 1, MOST_K) : 0;
        wsgemm_gemm_desc d = gemm_desc(type, all_layouts[layout], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, k);
        const struct matrix a = matrix_place(&places[0], type, d.layout, m, k, d.lda, PLACE_END),
                            b = matrix_place(&places[1], type, d.layout, k, n, d.ldb, PLACE_END),
                            sums = matrix_place(&places[2], type_of_sums(type_c), WSGEMM_COL_MAJOR, n, 1, n, PLACE_END);
        c[layout] = matrix_place(&places[3 + layout], type_c, d.layout, m, n, d.ldc, PLACE_END);
        fill(&rng, &a, 1), fill(&rng, &b, 1), matrix_store_nan(&sums);
        for (int64_t i = 0; i < m; i++)
          for (int64_t j = 0; j < n; j++) matrix_set(&c[layout], i, j, layout ? get_of(&c[0], j, i) : check_random_unit(&rng), 0);
        d.type_c = type_c, d.beta = scalar_make(type, 1, 0);
        d.a = a.elements, d.b = b.elements, d.c = c[layout].elements, d.column_sums = sums.elements;
        CHECK(epilogue_backend.call(places, N_PLACES, NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        digests[layout] = matrix_digest(&sums);
      }
      CHECK(digests[0] == digests[1], "%c to %c, m = %lld, n = %lld: sums %s of columns and of rows differ", type_letter(type),
            type_letter(type_c), (long long)m, (long long)n, turn % 2 ? "after a product" : "without a product");
    }
  for (int i = 0; i < N_PLACES; i++) arena_free(&places[i]);
}
