/* test_backend_groups.c - groups of any type by the kernels that rows have for them: one launch, which is told where sizes and places
 * are without looking at them; small matrices at pointers by the rows for batches of such; products whose scalars are in device memory;
 * what such kernels cannot do; and which groups in host memory are launched together. Seen by a fake driver, whose device memory
 * cannot be accessed. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <string.h>

#include "cuda/rows/small_rows.h"

enum { N_GROUPS = 5, TOTAL = 300, M = 96, N = 72, K = 130, MIB = 1 << 20 };
static const int64_t host_ends[N_GROUPS] = {1, 1, 100, 130, 290};
static const wsgemm_type all_types[] = {WSGEMM_F32, WSGEMM_F64, WSGEMM_C32, WSGEMM_C64, WSGEMM_F16, WSGEMM_BF16};
enum { N_ALL_TYPES = sizeof all_types / sizeof all_types[0] };

static char *memory(void) {
  static char *at;
  if (!at) at = fake_alloc(FAKE_DEVICE, 0, 256 << 20);
  REQUIRE(at != NULL, "address space");
  return at;
}
/* The i-th array of sizes, lds or pointers. */
static void *array(int i) { return memory() + 128 * MIB + i * MIB; }

static bool is_double(wsgemm_type type) { return type == WSGEMM_F64 || type == WSGEMM_C64; }

/* Column-major, of a matrix for each group, without arrays. Lds are odd, so that no kernel by tensor maps takes them. */
static wsgemm_grouped_desc plain_desc(wsgemm_type type) {
  wsgemm_grouped_desc d = WSGEMM_GROUPED_DESC_INIT;
  d.type_a = d.type_b = d.type_c = type, d.type_scalar = type_of_scalars(type);
  d.group_count = N_GROUPS;
  d.m = M, d.n = N, d.k = K, d.alpha = scalar_make(d.type_scalar, 2, 0), d.beta = scalar_make(d.type_scalar, 3, 0);
  d.a = memory(), d.lda = 301, d.stride_a = 301 * 302;
  d.b = memory() + 32 * MIB, d.ldb = 303, d.stride_b = 303 * 304;
  d.c = memory() + 64 * MIB, d.ldc = 305, d.stride_c = 305 * 306;
  return d;
}
static wsgemm_grouped_desc ragged_desc(wsgemm_type type, wsgemm_ragged ragged) {
  wsgemm_grouped_desc d = plain_desc(type);
  d.ragged = ragged, d.offsets = array(0);
  *(ragged == WSGEMM_RAGGED_M ? &d.m : ragged == WSGEMM_RAGGED_N ? &d.n : &d.k) = TOTAL;
  return d;
}
static wsgemm_grouped_desc sizes_desc(wsgemm_type type) {
  wsgemm_grouped_desc d = plain_desc(type);
  d.m_array = array(1), d.n_array = array(2), d.k_array = array(3);
  return d;
}
static wsgemm_grouped_desc pointers_desc(wsgemm_type type) {
  wsgemm_grouped_desc d = plain_desc(type);
  d.a_array = array(4), d.b_array = array(5), d.c_array = array(6);
  d.a = d.b = d.c = NULL;
  d.lda_array = array(7), d.ldb_array = array(8), d.ldc_array = array(9);
  return d;
}

static wsgemm_status run_on(int cc, wsgemm_handle *h, const wsgemm_grouped_desc *d) {
  fake.device[0].cc = cc, fake.device[0].n_sms = 132;
  fake_forget();
  const wsgemm_status status = wsgemm_gemm_grouped(h, d);
  CHECK(!fake.trapped && !fake.misuse, "%s %s", fake.trapped ? fake.trapped : "", fake.misuse ? fake.misuse : "");
  return status;
}
static wsgemm_status run(const wsgemm_grouped_desc *d) { return run_on(90, NULL, d); }

/* ---- one launch ------------------------------------------------------------------------------ */

static void check_matrix(const char *what, const ws_group_matrix *x, const void *data, const void *array, const void *ld_array,
                         int64_t ld, int64_t stride, int along_k, wsgemm_type type) {
  static const int bytes[N_ALL_TYPES] = {4, 8, 8, 16, 2, 2};
  int type_bytes = 0;
  for (int t = 0; t < N_ALL_TYPES; t++) type_bytes = all_types[t] == type ? bytes[t] : type_bytes;
  CHECK(x->data == data && (const void *)x->array == array && x->ld_array == ld_array, "%s: places", what);
  /* neither of them is looked at beside an array */
  CHECK((x->ld == ld || ld_array) && (x->stride == stride || array) && x->along_k == along_k && x->bytes == type_bytes,
        "%s: ld %lld, stride %lld, along k %d, %d bytes", what, (long long)x->ld, (long long)x->stride, x->along_k, x->bytes);
}

static bool is_scalar(wsgemm_type type, const void *x, double value) {
  double of_double;
  float of_float;
  memcpy(&of_double, x, sizeof of_double), memcpy(&of_float, x, sizeof of_float);
  return is_double(type) ? of_double == value : (double)of_float == value;
}

/* Column-major. */
static void check_args(const wsgemm_grouped_desc *d, const ws_cuda_row *row, const fake_launch *l) {
  const ws_group_args *args = &l->groups;
  const ws_gemm_args *gemm = &args->common.gemm;
  const bool of_m = d->ragged == WSGEMM_RAGGED_M, of_n = d->ragged == WSGEMM_RAGGED_N, of_k = d->ragged == WSGEMM_RAGGED_K;
  check_matrix("A", &args->a, d->a, d->a_array, d->lda_array, d->lda, of_m || of_k ? 0 : d->stride_a,
               d->transa != WSGEMM_NO_TRANS, d->type_a);
  check_matrix("B", &args->b, d->b, d->b_array, d->ldb_array, d->ldb, of_n || of_k ? 0 : d->stride_b,
               d->transb == WSGEMM_NO_TRANS, d->type_b);
  check_matrix("C", &args->c, d->c, d->c_array, d->ldc_array, d->ldc, of_m || of_n ? 0 : d->stride_c, 0, d->type_c);
  CHECK(args->m == d->m_array && args->n == d->n_array && args->k == d->k_array && args->ends == d->offsets, "arrays");
  CHECK(args->ragged == (int)d->ragged && args->index_bytes == d->index_bytes && args->n_groups == d->group_count,
        "ragged %d, %d bytes, %d groups", args->ragged, args->index_bytes, args->n_groups);
  CHECK(gemm->m == d->m && gemm->n == d->n && gemm->k == d->k, "%lld x %lld x %lld", (long long)gemm->m, (long long)gemm->n,
        (long long)gemm->k);
  CHECK(is_scalar(d->type_a, &gemm->alpha, 2) && is_scalar(d->type_a, &gemm->beta, 3) && !gemm->beta_zero &&
            args->reads_operands == 1,
        "scalars");
  const int type_c = d->type_c == WSGEMM_F16 ? WS_HALF_C_F16 : d->type_c == WSGEMM_BF16 ? WS_HALF_C_BF16 : WS_HALF_C_F32;
  CHECK(gemm->type_c == type_c && gemm->region.region == 0 && gemm->triangular == 0 && gemm->structured == 0 &&
            args->common.structure == 0 && args->common.is_twice == 0,
        "kind");
  const ws_divisor sharers = ws_divisor_of(row->cluster);
  CHECK(memcmp(&gemm->sharers, &sharers, sizeof sharers) == 0, "%s: shared by %u", row->name, gemm->sharers.d);
  CHECK(!gemm->sched.queue && !gemm->split.sums, "what is not shared");
  const bool has_one_size = !of_m && !of_n && !d->m_array && !d->n_array;
  const int64_t tiles = ws_ceil_div(d->m, row->bm) * ws_ceil_div(d->n, row->bn);
  CHECK(args->product_tiles.d == (has_one_size ? tiles : 0), "%u tiles of each", args->product_tiles.d);
}

