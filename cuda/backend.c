/* backend.c - the GPU backend's host side: where the matrices lie, which row, scheduler and grid a call gets, and its launch.
 *
 * A call allocates nothing and waits for nothing: one launch on the handle's stream. What a device needs once (its record, its kernels)
 * is device.c's business. Row, scheduler and grid never change the bits of C, except that a row sums in its own way. */
#include "backend.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device.h"
#include "kernel_args.h"

bool ws_cuda_may_have_devices;

void ws_cuda_init(void) {
  ws_driver_load();
  ws_cuda_may_have_devices = ws_cuda.is_loaded;
}

int ws_cuda_kernel_count(void) { return ws_cuda_row_count(); }
const char *ws_cuda_kernel_name(int row_idx) { return ws_cuda_row_at(row_idx)->name; }
wsgemm_type ws_cuda_kernel_type(int row_idx) { return ws_cuda_row_at(row_idx)->type; }

int ws_cuda_kernel_find(const char *name) {
  for (int r = 0; r < ws_cuda_row_count(); r++)
    if (strcmp(ws_cuda_row_at(r)->name, name) == 0) return r;
  return -1;
}

static wsgemm_status fail_cuda(wsgemm_handle *h, const char *what, CUresult result) {
  const char *name = NULL, *text = NULL;
  ws_cuda.cuGetErrorName(result, &name);
  ws_cuda.cuGetErrorString(result, &text);
  return ws_fail(h, WSGEMM_DEVICE_ERROR, "%s: %s (%s)", what, name ? name : "unknown CUDA error", text ? text : "?");
}

/* ---- where the matrices lie -------------------------------------------------------------------------------------------------- */

typedef struct location {
  bool is_device, is_managed;
  int device;
} location;

static location locate(const void *pointer) {
  unsigned int memory_type = 0, is_managed = 0;
  int device = -1;
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                      CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  void *values[] = {&memory_type, &is_managed, &device};
  location l = {false, false, -1};
  if (ws_cuda.cuPointerGetAttributes(3, attributes, values, (CUdeviceptr)(uintptr_t)pointer) != CUDA_SUCCESS) return l;
  l.is_managed = is_managed != 0;
  l.is_device = memory_type == CU_MEMORYTYPE_DEVICE || l.is_managed;
  l.device = device;
  return l;
}

/* Managed memory goes where the others are; on its own, to the GPU. */
ws_place ws_cuda_place(wsgemm_handle *h, const ws_problem *p, int *device, wsgemm_status *status) {
  if (ws_cuda.missing) return WS_PLACE_HOST; /* too old a driver: see ws_cuda_describe */
  const bool reads_ab = !ws_product_is_zero(p);
  const void *pointers[] = {p->c, reads_ab ? p->a : NULL, reads_ab ? p->b : NULL};
  int n_device_only = 0, n_managed = 0, n_host = 0;
  *device = -1;
  for (int i = 0; i < 3; i++) {
    if (!pointers[i]) continue;
    const location l = locate(pointers[i]);
    if (!l.is_device) {
      n_host++;
    } else if (l.is_managed) {
      n_managed++;
      if (*device < 0) *device = l.device;
    } else {
      if (n_device_only++ > 0 && l.device != *device) {
        *status = ws_fail(h, WSGEMM_INVALID_POINTER, "the matrices lie on different devices (%d and %d)", *device, l.device);
        return WS_PLACE_BAD;
      }
      *device = l.device;
    }
  }
  if (n_host == 0) return WS_PLACE_DEVICE;
  if (n_device_only == 0) return WS_PLACE_HOST;
  *status =
      ws_fail(h, WSGEMM_INVALID_POINTER, "some matrices lie in host memory, others on device %d; all must be together", *device);
  return WS_PLACE_BAD;
}

/* ---- plan -------------------------------------------------------------------------------------------------------------------- */

typedef struct gpu_plan {
  int row_idx;
  const ws_device_kernel *kernel;
  ws_sched sched;
  bool fixed_work;
  ws_tile_grid grid;
  int64_t n_items;
} gpu_plan;

static ws_tile_grid grid_for(const ws_problem *p, const ws_cuda_row *row) {
  return (ws_tile_grid){.n_batch = p->batch_count,
                        .n_rows = ws_ceil_div(p->m, row->bm),
                        .n_cols = ws_ceil_div(p->n, row->bn),
                        .coarse = row->coarse,
                        .group = 8};
}

