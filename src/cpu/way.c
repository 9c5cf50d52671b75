/* way.c - which way of computing suits few rows and few columns: a model of three costs; and which products
 * are so small that they go without a plan.
 *
 * The choice is part of the numerics (sums along k have an order of their own), so it follows from the
 * product, its row and the mode alone: not from threads, the batch or the machine. */
#include "cpu/way.h"

#include "core/tile.h"

/* Rows or columns that are few: for sums along k; for tiles of C by rows. */
enum { FEW = 24, FEW_BY_ROWS = 64 };
/* Bytes of C that do not stay in L2. Of any size, as bits depend on it. */
enum { FAR_C = 512 * 1024 };
/* Lines that the long operand meets at once. */
enum { FEW_PASSING = 6 };
/* Of k, for sums along it. */
enum { LEAST_K = 32 };

/* Costs of the ways are in multiply-adds of vectors (measured, Zen 5). */
enum {
  END_OF_SUM = 4,        /* an element's sum along k */
  COPY = 8,              /* a vector that is transposed for sums */
  COPY_OF_FEW = 3,       /* the same of lines that are FEW_BYTES wide together, or less */
  PACK = 11,             /* a vector that is transposed for tiles, as one of a whole square */
  END_OF_STEP = 3,       /* a step along k of a tile of one vector, where B's columns lie along k */
  END_OF_TILE = 8,       /* a vector of C in a tile, beside one written by rows; sums were fitted without it */
  END_BY_ROWS = 4,       /* a vector of C in a tile that is written by rows, beside what each column of C costs */
  END_BY_COPY = 20,      /* the same through a copy, columns and all */
  END_OF_FEW_BY_COPY = 5 /* of 4 rows or less */
};
enum { FEW_BYTES = 32 };

static bool has_by_rows(const ws_ukr_set *ukr) { return ukr->by_rows[0][0][0] != NULL; }

static int64_t cost_of_tiles(const ws_problem *p, const ws_ukr_set *ukr) {
  const int64_t vl = ukr->vl, n_real = ws_types[p->a.type].n_real; /* so many times the multiply-adds, beside the same ends */
  const int64_t end = p->b.trans && (n_real == 1 || has_by_rows(ukr)) ? END_OF_TILE / n_real : 0;
  const int64_t pack = p->a.trans ? PACK * vl * ws_vectors_of(p->k, vl) / n_real : 0;
  const int64_t end_of_step = p->b.trans || p->m > vl ? 0 : ws_ceil_div(p->n, ukr->nr) * END_OF_STEP / n_real;
  const int64_t cost = ws_vectors_of(p->m, vl) * ((p->k + end) * p->n + pack) + end_of_step * p->k;
  /* pieces of B's rows come one by one; beside an A in place, they do no harm */
  return p->a.trans && p->b.trans && ws_is_far((double)p->n, p) ? cost + cost / 4 : cost;
}

/* Sums along k in vectors, where the long operand lies along k: few columns, of which all other paths copy
 * it, or few rows, which do not fill vectors. INT64_MAX: not possible, or no use. */
static int64_t cost_of_dots(const ws_call *call, const ws_problem *p, int64_t vl) {
  if (call->settings.invariant || p->k < LEAST_K) return INT64_MAX;
  const bool few_rows = !p->b.trans && p->m <= FEW && (p->m <= p->n || !p->a.trans),
             few_columns = p->a.trans && p->n <= FEW && p->n <= p->m;
  if (!few_rows && !few_columns) return INT64_MAX;
  const int64_t k_vectors = ws_vectors_of(p->k, vl), n_few = ws_min(p->m, p->n);
  if (!few_columns && ws_is_far((double)p->n, p) && 2 * n_few > vl) return INT64_MAX; /* slower, by up to a third */
  const int64_t sums = p->m * p->n * (k_vectors + END_OF_SUM);
  const int64_t n_copied = p->a.trans ? p->n : p->m,
                copy = n_copied * ws_types[p->a.type].bytes <= FEW_BYTES ? COPY_OF_FEW : COPY;
  const int64_t cost = sums + (ws_dots_have_copies(p) ? ws_vectors_of(n_copied, vl) * k_vectors * vl * copy : 0);
  /* a long operand of doubles from far away meets so many lines in several passes: from memory, lines at a time (FP64 TT
   * 1927 x 13 x 1403 57 GF/s to 84, 700 x 12 x 3500 60 to 68; floats lose by it) */
  if (few_columns && n_few > FEW_PASSING && p->a.type == WSGEMM_F64 && ws_is_far((double)p->m, p)) return cost + cost * 3 / 10;
  return !p->a.trans && p->m > vl ? cost + cost / 8 : cost; /* tiles are half full at least: and threads share their A */
}

