/* launch.c - see launch.h. */
#include "cuda/host/launch.h"

#include "cuda/host/problem_args.h"
#include "cuda/rows/rows.h"

CUresult ws_launch_make(const ws_launch *l, CUstream stream) {
  CUlaunchAttribute attributes[2];
  unsigned n_attributes = 0;
  if (l->begin == WS_BEGIN_COOPERATIVE)
    attributes[n_attributes++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE, .value = {.cooperative = 1}};
  if (l->begin == WS_BEGIN_PDL)
    attributes[n_attributes++] = (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                     .value = {.programmaticStreamSerializationAllowed = 1}};
  if (l->cluster > 1) attributes[n_attributes++] = ws_cluster_attribute(l->cluster);
  CUlaunchConfig config = ws_launch_config(l->n_blocks, l->n_threads, l->shared_bytes, attributes, n_attributes);
  config.hStream = stream;
  union {
    const void *given;
    void *wanted;
  } args = {&l->args}, more = {l->more};
  void *parameters[] = {args.wanted, more.wanted};
  return ws_cuda.cuLaunchKernelEx(&config, (CUfunction)l->kernel, parameters, NULL);
}

ws_launch *ws_launch_add(ws_launch_list *list, const char *what, CUkernel kernel, int64_t n_blocks, int n_threads,
                         int shared_bytes, ws_begin begin) {
  ws_launch *l = &list->entry[list->n++];
  l->what = what, l->kernel = kernel, l->n_blocks = n_blocks;
  l->n_threads = n_threads, l->shared_bytes = shared_bytes, l->cluster = 1, l->begin = begin;
  l->stealing.is_wanted = false, l->sums_bytes = 0, l->is_by_map = l->is_grouped = false, l->writes_output = true, l->more = NULL;
  return l;
}

/* `blocks`: the number that takes one step. NULL: there is no such kernel, for the reason in
 * *status. */
static ws_launch *add_over(wsgemm_handle *h, int which, const char *what, double blocks, int n_threads, int shared_bytes,
                           ws_begin begin, ws_device *device, ws_launch_list *list, wsgemm_status *status) {
  enum { THREADS_PER_SM = 2048 };
  CUresult result;
  CUkernel kernel = ws_device_plain_kernel(device, which, &result);
  *status = kernel ? WSGEMM_SUCCESS : ws_fail_kernel(h, what, device, result);
  if (!kernel) return NULL;
  const double most = (double)device->n_sms * (THREADS_PER_SM / n_threads);
  return ws_launch_add(list, what, kernel, (int64_t)(blocks < most ? blocks : most), n_threads, shared_bytes, begin);
}

wsgemm_status ws_add_scale(wsgemm_handle *h, const ws_problem *p, ws_device *device, ws_launch_list *list) {
  enum { N_THREADS = 256 };
  wsgemm_status status;
  const double blocks = (double)p->m * (double)p->n * (double)p->batch_count / N_THREADS + 1;
  ws_launch *l = add_over(h, WS_KERNEL_SCALE + (int)p->c.type, "scale", blocks, N_THREADS, 0, WS_BEGIN_STREAM_ORDERED, device,
                          list, &status);
  if (!l) return status;
  l->args.gemm = ws_gemm_args_of(p);
  l->args.gemm.grid.n_batch = p->batch_count;
  return status;
}

wsgemm_status ws_add_column_sums(wsgemm_handle *h, const ws_problem *p, ws_device *device, ws_launch_list *list) {
  enum { N_THREADS = 1024, STEP = 32 }; /* rows that are summed, or columns */
  wsgemm_status status;
  const ws_column_sums_args args = ws_column_sums_args_of(p);
  const double blocks = (double)ws_ceil_div(args.transposed ? p->m : p->n, STEP) * (double)p->batch_count;
  ws_launch *l = add_over(h, WS_KERNEL_COLUMN_SUMS + (int)p->c.type, "column sums", blocks, N_THREADS, 0, WS_BEGIN_STREAM_ORDERED,
                          device, list, &status);
  if (l) l->args.column_sums = args;
  return status;
}

