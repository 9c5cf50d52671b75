/* handle.c - handles and their settings. */
#include <stdlib.h>

#include "core/backend.h"
#include "core/cancel.h"
#include "core/processors.h"
#include "core/status.h"

wsgemm_status wsgemm_create(wsgemm_handle **out) {
  if (!out) return ws_fail(NULL, WSGEMM_INVALID_POINTER, "out is NULL");
  ws_start();
  wsgemm_handle *h = calloc(1, sizeof *h);
  if (!h) return ws_fail(NULL, WSGEMM_ALLOC_FAILED, "no memory for a handle of %zu bytes", sizeof *h);
  atomic_store(&h->settings, ws_default_settings);
  atomic_store(&h->devices, ws_default_devices);
  atomic_store(&h->magic, WS_HANDLE_MAGIC);
  *out = h;
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_destroy(wsgemm_handle *h) {
  if (!h) return WSGEMM_SUCCESS;
  if (!ws_handle(h)) return ws_fail_handle();
  atomic_store(&h->magic, 0);
  free(h);
  return WSGEMM_SUCCESS;
}

/* ---- the settings that are small numbers ----------------------------------------------------- */

static wsgemm_status set(wsgemm_handle *handle, ws_setting which, int value) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  const ws_setting_range *legal = &ws_setting_ranges[which];
  if (value < legal->least || value > legal->most)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is %d; it must be %d .. %d", legal->public_name, value, legal->least,
                   legal->most);
  ws_setting_set(h, which, value);
  return WSGEMM_SUCCESS;
}

static wsgemm_status get(wsgemm_handle *handle, ws_setting which, int *value) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  if (!value) return ws_fail(h, WSGEMM_INVALID_POINTER, "%s is NULL", ws_setting_ranges[which].public_name);
  *value = ws_setting_get(atomic_load(&h->settings), which);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_num_threads(wsgemm_handle *h, int n_threads) { return set(h, WS_SETTING_n_threads, n_threads); }
wsgemm_status wsgemm_get_num_threads(wsgemm_handle *h, int *n_threads) { return get(h, WS_SETTING_n_threads, n_threads); }
wsgemm_status wsgemm_set_policy(wsgemm_handle *h, wsgemm_policy policy) { return set(h, WS_SETTING_policy, (int)policy); }
wsgemm_status wsgemm_get_policy(wsgemm_handle *h, wsgemm_policy *policy) {
  int value = 0;
  const wsgemm_status status = get(h, WS_SETTING_policy, policy ? &value : NULL);
  if (!status) *policy = (wsgemm_policy)value;
  return status;
}
wsgemm_status wsgemm_set_coarse_factor(wsgemm_handle *h, int coarse_factor) { return set(h, WS_SETTING_coarse, coarse_factor); }
wsgemm_status wsgemm_get_coarse_factor(wsgemm_handle *h, int *coarse_factor) { return get(h, WS_SETTING_coarse, coarse_factor); }
wsgemm_status wsgemm_set_quantum(wsgemm_handle *h, int quantum) { return set(h, WS_SETTING_quantum, quantum); }
wsgemm_status wsgemm_get_quantum(wsgemm_handle *h, int *quantum) { return get(h, WS_SETTING_quantum, quantum); }
wsgemm_status wsgemm_set_math(wsgemm_handle *h, wsgemm_math math) { return set(h, WS_SETTING_math, (int)math); }
wsgemm_status wsgemm_get_math(wsgemm_handle *h, wsgemm_math *math) {
  int value = 0;
  const wsgemm_status status = get(h, WS_SETTING_math, math ? &value : NULL);
  if (!status) *math = (wsgemm_math)value;
  return status;
}
wsgemm_status wsgemm_set_check(wsgemm_handle *h, int enabled) { return set(h, WS_SETTING_check, enabled); }
wsgemm_status wsgemm_get_check(wsgemm_handle *h, int *enabled) { return get(h, WS_SETTING_check, enabled); }
wsgemm_status wsgemm_set_invariant(wsgemm_handle *h, int enabled) { return set(h, WS_SETTING_invariant, enabled); }
wsgemm_status wsgemm_get_invariant(wsgemm_handle *h, int *enabled) { return get(h, WS_SETTING_invariant, enabled); }

int wsgemm_default_num_threads(void) {
  ws_start();
  return ws_default_threads();
}

int wsgemm_set_num_threads_local(int n_threads) { return ws_set_limit_of_thread(n_threads); }

/* ---- the others ------------------------------------------------------------------------------ */

wsgemm_status wsgemm_set_kernel(wsgemm_handle *handle, const char *name) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  if (!name || !*name) {
    for (int b = 0; b < WS_N_BACKENDS; b++) atomic_store(&h->forced[b], (ws_forced_rows){0});
    return WSGEMM_SUCCESS;
  }
  for (int b = 0; b < WS_N_BACKENDS; b++) {
    const ws_backend *backend = ws_backends[b];
    const int row = backend ? backend->row_find(name) : -1;
    if (row < 0) continue;
    const char *lacks = backend->row_lacks(row);
    if (lacks) return ws_fail(h, WSGEMM_NOT_SUPPORTED, "kernel %s needs %s, which this machine lacks", name, lacks);
    ws_forced_row_set(h, (ws_backend_id)b, ws_row_info(backend, row).type, row + 1);
    return WSGEMM_SUCCESS;
  }
  return ws_fail(h, WSGEMM_INVALID_VALUE, "name is \"%.60s\"; no kernel row is called so", name);
}

