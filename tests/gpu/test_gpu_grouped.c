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
  d->alpha.s = drawn(0, 1) ? 1 : -1.25f, d->beta.s = drawn(0, 1) ? 0.75f : 0;
  d->epilogue = (wsgemm_epilogue)drawn(0, 4), d->out_scale = drawn(0, 1) ? 1 : 0.5;
  if (drawn(0, 1)) {
    d->bias_per = (wsgemm_bias)drawn(0, 1), d->type_bias = drawn(0, 1) ? WSGEMM_F32 : d->type_a;
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

/* C after the call, whose offsets are these; C is as it was before it. */
static unsigned char *run(struct grouped_case *g, wsgemm_handle *handle, const void *offsets) {
  struct buffer *c = &g->buffer[C];
  wsgemm_grouped_desc d = g->d;
  d.offsets = offsets;
  gpu_put(c->device, c->host, c->bytes);
  const wsgemm_status status = wsgemm_gemm_grouped(handle, &d);
  CHECK(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaDeviceSynchronize());
  unsigned char *after = malloc(c->bytes);
  REQUIRE(after, "no memory");
  GPU(cudaMemcpy(after, c->device, c->bytes, cudaMemcpyDeviceToHost));
  return after;
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

static void compare(struct grouped_case *g, wsgemm_handle *alone) {
  unsigned char *got = run(g, NULL, g->device_ends), *expected = run(g, alone, g->d.offsets);
  const wsgemm_grouped_desc *d = &g->d;
  size_t first = 0;
  while (first < g->buffer[C].bytes && got[first] == expected[first]) first++;
  CHECK(first == g->buffer[C].bytes, "byte %zu of %zu: %lld groups, ragged %d, m %lld, n %lld, k %lld, types %d %d, beta %g, epilogue %d",
        first, g->buffer[C].bytes, (long long)d->group_count, d->ragged, (long long)d->m, (long long)d->n, (long long)d->k, d->type_a,
        d->type_c, (double)d->beta.s, d->epilogue);
  free(got), free(expected);
}

static void partitions(void) {
  rng = check_random_from(230);
  if (!is_built_in()) return;
  wsgemm_handle *alone = invariant_handle();
  for (int turn = 0; turn < 120 / check_scale() + 20; turn++) {
    struct grouped_case g;
    case_draw(&g, drawn(0, 4) ? drawn(1, 40) : drawn(100, 300), drawn(0, 2) ? 60 : 300);
    compare(&g, alone);
    case_free(&g);
  }
  wsgemm_destroy(alone);
}

static void most_groups(void) {
  rng = check_random_from(231);
  if (!is_built_in()) return;
  wsgemm_handle *alone = invariant_handle();
  for (int turn = 0; turn < 4; turn++) {
    struct grouped_case g;
    case_draw(&g, MOST_GROUPS, 12);
    compare(&g, alone);
    g.d.group_count++, g.d.offsets = g.device_ends;
    CHECK(wsgemm_gemm_grouped(NULL, &g.d) == WSGEMM_NOT_SUPPORTED, "%d groups", MOST_GROUPS + 1);
    case_free(&g);
  }
  wsgemm_destroy(alone);
}

/* ---- offsets that make no sense ---------------------------------------------------------------- */

/* Replaces some ends so that the groups left, which the host is told of as gaps between empty ones, do not overlap:
 * an end beyond everything, or before its beginning, spoils its own group and the next one. */
static void spoil(struct grouped_case *g, int64_t total) {
  for (int64_t i = 0; i + 1 < g->d.group_count; i += drawn(2, 5)) {
    const int64_t bad[] = {-1, -7, INT32_MIN, total + 1, INT32_MAX};
    g->ends[i] = bad[drawn(0, 4)];
    g->narrow_ends[i] = (int32_t)g->ends[i];
  }
}

/* C of the good groups alone, each by wsgemm_gemm_grouped as one group. */
static unsigned char *run_good_ones(struct grouped_case *g, wsgemm_handle *handle, int64_t total) {
  const wsgemm_grouped_desc all = g->d;
  struct buffer *c = &g->buffer[C];
  unsigned char *before = malloc(c->bytes), *after = NULL;
  memcpy(before, c->host, c->bytes);
  for (int64_t i = 0; i < all.group_count; i++) {
    const int64_t begin = i ? g->ends[i - 1] : 0, end = g->ends[i];
    if (begin < 0 || end < begin || end > total) continue;
    int64_t ends[MOST_GROUPS];
    for (int64_t j = 0; j < all.group_count; j++) ends[j] = j < i ? begin : end;
    /* the groups before it are merged into the first one: of ragged k all but this one get their old C back */
    g->d.index_bytes = 8;
    free(after);
    after = run(g, handle, ends);
    const size_t one = (size_t)type_bytes(all.type_c);
    const bool of_k = all.ragged == WSGEMM_RAGGED_K;
    const size_t from = (size_t)(of_k ? GUARD + i * all.stride_c : GUARD + begin * all.ldc) * one;
    const size_t bytes = (size_t)(of_k ? all.stride_c : (end - begin) * all.ldc) * one;
    memcpy(before + from, after + from, bytes);
  }
  free(after);
  g->d = all;
  return before;
}

static void hostile(void) {
  rng = check_random_from(232);
  if (!is_built_in()) return;
  wsgemm_handle *alone = invariant_handle();
  for (int turn = 0; turn < 40; turn++) {
    struct grouped_case g;
    case_draw(&g, drawn(2, 12), 100);
    const wsgemm_grouped_desc *d = &g.d;
    const int64_t total = d->ragged == WSGEMM_RAGGED_K ? d->k : d->ragged == WSGEMM_RAGGED_M ? d->m : d->n;
    spoil(&g, total);
    gpu_put(g.device_ends, d->offsets, (size_t)d->group_count * (size_t)d->index_bytes);
    unsigned char *got = run(&g, NULL, g.device_ends), *expected = run_good_ones(&g, alone, total);
    CHECK(memcmp(got, expected, g.buffer[C].bytes) == 0, "turn %d: ragged %d, %lld groups", turn, d->ragged, (long long)d->group_count);
    free(got), free(expected);
    case_free(&g);
  }
  wsgemm_destroy(alone);
}

/* ---- graphs ------------------------------------------------------------------------------------ */

static void graph(void) {
  rng = check_random_from(233);
  if (!is_built_in()) return;
  wsgemm_handle *alone = invariant_handle(), *handle = NULL;
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
    unsigned char *expected = run(&g, alone, d->offsets), *got = malloc(g.buffer[C].bytes);
    gpu_put(g.buffer[C].device, g.buffer[C].host, g.buffer[C].bytes);
    GPU(cudaGraphLaunch(ready, stream));
    GPU(cudaStreamSynchronize(stream));
    GPU(cudaMemcpy(got, g.buffer[C].device, g.buffer[C].bytes, cudaMemcpyDeviceToHost));
    CHECK(memcmp(got, expected, g.buffer[C].bytes) == 0, "turn %d", turn);
    free(got), free(expected);
  }
  GPU(cudaGraphExecDestroy(ready));
  GPU(cudaGraphDestroy(captured));
  wsgemm_destroy(handle), wsgemm_destroy(alone);
  GPU(cudaStreamDestroy(stream));
  case_free(&g);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {
      {"partitions", partitions}, {"most_groups", most_groups}, {"hostile", hostile}, {"graph", graph}};
  gpu_open();
  return check_main("gpu_grouped", cases, sizeof cases / sizeof cases[0], argc, argv);
}
