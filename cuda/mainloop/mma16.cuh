/* mma16.cuh - one work item by the matrix instruction for 16-bit elements (cc >= 8.0), for h and b:
 * sums of floats.
 *
 * A step is mma16_k of k. A warp owns TM x TN elements of every one of the COARSE tiles, in pieces
 * of 8 (m) x 16 (n): the instruction's first operand is B, its second one A, so that a lane's
 * neighbouring sums are neighbours in C's columns. Operands are read by pieces of 16 along m or n
 * and 16 of k (mma16_fragments.cuh), in either layout.
 *
 * Rows in shared memory are an odd number of 16 bytes long (the pad), so that the 8 rows of a
 * matrix, 16 bytes each, are in different banks. One instruction adds up 16 of k, and it is the
 * same ones in the same order in all rows of kernels.def; zeros fill up the last.
 *
 * In the end the sums go to C by store_tile16.cuh. Registers: the sums, two sets of A's fragments,
 * one of B's. */
#ifndef WS_CUDA_MAINLOOP_MMA16_CUH
#define WS_CUDA_MAINLOOP_MMA16_CUH
#include "cuda/epilogue/store_tile16.cuh"
#include "cuda/mainloop/copy_tile16.cuh"
#include "cuda/mainloop/mma16_fragments.cuh"

namespace ws {

template <class Config, bool A_K, bool B_K> struct mainloop_mma16 {
  using element = typename Config::element;
  static constexpr int coarse = Config::coarse, n_steps = Config::bk / mma16_k;
  static constexpr int pieces_m = Config::tm / 16, pieces_n = Config::tn / 16, warps_m = Config::bm / Config::tm;
  static constexpr int a_pitch = A_K ? Config::k_pitch : Config::a_pitch, b_pitch = B_K ? Config::k_pitch : Config::b_pitch;
  static_assert(Config::tm % 16 == 0 && Config::tn % 16 == 0, "a warp's tile is whole pieces of 16 x 16");
  static_assert(a_pitch % 16 == 8 && b_pitch % 16 == 8, "an odd number of 16 bytes: see the banks");

  /* what this lane names to ldmatrix: from the stage's first byte on, in bytes */
  uint32_t a_row, b_row;
  uint32_t a[2][pieces_m][4], b[coarse][pieces_n][4]; /* two sets of A's */
  float sum[coarse][pieces_n][pieces_m][2][4];        /* 2: the halves of 8 of a piece along m */

  /* Not kept in registers: every one counts. m_first, n_first: of this warp. */
  static __device__ __forceinline__ int group() { return int(threadIdx.x) % 32 / 4; }
  static __device__ __forceinline__ int member() { return int(threadIdx.x) % 4; }
  static __device__ __forceinline__ int m_first() { return int(threadIdx.x) / 32 % warps_m * Config::tm; }
  static __device__ __forceinline__ int n_first() { return int(threadIdx.x) / 32 / warps_m * Config::tn; }

  __device__ mainloop_mma16() {
    a_row = mma16_fragment<A_K>::own_row(m_first(), a_pitch);
    b_row = mma16_fragment<B_K>::own_row(n_first(), b_pitch) + uint32_t(Config::a_words * sizeof(element));
    float *all = &sum[0][0][0][0][0];
#pragma unroll
    for (int i = 0; i < int(sizeof sum / sizeof *all); i++) all[i] = 0;
  }

  __device__ __forceinline__ void read_a(int set, const element *stage, int step) {
#pragma unroll
    for (int i = 0; i < pieces_m; i++)
      mma16_fragment<A_K>::read(a[set][i],
                                shared_address(stage) + a_row + mma16_fragment<A_K>::offset(i * 16, step * mma16_k, a_pitch));
  }

  /* Piece j of tile c. */
  __device__ __forceinline__ void read_b(int c, int j, const element *stage, int step) {
    mma16_fragment<B_K>::read(b[c][j], shared_address(stage) + b_row +
                                           mma16_fragment<B_K>::offset(c * Config::bn + j * 16, step * mma16_k, b_pitch));
  }

  __device__ __forceinline__ void read_first(const element *stage) {
    read_a(0, stage, 0);
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < pieces_n; j++) read_b(c, j, stage, 0);
  }

  /* Multiplies the step whose fragments are there, and meanwhile reads those of the next one: of A
   * into the other set, of B each piece as soon as it has been used, a whole step before it is
   * needed again. */
  __device__ __forceinline__ void advance(int set, const element *next_stage, int next_step) {
    read_a(set ^ 1, next_stage, next_step);
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < pieces_n; j++) {
#pragma unroll
        for (int i = 0; i < pieces_m; i++)
#pragma unroll
          for (int half = 0; half < 2; half++)
            mma16<typename Config::type>(sum[c][j][i][half], b[c][j], a[set][i][half], a[set][i][half + 2]);
        read_b(c, j, next_stage, next_step);
      }
  }

  /* ---- The sums, to C ------------------------------------------------------------------------ */

  __device__ __forceinline__ void put_sums(float *sums) const {
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < pieces_n; j++)
#pragma unroll
        for (int i = 0; i < pieces_m; i++)
#pragma unroll
          for (int half = 0; half < 2; half++)
#pragma unroll
            for (int r = 0; r < 2; r++) {
              const int n = c * Config::bn + n_first() + j * 16 + r * 8 + group(),
                        m = m_first() + i * 16 + half * 8 + 2 * member();
              const float(&from)[4] = sum[c][j][i][half];
              *reinterpret_cast<float2 *>(store_tile16<Config>::sum_at(sums, m, n)) = {from[2 * r], from[2 * r + 1]};
            }
  }

  template <class Output>
  __device__ __forceinline__ void finish(const Output &out, element *shared, int64_t n_m, int64_t n_n) const {
    store_tile16<Config>::finish(out, shared, n_m, n_n, [this](float *sums) { put_sums(sums); });
  }
};

} // namespace ws
#endif
