/* small_sums.cuh - a thread's sums of a small product, TM x TN of C, from shared memory: one chain of
 * multiply-adds over k for each element, in order, whatever its size and place.
 *
 * A thread's lines are those of its tile, 2 tiles, .. on, so that neighbouring threads read neighbouring
 * ones; of an operand that is read by vectors along m or n (is_wide) it has whole vectors so. Beyond the last line
 * it reads that once more, and beyond the end of one what stands there: neither is stored. */
#ifndef WS_CUDA_SMALL_SUMS_CUH
#define WS_CUDA_SMALL_SUMS_CUH
#include "cuda/ptx/convert.cuh"
#include "cuda/rows/small_config.cuh"
#include "cuda/shared/products.cuh"

namespace ws {

/* x: along m or n. N: a thread's x. */
template <class Config, int N, bool ALONG_K> struct small_operand {
  using element = typename Config::element;
  using sum = typename Config::sum;
  static constexpr int vec = Config::vec, bytes = int(sizeof(element));
  struct alignas(vec * bytes) vector {
    element e[vec];
  };

  static __device__ __forceinline__ sum widened(element x) {
    if constexpr (std::is_same_v<typename Config::type, type_h>)
      return float_of_f16(x);
    else if constexpr (std::is_same_v<typename Config::type, type_b>)
      return float_of_bf16(x);
    else
      return x;
  }

  /* Number i of the thread's x. */
  static __device__ __forceinline__ int x_of(bool is_wide, int tile, int n_tiles, int i) {
    return is_wide ? (tile + n_tiles * (i / vec)) * vec + i % vec : tile + n_tiles * i;
  }

  /* By vectors. */
  static constexpr bool is_wide = !ALONG_K;
  static constexpr int n_at = ALONG_K ? N : N / vec;
  const char *at[n_at]; /* of k = 0 */
  int pitch;

  __device__ __forceinline__ small_operand(const char *matrix, const ws_small_operand &op, int tile, int n_tiles, int size) {
    pitch = op.pitch;
#pragma unroll
    for (int i = 0; i < n_at; i++) {
      const int x = tile + n_tiles * i;
      at[i] = matrix + (ALONG_K ? min(x, size - 1) * op.pitch : min(x, (size - 1) / vec) * vec * bytes);
    }
  }

  template <int STEP> __device__ __forceinline__ void load(sum (&to)[STEP][N], int k) const {
#pragma unroll
    for (int i = 0; i < n_at; i++) {
      if constexpr (ALONG_K && STEP == 1) {
        to[0][i] = widened(*reinterpret_cast<const element *>(at[i] + k * bytes));
      } else if constexpr (ALONG_K) {
        static_assert(STEP == vec);
        const vector x = *reinterpret_cast<const vector *>(at[i] + k * bytes);
#pragma unroll
        for (int s = 0; s < STEP; s++) to[s][i] = widened(x.e[s]);
      } else {
#pragma unroll
        for (int s = 0; s < STEP; s++) {
          const vector x = *reinterpret_cast<const vector *>(at[i] + (k + s) * pitch);
#pragma unroll
          for (int e = 0; e < vec; e++) to[s][i * vec + e] = widened(x.e[e]);
        }
      }
    }
  }
};

/* The same by elements: of matrices as they are in memory. */
template <class Config, int N> struct small_elements {
  using element = typename Config::element;
  const char *at[N];
  int step_k;

  __device__ __forceinline__ small_elements(const char *matrix, const ws_small_operand &op, bool along_k, int tile, int n_tiles,
                                            int size) {
    const int bytes = int(sizeof(element)), step_x = along_k ? op.pitch : bytes;
    step_k = along_k ? bytes : op.pitch;
#pragma unroll
    for (int i = 0; i < N; i++) at[i] = matrix + min(tile + n_tiles * i, size - 1) * step_x;
  }

  __device__ __forceinline__ void load(typename Config::sum (&to)[1][N], int k) const {
#pragma unroll
    for (int i = 0; i < N; i++)
      to[0][i] = small_operand<Config, N, true>::widened(*reinterpret_cast<const element *>(at[i] + k * step_k));
  }
};

template <class Config> struct small_sums {
  static constexpr int tm = Config::tm, tn = Config::tn;
  products<Config> sum[tm][tn];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < tm; i++)
#pragma unroll
      for (int j = 0; j < tn; j++) sum[i][j].clear();
  }

  template <int STEP, class A, class B> __device__ __forceinline__ void add(const A &a, const B &b, int k) {
    typename Config::sum of_a[STEP][tm], of_b[STEP][tn];
    a.load(of_a, k), b.load(of_b, k);
#pragma unroll
    for (int s = 0; s < STEP; s++)
#pragma unroll
      for (int j = 0; j < tn; j++)
#pragma unroll
        for (int i = 0; i < tm; i++) sum[i][j].add(of_a[s][i], of_b[s][j]);
  }

  __device__ __forceinline__ void run_vectors(const ws_small_args &args, const char *a, const char *b, int row, int col) {
    const int n_k = int(args.gemm.k);
    const small_operand<Config, tm, Config::a_k> of_a(a, args.a, row, args.tiles_m, int(args.gemm.m));
    const small_operand<Config, tn, Config::b_k> of_b(b, args.b, col, args.tiles_n, int(args.gemm.n));
    int k = 0;
#pragma unroll 1
    for (; k + Config::k_step <= n_k; k += Config::k_step) add<Config::k_step>(of_a, of_b, k);
    if constexpr (Config::k_step > 1)
#pragma unroll 1
      for (; k < n_k; k++) add<1>(of_a, of_b, k);
  }

  __device__ __forceinline__ void run_elements(const ws_small_args &args, const char *a, const char *b, int row, int col) {
    const small_elements<Config, tm> of_a(a, args.a, Config::a_k, row, args.tiles_m, int(args.gemm.m));
    const small_elements<Config, tn> of_b(b, args.b, Config::b_k, col, args.tiles_n, int(args.gemm.n));
#pragma unroll 1
    for (int k = 0; k < int(args.gemm.k); k++) add<1>(of_a, of_b, k);
  }
};

} // namespace ws
#endif
