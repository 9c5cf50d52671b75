/* test_gpu_maps.c - rows of tf32m.def, whose operands come by tensor maps: exact products of all ops at the edges of their tiles,
 * the bound of TF32 (one slice) or FP32 (two), how elements are rounded, elements that TF32 does not hold, and operands that no map
 * takes. Lines of A and B begin at multiples of 16 bytes, with NaN between them; C lies anywhere, and nothing else is written. */
#include "gpu.h"
#include "support/tf32.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct check_random rng;

/* A product on the host: matrices by columns, as they lie in memory, and on the device. */
typedef struct product_case {
  wsgemm_gemm_desc d;
  int64_t cols_a, cols_b; /* lines of one product */
  float *a, *b, *c, *expected;
  void *device[3];
  size_t bytes[3];
  int64_t shift[3]; /* floats, from the beginning of the memory */
} product_case;

static const wsgemm_op ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS};

static float *host_matrix(int64_t floats) {
  float *x = malloc((size_t)(floats > 0 ? floats : 1) * sizeof *x);
  REQUIRE(x != NULL, "memory");
  for (int64_t i = 0; i < floats; i++) x[i] = NAN;
  return x;
}

typedef float element_maker(void);
static float small_integer(void) { return (float)check_random_in(&rng, -8, 8); }
static float anything(void) { return (float)check_random_in(&rng, -(1 << 23), 1 << 23) * 0x1p-20f; }
static float between_neighbours(void) {
  return (float)(2048 + check_random_in(&rng, -300, 300));
} /* from 2048 on odd ones are ties */

/* n_slices: that the class of numerics asks for; multiple: of lda, ldb, their strides and first elements; 4 where maps take them. */
static product_case case_new(int n_slices, int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b, int batch, int multiple,
                             element_maker *make) {
  product_case x = {.d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, ops[trans_a], ops[trans_b], m, n, k)};
  wsgemm_gemm_desc *d = &x.d;
  const int64_t rows_a = trans_a ? k : m, rows_b = trans_b ? n : k;
  x.cols_a = trans_a ? m : k, x.cols_b = trans_b ? k : n;
  d->math = n_slices == 1 ? WSGEMM_MATH_TF32 : WSGEMM_MATH_DEFAULT, d->batch_count = batch;
  d->lda = (rows_a + multiple - 1) / multiple * multiple + multiple * check_random_in(&rng, 0, 3);
  d->ldb = (rows_b + multiple - 1) / multiple * multiple + multiple * check_random_in(&rng, 0, 3);
  d->ldc = m + check_random_in(&rng, 0, 5);
  d->stride_a = d->lda * x.cols_a + multiple * check_random_in(&rng, 0, 2);
  d->stride_b = check_random_in(&rng, 0, 2) == 0 ? 0 : d->ldb * x.cols_b;
  d->stride_c = d->ldc * n + check_random_in(&rng, 0, 3);
  const int64_t floats[3] = {d->stride_a * batch, d->ldb * x.cols_b * batch, d->stride_c * batch};
  x.a = host_matrix(floats[0]), x.b = host_matrix(floats[1]), x.c = host_matrix(floats[2]), x.expected = host_matrix(floats[2]);
  for (int p = 0; p < batch; p++) {
    for (int64_t i = 0; i < rows_a * x.cols_a; i++) x.a[p * d->stride_a + i / rows_a * d->lda + i % rows_a] = make();
    for (int64_t i = 0; i < rows_b * x.cols_b; i++) x.b[p * d->stride_b + i / rows_b * d->ldb + i % rows_b] = make();
  }
  for (int64_t i = 0; i < floats[2]; i++) x.c[i] = small_integer();
  for (int i = 0; i < 3; i++) {
    x.shift[i] = i < 2 ? multiple * check_random_in(&rng, 0, 4) : check_random_in(&rng, 0, 5);
    x.bytes[i] = (size_t)floats[i] * sizeof(float);
    x.device[i] = gpu_alloc(x.bytes[i] + 128);
  }
  return x;
}

static void case_free(product_case *x) {
  free(x->a), free(x->b), free(x->c), free(x->expected);
  for (int i = 0; i < 3; i++) gpu_free(x->device[i]);
}

static float *a_at(const product_case *x, int p, int64_t i, int64_t l) {
  const wsgemm_gemm_desc *d = &x->d;
  return &x->a[p * d->stride_a + (d->transa == WSGEMM_NO_TRANS ? l * d->lda + i : i * d->lda + l)];
}
static float *b_at(const product_case *x, int p, int64_t l, int64_t j) {
  const wsgemm_gemm_desc *d = &x->d;
  return &x->b[p * d->stride_b + (d->transb == WSGEMM_NO_TRANS ? j * d->ldb + l : l * d->ldb + j)];
}

