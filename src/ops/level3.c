/* level3.c - see level3.h.
 *
 * symm, hemm, trmm   a product with a structured operand
 * syrk, herk         a product of A and an alias of it, of which a triangle is written
 * syr2k, her2k       two of them, the second one added to the first
 * gemmtr             a product of which a triangle is written
 * trsm               a system; without one (alpha = 0) C = 0 A, of which nothing is read */
#include "ops/level3.h"

#include "core/cancel.h"
#include "core/status.h"
#include "ops/gemm.h"
#include "ops/place.h"

#define WS_INLINE static inline __attribute__((always_inline))

/* ---- lowering -------------------------------------------------------------------------------- */

static bool is_complex(wsgemm_type type) { return ws_types[type].n_real == 2; }

/* Matrices are written in place, member by member: a copy would wait for the stores. */
WS_INLINE void set_matrix(ws_matrix *x, const wsgemm_level3_desc *d, const void *data, int64_t ld, int64_t stride, bool trans,
                          bool conj) {
  x->data = data, x->ld = ld, x->stride = stride;
  x->type = d->type;
  x->trans = trans, x->conj = conj && is_complex(d->type);
  x->structure = WS_GENERAL, x->stored_upper = false;
}

static void set_with_op(ws_matrix *x, const wsgemm_level3_desc *d, const void *data, int64_t ld, int64_t stride, wsgemm_op op) {
  set_matrix(x, d, data, ld, stride, op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS,
             op == WSGEMM_CONJ_TRANS || op == WSGEMM_CONJ_NO_TRANS);
}

static void set_structured(ws_matrix *x, const wsgemm_level3_desc *d, ws_structure structure, wsgemm_op op) {
  set_with_op(x, d, d->a, d->lda, d->stride_a, op);
  x->structure = (uint8_t)structure;
  x->stored_upper = d->uplo == WSGEMM_UPPER;
}

static ws_structure triangular(const wsgemm_level3_desc *d) {
  return d->diag == WSGEMM_UNIT ? WS_UNIT_TRIANGULAR : WS_TRIANGULAR;
}

WS_INLINE void set_result(ws_result *c, const wsgemm_level3_desc *d, ws_region region, bool is_hermitian) {
  c->data = d->c, c->ld = d->ldc, c->stride = d->stride_c;
  c->type = d->type;
  c->region = (uint8_t)region;
  c->real_diagonal = is_hermitian;
}

static ws_region region_of(const wsgemm_level3_desc *d) { return d->uplo == WSGEMM_UPPER ? WS_UPPER : WS_LOWER; }

/* Of one product alone: the triangle of one element is all of it, and a plain product, which has no
 * real diagonal, is quicker. */
static ws_region region_of_one(const wsgemm_level3_desc *d, bool is_hermitian) {
  return d->n == 1 && !is_hermitian ? WS_ALL : region_of(d);
}

static void set_scale(const wsgemm_level3_desc *d, ws_scale *s) {
  switch (d->type) {
  case WSGEMM_F64:
    ws_set_scale_d(s, d->alpha.d, 0, d->beta.d, 0);
    break;
  case WSGEMM_C32:
    ws_set_scale_s(s, d->alpha.c.re, d->alpha.c.im, d->beta.c.re, d->beta.c.im);
    break;
  case WSGEMM_C64:
    ws_set_scale_d(s, d->alpha.z.re, d->alpha.z.im, d->beta.z.re, d->beta.z.im);
    break;
  default:
    ws_set_scale_s(s, d->alpha.s, 0, d->beta.s, 0);
  }
  s->conj_a = s->conj_b = false;
}

/* All but sizes and matrices. */
static void begin_product(const wsgemm_level3_desc *d, ws_problem *p) {
  p->batch_count = d->batch_count;
  p->math = d->math;
  p->tuning = NULL;
  p->has_epilogue = p->has_packed = p->in_place = false;
  p->second = NULL;
  set_scale(d, &p->scale);
}

/* The structured operand stands where side says, B on its other side. */
static void lower_structured(const wsgemm_level3_desc *d, ws_structure structure, wsgemm_op op, ws_problem *p) {
  const bool is_left = d->side == WSGEMM_LEFT;
  p->m = d->m, p->n = d->n, p->k = is_left ? d->m : d->n;
  set_structured(is_left ? &p->a : &p->b, d, structure, op);
  set_matrix(is_left ? &p->b : &p->a, d, d->b, d->ldb, d->stride_b, false, false);
  set_result(&p->c, d, WS_ALL, false);
}

