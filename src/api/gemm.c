/* gemm.c - the gemm calls: checks, row-major as the transpose, trivial cases. Typed calls and the
 * descriptor form make the same ws_problem.
 *
 * Order of checks: handle, enums, sizes, lds, quick return, pointers. Nothing is written before all
 * of them have passed. */
#include <string.h>

#include "api/arguments.h"
#include "api/problem.h"
#include "core/status.h"
#include "core/text.h"
#include "core/tile.h"
#include "ops/gemm.h"
#include "ops/grouped.h"

/* What the caller called it, for error messages; the problem is column-major. */
typedef struct said {
  wsgemm_layout layout;
  wsgemm_op transa, transb;
} said;

/* Elements of A and B as they are stored: `length` contiguous ones, `count` times. */
static int64_t a_length(const ws_problem *p) { return p->a.trans ? p->k : p->m; }
static int64_t a_count(const ws_problem *p) { return p->a.trans ? p->m : p->k; }
static int64_t b_length(const ws_problem *p) { return p->b.trans ? p->n : p->k; }
static int64_t b_count(const ws_problem *p) { return p->b.trans ? p->k : p->n; }

/* ---- making the problem ---------------------------------------------------------------------- */

/* Row-major C = A B is column-major C^T = B^T A^T, and a row-major matrix is its own column-major
 * transpose: exchanging the operands is all. */
WS_INLINE void set_operands(ws_problem *p, wsgemm_type type, const said *s, int64_t m, int64_t n, int64_t k, const void *a,
                            int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc) {
  p->math = WSGEMM_MATH_INHERIT;
  p->k = k;
  p->c.data = c, p->c.ld = ldc, p->c.stride = 0;
  p->c.type = type;
  p->c.region = WS_ALL, p->c.real_diagonal = false;
  if (s->layout == WSGEMM_ROW_MAJOR) {
    p->m = n, p->n = m;
    ws_set_operand(&p->a, type, s->transb, b, ldb), ws_set_operand(&p->b, type, s->transa, a, lda);
  } else {
    p->m = m, p->n = n;
    ws_set_operand(&p->a, type, s->transa, a, lda), ws_set_operand(&p->b, type, s->transb, b, ldb);
  }
  p->batch_count = 1;
  p->scale.conj_a = p->scale.conj_b = false;
  p->tuning = NULL;
  p->has_epilogue = p->has_packed = p->in_place = false;
}

/* A descriptor of the first version has none (one with an activation was made whole:
 * check_desc). */
WS_INLINE bool has_epilogue(const wsgemm_gemm_desc *d) {
  return d->struct_bytes == sizeof *d &&
         (d->epilogue != WSGEMM_EPILOGUE_NONE || d->bias || d->residual || d->column_sums || d->out_scale != 1);
}

WS_INLINE bool has_packed(const wsgemm_gemm_desc *d) { return d->struct_bytes == sizeof *d && (d->packed_a || d->packed_b); }

/* Of row-major C rows become columns. */
static void make_epilogue(const wsgemm_gemm_desc *d, ws_problem *p) {
  p->has_epilogue = has_epilogue(d);
  if (!p->has_epilogue) return;
  const bool transposed = d->layout == WSGEMM_ROW_MAJOR;
  p->epilogue = (ws_epilogue){
      .activation = d->epilogue,
      .transposed = transposed,
      .bias_per_row = (d->bias_per == WSGEMM_BIAS_PER_ROW) != transposed,
      .type_bias = d->type_bias,
      .bias = d->bias,
      .stride_bias = d->stride_bias,
      .residual = d->residual,
      .ld_residual = d->ld_residual,
      .stride_residual = d->stride_residual,
      .out_scale = d->out_scale,
      .column_sums = d->column_sums,
      .stride_column_sums = d->stride_column_sums,
  };
}

static void set_scale_of_one(wsgemm_type type_scalar, ws_scale *scale) {
  if (type_scalar == WSGEMM_F64 || type_scalar == WSGEMM_C64)
    ws_set_scale_d(scale, 1, 0, 1, 0);
  else
    ws_set_scale_s(scale, 1, 0, 1, 0);
}

