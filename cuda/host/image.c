/* image.c - the bytes that nvcc made (CMakeLists.txt: WS_IMAGE_DIR), put into the read-only data of
 * the library. No constructor runs and no driver is called for them. */
#include "cuda/host/image.h"

#define IMAGE(name)                                                                                  \
  __asm__(".pushsection .rodata\n.balign 64\nws_image_" #name ":\n.incbin \"" WS_IMAGE_DIR "/" #name \
          ".fatbin\"\n.popsection\n");                                                               \
  extern const unsigned char ws_image_##name[] __attribute__((visibility("hidden")));

IMAGE(instantiate_s)
IMAGE(instantiate_d)
IMAGE(instantiate_c)
IMAGE(instantiate_z)
IMAGE(instantiate_h)
IMAGE(instantiate_b)
IMAGE(instantiate_wgmma)
IMAGE(instantiate_sliced)
IMAGE(instantiate_direct)
IMAGE(instantiate_flat)
IMAGE(instantiate_small)
IMAGE(instantiate_dmma)
IMAGE(instantiate_ffma)
IMAGE(instantiate_outer)
IMAGE(instantiate_tf32)
IMAGE(instantiate_tf32m)
IMAGE(instantiate_tf32w)
IMAGE(instantiate_vec)
IMAGE(instantiate_elementwise)
IMAGE(instantiate_triangle)
IMAGE(instantiate_grouped)
IMAGE(instantiate_groups)
IMAGE(launch_states)
IMAGE(partial_sums)

const void *const ws_images[WS_N_IMAGES] = {
    [WSGEMM_F32] = ws_image_instantiate_s,           [WSGEMM_F64] = ws_image_instantiate_d,
    [WSGEMM_C32] = ws_image_instantiate_c,           [WSGEMM_C64] = ws_image_instantiate_z,
    [WSGEMM_F16] = ws_image_instantiate_h,           [WSGEMM_BF16] = ws_image_instantiate_b,
    [WS_IMAGE_WGMMA] = ws_image_instantiate_wgmma,   [WS_IMAGE_ELEMENTWISE] = ws_image_instantiate_elementwise,
    [WS_IMAGE_SLICED] = ws_image_instantiate_sliced, [WS_IMAGE_STATES] = ws_image_launch_states,
    [WS_IMAGE_SUMS] = ws_image_partial_sums,         [WS_IMAGE_TRIANGLE] = ws_image_instantiate_triangle,
    [WS_IMAGE_DIRECT] = ws_image_instantiate_direct, [WS_IMAGE_FLAT] = ws_image_instantiate_flat,
    [WS_IMAGE_SMALL] = ws_image_instantiate_small,   [WS_IMAGE_DMMA] = ws_image_instantiate_dmma,
    [WS_IMAGE_FFMA] = ws_image_instantiate_ffma,     [WS_IMAGE_OUTER] = ws_image_instantiate_outer,
    [WS_IMAGE_TF32] = ws_image_instantiate_tf32,     [WS_IMAGE_TF32W] = ws_image_instantiate_tf32w,
    [WS_IMAGE_VEC] = ws_image_instantiate_vec,       [WS_IMAGE_GROUPED] = ws_image_instantiate_grouped,
    [WS_IMAGE_GROUPS] = ws_image_instantiate_groups, [WS_IMAGE_TF32M] = ws_image_instantiate_tf32m,
};
