/* plan.c - how a call on the CPU is divided: path, tile, COARSE_FACTOR, policy, threads. What the
 * handle says counts first, then what tuning has found, then the model, whose numbers carry their
 * origin. Only kc is part of the numerics, and it follows from the row and k. */
#include "cpu/plan.h"
#include "cpu/way.h"
#include "cpu/workspace.h"

#include "core/processors.h"
#include "core/tile.h"
#include "tune/tuning.h"

const char *ws_path_name(ws_path path) {
  static const char *const names[] = {"direct", "vector", "dots", "packed", "half"};
  return names[path];
}

/* WS_WORK_PER_THREAD beside a matrix unit (Sapphire Rapids). */
#define UNIT_WORK_PER_THREAD (128.0 * 128 * 128)
/* Bytes of matrix for each thread of a matrix-vector product. */
#define VECTOR_BYTES_PER_THREAD (256.0 * 1024)
/* Multiply-adds from which a matrix-vector product is worth a kernel of its own. */
#define VECTOR_LEAST 1024.0
/* Elements of C for each thread of a walk over them. */
#define WALK_PER_THREAD (32.0 * 1024)
/* Items for each thread and step: more balance better, fewer cost less. */
enum { ITEMS_PER_THREAD = 8 };
/* Of k, for asking for A some columns ahead: of fewer, most of what is asked for is not needed. */
enum { LEAST_K_OF_ASKING = 96 };
/* Of k, where C takes most of the time. */
enum { SHORT_K = 16 };
/* Columns of C, for packing where C streams through the caches. */
enum { LEAST_STREAMED = 8 };
/* Columns of a queue tile, in panels of nr: at most. */
enum { PANELS_PER_TILE = 4 };
/* Rows or columns of C for each further thread, so that packing one operand for every thread takes little beside the products. */
enum { LEAST_LINES_OF_SHARE = 192 };

static int64_t round_up(int64_t x, int64_t unit) { return ws_ceil_div(x, unit) * unit; }

/* Blocks of nearly equal length, so that none is short; a multiple of 4, the unrolling of the
 * kernels. */
static int64_t k_block(int64_t k, int64_t longest) {
  return k <= longest ? k : round_up(ws_ceil_div(k, ws_ceil_div(k, longest)), 4);
}

/* Asked once for a plan: by default it is a question to the system, of 0.12 us (Zen 5). */
static int limit_of(const ws_call *call, ws_plan *plan) {
  if (plan->thread_limit == 0) plan->thread_limit = ws_thread_limit(call);
  return plan->thread_limit;
}

static int threads_for(const ws_call *call, ws_plan *plan, double work, double work_per_thread) {
  const int tuned = plan->tuned.tuning.threads;
  if (tuned == 1 || (tuned == 0 && work < 2 * work_per_thread)) return 1;
  const int limit = limit_of(call, plan);
  if (tuned > 0) return tuned < limit ? tuned : limit;
  return ws_threads_sharing(limit, work, work_per_thread);
}

double ws_float_products(wsgemm_type type) { return ws_types[type].n_real * ws_types[type].bytes / 4.0; }

/* COARSE_FACTOR that leaves each thread `items`, at most `most`, if neither the handle nor tuning
 * says. */
static int coarse_for(const ws_call *call, const ws_plan *plan, int items, int64_t n_rows, int64_t n_cols, int64_t most) {
  const int forced = (int)call->settings.coarse, n_threads = plan->n_threads;
  if (forced > 0) return forced;
  if (plan->tuned.tuning.coarse > 0) return plan->tuned.tuning.coarse;
  if (n_threads == 1) return (int)most;
  return (int)ws_max(1, ws_min(most, n_rows * n_cols / (n_threads * items)));
}

/* Multiply-adds of floats that take as long as the batch: of a small product, also its end, and rows that do not fill a vector. */
static double work_of_batch(const ws_problem *p, const ws_cpu_row *row, double work) {
  enum { END_OF_PRODUCT = 1000 };
  if (p->batch_count == 1 || !ws_are_small(p, row)) return work;
  const double each = (double)(round_up(p->m, row->ukr->vl) * p->n * p->k) * ws_float_products(p->a.type);
  return (each + END_OF_PRODUCT) * (double)p->batch_count;
}

/* Of a batch of so much work, several small products to an item, each whole; or one, where there are many. Taking an item costs as much
 * as a small product. In whole numbers, which raise no flag. */
static bool takes_whole_products(const ws_problem *p, double work, ws_plan *plan) {
  if (p->batch_count == 1) return false;
  const int64_t share = ws_ceil_div(p->batch_count, plan->n_threads * ITEMS_PER_THREAD), most = INT64_C(1) << 60;
  const int64_t each = (work < (double)most ? (int64_t)work : most) / p->batch_count;
  plan->n_products = ws_max(1, ws_min(share, (int64_t)WS_WORK_PER_THREAD / 2 / ws_max(1, each)));
  return share > 1;
}

