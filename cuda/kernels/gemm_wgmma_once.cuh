/* gemm_wgmma_once.cuh - products of 16-bit elements on the tensor cores of cc 9.0, for few items: a
 * block, or a cluster of them, for each item, which ends with it. The blocks of a cluster sum parts
 * of k, and add them up in distributed shared memory.
 *
 *   producer (1 thread)   begins to load before anybody else has begun, TMA fills the stages
 *   consumers             as in gemm_wgmma.cuh: each has some of the item's columns
 *
 *            k ->                               rows of the item ->
 *     block 0 | block 1 | block 2 | block 3     block 0 | block 1 | block 2 | block 3
 *       sums all of the item's elements           adds up its share of the rows, stores them
 *       over its part of k
 *
 * When all blocks have read their last stage (the cluster meets), each sends the sums of other
 * blocks' shares to these, where the stages were; each adds up its share in the order of k, so the
 * bits of C hang on k and the number of parts alone; of one part they are those of gemm_wgmma.cuh.
 * The order of these steps is in pipeline.cuh. */
#ifndef WS_CUDA_WGMMA_ONCE_KERNEL_CUH
#define WS_CUDA_WGMMA_ONCE_KERNEL_CUH
#include "cuda/epilogue/wgmma_store.cuh"
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/mainloop/wgmma_load.cuh"
#include "cuda/mainloop/wgmma_multiply.cuh"
#include "cuda/ptx/clc.cuh"
#include "cuda/ptx/memory.cuh"
#include "cuda/rows/wgmma_config.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

