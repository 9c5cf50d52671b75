/* test_numerics.c - every registry row of this machine against the reference, componentwise: all
 * edges round its tile, small k and k round its k block, all op pairs, both layouts, padded lds,
 * alignments, and the special values of alpha and beta.
 *
 * One reference per type serves all rows: it grows with k, and its corners serve every m and n
 * (reference.h). */
#include <math.h>

#include "support/rows.h"

static struct check_random rng;
static struct rows_of_type rows;

/* Every m x n up to four tiles by three: more than the tallest and the widest of the tiles for
 * operands in place. */
static void every_extent(wsgemm_type type) {
  static const int64_t ks[] = {1, 6, 23};
  rows_open(&rows, type);
  struct stage stage = stage_new(type, 2 * rows.widest, 2 * rows.widest, 23, FILL_UNIFORM, &rng);
  for (int ki = 0; ki < 3; ki++) {
    product_extend(&stage.product, &stage.a, &stage.b, ks[ki]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int down = 1; down <= 4 * rows.row[i].mr + 1; down++)
        for (int across = 1; across <= 3 * rows.row[i].nr + 1; across++)
          if (check_random_in(&rng, 1, check_scale()) == 1)
            run_drawn(&stage, &rows, i, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), down, across, JUDGE_BOUND,
                      &rng);
  }
  stage_free(&stage);
  rows_close(&rows);
}

/* A shape that is packed, with two k blocks, and smaller ones, with one thread and with several. */
static void several_blocks(wsgemm_type type) {
  rows_open(&rows, type);
  for (int is_packed = 0; is_packed < 2; is_packed++) {
    const int64_t k = rows.max_kc + 70, m = !is_packed          ? 150
                                            : rows.widest > 161 ? rows.widest
                                                                : 161; /* fewer rows are not packed */
    const int64_t n = is_packed ? packed_n(rows.handle[0], type, m, k) + 3 : m;
    struct stage stage = stage_new(type, m, n, k, FILL_UNIFORM, &rng);
    product_extend(&stage.product, &stage.a, &stage.b, k);
    for (int i = 0; i < rows.n_rows; i++)
      for (int turn = 0; turn < 1 + 24 / check_scale(); turn++) {
        REQUIRE(wsgemm_set_num_threads(rows.handle[i], 1 + turn % 3) == WSGEMM_SUCCESS, "threads");
        run_drawn(&stage, &rows, i, is_packed ? WSGEMM_COL_MAJOR : draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), m,
                  is_packed ? n : m - 30 + check_random_in(&rng, 0, 10), JUDGE_BOUND, &rng);
      }
    stage_free(&stage);
  }
  rows_close(&rows);
}

/* Long k with all terms of one sign, where one rounding too many per term would leave the bound
 * first. */
static void long_k(wsgemm_type type) {
  rows_open(&rows, type);
  const int64_t max_k = check_scale() > 1 ? 5000 : 20000;
  struct stage stage = stage_new(type, 5, 7, max_k, FILL_UNIFORM, &rng);
  for (int64_t i = 0; i < 5 * max_k; i++) stage.a.re[i] = stage.a.re[i] < 0 ? -stage.a.re[i] : stage.a.re[i];
  for (int64_t i = 0; i < 7 * max_k; i++) stage.b.re[i] = stage.b.re[i] < 0 ? -stage.b.re[i] : stage.b.re[i];
  for (int64_t k = max_k / 4; k <= max_k; k += max_k / 4) {
    product_extend(&stage.product, &stage.a, &stage.b, k);
    for (int i = 0; i < rows.n_rows; i++)
      for (int turn = 0; turn < 8; turn++)
        run_drawn(&stage, &rows, i, WSGEMM_COL_MAJOR, all_ops[turn % 2], all_ops[turn / 2 % 2], turn == 0 ? 1 : 5,
                  turn == 1 ? 1 : 7, JUDGE_BOUND, &rng);
  }
  stage_free(&stage);
  rows_close(&rows);
}

/* Every pair of alpha and beta among 0, 1, -1 and general numbers, on a shape with full and cut
 * tiles. */
static void every_scalar(wsgemm_type type) {
  static const double scalars[6][2] = {{0, 0}, {1, 0}, {-1, 0}, {0.7, -1.3}, {0, 1}, {1.25, 0}};
  rows_open(&rows, type);
  const int64_t side = rows.widest, ks[] = {0, 1, 11, rows.max_kc + 2};
  struct stage stage = stage_new(type, side, side, ks[3], FILL_UNIFORM, &rng);
  const struct layout_of_case where = {{3, 0, 5}, {PLACE_END, PLACE_END, PLACE_END}};
  for (int ki = 0; ki < 4; ki++) {
    product_extend(&stage.product, &stage.a, &stage.b, ks[ki]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int s = 0; s < 36; s++) {
        wsgemm_gemm_desc d = gemm_desc(type, all_layouts[s % 2], WSGEMM_NO_TRANS, WSGEMM_TRANS, side, side - 1, ks[ki]);
        d.alpha = scalar_make(type, scalars[s / 6][0], scalars[s / 6][1]);
        d.beta = scalar_make(type, scalars[s % 6][0], scalars[s % 6][1]);
        if (check_random_in(&rng, 1, check_scale()) == 1)
          run_case(&stage, rows.handle[i], &d, &where, s % 3 == 0, JUDGE_BOUND, rows.row[i].name);
      }
  }
  stage_free(&stage);
  rows_close(&rows);
}

