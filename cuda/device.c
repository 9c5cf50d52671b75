/* device.c - devices, their kernels and their ticket queues. Making them is behind one lock; what is made never changes. */
#include "device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "image.h"
#include "rows.h"

#define TYPE_s WSGEMM_F32
#define TYPE_d WSGEMM_F64
#define TYPE_c WSGEMM_C32
#define TYPE_z WSGEMM_C64
#define ELEMENT_BYTES_s 4
#define ELEMENT_BYTES_d 8
#define ELEMENT_BYTES_c 8
#define ELEMENT_BYTES_z 16

static const ws_cuda_row rows[] = {
#define WS_CUDA_ROW(t, mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, rate) \
  {#t "gemm_" #mainloop "_" #bm "x" #bn "x" #bk "_c" #coarse,                      \
   TYPE_##t,                                                                       \
   bm,                                                                             \
   bn,                                                                             \
   coarse,                                                                         \
   WS_ROW_THREADS(mainloop, bm, bn, tm, tn),                                       \
   WS_ROW_SHARED_BYTES(mainloop, ELEMENT_BYTES_##t, bm, bn, bk, coarse, stages),   \
   blocks,                                                                         \
   rate},
#include "kernels.def"
#undef WS_CUDA_ROW
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

int ws_cuda_row_count(void) { return N_ROWS; }
const ws_cuda_row *ws_cuda_row_at(int row_idx) { return &rows[row_idx]; }

/* ---- records ---------------------------------------------------------------------------------------------------------------- */

typedef struct device_record {
  ws_device device;
  _Atomic bool is_ready;
  CUlibrary library[WS_N_IMAGES];
  ws_device_kernel kernel[N_ROWS][WS_N_SCHEDS];
  _Atomic bool is_looked_up[N_ROWS][WS_N_SCHEDS];
  CUkernel scale[WS_N_TYPES];
  _Atomic bool scale_is_looked_up[WS_N_TYPES];
  /* Queues: stream ids in order of their first call, read without the lock up to n_streams; captured launches from the end down. */
  ws_ticket_queue *queues;
  uint64_t stream_id[WS_N_QUEUES];
  _Atomic int n_streams, n_captured;
} device_record;

static device_record records[WS_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  return ws_cuda.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

static CUresult make_record(device_record *r, int ordinal) {
  CUdevice device;
  CUresult result = ws_cuda.cuDeviceGet(&device, ordinal);
  if (result == CUDA_SUCCESS) result = ws_cuda.cuDevicePrimaryCtxRetain(&r->device.context, device);
  if (result != CUDA_SUCCESS) return result;
  ws_cuda.cuDeviceGetName(r->device.name, sizeof r->device.name, device);
  r->device.ordinal = ordinal;
  r->device.n_sms = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  r->device.cc = 10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                 attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

ws_device *ws_device_get(wsgemm_handle *h, int ordinal, wsgemm_status *status) {
  *status = WSGEMM_SUCCESS;
  if (ordinal < 0 || ordinal >= WS_MAX_DEVICES) {
    *status = ws_fail(h, WSGEMM_NOT_SUPPORTED, "device %d; this library knows devices 0 .. %d", ordinal, WS_MAX_DEVICES - 1);
    return NULL;
  }
  device_record *r = &records[ordinal];
  if (atomic_load_explicit(&r->is_ready, memory_order_acquire)) return &r->device;
  pthread_mutex_lock(&lock);
  CUresult result = CUDA_SUCCESS;
  if (!atomic_load_explicit(&r->is_ready, memory_order_relaxed) && (result = make_record(r, ordinal)) == CUDA_SUCCESS)
    atomic_store_explicit(&r->is_ready, true, memory_order_release);
  pthread_mutex_unlock(&lock);
  if (result == CUDA_SUCCESS) return &r->device;
  *status = ws_fail(h, WSGEMM_DEVICE_ERROR, "device %d cannot be used: CUDA error %d", ordinal, (int)result);
  return NULL;
}

static device_record *record_of(ws_device *device) { return (device_record *)device; } /* its first member */

/* ---- kernels ---------------------------------------------------------------------------------------------------------------- */

/* Loading may happen while this thread's stream is being captured; the relaxed mode lets it, and touches no stream. */
static CUresult load_image(device_record *r, int image_idx) {
  if (r->library[image_idx]) return CUDA_SUCCESS;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  const CUresult result = ws_cuda.cuLibraryLoadData(&r->library[image_idx], ws_images[image_idx], NULL, NULL, 0, NULL, NULL, 0);
  ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  if (result != CUDA_SUCCESS) r->library[image_idx] = NULL;
  return result;
}

static CUkernel find_kernel(device_record *r, int image_idx, const char *name) {
  CUkernel kernel;
  if (load_image(r, image_idx) != CUDA_SUCCESS) return NULL;
  return ws_cuda.cuLibraryGetKernel(&kernel, r->library[image_idx], name) == CUDA_SUCCESS ? kernel : NULL;
}

static void look_up(device_record *r, int row_idx, ws_sched sched) {
  static const char *const suffixes[WS_N_SCHEDS] = {"static", "queue", "clc", "foreach"};
  const ws_cuda_row *row = &rows[row_idx];
  char name[96];
  snprintf(name, sizeof name, "%s_%s", row->name, suffixes[sched]);
  ws_device_kernel *found = &r->kernel[row_idx][sched];
  CUkernel kernel = find_kernel(r, row->type, name);
  CUfunction function;
  CUdevice device;
  if (!kernel || ws_cuda.cuDeviceGet(&device, r->device.ordinal) != CUDA_SUCCESS ||
      ws_cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, row->shared_bytes, kernel, device) !=
          CUDA_SUCCESS ||
      ws_cuda.cuKernelGetFunction(&function, kernel) != CUDA_SUCCESS ||
      ws_cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(&found->blocks_per_sm, function, row->n_threads,
                                                          (size_t)row->shared_bytes) != CUDA_SUCCESS ||
      found->blocks_per_sm < 1)
    return;
  /* As much shared memory as there is: else a launch may find a multiprocessor set up for the kernel before it, with room for fewer
   * blocks. A hint; nothing is lost if it is refused. */
  ws_cuda.cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, CU_SHAREDMEM_CARVEOUT_MAX_SHARED, kernel,
                               device);
  found->kernel = kernel;
}

const ws_device_kernel *ws_device_kernel_get(ws_device *device, int row_idx, ws_sched sched) {
  device_record *r = record_of(device);
  if (!atomic_load_explicit(&r->is_looked_up[row_idx][sched], memory_order_acquire)) {
    pthread_mutex_lock(&lock);
    if (!atomic_load_explicit(&r->is_looked_up[row_idx][sched], memory_order_relaxed)) look_up(r, row_idx, sched);
    atomic_store_explicit(&r->is_looked_up[row_idx][sched], true, memory_order_release);
    pthread_mutex_unlock(&lock);
  }
  return r->kernel[row_idx][sched].kernel ? &r->kernel[row_idx][sched] : NULL;
}

CUkernel ws_device_scale_kernel(ws_device *device, wsgemm_type type) {
  device_record *r = record_of(device);
  if (!atomic_load_explicit(&r->scale_is_looked_up[type], memory_order_acquire)) {
    const char name[] = {ws_types[type].letter, 's', 'c', 'a', 'l', 'e', '\0'};
    pthread_mutex_lock(&lock);
    if (!r->scale[type]) r->scale[type] = find_kernel(r, type, name);
    atomic_store_explicit(&r->scale_is_looked_up[type], true, memory_order_release);
    pthread_mutex_unlock(&lock);
  }
  return r->scale[type];
}

/* ---- ticket queues ------------------------------------------------------------------------------------------------------------ */

static ws_ticket_queue *find_stream(device_record *r, uint64_t id, int n_streams) {
  for (int i = n_streams - 1; i >= 0; i--)
    if (r->stream_id[i] == id) return &r->queues[i];
  return NULL;
}

static bool find_queues(device_record *r) {
  CUdeviceptr address;
  size_t bytes;
  if (r->queues) return true;
  if (load_image(r, WS_IMAGE_QUEUES) != CUDA_SUCCESS ||
      ws_cuda.cuLibraryGetGlobal(&address, &bytes, r->library[WS_IMAGE_QUEUES], "ws_ticket_queues") != CUDA_SUCCESS)
    return false;
  r->queues = (ws_ticket_queue *)(uintptr_t)address;
  return true;
}

ws_ticket_queue *ws_device_queue(ws_device *device, CUstream stream, bool is_capturing) {
  device_record *r = record_of(device);
  unsigned long long id = 0;
  if (!is_capturing) {
    if (ws_cuda.cuStreamGetId(stream, &id) != CUDA_SUCCESS) return NULL;
    const int n_streams = atomic_load_explicit(&r->n_streams, memory_order_acquire);
    ws_ticket_queue *queue = n_streams > 0 ? find_stream(r, id, n_streams) : NULL;
    if (queue) return queue;
  }
  ws_ticket_queue *queue = NULL;
  pthread_mutex_lock(&lock);
  const int n_streams = atomic_load_explicit(&r->n_streams, memory_order_relaxed);
  if (find_queues(r)) {
    if (!is_capturing) queue = find_stream(r, id, n_streams);
    if (!queue && n_streams + r->n_captured < WS_N_QUEUES) {
      if (is_capturing) {
        queue = &r->queues[WS_N_QUEUES - ++r->n_captured];
      } else {
        queue = &r->queues[n_streams];
        r->stream_id[n_streams] = id;
        atomic_store_explicit(&r->n_streams, n_streams + 1, memory_order_release);
      }
    }
  }
  pthread_mutex_unlock(&lock);
  return queue;
}
