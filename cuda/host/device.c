/* device.c - devices, the contexts on them, and the kernels there. What is made never changes. Each
 * device has a lock, and each context: whoever holds one may have to wait for that device, and for
 * no other. */
#include "cuda/host/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "cuda/host/image.h"
#include "cuda/host/row_table.h"
#include "cuda/rows/parts.h"
#include "cuda/rows/rows.h"
#include "cuda/shared/grouped_args.h"
#include "cuda/shared/triangle_args.h"
#include "tune/tuning.h"

int ws_cuda_row_count(void) { return WS_N_CUDA_ROWS; }
const ws_cuda_row *ws_cuda_row_at(int row_idx) { return &ws_cuda_rows[row_idx]; }

wsgemm_status ws_fail_cuda(wsgemm_handle *h, const char *what, CUresult result) {
  const char *name = NULL, *text = NULL;
  ws_cuda.cuGetErrorName(result, &name);
  ws_cuda.cuGetErrorString(result, &text);
  const bool is_absent = result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_NOT_INITIALIZED;
  const wsgemm_status status = is_absent                            ? WSGEMM_NO_DEVICE
                               : result == CUDA_ERROR_OUT_OF_MEMORY ? WSGEMM_ALLOC_FAILED
                                                                    : WSGEMM_DEVICE_ERROR;
  return ws_fail(h, status, "%s: %s (%s)", what, name ? name : "unknown CUDA error", text ? text : "?");
}

bool ws_device_lacks(CUresult result) {
  switch (result) {
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
  case CUDA_ERROR_JIT_COMPILATION_DISABLED:
  case CUDA_ERROR_INVALID_IMAGE:
  case CUDA_ERROR_INVALID_PTX:
  case CUDA_ERROR_NOT_FOUND:
  case CUDA_ERROR_NOT_SUPPORTED:
  case CUDA_ERROR_INVALID_VALUE: /* more shared memory than a block of this device can have */
    return true;
  default:
    return false;
  }
}

wsgemm_status ws_fail_kernel(wsgemm_handle *h, const char *name, const ws_device *device, CUresult result) {
  if (!ws_device_lacks(result)) return ws_fail_cuda(h, name, result);
  return ws_fail(h, WSGEMM_ARCH_MISMATCH, "kernel %s does not run on device %d (%s, compute capability %d.%d)", name,
                 device->ordinal, device->name, device->cc / 10, device->cc % 10);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Of a context. Images are loaded for each anew: no library outlives the context that it was made
 * in, and no two contexts, whatever they have in common, share a variable. */
typedef struct context_record {
  ws_device device;
  CUcontext handle;      /* of those that there are no two have one handle, */
  unsigned long long id; /* of those that there ever were no two one id */
  struct context_record *next;
  pthread_mutex_t lock; /* over what is loaded */
  CUlibrary library[WS_N_IMAGES];
  ws_device_kernel kernel[WS_N_CUDA_ROWS][WS_N_ENTRIES];
  _Atomic bool is_looked_up[WS_N_CUDA_ROWS][WS_N_ENTRIES];
  CUkernel plain[WS_N_PLAIN_KERNELS];
  _Atomic bool plain_is_looked_up[WS_N_PLAIN_KERNELS];
  ws_lending lending;
  struct ws_offload_site *site;
} context_record;

typedef struct device_record {
  ws_device device;
  pthread_mutex_t lock; /* over the making of all here */
  _Atomic bool is_ready;
  CUdevice handle;
  _Atomic(CUcontext) primary;
  /* the last first; those that are no more stay, as graphs may still give back to them */
  _Atomic(context_record *) contexts;
} device_record;

static device_record devices[WS_MAX_DEVICES];

void ws_device_init(void) {
  for (int i = 0; i < WS_MAX_DEVICES; i++) pthread_mutex_init(&devices[i].lock, NULL);
}

/* The context last, so that a failure leaves nothing to give back. */
static CUresult make_record(device_record *r, int ordinal) {
  int major = 0, minor = 0, has_pools = 0;
  CUcontext primary = NULL;
  CUresult result = ws_cuda.cuDeviceGet(&r->handle, ordinal);
  if (!result) result = ws_cuda.cuDeviceGetName(r->device.name, sizeof r->device.name, r->handle);
  if (!result) result = ws_cuda.cuDeviceGetAttribute(&r->device.n_sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, r->handle);
  if (!result) result = ws_cuda.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, r->handle);
  if (!result) result = ws_cuda.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, r->handle);
  if (!result) result = ws_cuda.cuDeviceGetAttribute(&has_pools, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, r->handle);
  if (!result) result = ws_cuda.cuDevicePrimaryCtxRetain(&primary, r->handle);
  atomic_store_explicit(&r->primary, primary, memory_order_relaxed);
  r->device.ordinal = ordinal;
  r->device.cc = 10 * major + minor;
  r->device.has_pools = has_pools != 0;
  return result;
}

