/* instantiate_d.cu - the entry points of the d rows of kernels.def. */
#include "cuda/rows/instantiate.cuh"

#define WS_CUDA_ROW_d WS_CUDA_ENTRIES_OF_ROW
#include "cuda/rows/instantiate_rows.cuh"
