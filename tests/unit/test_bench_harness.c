/* test_bench_harness.c - what the benches share (bench/harness): medians and spread, random
 * shapes, the lines of a result file, the commit that they name. */
#define _GNU_SOURCE
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/clock.h"
#include "bench/harness/random.h"
#include "bench/harness/random_shapes.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"

static bool near(double x, double y) { return fabs(x - y) <= 1e-12 * fabs(y); }

static void statistics(void) {
  double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, one[] = {7}, five[] = {5, 4, 3, 2, 1};
  CHECK(near(ws_bench_median(odd, 3), 3), "median of three");
  CHECK(near(ws_bench_median(even, 4), 2.5), "median of four: between the middle ones");
  CHECK(near(ws_bench_median(one, 1), 7), "median of one");
  ws_bench_median(five, 5);
  CHECK(five[0] == 1 && five[4] == 5, "the values are sorted");
  CHECK(near(ws_bench_quantile(five, 5, 1), 5) && near(ws_bench_quantile(five, 5, 0.25), 2), "quantiles");
  CHECK(near(ws_bench_spread(five, 5), 2.0 / 3), "(4 - 2) / 3, not %g", ws_bench_spread(five, 5));
  ws_bench_mean mean = {0};
  CHECK(isnan(ws_bench_mean_of(&mean)), "the mean of nothing");
  CHECK(ws_bench_mean_add(&mean, 4) && ws_bench_mean_add(&mean, 1) && !ws_bench_mean_add(&mean, 2), "which was the least");
  CHECK(near(ws_bench_mean_of(&mean), 2) && mean.least == 1 && mean.n == 3, "mean %g, least %g", ws_bench_mean_of(&mean),
        mean.least);
}

static void sizes(void) {
  enum { N = 20000, LEAST = 16, MOST = 8192, N_OCTAVES = 9 };
  int by_octave[N_OCTAVES] = {0};
  uint64_t state = 1;
  for (int i = 0; i < N; i++) {
    const int64_t size = ws_random_size(&state, LEAST, MOST);
    CHECK(size >= LEAST && size <= MOST, "%lld", (long long)size);
    const int octave = (int)log2((double)size / LEAST);
    by_octave[octave < N_OCTAVES ? octave : N_OCTAVES - 1]++;
  }
  for (int i = 0; i < N_OCTAVES; i++)
    CHECK(by_octave[i] > 0.85 * N / N_OCTAVES && by_octave[i] < 1.15 * N / N_OCTAVES, "octave %d: %d of %d", i, by_octave[i], N);
  int order[50];
  unsigned seen = 0;
  bool moved = false;
  for (int i = 0; i < 30; i++) order[i] = i;
  ws_random_shuffle(&state, order, 30);
  for (int i = 0; i < 30; i++) seen |= 1u << order[i], moved |= order[i] != i;
  CHECK(seen == (1u << 30) - 1 && moved, "a shuffle is another order of the same");
}

static bool same_shape(const ws_random_shape *x, const ws_random_shape *y) {
  return x->m == y->m && x->n == y->n && x->k == y->k && x->more_a == y->more_a && x->transposed_a == y->transposed_a &&
         x->transposed_b == y->transposed_b && x->shape_class == y->shape_class;
}

static bool sizes_suit_class(const ws_random_shape *s, int64_t least, int64_t most) {
  const int64_t sizes[] = {s->m, s->n, s->k};
  int64_t smallest = most, largest = 0;
  int n_flat = 0, n_odd = 0;
  for (int i = 0; i < 3; i++) {
    smallest = sizes[i] < smallest ? sizes[i] : smallest;
    largest = sizes[i] > largest ? sizes[i] : largest;
    n_flat += sizes[i] <= 128;
    n_odd += (int)(sizes[i] & 1);
  }
  if (largest > most || smallest < 1) return false;
  switch (s->shape_class) {
  case WS_SHAPE_SQUARE:
    return largest <= 2 * smallest + 1 && smallest >= most / 16 / 1.5;
  case WS_SHAPE_FLAT:
    return n_flat >= 1 && largest >= most / 16;
  case WS_SHAPE_SMALL:
    return smallest >= least && largest <= most / 16;
  default:
    return n_odd == 3 && s->more_a > 0 && s->more_b > 0 && s->more_c > 0;
  }
}