static void name_for_tuning(const ws_device *device) {
  ws_tuning_device named = {.units = device->n_sms, .is_gpu = true};
  snprintf(named.name, sizeof named.name, "%s", device->name);
  ws_tuning_clean_name(named.name);
  snprintf(named.arch, sizeof named.arch, "sm_%d", device->cc);
  ws_tune_set_device(1 + device->ordinal, &named);
}

const ws_device *ws_device_get(wsgemm_handle *h, int ordinal, wsgemm_status *status) {
  *status = WSGEMM_SUCCESS;
  if (ordinal < 0 || ordinal >= WS_MAX_DEVICES) {
    *status = ws_fail(h, WSGEMM_NOT_SUPPORTED, "device %d; this library knows devices 0 .. %d", ordinal, WS_MAX_DEVICES - 1);
    return NULL;
  }
  device_record *r = &devices[ordinal];
  if (atomic_load_explicit(&r->is_ready, memory_order_acquire)) return &r->device;
  pthread_mutex_lock(&r->lock);
  CUresult result = CUDA_SUCCESS;
  if (!atomic_load_explicit(&r->is_ready, memory_order_relaxed) && (result = make_record(r, ordinal)) == CUDA_SUCCESS) {
    name_for_tuning(&r->device);
    atomic_store_explicit(&r->is_ready, true, memory_order_release);
  }
  pthread_mutex_unlock(&r->lock);
  if (result == CUDA_SUCCESS) return &r->device;
  char what[32];
  snprintf(what, sizeof what, "device %d", ordinal);
  *status = ws_fail_cuda(h, what, result);
  return NULL;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* its first member */
static context_record *record_of(ws_device *device) { return (context_record *)device; }

ws_lending *ws_device_lending(ws_device *device) { return &record_of(device)->lending; }

struct ws_offload_site **ws_device_site(ws_device *device) {
  return &record_of(device)->site;
}

static int device_of_thread(CUcontext *current) {
  CUdevice device;
  *current = NULL;
  if (ws_cuda.cuCtxGetCurrent(current) != CUDA_SUCCESS || !*current) return -1;
  return ws_cuda.cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : -1;
}

int ws_device_current(void) {
  CUcontext current;
  return device_of_thread(&current);
}

static context_record *find_context(const device_record *r, CUcontext handle, unsigned long long id) {
  context_record *c = atomic_load_explicit(&r->contexts, memory_order_acquire);
  while (c && (c->handle != handle || c->id != id)) c = c->next;
  return c;
}

/* NULL: out of memory. */
static context_record *context_of(device_record *r, CUcontext handle, unsigned long long id) {
  context_record *c = find_context(r, handle, id);
  if (c) return c;
  pthread_mutex_lock(&r->lock);
  c = find_context(r, handle, id);
  if (!c && (c = calloc(1, sizeof *c))) {
    c->device = r->device, c->handle = handle, c->id = id;
    c->next = atomic_load_explicit(&r->contexts, memory_order_relaxed);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->lending.lock, NULL);
    pthread_cond_init(&c->lending.released, NULL);
    /* pairs with the acquire in find_context */
    atomic_store_explicit(&r->contexts, c, memory_order_release);
  }
  pthread_mutex_unlock(&r->lock);
  return c;
}

static bool is_gone(CUresult result) { return result == CUDA_ERROR_CONTEXT_IS_DESTROYED || result == CUDA_ERROR_INVALID_CONTEXT; }

/* After a reset of the device (cudaDeviceReset) its primary context is there again when it is
 * retained again. */
