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
  static __device__ __forceinline__ float4 vector_at(const unsigned char *p) { return *reinterpret_cast<const float4 *>(p); }

  /* step: of the block in `from`. */
  __device__ __forceinline__ void read(int set, const unsigned char *from, int step) {
    if constexpr (K) {
      const uint32_t at = place ^ uint32_t(step << 4);
#pragma unroll
      for (int i = 0; i < count; i++) {
        const uint32_t other = uint32_t((LANES * i & 7) << 4); /* chunks are numbered by x, too */
        const float4 v = vector_at(from + (at ^ other) + i * LANES * layout::line);
        x[set][i][0] = v.x, x[set][i][1] = v.y, x[set][i][2] = v.z, x[set][i][3] = v.w;
      }
    } else {
#pragma unroll
      for (int q = 0; q < ffma_step_k; q++)
#pragma unroll
        for (int v = 0; v < count / 4; v++) {
          constexpr int slab_x = layout::slab_x;
          const int ahead = v * LANES * 4;
          const float4 y = vector_at(from + place + (step * ffma_step_k + q) * layout::k_bytes +
                                     ahead / slab_x * layout::slab_bytes + ahead % slab_x * 4);
          x[set][4 * v][q] = y.x, x[set][4 * v + 1][q] = y.y, x[set][4 * v + 2][q] = y.z, x[set][4 * v + 3][q] = y.w;
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

  static __device__ __forceinline__ int warp() { return int(threadIdx.x) / 32; }
  static __device__ __forceinline__ int group() { return warp() / Config::group_warps; }
  /* As in thread_place.cuh: half a warp's reads are served at once. */
  static __device__ __forceinline__ int long_lane() {
    const int lane = int(threadIdx.x) % 32;
    return (lane >> 1 & 3) | (lane >> 4 & 1) << 2;
  }
  static __device__ __forceinline__ int short_lane() {
    const int lane = int(threadIdx.x) % 32;
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

  __device__ __forceinline__ void read(int set, const unsigned char *stage, int step) {
    a.read(set, stage, step), b.read(set, stage, step);
  }
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
  template <class Wait>
  __device__ __forceinline__ void advance(const unsigned char *stage, const unsigned char *next_stage, Wait wait) {
    constexpr int at_once = tm * tn >= 64 ? 2 : 4;
#pragma unroll 1
    for (int first = 0; first < n_steps; first += at_once)
#pragma unroll
      for (int s = 0; s < at_once; s++) {
        const bool is_end = s == at_once - 1 && first == n_steps - at_once;
        if (s == at_once - 1 && is_end) wait();
        read(s % 2 ^ 1, is_end ? next_stage : stage, is_end ? 0 : first + s + 1);
        multiply(s % 2);
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
