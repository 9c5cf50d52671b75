/* test_range.c - bfloat16 has the exponents of FP32, so its products leave FP32's range at both
 * ends: numbers of every size beside each other in one product, sums that cancel down to subnormal
 * ones, Inf and NaN at every kind of place. What a matrix unit would flush to zero or let overflow
 * has to come out as the header promises; that a row with such a unit does use it, and leaves it
 * where it must, is seen by its bits. */
#define _GNU_SOURCE
#include "support/rows.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct check_random rng;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&rng, low, high); }

/* The numbers of op(A) (m x k) and op(B) (k x n), row-major, and C as the call left it,
 * column-major floats or bfloat16. */
enum { MOST_M = 110, MOST_N = 110, MOST_K = 560 };
static uint16_t a[MOST_M * MOST_K], b[MOST_K * MOST_N], stored_a[MOST_M * MOST_K], stored_b[MOST_K * MOST_N],
    c_halves[MOST_M * MOST_N];
static float c_floats[MOST_M * MOST_N];

static double value_of(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return (double)value;
}

/* A number with a biased exponent in [low, high], 0 being that of subnormal ones. */
static uint16_t number(int low, int high) {
  const int exponent = (int)drawn(low, high), fraction = (int)drawn(exponent == 0, 127);
  return (uint16_t)(drawn(0, 1) << 15 | exponent << 7 | fraction);
}

static void store(const uint16_t *from, int64_t rows, int64_t cols, bool by_columns, uint16_t *to) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) to[by_columns ? i + j * rows : i * cols + j] = from[i * cols + j];
}

static wsgemm_gemm_desc run(wsgemm_handle *handle, int64_t m, int64_t n, int64_t k, wsgemm_type type_c, float alpha) {
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_BF16, WSGEMM_COL_MAJOR, all_ops[drawn(0, 1)], all_ops[drawn(0, 1)], m, n, k);
  store(a, m, k, d.transa == WSGEMM_NO_TRANS, stored_a);
  store(b, k, n, d.transb == WSGEMM_NO_TRANS, stored_b);
  d.a = stored_a, d.b = stored_b, d.alpha.s = alpha;
  d.type_c = type_c, d.c = type_c == WSGEMM_F32 ? (void *)c_floats : (void *)c_halves;
  CHECK(wsgemm_gemm(handle, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return d;
}

/* The call that d says against sums in double, in which the products are exact. Where the sum of
 * magnitudes leaves FP32, nothing is promised but what Inf and NaN in the operands make. Returns
 * how many results are subnormal. */
static int judge(const wsgemm_gemm_desc *d, const char *who) {
  const double u = ldexp(1, -24), gamma = (double)(d->k + 2) * u / (1 - (double)(d->k + 2) * u), alpha = (double)d->alpha.s;
  int n_wrong = 0, n_subnormal = 0;
  for (int64_t i = 0; i < d->m; i++)
    for (int64_t j = 0; j < d->n; j++) {
      double wanted = 0, magnitude = 0;
      for (int64_t p = 0; p < d->k; p++) {
        const double product = value_of(a[i * d->k + p]) * value_of(b[p * d->n + j]);
        wanted += product, magnitude += fabs(product);
      }
      wanted *= alpha, magnitude *= fmax(fabs(alpha), 1);
      const double got = d->type_c == WSGEMM_F32 ? (double)c_floats[i + j * d->m] : value_of(c_halves[i + j * d->m]);
      bool right = true;
      if (isnan(wanted)) {
        right = isnan(got);
      } else if (isinf(wanted)) {
        right = got == wanted;
      } else if (magnitude < (double)FLT_MAX / 2) {
        const double bound = (gamma + 1e-12) * magnitude + (2 * (double)d->k * fabs(alpha) + 4) * ldexp(1, -149);
        right = fabs(got - wanted) <= bound + type_half_ulp(d->type_c, fabs(wanted) + bound);
        n_subnormal += got != 0 && fabs(got) < (double)FLT_MIN;
      }
      char text[DESCRIPTION_BYTES];
      if (!right && n_wrong++ == 0)
        CHECK(false, "%s: %s: (%lld, %lld) is %.9g, not %.9g; magnitude %.9g", who, gemm_describe(d, text), (long long)i,
              (long long)j, got, wanted, magnitude);
    }
  CHECK(n_wrong == 0, "%s: %d elements are wrong", who, n_wrong);
  return n_subnormal;
}

static wsgemm_type drawn_type_c(void) { return drawn(0, 1) ? WSGEMM_F32 : WSGEMM_BF16; }

/* ---- Every size of number -------------------------------------------------------------------- */

/* Fills a matrix with stretches of numbers of one size each, or of zeros. */
static void fill_stretches(uint16_t *x, int64_t rows, int64_t cols) {
  static const int sizes[][2] = {{120, 134}, {120, 134}, {120, 134}, {60, 75},   {55, 130},
                                 {1, 20},    {0, 0},     {0, 3},     {200, 225}, {240, 254}};
  enum { N_SIZES = sizeof sizes / sizeof sizes[0], GRID = 128 };
  static const int64_t lengths[] = {1, 5, 16, 32, 33, 512};
  static int size[GRID * 8][GRID * 8];
  const int64_t down = lengths[drawn(0, 5)], across = lengths[drawn(0, 5)], plain = drawn(0, 3);
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < cols; j++) {
      int *of_stretch = &size[i / down][j / across];
      if (i % down == 0 && j % across == 0) *of_stretch = drawn(0, 4) < plain ? 0 : (int)drawn(0, N_SIZES);
      x[i * cols + j] =
          *of_stretch == N_SIZES ? (uint16_t)(drawn(0, 1) << 15) : number(sizes[*of_stretch][0], sizes[*of_stretch][1]);
    }
}

