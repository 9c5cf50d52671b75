/* fma16.cuh - one work item by IEEE FP32 multiply-adds, for h and b under PEDANTIC: no tensor core,
 * which would cut the low bits of small products beside a large one.
 *
 * An element of C is one chain of multiply-adds of floats in the order of k, from 0; elements of A
 * and B become floats exactly. A thread (thread_place.cuh) owns TM x TN elements of every one of
 * the COARSE tiles. What it reads in a step, step_k of k, depends on how the operand is in shared
 * memory (copy_tile16.cuh); T is TM or TN:
 *
 *   rows of k    x ->              for each k vectors of `vec` neighbours x; neighbouring threads read neighbouring vectors
 *     k 0   [t0 ..  ][t1 ..  ]     and own these x
 *     k 1   [t0 ..  ][t1 ..  ]
 *
 *   rows of x    k ->              for each x a vector of step_k of k; neighbouring threads read, and own, neighbouring rows,
 *     x 0   t0 [step]              which are an odd number of 16 bytes long (the pad), so that 8 of them are in different banks
 *     x 1   t1 [step]
 *
 * In the end the sums go to C by store_tile16.cuh. Registers: the sums, and two sets of fragments,
 * which keep their 16 bits there. */
#ifndef WS_CUDA_MAINLOOP_FMA16_CUH
#define WS_CUDA_MAINLOOP_FMA16_CUH
#include "cuda/epilogue/store_tile16.cuh"
#include "cuda/mainloop/copy_tile16.cuh"
#include "cuda/mainloop/thread_place.cuh"
#include "cuda/ptx/convert.cuh"

namespace ws {

/* One operand's part of a step: T elements along x for each of STEP_K k, of one of THREADS along x.
 * BY_X: rows of x. */
template <class Type, bool BY_X, int T, int THREADS, int STEP_K> struct fragment16 {
  static constexpr int vec = BY_X ? STEP_K : T < 8 ? T : 8, n_vectors = T * STEP_K / vec, per_k = T / vec;
  static_assert((T * STEP_K) % vec == 0 && vec % 2 == 0, "whole vectors of whole registers");

  struct alignas(vec * sizeof(uint16_t)) vector {
    uint32_t pair[vec / 2];
  };
  vector of[n_vectors];

  /* Where its element i along x is in the tile. */
  static constexpr __device__ __forceinline__ int place(int thread, int i) {
    return BY_X ? i * THREADS + thread : i / vec * (THREADS * vec) + thread * vec + i % vec;
  }

  /* From the stage's first element of the operand on: its element (x, k); the thread's first
   * one. */
  static constexpr __device__ __forceinline__ int offset(int x, int k, int pitch) { return BY_X ? x * pitch + k : k * pitch + x; }
  static constexpr __device__ __forceinline__ int first(int thread, int pitch) { return offset(place(thread, 0), 0, pitch); }

  /* from: where first() says. */
  __device__ __forceinline__ void read(const uint16_t *from, int pitch, int step) {
#pragma unroll
    for (int v = 0; v < n_vectors; v++) {
      const int x = place(0, BY_X ? v : v % per_k * vec), k = step * STEP_K + (BY_X ? 0 : v / per_k);
      of[v] = *reinterpret_cast<const vector *>(from + offset(x, k, pitch));
    }
  }

  /* Element i along x, k number q of the step. */
  __device__ __forceinline__ float at(int i, int q) const {
    const int v = BY_X ? i : q * per_k + i / vec, e = BY_X ? q : i % vec;
    const uint16_t bits = uint16_t(of[v].pair[e / 2] >> e % 2 * 16);
    if constexpr (std::is_same_v<Type, type_h>)
      return float_of_f16(bits);
    else
      return float_of_bf16(bits);
  }
};

template <class Config, bool A_K, bool B_K> struct mainloop_fma16 {
  using element = typename Config::element;
  static constexpr int tm = Config::tm, tn = Config::tn, coarse = Config::coarse;
  static constexpr int threads_m = Config::bm / tm, threads_n = Config::bn / tn;
  static constexpr int a_pitch = A_K ? Config::k_pitch : Config::a_pitch, b_pitch = B_K ? Config::k_pitch : Config::b_pitch;
  static_assert(Config::k_pitch % 16 == 8, "an odd number of 16 bytes: see the banks");

  /* More k for fewer sums, so that there is work for the time of a read. */
  static constexpr int n_sums = coarse * tm * tn, step_k = n_sums >= 64 ? 2 : 4, n_steps = Config::bk / step_k;
  static_assert(n_sums <= 64, "with 64 sums a limit of 168 registers just does: kernels.def, blocks");

  using fragment_a = fragment16<typename Config::type, A_K, tm, threads_m, step_k>;
  using fragment_b = fragment16<typename Config::type, B_K, tn, threads_n, step_k>;
  int a_first, b_first; /* of this thread, in a stage */
  fragment_a a[2];      /* two sets */
  fragment_b b[2][coarse];
  float sum[coarse][tn][tm];

  static __device__ __forceinline__ thread_place place() { return own_thread_place<threads_m, threads_n>(); }

  __device__ mainloop_fma16() {
    const thread_place own = place();
    a_first = fragment_a::first(own.m, a_pitch), b_first = Config::a_words + fragment_b::first(own.n, b_pitch);
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < tn; j++)
#pragma unroll
        for (int i = 0; i < tm; i++) sum[c][j][i] = 0;
  }