/* Runs it, C's bytes between its columns included, and brings C into `c`. */
static void run(product_case *x, wsgemm_handle *h, const char *row) {
  wsgemm_gemm_desc *d = &x->d;
  const float *from[3] = {x->a, x->b, x->c};
  char text[DESCRIPTION_BYTES];
  for (int i = 0; i < 3; i++) gpu_put((float *)x->device[i] + x->shift[i], from[i], x->bytes[i]);
  d->a = (float *)x->device[0] + x->shift[0], d->b = (float *)x->device[1] + x->shift[1],
  d->c = (float *)x->device[2] + x->shift[2];
  if (row) CHECK(explained_is(h, d, "kernel", row), "%s: %s", row, gemm_describe(d, text));
  CHECK(wsgemm_gemm(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaMemcpy(x->c, d->c, x->bytes[2], cudaMemcpyDeviceToHost));
}

/* C is `expected`, NaN for NaN, and everything else as it was. */
static void compare(const product_case *x, const float *before, const char *row) {
  const wsgemm_gemm_desc *d = &x->d;
  char text[DESCRIPTION_BYTES];
  for (int64_t i = 0; i < (int64_t)(x->bytes[2] / sizeof(float)); i++) {
    const int64_t in_product = i % d->stride_c;
    const bool is_c = in_product / d->ldc < d->n && in_product % d->ldc < d->m;
    const float wanted = is_c ? x->expected[i] : before[i];
    if (x->c[i] == wanted || (isnan(x->c[i]) && isnan(wanted))) continue;
    CHECK(false, "%s: %s: float %lld (%s) is %g, not %g", row, gemm_describe(d, text), (long long)i,
          is_c ? "of C" : "between columns", (double)x->c[i], (double)wanted);
    return;
  }
  CHECK(true, "%s", row);
}

/* Runs it by a row (NULL: whichever is chosen), and compares all of C's memory. */
static void run_exact(product_case *x, wsgemm_handle *h, const char *row) {
  float *before = malloc(x->bytes[2]);
  REQUIRE(before != NULL, "memory");
  memcpy(before, x->c, x->bytes[2]);
  run(x, h, row);
  compare(x, before, row ? row : "auto");
  free(before);
}

/* round: what becomes of an element. */
static void expect(product_case *x, float round(float), double alpha, double beta) {
  const wsgemm_gemm_desc *d = &x->d;
  for (int p = 0; p < d->batch_count; p++)
    for (int64_t j = 0; j < d->n; j++)
      for (int64_t i = 0; i < d->m; i++) {
        double sum = 0;
        for (int64_t l = 0; l < d->k; l++) sum += (double)round(*a_at(x, p, i, l)) * (double)round(*b_at(x, p, l, j));
        const int64_t at = p * d->stride_c + j * d->ldc + i;
        x->expected[at] = (float)(alpha * sum + (beta == 0 ? 0 : beta * (double)x->c[at]));
      }
}
static float as_it_is(float x) { return x; }

static void exact_case(wsgemm_handle *h, const wsgemm_kernel_info *row, int64_t m, int64_t n, int64_t k, int ops_idx) {
  product_case x =
      case_new(row->n_slices, m, n, k, ops_idx & 1, ops_idx >> 1 & 1, (int)check_random_in(&rng, 1, 3), 4, small_integer);
  const bool reads_c = check_random_in(&rng, 0, 1);
  x.d.alpha.s = reads_c ? 0.5f : 1, x.d.beta.s = reads_c ? -2 : 0;
  expect(&x, as_it_is, (double)x.d.alpha.s, (double)x.d.beta.s);
  run_exact(&x, h, row->name);
  case_free(&x);
}

static wsgemm_handle *handle_of(const char *row) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, row) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return h;
}

static bool next_row(int *i, wsgemm_kernel_info *row) {
  for (; *i < wsgemm_kernel_count(); (*i)++) {
    *row = row_info_at(*i);
    if (is_of_family(row, "tf32m1 tf32m2")) return (*i)++, true;
  }
  return false;
}
/* What its sums have a proof from. */
static int64_t least_k_of(const wsgemm_kernel_info *row) { return row->n_slices == 1 ? 24 : 40; }

/* Each row at edges of its tile, all ops; k of no, one and several blocks more or less than its stages and parts. */
static void exact(void) {
  static const int64_t ks[] = {24, 31, 32, 33, 40, 63, 64, 95, 160, 257, 512, 1100};
  wsgemm_kernel_info row;
  rng = check_random_from(4411);
  for (int i = 0; next_row(&i, &row);) {
    wsgemm_handle *h = handle_of(row.name);
    const int64_t ms[] = {1, row.bm - 1, row.bm, row.bm + 1, 2 * row.bm + 5},
                  ns[] = {1, row.bn - 3, row.bn, row.bn + 1, 2 * row.bn + 7};
    for (int turn = 0; turn < 60 / check_scale() + 8; turn++)
      exact_case(h, &row, ms[check_random_in(&rng, 0, 4)], ns[check_random_in(&rng, 0, 4)],
                 ks[check_random_in(&rng, row.n_slices == 1 ? 0 : 4, 11)], turn % 4);
    wsgemm_destroy(h);
  }
}

