/* offload_step.c - the steps of offload_device.h. All but copies between host memory and slots are
 * done with the device's lock held; what goes wrong ends the device's work. */
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "core/tile.h"
#include "cuda/host/offload_device.h"
#include "cuda/host/products.h"

/* A failure; true: there is one. */
static bool failed(ws_offload_device *d, const char *what, CUresult result) {
  if (result == CUDA_SUCCESS) return false;
  d->status = ws_fail_cuda(&d->job->quiet, what, result);
  snprintf(d->words, sizeof d->words, "%.199s", wsgemm_last_error());
  return true;
}

/* Whether an event has come; false also where that cannot be told. */
static bool has_come(ws_offload_device *d, CUevent event) {
  const CUresult result = ws_cuda.cuEventQuery(event);
  return result == CUDA_ERROR_NOT_READY ? false : !failed(d, "event", result);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void push(ws_slot_queue *q, int slot, const ws_transfer_of_c *transfer) {
  const int at = (q->first + q->n++) % WS_MOST_SLOTS;
  q->slot[at] = slot;
  if (transfer) q->transfer[at] = *transfer;
}

static int pop(ws_slot_queue *q, ws_transfer_of_c *transfer) {
  const int at = q->first;
  q->first = (at + 1) % WS_MOST_SLOTS, q->n--;
  if (transfer) *transfer = q->transfer[at];
  return q->slot[at];
}

static bool has_come_first(ws_offload_device *d, const ws_slot_queue *q) {
  return q->n > 0 && has_come(d, d->site->slot[q->slot[q->first]].copied);
}

/* -1: none is free. */
static int take_slot(ws_offload_device *d) {
  while (has_come_first(d, &d->sent)) d->free_slot[d->n_free++] = pop(&d->sent, NULL);
  return d->n_free > 0 && !d->status ? d->free_slot[--d->n_free] : -1;
}

/* Tells when the driver is done with the slot, which it has been handed on this stream. */
static bool hand_over(ws_offload_device *d, int slot, CUstream stream, ws_slot_queue *q, const ws_transfer_of_c *transfer) {
  if (failed(d, "event", ws_cuda.cuEventRecord(d->site->slot[slot].copied, stream))) return false;
  push(q, slot, transfer);
  return true;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static char *host_at(const ws_offload_matrix *x, const ws_block *b) { return x->host + (b->row + b->col * x->ld) * x->bytes; }

static void copy_lines(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t bytes, int64_t n_lines) {
  for (int64_t i = 0; i < n_lines; i++) memcpy(to + i * to_step, from + i * from_step, (size_t)bytes);
}

/* slot: NULL: the matrix is pinned. */
static CUDA_MEMCPY2D copy_of(const ws_offload_device *d, const ws_offload_matrix *x, const ws_block *b, char *slot, bool is_in) {
  const size_t pitch = (size_t)((slot ? b->n_rows : x->ld) * x->bytes), device_pitch = (size_t)(x->device_ld * x->bytes);
  const CUdeviceptr host = (CUdeviceptr)(uintptr_t)(slot ? slot : host_at(x, b));
  const CUdeviceptr device = d->site->memory + x->offset + (size_t)b->row * (size_t)x->bytes + (size_t)b->col * device_pitch;
  /* addresses of the one space that both have; the driver knows whose they are */
  return (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = is_in ? host : device,
                         .srcPitch = is_in ? pitch : device_pitch,
                         .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .dstDevice = is_in ? device : host,
                         .dstPitch = is_in ? device_pitch : pitch,
                         .WidthInBytes = (size_t)(b->n_rows * x->bytes),
                         .Height = (size_t)b->n_cols};
}

/* Between two holds of the lock. */
static void copy_unlocked(ws_offload_device *d, const ws_offload_matrix *x, const ws_block *b, int slot, bool is_in) {
  char *const host = host_at(x, b), *const memory = d->site->slot[slot].memory;
  const int64_t ld = x->ld * x->bytes, bytes = b->n_rows * x->bytes;
  d->n_copying++;
  pthread_mutex_unlock(&d->lock);
  if (is_in)
    copy_lines(memory, bytes, host, ld, bytes, b->n_cols);
  else
    copy_lines(host, ld, memory, bytes, bytes, b->n_cols);
  pthread_mutex_lock(&d->lock);
  d->n_copying--;
}

/* ---- C's way back ---------------------------------------------------------------------------- */

static ws_block block_of(const ws_offload_plan *plan, const ws_transfer_of_c *at) {
  const ws_block cell = ws_offload_cells(plan, at->strip, 1, at->panel, 1);
  return ws_offload_transfer(&plan->matrix[WS_OF_C], &cell, at->transfer);
}

/* A slot that has come back, into C. */
static bool store_one(ws_offload_device *d) {
  ws_transfer_of_c at;
  if (!has_come_first(d, &d->returning)) return false;
  const int slot = pop(&d->returning, &at);
  const ws_block block = block_of(&d->job->plan, &at);
  copy_unlocked(d, &d->job->plan.matrix[WS_OF_C], &block, slot, false);
  atomic_store(ws_transfer_state_of(d->job, &at), WS_TRANSFER_DONE);
  d->free_slot[d->n_free++] = slot;
  return true;
}

/* To the next transfer of a part; its last one ends it. */
static void advance(ws_offload_device *d, ws_part *part) {
  const ws_offload_plan *plan = &d->job->plan;
  const ws_block cell = ws_offload_cells(plan, part->next.strip, 1, part->next.panel, 1);
  if (++part->next.transfer < ws_offload_n_transfers(&plan->matrix[WS_OF_C], &cell)) return;
  part->next.transfer = 0;
  atomic_fetch_add(&d->job->n_cells_out, 1);
  if (++part->next.panel < part->panel + part->n_panels) return;
  part->next.panel = part->panel;
  if (++part->next.strip == part->strip + part->n_strips) d->first_part++;
}

/* A transfer of C to a slot, or to where it belongs. */
static bool fetch_one(ws_offload_device *d) {
  ws_part *part = &d->part[d->first_part];
  const ws_offload_matrix *c = &d->job->plan.matrix[WS_OF_C];
  if (d->first_part == d->n_parts) return false;
  if (!part->is_computed && !(part->is_computed = has_come(d, part->computed))) return false;
  if (!c->is_pinned && d->returning.n >= d->site->n_slots / 2) return false;
  const int slot = c->is_pinned ? -1 : take_slot(d);
  if (!c->is_pinned && slot < 0) return false;
  const ws_transfer_of_c at = part->next;
  const ws_block block = block_of(&d->job->plan, &at);
  const CUDA_MEMCPY2D copy = copy_of(d, c, &block, slot < 0 ? NULL : d->site->slot[slot].memory, false);
  if (failed(d, "copy from the device", ws_cuda.cuMemcpy2DAsync(&copy, d->site->out))) return false;
  if (c->is_pinned) atomic_store(ws_transfer_state_of(d->job, &at), WS_TRANSFER_WRITTEN);
  if (slot >= 0 && !hand_over(d, slot, d->site->out, &d->returning, &at)) return false;
  advance(d, part);
  return true;
}

/* ---- what arrives ---------------------------------------------------------------------------- */

static void launch_part(ws_offload_device *d, int strip, int n_strips, int panel, int n_panels) {
  ws_part *part = &d->part[d->n_parts];
  const ws_block cells = ws_offload_cells(&d->job->plan, strip, n_strips, panel, n_panels);
  const ws_problem problem = ws_offload_part(&d->job->plan, &cells, (const char *)(uintptr_t)d->site->memory);
  *part = (ws_part){.strip = strip, .n_strips = n_strips, .panel = panel, .n_panels = n_panels, .next = {strip, panel, 0}};
  if (failed(d, "event", ws_site_part_event(d->site, d->n_parts, &part->computed))) return;
  d->status = ws_run_part(&d->executor, &d->plan, &problem, d->copies, d->copies_bytes);
  if (d->status) {
    snprintf(d->words, sizeof d->words, "%.199s", wsgemm_last_error());
    return;
  }
  if (!failed(d, "event", ws_cuda.cuEventRecord(part->computed, d->site->work))) d->n_parts++;
}

/* The parts of a panel: of strips that follow each other one. */
static void launch_panel(ws_offload_device *d, int panel) {
  for (int i = 0, n; i < d->n_strips_here && !d->status; i += n) {
    n = 1;
    while (i + n < d->n_strips_here && d->strip[i + n] == d->strip[i] + n) n++;
    launch_part(d, d->strip[i], n, panel, 1);
  }
}

/* Those in front of which nothing is left. */
static void launch_arrived(ws_offload_device *d) {
  while (d->first_left < d->next_arrival && d->arrival[d->first_left].n_left == 0 && !d->status) {
    const ws_arrival *a = &d->arrival[d->first_left++];
    if (failed(d, "event", ws_cuda.cuEventRecord(d->site->arrived, d->site->in)) ||
        failed(d, "wait", ws_cuda.cuStreamWaitEvent(d->site->work, d->site->arrived, 0)))
      return;
    if (a->is_strip) {
      d->n_strips_here++;
      if (d->n_panels_here > 0) launch_part(d, a->idx, 1, 0, d->n_panels_here);
    } else {
      d->n_panels_here++;
      launch_panel(d, a->idx);
    }
  }
}

static ws_transfer_of_c cell_of(const ws_offload_device *d, const ws_arrival *a, int i) {
  return a->is_strip ? (ws_transfer_of_c){a->idx, i, 0} : (ws_transfer_of_c){d->strip[i], a->idx, 0};
}

static void add_arrival(ws_offload_device *d, bool is_strip, int idx) {
  const ws_offload_plan *plan = &d->job->plan;
  ws_arrival *a = &d->arrival[d->n_arrivals++];
  *a = (ws_arrival){.is_strip = is_strip, .idx = idx};
  const ws_block block = ws_offload_block(plan, is_strip, idx);
  a->n_transfers = ws_offload_n_transfers(&plan->matrix[ws_offload_operand(plan, is_strip)], &block);
  a->n_cells = plan->p->scale.beta_zero ? 0 : is_strip ? d->n_panels : d->n_strips;
  for (int i = 0; i < a->n_cells; i++) {
    const ws_transfer_of_c at = cell_of(d, a, i);
    const ws_block cell = ws_offload_cells(plan, at.strip, 1, at.panel, 1);
    a->n_transfers += ws_offload_n_transfers(&plan->matrix[WS_OF_C], &cell);
  }
  a->n_left = a->n_transfers;
  if (is_strip)
    d->strip[d->n_strips++] = idx;
  else
    d->n_panels++;
}

/* Of several devices each takes a strip only when it comes to the end of what it has. */
static bool take_strip(ws_offload_device *d) {
  enum { MOST_OPEN = 3 };
  ws_offload_job *job = d->job;
  const int n_open = d->n_parts - d->first_part + d->n_arrivals - d->first_left;
  if (job->n_devices > 1 && n_open >= MOST_OPEN) return false;
  int strip = atomic_load(&job->next_strip);
  while (strip < job->plan.n_strips && !atomic_compare_exchange_weak(&job->next_strip, &strip, strip + 1)) continue;
  if (strip >= job->plan.n_strips) return false;
  add_arrival(d, true, strip);
  return true;
}

/* In turns, so that parts become as large as what has arrived allows. */
static bool add_next(ws_offload_device *d) {
  const bool lacks_panel = d->n_strips > 0 && d->n_panels < d->job->plan.n_panels;
  if (!(lacks_panel && d->n_panels < d->n_strips) && take_strip(d)) return true;
  if (!lacks_panel) return false;
  add_arrival(d, false, d->n_panels);
  return true;
}

static ws_block transfer_of(const ws_offload_device *d, const ws_arrival *a, int transfer, const ws_offload_matrix **of) {
  const ws_offload_plan *plan = &d->job->plan;
  *of = &plan->matrix[ws_offload_operand(plan, a->is_strip)];
  ws_block block = ws_offload_block(plan, a->is_strip, a->idx);
  int n = ws_offload_n_transfers(*of, &block);
  for (int i = 0; transfer >= n; i++) {
    const ws_transfer_of_c at = cell_of(d, a, i);
    transfer -= n;
    *of = &plan->matrix[WS_OF_C];
    block = ws_offload_cells(plan, at.strip, 1, at.panel, 1);
    n = ws_offload_n_transfers(*of, &block);
  }
  return ws_offload_transfer(*of, &block, transfer);
}

/* The next transfer that is to arrive. */
static bool send_one(ws_offload_device *d) {
  if (d->next_arrival == d->n_arrivals && !add_next(d)) return false;
  ws_arrival *a = &d->arrival[d->next_arrival];
  const ws_offload_matrix *of;
  const ws_block block = transfer_of(d, a, a->next_transfer, &of);
  const int slot = of->is_pinned ? -1 : take_slot(d);
  if (!of->is_pinned && slot < 0) return false;
  if (++a->next_transfer == a->n_transfers) d->next_arrival++;
  if (slot >= 0) copy_unlocked(d, of, &block, slot, true);
  if (d->status) return true;
  const CUDA_MEMCPY2D copy = copy_of(d, of, &block, slot < 0 ? NULL : d->site->slot[slot].memory, true);
  if (failed(d, "copy to the device", ws_cuda.cuMemcpy2DAsync(&copy, d->site->in))) return true;
  if (slot >= 0 && !hand_over(d, slot, d->site->in, &d->sent, NULL)) return true;
  a->n_left--;
  launch_arrived(d);
  return true;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool is_over(const ws_offload_device *d) {
  const bool takes_more =
      atomic_load(&d->job->next_strip) < d->job->plan.n_strips || (d->n_strips > 0 && d->n_panels < d->job->plan.n_panels);
  return !takes_more && d->first_left == d->n_arrivals && d->first_part == d->n_parts && d->returning.n == 0 && d->n_copying == 0;
}

/* What comes back first: it makes slots free, and is the last that is waited for. */
static ws_step step(ws_offload_device *d) {
  if (store_one(d) || (!d->status && fetch_one(d)) || (!d->status && send_one(d))) return WS_STEP_DONE;
  return d->status || is_over(d) ? WS_STEP_OVER : WS_STEP_NONE;
}

ws_step ws_offload_step(ws_offload_device *d) {
  ws_step what = WS_STEP_OVER;
  CUcontext popped;
  pthread_mutex_lock(&d->lock);
  if (!d->status && !failed(d, "context", ws_cuda.cuCtxPushCurrent(d->context))) {
    what = step(d);
    ws_cuda.cuCtxPopCurrent(&popped);
  }
  pthread_mutex_unlock(&d->lock);
  return what;
}
