/* fake_driver.c - the driver of fake_driver.h. Only cuGetProcAddress_v2 and the traps are exported
 * under the driver's names: the rest is reached as in the real one, by asking. With FAKE_IS_OLD it
 * lacks that one too, as drivers before 12.0 do. */
#define _GNU_SOURCE
#include "fake_driver.h"

#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/host/row_table.h"

#define NAME(name, version) #name,
const char *const fake_function_names[FAKE_N_FUNCTIONS] = {FAKE_ENTRIES(NAME)};
#undef NAME

struct CUctx_st {
  int device;
  unsigned long long id;
  int n_sms; /* 0: all */
};
typedef struct fake_library {
  const void *image;
} fake_library;
typedef struct fake_kernel {
  char name[96];
  const fake_library *library;
  int max_shared[FAKE_MOST_DEVICES];
  bool may_be_large[FAKE_MOST_DEVICES]; /* clusters beyond the portable ones */
  int planned_threads, planned_shared;
} fake_kernel;
/* A variable of an image, in one context. */
typedef struct fake_global {
  const fake_library *library;
  unsigned long long context_id;
  char name[32];
  char *address;
  size_t bytes;
} fake_global;
typedef struct fake_object {
  void *payload;
  CUhostFn destroy;
  int n_references;
  CUgraph graph;
} fake_object;
struct CUgraph_st {
  int unused;
};
typedef struct fake_range {
  uintptr_t low, high;
  fake_memory kind;
  int device;
} fake_range;

enum {
  N_LIBRARIES = 256,
  N_KERNELS = 512,
  N_RANGES = 4096,
  N_GLOBALS = 4096,
  N_OBJECTS = 16384,
  N_GRAPHS = 16384,
  MAX_DEPTH = 16,
  PLAIN_SHARED = 48 << 10
};
static fake_global globals[N_GLOBALS];
static fake_object objects[N_OBJECTS];
static struct CUgraph_st graphs[N_GRAPHS];
static int n_globals, n_objects, n_graphs;
static fake_library libraries[N_LIBRARIES];
static fake_kernel kernels[N_KERNELS];
static fake_range ranges[N_RANGES];
static int n_libraries, n_kernels, n_ranges;
static struct CUctx_st primary[FAKE_MOST_DEVICES] = {{0, 11, 0}, {1, 12, 0}, {2, 13, 0}, {3, 14, 0},
                                                     {4, 15, 0}, {5, 16, 0}, {6, 17, 0}, {7, 18, 0}},
                       other[FAKE_MOST_DEVICES] = {{0, 21, 0}, {1, 22, 0}, {2, 23, 0}, {3, 24, 0},
                                                   {4, 25, 0}, {5, 26, 0}, {6, 27, 0}, {7, 28, 0}};
static unsigned long long last_context_id = 100;
static _Thread_local bool in_destructor;
static _Thread_local CUcontext stack[MAX_DEPTH];
static _Thread_local int depth;
static _Thread_local CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* over all above that is not a thread's own, and over what is written down */

/* An H200's numbers, but for the odd ones, which no other number here can be mistaken for; and
 * without its tensor cores' own kernels, which have a suite of theirs (test_backend_wgmma.c). */
#define DEVICE \
  { 80, 131, 2, 227 << 10, 16, 0, false }
fake_driver fake = {.is_initialised = true,
                    .n_devices = 2,
                    .device = {DEVICE, DEVICE, DEVICE, DEVICE, DEVICE, DEVICE, DEVICE, DEVICE},
                    .failing = FAKE_ANY};

void fake_forget(void) {
  pthread_mutex_lock(&lock);
  fake.n_calls = fake.n_launches = fake.n_loads = fake.n_allocs = 0;
  memset(fake.n_calls_of, 0, sizeof fake.n_calls_of);
  memset(fake.launch, 0, sizeof fake.launch);
  pthread_mutex_unlock(&lock);
}

void fake_fail(fake_function function, int first, int last, CUresult failure) {
  pthread_mutex_lock(&lock);
  fake.failing = function;
  fake.first_failing = first;
  fake.last_failing = last;
  fake.failure = failure;
  fake.n_watched = 0;
  pthread_mutex_unlock(&lock);
}

