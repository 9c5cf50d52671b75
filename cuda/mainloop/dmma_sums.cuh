/* dmma_sums.cuh - the consumers' half of gemm_dmma.cuh: a warp's sums over the k blocks in shared
 * memory.
 *
 * P gives an instruction its 16 rows, Q its 8 columns; lane 4g + t has rows g and g + 8 of P and
 * column g of Q. Which row, column or k of the tile is which of the instruction's is free, so that
 * reads are of 16 bytes, in different banks, and their doubles side by side as the instruction wants
 * them:
 *
 *   d, k8   slots t and t + 4 are k = 2t and 2t + 1; rows g and g + 8 of P are p = 2g and 2g + 1;
 *           column g of Q is (g / 2) + 4 (g % 2) where k is contiguous, else g
 *   z, k8   slots t and t + 4 are k = 2t, in the next instruction 2t + 1: with rows g and g + 8 of P being
 *           the real and the imaginary part of p = g, (re, im) by the real part of Q and (-im, re) by the
 *           imaginary one; columns as they stand
 *
 * So the order of summation is the same in all rows and for all ops. A block has two steps, each in
 * halves of Q; while one is multiplied the next is read, the first of the next block, too.
 *
 * z: real and imaginary part of an element have a sum each. One conjugated operand turns the signs of the
 * second pair, P conjugated that of the imaginary sum at the end. */
#ifndef WS_CUDA_DMMA_SUMS_CUH
#define WS_CUDA_DMMA_SUMS_CUH
#include "cuda/ptx/mma.cuh"
#include "cuda/ptx/shared_f64.cuh"
#include "cuda/ptx/tma.cuh"
#include "cuda/rows/dmma_config.cuh"

