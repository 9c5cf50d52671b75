/* test_level3.c - every Level 3 routine on small whole numbers, which give the exact result: each
 * registry row x routine x side, uplo, op, diag x layout, over sizes round the edges of the row's
 * tile and k block; all small sizes; larger shapes under every COARSE_FACTOR, policy and a few
 * thread counts; strided batches.
 *
 * What may be neither read nor written is guarded inside and round every matrix (level3_call.h).
 * trsm is solved for triangles whose inverse is of whole numbers, so it is exact by any method. */
#include "support/level3_call.h"
#include "support/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct check_random rng;
static struct rows_of_type rows;

/* The stage for a routine: A's triangles can be solved for, or are full. */
struct two_stages {
  struct level3_stage full, solvable;
};

static struct two_stages stages_new(wsgemm_type type, int64_t size) {
  struct two_stages s = {level3_stage_new(type, size, size, FILL_INTEGER, &rng),
                         level3_stage_new(type, size, size, FILL_INTEGER, &rng)};
  level3_fill_triangle(&s.solvable, TRIANGLE_SOLVABLE, &rng);
  return s;
}

static void stages_free(struct two_stages *s) {
  level3_stage_free(&s->full);
  level3_stage_free(&s->solvable);
}

static struct level3_stage *stage_for(struct two_stages *s, wsgemm_routine routine) {
  return routine == WSGEMM_TRSM ? &s->solvable : &s->full;
}

static bool run_exact(struct two_stages *s, wsgemm_handle *handle, wsgemm_level3_desc *d, const char *who) {
  const struct layout_of_case where = layout_drawn(&rng);
  draw_scalars(d, JUDGE_EXACT, &rng);
  return run_level3(stage_for(s, d->routine), handle, d, &where, (enum form)check_random_in(&rng, 0, N_FORMS - 1), JUDGE_EXACT,
                    who);
}

/* ---- Edges ------------------------------------------------------------------------------------- */

static int64_t draw_edge(int i) {
  int edges[MAX_EDGES];
  const int n = edges_of(check_random_in(&rng, 0, 1) ? rows.row[i].mr : rows.row[i].nr, edges);
  return edges[check_random_in(&rng, 0, n - 1)];
}

/* One case on row i: sizes from the edges, or one in eight with a sum round the k block. */
static void run_edge(struct two_stages *s, int i, wsgemm_routine routine, const struct variant *v, wsgemm_layout layout) {
  int64_t m = draw_edge(i), n = draw_edge(i), k = check_random_in(&rng, 0, 3) ? check_random_in(&rng, 0, 17) : draw_edge(i);
  if (check_random_in(&rng, 0, 7) == 0) {
    const int64_t length = rows.kc[i] + check_random_in(&rng, -1, 1);
    if (routine_has_k(routine))
      k = length;
    else if (v->side == WSGEMM_LEFT)
      m = length, n = check_random_in(&rng, 1, 9);
    else
      n = length, m = check_random_in(&rng, 1, 9);
  }
  wsgemm_level3_desc d = level3_desc(routine, rows.type, layout, v, m, n, k);
  run_exact(s, rows.handle[i], &d, rows.row[i].name);
}

static void edges_of_type(wsgemm_type type) {
  rows_open(&rows, type);
  const int64_t size = rows.max_kc + 2 > rows.widest ? rows.max_kc + 2 : rows.widest;
  struct two_stages s = stages_new(type, size);
  for (int i = 0; i < rows.n_rows; i++)
    for (int r = 0; r < N_ROUTINES; r++) {
      struct variant variants[MAX_VARIANTS];
      const int n_variants = routine_has_type(all_routines[r], type) ? variants_of(all_routines[r], type, variants) : 0;
      for (int v = 0; v < n_variants; v++)
        for (int turn = 0; turn < 2 * 64 / n_variants; turn++)
          if (check_random_in(&rng, 1, check_scale()) == 1) run_edge(&s, i, all_routines[r], &variants[v], all_layouts[turn % 2]);
    }
  stages_free(&s);
  rows_close(&rows);
}