void *fake_alloc(fake_memory kind, int device, size_t bytes) {
  void *low = mmap(NULL, bytes, kind == FAKE_DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (low == MAP_FAILED || n_ranges == N_RANGES) return NULL;
  ranges[n_ranges++] = (fake_range){(uintptr_t)low, (uintptr_t)low + bytes, kind, device};
  return low;
}

CUcontext fake_primary(int device) { return &primary[device]; }
CUcontext fake_other(int device) { return &other[device]; }
CUcontext fake_current(void) { return depth > 0 ? stack[depth - 1] : NULL; }
int fake_depth(void) { return depth; }
CUstreamCaptureMode fake_capture_mode(void) { return capture_mode; }
void fake_set_current(CUcontext context) {
  depth = context != NULL;
  stack[0] = context;
}

/* ---- contexts, streams and graphs that end --------------------------------------------------- */

void fake_end_context(CUcontext context) {
  pthread_mutex_lock(&lock);
  context->id = ++last_context_id;
  pthread_mutex_unlock(&lock);
}

void fake_limit_sms(CUcontext context, int n_sms) { context->n_sms = n_sms; }

void fake_end_stream(int stream) {
  pthread_mutex_lock(&lock);
  fake.stream[stream].generation++;
  pthread_mutex_unlock(&lock);
}

static const fake_stream *stream_of(CUstream stream) { return stream ? (const fake_stream *)stream : &fake.stream[0]; }

static bool is_alive(unsigned long long context_id) {
  for (int device = 0; device < FAKE_MOST_DEVICES; device++)
    if (primary[device].id == context_id || other[device].id == context_id) return true;
  return false;
}

/* With the lock. */
static CUgraph graph_of(fake_stream *stream) {
  if (!stream->graph && n_graphs < N_GRAPHS) stream->graph = &graphs[n_graphs++];
  return stream->graph;
}

void fake_begin_capture(int stream) {
  fake.stream[stream].capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  fake.stream[stream].graph = NULL;
}

CUgraph fake_end_capture(int stream) {
  pthread_mutex_lock(&lock);
  CUgraph graph = graph_of(&fake.stream[stream]);
  for (int i = 0; i < fake.n_nodes && i < FAKE_N_NODES; i++)
    if (fake.node[i].graph == graph && !fake.node[i].is_freed) fake.misuse = "a graph that keeps memory cannot be launched again";
  fake.stream[stream].capture = CU_STREAM_CAPTURE_STATUS_NONE;
  fake.stream[stream].graph = NULL;
  pthread_mutex_unlock(&lock);
  return graph;
}

static void *end_object(void *argument) {
  fake_object *object = argument;
  in_destructor = true;
  object->destroy(object->payload);
  in_destructor = false;
  return NULL;
}

/* By the driver's own thread, in which none of its functions may be called. */
static void release(fake_object *object, int n_references) {
  pthread_t thread;
  object->n_references -= n_references;
  if (object->n_references > 0) return;
  fake.n_user_objects--;
  object->graph = NULL;
  if (pthread_create(&thread, NULL, end_object, object) != 0 || pthread_join(thread, NULL) != 0)
    fake.misuse = "no thread for a destructor";
}

void fake_destroy_graph(CUgraph graph) {
  for (int i = 0; i < n_objects; i++)
    if (objects[i].graph == graph) release(&objects[i], objects[i].n_references);
}

/* ---- every call comes through here ----------------------------------------------------------- */

static CUresult enter(fake_function function) {
  CUresult result = CUDA_SUCCESS;
  if (fake.is_forbidden) {
    fprintf(stderr, "the driver was called: %s\n", fake_function_names[function]);
    _exit(FAKE_EXIT_FORBIDDEN);
  }
  if (in_destructor) fake.misuse = "a destructor called the driver";
  if (fake.before_call) fake.before_call(function);
  pthread_mutex_lock(&lock);
  if (fake.n_calls < FAKE_N_CALLS) fake.calls[fake.n_calls] = function;
  fake.n_calls++;
  fake.n_calls_of[function]++;
  if (fake.failing == FAKE_ANY || fake.failing == function) {
    fake.n_watched++;
    if (fake.n_watched >= fake.first_failing && fake.n_watched <= fake.last_failing) result = fake.failure;
  }
  const bool is_always_there =
      function == FAKE_cuDriverGetVersion || function == FAKE_cuGetErrorName || function == FAKE_cuGetErrorString;
  if (!result && !fake.is_initialised && !is_always_there) result = CUDA_ERROR_NOT_INITIALIZED;
  return result; /* with the lock held */
}

static CUresult leave(CUresult result) {
  pthread_mutex_unlock(&lock);
  return result;
}

/* `result` is for what follows. */
#define ENTER(name)                     \
  CUresult result = enter(FAKE_##name); \
  if (result != CUDA_SUCCESS) return leave(result)

static bool is_device(CUdevice device) { return device >= 0 && device < fake.n_devices; }

/* ---- devices and contexts -------------------------------------------------------------------- */

static CUresult fake_cuDriverGetVersion(int *version) {
  ENTER(cuDriverGetVersion);
  *version = CUDA_VERSION;
  return leave(result);
}

static CUresult fake_cuDeviceGet(CUdevice *device, int ordinal) {
  ENTER(cuDeviceGet);
  if (fake.n_devices == 0) return leave(CUDA_ERROR_NO_DEVICE);
  if (!is_device(ordinal)) return leave(CUDA_ERROR_INVALID_DEVICE);
  *device = ordinal;
  return leave(result);
}

static CUresult fake_cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  ENTER(cuDeviceGetAttribute);
  if (!is_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
  const fake_device *d = &fake.device[device];
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    *value = d->n_sms;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    *value = d->cc / 10;
    break;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    *value = d->cc % 10;
    break;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    *value = d->max_shared;
    break;
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    *value = !d->has_no_pools;
    break;
  default:
    result = CUDA_ERROR_INVALID_VALUE;
  }
  return leave(result);
}

static CUresult fake_cuDeviceGetName(char *name, int length, CUdevice device) {
  ENTER(cuDeviceGetName);
  if (!is_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
  snprintf(name, (size_t)length, "Fake GPU %d", device);
  return leave(result);
}

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER(cuDevicePrimaryCtxRetain);
  if (!is_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
  *context = &primary[device];
  return leave(result);
}

static CUresult fake_cuCtxGetCurrent(CUcontext *context) {
  ENTER(cuCtxGetCurrent);
  *context = fake_current();
  return leave(result);
}

static CUresult fake_cuCtxGetDevice(CUdevice *device) {
  ENTER(cuCtxGetDevice);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  *device = fake_current()->device;
  return leave(result);
}

static CUresult fake_cuCtxGetId(CUcontext context, unsigned long long *id) {
  ENTER(cuCtxGetId);
  if (!context) context = fake_current();
  if (!context) return leave(CUDA_ERROR_INVALID_CONTEXT);
  *id = context->id;
  return leave(result);
}

static CUresult fake_cuCtxPushCurrent(CUcontext context) {
  ENTER(cuCtxPushCurrent);
  if (!context) return leave(CUDA_ERROR_INVALID_CONTEXT);
  if (depth == MAX_DEPTH) return leave(CUDA_ERROR_OUT_OF_MEMORY);
  stack[depth++] = context;
  return leave(result);
}

/* Where many calls fail in turn, the second one that fails takes the context away all the same: else threads
 * that live on would have a full stack in the end. */
static CUresult fake_cuCtxPopCurrent(CUcontext *context) {
  static _Thread_local bool has_failed;
  const CUresult failure = enter(FAKE_cuCtxPopCurrent);
  if (failure != CUDA_SUCCESS && has_failed && fake.compute && depth > 0) depth--;
  has_failed = failure != CUDA_SUCCESS && !has_failed;
  if (failure != CUDA_SUCCESS) return leave(failure);
  const CUresult result = failure;
  if (depth == 0) return leave(CUDA_ERROR_INVALID_CONTEXT);
  *context = stack[--depth];
  return leave(result);
}

/* ---- pointers: memory that the driver does not know is not an error -------------------------- */

static CUresult fake_cuPointerGetAttributes(unsigned int n_attributes, CUpointer_attribute *attributes, void **values,
                                            CUdeviceptr pointer) {
  ENTER(cuPointerGetAttributes);
  const fake_range *range = NULL;
  for (int i = 0; i < n_ranges; i++)
    if (pointer >= ranges[i].low && pointer < ranges[i].high) range = &ranges[i];
  for (unsigned i = 0; i < n_attributes; i++) switch (attributes[i]) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned *)values[i] = !range ? 0 : range->kind == FAKE_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *(unsigned *)values[i] = range && range->kind == FAKE_MANAGED;
      break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *(int *)values[i] = range ? range->device : CU_DEVICE_INVALID;
      break;
    default:
      result = CUDA_ERROR_INVALID_VALUE;
    }
  return leave(result);
}

