/* gemm_fused.cuh - floats on the tensor cores of cc 9.0 in one launch: elements are split where they
 * are multiplied, so operands are read once and nothing but C is written. No row of the library yet:
 * bench/gpu/fused.cu.
 *
 *   x = high + low: high is a TF32, low what it leaves (exact)
 *   a b = high high + (high low + low high), each into a sum of its own
 *
 * The products of two high ones are TF32, and are added in FP32 every 32 of k. The cross products are
 * of BF16, at twice the rate, or of TF32. Both formats have the range of FP32, so there are no scales,
 * and nothing depends on other rows or columns. Rows and columns with NaN, infinity or an element
 * below 2^-113 are marked: what they meet comes from multiply-adds, element by element.
 *
 *   R  one operand, whose x are a wgmma's rows: a consumer reads its elements from shared memory, as
 *      they came, in either layout, and splits them in registers (high: the nearest TF32; beside
 *      cross products of TF32 cut off)
 *   S  the other one, its columns: in shared memory, which of TF32 must be lines of k. A line as it
 *      is serves as high, since the units ignore what TF32 has not; splitters write the slices for
 *      the cross products beside it. Where x is contiguous, or the loaders are not TMA, high too.
 *
 *   warps 0 - 3     load (TMA: one thread; 2 and 3 split), a block of k at a time
 *   warps 4 - 11    two warpgroups of consumers, 64 rows of the tile each
 *   warps 12 - 15   split, some warps each stage, as one takes longer for a stage than it may last
 *
 * Blocks of a cluster share out k, and add up through each other's shared memory, in their order.
 *
 * The bound, in units of u |A| |B| (docs/numerics.md has the steps of a unit): 8 terms of a step of
 * TF32 lose half a unit each, the sum two: 25.5 for 32 of k. Then, of cross products
 *
 *            low of R     low of S     cross products                low low    together, with two for alpha and beta
 *   BF16     2^-11 |r|    2^-10 |s|    2 2^-9 (2^-10 + 2^-11): 96    8          133.5 + k / 31, so from k = 136 on
 *   TF32     2^-10 |r|    2^-10 |s|    2 2^-20: 32                   16         77.5 + k / 31, so from k = 80 on
 *
 * On the model (tests/support/fused_model.h) the worst that adversaries found is 0.47 and 0.20 of
 * gamma_{k+2}, from k = 144 and 80 on. */
#ifndef WS_CUDA_FUSED_KERNEL_CUH
#define WS_CUDA_FUSED_KERNEL_CUH
#include "cuda/epilogue/fused_store.cuh"
#include "cuda/mainloop/fused_load.cuh"
#include "cuda/mainloop/fused_split.cuh"
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/ptx/wgmma_registers.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