/* Of C, bytes from which it comes from far away. L3 is as good as L2 up to a quarter; but not a large one, of many cores (machine.c):
 * Emerald Rapids, FP64: TN 493 x 1840 x 4 0.43 of the best peer to 1.46, NN 691 x 1031 x 11 0.55 to 1.26, NT 1982 x 152 x 8 0.65 to 1.27. */
static double far_c_bytes(void) {
  const ws_machine *machine = ws_machine_get();
  return (double)(machine->l3_bytes > machine->near_l3_bytes ? machine->l2_bytes : machine->l3_bytes / 4);
}

static double bytes_of_c(const ws_problem *p) { return (double)p->m * (double)p->n * ws_types[p->a.type].bytes; }

/* A transposed, k short: panels of A are packed first, and then C is written in long runs. Of TN, B's columns are read again for each
 * panel, which only a C from memory is worth (Zen 5, FP64: 1052 x 3159 x 7 packed 28 GF/s, so 56; 268 x 2557 x 13 102, 95). */
static bool goes_by_columns(const ws_problem *p) {
  const double least = p->b.trans ? (double)ws_machine_get()->l2_bytes / 2 : far_c_bytes();
  return p->a.trans && p->k <= SHORT_K && bytes_of_c(p) > least;
}

/* For each thread, of parts of the long side that each copy the other operand: that takes as long as some lines. */
static int64_t items_with_copies(const ws_problem *p, int n_threads) {
  enum { LINES_OF_COPY = 64 };
  return ws_max(1, ws_min(ITEMS_PER_THREAD, ws_max(p->m, p->n) / LINES_OF_COPY / n_threads));
}

/* Tiles of two vectors alone (AVX2) read A in short pieces, of a page each: packing it once, or going by parts of k, pays sooner. */
static bool reads_short_pieces(const ws_cpu_row *row) { return row->ukr->n_vectors == 2; }

/* Of all of C. */
static bool sums_stay_near(const ws_problem *p) {
  const double bytes = ws_types[p->a.type].bytes * ws_types[p->a.type].n_real;
  return (double)p->m * (double)p->n * bytes <= WS_SUMS_BYTES;
}

/* Of k, of a part; 0: whole tiles.
 *   - Few columns and a far A, which is read in long runs then (Zen 3, 20 shapes of up to 24 columns: FP32 1.23 and FP64 complex 1.35 of whole
 *     tiles; up to 48 columns 1.06 to 1.16 of a packed A; an A of up to 2 MB, which stays near, 0.88 to 1.04).
 *   - A B along its rows, of which a strip takes a part of each cache line: the lines leave L1 before the next strip wants them (24 shapes of 14
 *     to 68 columns, k from 256: s 1.11, d 1.10, c 1.08, z 1.04 of whole tiles; up to 12 columns 0.97). */
static int k_of_part(const ws_problem *p, const ws_cpu_row *row) {
  enum { FEW = 48, FEW_BYTES = 384, OF_FAR_A = 32, OF_PARTIAL_LINES = 64, LEAST_N = 14, MOST_N = 32 };
  if (!reads_short_pieces(row) || p->a.trans) return 0;
  const double bytes = ws_types[p->a.type].bytes, a_bytes = (double)p->m * (double)p->k * bytes;
  if (a_bytes > 4 * (double)ws_machine_get()->l2_bytes)
    return p->n <= FEW && (double)p->n * bytes <= FEW_BYTES && p->k >= LEAST_K_OF_ASKING ? OF_FAR_A : 0;
  const bool has_partial_lines = p->b.trans && p->n >= LEAST_N && p->k >= 4 * OF_PARTIAL_LINES;
  return has_partial_lines && (p->n <= MOST_N || sums_stay_near(p)) ? OF_PARTIAL_LINES : 0;
}

