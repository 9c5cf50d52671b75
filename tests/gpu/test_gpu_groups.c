/* test_gpu_groups.c - wsgemm_gemm_grouped by the kernels that rows have for groups (cuda/rows/groups.h):
 * offsets, sizes, leading dimensions and pointers in device memory, all types, ops, layouts, forms and epilogues. On small
 * whole numbers each element is as the CPU has it of the group's product alone; on any numbers it has the bits of that
 * product by the same kernel. What is round the matrices is neither read (NaN) nor written; groups that make no sense are
 * left out; graphs are replayed with other sizes. */
#include "gpu.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 700, GUARD = 64, NAME_BYTES = 128 };
static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

/* Elements here and on the device, all bits set round those that are filled in. */
struct buffer {
  wsgemm_type type;
  int64_t n;
  unsigned char *host, *device;
};
enum { A, B, C, BIAS, RESIDUAL, N_BUFFERS };

/* Where a group lies in the buffers, in elements; is_good: within what the descriptor says. */
struct group {
  int64_t m, n, k, ld[3], at[N_BUFFERS];
  bool is_good;
};

/* RAGGED_M .. RAGGED_K are wsgemm's; m_array and strides; pointers alone; everything by arrays. */
enum form { PLACES = WSGEMM_RAGGED_K + 1, POINTERS, GENERAL, N_FORMS };

struct groups {
  wsgemm_grouped_desc d; /* column-major; matrices are not given */
  int form;
  bool is_whole; /* small whole numbers */
  int64_t total; /* of what is ragged */
  struct group group[MOST_GROUPS];
  struct buffer of[N_BUFFERS];
  void *arrays[16];
  int n_arrays;
};

static void buffer_new(struct buffer *x, wsgemm_type type, int64_t n) {
  const size_t bytes = (size_t)(n + 2 * GUARD) * type_bytes(type);
  *x = (struct buffer){.type = type, .n = n, .host = malloc(bytes)};
  REQUIRE(x->host, "no memory");
  memset(x->host, 0xff, bytes);
}
static size_t bytes_of(const struct buffer *x) { return (size_t)(x->n + 2 * GUARD) * type_bytes(x->type); }

/* lines of `length` from an element on. */
static void fill(const struct groups *g, int which, int64_t at, int64_t length, int64_t lines, int64_t ld) {
  const struct buffer *x = &g->of[which];
  const int n_reals = type_is_complex(x->type) ? 2 : 1;
  const size_t bytes = type_bytes(x->type), real = bytes / (size_t)n_reals;
  for (int64_t l = 0; l < lines; l++)
    for (int64_t i = 0; i < length * n_reals; i++)
      element_put(x->type, x->host + (size_t)(GUARD + at + l * ld) * bytes + (size_t)i * real,
                  g->is_whole ? (double)drawn(-3, 3) : (double)drawn(-4000, 4000) / 4096);
}

/* ---- drawing ------------------------------------------------------------------------------------- */

static int64_t draw_size(int kind, int64_t most) {
  switch (kind) {
  case 0:
    return drawn(0, 3) ? 0 : drawn(0, most);
  case 1:
    return drawn(0, 9) ? drawn(0, 2) : 4 * most;
  case 2:
    return 1;
  default:
    return drawn(0, most);
  }
}

static bool is_trans(const struct groups *g, int which) {
  const wsgemm_op op = which == A ? g->d.transa : g->d.transb;
  return op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS;
}
static int64_t rows_of(const struct groups *g, int which, const struct group *x) {
  const bool trans = is_trans(g, which);
  return which == A ? (trans ? x->k : x->m) : which == B ? (trans ? x->n : x->k) : x->m;
}
static int64_t cols_of(const struct groups *g, int which, const struct group *x) {
  const bool trans = is_trans(g, which);
  return which == A ? (trans ? x->m : x->k) : which == B ? (trans ? x->k : x->n) : x->n;
}
/* Of the groups together along what is ragged, of one otherwise. */
static struct group whole_of(const struct groups *g) { return (struct group){.m = g->d.m, .n = g->d.n, .k = g->d.k}; }
static bool is_one(const struct groups *g, int which) {
  const wsgemm_ragged r = g->d.ragged;
  return r == WSGEMM_RAGGED_M ? which != B : r == WSGEMM_RAGGED_N ? which != A : r == WSGEMM_RAGGED_K && which != C;
}
/* Elements from its beginning to row `begin` of what is ragged. */
static int64_t ragged_shift(const struct groups *g, int which, int64_t begin, int64_t ld) {
  const bool trans = is_trans(g, which);
  const wsgemm_ragged r = g->d.ragged;
  const bool along_lines = which == C   ? r == WSGEMM_RAGGED_M
                           : which == A ? (r == WSGEMM_RAGGED_M) != trans
                                        : (r == WSGEMM_RAGGED_K) != trans;
  return begin * (along_lines ? 1 : ld);
}

