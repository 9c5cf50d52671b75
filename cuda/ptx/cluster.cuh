/* cluster.cuh - shared memory of the other blocks of a cluster (PTX ISA: mapa, ld.shared::cluster, ld, cc >= 9.0), and the halves of
 * their barrier, with the fences that shared memory alone wants. */
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

/* mapa.u64: where block `rank` has what this block has at the address `from` of its shared memory, as an address of no state space.
 * ld.shared::cluster asks for the upper half of such addresses at each load, which takes longer than all else of it. */
__device__ __forceinline__ uint64_t address_in_block(uint32_t from, uint32_t rank) {
  uint64_t generic, there;
  asm("cvta.shared.u64 %0, %1;" : "=l"(generic) : "l"(uint64_t(from)));
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(generic), "r"(rank));
  return there;
}

/* ld: from there if `is`; else negative zeros, which change no sum. */
#define WS_LD_IF(real, letter, constraint)                                                                    \
  __device__ __forceinline__ void ld_if(real(&x)[1], uint64_t there, bool is) {                               \
    x[0] = real(-0.0);                                                                                        \
    asm volatile("{\n\t.reg .pred is;\n\tsetp.ne.u32 is, %2, 0;\n\t@is ld." letter " %0, [%1];\n\t}"          \
                 : constraint(x[0])                                                                           \
                 : "l"(there), "r"(uint32_t(is))                                                              \
                 : "memory");                                                                                 \
  }                                                                                                           \
  __device__ __forceinline__ void ld_if(real(&x)[2], uint64_t there, bool is) {                               \
    x[0] = x[1] = real(-0.0);                                                                                 \
    asm volatile("{\n\t.reg .pred is;\n\tsetp.ne.u32 is, %3, 0;\n\t@is ld.v2." letter " {%0, %1}, [%2];\n\t}" \
                 : constraint(x[0]), constraint(x[1])                                                         \
                 : "l"(there), "r"(uint32_t(is))                                                              \
                 : "memory");                                                                                 \
  }
WS_LD_IF(float, "f32", "+f")
WS_LD_IF(double, "f64", "+d")
#undef WS_LD_IF
__device__ __forceinline__ void ld_if(float (&x)[4], uint64_t there, bool is) {
  x[0] = x[1] = x[2] = x[3] = -0.0f;
  asm volatile("{\n\t.reg .pred is;\n\tsetp.ne.u32 is, %5, 0;\n\t@is ld.v4.f32 {%0, %1, %2, %3}, [%4];\n\t}"
               : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
               : "l"(there), "r"(uint32_t(is))
               : "memory");
}

/* The halves of a barrier behind which threads of the cluster see what others had put into shared memory before; of global memory they
 * see nothing, for which barrier.cluster.arrive.release would wait (MEMBAR.ALL.GPU). */
__device__ __forceinline__ void cluster_arrive_shared() {
  asm volatile("fence.release.sync_restrict::shared::cta.cluster;\n\tbarrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait_shared() {
  asm volatile("barrier.cluster.wait;\n\tfence.acquire.sync_restrict::shared::cluster.cluster;" ::: "memory");
}

/* barrier.cluster.arrive.relaxed: orders no memory. */
__device__ __forceinline__ void barrier_cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }

/* barrier.cluster.wait */
__device__ __forceinline__ void barrier_cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

/* Until all threads of the cluster have come so far: nobody reads a block's shared memory behind it. */
__device__ __forceinline__ void cluster_leave() { barrier_cluster_arrive_relaxed(), barrier_cluster_wait(); }

} // namespace ws
#endif
