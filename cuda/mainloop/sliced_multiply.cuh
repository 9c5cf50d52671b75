/* sliced_multiply.cuh - a warpgroup's sums over all k blocks of an item whose operands are two slices
 * each, or three (slice_args.h), by wgmma from the stages that TMA fills. The kernel gives it the
 * barriers of the stages, as it does wgmma_multiply.cuh. */
#ifndef WS_CUDA_SLICED_MULTIPLY_CUH
#define WS_CUDA_SLICED_MULTIPLY_CUH
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "cuda/shared/wgmma_args.h"

namespace ws {

/* All k of an item, of two slices each, or three. A_X, B_X: contiguous along m, along n. high =
 * slice 0 of A times slice 0 of B. low = the other products that count: of two slices those of
 * slice 0 and slice 1, larger by 2^11; of three all but the smallest. Tensor cores round their
 * sums toward zero, so every few k one sum is added to the total while they work on the other: of
 * two slices `high`, as `low` is too small to need it; of three both. */
template <class Config, bool A_X, bool B_X, class Barriers>
__device__ __forceinline__ void sliced_multiply(const Barriers &barriers, uint32_t stages, int share, int n_k,
                                                float (&total)[Config::bm / 2], pipeline_stage<Config::n_stages> &stage) {
  using element = typename Config::element;
  constexpr bool adds_low = Config::n_slices == 3;
  constexpr int n_steps = WS_SLICED_CHUNK_K / wgmma_k;
  constexpr uint32_t a_slice = Config::a_bytes >> 4, b_slice = Config::b_bytes >> 4;
  const uint64_t a_first = wgmma_descriptor<A_X>(stages, Config::slab_bytes),
                 b_first = wgmma_descriptor<B_X>(
                     stages + Config::n_slices * Config::a_bytes + uint32_t(share * Config::slab_bytes), Config::slab_bytes);
  float high[Config::bm / 2], low[Config::bm / 2];
#pragma unroll
  for (int i = 0; i < Config::bm / 2; i++) total[i] = 0;
  int before = -1;
#pragma unroll 1
  for (int k_block = 0; k_block < n_k; k_block++) {
    barriers.wait_full(stage.place, stage.full_parity());
    uint64_t a = a_first + uint32_t(stage.place * (Config::stage_bytes >> 4)),
             b = b_first + uint32_t(stage.place * (Config::stage_bytes >> 4));
#pragma unroll 1 /* unrolled, the compiler serializes the wgmma */
    for (int chunk = 0; chunk < Config::bk / WS_SLICED_CHUNK_K; chunk++) {
      /* A slice of A times one of B. */
      const auto multiply_by = [&](float(&sums)[Config::bm / 2], int of_a, int of_b, int step, int adds) {
        wgmma_mma_async<element, B_X, A_X>(sums, b + of_b * b_slice + step * wgmma_next_k<B_X>,
                                           a + of_a * a_slice + step * wgmma_next_k<A_X>, adds);
      };
      const auto multiply_high = [&] {
#pragma unroll
        for (int step = 0; step < n_steps; step++) multiply_by(high, 0, 0, step, step > 0);
        wgmma_commit_group();
      };
      hold_in_place(high);
      hold_in_place(low);
      wgmma_fence();
      if constexpr (!adds_low) multiply_high();
#pragma unroll
      for (int step = 0; step < n_steps; step++) {
        multiply_by(low, 0, 1, step, adds_low ? step > 0 : k_block + chunk > 0 || step > 0);
        multiply_by(low, 1, 0, step, 1);
        if constexpr (adds_low) {
          multiply_by(low, 1, 1, step, 1);
          multiply_by(low, 0, 2, step, 1);
          multiply_by(low, 2, 0, step, 1);
        }
      }
      wgmma_commit_group();
      if constexpr (adds_low) {
        multiply_high();
        wgmma_wait_group<1>(); /* `low` */
        hold_in_place(low);
#pragma unroll
        for (int i = 0; i < Config::bm / 2; i++) total[i] += low[i];
        wgmma_wait_group<0>();
      } else {
        wgmma_wait_group<1>(); /* `high`, and all that was begun before it */
      }
      hold_in_place(high);
      if (chunk == 0 && before >= 0) barriers.release(before, 0);
#pragma unroll
      for (int i = 0; i < Config::bm / 2; i++) total[i] += high[i];
      a += n_steps * wgmma_next_k<A_X>, b += n_steps * wgmma_next_k<B_X>;
    }
    before = stage.place;
    stage.advance();
  }
  wgmma_wait_group<0>();
  hold_in_place(low);
  barriers.release(before, 0);
  if constexpr (!adds_low) {
#pragma unroll
    for (int i = 0; i < Config::bm / 2; i++) total[i] = fmaf(low[i], 0x1p-11f, total[i]);
  }
}

/* By the layouts of this launch. */
template <class Config, class Barriers>
__device__ __forceinline__ void sliced_multiply_as_laid_out(const ws_wgmma_args &args, const Barriers &barriers, uint32_t stages,
                                                            int share, int n_k, float (&total)[Config::bm / 2],
                                                            pipeline_stage<Config::n_stages> &stage) {
  const bool a_x = !args.a.along_k, b_x = !args.b.along_k;
  if (a_x && b_x) sliced_multiply<Config, true, true>(barriers, stages, share, n_k, total, stage);
  if (a_x && !b_x) sliced_multiply<Config, true, false>(barriers, stages, share, n_k, total, stage);
  if (!a_x && b_x) sliced_multiply<Config, false, true>(barriers, stages, share, n_k, total, stage);
  if (!a_x && !b_x) sliced_multiply<Config, false, false>(barriers, stages, share, n_k, total, stage);
}

} // namespace ws
#endif
