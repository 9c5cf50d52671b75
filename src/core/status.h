/* status.h - what went wrong: the calling thread's last error, and the handle's logger. */
#ifndef WS_STATUS_H
#define WS_STATUS_H
#include "wsgemm.h"

/* Records and logs a failure for this thread; returns status. h = NULL: nobody's. */
wsgemm_status ws_fail(wsgemm_handle *h, wsgemm_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same for a handle that is none of ours. */
wsgemm_status ws_fail_handle(void);
#endif
