/* test_gpu_split.c - products whose k is cut into parts, and the workspace: right and within the
 * bound on every row; the same bits whatever row, COARSE_FACTOR, policy and workspace; many such
 * launches at the same time, captured or not, neither mixed up nor deadlocked. */
#include <stdlib.h>
#include <string.h>

#include "gpu.h"

/* Few tiles, long k: tall, square, flat, a multiple of nothing, few parts and many; matrix-vector
 * products both ways. */
static const int64_t shapes[][3] = {{64, 64, 4096}, {33, 70, 3000}, {16, 700, 2100}, {1, 900, 1500},
                                    {900, 1, 1500}, {1, 1, 5000},   {5, 3, 9777},    {300, 31, 3031}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };
/* The tensor cores for 16 bits are so fast that it takes a longer k. */
static int64_t k_of(wsgemm_type type, int s) { return shapes[s][2] * (type_is_half(type) ? 4 : 1); }
/* Also of 16-bit types. */
static size_t sum_bytes(wsgemm_type type) { return type_is_half(type) ? sizeof(float) : type_bytes(type); }
static struct check_random rng;

/* Kernels on Hopper's tensor cores, also those of slices, cut no k between items. */
static bool never_splits(const wsgemm_kernel_info *row) {
  return is_of_family(row,
                      "wgmma direct dmma ffma outer flat small tf32x1 tf32x2 tf32m1 tf32m2 tf32w1 tf32w2 f16x3 bf16x6 f16x1");
}

/* Others than the tiled rows, where these are forced one by one (16 bits); under PEDANTIC these are
 * all the same few. */
static bool sums_otherwise(wsgemm_type type, const wsgemm_kernel_info *row, bool is_pedantic) {
  return never_splits(row) || (type_is_half(type) && is_of_family(row, "vec")) || (!is_pedantic && is_of_family(row, "fma16"));
}

/* Forces a tiled row, as the automatic choice may be a kernel that does not cut k. */
static wsgemm_handle *handle_that_splits(wsgemm_type type) {
  wsgemm_handle *h = NULL;
  for (int i = 0; i < wsgemm_kernel_count() && !h; i++) {
    const wsgemm_kernel_info info = row_info_at(i);
    if (strcmp(info.backend, "cuda") != 0 || info.type != type || never_splits(&info) || is_of_family(&info, "vec")) continue;
    REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, info.name) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  return h;
}

