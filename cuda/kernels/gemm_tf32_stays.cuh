/* gemm_tf32_stays.cuh - rows of gemm_tf32.cuh by wgmma whose blocks stay: they take items one after the other. While
 * consumers store an item the next one is copied and split; of two slices, and 64 columns, its first k block is multiplied, too.
 *
 * Stages and places of slices go on from item to item. Where items are stands in a ring, which a splitter fills: `known`
 * tells that an item's place stands there, `done` that all warps are through with it. Sums go to C from registers; those
 * of which some are no finite numbers, or marked, or at the edge of C's region, one by one, before the next item is begun. */
#ifndef WS_CUDA_GEMM_TF32_STAYS_CUH
#define WS_CUDA_GEMM_TF32_STAYS_CUH
#include "cuda/kernels/gemm_tf32.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

template <class Config> struct tf32_staying {
  using item_kernel = tf32_kernel<Config>;
  using place = typename item_kernel::place;
  using sums = tf32_wgmma_sums<Config>;
  using item_place = pipeline_stage<Config::n_items>;
  static constexpr int ahead = Config::n_items - 2; /* items whose places stand before the one that is multiplied is done */
  static_assert(Config::unit == 1, "complex sums may want more than registers hold");

  const ws_gemm_args &args;
  unsigned char *shared;
  place *ring; /* of n_items, and one whose batch counts the items that have been found */
  uint32_t stages;

  __device__ __forceinline__ int &n_found() const { return ring[Config::n_items].batch; } /* in no register */
  __device__ __forceinline__ item_kernel of(int item) const {
    return {args, shared, ring[item], stages, uint32_t(item * Config::marks_bytes)};
  }
  __device__ __forceinline__ uint32_t known(int item) const {
    return of(0).full(2 * Config::n_stages + 2 * Config::n_places + item);
  }
  __device__ __forceinline__ uint32_t done(int item) const { return known(Config::n_items + item); }

  __device__ __forceinline__ void make_barriers() const {
    uint64_t *const barriers =
        reinterpret_cast<uint64_t *>(shared + Config::body_bytes) + 2 * Config::n_stages + 2 * Config::n_places;
    for (int i = 0; i < Config::n_items; i++) {
      mbarrier_init(barriers + i, 1);
      mbarrier_init(barriers + Config::n_items + i, Config::n_threads / 32);
    }
    of(0).make_barriers();
  }

  /* One thread: finds the place of the block's next item, and clears marks that one before it has left there. */
  __device__ __forceinline__ void find() const {
    const uint32_t n = n_found()++;
    const int item = int(n % Config::n_items);
    const item_kernel to = of(item);
    mbarrier_wait<barrier_scope::cta>(done(item), n / Config::n_items & 1 ^ 1);
    if (ld_shared_32(to.any_mark()) != 0)
#pragma unroll 1
      for (int i = 0; i < Config::marks_bytes; i += 4) store_shared(to.marks() + i, 0);
    const uint32_t item_idx = worker_idx() + n * n_workers();
    if (item_idx < args.sched.n_items)
      ring[item] = item_kernel::template find_place<false>(args, {item_idx, 0});
    else
      to.at.batch = -1;
    mbarrier_arrive(known(item));
  }

  __device__ __forceinline__ bool wait_known(const item_place &item) const {
    mbarrier_wait<barrier_scope::cta>(known(item.place), item.full_parity());
    return ring[item.place].batch >= 0;
  }
  __device__ __forceinline__ void arrive_done(int item) const {
    __syncwarp();
    if (threadIdx.x % 32 == 0) mbarrier_arrive(done(item));
  }

  __device__ __forceinline__ void produce() const {
    typename item_kernel::stage_place stage;
    item_place item;
#pragma unroll 1
    for (; wait_known(item); item.advance()) {
      if (ring[item.place].is_wanted) of(item.place).template produce<false>(ring[item.place], stage);
      arrive_done(item.place);
    }
  }

  __device__ __forceinline__ void split() const {
    typename item_kernel::stage_place stage;
    typename item_kernel::slices_place to;
    item_place item;
    const bool finds = threadIdx.x == Config::n_threads - 1;
#pragma unroll 1
    for (int i = 1; finds && i < ahead; i++) find();
#pragma unroll 1
    for (; wait_known(item); item.advance()) {
      if (finds) find();
      if (ring[item.place].is_wanted) of(item.place).split_all(stage, to);
      arrive_done(item.place);
    }
  }

  /* Any sums, one by one; a number tells which, so that the code is there once and no sum in memory. Few items need it. */
  static __device__ __forceinline__ void finish_each(const sums &s, const item_kernel &of) {
    const scaling<Config> scale(of.args);
    const bool any_marks = ld_shared_32(of.any_mark()) != 0;
#pragma unroll 1
    for (int f = 0; f < sums::n_sums; f++) {
      const int i = sums::m_first() + sums::g() + f % 4 / 2 * 8, j = f / 4 * 8 + 2 * sums::t() + f % 2;
      float x[1] = {0};
#pragma unroll
      for (int of_sums = 0; of_sums < sums::n_sums; of_sums++)
        if (of_sums == f) x[0] = s.sum[of_sums];
      if (of.at.m + i >= of.args.m || of.at.n + j >= of.args.n) continue;
      finish_sum<Config>(of.args, scale, of.at.batch, of.at.m + i, of.at.n + j, of.mended(x, i, j, any_marks));
    }
  }

  /* Whether a warp's sums are for C as they are: its rows' marks are its own, those of columns stand since their slices do. */
  static __device__ __forceinline__ bool are_good(const sums &s, const item_kernel &of) {
    __syncwarp();
    return __all_sync(~0u, s.is_finite() && ld_shared_32(of.any_mark()) == 0) && of.takes_sums();
  }

  __device__ __forceinline__ void consume() const {
    enum { NONE = -1 };
    sums s(args.a.conj != 0);
    s.clear();
    typename item_kernel::stage_place stage;
    typename item_kernel::slices_place from;
    item_place item;
    int to_store = NONE; /* whose sums are in s */
    const auto store = [&] {
      if (to_store == NONE) return;
      of(to_store).finish_sums(s);
      s.clear();
      arrive_done(to_store);
      to_store = NONE;
    };
#pragma unroll 1
    for (; wait_known(item); item.advance()) {
      const place &at = ring[item.place];
      if (!at.is_wanted) {
        arrive_done(item.place);
        continue;
      }
      const item_kernel now = of(item.place);
      const auto read = [&] {
        mbarrier_wait<barrier_scope::cta>(now.full(stage.place), stage.full_parity());
        s.read(now.stage_at(stage.place), now.marks());
        __syncwarp();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(now.empty(stage.place));
        stage.advance();
      };
      s.seat(tf32_first<1, Config::a_k>(args.a, at.batch, at.m, at.k_first), tf32_ld<1, Config::a_k>(args.a));
      int n_left = (at.n_k + Config::bk - 1) / Config::bk;
      if (n_left > 0) read();
      if (n_left == 0 || !Config::stores_beside) store();
#pragma unroll 1
      for (; n_left > 0; n_left--) {
        s.split();
        mbarrier_wait<barrier_scope::cta>(now.split(from.place), from.full_parity());
        s.begin(now.slices_at(from.place));
        s.middle();
        if constexpr (Config::stores_beside) store(); /* before the next elements take registers */
        if (n_left > 1) read();
        s.end();
        if (threadIdx.x % 32 == 0) mbarrier_arrive(now.taken(from.place));
        from.advance();
      }
      if (are_good(s, now)) {
        to_store = item.place;
      } else {
        finish_each(s, now);
        s.clear();
        arrive_done(item.place);
      }
    }
    store();
  }

  __device__ __forceinline__ void run() const {
    if (threadIdx.x == 0) {
      ring[0] = item_kernel::template find_place<false>(args, {worker_idx(), 0});
      n_found() = 1;
    }
    if (threadIdx.x == 32) make_barriers();
    for (int i = int(threadIdx.x) * 4; i < Config::n_items * Config::marks_bytes; i += Config::n_threads * 4)
      store_shared(of(0).marks() + i, 0);
    __syncthreads();
    if (threadIdx.x == 0) mbarrier_arrive(known(0));
    if (threadIdx.x < Config::n_consuming) {
      setmaxnreg_inc<Config::consumer_registers>();
      consume();
    } else {
      setmaxnreg_dec<Config::producer_registers>();
      const ws_gemm_args *again = &args;
      asm volatile("" : "+l"(again)); /* nothing that is made of it is kept in registers from before */
      const tf32_staying here = {*again, shared, ring, stages};
      if (threadIdx.x >= Config::n_consuming + WS_TF32_PRODUCERS)
        here.split();
      else
        produce();
    }
  }
};

} // namespace ws
#endif
