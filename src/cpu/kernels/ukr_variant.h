/* ukr_variant.h - the tiles of one width. Included by ukr_type.h for every WS_N = 1 .. WS_NR: one
 * function for each operand form and number of vectors that leaves room for the width, all of them
 * the inlined tile with constants put in. */

#define WS_WHOLE_TILE(name, mv, form, part)                                                                                \
  static void WS_NAME_N(name)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,   \
                              const ws_scale *scale, int64_t m) {                                                          \
    WS_NAME(edge)                                                                                                          \
    (k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, NULL, part, mv, WS_N * WS_UNIT, form); \
  }
#define WS_TILE(name, mv, form) WS_WHOLE_TILE(name, mv, form, WS_PART_FIRST | WS_PART_LAST)
#ifdef WS_STORE_ROWS
#define WS_TILE_BY_ROWS(name, mv, form) WS_WHOLE_TILE(name, mv, form, WS_PART_FIRST | WS_PART_LAST | WS_PART_BY_ROWS)
#else
#define WS_TILE_BY_ROWS(name, mv, form)
#endif
#define WS_TILE_PART(name, mv, form)                                                                                     \
  static void WS_NAME_N(name)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc, \
                              const ws_scale *scale, int64_t m, void *sums, int part) {                                  \
    WS_NAME(edge)                                                                                                        \
    (k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, sums, part, mv, WS_N * WS_UNIT,      \
     (form) | WS_K_IN_PARTS);                                                                                            \
  }
#define WS_TILES_OF(mv)                            \
  WS_TILE(rows##mv, mv, WS_B_ROWS)                 \
  WS_TILE(cols##mv, mv, WS_B_COLS)                 \
  WS_TILE_BY_ROWS(by_rows_rows##mv, mv, WS_B_ROWS) \
  WS_TILE_BY_ROWS(by_rows_cols##mv, mv, WS_B_COLS)

WS_TILES_OF(1)
WS_TILES_OF(2)
#if WS_NR_3 == 0
WS_TILE(far_rows2, 2, WS_B_ROWS | WS_A_FAR)
WS_TILE(far_cols2, 2, WS_B_COLS | WS_A_FAR)
WS_TILE_PART(part_rows1, 1, WS_B_ROWS)
WS_TILE_PART(part_rows2, 2, WS_B_ROWS)
WS_TILE_PART(part_cols1, 1, WS_B_COLS)
WS_TILE_PART(part_cols2, 2, WS_B_COLS)
#endif
#if WS_N <= WS_NR_3
WS_TILES_OF(3)
WS_TILE(far_rows3, 3, WS_B_ROWS | WS_A_FAR)
WS_TILE(far_cols3, 3, WS_B_COLS | WS_A_FAR)
#endif
#if WS_N <= WS_NR_4
WS_TILES_OF(4)
WS_TILE(far_rows4, 4, WS_B_ROWS | WS_A_FAR)
WS_TILE(far_cols4, 4, WS_B_COLS | WS_A_FAR)
#endif

#undef WS_TILES_OF
#undef WS_TILE_PART
#undef WS_TILE_BY_ROWS
#undef WS_TILE
#undef WS_WHOLE_TILE
#undef WS_N
