/* mma.cuh - double-precision matrix instructions of a warp (PTX ISA: mma.sync.aligned .f64). */
#ifndef WS_CUDA_PTX_MMA_CUH
#define WS_CUDA_PTX_MMA_CUH

namespace ws {

/* d[16 x 8] += a[16 x K] b[K x 8]. With g = lane / 4 and t = lane % 4 a lane holds
 *   a: (g, t + 4i) (g + 8, t + 4i)   b: (t + 4i, g)   i < K / 4;   d: (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1)
 * cc 9.0: mma.m16n8k8; cc 8.0 has only mma.m8n8k4, which holds the same of its 8 rows: K / 2 of
 * them, in the order of k. */
constexpr int mma_f64_k = 8;
__device__ __forceinline__ void mma_f64(double (&d)[4], const double (&a)[mma_f64_k / 2], const double (&b)[mma_f64_k / 4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
               : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
  for (int i = 0; i < mma_f64_k / 4; i++)
#pragma unroll
    for (int half = 0; half < 2; half++)
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                   : "+d"(d[2 * half]), "+d"(d[2 * half + 1])
                   : "d"(a[2 * i + half]), "d"(b[i]));
#endif
}

} // namespace ws
#endif
