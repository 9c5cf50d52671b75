/* small_mma.cuh - a warp's tile of a small product of 16-bit elements, TM x TN of C, from shared memory, by
 * mma.sync: steps of 16 k in order, each a sum of the tensor cores.
 *
 * The instruction's rows are C's columns, and its columns C's rows: so a lane has neighbours in a column
 * of C. Operands come by ldmatrix, from lines that begin at multiples of 16 bytes and have zeros up to a
 * whole step of k; raw ones by elements. */
#ifndef WS_CUDA_SMALL_MMA_CUH
#define WS_CUDA_SMALL_MMA_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/ptx/copy.cuh"
#include "cuda/ptx/mma16.cuh"
#include "cuda/rows/small_config.cuh"
#include "cuda/shared/small_args.h"

namespace ws {

/* 16 x of an operand for a step of k: as four matrices, of which 1 has the next 8 x (IS_ROWS) or the next 8 k, 2 the other ones. */
template <bool ALONG_K, bool IS_ROWS> struct small_fragment {
  const char *matrix;
  const ws_small_operand &op;
  int size, n_k;

  __device__ __forceinline__ void load(uint32_t (&to)[4], int x_first, int k_first) const {
    const int lane = int(threadIdx.x) % 32, in = lane % 8, first = lane / 8 % 2 * 8, second = lane / 16 * 8;
    const int x8 = x_first + (IS_ROWS ? first : second), k8 = k_first + (IS_ROWS ? second : first);
    const uint32_t base = shared_address(matrix);
    if constexpr (ALONG_K)
      ldmatrix_x4(to, base + uint32_t(min(x8 + in, size - 1) * op.pitch + k8 * 2));
    else
      ldmatrix_x4_trans(to, base + uint32_t((k8 + in) * op.pitch + min(x8, (size - 1) / 8 * 8) * 2));
  }

  __device__ __forceinline__ uint32_t element(int x, int k) const {
    if (k >= n_k) return 0;
    const int at = min(x, size - 1);
    return *reinterpret_cast<const uint16_t *>(matrix + (ALONG_K ? at * op.pitch + k * 2 : k * op.pitch + at * 2));
  }

  __device__ __forceinline__ void load_elements(uint32_t (&to)[4], int x_first, int k_first) const {
    const int g = int(threadIdx.x) % 32 / 4, k = k_first + int(threadIdx.x) % 4 * 2;
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int x = x_first + g + (IS_ROWS ? i % 2 : i / 2) * 8, k_i = k + (IS_ROWS ? i / 2 : i % 2) * 8;
      to[i] = element(x, k_i) | element(x, k_i + 1) << 16;
    }
  }
};

