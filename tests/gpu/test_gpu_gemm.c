/* test_gpu_gemm.c - every GPU row against the reference: exact on small whole numbers and within
 * the componentwise bound, round the edges of its work item and over whole shapes, all op pairs,
 * layouts, lds and alignments, guard bands round every matrix; NaN, Inf and beta = 0; bits equal
 * over policies, quanta, COARSE_FACTORs and runs. */
#include "gpu.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct check_random rng;

/* What C may be: of 16-bit types also the other one, and floats. */
static wsgemm_type type_c_of(wsgemm_type type, int turn) {
  static const wsgemm_type types_c[] = {WSGEMM_F32, WSGEMM_F16, WSGEMM_BF16};
  return type_is_half(type) ? types_c[turn % 3] : type;
}

/* What a row is used for: those that sum parts of k, and those of slices, begin at a longer k; one
 * slice has the accuracy of TF32. */
struct use {
  int64_t ks[18];
  int n_ks;
  wsgemm_math math;
};
static const struct use *use_of(const wsgemm_kernel_info *row) {
  static const struct use any = {{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 47, 48, 49, 64, 65, 100}, 18, WSGEMM_MATH_DEFAULT},
                          direct = {{0, 1, 7, 8, 9, 16, 17, 31, 32, 33, 64, 65, 127, 129, 255, 257, 1024, 1100},
                                    18,
                                    WSGEMM_MATH_DEFAULT},
                          flat = {{0, 1, 2, 7, 8, 31, 33, 63, 64, 65, 127, 128, 129, 255, 257, 1000, 1664, 3300},
                                  18,
                                  WSGEMM_MATH_DEFAULT},
                          tf32 = {{24, 25, 31, 32, 33, 63, 64, 65, 127, 129, 255, 257, 1024, 1100}, 14, WSGEMM_MATH_DEFAULT},
                          one_of_tf32 = {{24, 25, 31, 32, 33, 63, 64, 65, 127, 129, 255, 257, 1024, 1100}, 14, WSGEMM_MATH_TF32},
                          tf32w = {{40, 41, 63, 64, 65, 95, 96, 97, 129, 255, 257, 1024, 1100}, 13, WSGEMM_MATH_DEFAULT},
                          complex_tf32w = {{20, 21, 31, 32, 33, 47, 48, 49, 65, 127, 129, 1024, 1100}, 13, WSGEMM_MATH_DEFAULT},
                          in_parts = {{2048, 2049, 2111, 2112, 2113, 2200}, 6, WSGEMM_MATH_DEFAULT},
                          in_slices = {{128, 129, 191, 192, 193, 255, 300}, 7, WSGEMM_MATH_DEFAULT},
                          in_one_slice = {{128, 129, 191, 192, 193, 255, 300}, 7, WSGEMM_MATH_TF32};
  if (strcmp(row->family, "direct") == 0 || strcmp(row->family, "dmma") == 0 || strcmp(row->family, "ffma") == 0) return &direct;
  if (strcmp(row->family, "flat") == 0) return &flat;
  if (strcmp(row->family, "tf32x2") == 0) return &tf32;
  if (strcmp(row->family, "tf32w2") == 0) return type_is_complex(row->type) ? &complex_tf32w : &tf32w;
  if (strcmp(row->family, "tf32x1") == 0 || strcmp(row->family, "tf32w1") == 0) return &one_of_tf32;
  return row->cluster_splits > 1 ? &in_parts : row->n_slices > 1 ? &in_slices : row->n_slices == 1 ? &in_one_slice : &any;
}

/* Each row on its own, so that the reference is no larger than its work item asks for. */
static void edges_of_row(struct rows_of_type *rows, int i, enum fill fill, enum judge how, int part) {
  const struct use *use = use_of(&rows->row[i].info);
  const int64_t side = 2 * (rows->row[i].mr > rows->row[i].nr ? rows->row[i].mr : rows->row[i].nr) + 1;
  if (use->math == WSGEMM_MATH_TF32 && how != JUDGE_EXACT) return;
  CHECK(wsgemm_set_math(rows->handle[i], use->math) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  struct stage stage = stage_new(rows->type, side, side, use->ks[use->n_ks - 1], fill, &rng);
  for (int ki = 0; ki < use->n_ks; ki++) {
    product_extend(&stage.product, &stage.a, &stage.b, use->ks[ki]);
    cross_edges(&stage, rows, i, how, part, &rng);
  }
  stage_free(&stage);
}

static void edges(enum fill fill, enum judge how, int salt) {
  static struct rows_of_type rows;
  rng = check_random_from((unsigned long long)salt);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int i = 0; i < rows.n_rows; i++)
      edges_of_row(&rows, i, fill, how, (type_is_complex(rows.type) ? 160 : 40) * check_scale());
    rows_close(&rows);
  }
}

