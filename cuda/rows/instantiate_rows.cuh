/* instantiate_rows.cuh - instantiates the rows of kernels.def of the type that instantiate.cuh was
 * set up for. */
#ifndef WS_CUDA_ROW_s
#define WS_CUDA_ROW_s(...)
#endif
#ifndef WS_CUDA_ROW_d
#define WS_CUDA_ROW_d(...)
#endif
#ifndef WS_CUDA_ROW_c
#define WS_CUDA_ROW_c(...)
#endif
#ifndef WS_CUDA_ROW_z
#define WS_CUDA_ROW_z(...)
#endif
#ifndef WS_CUDA_ROW_h
#define WS_CUDA_ROW_h(...)
#endif
#ifndef WS_CUDA_ROW_b
#define WS_CUDA_ROW_b(...)
#endif
#define WS_CUDA_ROW(t, ...) WS_CUDA_ROW_##t(t, __VA_ARGS__)
#define WS_CUDA_WGMMA_ROW(...)
#define WS_CUDA_SLICED_ROW(...)
#define WS_CUDA_DIRECT_ROW(...)
#include "cuda/rows/kernels.def"
