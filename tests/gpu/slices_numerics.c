/* slices_numerics.c - what products by slices are worth, as cases for F32 and C32: see slices.h. */
#include "slices.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Numbers of all kinds: one part of A and of B, or of B and of A -------------------------- */

static double positive(void) { return fabs(unit()); }
static double lognormal(void) { return exp(2 * sqrt(-2 * log(positive())) * cos(3.14159265358979324 * unit())); }
static double over_30_exponents(void) { return ldexp(unit(), (int)drawn(0, 30)); }

static void fill_uniform(const struct lines *x, const struct lines *y) { fill_each(x, unit), fill_each(y, unit); }
static void fill_positive(const struct lines *x, const struct lines *y) { fill_each(x, positive), fill_each(y, positive); }
static void fill_lognormal(const struct lines *x, const struct lines *y) { fill_each(x, lognormal), fill_each(y, lognormal); }
static void fill_exponents(const struct lines *x, const struct lines *y) {
  fill_each(x, over_30_exponents), fill_each(y, over_30_exponents);
}

/* Each line has its largest exponent, and numbers of none to very many below that. */
static void fill_ranges(const struct lines *x, int low, int high) {
  static const int ranges[] = {0, 8, 24, 30, 33, 40, 60, 250};
  for (int64_t line = 0; line < x->n; line++) {
    const int most = (int)drawn(low, high), range = ranges[drawn(0, 7)];
    for (int64_t p = 0; p < x->k; p++) put(x, line, p, number(most - (int)drawn(0, range)));
  }
}

/* So many binary digits a product of two parts each is larger than one of single parts. */
static int digits_of_parts(const struct lines *x) { return 2 * (x->n_parts - 1); }

/* 2^128 2^-12 700 is less than 2^126, so that nothing overflows. */
static void fill_whole_range(const struct lines *x, const struct lines *y) {
  fill_ranges(x, -126, 127), fill_ranges(y, -126, -13 - digits_of_parts(y));
}
static void fill_middle_range(const struct lines *x, const struct lines *y) { fill_ranges(x, -70, 50), fill_ranges(y, -70, 50); }

static void fill_graded_lines(const struct lines *x, const struct lines *y) {
  for (int64_t line = 0; line < x->n; line++)
    for (int64_t p = 0; p < x->k; p++) put(x, line, p, ldexp(unit(), 50 - (int)(line % 100)));
  for (int64_t line = 0; line < y->n; line++)
    for (int64_t p = 0; p < y->k; p++) put(y, line, p, ldexp(unit(), 50 - (int)(line % 100)));
}

static void fill_graded_inner(const struct lines *x, const struct lines *y) {
  static const int spans[] = {16, 30, 60};
  const int span = spans[drawn(0, 2)];
  for (int64_t p = 0; p < x->k; p++) {
    const int e = (int)(p % span) - span / 2;
    for (int64_t line = 0; line < x->n; line++) put(x, line, p, ldexp(unit(), e));
    for (int64_t line = 0; line < y->n; line++) put(y, line, p, ldexp(unit(), -e));
  }
}

/* The second half of k takes away what the first one adds, but for a little. */
static void fill_cancelling(const struct lines *x, const struct lines *y) {
  const int64_t half = x->k / 2;
  fill_uniform(x, y);
  for (int64_t p = 0; p < half; p++) {
    for (int64_t line = 0; line < x->n; line++) put(x, line, p + half, *element(x, line, p));
    for (int64_t line = 0; line < y->n; line++) put(y, line, p + half, -*element(y, line, p) + ldexp(unit(), -20));
  }
}