static void edges_single(void) { rng = check_random_from(300), edges_of_type(WSGEMM_F32); }
static void edges_double(void) { rng = check_random_from(301), edges_of_type(WSGEMM_F64); }
static void edges_single_complex(void) { rng = check_random_from(302), edges_of_type(WSGEMM_C32); }
static void edges_double_complex(void) { rng = check_random_from(303), edges_of_type(WSGEMM_C64); }

/* ---- All small sizes --------------------------------------------------------------------------- */

static void every_small_size(void) {
  enum { MOST = 9 };
  rng = check_random_from(304);
  for (int t = 0; t < N_LEVEL3_TYPES; t++) {
    const wsgemm_type type = (wsgemm_type)t;
    struct two_stages s = stages_new(type, MOST + 1);
    for (int r = 0; r < N_ROUTINES; r++) {
      struct variant variants[MAX_VARIANTS];
      const int n_variants = routine_has_type(all_routines[r], type) ? variants_of(all_routines[r], type, variants) : 0;
      for (int v = 0; v < n_variants; v++)
        for (int64_t other = 0; other <= MOST; other++)
          for (int64_t n = 0; n <= MOST; n++) {
            if (check_random_in(&rng, 1, check_scale()) != 1) continue;
            wsgemm_level3_desc d =
                level3_desc(all_routines[r], type, all_layouts[(other + n + v) % 2], &variants[v], other, n, other);
            run_exact(&s, NULL, &d, "small");
          }
    }
    stages_free(&s);
  }
}

/* ---- Larger shapes ----------------------------------------------------------------------------- */

static void run_shape(struct two_stages *s, int64_t m, int64_t n, int64_t k) {
  static const int coarse_factors[] = {1, 2, 3, 8, 64, 0};
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL};
  for (int i = 0; i < rows.n_rows; i++)
    for (int r = 0; r < N_ROUTINES; r++) {
      if (!routine_has_type(all_routines[r], rows.type) || check_random_in(&rng, 1, check_scale()) != 1) continue;
      const int coarse = coarse_factors[check_random_in(&rng, 0, 5)], n_threads = (int)check_random_in(&rng, 1, 4);
      const wsgemm_policy policy = policies[check_random_in(&rng, 0, 2)];
      REQUIRE(wsgemm_set_num_threads(rows.handle[i], n_threads) == WSGEMM_SUCCESS &&
                  wsgemm_set_coarse_factor(rows.handle[i], coarse) == WSGEMM_SUCCESS &&
                  wsgemm_set_policy(rows.handle[i], policy) == WSGEMM_SUCCESS,
              "settings: %s", wsgemm_last_error());
      const struct variant v = draw_variant(all_routines[r], rows.type, &rng);
      wsgemm_level3_desc d = level3_desc(all_routines[r], rows.type, draw_layout(&rng), &v, m, n, k);
      if (!run_exact(s, rows.handle[i], &d, rows.row[i].name))
        CHECK(false, "that was with %d threads, COARSE_FACTOR %d, policy %d", n_threads, coarse, (int)policy);
    }
}

static void blocks_of_type(wsgemm_type type) {
  rows_open(&rows, type);
  const int64_t kc = rows.max_kc, shapes[][3] = {{161, 163, 160},   {300, 200, 100}, {kc + 31, 65, 2 * kc + 1},
                                                 {65, kc + 5, kc},  {97, 300, 9},    {2 * kc + 1, 40, 33},
                                                 {1, 300, 2 * kc},  {300, 1, 3},     {250, 250, 250},
                                                 {40, 2 * kc, 500}, {2, 129, 64},    {450, 450, 20}};
  struct two_stages s = stages_new(type, 2 * kc + 500 > 600 ? 2 * kc + 2 > 600 ? 2 * kc + 2 : 600 : 600);
  const size_t step = check_scale() > 1 ? 3 : 1; /* each type has others */
  for (size_t shape = (size_t)type % step; shape < sizeof shapes / sizeof shapes[0]; shape += step)
    run_shape(&s, shapes[shape][0], shapes[shape][1], shapes[shape][2]);
  /* one more than a multiple of most widths of items: their last one is a single column */
  for (size_t turn = 0; turn < 6; turn += step) run_shape(&s, 241, 241, 30);
  stages_free(&s);
  rows_close(&rows);
}

