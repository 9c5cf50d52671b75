/* launch.h - kernels onto a stream. */
#ifndef WS_CUDA_LAUNCH_H
#define WS_CUDA_LAUNCH_H
#include "device.h"
#include "pitch_args.h"
#include "sliced.h"

/* cluster: blocks that are placed together; all_resident: all of them run at once, or none. */
wsgemm_status ws_launch(wsgemm_handle *h, CUkernel kernel, int64_t n_blocks, int n_threads, int shared_bytes, int cluster,
                        bool all_resident, CUstream stream, void *args);

/* Those of elementwise_kernels.cuh: C = beta C and the steps of its epilogue; the sums of its columns; copies of operands. */
wsgemm_status ws_launch_scale(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream);
wsgemm_status ws_launch_column_sums(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream);
wsgemm_status ws_launch_pitch(wsgemm_handle *h, ws_pitch_args *args, ws_device *device, CUstream stream);

/* Those of slice_kernels.cuh, both passes; that of marked_kernel.cuh. */
wsgemm_status ws_launch_slices(wsgemm_handle *h, ws_slice_args *args, ws_device *device, CUstream stream);
wsgemm_status ws_launch_marked(wsgemm_handle *h, ws_marked_args *args, ws_device *device, CUstream stream);
#endif