static void every_size(void) {
  static struct rows_of_type rows;
  static const int64_t ks[] = {1, 2, 3, 15, 31, 32, 33, 65, 100, 513, 555};
  rng = check_random_from(160);
  rows_open(&rows, WSGEMM_BF16);
  int n_subnormal = 0;
  for (int turn = 0; turn < 300 / check_scale() + 1; turn++) {
    const int64_t m = drawn(1, MOST_M), n = drawn(1, MOST_N), k = ks[drawn(0, 10)];
    fill_stretches(a, m, k);
    fill_stretches(b, k, n);
    for (int i = 0; i < rows.n_rows; i++) {
      const wsgemm_gemm_desc d = run(rows.handle[i], m, n, k, drawn_type_c(), drawn(0, 1) ? 1 : 0.37f);
      n_subnormal += judge(&d, rows.row[i].name);
    }
  }
  CHECK(n_subnormal > 0, "no result was subnormal");
  rows_close(&rows);
}

/* Sums of two products of normal numbers, both well inside FP32's range, that cancel to a subnormal
 * one, beside plain elements. */
static void cancellation(void) {
  static struct rows_of_type rows;
  rng = check_random_from(161);
  rows_open(&rows, WSGEMM_BF16);
  int n_subnormal = 0;
  for (int turn = 0; turn < 100 / check_scale() + 1; turn++) {
    const int64_t m = drawn(1, 70), n = drawn(1, 70), k = drawn(2, 70), first = drawn(0, k - 1), second = drawn(0, k - 1);
    memset(a, 0, sizeof a), memset(b, 0, sizeof b);
    const int exponent = (int)drawn(20, 100),
              other = 127 + 127 - (int)drawn(118, 125) - exponent; /* products of 2^-125 .. 2^-118 */
    for (int64_t i = 0; i < m; i++) {
      a[i * k + first] = (uint16_t)(exponent << 7 | drawn(0, 127));
      if (second != first)
        a[i * k + second] = (uint16_t)(a[i * k + first] + 0x8000 + (drawn(0, 1) && (a[i * k + first] & 127) < 127));
    }
    for (int64_t j = 0; j < n; j++) b[first * n + j] = b[second * n + j] = (uint16_t)(other << 7 | drawn(0, 127));
    for (int i = 0; i < rows.n_rows; i++) {
      const wsgemm_gemm_desc d = run(rows.handle[i], m, n, k, drawn_type_c(), 1);
      n_subnormal += judge(&d, rows.row[i].name);
    }
  }
  CHECK(n_subnormal > 0, "no result was subnormal");
  rows_close(&rows);
}

/* One Inf or NaN, or Inf and -Inf in one sum, at the corners of tiles and panels and at the last,
 * odd or even, k; the other operand has zeros at some of the places where they meet. */