/* The most tiles that groups of so many may have together along what is ragged: as many of one as there is room for. */
static int64_t most_ragged_tiles(int64_t total, int tile, int64_t count) {
  int64_t n = 0, left = total;
  for (int64_t g = 0; g < count && left > 0; g++) {
    const int64_t length = g + 1 == count ? left : 1;
    n += ws_ceil_div(length, tile), left -= length;
  }
  return n;
}
static int64_t tiles_of(const wsgemm_grouped_desc *d, const ws_cuda_row *row) {
  const bool of_m = d->ragged == WSGEMM_RAGGED_M, of_n = d->ragged == WSGEMM_RAGGED_N;
  const int64_t rows = of_m ? most_ragged_tiles(d->m, row->bm, d->group_count) : ws_ceil_div(d->m, row->bm);
  const int64_t cols = of_n ? most_ragged_tiles(d->n, row->bn, d->group_count) : ws_ceil_div(d->n, row->bn);
  return rows * cols * (of_m || of_n ? 1 : d->group_count);
}

/* In entry: a row's kernel for groups, of these ops. Value: its launch. */
static const fake_launch *one_launch_of(wsgemm_handle *h, const wsgemm_grouped_desc *d, const char *entry) {
  const wsgemm_status status = run_on(90, h, d);
  const int n_launches = fake.n_launches;
  REQUIRE(status == WSGEMM_SUCCESS && n_launches == 1, "%s (%s), %d launches", wsgemm_status_name(status), wsgemm_last_error(),
          n_launches);
  const fake_launch *l = &fake.launch[0];
  const ws_cuda_row *row = row_of(l);
  REQUIRE(row != NULL, "%s is no row's", l->kernel);
  CHECK(row->of_groups && row->type == d->type_a && strcmp(l->entry, entry) == 0, "%s", l->kernel);
  CHECK(strlen(l->kernel) == ws_entry_length(row) + 1 + strlen(entry), "%s: of clusters in its name", l->kernel);
  if (row->kind == WS_ROW_SMALL) return l;
  CHECK(l->cluster == (unsigned)row->cluster && l->block[0] == (unsigned)row->n_threads &&
            l->shared_bytes == (unsigned)row->shared_bytes && !l->is_cooperative && !l->is_early,
        "%s: %u threads, %u bytes", row->name, l->block[0], l->shared_bytes);
  /* of ragged ones one more row, or column, of tiles at most */
  const int64_t wanted = tiles_of(d, row) * row->cluster,
                of_one_more = wanted + ws_max(ws_ceil_div(d->m, row->bm), ws_ceil_div(d->n, row->bn)) * row->cluster;
  const bool is_sure = d->ragged == WSGEMM_RAGGED_NONE || d->ragged == WSGEMM_RAGGED_K;
  CHECK(l->grid[0] >= wanted && l->grid[0] <= (is_sure ? wanted : of_one_more) && l->grid[0] % l->cluster == 0,
        "%s: %u blocks, not %lld", row->name, l->grid[0], (long long)wanted);
  return l;
}

CHILD_CASE(one_launch) {
  (void)unused;
  static const struct {
    wsgemm_op a, b;
    const char *entry;
  } ops[] = {{WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, "groups_nn"},
             {WSGEMM_NO_TRANS, WSGEMM_TRANS, "groups_nt"},
             {WSGEMM_TRANS, WSGEMM_NO_TRANS, "groups_tn"},
             {WSGEMM_TRANS, WSGEMM_TRANS, "groups_tt"}};
  for (int t = 0; t < N_ALL_TYPES; t++)
    for (int o = 0; o < 4; o++)
      for (int form = 0; form < 5; form++) {
        wsgemm_grouped_desc d = form == 3   ? sizes_desc(all_types[t])
                                : form == 4 ? pointers_desc(all_types[t])
                                            : ragged_desc(all_types[t], (wsgemm_ragged)(form + 1));
        d.transa = ops[o].a, d.transb = ops[o].b, d.index_bytes = o % 2 ? 4 : 8;
        const fake_launch *l = one_launch_of(NULL, &d, ops[o].entry);
        check_args(&d, row_of(l), l);
      }
}

/* Of the row-major call everything is exchanged; conjugation goes with the operand. */
CHILD_CASE(row_major) {
  (void)unused;
  wsgemm_grouped_desc d = ragged_desc(WSGEMM_C64, WSGEMM_RAGGED_M);
  d.layout = WSGEMM_ROW_MAJOR, d.transb = WSGEMM_CONJ_TRANS, d.n_array = array(2), d.lda_array = array(7), d.b_array = array(5);
  const ws_group_args *args = &one_launch_of(NULL, &d, "groups_tn")->groups;
  CHECK(args->ragged == WSGEMM_RAGGED_N && args->m == d.n_array && !args->n && args->common.gemm.m == N &&
            args->common.gemm.n == TOTAL,
        "ragged %d", args->ragged);
  CHECK((const void *)args->a.array == d.b_array && args->a.ld == d.ldb && args->a.along_k && !args->a.ld_array, "A");
  CHECK(args->b.data == d.a && args->b.ld_array == d.lda_array && args->b.along_k && args->b.stride == 0, "B");
  CHECK(args->common.gemm.a.conj && !args->common.gemm.b.conj, "conjugation");
}

CHILD_CASE(epilogue) {
  (void)unused;
  wsgemm_grouped_desc d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M);
  d.bias = array(10), d.bias_per = WSGEMM_BIAS_PER_COLUMN, d.stride_bias = 7, d.residual = array(11), d.ld_residual = 306,
  d.stride_residual = 9, d.epilogue = WSGEMM_EPILOGUE_RELU, d.out_scale = 0.5;
  const ws_group_args *args = &one_launch_of(NULL, &d, "groups_nn")->groups;
  const ws_epilogue_args *e = &args->common.gemm.epilogue;
  CHECK(e->is_any && e->activation == WSGEMM_EPILOGUE_RELU && !e->bias_per_row && e->out_scale == 0.5 && args->bias_bytes == 4,
        "steps");
  CHECK(e->bias == d.bias && e->stride_bias == 7 && e->residual == d.residual && e->ld_residual == 306 && e->stride_residual == 9,
        "places");
  d = ragged_desc(WSGEMM_BF16, WSGEMM_RAGGED_N);
  d.bias = array(10), d.type_bias = WSGEMM_BF16;
  args = &one_launch_of(NULL, &d, "groups_nn")->groups;
  CHECK(args->bias_bytes == 2 && args->common.gemm.epilogue.type_bias == WS_HALF_C_BF16, "%d bytes", args->bias_bytes);
}

