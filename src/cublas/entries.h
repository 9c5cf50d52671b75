/* entries.h - the entry point of each family: ENTRY_family(symbol, letter, integer). entries.c expands
 * routines.def through these macros.
 *
 * An entry point writes its arguments into a call, as they are; what is wrong with them is cuBLAS's to
 * say, which gets them when wsgemm has refused them. */
#ifndef WS_CUBLAS_ENTRIES_H
#define WS_CUBLAS_ENTRIES_H

#include "cublas/types.h"

/* All but where the matrices are. */
#define BEGIN_PRODUCT(symbol, alpha_, beta_)                                        \
  ws_cublas_call call;                                                              \
  call.function = WS_##symbol, call.handle = handle;                                \
  call.is_level3 = call.is_lt = call.is_bad = call.is_foreign = false;              \
  call.has_arrays = false;                                                          \
  call.alpha = (alpha_), call.beta = (beta_);                                       \
  call.desc.gemm = (wsgemm_gemm_desc)WSGEMM_GEMM_DESC_INIT;                         \
  wsgemm_gemm_desc *const d = &call.desc.gemm;                                      \
  d->transa = op_of(transa, &call.is_bad), d->transb = op_of(transb, &call.is_bad); \
  d->m = m, d->n = n, d->k = k;                                                     \
  d->lda = lda, d->ldb = ldb, d->ldc = ldc

#define BEGIN_GEMM(symbol, alpha_, beta_) \
  BEGIN_PRODUCT(symbol, alpha_, beta_);   \
  d->a = A, d->b = B, d->c = C

/* A, B and C are arrays of pointers. */
#define BEGIN_BATCH(symbol, alpha_, beta_, count)                                              \
  BEGIN_PRODUCT(symbol, alpha_, beta_);                                                        \
  call.has_arrays = true;                                                                      \
  call.a = (const void *const *)A, call.b = (const void *const *)B, call.c = (void *const *)C; \
  d->batch_count = (count)

#define BEGIN_LEVEL3(symbol, routine_, x, type_alpha_, type_beta_, alpha_, beta_) \
  ws_cublas_call call;                                                            \
  call.function = WS_##symbol, call.handle = handle;                              \
  call.is_level3 = true, call.is_lt = call.is_bad = call.is_foreign = false;      \
  call.has_arrays = false;                                                        \
  call.alpha = (alpha_), call.beta = (beta_);                                     \
  call.type_alpha = (type_alpha_), call.type_beta = (type_beta_);                 \
  call.desc.level3 = (wsgemm_level3_desc)WSGEMM_LEVEL3_DESC_INIT;                 \
  wsgemm_level3_desc *const d = &call.desc.level3;                                \
  d->routine = WSGEMM_##routine_, d->type = TYPE_##x

/* Last in an entry point: the call by wsgemm, or with these arguments by cuBLAS. */
#define TAKE_OR_PASS_ON(symbol, ...)                 \
  cublasStatus_t status;                             \
  if (ws_cublas_take(&call, &status)) return status; \
  PASS_ON(symbol, handle, __VA_ARGS__)

#define SET_TYPE(x) d->type_a = d->type_b = d->type_c = d->type_scalar = call.type_alpha = call.type_beta = TYPE_##x

#define ENTRY_gemm(symbol, x, INT)                                                                                          \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INT m,  \
                                         INT n, INT k, const ELEMENT_##x *alpha, const ELEMENT_##x *A, INT lda,             \
                                         const ELEMENT_##x *B, INT ldb, const ELEMENT_##x *beta, ELEMENT_##x *C, INT ldc) { \
    BEGIN_GEMM(symbol, alpha, beta);                                                                                        \
    SET_TYPE(x);                                                                                                            \
    TAKE_OR_PASS_ON(symbol, handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc);                          \
  }

#define SET_BATCH(count) d->batch_count = (count), d->stride_a = strideA, d->stride_b = strideB, d->stride_c = strideC

#define ENTRY_strided(symbol, x, INT)                                                                                           \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(                                                                                       \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INT m, INT n, INT k, const ELEMENT_##x *alpha, \
      const ELEMENT_##x *A, INT lda, long long int strideA, const ELEMENT_##x *B, INT ldb, long long int strideB,               \
      const ELEMENT_##x *beta, ELEMENT_##x *C, INT ldc, long long int strideC, INT batch_count) {                               \
    BEGIN_GEMM(symbol, alpha, beta);                                                                                            \
    SET_TYPE(x);                                                                                                                \
    SET_BATCH(batch_count);                                                                                                     \
    TAKE_OR_PASS_ON(symbol, handle, transa, transb, m, n, k, alpha, A, lda, strideA, B, ldb, strideB, beta, C, ldc, strideC,    \
                    batch_count);                                                                                               \
  }

