/* few_k_sums.cuh - sums of so few products that slices have no proof for them, by multiply-adds: of a tile of
 * gemm_tf32.cuh, by the threads that multiply otherwise. Only groups need it, as the host does not know their k.
 *
 * Both operands come to shared memory, behind the sums, a line for each k; a thread then sums a row of the tile in
 * eight columns at a time. Each element is one chain in the order of k, as tf32_kernel::by_multiply_adds(). */
#ifndef WS_CUDA_FEW_K_SUMS_CUH
#define WS_CUDA_FEW_K_SUMS_CUH
#include "cuda/ptx/tma.cuh"
#include "cuda/rows/tf32_config.cuh"
#include "cuda/shared/kernel_args.h"

namespace ws {

template <class Config, int MOST_K> struct few_k_sums {
  static constexpr int unit = Config::unit, bm = Config::bm, bn = Config::bn, at_once = 8;
  static constexpr int a_pitch = bm * unit + 4, b_pitch = bn * unit + 4; /* floats */
  static constexpr int group_floats = bn * Config::sum_pitch, sums_floats = Config::k_groups * group_floats;
  static constexpr int columns_apart = Config::n_consuming / bm * at_once;
  static_assert((sums_floats + MOST_K * (a_pitch + b_pitch)) * 4 <= Config::body_bytes, "room behind the sums");
  static_assert(Config::n_consuming % bm == 0 && bn % at_once == 0, "threads step over whole columns");

  float *sums; /* of the item's first group of warps */

  __device__ __forceinline__ float *a() const { return sums + sums_floats; }
  __device__ __forceinline__ float *b() const { return a() + MOST_K * a_pitch; }

  /* X elements from x_first on, of which n_x exist. K: contiguous along k. */
  template <int X, bool K>
  static __device__ __forceinline__ void load(float *to, int pitch, const ws_operand &op, int x_first, int n_x, int n_k) {
    const float *const from = static_cast<const float *>(op.data);
    const float sign = op.conj ? -1.0f : 1.0f;
#pragma unroll 1
    for (int i = int(threadIdx.x); i < X * n_k; i += Config::n_consuming) {
      const int x = K ? i / n_k : i % X, k = K ? i - x * n_k : i / X;
      float *const there = to + k * pitch + unit * x;
      const float *const here = from + unit * ((x_first + x) * op.step_mn + k * op.step_k);
      const bool exists = x < n_x;
      there[0] = exists ? here[0] : 0;
      if constexpr (unit == 2) there[1] = exists ? sign * here[1] : 0;
    }
  }

  /* Row i, columns j and on. */
  __device__ __forceinline__ void sum_columns(int i, int j, int n_k, float first) const {
    float sum[at_once][unit];
#pragma unroll
    for (int c = 0; c < at_once * unit; c++) sum[c / unit][c % unit] = first;
    const float *x = a() + unit * i, *y = b() + unit * j;
#pragma unroll 1
    for (int k = 0; k < n_k; k++, x += a_pitch, y += b_pitch)
#pragma unroll
      for (int c = 0; c < at_once; c++) {
        sum[c][0] = fmaf(x[0], y[unit * c], sum[c][0]);
        if constexpr (unit == 2) {
          sum[c][0] = fmaf(-x[1], y[2 * c + 1], sum[c][0]);
          sum[c][1] = fmaf(x[0], y[2 * c + 1], sum[c][1]), sum[c][1] = fmaf(x[1], y[2 * c], sum[c][1]);
        }
      }
#pragma unroll
    for (int c = 0; c < at_once; c++)
#pragma unroll
      for (int u = 0; u < unit; u++) {
        float *const to = sums + (j + c) * Config::sum_pitch + unit * i + u;
        to[0] = sum[c][u];
#pragma unroll
        for (int g = 1; g < Config::k_groups; g++) to[g * group_floats] = -0.0f; /* changes no sum */
      }
  }

  /* By all threads that multiply; at: the item's place. What they write is seen behind a barrier. Of blocks that share an item the
   * first one sums all, and the others have sums that change nothing. */
  template <class Place> __device__ __forceinline__ void run(const ws_gemm_args &args, const Place &at, bool is_first) const {
    const int n_k = is_first ? at.k_end - at.k_begin : 0;
    load<bm, Config::a_k>(a(), a_pitch, args.a, at.m, int(ws_min(bm, args.m - at.m)), n_k);
    load<bn, Config::b_k>(b(), b_pitch, args.b, at.n, int(ws_min(bn, args.n - at.n)), n_k);
    barrier_sync(1, Config::n_consuming);
#pragma unroll 1
    for (int j = int(threadIdx.x / unsigned(bm)) * at_once; j < bn; j += columns_apart)
      sum_columns(int(threadIdx.x % unsigned(bm)), j, n_k, is_first ? 0.0f : -0.0f);
  }
};

} // namespace ws
#endif
