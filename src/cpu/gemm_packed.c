/* gemm_packed.c - large products: B packed once for all workers, A by the worker of its rows.
 *
 * C is processed in blocks: all of k in blocks of kc, inside column blocks of nc. Step s packs the
 * B of block s and multiplies block s - 1, so the packing of the next block fills the gaps at the
 * end of this one. A work item is COARSE_FACTOR neighbouring tiles (bm x bn) of one row of tiles:
 * its worker packs the bm x kc block of A once (it stays in his L2, and stays packed while his next
 * items are in the same row) and sweeps it over the packed B of those tiles, one nr-wide panel (in
 * L1) at a time.
 *
 *      nc                      for each panel of B (nr wide, kc high)      L1
 *    +----+----+               for each panel of A (mr high, kc long)      L2
 *    | B0 | B2 |  kc             one register tile of C
 *    | B1 | B3 |
 *    +----+----+               C of block s is complete before step s + 2 begins: k is summed in order, by whichever worker
 */
#include "core/tile.h"
#include "cpu/macro_kernel.h"
#include "cpu/paths.h"
#include "cpu/queue.h"
#include "cpu/team.h"
#include "cpu/workspace.h"

enum { PANELS_PER_ITEM = 8, ALIGN = 128 };

typedef struct packed_run {
  const ws_problem *p;
  const ws_plan *plan;
  int bytes;
  int64_t n_row_tiles, n_jc, n_pc;
  char *b_packed[2]; /* blocks of B, by turns; one worker alone needs one */
  char *a_packed;    /* one block for each worker */
  int64_t a_stride_bytes;
  int64_t a_holds[WS_MAX_WORKERS]; /* which block of A a worker has packed: see a_key; -1: none */
} packed_run;

/* Block s of the product, in the order of the steps. */
typedef struct block {
  int64_t batch, j0, n, k0, kb;
} block;

static block block_at(const packed_run *run, int64_t s) {
  const ws_problem *p = run->p;
  const int64_t pc = s % run->n_pc, jc = s / run->n_pc % run->n_jc;
  block b;
  b.batch = s / run->n_pc / run->n_jc;
  b.j0 = jc * run->plan->nc;
  b.n = ws_min(run->plan->nc, p->n - b.j0);
  b.k0 = pc * run->plan->kc;
  b.kb = ws_min(run->plan->kc, p->k - b.k0);
  return b;
}

static ws_tile_grid grid_of(const packed_run *run, const block *b) {
  const ws_tile_grid grid = {1, run->n_row_tiles, ws_ceil_div(b->n, run->plan->bn), run->plan->coarse, 1};
  return grid;
}

static int64_t n_blocks(const packed_run *run) { return run->p->batch_count * run->n_jc * run->n_pc; }

static void pack_b(packed_run *run, int64_t s, int64_t item_idx) {
  const ws_problem *p = run->p;
  const ws_ukr_set *ukr = run->plan->row->ukr;
  const block b = block_at(run, s);
  char *out = run->b_packed[s % 2];
  const int64_t j = item_idx * PANELS_PER_ITEM * ukr->nr, n = ws_min(PANELS_PER_ITEM * ukr->nr, b.n - j);
  ukr->pack(n, b.kb, ws_operand_at(&p->b, b.batch, b.k0, b.j0 + j, run->bytes), p->b.ld, !p->b.trans, out + j * b.kb * run->bytes,
            ukr->nr);
}

static const char *packed_a(packed_run *run, int worker, const block *b, int64_t row, int64_t m) {
  const ws_problem *p = run->p;
  const ws_ukr_set *ukr = run->plan->row->ukr;
  char *out = run->a_packed + worker * run->a_stride_bytes;
  const int64_t key = (b->batch * run->n_pc + b->k0 / run->plan->kc) * run->n_row_tiles + row;
  if (run->a_holds[worker] == key) return out;
  ukr->pack(m, b->kb, ws_operand_at(&p->a, b->batch, row * run->plan->bm, b->k0, run->bytes), p->a.ld, p->a.trans, out, ukr->mr);
  run->a_holds[worker] = key;
  return out;
}

static void multiply(packed_run *run, int worker, int64_t s, int64_t item_idx) {
  const ws_problem *p = run->p;
  const ws_plan *plan = run->plan;
  const block b = block_at(run, s);
  const ws_tile_grid grid = grid_of(run, &b);
  const ws_tile t = ws_tile_at(&grid, item_idx);
  const int64_t i = t.row * plan->bm, m = ws_min(plan->bm, p->m - i);
  const int64_t j = t.col * plan->bn, n = ws_min(t.n_col * plan->bn, b.n - j);
  const ws_scale scale = b.k0 == 0 ? ws_scale_first(p) : ws_scale_later(p);
  const char *a = packed_a(run, worker, &b, t.row, m);
  ws_sweep(plan->row->ukr, run->bytes, &scale, b.kb, a, m, run->b_packed[s % 2] + j * b.kb * run->bytes, n,
           ws_c_at(p, b.batch, i, b.j0 + j, run->bytes), p->c.ld);
}

static void begin(void *context, int n_workers) {
  packed_run *run = context;
  for (int w = 0; w < n_workers; w++) run->a_holds[w] = -1;
}

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const packed_run *run = context;
  n_items[WS_ITEM_FIRST] = n_items[WS_ITEM_SECOND] = 0;
  if (step > 0) {
    const block b = block_at(run, step - 1);
    const ws_tile_grid grid = grid_of(run, &b);
    n_items[WS_ITEM_FIRST] = ws_tile_items(&grid);
  }
  if (step < n_blocks(run)) {
    const block b = block_at(run, step);
    n_items[WS_ITEM_SECOND] = ws_ceil_div(ws_ceil_div(b.n, run->plan->row->ukr->nr), PANELS_PER_ITEM);
  }
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  if (kind == WS_ITEM_FIRST)
    multiply(context, worker, step - 1, item_idx);
  else
    pack_b(context, step, item_idx);
}

bool ws_packed_run(const ws_problem *p, const ws_plan *plan) {
  packed_run run;
  run.p = p;
  run.plan = plan;
  run.bytes = ws_types[p->a.type].bytes;
  run.n_row_tiles = ws_ceil_div(p->m, plan->bm);
  run.n_jc = ws_ceil_div(p->n, plan->nc);
  run.n_pc = ws_ceil_div(p->k, plan->kc);
  const int64_t mr = plan->row->mr, nr = plan->row->nr;
  run.a_stride_bytes = ws_ceil_div(ws_ceil_div(ws_min(plan->bm, p->m), mr) * mr * plan->kc * run.bytes, ALIGN) * ALIGN;
  const int64_t b_bytes = ws_ceil_div(ws_ceil_div(ws_min(plan->nc, p->n), nr) * nr * plan->kc * run.bytes, ALIGN) * ALIGN;
  const int n_b = plan->n_threads > 1 && n_blocks(&run) > 1 ? 2 : 1;
  ws_workspace *memory = ws_workspace_get((size_t)(n_b * b_bytes + plan->n_threads * run.a_stride_bytes));
  if (!memory) return false;
  run.a_packed = ws_workspace_data(memory);
  run.b_packed[0] = run.a_packed + plan->n_threads * run.a_stride_bytes;
  run.b_packed[1] = run.b_packed[0] + (n_b - 1) * b_bytes;
  const ws_team_job job = {plan->policy, plan->n_threads, n_blocks(&run) + 1, &run, begin, count, item};
  ws_team_run(&job);
  ws_workspace_put(memory);
  return true;
}