static void make_problem(const wsgemm_gemm_desc *d, const said *s, ws_problem *p) {
  set_operands(p, d->type_a, s, d->m, d->n, d->k, d->a, d->lda, d->b, d->ldb, d->c, d->ldc);
  const bool transposed = d->layout == WSGEMM_ROW_MAJOR;
  p->batch_count = d->batch_count;
  p->a.stride = transposed ? d->stride_b : d->stride_a;
  p->b.stride = transposed ? d->stride_a : d->stride_b;
  p->c.stride = d->stride_c;
  p->c.type = d->type_c;
  p->math = d->math;
  make_epilogue(d, p);
  if (has_packed(d)) {
    p->has_packed = true;
    p->packed = (ws_packed_pair){
        .a = transposed ? d->packed_b : d->packed_a, .b = transposed ? d->packed_a : d->packed_b, .transposed = transposed};
  }
  if (d->scalar_mode == WSGEMM_SCALAR_DEVICE) { /* whoever reads them takes them from the descriptor */
    set_scale_of_one(d->type_scalar, &p->scale);
    return;
  }
  switch (d->type_scalar) {
  case WSGEMM_F32:
    ws_set_scale_s(&p->scale, d->alpha.s, 0, d->beta.s, 0);
    break;
  case WSGEMM_F64:
    ws_set_scale_d(&p->scale, d->alpha.d, 0, d->beta.d, 0);
    break;
  case WSGEMM_C32:
    ws_set_scale_s(&p->scale, d->alpha.c.re, d->alpha.c.im, d->beta.c.re, d->beta.c.im);
    break;
  case WSGEMM_C64:
    ws_set_scale_d(&p->scale, d->alpha.z.re, d->alpha.z.im, d->beta.z.re, d->beta.z.im);
    break;
  case WSGEMM_F16:
  case WSGEMM_BF16:
    break; /* no scalar is: types_fit */
  }
}

/* ---- checks: the quick one lets nothing bad through; the full one says what is wrong --------- */

/* Sizes and lds below 2^30 cannot overflow anything. */
WS_INLINE bool surely_good_shape(const ws_problem *p, const said *s) {
  const uint64_t all = (uint64_t)(p->m | p->n | p->k | p->a.ld | p->b.ld | p->c.ld);
  return (int)ws_known_layout(s->layout) & (int)ws_known_op(s->transa) & (int)ws_known_op(s->transb) & (all >> 30 == 0) &
         (p->a.ld >= a_length(p)) & (p->b.ld >= b_length(p)) & (p->c.ld >= p->m) & (p->a.ld > 0) & (p->b.ld > 0) & (p->c.ld > 0) &
         (p->batch_count == 1) & !p->has_epilogue & !p->has_packed;
}

static wsgemm_status check_enums(wsgemm_handle *h, const said *s) {
  wsgemm_status status = ws_check_layout(h, s->layout);
  if (!status) status = ws_check_op(h, "transa", s->transa);
  return status ? status : ws_check_op(h, "transb", s->transb);
}

static int64_t a_bytes(const ws_problem *p) {
  return ws_batch_bytes(a_length(p), a_count(p), p->a.ld, p->batch_count, p->a.stride, ws_types[p->a.type].bytes);
}
static int64_t b_bytes(const ws_problem *p) {
  return ws_batch_bytes(b_length(p), b_count(p), p->b.ld, p->batch_count, p->b.stride, ws_types[p->a.type].bytes);
}
static int64_t c_bytes(const ws_problem *p) {
  return ws_batch_bytes(p->m, p->n, p->c.ld, p->batch_count, p->c.stride, ws_types[p->c.type].bytes);
}
/* Those of an epilogue, if it has them. */
static int64_t residual_bytes(const ws_problem *p) {
  return ws_batch_bytes(p->m, p->n, p->epilogue.ld_residual, p->batch_count, p->epilogue.stride_residual,
                        ws_types[p->c.type].bytes);
}
static int64_t bias_bytes(const ws_problem *p) {
  const int64_t n = p->epilogue.bias_per_row ? p->m : p->n;
  return ws_batch_bytes(n, 1, n, p->batch_count, p->epilogue.stride_bias, ws_types[p->epilogue.type_bias].bytes);
}
static int sum_bytes(const ws_problem *p) { return p->c.type == WSGEMM_F64 ? (int)sizeof(double) : (int)sizeof(float); }
static int64_t column_sums_bytes(const ws_problem *p) {
  const int64_t n = p->epilogue.transposed ? p->m : p->n;
  return ws_batch_bytes(n, 1, n, p->batch_count, p->epilogue.stride_column_sums, sum_bytes(p));
}