  __device__ __forceinline__ void read_first(const element *stage) { read(0, stage, 0); }

  /* Multiplies the step whose fragments are there, and meanwhile reads those of the next one. */
  __device__ __forceinline__ void advance(int set, const element *next_stage, int next_step) {
    read(set ^ 1, next_stage, next_step);
    multiply(set);
  }

  /* n_m x n_n elements of the item exist. */
  template <class Output>
  __device__ __forceinline__ void finish(const Output &out, element *shared, int64_t n_m, int64_t n_n) const {
    store_tile16<Config>::finish(out, shared, n_m, n_n, [this](float *sums) { put_sums(sums); });
  }

  /* Neighbours along m that belong to a thread go together. A sum of -0, which only underflow
   * makes, becomes 0 like that of a row whose k blocks have zeros left to add: all rows give the
   * same bits. */
  __device__ __forceinline__ void put_sums(float *sums) const {
    using vector = sum_vector<Config>;
    constexpr int width = A_K ? 1 : vector::length;
    static_assert(A_K || fragment_a::vec % width == 0, "a vector of C's is one thread's");
    const thread_place own = place(); /* not kept in registers */
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < tn; j++)
#pragma unroll
        for (int i = 0; i < tm; i += width) {
          float *const to =
              store_tile16<Config>::sum_at(sums, fragment_a::place(own.m, i), c * Config::bn + fragment_b::place(own.n, j));
          const float *from = &sum[c][j][i];
          if constexpr (A_K)
            *to = *from + 0;
          else
            *reinterpret_cast<vector *>(to) = {{from[0] + 0, from[1] + 0, from[2] + 0, from[3] + 0}};
        }
  }

private:
  __device__ __forceinline__ void read(int set, const element *stage, int step) {
    a[set].read(stage + a_first, a_pitch, step);
#pragma unroll
    for (int c = 0; c < coarse; c++)
      b[set][c].read(stage + b_first + fragment_b::offset(c * Config::bn, 0, b_pitch), b_pitch, step);
  }

  /* Up and down the A fragment, for one element of B after the other, as in simt.cuh. */
  __device__ __forceinline__ void multiply(int set) {
#pragma unroll
    for (int q = 0; q < step_k; q++) {
      float a_q[tm];
#pragma unroll
      for (int i = 0; i < tm; i++) a_q[i] = a[set].at(i, q);
#pragma unroll
      for (int c = 0; c < coarse; c++)
#pragma unroll
        for (int j = 0; j < tn; j++) {
          const float b_q = b[set][c].at(j, q);
#pragma unroll
          for (int up = 0; up < tm; up++) {
            const int i = j % 2 == 0 ? up : tm - 1 - up;
            sum[c][j][i] = fma(a_q[i], b_q, sum[c][j][i]);
          }
        }
    }
  }
};

} // namespace ws
#endif
