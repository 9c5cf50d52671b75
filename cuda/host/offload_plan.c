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
  return (ws_offload_matrix){.host = (char *)(uintptr_t)host,
                             .n_rows = n_rows,
                             .n_cols = n_cols,
                             .ld = ld,
                             .n_products = 1,
                             .bytes = ws_types[type].bytes};
}

/* Products that follow each other without a gap are one matrix. */
static void set_batch(ws_offload_matrix *x, int64_t count, int64_t stride) {
  if (count == 1 || stride == 0) return;
  if (stride == x->ld * x->n_cols && x->region == WS_ALL)
    x->n_cols *= count;
  else
    x->n_products = count, x->stride = stride;
}

static ws_offload_matrix operand_of(const ws_matrix *x, int64_t n_rows, int64_t n_cols, int64_t batch_count) {
  ws_offload_matrix m = matrix_of(x->data, x->trans ? n_cols : n_rows, x->trans ? n_rows : n_cols, x->ld, x->type);
  if (x->structure != WS_GENERAL) m.region = x->stored_upper ? WS_UPPER : WS_LOWER;
  set_batch(&m, batch_count, x->stride);
  return m;
}

/* A batch of vectors is a matrix. */
static ws_offload_matrix vector_of(const void *host, int64_t n, int64_t count, int64_t stride, wsgemm_type type) {
  if (!host) return (ws_offload_matrix){.host = NULL};
  return matrix_of(host, n, stride ? count : 1, stride ? stride : n, type);
}

static void set_epilogue(const ws_problem *p, ws_offload_plan *plan) {
  const ws_epilogue *e = &p->epilogue;
  plan->matrix[WS_OF_BIAS] = vector_of(e->bias, e->bias_per_row ? p->m : p->n, p->batch_count, e->stride_bias, e->type_bias);
  if (e->residual) {
    plan->matrix[WS_OF_RESIDUAL] = matrix_of(e->residual, p->m, p->n, e->ld_residual, p->c.type);
    set_batch(&plan->matrix[WS_OF_RESIDUAL], p->batch_count, e->stride_residual);
  }
  const wsgemm_type of_sums = p->c.type == WSGEMM_F64 ? WSGEMM_F64 : WSGEMM_F32;
  plan->matrix[WS_OF_SUMS] =
      vector_of(e->column_sums, e->transposed ? p->m : p->n, p->batch_count, e->stride_column_sums, of_sums);
}

/* What the driver takes as a pitch. */
static bool can_be_pitch(const ws_offload_matrix *x) { return x->ld >= x->n_rows && x->ld * x->bytes <= INT32_MAX; }

static bool is_same(const ws_offload_matrix *x, const ws_offload_matrix *y) {
  return x->host && x->host == y->host && x->n_rows == y->n_rows && x->n_cols == y->n_cols && x->ld == y->ld &&
         x->n_products == y->n_products && x->stride == y->stride;
}

/* Of what is one cell: operands with C's memory, and a second operand with the first one's. */
static void find_shared(ws_offload_plan *plan) {
  ws_offload_matrix *x = plan->matrix;
  const int others[] = {WS_OF_A, WS_OF_B, WS_OF_RESIDUAL};
  for (int i = 0; i < 3; i++)
    if (is_same(&x[others[i]], &x[WS_OF_C])) x[others[i]].is_another = plan->reads_c = true;
  if (is_same(&x[WS_OF_A], &x[WS_OF_B]) && x[WS_OF_A].region == x[WS_OF_B].region) x[WS_OF_B].is_another = true;
}

/* Of C's region nothing else is written, so the host copies it. */
static void set_pinned(const bool is_pinned[WS_N_OFFLOADED], ws_offload_plan *plan) {
  for (int i = 0; i < WS_N_OFFLOADED; i++) {
    ws_offload_matrix *x = &plan->matrix[i];
    if (!x->host) continue;
    x->is_pinned = is_pinned[i] && can_be_pitch(x) && !(i == WS_OF_C && x->region != WS_ALL);
    plan->is_staged |= !x->is_pinned;
  }
}

