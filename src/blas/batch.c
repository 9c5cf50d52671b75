/* batch.c - see batch.h. Products of a group whose pointers are equally spaced, as they mostly are,
 * are one batched call of wsgemm_gemm, so that small ones share the threads; else each is a call. */
#include "blas/batch.h"

#include <stddef.h>

#include "blas/arguments.h"

/* Numbers of lda, ldb, ldc, batch size in the Fortran call. */
typedef struct numbers {
  int lda, ldb, ldc, count;
} numbers;

/* Nothing has changed places here, so a row-major call's numbers are its own. */
static bool bad(ws_blas_caller caller, int info) {
  if (caller.way & WS_ROW_MAJOR) caller.way ^= WS_ROW_MAJOR | WS_COL_MAJOR;
  return ws_blas_bad(caller, info);
}

static bool good(ws_blas_caller caller, const ws_blas_shape *s, numbers number) {
  const bool is_row = s->layout == WSGEMM_ROW_MAJOR;
  const int64_t rows_a = is_trans(s->transa) ? s->k : s->m, cols_a = is_trans(s->transa) ? s->m : s->k;
  const int64_t rows_b = is_trans(s->transb) ? s->n : s->k, cols_b = is_trans(s->transb) ? s->k : s->n;
  const int info = !s->transa                                    ? 1
                   : !s->transb                                  ? 2
                   : s->m < 0                                    ? 3
                   : s->n < 0                                    ? 4
                   : s->k < 0                                    ? 5
                   : s->lda < least_ld(is_row ? cols_a : rows_a) ? number.lda
                   : s->ldb < least_ld(is_row ? cols_b : rows_b) ? number.ldb
                   : s->ldc < least_ld(is_row ? s->n : s->m)     ? number.ldc
                   : s->count < 0                                ? number.count
                                                                 : 0;
  return info == 0 || bad(caller, info);
}

bool ws_blas_good_count(ws_blas_caller caller, int64_t n_groups) { return n_groups >= 0 || bad(caller, 14); }

bool ws_blas_good_group(ws_blas_caller caller, const ws_blas_shape *shape) {
  return good(caller, shape, (numbers){8, 10, 13, 15});
}
bool ws_blas_good_strided(ws_blas_caller caller, const ws_blas_shape *shape) {
  return good(caller, shape, (numbers){8, 11, 15, 17});
}

static wsgemm_scalar scalar_of(wsgemm_type type, const void *value) {
  wsgemm_scalar scalar = {0};
  switch (type) {
  case WSGEMM_F64:
    scalar.d = *(const double *)value;
    break;
  case WSGEMM_C32:
    scalar.c = *(const wsgemm_cfloat *)value;
    break;
  case WSGEMM_C64:
    scalar.z = *(const wsgemm_cdouble *)value;
    break;
  default:
    scalar.s = *(const float *)value;
  }
  return scalar;
}

static bool is_scalar(wsgemm_type type, const void *value, double re) {
  const wsgemm_scalar s = scalar_of(type, value);
  switch (type) {
  case WSGEMM_F64:
    return s.d == re;
  case WSGEMM_C32:
    return s.c.re == re && s.c.im == 0;
  case WSGEMM_C64:
    return s.z.re == re && s.z.im == 0;
  default:
    return s.s == re;
  }
}

static int64_t bytes_of(wsgemm_type type) { return type == WSGEMM_F32 ? 4 : type == WSGEMM_C64 ? 16 : 8; }

void ws_blas_run_strided(ws_blas_routine routine, wsgemm_type type, const ws_blas_shape *shape, const void *alpha,
                         const void *beta, const void *a, const void *b, void *c, ws_blas_strides strides) {
  if (shape->m == 0 || shape->n == 0 || shape->count == 0) return;
  if ((shape->k == 0 || is_scalar(type, alpha, 0)) && is_scalar(type, beta, 1)) return;
  wsgemm_gemm_desc desc = WSGEMM_GEMM_DESC_INIT;
  desc.layout = shape->layout, desc.transa = shape->transa, desc.transb = shape->transb;
  desc.type_a = desc.type_b = desc.type_c = desc.type_scalar = type;
  desc.m = shape->m, desc.n = shape->n, desc.k = shape->k;
  desc.alpha = scalar_of(type, alpha), desc.beta = scalar_of(type, beta);
  desc.a = a, desc.lda = shape->lda, desc.b = b, desc.ldb = shape->ldb, desc.c = c, desc.ldc = shape->ldc;
  desc.batch_count = shape->count, desc.stride_a = strides.a, desc.stride_b = strides.b, desc.stride_c = strides.c;
  ws_blas_begin(routine, (double)shape->m * (double)shape->n * (double)shape->k * (double)shape->count);
  ws_blas_end(routine, wsgemm_gemm(NULL, &desc));
}

/* From each pointer to the next, in elements; false if they are not equally spaced. */
static bool find_stride(const void *const *pointers, int64_t count, int64_t bytes, int64_t *stride) {
  const intptr_t first = (intptr_t)((uintptr_t)pointers[1] - (uintptr_t)pointers[0]);
  if (first % bytes != 0) return false;
  for (int64_t i = 2; i < count; i++)
    if ((intptr_t)((uintptr_t)pointers[i] - (uintptr_t)pointers[i - 1]) != first) return false;
  *stride = first / bytes;
  return true;
}

/* May products of this stride be computed at once? Not if one C overlaps the next. */
static bool is_apart(const ws_blas_shape *s, int64_t stride) {
  const bool is_row = s->layout == WSGEMM_ROW_MAJOR;
  int64_t extent;
  if (__builtin_mul_overflow((is_row ? s->m : s->n) - 1, s->ldc, &extent)) return false;
  extent += is_row ? s->n : s->m;
  return stride >= extent || stride <= -extent;
}

void ws_blas_run_group(ws_blas_routine routine, wsgemm_type type, const ws_blas_shape *shape, const void *alpha, const void *beta,
                       const void *const *a, const void *const *b, void *const *c) {
  if (shape->m == 0 || shape->n == 0 || shape->count == 0) return;
  const int64_t bytes = bytes_of(type), count = shape->count;
  ws_blas_strides strides = {0, 0, 0};
  if (count > 1 && find_stride(a, count, bytes, &strides.a) && find_stride(b, count, bytes, &strides.b) &&
      find_stride((const void *const *)c, count, bytes, &strides.c) && is_apart(shape, strides.c)) {
    ws_blas_run_strided(routine, type, shape, alpha, beta, a[0], b[0], c[0], strides);
    return;
  }
  ws_blas_shape one = *shape;
  one.count = 1;
  for (int64_t i = 0; i < count; i++)
    ws_blas_run_strided(routine, type, &one, alpha, beta, a[i], b[i], c[i], (ws_blas_strides){0, 0, 0});
}