#define ENTRY_batched(symbol, x, INT)                                                                                            \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INT m,       \
                                         INT n, INT k, const ELEMENT_##x *alpha, const ELEMENT_##x *const A[], INT lda,          \
                                         const ELEMENT_##x *const B[], INT ldb, const ELEMENT_##x *beta, ELEMENT_##x *const C[], \
                                         INT ldc, INT batch_count) {                                                             \
    BEGIN_BATCH(symbol, alpha, beta, batch_count);                                                                               \
    SET_TYPE(x);                                                                                                                 \
    TAKE_OR_PASS_ON(symbol, handle, transa, transb, m, n, k, alpha, A, lda, B, ldb, beta, C, ldc, batch_count);                  \
  }

#define ENTRY_gemm_ex(symbol, x, INT)                                                                                        \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INT m,   \
                                         INT n, INT k, const void *alpha, const void *A, cudaDataType type_a, INT lda,       \
                                         const void *B, cudaDataType type_b, INT ldb, const void *beta, void *C,             \
                                         cudaDataType type_c, INT ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo) { \
    BEGIN_GEMM(symbol, alpha, beta);                                                                                         \
    call.is_foreign = !set_types(&call, type_a, type_b, type_c, compute);                                                    \
    TAKE_OR_PASS_ON(symbol, handle, transa, transb, m, n, k, alpha, A, type_a, lda, B, type_b, ldb, beta, C, type_c, ldc,    \
                    compute, algo);                                                                                          \
  }

#define ENTRY_strided_ex(symbol, x, INT)                                                                                       \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(                                                                                      \
      cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INT m, INT n, INT k, const void *alpha,       \
      const void *A, cudaDataType type_a, INT lda, long long int strideA, const void *B, cudaDataType type_b, INT ldb,         \
      long long int strideB, const void *beta, void *C, cudaDataType type_c, INT ldc, long long int strideC, INT batch_count,  \
      cublasComputeType_t compute, cublasGemmAlgo_t algo) {                                                                    \
    BEGIN_GEMM(symbol, alpha, beta);                                                                                           \
    SET_BATCH(batch_count);                                                                                                    \
    call.is_foreign = !set_types(&call, type_a, type_b, type_c, compute);                                                      \
    TAKE_OR_PASS_ON(symbol, handle, transa, transb, m, n, k, alpha, A, type_a, lda, strideA, B, type_b, ldb, strideB, beta, C, \
                    type_c, ldc, strideC, batch_count, compute, algo);                                                         \
  }

#define ENTRY_batched_ex(symbol, x, INT)                                                                                         \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INT m,       \
                                         INT n, INT k, const void *alpha, const void *const A[], cudaDataType type_a, INT lda,   \
                                         const void *const B[], cudaDataType type_b, INT ldb, const void *beta, void *const C[], \
                                         cudaDataType type_c, INT ldc, INT batch_count, cublasComputeType_t compute,             \
                                         cublasGemmAlgo_t algo) {                                                                \
    BEGIN_BATCH(symbol, alpha, beta, batch_count);                                                                               \
    call.is_foreign = !set_types(&call, type_a, type_b, type_c, compute);                                                        \
    TAKE_OR_PASS_ON(symbol, handle, transa, transb, m, n, k, alpha, A, type_a, lda, B, type_b, ldb, beta, C, type_c, ldc,        \
                    batch_count, compute, algo);                                                                                 \
  }

#define ENTRY_SYMM(symbol, x, INT, routine)                                                                                      \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo, INT m, INT n,      \
                                         const ELEMENT_##x *alpha, const ELEMENT_##x *A, INT lda, const ELEMENT_##x *B, INT ldb, \
                                         const ELEMENT_##x *beta, ELEMENT_##x *C, INT ldc) {                                     \
    BEGIN_LEVEL3(symbol, routine, x, TYPE_##x, TYPE_##x, alpha, beta);                                                           \
    d->side = side_of(side, &call.is_bad), d->uplo = uplo_of(uplo, &call.is_bad);                                                \
    d->m = m, d->n = n, d->a = A, d->lda = lda, d->b = B, d->ldb = ldb, d->c = C, d->ldc = ldc;                                  \
    TAKE_OR_PASS_ON(symbol, handle, side, uplo, m, n, alpha, A, lda, B, ldb, beta, C, ldc);                                      \
  }
