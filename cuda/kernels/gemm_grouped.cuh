/* gemm_grouped.cuh - ragged groups of 16-bit products on the tensor cores of cc 9.0. The sizes of the
 * groups are in device memory: no host waits for them, nothing is padded.
 *
 * At its beginning every block sums up the items of the groups (shared memory); then it is as
 * gemm_wgmma.cuh: a producer that draws tickets and has TMA fill a pipeline of stages, two consumers
 * (cooperative) that multiply and store. An item is 256 rows of C, 128 for each of two blocks, times up
 * to 256 (or 128) columns of one group, which the producer's two blocks load by halves for both.
 *
 *        columns (of a group) ->        a wgmma has 64 rows of C as its rows, and the item's columns, in
 *     m  +--------------------+         steps of 32, as its columns: so few columns cost little, and
 *     |  | block 0  consumer 0| 64      where items of a group end is no matter of alignment.
 *     v  |          consumer 1| 64
 *        | block 1  consumer 0| 64      Of ragged columns a group's columns are cut into equal items.
 *        |          consumer 1| 64      Of ragged k lines beyond the group's end are zeroed in the last
 *        +--------------------+         stage: they are another group's.
 *
 * Items of up to 128 columns leave room for two blocks of an SM, one of which multiplies while the other one
 * stores: for groups that are small, or short along k.
 *
 * C leaves through shared memory in parts of 32 columns: by TMA if all of them are the item's, else
 * column by column. A group whose end lies before its beginning, or beyond `total`, is skipped.
 * Every element has one owner and one order of summation, that of gemm_wgmma.cuh. */
#ifndef WS_CUDA_GROUPED_KERNEL_CUH
#define WS_CUDA_GROUPED_KERNEL_CUH
#include <type_traits>

#include "cuda/epilogue/grouped_store.cuh"
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "cuda/sched/queue.cuh"
#include "cuda/shared/grouped_args.h"

