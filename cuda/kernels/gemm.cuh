/* gemm.cuh - the kernel: takes items from a scheduler and runs a mainloop on each.
 *
 * Leaves who works on what to the scheduler (sched.h), the arithmetic to the mainloop, the copies
 * to copy_tile.cuh, or copy_tile16.cuh. Every element of C has one owner and one order of summation
 * over k, so its bits do not depend on the scheduler, the tile order or COARSE_FACTOR. */
#ifndef WS_CUDA_GEMM_KERNEL_CUH
#define WS_CUDA_GEMM_KERNEL_CUH
#include "core/region_items.h"
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/mainloop/copy_tile.cuh"
#include "cuda/mainloop/copy_tile16.cuh"
#include "cuda/rows/config.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

/* A pipeline of n_stages k blocks in shared memory, and two sets of fragments in registers. A block
 * is processed in steps; the fragments of the next step are read while one is multiplied, also
 * across the border to the next block:
 *
 *   step          0      1     ..   last
 *   multiply      f0     f1         f1          f = set of fragments; the number of steps is even
 *   read          f1     f0         f0 of the next block, after a barrier: everybody's part of that block has come, and everybody
 *                                   has read the last of this one, so that its stage can be filled
 *                                   again from step 0 on
 *   copy          A      B half-way through, so that copies do not queue up before reads (16-bit types: both at once) */
template <class Config, class Mainloop, class OperandA, class OperandB, class SizeK, class MakeOutput>
__device__ __forceinline__ void run_tile(const ws_gemm_args &args, typename Config::word *shared, int batch, const int &row,
                                         const int &col, int64_t k_first, SizeK n_k, MakeOutput make_output) {
  using word = typename Config::word;
  constexpr int n_steps = Mainloop::n_steps;
  /* Of 16-bit elements: in the loop over the steps they would make it longer than the compiler
   * unrolls. */
  constexpr bool copies_first = sizeof(typename Config::element) == 2;
  static_assert(n_steps % 2 == 0, "the sets of fragments alternate from block to block");
  OperandA a(args.a, batch, row, args.m, k_first);
  OperandB b(args.b, batch, col, args.n, k_first);
  /* Whole k blocks still to be copied. After them comes what is left of k, if anything is. */
  int n_whole = int(uint64_t(n_k()) / Config::bk);
  const auto copy = [&](auto &operand, word *stage) { operand.copy(stage, n_whole, n_k); };
  const auto copy_b = [&](word *stage) {
    copy(b, stage + Config::a_words);
    n_whole--;
    /* an empty group too, so that the number of groups tells which block has come */
    cp_async_commit();
  };
  const auto wait_for_block = [&] {
    cp_async_wait<Config::n_stages - 2>();
    __syncthreads();
  };

  Mainloop mainloop;
  word *const last_stage = shared + (Config::n_stages - 1) * Config::stage_words;
  word *stage = shared;
  for (word *ahead = shared; ahead != last_stage; ahead += Config::stage_words) {
    copy(a, ahead);
    copy_b(ahead);
  }
  wait_for_block();
  mainloop.read_first(stage);
  for (int n_left = int(ws_ceil_div(n_k(), Config::bk)); n_left > 0; n_left--) {
    if constexpr (copies_first) {
      word *const before = stage == shared ? last_stage : stage - Config::stage_words;
      copy(a, before);
      copy_b(before);
    }
#pragma unroll
    for (int step = 0; step < n_steps; step++) {
      word *const next = stage == last_stage ? shared : stage + Config::stage_words;
      if constexpr (!copies_first) {
        word *const before = stage == shared ? last_stage : stage - Config::stage_words;
        /* Here, where only one set of fragments is alive. */
        if (step == 0) copy(a, before);
        if (step == (n_steps >= 4 ? n_steps / 2 : 0)) copy_b(before);
      }
      if (step + 1 == n_steps) {
        wait_for_block();
        stage = next;
      }
      mainloop.advance(step % 2, stage, (step + 1) % n_steps);
    }
  }
  cp_async_wait<0>();
  const int64_t m_first = int64_t(row) * Config::bm, n_first = int64_t(col) * Config::bn;
  mainloop.finish(make_output(m_first, n_first), shared, args.m - m_first, args.n - n_first);
}

/* Whether the entry points of a row call one product in place of having each a copy of it: where there is Cluster Launch Control
 * they are five, and the copies would be most of the image. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
constexpr bool calls_tiled_products = true;
#else
constexpr bool calls_tiled_products = false;
#endif

template <class Config, template <class, bool, bool> class Mainloop> struct tiled_product {
  static constexpr bool is_called = calls_tiled_products;

  /* Sums k_first .. k_first + n_k() - 1 of one tile of one product, and puts the sums where
   * make_output(m_first, n_first) says for the tile's first element. `row` and `col` fit int, there
   * being less than 2^31 items. They and n_k are asked for again after the main loop, or near its
   * end, rather than kept in registers. */
  template <class SizeK, class MakeOutput>
  static __device__ __forceinline__ void run(const ws_gemm_args &args, void *shared, int batch, const int &row, const int &col,
                                             int64_t k_first, SizeK n_k, MakeOutput make_output) {
    constexpr bool keeps = Config::keeps_k;
    const bool a_k = keeps && ws_is_along_k(&args.a), b_k = keeps && ws_is_along_k(&args.b);
    if (!a_k && !b_k) run_in<false, false>(args, shared, batch, row, col, k_first, n_k, make_output);
    if (!a_k && b_k) run_in<false, keeps>(args, shared, batch, row, col, k_first, n_k, make_output);
    if (a_k && !b_k) run_in<keeps, false>(args, shared, batch, row, col, k_first, n_k, make_output);
    if (a_k && b_k) run_in<keeps, keeps>(args, shared, batch, row, col, k_first, n_k, make_output);
  }

