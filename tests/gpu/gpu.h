/* gpu.h - what the suites of the GPU backend need of the CUDA runtime: device memory, mirrors of
 * the arenas, streams, graphs. */
#ifndef WSGEMM_TESTS_GPU_H
#define WSGEMM_TESTS_GPU_H
#include <cuda_runtime_api.h>

#include "support/rows.h"

/* Ends the process with 77 (skipped) if there is no GPU. Makes run_case work on device memory and
 * rows_open open GPU rows. */
void gpu_open(void);

/* CUDA call that must succeed. */
#define GPU(call) gpu_check((call), __FILE__, __LINE__, #call)
void gpu_check(cudaError_t result, const char *file, int line, const char *call);

/* run_case's caller, and that of cases with an epilogue: whole arenas, guards and all, go to the
 * device and come back. */
gemm_caller call_on_device;
arenas_caller call_arenas_on_device;
/* The same for another product, who works on the default stream or waits; d's pointers are of the
 * device. */
typedef wsgemm_status device_gemm(wsgemm_handle *handle, const wsgemm_gemm_desc *d);
wsgemm_status call_mirrored(const struct arena *arenas, int n_arenas, wsgemm_handle *handle, const wsgemm_gemm_desc *d,
                            device_gemm *gemm);

/* An element's real part, or its imaginary one, of a type; of half precision a normal number of either type, or 0. */
void element_put(wsgemm_type type, unsigned char *to, double x);

/* Device memory with the bytes of host memory. */
void *gpu_copy(const void *host, size_t bytes);
/* Also for streams that do not wait for others: a copy of pageable memory may be under way when
 * cudaMemcpy returns. */
void gpu_put(void *device, const void *host, size_t bytes);
void *gpu_alloc(size_t bytes);
void gpu_free(void *device);
/* 64-bit digest of device memory. */
unsigned long long gpu_digest(const void *device, size_t bytes);
#endif
