/* ukr.h - what a micro-kernel is, for everyone who calls or writes one.
 *
 * A micro-kernel computes one register tile, C[m x n] = alpha A B + beta C, m <= mr, n <= nr, over
 * one block of k. It reads
 *
 *    A: column p of the tile at a + p * a_ld, m elements contiguous          (a packed panel has a_ld = mr)
 *    B: form WS_B_ROWS: row p at b + p * b_ld, n elements contiguous         (a packed panel has b_ld = nr)
 *       form WS_B_COLS: column j at b + j * b_ld, k elements contiguous      (an untransposed column-major B as it is)
 *       | WS_A_FAR: columns of A further on are asked for: they lie far apart and come from far away, and the
 *       processor does not see them coming
 *    C: column j at c + j * ldc, m elements contiguous
 *
 *                 n <= nr                         every element of C is one chain of fused multiply-adds over p = 0 .. k-1,
 *               +---------+                       then alpha and beta; so its bits depend on neither the tile's size nor its
 *    a: mr x k  | C tile  |  in registers         place nor the form of its operands.
 *   +----------+---------+
 *
 * It touches no element outside the given extents and raises no floating-point exception that they
 * do not raise. For complex types one real accumulator chain each holds the products with re(b) and
 * im(b); they are combined at the end. */
#ifndef WS_UKR_H
#define WS_UKR_H
#include <stdbool.h>
#include <stdint.h>

#include "core/scale.h"
#include "wsgemm.h"

enum { WS_B_ROWS = 0, WS_B_COLS = 1, WS_A_FAR = 2, WS_N_FORMS = 4, WS_K_IN_PARTS = 4 /* of a ws_part_fn, not of a tile */ };
enum { WS_MV_MAX = 4, WS_NR_MAX = 12 };

typedef void ws_ukr_fn(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                       const ws_scale *scale, int64_t m);

/* A part of such a tile's k. The sums are taken from `sums`, but by the first part, and left there, but by the last one, which writes C; with
 * WS_PART_BY_ROWS element (i, j) of it is at c + j + i * ldc, for an instruction set whose tiles can. `sums` has room for m * n numbers (of
 * complex elements twice as many), m rounded up to vectors, and is aligned as vectors are. */
enum { WS_PART_FIRST = 1, WS_PART_LAST = 2, WS_PART_BY_ROWS = 4 };
typedef void ws_part_fn(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                        const ws_scale *scale, int64_t m, void *sums, int part);

/* The tile m = mr, n = nr over two packed panels. `next`: k / 4 cache lines from here on are asked
 * for on the way; they are needed soon (the next panel of B: it comes from L3, and the processor
 * does not see it coming). */
typedef void ws_full_fn(int64_t k, const void *a, const void *b, void *c, int64_t ldc, const ws_scale *scale, const void *next);

/* Cache lines that are needed soon, from `at` on: runs of `run` neighbours, `left` of them left of the
 * first one, and `jump` bytes from the end of a run to the next one. */
typedef struct ws_lines {
  const char *at;
  int64_t left, run, jump;
} ws_lines;

/* The same with twice as many lines asked for, wherever they lie: 2 for each whole 4 of k, and `next`
 * moves on. For products that have little to do for each line of an operand. */
typedef void ws_full_asking_fn(int64_t k, const void *a, const void *b, void *c, int64_t ldc, const ws_scale *scale,
                               ws_lines *next);

/* The tile m = mr, n = nr where a triangular A has zeros for one of its two vectors: the first vector alone
 * takes the first k_half of k (WS_HALF_FIRST), or the second alone the last. The bits are those without. */
enum { WS_HALF_FIRST = 0, WS_HALF_LAST = 1 };
typedef void ws_half_fn(int64_t k, int64_t k_half, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                        const ws_scale *scale);

