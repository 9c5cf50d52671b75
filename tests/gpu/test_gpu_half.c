/* test_gpu_half.c - what is of 16-bit types alone on the GPU: every bit pattern is read as the
 * number that it stands for, in each layout and alignment; every sum is rounded once to C's type,
 * to nearest even; batches with lds and strides that are odd, zero or negative, at every alignment
 * of the pointers; the same bits by every way of copying, from caches that hold
 * nothing, and by every non-persistent row. Edges, bounds and special values are tested where those
 * of the other types are. Under PEDANTIC sums keep the bound where tensor cores lose it. */
#include "gpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const wsgemm_type halves[] = {WSGEMM_F16, WSGEMM_BF16}, types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
static struct check_random rng;
static struct rows_of_type rows;

static uint16_t one_of(wsgemm_type type) { return type == WSGEMM_F16 ? 0x3c00 : 0x3f80; }

/* All patterns times 1, into each type of C: each comes out as it is, or rounded to the other type
 * (a NaN as one). As A by columns, as A transposed, and as B; aligned, and one element off. */
static void conversions_of(wsgemm_type type) {
  enum { ALL = 65536 };
  uint16_t *patterns = malloc((ALL + 1) * sizeof *patterns);
  unsigned char *c = malloc(ALL * sizeof(float));
  REQUIRE(patterns && c, "memory");
  for (int at = 0; at <= ALL; at++) patterns[at] = (uint16_t)(at - 1);
  const uint16_t one = one_of(type);
  uint16_t *device_one = gpu_copy(&one, sizeof one), *device_patterns = gpu_copy(patterns + 1, ALL * sizeof *patterns),
           *device_shifted = gpu_copy(patterns, (ALL + 1) * sizeof *patterns);
  void *device_c = gpu_alloc(ALL * sizeof(float));
  rows_open(&rows, type);
  for (int i = 0; i < rows.n_rows; i++)
    for (int form = 0; form < 24; form++) {
      const bool trans = form & 1, is_b = form & 2, is_shifted = form & 4;
      const wsgemm_type type_c = types_c[form / 8];
      const uint16_t *all = is_shifted ? device_shifted + 1 : device_patterns;
      wsgemm_gemm_desc d =
          gemm_desc(type, is_b ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, ALL, 1, 1);
      if (is_b) d.m = 1, d.n = ALL, d.ldb = ALL, d.ldc = ALL;
      if (trans && is_b) d.transb = WSGEMM_TRANS, d.ldb = 1;
      if (trans && !is_b) d.transa = WSGEMM_TRANS, d.lda = 1;
      d.a = is_b ? device_one : all, d.b = is_b ? all : device_one;
      d.type_c = type_c, d.c = device_c;
      CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      GPU(cudaMemcpy(c, device_c, ALL * type_bytes(type_c), cudaMemcpyDeviceToHost));
      int n_wrong = 0;
      for (int at = 0; at < ALL; at++) {
        const double wanted = type_round(type_c, element_value(type, &patterns[at + 1]));
        const double got = element_value(type_c, c + (size_t)at * type_bytes(type_c));
        /* The sum 0 + -0 is 0. */
        const bool right = wanted == 0 ? got == 0 : same_number(got, wanted);
        if (!right && n_wrong++ == 0)
          CHECK(false, "%s to %c, form %d: %#x is %g, not %g", rows.row[i].name, type_letter(type_c), form, (unsigned)at, got,
                wanted);
      }
      CHECK(n_wrong == 0, "%s to %c, form %d: %d patterns are wrong", rows.row[i].name, type_letter(type_c), form, n_wrong);
    }
  rows_close(&rows);
  gpu_free(device_one), gpu_free(device_patterns), gpu_free(device_shifted), gpu_free(device_c);
  free(patterns), free(c);
}

static void conversions(void) {
  for (int t = 0; t < 2; t++) conversions_of(halves[t]);
}

/* A float that lies on, or next to, a number of the type or half-way between two of them, anywhere
 * in its range or just beyond. */
