/* test_invariant.c - invariant mode: an element of C has the same bits in a product of any height
 * and width, alone, in a batch, by any op pair, layout, ld, alignment and number of threads. One
 * product is the measure; parts of it are computed by calls of their own and compared with it
 * element by element. Without the mode a row alone differs, or these tests would show nothing. */
#include "support/rows.h"

#include <stdlib.h>
#include <string.h>

enum { M = 257, N = 70, MOST_K = 800, N_WIDE = 300 };
static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

/* op(A), op(B) and C before the call, by value; and C of the product that is the measure,
 * column-major without gaps. */
struct whole {
  wsgemm_type type, type_c;
  int64_t n, k;
  struct values a, b, c;
  wsgemm_scalar alpha, beta;
  struct arena arena[4];
  struct matrix measure;
};

static struct whole whole_new(wsgemm_type type, wsgemm_type type_c, int64_t n, int64_t k) {
  static const double scalars[][2] = {{0.75, -0.3}, {1, 0}, {-1.1, 0}};
  const int64_t alpha = drawn(0, 2), beta = drawn(-1, 2);
  struct whole w = {type,
                    type_c,
                    n,
                    k,
                    values_new(type, M, k, FILL_UNIFORM, &rng),
                    values_new(type, k, n, FILL_UNIFORM, &rng),
                    values_new(type_c, M, n, FILL_UNIFORM, &rng),
                    scalar_make(type, scalars[alpha][0], scalars[alpha][1]),
                    beta < 0 ? scalar_make(type, 0, 0) : scalar_make(type, scalars[beta][0], scalars[beta][1]),
                    {{0}},
                    {0}};
  const size_t bytes = (size_t)(M + MAX_PAD) * (size_t)(MOST_K + N_WIDE + MAX_PAD) * 16;
  for (int i = 0; i < 4; i++) w.arena[i] = arena_new(bytes);
  return w;
}

static void whole_free(struct whole *w) {
  for (int i = 0; i < 4; i++) arena_free(&w->arena[i]);
  values_free(&w->a), values_free(&w->b), values_free(&w->c);
}

/* The rows x cols block from (i, j) on of a table. */
static struct values block_of(const struct values *x, int64_t i, int64_t j) {
  struct values block = *x;
  block.re += i * x->cols + j, block.im += i * x->cols + j;
  return block;
}

/* Stores op(A), op(B), C for rows i .. i + m - 1 and columns j .. j + n - 1, and multiplies them; C
 * into *c. */
