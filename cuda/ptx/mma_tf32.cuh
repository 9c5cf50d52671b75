/* mma_tf32.cuh - matrix instructions of a warp for TF32 (PTX ISA: mma.m16n8k8 .tf32). The units ignore
 * what a float has beyond TF32. One instruction each, made in this order:
 * moved forward they would need more registers for their results. */
#ifndef WS_CUDA_PTX_MMA_TF32_CUH
#define WS_CUDA_PTX_MMA_TF32_CUH
#include <cstdint>

namespace ws {

/* d[16 x 8] = a[16 x 8] b[8 x 8] + c. With g = lane / 4 and t = lane % 4 a lane holds
 *   a: (g, t) (g + 8, t) (g, t + 4) (g + 8, t + 4)   b: (t, g) (t + 4, g)   d: (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1) */
__device__ __forceinline__ void mma_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/* The same with c = 0. */
__device__ __forceinline__ void mma_tf32_first(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
}

/* The first on floats as they are; the compiler may move it. */
__device__ __forceinline__ void mma_tf32(float (&d)[4], const float (&a)[4], const float (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])), "r"(__float_as_uint(a[3])),
        "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
}

} // namespace ws
#endif
