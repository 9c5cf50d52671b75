/* ukr_tile.h - the register tile, written once over the vector operations of a simd_*.h.
 *
 * Included by ukr_type.h once per element type, with R (the real type) and WS_UNIT (reals per
 * element: 1, or 2 for complex) defined. Leaves panels, blocking and threads to the paths
 * (cpu/paths.h).
 *
 * mv x nrr accumulators stay in registers: mv vectors of A times nrr = n * WS_UNIT broadcast reals
 * of B. On AVX-512 the largest tile takes 24 accumulators + 2 vectors of A + broadcasts, of 32
 * registers. All loops over mv and nrr must unroll, so every function here is inlined with constant
 * mv, nrr, form and masked. Strides count reals here, not elements.
 *
 * A tile's last vector begins `last` reals behind its first one. Its rows beyond the tile are masked off; but without
 * masks (WS_OVERLAPS) it is that of the last rows, if there are several, and computes some rows of the one before again.
 *
 * By parts of k all rows take some columns of A before they take the next ones; a tile's sums wait in memory. So a far A is read in long
 * runs: a whole tile reads one short piece of each column, each in a page of its own, and the processor does not see them coming. And the
 * cache lines of a B along its rows, of which a strip of columns takes a few numbers each, are still in L1 for the next strip. The sums are
 * the same chains, so the bits are those of the whole tile. */

#define WS_INLINE static inline __attribute__((always_inline))

#ifndef WS_OVERLAPS /* an instruction set with masks */
#define WS_OVERLAPS 0
#endif
#ifndef WS_PLAIN_ENDS /* not measured */
#define WS_PLAIN_ENDS 0
#endif

/* gcc takes the value for another one from here on: it does not make addresses of many columns out of it beforehand, of which it would
 * keep most on the stack. */
#define WS_FORGET(pointer) __asm__("" : "+r"(pointer))

/* Where the columns of B are, of which three in a row share a pointer, as an address has room for 0, 1 and 2 times a distance; B's rows
 * need one pointer. */
enum { WS_NAME(SHARING) = 3, WS_NAME(POINTERS) = WS_NR_MAX / 3 };
typedef struct WS_NAME(b_at) {
  const R *at[WS_NAME(POINTERS)];
} WS_NAME(b_at);

WS_INLINE WS_NAME(b_at) WS_NAME(b_begin)(const R *b, int64_t b_ld, const int nrr, const int form) {
  WS_NAME(b_at) p;
  p.at[0] = b;
#pragma GCC unroll 4
  for (int g = 1; g < WS_NAME(POINTERS); g++) {
    p.at[g] = p.at[g - 1];
    if (!(form & WS_B_COLS) || g * WS_NAME(SHARING) * WS_UNIT >= nrr) continue;
    p.at[g] += WS_NAME(SHARING) * b_ld;
    WS_FORGET(p.at[g]);
  }
  return p;
}

WS_INLINE void WS_NAME(b_next)(WS_NAME(b_at) * p, int64_t b_ld, const int nrr, const int form) {
#pragma GCC unroll 4
  for (int g = 0; g < WS_NAME(POINTERS); g++)
    if (g == 0 || ((form & WS_B_COLS) && g * WS_NAME(SHARING) * WS_UNIT < nrr)) p->at[g] += form & WS_B_COLS ? WS_UNIT : b_ld;
}

/* acc += a(:, p) b(p, :) */
WS_INLINE void WS_NAME(step)(WS_V acc[WS_MV_MAX][WS_NR_MAX], const R *a, int64_t last, const WS_NAME(b_at) * b, int64_t b_ld,
                             WS_M mask, const int mv, const int nrr, const int form, const bool masked) {
  WS_V av[WS_MV_MAX];
#pragma GCC unroll 4
  for (int i = 0; i < mv; i++) {
    const R *const at = a + (i == mv - 1 ? last : i * WS_VL);
    av[i] = masked && i == mv - 1 ? WS_OP(load_a)(at, mask) : WS_OP(load)(at);
  }
#pragma GCC unroll 12
  for (int j = 0; j < nrr; j++) {
    const int column = j / WS_UNIT;
    const R *number =
        !(form & WS_B_COLS) ? &b->at[0][j] : &b->at[column / WS_NAME(SHARING)][column % WS_NAME(SHARING) * b_ld + j % WS_UNIT];
    if (masked && mv == 1) {
      acc[0][j] = WS_OP(fma_times_m)(av[0], number, acc[0][j], mask);
      continue;
    }
    const WS_V bv = WS_OP(set1)(*number);
#pragma GCC unroll 4
    for (int i = 0; i < mv; i++)
      acc[i][j] = masked && i == mv - 1 ? WS_OP(fma_m)(av[i], bv, acc[i][j], mask) : WS_OP(fma)(av[i], bv, acc[i][j]);
  }
}

