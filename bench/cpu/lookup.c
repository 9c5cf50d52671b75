/* lookup.c - what a look-up in the tables of tuning adds to a call: nanoseconds, over the number of shapes that were tuned.
 *
 *   bench_lookup [--name TEXT] [--json FILE] [--commit ID]
 *
 * Shapes that were tuned and those that are looked for are drawn alike: m, n, k each from 16 to 8192, evenly in log, all of one kind, so that
 * a look-up has as much to read as it can have. Medians over passes through all that are looked for; cold: of single look-ups after 16 MiB
 * were read, as a large product may leave the caches. The goal is 200 ns. Made of the library's objects, not of its API, which
 * has no look-up without a product. */
#define _GNU_SOURCE
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tune/tuning.h"

enum { N_WANTED = 1024, N_PASSES = 101, LIMIT_NS = 200, SWEPT = 16 << 20, LINE = 64 };

static const int counts[] = {1, 10, 30, 100, 300, 1000, 3000};
static const char *name = "?", *commit = "";
static FILE *json;
static ws_tuning_entry entry;
static ws_tuning_shape wanted[N_WANTED];

static void fail(const char *what) {
  fprintf(stderr, "bench_lookup: ");
  perror(what);
  exit(1);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int64_t size_drawn(unsigned short dice[3]) {
  const double least = 4, most = 13; /* of log2 */
  return (int64_t)(exp2(least + (most - least) * erand48(dice)) + 0.5);
}

static ws_tuning_shape shape_drawn(unsigned short dice[3]) {
  const int64_t m = size_drawn(dice), n = size_drawn(dice), k = size_drawn(dice);
  return (ws_tuning_shape){m, n, k, 1};
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The median of a look-up's time; *share: of those that found something. */
static double look_up_ns(double *share) {
  double ns[N_PASSES];
  int n_found = 0;
  for (int pass = 0; pass < N_PASSES; pass++) {
    const double begin = now_ns();
    n_found = 0;
    for (int i = 0; i < N_WANTED; i++) n_found += ws_tune_find(WS_TUNE_CPU, &entry.kind, &wanted[i]).by != WS_TUNED_BY_MODEL;
    ns[pass] = (now_ns() - begin) / N_WANTED;
  }
  qsort(ns, N_PASSES, sizeof ns[0], ascending);
  *share = (double)n_found / N_WANTED;
  return ns[N_PASSES / 2];
}

static double cold_ns(volatile char *swept) {
  double ns[N_PASSES], clock[N_PASSES];
  for (int pass = 0; pass < N_PASSES; pass++) {
    for (size_t i = 0; i < SWEPT; i += LINE) swept[i]++;
    const double begin = now_ns(), middle = now_ns();
    ws_tune_find(WS_TUNE_CPU, &entry.kind, &wanted[pass]);
    ns[pass] = now_ns() - middle;
    clock[pass] = middle - begin;
  }
  qsort(ns, N_PASSES, sizeof ns[0], ascending);
  qsort(clock, N_PASSES, sizeof clock[0], ascending);
  return ns[N_PASSES / 2] - clock[N_PASSES / 2];
}

static void report(int count, double ns, double cold, double share) {
  char date[16];
  const time_t now = time(NULL);
  struct tm utc;
  strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
  printf("%5d shapes: %6.1f ns, cold %6.1f, %.2f find one\n", count, ns, cold, share);
  if (!json) return;
  fprintf(
      json,
      "{\"suite\": \"lookup\", \"routine\": \"sgemm\", \"case\": \"%d shapes\", \"policy\": \"nearest\", \"device\": \"%s\", ",
      count, name);
  fprintf(json,
          "\"peer\": \"a goal of %d ns\", \"ours\": %.1f, \"theirs\": %d, \"unit\": \"ns\", \"ratio\": %.3f, \"cold_ns\": "
          "%.1f, \"found\": %.3f, ",
          LIMIT_NS, ns, LIMIT_NS, LIMIT_NS / ns, cold, share);
  fprintf(json, "\"commit\": \"%s\", \"date\": \"%s\"}\n", commit, date);
}

int main(int argc, char **argv) {
  static const struct option longs[] = {{"name", 1, 0, 'n'}, {"json", 1, 0, 'j'}, {"commit", 1, 0, 'c'}, {0, 0, 0, 0}};
  char folder[] = "/tmp/bench_lookup.XXXXXX", path[64], lock[72];
  unsigned short dice[3] = {8, 1, 5};
  ws_tuning_list more = {0};
  for (int found; (found = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
    if (found == 'n') name = optarg;
    if (found == 'c') commit = optarg;
    if (found == 'j' && !(json = fopen(optarg, "w"))) fail(optarg);
    if (found == '?') return 2;
  }
  char *swept = calloc(SWEPT, 1);
  if (!swept || !mkdtemp(folder)) fail(folder);
  snprintf(path, sizeof path, "%s/tuning", folder);
  snprintf(lock, sizeof lock, "%s.lock", path);
  ws_tune_init(path);
  entry = (ws_tuning_entry){.device = {"bench", "avx512/48K/1024K", 2, false}, .kind = {.workers = 2}, .row = "sgemm_ref_8x6"};
  snprintf(entry.version, sizeof entry.version, "%s", wsgemm_version_string());
  ws_tune_set_device(WS_TUNE_CPU, &entry.device);
  for (int i = 0; i < N_WANTED; i++) wanted[i] = shape_drawn(dice);
  for (size_t c = 0, n = 0; c < sizeof counts / sizeof counts[0]; c++) {
    double share;
    for (; n < (size_t)counts[c]; n++) {
      entry.shape = shape_drawn(dice);
      if (!ws_tuning_list_add(&more, &entry)) fail("memory");
    }
    if (!ws_tuning_file_merge(path, &more)) fail(path);
    ws_tune_reload();
    const double ns = look_up_ns(&share);
    report(counts[c], ns, cold_ns(swept), share);
  }
  free(swept);
  ws_tuning_list_free(&more);
  unlink(path), unlink(lock), rmdir(folder);
  if (json && fclose(json) != 0) fail("json");
  return 0;
}
