/* flat_load.cuh - a step of k, 64, of the operands of a flat product, from global memory into a
 * warp's registers as mma.sync wants them, whatever their layout, alignment and edges.
 *
 * Lane l, with g = l / 4 and q = l % 4, gets of each half of 32 k those from 8q to 8q + 7: of the
 * half's first matrix instruction 8q .. 8q + 3, of its second one 8q + 4 .. 8q + 7, in all layouts.
 * The large matrix comes in pieces of 32 x, 32 registers a lane, the few in pieces of 8 y, 8
 * registers a lane:
 *
 *   matrix, k contiguous   16 bytes of each x = g / 2, g / 2 + 4 .. g / 2 + 28: of half g % 2 alone, so
 *                          that eight lanes side by side have a line of 128 bytes, for which the SM
 *                          has but one place among what it waits for
 *   matrix, x contiguous   8 bytes of each k: x = 4g .. 4g + 3
 *   few, k contiguous      16 bytes of y = g, of each half
 *   few, y contiguous      y = g: an element of each of the k
 *
 * load_single brings the same element by element: where lines are not aligned, and at the ends.
 * Beyond k there are zeros; beyond the last x stands the last one once more, beyond the last y
 * there are zeros: neither is stored. */
#ifndef WS_CUDA_FLAT_LOAD_CUH
#define WS_CUDA_FLAT_LOAD_CUH
#include "cuda/ptx/load.cuh"
#include "cuda/rows/flat_rows.h"
#include "cuda/shared/kernel_args.h"

namespace ws {

static __device__ __forceinline__ int flat_g() { return int(threadIdx.x % 32u / 4u); }
static __device__ __forceinline__ int flat_q() { return int(threadIdx.x % 4u); }

/* Two elements, as far as they exist. */
static __device__ __forceinline__ uint32_t flat_pair(const uint16_t *low, const uint16_t *high, bool has_low, bool has_high) {
  uint32_t x = 0, y = 0;
  if (has_low) x = ld_in_order(low);
  if (has_high) y = ld_in_order(high);
  return x | y << 16;
}

/* From a lane's k number j of a step, of 16, to the next: from pointer to pointer, as otherwise the
 * products of all of them with the step would stand in registers. */
static __device__ __forceinline__ const uint16_t *flat_next_k(const uint16_t *at, int64_t step_k, int j) {
  return at + (j == 7 ? 25 * step_k : step_k);
}

template <int PIECES, bool ALONG_K> struct flat_matrix {
  static constexpr int n_lines = ALONG_K ? 8 : 1; /* that a lane reads of a piece */
  using registers = uint32_t[PIECES][32];
  const uint16_t *first; /* this lane's of k = 0 */
  int64_t step_k, next;  /* next: from line to line, or from piece to piece */
  int n_x;               /* from this lane's first to the end */
  bool is_wide;

  static __device__ __forceinline__ int first_k() { return 8 * flat_q() + (ALONG_K ? flat_g() % 2 * 32 : 0); }
  static constexpr int x_step = ALONG_K ? 4 : 32;

  __device__ __forceinline__ flat_matrix(const ws_operand &op, int64_t batch, int64_t x_first, int64_t size)
      : step_k(op.step_k), next(x_step * op.step_mn) {
    const int n_all = int(ws_min(PIECES * 32, size - x_first)), wanted = ALONG_K ? flat_g() / 2 : 4 * flat_g(),
              x = min(wanted, ALONG_K ? n_all - 1 : (n_all - 1) & ~3);
    first = static_cast<const uint16_t *>(op.data) + batch * op.stride + (x_first + x) * op.step_mn + first_k() * op.step_k;
    n_x = n_all - x;
    is_wide = ALONG_K ? op.mode == WS_COPY_VECTORS_K : op.mode == WS_COPY_VECTORS_MN && n_all % 4 == 0;
  }

  /* The line after line i; the same, if there is none. */
  __device__ __forceinline__ const uint16_t *after(const uint16_t *line, int i) const {
    return (i + 1) * x_step < n_x ? line + next : line;
  }

  __device__ __forceinline__ void load(registers &to, int64_t k) const {
    const uint16_t *line = first + k * step_k;
#pragma unroll
    for (int i = 0; i < PIECES * n_lines; i++, line = after(line, i - 1)) {
      if constexpr (ALONG_K) {
        const uint4 eight = ld_stream_four(line);
        uint32_t *own = &to[i / 8][i % 8 * 4];
        own[0] = eight.x, own[1] = eight.y, own[2] = eight.z, own[3] = eight.w;
      } else {
        const uint16_t *at = line;
#pragma unroll
        for (int j = 0; j < 16; j++, at = flat_next_k(at, step_k, j - 1)) {
          const uint2 four = ld_stream_two(at);
          to[i][2 * j] = four.x, to[i][2 * j + 1] = four.y;
        }
      }
    }
  }

  /* n_k: from k on to the end */
  __device__ __forceinline__ void load_single(registers &to, int64_t k, int n_k) const {
    const int own_k = n_k - first_k();
    const uint16_t *line = first + k * step_k;
#pragma unroll
    for (int i = 0; i < PIECES * n_lines; i++, line = after(line, i - 1)) {
      if constexpr (ALONG_K) {
#pragma unroll
        for (int j = 0; j < 8; j += 2) to[i / 8][i % 8 * 4 + j / 2] = flat_pair(line + j, line + j + 1, j < own_k, j + 1 < own_k);
      } else {
        const int x_left = n_x - 1 - i * x_step;
        const uint16_t *at = line;
#pragma unroll
        for (int j = 0; j < 16; j++, at = flat_next_k(at, step_k, j - 1)) {
          const bool is_there = j / 8 * 32 + j % 8 < own_k;
#pragma unroll
          for (int x = 0; x < 4; x += 2)
            to[i][2 * j + x / 2] = flat_pair(at + max(0, min(x, x_left)), at + max(0, min(x + 1, x_left)), is_there, is_there);
        }
      }
    }
  }

  /* Instructions of a half have 16 rows each: with k contiguous they are 8 x of the half and the
   * same 8 of the other half, which do not count; so there are four of them, else two. */
  static constexpr int n_fragments = ALONG_K ? 4 : 2;

  /* What instruction `second` of the half takes of a fragment: row g of it is x_of, row g + 8 the
   * one x_apart on. */
  static __device__ __forceinline__ void fragment(uint32_t (&a)[4], const uint32_t (&piece)[32], int half, int second,
                                                  int fragment) {
    if constexpr (ALONG_K) {
      const int row = 8 * fragment, k = 2 * second;
      a[0] = piece[row + k], a[1] = piece[row + 4 + k], a[2] = piece[row + k + 1], a[3] = piece[row + 4 + k + 1];
    } else {
      const uint32_t which = fragment == 0 ? 0x5410 : 0x7632;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int k = 16 * half + 8 * second + i / 2 * 4 + i % 2;
        a[i] = __byte_perm(piece[k], piece[k + 2], which);
      }
    }
  }
  static constexpr int x_apart = ALONG_K ? 4 : 2;
  static __device__ __forceinline__ int x_of(int fragment) {
    return ALONG_K ? 8 * fragment + flat_g() / 2 : 4 * flat_g() + fragment;
  }
};

