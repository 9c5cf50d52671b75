/* image.h - the compiled kernels, linked in as data: one image for each element type (its rows and its scaling), one for the queues.
 * The driver is given an image when a kernel of it is first needed. */
#ifndef WS_CUDA_IMAGE_H
#define WS_CUDA_IMAGE_H
#include "internal.h"

enum { WS_IMAGE_QUEUES = WS_N_TYPES, WS_N_IMAGES };
extern const void *const ws_images[WS_N_IMAGES]; /* by wsgemm_type */
#endif