/* ---- libraries and kernels ------------------------------------------------------------------- */

/* Anything that a capture does not survive unless the thread is in the relaxed mode. */
static bool breaks_capture(void) {
  for (int i = 0; i < FAKE_N_STREAMS && capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED; i++)
    if (fake.stream[i].capture != CU_STREAM_CAPTURE_STATUS_NONE) fake.is_capture_broken = true;
  return fake.is_capture_broken;
}

static CUresult fake_cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *jit_options, void **jit_values,
                                       unsigned int n_jit_options, CUlibraryOption *options, void **values,
                                       unsigned int n_options) {
  (void)jit_options, (void)jit_values, (void)options, (void)values;
  ENTER(cuLibraryLoadData);
  if (breaks_capture()) return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (!image || n_jit_options > 0 || n_options > 0) return leave(CUDA_ERROR_INVALID_VALUE);
  if (n_libraries == N_LIBRARIES) return leave(CUDA_ERROR_OUT_OF_MEMORY);
  libraries[n_libraries].image = image;
  *library = (CUlibrary)&libraries[n_libraries++];
  fake.n_loads++;
  return leave(result);
}

static CUresult fake_cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  ENTER(cuLibraryGetKernel);
  if (!library) return leave(CUDA_ERROR_INVALID_HANDLE);
  if (breaks_capture()) return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  int i = 0;
  while (i < n_kernels && !(kernels[i].library == (const fake_library *)library && strcmp(kernels[i].name, name) == 0)) i++;
  if (i == N_KERNELS) return leave(CUDA_ERROR_OUT_OF_MEMORY);
  if (i == n_kernels) {
    snprintf(kernels[i].name, sizeof kernels[i].name, "%s", name);
    kernels[i].library = (const fake_library *)library;
    n_kernels++;
  }
  *kernel = (CUkernel)&kernels[i];
  return leave(result);
}

/* Of each library in each context one. */
static void *global_of(const fake_library *library, CUcontext context, const char *name, size_t bytes) {
  for (int i = 0; i < n_globals; i++)
    if (globals[i].library == library && globals[i].context_id == context->id && strcmp(globals[i].name, name) == 0)
      return globals[i].address;
  if (n_globals == N_GLOBALS) return NULL;
  fake_global *global = &globals[n_globals++];
  *global = (fake_global){library, context->id, "", fake_alloc(FAKE_DEVICE, context->device, bytes), bytes};
  snprintf(global->name, sizeof global->name, "%s", name);
  return global->address;
}

static CUresult fake_cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name) {
  ENTER(cuLibraryGetGlobal);
  if (!library) return leave(CUDA_ERROR_INVALID_HANDLE);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  if (breaks_capture()) return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const CUcontext context = fake_current();
  const int device = context->device;
  const struct {
    const char *name;
    size_t bytes;
    void **shown; /* those of the primary context */
  } known[] = {{"ws_launch_states", WS_N_STATES * sizeof(ws_launch_state), (void **)&fake.states[device]},
               {"ws_partial_sums", (size_t)WS_N_SUMS * WS_SUMS_BYTES, (void **)&fake.sums[device]}};
  if (strcmp(name, "ws_n_fallback_ever") == 0) {
    *bytes = sizeof fake.n_fallback[device];
    *address = (CUdeviceptr)(uintptr_t)&fake.n_fallback[device];
    return leave(result);
  }
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcmp(name, known[i].name) != 0) continue;
    *bytes = known[i].bytes;
    void *at = global_of((const fake_library *)library, context, name, *bytes);
    if (context == &primary[device]) *known[i].shown = at;
    *address = (CUdeviceptr)(uintptr_t)at;
    return leave(at ? result : CUDA_ERROR_OUT_OF_MEMORY);
  }
  return leave(CUDA_ERROR_NOT_FOUND);
}

static void forget_range(const void *low, size_t bytes) {
  munmap((void *)(uintptr_t)low, bytes);
  for (int i = 0; i < n_ranges; i++)
    if (ranges[i].low == (uintptr_t)low) {
      ranges[i] = ranges[--n_ranges];
      return;
    }
}

static char *alloc_on_device(int device, size_t bytes) {
  char *at = fake_alloc(FAKE_DEVICE, device, bytes);
  return at && fake.compute && mprotect(at, bytes, PROT_READ | PROT_WRITE) != 0 ? NULL : at;
}

