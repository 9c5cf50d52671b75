/* fused_store.cuh - from the consumers' sums to C, for gemm_fused.cuh: through shared memory, in C's
 * order; of a cluster's parts of k added up, in their order. Elements whose row or column has marks,
 * and those that are no finite numbers, are computed anew by multiply-adds. */
#ifndef WS_CUDA_FUSED_STORE_CUH
#define WS_CUDA_FUSED_STORE_CUH
#include "cuda/ptx/cluster.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/rows/fused_config.cuh"
#include "cuda/shared/fused_args.h"

namespace ws {

template <class Config> struct fused_store {
  const ws_fused_args &args;
  fused_state<Config> &state;
  float *sums;
  int rank;

  /* Sums to shared memory, in C's order. */
  __device__ __forceinline__ void put_sums(const float (&total)[Config::bn / 2], const bool (&is_bad)[2], int number,
                                           int pass) const {
    float *const to = sums;
    const int q = int(threadIdx.x) % 4;
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int r = fused_row<Config>(h);
      if (is_bad[h]) state.r_is_bad[number % 2][r] = 1;
#pragma unroll
      for (int j = 0; j < Config::bn / 8; j++) {
        if (j * 8 / Config::bp != pass) continue;
        const int s = 8 * j % Config::bp + 2 * q;
        const float first = total[4 * j + 2 * h], second = total[4 * j + 2 * h + 1];
        if (args.c_r == 1)
          to[s * Config::pitch_r + r] = first, to[(s + 1) * Config::pitch_r + r] = second;
        else
          *reinterpret_cast<float2 *>(to + r * Config::pitch_s + s) = {first, second};
      }
    }
  }

  /* An element by multiply-adds. */
  __device__ __noinline__ float by_multiply_adds(int r, int s) const {
    const int64_t next_r = Config::r_x ? args.r.ld : 1, next_s = Config::s_x ? args.s.ld : 1;
    const float *a = args.r.from + (Config::r_x ? r : r * args.r.ld), *b = args.s.from + (Config::s_x ? s : s * args.s.ld);
    float sum = 0;
#pragma unroll 4
    for (int k = 0; k < args.n_k; k++) sum = fmaf(a[k * next_r], b[k * next_s], sum);
    return sum;
  }

  __device__ __forceinline__ bool is_bad(int r, int s, int number) const {
    const uint8_t &of_r = state.r_is_bad[number % 2][r], &of_s = state.s_is_bad[number % 8][s];
    bool any = of_r | of_s;
#pragma unroll 1
    for (int p = 0; p < args.n_parts; p++)
      if (args.n_parts > 1) {
        const uint32_t here_r = shared_address(&of_r), here_s = shared_address(&of_s);
        float words[2];
        ld_shared_cluster(*reinterpret_cast<float(*)[1]>(&words[0]), here_r & ~3u, p);
        ld_shared_cluster(*reinterpret_cast<float(*)[1]>(&words[1]), here_s & ~3u, p);
        any |= (__float_as_uint(words[0]) >> 8 * (here_r & 3) & 255) != 0;
        any |= (__float_as_uint(words[1]) >> 8 * (here_s & 3) & 255) != 0;
      }
    return any;
  }

  __device__ __forceinline__ void store_one(float sum, int r, int s) const {
    float *const to = args.c + r * args.c_r + s * args.c_s;
    *to = args.beta == 0 ? args.alpha * sum : fmaf(args.alpha, sum, args.beta * *to);
  }

