/* gemm_packed.c - large products: B packed once for all workers, or by each; A by the worker of its rows.
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
 *
 * Of few rows a packed B would be read by hardly more tiles than it takes to pack it: there it is
 * read where it is, if its columns are contiguous, and steps only multiply.
 *
 * What one worker has packed and another one reads goes from cache to cache, and back when it is packed
 * again: hundreds of ns a line where the two have no L3 in common. So workers begin with columns of their
 * own in both (plan->own_columns); or, where they share rows, each packs all of B for himself as he
 * comes to it (WS_B_OF_EACH).
 *
 * With a region of C or a triangular operand (cpu/structured.h) a row of tiles has only those items
 * in which there is something to do, and the blocks are taken in the order that lets trmm work in
 * place. Of two products with one C (p->second) a step does both: C is read and written once for a
 * block of k of both. */
#include "core/tile.h"
#include "cpu/macro_kernel.h"
#include "cpu/paths.h"
#include "cpu/queue.h"
#include "cpu/structured.h"
#include "cpu/team.h"
#include "cpu/workspace.h"

enum { PANELS_PER_ITEM = 8, ALIGN = 128 };

typedef struct packed_run {
  const ws_problem *p;
  const ws_plan *plan;
  int bytes;
  int n_products; /* 2: p and p->second, whose blocks lie behind those of p */
  int64_t n_row_tiles, n_jc, n_pc;
  char *b_packed[2];        /* blocks of B, by turns; one worker alone needs one; WS_B_OF_EACH: from [0] on one for each worker */
  char *a_packed;           /* one block for each worker */
  int64_t a_bytes, b_bytes; /* of the blocks of one product */
  int64_t a_holds[WS_MAX_WORKERS]; /* which block of A a worker has packed: see a_key; -1: none */
  int64_t b_holds[WS_MAX_WORKERS]; /* WS_B_OF_EACH: of which step he has B; -1: none */
  bool is_plain, descends;
  int64_t *first_item; /* not plain: by row of tiles, of the step's block; after the last: their number */
} packed_run;

/* Block s of the product, in the order of the steps. */
typedef struct block {
  int64_t batch, j0, n, k0, kb;
} block;

static block block_at(const packed_run *run, int64_t s) {
  const ws_problem *p = run->p;
  int64_t pc = s % run->n_pc, jc = s / run->n_pc % run->n_jc;
  if (run->descends) {
    pc = run->n_pc - 1 - pc;
    if (ws_b_is_triangular(p)) jc = run->n_jc - 1 - jc;
  }
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

/* Items of a row of tiles that there is something to do in: how many, from which strip on. */
static int64_t strips_of(const packed_run *run, const block *b, int64_t row, int64_t *first) {
  const ws_problem *p = run->p;
  const int64_t i = row * run->plan->bm, m = ws_min(run->plan->bm, p->m - i), width = run->plan->coarse * run->plan->bn;
  int64_t begin = 0, end = b->n; /* columns */
  if (p->c.region == WS_UPPER) begin = ws_max(begin, i - b->j0);
  if (p->c.region == WS_LOWER) end = ws_min(end, i + m - b->j0);
  if (ws_a_is_triangular(p)) {
    const ws_k_range k = ws_panel_k(&p->a, false, i, m, b->k0, b->kb);
    if (k.begin >= k.end) end = 0;
  }
  if (ws_b_is_triangular(p)) {
    if (ws_triangle_of(&p->b) == WS_UPPER)
      begin = ws_max(begin, b->k0 - b->j0);
    else
      end = ws_min(end, b->k0 + b->kb - b->j0);
  }
  *first = begin / width;
  return begin < end ? ws_ceil_div(end, width) - *first : 0;
}

/* Numbers the items of a block; how many there are. */
static int64_t number_items(const packed_run *run, const block *b) {
  int64_t n = 0, first;
  for (int64_t row = 0; row < run->n_row_tiles; row++) {
    run->first_item[row] = n;
    n += strips_of(run, b, row, &first);
  }
  return run->first_item[run->n_row_tiles] = n;
}

/* Items in as many groups of strips as there are shares of the queue, about one each; row by row of tiles inside. */
static ws_tile tile_by_columns(const ws_tile_grid *grid, int n_groups, int64_t item_idx) {
  const int64_t n_strips = ws_ceil_div(grid->n_cols, grid->coarse), group = item_idx / grid->n_rows * n_groups / n_strips;
  const int64_t first = ws_ceil_div(group * n_strips, n_groups), n = ws_ceil_div((group + 1) * n_strips, n_groups) - first;
  const int64_t in_group = item_idx - first * grid->n_rows, col = (first + in_group % n) * grid->coarse;
  return (ws_tile){0, in_group / n, col, ws_min(grid->coarse, grid->n_cols - col)};
}

static ws_tile tile_of(const packed_run *run, const block *b, int64_t item_idx) {
  const ws_tile_grid grid = grid_of(run, b);
  if (run->plan->own_columns) return tile_by_columns(&grid, run->plan->n_threads, item_idx);
  if (run->is_plain) return ws_tile_at(&grid, item_idx);
  int64_t low = 0, high = run->n_row_tiles; /* first_item[low] <= item_idx < first_item[high] */
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    if (run->first_item[middle] <= item_idx)
      low = middle;
    else
      high = middle;
  }
  int64_t first;
  strips_of(run, b, low, &first);
  const int64_t col = (first + item_idx - run->first_item[low]) * grid.coarse;
  return (ws_tile){0, low, col, ws_min(grid.coarse, grid.n_cols - col)};
}

