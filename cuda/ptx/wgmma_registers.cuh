/* wgmma_registers.cuh - matrix instructions of a warpgroup whose first operand is in registers (PTX
 * ISA: wgmma; sm_90a), one each, named as in the manual. The second one, and the order of all, are
 * as in wgmma.cuh; it is lines of k. */
#ifndef WS_CUDA_PTX_WGMMA_REGISTERS_CUH
#define WS_CUDA_PTX_WGMMA_REGISTERS_CUH
#include "cuda/ptx/wgmma.cuh"

namespace ws {

/* Thread t, with w = t / 32, g = t % 32 / 4, q = t % 4, holds of A
 *   TF32: a[0], a[1]: rows 16w + g and 16w + g + 8 at k = q; a[2], a[3]: at k = q + 4;
 *   BF16: the same of pairs, at k = 2q, 2q + 1 and 2q + 8, 2q + 9.
 * The units ignore what a float has beyond TF32. */

/* wgmma.mma_async.m64nNk8 of TF32: A from registers, B as lines of k */
#define WS_WGMMA_TF32(n, a0_at, a1_at, a2_at, a3_at, b_at, adds_at)                                             \
  __device__ __forceinline__ void wgmma_tf32(float(&d)[(n) / 2], const uint32_t(&a)[4], uint64_t b, int adds) { \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #adds_at ", 0;\n\t"                                   \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k8.f32.tf32.tf32 {" WS_R_##n                           \
                 "}, {%" #a0_at ", %" #a1_at ", %" #a2_at ", %" #a3_at "}, %" #b_at ", p, 1, 1;\n\t}"           \
                 : WS_D_##n                                                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));                              \
  }
/* wgmma.mma_async.m64nNk16 of BF16, likewise */
#define WS_WGMMA_BF16(n, a0_at, a1_at, a2_at, a3_at, b_at, adds_at)                                             \
  __device__ __forceinline__ void wgmma_bf16(float(&d)[(n) / 2], const uint32_t(&a)[4], uint64_t b, int adds) { \
    asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #adds_at ", 0;\n\t"                                   \
                 "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32.bf16.bf16 {" WS_R_##n                          \
                 "}, {%" #a0_at ", %" #a1_at ", %" #a2_at ", %" #a3_at "}, %" #b_at ", p, 1, 1, 0;\n\t}"        \
                 : WS_D_##n                                                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(adds));                              \
  }
#define WS_WGMMA_RS(...) WS_WGMMA_TF32(__VA_ARGS__) WS_WGMMA_BF16(__VA_ARGS__)
WS_WGMMA_RS(32, 16, 17, 18, 19, 20, 21)
WS_WGMMA_RS(64, 32, 33, 34, 35, 36, 37)
WS_WGMMA_RS(96, 48, 49, 50, 51, 52, 53)
WS_WGMMA_RS(128, 64, 65, 66, 67, 68, 69)
WS_WGMMA_RS(192, 96, 97, 98, 99, 100, 101)
WS_WGMMA_RS(256, 128, 129, 130, 131, 132, 133)

} // namespace ws
#endif