static wsgemm_status check_epilogue_shape(wsgemm_handle *h, const ws_problem *p) {
  const ws_epilogue *e = &p->epilogue;
  const int64_t bytes = ws_types[p->c.type].bytes;
  const wsgemm_status status = e->residual ? ws_check_ld(h, "ld_residual", p->m, p->n, e->ld_residual, bytes) : WSGEMM_SUCCESS;
  if (status || p->batch_count < 1) return status;
  const struct {
    const char *name;
    bool is_there;
    int64_t stride, bytes;
  } parts[] = {{"stride_bias", e->bias, e->stride_bias, e->bias ? bias_bytes(p) : 0},
               {"stride_residual", e->residual, e->stride_residual, e->residual ? residual_bytes(p) : 0},
               {"stride_column_sums", e->column_sums, e->stride_column_sums, e->column_sums ? column_sums_bytes(p) : 0}};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (parts[i].is_there && parts[i].bytes < 0)
      return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %lld; a batch of %lld spans more than 2^63 - 1 bytes", parts[i].name,
                     (long long)parts[i].stride, (long long)p->batch_count);
  return WSGEMM_SUCCESS;
}

static wsgemm_status check_shape(wsgemm_handle *h, const ws_problem *p, const said *s) {
  const bool transposed = s->layout == WSGEMM_ROW_MAJOR;
  const int64_t bytes = ws_types[p->a.type].bytes;
  wsgemm_status status = check_enums(h, s);
  if (!status) status = ws_check_size(h, "m", transposed ? p->n : p->m);
  if (!status) status = ws_check_size(h, "n", transposed ? p->m : p->n);
  if (!status) status = ws_check_size(h, "k", p->k);
  if (!status) status = ws_check_size(h, "batch_count", p->batch_count);
  if (!status && transposed) status = ws_check_ld(h, "lda", b_length(p), b_count(p), p->b.ld, bytes);
  if (!status) status = ws_check_ld(h, transposed ? "ldb" : "lda", a_length(p), a_count(p), p->a.ld, bytes);
  if (!status && !transposed) status = ws_check_ld(h, "ldb", b_length(p), b_count(p), p->b.ld, bytes);
  if (!status) status = ws_check_ld(h, "ldc", p->m, p->n, p->c.ld, ws_types[p->c.type].bytes);
  if (!status && p->has_epilogue) status = check_epilogue_shape(h, p);
  if (!status && p->batch_count > 1 && (a_bytes(p) < 0 || b_bytes(p) < 0 || c_bytes(p) < 0))
    return ws_fail(h, WSGEMM_INVALID_VALUE, "batch_count is %lld; with these strides it spans more than 2^63 - 1 bytes",
                   (long long)p->batch_count);
  return !status && p->has_packed ? ws_check_packed(h, p) : status;
}

