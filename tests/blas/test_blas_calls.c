/* test_blas_calls.c - what the BLAS library's entry points do with good arguments: quick returns that
 * look at no pointer, results of both layouts and widths beside plain loops, groups, strides, halves,
 * copies, Level 1 and 2 of another BLAS, thread controls.
 *
 * Level 3 itself is tested by the suites of wsgemm's own calls and by Netlib's testers
 * (tests/foreign); here it is enough that every argument arrives where it belongs. */
#include <complex.h>
#include <dlfcn.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "routines.h"
#include "support/check.h"

void openblas_set_num_threads(int n_threads);
int openblas_get_num_threads(void);
int openblas_set_num_threads_local(int n_threads);
void goto_set_num_threads(int n_threads);
void openblas_set_num_threads_(const int *n_threads);
int openblas_get_num_threads_(void);
int openblas_get_num_procs(void);
int openblas_get_parallel(void);
char *openblas_get_config(void);
char *openblas_get_corename(void);

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *, const int *,
            const double *, const int *, const double *, double *, const int *);

static const struct routine *find(const char *name) {
  for (int i = 0; i < N_ROUTINES; i++)
    if (strcmp(routines[i].name, name) == 0) return &routines[i];
  REQUIRE(false, "no routine %s", name);
  return NULL;
}

/* ---- quick returns ---------------------------------------------------------------------------- */

/* Scalars of every type: bits of zero and one. */
struct scalars {
  const void *zero, *one;
};

static struct scalars scalars_of(const struct routine *r) {
  static const float zero_s[2] = {0, 0}, one_s[2] = {1, 0};
  static const double zero_d[2] = {0, 0}, one_d[2] = {1, 0};
  static const uint16_t one_b = 0x3f80;
  if (r->family == family_bgemm) return (struct scalars){zero_s, &one_b};
  if (r->type == WSGEMM_F64 || r->type == WSGEMM_C64) return (struct scalars){zero_d, one_d};
  return (struct scalars){zero_s, one_s};
}

