/* mma.cuh - one work item by the double-precision matrix instruction (cc >= 8.0), for d and z.
 *
 * A step is mma_f64_k of k. A warp owns TM x TN elements of every one of the COARSE tiles, in
 * pieces of 16 x 8; it reads its A pieces once a step and uses them against all B pieces. A complex
 * product is four real ones on the same pieces, each with a sum of its own (products.cuh): ar br,
 * ar bi, ai bi, ai br.
 *
 * d: a read brings one element. z: a read brings two neighbours where these stand side by side in
 * the instruction's operand, too: of an A contiguous along m rows g and g + 8 (g = lane / 4), of a
 * B contiguous along k its k of t and t + 4 (t = lane % 4). For that the tile's rows and k are
 * numbered otherwise than the instruction's: rows 2g and 2g + 1 of the piece (pairs_m), k of 2t and
 * 2t + 1 of the step (pairs_k; A's k must be the same, and so is not k-contiguous). Which k an
 * instruction adds up is the same in all rows of kernels.def.
 *
 * Banks: 16 lanes of single reads have four g and four t, 8 lanes of double reads two g and four t.
 * With single k, a pitch of 4 beyond a multiple of 8 doubles puts them into different banks, by
 * rows of k as by rows of m or n. With pairs of k the pitch of A's rows of k is 2 beyond, and
 * columns go 0 2 1 3 4 6 5 7. (d's copies of 16 bytes would take twice as long at such a pitch:
 * they are of 32 bytes.) */
#ifndef WS_CUDA_MAINLOOP_MMA_CUH
#define WS_CUDA_MAINLOOP_MMA_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/mainloop/copy_tile.cuh"
#include "cuda/ptx/mma.cuh"

namespace ws {

template <class Config, bool A_K, bool B_K> struct mainloop_mma {
  using element = typename Config::element;
  static constexpr int unit = Config::unit, coarse = Config::coarse, n_sums = unit * unit;
  static constexpr int pieces_m = Config::tm / 16, pieces_n = Config::tn / 8, warps_m = Config::bm / Config::tm;
  static_assert(Config::tm % 16 == 0 && Config::tn % 8 == 0, "a warp's tile is whole pieces of 16 x 8");

  static_assert(Config::bk % 16 == 0, "two steps, and see the banks");
  static constexpr int step_k = mma_f64_k, n_steps = Config::bk / step_k, k_per_lane = step_k / 4;
  static_assert(k_per_lane == 2, "t and t + 4");
  static constexpr bool pairs_m = !A_K && Config::splits, pairs_k = pairs_m && B_K;
  static constexpr int a_pitch = Config::a_pitch - (pairs_k ? 2 : 0), b_pitch = Config::b_pitch;
  /* Second sets of fragments where the registers allow: of 255, some 50 go elsewhere, more where
   * there are planes. */
  static constexpr int sum_registers = 2 * n_sums * coarse * pieces_m * pieces_n * 4, left_registers = unit == 1 ? 200 : 180;
  static constexpr int a_registers = 2 * unit * k_per_lane * 2 * pieces_m,
                       b_registers = 2 * unit * k_per_lane * coarse * pieces_n;
  static constexpr int b_sets = sum_registers + a_registers + 2 * b_registers <= left_registers ? 2 : 1;
  static constexpr int a_sets = sum_registers + 2 * a_registers + 2 * b_registers <= left_registers ? 2 : 1;

  /* Not kept in registers: every one counts. m_first, n_first: of this warp. */
  static __device__ __forceinline__ int group() { return int(threadIdx.x) % 32 / 4; }
  static __device__ __forceinline__ int member() { return int(threadIdx.x) % 4; }
  static __device__ __forceinline__ int m_first() { return int(threadIdx.x) / 32 % warps_m * Config::tm; }
  static __device__ __forceinline__ int n_first() { return int(threadIdx.x) / 32 / warps_m * Config::tn; }

  double a[a_sets][unit][pieces_m][2 * k_per_lane], b[b_sets][unit][coarse][pieces_n][k_per_lane];
  double sum[n_sums][coarse][pieces_m][pieces_n][4];

  __device__ mainloop_mma() {
    double *all = &sum[0][0][0][0][0];
#pragma unroll
    for (int i = 0; i < int(sizeof sum / sizeof *all); i++) all[i] = 0;
  }

  /* Places: row of a piece, column of a piece, k of a step. */
  static __device__ __forceinline__ int row_at(int r) { return pairs_m ? 2 * group() + r : group() + 8 * r; }
  static __device__ __forceinline__ int column_at(int col) { return pairs_k ? (col & 1) << 1 | (col >> 1 & 1) | (col & 4) : col; }
  static __device__ __forceinline__ int k_at(int q) { return pairs_k ? 2 * member() + q : member() + 4 * q; }

  static __device__ __forceinline__ double2 read_two(const double *at) { return *reinterpret_cast<const double2 *>(at); }

  /* Piece i. */
  __device__ __forceinline__ void read_a(int set, int i, const double *stage, int step) {
    constexpr int step_x = A_K ? Config::k_pitch : 1, step_p = A_K ? 1 : a_pitch;
    const double *first = stage + (m_first() + i * 16 + row_at(0)) * step_x + (step * step_k + k_at(0)) * step_p;
#pragma unroll
    for (int u = 0; u < unit; u++)
#pragma unroll
      for (int q = 0; q < 2; q++) {
        const double *at = first + u * Config::a_plane + (pairs_k ? 1 : 4) * q * step_p;
        auto &to = a[set][u][i];
        if (pairs_m) {
          const double2 two = read_two(at);
          to[2 * q] = two.x, to[2 * q + 1] = two.y;
        } else {
          to[2 * q] = at[0], to[2 * q + 1] = at[8 * step_x];
        }
      }
  }

  /* Piece j of tile c. */
  __device__ __forceinline__ void read_b(int set, int c, int j, const double *stage, int step) {
    constexpr int step_x = B_K ? Config::k_pitch : 1, step_p = B_K ? 1 : b_pitch;
    const double *first = stage + Config::a_words + (c * Config::bn + n_first() + j * 8 + column_at(group())) * step_x +
                          (step * step_k + k_at(0)) * step_p;
#pragma unroll
    for (int u = 0; u < unit; u++) {
      const double *at = first + u * Config::b_plane;
      auto &to = b[set][u][c][j];
      if (pairs_k) {
        const double2 two = read_two(at);
        to[0] = two.x, to[1] = two.y;
      } else {
        to[0] = at[0], to[1] = at[4 * step_p];
      }
    }
  }

  /* Every piece of A, of B. */
  __device__ __forceinline__ void read_a(int set, const double *stage, int step) {
#pragma unroll
    for (int i = 0; i < pieces_m; i++) read_a(set, i, stage, step);
  }
  __device__ __forceinline__ void read_b(int set, const double *stage, int step) {
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < pieces_n; j++) read_b(set, c, j, stage, step);
  }

