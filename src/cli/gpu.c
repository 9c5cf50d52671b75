/* A GPU for the commands: see gpu.h. */
#define _GNU_SOURCE
#include "gpu.h"
#include "cli.h"

#include <stdio.h>

#ifdef WS_WITH_CUDA
#include "cuda/host/driver.h"

#include <time.h>

static bool succeeded(CUresult result, const char *what, char *why) {
  const char *name = NULL, *text = NULL;
  if (result == CUDA_SUCCESS) return true;
  ws_cuda.cuGetErrorName(result, &name);
  ws_cuda.cuGetErrorString(result, &text);
  snprintf(why, WS_GPU_WHY_BYTES, "%s: %s (%s)", what, name ? name : "unknown error", text ? text : "?");
  return false;
}

/* ---- Finding it ------------------------------------------------------------------------------ */

int ws_gpu_driver_version(void) {
  int version = 0;
  if (!ws_cuda.cuDriverGetVersion || ws_cuda.cuDriverGetVersion(&version) != CUDA_SUCCESS) return 0;
  return version;
}

ws_gpu_state ws_gpu_find(int *n_devices, char why[WS_GPU_WHY_BYTES]) {
  *n_devices = 0;
  if (!ws_cuda.is_loaded) ws_driver_find(), ws_driver_load();
  if (!ws_cuda.is_loaded) {
    snprintf(why, WS_GPU_WHY_BYTES, "no NVIDIA driver: libcuda.so.1 is not there or cannot be loaded");
    return WS_GPU_NO_DRIVER;
  }
  const char *missing = ws_driver_load_tools();
  if (missing) {
    const int version = ws_gpu_driver_version();
    char of[32] = "";
    if (version) snprintf(of, sizeof of, ", made for CUDA %d.%d,", version / 1000, version % 1000 / 10);
    snprintf(why, WS_GPU_WHY_BYTES, "the NVIDIA driver is too old: it%s has no %s; one for CUDA 12.0 or later has", of, missing);
    return WS_GPU_OLD_DRIVER;
  }
  const CUresult result = ws_cuda.cuInit(0);
  if (result == CUDA_ERROR_NO_DEVICE) {
    snprintf(why, WS_GPU_WHY_BYTES, "the NVIDIA driver finds no GPU that this process may use (CUDA_VISIBLE_DEVICES hides some)");
    return WS_GPU_NO_DEVICE;
  }
  if (!succeeded(result, "cuInit", why) || !succeeded(ws_cuda.cuDeviceGetCount(n_devices), "cuDeviceGetCount", why))
    return WS_GPU_BROKEN;
  if (*n_devices > 0) return WS_GPU_READY;
  snprintf(why, WS_GPU_WHY_BYTES, "the NVIDIA driver finds no GPU");
  return WS_GPU_NO_DEVICE;
}

bool ws_gpu_open(int ordinal, ws_gpu_facts *facts, char why[WS_GPU_WHY_BYTES]) {
  CUdevice device;
  CUcontext context;
  size_t bytes;
  if (!succeeded(ws_cuda.cuDeviceGet(&device, ordinal), "cuDeviceGet", why) ||
      !succeeded(ws_cuda.cuDeviceGetName(facts->name, sizeof facts->name, device), "cuDeviceGetName", why) ||
      !succeeded(ws_cuda.cuDeviceTotalMem(&bytes, device), "cuDeviceTotalMem", why))
    return false;
  const struct {
    CUdevice_attribute which;
    int *value;
  } asked[] = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &facts->cc_major},
               {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &facts->cc_minor},
               {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &facts->n_sms}};
  for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
    if (!succeeded(ws_cuda.cuDeviceGetAttribute(asked[i].value, asked[i].which, device), "cuDeviceGetAttribute", why))
      return false;
  facts->gib = (double)bytes / (1 << 30);
  return succeeded(ws_cuda.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain", why) &&
         succeeded(ws_cuda.cuCtxPushCurrent(context), "cuCtxPushCurrent", why);
}

/* ---- Multiplying on it ----------------------------------------------------------------------- */

/* Bytes from the first element to behind the last. */
static size_t matrix_bytes(const wsgemm_gemm_desc *d, bool is_transposed, int64_t n_rows, int64_t n_cols, int64_t ld) {
  const bool is_by_rows = (d->layout == WSGEMM_ROW_MAJOR) != is_transposed;
  const int64_t outer = is_by_rows ? n_rows : n_cols, inner = is_by_rows ? n_cols : n_rows;
  return outer && inner ? (size_t)(((outer - 1) * ld + inner) * ws_cli_types[d->type_c].bytes) : 0;
}

static bool is_transposed(wsgemm_op op) { return op == WSGEMM_TRANS || op == WSGEMM_CONJ_TRANS; }

typedef struct matrices {
  CUdeviceptr at[3]; /* A, B, C */
  const void *host[3];
  size_t bytes[3];
} matrices;

