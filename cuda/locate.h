/* locate.h - where memory lies. */
#ifndef WS_CUDA_LOCATE_H
#define WS_CUDA_LOCATE_H
#include <stdbool.h>

#include "backend.h"

typedef struct ws_location {
  bool is_device, is_managed; /* managed memory is device memory too */
  int device;                 /* -1: host memory */
} ws_location;

ws_location ws_locate(const void *pointer);
#endif
