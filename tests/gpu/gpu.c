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

void gpu_put(void *device, const void *host, size_t bytes) {
  GPU(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
  GPU(cudaDeviceSynchronize());
}

void *gpu_copy(const void *host, size_t bytes) {
  void *device = gpu_alloc(bytes);
  gpu_put(device, host, bytes);
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
enum { MAX_ARENAS = 8 };
static unsigned char *mirror[MAX_ARENAS];
static size_t mirror_bytes[MAX_ARENAS];

static void to_mirror(int i, const struct arena *arena) {
  if (mirror_bytes[i] < arena->bytes) {
    if (mirror[i]) gpu_free(mirror[i]);
    mirror[i] = gpu_alloc(arena->bytes);
    mirror_bytes[i] = arena->bytes;
  }
  GPU(cudaMemcpyAsync(mirror[i], arena->low, arena->bytes, cudaMemcpyHostToDevice, 0));
}

/* What stands there of the arena that the pointer points into: an empty matrix may lie right behind
 * the last byte. */
static void *in_mirror(const struct arena *arenas, int n_arenas, const void *pointer) {
  const unsigned char *const byte = pointer;
  int i = 0;
  if (!pointer) return NULL;
  while (i < n_arenas && !(byte >= arenas[i].low && byte <= arenas[i].low + arenas[i].bytes)) i++;
  REQUIRE(i < n_arenas, "%p points into none of %d arenas", pointer, n_arenas);
  return mirror[i] + (byte - arenas[i].low);
}

wsgemm_status call_mirrored(const struct arena *arenas, int n_arenas, wsgemm_handle *handle, const wsgemm_gemm_desc *d,
                            device_gemm *gemm) {
  wsgemm_gemm_desc there = *d;
  REQUIRE(n_arenas <= MAX_ARENAS, "%d arenas", n_arenas);
  for (int i = 0; i < n_arenas; i++) to_mirror(i, &arenas[i]);
  there.a = in_mirror(arenas, n_arenas, d->a);
  there.b = in_mirror(arenas, n_arenas, d->b);
  there.c = in_mirror(arenas, n_arenas, d->c);
  there.bias = in_mirror(arenas, n_arenas, d->bias);
  there.residual = in_mirror(arenas, n_arenas, d->residual);
  there.column_sums = in_mirror(arenas, n_arenas, d->column_sums);
  GPU(cudaStreamSynchronize(0)); /* gemm may work on a stream that does not wait for this one */
  const wsgemm_status status = gemm(handle, &there);
  for (int i = 0; i < n_arenas; i++) GPU(cudaMemcpyAsync(arenas[i].low, mirror[i], arenas[i].bytes, cudaMemcpyDeviceToHost, 0));
  GPU(cudaStreamSynchronize(0));
  return status;
}

wsgemm_status call_arenas_on_device(const struct arena *arenas, int n_arenas, wsgemm_handle *handle, const wsgemm_gemm_desc *d) {
  return call_mirrored(arenas, n_arenas, handle, d, wsgemm_gemm);
}

wsgemm_status call_on_device(struct stage *stage, wsgemm_handle *handle, const wsgemm_gemm_desc *d, bool typed) {
  return call_mirrored(stage->arena, 3, handle, d, typed ? gemm_typed : wsgemm_gemm);
}

void element_put(wsgemm_type type, unsigned char *to, double x) {
  const float single = (float)x;
  uint32_t bits;
  memcpy(&bits, &single, 4);
  if (type == WSGEMM_F64 || type == WSGEMM_C64) {
    memcpy(to, &x, 8);
  } else if (!type_is_half(type)) {
    memcpy(to, &single, 4);
  } else {
    /* a normal number of either type, or 0 */
    const uint32_t f16 = (bits >> 16 & 0x8000) | ((bits >> 23 & 255) - 112) << 10 | (bits >> 13 & 1023);
    const uint16_t half = (uint16_t)(x == 0 ? 0 : type == WSGEMM_F16 ? f16 : bits >> 16);
    memcpy(to, &half, 2);
  }
}