namespace ws {

/* A_X: A is contiguous along m in place of k. RAGGED_K: B is contiguous along n (A_X, too), else along k. */
template <class Element, bool A_X, bool RAGGED_K, int MOST_N> struct grouped_kernel {
  static_assert(A_X || !RAGGED_K, "lines are of k");
  static constexpr int cluster = 2, n_consumers = 2, consumer_threads = 128 * n_consumers;
  static constexpr int bm = 128, item_m = bm * cluster, most_n = MOST_N, bk = 64, swizzle = 8, n_classes = RAGGED_K ? 4 : 1;
  static constexpr bool is_narrow = most_n == 128;
  static constexpr int n_blocks = is_narrow ? 2 : 1, n_stages = is_narrow ? 3 : 4, n_items = 2, n_outputs = is_narrow ? 1 : 2;
  /* A warp is enough to produce; of a whole warpgroup the consumers take over the registers. */
  static constexpr int n_threads = consumer_threads + (is_narrow ? 32 : 128);
  static constexpr int slab_bytes = 64 * 64 * 2, a_bytes = bm * bk * 2, b_bytes = most_n * bk * 2,
                       stage_bytes = a_bytes + b_bytes;
  /* Columns that one box of B brings. */
  static constexpr int box_n = RAGGED_K ? 64 : 32, box_bytes = box_n * bk * 2;
  /* The items' columns are multiples of it. */
  static constexpr int unit_n = 32;

  using item = grouped_item;
  using store = grouped_store<Element, RAGGED_K, most_n, n_outputs, !is_narrow>;
  static constexpr int output_bytes = store::part_bytes;

  struct shared_state {
    uint64_t full[n_stages], empty[n_stages], item_full[n_items], item_empty[n_items];
    alignas(16) item items[n_items];
    uint2 sums[n_threads / 32];
    uint32_t first_item[WS_GROUPED_MOST_GROUPS + 1];
    uint16_t groups[RAGGED_K ? WS_GROUPED_MOST_GROUPS : 1];
  };
  static constexpr int shared_bytes = n_stages * stage_bytes + n_consumers * n_outputs * output_bytes + int(sizeof(shared_state));
  static_assert(shared_bytes <= (is_narrow ? WS_GROUPED_NARROW_SHARED_BYTES : WS_GROUPED_SHARED_BYTES));

  const ws_grouped_args &args;
  const ws_grouped_ends &given;
  unsigned char *shared;

  __device__ __forceinline__ shared_state &state() const {
    return *reinterpret_cast<shared_state *>(shared + n_stages * stage_bytes + n_consumers * n_outputs * output_bytes);
  }
  __device__ __forceinline__ uint32_t stage_at(int place) const { return shared_address(shared) + uint32_t(place * stage_bytes); }
  static __device__ __forceinline__ uint32_t rank() { return cluster_rank(); }
  static __device__ __forceinline__ void wait(const uint64_t &barrier, uint32_t parity) {
    mbarrier_wait<barrier_scope::cluster>(shared_address(&barrier), parity);
  }

  /* ---- From groups to items -------------------------------------------------------------------- */

  __device__ __forceinline__ int64_t end_of(int group) const {
    if (group < 0) return 0;
    if (!args.ends) return given.end[group];
    return args.ends_are_64 ? static_cast<const int64_t *>(args.ends)[group] : static_cast<const int32_t *>(args.ends)[group];
  }
  __device__ __forceinline__ int strips() const { return (args.m + item_m - 1) / item_m; }
  /* Items of a group along its columns. */
  __device__ __forceinline__ int tiles_of(int count) const { return ((RAGGED_K ? args.n : count) + most_n - 1) / most_n; }

  /* Of ragged k the longest groups go first, lest one be left for the end; only roughly so, in classes. */
  __device__ __forceinline__ int class_of(int count) const {
    const int64_t all = int64_t(count) * args.n_groups;
    return !RAGGED_K || all > 4 * args.total ? 0 : all > 2 * args.total ? 1 : all > args.total ? 2 : 3;
  }

  /* The sum of x over the threads before this one, of which the pair of numbers is; all: of the block. */
  __device__ __forceinline__ uint2 sum_before(uint2 x, uint2 &all) const {
    uint2 *const of_warps = state().sums;
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    uint2 sum = x;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
      const uint2 other = {__shfl_up_sync(~0u, sum.x, d), __shfl_up_sync(~0u, sum.y, d)};
      if (lane >= d) sum.x += other.x, sum.y += other.y;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    sum.x -= x.x, sum.y -= x.y, all = {0, 0};
#pragma unroll
    for (int w = 0; w < n_threads / 32; w++) {
      const uint2 of_warp = of_warps[w];
      if (w < warp) sum.x += of_warp.x, sum.y += of_warp.y;
      all.x += of_warp.x, all.y += of_warp.y;
    }
    __syncthreads();
    return sum;
  }

  /* By all threads of a block: groups in their order, and the first item of each. */
  __device__ __forceinline__ void number_items() const {
    shared_state &s = state();
    uint2 before = {0, 0}; /* items; groups */
#pragma unroll 1
    for (int pass = 0; pass < n_classes; pass++)
      for (int first = 0; first < args.n_groups; first += n_threads) {
        const int group = first + int(threadIdx.x);
        uint2 mine = {0, 0};
        if (group < args.n_groups) {
          const int64_t begin = end_of(group - 1), end = end_of(group);
          const bool is_good = begin >= 0 && begin <= end && end <= args.total;
          const int count = is_good ? int(end - begin) : 0;
          if (class_of(count) == pass) mine = {uint32_t(tiles_of(count)) * uint32_t(strips()), 1};
          if (RAGGED_K && !is_good) mine.x = 0; /* an empty group has a C, which is zeros */
        }
        uint2 all;
        const uint2 at = sum_before(mine, all);
        if (mine.y) {
          s.first_item[before.y + at.y] = before.x + at.x;
          if constexpr (RAGGED_K) s.groups[before.y + at.y] = uint16_t(group);
        }
        before.x += all.x, before.y += all.y;
      }
    if (threadIdx.x == 0) s.first_item[args.n_groups] = before.x;
  }

  /* By one thread. */
  __device__ __forceinline__ item item_at(uint32_t item_idx) const {
    const shared_state &s = state();
    if (item_idx >= s.first_item[args.n_groups]) return {};
    int low = 0, high = args.n_groups; /* first_item[low] <= item_idx < first_item[high] */
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (s.first_item[middle] <= item_idx)
        low = middle;
      else
        high = middle;
    }
    const int group = RAGGED_K ? s.groups[low] : low;
    const uint32_t in_group = item_idx - s.first_item[low], n_strips = uint32_t(strips());
    const int begin = int(end_of(group - 1)), count = int(end_of(group)) - begin, all_n = RAGGED_K ? args.n : count;
    const uint32_t n_tiles = uint32_t(tiles_of(count));
    const uint32_t swizzled = in_group / (swizzle * n_strips), in_swizzled = in_group - swizzled * swizzle * n_strips;
    const uint32_t left = n_tiles - swizzled * swizzle, height = left < swizzle ? left : swizzle;
    const uint32_t strip = in_swizzled / height, tile = swizzled * swizzle + in_swizzled - strip * height;
    /* equal ones, in whole units */
    const int width = RAGGED_K ? most_n : ((all_n + int(n_tiles) - 1) / int(n_tiles) + unit_n - 1) / unit_n * unit_n;
    const int at = int(tile) * width, n = all_n - at < width ? all_n - at : width;
    if constexpr (RAGGED_K) return {int(strip) * item_m, at, n, group, begin, args.k > 0 ? count : 0, {}};
    return {int(strip) * item_m, begin + at, n, group, 0, args.k, {}};
  }