static CUresult fake_cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  ENTER(cuMemAlloc);
  const CUcontext context = fake_current();
  if (!context) return leave(CUDA_ERROR_INVALID_CONTEXT);
  if (breaks_capture()) return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  const int device = context->device;
  const int64_t room = fake.device[device].room;
  if ((room > 0 && bytes > (size_t)room) || n_globals == N_GLOBALS) return leave(CUDA_ERROR_OUT_OF_MEMORY);
  char *at = alloc_on_device(device, bytes);
  globals[n_globals++] = (fake_global){NULL, context->id, "allocated", at, bytes};
  if (context == &primary[device]) fake.copies[device] = at, fake.copies_bytes[device] = bytes;
  fake.n_allocs++;
  *address = (CUdeviceptr)(uintptr_t)at;
  return leave(at ? result : CUDA_ERROR_OUT_OF_MEMORY);
}

/* Only in captures: else it would be a call that allocates. Addresses of nodes are never used
 * again. */
static CUresult fake_cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  static char *next;
  enum { ALIGN = 512 };
  ENTER(cuMemAllocAsync);
  fake_stream *s = &fake.stream[stream_of(stream) - fake.stream];
  if (s->capture != CU_STREAM_CAPTURE_STATUS_ACTIVE) fake.misuse = "an allocation beside a capture";
  if (!fake_current() || fake.device[fake_current()->device].has_no_pools) return leave(CUDA_ERROR_NOT_SUPPORTED);
  if (!next) next = fake_alloc(FAKE_DEVICE, fake_current()->device, (size_t)1 << 36);
  if (!next) return leave(CUDA_ERROR_OUT_OF_MEMORY);
  fake.node[fake.n_nodes++ % FAKE_N_NODES] = (fake_node){graph_of(s), next, bytes, false};
  *address = (CUdeviceptr)(uintptr_t)next;
  next += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  return leave(result);
}

static CUresult fake_cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  ENTER(cuMemFreeAsync);
  fake_stream *s = &fake.stream[stream_of(stream) - fake.stream];
  for (int i = 0; i < fake.n_nodes && i < FAKE_N_NODES; i++)
    if ((CUdeviceptr)(uintptr_t)fake.node[i].memory == address && !fake.node[i].is_freed && fake.node[i].graph == graph_of(s)) {
      fake.node[i].is_freed = true;
      return leave(result);
    }
  fake.misuse = "memory is freed that the graph does not have";
  return leave(CUDA_ERROR_INVALID_VALUE);
}

static CUresult fake_cuMemcpyDtoH(void *to, CUdeviceptr from, size_t bytes) {
  ENTER(cuMemcpyDtoH);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  if (from != (CUdeviceptr)(uintptr_t)&fake.n_fallback[fake_current()->device]) return leave(CUDA_ERROR_INVALID_VALUE);
  memcpy(to, &fake.n_fallback[fake_current()->device], bytes);
  return leave(result);
}

static CUresult fake_cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  ENTER(cuKernelGetFunction);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  if (breaks_capture()) return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  *function = (CUfunction)kernel;
  return leave(result);
}

static CUresult fake_cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  ENTER(cuKernelSetAttribute);
  if (!is_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    ((fake_kernel *)kernel)->may_be_large[device] = value != 0;
    return leave(result);
  }
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value > fake.device[device].max_shared)
    return leave(CUDA_ERROR_INVALID_VALUE);
  ((fake_kernel *)kernel)->max_shared[device] = value;
  return leave(result);
}

static bool shared_fits(const fake_kernel *kernel, int device, size_t bytes) {
  return bytes <= PLAIN_SHARED || bytes <= (size_t)kernel->max_shared[device];
}

static CUresult fake_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n_blocks, CUfunction function, int n_threads,
                                                                 size_t shared_bytes) {
  ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  fake_kernel *kernel = (fake_kernel *)function;
  const int device = fake_current()->device;
  kernel->planned_threads = n_threads;
  kernel->planned_shared = (int)shared_bytes;
  *n_blocks = shared_fits(kernel, device, shared_bytes) ? fake.device[device].blocks_per_sm : 0;
  return leave(result);
}

static unsigned cluster_of(const CUlaunchConfig *c) {
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) return c->attrs[i].value.clusterDim.x;
  return 1;
}

enum { PORTABLE_CLUSTER = 8 };
static bool has_room_for_cluster(const CUlaunchConfig *c, const fake_kernel *kernel, int device) {
  const int cluster = (int)cluster_of(c);
  return cluster <= PORTABLE_CLUSTER || (kernel->may_be_large[device] && cluster <= fake.device[device].most_cluster);
}

static CUresult fake_cuOccupancyMaxActiveClusters(int *n_clusters, CUfunction function, const CUlaunchConfig *config) {
  ENTER(cuOccupancyMaxActiveClusters);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  *n_clusters = has_room_for_cluster(config, (const fake_kernel *)function, fake_current()->device);
  return leave(result);
}

static bool is_launch_good(const CUlaunchConfig *c, const fake_kernel *kernel, int device) {
  return has_room_for_cluster(c, kernel, device) && c->gridDimX >= 1 && c->gridDimX <= WS_SCHED_MAX_ITEMS && c->gridDimY >= 1 &&
         c->gridDimY <= 65535 && c->gridDimZ >= 1 && c->gridDimZ <= 65535 && c->blockDimX >= 1 && c->blockDimY >= 1 &&
         c->blockDimZ >= 1 && (uint64_t)c->blockDimX * c->blockDimY * c->blockDimZ <= 1024 &&
         shared_fits(kernel, device, c->sharedMemBytes);
}

static bool is_cooperative(const CUlaunchConfig *c) {
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && c->attrs[i].value.cooperative) return true;
  return false;
}