/* Lines of subnormal numbers alone, beside small normal ones, and beside common ones. */
static void fill_subnormal(const struct lines *x, const struct lines *y) {
  for (int64_t line = 0; line < x->n; line++)
    for (int64_t p = 0; p < x->k; p++) {
      const double least = ldexp((double)drawn(-0x7fffff, 0x7fffff), -149);
      const int64_t kind = line % 4;
      put(x, line, p, kind == 0 || (kind < 3 && heads()) ? least : number((int)(kind == 1 ? drawn(-126, -110) : drawn(-3, 3))));
    }
  for (int64_t line = 0; line < y->n; line++) {
    const int most = (int)(line % 3 == 2 ? drawn(60, 100) : drawn(-20, 20));
    for (int64_t p = 0; p < y->k; p++) put(y, line, p, number(most - (int)drawn(0, 8)));
  }
}

static void fill_near_largest(const struct lines *x, const struct lines *y) {
  const double largest = type_largest(WSGEMM_F32);
  for (int64_t line = 0; line < x->n; line++)
    for (int64_t p = 0; p < x->k; p++)
      put(x, line, p, (heads() ? largest : -largest) * (1 - ldexp(positive(), (int)-drawn(1, 30))));
  fill_ranges(y, -40, -14 - digits_of_parts(y));
}

static void fill_hilbert(const struct lines *x, const struct lines *y) {
  for (int64_t p = 0; p < x->k; p++) {
    for (int64_t line = 0; line < x->n; line++) put(x, line, p, 1 / (double)(line + p + 1));
    for (int64_t line = 0; line < y->n; line++) put(y, line, p, 1 / (double)(line + p + 1));
  }
}

/* Whole lines of zeros, also lines along the other side, and lines with one element. */
static void fill_zero_lines(const struct lines *x, const struct lines *y) {
  const struct lines *both[] = {x, y};
  fill_exponents(x, y);
  for (int i = 0; i < 2; i++)
    for (int64_t line = 0; line < both[i]->n; line++) {
      const int64_t kind = drawn(0, 5), kept = drawn(0, both[i]->k - 1);
      for (int64_t p = 0; p < both[i]->k; p++)
        if (kind == 0 || (kind == 1 && p != kept) || (p + i) % 7 == 0) put(both[i], line, p, 0);
    }
}

static const struct distribution {
  const char *name;
  void (*fill)(const struct lines *x, const struct lines *y);
  bool underflows;
} all_distributions[] = {{"uniform(-1,1)", fill_uniform, false},        {"uniform(0,1)", fill_positive, false},
                         {"lognormal", fill_lognormal, false},          {"exponents over 2^30", fill_exponents, false},
                         {"whole range", fill_whole_range, true},       {"middle range", fill_middle_range, true},
                         {"graded lines", fill_graded_lines, false},    {"graded inner dimension", fill_graded_inner, false},
                         {"cancelling", fill_cancelling, false},        {"subnormal", fill_subnormal, true},
                         {"near the largest", fill_near_largest, true}, {"hilbert", fill_hilbert, false},
                         {"zero lines", fill_zero_lines, false}};

/* Of one line in three: one part is far less than the other, unless that is 0; both have the same
 * scale. */
static void set_parts_apart(const struct stage *stage, bool is_b) {
  for (int64_t line = 0; line < lines_of(stage, is_b, 0).n; line++) {
    if (drawn(0, 2) != 0) continue;
    const int part = (int)drawn(0, 1), e = -(int)drawn(1, 70);
    const struct lines x = lines_of(stage, is_b, part), other = lines_of(stage, is_b, 1 - part);
    for (int64_t p = 0; p < x.k; p++)
      if (*element(&other, line, p) != 0) put(&x, line, p, ldexp(*element(&x, line, p), e));
  }
}

