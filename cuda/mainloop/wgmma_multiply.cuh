/* wgmma_multiply.cuh - a warpgroup's sums over all k blocks of an item, by wgmma from the stages
 * that TMA fills. The kernel gives it the barriers of the stages: wait_full(place, parity), and
 * release(place, n_left), when the stage has been read, with so many k blocks left after it.
 *
 * The order of summation is the same in every row: k blocks of 64, in each four steps of 16. */
#ifndef WS_CUDA_WGMMA_MULTIPLY_CUH
#define WS_CUDA_WGMMA_MULTIPLY_CUH
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "cuda/shared/wgmma_args.h"

namespace ws {

/* A_X, B_X: contiguous along m, along n. stages: the first of them; share: which of the item's
 * columns are the warpgroup's. */
template <class Config, bool A_X, bool B_X, class Barriers>
__device__ __forceinline__ void wgmma_multiply(const Barriers &barriers, uint32_t stages, int share, int n_k,
                                               float (&sums)[Config::n_fragments][Config::bm / 2],
                                               pipeline_stage<Config::n_stages> &stage) {
  constexpr int a_line = A_X ? Config::a_line : wgmma_line;
  const uint64_t a_first = wgmma_descriptor<A_X, a_line>(stages, Config::slab_bytes),
                 b_first = wgmma_descriptor<B_X>(stages + Config::n_slices * Config::a_bytes +
                                                     uint32_t(share * Config::n_fragments * Config::slab_bytes),
                                                 Config::slab_bytes);
  int before = -1;
#pragma unroll 1 /* the first pass over each copy of the code would wait for it */
  for (int k_block = 0; k_block < n_k; k_block++) {
    barriers.wait_full(stage.place, stage.full_parity());
    const uint64_t a = a_first + uint32_t(stage.place * (Config::stage_bytes >> 4)),
                   b = b_first + uint32_t(stage.place * (Config::stage_bytes >> 4));
#pragma unroll
    for (int p = 0; p < Config::n_fragments; p++) hold_in_place(sums[p]);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < Config::bk / wgmma_k; step++)
#pragma unroll
      for (int p = 0; p < Config::n_fragments; p++)
        wgmma_mma_async<typename Config::element, B_X, A_X>(sums[p], b + p * (Config::slab_bytes >> 4) + step * wgmma_next_k<B_X>,
                                                            a + step * wgmma_next_k<A_X, a_line>, k_block > 0 || step > 0);
    wgmma_commit_group();
#pragma unroll
    for (int p = 0; p < Config::n_fragments; p++) hold_in_place(sums[p]);
    if (before >= 0) {
      wgmma_wait_group<1>(); /* the block before has been read */
      barriers.release(before, n_k - k_block);
    }
    before = stage.place;
    stage.advance();
  }
  wgmma_wait_group<0>();
#pragma unroll
  for (int p = 0; p < Config::n_fragments; p++) hold_in_place(sums[p]);
  barriers.release(before, 0);
}

/* By the layouts of this launch. */
template <class Config, class Barriers>
__device__ __forceinline__ void wgmma_multiply_as_laid_out(const ws_wgmma_args &args, const Barriers &barriers, uint32_t stages,
                                                           int share, int n_k, float (&sums)[Config::n_fragments][Config::bm / 2],
                                                           pipeline_stage<Config::n_stages> &stage) {
  if (args.a.along_k) {
    if (args.b.along_k)
      wgmma_multiply<Config, false, false>(barriers, stages, share, n_k, sums, stage);
    else
      wgmma_multiply<Config, false, true>(barriers, stages, share, n_k, sums, stage);
  } else {
    if (args.b.along_k)
      wgmma_multiply<Config, true, false>(barriers, stages, share, n_k, sums, stage);
    else
      wgmma_multiply<Config, true, true>(barriers, stages, share, n_k, sums, stage);
  }
}

} // namespace ws
#endif
