/* gemm_wgmma_once.cuh - products of 16-bit elements on the tensor cores of cc 9.0, for few items: a
 * block, or a cluster of them, for each item, which ends with it. The blocks of a cluster sum parts
 * of k, and add them up in distributed shared memory.
 *
 *   producers (2 warps) of A and of B: begin to load before anybody else has begun, TMA fills the
 *                       stages
 *   consumers           as in gemm_wgmma.cuh: each has some of the item's columns
 *
 *            k ->                               rows of the item ->
 *     block 0 | block 1 | block 2 | block 3     block 0 | block 1 | block 2 | block 3
 *       sums all of the item's elements           adds up its share of the rows, stores them
 *       over its part of k
 *
 * Each block sends the sums of other blocks' shares to these: to room beside their stages, once all
 * have begun, or where the stages were, when all blocks have read their last one (the cluster
 * meets). Each adds up its share in the order of k, so the bits of C hang on k and the number of
 * parts alone; of one part they are those of gemm_wgmma.cuh. The order of these steps is in
 * pipeline.cuh. Blocks of neighbouring items of a row (s2, s4) may load A for each other.
 *
 * Until griddepcontrol_wait global memory may be the launch before's (docs/scheduling.md).
 *
 * Such a launch takes a few microseconds, and its code comes from memory: what is run stands
 * together, and C that is nothing but alpha * sum has a code of its own. */
#ifndef WS_CUDA_WGMMA_ONCE_KERNEL_CUH
#define WS_CUDA_WGMMA_ONCE_KERNEL_CUH
#include "cuda/epilogue/wgmma_store.cuh"
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/mainloop/wgmma_load.cuh"
#include "cuda/mainloop/wgmma_multiply.cuh"
#include "cuda/ptx/clc.cuh"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/memory.cuh"
#include "cuda/rows/wgmma_config.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