static void plan_direct(const ws_call *call, const ws_problem *p, double work, ws_plan *plan) {
  const ws_cpu_row *row = plan->row;
  plan->path = WS_PATH_DIRECT;
  const double a_bytes = (double)p->m * (double)p->k * ws_types[p->a.type].bytes;
  const double c_bytes = (double)p->m * (double)p->n * ws_types[p->a.type].bytes;
  const double l2_bytes = (double)ws_machine_get()->l2_bytes;
  /* else in place: even 2 KiB apart its columns cost less than packing (measured, Zen 5) */
  plan->pack_a = p->a.trans;
  /* C from memory in long runs, asked for ahead; from L3 both cost more than they bring, as A is read again for each strip (Zen 5, FP64:
   * 1667 x 100 x 5 58 GF/s to 70 without, 300 x 2500 x 9 80 to 98; 1052 x 3159 x 7 47 to 23) */
  const bool is_from_memory = c_bytes > far_c_bytes();
  plan->by_columns =
      plan->pack_a ? !plan->c_by_rows && goes_by_columns(p) : !plan->c_by_rows && a_bytes <= l2_bytes / 2 && is_from_memory;
  plan->asks_for_c = plan->by_columns && is_from_memory;
  plan->k_of_part = !plan->c_by_rows || row->ukr->by_rows[0][0][0] ? k_of_part(p, row) : 0;
  plan->asks_for_a = !plan->pack_a && plan->k_of_part == 0 && a_bytes > l2_bytes / 2 && p->k >= LEAST_K_OF_ASKING;
  work = work_of_batch(p, row, work);
  plan->n_threads = threads_for(call, plan, work, WS_WORK_PER_THREAD);
  if (plan->n_threads == 1) return;
  /* Rows of C beside each other are written by two threads at the end of each column: their caches pass lines to and
   * fro, also those that a prefetch takes (Zen 5, FP64 TN 134 x 1820 x 5 46 GF/s by rows, 93 by columns). */
  const int64_t strip = round_up(ws_ceil_div(p->n, plan->n_threads * ITEMS_PER_THREAD), row->nr);
  const bool is_wide =
      !plan->c_by_rows && p->batch_count == 1 && p->k <= SHORT_K && p->n >= p->m && strip >= PANELS_PER_TILE * row->nr;
  if ((plan->by_columns && !plan->pack_a) || is_wide) {
    plan->bn = strip;
    return;
  }
  if (takes_whole_products(p, work, plan)) return;
  const int64_t tall = row->ukr->n_vectors * row->ukr->vl;
  if (p->m <= tall && p->batch_count == 1) {
    /* One panel: cut by columns; into one strip each if A is too large to be read again for every
     * strip, and into few if it is packed for each. */
    const int64_t items = a_bytes > l2_bytes ? 1 : plan->pack_a ? items_with_copies(p, plan->n_threads) : ITEMS_PER_THREAD;
    const int64_t most = round_up(ws_ceil_div(p->n, plan->n_threads * items), row->nr);
    plan->bn = ws_ceil_div(p->n, ws_ceil_div(p->n, most)); /* no last strip of a column */
    return;
  }
  const int64_t unit = p->m >= 2 * tall && !plan->pack_a ? tall : row->mr;
  plan->bm = round_up(ws_ceil_div(p->m, plan->n_threads * ITEMS_PER_THREAD), unit);
  const int64_t n_rows = ws_ceil_div(p->m, plan->bm) * p->batch_count;
  const int64_t strips = ws_max(1, ws_ceil_div((int64_t)plan->n_threads * ITEMS_PER_THREAD / 2, n_rows));
  plan->bn = round_up(ws_ceil_div(p->n, strips), row->nr);
  plan->coarse = coarse_for(call, plan, ITEMS_PER_THREAD, n_rows, ws_ceil_div(p->n, plan->bn), WS_COARSE_MAX);
}

static void plan_vector(const ws_call *call, const ws_problem *p, double work, ws_plan *plan) {
  plan->path = WS_PATH_VECTOR;
  plan->transposed = p->n != 1;
  const int64_t m = plan->transposed ? p->n : p->m;
  plan->n_threads = threads_for(call, plan, work * ws_types[p->a.type].bytes, VECTOR_BYTES_PER_THREAD);
  plan->bm = plan->n_threads == 1 ? m : ws_max(64, round_up(ws_ceil_div(m, plan->n_threads * ITEMS_PER_THREAD), 64));
  plan->bn = 1;
  plan->coarse = 1;
}

/* The long side of C is cut; into one part for each thread where each copies the short operand, which takes as long as the sums of
 * some lines. */
static void plan_dots(const ws_call *call, const ws_problem *p, double work, ws_plan *plan) {
  plan->path = WS_PATH_DOTS;
  /* from far away in long runs; else both operands' blocks stay in L1 */
  plan->kc = k_block(p->k, (ws_is_far((double)ws_max(p->m, p->n), p) ? WS_DOTS_BLOCKS_FAR : WS_DOTS_BLOCKS) * plan->row->kc);
  plan->n_threads = threads_for(call, plan, work, WS_WORK_PER_THREAD);
  if (plan->n_threads > 1 && takes_whole_products(p, work, plan)) return;
  const int64_t items = ws_dots_have_copies(p) ? items_with_copies(p, plan->n_threads) : ITEMS_PER_THREAD;
  const int64_t n_items = plan->n_threads == 1 ? 1 : plan->n_threads * items;
  if (p->m > p->n)
    plan->bm = round_up(ws_ceil_div(p->m, n_items), WS_DOTS_ROWS);
  else
    plan->bn = round_up(ws_ceil_div(p->n, n_items), plan->row->ukr->dots_n);
}

