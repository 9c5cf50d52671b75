/* handles.c - a record for each handle of cuBLAS and cuBLASLt, and the functions that make, change and
 * end handles, which are the real ones' but for what the record keeps.
 *
 * Records are in one list that only grows; a free one is used again. Reading takes no lock. A handle
 * that was made where this library cannot see it (dlvsym) gets its record with its first call. */
#include <stdatomic.h>
#include <stdlib.h>

#include "cublas/cublas.h"

static _Atomic(ws_cublas_state *) first;
static atomic_bool is_forked;
__thread int ws_cublas_depth __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A child whose parent had no handle yet may use CUDA as any process. */
static void note_fork(void) { atomic_store(&is_forked, atomic_load(&first) != NULL); }
__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, note_fork); }
bool ws_cublas_is_forked(void) { return atomic_load_explicit(&is_forked, memory_order_relaxed); }

static ws_cublas_state *find(void *handle) {
  for (ws_cublas_state *s = atomic_load_explicit(&first, memory_order_acquire); s; s = s->next)
    if (atomic_load_explicit(&s->key, memory_order_acquire) == handle) return s;
  return NULL;
}

/* A free record for this handle, or a new one. */
static ws_cublas_state *add(void *handle) {
  for (ws_cublas_state *s = atomic_load_explicit(&first, memory_order_acquire); s; s = s->next) {
    void *none = NULL;
    if (atomic_compare_exchange_strong(&s->key, &none, handle)) return s;
  }
  ws_cublas_state *const s = calloc(1, sizeof *s);
  if (!s) return NULL;
  pthread_mutex_init(&s->lock, NULL);
  atomic_init(&s->key, handle);
  s->next = atomic_load_explicit(&first, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&first, &s->next, s, memory_order_release, memory_order_relaxed)) {
  }
  return s;
}

/* Threads that meet a handle for the first time at once must not make two records of it. */
ws_cublas_state *ws_cublas_state_of(void *handle, bool is_wanted) {
  static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
  if (!handle) return NULL;
  ws_cublas_state *s = find(handle);
  if (s || !is_wanted) return s;
  pthread_mutex_lock(&adding);
  s = find(handle);
  if (!s) s = add(handle);
  pthread_mutex_unlock(&adding);
  return s;
}

ws_cublas_any ws_cublas_real(ws_cublas_function function, void *handle) {
  const ws_cublas_state *const s = ws_cublas_state_of(handle, false);
  return ws_cublas_function_of(s ? s->library : NULL, function);
}

/* A new handle of this library; a record that an end unseen has left is begun anew. */
static void begin(void *handle, ws_cublas_library *library) {
  ws_cublas_state *const s = ws_cublas_state_of(handle, true);
  if (!s) return;
  pthread_mutex_lock(&s->lock);
  s->library = library;
  s->workspace = NULL, s->workspace_bytes = 0;
  pthread_mutex_unlock(&s->lock);
}

/* Before the real handle ends: then another thread may get a new one of the same address. */
static void end(void *handle) {
  ws_cublas_state *const s = ws_cublas_is_forked() ? NULL : ws_cublas_state_of(handle, false);
  if (!s) return;
  pthread_mutex_lock(&s->lock);
  wsgemm_destroy(s->handle);
  s->handle = NULL, s->library = NULL;
  s->workspace = NULL, s->workspace_bytes = 0;
  pthread_mutex_unlock(&s->lock);
  atomic_store_explicit(&s->key, NULL, memory_order_release);
}

static void set_workspace(void *handle, void *workspace, size_t bytes) {
  ws_cublas_state *const s = ws_cublas_is_forked() ? NULL : ws_cublas_state_of(handle, workspace != NULL);
  if (!s) return;
  pthread_mutex_lock(&s->lock);
  s->workspace = workspace, s->workspace_bytes = bytes;
  pthread_mutex_unlock(&s->lock);
}

/* Calls a real function of this type, if there is one, from within it. */
#define CALL_REAL(function, ...) \
  (function ? (ws_cublas_depth++, status = function(__VA_ARGS__), ws_cublas_depth--, status) : CUBLAS_STATUS_NOT_INITIALIZED)

