/* outer_sums.cuh - a thread's sums in gemm_outer.cuh, each one chain of multiply-adds in the order of k:
 * of complex numbers re += re re, then - im im; im += re im, then + im re.
 *
 * A warp has all rows of the item and tn columns of its own. Lanes are neighbours along m, so that reads
 * of A meet all banks and stores of C fill sectors, whatever ldc; elements of B are the same for all
 * lanes. A k-contiguous B is read for as many k at a time as 16 bytes have. */
#ifndef WS_CUDA_OUTER_SUMS_CUH
#define WS_CUDA_OUTER_SUMS_CUH
#include "cuda/mainloop/outer_load.cuh"

namespace ws {

template <class Config> struct outer_sums {
  static constexpr int unit = Config::unit, tm = Config::tm, tn = Config::tn, bk = Config::bk, k_at_once = 4 / unit;
  float sum[tn][tm][unit];

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  static __device__ __forceinline__ int first_column() { return int(threadIdx.x) / 32 * tn; }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int j = 0; j < tn; j++)
#pragma unroll
      for (int i = 0; i < tm; i++)
#pragma unroll
        for (int u = 0; u < unit; u++) sum[j][i][u] = 0;
  }

  /* One column, one k. */
  __device__ __forceinline__ void add(int j, const float (&a)[tm][unit], const float *b) {
#pragma unroll
    for (int i = 0; i < tm; i++)
#pragma unroll
      for (int u = 0; u < unit; u++) sum[j][i][u] = fmaf(a[i][0], b[u], sum[j][i][u]);
    if constexpr (unit == 2)
#pragma unroll
      for (int i = 0; i < tm; i++) {
        sum[j][i][0] = fmaf(-a[i][1], b[1], sum[j][i][0]);
        sum[j][i][1] = fmaf(a[i][1], b[0], sum[j][i][1]);
      }
  }

  /* N k from `a`, this lane's first element, and `b`, the warp's first one, on. */
  template <int N> __device__ __forceinline__ void step(const float *a, const float *b, uint32_t sign_a) {
    float of_a[N][tm][unit];
#pragma unroll
    for (int q = 0; q < N; q++)
#pragma unroll
      for (int i = 0; i < tm; i++) {
        const float *const at = Config::a_k ? a + 32 * i * Config::a_line + q * unit : a + q * Config::a_line + 32 * i * unit;
        if constexpr (unit == 2) {
          const float2 x = *reinterpret_cast<const float2 *>(at);
          of_a[q][i][0] = x.x, of_a[q][i][1] = __uint_as_float(__float_as_uint(x.y) ^ sign_a);
        } else {
          of_a[q][i][0] = *at;
        }
      }
    if constexpr (Config::b_k) {
#pragma unroll
      for (int j = 0; j < tn; j++) {
        float of_b[N * unit];
        read<N * unit>(b + j * Config::b_line, of_b);
#pragma unroll
        for (int q = 0; q < N; q++) add(j, of_a[q], of_b + q * unit);
      }
    } else {
#pragma unroll
      for (int q = 0; q < N; q++)
#pragma unroll
        for (int j = 0; j < tn; j += k_at_once) {
          float of_b[4];
          read<4>(b + q * Config::b_line + j * unit, of_b);
#pragma unroll
          for (int e = 0; e < k_at_once; e++) add(j + e, of_a[q], of_b + e * unit);
        }
    }
  }
  template <int N> static __device__ __forceinline__ void read(const float *from, float (&x)[N]) {
    if constexpr (N == 4) {
      const float4 y = *reinterpret_cast<const float4 *>(from);
      x[0] = y.x, x[1] = y.y, x[2] = y.z, x[3] = y.w;
    } else {
#pragma unroll
      for (int e = 0; e < N; e++) x[e] = from[e];
    }
  }

  /* A block of n_k. */
  __device__ __forceinline__ void add_block(const unsigned char *stage, int n_k, uint32_t sign_a) {
    constexpr int step_a = Config::a_k ? unit : Config::a_line, step_b = Config::b_k ? unit : Config::b_line;
    const float *a = reinterpret_cast<const float *>(stage) + lane() * (Config::a_k ? Config::a_line : unit);
    const float *b = reinterpret_cast<const float *>(stage + Config::a_bytes) +
                     first_column() * (Config::b_k ? Config::b_line : unit);
#pragma unroll 1
    for (int left = n_k / k_at_once; left > 0; left--, a += k_at_once * step_a, b += k_at_once * step_b)
      step<k_at_once>(a, b, sign_a);
#pragma unroll 1
    for (int left = n_k % k_at_once; left > 0; left--, a += step_a, b += step_b) step<1>(a, b, sign_a);
  }

  __device__ __forceinline__ typename Config::sum number(int i, int j, uint32_t sign) const {
    if constexpr (unit == 2)
      return {sum[j][i][0], __uint_as_float(__float_as_uint(sum[j][i][1]) ^ sign)};
    else
      return sum[j][i][0];
  }
};

} // namespace ws
#endif