/* C, and column_sums after it, are written: neither may overlap another or what is read. */
static wsgemm_status check_overlaps(wsgemm_handle *h, const ws_problem *p, const said *s) {
  enum { C, COLUMN_SUMS, A, B, BIAS, RESIDUAL, N_EXTENTS };
  const bool transposed = s->layout == WSGEMM_ROW_MAJOR;
  const int bytes = ws_types[p->a.type].bytes, c_element = ws_types[p->c.type].bytes;
  ws_extent all[N_EXTENTS] = {{"c", 0, 0}};
  all[C] = ws_extent_of("c", p->c.data, p->batch_count, p->c.stride, c_element, c_bytes(p));
  if (!ws_product_is_zero(p)) {
    all[transposed ? B : A] = ws_extent_of(transposed ? "b" : "a", p->a.data, p->batch_count, p->a.stride, bytes, a_bytes(p));
    all[transposed ? A : B] = ws_extent_of(transposed ? "a" : "b", p->b.data, p->batch_count, p->b.stride, bytes, b_bytes(p));
  }
  if (p->has_epilogue) {
    const ws_epilogue *e = &p->epilogue;
    if (e->column_sums)
      all[COLUMN_SUMS] =
          ws_extent_of("column_sums", e->column_sums, p->batch_count, e->stride_column_sums, sum_bytes(p), column_sums_bytes(p));
    if (e->bias)
      all[BIAS] = ws_extent_of("bias", e->bias, p->batch_count, e->stride_bias, ws_types[e->type_bias].bytes, bias_bytes(p));
    if (e->residual)
      all[RESIDUAL] = ws_extent_of("residual", e->residual, p->batch_count, e->stride_residual, c_element, residual_bytes(p));
  }
  for (int written = C; written <= COLUMN_SUMS; written++)
    for (int i = written + 1; i < N_EXTENTS; i++)
      if (ws_extents_meet(&all[written], &all[i]) && !(written == C && i == RESIDUAL && ws_residual_is_c(p)))
        return ws_fail(h, WSGEMM_INVALID_VALUE, "%s overlaps %s; it must not", all[written].name, all[i].name);
  return WSGEMM_SUCCESS;
}

static wsgemm_status check_pointers(wsgemm_handle *h, const ws_problem *p, const said *s, bool wants_check) {
  const bool transposed = s->layout == WSGEMM_ROW_MAJOR;
  const bool read_ab = !ws_product_is_zero(p);
  if (read_ab && !(transposed ? p->b.data : p->a.data)) return ws_fail(h, WSGEMM_INVALID_POINTER, "a is NULL");
  if (read_ab && !(transposed ? p->a.data : p->b.data)) return ws_fail(h, WSGEMM_INVALID_POINTER, "b is NULL");
  if (!p->c.data) return ws_fail(h, WSGEMM_INVALID_POINTER, "c is NULL");
  return wants_check ? check_overlaps(h, p, s) : WSGEMM_SUCCESS;
}

WS_INLINE wsgemm_status run(wsgemm_handle *handle, const ws_problem *p, const said *s) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  wsgemm_status status;
  if (!surely_good_shape(p, s) && (status = check_shape(h, p, s))) return status;
  if (ws_is_empty(p)) return WSGEMM_SUCCESS;
  ws_call call;
  ws_call_begin(&call, h);
  const bool wants_check = call.settings.check;
  if ((!p->a.data || !p->b.data || !p->c.data || wants_check) && (status = check_pointers(h, p, s, wants_check))) return status;
  return ws_gemm(&call, p);
}

/* ---- calls ----------------------------------------------------------------------------------- */

wsgemm_status wsgemm_sgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                           int64_t k, float alpha, const float *a, int64_t lda, const float *b, int64_t ldb, float beta, float *c,
                           int64_t ldc) {
  const said s = {layout, transa, transb};
  ws_problem p;
  set_operands(&p, WSGEMM_F32, &s, m, n, k, a, lda, b, ldb, c, ldc);
  ws_set_scale_s(&p.scale, alpha, 0, beta, 0);
  return run(h, &p, &s);
}

wsgemm_status wsgemm_dgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                           int64_t k, double alpha, const double *a, int64_t lda, const double *b, int64_t ldb, double beta,
                           double *c, int64_t ldc) {
  const said s = {layout, transa, transb};
  ws_problem p;
  set_operands(&p, WSGEMM_F64, &s, m, n, k, a, lda, b, ldb, c, ldc);
  ws_set_scale_d(&p.scale, alpha, 0, beta, 0);
  return run(h, &p, &s);
}

wsgemm_status wsgemm_cgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                           int64_t k, wsgemm_cfloat alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                           wsgemm_cfloat beta, void *c, int64_t ldc) {
  const said s = {layout, transa, transb};
  ws_problem p;
  set_operands(&p, WSGEMM_C32, &s, m, n, k, a, lda, b, ldb, c, ldc);
  ws_set_scale_s(&p.scale, alpha.re, alpha.im, beta.re, beta.im);
  return run(h, &p, &s);
}