static CUresult push_primary(device_record *r, CUcontext *pushed, unsigned long long *id) {
  CUcontext primary = atomic_load_explicit(&r->primary, memory_order_relaxed), popped;
  for (bool is_again = false;; is_again = true) {
    CUresult result = ws_cuda.cuCtxPushCurrent(primary);
    if (result == CUDA_SUCCESS) {
      result = ws_cuda.cuCtxGetId(primary, id);
      *pushed = primary;
      if (result == CUDA_SUCCESS) return result;
      ws_cuda.cuCtxPopCurrent(&popped);
    }
    if (is_again || !is_gone(result)) return result;
    result = ws_cuda.cuDevicePrimaryCtxRetain(&primary, r->handle);
    if (result != CUDA_SUCCESS) return result;
    atomic_store_explicit(&r->primary, primary, memory_order_relaxed);
  }
}

/* NULL: it does not say. */
static CUcontext context_of_stream(CUstream stream) {
  CUcontext context = NULL;
  if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) return NULL;
  return ws_cuda.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS ? context : NULL;
}

/* Makes the stream's context current, unless it is already. *is_foreign: it is of another
 * device. */
static bool push_context_of(CUstream stream, int ordinal, bool is_current_others, CUcontext *current, bool *is_foreign) {
  CUcontext popped;
  CUdevice device;
  const CUcontext context = context_of_stream(stream);
  *is_foreign = context && context == *current && is_current_others;
  if (!context || context == *current || ws_cuda.cuCtxPushCurrent(context) != CUDA_SUCCESS) return false;
  const bool is_known = ws_cuda.cuCtxGetDevice(&device) == CUDA_SUCCESS;
  if (is_known && device == ordinal) {
    *current = context;
    return true;
  }
  *is_foreign = is_known;
  ws_cuda.cuCtxPopCurrent(&popped);
  return false;
}

ws_device *ws_device_enter(wsgemm_handle *h, int ordinal, CUstream stream, bool *is_pushed, wsgemm_status *status) {
  CUcontext current;
  unsigned long long id = 0;
  *is_pushed = false;
  if (!ws_device_get(h, ordinal, status)) return NULL;
  device_record *r = &devices[ordinal];
  bool is_foreign;
  const bool is_others = device_of_thread(&current) != ordinal,
             is_of_stream = push_context_of(stream, ordinal, is_others, &current, &is_foreign);
  if (is_foreign) {
    *status =
        ws_fail(h, WSGEMM_INVALID_VALUE, "the stream is of another device than the matrices, which are on device %d", ordinal);
    return NULL;
  }
  const bool pushes_primary = is_others && !is_of_stream;
  const CUresult result = pushes_primary ? push_primary(r, &current, &id) : ws_cuda.cuCtxGetId(current, &id);
  if (result != CUDA_SUCCESS) {
    ws_device_leave(is_of_stream);
    *status = ws_fail_cuda(h, "context", result);
    return NULL;
  }
  context_record *c = context_of(r, current, id);
  *is_pushed = pushes_primary || is_of_stream;
  if (c) return &c->device;
  ws_device_leave(*is_pushed);
  *status = ws_fail(h, WSGEMM_ALLOC_FAILED, "no memory for the record of a context of device %d", ordinal);
  return NULL;
}

