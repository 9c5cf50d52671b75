/* launch.h - kernels onto a stream. */
#ifndef WS_CUDA_LAUNCH_H
#define WS_CUDA_LAUNCH_H
#include "cuda/host/device.h"
#include "cuda/host/slices.h"
#include "cuda/shared/align_copy_args.h"

/* How a kernel's blocks begin: when the launch before has ended; all at once, or none of them (cooperative); or as soon as there is room, because
 * the kernel itself waits for the launch before (griddepcontrol.wait, cc >= 9.0). */
typedef enum ws_begin { WS_BEGIN_AFTER, WS_BEGIN_TOGETHER, WS_BEGIN_EARLY } ws_begin;

/* cluster: blocks that are placed together. The second records no failure. */
wsgemm_status ws_launch(wsgemm_handle *h, CUkernel kernel, int64_t n_blocks, int n_threads, int shared_bytes, int cluster,
                        ws_begin begin, CUstream stream, void *args);
CUresult ws_try_launch(CUkernel kernel, int64_t n_blocks, int n_threads, int shared_bytes, int cluster, ws_begin begin,
                       CUstream stream, void *args);

/* Those of elementwise_kernels.cuh: C = beta C and the steps of its epilogue; the sums of its columns; copies of operands. */
wsgemm_status ws_launch_scale(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream);
wsgemm_status ws_launch_column_sums(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream);
wsgemm_status ws_launch_pitch(wsgemm_handle *h, ws_pitch_args *args, ws_device *device, CUstream stream);

/* Those of slice_kernels.cuh, both passes; that of marked_kernel.cuh. */
wsgemm_status ws_launch_maxima(wsgemm_handle *h, ws_slice_args *args, ws_device *device, CUstream stream);
wsgemm_status ws_launch_slices(wsgemm_handle *h, ws_slice_args *args, ws_device *device, CUstream stream);
wsgemm_status ws_launch_marked(wsgemm_handle *h, wsgemm_type type, ws_marked_args *args, ws_device *device, CUstream stream);
#endif