/* Sizes of a good column-major call, with 5 for every size, and 9 for every ld. */
static void good_call(const struct routine *r, int64_t *v, int64_t m, int64_t n, int64_t k) {
  const int64_t col = WSGEMM_COL_MAJOR, no = WSGEMM_NO_TRANS, up = WSGEMM_UPPER, left = WSGEMM_LEFT, non = WSGEMM_NON_UNIT;
  const int64_t gemm[] = {0, col, no, no, m, n, k, 0, 0, 9, 0, 9, 0, 0, 9, 1, 1, 0, 0};
  const int64_t gemmtr[] = {0, col, up, no, no, n, k, 0, 0, 9, 0, 9, 0, 0, 9, 0, 0, 0, 0};
  const int64_t symm[] = {0, col, left, up, m, n, 0, 0, 9, 0, 9, 0, 0, 9, 0, 0, 0, 0, 0};
  const int64_t rank_k[] = {0, col, up, no, n, k, 0, 0, 9, 0, 9, 9, 0, 9, 0, 0, 0, 0, 0};
  const int64_t trmm[] = {0, col, left, up, no, non, m, n, 0, 0, 9, 0, 9, 0, 0, 0, 0, 0, 0};
  const int64_t strided[] = {0, col, no, no, m, n, k, 0, 0, 9, 64, 0, 9, 64, 0, 0, 9, 64, 2};
  const int64_t copy[] = {0, col, no, m, n, 0, 0, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  const int64_t *from = gemm;
  switch (r->family) {
  case family_gemmtr:
    from = gemmtr;
    break;
  case family_symm:
    from = symm;
    break;
  case family_syrk:
  case family_herk:
  case family_syr2k:
  case family_her2k:
    from = rank_k;
    break;
  case family_trmm:
    from = trmm;
    break;
  case family_strided:
    from = strided;
    break;
  case family_omatcopy:
  case family_imatcopy:
    from = copy;
    break;
  default:
    break;
  }
  memcpy(v, from, sizeof gemm);
}

/* With NULL matrices: a routine that looked at one would fault, and one that passed them on would be
 * refused, with a line on stderr; that wsgemm_last_error stays empty shows that it was not. */
static void quick(void) {
  static const int64_t sizes[][3] = {{0, 5, 5}, {5, 0, 5}, {0, 0, 0}};
  for (int i = 0; i < N_ROUTINES; i++) {
    const struct routine *const r = &routines[i];
    const struct scalars scalars = scalars_of(r);
    int64_t v[MOST_ARGUMENTS + 1];
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
      const bool is_square = r->family == family_gemmtr || (r->family >= family_syrk && r->family <= family_her2k);
      if (is_square && sizes[s][1]) continue;
      good_call(r, v, sizes[s][0], sizes[s][1], sizes[s][2]);
      const struct operands none = {NULL, NULL, NULL, scalars.one, scalars.zero};
      r->call(v, &none), r->call_64(v, &none);
      CHECK(*wsgemm_last_error() == '\0', "%s, size 0: %s", r->name, wsgemm_last_error());
    }
    if (r->family == family_trmm || r->family == family_omatcopy || r->family == family_imatcopy) continue; /* no beta */
    const struct operands add_nothing = {NULL, NULL, NULL, scalars.zero, scalars.one};
    good_call(r, v, 5, 5, 5);
    r->call(v, &add_nothing), r->call_64(v, &add_nothing);
    CHECK(*wsgemm_last_error() == '\0', "%s, alpha = 0, beta = 1: %s", r->name, wsgemm_last_error());
    if (r->family == family_symm) continue; /* no k */
    const struct operands no_sum = {NULL, NULL, NULL, scalars.one, scalars.one};
    good_call(r, v, 5, 5, 0);
    r->call(v, &no_sum), r->call_64(v, &no_sum);
    CHECK(*wsgemm_last_error() == '\0', "%s, k = 0, beta = 1: %s", r->name, wsgemm_last_error());
  }
}

/* ---- products against plain loops --------------------------------------------------------------- */

enum { N_ELEMENTS = 512 };

static void fill(double *x, unsigned salt) {
  struct check_random random = check_random_from(salt);
  for (int i = 0; i < N_ELEMENTS; i++) x[i] = (double)check_random_in(&random, -4, 4);
}

/* Small integers, so that every order of summation gives the same. */
static void gemm_layouts(void) {
  const struct routine *const r = find("dgemm");
  static double a[N_ELEMENTS], b[N_ELEMENTS], c[N_ELEMENTS], expected[N_ELEMENTS];
  const double alpha = 2, beta = -1;
  enum { M = 5, N = 6, K = 7, LDA = 9, LDB = 10, LDC = 11 };
  for (int is_row = 0; is_row < 2; is_row++)
    for (int ops = 0; ops < 4; ops++)
      for (int is_64 = 0; is_64 < 2; is_64++) {
        const bool ta = ops & 1, tb = ops & 2;
        fill(a, 1), fill(b, 2), fill(c, 3);
        memcpy(expected, c, sizeof c);
        for (int i = 0; i < M; i++)
          for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int l = 0; l < K; l++) {
              const double x = (ta != !is_row) ? a[i + l * LDA] : a[i * LDA + l];
              const double y = (tb != !is_row) ? b[l + j * LDB] : b[l * LDB + j];
              sum += x * y;
            }
            double *const e = is_row ? &expected[i * LDC + j] : &expected[i + j * LDC];
            *e = alpha * sum + beta * *e;
          }
        const int64_t v[MOST_ARGUMENTS + 1] = {0,
                                               is_row ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR,
                                               ta ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
                                               tb ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
                                               M,
                                               N,
                                               K,
                                               0,
                                               0,
                                               LDA,
                                               0,
                                               LDB,
                                               0,
                                               0,
                                               LDC};
        const struct operands o = {a, b, c, &alpha, &beta};
        (is_64 ? r->call_64 : r->call)(v, &o);
        CHECK(memcmp(c, expected, sizeof c) == 0, "dgemm, row-major %d, ops %d, 64-bit %d", is_row, ops, is_64);
      }
}

