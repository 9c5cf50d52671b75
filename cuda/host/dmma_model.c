/* dmma_model.c - see dmma_model.h: an SM's blocks beside each other, round by round, each bound by its
 * products, by its copies, or by what the stages of its pipeline have on the way. Fitted to the times of all
 * rows for random products (bench_gpu_gemm --suite row_times, H200; bench/NOTES.md). */
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
            .launch_us = 3.46,
            .item_us = 3.06,
            .mma_per_us = 408e3,
            .alone = 0.557,
            .pair_bytes = 34e3,
            .word_bytes = 34e3,
            .pipeline_us = 1.5,
            .part_us = 0,
            .sum_us = 0.101,
            .cluster_places = 0.945,
            .memory_per_us = 4e6,
            .store_per_us = 22.1e3,
        },
        {
            .launch_us = 4.7,
            .item_us = 3.22,
            .mma_per_us = 420e3,
            .alone = 0.918,
            .pair_bytes = 24e3,
            .word_bytes = 24e3,
            .pipeline_us = 1.66,
            .part_us = 0.104,
            .sum_us = 0.473,
            .cluster_places = 0.93,
            .memory_per_us = 4e6,
            .store_per_us = 44.2e3,
        },
    },
    {
        {
            .launch_us = 2.66,
            .item_us = 3.43,
            .mma_per_us = 306e3,
            .edge = 1.07,
            .alone = 0.778,
            .pair_bytes = 33e3,
            .word_bytes = 33e3,
            .pipeline_us = 1.46,
            .part_us = 0.308,
            .sum_us = 0.425,
            .cluster_places = 0.93,
            .memory_per_us = 4e6,
            .store_per_us = 22e3,
        },
        {
            .launch_us = 4.7,
            .item_us = 3.22,
            .mma_per_us = 217e3,
            .alone = 0.918,
            .pair_bytes = 24e3,
            .word_bytes = 24e3,
            .pipeline_us = 1.66,
            .part_us = 0.104,
            .sum_us = 0.473,
            .cluster_places = 0.93,
            .memory_per_us = 4e6,
            .store_per_us = 44.2e3,
        },
    },
};

const ws_dmma_terms ws_tf32w_terms_h200[2] = {
    {
        .launch_us = 3.643,
        .item_us = 2.656,
        .mma_per_us = 889.5e3,
        .edge = 1.001,
        .alone = 1,
        .pair_bytes = 49.8e3,
        .word_bytes = 36.2e3,
        .pipeline_us = 1.424,
        .part_us = 0.403,
        .sum_us = 0.4855,
        .cluster_places = 0.93,
        .memory_per_us = 2886e3,
        .store_per_us = 26.4e3,
    },
    {
        .launch_us = 3.126,
        .item_us = 3.111,
        .mma_per_us = 507.7e3,
        .edge = 1.339,
        .alone = 1,
        .pair_bytes = 34.9e3,
        .word_bytes = 28.25e3,
        .pipeline_us = 1.263,
        .part_us = 0.289,
        .sum_us = 0.4024,
        .cluster_places = 0.93,
        .memory_per_us = 3493e3,
        .store_per_us = 25.5e3,
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
  return each == 0 ? 0 : item->n_stages * stage_us + each * item->end_us + t->item_us;
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
  const double work_us = rounds * round_us(t, &item, row, row->blocks) + round_us(t, &item, row, each) + parts_us;
  return t->launch_us + fmax(work_us, bytes / t->memory_per_us);
}
