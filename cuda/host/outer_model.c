/* outer_model.c - see outer_model.h: an SM's items, of which copies, products and stores go on beside each other,
 * and the latency of the stages of one. Fitted to the times of all rows for random products (bench_gpu_gemm --suite
 * row_times, H200; bench/NOTES.md). */
#include "cuda/host/outer_model.h"

#include <math.h>

#include "core/tile.h"
#include "cuda/rows/outer_rows.h"

const ws_outer_terms ws_outer_terms_h200[2] = {
    {
        .launch_us = 5.43,
        .stage_us = 0.237,
        .fma_per_us = 309e3,
        .half_warps = 16,
        .edge = 0.865,
        .vector_bytes = 24.6e3,
        .word_bytes = 18e3,
        .item_us = 0.135,
        .store_per_us = 28e3,
        .overlap = 0.666,
        .memory_per_us = 4e6,
    },
    {
        .launch_us = 5.46,
        .stage_us = 0.222,
        .fma_per_us = 226e3,
        .half_warps = 3.11,
        .edge = 0.0967,
        .vector_bytes = 22.5e3,
        .word_bytes = 19.1e3,
        .item_us = 0.0958,
        .store_per_us = 25.7e3,
        .overlap = 0.602,
        .memory_per_us = 4e6,
    },
};

/* Whether an operand with so many contiguous elements comes by 16 bytes; with k contiguous none does. */
static bool is_by_vectors(const ws_problem *p, int64_t along) { return along * ws_types[p->a.type].bytes % 16 == 0; }

double ws_outer_us(const ws_outer_terms *t, const ws_problem *p, int64_t n_items, const ws_cuda_row *row, int n_sms) {
  const bool is_complex = ws_types[p->a.type].n_real == 2;
  const double element = ws_types[p->a.type].bytes, k = (double)p->k, area = (double)row->bm * row->bn;
  const bool a_vectors = !p->a.trans && is_by_vectors(p, p->m), b_vectors = p->b.trans && is_by_vectors(p, p->n);
  /* items of the SM that has most, and its blocks that have one at the same time */
  const double items = ceil((double)n_items / n_sms), blocks = fmin(row->blocks, items), warps = blocks * row->n_threads / 32;
  const double speed = warps / (warps + t->half_warps) * (16 + t->half_warps) / 16;
  const double products_us =
      (is_complex ? 4 : 1) * area * k / t->fma_per_us / fmin(1, speed) * (1 + t->edge * (16.0 / row->bm + 16.0 / row->bn));
  const double copies_us =
      k * element *
      (row->bm / (a_vectors ? t->vector_bytes : t->word_bytes) + row->bn / (b_vectors ? t->vector_bytes : t->word_bytes));
  const double store_us = area * element / t->store_per_us;
  const double longest = fmax(fmax(products_us, copies_us), store_us), all = products_us + copies_us + store_us;
  const double item_us = longest + t->overlap * (all - longest) + t->item_us;
  const double bytes = element * ((double)p->m * k + k * (double)p->n + (double)p->m * (double)p->n) * (double)p->batch_count;
  return t->launch_us + fmax(items * item_us + ceil(k / row->bk) * t->stage_us, bytes / t->memory_per_us);
}
