/* gemm_grouped.cuh - ragged groups of 16-bit products on the tensor cores of cc 9.0. The sizes of the
 * groups are in device memory: no host waits for them, nothing is padded.
 *
 * At its beginning every block sums up the items of the groups (shared memory); then it is as
 * gemm_wgmma.cuh: a producer that draws tickets and has TMA fill a pipeline of stages, two consumers
 * (cooperative) that multiply and store. An item is 256 rows of C, 128 for each of two blocks, times up
 * to 256 columns of one group, which the producer's two blocks load by halves for both.
 *
 *        columns (of a group) ->        a wgmma has 64 rows of C as its rows, and the item's columns, in
 *     m  +--------------------+         steps of 32, as its columns: so few columns cost little, and
 *     |  | block 0  consumer 0| 64      where items of a group end is no matter of alignment.
 *     v  |          consumer 1| 64
 *        | block 1  consumer 0| 64      Of ragged columns a group's columns are cut into equal items.
 *        |          consumer 1| 64      Of ragged k lines beyond the group's end are zeroed in the last
 *        +--------------------+         stage: they are another group's.
 *
 * C leaves through shared memory in parts of 32 columns: by TMA if all of them are the item's, else
 * column by column. A group whose end lies before its beginning, or beyond `total`, is skipped.
 * Every element has one owner and one order of summation, that of gemm_wgmma.cuh. */
#ifndef WS_CUDA_GROUPED_KERNEL_CUH
#define WS_CUDA_GROUPED_KERNEL_CUH
#include <type_traits>

#include "cuda/mainloop/pipeline.cuh"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/convert.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "cuda/sched/queue.cuh"
#include "cuda/shared/grouped_args.h"

namespace ws {

/* A_X: A is contiguous along m in place of k. RAGGED_K: B is contiguous along n (A_X, too), else along k. */
template <class Element, bool A_X, bool RAGGED_K> struct grouped_kernel {
  static_assert(A_X || !RAGGED_K, "lines are of k");
  static constexpr int cluster = 2, n_consumers = 2, n_threads = 128 * (1 + n_consumers);
  static constexpr int bm = 128, item_m = bm * cluster, most_n = 256, bk = 64, part_n = 32, swizzle = 8;
  static constexpr int n_stages = 4, n_items = 2, n_outputs = 2;
  static constexpr int slab_bytes = 64 * 64 * 2, a_bytes = bm * bk * 2, b_bytes = most_n * bk * 2,
                       stage_bytes = a_bytes + b_bytes;
  static constexpr int output_bytes = part_n * 64 * 2;
  /* Columns that one box of B brings. */
  static constexpr int box_n = RAGGED_K ? 64 : 32, box_bytes = box_n * bk * 2;
  /* The items' columns are multiples of it. */
  static constexpr int unit_n = 32;

  /* First element of C in it; n: its columns, 0: there are no more items. */
  struct item {
    int m, column, n, group;
  };

  struct shared_state {
    uint64_t full[n_stages], empty[n_stages], item_full[n_items], item_empty[n_items];
    alignas(16) item items[n_items];
    uint32_t sums[n_threads / 32 + 1];
    /* of each group: its first line, how many, its first item */
    int begin[WS_GROUPED_MOST_GROUPS], count[WS_GROUPED_MOST_GROUPS];
    uint32_t first_item[WS_GROUPED_MOST_GROUPS + 1];
  };
  static constexpr int shared_bytes = n_stages * stage_bytes + n_consumers * n_outputs * output_bytes + int(sizeof(shared_state));
  static_assert(shared_bytes <= WS_GROUPED_SHARED_BYTES);

  const ws_grouped_args &args;
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
    return args.ends_are_64 ? static_cast<const int64_t *>(args.ends)[group] : static_cast<const int32_t *>(args.ends)[group];
  }
  __device__ __forceinline__ int strips() const { return (args.m + item_m - 1) / item_m; }
  /* Items of a group along its columns. */
  __device__ __forceinline__ int tiles_of(int count) const { return ((RAGGED_K ? args.n : count) + most_n - 1) / most_n; }

  /* By all threads of a block. */
  __device__ __forceinline__ void number_items() const {
    shared_state &s = state();
    const int t = int(threadIdx.x), lane = t % 32, warp = t / 32;
    uint32_t before = 0;
    for (int first = 0; first < args.n_groups; first += n_threads) {
      const int group = first + t;
      uint32_t mine = 0;
      if (group < args.n_groups) {
        const int64_t begin = end_of(group - 1), end = end_of(group);
        const bool is_good = begin >= 0 && begin <= end && end <= args.total;
        const int count = is_good ? int(end - begin) : 0;
        s.begin[group] = int(is_good ? begin : 0), s.count[group] = count;
        mine = uint32_t(tiles_of(count)) * uint32_t(strips());
        if (RAGGED_K && !is_good) mine = 0; /* an empty group has a C, which is zeros */
      }
      uint32_t sum = mine;
#pragma unroll
      for (int d = 1; d < 32; d *= 2) {
        const uint32_t other = __shfl_up_sync(~0u, sum, d);
        if (lane >= d) sum += other;
      }
      if (lane == 31) s.sums[warp] = sum;
      __syncthreads();
      uint32_t of_warps = 0, all = 0;
#pragma unroll
      for (int w = 0; w < n_threads / 32; w++) {
        if (w < warp) of_warps += s.sums[w];
        all += s.sums[w];
      }
      if (group < args.n_groups) s.first_item[group] = before + of_warps + sum - mine;
      before += all;
      __syncthreads();
    }
    if (t == 0) s.first_item[args.n_groups] = before;
  }