static struct stage stage_filled(wsgemm_type type, const struct distribution *how, int64_t m, int64_t n, int64_t k) {
  struct stage stage = stage_new(type, m, n, k, FILL_ZERO, &rng);
  const bool is_swapped = !heads();
  for (int part = 0; part < n_parts(type); part++) {
    const struct lines a = lines_of(&stage, false, part), b = lines_of(&stage, true, part);
    how->fill(is_swapped ? &b : &a, is_swapped ? &a : &b);
  }
  if (type_is_complex(type)) set_parts_apart(&stage, false), set_parts_apart(&stage, true);
  product_extend(&stage.product, &stage.a, &stage.b, k);
  double most = 0;
  for (int64_t at = 0; at < m * n; at++) most = fmax(most, (double)stage.product.magnitude[at]);
  REQUIRE(most < 0x1p126, "%s: a sum may overflow", how->name);
  fill_c(&stage);
  return stage;
}

/* As large as the reference's time allows: a complex product takes it twice as long, and its tiles
 * are half as high. */
struct extents {
  int64_t m, n, k;
};
static struct extents most_of(wsgemm_type type, int turn) {
  static const struct extents of_complex[] = {{130, 130, 500}, {40, 400, 500}, {400, 40, 500}};
  return type_is_complex(type) ? of_complex[turn % 3] : (struct extents){300, 300, 700};
}

void distributions_of(wsgemm_type type) {
  int n_subnormal = 0;
  open_sliced(type, OF_THREE_PRODUCTS);
  for (size_t x = 0; x < sizeof all_distributions / sizeof all_distributions[0]; x++)
    for (int turn = 0; turn < (check_scale() > 1 ? 1 : 3); turn++) {
      const struct distribution *how = &all_distributions[x];
      const struct extents most = most_of(type, turn);
      const int64_t m = drawn_side(most.m), n = drawn_side(most.n), k = drawn_k(most.k);
      struct stage stage = stage_filled(type, how, m, n, k);
      for (int i = 0; i < rows.n_rows; i++)
        for (int calls = 0; calls < 2; calls++) {
          char who[128];
          wsgemm_gemm_desc d = drawn_desc(type, m, n, k);
          const struct layout_of_case where = layout_drawn(&rng);
          snprintf(who, sizeof who, "%s, %s", rows.row[i].name, how->name);
          check_used(i, m, n, k);
          if (!how->underflows) {
            run_case(&stage, rows.handle[i], &d, &where, heads(), JUDGE_BOUND, who);
          } else {
            store_and_call(&stage, rows.handle[i], &d, &where, who);
            n_subnormal += judge_at_the_ends(&stage, &d, 0, who);
          }
        }
      stage_free(&stage);
    }
  CHECK(n_subnormal > 0, "no result was subnormal");
  rows_close(&rows);
}

/* ---- Marked rows and columns ----------------------------------------------------------------- */

enum { FALLBACK_M = 100, FALLBACK_N = 90 };
/* as long as the reference's time allows */
static int64_t fallback_k(void) { return type_is_complex(rows.type) ? 160 : 256; }
/* of floats im is 0 */
typedef wsgemm_cfloat fallback_c[FALLBACK_M * FALLBACK_N];

static void compute(struct stage *stage, wsgemm_handle *h, wsgemm_gemm_desc *d, const struct layout_of_case *where,
                    const char *who, fallback_c c) {
  store_and_call(stage, h, d, where, who);
  for (int64_t at = 0; at < FALLBACK_M * FALLBACK_N; at++) {
    double re, im;
    matrix_get(&stage->stored[2], at / FALLBACK_N, at % FALLBACK_N, &re, &im);
    c[at] = (wsgemm_cfloat){(float)re, (float)im};
  }
}

/* A line of A or B, and the part of an element of it that is large. */
struct fallback_line {
  bool is_b;
  int64_t line, p;
  int part;
};

/* Elements of C in that line (or in all the others) that have other bits. */
static int n_different(const fallback_c x, const fallback_c y, const struct fallback_line *fallback, bool others) {
  int n = 0;
  for (int64_t at = 0; at < FALLBACK_M * FALLBACK_N; at++) {
    const bool is_in = (fallback->is_b ? at % FALLBACK_N : at / FALLBACK_N) == fallback->line;
    n += is_in != others && memcmp(&x[at], &y[at], sizeof x[at]) != 0;
  }
  return n;
}