CHILD_CASE(nothing_to_add_up) {
  (void)unused;
  wsgemm_grouped_desc d = pointers_desc(WSGEMM_F64);
  d.alpha.d = 0, d.a_array = d.b_array = NULL, d.lda_array = d.ldb_array = NULL; /* not read: may be NULL */
  CHECK(!one_launch_of(NULL, &d, "groups_nn")->groups.reads_operands, "alpha = 0");
  d = ragged_desc(WSGEMM_F64, WSGEMM_RAGGED_K), d.k = 0;
  CHECK(!one_launch_of(NULL, &d, "groups_nn")->groups.reads_operands, "k = 0");
  /* no elements */
  d = sizes_desc(WSGEMM_F32), d.n = 0;
  CHECK(run(&d) == WSGEMM_SUCCESS && fake.n_launches == 0, "n = 0");
  d = sizes_desc(WSGEMM_F32), d.group_count = 0;
  CHECK(run(&d) == WSGEMM_SUCCESS && fake.n_launches == 0, "no groups");
}

/* What is forced is used if it is of groups and can do it; rows for small matrices cannot do ragged ones. */
CHILD_CASE(forced_row) {
  (void)unused;
  int n_rows = 0, n_of_clusters = 0, n_large = 0;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    const bool is_small = row->kind == WS_ROW_SMALL;
    if (!row->of_groups && row->kind != WS_ROW_DMMA) continue;
    wsgemm_handle *h = handle_of_row(row);
    const bool is_tf32 = row->kind == WS_ROW_TF32 && row->n_slices == 1;
    if (is_tf32) REQUIRE(wsgemm_set_math(h, WSGEMM_MATH_TF32) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    wsgemm_grouped_desc d = ragged_desc(row->type, WSGEMM_RAGGED_M);
    d.k = 1000, d.ldb = 1001;
    const fake_launch *l = one_launch_of(h, &d, "groups_nn");
    CHECK((row_of(l) == row) == (row->of_groups && !is_small), "%s, not %s", l->kernel, row->name);
    check_args(&d, row_of(l), l);
    n_rows += row->of_groups && !is_small, n_of_clusters += l->cluster > 1, n_large += l->cluster > 8;
    wsgemm_destroy(h);
  }
  CHECK(n_rows > 50 && n_of_clusters > 20 && n_large > 2, "%d rows, %d of clusters, %d of large ones", n_rows, n_of_clusters,
        n_large);
  /* all that differ in their clusters alone, or none */
  for (int r = 0; r + 1 < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r], *next = row + 1;
    const size_t length = ws_entry_length(row);
    if (row->any_parts && next->any_parts && ws_entry_length(next) == length && strncmp(row->name, next->name, length) == 0)
      CHECK(row->of_groups == next->of_groups, "%s, and %s", row->name, next->name);
  }
  /* for sums of any length */
  const ws_cuda_row *row = gpu_row_named("sgemm_tf32w2_64x64_g1_k1");
  wsgemm_handle *h = handle_of_row(row);
  wsgemm_grouped_desc d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M);
  d.k = 1;
  CHECK(row_of(one_launch_of(h, &d, "groups_nn")) == row, "k = 1: %s", fake.launch[0].kernel);
  wsgemm_destroy(h);
}

CHILD_CASE(pedantic_floats) {
  (void)unused;
  wsgemm_grouped_desc d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M);
  d.math = WSGEMM_MATH_PEDANTIC;
  CHECK(row_of(one_launch_of(NULL, &d, "groups_nn"))->is_fma, "%s", fake.launch[0].kernel);
  d = ragged_desc(WSGEMM_C64, WSGEMM_RAGGED_M);
  d.math = WSGEMM_MATH_PEDANTIC;
  CHECK(row_of(one_launch_of(NULL, &d, "groups_nn"))->is_fma, "%s", fake.launch[0].kernel);
}

/* ---- small matrices at pointers -------------------------------------------------------------- */

enum { N_SMALL = 100 };

/* Column-major; places are arrays'. */
static wsgemm_grouped_desc small_desc(wsgemm_type type, int64_t m, int64_t n, int64_t k) {
  wsgemm_grouped_desc d = pointers_desc(type);
  d.group_count = N_SMALL, d.m = m, d.n = n, d.k = k;
  d.lda_array = d.ldb_array = d.ldc_array = NULL;
  d.lda = 72, d.ldb = 80, d.ldc = 66;
  return d;
}

static bool has_small_row(const fake_launch *l) { return row_of(l) && row_of(l)->kind == WS_ROW_SMALL; }
static int bytes_of(wsgemm_type type) { return (int)type_bytes(type); }

/* Of pieces by which lines are copied that begin at a multiple of 16 bytes. */
static int unit_of(int64_t length, int64_t ld, int bytes) {
  int unit = 16;
  while (length * bytes % unit || ld * bytes % unit) unit /= 2;
  return unit;
}

static void check_small_operand(const char *what, const ws_small_operand *op, int64_t ld, bool along_k, int64_t size, int64_t k,
                                wsgemm_type type) {
  const int bytes = bytes_of(type);
  const int64_t length = along_k ? k : size;
  CHECK(op->step_matrix == 0 && op->step_line == ld * bytes && !op->is_raw, "%s: steps %lld, %lld, %s", what,
        (long long)op->step_matrix, (long long)op->step_line, op->is_raw ? "raw" : "by pieces");
  CHECK(op->unit == unit_of(length, ld, bytes) && op->n_lines == (along_k ? size : k) && op->line_bytes == length * bytes,
        "%s: %d bytes at a time, %d lines of %d", what, op->unit, op->n_lines, op->line_bytes);
}

static void check_small_args(const wsgemm_grouped_desc *d, const fake_launch *l) {
  const ws_small_args *args = &l->small;
  const ws_cuda_row *row = row_of(l);
  const ws_gemm_args *gemm = &args->gemm;
  check_small_operand("A", &args->a, d->lda, d->transa != WSGEMM_NO_TRANS, d->m, d->k, d->type_a);
  check_small_operand("B", &args->b, d->ldb, d->transb == WSGEMM_NO_TRANS, d->n, d->k, d->type_b);
  const ws_small_places *places = &l->small_places;
  CHECK((const void *)places->a == d->a_array && (const void *)places->b == d->b_array && (void *)places->c == d->c_array,
        "places");
  const int type_c = d->type_c == WSGEMM_F16 ? WS_HALF_C_F16 : d->type_c == WSGEMM_BF16 ? WS_HALF_C_BF16 : WS_HALF_C_F32;
  CHECK(gemm->m == d->m && gemm->n == d->n && gemm->k == d->k && gemm->ldc == d->ldc && gemm->stride_c == 0 &&
            gemm->type_c == type_c && !gemm->epilogue.is_any,
        "%s: C", row->name);
  CHECK((gemm->c_vectors != 0) == (d->ldc * bytes_of(d->type_c) % 16 == 0), "%s: C by vectors %d", row->name, gemm->c_vectors);
  CHECK(is_scalar(d->type_a, &gemm->alpha, 2) && is_scalar(d->type_a, &gemm->beta, 3) && !gemm->beta_zero, "%s: scalars",
        row->name);
  const int owner = row->is_fma ? 1 : 32;
  CHECK(args->n_batch == d->group_count && args->n_together >= 1 &&
            gemm->sched.n_items == ws_ceil_div(d->group_count, args->n_together) && !gemm->sched.queue,
        "%s: %u items of %d", row->name, gemm->sched.n_items, args->n_together);
  CHECK(l->grid[0] >= 1 && l->grid[0] <= gemm->sched.n_items && l->cluster == 1 && !l->is_cooperative && !l->is_early &&
            l->block[0] % 32 == 0 && (int)l->block[0] <= row->n_threads && (int)l->shared_bytes <= row->shared_bytes,
        "%s: %u blocks of %u, %u bytes", row->name, l->grid[0], l->block[0], l->shared_bytes);
  CHECK(args->tiles_m == ws_ceil_div(d->m, row->bm) && args->tiles_n == ws_ceil_div(d->n, row->bn) &&
            args->n_together * args->tiles_m * args->tiles_n * owner <= (int)l->block[0],
        "%s: tiles", row->name);
  CHECK(args->a.matrix * args->n_together <= args->b_at && args->b_at + args->b.matrix * args->n_together <= args->stage &&
            WS_SMALL_STAGES * args->stage <= (int)l->shared_bytes,
        "%s: %d bytes", row->name, args->stage);
}