static void draw_sizes(struct groups *g, int64_t most, int64_t most_k) {
  wsgemm_grouped_desc *d = &g->d;
  const int kind = (int)drawn(0, 4);
  const bool of_m = d->ragged == WSGEMM_RAGGED_M, of_n = d->ragged == WSGEMM_RAGGED_N, of_k = d->ragged == WSGEMM_RAGGED_K;
  d->m = drawn(1, most), d->n = drawn(1, most), d->k = drawn(0, 9) ? drawn(1, most_k) : 0;
  g->total = 0;
  for (int64_t i = 0; i < d->group_count; i++) {
    struct group *x = &g->group[i];
    *x = (struct group){.m = d->m, .n = d->n, .k = d->k, .is_good = true};
    if (of_m) x->m = draw_size(kind, most);
    if (of_n) x->n = draw_size(kind, most);
    if (of_k) x->k = draw_size(kind, most_k / 4);
    if (g->form == PLACES) x->m = drawn(0, d->m);
    if (g->form == GENERAL) x->m = drawn(0, d->m), x->n = drawn(0, d->n), x->k = drawn(0, 3) ? drawn(0, d->k) : 0;
    g->total += of_m ? x->m : of_n ? x->n : of_k ? x->k : 0;
  }
  const int64_t more = drawn(0, 3);
  *(of_m ? &d->m : of_n ? &d->n : of_k ? &d->k : &g->total) = g->total + more;
}

/* One matrix for all groups, or one of each. */
static void draw_matrix(struct groups *g, int which) {
  wsgemm_grouped_desc *d = &g->d;
  const struct group whole = whole_of(g);
  const int64_t pad = drawn(0, 2) * drawn(0, 5), n = d->group_count;
  const int64_t least = rows_of(g, which, &whole), ld = (least > 0 ? least : 1) + pad;
  int64_t *const lds[] = {&d->lda, &d->ldb, &d->ldc}, *const strides[] = {&d->stride_a, &d->stride_b, &d->stride_c};
  const bool has_own = g->form == POINTERS || g->form == GENERAL;
  int64_t at = 0, begin = 0;
  *lds[which] = ld, *strides[which] = is_one(g, which) ? 0 : ld * cols_of(g, which, &whole) + drawn(0, 9);
  for (int64_t i = 0; i < n; i++) {
    struct group *x = &g->group[i];
    const int64_t own = rows_of(g, which, x);
    x->ld[which] = g->form == GENERAL ? (own > 0 ? own : 1) + drawn(0, 2) * drawn(0, 5) : ld;
    x->at[which] = is_one(g, which) ? ragged_shift(g, which, begin, ld) : has_own ? at : i * *strides[which];
    at += x->ld[which] * cols_of(g, which, x) + drawn(0, 3);
    begin += d->ragged == WSGEMM_RAGGED_M ? x->m : d->ragged == WSGEMM_RAGGED_N ? x->n : x->k;
  }
  const wsgemm_type type = which == C ? d->type_c : d->type_a;
  buffer_new(&g->of[which], type, has_own ? at : is_one(g, which) ? ld * cols_of(g, which, &whole) : n * *strides[which]);
  for (int64_t i = 0; i < n; i++) {
    const struct group *x = &g->group[i];
    fill(g, which, x->at[which], rows_of(g, which, x), cols_of(g, which, x), x->ld[which]);
  }
}

