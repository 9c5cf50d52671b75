/* fallback.cuh - what products of slices leave out: the elements of C in rows or columns that need
 * FP32 (slice_args.h), by multiply-adds of the floats themselves. Tiles without such are passed
 * over; of the others only those elements are stored. */
#ifndef WS_CUDA_FALLBACK_CUH
#define WS_CUDA_FALLBACK_CUH
#include "cuda/kernels/gemm.cuh"
#include "cuda/ptx/memory.cuh"
#include "cuda/sched/fixed.cuh"
#include "cuda/shared/fallback_args.h"
#include "cuda/shared/slice_args.h"

namespace ws {

/* By the scales of the item's first row and column on; a complex row has two. */
template <class Config> struct output_fallback : output_scaled<Config> {
  const int32_t *of_m, *of_n;
  static constexpr bool is_partial = true;
  __device__ __forceinline__ bool wants(int64_t i, int64_t j) const {
    return of_m[i * Config::unit] + of_n[j] >= WS_SCALE_NEEDS_FP32;
  }
};

/* n_fallback_ever: of all products on the device, for whoever asks. */
template <class Config, class Product, class Sched>
__device__ __forceinline__ void gemm_fallback(const ws_fallback_args &args, unsigned long long *n_fallback_ever) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ struct { int batch, row, col; } at;
  griddepcontrol_wait(); /* for the product of slices, and the slices themselves before it */
  const ws_slice_state of_a = *args.scales.state_m, of_b = *args.scales.state_n;
  const uint32_t n_new = (args.counts_a ? of_a.n_needs_3 / Config::unit : 0) + (args.counts_b ? of_b.n_needs_3 : 0);
  if (n_new > 0 && worker_idx() == 0 && threadIdx.x == 0) atomicAdd(n_fallback_ever, n_new);
  if (of_a.n_needs_fp32 + of_b.n_needs_fp32 == 0) return;
  const ws_gemm_args &gemm = args.gemm;
  Sched sched(gemm.sched);
  sched.for_each_item([&](int64_t item_idx) {
    if (threadIdx.x == 0) {
      const ws_tile tile = ws_tile_at_32(&gemm.grid, uint32_t(item_idx));
      at.batch = int(tile.batch), at.row = int(tile.row), at.col = int(tile.col);
    }
    __syncthreads();
    if (!is_item_wanted<Config>(gemm, at.row, at.col)) return;
    const int32_t *of_m = args.scales.of_m + at.batch * args.scales.pitch_m + int64_t(at.row) * Config::bm * Config::unit;
    const int32_t *of_n = args.scales.of_n + at.batch * args.scales.pitch_n + int64_t(at.col) * Config::bn;
    const int n_m = int(ws_min(gemm.m - int64_t(at.row) * Config::bm, Config::bm)),
              n_n = int(ws_min(gemm.n - int64_t(at.col) * Config::bn, Config::bn));
    bool needs_fp32 = false;
    for (int i = int(threadIdx.x); i < n_m; i += int(blockDim.x)) needs_fp32 |= of_m[i * Config::unit] >= WS_SCALE_NEEDS_FP32;
    for (int j = int(threadIdx.x); j < n_n; j += int(blockDim.x)) needs_fp32 |= of_n[j] >= WS_SCALE_NEEDS_FP32;
    if (!__syncthreads_or(needs_fp32)) return;
    Product::run(
        gemm, shared, at.batch, at.row, at.col, 0, [k = gemm.k] { return k; },
        [&](int64_t m_first, int64_t n_first) {
          return output_fallback<Config>{
              {output_at<Config>(gemm, at.batch, m_first, n_first), scaling<Config>(gemm), gemm, at.batch, m_first, n_first},
              of_m,
              of_n};
        });
  });
}

} // namespace ws
#endif
