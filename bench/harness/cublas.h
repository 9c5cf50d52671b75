/* cublas.h - cuBLAS as the bench's peer: loaded at run time, so that nothing here needs it to be
 * built. */
#ifndef WSGEMM_BENCH_CUBLAS_H
#define WSGEMM_BENCH_CUBLAS_H
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "wsgemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads libcublas and makes its handle on the stream; DEFAULT math: it too computes in the
 * data's own type. False, with the reason printed: there is none. */
bool ws_bench_cublas_open(cudaStream_t stream);
/* F32 by matrix units with operands rounded to TF32; or as it was */
void ws_bench_cublas_set_tf32(bool on);
const char *ws_bench_cublas_version(void); /* "cuBLAS 13.0.2" */
/* C = alpha op(A) op(B), column-major; F16 and BF16 with sums in FP32. transa, transb:
 * WSGEMM_NO_TRANS, WSGEMM_TRANS. True if it was launched. */
bool ws_bench_cublas_gemm(wsgemm_type type, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k, const void *a,
                          int64_t lda, const void *b, int64_t ldb, void *c, int64_t ldc);
/* The same of a strided batch. */
bool ws_bench_cublas_gemm_batched(wsgemm_type type, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k,
                                  const void *a, int64_t lda, int64_t stride_a, const void *b, int64_t ldb, int64_t stride_b,
                                  void *c, int64_t ldc, int64_t stride_c, int64_t count);
/* The same of matrices at `count` places each: arrays of pointers, in device memory themselves. */
bool ws_bench_cublas_gemm_pointers(wsgemm_type type, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k,
                                   const void *const *a, int64_t lda, const void *const *b, int64_t ldb, void *const *c,
                                   int64_t ldc, int64_t count);

#ifdef __cplusplus
}
#endif
#endif