static float drawn_near(wsgemm_type type) {
  const int low = ilogb(type_least(type)) - 2, high = ilogb(type_largest(type)) + (type == WSGEMM_F16 ? 2 : 0);
  const double x = ldexp(1 + fabs(check_random_unit(&rng)), (int)check_random_in(&rng, low, high));
  double near = type_round(type, x);
  if (isinf(near)) near = type_largest(type);
  near += type_half_ulp(type, near) * (double)check_random_in(&rng, -1, 1);
  const float f = (float)(check_random_in(&rng, 0, 1) ? near : -near);
  const int64_t turn = check_random_in(&rng, -2, 2);
  return turn == 0 || turn == 2 ? f : nextafterf(f, turn < 0 ? -INFINITY : INFINITY);
}

/* 1 * 1 scaled by alpha is alpha: C is alpha rounded to its type, in whole columns and in what is
 * left of one. */
static void one_rounding(void) {
  enum { M = 37, N_TURNS = 3000 };
  uint16_t c[M];
  rng = check_random_from(160);
  uint16_t *device_c = gpu_alloc(sizeof c);
  for (int t = 0; t < 2; t++) {
    uint16_t ones[M];
    for (int at = 0; at < M; at++) ones[at] = one_of(halves[t]);
    uint16_t *device_a = gpu_copy(ones, sizeof ones);
    rows_open(&rows, halves[t]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int turn = 0; turn < N_TURNS / check_scale(); turn++) {
        const wsgemm_type type_c = halves[turn % 2];
        wsgemm_gemm_desc d = gemm_desc(halves[t], WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, 1, 1);
        d.a = d.b = device_a, d.c = device_c, d.type_c = type_c;
        d.alpha.s = turn % 1000 == 7 ? NAN : drawn_near(type_c);
        if (d.alpha.s == 0) continue; /* no product at all: elsewhere */
        CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        GPU(cudaMemcpy(c, device_c, sizeof c, cudaMemcpyDeviceToHost));
        const double wanted = type_round(type_c, (double)d.alpha.s);
        int n_wrong = 0;
        for (int at = 0; at < M; at++)
          if (!same_number(element_value(type_c, &c[at]), wanted) && n_wrong++ == 0)
            CHECK(false, "%s to %c: alpha %.9g gives %.9g, not %.9g", rows.row[i].name, type_letter(type_c), (double)d.alpha.s,
                  element_value(type_c, &c[at]), wanted);
        CHECK(n_wrong == 0, "%d of %d elements are wrong", n_wrong, (int)M);
      }
    rows_close(&rows);
    gpu_free(device_a);
  }
  gpu_free(device_c);
}

/* Elements of type, from somewhere on in a host buffer and a device buffer of the same size. */
enum { BUFFER_BYTES = 1 << 20 };
struct twin {
  unsigned char *host, *device;
};

static struct twin twin_new(wsgemm_type type) {
  struct twin twin = {malloc(BUFFER_BYTES), gpu_alloc(BUFFER_BYTES)};
  REQUIRE(twin.host != NULL, "memory");
  const struct arena arena = {twin.host, BUFFER_BYTES};
  const struct matrix all = {type, true, BUFFER_BYTES / (int64_t)type_bytes(type), 1, BUFFER_BYTES, twin.host, &arena};
  for (int64_t at = 0; at < all.rows; at++) matrix_set(&all, at, 0, (double)check_random_in(&rng, -3, 3), 0);
  gpu_put(twin.device, twin.host, BUFFER_BYTES);
  return twin;
}

static void twin_free(struct twin *twin) {
  free(twin->host);
  gpu_free(twin->device);
}

/* Whole numbers, so that the CPU's result is the GPU's: all of C's buffer must be, also between and
 * beyond the matrices. */
