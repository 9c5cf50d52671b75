/* handle.h - a handle's settings, and the call: what of them a call goes by.
 *
 * A setting changes for calls that begin later. So each call reads the settings once, at the API's
 * edge, and what lies below goes by what it read (ws_call): no two parts of a call see different
 * ones. The small settings are one word, which is read and replaced whole; so are the forced rows
 * of a backend. What is larger than a word (workspace, logger) is read and replaced under one
 * lock. */
#ifndef WS_HANDLE_H
#define WS_HANDLE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/policy.h"
#include "core/start.h"
#include "core/types.h"
#include "wsgemm.h"

enum { WS_MAX_WORKERS = 256, WS_COARSE_MAX = 64, WS_QUANTUM_MAX = 1 << 20 };

/* X(name, its public name, least, most, bits): 0 is automatic, or off. 32 bits, and again, so that
 * the word has no padding. */
#define WS_SETTINGS(X)                                      \
  X(n_threads, "n_threads", 0, WS_MAX_WORKERS, 10)          \
  X(policy, "policy", 0, WS_N_POLICIES - 1, 4)              \
  X(coarse, "coarse_factor", 0, WS_COARSE_MAX, 8)           \
  X(math, "math", WSGEMM_MATH_DEFAULT, WSGEMM_MATH_TF32, 8) \
  X(check, "enabled", 0, 1, 1)                              \
  X(invariant, "enabled", 0, 1, 1)                          \
  X(quantum, "quantum", 0, WS_QUANTUM_MAX, 24)              \
  X(offload, "when", 0, WSGEMM_OFFLOAD_AUTO, 1)

typedef struct ws_settings {
#define WS_SETTING_MEMBER(name, public_name, least, most, bits) unsigned name : bits;
  WS_SETTINGS(WS_SETTING_MEMBER)
#undef WS_SETTING_MEMBER
  unsigned unused : 7;
} ws_settings;
_Static_assert(sizeof(ws_settings) == sizeof(uint64_t), "one word");
#define WS_SETTING_FITS(name, public_name, least, most, bits) _Static_assert((most) < 1ll << (bits), #name);
WS_SETTINGS(WS_SETTING_FITS)
#undef WS_SETTING_FITS

typedef enum ws_backend_id { WS_CPU, WS_CUDA, WS_N_BACKENDS } ws_backend_id;

/* The row that is forced for each type, + 1; 0: automatic. */
typedef struct ws_forced_rows {
  uint64_t word;
} ws_forced_rows;
enum { WS_FORCED_ROW_BITS = 10, WS_MOST_ROWS = (1 << WS_FORCED_ROW_BITS) - 1 };
_Static_assert(WS_N_TYPES *WS_FORCED_ROW_BITS <= 64, "one word");
static inline int ws_forced_row(ws_forced_rows rows, wsgemm_type type) {
  return (int)(rows.word >> (WS_FORCED_ROW_BITS * (int)type) & WS_MOST_ROWS);
}

/* Device memory of the caller's. */
typedef struct ws_caller_workspace {
  char *memory; /* NULL: the library's own */
  int64_t bytes;
  int device;
} ws_caller_workspace;

typedef struct ws_logger {
  wsgemm_logger log; /* NULL: none */
  void *user;
} ws_logger;

typedef struct ws_progress {
  wsgemm_progress report; /* NULL: none */
  void *user;
} ws_progress;

/* GPUs for host matrices, a bit for each ordinal; all bits: those that there are. */
typedef uint64_t ws_device_set;
#define WS_ALL_DEVICES UINT64_MAX

struct wsgemm_handle {
  _Atomic uint64_t magic;
  _Atomic ws_settings settings;
  _Atomic ws_forced_rows forced[WS_N_BACKENDS];
  _Atomic ws_device_set devices;
  _Atomic(void *) stream;
  /* By the functions below alone. */
  ws_caller_workspace workspace;
  ws_logger logger;
  ws_progress progress;
};

#define WS_HANDLE_MAGIC UINT64_C(0x77736d67656d6d31)
extern wsgemm_handle ws_default_handle;

/* The handle that a caller's pointer stands for; NULL if it is none of ours. Readies the library on
 * the first call. */
static inline wsgemm_handle *ws_handle(wsgemm_handle *h) {
  ws_start();
  if (!h) return &ws_default_handle;
  return atomic_load_explicit(&h->magic, memory_order_relaxed) == WS_HANDLE_MAGIC ? h : NULL;
}

/* One call of the library. */
typedef struct ws_call {
  /* for messages, and for what a device's backend needs besides (ws_caller_workspace_get,
   * stream) */
  wsgemm_handle *h;
  ws_settings settings;
  ws_device_set devices;
  ws_forced_rows forced[WS_N_BACKENDS];
} ws_call;

/* In place: a copy of what has just been stored word by word would wait for the stores (5 ns). */
static inline void ws_call_begin(ws_call *call, wsgemm_handle *h) {
  call->h = h;
  call->settings = atomic_load_explicit(&h->settings, memory_order_relaxed);
  call->devices = atomic_load_explicit(&h->devices, memory_order_relaxed);
  for (int b = 0; b < WS_N_BACKENDS; b++) call->forced[b] = atomic_load_explicit(&h->forced[b], memory_order_relaxed);
}

static inline ws_call ws_call_of(wsgemm_handle *h) {
  ws_call call;
  ws_call_begin(&call, h);
  return call;
}

static inline void *ws_stream_get(const wsgemm_handle *h) { return atomic_load_explicit(&h->stream, memory_order_relaxed); }
ws_caller_workspace ws_caller_workspace_get(const wsgemm_handle *h);
void ws_caller_workspace_set(wsgemm_handle *h, const ws_caller_workspace *workspace);
ws_logger ws_logger_get(const wsgemm_handle *h);
void ws_logger_set(wsgemm_handle *h, ws_logger logger);
ws_progress ws_progress_get(const wsgemm_handle *h);
void ws_progress_set(wsgemm_handle *h, ws_progress progress);
/* For fork handlers: of what is set together. */
void ws_settings_lock(void);
void ws_settings_unlock(void);

/* Replace one setting, or the row that is forced for a type (index + 1), and leave the others as
 * they are. */
typedef enum ws_setting {
#define WS_SETTING_ENUM(name, public_name, least, most, bits) WS_SETTING_##name,
  WS_SETTINGS(WS_SETTING_ENUM)
#undef WS_SETTING_ENUM
} ws_setting;
/* By ws_setting: the legal values. */
typedef struct ws_setting_range {
  const char *public_name;
  int least, most;
} ws_setting_range;
extern const ws_setting_range ws_setting_ranges[];
int ws_setting_get(ws_settings settings, ws_setting which);
void ws_setting_put(ws_settings *settings, ws_setting which, int value);
void ws_setting_set(wsgemm_handle *h, ws_setting which, int value);
void ws_forced_row_set(wsgemm_handle *h, ws_backend_id backend, wsgemm_type type, int row);

/* A new handle's settings; as the environment says. */
extern ws_settings ws_default_settings;
extern ws_device_set ws_default_devices;
#endif