template <int PIECES, bool ALONG_K> struct flat_few {
  using registers = uint32_t[2][PIECES][4];
  const uint16_t *first;
  int64_t step_k, step_y; /* step_y: from piece to piece */
  int n_y;                /* from this lane's first on */
  bool is_wide;

  __device__ __forceinline__ flat_few(const ws_operand &op, int64_t batch, int64_t y_first, int64_t size)
      : step_k(op.step_k), step_y(8 * op.step_mn), n_y(int(ws_min(PIECES * 8, size - y_first)) - flat_g()) {
    first = static_cast<const uint16_t *>(op.data) + batch * op.stride + (y_first + (n_y > 0 ? flat_g() : 0)) * op.step_mn +
            8 * flat_q() * op.step_k;
    is_wide = !ALONG_K || op.mode == WS_COPY_VECTORS_K;
  }

  __device__ __forceinline__ void load(registers &to, int64_t k) const {
    if constexpr (ALONG_K) {
#pragma unroll
      for (int p = 0; p < PIECES; p++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
          uint4 eight = {};
          if (8 * p < n_y) eight = __ldg(reinterpret_cast<const uint4 *>(first + p * step_y + k + 32 * half));
          to[half][p][0] = eight.x, to[half][p][1] = eight.y, to[half][p][2] = eight.z, to[half][p][3] = eight.w;
        }
    } else {
      load_single(to, k, WS_FLAT_STEP);
    }
  }

  __device__ __forceinline__ void load_single(registers &to, int64_t k, int n_k) const {
    const int own_k = n_k - 8 * flat_q();
    const uint16_t *line = first + k * step_k;
#pragma unroll
    for (int p = 0; p < PIECES; p++, line += step_y) {
      const uint16_t *at = line;
#pragma unroll
      for (int j = 0; j < 16; j += 2) {
        const int of_k = j / 8 * 32 + j % 8;
        const uint16_t *high = at + step_k;
        to[j / 8][p][j % 8 / 2] = flat_pair(at, high, 8 * p < n_y && of_k < own_k, 8 * p < n_y && of_k + 1 < own_k);
        at = flat_next_k(high, step_k, j + 1);
      }
    }
  }
};

} // namespace ws
#endif
