/* test_gpu_slices.c - FP32 products by slices of FP16 (compute capability 9.0), their numbers:
 * within the bound whatever A and B hold; the rows and columns that slices cannot stand for, and
 * they alone, have the multiply-adds' bits; NaN and Inf; whole numbers; which numerics class uses
 * which rows. Edges of tiles are also tested where those of the other rows are; bits in
 * test_gpu_slices_bits.c. */
#include "slices.h"

#include <math.h>

static void distributions(void) {
  rng = check_random_from(170);
  distributions_of(WSGEMM_F32);
}

static void gathered(void) {
  rng = check_random_from(183);
  gathered_of(WSGEMM_F32);
}

static void marked_is_needed(void) {
  rng = check_random_from(171);
  marked_is_needed_of(WSGEMM_F32);
}

static void classes(void) {
  rng = check_random_from(172);
  classes_of(WSGEMM_F32);
}

static void tf32(void) {
  rng = check_random_from(175);
  tf32_of(WSGEMM_F32);
  unforced_of(WSGEMM_F32);
}

/* ---- Whole numbers --------------------------------------------------------------------------- */

static void exact(void) {
  enum { MOST = 257, N_TURNS = 4 };
  static const int64_t ks[] = {128, 129, 200, 511}, sides[] = {1, 2, 7, 63, 64, 65, 127, 128, 129, 191, 255, 256, MOST};
  rng = check_random_from(178);
  open_sliced(WSGEMM_F32, OF_ANY_PRODUCTS);
  struct stage stage = stage_new(WSGEMM_F32, MOST, MOST, ks[3], FILL_INTEGER, &rng);
  for (int ki = 0; ki < 4; ki++) {
    product_whole(&stage.product, &stage.a, &stage.b, ks[ki]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int turn = 0; turn < 8 * N_TURNS; turn++) {
        if (drawn(1, check_scale()) != 1) continue;
        const int64_t m = sides[drawn(0, 12)], n = sides[drawn(0, 12)];
        wsgemm_gemm_desc d =
            gemm_desc(WSGEMM_F32, all_layouts[turn % 2], all_ops[turn / 2 % 2], all_ops[turn / 4 % 2], m, n, ks[ki]);
        d.alpha = scalar_make(WSGEMM_F32, (double)drawn(1, 3) * (heads() ? 1 : -1), 0);
        d.beta = scalar_make(WSGEMM_F32, (double)drawn(-1, 2), 0);
        const struct layout_of_case where = layout_drawn(&rng);
        check_used(i, m, n, ks[ki]);
        run_case(&stage, rows.handle[i], &d, &where, heads(), JUDGE_EXACT, rows.row[i].name);
      }
  }
  stage_free(&stage);
  rows_close(&rows);
}

/* ---- Small numbers of A meet small ones of B, and each a large one that meets 0 -------------- */

static void small_beside_large(void) {
  enum { M = 70, N = 80, K = 300 };
  /* large, small */
  static const int exponents[][2] = {{0, -40}, {100, 6}, {0, -20}, {0, -33}, {0, -53}, {10, -62}, {60, -60}};
  rng = check_random_from(181);
  open_sliced(WSGEMM_F32, OF_THREE_PRODUCTS);
  for (size_t e = 0; e < sizeof exponents / sizeof exponents[0]; e++) {
    struct stage stage = stage_new(WSGEMM_F32, M, N, K, FILL_ZERO, &rng);
    const double large = ldexp(1, exponents[e][0]);
    for (int64_t p = 0; p < K; p++) {
      for (int64_t i = 0; i < M; i++) stage.a.re[i * K + p] = p == 0 ? large : p == 1 ? 0 : number(exponents[e][1]);
      for (int64_t j = 0; j < N; j++) stage.b.re[p * N + j] = p == 0 ? 0 : p == 1 ? large : number(exponents[e][1]);
    }
    product_extend(&stage.product, &stage.a, &stage.b, K);
    for (int i = 0; i < rows.n_rows; i++) {
      wsgemm_gemm_desc d = drawn_desc(WSGEMM_F32, M, N, K);
      const struct layout_of_case where = layout_drawn(&rng);
      d.alpha = scalar_make(WSGEMM_F32, 1, 0), d.beta = scalar_make(WSGEMM_F32, 0, 0);
      if (!run_case(&stage, rows.handle[i], &d, &where, false, JUDGE_BOUND, rows.row[i].name))
        CHECK(false, "that was with 2^%d beside 2^%d", exponents[e][0], exponents[e][1]);
    }
    stage_free(&stage);
  }
  rows_close(&rows);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"distributions", distributions},
                                            {"marked_is_needed", marked_is_needed},
                                            {"gathered", gathered},
                                            {"classes", classes},
                                            {"tf32", tf32},
                                            {"exact", exact},
                                            {"small_beside_large", small_beside_large}};
  gpu_open_for_slices(WSGEMM_F32);
  return check_main("gpu_slices", cases, sizeof cases / sizeof cases[0], argc, argv);
}