static void lower_trmm(const wsgemm_level3_desc *d, ws_problem *p) {
  lower_structured(d, triangular(d), d->transa, p);
  p->in_place = d->c == d->b;
}

/* op(X) op(Y)^T, or ^H. */
static void lower_outer(const wsgemm_level3_desc *d, const void *x, int64_t ldx, int64_t stride_x, const void *y, int64_t ldy,
                        int64_t stride_y, bool is_hermitian, ws_region region, ws_problem *p) {
  const bool trans = d->transa != WSGEMM_NO_TRANS;
  p->m = p->n = d->n, p->k = d->k;
  set_matrix(&p->a, d, x, ldx, stride_x, trans, trans && is_hermitian);
  set_matrix(&p->b, d, y, ldy, stride_y, !trans, !trans && is_hermitian);
  set_result(&p->c, d, region, is_hermitian);
}

/* It is added to the first one; of her2k, alpha is conjugated. */
static void set_scale_of_second(const wsgemm_level3_desc *d, bool is_hermitian, ws_scale *s) {
  if (d->type == WSGEMM_F32 || d->type == WSGEMM_C32)
    ws_set_scale_s(s, s->alpha.s[0], is_hermitian ? -s->alpha.s[1] : s->alpha.s[1], 1, 0);
  else
    ws_set_scale_d(s, s->alpha.d[0], is_hermitian ? -s->alpha.d[1] : s->alpha.d[1], 1, 0);
}

static void lower_two(const wsgemm_level3_desc *d, bool is_hermitian, ws_lowered *lowered) {
  ws_problem *first = &lowered->product[0], *second = &lowered->product[1];
  lowered->n_products = 2;
  begin_product(d, first);
  lower_outer(d, d->a, d->lda, d->stride_a, d->b, d->ldb, d->stride_b, is_hermitian, region_of(d), first);
  if (ws_product_is_zero(first)) {
    lowered->n_products = 1;
    return;
  }
  begin_product(d, second);
  lower_outer(d, d->b, d->ldb, d->stride_b, d->a, d->lda, d->stride_a, is_hermitian, region_of(d), second);
  set_scale_of_second(d, is_hermitian, &second->scale);
}

static void lower_gemmtr(const wsgemm_level3_desc *d, ws_problem *p) {
  p->m = p->n = d->n, p->k = d->k;
  set_with_op(&p->a, d, d->a, d->lda, d->stride_a, d->transa);
  set_with_op(&p->b, d, d->b, d->ldb, d->stride_b, d->transb);
  set_result(&p->c, d, region_of_one(d, false), false);
}

static void lower_trsm(const wsgemm_level3_desc *d, ws_lowered *lowered) {
  ws_system *s = &lowered->system;
  set_scale(d, &s->scale);
  if (s->scale.alpha_zero) { /* X = 0 */
    lowered->n_products = 1;
    begin_product(d, &lowered->product[0]);
    lower_trmm(d, &lowered->product[0]);
    return;
  }
  lowered->n_products = 0;
  s->m = d->m, s->n = d->n, s->batch_count = d->batch_count;
  set_structured(&s->a, d, triangular(d), d->transa);
  set_matrix(&s->b, d, d->b, d->ldb, d->stride_b, false, false);
  set_result(&s->x, d, WS_ALL, false);
  s->is_right = d->side == WSGEMM_RIGHT;
  s->math = d->math;
  s->tuning = NULL;
}

void ws_level3_lower(const wsgemm_level3_desc *d, ws_lowered *lowered) {
  ws_problem *p = &lowered->product[0];
  lowered->n_products = 1;
  if (d->routine == WSGEMM_TRSM) {
    lower_trsm(d, lowered);
    return;
  }
  if (d->routine == WSGEMM_SYR2K || d->routine == WSGEMM_HER2K) {
    lower_two(d, d->routine == WSGEMM_HER2K, lowered);
    return;
  }
  begin_product(d, p);
  if (d->routine == WSGEMM_SYMM || d->routine == WSGEMM_HEMM) {
    lower_structured(d, d->routine == WSGEMM_HEMM ? WS_HERMITIAN : WS_SYMMETRIC, WSGEMM_NO_TRANS, p);
  } else if (d->routine == WSGEMM_TRMM) {
    lower_trmm(d, p);
  } else if (d->routine == WSGEMM_GEMMTR) {
    lower_gemmtr(d, p);
  } else {
    lower_outer(d, d->a, d->lda, d->stride_a, d->a, d->lda, d->stride_a, d->routine == WSGEMM_HERK,
                region_of_one(d, d->routine == WSGEMM_HERK), p);
  }
}

/* ---- running --------------------------------------------------------------------------------- */