wsgemm_status ws_add_align_copy(wsgemm_handle *h, const ws_align_copy_args *args, ws_device *device, ws_launch_list *list) {
  enum { N_THREADS = 256, LINES = N_THREADS / 32 };
  wsgemm_status status;
  const int64_t n_lines =
      ws_max(args->operand[0].n_lines * args->operand[0].n_batch, args->operand[1].n_lines * args->operand[1].n_batch);
  ws_launch *l = add_over(h, WS_KERNEL_ALIGN_COPY, "align_copy", (double)ws_ceil_div(n_lines, LINES), N_THREADS, 0,
                          WS_BEGIN_STREAM_ORDERED, device, list, &status);
  if (l) l->args.align_copy = *args, l->writes_output = false;
  return status;
}

wsgemm_status ws_add_float_copy(wsgemm_handle *h, const ws_float_copy_args *args, ws_device *device, ws_launch_list *list) {
  wsgemm_status status;
  double shares = 0;
  for (int i = 0; i < 2; i++) {
    const ws_float_copy_operand *op = &args->operand[i];
    shares += (double)ws_ceil_div(op->n_x, WS_FLOAT_COPY_X) * (double)ws_ceil_div(op->n_k, WS_FLOAT_COPY_K) * (double)op->n_batch;
  }
  ws_launch *l = add_over(h, WS_KERNEL_FLOAT_COPY, "float_copy", shares, WS_FLOAT_COPY_THREADS, 0, WS_BEGIN_STREAM_ORDERED,
                          device, list, &status);
  if (l) l->args.float_copy = *args, l->writes_output = false;
  return status;
}

wsgemm_status ws_add_slices(wsgemm_handle *h, const ws_slice_args *args, ws_device *device, ws_launch_list *list) {
  wsgemm_status status = WSGEMM_SUCCESS;
  const double parts = ws_slice_parts(args);
  if (args->n_slices < 3) {
    const bool is_complex = args->operand[0].form != WS_SLICE_REALS;
    const int which = ws_slices_are_structured(args) ? WS_KERNEL_STRUCTURED_MAXIMA + is_complex : WS_KERNEL_MAXIMA;
    ws_launch *maxima = add_over(h, which, "maxima", parts, WS_SLICE_THREADS, 0, WS_BEGIN_PDL, device, list, &status);
    if (!maxima) return status;
    maxima->args.slices = *args, maxima->writes_output = false;
  }
  ws_launch *slices =
      add_over(h, ws_slices_kernel(args), "slices", parts, WS_SLICE_THREADS, 0, WS_BEGIN_PDL, device, list, &status);
  if (slices) slices->args.slices = *args, slices->writes_output = false;
  return status;
}

wsgemm_status ws_add_expand(wsgemm_handle *h, wsgemm_type type, const ws_expand_args *args, ws_device *device,
                            ws_launch_list *list) {
  wsgemm_status status;
  const ws_slice_operand *op = &args->operand;
  const double blocks = (double)op->n_batch * (double)op->n_x * (double)op->n_k / (4 * WS_SLICE_THREADS) + 1;
  ws_launch *l = add_over(h, WS_KERNEL_EXPAND + (type == WSGEMM_C32), "expand", blocks, WS_SLICE_THREADS, 0,
                          WS_BEGIN_STREAM_ORDERED, device, list, &status);
  if (l) l->args.expand = *args, l->writes_output = false;
  return status;
}