/* Every octave of a size is drawn, those at the ends too, where products are of the wanted size. */
static void uniform_shapes(void) {
  enum { N = 400, MULTIPLE = 8 };
  const ws_random_sides any_sides = {0};
  int n_of_ops[4] = {0}, n_same = 0, n_least = 0, n_most = 0;
  for (int i = 0; i < N; i++) {
    const ws_random_shape s = ws_random_uniform_shape_at(7, i, MULTIPLE, any_sides),
                          again = ws_random_uniform_shape_at(7, i, MULTIPLE, any_sides),
                          other = ws_random_uniform_shape_at(8, i, MULTIPLE, any_sides),
                          any = ws_random_uniform_shape_at(7, i, 1, any_sides),
                          narrow = ws_random_uniform_shape_at(7, i, MULTIPLE, (ws_random_sides){.least = 65, .most = 2000});
    const int64_t sizes[] = {s.m, s.n, s.k, any.m, any.n, any.k};
    for (int x = 0; x < 6; x++)
      CHECK(sizes[x] >= 16 && sizes[x] <= 16384 && (x >= 3 || sizes[x] % MULTIPLE == 0), "size %lld", (long long)sizes[x]);
    const double product = (double)s.m * (double)s.n * (double)s.k;
    CHECK(product >= 1e7 && product <= 2e12, "a product of %g", product);
    CHECK(same_shape(&s, &again) && s.more_a == 0 && s.more_b == 0 && s.more_c == 0, "a seed means the same shapes");
    const int64_t side = narrow.m < narrow.n ? narrow.m : narrow.n;
    CHECK(side >= 65 && side <= 2000, "a smaller side of %lld", (long long)side);
    n_same += same_shape(&s, &other);
    n_of_ops[2 * s.transposed_a + s.transposed_b]++;
    n_least += s.m<32, n_most += s.m> 8192;
  }
  CHECK(n_same == 0, "%d shapes of another seed are the same", n_same);
  for (int i = 0; i < 4; i++) CHECK(n_of_ops[i] > N / 8 && n_of_ops[i] < N * 3 / 8, "ops %d: %d of %d", i, n_of_ops[i], N);
  CHECK(n_least > N / 40 && n_most > N / 40, "%d of the first octave, %d of the last", n_least, n_most);
}

static void random_shapes(void) {
  enum { N = 400, LEAST = 16, MOST = 8192 };
  int n_of_class[WS_N_SHAPE_CLASSES] = {0}, n_of_ops[4] = {0}, n_tight = 0, n_same = 0;
  for (int i = 0; i < N; i++) {
    const ws_random_shape s = ws_random_shape_at(7, i, LEAST, MOST), again = ws_random_shape_at(7, i, LEAST, MOST),
                          other = ws_random_shape_at(8, i, LEAST, MOST), next = ws_random_shape_at(7, i + 4, LEAST, MOST),
                          moved = ws_random_shape_at(3, i + 4, LEAST, MOST);
    CHECK(same_shape(&s, &again), "a seed means the same shapes");
    n_same += same_shape(&s, &other) + same_shape(&s, &next) + same_shape(&s, &moved);
    CHECK(sizes_suit_class(&s, LEAST, MOST), "%s: %lldx%lldx%lld", ws_shape_class_name(s.shape_class), (long long)s.m,
          (long long)s.n, (long long)s.k);
    n_of_class[s.shape_class]++;
    n_of_ops[2 * s.transposed_a + s.transposed_b]++;
    n_tight += s.more_a == 0 && s.more_b == 0 && s.more_c == 0;
  }
  CHECK(n_same == 0, "%d shapes of other seeds or places are the same", n_same);
  for (int i = 0; i < WS_N_SHAPE_CLASSES; i++) CHECK(n_of_class[i] == N / WS_N_SHAPE_CLASSES, "class %d: %d", i, n_of_class[i]);
  for (int i = 0; i < 4; i++) CHECK(n_of_ops[i] > N / 8 && n_of_ops[i] < N * 3 / 8, "ops %d: %d of %d", i, n_of_ops[i], N);
  CHECK(n_tight > N / 4 && n_tight < N / 2, "%d of %d with lds as small as can be", n_tight, N);
  char text[WS_RANDOM_CASE_BYTES], largest[WS_RANDOM_CASE_BYTES];
  const ws_random_shape s = {
      .shape_class = WS_SHAPE_RAGGED, .transposed_a = true, .m = 3, .n = 5, .k = 7, .more_b = 9, .seed = 2, .idx = 4};
  ws_random_shape_case(&s, text);
  CHECK(strcmp(text, "TN 3x5x7 ragged lda+0 ldb+9 ldc+0 seed=2 #4") == 0, "%s", text);
  const ws_random_shape long_one = {
      .m = 1 << 20, .n = 1 << 20, .k = 1 << 20, .more_a = 64, .more_b = 64, .more_c = 64, .seed = UINT64_MAX, .idx = 4095};
  ws_random_shape_case(&long_one, largest);
  CHECK(strstr(largest, "#4095") != NULL, "%s is cut off", largest);
}

