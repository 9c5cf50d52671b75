/* shared_copied.cuh - what a thread's copies have brought to shared memory, and its change there (PTX
 * ISA: cp.async.wait_all, ld.shared, st.shared). */
#ifndef WS_CUDA_PTX_SHARED_COPIED_CUH
#define WS_CUDA_PTX_SHARED_COPIED_CUH
#include <cstdint>

namespace ws {

/* All copies of this thread are complete. */
__device__ __forceinline__ void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

/* The sign of the double at `at`. */
__device__ __forceinline__ void turn_sign_shared_f64(uint32_t at) {
  asm volatile("{\n\t.reg .b32 high;\n\t"
               "ld.shared.b32 high, [%0 + 4];\n\t"
               "xor.b32 high, high, 0x80000000;\n\t"
               "st.shared.b32 [%0 + 4], high;\n\t}" ::"r"(at)
               : "memory");
}

} // namespace ws
#endif
