/* offload_step.c - the steps of offload_device.h. All but copies between host memory and slots are
 * done with the device's lock held; what goes wrong ends the device's work. */
#include <stdio.h>
#include <string.h>

#include "core/status.h"
#include "core/tile.h"
#include "cuda/host/backend.h"
#include "cuda/host/level3.h"
#include "cuda/host/offload_device.h"
#include "cuda/host/offload_model.h"
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

static char *host_at(const ws_offload_matrix *x, const ws_block *b) {
  return x->host + (b->row + b->col * x->ld + b->product * x->stride) * x->bytes;
}

static CUdeviceptr device_at(const ws_offload_device *d, const ws_offload_matrix *x, const ws_block *b, const ws_shift *shift) {
  const int64_t at = b->row + shift->row + (b->col + shift->col) * x->device_ld + b->product * x->device_stride;
  return d->site->memory + x->offset + (size_t)at * (size_t)x->bytes;
}

/* slot: NULL: the matrix is pinned. */
static CUDA_MEMCPY2D copy_of(const ws_offload_device *d, const ws_offload_matrix *x, const ws_block *b, const ws_shift *shift,
                             char *slot, bool is_in) {
  const size_t pitch = (size_t)((slot ? b->n_rows : x->ld) * x->bytes), device_pitch = (size_t)(x->device_ld * x->bytes);
  const CUdeviceptr host = (CUdeviceptr)(uintptr_t)(slot ? slot : host_at(x, b)), device = device_at(d, x, b, shift);
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

/* Of a region no other elements are touched. */
static void copy_lines(const ws_offload_matrix *x, const ws_block *b, char *slot, bool is_in) {
  char *const host = host_at(x, b);
  for (int64_t j = 0; j < b->n_cols; j++) {
    const int64_t diagonal = ws_max(0, ws_min(b->n_rows, b->col + j - b->row));
    const int64_t first = x->region == WS_LOWER ? diagonal : 0;
    const int64_t end = x->region == WS_UPPER ? ws_min(b->n_rows, diagonal + 1) : b->n_rows;
    char *const line = host + (j * x->ld + first) * x->bytes, *const copy = slot + (j * b->n_rows + first) * x->bytes;
    if (end > first) memcpy(is_in ? copy : line, is_in ? line : copy, (size_t)((end - first) * x->bytes));
  }
}

/* Between two holds of the lock. */
static void copy_unlocked(ws_offload_device *d, const ws_offload_matrix *x, const ws_block *b, int slot, bool is_in) {
  char *const memory = d->site->slot[slot].memory;
  d->n_copying++;
  pthread_mutex_unlock(&d->lock);
  const int64_t begin = ws_offload_nanoseconds();
  copy_lines(x, b, memory, is_in);
  ws_offload_note_copy(b->n_rows * b->n_cols * x->bytes, ws_offload_nanoseconds() - begin);
  pthread_mutex_lock(&d->lock);
  d->n_copying--;
}

/* ---- C's way back ---------------------------------------------------------------------------- */

/* A slot that has come back, into C. */
static bool store_one(ws_offload_device *d) {
  ws_transfer_of_c at;
  int matrix;
  if (!has_come_first(d, &d->returning)) return false;
  const int slot = pop(&d->returning, &at);
  const ws_block block = ws_offload_out(&d->job->plan, at.strip, at.panel, at.transfer, &matrix);
  copy_unlocked(d, &d->job->plan.matrix[matrix], &block, slot, false);
  atomic_store(ws_transfer_state_of(d->job, &at), WS_TRANSFER_DONE);
  d->free_slot[d->n_free++] = slot;
  return true;
}

static ws_part *part_at(ws_offload_device *d, int i) { return &d->part[i % WS_MOST_OPEN_PARTS]; }

/* To the next transfer of a part; its last one ends it: what was in its places may go when the driver has come to the event. */
static void advance(ws_offload_device *d, ws_part *part) {
  const int strip = d->strip_at[part->strip], panel = d->panel_at[part->panel];
  if (++part->transfer < ws_offload_n_out(&d->job->plan, strip, panel)) return;
  part->transfer = 0;
  atomic_fetch_add(&d->job->n_cells_out, 1);
  if (++part->panel < part->panels.first + part->panels.n) return;
  part->panel = part->panels.first;
  if (++part->strip < part->strips.first + part->strips.n) return;
  if (!failed(d, "event", ws_cuda.cuEventRecord(part->event, d->site->out))) d->first_part++;
}

/* Parts whose memory may be used again. */
static void end_parts(ws_offload_device *d) {
  while (d->n_parts_over < d->first_part && has_come(d, part_at(d, d->n_parts_over)->event)) d->n_parts_over++;
}

/* What a part has been computed of is there, for others to copy. */
static void offer_panels(ws_offload_device *d, const ws_part *part) {
  for (int i = 0; i < part->panels.n; i++) {
    unsigned char none = 0;
    atomic_compare_exchange_strong(&d->job->holder[d->panel_at[part->panels.first + i]], &none, (unsigned char)(d->idx + 1));
  }
}

/* A transfer of C to a slot, or to where it belongs. */
static bool fetch_one(ws_offload_device *d) {
  ws_part *part = part_at(d, d->first_part);
  int matrix;
  if (d->first_part == d->n_parts) return false;
  if (!part->is_computed && !(part->is_computed = has_come(d, part->event))) return false;
  if (d->job->has_peers) offer_panels(d, part);
  const ws_offload_plan *plan = &d->job->plan;
  const ws_transfer_of_c at = {d->strip_at[part->strip], d->panel_at[part->panel], part->transfer};
  const ws_block block = ws_offload_out(plan, at.strip, at.panel, at.transfer, &matrix);
  const ws_offload_matrix *of = &plan->matrix[matrix];
  if (block.n_rows == 0) {
    atomic_store(ws_transfer_state_of(d->job, &at), WS_TRANSFER_DONE);
    advance(d, part);
    return true;
  }
  if (!of->is_pinned && d->returning.n >= d->site->n_slots / 2) return false;
  const int slot = of->is_pinned ? -1 : take_slot(d);
  if (!of->is_pinned && slot < 0) return false;
  const ws_shift shift = ws_offload_shift(plan, matrix, at.strip, part->strip, at.panel, part->panel);
  const CUDA_MEMCPY2D copy = copy_of(d, of, &block, &shift, slot < 0 ? NULL : d->site->slot[slot].memory, false);
  if (failed(d, "copy from the device", ws_cuda.cuMemcpy2DAsync(&copy, d->site->out))) return false;
  if (of->is_pinned) atomic_store(ws_transfer_state_of(d->job, &at), WS_TRANSFER_WRITTEN);
  if (slot >= 0 && !hand_over(d, slot, d->site->out, &d->returning, &at)) return false;
  advance(d, part);
  return true;
}

/* ---- what is computed ------------------------------------------------------------------------ */

/* All of it at once. */
static wsgemm_status run_whole(ws_offload_device *d) {
  const char *memory = (const char *)(uintptr_t)d->site->memory;
  if (d->job->system) {
    const ws_system system = ws_offload_whole_system(&d->job->plan, memory);
    return ws_run_system(&d->executor[0], &system);
  }
  ws_problem second;
  const ws_problem p = ws_offload_whole(&d->job->plan, memory, &second);
  return ws_run_problem(&d->executor[0], &p);
}

static void launch_part(ws_offload_device *d, const ws_places *strips, const ws_places *panels) {
  ws_part *part = part_at(d, d->n_parts);
  const int stream = d->n_parts % d->n_work_streams;
  const ws_block cells = ws_offload_cells_in(&d->job->plan, strips, panels);
  const ws_problem problem = ws_offload_part(&d->job->plan, &cells, (const char *)(uintptr_t)d->site->memory);
  *part = (ws_part){.strips = *strips, .panels = *panels, .strip = strips->first, .panel = panels->first};
  if (failed(d, "event", ws_site_part_event(d->site, d->n_parts % WS_MOST_OPEN_PARTS, &part->event))) return;
  d->status =
      d->job->plan.is_whole ? run_whole(d) : ws_run_part(&d->executor[stream], &d->plan, &problem, d->copies, d->copies_bytes);
  if (d->status) {
    snprintf(d->words, sizeof d->words, "%.199s", wsgemm_last_error());
    return;
  }
  if (failed(d, "event", ws_cuda.cuEventRecord(part->event, d->site->work[stream]))) return;
  d->n_parts++;
  for (int i = 0; i < panels->n; i++) d->last_part[panels->first + i] = d->n_parts;
}

/* With the panels that are here: those in neighbouring places, of which only the last may be the short one. */
static void launch_strip(ws_offload_device *d, int place) {
  const ws_places strip = {place, 1, d->strip_at[place]};
  const int n_places = d->job->plan.panel_places, last_panel = d->job->plan.n_panels - 1;
  for (int first = 0, n; first < n_places && !d->status; first += n) {
    n = 1;
    if (!d->is_here[first]) continue;
    while (first + n < n_places && d->is_here[first + n] && d->panel_at[first + n - 1] != last_panel) n++;
    const ws_places panels = {first, n, d->panel_at[first + n - 1]};
    launch_part(d, &strip, &panels);
  }
}

static void launch_panel(ws_offload_device *d, int place) {
  const int n = d->n_strips_here;
  const ws_places panel = {place, 1, d->panel_at[place]}, strips = {0, n, n > 0 ? d->strip_at[n - 1] : 0};
  if (n > 0) launch_part(d, &strips, &panel);
}

/* Those in front of which nothing is left. */
static void launch_arrived(ws_offload_device *d) {
  while (d->first_left < d->next_arrival && d->arrival[d->first_left % WS_MOST_ARRIVALS].n_left == 0 && !d->status) {
    const CUevent arrived = d->site->arrived[d->first_left % WS_MOST_COMING];
    const ws_arrival *a = &d->arrival[d->first_left++ % WS_MOST_ARRIVALS];
    if (failed(d, "event", ws_cuda.cuEventRecord(arrived, d->site->in))) return;
    for (int i = 0; i < d->n_work_streams; i++)
      if (failed(d, "wait", ws_cuda.cuStreamWaitEvent(d->site->work[i], arrived, 0))) return;
    if (a->is_strip) {
      d->n_strips_here++;
      launch_strip(d, a->place);
    } else {
      d->n_panels_here++, d->is_here[a->place] = true;
      launch_panel(d, a->place);
    }
  }
}

/* ---- what arrives ---------------------------------------------------------------------------- */

/* Where cell i of the arrival is: with the strip, or the i-th panel that was here before. */
static ws_transfer_of_c places_of_cell(const ws_offload_device *d, const ws_arrival *a, int i) {
  const int panel = (d->first_panel + i) % d->job->plan.panel_places;
  return a->is_strip ? (ws_transfer_of_c){a->place, panel, 0} : (ws_transfer_of_c){i, a->place, 0};
}

static ws_block cell_in(const ws_offload_device *d, const ws_transfer_of_c *places) {
  return ws_offload_cell(&d->job->plan, d->strip_at[places->strip], d->panel_at[places->panel]);
}

static ws_block input_block(const ws_offload_plan *plan, const ws_arrival *a, int matrix) {
  const ws_offload_matrix *x = &plan->matrix[matrix];
  return matrix <= WS_OF_C ? ws_offload_block(plan, a->is_strip, a->idx) : (ws_block){0, 0, x->n_rows, x->n_cols, 0};
}

/* NULL: the panel comes from the host. */
static const ws_offload_device *find_peer(const ws_offload_device *d, int panel) {
  const int holder = d->job->has_peers ? atomic_load(&d->job->holder[panel]) : 0;
  return holder > 0 ? &d->job->device[holder - 1] : NULL;
}

static bool copy_from_peer(ws_offload_device *d, const ws_arrival *a) {
  static const ws_shift none = {0, 0};
  const ws_offload_plan *plan = &d->job->plan;
  const ws_offload_matrix *x = &plan->matrix[ws_offload_operand(plan, false)];
  const ws_block block = ws_offload_block(plan, false, a->idx);
  CUDA_MEMCPY2D copy = copy_of(d, x, &block, &none, NULL, true);
  copy.srcDevice = device_at(a->peer, x, &block, &none), copy.srcPitch = copy.dstPitch;
  return !failed(d, "copy from another device", ws_cuda.cuMemcpy2DAsync(&copy, d->site->in));
}

static void add_arrival(ws_offload_device *d, bool is_strip, int idx, int place) {
  const ws_offload_plan *plan = &d->job->plan;
  ws_arrival *a = &d->arrival[d->n_arrivals++ % WS_MOST_ARRIVALS];
  int matrix;
  *a = (ws_arrival){.is_strip = is_strip, .idx = idx, .place = place};
  (is_strip ? d->strip_at : d->panel_at)[place] = idx;
  a->peer = is_strip ? NULL : find_peer(d, idx);
  if (a->peer) a->n_transfers = 1;
  for (int i = 0; !a->peer && ws_offload_input(plan, is_strip, i, &matrix); i++) {
    const ws_block block = input_block(plan, a, matrix);
    a->n_transfers += ws_offload_n_transfers(&plan->matrix[matrix], &block);
  }
  const int n_panels = (int)ws_min(d->n_panels, plan->panel_places);
  a->n_cells = !plan->reads_c ? 0 : is_strip ? n_panels : d->n_strips;
  for (int i = 0; i < a->n_cells; i++) {
    const ws_transfer_of_c at = places_of_cell(d, a, i);
    const ws_block cell = cell_in(d, &at);
    a->n_transfers += ws_offload_n_transfers(&plan->matrix[WS_OF_C], &cell);
  }
  a->n_left = a->n_transfers;
  if (a->n_transfers == 0) d->next_arrival++;
  *(is_strip ? &d->n_strips : &d->n_panels) += 1;
}

/* Of several devices each takes a strip only when it comes to the end of what it has. */
static bool take_strip(ws_offload_device *d) {
  enum { MOST_OPEN = 3 };
  ws_offload_job *job = d->job;
  const int n_open = d->n_parts - d->first_part + d->n_arrivals - d->first_coming;
  if (d->n_strips == job->plan.strip_places || (job->n_devices > 1 && n_open >= MOST_OPEN)) return false;
  int strip = atomic_load(&job->next_strip);
  while (strip < job->plan.n_strips && !atomic_compare_exchange_weak(&job->next_strip, &strip, strip + 1)) continue;
  if (strip >= job->plan.n_strips) return false;
  job->owner[strip] = (unsigned char)(d->idx + 1);
  add_arrival(d, true, strip, d->n_strips);
  return true;
}

static bool has_all_strips(const ws_offload_device *d) {
  return d->n_strips == d->job->plan.strip_places || atomic_load(&d->job->next_strip) >= d->job->plan.n_strips;
}

/* Back and forth, so that the last ones of a group are the first ones of the next. */
static int next_panel(const ws_offload_device *d) {
  if (d->first_panel > 0) return (d->first_panel + d->n_panels) % d->job->plan.n_panels;
  return d->n_groups % 2 == 0 ? d->n_panels : d->job->plan.n_panels - 1 - d->n_panels;
}

/* The next panel has a place of its own; or that of one which has met all strips of the group, and of which C is
 * fetched. */
static bool has_place(const ws_offload_device *d, int panel) {
  const int n_places = d->job->plan.panel_places;
  if (d->n_panels < n_places) return true;
  return has_all_strips(d) && d->n_strips_here == d->n_strips && d->n_panels_here > d->n_panels - n_places &&
         d->n_parts_over >= d->last_part[panel % n_places];
}

/* The device has done all that it had strips for, and there are more. */
static bool begin_group(ws_offload_device *d) {
  const ws_offload_plan *plan = &d->job->plan;
  const bool is_done = d->n_strips > 0 && d->n_panels == plan->n_panels && d->first_left == d->n_arrivals;
  if (!is_done || d->n_parts_over < d->n_parts || atomic_load(&d->job->next_strip) >= plan->n_strips) return false;
  if (d->n_strips < plan->strip_places) return false;
  d->n_groups++;
  d->n_strips = d->n_strips_here = 0;
  d->n_panels = d->n_panels_here = plan->panel_places;
  return true;
}

/* Of several devices each decides late what is to arrive, when the driver has little left to copy: by then others may
 * have taken strips, or have a panel. */
static bool may_add(ws_offload_device *d) {
  const int n_open = d->n_parts - d->n_parts_over + 2 * (d->n_arrivals - d->first_left);
  if (n_open + 2 > WS_MOST_OPEN_PARTS) return false;
  if (d->job->n_devices == 1) return true;
  while (d->first_coming < d->first_left && has_come(d, d->site->arrived[d->first_coming % WS_MOST_COMING])) d->first_coming++;
  return !d->status && d->n_arrivals - d->first_coming < WS_MOST_COMING;
}

/* In turns, so that parts become as large as what has arrived allows. */
static bool add_next(ws_offload_device *d) {
  if (!may_add(d)) return false;
  begin_group(d);
  const bool lacks_panel = d->n_strips > 0 && d->n_panels < d->job->plan.n_panels;
  if (!(lacks_panel && d->n_panels < d->n_strips && d->n_panels < d->job->plan.panel_places) && take_strip(d)) return true;
  const int panel = next_panel(d);
  if (!lacks_panel || !has_place(d, panel)) return false;
  add_arrival(d, false, panel, panel % d->job->plan.panel_places);
  return true;
}

static ws_block transfer_of(const ws_offload_device *d, const ws_arrival *a, int transfer, int *of, ws_shift *shift) {
  const ws_offload_plan *plan = &d->job->plan;
  if (a->peer) transfer--;
  for (int i = 0; !a->peer && ws_offload_input(plan, a->is_strip, i, of); i++) {
    const ws_block block = input_block(plan, a, *of);
    const int n = ws_offload_n_transfers(&plan->matrix[*of], &block);
    *shift = *of <= WS_OF_C ? ws_offload_shift(plan, *of, a->idx, a->place, a->idx, a->place) : (ws_shift){0, 0};
    if (transfer < n) return ws_offload_transfer(&plan->matrix[*of], &block, transfer);
    transfer -= n;
  }
  *of = WS_OF_C;
  for (int i = 0;; i++) {
    const ws_transfer_of_c at = places_of_cell(d, a, i);
    const ws_block cell = cell_in(d, &at);
    const int n = ws_offload_n_transfers(&plan->matrix[WS_OF_C], &cell);
    *shift = ws_offload_shift(plan, WS_OF_C, d->strip_at[at.strip], at.strip, d->panel_at[at.panel], at.panel);
    if (transfer < n) return ws_offload_transfer(&plan->matrix[WS_OF_C], &cell, transfer);
    transfer -= n;
  }
}

/* The next transfer that is to arrive. */
static bool send_one(ws_offload_device *d) {
  if (d->next_arrival == d->n_arrivals && !add_next(d)) return false;
  if (d->next_arrival == d->n_arrivals) { /* it brings nothing */
    launch_arrived(d);
    return true;
  }
  ws_arrival *a = &d->arrival[d->next_arrival % WS_MOST_ARRIVALS];
  if (a->peer && a->next_transfer == 0) {
    if (++a->next_transfer == a->n_transfers) d->next_arrival++;
    if (!copy_from_peer(d, a)) return true;
    a->n_left--;
    launch_arrived(d);
    return true;
  }
  int matrix;
  ws_shift shift;
  const ws_block block = transfer_of(d, a, a->next_transfer, &matrix, &shift);
  const ws_offload_matrix *of = &d->job->plan.matrix[matrix];
  const bool is_staged = !of->is_pinned && block.n_rows > 0;
  const int slot = is_staged ? take_slot(d) : -1;
  if (is_staged && slot < 0) return false;
  if (++a->next_transfer == a->n_transfers) d->next_arrival++;
  if (slot >= 0) copy_unlocked(d, of, &block, slot, true);
  if (d->status) return true;
  if (block.n_rows > 0) {
    const CUDA_MEMCPY2D copy = copy_of(d, of, &block, &shift, slot < 0 ? NULL : d->site->slot[slot].memory, true);
    if (failed(d, "copy to the device", ws_cuda.cuMemcpy2DAsync(&copy, d->site->in))) return true;
  }
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

/* What comes back first: it makes slots free, and is the last that is waited for. A call that is stopped only lets what is on
 * its way come. */
static ws_step step(ws_offload_device *d) {
  const bool is_stopped = atomic_load(&d->job->is_stopped);
  end_parts(d);
  if (store_one(d) || (!d->status && !is_stopped && (fetch_one(d) || send_one(d)))) return WS_STEP_DONE;
  const bool is_at_end = is_stopped ? d->returning.n == 0 && d->n_copying == 0 : is_over(d);
  return d->status || is_at_end ? WS_STEP_OVER : WS_STEP_NONE;
}

/* What a device that has failed has is not to be copied from it. */
static void withdraw_panels(ws_offload_device *d) {
  for (int panel = 0; panel < WS_MOST_PANELS; panel++) {
    unsigned char own = (unsigned char)(d->idx + 1);
    atomic_compare_exchange_strong(&d->job->holder[panel], &own, 0);
  }
}

ws_step ws_offload_step(ws_offload_device *d) {
  ws_step what = WS_STEP_OVER;
  pthread_mutex_lock(&d->lock);
  if (!d->status && !failed(d, "context", ws_cuda.cuCtxPushCurrent(d->context))) {
    what = step(d);
    ws_device_leave(true);
    if (d->status) withdraw_panels(d);
  }
  pthread_mutex_unlock(&d->lock);
  return what;
}
