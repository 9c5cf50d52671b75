/* half_c.cuh - C of products of 16-bit elements as it is in memory: f16, bf16 or f32, whatever A
 * and B are, which only the call says. It is computed with as floats; storing rounds once. */
#ifndef WS_CUDA_HALF_C_CUH
#define WS_CUDA_HALF_C_CUH
#include "cuda/ptx/convert.cuh"
#include "cuda/shared/epilogue_args.h"

namespace ws {

/* Points at an element of C; or of a bias or a residual, of the same types. */
struct half_c {
  unsigned char *at;
  int32_t type; /* ws_half_c_type */

  __device__ __forceinline__ half_c operator+(int64_t n) const { return {at + (type == WS_HALF_C_F32 ? n * 4 : n * 2), type}; }
  template <class T> __device__ __forceinline__ T &as() const { return *reinterpret_cast<T *>(at); }
  __device__ __forceinline__ float widened(uint32_t bits) const {
    return type == WS_HALF_C_F16 ? float_of_f16(uint16_t(bits)) : float_of_bf16(uint16_t(bits));
  }
  __device__ __forceinline__ uint32_t packed(float first, float second) const {
    return type == WS_HALF_C_F16 ? f16x2_of(first, second) : bf16x2_of(first, second);
  }

  __device__ __forceinline__ float load() const { return type == WS_HALF_C_F32 ? as<float>() : widened(as<uint16_t>()); }
  __device__ __forceinline__ void store(float x) const {
    if (type == WS_HALF_C_F32)
      as<float>() = x;
    else
      as<uint16_t>() = uint16_t(packed(x, 0));
  }

  /* Some elements, by their offsets; all are on their way before the first is waited for. */
  template <int COUNT> __device__ __forceinline__ void load_some(const int64_t (&offset)[COUNT], float (&to)[COUNT]) const {
    if (type == WS_HALF_C_F32) {
#pragma unroll
      for (int i = 0; i < COUNT; i++) to[i] = (&as<float>())[offset[i]];
    } else {
      uint16_t bits[COUNT];
#pragma unroll
      for (int i = 0; i < COUNT; i++) bits[i] = (&as<uint16_t>())[offset[i]];
#pragma unroll
      for (int i = 0; i < COUNT; i++) to[i] = widened(bits[i]);
    }
  }

  /* Two neighbours, aligned together. */
  __device__ __forceinline__ void store_two(float2 x) const {
    if (type == WS_HALF_C_F32)
      as<float2>() = x;
    else
      as<uint32_t>() = packed(x.x, x.y);
  }

  /* Four neighbours, aligned together. */
  __device__ __forceinline__ float4 load_four() const {
    if (type == WS_HALF_C_F32) return as<float4>();
    const uint2 bits = as<uint2>();
    return {widened(bits.x & 0xffff), widened(bits.x >> 16), widened(bits.y & 0xffff), widened(bits.y >> 16)};
  }
  __device__ __forceinline__ void store_four(float4 x) const {
    if (type == WS_HALF_C_F32)
      as<float4>() = x;
    else
      as<uint2>() = {packed(x.x, x.y), packed(x.z, x.w)};
  }
};

/* What the call gives as a pointer to nothing in particular; whether it may be written to is the
 * caller's knowledge. */
__device__ __forceinline__ half_c half_c_at(const void *at, int32_t type) {
  return {static_cast<unsigned char *>(const_cast<void *>(at)), type};
}

} // namespace ws
#endif
