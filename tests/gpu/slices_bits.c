/* slices_bits.c - which bits products by slices have, as cases for F32 and C32: see slices.h. */
#include "slices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* n numbers with parts of (-1, 1), of which a few are so large that they mark their rows and
 * columns, for three slices or as unfit; or (ALL_NEED_3) so many so small that they mark every one,
 * for three slices. */
static float *new_numbers(wsgemm_type type, int64_t n, int n_marks) {
  const int64_t n_floats = n * n_parts(type);
  float *x = malloc((size_t)n_floats * sizeof *x);
  REQUIRE(x != NULL, "memory");
  for (int64_t at = 0; at < n_floats; at++) x[at] = (float)ldexp(unit(), n_marks == ALL_NEED_3 ? -(int)drawn(0, 35) : 0);
  for (int i = 0; i < n_marks; i++) x[drawn(0, n_floats - 1)] = i % 2 ? 0x1p35f : 0x1p60f;
  return x;
}

struct twice twice_new(wsgemm_type type, int64_t n, int n_marks) {
  const size_t bytes = (size_t)n * type_bytes(type);
  float *host = new_numbers(type, n, n_marks);
  struct twice x;
  for (int i = 0; i < 2; i++) {
    x.memory[i] = gpu_alloc(bytes + sizeof *host);
    x.at[i] = x.memory[i] + i;
    gpu_put(x.at[i], host, bytes);
  }
  free(host);
  return x;
}
void twice_free(struct twice *x) { gpu_free(x->memory[0]), gpu_free(x->memory[1]); }

/* ---- Settings, runs, pieces ------------------------------------------------------------------ */

enum { N_QUANTA = 3, GUARD = 4096 };

