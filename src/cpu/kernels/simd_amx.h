/* simd_amx.h - the instructions of the matrix unit (AMX): eight tile registers of 16 rows of 64
 * bytes.
 *
 * They are written as instructions and not by the compiler's intrinsics because those of gcc do not
 * tell that memory is read or written: what was stored to a tile's memory just before could come
 * after. Tiles are named by constants, so these are macros of one statement.
 *
 * Tile registers and their configuration are the caller's to save (System V ABI), and a thread that
 * leaves them configured pays for it at every switch of threads: so they are configured for the
 * time of a work item and released at its end. */
#ifndef WS_SIMD_AMX_H
#define WS_SIMD_AMX_H
#include <stdint.h>

enum { WS_TILE_LINES = 16, WS_TILE_LINE_BYTES = 64, WS_TILE_BYTES = WS_TILE_LINES * WS_TILE_LINE_BYTES, WS_N_TILES = 8 };

/* The operand of LDTILECFG, palette 1. */
typedef struct ws_tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t line_bytes[16];
  uint8_t lines[16];
} ws_tile_config;
_Static_assert(sizeof(ws_tile_config) == 64, "the processor reads 64 bytes");

static inline void ws_tiles_configure(const ws_tile_config *config) { __asm__ volatile("ldtilecfg %0" : : "m"(*config)); }
static inline void ws_tiles_release(void) { __asm__ volatile("tilerelease"); }

#define WS_TILE_ZERO(t) __asm__ volatile("tilezero %%tmm" #t : :)
/* Lines at p, p + stride_bytes, ... */
#define WS_TILE_LOAD(t, p, stride_bytes) \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t : : "r"(p), "r"((int64_t)(stride_bytes)) : "memory")
#define WS_TILE_STORE(t, p, stride_bytes) \
  __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" : : "r"(p), "r"((int64_t)(stride_bytes)) : "memory")
/* c(i, j) += the sum over 16 pairs q of x(i, q) y(q, j): line i of x holds 16 pairs of bfloat16,
 * line q of y a pair for each j. By Intel's manual (and by 5 million random sums, bit for bit):
 * first members and second members of the pairs are summed apart, from 0 on, each by fused
 * multiply-adds over q = 0 .. 15; then the two sums are added, then c. All of it FP32, rounded to
 * nearest even whatever MXCSR says, without exceptions; subnormal operands count as zero, subnormal
 * results become zero. */
#define WS_TILE_DOT(c, x, y) __asm__ volatile("tdpbf16ps %%tmm" #y ", %%tmm" #x ", %%tmm" #c : :)
#endif
