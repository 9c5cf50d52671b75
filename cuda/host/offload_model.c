/* offload_model.c - see offload_model.h. */
#define _GNU_SOURCE
#include "cuda/host/offload_model.h"

#include <stdatomic.h>
#include <time.h>

#include "core/tile.h"

/* ---- rates ----------------------------------------------------------------------------------- */

static _Atomic int64_t link_in, link_out;       /* bytes a second; 0: not measured */
static _Atomic int64_t copied_bytes, copied_us; /* by threads */
static atomic_flag is_measured = ATOMIC_FLAG_INIT;

int64_t ws_offload_nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void ws_offload_note_copy(int64_t bytes, int64_t nanoseconds) {
  atomic_fetch_add_explicit(&copied_bytes, bytes, memory_order_relaxed);
  atomic_fetch_add_explicit(&copied_us, nanoseconds / 1000, memory_order_relaxed);
}

/* All slots are still free. Nothing is lost if a copy fails: then there is no rate. */
static int64_t measure(const ws_offload_site *s, CUstream stream, bool is_in) {
  const int64_t n = ws_min(s->n_slots, (int64_t)(s->bytes / WS_SLOT_BYTES)), begin = ws_offload_nanoseconds();
  CUresult result = CUDA_SUCCESS;
  for (int64_t i = 0; i < n && !result; i++) {
    const CUdeviceptr slot = (CUdeviceptr)(uintptr_t)s->slot[i].memory, device = s->memory + (size_t)i * WS_SLOT_BYTES;
    const CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .srcDevice = is_in ? slot : device,
                                .srcPitch = WS_SLOT_BYTES,
                                .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                .dstDevice = is_in ? device : slot,
                                .dstPitch = WS_SLOT_BYTES,
                                .WidthInBytes = WS_SLOT_BYTES,
                                .Height = 1};
    result = ws_cuda.cuMemcpy2DAsync(&copy, stream);
  }
  if (!result) result = ws_cuda.cuStreamSynchronize(stream);
  const int64_t took = ws_offload_nanoseconds() - begin;
  return result || n == 0 || took == 0 ? 0 : n * WS_SLOT_BYTES * 1000 / ws_max(1, took / 1000000);
}

void ws_offload_measure(const ws_offload_site *s) {
  if (s->n_slots < WS_LEAST_SLOTS || s->bytes / WS_SLOT_BYTES < WS_LEAST_SLOTS || atomic_flag_test_and_set(&is_measured)) return;
  atomic_store(&link_in, measure(s, s->in, true));
  atomic_store(&link_out, measure(s, s->out, false));
}

ws_offload_rates ws_offload_rates_get(void) {
  const double assumed_link = 50e9, assumed_thread = 5e9;
  const double in = (double)atomic_load(&link_in), out = (double)atomic_load(&link_out), us = (double)atomic_load(&copied_us);
  const bool knows_thread = us > 1e4;
  return (ws_offload_rates){.in = in > 0 ? in : assumed_link,
                            .out = out > 0 ? out : assumed_link,
                            .thread = knows_thread ? 1e6 * (double)atomic_load(&copied_bytes) / us : assumed_thread,
                            .is_measured = in > 0 && out > 0};
}

static double most(double a, double b) { return a > b ? a : b; }
static double least(double a, double b) { return a < b ? a : b; }

/* ---- model ----------------------------------------------------------------------------------- */

/* Of an H200 and its host (bench/NOTES.md, offload), flops a second. The CPU's rates are those of
 * the fastest core known, so that GPUs are not taken where they lose. */
static const struct {
  double device, core;
} rates[WS_N_TYPES] = {[WSGEMM_F32] = {160e12, 250e9}, [WSGEMM_F64] = {49e12, 125e9},  [WSGEMM_C32] = {140e12, 250e9},
                       [WSGEMM_C64] = {52e12, 125e9},  [WSGEMM_F16] = {500e12, 250e9}, [WSGEMM_BF16] = {500e12, 500e9}};

/* What a triangle leaves. */
static double flops_of(const ws_problem *p) {
  const double n_real = ws_types[p->a.type].n_real;
  const bool is_half =
      p->c.region != WS_ALL || ws_is_triangular((ws_structure)p->a.structure) || ws_is_triangular((ws_structure)p->b.structure);
  return (is_half ? 1 : 2) * n_real * n_real * (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count;
}

typedef struct byte_counts {
  double of[WS_N_OFFLOADED], staged;
} byte_counts;

static byte_counts count_bytes(const ws_offload_plan *plan) {
  byte_counts n = {.staged = 0};
  for (int i = 0; i < WS_N_OFFLOADED; i++) {
    const ws_offload_matrix *x = &plan->matrix[i];
    if (!x->host || x->is_another) continue;
    n.of[i] = (double)x->n_rows * (double)x->n_cols * (double)x->n_products * x->bytes / (x->region == WS_ALL ? 1 : 2);
    if (!x->is_pinned) n.staged += n.of[i] * (i == WS_OF_C && plan->reads_c ? 2 : 1);
  }
  return n;
}

/* How often a device reads the operand of panels. */
static double n_groups_of(const ws_offload_plan *plan, int n_devices) {
  const int64_t of_group = (int64_t)plan->strip_places * n_devices;
  return of_group > 0 ? (double)ws_ceil_div(plan->n_strips, of_group) : 1;
}

ws_offload_times ws_offload_model(const ws_offload_plan *plan, int n_devices, int n_threads) {
  const double begin = 0.6e-3, most_staging = 60e9;
  const ws_problem *p = plan->p;
  const ws_offload_rates r = ws_offload_rates_get();
  const byte_counts bytes = count_bytes(plan);
  const int n_used = plan->is_whole ? 1 : n_devices;
  const double flops = flops_of(p), passes = n_groups_of(plan, n_devices) - 1;
  const double shared = bytes.of[ws_offload_operand(plan, false)], own = bytes.of[ws_offload_operand(plan, true)];
  const double with_c = own + bytes.of[WS_OF_BIAS] + bytes.of[WS_OF_RESIDUAL] + (plan->reads_c ? bytes.of[WS_OF_C] : 0);
  const double in = (shared * (1 + passes) + with_c / n_used) / r.in, out = bytes.of[WS_OF_C] / n_used / r.out;
  const double staging_rate = least(n_threads * r.thread, most_staging);
  ws_offload_times t = {.link = most(in, out),
                        .staging = (bytes.staged + passes * shared * !plan->matrix[ws_offload_operand(plan, false)].is_pinned) /
                                   staging_rate,
                        .device = flops / rates[p->a.type].device / n_used,
                        .cpu = flops / rates[p->a.type].core / n_threads};
  const double copies = most(plan->is_whole ? in + out : t.link, t.staging);
  const double hidden = plan->is_whole ? 0 : least(copies, t.device) * 3 / 4;
  t.all = begin + copies + t.device - hidden;
  return t;
}
