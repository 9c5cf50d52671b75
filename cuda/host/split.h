/* split.h - into how many parts k is split (split_k.cuh). A function of the problem's sizes, its
 * type, of half precision whether PEDANTIC, and the number of SMs alone: the parts decide the order
 * of summation, so neither policy, COARSE_FACTOR, row nor workspace may change them. For the same
 * reason the numbers below are part of what a result is. */
#ifndef WS_CUDA_SPLIT_H
#define WS_CUDA_SPLIT_H
#include "core/problem.h"
#include "core/tile.h"
#include "cuda/shared/launch_state.h"

typedef struct ws_split {
  int64_t n_splits;    /* 1: k is not split */
  int64_t k_per_split; /* the last part may be shorter */
  /* of the partial sums: columns begin where 16 bytes may be written at a time */
  int64_t ld;
  int64_t bytes; /* of all partial sums */
} ws_split;

/* Whether the matrix of a matrix-vector product has k contiguous. */
static inline bool ws_vector_along_k(const ws_problem *p) { return p->n == 1 ? p->a.trans : !p->b.trans; }

/* For the rows called vec. Of 16 bits only what has k contiguous: else a warp would load 64 bytes
 * at a time. */
static inline bool ws_is_matrix_vector(const ws_problem *p) {
  return (p->m == 1 || p->n == 1) && (!ws_is_half(p->a.type) || ws_vector_along_k(p));
}

/* The share of the items that have an element of C that is wanted, about; sides: of an item, together. */
static inline double ws_wanted_share(const ws_problem *p, double sides) {
  const double n = (double)p->n;
  return p->c.region == WS_ALL || sides >= n ? 1 : (n + sides) / (2 * n);
}

/* A sum of 16-bit elements is a float. */
static inline int ws_sum_bytes(wsgemm_type type) { return ws_is_half(type) ? 4 : ws_types[type].bytes; }

/* n_splits parts, or fewer. */
static inline ws_split ws_split_into(const ws_problem *p, int64_t n_splits) {
  enum { LEAST_SPLIT = 256, SPLIT_STEP = 64, MAX_SPLITS = 256, LD_STEP = 4 };
  ws_split split = {1, p->k, ws_ceil_div(p->m, LD_STEP) * LD_STEP, 0};
  n_splits = ws_min(ws_min(n_splits, p->k / LEAST_SPLIT), MAX_SPLITS);
  const double split_bytes = (double)p->batch_count * (double)p->n * (double)split.ld * ws_sum_bytes(p->a.type);
  if (n_splits < 2 || split_bytes > WS_SUMS_BYTES / 2) return split;
  n_splits = ws_min(n_splits, WS_SUMS_BYTES / (int64_t)split_bytes);
  split.k_per_split = ws_ceil_div(ws_ceil_div(p->k, n_splits), SPLIT_STEP) * SPLIT_STEP;
  split.n_splits = ws_ceil_div(p->k, split.k_per_split);
  split.bytes = split.n_splits * (int64_t)split_bytes;
  return split;
}

/* Of so many rounds of blocks the last is mostly empty: parts of k make it a smaller share of a matrix that takes long enough for parts
 * to pay. */
static inline int64_t ws_splits_for_rounds(const ws_problem *p, double rounds) {
  enum { MOST = 8, LEAST_K = 512 };
  const double least_bytes = 24e6, enough = 0.95;
  const double bytes = (double)p->batch_count * (double)ws_max(p->m, p->n) * (double)p->k * ws_types[p->a.type].bytes;
  int64_t best = 1;
  double best_share = 0; /* of the rounds that is work */
  for (int64_t n = 1; n <= MOST && bytes >= least_bytes && n * LEAST_K <= p->k && best_share < enough; n *= 2) {
    const double all = rounds * (double)n, whole = (double)(int64_t)all, share = all / (whole + (all > whole));
    if (share > best_share) best = n, best_share = share;
  }
  return best;
}

/* The work items of a matrix-vector product, and how many of them all SMs run at once: enough to keep sufficient loads in flight
 * (gemm_vector.cuh). With k contiguous a block has 8 warps; else 16, and F32 has the registers for twice as many loads, and so no room
 * for more blocks. */
