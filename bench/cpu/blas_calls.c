/* blas_calls.c - what a small product costs through the BLAS interface beside wsgemm's own: nanoseconds of dgemm_, by number.
 *
 *   bench_blas_calls [--json FILE] [--commit ID]
 *
 * Both in turn, 100 calls at a time, the medians of 2001 such loops. The goal is at most 10 ns more at 8 x 8 x 8. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/harness/clock.h"
#include "bench/harness/device.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "wsgemm.h"

enum { N_LOOPS = 2001, N_CALLS = 100, MOST = 32 };

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k, const double *alpha,
            const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c, const int *ldc);

static double a[MOST * MOST], b[MOST * MOST], c[MOST * MOST];

static double loop_ns(int n, int through_blas) {
  const double one = 1, zero = 0, begin = ws_bench_now();
  for (int i = 0; i < N_CALLS; i++)
    if (through_blas)
      dgemm_("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
    else
      wsgemm_dgemm(NULL, WSGEMM_COL_MAJOR, WSGEMM_NO_TRANS, WSGEMM_NO_TRANS, n, n, n, 1, a, n, b, n, 0, c, n);
  return (ws_bench_now() - begin) * 1e9 / N_CALLS;
}

static void report(FILE *json, const char *commit, int n) {
  static double ns[2][N_LOOPS];
  char case_name[32], date[WS_BENCH_DATE_BYTES];
  const ws_bench_device device = ws_bench_device_cpu();
  for (int loop = 0; loop < N_LOOPS; loop++)
    for (int through_blas = 0; through_blas < 2; through_blas++) ns[through_blas][loop] = loop_ns(n, through_blas);
  const double direct = ws_bench_median(ns[0], N_LOOPS), through = ws_bench_median(ns[1], N_LOOPS);
  printf("%2d^3: wsgemm_dgemm %6.1f ns, dgemm_ %6.1f\n", n, direct, through);
  if (!json) return;
  ws_bench_date(date);
  snprintf(case_name, sizeof case_name, "NN %dx%dx%d", n, n, n);
  const ws_bench_result r = {.suite = "blas_calls",
                             .routine = "dgemm",
                             .case_name = case_name,
                             .policy = "dgemm_",
                             .device = device.name,
                             .peer = "wsgemm_dgemm",
                             .ours = through,
                             .theirs = direct,
                             .unit = "ns",
                             .ratio = direct / through,
                             .commit = commit,
                             .date = date};
  ws_bench_result_begin(json, &r);
  ws_bench_result_end(json);
}

int main(int argc, char **argv) {
  static const struct option longs[] = {{"json", 1, 0, 'j'}, {"commit", 1, 0, 'c'}, {0, 0, 0, 0}};
  static const int sizes[] = {1, 4, 8, 16, MOST};
  char commit[WS_BENCH_COMMIT_BYTES];
  const char *given = NULL;
  FILE *json = NULL;
  for (int found; (found = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
    if (found == '?') return 2;
    if (found == 'c') given = optarg;
    if (found == 'j' && !(json = fopen(optarg, "w"))) {
      perror(optarg);
      return 1;
    }
  }
  ws_bench_commit(given, commit);
  for (int i = 0; i < MOST * MOST; i++) a[i] = (i % 13 - 6) / 8.0, b[i] = (i % 7 - 3) / 8.0;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) report(json, commit, sizes[i]);
  return json && fclose(json) != 0;
}
