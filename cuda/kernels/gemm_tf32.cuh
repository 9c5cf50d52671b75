/* gemm_tf32.cuh - products of floats on the tensor cores of cc 9.0 in one launch: elements are split
 * into TF32 where they are multiplied. A block, or a cluster of them, for each item, which ends with it.
 *
 *   producers (4 warps)   bring k blocks to a pipeline of stages by cp.async (tf32_load.cuh), operands of
 *                         any alignment; have few registers
 *   consumers             split and multiply (tf32_sums.cuh); have the registers that producers leave
 *
 * Rows of tf32w.def multiply by wgmma, which takes B from shared memory alone:
 *
 *   splitters (4 warps)   make slices of B's part of a stage, in places of their own (tf32_split.cuh)
 *   consumers             split A in registers and multiply, a warpgroup 64 rows (tf32_wgmma_sums.cuh)
 *
 * Rows of tf32m.def load their operands by TMA, which, of one slice, rounds them to TF32:
 *
 *   producer (1 thread)   issues the TMA loads of k blocks (tf32_map_load.cuh)
 *   splitters             transpose a B that is contiguous along n, into buffers of their own; of two slices make low ones; else idle
 *   consumers             load A's fragments into registers, and multiply by wgmma (tf32_map_sums.cuh)
 *
 * Stages, barriers, groups of warps and clusters are as in gemm_dmma.cuh: `full` counts the producers'
 * threads, whose copies arrive by themselves, `empty` the consumers' warps; the groups' sums stand where
 * the stages were, and are added in their order, block by block, each block of the cluster doing its
 * columns. So the order of summation follows from the row and k alone.
 *
 * TF32 has the range of FP32: there are no scales, and nothing depends on other rows or columns. What is
 * no finite number in the end, and what meets a marked row or column, comes from multiply-adds. */
#ifndef WS_CUDA_GEMM_TF32_CUH
#define WS_CUDA_GEMM_TF32_CUH
#include "cuda/kernels/column_store.cuh"
#include "cuda/kernels/item_place.cuh"
#include "cuda/mainloop/few_k_sums.cuh"
#include "cuda/mainloop/k_parts.cuh"
#include "cuda/mainloop/pipeline.cuh"
#include "cuda/mainloop/tf32_load.cuh"
#include "cuda/mainloop/tf32_map_load.cuh"
#include "cuda/mainloop/tf32_map_sums.cuh"
#include "cuda/mainloop/tf32_split.cuh"
#include "cuda/mainloop/tf32_sums.cuh"
#include "cuda/mainloop/tf32_wgmma_sums.cuh"
#include "cuda/ptx/barrier_any.cuh"
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/shared_f64.cuh"
#include "cuda/ptx/wgmma.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

