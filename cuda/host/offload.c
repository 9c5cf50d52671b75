/* offload.c - host matrices on GPUs: which products, on which devices, and what becomes of C where a
 * device fails. One product at a time is on its way, as it has the links and the memory to itself;
 * others wait for it.
 *
 * The row is chosen once, for the whole product as it lies in device memory, and k is never split
 * by where C is cut: so C has the bits of the product in device memory, whatever the devices,
 * strips and threads. That is why devices that are not alike do not work on one product. */
#define _GNU_SOURCE
#include "cuda/host/offload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/processors.h"
#include "core/status.h"
#include "core/tile.h"
#include "cuda/host/locate.h"
#include "cuda/host/offload_device.h"
#include "cuda/host/products.h"

/* ---- which products -------------------------------------------------------------------------- */

static _Atomic bool has_none; /* the driver says that there is no device, or is too old */

/* The first and last element of a matrix: memory may be registered in part. */
static bool is_pinned(const ws_offload_matrix *x) {
  const char *last = x->host + ((x->n_cols - 1) * x->ld + x->n_rows - 1) * x->bytes;
  const ws_location a = ws_locate(x->host), b = ws_locate(last);
  return (a.is_pinned || a.is_managed) && (b.is_pinned || b.is_managed);
}

static void plan_of(const ws_problem *p, ws_offload_plan *plan) {
  static const bool pageable[WS_N_OFFLOADED];
  bool pinned[WS_N_OFFLOADED];
  ws_offload_plan_make(p, pageable, plan);
  for (int i = 0; i < WS_N_OFFLOADED; i++) pinned[i] = is_pinned(&plan->matrix[i]);
  ws_offload_plan_make(p, pinned, plan);
}

static int count(ws_device_set devices) {
  int n = 0;
  for (; devices; devices &= devices - 1) n++;
  return n;
}

/* All: as many as one, as long as nobody has asked the driver. */
static int n_sites_of(ws_device_set devices) { return devices == WS_ALL_DEVICES ? 1 : count(devices); }

bool ws_offload_takes(const ws_call *call, const ws_problem *p) {
  const double least_work = 1 << 24, margin = 1.25;
  if (!ws_is_plain(p) || p->batch_count != 1 || p->has_epilogue || p->has_packed) return false;
  if (ws_is_empty(p) || ws_product_is_zero(p) || (double)p->m * (double)p->n * (double)p->k < least_work) return false;
  if (ws_cuda.missing || ws_driver_is_lost() || atomic_load_explicit(&has_none, memory_order_relaxed)) return false;
  ws_offload_plan plan;
  plan_of(p, &plan);
  if (plan.is_staged && ws_site_slots(n_sites_of(call->devices)) < WS_LEAST_SLOTS) return false;
  if (call->settings.offload == WSGEMM_OFFLOAD_ALWAYS) return true;
  const ws_offload_times t = ws_offload_model(&plan, n_sites_of(call->devices), ws_thread_limit(call));
  return t.all * margin < t.cpu;
}

/* ---- devices --------------------------------------------------------------------------------- */