wsgemm_status wsgemm_zgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                           int64_t k, wsgemm_cdouble alpha, const void *a, int64_t lda, const void *b, int64_t ldb,
                           wsgemm_cdouble beta, void *c, int64_t ldc) {
  const said s = {layout, transa, transb};
  ws_problem p;
  set_operands(&p, WSGEMM_C64, &s, m, n, k, a, lda, b, ldb, c, ldc);
  ws_set_scale_d(&p.scale, alpha.re, alpha.im, beta.re, beta.im);
  return run(h, &p, &s);
}

WS_INLINE wsgemm_status run_half(wsgemm_handle *h, wsgemm_type type, const said *s, int64_t m, int64_t n, int64_t k, float alpha,
                                 const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb, float beta, uint16_t *c,
                                 int64_t ldc) {
  ws_problem p;
  set_operands(&p, type, s, m, n, k, a, lda, b, ldb, c, ldc);
  ws_set_scale_s(&p.scale, alpha, 0, beta, 0);
  return run(h, &p, s);
}

wsgemm_status wsgemm_hgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                           int64_t k, float alpha, const wsgemm_f16 *a, int64_t lda, const wsgemm_f16 *b, int64_t ldb, float beta,
                           wsgemm_f16 *c, int64_t ldc) {
  const said s = {layout, transa, transb};
  return run_half(h, WSGEMM_F16, &s, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

wsgemm_status wsgemm_bgemm(wsgemm_handle *h, wsgemm_layout layout, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n,
                           int64_t k, float alpha, const wsgemm_bf16 *a, int64_t lda, const wsgemm_bf16 *b, int64_t ldb,
                           float beta, wsgemm_bf16 *c, int64_t ldc) {
  const said s = {layout, transa, transb};
  return run_half(h, WSGEMM_BF16, &s, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

/* Halves are scaled by floats and may be summed up into any half or floats; all else is of one
 * type. */
static bool types_fit(const wsgemm_gemm_desc *d) {
  if (d->type_a != d->type_b) return false;
  if (!ws_is_half(d->type_a)) return d->type_c == d->type_a && d->type_scalar == d->type_a;
  return (ws_is_half(d->type_c) || d->type_c == WSGEMM_F32) && d->type_scalar == WSGEMM_F32;
}

/* The parts of an epilogue: none for complex types, and a bias of C's type, or of FP32 where that
 * is what sums are made in. */
static wsgemm_status check_epilogue_types(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  if (d->type_c == WSGEMM_C32 || d->type_c == WSGEMM_C64)
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "epilogue of a complex C: it is built in for real types only");
  if (d->bias && d->type_bias != d->type_c && !(d->type_bias == WSGEMM_F32 && ws_is_half(d->type_c)))
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "type_bias is %s beside a C of %s: this mixture is not built in",
                   ws_types[d->type_bias].name, ws_types[d->type_c].name);
  return WSGEMM_SUCCESS;
}

static wsgemm_status check_desc_enums(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  const bool is_whole = d->struct_bytes == sizeof *d;
  const struct {
    const char *name;
    int value, most;
  } enums[] = {{"type_a", (int)d->type_a, WS_N_TYPES - 1},
               {"type_b", (int)d->type_b, WS_N_TYPES - 1},
               {"type_c", (int)d->type_c, WS_N_TYPES - 1},
               {"type_scalar", (int)d->type_scalar, WS_N_TYPES - 1},
               {"math", (int)d->math, WSGEMM_MATH_TF32},
               {"scalar_mode", (int)d->scalar_mode, WSGEMM_SCALAR_DEVICE},
               {"epilogue", (int)d->epilogue, WSGEMM_EPILOGUE_SILU},
               {"bias_per", is_whole ? (int)d->bias_per : 0, WSGEMM_BIAS_PER_COLUMN},
               {"type_bias", is_whole ? (int)d->type_bias : 0, WS_N_TYPES - 1}};
  for (size_t i = 0; i < sizeof enums / sizeof enums[0]; i++)
    if (enums[i].value < 0 || enums[i].value > enums[i].most)
      return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %d; it must be 0 .. %d", enums[i].name, enums[i].value, enums[i].most);
  if (!types_fit(d))
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "types %s, %s, %s and scalar %s: this mixture is not built in",
                   ws_types[d->type_a].name, ws_types[d->type_b].name, ws_types[d->type_c].name, ws_types[d->type_scalar].name);
  return has_epilogue(d) ? check_epilogue_types(h, d) : WSGEMM_SUCCESS;
}

/* One type for all, by value, without an epilogue; what is left are the enums of check_enums. */
WS_INLINE bool surely_good_desc(const wsgemm_gemm_desc *d) {
  const bool is_whole = d->struct_bytes == sizeof *d;
  return ((unsigned)d->type_a <= WSGEMM_C64) & (d->type_b == d->type_a) & (d->type_c == d->type_a) &
             (d->type_scalar == d->type_a) & ((unsigned)d->math <= WSGEMM_MATH_TF32) & (d->scalar_mode == WSGEMM_SCALAR_VALUE) &
             (d->epilogue == WSGEMM_EPILOGUE_NONE) &&
         (!is_whole ||
          (((unsigned)d->bias_per <= WSGEMM_BIAS_PER_COLUMN) & ((unsigned)d->type_bias < WS_N_TYPES) && !has_epilogue(d)));
}

/* What only the descriptor form can get wrong. Leaves in *checked the descriptor to go on with: the
 * given one, or *whole, which is made of one of the first version that has an activation. */
static wsgemm_status check_desc(wsgemm_handle *h, const wsgemm_gemm_desc *given, wsgemm_gemm_desc *whole,
                                const wsgemm_gemm_desc **checked) {
  if (!given) return ws_fail(h, WSGEMM_INVALID_POINTER, "desc is NULL");
  const bool is_first_version = given->struct_bytes == WSGEMM_GEMM_DESC_BASE_BYTES;
  if (!is_first_version && given->struct_bytes != sizeof *given)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "struct_bytes is %zu; it must be %zu, or %zu for the first version",
                   given->struct_bytes, sizeof *given, WSGEMM_GEMM_DESC_BASE_BYTES);
  *checked = given;
  if (surely_good_desc(given)) return WSGEMM_SUCCESS;
  if (is_first_version && given->epilogue != WSGEMM_EPILOGUE_NONE) {
    *whole = (wsgemm_gemm_desc)WSGEMM_GEMM_DESC_INIT;
    memcpy(whole, given, WSGEMM_GEMM_DESC_BASE_BYTES);
    whole->struct_bytes = sizeof *whole;
    *checked = whole;
  }
  return check_desc_enums(h, *checked);
}

