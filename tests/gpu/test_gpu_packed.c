/* test_gpu_packed.c - products with operands packed beforehand (compute capability 9.0): the bits
 * that they have without, whatever is packed and marked, in whatever memory, on many streams at
 * once, from graphs and in batches; and that flat products gain. What the kernels are told is the
 * business of tests/host/test_backend_packed*.c. */
#include "packing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SIDE = 600, MOST_K = 420, LD = MOST_SIDE + 20 };
static const wsgemm_type both_types[] = {WSGEMM_F32, WSGEMM_C32};

/* ---- Operands -------------------------------------------------------------------------------- */

/* A, B and C of products with leading dimensions up to LD, and what C holds before. */
struct matrices {
  char *a, *b, *c, *c_before;
  size_t element, c_bytes;
};

static struct matrices matrices_new(wsgemm_type type, enum marks marks) {
  enum { N = LD * LD, N_MARKS = 9 };
  struct matrices x = {.element = type_bytes(type), .c_bytes = N * type_bytes(type)};
  x.a = new_numbers(type, N, marks, N_MARKS), x.b = new_numbers(type, N, marks, N_MARKS);
  x.c_before = new_numbers(type, N, NO_MARKS, 0), x.c = gpu_alloc(x.c_bytes);
  return x;
}

static void matrices_free(struct matrices *x) { gpu_free(x->a), gpu_free(x->b), gpu_free(x->c), gpu_free(x->c_before); }

