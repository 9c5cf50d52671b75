/* bench_report.c - what leaves the benchmark: table lines on stdout, the progress bar on stderr, JSON lines, result files.
 *
 * A result file is kept in memory and takes its place, by renaming, only when its suite has ended well: a broken run leaves the
 * older figures alone. The device's name is made from what the kernel says about the CPU, and only labels results. */
#define _GNU_SOURCE
#include "bench.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
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

/* ---- JSON lines ---------------------------------------------------------------------------------------------------------- */

static void put_number(FILE *f, const char *key, double value) {
  if (value >= 0) fprintf(f, ",\"%s\":%.5g", key, value);
}

static void put_record(bench_session *s, FILE *f, const bench_record *r) {
  const char routine[] = {ws_bench_type_letter(r->type), 'g', 'e', 'm', 'm', 0};
  fprintf(f, "{\"suite\":\"%s\"", r->suite);
  ws_cli_put_member(f, "routine", routine);
  ws_cli_put_member(f, "case", r->case_name);
  ws_cli_put_member(f, "policy", r->policy);
  if (r->coarse_factor) put_number(f, "coarse_factor", r->coarse_factor);
  put_number(f, "coarse_factor_taken", r->coarse_factor_taken);
  put_number(f, "threads", r->n_threads);
  ws_cli_put_member(f, "device", s->device);
  ws_cli_put_member(f, "peer", r->peer);
  put_number(f, "ours", r->ours);
  put_number(f, "theirs", r->theirs);
  ws_cli_put_member(f, "unit", r->unit);
  put_number(f, "ratio", r->ratio);
  put_number(f, "peak_fraction", r->peak_fraction);
  put_number(f, "idle_s", r->idle_s);
  put_number(f, "busy_s", r->busy_s);
  put_number(f, "busy_share", r->busy_share);
  put_number(f, "over_ideal", r->over_ideal);
  put_number(f, "samples", r->n_samples);
  put_number(f, "spread", r->spread);
  put_number(f, "others_load", ws_bench_load_others());
  ws_cli_put_member(f, "commit", s->commit);
  ws_cli_put_member(f, "date", s->date);
  fputs("}\n", f);
  fflush(f);
}

bench_record ws_bench_record(const bench_suite *suite, const bench_case *c) {
  return (bench_record){.suite = suite->name,
                        .case_name = c->name,
                        .policy = "auto",
                        .peer = "none",
                        .unit = "GF/s",
                        .type = c->shape.type,
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
}

void ws_bench_emit(bench_session *s, const bench_record *r) {
  if (s->json) put_record(s, s->json, r);
  if (s->results) put_record(s, s->results, r);
}

/* ---- Result files -------------------------------------------------------------------------------------------------------- */

static void device_folder(char *path, size_t bytes, const bench_session *s, const char *folder) {
  snprintf(path, bytes, "%s/%s", folder, s->device_slug);
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

/* ---- The device's name --------------------------------------------------------------------------------------------------- */

/* AMD's server parts carry no generation in their name under many hypervisors. */
static const struct {
  const char *vendor;
  int family, first_model, last_model;
  const char *name;
} generations[] = {
    {"AuthenticAMD", 23, 0x00, 0x2f, "zen"},  {"AuthenticAMD", 23, 0x30, 0xff, "zen2"}, {"AuthenticAMD", 25, 0x00, 0x0f, "zen3"},
    {"AuthenticAMD", 25, 0x10, 0x1f, "zen4"}, {"AuthenticAMD", 25, 0x20, 0x5f, "zen3"}, {"AuthenticAMD", 25, 0x60, 0xaf, "zen4"},
    {"AuthenticAMD", 26, 0x00, 0xff, "zen5"},
};

static bool take_field(const char *line, const char *key, char *value, size_t bytes) {
  const size_t length = strlen(key);
  const char *colon = strchr(line, ':');
  if (strncmp(line, key, length) || !colon || strspn(line + length, " \t") != (size_t)(colon - line) - length) return false;
  snprintf(value, bytes, "%s", colon + 1 + strspn(colon + 1, " \t"));
  value[strcspn(value, "\n")] = 0;
  return true;
}

/* "Intel(R) Xeon(R) CPU @ 2.0GHz" becomes "Intel Xeon". */
static void tidy_model(char *model) {
  static const char *const noise[] = {"(R)", "(TM)", "(r)", "(tm)", " CPU", " Processor"};
  char *at = strstr(model, " @ ");
  if (at) *at = 0;
  for (size_t i = 0; i < sizeof noise / sizeof *noise; i++)
    while ((at = strstr(model, noise[i]))) memmove(at, at + strlen(noise[i]), strlen(at + strlen(noise[i])) + 1);
}

static void make_slug(char *slug, size_t bytes, const char *text) {
  size_t used = 0;
  for (; *text && used + 1 < bytes; text++) {
    if (isalnum((unsigned char)*text))
      slug[used++] = (char)tolower((unsigned char)*text);
    else if (used && slug[used - 1] != '-')
      slug[used++] = '-';
  }
  slug[used] = 0;
}

void ws_bench_device(bench_session *s) {
  char line[512], model[80] = "", vendor[32] = "", implementer[16] = "", part[16] = "", family[16] = "", number[16] = "",
                  slug[80];
  const char *generation = "";
  cpu_set_t set;
  FILE *f = fopen("/proc/cpuinfo", "re");
  while (f && fgets(line, sizeof line, f)) {
    if (*line == '\n' && (*model || *part)) break; /* the first processor is enough */
    if (!take_field(line, "model name", model, sizeof model) && !take_field(line, "vendor_id", vendor, sizeof vendor) &&
        !take_field(line, "cpu family", family, sizeof family) && !take_field(line, "model", number, sizeof number) &&
        !take_field(line, "CPU implementer", implementer, sizeof implementer))
      take_field(line, "CPU part", part, sizeof part);
  }
  if (f) fclose(f);
  if (!*model) snprintf(model, sizeof model, "CPU implementer %s part %s", implementer, part);
  tidy_model(model);
  for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
    if (!strcmp(vendor, generations[i].vendor) && atoi(family) == generations[i].family &&
        atoi(number) >= generations[i].first_model && atoi(number) <= generations[i].last_model)
      generation = generations[i].name;
  s->n_cores = sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
  snprintf(s->device, sizeof s->device, "%s%s%s, %d core%s", model, *generation ? " " : "", generation, s->n_cores,
           s->n_cores == 1 ? "" : "s");
  snprintf(line, sizeof line, "%s %s", model, generation);
  make_slug(slug, sizeof slug, line);
  snprintf(s->device_slug, sizeof s->device_slug, "%s%s%dc", slug, slug[strlen(slug) - 1] == '-' ? "" : "-", s->n_cores);
}