/* scalar * v; for a complex type by a complex scalar. */
WS_INLINE WS_V WS_NAME(times)(const R *scalar, bool real, WS_V v, WS_M mask, const bool masked) {
  const WS_V re = WS_OP(set1)(scalar[0]);
#if WS_UNIT == 2
  if (!real) return WS_OP(fmaddsub_m)(re, v, WS_OP(mul_m)(WS_OP(set1)(scalar[1]), WS_OP(swap)(v), mask), mask);
#else
  (void)real;
#endif
  return masked ? WS_OP(mul_m)(re, v, mask) : WS_OP(mul)(re, v);
}

/* C = A B is the most frequent case; the write-back of its tiles has no branch for each vector. */
WS_INLINE bool WS_NAME(is_plain)(const ws_scale *scale) {
  return WS_PLAIN_ENDS && (scale->alpha_one & scale->beta_zero & !(scale->conj_a | scale->conj_b));
}
static const ws_scale WS_NAME(plain_scale) = {.alpha_one = true, .beta_zero = true};

/* The sums of one vector of one column. */
WS_INLINE WS_V WS_NAME(combined)(WS_V acc_re, WS_V acc_im, const ws_scale *scale, WS_M mask) {
#if WS_UNIT == 1
  (void)acc_im, (void)scale, (void)mask;
  return acc_re;
#else
  /* acc_re = (ar br, ai br), acc_im = (ar bi, ai bi). Conjugating b turns bi; conj(a) b = conj(a
   * conj(b)). */
  if (scale->conj_a != scale->conj_b) acc_im = WS_OP(xor)(acc_im, WS_OP(sign)());
  WS_V r = WS_OP(fmaddsub_m)(WS_OP(set1)(1), acc_re, WS_OP(swap)(acc_im), mask);
  if (scale->conj_a) r = WS_OP(xor)(r, WS_OP(sign_im)());
  return r;
#endif
}

/* alpha * sums. Multiplying by one is left out, here and below: it takes time and changes nothing. */
WS_INLINE WS_V WS_NAME(scaled)(WS_V sums, const ws_scale *scale, WS_M mask, const bool masked) {
  return scale->alpha_one ? sums : WS_NAME(times)(scale->alpha.WS_L, scale->alpha_real, sums, mask, masked);
}

/* alpha * sums + beta * old, element by element: of a column or of a row. */
WS_INLINE WS_V WS_NAME(added)(WS_V sums, WS_V old, const ws_scale *scale, WS_M mask, const bool masked) {
  if (!scale->beta_one) old = WS_NAME(times)(scale->beta.WS_L, scale->beta_real, old, mask, masked);
#if WS_UNIT == 1
  const WS_V alpha = WS_OP(set1)(scale->alpha.WS_L[0]);
  if (!scale->alpha_one) return masked ? WS_OP(fma_m)(alpha, sums, old, mask) : WS_OP(fma)(alpha, sums, old);
  return masked ? WS_OP(add_m)(sums, old, mask) : WS_OP(add)(sums, old);
#else
  return WS_OP(add_m)(WS_NAME(scaled)(sums, scale, mask, masked), old, mask);
#endif
}

