/* stats.c - see stats.h. */
#include "bench/harness/stats.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double ws_bench_quantile(const double *sorted, int n_values, double q) {
  const double at = q * (n_values - 1);
  const int below = (int)at;
  const int above = below + 1 < n_values ? below + 1 : below;
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

double ws_bench_median(double *values, int n_values) {
  qsort(values, (size_t)n_values, sizeof *values, compare);
  return ws_bench_quantile(values, n_values, 0.5);
}

double ws_bench_spread(const double *sorted, int n_values) {
  const double middle = ws_bench_quantile(sorted, n_values, 0.5);
  return (ws_bench_quantile(sorted, n_values, 0.75) - ws_bench_quantile(sorted, n_values, 0.25)) / middle;
}

int ws_bench_mean_add(ws_bench_mean *mean, double ratio) {
  const int is_least = mean->n == 0 || ratio < mean->least;
  if (is_least) mean->least = ratio;
  mean->log_sum += log(ratio);
  mean->n++;
  return is_least;
}

double ws_bench_mean_of(const ws_bench_mean *mean) { return mean->n ? exp(mean->log_sum / mean->n) : NAN; }
