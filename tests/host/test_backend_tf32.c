/* test_backend_tf32.c - products of floats on cc 9.0 by slices of TF32: what the tf32 rows are told, and
 * which products they get; seen by a fake driver. */
#define _GNU_SOURCE
#include "core/region.h"
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

/* A map of lines of floats, rounded or as they are, from the first product to the last. */
static void check_map(const char *what, const ws_map_operand *op, bool rounds, const void *data, bool along_k, int64_t x,
                      int64_t k, int64_t ld, int64_t n_products, int64_t stride, int item_x) {
  fake_map m;
  memcpy(&m, &op->map, sizeof m);
  CHECK(m.type == (rounds ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32) && m.address == (uintptr_t)data &&
            m.dims[0] == (uint64_t)(along_k ? k : x) && m.dims[1] == (uint64_t)(along_k ? x : k) &&
            m.dims[2] == (uint64_t)n_products && m.strides[0] == (uint64_t)ld * 4 &&
            (n_products == 1 || m.strides[1] == (uint64_t)stride * 4) && m.box[0] == 32 &&
            m.box[1] == (uint32_t)(along_k ? item_x : 32) && op->batch_first == 0 && op->batch_step == (n_products > 1),
        "%s: %llu x %llu x %llu, stride %llu, boxes of %u x %u", what, (unsigned long long)m.dims[0],
        (unsigned long long)m.dims[1], (unsigned long long)m.dims[2], (unsigned long long)m.strides[0], m.box[0], m.box[1]);
}

/* The class of numerics that asks for a row's slices. */
static wsgemm_math math_of(const ws_cuda_row *row) { return row->n_slices == 1 ? WSGEMM_MATH_TF32 : WSGEMM_MATH_DEFAULT; }

/* Rows by tensor maps: the maps, the items, and of two transposed operands C transposed. B may be the same for all products; of two slices it
 * has a map more. */
CHILD_CASE(maps) {
  (void)unused;
  static const char *const entries[] = {"nn", "nt", "tn", "tt"};
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (!row->takes_maps) continue;
    wsgemm_handle *h = handle_of_row(row);
    REQUIRE(wsgemm_set_math(h, math_of(row)) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const bool rounds = row->n_slices == 1;
    for (int turn = 0; turn < 16; turn++) {
      const int ops = turn % 4, n_products = turn & 4 ? 3 : 1;
      wsgemm_gemm_desc d = ops_desc(WSGEMM_F32, ops, 301, 203, 77);
      d.a = (const char *)d.a + 16, d.lda = (d.lda + 3) / 4 * 4 + 4, d.ldb = (d.ldb + 3) / 4 * 4, d.batch_count = n_products;
      const bool trans_a = ops / 2, trans_b = ops % 2, shares_b = turn & 8;
      d.stride_a = d.lda * (trans_a ? d.m : d.k) + 8, d.stride_b = shares_b ? 0 : d.ldb * (trans_b ? d.k : d.n),
      d.stride_c = d.ldc * d.n;
      const fake_launch *l = launch_of(h, &d);
      const bool is_across = ops == 3;
      const int64_t m = is_across ? d.n : d.m, n = is_across ? d.m : d.n;
      CHECK(row_of(l) == row && strcmp(l->entry, entries[ops]) == 0, "%s, ops %d: %s", row->name, ops, l->kernel);
      const int64_t n_items = ws_ceil_div(m, row->bm) * ws_ceil_div(n, row->bn) * n_products;
      CHECK(l->args.sched.n_items == n_items && l->grid[0] == n_items * row->cluster && l->args.m == m && l->args.n == n &&
                l->args.k == d.k && l->args.c == d.c && l->args.ldc == d.ldc &&
                (n_products == 1 || l->args.stride_c == d.stride_c),
            "%s, ops %d: %u items of %lld x %lld", row->name, ops, l->args.sched.n_items, (long long)l->args.m,
            (long long)l->args.n);
      check_divisors(row, l);
      const ws_map_operand *of_a = is_across ? &l->maps.b : &l->maps.a, *of_b = is_across ? &l->maps.a : &l->maps.b;
      check_map("A", of_a, rounds, d.a, trans_a, d.m, d.k, d.lda, n_products, d.stride_a, is_across ? row->bn : row->bm);
      check_map("B", of_b, rounds, d.b, !trans_b, d.n, d.k, d.ldb, shares_b ? 1 : n_products, d.stride_b,
                is_across ? row->bm : row->bn);
      if (!rounds && is_across)
        check_map("A, rounded", &l->maps.b_high, true, d.a, trans_a, d.m, d.k, d.lda, n_products, d.stride_a, row->bn);
      else if (!rounds)
        check_map("B, rounded", &l->maps.b_high, true, d.b, !trans_b, d.n, d.k, d.ldb, shares_b ? 1 : n_products, d.stride_b,
                  row->bn);
      CHECK((is_across ? l->args.b : l->args.a).data == d.a && (is_across ? l->args.a : l->args.b).data == d.b, "%s: operands",
            row->name);
    }
    wsgemm_destroy(h);
  }
}