/* With memory for no piece the call that d says has PEDANTIC's bits, not those of slices. */
static void without_memory(wsgemm_handle *h, const wsgemm_gemm_desc *d, size_t c_bytes, void *memory,
                           unsigned long long by_slices) {
  unsigned long long digest[2];
  workspace_of(h, memory, 256);
  for (int is_pedantic = 0; is_pedantic < 2; is_pedantic++) {
    CHECK(wsgemm_set_math(h, is_pedantic ? WSGEMM_MATH_PEDANTIC : WSGEMM_MATH_DEFAULT) == WSGEMM_SUCCESS, "%s",
          wsgemm_last_error());
    GPU(cudaMemset(d->c, 0xff, c_bytes));
    CHECK(wsgemm_gemm(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    digest[is_pedantic] = gpu_digest(d->c, c_bytes);
  }
  CHECK(digest[0] == digest[1], "without memory: other bits than PEDANTIC's");
  CHECK(digest[0] != by_slices, "without memory: the bits of slices");
  CHECK(wsgemm_set_math(h, WSGEMM_MATH_DEFAULT) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

void bits_of(wsgemm_type type, int64_t m, int64_t n, int64_t k, int n_marks, size_t few, wsgemm_op transa, wsgemm_op transb) {
  const size_t c_bytes = (size_t)(m * n) * type_bytes(type);
  struct twice a = twice_new(type, m * k, n_marks), b = twice_new(type, k * n, 2), c = twice_new(type, m * n, 0);
  /* of few = 0 bytes: only guards, which without_memory leaves alone, too */
  unsigned char *memory = gpu_alloc(few + 2 * GUARD);
  GPU(cudaMemset(memory, 0x5a, few + 2 * GUARD));
  const unsigned long long guards = gpu_digest(memory, GUARD) + gpu_digest(memory + GUARD + few, GUARD);
  unsigned long long first = 0;
  int n_calls = 0;
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_handle *h = rows.handle[i];
    wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, transa, transb, m, n, k);
    size_t bytes = 0;
    d.a = a.at[0], d.b = b.at[0], d.c = c.at[0];
    CHECK(strcmp(kernel_of(h, &d), rows.row[i].name) == 0, "%s in place of %s", kernel_of(h, &d), rows.row[i].name);
    CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS && bytes > few, "%zu bytes of workspace hold all %zu", few,
          bytes);
    for (int turn = 0; turn < N_POLICIES * N_QUANTA * 2; turn++) {
      const int policy = turn % N_POLICIES, quantum = turn / N_POLICIES % N_QUANTA, in_pieces = turn / (N_POLICIES * N_QUANTA);
      if (in_pieces && few == 0) continue;
      wsgemm_set_policy(h, all_policies[policy]), wsgemm_set_quantum(h, quantum);
      workspace_of(h, in_pieces ? memory + GUARD : NULL, in_pieces ? few : 0);
      for (int run = 0; run < (check_scale() > 1 ? 1 : 5); run++) {
        d.a = a.at[run % 2], d.b = b.at[run / 2 % 2], d.c = c.at[run % 2];
        GPU(cudaMemset(d.c, 0xff, c_bytes));
        CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        const unsigned long long digest = gpu_digest(d.c, c_bytes);
        char text[DESCRIPTION_BYTES];
        if (n_calls++ == 0) first = digest;
        CHECK(digest == first, "%s: %s, policy %d, quantum %d%s: other bits than %s", rows.row[i].name, gemm_describe(&d, text),
              (int)all_policies[policy], quantum, in_pieces ? ", in pieces" : "", rows.row[0].name);
      }
    }
    without_memory(h, &d, c_bytes, memory + GUARD, first);
    workspace_of(h, NULL, 0);
  }
  CHECK(gpu_digest(memory, GUARD) + gpu_digest(memory + GUARD + few, GUARD) == guards,
        "the workspace's surroundings were written");
  twice_free(&a), twice_free(&b), twice_free(&c);
  gpu_free(memory);
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

enum { GRAPH_M = 200, GRAPH_K = 300, GRAPH_N = 260, GRAPH_LAST = 150, N_REPLAYS = 20, N_INPUTS = 4 };
static const int64_t n_in[3] = {GRAPH_M * GRAPH_K, GRAPH_K *GRAPH_N, GRAPH_N *GRAPH_LAST};

/* C = A B, then E = C D; the handles may be one. */
struct chain {
  wsgemm_type type;
  wsgemm_handle *h[2];
  void *workspace[2];
  void *in[3], *c, *e; /* A, B, D */
  size_t in_bytes[3], c_bytes, e_bytes;
  cudaStream_t stream;
};

static wsgemm_gemm_desc desc_of_chain(const struct chain *x, int which) {
  wsgemm_gemm_desc d = which == 0
                           ? gemm_desc(x->type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, GRAPH_M, GRAPH_N, GRAPH_K)
                           : gemm_desc(x->type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, GRAPH_M, GRAPH_LAST, GRAPH_N);
  d.a = which == 0 ? x->in[0] : x->c, d.b = x->in[1 + which], d.c = which == 0 ? x->c : x->e;
  return d;
}

static void multiply_chain(const struct chain *x) {
  for (int which = 0; which < 2; which++) {
    const wsgemm_gemm_desc d = desc_of_chain(x, which);
    CHECK(wsgemm_gemm(x->h[which], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
}

/* A workspace of the caller's, as the library has its own for two captured launches only. */
static struct chain chain_new(wsgemm_type type, const char *row, int n_handles) {
  struct chain x = {
      .type = type, .c_bytes = GRAPH_M * GRAPH_N * type_bytes(type), .e_bytes = GRAPH_M * GRAPH_LAST * type_bytes(type)};
  x.c = gpu_alloc(x.c_bytes), x.e = gpu_alloc(x.e_bytes);
  for (int i = 0; i < 3; i++) x.in_bytes[i] = (size_t)n_in[i] * type_bytes(type), x.in[i] = gpu_alloc(x.in_bytes[i]);
  GPU(cudaStreamCreateWithFlags(&x.stream, cudaStreamNonBlocking));
  for (int i = 0; i < n_handles; i++)
    REQUIRE(wsgemm_create(&x.h[i]) == WSGEMM_SUCCESS && wsgemm_set_kernel(x.h[i], row) == WSGEMM_SUCCESS &&
                wsgemm_set_stream(x.h[i], x.stream) == WSGEMM_SUCCESS,
            "%s", wsgemm_last_error());
  if (n_handles == 1) x.h[1] = x.h[0];
  for (int i = 0; i < 2; i++) {
    size_t bytes[2];
    for (int which = 0; which < 2; which++) {
      const wsgemm_gemm_desc d = desc_of_chain(&x, which);
      CHECK(strcmp(kernel_of(x.h[i], &d), row) == 0, "%s in place of %s", kernel_of(x.h[i], &d), row);
      REQUIRE(wsgemm_get_workspace_size(x.h[i], &d, &bytes[which]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
    const size_t most = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    x.workspace[i] = gpu_alloc(most);
    workspace_of(x.h[i], x.workspace[i], most);
  }
  return x;
}

static void chain_free(struct chain *x) {
  if (x->h[1] != x->h[0]) wsgemm_destroy(x->h[1]);
  wsgemm_destroy(x->h[0]);
  for (int i = 0; i < 2; i++) gpu_free(x->workspace[i]);
  for (int i = 0; i < 3; i++) gpu_free(x->in[i]);
  gpu_free(x->c), gpu_free(x->e);
  GPU(cudaStreamDestroy(x->stream));
}

static void poison_chain(const struct chain *x) {
  GPU(cudaMemsetAsync(x->c, 0xff, x->c_bytes, x->stream));
  GPU(cudaMemsetAsync(x->e, 0xff, x->e_bytes, x->stream));
}

static void captured_on(wsgemm_type type, const char *row, int n_handles, float *inputs[N_INPUTS][3]) {
  struct chain x = chain_new(type, row, n_handles);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  unsigned long long before = 0;
  GPU(cudaStreamBeginCapture(x.stream, cudaStreamCaptureModeGlobal));
  multiply_chain(&x);
  GPU(cudaStreamEndCapture(x.stream, &graph));
  GPU(cudaGraphInstantiate(&exec, graph, 0));
  for (int replay = 0; replay < N_REPLAYS; replay++) {
    unsigned long long of_c[2], of_e[2];
    for (int i = 0; i < 3; i++)
      GPU(cudaMemcpyAsync(x.in[i], inputs[replay % N_INPUTS][i], x.in_bytes[i], cudaMemcpyHostToDevice, x.stream));
    for (int turn = 0; turn < 2; turn++) {
      /* either may find what the other left in the workspace */
      const bool by_graph = turn != replay % 2;
      poison_chain(&x);
      if (by_graph)
        GPU(cudaGraphLaunch(exec, x.stream));
      else
        multiply_chain(&x);
      GPU(cudaStreamSynchronize(x.stream));
      of_c[turn] = gpu_digest(x.c, x.c_bytes), of_e[turn] = gpu_digest(x.e, x.e_bytes);
    }
    CHECK(of_c[0] == of_c[1] && of_e[0] == of_e[1], "%s, %d handles, replay %d: other bits than the direct calls'", row,
          n_handles, replay);
    CHECK(of_e[0] != before, "%s, replay %d: new numbers give the old result", row, replay);
    before = of_e[0];
  }
  GPU(cudaGraphExecDestroy(exec));
  GPU(cudaGraphDestroy(graph));
  chain_free(&x);
}

/* Inputs with no marks, with some, and with NaN and Inf: what is marked is known only when the
 * graph runs. */
void captured_of(wsgemm_type type) {
  float *inputs[N_INPUTS][3];
  for (int set = 0; set < N_INPUTS; set++)
    for (int i = 0; i < 3; i++) inputs[set][i] = new_numbers(type, n_in[i], set % 2 ? 2 : 0);
  inputs[2][0][drawn(0, n_in[0] - 1)] = NAN, inputs[2][2][drawn(0, n_in[2] - 1)] = -INFINITY;
  open_sliced(type, OF_THREE_PRODUCTS);
  for (int i = 0; i < rows.n_rows; i++)
    for (int n_handles = 1; n_handles <= 2; n_handles++) captured_on(type, rows.row[i].name, n_handles, inputs);
  rows_close(&rows);
  for (int set = 0; set < N_INPUTS; set++)
    for (int i = 0; i < 3; i++) free(inputs[set][i]);
}

/* ---- Batches --------------------------------------------------------------------------------- */

enum {
  COUNT = 7,
  FEW_BYTES = 512 << 10
}; /* FEW_BYTES: enough for one product of reals, not for all; of complex numbers thrice */

/* One matrix of a batch: where product 0 begins, in memory of so many bytes. */
struct series {
  char *memory, *first;
  size_t bytes;
  int64_t stride; /* elements */
};

/* `lines` of ld elements each: apart as drawn, one upon the other (if shared), or backwards. Parts
 * of complex numbers begin anywhere. */
static struct series series_new(wsgemm_type type, int64_t ld, int64_t lines, bool may_share, int n_marks) {
  const int64_t apart = ld * lines + drawn(0, 5), kind = drawn(may_share ? 0 : 1, 3), shift = drawn(0, 3);
  const int64_t n_odd = type_is_complex(type) ? drawn(0, 1) : 0; /* floats */
  const int64_t n = COUNT * apart + shift + n_odd, first = shift + (kind == 1 ? (COUNT - 1) * apart : 0);
  struct series x = {.bytes = (size_t)n * type_bytes(type), .stride = kind == 0 ? 0 : kind == 1 ? -apart : apart};
  float *host = new_numbers(type, n, n_marks);
  x.memory = gpu_copy(host, x.bytes);
  x.first = x.memory + (size_t)first * type_bytes(type) + (size_t)n_odd * sizeof(float);
  free(host);
  return x;
}

static void batch_on(wsgemm_handle *h, const char *row, void *few, size_t few_bytes) {
  const wsgemm_type type = rows.type;
  const int64_t m = drawn(65, 150), n = drawn(65, 150), k = drawn(128, 200), side = m > n ? m : n,
                size = (int64_t)type_bytes(type);
  wsgemm_gemm_desc d = drawn_desc(type, m, n, k), one;
  d.lda += drawn(0, 5), d.ldb += drawn(0, 5), d.ldc += drawn(0, 5);
  struct series a = series_new(type, d.lda, k > side ? k : side, true, 4),
                b = series_new(type, d.ldb, k > side ? k : side, true, 4), c = series_new(type, d.ldc, side, false, 0);
  char *by_one = gpu_alloc(c.bytes);
  GPU(cudaMemcpy(by_one, c.memory, c.bytes, cudaMemcpyDeviceToDevice));
  d.a = a.first, d.b = b.first, d.c = c.first;
  one = d;
  for (int i = 0; i < COUNT; i++) {
    one.a = a.first + i * a.stride * size, one.b = b.first + i * b.stride * size;
    one.c = by_one + (c.first - c.memory) + i * c.stride * size;
    CHECK(strcmp(kernel_of(h, &one), row) == 0, "%s in place of %s", kernel_of(h, &one), row);
    CHECK(wsgemm_gemm(h, &one) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  d.batch_count = COUNT, d.stride_a = a.stride, d.stride_b = b.stride, d.stride_c = c.stride;
  size_t bytes = 0;
  CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  if (row_is_of(row, OF_THREE_PRODUCTS) && a.stride != 0 && b.stride != 0)
    CHECK(bytes > few_bytes, "%zu bytes for all products", bytes);
  workspace_of(h, few, few ? few_bytes : 0);
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  workspace_of(h, NULL, 0);
  char *got = malloc(c.bytes), *wanted = malloc(c.bytes);
  REQUIRE(got && wanted, "memory");
  GPU(cudaMemcpy(got, c.memory, c.bytes, cudaMemcpyDeviceToHost));
  GPU(cudaMemcpy(wanted, by_one, c.bytes, cudaMemcpyDeviceToHost));
  char text[DESCRIPTION_BYTES];
  CHECK(memcmp(got, wanted, c.bytes) == 0, "%s: %s, %d products %lld, %lld, %lld apart%s: other bytes than one by one", row,
        gemm_describe(&d, text), (int)COUNT, (long long)a.stride, (long long)b.stride, (long long)c.stride,
        few ? ", in few bytes" : "");
  free(got), free(wanted);
  gpu_free(a.memory), gpu_free(b.memory), gpu_free(c.memory), gpu_free(by_one);
}

void batches_of(wsgemm_type type) {
  const size_t few_bytes = type_is_complex(type) ? 3 * FEW_BYTES : FEW_BYTES;
  void *few = gpu_alloc(few_bytes);
  open_sliced(type, OF_ANY_PRODUCTS);
  for (int turn = 0; turn < 30 / check_scale() + 2; turn++)
    for (int i = 0; i < rows.n_rows; i++) batch_on(rows.handle[i], rows.row[i].name, turn % 2 ? few : NULL, few_bytes);
  rows_close(&rows);
  gpu_free(few);
}
