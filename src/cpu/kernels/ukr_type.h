/* ukr_type.h - all micro-kernels of one element type on one ISA. Included by ukr_<isa>.c, after its
 * simd_<isa>.h, with
 *   WS_T    the type's letter          WS_R, WS_L   its real type and that one's letter (s or d)
 *   WS_UNIT reals per element          WS_MV, WS_NR the full tile: vectors of A, columns of B
 *   WS_NR_3, WS_NR_4 columns of the tiles of 3 and 4 vectors, 0: none
 *   WS_PACK, WS_TRANSPOSE the functions for its size
 *   WS_STORE_ROWS that which stores vectors as rows, if there is one
 * and yields one ws_ukr_set named ws_ukr_<isa>_<letter>. */

#define R WS_R
#define WS_VL ((int)(WS_BYTES / sizeof(R))) /* reals per vector */
#define WS_JOIN4_(a, b, c, d) a##b##_##c##_##d
#define WS_JOIN4(a, b, c, d) WS_JOIN4_(a, b, c, d)
#define WS_JOIN2_(a, b) a##b
#define WS_JOIN2(a, b) WS_JOIN2_(a, b)
#define WS_NAME(x) WS_JOIN4(x, , WS_ISA, WS_T)
#define WS_NAME_N(x) WS_JOIN4(x, WS_N, WS_ISA, WS_T)
#define WS_OP_(x, l) ws_##x##_##l
#define WS_OP__(x, l) WS_OP_(x, l)
#define WS_OP(x) WS_OP__(x, WS_L)
#define WS_V WS_JOIN2(ws_v, WS_L)
#define WS_M WS_JOIN2(ws_m, WS_L)

_Static_assert(WS_MV *WS_VL / WS_UNIT == WS_JOIN4(ws_mr, , WS_ISA, WS_T) && WS_NR == WS_JOIN4(ws_nr, , WS_ISA, WS_T),
               "the kernels must have the shape that their row in kernels.def says");

#include "cpu/kernels/ukr_tile.h"

#include "cpu/kernels/ukr_dots.h"
#include "cpu/kernels/ukr_solve.h"
#include "cpu/kernels/ukr_vector.h"

#define WS_N 1
#include "cpu/kernels/ukr_variant.h"
#define WS_N 2
#include "cpu/kernels/ukr_variant.h"
#define WS_N 3
#include "cpu/kernels/ukr_variant.h"
#if WS_NR > 3
#define WS_N 4
#include "cpu/kernels/ukr_variant.h"
#define WS_N 5
#include "cpu/kernels/ukr_variant.h"
#define WS_N 6
#include "cpu/kernels/ukr_variant.h"
#endif
#if WS_NR > 6
#define WS_N 7
#include "cpu/kernels/ukr_variant.h"
#define WS_N 8
#include "cpu/kernels/ukr_variant.h"
#define WS_N 9
#include "cpu/kernels/ukr_variant.h"
#define WS_N 10
#include "cpu/kernels/ukr_variant.h"
#define WS_N 11
#include "cpu/kernels/ukr_variant.h"
#define WS_N 12
#include "cpu/kernels/ukr_variant.h"
#endif

#define WS_AT(x, n) WS_JOIN4(x, n, WS_ISA, WS_T)
#define WS_WIDTHS_2(x) WS_AT(x, 1), WS_AT(x, 2)
#define WS_WIDTHS_3(x) WS_WIDTHS_2(x), WS_AT(x, 3)
#define WS_WIDTHS_4(x) WS_WIDTHS_3(x), WS_AT(x, 4)
#define WS_WIDTHS_6(x) WS_WIDTHS_4(x), WS_AT(x, 5), WS_AT(x, 6)
#define WS_WIDTHS_8(x) WS_WIDTHS_6(x), WS_AT(x, 7), WS_AT(x, 8)
#define WS_WIDTHS_12(x) WS_WIDTHS_8(x), WS_AT(x, 9), WS_AT(x, 10), WS_AT(x, 11), WS_AT(x, 12)
#define WS_WIDTHS(x, n) \
  { WS_JOIN2(WS_WIDTHS_, n)(x) }