static const ws_problem *product(const packed_run *run, int64_t idx) { return idx ? run->p->second : run->p; }

static int64_t n_blocks(const packed_run *run) { return run->p->batch_count * run->n_jc * run->n_pc; }

static int64_t items_of_b(const packed_run *run, const block *b) {
  return ws_ceil_div(ws_ceil_div(b->n, run->plan->row->ukr->nr), PANELS_PER_ITEM);
}

static char *room_of_b(const packed_run *run, int worker, int64_t s) {
  return run->plan->b_source == WS_B_OF_EACH ? run->b_packed[0] + worker * run->b_bytes : run->b_packed[s % 2];
}

static void pack_b(packed_run *run, int worker, int64_t s, int64_t item_of_all) {
  const ws_ukr_set *ukr = run->plan->row->ukr;
  const block b = block_at(run, s);
  const int64_t product_idx = item_of_all / items_of_b(run, &b), item_idx = item_of_all % items_of_b(run, &b);
  const ws_problem *p = product(run, product_idx);
  char *out = room_of_b(run, worker, s) + product_idx * run->b_bytes;
  const int64_t j = item_idx * PANELS_PER_ITEM * ukr->nr, n = ws_min(PANELS_PER_ITEM * ukr->nr, b.n - j);
  const ws_part part = {b.batch, b.j0 + j, n, b.k0, b.kb, true};
  ws_pack_operand(&p->b, &part, ukr->pack, out + j * b.kb * run->bytes, ukr->nr);
}

/* B of block s as panels: by now packed for all, or packed here. */
static const char *packed_b(packed_run *run, int worker, int64_t s) {
  if (run->plan->b_source == WS_B_OF_EACH && run->b_holds[worker] != s) {
    const block b = block_at(run, s);
    for (int64_t i = 0; i < items_of_b(run, &b); i++) pack_b(run, worker, s, i);
    run->b_holds[worker] = s;
  }
  return room_of_b(run, worker, s);
}

static const char *packed_a(packed_run *run, int worker, const block *b, int64_t row, int64_t m) {
  const ws_ukr_set *ukr = run->plan->row->ukr;
  char *out = run->a_packed + worker * run->n_products * run->a_bytes;
  const int64_t key = (b->batch * run->n_pc + b->k0 / run->plan->kc) * run->n_row_tiles + row;
  if (run->a_holds[worker] == key) return out;
  const ws_part part = {b->batch, row * run->plan->bm, m, b->k0, b->kb, false};
  for (int i = 0; i < run->n_products; i++)
    ws_pack_operand(&product(run, i)->a, &part, ukr->pack, out + i * run->a_bytes, ukr->mr);
  run->a_holds[worker] = key;
  return out;
}

/* The block of A that is packed next, if it is that of the next rows, in the order of one worker: few
 * columns leave no time for fetching it later. */
static ws_asked next_of_a(const packed_run *run, const block *b, int64_t row) {
  const ws_problem *p = run->p;
  const bool is_last = row + 1 == run->n_row_tiles;
  const int64_t i = is_last ? 0 : (row + 1) * run->plan->bm, m = ws_min(run->plan->bm, p->m - i);
  const int64_t k0 = is_last ? b->k0 + b->kb : b->k0, kb = ws_min(run->plan->kc, p->k - k0);
  const char *at = ws_operand_at(&p->a, b->batch, i, k0, run->bytes);
  const int64_t run_length = p->a.trans ? kb : m, n_runs = p->a.trans ? m : kb;
  return ws_ask_for(at, run_length * run->bytes, p->a.ld * run->bytes, ws_max(0, n_runs));
}

