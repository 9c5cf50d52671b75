/* flush_gpu.c - see flush_gpu.h. */
#include "bench/harness/flush_gpu.h"

#include <stdio.h>

#include "wsgemm.h"

bool ws_bench_flush_gpu(cudaStream_t stream) {
  enum { M = 16384, K = 4096 }; /* 256 MiB of floats */
  static wsgemm_handle *handle;
  static float *matrix, *vectors;
  if (!handle) {
    if (cudaMalloc((void **)&matrix, (size_t)M * K * sizeof(float)) != cudaSuccess ||
        cudaMalloc((void **)&vectors, (M + K) * sizeof(float)) != cudaSuccess ||
        cudaMemset(matrix, 0, (size_t)M * K * sizeof(float)) != cudaSuccess ||
        cudaMemset(vectors, 0, (M + K) * sizeof(float)) != cudaSuccess || cudaDeviceSynchronize() != cudaSuccess ||
        wsgemm_create(&handle) != WSGEMM_SUCCESS) {
      fprintf(stderr, "flush: no memory for it\n");
      return false;
    }
  }
  if (wsgemm_set_stream(handle, stream) == WSGEMM_SUCCESS &&
      wsgemm_sgemm(handle, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, 1, K, 1, matrix, K, vectors, 1, 0, vectors + K,
                   1) == WSGEMM_SUCCESS)
    return true;
  fprintf(stderr, "flush: %s\n", wsgemm_last_error());
  return false;
}