static bool writes_or_reads_triangle(const ws_problem *p) {
  return p->c.region != WS_ALL || ws_is_triangular((ws_structure)(p->a.structure | p->b.structure));
}

/* Threads share the columns of C, not its rows: each packs all of A, and has itself packed most of the B that it reads, as
 * workers begin with the same columns in both. What another one has packed comes from its caches (Zen 4, two threads, FP64: TT
 * 88 x 649 x 204 84 GF/s to 98, 96 x 418 x 795 87 to 98, larger ones 1.01); where the two have no L3 in common these are far
 * (40 GF/s to 81, 48 to 64, larger ones 1.17). A block has n_cols columns. */
static bool shares_columns(const ws_problem *p, const ws_plan *plan, int64_t n_rows, int64_t n_cols) {
  const int64_t least = n_rows == 1 ? PANELS_PER_TILE * plan->row->nr : LEAST_LINES_OF_SHARE;
  return plan->n_threads > 1 && plan->policy != WSGEMM_POLICY_FIXED_WORK && ws_is_plain(p) && p->n >= p->m &&
         ws_min(p->n, n_cols) >= least * (plan->n_threads - 1);
}

/* Columns of a tile of the packed path: fewer than most where the largest share of a thread gets smaller by them (TN 30 x 143 x
 * 1532 74 GF/s to 93). */
static int64_t packed_strip(const ws_problem *p, const ws_plan *plan) {
  const int64_t nr = plan->row->nr;
  int64_t best = PANELS_PER_TILE * nr, least_share = INT64_MAX;
  if (plan->n_threads == 1) return best;
  for (int64_t width = best; width > 0; width -= nr) {
    const int64_t share = ws_ceil_div(ws_ceil_div(p->n, width), plan->n_threads) * width;
    if (share + share / 32 < least_share) best = width, least_share = share;
  }
  return best;
}

static void plan_packed(const ws_call *call, const ws_problem *p, double work, ws_plan *plan) {
  const ws_cpu_row *row = plan->row;
  const ws_tuning *tuning = &plan->tuned.tuning;
  const ws_machine *machine = ws_machine_get();
  const int bytes = ws_types[p->a.type].bytes;
  plan->path = WS_PATH_PACKED;
  plan->n_threads = threads_for(call, plan, work / (double)p->batch_count, WS_WORK_PER_THREAD);
  /* A block of A fills four tenths of L2; the rest is for B's panels and C on their way through. Few
   * columns are soon done with a block: a small one is still near when it is read (Sapphire Rapids: 64
   * columns 2 to 5 %). */
  const int64_t n_products = !ws_is_plain(p) && p->second ? 2 : 1, row_bytes = n_products * plan->kc * bytes;
  const int64_t tenths = p->n <= WS_FEW_COLUMNS ? 1 : 4;
  const int64_t most_rows = ws_max(row->mr, machine->l2_bytes * tenths / 10 / row_bytes / row->mr * row->mr);
  int64_t n_rows = ws_ceil_div(p->m, most_rows);
  /* Few rows: all of A's k block stays in L2, while a strip of B, read once, is in L1 (Sapphire Rapids, FP64:
   * 64 x 2048 x 2048 with A transposed 62 GF/s to 86, 128 x 2048 x 1000 65 to 92, 512 rows still 2 to 6 %). */
  const bool b_in_place = n_rows == 1 && !p->b.trans && ws_is_plain(p);
  const int64_t l3_cols = machine->near_l3_bytes / 8 / row_bytes;
  plan->own_columns = shares_columns(p, plan, n_rows, b_in_place ? p->n : l3_cols);
  if (plan->n_threads > 1 && p->m >= plan->n_threads * row->mr && !plan->own_columns) n_rows = round_up(n_rows, plan->n_threads);
  plan->bm = round_up(tuning->mc > 0 ? ws_min(tuning->mc, p->m) : ws_ceil_div(p->m, n_rows), row->mr);
  n_rows = ws_ceil_div(p->m, plan->bm);
  plan->bn = n_rows == 1 || plan->own_columns ? packed_strip(p, plan) : PANELS_PER_TILE * row->nr;
  /* Threads share rows: packing all of B takes each of them little beside its products, and nothing then comes from another one's
   * caches (Zen 4, two threads, FP64, m > n: 1.00 to 1.02; where the two have no L3 in common 1.08). */
  const bool b_of_each = plan->n_threads > 1 && ws_is_plain(p) && p->m > p->n &&
                         p->m >= LEAST_LINES_OF_SHARE * (plan->n_threads - 1) && p->n * plan->n_threads <= l3_cols;
  plan->b_source = b_in_place ? WS_B_IN_PLACE : b_of_each ? WS_B_OF_EACH : WS_B_PACKED_ONCE;
  /* An eighth of the near L3 holds the packed B: L3 is shared with other cores and guests, and C and A
   * stream through it. */
  const int64_t most_cols = b_in_place ? p->n : ws_max(plan->bn, l3_cols / plan->bn * plan->bn);
  plan->nc = round_up(tuning->nc > 0 ? ws_min(tuning->nc, p->n) : ws_ceil_div(p->n, ws_ceil_div(p->n, most_cols)), plan->bn);
  /* A step has half of a triangle's items, about. */
  plan->coarse = coarse_for(call, plan, writes_or_reads_triangle(p) ? 2 * ITEMS_PER_THREAD : ITEMS_PER_THREAD, n_rows,
                            ws_ceil_div(ws_min(plan->nc, p->n), plan->bn), plan->own_columns ? 1 : WS_COARSE_MAX);
}

