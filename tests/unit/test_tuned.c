/* test_tuned.c - what a tuning does to a product: wsgemm_explain names another path, block,
 * COARSE_FACTOR, policy and thread count, and C is the same, bit by bit: over all types, layouts
 * and ops, ragged shapes, batches, epilogues, invariant mode and thread counts. */
#include "support/rows.h"
#include "support/tuning_case.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/problem.h"

static wsgemm_handle *handle_for(int n_threads, int invariant) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_num_threads(h, n_threads) == WSGEMM_SUCCESS &&
              wsgemm_set_invariant(h, invariant) == WSGEMM_SUCCESS,
          "handle");
  return h;
}

static void tune(wsgemm_handle *h, const wsgemm_gemm_desc *d, const ws_tuning *tuning) {
  const ws_tuning_entry e = tuning_for(h, d, tuning);
  REQUIRE(ws_tune_put(&e), "memory");
}

/* ---- explained ------------------------------------------------------------------------------- */

/* The rows of the blocks, and of the kernel's register tile. */
static void explained_rows(wsgemm_handle *h, const wsgemm_gemm_desc *d, long long *bm, long long *mr) {
  char text[4096];
  wsgemm_explain(h, d, text, sizeof text);
  const char *tile = strstr(text, "\ntile: "), *of_kernel = strstr(text, "\nregister_tile: ");
  REQUIRE(tile && of_kernel && sscanf(tile, "\ntile: %lldx", bm) == 1 && sscanf(of_kernel, "\nregister_tile: %lldx", mr) == 1,
          "no tile in\n%s", text);
}

static const struct {
  wsgemm_type type;
  ws_tuning tuning;
  const char *path, *policy;              /* NULL: any */
  int64_t most_rows, least_rows, columns; /* 0: any */
  int coarse, threads;
} tuned[] = {
    {WSGEMM_F32, {.path = WS_TUNING_DIRECT}, "direct", NULL, 0, 0, 0, 0, 0},
    {WSGEMM_F32, {.path = WS_TUNING_PACKED}, "packed", NULL, 0, 0, 0, 0, 0},
    {WSGEMM_F64, {.path = WS_TUNING_PACKED, .mc = 1, .nc = 1}, "packed", NULL, 16, 1, 48, 0, 0},
    {WSGEMM_F32, {.path = WS_TUNING_PACKED, .mc = 120, .nc = 192}, "packed", NULL, 128, 120, 192, 0, 0},
    {WSGEMM_C32, {.path = WS_TUNING_PACKED, .mc = 1 << 24, .nc = 1 << 24}, "packed", NULL, 1 << 20, 500, -490, 0, 0},
    {WSGEMM_C64, {.path = WS_TUNING_PACKED, .coarse = 2, .threads = 2}, "packed", "steal", 0, 0, 0, 2, 2},
    {WSGEMM_F32, {.path = WS_TUNING_DIRECT, .coarse = 5, .threads = 3}, "direct", "steal", 0, 0, 0, 5, 3},
    {WSGEMM_F64, {.policy = WSGEMM_POLICY_FIXED_WORK}, NULL, "fixed_work", 0, 0, 0, 0, 0},
    {WSGEMM_F64, {.policy = WSGEMM_POLICY_FIXED_BLOCKS}, NULL, "fixed_blocks", 0, 0, 0, 0, 0},
    {WSGEMM_F64, {.policy = WSGEMM_POLICY_CLC}, NULL, "steal", 0, 0, 0, 0, 0}, /* which CPUs have not */
    {WSGEMM_F64, {.threads = 1}, NULL, NULL, 0, 0, 0, 0, 1},
    {WSGEMM_F64, {.threads = 256}, NULL, NULL, 0, 0, 0, 0, 4},
    {WSGEMM_F16, {.mc = 64, .coarse = 3, .threads = 2}, "half", NULL, 64, 32, 0, 3, 2},
    {WSGEMM_BF16, {.mc = 1, .policy = WSGEMM_POLICY_FIXED_WORK}, "half", "fixed_work", 32, 1, 0, 0, 0},
    {WSGEMM_F16, {.mc = 1 << 24}, "half", NULL, 1 << 20, 500, 0, 0, 0},
};

