/* Makes a problem of random matrices, multiplies, judges: see trial.h. */
#include "trial.h"
#include "bench/harness/random.h"
#include "cli.h"
#include "gpu.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A matrix as it is stored: n_outer columns (rows, if row-major) of n_inner elements, ld apart. */
typedef struct {
  wsgemm_type type;
  wsgemm_layout layout;
  int64_t n_rows, n_cols, n_outer, n_inner, ld;
  void *data;
} matrix;

static bool make_matrix(matrix *x, const ws_trial *t, int64_t n_rows, int64_t n_cols) {
  const bool is_row_major = t->layout == WSGEMM_ROW_MAJOR;
  *x = (matrix){t->type, t->layout, n_rows, n_cols, is_row_major ? n_rows : n_cols, is_row_major ? n_cols : n_rows, 0, NULL};
  x->ld = x->n_inner + t->padding > 1 ? x->n_inner + t->padding : 1;
  x->data = calloc((size_t)(x->n_outer * x->ld + 1), (size_t)ws_cli_types[t->type].bytes);
  return x->data != NULL;
}

static double random_value(bool is_integer, uint64_t *random_state) {
  const uint64_t bits = ws_random(random_state);
  return is_integer ? (double)(bits % 15) - 7 : (double)(int64_t)bits * 0x1p-63;
}

static void fill(const matrix *x, const ws_trial *t, bool with_nan, uint64_t *random_state) {
  const int n_parts = ws_cli_types[x->type].n_parts;
  for (int64_t outer = 0; outer < x->n_outer; outer++)
    for (int64_t part = 0; part < x->ld * n_parts; part++) {
      const bool is_padding = part >= x->n_inner * n_parts;
      ws_cli_set(x->type, x->data, outer * x->ld * n_parts + part,
                 is_padding || with_nan ? NAN : random_value(t->has_integers, random_state));
    }
}

static bool padding_is_whole(const matrix *x) {
  const int n_parts = ws_cli_types[x->type].n_parts;
  for (int64_t outer = 0; outer < x->n_outer; outer++)
    for (int64_t part = x->n_inner * n_parts; part < x->ld * n_parts; part++)
      if (!isnan(ws_cli_get(x->type, x->data, outer * x->ld * n_parts + part))) return false;
  return true;
}

static ws_view view_of(const matrix *x, wsgemm_op op) {
  const bool is_row_major = x->layout == WSGEMM_ROW_MAJOR;
  ws_view v = {x->type, x->data, x->n_rows, x->n_cols, is_row_major ? x->ld : 1, is_row_major ? 1 : x->ld, false};
  if (op == WSGEMM_CONJ_NO_TRANS) v.is_conj = true;
  return op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS ? ws_view_transposed(v, op == WSGEMM_CONJ_TRANS) : v;
}

static bool transposes(wsgemm_op op) { return op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS; }

static wsgemm_gemm_desc describe(const ws_trial *t, const matrix *a, const matrix *b, const matrix *c) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.layout = t->layout;
  d.transa = t->transa;
  d.transb = t->transb;
  d.type_a = d.type_b = d.type_c = t->type;
  d.type_scalar = ws_cli_scalar_type(t->type);
  d.m = t->m;
  d.n = t->n;
  d.k = t->k;
  d.alpha = ws_cli_scalar(t->type, t->alpha);
  d.beta = ws_cli_scalar(t->type, t->beta);
  d.a = a->data;
  d.lda = a->ld;
  d.b = b->data;
  d.ldb = b->ld;
  d.c = c->data;
  d.ldc = c->ld;
  return d;
}

static bool multiply_and_judge(wsgemm_handle *h, const ws_trial *t, const matrix *a, const matrix *b, const matrix *c,
                               const matrix *before, int64_t max_terms, uint64_t seed, ws_check *out, char *why) {
  const wsgemm_gemm_desc d = describe(t, a, b, c);
  char gpu_why[WS_GPU_WHY_BYTES];
  const wsgemm_status status = t->on_gpu ? ws_gpu_gemm(h, &d, NULL, gpu_why) : wsgemm_gemm(h, &d);
  if (status != WSGEMM_SUCCESS) {
    snprintf(why, WS_TRIAL_WHY_BYTES, "%.*s", WS_TRIAL_WHY_BYTES - 1, t->on_gpu ? gpu_why : ws_cli_why(status));
    return false;
  }
  const ws_product p = {.a = view_of(a, t->transa),
                        .b = view_of(b, t->transb),
                        .c = view_of(c, WSGEMM_NO_TRANS),
                        .before = view_of(before, WSGEMM_NO_TRANS),
                        .alpha = ws_cli_fit(t->type, t->alpha),
                        .beta = ws_cli_fit(t->type, t->beta)};
  if (!ws_check_product(&p, max_terms, seed, out)) {
    snprintf(why, WS_TRIAL_WHY_BYTES, "out of memory");
    return false;
  }
  if (!ws_check_passed(out) || (t->has_integers && out->worst != 0)) {
    ws_check_describe(out, why, WS_TRIAL_WHY_BYTES);
    return false;
  }
  if (!padding_is_whole(c)) {
    snprintf(why, WS_TRIAL_WHY_BYTES, "an element outside of C was written");
    return false;
  }
  return true;
}

bool ws_trial_run(wsgemm_handle *h, const ws_trial *t, int64_t max_terms, uint64_t seed, ws_check *out,
                  char why[WS_TRIAL_WHY_BYTES]) {
  matrix a = {0}, b = {0}, c = {0}, before = {0};
  uint64_t random_state = seed;
  *out = (ws_check){0};
  bool ok = make_matrix(&a, t, transposes(t->transa) ? t->k : t->m, transposes(t->transa) ? t->m : t->k) &&
            make_matrix(&b, t, transposes(t->transb) ? t->n : t->k, transposes(t->transb) ? t->k : t->n) &&
            make_matrix(&c, t, t->m, t->n) && make_matrix(&before, t, t->m, t->n);
  if (ok) {
    const bool reads_c = t->beta.re != 0 || t->beta.im != 0;
    fill(&a, t, false, &random_state);
    fill(&b, t, false, &random_state);
    fill(&c, t, !reads_c, &random_state);
    memcpy(before.data, c.data, (size_t)(c.n_outer * c.ld * ws_cli_types[t->type].bytes));
    ok = multiply_and_judge(h, t, &a, &b, &c, &before, max_terms, seed, out, why);
  } else {
    snprintf(why, WS_TRIAL_WHY_BYTES, "out of memory");
  }
  free(a.data);
  free(b.data);
  free(c.data);
  free(before.data);
  return ok;
}

void ws_trial_describe(const ws_trial *t, char *text, size_t bytes) {
  static const char letters[] = "NTCR"; /* from WSGEMM_NO_TRANS on; R: conjugated, not transposed */
  snprintf(text, bytes, "%" PRId64 " x %" PRId64 " x %" PRId64 " %c%c %s-major", t->m, t->n, t->k,
           letters[t->transa - WSGEMM_NO_TRANS], letters[t->transb - WSGEMM_NO_TRANS],
           t->layout == WSGEMM_ROW_MAJOR ? "row" : "col");
}

void ws_trial_tile(const wsgemm_kernel_info *kernel, int *mr, int *nr) {
  const bool is_cpu = strcmp(kernel->backend, "cpu") == 0;
  *mr = is_cpu ? kernel->bm : 8, *nr = is_cpu ? kernel->bn : 8;
}