/* gemmtr and gemmt write one triangle of what gemm computes, in both layouts; gemm3m all of it. */
static void gemm_kin(void) {
  static const char *const names[] = {"dgemmtr", "dgemmt"};
  static double a[N_ELEMENTS], b[N_ELEMENTS], c[N_ELEMENTS], whole[N_ELEMENTS], before[N_ELEMENTS];
  const double alpha = -1, beta = 2;
  enum { N = 9, K = 5, LD = 11 };
  for (int way = 0; way < 8; way++) {
    const bool is_row = way & 1, is_lower = way & 2;
    const int64_t layout = is_row ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR, op = WSGEMM_TRANS, no = WSGEMM_NO_TRANS;
    fill(a, 12), fill(b, 13), fill(c, 14);
    memcpy(whole, c, sizeof c), memcpy(before, c, sizeof c);
    const int64_t v_whole[MOST_ARGUMENTS + 1] = {0, layout, op, no, N, N, K, 0, 0, LD, 0, LD, 0, 0, LD};
    const int64_t v[MOST_ARGUMENTS + 1] = {0, layout, is_lower ? WSGEMM_LOWER : WSGEMM_UPPER, op, no, N, K, 0, 0, LD, 0, LD, 0,
                                           0, LD};
    find("dgemm")->call(v_whole, &(struct operands){a, b, whole, &alpha, &beta});
    find(names[way >> 2])->call(v, &(struct operands){a, b, c, &alpha, &beta});
    int n_wrong = 0;
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) {
        const int at = is_row ? i * LD + j : i + j * LD;
        n_wrong += c[at] != (i == j || (i > j) == is_lower ? whole[at] : before[at]);
      }
    CHECK(n_wrong == 0, "%s, row-major %d, lower %d: %d wrong", names[way >> 2], is_row, is_lower, n_wrong);
  }
  static double complex z[N_ELEMENTS / 2], y[N_ELEMENTS / 2];
  const double complex one = 1, zero = 0;
  const int64_t v[MOST_ARGUMENTS + 1] = {0, WSGEMM_COL_MAJOR, WSGEMM_CONJ_TRANS, WSGEMM_NO_TRANS, 5, 6, 7, 0, 0, 8, 0, 8, 0, 0,
                                         8};
  find("zgemm")->call(v, &(struct operands){a, b, z, &one, &zero});
  find("zgemm3m")->call_64(v, &(struct operands){a, b, y, &one, &zero});
  CHECK(memcmp(z, y, sizeof z) == 0 && z[0] != 0, "zgemm3m");
}