static void draw_epilogue(struct groups *g) {
  wsgemm_grouped_desc *d = &g->d;
  const bool is_one_c = is_one(g, C);
  d->epilogue = drawn(0, 1) ? WSGEMM_EPILOGUE_RELU : WSGEMM_EPILOGUE_NONE, d->out_scale = drawn(0, 1) ? 1 : 0.5;
  if (drawn(0, 2)) {
    d->bias_per = (wsgemm_bias)drawn(0, 1), d->type_bias = type_is_half(d->type_c) ? WSGEMM_F32 : d->type_c;
    const bool is_ragged = d->bias_per == WSGEMM_BIAS_PER_ROW ? d->ragged == WSGEMM_RAGGED_M : d->ragged == WSGEMM_RAGGED_N;
    const int64_t length = d->bias_per == WSGEMM_BIAS_PER_ROW ? d->m : d->n;
    d->stride_bias = is_ragged ? 0 : length + drawn(0, 3);
    buffer_new(&g->of[BIAS], d->type_bias, is_ragged ? length : d->group_count * d->stride_bias);
    fill(g, BIAS, 0, g->of[BIAS].n, 1, 0);
    int64_t begin = 0;
    for (int64_t i = 0; i < d->group_count; i++) {
      struct group *x = &g->group[i];
      x->at[BIAS] = i * d->stride_bias + (is_ragged ? begin : 0);
      begin += d->ragged == WSGEMM_RAGGED_M ? x->m : x->n;
    }
  }
  if (drawn(0, 1)) return;
  d->ld_residual = (d->m > 0 ? d->m : 1) + drawn(0, 5), d->stride_residual = is_one_c ? 0 : d->ld_residual * d->n;
  buffer_new(&g->of[RESIDUAL], d->type_c, is_one_c ? d->ld_residual * d->n : d->group_count * d->stride_residual);
  fill(g, RESIDUAL, 0, g->of[RESIDUAL].n, 1, 0);
  int64_t begin = 0;
  for (int64_t i = 0; i < d->group_count; i++) {
    struct group *x = &g->group[i];
    x->at[RESIDUAL] = is_one_c ? (d->ragged == WSGEMM_RAGGED_M ? begin : begin * d->ld_residual) : i * d->stride_residual;
    begin += d->ragged == WSGEMM_RAGGED_M ? x->m : x->n;
  }
}

static struct groups *groups_new(wsgemm_type type, int form, int64_t count, int64_t most, int64_t most_k, bool is_whole) {
  struct groups *g = calloc(1, sizeof *g);
  REQUIRE(g, "no memory");
  wsgemm_grouped_desc *d = &g->d;
  static const wsgemm_type types_c[] = {WSGEMM_F32, WSGEMM_F16, WSGEMM_BF16};
  *d = (wsgemm_grouped_desc)WSGEMM_GROUPED_DESC_INIT;
  d->transa = draw_op(type, &rng), d->transb = draw_op(type, &rng);
  d->type_a = d->type_b = d->type_c = type, d->type_scalar = type_is_half(type) ? WSGEMM_F32 : type;
  if (type_is_half(type) && drawn(0, 2) == 0) d->type_c = types_c[drawn(0, 2)];
  d->alpha = scalar_make(d->type_scalar, drawn(0, 11) ? (double)drawn(1, 2) : 0, 0);
  d->beta = scalar_make(d->type_scalar, (double)drawn(0, 1), 0);
  g->form = form, g->is_whole = is_whole;
  d->ragged = form <= WSGEMM_RAGGED_K ? (wsgemm_ragged)form : WSGEMM_RAGGED_NONE;
  d->index_bytes = drawn(0, 1) ? 4 : 8, d->group_count = count;
  draw_sizes(g, most, most_k);
  for (int which = A; which <= C; which++) draw_matrix(g, which);
  if (!type_is_complex(type) && drawn(0, 2) == 0) draw_epilogue(g);
  for (int i = 0; i < N_BUFFERS; i++)
    if (g->of[i].host) g->of[i].device = gpu_copy(g->of[i].host, bytes_of(&g->of[i]));
  return g;
}