/* ---- triangular systems -----------------------------------------------------------------------
 * T X = Y for many right sides (lanes): a panel is 1 or 2 vectors of right sides wide, unknown p of
 * them all at p * width. A group is nr neighbouring unknowns, or fewer at an end.
 *
 * A packed diagonal block of a group: element (l, j) of the triangle, negated, at j * nr + l, and
 * 1 / T(j, j) at j * nr + j; what is on the other side of the diagonal is not read, nor the
 * diagonal if is_unit. Behind it, at nr * nr, two reals for each unknown that its quotient is
 * multiplied by as well (1 / T(j, j) alone would overflow or underflow), if is_scaled. */
enum { WS_SOLVE_DOWN = 0, WS_SOLVE_UP = 1 }; /* first unknown first: a lower triangle; last first */
/* A whole group: x = beta x - sum over p < k of y(p) t(p, :), as micro-kernels do; then
 * substitution. y: the panel of unknowns solved before; t: nr wide, as packed; x: the group's nr
 * unknowns in the panel. scale: alpha is -1. */
typedef void ws_solve_fn(int64_t k, const void *y, const void *t, const void *diagonal, bool is_unit, void *x,
                         const ws_scale *scale);
/* Substitution alone, for a group of n unknowns: the same bits. */
typedef void ws_substitute_fn(int64_t n, const void *diagonal, bool is_unit, bool is_scaled, int direction, void *x);

/* Substitution with a triangle where it is, for n unknowns of a few right sides (one vector of them
 * at most): the same bits. Element (l, j) of it is at l * row_step + j * column_step, unknown p of
 * the right sides at p * step; x may be b. Beforehand b is multiplied by scale->beta. */
typedef struct ws_small_triangle {
  int64_t n, n_lanes;
  const void *t, *inverse; /* 1 / T(j, j), if not is_unit */
  int64_t row_step, column_step;
  const ws_scale *scale;
  bool is_unit, conj;
  int direction;
} ws_small_triangle;
typedef void ws_substitute_small_fn(const ws_small_triangle *s, const void *b, int64_t step_b, void *x, int64_t step_x);

/* y[i] = alpha * sum over p of a(i, p) x[p] + beta * y[i], i < m <= ws_vec_rows, p < k; a(i, p) is
 * at a + i + p * lda, or at a + p + i * lda if a_trans; x and y have strides incx and incy.
 * scale->conj_a is a's, conj_b x's. */
enum { WS_VEC_BYTES = 8192 }; /* of sums, on the stack */
static inline int64_t ws_vec_rows(int n_real, int bytes) {
  const int64_t rows = WS_VEC_BYTES / (n_real * bytes);
  return rows < 1024 ? rows : 1024;
}
typedef void ws_gemv_fn(int64_t m, int64_t k, const void *a, int64_t lda, bool a_trans, const void *x, int64_t incx, void *y,
                        int64_t incy, const ws_scale *scale);

/* C[m x n] = alpha A B + beta C for lines along k: row i of A at a + i * lda, column j of B at b + j * ldb,
 * k elements each; m <= WS_DOTS_ROWS, n <= dots_n. Sums along k in vectors: an order of its own. */
enum { WS_DOTS_ROWS = 4 };
typedef void ws_dots_fn(int64_t k, const void *a, int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc,
                        const ws_scale *scale, int64_t m, int64_t n);

/* Packs n rows of op(A), or n columns of op(B), into panels of `width`: element r, p of the operand
 * goes to panel r / width, place p * width + r % width; panels follow each other at width * k
 * elements. r, p < n, k is at in + r + p * ld, or at in + p + r * ld if k_contiguous. What the last
 * panel has beyond n is left as it is: kernels do not read it. Moves bits, never computes. */
typedef void ws_pack_fn(int64_t n, int64_t k, const void *in, int64_t ld, bool k_contiguous, void *out, int64_t width);

/* Copies element r, p from in + r + p * ld_in to out + p + r * ld_out, for r < n, p < k. */
typedef void ws_transpose_fn(int64_t n, int64_t k, const void *in, int64_t ld_in, void *out, int64_t ld_out);

