/* gemm_dmma.cuh - products of double precision on cc 9.0, real and complex: a block, or a cluster of
 * them, for each item, which ends with it.
 *
 *   producers (4 warps)   bring k blocks to a pipeline of stages by cp.async (dmma_load.cuh), operands of
 *                         any alignment; have few registers
 *   consumers             multiply (dmma_sums.cuh); have the registers that producers leave
 *
 * A stage has two barriers: `full` counts the producers' threads, whose copies arrive by themselves;
 * `empty` counts the consumers' warps. With k_groups groups of warps a stage has a k block for each
 * of them in turn; of a cluster each block has consecutive stages. At the end the groups' sums stand
 * where the stages were, and are added in their order, block by block, each block of the cluster
 * doing its columns; C is stored along its columns. So the order of summation follows from the row
 * and k alone. */
#ifndef WS_CUDA_GEMM_DMMA_CUH
#define WS_CUDA_GEMM_DMMA_CUH
#include "cuda/kernels/column_store.cuh"
#include "cuda/kernels/item_place.cuh"
#include "cuda/mainloop/dmma_load.cuh"
#include "cuda/mainloop/dmma_structured.cuh"
#include "cuda/mainloop/dmma_sums.cuh"
#include "cuda/mainloop/k_parts.cuh"
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

