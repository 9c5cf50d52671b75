/* teaching.cuh - four small sgemm kernels that show what tiling and coarsening save (bytes asked of
 * global memory), and a product of a vector and a scalar, in which there is nothing to save.
 *
 * C = A B, square, row-major (element (i, j) of X is at x[i * n + j]), float, n a multiple of 32
 * (coarse: of 32 * COARSE; the host checks, teaching_fits). They are for reading and for
 * bench/gpu/intensity.cu and coarsening.cu; the library's kernels are in gemm.cuh.
 * With COUNT each load of global memory is counted where it is made; without, nothing of the
 * counting is left in the code.
 *
 *     kernel       a block makes            it loads                               for operations          a byte
 *     simple       32 x 32 of C             2 elements, each thread                2, each thread          1/4
 *     tiled32      32 x 32 of C             2 tiles, each phase                    2 x 32^3                8
 *     tiled32_c    32 x (32 COARSE) of C    1 + COARSE tiles, each phase           COARSE x 2 x 32^3       16 COARSE / (1 + COARSE)
 *     held32_c     32 x (32 COARSE) of C    the same                               the same                the same
 *
 * A tile is 32 x 32 elements, 4096 bytes; a phase is 32 of the n steps of k. */
#ifndef WS_CUDA_TEACHING_CUH
#define WS_CUDA_TEACHING_CUH
#include <cstdint>

