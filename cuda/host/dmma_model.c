/* dmma_model.c - see dmma_model.h: an SM's blocks beside each other, round by round, each bound by its
 * products, by its copies, or by what the stages of its pipeline have on the way. Fitted to the times of all
 * rows for random products (bench_gpu_gemm --suite row_times; bench/NOTES.md): tf32 and tf32w on an H100, the
 * others on an H200. */
#include "cuda/host/dmma_model.h"

#include <math.h>

#include "core/tile.h"
#include "cuda/rows/dmma_rows.h"

const ws_dmma_terms ws_dmma_terms_h200[WS_N_TYPES] = {
    [WSGEMM_F64] =
        {
            .launch_us = 3.079,
            .item_us = 2.518,
            .mma_per_us = 2.497e+05,
            .edge = 0.5575,
            .warp_edge = 0.001492,
            .alone = 0.7391,
            .pair_bytes = 5.98e+04,
            .word_bytes = 4.875e+04,
            .pipeline_us = 0.8517,
            .part_us = 0.2227,
            .sum_us = 0.9704,
            .memory_per_us = 8.11e+06,
            .store_per_us = 2.406e+04,
        },
    [WSGEMM_F32] =
        {
            .launch_us = 1.996,
            .item_us = 3.296,
            .mma_per_us = 1.909e+05,
            .alone = 0.8593,
            .pair_bytes = 3.281e+04,
            .word_bytes = 2.172e+04,
            .pipeline_us = 2.102,
            .part_us = 0.007959,
            .sum_us = 1.141,
            .memory_per_us = 4e+06,
            .store_per_us = 1.03e+04,
        },
    [WSGEMM_C64] =
        {
            .launch_us = 3.405,
            .item_us = 2.321,
            .mma_per_us = 2.272e+05,
            .edge = 0.1267,
            .alone = 0.8423,
            .pair_bytes = 5.491e+04,
            .word_bytes = 2.12e+04,
            .pipeline_us = 0.7557,
            .part_us = 0.003755,
            .sum_us = 0.6878,
            .memory_per_us = 3.92e+06,
            .store_per_us = 4.743e+04,
        },
};

const ws_dmma_terms ws_tf32_terms_h200[2][2] = {
    {
        {
            .launch_us = 1.941,
            .item_us = 3.81,
            .mma_per_us = 4.17e+05,
            .alone = 0.5363,
            .pair_bytes = 3.671e+04,
            .word_bytes = 3.145e+04,
            .pipeline_us = 0.8527,
            .sum_us = 1.258,
            .memory_per_us = 4e+06,
            .store_per_us = 2.28e+04,
        },
        {
            .launch_us = 4.074,
            .item_us = 3.188,
            .mma_per_us = 4.534e+05,
            .alone = 0.7706,
            .pair_bytes = 4.141e+04,
            .word_bytes = 3.159e+04,
            .pipeline_us = 1.466,
            .part_us = 0.562,
            .sum_us = 0.4497,
            .memory_per_us = 4e+06,
            .store_per_us = 3.265e+04,
        },
    },
    {
        {
            .launch_us = 2.064,
            .item_us = 3.873,
            .mma_per_us = 3.308e+05,
            .edge = 1.309,
            .alone = 0.6922,
            .pair_bytes = 3.388e+04,
            .word_bytes = 3.236e+04,
            .pipeline_us = 1.67,
            .part_us = 0.9392,
            .sum_us = 0.5032,
            .memory_per_us = 4e+06,
            .store_per_us = 1.868e+04,
        },
        {
            .launch_us = 3.259,
            .item_us = 3.15,
            .mma_per_us = 2.213e+05,
            .alone = 0.8352,
            .pair_bytes = 2.507e+04,
            .word_bytes = 2.277e+04,
            .pipeline_us = 1.525,
            .part_us = 0.44,
            .sum_us = 0.4937,
            .memory_per_us = 4e+06,
            .store_per_us = 1.935e+04,
        },
    },
};

