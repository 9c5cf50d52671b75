/* stats.h - medians, spread, and means of ratios. */
#ifndef WSGEMM_BENCH_STATS_H
#define WSGEMM_BENCH_STATS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Sorts the values, of which there is at least one. */
double ws_bench_median(double *values, int n_values);

/* Of sorted values: that below which a share q of them lies, between neighbours in proportion. */
double ws_bench_quantile(const double *sorted, int n_values, double q);

/* Of sorted values: (upper quartile - lower quartile) / median. */
double ws_bench_spread(const double *sorted, int n_values);

/* Geometric mean and minimum of ratios as they come. Begins as {0}. */
typedef struct ws_bench_mean {
  double log_sum, least;
  int n;
} ws_bench_mean;

/* Whether the ratio is the least so far. */
int ws_bench_mean_add(ws_bench_mean *mean, double ratio);
double ws_bench_mean_of(const ws_bench_mean *mean); /* NaN: of nothing */

#ifdef __cplusplus
}
#endif
#endif
