/* test_grouped.c - wsgemm_gemm_grouped in host memory: each group has the bits of its product alone, for
 * random partitions, types, ops and layouts; what lies between and behind the groups is neither read
 * (NaN) nor written; bad descriptors are refused with C untouched. */
#include "support/gemm_call.h"
#include "support/rows.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GROUPS = 48, MOST_PAD = 5 };
static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

/* A matrix of a group in a buffer: op(X) is rows x cols. */
struct lies {
  bool rows_contiguous;
  int64_t rows, cols, ld, at; /* of elements */
};

struct buffer {
  wsgemm_type type;
  unsigned char *bytes;
  int64_t n; /* elements */
};

struct groups_case {
  wsgemm_grouped_desc d;
  wsgemm_gemm_desc alone[MOST_GROUPS];
  struct buffer a, b, c, bias, residual, expected;
  int64_t ends[MOST_GROUPS], m[MOST_GROUPS], n[MOST_GROUPS], k[MOST_GROUPS], lda[MOST_GROUPS], ldb[MOST_GROUPS], ldc[MOST_GROUPS];
  int32_t narrow[7][MOST_GROUPS];
  const void *a_at[MOST_GROUPS], *b_at[MOST_GROUPS];
  void *c_at[MOST_GROUPS];
};

static struct buffer buffer_new(wsgemm_type type, int64_t n) {
  struct buffer x = {type, malloc((size_t)(n + 1) * type_bytes(type)), n};
  REQUIRE(x.bytes, "no memory");
  memset(x.bytes, 0xff, (size_t)(n + 1) * type_bytes(type)); /* NaN in every type */
  return x;
}

static unsigned char *element(const struct buffer *x, int64_t i) { return x->bytes + (size_t)i * type_bytes(x->type); }

static void put_random(const struct buffer *x, int64_t i) {
  double two[2] = {check_random_unit(&rng), check_random_unit(&rng)};
  float floats[2] = {(float)two[0], (float)two[1]};
  uint32_t bits;
  memcpy(&bits, &floats[0], 4);
  const uint16_t half = x->type == WSGEMM_F16 ? (uint16_t)((bits & 0x83ffu) | 0x3400u) : (uint16_t)(bits >> 16);
  if (type_is_half(x->type))
    memcpy(element(x, i), &half, 2);
  else if (type_is_double(x->type))
    memcpy(element(x, i), two, type_bytes(x->type));
  else
    memcpy(element(x, i), floats, type_bytes(x->type));
}

static void fill(const struct buffer *x, const struct lies *where) {
  for (int64_t i = 0; i < where->rows; i++)
    for (int64_t j = 0; j < where->cols; j++)
      put_random(x, where->at + (where->rows_contiguous ? i + j * where->ld : j + i * where->ld));
}

static struct lies lies_of(const wsgemm_grouped_desc *d, wsgemm_op op, int64_t rows, int64_t cols) {
  struct lies x = {(d->layout == WSGEMM_COL_MAJOR) != op_transposes(op), rows, cols, 0, 0};
  const int64_t least = x.rows_contiguous ? rows : cols;
  x.ld = (least > 1 ? least : 1) + drawn(0, MOST_PAD);
  return x;
}
static int64_t extent(const struct lies *x) { return x->ld * (x->rows_contiguous ? x->cols : x->rows); }
/* The part from row i, column j on. */
static struct lies part(const struct lies *x, int64_t i, int64_t rows, int64_t j, int64_t cols) {
  struct lies p = *x;
  p.rows = rows, p.cols = cols, p.at += x->rows_contiguous ? i + j * x->ld : j + i * x->ld;
  return p;
}

/* Many empty, one huge, all one, and anything. */
static int64_t draw_size(int kind, int64_t group, int64_t most) {
  switch (kind) {
  case 0:
    return drawn(0, 3) ? 0 : drawn(0, most);
  case 1:
    return group == 1 ? 6 * most : drawn(0, 9);
  case 2:
    return 1;
  default:
    return drawn(0, most);
  }
}

static void put_alone(struct groups_case *g, int64_t group, const struct lies *a, const struct lies *b, const struct lies *c,
                      int64_t m, int64_t n, int64_t k) {
  wsgemm_gemm_desc *s = &g->alone[group];
  *s = (wsgemm_gemm_desc)WSGEMM_GEMM_DESC_INIT;
  s->layout = g->d.layout, s->transa = g->d.transa, s->transb = g->d.transb;
  s->type_a = s->type_b = g->d.type_a, s->type_c = g->d.type_c, s->type_scalar = g->d.type_scalar;
  s->alpha = g->d.alpha, s->beta = g->d.beta, s->m = m, s->n = n, s->k = k;
  s->lda = a->ld, s->ldb = b->ld, s->ldc = c->ld;
  s->a = element(&g->a, a->at), s->b = element(&g->b, b->at), s->c = element(&g->expected, c->at);
  fill(&g->a, a), fill(&g->b, b), fill(&g->c, c);
}

