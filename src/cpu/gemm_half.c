/* gemm_half.c - half precision: products of FP32 copies, made a block at a time by the worker of
 * it.
 *
 * A work item is COARSE_FACTOR neighbouring tiles (bm x bn) of one row of tiles, and all of k. Its
 * worker keeps their sums in FP32 and walks along k in blocks of kc: it converts the bm x kc block
 * of A once, into packed panels, and for each tile the kc x bn block of B, and multiplies them with
 * the kernels of s; or packs the halves as they are, for a row with a matrix unit. At the end
 * alpha, beta, the epilogue and the one rounding turn the sums into C.
 *
 *            bn    bn                     memory of a worker, in floats:
 *          +-----+-----+  kc                a: panels of mr, bm x kc        L2
 *          | B   | B'  |                    b: panels of nr, kc x bn        a panel of nr in L1
 *    +---+ +-----+-----+                    sums: bm x (coarse bn)          L2
 *    | A | |   sums    |  bm
 *    +---+ +-----------+                  kc
 *
 * Nothing is shared, and each sum is made in the same order whoever makes it: kc alone decides
 * where it is cut. Items that need little memory, and all items when there is none to be had, keep
 * it on the stack: as much of it as they need, as a thread may have little. */
#include <string.h>

#include "core/tile.h"
#include "cpu/epilogue.h"
#include "cpu/macro_kernel.h"
#include "cpu/paths.h"
#include "cpu/queue.h"
#include "cpu/room.h"
#include "cpu/team.h"
#include "cpu/workspace.h"

/* ROOM_FLOATS holds one register tile with the longest kc, of every row; STACK_FLOATS goes to the caller's stack. */
enum {
  ROOM_FLOATS = WS_ROOM_BYTES / sizeof(float),
  STACK_FLOATS = 3072,
  ALIGN_FLOATS = 32,
  STACK_ALIGN_BITS = 64 * 8,
  K_STRIP = 32,
  WIDEST_PANEL = 32
};

#define WS_CPU_ROW(t, isa, mr, nr, kc)                                                                           \
  _Static_assert(((mr) + (nr)) * (kc) + (mr) * (nr) + 3 * ALIGN_FLOATS <= ROOM_FLOATS && (mr) <= WIDEST_PANEL && \
                     (nr) <= WIDEST_PANEL,                                                                       \
                 "the least that a row needs must fit on the stack");
#define WS_CPU_ROWS_AVX512
#define WS_CPU_ROWS_AVX2
#define WS_CPU_ROWS_NEON
#define WS_CPU_ROWS_REF
#include "cpu/kernels/kernels.def"
#undef WS_CPU_ROW

#define WS_CPU_ROW(t, isa, mr, nr, kc)                                                            \
  _Static_assert((((mr) + (nr)) * (kc + 64)) / 2 + (mr) * (nr) + 3 * ALIGN_FLOATS <= ROOM_FLOATS, \
                 "the same for panels of halves");
#undef WS_CPU_ROWS_AVX512
#undef WS_CPU_ROWS_AVX2
#undef WS_CPU_ROWS_NEON
#undef WS_CPU_ROWS_REF
#define WS_CPU_ROWS_AMX
#include "cpu/kernels/kernels.def"
#undef WS_CPU_ROW

typedef struct half_run {
  const ws_problem *p;
  const ws_plan *plan;
  ws_tile_grid grid;
  int64_t a_floats, b_floats, n_floats; /* of a worker: A, B, and all of it */
  float *memory;                        /* of all workers; NULL: theirs is on the stack */
} half_run;

static int64_t round_up(int64_t x, int64_t unit) { return ws_ceil_div(x, unit) * unit; }

/* As ws_pack_fn, from halves to floats: a few k at a time, so that a line of `in` is used up while
 * it is in the cache. */