template <class Config> struct fused_kernel {
  static constexpr int bn = Config::bn, n_stages = Config::n_stages, n_sums = bn / 2;

  const ws_fused_args &args;
  unsigned char *shared;

  __device__ fused_state<Config> &state() const {
    return *reinterpret_cast<fused_state<Config> *>(shared + n_stages * Config::stage_bytes + Config::sums_bytes);
  }
  __device__ float *sums_shared() const { return reinterpret_cast<float *>(shared + n_stages * Config::stage_bytes); }
  __device__ uint32_t stage_at(int place) const { return shared_address(shared) + uint32_t(place) * Config::stage_bytes; }

  using tile = fused_tile;
  __device__ __forceinline__ int n_tiles() const { return args.n_tiles_r * args.n_tiles_s; }
  __device__ __forceinline__ tile tile_at(int i) const { return {i / args.n_tiles_s * fused_bm, i % args.n_tiles_s * bn}; }
  __device__ __forceinline__ int rank() const { return args.n_parts > 1 ? int(cluster_rank()) : 0; }
  __device__ __forceinline__ int k_block(int part) const {
    const int n = (args.n_k + fused_bk - 1) / fused_bk;
    return int(int64_t(n) * part / args.n_parts);
  }
  static __device__ __forceinline__ void wait(const uint64_t &barrier, uint32_t parity) {
    mbarrier_wait<barrier_scope::cta>(shared_address(&barrier), parity);
  }
  /* Calls body(tile, number) for this block's tiles: of clusters one. */
  template <class Body> __device__ __forceinline__ void for_each_tile(Body body) const {
    const int step = int(n_workers()) / args.n_parts;
#pragma unroll 1
    for (int i = int(worker_idx()) / args.n_parts, number = 0; i < n_tiles(); i += step, number++) body(tile_at(i), number);
  }

  /* ---- Loaders ------------------------------------------------------------------------------- */

  __device__ __forceinline__ void load() const {
    pipeline_stage<n_stages> stage;
    const int begin = k_block(rank()), end = k_block(rank() + 1);
    for_each_tile([&](const tile &at, int) {
#pragma unroll 1
      for (int b = begin; b < end; b++) {
        wait(state().empty[stage.place], stage.empty_parity());
        const uint32_t to = stage_at(stage.place), full = shared_address(&state().full[stage.place]);
        if constexpr (Config::tma) {
          mbarrier_arrive_expect_tx(full, Config::r_bytes + Config::s_bytes);
          fused_load_by_tma<Config::r_x, fused_bm>(to, args.r, at.r, b * fused_bk, full);
          fused_load_by_tma<Config::s_x, bn>(to + Config::s_at, args.s, at.s, b * fused_bk, full);
        } else {
          fused_load_by_threads<Config, Config::r_x, fused_bm>(to, args.r, at.r, b * fused_bk, args.n_k);
          fused_load_by_threads<Config, Config::s_x, bn>(to + Config::s_at, args.s, at.s, b * fused_bk, args.n_k);
          asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full) : "memory");
        }
        stage.advance();
      }
    });
  }

  /* ---- Splitters: S -------------------------------------------------------------------------- */

  __device__ __forceinline__ void split(int thread) const {
    pipeline_stage<n_stages> stage;
    constexpr int n_warps = Config::splitters_of_stage, n_groups = Config::n_splitters / 32 / n_warps;
    const int n_blocks = k_block(rank() + 1) - k_block(rank()), lane = thread % 32;
    const int warp = thread / 32 % n_warps, turn = thread / 32 / n_warps;
    int count = 0; /* of blocks */
    for_each_tile([&](const tile &, int number) {
#pragma unroll 1
      for (int b = 0; b < n_blocks; b++) {
        const bool is_mine = count == turn;
        if (++count == n_groups) count = 0;
        if (!is_mine) {
          stage.advance();
          continue;
        }
        /* That the round before is over has to be known before a parity can be waited for, and copies
         * may arrive in any order. */
        if constexpr (n_groups > 1) wait(state().empty[stage.place], stage.empty_parity());
        wait(state().full[stage.place], stage.full_parity());
        const uint32_t from = stage_at(stage.place);
#pragma unroll 1
        for (int unit = warp; unit < bn / 8; unit += n_warps) {
          const fused_eight place = fused_place<Config>(unit);
          uint32_t bits[8];
          load_eight<Config>(args.s, from + Config::s_at, place, bits);
          split_eight<Config>(from, bits, place, state().s_is_bad[number % 8]);
        }
        fence_proxy_async_shared();
        __syncwarp();
        if (lane == 0) mbarrier_arrive(shared_address(&state().split[stage.place]));
        stage.advance();
      }
    });
  }

  /* ---- Consumers ----------------------------------------------------------------------------- */

  /* The four elements of a step of 8 k: rows h = 0, 1 at k = q, then at q + 4 */
  __device__ __forceinline__ void load_r(uint32_t stage, int step, uint32_t (&x)[4]) const {
    const int q = int(threadIdx.x) % 4;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int at_row = fused_row<Config>(i % 2), k = step * 8 + q + i / 2 * 4;
      if constexpr (!Config::tma)
        x[i] =
            ld_shared_32(stage + (Config::r_x ? k * Config::r_pitch + (at_row + fused_shift(args.r, q)) * 4
                                              : at_row * Config::r_pitch + (k + fused_shift(args.r, fused_row<Config>(0))) * 4));
      else if constexpr (Config::r_x)
        x[i] = ld_shared_32(stage + at_row / 32 * 4096 + k * 128 + ((at_row % 32 / 4 ^ k % 8) * 16 + at_row % 4 * 4));
      else
        x[i] = ld_shared_32(stage + at_row * 128 + ((k / 4 ^ int(threadIdx.x) % 32 / 4) * 16 + q * 4));
    }
  }

  /* One descriptor's address for all stages; lines of k, 128 bytes each. */
  __device__ __forceinline__ uint64_t descriptor(uint32_t at) const { return wgmma_descriptor<false>(stage_at(0) + at, 0); }

  struct elements {
    uint32_t x[4][4], rest[4][4];
  };
  /* There are registers for two blocks of k; else the next one's are read when `high` is done. */
  static constexpr bool reads_ahead = bn <= 64;
  __device__ __forceinline__ void load_elements(elements &e, const pipeline_stage<n_stages> &stage, bool (&is_bad)[2]) const {
    wait(state().full[stage.place], stage.full_parity());
#pragma unroll
    for (int s = 0; s < 4; s++) load_r(stage_at(stage.place), s, e.x[s]);
    split_registers(e.x, e.rest, is_bad);
  }

  /* Cross products of BF16. While the units work on a block of k, R's elements of the next one are read
   * and split. `low` of the block before may still be under way when this begins. */
  __device__ __forceinline__ void multiply_block(const elements &now, elements &next, float (&total)[n_sums],
                                                 float (&high)[n_sums], float (&low)[n_sums], uint32_t (&pairs)[4][4],
                                                 bool (&is_bad)[2], pipeline_stage<n_stages> &stage, uint32_t &done,
                                                 bool is_first, bool is_last) const {
    const uint64_t offset = uint32_t(stage.place) * (Config::stage_bytes >> 4);
    const uint64_t of_high = descriptor(Config::high_at) + offset, of_low = descriptor(Config::low_at) + offset;
    if constexpr (Config::writes_high) wait(state().split[stage.place], stage.full_parity());
    hold_in_place(high);
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < 4; s++) wgmma_tf32(high, now.x[s], of_high + s * 2, s > 0);
    wgmma_commit_group();
    wgmma_wait_group<1>();
    hold_in_place(low);
    if (!is_first && int(threadIdx.x) % 32 == 0) mbarrier_arrive(done);
