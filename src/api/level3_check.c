/* level3_check.c - the checks of a Level 3 call, in the order of gemm's: enums, sizes, leading
 * dimensions, then what the pointers say. Everything here is in the caller's words and layout. */
#include "api/level3.h"
#include "core/status.h"
#include "core/tile.h"

const ws_routine_traits ws_routines[WSGEMM_TRSM + 1] = {
    [WSGEMM_SYMM] = {.name = "symm", .has_side = true, .has_m = true, .has_b = true, .has_beta = true},
    [WSGEMM_HEMM] = {.name = "hemm", .has_side = true, .has_m = true, .has_b = true, .has_beta = true, .is_hermitian = true},
    [WSGEMM_SYRK] = {.name = "syrk", .has_k = true, .has_trans = true, .has_beta = true},
    [WSGEMM_HERK] = {.name = "herk", .has_k = true, .has_trans = true, .has_beta = true, .is_hermitian = true},
    [WSGEMM_SYR2K] = {.name = "syr2k", .has_k = true, .has_trans = true, .has_b = true, .has_beta = true},
    [WSGEMM_HER2K] = {.name = "her2k", .has_k = true, .has_trans = true, .has_b = true, .has_beta = true, .is_hermitian = true},
    [WSGEMM_GEMMTR] = {.name = "gemmtr", .has_k = true, .has_transa = true, .has_transb = true, .has_b = true, .has_beta = true},
    [WSGEMM_TRMM] = {.name = "trmm",
                     .has_side = true,
                     .has_m = true,
                     .has_transa = true,
                     .has_diag = true,
                     .has_b = true,
                     .is_in_place = true},
    [WSGEMM_TRSM] = {.name = "trsm",
                     .has_side = true,
                     .has_m = true,
                     .has_transa = true,
                     .has_diag = true,
                     .has_b = true,
                     .is_in_place = true}};

static const ws_routine_traits *traits_of(const wsgemm_level3_desc *d) { return &ws_routines[d->routine]; }
static bool is_complex(wsgemm_type type) { return ws_types[type].n_real == 2; }

/* ---- enums and scalars ----------------------------------------------------------------------- */

static wsgemm_status check_either(wsgemm_handle *h, const char *name, int value, int least) {
  if (value == least || value == least + 1) return WSGEMM_SUCCESS;
  return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %d; it must be %d or %d", name, value, least, least + 1);
}

/* syrk and its kin: A or its transpose, of herk and her2k its conjugate transpose. */
static wsgemm_status check_trans(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  const wsgemm_op trans = d->transa;
  if (trans == WSGEMM_NO_TRANS || trans == (t->is_hermitian ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS)) return WSGEMM_SUCCESS;
  if (!is_complex(d->type)) {
    if (trans == WSGEMM_CONJ_TRANS) return WSGEMM_SUCCESS;
    return ws_fail(h, WSGEMM_INVALID_VALUE, "trans is %d; of %s it must be 111 .. 113", (int)trans, t->name);
  }
  return ws_fail(h, WSGEMM_INVALID_VALUE, "trans is %d; of a complex %s it must be 111 or %d", (int)trans, t->name,
                 t->is_hermitian ? WSGEMM_CONJ_TRANS : WSGEMM_TRANS);
}

static wsgemm_status check_real(wsgemm_handle *h, const wsgemm_level3_desc *d, const char *name, const wsgemm_scalar *x) {
  double re, im;
  ws_scalar_parts(d->type, x, &re, &im);
  if (im == 0) return WSGEMM_SUCCESS;
  return ws_fail(h, WSGEMM_INVALID_VALUE, "%s has the imaginary part %g; of %s it must be 0", name, im, traits_of(d)->name);
}

