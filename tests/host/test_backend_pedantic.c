/* test_backend_pedantic.c - half precision under PEDANTIC in device memory: whatever the shape, the
 * operands and the store, no kernel that uses a tensor core, forced or not; without PEDANTIC none
 * of those made for it, but by name. Its parts of k, its lines of tuning, its words. Copies of floats.
 * Seen by a fake driver; what the kernels compute: test_fma16.cpp. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const wsgemm_type halves[] = {WSGEMM_F16, WSGEMM_BF16}, types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
static struct check_random rng;

static bool is_fma16(const ws_cuda_row *row) { return strcmp(row->family, "fma16") == 0; }

static wsgemm_handle *new_handle(wsgemm_math math) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_math(h, math) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return h;
}

/* Any product of halves: shapes, ops, layouts, alignments, batches, types of C, scalars,
 * epilogues. */
static wsgemm_gemm_desc drawn_desc(int device) {
  const wsgemm_type type = halves[check_random_in(&rng, 0, 1)];
  int64_t size[3];
  for (int i = 0; i < 3; i++) {
    const int64_t turn = check_random_in(&rng, 0, 9);
    size[i] = turn == 0  ? 1
              : turn < 4 ? check_random_in(&rng, 1, 40)
              : turn < 8 ? check_random_in(&rng, 1, 600)
                         : 8 * check_random_in(&rng, 1, 1000);
  }
  wsgemm_gemm_desc d = device_desc(type, size[0], size[1], size[2], device);
  const bool trans_a = check_random_in(&rng, 0, 1), trans_b = check_random_in(&rng, 0, 1), by_rows = check_random_in(&rng, 0, 1);
  d.layout = by_rows ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR;
  d.transa = trans_a ? WSGEMM_TRANS : WSGEMM_NO_TRANS, d.transb = trans_b ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
  d.lda = trans_a != by_rows ? d.k : d.m, d.ldb = trans_b != by_rows ? d.n : d.k, d.ldc = by_rows ? d.n : d.m;
  if (check_random_in(&rng, 0, 1)) d.lda += 1, d.a = (const char *)d.a + 2;
  if (check_random_in(&rng, 0, 1)) d.ldb += 6, d.b = (const char *)d.b + 4;
  d.type_c = types_c[check_random_in(&rng, 0, 2)];
  d.beta.s = (float)check_random_in(&rng, 0, 1);
  if (check_random_in(&rng, 0, 3) == 0) d.epilogue = WSGEMM_EPILOGUE_SILU;
  if (check_random_in(&rng, 0, 3) == 0) d.residual = d.c, d.ld_residual = d.ldc;
  if (check_random_in(&rng, 0, 3) == 0) {
    d.batch_count = check_random_in(&rng, 2, 5), d.stride_a = d.stride_b = 16;
    d.stride_c = d.ldc * (by_rows ? d.m : d.n), d.stride_residual = d.stride_c;
  }
  return d;
}

enum { N_DRAWN = 4000 };

/* PEDANTIC by the handle, by the descriptor, or by a descriptor that says otherwise than its
 * handle. */
