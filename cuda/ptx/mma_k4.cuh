/* mma_k4.cuh - the shortest double-precision matrix instruction of 16 x 8 (PTX ISA: mma.m16n8k4, cc
 * >= 9.0), whose operand B is one double: no moves where these come in other pairs from memory. */
#ifndef WS_CUDA_PTX_MMA_K4_CUH
#define WS_CUDA_PTX_MMA_K4_CUH

namespace ws {

/* d[16 x 8] += a[16 x 4] b[4 x 8]. With g = lane / 4 and t = lane % 4 a lane holds
 *   a: (g, t) (g + 8, t)   b: (t, g)   d: (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1) */
__device__ __forceinline__ void mma_f64_k4(double (&d)[4], double a0, double a1, double b) {
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
               : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
               : "d"(a0), "d"(a1), "d"(b));
}

} // namespace ws
#endif