#define ENTRY_symm(symbol, x, INT) ENTRY_SYMM(symbol, x, INT, SYMM)
#define ENTRY_hemm(symbol, x, INT) ENTRY_SYMM(symbol, x, INT, HEMM)

#define ENTRY_RANK_K(symbol, x, INT, routine, scalar, type_scalar)                                                               \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, INT n, INT k,    \
                                         const scalar *alpha, const ELEMENT_##x *A, INT lda, const scalar *beta, ELEMENT_##x *C, \
                                         INT ldc) {                                                                              \
    BEGIN_LEVEL3(symbol, routine, x, type_scalar, type_scalar, alpha, beta);                                                     \
    d->uplo = uplo_of(uplo, &call.is_bad), d->transa = op_of(trans, &call.is_bad);                                               \
    d->n = n, d->k = k, d->a = A, d->lda = lda, d->c = C, d->ldc = ldc;                                                          \
    TAKE_OR_PASS_ON(symbol, handle, uplo, trans, n, k, alpha, A, lda, beta, C, ldc);                                             \
  }
#define ENTRY_syrk(symbol, x, INT) ENTRY_RANK_K(symbol, x, INT, SYRK, ELEMENT_##x, TYPE_##x)
#define ENTRY_herk(symbol, x, INT) ENTRY_RANK_K(symbol, x, INT, HERK, REAL_##x, TYPE_OF_REAL_##x)

#define ENTRY_RANK_2K(symbol, x, INT, routine, scalar, type_scalar)                                                              \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, INT n, INT k,    \
                                         const ELEMENT_##x *alpha, const ELEMENT_##x *A, INT lda, const ELEMENT_##x *B, INT ldb, \
                                         const scalar *beta, ELEMENT_##x *C, INT ldc) {                                          \
    BEGIN_LEVEL3(symbol, routine, x, TYPE_##x, type_scalar, alpha, beta);                                                        \
    d->uplo = uplo_of(uplo, &call.is_bad), d->transa = op_of(trans, &call.is_bad);                                               \
    d->n = n, d->k = k, d->a = A, d->lda = lda, d->b = B, d->ldb = ldb, d->c = C, d->ldc = ldc;                                  \
    TAKE_OR_PASS_ON(symbol, handle, uplo, trans, n, k, alpha, A, lda, B, ldb, beta, C, ldc);                                     \
  }
#define ENTRY_syr2k(symbol, x, INT) ENTRY_RANK_2K(symbol, x, INT, SYR2K, ELEMENT_##x, TYPE_##x)
#define ENTRY_her2k(symbol, x, INT) ENTRY_RANK_2K(symbol, x, INT, HER2K, REAL_##x, TYPE_OF_REAL_##x)

#define SET_TRIANGLE()                                                           \
  d->side = side_of(side, &call.is_bad), d->uplo = uplo_of(uplo, &call.is_bad);  \
  d->transa = op_of(trans, &call.is_bad), d->diag = diag_of(diag, &call.is_bad); \
  d->m = m, d->n = n, d->a = A, d->lda = lda, d->b = B, d->ldb = ldb

/* B and the result C, which may be B. */
#define ENTRY_trmm(symbol, x, INT)                                                                                               \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,                    \
                                         cublasOperation_t trans, cublasDiagType_t diag, INT m, INT n, const ELEMENT_##x *alpha, \
                                         const ELEMENT_##x *A, INT lda, const ELEMENT_##x *B, INT ldb, ELEMENT_##x *C,           \
                                         INT ldc) {                                                                              \
    BEGIN_LEVEL3(symbol, TRMM, x, TYPE_##x, TYPE_##x, alpha, NULL);                                                              \
    SET_TRIANGLE();                                                                                                              \
    d->c = C, d->ldc = ldc;                                                                                                      \
    TAKE_OR_PASS_ON(symbol, handle, side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb, C, ldc);                               \
  }

#define ENTRY_trsm(symbol, x, INT)                                                                                               \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t uplo,                    \
                                         cublasOperation_t trans, cublasDiagType_t diag, INT m, INT n, const ELEMENT_##x *alpha, \
                                         const ELEMENT_##x *A, INT lda, ELEMENT_##x *B, INT ldb) {                               \
    BEGIN_LEVEL3(symbol, TRSM, x, TYPE_##x, TYPE_##x, alpha, NULL);                                                              \
    SET_TRIANGLE();                                                                                                              \
    TAKE_OR_PASS_ON(symbol, handle, side, uplo, trans, diag, m, n, alpha, A, lda, B, ldb);                                       \
  }

#endif
