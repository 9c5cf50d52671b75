/* barrier_any.cuh - a barrier that also says whether any of its threads has something (PTX ISA: barrier.red.or). Apart
 * from tma.cuh, which all images include. */
#ifndef WS_CUDA_PTX_BARRIER_ANY_CUH
#define WS_CUDA_PTX_BARRIER_ANY_CUH

namespace ws {

/* Of n_threads threads (a multiple of 32), by a number 1 .. 15. */
__device__ __forceinline__ bool barrier_any(int number, int n_threads, bool has) {
  int any;
  asm volatile("{\n\t.reg .pred has, any;\n\t"
               "setp.ne.s32 has, %3, 0;\n\t"
               "barrier.red.or.pred any, %1, %2, has;\n\t"
               "selp.s32 %0, 1, 0, any;\n\t}"
               : "=r"(any)
               : "r"(number), "r"(n_threads), "r"(int(has))
               : "memory");
  return any != 0;
}

} // namespace ws
#endif
