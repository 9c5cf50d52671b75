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
            .launch_us = 3.031,
            .item_us = 1.998,
            .mma_per_us = 2.405e+05,
            .edge = 0.08252,
            .warp_edge = 0.1288,
            .alone = 0.721,
            .pair_bytes = 5.794e+04,
            .word_bytes = 4.892e+04,
            .pipeline_us = 0.9969,
            .part_us = 1.168,
            .sum_us = 0.6726,
            .cluster_places = 0.9201,
            .memory_per_us = 8.11e+06,
            .store_per_us = 3.722e+04,
        },
    [WSGEMM_F32] =
        {
            .launch_us = 2,
            .item_us = 3.24,
            .mma_per_us = 180e3,
            .alone = 0.75,
            .pair_bytes = 32.7e3,
            .word_bytes = 19.5e3,
            .pipeline_us = 2.17,
            .part_us = 1.82,
            .sum_us = 0.266,
            .cluster_places = 0.912,
            .memory_per_us = 4e6,
            .store_per_us = 29.4e3,
        },
    [WSGEMM_C64] =
        {
            .launch_us = 2.64,
            .item_us = 1.978,
            .mma_per_us = 2.262e+05,
            .edge = 0.09425,
            .alone = 0.6913,
            .pair_bytes = 5.987e+04,
            .word_bytes = 2.12e+04,
            .pipeline_us = 1.232,
            .part_us = 1.72,
            .sum_us = 0.5635,
            .cluster_places = 0.8933,
            .memory_per_us = 3.92e+06,
            .store_per_us = 5.829e+04,
        },
};

const ws_dmma_terms ws_tf32_terms_h200[2][2] = {
    {
        {
            .launch_us = 4.205,
            .item_us = 2.858,
            .mma_per_us = 3.904e+05,
            .alone = 0.6549,
            .pair_bytes = 4.011e+04,
            .word_bytes = 3.095e+04,
            .pipeline_us = 1.216,
            .sum_us = 0.9658,
            .cluster_places = 0.9318,
            .memory_per_us = 4e+06,
            .store_per_us = 2.811e+04,
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
            .cluster_places = 0.9214,
            .memory_per_us = 4e+06,
            .store_per_us = 3.265e+04,
        },
    },
    {
        {
            .launch_us = 2.952,
            .item_us = 3.488,
            .mma_per_us = 3.3e+05,
            .edge = 1.358,
            .alone = 0.7311,
            .pair_bytes = 3.927e+04,
            .word_bytes = 2.986e+04,
            .pipeline_us = 1.584,
            .part_us = 1.349,
            .sum_us = 0.4079,
            .cluster_places = 0.9129,
            .memory_per_us = 4e+06,
            .store_per_us = 3.415e+04,
        },
        {
            .launch_us = 4.276,
            .item_us = 3.273,
            .mma_per_us = 2.179e+05,
            .alone = 0.8717,
            .pair_bytes = 2.573e+04,
            .word_bytes = 2.338e+04,
            .pipeline_us = 1.601,
            .part_us = 0.3258,
            .sum_us = 0.704,
            .cluster_places = 0.9474,
            .memory_per_us = 4e+06,
            .store_per_us = 7.182e+04,
        },
    },
};

const ws_dmma_terms ws_tf32w_terms_h200[2][2] = {
    {
        {
            .launch_us = 2.304,
            .item_us = 4.085,
            .mma_per_us = 8.503e+05,
            .edge = 1.251,
            .alone = 1,
            .pair_bytes = 4.406e+04,
            .word_bytes = 3.551e+04,
            .pipeline_us = 1.473,
            .part_us = 1.071,
            .sum_us = 0.3648,
            .cluster_places = 0.93,
            .memory_per_us = 2.867e+06,
            .store_per_us = 3.7e+04,
            .next_us = 1.675,
            .staying = 1.231,
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
            .cluster_places = 0.8964,
            .memory_per_us = 2.886e+06,
            .store_per_us = 7.317e+04,
        },
    },
    {
        {
            .launch_us = 2.21,
            .item_us = 4.3,
            .mma_per_us = 5.049e+05,
            .edge = 0.987,
            .alone = 1,
            .pair_bytes = 3.263e+04,
            .word_bytes = 2.885e+04,
            .pipeline_us = 1.267,
            .part_us = 1.39,
            .sum_us = 0.4026,
            .cluster_places = 0.93,
            .memory_per_us = 3.493e+06,
            .store_per_us = 2.915e+04,
            .next_us = 1.935,
            .staying = 1.098,
        },
        {
            .launch_us = 3.202,
            .item_us = 4.058,
            .mma_per_us = 6.534e+05,
            .edge = 1.528,
            .alone = 1,
            .pair_bytes = 2.577e+04,
            .word_bytes = 2.392e+04,
            .pipeline_us = 1.168,
            .part_us = 1.091,
            .sum_us = 0.3159,
            .cluster_places = 0.93,
            .memory_per_us = 3.493e+06,
            .store_per_us = 2.007e+05,
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
  /* not every group of SMs is a multiple of a large cluster */
  const double places = fmax(1, floor((row->cluster > 2 ? t->cluster_places : 1) * n_sms * row->blocks / row->cluster));
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
