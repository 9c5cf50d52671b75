/* ukr_dots.h - products whose two operands both lie along k: sums in vectors, written once over the
 * vector operations. Included by ukr_type.h.
 *
 * An element of C is one vector of chains of fused multiply-adds, lane l over the reals l, l + VL, ..
 * of its row and column; at the end the upper half of the lanes is added to the lower one until one
 * element is left. So its bits depend on k and on the vector's length, not on the tile. Complex: two
 * such vectors, of (ar br, ai bi) and of (ar bi, ai br).
 *
 * A tile of up to 4 rows and WS_NR / 2 columns has as many accumulators as a register tile, and loads
 * 10 vectors for 24 multiply-adds. */

#ifndef WS_KEEP /* an instruction set without such operands */
#define WS_KEEP(v) (void)(v)
#endif
#ifndef WS_DOTS_HOLD_B
#define WS_DOTS_HOLD_B 0
#endif
#define WS_DOTS_M 4
#define WS_DOTS_N (WS_NR / 2)

/* Column j of the tile. Its sums go through memory as whole vectors, which are forwarded as such; all their lanes are sums, if not of
 * this column's rows. */
WS_INLINE void WS_NAME(dots_column)(const WS_V *const ab[WS_DOTS_M], const WS_V *const swapped[WS_DOTS_M], R *c,
                                    const ws_scale *scale, const int m) {
  enum { REALS = WS_DOTS_M * WS_UNIT, ROOM = REALS > WS_VL ? REALS : WS_VL };
  R re[ROOM], im[ROOM];
  WS_OP(fold4)(re, *ab[0], *ab[1], *ab[2], *ab[3], WS_UNIT);
  if (WS_UNIT == 2) WS_OP(fold4)(im, *swapped[0], *swapped[1], *swapped[2], *swapped[3], WS_UNIT);
  for (int at = 0; at < m * WS_UNIT; at += WS_VL) {
    const WS_M mask = WS_OP(mask)(m * WS_UNIT - at < WS_VL ? m * WS_UNIT - at : WS_VL);
#if WS_UNIT == 1
    const WS_V acc_re = WS_OP(load)(re + at), acc_im = acc_re;
#else
    /* (ar br, ai bi) and (ar bi, ai br) to the (ar br, ai br) and (ar bi, ai bi) of a register tile */
    const WS_V same = WS_OP(load)(re + at), mixed = WS_OP(load)(im + at);
    const WS_V acc_re = WS_OP(even_odd)(same, mixed), acc_im = WS_OP(even_odd)(mixed, same);
#endif
    WS_NAME(finish)(c + at, acc_re, acc_im, scale, mask);
  }
}

