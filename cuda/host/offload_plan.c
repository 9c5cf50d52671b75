/* offload_plan.c - see offload_plan.h. */
#include "cuda/host/offload_plan.h"

#include "core/tile.h"
#include "cuda/host/offload_site.h"

/* ---- matrices -------------------------------------------------------------------------------- */

/* Lines begin at multiples of 256 bytes; short ones, of which there may be many, of what vectors
 * and TMA need. */
static int64_t device_ld_of(int64_t n_rows, int bytes) {
  enum { ALIGN = 256, LEAST_ALIGN = 16 };
  const int64_t align = n_rows * bytes > ALIGN / 2 ? ALIGN : LEAST_ALIGN;
  return ws_ceil_div(n_rows * bytes, align) * align / bytes;
}

static ws_offload_matrix matrix_of(const void *host, int64_t n_rows, int64_t n_cols, int64_t ld, wsgemm_type type) {
  const int bytes = ws_types[type].bytes;
  return (ws_offload_matrix){.host = (char *)(uintptr_t)host,
                             .n_rows = n_rows,
                             .n_cols = n_cols,
                             .ld = ld,
                             .device_ld = device_ld_of(n_rows, bytes),
                             .bytes = bytes};
}

static ws_offload_matrix matrix_of_operand(const ws_matrix *x, int64_t n_rows, int64_t n_cols) {
  return matrix_of(x->data, x->trans ? n_cols : n_rows, x->trans ? n_rows : n_cols, x->ld, x->type);
}

/* What the driver takes as a pitch. */
static bool has_short_lines(const ws_offload_matrix *x) { return x->ld * x->bytes <= INT32_MAX; }

void ws_offload_plan_make(const ws_problem *p, const bool is_pinned[WS_N_OFFLOADED], ws_offload_plan *plan) {
  enum { BEGIN = 256 };
  *plan = (ws_offload_plan){.p = p};
  plan->matrix[WS_OF_A] = matrix_of_operand(&p->a, p->m, p->k);
  plan->matrix[WS_OF_B] = matrix_of_operand(&p->b, p->k, p->n);
  plan->matrix[WS_OF_C] = matrix_of(p->c.data, p->m, p->n, p->c.ld, p->c.type);
  for (int i = 0; i < WS_N_OFFLOADED; i++) {
    ws_offload_matrix *x = &plan->matrix[i];
    x->is_pinned = is_pinned[i] && has_short_lines(x);
    plan->is_staged |= !x->is_pinned;
    x->offset = plan->device_bytes;
    plan->device_bytes += ((size_t)(x->device_ld * x->n_cols) * (size_t)x->bytes + BEGIN - 1) / BEGIN * BEGIN;
  }
}

/* ---- strips, panels, cells ------------------------------------------------------------------- */

static int64_t side_of(int64_t length, int n_parts) {
  enum { LEAST = 1024, STEP = 256 };
  return ws_max(LEAST, ws_ceil_div(ws_ceil_div(length, n_parts), STEP) * STEP);
}

void ws_offload_plan_cut(ws_offload_plan *plan, int n_parts, int n_devices) {
  const ws_problem *p = plan->p;
  /* Every device reads all panels' operand: the shorter one. */
  plan->along_n = p->n > p->m;
  const int64_t length = plan->along_n ? p->n : p->m, width = plan->along_n ? p->m : p->n;
  plan->strip = n_parts > 1 ? side_of(length, (int)ws_min(WS_MOST_STRIPS, (int64_t)n_parts * n_devices)) : length;
  plan->panel = n_parts > 1 ? side_of(width, n_parts) : width;
  plan->n_strips = (int)ws_ceil_div(length, plan->strip);
  plan->n_panels = (int)ws_ceil_div(width, plan->panel);
  const ws_block first = ws_offload_cells(plan, 0, 1, 0, 1);
  plan->most_transfers = ws_offload_n_transfers(&plan->matrix[WS_OF_C], &first);
}

static void range_of(const ws_offload_plan *plan, bool of_strip, int i, int n, int64_t *first, int64_t *length) {
  const bool of_n = of_strip == plan->along_n;
  const int64_t side = of_strip ? plan->strip : plan->panel, all = of_n ? plan->p->n : plan->p->m;
  *first = i * side;
  *length = ws_min(n * side, all - *first);
}

int ws_offload_operand(const ws_offload_plan *plan, bool of_strip) { return of_strip == plan->along_n ? WS_OF_B : WS_OF_A; }

ws_block ws_offload_block(const ws_offload_plan *plan, bool of_strip, int i) {
  const ws_problem *p = plan->p;
  const bool of_b = ws_offload_operand(plan, of_strip) == WS_OF_B;
  int64_t first, length;
  range_of(plan, of_strip, i, 1, &first, &length);
  /* along the stored rows: op(A)'s rows as they are, op(B)'s columns transposed */
  if (of_b ? p->b.trans : !p->a.trans) return (ws_block){first, 0, length, p->k};
  return (ws_block){0, first, p->k, length};
}

ws_block ws_offload_cells(const ws_offload_plan *plan, int strip, int n_strips, int panel, int n_panels) {
  ws_block c;
  range_of(plan, true, strip, n_strips, plan->along_n ? &c.col : &c.row, plan->along_n ? &c.n_cols : &c.n_rows);
  range_of(plan, false, panel, n_panels, plan->along_n ? &c.row : &c.col, plan->along_n ? &c.n_rows : &c.n_cols);
  return c;
}