/* By name the caller says which library makes the handle, by dlsym the function itself. */
#define CREATE(symbol, handle_type)                                                                                       \
  static cublasStatus_t symbol##_in(ws_cublas_library *library, handle_type *handle) {                                    \
    cublasStatus_t status;                                                                                                \
    const __typeof__(&symbol) create = (__typeof__(&symbol))ws_cublas_function_of(library, WS_##symbol);                  \
    const cublasStatus_t result = CALL_REAL(create, handle);                                                              \
    if (result == CUBLAS_STATUS_SUCCESS && ws_cublas_depth == 0 && !ws_cublas_is_forked()) begin(*handle, library);       \
    return result;                                                                                                        \
  }                                                                                                                       \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(handle_type *handle) {                                                           \
    return symbol##_in(ws_cublas_library_of(WS_##symbol, __builtin_return_address(0)), handle);                           \
  }                                                                                                                       \
  NUMBERED(symbol, handle_type, 0)                                                                                        \
  NUMBERED(symbol, handle_type, 1)                                                                                        \
  NUMBERED(symbol, handle_type, 2)                                                                                        \
  NUMBERED(symbol, handle_type, 3)                                                                                        \
  NUMBERED(symbol, handle_type, 4)                                                                                        \
  NUMBERED(symbol, handle_type, 5)                                                                                        \
  NUMBERED(symbol, handle_type, 6)                                                                                        \
  NUMBERED(symbol, handle_type, 7)                                                                                        \
  static const __typeof__(&symbol) all_##symbol[WS_CUBLAS_N_LIBRARIES] = {symbol##_0, symbol##_1, symbol##_2, symbol##_3, \
                                                                          symbol##_4, symbol##_5, symbol##_6, symbol##_7};
#define NUMBERED(symbol, handle_type, number) \
  static cublasStatus_t symbol##_##number(handle_type *handle) { return symbol##_in(ws_cublas_library_at(number), handle); }
CREATE(cublasCreate_v2, cublasHandle_t)
CREATE(cublasLtCreate, cublasLtHandle_t)

ws_cublas_any ws_cublas_create_of(ws_cublas_function function, int number) {
  return function == WS_cublasCreate_v2  ? (ws_cublas_any)all_cublasCreate_v2[number]
         : function == WS_cublasLtCreate ? (ws_cublas_any)all_cublasLtCreate[number]
                                         : NULL;
}

#define DESTROY(symbol, handle_type)                                    \
  WS_CUBLAS_EXPORT cublasStatus_t symbol(handle_type handle) {          \
    cublasStatus_t status;                                              \
    const __typeof__(&symbol) destroy = WS_CUBLAS_REAL(symbol, handle); \
    if (ws_cublas_depth == 0) end(handle);                              \
    return CALL_REAL(destroy, handle);                                  \
  }
DESTROY(cublasDestroy_v2, cublasHandle_t)
DESTROY(cublasLtDestroy, cublasLtHandle_t)

WS_CUBLAS_EXPORT cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes) {
  cublasStatus_t status;
  const __typeof__(&cublasSetWorkspace_v2) set = WS_CUBLAS_REAL(cublasSetWorkspace_v2, handle);
  const cublasStatus_t result = CALL_REAL(set, handle, workspace, bytes);
  if (result == CUBLAS_STATUS_SUCCESS && ws_cublas_depth == 0) set_workspace(handle, workspace, bytes);
  return result;
}

/* cuBLAS then goes back to its own workspace. */
WS_CUBLAS_EXPORT cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream) {
  cublasStatus_t status;
  const __typeof__(&cublasSetStream_v2) set = WS_CUBLAS_REAL(cublasSetStream_v2, handle);
  const cublasStatus_t result = CALL_REAL(set, handle, stream);
  if (result == CUBLAS_STATUS_SUCCESS && ws_cublas_depth == 0) set_workspace(handle, NULL, 0);
  return result;
}