static void groups_free(struct groups *g) {
  for (int i = 0; i < N_BUFFERS; i++)
    if (g->of[i].host) free(g->of[i].host), gpu_free(g->of[i].device);
  for (int i = 0; i < g->n_arrays; i++) gpu_free(g->arrays[i]);
  free(g);
}

/* ---- calls --------------------------------------------------------------------------------------- */

static unsigned char *element(const struct groups *g, int which, int64_t at, bool on_device) {
  const struct buffer *x = &g->of[which];
  return x->host ? (on_device ? x->device : x->host) + (size_t)(GUARD + at) * type_bytes(x->type) : NULL;
}

/* The product of one group, for wsgemm_gemm. */
static wsgemm_gemm_desc alone_of(const struct groups *g, int64_t i, bool on_device) {
  const wsgemm_grouped_desc *d = &g->d;
  const struct group *x = &g->group[i];
  wsgemm_gemm_desc s = WSGEMM_GEMM_DESC_INIT;
  s.layout = WSGEMM_COL_MAJOR, s.transa = d->transa, s.transb = d->transb;
  s.type_a = s.type_b = d->type_a, s.type_c = d->type_c, s.type_scalar = d->type_scalar, s.alpha = d->alpha, s.beta = d->beta;
  s.m = x->m, s.n = x->n, s.k = x->k, s.lda = x->ld[A], s.ldb = x->ld[B], s.ldc = x->ld[C];
  s.a = element(g, A, x->at[A], on_device), s.b = element(g, B, x->at[B], on_device), s.c = element(g, C, x->at[C], on_device);
  s.epilogue = d->epilogue, s.bias_per = d->bias_per, s.type_bias = d->type_bias, s.out_scale = d->out_scale;
  s.bias = element(g, BIAS, x->at[BIAS], on_device), s.residual = element(g, RESIDUAL, x->at[RESIDUAL], on_device);
  s.ld_residual = d->ld_residual;
  return s;
}

/* In device memory, as the descriptor's index_bytes say. */
static const void *sizes_on_device(struct groups *g, size_t member) {
  int64_t wide[MOST_GROUPS];
  int32_t narrow[MOST_GROUPS];
  for (int64_t i = 0; i < g->d.group_count; i++) {
    memcpy(&wide[i], (const char *)&g->group[i] + member, sizeof wide[i]);
    narrow[i] = (int32_t)wide[i];
  }
  return g->arrays[g->n_arrays++] =
             gpu_copy(g->d.index_bytes == 8 ? (const void *)wide : narrow, (size_t)(g->d.group_count * g->d.index_bytes));
}
static void *places_on_device(struct groups *g, int which) {
  const void *places[MOST_GROUPS];
  for (int64_t i = 0; i < g->d.group_count; i++) places[i] = element(g, which, g->group[i].at[which], true);
  return g->arrays[g->n_arrays++] = gpu_copy(places, (size_t)g->d.group_count * sizeof *places);
}
static void *ends_on_device(struct groups *g) {
  int64_t wide[MOST_GROUPS], end = 0;
  int32_t narrow[MOST_GROUPS];
  for (int64_t i = 0; i < g->d.group_count; i++) {
    const struct group *x = &g->group[i];
    wide[i] = end += g->d.ragged == WSGEMM_RAGGED_M ? x->m : g->d.ragged == WSGEMM_RAGGED_N ? x->n : x->k;
    narrow[i] = (int32_t)end;
  }
  return g->arrays[g->n_arrays++] =
             gpu_copy(g->d.index_bytes == 8 ? (const void *)wide : narrow, (size_t)(g->d.group_count * g->d.index_bytes));
}

static void exchange(wsgemm_grouped_desc *d) {
  wsgemm_grouped_desc t = *d;
  t.layout = WSGEMM_ROW_MAJOR, t.transa = d->transb, t.transb = d->transa, t.m = d->n, t.n = d->m;
  t.a = d->b, t.lda = d->ldb, t.stride_a = d->stride_b, t.b = d->a, t.ldb = d->lda, t.stride_b = d->stride_a;
  t.a_array = d->b_array, t.b_array = d->a_array, t.lda_array = d->ldb_array, t.ldb_array = d->lda_array;
  t.m_array = d->n_array, t.n_array = d->m_array;
  t.ragged = d->ragged == WSGEMM_RAGGED_M ? WSGEMM_RAGGED_N : d->ragged == WSGEMM_RAGGED_N ? WSGEMM_RAGGED_M : d->ragged;
  t.bias_per = d->bias_per == WSGEMM_BIAS_PER_ROW ? WSGEMM_BIAS_PER_COLUMN : WSGEMM_BIAS_PER_ROW;
  *d = t;
}