static void multiply(struct whole *w, wsgemm_handle *handle, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t i,
                     int64_t m, int64_t j, int64_t n, const struct layout_of_case *where, struct matrix *c) {
  struct stage stage = {block_of(&w->a, i, 0), block_of(&w->b, 0, j), block_of(&w->c, i, j), {0}, {{0}}, {{0}}};
  for (int x = 0; x < 3; x++) stage.arena[x] = w->arena[x];
  wsgemm_gemm_desc d = gemm_desc(w->type, layout, transa, transb, m, n, w->k);
  d.type_c = w->type_c, d.alpha = w->alpha, d.beta = w->beta;
  case_store(&stage, &d, where);
  CHECK(wsgemm_gemm(handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  *c = stage.stored[2];
}

static const unsigned char *element(const struct matrix *x, int64_t i, int64_t j) {
  return x->elements + (size_t)(x->by_columns ? i + j * x->ld : i * x->ld + j) * type_bytes(x->type);
}

/* The product that all others are compared with, kept in an arena of its own. */
static void measure(struct whole *w, wsgemm_handle *handle, wsgemm_op transa, wsgemm_op transb) {
  const struct layout_of_case tight = layout_tight();
  struct matrix c;
  multiply(w, handle, WSGEMM_COL_MAJOR, transa, transb, 0, M, 0, w->n, &tight, &c);
  w->measure = matrix_place(&w->arena[3], w->type_c, WSGEMM_COL_MAJOR, M, w->n, M, PLACE_END);
  memcpy(w->measure.elements, c.elements, matrix_extent_bytes(&c));
}

/* How many elements of c, which begins at (i, j), have other bits than the measure's. */
static int64_t differing(const struct whole *w, const struct matrix *c, int64_t i, int64_t j) {
  int64_t n_differing = 0;
  for (int64_t row = 0; row < c->rows; row++)
    for (int64_t col = 0; col < c->cols; col++)
      n_differing += memcmp(element(c, row, col), element(&w->measure, i + row, j + col), type_bytes(w->type_c)) != 0;
  return n_differing;
}

static wsgemm_handle *handle_drawn(bool invariant) {
  wsgemm_handle *handle = NULL;
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS && wsgemm_set_invariant(handle, invariant) == WSGEMM_SUCCESS, "handle");
  wsgemm_set_num_threads(handle, (int)drawn(1, 5));
  wsgemm_set_policy(handle, (wsgemm_policy)drawn(0, 3));
  wsgemm_set_coarse_factor(handle, (int)drawn(0, 4));
  return handle;
}

static void compare(struct whole *w, const char *kernel, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t i,
                    int64_t m, int64_t j, int64_t n) {
  const struct layout_of_case where = layout_drawn(&rng);
  wsgemm_handle *handle = handle_drawn(true);
  struct matrix c;
  if (kernel) REQUIRE(wsgemm_set_kernel(handle, kernel) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  multiply(w, handle, layout, transa, transb, i, m, j, n, &where, &c);
  const int64_t n_differing = differing(w, &c, i, j);
  CHECK(n_differing == 0,
        "%s: %c to %c, layout %d, ops %d %d, k = %lld: rows %lld + %lld, columns %lld + %lld: %lld elements differ",
        kernel ? kernel : "default kernel", type_letter(w->type), type_letter(w->type_c), (int)layout, (int)transa, (int)transb,
        (long long)w->k, (long long)i, (long long)m, (long long)j, (long long)n, (long long)n_differing);
  wsgemm_destroy(handle);
}

static wsgemm_type drawn_type_c(wsgemm_type type) {
  static const wsgemm_type types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
  return type_is_half(type) ? types_c[drawn(0, 2)] : type;
}

/* The same op pair up to transposition: conjugation is part of what is computed. */
static wsgemm_op flipped(wsgemm_op op) {
  switch (op) {
  case WSGEMM_NO_TRANS:
    return WSGEMM_TRANS;
  case WSGEMM_TRANS:
    return WSGEMM_NO_TRANS;
  case WSGEMM_CONJ_TRANS:
    return WSGEMM_CONJ_NO_TRANS;
  default:
    return WSGEMM_CONJ_TRANS;
  }
}

/* Every height from 1 to 257 for each type, of drawn rows and columns, ops, layouts, places and
 * threads. */
static void heights(void) {
  static const int64_t ks[] = {1, 3, 5, 64, 300, MOST_K};
  rng = check_random_from(170);
  for (int type = 0; type < N_TYPES; type++)
    for (size_t ki = 0; ki < sizeof ks / sizeof ks[0]; ki++) {
      struct whole w = whole_new((wsgemm_type)type, drawn_type_c((wsgemm_type)type), N, ks[ki]);
      const wsgemm_op transa = draw_op(w.type, &rng), transb = draw_op(w.type, &rng);
      wsgemm_handle *handle = handle_drawn(true);
      measure(&w, handle, transa, transb);
      wsgemm_destroy(handle);
      for (int64_t m = 1; m <= M; m++) {
        if (m > 20 && drawn(1, 3 * check_scale()) != 1) continue;
        const int64_t n = drawn(0, 3) ? N : drawn(1, N), j = drawn(0, N - n), i = drawn(0, M - m);
        compare(&w, NULL, draw_layout(&rng), drawn(0, 1) ? transa : flipped(transa), drawn(0, 1) ? transb : flipped(transb), i, m,
                j, n);
      }
      whole_free(&w);
    }
}

/* Single rows, columns and elements, where the default has kernels of their own: all op pairs,
 * layouts and kernel rows; a width that is packed, and one that is not. */
static void vectors(void) {
  static struct rows_of_type rows;
  rng = check_random_from(171);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int r = 0; r < rows.n_rows; r++)
      for (int wide = 0; wide < 2; wide++) {
        struct whole w = whole_new((wsgemm_type)type, drawn_type_c((wsgemm_type)type), wide ? N_WIDE : N, wide ? MOST_K : 130);
        for (int ops = 0; ops < n_ops(w.type) * n_ops(w.type); ops++) {
          if (drawn(1, check_scale()) != 1) continue;
          const wsgemm_op transa = all_ops[ops % n_ops(w.type)], transb = all_ops[ops / n_ops(w.type)];
          wsgemm_handle *handle = handle_drawn(true);
          REQUIRE(wsgemm_set_kernel(handle, rows.row[r].name) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
          measure(&w, handle, transa, transb);
          wsgemm_destroy(handle);
          for (int layout = 0; layout < 2; layout++) {
            compare(&w, rows.row[r].name, all_layouts[layout], transa, transb, drawn(0, M - 1), 1, 0, w.n);
            compare(&w, rows.row[r].name, all_layouts[layout], transa, transb, 0, M, drawn(0, w.n - 1), 1);
            compare(&w, rows.row[r].name, all_layouts[layout], transa, transb, drawn(0, M - 1), 1, drawn(0, w.n - 1), 1);
            compare(&w, rows.row[r].name, all_layouts[layout], transa, transb, drawn(0, M - 2), 2, 0, w.n);
          }
        }
        whole_free(&w);
      }
    rows_close(&rows);
  }
}

/* A batch of single rows against one matrix B, and of any heights, is the product as a whole. */
static void batches(void) {
  rng = check_random_from(172);
  for (int type = 0; type < N_TYPES; type++)
    for (int turn = 0; turn < 24 / check_scale() + 2; turn++) {
      struct whole w = whole_new((wsgemm_type)type, drawn_type_c((wsgemm_type)type), N, drawn(1, 400));
      const int64_t m = turn % 2 ? 1 : drawn(1, 20), count = drawn(1, M / m);
      const struct layout_of_case tight = layout_tight();
      wsgemm_handle *handle = handle_drawn(true);
      measure(&w, handle, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS);
      wsgemm_destroy(handle);
      handle = handle_drawn(true);
      /* row-major: the products of the batch are what follows each other in the whole */
      struct stage stage = {w.a, w.b, w.c, {0}, {{0}}, {{0}}};
      for (int x = 0; x < 3; x++) stage.arena[x] = w.arena[x];
      wsgemm_gemm_desc d =
          gemm_desc(w.type, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS,
                    draw_op(w.type, &rng) == WSGEMM_NO_TRANS ? WSGEMM_NO_TRANS : WSGEMM_TRANS, m * count, N, w.k);
      d.type_c = w.type_c, d.alpha = w.alpha, d.beta = w.beta;
      case_store(&stage, &d, &tight);
      d.m = m, d.batch_count = count, d.stride_a = m * d.lda, d.stride_c = m * d.ldc;
      CHECK(wsgemm_gemm(handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      CHECK(differing(&w, &stage.stored[2], 0, 0) == 0, "type %c: a batch of %lld products of height %lld differs",
            type_letter(w.type), (long long)count, (long long)m);
      wsgemm_destroy(handle);
      whole_free(&w);
    }
}

/* Without the mode a row alone has other bits somewhere, in every type whose vectors have kernels
 * of their own. */
static void default_differs(void) {
  rng = check_random_from(173);
  for (int type = 0; type < N_TYPES; type++) {
    if (type_is_half((wsgemm_type)type)) continue;
    struct whole w = whole_new((wsgemm_type)type, (wsgemm_type)type, N, 700);
    wsgemm_handle *handle = handle_drawn(false);
    const struct layout_of_case tight = layout_tight();
    struct matrix c;
    const wsgemm_gemm_desc row = gemm_desc(w.type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 1, N, w.k);
    CHECK(explained_is(handle, &row, "path", "vector"), "a row alone takes another path");
    measure(&w, handle, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS);
    int64_t n_differing = 0;
    for (int64_t i = 0; i < 5; i++) {
      multiply(&w, handle, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, i, 1, 0, N, &tight, &c);
      n_differing += differing(&w, &c, i, 0);
    }
    CHECK(n_differing > 0, "type %c: rows alone are equal by default too", type_letter(w.type));
    CHECK(wsgemm_set_invariant(handle, 1) == WSGEMM_SUCCESS && !explained_is(handle, &row, "path", "vector"),
          "a row alone takes the vector path in invariant mode");
    char text[2048];
    wsgemm_explain(handle, &row, text, sizeof text);
    CHECK(strstr(text, "invariant: ") != NULL, "wsgemm_explain does not tell the mode:\n%s", text);
    wsgemm_destroy(handle);
    whole_free(&w);
  }
}

static const struct check_case cases[] = {
    {"heights", heights}, {"vectors", vectors}, {"batches", batches}, {"default_differs", default_differs}};
CHECK_MAIN("invariant", cases)
