/* ptx_mma.cuh - double-precision matrix instructions of a warp (PTX ISA: mma.sync.aligned .f64). */
#ifndef WS_CUDA_PTX_MMA_CUH
#define WS_CUDA_PTX_MMA_CUH

namespace ws {

/* d[16 x 8] += a[16 x 4] b[4 x 8]. With g = lane / 4 and t = lane % 4 a lane holds
 *   a: (g, t) (g + 8, t)     b: (t, g)     d: (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1)
 * cc 9.0: mma.m16n8k4; cc 8.0: two of mma.m8n8k4, which holds the same of its 8 rows. */
__device__ __forceinline__ void mma_f64_16x8x4(double (&d)[4], const double (&a)[2], double b) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
               : "d"(a[0]), "d"(a[1]), "d"(b));
#else
#pragma unroll
  for (int half = 0; half < 2; half++)
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d[2 * half]), "+d"(d[2 * half + 1])
                 : "d"(a[half]), "d"(b));
#endif
}

} // namespace ws
#endif
