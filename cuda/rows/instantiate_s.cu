/* instantiate_s.cu - the entry points of the s rows of kernels.def. */
#include "cuda/rows/instantiate.cuh"

#define WS_CUDA_ROW_s WS_CUDA_ENTRIES_OF_ROW
#include "cuda/rows/instantiate_rows.cuh"
