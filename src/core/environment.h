/* environment.h - every WSGEMM_* variable, read once, on the first call. One that makes no sense is
 * ignored, with one warning in last_error. */
#ifndef WS_ENVIRONMENT_H
#define WS_ENVIRONMENT_H
#include "core/handle.h"

typedef struct ws_environment {
  int n_threads;        /* 0: not set */
  ws_settings settings; /* of handles */
  ws_device_set devices;
  size_t offload_bytes; /* of a GPU's memory, for host matrices; 0: not set */
  const char *tune;     /* NULL: not set */
  char report[512];     /* lines for wsgemm_machine */
} ws_environment;

/* Who knows the legal values of a variable that this layer does not; false: not legal. */
typedef struct ws_environment_readers {
  bool (*isa)(const char *text);
  bool (*kernel)(const char *text);
  bool (*caches)(const size_t bytes[3]); /* of L1 data, L2, L3 */
} ws_environment_readers;

void ws_environment_read(const ws_environment_readers *readers);
const ws_environment *ws_environment_get(void);
#endif
