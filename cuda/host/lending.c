/* lending.c - see lending.h. */
#include "cuda/host/lending.h"

#include "cuda/host/device.h"
#include "cuda/host/image.h"

/* ---- what is held ---------------------------------------------------------------------------- */

static bool is_held(const ws_lending *lending, const ws_loan *loan) {
  for (const ws_loan *l = lending->holders; l; l = l->next_holder)
    if (l->held < loan->held_end && loan->held < l->held_end) return true;
  return false;
}

void ws_lending_hold(ws_device *device, ws_loan *loan, const void *at, int64_t bytes) {
  ws_lending *lending = ws_device_lending(device);
  if (loan->held) return;
  loan->held = (uintptr_t)at;
  loan->held_end = (uint64_t)bytes < UINTPTR_MAX - loan->held ? loan->held + (uintptr_t)bytes : UINTPTR_MAX;
  pthread_mutex_lock(&lending->lock);
  while (is_held(lending, loan)) pthread_cond_wait(&lending->released, &lending->lock);
  loan->next_holder = lending->holders;
  lending->holders = loan;
  pthread_mutex_unlock(&lending->lock);
}

static void release(ws_lending *lending, ws_loan *loan) {
  if (!loan->held) return;
  ws_loan **at = &lending->holders;
  while (*at != loan) at = &(*at)->next_holder;
  *at = loan->next_holder;
  loan->held = 0;
  pthread_cond_broadcast(&lending->released);
}

/* Whether others can tell, by the event, when the call has ended. Where it cannot be recorded, the
 * host waits for the stream, once: else nobody else might ever have what the call was lent. While
 * another thread captures, only the relaxed mode lets it. */
static bool record_end(const ws_lent *lent, CUstream stream) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (ws_cuda.cuEventRecord(lent->ended, stream) == CUDA_SUCCESS) return true;
  if (ws_cuda.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) return false;
  const bool is_over = ws_cuda.cuStreamSynchronize(stream) == CUDA_SUCCESS;
  ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return is_over;
}

/* Each call has recorded its own launches before it is counted out here, so without users the event
 * stands after all of them that are not over; unless one could not be recorded: then only a call
 * that came after it, alone, tells. */
static void count_out(ws_lent *lent, bool is_recorded) {
  lent->is_unknown = !is_recorded || (lent->is_unknown && lent->is_shared);
  if (--lent->n_users == 0) lent->is_shared = false;
}

CUresult ws_lending_end(ws_device *device, ws_loan *loan) {
  ws_lending *lending = ws_device_lending(device);
  CUresult result = CUDA_SUCCESS;
  bool is_recorded[sizeof loan->passed / sizeof loan->passed[0]];
  if (loan->allocated) result = ws_cuda.cuMemFreeAsync(loan->allocated, loan->stream);
  for (int i = 0; i < loan->n_passed; i++) is_recorded[i] = record_end(loan->passed[i], loan->stream);
  if (loan->n_passed == 0 && !loan->held) return result;
  pthread_mutex_lock(&lending->lock);
  for (int i = 0; i < loan->n_passed; i++) count_out(loan->passed[i], is_recorded[i]);
  release(lending, loan);
  pthread_mutex_unlock(&lending->lock);
  loan->n_passed = 0;
  return result;
}

static CUresult identify(ws_loan *loan) {
  if (loan->is_known) return CUDA_SUCCESS;
  CUstreamCaptureStatus capturing;
  unsigned long long id = 0;
  CUresult result = ws_cuda.cuStreamGetCaptureInfo(loan->stream, &capturing, NULL, &loan->graph, NULL, NULL);
  if (!result && capturing == CU_STREAM_CAPTURE_STATUS_NONE) result = ws_cuda.cuStreamGetId(loan->stream, &id);
  if (result != CUDA_SUCCESS) return result;
  loan->is_captured = capturing != CU_STREAM_CAPTURE_STATUS_NONE;
  /* a capture that has failed has none */
  if (capturing != CU_STREAM_CAPTURE_STATUS_ACTIVE) loan->graph = NULL;
  loan->stream_id = id;
  loan->is_known = true;
  return CUDA_SUCCESS;
}