/* The strided batch of such, of lines and strides that are multiples of 16 bytes. */
static void check_like_strided(const wsgemm_grouped_desc *d, const fake_launch *of_places) {
  const fake_launch l = *of_places;
  wsgemm_gemm_desc batch = device_desc(d->type_a, d->m, d->n, d->k, 0);
  batch.transa = d->transa, batch.transb = d->transb, batch.alpha = d->alpha, batch.beta = d->beta;
  batch.batch_count = d->group_count, batch.lda = d->lda, batch.ldb = d->ldb, batch.ldc = d->ldc;
  batch.stride_a = batch.stride_b = 96, batch.stride_c = 6000;
  const fake_launch *strided = launch_of(NULL, &batch);
  CHECK(row_of(strided) == row_of(&l) && strided->block[0] == l.block[0] && strided->shared_bytes == l.shared_bytes &&
            strided->grid[0] == l.grid[0] && strided->small.n_together == l.small.n_together,
        "%s, strided %s", l.kernel, strided->kernel);
}

CHILD_CASE(small_pointers) {
  (void)unused;
  static const char *const entries[] = {"groups_nn", "groups_nt", "groups_tn", "groups_tt"};
  static const int64_t sizes[][3] = {{8, 8, 8}, {5, 7, 3}, {1, 1, 1}, {16, 4, 12}, {3, 9, 16}};
  for (int t = 0; t < N_ALL_TYPES; t++)
    for (int ops = 0; ops < 4; ops++)
      for (int i = 0; i < 5; i++) {
        wsgemm_grouped_desc d = small_desc(all_types[t], sizes[i][0], sizes[i][1], sizes[i][2]);
        d.transa = ops / 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS, d.transb = ops % 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
        if (i == 1) d.lda = 67, d.ldb = 69, d.ldc = 71;
        if (i == 2) d.stride_a = d.stride_b = d.stride_c = 0;
        const fake_launch *l = one_launch_of(NULL, &d, entries[ops]);
        REQUIRE(has_small_row(l), "%s", l->kernel);
        check_small_args(&d, l);
        if (i == 0) check_like_strided(&d, l);
      }
  /* halves to floats */
  wsgemm_grouped_desc d = small_desc(WSGEMM_BF16, 8, 8, 8);
  d.type_c = WSGEMM_F32;
  const fake_launch *l = one_launch_of(NULL, &d, "groups_nn");
  REQUIRE(has_small_row(l), "%s", l->kernel);
  check_small_args(&d, l);
  /* the places of what is row-major are exchanged */
  d = small_desc(WSGEMM_C64, 8, 6, 4);
  d.layout = WSGEMM_ROW_MAJOR, d.transa = WSGEMM_CONJ_TRANS;
  l = one_launch_of(NULL, &d, "groups_nt");
  REQUIRE(has_small_row(l), "%s", l->kernel);
  CHECK((const void *)l->small_places.a == d.b_array && (const void *)l->small_places.b == d.a_array &&
            (void *)l->small_places.c == d.c_array && l->small.gemm.m == 6 && l->small.gemm.n == 8 && l->small.gemm.b.conj &&
            !l->small.gemm.a.conj,
        "row-major");
  /* no more is launched than is resident; of this type multiply-adds have rows, of PEDANTIC halves too */
  d = small_desc(WSGEMM_F32, 4, 4, 4), d.group_count = 10000000;
  l = one_launch_of(NULL, &d, "groups_nn");
  CHECK(has_small_row(l) && l->small.n_batch == 10000000 && l->grid[0] <= 132 * 32 && l->grid[0] < l->small.gemm.sched.n_items,
        "%u blocks", l->grid[0]);
  d = small_desc(WSGEMM_F16, 8, 8, 8), d.math = WSGEMM_MATH_PEDANTIC;
  l = one_launch_of(NULL, &d, "groups_nn");
  CHECK(has_small_row(l) && row_of(l)->is_fma, "%s", l->kernel);
}

/* Every size has a row, also those of which no row for small matrices has room for one. */
CHILD_CASE(small_sizes) {
  (void)unused;
  static const int64_t sizes[] = {1, 2, 5, 16, 17, 33, 42, 63, 64};
  enum { N_SIZES = sizeof sizes / sizeof sizes[0] };
  for (int t = 0; t < N_ALL_TYPES; t++) {
    int n_small = 0, n_other = 0, n_without = 0;
    wsgemm_grouped_desc without = small_desc(all_types[t], 0, 0, 0);
    for (int i = 0; i < N_SIZES * N_SIZES * N_SIZES; i++) {
      const wsgemm_grouped_desc d =
          small_desc(all_types[t], sizes[i % N_SIZES], sizes[i / N_SIZES % N_SIZES], sizes[i / N_SIZES / N_SIZES]);
      if (run(&d) != WSGEMM_SUCCESS || fake.n_launches != 1)
        n_without++, without = d;
      else
        *(has_small_row(&fake.launch[0]) ? &n_small : &n_other) += 1;
    }
    CHECK(n_without == 0, "type %d: no row for %d sizes, such as %lld x %lld x %lld", all_types[t], n_without,
          (long long)without.m, (long long)without.n, (long long)without.k);
    CHECK(n_small > 50 && n_other > 2, "type %d: %d small, %d others", all_types[t], n_small, n_other);
  }
  wsgemm_grouped_desc d = small_desc(WSGEMM_F64, 8, 8, 8);
  d.ldb = 7;
  CHECK(run(&d) == WSGEMM_INVALID_VALUE && fake.n_launches == 0 && strstr(wsgemm_last_error(), "ldb"), "%s", wsgemm_last_error());
}

CHILD_CASE(small_but_otherwise) {
  (void)unused;
  static const char *const what[] = {"nothing", "15 groups", "m",          "n",         "k",      "an ld array", "sizes m",
                                     "sizes k", "bias",      "activation", "C strided", "ragged", "A strided"};
  for (int t = 0; t < N_ALL_TYPES; t++)
    for (int i = 0; i < 13; i++) {
      wsgemm_grouped_desc d = small_desc(all_types[t], 8, 8, 8);
      const bool is_complex = d.type_c == WSGEMM_C32 || d.type_c == WSGEMM_C64;
      if (is_complex && (i == 8 || i == 9)) continue; /* which have no epilogue */
      if (i == 1) d.group_count = 15;
      if (i == 2) d.m = 65;
      if (i == 3) d.n = 65;
      if (i == 4) d.k = 65;
      if (i == 5) d.ldb_array = array(8);
      if (i == 6) d.m_array = array(1);
      if (i == 7) d.k_array = array(3);
      if (i == 8) d.bias = array(10), d.type_bias = d.type_c;
      if (i == 9) d.epilogue = WSGEMM_EPILOGUE_RELU;
      if (i == 10) d.c_array = NULL, d.c = memory();
      if (i == 11) d.ragged = WSGEMM_RAGGED_K, d.offsets = array(0), d.a_array = d.b_array = NULL, d.a = d.b = memory();
      if (i == 12) d.a_array = NULL, d.a = memory();
      const fake_launch *l = one_launch_of(NULL, &d, "groups_nn");
      CHECK(has_small_row(l) == (i == 0), "type %d, %s: %s", all_types[t], what[i], l->kernel);
      if (i > 0) check_args(&d, row_of(l), l);
    }
  /* of nothing */
  wsgemm_grouped_desc d = small_desc(WSGEMM_F32, 8, 8, 8);
  d.alpha.s = 0;
  CHECK(!has_small_row(one_launch_of(NULL, &d, "groups_nn")) && !fake.launch[0].groups.reads_operands, "%s",
        fake.launch[0].kernel);
  d = small_desc(WSGEMM_F32, 8, 8, 0);
  CHECK(!has_small_row(one_launch_of(NULL, &d, "groups_nn")) && !fake.launch[0].groups.reads_operands, "%s",
        fake.launch[0].kernel);
}