static void multiply(packed_run *run, int worker, int64_t s, int64_t item_idx) {
  const ws_problem *p = run->p;
  const ws_plan *plan = run->plan;
  const block b = block_at(run, s);
  const ws_tile t = tile_of(run, &b, item_idx);
  const int64_t i = t.row * plan->bm, m = ws_min(plan->bm, p->m - i);
  const int64_t j = t.col * plan->bn, n = ws_min(t.n_col * plan->bn, b.n - j);
  const char *a_panels = packed_a(run, worker, &b, t.row, m);
  const ws_scale scale = b.k0 == 0 ? ws_scale_first(p) : ws_scale_later(p);
  char *c = ws_c_at(p, b.batch, i, b.j0 + j, run->bytes);
  if (plan->b_source == WS_B_IN_PLACE) {
    ws_sweep_in_place(plan->row->ukr, run->bytes, &scale, b.kb, a_panels, m,
                      ws_operand_at(&p->b, b.batch, b.k0, b.j0 + j, run->bytes), p->b.ld, n, c, p->c.ld);
    return;
  }
  const char *b_panels = packed_b(run, worker, s) + j * b.kb * run->bytes;
  if (!run->is_plain) {
    const ws_panels panels = {a_panels, b_panels, run->a_bytes, run->b_bytes};
    ws_sweep_structured(p, plan->row->ukr, b.batch, b.k0, b.kb, &panels, i, m, b.j0 + j, n);
    return;
  }
  ws_asked next = next_of_a(run, &b, t.row);
  ws_sweep(plan->row->ukr, run->bytes, &scale, b.kb, a_panels, m, b_panels, n, c, p->c.ld, p->n <= WS_FEW_COLUMNS ? &next : NULL);
}

/* Whether any column of the block gets anything from its k. */
static bool has_work(const packed_run *run, const block *b) {
  const ws_problem *p = run->p;
  if (!ws_b_is_triangular(p)) return true;
  const ws_k_range k = ws_panel_k(&p->b, true, b->j0, b->n, b->k0, b->kb);
  return k.begin < k.end;
}

static void begin(void *context, int n_workers) {
  packed_run *run = context;
  for (int w = 0; w < n_workers; w++) run->a_holds[w] = run->b_holds[w] = -1;
}

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const packed_run *run = context;
  n_items[WS_ITEM_FIRST] = n_items[WS_ITEM_SECOND] = 0;
  if (step > 0) {
    const block b = block_at(run, step - 1);
    const ws_tile_grid grid = grid_of(run, &b);
    n_items[WS_ITEM_FIRST] = run->is_plain ? ws_tile_items(&grid) : number_items(run, &b);
  }
  if (step < n_blocks(run) && run->plan->b_source == WS_B_PACKED_ONCE) {
    const block b = block_at(run, step);
    if (has_work(run, &b)) n_items[WS_ITEM_SECOND] = run->n_products * items_of_b(run, &b);
  }
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  if (kind == WS_ITEM_FIRST)
    multiply(context, worker, step - 1, item_idx);
  else
    pack_b(context, worker, step, item_idx);
}

bool ws_packed_run(const ws_problem *p, const ws_plan *plan) {
  packed_run run;
  run.p = p;
  run.plan = plan;
  run.bytes = ws_types[p->a.type].bytes;
  run.is_plain = ws_is_plain(p);
  run.descends = ws_k_descends(p);
  run.n_products = !run.is_plain && p->second ? 2 : 1;
  run.n_row_tiles = ws_ceil_div(p->m, plan->bm);
  run.n_jc = ws_ceil_div(p->n, plan->nc);
  run.n_pc = ws_ceil_div(p->k, plan->kc);
  const int64_t mr = plan->row->mr, nr = plan->row->nr;
  run.a_bytes = ws_ceil_div(ws_ceil_div(ws_min(plan->bm, p->m), mr) * mr * plan->kc * run.bytes, ALIGN) * ALIGN;
  run.b_bytes = ws_ceil_div(ws_ceil_div(ws_min(plan->nc, p->n), nr) * nr * plan->kc * run.bytes, ALIGN) * ALIGN;
  if (plan->b_source == WS_B_IN_PLACE) run.b_bytes = 0;
  const int64_t a_bytes = plan->n_threads * run.n_products * run.a_bytes, b_bytes = run.n_products * run.b_bytes;
  const int n_b = plan->b_source == WS_B_OF_EACH ? plan->n_threads : plan->n_threads > 1 && n_blocks(&run) > 1 ? 2 : 1;
  const int64_t first_item_bytes = run.is_plain ? 0 : (run.n_row_tiles + 1) * (int64_t)sizeof *run.first_item;
  ws_workspace *memory = ws_workspace_get((size_t)(a_bytes + n_b * b_bytes + first_item_bytes));
  if (!memory) return false;
  run.a_packed = ws_workspace_data(memory);
  run.b_packed[0] = run.a_packed + a_bytes;
  run.b_packed[1] = run.b_packed[0] + (n_b - 1) * b_bytes;
  run.first_item = (int64_t *)(void *)(run.b_packed[0] + n_b * b_bytes);
  const ws_team_job job = {plan->policy, plan->n_threads, n_blocks(&run) + 1, &run, begin, count, item};
  ws_team_run(&job);
  ws_workspace_put(memory);
  return true;
}
