/* instantiate_b.cu - the entry points of the b rows of kernels.def. */
#include "instantiate.cuh"

#define WS_CUDA_ROW(t, mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate) \
  WS_CUDA_ROW_##t(mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate)
#define WS_CUDA_ROW_s(...)
#define WS_CUDA_ROW_d(...)
#define WS_CUDA_ROW_c(...)
#define WS_CUDA_ROW_z(...)
#define WS_CUDA_ROW_b(mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate)                                      \
  WS_CUDA_ENTRIES(bgemm_##mainloop##_##bm##x##bn##x##bk##_c##coarse, blocks, splits, mainloop, ws::type_b, bm, bn, bk, tm, tn, \
                  coarse, stages)
#define WS_CUDA_ROW_h(...)
#define WS_CUDA_WGMMA_ROW(...)
#include "kernels.def"
WS_CUDA_SCALE(b)