/* What two slices hold of a part, the largest of its line being `most`. */
static double as_slices(double x, double most) {
  const int e = 14 - ilogb(most);
  const double y = ldexp(x, e), first = type_round(WSGEMM_F16, y), second = type_round(WSGEMM_F16, ldexp(y - first, 11));
  return ldexp(first + ldexp(second, -11), -e);
}

/* How many elements of C would be out of the bound if a line were its slices, and all else
 * exact. */
static int n_out_of_bound(const struct stage *stage, bool is_b, int64_t line) {
  const struct lines re = lines_of(stage, is_b, 0), im = lines_of(stage, is_b, 1), other_re = lines_of(stage, !is_b, 0),
                     other_im = lines_of(stage, !is_b, 1);
  double most = 0;
  int n = 0;
  for (int64_t p = 0; p < re.k; p++) most = fmax(most, fmax(fabs(*element(&re, line, p)), fabs(*element(&im, line, p))));
  for (int64_t other = 0; other < other_re.n; other++) {
    const int64_t at = is_b ? other * FALLBACK_N + line : line * FALLBACK_N + other;
    const double bound = gamma_of(re.k) * (double)stage->product.magnitude[at];
    double sum_re = 0, sum_im = 0;
    for (int64_t p = 0; p < re.k; p++) {
      const double x = as_slices(*element(&re, line, p), most), y = as_slices(*element(&im, line, p), most);
      sum_re += x * *element(&other_re, other, p) - y * *element(&other_im, other, p);
      sum_im += x * *element(&other_im, other, p) + y * *element(&other_re, other, p);
    }
    n += fabs(sum_re - (double)stage->product.re[at]) > bound || fabs(sum_im - (double)stage->product.im[at]) > bound;
  }
  return n;
}

static double common(void) { return number(0); }
static double small(void) { return number(-10); }

static void put_large(const struct stage *stage, const struct fallback_line *fallback, double value) {
  const struct lines x = lines_of(stage, fallback->is_b, fallback->part);
  put(&x, fallback->line, fallback->p, value);
}

/* One element 2^big that meets only zeros, beside small ones whose sums are what is asked for. */
static struct stage stage_fallback(const struct fallback_line *fallback, int big) {
  struct stage stage = stage_new(rows.type, FALLBACK_M, FALLBACK_N, fallback_k(), FILL_ZERO, &rng);
  for (int part = 0; part < n_parts(rows.type); part++) {
    const struct lines x = lines_of(&stage, fallback->is_b, part), y = lines_of(&stage, !fallback->is_b, part);
    fill_each(&x, small), fill_each(&y, common);
    for (int64_t other = 0; other < y.n; other++) put(&y, other, fallback->p, 0);
  }
  put_large(&stage, fallback, ldexp(1, big));
  product_extend(&stage.product, &stage.a, &stage.b, fallback_k());
  fill_c(&stage);
  return stage;
}

/* What computes the elements of C in a line of A or B. */
enum arithmetic { BY_TWO, BY_THREE, BY_MULTIPLY_ADDS };

