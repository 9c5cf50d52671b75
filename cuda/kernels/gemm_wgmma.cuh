/* gemm_wgmma.cuh - products of 16-bit elements on the tensor cores of cc 9.0: warpgroups with roles
 * of their own around two pipelines.
 *
 *   producers (2 warps)     that of A draws items one ahead, and publishes them to the others (pipeline
 *                           of items); they have TMA fill stages (pipeline of stages): one k block
 *                           of A, and as many of B as the item has tiles; the first ones as soon as
 *                           they know their item, before the block's threads have met
 *   consumers (128 each)    each owns some of the item's columns against the same stage of A; wgmma
 *                           reads the stages, the sums stay in registers; then they go to C, while
 *                           the producer already fills stages of the next item. This is
 *                           cooperative. Or ping-pong: each owns every n-th item, so that one
 *                           multiplies while the other stores
 *
 *       m (contiguous in C) ->        a wgmma takes 64 columns of C as its rows, and BM rows of C as
 *     n  +----------------+           its columns, so that neighbouring registers are neighbours in C:
 *     |  | consumer 0     | 64        its first operand is B, its second one A.
 *     v  | consumer 1     | 64
 *        +----------------+
 *              BM
 *
 * The blocks of a cluster work on neighbouring items, n_shared_b along m times n_shared_a along n. Each
 * copies its part of A to all blocks of its row of tiles, and of B to all of its column, so that A and
 * B leave the L2 once; so a stage may be filled when the consumers of all these blocks have read it.
 * The producer of block 0 draws for all.
 *
 * Every element of C has one owner and one order of summation over k, so its bits depend on no
 * scheduler, tile order, COARSE_FACTOR or alignment.
 *
 * Which parity is waited for, and how consumers alternate (ping-pong), is in pipeline.cuh. */
#ifndef WS_CUDA_WGMMA_KERNEL_CUH
#define WS_CUDA_WGMMA_KERNEL_CUH
#include "cuda/epilogue/sliced_store.cuh"
#include "cuda/epilogue/wgmma_store.cuh"
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/mainloop/sliced_multiply.cuh"
#include "cuda/mainloop/wgmma_load.cuh"
#include "cuda/mainloop/wgmma_multiply.cuh"
#include "cuda/ptx/clc.cuh"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/memory.cuh"
#include "cuda/rows/wgmma_config.cuh"
#include "cuda/sched/queue.cuh"

