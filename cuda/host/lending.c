/* lending.c - see lending.h. */
#include "cuda/host/lending.h"

#include "cuda/host/device.h"
#include "cuda/host/image.h"

/* ---- the lock ------------------------------------------------------------------------------------------------------------------- */

static void lock(ws_lending *lending, ws_loan *loan) {
  if (!loan->is_locked) pthread_mutex_lock(&lending->lock);
  loan->is_locked = true;
}

/* Unless the call holds it, or has taken what its next user must not find before the call's end is recorded. */
static void unlock(ws_lending *lending, ws_loan *loan) {
  if (!loan->is_locked || loan->is_held || loan->n_passed > 0) return;
  pthread_mutex_unlock(&lending->lock);
  loan->is_locked = false;
}

void ws_lending_hold(ws_device *device, ws_loan *loan) {
  lock(ws_device_lending(device), loan);
  loan->is_held = true;
}

void ws_lending_end(ws_device *device, ws_loan *loan) {
  for (int i = 0; i < loan->n_passed; i++)
    loan->passed[i]->is_unknown = ws_cuda.cuEventRecord(loan->passed[i]->ended, loan->stream) != CUDA_SUCCESS;
  loan->n_passed = 0, loan->is_held = false;
  unlock(ws_device_lending(device), loan);
}

static CUresult identify(ws_loan *loan) {
  if (loan->is_known) return CUDA_SUCCESS;
  CUstreamCaptureStatus capturing;
  unsigned long long id = 0;
  CUresult result = ws_cuda.cuStreamGetCaptureInfo(loan->stream, &capturing, NULL, &loan->graph, NULL, NULL);
  if (!result && capturing == CU_STREAM_CAPTURE_STATUS_NONE) result = ws_cuda.cuStreamGetId(loan->stream, &id);
  if (result != CUDA_SUCCESS) return result;
  loan->is_captured = capturing != CU_STREAM_CAPTURE_STATUS_NONE;
  if (capturing != CU_STREAM_CAPTURE_STATUS_ACTIVE) loan->graph = NULL; /* a capture that has failed has none */
  loan->stream_id = id;
  loan->is_known = true;
  return CUDA_SUCCESS;
}

/* ---- what is passed on ---------------------------------------------------------------------------------------------------------- */

/* Whether the last call with it has ended. While another thread captures, only the relaxed mode lets that be asked. */
static bool has_ended(const ws_piece *piece) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (piece->is_unknown || ws_cuda.cuThreadExchangeStreamCaptureMode(&mode) != CUDA_SUCCESS) return false;
  const bool ended = ws_cuda.cuEventQuery(piece->ended) == CUDA_SUCCESS;
  ws_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return ended;
}

/* waits: if the last call with it has not ended, the stream does so; else the piece is not to be had. */
static bool take_passed(ws_piece *piece, ws_loan *loan, bool waits, CUresult *result) {
  const bool is_others = piece->tenure == WS_TENURE_PASSED && piece->owner != loan->stream_id;
  if (is_others && waits && piece->is_unknown) *result = CUDA_ERROR_NOT_READY; /* without it the call would have other bits */
  if (is_others && waits && *result == CUDA_SUCCESS) *result = ws_cuda.cuStreamWaitEvent(loan->stream, piece->ended, 0);
  if (is_others && !waits && !has_ended(piece)) return false;
  if (*result == CUDA_SUCCESS && !piece->ended) *result = ws_cuda.cuEventCreate(&piece->ended, CU_EVENT_DISABLE_TIMING);
  if (*result != CUDA_SUCCESS) return false;
  piece->tenure = WS_TENURE_PASSED, piece->owner = loan->stream_id;
  loan->passed[loan->n_passed++] = piece;
  return true;
}

/* ---- what is captured ----------------------------------------------------------------------------------------------------------- */

/* Called by the driver's own thread, which must not wait: so without the lock. Release: pairs with the acquire in free_ended. */
static void CUDA_CB end_graph(void *state) {
  atomic_store_explicit(&((ws_lent_state *)state)->is_over, true, memory_order_release);
}