static void fallback_line_is(wsgemm_handle *pedantic, const struct fallback_line *fallback, int big, enum arithmetic by) {
  static fallback_c by_slices, by_fma, plain;
  struct stage stage = stage_fallback(fallback, big);
  const int n_out = n_out_of_bound(&stage, fallback->is_b, fallback->line);
  char what[64];
  snprintf(what, sizeof what, "2^%d in line %lld of %c, part %d", big, (long long)fallback->line, fallback->is_b ? 'B' : 'A',
           fallback->part);
  CHECK((n_out > 0) == (by != BY_TWO), "%s: slices alone have %d elements out of the bound", what, n_out);
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_gemm_desc d = drawn_desc(rows.type, FALLBACK_M, FALLBACK_N, fallback_k());
    const struct layout_of_case where = layout_drawn(&rng);
    const char *who = rows.row[i].name;
    compute(&stage, pedantic, &d, &where, "multiply-adds", by_fma);
    put_large(&stage, fallback, 0);
    compute(&stage, rows.handle[i], &d, &where, who, plain);
    put_large(&stage, fallback, ldexp(1, big));
    const int64_t n_before = n_fallbacks();
    compute(&stage, rows.handle[i], &d, &where, who, by_slices);
    CHECK(n_fallbacks() == n_before + (by != BY_TWO), "%s: %s: %lld lines fell back", who, what,
          (long long)(n_fallbacks() - n_before));
    case_judge(&stage, &d, JUDGE_BOUND, who);
    const int n_in_line = n_different(by_slices, by_fma, fallback, false),
              n_beside = n_different(by_slices, by_fma, fallback, true),
              n_changed = n_different(by_slices, plain, fallback, true);
    char text[DESCRIPTION_BYTES];
    CHECK((n_in_line == 0) == (by == BY_MULTIPLY_ADDS), "%s: %s: %s: %d of its elements have other bits than multiply-adds", who,
          gemm_describe(&d, text), what, n_in_line);
    CHECK(n_beside > 0, "%s: %s: slices were not used", who, gemm_describe(&d, text));
    CHECK(n_changed == 0, "%s: %s: %s changed %d elements of other lines", who, gemm_describe(&d, text), what, n_changed);
  }
  stage_free(&stage);
}

void marked_is_needed_of(wsgemm_type type) {
  static const struct {
    int big;
    enum arithmetic by;
  } all[] = {{6, BY_TWO}, {30, BY_THREE}, {50, BY_THREE}, {70, BY_MULTIPLY_ADDS}, {127, BY_MULTIPLY_ADDS}};
  open_sliced(type, OF_THREE_PRODUCTS);
  wsgemm_handle *pedantic = pedantic_handle(type);
  for (int i = 0; i < rows.n_rows; i++) check_used(i, FALLBACK_M, FALLBACK_N, fallback_k());
  for (size_t x = 0; x < sizeof all / sizeof all[0]; x++)
    for (int is_b = 0; is_b < 2; is_b++)
      for (int place = 0; place < 3; place++) {
        const int64_t last = (is_b ? FALLBACK_N : FALLBACK_M) - 1;
        const int64_t line = place == 0 ? 0 : place == 1 ? drawn(1, last - 1) : last;
        const int64_t p = place == 0 ? 0 : place == 1 ? fallback_k() - 1 : drawn(1, fallback_k() - 2);
        const struct fallback_line fallback = {is_b, line, p, type_is_complex(type) ? (int)drawn(0, 1) : 0};
        fallback_line_is(pedantic, &fallback, all[x].big, all[x].by);
      }
  wsgemm_destroy(pedantic);
  rows_close(&rows);
}

/* ---- Gathered lines -------------------------------------------------------------------------- */

/* Of lines that need three slices the elements have the same bits whether they are gathered or, for one such line of the other operand,
 * left in their places; and so have all others, but for those in that line. */
