/* small_sums.cuh - a thread's sums of a small product, TM x TN of C, from shared memory: one chain of
 * multiply-adds over k for each element, in order, whatever its size and place.
 *
 * Of an operand that is contiguous along m or n a thread has whole vectors, neighbouring threads neighbouring
 * ones; of one that is contiguous along k it has lines, neighbouring threads neighbouring ones. Beyond the last line it
 * reads that once more, and beyond the end of one what stands there: neither is stored. */
#ifndef WS_CUDA_SMALL_SUMS_CUH
#define WS_CUDA_SMALL_SUMS_CUH
#include "cuda/mainloop/widened.cuh"
#include "cuda/rows/small_config.cuh"
#include "cuda/shared/products.cuh"
#include "cuda/shared/small_args.h"

namespace ws {

/* x: along m or n. N: a thread's x. IS_WIDE: by vectors; else by elements, of matrices as they are in memory. */
template <class Config, int N, bool ALONG_K, bool IS_WIDE> struct small_operand {
  using element = typename Config::element;
  using sum = typename Config::sum;
  static constexpr int vec = Config::vec, bytes = int(sizeof(element));
  static constexpr bool is_along_k = ALONG_K;
  struct alignas(IS_WIDE ? vec *bytes : bytes) vector {
    element e[vec];
  };

  /* Number i of the thread's x. */
  static __device__ __forceinline__ int x_of(int tile, int n_tiles, int i) {
    return ALONG_K ? tile + n_tiles * i : (tile + n_tiles * (i / vec)) * vec + i % vec;
  }

  static constexpr int n_at = ALONG_K ? N : N / vec;
  const char *at[n_at]; /* of k = 0: lines, or vectors */
  int pitch;

  __device__ __forceinline__ small_operand(const char *matrix, const ws_small_operand &op, int tile, int n_tiles, int size) {
    pitch = op.pitch;
#pragma unroll
    for (int i = 0; i < n_at; i++) {
      const int x = tile + n_tiles * i;
      at[i] = matrix + (ALONG_K ? min(x, size - 1) * pitch : min(x, (size - 1) / vec) * vec * bytes);
    }
  }

  /* The next STEP k. */
  template <int STEP> __device__ __forceinline__ void load(sum (&to)[STEP][N]) {
#pragma unroll
    for (int i = 0; i < n_at; i++) {
      if constexpr (ALONG_K && (STEP == 1 || !IS_WIDE)) {
#pragma unroll
        for (int s = 0; s < STEP; s++)
          to[s][i] = widened<typename Config::type>(*reinterpret_cast<const element *>(at[i] + s * bytes));
      } else if constexpr (ALONG_K) {
        static_assert(STEP == vec);
        const vector x = *reinterpret_cast<const vector *>(at[i]);
#pragma unroll
        for (int s = 0; s < STEP; s++) to[s][i] = widened<typename Config::type>(x.e[s]);
      } else {
#pragma unroll
        for (int s = 0; s < STEP; s++) {
          const vector x = *reinterpret_cast<const vector *>(at[i] + s * pitch);
#pragma unroll
          for (int e = 0; e < vec; e++) to[s][i * vec + e] = widened<typename Config::type>(x.e[e]);
        }
      }
      at[i] += STEP * (ALONG_K ? bytes : pitch);
    }
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

  template <int STEP, class A, class B> __device__ __forceinline__ void add(A &a, B &b) {
    typename Config::sum of_a[STEP][tm], of_b[STEP][tn];
    a.load(of_a), b.load(of_b);
#pragma unroll
    for (int s = 0; s < STEP; s++)
#pragma unroll
      for (int j = 0; j < tn; j++)
#pragma unroll
        for (int i = 0; i < tm; i++) sum[i][j].add(of_a[s][i], of_b[s][j]);
  }

  template <bool IS_WIDE>
  __device__ __forceinline__ void run(const ws_small_args &args, const char *a, const char *b, int row, int col) {
    constexpr int step = Config::k_step;
    const int n_k = int(args.gemm.k);
    small_operand<Config, tm, Config::a_k, IS_WIDE> of_a(a, args.a, row, args.tiles_m, int(args.gemm.m));
    small_operand<Config, tn, Config::b_k, IS_WIDE> of_b(b, args.b, col, args.tiles_n, int(args.gemm.n));
    int left = n_k;
#pragma unroll 1
    for (; left >= step; left -= step) add<step>(of_a, of_b);
    if constexpr (step > 1)
#pragma unroll 1
      for (; left > 0; left--) add<1>(of_a, of_b);
  }
};

} // namespace ws
#endif
