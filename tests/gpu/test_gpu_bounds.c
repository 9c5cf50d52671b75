/* test_gpu_bounds.c - kernels access nothing behind their operands: these end where no address is mapped. What they compute others
 * test. */
#include <stdio.h>

#include "gpu.h"
#include "guarded.h"
#include "support/level3_call.h"

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
        const bool a_trans = op_transposes(d.transa), b_trans = op_transposes(d.transb);
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
  enum { TURNS = 60, N_MATRICES = 3 };
  static const int64_t edges[] = {1, 2, 7, 14, 31, 32, 33, 46, 64, 94, 126, 129, 158, 255, 257, 350, 520};
  enum { N_EDGES = sizeof edges / sizeof edges[0] };
  wsgemm_handle *h = NULL;
  begin(402);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int r = 0; r < N_ROUTINES; r++)
    for (int type = 0; type < N_LEVEL3_TYPES; type++)
      for (int turn = 0; turn < TURNS; turn++) {
        if (!routine_has_type(all_routines[r], (wsgemm_type)type) || check_random_in(&rng, 1, check_scale()) > 1) continue;
        struct variant v = draw_variant(all_routines[r], (wsgemm_type)type, &rng);
        const int64_t size = edges[check_random_in(&rng, 0, N_EDGES - 1)],
                      others = turn % 3 ? check_random_in(&rng, 1, 300) : 2600;
        const bool left = v.side == WSGEMM_LEFT;
        int64_t rows[N_MATRICES], columns[N_MATRICES], *ld[N_MATRICES];
        char text[DESCRIPTION_BYTES];
        v.diag = WSGEMM_UNIT; /* the memory is zero */
        wsgemm_level3_desc d =
            level3_desc(all_routines[r], (wsgemm_type)type, WSGEMM_COL_MAJOR, &v, left ? size : others,
                        left && !routine_writes_triangle(all_routines[r]) ? others : size, check_random_in(&rng, 1, 400));
        void *at[N_MATRICES];
        level3_shapes(&d, rows, columns);
        ld[0] = &d.lda, ld[1] = &d.ldb, ld[2] = &d.ldc;
        for (int i = 0; i < N_MATRICES; i++) {
          if (rows[i] > 0) *ld[i] = draw_ld(rows[i]);
          at[i] = rows[i] > 0 ? placed(i, d.type, rows[i], columns[i], *ld[i]) : NULL;
        }
        d.a = at[0], d.b = at[1], d.c = at[2];
        CHECK(wsgemm_level3(h, &d) == WSGEMM_SUCCESS, "%s: %s", level3_describe(&d, text), wsgemm_last_error());
        REQUIRE(cudaDeviceSynchronize() == cudaSuccess, "%s: %s", level3_describe(&d, text),
                cudaGetErrorString(cudaGetLastError()));
      }
  wsgemm_destroy(h);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"gemm", gemm}, {"level3", level3}};
  gpu_open();
  return check_main("gpu_bounds", cases, sizeof cases / sizeof cases[0], argc, argv);
}