/* One that is asked for takes what it has room for, also of few groups. */
CHILD_CASE(small_forced_row) {
  (void)unused;
  int n_rows = 0;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->kind != WS_ROW_SMALL) continue;
    CHECK(row->of_groups, "%s", row->name);
    wsgemm_handle *h = handle_of_row(row);
    wsgemm_grouped_desc d = small_desc(row->type, 8, 8, 8);
    const fake_launch *l = one_launch_of(h, &d, "groups_nn");
    CHECK(row_of(l) == row, "%s, not %s", l->kernel, row->name);
    if (has_small_row(l)) check_small_args(&d, l);
    d.group_count = 3, d.m = 24, d.k = 60;
    l = one_launch_of(h, &d, "groups_nn");
    CHECK(row_of(l) == row, "%s, not %s", l->kernel, row->name);
    if (has_small_row(l)) check_small_args(&d, l);
    d.ldc_array = array(9);
    CHECK(!has_small_row(one_launch_of(h, &d, "groups_nn")), "%s", fake.launch[0].kernel);
    n_rows++;
    wsgemm_destroy(h);
  }
  /* and another one takes small ones */
  const ws_cuda_row *row = gpu_row_named("sgemm_ffma_32x32_g4_k4");
  wsgemm_handle *h = handle_of_row(row);
  const wsgemm_grouped_desc d = small_desc(WSGEMM_F32, 8, 8, 8);
  const fake_launch *l = one_launch_of(h, &d, "groups_nn");
  CHECK(row_of(l) == row && l->cluster == 4, "%s", l->kernel);
  check_args(&d, row, l);
  wsgemm_destroy(h);
  CHECK(n_rows > 10, "%d rows", n_rows);
}

/* ---- scalars in device memory ---------------------------------------------------------------- */