static unsigned long long digest_of(wsgemm_handle *h, const wsgemm_gemm_desc *d, const struct matrices *x) {
  GPU(cudaMemcpy(x->c, x->c_before, x->c_bytes, cudaMemcpyDeviceToDevice));
  CHECK(wsgemm_gemm(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return gpu_digest(x->c, x->c_bytes);
}

/* Room for the least piece, of 256 rows and columns, of the product without packed operands. */
static size_t bytes_of_piece(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  wsgemm_gemm_desc least = *d;
  size_t bytes = 0;
  least.m = least.n = 256, least.lda = least.ldb = least.ldc = LD, least.packed_a = least.packed_b = NULL;
  CHECK(wsgemm_get_workspace_size(h, &least, &bytes) == WSGEMM_SUCCESS && bytes > 0, "%s", wsgemm_last_error());
  return bytes;
}

/* ---- The same bits --------------------------------------------------------------------------- */

static wsgemm_gemm_desc desc_in(const struct matrices *x, wsgemm_type type, wsgemm_layout layout, wsgemm_op transa,
                                wsgemm_op transb) {
  const int64_t m = heads() ? drawn(257, MOST_SIDE) : drawn_side(MOST_SIDE),
                n = heads() ? drawn(257, MOST_SIDE) : drawn_side(MOST_SIDE);
  wsgemm_gemm_desc d = drawn_desc(type, m, n, drawn_k(MOST_K)), plain = gemm_desc(type, layout, transa, transb, m, n, d.k);
  d.layout = layout, d.transa = transa, d.transb = transb;
  d.lda = plain.lda + drawn(0, 5), d.ldb = plain.ldb + drawn(0, 5), d.ldc = plain.ldc + drawn(0, 5);
  /* Parts of complex numbers begin anywhere, too. */
  d.a = x->a + sizeof(float) * (size_t)drawn(0, 3), d.b = x->b + sizeof(float) * (size_t)drawn(0, 3), d.c = x->c;
  return d;
}

/* With A, B, or both packed, in the library's memory and in little: as the product by itself. */
static void compare_on(int row, const wsgemm_gemm_desc *plain, const struct matrices *x, unsigned char *few) {
  static const char *const words[] = {"", "a", "b", "a b"};
  wsgemm_handle *h = rows.handle[row];
  const char *who = rows.row[row].name;
  char text[DESCRIPTION_BYTES];
  workspace_of(h, NULL, 0);
  CHECK(strcmp(kernel_of(h, plain), who) == 0, "%s in place of %s", kernel_of(h, plain), who);
  const int64_t n_before = n_fallbacks();
  const unsigned long long expected = digest_of(h, plain, x);
  const int64_t n_alone = n_fallbacks() - n_before;
  const size_t few_bytes = bytes_of_piece(h, plain);
  struct packing a = pack(h, plain, false), b = pack(h, plain, true);
  CHECK(n_fallbacks() == n_before + n_alone, "packing counts as a product");
  for (int which = 1; which < 4; which++)
    for (int in_pieces = 0; in_pieces < 2; in_pieces++) {
      wsgemm_gemm_desc d = *plain;
      d.packed_a = which & 1 ? a.record : NULL, d.packed_b = which & 2 ? b.record : NULL;
      workspace_of(h, in_pieces ? few : NULL, in_pieces ? few_bytes : 0);
      CHECK(strcmp(kernel_of(h, &d), who) == 0, "packed, %s in place of %s", kernel_of(h, &d), who);
      if (d.layout == WSGEMM_COL_MAJOR)
        CHECK(explained_is(h, &d, "packed", words[which]), "not explained as packed: %s", words[which]);
      const int64_t n_so_far = n_fallbacks();
      CHECK(digest_of(h, &d, x) == expected, "%s: %s, packed: %s%s: other bits than unpacked", who, gemm_describe(&d, text),
            words[which], in_pieces ? ", in little memory" : "");
      if (!in_pieces || which == 3)
        CHECK(n_fallbacks() - n_so_far == n_alone, "%s: %s, packed: %s%s: %lld lines fell back, unpacked %lld", who,
              gemm_describe(&d, text), words[which], in_pieces ? ", in little memory" : "", (long long)(n_fallbacks() - n_so_far),
              (long long)n_alone);
    }
  workspace_of(h, NULL, 0);
  check_untouched(&a, who), check_untouched(&b, who);
  unpack(&a), unpack(&b);
}

/* All ops and layouts, or as many as drawn. */
static void compare_all(wsgemm_type type, const char *product, enum marks marks, int n_turns) {
  enum { FEW_BYTES = 16 << 20 };
  const int n = n_ops(type), n_all = 2 * n * n;
  struct matrices x = matrices_new(type, marks);
  unsigned char *few = gpu_alloc(FEW_BYTES);
  open_sliced(type, product);
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < n_turns; turn++) {
      const int which = n_turns == n_all ? turn : (int)drawn(0, n_all - 1);
      const wsgemm_gemm_desc d = desc_in(&x, type, all_layouts[which % 2], all_ops[which / 2 % n], all_ops[which / 2 / n]);
      REQUIRE(bytes_of_piece(rows.handle[i], &d) <= FEW_BYTES, "a large piece");
      if (drawn(1, check_scale()) == 1) compare_on(i, &d, &x, few);
    }
  rows_close(&rows);
  gpu_free(few);
  matrices_free(&x);
}

static void same_bits(void) {
  rng = check_random_from(210);
  compare_all(WSGEMM_F32, OF_THREE_PRODUCTS, NO_MARKS, 8);
  compare_all(WSGEMM_C32, OF_THREE_PRODUCTS, NO_MARKS, 32);
}

static void marked(void) {
  rng = check_random_from(211);
  const int64_t n_before = n_fallbacks();
  for (int t = 0; t < 2; t++) {
    compare_all(both_types[t], OF_THREE_PRODUCTS, FOR_THREE, 4);
    compare_all(both_types[t], OF_THREE_PRODUCTS, FOR_ALL, 6);
  }
  CHECK(n_fallbacks() > n_before, "nothing was marked");
}

static void tf32(void) {
  rng = check_random_from(212);
  for (int t = 0; t < 2; t++) {
    compare_all(both_types[t], OF_ONE_PRODUCT, NO_MARKS, 6);
    compare_all(both_types[t], OF_ONE_PRODUCT, FOR_ALL, 4);
  }
}

/* ---- Streams --------------------------------------------------------------------------------- */

enum { N_STREAMS = 4, N_TIMES = 8, N_ROUNDS = 25, M = 300, N = 520, K = 700 };

/* A product on a stream of its own, with a workspace of its own: the library's is for two
 * streams. */
struct lane {
  wsgemm_handle *h;
  cudaStream_t stream;
  void *a, *c, *workspace;
  wsgemm_gemm_desc d;
  unsigned long long expected;
};

static struct lane lane_new(wsgemm_type type, const char *row, const void *b, enum marks marks) {
  struct lane x = {.a = new_numbers(type, M * K, marks, 5), .c = gpu_alloc(M * N * type_bytes(type))};
  size_t bytes = 0;
  GPU(cudaStreamCreateWithFlags(&x.stream, cudaStreamNonBlocking));
  REQUIRE(wsgemm_create(&x.h) == WSGEMM_SUCCESS && wsgemm_set_kernel(x.h, row) == WSGEMM_SUCCESS &&
              wsgemm_set_math(x.h, math_of(row)) == WSGEMM_SUCCESS && wsgemm_set_stream(x.h, x.stream) == WSGEMM_SUCCESS,
          "%s", wsgemm_last_error());
  x.d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
  x.d.a = x.a, x.d.b = b, x.d.c = x.c;
  REQUIRE(wsgemm_get_workspace_size(x.h, &x.d, &bytes) == WSGEMM_SUCCESS && bytes > 0, "%s", wsgemm_last_error());
  x.workspace = gpu_alloc(bytes);
  workspace_of(x.h, x.workspace, bytes);
  return x;
}

static void begin(const struct lane *x) {
  GPU(cudaMemsetAsync(x->c, 0xff, M * N * type_bytes(x->d.type_c), x->stream));
  CHECK(wsgemm_gemm(x->h, &x->d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

static unsigned long long result(const struct lane *x) {
  GPU(cudaStreamSynchronize(x->stream));
  return gpu_digest(x->c, M * N * type_bytes(x->d.type_c));
}

static void lane_free(struct lane *x) {
  wsgemm_destroy(x->h);
  GPU(cudaStreamDestroy(x->stream));
  gpu_free(x->a), gpu_free(x->c), gpu_free(x->workspace);
}

/* Some of the products need three slices of B, others two. */
static void streams_on(wsgemm_type type, const char *row, enum marks marks_of_b) {
  struct lane lane[N_STREAMS];
  void *b = new_numbers(type, K * N, marks_of_b, 4);
  for (int s = 0; s < N_STREAMS; s++) {
    lane[s] = lane_new(type, row, b, s == 1 ? FOR_THREE : s == 3 ? FOR_ALL : NO_MARKS);
    begin(&lane[s]);
    lane[s].expected = result(&lane[s]);
  }
  struct packing p = pack(lane[0].h, &lane[0].d, true);
  for (int s = 0; s < N_STREAMS; s++) lane[s].d.packed_b = p.record;
  for (int time = 0; time < N_TIMES / (check_scale() > 1 ? 4 : 1); time++) {
    for (int round = 0; round < N_ROUNDS; round++)
      for (int s = 0; s < N_STREAMS; s++) begin(&lane[s]);
    for (int s = 0; s < N_STREAMS; s++)
      CHECK(result(&lane[s]) == lane[s].expected, "%s: stream %d: other bits than alone, unpacked", row, s);
  }
  check_untouched(&p, row);
  unpack(&p);
  for (int s = 0; s < N_STREAMS; s++) lane_free(&lane[s]);
  gpu_free(b);
}

static void streams(void) {
  rng = check_random_from(213);
  for (int t = 0; t < 2; t++) {
    open_sliced(both_types[t], OF_ANY_PRODUCTS);
    for (int i = 0; i < rows.n_rows; i += 2) streams_on(both_types[t], rows.row[i].name, i / 2 % 2 ? FOR_ALL : NO_MARKS);
    rows_close(&rows);
  }
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

enum { N_REPLAYS = 8 };

static void begin_capture(const struct lane *x) { GPU(cudaStreamBeginCapture(x->stream, cudaStreamCaptureModeGlobal)); }
static cudaGraphExec_t end_capture(const struct lane *x) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  GPU(cudaStreamEndCapture(x->stream, &graph));
  GPU(cudaGraphInstantiate(&exec, graph, 0));
  GPU(cudaGraphDestroy(graph));
  return exec;
}

/* New numbers for A, or B, behind what the stream has to do. */
static void renew(const struct lane *x, void *to, int64_t n, enum marks marks) {
  const size_t n_floats = (size_t)n * (size_t)n_parts(x->d.type_a);
  float *host = new_floats(n_floats, marks, 4);
  GPU(cudaMemcpyAsync(to, host, n_floats * sizeof *host, cudaMemcpyHostToDevice, x->stream));
  GPU(cudaStreamSynchronize(x->stream));
  free(host);
}

/* The graph's result, and that of the product by itself. */
static void check_replay(const struct lane *x, cudaGraphExec_t exec, const char *what, int replay) {
  struct lane plain = *x;
  plain.d.packed_a = plain.d.packed_b = NULL;
  GPU(cudaMemsetAsync(x->c, 0xff, M * N * type_bytes(x->d.type_c), x->stream));
  GPU(cudaGraphLaunch(exec, x->stream));
  const unsigned long long by_graph = result(x);
  begin(&plain);
  CHECK(by_graph == result(&plain), "%s: replay %d: other bits than the product by itself", what, replay);
}

/* Packing and a product in one graph: which packs what stands in B then. */
static void packing_captured(wsgemm_type type, const char *row) {
  void *b = new_numbers(type, K * N, NO_MARKS, 0);
  struct lane x = lane_new(type, row, b, NO_MARKS);
  struct packing p = packing_new(x.h, &x.d, true);
  begin_capture(&x);
  pack_into(&p, x.h, &x.d, true);
  x.d.packed_b = p.record;
  CHECK(wsgemm_gemm(x.h, &x.d) == WSGEMM_SUCCESS, "captured: %s", wsgemm_last_error());
  cudaGraphExec_t exec = end_capture(&x);
  destroy_record(&p); /* calls that have returned do not need it */
  for (int replay = 0; replay < N_REPLAYS; replay++) {
    renew(&x, b, K * N, (enum marks)(replay % 3)), renew(&x, x.a, M * K, (enum marks)(replay / 3));
    check_replay(&x, exec, row, replay);
  }
  check_guards(&p, row);
  GPU(cudaGraphExecDestroy(exec));
  gpu_free(p.memory);
  lane_free(&x);
  gpu_free(b);
}

/* Products in a graph, with an operand packed before. */
static void products_captured(wsgemm_type type, const char *row, enum marks marks_of_b) {
  void *b = new_numbers(type, K * N, marks_of_b, 4);
  struct lane x = lane_new(type, row, b, NO_MARKS);
  struct packing p = pack(x.h, &x.d, true);
  x.d.packed_b = p.record;
  begin_capture(&x);
  for (int i = 0; i < 2; i++) CHECK(wsgemm_gemm(x.h, &x.d) == WSGEMM_SUCCESS, "captured: %s", wsgemm_last_error());
  cudaGraphExec_t exec = end_capture(&x);
  for (int replay = 0; replay < N_REPLAYS; replay++) {
    renew(&x, x.a, M * K, (enum marks)(replay % 3));
    check_replay(&x, exec, row, replay);
  }
  check_untouched(&p, row);
  GPU(cudaGraphExecDestroy(exec));
  unpack(&p);
  lane_free(&x);
  gpu_free(b);
}

static void captured(void) {
  rng = check_random_from(214);
  for (int t = 0; t < 2; t++) {
    open_sliced(both_types[t], OF_ANY_PRODUCTS);
    for (int i = 0; i < rows.n_rows; i++) {
      packing_captured(both_types[t], rows.row[i].name);
      products_captured(both_types[t], rows.row[i].name, (enum marks)(i % 3));
    }
    rows_close(&rows);
  }
}

/* ---- Batches --------------------------------------------------------------------------------- */

enum { COUNT = 5, BATCH_SIDE = 150, BATCH_K = 200, BATCH_LD = 210 };

/* Between the products of a batch: an operand for all, one behind the other, or before it. */
static int64_t drawn_stride(void) { return (BATCH_LD * BATCH_LD + drawn(0, 5)) * drawn(-1, 1); }

static void batch_on(int row, const struct matrices *x, unsigned char *few) {
  const wsgemm_type type = rows.type;
  wsgemm_handle *h = rows.handle[row];
  wsgemm_gemm_desc d = drawn_desc(type, drawn(65, BATCH_SIDE), drawn(65, BATCH_SIDE), drawn(128, BATCH_K)), two;
  size_t few_bytes = 0;
  char text[DESCRIPTION_BYTES];
  d.lda += drawn(0, 5), d.ldb += drawn(0, 5), d.ldc += drawn(0, 5);
  d.batch_count = COUNT, d.stride_a = drawn_stride(), d.stride_b = drawn_stride(), d.stride_c = BATCH_LD * BATCH_LD;
  d.a = x->a - (d.stride_a < 0 ? (COUNT - 1) * d.stride_a * (int64_t)x->element : 0);
  d.b = x->b - (d.stride_b < 0 ? (COUNT - 1) * d.stride_b * (int64_t)x->element : 0), d.c = x->c;
  two = d, two.batch_count = 2;
  CHECK(wsgemm_get_workspace_size(h, &two, &few_bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  const wsgemm_gemm_desc plain = d;
  CHECK(strcmp(kernel_of(h, &plain), rows.row[row].name) == 0, "%s in place of %s", kernel_of(h, &plain), rows.row[row].name);
  const unsigned long long expected = digest_of(h, &plain, x);
  struct packing a = pack(h, &plain, false), b = pack(h, &plain, true);
  for (int which = 1; which < 4; which++)
    for (int in_few = 0; in_few < 2; in_few++) {
      d.packed_a = which & 1 ? a.record : NULL, d.packed_b = which & 2 ? b.record : NULL;
      workspace_of(h, in_few ? few : NULL, in_few ? few_bytes : 0);
      CHECK(digest_of(h, &d, x) == expected, "%s: %s, %d products %lld, %lld apart, packed: %d%s: other bits", rows.row[row].name,
            gemm_describe(&d, text), (int)COUNT, (long long)d.stride_a, (long long)d.stride_b, which,
            in_few ? ", in little memory" : "");
    }
  workspace_of(h, NULL, 0);
  check_untouched(&a, rows.row[row].name), check_untouched(&b, rows.row[row].name);
  unpack(&a), unpack(&b);
}

static void batches(void) {
  enum { FEW_BYTES = 16 << 20, N_NUMBERS = (COUNT + 1) * (BATCH_LD * BATCH_LD + 8) };
  rng = check_random_from(215);
  unsigned char *few = gpu_alloc(FEW_BYTES);
  for (int t = 0; t < 2; t++) {
    const wsgemm_type type = both_types[t];
    struct matrices x = {.element = type_bytes(type), .c_bytes = N_NUMBERS * type_bytes(type)};
    x.a = new_numbers(type, N_NUMBERS, FOR_ALL, 9), x.b = new_numbers(type, N_NUMBERS, FOR_THREE, 9);
    x.c_before = new_numbers(type, N_NUMBERS, NO_MARKS, 0), x.c = gpu_alloc(x.c_bytes);
    open_sliced(type, OF_ANY_PRODUCTS);
    for (int i = 0; i < rows.n_rows; i++)
      for (int turn = 0; turn < 6 / check_scale() + 1; turn++) batch_on(i, &x, few);
    rows_close(&rows);
    matrices_free(&x);
  }
  gpu_free(few);
}

/* ---- Gain ------------------------------------------------------------------------------------ */

/* Components of some columns of C = A B, against sums of exact products in double. */
static void judge_some_columns(const wsgemm_gemm_desc *d, const float *a, const float *b, const float *c) {
  enum { N_COLUMNS = 16 };
  const int parts = n_parts(d->type_a);
  const double gamma = gamma_of(d->k);
  double worst = 0;
  for (int x = 0; x < N_COLUMNS; x++) {
    const int64_t j = x == 0 ? 0 : x == 1 ? d->n - 1 : drawn(0, d->n - 1);
    for (int64_t i = 0; i < d->m; i++) {
      double sum[2] = {0, 0}, magnitude = 0;
      for (int64_t p = 0; p < d->k; p++) {
        const float *of_a = a + (i + p * d->lda) * parts, *of_b = b + (p + j * d->ldb) * parts;
        const double a_re = of_a[0], a_im = parts == 2 ? of_a[1] : 0, b_re = of_b[0], b_im = parts == 2 ? of_b[1] : 0;
        sum[0] += a_re * b_re - a_im * b_im, sum[1] += a_re * b_im + a_im * b_re;
        magnitude += (fabs(a_re) + fabs(a_im)) * (fabs(b_re) + fabs(b_im));
      }
      for (int part = 0; part < parts; part++) {
        const double error = fabs(c[(i + j * d->ldc) * parts + part] - sum[part]) / (gamma * magnitude);
        worst = error <= worst ? worst : error; /* NaN stays */
      }
    }
  }
  CHECK(worst <= 1, "type %c: error/bound %.3g", type_letter(d->type_a), worst);
}

/* Flat, as a layer's product with its weights: cutting the weights costs more than slices save,
 * unless it is done already. */
static void gain_of(wsgemm_type type, int64_t m, int64_t n, int64_t k) {
  const size_t parts = (size_t)n_parts(type), a_floats = (size_t)(m * k) * parts, b_floats = (size_t)(k * n) * parts,
               c_floats = (size_t)(m * n) * parts;
  float *host_a = new_floats(a_floats, NO_MARKS, 0), *host_b = new_floats(b_floats, NO_MARKS, 0),
        *host_c = malloc(c_floats * sizeof *host_c);
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, k);
  wsgemm_handle *h = NULL;
  REQUIRE(host_c && wsgemm_create(&h) == WSGEMM_SUCCESS, "memory, or handle");
  void *const a = gpu_copy(host_a, a_floats * sizeof *host_a), *const b = gpu_copy(host_b, b_floats * sizeof *host_b),
              *const c = gpu_alloc(c_floats * sizeof *host_c);
  d.a = a, d.b = b, d.c = c;
  CHECK(!row_is_of(kernel_of(h, &d), OF_THREE_PRODUCTS), "without a packed operand: %s", kernel_of(h, &d));
  struct packing p = packing_new(h, &d, true);
  pack_into(&p, h, &d, true);
  d.packed_b = p.record;
  CHECK(row_is_of(kernel_of(h, &d), OF_THREE_PRODUCTS) && explained_is(h, &d, "packed", "b"), "with a packed operand: %s",
        kernel_of(h, &d));
  for (int turn = 0; turn < 2; turn++) {
    GPU(cudaMemset(c, 0xff, c_floats * sizeof *host_c));
    CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaMemcpy(host_c, c, c_floats * sizeof *host_c, cudaMemcpyDeviceToHost));
    judge_some_columns(&d, host_a, host_b, host_c);
    d.packed_b = NULL; /* within the same bound */
  }
  unpack(&p);
  gpu_free(a), gpu_free(b), gpu_free(c);
  free(host_a), free(host_b), free(host_c);
  wsgemm_destroy(h);
}

static void gain(void) {
  rng = check_random_from(216);
  gain_of(WSGEMM_F32, 64, 8192, 8192);
  gain_of(WSGEMM_C32, 32, 8192, 4096);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void expect_refusal(wsgemm_handle *h, const wsgemm_gemm_desc *d, const struct matrices *x, const char *words) {
  GPU(cudaMemset(x->c, 0x5a, x->c_bytes));
  const unsigned long long before = gpu_digest(x->c, x->c_bytes);
  const wsgemm_status status = wsgemm_gemm(h, d);
  CHECK(status == WSGEMM_INVALID_VALUE && strstr(wsgemm_last_error(), "packed_b") && strstr(wsgemm_last_error(), words),
        "%s: %s (%s)", words, wsgemm_status_name(status), wsgemm_last_error());
  CHECK(gpu_digest(x->c, x->c_bytes) == before, "%s: C was written", words);
}

static void mismatch(void) {
  static _Alignas(256) char host[256];
  rng = check_random_from(217);
  struct matrices x = matrices_new(WSGEMM_F32, NO_MARKS);
  open_sliced(WSGEMM_F32, OF_THREE_PRODUCTS);
  wsgemm_handle *h = rows.handle[0];
  wsgemm_gemm_desc good = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 400, 256), d;
  wsgemm_packed *none = NULL;
  good.a = x.a, good.b = x.b, good.c = x.c, good.ldb = 410;
  struct packing p = pack(h, &good, true);
  good.packed_b = p.record;
  d = good, d.b = x.b + 16;
  expect_refusal(h, &d, &x, "data");
  d = good, d.ldb = 411;
  expect_refusal(h, &d, &x, "ld is");
  d = good, d.k = 255;
  expect_refusal(h, &d, &x, "k is");
  d = good, d.n = 399;
  expect_refusal(h, &d, &x, "n is");
  d = good, d.transb = WSGEMM_TRANS;
  expect_refusal(h, &d, &x, "transposition");
  d = good, d.batch_count = 2, d.stride_b = 256, d.stride_c = 150000;
  expect_refusal(h, &d, &x, "number of products");
  CHECK(wsgemm_prepack(h, &good, WSGEMM_OPERAND_B, p.memory + PACKING_GUARD, p.bytes - 1, &none) == WSGEMM_WORKSPACE_TOO_SMALL &&
            wsgemm_prepack(h, &good, WSGEMM_OPERAND_B, p.memory + PACKING_GUARD + 128, p.bytes, &none) == WSGEMM_INVALID_VALUE &&
            wsgemm_prepack(h, &good, WSGEMM_OPERAND_B, host, p.bytes, &none) == WSGEMM_INVALID_POINTER && !none,
        "memory that will not do: %s", wsgemm_last_error());
  d = good, d.b = host;
  CHECK(wsgemm_prepack(h, &d, WSGEMM_OPERAND_B, p.memory + PACKING_GUARD, p.bytes, &none) == WSGEMM_NOT_SUPPORTED && !none,
        "host memory: %s", wsgemm_last_error());
  GPU(cudaDeviceSynchronize());
  check_untouched(&p, "refused");
  CHECK(wsgemm_gemm(h, &good) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaDeviceSynchronize());
  unpack(&p);
  rows_close(&rows);
  matrices_free(&x);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"same_bits", same_bits}, {"marked", marked},     {"tf32", tf32},
                                            {"streams", streams},     {"captured", captured}, {"batches", batches},
                                            {"gain", gain},           {"mismatch", mismatch}};
  gpu_open_for_slices(WSGEMM_F32);
  return check_main("gpu_packed", cases, sizeof cases / sizeof cases[0], argc, argv);
}