#pragma unroll
    for (int s = 0; s < 4; s += 2) bf16_of(pairs[s], now.x[s], now.x[s + 1]), bf16_of(pairs[s + 1], now.rest[s], now.rest[s + 1]);
    if constexpr (!Config::writes_high) wait(state().split[stage.place], stage.full_parity());
    wgmma_fence();
#pragma unroll
    for (int s = 0; s < 4; s += 2) {
      wgmma_bf16(low, pairs[s], of_low + s + 4, 1);
      wgmma_bf16(low, pairs[s + 1], of_low + s, 1);
    }
    wgmma_commit_group();
    done = shared_address(&state().empty[stage.place]);
    stage.advance();
    if (reads_ahead && !is_last) load_elements(next, stage, is_bad);
    wgmma_wait_group<1>();
    hold_in_place(high);
    if (!reads_ahead && !is_last) load_elements(next, stage, is_bad);
#pragma unroll
    for (int i = 0; i < n_sums; i++) total[i] += high[i];
  }

  __device__ __forceinline__ void multiply_cross(float (&total)[n_sums], bool (&is_bad)[2], pipeline_stage<n_stages> &stage,
                                                 int n_blocks) const {
    float high[n_sums], low[n_sums];
    uint32_t pairs[4][4], done = 0;
    elements even, odd;
#pragma unroll
    for (int i = 0; i < n_sums; i++) total[i] = 0, low[i] = 0;
    if (n_blocks > 0) load_elements(even, stage, is_bad);
#pragma unroll 1
    for (int b = 0; b < n_blocks; b += reads_ahead ? 2 : 1) {
      multiply_block(even, reads_ahead ? odd : even, total, high, low, pairs, is_bad, stage, done, b == 0, b + 1 == n_blocks);
      if (b + 1 == n_blocks) break;
      if constexpr (reads_ahead)
        multiply_block(odd, even, total, high, low, pairs, is_bad, stage, done, false, b + 2 == n_blocks);
    }
    wgmma_wait_group<0>();
    hold_in_place(low);
    if (n_blocks > 0 && int(threadIdx.x) % 32 == 0) mbarrier_arrive(done);
#pragma unroll
    for (int i = 0; i < n_sums; i++) total[i] += low[i];
  }

  __device__ __forceinline__ void multiply(float (&total)[n_sums], bool (&is_bad)[2], pipeline_stage<n_stages> &stage,
                                           int n_blocks) const {
    float high[n_sums], low[n_sums];
#pragma unroll
    for (int i = 0; i < n_sums; i++) total[i] = 0, low[i] = 0;
    const uint64_t of_high = descriptor(Config::high_at), of_low = descriptor(Config::low_at);
    const int lane = int(threadIdx.x) % 32;
#pragma unroll 1
    for (int b = 0; b < n_blocks; b++) {
      const uint64_t offset = uint32_t(stage.place) * (Config::stage_bytes >> 4);
      constexpr int n_steps = 4;
      wait(state().full[stage.place], stage.full_parity());
#pragma unroll
      for (int first = 0; first < 4; first += n_steps) {
        uint32_t x[n_steps][4], rest[n_steps][4];
        if (Config::writes_high && first == 0) wait(state().split[stage.place], stage.full_parity());
#pragma unroll
        for (int s = 0; s < n_steps; s++) load_r(stage_at(stage.place), first + s, x[s]);
        note_small(x, is_bad);
        hold_in_place(high);
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < n_steps; s++) wgmma_tf32(high, x[s], of_high + offset + (first + s) * 2, first + s > 0);
        wgmma_commit_group();
#pragma unroll
        for (int s = 0; s < n_steps; s++)
#pragma unroll
          for (int i = 0; i < 4; i++) rest[s][i] = difference(x[s][i], high_part(x[s][i]));
        if (!Config::writes_high && first == 0) wait(state().split[stage.place], stage.full_parity());
        hold_in_place(low);
        wgmma_fence();
#pragma unroll
        for (int s = 0; s < n_steps; s++) {
          wgmma_tf32(low, x[s], of_low + offset + (first + s) * 2, 1);
          wgmma_tf32(low, rest[s], of_high + offset + (first + s) * 2, 1);
        }
        wgmma_commit_group();
        if (first + n_steps < 4) wgmma_wait_group<0>();
      }
      wgmma_wait_group<1>();
      hold_in_place(high);
#pragma unroll
      for (int i = 0; i < n_sums; i++) total[i] += high[i];
      wgmma_wait_group<0>();
      hold_in_place(low);
      if (lane == 0) mbarrier_arrive(shared_address(&state().empty[stage.place]));
      stage.advance();
    }
