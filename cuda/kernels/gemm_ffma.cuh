/* gemm_ffma.cuh - products of floats by multiply-adds on cc 9.0: the pipeline, the parts of k and the
 * end of an item are those of gemm_dmma.cuh, with floats in the place of doubles.
 *
 *   producers (4 warps)   bring k blocks by cp.async (ffma_load.cuh), operands of any alignment
 *   consumers             multiply (ffma_sums.cuh)
 *
 * The groups' sums are added in their order, block by block, so that the order of summation follows
 * from the row and k alone. */
#ifndef WS_CUDA_GEMM_FFMA_CUH
#define WS_CUDA_GEMM_FFMA_CUH
#include "cuda/kernels/gemm_dmma.cuh"
#include "cuda/mainloop/ffma_load.cuh"
#include "cuda/mainloop/ffma_sums.cuh"

namespace ws {

template <class Config> struct ffma_kernel : dmma_kernel<Config> {
  using base = dmma_kernel<Config>;
  using base::args, base::shared, base::at;
  using typename base::place;
  static constexpr int k_groups = Config::k_groups;
  static constexpr int stage_k = Config::bk * k_groups;

  __device__ __forceinline__ void produce(const place &here) const {
    ffma_operand<Config, Config::bm, Config::a_k> a(args.a, here.batch, here.m, args.m, here.k_first);
    ffma_operand<Config, Config::bn, Config::b_k> b(args.b, here.batch, here.n, args.n, here.k_first);
    typename base::stage_place stage;
#pragma unroll 1
    for (int left = here.n_k; left > 0;) {
      uint32_t to = base::stage_at(stage.place);
#pragma unroll 1
      for (int g = 0; g < k_groups; g++, left -= Config::bk, to += Config::group_bytes) {
        a.copy(to, left), b.copy(to + Config::operand_a_bytes, left);
        a.advance(), b.advance();
      }
      cp_async_mbarrier_arrive(base::full(stage.place));
      stage.advance();
      if (left > 0) base::wait_for_room(stage);
    }
  }

  __device__ __forceinline__ bool consume() const {
    ffma_sums<Config> s;
    int n_left = (at.n_k + stage_k - 1) / stage_k, place = 0;
    uint32_t round = 0;
    if (n_left > 0) {
      mbarrier_wait<barrier_scope::cta>(base::full(0), 0);
      s.read_first(base::stage_at(0));
    }
#pragma unroll 1
    for (; n_left > 0; n_left--) {
      const bool wraps = place + 1 == Config::n_stages;
      const int next = wraps ? 0 : place + 1;
      const uint32_t next_round = wraps ? round ^ 1 : round;
      s.advance(base::stage_at(place), base::stage_at(next), [&] {
        if (n_left > 1) mbarrier_wait<barrier_scope::cta>(base::full(next), next_round);
      });
      __syncwarp();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(base::empty(place));
      place = next, round = next_round;
    }
    barrier_sync(1, Config::n_consuming); /* all have read their last stage */
    s.store(reinterpret_cast<float *>(shared) + s.group() * Config::bn * Config::sum_pitch);
    return false;
  }

  __device__ __forceinline__ void finish_any() const {
    constexpr int step = Config::n_consuming / Config::bm;
    const scaling<Config> scale(args);
    const k_sharers sharers = at.sharers;
    const int i = int(threadIdx.x % Config::bm), n_j = int(ws_min(Config::bn, args.n - at.n));
    const int first = sharers.first_column(), end = min(n_j, first + sharers.columns);
    sharers.template wait<Config::n_consuming>();
    if (at.m + i >= args.m) return;
#pragma unroll 1
    for (int j = first + int(threadIdx.x / Config::bm); j < end; j += step) {
      float x[1];
      const int from = j * Config::sum_pitch + i;
      sharers.template add_parts<k_groups>(
          x, [&](int group) { return shared_address(shared) + uint32_t((from + group * Config::bn * Config::sum_pitch) * 4); });
      finish_sum<Config>(args, scale, at.batch, at.m + i, at.n + j, x[0]);
    }
  }
};

} // namespace ws
#endif