/* As the transpose, C written by rows, where B lies along its rows: it is not copied, its vectors may be
 * fuller. */
static int64_t cost_by_rows(const ws_call *call, const ws_problem *p, const ws_ukr_set *ukr) {
  const int64_t vl = ukr->vl, n_vectors = ws_vectors_of(p->n, vl) * p->m;
  if (!p->b.trans || (call->settings.invariant && ws_types[p->a.type].n_real == 2)) return INT64_MAX;
  const int64_t c_bytes = p->m * p->n * ws_types[p->a.type].bytes;
  if (p->m > FEW_BY_ROWS && c_bytes > FAR_C) return INT64_MAX; /* then in long runs */
  const bool is_one_panel = p->n <= 2 * vl;                    /* the long operand passes by once, from wherever */
  if (p->m > FEW_BY_ROWS && (!p->a.trans || (!is_one_panel && (ws_is_far((double)p->m, p) || ws_is_far((double)p->n, p)))))
    return INT64_MAX;
  if (!has_by_rows(ukr)) return n_vectors * (p->k + (p->m <= 4 ? END_OF_FEW_BY_COPY : END_BY_COPY));
  const int64_t n_together = ws_types[p->a.type].bytes == 4 ? 8 : 4; /* rows of a column that are written at once */
  return n_vectors * (p->k + END_BY_ROWS) + p->n * ws_vectors_of(p->m, n_together) * n_together / 2;
}

ws_way ws_way_of(const ws_call *call, const ws_problem *p, const ws_cpu_row *row) {
  enum { LEAST_WORK = 1500 }; /* of NT, less is sooner done than thought about */
  const int64_t most = INT64_C(1) << 20;
  if (ws_is_half(p->a.type) || p->m > most || p->n > most || p->k > most) return WS_WAY_OF_TILES;
  if (!p->a.trans && (p->b.trans ? p->m * p->n * p->k < LEAST_WORK : p->m > FEW || p->k < LEAST_K)) return WS_WAY_OF_TILES;
  const int64_t vl = row->ukr->vl;
  const int64_t tiles = cost_of_tiles(p, row->ukr), dots = cost_of_dots(call, p, vl), by_rows = cost_by_rows(call, p, row->ukr);
  if (tiles <= dots && tiles <= by_rows) return WS_WAY_OF_TILES;
  return dots < by_rows ? WS_WAY_OF_DOTS : WS_WAY_BY_ROWS;
}

ws_small ws_small_of(const ws_call *call, const ws_problem *p, const ws_cpu_row *row) {
  const bool is_small = ws_is_small(p, row), is_small_by_rows = ws_is_small_by_rows(p, row);
  if (!is_small && !is_small_by_rows && (p->m | p->n | p->k) > WS_SMALL_WORK / 2) return WS_NOT_SMALL;
  switch (ws_way_of(call, p, row)) {
  case WS_WAY_OF_TILES:
    return is_small ? WS_SMALL : WS_NOT_SMALL;
  case WS_WAY_BY_ROWS:
    return is_small_by_rows ? WS_SMALL_BY_ROWS : WS_NOT_SMALL;
  case WS_WAY_OF_DOTS:
    return ws_is_small_dots(p, row) ? WS_SMALL_DOTS : WS_NOT_SMALL;
  }
  return WS_NOT_SMALL;
}
