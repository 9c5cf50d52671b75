/* way.c - which way of computing suits few rows and few columns: a model of three costs; and which products
 * are so small that they go without a plan.
 *
 * The choice is part of the numerics (sums along k have an order of their own), so it follows from the
 * product, its row and the mode alone: not from threads, the batch or the machine. */
#include "cpu/way.h"

#include "core/tile.h"

/* Rows or columns that are few: for sums along k; the same where these take a column at a time, and the long lines pass by for each of
 * them (Zen 3, complex: 2.5 and 2.8 % behind the best way, so 1.9 and 2.4); for tiles of C by rows. */
enum { FEW = 24, FEW_ALONE = 8, FEW_BY_ROWS = 64 };
static int few_of(const ws_ukr_set *ukr) { return ukr->dots_n > 1 ? FEW : FEW_ALONE; }
/* Bytes of C that do not stay in L2. Of any size, as bits depend on it. */
enum { FAR_C = 512 * 1024 };
/* Bytes of an operand that comes from memory: of any size, as FAR_C. */
enum { FROM_MEMORY = 8 * 1024 * 1024 };
/* Of k, for sums along it. */
enum { LEAST_K = 16 };

/* Costs of the ways are in multiply-adds of vectors. */
enum {
  END_BY_ROWS = 4,       /* a vector of C in a tile that is written by rows, beside what each column of C costs */
  END_BY_COPY = 20,      /* the same through a copy, columns and all */
  END_OF_FEW_BY_COPY = 5 /* of 4 rows or less */
};
typedef struct costs {
  int end_of_sum;    /* an element's sum along k */
  int copy;          /* a vector that is transposed for sums */
  int copy_of_few;   /* the same of lines that are FEW_BYTES wide together, or less */
  int pack;          /* a vector that is transposed for tiles, as one of a whole square */
  int shortest_step; /* a step along k of a tile: a sum's multiply-adds wait for one another */
  int end_of_tile;   /* a vector of C in a tile, beside one written by rows; sums were fitted without it */
  int alone; /* a step of a vector that has a tile for itself, in halves of a multiply-add more: too few accumulators to keep both FMA units busy */
  int far_rows; /* a vector of rows of B from far away, which is packed for tiles */
} costs;
/* AVX-512: Zen 5 and Zen 4. AVX2: Zen 3, 260 shapes of each type, each by all ways; the horizontal sum at the end
 * is expensive beside shorter vectors. Others were not measured. */
static const costs costs_of_most = {4, 5, 3, 8, 8, 8, 0, 0}, costs_of_avx2 = {10, 8, 3, 7, 12, 5, 1, 3};
static const costs *costs_of(const ws_cpu_row *row) { return row->isa == WS_ISA_AVX2 ? &costs_of_avx2 : &costs_of_most; }
enum { FEW_BYTES = 32 };

static bool has_by_rows(const ws_ukr_set *ukr) { return ukr->by_rows[0][0][0] != NULL; }

/* Of tiles of so many vectors together, for each column and step: in halves. The last vector of an odd number has a tile for itself. */
static int64_t steps_of(int64_t n_vectors, const costs *cost_of) { return 2 * n_vectors + (n_vectors % 2) * cost_of->alone; }

static int64_t cost_of_tiles(const ws_problem *p, const ws_ukr_set *ukr, const costs *cost_of) {
  const int64_t vl = ukr->vl, n_real = ws_types[p->a.type].n_real; /* so many times the multiply-adds, beside the same ends */
  const int64_t end = p->b.trans && (n_real == 1 || has_by_rows(ukr)) ? cost_of->end_of_tile / n_real : 0;
  const int64_t pack = p->a.trans ? cost_of->pack * vl * ws_vectors_of(p->k, vl) / n_real : 0;
  const int64_t n_vectors = ws_vectors_of(p->m, vl), waits = ws_max(0, cost_of->shortest_step / n_real - n_vectors * p->n);
  const int64_t cost = steps_of(n_vectors, cost_of) * p->k * p->n / 2 + n_vectors * (end * p->n + pack) + waits * p->k;
  if (!p->b.trans || !ws_is_far((double)p->n, p)) return cost;
  /* pieces of B's rows come one by one; beside an A in place, they do no harm, or are packed */
  return p->a.trans ? cost + cost / 4 : cost + ws_vectors_of(p->n, vl) * p->k * cost_of->far_rows;
}

/* Sums along k in vectors, where the long operand lies along k: few columns, of which all other paths copy
 * it, or few rows, which do not fill vectors. INT64_MAX: not possible, or no use. */
