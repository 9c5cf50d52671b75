/* instantiate_c.cu - the entry points of the c rows of kernels.def. */
#include "instantiate.cuh"

#define WS_CUDA_ROW(t, mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate) \
  WS_CUDA_ROW_##t(mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate)
#define WS_CUDA_ROW_s(...)
#define WS_CUDA_ROW_d(...)
#define WS_CUDA_ROW_c(mainloop, bm, bn, bk, tm, tn, coarse, stages, blocks, splits, rate)                                      \
  WS_CUDA_ENTRIES(cgemm_##mainloop##_##bm##x##bn##x##bk##_c##coarse, blocks, splits, mainloop, ws::type_c, bm, bn, bk, tm, tn, \
                  coarse, stages)
#define WS_CUDA_ROW_z(...)
#define WS_CUDA_ROW_h(...)
#define WS_CUDA_ROW_b(...)
#define WS_CUDA_WGMMA_ROW(...)
#include "kernels.def"
WS_CUDA_SCALE(c)
