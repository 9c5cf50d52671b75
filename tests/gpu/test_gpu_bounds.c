/* test_gpu_bounds.c - kernels access nothing behind their operands: these end where no address is mapped. What they compute others
 * test. */
#include <stdio.h>

#include "gpu.h"
#include "guarded.h"

enum { N_OPERANDS = 3, OPERAND_BYTES = 96 << 20 };
static char *end[N_OPERANDS];
static struct check_random rng;

static void begin(unsigned long long salt) {
  for (int i = 0; i < N_OPERANDS; i++)
    if (!end[i]) end[i] = gpu_guarded_end(OPERAND_BYTES);
  rng = check_random_from(salt);
}

/* Rows of a column-major matrix and what lies between them and the next column: nothing, or up to whole 16 bytes, or one more. */
static int64_t draw_ld(int64_t rows) {
  const int64_t padded[] = {rows, (rows + 7) / 8 * 8, rows + 1};
  return padded[check_random_in(&rng, 0, 2)];
}

/* The last matrix that fits before the end. */
static void *placed(int operand, wsgemm_type type, int64_t rows, int64_t columns, int64_t ld) {
  const size_t bytes = (size_t)(ld * (columns - 1) + rows) * type_bytes(type);
  REQUIRE(bytes <= OPERAND_BYTES, "%zu bytes", bytes);
  return end[operand] - bytes;
}

static void gemm(void) {
  enum { TURNS = 24, MOST = 290 };
  static struct rows_of_type rows;
  begin(401);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int i = 0; i < rows.n_rows; i++)
      for (int turn = 0; turn < TURNS; turn++) {
        if (check_random_in(&rng, 1, check_scale()) > 1) continue;
        const int64_t m = check_random_in(&rng, 1, MOST), n = check_random_in(&rng, 1, MOST),
                      k = check_random_in(&rng, 1, 2 * MOST);
        wsgemm_gemm_desc d = gemm_desc(rows.type, WSGEMM_COL_MAJOR, draw_op(rows.type, &rng), draw_op(rows.type, &rng), m, n, k);
        const bool a_trans = d.transa == WSGEMM_TRANS || d.transa == WSGEMM_CONJ_TRANS,
                   b_trans = d.transb == WSGEMM_TRANS || d.transb == WSGEMM_CONJ_TRANS;
        char text[DESCRIPTION_BYTES];
        d.lda = draw_ld(a_trans ? k : m), d.ldb = draw_ld(b_trans ? n : k), d.ldc = draw_ld(m);
        d.a = placed(0, rows.type, a_trans ? k : m, a_trans ? m : k, d.lda);
        d.b = placed(1, rows.type, b_trans ? n : k, b_trans ? k : n, d.ldb);
        d.c = placed(2, rows.type, m, n, d.ldc);
        d.alpha = scalar_make(rows.type, 1, 0), d.beta = scalar_make(rows.type, turn % 2, 0);
        CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess, "%s: %s: %s", rows.row[i].name, gemm_describe(&d, text),
                cudaGetErrorString(cudaGetLastError()));
      }
    rows_close(&rows);
  }
}

static void level3(void) {
  enum { TURNS = 60 };
  static const int64_t edges[] = {1, 2, 7, 14, 31, 32, 33, 46, 64, 94, 126, 129, 158, 255, 257, 350, 520};
  enum { N_EDGES = sizeof edges / sizeof edges[0] };
  wsgemm_handle *h = NULL;
  begin(402);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int r = WSGEMM_SYMM; r <= WSGEMM_TRSM; r++)
    for (int type = WSGEMM_F32; type <= WSGEMM_C64; type++)
      for (int turn = 0; turn < TURNS; turn++) {
        const bool is_hermitian = r == WSGEMM_HEMM || r == WSGEMM_HERK || r == WSGEMM_HER2K;
        const bool is_triangular = r == WSGEMM_TRMM || r == WSGEMM_TRSM,
                   has_side = is_triangular || r == WSGEMM_SYMM || r == WSGEMM_HEMM;
        if ((is_hermitian && type < WSGEMM_C32) || check_random_in(&rng, 1, check_scale()) > 1) continue;
        wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
        const int64_t size = edges[check_random_in(&rng, 0, N_EDGES - 1)],
                      others = turn % 3 ? check_random_in(&rng, 1, 300) : 2600;
        const bool left = check_random_in(&rng, 0, 1) != 0, trans = check_random_in(&rng, 0, 1) != 0;
        d.routine = (wsgemm_routine)r, d.type = (wsgemm_type)type, d.side = left ? WSGEMM_LEFT : WSGEMM_RIGHT;
        d.uplo = check_random_in(&rng, 0, 1) ? WSGEMM_UPPER : WSGEMM_LOWER, d.diag = WSGEMM_UNIT;
        if (r != WSGEMM_SYMM && r != WSGEMM_HEMM && trans) d.transa = is_hermitian ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS;
        d.m = !has_side || left ? size : others, d.n = !has_side || !left ? size : others;
        d.k = r == WSGEMM_GEMMTR || !has_side ? check_random_in(&rng, 1, 400) : 0;
        const int64_t k = d.k, a_rows = has_side ? size : trans ? k : size, a_columns = has_side ? size : trans ? size : k;
        const bool b_is_like_a = r == WSGEMM_SYR2K || r == WSGEMM_HER2K;
        const int64_t b_rows = has_side      ? d.m
                               : b_is_like_a ? a_rows
                                             : k,
                      b_columns = has_side      ? d.n
                                  : b_is_like_a ? a_columns
                                                : size;
        d.lda = draw_ld(a_rows), d.ldb = draw_ld(b_rows), d.ldc = draw_ld(d.m);
        d.a = placed(0, d.type, a_rows, a_columns, d.lda);
        d.b = r == WSGEMM_SYRK || r == WSGEMM_HERK ? NULL : placed(1, d.type, b_rows, b_columns, d.ldb);
        d.c = is_triangular ? NULL : placed(2, d.type, d.m, d.n, d.ldc);
        d.alpha = scalar_make(d.type, 1, 0), d.beta = scalar_make(d.type, 0, 0);
        CHECK(wsgemm_level3(h, &d) == WSGEMM_SUCCESS, "routine %d: %s", r, wsgemm_last_error());
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess,
                "routine %d, type %d, side %d, uplo %d, transa %d, %lld x %lld, k %lld: %s", r, type, d.side, d.uplo, d.transa,
                (long long)d.m, (long long)d.n, (long long)d.k, cudaGetErrorString(cudaGetLastError()));
      }
  wsgemm_destroy(h);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"gemm", gemm}, {"level3", level3}};
  gpu_open();
  return check_main("gpu_bounds", cases, sizeof cases / sizeof cases[0], argc, argv);
}