private:
  template <int X, int TILE_X, int PITCH, int PLANE, bool BY_X>
  using operand = std::conditional_t<sizeof(typename Config::element) == 2, operand_tile16<Config, X, TILE_X, BY_X>,
                                     operand_tile<Config, X, TILE_X, PITCH, PLANE, BY_X>>;

  /* A_K, B_K: the operand is contiguous along k, and stays so in shared memory. */
  template <bool A_K, bool B_K, class SizeK, class MakeOutput>
  static __device__ __forceinline__ void run_in(const ws_gemm_args &args, void *shared, int batch, const int &row, const int &col,
                                                int64_t k_first, SizeK n_k, MakeOutput make_output) {
    using mainloop = Mainloop<Config, A_K, B_K>;
    using operand_a = operand<Config::bm, Config::bm, mainloop::a_pitch, Config::a_plane, A_K>;
    using operand_b = operand<Config::item_n, Config::bn, mainloop::b_pitch, Config::b_plane, B_K>;
    run_tile<Config, mainloop, operand_a, operand_b>(args, static_cast<typename Config::word *>(shared), batch, row, col, k_first,
                                                     n_k, make_output);
  }
};

/* Of a region the items are numbered alone where they are square. */
template <class Config> __device__ __forceinline__ ws_tile item_tile_at(const ws_gemm_args &args, int64_t item_idx) {
  if (ws_region_numbers_items(args.region.region, Config::bm, Config::item_n))
    return ws_region_tile_at(&args.grid, args.region.region, item_idx);
  return ws_tile_at(&args.grid, item_idx);
}

/* Whether an item has an element that is wanted. */
template <class Config> __device__ __forceinline__ bool is_item_wanted(const ws_gemm_args &args, int row, int col) {
  return ws_region_wants_of(&args.region, int64_t(row) * Config::bm, Config::bm, int64_t(col) * Config::bn, Config::item_n);
}

/* The k of an item that may be other than zero, beginning where 16 bytes may be read at a time. */
template <class Config> __device__ __forceinline__ ws_k_range k_range_of(const ws_gemm_args &args, int row, int col) {
  constexpr int step = 16;
  if (!args.triangular) return {0, args.k};
  const bool is_b = args.triangular == 2;
  const ws_k_range range = ws_k_range_of(args.triangle, is_b, is_b ? int64_t(col) * Config::bn : int64_t(row) * Config::bm,
                                         is_b ? Config::item_n : Config::bm, args.k);
  return {range.begin / step * step, range.end};
}

/* An item's tile, and its k: in shared memory, where they cost the mainloop no registers. */
struct product_item {
  int batch, row, col;
  int64_t k_first, n_k;
};

template <class Config>
__device__ __forceinline__ output_scaled<Config> output_of_item(const ws_gemm_args &args, const product_item &at, int64_t m_first,
                                                                int64_t n_first) {
  return {output_at<Config>(args, at.batch, m_first, n_first), scaling<Config>(args), args, at.batch, m_first, n_first};
}

/* Written out here and below: from one function for both the compiler makes other code for 9.0, some of it with spills. */
template <class Config, class Product>
__device__ __noinline__ void called_multiply_item(const ws_gemm_args &args, void *shared, const product_item &at) {
  Product::run(
      args, shared, at.batch, at.row, at.col, at.k_first, [&] { return at.n_k; },
      [&](int64_t m_first, int64_t n_first) { return output_of_item<Config>(args, at, m_first, n_first); });
}

/* Every item whole, by its owner. Items outside the region are passed over. */
template <class Config, class Product, class Sched> __device__ __forceinline__ void gemm(const ws_gemm_args &args) {
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ product_item at;
  Sched sched(args.sched);
  sched.for_each_item([&](int64_t item_idx) {
    if (threadIdx.x == 0) {
      const ws_tile tile = item_tile_at<Config>(args, item_idx);
      at.batch = int(tile.batch), at.row = int(tile.row), at.col = int(tile.col);
      const ws_k_range k = k_range_of<Config>(args, at.row, at.col);
      at.k_first = k.begin, at.n_k = k.end - k.begin;
    }
    __syncthreads();
    if (!is_item_wanted<Config>(args, at.row, at.col)) return;
    if constexpr (Product::is_called)
      called_multiply_item<Config, Product>(args, shared, at);
    else
      Product::run(
          args, shared, at.batch, at.row, at.col, at.k_first, [&] { return at.n_k; },
          [&](int64_t m_first, int64_t n_first) { return output_of_item<Config>(args, at, m_first, n_first); });
  });
}

} // namespace ws
#endif