  /* Four neighbours in shared memory, added up over the parts of k. */
  __device__ __forceinline__ void sum_four(float (&sum)[4], int at) const {
    const float *const from = sums + at;
    if (args.n_parts == 1) {
      ld_shared_four(sum, shared_address(from));
    } else {
#pragma unroll
      for (int i = 0; i < 4; i++) sum[i] = 0;
#pragma unroll 1
      for (int p = 0; p < args.n_parts; p++) {
        float x[4];
        ld_shared_cluster(x, shared_address(from), uint32_t(p));
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] += x[i];
      }
    }
  }

  /* Lines of the tile in C's order: LENGTH contiguous elements, a few lines at a time; of a cluster
   * each block has its share of them. */
  template <bool R_IS_CONTIGUOUS>
  __device__ __forceinline__ void store_lines(const fused_tile &of_pass, int s_first, bool any_bad, int number) const {
    const fused_tile at = {of_pass.r, of_pass.s + s_first};
    constexpr int length = R_IS_CONTIGUOUS ? fused_bm : Config::bp, n_lines = R_IS_CONTIGUOUS ? Config::bp : fused_bm;
    constexpr int pitch = R_IS_CONTIGUOUS ? Config::pitch_r : Config::pitch_s, per_line = length / 4;
    const int t = int(threadIdx.x) - 128;
    const int64_t ldc = R_IS_CONTIGUOUS ? args.c_s : args.c_r;
    const bool vectors = ldc % 4 == 0 && (reinterpret_cast<uintptr_t>(args.c) & 15) == 0 && args.beta == 0;
    const int n_x = R_IS_CONTIGUOUS ? args.r.n_x - at.r : args.s.n_x - at.s,
              n_y = R_IS_CONTIGUOUS ? args.s.n_x - at.s : args.r.n_x - at.r;
#pragma unroll 2
    for (int i = t + rank * 256; i < n_lines * per_line; i += 256 * args.n_parts) {
      const int line = i / per_line, x = i % per_line * 4;
      if (line >= n_y || x >= n_x) continue;
      float sum[4];
      sum_four(sum, line * pitch + x);
      bool is_finite = true;
#pragma unroll
      for (int j = 0; j < 4; j++) is_finite &= fabsf(sum[j]) < __uint_as_float(0x7f800000);
      if (!is_finite || any_bad) {
#pragma unroll 1
        for (int j = 0; j < 4 && x + j < n_x; j++) {
          const int r = R_IS_CONTIGUOUS ? x + j : line, s = R_IS_CONTIGUOUS ? line : x + j;
          const float old = j == 0 ? sum[0] : j == 1 ? sum[1] : j == 2 ? sum[2] : sum[3];
          const bool replace = !(fabsf(old) < __uint_as_float(0x7f800000)) || is_bad(r, s_first + s, number);
          store_one(replace ? by_multiply_adds(at.r + r, at.s + s) : old, at.r + r, at.s + s);
        }
      } else if (vectors && x + 4 <= n_x) {
        float *const to = args.c + (R_IS_CONTIGUOUS ? at.r + x : at.s + x) + (R_IS_CONTIGUOUS ? at.s + line : at.r + line) * ldc;
        *reinterpret_cast<float4 *>(to) = {args.alpha * sum[0], args.alpha * sum[1], args.alpha * sum[2], args.alpha * sum[3]};
      } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
          if (x + j < n_x) store_one(sum[j], at.r + (R_IS_CONTIGUOUS ? x + j : line), at.s + (R_IS_CONTIGUOUS ? line : x + j));
      }
    }
  }

  __device__ __forceinline__ void clear_bad(int number) const {
    const int t = int(threadIdx.x) - 128;
    if (t < fused_bm) state.r_is_bad[number % 2][t] = 0;
    if (t < Config::bn) state.s_is_bad[number % 8][t] = 0;
  }

  /* Whether the tile has a row or column that is, in any part of k. */
  __device__ __forceinline__ bool any_is_bad(int number) const {
    const int lane = int(threadIdx.x) % 32;
    const uint32_t of_r = shared_address(state.r_is_bad[number % 2]) + lane * 4,
                   of_s = shared_address(state.s_is_bad[number % 8]) + (lane < Config::bn / 4 ? lane : 0) * 4;
    bool any = false;
    if (args.n_parts == 1) {
      any = (ld_shared_32(of_r) | ld_shared_32(of_s)) != 0;
    } else {
#pragma unroll 1
      for (int p = 0; p < args.n_parts; p++) {
        float words[2][1];
        ld_shared_cluster(words[0], of_r, uint32_t(p)), ld_shared_cluster(words[1], of_s, uint32_t(p));
        any |= (__float_as_uint(words[0][0]) | __float_as_uint(words[1][0])) != 0;
      }
    }
    return __any_sync(~0u, any);
  }
};

} // namespace ws
#endif
