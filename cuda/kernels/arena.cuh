/* arena.cuh - what tuning needs on the device besides the products: operands of random numbers, and
 * whether two matrices have the same bits. Any number of blocks of 256 threads. */
#ifndef WS_CUDA_ARENA_KERNELS_CUH
#define WS_CUDA_ARENA_KERNELS_CUH
#include "cuda/sched/fixed.cuh"
#include "cuda/shared/arena_args.h"

namespace ws {

/* A number of the index and the seed alone: splitmix64's mixing (Steele, Lea, Flood 2014). */
__device__ __forceinline__ uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

/* Numbers between 2^-5 and 1 and their negatives: sums of thousands stay in the range of all
 * types. */
__device__ __forceinline__ void fill_matrix(const ws_arena_args &args) {
  const uint64_t step = uint64_t(n_workers()) * blockDim.x;
  for (uint64_t i = uint64_t(worker_idx()) * blockDim.x + threadIdx.x; i < args.n; i += step) {
    const uint64_t x = mixed(i ^ args.seed << 40);
    const double unit = (double(x >> 11) * 0x1p-53 + 0x1p-5) / (1 + 0x1p-5), value = x & 1 ? unit : -unit;
    const uint32_t sign = uint32_t(x & 0x8000), exponent = uint32_t(x >> 32 & 3);
    switch (args.real) {
    case WS_REAL_F16:
      static_cast<uint16_t *>(args.x)[i] = uint16_t(sign | (11 + exponent) << 10 | (x & 0x3ff));
      break;
    case WS_REAL_BF16:
      static_cast<uint16_t *>(args.x)[i] = uint16_t(sign | (123 + exponent) << 7 | (x & 0x7f));
      break;
    case WS_REAL_F32:
      static_cast<float *>(args.x)[i] = float(value);
      break;
    default:
      static_cast<double *>(args.x)[i] = value;
    }
  }
}

__device__ __forceinline__ void compare_matrices(const ws_arena_args &args) {
  const uint64_t step = uint64_t(n_workers()) * blockDim.x;
  const uint32_t *x = static_cast<const uint32_t *>(args.x), *y = static_cast<const uint32_t *>(args.y);
  bool differs = false;
  for (uint64_t i = uint64_t(worker_idx()) * blockDim.x + threadIdx.x; i < args.n; i += step) differs |= x[i] != y[i];
  if (__syncthreads_or(differs) && threadIdx.x == 0) atomicAdd(args.n_different, 1u);
}

} // namespace ws
#endif