static void gathered_have_bits_of_in_place(bool is_b, int64_t n_marked) {
  static fallback_c gathered, in_place;
  struct stage stage = stage_new(rows.type, FALLBACK_M, FALLBACK_N, fallback_k(), FILL_ZERO, &rng);
  for (int part = 0; part < n_parts(rows.type); part++) {
    const struct lines x = lines_of(&stage, is_b, part), y = lines_of(&stage, !is_b, part);
    fill_each(&x, common), fill_each(&y, common);
  }
  const int part = type_is_complex(rows.type) ? (int)drawn(0, 1) : 0;
  const struct lines x = lines_of(&stage, is_b, part), y = lines_of(&stage, !is_b, part);
  for (int64_t i = 0; i < n_marked; i++) put(&x, drawn(0, x.n - 1), drawn(0, x.k - 1), number(-32));
  product_extend(&stage.product, &stage.a, &stage.b, fallback_k());
  fill_c(&stage);
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_gemm_desc d = drawn_desc(rows.type, FALLBACK_M, FALLBACK_N, fallback_k());
    const struct layout_of_case where = layout_drawn(&rng);
    const struct fallback_line other = {!is_b, drawn(0, y.n - 1), drawn(0, y.k - 1), part};
    const double before = *element(&y, other.line, other.p);
    const char *who = rows.row[i].name;
    char text[DESCRIPTION_BYTES];
    compute(&stage, rows.handle[i], &d, &where, who, gathered);
    case_judge(&stage, &d, JUDGE_BOUND, who);
    put_large(&stage, &other, number(-32));
    compute(&stage, rows.handle[i], &d, &where, who, in_place);
    put_large(&stage, &other, before);
    CHECK(n_different(gathered, in_place, &other, true) == 0, "%s: %s: other bits of %lld lines of %c in their places", who,
          gemm_describe(&d, text), (long long)n_marked, is_b ? 'B' : 'A');
  }
  stage_free(&stage);
}

void gathered_of(wsgemm_type type) {
  static const int64_t counts[] = {1, 3, 20, 44, 70};
  open_sliced(type, OF_THREE_PRODUCTS);
  for (int turn = 0; turn < 20; turn++) {
    if (drawn(1, check_scale()) > 4) continue;
    gathered_have_bits_of_in_place(turn % 2 == 1, counts[turn / 4]);
  }
  rows_close(&rows);
}

/* ---- NaN, Inf, zeros ------------------------------------------------------------------------- */

enum special { SOW_NAN, SOW_PLUS_INF, SOW_MINUS_INF, SOW_BOTH_INF, SOW_ZEROS, N_SPECIALS };

static int64_t placed(int place, int64_t n) { return place == 0 ? 0 : place == 1 ? n - 1 : drawn(0, n - 1); }

/* At (i, j) of one part of a matrix; zeros fill a row and a column. */
static void sow(const struct values *x, int part, enum special what, int64_t i, int64_t j) {
  double *const all = part ? x->im : x->re, *at = &all[i * x->cols + j];
  if (what == SOW_ZEROS) {
    for (int64_t row = 0; row < x->rows; row++) all[row * x->cols + j] = 0;
    for (int64_t col = 0; col < x->cols; col++) all[i * x->cols + col] = 0;
  } else {
    *at = what == SOW_NAN ? (double)NAN : what == SOW_MINUS_INF ? -(double)INFINITY : (double)INFINITY;
    if (what == SOW_BOTH_INF) all[i * x->cols + drawn(0, x->cols - 1)] = -(double)INFINITY;
  }
}

/* Zeros where they meet what was sown in the other operand. */
static void sow_zeros_opposite(const struct stage *stage, bool is_b, int64_t p) {
  for (int part = 0; part < n_parts(rows.type); part++) {
    const struct lines y = lines_of(stage, !is_b, part);
    for (int64_t line = 0; line < y.n; line++)
      if (heads()) put(&y, line, p, 0);
  }
}

static void sow_more(const struct values *x) {
  if (drawn(0, 3) != 0) return;
  const int part = x->is_complex ? (int)drawn(0, 1) : 0;
  sow(x, part, (enum special)drawn(0, N_SPECIALS - 1), drawn(0, x->rows - 1), drawn(0, x->cols - 1));
}

static bool same_class(double x, double y) {
  return isfinite(x) ? isfinite(y) : isnan(x) ? isnan(y) : isinf(y) && signbit(x) == signbit(y);
}