static void not_finite(void) {
  static struct rows_of_type rows;
  enum { M = 37, N = 35 };
  static const int64_t ks[] = {1, 2, 5, 32, 33, 64, 95};
  static const uint16_t values[] = {0x7f80, 0xff80, 0x7fc0, 0x7f81};
  rng = check_random_from(162);
  rows_open(&rows, WSGEMM_BF16);
  for (int ki = 0; ki < 7; ki++)
    for (int place = 0; place < 4; place++)
      for (int at_k = 0; at_k < 4; at_k++)
        for (int value = 0; value < 5; value++)
          for (int in_b = 0; in_b < 2; in_b++) {
            if (drawn(1, check_scale()) != 1) continue;
            const int64_t k = ks[ki], last = (in_b ? N : M) - 1, lines[] = {0, 15, 16, last}, line = lines[place];
            const int64_t p = at_k == 0 ? 0 : at_k == 1 ? k / 2 : at_k == 2 ? k - 1 : (k + 13) % k;
            for (int64_t at = 0; at < M * k; at++) a[at] = drawn(0, 3) ? number(118, 130) : 0;
            for (int64_t at = 0; at < k * N; at++) b[at] = drawn(0, 3) ? number(118, 130) : 0;
            uint16_t *x = in_b ? b + line : a + line * k;
            const int64_t step = in_b ? N : 1;
            x[p * step] = values[value % 4];
            if (value == 4) x[(p + 1) % k * step] = 0xff80;
            for (int i = 0; i < rows.n_rows; i++) {
              const wsgemm_gemm_desc d = run(rows.handle[i], M, N, k, drawn_type_c(), 1);
              judge(&d, rows.row[i].name);
            }
          }
  rows_close(&rows);
}

/* ---- Where a matrix unit multiplies ---------------------------------------------------------- */

enum { UNIT_M = 101, UNIT_N = 102, UNIT_K = 100 };

static void run_floats(wsgemm_handle *handle, float c[UNIT_M * UNIT_N]) {
  run(handle, UNIT_M, UNIT_N, UNIT_K, WSGEMM_F32, 1);
  memcpy(c, c_floats, sizeof(float) * UNIT_M * UNIT_N);
}

/* Elements with the same bits in the lines [low, high) of C, rows or columns. */
static int n_same(const float *x, const float *y, bool columns, int64_t low, int64_t high) {
  int n = 0;
  for (int64_t at = 0; at < UNIT_M * UNIT_N; at++) {
    const int64_t line = columns ? at / UNIT_M : at % UNIT_M;
    n += line >= low && line < high && memcmp(&x[at], &y[at], sizeof *x) == 0;
  }
  return n;
}

/* The row with a matrix unit; without a name: there is none here. */
static struct kernel_row row_of_unit(void) {
  struct kernel_row all[MAX_ROWS], row = {0};
  const int n_all = usable_rows(all);
  for (int i = 0; i < n_all; i++)
    if (all[i].type == WSGEMM_BF16 && is_of_family(&all[i].info, "amx")) row = all[i];
  return row;
}

/* The unit sums in another order than the FP32 kernels do, so its bits are others where sums are
 * rounded. One number that does not suit it takes the panel it stands in back to those kernels'
 * bits, and nothing else. */
