/* mma16_fragments.cuh - fragments of 16 x 16 elements in shared memory, as mma16.cuh reads them: 16 along
 * m or n, 16 of k, four matrices of 8 x 8 (ldmatrix).
 *
 *         k 0..7   k 8..15      BY_X: rows in shared memory are m or n, and the matrices come as they are; else rows are k, and they
 *   x 0..7   [0]     [2]        come transposed. In both ways register i of a lane is of matrix i: the element g = lane / 4 along x,
 *   x 8..15  [1]     [3]        and k of 2 (lane % 4) and the next. */
#ifndef WS_CUDA_MAINLOOP_MMA16_FRAGMENTS_CUH
#define WS_CUDA_MAINLOOP_MMA16_FRAGMENTS_CUH
#include "cuda/ptx/mma16.cuh"

namespace ws {

template <bool BY_X> struct mma16_fragment {
  /* Element (x, k), in bytes; pitch: elements from row to row. */
  static constexpr __device__ __forceinline__ uint32_t offset(int x, int k, int pitch) {
    return uint32_t(BY_X ? x * pitch + k : k * pitch + x) * uint32_t(sizeof(uint16_t));
  }

  /* The row that this lane names: row lane % 8 of matrix lane / 8. */
  static __device__ __forceinline__ uint32_t own_row(int x_first, int pitch) {
    const int lane = int(threadIdx.x % 32u), row = lane & 7, x = lane & 8, k = lane >> 4 << 3;
    return offset(x_first + x + (BY_X ? row : 0), k + (BY_X ? 0 : row), pitch);
  }

  static __device__ __forceinline__ void read(uint32_t (&to)[4], uint32_t row) {
    if constexpr (BY_X)
      ldmatrix_x4(to, row);
    else
      ldmatrix_x4_trans(to, row);
  }
};

} // namespace ws
#endif