/* The ends of groups along one dimension of m, n, k. */
static void make_ragged(struct groups_case *g, int kind, int64_t most) {
  wsgemm_grouped_desc *d = &g->d;
  int64_t total = 0, begin = 0;
  for (int64_t i = 0; i < d->group_count; i++) g->ends[i] = total += draw_size(kind, i, most);
  total += drawn(0, 3);
  const bool of_m = d->ragged == WSGEMM_RAGGED_M, of_n = d->ragged == WSGEMM_RAGGED_N, of_k = d->ragged == WSGEMM_RAGGED_K;
  d->m = of_m ? total : drawn(1, most), d->n = of_n ? total : drawn(1, most), d->k = of_k ? total : drawn(0, 2 * most);
  const struct lies a = lies_of(d, d->transa, d->m, d->k), b = lies_of(d, d->transb, d->k, d->n),
                    c = lies_of(d, WSGEMM_NO_TRANS, d->m, d->n);
  d->lda = a.ld, d->ldb = b.ld, d->ldc = c.ld;
  d->stride_a = extent(&a) + drawn(0, 3), d->stride_b = extent(&b) + drawn(0, 3), d->stride_c = extent(&c) + drawn(0, 3);
  g->a = buffer_new(d->type_a, of_n ? d->stride_a * d->group_count : extent(&a));
  g->b = buffer_new(d->type_a, of_m ? d->stride_b * d->group_count : extent(&b));
  g->c = buffer_new(d->type_c, of_k ? d->stride_c * d->group_count : extent(&c));
  g->expected = buffer_new(d->type_c, g->c.n);
  for (int64_t i = 0; i < d->group_count; i++) {
    const int64_t length = g->ends[i] - begin, m = of_m ? length : d->m, n = of_n ? length : d->n, k = of_k ? length : d->k;
    struct lies at[3] = {part(&a, of_m ? begin : 0, m, of_k ? begin : 0, k), part(&b, of_k ? begin : 0, k, of_n ? begin : 0, n),
                         part(&c, of_m ? begin : 0, m, of_n ? begin : 0, n)};
    if (of_n) at[0].at += i * d->stride_a;
    if (of_m) at[1].at += i * d->stride_b;
    if (of_k) at[2].at += i * d->stride_c;
    put_alone(g, i, &at[0], &at[1], &at[2], m, n, k);
    begin = g->ends[i];
  }
  d->a = g->a.bytes, d->b = g->b.bytes, d->c = g->c.bytes, d->offsets = g->ends;
}

/* Sizes and places of each group's own, by arrays; some of them shared, and places by strides. */
static void make_general(struct groups_case *g, int kind, int64_t most) {
  wsgemm_grouped_desc *d = &g->d;
  const bool one_size = drawn(0, 2) == 0, by_strides = one_size && drawn(0, 1);
  struct lies at[MOST_GROUPS][3];
  int64_t n_elements[3] = {0, 0, 0};
  const int64_t all[3] = {drawn(1, most), drawn(1, most), drawn(0, most)};
  for (int64_t i = 0; i < d->group_count; i++) {
    const bool is_same = one_size && i > 0;
    g->m[i] = one_size ? all[0] : draw_size(kind, i, most), g->n[i] = one_size ? all[1] : drawn(0, most),
    g->k[i] = one_size ? all[2] : draw_size(kind, i, most);
    at[i][0] = lies_of(d, d->transa, g->m[i], g->k[i]), at[i][1] = lies_of(d, d->transb, g->k[i], g->n[i]);
    at[i][2] = lies_of(d, WSGEMM_NO_TRANS, g->m[i], g->n[i]);
    for (int x = 0; x < 3; x++) {
      if (is_same) at[i][x].ld = at[0][x].ld;
      at[i][x].at = n_elements[x], n_elements[x] += extent(&at[i][x]) + (by_strides ? 2 : drawn(0, 3));
    }
    g->lda[i] = at[i][0].ld, g->ldb[i] = at[i][1].ld, g->ldc[i] = at[i][2].ld;
  }
  g->a = buffer_new(d->type_a, n_elements[0]), g->b = buffer_new(d->type_a, n_elements[1]),
  g->c = buffer_new(d->type_c, n_elements[2]);
  g->expected = buffer_new(d->type_c, n_elements[2]);
  for (int64_t i = 0; i < d->group_count; i++) {
    put_alone(g, i, &at[i][0], &at[i][1], &at[i][2], g->m[i], g->n[i], g->k[i]);
    g->a_at[i] = element(&g->a, at[i][0].at), g->b_at[i] = element(&g->b, at[i][1].at), g->c_at[i] = element(&g->c, at[i][2].at);
  }
  if (one_size && d->group_count > 0) {
    d->m = all[0], d->n = all[1], d->k = all[2], d->lda = g->lda[0], d->ldb = g->ldb[0], d->ldc = g->ldc[0];
  } else {
    d->m_array = g->m, d->n_array = g->n, d->k_array = g->k, d->lda_array = g->lda, d->ldb_array = g->ldb, d->ldc_array = g->ldc;
  }
  if (by_strides) {
    d->a = g->a.bytes, d->b = g->b.bytes, d->c = g->c.bytes;
    d->stride_a = extent(&at[0][0]) + 2, d->stride_b = extent(&at[0][1]) + 2, d->stride_c = extent(&at[0][2]) + 2;
  } else {
    d->a_array = g->a_at, d->b_array = g->b_at, d->c_array = g->c_at;
  }
  if (d->group_count == 0) d->lda = d->ldb = d->ldc = most;
}

