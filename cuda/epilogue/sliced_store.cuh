/* sliced_store.cuh - from a warpgroup's sums of scaled slices to C, of floats: scaled back by
 * powers of two, so exactly where the result is a normal number, then alpha * sum + beta * C. Two
 * slices leave the elements of rows and columns that need more (slice_args.h) as they are; three
 * slices store those of them that do not need FP32, and nothing else.
 *
 * Thread t holds what wgmma_store.cuh says: in sums[fragment][4a + 2h + r] the element of column 16w +
 * g + 8h, row 8a + 2q + r. */
#ifndef WS_CUDA_SLICED_STORE_CUH
#define WS_CUDA_SLICED_STORE_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/shared/power_of_two.cuh"
#include "cuda/shared/slice_args.h"
#include "cuda/shared/wgmma_args.h"

namespace ws {

/* x 2^e, for |x| < 2^64. What underflows has been rounded once: where the first step is inexact,
 * the second makes 0 of it. */
__device__ __forceinline__ float scaled_back(float x, int e) {
  e = e < -240 ? -240 : e;
  const int first = e >> 1, second = e - first;
  return x * power_of_two(first) * power_of_two(second);
}

/* Numbers whose parts are two rows. */
struct complex_sum {
  using real = float;
  using sum = float2;
  static constexpr int unit = 2;
};

/* Three slices: by which lists rows or columns of C are gathered (ws_slices_are_gathered); NULL: they stand in their places. */
struct slice_lists {
  const int32_t *m, *n;
};
template <class Config> __device__ __forceinline__ slice_lists slice_lists_of(const ws_wgmma_scales &scales) {
  if constexpr (Config::n_slices < 3) return {};
  const ws_slice_state of_m = *scales.state_m, of_n = *scales.state_n;
  return {ws_slices_are_gathered(scales.listed_m, &of_m, &of_n, scales.n_m) ? scales.listed_m : nullptr,
          ws_slices_are_gathered(scales.listed_n, &of_n, &of_m, scales.n_n) ? scales.listed_n : nullptr};
}

template <class Config> struct sliced_store {
  static constexpr int n_sums = Config::bm / 2, n_fragments = Config::n_fragments;
  /* Pairs of rows whose scales are asked for before the first of their elements is stored: the compiler moves no load before a store. */
  static constexpr int at_once = 8;
  static_assert(Config::bm / 8 % at_once == 0, "whole groups of rows");
  static constexpr bool may_gather = Config::n_slices == 3;
  /* Sums of a row's and a column's scale, of elements that are stored. */
  static constexpr int least = Config::n_slices == 3 ? int(WS_SCALE_NEEDS_3) : 0,
                       end = Config::n_slices == 3 ? int(WS_SCALE_NEEDS_FP32) : int(WS_SCALE_NEEDS_3);
  const ws_wgmma_args &args;
  const slice_lists lists;

  /* Columns from n on, rows from m on. */
  __device__ __forceinline__ void operator()(const float (&sums)[n_fragments][n_sums], int m, int n, int batch) const {
    const int t = int(threadIdx.x) % 128, lane = t % 32;
    const int i_first = m + 2 * (lane % 4), j_first = n + t / 32 * 16 + lane / 4;
    const bool is_plain = ws_region_is_plain(&args.region, m / Config::unit, Config::bm / Config::unit, n, n_fragments * 64);
    const int32_t *of_m = args.scales.of_m + batch * args.scales.pitch_m, *of_n = args.scales.of_n + batch * args.scales.pitch_n;
    const lines rows(lists.m, batch * args.scales.listed_pitch_m, Config::unit, args.m),
        columns(lists.n, batch * args.scales.listed_pitch_n, 1, args.n);
#pragma unroll
    for (int p = 0; p < n_fragments; p++) {
      int of_column[2];
      int64_t column_at[2];
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int j = j_first + p * 64 + 8 * h, place = columns.at(j);
        of_column[h] = j < columns.count ? of_n[place] : WS_SCALE_NEEDS_FP32, column_at[h] = place * args.ldc;
      }
      float *const c = static_cast<float *>(args.c_data) + batch * args.stride_c;
#pragma unroll
      for (int first = 0; first < Config::bm / 8; first += at_once) {
        int of_row[at_once][2];
#pragma unroll
        for (int a = 0; a < at_once; a++)
#pragma unroll
          for (int r = 0; r < 2; r++) {
            const int i = i_first + 8 * (first + a) + r;
            of_row[a][r] = i < rows.count ? of_m[rows.at(i)] : WS_SCALE_NEEDS_FP32;
          }
#pragma unroll
        for (int a = 0; a < at_once; a++) {
          const int i = i_first + 8 * (first + a);
          const int place[2] = {rows.at(i), rows.at(i + 1)};
#pragma unroll
          for (int h = 0; h < 2; h++) {
            int of_first = of_row[a][0] + of_column[h], of_second = of_row[a][1] + of_column[h];
            const int j = j_first + p * 64 + 8 * h;
            if (!is_plain) leave_out(i, j, of_first, of_second);
            const bool is_real = Config::unit == 2 && !is_plain && ws_region_is_real(&args.region, i / 2, j);
            const float *const two = sums[p] + 4 * (first + a) + 2 * h;
            store_two(c + column_at[h] + place[0], c + column_at[h] + place[1], two[0], two[1], of_first, of_second, is_real);
          }
        }
      }
    }
  }

private:
  /* Where line i stands: of the first `count` lines there are, numbers of so many lines each. */
  struct lines {
    const int32_t *listed;
    int unit, count;
    __device__ __forceinline__ lines(const int32_t *list, int64_t first, int unit_, int64_t n)
        : listed(may_gather && list ? list + first + 1 : nullptr), unit(unit_), count(listed ? listed[-1] * unit_ : int(n)) {}
    __device__ __forceinline__ int at(int i) const {
      if (!may_gather || !listed) return i;
      return i < count ? listed[i / unit] * unit + i % unit : 0;
    }
  };
  /* Rows i and i + 1 of a column: one that is not wanted gets a scale of which nothing is stored. */
  __device__ __forceinline__ void leave_out(int i, int j, int &of_first, int &of_second) const {
    if (!ws_region_wants(&args.region, i / Config::unit, j)) of_first = end;
    if (!ws_region_wants(&args.region, (i + 1) / Config::unit, j)) of_second = end;
  }
  /* Rows i and i + 1 of a column, by the sums of their scales. */
  __device__ __forceinline__ void store_two(float *at, float *at_second, float first, float second, int of_first, int of_second,
                                            bool is_real) const {
    const bool has_first = of_first >= least && of_first < end, has_second = of_second >= least && of_second < end;
    first = scaled_back(first, exponent_of(of_first)), second = scaled_back(second, exponent_of(of_second));
    if constexpr (Config::unit == 2) {
      if (has_first) store_complex(at, {first, second}, is_real);
    } else if (args.c_pairs && !(may_gather && lists.m) && has_first && has_second) {
      float2 *const two = reinterpret_cast<float2 *>(at);
      const float2 old = args.beta_zero ? float2{} : *two;
      *two = {finished(first, old.x), finished(second, old.y)};
    } else {
      if (has_first) at[0] = finished(first, args.beta_zero ? 0 : at[0]);
      if (has_second) *at_second = finished(second, args.beta_zero ? 0 : *at_second);
    }
  }
  __device__ __forceinline__ void store_complex(float *at, float2 sum, bool is_real) const {
    const scaling<complex_sum> scale(args.alpha, args.alpha_im, args.beta, args.beta_im, args.beta_zero);
    if (is_real) {
      at[0] = scale(sum, args.beta_zero ? float2{} : float2{at[0], 0}).x;
      at[1] = 0;
    } else if (args.c_pairs) {
      float2 *const number = reinterpret_cast<float2 *>(at);
      *number = scale(sum, args.beta_zero ? float2{} : *number);
    } else {
      const float2 number = scale(sum, args.beta_zero ? float2{} : float2{at[0], at[1]});
      at[0] = number.x, at[1] = number.y;
    }
  }
  static __device__ __forceinline__ int exponent_of(int scales) { return scales % WS_SCALE_NEEDS_3 - 2 * WS_SCALE_BIAS; }
  __device__ __forceinline__ float finished(float x, float old) const {
    return args.beta_zero ? args.alpha * x : fmaf(args.alpha, x, args.beta * old);
  }
};

} // namespace ws
#endif