/* The share of its full speed that a multiprocessor reaches with so many warps (H200, 2026-11-21: 69 % of 16 warps' with 4). */
static double share_of_speed(double warps) { return warps / (warps + 2.8); }

/* Time in no particular unit. The first round of blocks is spread evenly; in later rounds a multiprocessor that is free early takes as
 * many items as fit, so that even a short last round takes half its time and more. */
static double row_cost(const ws_problem *p, const ws_cuda_row *row, int n_sms) {
  const ws_tile_grid grid = grid_for(p, row);
  const double n_items = (double)ws_tile_items(&grid), places = (double)n_sms * row->blocks, warps = row->n_threads / 32.0;
  const double item = (double)row->bm * row->bn * row->coarse / row->rate;
  if (n_items <= places) {
    const double each = (double)ws_ceil_div((int64_t)n_items, n_sms);
    return each * item * share_of_speed(row->blocks * warps) / share_of_speed(each * warps);
  }
  const double rounds = (double)(int64_t)(n_items / places), rest = n_items / places - rounds;
  return (rounds + (rest > 0 ? 0.5 + 0.5 * rest : 0)) * row->blocks * item;
}

/* The forced row, else the one with the least cost; of those with the COARSE_FACTOR that the handle asks for, if there are any. */
static int choose_row(wsgemm_handle *h, const ws_problem *p, const ws_device *device) {
  const int forced = atomic_load_explicit(&h->cuda_kernel[p->type], memory_order_relaxed);
  if (forced) return forced - 1;
  const int coarse = atomic_load_explicit(&h->coarse_factor, memory_order_relaxed);
  int best = -1;
  bool best_fits = false;
  double best_cost = 0;
  for (int r = 0; r < ws_cuda_row_count(); r++) {
    const ws_cuda_row *row = ws_cuda_row_at(r);
    if (row->type != p->type) continue;
    const bool fits = coarse == 0 || row->coarse == coarse;
    const double cost = row_cost(p, row, device->n_sms);
    if (best < 0 || (fits && !best_fits) || (fits == best_fits && cost < best_cost)) best = r, best_cost = cost, best_fits = fits;
  }
  return best;
}

/* The architectures that have Cluster Launch Control and machine code of their own in the images; code for others traps there. */
static bool has_clc(const ws_device *device) { return device->cc == 100 || device->cc == 120; }

static ws_sched sched_for(wsgemm_policy policy, const ws_device *device) {
  switch (policy) {
  case WSGEMM_POLICY_FIXED_WORK:
  case WSGEMM_POLICY_FIXED_BLOCKS:
    return WS_SCHED_STATIC;
  case WSGEMM_POLICY_STEAL:
    return WS_SCHED_QUEUE;
  case WSGEMM_POLICY_FOREACH:
    return has_clc(device) ? WS_SCHED_FOREACH : WS_SCHED_QUEUE;
  case WSGEMM_POLICY_AUTO:
  case WSGEMM_POLICY_CLC:
    break;
  }
  return has_clc(device) ? WS_SCHED_CLC : WS_SCHED_QUEUE;
}

static wsgemm_status make_plan(wsgemm_handle *h, const ws_problem *p, ws_device *device, gpu_plan *plan) {
  const wsgemm_policy policy = (wsgemm_policy)atomic_load_explicit(&h->policy, memory_order_relaxed);
  plan->row_idx = choose_row(h, p, device);
  const ws_cuda_row *row = ws_cuda_row_at(plan->row_idx);
  plan->sched = sched_for(policy, device);
  plan->fixed_work = policy == WSGEMM_POLICY_FIXED_WORK;
  plan->kernel = ws_device_kernel_get(device, plan->row_idx, plan->sched);
  if (!plan->kernel)
    return ws_fail(h, WSGEMM_ARCH_MISMATCH, "kernel %s does not run on device %d (%s, compute capability %d.%d)", row->name,
                   device->ordinal, device->name, device->cc / 10, device->cc % 10);
  plan->grid = grid_for(p, row);
  plan->n_items = ws_tile_items(&plan->grid);
  if (plan->n_items > WS_SCHED_MAX_ITEMS)
    return ws_fail(h, WSGEMM_NOT_SUPPORTED, "%lld work items of kernel %s; one launch takes %lld", (long long)plan->n_items,
                   row->name, (long long)WS_SCHED_MAX_ITEMS);
  return WSGEMM_SUCCESS;
}