/* No map takes lines that do not begin at multiples of 16 bytes, nor products in reverse order; the driver's refusal is the call's. */
static void without_maps(const ws_cuda_row *row) {
  wsgemm_handle *h = handle_of_row(row);
  REQUIRE(wsgemm_set_math(h, math_of(row)) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  wsgemm_gemm_desc d = ops_desc(WSGEMM_F32, 0, 320, 240, 80);
  d.batch_count = 2, d.stride_a = 320 * 80, d.stride_b = 80 * 240, d.stride_c = 320 * 240;
  CHECK(row_of(launch_of(h, &d)) == row, "%s", fake.launch[0].kernel);
  for (int turn = 0; turn < 8; turn++) {
    wsgemm_gemm_desc x = d;
    if (turn == 0) x.a = (const char *)d.a + 4;
    if (turn == 1) x.b = (const char *)d.b + 8;
    if (turn == 2) x.lda += 2, x.stride_a = x.lda * 80;
    if (turn == 3) x.ldb += 1, x.stride_b = x.ldb * 240;
    if (turn == 4) x.stride_a += 2;
    if (turn == 5) x.math = WSGEMM_MATH_PEDANTIC;
    if (turn == 6) x.k = row->n_slices == 1 ? 23 : 39;
    if (turn == 7) x.a = (const char *)d.a + 4 * d.stride_a, x.stride_a = -d.stride_a;
    CHECK(!strstr(launch_of(h, &x)->kernel, "tf32m"), "turn %d: %s", turn, fake.launch[0].kernel);
  }
  d.math = WSGEMM_MATH_DEFAULT; /* of two slices: another row than one of one slice */
  CHECK((row_of(launch_of(h, &d)) == row) == (row->n_slices == 2) && row_of(&fake.launch[0])->n_slices != 1, "%s by default",
        fake.launch[0].kernel);
  d.math = math_of(row);
  fake_fail(FAKE_cuTensorMapEncodeTiled, row->n_slices + 1, row->n_slices + 1, CUDA_ERROR_INVALID_VALUE);
  expect_failure(h, &d, WSGEMM_DEVICE_ERROR, "tensor map");
  wsgemm_destroy(h);
}
CHILD_CASE(no_maps) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  without_maps(gpu_row_named("sgemm_tf32m1_128x128_g1_k1"));
  without_maps(gpu_row_named("sgemm_tf32m2_128x128_g1_k1"));
}

/* What is computed as C transposed would write the other triangle of a C of which one is written. */
CHILD_CASE(regions) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int ops = 0; ops < 4; ops++)
    for (int uplo = WSGEMM_UPPER; uplo <= WSGEMM_LOWER; uplo++) {
      wsgemm_level3_desc d = level3_device_desc(WSGEMM_GEMMTR, WSGEMM_F32, 320);
      d.math = WSGEMM_MATH_TF32, d.uplo = (wsgemm_uplo)uplo;
      d.transa = ops / 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS, d.transb = ops % 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
      fake_forget();
      REQUIRE(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      CHECK(fake.n_launches == 1 && (strstr(fake.launch[0].kernel, "tf32m") != NULL) == (ops != 3) &&
                fake.launch[0].args.region.region == (uplo == WSGEMM_UPPER ? WS_UPPER : WS_LOWER),
            "ops %d, triangle %d: %d launches, %s", ops, uplo, fake.n_launches, fake.launch[0].kernel);
    }
}

/* Which row it is follows from sizes and ops: no pointer, no ld, no C, no policy changes it, but that lines begin at multiples of
 * 16 bytes, as none do here. */
CHILD_CASE(choice) {
  (void)unused;
  static const int64_t sizes[][3] = {{239, 369, 639}, {129, 271, 4147}, {207, 441, 153}, {350, 396, 461}};
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
        if (turn & 2) other.lda = (d.lda + 7) / 8 * 8, other.ldb = (d.ldb + 7) / 8 * 8 + 1;
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
  const wsgemm_gemm_desc some = ops_desc(WSGEMM_F32, 0, 207, 441, 153), vector = ops_desc(WSGEMM_F32, 2, 120, 1, 176),
                         shorter = ops_desc(WSGEMM_F32, 0, 1390, 690, 23), elsewhere = device_desc(WSGEMM_F32, 139, 69, 339, 1);
  CHECK(is_of(launch_of(NULL, &some), "tf32w2"), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &vector), "vec"), "%s", fake.launch[0].kernel);
  CHECK(!strstr(launch_of(NULL, &shorter)->kernel, "tf32"), "k = 23: %s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(invariant, &some), "simt"), "in invariant mode %s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(pedantic, &some), "ffma"), "under PEDANTIC %s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &elsewhere), "simt"), "cc 100: %s", fake.launch[0].kernel);
  wsgemm_destroy(invariant), wsgemm_destroy(pedantic);
}

static const struct check_case cases[] = {{"launches", launches}, {"maps", maps},     {"no_maps", no_maps},
                                          {"regions", regions},   {"choice", choice}, {"others", others}};
CHECK_MAIN("backend_tf32", cases)
