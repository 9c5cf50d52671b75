/* test_backend_wgmma.c - what the kernels on Hopper's tensor cores are told: tensor maps of A, B
 * and C, clusters; copies of operands that do not begin at whole 16 bytes, and the chunks of C that
 * they are made for. Seen by a fake driver, whose tensor maps can be read. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const wsgemm_type halves[] = {WSGEMM_F16, WSGEMM_BF16};
enum { N_HALVES = 2 };

static fake_map held(const CUtensorMap *map) {
  fake_map m;
  memcpy(&m, map, sizeof m);
  return m;
}

static bool is_wgmma(const fake_launch *l) { return is_of(l, "wgmma"); }

/* In invariant mode no row cuts k, so none but wgmma rows take part, however small the product. */
static wsgemm_handle *of_whole_k(void) {
  static wsgemm_handle *h;
  if (!h) REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return h;
}

static wsgemm_gemm_desc half_desc(wsgemm_type type, wsgemm_op op_a, wsgemm_op op_b, int64_t m, int64_t n, int64_t k) {
  wsgemm_gemm_desc d = device_desc(type, m, n, k, 0);
  d.transa = op_a, d.transb = op_b;
  d.lda = op_a == WSGEMM_NO_TRANS ? m : k, d.ldb = op_b == WSGEMM_NO_TRANS ? k : n;
  return d;
}

/* A matrix of lines of 16-bit elements. */
static void check_map(const char *what, const CUtensorMap *map, const void *data, int64_t length, int64_t n_lines, int64_t ld,
                      int box_length, int box_lines) {
  const fake_map m = held(map);
  CHECK(m.address == (uintptr_t)data && m.dims[0] == (uint64_t)length && m.dims[1] == (uint64_t)n_lines &&
            m.strides[0] == (uint64_t)ld * 2 && m.box[0] == (uint32_t)box_length && m.box[1] == (uint32_t)box_lines,
        "%s: %llu x %llu from %llx, stride %llu, boxes of %u x %u", what, (unsigned long long)m.dims[0],
        (unsigned long long)m.dims[1], (unsigned long long)m.address, (unsigned long long)m.strides[0], m.box[0], m.box[1]);
}

static int least_of(int64_t x, int64_t y) { return (int)(x < y ? x : y); }

/* Those of an operand of x elements along m or n: what an item of item_x loads for a k block, which
 * n_shared blocks load as many lines of each. Returns how many lines come to a block. */
static int check_operand(const char *what, const ws_wgmma_operand *op, const void *data, bool along_k, int64_t x, int64_t k,
                         int64_t ld, int item_x, int n_shared) {
  /* alone a block loads no more than there is, in eights of lines */
  const int lines = n_shared > 1 ? item_x / n_shared : least_of(item_x, (x + 7) / 8 * 8),
            slabs = least_of((item_x + 63) / 64, (x + 63) / 64);
  /* items of 16 or 32 have lines as short */
  const int length = along_k || item_x > 32 ? 64 : item_x <= 16 ? 16 : 32;
  check_map(what, &op->map, data, along_k ? k : x, along_k ? x : k, ld, length, along_k ? lines : 64 / n_shared);
  CHECK(along_k || op->n_slabs == slabs, "%s: %d slabs", what, op->n_slabs);
  return along_k ? lines * n_shared : length * slabs;
}