namespace ws {

/* Where a lane reads of its warp's first piece of 8 x, of a step of k; pieces are 1024 bytes apart,
 * but those of doubles along x, which lie two by two in slabs. KEEPS: k is contiguous in shared memory. */
template <int UNIT, bool KEEPS> struct dmma_place {
  static __device__ __forceinline__ int g() { return int(threadIdx.x % 32 / 4); }
  static __device__ __forceinline__ int t() { return int(threadIdx.x % 4); }
  /* d: of column g */
  static __device__ __forceinline__ int spread(int x) { return x >> 1 | (x & 1) << 2; }
  static constexpr int line = WS_DMMA_LINE_BYTES;

  static __device__ __forceinline__ uint32_t of_z(uint32_t first, int step) {
    const uint32_t at = KEEPS ? uint32_t(g() * line + ((2 * t() ^ g()) << 4)) : uint32_t(2 * t() * line + ((g() ^ 2 * t()) << 4));
    return first + (step == 0 ? at : KEEPS ? at ^ 16u : (at ^ 16u) + line);
  }
  /* k = 2t and 2t + 1 of column g */
  static __device__ __forceinline__ uint32_t of_d(uint32_t first, int step) {
    const int x = spread(g());
    const uint32_t at = uint32_t(x * line + ((t() ^ x) << 4));
    return first + (step == 0 ? at : at ^ 64u);
  }
  /* p = 2g and 2g + 1, k = 2t + odd */
  static __device__ __forceinline__ uint32_t of_pair(uint32_t first, int step, int odd) {
    const uint32_t at = uint32_t(2 * t() * line + ((g() ^ 2 * t()) << 4));
    return first + uint32_t(step * 8 * line) + (odd ? (at ^ 16u) + line : at);
  }
  /* x = g, or g + 8, k = 2t + odd */
  static __device__ __forceinline__ uint32_t of_single(uint32_t first, int step, int piece, int odd) {
    const uint32_t at = uint32_t(2 * t() * line + ((g() >> 1 ^ 2 * t()) << 4) + (g() & 1) * 8) ^ (piece % 2 ? 64u : 0u);
    return first + uint32_t(step * 8 * line + piece / 2 * (16 * line)) + (odd ? (at ^ 16u) + line : at);
  }
};

template <class Config> struct dmma_sums {
  static constexpr int unit = Config::unit, n_p = Config::wp / (unit == 2 ? 8 : 16), n_q = Config::wq / 8;
  static constexpr int half_q = n_q >= 4 ? n_q / 2 : n_q, n_halves = n_q / half_q, n_phases = 2 * n_halves;
  static constexpr int warps_p = Config::bp / Config::wp, n_reads = half_q + n_p, n_products = n_p * half_q;
  static constexpr bool is_complex = unit == 2;
  using p_place = dmma_place<unit, Config::keeps_p_k>;
  using q_place = dmma_place<unit, Config::q_k>;

  double sum[n_p][n_q][4];
  double p[2][n_p][is_complex ? 2 : 4], q[2][half_q][2];
  uint32_t turn_re, turn_im; /* z: signs of the second pair of P, for real and imaginary sums */

  static __device__ __forceinline__ int warp() { return int(threadIdx.x / 32); }
  static __device__ __forceinline__ int group() { return warp() / Config::group_warps; }
  static __device__ __forceinline__ int p_first() { return warp() % Config::group_warps % warps_p * Config::wp; }
  static __device__ __forceinline__ int q_first() { return warp() % Config::group_warps / warps_p * Config::wq; }
  static __device__ __forceinline__ uint32_t p_at() {
    return uint32_t(group() * Config::group_bytes + p_first() * Config::line_bytes);
  }
  static __device__ __forceinline__ uint32_t q_at() {
    return uint32_t(group() * Config::group_bytes + Config::operand_p_bytes + q_first() * Config::line_bytes);
  }

  __device__ __forceinline__ explicit dmma_sums(bool is_one_conjugated) {
    turn_re = is_one_conjugated ? 0 : 0x80000000u, turn_im = is_one_conjugated ? 0x80000000u : 0;
    double *all = &sum[0][0][0];
#pragma unroll
    for (int i = 0; i < int(sizeof sum / sizeof *all); i++) all[i] = 0;
  }

  static __device__ __forceinline__ double turned(double x, uint32_t sign) {
    return __hiloint2double(__double2hiint(x) ^ int(sign), __double2loint(x));
  }

  __device__ __forceinline__ void read_p(int set, uint32_t stage, int step, int i) {
    auto &to = p[set][i];
    if constexpr (is_complex) {
      ld_shared_f64(to[0], to[1], p_place::of_z(stage + p_at(), step) + uint32_t(i * 1024));
    } else {
#pragma unroll
      for (int odd = 0; odd < 2; odd++)
        ld_shared_f64(to[2 * odd], to[2 * odd + 1], p_place::of_pair(stage + p_at(), step, odd) + uint32_t(i * 2048));
    }
  }

  /* Piece j of all. */
  __device__ __forceinline__ void read_q(int set, uint32_t stage, int step, int j) {
    auto &to = q[set][j % half_q];
    if constexpr (is_complex) {
      ld_shared_f64(to[0], to[1], q_place::of_z(stage + q_at(), step) + uint32_t(j * 1024));
    } else if constexpr (Config::q_k) {
      ld_shared_f64(to[0], to[1], q_place::of_d(stage + q_at(), step) + uint32_t(j * 1024));
    } else {
#pragma unroll
      for (int odd = 0; odd < 2; odd++) ld_shared_f64(to[odd], q_place::of_single(stage + q_at(), step, j, odd));
    }
  }

  __device__ __forceinline__ void multiply(int p_set, int q_set, int i, int j) {
    const auto &a = p[p_set][i];
    const auto &b = q[q_set][j % half_q];
    if constexpr (is_complex) {
      const double both[4] = {a[0], a[1], turned(a[1], turn_re), turned(a[0], turn_im)};
      mma_f64(sum[i][j], both, b);
    } else {
      mma_f64(sum[i][j], a, b);
    }
  }

  __device__ __forceinline__ void read_first(uint32_t stage) {
#pragma unroll
    for (int i = 0; i < n_p; i++) read_p(0, stage, 0, i);
#pragma unroll
    for (int j = 0; j < half_q; j++) read_q(0, stage, 0, j);
  }

  /* One block; wait: until the next one has come, if there is one. Behind the last block something is
   * read, and not used. */
  template <class Wait> __device__ __forceinline__ void advance(uint32_t stage, uint32_t next_stage, Wait wait) {
#pragma unroll
    for (int phase = 0; phase < n_phases; phase++) {
      const int step = phase / n_halves, half = phase % n_halves;
      const int next = (phase + 1) % n_phases, next_step = next / n_halves, next_half = next % n_halves;
      const uint32_t from = next == 0 ? next_stage : stage;
#pragma unroll
      for (int n = 0; n < n_products; n++) {
        multiply(step & 1, phase & 1, n % n_p, half * half_q + n / n_p);
        if (n == 0 && next == 0) wait();
          /* the reads of the next phase, spread over the first products of this one */
#pragma unroll
        for (int r = 0; r < n_reads; r++) {
          if (r * n_products / (n_reads + 1) != n) continue;
          if (r < half_q)
            read_q(phase & 1 ^ 1, from, next_step, next_half * half_q + r);
          else if (next_half == 0)
            read_p(step & 1 ^ 1, from, next_step, r - half_q);
        }
      }
    }
  }

  /* Row r of 2 of piece i of P, z: its only one; column c of 2 of piece j of Q. */
  static __device__ __forceinline__ int p_of(int i, int r) {
    return p_first() + (is_complex ? i * 8 + p_place::g() : i * 16 + 2 * p_place::g() + r);
  }
  static __device__ __forceinline__ int q_of(int j, int c) {
    const int t = q_place::t();
    return q_first() + j * 8 + (!is_complex && Config::q_k ? t + 4 * c : 2 * t + c);
  }

  /* Of row e of piece i of P, column c of piece j of Q; z: row 0. */
  __device__ __forceinline__ typename Config::sum number(int i, int j, int c, int e, bool turns_imaginary) const {
    const auto &x = sum[i][j];
    if constexpr (is_complex)
      return {x[c], turned(x[2 + c], turns_imaginary ? 0x80000000u : 0)};
    else
      return x[2 * e + c];
  }

  /* To columns of C, those of this warp's group. */
  __device__ __forceinline__ void store(uint32_t to, bool turns_imaginary) const {
    const uint32_t sign = turns_imaginary ? 0x80000000u : 0;
#pragma unroll
    for (int j = 0; j < n_q; j++)
#pragma unroll
      for (int i = 0; i < n_p; i++)
#pragma unroll
        for (int c = 0; c < 2; c++) {
          const auto &x = sum[i][j];
          const uint32_t at = to + element_at(p_of(i, 0), q_of(j, c));
          if constexpr (is_complex)
            st_shared_f64(at, x[c], turned(x[2 + c], sign));
          else if constexpr (Config::is_swapped)
            st_shared_f64(at, x[c]), st_shared_f64(to + element_at(p_of(i, 1), q_of(j, c)), x[2 + c]);
          else
            st_shared_f64(at, x[c], x[2 + c]);
        }
  }
  static __device__ __forceinline__ uint32_t element_at(int of_p, int of_q) {
    const int m = Config::is_swapped ? of_q : of_p, n = Config::is_swapped ? of_p : of_q;
    return uint32_t((n * Config::sum_pitch + m) * 8 * unit);
  }
};

} // namespace ws
#endif
