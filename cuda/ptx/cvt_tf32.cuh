/* cvt_tf32.cuh - the rounding of a float to TF32 (PTX ISA: cvt.rn.tf32.f32; sm_90): to nearest, ties to even, as TMA rounds. */
#ifndef WS_CUDA_PTX_CVT_TF32_CUH
#define WS_CUDA_PTX_CVT_TF32_CUH
#include <cstdint>

namespace ws {

__device__ __forceinline__ float tf32_of(float x) {
  uint32_t bits;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return __uint_as_float(bits);
}

} // namespace ws
#endif