namespace ws::teaching {

constexpr int tile_width = 32;

/* Blocks are tile_width x tile_width threads; the grid is n / (32 * coarse) x n / 32 blocks.
 * Indices are int: n * n < 2^31. */
inline bool teaching_fits(int64_t n, int coarse) { return n > 0 && n % (tile_width * coarse) == 0 && n * n < (int64_t(1) << 31); }

/* Loads of one thread. */
template <bool COUNT> struct loads {
  unsigned long long n_loads = 0;
  __device__ __forceinline__ float operator()(const float *p) {
    if constexpr (COUNT) n_loads++;
    return *p;
  }
  __device__ __forceinline__ void add_to(unsigned long long *n_total) const {
    if constexpr (COUNT) atomicAdd(n_total, n_loads);
  }
};

/* One thread, one element, straight from global memory: row `row` of A and column `col` of B are
 * read once for each element of C. */
template <bool COUNT>
__global__ void __launch_bounds__(tile_width *tile_width)
    simple(const float *a, const float *b, float *c, int n, unsigned long long *n_total) {
  const int row = blockIdx.y * tile_width + threadIdx.y, col = blockIdx.x * tile_width + threadIdx.x;
  loads<COUNT> load;
  float sum = 0;
  for (int k = 0; k < n; k++) sum += load(&a[row * n + k]) * load(&b[k * n + col]);
  c[row * n + col] = sum;
  load.add_to(n_total);
}

/* One thread, one element; the block brings a tile of A and a tile of B to shared memory (8 KiB) in
 * each phase, and each element of them is used by 32 threads. Barriers: both tiles full; both tiles
 * free. */
template <bool COUNT>
__global__ void __launch_bounds__(tile_width *tile_width)
    tiled32(const float *a, const float *b, float *c, int n, unsigned long long *n_total) {
  __shared__ float a_tile[tile_width][tile_width], b_tile[tile_width][tile_width];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * tile_width + ty, col = blockIdx.x * tile_width + tx;
  loads<COUNT> load;
  float sum = 0;
  for (int phase = 0; phase < n / tile_width; phase++) {
    a_tile[ty][tx] = load(&a[row * n + phase * tile_width + tx]);
    b_tile[ty][tx] = load(&b[(phase * tile_width + ty) * n + col]);
    __syncthreads();
    for (int k = 0; k < tile_width; k++) sum += a_tile[ty][k] * b_tile[k][tx];
    __syncthreads();
  }
  c[row * n + col] = sum;
  load.add_to(n_total);
}

/* One thread, COARSE elements of one row, 32 columns apart: the tile of A of a phase stays while
 * COARSE tiles of B pass by.
 *
 *                    B tile 0   B tile 1 ..     one after the other through one place in shared memory
 *        A tile      C tile 0   C tile 1 ..     a sum in a register for each
 *
 * Barriers: A tile (first time) and B tile full; B tile free, and after the last of a phase A tile
 * too. */
template <int COARSE, bool COUNT>
__global__ void __launch_bounds__(tile_width *tile_width)
    tiled32_c(const float *a, const float *b, float *c, int n, unsigned long long *n_total) {
  __shared__ float a_tile[tile_width][tile_width], b_tile[tile_width][tile_width];
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * tile_width + ty, first_col = blockIdx.x * tile_width * COARSE + tx;
  loads<COUNT> load;
  float sums[COARSE] = {};
  for (int phase = 0; phase < n / tile_width; phase++) {
    a_tile[ty][tx] = load(&a[row * n + phase * tile_width + tx]);
#pragma unroll
    for (int i = 0; i < COARSE; i++) {
      b_tile[ty][tx] = load(&b[(phase * tile_width + ty) * n + first_col + i * tile_width]);
      __syncthreads();
      for (int k = 0; k < tile_width; k++) sums[i] += a_tile[ty][k] * b_tile[k][tx];
      __syncthreads();
    }
  }
#pragma unroll
  for (int i = 0; i < COARSE; i++) c[row * n + first_col + i * tile_width] = sums[i];
  load.add_to(n_total);
}

constexpr int held_rows = 4; /* elements of each tile of C that a thread of held32_c owns */

constexpr int held_shared_bytes(int coarse) { return (1 + coarse) * tile_width * tile_width * int(sizeof(float)); }

/* As tiled32_c, but what COARSE multiplies is scarce: all COARSE tiles of B lie in shared memory at
 * once, and a thread has 4 COARSE sums. Blocks are 32 x 8 threads; thread (x, y) owns rows y, y +
 * 8, y + 16, y + 24 of column x of each tile of C.
 *
 *                    B tile 0   B tile 1 ..     side by side: COARSE x 4096 bytes
 *        A tile      C tile 0   C tile 1 ..     4 sums in registers for each
 *
 * Two barriers a phase, whatever COARSE is: all tiles full; all tiles free. */
template <int COARSE>
__global__ void __launch_bounds__(tile_width *tile_width / held_rows) held32_c(const float *a, const float *b, float *c, int n) {
  extern __shared__ float tiles[];
  constexpr int row_step = tile_width / held_rows, b_pitch = COARSE * tile_width;
  float *a_tile = tiles, *b_tiles = tiles + tile_width * tile_width;
  const int tx = threadIdx.x, ty = threadIdx.y;
  const int row = blockIdx.y * tile_width + ty, first_col = blockIdx.x * b_pitch + tx;
  float sums[held_rows][COARSE] = {};
  for (int phase = 0; phase < n / tile_width; phase++) {
#pragma unroll
    for (int r = 0; r < held_rows; r++) {
      const int y = ty + r * row_step;
      a_tile[y * tile_width + tx] = a[(row + r * row_step) * n + phase * tile_width + tx];
#pragma unroll
      for (int i = 0; i < COARSE; i++)
        b_tiles[y * b_pitch + i * tile_width + tx] = b[(phase * tile_width + y) * n + first_col + i * tile_width];
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < tile_width; k++) {
#pragma unroll
      for (int i = 0; i < COARSE; i++) {
        const float x = b_tiles[k * b_pitch + i * tile_width + tx];
#pragma unroll
        for (int r = 0; r < held_rows; r++) sums[r][i] += a_tile[(ty + r * row_step) * tile_width + k] * x;
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < held_rows; r++)
#pragma unroll
    for (int i = 0; i < COARSE; i++) c[(row + r * row_step) * n + first_col + i * tile_width] = sums[r][i];
}

constexpr int scale_threads = 256;

__device__ inline float times(float alpha, float x) { return alpha * x; }
__device__ inline float4 times(float alpha, float4 x) { return {alpha * x.x, alpha * x.y, alpha * x.z, alpha * x.w}; }

/* c = alpha a. One thread, COARSE elements, a block's width apart, so that each access of a warp is
 * one run of memory. No element is needed by two threads: there is no price of parallelism that
 * COARSE could save. The grid is n / (256 COARSE) blocks, exactly. __restrict__, else each load
 * would wait for the store before it. */
template <typename T, int COARSE>
__global__ void __launch_bounds__(scale_threads) scale(float alpha, const T *__restrict__ a, T *__restrict__ c) {
  const int64_t first = int64_t(blockIdx.x) * scale_threads * COARSE + threadIdx.x;
#pragma unroll
  for (int i = 0; i < COARSE; i++) c[first + i * scale_threads] = times(alpha, a[first + i * scale_threads]);
}

} // namespace ws::teaching
#endif
