/* wgmma_kernel.cuh - products of 16-bit elements on the matrix units of cc 9.0: warpgroups with roles of their own around two rings.
 *
 *   producer (1 thread)     draws items one ahead, tells them to the consumers (ring of items), and has the copy engine fill stages
 *                           (ring of stages): one k block of A, and as many of B as the item has tiles
 *   consumers (2 x 128)     each owns some of the item's COARSE tiles against the same stage of A; wgmma reads the stages, the sums stay
 *                           in registers; then they go to C through shared memory, by the copy engine, while the producer already
 *                           fills stages of the next item
 *
 *       m (contiguous in C) ->        a wgmma takes 64 columns of C as its rows, and BM rows of C as
 *     n  +----------------+           its columns, so that neighbouring registers are neighbours in C:
 *     |  | consumer 0     | 64        its first operand is B, its second one A.
 *     v  | consumer 1     | 64
 *        +----------------+
 *              BM
 *
 * Every element of C has one owner and one order of summation over k, so its bits depend on no scheduler, tile order or COARSE_FACTOR.
 *
 * Barriers of the rings: `full` is completed by the copy engine's bytes (items: by the producer), `empty` by the consumers. The waiter
 * knows the parity of its round; a stage's `empty` of round -1 counts as complete (parity 1). */
#ifndef WS_CUDA_WGMMA_KERNEL_CUH
#define WS_CUDA_WGMMA_KERNEL_CUH
#include "ptx_clc.cuh"
#include "ptx_tma.cuh"
#include "ptx_wgmma.cuh"
#include "sched_queue.cuh"
#include "wgmma_args.h"

