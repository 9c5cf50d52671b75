/* math.cuh - approximations of the special function unit (PTX ISA). One instruction each, named as
 * in the manual. */
#ifndef WS_CUDA_PTX_MATH_CUH
#define WS_CUDA_PTX_MATH_CUH

namespace ws {

/* 2^x, relative error below 2^-22; Inf, 0 (also in place of subnormal numbers) and NaN where they
 * belong. */
__device__ __forceinline__ float ex2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

/* 1 / x, within an ulp; 0 in place of subnormal numbers. */
__device__ __forceinline__ float rcp_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

} // namespace ws
#endif
