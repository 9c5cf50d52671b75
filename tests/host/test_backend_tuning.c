/* test_backend_tuning.c - which lines the products of Level 3 calls in device memory take: their own
 * routine's, gemm's where the work is gemm's, and no others. Seen by a fake driver; links the
 * library's objects, to put lines into force. */
#define _GNU_SOURCE
#include "cuda/shared/triangle_args.h"
#include "fake_calls.h"
#include "tune/tuning.h"

#include <stdio.h>
#include <string.h>

enum { TUNED_ORDER = 3 };

static bool explains(const wsgemm_level3_desc *d, const char *line) {
  char text[4096];
  wsgemm_level3_explain(NULL, d, text, sizeof text);
  return strstr(text, line) != NULL;
}

static bool has_tuned_order(const wsgemm_level3_desc *d) {
  return explains(d, "\norder: 3\n") && explains(d, "\nchosen_by: tuning file\n");
}

/* The row that the model takes, with an order of tiles that it never takes. */
static void put_line(const wsgemm_level3_desc *d, ws_tuning_kind kind, int64_t m, int64_t n, int64_t k) {
  char text[4096];
  ws_tuning_entry e = {.kind = kind, .shape = {m, n, k, 1}, .tuning = {.order = TUNED_ORDER}};
  e.kind.type = e.kind.type_c = d->type;
  wsgemm_level3_explain(NULL, d, text, sizeof text);
  const char *kernel = strstr(text, "\nkernel: ");
  REQUIRE(kernel && sscanf(kernel, "\nkernel: %63s", e.row) == 1 && ws_tune_device(1, &e.device), "%s", text);
  memcpy(e.version, wsgemm_version_string(), strlen(wsgemm_version_string()) + 1);
  CHECK(!has_tuned_order(d), "tuned before it was tuned");
  CHECK(ws_tune_put(&e), "memory");
  CHECK(has_tuned_order(d), "the line is not taken");
}

static void run(const wsgemm_level3_desc *d) {
  fake_forget();
  REQUIRE(wsgemm_level3(NULL, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(fake.n_launches > 0 && fake.n_launches <= FAKE_N_LAUNCHES, "%d launches", fake.n_launches);
}

/* A product of which a triangle is written takes lines of syrk, of this triangle; gemm does not, and
 * they do not take gemm's. */
CHILD_CASE(tuned_region) {
  (void)unused;
  enum { N = 2048 };
  wsgemm_level3_desc d = level3_device_desc(WSGEMM_SYRK, WSGEMM_F64, N);
  put_line(&d, (ws_tuning_kind){.routine = WSGEMM_SYRK, .is_upper = true, .numerics = WS_NUMERICS_CHAIN, .b_trans = true}, N, N,
           N);
  run(&d);
  CHECK(fake.launch[0].args.grid.swizzle == TUNED_ORDER, "launched in order %lld", (long long)fake.launch[0].args.grid.swizzle);
  d.uplo = WSGEMM_LOWER;
  CHECK(!has_tuned_order(&d), "the other triangle takes it");
  d = level3_device_desc(WSGEMM_SYR2K, WSGEMM_F64, N);
  CHECK(has_tuned_order(&d), "the products of syr2k do not take it");
  d = level3_device_desc(WSGEMM_GEMMTR, WSGEMM_F64, N), d.transb = WSGEMM_TRANS;
  CHECK(has_tuned_order(&d), "gemmtr does not take it");
  wsgemm_gemm_desc gemm = gemm_desc(WSGEMM_F64, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N);
  gemm.a = d.a, gemm.b = d.b, gemm.c = d.c;
  CHECK(!explained_is(NULL, &gemm, "chosen_by", "tuning file"), "gemm takes it");
}

/* symm by slices: its own line, else gemm's; of trmm only its own. */
CHILD_CASE(tuned_slices) {
  (void)unused;
  enum { N = 2048 };
  fake.device[0].cc = 90;
  wsgemm_level3_desc symm = level3_device_desc(WSGEMM_SYMM, WSGEMM_F32, N), trmm = level3_device_desc(WSGEMM_TRMM, WSGEMM_F32, N);
  put_line(&symm, (ws_tuning_kind){.numerics = WS_NUMERICS_F16X3}, N, N, N);
  CHECK(!has_tuned_order(&trmm), "trmm takes gemm's line");
  put_line(&trmm, (ws_tuning_kind){.routine = WSGEMM_TRMM, .is_upper = true, .numerics = WS_NUMERICS_F16X3}, N, N, N);
  run(&trmm);
  for (int i = 0; i < fake.n_launches; i++)
    if (is_of(&fake.launch[i], "f16x3"))
      CHECK(fake.launch[i].wgmma.grid.swizzle == TUNED_ORDER, "launched in order %lld",
            (long long)fake.launch[i].wgmma.grid.swizzle);
  symm.side = WSGEMM_RIGHT;
  CHECK(has_tuned_order(&symm), "symm on the right does not take gemm's line");
}

/* A system's largest product is gemm's, and takes its lines. */
CHILD_CASE(tuned_system) {
  (void)unused;
  enum { N = 64 * WS_SOLVE_N_d };
  const wsgemm_level3_desc d = level3_device_desc(WSGEMM_TRSM, WSGEMM_F64, N);
  put_line(&d, (ws_tuning_kind){.numerics = WS_NUMERICS_CHAIN}, N / 2, N, N / 2);
  /* halves that are not alike: two blocks of unknowns get what comes of one */
  enum { BLOCK = WS_SOLVE_N_d, ODD = 3 * BLOCK };
  const wsgemm_level3_desc odd = level3_device_desc(WSGEMM_TRSM, WSGEMM_F64, ODD);
  put_line(&odd, (ws_tuning_kind){.numerics = WS_NUMERICS_CHAIN}, 2 * BLOCK, ODD, BLOCK);
}

static const struct check_case cases[] = {
    {"tuned_region", tuned_region}, {"tuned_slices", tuned_slices}, {"tuned_system", tuned_system}};
CHECK_MAIN("backend_tuning", cases)