static bool is_early(const CUlaunchConfig *c) {
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      return c->attrs[i].value.programmaticStreamSerializationAllowed != 0;
  return false;
}

/* griddepcontrol.wait comes first in the code of these (docs/scheduling.md). */
static bool waits_for_the_one_before(const char *kernel) {
  static const char *const names[] = {"gemm_wgmma_", "gemm_f16x", "gemm_bf16x6_", "maxima", "slices_", "fallback"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strstr(kernel, names[i])) return true;
  return false;
}

/* An entry point is called after its row, or after what rows of any cluster have in common, and then after itself. One name may begin
 * with another. */
static void find_row(fake_launch *l, const char *kernel) {
  size_t longest = 0;
  l->row_idx = -1;
  for (int r = 0; r < WS_N_CUDA_ROWS; r++) {
    const ws_cuda_row *row = &ws_cuda_rows[r];
    const size_t length = ws_entry_length(row);
    if (strncmp(kernel, row->name, length) != 0 || kernel[length] != '_' || length <= longest) continue;
    if (row->any_parts && row->cluster != (int)l->cluster) continue;
    longest = length, l->row_idx = r;
    snprintf(l->entry, sizeof l->entry, "%s", kernel + length + 1);
  }
}

/* A row's kernel for groups, after whose name comes "groups" and the ops; that of a row for small matrices, at pointers; and the other
 * one for ragged groups. */
static bool is_small(const fake_launch *l) { return l->row_idx >= 0 && ws_cuda_rows[l->row_idx].kind == WS_ROW_SMALL; }
static bool is_named_groups(const fake_launch *l) { return strstr(l->kernel, "_groups_") != NULL; }
static bool is_of_groups(const fake_launch *l) { return is_named_groups(l) && !is_small(l); }
static bool is_of_places(const fake_launch *l) { return is_named_groups(l) && is_small(l); }
static bool is_grouped(const char *kernel) { return strncmp(kernel + 1, "grouped_", 8) == 0; }

static void copy_args(fake_launch *l, const void *parameter) {
  if (strcmp(l->kernel, "align_copy") == 0) {
    memcpy(&l->pitch, parameter, sizeof l->pitch);
    return;
  }
  if (strcmp(l->kernel, "float_copy") == 0) {
    memcpy(&l->float_copy, parameter, sizeof l->float_copy);
    return;
  }
  if (strstr(l->kernel, "column_sums")) {
    memcpy(&l->column_sums, parameter, sizeof l->column_sums);
    return;
  }
  if (strcmp(l->kernel, "maxima") == 0 || strncmp(l->kernel + 1, "slices_", 7) == 0 ||
      strncmp(l->kernel + 1, "structured_", 11) == 0) {
    memcpy(&l->slices, parameter, sizeof l->slices);
    return;
  }
  if (strcmp(l->kernel + 1, "fallback") == 0) {
    memcpy(&l->fallback, parameter, sizeof l->fallback);
    l->args = l->fallback.gemm;
    return;
  }
  if (is_grouped(l->kernel)) {
    memcpy(&l->grouped, parameter, sizeof l->grouped);
    l->args = (ws_gemm_args){.sched = l->grouped.sched};
    return;
  }
  if (is_of_groups(l)) {
    memcpy(&l->groups, parameter, sizeof l->groups);
    l->args = l->groups.common.gemm;
    return;
  }
  if (l->row_idx < 0 || !ws_is_by_map(ws_cuda_rows[l->row_idx].kind)) {
    memcpy(&l->args, parameter, sizeof l->args);
    if (l->row_idx >= 0 && ws_cuda_rows[l->row_idx].kind == WS_ROW_DMMA) memcpy(&l->copied, parameter, sizeof l->copied);
    if (is_small(l)) memcpy(&l->small, parameter, sizeof l->small);
    if (l->row_idx >= 0 && ws_cuda_rows[l->row_idx].takes_maps) memcpy(&l->maps, parameter, sizeof l->maps);
    return;
  }
  memcpy(&l->wgmma, parameter, sizeof l->wgmma);
  l->args = (ws_gemm_args){.sched = l->wgmma.sched, .grid = l->wgmma.grid};
}

static bool reads_peer[FAKE_MOST_DEVICES][FAKE_MOST_DEVICES];

/* Device memory that the current context may read, as it has peer access. */
static bool is_of_peer(const void *pointer) {
  for (int i = 0; i < n_globals; i++) {
    if ((const char *)pointer < globals[i].address || (const char *)pointer >= globals[i].address + globals[i].bytes) continue;
    for (int device = 0; device < FAKE_MOST_DEVICES; device++)
      if (primary[device].id == globals[i].context_id) return reads_peer[fake_current()->device][device];
  }
  return false;
}

/* A variable that is another context's, or was that of one that is no more; memory of a graph's,
 * which is not the stream's, or freed. */
static void check_memory(CUstream stream, const void *pointer) {
  for (int i = 0; i < fake.n_nodes && i < FAKE_N_NODES; i++)
    if ((const char *)pointer >= fake.node[i].memory && (const char *)pointer < fake.node[i].memory + fake.node[i].bytes &&
        (fake.node[i].is_freed || fake.node[i].graph != stream_of(stream)->graph))
      fake.misuse = "memory of a graph, used elsewhere or once it is freed";
  for (int i = 0; i < n_globals; i++)
    if ((const char *)pointer >= globals[i].address && (const char *)pointer < globals[i].address + globals[i].bytes &&
        globals[i].context_id != fake_current()->id)
      fake.misuse = "memory of another context";
}

static void check_launch(const fake_launch *l) {
  check_memory(l->stream, l->args.sched.queue), check_memory(l->stream, l->args.split.sums);
  check_memory(l->stream, l->args.split.barrier);
  for (int i = 0; i < 2; i++)
    check_memory(l->stream, l->slices.operand[i].state), check_memory(l->stream, l->pitch.operand[i].to);
}