wsgemm_status wsgemm_set_stream(wsgemm_handle *h, void *stream) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  atomic_store(&h->stream, stream);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_get_stream(wsgemm_handle *h, void **stream) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  if (!stream) return ws_fail(h, WSGEMM_INVALID_POINTER, "stream is NULL");
  *stream = atomic_load(&h->stream);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes) {
  WS_UNCANCELLED;
  if (!(h = ws_handle(h))) return ws_fail_handle();
  if (!workspace && bytes > 0) return ws_fail(h, WSGEMM_INVALID_POINTER, "workspace is NULL, but bytes is %zu", bytes);
  if (!ws_devices) return workspace ? ws_fail(h, WSGEMM_NO_DEVICE, "there is no GPU driver") : WSGEMM_SUCCESS;
  return ws_devices->set_workspace(h, workspace, bytes);
}

wsgemm_status wsgemm_get_fallback_count(wsgemm_handle *h, int device, int64_t *count) {
  WS_UNCANCELLED;
  if (!(h = ws_handle(h))) return ws_fail_handle();
  if (!count) return ws_fail(h, WSGEMM_INVALID_POINTER, "count is NULL");
  if (device < 0) return ws_fail(h, WSGEMM_INVALID_VALUE, "device is %d; it must be at least 0", device);
  *count = 0;
  return ws_devices ? ws_devices->fallback_count(h, device, count) : WSGEMM_SUCCESS;
}

/* ---- host matrices on GPUs ------------------------------------------------------------------- */

enum { N_ORDINALS = 8 * (int)sizeof(ws_device_set) };

static wsgemm_status device_set_of(wsgemm_handle *h, const int *devices, int n_devices, ws_device_set *set) {
  *set = n_devices < 0 ? WS_ALL_DEVICES : 0;
  if (n_devices < -1 || n_devices > N_ORDINALS)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "n_devices is %d; it must be -1 .. %d", n_devices, N_ORDINALS);
  if (n_devices > 0 && !devices) return ws_fail(h, WSGEMM_INVALID_POINTER, "devices is NULL");
  for (int i = 0; i < n_devices; i++) {
    if (devices[i] < 0 || devices[i] >= N_ORDINALS)
      return ws_fail(h, WSGEMM_INVALID_VALUE, "devices[%d] is %d; it must be 0 .. %d", i, devices[i], N_ORDINALS - 1);
    if (*set >> devices[i] & 1) return ws_fail(h, WSGEMM_INVALID_VALUE, "devices[%d] is %d, as one before it", i, devices[i]);
    *set |= (ws_device_set)1 << devices[i];
  }
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_devices(wsgemm_handle *h, const int *devices, int n_devices) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  ws_device_set set;
  const wsgemm_status status = device_set_of(h, devices, n_devices, &set);
  if (!status) atomic_store(&h->devices, set);
  return status;
}

wsgemm_status wsgemm_get_devices(wsgemm_handle *h, int *devices, int room, int *n_devices) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  if (!n_devices) return ws_fail(h, WSGEMM_INVALID_POINTER, "n_devices is NULL");
  if (room > 0 && !devices) return ws_fail(h, WSGEMM_INVALID_POINTER, "devices is NULL");
  const ws_device_set set = atomic_load(&h->devices);
  int n = 0;
  for (int ordinal = 0; ordinal < N_ORDINALS && set != WS_ALL_DEVICES; ordinal++)
    if (set >> ordinal & 1) {
      if (n < room) devices[n] = ordinal;
      n++;
    }
  *n_devices = set == WS_ALL_DEVICES ? -1 : n;
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_offload(wsgemm_handle *h, wsgemm_offload when) { return set(h, WS_SETTING_offload, (int)when); }
wsgemm_status wsgemm_get_offload(wsgemm_handle *h, wsgemm_offload *when) {
  int value = 0;
  const wsgemm_status status = get(h, WS_SETTING_offload, when ? &value : NULL);
  if (!status) *when = (wsgemm_offload)value;
  return status;
}

wsgemm_status wsgemm_set_pinned_limit(size_t bytes) {
  ws_start();
  if (ws_devices) ws_devices->set_pinned_limit(bytes);
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_progress(wsgemm_handle *h, wsgemm_progress progress, void *user) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  ws_progress_set(h, (ws_progress){progress, user});
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_set_logger(wsgemm_handle *h, wsgemm_logger logger, void *user) {
  if (!(h = ws_handle(h))) return ws_fail_handle();
  ws_logger_set(h, (ws_logger){logger, user});
  return WSGEMM_SUCCESS;
}