/* Of device 0; those of this descriptor's type, side by side. */
static wsgemm_gemm_desc scalars_desc(wsgemm_type type, int64_t batch_count) {
  wsgemm_gemm_desc d = gemm_desc(type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
  const wsgemm_grouped_desc plain = plain_desc(type);
  d.a = plain.a, d.lda = plain.lda, d.stride_a = plain.stride_a;
  d.b = plain.b, d.ldb = plain.ldb, d.stride_b = plain.stride_b;
  d.c = plain.c, d.ldc = plain.ldc, d.stride_c = plain.stride_c;
  d.batch_count = batch_count, d.scalar_mode = WSGEMM_SCALAR_DEVICE;
  d.alpha.device = array(20), d.beta.device = (char *)array(20) + 16;
  return d;
}

static const fake_launch *scalars_launch(wsgemm_handle *h, const wsgemm_gemm_desc *d, const char *entry) {
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  const fake_launch *l = launch_of(h, d);
  const ws_cuda_row *row = row_of(l);
  REQUIRE(row && row->of_groups && row->kind != WS_ROW_SMALL && strcmp(l->entry, entry) == 0, "%s", l->kernel);
  const ws_group_args *args = &l->groups;
  CHECK(args->alpha == d->alpha.device && args->beta == d->beta.device, "%s: scalars", row->name);
  CHECK(args->n_groups == d->batch_count && args->ragged == 0 && !args->ends && !args->m && !args->n && !args->k, "%s: groups",
        row->name);
  CHECK(!args->a.array && !args->b.array && !args->c.array && !args->a.ld_array && !args->b.ld_array && !args->c.ld_array &&
            args->c.data == d->c && args->c.ld == d->ldc && args->c.stride == d->stride_c,
        "%s: places", row->name);
  const ws_gemm_args *gemm = &args->common.gemm;
  const int64_t tiles = ws_ceil_div(gemm->m, row->bm) * ws_ceil_div(gemm->n, row->bn);
  CHECK(args->product_tiles.d == tiles && l->grid[0] == tiles * d->batch_count * row->cluster &&
            l->cluster == (unsigned)row->cluster && (int)gemm->sharers.d == row->cluster,
        "%s: %u blocks", row->name, l->grid[0]);
  return l;
}

static void check_scalars(wsgemm_handle *h, const wsgemm_gemm_desc *d, const char *entry) {
  const ws_group_args *args = &scalars_launch(h, d, entry)->groups;
  check_matrix("A", &args->a, d->a, NULL, NULL, d->lda, d->stride_a, d->transa != WSGEMM_NO_TRANS, d->type_a);
  check_matrix("B", &args->b, d->b, NULL, NULL, d->ldb, d->stride_b, d->transb == WSGEMM_NO_TRANS, d->type_b);
  const ws_gemm_args *gemm = &args->common.gemm;
  CHECK(gemm->m == d->m && gemm->n == d->n && gemm->k == d->k && args->reads_operands == (d->k > 0), "sizes");
  CHECK(gemm->a.conj == (d->transa == WSGEMM_CONJ_TRANS) && gemm->b.conj == (d->transb == WSGEMM_CONJ_TRANS), "conjugation");
  size_t bytes = 77;
  CHECK(wsgemm_get_workspace_size(h, d, &bytes) == WSGEMM_SUCCESS && bytes == 0, "%zu bytes of workspace", bytes);
  char text[128];
  CHECK(explained_text(h, d, "scalars", text) && strstr(text, "device memory") && strstr(text, "one launch"), "explained");
  CHECK(explained_text(h, d, "problem", text) && !explained_text(h, d, "error", text), "explained, as an error");
}

CHILD_CASE(device_scalars) {
  (void)unused;
  static const char *const entries[] = {"groups_nn", "groups_nt", "groups_tn", "groups_tt"};
  for (int t = 0; t < N_ALL_TYPES; t++)
    for (int ops = 0; ops < 4; ops++)
      for (int batch = 1; batch <= 40; batch += 39) {
        const bool is_complex = all_types[t] == WSGEMM_C32 || all_types[t] == WSGEMM_C64;
        wsgemm_gemm_desc d = scalars_desc(all_types[t], batch);
        d.transa = ops / 2 ? (is_complex ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS) : WSGEMM_NO_TRANS;
        d.transb = ops % 2 ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
        check_scalars(NULL, &d, entries[ops]);
        d.k = 0, d.a = d.b = NULL; /* not read */
        check_scalars(NULL, &d, entries[ops]);
      }
  /* small batches have no other rows */
  wsgemm_gemm_desc d = scalars_desc(WSGEMM_F32, 1000);
  d.m = d.n = d.k = 8;
  check_scalars(NULL, &d, "groups_nn");
  /* halves to floats, whose scalars are floats */
  d = scalars_desc(WSGEMM_F16, 3), d.type_c = WSGEMM_F32;
  CHECK(scalars_launch(NULL, &d, "groups_nn")->groups.c.bytes == 4, "C");
  /* row-major: all but the scalars is exchanged */
  d = scalars_desc(WSGEMM_C32, 7), d.layout = WSGEMM_ROW_MAJOR, d.transb = WSGEMM_CONJ_TRANS;
  const ws_group_args *args = &scalars_launch(NULL, &d, "groups_tn")->groups;
  CHECK(args->a.data == d.b && args->a.stride == d.stride_b && args->b.data == d.a && args->b.stride == d.stride_a &&
            args->common.gemm.m == N && args->common.gemm.n == M && args->common.gemm.a.conj,
        "row-major");
  /* with an epilogue */
  d = scalars_desc(WSGEMM_BF16, 4);
  d.epilogue = WSGEMM_EPILOGUE_SILU, d.bias = array(10), d.type_bias = WSGEMM_F32, d.stride_bias = 7, d.residual = array(11),
  d.ld_residual = 306, d.stride_residual = 9;
  args = &scalars_launch(NULL, &d, "groups_nn")->groups;
  const ws_epilogue_args *e = &args->common.gemm.epilogue;
  CHECK(e->is_any && e->bias == d.bias && e->stride_bias == 7 && e->residual == d.residual && e->stride_residual == 9 &&
            args->bias_bytes == 4,
        "epilogue");
  /* and by the row that is asked for */
  wsgemm_handle *h = handle_of_row(gpu_row_named("dgemm_dmma_32x32_g1_k4"));
  d = scalars_desc(WSGEMM_F64, 3);
  check_scalars(h, &d, "groups_nn");
  CHECK(row_of(&fake.launch[0]) == NULL || fake.launch[0].cluster == 4, "%s", fake.launch[0].kernel);
  wsgemm_destroy(h);
}

static void expect_scalars(wsgemm_handle *h, const wsgemm_gemm_desc *d, wsgemm_status wanted, const char *words) {
  fake.device[0].n_sms = 132;
  expect_failure(h, d, wanted, words);
  CHECK(fake.n_launches == 0, "%s: %d launches", words, fake.n_launches);
}

CHILD_CASE(bad_device_scalars) {
  (void)unused;
  static const double host[4];
  char text[128];
  fake.device[0].cc = 90;
  for (int t = 0; t < N_ALL_TYPES; t++) {
    wsgemm_gemm_desc d = scalars_desc(all_types[t], 2);
    d.alpha.device = NULL;
    expect_scalars(NULL, &d, WSGEMM_INVALID_POINTER, "alpha.device is NULL");
    CHECK(explained_text(NULL, &d, "error", text) && strstr(text, "alpha.device is NULL"), "explained");
    d = scalars_desc(all_types[t], 1), d.beta.device = NULL;
    expect_scalars(NULL, &d, WSGEMM_INVALID_POINTER, "beta.device is NULL");
    d = scalars_desc(all_types[t], 1), d.alpha.device = host, d.beta.device = host + 2;
    expect_scalars(NULL, &d, WSGEMM_NOT_SUPPORTED, "not in a GPU's memory");
    d.a = d.b = host, d.c = (void *)(uintptr_t)host;
    expect_scalars(NULL, &d, WSGEMM_NOT_SUPPORTED, "not in a GPU's memory");
    d = scalars_desc(all_types[t], 1), d.beta.device = host;
    expect_scalars(NULL, &d, WSGEMM_NOT_SUPPORTED, "others in host memory");
    d = scalars_desc(all_types[t], 1), d.b = host;
    expect_scalars(NULL, &d, WSGEMM_INVALID_POINTER, "in host memory");
    d = scalars_desc(all_types[t], 1), d.a = d.b = host, d.c = (void *)(uintptr_t)host;
    expect_scalars(NULL, &d, WSGEMM_INVALID_POINTER, "in device memory, the matrices are not");
    d = scalars_desc(all_types[t], 1), d.a = NULL;
    expect_scalars(NULL, &d, WSGEMM_INVALID_POINTER, "a is NULL");
    d = scalars_desc(all_types[t], 1), d.lda = M - 1;
    expect_scalars(NULL, &d, WSGEMM_INVALID_VALUE, "lda");
    d = scalars_desc(all_types[t], -1);
    expect_scalars(NULL, &d, WSGEMM_INVALID_VALUE, "batch_count");
  }
  wsgemm_gemm_desc d = scalars_desc(WSGEMM_F32, 1);
  d.c = fake_alloc(FAKE_DEVICE, 1, MIB);
  expect_scalars(NULL, &d, WSGEMM_INVALID_POINTER, "different devices");
  d = scalars_desc(WSGEMM_F32, 1), d.beta.device = fake_alloc(FAKE_DEVICE, 1, MIB);
  expect_scalars(NULL, &d, WSGEMM_INVALID_POINTER, "devices 0 and 1");
}

CHILD_CASE(device_scalars_not_supported) {
  (void)unused;
  wsgemm_handle *h;
  char text[128];
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "handle");
  for (int t = 0; t < N_ALL_TYPES; t++) {
    const bool is_real = all_types[t] != WSGEMM_C32 && all_types[t] != WSGEMM_C64;
    fake.device[0].cc = 90;
    wsgemm_gemm_desc d = scalars_desc(all_types[t], 2);
    expect_scalars(h, &d, WSGEMM_NOT_SUPPORTED, "invariant");
    d.column_sums = array(12);
    if (is_real) expect_scalars(NULL, &d, WSGEMM_NOT_SUPPORTED, "column sums");
    if (is_real) CHECK(explained_text(NULL, &d, "error", text) && strstr(text, "column sums"), "explained");
    d = scalars_desc(all_types[t], 2), d.math = WSGEMM_MATH_PEDANTIC;
    if (all_types[t] != WSGEMM_F32 && all_types[t] != WSGEMM_F64 && all_types[t] != WSGEMM_C64)
      expect_scalars(NULL, &d, WSGEMM_NOT_SUPPORTED, "multiply-adds");
  }
  wsgemm_destroy(h);
  wsgemm_gemm_desc d = scalars_desc(WSGEMM_F64, 1);
  d.batch_count = 1 << 29, d.m = d.n = 1 << 20, d.lda = d.ldc = d.m, d.stride_a = d.stride_b = d.stride_c = 1;
  expect_scalars(NULL, &d, WSGEMM_NOT_SUPPORTED, "fewer tiles");
}

