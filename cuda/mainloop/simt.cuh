/* simt.cuh - one work item by ordinary multiply-adds: a coarsened tile, and register tiles in it.
 *
 * A step is step_k of k; for each of them there is one A fragment and COARSE B fragments from
 * shared memory. A thread (thread_place.cuh) owns TM x TN elements of every one of the COARSE
 * tiles, as vectors of vec_m (vec_n) elements that lie threads_m * vec_m (threads_n * vec_n) apart,
 * so that neighbouring threads read neighbouring vectors:
 *
 *            tile 0          tile 1                 A fragment: TM elements, read once for each p,
 *        |n0 n1 ..|n0 n1 ..|n0 n1 ..|n0 n1 ..|      used against COARSE B fragments of TN elements
 *     m0   t0 t8    t0 t8    t0 t8    t0 t8
 *     m1   t1 t9    t1 t9    t1 t9    t1 t9         COARSE * TM * TN sums, each one chain (complex:
 *     ..                                            four) of multiply-adds in the order of k
 *
 * Registers: the accumulators and two sets of fragments. */
#ifndef WS_CUDA_MAINLOOP_SIMT_CUH
#define WS_CUDA_MAINLOOP_SIMT_CUH
#include "cuda/epilogue/epilogue.cuh"
#include "cuda/mainloop/copy_tile.cuh"
#include "cuda/mainloop/thread_place.cuh"

namespace ws {

/* The sums of one element, for each pair of a real part of a and one of b (products.cuh says why
 * they are kept apart). */
template <class Real, int UNIT> struct part_sums { Real part[UNIT][UNIT]; };

template <class Config, bool A_K, bool B_K> struct mainloop_simt {
  using element = typename Config::element;
  using real = typename Config::real;
  static constexpr int unit = Config::unit, tm = Config::tm, tn = Config::tn, coarse = Config::coarse;
  static constexpr int vec_m = tm < Config::vec ? tm : Config::vec, vec_n = tn < Config::vec ? tn : Config::vec;
  static constexpr int a_pitch = Config::a_pitch, b_pitch = Config::b_pitch;
  static constexpr int threads_m = Config::bm / tm, threads_n = Config::bn / tn;
  static_assert(!A_K && !B_K, "fragments are vectors along m and n");
  static_assert(tm % vec_m == 0 && tn % vec_n == 0, "a fragment is whole vectors");

  template <int VEC> struct alignas(VEC * sizeof(element)) vector { element e[VEC]; };

  /* Of k in one step: so many that a small tile, whose blocks are few warps, has work for the time
   * of a read. */
  static constexpr int n_sums = coarse * tm * tn * unit * unit, step_k = n_sums <= 16 ? 4 : 1;
  static constexpr int n_steps = Config::bk / step_k;
  static_assert(n_sums <= 96, "with more sums and two sets of fragments ptxas spills on cc 12.0");

  int m_first, n_first;                               /* of this thread's first vector */
  element a[2][step_k][tm], b[2][step_k][coarse][tn]; /* two sets */
  part_sums<real, unit> sum[coarse][tm][tn];

  __device__ mainloop_simt() {
    const thread_place own = own_thread_place<threads_m, threads_n, vec_m, vec_n>();
    m_first = own.m, n_first = own.n;
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int i = 0; i < tm; i++)
#pragma unroll
        for (int j = 0; j < tn; j++) sum[c][i][j] = {};
  }

  /* A fragment of COUNT elements, as vectors APART elements from each other. */
  template <int VEC, int APART, int COUNT>
  static __device__ __forceinline__ void read_vectors(element (&fragment)[COUNT], const element *first) {
#pragma unroll
    for (int v = 0; v < COUNT / VEC; v++) {
      const auto x = *reinterpret_cast<const vector<VEC> *>(first + v * APART);
#pragma unroll
      for (int i = 0; i < VEC; i++) fragment[v * VEC + i] = x.e[i];
    }
  }

  __device__ __forceinline__ void read_first(const element *stage) { read(0, stage, 0); }

