/* ukr_solve.h - substitution in a group of unknowns for vectors of right sides, written once over
 * simd_*.h. Contract: ws_solve_fn and ws_substitute_fn in ukr.h.
 *
 * Included by ukr_type.h after ukr_tile.h, whose k loop it shares. All lanes are independent, so a
 * right side has the same bits in every lane, panel and width: for each unknown one chain over the
 * unknowns solved before, in the order of substitution, then one product with the reciprocal. */

/* i * v */
WS_INLINE WS_V WS_NAME(turned)(WS_V v) {
#if WS_UNIT == 2
  return WS_OP(xor)(WS_OP(swap)(v), WS_OP(xor)(WS_OP(sign)(), WS_OP(sign_im)()));
#else
  return v;
#endif
}

/* sum + t * x; x_turned = i * x */
WS_INLINE WS_V WS_NAME(add_product)(const R *t, WS_V x, WS_V x_turned, WS_V sum) {
  sum = WS_OP(fma)(WS_OP(set1)(t[0]), x, sum);
#if WS_UNIT == 2
  sum = WS_OP(fma)(WS_OP(set1)(t[1]), x_turned, sum);
#else
  (void)x_turned;
#endif
  return sum;
}

/* t * x */
WS_INLINE WS_V WS_NAME(product)(const R *t, WS_V x) {
  const WS_V r = WS_OP(mul)(WS_OP(set1)(t[0]), x);
#if WS_UNIT == 2
  return WS_OP(fma)(WS_OP(set1)(t[1]), WS_NAME(turned)(x), r);
#else
  return r;
#endif
}

/* x: nr unknowns in registers. */
WS_INLINE void WS_NAME(substitute_whole)(WS_V x[WS_MV_MAX][WS_NR_MAX], const R *diagonal, bool is_unit, const int mv,
                                         const int direction) {
#pragma GCC unroll 12
  for (int step = 0; step < WS_NR; step++) {
    const int j = direction == WS_SOLVE_DOWN ? step : WS_NR - 1 - step;
    const R *column = diagonal + j * WS_NR * WS_UNIT;
    WS_V x_turned[WS_MV_MAX];
#pragma GCC unroll 2
    for (int i = 0; i < mv; i++) {
      if (!is_unit) x[i][j] = WS_NAME(product)(column + j * WS_UNIT, x[i][j]);
      x_turned[i] = WS_NAME(turned)(x[i][j]);
    }
#pragma GCC unroll 12
    for (int later = step + 1; later < WS_NR; later++) {
      const int l = direction == WS_SOLVE_DOWN ? later : WS_NR - 1 - later;
#pragma GCC unroll 2
      for (int i = 0; i < mv; i++) x[i][l] = WS_NAME(add_product)(column + l * WS_UNIT, x[i][j], x_turned[i], x[i][l]);
    }
  }
}

WS_INLINE void WS_NAME(solve)(int64_t k, const R *y, const R *t, const R *diagonal, bool is_unit, R *panel, const ws_scale *scale,
                              const int mv, const int direction) {
  enum { NRR = WS_NR * WS_UNIT, AHEAD = 16 };
  const int width = mv * WS_VL;
  const WS_M mask = WS_OP(mask)(WS_VL);
  WS_V acc[WS_MV_MAX][WS_NR_MAX], x[WS_MV_MAX][WS_NR_MAX];
  WS_NAME(clear)(acc, mv, NRR);
#pragma GCC unroll 4
  for (int64_t p = 0; p < k; p++) {
    for (int i = 0; i < mv; i++) __builtin_prefetch(y + AHEAD * width + i * WS_VL);
    const WS_NAME(b_at) row = {{t}};
    WS_NAME(step)(acc, y, (mv - 1) * WS_VL, &row, 0, mask, mv, NRR, WS_B_ROWS, false);
    y += width;
    t += NRR;
  }
  const ws_scale s = *scale;
#pragma GCC unroll 12
  for (int j = 0; j < WS_NR; j++)
#pragma GCC unroll 2
    for (int i = 0; i < mv; i++)
      x[i][j] =
          WS_NAME(result)(panel + j * width + i * WS_VL, acc[i][j * WS_UNIT], acc[i][(j + 1) * WS_UNIT - 1], &s, mask, false);
  WS_NAME(substitute_whole)(x, diagonal, is_unit, mv, direction);
#pragma GCC unroll 12
  for (int j = 0; j < WS_NR; j++)
#pragma GCC unroll 2
    for (int i = 0; i < mv; i++) WS_OP(store)(panel + j * width + i * WS_VL, x[i][j]);
}

static void WS_NAME(solve_down_1)(int64_t k, const void *y, const void *t, const void *diagonal, bool is_unit, void *x,
                                  const ws_scale *scale) {
  WS_NAME(solve)(k, y, t, diagonal, is_unit, x, scale, 1, WS_SOLVE_DOWN);
}