static void check_operands(const fake_launch *l, const wsgemm_gemm_desc *d, const void *a, int64_t lda, const void *b,
                           int64_t ldb) {
  const ws_cuda_row *row = row_of(l);
  const bool first_k = d->transa != WSGEMM_NO_TRANS, second_k = d->transb == WSGEMM_NO_TRANS, across = l->wgmma.is_across;
  const bool a_k = across ? second_k : first_k, b_k = across ? first_k : second_k;
  const int a_lines = check_operand("A", &l->wgmma.a, across ? b : a, a_k, across ? d->n : d->m, d->k, across ? ldb : lda,
                                    row->bm, ws_cluster_n(row)),
            b_lines = check_operand("B", &l->wgmma.b, across ? a : b, b_k, across ? d->m : d->n, d->k, across ? lda : ldb,
                                    row->bn * row->coarse, row->cluster_m);
  CHECK(l->wgmma.m == (across ? d->n : d->m) && l->wgmma.n == (across ? d->m : d->n), "%lld x %lld", (long long)l->wgmma.m,
        (long long)l->wgmma.n);
  CHECK(l->wgmma.stage_bytes == 128 * (a_lines + b_lines), "%d bytes of a k block", l->wgmma.stage_bytes);
  CHECK((l->wgmma.a.along_k != 0) == a_k && (l->wgmma.b.along_k != 0) == b_k, "which is contiguous along k");
  CHECK(l->cluster == (unsigned)row->cluster && l->grid[0] % l->cluster == 0 && l->block[0] == (unsigned)row->n_threads,
        "%u blocks of %u threads in clusters of %u", l->grid[0], l->block[0], l->cluster);
  const ws_tile_grid *g = &l->wgmma.grid;
  CHECK(g->coarse == row->coarse * ws_cluster_n(row), "items of all blocks of a cluster");
  CHECK(l->wgmma.tiles.product_items.d == g->n_rows * ((g->n_cols - 1) / g->coarse + 1) &&
            l->wgmma.n_k_blocks == (d->k + 63) / 64,
        "%u items of a product, %d k blocks", l->wgmma.tiles.product_items.d, l->wgmma.n_k_blocks);
  CHECK((l->wgmma.is_plain != 0) ==
            (l->wgmma.c_by_map && l->wgmma.beta_zero && !l->wgmma.epilogue.is_any && d->type_c == d->type_a),
        "whether C is alpha times a sum, of the operands' type, by its map");
}

/* Rows that a block stores are stored by boxes of 64, 32 or 16, or, where the kernel computes C
 * transposed and they are its columns, 8. A block stores no fewer than 8. */
static int box_rows(const ws_cuda_row *row, bool across) {
  const int share = row->bm / row->cluster_splits, rows = share < 8 ? 8 : share;
  return rows % 64 == 0 ? 64 : rows % 32 == 0 ? 32 : rows % 16 == 0 || !across ? 16 : 8;
}

static void check_c(const fake_launch *l, const wsgemm_gemm_desc *d) {
  const bool across = l->wgmma.is_across;
  const int rows = box_rows(row_of(l), across);
  check_map("C", &l->wgmma.c, d->c, d->m, d->n, d->ldc, across ? 64 : rows, across ? rows : 64);
}

/* The caller's A and B, of which the kernel makes the other where it computes C transposed. */
static const ws_wgmma_operand *a_of(const fake_launch *l) { return l->wgmma.is_across ? &l->wgmma.b : &l->wgmma.a; }
static const ws_wgmma_operand *b_of(const fake_launch *l) { return l->wgmma.is_across ? &l->wgmma.a : &l->wgmma.b; }

/* Of items of all wgmma rows: C itself, or its transposed. */
static int64_t n_items_of(const fake_launch *l, const wsgemm_gemm_desc *d) {
  return l->wgmma.is_across ? gpu_row_items(row_of(l), d->n, d->m, 1) : gpu_row_items(row_of(l), d->m, d->n, 1);
}

/* Every row, for operands larger than its item, and for fewer rows and columns than it has. */
CHILD_CASE(rows) {
  (void)unused;
  static const int64_t sizes[][2] = {{264, 520}, {16, 8}, {40, 136}, {200, 24}};
  int n_across = 0, n_not_across = 0;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->kind != WS_ROW_WGMMA) continue;
    wsgemm_handle *h = handle_of_row(row);
    for (int i = 0; i < 16; i++) {
      const wsgemm_gemm_desc d = half_desc(row->type, all_ops[i / 2 % 2], all_ops[i % 2], sizes[i / 4][0], sizes[i / 4][1], 2048);
      const fake_launch *l = launch_of(h, &d);
      REQUIRE(row_of(l) == row, "%s for %s", l->kernel, row->name);
      check_operands(l, &d, d.a, d.lda, d.b, d.ldb);
      check_c(l, &d);
      /* a cluster for each item, which ends with it */
      const int64_t n_items = n_items_of(l, &d);
      n_across += l->wgmma.is_across;
      n_not_across += !l->wgmma.is_across;
      CHECK(l->is_early && strcmp(l->entry, row->is_once ? "queue" : "bare") == 0, "%s_%s, %s", row->name, l->entry,
            l->is_early ? "early" : "in order");
      CHECK(!row->is_once || (l->grid[0] == n_items * row->cluster && !l->wgmma.sched.queue), "%s: %u blocks for %lld items",
            row->name, l->grid[0], (long long)n_items);
    }
    wsgemm_destroy(h);
  }
  CHECK(n_across > 100 && n_not_across > 100, "%d across, %d not", n_across, n_not_across);
}

