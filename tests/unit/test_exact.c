/* test_exact.c - small whole numbers give the exact result, every component equal: on every
 * registry row, round the edges of its tile and its k block with all op pairs and both layouts, and
 * over whole shapes of all proportions under every COARSE_FACTOR, policy and a few thread counts.
 * The blocks of rows and columns are test_paths.c's. */
#include "support/rows.h"

#include <stdlib.h>
#include <string.h>

static struct check_random rng;

static void edges(void) {
  rng = check_random_from(20);
  for (int type = 0; type < N_TYPES; type++)
    cross_edges_and_k((wsgemm_type)type, FILL_INTEGER, JUDGE_EXACT, check_scale(), 2 * check_scale(), &rng);
}

static void run_shape(const struct rows_of_type *rows, int64_t m, int64_t n, int64_t k, int n_turns) {
  static const int coarse_factors[] = {1, 2, 3, 4, 8, 64, 0};
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL};
  struct stage stage = stage_new(rows->type, m, n, k, FILL_INTEGER, &rng);
  product_whole(&stage.product, &stage.a, &stage.b, k);
  for (int i = 0; i < rows->n_rows; i++)
    for (int turn = 0; turn < n_turns; turn++) {
      const int coarse = coarse_factors[check_random_in(&rng, 0, 6)], n_threads = (int)check_random_in(&rng, 1, 4);
      const wsgemm_policy policy = policies[check_random_in(&rng, 0, 2)];
      REQUIRE(wsgemm_set_num_threads(rows->handle[i], n_threads) == WSGEMM_SUCCESS &&
                  wsgemm_set_coarse_factor(rows->handle[i], coarse) == WSGEMM_SUCCESS &&
                  wsgemm_set_policy(rows->handle[i], policy) == WSGEMM_SUCCESS,
              "settings: %s", wsgemm_last_error());
      wsgemm_gemm_desc d =
          gemm_desc(rows->type, draw_layout(&rng), draw_op(rows->type, &rng), draw_op(rows->type, &rng), m, n, k);
      d.alpha = scalar_make(rows->type, (double)check_random_in(&rng, 1, 2), 0);
      d.beta = scalar_make(rows->type, (double)check_random_in(&rng, -1, 1), (double)check_random_in(&rng, -1, 1));
      const struct layout_of_case where = layout_drawn(&rng);
      if (!run_case(&stage, rows->handle[i], &d, &where, turn % 2, JUDGE_EXACT, rows->row[i].name))
        CHECK(false, "that was with %d threads, COARSE_FACTOR %d, policy %d", n_threads, coarse, (int)policy);
    }
  stage_free(&stage);
}

/* Shapes of all proportions, round the k block, and one that is packed in both layouts. */
static void blocks_of(wsgemm_type type) {
  static struct rows_of_type rows;
  rows_open(&rows, type);
  const int scale = check_scale();
  const int64_t kc = rows.max_kc, side = packed_n(rows.handle[0], type, 300, kc + 30);
  const int64_t shapes[][3] = {{side, side + 5, kc + 31},
                               {300, 200, 100},
                               {161, 160, 163},
                               {129, 517, kc + 1},
                               {500, 65, 2 * kc},
                               {67, 61, 2000},
                               {40, 700, kc - 1},
                               {333, 97, kc},
                               {200, 200, 2 * kc + 1},
                               {97, 1500, 150},
                               {1, 700, 90},
                               {700, 1, 90},
                               {1, 1, 5000},
                               {2, 900, 50},
                               {900, 2, 50},
                               {3, 3, 3000},
                               {1200, 20, 33},
                               {400, 400, 4},
                               {250, 250, kc / 2},
                               {64, 64, 1000},
                               {900, 130, 40}};
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    if (s == 0 || check_random_in(&rng, 1, scale) <= 3)
      run_shape(&rows, shapes[s][0], shapes[s][1], shapes[s][2], scale > 6 ? 1 : scale > 1 ? 2 : 6);
  rows_close(&rows);
}

static void blocks(void) {
  rng = check_random_from(21);
  for (int type = 0; type < N_TYPES; type++) blocks_of((wsgemm_type)type);
}

/* Few rows or few columns, by every way that the plan may choose for them. */
static void few_of(wsgemm_type type) {
  static struct rows_of_type rows;
  rows_open(&rows, type);
  const int scale = check_scale();
  for (int shape = 0; shape < 120 / scale; shape++) {
    const int64_t few = check_random_in(&rng, 2, 26), other = check_random_in(&rng, few, shape % 4 ? 150 : 40);
    const int64_t k = shape % 8 == 0 ? check_random_in(&rng, 2 * rows.max_kc, 5 * rows.max_kc) : check_random_in(&rng, 5, 300);
    run_shape(&rows, shape % 2 ? few : other, shape % 2 ? other : few, k, 4);
  }
  rows_close(&rows);
}

