/* flush_gpu.h - an L2 that holds nothing of the operands, before each timing on the GPU. */
#ifndef WSGEMM_BENCH_FLUSH_GPU_H
#define WSGEMM_BENCH_FLUSH_GPU_H
#include <cuda_runtime_api.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Reads 256 MiB in the stream, by a matrix-vector product: nothing of the operands is left in
 * the L2, nor dirty lines (as of a memset), whose way to memory would be part of the next
 * timing. It takes longer than the CPU needs to launch what is timed. The memory is asked for in
 * the first call, which also waits. False, with the reason printed: it could not be launched. */
bool ws_bench_flush_gpu(cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
