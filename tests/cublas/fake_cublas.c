/* fake_cublas.c - the cuBLAS of fake_cublas.h. Arguments are written down as 64-bit numbers, in their
 * order. */
#include "fake_cublas.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

fake_cublas_library fake_cublas;
char fake_cublas_handles[64];

static cublasStatus_t record(ws_cublas_function function, void *handle, int n, const long long *arguments) {
  atomic_fetch_add((_Atomic int *)&fake_cublas.n_calls, 1);
  atomic_fetch_add((_Atomic int *)&fake_cublas.n_calls_of[function], 1);
  fake_cublas.handle = handle;
  fake_cublas.n_arguments = n;
  memcpy(fake_cublas.argument, arguments, (size_t)n * sizeof *arguments);
  if (fake_cublas.inside) fake_cublas.inside();
  return fake_cublas.status;
}

#define P(pointer) (long long)(uintptr_t)(pointer)
#define RECORD(symbol, ...) \
  return record(WS_##symbol, handle, (int)(sizeof(long long[]){__VA_ARGS__} / sizeof(long long)), (long long[]){__VA_ARGS__})

#define s_ELEMENT float
#define d_ELEMENT double
#define c_ELEMENT cuComplex
#define z_ELEMENT cuDoubleComplex
#define c_REAL float
#define z_REAL double
#define HEAD_GEMM cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb
#define WS_DEFINE WS_CUBLAS_EXPORT cublasStatus_t

#define FAKE_gemm(symbol, x, INT)                                                                           \
  WS_DEFINE symbol(HEAD_GEMM, INT m, INT n, INT k, const x##_ELEMENT *alpha, const x##_ELEMENT *a, INT lda, \
                   const x##_ELEMENT *b, INT ldb, const x##_ELEMENT *beta, x##_ELEMENT *c, INT ldc) {       \
    RECORD(symbol, transa, transb, m, n, k, P(alpha), P(a), lda, P(b), ldb, P(beta), P(c), ldc);            \
  }
#define FAKE_strided(symbol, x, INT)                                                                                            \
  WS_DEFINE symbol(HEAD_GEMM, INT m, INT n, INT k, const x##_ELEMENT *alpha, const x##_ELEMENT *a, INT lda, long long sa,       \
                   const x##_ELEMENT *b, INT ldb, long long sb, const x##_ELEMENT *beta, x##_ELEMENT *c, INT ldc, long long sc, \
                   INT count) {                                                                                                 \
    RECORD(symbol, transa, transb, m, n, k, P(alpha), P(a), lda, sa, P(b), ldb, sb, P(beta), P(c), ldc, sc, count);             \
  }
#define FAKE_gemm_ex(symbol, x, INT)                                                                                           \
  WS_DEFINE symbol(HEAD_GEMM, INT m, INT n, INT k, const void *alpha, const void *a, cudaDataType ta, INT lda, const void *b,  \
                   cudaDataType tb, INT ldb, const void *beta, void *c, cudaDataType tc, INT ldc, cublasComputeType_t compute, \
                   cublasGemmAlgo_t algo) {                                                                                    \
    RECORD(symbol, transa, transb, m, n, k, P(alpha), P(a), ta, lda, P(b), tb, ldb, P(beta), P(c), tc, ldc, compute, algo);    \
  }
#define FAKE_strided_ex(symbol, x, INT)                                                                                        \
  WS_DEFINE symbol(HEAD_GEMM, INT m, INT n, INT k, const void *alpha, const void *a, cudaDataType ta, INT lda, long long sa,   \
                   const void *b, cudaDataType tb, INT ldb, long long sb, const void *beta, void *c, cudaDataType tc, INT ldc, \
                   long long sc, INT count, cublasComputeType_t compute, cublasGemmAlgo_t algo) {                              \
    RECORD(symbol, transa, transb, m, n, k, P(alpha), P(a), ta, lda, sa, P(b), tb, ldb, sb, P(beta), P(c), tc, ldc, sc, count, \
           compute, algo);                                                                                                     \
  }
#define FAKE_batched(symbol, x, INT)                                                                                             \
  WS_DEFINE symbol(HEAD_GEMM, INT m, INT n, INT k, const x##_ELEMENT *alpha, const x##_ELEMENT *const a[], INT lda,              \
                   const x##_ELEMENT *const b[], INT ldb, const x##_ELEMENT *beta, x##_ELEMENT *const c[], INT ldc, INT count) { \
    RECORD(symbol, transa, transb, m, n, k, P(alpha), P(a), lda, P(b), ldb, P(beta), P(c), ldc, count);                          \
  }
#define FAKE_batched_ex(symbol, x, INT)                                                                                          \
  WS_DEFINE symbol(HEAD_GEMM, INT m, INT n, INT k, const void *alpha, const void *const a[], cudaDataType ta, INT lda,           \
                   const void *const b[], cudaDataType tb, INT ldb, const void *beta, void *const c[], cudaDataType tc, INT ldc, \
                   INT count, cublasComputeType_t compute, cublasGemmAlgo_t algo) {                                              \
    RECORD(symbol, transa, transb, m, n, k, P(alpha), P(a), ta, lda, P(b), tb, ldb, P(beta), P(c), tc, ldc, count, compute,      \
           algo);                                                                                                                \
  }
#define FAKE_symm(symbol, x, INT)                                                                                               \
  WS_DEFINE symbol(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, INT m, INT n, const x##_ELEMENT *alpha, \
                   const x##_ELEMENT *a, INT lda, const x##_ELEMENT *b, INT ldb, const x##_ELEMENT *beta, x##_ELEMENT *c,       \
                   INT ldc) {                                                                                                   \
    RECORD(symbol, side, uplo, m, n, P(alpha), P(a), lda, P(b), ldb, P(beta), P(c), ldc);                                       \
  }
#define FAKE_hemm FAKE_symm
#define FAKE_RANK_K(symbol, x, INT, scalar)                                                                                  \
  WS_DEFINE symbol(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, INT n, INT k, const scalar *alpha, \
                   const x##_ELEMENT *a, INT lda, const scalar *beta, x##_ELEMENT *c, INT ldc) {                             \
    RECORD(symbol, uplo, trans, n, k, P(alpha), P(a), lda, P(beta), P(c), ldc);                                              \
  }
#define FAKE_syrk(symbol, x, INT) FAKE_RANK_K(symbol, x, INT, x##_ELEMENT)
#define FAKE_herk(symbol, x, INT) FAKE_RANK_K(symbol, x, INT, x##_REAL)
#define FAKE_RANK_2K(symbol, x, INT, scalar)                                                                                   \
  WS_DEFINE symbol(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, INT n, INT k,                        \
                   const x##_ELEMENT *alpha, const x##_ELEMENT *a, INT lda, const x##_ELEMENT *b, INT ldb, const scalar *beta, \
                   x##_ELEMENT *c, INT ldc) {                                                                                  \
    RECORD(symbol, uplo, trans, n, k, P(alpha), P(a), lda, P(b), ldb, P(beta), P(c), ldc);                                     \
  }
#define FAKE_syr2k(symbol, x, INT) FAKE_RANK_2K(symbol, x, INT, x##_ELEMENT)
#define FAKE_her2k(symbol, x, INT) FAKE_RANK_2K(symbol, x, INT, x##_REAL)
#define HEAD_TRIANGLE \
  cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t diag
#define FAKE_trmm(symbol, x, INT)                                                                                              \
  WS_DEFINE symbol(HEAD_TRIANGLE, INT m, INT n, const x##_ELEMENT *alpha, const x##_ELEMENT *a, INT lda, const x##_ELEMENT *b, \
                   INT ldb, x##_ELEMENT *c, INT ldc) {                                                                         \
    RECORD(symbol, side, uplo, trans, diag, m, n, P(alpha), P(a), lda, P(b), ldb, P(c), ldc);                                  \
  }
#define FAKE_trsm(symbol, x, INT)                                                                                        \
  WS_DEFINE symbol(HEAD_TRIANGLE, INT m, INT n, const x##_ELEMENT *alpha, const x##_ELEMENT *a, INT lda, x##_ELEMENT *b, \
                   INT ldb) {                                                                                            \
    RECORD(symbol, side, uplo, trans, diag, m, n, P(alpha), P(a), lda, P(b), ldb);                                       \
  }
#define ROUTINE(symbol, family, letter, integer) FAKE_##family(symbol, letter, integer)
#include "cublas/routines.def"
#undef ROUTINE

WS_DEFINE cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                         cublasLtMatrixLayout_t la, const void *b, cublasLtMatrixLayout_t lb, const void *beta, const void *c,
                         cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *algo,
                         void *workspace, size_t bytes, cudaStream_t stream) {
  RECORD(cublasLtMatmul, P(desc), P(alpha), P(a), P(la), P(b), P(lb), P(beta), P(c), P(lc), P(d), P(ld), P(algo), P(workspace),
         (long long)bytes, P(stream));
}

