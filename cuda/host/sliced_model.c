/* sliced_model.c - see sliced_model.h: the passes that make slices, by bytes; then chunk by chunk rounds of items, each as long as its
 * sums and what its first stage and its store take. Terms and rates (kernels.def) are fitted to the times of all rows for random
 * products of F32 (250, in TF32 200) and C32 (200; bench_gpu_gemm --suite row_times, H200, 2026-11-27; bench/NOTES.md); those of three
 * slices are those of two, and C32's in TF32 F32's. */
#include "cuda/host/sliced_model.h"

#include <math.h>

#include "core/tile.h"
#include "cuda/host/problem_args.h"
#include "cuda/host/slices.h"
#include "cuda/host/split.h"
#include "cuda/shared/launch_state.h"

typedef struct sliced_terms {
  double chunk_us; /* launches */
  double bytes_per_us;
  double line_us; /* of an item, for each of its rows of reals */
  double pair_us; /* of an item of two blocks that share A */
} sliced_terms;
static const sliced_terms of_one = {19.2, 3.24e6, 0.0724, 0},
                          of_more[] = {{26.6, 4.18e6, 0.0379, 1.06}, {28.2, 3.49e6, 0.057, 1.36}};

static const sliced_terms *terms_of(const ws_problem *p, int n_slices) {
  return n_slices == 1 ? &of_one : &of_more[ws_types[p->a.type].n_real - 1];
}

/* Two passes read floats, of which the second writes slices. A matrix is split again where C's chunks do not keep it. */
static double split_bytes(const ws_problem *p, const ws_chunks *chunks, int n_slices) {
  const int unit = ws_types[p->a.type].n_real;
  const double again = chunks->n < p->n ? ceil((double)p->m / (double)chunks->m) : 1;
  const double lines_a = ws_is_packed(p, true, n_slices) ? 0 : (double)p->m,
               lines_b = ws_is_packed(p, false, n_slices) ? 0 : (double)p->n;
  const double bytes_a = 8 + 2 * n_slices * unit, bytes_b = 8 + 2 * n_slices; /* of a float; of a complex A all is there twice */
  return (lines_a * bytes_a + lines_b * again * bytes_b) * (double)p->k * unit * (double)p->batch_count;
}

ws_sliced_product ws_sliced_look_at(const ws_problem *p, int n_slices) {
  ws_sliced_product look = {0};
  ws_chunks chunks;
  if (!ws_chunks_for(p, ws_sliced_bytes(n_slices), WS_COPIES_BYTES, &chunks)) return look;
  const double batches = ceil((double)p->batch_count / (double)chunks.batch);
  const int64_t sides[2][2] = {{chunks.m, p->m % chunks.m}, {chunks.n, p->n % chunks.n}};
  const int64_t counts[2][2] = {{p->m / chunks.m, sides[0][1] > 0}, {p->n / chunks.n, sides[1][1] > 0}};
  double n_chunks = 0;
  look.is_possible = true, look.n_batch = (double)chunks.batch;
  for (int i = 0; i < 4; i++) {
    const double count = (double)(counts[0][i / 2] * counts[1][i % 2]) * batches;
    if (count == 0) continue;
    look.shape[look.n_shapes].m = (double)sides[0][i / 2], look.shape[look.n_shapes].n = (double)sides[1][i % 2];
    look.shape[look.n_shapes++].count = count;
    n_chunks += count;
  }
  const sliced_terms *t = terms_of(p, n_slices);
  look.first_us = n_chunks * t->chunk_us + split_bytes(p, &chunks, n_slices) / t->bytes_per_us;
  return look;
}

double ws_sliced_us(const ws_sliced_product *product, const ws_problem *p, const ws_cuda_row *row, int n_sms) {
  if (!product->is_possible) return HUGE_VAL;
  const int unit = ws_types[p->a.type].n_real;
  const sliced_terms *t = terms_of(p, row->n_slices);
  const double bm = row->bm, bn = (double)row->bn * row->coarse;
  const double places = ws_max(1, n_sms / row->cluster), share = ws_wanted_share(p, row->bm + (int)bn * row->cluster);
  const double item_us =
      ws_rated_us_per_k(row, bm * bn) * (double)p->k + t->line_us * bm * unit + (row->cluster > 1 ? t->pair_us : 0);
  double rounds = 0;
  for (int i = 0; i < product->n_shapes; i++) {
    const double n_items =
        share * product->n_batch * ceil(product->shape[i].m / bm) * ceil(product->shape[i].n / (bn * row->cluster));
    rounds += product->shape[i].count * ceil(n_items / places);
  }
  return product->first_us + rounds * item_us;
}