template <class Config> struct small_by_warp {
  static_assert(Config::tm % 16 == 0 && Config::tn % 16 == 0, "ldmatrix brings 16 lines at a time");
  static constexpr int owner_threads = 32, n_p = Config::tn / 16, n_q = Config::tm / 8;
  using sums = float[n_p][n_q][4];

  template <bool BY_ELEMENTS>
  static __device__ __forceinline__ void multiply(const ws_small_args &args, const char *a, const char *b, int m_first,
                                                  int n_first, sums &sum) {
    const int n_k = int(args.gemm.k);
    const small_fragment<Config::b_k, true> p = {b, args.b, int(args.gemm.n), n_k};
    const small_fragment<Config::a_k, false> q = {a, args.a, int(args.gemm.m), n_k};
#pragma unroll 1
    for (int k = 0; k < n_k; k += mma16_k) {
      uint32_t of_p[n_p][4], of_q[n_q / 2][4];
#pragma unroll
      for (int i = 0; i < n_p; i++)
        BY_ELEMENTS ? p.load_elements(of_p[i], n_first + 16 * i, k) : p.load(of_p[i], n_first + 16 * i, k);
#pragma unroll
      for (int j = 0; j < n_q / 2; j++)
        BY_ELEMENTS ? q.load_elements(of_q[j], m_first + 16 * j, k) : q.load(of_q[j], m_first + 16 * j, k);
#pragma unroll
      for (int i = 0; i < n_p; i++)
#pragma unroll
        for (int j = 0; j < n_q; j++)
          mma16<typename Config::type>(sum[i][j], of_p[i], of_q[j / 2][j % 2 * 2], of_q[j / 2][j % 2 * 2 + 1]);
    }
  }

  static __device__ __forceinline__ uint32_t packed(float first, float second) {
    return std::is_same_v<typename Config::type, type_h> ? f16x2_of(first, second) : bf16x2_of(first, second);
  }

  /* alpha * sum of C of the operands' type, columns aligned: lanes side by side exchange halves, so that each has four rows, and the
   * four of a column 32 bytes of it. */
  static __device__ __forceinline__ void store_fours(const ws_small_args &args, const sums &sum, const half_c &c, int m_first,
                                                     int n_first) {
    const ws_gemm_args &g = args.gemm;
    const float alpha = g.alpha.s[0];
    const int m = int(g.m), n = int(g.n), t = int(threadIdx.x) % 4, row = m_first + t / 2 * 4 + t % 2 * 8;
    int column = n_first + int(threadIdx.x) % 32 / 4;
    uint16_t *line = reinterpret_cast<uint16_t *>(c.at) + (column * g.ldc + row);
#pragma unroll
    for (int i = 0; i < 2 * n_p; i++, column += 8, line += 8 * g.ldc)
#pragma unroll
      for (int j = 0; j < n_q; j += 2) {
        const float(&low)[4] = sum[i / 2][j], (&high)[4] = sum[i / 2][j + 1];
        const int e = i % 2 * 2;
        const uint32_t first = packed(alpha * low[e], alpha * low[e + 1]), second = packed(alpha * high[e], alpha * high[e + 1]);
        const uint32_t other = __shfl_xor_sync(~0u, t % 2 ? first : second, 1);
        const uint2 four = t % 2 ? make_uint2(other, second) : make_uint2(first, other);
        const int n_left = column < n ? m - (row + 8 * j) : 0;
        if (n_left >= 4) {
          *reinterpret_cast<uint2 *>(line + 8 * j) = four;
        } else {
          if (n_left > 0) line[8 * j] = uint16_t(four.x);
          if (n_left > 1) line[8 * j + 1] = uint16_t(four.x >> 16);
          if (n_left > 2) line[8 * j + 2] = uint16_t(four.y);
        }
      }
  }

  /* Of any C. */
  static __device__ __forceinline__ void store_any(const ws_small_args &args, const sums &sum, const half_c &c, int m_first,
                                                   int n_first) {
    const ws_gemm_args &args_c = args.gemm;
    const scaling<Config> scale(args_c);
    const int m = int(args_c.m), n = int(args_c.n), g = int(threadIdx.x) % 32 / 4, t = int(threadIdx.x) % 4;
#pragma unroll
    for (int i = 0; i < 2 * n_p; i++) {
      const int column = n_first + 8 * i + g;
      if (column >= n) break;
      const half_c line = c + column * args_c.ldc;
#pragma unroll
      for (int j = 0; j < n_q; j++) {
        const int row = m_first + 8 * j + 2 * t;
        const half_c at = line + row;
#pragma unroll
        for (int e = 0; e < 2; e++)
          if (row + e < m) (at + e).store(scale(sum[i / 2][j][i % 2 * 2 + e], scale.beta_zero ? 0 : (at + e).load()));
      }
    }
  }

  /* where: as small_by_thread's. */
  template <class Where>
  static __device__ __forceinline__ void run(const ws_small_args &args, const char *a, const char *b, int row, int col,
                                             const Where &where) {
    const int m_first = row * Config::tm, n_first = col * Config::tn;
    sums sum = {};
    if (args.by_vectors)
      multiply<false>(args, a, b, m_first, n_first, sum);
    else
      multiply<true>(args, a, b, m_first, n_first, sum);
    constexpr int own_type = std::is_same_v<typename Config::type, type_h> ? WS_HALF_C_F16 : WS_HALF_C_BF16;
    const half_c c = where.c();
    if (where.is_whole(c) && args.gemm.beta_zero && args.gemm.type_c == own_type)
      store_fours(args, sum, c, m_first, n_first);
    else
      store_any(args, sum, c, m_first, n_first);
  }
};

} // namespace ws
#endif
