/* partial_sums.cu - memory for the partial sums of split products, an image of its own so that it
 * is there only where one is needed. */
#include "cuda/shared/launch_state.h"

extern "C" {
__device__ __align__(256) unsigned char ws_partial_sums[WS_N_SUMS][WS_SUMS_BYTES];
}
