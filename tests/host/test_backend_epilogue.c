/* test_backend_epilogue.c - what is launched for an epilogue in device memory: by products of half
 * precision nothing more than the product, by others a kernel over C; a copy of C that is its own
 * residual; column sums. Seen by a fake driver. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <string.h>

enum { M = 304, N = 200, K = 136, PARTS = 1 << 16 };

/* With all parts; where there is room behind C. */
static wsgemm_gemm_desc full_desc(wsgemm_type type, wsgemm_layout layout) {
  wsgemm_gemm_desc d = device_desc(type, M, N, K, 0);
  char *room = (char *)d.c + (3 << 20);
  d.layout = layout;
  if (layout == WSGEMM_ROW_MAJOR) d.lda = K, d.ldb = N, d.ldc = N;
  d.epilogue = WSGEMM_EPILOGUE_SILU, d.out_scale = 0.5;
  d.bias_per = WSGEMM_BIAS_PER_COLUMN, d.type_bias = type, d.bias = room;
  d.residual = (char *)d.c + (1 << 20), d.ld_residual = d.ldc + 8;
  d.column_sums = room + PARTS;
  return d;
}

static void check_args(const ws_epilogue_args *e, const wsgemm_gemm_desc *d) {
  CHECK(e->is_any && e->activation == (int)d->epilogue && e->out_scale == d->out_scale, "activation and scale");
  CHECK(e->bias == d->bias && (e->bias_per_row != 0) == (d->layout == WSGEMM_ROW_MAJOR), "a bias of the caller's columns");
  CHECK(e->residual == d->residual && e->ld_residual == d->ld_residual, "residual");
}

static void check_sums(const fake_launch *l, const wsgemm_gemm_desc *d, const char *kernel) {
  const ws_column_sums_args *s = &l->column_sums;
  CHECK(strcmp(l->kernel, kernel) == 0 && s->c == d->c && s->ldc == d->ldc && s->sums == d->column_sums, "%s", l->kernel);
  CHECK((s->transposed != 0) == (d->layout == WSGEMM_ROW_MAJOR) && s->m * s->n == M * N, "the caller's columns");
}