/* What is wrong with a product whose scalars are in device memory, without a look at it. */
static wsgemm_status check_device_scalars(wsgemm_handle *h, const ws_problem *p, const wsgemm_gemm_desc *d) {
  if (!ws_devices) return ws_fail(h, WSGEMM_NOT_SUPPORTED, "scalar_mode is 1; scalars in device memory need a GPU");
  if (!ws_is_empty(p) && (!d->alpha.device || !d->beta.device))
    return ws_fail(h, WSGEMM_INVALID_POINTER, "%s.device is NULL", d->alpha.device ? "beta" : "alpha");
  if (p->has_packed || (p->has_epilogue && p->epilogue.column_sums))
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "scalars in device memory: not built in beside packed operands and column sums");
  return WSGEMM_SUCCESS;
}

/* As groups of one size, whose kernels read them (ops/grouped.h). */
static wsgemm_status run_with_device_scalars(wsgemm_handle *h, const ws_problem *p, const said *s, const wsgemm_gemm_desc *d) {
  wsgemm_status status = check_shape(h, p, s);
  if (!status) status = check_device_scalars(h, p, d);
  if (status || ws_is_empty(p)) return status;
  ws_call call;
  ws_call_begin(&call, h);
  ws_groups groups = {.of_all = *p, .count = p->batch_count, .index_bytes = 8, .alpha = d->alpha.device, .beta = d->beta.device};
  groups.of_all.batch_count = 1;
  int device;
  if ((status = check_pointers(h, p, s, call.settings.check))) return status;
  status = ws_groups_locate(&call, &groups, &device);
  if (status) return status;
  if (device < 0) return ws_fail(h, WSGEMM_NOT_SUPPORTED, "scalar_mode is 1; alpha and beta are not in a GPU's memory");
  return ws_grouped_on_device(&call, &groups, device);
}

