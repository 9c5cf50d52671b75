/* test_backend_tf32.c - products of floats on cc 9.0 by slices of TF32: what the tf32 rows are told, and
 * which products they get; seen by a fake driver. */
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
  check_launches_by_ops(WS_ROW_TF32, check_parts);
}

/* Which row it is follows from sizes and ops: no pointer, no ld, no C, no policy changes it. */
CHILD_CASE(choice) {
  (void)unused;
  static const int64_t sizes[][3] = {{239, 369, 639}, {29, 71, 4147}, {207, 441, 153}, {350, 396, 461}};
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int ops = 0; ops < 8; ops++) {
      REQUIRE(wsgemm_set_math(h, ops / 4 ? WSGEMM_MATH_TF32 : WSGEMM_MATH_DEFAULT) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      wsgemm_gemm_desc d = ops_desc(WSGEMM_F32, ops % 4, sizes[s][0], sizes[s][1], sizes[s][2]);
      const ws_cuda_row *row = row_of(launch_of(h, &d));
      CHECK(row && row->kind == WS_ROW_TF32 && row->n_slices >= (ops / 4 ? 1 : 2), "%s", fake.launch[0].kernel);
      for (int turn = 0; turn < 8; turn++) {
        wsgemm_gemm_desc other = d;
        if (turn & 1) other.a = (const char *)d.a + 4;
        if (turn & 2) other.lda = (d.lda + 7) / 8 * 8, other.ldb = (d.ldb + 7) / 8 * 8;
        if (turn & 4) other.beta.s = 1;
        wsgemm_set_policy(h, turn & 2 ? WSGEMM_POLICY_FIXED_BLOCKS : WSGEMM_POLICY_AUTO);
        wsgemm_set_coarse_factor(h, turn & 1 ? 2 : 0);
        CHECK(row_of(launch_of(h, &other)) == row, "turn %d: %s, not %s", turn, fake.launch[0].kernel, row->name);
      }
      wsgemm_set_policy(h, WSGEMM_POLICY_AUTO), wsgemm_set_coarse_factor(h, 0);
    }
  wsgemm_destroy(h);
}

/* Invariant mode, PEDANTIC, a short k, matrix-vector products and other devices have other rows. */
CHILD_CASE(others) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132, fake.device[1].cc = 100, fake.n_devices = 2;
  wsgemm_handle *invariant = NULL, *pedantic = NULL;
  REQUIRE(wsgemm_create(&invariant) == WSGEMM_SUCCESS && wsgemm_set_invariant(invariant, true) == WSGEMM_SUCCESS &&
              wsgemm_create(&pedantic) == WSGEMM_SUCCESS && wsgemm_set_math(pedantic, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS,
          "%s", wsgemm_last_error());
  const wsgemm_gemm_desc some = ops_desc(WSGEMM_F32, 0, 29, 71, 4147), vector = ops_desc(WSGEMM_F32, 2, 120, 1, 176),
                         shorter = ops_desc(WSGEMM_F32, 0, 1390, 690, 23), elsewhere = device_desc(WSGEMM_F32, 139, 69, 339, 1);
  CHECK(is_of(launch_of(NULL, &some), "tf32x2"), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &vector), "vec"), "%s", fake.launch[0].kernel);
  CHECK(!is_of(launch_of(NULL, &shorter), "tf32x2"), "k = 23: %s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(invariant, &some), "simt"), "in invariant mode %s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(pedantic, &some), "ffma"), "under PEDANTIC %s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &elsewhere), "simt"), "cc 100: %s", fake.launch[0].kernel);
  wsgemm_destroy(invariant), wsgemm_destroy(pedantic);
}

static const struct check_case cases[] = {{"launches", launches}, {"choice", choice}, {"others", others}};
CHECK_MAIN("backend_tf32", cases)