/* ---- launch ------------------------------------------------------------------------------------------------------------------ */

static bool is_aligned(const void *pointer, int64_t step, int64_t stride, int element_bytes, int bytes) {
  return (((uintptr_t)pointer | (uintptr_t)(step * element_bytes) | (uintptr_t)(stride * element_bytes)) &
          (uintptr_t)(bytes - 1)) == 0;
}

static ws_operand operand_of(const ws_problem *p, const void *data, int64_t ld, bool along_k, int64_t stride, bool conj) {
  const int bytes = ws_types[p->type].bytes;
  ws_operand op = {.data = data, .step_mn = along_k ? ld : 1, .step_k = along_k ? 1 : ld, .stride = stride, .conj = conj};
  const bool is_vectors = is_aligned(data, ld, stride, bytes, 16);
  if (along_k)
    op.mode = is_vectors ? WS_COPY_VECTORS_K : WS_COPY_ALONG_K;
  else
    op.mode = is_vectors ? WS_COPY_VECTORS_MN : WS_COPY_ALONG_MN;
  op.whole_elements = is_aligned(data, ld, stride, bytes, bytes);
  return op;
}

static ws_gemm_args args_of(const ws_problem *p) {
  ws_gemm_args args = {.m = p->m, .n = p->n, .k = p->k, .c = p->c, .ldc = p->ldc, .stride_c = p->stride_c};
  args.a = operand_of(p, p->a, p->lda, p->a_trans, p->stride_a, p->scale.conj_a);
  args.b = operand_of(p, p->b, p->ldb, !p->b_trans, p->stride_b, p->scale.conj_b);
  memcpy(&args.alpha, &p->scale.alpha, sizeof args.alpha);
  memcpy(&args.beta, &p->scale.beta, sizeof args.beta);
  args.beta_zero = p->scale.beta_zero;
  args.c_vectors = is_aligned(p->c, p->ldc, p->stride_c, ws_types[p->type].bytes, 16);
  return args;
}

static wsgemm_status launch(wsgemm_handle *h, CUkernel kernel, int64_t n_blocks, int n_threads, int shared_bytes, CUstream stream,
                            ws_gemm_args *args) {
  CUlaunchConfig config = {.gridDimX = (unsigned)n_blocks,
                           .gridDimY = 1,
                           .gridDimZ = 1,
                           .blockDimX = (unsigned)n_threads,
                           .blockDimY = 1,
                           .blockDimZ = 1,
                           .sharedMemBytes = (unsigned)shared_bytes,
                           .hStream = stream};
  void *parameters[] = {args};
  const CUresult result = ws_cuda.cuLaunchKernelEx(&config, (CUfunction)kernel, parameters, NULL);
  return result == CUDA_SUCCESS ? WSGEMM_SUCCESS : fail_cuda(h, "launch", result);
}

static wsgemm_status launch_scale(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream) {
  enum { N_THREADS = 256, BLOCKS_PER_SM = 8 };
  CUkernel kernel = ws_device_scale_kernel(device, p->type);
  if (!kernel) return ws_fail(h, WSGEMM_ARCH_MISMATCH, "no kernel for device %d (%s)", device->ordinal, device->name);
  ws_gemm_args args = args_of(p);
  args.grid.n_batch = p->batch_count;
  const double blocks = (double)p->m * (double)p->n * (double)p->batch_count / N_THREADS + 1;
  const double most = (double)device->n_sms * BLOCKS_PER_SM;
  return launch(h, kernel, (int64_t)(blocks < most ? blocks : most), N_THREADS, 0, stream, &args);
}

