/* test_half.c - what is of half precision alone: every one of the 65536 bit patterns is read as the
 * number that it stands for, and every sum rounded once, to nearest even, with ties, overflow and
 * subnormal results; C of another type; what wsgemm_explain says of it. Edges, bounds, special
 * values and bits are tested where those of the other types are. */
#include "support/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const wsgemm_type halves[] = {WSGEMM_F16, WSGEMM_BF16}, types_c[] = {WSGEMM_F16, WSGEMM_BF16, WSGEMM_F32};
static struct check_random rng;
static struct rows_of_type rows;

/* One column of all patterns times 1, into each type of C: each comes out as it is, or rounded to
 * the other half (a NaN as one). As A by columns, as A transposed, and as B: the operands are
 * packed in different ways. */
static void conversions_of(wsgemm_type type) {
  enum { ALL = 65536 };
  uint16_t *patterns = malloc(ALL * sizeof *patterns), one;
  unsigned char *c = malloc(ALL * sizeof(float));
  REQUIRE(patterns && c, "memory");
  for (int at = 0; at < ALL; at++) patterns[at] = (uint16_t)at;
  one = type == WSGEMM_F16 ? 0x3c00 : 0x3f80;
  CHECK(element_value(type, &one) == 1, "one");
  rows_open(&rows, type);
  for (int i = 0; i < rows.n_rows; i++)
    for (int form = 0; form < 12; form++) {
      const bool trans = form & 1, is_b = form & 2;
      const wsgemm_type type_c = types_c[form / 4];
      wsgemm_gemm_desc d =
          gemm_desc(type, is_b ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, ALL, 1, 1);
      if (is_b) d.m = 1, d.n = ALL, d.ldb = ALL, d.ldc = ALL;
      if (trans && is_b) d.transb = WSGEMM_TRANS, d.ldb = 1;
      if (trans && !is_b) d.transa = WSGEMM_TRANS, d.lda = 1;
      d.a = is_b ? &one : patterns, d.b = is_b ? patterns : &one;
      d.type_c = type_c, d.c = c;
      CHECK(gemm_typed(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      int n_wrong = 0;
      for (int at = 0; at < ALL; at++) {
        const double wanted = type_round(type_c, element_value(type, &patterns[at]));
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
  float f = (float)(check_random_in(&rng, 0, 1) ? near : -near);
  const int64_t turn = check_random_in(&rng, -2, 2);
  return turn == 0 || turn == 2 ? f : nextafterf(f, turn < 0 ? -INFINITY : INFINITY);
}

/* 1 * 1 scaled by alpha is alpha: C is alpha rounded to its type. With beta = 1 and C = alpha
 * before, alpha + C: rounded to float, then to C's type. */
static void one_rounding(void) {
  enum { M = 37 };
  rng = check_random_from(150);
  for (int t = 0; t < 2; t++) {
    rows_open(&rows, halves[t]);
    uint16_t a[M], b, c[M], before[M];
    b = halves[t] == WSGEMM_F16 ? 0x3c00 : 0x3f80;
    for (int at = 0; at < M; at++) a[at] = b;
    for (int i = 0; i < rows.n_rows; i++)
      for (int turn = 0; turn < 40000 / check_scale(); turn++) {
        const wsgemm_type type_c = halves[check_random_in(&rng, 0, 1)];
        const bool adds = check_random_in(&rng, 0, 3) == 0;
        const int64_t m = check_random_in(&rng, 0, 2) == 0 ? M : 1;
        wsgemm_gemm_desc d = gemm_desc(halves[t], WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, 1, 1);
        d.a = a, d.b = &b, d.c = c, d.type_c = type_c;
        d.alpha.s = check_random_in(&rng, 0, 999) == 7 ? NAN : drawn_near(type_c);
        if (d.alpha.s == 0) continue; /* no product at all: elsewhere */
        d.beta.s = adds;
        for (int at = 0; at < M; at++) before[at] = c[at] = (uint16_t)(check_random_bits(&rng) & (adds ? 0xb3ff : 0xffff));
        CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        int n_wrong = 0;
        for (int64_t at = 0; at < m; at++) {
          const float old = (float)element_value(type_c, &before[at]);
          volatile float sum = d.alpha.s; /* volatile: rounded to float here */
          if (adds) sum = sum + old;
          const double wanted = type_round(type_c, (double)sum), got = element_value(type_c, &c[at]);
          if (!same_number(got, wanted) && n_wrong++ == 0)
            CHECK(false, "%s to %c: alpha %.9g %s %.9g gives %.9g, not %.9g", rows.row[i].name, type_letter(type_c),
                  (double)d.alpha.s, adds ? "+" : "over", (double)old, got, wanted);
        }
        CHECK(n_wrong == 0, "%d of %lld elements are wrong", n_wrong, (long long)m);
      }
    CHECK(rows.n_rows > 0, "rows");
    rows_close(&rows);
  }
}

/* A batch into each type of C is what as many single products are; nothing between the matrices of
 * C is written. */
static void mixed_batches(void) {
  rng = check_random_from(151);
  for (int turn = 0; turn < 600 / check_scale(); turn++) {
    const wsgemm_type type = halves[turn % 2], type_c = types_c[turn / 2 % 3];
    const int64_t m = check_random_in(&rng, 1, 50), n = check_random_in(&rng, 1, 50), k = check_random_in(&rng, 0, 60), count = 5;
    wsgemm_gemm_desc d = gemm_desc(type, draw_layout(&rng), draw_op(type, &rng), draw_op(type, &rng), m, n, k);
    const int64_t room = count * 60 * 60;
    uint16_t *a = malloc((size_t)room * 2), *b = malloc((size_t)room * 2);
    unsigned char *c = malloc((size_t)room * 4), *single = malloc((size_t)room * 4);
    REQUIRE(a && b && c && single, "memory");
    for (int64_t at = 0; at < room; at++) /* positive numbers below 2, and any bits in C */
      a[at] = (uint16_t)check_random_in(&rng, 0x3000, 0x3bff), b[at] = (uint16_t)check_random_in(&rng, 0x3000, 0x3bff);
    for (int64_t at = 0; at < room * 4; at++) c[at] = single[at] = (unsigned char)check_random_bits(&rng);
    d.type_c = type_c;
    d.beta.s = (float)(turn % 3);
    d.alpha.s = turn % 7 ? 0.75f : 0;
    d.ldc += check_random_in(&rng, 0, 5);
    d.batch_count = count;
    d.stride_a = turn % 5 ? 60 * 60 : 0, d.stride_b = 60 * 60, d.stride_c = 60 * 60 - 7;
    d.a = a, d.b = b, d.c = c;
    wsgemm_set_num_threads(NULL, 1 + turn % 4);
    CHECK(wsgemm_gemm(NULL, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    for (int64_t i = 0; i < count; i++) {
      wsgemm_gemm_desc one = d;
      one.batch_count = 1;
      one.a = a + i * d.stride_a, one.b = b + i * d.stride_b, one.c = single + (size_t)(i * d.stride_c) * type_bytes(type_c);
      CHECK(gemm_typed(NULL, &one) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
    char text[DESCRIPTION_BYTES];
    CHECK(memcmp(c, single, (size_t)room * 4) == 0, "%s: a batch differs from single calls", gemm_describe(&d, text));
    free(a), free(b), free(c), free(single);
  }
  wsgemm_set_num_threads(NULL, 0);
}

static void explained(void) {
  for (int t = 0; t < 2; t++)
    for (int to = 0; to < 3; to++) {
      wsgemm_gemm_desc d = gemm_desc(halves[t], WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 300, 300, 300);
      d.type_c = types_c[to];
      char text[4096], wanted[100];
      static const char *const names[N_TYPES] = {[WSGEMM_F32] = "f32", [WSGEMM_F16] = "f16", [WSGEMM_BF16] = "bf16"};
      wsgemm_explain(NULL, &d, text, sizeof text);
      snprintf(wanted, sizeof wanted, "arithmetic: %s operands as FP32, IEEE FP32 multiply-add, then one rounding to %s\n",
               names[halves[t]], names[types_c[to]]);
      CHECK(strstr(text, wanted) != NULL, "no \"%s\" in\n%s", wanted, text);
      snprintf(wanted, sizeof wanted, "kernel: %cgemm_", type_letter(halves[t]));
      CHECK(strstr(text, wanted) != NULL, "no \"%s\" in\n%s", wanted, text);
    }
}

static const struct check_case cases[] = {
    {"conversions", conversions}, {"one_rounding", one_rounding}, {"mixed_batches", mixed_batches}, {"explained", explained}};
CHECK_MAIN("half", cases)
