/* test_backend_small.c - batches of small products on cc 9.0: what the rows of small.def are told, and which
 * products they get; seen by a fake driver. */
#define _GNU_SOURCE
#include "fake_calls.h"

#include <stdio.h>
#include <string.h>

#include "core/problem.h"
#include "cuda/rows/small_rows.h"

enum { MOST = 64, BATCH = 50 };

static wsgemm_gemm_desc batch_desc(wsgemm_type type, int ops, int64_t m, int64_t n, int64_t k, int64_t count) {
  wsgemm_gemm_desc d = ops_desc(type, ops, m, n, k);
  d.batch_count = count, d.stride_a = m * k, d.stride_b = k * n, d.stride_c = m * n;
  return d;
}

static bool is_small(const fake_launch *l) { return is_of(l, "small"); }

/* The grid and the words of a launch by this row. */
static void check_launch(wsgemm_handle *h, const ws_cuda_row *row, const wsgemm_gemm_desc *d, int ops) {
  static const char *const entries[] = {"nn", "nt", "tn", "tt"};
  const fake_launch *l = launch_of(h, d);
  const long long n_items = l->args.sched.n_items, n_together = explained_number(h, d, "matrices_per_item", 0);
  CHECK(row_of(l) == row && strcmp(l->entry, entries[ops]) == 0, "%s, entry %s, not %s", l->kernel, l->entry, row->name);
  CHECK(l->block[0] % 32 == 0 && (int)l->block[0] <= row->n_threads && (int)l->shared_bytes <= row->shared_bytes,
        "%s: %u threads, %u bytes", row->name, l->block[0], l->shared_bytes);
  CHECK(l->grid[0] >= 1 && l->grid[0] <= n_items && !l->is_cooperative && l->cluster == 1, "%s: %u blocks", row->name,
        l->grid[0]);
  CHECK(explained_number(h, d, "items", 0) == n_items && n_items * n_together >= d->batch_count &&
            (n_items - 1) * n_together < d->batch_count,
        "%s: %lld items of %lld matrices", row->name, n_items, n_together);
}

/* However the operands lie; the item's matrices may be others. */
CHILD_CASE(launches) {
  (void)unused;
  int n_seen = 0;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->kind != WS_ROW_SMALL) continue;
    wsgemm_handle *h = handle_of_row(row);
    for (int ops = 0; ops < 4; ops++)
      for (int turn = 0; turn < 8; turn++) {
        const int64_t size = turn & 1 ? 8 : 5;
        wsgemm_gemm_desc d = batch_desc(row->type, ops, size, size + (turn & 1 ? 0 : 2), size, BATCH);
        if (turn & 2) d.lda++, d.ldb += 3, d.stride_a += 30, d.stride_b += 50;
        if (turn & 4) d.stride_a = 0;
        check_launch(h, row, &d, ops);
      }
    n_seen++;
    wsgemm_destroy(h);
  }
  CHECK(n_seen >= 10, "%d rows", n_seen);
}

/* ---- shared memory ------------------------------------------------------------------------------- */

/* What of the batch's memory stands at each byte of one operand's part of a stage, once the block's threads have copied an item as
 * small_load.cuh does it. */
enum { NOTHING = -1, ZERO = -2, MOST_STAGE = 160 * 1024 };
static int64_t source_at[MOST_STAGE];

struct operand {
  const char *name;
  const void *data;
  int64_t ld, stride, size, k; /* of elements; size: m or n */
  int bytes, room;             /* of an element; of its part of a stage */
  bool along_k;
  const ws_small_operand *copies;
};

static int64_t address_of(const struct operand *x, int64_t matrix, int64_t i, int64_t k) {
  return (matrix * x->stride + (x->along_k ? i * x->ld + k : k * x->ld + i)) * x->bytes;
}

static void put(const struct operand *x, int64_t at, int64_t source, int64_t n_bytes) {
  REQUIRE(at >= 0 && at + n_bytes <= x->room && x->room <= MOST_STAGE, "%s: %lld bytes at %lld of %d", x->name,
          (long long)n_bytes, (long long)at, x->room);
  for (int64_t b = 0; b < n_bytes; b++) {
    REQUIRE(source_at[at + b] == NOTHING, "%s: byte %lld is written twice", x->name, (long long)(at + b));
    source_at[at + b] = source == ZERO ? ZERO : source + b;
  }
}

