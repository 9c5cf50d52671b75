/* bench_report.c - what leaves the benchmark: table lines on stdout, the progress bar on stderr,
 * JSON lines, result files.
 *
 * A result file is kept in memory and takes its place, by renaming, only when its suite has ended
 * well: a broken run leaves the older figures alone. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BAR_WIDTH = 30 };

static bool bar_shown;

static void clear_bar(void) {
  if (!bar_shown) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  bar_shown = false;
}

void ws_bench_progress(bench_session *s, int done, int total, const char *label) {
  if (!s->progress_bar) return;
  clear_bar();
  if (!total) return;
  const int filled = BAR_WIDTH * done / total;
  fprintf(stderr, "[%.*s%*s] %d/%d %s", filled, "##############################", BAR_WIDTH - filled, "", done, total, label);
  fflush(stderr);
  bar_shown = true;
}

void ws_bench_line(bench_session *s, const char *format, ...) {
  va_list args;
  ws_bench_progress(s, 0, 0, NULL);
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
  fflush(stdout);
}

/* ---- JSON lines ------------------------------------------------------------------------------ */

static void put_number(FILE *f, const char *name, double value) {
  if (value >= 0) ws_bench_result_number(f, name, value);
}

static void put_record(bench_session *s, FILE *f, const bench_record *r) {
  const ws_bench_result result = {.suite = r->suite,
                                  .routine = r->routine,
                                  .case_name = r->case_name,
                                  .policy = r->policy,
                                  .device = s->device.name,
                                  .peer = r->peer,
                                  .ours = r->ours,
                                  .theirs = r->theirs,
                                  .unit = r->unit,
                                  .ratio = r->ratio,
                                  .commit = s->commit,
                                  .date = s->date};
  ws_bench_result_begin(f, &result);
  put_number(f, "threads", r->n_threads);
  if (s->by_processor_time) ws_bench_result_text(f, "clock", "processor time");
  if (r->shape_class) ws_bench_result_text(f, "class", r->shape_class);
  if (r->coarse_factor) put_number(f, "coarse_factor", r->coarse_factor);
  put_number(f, "coarse_factor_taken", r->coarse_factor_taken);
  put_number(f, "peak_fraction", r->peak_fraction);
  put_number(f, "idle_s", r->idle_s);
  put_number(f, "busy_s", r->busy_s);
  put_number(f, "busy_share", r->busy_share);
  put_number(f, "over_ideal", r->over_ideal);
  put_number(f, "samples", r->n_samples);
  put_number(f, "spread", r->spread);
  put_number(f, "others_load", ws_bench_load_others());
  ws_bench_result_end(f);
}

bench_record ws_bench_record(const bench_suite *suite, const bench_case *c) {
  bench_record r = {.suite = suite->name,
                    .case_name = c->name,
                    .policy = "auto",
                    .peer = "none",
                    .unit = "GF/s",
                    .shape_class = c->shape_class >= 0 ? ws_shape_class_name(c->shape_class) : NULL,
                    .n_threads = c->n_threads,
                    .coarse_factor_taken = -1,
                    .ours = -1,
                    .theirs = -1,
                    .ratio = -1,
                    .peak_fraction = -1,
                    .spread = -1,
                    .idle_s = -1,
                    .busy_s = -1,
                    .busy_share = -1,
                    .over_ideal = -1};
  ws_bench_routine(&c->shape, r.routine);
  return r;
}

void ws_bench_emit(bench_session *s, const bench_record *r) {
  if (s->json) put_record(s, s->json, r);
  if (s->results) put_record(s, s->results, r);
}

/* ---- Result files ---------------------------------------------------------------------------- */

static void device_folder(char *path, size_t bytes, const bench_session *s, const char *folder) {
  snprintf(path, bytes, "%s/%s", folder, s->device.slug);
}

bool ws_bench_begin_results(bench_session *s, const char *folder) {
  char path[1024];
  device_folder(path, sizeof path, s, folder);
  if ((mkdir(folder, 0777) && errno != EEXIST) || (mkdir(path, 0777) && errno != EEXIST) || access(path, W_OK)) {
    snprintf(s->error, sizeof s->error, "cannot write to the folder %.300s: %s", path, strerror(errno));
    return false;
  }
  s->results = open_memstream(&s->results_text, &s->results_bytes);
  if (!s->results) snprintf(s->error, sizeof s->error, "out of memory");
  return s->results != NULL;
}

void ws_bench_drop_results(bench_session *s) {
  if (s->results) fclose(s->results);
  free(s->results_text);
  s->results = NULL;
  s->results_text = NULL;
}

static bool write_file(const char *path, const char *text, size_t bytes) {
  FILE *f = fopen(path, "we");
  if (!f) return false;
  bool good = fwrite(text, 1, bytes, f) == bytes && fflush(f) == 0 && fsync(fileno(f)) == 0;
  return fclose(f) == 0 && good;
}

bool ws_bench_keep_results(bench_session *s, const char *folder, const char *suite) {
  char folder_path[1024], path[1200], temporary[1232];
  bool good = fclose(s->results) == 0;
  s->results = NULL;
  device_folder(folder_path, sizeof folder_path, s, folder);
  snprintf(path, sizeof path, "%s/%s.jsonl", folder_path, suite);
  snprintf(temporary, sizeof temporary, "%s.%ld", path, (long)getpid());
  good = good && write_file(temporary, s->results_text, s->results_bytes) && rename(temporary, path) == 0;
  if (!good) {
    snprintf(s->error, sizeof s->error, "cannot write %.300s: %s", path, strerror(errno));
    unlink(temporary);
  }
  ws_bench_drop_results(s);
  return good;
}
