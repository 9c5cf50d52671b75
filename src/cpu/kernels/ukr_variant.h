/* ukr_variant.h - the tiles of one width. Included by ukr_type.h for every WS_N = 1 .. WS_NR: one
 * function for each operand form and number of vectors that leaves room for the width, all of them
 * the inlined tile with constants put in. */

static void WS_NAME_N(rows1)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                             const ws_scale *scale, int64_t m) {
  WS_NAME(edge)(k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, 1, WS_N * WS_UNIT, WS_B_ROWS);
}

static void WS_NAME_N(cols1)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                             const ws_scale *scale, int64_t m) {
  WS_NAME(edge)(k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, 1, WS_N * WS_UNIT, WS_B_COLS);
}

static void WS_NAME_N(rows2)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                             const ws_scale *scale, int64_t m) {
  WS_NAME(edge)(k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, 2, WS_N * WS_UNIT, WS_B_ROWS);
}

static void WS_NAME_N(cols2)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                             const ws_scale *scale, int64_t m) {
  WS_NAME(edge)(k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, 2, WS_N * WS_UNIT, WS_B_COLS);
}

#if WS_N <= WS_NR_3
static void WS_NAME_N(rows3)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                             const ws_scale *scale, int64_t m) {
  WS_NAME(edge)(k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, 3, WS_N * WS_UNIT, WS_B_ROWS);
}

static void WS_NAME_N(cols3)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                             const ws_scale *scale, int64_t m) {
  WS_NAME(edge)(k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, 3, WS_N * WS_UNIT, WS_B_COLS);
}
#endif

#if WS_N <= WS_NR_4
static void WS_NAME_N(rows4)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                             const ws_scale *scale, int64_t m) {
  WS_NAME(edge)(k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, 4, WS_N * WS_UNIT, WS_B_ROWS);
}

static void WS_NAME_N(cols4)(int64_t k, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, int64_t ldc,
                             const ws_scale *scale, int64_t m) {
  WS_NAME(edge)(k, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, m * WS_UNIT, 4, WS_N * WS_UNIT, WS_B_COLS);
}
#endif

#undef WS_N