/* ---- what is passed on ----------------------------------------------------------------------- */

/* Whether the last call with it has ended. While another thread captures, only the relaxed mode
 * lets that be asked. */
static bool has_ended(const ws_lent *lent) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (lent->n_users > 0 || lent->is_unknown || ws_cuda.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) return false;
  const bool ended = ws_cuda.cuEventQuery(lent->ended) == CUDA_SUCCESS;
  ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return ended;
}

static bool is_others(const ws_lent *lent, const ws_loan *loan) {
  return lent->tenure == WS_TENURE_PASSED && lent->owner != loan->stream_id;
}

static CUresult take(ws_lent *lent, ws_loan *loan) {
  const CUresult result = lent->ended ? CUDA_SUCCESS : ws_cuda.cuEventCreate(&lent->ended, CU_EVENT_DISABLE_TIMING);
  if (result != CUDA_SUCCESS) return result;
  lent->tenure = WS_TENURE_PASSED, lent->owner = loan->stream_id;
  lent->is_shared |= lent->n_users++ > 0;
  loan->passed[loan->n_passed++] = lent;
  return result;
}

/* The stream waits for the last call with it, which no longer launches. */
static CUresult take_with_wait(ws_lent *lent, ws_loan *loan) {
  CUresult result = CUDA_SUCCESS;
  if (is_others(lent, loan)) result = ws_cuda.cuStreamWaitEvent(loan->stream, lent->ended, 0);
  return result == CUDA_SUCCESS ? take(lent, loan) : result;
}

/* ---- what is captured ------------------------------------------------------------------------ */

/* Called by the driver's own thread, which must not wait: so without the lock. Release: pairs with
 * the acquire in free_ended. */
static void CUDA_CB end_graph(void *state) {
  atomic_store_explicit(&((ws_lent_state *)state)->is_over, true, memory_order_release);
}

static void free_lent(ws_lent *lent, uint64_t owner) {
  if (lent->tenure == WS_TENURE_CAPTURED && lent->owner == owner) lent->tenure = WS_TENURE_FREE;
}

/* Takes back what a captured call was lent, if its graph has ended. Acquire: pairs with the release
 * in end_graph. */
static void free_ended(ws_lending *lending, int state_idx) {
  ws_lent_state *s = &lending->state[state_idx];
  if (s->lent.tenure != WS_TENURE_CAPTURED || !atomic_load_explicit(&s->is_over, memory_order_acquire)) return;
  s->lent.tenure = WS_TENURE_FREE;
  for (int i = 0; i < WS_N_SUMS; i++) free_lent(&lending->sums[i], (uint64_t)state_idx);
  free_lent(&lending->captured.lent, (uint64_t)state_idx);
}

