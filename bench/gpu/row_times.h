/* row_times.h - suite `row_times`: every row that can run products drawn at random, for fitting the
 * models of rows (tools/fit_model.py). */
#ifndef WSGEMM_BENCH_ROW_TIMES_H
#define WSGEMM_BENCH_ROW_TIMES_H
#include "bench/harness/random_shapes.h"
#include "wsgemm.h"

/* Which shapes, and of which rows: those with `rows` in their names; NULL: all. */
typedef struct row_times_options {
  int n_shapes;
  const char *rows;
  /* shape idx */
  ws_random_shape (*draw)(int idx, wsgemm_type type);
  const char *suite; /* what it is called in that class */
  wsgemm_math math;
} row_times_options;

void run_row_times(wsgemm_type type, const row_times_options *options);
#endif
