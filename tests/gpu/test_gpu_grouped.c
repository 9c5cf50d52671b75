/* test_gpu_grouped.c - wsgemm_gemm_grouped with offsets in device memory: random partitions, forms, types,
 * scalars and epilogues have the bits of each group's product alone in invariant mode, by wsgemm_gemm; what
 * lies behind the groups, and round the matrices, is neither read (NaN) nor written; offsets that make no
 * sense leave their group out; graphs are replayed with other offsets. */
#include "gpu.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 1024, GUARD = 64 }; /* elements before and behind what a call may touch */
static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

/* A matrix's memory here and on the device. */
struct buffer {
  size_t bytes;
  unsigned char *host, *device;
};

enum { A, B, C, BIAS, RESIDUAL, N_BUFFERS };
struct grouped_case {
  wsgemm_grouped_desc d; /* pointers of the device; offsets in host memory */
  struct buffer buffer[N_BUFFERS];
  int64_t ends[MOST_GROUPS];
  int32_t narrow_ends[MOST_GROUPS];
  void *device_ends;
};

static uint16_t random_half(wsgemm_type type) {
  const float x = (float)check_random_unit(&rng);
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return type == WSGEMM_F16 ? (uint16_t)((bits & 0x83ffu) | 0x3400u) : (uint16_t)(bits >> 16);
}

/* n random elements from a place of 16 bytes on, NaN round them. */
static void *buffer_fill(struct buffer *x, wsgemm_type type, int64_t n) {
  const size_t bytes = type_bytes(type);
  x->bytes = (size_t)(n + 2 * GUARD) * bytes;
  x->host = malloc(x->bytes);
  REQUIRE(x->host, "no memory");
  memset(x->host, 0xff, x->bytes);
  for (int64_t i = GUARD; i < n + GUARD; i++) {
    const uint16_t half = random_half(type);
    const float single = (float)check_random_unit(&rng);
    if (type == WSGEMM_F32)
      memcpy(x->host + (size_t)i * 4, &single, 4);
    else
      memcpy(x->host + (size_t)i * 2, &half, 2);
  }
  x->device = gpu_copy(x->host, x->bytes);
  return x->device + GUARD * bytes;
}

static void case_free(struct grouped_case *g) {
  for (int i = 0; i < N_BUFFERS; i++)
    if (g->buffer[i].host) free(g->buffer[i].host), gpu_free(g->buffer[i].device);
  gpu_free(g->device_ends);
}

/* Many empty, one huge, all one, and anything. */
static int64_t draw_size(int kind, int64_t group, int64_t most) {
  switch (kind) {
  case 0:
    return drawn(0, 3) ? 0 : drawn(0, most);
  case 1:
    return group == 1 ? 12 * most : drawn(0, 2);
  case 2:
    return 1;
  default:
    return drawn(0, most);
  }
}

static int64_t draw_ends(struct grouped_case *g, int64_t most) {
  const int kind = (int)drawn(0, 3);
  int64_t total = 0;
  for (int64_t i = 0; i < g->d.group_count; i++) {
    g->ends[i] = total += draw_size(kind, i, most);
    g->narrow_ends[i] = (int32_t)total;
  }
  const bool is_narrow = g->d.index_bytes == 4;
  g->d.offsets = is_narrow ? (const void *)g->narrow_ends : g->ends;
  g->device_ends = gpu_copy(g->d.offsets, (size_t)g->d.group_count * (size_t)g->d.index_bytes);
  return total + drawn(0, 3);
}

static int64_t eights(int64_t most) { return 8 * drawn(1, most / 8); }

/* What the caller has as rows of C (its lines in the kernel's eyes) and what is contiguous in C. */
static void make_matrices(struct grouped_case *g, bool of_k, bool b_by_k, int64_t total) {
  wsgemm_grouped_desc *d = &g->d;
  const int64_t across = eights(600), other = eights(400), n = d->group_count, pad = 8 * drawn(0, 2);
  struct buffer *x = g->buffer;
  d->m = of_k ? other : total, d->n = across, d->k = of_k ? total : other;
  d->ldc = across + pad, d->stride_c = of_k ? other * d->ldc + pad : 0;
  d->lda = other + pad;
  d->ldb = b_by_k ? other + pad : across + pad;
  d->stride_b = of_k ? 0 : (b_by_k ? across : other) * d->ldb + pad;
  d->transa = of_k ? WSGEMM_TRANS : WSGEMM_NO_TRANS, d->transb = b_by_k ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
  d->a = buffer_fill(&x[A], d->type_a, total * d->lda);
  d->b = buffer_fill(&x[B], d->type_b, of_k ? total * d->ldb : n * d->stride_b);
  const int64_t n_c = of_k ? n * d->stride_c : total * d->ldc;
  d->c = buffer_fill(&x[C], d->type_c, n_c);
  const int64_t end = g->ends[n - 1]; /* behind it lies what nobody may read */
  memset(x[A].host + (size_t)(GUARD + end * d->lda) * 2, 0xff, (size_t)((total - end) * d->lda) * 2);
  if (of_k) memset(x[B].host + (size_t)(GUARD + end * d->ldb) * 2, 0xff, (size_t)((total - end) * d->ldb) * 2);
  gpu_put(x[A].device, x[A].host, x[A].bytes), gpu_put(x[B].device, x[B].host, x[B].bytes);
}