  static __device__ __forceinline__ int n_k_blocks(const item &at) { return (at.k + bk - 1) / bk; }

  /* ---- Producer: one thread ------------------------------------------------------------------------ */

  __device__ __forceinline__ void load(const item &at, pipeline_stage<n_stages> &stage) const {
    const int n_boxes = (at.n + box_n - 1) / box_n, n_k = n_k_blocks(at);
    const int m = at.m + int(rank()) * bm, matrix = RAGGED_K ? 0 : at.group;
    const uint32_t bytes = uint32_t(a_bytes + n_boxes * box_bytes);
    const uint64_t *const empty = state().empty;
#pragma unroll 1
    for (int k_block = 0; k_block < n_k; k_block++) {
      const int k = at.k_first + k_block * bk;
      wait(empty[stage.place], stage.empty_parity());
      const uint32_t full = shared_address(&state().full[stage.place]), to = stage_at(stage.place), b_to = to + a_bytes;
      mbarrier_arrive_expect_tx(full, bytes);
      if constexpr (A_X) {
        cp_async_bulk_tensor_load(to, &args.a, m, k, matrix, full);
        cp_async_bulk_tensor_load(to + slab_bytes, &args.a, m + 64, k, matrix, full);
      } else {
        cp_async_bulk_tensor_load(to, &args.a, k, m, matrix, full);
      }
#pragma unroll 1
      for (int box = int(rank()); box < n_boxes; box += cluster) {
        const int column = at.column + box * box_n;
        cp_async_bulk_tensor_multicast(b_to + uint32_t(box * box_bytes), &args.b, RAGGED_K ? column : k, RAGGED_K ? k : column, 0,
                                       full, uint16_t((1 << cluster) - 1));
      }
      stage.advance();
    }
  }

  __device__ __forceinline__ void produce() const {
    const sched_queue_of<cluster> sched(args.sched);
    pipeline_stage<n_stages> stage;
    pipeline_stage<n_items> slot;
    uint32_t item_idx = rank() == 0 ? sched.first() : 0;
    item at = rank() == 0 ? item_at(item_idx) : item{};
    while (true) {
      const uint32_t full = shared_address(&state().item_full[slot.place]);
      uint32_t next = 0;
      if (rank() == 0) {
        if (at.n > 0) next = sched.after(item_idx);
        wait(state().item_empty[slot.place], slot.empty_parity());
        mbarrier_arrive_expect_tx(full, sizeof(item));
        const int place[4] = {at.m, at.column, at.n, at.group}, lines[4] = {at.k_first, at.k, 0, 0};
        const uint32_t to = shared_address(&state().items[slot.place]);
#pragma unroll
        for (uint32_t r = 0; r < cluster; r++) st_async_16(to, place, full, r), st_async_16(to + 16, lines, full, r);
      } else {
        mbarrier_arrive_expect_tx(full, sizeof(item));
        wait(state().item_full[slot.place], slot.full_parity());
        at = state().items[slot.place];
        mbarrier_arrive_at(shared_address(&state().item_empty[slot.place]), 0);
      }
      slot.advance();
      if (at.n == 0) break;
      load(at, stage);
      if (rank() == 0) item_idx = next, at = item_at(item_idx);
    }
    if (rank() == 0) sched.leave();
  }

  /* ---- Consumers ----------------------------------------------------------------------------------- */

  static __device__ __forceinline__ int thread() { return int(threadIdx.x) % 128; }
  static __device__ __forceinline__ int consumer_idx() { return int(threadIdx.x) / 128; }

  __device__ __forceinline__ void release(int place) const {
    if (thread() < cluster) mbarrier_arrive_at(shared_address(&state().empty[place]), uint32_t(thread()));
  }