static CUresult fake_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  ENTER(cuLaunchKernelEx);
  const fake_kernel *kernel = (const fake_kernel *)function;
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  if (kernel < kernels || kernel >= kernels + n_kernels) return leave(CUDA_ERROR_INVALID_HANDLE);
  const int device = fake_current()->device;
  if (!is_launch_good(config, kernel, device) || !parameters || extra || config->gridDimX % cluster_of(config) != 0)
    return leave(CUDA_ERROR_INVALID_VALUE);
  const int n_sms = fake_current()->n_sms > 0 ? fake_current()->n_sms : fake.device[device].n_sms;
  if (is_cooperative(config) && config->gridDimX > (unsigned)(n_sms * fake.device[device].blocks_per_sm))
    return leave(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
  if (is_early(config) && !waits_for_the_one_before(kernel->name))
    fake.misuse = "a launch that begins early, of a kernel that does not wait";
  const CUcontext of_stream = stream_of(config->hStream)->context;
  if (of_stream && of_stream != (CUcontext)fake_current()) fake.misuse = "a launch whose stream is of another context";
  fake_launch *l = &fake.launch[fake.n_launches++ % FAKE_N_LAUNCHES];
  *l = (fake_launch){.device = device,
                     .context = fake_current(),
                     .stream = config->hStream,
                     .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                     .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                     .shared_bytes = config->sharedMemBytes,
                     .is_cooperative = is_cooperative(config),
                     .is_early = is_early(config),
                     .cluster = cluster_of(config),
                     .planned_threads = kernel->planned_threads,
                     .planned_shared = kernel->planned_shared};
  memcpy(l->kernel, kernel->name, sizeof l->kernel);
  find_row(l, kernel->name);
  copy_args(l, parameters[0]);
  if (is_grouped(l->kernel) || is_of_groups(l)) memcpy(&l->grouped_ends, parameters[1], sizeof l->grouped_ends);
  if (is_of_places(l)) memcpy(&l->small_places, parameters[1], sizeof l->small_places);
  check_launch(l);
  if (fake.compute) fake.compute(l);
  return leave(result);
}

/* ---- tensor maps: the driver's rules for three dimensions, swizzled ----------------------------- */

static bool is_map_good(cuuint32_t rank, const void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                        const cuuint32_t *box, cuuint32_t element_bytes) {
  const uint64_t most_dim = UINT64_C(1) << 32, most_stride = UINT64_C(1) << 40;
  if (rank != 3 || (uintptr_t)address % 16 != 0 || box[0] * element_bytes > 128 || box[0] * element_bytes % 16 != 0) return false;
  for (int i = 0; i < 3; i++)
    if (dims[i] < 1 || dims[i] > most_dim || box[i] < 1 || box[i] > 256) return false;
  return strides[0] % 16 == 0 && strides[0] < most_stride && strides[1] % 16 == 0 && strides[1] < most_stride;
}

/* The one whose span is a line of the box. */
static bool is_swizzle_good(CUtensorMapSwizzle swizzle, cuuint32_t bytes) {
  return swizzle == CU_TENSOR_MAP_SWIZZLE_128B  ? bytes == 128
         : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? bytes == 64
                                                : swizzle == CU_TENSOR_MAP_SWIZZLE_32B && bytes == 32;
}

static CUresult fake_cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *address,
                                            const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box,
                                            const cuuint32_t *steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                            CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  (void)steps;
  ENTER(cuTensorMapEncodeTiled);
  const bool is_float = type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 || type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const cuuint32_t element_bytes = is_float ? 4 : 2;
  if (!is_map_good(rank, address, dims, strides, box, element_bytes) || interleave != CU_TENSOR_MAP_INTERLEAVE_NONE ||
      !is_swizzle_good(swizzle, box[0] * element_bytes) || fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)
    return leave(CUDA_ERROR_INVALID_VALUE);
  const fake_map held = {(uintptr_t)address, {dims[0], dims[1], dims[2]}, {strides[0], strides[1]}, {box[0], box[1]}, type,
                         promotion};
  _Static_assert(sizeof held <= sizeof *map, "a map holds it");
  memset(map, 0, sizeof *map);
  memcpy(map, &held, sizeof held);
  return leave(result);
}

/* ---- streams --------------------------------------------------------------------------------- */

static CUresult fake_cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                            const CUgraphNode **dependencies, size_t *n_dependencies) {
  (void)dependencies, (void)n_dependencies;
  ENTER(cuStreamGetCaptureInfo);
  fake_stream *s = &fake.stream[stream_of(stream) - fake.stream];
  *status = s->capture;
  if (s->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE && id) *id = (cuuint64_t)(graph_of(s) - graphs) + 1000;
  if (s->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE && graph) *graph = graph_of(s);
  return leave(result);
}

static CUresult fake_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  ENTER(cuStreamIsCapturing);
  *status = stream_of(stream)->capture;
  return leave(result);
}

static CUresult fake_cuStreamGetCtx(CUstream stream, CUcontext *context) {
  ENTER(cuStreamGetCtx);
  *context = stream_of(stream)->context;
  return leave(*context ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED);
}

/* Numbers that are neither the place in the table nor small. */
static CUresult fake_cuStreamGetId(CUstream stream, unsigned long long *id) {
  ENTER(cuStreamGetId);
  const fake_stream *s = stream_of(stream);
  *id = (1ull << 40) + 3 * (unsigned long long)(s - fake.stream) + (unsigned long long)s->generation * (1 << 20);
  return leave(result);
}

static CUresult fake_cuEventCreate(CUevent *event, unsigned flags) {
  ENTER(cuEventCreate);
  if (flags != CU_EVENT_DISABLE_TIMING || fake.n_events == FAKE_N_EVENTS) return leave(CUDA_ERROR_INVALID_VALUE);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  fake.event[fake.n_events].context_id = fake_current()->id;
  *event = (CUevent)&fake.event[fake.n_events++];
  return leave(result);
}

