/* offload_site.c - see offload_site.h. */
#include "cuda/host/offload_site.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "core/environment.h"

static _Atomic size_t pinned_limit = (size_t)1 << 30;

void ws_site_set_pinned_limit(size_t bytes) { atomic_store(&pinned_limit, bytes); }

int ws_site_slots(int n_sites) {
  const size_t n = atomic_load(&pinned_limit) / WS_SLOT_BYTES / (size_t)(n_sites > 0 ? n_sites : 1);
  return n > WS_MOST_SLOTS ? WS_MOST_SLOTS : (int)n;
}

/* ---- streams and events ---------------------------------------------------------------------- */

/* What has been made before a failure stays for the next call. */
static CUresult make_stream(CUstream *stream) {
  return *stream ? CUDA_SUCCESS : ws_cuda.cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
}

static CUresult make_event(CUevent *event) {
  return *event ? CUDA_SUCCESS : ws_cuda.cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
}

static CUresult make_streams(ws_offload_site *s) {
  CUresult result = make_stream(&s->in);
  for (int i = 0; i < WS_N_WORK_STREAMS && !result; i++) result = make_stream(&s->work[i]);
  if (!result) result = make_stream(&s->out);
  for (int i = 0; i < WS_MOST_COMING && !result; i++) result = make_event(&s->arrived[i]);
  s->is_open = result == CUDA_SUCCESS;
  return result;
}

CUresult ws_site_part_event(ws_offload_site *s, int i, CUevent *event) {
  if (i >= WS_MOST_PART_EVENTS) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = make_event(&s->part_event[i]);
  *event = s->part_event[i];
  return result;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Fewer slots than asked for will do. */
static CUresult make_slots(ws_offload_site *s, int n_slots) {
  for (; s->n_slots > n_slots; s->n_slots--) {
    ws_slot *last = &s->slot[s->n_slots - 1];
    ws_cuda.cuMemFreeHost(last->memory);
    last->memory = NULL;
  }
  CUresult result = CUDA_SUCCESS;
  for (; s->n_slots < n_slots && !result; s->n_slots += result == CUDA_SUCCESS) {
    ws_slot *next = &s->slot[s->n_slots];
    void *memory = NULL;
    result = make_event(&next->copied);
    if (!result) result = ws_cuda.cuMemHostAlloc(&memory, WS_SLOT_BYTES, 0);
    next->memory = memory;
  }
  return s->n_slots >= WS_LEAST_SLOTS || n_slots < WS_LEAST_SLOTS ? CUDA_SUCCESS : result;
}

CUresult ws_site_open(ws_device *device, int n_slots, ws_offload_site **site) {
  ws_offload_site **kept = ws_device_site(device);
  if (!*kept) *kept = calloc(1, sizeof **kept);
  *site = *kept;
  if (!*kept) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = (*kept)->is_open ? CUDA_SUCCESS : make_streams(*kept);
  return result || n_slots == 0 ? result : make_slots(*kept, n_slots);
}

static void free_memory(ws_offload_site *s) {
  if (s->memory) ws_cuda.cuMemFree(s->memory);
  s->memory = 0, s->bytes = 0;
}

/* Some stays free: for sums, for kernels, for the device's other users. */
CUresult ws_site_room(const ws_offload_site *s, size_t *bytes) {
  enum { SHARE = 64 };
  const size_t least_left = (size_t)512 << 20, limit = ws_environment_get()->offload_bytes;
  size_t free_bytes = 0, total_bytes = 0;
  const CUresult result = ws_cuda.cuMemGetInfo(&free_bytes, &total_bytes);
  const size_t left = total_bytes / SHARE + least_left;
  *bytes = s->bytes + (free_bytes > left ? free_bytes - left : 0);
  if (limit > 0 && *bytes > limit) *bytes = limit;
  return result;
}

CUresult ws_site_memory(ws_offload_site *s, size_t bytes) {
  if (s->bytes >= bytes) return CUDA_SUCCESS;
  free_memory(s);
  const CUresult result = ws_cuda.cuMemAlloc(&s->memory, bytes);
  if (result == CUDA_SUCCESS)
    s->bytes = bytes;
  else
    s->memory = 0;
  return result;
}

void ws_site_close(ws_offload_site *s) {
  enum { SHARE = 8 };
  size_t free_bytes = 0, total_bytes = 0;
  if (s->bytes == 0) return;
  const CUresult result = ws_cuda.cuMemGetInfo(&free_bytes, &total_bytes);
  if (result != CUDA_SUCCESS || s->bytes > total_bytes / SHARE) free_memory(s);
}
