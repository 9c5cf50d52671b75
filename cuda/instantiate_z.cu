/* instantiate_z.cu - the entry points of the z rows of kernels.def. */
#include "instantiate.cuh"

#define WS_CUDA_ROW_z WS_CUDA_ENTRIES_OF_ROW
#include "instantiate_rows.cuh"
