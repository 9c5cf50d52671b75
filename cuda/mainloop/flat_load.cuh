/* flat_load.cuh - a step of k, 32, of the operands of a flat product, from global memory into a
 * warp's registers as mma.sync wants them, whatever their layout, alignment and edges.
 *
 * Lane l, with g = l / 4 and q = l % 4, gets k = 8q .. 8q + 7 of each step: of the first matrix
 * instruction 8q .. 8q + 3, of the second one 8q + 4 .. 8q + 7, in all layouts. The large matrix
 * comes in pieces of 32 x, 16 registers a lane, the few in pieces of 8 y, 4 registers:
 *
 *   matrix, k contiguous   x = g, g + 8, g + 16, g + 24: 16 bytes of each line; four lanes side by side
 *   matrix, x contiguous   x = 4g .. 4g + 3: 8 bytes of each of the k; eight lanes side by side
 *   few, k contiguous      y = g: 16 bytes
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

/* Two neighbours along k. */
static __device__ __forceinline__ uint32_t flat_pair(const uint16_t *first, int64_t step, int n_k) {
  const uint32_t low = n_k > 0 ? __ldg(first) : 0, high = n_k > 1 ? __ldg(first + step) : 0;
  return low | high << 16;
}

template <int PIECES, bool ALONG_K> struct flat_matrix {
  static constexpr int n_lines = ALONG_K ? 4 : 1; /* of a piece, where a lane begins to read */
  using registers = uint32_t[PIECES][16];
  const uint16_t *line[PIECES * n_lines];
  int64_t step_k;
  int x_left[ALONG_K ? 1 : PIECES]; /* from this lane's first to the last one */
  bool is_wide;

  __device__ __forceinline__ flat_matrix(const ws_operand &op, int64_t batch, int64_t x_first, int64_t size) : step_k(op.step_k) {
    const auto *data =
        static_cast<const uint16_t *>(op.data) + batch * op.stride + x_first * op.step_mn + 8 * flat_q() * op.step_k;
    const int last = int(ws_min(PIECES * 32, size - x_first)) - 1;
#pragma unroll
    for (int i = 0; i < PIECES * n_lines; i++) {
      const int x = ALONG_K ? min(8 * i + flat_g(), last) : min(32 * i + 4 * flat_g(), last & ~3);
      line[i] = data + x * op.step_mn;
      if constexpr (!ALONG_K) x_left[i] = last - x;
    }
    is_wide = ALONG_K ? op.mode == WS_COPY_VECTORS_K : op.mode == WS_COPY_VECTORS_MN && (last & 3) == 3;
  }

  __device__ __forceinline__ void load(registers &to, int64_t k) const {
#pragma unroll
    for (int p = 0; p < PIECES; p++)
      if constexpr (ALONG_K) {
#pragma unroll
        for (int r = 0; r < 4; r++) {
          const uint4 eight = ld_stream_four(line[4 * p + r] + k);
          to[p][4 * r] = eight.x, to[p][4 * r + 1] = eight.y, to[p][4 * r + 2] = eight.z, to[p][4 * r + 3] = eight.w;
        }
      } else {
#pragma unroll
        for (int j = 0; j < 8; j++) {
          const uint2 four = ld_stream_two(line[p] + (k + j) * step_k);
          to[p][2 * j] = four.x, to[p][2 * j + 1] = four.y;
        }
      }
  }

  /* n_k: from k on to the end */
  __device__ __forceinline__ void load_single(registers &to, int64_t k, int n_k) const {
    const int own_k = n_k - 8 * flat_q();
#pragma unroll
    for (int p = 0; p < PIECES; p++)
      if constexpr (ALONG_K) {
#pragma unroll
        for (int i = 0; i < 16; i++) to[p][i] = flat_pair(line[4 * p + i / 4] + k + i % 4 * 2, 1, own_k - i % 4 * 2);
      } else {
#pragma unroll
        for (int i = 0; i < 16; i++) {
          const uint16_t *at = line[p] + (k + i / 2) * step_k;
          const int x = i % 2 * 2;
          const uint32_t low = i / 2 < own_k ? __ldg(at + min(x, x_left[p])) : 0,
                         high = i / 2 < own_k ? __ldg(at + min(x + 1, x_left[p])) : 0;
          to[p][i] = low | high << 16;
        }
      }
  }

  /* What the instruction `half` of the step takes of 16 of a piece's x: row g of it is x_of(half_piece), row g + 8 the
   * one x_apart on. */
  static __device__ __forceinline__ void fragment(uint32_t (&a)[4], const uint32_t (&piece)[16], int half, int half_piece) {
    if constexpr (ALONG_K) {
      const int row = 8 * half_piece, k = 2 * half;
      a[0] = piece[row + k], a[1] = piece[row + 4 + k], a[2] = piece[row + k + 1], a[3] = piece[row + 4 + k + 1];
    } else {
      const uint32_t which = half_piece == 0 ? 0x5410 : 0x7632;
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int k = 8 * half + i / 2 * 4 + i % 2;
        a[i] = __byte_perm(piece[k], piece[k + 2], which);
      }
    }
  }
  static constexpr int x_apart = ALONG_K ? 8 : 2;
  static __device__ __forceinline__ int x_of(int half_piece) {
    return ALONG_K ? 16 * half_piece + flat_g() : 4 * flat_g() + half_piece;
  }
};

template <int PIECES, bool ALONG_K> struct flat_few {
  using registers = uint32_t[PIECES][4];
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
      for (int p = 0; p < PIECES; p++) {
        uint4 eight = {};
        if (8 * p < n_y) eight = __ldg(reinterpret_cast<const uint4 *>(first + p * step_y + k));
        to[p][0] = eight.x, to[p][1] = eight.y, to[p][2] = eight.z, to[p][3] = eight.w;
      }
    } else {
      load_single(to, k, WS_FLAT_STEP);
    }
  }

  __device__ __forceinline__ void load_single(registers &to, int64_t k, int n_k) const {
    const int own_k = n_k - 8 * flat_q();
#pragma unroll
    for (int p = 0; p < PIECES; p++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const uint16_t *at = first + p * step_y + (k + 2 * i) * step_k;
        to[p][i] = 8 * p < n_y ? flat_pair(at, step_k, own_k - 2 * i) : 0;
      }
  }
};

} // namespace ws
#endif
