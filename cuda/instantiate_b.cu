/* instantiate_b.cu - the entry points of the b rows of kernels.def. */
#include "instantiate_wgmma.cuh"

#define WS_CUDA_ROW(...)
#define WS_CUDA_WGMMA_ROW(t, ...) WS_CUDA_WGMMA_ROW_##t(__VA_ARGS__)
#define WS_CUDA_WGMMA_ROW_b(...) WS_CUDA_WGMMA_ENTRY(b, __nv_bfloat16, __VA_ARGS__)
#define WS_CUDA_WGMMA_ROW_h(...)
#include "kernels.def"