/* Elements halfway between two of TF32 go to the even one, of one slice; sums of rounded integers are exact. */
static void ties(void) {
  wsgemm_kernel_info row;
  rng = check_random_from(4412);
  for (int i = 0; next_row(&i, &row);) {
    wsgemm_handle *h = handle_of(row.name);
    for (int o = 0; o < 4 && row.n_slices == 1; o++) {
      /* a is rounded, b is a one in each column */
      product_case x = case_new(1, 70, 50, 40, o & 1, o >> 1, 1, 4, between_neighbours);
      for (int64_t l = 0; l < 40; l++)
        for (int64_t j = 0; j < 50; j++) *b_at(&x, 0, l, j) = l == j % 40 ? 1 : 0;
      x.d.alpha.s = 1, x.d.beta.s = 0;
      expect(&x, nearest_tf32, 1, 0);
      run_exact(&x, h, row.name);
      case_free(&x);
    }
    wsgemm_destroy(h);
  }
}

/* |C - C^| <= gamma_{k + 2} |A| |B|, with a beta of 0; of one slice 2^-10 (1 + 2^-12) more, and elements below 2^-126 lose up to 2^-137. */
static double worst_of(product_case *x, const char *row) {
  const wsgemm_gemm_desc *d = &x->d;
  const bool is_tf32 = d->math == WSGEMM_MATH_TF32;
  const double u = 0x1p-24, of_slices = is_tf32 ? 0x1p-10 * (1 + 0x1p-12) : 0,
               bound = of_slices + (double)(d->k + 2) * u / (1 - (double)(d->k + 2) * u), lost_below = is_tf32 ? 0x1p-137 : 0;
  double worst = 0;
  for (int p = 0; p < d->batch_count; p++)
    for (int64_t j = 0; j < d->n; j++)
      for (int64_t i = 0; i < d->m; i++) {
        double sum = 0, magnitude = 0, lost = (2.0 * (double)d->k + 4) * 0x1p-149;
        for (int64_t l = 0; l < d->k; l++) {
          const double a = (double)*a_at(x, p, i, l), b = (double)*b_at(x, p, l, j);
          sum += a * b, magnitude += fabs(a * b);
          lost +=
              (fabs(a) < FLT_MIN && a != 0 ? lost_below * fabs(b) : 0) + (fabs(b) < FLT_MIN && b != 0 ? lost_below * fabs(a) : 0);
        }
        const double y = (double)x->c[p * d->stride_c + j * d->ldc + i], error = fabs(y - sum);
        if (magnitude <= FLT_MAX) /* beyond, a sum of parts may overflow */
          worst = fmax(worst, isfinite(y) ? error / (bound * magnitude + lost) : HUGE_VAL);
        else if (!isfinite(sum))
          CHECK(!isfinite((double)x->c[p * d->stride_c + j * d->ldc + i]), "%s: %g for %g", row, y, sum);
      }
  return worst;
}

static void bound(void) {
  wsgemm_kernel_info row;
  rng = check_random_from(4413);
  double worst = 0;
  for (int i = 0; next_row(&i, &row);) {
    wsgemm_handle *h = handle_of(row.name);
    for (int o = 0; o < 4; o++) {
      product_case x = case_new(row.n_slices, row.bm + 9, row.bn + 9, check_random_in(&rng, least_k_of(&row), 900), o & 1, o >> 1,
                                1, 4, anything);
      x.d.alpha.s = 1, x.d.beta.s = 0;
      run(&x, h, row.name);
      const double ratio = worst_of(&x, row.name);
      CHECK(ratio <= 1, "%s: %g of the bound", row.name, ratio);
      worst = fmax(worst, ratio);
      case_free(&x);
    }
    wsgemm_destroy(h);
  }
  CHECK(worst > 1e-3, "rounding is not seen: %g", worst);
}

/* NaN of the bits that nearest and carries could make another number of; the first is the one that hardware generates. */
static const uint32_t nan_bits[] = {0x7fffffff, 0xffffffff, 0x7ffff000, 0x7f800001, 0x7fc00000, 0xff801000};
enum { N_NAN_BITS = sizeof nan_bits / sizeof nan_bits[0] };
static float nan_of(int i) {
  float x;
  memcpy(&x, &nan_bits[i], sizeof x);
  return x;
}

/* Every kernel row of one slice of TF32, those of other families, too, and of two by maps: a NaN in A or B makes NaN of its row, or its
 * column, of C alone. */
