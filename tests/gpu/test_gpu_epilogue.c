/* test_gpu_epilogue.c - the epilogue of wsgemm_gemm in device memory: the cases of epilogue_case.h,
 * and what is of GPUs alone: every kernel row, the edges of tiles, sums in parts, memory for a
 * residual that is C itself, graphs. The plain product that each case is compared with is made by
 * the same device and row. */
#include <stdlib.h>
#include <string.h>

#include "gpu.h"
#include "support/epilogue_case.h"

/* ---- rows and edges -------------------------------------------------------------------------- */

static int64_t no_more(int64_t n, int64_t most) { return n < most ? n : most; }

/* About a tile's extent, or any. */
static int64_t draw_extent(struct check_random *rng, int tile, int64_t most) {
  if (check_random_in(rng, 0, 1)) return check_random_in(rng, 1, most);
  const int64_t extent = tile + check_random_in(rng, -1, 1);
  return no_more(extent < 1 ? 1 : extent, most);
}

/* Each row of a pair's type with the handle that forces it, both layouts, every activation. */
static void run_rows(struct epilogue_stage *stage, int pair, int64_t most, int64_t least_k, int64_t most_k, int n_turns) {
  static struct rows_of_type rows;
  rows_open(&rows, type_pairs[pair][0]);
  for (int i = 0; i < rows.n_rows; i++) {
    if (is_of_family(&rows.row[i].info, "small")) continue; /* it takes none, and the row in its place sums in another order */
    for (int turn = 0; turn < n_turns; turn++) {
      const wsgemm_layout layout = all_layouts[turn % 2];
      const int64_t down = draw_extent(&stage->rng, rows.row[i].mr, most),
                    across = draw_extent(&stage->rng, rows.row[i].nr, most);
      const bool transposed = layout == WSGEMM_ROW_MAJOR;
      struct epilogue_case x = epilogue_case_draw(stage, pair, turn / 2 % N_ACTIVATIONS, layout, transposed ? across : down,
                                                  transposed ? down : across, check_random_in(&stage->rng, least_k, most_k));
      if (!epilogue_case_run(stage, rows.handle[i], &x)) CHECK(false, "that was with %s", rows.row[i].name);
    }
  }
  rows_close(&rows);
}

static void every_row(void) {
  enum { MOST = 260, MOST_K = 140 };
  struct epilogue_stage stage = epilogue_stage_new(MOST, MOST_K, 170);
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++) run_rows(&stage, pair, MOST, 1, MOST_K, 40 / check_scale() + 10);
  epilogue_stage_free(&stage);
}

/* So few tiles and so long a k that it is cut into parts, where the row does that. */
static void long_sums(void) {
  enum { MOST = 70, LEAST_K = 1000, MOST_K = 5000 };
  struct epilogue_stage stage = epilogue_stage_new(MOST, MOST_K, 171);
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++) run_rows(&stage, pair, MOST, LEAST_K, MOST_K, 20 / check_scale() + 2);
  epilogue_stage_free(&stage);
}

/* Every m x every n about the extents of tiles and pieces of them, with a bias, now for rows, now
 * for columns, and a residual. */
static void edges(void) {
  static const int64_t ranges[][2] = {{1, 17}, {63, 65}, {127, 129}, {191, 193}, {255, 257}};
  enum { N_RANGES = sizeof ranges / sizeof ranges[0], MOST = 257, MOST_K = 100 };
  int64_t sizes[MOST];
  int n_sizes = 0;
  for (int r = 0; r < N_RANGES; r++)
    for (int64_t size = ranges[r][0]; size <= ranges[r][1]; size++) sizes[n_sizes++] = size;
  struct epilogue_stage stage = epilogue_stage_new(MOST, MOST_K, 172);
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
    for (int at = 0; at < n_sizes * n_sizes; at++) {
      if (check_random_in(&stage.rng, 1, check_scale()) != 1) continue;
      const int activation = (int)check_random_in(&stage.rng, 0, N_ACTIVATIONS - 1);
      const wsgemm_layout layout = all_layouts[check_random_in(&stage.rng, 0, 1)];
      struct epilogue_case x = epilogue_case_draw(&stage, pair, activation, layout, sizes[at % n_sizes], sizes[at / n_sizes],
                                                  check_random_in(&stage.rng, 1, MOST_K));
      x.has_bias = x.has_residual = true;
      if (!epilogue_case_run(&stage, NULL, &x)) break;
    }
  epilogue_stage_free(&stage);
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* Turn by turn every policy, with and without a quantum. */
static void settings_of_turn(wsgemm_handle *handle, int turn, struct check_random *rng) {
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_STEAL, WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS};
  REQUIRE(wsgemm_set_policy(handle, policies[turn % 3]) == WSGEMM_SUCCESS &&
              wsgemm_set_quantum(handle, turn < 3 ? 0 : (int)check_random_in(rng, 0, 3)) == WSGEMM_SUCCESS,
          "settings: %s", wsgemm_last_error());
}

