/* barrier.cuh - named barriers of a block (PTX ISA: bar.sync, bar.arrive): of so many of its threads, whole
 * warps, wherever in the program they are. Barrier 0 is __syncthreads'. One instruction each. */
#ifndef WS_CUDA_PTX_BARRIER_CUH
#define WS_CUDA_PTX_BARRIER_CUH

namespace ws {

/* bar.sync: waits until n_threads have come, this one among them. */
template <int BARRIER> __device__ __forceinline__ void barrier_sync(int n_threads) {
  asm volatile("bar.sync %0, %1;" ::"n"(BARRIER), "r"(n_threads) : "memory");
}

/* bar.arrive: comes, and does not wait. */
template <int BARRIER> __device__ __forceinline__ void barrier_arrive(int n_threads) {
  asm volatile("bar.arrive %0, %1;" ::"n"(BARRIER), "r"(n_threads) : "memory");
}

} // namespace ws
#endif