/* All that the call is given, in device memory. */
static wsgemm_grouped_desc device_desc(struct groups *g) {
  wsgemm_grouped_desc d = g->d;
  d.a = element(g, A, 0, true), d.b = element(g, B, 0, true), d.c = element(g, C, 0, true);
  d.bias = element(g, BIAS, 0, true), d.residual = element(g, RESIDUAL, 0, true);
  if (d.ragged != WSGEMM_RAGGED_NONE) d.offsets = ends_on_device(g);
  if (g->form == PLACES || g->form == GENERAL) d.m_array = sizes_on_device(g, offsetof(struct group, m));
  if (g->form == GENERAL) {
    d.n_array = sizes_on_device(g, offsetof(struct group, n)), d.k_array = sizes_on_device(g, offsetof(struct group, k));
    d.lda_array = sizes_on_device(g, offsetof(struct group, ld[A])),
    d.ldb_array = sizes_on_device(g, offsetof(struct group, ld[B]));
    d.ldc_array = sizes_on_device(g, offsetof(struct group, ld[C]));
  }
  if (g->form == POINTERS || g->form == GENERAL)
    d.a_array = places_on_device(g, A), d.b_array = places_on_device(g, B), d.c_array = places_on_device(g, C);
  if (drawn(0, 1)) exchange(&d);
  return d;
}

static unsigned char *c_after(const struct groups *g) {
  unsigned char *after = malloc(bytes_of(&g->of[C]));
  REQUIRE(after, "no memory");
  GPU(cudaDeviceSynchronize());
  GPU(cudaMemcpy(after, g->of[C].device, bytes_of(&g->of[C]), cudaMemcpyDeviceToHost));
  gpu_put(g->of[C].device, g->of[C].host, bytes_of(&g->of[C]));
  return after;
}

/* C as it should be: the good groups one after the other, here or on the device. */
static unsigned char *c_of_each(const struct groups *g, wsgemm_handle *handle, bool on_device) {
  unsigned char *before = malloc(bytes_of(&g->of[C])), *after;
  REQUIRE(before, "no memory");
  memcpy(before, g->of[C].host, bytes_of(&g->of[C]));
  for (int64_t i = 0; i < g->d.group_count; i++) {
    const wsgemm_gemm_desc s = alone_of(g, i, on_device);
    if (!g->group[i].is_good) continue;
    CHECK(wsgemm_gemm(handle, &s) == WSGEMM_SUCCESS, "group %lld: %s", (long long)i, wsgemm_last_error());
  }
  if (on_device) return free(before), c_after(g);
  after = malloc(bytes_of(&g->of[C]));
  REQUIRE(after, "no memory");
  memcpy(after, g->of[C].host, bytes_of(&g->of[C]));
  memcpy(g->of[C].host, before, bytes_of(&g->of[C]));
  free(before);
  return after;
}

/* Of n bytes from one on; zeros of either sign are the same number. */
static bool is_same_number(const unsigned char *x, const unsigned char *y, size_t n) {
  unsigned char any = (unsigned char)((x[n - 1] | y[n - 1]) & 0x7f);
  for (size_t i = 0; i + 1 < n; i++) any |= x[i] | y[i];
  return memcmp(x, y, n) == 0 || any == 0;
}

static void check_same(const struct groups *g, const unsigned char *got, const unsigned char *wanted, const char *what) {
  const wsgemm_grouped_desc *d = &g->d;
  const size_t real = type_bytes(d->type_c) / (type_is_complex(d->type_c) ? 2 : 1);
  size_t first = 0;
  while (first < bytes_of(&g->of[C]) && is_same_number(got + first, wanted + first, real)) first += real;
  CHECK(first == bytes_of(&g->of[C]),
        "%s: byte %zu of %zu: form %d, %lld groups, ops %d %d, types %d %d, m %lld, n %lld, k %lld, beta %d, epilogue %d, bias "
        "%d, residual %d",
        what, first, bytes_of(&g->of[C]), g->form, (long long)d->group_count, (int)d->transa, (int)d->transb, (int)d->type_a,
        (int)d->type_c, (long long)d->m, (long long)d->n, (long long)d->k, d->beta.s != 0, (int)d->epilogue,
        g->of[BIAS].host != NULL, g->of[RESIDUAL].host != NULL);
}