  /* By one thread. */
  __device__ __forceinline__ item item_at(uint32_t item_idx) const {
    const shared_state &s = state();
    if (item_idx >= s.first_item[args.n_groups]) return {0, 0, 0, 0};
    int low = 0, high = args.n_groups; /* first_item[low] <= item_idx < first_item[high] */
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (s.first_item[middle] <= item_idx)
        low = middle;
      else
        high = middle;
    }
    const uint32_t in_group = item_idx - s.first_item[low], n_strips = uint32_t(strips());
    const int all_n = RAGGED_K ? args.n : s.count[low];
    const uint32_t n_tiles = uint32_t(tiles_of(s.count[low]));
    const uint32_t swizzled = in_group / (swizzle * n_strips), in_swizzled = in_group - swizzled * swizzle * n_strips;
    const uint32_t left = n_tiles - swizzled * swizzle, height = left < swizzle ? left : swizzle;
    const uint32_t strip = in_swizzled / height, tile = swizzled * swizzle + in_swizzled - strip * height;
    /* equal ones, in whole units */
    const int width = RAGGED_K ? most_n : ((all_n + int(n_tiles) - 1) / int(n_tiles) + unit_n - 1) / unit_n * unit_n;
    const int at = int(tile) * width, n = all_n - at < width ? all_n - at : width;
    return {int(strip) * item_m, (RAGGED_K ? 0 : s.begin[low]) + at, n, low};
  }

  /* k blocks of an item. */
  __device__ __forceinline__ int k_of(int group) const { return RAGGED_K ? state().count[group] : args.k; }
  __device__ __forceinline__ int n_k_blocks(int group) const { return (k_of(group) + bk - 1) / bk; }

  /* ---- Producer: one thread ------------------------------------------------------------------------ */

  __device__ __forceinline__ void load(const item &at, pipeline_stage<n_stages> &stage) const {
    const int n_boxes = (at.n + box_n - 1) / box_n, n_k = n_k_blocks(at.group), k_first = RAGGED_K ? state().begin[at.group] : 0;
    const int m = at.m + int(rank()) * bm, matrix = RAGGED_K ? 0 : at.group;
    const uint32_t bytes = uint32_t(a_bytes + n_boxes * box_bytes);
    const uint64_t *const empty = state().empty;
#pragma unroll 1
    for (int k_block = 0; k_block < n_k; k_block++) {
      const int k = k_first + k_block * bk;
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
        const int words[4] = {at.m, at.column, at.n, at.group};
#pragma unroll
        for (uint32_t r = 0; r < cluster; r++) st_async_16(shared_address(&state().items[slot.place]), words, full, r);
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
  static __device__ __forceinline__ int consumer_idx() { return int(threadIdx.x) / 128 - 1; }

  __device__ __forceinline__ void release(int place) const {
    if (thread() < cluster) mbarrier_arrive_at(shared_address(&state().empty[place]), uint32_t(thread()));
  }

  /* Ragged k: zeros for lines of the stage that are another group's, by both consumers. */
  __device__ __forceinline__ void zero_lines(uint32_t stage, int n, int n_lines) const {
    const int slabs = 2 + (n + 63) / 64, t = int(threadIdx.x) - 128;
    for (int i = t; i < slabs * (bk - n_lines) * 8; i += 128 * n_consumers) {
      const int slab = i / ((bk - n_lines) * 8), in_slab = i - slab * (bk - n_lines) * 8;
      const uint32_t to = stage + uint32_t(slab * slab_bytes + (n_lines + in_slab / 8) * 128 + in_slab % 8 * 16);
      asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0) : "memory");
    }
    fence_proxy_async_shared();
    barrier_sync(1 + n_consumers, 128 * n_consumers);
  }

  template <int N>
  __device__ __forceinline__ void multiply(const item &at, float (&all)[most_n / 2], pipeline_stage<n_stages> &stage) const {
    float(&sums)[N / 2] = reinterpret_cast<float(&)[N / 2]>(all);
    const uint64_t a_first = wgmma_descriptor<A_X>(stage_at(0) + uint32_t(consumer_idx() * slab_bytes), slab_bytes),
                   b_first = wgmma_descriptor<RAGGED_K>(stage_at(0) + a_bytes, slab_bytes);
    const int k = k_of(at.group), n_k = (k + bk - 1) / bk;
    int before = -1;
#pragma unroll 1
    for (int k_block = 0; k_block < n_k; k_block++) {
      wait(state().full[stage.place], stage.full_parity());
      if constexpr (RAGGED_K)
        if (k_block == n_k - 1 && k % bk) zero_lines(stage_at(stage.place), N, k % bk);
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

  /* 16 columns of the warpgroup's 64 rows into a part: a line is a column. */
  static __device__ __forceinline__ void put(uint32_t place, int first, const float *x, float alpha) {
    uint32_t two[4];
#pragma unroll
    for (int i = 0; i < 4; i++) two[i] = half_pair_of<Element>(__fmul_rn(alpha, x[2 * i]), __fmul_rn(alpha, x[2 * i + 1]));
    const uint32_t lane = uint32_t(thread() % 32), line = uint32_t(first) + lane / 16 * 8 + lane % 8;
    const uint32_t eight = uint32_t(thread() / 32 * 2) + lane / 8 % 2;
    stmatrix_x4_trans(place + line * 128 + (eight ^ line % 8) * 16, two);
  }

  /* The part's first columns, by the warpgroup. */
  __device__ __forceinline__ void store_columns(uint32_t place, int m, int column, int n, int group) const {
    const uint32_t eight = uint32_t(thread() % 8);
    uint16_t *const c = static_cast<uint16_t *>(args.c_data) + int64_t(RAGGED_K ? group : 0) * args.stride_c;
#pragma unroll
    for (int i = 0; i < part_n / 16; i++) {
      const uint32_t line = uint32_t(thread() / 8 + i * 16);
      if (int(line) >= n || m + int(eight) * 8 >= args.m) continue;
      uint4 x;
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                   : "r"(place + line * 128 + (eight ^ line % 8) * 16)
                   : "memory");
      *reinterpret_cast<uint4 *>(c + (int64_t(column) + line) * args.ldc + m + eight * 8) = x;
    }
  }

  __device__ __forceinline__ void store(const item &at, const float (&sums)[most_n / 2], int &output) const {
    const int m = at.m + int(rank()) * bm + consumer_idx() * 64;
    if (m >= args.m) return;
    const uint32_t places = stage_at(n_stages) + uint32_t(consumer_idx() * n_outputs * output_bytes);
    const bool asks = __shfl_sync(~0u, thread() / 32, 0) == 0 && elect_one();
#pragma unroll
    for (int part = 0; part < most_n / part_n; part++) {
      const int n_left = at.n - part * part_n;
      if (n_left > 0) {
        const uint32_t place = places + uint32_t(output * output_bytes);
        output = (output + 1) % n_outputs;
        if (asks) cp_async_bulk_wait_group_read<n_outputs - 1>();
        barrier_sync(1 + consumer_idx(), 128);
        put(place, 0, &sums[part * 16], args.alpha);
        put(place, 16, &sums[part * 16 + 8], args.alpha);
        if (n_left >= part_n) {
          fence_proxy_async_shared();
          barrier_sync(1 + consumer_idx(), 128);
          if (asks) cp_async_bulk_tensor_store(&args.c, m, at.column + part * part_n, RAGGED_K ? at.group : 0, place);
        } else {
          barrier_sync(1 + consumer_idx(), 128);
          store_columns(place, m, at.column + part * part_n, n_left, at.group);
        }
        if (asks) cp_async_bulk_commit_group();
      }
    }
  }

  __device__ __forceinline__ void consume() const {
    pipeline_stage<n_stages> stage;
    pipeline_stage<n_items> slot;
    float sums[most_n / 2];
    int output = 0;
    while (true) {
      wait(state().item_full[slot.place], slot.full_parity());
      const item at = state().items[slot.place];
      barrier_sync(1 + consumer_idx(), 128);
      if (thread() == 0) mbarrier_arrive_at(shared_address(&state().item_empty[slot.place]), 0);
      slot.advance();
      if (at.n == 0) break;
      if (n_k_blocks(at.group) == 0) {
#pragma unroll
        for (int i = 0; i < most_n / 2; i++) sums[i] = 0;
      }
      switch ((at.n + unit_n - 1) / unit_n) {
      case 1:
        multiply<32>(at, sums, stage);
        break;
      case 2:
        multiply<64>(at, sums, stage);
        break;
      case 3:
        multiply<96>(at, sums, stage);
        break;
      case 4:
        multiply<128>(at, sums, stage);
        break;
      case 5:
        multiply<160>(at, sums, stage);
        break;
      case 6:
        multiply<192>(at, sums, stage);
        break;
      case 7:
        multiply<224>(at, sums, stage);
        break;
      default:
        multiply<256>(at, sums, stage);
        break;
      }
      store(at, sums, output);
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
    if (threadIdx.x < 128) {
      setmaxnreg_dec<40>();
      if (__shfl_sync(~0u, int(threadIdx.x) / 32, 0) == 0 && elect_one()) produce();
    } else {
      setmaxnreg_inc<232>();
      consume();
    }
    cluster_sync(); /* no block leaves while another may still write to it */
  }
};

} // namespace ws
#endif
