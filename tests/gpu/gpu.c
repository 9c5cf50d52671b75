/* gpu.c - device memory for the suites of the GPU backend: see gpu.h. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpu_check(cudaError_t result, const char *file, int line, const char *call) {
  if (result == cudaSuccess) return;
  check_abandon(file, line, call, "%s: %s", cudaGetErrorName(result), cudaGetErrorString(result));
}

void gpu_open(void) {
  int n_devices = 0;
  if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
    puts("skipped: no GPU");
    exit(77);
  }
  GPU(cudaSetDevice(0));
  GPU(cudaFree(NULL)); /* makes the context */
  rows_backend = "cuda";
  run_case_caller = call_on_device;
}

void *gpu_alloc(size_t bytes) {
  void *device = NULL;
  GPU(cudaMalloc(&device, bytes ? bytes : 1));
  return device;
}

void *gpu_copy(const void *host, size_t bytes) {
  void *device = gpu_alloc(bytes);
  GPU(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  return device;
}

void gpu_free(void *device) { GPU(cudaFree(device)); }

unsigned long long gpu_digest(const void *device, size_t bytes) {
  unsigned char *host = malloc(bytes);
  REQUIRE(host != NULL, "%zu bytes", bytes);
  GPU(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
  unsigned long long digest = 1469598103934665603ull; /* FNV-1a */
  for (size_t i = 0; i < bytes; i++) digest = (digest ^ host[i]) * 1099511628211ull;
  free(host);
  return digest;
}

/* A device copy of each arena, kept from case to case while the arenas stay as large. */
static unsigned char *mirror[3];
static size_t mirror_bytes[3];

static void *to_mirror(int i, const struct arena *arena, const void *pointer) {
  if (mirror_bytes[i] < arena->bytes) {
    if (mirror[i]) gpu_free(mirror[i]);
    mirror[i] = gpu_alloc(arena->bytes);
    mirror_bytes[i] = arena->bytes;
  }
  GPU(cudaMemcpyAsync(mirror[i], arena->low, arena->bytes, cudaMemcpyHostToDevice, 0));
  return mirror[i] + ((const unsigned char *)pointer - arena->low);
}

wsgemm_status call_mirrored(struct stage *stage, wsgemm_handle *handle, const wsgemm_gemm_desc *d, device_gemm *gemm) {
  wsgemm_gemm_desc there = *d;
  there.a = to_mirror(0, &stage->arena[0], d->a);
  there.b = to_mirror(1, &stage->arena[1], d->b);
  there.c = to_mirror(2, &stage->arena[2], d->c);
  const wsgemm_status status = gemm(handle, &there);
  for (int i = 0; i < 3; i++)
    GPU(cudaMemcpyAsync(stage->arena[i].low, mirror[i], stage->arena[i].bytes, cudaMemcpyDeviceToHost, 0));
  GPU(cudaStreamSynchronize(0));
  return status;
}

wsgemm_status call_on_device(struct stage *stage, wsgemm_handle *handle, const wsgemm_gemm_desc *d, bool typed) {
  return call_mirrored(stage, handle, d, typed ? gemm_typed : wsgemm_gemm);
}