static void explained(void) {
  wsgemm_handle *h = handle_for(4, 0);
  for (size_t i = 0; i < sizeof tuned / sizeof tuned[0]; i++) {
    wsgemm_gemm_desc d =
        gemm_desc(tuned[i].type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 500, 490, 300 + (int64_t)(20 * i));
    long long bm = 0, mr = 1;
    d.k = 300 * ((int64_t)1 << i); /* so that no two are near */
    d.ldb = d.k;
    CHECK(explained_is(h, &d, "chosen_by", "model"), "tuning %zu: not the model's before", i);
    tune(h, &d, &tuned[i].tuning);
    CHECK(explained_is(h, &d, "chosen_by", "tuning file"), "tuning %zu is not taken", i);
    if (tuned[i].path) CHECK(explained_is(h, &d, "path", tuned[i].path), "tuning %zu: another path", i);
    if (tuned[i].policy) CHECK(explained_is(h, &d, "policy", tuned[i].policy), "tuning %zu: another policy", i);
    if (tuned[i].coarse)
      CHECK(explained_number(h, &d, "coarse_factor", 0) == tuned[i].coarse, "tuning %zu: another COARSE_FACTOR", i);
    if (tuned[i].threads)
      CHECK(explained_number(h, &d, "threads", 0) == tuned[i].threads, "tuning %zu: %lld threads", i,
            explained_number(h, &d, "threads", 0));
    explained_rows(h, &d, &bm, &mr);
    if (tuned[i].most_rows)
      CHECK(bm <= tuned[i].most_rows && bm >= tuned[i].least_rows && bm % mr == 0, "tuning %zu: blocks of %lld rows", i, bm);
    const long long columns = explained_number(h, &d, "column_block", 0);
    if (tuned[i].columns)
      CHECK(tuned[i].columns > 0 ? columns <= tuned[i].columns : columns >= -tuned[i].columns,
            "tuning %zu: blocks of %lld columns", i, columns);
  }
  CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* Operands of one call in plain memory, with C, column sums and what lies between lines. */
struct call {
  wsgemm_gemm_desc d;
  size_t a_bytes, b_bytes, c_bytes, sums_bytes;
  unsigned char *a, *b, *c, *c_before, *bias, *sums;
};

/* Small numbers of the type, from its reals' bits. */
static void fill(struct check_random *rng, wsgemm_type type, unsigned char *to, size_t bytes) {
  const size_t real_bytes = type_is_double(type) ? 8 : type_is_half(type) ? 2 : 4;
  for (size_t at = 0; at + real_bytes <= bytes; at += real_bytes) {
    const double x = check_random_unit(rng) * 2;
    const float single = (float)x;
    const unsigned bits = (unsigned)check_random_bits(rng);
    const uint16_t half =
        (uint16_t)((bits & 0x8000u) | (type == WSGEMM_F16 ? 0x3000u + (bits & 0xfffu) : 0x3e80u + (bits & 0xffu)));
    memcpy(to + at,
           real_bytes == 8   ? (const void *)&x
           : real_bytes == 4 ? (const void *)&single
                             : (const void *)&half,
           real_bytes);
  }
}

static unsigned char *new_bytes(size_t bytes) {
  unsigned char *memory = malloc(bytes);
  REQUIRE(memory != NULL, "memory");
  return memory;
}

static struct call call_new(struct check_random *rng, wsgemm_type type, const int64_t shape[4], bool has_epilogue) {
  static const wsgemm_type types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
  struct call x = {.d = gemm_desc(type, draw_layout(rng), draw_op(type, rng), draw_op(type, rng), shape[0], shape[1], shape[2])};
  wsgemm_gemm_desc *d = &x.d;
  const bool by_columns = d->layout == WSGEMM_COL_MAJOR;
  if (type_is_half(type)) d->type_c = types_c[check_random_in(rng, 0, 2)];
  d->alpha = scalar_make(type, 0.75, -0.3);
  d->beta = check_random_in(rng, 0, 1) ? scalar_make(type, -1.1, 0.6) : scalar_make(type, 0, 0);
  const bool a_lies = op_transposes(d->transa) == by_columns;
  const bool b_lies = op_transposes(d->transb) == by_columns;
  d->lda += check_random_in(rng, 0, 3), d->ldb += check_random_in(rng, 0, 3), d->ldc += check_random_in(rng, 0, 3);
  d->batch_count = shape[3];
  d->stride_a = d->lda * (a_lies ? d->m : d->k), d->stride_b = d->ldb * (b_lies ? d->k : d->n);
  d->stride_c = d->ldc * (by_columns ? d->n : d->m);
  x.a_bytes = (size_t)(d->stride_a * d->batch_count) * type_bytes(type);
  x.b_bytes = (size_t)(d->stride_b * d->batch_count) * type_bytes(type);
  x.c_bytes = (size_t)(d->stride_c * d->batch_count) * type_bytes(d->type_c);
  x.sums_bytes = (size_t)(d->n * d->batch_count) * (d->type_c == WSGEMM_F64 ? 8 : 4);
  x.a = new_bytes(x.a_bytes), x.b = new_bytes(x.b_bytes), x.c = new_bytes(x.c_bytes), x.c_before = new_bytes(x.c_bytes);
  x.bias = new_bytes((size_t)(d->m + d->n) * 8), x.sums = new_bytes(x.sums_bytes);
  fill(rng, type, x.a, x.a_bytes), fill(rng, type, x.b, x.b_bytes), fill(rng, d->type_c, x.c_before, x.c_bytes);
  fill(rng, d->type_c, x.bias, (size_t)(d->m + d->n) * 8);
  d->a = x.a, d->b = x.b, d->c = x.c;
  if (has_epilogue && !type_is_complex(type)) {
    d->epilogue = WSGEMM_EPILOGUE_GELU_TANH,
    d->bias_per = check_random_in(rng, 0, 1) ? WSGEMM_BIAS_PER_ROW : WSGEMM_BIAS_PER_COLUMN;
    d->bias = x.bias, d->type_bias = d->type_c, d->out_scale = 1.25;
    d->column_sums = x.sums, d->stride_column_sums = d->n;
  }
  return x;
}

static void call_free(struct call *x) { free(x->a), free(x->b), free(x->c), free(x->c_before), free(x->bias), free(x->sums); }

/* Of all bytes that the call may have written, and of those between. */
static unsigned long long run(struct call *x, wsgemm_handle *h) {
  unsigned long long digest = 1469598103934665603ULL;
  memcpy(x->c, x->c_before, x->c_bytes);
  memset(x->sums, 0, x->sums_bytes);
  CHECK(wsgemm_gemm(h, &x->d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (size_t i = 0; i < x->c_bytes; i++) digest = (digest ^ x->c[i]) * 1099511628211ULL;
  for (size_t i = 0; i < x->sums_bytes; i++) digest = (digest ^ x->sums[i]) * 1099511628211ULL;
  return digest;
}

static ws_tuning draw_tuning(struct check_random *rng) {
  static const int blocks[] = {0, 1, 7, 16, 33, 64, 100, 250, 1000, 1 << 24};
  ws_tuning t = {.policy = (int)check_random_in(rng, 0, WS_N_POLICIES - 1),
                 .path = (int)check_random_in(rng, 0, WS_TUNING_PACKED),
                 .mc = blocks[check_random_in(rng, 0, 9)],
                 .nc = blocks[check_random_in(rng, 0, 9)],
                 .order = (int)check_random_in(rng, 0, 9),
                 .quantum = (int)check_random_in(rng, 0, 9)};
  t.coarse = check_random_in(rng, 0, 2) ? (int)check_random_in(rng, 0, 9) : (int)check_random_in(rng, 0, WS_COARSE_MAX);
  t.threads = check_random_in(rng, 0, 2) ? (int)check_random_in(rng, 0, 6) : (int)check_random_in(rng, 0, 256);
  return t;
}

static const int64_t shapes[][4] = {{300, 250, 700, 1}, {97, 333, 1029, 1}, {64, 64, 64, 1},   {1000, 20, 150, 1},
                                    {20, 1000, 150, 1}, {129, 127, 513, 1}, {600, 610, 40, 1}, {70, 75, 80, 7},
                                    {260, 40, 300, 3},  {1, 3000, 300, 1},  {3000, 1, 300, 1}, {33, 3000, 3, 1},
                                    {500, 500, 1, 1}};
enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

/* How many tunings were taken, and by which paths: the suite must not compare the model with
 * itself. */
static struct { int n_runs, n_taken, n_direct, n_packed, n_half; } seen;

static void check_call(struct check_random *rng, struct call *x, int n_tunings) {
  char text[DESCRIPTION_BYTES], tuned_text[256];
  for (int invariant = 0; invariant < 2; invariant++) {
    wsgemm_handle *alone = handle_for(1, invariant);
    const unsigned long long expected = run(x, alone);
    wsgemm_destroy(alone);
    for (int turn = 0; turn < n_tunings; turn++) {
      wsgemm_handle *h = handle_for((int)check_random_in(rng, 1, 6), invariant);
      const ws_tuning tuning = draw_tuning(rng);
      ws_text t = {tuned_text, sizeof tuned_text, 0};
      ws_tuning_describe("", &tuning, &t);
      tune(h, &x->d, &tuning);
      seen.n_runs++;
      seen.n_taken += explained_is(h, &x->d, "chosen_by", "tuning file");
      seen.n_direct += explained_is(h, &x->d, "path", "direct"), seen.n_packed += explained_is(h, &x->d, "path", "packed");
      seen.n_half += explained_is(h, &x->d, "path", "half");
      CHECK(run(x, h) == expected, "%s, invariant %d: bits change with %s", gemm_describe(&x->d, text), invariant, tuned_text);
      wsgemm_destroy(h);
    }
  }
}

static void bits(void) {
  struct check_random rng = check_random_from(330);
  for (int type = 0; type < N_TYPES; type++)
    for (int shape = 0; shape < N_SHAPES; shape++) {
      if (check_scale() > 1 && (type + shape) % (check_scale() > 6 ? 5 : 3) != 0) continue;
      struct call x = call_new(&rng, (wsgemm_type)type, shapes[shape], shape % 2);
      check_call(&rng, &x, check_scale() > 6 ? 2 : check_scale() > 1 ? 4 : 14);
      call_free(&x);
    }
  CHECK(seen.n_taken > seen.n_runs * 2 / 3 && seen.n_direct > seen.n_runs / 9 && seen.n_packed > seen.n_runs / 9 &&
            seen.n_half > seen.n_runs / 9,
        "of %d runs %d were tuned; %d direct, %d packed, %d half", seen.n_runs, seen.n_taken, seen.n_direct, seen.n_packed,
        seen.n_half);
}

/* The same with each candidate of the search itself. */
static void candidates(void) {
  struct check_random rng = check_random_from(331);
  static ws_candidate list[WS_MOST_CANDIDATES];
  for (int type = 0; type < N_TYPES; type++) {
    const int64_t shape[4] = {410, 390, 520, 1 + type % 2};
    struct call x = call_new(&rng, (wsgemm_type)type, shape, false);
    wsgemm_handle *h = handle_for(4, 0);
    const unsigned long long expected = run(&x, h);
    ws_arena arena = {.is = &ws_cpu_arena, .h = ws_handle(h), .seed = 1, .device = -1};
    REQUIRE(ws_problem_of(arena.h, &x.d, &arena.problem) == WSGEMM_SUCCESS && arena.is->open(&arena) == WSGEMM_SUCCESS, "%s",
            wsgemm_last_error());
    int n = 0;
    CHECK(arena.is->candidates(&arena, list, &n) == WSGEMM_SUCCESS && n >= 8 && n <= WS_MOST_CANDIDATES, "%d candidates", n);
    for (int i = 0; i < n; i++) {
      for (int j = 0; j < i; j++)
        CHECK(memcmp(&list[i].tuning, &list[j].tuning, sizeof list[i].tuning) != 0, "candidates %d and %d are one", i, j);
      CHECK(list[i].model > 0, "candidate %d: a time of %g", i, list[i].model);
      if (check_random_in(&rng, 1, check_scale()) != 1) continue;
      tune(h, &x.d, &list[i].tuning);
      CHECK(run(&x, h) == expected, "type %c: bits change with candidate %d", type_letter((wsgemm_type)type), i);
    }
    arena.is->close(&arena);
    wsgemm_destroy(h);
    call_free(&x);
  }
}

/* The CPU's place for measuring: a run is timed, C begins the same each time, and any bit of it
 * that differs is seen. */
static void measured(void) {
  struct check_random rng = check_random_from(332);
  for (int type = 0; type < N_TYPES; type++) {
    const int64_t shape[4] = {130, 120, 110, 2};
    struct call x = call_new(&rng, (wsgemm_type)type, shape, false);
    x.d.beta = scalar_make((wsgemm_type)type, 0.5, 0.5);
    ws_arena arena = {.is = &ws_cpu_arena, .h = ws_handle(NULL), .seed = 1, .device = -1};
    const ws_arena_class *is = arena.is;
    bool differs = true;
    double us = -1;
    const ws_tuning packed = {.path = WS_TUNING_PACKED, .mc = 50, .nc = 50};
    REQUIRE(ws_problem_of(arena.h, &x.d, &arena.problem) == WSGEMM_SUCCESS && is->open(&arena) == WSGEMM_SUCCESS, "open");
    const double begin_ms = is->now_ms(&arena);
    CHECK(!is->prepare(&arena, &ws_tuning_of_model) && !is->run(&arena, &ws_tuning_of_model, &us) && !is->keep(&arena), "run");
    CHECK(us > 0 && us / 1e3 <= is->now_ms(&arena) - begin_ms, "%g us", us);
    CHECK(!is->differs(&arena, &differs) && !differs, "C differs from itself");
    CHECK(!is->prepare(&arena, &packed) && !is->run(&arena, &packed, &us), "run");
    CHECK(!is->differs(&arena, &differs) && !differs, "C differs when it is made another way");
    unsigned char *c = arena.problem.c.data;
    const int64_t last = (arena.problem.m - 1 + (arena.problem.n - 1) * arena.problem.c.ld + arena.problem.c.stride) *
                         (int64_t)type_bytes(arena.problem.c.type);
    for (int part = 0; part < 3; part++) { /* the first element, one between, the last */
      c[last * part / 2] ^= 1;
      CHECK(!is->differs(&arena, &differs) && differs, "a bit of C differs, and nobody sees it");
      c[last * part / 2] ^= 1;
    }
    CHECK(!is->run(&arena, &packed, &us) && !is->differs(&arena, &differs) && !differs, "C was not filled again");
    is->close(&arena);
    call_free(&x);
  }
}

static const struct check_case cases[] = {
    {"explained", explained}, {"bits", bits}, {"candidates", candidates}, {"measured", measured}};
CHECK_MAIN("tuned", cases)