namespace ws {

template <class Element, int BM, int BN, int COARSE, int CONSUMERS, int STAGES> struct wgmma_config {
  using element = Element;
  static constexpr int bm = BM, bn = BN, coarse = COARSE, item_n = BN * COARSE, n_stages = STAGES;
  static constexpr int bk = wgmma_line, n_consumers = CONSUMERS, n_threads = 128 * (1 + n_consumers), n_items = 2;
  static constexpr int pieces = item_n / 64 / n_consumers; /* of 64 columns of C, for each consumer */
  static constexpr int slab_bytes = wgmma_line * bk * 2;   /* 64 x 64 elements */
  static constexpr int a_bytes = BM * bk * 2, b_bytes = item_n * bk * 2, stage_bytes = a_bytes + b_bytes;
  static constexpr int n_outputs = 2, output_bytes = slab_bytes; /* for each consumer: 64 x 64 of C on their way */
  static constexpr int shared_bytes = STAGES * stage_bytes + n_consumers * n_outputs * output_bytes + 256;

  static_assert(item_n % (64 * n_consumers) == 0, "each consumer has as many columns of C, in pieces of 64");
  static_assert(BM % 64 == 0 && BM <= 256, "a box of the copy engine is at most 256 long");
  static_assert(pieces * BM / 2 <= 128, "the sums leave registers for the rest");
  static_assert(shared_bytes <= 227 * 1024, "the shared memory of a block (cc 9.0)");
};

template <class Element> __device__ __forceinline__ uint32_t pack_two(float x, float y) {
  uint32_t bits;
  if constexpr (std::is_same_v<Element, __half>) {
    const __half2 two = __floats2half2_rn(x, y);
    memcpy(&bits, &two, 4);
  } else {
    const __nv_bfloat162 two = __floats2bfloat162_rn(x, y);
    memcpy(&bits, &two, 4);
  }
  return bits;
}

/* Where a ring stands: which place, and in which round (by its parity). */
template <int N> struct ring_place {
  int place = 0;
  uint32_t round = 0;
  __device__ __forceinline__ void advance() {
    if (++place == N) place = 0, round ^= 1;
  }
};

template <class Config> struct wgmma_kernel {
  using element = typename Config::element;
  static constexpr uint32_t no_item = ~uint32_t(0);

  /* First element of C; m < 0: there are no more items. */
  struct item {
    int m, n, batch;
  };

  struct rings {
    uint64_t full[Config::n_stages], empty[Config::n_stages], item_full[Config::n_items], item_empty[Config::n_items];
    item items[Config::n_items];
  };
  static_assert(sizeof(rings) <= 256);

  const ws_wgmma_args &args;
  unsigned char *shared;

  __device__ rings &ring() const {
    return *reinterpret_cast<rings *>(shared + Config::n_stages * Config::stage_bytes +
                                      Config::n_consumers * Config::n_outputs * Config::output_bytes);
  }
  __device__ uint32_t stage_at(int place) const { return shared_address(shared) + uint32_t(place * Config::stage_bytes); }

  __device__ __forceinline__ void prepare() const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < Config::n_stages; s++) {
        mbarrier_init(&ring().full[s], 1);
        mbarrier_init(&ring().empty[s], Config::n_consumers);
      }
      for (int i = 0; i < Config::n_items; i++) {
        mbarrier_init(&ring().item_full[i], 1);
        mbarrier_init(&ring().item_empty[i], Config::n_consumers);
      }
      fence_mbarrier_init_release();
      fence_proxy_async_shared();
    }
    __syncthreads();
  }

  __device__ __forceinline__ int n_k_blocks() const { return int(ws_ceil_div(args.k, Config::bk)); }

  /* ---- Producer: one thread ---------------------------------------------------------------------------------------------------- */

  /* X elements along m or n from x on, 64 of k from k on. */
  template <int X>
  static __device__ __forceinline__ void load_operand(uint32_t to, const CUtensorMap *map, bool along_k, int x, int k, int batch,
                                                      uint32_t barrier) {
    if (along_k)
      cp_async_bulk_tensor_load(to, map, k, x, batch, barrier);
    else
#pragma unroll
      for (int s = 0; s < X / 64; s++) cp_async_bulk_tensor_load(to + s * Config::slab_bytes, map, x + s * 64, k, batch, barrier);
  }

  __device__ __forceinline__ void load_stage(uint32_t to, uint32_t barrier, int m, int n, int k, int batch) const {
    mbarrier_arrive_expect_tx(barrier, Config::stage_bytes);
    load_operand<Config::bm>(to, &args.a, args.a_k, m, k, batch, barrier);
    load_operand<Config::item_n>(to + Config::a_bytes, &args.b, args.b_k, n, k, batch, barrier);
  }

  __device__ __forceinline__ void produce() const {
    const sched_queue sched(args.sched);
    ring_place<Config::n_stages> stage;
    ring_place<Config::n_items> slot;
    const int n_k = n_k_blocks();
    uint32_t n_left = args.sched.quantum > 0 ? args.sched.quantum : no_item;
    uint32_t item_idx = sched.first();
    while (true) {
      const bool is_item = item_idx < args.sched.n_items;
      mbarrier_wait(shared_address(&ring().item_empty[slot.place]), slot.round ^ 1);
      const uint32_t next = is_item && --n_left > 0 ? sched.after(item_idx) : no_item;
      const ws_tile tile = ws_tile_at_32(&args.grid, item_idx);
      const int m = int(tile.row) * Config::bm, n = int(tile.col) * Config::bn;
      ring().items[slot.place] = {is_item ? m : -1, n, int(tile.batch)};
      mbarrier_arrive(shared_address(&ring().item_full[slot.place]));
      slot.advance();
      if (!is_item) break;
      for (int k_block = 0; k_block < n_k; k_block++) {
        mbarrier_wait(shared_address(&ring().empty[stage.place]), stage.round ^ 1);
        load_stage(stage_at(stage.place), shared_address(&ring().full[stage.place]), m, n, k_block * Config::bk, int(tile.batch));
        stage.advance();
      }
      item_idx = next;
    }
    if (args.sched.queue) sched.leave();
  }

  /* ---- Consumers ----------------------------------------------------------------------------------------------------------------- */

  static __device__ __forceinline__ int consumer_idx() { return int(threadIdx.x) / 128 - 1; }

  /* All k of an item. A_X, B_X: contiguous along m, along n. */
  template <bool A_X, bool B_X>
  __device__ __forceinline__ void multiply(float (&sums)[Config::pieces][Config::bm / 2],
                                           ring_place<Config::n_stages> &stage) const {
    const int n_k = n_k_blocks();
    const bool tells = threadIdx.x % 128 == 0;
    const uint64_t a_first = wgmma_descriptor<A_X>(stage_at(0), Config::slab_bytes),
                   b_first = wgmma_descriptor<B_X>(stage_at(0) + Config::a_bytes +
                                                       uint32_t(consumer_idx() * Config::pieces * Config::slab_bytes),
                                                   Config::slab_bytes);
    int before = -1;
    for (int k_block = 0; k_block < n_k; k_block++) {
      mbarrier_wait(shared_address(&ring().full[stage.place]), stage.round);
      const uint64_t a = a_first + uint32_t(stage.place * (Config::stage_bytes >> 4)),
                     b = b_first + uint32_t(stage.place * (Config::stage_bytes >> 4));
#pragma unroll
      for (int p = 0; p < Config::pieces; p++) hold_in_place(sums[p]);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < Config::bk / wgmma_k; step++)
#pragma unroll
        for (int p = 0; p < Config::pieces; p++)
          wgmma_mma_async<element, B_X, A_X>(sums[p], b + p * (Config::slab_bytes >> 4) + step * wgmma_next_k<B_X>,
                                             a + step * wgmma_next_k<A_X>, k_block > 0 || step > 0);
      wgmma_commit_group();
#pragma unroll
      for (int p = 0; p < Config::pieces; p++) hold_in_place(sums[p]);
      if (before >= 0) {
        wgmma_wait_group<1>(); /* the block before has been read */
        if (tells) mbarrier_arrive(shared_address(&ring().empty[before]));
      }
      before = stage.place;
      stage.advance();
    }
    wgmma_wait_group<0>();