static void few(void) {
  rng = check_random_from(22);
  for (int type = 0; type < N_TYPES; type++) few_of((wsgemm_type)type);
}

/* Sums along k are made where the long operand lies along k; not in invariant mode. */
static void few_paths(void) {
  for (int type = 0; type < N_TYPES; type++) {
    if (type_is_half((wsgemm_type)type)) continue;
    const wsgemm_gemm_desc long_a = gemm_desc((wsgemm_type)type, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 300, 6, 900);
    const wsgemm_gemm_desc long_b = gemm_desc((wsgemm_type)type, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, 1, 300, 900);
    wsgemm_handle *h = NULL;
    REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
    CHECK(explained_is(h, &long_a, "path", "dots"), "type %d: few columns", type);
    CHECK(explained_is(h, &long_b, "path", "vector"), "type %d: one row", type);
    /* an A from far away, in parts of k where tiles have two vectors alone */
    const wsgemm_gemm_desc far_a =
        gemm_desc((wsgemm_type)type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 4096, 8, 16384);
    char kernel[128];
    REQUIRE(explained_text(h, &far_a, "kernel", kernel), "kernel");
    CHECK(explained_number(h, &far_a, "k_part", 0) == (strstr(kernel, "avx512") || strstr(kernel, "neon") ? 0 : 32),
          "type %d: %s", type, kernel);
    wsgemm_set_invariant(h, 1);
    CHECK(!explained_is(h, &long_a, "path", "dots"), "type %d: invariant", type);
    wsgemm_destroy(h);
  }
}

/* Strided batches, with A or B shared by all products, and strides with gaps. */
static void batches(void) {
  rng = check_random_from(23);
  for (int turn = 0; turn < 400 / check_scale(); turn++) {
    const wsgemm_type type = (wsgemm_type)(turn % N_TYPES);
    const int64_t m = check_random_in(&rng, 1, 40), n = check_random_in(&rng, 1, 40), k = check_random_in(&rng, 0, 40);
    const int64_t count = check_random_in(&rng, 0, 6);
    wsgemm_gemm_desc d = gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), m, n, k);
    const size_t bytes = type_bytes(type), room = 8 * 50 * 50 * bytes;
    unsigned char *memory[4];
    for (int i = 0; i < 4; i++) {
      memory[i] = malloc(room);
      REQUIRE(memory[i], "memory");
      for (size_t at = 0; at < room / bytes; at++) {
        struct arena arena = {memory[i], room};
        const struct matrix all = {type, true, (int64_t)(room / bytes), 1, (int64_t)(room / bytes), memory[i], &arena};
        matrix_set(&all, (int64_t)at, 0, (double)check_random_in(&rng, -3, 3), (double)check_random_in(&rng, -3, 3));
      }
    }
    memcpy(memory[3], memory[2], room);
    d.a = memory[0], d.b = memory[1], d.c = memory[2];
    d.lda += check_random_in(&rng, 0, 5), d.ldb += check_random_in(&rng, 0, 5), d.ldc += check_random_in(&rng, 0, 5);
    d.beta = scalar_make(type, 1, 0);
    d.batch_count = count;
    d.stride_a = check_random_in(&rng, 0, 1) * check_random_in(&rng, 0, 2500);
    d.stride_b = check_random_in(&rng, 0, 1) * check_random_in(&rng, 0, 2500);
    d.stride_c = 50 * 45 + check_random_in(&rng, 0, 100);
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    for (int64_t i = 0; i < count; i++) {
      wsgemm_gemm_desc one = d;
      one.batch_count = 1;
      one.a = memory[0] + (size_t)(i * d.stride_a) * bytes;
      one.b = memory[1] + (size_t)(i * d.stride_b) * bytes;
      one.c = memory[3] + (size_t)(i * d.stride_c) * bytes;
      CHECK(gemm_typed(NULL, &one) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
    char text[DESCRIPTION_BYTES];
    CHECK(memcmp(memory[2], memory[3], room) == 0, "%s: a batch of %lld differs from %lld single calls", gemm_describe(&d, text),
          (long long)count, (long long)count);
    for (int i = 0; i < 4; i++) free(memory[i]);
  }
}

static const struct check_case cases[] = {
    {"edges", edges}, {"blocks", blocks}, {"few", few}, {"few_paths", few_paths}, {"batches", batches}};
CHECK_MAIN("exact", cases)
