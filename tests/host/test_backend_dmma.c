/* test_backend_dmma.c - products of double precision on cc 9.0: what the dmma rows are told, and which
 * products they get; seen by a fake driver. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <stdio.h>
#include <string.h>

static const wsgemm_op both_ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS};

static wsgemm_gemm_desc double_desc(wsgemm_type type, int ops, int64_t m, int64_t n, int64_t k) {
  wsgemm_gemm_desc d = device_desc(type, m, n, k, 0);
  d.transa = both_ops[ops / 2], d.transb = both_ops[ops % 2];
  d.lda = ops / 2 ? k : m, d.ldb = ops % 2 ? n : k;
  return d;
}

/* Every row: one launch however the operands lie, a block or a cluster for each item whatever the
 * policy, the entry point of the ops. */
CHILD_CASE(launches) {
  (void)unused;
  static const char *const entries[] = {"nn", "nt", "tn", "tt"};
  int n_rows = 0;
  fake.device[0].cc = 90;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->kind != WS_ROW_DMMA) continue;
    n_rows++;
    wsgemm_handle *h = handle_of_row(row);
    for (int ops = 0; ops < 4; ops++)
      for (int policy = 0; policy < WS_N_POLICIES; policy++) {
        wsgemm_gemm_desc d = double_desc(row->type, ops, 301, 203, 77);
        d.a = (const char *)d.a + 8, d.lda += ops;
        REQUIRE(wsgemm_set_policy(h, (wsgemm_policy)policy) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        const fake_launch *l = launch_of(h, &d);
        const int64_t n_items = ws_ceil_div(d.m, row->bm) * ws_ceil_div(d.n, row->bn);
        CHECK(row_of(l) == row && strcmp(l->entry, entries[ops]) == 0, "%s, ops %d: %s", row->name, ops, l->kernel);
        CHECK(l->grid[0] == n_items * row->cluster && l->cluster == (unsigned)row->cluster &&
                  l->block[0] == (unsigned)row->n_threads && l->shared_bytes == (unsigned)row->shared_bytes,
              "%s: %u blocks in clusters of %u, %u threads", row->name, l->grid[0], l->cluster, l->block[0]);
        CHECK(l->args.sched.n_items == n_items && !l->args.sched.queue && l->args.grid.coarse == 1 &&
                  l->args.grid.n_rows * row->bm >= d.m && l->args.grid.n_cols * row->bn >= d.n && l->args.split.n_splits <= 1,
              "%s: grid", row->name);
        CHECK(l->args.a.data == d.a && l->args.b.data == d.b && l->args.c == d.c && l->args.k == d.k, "%s: operands", row->name);
      }
    wsgemm_destroy(h);
  }
  CHECK(n_rows > 0, "there are no dmma rows");
}

/* Which row it is follows from sizes and ops: no pointer, no ld, no C, no policy changes it. */
CHILD_CASE(choice) {
  (void)unused;
  static const int64_t sizes[][3] = {{39, 69, 39}, {29, 71, 4147}, {207, 441, 53}, {5, 7, 300}, {150, 196, 461}};
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
    for (int ops = 0; ops < 8; ops++) {
      const wsgemm_type type = ops / 4 ? WSGEMM_C64 : WSGEMM_F64;
      wsgemm_gemm_desc d = double_desc(type, ops % 4, sizes[s][0], sizes[s][1], sizes[s][2]);
      const ws_cuda_row *row = row_of(launch_of(h, &d));
      CHECK(row && row->kind == WS_ROW_DMMA, "%s", fake.launch[0].kernel);
      for (int turn = 0; turn < 8; turn++) {
        wsgemm_gemm_desc other = d;
        if (turn & 1) other.a = (const char *)d.a + 8;
        if (turn & 2) other.lda = (d.lda + 7) / 8 * 8, other.ldb = (d.ldb + 7) / 8 * 8;
        if (turn & 4) other.beta.d = 1;
        wsgemm_set_policy(h, turn & 2 ? WSGEMM_POLICY_FIXED_BLOCKS : WSGEMM_POLICY_AUTO);
        wsgemm_set_coarse_factor(h, turn & 1 ? 2 : 0);
        CHECK(row_of(launch_of(h, &other)) == row, "turn %d: %s, not %s", turn, fake.launch[0].kernel, row->name);
      }
      wsgemm_set_policy(h, WSGEMM_POLICY_AUTO), wsgemm_set_coarse_factor(h, 0);
    }
  wsgemm_destroy(h);
}

/* Invariant mode, matrix-vector products and other devices have other rows. */
CHILD_CASE(others) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132, fake.device[1].cc = 100, fake.n_devices = 2;
  wsgemm_handle *invariant = NULL;
  REQUIRE(wsgemm_create(&invariant) == WSGEMM_SUCCESS && wsgemm_set_invariant(invariant, true) == WSGEMM_SUCCESS, "%s",
          wsgemm_last_error());
  const wsgemm_gemm_desc square = double_desc(WSGEMM_F64, 0, 139, 69, 39), vector = double_desc(WSGEMM_F64, 2, 120, 1, 176),
                         elsewhere = device_desc(WSGEMM_F64, 139, 69, 39, 1);
  CHECK(is_of(launch_of(NULL, &square), "dmma"), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &vector), "vec"), "%s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(invariant, &square), "mma"), "in invariant mode %s", fake.launch[0].kernel);
  CHECK(is_of(launch_of(NULL, &elsewhere), "mma"), "cc 100: %s", fake.launch[0].kernel);
  wsgemm_destroy(invariant);
}

static const struct check_case cases[] = {{"launches", launches}, {"choice", choice}, {"others", others}};
CHECK_MAIN("backend_dmma", cases)
