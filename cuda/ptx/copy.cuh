/* copy.cuh - copies from global to shared memory (PTX ISA: cp.async, asynchronous; st.shared). One
 * instruction each. */
#ifndef WS_CUDA_PTX_COPY_CUH
#define WS_CUDA_PTX_COPY_CUH
#include <cstdint>

namespace ws {

/* The address of shared memory in its own window, as PTX wants it. */
__device__ __forceinline__ uint32_t shared_address(const void *p) { return uint32_t(__cvta_generic_to_shared(p)); }

/* Copies n_bytes (0 .. 16) and fills the rest of 16 with zeros; both addresses aligned to 16.
 * cp.async, past L1. */
__device__ __forceinline__ void cp_async_16(uint32_t to, const void *from, int n_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(n_bytes) : "memory");
}

/* The same for BYTES = 4, 8 or 16 through L1, where neighbours in other lines of the warp are found
 * again. */
template <int BYTES> __device__ __forceinline__ void cp_async(uint32_t to, const void *from, int n_bytes) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(BYTES), "r"(n_bytes) : "memory");
}

/* st.shared: four bytes, for what cp.async cannot bring. */
__device__ __forceinline__ void store_shared(uint32_t to, uint32_t bits) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(bits) : "memory");
}

/* cp.async.commit_group */
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

/* cp.async.wait_group: all but the newest N groups of this thread are complete. */
template <int N> __device__ __forceinline__ void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

} // namespace ws
#endif
