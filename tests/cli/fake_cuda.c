/* A libcuda.so.1 that plays a machine with GPUs that compute nothing. WSGEMM_TEST_FAKE_CUDA says in
 * what way:
 *
 *   old         it has no cuLibraryLoadData     no device, zero devices   what they say
 *   no memory   cuMemAlloc fails                broken                    cuInit fails
 *   no code     cuLibraryLoadData knows no image    hopper                what only plans products finds nothing amiss
 *
 * "Device memory" is one block of host memory. What is not written here does nothing and
 * succeeds. */
#include <cuda.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 26 };
static _Alignas(256) unsigned char block[BLOCK_BYTES];
static size_t used_bytes;

static bool plays(const char *state) {
  const char *asked = getenv("WSGEMM_TEST_FAKE_CUDA");
  return asked && strcmp(asked, state) == 0;
}

static CUresult succeed(void) { return CUDA_SUCCESS; }

static CUresult driver_version(int *version) {
  *version = plays("old") ? 11080 : 13000;
  return CUDA_SUCCESS;
}
static CUresult init(unsigned flags) {
  (void)flags;
  return plays("no device") ? CUDA_ERROR_NO_DEVICE : plays("broken") ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}
static CUresult device_count(int *count) {
  *count = plays("zero devices") ? 0 : 2;
  return CUDA_SUCCESS;
}
static CUresult device_get(CUdevice *device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
static CUresult device_name(char *name, int bytes, CUdevice device) {
  (void)device;
  strncpy(name, "Fake GPU", (size_t)bytes);
  return CUDA_SUCCESS;
}
static CUresult device_attribute(int *value, CUdevice_attribute which, CUdevice device) {
  (void)device;
  const bool is_hopper = plays("hopper");
  *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? is_hopper ? 9 : 7
           : which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? is_hopper ? 0 : 5
                                                                   : 40;
  return CUDA_SUCCESS;
}
static CUresult device_memory(size_t *bytes, CUdevice device) {
  (void)device;
  *bytes = (size_t)16 << 30;
  return CUDA_SUCCESS;
}
static CUdevice current;
static CUresult retain(CUcontext *context, CUdevice device) {
  *context = (CUcontext)(void *)&block[device];
  return CUDA_SUCCESS;
}
static CUresult push(CUcontext context) {
  current = (CUdevice)((unsigned char *)(void *)context - block);
  return CUDA_SUCCESS;
}
static CUresult current_context(CUcontext *context) { return retain(context, current); }
static CUresult context_device(CUdevice *device) {
  *device = current;
  return CUDA_SUCCESS;
}
/* Who only plans never reads it, and may have as much as he likes. */
static CUresult memory(CUdeviceptr *address, size_t bytes) {
  *address = (CUdeviceptr)block;
  if (plays("hopper")) return CUDA_SUCCESS;
  if (plays("no memory") || used_bytes + bytes > BLOCK_BYTES) return CUDA_ERROR_OUT_OF_MEMORY;
  *address = (CUdeviceptr)(block + used_bytes);
  used_bytes += (bytes + 255) / 256 * 256;
  return CUDA_SUCCESS;
}
static CUresult to_device(CUdeviceptr there, const void *here, size_t bytes) {
  memcpy((void *)there, here, bytes);
  return CUDA_SUCCESS;
}
static CUresult from_device(void *here, CUdeviceptr there, size_t bytes) {
  memcpy(here, (const void *)there, bytes);
  return CUDA_SUCCESS;
}
static CUresult pointer_attributes(unsigned n, CUpointer_attribute *which, void **values, CUdeviceptr pointer) {
  if (pointer < (CUdeviceptr)block || pointer >= (CUdeviceptr)(block + BLOCK_BYTES)) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < n; i++) {
    const int value = which[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE      ? CU_MEMORYTYPE_DEVICE
                      : which[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? current
                                                                        : 0;
    memcpy(values[i], &value, sizeof value);
  }
  return CUDA_SUCCESS;
}
static CUresult is_capturing(CUstream stream, CUstreamCaptureStatus *status) {
  (void)stream;
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
static CUresult image(void) { return plays("hopper") ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU; }
static CUresult blocks_per_sm(int *blocks, CUfunction function, int n_threads, size_t bytes) {
  (void)function, (void)n_threads, (void)bytes;
  *blocks = 1;
  return CUDA_SUCCESS;
}
static CUresult kernel_of(CUkernel *kernel, CUlibrary library, const char *name) {
  (void)library, (void)name;
  *kernel = (CUkernel)(void *)block;
  return CUDA_SUCCESS;
}
static CUresult error_name(CUresult error, const char **text) {
  (void)error;
  *text = "CUDA_ERROR_FAKED";
  return CUDA_SUCCESS;
}
static CUresult error_text(CUresult error, const char **text) {
  (void)error;
  *text = "as asked for";
  return CUDA_SUCCESS;
}

typedef void (*any_function)(void);

static const struct {
  const char *name;
  any_function function;
} functions[] = {
    {"cuDriverGetVersion", (any_function)driver_version},
    {"cuInit", (any_function)init},
    {"cuDeviceGetCount", (any_function)device_count},
    {"cuDeviceGet", (any_function)device_get},
    {"cuDeviceGetName", (any_function)device_name},
    {"cuDeviceGetAttribute", (any_function)device_attribute},
    {"cuDeviceTotalMem", (any_function)device_memory},
    {"cuDevicePrimaryCtxRetain", (any_function)retain},
    {"cuCtxGetCurrent", (any_function)current_context},
    {"cuCtxGetDevice", (any_function)context_device},
    {"cuCtxPushCurrent", (any_function)push},
    {"cuMemAlloc", (any_function)memory},
    {"cuMemcpyHtoD", (any_function)to_device},
    {"cuMemcpyDtoH", (any_function)from_device},
    {"cuPointerGetAttributes", (any_function)pointer_attributes},
    {"cuStreamIsCapturing", (any_function)is_capturing},
    {"cuLibraryLoadData", (any_function)image},
    {"cuLibraryGetKernel", (any_function)kernel_of},
    {"cuOccupancyMaxActiveBlocksPerMultiprocessor", (any_function)blocks_per_sm},
    {"cuGetErrorName", (any_function)error_name},
    {"cuGetErrorString", (any_function)error_text},
};

CUresult CUDAAPI cuGetProcAddress(const char *name, void **found, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *result) {
  any_function function = (any_function)succeed;
  (void)version, (void)flags, (void)result;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].name, name) == 0) function = functions[i].function;
  if (plays("old") && strcmp(name, "cuLibraryLoadData") == 0) return CUDA_ERROR_NOT_FOUND;
  memcpy(found, &function, sizeof function);
  return CUDA_SUCCESS;
}