  /* Ragged k: zeros for lines of the stage that are another group's, by both consumers. */
  __device__ __forceinline__ void zero_lines(uint32_t stage, int n, int n_lines) const {
    const uint32_t end = stage + a_bytes + uint32_t((n + 63) / 64 * slab_bytes);
    for (int line = n_lines + int(threadIdx.x) / 8; line < bk; line += consumer_threads / 8)
#pragma unroll 1
      for (uint32_t to = stage + uint32_t(line * 128) + threadIdx.x % 8 * 16; to < end; to += slab_bytes)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0) : "memory");
    fence_proxy_async_shared();
    barrier_sync(1 + n_consumers, 128 * n_consumers);
  }

  template <int N>
  __device__ __forceinline__ void multiply(const item &at, float (&all)[most_n / 2], pipeline_stage<n_stages> &stage) const {
    float(&sums)[N / 2] = reinterpret_cast<float(&)[N / 2]>(all);
    const uint64_t a_first = wgmma_descriptor<A_X>(stage_at(0) + uint32_t(consumer_idx() * slab_bytes), slab_bytes),
                   b_first = wgmma_descriptor<RAGGED_K>(stage_at(0) + a_bytes, slab_bytes);
    const int n_k = n_k_blocks(at);
    int before = -1;
#pragma unroll 1
    for (int k_block = 0; k_block < n_k; k_block++) {
      wait(state().full[stage.place], stage.full_parity());
      if constexpr (RAGGED_K)
        if (k_block == n_k - 1 && at.k % bk) zero_lines(stage_at(stage.place), N, at.k % bk);
      const uint64_t a = a_first + uint32_t(stage.place * (stage_bytes >> 4)),
                     b = b_first + uint32_t(stage.place * (stage_bytes >> 4));
      hold_in_place(sums);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < bk / wgmma_k; step++)
        wgmma_mma_async<Element, A_X, RAGGED_K>(sums, a + step * wgmma_next_k<A_X>, b + step * wgmma_next_k<RAGGED_K>,
                                                k_block > 0 || step > 0);
      wgmma_commit_group();
      hold_in_place(sums);
      if (before >= 0) {
        wgmma_wait_group<1>(); /* the block before has been read */
        release(before);
      }
      before = stage.place;
      stage.advance();
    }
    wgmma_wait_group<0>();
    hold_in_place(sums);
    if (before >= 0) release(before);
  }

  /* By as many columns as the item has, in whole units, from N on. */
  template <int N>
  __device__ __forceinline__ void multiply_some(const item &at, float (&sums)[most_n / 2],
                                                pipeline_stage<n_stages> &stage) const {
    if constexpr (N < most_n)
      if (at.n > N) return multiply_some<N + unit_n>(at, sums, stage);
    multiply<N>(at, sums, stage);
  }

  __device__ __forceinline__ void consume() const {
    pipeline_stage<n_stages> stage;
    pipeline_stage<n_items> slot;
    float sums[most_n / 2];
    while (true) {
      wait(state().item_full[slot.place], slot.full_parity());
      const item at = state().items[slot.place];
      barrier_sync(1 + consumer_idx(), 128);
      if (thread() == 0) mbarrier_arrive_at(shared_address(&state().item_empty[slot.place]), 0);
      slot.advance();
      if (at.n == 0) break;
      const int m = at.m + int(rank()) * bm + consumer_idx() * 64;
      const store finish = {args, stage_at(n_stages) + uint32_t(consumer_idx() * n_outputs * output_bytes), 1 + consumer_idx()};
      if (n_k_blocks(at) == 0) {
        finish.store_without_k(at, m);
        continue;
      }
      if constexpr (!is_narrow) finish.prefetch(at, m);
      multiply_some<unit_n>(at, sums, stage);
      finish(at, m, sums);
    }
    cp_async_bulk_wait_group_read<0>();
  }

  __device__ __forceinline__ void run() const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < n_stages; s++) {
        mbarrier_init(&state().full[s], 1);
        mbarrier_init(&state().empty[s], n_consumers * cluster);
      }
      for (int i = 0; i < n_items; i++) {
        mbarrier_init(&state().item_full[i], 1);
        mbarrier_init(&state().item_empty[i], (n_consumers + 1) * cluster - 1);
      }
      fence_mbarrier_init_release();
      fence_proxy_async_shared();
    }
    number_items();
    cluster_sync();
    if (threadIdx.x >= consumer_threads) {
      if constexpr (!is_narrow) setmaxnreg_dec<40>();
      if (__shfl_sync(~0u, int(threadIdx.x) / 32, 0) == consumer_threads / 32 && elect_one()) produce();
    } else {
      if constexpr (!is_narrow) setmaxnreg_inc<232>();
      consume();
    }
    cluster_sync(); /* no block leaves while another may still write to it */
  }
};

} // namespace ws
#endif