/* Three groups, of which the middle one is empty, the last one of products far from equally spaced. */
static void groups(void) {
  void cblas_dgemm_batch_64(wsgemm_layout, const wsgemm_op *, const wsgemm_op *, const int64_t *, const int64_t *,
                            const int64_t *, const void *, void *, const int64_t *, void *, const int64_t *, const void *, void *,
                            const int64_t *, int64_t, const int64_t *);
  void dgemm_batch_(const char *, const char *, const int *, const int *, const int *, const double *, void *, const int *,
                    void *, const int *, const double *, void *, const int *, const int *, const int *);
  static double a[N_ELEMENTS], b[N_ELEMENTS], c[N_ELEMENTS], expected[N_ELEMENTS], fortran_c[N_ELEMENTS];
  fill(a, 4), fill(b, 5), fill(c, 6);
  memcpy(expected, c, sizeof c), memcpy(fortran_c, c, sizeof c);
  static const int offsets[5] = {0, 16, 32, 80, 112};
  double *as[5], *bs[5], *cs[5], *fortran_cs[5];
  for (int p = 0; p < 5; p++)
    as[p] = a + offsets[p], bs[p] = b + offsets[p], cs[p] = c + offsets[p], fortran_cs[p] = fortran_c + offsets[p];
  const int64_t sizes[3] = {3, 0, 2}, ms[3] = {4, 4, 2}, ns[3] = {3, 3, 4}, ks[3] = {2, 2, 3}, ld[3] = {4, 4, 4};
  const double alphas[3] = {1, 0, -2}, betas[3] = {0, 0, 3};
  for (int g = 0, p = 0; g < 3; p += (int)sizes[g], g++)
    for (int q = p; q < p + sizes[g]; q++)
      for (int i = 0; i < ms[g]; i++)
        for (int j = 0; j < ns[g]; j++) {
          double sum = 0;
          for (int l = 0; l < ks[g]; l++) sum += as[q][i + l * 4] * bs[q][l + j * 4];
          double *const e = &expected[offsets[q] + i + j * 4];
          *e = alphas[g] * sum + (betas[g] == 0 ? 0 : betas[g] * *e);
        }
  const wsgemm_op no[3] = {WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS};
  cblas_dgemm_batch_64(WSGEMM_COL_MAJOR, no, no, ms, ns, ks, alphas, as, ld, bs, ld, betas, cs, ld, 3, sizes);
  CHECK(memcmp(c, expected, sizeof c) == 0, "groups, 64-bit CBLAS");
  const int sizes_32[3] = {3, 0, 2}, ms_32[3] = {4, 4, 2}, ns_32[3] = {3, 3, 4}, ks_32[3] = {2, 2, 3}, ld_32[3] = {4, 4, 4},
            three = 3;
  dgemm_batch_("nnn", "NNN", ms_32, ns_32, ks_32, alphas, as, ld_32, bs, ld_32, betas, fortran_cs, ld_32, &three, sizes_32);
  CHECK(memcmp(fortran_c, expected, sizeof c) == 0, "groups, Fortran");
}

static void strides(void) {
  static double a[N_ELEMENTS], b[N_ELEMENTS], c[N_ELEMENTS], expected[N_ELEMENTS];
  fill(a, 7), fill(b, 8), fill(c, 9);
  memcpy(expected, c, sizeof c);
  const double alpha = 1, beta = 1;
  for (int p = 0; p < 3; p++)
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++)
        for (int l = 0; l < 4; l++) expected[64 * p + i * 4 + j] += a[64 * p + i * 4 + l] * b[64 * p + l * 4 + j];
  const int64_t v[MOST_ARGUMENTS + 1] = {
      0, WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 4, 4, 4, 0, 0, 4, 64, 0, 4, 64, 0, 0, 4, 64, 3};
  const struct operands o = {a, b, c, &alpha, &beta};
  find("dgemm_batch_strided")->call(v, &o);
  CHECK(memcmp(c, expected, sizeof c) == 0, "three products at strides of 64");
}

/* 1, 2, 3, ... are exact in all formats: bfloat16 has 8 bits, binary16 11. */
static void halves(void) {
  uint16_t bf16[4] = {0x3f80, 0x4000, 0x4040, 0x4080}, f16[4] = {0x3c00, 0x4000, 0x4200, 0x4400}, c_bf16[4] = {0, 0, 0, 0};
  float c[4] = {1, 1, 1, 1};
  const float two = 2, one = 1;
  const uint16_t two_bf16 = 0x4000, zero_bf16 = 0;
  const int64_t v[MOST_ARGUMENTS + 1] = {0, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, 2, 2, 2, 0, 0, 2, 0, 2, 0, 0, 2};
  static const float squared[4] = {7, 10, 15, 22}; /* of [1 3; 2 4] */
  find("sbgemm")->call(v, &(struct operands){bf16, bf16, c, &two, &one});
  for (int i = 0; i < 4; i++) CHECK(c[i] == 2 * squared[i] + 1, "sbgemm: element %d is %g", i, c[i]);
  find("shgemm")->call(v, &(struct operands){f16, f16, c, &one, &one});
  for (int i = 0; i < 4; i++) CHECK(c[i] == 3 * squared[i] + 1, "shgemm: element %d is %g", i, c[i]);
  find("bgemm")->call_64(v, &(struct operands){bf16, bf16, c_bf16, &two_bf16, &zero_bf16});
  for (int i = 0; i < 4; i++) {
    const uint32_t bits = (uint32_t)c_bf16[i] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    CHECK(value == 2 * squared[i], "bgemm: element %d is %g", i, value);
  }
}

