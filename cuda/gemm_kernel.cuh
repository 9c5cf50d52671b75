/* gemm_kernel.cuh - the kernel: takes items from a scheduler and runs a mainloop on each.
 *
 * Leaves who works on what to the scheduler (sched.h), the arithmetic to the mainloop, the copies to copy_tile.cuh. Every element of
 * C has one owner and one order of summation over k, so its bits do not depend on the scheduler, the tile order or COARSE_FACTOR. */
#ifndef WS_CUDA_GEMM_KERNEL_CUH
#define WS_CUDA_GEMM_KERNEL_CUH
#include "config.cuh"
#include "copy_tile.cuh"
#include "epilogue.cuh"
#include "kernel_args.h"

namespace ws {

/* A ring of n_stages k blocks in shared memory, and two sets of fragments in registers. A block is worked off in steps; while one step
 * is multiplied, the fragments of the next are read, also across the border to the next block:
 *
 *   step          0      1     ..   last
 *   multiply      f0     f1         f1          f = set of fragments; the number of steps is even
 *   read          f1     f0         f0 of the next block, after a barrier: everybody's part of that block has come, and everybody
 *                                   has read the last of this one, so that its stage can be filled again in step 0 */
template <class Config, class Mainloop> struct tiled_product {
  using element = typename Config::element;
  static_assert(Mainloop::n_steps % 2 == 0, "the sets of fragments take turns from block to block");

  /* Sums k_first .. k_first + n_k - 1 for one tile and gives the sums to output(m_first, n_first), the tile's first element. `row` and
   * `col` fit int: there are less than 2^31 items; they are kept over the main loop. */
  template <class MakeOutput>
  static __device__ __forceinline__ void run(const ws_gemm_args &args, void *shared_memory, int batch, int row, int col,
                                             int64_t k_first, int64_t n_k, MakeOutput make_output) {
    element *const shared = static_cast<element *>(shared_memory);
    operand_tile<Config, Config::bm, Config::a_pitch> a(args.a, batch, int64_t(row) * Config::bm, args.m, k_first);
    operand_tile<Config, Config::item_n, Config::b_pitch> b(args.b, batch, int64_t(col) * Config::bn, args.n, k_first);
    const int n_blocks = int(ws_ceil_div(n_k, Config::bk));
    /* The next block of k, if one is left; n_left counts it. */
    const auto copy_next = [&](element *stage, int n_left) {
      if (n_left > 0) {
        const int n_rows = n_left == 1 ? int(n_k - int64_t(n_blocks - 1) * Config::bk) : Config::bk;
        a.copy_next(stage, n_rows);
        b.copy_next(stage + Config::bk * Config::a_pitch, n_rows);
      }
      cp_async_commit(); /* an empty group too, so that the number of groups tells which block has come */
    };
    const auto wait_for_block = [&] {
      cp_async_wait<Config::n_stages - 2>();
      __syncthreads();
    };

    Mainloop mainloop;
    element *const last_stage = shared + (Config::n_stages - 1) * Config::stage_elements;
    element *stage = shared;
    for (int ahead = 0; ahead < Config::n_stages - 1; ahead++)
      copy_next(shared + ahead * Config::stage_elements, n_blocks - ahead);
    wait_for_block();
    mainloop.read(0, stage, 0);
    for (int n_left = n_blocks; n_left > 0; n_left--) {
#pragma unroll
      for (int step = 0; step < Mainloop::n_steps; step++) {
        element *const next = stage == last_stage ? shared : stage + Config::stage_elements;
        if (step == 0) /* to the stage of the block before; here, where only one set of fragments is alive */
          copy_next(stage == shared ? last_stage : stage - Config::stage_elements, n_left - (Config::n_stages - 1));
        if (step + 1 < Mainloop::n_steps) {
          mainloop.read((step + 1) % 2, stage, step + 1);
        } else {
          wait_for_block();
          mainloop.read(0, next, 0);
        }
        mainloop.multiply(step % 2);
        if (step + 1 == Mainloop::n_steps) stage = next;
      }
    }
    cp_async_wait<0>();
    const int64_t m_first = int64_t(row) * Config::bm, n_first = int64_t(col) * Config::bn;
    mainloop.finish(make_output(m_first, n_first), args.m - m_first, args.n - n_first);
  }
};

/* Every item whole: all of its k by its owner, into C. */
template <class Config, class Product, class Sched> __device__ __forceinline__ void gemm(const ws_gemm_args &args) {
  extern __shared__ __align__(128) unsigned char shared[];
  Sched sched(args.sched);
  sched.for_each_item([&](int64_t item_idx) {
    const ws_tile tile = ws_tile_at(&args.grid, item_idx);
    const int batch = int(tile.batch);
    Product::run(args, shared, batch, int(tile.row), int(tile.col), 0, args.k, [&](int64_t m_first, int64_t n_first) {
      return output_scaled<Config>{output_at<Config>(args, batch, m_first, n_first), scaling<Config>(args)};
    });
  });
}

} // namespace ws
#endif
