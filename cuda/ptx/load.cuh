/* load.cuh - loads of what is read once, and by nobody else of the SM, past the L1 (PTX ISA:
 * ld.global.nc with cache hints). One instruction each. The wide ones are not volatile: the
 * compiler may move them, as nobody writes there meanwhile. */
#ifndef WS_CUDA_PTX_LOAD_CUH
#define WS_CUDA_PTX_LOAD_CUH
#include <cstdint>

namespace ws {

/* ld.global.nc.L1::no_allocate.v4.b32 */
__device__ __forceinline__ uint4 ld_stream_four(const void *global) {
  uint4 x;
  asm("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(global));
  return x;
}

/* ld.global.nc.L1::no_allocate.v2.b32 */
__device__ __forceinline__ uint2 ld_stream_two(const void *global) {
  uint2 x;
  asm("ld.global.nc.L1::no_allocate.v2.b32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(global));
  return x;
}

/* ld.global.nc.b16, made where it is written: many of them, moved, would need as many registers */
__device__ __forceinline__ uint32_t ld_in_order(const uint16_t *global) {
  uint16_t x;
  asm volatile("ld.global.nc.b16 %0, [%1];" : "=h"(x) : "l"(global));
  return x;
}

} // namespace ws
#endif
