/* level3.c - the Level 3 calls: typed calls make descriptors; a descriptor is checked as the caller
 * has it, turned into that of the column-major call, and handed over.
 *
 * Order of checks: handle, enums, sizes, lds, quick return, pointers. */
#include "api/level3.h"
#include "core/status.h"
#include "core/text.h"
#include "ops/level3.h"

/* ---- row-major as column-major --------------------------------------------------------------- */

static wsgemm_op transposed_trans(const wsgemm_level3_desc *d) {
  if (d->transa != WSGEMM_NO_TRANS) return WSGEMM_NO_TRANS;
  return ws_routines[d->routine].is_hermitian ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS;
}

/* A row-major matrix is its own column-major transpose; of each routine the transpose is the same
 * routine, with the other triangle. gemmtr exchanges its operands, her2k (alpha A B^H)^T = alpha
 * conj(B) A^T takes the conjugate of alpha. */
static void transpose(wsgemm_level3_desc *d) {
  const ws_routine_traits *t = &ws_routines[d->routine];
  d->layout = WSGEMM_COL_MAJOR;
  d->uplo = d->uplo == WSGEMM_UPPER ? WSGEMM_LOWER : WSGEMM_UPPER;
  if (t->has_side) {
    const int64_t m = d->m;
    d->side = d->side == WSGEMM_LEFT ? WSGEMM_RIGHT : WSGEMM_LEFT;
    d->m = d->n, d->n = m;
  }
  if (t->has_trans) d->transa = transposed_trans(d);
  if (d->routine == WSGEMM_HER2K) {
    if (d->type == WSGEMM_C32)
      d->alpha.c.im = -d->alpha.c.im;
    else
      d->alpha.z.im = -d->alpha.z.im;
  }
  if (d->routine == WSGEMM_GEMMTR) {
    const wsgemm_level3_desc given = *d;
    d->a = given.b, d->lda = given.ldb, d->stride_a = given.stride_b, d->transa = given.transb;
    d->b = given.a, d->ldb = given.lda, d->stride_b = given.stride_a, d->transb = given.transa;
  }
}

/* trmm and trsm have no beta; their result may be said to be in b by a c that is not there. */
void ws_level3_normalize(wsgemm_level3_desc *d) {
  if (ws_routines[d->routine].is_in_place) {
    d->beta = (wsgemm_scalar){.z = {0, 0}};
    if (!d->c) d->ldc = d->ldb, d->stride_c = d->stride_b, d->c = (void *)(uintptr_t)d->b;
  }
  if (d->layout == WSGEMM_ROW_MAJOR) transpose(d);
}

/* Checks and runs; *d is the call's own. */
static wsgemm_status run(wsgemm_handle *h, wsgemm_level3_desc *d) {
  wsgemm_status status = ws_level3_check(h, d);
  if (status || ws_level3_is_nothing(d)) return status;
  ws_call call;
  ws_call_begin(&call, h);
  if ((status = ws_level3_check_pointers(h, d, call.settings.check))) return status;
  ws_level3_normalize(d);
  return ws_level3_run(&call, d);
}

/* ---- typed calls ----------------------------------------------------------------------------- */

static wsgemm_status run_typed(wsgemm_handle *handle, wsgemm_level3_desc *d) {
  wsgemm_handle *h = ws_handle(handle);
  return h ? run(h, d) : ws_fail_handle();
}

/* X(letter, type, scalar's C type, its member, matrix's C type): each with its kin. */
#define TYPES(X)                           \
  X(s, WSGEMM_F32, float, s, float)        \
  X(d, WSGEMM_F64, double, d, double)      \
  X(c, WSGEMM_C32, wsgemm_cfloat, c, void) \
  X(z, WSGEMM_C64, wsgemm_cdouble, z, void)
/* X(letter, type, C type of a real scalar, complex member) */
#define COMPLEX_TYPES(X)                    \
  X(c, WSGEMM_C32, float, c, wsgemm_cfloat) \
  X(z, WSGEMM_C64, double, z, wsgemm_cdouble)

#define COMMON(routine_, type_) \
  .struct_bytes = sizeof(wsgemm_level3_desc), .routine = (routine_), .type = (type_), .batch_count = 1
#define MATRICES .a = a, .lda = lda, .b = b, .ldb = ldb, .c = c, .ldc = ldc

#define SYMM(name, routine, type_, scalar, member, element)                                                                     \
  wsgemm_status wsgemm_##name(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, int64_t m, int64_t n, \
                              scalar alpha, const element *a, int64_t lda, const element *b, int64_t ldb, scalar beta,          \
                              element *c, int64_t ldc) {                                                                        \
    wsgemm_level3_desc d = {COMMON(routine, type_), MATRICES, .layout = layout, .side = side,                                   \
                            .uplo = uplo,           .m = m,   .n = n,           .alpha.member = alpha,                          \
                            .beta.member = beta};                                                                               \
    return run_typed(h, &d);                                                                                                    \
  }

