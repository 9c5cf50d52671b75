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
            .launch_us = 2.698,
            .item_us = 2.043,
            .mma_per_us = 2.375e+05,
            .edge = 0.4612,
            .warp_edge = 0.001492,
            .alone = 0.7982,
            .pair_bytes = 5.287e+04,
            .word_bytes = 5.156e+04,
            .pipeline_us = 0.8837,
            .part_us = 0.005931,
            .sum_us = 0.6308,
            .block_us = 0.01704,
            .large_us = 0.7078,
            .memory_per_us = 8.11e+06,
            .store_per_us = 3.74e+04,
        },
    [WSGEMM_F32] =
        {
            .launch_us = 2.306,
            .item_us = 2.058,
            .mma_per_us = 1.875e+05,
            .alone = 0.9015,
            .pair_bytes = 3.217e+04,
            .word_bytes = 2.149e+04,
            .pipeline_us = 2.083,
            .part_us = 0.002316,
            .sum_us = 0.8783,
            .block_us = 0.0008919,
            .large_us = 0.7754,
            .memory_per_us = 4e+06,
            .store_per_us = 1.559e+04,
        },
    [WSGEMM_C64] =
        {
            .launch_us = 2.706,
            .item_us = 2.427,
            .mma_per_us = 2.182e+05,
            .edge = 0.09262,
            .alone = 0.8786,
            .pair_bytes = 5.297e+04,
            .word_bytes = 2.12e+04,
            .pipeline_us = 0.7745,
            .part_us = 0.00142,
            .sum_us = 0.6006,
            .block_us = 0.0003118,
            .large_us = 0.7819,
            .memory_per_us = 3.92e+06,
            .store_per_us = 4.711e+04,
        },
};

const ws_dmma_terms ws_tf32_terms_h200[2][2] = {
    {
        {
            .launch_us = 3.21,
            .item_us = 2.376,
            .mma_per_us = 3.985e+05,
            .alone = 0.6019,
            .pair_bytes = 3.959e+04,
            .word_bytes = 3.477e+04,
            .pipeline_us = 1.281,
            .sum_us = 1.087,
            .block_us = 0.0004803,
            .large_us = 1.352,
            .memory_per_us = 4e+06,
            .store_per_us = 5.081e+04,
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
            .launch_us = 3.361,
            .item_us = 3.222,
            .mma_per_us = 2.791e+05,
            .edge = 0.6814,
            .alone = 0.7812,
            .pair_bytes = 3.864e+04,
            .word_bytes = 3.307e+04,
            .pipeline_us = 1.43,
            .part_us = 1.082,
            .sum_us = 0.3629,
            .block_us = 0.001332,
            .large_us = 0.4018,
            .memory_per_us = 4e+06,
            .store_per_us = 1.846e+06,
        },
        {
            .launch_us = 3.876,
            .item_us = 3.38,
            .mma_per_us = 2.284e+05,
            .alone = 0.7527,
            .pair_bytes = 2.604e+04,
            .word_bytes = 2.703e+04,
            .pipeline_us = 1.66,
            .part_us = 0.06163,
            .sum_us = 0.3992,
            .block_us = 0.2032,
            .large_us = 0.01534,
            .memory_per_us = 4e+06,
            .store_per_us = 9.815e+04,
        },
    },
};

const ws_dmma_terms ws_tf32w_terms_h200[2][2] = {
    {
        {
            .launch_us = 0.004528,
            .item_us = 4.589,
            .mma_per_us = 8.36e+05,
            .edge = 1.295,
            .alone = 1,
            .pair_bytes = 4.574e+04,
            .word_bytes = 4.093e+04,
            .pipeline_us = 1.411,
            .part_us = 1.61,
            .sum_us = 0.4259,
            .block_us = 0.0005269,
            .large_us = 0.7714,
            .memory_per_us = 3.297e+06,
            .store_per_us = 4.128e+04,
            .next_us = 1.288,
            .staying = 1.2,
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
            .launch_us = 0.007661,
            .item_us = 4.659,
            .mma_per_us = 5.511e+05,
            .edge = 1.128,
            .alone = 1,
            .pair_bytes = 3.278e+04,
            .word_bytes = 2.985e+04,
            .pipeline_us = 1.294,
            .part_us = 1.561,
            .sum_us = 0.3926,
            .block_us = 0.0007624,
            .large_us = 1.317,
            .memory_per_us = 3.493e+06,
            .store_per_us = 3.647e+04,
            .next_us = 1.43,
            .staying = 1.172,
        },
        {
            .launch_us = 2.229,
            .item_us = 3.596,
            .mma_per_us = 6.765e+05,
            .edge = 1.483,
            .alone = 1,
            .pair_bytes = 2.528e+04,
            .word_bytes = 2.369e+04,
            .pipeline_us = 1.154,
            .part_us = 0.9932,
            .sum_us = 0.4434,
            .block_us = 0.0004053,
            .large_us = 0.7084,
            .memory_per_us = 3.493e+06,
            .store_per_us = 1.713e+05,
        },
    },
};

const ws_dmma_terms ws_tf32m_terms_h200[2] = {
    {
        .launch_us = 2.262,
        .item_us = 3.274,
        .mma_per_us = 1.84e+06,
        .edge = 0.4348,
        .alone = 1,
        .pair_bytes = 7.185e+04,
        .word_bytes = 4.104e+04,
        .pipeline_us = 1.094,
        .part_us = 0.5123,
        .sum_us = 0.5907,
        .block_us = 0.0005269,
        .large_us = 1.1,
        .memory_per_us = 5.704e+06,
        .store_per_us = 5.824e+04,
    },
    {
        .launch_us = 1.972,
        .item_us = 3.429,
        .mma_per_us = 6.008e+05,
        .edge = 0.675,
        .alone = 1,
        .pair_bytes = 3.905e+04,
        .word_bytes = 2.541e+04,
        .pipeline_us = 1.689,
        .part_us = 1.015,
        .sum_us = 0.5247,
        .block_us = 0.0005269,
        .large_us = 0.6526,
        .memory_per_us = 5.704e+06,
        .store_per_us = 5.013e+04,
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
  /* With A alone k-contiguous its doubles are copied one by one (dmma_config.cuh). By maps it is as many bytes whatever the sizes, and a
   * B along n is transposed. */
  const bool a_pairs = row->takes_maps || (is_by_pairs(p, p->a.trans, p->m, p->k) && (!is_double || !p->a.trans || p->b.trans)),
             b_pairs = row->takes_maps ? !p->b.trans : is_by_pairs(p, !p->b.trans, p->n, p->k);
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