static void pack_floats(const half_run *run, int64_t n, int64_t k, const char *in, int64_t ld, bool k_contiguous, float *out,
                        int64_t width) {
  const ws_cpu_row *row = run->plan->row;
  ws_widen_fn *widen = row->convert->widen[run->p->a.type];
  const uint16_t *halves = (const uint16_t *)(const void *)in;
  float strip[WIDEST_PANEL * K_STRIP];
  for (int64_t p = 0; p < k; p += K_STRIP) {
    const int64_t k_strip = ws_min(K_STRIP, k - p);
    for (int64_t r = 0; r < n; r += width) {
      const int64_t w = ws_min(width, n - r);
      float *panel = out + r * k + p * width;
      if (!k_contiguous) {
        widen(w, k_strip, halves + r + p * ld, ld, panel, width);
      } else {
        widen(k_strip, w, halves + p + r * ld, ld, strip, K_STRIP);
        row->ukr->pack(w, k_strip, strip, K_STRIP, true, panel, width);
      }
    }
  }
}

static void pack_a(const half_run *run, int64_t m, int64_t k, const char *in, float *out) {
  const ws_problem *p = run->p;
  const ws_cpu_row *row = run->plan->row;
  if (row->unit)
    row->unit->pack_a(m, k, (const uint16_t *)(const void *)in, p->a.ld, p->a.trans, out);
  else
    pack_floats(run, m, k, in, p->a.ld, p->a.trans, out, row->mr);
}

static void pack_b(const half_run *run, int64_t n, int64_t k, const char *in, float *out) {
  const ws_problem *p = run->p;
  const ws_cpu_row *row = run->plan->row;
  if (row->unit)
    row->unit->pack_b(n, k, (const uint16_t *)(const void *)in, p->b.ld, !p->b.trans, out);
  else
    pack_floats(run, n, k, in, p->b.ld, !p->b.trans, out, row->nr);
}

/* sums = A B, or += if `adds`, for packed operands. */
static void add_product(const ws_cpu_row *row, int64_t k, const float *a, int64_t m, const float *b, int64_t n, float *sums,
                        int64_t ld_sums, bool adds) {
  if (row->unit) {
    row->unit->sweep(k, a, m, b, n, sums, ld_sums, adds);
    return;
  }
  const ws_scale scale = {.alpha = {.s = {1}},
                          .beta = {.s = {adds}},
                          .alpha_one = true,
                          .beta_one = adds,
                          .beta_zero = !adds,
                          .alpha_real = true,
                          .beta_real = true};
  ws_sweep(row->ukr, sizeof(float), &scale, k, (const char *)a, m, (const char *)b, n, (char *)sums, ld_sums, NULL);
}

/* c = alpha sums + beta c, in FP32. */
static void scale_sums(const ws_scale *scale, int64_t m, int64_t n, const float *sums, int64_t ld_sums, float *c, int64_t ldc) {
  const float alpha = scale->alpha.s[0], beta = scale->beta.s[0];
  for (int64_t j = 0; j < n; j++, sums += ld_sums, c += ldc)
    if (scale->beta_zero)
      for (int64_t i = 0; i < m; i++) c[i] = alpha * sums[i];
    else
      for (int64_t i = 0; i < m; i++) c[i] = alpha * sums[i] + beta * c[i];
}

static void copy_lines(int64_t m, int64_t n, const float *in, int64_t ld_in, float *out, int64_t ld_out) {
  for (int64_t j = 0; j < n; j++) memcpy(out + j * ld_out, in + j * ld_in, (size_t)m * sizeof *out);
}

/* C = alpha sums + beta C and what the epilogue makes of it, rounded once, for the m x n elements
 * from (i, j) on: a few columns, or a part of a long one, at a time. */
