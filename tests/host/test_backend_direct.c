/* test_backend_direct.c - small and flat products of half precision on cc 9.0: what the direct rows
 * are told, and which products they get; seen by a fake driver. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <stdio.h>
#include <string.h>

static wsgemm_handle *handle_in(bool is_invariant) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, is_invariant) == WSGEMM_SUCCESS, "%s",
          wsgemm_last_error());
  return h;
}

static bool is_direct(const fake_launch *l) { return is_of(l, "direct"); }

static void check_direct_grid(const ws_cuda_row *row, const fake_launch *l) {
  CHECK(l->args.grid.swizzle == l->args.grid.n_rows, "%s: grid", row->name);
}
CHILD_CASE(launches) {
  (void)unused;
  check_launches_by_ops(WS_ROW_DIRECT, check_direct_grid);
}

/* Which row it is follows from sizes and ops: no pointer, no ld, no C changes it. */
CHILD_CASE(choice) {
  (void)unused;
  static const int64_t sizes[][3] = {{39, 69, 39}, {29, 71, 4147}, {207, 1441, 53}, {5, 7, 300}, {150, 196, 461}};
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  wsgemm_handle *h = handle_in(false);
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int ops = 0; ops < 4; ops++) {
      wsgemm_gemm_desc d = ops_desc(WSGEMM_BF16, ops, sizes[s][0], sizes[s][1], sizes[s][2]);
      const ws_cuda_row *row = row_of(launch_of(h, &d));
      CHECK(row->kind == WS_ROW_DIRECT, "%s", row->name);
      for (int turn = 0; turn < 6; turn++) {
        wsgemm_gemm_desc other = d;
        if (turn & 1) other.a = (const char *)d.a + 2;
        if (turn & 2) other.lda = (d.lda + 7) / 8 * 8, other.ldb = (d.ldb + 7) / 8 * 8;
        if (turn & 4) other.type_c = WSGEMM_F32, other.beta.s = 1;
        CHECK(row_of(launch_of(h, &other)) == row, "turn %d: %s, not %s", turn, fake.launch[0].kernel, row->name);
      }
    }
  wsgemm_destroy(h);
}

/* Of the last launch: unaligned operands may be copied before it. */
static const ws_cuda_row *last_row(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  REQUIRE(watched_gemm(h, d) == WSGEMM_SUCCESS && fake.n_launches > 0, "%s", wsgemm_last_error());
  return row_of(&fake.launch[fake.n_launches - 1]);
}

/* Flat rows are for matrices that are read by 16 bytes along k, times few columns or rows; nothing
 * but sizes and ops decides. */
CHILD_CASE(flat) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  wsgemm_handle *h = handle_in(false), *invariant = handle_in(true);
  for (int64_t few = 2; few <= 9; few++)
    for (int ops = 0; ops < 4; ops++)
      for (int turn = 0; turn < 4; turn++) {
        const int64_t x = 1024 << turn, k = turn == 2 ? 4100 : 4096;
        const bool is_tall = ops / 2, may_be_flat = few <= 8 && k % 8 == 0;
        wsgemm_gemm_desc d = ops_desc(WSGEMM_F16, ops, is_tall ? x : few, is_tall ? few : x, k);
        const ws_cuda_row *row = last_row(h, &d);
        const bool is_along_k = is_tall ? ops / 2 == 1 : ops % 2 == 0;
        CHECK(!row->is_flat || (may_be_flat && is_along_k && (row->bm > row->bn) == is_tall), "%s", row->name);
        d.a = (const char *)d.a + 2, d.lda += 3;
        CHECK(last_row(h, &d) == row, "with another ld %s, not %s", fake.launch[0].kernel, row->name);
        CHECK(!last_row(invariant, &d)->is_flat, "in invariant mode %s", fake.launch[0].kernel);
      }
  wsgemm_destroy(h), wsgemm_destroy(invariant);
}

/* Large products, invariant mode, PEDANTIC, matrix-vector products with a long k and other devices
 * have other rows. */
CHILD_CASE(others) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  wsgemm_handle *h = handle_in(false), *invariant = handle_in(true);
  const wsgemm_gemm_desc small = ops_desc(WSGEMM_F16, 0, 39, 69, 39), large = ops_desc(WSGEMM_F16, 0, 1400, 1400, 1400),
                         vector = ops_desc(WSGEMM_F16, 2, 12, 1, 10177), short_vector = ops_desc(WSGEMM_F16, 2, 120, 1, 799),
                         quick_vector = ops_desc(WSGEMM_F16, 2, 1970, 1, 403),
                         many_lines = ops_desc(WSGEMM_F16, 2, 13979, 1, 221);
  CHECK(is_direct(launch_of(h, &small)), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(h, &large), "wgmma"), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(h, &vector), "vec"), "%s", fake.launch[0].kernel);
  CHECK(is_direct(launch_of(h, &short_vector)), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(h, &quick_vector), "vec"), "%s: no parts of k to add up", fake.launch[0].kernel);
  CHECK(is_direct(launch_of(h, &many_lines)), "%s: rounds of blocks", fake.launch[0].kernel);
  REQUIRE(watched_gemm(invariant, &small) == WSGEMM_SUCCESS && fake.n_launches == 2, "%d launches", fake.n_launches);
  CHECK(is_of(&fake.launch[1], "wgmma"), "in invariant mode %s", fake.launch[1].kernel);
  REQUIRE(wsgemm_set_math(h, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  CHECK(is_of(launch_of(h, &small), "fma16"), "under PEDANTIC %s", fake.launch[0].kernel);
  REQUIRE(wsgemm_set_math(h, WSGEMM_MATH_DEFAULT) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int coarse = 0; coarse <= 4; coarse += 2) {
    REQUIRE(wsgemm_set_coarse_factor(h, coarse) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(is_direct(launch_of(h, &small)), "with a COARSE_FACTOR of %d %s", coarse, fake.launch[0].kernel);
  }
  wsgemm_destroy(h), wsgemm_destroy(invariant);
}

CHILD_CASE(other_devices) {
  (void)unused;
  static const int ccs[] = {80, 89, 100, 120};
  for (size_t i = 0; i < FAKE_N_DEVICES && i < sizeof ccs / sizeof ccs[0]; i++) fake.device[i].cc = ccs[i];
  fake.n_devices = FAKE_N_DEVICES;
  for (int device = 0; device < FAKE_N_DEVICES; device++) {
    const wsgemm_gemm_desc d = device_desc(WSGEMM_F16, 39, 69, 39, device);
    CHECK(is_of(launch_of(NULL, &d), "mma16"), "cc %d: %s", fake.device[device].cc, fake.launch[0].kernel);
  }
}

static const struct check_case cases[] = {
    {"launches", launches}, {"choice", choice}, {"flat", flat}, {"others", others}, {"other_devices", other_devices}};
CHECK_MAIN("backend_direct", cases)