/* ---- cases --------------------------------------------------------------------------------------- */

/* Whether this GPU has the kernels; else it must say so. */
static bool is_built_in(void) {
  struct groups *g = groups_new(WSGEMM_F32, POINTERS, 2, 20, 20, true);
  const wsgemm_grouped_desc d = device_desc(g);
  const wsgemm_status status = wsgemm_gemm_grouped(NULL, &d);
  GPU(cudaDeviceSynchronize());
  groups_free(g);
  if (status == WSGEMM_NOT_SUPPORTED) CHECK(strstr(wsgemm_last_error(), "compute capability 9.0"), "%s", wsgemm_last_error());
  return status != WSGEMM_NOT_SUPPORTED;
}

static const wsgemm_type types[] = {WSGEMM_F32, WSGEMM_F64, WSGEMM_C32, WSGEMM_C64, WSGEMM_F16, WSGEMM_BF16};

static int64_t draw_count(void) { return drawn(0, 5) ? drawn(1, 30) : drawn(200, MOST_GROUPS); }

/* Whole numbers: any kernel has the same. */
static void exact(void) {
  rng = check_random_from(240);
  if (!is_built_in()) return;
  wsgemm_handle *handle = NULL;
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS, "handle");
  for (int turn = 0; turn < 4 * N_TYPES * N_FORMS / check_scale() + 2 * N_TYPES * N_FORMS; turn++) {
    const wsgemm_type type = types[turn % N_TYPES];
    const int form = 1 + turn / N_TYPES % (N_FORMS - 1);
    const int64_t count = draw_count();
    struct groups *g = groups_new(type, form, count, count > 100 ? 40 : 200, count > 100 ? 60 : 300, true);
    const wsgemm_math maths[] = {WSGEMM_MATH_DEFAULT, WSGEMM_MATH_TF32, WSGEMM_MATH_PEDANTIC};
    g->d.math = type == WSGEMM_F32 ? maths[drawn(0, 2)] : WSGEMM_MATH_DEFAULT;
    const wsgemm_grouped_desc d = device_desc(g);
    unsigned char *wanted = c_of_each(g, handle, false);
    CHECK(wsgemm_gemm_grouped(handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    unsigned char *got = c_after(g);
    check_same(g, got, wanted, "whole numbers");
    free(got), free(wanted), groups_free(g);
  }
  wsgemm_destroy(handle);
}

/* Alpha and beta in device memory, of products alone. */
static void scalars(void) {
  rng = check_random_from(244);
  if (!is_built_in()) return;
  for (int turn = 0; turn < 4 * N_TYPES / check_scale() + 2 * N_TYPES; turn++) {
    struct groups *g = groups_new(types[turn % N_TYPES], 1 + turn % (N_FORMS - 1), drawn(1, 12), 200, 300, true);
    const size_t bytes = type_bytes(g->d.type_scalar);
    const wsgemm_scalar both[] = {g->d.alpha, g->d.beta};
    char *const device = g->arrays[g->n_arrays++] = gpu_copy(both, sizeof both);
    unsigned char *wanted = c_of_each(g, NULL, false);
    for (int64_t i = 0; i < g->d.group_count; i++) {
      wsgemm_gemm_desc s = alone_of(g, i, true);
      s.scalar_mode = WSGEMM_SCALAR_DEVICE, s.alpha.device = device, s.beta.device = device + sizeof both[0];
      CHECK(bytes <= sizeof both[0] && wsgemm_gemm(NULL, &s) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
    unsigned char *got = c_after(g);
    check_same(g, got, wanted, "scalars in device memory");
    free(got), free(wanted), groups_free(g);
  }
}

/* Rows with kernels for groups, as groups.h names them. */
static const char *const rows[] = {
    "sgemm_tf32w2_128x128_g1_k1",  "sgemm_tf32w2_64x64_g1_k1",    "sgemm_tf32x2_64x16_g2_k1",    "sgemm_tf32x2_16x64_g2_k1",
    "sgemm_tf32w1_128x128_g1_k1",  "sgemm_tf32w1_64x64_g1_k1",    "sgemm_ffma_64x64_g2_k1",      "sgemm_ffma_32x32_g4_k1",
    "sgemm_ffma_64x16_g4_k1",      "sgemm_ffma_16x64_g4_k1",      "sgemm_ffma_128x64_g1_k1",     "dgemm_dmma_128x64_g1_k1",
    "dgemm_dmma_64x64_g1_k1",      "dgemm_dmma_32x32_g1_k1",      "dgemm_dmma_64x16_g2_k1",      "dgemm_dmma_16x64_g2_k1",
    "cgemm_tf32w2_128x64_g1_k1",   "cgemm_tf32w2_64x32_g1_k1",    "cgemm_tf32x2_32x32_g4_k1",    "zgemm_dmma_64x64_g1_k1",
    "zgemm_dmma_32x32_g1_k1",      "hgemm_direct_64x64x16_g2_k1", "hgemm_direct_64x16x16_g4_k1", "hgemm_direct_16x64x16_g4_k1",
    "bgemm_direct_64x64x16_g2_k1", "bgemm_direct_64x16x16_g4_k1", "bgemm_direct_16x64x16_g4_k1", "sgemm_tf32w2_128x64_g1_k1",
    "sgemm_tf32x2_32x32_g4_k1",    "sgemm_tf32w2_128x64_g1_k2",   "sgemm_tf32w2_64x64_g1_k4",    "sgemm_tf32x2_32x32_g4_k8",
    "sgemm_ffma_32x32_g4_k16",     "dgemm_dmma_64x64_g1_k8",      "dgemm_dmma_128x64_g1_k3",     "cgemm_tf32w2_64x32_g1_k4",
    "zgemm_dmma_32x32_g1_k4"};

static wsgemm_type type_of_row(const char *row) { return types[strchr("sdczhb", row[0]) - "sdczhb"]; }

static bool is_by_row(wsgemm_handle *handle, const wsgemm_gemm_desc *s, const char *row) {
  char kernel[NAME_BYTES];
  return explained_text(handle, s, "kernel", kernel) && strcmp(kernel, row) == 0;
}

/* Each group that the row takes alone has the bits of that; the others are left out. */
static void bits(void) {
  rng = check_random_from(241);
  if (!is_built_in()) return;
  int64_t n_compared = 0;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (int turn = 0; turn < 3 * (N_FORMS - 1) / check_scale() + (N_FORMS - 1); turn++) {
      wsgemm_handle *handle = NULL;
      const wsgemm_type type = type_of_row(rows[r]);
      struct groups *g = groups_new(type, 1 + turn % (N_FORMS - 1), drawn(1, 20), 200, 500, false);
      REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS && wsgemm_set_kernel(handle, rows[r]) == WSGEMM_SUCCESS, "%s", rows[r]);
      if (strstr(rows[r], "tf32w1")) g->d.math = WSGEMM_MATH_TF32;
      const wsgemm_grouped_desc d = device_desc(g);
      CHECK(wsgemm_gemm_grouped(handle, &d) == WSGEMM_SUCCESS, "%s: %s", rows[r], wsgemm_last_error());
      unsigned char *got = c_after(g);
      for (int64_t i = 0; i < d.group_count; i++) {
        const struct group *x = &g->group[i];
        wsgemm_gemm_desc s = alone_of(g, i, true);
        s.math = g->d.math;
        if (x->m == 0 || x->n == 0 || !is_by_row(handle, &s, rows[r])) continue;
        CHECK(wsgemm_gemm(handle, &s) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        unsigned char *wanted = c_after(g);
        const size_t bytes = type_bytes(g->d.type_c);
        for (int64_t j = 0; j < x->n; j++) {
          const size_t at = (size_t)(GUARD + x->at[C] + j * x->ld[C]) * bytes;
          CHECK(memcmp(got + at, wanted + at, (size_t)x->m * bytes) == 0, "%s: form %d, group %lld, %lldx%lldx%lld, column %lld",
                rows[r], g->form, (long long)i, (long long)x->m, (long long)x->n, (long long)x->k, (long long)j);
        }
        free(wanted);
        n_compared++;
      }
      free(got), groups_free(g);
      wsgemm_destroy(handle);
    }
  CHECK(n_compared > 100, "only %lld groups were compared", (long long)n_compared);
}

/* Sizes and lds that make no sense: the group is left out. */
static void hostile(void) {
  rng = check_random_from(242);
  if (!is_built_in()) return;
  for (int turn = 0; turn < 60; turn++) {
    struct groups *g = groups_new(types[turn % N_TYPES], GENERAL, drawn(2, 40), 100, 100, true);
    const struct groups kept = *g;
    for (int64_t i = 0; i < g->d.group_count; i += drawn(1, 4)) {
      struct group *x = &g->group[i];
      const int64_t bad[] = {-1, -7, INT32_MIN, INT32_MAX, g->d.m + g->d.n + g->d.k + 1};
      int64_t *const members[] = {&x->m, &x->n, &x->k};
      const int which = (int)drawn(0, 3);
      if (which < 3)
        *members[which] = bad[drawn(0, 4)];
      else if (x->m > 1)
        x->ld[C] = x->m - 1;
      x->is_good = false;
      if (which == 3 && x->m <= 1) x->is_good = true;
    }
    const wsgemm_grouped_desc d = device_desc(g);
    unsigned char *wanted = c_of_each(g, NULL, false);
    CHECK(wsgemm_gemm_grouped(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    unsigned char *got = c_after(g);
    check_same(&kept, got, wanted, "sizes that make no sense");
    free(got), free(wanted), groups_free(g);
  }
}

/* A graph is replayed with other sizes in the same places. */
static void graph(void) {
  rng = check_random_from(243);
  if (!is_built_in()) return;
  wsgemm_handle *handle = NULL;
  cudaStream_t stream;
  cudaGraph_t captured;
  cudaGraphExec_t ready;
  struct groups *g = groups_new(WSGEMM_F32, PLACES, 24, 90, 90, true);
  GPU(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  REQUIRE(wsgemm_create(&handle) == WSGEMM_SUCCESS && wsgemm_set_stream(handle, stream) == WSGEMM_SUCCESS, "handle");
  const wsgemm_grouped_desc d = device_desc(g);
  GPU(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const wsgemm_status status = wsgemm_gemm_grouped(handle, &d);
  GPU(cudaStreamEndCapture(stream, &captured));
  REQUIRE(status == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  GPU(cudaGraphInstantiate(&ready, captured, 0));
  for (int turn = 0; turn < 10; turn++) {
    int64_t wide[MOST_GROUPS];
    int32_t narrow[MOST_GROUPS];
    for (int64_t i = 0; i < d.group_count; i++) {
      struct group *x = &g->group[i];
      if (turn > 0) x->m = drawn(0, x->m);
      wide[i] = x->m, narrow[i] = (int32_t)x->m;
    }
    const void *sizes = d.layout == WSGEMM_COL_MAJOR ? d.m_array : d.n_array;
    gpu_put((void *)(uintptr_t)sizes, d.index_bytes == 8 ? (const void *)wide : narrow, (size_t)(d.group_count * d.index_bytes));
    unsigned char *wanted = c_of_each(g, NULL, false);
    GPU(cudaGraphLaunch(ready, stream));
    GPU(cudaStreamSynchronize(stream));
    unsigned char *got = c_after(g);
    check_same(g, got, wanted, "a graph");
    free(got), free(wanted);
  }
  GPU(cudaGraphExecDestroy(ready));
  GPU(cudaGraphDestroy(captured));
  wsgemm_destroy(handle);
  GPU(cudaStreamDestroy(stream));
  groups_free(g);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {
      {"exact", exact}, {"scalars", scalars}, {"bits", bits}, {"hostile", hostile}, {"graph", graph}};
  gpu_open();
  return check_main("gpu_groups", cases, sizeof cases / sizeof cases[0], argc, argv);
}
