/* wgmma_steps.cuh - from the sums of a warpgroup to the elements of C, in registers: alpha * sum +
 * beta * C, then the steps of the epilogue. wgmma_store.cuh stores them.
 *
 * A warpgroup holds fragments of 64 columns of C times BM rows: thread t, with w = t / 32, g = t % 32
 * / 4, q = t % 4, has in sums[fragment][4a + 2h + r] the element of column 16w + g + 8h, row 8a + 2q +
 * r. */
#ifndef WS_CUDA_WGMMA_STEPS_CUH
#define WS_CUDA_WGMMA_STEPS_CUH
#include "cuda/epilogue/activations.cuh"
#include "cuda/epilogue/half_c.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/shared/wgmma_args.h"

namespace ws {

template <class Config, int BM = Config::bm> struct wgmma_steps {
  static constexpr int n_sums = BM / 2, n_fragments = Config::n_fragments;
  /* What is read and computed for C is in registers beside the sums: so many rows of a fragment at a
   * time. */
  static constexpr int rows = BM % 32 == 0 ? 32 : BM % 16 == 0 ? 16 : 8;
  static constexpr int n_own = rows / 2; /* elements of a thread */
  const ws_wgmma_args &args;

  /* Asks the L2 for what will be read: columns from n on, rows from m on. */
  __device__ __forceinline__ void prefetch(int m, int n, int batch) const {
    if constexpr (Config::is_plain) return;
    if (!args.beta_zero) prefetch_like_c(args.c_data, args.ldc, args.stride_c, m, n, batch);
    if (args.epilogue.is_any && args.epilogue.residual)
      prefetch_like_c(args.epilogue.residual, args.epilogue.ld_residual, args.epilogue.stride_residual, m, n, batch);
  }

  /* The bias of the item's rows, or of the warpgroup's columns: asked for before the sums are made,
   * in shared memory afterwards. */
  struct bias_bits {
    uint32_t bits[2]; /* numbers t and t + 128 */
  };

  __device__ __forceinline__ bias_bits ask_for_bias(int m, int n, int batch) const {
    const ws_epilogue_args &e = args.epilogue;
    bias_bits b = {};
    if constexpr (!Config::is_plain) {
      if (!e.is_any || !e.bias) return b;
      const int64_t first = batch * e.stride_bias, last = (e.bias_per_row ? args.m : args.n) - 1;
#pragma unroll
      for (int u = 0; u < 2; u++) {
        const int64_t at = first + ws_min((e.bias_per_row ? m : n) + thread() + u * 128, last);
        if (e.type_bias == WS_HALF_C_F32)
          b.bits[u] = static_cast<const uint32_t *>(e.bias)[at];
        else
          b.bits[u] = static_cast<const uint16_t *>(e.bias)[at];
      }
    }
    return b;
  }

  __device__ __forceinline__ void put_bias(const bias_bits &b, uint32_t to) const {
    const ws_epilogue_args &e = args.epilogue;
    if constexpr (!Config::is_plain) {
      if (!e.is_any || !e.bias) return;
#pragma unroll
      for (int u = 0; u < 2; u++)
        st_shared(to + uint32_t(thread() + u * 128) * 4,
                  e.type_bias == WS_HALF_C_F32 ? __uint_as_float(b.bits[u]) : half_c{nullptr, e.type_bias}.widened(b.bits[u]));
      barrier_sync(barrier(), 128);
    }
  }

  static __device__ __forceinline__ int thread() { return int(threadIdx.x) % 128; }
  static __device__ __forceinline__ int barrier() {
    return 1 + (int(threadIdx.x) - Config::first_consumer) / 128;
  } /* a number of the warpgroup's own, from 1 on */

  __device__ __forceinline__ half_c at(const void *base, int64_t ld, int64_t stride, int64_t i, int64_t j, int64_t batch) const {
    return half_c_at(base, args.type_c) + (batch * stride + j * ld + i);
  }

  __device__ __forceinline__ void prefetch_like_c(const void *base, int64_t ld, int64_t stride, int m, int n, int batch) const {
    constexpr int line = 64; /* at least so many bytes: one for each 32 rows of 16 bits */
#pragma unroll
    for (int p = 0; p < n_fragments; p++) {
      const int j = n + p * 64 + thread() / 2;
      if (j >= args.n) continue;
#pragma unroll
      for (int i = m + thread() % 2 * line; i < m + BM; i += 2 * line)
        if (i < args.m) prefetch_l2(at(base, ld, stride, i, j, batch).at);
    }
  }

  /* The thread's elements of some rows of a fragment: x[4a + 2h + r] is of row i + 8a + r, column j +
   * 8h; so many rows and columns exist from there on. is_whole: all of the warp do. */
  struct part {
    int i, j, batch, n_i, n_j, s, c;
    bool is_whole;
  };

  /* From row s of the item's, which are from m on, and column c of the warpgroup's. */
  __device__ __forceinline__ part part_at(int m, int s, int n, int c, int batch) const {
    const int lane = thread() % 32, i = m + s + 2 * (lane % 4), j = n + c + thread() / 32 * 16 + lane / 4;
    return {i, j, batch, int(args.m - i), int(args.n - j), s, c, m + s + rows <= args.m && n + c + 64 <= args.n};
  }

  /* Elements of C or of the residual. What does not exist is read as the last that does. */
  __device__ __forceinline__ void read(const part &p, const half_c &first, int64_t ld, bool pairs, float (&x)[n_own]) const {
    if (p.is_whole && pairs) {
      if (first.type == WS_HALF_C_F32) {
#pragma unroll
        for (int e = 0; e < n_own; e += 2) {
          const float2 two = (first + (e / 4 * 8 + e / 2 % 2 * 8 * ld)).template as<float2>();
          x[e] = two.x, x[e + 1] = two.y;
        }
      } else {
        uint32_t two[n_own / 2];
#pragma unroll
        for (int e = 0; e < n_own; e += 2) two[e / 2] = (first + (e / 4 * 8 + e / 2 % 2 * 8 * ld)).template as<uint32_t>();
#pragma unroll
        for (int e = 0; e < n_own; e++) x[e] = first.widened(two[e / 2] >> (e % 2 * 16) & 0xffff);
      }
    } else {
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const half_c column = first + ws_min(8 * h, p.n_j - 1) * ld;
#pragma unroll
        for (int u = 0; u < n_own / 2; u++) x[u / 2 * 4 + 2 * h + u % 2] = (column + ws_min(u / 2 * 8 + u % 2, p.n_i - 1)).load();
      }
    }
  }

