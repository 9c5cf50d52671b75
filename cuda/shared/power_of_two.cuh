/* power_of_two.cuh - 2^e as a float, by its bits: scales of rows and columns, and back. */
#ifndef WS_CUDA_POWER_OF_TWO_CUH
#define WS_CUDA_POWER_OF_TWO_CUH

namespace ws {

/* -126 <= e <= 127 */
__device__ __forceinline__ float power_of_two(int e) { return __int_as_float((e + 127) << 23); }

} // namespace ws
#endif