CHILD_CASE(device_scalars_beside_packed) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int is_b = 0; is_b < 2; is_b++) {
    wsgemm_gemm_desc d = scalars_desc(WSGEMM_F32, 1);
    const wsgemm_operand operand = is_b ? WSGEMM_OPERAND_B : WSGEMM_OPERAND_A;
    wsgemm_packed *packed = NULL;
    size_t bytes = 0;
    d.m = d.n = d.k = 256;
    REQUIRE(wsgemm_get_packed_size(NULL, &d, operand, &bytes) == WSGEMM_SUCCESS && bytes > 0 &&
                wsgemm_prepack(NULL, &d, operand, array(30), bytes, &packed) == WSGEMM_SUCCESS,
            "%zu bytes, %s", bytes, wsgemm_last_error());
    *(is_b ? &d.packed_b : &d.packed_a) = packed;
    expect_scalars(NULL, &d, WSGEMM_NOT_SUPPORTED, "packed");
    *(is_b ? &d.packed_b : &d.packed_a) = NULL;
    check_scalars(NULL, &d, "groups_nn");
    CHECK(wsgemm_packed_destroy(packed) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
}

static void scalars_on_other_gpu(int cc) {
  fake.device[0].cc = cc;
  for (int t = 0; t < N_ALL_TYPES; t++) {
    const wsgemm_gemm_desc d = scalars_desc(all_types[t], 2);
    expect_scalars(NULL, &d, WSGEMM_NOT_SUPPORTED, "9.0");
  }
}
CHILD_CASE(device_scalars_on_older_gpu) { (void)unused, scalars_on_other_gpu(80); }
CHILD_CASE(device_scalars_on_newer_gpu) { (void)unused, scalars_on_other_gpu(100); }

CHILD_CASE(device_scalars_of_no_elements) {
  (void)unused;
  for (int t = 0; t < N_ALL_TYPES; t++)
    for (int i = 0; i < 3; i++) {
      wsgemm_gemm_desc d = scalars_desc(all_types[t], 2);
      fake.device[0].cc = 90;
      *(i == 0 ? &d.m : i == 1 ? &d.n : &d.batch_count) = 0;
      CHECK(watched_gemm(NULL, &d) == WSGEMM_SUCCESS && fake.n_launches == 0, "%s, %d launches", wsgemm_last_error(),
            fake.n_launches);
    }
}

/* Where no cluster of 16 blocks has room another row is found. */
CHILD_CASE(without_large_clusters) {
  (void)unused;
  enum { PORTABLE = 8 };
  fake.device[0].most_cluster = PORTABLE;
  for (int t = 0; t < N_ALL_TYPES; t++)
    for (int64_t k = 1000; k <= 1000000; k *= 10) {
      wsgemm_grouped_desc d = small_desc(all_types[t], 16, 16, k);
      d.group_count = 1, d.lda = d.ldb = k + 1;
      d.transa = WSGEMM_TRANS;
      const wsgemm_status status = run(&d);
      CHECK(status == WSGEMM_SUCCESS && fake.n_launches == 1 && fake.launch[0].cluster <= PORTABLE, "type %d, k = %lld: %s (%s)",
            all_types[t], (long long)k, wsgemm_status_name(status), wsgemm_last_error());
    }
}

/* ---- what there is none for ------------------------------------------------------------------ */

static void expect(wsgemm_handle *h, int cc, const wsgemm_grouped_desc *d, wsgemm_status wanted, const char *words) {
  const wsgemm_status status = run_on(cc, h, d);
  CHECK(status == wanted && strstr(wsgemm_last_error(), words) && fake.n_launches == 0, "%s (%s), not %s (%s), %d launches",
        wsgemm_status_name(status), wsgemm_last_error(), wsgemm_status_name(wanted), words, fake.n_launches);
}

CHILD_CASE(not_supported) {
  (void)unused;
  wsgemm_handle *h;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "handle");
  for (int t = 0; t < N_ALL_TYPES; t++) {
    wsgemm_grouped_desc d = ragged_desc(all_types[t], WSGEMM_RAGGED_M);
    expect(h, 90, &d, WSGEMM_NOT_SUPPORTED, "invariant");
    d = pointers_desc(all_types[t]);
    expect(h, 90, &d, WSGEMM_NOT_SUPPORTED, "invariant");
  }
  wsgemm_destroy(h);
  static const wsgemm_type without_fma[] = {WSGEMM_C32, WSGEMM_F16, WSGEMM_BF16};
  for (int t = 0; t < 3; t++) {
    wsgemm_grouped_desc d = ragged_desc(without_fma[t], WSGEMM_RAGGED_M);
    d.math = WSGEMM_MATH_PEDANTIC;
    expect(NULL, 90, &d, WSGEMM_NOT_SUPPORTED, "multiply-adds");
  }
  wsgemm_grouped_desc d = sizes_desc(WSGEMM_F32);
  d.m = (int64_t)1 << 30, d.lda = d.ldc = d.m;
  expect(NULL, 90, &d, WSGEMM_NOT_SUPPORTED, "2^30");
  d = sizes_desc(WSGEMM_F32);
  d.group_count = 1 << 29, d.m = d.n = 1 << 20;
  expect(NULL, 90, &d, WSGEMM_NOT_SUPPORTED, "fewer tiles");
}

static void on_other_gpu(int cc) {
  for (int t = 0; t < N_ALL_TYPES; t++) {
    wsgemm_grouped_desc d = ragged_desc(all_types[t], WSGEMM_RAGGED_M);
    expect(NULL, cc, &d, WSGEMM_NOT_SUPPORTED, "9.0");
    d = pointers_desc(all_types[t]);
    expect(NULL, cc, &d, WSGEMM_NOT_SUPPORTED, "9.0");
  }
  /* ends that the host knows need none */
  wsgemm_grouped_desc d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M);
  d.offsets = host_ends;
  CHECK(run_on(cc, NULL, &d) == WSGEMM_SUCCESS && fake.n_launches >= 4, "%s", wsgemm_last_error());
}
CHILD_CASE(older_gpu) { (void)unused, on_other_gpu(80); }
CHILD_CASE(newer_gpu) { (void)unused, on_other_gpu(100); }

/* ---- where arrays and matrices are ----------------------------------------------------------- */

CHILD_CASE(places) {
  (void)unused;
  static float host[TOTAL * 306];
  static const void *host_places[N_GROUPS] = {host, host, host, host, host};
  wsgemm_grouped_desc d = sizes_desc(WSGEMM_F32);
  d.n_array = host_ends;
  expect(NULL, 90, &d, WSGEMM_NOT_SUPPORTED, "others in host memory");
  d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M);
  d.b_array = host_places;
  expect(NULL, 90, &d, WSGEMM_NOT_SUPPORTED, "others in host memory");
  for (int i = 0; i < 3; i++) {
    d = ragged_desc(WSGEMM_F64, WSGEMM_RAGGED_M);
    if (i == 0) d.a = host;
    if (i == 1) d.b = host;
    if (i == 2) d.c = host;
    expect(NULL, 90, &d, WSGEMM_INVALID_POINTER, "in host memory");
  }
  d = ragged_desc(WSGEMM_F64, WSGEMM_RAGGED_M), d.a = d.b = d.c = host;
  expect(NULL, 90, &d, WSGEMM_INVALID_POINTER, "in device memory, the matrices are not");
  for (int i = 0; i < 2; i++) { /* what the epilogue reads */
    d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M);
    if (i == 0) d.bias = host;
    if (i == 1) d.residual = host, d.ld_residual = d.ldc;
    expect(NULL, 90, &d, WSGEMM_INVALID_POINTER, "in host memory");
  }
  for (int i = 0; i < 2; i++) { /* the only place that the host sees, where all matrices come by arrays */
    d = pointers_desc(WSGEMM_F32);
    if (i == 0) d.bias = host;
    if (i == 1) d.residual = host, d.ld_residual = d.m;
    expect(NULL, 90, &d, WSGEMM_INVALID_POINTER, "in device memory, the matrices are not");
  }
  d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M), d.alpha.s = 0, d.a = d.b = host; /* what nobody reads */
  CHECK(run_on(90, NULL, &d) == WSGEMM_SUCCESS && fake.n_launches == 1, "%s", wsgemm_last_error());
  for (int i = 0; i < 3; i++) {
    d = sizes_desc(WSGEMM_C64);
    if (i == 0) d.a = NULL;
    if (i == 1) d.b = NULL;
    if (i == 2) d.c = NULL;
    expect(NULL, 90, &d, WSGEMM_INVALID_POINTER, i == 0 ? "a is NULL" : i == 1 ? "b is NULL" : "c is NULL");
  }
  d = sizes_desc(WSGEMM_F32), d.b = fake_alloc(FAKE_DEVICE, 1, MIB);
  expect(NULL, 90, &d, WSGEMM_INVALID_POINTER, "different devices");
  d = sizes_desc(WSGEMM_F32), d.k_array = fake_alloc(FAKE_DEVICE, 1, MIB);
  expect(NULL, 90, &d, WSGEMM_INVALID_POINTER, "devices");
}

