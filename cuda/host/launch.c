/* launch.c - see launch.h. */
#include "cuda/host/launch.h"

#include "cuda/host/problem_args.h"
#include "cuda/rows/rows.h"

CUresult ws_try_launch(CUkernel kernel, int64_t n_blocks, int n_threads, int shared_bytes, int cluster, ws_begin begin,
                       CUstream stream, void *args) {
  CUlaunchAttribute attributes[2];
  unsigned n_attributes = 0;
  if (begin == WS_BEGIN_TOGETHER)
    attributes[n_attributes++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
  if (begin == WS_BEGIN_EARLY)
    attributes[n_attributes++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                     .value = {.programmaticStreamSerializationAllowed = 1}};
  if (cluster > 1)
    attributes[n_attributes++] =
        (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value = {.clusterDim = {(unsigned)cluster, 1, 1}}};
  CUlaunchConfig config = {.gridDimX = (unsigned)n_blocks,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = (unsigned)n_threads,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .sharedMemBytes = (unsigned)shared_bytes,
                           .hStream = stream,
                           .attrs = attributes,
                           .numAttrs = n_attributes};
  void *parameters[] = {args};
  return ws_cuda.cuLaunchKernelEx(&config, (CUfunction)kernel, parameters, NULL);
}

wsgemm_status ws_launch(wsgemm_handle *h, CUkernel kernel, int64_t n_blocks, int n_threads, int shared_bytes, int cluster,
                        ws_begin begin, CUstream stream, void *args) {
  const CUresult result = ws_try_launch(kernel, n_blocks, n_threads, shared_bytes, cluster, begin, stream, args);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : ws_fail_cuda(h, "launch", result);
}

/* Kernels of any number of blocks, whose threads step over what there is; `blocks`: the number that takes one step. */
static wsgemm_status launch_over(wsgemm_handle *h, int which, const char *name, double blocks, int n_threads, int shared_bytes,
                                 ws_begin begin, ws_device *device, CUstream stream, void *args) {
  enum { THREADS_PER_SM = 2048 };
  CUresult result;
  CUkernel kernel = ws_device_plain_kernel(device, which, &result);
  if (!kernel) return ws_fail_kernel(h, name, device, result);
  const double most = (double)device->n_sms * (THREADS_PER_SM / n_threads);
  return ws_launch(h, kernel, (int64_t)(blocks < most ? blocks : most), n_threads, shared_bytes, 1, begin, stream, args);
}

wsgemm_status ws_launch_scale(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream) {
  enum { N_THREADS = 256 };
  ws_gemm_args args = ws_gemm_args_of(p);
  args.grid.n_batch = p->batch_count;
  const double blocks = (double)p->m * (double)p->n * (double)p->batch_count / N_THREADS + 1;
  return launch_over(h, WS_KERNEL_SCALE + (int)p->type_c, "scale", blocks, N_THREADS, 0, WS_BEGIN_AFTER, device, stream, &args);
}

wsgemm_status ws_launch_column_sums(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream) {
  enum { N_THREADS = 1024, STEP = 32 }; /* rows that are summed, or columns */
  ws_column_sums_args args = ws_column_sums_args_of(p);
  const double blocks = (double)ws_ceil_div(args.swapped ? p->m : p->n, STEP) * (double)p->batch_count;
  return launch_over(h, WS_KERNEL_COLUMN_SUMS + (int)p->type_c, "column sums", blocks, N_THREADS, 0, WS_BEGIN_AFTER, device,
                     stream, &args);
}

wsgemm_status ws_launch_pitch(wsgemm_handle *h, ws_pitch_args *args, ws_device *device, CUstream stream) {
  enum { N_THREADS = 256, LINES = N_THREADS / 32 };
  const int64_t n_lines =
      ws_max(args->operand[0].n_lines * args->operand[0].n_products, args->operand[1].n_lines * args->operand[1].n_products);
  return launch_over(h, WS_KERNEL_PITCH, "pitch", (double)ws_ceil_div(n_lines, LINES), N_THREADS, 0, WS_BEGIN_AFTER, device,
                     stream, args);
}

wsgemm_status ws_launch_maxima(wsgemm_handle *h, ws_slice_args *args, ws_device *device, CUstream stream) {
  return launch_over(h, WS_KERNEL_MAXIMA, "maxima", ws_slice_parts(args), WS_SLICE_THREADS, 0, WS_BEGIN_AFTER, device, stream,
                     args);
}

wsgemm_status ws_launch_slices(wsgemm_handle *h, ws_slice_args *args, ws_device *device, CUstream stream) {
  return launch_over(h, ws_slices_kernel(args), "slices", ws_slice_parts(args), WS_SLICE_THREADS, 0, WS_BEGIN_EARLY, device,
                     stream, args);
}

wsgemm_status ws_launch_marked(wsgemm_handle *h, wsgemm_type type, ws_marked_args *args, ws_device *device, CUstream stream) {
#define WS_MARKED_SHAPE(t)                                                                                                     \
  {                                                                                                                            \
    WS_ROW_THREADS(simt, WS_MARKED_BM, WS_MARKED_BN, WS_MARKED_TM_##t, WS_MARKED_TN),                                          \
        WS_ROW_SHARED_BYTES(simt, WS_ROW_ELEMENT_BYTES_##t, WS_MARKED_BM, WS_MARKED_BN, WS_MARKED_BK, 1, WS_MARKED_STAGES_##t) \
  }
  static const struct { int n_threads, shared_bytes; } shapes[] = {WS_MARKED_SHAPE(s), WS_MARKED_SHAPE(c)};
  const int of_type = type == WSGEMM_C32;
  const double blocks = (double)ws_min(args->gemm.sched.n_items, 4 * device->n_sms);
  return launch_over(h, WS_KERNEL_MARKED + of_type, "marked", blocks, shapes[of_type].n_threads, shapes[of_type].shared_bytes,
                     WS_BEGIN_EARLY, device, stream, args);
}