#define SYRK(name, routine, type_, scalar, alpha_member, element)                                                              \
  wsgemm_status wsgemm_##name(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n, int64_t k, \
                              scalar alpha, const element *a, int64_t lda, scalar beta, element *c, int64_t ldc) {             \
    wsgemm_level3_desc d = {COMMON(routine, type_),                                                                            \
                            .a = a,                                                                                            \
                            .lda = lda,                                                                                        \
                            .c = c,                                                                                            \
                            .ldc = ldc,                                                                                        \
                            .layout = layout,                                                                                  \
                            .uplo = uplo,                                                                                      \
                            .transa = trans,                                                                                   \
                            .n = n,                                                                                            \
                            .k = k,                                                                                            \
                            .alpha.alpha_member = alpha,                                                                       \
                            .beta.alpha_member = beta};                                                                        \
    return run_typed(h, &d);                                                                                                   \
  }

#define SYR2K(name, routine, type_, scalar, alpha_member, real, beta_member, element)                                            \
  wsgemm_status wsgemm_##name(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op trans, int64_t n, int64_t k,   \
                              scalar alpha, const element *a, int64_t lda, const element *b, int64_t ldb, real beta, element *c, \
                              int64_t ldc) {                                                                                     \
    wsgemm_level3_desc d = {COMMON(routine, type_),  MATRICES, .layout = layout, .uplo = uplo,                                   \
                            .transa = trans,         .n = n,   .k = k,           .alpha.alpha_member = alpha,                    \
                            .beta.beta_member = beta};                                                                           \
    return run_typed(h, &d);                                                                                                     \
  }

#define GEMMTR(letter, type_, scalar, member, element)                                                                       \
  wsgemm_status wsgemm_##letter##gemmtr(wsgemm_handle *h, wsgemm_layout layout, wsgemm_uplo uplo, wsgemm_op transa,          \
                                        wsgemm_op transb, int64_t n, int64_t k, scalar alpha, const element *a, int64_t lda, \
                                        const element *b, int64_t ldb, scalar beta, element *c, int64_t ldc) {               \
    wsgemm_level3_desc d = {COMMON(WSGEMM_GEMMTR, type_),                                                                    \
                            MATRICES,                                                                                        \
                            .layout = layout,                                                                                \
                            .uplo = uplo,                                                                                    \
                            .transa = transa,                                                                                \
                            .transb = transb,                                                                                \
                            .n = n,                                                                                          \
                            .k = k,                                                                                          \
                            .alpha.member = alpha,                                                                           \
                            .beta.member = beta};                                                                            \
    return run_typed(h, &d);                                                                                                 \
  }

#define TRIANGULAR(name, routine, type_, scalar, member, element)                                                               \
  wsgemm_status wsgemm_##name(wsgemm_handle *h, wsgemm_layout layout, wsgemm_side side, wsgemm_uplo uplo, wsgemm_op transa,     \
                              wsgemm_diag diag, int64_t m, int64_t n, scalar alpha, const element *a, int64_t lda, element *b,  \
                              int64_t ldb) {                                                                                    \
    wsgemm_level3_desc d = {COMMON(routine, type_), .a = a,       .lda = lda,       .b = b,       .ldb = ldb, .layout = layout, \
                            .side = side,           .uplo = uplo, .transa = transa, .diag = diag, .m = m,     .n = n,           \
                            .alpha.member = alpha};                                                                             \
    return run_typed(h, &d);                                                                                                    \
  }

