/* instantiate_vec.cu - the entry points of the rows of vec.def: see instantiate.cuh. */
#include "cuda/kernels/gemm_vector.cuh"
#include "cuda/rows/instantiate.cuh"

#define WS_CUDA_ROW WS_CUDA_ENTRIES_OF_ROW
#include "cuda/rows/vec.def"