WS_INLINE void WS_NAME(dots_tile)(int64_t k_reals, const R *a, int64_t lda, const R *b, int64_t ldb, R *c, int64_t ldc,
                                  const ws_scale *scale, const int m, const int n) {
  WS_V ab[WS_DOTS_M][WS_DOTS_N], swapped[WS_DOTS_M][WS_DOTS_N];
#pragma GCC unroll 4
  for (int i = 0; i < m; i++)
#pragma GCC unroll 6
    for (int j = 0; j < n; j++) ab[i][j] = swapped[i][j] = WS_OP(zero)();
  int64_t p = 0;
  /* the vectors of one operand are held, those of the other pass by */
  const int n_held = WS_DOTS_HOLD_B ? n : m, n_passing = WS_DOTS_HOLD_B ? m : n;
  for (; p + WS_VL <= k_reals; p += WS_VL) {
    WS_V held[WS_DOTS_M > WS_DOTS_N ? WS_DOTS_M : WS_DOTS_N];
#pragma GCC unroll 6
    for (int h = 0; h < n_held; h++) held[h] = WS_OP(load)((WS_DOTS_HOLD_B ? b + h * ldb : a + h * lda) + p);
#pragma GCC unroll 6
    for (int q = 0; q < n_passing; q++) {
      WS_V passing = WS_OP(load)((WS_DOTS_HOLD_B ? a + q * lda : b + q * ldb) + p);
      if (n_held * (WS_DOTS_HOLD_B ? WS_UNIT : 1) > 1) WS_KEEP(passing);
#pragma GCC unroll 6
      for (int h = 0; h < n_held; h++) {
        const int i = WS_DOTS_HOLD_B ? q : h, j = WS_DOTS_HOLD_B ? h : q;
        const WS_V av = WS_DOTS_HOLD_B ? passing : held[h], bv = WS_DOTS_HOLD_B ? held[h] : passing;
        ab[i][j] = WS_OP(fma)(av, bv, ab[i][j]);
        if (WS_UNIT == 2) swapped[i][j] = WS_OP(fma)(av, WS_OP(swap)(bv), swapped[i][j]);
      }
    }
  }
  if (p < k_reals) {
    const WS_M mask = WS_OP(mask)(k_reals - p);
    WS_V av[WS_DOTS_M];
#pragma GCC unroll 4
    for (int i = 0; i < m; i++) av[i] = WS_OP(load_m)(a + i * lda + p, mask);
#pragma GCC unroll 6
    for (int j = 0; j < n; j++) {
      const WS_V bv = WS_OP(load_m)(b + j * ldb + p, mask);
#pragma GCC unroll 4
      for (int i = 0; i < m; i++) {
        ab[i][j] = WS_OP(fma_m)(av[i], bv, ab[i][j], mask);
        if (WS_UNIT == 2) swapped[i][j] = WS_OP(fma_m)(av[i], WS_OP(swap)(bv), swapped[i][j], mask);
      }
    }
  }
  const ws_scale s = *scale;
#pragma GCC unroll 6
  for (int j = 0; j < n; j++) {
    const WS_V *column[WS_DOTS_M], *swapped_column[WS_DOTS_M];
#pragma GCC unroll 4
    for (int i = 0; i < WS_DOTS_M; i++) column[i] = &ab[i < m ? i : 0][j], swapped_column[i] = &swapped[i < m ? i : 0][j];
    WS_NAME(dots_column)(column, swapped_column, c + j * ldc, &s, m);
  }
}

/* A strip of up to WS_DOTS_N columns with so many rows: constants put in. */
WS_INLINE void WS_NAME(dots_rows)(int64_t k, const R *a, int64_t lda, const R *b, int64_t ldb, R *c, int64_t ldc,
                                  const ws_scale *scale, const int m, int64_t n) {
#define WS_DOTS_CASE(width)                                                                          \
  case width:                                                                                        \
    WS_NAME(dots_tile)(k, a, lda, b, ldb, c, ldc, scale, m, width <= WS_DOTS_N ? width : WS_DOTS_N); \
    return;
  switch (n) {
    WS_DOTS_CASE(1)
#if WS_NR >= 6
    WS_DOTS_CASE(2)
    WS_DOTS_CASE(3)
#endif
#if WS_NR >= 12
    WS_DOTS_CASE(4)
    WS_DOTS_CASE(5)
    WS_DOTS_CASE(6)
#endif
  default:
    return;
  }
#undef WS_DOTS_CASE
}

static void WS_NAME(dots)(int64_t k, const void *a_lines, int64_t lda, const void *b_lines, int64_t ldb, void *c_tile,
                          int64_t ldc, const ws_scale *scale, int64_t m, int64_t n) {
  const R *a = a_lines, *b = b_lines;
  R *c = c_tile;
  k *= WS_UNIT, lda *= WS_UNIT, ldb *= WS_UNIT, ldc *= WS_UNIT;
  switch (m) {
  case 1:
    WS_NAME(dots_rows)(k, a, lda, b, ldb, c, ldc, scale, 1, n);
    return;
  case 2:
    WS_NAME(dots_rows)(k, a, lda, b, ldb, c, ldc, scale, 2, n);
    return;
  case 3:
    WS_NAME(dots_rows)(k, a, lda, b, ldb, c, ldc, scale, 3, n);
    return;
  default:
    WS_NAME(dots_rows)(k, a, lda, b, ldb, c, ldc, scale, 4, n);
    return;
  }
}
