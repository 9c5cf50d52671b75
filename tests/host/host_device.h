/* host_device.h - what code of cuda/ needs to be compiled and run on the host: CUDA's words, and in
 * place of the PTX of copies and conversions functions that do the same. One block of threads at a
 * time, as fibers.
 *
 * Stricter than hardware in three things: a thread runs alone from barrier to barrier, in either
 * order of the threads; an asynchronous copy is made when it is waited for and no sooner; and an
 * address that an instruction would refuse ends the test. To be included before anything of
 * cuda/. */
#ifndef WSGEMM_TESTS_HOST_DEVICE_H
#define WSGEMM_TESTS_HOST_DEVICE_H
#include <cstdint>
#include <functional>
#include <math.h> /* fma and isfinite of floats without std:: */
#include <string.h>
#include <vector>

#include "support/tf32.h"

/* ---- words of the language ------------------------------------------------------------------- */

#define __device__
#define __host__
#define __global__
#define __shared__
#define __forceinline__ inline
#define __noinline__
#define __align__(bytes) __attribute__((aligned(bytes)))

struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct double2 {
  double x, y;
};
struct uint2 {
  uint32_t x, y;
};

struct host_dim {
  unsigned x;
};
extern host_dim threadIdx, blockIdx, blockDim, gridDim;
void __syncthreads();
int __syncthreads_or(int);
void __syncwarp();
double host_from_lane(double x, int lane);
template <class Real> Real __shfl_sync(uint32_t, Real x, int lane) { return Real(host_from_lane(double(x), lane)); }
template <class Real> Real __shfl_xor_sync(uint32_t, Real x, int lanes) {
  return Real(host_from_lane(double(x), int(threadIdx.x % 32) ^ lanes));
}
template <class Real> Real __shfl_up_sync(uint32_t, Real x, int lanes) {
  const int lane = int(threadIdx.x % 32);
  return Real(host_from_lane(double(x), lane < lanes ? lane : lane - lanes));
}
inline int __any_sync(uint32_t, int is_so) {
  double any = 0;
  for (int lane = 0; lane < 32; lane++) any += host_from_lane(is_so != 0, lane);
  return any != 0;
}
/* Known by name alone: what a warp does together, and atomics. */
uint32_t __reduce_max_sync(uint32_t, uint32_t);
template <class T, class U> T atomicAdd(T *, U);
template <class T, class U> T atomicOr(T *, U);
size_t __cvta_generic_to_global(const void *);

inline int min(int x, int y) { return x < y ? x : y; }
inline uint32_t min(uint32_t x, uint32_t y) { return x < y ? x : y; }
inline int max(int x, int y) { return x > y ? x : y; }
template <class T> T __ldg(const T *p) { return *p; }
inline float __int_as_float(int bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
inline uint32_t __float_as_uint(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __uint_as_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}
inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector) {
  const uint64_t both = uint64_t(y) << 32 | x;
  uint32_t result = 0;
  for (int i = 0; i < 4; i++) result |= uint32_t(both >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  return result;
}
inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }

/* ---- ptx/copy.cuh: shared memory is host_shared ---------------------------------------------- */

#define WS_CUDA_PTX_COPY_CUH
extern unsigned char *host_shared;
void host_copy_later(uint32_t to, const void *from, int n_bytes, int n_bytes_to);
void host_copies_group();
void host_copies_wait(int n_newest);

namespace ws {
inline uint32_t shared_address(const void *p) { return uint32_t(static_cast<const unsigned char *>(p) - host_shared); }
inline void cp_async_16(uint32_t to, const void *from, int n_bytes) { host_copy_later(to, from, n_bytes, 16); }
template <int BYTES> void cp_async(uint32_t to, const void *from, int n_bytes) { host_copy_later(to, from, n_bytes, BYTES); }
inline void store_shared(uint32_t to, uint32_t bits) { memcpy(host_shared + to, &bits, sizeof bits); }
inline void cp_async_commit() { host_copies_group(); }
template <int N> void cp_async_wait() { host_copies_wait(N); }
} // namespace ws

/* ---- ptx/barrier.cuh --------------------------------------------------------------------------- */

#define WS_CUDA_PTX_BARRIER_CUH
namespace ws {
void host_barrier_sync(int which, int n_threads);
void host_barrier_arrive(int which, int n_threads);
template <int BARRIER> void barrier_sync(int n_threads) { host_barrier_sync(BARRIER, n_threads); }
template <int BARRIER> void barrier_arrive(int n_threads) { host_barrier_arrive(BARRIER, n_threads); }
} // namespace ws

/* ---- ptx/convert.cuh, ptx/math.cuh ----------------------------------------------------------- */

#define WS_CUDA_PTX_CONVERT_CUH
#define WS_CUDA_PTX_MATH_CUH
namespace ws {
float float_of_f16(uint16_t bits);
float float_of_bf16(uint16_t bits);
uint16_t f16_of(float x);
uint16_t bf16_of(float x);
inline uint32_t f16x2_of(float first, float second) { return f16_of(first) | uint32_t(f16_of(second)) << 16; }
inline uint32_t bf16x2_of(float first, float second) { return bf16_of(first) | uint32_t(bf16_of(second)) << 16; }
inline float tf32_of(float x) { return nearest_tf32(x); }
inline float ex2_approx(float x) { return exp2f(x); }
inline float rcp_approx(float x) { return 1 / x; }
} // namespace ws

/* ---- the block ------------------------------------------------------------------------------- */

/* Runs program() as every thread of a block with so much shared memory, filled with bytes that are
 * no number. is_backwards: from the last thread to the first. false: not all came to the same
 * number of __syncthreads, or somebody came to a barrier that was never complete. Ends the test
 * where all threads wait. */
bool host_run_block(int n_threads, int shared_bytes, bool is_backwards, const std::function<void()> &program);

#endif