/* Every item converts its own operands, so its sums should be about square; they and the block of A
 * take three tenths of L2 each. Beside a matrix unit packing takes as long as the products: sums of
 * half of L2, and a few large items for each thread (512 x 512 for 288 x 1024 on Sapphire Rapids:
 * 2048 from 440 to 600 GF/s). */
static void plan_half(const ws_call *call, const ws_problem *p, double work, ws_plan *plan) {
  const ws_cpu_row *row = plan->row;
  const int most_tiles = row->unit ? 4 : 8, tenths = row->unit ? 5 : 3, items = row->unit ? 2 : ITEMS_PER_THREAD;
  plan->path = WS_PATH_HALF;
  plan->n_threads = threads_for(call, plan, work, row->unit ? UNIT_WORK_PER_THREAD : WS_WORK_PER_THREAD);
  plan->bn = (int64_t)PANELS_PER_TILE * row->nr;
  const int64_t budget = ws_machine_get()->l2_bytes * tenths / 10 / (int64_t)sizeof(float);
  const int64_t most_rows = ws_max(row->mr, budget / ws_max(plan->kc, most_tiles * plan->bn) / row->mr * row->mr);
  int64_t n_rows = ws_ceil_div(p->m, most_rows);
  if (plan->n_threads > 1 && p->batch_count == 1 && p->m >= plan->n_threads * row->mr) n_rows = round_up(n_rows, plan->n_threads);
  const int mc = plan->tuned.tuning.mc;
  plan->bm = round_up(mc > 0 ? ws_min(mc, p->m) : ws_ceil_div(p->m, n_rows), row->mr);
  n_rows = ws_ceil_div(p->m, plan->bm) * p->batch_count;
  plan->coarse = coarse_for(call, plan, items, n_rows, ws_ceil_div(p->n, plan->bn), most_tiles);
  if (plan->n_threads > 1)
    plan->n_products = ws_max(1, ws_min(ws_ceil_div(p->batch_count, plan->n_threads * ITEMS_PER_THREAD),
                                        (int64_t)(WS_WORK_PER_THREAD / 8 / (work / (double)p->batch_count))));
}

/* C's columns meet in the same sets of the caches, and the product is soon done with a tile (Zen 5, FP32:
 * 1024 x 128 x 10 92 GF/s to 196; of 64 of k the same, 2 KiB apart 0.9 to 1.1). */
static bool columns_meet(const ws_problem *p) {
  enum { SETS_BYTES = 4096, MOST_K = 48, FEW = 64, MOST_K_OF_FEW = 24, LEAST_N = 24 };
  return p->c.ld * ws_types[p->a.type].bytes % SETS_BYTES == 0 && p->n > LEAST_N &&
         p->k <= (p->n <= FEW ? MOST_K_OF_FEW : MOST_K) && bytes_of_c(p) > (double)ws_machine_get()->l2_bytes / 8;
}

/* As of k_of_part, but C is too large for its sums to stay near: packed (Zen 3, 14 shapes of up to 600 rows and columns, k from 160: 1.16 in
 * FP32, 1.15 in FP64, 1.24 and 1.28 in complex of direct; k of 83 to 138 0.7 to 1.1). */
static bool wants_packed_strips(const ws_problem *p, const ws_cpu_row *row) {
  enum { LEAST_N = 33, LEAST_K = 150 };
  return reads_short_pieces(row) && !p->a.trans && p->b.trans && p->n >= LEAST_N && p->k >= LEAST_K && !sums_stay_near(p);
}

/* A C far larger than L2, as of an update in LAPACK's dgetrf: its tiles stream through the cache
 * and take A and B with them, so they are read from far away again and again (Sapphire Rapids:
 * dgetrf of order 4100 1.40 s with all updates direct, 0.62 so). */
