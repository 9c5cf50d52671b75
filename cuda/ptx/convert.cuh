/* convert.cuh - floats to 16-bit numbers and back, and to TF32 (PTX ISA: cvt). One instruction each; rounded to
 * nearest even, what is too large becomes Inf, subnormals are kept, a NaN stays one. */
#ifndef WS_CUDA_PTX_CONVERT_CUH
#define WS_CUDA_PTX_CONVERT_CUH
#include <cstdint>
#include <cuda_fp16.h>
#include <type_traits>

namespace ws {

/* Two numbers in 32 bits, the first one in the lower half. */
__device__ __forceinline__ uint32_t f16x2_of(float first, float second) {
  uint32_t bits;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}

__device__ __forceinline__ uint32_t bf16x2_of(float first, float second) {
  uint32_t bits;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(second), "f"(first));
  return bits;
}

/* Of __half or __nv_bfloat16. */
template <class Element> __device__ __forceinline__ uint32_t half_pair_of(float first, float second) {
  return std::is_same_v<Element, __half> ? f16x2_of(first, second) : bf16x2_of(first, second);
}

__device__ __forceinline__ float float_of_f16(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

/* The nearest number of TF32, as TMA rounds; compute capability 9.0 or later. */
__device__ __forceinline__ float tf32_of(float x) {
  uint32_t bits;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}

/* Exact without an instruction of its own: a bfloat16 is the upper half of a float. */
__device__ __forceinline__ float float_of_bf16(uint16_t bits) { return __uint_as_float(uint32_t(bits) << 16); }

} // namespace ws
#endif
