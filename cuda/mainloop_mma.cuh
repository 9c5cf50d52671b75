/* mainloop_mma.cuh - one work item by the double-precision matrix instruction (cc >= 8.0), for d and z.
 *
 * A step is 4 of k. A warp owns TM x TN elements of every one of the COARSE tiles, in pieces of 16 x 8; it reads its A pieces once a
 * step and uses them against all B pieces. A complex product is four real ones on the
 * same pieces, each with a sum of its own (products.cuh): ar br, ar bi, ai bi, ai br.
 *
 * Banks: the 32 lanes of a read stand at (lane % 4) rows of k times (lane / 4) elements; a pitch of 4 (d: 8-byte elements) or 2
 * (z: 16-byte elements) beyond a multiple of 16 puts those of one phase of the read into different banks. */
#ifndef WS_CUDA_MAINLOOP_MMA_CUH
#define WS_CUDA_MAINLOOP_MMA_CUH
#include "copy_tile.cuh"
#include "epilogue.cuh"
#include "ptx_mma.cuh"

namespace ws {

template <class Config> struct mainloop_mma {
  using element = typename Config::element;
  static constexpr int unit = Config::unit, coarse = Config::coarse, n_sums = unit * unit;
  static constexpr int pieces_m = Config::tm / 16, pieces_n = Config::tn / 8, warps_m = Config::bm / Config::tm;
  static_assert(Config::tm % 16 == 0 && Config::tn % 8 == 0, "a warp's tile is whole pieces of 16 x 8");

  static constexpr int n_steps = Config::bk / 4;

  int group, member;    /* lane / 4, lane % 4 */
  int m_first, n_first; /* of this warp */
  double a[2][unit][pieces_m][2], b[2][unit][coarse][pieces_n];
  double sum[n_sums][coarse][pieces_m][pieces_n][4];

  __device__ mainloop_mma() {
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    group = lane / 4, member = lane % 4;
    m_first = warp % warps_m * Config::tm;
    n_first = warp / warps_m * Config::tn;
    double *all = &sum[0][0][0][0][0];
#pragma unroll
    for (int i = 0; i < int(sizeof sum / sizeof *all); i++) all[i] = 0;
  }

  static __device__ __forceinline__ double part(double x, int) { return x; }
  static __device__ __forceinline__ double part(double2 x, int u) { return u == 0 ? x.x : x.y; }

  __device__ __forceinline__ void read(int set, const element *stage, int step) {
    const int p = step * 4 + member;
    const element *a_row = stage + p * Config::a_pitch + m_first + group;
    const element *b_row = stage + Config::bk * Config::a_pitch + p * Config::b_pitch + n_first + group;
#pragma unroll
    for (int i = 0; i < pieces_m; i++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const element x = a_row[i * 16 + r * 8];
#pragma unroll
        for (int u = 0; u < unit; u++) a[set][u][i][r] = part(x, u);
      }
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < pieces_n; j++) {
        const element x = b_row[c * Config::bn + j * 8];
#pragma unroll
        for (int u = 0; u < unit; u++) b[set][u][c][j] = part(x, u);
      }
  }

  __device__ __forceinline__ void multiply(int set) {
#pragma unroll
    for (int i = 0; i < pieces_m; i++) {
      if constexpr (unit == 1) {
#pragma unroll
        for (int c = 0; c < coarse; c++)
#pragma unroll
          for (int j = 0; j < pieces_n; j++) mma_f64_16x8x4(sum[0][c][i][j], a[set][0][i], b[set][0][c][j]);
      } else {
#pragma unroll
        for (int c = 0; c < coarse; c++)
#pragma unroll
          for (int j = 0; j < pieces_n; j++) {
            mma_f64_16x8x4(sum[0][c][i][j], a[set][0][i], b[set][0][c][j]);
            mma_f64_16x8x4(sum[1][c][i][j], a[set][0][i], b[set][unit - 1][c][j]);
            mma_f64_16x8x4(sum[n_sums - 2][c][i][j], a[set][unit - 1][i], b[set][unit - 1][c][j]);
            mma_f64_16x8x4(sum[n_sums - 1][c][i][j], a[set][unit - 1][i], b[set][0][c][j]);
          }
      }
    }
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
          const int n_at = c * Config::bn + n_first + j * 8 + member * 2 + r % 2;
          if (n_at >= n_n) continue;
#pragma unroll
          for (int i = 0; i < pieces_m; i++) {
            const int m_at = m_first + i * 16 + group + r / 2 * 8;
            if (m_at < n_m) finish_element<Config>(out, out.first + n_at * out.ld + m_at, sum_at(c, i, j, r));
          }
        }
  }
};

} // namespace ws
#endif