static int64_t cost_of_dots(const ws_call *call, const ws_problem *p, const ws_ukr_set *ukr, const costs *cost_of) {
  const int64_t vl = ukr->vl, few = few_of(ukr);
  if (call->settings.invariant || p->k < LEAST_K) return INT64_MAX;
  const bool few_rows = !p->b.trans && p->m <= few && (p->m <= p->n || !p->a.trans),
             few_columns = p->a.trans && p->n <= few && p->n <= p->m;
  if (!few_rows && !few_columns) return INT64_MAX;
  const int64_t k_vectors = ws_vectors_of(p->k, vl);
  const int64_t sums = p->m * p->n * (k_vectors + cost_of->end_of_sum);
  const int64_t n_copied = p->a.trans ? p->n : p->m,
                copy = n_copied * ws_types[p->a.type].bytes <= FEW_BYTES ? cost_of->copy_of_few : cost_of->copy;
  const int64_t cost = sums + (ws_dots_have_copies(p) ? ws_vectors_of(n_copied, vl) * k_vectors * vl * copy : 0);
  /* tiles read fewer lines of the long operand at a time */
  const double long_bytes = (double)ws_max(p->m, p->n) * (double)p->k * ws_types[p->a.type].bytes;
  return long_bytes > FROM_MEMORY ? cost + cost / 4 : cost;
}

/* As the transpose, C written by rows: where B lies along its rows it is not copied, and its vectors may be fuller; of few
 * columns, which fill vectors, a long A that lies along k is read where it is, once for each panel, and they are copied. */
static int64_t cost_by_rows(const ws_call *call, const ws_problem *p, const ws_ukr_set *ukr, const costs *cost_of) {
  const int64_t vl = ukr->vl, n_real = ws_types[p->a.type].n_real;
  if (call->settings.invariant && n_real == 2) return INT64_MAX;
  if (!p->b.trans && !(p->a.trans && p->n <= few_of(ukr) && has_by_rows(ukr))) return INT64_MAX;
  const int64_t c_bytes = p->m * p->n * ws_types[p->a.type].bytes;
  const bool is_one_panel = p->n <= 2 * vl; /* the long operand passes by once, from wherever */
  if (p->b.trans && p->m > FEW_BY_ROWS &&
      (c_bytes > FAR_C /* then in long runs */ || !p->a.trans ||
       (!is_one_panel && (ws_is_far((double)p->m, p) || ws_is_far((double)p->n, p)))))
    return INT64_MAX;
  const int64_t n_vectors = ws_vectors_of(p->n, vl);
  if (!has_by_rows(ukr)) return n_vectors * p->m * (p->k + (p->m <= 4 ? END_OF_FEW_BY_COPY : END_BY_COPY));
  const int64_t n_together = ws_types[p->a.type].bytes == 4 ? 8 : 4; /* rows of a column that are written at once */
  const int64_t pack = p->b.trans ? 0 : cost_of->pack * vl * ws_vectors_of(p->k, vl) / n_real;
  return steps_of(n_vectors, cost_of) * p->k * p->m / 2 + n_vectors * (p->m * END_BY_ROWS + pack) +
         p->n * ws_vectors_of(p->m, n_together) * n_together / 2;
}

/* Of one row or column alone. C and the vector operand may be described in either layout, so that the way follows from the matrix operand,
 * which has one. */
static ws_way way_of_vector(const ws_call *call, const ws_problem *p) {
  const bool is_along_k = p->n == 1 ? p->a.trans : !p->b.trans;
  return is_along_k && p->m != p->n && p->k >= LEAST_K && !call->settings.invariant ? WS_WAY_OF_DOTS : WS_WAY_OF_TILES;
}

ws_way ws_way_of(const ws_call *call, const ws_problem *p, const ws_cpu_row *row) {
  enum { LEAST_WORK = 1500 }; /* of NT, less is sooner done than thought about */
  const int64_t most = INT64_C(1) << 20;
  if (ws_is_half(p->a.type) || p->m > most || p->n > most || p->k > most) return WS_WAY_OF_TILES;
  if (p->m == 1 || p->n == 1) return way_of_vector(call, p);
  if (!p->a.trans && (p->b.trans ? p->m * p->n * p->k < LEAST_WORK : p->m > few_of(row->ukr) || p->k < LEAST_K))
    return WS_WAY_OF_TILES;
  const costs *cost_of = costs_of(row);
  const int64_t tiles = cost_of_tiles(p, row->ukr, cost_of), dots = cost_of_dots(call, p, row->ukr, cost_of),
                by_rows = cost_by_rows(call, p, row->ukr, cost_of);
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