/* A bias and a residual as long as C is wide and high, the same for all groups unless ragged. */
static void make_epilogue(struct groups_case *g) {
  wsgemm_grouped_desc *d = &g->d;
  g->bias = buffer_new(d->type_c, 1), g->residual = buffer_new(d->type_c, 1);
  if (type_is_complex(d->type_a) || d->ragged == WSGEMM_RAGGED_NONE || drawn(0, 1)) return;
  d->epilogue = (wsgemm_epilogue)drawn(0, WSGEMM_EPILOGUE_SILU), d->bias_per = (wsgemm_bias)drawn(0, 1), d->type_bias = d->type_c;
  d->out_scale = 0.5;
  const bool per_row = d->bias_per == WSGEMM_BIAS_PER_ROW, of_m = d->ragged == WSGEMM_RAGGED_M,
             of_n = d->ragged == WSGEMM_RAGGED_N;
  const int64_t length = per_row ? d->m : d->n;
  d->stride_bias = per_row ? (of_m ? 0 : length) : (of_n ? 0 : length);
  free(g->bias.bytes), free(g->residual.bytes);
  g->bias = buffer_new(d->type_c, length + d->stride_bias * d->group_count);
  for (int64_t i = 0; i < g->bias.n; i++) put_random(&g->bias, i);
  g->residual = buffer_new(d->type_c, g->c.n);
  for (int64_t i = 0; i < g->c.n; i++) put_random(&g->residual, i);
  d->bias = g->bias.bytes, d->residual = g->residual.bytes, d->ld_residual = d->ldc, d->stride_residual = d->stride_c;
  for (int64_t i = 0; i < d->group_count; i++) {
    wsgemm_gemm_desc *s = &g->alone[i];
    const int64_t begin = i > 0 ? g->ends[i - 1] : 0,
                  at = ((unsigned char *)s->c - g->expected.bytes) / (int64_t)type_bytes(d->type_c);
    s->epilogue = d->epilogue, s->bias_per = d->bias_per, s->type_bias = d->type_bias, s->out_scale = d->out_scale;
    s->bias = element(&g->bias, i * d->stride_bias + (per_row ? of_m : of_n) * begin);
    s->residual = element(&g->residual, at), s->ld_residual = d->ldc;
  }
}

static void narrow_indices(struct groups_case *g) {
  wsgemm_grouped_desc *d = &g->d;
  if (drawn(0, 1)) return;
  const void **given[] = {&d->offsets, &d->m_array, &d->n_array, &d->k_array, &d->lda_array, &d->ldb_array, &d->ldc_array};
  d->index_bytes = 4;
  for (int x = 0; x < 7; x++) {
    if (!*given[x]) continue;
    for (int64_t i = 0; i < d->group_count; i++) g->narrow[x][i] = (int32_t)((const int64_t *)*given[x])[i];
    *given[x] = g->narrow[x];
  }
}

static void free_case(struct groups_case *g) {
  free(g->a.bytes), free(g->b.bytes), free(g->c.bytes), free(g->bias.bytes), free(g->residual.bytes), free(g->expected.bytes);
}