/* Along the columns of C while the operand along m stays in the L2. */
CHILD_CASE(order_of_items) {
  (void)unused;
  static const int64_t ks[] = {64, 4096};
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    if (gpu_rows[r].kind != WS_ROW_WGMMA) continue;
    wsgemm_handle *h = handle_of_row(&gpu_rows[r]);
    for (int i = 0; i < 2; i++) {
      const wsgemm_gemm_desc d = half_desc(gpu_rows[r].type, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 8192, 4096, ks[i]);
      const fake_launch *l = launch_of(h, &d);
      const int64_t along_columns = l->wgmma.is_across ? 1 : l->wgmma.grid.n_rows;
      CHECK(l->wgmma.grid.swizzle == (i == 0 ? along_columns : 8), "%s, k = %lld: groups of %lld rows of tiles", l->kernel,
            (long long)d.k, (long long)l->wgmma.grid.swizzle);
    }
    wsgemm_destroy(h);
  }
}

CHILD_CASE(maps) {
  (void)unused;
  fake.device[0].cc = 90;
  for (int t = 0; t < N_HALVES; t++)
    for (int ops = 0; ops < 4; ops++)
      for (int c = 0; c < 3; c++) {
        static const wsgemm_type types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
        static const int told[] = {WS_HALF_C_F16, WS_HALF_C_BF16, WS_HALF_C_F32};
        wsgemm_gemm_desc d = half_desc(halves[t], all_ops[ops / 2], all_ops[ops % 2], 264, 200, 136);
        d.type_c = types_c[c];
        const fake_launch *l = launch_of(of_whole_k(), &d);
        REQUIRE(is_wgmma(l), "kernel %s", l->kernel);
        check_operands(l, &d, d.a, d.lda, d.b, d.ldb);
        CHECK((l->wgmma.c_by_map != 0) == (c < 2) && l->wgmma.type_c == told[c] && l->wgmma.c_pairs && l->wgmma.c_data == d.c,
              "C");
        if (c < 2) check_c(l, &d);
        d.beta.s = 2;
        l = launch_of(of_whole_k(), &d);
        CHECK((l->wgmma.c_by_map != 0) == (c < 2) && !row_of(l)->is_plain, "C that is read: %s", l->kernel);
        d.beta.s = 0, d.c = (char *)d.c + 2 * (c < 2 ? 1 : 2);
        l = launch_of(of_whole_k(), &d);
        CHECK(!l->wgmma.c_by_map && (l->wgmma.c_pairs != 0) == false, "a C that does not begin at 16 bytes is stored by its map");
      }
}