typedef struct ws_vector_items {
  double n, places;
} ws_vector_items;
static inline ws_vector_items ws_vector_items_of(const ws_problem *p, int n_sms) {
  const bool is_along_k = ws_vector_along_k(p), is_double = p->a.type == WSGEMM_F64 || p->a.type == WSGEMM_C64;
  const int n_x = is_along_k ? 8 : p->a.type == WSGEMM_F32 ? 32 : 16;
  const double per_sm = is_along_k ? 4 : is_double ? 2 : 1;
  const ws_vector_items items = {(double)p->batch_count * (double)ws_ceil_div(ws_max(p->m, p->n), n_x), per_sm * n_sms};
  return items;
}

static inline ws_split ws_split_of_vector(const ws_problem *p, int n_sms) {
  const bool is_along_k = ws_vector_along_k(p);
  const ws_vector_items items = ws_vector_items_of(p, n_sms);
  if (items.n <= (is_along_k ? n_sms : 0.6 * items.places)) return ws_split_into(p, (int64_t)(items.places / items.n));
  return ws_split_into(p, is_along_k ? 1 : ws_splits_for_rounds(p, items.n / items.places));
}

/* The time of a number of tiles, less than the device takes at once, in parts of the time for which
 * that many keep it busy. With k whole: smaller tiles than these spread better, and a few warps
 * keep the tensor cores busy (d, z). */
static inline double ws_time_whole(double tiles, bool is_double) { return is_double ? 0.25 + 0.65 * tiles : 0.2 + 0.9 * tiles; }

/* With k in parts: so many rounds of parts, of which the last may be half empty. */
static inline double ws_time_split(double tiles, int64_t n_splits) {
  const double items = tiles * (double)n_splits;
  return (double)((int64_t)items + (items > (double)(int64_t)items)) / (double)n_splits;
}

/* takes_fma: 16-bit elements are multiplied as floats are. */
static inline ws_split ws_split_for(const ws_problem *p, int n_sms, bool takes_fma) {
  /* By type: the tiles of large products, how many of them an SM has at once, and its multiply-adds
   * in a microsecond (H200; those of h and b are estimates). */
  static const struct {
    int bm, bn, per_sm;
    double rate;
  } reference[WS_N_TYPES] = {{128, 64, 4, 183e3}, {64, 64, 3, 200e3},    {64, 32, 4, 46e3},
                             {32, 32, 3, 45e3},   {128, 128, 2, 1700e3}, {128, 128, 2, 1700e3}}; /* s d c z h b */
  /* launch and barrier; the sums are written and read */
  const double launch_us = 8, sum_bytes_per_us = 3e6;
  if (ws_is_matrix_vector(p)) return ws_split_of_vector(p, n_sms);
  const wsgemm_type as = takes_fma && ws_is_half(p->a.type) ? WSGEMM_F32 : p->a.type;
  const bool is_double = p->a.type == WSGEMM_F64 || p->a.type == WSGEMM_C64;
  const double round_us = (double)reference[as].bm * reference[as].bn * reference[as].per_sm / reference[as].rate * (double)p->k;
  const double share = ws_wanted_share(p, reference[as].bm + reference[as].bn);
  const double tiles = share * (double)p->batch_count * (double)ws_ceil_div(p->m, reference[as].bm) *
                       (double)ws_ceil_div(p->n, reference[as].bn) / ((double)n_sms * reference[as].per_sm);
  ws_split best = ws_split_into(p, 1);
  if (tiles >= 1) return best;
  double best_time = ws_time_whole(tiles, is_double);
  /* Of few tiles as many parts as find a place at once; of many also more, in several rounds. */
  const int64_t fill = (int64_t)(1 / tiles), least = fill > 8 ? fill : 2, most = fill > 8 ? fill : 8;
  for (int64_t n_splits = least; n_splits <= most; n_splits++) {
    const ws_split split = ws_split_into(p, n_splits);
    if (split.n_splits == 1) break;
    const double time =
        ws_time_split(tiles, split.n_splits) + (launch_us + 2 * (double)split.bytes / sum_bytes_per_us) / round_us;
    if (time < best_time) best = split, best_time = time;
  }
  return best;
}
#endif