/* Converts n lines of m half-precision elements to floats, exactly, or back, rounding to nearest
 * even (what is too large becomes Inf). Line j is at x + j * ld. Nothing outside the lines is
 * touched, and no exception raised that their elements do not raise. */
typedef void ws_widen_fn(int64_t m, int64_t n, const uint16_t *in, int64_t ld_in, float *out, int64_t ld_out);
typedef void ws_narrow_fn(int64_t m, int64_t n, const float *in, int64_t ld_in, uint16_t *out, int64_t ld_out);

/* The conversions of one ISA, by wsgemm_type: NULL where there is nothing to convert. */
typedef struct ws_convert_set {
  ws_widen_fn *widen[WSGEMM_BF16 + 1];
  ws_narrow_fn *narrow[WSGEMM_BF16 + 1];
} ws_convert_set;

/* A matrix unit, which multiplies bfloat16 as it is and sums in FP32, for rows whose tile is its
 * own: panels of mr rows of op(A), of nr columns of op(B), in whatever order it likes. */
typedef struct ws_matrix_unit {
  int64_t (*panel_bytes)(int64_t k); /* a multiple of 64, as panels are aligned */
  /* Around everything that a thread does for one work item: panels may be packed outside. */
  void (*begin)(void);
  void (*end)(void);
  /* Packs n rows of op(A) or columns of op(B): as ws_pack_fn. */
  void (*pack_a)(int64_t n, int64_t k, const uint16_t *in, int64_t ld, bool k_contiguous, void *out);
  void (*pack_b)(int64_t n, int64_t k, const uint16_t *in, int64_t ld, bool k_contiguous, void *out);
  /* sums = A B, or += if `adds`, for panels of m rows and n columns; writes up to the ends of the
   * last ones too. */
  void (*sweep)(int64_t k, const void *a, int64_t m, const void *b, int64_t n, float *sums, int64_t ld, bool adds);
} ws_matrix_unit;

/* The kernels of one row of the registry. A tile of more vectors is narrower, as its accumulators
 * must fit in the registers: it loads less for each multiply-add, so it suits operands that are not
 * packed. */
typedef struct ws_ukr_set {
  int mr, nr, vl; /* elements; mr = 2 vl */
  ws_full_fn *full;
  ws_full_asking_fn *full_asking;
  int n_vectors;        /* of the tallest tile */
  int width[WS_MV_MAX]; /* widest tile by vectors - 1 */
  /* [form][vectors - 1][n - 1]: m in ((vectors - 1) vl, vectors vl]. WS_A_FAR: of the tall ones of 3 and 4
   * vectors alone, where there are none of 2; else NULL */
  ws_ukr_fn *tile[WS_N_FORMS][WS_MV_MAX][WS_NR_MAX];
  /* The same tiles written by rows: element (i, j) of C is at c + j + i * ldc. [WS_B_ROWS or WS_B_COLS][vectors - 1][n - 1]; NULL: an
   * instruction set without them */
  ws_ukr_fn *by_rows[2][WS_MV_MAX][WS_NR_MAX];
  ws_part_fn *part[2][2][WS_NR_MAX]; /* [WS_B_ROWS or WS_B_COLS][vectors - 1][n - 1]; NULL: tiles of more vectors instead */
  ws_half_fn *half[2][2];            /* [WS_B_ROWS or WS_B_COLS][WS_HALF_...] */
  ws_solve_fn *solve[2][2];          /* [direction][vectors - 1] */
  ws_substitute_fn *substitute[2];   /* [vectors - 1] */
  ws_substitute_small_fn *substitute_small;
  ws_gemv_fn *gemv;
  ws_dots_fn *dots;
  int dots_n;
  ws_pack_fn *pack;
  ws_transpose_fn *transpose;
} ws_ukr_set;

/* Vectors that hold n elements; vl is a power of two, and divisions are felt by the smallest products. */
static inline int64_t ws_vectors_of(int64_t n, int64_t vl) { return (n + vl - 1) >> __builtin_ctzll((unsigned long long)vl); }
#endif