/* alpha * sums + beta * c for one vector of one column. */
WS_INLINE WS_V WS_NAME(result)(const R *c, WS_V acc_re, WS_V acc_im, const ws_scale *scale, WS_M mask, const bool masked) {
  const WS_V sums = WS_NAME(combined)(acc_re, acc_im, scale, mask);
  if (scale->beta_zero) return WS_NAME(scaled)(sums, scale, mask, masked);
  return WS_NAME(added)(sums, masked ? WS_OP(load_a)(c, mask) : WS_OP(load)(c), scale, mask, masked);
}

WS_INLINE void WS_NAME(finish)(R *c, WS_V acc_re, WS_V acc_im, const ws_scale *scale, WS_M mask) {
  WS_OP(store_m)(c, WS_NAME(result)(c, acc_re, acc_im, scale, mask, true), mask);
}

WS_INLINE void WS_NAME(clear)(WS_V acc[WS_MV_MAX][WS_NR_MAX], const int mv, const int nrr) {
#pragma GCC unroll 4
  for (int i = 0; i < mv; i++)
#pragma GCC unroll 12
    for (int j = 0; j < nrr; j++) acc[i][j] = WS_OP(zero)();
}

/* All of a column is read before any of it is written, as vectors may overlap. */
WS_INLINE void WS_NAME(finish_as)(WS_V acc[WS_MV_MAX][WS_NR_MAX], R *c, int64_t last, int64_t ldc, const ws_scale s, WS_M mask,
                                  const int mv, const int nrr, const bool masked) {
#pragma GCC unroll 12
  for (int j = 0; j < nrr; j += WS_UNIT) {
    WS_V r[WS_MV_MAX];
#pragma GCC unroll 4
    for (int i = 0; i < mv; i++) {
      const bool is_last = i == mv - 1, has_mask = masked && is_last;
      r[i] = WS_NAME(result)(c + (is_last ? last : i * WS_VL), acc[i][j], acc[i][j + WS_UNIT - 1], &s,
                             has_mask ? mask : WS_OP(mask)(WS_VL), has_mask);
    }
#pragma GCC unroll 4
    for (int i = 0; i < mv - 1; i++) WS_OP(store)(c + i * WS_VL, r[i]);
    if (masked)
      WS_OP(store_m)(c + last, r[mv - 1], mask);
    else
      WS_OP(store)(c + last, r[mv - 1]);
    c += ldc;
    WS_FORGET(c);
  }
}

WS_INLINE void WS_NAME(finish_all)(WS_V acc[WS_MV_MAX][WS_NR_MAX], R *c, int64_t last, int64_t ldc, const ws_scale *scale,
                                   WS_M mask, const int mv, const int nrr, const bool masked) {
  if (WS_NAME(is_plain)(scale))
    WS_NAME(finish_as)(acc, c, last, ldc, WS_NAME(plain_scale), mask, mv, nrr, masked);
  else
    WS_NAME(finish_as)(acc, c, last, ldc, *scale, mask, mv, nrr, masked); /* a copy that stores to C cannot change */
}

/* Column p of a far A, and the end of what its last vector begins. */
WS_INLINE void WS_NAME(ask_for)(const R *a, const int mv) {
#pragma GCC unroll 4
  for (int i = 0; i < mv; i++) __builtin_prefetch(a + i * WS_VL);
  __builtin_prefetch(a + mv * WS_VL - 1);
}

/* acc += A B, of any tile of mv vectors. */
WS_INLINE void WS_NAME(add_steps)(WS_V acc[WS_MV_MAX][WS_NR_MAX], int64_t k, const R *a, int64_t last, int64_t a_ld, const R *b,
                                  int64_t b_ld, WS_M mask, const int mv, const int nrr, const int form, const bool masked) {
  enum {
    AHEAD = 24, /* columns: 8 to 64 differ little; in L1, also where columns meet in few of its sets */
    /* of the same column, for the tiles of the next rows (Zen 3: best from memory; half as many as good from L3, two and three times as
     * many worse) */
    ROWS_AHEAD = 4 * WS_MV * WS_VL
  };
  WS_NAME(b_at) b_at = WS_NAME(b_begin)(b, b_ld, nrr, form);
#pragma GCC unroll 2
  for (int64_t p = 0; p < k; p++) {
    if (form & WS_A_FAR) WS_NAME(ask_for)(a + AHEAD * a_ld, mv);
    if (form & WS_K_IN_PARTS) __builtin_prefetch(a + ROWS_AHEAD);
    WS_NAME(step)(acc, a, last, &b_at, b_ld, mask, mv, nrr, form, masked);
    a += a_ld;
    WS_NAME(b_next)(&b_at, b_ld, nrr, form);
  }
}

