/* cluster.cuh - shared memory of the other blocks of a cluster (PTX ISA: mapa, ld.shared::cluster, cc
 * >= 9.0), and the halves of their barrier. One instruction each, but for mapa. */
#ifndef WS_CUDA_PTX_CLUSTER_CUH
#define WS_CUDA_PTX_CLUSTER_CUH
#include <cstdint>

namespace ws {

/* %cluster_nctaid.x: 1 if none was asked for. */
__device__ __forceinline__ uint32_t cluster_blocks() {
  uint32_t n;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(n));
  return n;
}

/* %clusterid.x */
__device__ __forceinline__ uint32_t cluster_idx() {
  uint32_t idx;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(idx));
  return idx;
}

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

/* The same if there is such a block among N; else negative zeros, which change no sum. */
#define WS_LD_SHARED_CLUSTER_OF(real, letter, constraint)                                                       \
  __device__ __forceinline__ void ld_shared_cluster_of(real(&x)[1], uint32_t from, uint32_t rank, uint32_t n) { \
    x[0] = real(-0.0);                                                                                          \
    asm volatile("{\n\t.reg .b32 there;\n\t.reg .pred is;\n\t"                                                  \
                 "setp.lt.u32 is, %2, %3;\n\t"                                                                  \
                 "@is mapa.shared::cluster.u32 there, %1, %2;\n\t"                                              \
                 "@is ld.shared::cluster." letter " %0, [there];\n\t}"                                          \
                 : constraint(x[0])                                                                             \
                 : "r"(from), "r"(rank), "r"(n)                                                                 \
                 : "memory");                                                                                   \
  }                                                                                                             \
  __device__ __forceinline__ void ld_shared_cluster_of(real(&x)[2], uint32_t from, uint32_t rank, uint32_t n) { \
    x[0] = x[1] = real(-0.0);                                                                                   \
    asm volatile("{\n\t.reg .b32 there;\n\t.reg .pred is;\n\t"                                                  \
                 "setp.lt.u32 is, %3, %4;\n\t"                                                                  \
                 "@is mapa.shared::cluster.u32 there, %2, %3;\n\t"                                              \
                 "@is ld.shared::cluster.v2." letter " {%0, %1}, [there];\n\t}"                                 \
                 : constraint(x[0]), constraint(x[1])                                                           \
                 : "r"(from), "r"(rank), "r"(n)                                                                 \
                 : "memory");                                                                                   \
  }
WS_LD_SHARED_CLUSTER_OF(float, "f32", "+f")
WS_LD_SHARED_CLUSTER_OF(double, "f64", "+d")
#undef WS_LD_SHARED_CLUSTER_OF
__device__ __forceinline__ void ld_shared_cluster_of(float (&x)[4], uint32_t from, uint32_t rank, uint32_t n) {
  x[0] = x[1] = x[2] = x[3] = -0.0f;
  asm volatile("{\n\t.reg .b32 there;\n\t.reg .pred is;\n\t"
               "setp.lt.u32 is, %5, %6;\n\t"
               "@is mapa.shared::cluster.u32 there, %4, %5;\n\t"
               "@is ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n\t}"
               : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
               : "r"(from), "r"(rank), "r"(n)
               : "memory");
}

/* barrier.cluster.arrive.relaxed: orders no memory. */
__device__ __forceinline__ void barrier_cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }

/* barrier.cluster.wait */
__device__ __forceinline__ void barrier_cluster_wait() { asm volatile("barrier.cluster.wait;" ::: "memory"); }

/* Until all threads of the cluster have come so far: nobody reads a block's shared memory behind it. */
__device__ __forceinline__ void cluster_leave() { barrier_cluster_arrive_relaxed(), barrier_cluster_wait(); }

} // namespace ws
#endif
