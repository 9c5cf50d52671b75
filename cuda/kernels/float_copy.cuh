/* float_copy.cuh - copies FP32 operands that tiled rows cannot read 16 bytes at a time (k contiguous, or not aligned) to where m or n is
 * contiguous and each column is aligned to 128 bytes. A block copies 128 x 32 elements (m or n by k) at a time; transposed operands go
 * through shared memory. */
#ifndef WS_CUDA_FLOAT_COPY_CUH
#define WS_CUDA_FLOAT_COPY_CUH
#include "core/tile.h"
#include "cuda/sched/fixed.cuh"
#include "cuda/shared/float_copy_args.h"

namespace ws {

struct float_copy {
  static constexpr int n_x = WS_FLOAT_COPY_X, n_k = WS_FLOAT_COPY_K, n_warps = WS_FLOAT_COPY_THREADS / 32;
  static constexpr int x_pitch = n_x + 1; /* a warp's writes along k meet all banks */

  static __device__ __forceinline__ int lane() { return int(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return int(threadIdx.x) / 32; }

  /* Of what is left of an operand from the share's first element on. */
  static __device__ __forceinline__ void straight(const float *from, float *to, const ws_float_copy_operand &op, int64_t left_x,
                                                  int64_t left_k) {
    constexpr int rows = n_k / n_warps, columns = n_x / 32;
    float y[rows][columns];
#pragma unroll
    for (int r = 0; r < rows; r++)
#pragma unroll
      for (int c = 0; c < columns; c++) {
        const int k = warp() + r * n_warps, x = lane() + 32 * c;
        y[r][c] = k < left_k && x < left_x ? from[k * op.ld + x] : 0;
      }
#pragma unroll
    for (int r = 0; r < rows; r++)
#pragma unroll
      for (int c = 0; c < columns; c++) {
        const int k = warp() + r * n_warps, x = lane() + 32 * c;
        if (k < left_k && x < left_x) to[k * op.pitch + x] = y[r][c];
      }
  }

  static __device__ __forceinline__ void transposed(const float *from, float *to, const ws_float_copy_operand &op, int64_t left_x,
                                                    int64_t left_k, float (&tile)[n_k][x_pitch]) {
    constexpr int lines = n_x / n_warps, rows = n_k / n_warps, columns = n_x / 32;
    float y[lines];
#pragma unroll
    for (int i = 0; i < lines; i++) {
      const int x = warp() + i * n_warps;
      y[i] = lane() < left_k && x < left_x ? from[x * op.ld + lane()] : 0;
    }
    __syncthreads(); /* the share before has been read */
#pragma unroll
    for (int i = 0; i < lines; i++) tile[lane()][warp() + i * n_warps] = y[i];
    __syncthreads();
#pragma unroll
    for (int r = 0; r < rows; r++)
#pragma unroll
      for (int c = 0; c < columns; c++) {
        const int k = warp() + r * n_warps, x = lane() + 32 * c;
        if (k < left_k && x < left_x) to[k * op.pitch + x] = tile[k][x];
      }
  }

  static __device__ __forceinline__ void run(const ws_float_copy_args &args) {
    __shared__ float tile[n_k][x_pitch];
    int64_t share = worker_idx(); /* of all operands, one after the other */
    for (const ws_float_copy_operand &op : args.operand) {
      const int64_t along_x = ws_ceil_div(op.n_x, n_x), along_k = ws_ceil_div(op.n_k, n_k),
                    n_shares = along_x * along_k * op.n_batch;
      for (; share < n_shares; share += n_workers()) {
        const int64_t batch = share / (along_x * along_k), in_product = share - batch * along_x * along_k;
        const int64_t x = in_product % along_x * n_x, k = in_product / along_x * n_k;
        float *const to = op.to + (batch * op.n_k + k) * op.pitch + x;
        if (op.transposed)
          transposed(op.from + batch * op.stride + x * op.ld + k, to, op, op.n_x - x, op.n_k - k, tile);
        else
          straight(op.from + batch * op.stride + k * op.ld + x, to, op, op.n_x - x, op.n_k - k);
      }
      share -= n_shares;
    }
  }
};

} // namespace ws
#endif
