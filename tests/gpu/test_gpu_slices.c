/* test_gpu_slices.c - FP32 products by slices of FP16 (compute capability 9.0): within the bound whatever numbers A and B hold; the rows and
 * columns that slices cannot stand for, and they alone, have the multiply-adds' bits; NaN and Inf; the same bits over rows, policies,
 * quanta, runs, workspaces, pieces and batches, and from graphs; which numerics class uses which rows. Edges of tiles are also tested where
 * those of the other rows are. */
#include "gpu.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct check_random dice;
static struct rows_of_type rows;
static int64_t drawn(int64_t low, int64_t high) { return check_random_in(&dice, low, high); }
static double unit(void) { return check_random_unit(&dice); }
static bool heads(void) { return drawn(0, 1) == 1; }

/* ---- Rows of slices, and what explain says of them --------------------------------------------------------------------------------- */

static const char of_three[] = "_f16x3_", of_one[] = "_f16x1_", of_any[] = "_f16x";
static wsgemm_math math_of(const char *name) { return strstr(name, of_one) ? WSGEMM_MATH_TF32 : WSGEMM_MATH_DEFAULT; }

/* Those whose names contain `product`, each in its numerics class. */
static void open_sliced(const char *product) {
  int n_kept = 0;
  rows_open(&rows, WSGEMM_F32);
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_handle *h = rows.handle[i];
    if (!strstr(rows.row[i].name, product)) {
      CHECK(wsgemm_destroy(h) == WSGEMM_SUCCESS, "destroy");
      continue;
    }
    REQUIRE(wsgemm_set_math(h, math_of(rows.row[i].name)) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    rows.row[n_kept] = rows.row[i], rows.handle[n_kept++] = h;
  }
  rows.n_rows = n_kept;
  REQUIRE(n_kept > 0, "no row is called %s", product);
}

