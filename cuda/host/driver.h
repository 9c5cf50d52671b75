/* driver.h - the CUDA driver, found at run time: the table of its entry points that this library
 * calls, and what state it is in.
 *
 * Nothing links libcuda. The driver is never initialised from here: device memory cannot exist
 * before somebody in the process has done so, and until then every pointer is host memory. Nor does
 * it survive a fork: the child of a process that used it calls none of it. Tuning (arena.c) and host
 * matrices on GPUs (offload.c) do initialise; so does the command `wsgemm`, which has a table of its own (src/cli/gpu.c). */
#ifndef WS_CUDA_DRIVER_H
#define WS_CUDA_DRIVER_H
#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>
#include <stdint.h>

/* X(name, version of the interface as cuda_version * 10 in cudaTypedefs.h) */
#define WS_DRIVER_ENTRIES(X)                           \
  X(cuDriverGetVersion, 2020)                          \
  X(cuDeviceGet, 2000)                                 \
  X(cuDeviceGetAttribute, 2000)                        \
  X(cuDeviceGetName, 2000)                             \
  X(cuDevicePrimaryCtxRetain, 7000)                    \
  X(cuCtxGetCurrent, 4000)                             \
  X(cuCtxGetDevice, 2000)                              \
  X(cuCtxGetId, 12000)                                 \
  X(cuCtxPushCurrent, 4000)                            \
  X(cuCtxPopCurrent, 4000)                             \
  X(cuPointerGetAttributes, 7000)                      \
  X(cuLibraryLoadData, 12000)                          \
  X(cuLibraryGetKernel, 12000)                         \
  X(cuLibraryGetGlobal, 12000)                         \
  X(cuKernelGetFunction, 12000)                        \
  X(cuKernelSetAttribute, 12000)                       \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050) \
  X(cuOccupancyMaxActiveClusters, 11070)               \
  X(cuLaunchKernelEx, 11060)                           \
  X(cuStreamIsCapturing, 10000)                        \
  X(cuStreamGetCaptureInfo, 11030)                     \
  X(cuStreamGetCtx, 9020)                              \
  X(cuStreamGetId, 12000)                              \
  X(cuStreamWaitEvent, 3020)                           \
  X(cuStreamSynchronize, 2000)                         \
  X(cuEventCreate, 2000)                               \
  X(cuEventQuery, 2000)                                \
  X(cuEventRecord, 2000)                               \
  X(cuUserObjectCreate, 11030)                         \
  X(cuUserObjectRelease, 11030)                        \
  X(cuGraphRetainUserObject, 11030)                    \
  X(cuThreadExchangeStreamCaptureMode, 10010)          \
  X(cuTensorMapEncodeTiled, 12000)                     \
  X(cuMemAlloc, 3020)                                  \
  X(cuMemcpyDtoH, 3020)                                \
  X(cuGetErrorName, 6000)                              \
  X(cuGetErrorString, 6000)

/* What a driver may lack: NULL then. */
#define WS_DRIVER_OPTIONAL_ENTRIES(X) \
  X(cuMemAllocAsync, 11020)           \
  X(cuMemFreeAsync, 11020)

/* For host matrices on GPUs (offload.c), which calls on device memory have no business with. */
#define WS_DRIVER_OFFLOAD_ENTRIES(X) \
  X(cuInit, 2000)                    \
  X(cuDeviceGetCount, 2000)          \
  X(cuDeviceCanAccessPeer, 4000)     \
  X(cuCtxEnablePeerAccess, 4000)     \
  X(cuStreamCreate, 2000)            \
  X(cuMemFree, 3020)                 \
  X(cuMemHostAlloc, 2020)            \
  X(cuMemFreeHost, 2000)             \
  X(cuMemGetInfo, 3020)              \
  X(cuMemcpy2DAsync, 3020)

/* Nor with these besides: for tuning, and for the command, which has a copy of driver.c of its
 * own. */
#define WS_DRIVER_TOOL_ENTRIES(X) \
  X(cuDeviceTotalMem, 3020)       \
  X(cuMemcpyHtoD, 3020)           \
  X(cuMemcpyDtoDAsync, 3020)      \
  X(cuMemcpyDtoHAsync, 3020)      \
  X(cuMemsetD32Async, 3020)       \
  X(cuEventSynchronize, 2000)     \
  X(cuEventElapsedTime, 2000)     \
  X(cuEventDestroy, 4000)         \
  X(cuCtxSynchronize, 2000)

typedef struct ws_driver {
#define WS_DRIVER_MEMBER(name, version) PFN_##name##_v##version name;
  WS_DRIVER_ENTRIES(WS_DRIVER_MEMBER)
  WS_DRIVER_OPTIONAL_ENTRIES(WS_DRIVER_MEMBER)
  WS_DRIVER_OFFLOAD_ENTRIES(WS_DRIVER_MEMBER)
  WS_DRIVER_TOOL_ENTRIES(WS_DRIVER_MEMBER)
#undef WS_DRIVER_MEMBER
  bool is_loaded;      /* there is a driver in this process */
  const char *missing; /* an entry point that it lacks, being too old; NULL: none */
} ws_driver;

extern ws_driver ws_cuda; /* filled by ws_driver_load, read-only afterwards */

/* Looks for libcuda.so.1, without initialising it. Takes the loader's lock, so the caller may hold
 * none that a fork takes: a constructor, which runs with the loader's lock, may fork. By any
 * thread, any number of times. */
void ws_driver_find(void);
/* Asks what was found for its entry points. Once, after it. */
void ws_driver_load(void);
/* The entry points for host matrices, and those of the tools with them, after it. The name of one
 * that is missing of all, NULL: none. By any thread, any number of times. */
const char *ws_driver_load_offload(void);
const char *ws_driver_load_tools(void);

/* To be told once the driver has answered something: somebody has initialised it, so a child forked
 * from now on has lost it. */
void ws_driver_note_use(void);
void ws_driver_forked(void); /* to be told in that child */
bool ws_driver_is_lost(void);

/* Whether this process may be the child of one that used the driver before this library was asked
 * for anything: there the driver says that nobody has initialised it, and yet pointers to device
 * memory may have come along. */
bool ws_driver_may_be_inherited(void);

/* Whether this process can read the memory itself: what is left to ask of a pointer when the driver
 * cannot be asked. */
bool ws_is_readable(const void *pointer);

/* A launch of blocks in a row, and of clusters of them. */
static inline CUlaunchConfig ws_launch_config(int64_t n_blocks, int n_threads, int shared_bytes, CUlaunchAttribute *attributes,
                                              unsigned n_attributes) {
  return (CUlaunchConfig){.gridDimX = (unsigned)n_blocks,
                          .gridDimY = 1,
                          .gridDimZ = 1,
                          .blockDimX = (unsigned)n_threads,
                          .blockDimY = 1,
                          .blockDimZ = 1,
                          .sharedMemBytes = (unsigned)shared_bytes,
                          .attrs = attributes,
                          .numAttrs = n_attributes};
}
static inline CUlaunchAttribute ws_cluster_attribute(int cluster) {
  return (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value = {.clusterDim = {(unsigned)cluster, 1, 1}}};
}
#endif