#define DEFINE_SYMMETRIC(letter, type, scalar, member, element)                     \
  SYMM(letter##symm, WSGEMM_SYMM, type, scalar, member, element)                    \
  SYRK(letter##syrk, WSGEMM_SYRK, type, scalar, member, element)                    \
  SYR2K(letter##syr2k, WSGEMM_SYR2K, type, scalar, member, scalar, member, element) \
  GEMMTR(letter, type, scalar, member, element)                                     \
  TRIANGULAR(letter##trmm, WSGEMM_TRMM, type, scalar, member, element)              \
  TRIANGULAR(letter##trsm, WSGEMM_TRSM, type, scalar, member, element)
TYPES(DEFINE_SYMMETRIC)

/* A real scalar is the real part of one whose imaginary part stays 0. */
#define DEFINE_HERMITIAN(letter, type, real, member, scalar)   \
  SYMM(letter##hemm, WSGEMM_HEMM, type, scalar, member, void)  \
  SYRK(letter##herk, WSGEMM_HERK, type, real, member.re, void) \
  SYR2K(letter##her2k, WSGEMM_HER2K, type, scalar, member, real, member.re, void)
COMPLEX_TYPES(DEFINE_HERMITIAN)

/* ---- the descriptor form --------------------------------------------------------------------- */

wsgemm_status ws_level3_check_desc(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  if (!d) return ws_fail(h, WSGEMM_INVALID_POINTER, "desc is NULL");
  if (d->struct_bytes != sizeof *d)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "struct_bytes is %zu; it must be %zu", d->struct_bytes, sizeof *d);
  if ((int)d->routine < WSGEMM_SYMM || (int)d->routine > WSGEMM_TRSM)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "routine is %d; it must be %d .. %d", (int)d->routine, WSGEMM_SYMM, WSGEMM_TRSM);
  if ((int)d->type < 0 || (int)d->type >= WS_N_TYPES)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "type is %d; it must be 0 .. %d", (int)d->type, WS_N_TYPES - 1);
  if ((int)d->math < 0 || (int)d->math > WSGEMM_MATH_TF32)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "math is %d; it must be 0 .. %d", (int)d->math, WSGEMM_MATH_TF32);
  if (ws_is_half(d->type) || (ws_routines[d->routine].is_hermitian && ws_types[d->type].n_real == 1))
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "%s of %s: there is none", ws_routines[d->routine].name, ws_types[d->type].name);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_level3(wsgemm_handle *handle, const wsgemm_level3_desc *desc) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  const wsgemm_status status = ws_level3_check_desc(h, desc);
  if (status) return status;
  wsgemm_level3_desc d = *desc;
  return run(h, &d);
}

wsgemm_status wsgemm_level3_workspace_size(wsgemm_handle *handle, const wsgemm_level3_desc *desc, size_t *bytes) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  if (!bytes) return ws_fail(h, WSGEMM_INVALID_POINTER, "bytes is NULL");
  wsgemm_status status = ws_level3_check_desc(h, desc);
  if (!status) status = ws_level3_check(h, desc);
  if (status) return status;
  *bytes = 0;
  if (ws_level3_is_nothing(desc)) return WSGEMM_SUCCESS;
  wsgemm_level3_desc d = *desc;
  ws_level3_normalize(&d);
  const ws_call call = ws_call_of(h);
  return ws_level3_workspace_bytes(&call, &d, bytes);
}

/* "problem: strmm left upper t unit m=.. n=..": the call as the caller has it. */
static void explain_call(const wsgemm_level3_desc *d, ws_text *t) {
  /* from WSGEMM_NO_TRANS on; n*: conjugated, not transposed */
  static const char *const ops[] = {"n", "t", "c", "n*"};
  const ws_routine_traits *routine = &ws_routines[d->routine];
  ws_text_add(t, "problem: %c%s", ws_types[d->type].letter, routine->name);
  if (routine->has_side) ws_text_add(t, " %s", d->side == WSGEMM_LEFT ? "left" : "right");
  ws_text_add(t, " %s", d->uplo == WSGEMM_UPPER ? "upper" : "lower");
  if (routine->has_trans || routine->has_transa) ws_text_add(t, " %s", ops[d->transa - WSGEMM_NO_TRANS]);
  if (routine->has_transb) ws_text_add(t, "%s", ops[d->transb - WSGEMM_NO_TRANS]);
  if (routine->has_diag) ws_text_add(t, " %s", d->diag == WSGEMM_UNIT ? "unit" : "non-unit");
  if (routine->has_m) ws_text_add(t, " m=%lld", (long long)d->m);
  ws_text_add(t, " n=%lld", (long long)d->n);
  if (routine->has_k) ws_text_add(t, " k=%lld", (long long)d->k);
  ws_text_add(t, " batch=%lld\nlayout: %s\n", (long long)d->batch_count,
              d->layout == WSGEMM_ROW_MAJOR ? "row-major" : "column-major");
}

size_t wsgemm_level3_explain(wsgemm_handle *handle, const wsgemm_level3_desc *desc, char *text, size_t bytes) {
  ws_text t = {text, bytes, 0};
  if (bytes > 0) text[0] = '\0';
  wsgemm_handle *h = ws_handle(handle);
  wsgemm_status status = h ? ws_level3_check_desc(h, desc) : ws_fail_handle();
  if (!status) status = ws_level3_check(h, desc);
  if (status) {
    ws_text_add(&t, "error: %s\n", wsgemm_last_error());
    return t.length;
  }
  explain_call(desc, &t);
  if (ws_level3_is_nothing(desc)) {
    ws_text_add(&t, "path: nothing to do\n");
    return t.length;
  }
  wsgemm_level3_desc d = *desc;
  ws_level3_normalize(&d);
  if (desc->layout == WSGEMM_ROW_MAJOR) ws_text_add(&t, "computed_as: the column-major transpose, with the other triangle\n");
  const ws_call call = ws_call_of(h);
  ws_level3_explain(&call, &d, &t);
  return t.length;
}