static void edges_exact(void) { edges(FILL_INTEGER, JUDGE_EXACT, 101); }
static void edges_bound(void) { edges(FILL_SPREAD, JUDGE_BOUND, 102); }

/* Whole shapes of all proportions on every row under drawn policies and quanta. */
static void shapes(void) {
  static const int64_t all[][3] = {{300, 200, 100}, {257, 513, 300}, {1, 700, 90},    {700, 1, 90},
                                   {1, 1, 5000},    {2, 900, 50},    {1000, 130, 40}, {129, 65, 1000},
                                   {512, 512, 64},  {64, 64, 4096},  {33, 1000, 17},  {640, 384, 256}};
  static struct rows_of_type rows;
  rng = check_random_from(103);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (size_t s = 0; s < sizeof all / sizeof all[0] && rows.n_rows > 0; s++) {
      const int64_t m = all[s][0], n = all[s][1], k = all[s][2];
      struct stage stage = stage_new(rows.type, m, n, k, FILL_UNIFORM, &rng);
      product_extend(&stage.product, &stage.a, &stage.b, k);
      for (int i = 0; i < rows.n_rows; i++)
        for (int t = 0, n_turns = check_scale() > 4 ? 1 : 4; t < n_turns; t++) {
          const int turn = n_turns == 1 ? (int)check_random_in(&rng, 0, 3) : t;
          const wsgemm_policy policy = all_policies[check_random_in(&rng, 0, N_POLICIES - 1)];
          const int quantum = (int)check_random_in(&rng, 0, 3);
          REQUIRE(wsgemm_set_policy(rows.handle[i], policy) == WSGEMM_SUCCESS &&
                      wsgemm_set_quantum(rows.handle[i], quantum) == WSGEMM_SUCCESS,
                  "settings: %s", wsgemm_last_error());
          wsgemm_gemm_desc d =
              gemm_desc(rows.type, draw_layout(&rng), draw_op(rows.type, &rng), draw_op(rows.type, &rng), m, n, k);
          d.alpha = scalar_make(rows.type, 1.5, turn == 1 ? -0.5 : 0);
          d.beta = scalar_make(rows.type, turn == 2 ? 0 : -0.75, turn == 3 ? 0.5 : 0);
          d.type_c = type_c_of(rows.type, turn);
          const struct layout_of_case where = layout_drawn(&rng);
          if (!run_case(&stage, rows.handle[i], &d, &where, turn % 2, JUDGE_BOUND, rows.row[i].name))
            CHECK(false, "that was with policy %d, quantum %d", (int)policy, quantum);
        }
      stage_free(&stage);
    }
    rows_close(&rows);
  }
}

/* alpha = 0 and k = 0 never read A and B; beta = 0 never reads C (case_store fills it with NaN). */
static void nothing_added(void) {
  static struct rows_of_type rows;
  rng = check_random_from(104);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    struct stage stage = stage_new(rows.type, 130, 70, 9, FILL_UNIFORM, &rng);
    for (int turn = 0; turn < 24; turn++) {
      const int64_t k = turn < 12 ? 0 : 9; /* the product only grows */
      wsgemm_gemm_desc d = gemm_desc(rows.type, draw_layout(&rng), WSGEMM_NO_TRANS, WSGEMM_TRANS, 130, 70, k);
      product_extend(&stage.product, &stage.a, &stage.b, k);
      d.alpha = scalar_make(rows.type, turn < 12 ? 2 : 0, 0);
      d.beta = scalar_make(rows.type, turn % 3 == 0 ? 0 : turn % 3 == 1 ? 1 : -0.5, turn % 6 == 5 ? 0.25 : 0);
      d.type_c = type_c_of(rows.type, turn / 3);
      const struct layout_of_case where = layout_drawn(&rng);
      run_case(&stage, rows.handle[0], &d, &where, turn % 2, JUDGE_BOUND, "scale");
    }
    stage_free(&stage);
    rows_close(&rows);
  }
}

static void sow(struct values *values, int n_seeds) {
  static const double seeds[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, 0};
  for (int i = 0; i < n_seeds; i++)
    values->re[check_random_in(&rng, 0, values->rows * values->cols - 1)] = seeds[check_random_in(&rng, 0, 3)];
}