/* PEDANTIC, by handle or by descriptor, gives on the CPU the same bits as DEFAULT. */
static void math_modes_of(wsgemm_type type) {
  struct stage stage = stage_new(type, 70, 70, 90, FILL_SPREAD, &rng);
  const struct layout_of_case where = layout_tight();
  unsigned long long digest[3];
  product_extend(&stage.product, &stage.a, &stage.b, 90);
  for (int mode = 0; mode < 3; mode++) {
    wsgemm_handle *handle = NULL;
    REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS, "handle");
    wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 70, 70, 90);
    if (mode == 1) CHECK(wsgemm_set_math(handle, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    if (mode == 2) d.math = WSGEMM_MATH_PEDANTIC;
    run_case(&stage, handle, &d, &where, false, JUDGE_BOUND, "math mode");
    digest[mode] = matrix_digest(&stage.stored[2]);
    wsgemm_destroy(handle);
  }
  CHECK(digest[0] == digest[1] && digest[0] == digest[2], "type %c: the math modes differ", type_letter(type));
  stage_free(&stage);
}

static void for_all_types(unsigned salt, void (*run)(wsgemm_type type)) {
  rng = check_random_from(salt);
  for (int type = 0; type < N_TYPES; type++) run((wsgemm_type)type);
}

static void rows_of(unsigned salt, wsgemm_type type) {
  rng = check_random_from(salt);
  cross_edges_and_k(type, FILL_UNIFORM, JUDGE_BOUND, check_scale(), 2 * check_scale(), &rng);
  every_extent(type);
}

static void spread_of(wsgemm_type type) {
  cross_edges_and_k(type, FILL_SPREAD, JUDGE_BOUND, 2 * check_scale(), 8 * check_scale(), &rng);
}

static void single_real(void) { rows_of(10, WSGEMM_F32); }
static void double_real(void) { rows_of(11, WSGEMM_F64); }
static void single_complex(void) { rows_of(12, WSGEMM_C32); }
static void double_complex(void) { rows_of(13, WSGEMM_C64); }
/* Products and results below the normal range, of sums that are in it and below: bounds allow for
 * what is rounded there, and nothing more. */
static void below_range_of(wsgemm_type type) {
  const int lowest = type_is_double(type) ? -1074 : -149, side = 61, k = 40;
  rows_open(&rows, type);
  struct stage stage = stage_new(type, side, side, k, FILL_ZERO, &rng);
  struct values *const all[] = {&stage.a, &stage.b, &stage.c};
  for (int x = 0; x < 3; x++)
    for (int64_t at = 0; at < all[x]->rows * all[x]->cols; at++)
      for (int part = 0; part < (type_is_complex(type) ? 2 : 1); part++) {
        const int e = x == 2 ? lowest + 10 : lowest / 2 + (int)check_random_in(&rng, -10, 20);
        (part ? all[x]->im : all[x]->re)[at] = type_round(type, ldexp(check_random_unit(&rng), e));
      }
  product_extend(&stage.product, &stage.a, &stage.b, k);
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < 40; turn++) {
      static const double scalars[4][2] = {{1, 0}, {-0.7, 0}, {2.5, -1.5}, {0, 0}};
      const int64_t m = check_random_in(&rng, 1, side), n = check_random_in(&rng, 1, side);
      wsgemm_gemm_desc d = gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), m, n, k);
      const struct layout_of_case where = layout_drawn(&rng);
      const double *alpha = scalars[turn % 3], *beta = scalars[turn / 3 % 4];
      d.alpha = scalar_make(type, alpha[0], alpha[1]), d.beta = scalar_make(type, beta[0], beta[1]);
      case_store(&stage, &d, &where);
      CHECK(gemm_typed(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      case_judge(&stage, &d, JUDGE_BOUND, rows.row[i].name);
    }
  stage_free(&stage);
  rows_close(&rows);
}

/* (|alpha| + 1) |A| |B| + |beta| |C| just below half of the largest number: no sum on the way
 * overflows. */
