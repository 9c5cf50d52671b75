/* test_backend_dmma.c - products of double precision, and of floats by multiply-adds, on cc 9.0: what the
 * dmma and ffma rows are told, and which products they get; seen by a fake driver. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <stdio.h>
#include <string.h>

static void check_parts(const ws_cuda_row *row, const fake_launch *l) {
  CHECK(l->args.split.n_splits <= 1, "%s: grid", row->name);
  check_divisors(row, l);
}
CHILD_CASE(launches) {
  (void)unused;
  check_launches_by_ops(WS_ROW_DMMA, check_parts);
}

/* Which row it is follows from sizes and ops: no pointer, no ld, no C, no policy changes it. */
CHILD_CASE(choice) {
  (void)unused;
  static const int64_t sizes[][3] = {{39, 69, 39}, {29, 71, 4147}, {207, 441, 53}, {5, 7, 300}, {150, 196, 461}};
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  wsgemm_handle *h = NULL;
  int n_in_parts[2] = {0};
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int ops = 0; ops < 12; ops++) {
      const wsgemm_type type = ops / 4 == 0 ? WSGEMM_F64 : ops / 4 == 1 ? WSGEMM_C64 : WSGEMM_F32;
      /* the handle's, which typed calls obey, too */
      REQUIRE(wsgemm_set_math(h, type == WSGEMM_F32 ? WSGEMM_MATH_PEDANTIC : WSGEMM_MATH_DEFAULT) == WSGEMM_SUCCESS, "%s",
              wsgemm_last_error());
      wsgemm_gemm_desc d = ops_desc(type, ops % 4, sizes[s][0], sizes[s][1], sizes[s][2]);
      const ws_cuda_row *row = row_of(launch_of(h, &d));
      CHECK(row && (row->kind == WS_ROW_DMMA || type == WSGEMM_F32), "%s", fake.launch[0].kernel);
      if (row->kind != WS_ROW_DMMA) continue; /* floats: where tiled rows are thought to be faster */
      n_in_parts[type == WSGEMM_F32]++;
      for (int turn = 0; turn < 8; turn++) {
        wsgemm_gemm_desc other = d;
        if (turn & 1) other.a = (const char *)d.a + (type == WSGEMM_F32 ? 4 : 8);
        if (turn & 2) other.lda = (d.lda + 7) / 8 * 8, other.ldb = (d.ldb + 7) / 8 * 8;
        if (turn & 4) other.beta.d = 1;
        wsgemm_set_policy(h, turn & 2 ? WSGEMM_POLICY_FIXED_BLOCKS : WSGEMM_POLICY_AUTO);
        wsgemm_set_coarse_factor(h, turn & 1 ? 2 : 0);
        CHECK(row_of(launch_of(h, &other)) == row, "turn %d: %s, not %s", turn, fake.launch[0].kernel, row->name);
      }
      wsgemm_set_policy(h, WSGEMM_POLICY_AUTO), wsgemm_set_coarse_factor(h, 0);
    }
  CHECK(n_in_parts[1] > 0, "%d products of floats", n_in_parts[1]);
  wsgemm_destroy(h);
}

/* Invariant mode, matrix-vector products, a k that many blocks are to share and other devices have other rows. */
CHILD_CASE(others) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132, fake.device[1].cc = 100, fake.n_devices = 2;
  wsgemm_handle *invariant = NULL;
  REQUIRE(wsgemm_create(&invariant) == WSGEMM_SUCCESS && wsgemm_set_invariant(invariant, true) == WSGEMM_SUCCESS, "%s",
          wsgemm_last_error());
  const wsgemm_gemm_desc square = ops_desc(WSGEMM_F64, 0, 139, 69, 39), vector = ops_desc(WSGEMM_F64, 2, 120, 1, 176),
                         in_parts = ops_desc(WSGEMM_F64, 1, 16, 16, 1 << 20),
                         square_in_parts = ops_desc(WSGEMM_F64, 0, 64, 64, 1 << 16),
                         elsewhere = device_desc(WSGEMM_F64, 139, 69, 39, 1);
  CHECK(is_of(launch_of(NULL, &square), "dmma"), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &vector), "vec"), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &in_parts), "mma") && fake.launch[0].args.split.n_splits > 8, "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &square_in_parts), "mma") && fake.launch[0].args.split.n_splits > 16, "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(invariant, &square), "mma"), "in invariant mode %s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &elsewhere), "mma"), "cc 100: %s", fake.launch[0].kernel);
  wsgemm_destroy(invariant);
}

static const struct check_case cases[] = {{"launches", launches}, {"choice", choice}, {"others", others}};
CHECK_MAIN("backend_dmma", cases)
