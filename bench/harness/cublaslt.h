/* cublaslt.h - the kernels that cuBLASLt's heuristic proposes for a product of 16-bit matrices,
 * as peers of the bench: loaded at run time. */
#ifndef WSGEMM_BENCH_CUBLASLT_H
#define WSGEMM_BENCH_CUBLASLT_H
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "wsgemm.h"

enum { WS_BENCH_CUBLASLT_MOST = 8 };

/* Finds the candidates for C = op(A) op(B), column-major, F16 or BF16, sums in FP32: returns how
 * many, at most WS_BENCH_CUBLASLT_MOST; -1, with the reason printed: there is no cuBLASLt. They
 * hold until the next call. */
int ws_bench_cublaslt_propose(wsgemm_type type, wsgemm_op transa, wsgemm_op transb, int64_t m, int64_t n, int64_t k, int64_t lda,
                              int64_t ldb, int64_t ldc);
const char *ws_bench_cublaslt_version(void); /* "cuBLASLt 13.1.0", after a first proposal */
/* Launches one of them on matrices of those sizes. True if it was. */
bool ws_bench_cublaslt_gemm(int candidate, const void *a, const void *b, void *c, cudaStream_t stream);
#endif