static wsgemm_status check_enums(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  wsgemm_status status = ws_check_layout(h, d->layout);
  if (!status && t->has_side) status = check_either(h, "side", (int)d->side, WSGEMM_LEFT);
  if (!status) status = check_either(h, "uplo", (int)d->uplo, WSGEMM_UPPER);
  if (!status && t->has_trans) status = check_trans(h, d);
  if (!status && t->has_transa) status = ws_check_op(h, "transa", d->transa);
  if (!status && t->has_transb) status = ws_check_op(h, "transb", d->transb);
  if (!status && t->has_diag) status = check_either(h, "diag", (int)d->diag, WSGEMM_NON_UNIT);
  if (!status && d->routine == WSGEMM_HERK) status = check_real(h, d, "alpha", &d->alpha);
  if (!status && (d->routine == WSGEMM_HERK || d->routine == WSGEMM_HER2K)) status = check_real(h, d, "beta", &d->beta);
  return status;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

/* A matrix as it is stored: `length` contiguous elements, `count` times. */
typedef struct stored {
  int64_t length, count;
} stored;

static stored stored_as(const wsgemm_level3_desc *d, int64_t rows, int64_t cols) {
  return d->layout == WSGEMM_ROW_MAJOR ? (stored){cols, rows} : (stored){rows, cols};
}

static stored shape_a(const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  if (t->has_side) {
    const int64_t size = d->side == WSGEMM_LEFT ? d->m : d->n;
    return (stored){size, size};
  }
  return ws_is_transposed(d->transa) ? stored_as(d, d->k, d->n) : stored_as(d, d->n, d->k);
}

static stored shape_b(const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  if (t->has_side) return stored_as(d, d->m, d->n);
  if (t->has_trans) return shape_a(d);
  return ws_is_transposed(d->transb) ? stored_as(d, d->n, d->k) : stored_as(d, d->k, d->n);
}

static stored shape_c(const wsgemm_level3_desc *d) { return stored_as(d, traits_of(d)->has_m ? d->m : d->n, d->n); }

/* The result is in B. */
static bool is_c_b(const wsgemm_level3_desc *d) { return traits_of(d)->is_in_place && (!d->c || d->c == d->b); }

static int64_t bytes_of(const wsgemm_level3_desc *d, stored shape, int64_t ld, int64_t stride) {
  return ws_batch_bytes(shape.length, shape.count, ld, d->batch_count, stride, ws_types[d->type].bytes);
}

static wsgemm_status check_batch(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  const int64_t written = is_c_b(d) ? d->stride_b : d->stride_c;
  if (written == 0)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is 0 and batch_count %lld; what is written must have a stride",
                   is_c_b(d) ? "stride_b" : "stride_c", (long long)d->batch_count);
  if (is_c_b(d) && d->c && d->stride_c != d->stride_b)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "stride_c is %lld; as c is b, it must be stride_b, %lld", (long long)d->stride_c,
                   (long long)d->stride_b);
  if (bytes_of(d, shape_a(d), d->lda, d->stride_a) < 0 || (t->has_b && bytes_of(d, shape_b(d), d->ldb, d->stride_b) < 0) ||
      (!is_c_b(d) && bytes_of(d, shape_c(d), d->ldc, d->stride_c) < 0))
    return ws_fail(h, WSGEMM_INVALID_VALUE, "batch_count is %lld; with these strides it spans more than 2^63 - 1 bytes",
                   (long long)d->batch_count);
  return WSGEMM_SUCCESS;
}

/* Sizes and leading dimensions below 2^30 cannot overflow anything. */
static bool surely_good_shape(const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  const uint64_t all = (uint64_t)((t->has_m ? d->m : 0) | d->n | (t->has_k ? d->k : 0) | d->lda | (t->has_b ? d->ldb : 1) |
                                  (is_c_b(d) ? 1 : d->ldc));
  return all >> 30 == 0 && d->lda > 0 && d->lda >= shape_a(d).length &&
         (!t->has_b || (d->ldb > 0 && d->ldb >= shape_b(d).length)) && !(is_c_b(d) && d->c) &&
         (is_c_b(d) || (d->ldc > 0 && d->ldc >= shape_c(d).length)) && d->batch_count == 1;
}

