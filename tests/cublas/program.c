/* program.c - a program that knows nothing of wsgemm, only cuBLAS's names: process.sh runs it under
 * libwsgemm_cublas. As a plug-in (IS_PLUGIN) it is what loader.c opens.
 *
 *   program    two products, a small and a large one, of host memory */
#include <stdio.h>

#include "fake_cublas.h"

static float matrix[4];

/* Products that this program's own cuBLAS was asked for, of its own handle. */
int run_products(void);
WS_CUBLAS_EXPORT int run_products(void) {
  const float one = 1;
  cublasHandle_t handle = NULL;
  const int n_before = fake_cublas.n_calls_of[WS_cublasSgemm_v2];
  if (cublasCreate_v2(&handle) != CUBLAS_STATUS_SUCCESS) return -1;
  if ((char *)handle < fake_cublas_handles || (char *)handle >= fake_cublas_handles + sizeof fake_cublas_handles) return -2;
  for (int n = 1; n <= 4096; n *= 4096)
    if (cublasSgemm_v2(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, matrix, n, matrix, n, &one, matrix, n) !=
        CUBLAS_STATUS_SUCCESS)
      return -3;
  if (cublasDestroy_v2(handle) != CUBLAS_STATUS_SUCCESS || fake_cublas.n_calls_of[WS_cublasDestroy_v2] == 0) return -4;
  return fake_cublas.n_calls_of[WS_cublasSgemm_v2] - n_before;
}

#ifndef IS_PLUGIN
int main(void) {
  printf("products of cuBLAS: %d\n", run_products());
  return 0;
}
#endif