/* ---- copies ----------------------------------------------------------------------------------- */

/* omatcopy and imatcopy of complex numbers, which have all that the others have; in place also with
 * other lds. */
static void copies(void) {
  enum { ROWS = 19, COLS = 17, LD = 23, LD_AFTER = 21, ROOM = LD * 40 };
  static double complex a[ROOM], b[ROOM], in_place[ROOM];
  const double complex alpha = 2 - I;
  static const wsgemm_op ops[] = {WSGEMM_NO_TRANS, WSGEMM_TRANS, WSGEMM_CONJ_TRANS, WSGEMM_CONJ_NO_TRANS};
  for (int is_row = 0; is_row < 2; is_row++)
    for (int op = 0; op < 4; op++)
      for (int same_ld = 0; same_ld < 2; same_ld++) {
        const int rows = same_ld ? COLS : ROWS, cols = COLS, ld_after = same_ld ? LD : LD_AFTER;
        const bool transposed = ops[op] == WSGEMM_TRANS || ops[op] == WSGEMM_CONJ_TRANS, conj_ = op >= 2;
        struct check_random random = check_random_from(10);
        for (int i = 0; i < ROOM; i++) a[i] = check_random_in(&random, -9, 9) + I * check_random_in(&random, -9, 9), b[i] = 77;
        memcpy(in_place, a, sizeof a);
        const int64_t v[MOST_ARGUMENTS + 1] = {
            0, is_row ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR, ops[op], rows, cols, 0, 0, LD, 0, ld_after};
        find("zomatcopy")->call(v, &(struct operands){a, NULL, b, &alpha, NULL});
        const int64_t v_in_place[MOST_ARGUMENTS + 1] = {0, v[1], v[2], rows, cols, 0, 0, LD, ld_after};
        find("zimatcopy")->call_64(v_in_place, &(struct operands){NULL, NULL, in_place, &alpha, NULL});
        int n_wrong = 0, n_wrong_in_place = 0, n_written = 0;
        for (int i = 0; i < rows; i++)
          for (int j = 0; j < cols; j++) {
            const double complex x = is_row ? a[i * LD + j] : a[i + j * LD];
            const double complex y = alpha * (conj_ ? conj(x) : x);
            const int to = (transposed != (bool)is_row) ? j + i * ld_after : i + j * ld_after;
            n_wrong += b[to] != y, n_wrong_in_place += in_place[to] != y;
          }
        for (int i = 0; i < ROOM; i++) n_written += b[i] != 77;
        CHECK(n_wrong == 0 && n_written == rows * cols, "zomatcopy, row-major %d, op %d: %d wrong, %d written", is_row, op,
              n_wrong, n_written);
        CHECK(n_wrong_in_place == 0, "zimatcopy, row-major %d, op %d, same ld %d: %d wrong", is_row, op, same_ld,
              n_wrong_in_place);
      }
}

/* alpha = 0 reads nothing; a larger ld in place. */
static void copies_edges(void) {
  float x[12] = {1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 0}, y[6] = {NAN, NAN, NAN, NAN, NAN, NAN};
  const float one = 1, zero = 0;
  const int64_t wider[MOST_ARGUMENTS + 1] = {0, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, 2, 3, 0, 0, 2, 4};
  find("simatcopy")->call(wider, &(struct operands){NULL, NULL, x, &one, NULL});
  CHECK(x[0] == 1 && x[1] == 2 && x[4] == 3 && x[5] == 4 && x[8] == 5 && x[9] == 6, "in place to a larger ld");
  const int64_t v[MOST_ARGUMENTS + 1] = {0, WSGEMM_COL_MAJOR, WSGEMM_TRANS, 2, 3, 0, 0, 2, 0, 3};
  find("somatcopy")->call(v, &(struct operands){NULL, NULL, y, &zero, NULL});
  for (int i = 0; i < 6; i++) CHECK(y[i] == 0, "alpha = 0: element %d is %g", i, y[i]);
}

