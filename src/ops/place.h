/* place.h - host or device memory: which backend works on a product. */
#ifndef WS_OPS_PLACE_H
#define WS_OPS_PLACE_H
#include "core/backend.h"

/* The backend of the problem's memory; NULL: *status says what is wrong with it. */
static inline const ws_backend *ws_backend_of(const ws_call *call, const ws_problem *p, int *device, wsgemm_status *status) {
  *device = 0;
  if (!ws_devices) return ws_backends[WS_CPU];
  switch (ws_devices->place(call, p, device, status)) {
  case WS_PLACE_HOST:
    return ws_backends[WS_CPU];
  case WS_PLACE_DEVICE:
    return ws_devices;
  case WS_PLACE_BAD:
    break;
  }
  return NULL;
}

/* The same; host matrices may go to devices, too. */
static inline const ws_backend *ws_backend_for(const ws_call *call, const ws_problem *p, int *device, wsgemm_status *status) {
  const ws_backend *backend = ws_backend_of(call, p, device, status);
  const bool offloads = backend == ws_backends[WS_CPU] && ws_devices && call->devices && ws_devices->takes_host(call, p);
  return offloads ? ws_devices->of_host : backend;
}
#endif