/* A few NaN, Inf and 0 in A, B and C: every component of C is of the reference's class. */
static void spreading(void) {
  static struct rows_of_type rows;
  rng = check_random_from(105);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int turn = 0; turn < 40 && rows.n_rows > 0; turn++) {
      const int64_t m = check_random_in(&rng, 1, 140), n = check_random_in(&rng, 1, 140),
                    k = check_random_in(&rng, 1, 40) + turn % 2 * 128;
      struct stage stage = stage_new(rows.type, m, n, k, FILL_UNIFORM, &rng);
      sow(&stage.a, (int)check_random_in(&rng, 0, 3));
      sow(&stage.b, (int)check_random_in(&rng, 0, 3));
      sow(&stage.c, (int)check_random_in(&rng, 0, 2));
      product_extend(&stage.product, &stage.a, &stage.b, k);
      for (int i = 0; i < rows.n_rows; i++) {
        wsgemm_gemm_desc d = gemm_desc(rows.type, draw_layout(&rng), draw_op(rows.type, &rng), draw_op(rows.type, &rng), m, n, k);
        d.alpha = scalar_make(rows.type, turn % 3 ? 1 : -0.5, 0);
        d.beta = scalar_make(rows.type, turn % 4 == 0 ? 0 : turn % 4 == 1 ? 1 : 2, 0);
        d.type_c = type_c_of(rows.type, turn);
        const struct layout_of_case where = layout_drawn(&rng);
        char text[DESCRIPTION_BYTES];
        int64_t i_bad = -1, j_bad = -1;
        case_store(&stage, &d, &where);
        CHECK(call_on_device(&stage, rows.handle[i], &d, turn % 2) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        CHECK(reference_same_class(&d, &stage.product, &stage.c, &stage.stored[2], &i_bad, &j_bad),
              "%s: %s: element (%lld, %lld) is of another class than the reference's", rows.row[i].name, gemm_describe(&d, text),
              (long long)i_bad, (long long)j_bad);
        case_guards_intact(&stage, &d, rows.row[i].name);
      }
      stage_free(&stage);
    }
    rows_close(&rows);
  }
}

/* Those of three slices come after those of two, where one is forced. */
static bool is_sliced(const wsgemm_kernel_info *row) { return row->n_slices > 1; }
/* Rows that sum in the same order: all of a type, but those of slices, and those of multiply-adds
 * beside tensor cores. */
enum {
  MOST_GROUPS = 16,
  MOST_BLOCKS = 16,
  MOST_STEPS = 8,
  SUMS_PLAIN = 0,
  SUMS_SLICED,
  SUMS_FMA16,
  SUMS_PAIRS, /* complex: both products of each k in one chain */
  SUMS_PARTS, /* wgmma rows that share k among so many blocks */
  SUMS_DIRECT = SUMS_PARTS + MOST_BLOCKS + 1,
  SUMS_DMMA = SUMS_DIRECT + MOST_GROUPS * (MOST_BLOCKS + 1),
  SUMS_FLAT = SUMS_DMMA + MOST_GROUPS * (MOST_BLOCKS + 1),
  SUMS_TF32 = SUMS_FLAT + MOST_STEPS * MOST_GROUPS * (MOST_BLOCKS + 1),
  SUMS_TF32W = SUMS_TF32 + MOST_GROUPS * (MOST_BLOCKS + 1),
  N_SUMS = SUMS_TF32W + MOST_GROUPS * (MOST_BLOCKS + 1)
};
/* Direct rows by their parts of k: groups of a block, blocks of a cluster ("..._g4_k8"); of one
 * part it is one chain. Those of double precision have an order of their own within a step of k. */
static int sums_of_direct(const wsgemm_kernel_info *row) {
  int n_groups = 0, n_blocks = 0;
  const char *parts = strstr(row->name, "_g");
  REQUIRE(parts && sscanf(parts, "_g%d_k%d", &n_groups, &n_blocks) == 2 && n_groups < MOST_GROUPS && n_blocks <= MOST_BLOCKS,
          "%s", row->name);
  if (is_of_family(row, "tf32x2")) return SUMS_TF32 + n_groups * (MOST_BLOCKS + 1) + n_blocks;
  if (is_of_family(row, "tf32w2")) return SUMS_TF32W + n_groups * (MOST_BLOCKS + 1) + n_blocks;
  if (is_of_family(row, "dmma")) return SUMS_DMMA + n_groups * (MOST_BLOCKS + 1) + n_blocks;
  return n_groups * n_blocks == 1 ? SUMS_PLAIN : SUMS_DIRECT + n_groups * (MOST_BLOCKS + 1) + n_blocks;
}
/* Parts of k of an item, which blocks of a cluster sum, of wgmma rows. */
static int n_parts_of(const wsgemm_kernel_info *row) {
  const int n_parts = is_of_family(row, "wgmma") ? row->cluster_splits : 1;
  REQUIRE(n_parts >= 1 && n_parts <= MOST_BLOCKS, "%s: %d parts", row->name, n_parts);
  return n_parts;
}
/* Flat rows by their blocks of k, too ("..._s4_g8_k1"). */
static int sums_of_flat(const wsgemm_kernel_info *row) {
  int n_steps = 0, n_groups = 0, n_blocks = 0;
  const char *parts = strstr(row->name, "_s");
  REQUIRE(parts && sscanf(parts, "_s%d_g%d_k%d", &n_steps, &n_groups, &n_blocks) == 3 && n_steps < MOST_STEPS &&
              n_groups < MOST_GROUPS && n_blocks <= MOST_BLOCKS,
          "%s", row->name);
  return SUMS_FLAT + (n_steps * MOST_GROUPS + n_groups) * (MOST_BLOCKS + 1) + n_blocks;
}
static int sums_of(const wsgemm_kernel_info *row) {
  if (is_of_family(row, "flat")) return sums_of_flat(row);
  if (is_of_family(row, "direct dmma ffma tf32x2 tf32w2")) return sums_of_direct(row);
  if (n_parts_of(row) > 1) return SUMS_PARTS + n_parts_of(row);
  if (is_of_family(row, "outer") && type_is_complex(row->type)) return SUMS_PAIRS;
  return is_sliced(row) ? SUMS_SLICED : is_of_family(row, "fma16") ? SUMS_FMA16 : SUMS_PLAIN;
}
/* Where k is too short for so many parts, another row would stand in. */
static bool takes_k(const wsgemm_kernel_info *row, int64_t k) { return n_parts_of(row) == 1 || k >= 256 * n_parts_of(row); }

