/* instantiate_h.cu - the entry points of the h rows of kernels.def. */
#include "cuda/rows/instantiate.cuh"

#define WS_CUDA_ROW_h WS_CUDA_ENTRIES_OF_ROW
#include "cuda/rows/instantiate_rows.cuh"