static bool keep_for_graph(ws_lent_state *s, ws_loan *loan, CUresult *result) {
  CUuserObject object;
  atomic_store_explicit(&s->is_over, false, memory_order_relaxed);
  *result = ws_cuda.cuUserObjectCreate(&object, s, end_graph, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (*result != CUDA_SUCCESS) return false;
  s->lent.tenure = WS_TENURE_CAPTURED;
  *result = ws_cuda.cuGraphRetainUserObject(loan->graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (*result == CUDA_SUCCESS) return true;
  ws_cuda.cuUserObjectRelease(object, 1); /* which calls end_graph */
  return false;
}

/* ---- states ---------------------------------------------------------------------------------- */

static uint16_t *hint_for(ws_lending *lending, uint64_t stream_id) { return &lending->hint[stream_id % WS_N_HINTS]; }

static bool is_of_stream(const ws_lending *lending, int state_idx, uint64_t stream_id) {
  const ws_lent *lent = &lending->state[state_idx].lent;
  return (lent->tenure == WS_TENURE_KEPT || lent->tenure == WS_TENURE_PASSED) && lent->owner == stream_id;
}

/* The state that the stream had before; -1: none. */
static int find_own(ws_lending *lending, uint64_t stream_id) {
  const int hint = *hint_for(lending, stream_id);
  if (is_of_stream(lending, hint, stream_id)) return hint;
  for (int i = 0; i < lending->n_kept; i++)
    if (is_of_stream(lending, i, stream_id)) return i;
  for (int i = 0; i < lending->n_others; i++)
    if (is_of_stream(lending, WS_N_KEPT_STATES + i, stream_id)) return WS_N_KEPT_STATES + i;
  return -1;
}

/* One of those that are not kept; -1: none. Few that were passed are asked for, as most that follow
 * each other are alike. */
static int find_other(ws_lending *lending) {
  enum { N_OTHERS = WS_N_STATES - WS_N_KEPT_STATES, MOST_QUERIES = 8 };
  if (lending->n_others < N_OTHERS) return WS_N_KEPT_STATES + lending->n_others++;
  int n_queries = 0;
  for (int i = 0; i < N_OTHERS; i++) {
    const int state_idx = WS_N_KEPT_STATES + lending->next_other;
    const ws_lent *lent = &lending->state[state_idx].lent;
    lending->next_other = (lending->next_other + 1) % N_OTHERS;
    free_ended(lending, state_idx);
    if (lent->tenure == WS_TENURE_FREE) return state_idx;
    if (lent->tenure != WS_TENURE_PASSED) continue;
    if (has_ended(lent)) return state_idx;
    if (++n_queries == MOST_QUERIES) break;
  }
  return -1;
}

static int state_of_capture(ws_lending *lending, ws_loan *loan, CUresult *result) {
  const int state_idx = loan->graph ? find_other(lending) : -1;
  return state_idx >= 0 && keep_for_graph(&lending->state[state_idx], loan, result) ? state_idx : -1;
}

static int state_of_stream(ws_lending *lending, ws_loan *loan, CUresult *result) {
  int state_idx = find_own(lending, loan->stream_id);
  if (state_idx < 0 && lending->n_kept < WS_N_KEPT_STATES) {
    state_idx = lending->n_kept++;
    lending->state[state_idx].lent = (ws_lent){.tenure = WS_TENURE_KEPT, .owner = loan->stream_id};
  }
  if (state_idx < 0) state_idx = find_other(lending);
  if (state_idx < 0) return -1;
  ws_lent *lent = &lending->state[state_idx].lent;
  if (lent->tenure != WS_TENURE_KEPT && (*result = take(lent, loan)) != CUDA_SUCCESS) return -1;
  *hint_for(lending, loan->stream_id) = (uint16_t)state_idx;
  return state_idx;
}

/* Where a variable of an image begins; an image that did not load is tried again. */
static char *find_global(ws_device *device, int image_idx, const char *name, _Atomic(char *) *first, CUresult *result) {
  char *found = atomic_load_explicit(first, memory_order_acquire);
  void *at = NULL;
  *result = CUDA_SUCCESS;
  if (found) return found;
  *result = ws_device_global(device, image_idx, name, &at);
  if (*result != CUDA_SUCCESS) return NULL;
  atomic_store_explicit(first, (char *)at, memory_order_release);
  return at;
}

/* NULL: there is none, *lacks: as there is no room for any. */
static CUresult find_state(ws_device *device, ws_loan *loan, ws_launch_state **state, bool *lacks) {
  ws_lending *lending = ws_device_lending(device);
  CUresult result = identify(loan), loading;
  *state = NULL, *lacks = false;
  if (result != CUDA_SUCCESS) return result;
  if (!loan->has_asked_state) {
    char *first = find_global(device, WS_IMAGE_STATES, "ws_launch_states", &lending->first_state, &loading);
    *lacks = loading == CUDA_ERROR_OUT_OF_MEMORY;
    loan->has_asked_state = true;
    pthread_mutex_lock(&lending->lock);
    const int state_idx = !first              ? -1
                          : loan->is_captured ? state_of_capture(lending, loan, &result)
                                              : state_of_stream(lending, loan, &result);
    pthread_mutex_unlock(&lending->lock);
    loan->state_idx = state_idx;
    if (state_idx >= 0) loan->state = (ws_launch_state *)(void *)first + state_idx;
  }
  *state = loan->state;
  return result;
}

CUresult ws_lend_state(ws_device *device, ws_loan *loan, ws_launch_state **state) {
  bool lacks;
  return find_state(device, loan, state, &lacks);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* One of those that are not passed on: the caller's already, or a free one. -1: none. */
static int find_kept(ws_lent *lent, int n, ws_tenure tenure, uint64_t owner) {
  for (int i = 0; i < n; i++)
    if (lent[i].tenure == tenure && lent[i].owner == owner) return i;
  for (int i = 0; i < n; i++)
    if (lent[i].tenure == WS_TENURE_FREE) {
      lent[i].tenure = tenure, lent[i].owner = owner;
      return i;
    }
  return -1;
}

static int sums_of(ws_lending *lending, ws_loan *loan, CUresult *result) {
  enum { LAST = WS_N_SUMS - 1 };
  ws_lent *last = &lending->sums[LAST];
  for (int i = 0; i < LAST; i++)
    if (lending->sums[i].tenure == WS_TENURE_CAPTURED) free_ended(lending, (int)lending->sums[i].owner);
  if (loan->is_captured) return find_kept(lending->sums, LAST, WS_TENURE_CAPTURED, (uint64_t)loan->state_idx);
  const int kept = find_kept(lending->sums, LAST, WS_TENURE_KEPT, loan->stream_id);
  if (kept >= 0) return kept;
  if (is_others(last, loan) && !has_ended(last)) return -1;
  *result = take(last, loan);
  return *result == CUDA_SUCCESS ? LAST : -1;
}

CUresult ws_lend_sums(ws_device *device, ws_loan *loan, char **memory) {
  ws_lending *lending = ws_device_lending(device);
  ws_launch_state *state = NULL;
  CUresult result = identify(loan), loading;
  *memory = loan->sums;
  if (result != CUDA_SUCCESS || loan->has_asked_sums) return result;
  /* with which it is given back */
  if (loan->is_captured) result = ws_lend_state(device, loan, &state);
  if (result != CUDA_SUCCESS || (loan->is_captured && !state)) return result;
  char *first = find_global(device, WS_IMAGE_SUMS, "ws_partial_sums", &lending->first_sums, &loading);
  if (!first) return CUDA_SUCCESS;
  pthread_mutex_lock(&lending->lock);
  const int sums = sums_of(lending, loan, &result);
  pthread_mutex_unlock(&lending->lock);
  if (sums >= 0) loan->sums = first + (int64_t)sums * WS_SUMS_BYTES;
  loan->has_asked_sums = true;
  *memory = loan->sums;
  return result;
}

/* ---- memory for copies ----------------------------------------------------------------------- */

/* All of it, or as large a part as there is room for. Allocating may happen while this thread's
 * stream is being captured; the relaxed mode lets it. What there was before stays: calls that use
 * it may be on their way, and all that is ever left so is less than the whole. */
static CUresult grow(ws_copies *copies, const ws_copies_need *need) {
  enum { N_RUNGS = 6 };
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUresult result = ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  if (result != CUDA_SUCCESS) return result;
  for (int rung = 0; rung < N_RUNGS; rung++) {
    const int64_t bytes = WS_COPIES_BYTES >> rung;
    CUdeviceptr at = 0;
    if (bytes <= copies->bytes || bytes < need->least) break;
    result = ws_cuda.cuMemAlloc(&at, (size_t)bytes);
    if (result == CUDA_SUCCESS) copies->memory = (char *)(uintptr_t)at, copies->bytes = bytes;
    if (result != CUDA_ERROR_OUT_OF_MEMORY) break;
  }
  ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return result;
}

/* Of calls that would only be faster with more the 1st, 2nd, 4th, 8th, ... tries to get it. */
static CUresult provide(ws_copies *copies, const ws_copies_need *need) {
  if (copies->bytes >= need->whole) return CUDA_SUCCESS;
  const bool is_enough = copies->bytes >= need->least;
  if (is_enough) copies->n_short++;
  if (is_enough && (copies->n_short & (copies->n_short - 1)) != 0) return CUDA_SUCCESS;
  const CUresult result = grow(copies, need);
  if (copies->bytes >= need->least) return CUDA_SUCCESS;
  return result == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : result;
}

/* Memory of which nobody can tell when its last call ends stays with that call, and is taken anew:
 * without any this call would have other bits. */
static void give_up_unknown(ws_copies *copies, const ws_loan *loan) {
  if (!is_others(&copies->lent, loan) || !copies->lent.is_unknown) return;
  copies->memory = NULL, copies->bytes = 0;
  copies->lent.tenure = WS_TENURE_FREE, copies->lent.is_unknown = false;
}

static CUresult copies_of_stream(ws_device *device, ws_loan *loan, const ws_copies_need *need) {
  ws_copies *copies = &ws_device_lending(device)->copies;
  ws_lending_hold(device, loan, copies, 1); /* not the memory itself, which nobody knows yet */
  give_up_unknown(copies, loan);
  CUresult result = provide(copies, need);
  if (!result && need->optional > 0 && need->least == 0 && copies->bytes < need->whole) return CUDA_SUCCESS;
  if (!result) result = take_with_wait(&copies->lent, loan);
  if (!result) loan->copies = copies->memory, loan->copies_bytes = copies->bytes;
  return result;
}

/* A node of the graph, which frees it, too. */
static CUresult copies_of_graph(ws_loan *loan, const ws_copies_need *need) {
  const CUresult result = ws_cuda.cuMemAllocAsync(&loan->allocated, (size_t)need->whole, loan->stream);
  if (result != CUDA_SUCCESS) loan->allocated = 0;
  loan->copies = (char *)(uintptr_t)loan->allocated, loan->copies_bytes = need->whole;
  return result;
}

/* Where a graph can have none: the library's, of one captured call at a time. */
static CUresult copies_of_capture(ws_device *device, ws_loan *loan, const ws_copies_need *need, const char **lacks) {
  ws_lending *lending = ws_device_lending(device);
  ws_copies *copies = &lending->captured;
  ws_launch_state *state;
  bool lacks_states;
  CUresult result = find_state(device, loan, &state, &lacks_states);
  if (result != CUDA_SUCCESS) return result;
  if (!state) {
    *lacks = lacks_states ? "launch states" : "one more launch state of a captured call";
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  ws_lending_hold(device, loan, copies, 1);
  pthread_mutex_lock(&lending->lock);
  if (copies->lent.tenure == WS_TENURE_CAPTURED) free_ended(lending, (int)copies->lent.owner);
  const bool is_free = find_kept(&copies->lent, 1, WS_TENURE_CAPTURED, (uint64_t)loan->state_idx) >= 0;
  pthread_mutex_unlock(&lending->lock);
  if (!is_free) {
    *lacks = "copies of operands in a second captured call";
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  result = provide(copies, need);
  if (!result) loan->copies = copies->memory, loan->copies_bytes = copies->bytes;
  return result;
}

CUresult ws_lend_copies(ws_device *device, ws_loan *loan, const ws_copies_need *need, char **memory, int64_t *bytes,
                        const char **lacks) {
  CUresult result = identify(loan);
  const ws_copies_need in_graph = {need->whole - need->optional, need->least, 0};
  *lacks = "copies of operands";
  if (!result && !loan->has_asked_copies && (!loan->is_captured || in_graph.whole > 0)) {
    const bool by_node = device->has_pools && ws_cuda.cuMemAllocAsync && ws_cuda.cuMemFreeAsync;
    result = !loan->is_captured ? copies_of_stream(device, loan, need)
             : by_node          ? copies_of_graph(loan, &in_graph)
                                : copies_of_capture(device, loan, &in_graph, lacks);
    loan->has_asked_copies = true;
  }
  *memory = loan->copies, *bytes = loan->copies_bytes;
  return result;
}