namespace ws {

template <class Config, template <int> class Sched> struct wgmma_kernel {
  using element = typename Config::element;
  static constexpr int cluster = Config::cluster, n_shared_a = Config::n_shared_a, n_shared_b = Config::n_shared_b;
  static constexpr int n_producers = 2, producers_barrier = 1 + Config::n_consumers;
  /* Bits of the blocks of a cluster's first column. */
  static constexpr uint32_t every_nth = ((1u << cluster) - 1) / ((1u << n_shared_a) - 1);
  static constexpr int n_partners = n_shared_a + n_shared_b - 1; /* blocks that fill a stage, this one among them */
  static constexpr uint32_t no_item = ~uint32_t(0);
  static constexpr uint32_t b_at = Config::n_slices * Config::a_bytes; /* B in a stage */

  /* First element of C; m < 0: there are no more items. */
  struct item {
    int m, n, batch, unused;
  };

  struct shared_state {
    uint64_t full[Config::n_stages], empty[Config::n_stages], item_full[Config::n_items], item_empty[Config::n_items];
    alignas(16) item items[Config::n_items];
    /* ping-pong: the consumer has seen the first stage of its item full */
    uint64_t begun[Config::n_consumers];
  };
  static_assert(sizeof(shared_state) <= WS_WGMMA_BARRIER_BYTES);

  const ws_wgmma_args &args;
  unsigned char *shared;

  __device__ shared_state &state() const {
    return *reinterpret_cast<shared_state *>(shared + Config::n_stages * Config::stage_bytes +
                                             Config::n_consumers *
                                                 (Config::n_outputs * Config::output_bytes + Config::bias_bytes));
  }
  __device__ uint32_t stage_at(int place) const { return shared_address(shared) + uint32_t(place * Config::stage_bytes); }
  static __device__ __forceinline__ uint32_t rank() { return cluster > 1 ? cluster_rank() : 0; }
  /* Of a cluster's items, along m and along n. */
  static __device__ __forceinline__ int rank_m() { return n_shared_b > 1 ? int(rank()) / n_shared_a : 0; }
  static __device__ __forceinline__ int rank_n() { return n_shared_b > 1 ? int(rank()) % n_shared_a : int(rank()); }

  /* Before the threads of the cluster have met: by one thread of each producer, which the compiler knows to be one. */
  __device__ __forceinline__ void prepare(int warp) const {
    if (warp >= n_producers || !elect_one()) return;
    if (warp == 0) {
      prefetch_tensormap(&args.a.map);
#pragma unroll
      for (int s = 0; s < Config::n_stages; s++) {
        mbarrier_init(&state().full[s], 1);
        mbarrier_init(&state().empty[s], Config::n_sharing * n_partners);
      }
    } else {
      prefetch_tensormap(&args.b.map);
      if (Config::is_bare || args.c_by_map) prefetch_tensormap(&args.c);
#pragma unroll
      for (int i = 0; i < Config::n_items; i++) {
        mbarrier_init(&state().item_full[i], 1);
        mbarrier_init(&state().item_empty[i], (Config::n_consumers + n_producers) * cluster - 1);
      }
      if constexpr (Config::ping_pong)
        for (int c = 0; c < Config::n_consumers; c++) mbarrier_init(&state().begun[c], 1);
    }
    fence_mbarrier_init_release();
    fence_proxy_async_shared();
  }

  /* The same in all threads of a warp, which the compiler is to know. */
  static __device__ __forceinline__ int warp_idx() { return __shfl_sync(~0u, int(threadIdx.x) / 32, 0); }

  /* All threads of the cluster, at the beginning. It orders no memory (fence_mbarrier_init_release did for the barriers):
   * with a release all that is under way would be waited for. */
  static __device__ __forceinline__ void meet() {
    if constexpr (cluster > 1)
      barrier_cluster_arrive_relaxed(), barrier_cluster_wait();
    else
      __syncthreads();
  }

  static __device__ __forceinline__ void wait(const uint64_t &barrier, uint32_t parity) {
    mbarrier_wait<cluster == 1 ? barrier_scope::cta : barrier_scope::cluster>(shared_address(&barrier), parity);
  }

  /* The k blocks of an item: all but those of which a triangular operand has only zeros. */
  struct k_blocks {
    int first, count;
  };
  __device__ __forceinline__ k_blocks k_blocks_of(const item &at) const {
    if constexpr (Config::is_sliced)
      if (args.triangular) {
        constexpr int n_columns = Config::item_n * cluster;
        const bool is_b = args.triangular == 2;
        const ws_k_range range = ws_k_range_of(args.triangle, is_b, is_b ? at.n : at.m / Config::unit,
                                               is_b ? n_columns : Config::bm / Config::unit, args.k / Config::unit);
        const int first = int(range.begin * Config::unit) / Config::bk;
        return {first, int(ws_ceil_div(range.end * Config::unit, Config::bk)) - first};
      }
    return {0, n_k_blocks()};
  }

  __device__ __forceinline__ int n_k_blocks() const { return int(ws_ceil_div(args.k, Config::bk)); }
  /* Its first row and column of the items that the cluster is at. */
  static __device__ __forceinline__ int row(int m) { return m + rank_m() * Config::bm; }
  static __device__ __forceinline__ int column(int n) { return n + rank_n() * Config::item_n; }

  /* Three slices, gathered: items are of what is listed alone, of the product that has most. */
  __device__ __forceinline__ item gathered_item_at(uint32_t item_idx, const slice_lists &lists) const {
    const int64_t n_m = lists.m ? ws_min(args.m, args.scales.state_m->n_needs_3) : args.m,
                  n_n = lists.n ? ws_min(args.n, args.scales.state_n->n_needs_3) : args.n;
    const uint32_t n_rows = uint32_t(ws_ceil_div(n_m, Config::bm)),
                   n_of_product = n_rows * uint32_t(ws_ceil_div(n_n, Config::item_n));
    const uint32_t batch = item_idx / n_of_product, tile = item_idx % n_of_product;
    return {batch < args.grid.n_batch ? int(tile % n_rows) * Config::bm : -1, int(tile / n_rows) * Config::item_n, int(batch), 0};
  }

  __device__ __forceinline__ item item_at(uint32_t item_idx) const {
    if constexpr (Config::n_slices == 3) {
      const slice_lists lists = slice_lists_of<Config>(args.scales);
      if (lists.m || lists.n) return gathered_item_at(item_idx, lists);
    }
    const ws_tile_place tile = ws_tile_place_at(&args.tiles, item_idx);
    return {item_idx < args.sched.n_items ? int(tile.row) * (Config::bm * n_shared_b) : -1,
            int(tile.strip) * (Config::item_n * n_shared_a), int(tile.batch), 0};
  }

  /* Whether all threads of all blocks know the first item: it has not to be drawn. */
  __device__ __forceinline__ bool all_know() const { return Config::is_bare && !args.sched.queue; }

  /* ---- Producers: a warp for A, which draws the items, and one for B; a thread of each asks for copies,
   * and one speaks for the scheduler --------------------------------------------------------------- */

  /* Of the warp. */
  static __device__ __forceinline__ bool is_first() { return threadIdx.x % 32 == 0; }
  /* Whether the scheduler answers this thread. */
  __device__ __forceinline__ bool is_told() const { return !args.sched.queue || is_first(); }
  __device__ __forceinline__ uint32_t tell(uint32_t item_idx) const {
    return args.sched.queue ? __shfl_sync(~0u, item_idx, 0) : item_idx;
  }

  /* In block 0, for the consumers of all blocks and the producers of the others. */
  __device__ __forceinline__ void publish(const item &at, const pipeline_stage<Config::n_items> &slot) const {
    wait(state().item_empty[slot.place], slot.empty_parity());
    if (!is_first()) return;
    const uint32_t full = shared_address(&state().item_full[slot.place]);
    if constexpr (cluster > 1) {
      mbarrier_arrive_expect_tx(full, sizeof(item));
      const int words[4] = {at.m, at.n, at.batch, at.unused};
      for (uint32_t r = 0; r < cluster; r++) st_async_16(shared_address(&state().items[slot.place]), words, full, r);
    } else {
      state().items[slot.place] = at;
      mbarrier_arrive(full);
    }
  }

  /* The producers that have not drawn the item. */
  template <bool IS_A> __device__ __forceinline__ item receive(const pipeline_stage<Config::n_items> &slot) const {
    const uint32_t full = shared_address(&state().item_full[slot.place]), empty = shared_address(&state().item_empty[slot.place]);
    if (IS_A && is_first()) mbarrier_arrive_expect_tx(full, sizeof(item));
    wait(state().item_full[slot.place], slot.full_parity());
    const item at = state().items[slot.place];
    __syncwarp();
    if (is_first()) {
      if constexpr (cluster > 1)
        mbarrier_arrive_at(empty, 0);
      else
        mbarrier_arrive(empty);
    }
    return at;
  }

  /* Slices: whether the item has an element that is wanted; three slices: one that is for them. */
  __device__ __forceinline__ bool is_wanted(const item &at) const {
    if constexpr (!Config::is_sliced) return true;
    constexpr int n_columns = Config::item_n * cluster;
    if (!ws_region_wants_of(&args.region, at.m / Config::unit, Config::bm / Config::unit, at.n, n_columns)) return false;
    if constexpr (Config::n_slices < 3) return true;
    const ws_wgmma_scales &scales = args.scales;
    const slice_lists lists = slice_lists_of<Config>(scales);
    if (lists.m) return at.m < lists.m[at.batch * scales.listed_pitch_m] * Config::unit;
    if (lists.n) return at.n < lists.n[at.batch * scales.listed_pitch_n];
    int any = 0;
    for (int i = at.m; i < at.m + Config::bm && i < args.m; i += WS_SLICE_GROUP)
      any |= scales.groups_m[at.batch * scales.groups_pitch_m + i / WS_SLICE_GROUP];
    for (int j = at.n; j < at.n + Config::item_n && j < args.n; j += WS_SLICE_GROUP)
      any |= scales.groups_n[at.batch * scales.groups_pitch_n + j / WS_SLICE_GROUP];
    return any != 0;
  }

  /* The producer's first item, of which n_loaded k blocks are on their way. */
  struct beginning {
    uint32_t item_idx;
    int n_loaded;
  };

  /* Before the threads of the cluster have met: so no block may write to another one yet. Who has
   * not drawn the item itself does not know it. */
  template <bool IS_A> __device__ __forceinline__ beginning begin() const {
    const Sched<cluster> sched(args.sched);
    const bool is_known = (IS_A && cluster == 1) || all_know();
    beginning first = {is_known ? tell(is_told() ? sched.first() : no_item) : no_item, 0};
    if (!is_known) {
      if (IS_A && rank() == 0) first.item_idx = tell(is_told() ? sched.first() : no_item);
      return first;
    }
    const item at = item_at(first.item_idx);
    if (at.m < 0) return first;
    first.n_loaded = int(ws_min(n_k_blocks(), Config::n_stages));
    pipeline_stage<Config::n_stages> stage;
    load<IS_A, true>(at, {0, first.n_loaded}, stage);
    return first;
  }

  /* Some k blocks of the item. IS_BEGUN: not for other blocks, nor after others. */
  template <bool IS_A, bool IS_BEGUN>
  __device__ __forceinline__ void load(const item &at, const k_blocks &blocks, pipeline_stage<Config::n_stages> &stage) const {
    if ((IS_A ? args.a : args.b).along_k)
      load_lines<IS_A, IS_BEGUN, true>(at, blocks, stage);
    else
      load_lines<IS_A, IS_BEGUN, false>(at, blocks, stage);
  }

  template <bool IS_A, bool IS_BEGUN, bool ALONG_K>
  __device__ __forceinline__ void load_lines(const item &at, const k_blocks &blocks,
                                             pipeline_stage<Config::n_stages> &stage) const {
    constexpr int n_parts = IS_A ? n_shared_a : n_shared_b;
    const uint32_t sharing = IS_A ? ((1u << n_shared_a) - 1) << (rank_m() * n_shared_a) : every_nth << rank_n();
    const bool is_elected = elect_one();
    line_loader<IS_A ? Config::bm : Config::item_n, n_parts, ALONG_K> lines(
        IS_A ? args.a : args.b, IS_A ? row(at.m) : column(at.n), blocks.first * Config::bk, at.batch);
#pragma unroll 1
    for (int k_block = 0; k_block < blocks.count; k_block++) {
      if constexpr (!IS_BEGUN) wait(state().empty[stage.place], stage.empty_parity());
      const uint32_t to = stage_at(stage.place) + (IS_A ? 0 : b_at), full = shared_address(&state().full[stage.place]);
      if (is_elected) {
        if constexpr (IS_A) mbarrier_arrive_expect_tx(full, args.stage_bytes);
        if constexpr (IS_BEGUN) {
          lines.ask(to, full);
        } else {
#pragma unroll
          for (int s = 0; s < Config::n_slices; s++)
            lines.template ask_part<(n_parts > 1)>(IS_A ? rank_n() : rank_m(),
                                                   to + s * (IS_A ? Config::a_bytes : Config::b_bytes), full, sharing, s);
        }
      }
      lines.advance();
      stage.advance();
    }
  }

  /* What the beginning has left of an item. */
  template <bool IS_A>
  __device__ __forceinline__ void load_rest(const item &at, int n_loaded, pipeline_stage<Config::n_stages> &stage) const {
    k_blocks blocks = k_blocks_of(at);
    blocks.first += n_loaded, blocks.count -= n_loaded;
    load<IS_A, false>(at, blocks, stage);
  }

  __device__ __forceinline__ void produce_b(const beginning &first) const {
    pipeline_stage<Config::n_stages> stage;
    pipeline_stage<Config::n_items> slot;
    bool is_known = all_know();
    int n_loaded = first.n_loaded;
    item at = item_at(first.item_idx);
    stage.advance(n_loaded);
    while (true) {
      if (!is_known) at = receive<false>(slot), slot.advance();
      is_known = false;
      if (at.m < 0) break;
      load_rest<false>(at, n_loaded, stage);
      n_loaded = 0;
    }
  }

  __device__ __forceinline__ void produce_a(const beginning &first) const {
    const Sched<cluster> sched(args.sched);
    pipeline_stage<Config::n_stages> stage;
    pipeline_stage<Config::n_items> slot;
    uint32_t n_left = sched.most_items(), item_idx = first.item_idx;
    int n_loaded = first.n_loaded;
    bool is_known = all_know();
    /* Three slices have few items that are wanted: no worker is to hold one while it has another. */
    constexpr bool asks_ahead = Config::n_slices < 3;
    stage.advance(n_loaded);
    while (true) {
      uint32_t next = no_item;
      item at;
      bool asks = false;
      if (rank() == 0 || is_known) {
        at = item_at(item_idx);
        asks = rank() == 0 && at.m >= 0 && --n_left > 0 && is_told();
        const bool is_passed_over = at.m >= 0 && !is_wanted(at);
        if (asks && (asks_ahead || is_passed_over)) next = sched.after(item_idx);
        if (is_passed_over) {
          item_idx = tell(next);
          continue;
        }
        if (!is_known) publish(at, slot);
      } else {
        at = receive<true>(slot);
      }
      if (!is_known) slot.advance();
      if (at.m < 0) break;
      is_known = false;
      load_rest<true>(at, n_loaded, stage);
      if (!asks_ahead && asks) next = sched.after(item_idx);
      item_idx = tell(next);
      n_loaded = 0;
    }
    if (rank() == 0 && is_first()) sched.leave();
  }

  /* ---- Consumers ----------------------------------------------------------------------------- */

  static __device__ __forceinline__ int consumer_idx() { return int(threadIdx.x) / 128 - 1; }
  /* Which of an item's shares is this consumer's. */
  static __device__ __forceinline__ int share_idx() { return Config::ping_pong ? 0 : consumer_idx(); }

  /* By the first threads of a warpgroup, one for each block that filled the stage. */
  __device__ __forceinline__ void release(int place, int) const {
    if constexpr (n_partners > 1) {
      const uint32_t block = threadIdx.x % 128;
      bool is_partner = block < cluster;
      if constexpr (n_shared_b > 1)
        is_partner = is_partner && (int(block) / n_shared_a == rank_m() || int(block) % n_shared_a == rank_n());
      if (is_partner) mbarrier_arrive_at(shared_address(&state().empty[place]), block);
    } else {
      if (threadIdx.x % 128 == 0) mbarrier_arrive(shared_address(&state().empty[place]));
    }
  }

  /* The barriers of ping-pong (pipeline.cuh). */
  __device__ __forceinline__ void wait_begun(int consumer, uint32_t parity) const { wait(state().begun[consumer], parity); }
  __device__ __forceinline__ void wait_full(int place, uint32_t parity) const { wait(state().full[place], parity); }
  __device__ __forceinline__ void meet_consumer() const { barrier_sync(1 + consumer_idx(), 128); }
  __device__ __forceinline__ void arrive_begun() const {
    if (threadIdx.x % 128 == 0) mbarrier_arrive(shared_address(&state().begun[consumer_idx()]));
  }

  /* By the layouts of this launch. n_k: k blocks of the item. */
  __device__ __forceinline__ void multiply_as_laid_out(float (&sums)[Config::n_fragments][Config::bm / 2],
                                                       pipeline_stage<Config::n_stages> &stage, int n_k) const {
    if constexpr (Config::n_slices > 1)
      sliced_multiply_as_laid_out<Config>(args, *this, stage_at(0), share_idx(), n_k, sums[0], stage);
    else
      wgmma_multiply_as_laid_out<Config>(args, *this, stage_at(0), share_idx(), n_k, sums, stage);
  }

  __device__ __forceinline__ void consume() const {
    pipeline_stage<Config::n_stages> stage;
    pipeline_stage<Config::n_items> slot;
    float sums[Config::n_fragments][Config::bm / 2];
    const int t = int(threadIdx.x) % 128;
    const uint32_t places = stage_at(Config::n_stages) + uint32_t(consumer_idx() * Config::n_outputs * Config::output_bytes);
    const uint32_t bias = stage_at(Config::n_stages) + uint32_t(Config::n_consumers * Config::n_outputs * Config::output_bytes +
                                                                consumer_idx() * Config::bias_bytes);
    int output = 0;
    uint32_t n_items_seen = 0;
    bool is_known = all_know();
    while (true) {
      item at;
      if (is_known) {
        at = item_at(Sched<cluster>::first_of_worker());
      } else {
        wait(state().item_full[slot.place], slot.full_parity());
        at = state().items[slot.place];
        barrier_sync(1 + consumer_idx(), 128);
        if (t == 0) {
          const uint32_t empty = shared_address(&state().item_empty[slot.place]);
          if constexpr (cluster > 1)
            mbarrier_arrive_at(empty, 0);
          else
            mbarrier_arrive(empty);
        }
        slot.advance();
      }
      is_known = false;
      if (at.m < 0) break;
      if constexpr (Config::ping_pong)
        if (!ping_pong::owns_item<Config::n_consumers>(n_items_seen++, consumer_idx())) {
          stage.advance(n_k_blocks());
          continue;
        }
      const int m = row(at.m), n = column(at.n) + share_idx() * Config::n_fragments * 64;
      if constexpr (Config::is_sliced) {
        multiply_as_laid_out(sums, stage, k_blocks_of(at).count);
        sliced_store<Config>{args, slice_lists_of<Config>(args.scales)}(sums, m, n, at.batch);
      } else {
        const wgmma_store<Config> store{args};
        store.prefetch(m, n, at.batch);
        const auto bias_of_item = store.ask_for_bias(m, n, at.batch);
        if constexpr (Config::ping_pong) ping_pong::begin_item<Config::n_consumers>(*this, n_items_seen - 1, stage);
        multiply_as_laid_out(sums, stage, n_k_blocks());
        store.put_bias(bias_of_item, bias);
        store(sums, m, n, at.batch, bias, places, output);
      }
    }
    if constexpr (!Config::is_sliced) griddepcontrol_launch_dependents(); /* nothing is left to be disturbed at */
    cp_async_bulk_wait_group_read<0>();                                   /* in the thread that asked for the copies */
  }

  /* Slices: whether all elements of C are for another launch (sliced_store). All threads of all
   * blocks find the same. */
  __device__ __forceinline__ bool stores_nothing() const {
    const ws_wgmma_scales &scales = args.scales;
    const ws_slice_state of_m = *scales.state_m, of_n = *scales.state_n;
    if constexpr (Config::n_slices == 3)
      return of_m.n_needs_3 + of_n.n_needs_3 == 0 || of_m.n_needs_fp32 == scales.n_m || of_n.n_needs_fp32 == scales.n_n;
    else
      return of_m.n_needs_3 == scales.n_m || of_n.n_needs_3 == scales.n_n;
  }

  __device__ __forceinline__ void run() const {
    const int warp = warp_idx();
    prepare(warp);
    /* What is in global memory, the queue among it, may be the launch before's until here (docs/scheduling.md). */
    if constexpr (!Config::is_sliced) griddepcontrol_wait();
    beginning first = {no_item, 0};
    if constexpr (Config::is_bare) { /* of the others the code is longer than what this saves */
      if (warp < n_producers) barrier_sync(producers_barrier, n_producers * 32); /* the barriers are there */
      if (warp == 0) first = begin<true>();
      if (warp == 1) first = begin<false>();
    }
    meet();
    if constexpr (Config::is_sliced) {
      griddepcontrol_launch_dependents();
      griddepcontrol_wait(); /* for the slices */
      if (stores_nothing()) return;
    }
    if (threadIdx.x < 128) {
      if constexpr (Config::producer_registers > 0) setmaxnreg_dec<Config::producer_registers>();
      if (!Config::is_bare && warp == 0 && rank() == 0) {
        const Sched<cluster> sched(args.sched);
        first.item_idx = tell(is_told() ? sched.first() : no_item);
      }
      if (warp == 0) produce_a(first);
      if (warp == 1) produce_b(first);
    } else {
      if constexpr (Config::producer_registers > 0) setmaxnreg_inc<Config::consumer_registers>();
      consume();
    }
    /* No block leaves while another may still write to it. With a release: an arrival at another block's
     * barrier is on its way when its instruction is done, and a block that is gone cannot take it. */
    if constexpr (cluster > 1) cluster_sync();
  }
};

} // namespace ws
#endif