#ifdef WS_STORE_ROWS
/* What is stored of a row's first n reals, where C is added to: with as few cases as can be, for the code's size, as
 * multiplying by one changes nothing. Of complex sums alpha is done with. */
WS_INLINE ws_vi WS_NAME(row_added)(ws_vi sums, ws_vi old, const int n, const ws_scale *scale) {
  const WS_M mask = WS_OP(mask)(n);
  const WS_V addend = WS_NAME(times)(scale->beta.WS_L, scale->beta_real, (WS_V)old, mask, true);
#if WS_UNIT == 1
  return (ws_vi)WS_OP(fma_m)(WS_OP(set1)(scale->alpha.WS_L[0]), (WS_V)sums, addend, mask);
#else
  return (ws_vi)WS_OP(add_m)((WS_V)sums, addend, mask);
#endif
}

/* Of a tile's sums, what goes to row_added or is stored. */
WS_INLINE void WS_NAME(columns_of)(WS_V column[WS_MV_MAX][WS_NR_MAX], WS_V acc[WS_MV_MAX][WS_NR_MAX], const ws_scale *s,
                                   WS_M mask, const int mv, const int nrr, const bool masked) {
#pragma GCC unroll 4
  for (int i = 0; i < mv; i++) {
    const bool has_mask = masked && i == mv - 1;
    const WS_M lanes = has_mask ? mask : WS_OP(mask)(WS_VL);
#pragma GCC unroll 12
    for (int j = 0; j < nrr; j += WS_UNIT) {
      const WS_V sums = WS_NAME(combined)(acc[i][j], acc[i][j + WS_UNIT - 1], s, lanes);
      column[i][j / WS_UNIT] = s->beta_zero || WS_UNIT == 2 ? WS_NAME(scaled)(sums, s, lanes, has_mask) : sums;
    }
  }
}

/* A tile's sums, written by rows: each vector's columns are transposed in registers. What C held is added to them as rows. */
WS_INLINE void WS_NAME(finish_by_rows)(WS_V acc[WS_MV_MAX][WS_NR_MAX], R *c, int64_t last, int64_t ldc, const ws_scale *scale,
                                       WS_M mask, int64_t m_reals, const int mv, const int nrr, const bool masked) {
  const ws_scale s = *scale;
  WS_V column[WS_MV_MAX][WS_NR_MAX];
  if (WS_NAME(is_plain)(scale))
    WS_NAME(columns_of)(column, acc, &WS_NAME(plain_scale), mask, mv, nrr, masked);
  else
    WS_NAME(columns_of)(column, acc, &s, mask, mv, nrr, masked);
#pragma GCC unroll 4
  for (int i = 0; i < mv; i++) {
    const int64_t n_rows = i == mv - 1 ? m_reals / WS_UNIT - i * (WS_VL / WS_UNIT) : WS_VL / WS_UNIT,
                  step = ldc * (int64_t)sizeof(R);
    char *const rows = (char *)(c + i * (WS_VL / WS_UNIT) * ldc);
#if WS_OVERLAPS
    const int64_t overlap = (mv - 1) * WS_VL - last;
    if (i == mv - 1 && overlap > 0)
#pragma GCC unroll 12
      for (int j = 0; j < nrr / WS_UNIT; j++) column[i][j] = WS_OP(from_lane)(column[i][j], overlap);
#else
    (void)last;
#endif
    if (s.beta_zero)
      WS_STORE_ROWS((const ws_vi *)column[i], nrr / WS_UNIT, n_rows, rows, step, NULL, NULL);
    else
      WS_STORE_ROWS((const ws_vi *)column[i], nrr / WS_UNIT, n_rows, rows, step, WS_NAME(row_added), &s);
  }
}