static bool c_streams(const ws_problem *p, const ws_cpu_row *row) {
  const double l2_bytes = (double)ws_machine_get()->l2_bytes;
  /* Zen 3, 60 shapes of k up to 64 in all types: packed 1.09 of direct where C has 1.5 to 8 of L2, 1.22 to 2.3 beyond; of less 0.9 to 1.05 */
  if (reads_short_pieces(row)) return p->n > LEAST_STREAMED && bytes_of_c(p) > 1.5 * l2_bytes;
  if (goes_by_columns(p)) return false;
  return (p->k > 16 || p->a.trans) && p->n > 96 && bytes_of_c(p) > 4 * l2_bytes;
}

/* Direct: B is read in place, once for each panel of A, and A packed a panel at a time. The one
 * pays as long as B stays in L2, the other as long as A is not fetched from far away (measured, Zen
 * 5: squares up to 512 floats; 4096 x 16 x 4096 is a quarter faster packed). A transposed A for one
 * column is packed a panel at a time rather than whole: a third less time. A product of few columns
 * is not worth packing A (60 shapes drawn at random, FP32 and FP64, one and two threads,
 * untransposed: 5 to 40 %); of 96 of them it is (Sapphire Rapids, columns 32 KiB apart: 65 to 74). */
static bool direct_pays(const ws_problem *p, const ws_cpu_row *row) {
  const double bytes = ws_types[p->a.type].bytes, l2_bytes = (double)ws_machine_get()->l2_bytes;
  const double a_bytes = (double)p->m * (double)p->k * bytes, b_bytes = (double)p->n * (double)p->k * bytes;
  /* Zen 3, all types: n of 48 and 55, A of 1 to 7 MB packed 1.08 to 1.17 of direct; n of 12 and 24 0.5 to 1.02 */
  const bool has_long_panels = reads_short_pieces(row) && a_bytes > 2 * l2_bytes;
  const bool is_thin =
      k_of_part(p, row) > 0 || (!p->a.trans && p->n <= (p->b.trans || has_long_panels ? 24 : 64) && a_bytes <= 32 * l2_bytes);
  /* Untransposed, panels of A are asked for ahead, and taller; those of two vectors are not (Zen 3, NN 55 x 129 x 597 and
   * 170 x 547 x 531: packed 1.1 to 1.2). */
  const bool pays_sooner = p->a.trans || (reads_short_pieces(row) && p->n >= 96);
  const double most_b_bytes = pays_sooner ? l2_bytes : l2_bytes * 3 / 2;
  const bool stays_near = b_bytes <= most_b_bytes && a_bytes <= 4 * l2_bytes;
  return !columns_meet(p) && (is_thin || (stays_near && !wants_packed_strips(p, row) && !c_streams(p, row)));
}

wsgemm_policy ws_cpu_policy(const ws_call *call, const ws_tuning *tuning) {
  const int forced = (int)call->settings.policy;
  const int policy = forced != WSGEMM_POLICY_AUTO ? forced : tuning->policy;
  return policy == WSGEMM_POLICY_FIXED_WORK || policy == WSGEMM_POLICY_FIXED_BLOCKS ? (wsgemm_policy)policy : WSGEMM_POLICY_STEAL;
}

void ws_plan_walk(const ws_call *call, const ws_problem *p, ws_plan *plan) {
  enum { LONGEST_LINE = 4096, TILE = 16 * 1024 };
  const double n_elements = (double)p->m * (double)p->n * (double)p->batch_count;
  *plan = (ws_plan){.row = ws_row_for(call, p->a.type),
                    .policy = ws_cpu_policy(call, &ws_tuning_of_model),
                    .coarse = 1,
                    .n_products = 1,
                    .tuned = ws_tuned_model()};
  plan->n_threads = threads_for(call, plan, n_elements, WALK_PER_THREAD);
  plan->bm = ws_min(p->m, LONGEST_LINE);
  plan->bn = TILE / plan->bm;
}

static ws_tuning_kind kind_of(const ws_problem *p, int workers) {
  ws_tuning_kind kind = ws_tuning_kind_of(p);
  kind.numerics = WS_NUMERICS_CHAIN, kind.workers = workers;
  return kind;
}

ws_tuning_kind ws_cpu_tuning_kind(const ws_call *call, const ws_problem *p) { return kind_of(p, ws_thread_limit(call)); }

ws_tuned ws_tuned_for_row(const ws_tuned *tuned, const ws_cpu_row *row) {
  return tuned->tuning.row == 0 || ws_row(tuned->tuning.row - 1) == row ? *tuned : ws_tuned_model();
}

/* What is smaller than what a look-up takes is the model's. */
static ws_tuned tuned_for(const ws_call *call, const ws_problem *p, ws_plan *plan, double work) {
  ws_tuned tuned = ws_tuned_model();
  if (p->tuning) {
    tuned = (ws_tuned){*p->tuning, WS_TUNED_BY_SEARCH, true};
  } else if (work * (double)p->batch_count >= WS_TUNE_LEAST_WORK && ws_tune_has_table(WS_TUNE_CPU)) {
    const ws_tuning_kind kind = kind_of(p, limit_of(call, plan));
    const ws_tuning_shape shape = {p->m, p->n, p->k, p->batch_count};
    tuned = ws_tune_find(WS_TUNE_CPU, &kind, &shape);
  }
  return ws_tuned_for_row(&tuned, plan->row);
}

