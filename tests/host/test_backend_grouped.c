/* test_backend_grouped.c - groups in device memory: with offsets there one launch that is told where they
 * are, without looking at them; with offsets in host memory one for few groups, or a product for each; what other
 * kernels take (test_backend_groups.c), and what is not built in. Seen by a fake driver, whose device memory cannot be accessed. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <string.h>

enum { N_GROUPS = 5, TOTAL = 300, N = 64, K = 128 };
static const int64_t host_ends[N_GROUPS] = {1, 1, 100, 130, 290};

/* Row-major, ragged rows: tokens by experts. */
static wsgemm_grouped_desc rows_desc(wsgemm_type type) {
  wsgemm_grouped_desc d = WSGEMM_GROUPED_DESC_INIT;
  char *memory = fake_alloc(FAKE_DEVICE, 0, 16 << 20);
  d.layout = WSGEMM_ROW_MAJOR, d.type_a = d.type_b = d.type_c = type, d.type_scalar = type_of_scalars(type);
  d.ragged = WSGEMM_RAGGED_M, d.group_count = N_GROUPS;
  d.m = TOTAL, d.n = N, d.k = K, d.alpha = scalar_make(d.type_scalar, 1, 0);
  d.a = memory, d.lda = K, d.b = memory + (4 << 20), d.ldb = N, d.stride_b = N * K, d.c = memory + (8 << 20), d.ldc = N;
  d.offsets = memory + (12 << 20);
  return d;
}

/* The same tokens, ragged along k: the gradient of the weights. */
static wsgemm_grouped_desc k_desc(wsgemm_type type) {
  wsgemm_grouped_desc d = rows_desc(type);
  d.ragged = WSGEMM_RAGGED_K, d.transa = WSGEMM_TRANS;
  d.m = K, d.k = TOTAL, d.stride_c = N * K;
  return d;
}

static wsgemm_status run(const wsgemm_grouped_desc *d) {
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  fake_forget();
  const wsgemm_status status = wsgemm_gemm_grouped(NULL, d);
  CHECK(!fake.trapped && !fake.misuse, "%s %s", fake.trapped ? fake.trapped : "", fake.misuse ? fake.misuse : "");
  return status;
}

static void check_one_launch(const wsgemm_grouped_desc *d, const char *kernel) {
  const unsigned n_blocks = strstr(kernel, "narrow") ? 264 : 132;
  const wsgemm_status status = run(d);
  REQUIRE(status == WSGEMM_SUCCESS && fake.n_launches == 1, "%s, %d launches", wsgemm_last_error(), fake.n_launches);
  const fake_launch *l = &fake.launch[0];
  const ws_grouped_args *args = &l->grouped;
  CHECK(strcmp(l->kernel, kernel) == 0, "%s, not %s", l->kernel, kernel);
  CHECK(l->cluster == 2 && l->grid[0] == n_blocks && args->sched.queue != NULL, "%u blocks in clusters of %u", l->grid[0],
        l->cluster);
  CHECK(args->ends == d->offsets && args->ends_are_64 == (d->index_bytes == 8) && args->n_groups == N_GROUPS, "offsets");
  CHECK(args->total == TOTAL && args->m == N && args->c_data == d->c, "total %lld, m %d", (long long)args->total, args->m);
}

static const ws_grouped_args *check_wide(const wsgemm_grouped_desc *d, const char *kernel) {
  REQUIRE(run(d) == WSGEMM_SUCCESS && fake.n_launches == 1, "%s, %d launches", wsgemm_last_error(), fake.n_launches);
  const fake_launch *l = &fake.launch[0];
  CHECK(strcmp(l->kernel, kernel) == 0 && l->grid[0] == 132 && !l->grouped.is_plain, "%s, %u blocks", l->kernel, l->grid[0]);
  return &l->grouped;
}

CHILD_CASE(one_launch) {
  (void)unused;
  static const struct {
    wsgemm_type type;
    const char *m, *k, *ragged_k;
  } types[] = {{WSGEMM_F16, "hgrouped_narrow_m", "hgrouped_narrow_k", "hgrouped_narrow_ragged_k"},
               {WSGEMM_BF16, "bgrouped_narrow_m", "bgrouped_narrow_k", "bgrouped_narrow_ragged_k"}};
  for (int t = 0; t < 2; t++) {
    wsgemm_grouped_desc d = rows_desc(types[t].type);
    check_one_launch(&d, types[t].m);
    d.index_bytes = 4;
    check_one_launch(&d, types[t].m);
    d.transb = WSGEMM_TRANS, d.ldb = K;
    check_one_launch(&d, types[t].k);
    d = k_desc(types[t].type);
    check_one_launch(&d, types[t].ragged_k);
    /* nothing to add up: zeros, where the offsets make sense */
    d.alpha.s = 0;
    check_one_launch(&d, types[t].ragged_k);
    CHECK(fake.launch[0].grouped.k == 0, "k = %d", fake.launch[0].grouped.k);
  }
}