/* n matrices from number first on, by one bulk copy from a multiple of 16 bytes on, whose end is a copy of its own. */
static int copy_raw(const struct operand *x, int64_t first, int64_t n) {
  const int64_t from = first * x->copies->step_matrix, before = ((intptr_t)x->data + from) & 15;
  const int64_t n_bytes = before + n * x->copies->matrix;
  CHECK((intptr_t)x->data % 16 == 0 && n_bytes <= n * x->copies->matrix + 15, "%s: begins late", x->name);
  put(x, 0, from - before, (n_bytes + 15) / 16 * 16);
  return (int)before;
}

static void copy_by_threads(const struct operand *x, int64_t first, int64_t n, int n_threads, bool fills) {
  const ws_small_operand *op = x->copies;
  CHECK((int)op->by_pieces.d == op->n_pieces && (int)op->by_lines.d == op->lines_apart, "%s: divisors", x->name);
  for (int thread = 0; thread < n_threads; thread++) {
    const int number = thread / op->n_pieces, at = thread % op->n_pieces * op->unit;
    const int matrix = number / op->lines_apart, line = number % op->lines_apart;
    if (matrix >= op->matrices_apart) continue;
    for (int64_t g = matrix; g < n; g += op->matrices_apart)
      for (int64_t l = line; l < op->n_filled; l += op->lines_apart) {
        const int64_t from = (first + g) * op->step_matrix + l * op->step_line + at, to = g * op->matrix + l * op->pitch + at;
        const bool exists = at < op->line_bytes && l < op->n_lines;
        CHECK(exists || fills, "%s: zeros", x->name);
        CHECK(!exists || (at + op->unit <= op->line_bytes && ((intptr_t)x->data + from) % op->unit == 0 && to % op->unit == 0),
              "%s: a piece of %d bytes", x->name, op->unit);
        put(x, to, exists ? from : ZERO, op->unit);
      }
  }
}

/* An item of n matrices: each element of all stands where its thread looks for it, zeros follow k up to whole steps, and the vectors
 * that are read in part are in the operand's room. */
static void check_item(const struct operand *x, int64_t first, int64_t n, int n_threads, bool by_warp, int vec) {
  const ws_small_operand *op = x->copies;
  for (int i = 0; i < x->room; i++) source_at[i] = NOTHING;
  int before = 0;
  if (op->is_raw)
    before = copy_raw(x, first, n);
  else
    copy_by_threads(x, first, n, n_threads, by_warp);
  const int64_t n_k = by_warp && !op->is_raw ? (x->k + WS_SMALL_MMA_K - 1) / WS_SMALL_MMA_K * WS_SMALL_MMA_K : x->k;
  for (int64_t g = 0; g < n; g++)
    for (int64_t k = 0; k < n_k; k++)
      for (int64_t i = 0; i < x->size; i++) {
        const int64_t at = before + g * op->matrix + (x->along_k ? i * op->pitch + k * x->bytes : k * op->pitch + i * x->bytes);
        REQUIRE(at + x->bytes <= x->room, "%s: element %lld, %lld of %lld", x->name, (long long)i, (long long)k, (long long)g);
        for (int b = 0; b < x->bytes; b++)
          if (k < x->k)
            REQUIRE(source_at[at + b] == address_of(x, first + g, i, k) + b, "%s: element %lld, %lld of matrix %lld", x->name,
                    (long long)i, (long long)k, (long long)(first + g));
          else
            REQUIRE(source_at[at + b] == ZERO, "%s: no zero", x->name);
      }
  const int64_t last_vector = (x->size - 1) / vec * vec + vec;
  if (!x->along_k)
    CHECK(before + (n - 1) * op->matrix + (n_k - 1) * op->pitch + last_vector * x->bytes <= x->room, "%s: vectors beyond",
          x->name);
}