static void make_case(struct groups_case *g, wsgemm_type type, wsgemm_ragged ragged, int64_t most) {
  memset(g, 0, sizeof *g);
  wsgemm_grouped_desc *d = &g->d;
  *d = (wsgemm_grouped_desc)WSGEMM_GROUPED_DESC_INIT;
  d->layout = draw_layout(&rng), d->transa = draw_op(type, &rng), d->transb = draw_op(type, &rng);
  d->type_a = d->type_b = d->type_c = type, d->type_scalar = type_of_scalars(type);
  if (type_is_half(type) && drawn(0, 2) == 0) d->type_c = WSGEMM_F32;
  d->ragged = ragged;
  d->group_count = drawn(0, MOST_GROUPS);
  static const double scalars[][2] = {{0, 0}, {1, 0}, {-0.7, 0.3}};
  const int64_t alpha = drawn(-3, 2), beta = drawn(0, 2);
  d->alpha = scalar_make(d->type_scalar, alpha < 0 ? 1 : scalars[alpha][0], 0);
  d->beta = scalar_make(d->type_scalar, scalars[beta][0], type_is_complex(type) ? scalars[beta][1] : 0);
  const int kind = (int)drawn(0, 3);
  if (ragged == WSGEMM_RAGGED_NONE)
    make_general(g, kind, most);
  else
    make_ragged(g, kind, most);
  make_epilogue(g);
  narrow_indices(g);
  memcpy(g->expected.bytes, g->c.bytes, (size_t)g->c.n * type_bytes(d->type_c));
}