static void workspace_of(wsgemm_handle *h, void *memory, size_t bytes) {
  REQUIRE(wsgemm_set_workspace(h, memory, bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

/* Every row, in all three kinds of workspace: the library's, none (one too small), the caller's. */
static void within_bound(void) {
  static struct rows_of_type rows;
  rng = check_random_from(120);
  void *own = gpu_alloc(8 << 20), *small = gpu_alloc(256);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int s = 0; s < N_SHAPES && rows.n_rows > 0; s++) {
      const int64_t m = shapes[s][0], n = shapes[s][1], k = k_of(rows.type, s);
      struct stage stage = stage_new(rows.type, m, n, k, s % 2 ? FILL_UNIFORM : FILL_SPREAD, &rng);
      product_extend(&stage.product, &stage.a, &stage.b, k);
      for (int i = 0; i < rows.n_rows; i++) {
        if (i > 0 && check_random_in(&rng, 1, check_scale()) > 1) continue;
        for (int turn = 0; turn < (never_splits(&rows.row[i].info) ? 0 : 3); turn++) {
          wsgemm_gemm_desc d =
              gemm_desc(rows.type, draw_layout(&rng), draw_op(rows.type, &rng), draw_op(rows.type, &rng), m, n, k);
          d.alpha = scalar_make(rows.type, 1.5, turn == 1 ? -0.5 : 0);
          d.beta = scalar_make(rows.type, turn == 2 ? 0 : -0.75, turn == 0 ? 0.5 : 0);
          if (type_is_half(rows.type)) d.type_c = turn == 0 ? WSGEMM_F32 : turn == 1 ? WSGEMM_F16 : WSGEMM_BF16;
          const struct layout_of_case where = layout_drawn(&rng);
          workspace_of(rows.handle[i], turn == 0 ? NULL : turn == 1 ? small : own, turn == 0 ? 0 : turn == 1 ? 256 : 8 << 20);
          run_case(&stage, rows.handle[i], &d, &where, turn % 2, JUDGE_BOUND, rows.row[i].name);
        }
      }
      stage_free(&stage);
    }
    rows_close(&rows);
  }
  gpu_free(own), gpu_free(small);
}

/* The shapes above must be ones that are cut, or nothing here tests anything; and others must not
 * be. */
static void what_is_cut(void) {
  void *memory = gpu_alloc(1 << 20);
  for (int type = 0; type < N_TYPES; type++) {
    int n_cut = 0;
    wsgemm_handle *h = handle_that_splits((wsgemm_type)type);
    for (int s = 0; s < N_SHAPES; s++) {
      wsgemm_gemm_desc d = gemm_desc((wsgemm_type)type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, shapes[s][0],
                                     shapes[s][1], k_of((wsgemm_type)type, s));
      d.a = d.b = d.c = memory;
      size_t bytes = 0;
      CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const long long n_splits = explained_number(h, &d, "n_splits", 1);
      CHECK((n_splits > 1) == (bytes > 0) && bytes >= (n_splits > 1 ? (size_t)(n_splits * d.m * d.n) * sum_bytes(d.type_a) : 0),
            "%lld parts, %zu bytes", n_splits, bytes);
      n_cut += n_splits > 1;
    }
    CHECK(n_cut == N_SHAPES, "type %c: %d of %d shapes are cut", type_letter((wsgemm_type)type), n_cut, (int)N_SHAPES);
    wsgemm_gemm_desc d = gemm_desc((wsgemm_type)type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 4096, 4096, 4096);
    d.a = d.b = d.c = memory;
    CHECK(explained_number(h, &d, "n_splits", 1) == 1, "a large square is cut");
    wsgemm_destroy(h);
  }
  gpu_free(memory);
}

/* One shape on every row of the open type, in drawn places, by all policies and in all kinds of
 * workspace; the bits of the first call. */
static void check_bits_of_shape(const struct rows_of_type *rows, int s, bool is_pedantic, void *own, void *small) {
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL,
                                           WSGEMM_POLICY_CLC, WSGEMM_POLICY_AUTO};
  const bool is_half = type_is_half(rows->type);
  const int64_t m = shapes[s][0], n = shapes[s][1], k = k_of(rows->type, s);
  struct stage stage = stage_new(rows->type, m, n, k, FILL_UNIFORM, &rng);
  const bool is_vector = (m == 1 || n == 1) && !is_half; /* has rows of its own */
  unsigned long long expected = 0;
  int n_calls = 0;
  for (int i = is_vector ? -1 : 0; i < (is_vector ? 0 : rows->n_rows); i++) {
    if (n_calls > 0 && check_random_in(&rng, 1, check_scale()) > 1) continue;
    for (int turn = 0; turn < (i >= 0 && sums_otherwise(rows->type, &rows->row[i].info, is_pedantic) ? 0 : 12); turn++) {
      wsgemm_handle *made = NULL, *h = i < 0 ? NULL : rows->handle[i];
      if (i < 0) {
        REQUIRE(wsgemm_create(&made) == WSGEMM_SUCCESS, "handle");
        h = made;
        wsgemm_set_coarse_factor(h, 1 << turn % 4);
      }
      wsgemm_set_policy(h, policies[turn % 5]);
      wsgemm_set_quantum(h, turn % 3);
      const int kind = turn / 2 % 3;
      workspace_of(h, kind == 0 ? NULL : kind == 1 ? small : own, kind == 0 ? 0 : kind == 1 ? 256 : 8 << 20);
      wsgemm_gemm_desc d = gemm_desc(rows->type, WSGEMM_COL_MAJOR, all_ops[s / 2 % 2], all_ops[s % 2], m, n, k);
      if (is_half) d.type_c = s % 2 ? WSGEMM_F32 : WSGEMM_BF16;
      if (is_pedantic) d.math = WSGEMM_MATH_PEDANTIC;
      d.beta = scalar_make(rows->type, 0.5, 0.25);
      const struct layout_of_case where = layout_drawn(&rng);
      case_store(&stage, &d, &where);
      CHECK(call_on_device(&stage, h, &d, !is_pedantic) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const unsigned long long digest = matrix_digest(&stage.stored[2]);
      if (n_calls++ == 0) expected = digest;
      char text[DESCRIPTION_BYTES];
      CHECK(digest == expected, "%s: %s, turn %d: other bits", gemm_describe(&d, text), i < 0 ? "automatic" : rows->row[i].name,
            turn);
      if (made) wsgemm_destroy(made);
    }
  }
  stage_free(&stage);
}

static void same_bits(void) {
  static struct rows_of_type rows;
  rng = check_random_from(121);
  void *own = gpu_alloc(8 << 20), *small = gpu_alloc(256);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int s = 0; s < N_SHAPES; s++)
      for (int is_pedantic = 0; is_pedantic <= (type_is_half(rows.type) ? 1 : 0); is_pedantic++)
        check_bits_of_shape(&rows, s, is_pedantic, own, small);
    rows_close(&rows);
  }
  gpu_free(own), gpu_free(small);
}

