/* column_store.cuh - stores columns of C from partial sums in shared memory: those of a block's groups of warps, and of the blocks of a
 * cluster (k_parts.cuh). For items of which every element inside C is wanted. */
#ifndef WS_CUDA_COLUMN_STORE_CUH
#define WS_CUDA_COLUMN_STORE_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/mainloop/k_parts.cuh"

namespace ws {

/* N neighbours of a column, by 16 bytes where they may be. */
template <class Config, int N>
__device__ __forceinline__ void load_neighbours(const ws_gemm_args &args, typename Config::sum (&x)[N],
                                                const typename Config::sum *c) {
  if constexpr (N * sizeof(x[0]) == copy_bytes) {
    if (N > 1 || args.c_vectors) {
      const sum_vector<Config> all = load_vector<Config>(c);
#pragma unroll
      for (int e = 0; e < N; e++) x[e] = all.e[e];
      return;
    }
  }
  x[0] = load_element<Config>(c);
}
template <class Config, int N>
__device__ __forceinline__ void store_neighbours(const ws_gemm_args &args, typename Config::sum *c,
                                                 const typename Config::sum (&x)[N]) {
  if constexpr (N * sizeof(x[0]) == copy_bytes) {
    if (N > 1 || args.c_vectors) {
      sum_vector<Config> all;
#pragma unroll
      for (int e = 0; e < N; e++) all.e[e] = x[e];
      return store_vector<Config>(c, all);
    }
  }
  store_element<Config>(c, x[0]);
}

/* Stores this block's columns of an item (IS_ALONE: the block shares the item with no other). A thread stores N_E neighbours of a column,
 * in several columns at a time. at: the item's place; sums: address in shared memory of the first sum; wait(): returns when all sums are
 * there, and is called behind the first loads of C; make(x, old, y): computes y from N_E sums and the old elements of C, and returns
 * false where these must not be stored. Returns whether all elements are stored. */
template <class Config, int N_E, bool IS_ALONE, class Place, class Wait, class Make>
__device__ __forceinline__ bool store_columns(const ws_gemm_args &args, const Place &at, uint32_t sums, Wait wait, Make make) {
  using number = typename Config::sum;
  using real = typename Config::real;
  constexpr int along = Config::bm / N_E, step = Config::n_consuming / along, width = N_E * Config::unit,
                registers = Config::k_groups * width * int(sizeof(real) / 4),
                at_once = columns_at_once(Config::bn / step, IS_ALONE ? registers : 4 * registers);
  static_assert(Config::n_consuming % along == 0, "threads step over whole columns");
  static_assert(step >= Config::bn || Config::bn % (step * at_once) == 0, "columns that do not exist lie in shared memory");
  const k_sharers sharers = at.sharers;
  const int i = int(threadIdx.x % along) * N_E, n_j = at.m + i < int(args.m) ? int(ws_min(Config::bn, args.n - at.n)) : 0;
  const int first = IS_ALONE ? 0 : sharers.first_column(), end = IS_ALONE ? n_j : min(n_j, first + sharers.columns),
            j_first = first + int(threadIdx.x / along);
  const int64_t step_c = step * args.ldc;
  number *c = c_of<Config>(args) + at.batch * args.stride_c + (at.n + j_first) * args.ldc + at.m + i;
  uint32_t from = sums + uint32_t(j_first * Config::sum_pitch_bytes + i * int(sizeof(number)));
  const bool reads_c = !args.beta_zero;
  number old[at_once][N_E] = {};
  const auto ask = [&](int j) {
#pragma unroll
    for (int u = 0; u < at_once; u++)
      if (j + u * step < end) load_neighbours<Config>(args, old[u], c + u * step_c);
  };
  if (reads_c) ask(j_first);
  wait();
  bool is_done = true;
#pragma unroll 1
  for (int j = j_first; j < end;) {
    real x[at_once][width];
    sharers.template add_columns<Config::k_groups, IS_ALONE>(
        x, [&](int group, int u) { return from + uint32_t((group * Config::bn + u * step) * Config::sum_pitch_bytes); },
        [&](int u) { return j + u * step < end; });
#pragma unroll
    for (int u = 0; u < at_once; u++) {
      number y[N_E];
      const bool is_there = j + u * step < end, is_good = make(x[u], old[u], y);
      if (is_there && is_good) store_neighbours<Config>(args, c + u * step_c, y);
      is_done &= is_good || !is_there;
    }
    j += at_once * step, c += at_once * step_c, from += uint32_t(at_once * step * Config::sum_pitch_bytes);
    if (reads_c) ask(j);
  }
  return is_done;
}

} // namespace ws
#endif
