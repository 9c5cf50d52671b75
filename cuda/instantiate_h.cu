/* instantiate_h.cu - the entry points of the h rows of kernels.def. */
#include "instantiate_wgmma.cuh"

#define WS_CUDA_ROW(...)
#define WS_CUDA_WGMMA_ROW(t, ...) WS_CUDA_WGMMA_ROW_##t(__VA_ARGS__)
#define WS_CUDA_WGMMA_ROW_h(...) WS_CUDA_WGMMA_ENTRY(h, __half, __VA_ARGS__)
#define WS_CUDA_WGMMA_ROW_b(...)
#include "kernels.def"