/* The L2 fetches blocks of 128 bytes, whatever the lines. */
CHILD_CASE(promotions) {
  (void)unused;
  fake.device[0].cc = 90;
  static const int64_t lds[] = {512, 448, 456, 480, 504, 576};
  for (size_t i = 0; i < sizeof lds / sizeof lds[0]; i++) /* A, B, C have such lines, the others have 1024 bytes */
    for (int which = 0; which < 3; which++) {
      wsgemm_gemm_desc d = half_desc(WSGEMM_F16, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 264, 200, 136);
      int64_t *const ld[] = {&d.lda, &d.ldb, &d.ldc};
      d.lda = d.ldb = d.ldc = 512, *ld[which] = lds[i];
      const fake_launch *l = launch_of(of_whole_k(), &d);
      REQUIRE(is_wgmma(l) && l->wgmma.c_by_map, "kernel %s", l->kernel);
      const CUtensorMap *const maps[] = {&a_of(l)->map, &b_of(l)->map, &l->wgmma.c};
      for (int x = 0; x < 3; x++) {
        const fake_map m = held(maps[x]);
        CHECK(m.strides[0] == (uint64_t)*ld[x] * 2 && m.promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
              "%c, lines of %lld bytes: promotion %d", "ABC"[x], (long long)*ld[x] * 2, (int)m.promotion);
      }
    }
  wsgemm_gemm_desc d = half_desc(WSGEMM_F16, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 264, 200, 136);
  d.lda = 265;
  REQUIRE(watched_gemm(of_whole_k(), &d) == WSGEMM_SUCCESS && fake.n_launches == 2, "%s", wsgemm_last_error());
  CHECK(held(&fake.launch[1].wgmma.a.map).promotion == CU_TENSOR_MAP_L2_PROMOTION_L2_128B, "of a copy, too");
}

/* TMA writes whole 16 bytes, also where a column ends within them. */
CHILD_CASE(ends_of_columns) {
  (void)unused;
  fake.device[0].cc = 90;
  wsgemm_gemm_desc d = half_desc(WSGEMM_BF16, WSGEMM_TRANS, WSGEMM_NO_TRANS, 260, 200, 136);
  d.ldc = 264;
  const fake_launch *l = launch_of(of_whole_k(), &d);
  CHECK(is_wgmma(l) && !l->wgmma.c_by_map, "260 rows are stored by a map");
}

CHILD_CASE(batches) {
  (void)unused;
  fake.device[0].cc = 90;
  wsgemm_gemm_desc d = half_desc(WSGEMM_F16, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 64, 64, 64);
  d.batch_count = 5, d.stride_a = 8192, d.stride_b = 0, d.stride_c = 4096;
  const fake_launch *l = launch_of(of_whole_k(), &d);
  CHECK(is_wgmma(l) && held(&a_of(l)->map).dims[2] == 5 && held(&a_of(l)->map).strides[1] == 2 * 8192 &&
            a_of(l)->batch_step == 1 && a_of(l)->batch_first == 0,
        "A: 5 products");
  CHECK(held(&b_of(l)->map).dims[2] == 1 && b_of(l)->batch_step == 0 && b_of(l)->batch_first == 0, "B: one for all");
  const char *a = (const char *)d.a;
  d.stride_a = -8192, d.a = a + 4 * 8192 * 2;
  l = launch_of(of_whole_k(), &d);
  CHECK(held(&a_of(l)->map).address == (uintptr_t)a && a_of(l)->batch_step == -1 && a_of(l)->batch_first == 4, "A backwards");
}

static void is_copy(const ws_align_copy_operand *op, const fake_map *map, const void *from, int64_t length, int64_t n_lines,
                    int64_t ld) {
  CHECK(op->from == from && op->length == length && op->n_lines == n_lines && op->ld == ld && op->n_batch == 1, "what is copied");
  CHECK((uintptr_t)op->to == map->address && op->pitch % 64 == 0 && op->pitch >= length &&
            map->strides[0] == (uint64_t)op->pitch * 2 && map->dims[0] == (uint64_t)length && map->dims[1] == (uint64_t)n_lines,
        "the map of the copy");
}

static bool is_in(const void *p, int64_t bytes, const char *memory, int64_t memory_bytes) {
  return (const char *)p >= memory && (const char *)p + bytes <= memory + memory_bytes;
}