/* ---- handles --------------------------------------------------------------------------------- */

static cublasStatus_t state(ws_cublas_function function) {
  atomic_fetch_add((_Atomic int *)&fake_cublas.n_calls_of[function], 1);
  return fake_cublas.is_dead ? CUBLAS_STATUS_NOT_INITIALIZED : CUBLAS_STATUS_SUCCESS;
}

/* Handles are addresses of a byte each, which says whether it is one now. */
static void *begin_handle(void) {
  for (size_t i = 0;; i = (i + 1) % sizeof fake_cublas_handles) {
    char unused = 0;
    if (__atomic_compare_exchange_n(&fake_cublas_handles[i], &unused, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
      return &fake_cublas_handles[i];
  }
}
static void end_handle(void *handle) {
  char *const mine = handle;
  if (mine >= fake_cublas_handles && mine < fake_cublas_handles + sizeof fake_cublas_handles)
    __atomic_store_n(mine, 0, __ATOMIC_SEQ_CST);
}

WS_DEFINE cublasCreate_v2(cublasHandle_t *handle) {
  *handle = begin_handle();
  return state(WS_cublasCreate_v2);
}
WS_DEFINE cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = begin_handle();
  return state(WS_cublasLtCreate);
}
WS_DEFINE cublasDestroy_v2(cublasHandle_t handle) { return end_handle(handle), state(WS_cublasDestroy_v2); }
WS_DEFINE cublasLtDestroy(cublasLtHandle_t handle) { return end_handle(handle), state(WS_cublasLtDestroy); }
WS_DEFINE cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  (void)handle;
  fake_cublas.stream = stream;
  return state(WS_cublasSetStream_v2);
}
WS_DEFINE cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
  return (void)handle, (void)workspace, (void)bytes, state(WS_cublasSetWorkspace_v2);
}
WS_DEFINE cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
  (void)handle;
  *stream = fake_cublas.stream;
  return state(WS_cublasGetStream_v2);
}
WS_DEFINE cublasGetMathMode(cublasHandle_t handle, cublasMath_t *math) {
  (void)handle;
  *math = fake_cublas.math;
  return state(WS_cublasGetMathMode);
}
WS_DEFINE cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode) {
  (void)handle;
  *mode = fake_cublas.scalars;
  return state(WS_cublasGetPointerMode_v2);
}
WS_DEFINE cublasGetSmCountTarget(cublasHandle_t handle, int *n) {
  (void)handle;
  *n = fake_cublas.n_sms;
  return state(WS_cublasGetSmCountTarget);
}

/* ---- cuBLASLt's descriptors ------------------------------------------------------------------ */

static cublasStatus_t attribute(const void *attributes, int what, void *value, size_t bytes, size_t *n) {
  const fake_attributes *const a = attributes;
  if (what < 0 || what >= FAKE_N_ATTRIBUTES || a->is_unknown[what]) return CUBLAS_STATUS_INVALID_VALUE;
  memcpy(value, &a->value[what], bytes);
  *n = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
WS_DEFINE cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what, void *value,
                                           size_t bytes, size_t *n) {
  return attribute(layout, (int)what, value, bytes, n);
}
WS_DEFINE cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t what, void *value,
                                         size_t bytes, size_t *n) {
  return attribute(desc, (int)what, value, bytes, n);
}
