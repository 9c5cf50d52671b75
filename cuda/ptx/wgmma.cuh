/* wgmma.cuh - matrix instructions of a warpgroup (PTX ISA: wgmma, setmaxnreg; sm_90a), one each,
 * named as in the manual.
 *
 * wgmma reads both operands from shared memory, through descriptors, while the threads go on; what
 * they may do meanwhile is said at the fences. All four warps of a warpgroup call each of these
 * together. */
#ifndef WS_CUDA_PTX_WGMMA_CUH
#define WS_CUDA_PTX_WGMMA_CUH
#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda/ptx/copy.cuh"

namespace ws {

/* ---- Descriptors: matrix operands in shared memory with 128-byte swizzle ------------------------
 * An operand is x (m or n) times k, of 16-bit elements, brought by TMA as slabs: lines of 128
 * bytes, eight to an atom of 1024 bytes, in which 16 bytes number c of line r are at c ^ (r % 8).
 *   k contiguous: a line is 64 k of one x; the next 8 x are 1024 bytes on (the stride); 16 k are 32
 *   bytes.
 *   x contiguous: a line is 64 x of one k; the next 8 k are 1024 bytes on (the stride), the next 64
 *   x slab_bytes on (the leading dimension); 16 k are 2048 bytes. Of no more than 32 or 16 x the lines
 *   have 64 or 32 bytes, with the swizzle of that length, and the atoms 512 or 256. */
constexpr int wgmma_k = 16, wgmma_line = 64; /* 16-bit elements */
constexpr uint32_t wgmma_atom_lines = 8;

/* LINE: elements of a line. */
template <bool X_CONTIGUOUS, int LINE = wgmma_line>
__device__ __forceinline__ uint64_t wgmma_descriptor(uint32_t address, uint32_t slab_bytes) {
  static_assert(X_CONTIGUOUS || LINE == wgmma_line, "k blocks are whole lines");
  const uint64_t swizzle = uint64_t(LINE == 64 ? 1 : LINE == 32 ? 2 : 3) << 62;
  const uint64_t stride = uint64_t(wgmma_atom_lines * LINE * 2 >> 4) << 32;
  /* 1: not looked at */
  const uint64_t leading = uint64_t(X_CONTIGUOUS && LINE == wgmma_line ? slab_bytes >> 4 : 1) << 16;
  return swizzle | stride | leading | uint64_t((address & 0x3ffff) >> 4);
}

/* From one step of 16 k to the next, in units of the descriptor's address. */
template <bool X_CONTIGUOUS, int LINE = wgmma_line>
constexpr uint64_t wgmma_next_k = X_CONTIGUOUS ? wgmma_k *LINE * 2 >> 4 : wgmma_k * 2 >> 4;

/* ---- Order ----------------------------------------------------------------------------------- */

/* wgmma.fence: the warpgroup's accesses to the accumulators so far come before the wgmma that
 * follow. */
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/* wgmma.commit_group: what was begun since the last is a group. */
__device__ __forceinline__ void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* wgmma.wait_group: at most PENDING groups are still under way. */
template <int PENDING> __device__ __forceinline__ void wgmma_wait_group() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

/* Keeps the compiler from moving what is done with an accumulator across this place. */
template <int N> __device__ __forceinline__ void hold_in_place(float (&sums)[N]) {
#pragma unroll
  for (int i = 0; i < N; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

/* setmaxnreg: gives registers of this warpgroup back, or waits until it has so many. */
template <int COUNT> __device__ __forceinline__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ __forceinline__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

/* ---- wgmma.mma_async.m64nNk16: d[64 x N] = a[64 x 16] b[16 x N] (+ d if adds) -------------------
 * Thread t of the warpgroup, with w = t / 32, g = t % 32 / 4, q = t % 4, holds for each group j of 8
 * columns
 *   d[4j], d[4j + 1]: row 16w + g, columns 8j + 2q and the next;
 *   d[4j + 2], d[4j + 3]: row 16w + g + 8, the same columns.
 * A_X, B_X: the operand is contiguous along m, along n, in place of k. */

#define WS_D8(i) \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define WS_D16(i) WS_D8(i), WS_D8(i + 8)
#define WS_R0 "%0, %1, %2, %3, %4, %5, %6, %7"
#define WS_R8 "%8, %9, %10, %11, %12, %13, %14, %15"
#define WS_R16 "%16, %17, %18, %19, %20, %21, %22, %23"
#define WS_R24 "%24, %25, %26, %27, %28, %29, %30, %31"
#define WS_R32 "%32, %33, %34, %35, %36, %37, %38, %39"
#define WS_R40 "%40, %41, %42, %43, %44, %45, %46, %47"
#define WS_R48 "%48, %49, %50, %51, %52, %53, %54, %55"
#define WS_R56 "%56, %57, %58, %59, %60, %61, %62, %63"
#define WS_R64 "%64, %65, %66, %67, %68, %69, %70, %71"
#define WS_R72 "%72, %73, %74, %75, %76, %77, %78, %79"
#define WS_R80 "%80, %81, %82, %83, %84, %85, %86, %87"
#define WS_R88 "%88, %89, %90, %91, %92, %93, %94, %95"
#define WS_R96 "%96, %97, %98, %99, %100, %101, %102, %103"
#define WS_R104 "%104, %105, %106, %107, %108, %109, %110, %111"
#define WS_R112 "%112, %113, %114, %115, %116, %117, %118, %119"
#define WS_R120 "%120, %121, %122, %123, %124, %125, %126, %127"
/* The registers of N columns: their text, and themselves. */
#define WS_R_16 WS_R0
#define WS_R_32 WS_R_16 ", " WS_R8
#define WS_R_48 WS_R_32 ", " WS_R16
#define WS_R_64 WS_R_48 ", " WS_R24
#define WS_R_80 WS_R_64 ", " WS_R32
#define WS_R_96 WS_R_80 ", " WS_R40
#define WS_R_112 WS_R_96 ", " WS_R48
#define WS_R_128 WS_R_112 ", " WS_R56
#define WS_R_144 WS_R_128 ", " WS_R64
#define WS_R_160 WS_R_144 ", " WS_R72
#define WS_R_176 WS_R_160 ", " WS_R80
#define WS_R_192 WS_R_176 ", " WS_R88
#define WS_R_208 WS_R_192 ", " WS_R96
#define WS_R_224 WS_R_208 ", " WS_R104
#define WS_R_240 WS_R_224 ", " WS_R112
#define WS_R_256 WS_R_240 ", " WS_R120
#define WS_D_16 WS_D8(0)
#define WS_D_32 WS_D16(0)
#define WS_D_48 WS_D_32, WS_D8(16)
#define WS_D_64 WS_D_48, WS_D8(24)
#define WS_D_80 WS_D_64, WS_D8(32)
#define WS_D_96 WS_D_80, WS_D8(40)
#define WS_D_112 WS_D_96, WS_D8(48)
#define WS_D_128 WS_D_112, WS_D8(56)
#define WS_D_144 WS_D_128, WS_D8(64)
#define WS_D_160 WS_D_144, WS_D8(72)
#define WS_D_176 WS_D_160, WS_D8(80)
#define WS_D_192 WS_D_176, WS_D8(88)
#define WS_D_208 WS_D_192, WS_D8(96)
#define WS_D_224 WS_D_208, WS_D8(104)
#define WS_D_240 WS_D_224, WS_D8(112)
#define WS_D_256 WS_D_240, WS_D8(120)

/* a, b, adds, A_X, B_X: numbers of these operands in the text. */
#define WS_WGMMA(n, type, a_at, b_at, adds_at, a_x_at, b_x_at)                               \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, %" #adds_at ", 0;\n\t"                  \
               "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." type "." type " {" WS_R_##n \
               "}, %" #a_at ", %" #b_at ", p, 1, 1, %" #a_x_at ", %" #b_x_at ";\n\t}"        \
               : WS_D_##n                                                                    \
               : "l"(a), "l"(b), "r"(adds), "n"(int(A_X)), "n"(int(B_X)))
#define WS_WGMMA_BY_TYPE(n, a_at, b_at, adds_at, a_x_at, b_x_at) \
  if constexpr (std::is_same_v<Element, __half>)                 \
    WS_WGMMA(n, "f16", a_at, b_at, adds_at, a_x_at, b_x_at);     \
  else                                                           \
    WS_WGMMA(n, "bf16", a_at, b_at, adds_at, a_x_at, b_x_at)

/* Of N columns; the numbers of the operands after the N / 2 sums. */
#define WS_WGMMA_OF(n, a_at, b_at, adds_at, a_x_at, b_x_at)                                               \
  template <class Element, bool A_X, bool B_X>                                                            \
  __device__ __forceinline__ void wgmma_mma_async(float(&d)[(n) / 2], uint64_t a, uint64_t b, int adds) { \
    WS_WGMMA_BY_TYPE(n, a_at, b_at, adds_at, a_x_at, b_x_at);                                             \
  }
WS_WGMMA_OF(16, 8, 9, 10, 11, 12)
WS_WGMMA_OF(32, 16, 17, 18, 19, 20)
WS_WGMMA_OF(48, 24, 25, 26, 27, 28)
WS_WGMMA_OF(64, 32, 33, 34, 35, 36)
WS_WGMMA_OF(80, 40, 41, 42, 43, 44)
WS_WGMMA_OF(96, 48, 49, 50, 51, 52)
WS_WGMMA_OF(128, 64, 65, 66, 67, 68)
WS_WGMMA_OF(144, 72, 73, 74, 75, 76)
WS_WGMMA_OF(160, 80, 81, 82, 83, 84)
WS_WGMMA_OF(176, 88, 89, 90, 91, 92)
WS_WGMMA_OF(192, 96, 97, 98, 99, 100)
WS_WGMMA_OF(208, 104, 105, 106, 107, 108)
WS_WGMMA_OF(224, 112, 113, 114, 115, 116)
WS_WGMMA_OF(240, 120, 121, 122, 123, 124)
WS_WGMMA_OF(256, 128, 129, 130, 131, 132)

} // namespace ws
#endif
