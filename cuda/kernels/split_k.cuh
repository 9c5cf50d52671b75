/* split_k.cuh - products of few tiles and a long k: k is split, each split is summed apart, and the
 * sums are added in the order of the splits. How k is split depends on the problem alone (split.h),
 * so whoever sums a part, and where, changes no bit of C.
 *
 *   with memory for the sums   every part of every tile is an item; then all blocks meet
 *                              (grid_barrier.cuh) and share out the elements of C: each is the sum
 *                              of its parts, read from the L2. All blocks must be resident at once.
 *                              Few parts: an element belongs to a thread. Many parts, then of few
 *                              elements: to a block.
 *   without                    a block does the parts of a tile one after the other and keeps the
 *                              total in shared memory. */
#ifndef WS_CUDA_SPLIT_KERNEL_CUH
#define WS_CUDA_SPLIT_KERNEL_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/kernels/gemm.cuh"
#include "cuda/sched/fixed.cuh"
#include "cuda/sched/grid_barrier.cuh"

namespace ws {

constexpr int few_splits = 16;

/* A thread takes a vector of neighbours in a column of C at a time; some loads of it are under way
 * at once. */
template <class Config> __device__ __forceinline__ void add_few_parts(const ws_gemm_args &args) {
  using number = typename Config::sum;
  using vector16 = sum_vector<Config>;
  constexpr int n_e = vector16::length, at_once = 4;
  const scaling<Config> scale(args);
  const int n_splits = args.split.n_splits;
  const int64_t ld = args.split.ld, stride = ld * args.n / n_e; /* in vectors, from part to part */
  const uint32_t per_column = uint32_t(ld) / n_e, n = uint32_t(args.n),
                 n_vectors = uint32_t(args.grid.n_batch / n_splits) * n * per_column; /* it fits: split.h */
  for (uint32_t v = worker_idx() * Config::n_threads + threadIdx.x; v < n_vectors; v += n_workers() * Config::n_threads) {
    const uint32_t column = v / per_column, i = v % per_column * n_e, j = column % n, product = column / n;
    const vector16 *parts = static_cast<const vector16 *>(args.split.sums) + product * int64_t(n_splits) * stride +
                            j * int64_t(per_column) + v % per_column;
    vector16 total;
    for (int begin = 0; begin < n_splits; begin += at_once) {
      vector16 part[at_once];
#pragma unroll
      for (int p = 0; p < at_once; p++)
        if (begin + p < n_splits) part[p] = parts[(begin + p) * stride];
#pragma unroll
      for (int p = 0; p < at_once; p++)
#pragma unroll
        for (int e = 0; e < n_e; e++)
          if (begin + p == 0)
            total.e[e] = part[p].e[e];
          else if (begin + p < n_splits)
            total.e[e] = plus<Config>(total.e[e], part[p].e[e]);
    }
    const c_pointer<Config> c = c_of<Config>(args) + product * args.stride_c + j * args.ldc + i;
    const bool is_plain = ws_region_is_plain(&args.region, i, n_e, j, 1);
    if (args.c_vectors && i + n_e <= args.m && is_plain && !takes_steps<Config>(args)) {
      vector16 old{};
      if (!scale.beta_zero) old = load_vector<Config>(c);
#pragma unroll
      for (int e = 0; e < n_e; e++) total.e[e] = scale(total.e[e], old.e[e]);
      store_vector<Config>(c, total);
    } else {
#pragma unroll
      for (int e = 0; e < n_e; e++)
        if (i + e < args.m) finish_sum<Config>(args, scale, product, i + e, j, total.e[e]);
    }
  }
}

/* Each block takes 32 elements of C at a time. All its threads bring the parts of these to shared
 * memory, as many as there is room for, so that the L2's latency is paid few times; then 32 threads
 * add them in the order of the parts. */
template <class Config> __device__ __forceinline__ void add_many_parts(const ws_gemm_args &args, typename Config::sum *shared) {
  using number = typename Config::sum;
  constexpr int n_warps = Config::n_threads / 32,
                most_splits = Config::shared_bytes / int(sizeof(number)) / 32 / n_warps * n_warps;
  /* loads under way for each thread */
  constexpr int at_once = 8 < most_splits / n_warps ? 8 : most_splits / n_warps;
  static_assert(most_splits > 0, "room for a part of each warp");
  const scaling<Config> scale(args);
  const int n_splits = args.split.n_splits, lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
  const int64_t ld = args.split.ld, stride = ld * args.n;
  const uint32_t n_rows = uint32_t(args.m),
                 n_elements = uint32_t(args.grid.n_batch / n_splits * args.n * args.m); /* it fits: split.h */
  for (uint32_t first = worker_idx() * 32; first < n_elements; first += n_workers() * 32) {
    const uint32_t e = min(first + lane, n_elements - 1);
    const uint32_t i = e % n_rows, column = e / n_rows, j = column % uint32_t(args.n), product = column / uint32_t(args.n);
    const number *parts = static_cast<const number *>(args.split.sums) + product * int64_t(n_splits) * stride + j * ld + i;
    number total{};
    for (int begin = 0; begin < n_splits; begin += most_splits) {
      const int end = min(n_splits, begin + most_splits);
      for (int p = begin + warp; p < end; p += at_once * n_warps) {
        number part[at_once];
#pragma unroll
        for (int u = 0; u < at_once; u++)
          if (p + u * n_warps < end) part[u] = parts[(p + u * n_warps) * stride];
#pragma unroll
        for (int u = 0; u < at_once; u++)
          if (p + u * n_warps < end) shared[(p + u * n_warps - begin) * 32 + lane] = part[u];
      }
      __syncthreads();
      if (warp == 0) {
        if (begin == 0) total = shared[lane];
#pragma unroll 8
        for (int p = begin == 0 ? 1 : begin; p < end; p++) total = plus<Config>(total, shared[(p - begin) * 32 + lane]);
      }
      __syncthreads();
    }
    if (warp > 0 || first + lane >= n_elements) continue;
    finish_sum<Config>(args, scale, product, i, j, total);
  }
}

/* One tile's total, bm x item_n elements in shared memory, to C. */
template <class Config>
__device__ __forceinline__ void finish_total(const ws_gemm_args &args, const typename Config::sum *total, int64_t product,
                                             int64_t m_first, int64_t n_first) {
  using number = typename Config::sum;
  const scaling<Config> scale(args);
  for (int e = int(threadIdx.x); e < Config::bm * Config::item_n; e += Config::n_threads) {
    const int i = e % Config::bm, j = e / Config::bm;
    if (m_first + i >= args.m || n_first + j >= args.n) continue;
    finish_sum<Config>(args, scale, product, m_first + i, n_first + j, total[e]);
  }
}

/* What a block is at: in shared memory, where it costs the mainloop no registers. */
struct split_state {
  uint32_t item_idx;
  int split_idx; /* without sums: the part that the tile's owner is at */
  ws_tile tile;
  int row, col, product, part;
  int64_t n_k;