/* Parts of C that are of another class than the multiply-adds' of the same operands. */
static int n_of_other_class(struct stage *stage, wsgemm_handle *pedantic, wsgemm_gemm_desc *d,
                            const struct layout_of_case *where) {
  const int64_t size = d->m * d->n;
  double(*const got)[2] = malloc((size_t)size * sizeof *got);
  REQUIRE(got != NULL, "memory");
  int n = 0;
  for (int64_t at = 0; at < size; at++) matrix_get(&stage->stored[2], at / d->n, at % d->n, &got[at][0], &got[at][1]);
  store_and_call(stage, pedantic, d, where, "multiply-adds");
  for (int64_t at = 0; at < size; at++) {
    double wanted[2];
    matrix_get(&stage->stored[2], at / d->n, at % d->n, &wanted[0], &wanted[1]);
    for (int part = 0; part < 2; part++) n += !same_class(got[at][part], wanted[part]);
  }
  free(got);
  return n;
}

static void classes_at(wsgemm_handle *pedantic, enum special what, int in, int part, int place_i, int place_j) {
  const bool is_complex = type_is_complex(rows.type);
  const int64_t most_side = is_complex ? 70 : 140, most_k = is_complex ? 160 : 300;
  const int64_t m = drawn_side(most_side), n = drawn_side(most_side), k = drawn_k(most_k);
  struct stage stage = stage_new(rows.type, m, n, k, FILL_UNIFORM, &rng);
  const struct values *x = in == 0 ? &stage.a : in == 1 ? &stage.b : &stage.c;
  const int64_t i_sown = placed(place_i, x->rows), j_sown = placed(place_j, x->cols);
  sow(x, part, what, i_sown, j_sown);
  if (in < 2 && heads()) sow_zeros_opposite(&stage, in == 1, in == 0 ? j_sown : i_sown);
  sow_more(&stage.a), sow_more(&stage.b);
  product_extend(&stage.product, &stage.a, &stage.b, k);
  for (int i = 0; i < rows.n_rows; i++) {
    char text[DESCRIPTION_BYTES];
    int64_t i_bad = -1, j_bad = -1;
    wsgemm_gemm_desc d = drawn_desc(rows.type, m, n, k);
    const struct layout_of_case where = layout_drawn(&rng);
    store_and_call(&stage, rows.handle[i], &d, &where, rows.row[i].name);
    CHECK(reference_same_class(&d, &stage.product, &stage.c, &stage.stored[2], &i_bad, &j_bad),
          "%s: %s: element (%lld, %lld) is of another class than the reference's", rows.row[i].name, gemm_describe(&d, text),
          (long long)i_bad, (long long)j_bad);
    judge_at_the_ends(&stage, &d, math_of(rows.row[i].name) == WSGEMM_MATH_TF32 ? 0x1p-10 : 0, rows.row[i].name);
    if (!is_complex) continue;
    const int n_other = n_of_other_class(&stage, pedantic, &d, &where);
    CHECK(n_other == 0, "%s: %s: %d parts of elements are of another class than multiply-adds'", rows.row[i].name,
          gemm_describe(&d, text), n_other);
  }
  stage_free(&stage);
}

void classes_of(wsgemm_type type) {
  open_sliced(type, OF_ANY_PRODUCTS);
  wsgemm_handle *pedantic = pedantic_handle(type);
  for (int part = 0; part < n_parts(type); part++)
    for (int what = 0; what < N_SPECIALS; what++)
      for (int in = 0; in < 3; in++)
        for (int place = 0; place < 9; place++)
          if (drawn(1, check_scale()) == 1) classes_at(pedantic, (enum special)what, in, part, place / 3, place % 3);
  wsgemm_destroy(pedantic);
  rows_close(&rows);
}

/* ---- Numerics classes ------------------------------------------------------------------------ */

