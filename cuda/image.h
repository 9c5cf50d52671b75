/* image.h - the compiled kernels, linked in as data: one image for each element type (its rows and its scaling), one for the launch states,
 * one for partial sums.
 * The driver is given an image when a kernel of it is first needed. */
#ifndef WS_CUDA_IMAGE_H
#define WS_CUDA_IMAGE_H
#include "internal.h"

enum { WS_IMAGE_STATES = WS_N_TYPES, WS_IMAGE_SUMS, WS_N_IMAGES };
extern const void *const ws_images[WS_N_IMAGES]; /* by wsgemm_type */
#endif