/* ---- a product ------------------------------------------------------------------------------- */

/* Up to so many panels of rows are not worth packing. Of two, a transposed A is packed once, not one panel at a time with all of B in between. A B
 * that lies along its rows takes long to pack (Zen 5, FP64: 46 x 1756 x 446 99 GF/s to 117), which narrow tiles are worth where it is far
 * (Zen 3: 16 x 1430 x 1423 1.1 of direct in FP32, 1.9 in FP64). */
static int64_t few_panels(const ws_problem *p, const ws_cpu_row *row) {
  if (p->a.trans == p->b.trans) return 2;
  if (p->a.trans || wants_packed_strips(p, row)) return 1;
  const double b_bytes = (double)p->n * (double)p->k * ws_types[p->a.type].bytes;
  return reads_short_pieces(row) && b_bytes > 2 * (double)ws_machine_get()->l2_bytes ? 0 : 4;
}

static bool is_direct(const ws_problem *p, const ws_plan *plan) {
  if (plan->tuned.tuning.path != 0) return plan->tuned.tuning.path == WS_TUNING_DIRECT;
  return direct_pays(p, plan->row) || p->m <= few_panels(p, plan->row) * plan->row->mr || (p->n == 1 && p->a.trans) || p->k < 4;
}

void ws_plan_make(const ws_call *call, const ws_problem *given, ws_plan *plan) {
  /* The vector path alone has an order of summing of its own: all others make each element in one
   * chain, cut by kc. */
  const bool invariant = call->settings.invariant;
  /* A row whose elements follow each other fills vectors as a column; the transposed sums of real
   * numbers have the same bits. */
  const bool is_row = invariant && given->m == 1 && given->n > 1 && given->c.ld == 1 && ws_types[given->a.type].n_real == 1 &&
                      !ws_is_half(given->a.type);
  const bool is_vector = !ws_is_half(given->a.type) && (given->n == 1 || given->m == 1) && given->k >= 4 &&
                         (double)given->m * (double)given->n * (double)given->k >= VECTOR_LEAST && !invariant;
  const ws_way way = is_vector || is_row ? WS_WAY_OF_TILES : ws_way_of(call, given, ws_row_for(call, given->a.type));
  const bool has_dots = way == WS_WAY_OF_DOTS;
  plan->c_by_rows = way == WS_WAY_BY_ROWS;
  plan->transposed = is_row || plan->c_by_rows;
  ws_problem transposed;
  if (plan->transposed) ws_transpose_problem(given, &transposed);
  if (plan->c_by_rows) transposed.c.ld = given->c.ld;
  const ws_problem *p = plan->transposed ? &transposed : given;
  const double work = (double)p->m * (double)p->n * (double)p->k;
  plan->row = ws_row_for_work(call, p->a.type, work);
  plan->kc = k_block(p->k, plan->row->kc);
  plan->pack_a = plan->by_columns = plan->asks_for_a = plan->asks_for_c = plan->own_columns = false;
  plan->b_source = WS_B_PACKED_ONCE;
  plan->bm = p->m, plan->bn = p->n, plan->nc = p->n;
  plan->coarse = (int)ws_max(1, (int)call->settings.coarse);
  plan->n_products = 1;
  plan->k_of_part = 0;
  plan->n_threads = 1;
  plan->thread_limit = 0;
  plan->tuned = is_vector || has_dots || plan->c_by_rows ? ws_tuned_model() : tuned_for(call, given, plan, work);
  plan->policy = ws_cpu_policy(call, &plan->tuned.tuning);
  if (ws_is_half(p->a.type))
    plan_half(call, p, work * (double)p->batch_count, plan);
  else if (has_dots)
    plan_dots(call, p, work * ws_float_products(p->a.type) * (double)p->batch_count, plan);
  else if (!plan->c_by_rows && ws_is_small(p, plan->row))
    plan->path = WS_PATH_DIRECT, plan->pack_a = p->a.trans;
  else if (is_vector)
    plan_vector(call, p, work * (double)p->batch_count, plan);
  else if (plan->c_by_rows || is_direct(p, plan))
    plan_direct(call, p, work * ws_float_products(p->a.type) * (double)p->batch_count, plan);
  else
    plan_packed(call, p, work * ws_float_products(p->a.type), plan);
}

/* ---- structure, region ----------------------------------------------------------------------- */

/* Of a triangular operand the blocks are cut between panels of its lines: a panel then has its
 * diagonal in one block (cpu/structured.h). */