  __device__ __forceinline__ void read_first(const double *stage) {
    read_a(0, stage, 0);
    read_b(0, stage, 0);
  }

  /* Multiplies the step whose fragments are there, and meanwhile reads those of the next one: into
   * the other set, or, with one set, a piece as soon as it has been used for the last time. */
  __device__ __forceinline__ void advance(int set, const double *next_stage, int next_step) {
    const int a_set = a_sets == 2 ? set : 0, b_set = b_sets == 2 ? set : 0;
    if (b_sets == 2) read_b(set ^ 1, next_stage, next_step);
    if (a_sets == 2) read_a(set ^ 1, next_stage, next_step);
#pragma unroll
    for (int i = 0; i < pieces_m; i++) {
#pragma unroll
      for (int c = 0; c < coarse; c++)
#pragma unroll
        for (int j = 0; j < pieces_n; j++) {
#pragma unroll
          for (int s = 0; s < n_sums; s++) mma_f64(sum[s][c][i][j], a[a_set][s / 2][i], b[b_set][s == 1 || s == 2][c][j]);
          if (b_sets == 1 && i + 1 == pieces_m) read_b(0, c, j, next_stage, next_step);
        }
      if (a_sets == 1) read_a(0, i, next_stage, next_step);
    }
  }

  __device__ __forceinline__ products<Config> sum_at(int c, int i, int j, int r) const {
    if constexpr (unit == 1)
      return {sum[0][c][i][j][r]};
    else
      return {{sum[0][c][i][j][r], sum[1][c][i][j][r]}, {sum[2][c][i][j][r], sum[3][c][i][j][r]}};
  }

  /* n_m x n_n elements of the item exist. */
  template <class Output>
  __device__ __forceinline__ void finish(const Output &out, typename Config::word *, int64_t n_m, int64_t n_n) const {
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < pieces_n; j++)
#pragma unroll
        for (int col = 0; col < 2; col++) {
          const int n = c * Config::bn + n_first() + j * 8 + column_at(2 * member() + col);
          if (n >= n_n) continue;
          const stored_rows rows = out.rows_of(n, int(ws_min(n_m, Config::bm)));
#pragma unroll
          for (int i = 0; i < pieces_m; i++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
              const int m = m_first() + i * 16 + row_at(r);
              if (m >= rows.begin && m < rows.end)
                finish_element<Config>(out, out.first + n * out.ld + m, sum_at(c, i, j, 2 * r + col), m == rows.real);
            }
        }
  }
};

} // namespace ws
#endif