static void add_steps(struct grouped_case *g, bool of_k, int64_t total) {
  wsgemm_grouped_desc *d = &g->d;
  d->alpha.s = drawn(0, 7) == 0 ? 0 : drawn(0, 1) ? 1 : -1.25f, d->beta.s = drawn(0, 1) ? 0.75f : 0;
  d->epilogue = (wsgemm_epilogue)drawn(0, 4), d->out_scale = drawn(0, 1) ? 1 : 0.5;
  if (drawn(0, 1)) {
    d->bias_per = (wsgemm_bias)drawn(0, 1), d->type_bias = drawn(0, 1) || d->type_c == WSGEMM_F32 ? WSGEMM_F32 : d->type_c;
    const bool per_row = d->bias_per == WSGEMM_BIAS_PER_ROW;
    const int64_t length = per_row ? d->m : d->n;
    d->stride_bias = per_row && !of_k ? 0 : length;
    d->bias = buffer_fill(&g->buffer[BIAS], d->type_bias, per_row && !of_k ? total : length * d->group_count);
  }
  if (drawn(0, 2)) return;
  d->ld_residual = d->ldc + 8, d->stride_residual = of_k ? d->m * d->ld_residual : 0;
  d->residual = buffer_fill(&g->buffer[RESIDUAL], d->type_c, of_k ? d->group_count * d->stride_residual : total * d->ld_residual);
}

/* The same as a column-major call. */
static void exchange(wsgemm_grouped_desc *d) {
  wsgemm_grouped_desc t = *d;
  t.layout = WSGEMM_COL_MAJOR, t.transa = d->transb, t.transb = d->transa, t.m = d->n, t.n = d->m;
  t.a = d->b, t.lda = d->ldb, t.stride_a = d->stride_b, t.b = d->a, t.ldb = d->lda, t.stride_b = d->stride_a;
  if (d->ragged == WSGEMM_RAGGED_M) t.ragged = WSGEMM_RAGGED_N;
  t.bias_per = d->bias_per == WSGEMM_BIAS_PER_ROW ? WSGEMM_BIAS_PER_COLUMN : WSGEMM_BIAS_PER_ROW;
  *d = t;
}

static void case_draw(struct grouped_case *g, int64_t n_groups, int64_t most) {
  memset(g, 0, sizeof *g);
  wsgemm_grouped_desc *d = &g->d;
  *d = (wsgemm_grouped_desc)WSGEMM_GROUPED_DESC_INIT;
  const bool of_k = drawn(0, 1);
  d->layout = WSGEMM_ROW_MAJOR, d->ragged = of_k ? WSGEMM_RAGGED_K : WSGEMM_RAGGED_M;
  d->type_a = d->type_b = drawn(0, 1) ? WSGEMM_F16 : WSGEMM_BF16, d->type_scalar = WSGEMM_F32;
  d->type_c = drawn(0, 3) ? d->type_a : WSGEMM_F32;
  d->group_count = n_groups, d->index_bytes = drawn(0, 1) ? 4 : 8, d->alpha.s = 1;
  const int64_t total = draw_ends(g, most);
  make_matrices(g, of_k, !of_k && drawn(0, 1), total);
  if (drawn(0, 1)) add_steps(g, of_k, total);
  if (drawn(0, 1)) exchange(d);
}

static int64_t end_of(const struct grouped_case *g, int64_t group) { return group < 0 ? 0 : g->ends[group]; }

static const void *moved(const void *data, int64_t n, wsgemm_type type) {
  return data ? (const char *)data + n * (int64_t)type_bytes(type) : NULL;
}