static void blocks_single(void) { rng = check_random_from(305), blocks_of_type(WSGEMM_F32); }
static void blocks_double(void) { rng = check_random_from(306), blocks_of_type(WSGEMM_F64); }
static void blocks_single_complex(void) { rng = check_random_from(307), blocks_of_type(WSGEMM_C32); }
static void blocks_double_complex(void) { rng = check_random_from(308), blocks_of_type(WSGEMM_C64); }

/* ---- Batches ----------------------------------------------------------------------------------- */

enum { ROOM = 24000, SIDE = 30 };
static void fill_room(wsgemm_type type, unsigned char *memory) {
  struct arena arena = {memory, ROOM * 16};
  const struct matrix all = {type, true, ROOM, 1, ROOM, memory, &arena};
  for (int64_t at = 0; at < ROOM; at++)
    matrix_set(&all, at, 0, (double)check_random_in(&rng, -1, 1), (double)check_random_in(&rng, -1, 1));
}

/* A batch is its products one by one, bit for bit, shared operands, gaps and negative strides
 * included. */
static void batch_once(wsgemm_routine routine, wsgemm_type type, unsigned char *memory[4]) {
  const struct variant v = draw_variant(routine, type, &rng);
  const int64_t count = check_random_in(&rng, 0, 6), stride = SIDE * SIDE + 1 + check_random_in(&rng, 0, 40);
  const bool triangular = routine_is_triangular(routine), apart = check_random_in(&rng, 0, 1);
  wsgemm_level3_desc d = level3_desc(routine, type, draw_layout(&rng), &v, check_random_in(&rng, 1, SIDE - 5),
                                     check_random_in(&rng, 1, SIDE - 5), check_random_in(&rng, 0, SIDE - 5));
  d.lda += check_random_in(&rng, 0, 5), d.ldb += check_random_in(&rng, 0, 5), d.ldc += check_random_in(&rng, 0, 5);
  d.beta = scalar_make(type, triangular ? 0 : 1, 0);
  d.batch_count = count;
  const bool backward[3] = {check_random_in(&rng, 0, 1), check_random_in(&rng, 0, 1), check_random_in(&rng, 0, 1)};
  const bool in_place = triangular && !apart;
  int64_t *const strides[3] = {&d.stride_a, &d.stride_b, &d.stride_c};
  for (int i = 0; i < 3; i++) {
    const bool may_share = i == 0 || (i == 1 && !in_place);
    *strides[i] = may_share && check_random_in(&rng, 0, 2) == 0 ? 0 : backward[i] ? -stride : stride;
  }
  const int64_t first = ROOM / 2;
  const size_t bytes = type_bytes(type), written = in_place ? 1 : 2;
  fill_room(type, memory[0]), fill_room(type, memory[1]), fill_room(type, memory[2]);
  memcpy(memory[3], memory[written], ROOM * bytes);
  d.a = memory[0] + (size_t)first * bytes;
  d.b = memory[1] + (size_t)first * bytes;
  d.c = triangular && !apart ? NULL : memory[2] + (size_t)first * bytes;
  char text[DESCRIPTION_BYTES];
  CHECK(wsgemm_level3(NULL, &d) == WSGEMM_SUCCESS, "%s: %s", level3_describe(&d, text), wsgemm_last_error());
  for (int64_t i = 0; i < count; i++) {
    wsgemm_level3_desc one = d;
    one.batch_count = 1, one.stride_a = one.stride_b = one.stride_c = 0;
    one.a = memory[0] + (size_t)(first + i * d.stride_a) * bytes;
    one.b = memory[in_place ? 3 : 1] + (size_t)(first + i * d.stride_b) * bytes;
    if (d.c) one.c = memory[3] + (size_t)(first + i * d.stride_c) * bytes;
    CHECK(wsgemm_level3(NULL, &one) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  CHECK(memcmp(memory[written], memory[3], ROOM * bytes) == 0, "%s: a batch of %lld differs from as many single calls",
        level3_describe(&d, text), (long long)count);
}

static void batches(void) {
  rng = check_random_from(309);
  unsigned char *memory[4];
  for (int i = 0; i < 4; i++) {
    memory[i] = malloc(ROOM * 16);
    REQUIRE(memory[i], "memory");
  }
  for (int turn = 0; turn < 720 / check_scale() + 36; turn++) {
    const wsgemm_routine routine = all_routines[turn % N_ROUTINES];
    const wsgemm_type type = (wsgemm_type)(turn / N_ROUTINES % N_LEVEL3_TYPES);
    if (routine_has_type(routine, type)) batch_once(routine, type, memory);
  }
  for (int i = 0; i < 4; i++) free(memory[i]);
}

/* ---- Texts ------------------------------------------------------------------------------------- */

/* The first line is the problem, a forced row is named, the length is snprintf's, and calls on the
 * host need no workspace. */
static void explained_of(int i, wsgemm_routine routine) {
  const struct variant v = draw_variant(routine, rows.type, &rng);
  wsgemm_level3_desc d = level3_desc(routine, rows.type, draw_layout(&rng), &v, 300, 200, 100);
  static double somewhere[4];
  char text[4096], part[40], line[64], description[DESCRIPTION_BYTES];
  size_t bytes = 77;
  d.a = d.b = somewhere, d.c = routine_is_triangular(routine) ? NULL : somewhere;
  level3_describe(&d, description);
  const size_t length = wsgemm_level3_explain(rows.handle[i], &d, text, sizeof text);
  snprintf(line, sizeof line, "problem: %.*s ", (int)strcspn(description, " "), description);
  CHECK(length == strlen(text) && strncmp(text, line, strlen(line)) == 0, "%s: \"%s\"", description, text);
  snprintf(line, sizeof line, "kernel: %s\n", rows.row[i].name);
  CHECK(strstr(text, line) && strstr(text, "backend: cpu\n"), "%s: \"%s\" names no %s", description, text, rows.row[i].name);
  CHECK(wsgemm_level3_explain(rows.handle[i], &d, NULL, 0) == length, "%s: the length is %zu", description, length);
  CHECK(wsgemm_level3_explain(rows.handle[i], &d, part, sizeof part) == length && strlen(part) == sizeof part - 1 &&
            strncmp(part, text, sizeof part - 1) == 0,
        "%s: cut short: \"%s\"", description, part);
  CHECK(wsgemm_level3_workspace_size(rows.handle[i], &d, &bytes) == WSGEMM_SUCCESS && bytes == 0, "%s: a workspace of %zu bytes",
        description, bytes);
}

static void explained(void) {
  rng = check_random_from(310);
  for (int t = 0; t < N_LEVEL3_TYPES; t++) {
    rows_open(&rows, (wsgemm_type)t);
    for (int i = 0; i < rows.n_rows; i++)
      for (int r = 0; r < N_ROUTINES; r++)
        if (routine_has_type(all_routines[r], rows.type)) explained_of(i, all_routines[r]);
    rows_close(&rows);
  }
}

static const struct check_case cases[] = {{"edges_single", edges_single},
                                          {"edges_double", edges_double},
                                          {"edges_single_complex", edges_single_complex},
                                          {"edges_double_complex", edges_double_complex},
                                          {"every_small_size", every_small_size},
                                          {"blocks_single", blocks_single},
                                          {"blocks_double", blocks_double},
                                          {"blocks_single_complex", blocks_single_complex},
                                          {"blocks_double_complex", blocks_double_complex},
                                          {"batches", batches},
                                          {"explained", explained}};
CHECK_MAIN("level3", cases)