CHILD_CASE(copies) {
  (void)unused;
  fake.device[0].cc = 90;
  for (int which = 1; which < 4; which++) { /* A, B, both */
    wsgemm_gemm_desc d = half_desc(WSGEMM_BF16, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 304, 200, 136);
    if (which & 1) d.lda = 305;
    if (which & 2) d.b = (const char *)d.b + 2;
    REQUIRE(watched_gemm(of_whole_k(), &d) == WSGEMM_SUCCESS && fake.n_launches == 2, "%d launches: %s", fake.n_launches,
            wsgemm_last_error());
    const fake_launch *copy = &fake.launch[0], *l = &fake.launch[1];
    REQUIRE(strcmp(copy->kernel, "align_copy") == 0 && is_wgmma(l), "%s, %s", copy->kernel, l->kernel);
    const fake_map a = held(&l->wgmma.a.map), b = held(&l->wgmma.b.map);
    const ws_align_copy_operand *ops = copy->pitch.operand;
    CHECK((ops[0].n_lines > 0) == ((which & 1) != 0) && (ops[1].n_lines > 0) == ((which & 2) != 0),
          "what needs no copy is copied");
    if (which & 1) is_copy(&ops[0], &a, d.a, d.m, d.k, d.lda);
    if (which & 2) is_copy(&ops[1], &b, d.b, d.k, d.n, d.ldb);
    for (int i = 0; i < 2; i++)
      if (ops[i].n_lines > 0)
        CHECK(is_in(ops[i].to, ops[i].pitch * ops[i].n_lines * 2, fake.copies[0], WS_COPIES_BYTES), "a copy lies elsewhere");
    if (which == 3) CHECK((char *)ops[0].to + ops[0].pitch * ops[0].n_lines * 2 <= (char *)ops[1].to, "the copies overlap");
    size_t bytes = 0;
    CHECK(wsgemm_get_workspace_size(of_whole_k(), &d, &bytes) == WSGEMM_SUCCESS &&
              bytes == (size_t)(ops[0].pitch * ops[0].n_lines + ops[1].pitch * ops[1].n_lines) * 2,
          "%zu bytes of workspace", bytes);
  }
}

/* Operands larger than the memory for copies: chunks of C, each once, whose copies fit. */
CHILD_CASE(chunks) {
  (void)unused;
  fake.device[0].cc = 90;
  enum { M = 9001, N = 7003, K = 16345, SIDE = 256 };
  static unsigned char times[M / SIDE + 1][N / SIDE + 1];
  wsgemm_gemm_desc d = half_desc(WSGEMM_F16, WSGEMM_TRANS, WSGEMM_NO_TRANS, M, N, K);
  REQUIRE(watched_gemm(of_whole_k(), &d) == WSGEMM_SUCCESS && fake.n_launches > 2 && fake.n_launches <= FAKE_N_LAUNCHES,
          "%d launches", fake.n_launches);
  for (int i = 0; i < fake.n_launches; i++) {
    const fake_launch *l = &fake.launch[i];
    for (int op = 0; op < 2 && !is_wgmma(l); op++)
      CHECK(is_in(l->pitch.operand[op].to, l->pitch.operand[op].pitch * l->pitch.operand[op].n_lines * 2, fake.copies[0],
                  WS_COPIES_BYTES) ||
                l->pitch.operand[op].n_lines == 0,
            "a copy does not fit");
    if (!is_wgmma(l)) continue;
    const int64_t first = ((const char *)l->wgmma.c_data - (const char *)d.c) / 2, m_first = first % M, n_first = first / M;
    CHECK(m_first % SIDE == 0 && n_first % SIDE == 0, "a piece begins at (%lld, %lld)", (long long)m_first, (long long)n_first);
    for (int64_t m = m_first; m < m_first + l->wgmma.m; m += SIDE)
      for (int64_t n = n_first; n < n_first + l->wgmma.n; n += SIDE) times[m / SIDE][n / SIDE]++;
    CHECK((m_first + l->wgmma.m) % SIDE == 0 || m_first + l->wgmma.m == M, "rows end at %lld", (long long)(m_first + l->wgmma.m));
    CHECK((n_first + l->wgmma.n) % SIDE == 0 || n_first + l->wgmma.n == N, "columns end at %lld",
          (long long)(n_first + l->wgmma.n));
  }
  for (int64_t m = 0; m <= M / SIDE; m++)
    for (int64_t n = 0; n <= N / SIDE; n++)
      CHECK(times[m][n] == 1, "rows from %lld, columns from %lld: %d times", (long long)(m * SIDE), (long long)(n * SIDE),
            times[m][n]);
}