/* The product of one group, for wsgemm_gemm. */
static wsgemm_gemm_desc alone_of(const struct grouped_case *g, int64_t i) {
  const wsgemm_grouped_desc *d = &g->d;
  const bool of_m = d->ragged == WSGEMM_RAGGED_M, of_n = d->ragged == WSGEMM_RAGGED_N, of_k = d->ragged == WSGEMM_RAGGED_K;
  const int64_t begin = end_of(g, i - 1), length = end_of(g, i) - begin;
  wsgemm_gemm_desc s = WSGEMM_GEMM_DESC_INIT;
  s.layout = d->layout, s.transa = d->transa, s.transb = d->transb;
  s.type_a = s.type_b = d->type_a, s.type_c = d->type_c, s.type_scalar = d->type_scalar, s.alpha = d->alpha, s.beta = d->beta;
  s.m = of_m ? length : d->m, s.n = of_n ? length : d->n, s.k = of_k ? length : d->k;
  s.lda = d->lda, s.ldb = d->ldb, s.ldc = d->ldc;
  s.a = moved(d->a, of_n ? i * d->stride_a : begin * d->lda, d->type_a);
  s.b = moved(d->b, of_m ? i * d->stride_b : begin * d->ldb, d->type_b);
  const int64_t to = of_k ? i * d->stride_c : begin * d->ldc;
  s.c = (char *)d->c + to * (int64_t)type_bytes(d->type_c);
  s.epilogue = d->epilogue, s.bias_per = d->bias_per, s.type_bias = d->type_bias, s.out_scale = d->out_scale;
  const bool bias_is_ragged = d->bias_per == WSGEMM_BIAS_PER_ROW ? of_m : of_n;
  s.bias = moved(d->bias, i * d->stride_bias + (bias_is_ragged ? begin : 0), d->type_bias);
  s.residual = moved(d->residual, of_k ? i * d->stride_residual : begin * d->ld_residual, d->type_c);
  s.ld_residual = d->ld_residual;
  return s;
}

static unsigned char *c_of(const struct grouped_case *g) {
  const struct buffer *c = &g->buffer[C];
  unsigned char *after = malloc(c->bytes);
  REQUIRE(after, "no memory");
  GPU(cudaDeviceSynchronize());
  GPU(cudaMemcpy(after, c->device, c->bytes, cudaMemcpyDeviceToHost));
  return after;
}

/* C after the call, whose offsets are these; C is as it was before it. */
static unsigned char *run(struct grouped_case *g, wsgemm_handle *handle, const void *offsets) {
  wsgemm_grouped_desc d = g->d;
  d.offsets = offsets;
  gpu_put(g->buffer[C].device, g->buffer[C].host, g->buffer[C].bytes);
  const wsgemm_status status = wsgemm_gemm_grouped(handle, &d);
  CHECK(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return c_of(g);
}

/* C of the groups that make sense, one after the other. */
static unsigned char *run_alone(struct grouped_case *g, wsgemm_handle *invariant) {
  const wsgemm_grouped_desc *d = &g->d;
  const int64_t total = d->ragged == WSGEMM_RAGGED_K ? d->k : d->ragged == WSGEMM_RAGGED_M ? d->m : d->n;
  gpu_put(g->buffer[C].device, g->buffer[C].host, g->buffer[C].bytes);
  for (int64_t i = 0; i < d->group_count; i++) {
    if (end_of(g, i - 1) < 0 || end_of(g, i) < end_of(g, i - 1) || end_of(g, i) > total) continue;
    const wsgemm_gemm_desc s = alone_of(g, i);
    const wsgemm_status status = wsgemm_gemm(invariant, &s);
    CHECK(status == WSGEMM_SUCCESS, "group %lld: %s", (long long)i, wsgemm_last_error());
  }
  return c_of(g);
}

static wsgemm_handle *invariant_handle(void) {
  wsgemm_handle *handle = NULL;
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS && wsgemm_set_invariant(handle, 1) == WSGEMM_SUCCESS, "handle");
  return handle;
}

/* Whether this GPU has the kernel; else it must say so. */
static bool is_built_in(void) {
  struct grouped_case g;
  case_draw(&g, 2, 20);
  g.d.offsets = g.device_ends;
  const wsgemm_status status = wsgemm_gemm_grouped(NULL, &g.d);
  GPU(cudaDeviceSynchronize());
  case_free(&g);
  if (status == WSGEMM_NOT_SUPPORTED) CHECK(strstr(wsgemm_last_error(), "compute capability 9.0"), "%s", wsgemm_last_error());
  return status != WSGEMM_NOT_SUPPORTED;
}

static void check_same(const struct grouped_case *g, unsigned char *got, const unsigned char *expected, const char *what) {
  const wsgemm_grouped_desc *d = &g->d;
  size_t first = 0;
  while (first < g->buffer[C].bytes && got[first] == expected[first]) first++;
  CHECK(first == g->buffer[C].bytes,
        "%s: byte %zu of %zu: %lld groups, ragged %d, m %lld, n %lld, k %lld, types %d %d, beta %g, epilogue %d", what, first,
        g->buffer[C].bytes, (long long)d->group_count, (int)d->ragged, (long long)d->m, (long long)d->n, (long long)d->k,
        (int)d->type_a, (int)d->type_c, (double)d->beta.s, (int)d->epilogue);
  free(got);
}