template <class Config, template <int> class Sched> struct wgmma_once_kernel {
  static constexpr int n_parts = Config::cluster_splits, n_sharers = Config::n_sharers, n_fragments = Config::n_fragments;
  static constexpr int cluster = Config::cluster, n_shared_a = Config::n_shared_a;
  static constexpr int share_fours = Config::share_rows / 8, share_sums = Config::share_rows / 2;
  static constexpr int n_consuming = Config::n_consumers * 128, n_producers = 2;

  struct shared_state {
    uint64_t full[Config::n_stages], empty[Config::n_stages];
    uint64_t parts; /* the other blocks' sums of this block's share are there */
  };
  static_assert(sizeof(shared_state) <= WS_WGMMA_BARRIER_BYTES);

  const ws_wgmma_args &args;
  unsigned char *shared;

  __device__ shared_state &state() const {
    return *reinterpret_cast<shared_state *>(shared + Config::shared_bytes - WS_WGMMA_BARRIER_BYTES);
  }
  __device__ uint32_t stage_at(int place) const { return shared_address(shared) + uint32_t(place * Config::stage_bytes); }
  /* Which part of k the block sums, and which of the cluster's items. */
  static __device__ __forceinline__ int rank() { return n_parts > 1 ? int(cluster_rank()) % n_parts : 0; }
  static __device__ __forceinline__ int item_idx() { return n_shared_a > 1 ? int(cluster_rank()) / n_parts : 0; }
  /* The cluster's block with that part of k of that item. */
  static __device__ __forceinline__ uint32_t block_of(int part, int item) { return uint32_t(item * n_parts + part); }
  /* The same in all threads of a warp, which the compiler is to know. */
  static __device__ __forceinline__ int warp_idx() { return __shfl_sync(~0u, int(threadIdx.x) / 32, 0); }
  static __device__ __forceinline__ int consumer_idx() { return int(threadIdx.x) / 128; }

  /* The first element of the item in C. */
  struct item {
    int m, n, batch;
  };
  __device__ __forceinline__ item find_item() const {
    const Sched<cluster> sched(args.sched);
    const ws_tile_place tile = ws_tile_place_at(&args.tiles, sched.first());
    return {int(tile.row) * Config::bm, (int(tile.strip) * n_shared_a + item_idx()) * Config::item_n, int(tile.batch)};
  }

  static constexpr barrier_scope scope = n_shared_a > 1 ? barrier_scope::cluster : barrier_scope::cta;
  /* Bits of the blocks that have the same part of k. */
  static constexpr uint32_t every_nth = ((1u << cluster) - 1) / ((1u << n_parts) - 1);
  static __device__ __forceinline__ uint32_t blocks_of_part() { return every_nth << rank(); }
  /* So little of A that B is on its way alone until the cluster has met; else blocks load A alone for
   * their first stages. */
  static constexpr bool shares_first = n_shared_a > 1 && Config::bm <= 128;

  /* Of this block's part; what the parts do not share evenly is for the first ones. */
  __device__ __forceinline__ int n_k_blocks() const { return args.n_k_blocks / n_parts + (rank() < args.n_k_blocks % n_parts); }
  __device__ __forceinline__ int first_k() const {
    const int more = args.n_k_blocks % n_parts, r = rank();
    return (args.n_k_blocks / n_parts * r + (r < more ? r : more)) * Config::bk;
  }

  /* ---- Producers: a warp for A and one for B, of which one thread asks for copies -------------- */

  /* By one thread of each: its tensor map, and half of the barriers. One after the other in straight code: lanes that make
   * one each take turns, 80 cycles for each (bench/NOTES.md). */
  template <bool IS_A> __device__ __forceinline__ void prepare() const {
    prefetch_tensormap(IS_A ? &args.a.map : &args.b.map);
#pragma unroll
    for (int s = 0; s < Config::n_stages; s++)
      mbarrier_init(IS_A ? &state().full[s] : &state().empty[s], IS_A ? 1 : Config::n_consumers * n_shared_a);
    if constexpr (IS_A && n_parts > 1) {
      mbarrier_init(&state().parts, 1);
      if (rank() < n_sharers) mbarrier_arrive_expect_tx(shared_address(&state().parts), Config::parts_bytes);
    }
    fence_mbarrier_init_release();
    fence_proxy_async_shared();
  }

  /* Nobody waits for the consumers; they wait until the barriers are there. */
  template <bool IS_A> __device__ __forceinline__ void produce() const {
    if (elect_one()) prepare<IS_A>();
    __syncwarp();
    if constexpr (cluster > 1) barrier_cluster_arrive_relaxed();
    const item at = find_item();
    if ((IS_A ? args.a : args.b).along_k)
      load_lines<IS_A, true>(at);
    else
      load_lines<IS_A, false>(at);
  }

  template <bool IS_A, bool ALONG_K> __device__ __forceinline__ void load_lines(const item &at) const {
    constexpr int n_shared = IS_A ? n_shared_a : 1;
    const bool is_elected = elect_one();
    const int n_k = n_k_blocks();
    line_loader<IS_A ? Config::bm : Config::item_n, n_shared, ALONG_K> lines(IS_A ? args.a : args.b, IS_A ? at.m : at.n,
                                                                             first_k(), at.batch);
    const uint32_t first_full = shared_address(&state().full[0]), full_to_empty = sizeof state().full,
                   first_to = stage_at(0) + (IS_A ? 0 : Config::a_bytes);
    uint32_t to = first_to, full = first_full;
    pipeline_stage<Config::n_stages> stage;
    barrier_sync(2 + Config::n_consumers, n_producers * 32); /* the barriers are there */
    griddepcontrol_wait();
    if constexpr (IS_A && shares_first) {
      for (int s = 0; s < n_k && s < Config::n_stages; s++)
        if (is_elected) mbarrier_arrive_expect_tx(full + uint32_t(s * sizeof state().full[0]), args.stage_bytes);
      barrier_cluster_wait();
    }
#pragma unroll 1
    for (int k_block = 0; k_block < n_k; k_block++) {
      const bool is_first_round = k_block < Config::n_stages;
      if constexpr (n_shared > 1 && !shares_first)
        if (k_block == Config::n_stages) barrier_cluster_wait();
      if (!is_first_round) mbarrier_wait<scope>(full + full_to_empty, stage.empty_parity());
      if (is_elected) {
        if (IS_A && !(shares_first && is_first_round)) mbarrier_arrive_expect_tx(full, args.stage_bytes);
        if (n_shared == 1 || (is_first_round && !shares_first))
          lines.ask(to, full);
        else
          lines.template ask_part<(n_shared > 1)>(item_idx(), to, full, blocks_of_part());
      }
      lines.advance();
      if (k_block == 0) barrier_arrive(0, Config::n_threads);
      stage.advance();
      to = stage.place == 0 ? first_to : to + Config::stage_bytes;
      full = stage.place == 0 ? first_full : full + uint32_t(sizeof state().full[0]);
    }
  }

  /* ---- Consumers ----------------------------------------------------------------------------- */

  /* The barriers of the stages (wgmma_multiply.cuh). */
  __device__ __forceinline__ void wait_full(int place, uint32_t parity) const {
    mbarrier_wait<scope>(shared_address(&state().full[place]), parity);
  }
  /* Nobody fills it once more: with fewer k blocks left than stages. So when a block ends, others have
   * said all that they have to say to it: its producer waited for that. */
  __device__ __forceinline__ void release(int place, int n_left) const {
    const int t = int(threadIdx.x) % 128;
    if (n_left < Config::n_stages) return;
    if constexpr (n_shared_a > 1) {
      if (t < n_shared_a) mbarrier_arrive_at(shared_address(&state().empty[place]), block_of(rank(), t));
    } else {
      if (t == 0) mbarrier_arrive(shared_address(&state().empty[place]));
    }
  }

  /* Where four sums of this thread come from a part, of a fragment and eight rows of the share. The
   * block's own part has no place there. */
  __device__ __forceinline__ uint32_t part_at(int part, int of_rank, int fragment, int eight) const {
    const int slot = part - (part > of_rank), of_consumer = consumer_idx() * n_fragments + fragment;
    const int four = (slot * Config::n_consumers * n_fragments + of_consumer) * share_fours + eight;
    return stage_at(0) + uint32_t(Config::parts_at + (four * 128 + int(threadIdx.x) % 128) * 16);
  }

  using all_sums = float[n_fragments][Config::bm / 2];
  using own_sums = float[n_fragments][share_sums];

  /* The steps of exchange_parts (pipeline.cuh). */
  struct exchange {
    const wgmma_once_kernel &kernel;
    const all_sums &sums;
    own_sums &total;

    static __device__ __forceinline__ int rank() { return wgmma_once_kernel::rank(); }
    __device__ __forceinline__ void meet() const {
      if constexpr (n_shared_a == 1) barrier_cluster_wait();
      if constexpr (!Config::parts_apart) cluster_sync();
    }

    __device__ __forceinline__ void send(int to) const {
#pragma unroll
      for (int f = 0; f < n_fragments; f++)
#pragma unroll
        for (int four = 0; four < Config::bm / 8; four++) {
          if (four / share_fours != to) continue;
          const float own[4] = {sums[f][4 * four], sums[f][4 * four + 1], sums[f][4 * four + 2], sums[f][4 * four + 3]};
          st_async_16(kernel.part_at(rank(), to, f, four % share_fours), own, shared_address(&kernel.state().parts),
                      block_of(to, item_idx()));
        }
    }

    __device__ __forceinline__ void wait_parts() const {
      mbarrier_wait<barrier_scope::cluster>(shared_address(&kernel.state().parts), 0);
    }

    /* of the block's own part, or from its place */
    __device__ __forceinline__ void take(int part, int f, int four, float (&x)[4]) const {
      if (part != rank()) return ld_shared_four(x, kernel.part_at(part, rank(), f, four));
#pragma unroll
      for (int sharer = 0; sharer < n_sharers; sharer++)
        if (sharer == part) {
#pragma unroll
          for (int u = 0; u < 4; u++) x[u] = sums[f][(sharer * share_fours + four) * 4 + u];
        }
    }

    __device__ __forceinline__ void add(int part) const {
#pragma unroll
      for (int f = 0; f < n_fragments; f++)
#pragma unroll
        for (int four = 0; four < share_fours; four++) {
          float x[4];
          take(part, f, four, x);
#pragma unroll
          for (int u = 0; u < 4; u++) total[f][4 * four + u] = part == 0 ? x[u] : total[f][4 * four + u] + x[u];
        }
    }
  };

  /* IS_PLAIN: args.is_plain, whose code is so short and straight that it is there in time where it
   * comes from memory (bench/NOTES.md). */
  template <bool IS_PLAIN> __device__ __forceinline__ void consume(int consumer) const {
    if (threadIdx.x == 0 && (IS_PLAIN || args.c_by_map)) prefetch_tensormap(&args.c);
    if constexpr (cluster > 1) barrier_cluster_arrive_relaxed();
    const item at = find_item();
    griddepcontrol_wait();
    pipeline_stage<Config::n_stages> stage;
    all_sums sums;
    const int n = at.n + consumer * n_fragments * 64, m = at.m + rank() * Config::share_rows;
    const uint32_t places = stage_at(0) + uint32_t(Config::places_at + consumer * Config::n_places * Config::output_bytes);
    const uint32_t bias = shared_address(&state()) - uint32_t((Config::n_consumers - consumer) * Config::bias_bytes);
    const wgmma_store<Config, Config::share_rows> store{args};
    typename wgmma_store<Config, Config::share_rows>::bias_bits bias_of_item;
    if constexpr (!IS_PLAIN) {
      if (rank() < n_sharers) store.prefetch(m, n, at.batch);
      bias_of_item = store.ask_for_bias(m, n, at.batch);
    }
    barrier_sync(0, Config::n_threads);                   /* the barriers are there */
    if constexpr (n_shared_a > 1) barrier_cluster_wait(); /* those of the other blocks, too */
    wgmma_multiply_as_laid_out<Config>(args, *this, stage_at(0), consumer, n_k_blocks(), sums, stage);
    griddepcontrol_launch_dependents(); /* nothing is left to be disturbed at */
    if constexpr (!IS_PLAIN) store.put_bias(bias_of_item, bias);
    if constexpr (n_parts == 1) {
      barrier_sync(1 + Config::n_consumers, n_consuming); /* all warps have read their last stage */
      store.template store<IS_PLAIN>(sums, m, n, at.batch, bias, places);
    } else {
      own_sums total;
      if (!exchange_parts<n_parts, n_sharers>(exchange{*this, sums, total})) return leave();
      barrier_sync(1 + Config::n_consumers, n_consuming);
      store.template store<IS_PLAIN>(total, m, n, at.batch, bias, places);
    }
    cp_async_bulk_wait_group_read<0>(); /* in the thread that asked for the copies */
    leave();
  }

  /* No block is gone while a copy to it, or an arrival at a barrier of it, may still be on its way. Its own threads have
   * waited for all of them: so the cluster meets without a release. */
  static __device__ __forceinline__ void leave() {
    if constexpr (n_shared_a > 1) barrier_cluster_arrive_relaxed(), barrier_cluster_wait();
  }

  /* ptxas keeps what is written last in front: producer, plain C, and behind them the rest. */
  __device__ __forceinline__ void run() const {
    const int warp = warp_idx();
    if (warp < n_consuming / 32 && !args.is_plain) {
      consume<false>(warp / 4);
      return;
    }
    if (warp < n_consuming / 32)
      consume<true>(warp / 4);
    else if (warp == n_consuming / 32)
      produce<true>();
    else
      produce<false>();
  }
};

} // namespace ws
#endif
