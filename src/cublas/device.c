/* device.c - where memory lies, and what is captured, asked of the CUDA driver that the process has: wsgemm.h has no such
 * question, and its calls on host memory are the CPU's, which cuBLAS's must never be. */
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "cublas/cublas.h"

typedef CUresult (*get_address)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

static struct {
  CUresult (*pointer_attributes)(unsigned int, CUpointer_attribute *, void **, CUdeviceptr);
  CUresult (*current_device)(CUdevice *);
  CUresult (*device_attribute)(int *, CUdevice_attribute, CUdevice);
  CUresult (*is_capturing)(CUstream, CUstreamCaptureStatus *);
} driver;
static atomic_bool has_driver;

static void find_driver(void) {
  void *const library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  get_address get = NULL;
  if (library) *(void **)&get = dlsym(library, "cuGetProcAddress_v2");
  if (!get) return;
  const bool is_whole = get("cuPointerGetAttributes", (void **)&driver.pointer_attributes, 7000, 0, NULL) == CUDA_SUCCESS &&
                        get("cuCtxGetDevice", (void **)&driver.current_device, 2000, 0, NULL) == CUDA_SUCCESS &&
                        get("cuDeviceGetAttribute", (void **)&driver.device_attribute, 2000, 0, NULL) == CUDA_SUCCESS &&
                        get("cuStreamIsCapturing", (void **)&driver.is_capturing, 10000, 0, NULL) == CUDA_SUCCESS;
  atomic_store(&has_driver, is_whole);
}

/* Remembered for the first devices: 10 * major + minor, 0 if it is not known. */
static int cc_of(int device) {
  enum { N_DEVICES = 64 };
  static atomic_int ccs[N_DEVICES];
  const bool is_kept = device >= 0 && device < N_DEVICES;
  int cc = is_kept ? atomic_load_explicit(&ccs[device], memory_order_relaxed) : 0, major = 0, minor = 0;
  if (cc > 0) return cc;
  if (driver.device_attribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device) != CUDA_SUCCESS ||
      driver.device_attribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device) != CUDA_SUCCESS)
    return 0;
  cc = 10 * major + minor;
  if (is_kept) atomic_store_explicit(&ccs[device], cc, memory_order_relaxed);
  return cc;
}

ws_cublas_place ws_cublas_place_of(const void *pointer) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, find_driver);
  ws_cublas_place place = {false, 0};
  if (!pointer || !atomic_load_explicit(&has_driver, memory_order_relaxed)) return place;
  unsigned int memory_type = 0, is_managed = 0;
  int device = -1;
  CUdevice current = -1;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *values[] = {&memory_type, &is_managed, &device};
  if (driver.pointer_attributes(3, attributes, values, (CUdeviceptr)(uintptr_t)pointer) != CUDA_SUCCESS) return place;
  if (memory_type != CU_MEMORYTYPE_DEVICE || is_managed) return place;
  place.is_device = driver.current_device(&current) == CUDA_SUCCESS && current == device;
  place.cc = cc_of(device);
  return place;
}

/* One that cannot be asked counts as captured: then less is taken. */
bool ws_cublas_is_captured(cudaStream_t stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return driver.is_capturing((CUstream)stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}
