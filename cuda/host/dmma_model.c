/* dmma_model.c - see dmma_model.h: an SM's blocks beside each other, round by round, each bound by its
 * products, by its copies, or by what the stages of its pipeline have on the way. Fitted to the times of all rows for
 * random products on an H200 (bench_gpu_gemm --suite row_times, 2026-11-27; bench/NOTES.md): of tf32 and tf32w with 450 to 530
 * products a type, dmma 400 (F64) and 116 (C64), ffma (under the name of F32) 690; complex rows of one slice on an H100. */
#include "cuda/host/dmma_model.h"

#include <math.h>

#include "core/tile.h"
#include "cuda/rows/dmma_rows.h"
#include "cuda/rows/parts.h"

const ws_dmma_terms ws_dmma_terms_h200[WS_N_TYPES] = {
    [WSGEMM_F64] =
        {
            .launch_us = 3.344,
            .item_us = 2.375,
            .mma_per_us = 2.491e+05,
            .edge = 0.6127,
            .warp_edge = 0.001492,
            .alone = 0.7555,
            .pair_bytes = 5.924e+04,
            .word_bytes = 4.904e+04,
            .pipeline_us = 0.8236,
            .part_us = 0.1166,
            .sum_us = 0.9507,
            .block_us = 0.01455,
            .large_us = 0.9116,
            .memory_per_us = 8.11e+06,
            .store_per_us = 2.484e+04,
        },
    [WSGEMM_F32] =
        {
            .launch_us = 2.471,
            .item_us = 2.714,
            .mma_per_us = 1.892e+05,
            .alone = 0.9609,
            .pair_bytes = 3.251e+04,
            .word_bytes = 2.143e+04,
            .pipeline_us = 2.141,
            .part_us = 0.004293,
            .sum_us = 1.108,
            .block_us = 0.03852,
            .large_us = 1.426,
            .memory_per_us = 4e+06,
            .store_per_us = 9745,
        },
    [WSGEMM_C64] =
        {
            .launch_us = 3.126,
            .item_us = 2.523,
            .mma_per_us = 2.226e+05,
            .edge = 0.1023,
            .alone = 0.8345,
            .pair_bytes = 5.387e+04,
            .word_bytes = 2.12e+04,
            .pipeline_us = 0.8276,
            .part_us = 0.002633,
            .sum_us = 0.7641,
            .block_us = 0.0003118,
            .large_us = 0.7207,
            .memory_per_us = 3.92e+06,
            .store_per_us = 4.977e+04,
        },
};

const ws_dmma_terms ws_tf32_terms_h200[2][2] = {
    {
        {
            .launch_us = 1.496,
            .item_us = 3.882,
            .mma_per_us = 4.15e+05,
            .alone = 0.5208,
            .pair_bytes = 3.662e+04,
            .word_bytes = 3.345e+04,
            .pipeline_us = 1.177,
            .sum_us = 1.344,
            .block_us = 0.001956,
            .large_us = 1.04,
            .memory_per_us = 4e+06,
            .store_per_us = 1.906e+04,
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
            .block_us = 0.05,
            .large_us = 1,
            .memory_per_us = 4e+06,
            .store_per_us = 3.265e+04,
        },
    },
    {
        {
            .launch_us = 1.835,
            .item_us = 4.103,
            .mma_per_us = 3.371e+05,
            .edge = 1.386,
            .alone = 0.6954,
            .pair_bytes = 3.388e+04,
            .word_bytes = 3.299e+04,
            .pipeline_us = 1.61,
            .part_us = 0.9177,
            .sum_us = 0.5103,
            .block_us = 0.001158,
            .large_us = 1.149,
            .memory_per_us = 4e+06,
            .store_per_us = 2.075e+04,
        },
        {
            .launch_us = 2.822,
            .item_us = 3.397,
            .mma_per_us = 2.212e+05,
            .alone = 0.8357,
            .pair_bytes = 2.507e+04,
            .word_bytes = 2.375e+04,
            .pipeline_us = 1.565,
            .part_us = 0.03546,
            .sum_us = 0.3215,
            .block_us = 0.2296,
            .large_us = 0.03697,
            .memory_per_us = 4e+06,
            .store_per_us = 1.329e+04,
        },
    },
};

const ws_dmma_terms ws_tf32w_terms_h200[2][2] = {
    {
        {
            .launch_us = 0.006457,
            .item_us = 5.387,
            .mma_per_us = 8.026e+05,
            .edge = 1.512,
            .alone = 1,
            .pair_bytes = 4.51e+04,
            .word_bytes = 4.096e+04,
            .pipeline_us = 1.45,
            .part_us = 2.063,
            .sum_us = 0.417,
            .block_us = 0.0005269,
            .large_us = 0.5932,
            .memory_per_us = 2.867e+06,
            .store_per_us = 2.161e+04,
            .next_us = 1.677,
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
            .block_us = 0.05,
            .large_us = 1,
            .memory_per_us = 2.886e+06,
            .store_per_us = 7.317e+04,
        },
    },
    {
        {
            .launch_us = 0.00881,
            .item_us = 5.251,
            .mma_per_us = 5.099e+05,
            .edge = 1.052,
            .alone = 1,
            .pair_bytes = 3.306e+04,
            .word_bytes = 2.946e+04,
            .pipeline_us = 1.74,
            .part_us = 0.9581,
            .sum_us = 0.5734,
            .block_us = 0.04609,
            .large_us = 0.8696,
            .memory_per_us = 3.493e+06,
            .store_per_us = 1.337e+04,
            .next_us = 1.809,
            .staying = 1.152,
        },
        {
            .launch_us = 0.9072,
            .item_us = 4.525,
            .mma_per_us = 6.846e+05,
            .edge = 1.713,
            .alone = 1,
            .pair_bytes = 2.443e+04,
            .word_bytes = 2.343e+04,
            .pipeline_us = 1.217,
            .part_us = 1.134,
            .sum_us = 0.5,
            .block_us = 0.0004053,
            .large_us = 1,
            .memory_per_us = 3.493e+06,
            .store_per_us = 3.595e+04,
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
  const double cluster_us = t->part_us + t->block_us * row->cluster + (row->cluster > WS_PORTABLE_PARTS ? t->large_us : 0);
  const double parts_us = row->cluster > 1 ? cluster_us + sums_us : row->k_groups > 1 ? sums_us / 4 : 0;
  const double bytes = element * ((double)p->m * (double)p->k + (double)p->k * (double)p->n + (double)p->m * (double)p->n) *
                       (double)p->batch_count;
  const double begin_us = row->stays ? t->item_us : 0;
  const double work_us = begin_us + rounds * round_us(t, &item, row, row->blocks) + round_us(t, &item, row, each) + parts_us;
  return t->launch_us + fmax(work_us, bytes / t->memory_per_us);
}