/* By multiply-adds in the order of k, uncut. */
static wsgemm_handle *pedantic_handle(void) {
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  for (int i = 0; i < wsgemm_kernel_count(); i++)
    if (strncmp(wsgemm_kernel_name(i), "sgemm_simt_", 11) == 0 && wsgemm_kernel_usable(i)) {
      REQUIRE(wsgemm_set_kernel(h, wsgemm_kernel_name(i)) == WSGEMM_SUCCESS &&
                  wsgemm_set_math(h, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS && wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS,
              "%s", wsgemm_last_error());
      return h;
    }
  REQUIRE(false, "no row of multiply-adds");
  return NULL;
}

static void workspace_of(wsgemm_handle *h, void *memory, size_t bytes) {
  REQUIRE(wsgemm_set_workspace(h, memory, bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

/* The kernel that explain names; valid until the next call. */
static const char *kernel_of(wsgemm_handle *h, const wsgemm_gemm_desc *d) {
  static char text[4096], name[128];
  REQUIRE(wsgemm_explain(h, d, text, sizeof text) < sizeof text, "a long explanation");
  const char *line = strstr(text, "\nkernel: ");
  REQUIRE(line && sscanf(line, " kernel: %127s", name) == 1, "explained as: %s", text);
  return name;
}

/* A plain product of these sizes in device memory, for explain alone. */
static wsgemm_gemm_desc to_explain(int64_t m, int64_t n, int64_t k) {
  static void *memory;
  if (!memory) memory = gpu_alloc(256);
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, m, n, k);
  d.a = d.b = d.c = memory;
  return d;
}

static void check_used(wsgemm_handle *h, const char *row, int64_t m, int64_t n, int64_t k) {
  const wsgemm_gemm_desc d = to_explain(m, n, k);
  CHECK(strcmp(kernel_of(h, &d), row) == 0, "%lld x %lld x %lld on %s, not %s", (long long)m, (long long)n, (long long)k,
        kernel_of(h, &d), row);
}

static bool can_slice(void) {
  for (int i = 0; i < wsgemm_kernel_count(); i++) {
    wsgemm_handle *h = NULL;
    if (!strstr(wsgemm_kernel_name(i), of_three) || !wsgemm_kernel_usable(i)) continue;
    REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS && wsgemm_set_kernel(h, wsgemm_kernel_name(i)) == WSGEMM_SUCCESS, "%s",
            wsgemm_last_error());
    const wsgemm_gemm_desc d = to_explain(512, 512, 512);
    const bool is_used = strcmp(kernel_of(h, &d), wsgemm_kernel_name(i)) == 0;
    wsgemm_destroy(h);
    if (is_used) return true;
  }
  return false;
}

/* ---- Sizes, scalars, operands ------------------------------------------------------------------------------------------------------- */

/* One time in three next to an edge of tiles. */
static int64_t drawn_side(int64_t most) {
  const int64_t edge = 64 * drawn(1, 4) + drawn(-1, 1);
  return drawn(0, 2) == 0 && edge <= most ? edge : drawn(1, most);
}
static int64_t drawn_k(int64_t most) {
  const int64_t edge = 64 * drawn(2, 5) + drawn(0, 2) - 1;
  return drawn(0, 2) == 0 && edge >= 128 && edge <= most ? edge : drawn(128, most);
}

static wsgemm_gemm_desc drawn_desc(int64_t m, int64_t n, int64_t k) {
  static const double alphas[] = {1, -1, 1.5, -0.5, 0.7}, betas[] = {0, 1, -0.5};
  wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, draw_layout(&dice), draw_op(WSGEMM_F32, &dice), draw_op(WSGEMM_F32, &dice), m, n, k);
  d.alpha = scalar_make(WSGEMM_F32, alphas[drawn(0, 4)], 0);
  d.beta = scalar_make(WSGEMM_F32, betas[drawn(0, 2)], 0);
  return d;
}

/* Rows of op(A), or columns of op(B): n of them, of k elements each. */
struct lines {
  double *re;
  int64_t n, k, next_line, next_k;
};
static struct lines lines_of(const struct stage *stage, bool is_b) {
  const struct values *x = is_b ? &stage->b : &stage->a;
  return is_b ? (struct lines){x->re, x->cols, x->rows, 1, x->cols} : (struct lines){x->re, x->rows, x->cols, x->cols, 1};
}
static double *element(const struct lines *x, int64_t line, int64_t p) { return &x->re[line * x->next_line + p * x->next_k]; }
static void put(const struct lines *x, int64_t line, int64_t p, double value) {
  *element(x, line, p) = type_round(WSGEMM_F32, value);
}

/* C of the size of what is added to it. */
static void fill_c(const struct stage *stage) {
  for (int64_t at = 0; at < stage->product.m * stage->product.n; at++)
    stage->c.re[at] = type_round(WSGEMM_F32, unit() * (double)stage->product.magnitude[at]);
}

/* ---- The bound ---------------------------------------------------------------------------------------------------------------------- */

static double gamma_of(int64_t k) {
  const double u = FLT_EPSILON / 2;
  return (double)(k + 2) * u / (1 - (double)(k + 2) * u);
}

/* Elements that should be finite: within the bound, where results and what they are made of may also be subnormal, and parts of |A| |B| may
 * be lost besides. Returns how many results are subnormal. */
static int judge_at_the_ends(const struct stage *stage, const wsgemm_gemm_desc *d, double lost, const char *who) {
  const struct product *p = &stage->product;
  const double alpha = (double)d->alpha.s, beta = (double)d->beta.s, gamma = gamma_of(d->k) + 64 * DBL_EPSILON;
  int n_wrong = 0, n_subnormal = 0;
  for (int64_t i = 0; i < d->m; i++)
    for (int64_t j = 0; j < d->n; j++) {
      const int64_t at = i * p->n + j;
      const double old = beta != 0 ? stage->c.re[at] : 0, wanted = alpha * (double)p->re[at] + beta * old;
      if (!isfinite(wanted)) continue;
      const double bound = (gamma + lost) * fabs(alpha) * (double)p->magnitude[at] + gamma * fabs(beta * old) +
                           (2 * (double)d->k * fabs(alpha) + 4) * 0x1p-149;
      double got, unused;
      char text[DESCRIPTION_BYTES];
      matrix_get(&stage->stored[2], i, j, &got, &unused);
      n_subnormal += got != 0 && fabs(got) < (double)FLT_MIN;
      if (!(fabs(got - wanted) <= bound) && n_wrong++ == 0)
        CHECK(false, "%s: %s: (%lld, %lld) is %.9g, not %.9g; error/bound %.3g", who, gemm_describe(d, text), (long long)i,
              (long long)j, got, wanted, fabs(got - wanted) / bound);
    }
  CHECK(n_wrong == 0, "%s: %d elements are wrong", who, n_wrong);
  return n_subnormal;
}

static void call(struct stage *stage, wsgemm_handle *h, wsgemm_gemm_desc *d, const struct layout_of_case *where,
                 const char *who) {
  case_store(stage, d, where);
  CHECK(call_on_device(stage, h, d, heads()) == WSGEMM_SUCCESS, "%s: %s", who, wsgemm_last_error());
  case_guards_intact(stage, d, who);
}

/* ---- Numbers of all kinds ------------------------------------------------------------------------------------------------------------- */

static double positive(void) { return fabs(unit()); }
static double lognormal(void) { return exp(2 * sqrt(-2 * log(positive())) * cos(3.14159265358979324 * unit())); }
static double over_30_exponents(void) { return ldexp(unit(), (int)drawn(0, 30)); }
/* With 24 digits, in [2^e, 2^(e + 1)) or the negative; no larger than a float can be. */
static double number(int e) {
  const double x = fmin(type_round(WSGEMM_F32, ldexp(1 + positive(), e)), type_largest(WSGEMM_F32));
  return heads() ? x : -x;
}

static void fill_each(const struct lines *x, double (*draw)(void)) {
  for (int64_t line = 0; line < x->n; line++)
    for (int64_t p = 0; p < x->k; p++) put(x, line, p, draw());
}
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

/* 2^128 2^-12 700 is less than 2^126, so that nothing overflows. */
static void fill_whole_range(const struct lines *x, const struct lines *y) {
  fill_ranges(x, -126, 127), fill_ranges(y, -126, -13);
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
  fill_ranges(y, -40, -14);
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
  void (*fill)(const struct lines *x, const struct lines *y); /* A and B, or B and A */
  bool underflows;
} all_distributions[] = {{"uniform(-1,1)", fill_uniform, false},        {"uniform(0,1)", fill_positive, false},
                         {"lognormal", fill_lognormal, false},          {"exponents over 2^30", fill_exponents, false},
                         {"whole range", fill_whole_range, true},       {"middle range", fill_middle_range, true},
                         {"graded lines", fill_graded_lines, false},    {"graded inner dimension", fill_graded_inner, false},
                         {"cancelling", fill_cancelling, false},        {"subnormal", fill_subnormal, true},
                         {"near the largest", fill_near_largest, true}, {"hilbert", fill_hilbert, false},
                         {"zero lines", fill_zero_lines, false}};

static struct stage stage_filled(const struct distribution *how, int64_t m, int64_t n, int64_t k) {
  struct stage stage = stage_new(WSGEMM_F32, m, n, k, FILL_ZERO, &dice);
  const struct lines a = lines_of(&stage, false), b = lines_of(&stage, true);
  if (heads())
    how->fill(&a, &b);
  else
    how->fill(&b, &a);
  product_extend(&stage.product, &stage.a, &stage.b, k);
  double most = 0;
  for (int64_t at = 0; at < m * n; at++) most = fmax(most, (double)stage.product.magnitude[at]);
  REQUIRE(most < 0x1p126, "%s: a sum may overflow", how->name);
  fill_c(&stage);
  return stage;
}

static void distributions(void) {
  int n_subnormal = 0;
  dice = check_random_from(170);
  open_sliced(of_three);
  for (size_t x = 0; x < sizeof all_distributions / sizeof all_distributions[0]; x++)
    for (int turn = 0; turn < (check_scale() > 1 ? 1 : 3); turn++) {
      const struct distribution *how = &all_distributions[x];
      const int64_t m = drawn_side(300), n = drawn_side(300), k = drawn_k(700);
      struct stage stage = stage_filled(how, m, n, k);
      for (int i = 0; i < rows.n_rows; i++)
        for (int calls = 0; calls < 2; calls++) {
          char who[128];
          wsgemm_gemm_desc d = drawn_desc(m, n, k);
          const struct layout_of_case where = layout_drawn(&dice);
          snprintf(who, sizeof who, "%s, %s", rows.row[i].name, how->name);
          check_used(rows.handle[i], rows.row[i].name, m, n, k);
          if (!how->underflows) {
            run_case(&stage, rows.handle[i], &d, &where, heads(), JUDGE_BOUND, who);
          } else {
            call(&stage, rows.handle[i], &d, &where, who);
            n_subnormal += judge_at_the_ends(&stage, &d, 0, who);
          }
        }
      stage_free(&stage);
    }
  CHECK(n_subnormal > 0, "no result was subnormal");
  rows_close(&rows);
}

/* ---- Marked rows and columns ---------------------------------------------------------------------------------------------------------- */

enum { MARKED_M = 100, MARKED_N = 90, MARKED_K = 256 };
typedef float marked_c[MARKED_M * MARKED_N];

static void compute(struct stage *stage, wsgemm_handle *h, wsgemm_gemm_desc *d, const struct layout_of_case *where,
                    const char *who, marked_c c) {
  call(stage, h, d, where, who);
  for (int64_t at = 0; at < MARKED_M * MARKED_N; at++) {
    double re, im;
    matrix_get(&stage->stored[2], at / MARKED_N, at % MARKED_N, &re, &im);
    c[at] = (float)re;
  }
}

/* Elements of one line of C (or of all the others) that have other bits. */
static int n_different(const marked_c x, const marked_c y, bool is_column, int64_t line, bool others) {
  int n = 0;
  for (int64_t at = 0; at < MARKED_M * MARKED_N; at++) {
    const bool is_in = (is_column ? at % MARKED_N : at / MARKED_N) == line;
    n += is_in != others && memcmp(&x[at], &y[at], sizeof x[at]) != 0;
  }
  return n;
}

/* What two slices hold of an element, the largest of its line being `most`. */
static double as_slices(double x, double most) {
  const int e = 14 - ilogb(most);
  const double y = ldexp(x, e), first = type_round(WSGEMM_F16, y), second = type_round(WSGEMM_F16, ldexp(y - first, 11));
  return ldexp(first + ldexp(second, -11), -e);
}

/* How many elements of C would be out of the bound if a line of x were its slices, and all else exact. */
static int n_out_of_bound(const struct stage *stage, const struct lines *x, const struct lines *y, int64_t line, bool is_b) {
  double most = 0;
  int n = 0;
  for (int64_t p = 0; p < x->k; p++) most = fmax(most, fabs(*element(x, line, p)));
  for (int64_t other = 0; other < y->n; other++) {
    const int64_t at = is_b ? other * MARKED_N + line : line * MARKED_N + other;
    double sum = 0;
    for (int64_t p = 0; p < x->k; p++) sum += as_slices(*element(x, line, p), most) * *element(y, other, p);
    n += fabs(sum - (double)stage->product.re[at]) > gamma_of(x->k) * (double)stage->product.magnitude[at];
  }
  return n;
}

static double common(void) { return number(0); }
static double small(void) { return number(-10); }

/* What computes the elements of C in a line of A or B. */
enum arithmetic { BY_TWO, BY_THREE, BY_MULTIPLY_ADDS };

static int64_t n_fallbacks(void) {
  int64_t n = -1;
  CHECK(wsgemm_get_fallback_count(NULL, 0, &n) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  return n;
}

/* One element 2^big that meets only zeros, beside small ones whose sum is what is asked for. */
static void marked_line(wsgemm_handle *pedantic, bool is_b, int64_t line, int64_t p, int big, enum arithmetic by) {
  static marked_c by_slices, by_fma, plain;
  struct stage stage = stage_new(WSGEMM_F32, MARKED_M, MARKED_N, MARKED_K, FILL_ZERO, &dice);
  const struct lines x = lines_of(&stage, is_b), y = lines_of(&stage, !is_b);
  fill_each(&x, small), fill_each(&y, common);
  for (int64_t other = 0; other < y.n; other++) put(&y, other, p, 0);
  put(&x, line, p, ldexp(1, big));
  product_extend(&stage.product, &stage.a, &stage.b, MARKED_K);
  fill_c(&stage);
  const int n_out = n_out_of_bound(&stage, &x, &y, line, is_b);
  CHECK((n_out > 0) == (by != BY_TWO), "2^%d in line %lld of %c: slices alone have %d elements out of the bound", big,
        (long long)line, is_b ? 'B' : 'A', n_out);
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_gemm_desc d = drawn_desc(MARKED_M, MARKED_N, MARKED_K);
    const struct layout_of_case where = layout_drawn(&dice);
    const char *who = rows.row[i].name;
    compute(&stage, pedantic, &d, &where, "multiply-adds", by_fma);
    put(&x, line, p, 0);
    compute(&stage, rows.handle[i], &d, &where, who, plain);
    put(&x, line, p, ldexp(1, big));
    const int64_t n_before = n_fallbacks();
    compute(&stage, rows.handle[i], &d, &where, who, by_slices);
    CHECK(n_fallbacks() == n_before + (by != BY_TWO), "%s: %lld lines fell back", who, (long long)(n_fallbacks() - n_before));
    case_judge(&stage, &d, JUDGE_BOUND, who);
    const int n_in_line = n_different(by_slices, by_fma, is_b, line, false),
              n_beside = n_different(by_slices, by_fma, is_b, line, true),
              n_changed = n_different(by_slices, plain, is_b, line, true);
    char text[DESCRIPTION_BYTES];
    CHECK((n_in_line == 0) == (by == BY_MULTIPLY_ADDS),
          "%s: %s: 2^%d in line %lld of %c: %d of its elements have other bits than multiply-adds", who, gemm_describe(&d, text),
          big, (long long)line, is_b ? 'B' : 'A', n_in_line);
    CHECK(n_beside > 0, "%s: %s: slices were not used", who, gemm_describe(&d, text));
    CHECK(n_changed == 0, "%s: %s: 2^%d in line %lld of %c changed %d elements of other lines", who, gemm_describe(&d, text), big,
          (long long)line, is_b ? 'B' : 'A', n_changed);
  }
  stage_free(&stage);
}

static void marked_is_needed(void) {
  static const struct {
    int big;
    enum arithmetic by;
  } all[] = {{6, BY_TWO}, {30, BY_THREE}, {50, BY_THREE}, {70, BY_MULTIPLY_ADDS}, {127, BY_MULTIPLY_ADDS}};
  dice = check_random_from(171);
  open_sliced(of_three);
  wsgemm_handle *pedantic = pedantic_handle();
  for (int i = 0; i < rows.n_rows; i++) check_used(rows.handle[i], rows.row[i].name, MARKED_M, MARKED_N, MARKED_K);
  for (size_t x = 0; x < sizeof all / sizeof all[0]; x++)
    for (int is_b = 0; is_b < 2; is_b++)
      for (int place = 0; place < 3; place++) {
        const int64_t last = (is_b ? MARKED_N : MARKED_M) - 1;
        const int64_t line = place == 0 ? 0 : place == 1 ? drawn(1, last - 1) : last;
        const int64_t p = place == 0 ? 0 : place == 1 ? MARKED_K - 1 : drawn(1, MARKED_K - 2);
        marked_line(pedantic, is_b, line, p, all[x].big, all[x].by);
      }
  wsgemm_destroy(pedantic);
  rows_close(&rows);
}

/* ---- NaN, Inf, zeros -------------------------------------------------------------------------------------------------------------------- */

enum special { SOW_NAN, SOW_PLUS_INF, SOW_MINUS_INF, SOW_BOTH_INF, SOW_ZEROS, N_SPECIALS };

static int64_t placed(int place, int64_t n) { return place == 0 ? 0 : place == 1 ? n - 1 : drawn(0, n - 1); }

/* At (i, j) of one matrix; zeros fill a row and a column. */
static void sow(const struct values *x, enum special what, int64_t i, int64_t j) {
  double *at = &x->re[i * x->cols + j];
  if (what == SOW_ZEROS) {
    for (int64_t row = 0; row < x->rows; row++) x->re[row * x->cols + j] = 0;
    for (int64_t col = 0; col < x->cols; col++) x->re[i * x->cols + col] = 0;
  } else {
    *at = what == SOW_NAN ? (double)NAN : what == SOW_MINUS_INF ? -(double)INFINITY : (double)INFINITY;
    if (what == SOW_BOTH_INF) x->re[i * x->cols + drawn(0, x->cols - 1)] = -(double)INFINITY;
  }
}

/* Zeros where they meet what was sown in the other operand. */
static void sow_zeros_opposite(const struct stage *stage, bool is_b, int64_t p) {
  const struct lines y = lines_of(stage, !is_b);
  for (int64_t line = 0; line < y.n; line++)
    if (heads()) put(&y, line, p, 0);
}

static void classes_at(enum special what, int in, int place_i, int place_j) {
  const int64_t m = drawn_side(140), n = drawn_side(140), k = drawn_k(300);
  struct stage stage = stage_new(WSGEMM_F32, m, n, k, FILL_UNIFORM, &dice);
  const struct values *x = in == 0 ? &stage.a : in == 1 ? &stage.b : &stage.c;
  const int64_t i_sown = placed(place_i, x->rows), j_sown = placed(place_j, x->cols);
  sow(x, what, i_sown, j_sown);
  if (in < 2 && heads()) sow_zeros_opposite(&stage, in == 1, in == 0 ? j_sown : i_sown);
  if (drawn(0, 3) == 0) sow(&stage.a, (enum special)drawn(0, N_SPECIALS - 1), drawn(0, m - 1), drawn(0, k - 1));
  if (drawn(0, 3) == 0) sow(&stage.b, (enum special)drawn(0, N_SPECIALS - 1), drawn(0, k - 1), drawn(0, n - 1));
  product_extend(&stage.product, &stage.a, &stage.b, k);
  for (int i = 0; i < rows.n_rows; i++) {
    char text[DESCRIPTION_BYTES];
    int64_t i_bad = -1, j_bad = -1;
    wsgemm_gemm_desc d = drawn_desc(m, n, k);
    const struct layout_of_case where = layout_drawn(&dice);
    call(&stage, rows.handle[i], &d, &where, rows.row[i].name);
    CHECK(reference_same_class(&d, &stage.product, &stage.c, &stage.stored[2], &i_bad, &j_bad),
          "%s: %s: element (%lld, %lld) is of another class than the reference's", rows.row[i].name, gemm_describe(&d, text),
          (long long)i_bad, (long long)j_bad);
    judge_at_the_ends(&stage, &d, math_of(rows.row[i].name) == WSGEMM_MATH_TF32 ? 0x1p-10 : 0, rows.row[i].name);
  }
  stage_free(&stage);
}

static void classes(void) {
  dice = check_random_from(172);
  open_sliced(of_any);
  for (int what = 0; what < N_SPECIALS; what++)
    for (int in = 0; in < 3; in++)
      for (int place = 0; place < 9; place++)
        if (drawn(1, check_scale()) == 1) classes_at((enum special)what, in, place / 3, place % 3);
  rows_close(&rows);
}

/* ---- Bits ------------------------------------------------------------------------------------------------------------------------------- */

/* Numbers of (-1, 1), of which a few are so large that they mark their rows and columns. */
static float *new_floats(int64_t n, int n_marks) {
  float *x = malloc((size_t)n * sizeof *x);
  REQUIRE(x != NULL, "memory");
  for (int64_t at = 0; at < n; at++) x[at] = (float)unit();
  for (int i = 0; i < n_marks; i++) x[drawn(0, n - 1)] = 0x1p60f;
  return x;
}

/* The same numbers at whole 16 bytes, and one element off. */
struct twice {
  float *at[2], *memory[2];
};
static struct twice twice_new(int64_t n, int n_marks) {
  float *host = new_floats(n, n_marks);
  struct twice x;
  for (int i = 0; i < 2; i++) {
    x.memory[i] = gpu_alloc((size_t)(n + 1) * sizeof *host);
    x.at[i] = x.memory[i] + i;
    GPU(cudaMemcpy(x.at[i], host, (size_t)n * sizeof *host, cudaMemcpyHostToDevice));
  }
  free(host);
  return x;
}
static void twice_free(struct twice *x) { gpu_free(x->memory[0]), gpu_free(x->memory[1]); }

static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL,
                                         WSGEMM_POLICY_CLC,        WSGEMM_POLICY_FOREACH,      WSGEMM_POLICY_AUTO};
