/* shared_f64.cuh - doubles in this block's shared memory (PTX ISA: ld.shared, st.shared), and the arrival of a
 * thread's copies. */
#ifndef WS_CUDA_PTX_SHARED_F64_CUH
#define WS_CUDA_PTX_SHARED_F64_CUH
#include <cstdint>

namespace ws {

/* In the order of the program, but not kept from being moved across other accesses to memory. */
__device__ __forceinline__ void ld_shared_f64(double &x, uint32_t from) {
  asm volatile("ld.shared.f64 %0, [%1];" : "=d"(x) : "r"(from));
}
__device__ __forceinline__ void ld_shared_f64(double &x, double &y, uint32_t from) {
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x), "=d"(y) : "r"(from));
}

__device__ __forceinline__ void st_shared_f64(uint32_t to, double x) {
  asm volatile("st.shared.f64 [%0], %1;" ::"r"(to), "d"(x) : "memory");
}
__device__ __forceinline__ void st_shared_f64(uint32_t to, double x, double y) {
  asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(x), "d"(y) : "memory");
}

/* cp.async.mbarrier.arrive.noinc: arrives when what this thread has copied so far is there. */
__device__ __forceinline__ void cp_async_mbarrier_arrive(uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

} // namespace ws
#endif