static void same_bits_of(wsgemm_type type) {
  wsgemm_handle *handle;
  struct groups_case *g = malloc(sizeof *g);
  REQUIRE(g && wsgemm_create(&handle) == WSGEMM_SUCCESS, "no memory");
  for (int turn = 0; turn < 240 / check_scale(); turn++) {
    make_case(g, type, (wsgemm_ragged)(turn % 4), turn % 12 == 11 ? 150 : turn % 3 ? 60 : 12);
    wsgemm_set_num_threads(handle, (int)drawn(1, 6));
    wsgemm_set_policy(handle, (wsgemm_policy)drawn(0, WSGEMM_POLICY_STEAL));
    for (int64_t i = 0; i < g->d.group_count; i++)
      CHECK(wsgemm_gemm(NULL, &g->alone[i]) == WSGEMM_SUCCESS, "alone: %s", wsgemm_last_error());
    CHECK(wsgemm_gemm_grouped(handle, &g->d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    int64_t first = 0;
    const size_t bytes = type_bytes(g->d.type_c);
    while (first < g->c.n && memcmp(element(&g->c, first), element(&g->expected, first), bytes) == 0) first++;
    CHECK(first == g->c.n, "turn %d type %c ragged %d layout %d ops %d %d groups %lld m %lld n %lld k %lld: element %lld of %lld",
          turn, type_letter(type), (int)g->d.ragged, (int)g->d.layout, (int)g->d.transa, (int)g->d.transb,
          (long long)g->d.group_count, (long long)g->d.m, (long long)g->d.n, (long long)g->d.k, (long long)first,
          (long long)g->c.n);
    free_case(g);
  }
  wsgemm_destroy(handle);
  free(g);
}

static void same_bits(void) {
  rng = check_random_from(2301);
  for (int type = 0; type < N_TYPES; type++) same_bits_of((wsgemm_type)type);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static float a_memory[64], b_memory[64], c_memory[64];
static int64_t three_ends[3] = {1, 3, 4};

struct spoiled {
  const char *what;
  void (*spoil)(wsgemm_grouped_desc *d);
  wsgemm_status answer;
  const char *says;
};
#define SPOIL(name, ...) \
  static void name(wsgemm_grouped_desc *d) { __VA_ARGS__; }
SPOIL(struct_bytes, d->struct_bytes--)
SPOIL(ragged_4, d->ragged = (wsgemm_ragged)4)
SPOIL(index_2, d->index_bytes = 2)
SPOIL(count_negative, d->group_count = -1)
SPOIL(no_offsets, d->offsets = NULL)
SPOIL(offsets_unasked, d->ragged = WSGEMM_RAGGED_NONE)
SPOIL(m_given, d->m_array = three_ends)
SPOIL(falls, static const int64_t ends[3] = {1, 0, 4}; d->offsets = ends)
SPOIL(exceeds, static const int64_t ends[3] = {1, 3, 5}; d->offsets = ends)
SPOIL(begins_below, static const int64_t ends[3] = {-1, 3, 4}; d->offsets = ends)
SPOIL(lda_small, d->lda = 3)
SPOIL(ldb_by_group, static const int64_t lds[3] = {3, 2, 3}; d->ldb_array = lds)
SPOIL(k_by_group, static const int64_t ks[3] = {3, -2, 3}; d->k_array = ks)
SPOIL(b_by_group, static const void *const bs[3] = {b_memory, NULL, b_memory}; d->b_array = bs)
SPOIL(c_null, d->c = NULL)
SPOIL(type_6, d->type_a = (wsgemm_type)6)

static const struct spoiled table[] = {
    {"struct_bytes", struct_bytes, WSGEMM_INVALID_VALUE, "struct_bytes is"},
    {"ragged 4", ragged_4, WSGEMM_INVALID_VALUE, "ragged is 4"},
    {"index_bytes 2", index_2, WSGEMM_INVALID_VALUE, "index_bytes is 2"},
    {"group_count -1", count_negative, WSGEMM_INVALID_VALUE, "group_count is -1"},
    {"no offsets", no_offsets, WSGEMM_INVALID_POINTER, "offsets is NULL"},
    {"offsets unasked for", offsets_unasked, WSGEMM_INVALID_VALUE, "offsets are given"},
    {"m_array of ragged m", m_given, WSGEMM_INVALID_VALUE, "m_array"},
    {"an offset falls", falls, WSGEMM_INVALID_VALUE, "group 1: its offset is 0; it must be at least 1"},
    {"an offset exceeds m", exceeds, WSGEMM_INVALID_VALUE, "group 2: its offset is 5; there are only 4"},
    {"an offset below 0", begins_below, WSGEMM_INVALID_VALUE, "group 0: its offset is -1"},
    {"lda small", lda_small, WSGEMM_INVALID_VALUE, "lda is 3"},
    {"ldb of a group small", ldb_by_group, WSGEMM_INVALID_VALUE, "group 1: ldb is 2; it must be at least 3"},
    {"k of a group negative", k_by_group, WSGEMM_INVALID_VALUE, "group 1: k is -2"},
    {"b of a group NULL", b_by_group, WSGEMM_INVALID_POINTER, "group 1: b is NULL"},
    {"c NULL", c_null, WSGEMM_INVALID_POINTER, "c is NULL"},
    {"type 6", type_6, WSGEMM_INVALID_VALUE, "type_a is 6"},
};

static wsgemm_grouped_desc good(void) {
  wsgemm_grouped_desc d = WSGEMM_GROUPED_DESC_INIT;
  d.ragged = WSGEMM_RAGGED_M, d.group_count = 3, d.offsets = three_ends;
  d.m = 4, d.n = 2, d.k = 3, d.alpha.s = 1;
  d.a = a_memory, d.lda = 4, d.b = b_memory, d.ldb = 3, d.stride_b = 6, d.c = c_memory, d.ldc = 4;
  return d;
}

static void refused(void) {
  for (int i = 0; i < 64; i++) a_memory[i] = b_memory[i] = 1, c_memory[i] = 7;
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    wsgemm_grouped_desc d = good();
    table[i].spoil(&d);
    const wsgemm_status status = wsgemm_gemm_grouped(NULL, &d);
    CHECK(status == table[i].answer, "%s: %s", table[i].what, wsgemm_status_name(status));
    CHECK(strstr(wsgemm_last_error(), table[i].says) != NULL, "%s: \"%s\"", table[i].what, wsgemm_last_error());
    for (int e = 0; e < 64; e++) CHECK(c_memory[e] == 7, "%s: C was written", table[i].what);
  }
  CHECK(wsgemm_gemm_grouped(NULL, NULL) == WSGEMM_INVALID_POINTER, "no descriptor");
  wsgemm_grouped_desc d = good();
  d.group_count = 0;
  CHECK(wsgemm_gemm_grouped(NULL, &d) == WSGEMM_SUCCESS && c_memory[0] == 7, "no groups");
  d = good();
  CHECK(wsgemm_gemm_grouped(NULL, &d) == WSGEMM_SUCCESS && c_memory[0] == 3 && c_memory[7] == 3 && c_memory[8] == 7, "%g %g %g",
        (double)c_memory[0], (double)c_memory[7], (double)c_memory[8]);
}

static const struct check_case cases[] = {{"same_bits", same_bits}, {"refused", refused}};
CHECK_MAIN("grouped", cases)