const ws_dmma_terms ws_tf32w_terms_h200[2][2] = {
    {
        {
            .launch_us = 0.01197,
            .item_us = 5.437,
            .mma_per_us = 7.991e+05,
            .edge = 1.315,
            .alone = 1,
            .pair_bytes = 4.595e+04,
            .word_bytes = 4.096e+04,
            .pipeline_us = 1.45,
            .part_us = 2.032,
            .sum_us = 0.4082,
            .memory_per_us = 2.867e+06,
            .store_per_us = 2.039e+04,
            .next_us = 1.51,
            .staying = 1.222,
        },
        {
            .launch_us = 3.819,
            .item_us = 3.196,
            .mma_per_us = 9.501e+05,
            .edge = 1.04,
            .alone = 1,
            .pair_bytes = 4.274e+04,
            .word_bytes = 3.129e+04,
            .pipeline_us = 1.259,
            .part_us = 2.166,
            .sum_us = 0.09389,
            .memory_per_us = 2.886e+06,
            .store_per_us = 7.317e+04,
        },
    },
    {
        {
            .launch_us = 0.0276,
            .item_us = 5.454,
            .mma_per_us = 5.123e+05,
            .edge = 1.052,
            .alone = 1,
            .pair_bytes = 3.35e+04,
            .word_bytes = 2.985e+04,
            .pipeline_us = 1.765,
            .part_us = 1.146,
            .sum_us = 0.5513,
            .memory_per_us = 3.493e+06,
            .store_per_us = 1.493e+04,
            .next_us = 2.582,
            .staying = 1.127,
        },
        {
            .launch_us = 1.171,
            .item_us = 4.442,
            .mma_per_us = 6.894e+05,
            .edge = 1.841,
            .alone = 1,
            .pair_bytes = 2.466e+04,
            .word_bytes = 2.343e+04,
            .pipeline_us = 1.197,
            .part_us = 1.105,
            .sum_us = 0.4747,
            .memory_per_us = 3.493e+06,
            .store_per_us = 5.511e+04,
        },
    },
};

/* Four warps keep an SM as busy as this. */
enum { WARPS_ALONE = 4 };

typedef struct item_times {
  double n_stages, products_us, copies_us, pipeline_us, end_us;
} item_times;

/* Whether an operand comes by 16 bytes. */
static bool is_by_pairs(const ws_problem *p, bool trans, int64_t along, int64_t k) {
  return (trans ? k : along) * ws_types[p->a.type].bytes % 16 == 0;
}

static item_times times_of(const ws_dmma_terms *t, const ws_problem *p, const ws_cuda_row *row) {
  const bool is_complex = ws_types[p->a.type].n_real == 2, is_double = p->a.type == WSGEMM_F64;
  const double stage_k = (double)row->bk * row->k_groups, area = (double)row->bm * row->bn;
  /* with A alone k-contiguous its doubles are copied one by one (dmma_config.cuh) */
  const bool a_pairs = is_by_pairs(p, p->a.trans, p->m, p->k) && (!is_double || !p->a.trans || p->b.trans),
             b_pairs = is_by_pairs(p, !p->b.trans, p->n, p->k);
  const double sides = 16.0 / row->bm + 16.0 / row->bn, warps = (row->n_threads - WS_DMMA_PRODUCERS) / 32;
  const double reading = 1 + t->edge * sides + t->warp_edge * 32 / sqrt(area * row->k_groups / warps);
  const double line_bytes = WS_DMMA_LINE_BYTES * row->k_groups;
  return (item_times){.n_stages = ceil(ceil((double)p->k / stage_k) / row->cluster),
                      .products_us = (is_complex ? 4 : 1) * area * stage_k / t->mma_per_us * reading,
                      .copies_us = line_bytes * (row->bm / (a_pairs ? t->pair_bytes : t->word_bytes) +
                                                 row->bn / (b_pairs ? t->pair_bytes : t->word_bytes)),
                      .pipeline_us = t->pipeline_us / (row->stages - 1),
                      .end_us = area * ws_types[p->a.type].bytes / row->cluster / t->store_per_us};
}

/* Of `each` blocks beside each other on an SM. */
static double round_us(const ws_dmma_terms *t, const item_times *item, const ws_cuda_row *row, double each) {
  const double warps = each * (row->n_threads - WS_DMMA_PRODUCERS) / 32, speed = warps > WARPS_ALONE ? 1 : t->alone;
  const double stage_us = fmax(fmax(each * item->products_us / speed, each * item->copies_us), item->pipeline_us);
  if (each == 0) return 0;
  const double stages_us = item->n_stages * stage_us, end_us = each * item->end_us;
  return row->stays ? t->staying * stages_us + end_us + t->next_us : stages_us + end_us + t->item_us;
}

double ws_dmma_us(const ws_dmma_terms *t, const ws_problem *p, int64_t n_items, const ws_cuda_row *row, int n_sms) {
  const item_times item = times_of(t, p, row);
  const double places = (double)ws_most_clusters(row->cluster, n_sms) * row->blocks;
  const double rounds = floor((double)n_items / places), left = (double)n_items - rounds * places;
  const double each = fmin(row->blocks, ceil(left * row->cluster / n_sms));
  const double element = ws_types[p->a.type].bytes, doubles = (double)row->bm * row->bn * element / 8;
  const double sums_us = t->sum_us * doubles * row->k_groups * 1e-3;
  const double parts_us = row->cluster > 1 ? t->part_us + sums_us : row->k_groups > 1 ? sums_us / 4 : 0;
  const double bytes = element * ((double)p->m * (double)p->k + (double)p->k * (double)p->n + (double)p->m * (double)p->n) *
                       (double)p->batch_count;
  const double begin_us = row->stays ? t->item_us : 0;
  const double work_us = begin_us + rounds * round_us(t, &item, row, row->blocks) + round_us(t, &item, row, each) + parts_us;
  return t->launch_us + fmax(work_us, bytes / t->memory_per_us);
}