  /* Its rows begin with row s of the item, its columns with column c of the warpgroup's. */
  template <int COUNT> __device__ __forceinline__ void add_bias(uint32_t bias, int s, int c, float (&x)[COUNT]) const {
    const int lane = thread() % 32;
    if (args.epilogue.bias_per_row) {
#pragma unroll
      for (int a = 0; a < COUNT / 4; a++) {
        float two[2];
        ld_shared_two(two, bias + uint32_t(s + 8 * a + 2 * (lane % 4)) * 4);
#pragma unroll
        for (int u = 0; u < 4; u++) x[4 * a + u] = __fadd_rn(x[4 * a + u], two[u % 2]);
      }
    } else {
      const uint32_t first = bias + uint32_t(c + thread() / 32 * 16 + lane / 4) * 4;
      const float of_column[2] = {ld_shared(first), ld_shared(first + 32)};
#pragma unroll
      for (int u = 0; u < COUNT; u++) x[u] = __fadd_rn(x[u], of_column[u / 2 % 2]);
    }
  }

  /* From sums to what is stored. */
  __device__ __forceinline__ void finish(const part &p, uint32_t bias, float (&x)[n_own]) const {
    const ws_epilogue_args &e = args.epilogue;
    float old[n_own];
    if (args.beta_zero) {
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = __fmul_rn(args.alpha, x[u]);
    } else {
      read(p, at(args.c_data, args.ldc, args.stride_c, p.i, p.j, p.batch), args.ldc, args.c_pairs, old);
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = fmaf(args.alpha, x[u], args.beta * old[u]);
    }
    if (!e.is_any) return;
    if (e.residual)
      read(p, at(e.residual, e.ld_residual, e.stride_residual, p.i, p.j, p.batch), e.ld_residual, args.residual_pairs, old);
    if (e.bias) add_bias(bias, p.s, p.c, x);
    fast_activations::apply(e.activation, x);
    const float out_scale = float(e.out_scale);
    if (out_scale != 1) {
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = __fmul_rn(x[u], out_scale);
    }
    if (e.residual) {
#pragma unroll
      for (int u = 0; u < n_own; u++) x[u] = __fadd_rn(x[u], old[u]);
    }
  }

  /* Those of args.is_simple. */
  __device__ __forceinline__ void take_simple_steps(uint32_t bias, int s, int c, float (&x)[8]) const {
    const ws_epilogue_args &e = args.epilogue;
    if (e.bias) add_bias(bias, s, c, x);
    const float out_scale = float(e.out_scale);
    const bool is_relu = e.activation == WSGEMM_EPILOGUE_RELU;
#pragma unroll
    for (int u = 0; u < 8; u++) x[u] = __fmul_rn(is_relu && x[u] < 0 ? 0 : x[u], out_scale);
  }

  /* Sums of one turn, each of so many rows of a fragment; the turn is known only when the loop is
   * there, registers have no numbers then. */
  static __device__ __forceinline__ void pick(const float (&sums)[n_fragments][n_sums], int turn, float (&x)[n_own]) {
    constexpr int per_fragment = n_sums / n_own;
#pragma unroll
    for (int t = 0; t < n_fragments * per_fragment; t++)
      if (t == turn) {
#pragma unroll
        for (int u = 0; u < n_own; u++) x[u] = sums[t / per_fragment][t % per_fragment * n_own + u];
      }
  }
};

} // namespace ws
#endif
