/* lookup.c - what a look-up in the tables of tuning adds to a call: nanoseconds, over the number
 * of shapes that were tuned.
 *
 *   bench_lookup [--json FILE] [--commit ID]
 *
 * Shapes that were tuned and those that are looked for are drawn alike: m, n, k each from 16 to
 * 8192, evenly in log, all of one kind, so that a look-up has as much to read as it can have.
 * Medians over passes through all that are looked for; cold: of single look-ups after 16 MiB
 * were read, as a large product may leave the caches. The goal is 200 ns. Made of the library's
 * objects, not of its API, which has no look-up without a product. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/harness/clock.h"
#include "bench/harness/device.h"
#include "bench/harness/random.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "tune/tuning.h"

enum { N_WANTED = 1024, N_PASSES = 101, LIMIT_NS = 200, LEAST = 16, MOST = 8192 };

static const int counts[] = {1, 10, 30, 100, 300, 1000, 3000};
static ws_bench_device device;
static char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
static FILE *json;
static ws_tuning_entry entry;
static ws_tuning_shape wanted[N_WANTED];

static void fail(const char *what) {
  fprintf(stderr, "bench_lookup: ");
  perror(what);
  exit(1);
}

static double now_ns(void) { return ws_bench_now() * 1e9; }

static ws_tuning_shape shape_drawn(uint64_t *state) {
  const int64_t m = ws_random_size(state, LEAST, MOST), n = ws_random_size(state, LEAST, MOST),
                k = ws_random_size(state, LEAST, MOST);
  return (ws_tuning_shape){m, n, k, 1};
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
  *share = (double)n_found / N_WANTED;
  return ws_bench_median(ns, N_PASSES);
}

static double cold_ns(void) {
  double ns[N_PASSES], clock[N_PASSES];
  for (int pass = 0; pass < N_PASSES; pass++) {
    if (!ws_bench_flush_cpu()) fail("memory");
    const double begin = now_ns(), middle = now_ns();
    ws_tune_find(WS_TUNE_CPU, &entry.kind, &wanted[pass]);
    ns[pass] = now_ns() - middle;
    clock[pass] = middle - begin;
  }
  return ws_bench_median(ns, N_PASSES) - ws_bench_median(clock, N_PASSES);
}

static void report(int count, double ns, double cold, double share) {
  char case_name[32], goal[32];
  printf("%5d shapes: %6.1f ns, cold %6.1f, %.2f find one\n", count, ns, cold, share);
  if (!json) return;
  snprintf(case_name, sizeof case_name, "%d shapes", count);
  snprintf(goal, sizeof goal, "a goal of %d ns", LIMIT_NS);
  const ws_bench_result r = {.suite = "lookup",
                             .routine = "sgemm",
                             .case_name = case_name,
                             .policy = "nearest",
                             .device = device.name,
                             .peer = goal,
                             .ours = ns,
                             .theirs = LIMIT_NS,
                             .unit = "ns",
                             .ratio = LIMIT_NS / ns,
                             .commit = commit,
                             .date = date};
  ws_bench_result_begin(json, &r);
  ws_bench_result_number(json, "cold_ns", cold);
  ws_bench_result_number(json, "found", share);
  ws_bench_result_end(json);
}

int main(int argc, char **argv) {
  static const struct option longs[] = {{"json", 1, 0, 'j'}, {"commit", 1, 0, 'c'}, {0, 0, 0, 0}};
  char folder[] = "/tmp/bench_lookup.XXXXXX", path[64], lock[72];
  uint64_t state = 815;
  const char *given = NULL;
  ws_tuning_list more = {0};
  for (int found; (found = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
    if (found == 'c') given = optarg;
    if (found == 'j' && !(json = fopen(optarg, "w"))) fail(optarg);
    if (found == '?') return 2;
  }
  ws_bench_commit(given, commit);
  ws_bench_date(date);
  device = ws_bench_device_cpu();
  if (!mkdtemp(folder)) fail(folder);
  snprintf(path, sizeof path, "%s/tuning", folder);
  snprintf(lock, sizeof lock, "%s.lock", path);
  ws_tune_init(path);
  entry = (ws_tuning_entry){.device = {"bench", "avx512/48K/1024K", 2, false}, .kind = {.workers = 2}, .row = "sgemm_ref_8x6"};
  snprintf(entry.version, sizeof entry.version, "%s", wsgemm_version_string());
  ws_tune_set_device(WS_TUNE_CPU, &entry.device);
  for (int i = 0; i < N_WANTED; i++) wanted[i] = shape_drawn(&state);
  for (size_t c = 0, n = 0; c < sizeof counts / sizeof counts[0]; c++) {
    double share;
    for (; n < (size_t)counts[c]; n++) {
      entry.shape = shape_drawn(&state);
      if (!ws_tuning_list_add(&more, &entry)) fail("memory");
    }
    if (!ws_tuning_file_merge(path, &more)) fail(path);
    ws_tune_reload();
    const double ns = look_up_ns(&share);
    report(counts[c], ns, cold_ns(), share);
  }
  ws_tuning_list_free(&more);
  unlink(path), unlink(lock), rmdir(folder);
  if (json && fclose(json) != 0) fail("json");
  return 0;
}