static void finish(const half_run *run, int64_t batch, int64_t i_first, int64_t m, int64_t j_first, int64_t n, const float *sums,
                   int64_t ld_sums) {
  enum { MOST = 512 };
  const ws_problem *p = run->p;
  const ws_cpu_row *row = run->plan->row;
  const ws_convert_set *convert = row->convert;
  const int64_t ldc = p->c.ld;
  char *c_first = ws_c_at(p, batch, i_first, j_first, ws_types[p->c.type].bytes);
  const bool is_half = ws_is_half(p->c.type);
  if (!is_half && !p->has_epilogue) {
    scale_sums(&p->scale, m, n, sums, ld_sums, (float *)(void *)c_first, ldc);
    return;
  }
  float x[MOST];
  const int64_t n_rows = ws_min(m, MOST), n_cols = MOST / n_rows;
  for (int64_t j = 0; j < n; j += n_cols)
    for (int64_t i = 0; i < m; i += n_rows) {
      const int64_t rows = ws_min(n_rows, m - i), cols = ws_min(n_cols, n - j);
      uint16_t *c = (uint16_t *)(void *)c_first + i + j * ldc;
      /* the one or the other, as C's type is */
      float *c_floats = (float *)(void *)c_first + i + j * ldc;
      if (!p->scale.beta_zero) {
        if (is_half)
          convert->widen[p->c.type](rows, cols, c, ldc, x, n_rows);
        else
          copy_lines(rows, cols, c_floats, ldc, x, n_rows);
      }
      scale_sums(&p->scale, rows, cols, sums + i + j * ld_sums, ld_sums, x, n_rows);
      if (p->has_epilogue) ws_epilogue_apply(p, row, batch, i_first + i, j_first + j, rows, cols, x, n_rows);
      if (is_half)
        convert->narrow[p->c.type](rows, cols, x, n_rows, c, ldc);
      else
        copy_lines(rows, cols, x, n_rows, c_floats, ldc);
    }
}

/* The m x n elements of C from (i, j) on, with `memory` for their operands and sums. */
static void multiply(const half_run *run, float *memory, int64_t batch, int64_t i, int64_t m, int64_t j, int64_t n) {
  const ws_problem *p = run->p;
  const ws_plan *plan = run->plan;
  const ws_cpu_row *row = plan->row;
  const int bytes = ws_types[p->a.type].bytes;
  float *a = memory, *b = a + run->a_floats, *sums = b + run->b_floats;
  const int64_t ld_sums = round_up(m, row->mr);
  for (int64_t k0 = 0; k0 < p->k; k0 += plan->kc) {
    const int64_t kb = ws_min(plan->kc, p->k - k0);
    pack_a(run, m, kb, ws_operand_at(&p->a, batch, i, k0, bytes), a);
    for (int64_t at = 0; at < n; at += plan->bn) {
      const int64_t n_tile = ws_min(plan->bn, n - at);
      pack_b(run, n_tile, kb, ws_operand_at(&p->b, batch, k0, j + at, bytes), b);
      add_product(row, kb, a, m, b, n_tile, sums + at * ld_sums, ld_sums, k0 > 0);
    }
  }
  finish(run, batch, i, m, j, n, sums, ld_sums);
}

static void multiply_tiles(const half_run *run, float *memory, int64_t item_idx) {
  const ws_problem *p = run->p;
  const ws_plan *plan = run->plan;
  const ws_tile t = ws_tile_at(&run->grid, item_idx);
  const int64_t i = t.row * plan->bm, m = ws_min(plan->bm, p->m - i);
  const int64_t j = t.col * plan->bn, n = ws_min(t.n_col * plan->bn, p->n - j);
  const int64_t last = ws_min(p->batch_count, (t.batch + 1) * plan->n_products);
  for (int64_t batch = t.batch * plan->n_products; batch < last; batch++) multiply(run, memory, batch, i, m, j, n);
}

static __attribute__((noinline)) void item_on_stack(const half_run *run, int64_t item_idx) {
  multiply_tiles(run, __builtin_alloca_with_align((size_t)run->n_floats * sizeof(float), STACK_ALIGN_BITS), item_idx);
}