template <class Config> struct dmma_kernel {
  static constexpr int k_groups = Config::k_groups;
  static constexpr int stage_k = Config::bk * k_groups, unit = Config::unit;
  static constexpr bool is_swapped = Config::is_swapped;

  using stage_place = pipeline_stage<Config::n_stages>;

  /* The item, this block's k, and who shares the item. */
  struct place {
    int batch, m, n, k_first, n_k;
    bool is_wanted;
    k_sharers sharers;
  };
  /* As those have it that want it late, and registers for other things. */
  struct shared_place : place {
    uint32_t fetched[Config::n_warps]; /* see item_place.cuh */
  };

  const ws_gemm_args &args;
  unsigned char *shared;
  shared_place &at;
  const ws_copied_args &given; /* args are its */

  __device__ __forceinline__ uint32_t full(int stage) const {
    return shared_address(shared) + uint32_t(Config::body_bytes + 8 * stage);
  }
  __device__ __forceinline__ uint32_t empty(int stage) const { return full(Config::n_stages + stage); }
  __device__ __forceinline__ uint32_t stage_at(int stage) const {
    return shared_address(shared) + uint32_t(stage * Config::stage_bytes);
  }

  /* Blocks share all of k; of its part each does what is not zeros of a triangle, from the beginning of a stage on. So
   * parts are the same for tiles of any size. */
  __device__ __forceinline__ place place_of(const item_place &item, uint32_t rank) const {
    const k_part part = k_part::of_block(rank, args.sharers, int((uint32_t(args.k) + stage_k - 1) / stage_k), Config::bn);
    place here = {item.batch, item.m, item.n, part.first, 0, item.is_wanted, {part.cluster, part.columns}};
    here.k_first = max(part.first, int(uint32_t(item.k_begin) / stage_k)) * stage_k;
    here.n_k = max(0, min((part.first + part.count) * stage_k, item.k_end) - here.k_first);
    return here;
  }
  __device__ __forceinline__ place find_place() const {
    const worker_block block = worker_block_of(args.sharers);
    return place_of(item_place_at<Config>(args, block.worker), block.rank);
  }

  __device__ __forceinline__ void make_barriers() const {
    for (int s = 0; s < Config::n_stages; s++) {
      mbarrier_init(reinterpret_cast<uint64_t *>(shared + Config::body_bytes) + s, WS_DMMA_PRODUCERS);
      mbarrier_init(reinterpret_cast<uint64_t *>(shared + Config::body_bytes) + Config::n_stages + s, Config::n_warps);
    }
  }

  __device__ __forceinline__ void wait_for_room(const stage_place &stage) const {
    mbarrier_wait<barrier_scope::cta>(empty(stage.place), stage.empty_parity());
  }

  /* From k_first on, n_k of k; there is room for a stage. */
  __device__ __forceinline__ void bring(const place &here, const ws_operand &op_p, const ws_operand &op_q,
                                        stage_place &stage) const {
    dmma_operand<Config, Config::bp, Config::p_k, Config::keeps_p_k> p(op_p, here.batch, is_swapped ? here.n : here.m,
                                                                       is_swapped ? args.n : args.m, here.k_first);
    dmma_operand<Config, Config::bq, Config::q_k, Config::q_k> q(op_q, here.batch, is_swapped ? here.m : here.n,
                                                                 is_swapped ? args.m : args.n, here.k_first);
#pragma unroll 1
    for (int left = here.n_k; left > 0;) {
      uint32_t to = stage_at(stage.place);
#pragma unroll 1
      for (int g = 0; g < k_groups; g++, left -= Config::bk, to += Config::group_bytes) {
        p.copy(to, left), q.copy(to + Config::operand_p_bytes, left);
        p.advance(), q.advance();
      }
      cp_async_mbarrier_arrive(full(stage.place));
      stage.advance();
      if (left > 0) wait_for_room(stage);
    }
  }

  /* The same where A (else B) has structure. Operands begin anew in each block of k, as they have few registers. */
  template <bool OF_A> __device__ __forceinline__ void bring_structured() const {
    using other = std::conditional_t<OF_A, dmma_operand<Config, Config::bq, Config::q_k, Config::q_k, true>,
                                     dmma_operand<Config, Config::bp, Config::p_k, Config::keeps_p_k, true>>;
    const dmma_structured<Config, place, OF_A> structured = {given, at};
    constexpr uint32_t to_structured = OF_A ? 0 : Config::operand_p_bytes, to_other = OF_A ? Config::operand_p_bytes : 0;
    stage_place stage;
#pragma unroll 1
    for (int k_first = at.k_first; k_first < at.k_first + at.n_k; k_first += stage_k) {
      wait_for_room(stage);
#pragma unroll 1
      for (int g = 0; g < k_groups; g++) {
        const uint32_t to = stage_at(stage.place) + uint32_t(g * Config::group_bytes);
        const int k = k_first + g * Config::bk, n_k = at.k_first + at.n_k - k;
        other(OF_A ? args.b : args.a, at.batch, OF_A ? at.n : at.m, OF_A ? args.n : args.m, k).copy(to + to_other, n_k);
        structured.copy(to + to_structured, k, n_k);
      }
      cp_async_mbarrier_arrive(full(stage.place));
      stage.advance();
    }
  }

  /* The other operand is not transposed, and this one only if it is a triangle. */
  static constexpr bool a_may_have_structure = Config::ops == dmma_ops::nn || Config::ops == dmma_ops::tn;
  static constexpr bool b_may_have_structure = Config::ops == dmma_ops::nn || Config::ops == dmma_ops::nt;

  __device__ __forceinline__ void produce(const place &here) const {
    if constexpr (a_may_have_structure)
      if (args.structured == 1) return bring_structured<true>();
    if constexpr (b_may_have_structure)
      if (args.structured == 2) return bring_structured<false>();
    stage_place stage;
    bring(here, is_swapped ? args.b : args.a, is_swapped ? args.a : args.b, stage);
    if constexpr (Config::ops == dmma_ops::nt || Config::ops == dmma_ops::tn)
      if (given.is_twice) wait_for_room(stage), bring(here, args.b, args.a, stage);
  }

  /* Whether C is done, too. */
  __device__ __forceinline__ bool consume() const {
    using sums = dmma_sums<Config>;
    const conjugation conj = {(is_swapped ? args.b : args.a).conj != 0, (is_swapped ? args.a : args.b).conj != 0};
    sums s(conj.a != conj.b);
    int n_left = (at.n_k + stage_k - 1) / stage_k * (given.is_twice ? 2 : 1), place = 0;
    uint32_t round = 0;
    if (n_left > 0) {
      mbarrier_wait<barrier_scope::cta>(full(0), 0);
      s.read_first(stage_at(0));
    }
#pragma unroll 1
    for (; n_left > 0; n_left--) {
      const bool wraps = place + 1 == Config::n_stages;
      const int next = wraps ? 0 : place + 1;
      const uint32_t next_round = wraps ? round ^ 1 : round;
      s.advance(stage_at(place), stage_at(next), [&] {
        if (n_left > 1) mbarrier_wait<barrier_scope::cta>(full(next), next_round);
      });
      __syncwarp();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(empty(place));
      place = next, round = next_round;
    }
    if constexpr (k_groups == 1 && !is_swapped)
      if (at.sharers.is_alone() && finish_sums(s, conj.a)) return true;
    barrier_sync(1, Config::n_consuming); /* all have read their last stage */
    s.store(sums_of(sums::group()), conj.a);
    return false;
  }

  __device__ __forceinline__ uint32_t sums_of(int group) const {
    return shared_address(shared) + uint32_t(group * Config::bn * Config::sum_pitch_bytes);
  }

  template <class Real, int WIDTH>
  __device__ __forceinline__ void add_parts(const k_sharers &sharers, uint32_t from, Real (&x)[WIDTH]) const {
    sharers.template add_parts<k_groups>(x, [&](int group) { return from + sums_of(group) - sums_of(0); });
  }

  static __device__ __forceinline__ typename Config::sum number_at(const typename Config::real *x) {
    if constexpr (unit == 2)
      return {x[0], x[1]};
    else
      return x[0];
  }

  static __device__ __forceinline__ typename Config::sum scaled(const scaling<Config> &scale, typename Config::sum sum,
                                                                typename Config::sum old) {
    return scale.is_real() ? scale.by_real(sum, old) : scale(sum, old);
  }

  /* From registers, which have pieces of 8 elements of C's columns, or of 16, if they need not be added to others. False: C wants
   * something else. */
  template <class Sums> __device__ __forceinline__ bool finish_sums(const Sums &s, bool turns_imaginary) const {
    constexpr int n_p = Sums::n_p, n_e = 2 / unit;
    const scaling<Config> scale(args);
    if (!args.c_vectors || !scale.is_real() || !is_plain()) return false;
    const int n_i = int(ws_min(Config::bm, args.m - at.m)), n_j = int(ws_min(Config::bn, args.n - at.n));
    typename Config::sum *const first = c_of<Config>(args) + at.batch * args.stride_c + at.n * args.ldc + at.m + Sums::p_of(0, 0);
#pragma unroll
    for (int j = 0; j < 2 * Sums::n_q; j++) {
      const int column = Sums::q_of(j / 2, j % 2);
      typename Config::sum *const c = first + column * args.ldc;
      sum_vector<Config> old[n_p] = {};
      if (column >= n_j) continue;
      if (!scale.beta_zero)
#pragma unroll
        for (int i = 0; i < n_p; i++) {
          const int row = Sums::p_of(i, 0);
          if (row + n_e <= n_i)
            old[i] = load_vector<Config>(c + row - Sums::p_of(0, 0));
          else if (row < n_i)
            old[i].e[0] = c[row - Sums::p_of(0, 0)];
        }
#pragma unroll
      for (int i = 0; i < n_p; i++) {
        const int row = Sums::p_of(i, 0);
        sum_vector<Config> y;
#pragma unroll
        for (int e = 0; e < n_e; e++) y.e[e] = scale.by_real(s.number(i, j / 2, j % 2, e, turns_imaginary), old[i].e[e]);
        if (row + n_e <= n_i)
          store_vector<Config>(c + row - Sums::p_of(0, 0), y);
        else if (row < n_i)
          c[row - Sums::p_of(0, 0)] = y.e[0];
      }
    }
    return true;
  }

  /* This block's columns, of an item of which all that exists is wanted. */
  template <int N_E, bool IS_ALONE> __device__ __forceinline__ void finish_plain() const {
    using number = typename Config::sum;
    const scaling<Config> scale(args);
    store_columns<Config, N_E, IS_ALONE>(
        args, at, sums_of(0), [&] { at.sharers.template wait<Config::n_consuming>(); },
        [&](const typename Config::real(&x)[N_E * unit], const number(&old)[N_E], number(&y)[N_E]) {
#pragma unroll
          for (int e = 0; e < N_E; e++) y[e] = scaled(scale, number_at(x + e * unit), old[e]);
          return true;
        });
  }

  /* The same of any item. */
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
      if (!ws_region_wants(&args.region, at.m + i, at.n + j)) continue;
      double x[unit];
      add_parts(sharers, sums_of(0) + uint32_t((j * Config::sum_pitch + i) * 8 * unit), x);
      finish_sum<Config>(args, scale, at.batch, at.m + i, at.n + j, number_at(x));
    }
  }

  /* Whether columns may be stored together; steps of an epilogue go element by element. */
  __device__ __forceinline__ bool is_plain() const {
    if (is_of_groups<Config> && args.epilogue.is_any) return false;
    return ws_region_is_plain(&args.region, at.m, Config::bm, at.n, Config::bn);
  }

  template <bool IS_ALONE> __device__ __forceinline__ void finish_plain_of() const {
    constexpr int width = sum_vector<Config>::length;
    if (width > 1 && args.c_vectors && at.m + Config::bm <= args.m)
      finish_plain<width, IS_ALONE>();
    else
      finish_plain<1, IS_ALONE>();
  }

  /* Kernel: this one, or one that derives from it, with its own produce(), consume() and finish_any(). */
  template <class Kernel> static __device__ __forceinline__ void finish(const Kernel &kernel) {
    if (!kernel.is_plain())
      kernel.finish_any();
    else if (kernel.at.sharers.is_alone())
      kernel.template finish_plain_of<true>();
    else
      kernel.template finish_plain_of<false>();
  }

  /* The two kinds of warps share no code behind their register counts, which would have to do with
   * the smaller one. ARE_PARAMETERS: args are the kernel's; else they stand in shared memory. find: returns the place of the
   * block's item. */
  template <bool ARE_PARAMETERS, class Kernel, class Find>
  static __device__ __forceinline__ void run_at(const Kernel &kernel, Find find) {
    shared_place &at = kernel.at;
    if (ARE_PARAMETERS) fetch_first_arguments(kernel.given, at.fetched);
    if (threadIdx.x == 0) kernel.make_barriers();
    const place here = find();
    if (threadIdx.x == 32) static_cast<place &>(at) = here;
    __syncthreads();
    if (!here.is_wanted) return;
    if (threadIdx.x < Config::n_consuming) {
      setmaxnreg_inc<Config::consumer_registers>();
      if (ARE_PARAMETERS) fetch_other_arguments(kernel.given, at.fetched);
      if (kernel.consume()) return; /* alone, so nobody waits */
      at.sharers.arrive();
      finish(kernel);
      at.sharers.leave();
    } else {
      setmaxnreg_dec<Config::producer_registers>();
      kernel.produce(here);
      at.sharers.attend();
    }
  }
  template <class Kernel> static __device__ __forceinline__ void run(const Kernel &kernel) {
    run_at<true>(kernel, [&] { return kernel.find_place(); });
  }
  /* Of a group, whose arguments its block has made. */
  template <class Kernel>
  static __device__ __forceinline__ void run_item(const Kernel &kernel, const item_place &item, const uint32_t &rank) {
    run_at<false>(kernel, [&] { return kernel.place_of(item, rank); });
  }
};

} // namespace ws
#endif