static void free_pieces(ws_piece *pieces, int n, uint64_t owner) {
  for (int i = 0; i < n; i++)
    if (pieces[i].tenure == WS_TENURE_CAPTURED && pieces[i].owner == owner) pieces[i].tenure = WS_TENURE_FREE;
}

/* Takes back what a captured call was lent, if its graph has ended. Acquire: pairs with the release in end_graph. */
static void free_ended(ws_lending *lending, int state_idx) {
  ws_lent_state *s = &lending->state[state_idx];
  if (s->piece.tenure != WS_TENURE_CAPTURED || !atomic_load_explicit(&s->is_over, memory_order_acquire)) return;
  s->piece.tenure = WS_TENURE_FREE;
  free_pieces(lending->sums, WS_N_SUMS, (uint64_t)state_idx);
  free_pieces(lending->copies, WS_N_COPIES, (uint64_t)state_idx);
}

static bool keep_for_graph(ws_lent_state *s, ws_loan *loan, CUresult *result) {
  CUuserObject object;
  atomic_store_explicit(&s->is_over, false, memory_order_relaxed);
  *result = ws_cuda.cuUserObjectCreate(&object, s, end_graph, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (*result != CUDA_SUCCESS) return false;
  s->piece.tenure = WS_TENURE_CAPTURED;
  *result = ws_cuda.cuGraphRetainUserObject(loan->graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (*result == CUDA_SUCCESS) return true;
  ws_cuda.cuUserObjectRelease(object, 1); /* which calls end_graph */
  return false;
}

/* ---- states --------------------------------------------------------------------------------------------------------------------- */

static uint16_t *hint_for(ws_lending *lending, uint64_t stream_id) { return &lending->hint[stream_id % WS_N_HINTS]; }

static bool is_of_stream(const ws_lending *lending, int state_idx, uint64_t stream_id) {
  const ws_piece *piece = &lending->state[state_idx].piece;
  return (piece->tenure == WS_TENURE_KEPT || piece->tenure == WS_TENURE_PASSED) && piece->owner == stream_id;
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

/* One of those that are not kept; -1: none. Few that were passed are asked for, as most that follow each other are alike. */
static int find_other(ws_lending *lending) {
  enum { N_OTHERS = WS_N_STATES - WS_N_KEPT_STATES, MOST_QUERIES = 8 };
  if (lending->n_others < N_OTHERS) return WS_N_KEPT_STATES + lending->n_others++;
  int n_queries = 0;
  for (int i = 0; i < N_OTHERS; i++) {
    const int state_idx = WS_N_KEPT_STATES + lending->next_other;
    const ws_piece *piece = &lending->state[state_idx].piece;
    lending->next_other = (lending->next_other + 1) % N_OTHERS;
    free_ended(lending, state_idx);
    if (piece->tenure == WS_TENURE_FREE) return state_idx;
    if (piece->tenure != WS_TENURE_PASSED) continue;
    if (has_ended(piece)) return state_idx;
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
    lending->state[state_idx].piece = (ws_piece){.tenure = WS_TENURE_KEPT, .owner = loan->stream_id};
  }
  if (state_idx < 0) state_idx = find_other(lending);
  if (state_idx < 0) return -1;
  if (lending->state[state_idx].piece.tenure != WS_TENURE_KEPT) {
    lending->state[state_idx].piece.owner = loan->stream_id; /* another's has ended, as find_other has seen */
    if (!take_passed(&lending->state[state_idx].piece, loan, false, result)) return -1;
  }
  *hint_for(lending, loan->stream_id) = (uint16_t)state_idx;
  return state_idx;
}

static CUresult find_state(ws_device *device, ws_loan *loan) {
  ws_lending *lending = ws_device_lending(device);
  CUresult result = identify(loan);
  if (result != CUDA_SUCCESS || loan->has_asked) return result;
  void *first = lending->first_state;
  if (!first && ws_device_global(device, WS_IMAGE_STATES, "ws_launch_states", &first) == CUDA_SUCCESS)
    lending->first_state = first;
  loan->state_idx = !lending->first_state ? -1
                    : loan->is_captured   ? state_of_capture(lending, loan, &result)
                                          : state_of_stream(lending, loan, &result);
  loan->has_asked = true;
  return result;
}

CUresult ws_lend_state(ws_device *device, ws_loan *loan, ws_launch_state **state) {
  ws_lending *lending = ws_device_lending(device);
  lock(lending, loan);
  const CUresult result = find_state(device, loan);
  *state = result == CUDA_SUCCESS && loan->state_idx >= 0 ? lending->first_state + loan->state_idx : NULL;
  unlock(lending, loan);
  return result;
}

/* ---- memory --------------------------------------------------------------------------------------------------------------------- */

/* One of the pieces that are not passed on: the caller's already, or a free one. -1: none. */
static int find_kept(ws_piece *pieces, int n, ws_tenure tenure, uint64_t owner) {
  for (int i = 0; i < n; i++)
    if (pieces[i].tenure == tenure && pieces[i].owner == owner) return i;
  for (int i = 0; i < n; i++)
    if (pieces[i].tenure == WS_TENURE_FREE) {
      pieces[i].tenure = tenure, pieces[i].owner = owner;
      return i;
    }
  return -1;
}

static void free_of_ended(ws_lending *lending, ws_piece *pieces, int n) {
  for (int i = 0; i < n; i++)
    if (pieces[i].tenure == WS_TENURE_CAPTURED) free_ended(lending, (int)pieces[i].owner);
}

static int sums_of(ws_lending *lending, ws_loan *loan, CUresult *result) {
  enum { LAST = WS_N_SUMS - 1 };
  free_of_ended(lending, lending->sums, LAST);
  if (loan->is_captured) return find_kept(lending->sums, LAST, WS_TENURE_CAPTURED, (uint64_t)loan->state_idx);
  const int kept = find_kept(lending->sums, LAST, WS_TENURE_KEPT, loan->stream_id);
  if (kept >= 0) return kept;
  return take_passed(&lending->sums[LAST], loan, false, result) ? LAST : -1;
}

static int copies_of(ws_lending *lending, ws_loan *loan, CUresult *result) {
  if (!loan->is_captured) {
    loan->is_held = true; /* also over a piece that is kept, as calls launch several times with it */
    return take_passed(&lending->copies[0], loan, true, result) ? 0 : -1;
  }
  free_of_ended(lending, lending->copies + 1, WS_N_COPIES - 1);
  const int kept = find_kept(lending->copies + 1, WS_N_COPIES - 1, WS_TENURE_CAPTURED, (uint64_t)loan->state_idx);
  return kept < 0 ? -1 : kept + 1;
}

static CUresult find_memory(ws_device *device, ws_loan *loan, ws_memory which) {
  ws_lending *lending = ws_device_lending(device);
  const bool is_sums = which == WS_MEMORY_SUMS;
  char **first = is_sums ? &lending->first_sums : &lending->first_copies;
  CUresult result = identify(loan);
  if (!result && loan->is_captured) result = find_state(device, loan); /* with which it is given back */
  if (result != CUDA_SUCCESS || (loan->is_captured && loan->state_idx < 0)) return result;
  if (!*first) { /* an image that did not load is tried again */
    void *at = NULL;
    result = ws_device_global(device, is_sums ? WS_IMAGE_SUMS : WS_IMAGE_COPIES,
                              is_sums ? "ws_partial_sums" : "ws_operand_copies", &at);
    if (result != CUDA_SUCCESS) return is_sums || ws_device_lacks(result) ? CUDA_SUCCESS : result;
    *first = at;
  }
  const int piece = is_sums ? sums_of(lending, loan, &result) : copies_of(lending, loan, &result);
  if (piece >= 0) loan->memory[which] = *first + (int64_t)piece * (is_sums ? WS_SUMS_BYTES : WS_COPIES_BYTES);
  return result;
}

CUresult ws_lend_memory(ws_device *device, ws_loan *loan, ws_memory which, char **memory) {
  CUresult result = CUDA_SUCCESS;
  if (!loan->has_asked_for[which]) {
    lock(ws_device_lending(device), loan);
    result = find_memory(device, loan, which);
    unlock(ws_device_lending(device), loan);
  }
  loan->has_asked_for[which] = true;
  *memory = loan->memory[which];
  return result;
}