/* The call's items, the first and the last of them, by one row. */
static void check_memory(const ws_cuda_row *row, const wsgemm_gemm_desc *d, const fake_launch *l) {
  const ws_small_args *args = &l->small;
  const bool trans_a = op_transposes(d->transa), trans_b = op_transposes(d->transb), by_warp = !row->is_fma;
  const int bytes = (int)type_bytes(d->type_a), n_threads = (int)l->block[0], owner = by_warp ? 32 : 1;
  const struct operand a = {"A", d->a, d->lda, d->stride_a, d->m, d->k, bytes, args->b_at, trans_a, &args->a};
  const struct operand b = {"B", d->b, d->ldb, d->stride_b, d->n, d->k, bytes, args->stage - args->b_at, !trans_b, &args->b};
  const struct operand *both[] = {&a, &b};
  CHECK(args->n_together * args->tiles_m * args->tiles_n * owner <= n_threads && args->tiles_m * row->bm >= d->m &&
            args->tiles_n * row->bn >= d->n,
        "%s: %d x %d tiles of %d matrices, %d threads", row->name, args->tiles_m, args->tiles_n, args->n_together, n_threads);
  CHECK((int)args->by_tiles.d == args->tiles_m * args->tiles_n && (int)args->by_tiles_m.d == args->tiles_m, "%s: divisors",
        row->name);
  CHECK(args->b_at % 16 == 0 && args->stage % 16 == 0 && WS_SMALL_STAGES * args->stage <= (int)l->shared_bytes, "%s: %d bytes",
        row->name, args->stage);
  CHECK(args->n_batch == d->batch_count, "%s: %d matrices", row->name, args->n_batch);
  const int64_t last = (d->batch_count - 1) / args->n_together * args->n_together;
  const int vec = by_warp ? 8 : type_is_half(d->type_a) ? 4 : 16 / bytes;
  for (int i = 0; i < 2; i++) {
    const ws_small_operand *op = both[i]->copies;
    CHECK(!args->by_vectors || (!op->is_raw && op->pitch % (vec * bytes) == 0 && op->matrix % (vec * bytes) == 0),
          "%s: vectors at %d, %d", row->name, op->pitch, op->matrix);
    check_item(both[i], 0, ws_min(args->n_together, d->batch_count), n_threads, by_warp, vec);
    check_item(both[i], last, d->batch_count - last, n_threads, by_warp, vec);
  }
}

static wsgemm_gemm_desc drawn_batch(wsgemm_type type, struct check_random *random) {
  enum { BYTES = 4 << 20 };
  const int most = check_random_in(random, 0, 2) ? 16 : MOST;
  const int64_t m = check_random_in(random, 1, most), n = check_random_in(random, 1, most), k = check_random_in(random, 1, most);
  wsgemm_gemm_desc d = batch_desc(type, (int)check_random_in(random, 0, 3), m, n, k, check_random_in(random, 1, 1500));
  const bool is_padded = check_random_in(random, 0, 1);
  if (is_padded) d.lda += check_random_in(random, 0, 9), d.ldb += check_random_in(random, 0, 9);
  const int64_t lines_a = op_transposes(d.transa) ? m : k, lines_b = op_transposes(d.transb) ? k : n;
  d.stride_a = d.lda * lines_a, d.stride_b = d.ldb * lines_b;
  if (is_padded) d.stride_a += check_random_in(random, 0, 5), d.stride_b += check_random_in(random, 0, 5);
  const int64_t bytes = (int64_t)type_bytes(type), longest = ws_max(d.stride_a, ws_max(d.stride_b, d.stride_c)) * bytes;
  if (check_random_in(random, 0, 3) == 0) d.a = (const char *)d.a + bytes, d.b = (const char *)d.b + 3 * bytes;
  d.batch_count = ws_min(d.batch_count, BYTES / longest - 1);
  return d;
}

CHILD_CASE(memory) {
  (void)unused;
  enum { DRAWS = 150 };
  int n_raw = 0, n_together = 0;
  struct check_random random = check_random_from(31);
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int r = 0; r < n_all_gpu_rows; r++) {
    const ws_cuda_row *row = &gpu_rows[r];
    if (row->kind != WS_ROW_SMALL) continue;
    wsgemm_handle *h = handle_of_row(row);
    for (int i = 0; i < DRAWS / check_scale() + 1; i++) {
      const wsgemm_gemm_desc d = drawn_batch(row->type, &random);
      REQUIRE(watched_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const fake_launch *l = &fake.launch[0];
      if (row_of(l) != row) continue; /* it has no room for such a matrix */
      check_launch(h, row, &d, (op_transposes(d.transa) ? 2 : 0) + (op_transposes(d.transb) ? 1 : 0));
      check_memory(row, &d, l);
      n_raw += l->small.a.is_raw, n_together += l->small.n_together > 1;
    }
    wsgemm_destroy(h);
  }
  CHECK(n_raw >= 10 && n_together >= 100, "%d raw, %d of several matrices", n_raw, n_together);
}

/* ---- choice -------------------------------------------------------------------------------------- */