  template <class Config> __device__ void set(const ws_gemm_args &args) {
    if (item_idx >= args.sched.n_items) return;
    const bool apart = args.split.sums != nullptr;
    tile = item_tile_at<Config>(args, item_idx);
    row = int(tile.row), col = int(tile.col);
    product = apart ? int(tile.batch) / args.split.n_splits : int(tile.batch);
    part = apart ? int(tile.batch) % args.split.n_splits : split_idx;
    n_k = ws_min(args.split.k_per_split, args.k - part * args.split.k_per_split);
  }
};

/* Where the sum of a part goes: to those of all parts, or into the tile's total. */
template <class Config>
__device__ __forceinline__ output_total<Config> output_of_part(const ws_gemm_args &args, typename Config::sum *tile_total,
                                                               const split_state &at, int64_t m_first, int64_t n_first) {
  using number = typename Config::sum;
  const conjugation conj = {args.a.conj != 0, args.b.conj != 0};
  if (!args.split.sums) return {{tile_total, Config::bm, Config::bm > 1, conj}, at.split_idx == 0};
  number *first = static_cast<number *>(args.split.sums) + (at.tile.batch * args.n + n_first) * args.split.ld + m_first;
  return {{first, args.split.ld, Config::bm > 1, conj}, true};
}

/* See called_multiply_item. */
template <class Config, class Product>
__device__ __noinline__ void called_multiply_part(const ws_gemm_args &args, void *shared, typename Config::sum *tile_total,
                                                  const split_state &at) {
  Product::run(
      args, shared, at.product, at.row, at.col, at.part * args.split.k_per_split, [&] { return at.n_k; },
      [&](int64_t m_first, int64_t n_first) { return output_of_part<Config>(args, tile_total, at, m_first, n_first); });
}

/* By a scheduler that keeps_blocks with memory for the sums or without; by others without, and the
 * argument is not looked at: where the blocks meet, they must all be resident, and CLC would find
 * none to take, or wait for ever for those that never start. */
template <class Config, class Product, class Sched> __device__ __forceinline__ void split_gemm(const ws_gemm_args &args) {
  using number = typename Config::sum;
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ split_state at;
  number *const tile_total = reinterpret_cast<number *>(shared + Config::shared_bytes);
  Sched sched(args.sched);
  /* True: that was all of the item. */
  const auto sum_part = [&] {
    if (is_item_wanted<Config>(args, at.row, at.col)) {
      if constexpr (Product::is_called)
        called_multiply_part<Config, Product>(args, shared, tile_total, at);
      else
        Product::run(
            args, shared, at.product, at.row, at.col, at.part * args.split.k_per_split, [&] { return at.n_k; },
            [&](int64_t m_first, int64_t n_first) { return output_of_part<Config>(args, tile_total, at, m_first, n_first); });
    }
    __syncthreads(); /* shared memory is free again, and the total complete */
    const bool is_done = args.split.sums || at.split_idx + 1 == args.split.n_splits;
    if (!args.split.sums && is_done)
      finish_total<Config>(args, tile_total, at.product, int64_t(at.row) * Config::bm, int64_t(at.col) * Config::bn);
    __syncthreads();
    return is_done;
  };

  if constexpr (Sched::keeps_blocks) {
    /* One loop over the parts of all items: two, one in the other, need registers that the
     * mainloops do not leave. */
    if (threadIdx.x == 0) {
      at.item_idx = sched.first(), at.split_idx = 0;
      at.template set<Config>(args);
    }
    __syncthreads();
    while (at.item_idx < args.sched.n_items) {
      const bool is_done = sum_part();
      if (threadIdx.x == 0) {
        at.split_idx = is_done ? 0 : at.split_idx + 1;
        if (is_done) at.item_idx = sched.after(at.item_idx);
        at.template set<Config>(args);
      }
      __syncthreads();
    }
    if (!args.split.sums) return;
    grid_sync(args.split.barrier, n_workers());
    if (args.split.n_splits <= few_splits)
      add_few_parts<Config>(args);
    else
      add_many_parts<Config>(args, reinterpret_cast<number *>(shared));
  } else {
    sched.for_each_item([&](int64_t item_idx) {
      bool is_done = false;
      for (int split_idx = 0; !is_done; split_idx++) {
        if (threadIdx.x == 0) {
          at.item_idx = uint32_t(item_idx), at.split_idx = split_idx;
          at.template set<Config>(args);
        }
        __syncthreads();
        is_done = sum_part();
      }
    });
  }
}

} // namespace ws
#endif