CHILD_CASE(rows) {
  (void)unused;
  static const int ccs[FAKE_N_DEVICES] = {80, 90, 120};
  fake.n_devices = FAKE_N_DEVICES;
  for (int device = 0; device < FAKE_N_DEVICES; device++) fake.device[device].cc = ccs[device], fake.device[device].n_sms = 132;
  wsgemm_handle *plain = new_handle(WSGEMM_MATH_DEFAULT), *pedantic = new_handle(WSGEMM_MATH_PEDANTIC);
  rng = check_random_from(190);
  int n_of_kind[3] = {0}; /* vectors, tiles, parts of k */
  for (int turn = 0; turn < N_DRAWN / check_scale(); turn++) {
    wsgemm_gemm_desc d = drawn_desc(turn % FAKE_N_DEVICES);
    /* not as hgemm: watched_gemm */
    const bool by_desc = turn / 3 % 2 && (d.m % 2 == 0 || d.batch_count > 1);
    if (by_desc) d.math = WSGEMM_MATH_PEDANTIC;
    const fake_launch *l = launch_of(by_desc ? plain : pedantic, &d);
    const ws_cuda_row *row = row_of(l);
    char text[DESCRIPTION_BYTES];
    CHECK(row->is_fma && (row->kind == WS_ROW_VECTOR || is_fma16(row_of(l))), "%s: %s", gemm_describe(&d, text), l->kernel);
    n_of_kind[row->kind == WS_ROW_VECTOR ? 0 : is_split(l) ? 2 : 1]++;
    CHECK(explained_is(by_desc ? plain : pedantic, &d, "kernel", row->name), "%s: %s is not explained", text, row->name);
    if (by_desc) d.math = WSGEMM_MATH_DEFAULT;
    REQUIRE(watched_gemm(by_desc ? pedantic : plain, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    l = &fake.launch[fake.n_launches - 1];
    CHECK(row_of(l)->kind == WS_ROW_VECTOR || !row_of(l)->is_fma, "%s, not pedantic: %s", gemm_describe(&d, text), l->kernel);
  }
  for (int kind = 0; kind < 3; kind++)
    CHECK(n_of_kind[kind] > N_DRAWN / 100 / check_scale(), "kind %d: only %d", kind, n_of_kind[kind]);
  wsgemm_destroy(plain), wsgemm_destroy(pedantic);
}

/* A name forces a row of multiply-adds under any class, and one of tensor cores under all but
 * PEDANTIC, which wins. */
CHILD_CASE(forced_rows) {
  (void)unused;
  int n_seen = 0;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (!type_is_half(row->type) || row->is_plain || row->kind == WS_ROW_SMALL) continue;
    wsgemm_handle *h = handle_of_row(row);
    wsgemm_gemm_desc d = row_desc(row, 304, 200, row->cluster_splits > 1 ? 2048 : 136, 0);
    CHECK(row_of(launch_of(h, &d)) == row, "%s was forced, %s launched", row->name, fake.launch[0].kernel);
    REQUIRE(wsgemm_set_math(h, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const ws_cuda_row *got = row_of(launch_of(h, &d));
    CHECK(got->is_fma && (got == row) == row->is_fma, "%s was forced under PEDANTIC, %s launched", row->name, got->name);
    n_seen += is_fma16(row);
    wsgemm_destroy(h);
  }
  CHECK(n_seen >= 4, "%d rows of multiply-adds", n_seen);
}

/* Also where a product in parts finds no memory for its sums. */
CHILD_CASE(forced_without_memory) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  char *workspace = fake_alloc(FAKE_DEVICE, 0, 4096);
  int n_seen = 0;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    if (!is_fma16(&gpu_rows[r]) || !gpu_rows[r].splits) continue;
    wsgemm_handle *h = handle_of_row(&gpu_rows[r]);
    const wsgemm_gemm_desc d = row_desc(&gpu_rows[r], 64, 64, 8192, 0);
    REQUIRE(wsgemm_set_workspace(h, workspace, 256) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    const fake_launch *l = launch_of(h, &d);
    CHECK(is_fma16(row_of(l)) && !l->args.split.sums, "%s was forced, %s launched", gpu_rows[r].name, l->kernel);
    n_seen++;
    wsgemm_destroy(h);
  }
  CHECK(n_seen >= 4, "%d rows", n_seen);
}

/* Few tiles and a long k: the workspace that is asked for is used, and what a small one cannot hold
 * is summed tile by tile. */
CHILD_CASE(parts_of_k) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int t = 0; t < 2; t++) {
    wsgemm_handle *h = new_handle(WSGEMM_MATH_PEDANTIC);
    const wsgemm_gemm_desc d = device_desc(halves[t], 512, 512, 4096, 0);
    const fake_launch *l = launch_of(h, &d);
    const ws_split_args split = l->args.split;
    CHECK(is_fma16(row_of(l)) && is_split(l) && split.n_splits > 1 && split.sums && l->is_cooperative, "%s, %d parts", l->kernel,
          split.n_splits);
    size_t bytes = 0;
    CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS &&
              bytes == (size_t)split.n_splits * 512 * (size_t)split.ld * sizeof(float),
          "%zu bytes of workspace for %d parts", bytes, split.n_splits);
    char *workspace = fake_alloc(FAKE_DEVICE, 0, bytes);
    REQUIRE(wsgemm_set_workspace(h, workspace, bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(launch_of(h, &d)->args.split.sums == workspace, "not in the caller's workspace");
    REQUIRE(wsgemm_set_workspace(h, workspace, 256) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    l = launch_of(h, &d);
    CHECK(is_fma16(row_of(l)) && is_split(l) && !l->args.split.sums && l->args.split.k_per_split == split.k_per_split,
          "in 256 bytes: %s", l->kernel);
    REQUIRE(wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "invariant");
    CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS && bytes == 0, "invariant: %zu bytes of workspace", bytes);
    CHECK(is_fma16(row_of(launch_of(h, &d))) && strcmp(fake.launch[0].entry, "queue") == 0, "invariant: %s",
          fake.launch[0].kernel);
    wsgemm_gemm_desc thin = device_desc(halves[t], 1, 512, 4096, 0);
    CHECK(is_fma16(row_of(launch_of(h, &thin))), "invariant, m = 1: %s", fake.launch[0].kernel);
    wsgemm_destroy(h);
  }
}

/* C through its steps in the same launch; and what the kernel is told of them. */
CHILD_CASE(epilogue) {
  (void)unused;
  fake.device[0].cc = 90;
  for (int t = 0; t < 2; t++) {
    wsgemm_gemm_desc d = device_desc(halves[t], 304, 200, 136, 0);
    d.math = WSGEMM_MATH_PEDANTIC, d.type_c = WSGEMM_F32;
    d.epilogue = WSGEMM_EPILOGUE_RELU, d.out_scale = 0.5, d.residual = d.c, d.ld_residual = d.ldc;
    const fake_launch *l = launch_of(NULL, &d);
    const ws_epilogue_args *e = &l->args.epilogue;
    CHECK(is_fma16(row_of(l)) && e->is_any && e->activation == WSGEMM_EPILOGUE_RELU && e->out_scale == 0.5 && e->residual == d.c,
          "%s", l->kernel);
    CHECK(l->args.type_c == WS_HALF_C_F32, "C of kind %d", l->args.type_c);
  }
}

CHILD_CASE(words) {
  (void)unused;
  fake.device[0].cc = 90;
  for (int t = 0; t < 2; t++) {
    char text[1024], wanted[128];
    wsgemm_gemm_desc d = device_desc(halves[t], 304, 200, 136, 0);
    d.math = WSGEMM_MATH_PEDANTIC;
    wsgemm_explain(NULL, &d, text, sizeof text);
    snprintf(wanted, sizeof wanted, "arithmetic: %s operands as FP32, IEEE FP32 multiply-add, then one rounding to %s",
             t == 0 ? "f16" : "bf16", t == 0 ? "f16" : "bf16");
    CHECK(strstr(text, wanted) && !strstr(text, "tensor core"), "%s", text);
    d.math = WSGEMM_MATH_DEFAULT;
    wsgemm_explain(NULL, &d, text, sizeof text);
    CHECK(strstr(text, "tensor core"), "%s", text);
    d = device_desc(halves[t], 1, 12, 10176, 0); /* by the rows for vectors: no tensor core in any class */
    wsgemm_explain(NULL, &d, text, sizeof text);
    CHECK(strstr(text, wanted), "%s", text);
  }
}

/* ---- tuning ---------------------------------------------------------------------------------- */

static uint32_t crc_of(const char *text) {
  uint32_t crc = UINT32_MAX;
  for (; *text; text++) {
    crc ^= (unsigned char)*text;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

/* A line of one class serves that class alone: of each a line with a row and an order that no model
 * chooses. */
CHILD_CASE(tuning) {
  (void)unused;
  static const char *const lines[][2] = {{"chain", "row=hgemm_mma16_32x32x64_c1 order=5"},
                                         {"fma16", "row=hgemm_fma16_32x32x32_c1 order=7"}};
  char path[] = "/tmp/wsgemm_pedantic_XXXXXX", line[640];
  const int fd = mkstemp(path);
  FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
  REQUIRE(file != NULL, "%s", path);
  fprintf(file, "# wsgemm tuning 1\n");
  for (int i = 0; i < 2; i++) {
    snprintf(
        line, sizeof line,
        "gemm device=\"Fake GPU 0\" arch=sm_80 units=132 version=%s type=h type_c=h numerics=%s ops=nn access=vv m=1000 n=1000 "
        "k=1000 batch=1 %s before_us=9.000 after_us=8.000",
        wsgemm_version_string(), lines[i][0], lines[i][1]);
    fprintf(file, "%s crc=%08x\n", line, (unsigned)crc_of(line));
  }
  REQUIRE(fclose(file) == 0 && setenv("WSGEMM_TUNE", path, 1) == 0, "%s", path);
  fake.device[0].cc = 80, fake.device[0].n_sms = 132;
  wsgemm_gemm_desc d = device_desc(WSGEMM_F16, 1000, 1000, 1000, 0);
  for (int i = 0; i < 2; i++) {
    d.math = i == 0 ? WSGEMM_MATH_DEFAULT : WSGEMM_MATH_PEDANTIC;
    const fake_launch *l = launch_of(NULL, &d);
    CHECK(strstr(lines[i][1], row_of(l)->name) && l->args.grid.swizzle == 5 + 2 * i &&
              explained_is(NULL, &d, "chosen_by", "tuning file"),
          "%s: %s, in bands of %lld", lines[i][0], l->kernel, (long long)l->args.grid.swizzle);
  }
  wsgemm_handle *h =
      handle_of_row(gpu_row_named("hgemm_fma16_64x64x32_c1")); /* by name: the lines of its class, less their row */
  d.math = WSGEMM_MATH_DEFAULT;
  CHECK(row_of(launch_of(h, &d)) == gpu_row_named("hgemm_fma16_64x64x32_c1"), "forced: %s", fake.launch[0].kernel);
  wsgemm_destroy(h);
  unlink(path);
}

/* ---- copies of floats ------------------------------------------------------------------------ */

enum { WORKSPACE = 96 << 20 }; /* room for all copies of a test */

/* On a device whose products of floats may have copies, with a workspace for them. */
static wsgemm_handle *handle_with_workspace(char **workspace) {
  wsgemm_handle *h = new_handle(WSGEMM_MATH_DEFAULT);
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  *workspace = fake_alloc(FAKE_DEVICE, 0, WORKSPACE);
  REQUIRE(wsgemm_set_workspace(h, *workspace, WORKSPACE) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return h;
}

static wsgemm_gemm_desc float_desc(int ops, int64_t m, int64_t n, int64_t k, int64_t more_ld) {
  wsgemm_gemm_desc d = ops_desc(WSGEMM_F32, ops, m, n, k);
  d.math = WSGEMM_MATH_PEDANTIC, d.lda += more_ld, d.ldb += more_ld;
  return d;
}

/* What of an operand is copied: nothing that is read by 16 bytes as it is; all of it, to a place of its own within the memory. */
static void check_float_copy(const ws_float_copy_operand *op, const ws_operand *read, const void *given, int64_t x, int64_t k,
                             int64_t ld, bool transposed, const char *memory, size_t bytes) {
  const char *const to = (const char *)op->to;
  CHECK(op->from == given && op->n_x == x && op->n_k == k && op->n_batch == 1 && op->ld == ld && op->transposed == transposed,
        "%lld x %lld, ld %lld, transposed %d", (long long)op->n_x, (long long)op->n_k, (long long)op->ld, op->transposed);
  CHECK(op->pitch % 32 == 0 && op->pitch >= x && to >= memory && to + op->pitch * k * 4 <= memory + bytes, "pitch %lld at %p",
        (long long)op->pitch, (const void *)to);
  CHECK(read->data == to && read->step_mn == 1 && read->step_k == op->pitch && read->mode == WS_COPY_VECTORS_MN, "mode %d",
        read->mode);
}

/* Large float products under PEDANTIC read copies, where lines are along k or begin anywhere: the same row of multiply-adds, whose order
 * of summation does not know of them. Not where there is no memory, nor for a row by name. */
CHILD_CASE(float_copies) {
  (void)unused;
  enum { M = 3900, N = 4100, K = 2500 };
  char *workspace;
  wsgemm_handle *h = handle_with_workspace(&workspace);
  for (int ops = 0; ops < 4; ops++)
    for (int more_ld = 0; more_ld < 2; more_ld++) {
      const wsgemm_gemm_desc d = float_desc(ops, M, N, K, more_ld);
      const bool trans_a = ops / 2, trans_b = ops % 2, of_a = trans_a || more_ld, of_b = !trans_b || more_ld;
      size_t asked = 0;
      char text[DESCRIPTION_BYTES];
      REQUIRE(wsgemm_set_workspace(h, workspace, WORKSPACE) == WSGEMM_SUCCESS &&
                  wsgemm_get_workspace_size(h, &d, &asked) == WSGEMM_SUCCESS && watched_gemm(h, &d) == WSGEMM_SUCCESS,
              "%s", wsgemm_last_error());
      CHECK(fake.n_launches == 1 + (of_a || of_b) && (asked > 0) == (of_a || of_b), "%s: %d launches, %zu bytes",
            gemm_describe(&d, text), fake.n_launches, asked);
      const fake_launch *product = &fake.launch[fake.n_launches - 1];
      const int row_idx = product->row_idx;
      CHECK(row_of(product)->kind == WS_ROW_TILED && explained_is(h, &d, "kernel", row_of(product)->name), "%s", product->kernel);
      if (fake.n_launches == 2) {
        const ws_float_copy_args *copy = &fake.launch[0].float_copy;
        CHECK(strcmp(fake.launch[0].kernel, "float_copy") == 0, "%s", fake.launch[0].kernel);
        CHECK((copy->operand[0].n_k > 0) == of_a && (copy->operand[1].n_k > 0) == of_b, "which of them");
        if (of_a) check_float_copy(&copy->operand[0], &product->args.a, d.a, M, K, d.lda, trans_a, workspace, asked);
        if (of_b) check_float_copy(&copy->operand[1], &product->args.b, d.b, N, K, d.ldb, !trans_b, workspace, asked);
        CHECK(!of_a || !of_b || copy->operand[1].to >= copy->operand[0].to + copy->operand[0].pitch * K, "B's copy is in A's");
      }
      REQUIRE(wsgemm_set_workspace(h, workspace, 4096) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      product = launch_of(h, &d);
      CHECK(row_of(product)->kind == WS_ROW_TILED && product->args.a.data == d.a && product->args.b.data == d.b, "%s: other data",
            gemm_describe(&d, text));
      if (asked > 0) {
        REQUIRE(wsgemm_set_workspace(h, workspace, asked - 1) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        launch_of(h, &d);
      }
      REQUIRE(wsgemm_set_workspace(h, NULL, 0) == WSGEMM_SUCCESS &&
                  wsgemm_set_kernel(h, gpu_rows[row_idx].name) == WSGEMM_SUCCESS,
              "%s", wsgemm_last_error());
      launch_of(h, &d);
      REQUIRE(wsgemm_set_kernel(h, NULL) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
  const wsgemm_gemm_desc d = float_desc(2, M, N, K, 1);
  fake.device[0].room = 1 << 20; /* less than any copy */
  for (int s = 3; s < 6; s++) {
    fake.stream[s].is_busy = true;
    wsgemm_set_stream(h, &fake.stream[s]);
    CHECK(launch_of(h, &d)->args.a.data == d.a && fake.n_waits == 0, "without memory A is read as it is; %d waits", fake.n_waits);
  }
  wsgemm_set_stream(h, NULL);
  fake.device[0].room = 0;
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 2, "%d launches", fake.n_launches);
  fake.stream[0].is_busy = true;
  wsgemm_set_stream(h, &fake.stream[3]);
  fake_fail(FAKE_cuStreamWaitEvent, 1, 1, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(launch_of(h, &d)->args.a.data == d.a, "if the driver has no memory for a wait A is read as it is");
  fake_fail(FAKE_cuStreamWaitEvent, 0, 0, CUDA_SUCCESS);
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 2 && fake.n_waits == 1, "%d launches, %d waits",
        fake.n_launches, fake.n_waits);
  wsgemm_set_stream(h, &fake.stream[7]);
  fake_begin_capture(7);
  const int n_nodes = fake.n_nodes;
  launch_of(h, &d);
  CHECK(fake.n_nodes == n_nodes, "a graph gets %d nodes of memory", fake.n_nodes - n_nodes);
  fake_destroy_graph(fake_end_capture(7));
  wsgemm_destroy(h);
}

/* Of a batch every product is copied, but an operand that all of them share once. */
CHILD_CASE(float_copies_of_batches) {
  (void)unused;
  enum { N = 2000, K = 1000, BATCH = 3 };
  char *workspace;
  wsgemm_handle *h = handle_with_workspace(&workspace);
  for (int is_shared = 0; is_shared < 2; is_shared++) {
    wsgemm_gemm_desc d = float_desc(2, N, N, K, 1);
    d.batch_count = BATCH, d.stride_a = d.lda * N, d.stride_b = is_shared ? 0 : d.ldb * N, d.stride_c = d.ldc * N;
    size_t asked = 0;
    REQUIRE(wsgemm_get_workspace_size(h, &d, &asked) == WSGEMM_SUCCESS && watched_gemm(h, &d) == WSGEMM_SUCCESS &&
                fake.n_launches == 2,
            "%d launches: %s", fake.n_launches, wsgemm_last_error());
    const ws_float_copy_operand *a = &fake.launch[0].float_copy.operand[0], *b = &fake.launch[0].float_copy.operand[1];
    const ws_gemm_args *product = &fake.launch[1].args;
    CHECK(a->n_batch == BATCH && a->stride == d.stride_a && product->a.stride == a->pitch * K, "A: %lld, stride %lld",
          (long long)a->n_batch, (long long)product->a.stride);
    CHECK(b->n_batch == (is_shared ? 1 : BATCH) && product->b.stride == (is_shared ? 0 : b->pitch * K), "B: %lld, stride %lld",
          (long long)b->n_batch, (long long)product->b.stride);
    CHECK((char *)b->to >= (char *)a->to + a->pitch * K * BATCH * 4 &&
              (char *)b->to + b->pitch * K * b->n_batch * 4 <= workspace + asked,
          "places, of %zu bytes", asked);
  }
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {{"rows", rows},
                                          {"forced_rows", forced_rows},
                                          {"forced_without_memory", forced_without_memory},
                                          {"parts_of_k", parts_of_k},
                                          {"epilogue", epilogue},
                                          {"words", words},
                                          {"float_copies", float_copies},
                                          {"float_copies_of_batches", float_copies_of_batches},
                                          {"tuning", tuning}};
CHECK_MAIN("backend_pedantic", cases)