static void item_in_room(const half_run *run, int64_t item_idx) {
  const ws_room room = ws_room_take((size_t)run->n_floats * sizeof(float));
  multiply_tiles(run, (float *)(void *)room.at, item_idx);
  ws_room_give(&room);
}

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const half_run *run = context;
  (void)step;
  n_items[0] = ws_tile_items(&run->grid);
  n_items[1] = 0;
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  const half_run *run = context;
  const ws_matrix_unit *unit = run->plan->row->unit;
  (void)step, (void)kind;
  if (unit) unit->begin();
  if (run->memory)
    multiply_tiles(run, run->memory + worker * run->n_floats, item_idx);
  else if (run->n_floats <= STACK_FLOATS)
    item_on_stack(run, item_idx);
  else
    item_in_room(run, item_idx);
  if (unit) unit->end();
}

/* Floats that the packed panels of n lines over a block of k take. */
static int64_t panels_floats(const ws_cpu_row *row, int64_t n, int64_t width, int64_t k) {
  const int64_t floats =
      row->unit ? ws_ceil_div(n, width) * row->unit->panel_bytes(k) / (int64_t)sizeof(float) : round_up(n, width) * k;
  return round_up(floats, ALIGN_FLOATS);
}

static half_run run_of(const ws_problem *p, const ws_plan *plan) {
  const ws_cpu_row *row = plan->row;
  half_run run = {.p = p, .plan = plan};
  run.grid = (ws_tile_grid){ws_ceil_div(p->batch_count, plan->n_products), ws_ceil_div(p->m, plan->bm),
                            ws_ceil_div(p->n, plan->bn), plan->coarse, 1};
  const int64_t m = ws_min(plan->bm, p->m), n = ws_min(plan->coarse * plan->bn, p->n);
  run.a_floats = panels_floats(row, m, row->mr, plan->kc);
  run.b_floats = panels_floats(row, ws_min(plan->bn, p->n), row->nr, plan->kc);
  const int64_t sums_floats = round_up(m, row->mr) * (row->unit ? round_up(n, row->nr) : n);
  run.n_floats = run.a_floats + run.b_floats + round_up(sums_floats, ALIGN_FLOATS);
  return run;
}

void ws_half_run(const ws_problem *p, const ws_plan *plan) {
  /* Small products neither lock nor allocate: on the stack a register tile at a time, even if that
   * converts operands twice. */
  enum { SMALL = 48 * 48 * 48 };
  half_run run = run_of(p, plan);
  ws_workspace *workspace = NULL;
  ws_plan frugal = *plan;
  frugal.n_threads = 1;
  if (run.n_floats > STACK_FLOATS && p->m * p->n * p->k <= SMALL) {
    frugal.bm = plan->row->mr, frugal.bn = plan->row->nr, frugal.coarse = 1;
    run = run_of(p, &frugal);
  }
  if (run.n_floats > STACK_FLOATS) {
    workspace = ws_workspace_get((size_t)(plan->n_threads * run.n_floats) * sizeof(float));
    if (!workspace) { /* then for one worker; then in the room, a register tile at a time */
      run.plan = &frugal;
      workspace = ws_workspace_get((size_t)run.n_floats * sizeof(float));
    }
    if (workspace) {
      run.memory = ws_workspace_data(workspace);
    } else {
      frugal.bm = plan->row->mr, frugal.bn = plan->row->nr, frugal.coarse = 1, frugal.n_products = 1;
      run = run_of(p, &frugal);
    }
  }
  if (run.plan->n_threads == 1) {
    for (int64_t i = 0; i < ws_tile_items(&run.grid); i++) item(&run, 0, 0, 0, i);
  } else {
    const ws_team_job job = {plan->policy, plan->n_threads, 1, &run, NULL, count, item};
    ws_team_run(&job);
  }
  if (workspace) ws_workspace_put(workspace);
}
