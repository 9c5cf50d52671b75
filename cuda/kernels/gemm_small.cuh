/* gemm_small.cuh - batches of small products (m, n, k up to 64): a block takes several matrices at a time,
 * and a thread a tile of one of them.
 *
 * Such batches are bound by the bytes of their operands. So blocks stay, and ask for their next item's
 * matrices before they multiply this one's: two stages in shared memory (small_load.cuh). The sizes are
 * the call's; a tile that reaches beyond C is summed whole (small_sums.cuh), and stored as far as it
 * exists. */
#ifndef WS_CUDA_GEMM_SMALL_CUH
#define WS_CUDA_GEMM_SMALL_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/mainloop/small_load.cuh"
#include "cuda/mainloop/small_mma.cuh"
#include "cuda/mainloop/small_sums.cuh"
#include "cuda/ptx/clc.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/sched/fixed.cuh"

namespace ws {

/* Tiles of threads, by multiply-adds. */
template <class Config> struct small_by_thread {
  static constexpr int owner_threads = 1, tm = Config::tm, tn = Config::tn, vec = Config::vec;
  using row_map = small_operand<Config, tm, Config::a_k, true>;
  using column_map = small_operand<Config, tn, Config::b_k, true>;
  static constexpr bool has_vectors = !Config::a_k; /* of rows */

  /* where: says where C is, and whether it may be written 16 bytes at a time. */
  template <class Where>
  static __device__ __forceinline__ void store(const ws_small_args &args, const small_sums<Config> &s, const Where &where,
                                               int row, int col) {
    const ws_gemm_args &g = args.gemm;
    const scaling<Config> scale(g);
    const conjugation conj = {g.a.conj != 0, g.b.conj != 0};
    const c_pointer<Config> c = where.c();
    const bool is_whole = where.is_whole(c);
    const int m = int(g.m), n = int(g.n);
    constexpr int n_e = has_vectors ? vec : 1;
    auto line = c + (column_map::x_of(col, args.tiles_n, 0) * g.ldc + row_map::x_of(row, args.tiles_m, 0));
    const int64_t to_next = column_map::x_of(0, args.tiles_n, 1) * g.ldc,
                  to_vector = (column_map::x_of(0, args.tiles_n, tn > vec ? vec : 0) - (vec - 1)) * g.ldc;
#pragma unroll
    for (int j = 0; j < tn; j++) {
      if (column_map::x_of(col, args.tiles_n, j) >= n) break;
#pragma unroll
      for (int i = 0; i < tm; i += n_e) {
        const int first = row_map::x_of(row, args.tiles_m, i), n_left = m - first;
        const auto at = line + row_map::x_of(0, args.tiles_m, i);
        if (n_left <= 0) break;
        if (has_vectors && is_whole && n_left >= n_e) {
          sum_vector<Config> old{}, y;
          if (!scale.beta_zero) old = load_vector<Config>(at);
#pragma unroll
          for (int e = 0; e < n_e; e++) y.e[e] = scale(s.sum[i + e][j], conj, old.e[e]);
          store_vector<Config>(at, y);
        } else {
#pragma unroll
          for (int e = 0; e < n_e; e++)
            if (e < n_left) {
              const typename Config::sum old = scale.beta_zero ? typename Config::sum{} : load_element<Config>(at + e);
              store_element<Config>(at + e, scale(s.sum[i + e][j], conj, old));
            }
        }
      }
      line = line + (column_map::is_along_k || (j + 1) % vec ? to_next : to_vector);
    }
  }

  template <class Where>
  static __device__ __forceinline__ void run(const ws_small_args &args, const char *a, const char *b, int row, int col,
                                             const Where &where) {
    small_sums<Config> s;
    s.clear();
    if (args.by_vectors)
      s.template run<true>(args, a, b, row, col);
    else
      s.template run<false>(args, a, b, row, col);
    store(args, s, where, row, col);
  }
};

/* PLACES: small_strides, or ws_small_places, which has a pointer to each matrix. */
struct small_strides {};
template <class Product, class Config, class Places> struct small_kernel {
  static constexpr bool has_places = std::is_same_v<Places, ws_small_places>;
  using small_load = ws::small_load<(Product::owner_threads > 1), has_places>;
  const ws_small_args &args;
  const Places &places;
  char *shared;
  uint64_t *full; /* of each stage: what bulk copies bring has come */

  __device__ __forceinline__ int size_of(int item) const { return min(args.n_together, args.n_batch - item * args.n_together); }

  __device__ __forceinline__ void bring(const small_load &a, const small_load &b, int item, int stage) const {
    const int first = item * args.n_together, n = size_of(item);
    const uint32_t to = shared_address(shared) + uint32_t(stage * args.stage), barrier = shared_address(full + stage);
    if (threadIdx.x == 0 && (args.a.is_raw || args.b.is_raw))
      mbarrier_arrive_expect_tx(barrier, a.bulk_bytes(first, n) + b.bulk_bytes(first, n));
    a.copy(to, first, n, barrier), b.copy(to + uint32_t(args.b_at), first, n, barrier);
  }

  __device__ __forceinline__ small_load load_of(const ws_operand &operand, const ws_small_operand &of_item, bool is_a) const {
    if constexpr (has_places)
      return small_load(is_a ? places.a : places.b, of_item);
    else
      return small_load(operand, of_item);
  }
  /* For Product: C of a matrix, asked for when its sums are there. */
  struct of_matrix {
    const small_kernel &kernel;
    int batch;
    __device__ __forceinline__ c_pointer<Config> c() const { return kernel.c_of_matrix(batch); }
    __device__ __forceinline__ bool is_whole(const c_pointer<Config> &c) const { return kernel.is_whole(c); }
  };
  __device__ __forceinline__ c_pointer<Config> c_of_matrix(int batch) const {
    if constexpr (!has_places)
      return c_of<Config>(args.gemm) + batch * args.gemm.stride_c;
    else if constexpr (is_half<Config>)
      return {static_cast<unsigned char *>(places.c[batch]), args.gemm.type_c};
    else
      return static_cast<typename Config::sum *>(places.c[batch]);
  }
  __device__ __forceinline__ bool is_whole(const c_pointer<Config> &c) const {
    if constexpr (!has_places)
      return args.gemm.c_vectors;
    else if constexpr (is_half<Config>)
      return args.gemm.c_vectors && reinterpret_cast<uintptr_t>(c.at) % copy_bytes == 0;
    else
      return args.gemm.c_vectors && reinterpret_cast<uintptr_t>(c) % copy_bytes == 0;
  }

  __device__ __forceinline__ void run() const {
    const small_load a = load_of(args.gemm.a, args.a, true), b = load_of(args.gemm.b, args.b, false);
    const uint32_t owner = threadIdx.x / Product::owner_threads;
    const int matrix = int(ws_divide(owner, &args.by_tiles)), tile = int(owner) - matrix * int(args.by_tiles.d);
    const int col = int(ws_divide(uint32_t(tile), &args.by_tiles_m)), row = tile - col * args.tiles_m;
    const int n_items = int(args.gemm.sched.n_items);
    const bool has_bulk = args.a.is_raw || args.b.is_raw;
    if (has_bulk) {
      if (threadIdx.x == 0) {
        mbarrier_init(full, 1), mbarrier_init(full + 1, 1);
        fence_proxy_async_shared();
      }
      __syncthreads();
    }
    uint32_t parity = 0;
    int item = -1, next = int(sched_fixed::first()), stage = 1;
#pragma unroll 1
    while (true) {
      if (next < n_items) bring(a, b, next, stage ^ 1);
      cp_async_commit();
      if (item >= 0) {
        const int first = item * args.n_together;
        const char *const at = shared + stage * args.stage;
        cp_async_wait<1>();
        if (has_bulk) mbarrier_wait<barrier_scope::cta>(shared_address(full + stage), parity);
        __syncthreads();
        if (matrix < size_of(item))
          Product::run(args, at + a.before(first) + matrix * args.a.matrix,
                       at + args.b_at + b.before(first) + matrix * args.b.matrix, row, col, of_matrix{*this, first + matrix});
        __syncthreads();
        parity ^= uint32_t(stage);
      }
      if (next >= n_items) return;
      item = next, next = int(sched_fixed::after(uint32_t(next))), stage ^= 1;
    }
  }
};

} // namespace ws
#endif
