/* test_backend_small.c - batches of small products on cc 9.0: what the rows of small.def are told, and which
 * products they get; seen by a fake driver. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 64, BATCH = 50 };

static wsgemm_gemm_desc batch_desc(wsgemm_type type, int ops, int64_t m, int64_t n, int64_t k, int64_t count) {
  wsgemm_gemm_desc d = ops_desc(type, ops, m, n, k);
  d.batch_count = count, d.stride_a = m * k, d.stride_b = k * n, d.stride_c = m * n;
  return d;
}

static bool is_small(const fake_launch *l) { return is_of(l, "small"); }

/* The grid and the words of a launch by this row. */
static void check_launch(wsgemm_handle *h, const ws_cuda_row *row, const wsgemm_gemm_desc *d, int ops) {
  static const char *const entries[] = {"nn", "nt", "tn", "tt"};
  const fake_launch *l = launch_of(h, d);
  const long long n_items = l->args.sched.n_items, n_together = explained_number(h, d, "matrices_per_item", 0);
  CHECK(row_of(l) == row && strcmp(l->entry, entries[ops]) == 0, "%s, entry %s, not %s", l->kernel, l->entry, row->name);
  CHECK(l->block[0] % 32 == 0 && (int)l->block[0] <= row->n_threads && (int)l->shared_bytes <= row->shared_bytes,
        "%s: %u threads, %u bytes", row->name, l->block[0], l->shared_bytes);
  CHECK(l->grid[0] >= 1 && l->grid[0] <= n_items && !l->is_cooperative && l->cluster == 1, "%s: %u blocks", row->name,
        l->grid[0]);
  CHECK(explained_number(h, d, "items", 0) == n_items && n_items * n_together >= d->batch_count &&
            (n_items - 1) * n_together < d->batch_count,
        "%s: %lld items of %lld matrices", row->name, n_items, n_together);
}

/* However the operands lie; the item's matrices may be others. */
CHILD_CASE(launches) {
  (void)unused;
  int n_seen = 0;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->kind != WS_ROW_SMALL) continue;
    wsgemm_handle *h = handle_of_row(row);
    for (int ops = 0; ops < 4; ops++)
      for (int turn = 0; turn < 8; turn++) {
        const int64_t size = turn & 1 ? 8 : 5;
        wsgemm_gemm_desc d = batch_desc(row->type, ops, size, size + (turn & 1 ? 0 : 2), size, BATCH);
        if (turn & 2) d.lda++, d.ldb += 3, d.stride_a += 30, d.stride_b += 50;
        if (turn & 4) d.stride_a = 0;
        check_launch(h, row, &d, ops);
      }
    n_seen++;
    wsgemm_destroy(h);
  }
  CHECK(n_seen >= 10, "%d rows", n_seen);
}

/* By sizes, types and ops alone; neither single products, longer ones, nor halves whose C takes steps; and in invariant mode none. */
CHILD_CASE(choice) {
  (void)unused;
  wsgemm_handle *h = NULL;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, true) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int type = 0; type < 6; type++)
    for (int ops = 0; ops < 4; ops++) {
      wsgemm_gemm_desc d = batch_desc((wsgemm_type)type, ops, 8, 8, 8, 1000);
      const ws_cuda_row *row = row_of(launch_of(NULL, &d));
      CHECK(row->kind == WS_ROW_SMALL, "type %d: %s", type, row->name);
      wsgemm_gemm_desc other = d;
      other.a = (const char *)d.a + 16, other.lda += 3, other.stride_a += 100;
      CHECK(row_of(launch_of(NULL, &other)) == row, "type %d: other lds, %s", type, fake.launch[0].kernel);
      CHECK(!is_small(launch_of(h, &d)), "type %d: in invariant mode", type);
      other = d, other.batch_count = 1;
      CHECK(!is_small(launch_of(NULL, &other)), "type %d: one product", type);
      other = batch_desc((wsgemm_type)type, ops, 8, 8, MOST + 1, 100);
      CHECK(!is_small(launch_of(NULL, &other)), "type %d: a long k", type);
    }
  wsgemm_gemm_desc d = batch_desc(WSGEMM_F16, 0, 8, 8, 8, 1000);
  d.epilogue = WSGEMM_EPILOGUE_RELU;
  CHECK(!is_small(launch_of(NULL, &d)), "%s", fake.launch[0].kernel);
  d = batch_desc(WSGEMM_BF16, 0, 8, 8, 8, 1000), d.math = WSGEMM_MATH_PEDANTIC;
  CHECK(is_small(launch_of(NULL, &d)) && row_of(&fake.launch[0])->is_fma, "%s", fake.launch[0].kernel);
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {{"launches", launches}, {"choice", choice}};
CHECK_MAIN("backend_small", cases)