static void compare(struct grouped_case *g, wsgemm_handle *invariant, bool is_hostile) {
  unsigned char *expected = run_alone(g, invariant);
  check_same(g, run(g, NULL, g->device_ends), expected, "offsets on the device");
  if (!is_hostile) check_same(g, run(g, invariant, g->d.offsets), expected, "offsets in host memory");
  free(expected);
}

static void partitions(void) {
  rng = check_random_from(230);
  if (!is_built_in()) return;
  wsgemm_handle *invariant = invariant_handle();
  for (int turn = 0; turn < 120 / check_scale() + 20; turn++) {
    struct grouped_case g;
    case_draw(&g, drawn(0, 4) ? drawn(1, 40) : drawn(100, 300), drawn(0, 2) ? 60 : 300);
    compare(&g, invariant, false);
    case_free(&g);
  }
  wsgemm_destroy(invariant);
}

static void most_groups(void) {
  rng = check_random_from(231);
  if (!is_built_in()) return;
  wsgemm_handle *invariant = invariant_handle();
  for (int turn = 0; turn < 4; turn++) {
    struct grouped_case g;
    case_draw(&g, MOST_GROUPS, 12);
    compare(&g, invariant, false);
    case_free(&g);
  }
  wsgemm_destroy(invariant);
}

/* ---- offsets that make no sense ---------------------------------------------------------------- */

/* An end beyond everything, or before its beginning, spoils its own group and the next one. */
static void spoil(struct grouped_case *g, int64_t total) {
  for (int64_t i = 0; i + 1 < g->d.group_count; i += drawn(2, 5)) {
    const int64_t bad[] = {-1, -7, INT32_MIN, total + 1, INT32_MAX};
    g->ends[i] = bad[drawn(0, 4)];
    g->narrow_ends[i] = (int32_t)g->ends[i];
  }
}

static void hostile(void) {
  rng = check_random_from(232);
  if (!is_built_in()) return;
  wsgemm_handle *invariant = invariant_handle();
  for (int turn = 0; turn < 40; turn++) {
    struct grouped_case g;
    case_draw(&g, drawn(2, 12), 100);
    const wsgemm_grouped_desc *d = &g.d;
    spoil(&g, d->ragged == WSGEMM_RAGGED_K ? d->k : d->ragged == WSGEMM_RAGGED_M ? d->m : d->n);
    gpu_put(g.device_ends, d->offsets, (size_t)d->group_count * (size_t)d->index_bytes);
    compare(&g, invariant, true);
    case_free(&g);
  }
  wsgemm_destroy(invariant);
}

/* ---- graphs ------------------------------------------------------------------------------------ */

static void graph(void) {
  rng = check_random_from(233);
  if (!is_built_in()) return;
  wsgemm_handle *invariant = invariant_handle(), *handle = NULL;
  struct grouped_case g;
  case_draw(&g, 24, 90);
  const wsgemm_grouped_desc *d = &g.d;
  const int64_t end = g.ends[d->group_count - 1];
  cudaStream_t stream;
  cudaGraph_t captured;
  cudaGraphExec_t ready;
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS && wsgemm_set_stream(handle, stream) == WSGEMM_SUCCESS, "handle");
  wsgemm_grouped_desc on_device = *d;
  on_device.offsets = g.device_ends;
  GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const wsgemm_status status = wsgemm_gemm_grouped(handle, &on_device);
  GPU(cudaStreamEndCapture(stream, &captured));
  REQUIRE(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaGraphInstantiate(&ready, captured, 0));
  for (int turn = 0; turn < 10; turn++) {
    for (int64_t i = 0, at = 0; i < d->group_count; i++) {
      at = i + 1 == d->group_count ? end : drawn(at, at + (end - at) / 4);
      g.ends[i] = at, g.narrow_ends[i] = (int32_t)at;
    }
    gpu_put(g.device_ends, d->offsets, (size_t)d->group_count * (size_t)d->index_bytes);
    unsigned char *expected = run_alone(&g, invariant);
    gpu_put(g.buffer[C].device, g.buffer[C].host, g.buffer[C].bytes);
    GPU(cudaGraphLaunch(ready, stream));
    GPU(cudaStreamSynchronize(stream));
    check_same(&g, c_of(&g), expected, "a graph");
    free(expected);
  }
  GPU(cudaGraphExecDestroy(ready));
  GPU(cudaGraphDestroy(captured));
  wsgemm_destroy(handle), wsgemm_destroy(invariant);
  GPU(cudaStreamDestroy(stream));
  case_free(&g);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {
      {"partitions", partitions}, {"most_groups", most_groups}, {"hostile", hostile}, {"graph", graph}};
  gpu_open();
  return check_main("gpu_grouped", cases, sizeof cases / sizeof cases[0], argc, argv);
}
