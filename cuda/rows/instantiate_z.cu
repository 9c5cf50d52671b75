/* instantiate_z.cu - the entry points of the z rows of kernels.def. */
#include "cuda/rows/instantiate.cuh"

#define WS_CUDA_ROW_z WS_CUDA_ENTRIES_OF_ROW
#include "cuda/rows/instantiate_rows.cuh"