enum { M = 64, N = 48, K = 8000, N_STREAMS = 12, N_ROUNDS = 200, C_BYTES = M * N * 4 };
static float *a, *b;
static unsigned long long expected;

static wsgemm_status multiply(wsgemm_handle *h, float *c) {
  return wsgemm_sgemm(h, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, M, N, K, 1, a, K, b, K, 0, c, M);
}

static void make_operands(void) {
  if (a) return;
  rng = check_random_from(122);
  float *host = malloc((size_t)M * K * sizeof(float));
  REQUIRE(host != NULL, "memory");
  for (int x = 0; x < 2; x++) {
    for (int i = 0; i < M * K; i++) host[i] = (float)check_random_unit(&rng);
    *(x ? &b : &a) = gpu_copy(host, (size_t)M * K * sizeof(float));
  }
  free(host);
  float *c = gpu_alloc(C_BYTES);
  wsgemm_handle *h = handle_that_splits(WSGEMM_F32);
  REQUIRE(multiply(h, c) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  expected = gpu_digest(c, C_BYTES);
  wsgemm_destroy(h);
  gpu_free(c);
}

/* More streams than there is own workspace for: some go without. Each launch's blocks wait for each
 * other, so if the device ever held parts of two launches this would not end. */
static void many_streams(void) {
  cudaStream_t stream[N_STREAMS];
  wsgemm_handle *h[N_STREAMS];
  float *c[N_STREAMS];
  make_operands();
  for (int s = 0; s < N_STREAMS; s++) {
    GPU(cudaStreamCreateWithFlags(&stream[s], cudaStreamNonBlocking));
    h[s] = handle_that_splits(WSGEMM_F32);
    REQUIRE(wsgemm_set_stream(h[s], stream[s]) == WSGEMM_SUCCESS, "handle");
    c[s] = gpu_alloc(C_BYTES);
  }
  for (int round = 0; round < N_ROUNDS; round++)
    for (int s = 0; s < N_STREAMS; s++) {
      GPU(cudaMemsetAsync(c[s], 0xff, C_BYTES, stream[s]));
      CHECK(multiply(h[s], c[s]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
  GPU(cudaDeviceSynchronize());
  for (int s = 0; s < N_STREAMS; s++) {
    CHECK(gpu_digest(c[s], C_BYTES) == expected, "stream %d: other bits", s);
    wsgemm_destroy(h[s]);
    GPU(cudaStreamDestroy(stream[s]));
    gpu_free(c[s]);
  }
}

/* Two graphs from one handle, each with several products, replayed at the same time. */
static void two_graphs(void) {
  cudaStream_t stream[2];
  cudaGraph_t graph[2];
  cudaGraphExec_t exec[2];
  float *c[2];
  wsgemm_handle *h = handle_that_splits(WSGEMM_F32);
  make_operands();
  for (int g = 0; g < 2; g++) GPU(cudaStreamCreateWithFlags(&stream[g], cudaStreamNonBlocking));
  REQUIRE(wsgemm_set_stream(h, stream[0]) == WSGEMM_SUCCESS, "handle");
  for (int g = 0; g < 2; g++) {
    c[g] = gpu_alloc(C_BYTES);
    GPU(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeGlobal));
    for (int call = 0; call < 3; call++) CHECK(multiply(h, c[g]) == WSGEMM_SUCCESS, "captured: %s", wsgemm_last_error());
    GPU(cudaStreamEndCapture(stream[0], &graph[g]));
    GPU(cudaGraphInstantiate(&exec[g], graph[g], 0));
  }
  for (int round = 0; round < N_ROUNDS; round++)
    for (int g = 0; g < 2; g++) {
      GPU(cudaMemsetAsync(c[g], 0xff, C_BYTES, stream[g]));
      GPU(cudaGraphLaunch(exec[g], stream[g]));
    }
  GPU(cudaDeviceSynchronize());
  for (int g = 0; g < 2; g++) {
    CHECK(gpu_digest(c[g], C_BYTES) == expected, "graph %d: other bits", g);
    GPU(cudaGraphExecDestroy(exec[g]));
    GPU(cudaGraphDestroy(graph[g]));
    GPU(cudaStreamDestroy(stream[g]));
    gpu_free(c[g]);
  }
  wsgemm_destroy(h);
}

/* The caller's workspace: used up to its last byte and no further; refused where it is none. */
static void callers_workspace(void) {
  enum { GUARD = 4096 };
  make_operands();
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, M, N, K);
  float *c = gpu_alloc(C_BYTES), host = 0;
  d.a = a, d.b = b, d.c = c;
  size_t bytes = 0;
  wsgemm_handle *h = handle_that_splits(WSGEMM_F32);
  REQUIRE(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS && bytes > 0, "%s", wsgemm_last_error());
  unsigned char *memory = gpu_alloc(bytes + 2 * GUARD);
  for (int is_short = 0; is_short < 2; is_short++) {
    GPU(cudaMemset(memory, 0x5a, bytes + 2 * GUARD));
    GPU(cudaMemset(c, 0xff, C_BYTES));
    const unsigned long long guards = gpu_digest(memory, GUARD) + gpu_digest(memory + GUARD + bytes, GUARD);
    const unsigned long long inside = gpu_digest(memory + GUARD, bytes);
    workspace_of(h, memory + GUARD, bytes - (size_t)is_short);
    CHECK(multiply(h, c) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(gpu_digest(c, C_BYTES) == expected, "other bits");
    CHECK(gpu_digest(memory, GUARD) + gpu_digest(memory + GUARD + bytes, GUARD) == guards,
          "the workspace's surroundings were written");
    CHECK((gpu_digest(memory + GUARD, bytes) == inside) == is_short, "the workspace was %s",
          is_short ? "used, too short" : "not used");
  }
  CHECK(wsgemm_set_workspace(h, &host, 8 << 20) == WSGEMM_INVALID_POINTER, "host memory is taken as workspace");
  CHECK(wsgemm_set_workspace(h, memory + 1, bytes) == WSGEMM_INVALID_VALUE, "a workspace at an odd address is taken");
  CHECK(wsgemm_set_workspace(h, NULL, 1) == WSGEMM_INVALID_POINTER, "NULL with bytes is taken");
  CHECK(wsgemm_get_workspace_size(h, &d, NULL) == WSGEMM_INVALID_POINTER, "bytes = NULL");
  wsgemm_destroy(h);
  gpu_free(memory), gpu_free(c);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"within_bound", within_bound}, {"what_is_cut", what_is_cut},
                                            {"same_bits", same_bits},       {"many_streams", many_streams},
                                            {"two_graphs", two_graphs},     {"callers_workspace", callers_workspace}};
  gpu_open();
  return check_main("gpu_split", cases, sizeof cases / sizeof cases[0], argc, argv);
}
