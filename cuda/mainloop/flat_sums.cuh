/* flat_sums.cuh - a warp's sums over its part of k of a flat product, by mma.sync (flat.def): the
 * large matrix is read once and goes straight to registers. A block of k has its loads on their way
 * at once; other warps' products hide their waiting.
 *
 * The order of summation follows from the row and k alone: blocks in turn to the parts, in each the
 * steps in order; the first halves of these and the second ones have sums of their own, which are
 * added last (flat_load.cuh). */
#ifndef WS_CUDA_FLAT_SUMS_CUH
#define WS_CUDA_FLAT_SUMS_CUH
#include "cuda/mainloop/flat_load.cuh"
#include "cuda/ptx/mma16.cuh"
#include "cuda/rows/flat_config.cuh"

namespace ws {

/* A_K, B_K: the operand is contiguous along k. */
template <class Config, bool A_K, bool B_K> struct flat_sums {
  static constexpr bool matrix_k = Config::matrix_is_a ? A_K : B_K, few_k = Config::matrix_is_a ? B_K : A_K;
  using matrix = flat_matrix<Config::x_pieces, matrix_k>;
  using few = flat_few<Config::y_pieces, few_k>;

  /* of each half of the steps by itself */
  static constexpr int n_fragments = matrix::n_fragments;
  float sum[2][Config::x_pieces][n_fragments][Config::y_pieces][4];

  static __device__ __forceinline__ void group_sync() { __syncwarp(); }

  /* part: of Config::n_parts */
  __device__ __forceinline__ void run(const ws_gemm_args &args, int64_t batch, int64_t m_first, int64_t n_first, int part,
                                      uint32_t) {
    const matrix x(Config::matrix_is_a ? args.a : args.b, batch, Config::matrix_is_a ? m_first : n_first,
                   Config::matrix_is_a ? args.m : args.n);
    const few y(Config::matrix_is_a ? args.b : args.a, batch, Config::matrix_is_a ? n_first : m_first,
                Config::matrix_is_a ? args.n : args.m);
    float *all = &sum[0][0][0][0][0];
#pragma unroll
    for (int i = 0; i < int(sizeof sum / sizeof *all); i++) all[i] = 0;
    const bool is_wide = x.is_wide && y.is_wide;
#pragma unroll 1
    for (int64_t k = int64_t(part) * Config::bk; k < args.k; k += Config::n_parts * Config::bk)
      if (is_wide && k + Config::bk <= args.k)
        add_block(x, y, k);
      else
        add_single(x, y, k, int(ws_min(Config::bk, args.k - k)));
  }

  /* Where the group's sums are, columns of C. */
  __device__ __forceinline__ void store(float *to) const {
#pragma unroll
    for (int p = 0; p < Config::x_pieces; p++)
#pragma unroll
      for (int f = 0; f < n_fragments; f++)
#pragma unroll
        for (int t = 0; t < Config::y_pieces; t++)
#pragma unroll
          for (int i = 0; i < 4; i++) {
            /* with k contiguous the other half's is the lane's of row g + 1 */
            const float other = matrix_k ? __shfl_down_sync(~0u, sum[1][p][f][t][i], 4) : sum[1][p][f][t][i];
            const int x = 32 * p + matrix::x_of(f) + i / 2 * matrix::x_apart, y = 8 * t + 2 * flat_q() + i % 2;
            if (!matrix_k || flat_g() % 2 == 0)
              to[Config::matrix_is_a ? y * Config::sum_pitch + x : x * Config::sum_pitch + y] = sum[0][p][f][t][i] + other;
          }
  }

private:
  __device__ __forceinline__ void multiply(const typename matrix::registers &x, const typename few::registers &y) {
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
      for (int second = 0; second < 2; second++)
#pragma unroll
        for (int p = 0; p < Config::x_pieces; p++)
#pragma unroll
          for (int f = 0; f < n_fragments; f++) {
            uint32_t a[4];
            matrix::fragment(a, x[p], half, second, f);
#pragma unroll
            for (int t = 0; t < Config::y_pieces; t++)
              mma16<typename Config::type>(sum[half][p][f][t], a, y[half][t][2 * second], y[half][t][2 * second + 1]);
          }
  }

  /* With x contiguous it is the addresses that would take the registers of a second step. */
  static constexpr int at_once = matrix_k ? Config::n_steps : 1;

  __device__ __forceinline__ void add_block(const matrix &x, const few &y, int64_t k) {
#pragma unroll 1
    for (int first = 0; first < Config::n_steps; first += at_once) {
      typename matrix::registers of_x[at_once];
      typename few::registers of_y[at_once];
#pragma unroll
      for (int s = 0; s < at_once; s++) x.load(of_x[s], k + (first + s) * Config::step);
#pragma unroll
      for (int s = 0; s < at_once; s++) y.load(of_y[s], k + (first + s) * Config::step);
#pragma unroll
      for (int s = 0; s < at_once; s++) multiply(of_x[s], of_y[s]);
    }
  }

  /* n_k: of the block, at most */
  __device__ __forceinline__ void add_single(const matrix &x, const few &y, int64_t k, int n_k) {
#pragma unroll 1
    for (int first = 0; first < n_k; first += Config::step) {
      typename matrix::registers of_x;
      typename few::registers of_y;
      x.load_single(of_x, k + first, n_k - first);
      y.load_single(of_y, k + first, n_k - first);
      multiply(of_x, of_y);
    }
  }
};

} // namespace ws
#endif