static void batches(void) {
  enum { N_TURNS = 400, ORIGIN = BUFFER_BYTES / 4 };
  rng = check_random_from(161);
  for (int turn = 0; turn < N_TURNS / check_scale(); turn++) {
    const wsgemm_type type = halves[turn % 2], type_c = types_c[turn / 2 % 3];
    const int64_t m = check_random_in(&rng, 1, 90), n = check_random_in(&rng, 1, 90), k = check_random_in(&rng, 1, 150);
    struct twin a = twin_new(type), b = twin_new(type), c = twin_new(type_c);
    wsgemm_gemm_desc d = gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), m, n, k);
    d.type_c = type_c;
    d.batch_count = check_random_in(&rng, 1, 4);
    d.alpha = scalar_make(type, (double)check_random_in(&rng, 1, 3), 0);
    d.beta = scalar_make(type, (double)check_random_in(&rng, -1, 1), 0);
    d.lda += check_random_in(&rng, 0, 9), d.ldb += check_random_in(&rng, 0, 9), d.ldc += check_random_in(&rng, 0, 9);
    /* Each of A, B: as far apart as drawn, one upon the other, or backwards; C never one upon the
     * other. */
    int64_t *strides[3] = {&d.stride_a, &d.stride_b, &d.stride_c};
    int64_t apart[3] = {17000, 17000, d.ldc * (m > n ? m : n)};
    ptrdiff_t shift[3];
    for (int x = 0; x < 3; x++) {
      apart[x] += check_random_in(&rng, 0, 9);
      *strides[x] = x < 2 && check_random_in(&rng, 0, 4) == 0 ? 0 : check_random_in(&rng, 0, 3) == 0 ? -apart[x] : apart[x];
      shift[x] = ORIGIN + (ptrdiff_t)check_random_in(&rng, 0, 9) * (ptrdiff_t)type_bytes(x < 2 ? type : type_c);
    }
    wsgemm_gemm_desc there = d;
    d.a = a.host + shift[0], d.b = b.host + shift[1], d.c = c.host + shift[2];
    there.a = a.device + shift[0], there.b = b.device + shift[1], there.c = c.device + shift[2];
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "on the CPU: %s", wsgemm_last_error());
    CHECK(wsgemm_gemm(NULL, &there) == WSGEMM_SUCCESS, "on the GPU: %s", wsgemm_last_error());
    unsigned char *got = malloc(BUFFER_BYTES);
    REQUIRE(got != NULL, "memory");
    GPU(cudaMemcpy(got, c.device, BUFFER_BYTES, cudaMemcpyDeviceToHost));
    char text[DESCRIPTION_BYTES];
    CHECK(memcmp(got, c.host, BUFFER_BYTES) == 0, "%s, %lld products %lld, %lld, %lld apart: other bytes than the CPU's",
          gemm_describe(&there, text), (long long)d.batch_count, (long long)d.stride_a, (long long)d.stride_b,
          (long long)d.stride_c);
    free(got);
    twin_free(&a), twin_free(&b), twin_free(&c);
  }
}

/* By 16 bytes, by pairs and by single elements the same numbers come to the same places: one digest
 * for every alignment and ld. */