static void near_largest_of(wsgemm_type type) {
  enum { SIDE = 61, K = 40 };
  static const double scalars[4][2] = {{1, 0}, {-0.7, 0}, {2.5, -1.5}, {0, 0}}, most_alpha = 2.5 + 1.5;
  if (type_is_half(type)) return; /* its sums are far from overflow, or C's type overflows first */
  rows_open(&rows, type);
  struct stage stage = stage_new(type, SIDE, SIDE, K, FILL_UNIFORM, &rng);
  product_extend(&stage.product, &stage.a, &stage.b, K);
  double most = 0;
  for (int at = 0; at < SIDE * SIDE; at++) most = fmax(most, (double)stage.product.magnitude[at]);
  const int e = ilogb(type_largest(type)) - 2 - ilogb(2 * (most_alpha + 1) * most), of_a = e / 2, of_c = e;
  struct values *const all[] = {&stage.a, &stage.b, &stage.c};
  const int exponents[] = {of_a, e - of_a, of_c};
  for (int x = 0; x < 3; x++)
    for (int64_t at = 0; at < all[x]->rows * all[x]->cols; at++)
      all[x]->re[at] = ldexp(all[x]->re[at], exponents[x]), all[x]->im[at] = ldexp(all[x]->im[at], exponents[x]);
  struct product scaled = product_new(SIDE, SIDE);
  product_extend(&scaled, &stage.a, &stage.b, K);
  product_free(&stage.product), stage.product = scaled;
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < 24; turn++) {
      wsgemm_gemm_desc d = gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng),
                                     check_random_in(&rng, 1, SIDE), check_random_in(&rng, 1, SIDE), K);
      const struct layout_of_case where = layout_drawn(&rng);
      const double *alpha = scalars[turn % 3], *beta = scalars[turn / 3 % 4];
      d.alpha = scalar_make(type, alpha[0], alpha[1]), d.beta = scalar_make(type, beta[0], beta[1]);
      run_case(&stage, rows.handle[i], &d, &where, turn % 2, JUDGE_BOUND, rows.row[i].name);
    }
  stage_free(&stage);
  rows_close(&rows);
}

static void half_precision(void) { rows_of(19, WSGEMM_F16), rows_of(110, WSGEMM_BF16); }
static void spread_exponents(void) { for_all_types(14, spread_of); }
static void blocks(void) { for_all_types(15, several_blocks); }
static void long_sums(void) { for_all_types(16, long_k); }
static void scalars(void) { for_all_types(17, every_scalar); }
static void math_modes(void) { for_all_types(18, math_modes_of); }

/* The reference itself: sums in pairs of doubles beside sums in the widest type, term by term. */
static void reference(void) {
  enum { M = 3, N = 5, K = 700 };
  rng = check_random_from(113);
  for (int fill = FILL_UNIFORM; fill <= FILL_SPREAD; fill++) {
    struct values a = values_new(WSGEMM_C64, M, K, (enum fill)fill, &rng),
                  b = values_new(WSGEMM_C64, K, N, (enum fill)fill, &rng);
    struct product p = product_new(M, N);
    product_extend(&p, &a, &b, K / 3), product_extend(&p, &a, &b, K);
    for (int64_t i = 0; i < M; i++)
      for (int64_t j = 0; j < N; j++) {
        wide re = 0, im = 0, magnitude = 0;
        for (int64_t l = 0; l < K; l++) {
          const wide x = a.re[i * K + l], y = a.im[i * K + l], u = b.re[l * N + j], v = b.im[l * N + j];
          re += x * u - y * v, im += x * v + y * u;
          magnitude += ((x < 0 ? -x : x) + (y < 0 ? -y : y)) * ((u < 0 ? -u : u) + (v < 0 ? -v : v));
        }
        const int64_t at = i * N + j;
        const double off_re = fabs((double)(p.re[at] - re)), off_im = fabs((double)(p.im[at] - im));
        CHECK(off_re <= 0x1p-80 * (double)magnitude && off_im <= 0x1p-80 * (double)magnitude, "off by %g and %g of %g", off_re,
              off_im, (double)magnitude);
        CHECK(fabs((double)(p.magnitude[at] - magnitude)) <= 0x1p-50 * (double)magnitude, "magnitude %g, not %g",
              (double)p.magnitude[at], (double)magnitude);
      }
    product_free(&p);
    values_free(&a), values_free(&b);
  }
}

static void near_largest(void) { for_all_types(112, near_largest_of); }
static void below_range(void) { for_all_types(111, below_range_of); }

static const struct check_case cases[] = {{"reference", reference},
                                          {"single_real", single_real},
                                          {"double_real", double_real},
                                          {"single_complex", single_complex},
                                          {"double_complex", double_complex},
                                          {"half_precision", half_precision},
                                          {"below_range", below_range},
                                          {"near_largest", near_largest},
                                          {"spread_exponents", spread_exponents},
                                          {"blocks", blocks},
                                          {"long_sums", long_sums},
                                          {"scalars", scalars},
                                          {"math_modes", math_modes}};
CHECK_MAIN("numerics", cases)