/* Each captured launch has memory for copies of its own; the caller's workspace serves any.
 * Without, rows that need none. */
CHILD_CASE(without_memory) {
  (void)unused;
  fake.device[0].cc = 90;
  wsgemm_gemm_desc d = half_desc(WSGEMM_BF16, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 301, 200, 136);
  for (int s = 1; s <= 3; s++) {
    wsgemm_handle *h = NULL;
    fake_begin_capture(s);
    REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_stream(h, &fake.stream[s]) == WSGEMM_SUCCESS &&
                wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS,
            "handle");
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const fake_launch *last = &fake.launch[fake.n_launches - 1];
    CHECK(is_wgmma(last) && fake.n_nodes == s && fake.node[s - 1].is_freed, "captured launch %d: %s", s, last->kernel);
    CHECK(fake.launch[0].pitch.operand[0].to == fake.node[s - 1].memory, "captured launch %d: copies lie elsewhere", s);
    void *workspace = fake_alloc(FAKE_DEVICE, 0, 1 << 20);
    REQUIRE(wsgemm_set_workspace(h, workspace, 1 << 20) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 2, "%s", wsgemm_last_error());
    CHECK(fake.launch[0].pitch.operand[0].to == workspace, "not in the caller's workspace");
    REQUIRE(wsgemm_set_workspace(h, workspace, 256) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(!is_wgmma(launch_of(h, &d)), "copies in a workspace of 256 bytes");
    wsgemm_destroy(h);
  }
}

/* However small the memory for copies: as many parts of k as with enough of it, as these decide
 * about bits. */
CHILD_CASE(parts_of_k_in_chunks) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  void *workspace = fake_alloc(FAKE_DEVICE, 0, (size_t)1 << 30);
  for (int64_t side = 256; side <= 4096; side *= 2)
    for (int64_t k = 2048; k <= 8192; k *= 2) {
      wsgemm_gemm_desc d = half_desc(WSGEMM_BF16, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, side, side, k);
      wsgemm_handle *h = NULL;
      int cluster_splits = 0;
      size_t bytes = 0;
      d.lda++, d.ldb++;
      REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s",
              wsgemm_last_error());
      for (int part = 1; part <= 8; part *= 2) {
        REQUIRE(wsgemm_set_workspace(h, workspace, bytes / (size_t)part) == WSGEMM_SUCCESS &&
                    watched_gemm(h, &d) == WSGEMM_SUCCESS,
                "%s", wsgemm_last_error());
        for (int i = 0; i < fake.n_launches && i < FAKE_N_LAUNCHES; i++) {
          if (!is_wgmma(&fake.launch[i])) continue;
          if (part == 1) cluster_splits = row_of(&fake.launch[i])->cluster_splits;
          CHECK(row_of(&fake.launch[i])->cluster_splits == cluster_splits,
                "side %lld, k %lld, 1/%d of the memory: %s, not %d parts", (long long)side, (long long)k, part,
                fake.launch[i].kernel, cluster_splits);
        }
      }
      wsgemm_destroy(h);
    }
}

/* Of two operands too large for the memory, one after the other, the first is aligned and the
 * second is not: its copy has its place. */
