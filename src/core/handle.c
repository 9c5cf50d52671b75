/* handle.c - see handle.h. */
#include "core/handle.h"

#include <pthread.h>

wsgemm_handle ws_default_handle = {.magic = WS_HANDLE_MAGIC};
ws_settings ws_default_settings = {.math = WSGEMM_MATH_DEFAULT};
ws_device_set ws_default_devices;

/* Of all handles. Held over a fork, as its owner may not be in the child. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
void ws_settings_lock(void) { pthread_mutex_lock(&lock); }
void ws_settings_unlock(void) { pthread_mutex_unlock(&lock); }

ws_caller_workspace ws_caller_workspace_get(const wsgemm_handle *h) {
  ws_settings_lock();
  const ws_caller_workspace workspace = h->workspace;
  ws_settings_unlock();
  return workspace;
}

void ws_caller_workspace_set(wsgemm_handle *h, const ws_caller_workspace *workspace) {
  ws_settings_lock();
  h->workspace = *workspace;
  ws_settings_unlock();
}

ws_logger ws_logger_get(const wsgemm_handle *h) {
  ws_settings_lock();
  const ws_logger logger = h->logger;
  ws_settings_unlock();
  return logger;
}

void ws_logger_set(wsgemm_handle *h, ws_logger logger) {
  ws_settings_lock();
  h->logger = logger;
  ws_settings_unlock();
}

ws_progress ws_progress_get(const wsgemm_handle *h) {
  ws_settings_lock();
  const ws_progress progress = h->progress;
  ws_settings_unlock();
  return progress;
}

void ws_progress_set(wsgemm_handle *h, ws_progress progress) {
  ws_settings_lock();
  h->progress = progress;
  ws_settings_unlock();
}

const ws_setting_range ws_setting_ranges[] = {
#define RANGE(name, public_name, least, most, bits) [WS_SETTING_##name] = {public_name, least, most},
    WS_SETTINGS(RANGE)
#undef RANGE
};

int ws_setting_get(ws_settings settings, ws_setting which) {
  switch (which) {
#define CASE(name, public_name, least, most, bits) \
  case WS_SETTING_##name:                          \
    return (int)settings.name;
    WS_SETTINGS(CASE)
#undef CASE
  }
  return 0;
}

void ws_setting_put(ws_settings *settings, ws_setting which, int value) {
  switch (which) {
#define CASE(name, public_name, least, most, bits)                     \
  case WS_SETTING_##name:                                              \
    settings->name = (unsigned)value & (unsigned)((1ull << bits) - 1); \
    break;
    WS_SETTINGS(CASE)
#undef CASE
  }
}

void ws_setting_set(wsgemm_handle *h, ws_setting which, int value) {
  ws_settings was = atomic_load_explicit(&h->settings, memory_order_relaxed), now;
  do {
    now = was;
    ws_setting_put(&now, which, value);
  } while (!atomic_compare_exchange_weak(&h->settings, &was, now));
}

void ws_forced_row_set(wsgemm_handle *h, ws_backend_id backend, wsgemm_type type, int row) {
  const int shift = WS_FORCED_ROW_BITS * (int)type;
  ws_forced_rows was = atomic_load_explicit(&h->forced[backend], memory_order_relaxed), now;
  do now.word = (was.word & ~((uint64_t)WS_MOST_ROWS << shift)) | (uint64_t)row << shift;
  while (!atomic_compare_exchange_weak(&h->forced[backend], &was, now));
}