template <class Config> struct tf32_kernel {
  using number = typename Config::sum;
  static constexpr int k_groups = Config::k_groups;
  static constexpr bool splits_in_place =
      Config::by_map && Config::b_k && Config::n_slices > 1; /* low slices stand where elements did */
  static constexpr int unit = Config::unit, stage_k = Config::bk * k_groups, n_marks = Config::bm + Config::bn;

  /* The item, its k, this block's, and who shares it. */
  struct place {
    int batch, m, n, k_begin, k_end, k_first, n_k; /* batch < 0: beyond the last item */
    bool is_wanted;
    k_sharers sharers;
  };
  /* As those have it that want it late, and registers for other things. */
  struct shared_place : place {
    uint32_t fetched[Config::n_warps]; /* see item_place.cuh */
  };

  const ws_gemm_args &args;
  unsigned char *shared;
  place &at;
  uint32_t stages;       /* where they begin */
  uint32_t marks_at = 0; /* from the first item's marks to this one's, where blocks stay */

  __device__ __forceinline__ uint32_t full(int stage) const { return stages + uint32_t(Config::body_bytes + 8 * stage); }
  __device__ __forceinline__ uint32_t empty(int stage) const { return full(Config::n_stages + stage); }
  __device__ __forceinline__ uint32_t stage_at(int stage) const {
    return stages + uint32_t(Config::slices_bytes + stage * Config::stage_bytes);
  }
  /* Of slices that splitters make for wgmma; where they do that in place each stage is one. */
  __device__ __forceinline__ uint32_t split(int place) const { return full(2 * Config::n_stages + place); }
  __device__ __forceinline__ uint32_t taken(int place) const { return full(2 * Config::n_stages + Config::n_places + place); }
  __device__ __forceinline__ uint32_t slices_at(int place) const { return stages + uint32_t(place * Config::place_bytes); }
  /* Of rows, then of columns: a byte each. */
  __device__ __forceinline__ uint32_t marks() const {
    return stages + uint32_t(Config::body_bytes + WS_TF32_BARRIER_BYTES) + marks_at;
  }
  /* Whether there are any. */
  __device__ __forceinline__ uint32_t any_mark() const { return marks() + uint32_t(n_marks); }

  /* SHARES_K: with the other blocks of the cluster. */
  template <bool SHARES_K = true>
  static __device__ __forceinline__ place place_of(const ws_gemm_args &args, const item_place &item, uint32_t rank) {
    const int n_k = item.k_end - item.k_begin, n_stages = (n_k + stage_k - 1) / stage_k;
    const k_part part =
        SHARES_K ? k_part::of_block(rank, args.sharers, n_stages, Config::bn) : k_part::whole(n_stages, Config::bn);
    return {item.batch,
            item.m,
            item.n,
            item.k_begin,
            item.k_end,
            item.k_begin + part.first * stage_k,
            max(0, min(part.count * stage_k, n_k - part.first * stage_k)),
            item.is_wanted,
            {part.cluster, part.columns}};
  }
  template <bool SHARES_K = true>
  static __device__ __forceinline__ place find_place(const ws_gemm_args &args, const worker_block &block) {
    return place_of<SHARES_K>(args, item_place_at<Config, SHARES_K>(args, block.worker), block.rank);
  }

  __device__ __forceinline__ void make_barriers() const {
    for (int s = 0; s < Config::n_stages; s++) {
      mbarrier_init(reinterpret_cast<uint64_t *>(shared + Config::body_bytes) + s, Config::by_map ? 1 : WS_TF32_PRODUCERS);
      mbarrier_init(reinterpret_cast<uint64_t *>(shared + Config::body_bytes) + Config::n_stages + s,
                    Config::n_warps + (Config::by_map && Config::n_places == 0 ? 0 : Config::n_splitters / 32));
      if (splits_in_place)
        mbarrier_init(reinterpret_cast<uint64_t *>(shared + Config::body_bytes) + 2 * Config::n_stages + s,
                      Config::n_splitters / 32);
    }
    for (int s = 0; s < Config::n_places; s++) {
      uint64_t *const of = reinterpret_cast<uint64_t *>(shared + Config::body_bytes) + 2 * Config::n_stages + s;
      mbarrier_init(of, Config::n_splitters / 32);
      mbarrier_init(of + Config::n_places, Config::n_warps);
    }
    if constexpr (Config::by_map) {
      fence_proxy_async_shared();
    }
    if constexpr (Config::n_places > 0 || Config::by_map) fence_mbarrier_init_release();
  }
  /* Whether this thread does: of rows by maps the one that then issues TMA loads. All threads call it. */
  static __device__ __forceinline__ bool makes_barriers() {
    if constexpr (Config::by_map) return asks();
    return threadIdx.x == 0;
  }

  using stage_place = pipeline_stage<Config::n_stages>;
  using slices_place = pipeline_stage<Config::n_places>;

  /* IS_EARLY: the block meets behind the first copies, as nothing but the use of its barriers has to wait for that. */
  template <bool IS_EARLY> __device__ __forceinline__ void produce(const place &here, stage_place &stage) const {
    bool has_met = false; /* IS_EARLY */
    tf32_operand<unit, Config::bm, Config::a_k> a(args.a, here.batch, here.m, args.m, here.k_first);
    tf32_operand<unit, Config::bn, Config::b_k> b(args.b, here.batch, here.n, args.n, here.k_first);
#pragma unroll 1
    for (int left = here.n_k; left > 0;) {
      if (!IS_EARLY || has_met) mbarrier_wait<barrier_scope::cta>(empty(stage.place), stage.empty_parity());
      uint32_t to = stage_at(stage.place);
#pragma unroll 1
      for (int g = 0; g < k_groups; g++, left -= Config::bk, to += Config::group_bytes) {
        a.copy(to, left), b.copy(to + Config::a_bytes, left);
        a.advance(), b.advance();
      }
      if constexpr (IS_EARLY)
        if (!has_met) barrier_sync(0, Config::n_threads), has_met = true;
      cp_async_mbarrier_arrive(full(stage.place));
      stage.advance();
    }
    if constexpr (IS_EARLY)
      if (!has_met) barrier_sync(0, Config::n_threads);
  }

  /* Whether this is the thread that issues TMA loads; all threads of its warp call it. */
  static __device__ __forceinline__ bool asks() {
    return __shfl_sync(~0u, int(threadIdx.x / 32), 0) == Config::n_consuming / 32 && elect_one();
  }
  __device__ __forceinline__ const ws_map_args &maps() const { return reinterpret_cast<const ws_map_args &>(args); }

  /* By tensor maps. The block synchronizes after the first loads are issued: they need no free stage to be waited for. */
  __device__ __forceinline__ void ask_for_all(const place &here) const {
    const bool is_asking = asks();
    bool has_met = false;
    stage_place stage;
    tf32_map_operand<Config::bm, Config::a_k> a(maps().a, here.batch, here.m, here.k_first);
    tf32_map_operand<Config::bn, Config::b_k> b(maps().b, here.batch, here.n, here.k_first);
#pragma unroll 1
    for (int left = here.n_k, i = 0; left > 0; left -= Config::bk, i++) {
      if (i == Config::n_stages) barrier_sync(0, Config::n_threads), has_met = true;
      if (i >= Config::n_stages) mbarrier_wait<barrier_scope::cta>(empty(stage.place), stage.empty_parity());
      if (is_asking) {
        mbarrier_arrive_expect_tx(full(stage.place), Config::stage_bytes);
        a.ask(stage_at(stage.place), full(stage.place));
        uint32_t of_b = stage_at(stage.place) + Config::a_bytes;
        if constexpr (splits_in_place) b.ask(&maps().b_high.map, of_b, full(stage.place)), of_b += Config::slice_bytes;
        b.ask(of_b, full(stage.place));
      }
      a.advance(), b.advance();
      stage.advance();
    }
    if (!has_met) barrier_sync(0, Config::n_threads);
  }

  /* Splitters, of operands by tensor maps. */
  __device__ __forceinline__ void split_maps(stage_place &stage, slices_place &to) const {
    const tf32_map_splitter<Config> splitter{marks() + Config::bm};
#pragma unroll 1
    for (int left = at.n_k; left > 0; left -= Config::bk) {
      mbarrier_wait<barrier_scope::cta>(full(stage.place), stage.full_parity());
      const uint32_t b = stage_at(stage.place) + Config::a_bytes;
      if constexpr (splits_in_place) {
        splitter.split(b + Config::slice_bytes);
        fence_proxy_async_shared();
        arrive_of_warp(split(stage.place));
      } else {
        mbarrier_wait<barrier_scope::cta>(taken(to.place), to.empty_parity());
        splitter.turn(b, slices_at(to.place));
        fence_proxy_async_shared();
        arrive_of_warp(split(to.place));
        arrive_of_warp(empty(stage.place));
        to.advance();
      }
      stage.advance();
    }
  }

  /* Splitters: of B, from a stage to slices. */
  __device__ __forceinline__ void split_all(stage_place &stage, slices_place &to) const {
    const tf32_splitter<Config> splitter(tf32_first<unit, Config::b_k>(args.b, at.batch, at.n, at.k_first),
                                         tf32_ld<unit, Config::b_k>(args.b), marks(), args.b.conj != 0);
#pragma unroll 1
    for (int left = at.n_k; left > 0; left -= stage_k) {
      mbarrier_wait<barrier_scope::cta>(full(stage.place), stage.full_parity());
      mbarrier_wait<barrier_scope::cta>(taken(to.place), to.empty_parity());
#pragma unroll 1
      for (int g = 0; g < k_groups; g++)
        splitter.split(stage_at(stage.place) + g * Config::group_bytes, slices_at(to.place) + g * Config::slices_of_group);
      fence_proxy_async_shared();
      __syncwarp();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(split(to.place)), mbarrier_arrive(empty(stage.place));
      stage.advance(), to.advance();
    }
  }

  /* Consumers of a row by wgmma: as consume(). */
  __device__ __forceinline__ bool consume_slices() const {
    using sums = tf32_wgmma_sums<Config>;
    sums s(args.a.conj != 0);
    s.clear();
    s.seat(tf32_first<unit, Config::a_k>(args.a, at.batch, at.m, at.k_first), tf32_ld<unit, Config::a_k>(args.a));
    stage_place stage;
    slices_place from;
    const auto read = [&] {
      mbarrier_wait<barrier_scope::cta>(full(stage.place), stage.full_parity());
      s.read(stage_at(stage.place), marks());
      __syncwarp();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(empty(stage.place));
      stage.advance();
    };
    int n_left = (at.n_k + stage_k - 1) / stage_k;
    if (n_left > 0) read();
#pragma unroll 1
    for (; n_left > 0; n_left--) {
      s.split();
      mbarrier_wait<barrier_scope::cta>(split(from.place), from.full_parity());
      s.begin(slices_at(from.place) + sums::group() * Config::slices_of_group);
      s.middle();
      if (n_left > 1) read();
      s.end();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(taken(from.place));
      from.advance();
    }
    return finish_or_store(s);
  }

  /* Sums by wgmma: to C, if they need not be added to others, and all are good; else to shared memory. Whether C is done. */
  template <class Sums> __device__ __forceinline__ bool finish_or_store(const Sums &s) const {
    const bool is_whole = k_groups == 1 && at.sharers.is_alone();
    const bool is_good = !barrier_any(1, Config::n_consuming, is_whole && !(s.is_finite() && ld_shared_32(any_mark()) == 0));
    if constexpr (k_groups == 1)
      if (is_whole && is_good && takes_sums()) {
        finish_sums(s);
        return true;
      }
    s.store(reinterpret_cast<float *>(shared) + Sums::group() * Config::bn * Config::sum_pitch);
    return false;
  }

  /* The same of a row by tensor maps. A stage is free when wgmma has read B there, or, B being along n, splitters have. */
  __device__ __forceinline__ bool consume_maps() const {
    tf32_map_sums<Config> s;
    s.clear();
    s.seat();
    stage_place ahead, stage;
    slices_place from;
    const auto read = [&] {
      mbarrier_wait<barrier_scope::cta>(full(ahead.place), ahead.full_parity());
      s.read(stage_at(ahead.place), marks());
      if constexpr (!Config::b_k) arrive_of_warp(empty(ahead.place));
      ahead.advance();
    };
    const uint32_t nothing = uint32_t(args.m >> 32); /* a map has no more than 2^30 rows */
    int n_left = (at.n_k + Config::bk - 1) / Config::bk;
    if (n_left > 0) read();
#pragma unroll 1
    for (; n_left > 0; n_left--) {
      s.take(nothing);
      if constexpr (splits_in_place) mbarrier_wait<barrier_scope::cta>(split(stage.place), stage.full_parity());
      if constexpr (Config::n_places > 0) mbarrier_wait<barrier_scope::cta>(split(from.place), from.full_parity());
      s.begin(Config::b_k ? stage_at(stage.place) + Config::a_bytes : slices_at(from.place));
      s.middle();
      if (n_left > 1) read();
      s.end();
      if constexpr (Config::b_k) arrive_of_warp(empty(stage.place));
      if constexpr (Config::n_places > 0) arrive_of_warp(taken(from.place));
      stage.advance(), from.advance();
    }
    return finish_or_store(s);
  }
  static __device__ __forceinline__ void arrive_of_warp(uint32_t barrier) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(barrier);
  }

  /* Of the last stage, what is this group's; asked for once, so that it takes no register. */
  __device__ __forceinline__ int last_k(int group) const { return (at.n_k - 1) % stage_k + 1 - group * Config::bk; }

  /* Whether C is done, too. */
  __device__ __forceinline__ bool consume() const {
    using sums = tf32_sums<Config>;
    sums s(tf32_first<unit, Config::a_k>(args.a, at.batch, at.m, at.k_first), tf32_ld<unit, Config::a_k>(args.a),
           tf32_first<unit, Config::b_k>(args.b, at.batch, at.n, at.k_first), tf32_ld<unit, Config::b_k>(args.b),
           {args.a.conj != 0, args.b.conj != 0});
    int n_left = (at.n_k + stage_k - 1) / stage_k, place = 0;
    uint32_t round = 0;
    if (n_left > 0) {
      mbarrier_wait<barrier_scope::cta>(full(0), 0);
      s.read_first(stage_at(0));
    }
#pragma unroll 1
    for (; n_left > 0; n_left--) {
      const bool wraps = place + 1 == Config::n_stages;
      const int next = wraps ? 0 : place + 1;
      const uint32_t next_round = wraps ? round ^ 1 : round;
      s.advance(
          stage_at(place), stage_at(next), n_left > 1 ? Config::bk : last_k(sums::group()),
          [&] {
            if (n_left > 1) mbarrier_wait<barrier_scope::cta>(full(next), next_round);
          },
          marks());
      __syncwarp();
      if (threadIdx.x % 32 == 0) mbarrier_arrive(empty(place));
      place = next, round = next_round;
    }
    /* all have read their last stage, too */
    const bool is_whole = k_groups == 1 && unit == 1 && at.sharers.is_alone();
    const bool is_good = !barrier_any(1, Config::n_consuming, is_whole && !(s.is_finite() && ld_shared_32(any_mark()) == 0));
    if constexpr (k_groups == 1 && unit == 1)
      if (is_whole && is_good && takes_sums()) {
        finish_sums(s);
        return true;
      }
    s.store(reinterpret_cast<float *>(shared) + sums::group() * Config::bn * Config::sum_pitch);
    return false;
  }

  __device__ __forceinline__ uint32_t sums_of(int group) const {
    return stages + uint32_t(group * Config::bn * Config::sum_pitch * 4);
  }

  static __device__ __forceinline__ number number_at(const float *x) {
    if constexpr (unit == 2)
      return {x[0], x[1]};
    else
      return x[0];
  }

  template <int WIDTH> __device__ __forceinline__ void add_parts(uint32_t from, float (&x)[WIDTH]) const {
    at.sharers.template add_parts<k_groups>(x, [&](int group) { return from + sums_of(group) - sums_of(0); });
  }

  /* ---- What slices do not stand for ---------------------------------------------------------- */

  /* Whether any block of the cluster has marked anything. */
  __device__ __forceinline__ bool has_marks() const {
    const int lane = int(threadIdx.x % 32);
    return __any_sync(~0u, lane < at.sharers.cluster && mark_word(n_marks / 4, lane) != 0);
  }
  __device__ __forceinline__ uint32_t mark_word(int word, int of_rank) const {
    const uint32_t there = marks() + uint32_t(word * 4);
    if (at.sharers.is_alone()) return ld_shared_32(there);
    float x[1];
    ld_shared_cluster(x, there, uint32_t(of_rank));
    return __float_as_uint(x[0]);
  }
  __device__ __forceinline__ bool is_marked(int of) const {
    uint32_t any = 0;
#pragma unroll 1
    for (int r = 0; r < at.sharers.cluster; r++) any |= mark_word(of / 4, r) >> of % 4 * 8 & 255;
    return any != 0;
  }

  __device__ __forceinline__ number by_multiply_adds(int i, int j) const {
    const float *a = static_cast<const float *>(args.a.data) + unit * (at.batch * args.a.stride + (at.m + i) * args.a.step_mn),
                *b = static_cast<const float *>(args.b.data) + unit * (at.batch * args.b.stride + (at.n + j) * args.b.step_mn);
    const float sign_a = args.a.conj ? -1 : 1, sign_b = args.b.conj ? -1 : 1;
    float re = 0, im = 0;
#pragma unroll 2
    for (int64_t k = at.k_begin; k < at.k_end; k++) {
      const float *x = a + unit * k * args.a.step_k, *y = b + unit * k * args.b.step_k;
      re = fmaf(x[0], y[0], re);
      if constexpr (unit == 2) {
        const float x_im = sign_a * x[1], y_im = sign_b * y[1];
        re = fmaf(-x_im, y_im, re), im = fmaf(x[0], y_im, im), im = fmaf(x_im, y[0], im);
      }
    }
    if constexpr (unit == 2)
      return {re, im};
    else
      return re;
  }

  template <int WIDTH> static __device__ __forceinline__ bool are_finite(const float (&x)[WIDTH]) {
    bool is_finite = true;
#pragma unroll
    for (int f = 0; f < WIDTH; f++) is_finite &= fabsf(x[f]) < float(__builtin_huge_valf());
    return is_finite;
  }

  __device__ __forceinline__ number mended(const float (&x)[unit], int i, int j, bool any_marks) const {
    const bool is_good = are_finite(x) && !(any_marks && (is_marked(i) || is_marked(Config::bm + j)));
    return is_good ? number_at(x) : by_multiply_adds(i, j);
  }

  /* ---- From sums to C ------------------------------------------------------------------------ */

  /* Whether columns may be stored together; steps of an epilogue go element by element. */
  __device__ __forceinline__ bool is_plain() const {
    if (is_of_groups<Config> && args.epilogue.is_any) return false;
    return ws_region_is_plain(&args.region, at.m, Config::bm, at.n, Config::bn);
  }

  /* Whether sums can go to C from registers. Complex ones: where one rounding is all that they need, as by any other way. */
  __device__ __forceinline__ bool takes_sums() const {
    const scaling<Config> scale(args);
    return is_plain() && (unit == 1 || (scale.is_real() && scale.beta_zero && has_whole_elements<Config>(args)));
  }

  /* From registers: sums that need not be added to others, all of them finite and without marks. */
  template <class Sums> __device__ __forceinline__ void finish_sums(const Sums &s) const {
    const scaling<Config> scale(args);
    if constexpr (Config::is_across)
      put_across(s, scale);
    else if (unit == 2 || scale.beta_zero)
      put_sums<false>(s, scale);
    else
      put_sums<true>(s, scale);
  }
  /* Straight code, in which each store has a condition of its own: a branch takes as long as several of them. */
  template <bool READS_C, class Sums>
  __device__ __forceinline__ void put_sums(const Sums &s, const scaling<Config> &scale) const {
    constexpr int n_rows = 2 * Sums::n_m;
    constexpr int ahead =
        READS_C && Sums::n_n % 2 == 0 && n_rows <= 4 ? 2 : 1; /* times two columns, which are asked for together */
    const int n_i = int(ws_min(Config::bm, args.m - at.m)) - Sums::m_first() - Sums::g(),
              n_j = int(ws_min(Config::bn, args.n - at.n)) - Sums::n_first() - 2 * Sums::t();
    const int64_t ldc = args.ldc;
    number *c = c_of<Config>(args) + at.batch * args.stride_c + (at.n + Sums::n_first() + 2 * Sums::t()) * ldc + at.m +
                Sums::m_first() + Sums::g();
#pragma unroll
    for (int j = 0; j < Sums::n_n; j += ahead, c += 8 * ahead * ldc) {
      number old[ahead][2][n_rows] = {};
#pragma unroll
      for (int x = 0; x < ahead * 2 * n_rows; x++) {
        const int a = x / (2 * n_rows), odd = x / n_rows % 2, i = x % n_rows;
        if (READS_C && 8 * (j + a) + odd < n_j && 8 * i < n_i) old[a][odd][i] = c[(8 * a + odd) * ldc + 8 * i];
      }
#pragma unroll
      for (int x = 0; x < ahead * 2 * n_rows; x++) {
        const int a = x / (2 * n_rows), odd = x / n_rows % 2, i = x % n_rows;
        const number sum = s.at(i / 2, j + a, i % 2 * 2 + odd);
        const number y = READS_C ? scale.with_old(sum, old[a][odd][i]) : scale.alone(sum);
        if (8 * (j + a) + odd < n_j && 8 * i < n_i) c[(8 * a + odd) * ldc + 8 * i] = y;
      }
    }
  }

  /* ---- C transposed: the item's rows are columns of C, all of which is wanted ------------------- */

  __device__ __forceinline__ float *across_at(int i, int j) const {
    return static_cast<float *>(args.c) + at.batch * args.stride_c + int64_t(at.m + i) * args.ldc + at.n + j;
  }
  template <class Sums> __device__ __forceinline__ void put_across(const Sums &s, const scaling<Config> &scale) const {
    const bool are_pairs = args.c_vectors && args.n % 2 == 0; /* neighbours are of one column */
    if (scale.beta_zero)
      are_pairs ? put_across_as<float2, false>(s, scale) : put_across_as<float, false>(s, scale);
    else
      are_pairs ? put_across_as<float2, true>(s, scale) : put_across_as<float, true>(s, scale);
  }
  /* Straight code, as put_sums. */
  template <class Word, bool READS_C, class Sums>
  __device__ __forceinline__ void put_across_as(const Sums &s, const scaling<Config> &scale) const {
    constexpr int width = sizeof(Word) / sizeof(float), n_words = 4 / width; /* of this thread's four sums of eight columns */
    const int i_first = Sums::m_first() + Sums::g(), j_first = 2 * Sums::t();
    const int n_i = int(ws_min(Config::bm, args.m - at.m)) - i_first, n_j = int(ws_min(Config::bn, args.n - at.n)) - j_first;
    const int64_t eight = 8 * args.ldc;
    float *c = across_at(i_first, j_first);
    union word {
      Word whole;
      float x[width];
    };
#pragma unroll
    for (int j = 0; j < Sums::n_n; j++, c += 8) {
      word old[n_words] = {};
#pragma unroll
      for (int w = 0; w < n_words; w++) {
        const int half = w * width / 2, odd = w * width % 2;
        if (READS_C && 8 * half < n_i && 8 * j + odd < n_j) old[w].whole = *reinterpret_cast<Word *>(c + half * eight + odd);
      }
#pragma unroll
      for (int w = 0; w < n_words; w++) {
        const int half = w * width / 2, odd = w * width % 2;
        word y;
#pragma unroll
        for (int e = 0; e < width; e++) {
          const float sum = s.at(0, j, 2 * half + odd + e);
          y.x[e] = READS_C ? scale.with_old(sum, old[w].x[e]) : scale.alone(sum);
        }
        if (8 * half < n_i && 8 * j + odd < n_j) *reinterpret_cast<Word *>(c + half * eight + odd) = y.whole;
      }
    }
  }
  /* This block's columns of an item, from shared memory: four rows a thread, so that neighbours store what lies together. */
  template <bool IS_ALONE> __device__ __forceinline__ void finish_across() const {
    constexpr int n_e = 4;
    const bool any_marks = Config::n_slices > 1 && has_marks();
    const scaling<Config> scale(args);
    const int n_i = int(ws_min(Config::bm, args.m - at.m)), first = at.sharers.first_column(),
              n_j = min(int(ws_min(Config::bn, args.n - at.n)) - first, at.sharers.columns);
#pragma unroll 1
    for (int idx = int(threadIdx.x); idx < n_j * (Config::bm / n_e); idx += Config::n_consuming) {
      const int j = first + idx % n_j, i = idx / n_j * n_e;
      float x[1][n_e];
      if (i >= n_i) break;
      at.sharers.template add_columns<k_groups, IS_ALONE>(
          x, [&](int, int) { return sums_of(0) + uint32_t((j * Config::sum_pitch + i) * 4); }, [](int) { return true; });
      float *const c = across_at(i, j);
#pragma unroll
      for (int e = 0; e < n_e; e++) {
        if (i + e >= n_i) continue;
        const float one[1] = {x[0][e]}, sum = mended(one, i + e, j, any_marks);
        c[e * args.ldc] = scale(sum, scale.beta_zero ? 0 : c[e * args.ldc]);
      }
    }
  }

  /* This block's columns, of an item of which all that exists is wanted and nothing is marked. False: some are left, not being finite. */
  template <int N_E, bool IS_ALONE> __device__ __forceinline__ bool finish_plain() const {
    const scaling<Config> scale(args);
    return store_columns<Config, N_E, IS_ALONE>(
        args, at, sums_of(0), [] {},
        [&](const float(&x)[N_E * unit], const number(&old)[N_E], number(&y)[N_E]) {
#pragma unroll
          for (int e = 0; e < N_E; e++) y[e] = scale(number_at(x + unit * e), old[e]);
          return are_finite(x);
        });
  }

  /* The same of any item, or of what finish_plain<N_E> has left of one (n_left is N_E; else 0): element by element. */
  __device__ __forceinline__ void finish_each(int n_left, bool any_marks) const {
    const int n_e = max(n_left, 1), along = Config::bm / n_e, step = Config::n_consuming / along;
    const scaling<Config> scale(args);
    const int i = int(threadIdx.x % unsigned(along)) * n_e, n_j = int(ws_min(Config::bn, args.n - at.n));
    const int first = at.sharers.first_column(), end = min(n_j, first + at.sharers.columns);
    if (at.m + i >= args.m) return;
#pragma unroll 1
    for (int j = first + int(threadIdx.x / unsigned(along)); j < end; j += step) {
      const uint32_t from = sums_of(0) + uint32_t((j * Config::sum_pitch + unit * i) * 4);
      float x[unit];
      bool is_done = n_left > 0;
#pragma unroll 1
      for (int e = 0; e < n_left; e++) add_parts(from + 4 * unit * e, x), is_done &= are_finite(x);
      if (is_done) continue;
#pragma unroll 1
      for (int e = 0; e < n_e; e++) {
        add_parts(from + 4 * unit * e, x);
        finish_sum<Config>(args, scale, at.batch, at.m + i + e, at.n + j, mended(x, i + e, j, any_marks));
      }
    }
  }

  template <bool IS_ALONE> __device__ __forceinline__ bool finish_plain_by(int n_e) const {
    return n_e > 1 ? finish_plain<4 / unit, IS_ALONE>() : finish_plain<1, IS_ALONE>();
  }

  __device__ __forceinline__ void finish() const {
    if constexpr (Config::is_across) return at.sharers.is_alone() ? finish_across<true>() : finish_across<false>();
    const bool any_marks = has_marks();
    int n_left = 0;
    if (is_plain() && !any_marks) {
      n_left = args.c_vectors && at.m + Config::bm <= args.m ? 4 / unit : 1;
      if (at.sharers.is_alone() ? finish_plain_by<true>(n_left) : finish_plain_by<false>(n_left)) return;
    }
    finish_each(n_left, any_marks);
  }

  __device__ __forceinline__ bool multiply() const {
    if constexpr (Config::by_map)
      return consume_maps();
    else if constexpr (Config::n_places > 0)
      return consume_slices();
    else
      return consume();
  }

  /* Shorter sums have no proof: they come from multiply-adds (few_k_sums.cuh). Of all but groups the host knows. */
  static constexpr int least_k = Config::n_places > 0 && Config::n_slices > 1 ? WS_TF32W_LEAST_K(unit) : WS_TF32_LEAST_K;

  /* The two kinds of warps share no code behind their register counts, which would have to do with
   * the smaller one. ARE_PARAMETERS: args are the kernel's; else they stand in shared memory. find: returns the place of the
   * block's item. */
  template <bool ARE_PARAMETERS, class Find> __device__ __forceinline__ void run_at(shared_place &at_shared, Find find) const {
    constexpr bool copies_early = Config::n_places > 0 || Config::by_map; /* others have no registers for it */
    if (ARE_PARAMETERS) fetch_first_arguments(args, at_shared.fetched);
    if (makes_barriers()) make_barriers();
    place here = find();
    const bool has_few_k = !ARE_PARAMETERS && here.k_end - here.k_begin < least_k;
    if (has_few_k) here.n_k = 0;
    if (threadIdx.x == 32) at = here;
    for (int i = int(threadIdx.x); i <= n_marks / 4; i += Config::n_threads) store_shared(marks() + i * 4, 0);
    const auto copies = [] {
      return threadIdx.x >= Config::n_consuming && threadIdx.x < Config::n_consuming + Config::n_producers;
    };
    if (!copies_early)
      __syncthreads();
    else if (!copies() || !here.is_wanted)
      barrier_sync(0, Config::n_threads);
    if (!here.is_wanted) return;
    if (threadIdx.x < Config::n_consuming) {
      setmaxnreg_inc<Config::consumer_registers>();
      if (ARE_PARAMETERS) fetch_other_arguments(args, at_shared.fetched);
      if (has_few_k)
        few_k_sums<Config, least_k - 1>{reinterpret_cast<float *>(shared)}.run(args, at,
                                                                               at.sharers.is_alone() || cluster_rank() == 0);
      else if (multiply())
        return; /* alone, so nobody waits */
      at.sharers.template arrive_and_wait<Config::n_consuming>();
      finish();
      at.sharers.leave();
    } else {
      setmaxnreg_dec<Config::producer_registers>();
      bool splits = false;
      stage_place stage;
      if constexpr (Config::n_splitters > 0) {
        slices_place to;
        splits = !copies();
        if constexpr (Config::by_map) {
          if (splits && (splits_in_place || Config::n_places > 0)) split_maps(stage, to);
        } else {
          if (splits) split_all(stage, to);
        }
      }
      if constexpr (Config::by_map) {
        if (!splits) ask_for_all(here);
      } else {
        if (!splits) produce<copies_early>(here, stage);
      }
      at.sharers.attend();
    }
  }
  __device__ __forceinline__ void run(shared_place &at_shared) const {
    run_at<true>(at_shared, [&] { return find_place(args, worker_block_of(args.sharers)); });
  }
  /* Of a group, whose arguments its block has made. */
  __device__ __forceinline__ void run_item(shared_place &at_shared, const item_place &item, const uint32_t &rank) const {
    run_at<false>(at_shared, [&] { return place_of(args, item, rank); });
  }
};

} // namespace ws
#endif