enum { N_POLICIES = sizeof policies / sizeof policies[0], N_QUANTA = 3, GUARD = 4096 };

/* With memory for no piece the call that d says has PEDANTIC's bits, not those of slices. */
static void without_memory(wsgemm_handle *h, const wsgemm_gemm_desc *d, size_t c_bytes, void *memory,
                           unsigned long long by_slices) {
  unsigned long long digest[2];
  workspace_of(h, memory, 256);
  for (int is_pedantic = 0; is_pedantic < 2; is_pedantic++) {
    CHECK(wsgemm_set_math(h, is_pedantic ? WSGEMM_MATH_PEDANTIC : WSGEMM_MATH_DEFAULT) == WSGEMM_SUCCESS, "%s",
          wsgemm_last_error());
    GPU(cudaMemset(d->c, 0xff, c_bytes));
    CHECK(wsgemm_gemm(h, d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    digest[is_pedantic] = gpu_digest(d->c, c_bytes);
  }
  CHECK(digest[0] == digest[1], "without memory: other bits than PEDANTIC's");
  CHECK(digest[0] != by_slices, "without memory: the bits of slices");
  CHECK(wsgemm_set_math(h, WSGEMM_MATH_DEFAULT) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
}

/* All with one digest: in the library's workspace, and in few bytes of the caller's, where the product is cut into pieces. */
static void bits_of(int64_t m, int64_t n, int64_t k, size_t few, wsgemm_op transa, wsgemm_op transb) {
  const size_t c_bytes = (size_t)(m * n) * sizeof(float);
  struct twice a = twice_new(m * k, 3), b = twice_new(k * n, 2), c = twice_new(m * n, 0);
  unsigned char *memory = gpu_alloc(few + 2 * GUARD); /* of few = 0 bytes: only guards, which without_memory leaves alone, too */
  GPU(cudaMemset(memory, 0x5a, few + 2 * GUARD));
  const unsigned long long guards = gpu_digest(memory, GUARD) + gpu_digest(memory + GUARD + few, GUARD);
  unsigned long long first = 0;
  int n_calls = 0;
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_handle *h = rows.handle[i];
    wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, transa, transb, m, n, k);
    size_t bytes = 0;
    d.a = a.at[0], d.b = b.at[0], d.c = c.at[0];
    CHECK(strcmp(kernel_of(h, &d), rows.row[i].name) == 0, "%s in place of %s", kernel_of(h, &d), rows.row[i].name);
    CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS && bytes > few, "%zu bytes of workspace hold all %zu", few,
          bytes);
    for (int turn = 0; turn < N_POLICIES * N_QUANTA * 2; turn++) {
      const int policy = turn % N_POLICIES, quantum = turn / N_POLICIES % N_QUANTA, in_pieces = turn / (N_POLICIES * N_QUANTA);
      if (in_pieces && few == 0) continue;
      wsgemm_set_policy(h, policies[policy]), wsgemm_set_quantum(h, quantum);
      workspace_of(h, in_pieces ? memory + GUARD : NULL, in_pieces ? few : 0);
      for (int run = 0; run < (check_scale() > 1 ? 1 : 5); run++) {
        d.a = a.at[run % 2], d.b = b.at[run / 2 % 2], d.c = c.at[run % 2];
        GPU(cudaMemset(d.c, 0xff, c_bytes));
        CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
        const unsigned long long digest = gpu_digest(d.c, c_bytes);
        char text[DESCRIPTION_BYTES];
        if (n_calls++ == 0) first = digest;
        CHECK(digest == first, "%s: %s, policy %d, quantum %d%s: other bits than %s", rows.row[i].name, gemm_describe(&d, text),
              (int)policies[policy], quantum, in_pieces ? ", in pieces" : "", rows.row[0].name);
      }
    }
    without_memory(h, &d, c_bytes, memory + GUARD, first);
    workspace_of(h, NULL, 0);
  }
  CHECK(gpu_digest(memory, GUARD) + gpu_digest(memory + GUARD + few, GUARD) == guards,
        "the workspace's surroundings were written");
  twice_free(&a), twice_free(&b), twice_free(&c);
  gpu_free(memory);
}

