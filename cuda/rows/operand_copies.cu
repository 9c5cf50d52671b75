/* operand_copies.cu - memory for copies of operands (pitch_kernel.cuh), and slices: memory of
 * the image, as partial_sums.cu's. */
#include "cuda/shared/launch_state.h"

extern "C" __device__ unsigned char ws_operand_copies[int64_t(WS_N_COPIES) * WS_COPIES_BYTES];
__device__ __align__(256) unsigned char ws_operand_copies[int64_t(WS_N_COPIES) * WS_COPIES_BYTES];
