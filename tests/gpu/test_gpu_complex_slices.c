/* test_gpu_complex_slices.c - complex FP32 products by slices of FP16 (compute capability 9.0),
 * which are for the tensor cores products of real numbers, 2 m x n x 2 k: within the bound whatever
 * the parts of A and B are, by all ops, layouts and scalars; exact on whole numbers; the rows and
 * columns that slices cannot stand for; NaN and Inf in either part; the same bits by all ways;
 * which numerics class uses which rows. */
#include "slices.h"

#include <math.h>
#include <string.h>

static void distributions(void) {
  rng = check_random_from(190);
  distributions_of(WSGEMM_C32);
}

static void classes(void) {
  rng = check_random_from(191);
  classes_of(WSGEMM_C32);
}

static void captured(void) {
  rng = check_random_from(192);
  captured_of(WSGEMM_C32);
}

static void batches(void) {
  rng = check_random_from(193);
  batches_of(WSGEMM_C32);
}

static void tf32(void) {
  rng = check_random_from(194);
  tf32_of(WSGEMM_C32);
}

/* ---- Whole numbers --------------------------------------------------------------------------- */

static wsgemm_scalar drawn_whole(void) { return scalar_make(WSGEMM_C32, (double)drawn(-2, 3), (double)drawn(-2, 2)); }

/* Each edge of a tile along m and along n, for each pair of ops in each layout. */
static void exact(void) {
  enum { MOST = 129, MOST_K = 200, N_SIDES = 9 };
  static const int64_t ks[] = {128, 129, MOST_K}, sides[N_SIDES] = {31, 32, 33, 63, 64, 65, 127, 128, MOST};
  rng = check_random_from(195);
  open_sliced(WSGEMM_C32, OF_ANY_PRODUCTS);
  struct stage stage = stage_new(WSGEMM_C32, MOST, MOST, MOST_K, FILL_INTEGER, &rng);
  for (size_t ki = 0; ki < sizeof ks / sizeof ks[0]; ki++) {
    product_whole(&stage.product, &stage.a, &stage.b, ks[ki]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int how = 0; how < 32; how++) {
        const int64_t shift = drawn(0, N_SIDES - 1);
        for (int side = 0; side < N_SIDES; side++) {
          if (drawn(1, check_scale()) != 1) continue;
          const int64_t m = sides[side], n = sides[(side + shift) % N_SIDES];
          wsgemm_gemm_desc d = gemm_desc(WSGEMM_C32, all_layouts[how / 16], all_ops[how / 4 % 4], all_ops[how % 4], m, n, ks[ki]);
          const struct layout_of_case where = layout_drawn(&rng);
          d.alpha = drawn_whole(), d.beta = drawn_whole();
          check_used(i, m, n, ks[ki]);
          run_case(&stage, rows.handle[i], &d, &where, heads(), JUDGE_EXACT, rows.row[i].name);
        }
      }
  }
  stage_free(&stage);
  rows_close(&rows);
}

/* ---- Marked rows and columns ----------------------------------------------------------------- */

static double common(void) { return number(0); }

/* Some lines of A or B with one or two elements of which one part, or both, are 2^-40 times the
 * size of the others. Returns how many lines. */
static int mark_some(const struct stage *stage, bool is_b) {
  const int64_t n = lines_of(stage, is_b, 0).n;
  int n_fallback = 0;
  for (int64_t line = drawn(0, n / 3); line < n; line += drawn(1, n / 3 + 1), n_fallback++) {
    const int which = (int)drawn(1, 3), n_elements = (int)drawn(1, 2);
    for (int e = 0; e < n_elements; e++)
      for (int part = 0; part < 2; part++) {
        const struct lines x = lines_of(stage, is_b, part);
        if (which >> part & 1) put(&x, line, drawn(0, x.k - 1), ldexp(1.0 / 3, -40));
      }
  }
  return n_fallback;
}

/* Each row and each column counts once, whatever is in it, wherever it is, and however the operands
 * stand. */
