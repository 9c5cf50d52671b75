/* mainloop_mma.cuh - one work item by the double-precision matrix instruction (cc >= 8.0), for d and z.
 *
 * A step is mma_f64_k of k. A warp owns TM x TN elements of every one of the COARSE tiles, in pieces of 16 x 8; it reads its A pieces
 * once a step and uses them against all B pieces. A complex product is four real ones on the same pieces, each with a sum of its own
 * (products.cuh): ar br, ar bi, ai bi, ai br.
 *
 * Banks: the 32 lanes of a read stand at (lane % 4) of k times (lane / 4) of m or n. A pitch of 4 beyond a multiple of 8 doubles puts
 * those of one phase of the read into different banks, by rows of k as by rows of m or n (A_K, B_K: the operand is k-contiguous). */
#ifndef WS_CUDA_MAINLOOP_MMA_CUH
#define WS_CUDA_MAINLOOP_MMA_CUH
#include "copy_tile.cuh"
#include "epilogue.cuh"
#include "ptx_mma.cuh"

namespace ws {

template <class Config, bool A_K, bool B_K> struct mainloop_mma {
  using element = typename Config::element;
  static constexpr int unit = Config::unit, coarse = Config::coarse, n_sums = unit * unit;
  static constexpr int pieces_m = Config::tm / 16, pieces_n = Config::tn / 8, warps_m = Config::bm / Config::tm;
  static_assert(Config::tm % 16 == 0 && Config::tn % 8 == 0, "a warp's tile is whole pieces of 16 x 8");

  static_assert(Config::bk % 16 == 0, "two steps, and see the banks");
  static constexpr int step_k = mma_f64_k, n_steps = Config::bk / step_k, k_parts = step_k / 4;
  /* A second set of fragments where the registers allow: of 255, some 50 go elsewhere. */
  static constexpr int sum_registers = 2 * n_sums * coarse * pieces_m * pieces_n * 4;
  static constexpr int set_registers = 2 * unit * k_parts * (2 * pieces_m + coarse * pieces_n);
  static constexpr int n_sets = sum_registers + 2 * set_registers <= 200 ? 2 : 1;

  /* Not kept in registers: every one counts. m_first, n_first: of this warp. */
  static __device__ __forceinline__ int group() { return int(threadIdx.x) % 32 / 4; }
  static __device__ __forceinline__ int member() { return int(threadIdx.x) % 4; }
  static __device__ __forceinline__ int m_first() { return int(threadIdx.x) / 32 % warps_m * Config::tm; }
  static __device__ __forceinline__ int n_first() { return int(threadIdx.x) / 32 / warps_m * Config::tn; }

  double a[n_sets][unit][pieces_m][2 * k_parts], b[n_sets][unit][coarse][pieces_n][k_parts];
  double sum[n_sums][coarse][pieces_m][pieces_n][4];

  __device__ mainloop_mma() {
    double *all = &sum[0][0][0][0][0];
#pragma unroll
    for (int i = 0; i < int(sizeof sum / sizeof *all); i++) all[i] = 0;
  }

  /* From one element to its neighbour along m or n, or along k. */
  static constexpr int a_step_x = A_K ? Config::k_pitch : 1, a_step_p = A_K ? 1 : Config::a_pitch;
  static constexpr int b_step_x = B_K ? Config::k_pitch : 1, b_step_p = B_K ? 1 : Config::b_pitch;

  __device__ __forceinline__ void read(int set, const double *stage, int step) {
    const double *a_first = stage + (m_first() + group()) * a_step_x + (step * step_k + member()) * a_step_p;
    const double *b_first = stage + Config::a_words + (n_first() + group()) * b_step_x + (step * step_k + member()) * b_step_p;
#pragma unroll
    for (int u = 0; u < unit; u++)
#pragma unroll
      for (int i = 0; i < pieces_m; i++)
#pragma unroll
        for (int r = 0; r < 2 * k_parts; r++)
          a[set][u][i][r] = a_first[u * Config::a_plane + (i * 16 + r % 2 * 8) * a_step_x + r / 2 * 4 * a_step_p];
#pragma unroll
    for (int u = 0; u < unit; u++)
#pragma unroll
      for (int c = 0; c < coarse; c++)
#pragma unroll
        for (int j = 0; j < pieces_n; j++)
#pragma unroll
          for (int r = 0; r < k_parts; r++)
            b[set][u][c][j][r] = b_first[u * Config::b_plane + (c * Config::bn + j * 8) * b_step_x + r * 4 * b_step_p];
  }

  __device__ __forceinline__ void multiply(int set) {
#pragma unroll
    for (int i = 0; i < pieces_m; i++)
#pragma unroll
      for (int c = 0; c < coarse; c++)
#pragma unroll
        for (int j = 0; j < pieces_n; j++)
#pragma unroll
          for (int s = 0; s < n_sums; s++) mma_f64(sum[s][c][i][j], a[set][s / 2][i], b[set][s == 1 || s == 2][c][j]);
  }

  __device__ __forceinline__ products<Config> sum_at(int c, int i, int j, int r) const {
    if constexpr (unit == 1)
      return {sum[0][c][i][j][r]};
    else
      return {{sum[0][c][i][j][r], sum[1][c][i][j][r]}, {sum[2][c][i][j][r], sum[3][c][i][j][r]}};
  }

  /* n_m x n_n elements of the item exist. */
  template <class Output> __device__ __forceinline__ void finish(const Output &out, int64_t n_m, int64_t n_n) const {
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < pieces_n; j++)
#pragma unroll
        for (int r = 0; r < 4; r++) {
          const int n_at = c * Config::bn + n_first() + j * 8 + member() * 2 + r % 2;
          if (n_at >= n_n) continue;
#pragma unroll
          for (int i = 0; i < pieces_m; i++) {
            const int m_at = m_first() + i * 16 + group() + r / 2 * 8;
            if (m_at < n_m) finish_element<Config>(out, out.first + n_at * out.ld + m_at, sum_at(c, i, j, r));
          }
        }
  }
};

} // namespace ws
#endif
