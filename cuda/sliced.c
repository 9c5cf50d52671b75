/* sliced.c - see sliced.h. */
#include "sliced.h"

#include <math.h>

#include "problem_args.h"
#include "rows.h"

enum { ALIGN = 256, PITCH = 64, K_STEP = 64 };

static double aligned(double bytes) { return ceil(bytes / ALIGN) * ALIGN; }

int ws_n_slices(wsgemm_handle *h, const ws_problem *p) {
  const int math = p->math != WSGEMM_MATH_INHERIT ? (int)p->math : atomic_load_explicit(&h->math, memory_order_relaxed);
  if (p->type != WSGEMM_F32) return 0;
  return math == WSGEMM_MATH_DEFAULT ? 2 : math == WSGEMM_MATH_TF32 ? 1 : 0;
}

bool ws_slices_fit(const ws_problem *p) { return p->k >= WS_SLICED_LEAST_K && ws_wgmma_takes(p); }

/* By what each way reaches on large products, and what it takes besides (H200, 2026-11-22): us, 1e6 multiply-adds in a us, 1e6 bytes in a us. */
bool ws_slices_gain(const ws_problem *p, int n_slices, const ws_device *device) {
  enum { N_ITEMS = 2 };
  static const struct {
    int m, n;
    double rate[2]; /* by the number of slices */
  } items[N_ITEMS] = {{128, 128, {300, 118}}, {64, 128, {200, 95}}};
  const double fma_rate = 24, fma_us = 4, launches_us = 14, memory_rate = 3.6;
  const double n_elements = ((double)p->m + (double)p->n) * (double)p->k * (double)p->batch_count;
  double product_us = 0;
  for (int i = 0; i < N_ITEMS; i++) {
    const double n_items = (double)ws_ceil_div(p->m, items[i].m) * (double)ws_ceil_div(p->n, items[i].n) * (double)p->batch_count;
    const double rounds = ceil(n_items / device->n_sms);
    const double us = rounds * device->n_sms * items[i].m * items[i].n * (double)p->k / (items[i].rate[n_slices - 1] * 1e6);
    if (i == 0 || us < product_us) product_us = us;
  }
  const double us = product_us + n_elements * (8 + 2 * n_slices) / (memory_rate * 1e6) + launches_us;
  return us < (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count / (fma_rate * 1e6) + fma_us;
}

/* ---- where things stand -------------------------------------------------------------------------------------------------------- */

/* One operand, x being m or n. Bytes as doubles, which do not overflow. */
typedef struct ws_sliced_sizes {
  int64_t n_x, pitch, scales_pitch, groups_pitch;
  double slices_bytes, maxima_bytes, scales_bytes, groups_bytes;
  int n_chunks, chunk_k;
} ws_sliced_sizes;

/* No piece needs more than a larger one: so there is room for as many chunks as any may have. */
static ws_sliced_sizes sizes_of(const ws_lines *x, int64_t k, int n_slices) {
  enum { PARTS = 528 }; /* four for each multiprocessor of an H200 */
  ws_sliced_sizes s = {.n_x = x->along_k ? x->n_lines : x->length};
  const double n_products = (double)x->n_products, n_most = n_slices == 1 ? 1 : 3;
  const int64_t groups = x->n_products * ws_slice_groups(s.n_x, x->along_k);
  const int64_t most_chunks = ws_min(WS_SLICE_CHUNKS, ws_ceil_div(k, K_STEP)),
                wanted = ws_min(ws_ceil_div(PARTS, groups), most_chunks);
  const int64_t chunk_k = ws_ceil_div(ws_ceil_div(k, wanted), K_STEP) * K_STEP;
  s.chunk_k = (int)chunk_k, s.n_chunks = (int)ws_ceil_div(k, chunk_k);
  s.pitch = ws_ceil_div(x->length, PITCH) * PITCH, s.scales_pitch = ws_ceil_div(s.n_x, 4) * 4;
  s.groups_pitch = ws_ceil_div(s.n_x, WS_SLICE_GROUP);
  s.slices_bytes = aligned(n_products * n_most * (double)x->n_lines * (double)s.pitch * sizeof(uint16_t));
  s.maxima_bytes = aligned(n_products * (double)most_chunks * (double)s.n_x * sizeof(uint32_t));
  s.scales_bytes = aligned(n_products * (double)s.scales_pitch * sizeof(int32_t));
  s.groups_bytes = aligned(n_products * (double)s.groups_pitch * sizeof(int32_t));
  return s;
}

static double bytes_of(const ws_lines *x, int64_t k, int n_slices) {
  const ws_sliced_sizes s = sizes_of(x, k, n_slices);
  return ALIGN + s.slices_bytes + s.maxima_bytes + s.scales_bytes + s.groups_bytes;
}

static double bytes_of_both(const ws_problem *p, int n_slices, double *of_a, double *of_b) {
  const ws_lines a = ws_lines_of_a(p), b = ws_lines_of_b(p);
  *of_a = bytes_of(&a, p->k, n_slices), *of_b = bytes_of(&b, p->k, n_slices);
  return *of_a + *of_b;
}

static double bytes_of_one(const ws_problem *piece, double *of_a, double *of_b) { return bytes_of_both(piece, 1, of_a, of_b); }
static double bytes_of_three(const ws_problem *piece, double *of_a, double *of_b) { return bytes_of_both(piece, 3, of_a, of_b); }
ws_piece_bytes *ws_sliced_bytes(int n_slices) { return n_slices == 1 ? bytes_of_one : bytes_of_three; }

/* The state, slices, maxima, scales, groups. */
static ws_slice_operand operand_of(const ws_lines *x, int64_t k, int n_slices, char *at) {
  const ws_sliced_sizes s = sizes_of(x, k, n_slices);
  char *const slices = at + ALIGN, *const maxima = slices + (int64_t)s.slices_bytes,
              *const scales = maxima + (int64_t)s.maxima_bytes, *const groups = scales + (int64_t)s.scales_bytes;
  return (ws_slice_operand){.from = x->data,
                            .to = (uint16_t *)(void *)slices,
                            .maxima = (uint32_t *)(void *)maxima,
                            .scales = (int32_t *)(void *)scales,
                            .groups = (int32_t *)(void *)groups,
                            .state = (ws_slice_state *)(void *)at,
                            .n_x = s.n_x,
                            .n_k = k,
                            .n_products = x->n_products,
                            .ld = x->ld,
                            .stride = x->stride,
                            .pitch = s.pitch,
                            .scales_pitch = s.scales_pitch,
                            .groups_pitch = s.groups_pitch,
                            .along_k = x->along_k,
                            .vectors = ws_is_aligned(x->data, x->ld, x->stride, (int)sizeof(float), 16),
                            .n_chunks = s.n_chunks,
                            .chunk_k = s.chunk_k};
}

static ws_lines slices_of(const ws_lines *x, const ws_slice_operand *op, int n_slices) {
  ws_lines slices = *x;
  slices.data = op->to, slices.ld = op->pitch, slices.stride = op->pitch * x->n_lines, slices.n_slices = n_slices;
  return slices;
}

/* How much the slices of one element may leave out, in parts of it, so that the product keeps the contract's bound of k + 2 roundings, u each:
 * the units round toward zero, once for each k of a chunk at most; one rounding a chunk for the total; 2^10 times less for the smaller
 * products; 16 u for slice 1 times slice 1 (WS_SLICE_MOST_LEFT squared); 3 u for the last steps. A and B share what is left. One slice
 * leaves out as much as TF32 does. */
static float tolerance_for(int64_t k, int n_slices) {
  const double u = 0x1p-24, n_k = (double)k;
  const double left = (n_k + 2 - WS_SLICED_CHUNK_K - n_k / WS_SLICED_CHUNK_K - n_k / 512 - 16 - 3) / 2 * u;
  return (float)(n_slices == 1 ? 0x1p-11 : left < 0x1p-12 ? left : 0x1p-12);
}

ws_sliced ws_sliced_make(const ws_problem *piece, int n_slices, char *a_at, char *b_at) {
  const ws_lines a = ws_lines_of_a(piece), b = ws_lines_of_b(piece);
  ws_sliced s = {.args = {.operand = {operand_of(&a, piece->k, n_slices, a_at), operand_of(&b, piece->k, n_slices, b_at)},
                          .tolerance = tolerance_for(piece->k, n_slices),
                          .n_slices = n_slices}};
  const ws_slice_operand *of_a = &s.args.operand[0], *of_b = &s.args.operand[1];
  s.a = slices_of(&a, of_a, n_slices), s.b = slices_of(&b, of_b, n_slices);
  s.scales = (ws_wgmma_scales){.of_m = of_a->scales,
                               .of_n = of_b->scales,
                               .groups_m = of_a->groups,
                               .groups_n = of_b->groups,
                               .pitch_m = a.n_products > 1 ? of_a->scales_pitch : 0,
                               .pitch_n = b.n_products > 1 ? of_b->scales_pitch : 0,
                               .groups_pitch_m = a.n_products > 1 ? of_a->groups_pitch : 0,
                               .groups_pitch_n = b.n_products > 1 ? of_b->groups_pitch : 0,
                               .state_m = of_a->state,
                               .state_n = of_b->state};
  return s;
}

double ws_slice_parts(const ws_slice_args *args) {
  double parts = 0;
  for (int i = 0; i < 2; i++) {
    const ws_slice_operand *op = &args->operand[i];
    parts += (double)op->n_products * (double)ws_slice_groups(op->n_x, op->along_k) * op->n_chunks;
  }
  return parts;
}

ws_marked_args ws_marked_args_of(const ws_problem *piece, const ws_sliced *sliced) {
  ws_marked_args args = {.gemm = ws_gemm_args_of(piece),
                         .scales = sliced->scales,
                         .counts_a = !sliced->args.operand[0].is_again,
                         .counts_b = !sliced->args.operand[1].is_again};
  args.gemm.grid = (ws_tile_grid){.n_batch = piece->batch_count,
                                  .n_rows = ws_ceil_div(piece->m, WS_MARKED_BM),
                                  .n_cols = ws_ceil_div(piece->n, WS_MARKED_BN),
                                  .coarse = 1,
                                  .group = 8};
  args.gemm.sched.n_items = (uint32_t)ws_tile_items(&args.gemm.grid);
  return args;
}