ws_problem ws_level3_product_like(const ws_system *s) {
  ws_problem p = {.m = s->m, .n = s->n, .k = s->is_right ? s->n : s->m, .batch_count = s->batch_count, .scale = s->scale};
  p.a = s->is_right ? s->b : s->a;
  p.b = s->is_right ? s->a : s->b;
  p.c = s->x;
  p.math = s->math;
  return p;
}

static wsgemm_status solve_missing(const ws_call *call, const ws_backend *backend) {
  return ws_fail(call->h, WSGEMM_NOT_SUPPORTED, "trsm: the backend %s solves no triangular systems", backend->name);
}

/* As gemm_beside_devices in gemm.c. */
__attribute__((noinline)) static wsgemm_status solve_beside_devices(const ws_call *call, const ws_system *s) {
  WS_UNCANCELLED;
  int device;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_problem like = ws_level3_product_like(s);
  const ws_backend *backend = ws_backend_for(call, &like, &device, &status);
  if (!backend) return status;
  return backend->solve ? backend->solve(call, s, device) : solve_missing(call, backend);
}

static wsgemm_status solve(const ws_call *call, const ws_system *s) {
  return ws_devices ? solve_beside_devices(call, s) : ws_backends[WS_CPU]->solve(call, s, 0);
}

static wsgemm_status both_beside_devices(const ws_call *call, ws_problem *first, const ws_problem *second) {
  WS_UNCANCELLED;
  int device;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_backend *backend = ws_backend_for(call, first, &device, &status);
  first->second = second;
  return backend ? backend->gemm(call, first, device) : status;
}

wsgemm_status ws_level3_run(const ws_call *call, const wsgemm_level3_desc *d) {
  ws_lowered lowered;
  ws_level3_lower(d, &lowered);
  if (lowered.n_products == 0) return solve(call, &lowered.system);
  ws_problem *const first = &lowered.product[0], *const second = &lowered.product[1];
  if (lowered.n_products == 1) return ws_gemm(call, first);
  if (!ws_devices) { /* the CPU does both at once */
    first->second = second;
    return ws_gemm(call, first);
  }
  return both_beside_devices(call, first, second);
}

wsgemm_status ws_level3_workspace_bytes(const ws_call *call, const wsgemm_level3_desc *d, size_t *bytes) {
  ws_lowered lowered;
  ws_level3_lower(d, &lowered);
  *bytes = 0;
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int i = 0; i < lowered.n_products && !status; i++) {
    size_t of_product;
    status = ws_gemm_workspace_bytes(call, &lowered.product[i], &of_product);
    if (!status && of_product > *bytes) *bytes = of_product;
  }
  if (lowered.n_products > 0) return status;
  WS_UNCANCELLED;
  int device;
  const ws_problem like = ws_level3_product_like(&lowered.system);
  const ws_backend *backend = ws_backend_of(call, &like, &device, &status);
  if (!backend || !backend->solve_workspace_bytes) return status;
  return backend->solve_workspace_bytes(call, &lowered.system, device, bytes);
}

static void explain_system(const ws_call *call, const ws_system *s, ws_text *t) {
  WS_UNCANCELLED;
  int device;
  wsgemm_status status = WSGEMM_SUCCESS;
  const ws_problem like = ws_level3_product_like(s);
  const ws_backend *backend = ws_backend_for(call, &like, &device, &status);
  if (backend && !backend->explain_solve) solve_missing(call, backend), backend = NULL;
  if (!backend) {
    ws_text_add(t, "error: %s\n", wsgemm_last_error());
    return;
  }
  ws_text_add(t, "backend: %s\n", backend->name);
  backend->explain_solve(call, s, device, t);
}

static bool is_on_cpu(const ws_call *call, const ws_problem *p) {
  WS_UNCANCELLED;
  int device;
  wsgemm_status status = WSGEMM_SUCCESS;
  return ws_backend_of(call, p, &device, &status) == ws_backends[WS_CPU];
}

void ws_level3_explain(const ws_call *call, const wsgemm_level3_desc *d, ws_text *t) {
  ws_lowered lowered;
  ws_level3_lower(d, &lowered);
  if (lowered.n_products == 0) {
    explain_system(call, &lowered.system, t);
    return;
  }
  ws_problem *const first = &lowered.product[0];
  if (lowered.n_products == 2) {
    if (is_on_cpu(call, first)) first->second = &lowered.product[1];
    ws_text_add(t, first->second ? "products: 2, by turns for each block of k; both:\n"
                                 : "products: 2, the second one added to the first; each of them:\n");
  }
  ws_gemm_explain(call, first, t);
}