/* ---- row interchanges ------------------------------------------------------------------------- */

#define LASWP(name, T)                                                                                                        \
  void name##_(const int *, T *, const int *, const int *, const int *, const int *, const int *);                            \
  void name##_64_(const int64_t *, T *, const int64_t *, const int64_t *, const int64_t *, const int64_t *, const int64_t *); \
  static void call_##name(const int64_t *v, bool wide, const int64_t *pivots, void *a) {                                      \
    int narrow[5], narrow_pivots[64];                                                                                         \
    for (int i = 0; i < 5; i++) narrow[i] = (int)v[i];                                                                        \
    for (int i = 0; i < 64; i++) narrow_pivots[i] = (int)pivots[i];                                                           \
    if (wide)                                                                                                                 \
      name##_64_(&v[0], a, &v[1], &v[2], &v[3], pivots, &v[4]);                                                               \
    else                                                                                                                      \
      name##_(&narrow[0], a, &narrow[1], &narrow[2], &narrow[3], narrow_pivots, &narrow[4]);                                  \
  }
LASWP(slaswp, float)
LASWP(dlaswp, double)
LASWP(claswp, float complex)
LASWP(zlaswp, double complex)

/* LAPACK's definition, an element at a time: pivots from place k1 on, or, going up, to it. */
static void interchange(const int64_t *v, const int64_t *pivots, char *a, size_t bytes) {
  const int64_t n = v[0], ld = v[1], k1 = v[2], k2 = v[3], incx = v[4];
  if (incx == 0) return;
  int64_t at = incx > 0 ? k1 : k1 + (k1 - k2) * incx;
  for (int64_t i = incx > 0 ? k1 : k2; incx > 0 ? i <= k2 : i >= k1; i += incx > 0 ? 1 : -1, at += incx)
    for (int64_t j = 0; j < n; j++) {
      char kept[16], *x = a + (i - 1 + j * ld) * (int64_t)bytes, *y = a + (pivots[at - 1] - 1 + j * ld) * (int64_t)bytes;
      memcpy(kept, x, bytes), memcpy(x, y, bytes), memcpy(y, kept, bytes);
    }
}

static void interchanges(void) {
  enum { LD = 31, COLS = 9, ROOM = LD * COLS * 16 };
  static void (*const calls[])(const int64_t *, bool, const int64_t *, void *) = {call_slaswp, call_dlaswp, call_claswp,
                                                                                  call_zlaswp};
  static const size_t bytes[] = {4, 8, 8, 16};
  static const int64_t shapes[][5] = {{COLS, LD, 1, 20, 1}, {COLS, LD, 4, 17, 1},   {5, LD, 4, 17, -1},  {COLS, LD, 3, 12, 3},
                                      {7, LD, 2, 11, -2},   {COLS, LD, 30, 31, -1}, {COLS, LD, 5, 5, 1}, {0, LD, 1, 20, 1},
                                      {COLS, LD, 7, 6, 1},  {COLS, LD, 1, 20, 0},   {1, LD, 1, LD, 1}};
  struct check_random random = check_random_from(20);
  for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
    for (int type = 0; type < 4; type++)
      for (int wide = 0; wide < 2; wide++) {
        char a[ROOM], expected[ROOM];
        int64_t pivots[64];
        for (int i = 0; i < ROOM; i++) a[i] = expected[i] = (char)check_random_in(&random, 0, 127);
        for (int i = 0; i < 64; i++) pivots[i] = check_random_in(&random, 1, LD);
        interchange(shapes[s], pivots, expected, bytes[type]);
        calls[type](shapes[s], wide, pivots, a);
        CHECK(memcmp(a, expected, sizeof a) == 0, "laswp, shape %zu, type %d, 64 bits %d", s, type, wide);
      }
}

