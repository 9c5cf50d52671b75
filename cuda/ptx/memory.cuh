/* memory.cuh - loads, stores and atomics of global memory with a named order, and a few special
 * registers. One instruction each, named as in the PTX manual; every target from cc 8.0 on has
 * them.
 *
 * Pointers are generic and must point to global memory. What an acquire or release pairs with is
 * said where it is used. Each has a "memory" clobber, so that the compiler keeps them and the
 * accesses around them in the order in which they are written. */
#ifndef WS_CUDA_PTX_MEMORY_CUH
#define WS_CUDA_PTX_MEMORY_CUH
#include <cstddef>
#include <cstdint>

namespace ws {

/* The address of global memory in its own window. */
__device__ __forceinline__ uint64_t global_address(const void *p) { return uint64_t(__cvta_generic_to_global(p)); }

/* griddepcontrol (cc >= 9.0): the launch after this one, if it is told to begin early, may do so
 * when all blocks have called this or left. */
__device__ __forceinline__ void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

/* Until the launch before this one has ended, and what it wrote is seen. */
__device__ __forceinline__ void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/* ---- Weak accesses: what plain loads and stores of C++ are, but each is made where it is written  */

/* ld.weak.global: may return what this SM's L1 holds, however old */
__device__ __forceinline__ uint32_t ld_weak(const uint32_t *p) {
  uint32_t x;
  asm volatile("ld.weak.global.u32 %0, [%1];" : "=r"(x) : "l"(global_address(p)) : "memory");
  return x;
}

/* ld.weak.global.ca: the same, asking for the L1 by name (nvcc 13.0 makes it LDG.E.STRONG.SM, the
 * one above LDG.E) */
__device__ __forceinline__ uint32_t ld_weak_ca(const uint32_t *p) {
  uint32_t x;
  asm volatile("ld.weak.global.ca.u32 %0, [%1];" : "=r"(x) : "l"(global_address(p)) : "memory");
  return x;
}

/* st.weak.global */
__device__ __forceinline__ void st_weak(uint32_t *p, uint32_t x) {
  asm volatile("st.weak.global.u32 [%0], %1;" ::"l"(global_address(p)), "r"(x) : "memory");
}

/* ---- Strong accesses at the scope of the device ---------------------------------------------- */

/* ld.relaxed.gpu */
__device__ __forceinline__ uint32_t ld_relaxed_gpu(const uint32_t *p) {
  uint32_t x;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(global_address(p)) : "memory");
  return x;
}

/* ld.acquire.gpu */
__device__ __forceinline__ uint32_t ld_acquire_gpu(const uint32_t *p) {
  uint32_t x;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(x) : "l"(global_address(p)) : "memory");
  return x;
}

/* atom.relaxed.gpu.add */
__device__ __forceinline__ uint32_t atom_add_relaxed_gpu(uint32_t *p, uint32_t x) {
  uint32_t before;
  asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(global_address(p)), "r"(x) : "memory");
  return before;
}

/* atom.release.gpu.add */
__device__ __forceinline__ uint32_t atom_add_release_gpu(uint32_t *p, uint32_t x) {
  uint32_t before;
  asm volatile("atom.release.gpu.global.add.u32 %0, [%1], %2;" : "=r"(before) : "l"(global_address(p)), "r"(x) : "memory");
  return before;
}

/* ---- Time and place -------------------------------------------------------------------------- */

/* nanosleep: about that long, at most twice as long */
__device__ __forceinline__ void nanosleep(uint32_t ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory"); }

/* %smid: the SM that runs this thread now */
__device__ __forceinline__ uint32_t smid() {
  uint32_t x;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(x));
  return x;
}

/* %globaltimer: nanoseconds, the same clock on all SMs; it advances in steps (32 ns to about 1
 * us) */
__device__ __forceinline__ uint64_t globaltimer() {
  uint64_t x;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(x)::"memory");
  return x;
}

} // namespace ws
#endif