/* A and B may lose a part of 2^-11 each. */
static void within_bound_of_tf32(enum fill fill) {
  for (int turn = 0; turn < (check_scale() > 1 ? 1 : 4); turn++) {
    const struct extents most = most_of(rows.type, turn);
    const int64_t m = drawn_side(most.m), n = drawn_side(most.n), k = drawn_k(600);
    struct stage stage = stage_new(rows.type, m, n, k, fill, &rng);
    product_extend(&stage.product, &stage.a, &stage.b, k);
    for (int i = 0; i < rows.n_rows; i++) {
      wsgemm_gemm_desc d = drawn_desc(rows.type, m, n, k);
      const struct layout_of_case where = layout_drawn(&rng);
      check_used(i, m, n, k);
      store_and_call(&stage, rows.handle[i], &d, &where, rows.row[i].name);
      judge_at_the_ends(&stage, &d, 2 * 0x1p-11, rows.row[i].name);
    }
    stage_free(&stage);
  }
}

/* A forced row is used in its own class and no other, by the handle or the descriptor, and from k =
 * 128 on. */
static void classes_of_rows(void) {
  static const wsgemm_math maths[] = {WSGEMM_MATH_INHERIT, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_PEDANTIC, WSGEMM_MATH_TF32};
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < 24; turn++) {
      const wsgemm_math own = maths[1 + turn % 3], asked = maths[turn / 3 % 4], used = asked != WSGEMM_MATH_INHERIT ? asked : own;
      wsgemm_gemm_desc d = to_explain(rows.type, 512, 512, turn < 12 ? 512 : 127);
      d.math = asked;
      REQUIRE(wsgemm_set_math(rows.handle[i], own) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const char *kernel = kernel_of(rows.handle[i], &d);
      const bool is_right = used == math_of(rows.row[i].name) && d.k >= 128 ? strcmp(kernel, rows.row[i].name) == 0
                                                                            : !row_is_of(kernel, OF_ANY_PRODUCTS);
      CHECK(is_right, "%s, math %d of the handle, %d of the descriptor, k = %lld: %s", rows.row[i].name, (int)own, (int)asked,
            (long long)d.k, kernel);
    }
}

void tf32_of(wsgemm_type type) {
  open_sliced(type, OF_ONE_PRODUCT);
  within_bound_of_tf32(FILL_UNIFORM);
  within_bound_of_tf32(FILL_SPREAD);
  rows_close(&rows);
  open_sliced(type, OF_ANY_PRODUCTS);
  classes_of_rows();
  rows_close(&rows);
}

/* A kernel of this type and family is used. */
static void check_kind(wsgemm_handle *h, const wsgemm_gemm_desc *d, const char *family, const char *who) {
  const char *kernel = kernel_of(h, d);
  CHECK(row_info(kernel).type == d->type_a && row_is_of(kernel, family), "%s: %s", who, kernel);
}

void unforced_of(wsgemm_type type) {
  static const char multiply_adds[] = "simt ffma outer";
  const wsgemm_gemm_desc d = to_explain(type, 8192, 8192, 8192), short_k = to_explain(type, 2048, 2048, 16);
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  check_kind(h, &d, OF_THREE_PRODUCTS, "by default");
  check_kind(h, &short_k, multiply_adds, "k = 16");
  CHECK(wsgemm_set_math(h, WSGEMM_MATH_TF32) == WSGEMM_SUCCESS, "TF32: %s", wsgemm_last_error());
  check_kind(h, &d, OF_ONE_PRODUCT, "TF32");
  check_kind(h, &short_k, multiply_adds, "TF32, k = 16");
  CHECK(wsgemm_set_math(h, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS, "PEDANTIC: %s", wsgemm_last_error());
  check_kind(h, &d, multiply_adds, "PEDANTIC");
  for (int math = WSGEMM_MATH_DEFAULT; math <= WSGEMM_MATH_TF32; math++) {
    CHECK(wsgemm_set_math(h, (wsgemm_math)math) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS, "%s",
          wsgemm_last_error());
    check_kind(h, &d, "simt", "invariant");
  }
  wsgemm_destroy(h);
}
