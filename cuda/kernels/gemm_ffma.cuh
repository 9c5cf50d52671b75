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

  __device__ __forceinline__ void consume() const {
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
  }

  template <int WIDTH> __device__ __forceinline__ void add_parts(const k_sharers &sharers, int from, float (&x)[WIDTH]) const {
    sharers.template add_parts<k_groups>(
        x, [&](int group) { return shared_address(shared) + uint32_t((from + group * Config::bn * Config::sum_pitch) * 4); });
  }

  template <int WIDTH> static __device__ __forceinline__ void load_old(float (&old)[WIDTH], const float *c) {
    if constexpr (WIDTH == 4) {
      const sum_vector<Config> x = load_vector<Config>(c);
#pragma unroll
      for (int e = 0; e < WIDTH; e++) old[e] = x.e[e];
    } else {
      old[0] = *c;
    }
  }

  /* This block's columns; WIDTH neighbours to a thread at a time. PLAIN: all that exists is wanted. */
  template <int WIDTH, bool PLAIN> __device__ __forceinline__ void finish_as() const {
    constexpr int along = Config::bm / WIDTH, step = Config::n_consuming / along;
    static_assert(Config::n_consuming % along == 0, "threads step over whole columns");
    const scaling<Config> scale(args);
    const k_sharers sharers = at.sharers;
    const int i = int(threadIdx.x % along) * WIDTH, n_j = at.m + i < int(args.m) ? int(ws_min(Config::bn, args.n - at.n)) : 0;
    const int first = sharers.first_column(), end = min(n_j, first + sharers.columns), j_first = first + int(threadIdx.x / along);
    float *c = c_of<Config>(args) + at.batch * args.stride_c + (at.n + j_first) * args.ldc + at.m + i;
    const int64_t step_c = step * args.ldc;
    float old[WIDTH] = {};
    if (PLAIN && !scale.beta_zero && j_first < end) load_old(old, c);
    sharers.template await<Config::n_consuming>();
#pragma unroll(!PLAIN || k_groups > 2 ? 1 : 2)
    for (int j = j_first; j < end; j += step, c += step_c) {
      float x[WIDTH];
      add_parts(sharers, j * Config::sum_pitch + i, x);
      if constexpr (!PLAIN) {
        finish_sum<Config>(args, scale, at.batch, at.m + i, at.n + j, x[0]);
        continue;
      }
      if constexpr (WIDTH == 4) {
        sum_vector<Config> y;
#pragma unroll
        for (int e = 0; e < WIDTH; e++) y.e[e] = scale(x[e], old[e]);
        store_vector<Config>(c, y);
      } else {
        *c = scale(x[0], old[0]);
      }
      if (!scale.beta_zero && j + step < end) load_old(old, c + step_c);
    }
  }

  __device__ __forceinline__ void finish() const {
    if (!base::is_plain())
      finish_as<1, false>();
    else if (args.c_vectors && at.m + Config::bm <= args.m)
      finish_as<4, true>();
    else
      finish_as<1, true>();
  }

  /* See dmma_kernel. */
  __device__ __forceinline__ void run() const {
    base::template fetch_arguments<0>();
    if (threadIdx.x == 0) base::make_barriers();
    const place here = base::find_place();
    if (threadIdx.x == 32) static_cast<place &>(at) = here;
    __syncthreads();
    if (!here.is_wanted) return;
    if (threadIdx.x < Config::n_consuming) {
      setmaxnreg_inc<Config::consumer_registers>();
      base::template fetch_arguments<WS_COPIED_FIRST_LINES>();
      consume();
      at.sharers.come();
      finish();
      at.sharers.leave();
    } else {
      setmaxnreg_dec<Config::producer_registers>();
      produce(here);
      at.sharers.attend();
    }
  }
};

} // namespace ws
#endif