/* ---- Level 1 and 2, threads -------------------------------------------------------------------- */

double ddot_(const int *, const double *, const int *, const double *, const int *);
float cblas_sdot(int, const float *, int, const float *, int);
double complex zdotc_(const int *, const double complex *, const int *, const double complex *, const int *);
float complex cdotu_(const int *, const float complex *, const int *, const float complex *, const int *);
void cblas_daxpy(int, double, const double *, int, double *, int);
void dgemv_(const char *, const int *, const int *, const double *, const double *, const int *, const double *, const int *,
            const double *, double *, const int *, size_t);

/* Without one the first call of Level 1 or 2 ends the process (process.sh): in a cross build there is none. */
static bool has_other_blas(void) {
  const bool has = dlopen("libblas.so.3", RTLD_LAZY | RTLD_LOCAL) || dlopen("libopenblas.so.0", RTLD_LAZY | RTLD_LOCAL);
  if (!has) check_skip("no other BLAS for Level 1 and 2");
  return has;
}

/* Arguments and results of every class of registers, on the first call and on a later one. */
static void level_1_and_2(void) {
  if (!has_other_blas()) return;
  const int two = 2, one = 1;
  const double x[2] = {1, 2}, a[4] = {1, 2, 3, 4}, alpha = 1, beta = 0;
  const float s[2] = {1, 2};
  const double complex z[2] = {1 + I, 2};
  const float complex c[2] = {1 + I, 2};
  for (int turn = 0; turn < 2; turn++) {
    double y[2] = {10, 20};
    CHECK(ddot_(&two, x, &one, x, &one) == 5, "ddot_");
    CHECK(cblas_sdot(2, s, 1, s, 1) == 5, "cblas_sdot");
    CHECK(zdotc_(&two, z, &one, z, &one) == 6, "zdotc_");
    CHECK(cdotu_(&two, c, &one, c, &one) == 4 + 2 * I, "cdotu_");
    cblas_daxpy(2, 3, x, 1, y, 1);
    CHECK(y[0] == 13 && y[1] == 26, "cblas_daxpy");
    dgemv_("T", &two, &two, &alpha, a, &two, x, &one, &beta, y, &one, 1);
    CHECK(y[0] == 5 && y[1] == 11, "dgemv_");
  }
}

double dasum_(const int *, const double *, const int *);

static void *first_call(void *argument) {
  const int two = 2, one = 1;
  const double x[2] = {1, 2};
  return dasum_(&two, x, &one) == 3 ? argument : NULL;
}

static void first_calls_of_threads(void) {
  if (!has_other_blas()) return;
  pthread_t threads[8];
  int n_right = 0;
  for (int i = 0; i < 8; i++) REQUIRE(pthread_create(&threads[i], NULL, first_call, threads) == 0, "thread");
  for (int i = 0; i < 8; i++) {
    void *result;
    pthread_join(threads[i], &result);
    n_right += result != NULL;
  }
  CHECK(n_right == 8, "%d of 8 threads", n_right);
}