/* Once more if it fails: a context that stays on a thread's stack is there for all that it does later. */
void ws_device_leave(bool is_pushed) {
  CUcontext popped;
  if (is_pushed && ws_cuda.cuCtxPopCurrent(&popped) != CUDA_SUCCESS) ws_cuda.cuCtxPopCurrent(&popped);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* Images, kernels and variables are looked for with the context's lock. That may happen while a
 * stream of this thread is being captured, and what is found may have to be loaded first; the
 * relaxed mode lets it, and touches no stream. */
typedef struct look_up_mode {
  CUresult result;          /* whether the thread is in the relaxed mode */
  CUstreamCaptureMode mode; /* in which it was before */
} look_up_mode;

static look_up_mode begin_look_up(context_record *r) {
  look_up_mode before = {.mode = CU_STREAM_CAPTURE_MODE_RELAXED};
  pthread_mutex_lock(&r->lock);
  before.result = ws_cuda.cuThreadExchangeStreamCaptureMode(&before.mode);
  return before;
}

static void end_look_up(context_record *r, look_up_mode *before) {
  if (before->result == CUDA_SUCCESS) ws_cuda.cuThreadExchangeStreamCaptureMode(&before->mode);
  pthread_mutex_unlock(&r->lock);
}

static CUresult load_image(context_record *r, int image_idx) {
  if (r->library[image_idx]) return CUDA_SUCCESS;
  const CUresult result = ws_cuda.cuLibraryLoadData(&r->library[image_idx], ws_images[image_idx], NULL, NULL, 0, NULL, NULL, 0);
  if (result != CUDA_SUCCESS) r->library[image_idx] = NULL;
  return result;
}

static CUresult find_kernel(context_record *r, int image_idx, const char *name, CUkernel *kernel) {
  const CUresult result = load_image(r, image_idx);
  return result == CUDA_SUCCESS ? ws_cuda.cuLibraryGetKernel(kernel, r->library[image_idx], name) : result;
}

/* A split product may need more, but where the device has not as much, it is one of the smaller
 * rows that runs so. */
static CUresult allow_shared(CUkernel kernel, CUdevice device, const ws_cuda_row *row, ws_entry entry) {
  const CUfunction_attribute most = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  const int bytes = row->shared_bytes;
  if (entry == WS_ENTRY_SPLIT || entry == WS_ENTRY_SPLIT_CLC) {
    const CUresult result = ws_cuda.cuKernelSetAttribute(most, bytes + row->total_bytes, kernel, device);
    if (!ws_device_lacks(result)) return result;
  }
  return ws_cuda.cuKernelSetAttribute(most, bytes, kernel, device);
}

/* Clusters beyond what any device has room for are to be allowed, and the device may have room for none. */
static CUresult allow_cluster(CUkernel kernel, CUfunction function, CUdevice device, const ws_cuda_row *row) {
  if (row->cluster <= WS_PORTABLE_PARTS) return CUDA_SUCCESS;
  CUlaunchAttribute cluster = ws_cluster_attribute(row->cluster);
  const CUlaunchConfig launch = ws_launch_config(row->cluster, row->n_threads, row->shared_bytes, &cluster, 1);
  int n_clusters = 0;
  CUresult result = ws_cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1, kernel, device);
  if (!result) result = ws_cuda.cuOccupancyMaxActiveClusters(&n_clusters, function, &launch);
  return !result && n_clusters < 1 ? CUDA_ERROR_NOT_SUPPORTED : result;
}

static int image_of(const ws_cuda_row *row, ws_entry entry) {
  const bool is_of_groups = entry >= WS_ENTRY_GROUPS_NN && entry <= WS_ENTRY_GROUPS_TT;
  if (is_of_groups && row->kind != WS_ROW_SMALL) return WS_IMAGE_GROUPS;
  switch (row->kind) {
  case WS_ROW_WGMMA:
    return WS_IMAGE_WGMMA;
  case WS_ROW_SLICED:
    return WS_IMAGE_SLICED;
  case WS_ROW_DIRECT:
    return row->is_flat ? WS_IMAGE_FLAT : WS_IMAGE_DIRECT;
  case WS_ROW_DMMA:
    return ws_is_outer(row) ? WS_IMAGE_OUTER : row->type == WSGEMM_F32 ? WS_IMAGE_FFMA : WS_IMAGE_DMMA;
  case WS_ROW_TF32:
    return row->takes_maps ? WS_IMAGE_TF32M : row->slice_places > 0 ? WS_IMAGE_TF32W : WS_IMAGE_TF32;
  case WS_ROW_SMALL:
    return WS_IMAGE_SMALL;
  case WS_ROW_VECTOR:
    return WS_IMAGE_VEC;
  case WS_ROW_TILED:
    break;
  }
  return (int)row->type;
}

