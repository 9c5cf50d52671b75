/* accuracy.h - errors of single-precision products beside cuBLAS's sgemm, over distributions of the operands and over k. */
#ifndef WSGEMM_BENCH_ACCURACY_H
#define WSGEMM_BENCH_ACCURACY_H
#include <cuda_runtime_api.h>

/* Prints a table, and appends its lines to the file `json` unless it is NULL. Needs cuBLAS. */
void run_accuracy(cudaStream_t stream, const char *device_name, const char *json, const char *commit);
#endif