CHILD_CASE(odd_strides) {
  (void)unused;
  enum { SIDE = 16384 };
  fake.device[0].cc = 90;
  wsgemm_gemm_desc d = half_desc(WSGEMM_BF16, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, 8, SIDE);
  d.a = fake_alloc(FAKE_DEVICE, 0, (size_t)3 * SIDE * SIDE * 2);
  d.batch_count = 2, d.stride_a = (int64_t)SIDE * SIDE + 1, d.stride_b = 8 * SIDE, d.stride_c = 8 * SIDE;
  REQUIRE(watched_gemm(of_whole_k(), &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  int n_copies = 0;
  for (int i = 0; i < fake.n_launches; i++) {
    const ws_align_copy_operand *op = &fake.launch[i].pitch.operand[0];
    const char *to = op->to;
    if (op->n_lines == 0) continue;
    n_copies++;
    CHECK(to >= fake.copies[0] && to + op->pitch * op->n_lines * op->n_batch * 2 <= fake.copies[0] + WS_COPIES_BYTES,
          "launch %d copies beyond the memory for it", i);
  }
  CHECK(n_copies > 0, "no copies");
}

/* Of products whose copies do not fit at once, the last one alone begins where TMA takes it: what the
 * whole's entry cannot do, none of its chunks asks for. */
CHILD_CASE(chunks_that_are_bare) {
  (void)unused;
  enum { SIDE = 8448, N = 576, BATCH = 3 };
  static const int64_t strides[] = {(int64_t)SIDE * SIDE + 4, (int64_t)SIDE * SIDE};
  int n_bare = 0, n_others = 0;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int t = 0; t < N_HALVES; t++)
    for (int i = 0; i < 2; i++) {
      wsgemm_gemm_desc d = half_desc(halves[t], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, SIDE, N, SIDE);
      d.a = fake_alloc(FAKE_DEVICE, 0, (size_t)BATCH * (SIDE * (size_t)SIDE + 4) * 2);
      d.batch_count = BATCH, d.stride_a = strides[i], d.stride_b = d.stride_c = (int64_t)SIDE * N;
      REQUIRE(watched_gemm(of_whole_k(), &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      for (int l = 0; l < fake.n_launches && l < FAKE_N_LAUNCHES; l++) {
        const fake_launch *launch = &fake.launch[l];
        if (!is_wgmma(launch)) continue;
        const bool is_bare = strcmp(launch->entry, "bare") == 0;
        CHECK(is_bare || !launch->wgmma.is_across, "stride %lld: %s_%s computes C transposed", (long long)d.stride_a,
              launch->kernel, launch->entry);
        n_bare += is_bare, n_others += !is_bare;
      }
    }
  CHECK(n_bare > 0 && n_others > 2, "%d bare launches, %d others", n_bare, n_others);
}

CHILD_CASE(other_devices) {
  (void)unused;
  static const int ccs[FAKE_N_DEVICES] = {80, 90, 120};
  fake.n_devices = FAKE_N_DEVICES;
  for (int device = 0; device < FAKE_N_DEVICES; device++) {
    fake.device[device].cc = ccs[device];
    const wsgemm_gemm_desc d = device_desc(WSGEMM_BF16, 512, 512, 512, device);
    const fake_launch *l = launch_of(of_whole_k(), &d);
    CHECK(is_wgmma(l) == (ccs[device] == 90), "cc %d: %s", ccs[device], l->kernel);
  }
}

/* The blocks of a cluster share k only where each has a part of no less than 256, and never in
 * invariant mode, whose sums are all of one order, even for a row that was asked for by name. */
CHILD_CASE(parts_of_k) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  int n_rows = 0;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->kind != WS_ROW_WGMMA || row->cluster_splits == 1) continue;
    n_rows++;
    wsgemm_handle *h = handle_of_row(row);
    wsgemm_gemm_desc d = half_desc(row->type, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 16, 400, 256 * row->cluster_splits);
    const fake_launch *l = launch_of(h, &d);
    CHECK(row_of(l) == row && l->grid[0] == n_items_of(l, &d) * (unsigned)row->cluster, "%s for %s, %u blocks", l->kernel,
          row->name, l->grid[0]);
    d.k--;
    CHECK(row_of(launch_of(h, &d)) != row, "%s: parts of a short k", row->name);
    d.k++;
    REQUIRE(wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "invariant");
    CHECK(row_of(launch_of(h, &d))->cluster_splits == 1, "%s: parts of k in invariant mode", row->name);
    wsgemm_destroy(h);
  }
  CHECK(n_rows > 0, "no row shares k");
}

/* Where a store takes long, consumers take turns, in lines of the library's table of their own, and
 * by the model where it has none. */