static wsgemm_status launch_product(wsgemm_handle *h, const ws_problem *p, ws_device *device, CUstream stream) {
  gpu_plan plan;
  wsgemm_status status = make_plan(h, p, device, &plan);
  if (status) return status;
  const ws_cuda_row *row = ws_cuda_row_at(plan.row_idx);
  ws_gemm_args args = args_of(p);
  args.grid = plan.grid;
  args.sched.n_items = (uint32_t)plan.n_items;
  if (plan.sched == WS_SCHED_QUEUE) {
    CUstreamCaptureStatus capturing;
    const CUresult result = ws_cuda.cuStreamIsCapturing(stream, &capturing);
    if (result != CUDA_SUCCESS) return fail_cuda(h, "stream", result);
    args.sched.quantum = (uint32_t)atomic_load_explicit(&h->quantum, memory_order_relaxed);
    args.sched.queue = ws_device_queue(device, stream, capturing != CU_STREAM_CAPTURE_STATUS_NONE);
    if (!args.sched.queue) { /* all queues are taken: the same items in the same way, unstolen */
      plan.sched = WS_SCHED_STATIC;
      plan.kernel = ws_device_kernel_get(device, plan.row_idx, plan.sched);
      if (!plan.kernel) return ws_fail(h, WSGEMM_INTERNAL_ERROR, "kernel %s has no static form", row->name);
    }
  }
  const int64_t n_resident = (int64_t)plan.kernel->blocks_per_sm * device->n_sms;
  const int64_t n_blocks = ws_sched_grid(plan.sched, plan.n_items, n_resident, args.sched.quantum, plan.fixed_work);
  return launch(h, plan.kernel->kernel, n_blocks, row->n_threads, row->shared_bytes, stream, &args);
}

wsgemm_status ws_cuda_gemm(wsgemm_handle *h, const ws_problem *p, int device_ordinal) {
  wsgemm_status status;
  ws_device *device = ws_device_get(h, device_ordinal, &status);
  if (!device) return status;
  CUcontext current = NULL;
  CUdevice current_device = -1;
  if (ws_cuda.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current) ws_cuda.cuCtxGetDevice(&current_device);
  const bool pushes = current_device != device->ordinal;
  CUresult result = pushes ? ws_cuda.cuCtxPushCurrent(device->context) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return fail_cuda(h, "context", result);
  CUstream stream = (CUstream)atomic_load_explicit(&h->stream, memory_order_relaxed);
  if (!ws_product_is_zero(p))
    status = launch_product(h, p, device, stream);
  else if (!p->scale.beta_one)
    status = launch_scale(h, p, device, stream);
  if (pushes) ws_cuda.cuCtxPopCurrent(&current);
  return status;
}

/* ---- words ------------------------------------------------------------------------------------------------------------------- */

void ws_cuda_explain(wsgemm_handle *h, const ws_problem *p, int device_ordinal, ws_text *t) {
  wsgemm_status status;
  ws_device *device = ws_device_get(h, device_ordinal, &status);
  gpu_plan plan;
  CUcontext popped;
  if (device && ws_cuda.cuCtxPushCurrent(device->context) == CUDA_SUCCESS) {
    status = make_plan(h, p, device, &plan);
    ws_cuda.cuCtxPopCurrent(&popped);
  } else if (device) {
    status = ws_fail(h, WSGEMM_DEVICE_ERROR, "the context of device %d cannot be used", device_ordinal);
  }
  if (status) {
    ws_text_add(t, "error: %s\n", wsgemm_last_error());
    return;
  }
  static const char *const scheds[WS_N_SCHEDS] = {"static", "queue", "clc", "foreach"};
  const ws_cuda_row *row = ws_cuda_row_at(plan.row_idx);
  ws_text_add(t, "device: %d %s\nkernel: %s\ntile: %dx%d\ncoarse_factor: %d\nscheduler: %s\nitems: %lld\nblocks_per_sm: %d\n",
              device->ordinal, device->name, row->name, row->bm, row->bn, row->coarse, scheds[plan.sched],
              (long long)plan.n_items, plan.kernel->blocks_per_sm);
  ws_text_add(t, "arithmetic: IEEE multiply-add in the data's own type\n");
}

void ws_cuda_describe(ws_text *t) {
  if (!ws_cuda.is_loaded)
    ws_text_add(t, "gpu: no driver\n");
  else if (ws_cuda.missing)
    ws_text_add(t, "gpu: the driver is too old: it has no %s\n", ws_cuda.missing);
  else
    ws_text_add(t, "gpu: driver found; used for device memory\n");
}