static void counted_once(void) {
  enum { K = 140 };
  open_sliced(WSGEMM_C32, OF_ANY_PRODUCTS);
  for (int turn = 0; turn < (check_scale() > 1 ? 2 : 12); turn++) {
    const int64_t m = drawn_side(140), n = drawn_side(140);
    struct stage stage = stage_new(WSGEMM_C32, m, n, K, FILL_ZERO, &rng);
    for (int x = 0; x < 4; x++) {
      const struct lines lines = lines_of(&stage, x / 2, x % 2);
      fill_each(&lines, common);
    }
    const int n_fallback = mark_some(&stage, false) + mark_some(&stage, true);
    product_extend(&stage.product, &stage.a, &stage.b, K);
    fill_c(&stage);
    for (int i = 0; i < rows.n_rows; i++) {
      wsgemm_gemm_desc d = drawn_desc(WSGEMM_C32, m, n, K);
      const struct layout_of_case where = layout_drawn(&rng);
      const int64_t n_before = n_fallbacks();
      store_and_call(&stage, rows.handle[i], &d, &where, rows.row[i].name);
      char text[DESCRIPTION_BYTES];
      CHECK(n_fallbacks() == n_before + n_fallback, "%s: %s: %lld lines fell back, not %d", rows.row[i].name,
            gemm_describe(&d, text), (long long)(n_fallbacks() - n_before), n_fallback);
      judge_at_the_ends(&stage, &d, math_of(rows.row[i].name) == WSGEMM_MATH_TF32 ? 0x1p-10 : 0, rows.row[i].name);
    }
    stage_free(&stage);
  }
  rows_close(&rows);
}

static void gathered(void) {
  rng = check_random_from(283);
  gathered_of(WSGEMM_C32);
}

static void marked_is_needed(void) {
  rng = check_random_from(196);
  marked_is_needed_of(WSGEMM_C32);
  counted_once();
}

/* ---- Bits ------------------------------------------------------------------------------------ */

/* Where element (i, j) of op(X) stands. */
static int64_t place_of(wsgemm_layout layout, wsgemm_op op, int64_t ld, int64_t i, int64_t j) {
  const bool is_transposed = op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS;
  return (layout == WSGEMM_COL_MAJOR) != is_transposed ? i + j * ld : j + i * ld;
}

/* An element depends on its row and its column: blocks of C by themselves have the bits of the
 * whole. */