CHILD_CASE(rows_by_store) {
  (void)unused;
  static const int64_t sizes[][3] = {{4096, 4096, 4096}, {20000, 10000, 1000}};
  static const char *const chosen_by[] = {"tuning table", "model"};
  setenv("WSGEMM_TUNE", "/nonexistent/tuning", 1);
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int t = 0; t < N_HALVES; t++)
    for (int i = 0; i < 2; i++) {
      wsgemm_gemm_desc d = half_desc(halves[t], WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, sizes[i][0], sizes[i][1], sizes[i][2]);
      for (d.beta.s = 0; d.beta.s < 2; d.beta.s++) {
        CHECK(explained_is(NULL, &d, "chosen_by", chosen_by[i]), "beta = %g: not by the %s", d.beta.s, chosen_by[i]);
        CHECK(row_of(launch_of(of_whole_k(), &d))->ping_pong == (d.beta.s != 0), "beta = %g: %s", d.beta.s,
              fake.launch[0].kernel);
      }
    }
}

/* By whom the row of a BF16 square of transposed A is chosen; its name without the routine's. */
static bool is_by_table(int64_t size, char row[64]) {
  const wsgemm_gemm_desc d = half_desc(WSGEMM_BF16, WSGEMM_TRANS, WSGEMM_NO_TRANS, size, size, size);
  const bool by_table = explained_is(NULL, &d, "chosen_by", "tuning table");
  CHECK(by_table || explained_is(NULL, &d, "chosen_by", "model"), "%lld: by nobody", (long long)size);
  snprintf(row, 64, "%s", strstr(row_of(launch_of(NULL, &d))->name, "wgmma_") + strlen("wgmma_"));
  return by_table;
}

/* A line serves shapes near its own whose columns are whole lines of 128 bytes where its own are,
 * and no others; and only a row that the model does not think worse of there, which it does of some
 * and not of others. */
CHILD_CASE(lines_of_neighbours) {
  (void)unused;
  static const int64_t partial[] = {8200, 10000, 1008, 4104, 5128, 6152}; /* near lines of whole ones */
  static const struct {
    int64_t size;
    const char *row;
  } lines[] = {{8192, "192x64x64_c2_x1"},
               {6144, "128x64x64_c2_x2"},
               {5120, "128x64x64_c2_x2"},
               {4096, "256x64x64_c2_x1"},
               {3072, "192x64x64_c3_x1"}};
  enum { N_LINES = sizeof lines / sizeof lines[0], NEAR = 512 };
  char row[64];
  int n_by_table = 0, n_by_model = 0;
  setenv("WSGEMM_TUNE", "/nonexistent/tuning", 1);
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (size_t i = 0; i < sizeof partial / sizeof partial[0]; i++)
    CHECK(!is_by_table(partial[i], row), "%lld: %s by the table", (long long)partial[i], row);
  for (int l = 0; l < N_LINES; l++)
    for (int64_t more = -NEAR; more <= NEAR; more += 64) {
      if (!is_by_table(lines[l].size + more, row)) {
        CHECK(more != 0, "%lld: %s by the model", (long long)lines[l].size, row);
        n_by_model++;
        continue;
      }
      n_by_table += more != 0;
      bool is_known = false;
      for (int of = 0; of < N_LINES; of++) is_known |= strcmp(row, lines[of].row) == 0 && (of == l || more != 0);
      CHECK(is_known, "%lld: %s is of no line near it", (long long)(lines[l].size + more), row);
    }
  CHECK(n_by_table > 0 && n_by_model > 0, "%d neighbours by the table, %d by the model", n_by_table, n_by_model);
}

static const struct check_case cases[] = {{"rows_by_store", rows_by_store},
                                          {"chunks_that_are_bare", chunks_that_are_bare},
                                          {"lines_of_neighbours", lines_of_neighbours},
                                          {"maps", maps},
                                          {"rows", rows},
                                          {"order_of_items", order_of_items},
                                          {"promotions", promotions},
                                          {"ends_of_columns", ends_of_columns},
                                          {"batches", batches},
                                          {"copies", copies},
                                          {"chunks", chunks},
                                          {"without_memory", without_memory},
                                          {"odd_strides", odd_strides},
                                          {"parts_of_k_in_chunks", parts_of_k_in_chunks},
                                          {"parts_of_k", parts_of_k},
                                          {"other_devices", other_devices}};
CHECK_MAIN("backend_wgmma", cases)