/* More tiles than find a place at once, so that some are stolen. */
static void bits(void) { epilogue_same_bits(2100, 1100, 60, settings_of_turn); }

/* ---- memory and streams ---------------------------------------------------------------------- */

/* The call with a workspace of the size that was asked for, and nothing of the library's own. */
static wsgemm_status gemm_in_workspace(wsgemm_handle *handle, const wsgemm_gemm_desc *d) {
  size_t bytes = 0;
  REQUIRE(wsgemm_get_workspace_size(handle, d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  if (d->residual) CHECK(bytes >= (size_t)(d->m * d->n) * type_bytes(d->type_c), "%zu bytes are no copy of C", bytes);
  void *workspace = gpu_alloc(bytes);
  REQUIRE(wsgemm_set_workspace(handle, workspace, bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  const wsgemm_status status = wsgemm_gemm(handle, d);
  GPU(cudaDeviceSynchronize());
  wsgemm_set_workspace(handle, NULL, 0);
  gpu_free(workspace);
  return status;
}

static wsgemm_status call_in_workspace(const struct arena *arenas, int n_arenas, wsgemm_handle *handle,
                                       const wsgemm_gemm_desc *d) {
  return call_mirrored(arenas, n_arenas, handle, d, gemm_in_workspace);
}

static struct epilogue_case residual_is_c(struct epilogue_stage *stage, int turn) {
  enum { M = 130, N = 90 };
  struct epilogue_case x = epilogue_case_draw(stage, turn % 2, turn / 2 % N_ACTIVATIONS, all_layouts[turn / 2 % 2], M, N,
                                              turn % 4 < 2 ? 40 : 4000); /* whole, and in parts */
  x.has_residual = x.residual_is_c = true;
  x.d.alpha = scalar_make(x.d.type_a, 1, 0);
  return x;
}

/* Of F32 and F64: a workspace that is too short for a copy of C is refused before anything is
 * written; as large as was asked for it does. */
static void residual_in_c_without_memory(void) {
  enum { MOST = 130, MOST_K = 4000, SHORT_BYTES = 256, N_TURNS = 12 };
  struct epilogue_stage stage = epilogue_stage_new(MOST, MOST_K, 173);
  wsgemm_handle *handle = NULL;
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS, "handle");
  void *workspace = gpu_alloc(SHORT_BYTES);
  for (int turn = 0; turn < N_TURNS; turn++) {
    struct epilogue_case x = residual_is_c(&stage, turn);
    REQUIRE(wsgemm_set_workspace(handle, workspace, SHORT_BYTES) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    epilogue_case_store(&stage, handle, &x);
    const unsigned long long c = matrix_digest(&x.stored[PART_C]), sums = matrix_digest(&x.stored[PART_SUMS]);
    const wsgemm_status status = call_arenas_on_device(stage.arena, N_PARTS, handle, &x.d);
    CHECK(status == WSGEMM_ALLOC_FAILED, "turn %d: %s", turn, wsgemm_status_name(status));
    CHECK(c == matrix_digest(&x.stored[PART_C]) && sums == matrix_digest(&x.stored[PART_SUMS]), "turn %d: C was written", turn);
    epilogue_backend.call = call_in_workspace;
    epilogue_case_run(&stage, handle, &x);
    epilogue_backend.call = call_arenas_on_device;
  }
  wsgemm_destroy(handle);
  gpu_free(workspace);
  epilogue_stage_free(&stage);
}

/* A part of the epilogue in host memory beside matrices in device memory, and the other way round:
 * refused, nothing is written. */
static void mixed_pointers(void) {
  enum { N = 32, BYTES = N * N * sizeof(float) };
  float host[N * N] = {0};
  void *matrices[] = {host, gpu_copy(host, BYTES)}, *parts[] = {gpu_copy(host, BYTES), host};
  const unsigned long long before = gpu_digest(matrices[1], BYTES);
  for (int part = 0; part < 3; part++)
    for (int where = 0; where < 2; where++) {
      wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, N, N, N);
      void *c = where ? matrices[1] : calloc(N * N, sizeof(float));
      d.a = d.b = matrices[where], d.c = c, d.epilogue = WSGEMM_EPILOGUE_RELU;
      if (part == 0) d.bias = parts[where];
      if (part == 1) d.residual = parts[where], d.ld_residual = N;
      if (part == 2) d.column_sums = parts[where];
      const wsgemm_status status = wsgemm_gemm(NULL, &d);
      CHECK(status == WSGEMM_INVALID_POINTER, "part %d, matrices %d: %s: %s", part, where, wsgemm_status_name(status),
            wsgemm_last_error());
      if (!where) free(c);
    }
  GPU(cudaDeviceSynchronize());
  CHECK(gpu_digest(matrices[1], BYTES) == before, "C was written");
  gpu_free(matrices[1]), gpu_free(parts[0]);
}

/* The call captured, then launched once. */
static wsgemm_status gemm_captured(wsgemm_handle *handle, const wsgemm_gemm_desc *d) {
  void *stream = NULL;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  wsgemm_get_stream(handle, &stream);
  GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  const wsgemm_status status = wsgemm_gemm(handle, d);
  GPU(cudaStreamEndCapture(stream, &graph));
  GPU(cudaGraphInstantiate(&exec, graph, 0));
  if (status == WSGEMM_SUCCESS) GPU(cudaGraphLaunch(exec, stream));
  GPU(cudaStreamSynchronize(stream));
  GPU(cudaGraphExecDestroy(exec));
  GPU(cudaGraphDestroy(graph));
  return status;
}

static wsgemm_status call_captured(const struct arena *arenas, int n_arenas, wsgemm_handle *handle, const wsgemm_gemm_desc *d) {
  return call_mirrored(arenas, n_arenas, handle, d, gemm_captured);
}

/* In a graph, on a stream that waits for no other: with all parts, the residual another matrix than
 * C. */
static void captured(void) {
  enum { MOST = 300, MOST_K = 100 };
  struct epilogue_stage stage = epilogue_stage_new(MOST, MOST_K, 174);
  cudaStream_t stream;
  wsgemm_handle *handle = NULL;
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS && wsgemm_set_stream(handle, stream) == WSGEMM_SUCCESS, "handle");
  epilogue_backend.call = call_captured;
  for (int pair = 0; pair < N_TYPE_PAIRS; pair++)
    for (int turn = 0; turn < 10; turn++) {
      const int64_t m = check_random_in(&stage.rng, 1, MOST), n = check_random_in(&stage.rng, 1, MOST);
      struct epilogue_case x = epilogue_case_draw(&stage, pair, turn % N_ACTIVATIONS, all_layouts[turn % 2], m, n,
                                                  check_random_in(&stage.rng, 0, MOST_K));
      x.has_bias = x.has_residual = x.has_sums = true, x.residual_is_c = false;
      epilogue_case_run(&stage, handle, &x);
    }
  epilogue_backend.call = call_arenas_on_device;
  wsgemm_destroy(handle);
  GPU(cudaStreamDestroy(stream));
  epilogue_stage_free(&stage);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"against_steps", epilogue_against_steps},
                                            {"whole_range", epilogue_whole_range},
                                            {"spreading", epilogue_spreading},
                                            {"bits", bits},
                                            {"sums_in_both_layouts", epilogue_sums_in_both_layouts},
                                            {"every_row", every_row},
                                            {"edges", edges},
                                            {"long_sums", long_sums},
                                            {"residual_in_c_without_memory", residual_in_c_without_memory},
                                            {"mixed_pointers", mixed_pointers},
                                            {"captured", captured}};
  gpu_open();
  epilogue_backend = (struct epilogue_backend){call_arenas_on_device, true};
  return check_main("gpu_epilogue", cases, sizeof cases / sizeof cases[0], argc, argv);
}
