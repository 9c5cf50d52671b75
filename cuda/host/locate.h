/* locate.h - where memory lies. */
#ifndef WS_CUDA_LOCATE_H
#define WS_CUDA_LOCATE_H
#include <stdbool.h>

#include "cuda/host/backend.h"
#include "cuda/host/driver.h"

typedef struct ws_location {
  bool is_device, is_managed; /* managed memory is device memory too */
  bool is_pinned;             /* host memory that devices copy by themselves */
  int device;                 /* -1: host memory */
  /* why the driver cannot say; SUCCESS: it says, or this process can read it */
  CUresult unknown;
} ws_location;

/* Where the driver cannot be asked, or fails, memory that this process can read is host memory: CPU
 * calls go on, come what may. */
ws_location ws_locate(const void *pointer);
/* The status and words for a location that is unknown. */
wsgemm_status ws_fail_unknown(wsgemm_handle *h, CUresult unknown);
#endif