#pragma unroll
    for (int p = 0; p < Config::pieces; p++) hold_in_place(sums[p]);
    if (tells) mbarrier_arrive(shared_address(&ring().empty[before]));
  }

  /* 64 columns of C from n on, rows from m on, by the copy engine; in pieces of 64 x 64, for which there are n_outputs places. */
  __device__ __forceinline__ void store_by_map(const float (&sums)[Config::bm / 2], int m, int n, int batch, int &output) const {
    const int t = int(threadIdx.x) % 128, lane = t % 32, warp = t / 32;
    const uint32_t places = stage_at(Config::n_stages) + uint32_t(consumer_idx() * Config::n_outputs * Config::output_bytes);
    const uint32_t line = uint32_t(warp * 16 + lane % 16); /* of those whose address this lane gives */
#pragma unroll
    for (int s = 0; s < Config::bm / 64; s++) {
      if (s > 0 && m + s * 64 >= args.m) break;
      const uint32_t place = places + uint32_t(output * Config::output_bytes);
      output = (output + 1) % Config::n_outputs;
      if (t == 0) cp_async_bulk_wait_group_read<Config::n_outputs - 1>();
      barrier_sync(1 + consumer_idx(), 128);
#pragma unroll
      for (int q = 0; q < 4; q++) {
        const float *d = &sums[s * 32 + q * 8];
        const uint32_t x[4] = {
            pack_two<element>(args.alpha * d[0], args.alpha * d[1]), pack_two<element>(args.alpha * d[2], args.alpha * d[3]),
            pack_two<element>(args.alpha * d[4], args.alpha * d[5]), pack_two<element>(args.alpha * d[6], args.alpha * d[7])};
        stmatrix_x4(place + line * 128 + (uint32_t(2 * q + lane / 16) ^ line % 8) * 16, x);
      }
      fence_proxy_async_shared();
      barrier_sync(1 + consumer_idx(), 128);
      if (t == 0) {
        cp_async_bulk_tensor_store(&args.c, m + s * 64, n, batch, place);
        cp_async_bulk_commit_group();
      }
    }
  }

  /* The same element by element, wherever C stands, and with beta. */
  __device__ __forceinline__ void store_singly(const float (&sums)[Config::bm / 2], int m, int n, int batch) const {
    const int t = int(threadIdx.x) % 128, lane = t % 32, warp = t / 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      const int j = n + warp * 16 + half * 8 + lane / 4;
      if (j >= args.n) continue;
      element *column = static_cast<element *>(args.c_data) + batch * args.stride_c + j * args.ldc;
#pragma unroll
      for (int x = 0; x < Config::bm / 4; x++) {
        const int i = m + x / 2 * 8 + lane % 4 * 2 + x % 2;
        if (i >= args.m) continue;
        const float sum = args.alpha * sums[x / 2 * 4 + half * 2 + x % 2];
        column[i] = element(args.beta == 0 ? sum : fmaf(args.beta, float(column[i]), sum));
      }
    }
  }

  __device__ __forceinline__ void consume() const {
    ring_place<Config::n_stages> stage;
    ring_place<Config::n_items> slot;
    float sums[Config::pieces][Config::bm / 2];
    const int t = int(threadIdx.x) % 128;
    int output = 0;
    while (true) {
      mbarrier_wait(shared_address(&ring().item_full[slot.place]), slot.round);
      const item at = ring().items[slot.place];
      barrier_sync(1 + consumer_idx(), 128);
      if (t == 0) mbarrier_arrive(shared_address(&ring().item_empty[slot.place]));
      slot.advance();
      if (at.m < 0) break;
      if (!args.a_k && !args.b_k) multiply<true, true>(sums, stage);
      if (!args.a_k && args.b_k) multiply<true, false>(sums, stage);
      if (args.a_k && !args.b_k) multiply<false, true>(sums, stage);
      if (args.a_k && args.b_k) multiply<false, false>(sums, stage);
      const int m = at.m, n = at.n + consumer_idx() * Config::pieces * 64;
#pragma unroll
      for (int p = 0; p < Config::pieces; p++) {
        if (n + p * 64 >= args.n) break;
        if (args.c_by_map)
          store_by_map(sums[p], m, n + p * 64, at.batch, output);
        else
          store_singly(sums[p], m, n + p * 64, at.batch);
      }
    }
    if (t == 0) cp_async_bulk_wait_group<0>();
  }

  __device__ __forceinline__ void run() const {
    prepare();
    if (threadIdx.x < 128) {
      setmaxnreg_dec<40>();
      if (threadIdx.x == 0) produce();
    } else {
      setmaxnreg_inc<232>();
      consume();
    }
  }
};

} // namespace ws

#define WS_WGMMA_ENTRY(name, ...)                                                           \
  extern "C" __global__ void __launch_bounds__(ws::wgmma_config<__VA_ARGS__>::n_threads, 1) \
      name(const __grid_constant__ ws_wgmma_args args) {                                    \
    extern __shared__ __align__(1024) unsigned char shared[];                               \
    ws::wgmma_kernel<ws::wgmma_config<__VA_ARGS__>>{args, shared}.run();                    \
  }
#endif