  /* Multiplies the step whose fragments are there, and meanwhile reads those of the next one. */
  __device__ __forceinline__ void advance(int set, const element *next_stage, int next_step) {
    read(set ^ 1, next_stage, next_step);
    multiply(set);
  }

private:
  __device__ __forceinline__ void read(int set, const element *stage, int step) {
#pragma unroll
    for (int q = 0; q < step_k; q++) {
      const int p = step * step_k + q;
      read_vectors<vec_m, threads_m * vec_m>(a[set][q], stage + p * a_pitch + m_first);
      const element *b_row = stage + Config::a_words + p * b_pitch + n_first;
#pragma unroll
      for (int c = 0; c < coarse; c++) read_vectors<vec_n, threads_n * vec_n>(b[set][q][c], b_row + c * Config::bn);
    }
  }

  static __device__ __forceinline__ float part(float x, int) { return x; }
  static __device__ __forceinline__ float part(float2 x, int u) { return u == 0 ? x.x : x.y; }

  /* Real part i of the A fragment times real part j of the B fragments. */
  __device__ __forceinline__ void multiply_parts(int set, int q, int i, int j) {
    const int x = i / unit, u = i % unit, y = j / unit, v = j % unit;
    real &s = sum[y / tn][x][y % tn].part[u][v];
    s = fma(part(a[set][q][x], u), part(b[set][q][y / tn][y % tn], v), s);
  }

  /* Up and down the A fragment, for one part of B after the other: two neighbouring multiply-adds
   * always share a factor, which the compiler may keep at the operand's port in place of reading it
   * from the register file again. */
  __device__ __forceinline__ void multiply(int set) {
    constexpr int n_a = tm * unit, n_b = coarse * tn * unit;
#pragma unroll
    for (int q = 0; q < step_k; q++)
#pragma unroll
      for (int j = 0; j < n_b; j++)
#pragma unroll
        for (int i = 0; i < n_a; i++) multiply_parts(set, q, j % 2 == 0 ? i : n_a - 1 - i, j);
  }

public:
  __device__ __forceinline__ products<Config> sum_at(int c, int i, int j) const {
    const auto &p = sum[c][i][j].part;
    if constexpr (unit == 1)
      return {p[0][0]};
    else
      return {{p[0][0], p[0][1]}, {p[1][1], p[1][0]}};
  }

  /* n_m x n_n elements of the item exist. */
  template <class Output> __device__ __forceinline__ void finish(const Output &out, element *, int64_t n_m, int64_t n_n) const {
#pragma unroll
    for (int c = 0; c < coarse; c++)
#pragma unroll
      for (int j = 0; j < tn; j++) {
        const int n_at = c * Config::bn + j / vec_n * (threads_n * vec_n) + n_first + j % vec_n;
        if (n_at >= n_n) continue;
        element *column = out.first + n_at * out.ld;
        const stored_rows rows = out.rows_of(n_at, int(ws_min(n_m, Config::bm)));
#pragma unroll
        for (int v = 0; v < tm / vec_m; v++) {
          const int m_at = v * (threads_m * vec_m) + m_first;
          if (!Output::is_partial && out.vectors && m_at >= rows.begin && m_at + vec_m <= rows.end) {
            vector<vec_m> old{}, result;
            if (out.reads_old()) old = *reinterpret_cast<const vector<vec_m> *>(column + m_at);
#pragma unroll
            for (int i = 0; i < vec_m; i++) result.e[i] = out(sum_at(c, v * vec_m + i, j), old.e[i]);
            *reinterpret_cast<vector<vec_m> *>(column + m_at) = result;
          } else {
#pragma unroll
            for (int i = 0; i < vec_m; i++)
              if (m_at + i >= rows.begin && m_at + i < rows.end && out.wants(m_at + i, n_at))
                finish_element<Config>(out, column + m_at + i, sum_at(c, v * vec_m + i, j), m_at + i == rows.real);
          }
        }
      }
  }
};

} // namespace ws
#endif
