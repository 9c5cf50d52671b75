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

#include "core/environment.h"
#include "core/processors.h"
#include "core/status.h"
#include "core/tile.h"
#include "cuda/host/locate.h"
#include "cuda/host/offload_device.h"
#include "cuda/host/offload_model.h"
#include "cuda/host/products.h"

/* ---- which products -------------------------------------------------------------------------- */

static _Atomic bool has_none; /* the driver says that there is no device, or is too old */

/* The first and last element of a matrix: memory may be registered in part. */
static bool is_pinned(const ws_offload_matrix *x) {
  if (!x->host) return false;
  const int64_t last = (x->n_products - 1) * x->stride + (x->n_cols - 1) * x->ld + x->n_rows - 1;
  const ws_location a = ws_locate(x->host), b = ws_locate(x->host + last * x->bytes);
  return (a.is_pinned || a.is_managed) && (b.is_pinned || b.is_managed);
}

/* As one cell, which lies on the device as a whole. */
static void plan_of(const ws_problem *p, const ws_system *system, ws_offload_plan *plan) {
  static const bool pageable[WS_N_OFFLOADED];
  bool pinned[WS_N_OFFLOADED];
  ws_offload_plan_make(p, system, pageable, plan);
  for (int i = 0; i < WS_N_OFFLOADED; i++) pinned[i] = is_pinned(&plan->matrix[i]);
  ws_offload_plan_make(p, system, pinned, plan);
  ws_offload_plan_cut(plan, 1, 1, SIZE_MAX);
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
  if (p->has_packed || ws_is_empty(p) || ws_product_is_zero(p)) return false;
  if ((double)p->m * (double)p->n * (double)p->k * (double)p->batch_count < least_work) return false;
  if (ws_cuda.missing || ws_driver_is_lost() || atomic_load_explicit(&has_none, memory_order_relaxed)) return false;
  ws_offload_plan plan;
  plan_of(p, NULL, &plan);
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

/* Those that can work, the first ones of the table; *n: how many. What is one cell needs no more than one. room: of
 * each of them, and more. */
static void open_devices(ws_offload_job *job, ws_device_set devices, int *n, size_t *room) {
  *n = 0, *room = SIZE_MAX;
  for (int ordinal = 0; ordinal < WS_MAX_DEVICES && !(job->plan.is_whole && *n == 1); ordinal++) {
    if (!(devices >> ordinal & 1)) continue;
    ws_offload_device *d = &job->device[*n];
    size_t bytes = 0;
    memset(d, 0, sizeof *d);
    d->idx = *n;
    const bool is_open = ws_offload_device_open(d, job, ordinal, &bytes);
    if (is_open && (*n == 0 || is_like(d->executor[0].device, job->device[0].executor[0].device))) {
      if (bytes < *room) *room = bytes;
      (*n)++;
      continue;
    }
    if (!is_open)
      warn(job, d);
    else
      ws_fail(job->call->h, WSGEMM_NOT_SUPPORTED, "warning: device %d is not used, as it is not like device %d", ordinal,
              job->device[0].ordinal);
    ws_offload_device_wait(d);
    ws_offload_device_close(d);
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

static void report(ws_offload_job *job) {
  const double n_cells = (double)job->plan.n_strips * job->plan.n_panels;
  if (!job->progress.report || atomic_load(&job->is_stopped)) return;
  if (job->progress.report(job->progress.user, atomic_load(&job->n_cells_out) / n_cells)) atomic_store(&job->is_stopped, true);
}

static void work(void *context, int worker) {
  ws_offload_job *job = context;
  const struct timespec nap = {.tv_nsec = 20000};
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED; /* nothing here is a capture's of another thread */
  const bool is_relaxed = ws_cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
  const int64_t often = 100000000; /* a tenth of a second, so that a long part may be stopped */
  int64_t next = 0;
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
    const bool is_time = ws_offload_nanoseconds() > next;
    if (worker == 0 && (n_out != reported || is_time)) {
      report(job), reported = n_out;
      next = ws_offload_nanoseconds() + often;
    }
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

static wsgemm_status all_on_cpu(const ws_offload_job *job) {
  const ws_backend *cpu = ws_backends[WS_CPU];
  return job->system ? cpu->solve(job->call, job->system, 0) : cpu->gemm(job->call, job->plan.p, 0);
}

static wsgemm_status on_cpu(const ws_offload_job *job, const ws_block *c) {
  const ws_problem part = ws_offload_part(&job->plan, c, NULL);
  return ws_backends[WS_CPU]->gemm(job->call, &part, 0);
}

typedef struct transfer_count {
  int n, n_done, n_unknown;
} transfer_count;

static transfer_count count_cell(const ws_offload_job *job, int strip, int panel) {
  transfer_count count = {.n = ws_offload_n_out(&job->plan, strip, panel)};
  for (int transfer = 0; transfer < count.n; transfer++) {
    const unsigned char state = atomic_load(ws_transfer_state_of(job, &(ws_transfer_of_c){strip, panel, transfer}));
    count.n_done += state == WS_TRANSFER_DONE, count.n_unknown += state == WS_TRANSFER_WRITTEN;
  }
  return count;
}

static wsgemm_status finish_cell(const ws_offload_job *job, int strip, int panel) {
  const transfer_count count = count_cell(job, strip, panel);
  const ws_block cell = ws_offload_cell(&job->plan, strip, panel);
  if (count.n_done == 0) return on_cpu(job, &cell);
  wsgemm_status status = WSGEMM_SUCCESS;
  for (int transfer = 0; transfer < count.n && !status; transfer++) {
    const ws_transfer_of_c at = {strip, panel, transfer};
    const ws_block block = ws_offload_transfer(&job->plan.matrix[WS_OF_C], &cell, transfer);
    if (atomic_load(ws_transfer_state_of(job, &at)) != WS_TRANSFER_DONE) status = on_cpu(job, &block);
  }
  return status;
}

static transfer_count count_all(const ws_offload_job *job) {
  transfer_count all = {0, 0, 0};
  for (int strip = 0; strip < job->plan.n_strips; strip++)
    for (int panel = 0; panel < job->plan.n_panels; panel++) {
      const transfer_count count = count_cell(job, strip, panel);
      all.n += count.n, all.n_done += count.n_done, all.n_unknown += count.n_unknown;
    }
  return all;
}

/* Where the driver was to write to C itself, and has failed, C is lost if its old elements are needed; so it is where it is one cell, and
 * partly stored. */
static wsgemm_status finish(const ws_offload_job *job) {
  const ws_offload_plan *plan = &job->plan;
  const transfer_count all = count_all(job);
  wsgemm_status status = WSGEMM_SUCCESS;
  if (all.n_done == all.n) return status;
  if (atomic_load(&job->is_stopped))
    return ws_fail(job->call->h, WSGEMM_STOPPED, "the progress function stopped the call when %d of %d parts of c were written",
                   all.n_done, all.n);
  const int n_lost = all.n_unknown + (plan->is_whole ? all.n_done : 0);
  if (n_lost > 0 && plan->reads_c)
    return ws_fail(job->call->h, WSGEMM_DEVICE_ERROR, "a device failed while c was written, which is partly written");
  if (all.n_done == 0 || plan->is_whole) return all_on_cpu(job);
  for (int strip = 0; strip < plan->n_strips && !status; strip++)
    for (int panel = 0; panel < plan->n_panels && !status; panel++) {
      const transfer_count count = count_cell(job, strip, panel);
      if (count.n_done < count.n) status = finish_cell(job, strip, panel);
    }
  return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

static int parts_of(const ws_offload_job *job) {
  const ws_gemm_plan *plan = &job->device[0].plan;
  if (job->plan.is_whole || !ws_has_parts(plan)) return 1;
  return plan->n_slices > 0 ? WS_PARTS_OF_SLICES : WS_MOST_PANELS;
}

/* All read each other's memory, or none does. Each begins with other panels, which the others have from it later. */
static void connect(ws_offload_job *job) {
  const int n = job->n_devices;
  job->has_peers = n > 1 && job->plan.panel_places == job->plan.n_panels && job->plan.n_panels > 1;
  for (int i = 0; i < n && job->has_peers; i++)
    for (int j = 0; j < n && job->has_peers; j++)
      if (i != j) job->has_peers = ws_offload_device_connect(&job->device[i], &job->device[j]);
  for (int i = 0; i < n && job->has_peers; i++) job->device[i].first_panel = i * job->plan.n_panels / n;
}

static bool prepare_in(ws_offload_job *job, size_t room) {
  if (!ws_offload_plan_cut(&job->plan, parts_of(job), job->n_devices, room)) {
    ws_fail(job->call->h, WSGEMM_ALLOC_FAILED, "warning: host matrices stay on the CPU: device %d has room for %zu bytes of them",
            job->device[0].ordinal, room);
    return false;
  }
  int n_ready = 0;
  for (int i = 0; i < job->n_devices; i++) {
    job->device[i].status = WSGEMM_SUCCESS;
    n_ready += ws_offload_device_prepare(&job->device[i]);
  }
  if (n_ready == job->n_devices) connect(job);
  return n_ready > 0;
}

/* Of those that are open; one that has no room after all does nothing. What is free may have become less, or lie in
 * pieces: then with less. false: none does anything. */
static bool prepare(ws_offload_job *job, size_t room) {
  enum { MOST_ATTEMPTS = 4 };
  bool is_ready = prepare_in(job, room);
  for (int i = 1; i < MOST_ATTEMPTS && !is_ready && job->device[0].status == WSGEMM_ALLOC_FAILED; i++) {
    if (room > job->plan.device_bytes) room = job->plan.device_bytes;
    room -= room / MOST_ATTEMPTS;
    is_ready = prepare_in(job, room);
  }
  const size_t n_cells = (size_t)job->plan.n_strips * (size_t)job->plan.n_panels;
  if (is_ready) job->owner = calloc((size_t)job->plan.n_strips, sizeof *job->owner);
  if (job->owner) job->state = calloc(n_cells * (size_t)job->plan.most_transfers, sizeof *job->state);
  return job->state != NULL;
}

static wsgemm_status run_job(ws_offload_job *job, ws_device_set devices) {
  int n_open;
  size_t room;
  job->n_devices = job->plan.is_whole ? 1 : count(devices);
  open_devices(job, devices, &n_open, &room);
  job->n_devices = n_open;
  const bool is_ready = n_open > 0 && prepare(job, room);
  if (is_ready) run(job);
  for (int i = 0; i < n_open; i++) ws_offload_device_wait(&job->device[i]);
  for (int i = 0; i < n_open; i++) {
    ws_offload_device *d = &job->device[i];
    ws_offload_device_close(d);
    if (d->status) warn(job, d);
  }
  const wsgemm_status status = is_ready ? finish(job) : all_on_cpu(job);
  free(job->state);
  free(job->owner);
  return status;
}

/* In a child of fork() nobody comes here (ws_offload_takes). */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static wsgemm_status run_alone(ws_offload_job *job, ws_device_set devices) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  const bool is_relaxed = ws_cuda.cuThreadExchangeStreamCaptureMode(&mode) == CUDA_SUCCESS;
  pthread_mutex_lock(&one_at_a_time);
  const wsgemm_status status = run_job(job, devices);
  pthread_mutex_unlock(&one_at_a_time);
  if (is_relaxed) ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return status;
}

/* A product, or a system, whose matrices are p's. */
static wsgemm_status run_on_devices(const ws_call *call, const ws_problem *p, const ws_system *system) {
  ws_device_set devices;
  const bool has_devices = find_devices(call, &devices) == WSGEMM_SUCCESS;
  ws_offload_job *job = has_devices ? calloc(1, sizeof *job) : NULL;
  if (job) job->device = calloc((size_t)count(devices), sizeof *job->device);
  if (!job || !job->device) {
    free(job);
    const ws_backend *cpu = ws_backends[WS_CPU];
    return system ? cpu->solve(call, system, 0) : cpu->gemm(call, p, 0);
  }
  job->call = call, job->quiet_call = *call, job->quiet_call.h = &job->quiet, job->system = system;
  job->progress = ws_progress_get(call->h);
  plan_of(p, system, &job->plan);
  const wsgemm_status status = run_alone(job, devices);
  free(job->device);
  free(job);
  return status;
}

static wsgemm_status run_gemm(const ws_call *call, const ws_problem *p, int device) {
  (void)device;
  return run_on_devices(call, p, NULL);
}

static ws_problem product_like(const ws_system *s) {
  ws_problem p = {.m = s->m, .n = s->n, .k = s->is_right ? s->n : s->m, .batch_count = s->batch_count, .scale = s->scale};
  p.a = s->is_right ? s->b : s->a, p.b = s->is_right ? s->a : s->b, p.c = s->x, p.math = s->math;
  return p;
}

static wsgemm_status run_solve(const ws_call *call, const ws_system *s, int device) {
  (void)device;
  const ws_problem p = product_like(s);
  return run_on_devices(call, &p, s);
}

/* ---- words ----------------------------------------------------------------------------------- */

static void explain_devices(const ws_call *call, ws_text *t) {
  ws_text_add(t, call->devices == WS_ALL_DEVICES ? "devices: all" : "devices:");
  for (int ordinal = 0; ordinal < WS_MAX_DEVICES && call->devices != WS_ALL_DEVICES; ordinal++)
    if (call->devices >> ordinal & 1) ws_text_add(t, " %d", ordinal);
  ws_text_add(t, "\n");
}

static void explain_cut(const ws_offload_plan *plan, ws_text *t) {
  if (plan->is_whole)
    ws_text_add(t, "strips: 1, C as a whole\n");
  else
    ws_text_add(t, "strips: %d of %lld %s of C, in %d panels of %lld\n", plan->n_strips, (long long)plan->strip,
                plan->along_n ? "columns" : "rows", plan->n_panels, (long long)plan->panel);
  if (plan->strip_places < plan->n_strips || plan->panel_places < plan->n_panels)
    ws_text_add(t, "places: %d strips, %d panels on a device\n", plan->strip_places, plan->panel_places);
  ws_text_add(t, "device_bytes: %zu\npinned:", plan->device_bytes);
  for (int i = 0; i <= WS_OF_C; i++)
    if (plan->matrix[i].is_pinned) ws_text_add(t, " %c", 'a' + i);
  ws_text_add(t, "\n");
}

/* As the call would, where the devices have as much room as has been said, or enough. */
static void explain_plan(const ws_call *call, const ws_problem *p, const ws_system *system, ws_text *t) {
  const size_t limit = ws_environment_get()->offload_bytes;
  const bool may_be_sliced = p->a.type == WSGEMM_F32 || p->a.type == WSGEMM_C32;
  const int n_devices = n_sites_of(call->devices), n_threads = ws_thread_limit(call);
  ws_offload_plan plan;
  plan_of(p, system, &plan);
  const int n_parts = plan.is_whole ? 1 : may_be_sliced ? WS_PARTS_OF_SLICES : WS_MOST_PANELS;
  const bool has_room = ws_offload_plan_cut(&plan, n_parts, n_devices, limit > 0 ? limit : SIZE_MAX);
  const ws_offload_times times = ws_offload_model(&plan, n_devices, n_threads);
  const ws_offload_rates rates = ws_offload_rates_get();
  explain_devices(call, t);
  explain_cut(&plan, t);
  if (!has_room) ws_text_add(t, "room: none for them; the CPU computes the product\n");
  ws_text_add(t, "threads: %d\nlink_gb_per_s: %.3g in, %.3g out (%s)\n", plan.is_staged ? n_threads : 1, 1e-9 * rates.in,
              1e-9 * rates.out, rates.is_measured ? "measured" : "assumed");
  ws_text_add(t, "expected_ms: %.3g (link %.3g, staging %.3g, kernels %.3g; CPU %.3g)\n", 1e3 * times.all, 1e3 * times.link,
              1e3 * times.staging, 1e3 * times.device, 1e3 * times.cpu);
}

static void explain(const ws_call *call, const ws_problem *p, int device, ws_text *t) {
  (void)device;
  explain_plan(call, p, NULL, t);
}

static void explain_solve(const ws_call *call, const ws_system *s, int device, ws_text *t) {
  (void)device;
  const ws_problem p = product_like(s);
  explain_plan(call, &p, s, t);
}

const ws_backend ws_offload_backend = {
    .name = "offload", .gemm = run_gemm, .explain = explain, .solve = run_solve, .explain_solve = explain_solve};
