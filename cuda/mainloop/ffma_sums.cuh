/* ffma_sums.cuh - the consumers' half of gemm_ffma.cuh: a thread's sums over the k blocks in shared
 * memory, each one chain of multiply-adds in the order of k.
 *
 * A warp's lanes lie 8 along its longer side of the tile and 4 along the other. A step is 4 of k;
 * for each a lane has T elements of either operand, where k is contiguous as vectors along k, else
 * as vectors along x:
 *
 *   k contiguous   x = lane + LANES * i, one read of 16 bytes for each of them
 *   else           x = 4 * (lane + LANES * v) + e, T / 4 reads of 16 bytes for each k
 *
 * While one step is multiplied the next is read, the first of the next block, too. */
#ifndef WS_CUDA_FFMA_SUMS_CUH
#define WS_CUDA_FFMA_SUMS_CUH
#include "cuda/mainloop/ffma_load.cuh"
#include "cuda/ptx/tma.cuh"

namespace ws {

constexpr int ffma_step_k = 4;

/* A lane's share of one operand: of WARP_X rows, from `first` on. */
template <int X, bool K, int WARP_X, int LANES> struct ffma_side {
  using layout = ffma_layout<X, K>;
  static constexpr int count = WARP_X / LANES;
  float x[2][count][ffma_step_k];
  int own;        /* its first element */
  uint32_t place; /* where that is */

  __device__ __forceinline__ ffma_side(int first, int lane) {
    own = first + (K ? lane : 4 * lane);
    place = layout::place(own, 0);
  }
  /* Where steps from `first` on begin, of a stage. */
  __device__ __forceinline__ uint32_t first_of(uint32_t stage, int first) const {
    if (K) return stage + (place ^ uint32_t(first << 4));
    return stage + place + uint32_t(first * ffma_step_k * layout::k_bytes);
  }
  /* step: from there on. */
  __device__ __forceinline__ void read(int set, uint32_t block, int step) {
    if constexpr (K) {
#pragma unroll
      for (int i = 0; i < count; i++) {
        /* chunks are numbered by x, too; stages begin at whole lines */
        const uint32_t at = block ^ uint32_t((step ^ (LANES * i & 7)) << 4);
        ld_shared_four(x[set][i], at + i * LANES * layout::line);
      }
    } else {
#pragma unroll
      for (int q = 0; q < ffma_step_k; q++)
#pragma unroll
        for (int v = 0; v < count / 4; v++) {
          constexpr int slab_x = layout::slab_x;
          const int ahead = v * LANES * 4;
          float y[4];
          ld_shared_four(y, block + uint32_t((step * ffma_step_k + q) * layout::k_bytes + ahead / slab_x * layout::slab_bytes +
                                             ahead % slab_x * 4));
#pragma unroll
          for (int e = 0; e < 4; e++) x[set][4 * v + e][q] = y[e];
        }
    }
  }
  __device__ __forceinline__ int element(int i) const { return own + (K ? i * LANES : i / 4 * (LANES * 4) + i % 4); }
};

template <class Config> struct ffma_sums {
  static constexpr bool is_tall = Config::wm >= Config::wn;
  static constexpr int lanes_m = is_tall ? 8 : 4, lanes_n = 32 / lanes_m, warps_m = Config::bm / Config::wm;
  static constexpr int n_steps = Config::bk / ffma_step_k;
  using side_a = ffma_side<Config::bm, Config::a_k, Config::wm, lanes_m>;
  using side_b = ffma_side<Config::bn, Config::b_k, Config::wn, lanes_n>;
  static constexpr int tm = side_a::count, tn = side_b::count;

  side_a a;
  side_b b;
  float sum[tm][tn];

  static __device__ __forceinline__ int warp() { return int(threadIdx.x / 32); }
  static __device__ __forceinline__ int group() { return warp() / Config::group_warps; }
  /* As in thread_place.cuh: half a warp's reads are served at once. */
  static __device__ __forceinline__ int long_lane() {
    const int lane = int(threadIdx.x % 32);
    return (lane >> 1 & 3) | (lane >> 4 & 1) << 2;
  }
  static __device__ __forceinline__ int short_lane() {
    const int lane = int(threadIdx.x % 32);
    return (lane & 1) | (lane >> 3 & 1) << 1;
  }

  __device__ __forceinline__ ffma_sums()
      : a(warp() % Config::group_warps % warps_m * Config::wm, is_tall ? long_lane() : short_lane()),
        b(warp() % Config::group_warps / warps_m * Config::wn, is_tall ? short_lane() : long_lane()) {
    a.place += uint32_t(group() * Config::group_bytes);
    b.place += uint32_t(group() * Config::group_bytes + Config::operand_a_bytes);
#pragma unroll
    for (int i = 0; i < tm; i++)
#pragma unroll
      for (int j = 0; j < tn; j++) sum[i][j] = 0;
  }

  __device__ __forceinline__ void read(int set, uint32_t stage, int first, int step) {
    a.read(set, a.first_of(stage, first), step), b.read(set, b.first_of(stage, first), step);
  }
  __device__ __forceinline__ void read_first(uint32_t stage) { read(0, stage, 0, 0); }
  __device__ __forceinline__ void multiply(int set) {
#pragma unroll
    for (int q = 0; q < ffma_step_k; q++)
#pragma unroll
      for (int j = 0; j < tn; j++)
#pragma unroll
        for (int n = 0; n < tm; n++) {
          const int i = j % 2 == 0 ? n : tm - 1 - n;
          sum[i][j] = fmaf(a.x[set][i][q], b.x[set][j][q], sum[i][j]);
        }
  }

  /* One block; wait: until the next one has come, if there is one. Behind the last block something is
   * read, and not used. */
  template <class Wait> __device__ __forceinline__ void advance(uint32_t stage, uint32_t next_stage, Wait wait) {
    constexpr int at_once = 4;
#pragma unroll 1
    for (int first = 0; first < n_steps; first += at_once) {
      const bool is_last = first == n_steps - at_once;
#pragma unroll
      for (int s = 0; s < at_once; s++) {
        if (s < at_once - 1) {
          read(s % 2 ^ 1, stage, first, s + 1);
        } else {
          if (is_last) wait();
          read(s % 2 ^ 1, is_last ? next_stage : stage, is_last ? 0 : first + at_once, 0);
        }
        multiply(s % 2);
      }
    }
  }

  /* To columns of C, those of this warp's group. */
  __device__ __forceinline__ void store(float *to) const {
#pragma unroll
    for (int j = 0; j < tn; j++) {
      float *const column = to + b.element(j) * Config::sum_pitch;
      if constexpr (Config::a_k) {
#pragma unroll
        for (int i = 0; i < tm; i++) column[a.element(i)] = sum[i][j];
      } else {
#pragma unroll
        for (int i = 0; i < tm; i += 4)
          *reinterpret_cast<float4 *>(column + a.element(i)) = {sum[i][j], sum[i + 1][j], sum[i + 2][j], sum[i + 3][j]};
      }
    }
  }
};

} // namespace ws
#endif