static CUresult look_up(context_record *r, int row_idx, ws_entry entry) {
  static const char *const suffixes[WS_N_ENTRIES] = {"queue", "clc", "foreach",   "split",     "split_clc", "nn",        "nt",
                                                     "tn",    "tt",  "groups_nn", "groups_nt", "groups_tn", "groups_tt", "bare"};
  const ws_cuda_row *row = &ws_cuda_rows[row_idx];
  char name[96];
  snprintf(name, sizeof name, "%.*s_%s", (int)ws_entry_length(row), row->name, suffixes[entry]);
  ws_device_kernel *found = &r->kernel[row_idx][entry];
  CUkernel kernel;
  CUfunction function;
  const CUdevice device = devices[r->device.ordinal].handle;
  CUresult result = find_kernel(r, image_of(row, entry), name, &kernel);
  if (!result) result = allow_shared(kernel, device, row, entry);
  if (!result) result = ws_cuda.cuKernelGetFunction(&function, kernel);
  if (!result)
    result = ws_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&found->blocks_per_sm, function, row->n_threads,
                                                                 (size_t)row->shared_bytes);
  if (!result && found->blocks_per_sm < 1) result = CUDA_ERROR_NOT_SUPPORTED;
  if (!result) result = allow_cluster(kernel, function, device, row);
  if (result) return result;
  /* As much shared memory as there is: else a launch may find an SM set up for the kernel before
   * it, with room for fewer blocks. A hint; nothing is lost if it is refused. */
  ws_cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, CU_SHAREDMEM_CARVEOUT_MAX_SHARED, kernel,
                               device);
  found->kernel = kernel;
  return result;
}

/* What a device lacks, it lacks for ever; any other failure (out of memory) is tried again by the
 * next call. */
const ws_device_kernel *ws_device_kernel_get(ws_device *device, int row_idx, ws_entry entry, CUresult *result) {
  context_record *r = record_of(device);
  *result = CUDA_SUCCESS;
  if (!atomic_load_explicit(&r->is_looked_up[row_idx][entry], memory_order_acquire)) {
    look_up_mode before = begin_look_up(r);
    *result = before.result;
    if (!*result && !atomic_load_explicit(&r->is_looked_up[row_idx][entry], memory_order_relaxed))
      *result = look_up(r, row_idx, entry);
    if (*result == CUDA_SUCCESS || (!before.result && ws_device_lacks(*result)))
      atomic_store_explicit(&r->is_looked_up[row_idx][entry], true, memory_order_release);
    end_look_up(r, &before);
    if (*result != CUDA_SUCCESS) return NULL;
  }
  if (r->kernel[row_idx][entry].kernel) return &r->kernel[row_idx][entry];
  *result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  return NULL;
}

int ws_triangle_shared_bytes(wsgemm_type type) {
#define WS_TRIANGLE(t) WS_TRIANGLE_SHARED_BYTES(WS_ROW_ELEMENT_BYTES_##t, WS_TRIANGLE_N_##t, WS_TRIANGLE_ADD_N_##t)
  static const int bytes[] = {WS_TRIANGLE(s), WS_TRIANGLE(d), WS_TRIANGLE(c), WS_TRIANGLE(z)};
#undef WS_TRIANGLE
  return bytes[type];
}

int ws_solve_shared_bytes(wsgemm_type type, int64_t n) {
#define WS_SOLVE(t) WS_SOLVE_SHARED_BYTES(t, WS_ROW_ELEMENT_BYTES_##t, ws_ceil_div(n, WS_SOLVE_ROWS(t)) * WS_SOLVE_ROWS(t))
  const int64_t bytes[] = {WS_SOLVE(s), WS_SOLVE(d), WS_SOLVE(c), WS_SOLVE(z)};
#undef WS_SOLVE
  return (int)bytes[type];
}

/* By the least that a block may have on a GPU of this, or of a later, compute capability. */
int64_t ws_solve_n(const ws_device *device, wsgemm_type type) {
  static const int most[] = {WS_SOLVE_N_s, WS_SOLVE_N_d, WS_SOLVE_N_c, WS_SOLVE_N_z};
  const bool has_much = device->cc == 80 || device->cc == 87 || (device->cc >= 90 && device->cc < 120);
  const int shared_bytes = (has_much ? 163 : 99) << 10;
  int64_t n = most[type];
  while (n > WS_TRIANGLE_PART && ws_solve_shared_bytes(type, n) > shared_bytes) n -= WS_TRIANGLE_PART;
  return n;
}