template <class Config, template <int> class Sched> struct wgmma_once_kernel {
  static constexpr int n_parts = Config::cluster_splits, n_sharers = Config::n_sharers, n_fragments = Config::n_fragments;
  static constexpr int share_fours = Config::share_rows / 8, share_sums = Config::share_rows / 2;
  static constexpr int n_consuming = Config::n_consumers * 128;

  struct shared_state {
    uint64_t full[Config::n_stages], empty[Config::n_stages];
    uint64_t parts; /* the other blocks' sums of this block's share are there */
  };
  static_assert(sizeof(shared_state) <= WS_WGMMA_BARRIER_BYTES);

  const ws_wgmma_args &args;
  unsigned char *shared;

  __device__ shared_state &state() const {
    return *reinterpret_cast<shared_state *>(shared + Config::n_stages * Config::stage_bytes +
                                             Config::n_consumers * Config::bias_bytes);
  }
  __device__ uint32_t stage_at(int place) const { return shared_address(shared) + uint32_t(place * Config::stage_bytes); }
  static __device__ __forceinline__ int rank() { return n_parts > 1 ? int(cluster_rank()) : 0; }
  static __device__ __forceinline__ int consumer_idx() { return int(threadIdx.x) / 128; }

  /* The first element of the item in C. */
  struct item {
    int m, n, batch;
  };
  __device__ __forceinline__ item find_item() const {
    const Sched<n_parts> sched(args.sched);
    const ws_tile tile = ws_tile_at_32(&args.grid, sched.first());
    return {int(tile.row) * Config::bm, int(tile.col) * Config::bn, int(tile.batch)};
  }

  /* Of this block's part; what the parts do not share evenly is for the first ones. */
  __device__ __forceinline__ int n_k_blocks() const {
    const int n_all = int(ws_ceil_div(args.k, Config::bk));
    return n_all / n_parts + (rank() < n_all % n_parts);
  }
  __device__ __forceinline__ int first_k() const {
    const int n_all = int(ws_ceil_div(args.k, Config::bk)), more = n_all % n_parts, r = rank();
    return (n_all / n_parts * r + (r < more ? r : more)) * Config::bk;
  }

  /* ---- Producer: one thread ------------------------------------------------------------------ */

  __device__ __forceinline__ void prepare() const {
#pragma unroll
    for (int s = 0; s < Config::n_stages; s++) {
      mbarrier_init(&state().full[s], 1);
      mbarrier_init(&state().empty[s], Config::n_consumers);
    }
    if constexpr (n_parts > 1) mbarrier_init(&state().parts, 1);
    fence_mbarrier_init_release();
    fence_proxy_async_shared();
    if constexpr (n_parts > 1)
      if (rank() < n_sharers) mbarrier_arrive_expect_tx(shared_address(&state().parts), Config::parts_bytes);
  }

  /* k blocks from the stage's on, until `end`. */
  __device__ __forceinline__ void load(const item &at, int k_block, int end, pipeline_stage<Config::n_stages> &stage) const {
#pragma unroll 1
    for (; k_block < end; k_block++) {
      if (k_block >= Config::n_stages)
        mbarrier_wait<barrier_scope::cta>(shared_address(&state().empty[stage.place]), stage.empty_parity());
      const uint32_t to = stage_at(stage.place), full = shared_address(&state().full[stage.place]);
      mbarrier_arrive_expect_tx(full, args.stage_bytes);
      const int k = first_k() + k_block * Config::bk;
      load_lines<Config::a_rows, 1>(to, args.a, at.m, k, at.batch, full, 0);
      load_lines<Config::item_n, 1>(to + Config::a_bytes, args.b, at.n, k, at.batch, full, 0);
      stage.advance();
    }
  }

  /* ---- Consumers ----------------------------------------------------------------------------- */

  /* The barriers of the stages (wgmma_multiply.cuh). */
  __device__ __forceinline__ void wait_full(int place, uint32_t parity) const {
    mbarrier_wait<barrier_scope::cta>(shared_address(&state().full[place]), parity);
  }
  __device__ __forceinline__ void release(int place) const {
    if (threadIdx.x % 128 == 0) mbarrier_arrive(shared_address(&state().empty[place]));
  }

  /* Where four sums of this thread come from a part, of a fragment and eight rows of the share. The
   * block's own part has no place there. */
  __device__ __forceinline__ uint32_t part_at(int part, int of_rank, int fragment, int eight) const {
    const int slot = part - (part > of_rank), of_consumer = consumer_idx() * n_fragments + fragment;
    const int four = (slot * Config::n_consumers * n_fragments + of_consumer) * share_fours + eight;
    return stage_at(0) + uint32_t((four * 128 + int(threadIdx.x) % 128) * 16);
  }

  using all_sums = float[n_fragments][Config::bm / 2];
  using own_sums = float[n_fragments][share_sums];

  /* The steps of exchange_parts (pipeline.cuh). */
  struct exchange {
    const wgmma_once_kernel &kernel;
    const all_sums &sums;
    own_sums &total;

    static __device__ __forceinline__ int rank() { return wgmma_once_kernel::rank(); }
    __device__ __forceinline__ void meet() const { cluster_sync(); }

    __device__ __forceinline__ void send(int to) const {
#pragma unroll
      for (int f = 0; f < n_fragments; f++)
#pragma unroll
        for (int four = 0; four < Config::bm / 8; four++) {
          if (four / share_fours != to) continue;
          const float own[4] = {sums[f][4 * four], sums[f][4 * four + 1], sums[f][4 * four + 2], sums[f][4 * four + 3]};
          st_async_16(kernel.part_at(rank(), to, f, four % share_fours), own, shared_address(&kernel.state().parts),
                      uint32_t(to));
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

  __device__ __forceinline__ void consume(const item &at) const {
    pipeline_stage<Config::n_stages> stage;
    all_sums sums;
    const int n = at.n + consumer_idx() * n_fragments * 64, m = at.m + rank() * Config::share_rows;
    const bool has_share = rank() < n_sharers;
    const uint32_t bias = stage_at(Config::n_stages) + uint32_t(consumer_idx() * Config::bias_bytes);
    const uint32_t places =
        stage_at(0) + uint32_t(Config::parts_bytes + consumer_idx() * Config::n_outputs * Config::output_bytes);
    const wgmma_store<Config, Config::share_rows> store{args};
    int output = 0;
    if (has_share) store.prefetch(m, n, at.batch);
    const auto bias_of_item = store.ask_for_bias(m, n, at.batch);
    wgmma_multiply_as_laid_out<Config>(args, *this, stage_at(0), consumer_idx(), n_k_blocks(), sums, stage);
    store.put_bias(bias_of_item, bias);
    if constexpr (n_parts == 1) {
      barrier_sync(1 + Config::n_consumers, n_consuming); /* all warps have read their last stage */
      store(sums, m, n, at.batch, bias, places, output);
    } else {
      own_sums total;
      if (!exchange_parts<n_parts, n_sharers>(exchange{*this, sums, total})) return;
      store(total, m, n, at.batch, bias, places, output);
    }
    if (threadIdx.x % 128 == 0) cp_async_bulk_wait_group_read<0>();
  }

  __device__ __forceinline__ void run() const {
    const bool is_producer = int(threadIdx.x) == n_consuming;
    pipeline_stage<Config::n_stages> stage;
    if (threadIdx.x == 0) {
      prefetch_tensormap(&args.a.map);
      prefetch_tensormap(&args.b.map);
      if (args.c_by_map) prefetch_tensormap(&args.c);
    }
    if (is_producer) prepare();
    const item at = find_item();
    const int n_k = n_k_blocks(), n_first = n_k < Config::n_stages ? n_k : Config::n_stages;
    if (is_producer) load(at, 0, n_first, stage);
    __syncthreads();
    if (is_producer) load(at, n_first, n_k, stage);
    if (int(threadIdx.x) < n_consuming) consume(at);
  }
};

} // namespace ws
#endif