static CUresult fake_cuEventRecord(CUevent event, CUstream stream) {
  ENTER(cuEventRecord);
  fake_event *e = (fake_event *)event;
  if (!fake_current() || e->context_id != fake_current()->id) {
    fake.misuse = "an event of another context is recorded";
    return leave(CUDA_ERROR_INVALID_HANDLE);
  }
  if (stream_of(stream)->capture != CU_STREAM_CAPTURE_STATUS_NONE) return leave(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  e->n_records++, e->n_launches = fake.n_launches, e->stream = stream, e->n_queries = 0;
  return leave(result);
}

static CUresult fake_cuEventQuery(CUevent event) {
  ENTER(cuEventQuery);
  fake_event *e = (fake_event *)event;
  if (breaks_capture()) return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (!is_alive(e->context_id)) {
    fake.misuse = "an event of a context that is no more";
    return leave(CUDA_ERROR_INVALID_HANDLE);
  }
  const bool is_late = e->n_queries++ < fake.event_delay;
  return leave(e->n_records > 0 && (is_late || stream_of(e->stream)->is_busy) ? CUDA_ERROR_NOT_READY : result);
}

static CUresult fake_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  ENTER(cuStreamWaitEvent);
  if (flags != 0) return leave(CUDA_ERROR_INVALID_VALUE);
  if (!is_alive(((const fake_event *)event)->context_id)) {
    fake.misuse = "an event of a context that is no more";
    return leave(CUDA_ERROR_INVALID_HANDLE);
  }
  if (fake.n_waits == FAKE_N_WAITS && !fake.compute) return leave(CUDA_ERROR_INVALID_VALUE);
  if (fake.n_waits < FAKE_N_WAITS) fake.wait[fake.n_waits++] = (fake_wait){stream, *(const fake_event *)event, fake.n_launches};
  return leave(result);
}

/* What was launched onto it is over then. */
static CUresult fake_cuStreamSynchronize(CUstream stream) {
  ENTER(cuStreamSynchronize);
  if (stream_of(stream)->capture != CU_STREAM_CAPTURE_STATUS_NONE || breaks_capture())
    return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  fake.stream[stream_of(stream) - fake.stream].is_busy = false;
  return leave(result);
}

/* ---- host matrices: what initialises, allocates and copies ------------------------------------- */

static CUresult fake_cuInit(unsigned flags) {
  const CUresult failure = enter(FAKE_cuInit);
  if (failure != CUDA_SUCCESS && failure != CUDA_ERROR_NOT_INITIALIZED) return leave(failure);
  if (flags == 0) fake.is_initialised = true;
  return leave(flags == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult fake_cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  ENTER(cuDeviceCanAccessPeer);
  *can = device != peer && !fake.has_no_peers;
  return leave(result);
}

/* Of two contexts once. */
static CUresult fake_cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  ENTER(cuCtxEnablePeerAccess);
  const CUcontext context = fake_current();
  if (!context || flags != 0 || context->device == peer->device) return leave(CUDA_ERROR_INVALID_CONTEXT);
  bool *const enabled = &reads_peer[context->device][peer->device];
  if (*enabled) return leave(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  *enabled = true;
  return leave(result);
}

static CUresult fake_cuDeviceGetCount(int *n) {
  ENTER(cuDeviceGetCount);
  *n = fake.n_devices;
  return leave(result);
}

/* The last ones of the table. */
static CUresult fake_cuStreamCreate(CUstream *stream, unsigned flags) {
  static int n_created;
  ENTER(cuStreamCreate);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  if (flags != CU_STREAM_NON_BLOCKING) return leave(CUDA_ERROR_INVALID_VALUE);
  fake_stream *made = &fake.stream[FAKE_N_STREAMS - 1 - n_created++];
  made->context = fake_current();
  *stream = (CUstream)made;
  return leave(result);
}

static CUresult fake_cuMemFree(CUdeviceptr address) {
  ENTER(cuMemFree);
  for (int i = 0; i < n_globals; i++)
    if ((CUdeviceptr)(uintptr_t)globals[i].address == address && !globals[i].library) {
      forget_range(globals[i].address, globals[i].bytes);
      globals[i] = globals[--n_globals];
      return leave(result);
    }
  fake.misuse = "memory is freed that is not there";
  return leave(CUDA_ERROR_INVALID_VALUE);
}

static CUresult fake_cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
  ENTER(cuMemHostAlloc);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  *memory = fake_alloc(FAKE_PINNED, fake_current()->device, bytes);
  fake.pinned_bytes += bytes;
  return leave(flags == 0 && *memory ? result : CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult fake_cuMemFreeHost(void *memory) {
  ENTER(cuMemFreeHost);
  for (int i = 0; i < n_ranges; i++)
    if (ranges[i].low == (uintptr_t)memory && ranges[i].kind == FAKE_PINNED) {
      fake.pinned_bytes -= ranges[i].high - ranges[i].low;
      forget_range(memory, ranges[i].high - ranges[i].low);
      return leave(result);
    }
  return leave(CUDA_ERROR_INVALID_VALUE);
}

static CUresult fake_cuMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  ENTER(cuMemGetInfo);
  if (!fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  *free_bytes = *total_bytes = fake.free_bytes ? fake.free_bytes : (size_t)80 << 30;
  return leave(result);
}

/* At once; every stream is ready then. */
static CUresult fake_cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy, CUstream stream) {
  ENTER(cuMemcpy2DAsync);
  if (!fake_current() || stream_of(stream)->context != fake_current()) return leave(CUDA_ERROR_INVALID_CONTEXT);
  if (copy->srcMemoryType != CU_MEMORYTYPE_UNIFIED || copy->dstMemoryType != CU_MEMORYTYPE_UNIFIED ||
      copy->srcPitch < copy->WidthInBytes || copy->dstPitch < copy->WidthInBytes)
    return leave(CUDA_ERROR_INVALID_VALUE);
  const bool is_from_peer = is_of_peer((const void *)(uintptr_t)copy->srcDevice);
  if (is_from_peer) fake.n_peer_copies++;
  if (!is_from_peer) check_memory(stream, (const void *)(uintptr_t)copy->srcDevice);
  check_memory(stream, (const void *)(uintptr_t)copy->dstDevice);
  for (size_t i = 0; i < copy->Height; i++)
    memcpy((char *)(uintptr_t)copy->dstDevice + i * copy->dstPitch, (const char *)(uintptr_t)copy->srcDevice + i * copy->srcPitch,
           copy->WidthInBytes);
  return leave(result);
}

/* ---- user objects ---------------------------------------------------------------------------- */

static CUresult fake_cuUserObjectCreate(CUuserObject *object, void *payload, CUhostFn destroy, unsigned n_references,
                                        unsigned flags) {
  ENTER(cuUserObjectCreate);
  if (!destroy || n_references < 1 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) return leave(CUDA_ERROR_INVALID_VALUE);
  if (n_objects == N_OBJECTS) return leave(CUDA_ERROR_OUT_OF_MEMORY);
  objects[n_objects] = (fake_object){payload, destroy, (int)n_references, NULL};
  *object = (CUuserObject)&objects[n_objects++];
  fake.n_user_objects++;
  return leave(result);
}

/* The last reference may be a graph's, which has it until it ends. */
static CUresult fake_cuUserObjectRelease(CUuserObject object, unsigned n_references) {
  ENTER(cuUserObjectRelease);
  release((fake_object *)object, (int)n_references);
  return leave(result);
}

static CUresult fake_cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned n_references, unsigned flags) {
  ENTER(cuGraphRetainUserObject);
  if (graph < graphs || graph >= graphs + n_graphs || n_references != 1 || flags != CU_GRAPH_USER_OBJECT_MOVE)
    return leave(CUDA_ERROR_INVALID_VALUE);
  ((fake_object *)object)->graph = graph;
  return leave(result);
}