static bool upload(matrices *x, int i, char *why) {
  return x->bytes[i] == 0 || succeeded(ws_cuda.cuMemcpyHtoD(x->at[i], x->host[i], x->bytes[i]), "copy to the GPU", why);
}

static void release(matrices *x) {
  for (int i = 0; i < 3; i++)
    if (x->at[i]) ws_cuda.cuMemFree(x->at[i]);
}

static bool place(const wsgemm_gemm_desc *d, bool is_copied, matrices *x, wsgemm_gemm_desc *there, char *why) {
  *x = (matrices){.host = {d->a, d->b, d->c},
                  .bytes = {matrix_bytes(d, is_transposed(d->transa), d->m, d->k, d->lda),
                            matrix_bytes(d, is_transposed(d->transb), d->k, d->n, d->ldb),
                            matrix_bytes(d, false, d->m, d->n, d->ldc)}};
  for (int i = 0; i < 3; i++) {
    if (x->bytes[i] && !succeeded(ws_cuda.cuMemAlloc(&x->at[i], x->bytes[i]), "GPU memory", why)) x->at[i] = 0;
    if ((x->bytes[i] && !x->at[i]) || (is_copied && !upload(x, i, why))) {
      release(x);
      return false;
    }
  }
  *there = *d;
  there->a = (const void *)(uintptr_t)x->at[0];
  there->b = (const void *)(uintptr_t)x->at[1];
  there->c = (void *)(uintptr_t)x->at[2];
  return true;
}

static int64_t clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static wsgemm_status multiply(wsgemm_handle *h, const wsgemm_gemm_desc *there, int64_t *ns, char *why) {
  const int64_t start_ns = clock_ns();
  const wsgemm_status status = wsgemm_gemm(h, there);
  if (status != WSGEMM_SUCCESS) {
    snprintf(why, WS_GPU_WHY_BYTES, "%s", ws_cli_why(status));
    return status;
  }
  if (!succeeded(ws_cuda.cuCtxSynchronize(), "the product", why)) return WSGEMM_DEVICE_ERROR;
  if (ns) *ns = clock_ns() - start_ns;
  return WSGEMM_SUCCESS;
}

wsgemm_status ws_gpu_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *d, int64_t *ns, char why[WS_GPU_WHY_BYTES]) {
  matrices x;
  wsgemm_gemm_desc there;
  if (!place(d, true, &x, &there, why)) return WSGEMM_DEVICE_ERROR;
  wsgemm_status status = multiply(h, &there, NULL, why);
  if (status == WSGEMM_SUCCESS && ns) { /* the first one loaded the kernel */
    if (!upload(&x, 2, why)) status = WSGEMM_DEVICE_ERROR;
    if (status == WSGEMM_SUCCESS) status = multiply(h, &there, ns, why);
  }
  if (status == WSGEMM_SUCCESS && x.bytes[2] &&
      !succeeded(ws_cuda.cuMemcpyDtoH(d->c, x.at[2], x.bytes[2]), "copy from the GPU", why))
    status = WSGEMM_DEVICE_ERROR;
  release(&x);
  return status;
}

char *ws_gpu_explain(wsgemm_handle *h, const wsgemm_gemm_desc *d, char why[WS_GPU_WHY_BYTES]) {
  matrices x;
  wsgemm_gemm_desc there;
  if (!place(d, false, &x, &there, why)) return NULL;
  char *text = ws_cli_explain(h, &there);
  if (!text) snprintf(why, WS_GPU_WHY_BYTES, "out of memory");
  release(&x);
  return text;
}

#else

/* CMake's reason */
static const char not_built[] = "this build has no GPU part: " WS_GPU_PART_MISSING;

int ws_gpu_driver_version(void) { return 0; }

ws_gpu_state ws_gpu_find(int *n_devices, char why[WS_GPU_WHY_BYTES]) {
  *n_devices = 0;
  snprintf(why, WS_GPU_WHY_BYTES, "%s", not_built);
  return WS_GPU_NOT_BUILT;
}

bool ws_gpu_open(int ordinal, ws_gpu_facts *facts, char why[WS_GPU_WHY_BYTES]) {
  (void)ordinal, (void)facts;
  snprintf(why, WS_GPU_WHY_BYTES, "%s", not_built);
  return false;
}

wsgemm_status ws_gpu_gemm(wsgemm_handle *h, const wsgemm_gemm_desc *d, int64_t *ns, char why[WS_GPU_WHY_BYTES]) {
  (void)h, (void)d, (void)ns;
  snprintf(why, WS_GPU_WHY_BYTES, "%s", not_built);
  return WSGEMM_NOT_SUPPORTED;
}

char *ws_gpu_explain(wsgemm_handle *h, const wsgemm_gemm_desc *d, char why[WS_GPU_WHY_BYTES]) {
  (void)h, (void)d;
  snprintf(why, WS_GPU_WHY_BYTES, "%s", not_built);
  return NULL;
}
#endif
