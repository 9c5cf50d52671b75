/* clock.c - see clock.h. */
#define _GNU_SOURCE
#include "bench/harness/clock.h"

#include <stdlib.h>
#include <time.h>

static clockid_t timing_clock = CLOCK_MONOTONIC;

void ws_bench_use_processor_time(void) { timing_clock = CLOCK_THREAD_CPUTIME_ID; }

double ws_bench_now(void) {
  struct timespec t;
  clock_gettime(timing_clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ws_bench_date(char text[WS_BENCH_DATE_BYTES]) {
  const time_t now = time(NULL);
  struct tm utc;
  strftime(text, WS_BENCH_DATE_BYTES, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
}

int ws_bench_flush_cpu(void) {
  enum { BYTES = 16 << 20, LINE = 64 };
  static volatile char *lines; /* of the process, for all calls */
  if (!lines && !(lines = calloc(BYTES, 1))) return 0;
  for (size_t i = 0; i < BYTES; i += LINE) lines[i]++;
  return 1;
}