#pragma unroll
    for (int i = 0; i < n_sums; i++) total[i] += low[i];
  }

  static constexpr int n_passes = bn / Config::bp;
  /* Consumers, of all blocks of the cluster: then everyone has to be there. */
  __device__ __forceinline__ void meet_for_sums() const {
    if (args.n_parts > 1)
      cluster_sync();
    else
      barrier_sync(1, 256);
  }

  __device__ __forceinline__ void consume() const {
    pipeline_stage<n_stages> stage;
    const int n_blocks = k_block(rank() + 1) - k_block(rank());
    const fused_store<Config> store{args, state(), sums_shared(), rank()};
    for_each_tile([&](const tile &at, int number) {
      float total[n_sums];
      bool is_bad[2] = {false, false};
      if constexpr (Config::cross_bf16)
        multiply_cross(total, is_bad, stage, n_blocks);
      else
        multiply(total, is_bad, stage, n_blocks);
#pragma unroll 1
      for (int pass = 0; pass < n_passes; pass++) {
        store.put_sums(total, is_bad, number, pass);
        meet_for_sums();
        const bool any_bad = store.any_is_bad(number);
        if (args.c_r == 1)
          store.template store_lines<true>(at, pass * Config::bp, any_bad, number);
        else
          store.template store_lines<false>(at, pass * Config::bp, any_bad, number);
        meet_for_sums();
      }
      if (args.n_parts == 1) store.clear_bad(number);
    });
  }

  __device__ __forceinline__ void run() const {
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0);
    if (threadIdx.x == 0) {
      for (int s = 0; s < n_stages; s++) {
        mbarrier_init(&state().full[s], Config::tma ? 1 : Config::n_loaders);
        mbarrier_init(&state().split[s], Config::splitters_of_stage);
        mbarrier_init(&state().empty[s], 8);
      }
      fence_mbarrier_init_release();
      fence_proxy_async_shared();
      if constexpr (Config::tma) prefetch_tensormap(&args.r.map), prefetch_tensormap(&args.s.map);
    }
    for (int i = int(threadIdx.x); i < int(sizeof(state().r_is_bad) + sizeof(state().s_is_bad)); i += int(blockDim.x))
      state().r_is_bad[0][i] = 0;
    __syncthreads();
    if (warp < 4) {
      setmaxnreg_dec<Config::loader_registers>();
      if (!Config::tma)
        load();
      else if (warp >= 2)
        split(int(threadIdx.x) - 64);
      else if (warp == 0 && elect_one())
        load();
    } else if (warp < 12) {
      setmaxnreg_inc<Config::consumer_registers>();
      consume();
    } else {
      setmaxnreg_dec<Config::splitter_registers>();
      split(int(threadIdx.x) - 384 + (Config::tma ? 64 : 0));
    }
    if (args.n_parts > 1 && (warp < 4 || warp >= 12)) {
      __syncwarp();
      for (int i = 0; i < 2 * n_passes; i++) cluster_sync();
    }
  }
};

} // namespace ws
#endif