static CUresult fake_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER(cuThreadExchangeStreamCaptureMode);
  const CUstreamCaptureMode before = capture_mode;
  capture_mode = *mode;
  *mode = before;
  return leave(result);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const char *error_name(CUresult error) {
  switch (error) {
  case CUDA_ERROR_OUT_OF_MEMORY:
    return "CUDA_ERROR_OUT_OF_MEMORY";
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    return "CUDA_ERROR_ILLEGAL_ADDRESS";
  case CUDA_ERROR_LAUNCH_FAILED:
    return "CUDA_ERROR_LAUNCH_FAILED";
  case CUDA_ERROR_INVALID_DEVICE:
    return "CUDA_ERROR_INVALID_DEVICE";
  case CUDA_ERROR_NO_DEVICE:
    return "CUDA_ERROR_NO_DEVICE";
  case CUDA_ERROR_NOT_INITIALIZED:
    return "CUDA_ERROR_NOT_INITIALIZED";
  default:
    return NULL; /* as the real one for a number that it does not know */
  }
}

static CUresult fake_cuGetErrorName(CUresult error, const char **name) {
  ENTER(cuGetErrorName);
  *name = error_name(error);
  return leave(*name ? result : CUDA_ERROR_INVALID_VALUE);
}

static CUresult fake_cuGetErrorString(CUresult error, const char **text) {
  ENTER(cuGetErrorString);
  *text = error_name(error) ? "as the test wanted it" : NULL;
  return leave(*text ? result : CUDA_ERROR_INVALID_VALUE);
}

/* ---- what is exported ------------------------------------------------------------------------ */

/* Checked by the compiler against the types that the library calls them by. */
static const ws_driver table = {
#define MEMBER(name, version) .name = fake_##name,
    FAKE_ENTRIES(MEMBER)
#undef MEMBER
};
static const struct {
  int version;
  size_t offset;
} entries[FAKE_N_FUNCTIONS] = {
#define ENTRY(name, version) {version, offsetof(ws_driver, name)},
    FAKE_ENTRIES(ENTRY)
#undef ENTRY
};

#ifdef FAKE_IS_OLD
#undef cuGetProcAddress /* without the _v2 at its end */
#endif
CUresult CUDAAPI cuGetProcAddress(const char *name, void **function, int version, cuuint64_t flags,
                                  CUdriverProcAddressQueryResult *symbol_status) {
  (void)flags, (void)symbol_status;
  *function = NULL;
  for (int i = 0; i < FAKE_N_FUNCTIONS; i++)
    if (strcmp(name, fake_function_names[i]) == 0 && entries[i].version == version &&
        !(fake.missing && strcmp(name, fake.missing) == 0)) {
      memcpy(function, (const char *)&table + entries[i].offset, sizeof *function);
      return CUDA_SUCCESS;
    }
  snprintf(fake.last_wanted, sizeof fake.last_wanted, "%s", name);
  return CUDA_ERROR_NOT_FOUND;
}

/* What a library that initialises nothing, allocates nothing and waits for nothing cannot want. */
static CUresult trap(const char *name) {
  fake.trapped = name;
  return CUDA_ERROR_NOT_PERMITTED;
}
CUresult CUDAAPI cuInit(unsigned int flags) { return (void)flags, trap("cuInit"); }
CUresult CUDAAPI cuCtxSynchronize(void) { return trap("cuCtxSynchronize"); }
CUresult CUDAAPI cuStreamSynchronize(CUstream stream) { return (void)stream, trap("cuStreamSynchronize"); }
CUresult CUDAAPI cuMemFree(CUdeviceptr pointer) { return (void)pointer, trap("cuMemFree"); }