wsgemm_status ws_add_fallback(wsgemm_handle *h, wsgemm_type type, const ws_fallback_args *args, ws_device *device,
                              ws_launch_list *list) {
#define WS_FALLBACK_SHAPE(t)                                                                                   \
  {                                                                                                            \
    WS_ROW_THREADS(simt, WS_FALLBACK_BM, WS_FALLBACK_BN, WS_FALLBACK_TM_##t, WS_FALLBACK_TN),                  \
        WS_ROW_SHARED_BYTES(simt, WS_ROW_ELEMENT_BYTES_##t, WS_FALLBACK_BM, WS_FALLBACK_BN, WS_FALLBACK_BK, 1, \
                            WS_FALLBACK_STAGES_##t)                                                            \
  }
  static const struct { int n_threads, shared_bytes; } shapes[] = {WS_FALLBACK_SHAPE(s), WS_FALLBACK_SHAPE(c)};
  const int of_type = type == WSGEMM_C32;
  wsgemm_status status;
  const double blocks = (double)ws_min(args->gemm.sched.n_items, 4 * device->n_sms);
  ws_launch *l = add_over(h, WS_KERNEL_FALLBACK + of_type, "fallback", blocks, shapes[of_type].n_threads,
                          shapes[of_type].shared_bytes, WS_BEGIN_PDL, device, list, &status);
  if (l) l->args.fallback = *args;
  return status;
}

static wsgemm_status add_sliced_solve(wsgemm_handle *h, const ws_triangle_args *args, ws_device *device, ws_launch_list *list) {
  wsgemm_status status;
  const double blocks = (double)ws_ceil_div(args->n_columns, WS_SLICED_SOLVE_COLUMNS) * (double)args->n_batch;
  ws_launch *l = add_over(h, WS_KERNEL_SLICED_SOLVE, "solve by slices", blocks, 32 * WS_SLICED_SOLVE_WARPS,
                          WS_SLICED_SOLVE_SHARED_BYTES, WS_BEGIN_STREAM_ORDERED, device, list, &status);
  if (l) l->args.triangle = *args;
  return status;
}

wsgemm_status ws_add_triangle(wsgemm_handle *h, wsgemm_type type, const ws_triangle_args *args, int add_n, ws_device *device,
                              ws_launch_list *list) {
  if (args->work == WS_TRIANGLE_SLICED) return add_sliced_solve(h, args, device, list);
  wsgemm_status status;
  static const int solve_threads[] = {WS_SOLVE_THREADS(s), WS_SOLVE_THREADS(d), WS_SOLVE_THREADS(c), WS_SOLVE_THREADS(z)};
  const bool solves = args->work == WS_TRIANGLE_SOLVE;
  const int n_threads = solves ? solve_threads[type] : WS_TRIANGLE_THREADS,
            shared_bytes = solves ? ws_solve_shared_bytes(type, args->n) : ws_triangle_shared_bytes(type);
  const int which = (solves ? WS_KERNEL_SOLVE : WS_KERNEL_TRIANGLE) + (int)type;
  const int64_t n_blocks = args->work == WS_TRIANGLE_ADD ? ws_ceil_div(args->n, add_n) : 1,
                n_columns = ws_ceil_div(args->n_columns, solves ? WS_SOLVE_COLUMNS : WS_TRIANGLE_COLUMNS);
  const double blocks = (double)n_columns * (double)n_blocks * (double)args->n_batch;
  ws_launch *l = add_over(h, which, solves ? "solve" : "triangle", blocks, n_threads, shared_bytes, WS_BEGIN_STREAM_ORDERED,
                          device, list, &status);
  if (l) l->args.triangle = *args;
  return status;
}

wsgemm_status ws_add_write_out(wsgemm_handle *h, wsgemm_type type, const ws_triangle_args *args, ws_device *device,
                               ws_launch_list *list) {
  wsgemm_status status;
  const double n_tiles = (double)ws_ceil_div(args->n, WS_TRIANGLE_PART), blocks = n_tiles * n_tiles * (double)args->n_batch;
  ws_launch *l = add_over(h, WS_KERNEL_WRITE_OUT + (int)type, "write_out", blocks, WS_TRIANGLE_THREADS, 0,
                          WS_BEGIN_STREAM_ORDERED, device, list, &status);
  if (l) l->args.triangle = *args, l->writes_output = false;
  return status;
}

wsgemm_status ws_add_copy_lines(wsgemm_handle *h, wsgemm_type type, const ws_triangle_args *args, ws_device *device,
                                ws_launch_list *list) {
  enum { N_THREADS = 256 };
  wsgemm_status status;
  const bool is_double = type == WSGEMM_F64 || type == WSGEMM_C64;
  const double blocks = (double)args->n * (double)args->n_columns * (double)args->n_batch / N_THREADS + 1;
  ws_launch *l = add_over(h, WS_KERNEL_COPY_LINES + is_double, "copy_lines", blocks, N_THREADS, 0, WS_BEGIN_STREAM_ORDERED,
                          device, list, &status);
  if (l) l->args.triangle = *args;
  return status;
}
