/* outer_sums.cuh - a thread's sums in gemm_outer.cuh, each one chain of multiply-adds in the order of k:
 * of complex numbers re += re re, then - im im; im += re im, then + im re.
 *
 * Lanes are neighbours along m, so that reads of A meet all banks and stores of C fill sectors, whatever ldc;
 * a warp has all rows of the item. Elements of B are the same for all of a thread's neighbours. What binds is
 * what comes from shared memory, 128 bytes a cycle of an SM, whether lanes read the same or not: so tm and tn are
 * alike. While one k is multiplied the next one is read. */
#ifndef WS_CUDA_OUTER_SUMS_CUH
#define WS_CUDA_OUTER_SUMS_CUH
#include "cuda/mainloop/outer_load.cuh"

namespace ws {

template <class Config> struct outer_sums {
  static constexpr int unit = Config::unit, tm = Config::tm, tn = Config::tn, lanes = Config::lanes;
  float sum[tn][tm][unit];

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % lanes; }
  static __device__ __forceinline__ int first_column() { return int(threadIdx.x) / lanes * tn; }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int j = 0; j < tn; j++)
#pragma unroll
      for (int i = 0; i < tm; i++)
#pragma unroll
        for (int u = 0; u < unit; u++) sum[j][i][u] = 0;
  }

  struct fragments {
    float a[tm][unit], b[tn * unit];

    /* Of the k whose lines begin there, this thread's elements. */
    __device__ __forceinline__ void read(const float *of_a, const float *of_b, uint32_t sign_a) {
#pragma unroll
      for (int i = 0; i < tm; i++) {
        if constexpr (unit == 2) {
          const float2 x = *reinterpret_cast<const float2 *>(of_a + lanes * i * unit);
          a[i][0] = x.x, a[i][1] = __uint_as_float(__float_as_uint(x.y) ^ sign_a);
        } else {
          a[i][0] = of_a[lanes * i];
        }
      }
#pragma unroll
      for (int j = 0; j < tn * unit; j += 4) {
        const float4 x = *reinterpret_cast<const float4 *>(of_b + j);
        b[j] = x.x, b[j + 1] = x.y, b[j + 2] = x.z, b[j + 3] = x.w;
      }
    }
  };

  __device__ __forceinline__ void add(const fragments &f) {
#pragma unroll
    for (int j = 0; j < tn; j++) {
#pragma unroll
      for (int i = 0; i < tm; i++)
#pragma unroll
        for (int u = 0; u < unit; u++) sum[j][i][u] = fmaf(f.a[i][0], f.b[j * unit + u], sum[j][i][u]);
      if constexpr (unit == 2)
#pragma unroll
        for (int i = 0; i < tm; i++) {
          sum[j][i][0] = fmaf(-f.a[i][1], f.b[j * 2 + 1], sum[j][i][0]);
          sum[j][i][1] = fmaf(f.a[i][1], f.b[j * 2], sum[j][i][1]);
        }
    }
  }

  /* A block of n_k, of whose last k there may be zeros. Behind it something is read, and not used. */
  __device__ __forceinline__ void add_block(const unsigned char *stage, int n_k, uint32_t sign_a) {
    constexpr int line_a = Config::a_line, line_b = Config::b_line;
    const float *a = reinterpret_cast<const float *>(stage) + lane() * unit;
    const float *b = reinterpret_cast<const float *>(stage + Config::a_bytes) + first_column() * unit;
    fragments even, odd;
    even.read(a, b, sign_a);
#pragma unroll 1
    for (int left = n_k; left > 0; left -= 2) {
      odd.read(a + line_a, b + line_b, sign_a);
      add(even);
      a += 2 * line_a, b += 2 * line_b;
      even.read(a, b, sign_a);
      add(odd);
    }
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