static void WS_NAME(solve_down_2)(int64_t k, const void *y, const void *t, const void *diagonal, bool is_unit, void *x,
                                  const ws_scale *scale) {
  WS_NAME(solve)(k, y, t, diagonal, is_unit, x, scale, 2, WS_SOLVE_DOWN);
}

static void WS_NAME(solve_up_1)(int64_t k, const void *y, const void *t, const void *diagonal, bool is_unit, void *x,
                                const ws_scale *scale) {
  WS_NAME(solve)(k, y, t, diagonal, is_unit, x, scale, 1, WS_SOLVE_UP);
}

static void WS_NAME(solve_up_2)(int64_t k, const void *y, const void *t, const void *diagonal, bool is_unit, void *x,
                                const ws_scale *scale) {
  WS_NAME(solve)(k, y, t, diagonal, is_unit, x, scale, 2, WS_SOLVE_UP);
}

/* For groups that are not whole, or whose reciprocals need factors: in memory, each unknown taken
 * from all later ones at once, as they do not wait for each other. */
WS_INLINE void WS_NAME(substitute)(int64_t n, const R *diagonal, bool is_unit, bool is_scaled, int direction, R *panel,
                                   const int mv) {
  const int width = mv * WS_VL;
  const R *factors = diagonal + WS_NR * WS_NR * WS_UNIT;
  const int64_t by = direction == WS_SOLVE_DOWN ? 1 : -1;
  int64_t j = direction == WS_SOLVE_DOWN ? 0 : n - 1;
  for (int64_t n_later = n - 1; n_later >= 0; n_later--, j += by) {
    const R *column = diagonal + j * WS_NR * WS_UNIT;
    WS_V x[WS_MV_MAX], x_turned[WS_MV_MAX];
#pragma GCC unroll 2
    for (int i = 0; i < mv; i++) {
      x[i] = WS_OP(load)(panel + j * width + i * WS_VL);
      if (!is_unit) x[i] = WS_NAME(product)(column + j * WS_UNIT, x[i]);
      if (is_scaled) x[i] = WS_OP(mul)(WS_OP(mul)(x[i], WS_OP(set1)(factors[2 * j])), WS_OP(set1)(factors[2 * j + 1]));
      WS_OP(store)(panel + j * width + i * WS_VL, x[i]);
      x_turned[i] = WS_NAME(turned)(x[i]);
    }
    for (int64_t later = 0, l = j + by; later < n_later; later++, l += by)
#pragma GCC unroll 2
      for (int i = 0; i < mv; i++) {
        R *sum = panel + l * width + i * WS_VL;
        WS_OP(store)(sum, WS_NAME(add_product)(column + l * WS_UNIT, x[i], x_turned[i], WS_OP(load)(sum)));
      }
  }
}

static void WS_NAME(substitute_1)(int64_t n, const void *diagonal, bool is_unit, bool is_scaled, int direction, void *x) {
  WS_NAME(substitute)(n, diagonal, is_unit, is_scaled, direction, x, 1);
}

static void WS_NAME(substitute_2)(int64_t n, const void *diagonal, bool is_unit, bool is_scaled, int direction, void *x) {
  WS_NAME(substitute)(n, diagonal, is_unit, is_scaled, direction, x, 2);
}

static void WS_NAME(substitute_small)(const ws_small_triangle *s, const void *b, int64_t step_b, void *out, int64_t step_out) {
  const int64_t n = s->n, row_step = s->row_step * WS_UNIT, column_step = s->column_step * WS_UNIT;
  const WS_M mask = WS_OP(mask)(s->n_lanes * WS_UNIT);
  const R *t = s->t, *inverse = s->inverse;
  WS_V x[WS_NR];
  for (int64_t p = 0; p < n; p++)
    x[p] = WS_NAME(result)((const R *)b + p * step_b * WS_UNIT, WS_OP(zero)(), WS_OP(zero)(), s->scale, mask, true);
  const int64_t by = s->direction == WS_SOLVE_DOWN ? 1 : -1;
  int64_t j = s->direction == WS_SOLVE_DOWN ? 0 : n - 1;
  WS_V next = x[j]; /* stays in a register: it is what all wait for */
  for (int64_t n_later = n - 1; n_later >= 0; n_later--, j += by) {
    const WS_V solved = s->is_unit ? next : WS_NAME(product)(inverse + j * WS_UNIT, next);
    x[j] = solved;
    if (n_later == 0) break;
    /* in place of T, what it is multiplied with is negated */
    const WS_V negated = WS_OP(xor)(solved, WS_OP(sign)());
    const WS_V turned = WS_NAME(turned)(s->conj ? solved : negated);
    const R *at = t + j * column_step + (j + by) * row_step;
    next = WS_NAME(add_product)(at, negated, turned, x[j + by]);
    for (int64_t later = 1, l = j + 2 * by; later < n_later; later++, l += by) {
      at += by * row_step;
      x[l] = WS_NAME(add_product)(at, negated, turned, x[l]);
    }
  }
  for (int64_t p = 0; p < n; p++) WS_OP(store_m)((R *)out + p * step_out * WS_UNIT, x[p], mask);
}