static void ways_of_copying(void) {
  enum { M = 150, N = 140, K = 333 };
  rng = check_random_from(162);
  for (int t = 0; t < 2; t++) {
    rows_open(&rows, halves[t]);
    struct stage stage = stage_new(halves[t], M, N, K, FILL_UNIFORM, &rng);
    for (int i = 0; i < rows.n_rows; i++)
      for (int ops = 0; ops < 4; ops++) {
        unsigned long long first = 0;
        for (int turn = 0; turn < 12; turn++) {
          wsgemm_gemm_desc d = gemm_desc(halves[t], WSGEMM_COL_MAJOR, all_ops[ops & 1], all_ops[ops >> 1], M, N, K);
          d.type_c = WSGEMM_F32;
          struct layout_of_case where = layout_drawn(&rng);
          for (int x = 0; x < 2 && turn < 4; x++) { /* the drawn ones are seldom aligned */
            const int64_t least = x == 0 ? d.lda : d.ldb;
            where.pad[x] = (int)((8 - least % 8) % 8) + (turn >= 2 ? 2 : 0);
            where.place[x] = PLACE_START;
          }
          case_store(&stage, &d, &where);
          CHECK(call_on_device(&stage, rows.handle[i], &d, true) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
          const unsigned long long digest = matrix_digest(&stage.stored[2]);
          if (turn == 0) first = digest;
          char text[DESCRIPTION_BYTES];
          CHECK(digest == first, "%s: %s: other bits", rows.row[i].name, gemm_describe(&d, text));
        }
      }
    stage_free(&stage);
    rows_close(&rows);
  }
}

/* Items of few k blocks, which come late as they come from memory, and several for each block: the
 * same bits every time, by each row with one order of summation. Consumers in turns once took the
 * stages of another for their own here (tests/host/test_pipeline.cpp). */
static void few_k_blocks_from_memory(void) {
  enum { M = 2560, N = 2560, FLUSHED = 192 << 20 };
  static const int ks[] = {64, 128, 256, 320, 384, 448};
  static const wsgemm_policy policies[] = {WSGEMM_POLICY_AUTO,
                                           WSGEMM_POLICY_FIXED_BLOCKS}; /* the latter without waits for tickets */
  const size_t most = (size_t)M * 448, c_bytes = (size_t)M * N * sizeof(uint16_t);
  uint16_t *host = malloc(most * sizeof *host);
  REQUIRE(host, "memory");
  rng = check_random_from(163);
  void *flushed = gpu_alloc(FLUSHED), *c = gpu_alloc(c_bytes);
  for (int t = 0; t < 2; t++) {
    const uint16_t half = (uint16_t)(one_of(halves[t]) - (halves[t] == WSGEMM_F16 ? 0x400 : 0x80));
    for (size_t i = 0; i < most; i++)
      host[i] = (uint16_t)(half | check_random_in(&rng, 0, 1) << 15 | check_random_in(&rng, 0, 127));
    void *a = gpu_copy(host, most * sizeof *host), *b = gpu_copy(host, most * sizeof *host);
    rows_open(&rows, halves[t]);
    for (size_t k = 0; k < sizeof ks / sizeof ks[0]; k++)
      for (int beta = 0; beta < 2; beta++) {
        unsigned long long first = 0;
        for (int i = 0; i < rows.n_rows; i++) {
          const wsgemm_kernel_info *row = &rows.row[i].info;
          /* parts of k: another order */
          if (!is_of_family(row, "wgmma") || row->cluster_splits > 1) continue;
          /* what this is about */
          const int n_turns = row->is_ping_pong ? 20 : 4;
          for (int turn = 0; turn < n_turns; turn++) {
            wsgemm_gemm_desc d = gemm_desc(halves[t], WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, M, N, ks[k]);
            d.a = a, d.b = b, d.c = c, d.beta.s = (float)beta;
            REQUIRE(wsgemm_set_policy(rows.handle[i], policies[turn % 2]) == WSGEMM_SUCCESS, "policy");
            GPU(cudaMemset(c, 0x11, c_bytes));
            GPU(cudaMemset(flushed, turn, FLUSHED));
            CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
            const unsigned long long digest = gpu_digest(c, c_bytes);
            if (first == 0) first = digest;
            CHECK(digest == first, "%s, k = %d, beta = %d, turn %d: other bits", rows.row[i].name, ks[k], beta, turn);
          }
        }
      }
    rows_close(&rows);
    gpu_free(a), gpu_free(b);
  }
  gpu_free(flushed), gpu_free(c);
  free(host);
}

/* ---- non-persistent rows --------------------------------------------------------------------- */

/* Rows of wgmma whose names end in k1, k2, .., s2, s4k2, .. */
static bool is_non_persistent(const struct kernel_row *row) {
  return is_of_family(&row->info, "wgmma") && strchr("ks", strrchr(row->name, '_')[1]);
}

static unsigned long long digest_by(int row_idx, struct stage *stage, wsgemm_gemm_desc *d, const struct layout_of_case *where) {
  case_store(stage, d, where);
  CHECK(call_on_device(stage, rows.handle[row_idx], d, true) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  (void)case_guards_intact(stage, d, rows.row[row_idx].name);
  return matrix_digest(&stage->stored[2]);
}

/* One call by all of them, and by mma16. Exact values have one sum in any order; other values where a
 * sum is one chain, which invariant mode makes of mma16's. */
static int beside_mma16(int mma16_idx, struct stage *stage, wsgemm_gemm_desc *d, bool is_exact, void *device) {
  const struct layout_of_case where = layout_drawn(&rng);
  REQUIRE(wsgemm_set_invariant(rows.handle[mma16_idx], !is_exact) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  const unsigned long long expected = digest_by(mma16_idx, stage, d, &where);
  wsgemm_gemm_desc there = *d; /* d is of host memory, of which a mirror is on the device */
  there.a = there.b = there.c = device;
  int n_rows = 0;
  for (int i = 0; i < rows.n_rows; i++) {
    if (!is_non_persistent(&rows.row[i]) || !explained_is(rows.handle[i], &there, "kernel", rows.row[i].name)) continue;
    if (!is_exact && rows.row[i].info.cluster_splits > 1) continue;
    char text[DESCRIPTION_BYTES];
    CHECK(digest_by(i, stage, d, &where) == expected, "%s: %s: other bits than %s", rows.row[i].name, gemm_describe(d, text),
          rows.row[mma16_idx].name);
    n_rows++;
  }
  return n_rows;
}

/* Shapes of a few items and of parts of one, k of whole blocks and with tails, all ops. */
static void non_persistent(void) {
  enum { M = 530, N = 600, K = 900 };
  rng = check_random_from(165);
  void *device = gpu_alloc(1);
  for (int t = 0; t < 2; t++) {
    rows_open(&rows, halves[t]);
    int mma16_idx = -1, n_rows = 0;
    for (int i = 0; i < rows.n_rows && mma16_idx < 0; i++)
      if (is_of_family(&rows.row[i].info, "mma16")) mma16_idx = i;
    REQUIRE(mma16_idx >= 0, "no row of mma16");
    for (int turn = 0; turn < 24 / check_scale() + 8; turn++) {
      const bool is_exact = turn % 2;
      const int64_t m = check_random_in(&rng, 2, turn % 4 < 2 ? 140 : M), n = check_random_in(&rng, 2, turn % 3 ? 140 : N),
                    k = turn % 5 ? check_random_in(&rng, 1, turn % 5 == 1 ? 70 : K) : 64 * check_random_in(&rng, 1, 8);
      struct stage stage = stage_new(halves[t], m, n, k, is_exact ? FILL_INTEGER : FILL_UNIFORM, &rng);
      wsgemm_gemm_desc d = gemm_desc(halves[t], draw_layout(&rng), draw_op(halves[t], &rng), draw_op(halves[t], &rng), m, n, k);
      d.type_c = types_c[turn % 3];
      d.alpha.s = turn % 7 ? 1 : -2, d.beta.s = turn % 4 == 3 ? 1 : 0;
      n_rows += beside_mma16(mma16_idx, &stage, &d, is_exact, device);
      stage_free(&stage);
    }
    CHECK(n_rows >= 100, "only %d calls", n_rows);
    rows_close(&rows);
  }
  gpu_free(device);
}

/* ---- subnormal numbers beside large partners ------------------------------------------------- */

/* Elements of one k: of A, and of B; a subnormal number times a large one is not large, but tensor
 * cores align all products to what it would be if it were normal (2^-14, or of bfloat16 2^-126).
 * The others lie where that costs them their last bits, or all. */
enum pair_kind { TINY_LARGE, LARGE_TINY, MODERATE, N_PAIR_KINDS };

static double drawn_of_kind(wsgemm_type type, bool is_tiny, bool is_large) {
  const bool is_f16 = type == WSGEMM_F16;
  const double sign = check_random_in(&rng, 0, 1) ? 1 : -1;
  if (is_tiny) return sign * (double)check_random_in(&rng, 1, 7) * (is_f16 ? 0x1p-24 : 0x1p-133);
  const double fraction = 1 + (double)check_random_in(&rng, 0, is_f16 ? 1023 : 127) / (is_f16 ? 1024 : 128);
  const int exponent =
      is_large ? (int)check_random_in(&rng, is_f16 ? 12 : 123, is_f16 ? 14 : 125) : (int)check_random_in(&rng, -14, -12);
  return sign * ldexp(fraction, exponent);
}

/* A and B of the stage: the products of each k are of one kind. */
static void fill_with_pairs(struct stage *stage, wsgemm_type type, int64_t k) {
  for (int64_t p = 0; p < k; p++) {
    const int64_t turn = check_random_in(&rng, 0, 15);
    const enum pair_kind kind = turn == 0 || p == 0 ? TINY_LARGE : turn == 1 ? LARGE_TINY : MODERATE;
    for (int64_t i = 0; i < stage->a.rows; i++)
      stage->a.re[i * stage->a.cols + p] = drawn_of_kind(type, kind == TINY_LARGE, kind == LARGE_TINY);
    for (int64_t j = 0; j < stage->b.cols; j++)
      stage->b.re[p * stage->b.cols + j] = drawn_of_kind(type, kind == LARGE_TINY, kind == TINY_LARGE);
  }
}

static wsgemm_gemm_desc drawn_shape(const struct stage *stage, wsgemm_type type, int64_t k) {
  wsgemm_gemm_desc d =
      gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), stage->a.rows, stage->b.cols, k);
  d.type_c = types_c[check_random_in(&rng, 0, 2)];
  return d;
}

/* Every row, and none by name, within the bound of C of each type; by default at least some
 * products are not, or nothing here tests anything. k short, long, and cut into parts. */
static void pedantic(void) {
  static const int64_t shapes[][3] = {{130, 70, 16}, {300, 257, 64}, {64, 64, 6000}, {1, 300, 500},
                                      {300, 1, 900}, {33, 65, 2000}, {1, 1, 6000},   {257, 129, 128}};
  enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };
  int n_beyond = 0;
  rng = check_random_from(164);
  for (int t = 0; t < 2; t++) {
    rows_open(&rows, halves[t]);
    for (int s = 0; s < N_SHAPES; s++) {
      const int64_t k = shapes[s][2];
      struct stage stage = stage_new(halves[t], shapes[s][0], shapes[s][1], k, FILL_UNIFORM, &rng);
      fill_with_pairs(&stage, halves[t], k);
      product_extend(&stage.product, &stage.a, &stage.b, k);
      for (int i = -1; i < rows.n_rows; i++) {
        wsgemm_gemm_desc d = drawn_shape(&stage, halves[t], k);
        const struct layout_of_case where = layout_drawn(&rng);
        wsgemm_handle *h = i < 0 ? NULL : rows.handle[i];
        d.math = WSGEMM_MATH_PEDANTIC;
        run_case(&stage, h, &d, &where, false, JUDGE_BOUND, i < 0 ? "pedantic" : rows.row[i].name);
        d.math = WSGEMM_MATH_DEFAULT, d.type_c = WSGEMM_F32;
        case_store(&stage, &d, &where);
        CHECK(call_on_device(&stage, h, &d, false) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        n_beyond += !reference_judge(&d, &stage.product, &stage.c, &stage.stored[2]).passed;
      }
      stage_free(&stage);
    }
    rows_close(&rows);
  }
  CHECK(n_beyond > 0, "tensor cores keep the bound, too");
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"conversions", conversions},
                                            {"one_rounding", one_rounding},
                                            {"batches", batches},
                                            {"ways_of_copying", ways_of_copying},
                                            {"few_k_blocks_from_memory", few_k_blocks_from_memory},
                                            {"non_persistent", non_persistent},
                                            {"pedantic", pedantic}};
  gpu_open();
  return check_main("gpu_half", cases, sizeof cases / sizeof cases[0], argc, argv);
}