/* ---- transfers ---------------------------------------------------------------------------------- */

/* What needs no slot is copied by more at once: 54 GB/s, not 51 (H200). */
static ws_block first_transfer(const ws_offload_matrix *matrix, const ws_block *block) {
  const int64_t bytes = matrix->is_pinned ? 4 * WS_SLOT_BYTES : WS_SLOT_BYTES;
  const int64_t n_rows = ws_min(block->n_rows, bytes / matrix->bytes);
  return (ws_block){.n_rows = n_rows, .n_cols = ws_min(block->n_cols, bytes / (n_rows * matrix->bytes))};
}

int ws_offload_n_transfers(const ws_offload_matrix *matrix, const ws_block *block) {
  const ws_block first = first_transfer(matrix, block);
  return (int)(ws_ceil_div(block->n_rows, first.n_rows) * ws_ceil_div(block->n_cols, first.n_cols));
}

ws_block ws_offload_transfer(const ws_offload_matrix *matrix, const ws_block *block, int i) {
  const ws_block first = first_transfer(matrix, block);
  const int64_t n_down = ws_ceil_div(block->n_rows, first.n_rows), row = i % n_down * first.n_rows,
                col = i / n_down * first.n_cols;
  return (ws_block){block->row + row, block->col + col, ws_min(first.n_rows, block->n_rows - row),
                    ws_min(first.n_cols, block->n_cols - col)};
}

/* ---- products -------------------------------------------------------------------------------- */

ws_problem ws_offload_part(const ws_offload_plan *plan, const ws_block *c, const char *device_memory) {
  ws_problem part = *plan->p;
  const ws_offload_matrix *of = plan->matrix;
  const bool is_host = !device_memory;
  const char *at[WS_N_OFFLOADED];
  int64_t ld[WS_N_OFFLOADED];
  for (int i = 0; i < WS_N_OFFLOADED; i++) {
    at[i] = is_host ? of[i].host : device_memory + of[i].offset;
    ld[i] = is_host ? of[i].ld : of[i].device_ld;
  }
  const int64_t row = c->row, col = c->col;
  part.m = c->n_rows, part.n = c->n_cols;
  part.a.ld = ld[WS_OF_A], part.b.ld = ld[WS_OF_B], part.c.ld = ld[WS_OF_C];
  part.a.data = at[WS_OF_A] + row * (part.a.trans ? part.a.ld : 1) * of[WS_OF_A].bytes;
  part.b.data = at[WS_OF_B] + col * (part.b.trans ? 1 : part.b.ld) * of[WS_OF_B].bytes;
  part.c.data = (char *)(uintptr_t)at[WS_OF_C] + (row + col * part.c.ld) * of[WS_OF_C].bytes;
  return part;
}

/* ---- model ----------------------------------------------------------------------------------- */

/* Of an H200 and its host (bench/NOTES.md, offload), flops a second. The CPU's rates are those of
 * the fastest core known, so that GPUs are not taken where they lose. */
static const struct {
  double device, core;
} rates[WS_N_TYPES] = {[WSGEMM_F32] = {160e12, 250e9}, [WSGEMM_F64] = {49e12, 125e9},  [WSGEMM_C32] = {140e12, 250e9},
                       [WSGEMM_C64] = {52e12, 125e9},  [WSGEMM_F16] = {500e12, 250e9}, [WSGEMM_BF16] = {500e12, 500e9}};

ws_offload_times ws_offload_model(const ws_offload_plan *plan, int n_devices, int n_threads) {
  const double link = 50e9, staging_of_thread = 5e9, most_staging = 60e9, begin = 0.6e-3;
  const ws_problem *p = plan->p;
  const double n_real = ws_types[p->a.type].n_real, flops = 2 * n_real * n_real * (double)p->m * (double)p->n * (double)p->k;
  double bytes[WS_N_OFFLOADED], staged = 0;
  for (int i = 0; i < WS_N_OFFLOADED; i++) {
    const ws_offload_matrix *x = &plan->matrix[i];
    bytes[i] = (double)x->n_rows * (double)x->n_cols * x->bytes;
    if (!x->is_pinned) staged += bytes[i] * (i == WS_OF_C && !p->scale.beta_zero ? 2 : 1);
  }
  const double shared = p->n > p->m ? bytes[WS_OF_A] : bytes[WS_OF_B], own = bytes[WS_OF_A] + bytes[WS_OF_B] - shared;
  const double in = shared + (own + (p->scale.beta_zero ? 0 : bytes[WS_OF_C])) / n_devices, out = bytes[WS_OF_C] / n_devices;
  const double staging_rate = n_threads * staging_of_thread < most_staging ? n_threads * staging_of_thread : most_staging;
  ws_offload_times t = {.link = (in > out ? in : out) / link,
                        .staging = staged / staging_rate,
                        .device = flops / rates[p->a.type].device / n_devices,
                        .cpu = flops / rates[p->a.type].core / n_threads};
  const double copies = t.link > t.staging ? t.link : t.staging, least = copies < t.device ? copies : t.device;
  t.all = begin + copies + t.device - least * 3 / 4;
  return t;
}