/* In words; where it will always be so no call asks again. */
static wsgemm_status say_none(const ws_call *call, const char *missing, CUresult result) {
  atomic_store(&has_none, missing || result == CUDA_ERROR_NO_DEVICE || result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
  if (!missing) return ws_fail_cuda(call->h, "warning: host matrices stay on the CPU", result);
  return ws_fail(call->h, WSGEMM_INSUFFICIENT_DRIVER, "warning: host matrices stay on the CPU: the driver has no %s", missing);
}

/* Those of the set that there are. */
static wsgemm_status find_devices(const ws_call *call, ws_device_set *devices) {
  int n = 0;
  const char *missing = ws_driver_load_offload();
  if (missing) return say_none(call, missing, CUDA_SUCCESS);
  CUresult result = ws_cuda.cuInit(0);
  if (!result) result = ws_cuda.cuDeviceGetCount(&n);
  if (!result) ws_driver_note_use();
  if (!result && n == 0) result = CUDA_ERROR_NO_DEVICE;
  if (result) return say_none(call, NULL, result);
  const ws_device_set there = n >= WS_MAX_DEVICES ? WS_ALL_DEVICES : ((ws_device_set)1 << n) - 1;
  *devices = call->devices & there;
  if (!*devices)
    return ws_fail(call->h, WSGEMM_NO_DEVICE, "warning: host matrices stay on the CPU: there are devices 0 .. %d only", n - 1);
  if (call->devices != WS_ALL_DEVICES && (call->devices & ~there))
    ws_fail(call->h, WSGEMM_NO_DEVICE, "warning: of the devices for host matrices only 0 .. %d are there", n - 1);
  return WSGEMM_SUCCESS;
}

/* Rows and how sums are split depend on these; not on the name, as tuning never changes bits. */
static bool is_like(const ws_device *x, const ws_device *y) { return x->cc == y->cc && x->n_sms == y->n_sms; }

static void warn(const ws_offload_job *job, const ws_offload_device *d) {
  ws_fail(job->call->h, d->status, "warning: device %d: %.150s; others did its work", d->ordinal, d->words);
}

/* Those that can work, the first ones of the table; *n: how many. */
static void open_devices(ws_offload_job *job, ws_device_set devices, int *n) {
  *n = 0;
  for (int ordinal = 0; ordinal < WS_MAX_DEVICES; ordinal++) {
    if (!(devices >> ordinal & 1)) continue;
    ws_offload_device *d = &job->device[*n];
    memset(d, 0, sizeof *d);
    const bool is_open = ws_offload_device_open(d, job, ordinal);
    if (is_open && (*n == 0 || is_like(d->executor.device, job->device[0].executor.device))) {
      (*n)++;
      continue;
    }
    if (!is_open)
      warn(job, d);
    else
      ws_fail(job->call->h, WSGEMM_NOT_SUPPORTED, "warning: device %d is not used, as it is not like device %d", ordinal,
              job->device[0].ordinal);
    ws_offload_device_close(d);
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

static void report(const ws_offload_job *job) {
  const double n_cells = (double)job->plan.n_strips * job->plan.n_panels;
  if (job->progress.report) job->progress.report(job->progress.user, atomic_load(&job->n_cells_out) / n_cells);
}

static void work(void *context, int worker) {
  ws_offload_job *job = context;
  const struct timespec nap = {.tv_nsec = 20000};
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* nothing here is a capture's of another thread */
  const bool is_relaxed = ws_cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
  int n_over = 0, reported = -1;
  for (unsigned first = (unsigned)worker; n_over < job->n_devices; first++) {
    bool is_any = false;
    n_over = 0;
    for (int i = 0; i < job->n_devices; i++) {
      const ws_step step = ws_offload_step(&job->device[(first + (unsigned)i) % (unsigned)job->n_devices]);
      is_any |= step == WS_STEP_DONE, n_over += step == WS_STEP_OVER;
      if (is_any) break;
    }
    const int n_out = atomic_load(&job->n_cells_out);
    if (worker == 0 && n_out != reported) report(job), reported = n_out;
    if (!is_any && n_over < job->n_devices) nanosleep(&nap, NULL);
  }
  if (is_relaxed) ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
}

static void run(ws_offload_job *job) {
  const ws_call *call = job->call;
  const int n_threads = ws_thread_limit(call);
  const int n_workers = job->plan.is_staged ? n_threads : (int)ws_min(n_threads, job->n_devices);
  ws_backends[WS_CPU]->together(n_workers, work, job);
}

/* ---- what devices have left ------------------------------------------------------------------ */

static wsgemm_status on_cpu(const ws_offload_job *job, const ws_block *c) {
  const ws_problem part = ws_offload_part(&job->plan, c, NULL);
  return ws_backends[WS_CPU]->gemm(job->call, &part, 0);
}

typedef struct transfer_count {
  int n, n_done, n_unknown;
} transfer_count;

static transfer_count count_cell(const ws_offload_job *job, int strip, int panel) {
  const ws_block cell = ws_offload_cells(&job->plan, strip, 1, panel, 1);
  transfer_count count = {.n = ws_offload_n_transfers(&job->plan.matrix[WS_OF_C], &cell)};
  for (int transfer = 0; transfer < count.n; transfer++) {
    const unsigned char state = atomic_load(ws_transfer_state_of(job, &(ws_transfer_of_c){strip, panel, transfer}));
    count.n_done += state == WS_TRANSFER_DONE, count.n_unknown += state == WS_TRANSFER_WRITTEN;
  }
  return count;
}

static wsgemm_status finish_cell(const ws_offload_job *job, int strip, int panel) {
  const transfer_count count = count_cell(job, strip, panel);
  const ws_block cell = ws_offload_cells(&job->plan, strip, 1, panel, 1);
  if (count.n_done == 0) return on_cpu(job, &cell);
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int transfer = 0; transfer < count.n && !status; transfer++) {
    const ws_transfer_of_c at = {strip, panel, transfer};
    const ws_block block = ws_offload_transfer(&job->plan.matrix[WS_OF_C], &cell, transfer);
    if (atomic_load(ws_transfer_state_of(job, &at)) != WS_TRANSFER_DONE) status = on_cpu(job, &block);
  }
  return status;
}

/* Where the driver was to write to C itself, and has failed, C is lost if its old elements are
 * needed. */
static wsgemm_status finish(const ws_offload_job *job) {
  const ws_offload_plan *plan = &job->plan;
  int n_unknown = 0, n_done = 0;
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int strip = 0; strip < plan->n_strips; strip++)
    for (int panel = 0; panel < plan->n_panels; panel++) {
      const transfer_count count = count_cell(job, strip, panel);
      n_unknown += count.n_unknown, n_done += count.n_done;
    }
  if (n_unknown > 0 && !plan->p->scale.beta_zero)
    return ws_fail(job->call->h, WSGEMM_DEVICE_ERROR, "a device failed while it wrote to c, which is partly written");
  if (n_done == 0) return ws_backends[WS_CPU]->gemm(job->call, plan->p, 0);
  for (int strip = 0; strip < plan->n_strips && !status; strip++)
    for (int panel = 0; panel < plan->n_panels && !status; panel++) {
      const transfer_count count = count_cell(job, strip, panel);
      if (count.n_done < count.n) status = finish_cell(job, strip, panel);
    }
  return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

static wsgemm_status run_job(ws_offload_job *job, ws_device_set devices) {
  int n_open;
  job->n_devices = count(devices);
  open_devices(job, devices, &n_open);
  job->n_devices = n_open;
  if (n_open > 0) {
    const ws_gemm_plan *plan = &job->device[0].plan;
    ws_offload_plan_cut(&job->plan, !ws_has_parts(plan) ? 1 : plan->n_slices > 0 ? WS_PARTS_OF_SLICES : WS_MOST_PANELS, n_open);
    const size_t n_transfers = (size_t)job->plan.n_strips * (size_t)job->plan.n_panels * (size_t)job->plan.most_transfers;
    job->state = calloc(n_transfers, sizeof *job->state);
    if (job->state) run(job);
  }
  for (int i = 0; i < n_open; i++) {
    ws_offload_device *d = &job->device[i];
    ws_offload_device_close(d);
    if (d->status) warn(job, d);
  }
  const wsgemm_status status = job->state ? finish(job) : ws_backends[WS_CPU]->gemm(job->call, job->plan.p, 0);
  free(job->state);
  return status;
}

/* In a child of fork() nobody comes here (ws_offload_takes). */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static wsgemm_status run_gemm(const ws_call *call, const ws_problem *p, int device) {
  (void)device;
  ws_device_set devices;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (find_devices(call, &devices)) return ws_backends[WS_CPU]->gemm(call, p, 0);
  ws_offload_job *job = calloc(1, sizeof *job);
  if (job) job->device = calloc((size_t)count(devices), sizeof *job->device);
  if (!job || !job->device) {
    free(job);
    return ws_backends[WS_CPU]->gemm(call, p, 0);
  }
  job->call = call, job->quiet_call = *call, job->quiet_call.h = &job->quiet;
  job->progress = ws_progress_get(call->h);
  plan_of(p, &job->plan);
  const bool is_relaxed = ws_cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
  pthread_mutex_lock(&one_at_a_time);
  const wsgemm_status status = run_job(job, devices);
  pthread_mutex_unlock(&one_at_a_time);
  if (is_relaxed) ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  free(job->device);
  free(job);
  return status;
}

/* ---- words ----------------------------------------------------------------------------------- */

static void explain(const ws_call *call, const ws_problem *p, int device, ws_text *t) {
  (void)device;
  ws_offload_plan plan;
  plan_of(p, &plan);
  const int n_devices = n_sites_of(call->devices), n_threads = ws_thread_limit(call);
  const bool may_be_sliced = p->a.type == WSGEMM_F32 || p->a.type == WSGEMM_C32;
  ws_offload_plan_cut(&plan, may_be_sliced ? WS_PARTS_OF_SLICES : WS_MOST_PANELS, n_devices);
  const ws_offload_times times = ws_offload_model(&plan, n_devices, n_threads);
  if (call->devices == WS_ALL_DEVICES) {
    ws_text_add(t, "devices: all\n");
  } else {
    ws_text_add(t, "devices:");
    for (int ordinal = 0; ordinal < WS_MAX_DEVICES; ordinal++)
      if (call->devices >> ordinal & 1) ws_text_add(t, " %d", ordinal);
    ws_text_add(t, "\n");
  }
  ws_text_add(t, "strips: %d of %lld %s of C, in %d panels of %lld\ndevice_bytes: %zu\n", plan.n_strips, (long long)plan.strip,
              plan.along_n ? "columns" : "rows", plan.n_panels, (long long)plan.panel, plan.device_bytes);
  ws_text_add(t, "pinned:%s%s%s\nthreads: %d\n", plan.matrix[WS_OF_A].is_pinned ? " a" : "",
              plan.matrix[WS_OF_B].is_pinned ? " b" : "", plan.matrix[WS_OF_C].is_pinned ? " c" : "",
              plan.is_staged ? n_threads : 1);
  ws_text_add(t, "expected_ms: %.3g (link %.3g, staging %.3g, kernels %.3g; CPU %.3g)\n", 1e3 * times.all, 1e3 * times.link,
              1e3 * times.staging, 1e3 * times.device, 1e3 * times.cpu);
}

const ws_backend ws_offload_backend = {.name = "offload", .gemm = run_gemm, .explain = explain};