static void not_a_number(void) {
  enum { M = 70, N = 66, K = 50 };
  rng = check_random_from(4416);
  for (int i = 0; i < wsgemm_kernel_count(); i++) {
    const wsgemm_kernel_info row = row_info_at(i);
    if (row.type != WSGEMM_F32 || !is_of_family(&row, "tf32m1 tf32m2 tf32w1 tf32x1")) continue;
    wsgemm_handle *h = handle_of(row.name);
    for (int turn = 0; turn < 8 * N_NAN_BITS; turn++) { /* each pattern, in A and in B, by all ops */
      product_case x = case_new(row.n_slices, M, N, K, turn & 1, turn >> 1 & 1, 1, 4, small_integer);
      const bool of_a = turn & 4;
      const int64_t l = check_random_in(&rng, 0, K - 1), at = check_random_in(&rng, 0, (of_a ? M : N) - 1);
      *(of_a ? a_at(&x, 0, at, l) : b_at(&x, 0, l, at)) = nan_of(turn / 8);
      x.d.alpha.s = 1, x.d.beta.s = 0;
      expect(&x, as_it_is, 1, 0);
      run_exact(&x, h, row.name);
      case_free(&x);
    }
    wsgemm_destroy(h);
  }
}

/* A few elements that are subnormal, beside large ones of the other operand; that round to infinity; NaN and infinity. */
static void special(void) {
  static const float odd[] = {0x1.2345p-127f, 0x1.8p-140f, 0x1p-149f, -0x1.fffp-127f, FLT_MAX, -FLT_MAX, NAN, INFINITY};
  wsgemm_kernel_info row;
  rng = check_random_from(4414);
  for (int i = 0; next_row(&i, &row);) {
    wsgemm_handle *h = handle_of(row.name);
    for (int turn = 0; turn < 8; turn++) {
      const int64_t m = row.bm + 3, n = row.bn + 5, k = check_random_in(&rng, least_k_of(&row), 300);
      product_case x = case_new(row.n_slices, m, n, k, turn & 1, turn >> 1 & 1, 1, 4, anything);
      const int n_kinds = turn < 4 ? 4 : 8; /* subnormal ones alone, or all */
      for (int s = 0; s < 6; s++) {
        const int64_t l = check_random_in(&rng, 0, k - 1), of_a = check_random_in(&rng, 0, m - 1),
                      of_b = check_random_in(&rng, 0, n - 1);
        const float y = odd[check_random_in(&rng, 0, n_kinds - 1)];
        *(s % 2 ? a_at(&x, 0, of_a, l) : b_at(&x, 0, l, of_b)) = y;
      }
      if (turn < 4) /* so that they count: a column of A, or a row of B, with one element that matters */
        for (int64_t l = 0; l < k; l++) {
          for (int64_t j = 0; j < n; j++) *b_at(&x, 0, l, j) = l == 7 ? 0x1.3p100f : 0;
          for (int64_t j = 0; j < m && l == 7; j++) *a_at(&x, 0, j, l) = odd[check_random_in(&rng, 0, 3)];
        }
      x.d.alpha.s = 1, x.d.beta.s = 0;
      run(&x, h, row.name);
      const double ratio = worst_of(&x, row.name);
      CHECK(ratio <= 1, "%s, turn %d: %g of the bound", row.name, turn, ratio);
      case_free(&x);
    }
    wsgemm_destroy(h);
  }
}

/* Operands whose lines begin anywhere: another row runs, and no map is made. */
static void unaligned(void) {
  rng = check_random_from(4415);
  wsgemm_handle *h[] = {handle_of("sgemm_tf32m1_128x128_g1_k1"), handle_of("sgemm_tf32m2_128x128_g1_k1")};
  for (int turn = 0; turn < 48; turn++) {
    product_case x = case_new(turn / 24 + 1, 130, 131, 77, turn & 1, turn >> 1 & 1, turn % 3 + 1, 1, small_integer);
    char kernel[128];
    if (x.d.lda % 4 == 0 && x.d.ldb % 4 == 0) x.shift[0] |= 1;
    x.d.alpha.s = 1, x.d.beta.s = 0;
    expect(&x, as_it_is, 1, 0);
    run_exact(&x, h[turn / 24], NULL);
    CHECK(explained_text(h[turn / 24], &x.d, "kernel", kernel) && !strstr(kernel, "tf32m"), "%s", kernel);
    case_free(&x);
  }
  wsgemm_destroy(h[0]), wsgemm_destroy(h[1]);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"exact", exact},     {"ties", ties},
                                            {"bound", bound},     {"not_a_number", not_a_number},
                                            {"special", special}, {"unaligned", unaligned}};
  gpu_open();
  return check_main("gpu_maps", cases, sizeof cases / sizeof cases[0], argc, argv);
}