/* By sizes, types and ops alone; neither single products, longer ones, nor halves whose C takes steps, nor Level 3; and in invariant mode none. */
CHILD_CASE(choice) {
  (void)unused;
  wsgemm_handle *h = NULL;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, true) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int type = 0; type < 6; type++)
    for (int ops = 0; ops < 4; ops++) {
      wsgemm_gemm_desc d = batch_desc((wsgemm_type)type, ops, 8, 8, 8, 1000);
      const ws_cuda_row *row = row_of(launch_of(NULL, &d));
      CHECK(row->kind == WS_ROW_SMALL, "type %d: %s", type, row->name);
      wsgemm_gemm_desc other = d;
      other.a = (const char *)d.a + 16, other.lda += 3, other.stride_a += 100;
      CHECK(row_of(launch_of(NULL, &other)) == row, "type %d: other lds, %s", type, fake.launch[0].kernel);
      CHECK(!is_small(launch_of(h, &d)), "type %d: in invariant mode", type);
      other = d, other.batch_count = 1;
      CHECK(!is_small(launch_of(NULL, &other)), "type %d: one product", type);
      other = batch_desc((wsgemm_type)type, ops, 8, 8, MOST + 1, 100);
      CHECK(!is_small(launch_of(NULL, &other)), "type %d: a long k", type);
    }
  wsgemm_gemm_desc d = batch_desc(WSGEMM_F16, 0, 8, 8, 8, 1000);
  d.epilogue = WSGEMM_EPILOGUE_RELU;
  CHECK(!is_small(launch_of(NULL, &d)), "%s", fake.launch[0].kernel);
  d = batch_desc(WSGEMM_BF16, 0, 8, 8, 8, 1000), d.math = WSGEMM_MATH_PEDANTIC;
  CHECK(is_small(launch_of(NULL, &d)) && row_of(&fake.launch[0])->is_fma, "%s", fake.launch[0].kernel);
  for (int routine = WSGEMM_SYMM; routine <= WSGEMM_TRMM; routine++) {
    wsgemm_level3_desc of = level3_device_desc((wsgemm_routine)routine, WSGEMM_C32, 256);
    of.m = of.n = of.k = of.lda = of.ldb = of.ldc = 8, of.batch_count = 500, of.stride_a = of.stride_b = of.stride_c = 64;
    fake_forget();
    REQUIRE(wsgemm_level3(NULL, &of) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(fake.n_launches > 0, "routine %d: no launch", routine);
    for (int i = 0; i < fake.n_launches && i < FAKE_N_LAUNCHES; i++)
      CHECK(!is_small(&fake.launch[i]), "routine %d: %s", routine, fake.launch[i].kernel);
  }
  wsgemm_destroy(h);
}

/* Every size of a batch has a kernel, flat ones too, which have more tiles than any row of theirs has threads; also where a row is asked
 * for that PEDANTIC rules out. */
CHILD_CASE(every_size) {
  (void)unused;
  fake.device[0].cc = 90, fake.device[0].n_sms = 132;
  for (int type = 0; type < 6; type++) {
    int n_small = 0;
    wsgemm_handle *h[8] = {NULL};
    int n_handles = 1;
    for (int r = 0; r < n_all_gpu_rows; r++)
      if (gpu_rows[r].kind == WS_ROW_SMALL && (int)gpu_rows[r].type == type) h[n_handles++] = handle_of_row(&gpu_rows[r]);
    for (int64_t m = 1; m <= MOST; m += 3)
      for (int64_t n = 1; n <= MOST; n += 3)
        for (int64_t k = 1; k <= MOST; k = 2 * k + 1) {
          wsgemm_gemm_desc d = batch_desc((wsgemm_type)type, (int)((m + n + k) % 4), m, n, k, BATCH);
          if (type_is_half((wsgemm_type)type) && (m + k / 2) % 2) d.math = WSGEMM_MATH_PEDANTIC;
          char kernel[128];
          CHECK(explained_text(h[(m / 3 + n / 3) % n_handles], &d, "kernel", kernel), "type %d: %lld x %lld x %lld", type,
                (long long)m, (long long)n, (long long)k);
          n_small += strstr(kernel, "small") != NULL;
        }
    CHECK(n_small > 500, "type %d: %d of them small", type, n_small);
    for (int i = 1; i < n_handles; i++) wsgemm_destroy(h[i]);
  }
}

static const struct check_case cases[] = {
    {"launches", launches}, {"memory", memory}, {"choice", choice}, {"every_size", every_size}};
CHECK_MAIN("backend_small", cases)