static int64_t structured_k_block(const ws_problem *p, const ws_cpu_row *row) {
  const bool of_a = ws_is_triangular((ws_structure)p->a.structure);
  if (!of_a && !ws_is_triangular((ws_structure)p->b.structure)) return k_block(p->k, row->kc);
  const int64_t unit = of_a ? row->mr : row->nr, longest = row->kc / unit * unit;
  return p->k <= longest ? p->k : round_up(ws_ceil_div(p->k, ws_ceil_div(p->k, longest)), unit);
}

/* Both operands stay in L2; less of it where B is read by rows (measured, Sapphire Rapids: squares
 * up to 512 floats, 384 doubles). And C does, about: its columns are not written in long runs
 * (2000 x 2000 x 16 is twice as fast packed). */
static bool stays_in_l2(const ws_problem *p) {
  const double tenth = (double)ws_machine_get()->l2_bytes, bytes = ws_types[p->a.type].bytes * 10;
  const double most = tenth * (p->b.trans ? 4 : 6);
  const double m = (double)p->m, n = (double)p->n, k = (double)p->k;
  return m * k * bytes <= most && n * k * bytes <= most && m * n * bytes <= 15 * tenth;
}

/* Too few lines of C along the structured operand, or in all, to pay for packing the other one
 * (measured, as above: up to half of the time). In place the direct path packs the structured
 * operand for each thread. */
static bool is_thin(const ws_problem *p, int n_threads) {
  enum { FEW = 64, FEW_OF_TRIANGLE = 96 };
  if (p->in_place && n_threads > 1) return false;
  if (p->a.structure != WS_GENERAL) return p->n <= FEW;
  return p->b.structure != WS_GENERAL ? p->m <= FEW : p->n <= FEW_OF_TRIANGLE;
}

/* Parts of C for the direct path: panels, each of which is packed once. In place what the panels
 * share is one worker's, so a part has all of it, and the panels are packed for each part. */
static void plan_parts(const ws_problem *p, ws_plan *plan) {
  const bool of_b = p->b.structure != WS_GENERAL;
  if (p->in_place && of_b)
    plan->bm = round_up(ws_ceil_div(p->m, plan->n_threads), plan->row->mr);
  else if (p->in_place)
    plan->bn = round_up(ws_ceil_div(p->n, plan->n_threads), plan->row->nr);
  else if (of_b)
    plan->bn = plan->row->nr;
  else
    plan->bm = plan->row->mr;
}

void ws_plan_structured(const ws_call *call, const ws_problem *p, ws_plan *plan) {
  const bool has_triangle = writes_or_reads_triangle(p);
  const double products = (double)p->m * (double)p->n * (double)p->k * (p->second ? 2 : 1);
  const double work = products * (has_triangle ? 0.5 : 1) * ws_float_products(p->a.type);
  plan->row = ws_row_for(call, p->a.type);
  plan->path = WS_PATH_DIRECT;
  plan->pack_a = plan->by_columns = plan->asks_for_a = plan->asks_for_c = plan->transposed = plan->c_by_rows = plan->own_columns =
      false;
  plan->b_source = WS_B_PACKED_ONCE;
  plan->bm = p->m, plan->bn = p->n, plan->nc = p->n;
  plan->n_products = 1;
  plan->k_of_part = 0;
  plan->n_threads = 1;
  plan->thread_limit = 0;
  const bool may_be_tuned = p->tuning || products * (double)p->batch_count >= WS_TUNE_LEAST_WORK;
  plan->tuned = may_be_tuned ? tuned_for(call, p, plan, products) : ws_tuned_model();
  plan->kc = structured_k_block(p, plan->row);
  plan->coarse = (int)ws_max(1, (int)call->settings.coarse);
  plan->policy = ws_cpu_policy(call, &plan->tuned.tuning);
  const int n_threads = threads_for(call, plan, work * (double)p->batch_count, WS_WORK_PER_THREAD);
  const int path = plan->tuned.tuning.path;
  if (path != 0 ? path == WS_TUNING_DIRECT : stays_in_l2(p) || is_thin(p, n_threads)) {
    plan->n_threads = n_threads;
    if (n_threads > 1 && p->batch_count < n_threads * ITEMS_PER_THREAD) plan_parts(p, plan);
    return;
  }
  plan_packed(call, p, work, plan);
  if (p->in_place && p->b.structure != WS_GENERAL) { /* whoever has packed a block of rows writes it */
    plan->coarse = (int)ws_ceil_div(plan->nc, plan->bn);
    const int64_t n_items = (int64_t)plan->n_threads * (plan->n_threads > 1 ? ITEMS_PER_THREAD / 2 : 1);
    plan->bm = ws_min(plan->bm, round_up(ws_ceil_div(p->m, n_items), plan->row->mr));
  }
}
