/* cluster.cuh - shared memory of the other blocks of a cluster (PTX ISA: mapa, ld.shared::cluster, cc
 * >= 9.0), and the halves of their barrier. One instruction each, but for mapa. */
#ifndef WS_CUDA_PTX_CLUSTER_CUH
#define WS_CUDA_PTX_CLUSTER_CUH
#include <cstdint>

namespace ws {

/* ld.shared::cluster: what block `rank` has at this block's address `from`. */
__device__ __forceinline__ void ld_shared_cluster(float (&x)[1], uint32_t from, uint32_t rank) {
  asm volatile("{\n\t.reg .b32 there;\n\t"
               "mapa.shared::cluster.u32 there, %1, %2;\n\t"
               "ld.shared::cluster.f32 %0, [there];\n\t}"
               : "=f"(x[0])
               : "r"(from), "r"(rank)
               : "memory");
}
__device__ __forceinline__ void ld_shared_cluster(float (&x)[2], uint32_t from, uint32_t rank) {
  asm volatile("{\n\t.reg .b32 there;\n\t"
               "mapa.shared::cluster.u32 there, %2, %3;\n\t"
               "ld.shared::cluster.v2.f32 {%0, %1}, [there];\n\t}"
               : "=f"(x[0]), "=f"(x[1])
               : "r"(from), "r"(rank)
               : "memory");
}
__device__ __forceinline__ void ld_shared_cluster(float (&x)[4], uint32_t from, uint32_t rank) {
  asm volatile("{\n\t.reg .b32 there;\n\t"
               "mapa.shared::cluster.u32 there, %4, %5;\n\t"
               "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n\t}"
               : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
               : "r"(from), "r"(rank)
               : "memory");
}

/* barrier.cluster.arrive.relaxed: orders no memory. */
__device__ __forceinline__ void barrier_cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }

/* barrier.cluster.wait */
__device__ __forceinline__ void barrier_cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

} // namespace ws
#endif
