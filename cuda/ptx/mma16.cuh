/* mma16.cuh - matrix instructions of a warp for 16-bit elements, and the reads of their operands
 * (PTX ISA: mma.sync.aligned .f16 .bf16, ldmatrix). One instruction each. */
#ifndef WS_CUDA_PTX_MMA16_CUH
#define WS_CUDA_PTX_MMA16_CUH
#include <cstdint>
#include <type_traits>

#include "cuda/shared/element_types.cuh"

namespace ws {

/* ldmatrix.x4: four matrices of 8 x 8 elements from shared memory. Lane l names row l % 8 (16
 * bytes, aligned) of matrix l / 8, and with g = lane / 4 and t = lane % 4 gets of each matrix the
 * elements (g, 2t) (g, 2t + 1). */
__device__ __forceinline__ void ldmatrix_x4(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

/* ldmatrix.x4.trans: the same of the transposed matrices, (2t, g) (2t + 1, g). */
__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&to)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(row)
               : "memory");
}

/* d[16 x 8] += a[16 x 16] b[16 x 8], a and b of 16 bits, d of floats. A lane holds, each register
 * two neighbours along k,
 *   a: (g, 2t) (g + 8, 2t) (g, 2t + 8) (g + 8, 2t + 8)   b: (2t, g) (2t + 8, g)   d: (g, 2t) (g, 2t + 1) (g + 8, 2t) (g + 8, 2t + 1) */
constexpr int mma16_k = 16;
template <class Type> __device__ __forceinline__ void mma16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  if constexpr (std::is_same_v<Type, type_h>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace ws
#endif