static void blocks_on(wsgemm_handle *h, const char *row) {
  enum { M = 170, N = 210, K = 150, LD = 220, N_C = LD * LD };
  struct twice a = twice_new(WSGEMM_C32, LD * LD, 3), b = twice_new(WSGEMM_C32, LD * LD, 3), c = twice_new(WSGEMM_C32, N_C, 0);
  wsgemm_gemm_desc whole = drawn_desc(WSGEMM_C32, M, N, K);
  const size_t c_bytes = N_C * type_bytes(WSGEMM_C32);
  whole.lda = whole.ldb = whole.ldc = LD;
  whole.a = a.at[0], whole.b = b.at[0], whole.c = c.at[0];
  CHECK(wsgemm_gemm(h, &whole) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  const int64_t cut_m[] = {0, drawn(1, 100), drawn(101, M - 1), M}, cut_n[] = {0, drawn(1, 100), drawn(101, N - 1), N};
  for (int block = 0; block < 9; block++) {
    const int64_t i = cut_m[block / 3], j = cut_n[block % 3];
    wsgemm_gemm_desc d = whole;
    d.m = cut_m[block / 3 + 1] - i, d.n = cut_n[block % 3 + 1] - j;
    d.a = a.at[1] + 2 * place_of(d.layout, d.transa, LD, i, 0), d.b = b.at[1] + 2 * place_of(d.layout, d.transb, LD, 0, j);
    d.c = c.at[1] + 2 * place_of(d.layout, WSGEMM_NO_TRANS, LD, i, j);
    CHECK(strcmp(kernel_of(h, &d), row) == 0, "%s in place of %s", kernel_of(h, &d), row);
    CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  char text[DESCRIPTION_BYTES];
  CHECK(gpu_digest(c.at[0], c_bytes) == gpu_digest(c.at[1], c_bytes),
        "%s: %s: other bits than by blocks that begin at rows %lld, %lld, columns %lld, %lld", row, gemm_describe(&whole, text),
        (long long)cut_m[1], (long long)cut_m[2], (long long)cut_n[1], (long long)cut_n[2]);
  twice_free(&a), twice_free(&b), twice_free(&c);
}

/* Room for the least piece of a product of this k, 256 rows and columns. */
static size_t bytes_of_piece(wsgemm_op transa, wsgemm_op transb, int64_t k) {
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_C32, WSGEMM_COL_MAJOR, transa, transb, 256, 256, k);
  const wsgemm_gemm_desc in_memory = to_explain(WSGEMM_C32, 256, 256, k);
  size_t bytes = 0;
  d.a = in_memory.a, d.b = in_memory.b, d.c = in_memory.c;
  CHECK(wsgemm_get_workspace_size(rows.handle[0], &d, &bytes) == WSGEMM_SUCCESS && bytes > 0, "%s", wsgemm_last_error());
  return bytes;
}

static void bits(void) {
  static const struct {
    int64_t m, n, k;
    bool in_pieces;
    wsgemm_op transa, transb;
  } all[] = {{600, 700, 256, true, WSGEMM_NO_TRANS, WSGEMM_CONJ_TRANS},
             {200, 1100, 150, true, WSGEMM_TRANS, WSGEMM_NO_TRANS},
             {250, 400, 130, true, WSGEMM_CONJ_TRANS, WSGEMM_TRANS}, /* A takes more than B, and is no longer than a piece */
             {129, 257, 500, false, WSGEMM_CONJ_NO_TRANS, WSGEMM_CONJ_NO_TRANS}};
  rng = check_random_from(197);
  open_sliced(WSGEMM_C32, OF_THREE_PRODUCTS);
  for (size_t x = 0; x < sizeof all / sizeof all[0]; x++) {
    const size_t few = all[x].in_pieces ? bytes_of_piece(all[x].transa, all[x].transb, all[x].k) : 0;
    bits_of(WSGEMM_C32, all[x].m, all[x].n, all[x].k, x == 0 ? ALL_NEED_3 : 3, few, all[x].transa, all[x].transb);
  }
  rows_close(&rows);
  open_sliced(WSGEMM_C32, OF_ANY_PRODUCTS);
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < (check_scale() > 1 ? 2 : 20); turn++) blocks_on(rows.handle[i], rows.row[i].name);
  rows_close(&rows);
}

/* ---- Which rows are used --------------------------------------------------------------------- */

static void unforced(void) {
  const wsgemm_gemm_desc large = to_explain(WSGEMM_C32, 2048, 2048, 2048);
  unforced_of(WSGEMM_C32);
  open_sliced(WSGEMM_C32, OF_ANY_PRODUCTS);
  for (int i = 0; i < rows.n_rows; i++) {
    REQUIRE(wsgemm_set_invariant(rows.handle[i], 1) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const char *kernel = kernel_of(rows.handle[i], &large);
    CHECK(row_info(kernel).type == WSGEMM_C32 && row_is_of(kernel, "simt"), "%s, forced, in invariant mode: %s", rows.row[i].name,
          kernel);
  }
  rows_close(&rows);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"distributions", distributions},
                                            {"exact", exact},
                                            {"classes", classes},
                                            {"marked_is_needed", marked_is_needed},
                                            {"gathered", gathered},
                                            {"bits", bits},
                                            {"captured", captured},
                                            {"batches", batches},
                                            {"tf32", tf32},
                                            {"unforced", unforced}};
  gpu_open_for_slices(WSGEMM_C32);
  return check_main("gpu_complex_slices", cases, sizeof cases / sizeof cases[0], argc, argv);
}