static void line_of(const ws_bench_result *r, double more, char *text, size_t bytes) {
  FILE *f = fmemopen(text, bytes, "w");
  REQUIRE(f != NULL, "memory");
  ws_bench_result_begin(f, r);
  ws_bench_result_number(f, "samples", more);
  ws_bench_result_end(f);
  fclose(f);
}

static void lines(void) {
  char text[1024];
  ws_bench_result r = {"square", "sgemm", "n=64", "auto", "a \"b\"\\\xe4\n", "OpenBLAS 0.3.21 Cooperlake", 12.5, 10,
                       "GF/s",   1.25,    "abc",  "2026"};
  unsetenv("WSGEMM_TUNE");
  line_of(&r, 21, text, sizeof text);
  CHECK(strcmp(text,
               "{\"suite\": \"square\", \"routine\": \"sgemm\", \"case\": \"n=64\", \"policy\": \"auto\", \"device\": \"a "
               "\\\"b\\\"\\\\\\u00e4\\u000a\", "
               "\"peer\": \"OpenBLAS 0.3.21 Cooperlake\", \"ours\": 12.5, \"theirs\": 10, \"unit\": \"GF/s\", \"ratio\": 1.25, "
               "\"commit\": \"abc\", \"date\": \"2026\", \"samples\": 21}\n") == 0,
        "%s", text);
  r.peer = "none";
  line_of(&r, NAN, text, sizeof text);
  CHECK(!strstr(text, "theirs") && !strstr(text, "ratio") && strstr(text, "\"ours\""), "without a peer: %s", text);
  CHECK(!strstr(text, "samples") && strstr(text, "2026\"}\n"), "a NaN is no JSON: %s", text);
  setenv("WSGEMM_TUNE", "off", 1);
  line_of(&r, NAN, text, sizeof text);
  CHECK(strstr(text, "2026\", \"tuning\": \"off\"}\n") != NULL, "%s", text);
  setenv("WSGEMM_TUNE", "/home/me/tuning", 1);
  line_of(&r, NAN, text, sizeof text);
  CHECK(strstr(text, "\"tuning\": \"a file\"}\n") != NULL, "%s", text);
  unsetenv("WSGEMM_TUNE");
}

static void origin(void) {
  char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
  setenv("WSGEMM_COMMIT", "from-the-environment", 1);
  ws_bench_commit("given", commit);
  CHECK(strcmp(commit, "given") == 0, "%s", commit);
  ws_bench_commit(NULL, commit);
  CHECK(strcmp(commit, "from-the-environment") == 0, "%s", commit);
  ws_bench_commit("", commit);
  CHECK(strcmp(commit, "from-the-environment") == 0, "%s", commit);
  setenv("WSGEMM_COMMIT", "", 1);
  setenv("PATH", "/nowhere", 1);
  ws_bench_commit(NULL, commit);
  CHECK(strcmp(commit, "unknown") == 0, "without git: %s", commit);
  ws_bench_date(date);
  CHECK(strlen(date) == strlen("2026-11-23T00:58:03Z") && date[10] == 'T' && date[19] == 'Z', "%s", date);
  const double begin = ws_bench_now();
  CHECK(ws_bench_flush_cpu(), "memory");
  CHECK(ws_bench_now() > begin, "the clock runs");
}

static const struct check_case cases[] = {{"statistics", statistics},         {"sizes", sizes}, {"random_shapes", random_shapes},
                                          {"uniform_shapes", uniform_shapes}, {"lines", lines}, {"origin", origin}};
CHECK_MAIN("bench_harness", cases)
