/* instantiate_b.cu - the entry points of the b rows of kernels.def. */
#include "cuda/rows/instantiate.cuh"

#define WS_CUDA_ROW_b WS_CUDA_ENTRIES_OF_ROW
#include "cuda/rows/instantiate_rows.cuh"