wsgemm_status wsgemm_gemm(wsgemm_handle *handle, const wsgemm_gemm_desc *desc) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  wsgemm_gemm_desc whole;
  const wsgemm_status status = check_desc(h, desc, &whole, &desc);
  if (status) return status;
  const said s = {desc->layout, desc->transa, desc->transb};
  ws_problem p;
  make_problem(desc, &s, &p);
  return desc->scalar_mode == WSGEMM_SCALAR_DEVICE ? run_with_device_scalars(h, &p, &s, desc) : run(h, &p, &s);
}

wsgemm_status ws_problem_of(wsgemm_handle *h, const wsgemm_gemm_desc *desc, ws_problem *p) {
  wsgemm_gemm_desc whole;
  const wsgemm_status status = check_desc(h, desc, &whole, &desc);
  if (status) return status;
  const said s = {desc->layout, desc->transa, desc->transb};
  make_problem(desc, &s, p);
  return check_shape(h, p, &s);
}

wsgemm_status wsgemm_get_workspace_size(wsgemm_handle *handle, const wsgemm_gemm_desc *desc, size_t *bytes) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  if (!bytes) return ws_fail(h, WSGEMM_INVALID_POINTER, "bytes is NULL");
  ws_problem p;
  const wsgemm_status status = ws_problem_of(h, desc, &p);
  if (status) return status;
  const ws_call call = ws_call_of(h);
  *bytes = 0;
  return desc->scalar_mode == WSGEMM_SCALAR_DEVICE ? check_device_scalars(h, &p, desc)
                                                   : ws_gemm_workspace_bytes(&call, &p, bytes);
}

/* The product as the caller has it; a row-major one also as it is computed, since kernel, tile and
 * tuning go by that. */
static void explain_problem(const wsgemm_gemm_desc *d, const ws_problem *p, ws_text *t) {
  /* from WSGEMM_NO_TRANS on; n*: conjugated, not transposed */
  static const char *const ops[] = {"n", "t", "c", "n*"};
  const bool is_row_major = d->layout == WSGEMM_ROW_MAJOR;
  ws_text_add(t, "problem: %cgemm %s%s m=%lld n=%lld k=%lld batch=%lld\nlayout: %s\n", ws_types[p->a.type].letter,
              ops[d->transa - WSGEMM_NO_TRANS], ops[d->transb - WSGEMM_NO_TRANS], (long long)d->m, (long long)d->n,
              (long long)d->k, (long long)d->batch_count, is_row_major ? "row-major" : "column-major");
  if (is_row_major)
    ws_text_add(t, "computed_as: column-major C^T = op(B)^T op(A)^T, m=%lld n=%lld; the tile is one of C^T\n", (long long)p->m,
                (long long)p->n);
}

size_t wsgemm_explain(wsgemm_handle *handle, const wsgemm_gemm_desc *desc, char *text, size_t bytes) {
  ws_text t = {text, bytes, 0};
  if (bytes > 0) text[0] = '\0';
  wsgemm_handle *h = ws_handle(handle);
  ws_problem p;
  wsgemm_status status = h ? ws_problem_of(h, desc, &p) : ws_fail_handle();
  const bool has_device_scalars = !status && desc->scalar_mode == WSGEMM_SCALAR_DEVICE;
  if (has_device_scalars) status = check_device_scalars(h, &p, desc);
  if (status) {
    ws_text_add(&t, "error: %s\n", wsgemm_last_error());
  } else {
    const ws_call call = ws_call_of(h);
    explain_problem(desc, &p, &t);
    if (has_device_scalars)
      ws_text_add(&t,
                  "scalars: in device memory, so in one launch by a row for groups, where there is one (wsgemm_gemm_grouped)\n");
    else
      ws_gemm_explain(&call, &p, &t);
  }
  return t.length;
}
