/* offload_device.c - see offload_device.h: opens a device for a job, and closes it. */
#include "cuda/host/offload_device.h"

#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "cuda/host/offload_model.h"

static bool fail(ws_offload_device *d, wsgemm_status status) {
  d->status = status;
  snprintf(d->words, sizeof d->words, "%.199s", wsgemm_last_error());
  return false;
}

static bool fail_cuda(ws_offload_device *d, const char *what, CUresult result) {
  return fail(d, ws_fail_cuda(&d->job->quiet, what, result));
}

/* ---- open ------------------------------------------------------------------------------------ */

static bool open_site(ws_offload_device *d) {
  const int n_slots = d->job->plan.is_staged ? ws_site_slots(d->job->n_devices) : 0;
  const CUresult result = ws_site_open(d->executor[0].device, n_slots, &d->site);
  if (result) return fail_cuda(d, "streams and pinned memory", result);
  for (; d->n_free < d->site->n_slots && d->n_free < n_slots; d->n_free++) d->free_slot[d->n_free] = d->n_free;
  for (int i = 0; i < WS_N_WORK_STREAMS; i++) d->executor[i].stream = d->executor[i].loan.stream = d->site->work[i];
  return true;
}

/* As if the matrices lay there as a whole: all that matters of an address is that it is aligned. */
static bool open_plan(ws_offload_device *d) {
  static const uintptr_t somewhere = 1 << 20;
  const ws_problem *p = d->job->plan.p;
  const ws_block all = {0, 0, p->m, p->n, 0};
  if (d->job->plan.is_whole) return true;
  d->whole = ws_offload_part(&d->job->plan, &all, (const char *)somewhere);
  wsgemm_status status =
      ws_gemm_plan_make(&d->job->quiet_call, &d->whole, d->executor[0].device, &d->executor[0].workspace, true, &d->plan);
  if (!status && d->plan.need.whole > 0)
    status = ws_executor_copies(&d->executor[0], &d->plan.need, &d->copies, &d->copies_bytes);
  if (!status && !d->copies) d->n_work_streams = WS_N_WORK_STREAMS; /* else all use the same memory, one after the other */
  return status ? fail(d, status) : true;
}

static bool find_room(ws_offload_device *d, size_t *room) {
  const CUresult result = ws_site_room(d->site, room);
  return result ? fail_cuda(d, "free memory", result) : true;
}

bool ws_offload_device_open(ws_offload_device *d, ws_offload_job *job, int ordinal, size_t *room) {
  wsgemm_status status;
  bool is_pushed;
  d->job = job, d->ordinal = ordinal;
  pthread_mutex_init(&d->lock, NULL);
  ws_device *const device = ws_device_enter(&job->quiet, ordinal, NULL, &is_pushed, &status);
  for (int i = 0; i < WS_N_WORK_STREAMS; i++) d->executor[i] = (ws_executor){.call = &job->quiet_call, .device = device};
  d->n_work_streams = 1;
  if (!device) return fail(d, status);
  const CUresult result = ws_cuda.cuCtxGetCurrent(&d->context);
  const bool is_open = result ? fail_cuda(d, "context", result) : open_site(d) && open_plan(d) && find_room(d, room);
  ws_device_leave(is_pushed);
  return is_open;
}

bool ws_offload_device_prepare(ws_offload_device *d) {
  CUresult result = ws_cuda.cuCtxPushCurrent(d->context);
  if (result) return fail_cuda(d, "context", result);
  result = ws_site_memory(d->site, d->job->plan.device_bytes);
  if (!result) ws_offload_measure(d->site);
  ws_device_leave(true);
  return result ? fail_cuda(d, "memory for matrices", result) : true;
}

bool ws_offload_device_connect(ws_offload_device *d, const ws_offload_device *peer) {
  int can = 0;
  CUresult result = ws_cuda.cuDeviceCanAccessPeer(&can, d->ordinal, peer->ordinal);
  if (result || !can || ws_cuda.cuCtxPushCurrent(d->context)) return false;
  result = ws_cuda.cuCtxEnablePeerAccess(peer->context, 0);
  ws_device_leave(true);
  return result == CUDA_SUCCESS || result == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

/* ---- close ----------------------------------------------------------------------------------- */

/* The driver has written what it was to write. */
static void confirm(const ws_offload_device *d) {
  const ws_offload_plan *plan = &d->job->plan;
  for (int strip = 0; strip < plan->n_strips; strip++)
    for (int panel = 0; panel < plan->n_panels && d->job->owner[strip] == d->idx + 1; panel++)
      for (int transfer = 0; transfer < plan->most_transfers; transfer++) {
        _Atomic unsigned char *state = ws_transfer_state_of(d->job, &(ws_transfer_of_c){strip, panel, transfer});
        if (atomic_load(state) == WS_TRANSFER_WRITTEN) atomic_store(state, WS_TRANSFER_DONE);
      }
}

static void wait_for(CUstream stream, CUresult *first) {
  const CUresult result = ws_cuda.cuStreamSynchronize(stream);
  if (!*first) *first = result;
}

/* All streams, whatever the first ones say: nothing may be written to C afterwards. */
static CUresult wait_for_all(const ws_offload_site *s) {
  CUresult first = CUDA_SUCCESS;
  wait_for(s->in, &first);
  for (int i = 0; i < WS_N_WORK_STREAMS; i++) wait_for(s->work[i], &first);
  wait_for(s->out, &first);
  return first;
}

void ws_offload_device_wait(ws_offload_device *d) {
  if (!d->context || !d->site || !d->site->is_open) return;
  CUresult result = ws_cuda.cuCtxPushCurrent(d->context);
  const bool is_pushed = result == CUDA_SUCCESS;
  if (is_pushed) result = wait_for_all(d->site);
  ws_device_leave(is_pushed);
  d->is_waited_for = result == CUDA_SUCCESS;
  if (result && !d->status) fail_cuda(d, "end", result);
}

void ws_offload_device_close(ws_offload_device *d) {
  pthread_mutex_destroy(&d->lock);
  if (!d->executor[0].device || !d->context) return;
  if (d->is_waited_for && d->job->state) confirm(d);
  CUresult result = ws_cuda.cuCtxPushCurrent(d->context);
  const bool is_pushed = result == CUDA_SUCCESS;
  if (is_pushed && d->site && d->site->is_open) {
    for (int i = 0; i < WS_N_WORK_STREAMS; i++) {
      const CUresult ended = ws_lending_end(d->executor[i].device, &d->executor[i].loan);
      if (!result) result = ended;
    }
    ws_site_close(d->site);
  }
  ws_device_leave(is_pushed);
  if (result && !d->status) fail_cuda(d, "end", result);
}