/* Shared memory of a block of a kernel that may ask for more than a launch does without; 0: of any other. */
static int plain_shared_bytes(const ws_device *device, int which) {
  if (which == WS_KERNEL_SLICED_SOLVE) return WS_SLICED_SOLVE_SHARED_BYTES;
  if (which >= WS_KERNEL_NARROW) return WS_GROUPED_NARROW_SHARED_BYTES;
  if (which >= WS_KERNEL_GROUPED) return WS_GROUPED_SHARED_BYTES;
  if (which >= WS_KERNEL_TRIANGLE && which < WS_KERNEL_SOLVE)
    return ws_triangle_shared_bytes((wsgemm_type)(which - WS_KERNEL_TRIANGLE));
  if (which < WS_KERNEL_SOLVE || which >= WS_KERNEL_WRITE_OUT) return 0;
  const wsgemm_type type = (wsgemm_type)(which - WS_KERNEL_SOLVE);
  return ws_solve_shared_bytes(type, ws_solve_n(device, type));
}

static CUresult find_plain(context_record *r, int which) {
  static const struct {
    const char *name;
    int image;
  } plain[] = {
#define PLAIN(enumerator, name, image) {name, WS_IMAGE_##image},
      WS_PLAIN_KERNELS(PLAIN)
#undef PLAIN
  };
  const CUresult result = find_kernel(r, plain[which].image, plain[which].name, &r->plain[which]);
  const int bytes = plain_shared_bytes(&r->device, which);
  if (result || bytes == 0) return result;
  return ws_cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes, r->plain[which],
                                      devices[r->device.ordinal].handle);
}

CUkernel ws_device_plain_kernel(ws_device *device, int which, CUresult *result) {
  context_record *r = record_of(device);
  *result = CUDA_SUCCESS;
  if (!atomic_load_explicit(&r->plain_is_looked_up[which], memory_order_acquire)) {
    look_up_mode before = begin_look_up(r);
    *result = before.result;
    if (!*result && !r->plain[which]) *result = find_plain(r, which);
    /* Loads it now: at its first launch, which may come after others have written to C, there might
     * be no room for it. */
    CUfunction function;
    if (*result == CUDA_SUCCESS) *result = ws_cuda.cuKernelGetFunction(&function, r->plain[which]);
    if (*result == CUDA_SUCCESS) atomic_store_explicit(&r->plain_is_looked_up[which], true, memory_order_release);
    end_look_up(r, &before);
  }
  return *result == CUDA_SUCCESS ? r->plain[which] : NULL;
}

/* ---- variables ------------------------------------------------------------------------------- */

CUresult ws_device_global(ws_device *device, int image_idx, const char *name, void **at) {
  context_record *r = record_of(device);
  CUdeviceptr address = 0;
  size_t bytes;
  look_up_mode before = begin_look_up(r);
  CUresult result = before.result;
  if (!result) result = load_image(r, image_idx);
  if (!result) result = ws_cuda.cuLibraryGetGlobal(&address, &bytes, r->library[image_idx], name);
  end_look_up(r, &before);
  *at = (void *)(uintptr_t)address;
  return result;
}

/* An image that is not loaded has not run. */
static bool is_loaded(context_record *r, int image_idx) {
  pthread_mutex_lock(&r->lock);
  const bool is_there = r->library[image_idx] != NULL;
  pthread_mutex_unlock(&r->lock);
  return is_there;
}

wsgemm_status ws_device_fallback_count(wsgemm_handle *h, int ordinal, uint64_t *n_fallback) {
  wsgemm_status status;
  bool is_pushed;
  *n_fallback = 0;
  if (ordinal >= WS_MAX_DEVICES || !atomic_load_explicit(&devices[ordinal].contexts, memory_order_acquire)) return WSGEMM_SUCCESS;
  ws_device *device = ws_device_enter(h, ordinal, NULL, &is_pushed, &status);
  if (!device) return status;
  CUresult result = CUDA_SUCCESS;
  if (is_loaded(record_of(device), WS_IMAGE_SLICED)) {
    void *at;
    result = ws_device_global(device, WS_IMAGE_SLICED, "ws_n_fallback_ever", &at);
    if (!result) result = ws_cuda.cuMemcpyDtoH(n_fallback, (CUdeviceptr)(uintptr_t)at, sizeof *n_fallback);
  }
  ws_device_leave(is_pushed);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(h, "fallback count", result);
}