static void tiles_of_the_unit(void) {
  static const struct {
    uint16_t bits;
    bool suits;
  } numbers[] = {{0x0001, false}, {0x807f, false},  {0x0000, true},    {10 << 7, false},
                 {40 << 7, true}, {220 << 7, true}, {248 << 7, false}, {0x7f80, false}};
  static float by_unit[UNIT_M * UNIT_N], by_floats[UNIT_M * UNIT_N], plain[UNIT_M * UNIT_N];
  wsgemm_handle *unit = NULL, *floats = NULL;
  const struct kernel_row row = row_of_unit();
  if (!row.name) {
    check_skip("no row with a matrix unit");
    return;
  }
  rng = check_random_from(163);
  REQUIRE(wsgemm_create(&unit) == WSGEMM_SUCCESS && wsgemm_create(&floats) == WSGEMM_SUCCESS, "handles");
  REQUIRE(wsgemm_set_kernel(unit, row.name) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  REQUIRE(wsgemm_set_kernel(floats, "bgemm_avx512_32x12") == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  for (int64_t at = 0; at < UNIT_M * UNIT_K; at++) a[at] = number(120, 130);
  for (int64_t at = 0; at < UNIT_K * UNIT_N; at++) b[at] = number(120, 130);
  run_floats(unit, plain);
  run_floats(floats, by_floats);
  CHECK(n_same(plain, by_floats, false, 0, UNIT_M) < UNIT_M * UNIT_N / 2,
        "the unit is not used: %d elements have the FP32 kernels' bits", n_same(plain, by_floats, false, 0, UNIT_M));
  for (size_t x = 0; x < sizeof numbers / sizeof numbers[0]; x++)
    for (int turn = 0; turn < 8; turn++) {
      const bool in_b = turn % 2;
      const int64_t width = in_b ? row.nr : row.mr, n_lines = in_b ? UNIT_N : UNIT_M,
                    line = turn < 2 ? n_lines - 1 : drawn(0, n_lines - 1);
      const int64_t low = line / width * width, high = low + width < n_lines ? low + width : n_lines, p = drawn(0, UNIT_K - 1);
      const int n_in_panel = (int)((high - low) * (in_b ? UNIT_M : UNIT_N)), n_others = UNIT_M * UNIT_N - n_in_panel;
      uint16_t *element = in_b ? &b[p * UNIT_N + line] : &a[line * UNIT_K + p], before = *element;
      *element = numbers[x].bits;
      run_floats(unit, by_unit);
      run_floats(floats, by_floats);
      const int n_floats = n_same(by_unit, by_floats, in_b, low, high);
      CHECK((n_floats == n_in_panel) != numbers[x].suits,
            "%#x in %c(%lld, %lld): %d of the panel's %d elements have the FP32 kernels' bits", (unsigned)numbers[x].bits,
            in_b ? 'B' : 'A', (long long)line, (long long)p, n_floats, n_in_panel);
      const int n_kept = n_same(by_unit, plain, in_b, 0, low) + n_same(by_unit, plain, in_b, high, n_lines);
      CHECK(n_kept == n_others, "%#x in %c(%lld, %lld): %d elements of other panels changed", (unsigned)numbers[x].bits,
            in_b ? 'B' : 'A', (long long)line, (long long)p, n_others - n_kept);
      *element = before;
    }
  wsgemm_destroy(unit), wsgemm_destroy(floats);
}

/* ---- Tile registers, which the system gives or refuses --------------------------------------- */

static void multiply_plain(void) {
  for (int64_t at = 0; at < UNIT_M * UNIT_K; at++) a[at] = number(120, 130);
  for (int64_t at = 0; at < UNIT_K * UNIT_N; at++) b[at] = number(120, 130);
  const wsgemm_gemm_desc d = run(NULL, UNIT_M, UNIT_N, UNIT_K, WSGEMM_F32, 1);
  judge(&d, "default row");
}

/* Linux refuses them to a process with a signal stack that has no room for them: then all works
 * without. */
static void refused_child(void *unused) {
  static char memory[8192];
  const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  (void)unused;
  if (sigaltstack(&stack, NULL) == 0) CHECK(!row_of_unit().name, "%s is usable", row_of_unit().name);
  multiply_plain();
}

/* A thread that was there before the library's first call, which asks for them, and a child of the
 * process use them too. */
static void *use_late(void *barrier) {
  pthread_barrier_wait(barrier);
  pthread_barrier_wait(barrier);
  multiply_plain();
  return NULL;
}

static void use_in_child(void *unused) {
  (void)unused;
  multiply_plain();
}

static void granted_child(void *unused) {
  pthread_barrier_t barrier;
  pthread_t thread;
  (void)unused;
  REQUIRE(pthread_barrier_init(&barrier, NULL, 2) == 0 && pthread_create(&thread, NULL, use_late, &barrier) == 0, "thread");
  pthread_barrier_wait(&barrier);
  multiply_plain();
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  check_in_child("child", use_in_child, NULL);
}

static void tile_registers(void) {
  rng = check_random_from(164);
  check_in_child("refused", refused_child, NULL);
  check_in_child("granted", granted_child, NULL);
}

/* tile_registers first: what a process has been granted, its children have. */
static const struct check_case cases[] = {{"tile_registers", tile_registers},
                                          {"every_size", every_size},
                                          {"cancellation", cancellation},
                                          {"not_finite", not_finite},
                                          {"tiles_of_the_unit", tiles_of_the_unit}};
CHECK_MAIN("range", cases)