#endif

/* Vector i of column j of a tile's sums, while they wait in memory for the next part of k. */
WS_INLINE R *WS_NAME(waiting)(R *sums, const int i, const int j, const int mv) { return sums + (j * mv + i) * WS_VL; }

/* Any tile. part: as ws_part_fn has it; of a whole tile, first and last. */
WS_INLINE void WS_NAME(edge)(int64_t k, const R *a, int64_t a_ld, const R *b, int64_t b_ld, R *c, int64_t ldc,
                             const ws_scale *scale, int64_t m_reals, R *sums, const int part, const int mv, const int nrr,
                             const int form) {
  const bool masked = !WS_OVERLAPS || mv == 1;
  const int64_t last = masked ? (mv - 1) * WS_VL : m_reals - WS_VL;
  const WS_M mask = WS_OP(mask)(m_reals - (mv - 1) * WS_VL);
  WS_V acc[WS_MV_MAX][WS_NR_MAX];
  WS_NAME(clear)(acc, mv, nrr);
  if (!(part & WS_PART_FIRST))
#pragma GCC unroll 4
    for (int i = 0; i < mv; i++)
#pragma GCC unroll 12
      for (int j = 0; j < nrr; j++) acc[i][j] = WS_OP(load)(WS_NAME(waiting)(sums, i, j, mv));
  WS_NAME(add_steps)(acc, k, a, last, a_ld, b, b_ld, mask, mv, nrr, form, masked);
  if (!(part & WS_PART_LAST)) {
#pragma GCC unroll 4
    for (int i = 0; i < mv; i++)
#pragma GCC unroll 12
      for (int j = 0; j < nrr; j++) WS_OP(store)(WS_NAME(waiting)(sums, i, j, mv), acc[i][j]);
    return;
  }
#ifdef WS_STORE_ROWS
  if (part & WS_PART_BY_ROWS) {
    WS_NAME(finish_by_rows)(acc, c, last, ldc, scale, mask, m_reals, mv, nrr, masked);
    return;
  }
#endif
  WS_NAME(finish_all)(acc, c, last, ldc, scale, mask, mv, nrr, masked);
}

/* The full tile over packed panels. The next steps of A are asked for early: A's panel streams from
 * L2 while B's stays in L1. C is asked for before the k loop, so that it is there at its end. asks:
 * for lines->run, too; else for what follows lines->at, half as much. */
WS_INLINE void WS_NAME(whole)(int64_t k, const R *a, const R *b, R *c, int64_t ldc, const ws_scale *scale, ws_lines *lines,
                              const bool asks) {
  enum { MR = WS_MV * WS_VL, NRR = WS_NR * WS_UNIT, AHEAD = 16 * MR, LINE = 64, LINE_REALS = LINE / (int)sizeof(R) };
  ws_lines next = *lines;
  const WS_M mask = WS_OP(mask)(WS_VL);
  WS_V acc[WS_MV_MAX][WS_NR_MAX];
  WS_NAME(clear)(acc, WS_MV, NRR);
  for (int j = 0; j < WS_NR; j++)
    for (int i = 0; i < MR; i += WS_VL) __builtin_prefetch(c + j * ldc * WS_UNIT + i, 1);
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
#pragma GCC unroll 4
    for (int u = 0; u < 4; u++) {
      if (u == 0 || (asks && u == 2)) {
        __builtin_prefetch(next.at, 0, 2);
        next.at += LINE;
        if (asks && --next.left == 0) next.at += next.jump, next.left = next.run;
      }
      for (int i = 0; i < MR; i += LINE_REALS) __builtin_prefetch(a + AHEAD + u * MR + i);
      const WS_NAME(b_at) row = {{b + u * NRR}};
      WS_NAME(step)(acc, a + u * MR, MR - WS_VL, &row, 0, mask, WS_MV, NRR, WS_B_ROWS, false);
    }
    a += 4 * MR;
    b += 4 * NRR;
  }
  if (asks) *lines = next;
  for (; p < k; p++) {
    const WS_NAME(b_at) row = {{b}};
    WS_NAME(step)(acc, a, MR - WS_VL, &row, 0, mask, WS_MV, NRR, WS_B_ROWS, false);
    a += MR;
    b += NRR;
  }
  WS_NAME(finish_all)(acc, c, MR - WS_VL, ldc * WS_UNIT, scale, mask, WS_MV, NRR, false);
}

