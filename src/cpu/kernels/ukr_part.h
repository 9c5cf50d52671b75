/* ukr_part.h - a part of a register tile's k, written once over the vector operations. Included by ukr_type.h.
 *
 * By parts all rows take some columns of A before they take the next ones; a tile's sums wait in memory. So a far A is read in long runs: a
 * whole tile reads one short piece of each column, each in a page of its own, and the processor does not see them coming. And the lines of a
 * B that lies along its rows, of which a strip of columns takes a few numbers each, are still in L1 for the next strip. The sums are the same
 * chains, so the bits are those of the whole tile. */

/* Ahead in its column, where the tiles of the next rows find it: rows in tiles (Zen 3: 4 best from memory, 2 as good from L3, 8 and 12
 * worse). */
enum { WS_NAME(PART_AHEAD) = 4 * WS_MV * WS_VL };

WS_INLINE void WS_NAME(part)(int64_t k, const R *a, int64_t a_ld, const R *b, int64_t b_ld, R *c, int64_t ldc,
                             const ws_scale *scale, int64_t m_reals, R *sums, int part, const int mv, const int nrr,
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
      for (int j = 0; j < nrr; j++) acc[i][j] = WS_OP(load)(sums + (j * mv + i) * WS_VL);
  WS_NAME(b_at) b_at = WS_NAME(b_begin)(b, b_ld, nrr, form);
#pragma GCC unroll 2
  for (int64_t p = 0; p < k; p++) {
    __builtin_prefetch(a + WS_NAME(PART_AHEAD));
    WS_NAME(step)(acc, a, last, &b_at, b_ld, mask, mv, nrr, form, masked);
    a += a_ld;
    WS_NAME(b_next)(&b_at, b_ld, nrr, form);
  }
  if (!(part & WS_PART_LAST)) {
#pragma GCC unroll 4
    for (int i = 0; i < mv; i++)
#pragma GCC unroll 12
      for (int j = 0; j < nrr; j++) WS_OP(store)(sums + (j * mv + i) * WS_VL, acc[i][j]);
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