CHILD_CASE(fused) {
  (void)unused;
  static const char *const names[] = {"bgemm_wgmma_64x64x64_c1_x1", "bgemm_direct_32x32x16_g8_k1", "bgemm_mma16_64x64x64_c1"};
  for (int kind = 0; kind < 3; kind++)
    for (int layout = WSGEMM_ROW_MAJOR; layout <= WSGEMM_COL_MAJOR; layout++) {
      fake.device[0].cc = 90;
      wsgemm_gemm_desc d = full_desc(WSGEMM_BF16, (wsgemm_layout)layout);
      REQUIRE(wsgemm_set_kernel(NULL, names[kind]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      REQUIRE(watched_gemm(NULL, &d) == WSGEMM_SUCCESS && fake.n_launches == 2, "%d launches: %s", fake.n_launches,
              wsgemm_last_error());
      const fake_launch *l = &fake.launch[0];
      const bool is_wgmma = is_of(l, "wgmma");
      CHECK(strcmp(row_of(l)->name, names[kind]) == 0, "%s", l->kernel);
      check_args(is_wgmma ? &l->wgmma.epilogue : &l->args.epilogue, &d);
      CHECK(!is_wgmma || !l->wgmma.is_plain, "%s takes no step", l->kernel);
      check_sums(&fake.launch[1], &d, "bcolumn_sums");
      d.column_sums = NULL;
      CHECK(launch_of(NULL, &d) != NULL, "one launch");
    }
}

/* Pieces of C take their pieces of bias and residual; the sums are of all of C. */
CHILD_CASE(chunks) {
  (void)unused;
  fake.device[0].cc = 90;
  wsgemm_gemm_desc d = full_desc(WSGEMM_F16, WSGEMM_COL_MAJOR);
  d.m = 9000, d.n = 5003, d.k = 25345;
  d.lda = 9001, d.ldb = d.k, d.ldc = d.m, d.ld_residual = d.m;
  REQUIRE(watched_gemm(NULL, &d) == WSGEMM_SUCCESS && fake.n_launches > 3 && fake.n_launches <= FAKE_N_LAUNCHES, "%d launches",
          fake.n_launches);
  for (int i = 0; i + 1 < fake.n_launches; i++) {
    const ws_wgmma_args *args = &fake.launch[i].wgmma;
    if (!is_of(&fake.launch[i], "wgmma")) continue;
    const int64_t first = ((const char *)args->c_data - (const char *)d.c) / 2;
    CHECK((const char *)args->epilogue.residual - (const char *)d.residual == first * 2, "residual");
    CHECK((const char *)args->epilogue.bias - (const char *)d.bias == first / d.m * 2, "bias");
  }
  CHECK(fake.launch[fake.n_launches - 1].column_sums.m == d.m && fake.launch[fake.n_launches - 1].column_sums.n == d.n, "sums");
}

CHILD_CASE(apart) {
  (void)unused;
  static const wsgemm_type types[] = {WSGEMM_F32, WSGEMM_F64};
  static const char *const kernels[][2] = {{"sscale", "scolumn_sums"}, {"dscale", "dcolumn_sums"}};
  for (int t = 0; t < 2; t++) {
    wsgemm_gemm_desc d = full_desc(types[t], WSGEMM_ROW_MAJOR);
    d.beta = scalar_make(types[t], 3, 0);
    REQUIRE(watched_gemm(NULL, &d) == WSGEMM_SUCCESS && fake.n_launches == 3, "%d launches", fake.n_launches);
    const fake_launch *l = fake.launch;
    CHECK(row_of(&l[0]) && !l[0].args.epilogue.is_any, "%s has an epilogue", l[0].kernel);
    CHECK(strcmp(l[1].kernel, kernels[t][0]) == 0 && !l[1].args.beta_zero, "%s", l[1].kernel);
    CHECK((t == 0 ? (double)l[1].args.beta.s[0] : l[1].args.beta.d[0]) == 1, "the product is scaled");
    check_args(&l[1].args.epilogue, &d);
    check_sums(&l[2], &d, kernels[t][1]);
    d.k = 0;
    REQUIRE(watched_gemm(NULL, &d) == WSGEMM_SUCCESS && fake.n_launches == 2, "%d launches without a product", fake.n_launches);
    CHECK((t == 0 ? (double)l[0].args.beta.s[0] : l[0].args.beta.d[0]) == 3, "beta");
  }
}

/* C is copied to where neither the product nor its parts of k write. */
CHILD_CASE(residual_in_c) {
  (void)unused;
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  wsgemm_gemm_desc d = full_desc(WSGEMM_F32, WSGEMM_COL_MAJOR);
  d.m = 64, d.n = 64, d.k = 8000, d.lda = 64, d.ldb = 8000, d.ldc = 70;
  d.residual = d.c, d.ld_residual = d.ldc, d.column_sums = NULL;
  size_t bytes = 0;
  REQUIRE(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS && bytes > 0, "%zu bytes", bytes);
  char *workspace = fake_alloc(FAKE_DEVICE, 0, bytes);
  for (int given = 0; given < 2; given++) {
    if (given) REQUIRE(wsgemm_set_workspace(h, workspace, bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 3, "%d launches: %s", fake.n_launches,
            wsgemm_last_error());
    const ws_align_copy_operand *copy = &fake.launch[0].pitch.operand[0];
    const ws_gemm_args *product = &fake.launch[1].args, *steps = &fake.launch[2].args;
    const char *end = (const char *)copy->to + copy->pitch * copy->n_lines * 2;
    CHECK(copy->from == d.c && copy->length == 2 * d.m && copy->n_lines == d.n && copy->ld == 2 * d.ldc, "not C is copied");
    CHECK(steps->epilogue.residual == copy->to && steps->epilogue.ld_residual == copy->pitch / 2, "not the copy is added");
    CHECK(product->split.n_splits > 1 && product->split.sums, "k is not in parts");
    if (given)
      CHECK(copy->to == workspace && (char *)product->split.sums >= end &&
                (char *)product->split.sums + product->split.n_splits * product->split.ld * d.n * 4 <= workspace + bytes,
            "copy and sums overlap");
  }
  REQUIRE(wsgemm_set_workspace(h, workspace, 4096) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  expect_failure(h, &d, WSGEMM_ALLOC_FAILED, "residual");
  d.residual = (char *)d.c + (1 << 20);
  CHECK(watched_gemm(h, &d) == WSGEMM_SUCCESS && fake.n_launches == 2, "a residual elsewhere needs no copy");
  wsgemm_destroy(h);
}

static const struct check_case cases[] = {
    {"fused", fused}, {"chunks", chunks}, {"apart", apart}, {"residual_in_c", residual_in_c}};
CHECK_MAIN("backend_epilogue", cases)
