/* instantiate_b.cu - the entry points of the b rows of kernels.def. */
#include "instantiate.cuh"

#define WS_CUDA_ROW_b WS_CUDA_ENTRIES_OF_ROW
#include "instantiate_rows.cuh"
