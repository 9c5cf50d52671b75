/* param.cuh - a kernel's parameters in constant memory (PTX ISA: ld.param), which come to an SM line by line, each from far away at
 * first. */
#ifndef WS_CUDA_PTX_PARAM_CUH
#define WS_CUDA_PTX_PARAM_CUH
#include <cstdint>

#include "cuda/ptx/copy.cuh"

namespace ws {

/* A warp fetches line i of a parameter (const __grid_constant__), so that others find it there; several warps fetch several lines at the
 * same time. to: in shared memory, where a word goes that nobody reads; what is not used ptxas does not fetch. */
constexpr uint32_t param_line = 64;
template <class Args> __device__ __forceinline__ void fetch_line(const Args &args, uint32_t i, const uint32_t &to) {
  constexpr uint32_t last = sizeof(Args) / 4 - 1;
  const uint32_t word = reinterpret_cast<const uint32_t *>(&args)[min(i * (param_line / 4), last)];
  if (threadIdx.x % 32 == 0) store_shared(shared_address(&to), word);
}

} // namespace ws
#endif