static void threads(void) {
  const int at_first = openblas_get_num_threads(), three = 3;
  int in_handle = 0;
  CHECK(at_first == wsgemm_default_num_threads(), "%d threads at first", at_first);
  openblas_set_num_threads(2);
  wsgemm_get_num_threads(NULL, &in_handle);
  CHECK(openblas_get_num_threads() == 2, "%d threads, not 2", openblas_get_num_threads());
  openblas_set_num_threads_(&three);
  wsgemm_get_num_threads(NULL, &in_handle);
  CHECK(openblas_get_num_threads_() == 3 && in_handle == 3, "%d threads, %d in the handle", openblas_get_num_threads(),
        in_handle);
  goto_set_num_threads(1);
  CHECK(openblas_get_num_threads() == 1, "one thread");
  openblas_set_num_threads(100000);
  CHECK(openblas_get_num_threads() == 256, "%d threads of 100000", openblas_get_num_threads());
  openblas_set_num_threads(at_first);
  wsgemm_get_num_threads(NULL, &in_handle);
  CHECK(in_handle == 0, "back at the default, which follows affinity: %d", in_handle);
  CHECK(openblas_set_num_threads_local(1) == 0 && openblas_set_num_threads_local(0) == 1, "limits of this thread");
  CHECK(openblas_get_parallel() == 1 && openblas_get_num_procs() >= 1, "parallel, processors");
  CHECK(strncmp(openblas_get_config(), "wsgemm ", 7) == 0, "config is %s", openblas_get_config());
  CHECK(*openblas_get_corename() && strcmp(openblas_get_corename(), "unknown") != 0, "core is %s", openblas_get_corename());
}

/* Another BLAS in the same process, with symbols of the same names: both work, and a limit that is set
 * here holds there. */
static void beside_openblas(void) {
  typedef void (*dgemm_function)(wsgemm_layout, wsgemm_op, wsgemm_op, int, int, int, double, const double *, int, const double *,
                                 int, double, double *, int);
  void *const other = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!other) {
    check_skip("no libopenblas.so.0: %s", dlerror());
    return;
  }
  dgemm_function theirs;
  char *(*config)(void);
  int (*n_threads)(void);
  *(void **)&theirs = dlsym(other, "cblas_dgemm");
  *(void **)&config = dlsym(other, "openblas_get_config");
  *(void **)&n_threads = dlsym(other, "openblas_get_num_threads");
  REQUIRE(theirs && config && n_threads, "OpenBLAS lacks a function");
  CHECK(strncmp(config(), "OpenBLAS", 8) == 0, "its config is %s", config());
  openblas_set_num_threads(1); /* also because TSan cannot see how OpenBLAS's threads wait for each other */
  CHECK(n_threads() == 1, "%d threads there", n_threads());
  enum { N = 150 };
  static double a[N * N], b[N * N], c[N * N], d[N * N];
  struct check_random random = check_random_from(11);
  for (int i = 0; i < N * N; i++) a[i] = (double)check_random_in(&random, -3, 3), b[i] = (double)check_random_in(&random, -3, 3);
  cblas_dgemm(WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N, 1, a, N, b, N, 0, c, N);
  theirs(WSGEMM_ROW_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, N, N, N, 1, a, N, b, N, 0, d, N);
  CHECK(memcmp(c, d, sizeof c) == 0, "two libraries, two products");
  openblas_set_num_threads(wsgemm_default_num_threads());
}

/* 8 x 8 x 8 takes no memory (bench_blas_calls: how many nanoseconds). */
static void small_calls(void) {
  static double a[64], b[64], c[64];
  const int n = 8;
  const double one = 1, zero = 0;
  struct mallinfo2 at[2];
  for (int turn = 0; turn < 2; turn++) {
    for (int i = 0; i < 1000; i++) dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    at[turn] = mallinfo2();
  }
  CHECK(at[0].uordblks == at[1].uordblks && at[0].hblks == at[1].hblks, "memory: %zu bytes, then %zu", at[0].uordblks,
        at[1].uordblks);
}

static const struct check_case cases[] = {{"quick", quick},
                                          {"gemm_layouts", gemm_layouts},
                                          {"gemm_kin", gemm_kin},
                                          {"groups", groups},
                                          {"strides", strides},
                                          {"halves", halves},
                                          {"copies", copies},
                                          {"copies_edges", copies_edges},
                                          {"interchanges", interchanges},
                                          {"level_1_and_2", level_1_and_2},
                                          {"first_calls_of_threads", first_calls_of_threads},
                                          {"threads", threads},
                                          {"beside_openblas", beside_openblas},
                                          {"small_calls", small_calls}};
CHECK_MAIN("blas_calls", cases)