/* What is read or computed for C beside the product; many columns a group. */
CHILD_CASE(steps) {
  (void)unused;
  wsgemm_grouped_desc d = rows_desc(WSGEMM_BF16);
  d.type_c = WSGEMM_F32, d.n = 63; /* odd, as floats leave one by one */
  check_wide(&d, "bgrouped_m");
  d = rows_desc(WSGEMM_F16);
  d.beta.s = 0.5f, d.epilogue = WSGEMM_EPILOGUE_RELU;
  const ws_grouped_args *args = check_wide(&d, "hgrouped_m");
  CHECK(args->beta == 0.5f && !args->beta_zero && args->epilogue.activation == WSGEMM_EPILOGUE_RELU, "beta %g", args->beta);
  d = k_desc(WSGEMM_BF16);
  d.bias = d.a, d.stride_bias = 3, d.type_bias = WSGEMM_F32, d.bias_per = WSGEMM_BIAS_PER_COLUMN;
  args = check_wide(&d, "bgrouped_ragged_k");
  CHECK(args->epilogue.bias == d.bias && args->epilogue.stride_bias == 3 && args->epilogue.bias_per_row, "bias");
  d = rows_desc(WSGEMM_BF16);
  d.group_count = 3; /* more than 80 rows a group */
  REQUIRE(run(&d) == WSGEMM_SUCCESS && strcmp(fake.launch[0].kernel, "bgrouped_m") == 0, "%s", fake.launch[0].kernel);
  CHECK(fake.launch[0].grouped.is_plain, "plain");
}

/* Ends in host memory go into the launch, if the kernel can do the rest. */
CHILD_CASE(ends_in_host_memory) {
  (void)unused;
  static const int32_t narrow_ends[N_GROUPS] = {1, 1, 100, 130, 290};
  for (int turn = 0; turn < 3; turn++) {
    wsgemm_grouped_desc d = turn == 2 ? k_desc(WSGEMM_F16) : rows_desc(WSGEMM_BF16);
    d.index_bytes = turn == 1 ? 4 : 8, d.offsets = turn == 1 ? (const void *)narrow_ends : host_ends;
    REQUIRE(run(&d) == WSGEMM_SUCCESS && fake.n_launches == 1, "%s, %d launches", wsgemm_last_error(), fake.n_launches);
    const fake_launch *l = &fake.launch[0];
    CHECK(strstr(l->kernel, "grouped") && !l->grouped.ends && l->grouped.n_groups == N_GROUPS, "%s", l->kernel);
    for (int i = 0; i < N_GROUPS; i++) CHECK(l->grouped_ends.end[i] == host_ends[i], "end %d: %d", i, l->grouped_ends.end[i]);
    d.a = (const char *)d.a + 2; /* another kernel, of small ones (test_backend_groups.c) */
    REQUIRE(run(&d) == WSGEMM_SUCCESS && fake.n_launches == 1, "%s, %d launches", wsgemm_last_error(), fake.n_launches);
    CHECK(strstr(fake.launch[0].kernel, "_groups_"), "%s", fake.launch[0].kernel);
  }
}

CHILD_CASE(group_by_group) {
  (void)unused;
  wsgemm_grouped_desc d = rows_desc(WSGEMM_F64);
  d.offsets = host_ends, d.n = d.ldb = d.ldc = 16384; /* too large to share a launch */
  CHECK(run(&d) == WSGEMM_SUCCESS && fake.n_launches >= 4, "%s, %d launches", wsgemm_last_error(), fake.n_launches);
  d.offsets = (const int64_t[N_GROUPS]){1, 1, 0, 130, 290};
  CHECK(run(&d) == WSGEMM_INVALID_VALUE && fake.n_launches == 0, "%s", wsgemm_last_error());
}

#define CHANGE(name, ...) \
  static void name(wsgemm_grouped_desc *d) { __VA_ARGS__; }
CHANGE(of_floats, *d = rows_desc(WSGEMM_F32))
CHANGE(other_half, d->type_c = WSGEMM_F16)
CHANGE(odd_residual, d->residual = d->a, d->ld_residual = 65)
CHANGE(columns, d->ragged = WSGEMM_RAGGED_N)
CHANGE(a_transposed, d->transa = WSGEMM_TRANS, d->lda = TOTAL)
CHANGE(many, d->group_count = 1025)
CHANGE(unaligned, d->a = (const char *)d->a + 2)
CHANGE(odd_n, d->n = 63)
CHANGE(sizes, d->n_array = (const char *)d->offsets + 4096)

/* What this kernel cannot do others can. */
CHILD_CASE(by_other_kernels) {
  (void)unused;
  void (*const changes[])(wsgemm_grouped_desc *) = {of_floats, other_half, odd_residual, columns, a_transposed,
                                                    many,      unaligned,  odd_n,        sizes};
  for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
    wsgemm_grouped_desc d = rows_desc(WSGEMM_BF16);
    changes[i](&d);
    REQUIRE(run(&d) == WSGEMM_SUCCESS && fake.n_launches == 1, "change %zu: %s", i, wsgemm_last_error());
    CHECK(strstr(fake.launch[0].kernel, "_groups_"), "change %zu: %s", i, fake.launch[0].kernel);
  }
}

CHILD_CASE(not_built_in) {
  (void)unused;
  wsgemm_grouped_desc d = rows_desc(WSGEMM_BF16);
  d.math = WSGEMM_MATH_PEDANTIC;
  CHECK(run(&d) == WSGEMM_NOT_SUPPORTED && strstr(wsgemm_last_error(), "tensor cores") && fake.n_launches == 0, "%s",
        wsgemm_last_error());
  static float host[TOTAL * K];
  d = rows_desc(WSGEMM_BF16);
  d.a = d.b = host, d.c = host;
  CHECK(run(&d) == WSGEMM_INVALID_POINTER, "%s", wsgemm_last_error());
  d = rows_desc(WSGEMM_BF16);
  d.b = NULL;
  CHECK(run(&d) == WSGEMM_INVALID_POINTER && strstr(wsgemm_last_error(), "b is NULL"), "%s", wsgemm_last_error());
}

static const struct check_case cases[] = {{"one_launch", one_launch},
                                          {"steps", steps},
                                          {"ends_in_host_memory", ends_in_host_memory},
                                          {"group_by_group", group_by_group},
                                          {"by_other_kernels", by_other_kernels},
                                          {"not_built_in", not_built_in}};
CHECK_MAIN("backend_grouped", cases)