static void bits(void) {
  dice = check_random_from(173);
  open_sliced(of_three);
  bits_of(600, 700, 512, 2 << 20, WSGEMM_NO_TRANS, WSGEMM_TRANS);
  bits_of(300, 1100, 300, 1 << 20, WSGEMM_TRANS, WSGEMM_NO_TRANS);
  bits_of(129, 257, 1000, 0, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS);
  rows_close(&rows);
}

/* ---- Graphs ----------------------------------------------------------------------------------------------------------------------------- */

enum { GRAPH_M = 200, GRAPH_K = 300, GRAPH_N = 260, GRAPH_LAST = 150, N_REPLAYS = 20, N_INPUTS = 4 };
enum { N_A = GRAPH_M * GRAPH_K, N_B = GRAPH_K * GRAPH_N, N_D = GRAPH_N * GRAPH_LAST, N_C = GRAPH_M * GRAPH_N };

/* C = A B, then E = C D; the handles may be one. */
struct chain {
  wsgemm_handle *h[2];
  void *workspace[2];
  float *in[3], *c, *e; /* A, B, D */
  cudaStream_t stream;
};
static const int64_t n_in[3] = {N_A, N_B, N_D};
enum { C_BYTES = N_C * 4, E_BYTES = GRAPH_M * GRAPH_LAST * 4 };