/* Sizes that the host knows are checked, whoever else has sizes. */
CHILD_CASE(bad_sizes) {
  (void)unused;
  for (int i = 0; i < 4; i++) {
    wsgemm_grouped_desc d = plain_desc(WSGEMM_F32);
    d.m_array = i == 0 ? NULL : array(1), d.n_array = i == 0 ? array(2) : NULL;
    if (i == 0) d.m = -1000;
    if (i == 1) d.n = -1000;
    if (i == 2) d.k = -1;
    if (i == 3) d.m = -1;
    expect(NULL, 90, &d, WSGEMM_INVALID_VALUE, i == 1 ? "n is" : i == 2 ? "k is" : "m is");
  }
}

/* ---- arrays in host memory ------------------------------------------------------------------- */

CHILD_CASE(small_ones_together) {
  (void)unused;
  static const int32_t narrow_ends[N_GROUPS] = {1, 1, 100, 130, 290};
  for (int t = 0; t < N_ALL_TYPES; t++)
    for (int ragged = WSGEMM_RAGGED_M; ragged <= WSGEMM_RAGGED_K; ragged++) {
      wsgemm_grouped_desc d = ragged_desc(all_types[t], (wsgemm_ragged)ragged);
      d.index_bytes = ragged == WSGEMM_RAGGED_N ? 4 : 8;
      d.offsets = d.index_bytes == 4 ? (const void *)narrow_ends : host_ends;
      const fake_launch *l = one_launch_of(NULL, &d, "groups_nn");
      CHECK(!l->groups.ends && l->groups.n_groups == N_GROUPS, "%s", l->kernel);
      for (int i = 0; i < N_GROUPS; i++) CHECK(l->grouped_ends.end[i] == host_ends[i], "end %d: %d", i, l->grouped_ends.end[i]);
      wsgemm_grouped_desc in_device_memory = d;
      in_device_memory.offsets = NULL;
      check_args(&in_device_memory, row_of(l), l);
    }
}

static void expect_one_each(wsgemm_handle *h, const wsgemm_grouped_desc *d, int n, const char *what) {
  const wsgemm_status status = run_on(90, h, d);
  const int n_launches = fake.n_launches;
  CHECK(status == WSGEMM_SUCCESS && n_launches >= n, "%s: %s, %d launches", what, wsgemm_last_error(), n_launches);
  for (int i = 0; i < n_launches && i < FAKE_N_LAUNCHES; i++)
    CHECK(!strstr(fake.launch[i].kernel, "group"), "%s: %s", what, fake.launch[i].kernel);
}

CHILD_CASE(each_alone) {
  (void)unused;
  static const int64_t large_ends[N_GROUPS] = {2000, 4000, 6000, 8000, 10000};
  wsgemm_grouped_desc d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M);
  d.offsets = large_ends, d.m = 10000, d.n = 2000, d.k = 300, d.lda = d.ldc = 10001, d.ldb = 301;
  CHECK(run(&d) == WSGEMM_SUCCESS && fake.n_launches == N_GROUPS, "large ones: %s", wsgemm_last_error());
  expect_one_each(NULL, &d, N_GROUPS, "large ones");
  /* a kernel that is asked for */
  wsgemm_handle *h = handle_of_row(gpu_row_named("sgemm_ffma_64x64_g2_k1"));
  d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M), d.offsets = host_ends;
  expect_one_each(h, &d, 4, "a forced row");
  wsgemm_destroy(h);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "handle");
  expect_one_each(h, &d, 4, "invariant mode");
  wsgemm_destroy(h);
}

/* Arrays beside the ends, which nobody can read on the device. */
CHILD_CASE(host_arrays) {
  (void)unused;
  wsgemm_grouped_desc d = ragged_desc(WSGEMM_F32, WSGEMM_RAGGED_M);
  d.offsets = host_ends;
  static const int64_t sizes[N_GROUPS] = {70, 60, 50, 40, 30}, lds[N_GROUPS] = {301, 303, 305, 307, 309};
  d.n_array = sizes;
  expect_one_each(NULL, &d, 4, "host sizes n");
  d.n_array = NULL, d.k_array = sizes;
  expect_one_each(NULL, &d, 4, "host sizes k");
  d.k_array = NULL, d.ldb_array = lds;
  expect_one_each(NULL, &d, 4, "host lds");
  const void *places[N_GROUPS];
  for (int i = 0; i < N_GROUPS; i++) places[i] = (const char *)d.b + i * MIB;
  d.ldb_array = NULL, d.b_array = places;
  expect_one_each(NULL, &d, 4, "host pointers");
  d.ragged = WSGEMM_RAGGED_NONE, d.offsets = NULL, d.m = M;
  expect_one_each(NULL, &d, N_GROUPS, "pointers alone");
}

CHILD_CASE(strided) {
  (void)unused;
  for (int t = 0; t < N_ALL_TYPES; t++) {
    wsgemm_grouped_desc d = plain_desc(all_types[t]);
    d.group_count = 40;
    CHECK(run(&d) == WSGEMM_SUCCESS && n_writing_launches() == 1, "%s: %d launches", wsgemm_last_error(), fake.n_launches);
    const fake_launch *l = &fake.launch[fake.n_launches - 1];
    CHECK(!strstr(l->kernel, "group"), "%s", l->kernel);
    if (row_of(l) && !ws_is_by_map(row_of(l)->kind))
      CHECK(l->args.grid.n_batch == 40 && l->args.c == d.c && l->args.stride_c == d.stride_c, "%s: a batch of %lld", l->kernel,
            (long long)l->args.grid.n_batch);
  }
}

static const struct check_case cases[] = {{"one_launch", one_launch},
                                          {"row_major", row_major},
                                          {"epilogue", epilogue},
                                          {"nothing_to_add_up", nothing_to_add_up},
                                          {"forced_row", forced_row},
                                          {"pedantic_floats", pedantic_floats},
                                          {"small_pointers", small_pointers},
                                          {"small_sizes", small_sizes},
                                          {"small_but_otherwise", small_but_otherwise},
                                          {"small_forced_row", small_forced_row},
                                          {"device_scalars", device_scalars},
                                          {"bad_device_scalars", bad_device_scalars},
                                          {"device_scalars_not_supported", device_scalars_not_supported},
                                          {"device_scalars_beside_packed", device_scalars_beside_packed},
                                          {"device_scalars_on_older_gpu", device_scalars_on_older_gpu},
                                          {"device_scalars_on_newer_gpu", device_scalars_on_newer_gpu},
                                          {"device_scalars_of_no_elements", device_scalars_of_no_elements},
                                          {"without_large_clusters", without_large_clusters},
                                          {"not_supported", not_supported},
                                          {"older_gpu", older_gpu},
                                          {"newer_gpu", newer_gpu},
                                          {"places", places},
                                          {"bad_sizes", bad_sizes},
                                          {"small_ones_together", small_ones_together},
                                          {"each_alone", each_alone},
                                          {"host_arrays", host_arrays},
                                          {"strided", strided}};
CHECK_MAIN("backend_groups", cases)
