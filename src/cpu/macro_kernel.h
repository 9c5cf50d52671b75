/* macro_kernel.h - packed panels of A times packed panels of B, one register tile of C after the
 * other. */
#ifndef WS_CPU_SWEEP_H
#define WS_CPU_SWEEP_H
#include "core/tile.h"
#include "cpu/kernels/ukr.h"

/* What a sweep asks for on its way: n lines, or less than none. */
typedef struct ws_asked {
  ws_lines lines;
  int64_t n;
} ws_asked;

/* n_runs runs of so many bytes, from `at` on, each step_bytes behind the one before. */
static inline ws_asked ws_ask_for(const char *at, int64_t run_bytes, int64_t step_bytes, int64_t n_runs) {
  enum { CACHE_LINE = 64 };
  const int64_t run = ws_ceil_div(run_bytes, CACHE_LINE);
  return (ws_asked){{at, run, run, step_bytes - run * CACHE_LINE}, n_runs * run};
}

/* C[m x n] = alpha A B + beta C, as scale says, for elements of `bytes`. A panel of B stays in L1
 * while all of A passes by. other: to be asked for on the way, as long as there is some of it; NULL
 * or then: each time the next panel of B. */
static inline void ws_sweep(const ws_ukr_set *ukr, int64_t bytes, const ws_scale *scale, int64_t kb, const char *a_panels,
                            int64_t m, const char *b_panels, int64_t n, char *c, int64_t ldc, ws_asked *other) {
  enum { CACHE_LINE = 64 };
  const int64_t panel_bytes = ukr->nr * kb * bytes, asked_bytes = kb / 4 * CACHE_LINE;
  for (int64_t j = 0; j < n; j += ukr->nr) {
    const int64_t n_tile = ws_min(ukr->nr, n - j);
    const char *b = b_panels + j * kb * bytes;
    int64_t ahead = 0; /* bytes of the next panel asked for so far */
    for (int64_t i = 0; i < m; i += ukr->mr) {
      const int64_t m_tile = ws_min(ukr->mr, m - i);
      const char *a = a_panels + i * kb * bytes;
      char *c_tile = c + (i + j * ldc) * bytes;
      if (m_tile == ukr->mr && n_tile == ukr->nr && other && other->n > 0) {
        ukr->full_asking(kb, a, b, c_tile, ldc, scale, &other->lines);
        other->n -= kb / 4 * 2;
      } else if (m_tile == ukr->mr && n_tile == ukr->nr) {
        const bool more = j + ukr->nr < n && ahead < panel_bytes;
        ukr->full(kb, a, b, c_tile, ldc, scale, more ? b + panel_bytes + ahead : b);
        ahead += asked_bytes;
      } else {
        ukr->tile[WS_B_ROWS][m_tile > ukr->vl][n_tile - 1](kb, a, ukr->mr, b, ukr->nr, c_tile, ldc, scale, m_tile);
      }
    }
  }
}

/* The same with B where it is, its columns ldb apart, each of them contiguous: a strip of columns is
 * fetched by the first panel of A, and in L1 for the others. */
static inline void ws_sweep_in_place(const ws_ukr_set *ukr, int64_t bytes, const ws_scale *scale, int64_t kb,
                                     const char *a_panels, int64_t m, const char *b, int64_t ldb, int64_t n, char *c,
                                     int64_t ldc) {
  for (int64_t n_tile, j = 0; j < n; j += n_tile) {
    n_tile = ws_min(ukr->nr, n - j);
    for (int64_t i = 0; i < m; i += ukr->mr) {
      const int64_t m_tile = ws_min(ukr->mr, m - i);
      ukr->tile[WS_B_COLS][m_tile > ukr->vl][n_tile - 1](kb, a_panels + i * kb * bytes, ukr->mr, b + j * ldb * bytes, ldb,
                                                         c + (i + j * ldc) * bytes, ldc, scale, m_tile);
    }
  }
}
#endif
