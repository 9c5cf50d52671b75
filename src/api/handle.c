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

/* wsgemm_set_NAME and wsgemm_get_NAME of a number, and of a value of the enumeration wsgemm_NAME. */
#define NUMBER(name, setting)                                                                                  \
  wsgemm_status wsgemm_set_##name(wsgemm_handle *h, int value) { return set(h, WS_SETTING_##setting, value); } \
  wsgemm_status wsgemm_get_##name(wsgemm_handle *h, int *value) { return get(h, WS_SETTING_##setting, value); }
#define CHOICE(name)                                                                                                         \
  wsgemm_status wsgemm_set_##name(wsgemm_handle *h, wsgemm_##name choice) { return set(h, WS_SETTING_##name, (int)choice); } \
  wsgemm_status wsgemm_get_##name(wsgemm_handle *h, wsgemm_##name *choice) {                                                 \
    int value = 0;                                                                                                           \
    const wsgemm_status status = get(h, WS_SETTING_##name, choice ? &value : NULL);                                          \
    if (!status) *choice = (wsgemm_##name)value;                                                                             \
    return status;                                                                                                           \
  }
NUMBER(num_threads, n_threads)
NUMBER(coarse_factor, coarse)
NUMBER(quantum, quantum)
NUMBER(check, check)
NUMBER(invariant, invariant)
CHOICE(policy)
CHOICE(math)
CHOICE(offload)
#undef NUMBER
#undef CHOICE

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