void ws_offload_plan_make(const ws_problem *p, const ws_system *system, const bool is_pinned[WS_N_OFFLOADED],
                          ws_offload_plan *plan) {
  *plan = (ws_offload_plan){.p = p, .system = system};
  plan->is_whole = system || !ws_is_plain(p) || p->batch_count != 1 || p->has_epilogue;
  plan->reads_c = !system && !p->scale.beta_zero;
  plan->matrix[WS_OF_A] = operand_of(&p->a, p->m, p->k, p->batch_count);
  plan->matrix[WS_OF_B] = operand_of(&p->b, p->k, p->n, p->batch_count);
  plan->matrix[WS_OF_C] = matrix_of(p->c.data, p->m, p->n, p->c.ld, p->c.type);
  plan->matrix[WS_OF_C].region = p->c.region;
  set_batch(&plan->matrix[WS_OF_C], p->batch_count, p->c.stride);
  if (p->has_epilogue) set_epilogue(p, plan);
  if (plan->is_whole) find_shared(plan);
  set_pinned(is_pinned, plan);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Rows and columns that a device has places for. */
static void places_of(const ws_offload_plan *plan, int matrix, int64_t *n_rows, int64_t *n_cols) {
  const ws_offload_matrix *x = &plan->matrix[matrix];
  *n_rows = x->n_rows, *n_cols = x->n_cols;
  if (plan->is_whole) return;
  const int64_t of_strips = plan->strip_places * plan->strip, of_panels = plan->panel_places * plan->panel;
  const int64_t m = ws_min(plan->p->m, plan->along_n ? of_panels : of_strips),
                n = ws_min(plan->p->n, plan->along_n ? of_strips : of_panels);
  if (matrix == WS_OF_A) *(plan->p->a.trans ? n_cols : n_rows) = m;
  if (matrix == WS_OF_B) *(plan->p->b.trans ? n_rows : n_cols) = n;
  if (matrix == WS_OF_C) *n_rows = m, *n_cols = n;
}

static size_t bytes_of(ws_offload_plan *plan, int matrix) {
  enum { BEGIN = 256 };
  ws_offload_matrix *x = &plan->matrix[matrix];
  int64_t n_rows, n_cols;
  places_of(plan, matrix, &n_rows, &n_cols);
  x->device_ld = device_ld_of(n_rows, x->bytes), x->device_stride = x->device_ld * n_cols;
  return ((size_t)(x->device_stride * x->n_products) * (size_t)x->bytes + BEGIN - 1) / BEGIN * BEGIN;
}

static void find_places(ws_offload_plan *plan) {
  ws_offload_matrix *x = plan->matrix;
  plan->device_bytes = 0;
  for (int i = 0; i < WS_N_OFFLOADED; i++) {
    if (!x[i].host) continue;
    const size_t bytes = bytes_of(plan, i);
    x[i].offset = plan->device_bytes;
    if (!x[i].is_another) plan->device_bytes += bytes;
  }
  for (int i = 0; i < WS_N_OFFLOADED; i++)
    if (x[i].is_another) x[i].offset = x[is_same(&x[i], &x[WS_OF_C]) ? WS_OF_C : WS_OF_A].offset;
}

/* ---- strips, panels, cells ------------------------------------------------------------------- */

enum { LEAST_SIDE = 256 };

static int64_t side_of(int64_t length, int n_parts, int64_t least) {
  return ws_max(least, ws_ceil_div(ws_ceil_div(length, n_parts), LEAST_SIDE) * LEAST_SIDE);
}

static void set_sides(ws_offload_plan *plan, int64_t strip, int64_t panel) {
  const ws_problem *p = plan->p;
  plan->strip = strip, plan->panel = panel;
  plan->n_strips = (int)ws_ceil_div(plan->along_n ? p->n : p->m, strip);
  plan->n_panels = (int)ws_ceil_div(plan->along_n ? p->m : p->n, panel);
}

/* All on each device, which reads all panels' operand: the shorter one. Of several devices the last strips are waited for, so
 * they are smaller, where nothing is done anew for each. */
static void cut_resident(ws_offload_plan *plan, int n_parts, int n_devices) {
  enum { LEAST = 1024, LEAST_OF_SEVERAL = 512 };
  const int64_t least = n_devices > 1 && n_parts > WS_PARTS_OF_SLICES ? LEAST_OF_SEVERAL : LEAST;
  const ws_problem *p = plan->p;
  plan->along_n = n_parts > 1 && p->n > p->m;
  const int64_t length = plan->along_n ? p->n : p->m, width = plan->along_n ? p->m : p->n;
  if (n_parts > 1)
    set_sides(plan, side_of(length, (int)ws_min(WS_MOST_STRIPS, (int64_t)n_parts * n_devices), least),
              side_of(width, n_parts, LEAST));
  else
    set_sides(plan, length, width);
  plan->strip_places = plan->n_strips, plan->panel_places = plan->n_panels;
  find_places(plan);
}

/* Strips and panels, and places for them. */
typedef struct sides {
  bool along_n;
  int64_t panel, most_rows; /* most_rows: of all strips on a device, or columns */
  int places;               /* for panels */
} sides;

/* Rows that strips may have beside the panels' places. */
static bool has_rows(const ws_offload_plan *plan, size_t bytes, int64_t wanted, sides *s) {
  const double of_c = plan->matrix[WS_OF_C].bytes, of_k = (double)plan->p->k * plan->matrix[WS_OF_A].bytes;
  const int64_t length = s->along_n ? plan->p->n : plan->p->m;
  const double of_panels = (double)s->places * (double)s->panel * of_k;
  const double room = ((double)bytes - of_panels) / (of_k + (double)s->places * (double)s->panel * of_c);
  s->most_rows = (int64_t)ws_max(0, ws_min(room, (double)length + LEAST_SIDE)) / LEAST_SIDE * LEAST_SIDE;
  return of_panels <= (double)bytes / 2 && s->most_rows >= ws_min(length, wanted);
}

/* Panels in few places, wide enough that a strip which arrives keeps the device busy with them, and strips beside them
 * for which the panels' passing by is worth its while; else what there is room for. */
static bool find_sides(const ws_offload_plan *plan, int64_t most_panel, size_t bytes, sides *s) {
  enum { PLACES = 4, LEAST_PLACES = 2, WANTED = 2048 };
  const int64_t width = s->along_n ? plan->p->m : plan->p->n;
  for (s->panel = most_panel; s->panel >= LEAST_SIDE; s->panel /= 2)
    for (int places = PLACES; places >= LEAST_PLACES; places /= 2) {
      s->places = (int)ws_min(places, ws_ceil_div(width, s->panel));
      if (has_rows(plan, bytes, WANTED, s)) return true;
    }
  s->panel = LEAST_SIDE;
  return s->most_rows >= LEAST_SIDE;
}

/* In equal groups. */
static bool cut_along(const ws_offload_plan *plan, bool along_n, int64_t most_panel, int n_devices, size_t bytes,
                      ws_offload_plan *cut) {
  enum { STRIPS_OF_GROUP = 16, SIDE = 4 * LEAST_SIDE };
  const int64_t length = along_n ? plan->p->n : plan->p->m;
  sides s = {.along_n = along_n};
  if (!find_sides(plan, most_panel, bytes, &s)) return false;
  const int64_t n_groups = ws_ceil_div(length, s.most_rows * n_devices), group = ws_ceil_div(length, n_groups * n_devices);
  const int64_t n = ws_max(1, ws_min(STRIPS_OF_GROUP, ws_min(group / SIDE, s.most_rows / LEAST_SIDE)));
  *cut = *plan;
  cut->along_n = along_n;
  set_sides(cut, ws_min(ws_ceil_div(ws_ceil_div(group, n), LEAST_SIDE), s.most_rows / n / LEAST_SIDE) * LEAST_SIDE, s.panel);
  cut->strip_places = (int)ws_min(n, cut->n_strips), cut->panel_places = s.places;
  find_places(cut);
  return cut->device_bytes <= bytes;
}

/* Lines of operands that a device reads. */
static double lines_read(const ws_offload_plan *cut, int n_devices) {
  const ws_problem *p = cut->p;
  const int64_t length = cut->along_n ? p->n : p->m, width = cut->along_n ? p->m : p->n;
  const int64_t n_groups = ws_ceil_div(cut->n_strips, (int64_t)cut->strip_places * n_devices);
  return (double)length / n_devices + (double)n_groups * (double)width;
}

static bool cut_into_groups(ws_offload_plan *plan, int n_parts, int n_devices, size_t bytes) {
  const int64_t panel = n_parts <= WS_PARTS_OF_SLICES ? 4096 : 2048;
  ws_offload_plan by_rows, by_columns;
  const bool is_by_rows = cut_along(plan, false, panel, n_devices, bytes, &by_rows),
             is_by_columns = cut_along(plan, true, panel, n_devices, bytes, &by_columns);
  if (!is_by_rows && !is_by_columns) return false;
  const bool along_n = !is_by_rows || (is_by_columns && lines_read(&by_columns, n_devices) < lines_read(&by_rows, n_devices));
  *plan = along_n ? by_columns : by_rows;
  return true;
}

bool ws_offload_plan_cut(ws_offload_plan *plan, int n_parts, int n_devices, size_t bytes) {
  cut_resident(plan, n_parts, n_devices);
  if (plan->device_bytes > bytes && (n_parts == 1 || !cut_into_groups(plan, n_parts, n_devices, bytes))) return false;
  plan->most_transfers = ws_offload_n_out(plan, 0, 0);
  return true;
}

static void range_of(const ws_offload_plan *plan, bool of_strip, int i, int64_t *first, int64_t *length) {
  const bool of_n = of_strip == plan->along_n;
  const int64_t side = of_strip ? plan->strip : plan->panel, all = of_n ? plan->p->n : plan->p->m;
  *first = i * side;
  *length = ws_min(side, all - *first);
}

int ws_offload_operand(const ws_offload_plan *plan, bool of_strip) { return of_strip == plan->along_n ? WS_OF_B : WS_OF_A; }

static ws_block all_of(const ws_offload_matrix *x) { return (ws_block){0, 0, x->n_rows, x->n_cols, 0}; }

/* Whether it lies along the stored rows: op(A)'s rows as they are, op(B)'s columns transposed. */
static bool is_along_rows(const ws_offload_plan *plan, int operand) {
  return operand == WS_OF_B ? plan->p->b.trans : !plan->p->a.trans;
}

ws_block ws_offload_block(const ws_offload_plan *plan, bool of_strip, int i) {
  const int operand = ws_offload_operand(plan, of_strip);
  int64_t first, length;
  if (plan->is_whole) return all_of(&plan->matrix[operand]);
  range_of(plan, of_strip, i, &first, &length);
  if (is_along_rows(plan, operand)) return (ws_block){first, 0, length, plan->p->k, 0};
  return (ws_block){0, first, plan->p->k, length, 0};
}

ws_block ws_offload_cell(const ws_offload_plan *plan, int strip, int panel) {
  ws_block c = {0};
  if (plan->is_whole) return all_of(&plan->matrix[WS_OF_C]);
  range_of(plan, true, strip, plan->along_n ? &c.col : &c.row, plan->along_n ? &c.n_cols : &c.n_rows);
  range_of(plan, false, panel, plan->along_n ? &c.row : &c.col, plan->along_n ? &c.n_rows : &c.n_cols);
  return c;
}

bool ws_offload_input(const ws_offload_plan *plan, bool of_strip, int i, int *matrix) {
  const int with_strip[] = {ws_offload_operand(plan, true), WS_OF_BIAS, WS_OF_RESIDUAL},
            with_panel[] = {ws_offload_operand(plan, false)};
  const int n = of_strip ? 3 : 1, *const list = of_strip ? with_strip : with_panel;
  for (int at = 0; at < n; at++) {
    const ws_offload_matrix *x = &plan->matrix[list[at]];
    *matrix = list[at];
    if (x->host && !x->is_another && i-- == 0) return true;
  }
  return false;
}

ws_block ws_offload_cells_in(const ws_offload_plan *plan, const ws_places *strips, const ws_places *panels) {
  const ws_block last = ws_offload_cell(plan, strips->last, panels->last);
  if (plan->is_whole) return last;
  const int64_t strip = plan->strip, panel = plan->panel;
  ws_block c = last;
  c.row = plan->along_n ? panels->first * panel : strips->first * strip;
  c.col = plan->along_n ? strips->first * strip : panels->first * panel;
  c.n_rows += plan->along_n ? (panels->n - 1) * panel : (strips->n - 1) * strip;
  c.n_cols += plan->along_n ? (strips->n - 1) * strip : (panels->n - 1) * panel;
  return c;
}

ws_shift ws_offload_shift(const ws_offload_plan *plan, int matrix, int strip, int strip_place, int panel, int panel_place) {
  if (plan->is_whole) return (ws_shift){0, 0};
  const int64_t of_strip = (strip_place - strip) * plan->strip, of_panel = (panel_place - panel) * plan->panel;
  if (matrix == WS_OF_C) return plan->along_n ? (ws_shift){of_panel, of_strip} : (ws_shift){of_strip, of_panel};
  const int64_t along = matrix == ws_offload_operand(plan, true) ? of_strip : of_panel;
  return is_along_rows(plan, matrix) ? (ws_shift){along, 0} : (ws_shift){0, along};
}

/* ---- transfers ---------------------------------------------------------------------------------- */

/* What needs no slot is copied by more at once: 54 GB/s, not 51 (H200). */
static ws_block first_transfer(const ws_offload_matrix *matrix, const ws_block *block) {
  const int64_t bytes = matrix->is_pinned ? 4 * WS_SLOT_BYTES : WS_SLOT_BYTES;
  const int64_t n_rows = ws_min(block->n_rows, bytes / matrix->bytes);
  return (ws_block){.n_rows = n_rows, .n_cols = ws_min(block->n_cols, bytes / (n_rows * matrix->bytes))};
}

static int64_t n_of_product(const ws_block *first, const ws_block *block) {
  return ws_ceil_div(block->n_rows, first->n_rows) * ws_ceil_div(block->n_cols, first->n_cols);
}

int ws_offload_n_transfers(const ws_offload_matrix *matrix, const ws_block *block) {
  const ws_block first = first_transfer(matrix, block);
  return (int)(n_of_product(&first, block) * matrix->n_products);
}

/* What a triangle has in common with it: no rows beside that of the block's. */
static void trim(const ws_offload_matrix *matrix, ws_block *b) {
  const int64_t end = b->row + b->n_rows;
  if (matrix->region == WS_LOWER) b->row = ws_min(end, ws_max(b->row, b->col)), b->n_rows = end - b->row;
  if (matrix->region == WS_UPPER) b->n_rows = ws_max(0, ws_min(end, b->col + b->n_cols) - b->row);
}

ws_block ws_offload_transfer(const ws_offload_matrix *matrix, const ws_block *block, int i) {
  const ws_block first = first_transfer(matrix, block);
  const int64_t n_down = ws_ceil_div(block->n_rows, first.n_rows), n = n_of_product(&first, block), at = i % n;
  const int64_t row = at % n_down * first.n_rows, col = at / n_down * first.n_cols;
  ws_block b = {block->row + row, block->col + col, ws_min(first.n_rows, block->n_rows - row),
                ws_min(first.n_cols, block->n_cols - col), i / n};
  trim(matrix, &b);
  return b;
}

int ws_offload_n_out(const ws_offload_plan *plan, int strip, int panel) {
  const ws_block cell = ws_offload_cell(plan, strip, panel);
  const ws_offload_matrix *sums = &plan->matrix[WS_OF_SUMS];
  const ws_block all = all_of(sums);
  return ws_offload_n_transfers(&plan->matrix[WS_OF_C], &cell) + (sums->host ? ws_offload_n_transfers(sums, &all) : 0);
}

ws_block ws_offload_out(const ws_offload_plan *plan, int strip, int panel, int i, int *matrix) {
  const ws_block cell = ws_offload_cell(plan, strip, panel);
  const int n_of_c = ws_offload_n_transfers(&plan->matrix[WS_OF_C], &cell);
  *matrix = i < n_of_c ? WS_OF_C : WS_OF_SUMS;
  if (i < n_of_c) return ws_offload_transfer(&plan->matrix[WS_OF_C], &cell, i);
  const ws_block all = all_of(&plan->matrix[WS_OF_SUMS]);
  return ws_offload_transfer(&plan->matrix[WS_OF_SUMS], &all, i - n_of_c);
}

/* ---- products -------------------------------------------------------------------------------- */

ws_problem ws_offload_part(const ws_offload_plan *plan, const ws_block *c, const char *device_memory) {
  ws_problem part = *plan->p;
  const ws_offload_matrix *of = plan->matrix;
  const bool is_host = !device_memory;
  const char *at[WS_OF_C + 1];
  int64_t ld[WS_OF_C + 1];
  for (int i = 0; i <= WS_OF_C; i++) {
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

static char *device_at(const ws_offload_plan *plan, int matrix, const char *memory) {
  return plan->matrix[matrix].host ? (char *)(uintptr_t)memory + plan->matrix[matrix].offset : NULL;
}

/* Of a matrix that is shared by all products of a batch the stride stays 0. */
static int64_t stride_on_device(const ws_offload_plan *plan, int matrix, int64_t stride, int64_t n_cols) {
  return stride == 0 ? 0 : plan->matrix[matrix].device_ld * n_cols;
}

static void move_operand(const ws_offload_plan *plan, int matrix, int64_t n_cols, const char *memory, ws_matrix *x) {
  x->data = device_at(plan, matrix, memory);
  x->ld = plan->matrix[matrix].device_ld, x->stride = stride_on_device(plan, matrix, x->stride, n_cols);
}

static void move_result(const ws_offload_plan *plan, const char *memory, ws_result *c) {
  c->data = device_at(plan, WS_OF_C, memory);
  c->ld = plan->matrix[WS_OF_C].device_ld, c->stride = stride_on_device(plan, WS_OF_C, c->stride, plan->p->n);
}

static void move_epilogue(const ws_offload_plan *plan, const char *memory, ws_epilogue *e) {
  const ws_offload_matrix *x = plan->matrix;
  e->bias = device_at(plan, WS_OF_BIAS, memory), e->residual = device_at(plan, WS_OF_RESIDUAL, memory);
  e->column_sums = device_at(plan, WS_OF_SUMS, memory);
  if (e->stride_bias) e->stride_bias = x[WS_OF_BIAS].device_ld;
  if (e->stride_column_sums) e->stride_column_sums = x[WS_OF_SUMS].device_ld;
  if (!e->residual) return;
  e->ld_residual = x[WS_OF_RESIDUAL].device_ld;
  e->stride_residual = stride_on_device(plan, WS_OF_RESIDUAL, e->stride_residual, plan->p->n);
}

static int64_t n_cols_of(const ws_matrix *x, int64_t n_rows, int64_t n_cols) { return x->trans ? n_rows : n_cols; }

ws_problem ws_offload_whole(const ws_offload_plan *plan, const char *memory, ws_problem *second) {
  ws_problem p = *plan->p;
  move_operand(plan, WS_OF_A, n_cols_of(&p.a, p.m, p.k), memory, &p.a);
  move_operand(plan, WS_OF_B, n_cols_of(&p.b, p.k, p.n), memory, &p.b);
  move_result(plan, memory, &p.c);
  if (p.has_epilogue) move_epilogue(plan, memory, &p.epilogue);
  if (p.c.region == WS_ALL || !p.second) return p;
  /* the same operands, exchanged */
  *second = *p.second;
  move_operand(plan, WS_OF_B, n_cols_of(&second->a, p.m, p.k), memory, &second->a);
  move_operand(plan, WS_OF_A, n_cols_of(&second->b, p.k, p.n), memory, &second->b);
  move_result(plan, memory, &second->c);
  p.second = second;
  return p;
}

ws_system ws_offload_whole_system(const ws_offload_plan *plan, const char *memory) {
  ws_system s = *plan->system;
  const int64_t n = s.is_right ? s.n : s.m;
  move_operand(plan, s.is_right ? WS_OF_B : WS_OF_A, n, memory, &s.a);
  move_operand(plan, s.is_right ? WS_OF_A : WS_OF_B, s.n, memory, &s.b);
  move_result(plan, memory, &s.x);
  return s;
}