/* One digest for all rows that sum in the same order, whatever policy, quantum, run. */
static void bits(void) {
  static struct rows_of_type rows;
  static const int64_t sizes[][3] = {{700, 900, 333}, {64, 4000, 50}, {129, 257, 2200}};
  rng = check_random_from(106);
  for (int type = 0; type < N_TYPES; type++) {
    rows_open(&rows, (wsgemm_type)type);
    for (int s = 0; s < 3; s++) {
      const int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
      struct stage stage = stage_new(rows.type, m, n, k, FILL_UNIFORM, &rng);
      unsigned long long first[N_SUMS] = {0};
      int n_calls[N_SUMS] = {0};
      for (int i = 0; i < rows.n_rows; i++) {
        const int sums = sums_of(&rows.row[i].info);
        if (!takes_k(&rows.row[i].info, k)) continue;
        for (int policy = 0; policy < N_POLICIES; policy++)
          for (int turn = 0; turn < (is_of_family(&rows.row[i].info, "direct dmma ffma flat outer tf32x2 tf32w2") ? 1 : 3);
               turn++) { /* no quantum */
            wsgemm_gemm_desc d = gemm_desc(rows.type, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, m, n, k);
            d.type_c = type_c_of(rows.type, s);
            const struct layout_of_case where = layout_drawn(&rng);
            case_store(&stage, &d, &where);
            wsgemm_set_policy(rows.handle[i], all_policies[policy]);
            wsgemm_set_quantum(rows.handle[i], turn);
            CHECK(call_on_device(&stage, rows.handle[i], &d, true) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
            const unsigned long long digest = matrix_digest(&stage.stored[2]);
            if (n_calls[sums]++ == 0) first[sums] = digest;
            CHECK(digest == first[sums], "%s, policy %d, quantum %d: other bits than those before it", rows.row[i].name,
                  (int)all_policies[policy], turn);
          }
      }
      stage_free(&stage);
    }
    rows_close(&rows);
  }
}

static void batches(void) {
  enum { M = 70, N = 33, K = 21, COUNT = 37 };
  static float a[COUNT * M * K], b[COUNT * K * N], c[COUNT * M * N], expected[COUNT * M * N];
  rng = check_random_from(107);
  for (size_t i = 0; i < sizeof a / sizeof a[0]; i++) a[i] = (float)check_random_in(&rng, -3, 3);
  for (size_t i = 0; i < sizeof b / sizeof b[0]; i++) b[i] = (float)check_random_in(&rng, -3, 3);
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
  d.batch_count = COUNT, d.stride_a = M * K, d.stride_b = K * N, d.stride_c = M * N;
  d.a = a, d.b = b, d.c = expected;
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "on the CPU: %s", wsgemm_last_error());
  d.a = gpu_copy(a, sizeof a), d.b = gpu_copy(b, sizeof b), d.c = gpu_copy(c, sizeof c);
  CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "on the GPU: %s", wsgemm_last_error());
  GPU(cudaMemcpy(c, d.c, sizeof c, cudaMemcpyDeviceToHost));
  CHECK(memcmp(c, expected, sizeof c) == 0, "a batch of whole numbers differs from the CPU's");
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"edges_exact", edges_exact}, {"edges_bound", edges_bound},
                                            {"shapes", shapes},           {"nothing_added", nothing_added},
                                            {"spreading", spreading},     {"bits", bits},
                                            {"batches", batches}};
  gpu_open();
  return check_main("gpu_gemm", cases, sizeof cases / sizeof cases[0], argc, argv);
}