static wsgemm_status check_shape(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  const int64_t bytes = ws_types[d->type].bytes;
  wsgemm_status status = t->has_m ? ws_check_size(h, "m", d->m) : WSGEMM_SUCCESS;
  if (!status) status = ws_check_size(h, "n", d->n);
  if (!status && t->has_k) status = ws_check_size(h, "k", d->k);
  if (!status) status = ws_check_size(h, "batch_count", d->batch_count);
  if (!status) status = ws_check_ld(h, "lda", shape_a(d).length, shape_a(d).count, d->lda, bytes);
  if (!status && t->has_b) status = ws_check_ld(h, "ldb", shape_b(d).length, shape_b(d).count, d->ldb, bytes);
  if (!status && !is_c_b(d)) status = ws_check_ld(h, "ldc", shape_c(d).length, shape_c(d).count, d->ldc, bytes);
  if (!status && is_c_b(d) && d->c && d->ldc != d->ldb)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "ldc is %lld; as c is b, it must be ldb, %lld", (long long)d->ldc, (long long)d->ldb);
  return !status && d->batch_count > 1 ? check_batch(h, d) : status;
}

wsgemm_status ws_level3_check(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  const wsgemm_status status = check_enums(h, d);
  return status || surely_good_shape(d) ? status : check_shape(h, d);
}

/* ---- pointers -------------------------------------------------------------------------------- */

/* A, and B where it is not written, are not read. */
static bool is_zero(const wsgemm_level3_desc *d) {
  return (traits_of(d)->has_k && d->k == 0) || ws_scalar_is(d->type, &d->alpha, 0);
}

bool ws_level3_is_nothing(const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  if (d->n == 0 || (t->has_m && d->m == 0) || d->batch_count == 0) return true;
  return t->has_beta && ws_scalar_is(d->type, &d->beta, 1) && is_zero(d);
}

static wsgemm_status check_overlaps(wsgemm_handle *h, const wsgemm_level3_desc *d) {
  const ws_routine_traits *t = traits_of(d);
  const int bytes = ws_types[d->type].bytes;
  const ws_extent a = ws_extent_of("a", d->a, d->batch_count, d->stride_a, bytes, bytes_of(d, shape_a(d), d->lda, d->stride_a));
  ws_extent b = {"b", 0, 0};
  if (t->has_b) b = ws_extent_of("b", d->b, d->batch_count, d->stride_b, bytes, bytes_of(d, shape_b(d), d->ldb, d->stride_b));
  ws_extent c = b;
  if (!is_c_b(d)) c = ws_extent_of("c", d->c, d->batch_count, d->stride_c, bytes, bytes_of(d, shape_c(d), d->ldc, d->stride_c));
  if (ws_extents_meet(&c, &a)) return ws_fail(h, WSGEMM_INVALID_VALUE, "%s overlaps a; it must not", c.name);
  if (!is_c_b(d) && ws_extents_meet(&c, &b)) return ws_fail(h, WSGEMM_INVALID_VALUE, "c overlaps b; it must not");
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_level3_check_pointers(wsgemm_handle *h, const wsgemm_level3_desc *d, bool wants_overlaps) {
  const bool reads = !is_zero(d);
  if (reads && !d->a) return ws_fail(h, WSGEMM_INVALID_POINTER, "a is NULL");
  if (!d->b && (is_c_b(d) || (reads && traits_of(d)->has_b))) return ws_fail(h, WSGEMM_INVALID_POINTER, "b is NULL");
  if (!d->c && !is_c_b(d)) return ws_fail(h, WSGEMM_INVALID_POINTER, "c is NULL");
  return wants_overlaps && reads ? check_overlaps(h, d) : WSGEMM_SUCCESS;
}
