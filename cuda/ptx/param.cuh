/* param.cuh - fetches a kernel's parameters (PTX ISA: ld.param) into the constant cache of an SM, where each line misses at first. */
#ifndef WS_CUDA_PTX_PARAM_CUH
#define WS_CUDA_PTX_PARAM_CUH
#include <cstdint>

#include "cuda/ptx/copy.cuh"

namespace ws {

/* A warp fetches line i of a parameter (const __grid_constant__) for all warps of the SM; several warps fetch several lines at the same
 * time. to: a word of shared memory that nobody reads, without which ptxas would remove the load. */
constexpr uint32_t param_line = 64;
template <class Args> __device__ __forceinline__ void fetch_line(const Args &args, uint32_t i, const uint32_t &to) {
  constexpr uint32_t last = sizeof(Args) / 4 - 1;
  const uint32_t word = reinterpret_cast<const uint32_t *>(&args)[min(i * (param_line / 4), last)];
  if (threadIdx.x % 32 == 0) store_shared(shared_address(&to), word);
}

/* Lines FIRST to END - 1, each by one of the first warps; to: a word for each of N warps. */
template <int FIRST, int END, class Args, int N>
__device__ __forceinline__ void fetch_lines(const Args &args, const uint32_t (&to)[N]) {
  static_assert(END - FIRST <= N, "a warp for each line");
  int warp = int(threadIdx.x / 32);
  asm volatile("" : "+r"(warp)); /* else it is kept in a register for what comes later */
  if (warp < END - FIRST) fetch_line(args, uint32_t(FIRST + warp), to[warp]);
}

} // namespace ws
#endif