#if WS_NR_4 > 0
#define WS_TILES(form) \
  { WS_WIDTHS(form##1, WS_NR), WS_WIDTHS(form##2, WS_NR), WS_WIDTHS(form##3, WS_NR_3), WS_WIDTHS(form##4, WS_NR_4) }
#define WS_FAR_TILES(form) \
  { {0}, {0}, WS_WIDTHS(form##3, WS_NR_3), WS_WIDTHS(form##4, WS_NR_4) }
#define WS_N_VECTORS 4
#else
#define WS_TILES(form) \
  { WS_WIDTHS(form##1, WS_NR), WS_WIDTHS(form##2, WS_NR) }
#define WS_FAR_TILES(form) \
  { {0}, WS_WIDTHS(form##2, WS_NR) }
#define WS_N_VECTORS 2
#define WS_PARTS(form) \
  { WS_WIDTHS(form##1, WS_NR), WS_WIDTHS(form##2, WS_NR) }
#endif

const ws_ukr_set WS_JOIN4(ws_ukr, , WS_ISA, WS_T) = {
    .mr = WS_MV * WS_VL / WS_UNIT,
    .nr = WS_NR,
    .vl = WS_VL / WS_UNIT,
    .full = WS_NAME(full),
    .full_asking = WS_NAME(full_asking),
    .n_vectors = WS_N_VECTORS,
    .width = {WS_NR, WS_NR, WS_NR_3, WS_NR_4},
    .tile = {WS_TILES(rows), WS_TILES(cols), WS_FAR_TILES(far_rows), WS_FAR_TILES(far_cols)},
#ifdef WS_STORE_ROWS
    .by_rows = {WS_TILES(by_rows_rows), WS_TILES(by_rows_cols)},
#endif
#ifdef WS_PARTS
    .part = {WS_PARTS(part_rows), WS_PARTS(part_cols)},
#endif
    .half = {{WS_NAME(half_rows_first), WS_NAME(half_rows_last)}, {WS_NAME(half_cols_first), WS_NAME(half_cols_last)}},
    .solve = {{WS_NAME(solve_down_1), WS_NAME(solve_down_2)}, {WS_NAME(solve_up_1), WS_NAME(solve_up_2)}},
    .substitute = {WS_NAME(substitute_1), WS_NAME(substitute_2)},
    .substitute_small = WS_NAME(substitute_small),
    .gemv = WS_NAME(gemv),
    .dots = WS_NAME(dots),
    .dots_n = WS_DOTS_N,
    .pack = WS_PACK,
    .transpose = WS_TRANSPOSE,
};

#undef R
#undef WS_VL
#undef WS_JOIN4_
#undef WS_JOIN4
#undef WS_JOIN2_
#undef WS_JOIN2
#undef WS_NAME
#undef WS_NAME_N
#undef WS_OP_
#undef WS_OP__
#undef WS_OP
#undef WS_V
#undef WS_DOTS_M
#undef WS_DOTS_N
#undef WS_M
#undef WS_INLINE
#undef WS_FORGET
#undef WS_AT
#undef WS_WIDTHS
#undef WS_WIDTHS_2
#undef WS_WIDTHS_3
#undef WS_WIDTHS_4
#undef WS_WIDTHS_6
#undef WS_WIDTHS_8
#undef WS_WIDTHS_12
#undef WS_TILES
#undef WS_FAR_TILES
#undef WS_N_VECTORS
#undef WS_PARTS
#undef WS_T
#undef WS_PACK
#undef WS_TRANSPOSE
#undef WS_STORE_ROWS
#undef WS_R
#undef WS_L
#undef WS_UNIT
#undef WS_MV
#undef WS_NR
#undef WS_NR_3
#undef WS_NR_4
