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

namespace ws {

/* Tiles of threads, by multiply-adds. */
template <class Config> struct small_by_thread {
  static constexpr int owner_threads = 1, tm = Config::tm, tn = Config::tn, vec = Config::vec;
  using row_map = small_operand<Config, tm, Config::a_k>;
  using column_map = small_operand<Config, tn, Config::b_k>;

  template <bool WIDE>
  static __device__ __forceinline__ void store(const ws_small_args &args, const small_sums<Config> &s, bool wide_columns, int64_t batch,
                                               int row, int col) {
    const ws_gemm_args &g = args.gemm;
    const scaling<Config> scale(g);
    const conjugation conj = {g.a.conj != 0, g.b.conj != 0};
    const c_pointer<Config> c = c_of<Config>(g) + batch * g.stride_c;
    const int m = int(g.m), n = int(g.n);
#pragma unroll
    for (int j = 0; j < tn; j++) {
      const int column = column_map::x_of(wide_columns, col, args.tiles_n, j);
      if (column >= n) continue;
#pragma unroll
      for (int i = 0; i < tm; i += WIDE ? vec : 1) {
        const int first = row_map::x_of(WIDE, row, args.tiles_m, i);
        if (first >= m) continue;
        const auto at = c + (column * g.ldc + first);
        if constexpr (WIDE) {
          if (g.c_vectors && first + vec <= m) {
            sum_vector<Config> old{}, y;
            if (!scale.beta_zero) old = load_vector<Config>(at);
#pragma unroll
            for (int e = 0; e < vec; e++) y.e[e] = scale(s.sum[i + e][j], conj, old.e[e]);
            store_vector<Config>(at, y);
            continue;
          }
        }
#pragma unroll
        for (int e = 0; e < (WIDE ? vec : 1); e++)
          if (first + e < m) {
            const typename Config::sum old = scale.beta_zero ? typename Config::sum{} : load_element<Config>(at + e);
            store_element<Config>(at + e, scale(s.sum[i + e][j], conj, old));
          }
      }
    }
  }

  static __device__ __forceinline__ void run(const ws_small_args &args, const char *a, const char *b, int row, int col, int64_t batch) {
    small_sums<Config> s;
    s.clear();
    const bool is_wide = args.by_vectors;
    if (is_wide)
      s.run_vectors(args, a, b, row, col);
    else
      s.run_elements(args, a, b, row, col);
    const bool wide_columns = is_wide && column_map::is_wide;
    if (is_wide && row_map::is_wide)
      store<true>(args, s, wide_columns, batch, row, col);
    else
      store<false>(args, s, wide_columns, batch, row, col);
  }
};

template <class Product> struct small_kernel {
  const ws_small_args &args;
  char *shared;

  __device__ __forceinline__ int size_of(int item) const {
    return int(ws_min(args.n_together, args.gemm.grid.n_batch - int64_t(item) * args.n_together));
  }

  __device__ __forceinline__ void run() const {
    const small_load a(args.gemm.a, args.a), b(args.gemm.b, args.b);
    const int tiles = args.tiles_m * args.tiles_n, owner = int(threadIdx.x) / Product::owner_threads,
              matrix = owner / tiles, tile = owner % tiles;
    const int row = tile % args.tiles_m, col = tile / args.tiles_m, n_items = int(args.gemm.sched.n_items);
    const auto bring = [&](int item, int stage) {
      const uint32_t to = shared_address(shared) + uint32_t(stage * args.stage);
      const int64_t first = int64_t(item) * args.n_together;
      a.copy(to, first, size_of(item)), b.copy(to + uint32_t(args.b_at), first, size_of(item));
    };
    int item = int(blockIdx.x), stage = 0;
    if (item < n_items) bring(item, stage);
    cp_async_commit();
#pragma unroll 1
    for (; item < n_items; item += int(gridDim.x), stage ^= 1) {
      const int next = item + int(gridDim.x);
      if (next < n_items) bring(next, stage ^ 1);
      cp_async_commit();
      cp_async_wait<1>();
      __syncthreads();
      const int64_t first = int64_t(item) * args.n_together;
      const char *const at = shared + stage * args.stage;
      if (matrix < size_of(item))
        Product::run(args, at + a.before(first) + matrix * args.a.matrix, at + args.b_at + b.before(first) + matrix * args.b.matrix,
                     row, col, first + matrix);
      __syncthreads();
    }
  }
};

} // namespace ws
#endif