static void WS_NAME(full)(int64_t k, const void *a_panel, const void *b_panel, void *c_tile, int64_t ldc, const ws_scale *scale,
                          const void *next) {
  ws_lines lines = {next, 0, 0, 0};
  WS_NAME(whole)(k, a_panel, b_panel, c_tile, ldc, scale, &lines, false);
}

static void WS_NAME(full_asking)(int64_t k, const void *a_panel, const void *b_panel, void *c_tile, int64_t ldc,
                                 const ws_scale *scale, ws_lines *next) {
  WS_NAME(whole)(k, a_panel, b_panel, c_tile, ldc, scale, next, true);
}

/* k_half steps of one vector, before the others or behind them. */
WS_INLINE void WS_NAME(half_steps)(WS_V acc[WS_MV_MAX][WS_NR_MAX], int64_t k_half, const R *a, int64_t a_ld, WS_NAME(b_at) * b_at,
                                   int64_t b_ld, const int vector, const int form) {
  enum { NRR = WS_NR * WS_UNIT };
#pragma GCC unroll 2
  for (int64_t p = 0; p < k_half; p++) {
    WS_NAME(step)(acc + vector, a + vector * WS_VL, 0, b_at, b_ld, WS_OP(mask)(WS_VL), 1, NRR, form, false);
    a += a_ld;
    WS_NAME(b_next)(b_at, b_ld, NRR, form);
  }
}

WS_INLINE void WS_NAME(half_tile)(int64_t k, int64_t k_half, const R *a, int64_t a_ld, const R *b, int64_t b_ld, R *c,
                                  int64_t ldc, const ws_scale *scale, const int which, const int form) {
  enum { NRR = WS_NR * WS_UNIT, LAST = (WS_MV - 1) * WS_VL };
  const WS_M mask = WS_OP(mask)(WS_VL);
  const int64_t n_both = k - k_half;
  WS_V acc[WS_MV_MAX][WS_NR_MAX];
  WS_NAME(clear)(acc, WS_MV, NRR);
  WS_NAME(b_at) b_at = WS_NAME(b_begin)(b, b_ld, NRR, form);
  if (which == WS_HALF_FIRST) {
    WS_NAME(half_steps)(acc, k_half, a, a_ld, &b_at, b_ld, 0, form);
    a += k_half * a_ld;
  }
#pragma GCC unroll 2
  for (int64_t p = 0; p < n_both; p++) {
    WS_NAME(step)(acc, a, LAST, &b_at, b_ld, mask, WS_MV, NRR, form, false);
    a += a_ld;
    WS_NAME(b_next)(&b_at, b_ld, NRR, form);
  }
  if (which == WS_HALF_LAST) WS_NAME(half_steps)(acc, k_half, a, a_ld, &b_at, b_ld, 1, form);
  WS_NAME(finish_all)(acc, c, LAST, ldc, scale, mask, WS_MV, NRR, false);
}

#define WS_HALF(name, which, form)                                                                                        \
  static void WS_NAME(name)(int64_t k, int64_t k_half, const void *a, int64_t a_ld, const void *b, int64_t b_ld, void *c, \
                            int64_t ldc, const ws_scale *scale) {                                                         \
    WS_NAME(half_tile)(k, k_half, a, a_ld * WS_UNIT, b, b_ld * WS_UNIT, c, ldc * WS_UNIT, scale, which, form);            \
  }
WS_HALF(half_rows_first, WS_HALF_FIRST, WS_B_ROWS)
WS_HALF(half_rows_last, WS_HALF_LAST, WS_B_ROWS)
WS_HALF(half_cols_first, WS_HALF_FIRST, WS_B_COLS)
WS_HALF(half_cols_last, WS_HALF_LAST, WS_B_COLS)
#undef WS_HALF
