/* gemm_outer.cuh - products with a short k, of floats and complex ones, by multiply-adds on cc 9.0. What they
 * are bound by is C's way to memory, and the latency of an item's few k blocks: so a block stays, and
 * its k blocks make one sequence through a ring of stages, item after item. While one item is multiplied
 * and stored the operands of the next ones come.
 *
 * All threads copy (outer_load.cuh), multiply (outer_sums.cuh) and store. What a stage is of, its turn, stands
 * beside the stages, so that whoever multiplies need not know which items there are. An element of C is
 * one chain of multiply-adds. */
#ifndef WS_CUDA_GEMM_OUTER_CUH
#define WS_CUDA_GEMM_OUTER_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/kernels/gemm.cuh"
#include "cuda/mainloop/outer_load.cuh"
#include "cuda/mainloop/outer_sums.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

template <class Config> struct outer_kernel {
  using number = typename Config::sum;
  static constexpr int unit = Config::unit, n_stages = Config::n_stages, bk = Config::bk;

  /* A stage's item and its k; n_k: with `last` for the item's last k block; beyond the last item `none`. */
  struct alignas(16) turn {
    int batch, m, n, n_k;
  };
  static constexpr int last = 1 << 8, none = -1;

  const ws_gemm_args &args;
  unsigned char *shared;
  outer_operand<Config, Config::bm, Config::a_k> a;
  outer_operand<Config, Config::bn, Config::b_k> b;
  uint32_t item_idx; /* whose operands come */
  int k_left;        /* of them */

  /* Where it is: thread 0's, which tells the others by turns. */
  __device__ __forceinline__ turn &place() const { return turn_of(n_stages); }

  __device__ __forceinline__ turn &turn_of(int stage) const {
    return reinterpret_cast<turn *>(shared + n_stages * Config::stage_bytes)[stage];
  }

  /* The first item from item_idx on that has an element that is wanted, if there is one. */
  __device__ __forceinline__ void seat() {
    for (; item_idx < args.sched.n_items; item_idx = sched_fixed::after(item_idx)) {
      const ws_tile tile =
          args.region.region == WS_ALL ? ws_tile_at_32(&args.grid, item_idx) : item_tile_at<Config>(args, item_idx);
      if (!is_item_wanted<Config>(args, int(tile.row), int(tile.col))) continue;
      const ws_k_range k = k_range_of<Config>(args, int(tile.row), int(tile.col));
      const int batch = int(tile.batch), m = int(tile.row) * Config::bm, n = int(tile.col) * Config::bn;
      if (threadIdx.x == 0) place() = {batch, m, n, 0};
      k_left = int(k.end - k.begin);
      a.seat(args.a, batch, m, args.m, k.begin), b.seat(args.b, batch, n, args.n, k.begin);
      return;
    }
  }

  /* The next turn's operands, if there is one. */
  __device__ __forceinline__ void bring(int stage) {
    const bool is_any = item_idx < args.sched.n_items, is_last = k_left <= bk;
    /* not max(0, min(bk, k_left)): of that ptxas 13.0 takes a predicate for n_k == bk that is true below it, too */
    const int n_k = is_last ? k_left : bk;
    if (threadIdx.x == 0) {
      turn t = place();
      t.n_k = is_any ? n_k | (is_last ? last : 0) : none;
      turn_of(stage) = t;
    }
    if (is_any) {
      const uint32_t to = shared_address(shared) + uint32_t(stage * Config::stage_bytes);
      a.copy(args.a, to, n_k), b.copy(args.b, to + Config::a_bytes, n_k);
      a.advance(args.a), b.advance(args.b);
      k_left -= bk;
      if (is_last) item_idx = sched_fixed::after(item_idx), seat();
    }
    cp_async_commit(); /* an empty group too, so that the number of groups tells which stage has come */
  }

  /* ---- From sums to C ------------------------------------------------------------------------ */

  /* An item of which all is wanted, by real factors. IS_WHOLE: all of it exists, and nothing of C is read. */
  template <bool IS_WHOLE>
  __device__ __forceinline__ void store_plain(const outer_sums<Config> &s, const turn &of, uint32_t sign,
                                              const scaling<Config> &scale) const {
    const int i_first = of.m + s.lane(), j_first = of.n + s.first_column();
    const int n_i = int(args.m) - i_first, n_j = int(args.n) - j_first;
    number *c = c_of<Config>(args) + of.batch * args.stride_c + j_first * args.ldc + i_first;
#pragma unroll
    for (int j = 0; j < Config::tn; j++, c += args.ldc) {
      if (!IS_WHOLE && j >= n_j) continue;
#pragma unroll
      for (int i = 0; i < Config::tm; i++) {
        if (!IS_WHOLE && Config::lanes * i >= n_i) continue;
        number *const at = c + Config::lanes * i;
        if constexpr (IS_WHOLE)
          *at = scale.by_real(s.number(i, j, sign), {});
        else
          store_element<Config>(at, scale.by_real(s.number(i, j, sign), scale.beta_zero ? number{} : load_element<Config>(at)));
      }
    }
  }

  __device__ __forceinline__ void store_any(const outer_sums<Config> &s, const turn &of, uint32_t sign,
                                            const scaling<Config> &scale) const {
    const int i_first = of.m + s.lane(), j_first = of.n + s.first_column();
#pragma unroll
    for (int j = 0; j < Config::tn; j++)
#pragma unroll
      for (int i = 0; i < Config::tm; i++)
        if (j_first + j < args.n && i_first + Config::lanes * i < args.m)
          finish_sum<Config>(args, scale, of.batch, i_first + Config::lanes * i, j_first + j, s.number(i, j, sign));
  }

  __device__ __forceinline__ void store(const outer_sums<Config> &s, const turn &of, uint32_t sign) const {
    const scaling<Config> scale(args);
    const bool is_whole =
        of.m + Config::bm <= args.m && of.n + Config::bn <= args.n && scale.beta_zero && has_whole_elements<Config>(args);
    if (!scale.is_real() || !ws_region_is_plain(&args.region, of.m, Config::bm, of.n, Config::bn))
      store_any(s, of, sign, scale);
    else if (is_whole)
      store_plain<true>(s, of, sign, scale);
    else
      store_plain<false>(s, of, sign, scale);
  }

  /* ---- All ----------------------------------------------------------------------------------- */

  __device__ __forceinline__ void run() {
    /* a conj(b) is the conjugate of conj(a) b */
    const uint32_t sign_a = args.a.conj != args.b.conj ? 0x80000000u : 0, sign = args.b.conj ? 0x80000000u : 0;
    outer_sums<Config> s;
    s.clear();
    item_idx = sched_fixed::first();
    seat();
    /* So many stages are brought before the first is multiplied; in this loop, so that the code is there once. */
    int n_ahead = n_stages - 1;
#pragma unroll 1
    for (int stage = 1;; stage = stage + 1 == n_stages ? 0 : stage + 1) {
      turn of;
      if (n_ahead == 0) {
        cp_async_wait<n_stages - 2>();
        __syncthreads(); /* everybody's part of the stage has come, and everybody is through with the one before */
        of = turn_of(stage);
        if (of.n_k == none) break;
      }
      bring(stage == 0 ? n_stages - 1 : stage - 1);
      if (n_ahead > 0) {
        n_ahead--;
        continue;
      }
      s.add_block(shared + stage * Config::stage_bytes, of.n_k % last, sign_a);
      if (of.n_k < last) continue;
      store(s, of, sign);
      s.clear();
    }
    cp_async_wait<0>();
  }
};

} // namespace ws
#endif
