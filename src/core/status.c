/* status.c - see status.h; the texts of statuses. */
#include "core/status.h"

#include <stdarg.h>
#include <stddef.h>

#include "core/handle.h"
#include "core/text.h"

static _Thread_local char last_error[256];

const char *wsgemm_last_error(void) { return last_error; }

wsgemm_status ws_fail(wsgemm_handle *h, wsgemm_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  ws_format(last_error, sizeof last_error, format, args);
  va_end(args);
  if (!h) return status;
  const ws_logger logger = ws_logger_get(h);
  if (logger.log) logger.log(logger.user, status, last_error);
  return status;
}

wsgemm_status ws_fail_handle(void) {
  return ws_fail(NULL, WSGEMM_INVALID_HANDLE, "h was not made by wsgemm_create, or is already destroyed");
}

static const struct {
  const char *name, *text;
} statuses[] = {
#define STATUS_ROW(name, value, text) [value] = {"WSGEMM_" #name, text},
    WSGEMM_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static bool known(wsgemm_status status) { return (int)status >= 0 && (size_t)status < sizeof statuses / sizeof statuses[0]; }
const char *wsgemm_status_name(wsgemm_status status) { return known(status) ? statuses[status].name : "WSGEMM_UNKNOWN"; }
const char *wsgemm_status_text(wsgemm_status status) { return known(status) ? statuses[status].text : "unknown status"; }
