/* image.h - the compiled kernels, linked in as data: one image for the rows of each element type,
 * one for the wgmma rows, one for the direct ones, one each for those of flat.def, small.def, dmma.def, ffma.def, outer.def, tf32.def, tf32m.def, tf32w.def and vec.def,
 * one for those of slices with their other kernels, one for the kernels that are no rows, one for diagonal blocks of structured
 * operands, one for ragged groups, one for rows of groups.h, one
 * each for the launch states and partial sums. The driver is given an image
 * when a kernel of it is first needed. */
#ifndef WS_CUDA_IMAGE_H
#define WS_CUDA_IMAGE_H
#include "core/types.h"

enum {
  WS_IMAGE_WGMMA = WS_N_TYPES,
  WS_IMAGE_SLICED,
  WS_IMAGE_DIRECT,
  WS_IMAGE_FLAT,
  WS_IMAGE_SMALL,
  WS_IMAGE_DMMA,
  WS_IMAGE_FFMA,
  WS_IMAGE_OUTER,
  WS_IMAGE_TF32,
  WS_IMAGE_TF32W,
  WS_IMAGE_TF32M,
  WS_IMAGE_VEC,
  WS_IMAGE_ELEMENTWISE,
  WS_IMAGE_TRIANGLE,
  WS_IMAGE_GROUPED,
  WS_IMAGE_GROUPS,
  WS_IMAGE_STATES,
  WS_IMAGE_SUMS,
  WS_N_IMAGES
};
extern const void *const ws_images[WS_N_IMAGES]; /* by wsgemm_type */
#endif