static wsgemm_gemm_desc desc_of_chain(const struct chain *x, int which) {
  wsgemm_gemm_desc d = which == 0
                           ? gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, GRAPH_M, GRAPH_N, GRAPH_K)
                           : gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, GRAPH_M, GRAPH_LAST, GRAPH_N);
  d.a = which == 0 ? x->in[0] : x->c, d.b = x->in[1 + which], d.c = which == 0 ? x->c : x->e;
  return d;
}

static void multiply_chain(const struct chain *x) {
  for (int which = 0; which < 2; which++) {
    const wsgemm_gemm_desc d = desc_of_chain(x, which);
    CHECK(wsgemm_gemm(x->h[which], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
}

/* A workspace of the caller's, as the library has its own for two captured launches only. */
static struct chain chain_new(const char *row, int n_handles) {
  struct chain x = {.c = gpu_alloc(C_BYTES), .e = gpu_alloc(E_BYTES)};
  for (int i = 0; i < 3; i++) x.in[i] = gpu_alloc((size_t)n_in[i] * sizeof(float));
  GPU(cudaStreamCreateWithFlags(&x.stream, cudaStreamNonBlocking));
  for (int i = 0; i < n_handles; i++)
    REQUIRE(wsgemm_create(&x.h[i]) == WSGEMM_SUCCESS && wsgemm_set_kernel(x.h[i], row) == WSGEMM_SUCCESS &&
                wsgemm_set_stream(x.h[i], x.stream) == WSGEMM_SUCCESS,
            "%s", wsgemm_last_error());
  if (n_handles == 1) x.h[1] = x.h[0];
  for (int i = 0; i < 2; i++) {
    size_t bytes[2];
    for (int which = 0; which < 2; which++) {
      const wsgemm_gemm_desc d = desc_of_chain(&x, which);
      CHECK(strcmp(kernel_of(x.h[i], &d), row) == 0, "%s in place of %s", kernel_of(x.h[i], &d), row);
      REQUIRE(wsgemm_get_workspace_size(x.h[i], &d, &bytes[which]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    }
    const size_t most = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    x.workspace[i] = gpu_alloc(most);
    workspace_of(x.h[i], x.workspace[i], most);
  }
  return x;
}

static void chain_free(struct chain *x) {
  if (x->h[1] != x->h[0]) wsgemm_destroy(x->h[1]);
  wsgemm_destroy(x->h[0]);
  for (int i = 0; i < 2; i++) gpu_free(x->workspace[i]);
  for (int i = 0; i < 3; i++) gpu_free(x->in[i]);
  gpu_free(x->c), gpu_free(x->e);
  GPU(cudaStreamDestroy(x->stream));
}

static void poison_chain(const struct chain *x) {
  GPU(cudaMemsetAsync(x->c, 0xff, C_BYTES, x->stream));
  GPU(cudaMemsetAsync(x->e, 0xff, E_BYTES, x->stream));
}

static void captured_on(const char *row, int n_handles, float *inputs[N_INPUTS][3]) {
  struct chain x = chain_new(row, n_handles);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  unsigned long long before = 0;
  GPU(cudaStreamBeginCapture(x.stream, cudaStreamCaptureModeGlobal));
  multiply_chain(&x);
  GPU(cudaStreamEndCapture(x.stream, &graph));
  GPU(cudaGraphInstantiate(&exec, graph, 0));
  for (int replay = 0; replay < N_REPLAYS; replay++) {
    unsigned long long of_c[2], of_e[2];
    for (int i = 0; i < 3; i++)
      GPU(cudaMemcpyAsync(x.in[i], inputs[replay % N_INPUTS][i], (size_t)n_in[i] * sizeof(float), cudaMemcpyHostToDevice,
                          x.stream));
    for (int turn = 0; turn < 2; turn++) {
      const bool by_graph = turn != replay % 2; /* either may find what the other left in the workspace */
      poison_chain(&x);
      if (by_graph)
        GPU(cudaGraphLaunch(exec, x.stream));
      else
        multiply_chain(&x);
      GPU(cudaStreamSynchronize(x.stream));
      of_c[turn] = gpu_digest(x.c, C_BYTES), of_e[turn] = gpu_digest(x.e, E_BYTES);
    }
    CHECK(of_c[0] == of_c[1] && of_e[0] == of_e[1], "%s, %d handles, replay %d: other bits than the direct calls'", row,
          n_handles, replay);
    CHECK(of_e[0] != before, "%s, replay %d: new numbers give the old result", row, replay);
    before = of_e[0];
  }
  GPU(cudaGraphExecDestroy(exec));
  GPU(cudaGraphDestroy(graph));
  chain_free(&x);
}

/* Inputs with no marks, with some, and with NaN and Inf: what is marked is known only when the graph runs. */
static void captured(void) {
  float *inputs[N_INPUTS][3];
  dice = check_random_from(174);
  for (int set = 0; set < N_INPUTS; set++)
    for (int i = 0; i < 3; i++) inputs[set][i] = new_floats(n_in[i], set % 2 ? 2 : 0);
  inputs[2][0][drawn(0, N_A - 1)] = NAN, inputs[2][2][drawn(0, N_D - 1)] = -INFINITY;
  open_sliced(of_three);
  for (int i = 0; i < rows.n_rows; i++)
    for (int n_handles = 1; n_handles <= 2; n_handles++) captured_on(rows.row[i].name, n_handles, inputs);
  rows_close(&rows);
  for (int set = 0; set < N_INPUTS; set++)
    for (int i = 0; i < 3; i++) free(inputs[set][i]);
}

/* ---- Numerics classes ------------------------------------------------------------------------------------------------------------------- */

/* A and B may lose a part of 2^-11 each. */
static void within_bound_of_tf32(enum fill fill) {
  for (int turn = 0; turn < (check_scale() > 1 ? 1 : 4); turn++) {
    const int64_t m = drawn_side(300), n = drawn_side(300), k = drawn_k(600);
    struct stage stage = stage_new(WSGEMM_F32, m, n, k, fill, &dice);
    product_extend(&stage.product, &stage.a, &stage.b, k);
    for (int i = 0; i < rows.n_rows; i++) {
      wsgemm_gemm_desc d = drawn_desc(m, n, k);
      const struct layout_of_case where = layout_drawn(&dice);
      check_used(rows.handle[i], rows.row[i].name, m, n, k);
      call(&stage, rows.handle[i], &d, &where, rows.row[i].name);
      judge_at_the_ends(&stage, &d, 2 * 0x1p-11, rows.row[i].name);
    }
    stage_free(&stage);
  }
}

/* A forced row is used in its own class and no other, by the handle or the descriptor, and from k = 128 on. */
static void classes_of_rows(void) {
  static const wsgemm_math maths[] = {WSGEMM_MATH_INHERIT, WSGEMM_MATH_DEFAULT, WSGEMM_MATH_PEDANTIC, WSGEMM_MATH_TF32};
  for (int i = 0; i < rows.n_rows; i++)
    for (int turn = 0; turn < 24; turn++) {
      const wsgemm_math own = maths[1 + turn % 3], asked = maths[turn / 3 % 4], used = asked != WSGEMM_MATH_INHERIT ? asked : own;
      wsgemm_gemm_desc d = to_explain(512, 512, turn < 12 ? 512 : 127);
      d.math = asked;
      REQUIRE(wsgemm_set_math(rows.handle[i], own) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
      const char *kernel = kernel_of(rows.handle[i], &d);
      const bool is_right = used == math_of(rows.row[i].name) && d.k >= 128 ? strcmp(kernel, rows.row[i].name) == 0
                                                                            : strstr(kernel, of_any) == NULL;
      CHECK(is_right, "%s, math %d of the handle, %d of the descriptor, k = %lld: %s", rows.row[i].name, (int)own, (int)asked,
            (long long)d.k, kernel);
    }
}

static void unforced(void) {
  const wsgemm_gemm_desc d = to_explain(2048, 2048, 2048);
  wsgemm_handle *h = NULL;
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  CHECK(strstr(kernel_of(h, &d), of_three), "by default: %s", kernel_of(h, &d));
  CHECK(wsgemm_set_math(h, WSGEMM_MATH_TF32) == WSGEMM_SUCCESS && strstr(kernel_of(h, &d), of_one), "TF32: %s", kernel_of(h, &d));
  CHECK(wsgemm_set_math(h, WSGEMM_MATH_PEDANTIC) == WSGEMM_SUCCESS && !strstr(kernel_of(h, &d), of_any), "PEDANTIC: %s",
        kernel_of(h, &d));
  wsgemm_destroy(h);
}

static void tf32(void) {
  dice = check_random_from(175);
  open_sliced(of_one);
  within_bound_of_tf32(FILL_UNIFORM);
  within_bound_of_tf32(FILL_SPREAD);
  rows_close(&rows);
  open_sliced(of_any);
  classes_of_rows();
  rows_close(&rows);
  unforced();
}

/* ---- Invariant mode --------------------------------------------------------------------------------------------------------------------- */

enum { TALL = 300, FLAT = 10, ACROSS = 200, DEEP = 512 };

/* Rows 0 .. FLAT - 1 of a product of each height. */
static void heights_on(wsgemm_handle *h, const char *who) {
  static float tall[TALL * ACROSS], flat[FLAT * ACROSS];
  struct twice a = twice_new(TALL * DEEP, 2), b = twice_new(DEEP * ACROSS, 2), c = twice_new(TALL * ACROSS, 0);
  for (int is_flat = 0; is_flat < 2; is_flat++) {
    const int64_t m = is_flat ? FLAT : TALL;
    CHECK(wsgemm_sgemm(h, WSGEMM_COL_MAJOR, WSGEMM_TRANS, WSGEMM_NO_TRANS, m, ACROSS, DEEP, 1.25f, a.at[0], DEEP, b.at[0], DEEP,
                       0, c.at[is_flat], m) == WSGEMM_SUCCESS,
          "%s", wsgemm_last_error());
    GPU(cudaMemcpy(is_flat ? flat : tall, c.at[is_flat], (size_t)(m * ACROSS) * sizeof(float), cudaMemcpyDeviceToHost));
  }
  int n_wrong = 0;
  for (int64_t j = 0; j < ACROSS; j++)
    for (int64_t i = 0; i < FLAT; i++) n_wrong += memcmp(&flat[i + j * FLAT], &tall[i + j * TALL], sizeof(float)) != 0;
  CHECK(n_wrong == 0, "%s: %d elements have other bits in a product of %d rows than in one of %d", who, n_wrong, (int)FLAT,
        (int)TALL);
  twice_free(&a), twice_free(&b), twice_free(&c);
}

static void invariant(void) {
  const wsgemm_gemm_desc large = to_explain(2048, 2048, 2048);
  wsgemm_handle *h = NULL;
  dice = check_random_from(176);
  REQUIRE(wsgemm_create(&h) == WSGEMM_SUCCESS, "handle");
  CHECK(strstr(kernel_of(h, &large), of_three), "by default: %s", kernel_of(h, &large));
  for (int math = WSGEMM_MATH_DEFAULT; math <= WSGEMM_MATH_TF32; math++) {
    REQUIRE(wsgemm_set_invariant(h, 1) == WSGEMM_SUCCESS && wsgemm_set_math(h, (wsgemm_math)math) == WSGEMM_SUCCESS, "%s",
            wsgemm_last_error());
    CHECK(!strstr(kernel_of(h, &large), of_any), "math %d: %s", math, kernel_of(h, &large));
    heights_on(h, "automatic");
  }
  wsgemm_destroy(h);
  open_sliced(of_any);
  for (int i = 0; i < rows.n_rows; i++) {
    REQUIRE(wsgemm_set_invariant(rows.handle[i], 1) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    CHECK(!strstr(kernel_of(rows.handle[i], &large), of_any), "forced: %s", kernel_of(rows.handle[i], &large));
    heights_on(rows.handle[i], rows.row[i].name);
  }
  rows_close(&rows);
}

/* ---- Batches ---------------------------------------------------------------------------------------------------------------------------- */

enum { COUNT = 7, FEW_BYTES = 512 << 10 }; /* FEW_BYTES: enough for one product, not for all */

/* One matrix of a batch: where product 0 begins, in a buffer of n elements. */
struct series {
  float *memory, *first;
  int64_t n, stride;
};

/* `lines` of ld elements each: apart as drawn, one upon the other (if shared), or backwards. */
static struct series series_new(int64_t ld, int64_t lines, bool may_share, int n_marks) {
  const int64_t apart = ld * lines + drawn(0, 5), kind = drawn(may_share ? 0 : 1, 3), shift = drawn(0, 3);
  struct series x = {.n = COUNT * apart + shift, .stride = kind == 0 ? 0 : kind == 1 ? -apart : apart};
  float *host = new_floats(x.n, n_marks);
  x.memory = gpu_copy(host, (size_t)x.n * sizeof *host);
  x.first = x.memory + shift + (kind == 1 ? (COUNT - 1) * apart : 0);
  free(host);
  return x;
}

static void batch_on(wsgemm_handle *h, const char *row, void *few) {
  const int64_t m = drawn(65, 150), n = drawn(65, 150), k = drawn(128, 200), side = m > n ? m : n;
  wsgemm_gemm_desc d = drawn_desc(m, n, k), one;
  d.lda += drawn(0, 5), d.ldb += drawn(0, 5), d.ldc += drawn(0, 5);
  struct series a = series_new(d.lda, k > side ? k : side, true, 4), b = series_new(d.ldb, k > side ? k : side, true, 4),
                c = series_new(d.ldc, side, false, 0);
  const size_t c_bytes = (size_t)c.n * sizeof(float);
  float *by_one = gpu_alloc(c_bytes);
  GPU(cudaMemcpy(by_one, c.memory, c_bytes, cudaMemcpyDeviceToDevice));
  d.a = a.first, d.b = b.first, d.c = c.first;
  one = d;
  for (int i = 0; i < COUNT; i++) {
    one.a = a.first + i * a.stride, one.b = b.first + i * b.stride, one.c = by_one + (c.first - c.memory) + i * c.stride;
    CHECK(strcmp(kernel_of(h, &one), row) == 0, "%s in place of %s", kernel_of(h, &one), row);
    CHECK(wsgemm_gemm(h, &one) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  }
  d.batch_count = COUNT, d.stride_a = a.stride, d.stride_b = b.stride, d.stride_c = c.stride;
  size_t bytes = 0;
  CHECK(wsgemm_get_workspace_size(h, &d, &bytes) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  if (strstr(row, of_three) && a.stride != 0 && b.stride != 0) CHECK(bytes > FEW_BYTES, "%zu bytes for all products", bytes);
  workspace_of(h, few, few ? FEW_BYTES : 0);
  CHECK(wsgemm_gemm(h, &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
  workspace_of(h, NULL, 0);
  float *got = malloc(c_bytes), *wanted = malloc(c_bytes);
  REQUIRE(got && wanted, "memory");
  GPU(cudaMemcpy(got, c.memory, c_bytes, cudaMemcpyDeviceToHost));
  GPU(cudaMemcpy(wanted, by_one, c_bytes, cudaMemcpyDeviceToHost));
  char text[DESCRIPTION_BYTES];
  CHECK(memcmp(got, wanted, c_bytes) == 0, "%s: %s, %d products %lld, %lld, %lld apart%s: other bytes than one by one", row,
        gemm_describe(&d, text), (int)COUNT, (long long)a.stride, (long long)b.stride, (long long)c.stride,
        few ? ", in few bytes" : "");
  free(got), free(wanted);
  gpu_free(a.memory), gpu_free(b.memory), gpu_free(c.memory), gpu_free(by_one);
}

static void batches(void) {
  void *few = gpu_alloc(FEW_BYTES);
  dice = check_random_from(177);
  open_sliced(of_any);
  for (int turn = 0; turn < 30 / check_scale() + 2; turn++)
    for (int i = 0; i < rows.n_rows; i++) batch_on(rows.handle[i], rows.row[i].name, turn % 2 ? few : NULL);
  rows_close(&rows);
  gpu_free(few);
}

/* ---- Whole numbers ---------------------------------------------------------------------------------------------------------------------- */

static void exact(void) {
  enum { MOST = 257, N_TURNS = 4 };
  static const int64_t ks[] = {128, 129, 200, 511}, sides[] = {1, 2, 7, 63, 64, 65, 127, 128, 129, 191, 255, 256, MOST};
  dice = check_random_from(178);
  open_sliced(of_any);
  struct stage stage = stage_new(WSGEMM_F32, MOST, MOST, ks[3], FILL_INTEGER, &dice);
  for (int ki = 0; ki < 4; ki++) {
    product_whole(&stage.product, &stage.a, &stage.b, ks[ki]);
    for (int i = 0; i < rows.n_rows; i++)
      for (int turn = 0; turn < 8 * N_TURNS; turn++) {
        if (drawn(1, check_scale()) != 1) continue;
        const int64_t m = sides[drawn(0, 12)], n = sides[drawn(0, 12)];
        wsgemm_gemm_desc d =
            gemm_desc(WSGEMM_F32, all_layouts[turn % 2], all_ops[turn / 2 % 2], all_ops[turn / 4 % 2], m, n, ks[ki]);
        d.alpha = scalar_make(WSGEMM_F32, (double)drawn(1, 3) * (heads() ? 1 : -1), 0);
        d.beta = scalar_make(WSGEMM_F32, (double)drawn(-1, 2), 0);
        const struct layout_of_case where = layout_drawn(&dice);
        check_used(rows.handle[i], rows.row[i].name, m, n, ks[ki]);
        run_case(&stage, rows.handle[i], &d, &where, heads(), JUDGE_EXACT, rows.row[i].name);
      }
  }
  stage_free(&stage);
  rows_close(&rows);
}

/* ---- Small numbers of A meet small ones of B, and each a large one that meets 0 ------------------------------------------------------- */

static void small_beside_large(void) {
  enum { M = 70, N = 80, K = 300 };
  static const int exponents[][2] = {{0, -40}, {100, 6}, {0, -20}, {0, -33}, {0, -53}, {10, -80}, {60, -60}}; /* large, small */
  dice = check_random_from(181);
  open_sliced(of_three);
  for (size_t e = 0; e < sizeof exponents / sizeof exponents[0]; e++) {
    struct stage stage = stage_new(WSGEMM_F32, M, N, K, FILL_ZERO, &dice);
    const double large = ldexp(1, exponents[e][0]);
    for (int64_t p = 0; p < K; p++) {
      for (int64_t i = 0; i < M; i++) stage.a.re[i * K + p] = p == 0 ? large : p == 1 ? 0 : number(exponents[e][1]);
      for (int64_t j = 0; j < N; j++) stage.b.re[p * N + j] = p == 0 ? 0 : p == 1 ? large : number(exponents[e][1]);
    }
    product_extend(&stage.product, &stage.a, &stage.b, K);
    for (int i = 0; i < rows.n_rows; i++) {
      wsgemm_gemm_desc d = drawn_desc(M, N, K);
      const struct layout_of_case where = layout_drawn(&dice);
      d.alpha = scalar_make(WSGEMM_F32, 1, 0), d.beta = scalar_make(WSGEMM_F32, 0, 0);
      if (!run_case(&stage, rows.handle[i], &d, &where, false, JUDGE_BOUND, rows.row[i].name))
        CHECK(false, "that was with 2^%d beside 2^%d", exponents[e][0], exponents[e][1]);
    }
    stage_free(&stage);
  }
  rows_close(&rows);
}

/* ---- Threads: the launches of two calls onto one stream do not mix ---------------------------------------------------------------------- */

enum { SIDE = 640, N_THREADS = 4, N_CALLS = 60 };
struct caller {
  float *a, *b, *c;
  unsigned long long expected;
  int n_wrong;
};

static wsgemm_status multiply(const struct caller *x) {
  return wsgemm_sgemm(rows.handle[0], WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_TRANS, SIDE, SIDE, SIDE, 1, x->a, SIDE, x->b,
                      SIDE, 0, x->c, SIDE);
}

static void *call_often(void *context) {
  struct caller *x = context;
  for (int i = 0; i < N_CALLS; i++) x->n_wrong += multiply(x) != WSGEMM_SUCCESS;
  return NULL;
}

static void threads(void) {
  static float host[SIDE * SIDE];
  static struct caller callers[N_THREADS];
  pthread_t thread[N_THREADS];
  dice = check_random_from(182);
  open_sliced(of_three);
  for (int t = 0; t < N_THREADS; t++) {
    for (int x = 0; x < 2; x++) {
      for (int i = 0; i < SIDE * SIDE; i++) host[i] = (float)number((int)drawn(-6 * t, 0));
      *(x ? &callers[t].b : &callers[t].a) = gpu_copy(host, sizeof host);
    }
    callers[t].c = gpu_alloc(sizeof host);
    REQUIRE(multiply(&callers[t]) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    callers[t].expected = gpu_digest(callers[t].c, sizeof host);
  }
  for (int t = 0; t < N_THREADS; t++) REQUIRE(pthread_create(&thread[t], NULL, call_often, &callers[t]) == 0, "thread");
  for (int t = 0; t < N_THREADS; t++) pthread_join(thread[t], NULL);
  GPU(cudaDeviceSynchronize());
  for (int t = 0; t < N_THREADS; t++) {
    CHECK(callers[t].n_wrong == 0 && gpu_digest(callers[t].c, sizeof host) == callers[t].expected, "thread %d: other bits", t);
    gpu_free(callers[t].a), gpu_free(callers[t].b), gpu_free(callers[t].c);
  }
  rows_close(&rows);
}

/* ---- Epilogue: taken after the product; a residual that is C itself waits where the slices do not stand ---------------------------------- */

static void epilogue(void) {
  enum { M = 130, N = 90, K = 300 };
  static float a[M * K], b[K * N], c[M * N], z[M * N], got[M * N], bias[N];
  dice = check_random_from(180);
  for (int i = 0; i < M * K; i++) a[i] = (float)unit();
  for (int i = 0; i < K * N; i++) b[i] = (float)unit();
  for (int i = 0; i < M * N; i++) c[i] = (float)unit();
  for (int j = 0; j < N; j++) bias[j] = (float)unit();
  open_sliced(of_three);
  for (int i = 0; i < rows.n_rows; i++) {
    wsgemm_gemm_desc d = gemm_desc(WSGEMM_F32, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, M, N, K);
    void *const memory[] = {gpu_copy(a, sizeof a), gpu_copy(b, sizeof b), gpu_copy(c, sizeof c), gpu_copy(bias, sizeof bias)};
    d.a = memory[0], d.b = memory[1], d.c = memory[2];
    CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaMemcpy(z, d.c, sizeof z, cudaMemcpyDeviceToHost));
    GPU(cudaMemcpy(d.c, c, sizeof c, cudaMemcpyHostToDevice));
    d.epilogue = WSGEMM_EPILOGUE_RELU, d.out_scale = 0.75;
    d.bias = memory[3], d.bias_per = WSGEMM_BIAS_PER_COLUMN, d.type_bias = WSGEMM_F32;
    d.residual = d.c, d.ld_residual = d.ldc;
    CHECK(wsgemm_gemm(rows.handle[i], &d) == WSGEMM_SUCCESS, "%s", wsgemm_last_error());
    GPU(cudaMemcpy(got, d.c, sizeof got, cudaMemcpyDeviceToHost));
    int n_wrong = 0;
    for (int at = 0; at < M * N; at++) {
      const float with_bias = z[at] + bias[at / M], active = with_bias < 0 ? 0 : with_bias, scaled = active * 0.75f;
      n_wrong += got[at] != scaled + c[at];
    }
    CHECK(n_wrong == 0, "%s: %d elements are not what the steps make of the product", rows.row[i].name, n_wrong);
    for (size_t m = 0; m < sizeof memory / sizeof memory[0]; m++) gpu_free(memory[m]);
  }
  rows_close(&rows);
}

int main(int argc, char **argv) {
  static const struct check_case cases[] = {{"distributions", distributions},
                                            {"marked_is_needed", marked_is_needed},
                                            {"classes", classes},
                                            {"bits", bits},
                                            {"captured", captured},
                                            {"tf32", tf32},
                                            {"invariant", invariant},
                                            {"batches", batches},
                                            {"exact", exact},
                                            {"epilogue", epilogue},
                                            {"small_beside_large", small_beside_large},
                                            {"threads", threads}};
  gpu_open();
  if (!can_slice()) {
    puts("skipped: no row of slices runs on this device");
    exit(CHECK_EXIT_SKIPPED);
  }
  return check_main("gpu_slices", cases, sizeof cases / sizeof cases[0], argc, argv);
}
