/* autotune_report.c - what `wsgemm autotune` shows: see autotune.h.
 *
 * The progress is one line that is drawn over itself, at most ten times a second, so that it does
 * not disturb what is measured, and cut to the terminal's width, so that it never becomes two. */
#define _GNU_SOURCE
#include "autotune.h"
#include "bench/harness/clock.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "tuning_lines.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { BAR_WIDTH = 20, LEAST_WIDTH = 20 };
static const double redraw_s = 0.1;

static double gain_of(const wsgemm_autotune_result *r) {
  return r->before_us > 0 && r->after_us > 0 ? r->before_us / r->after_us : 0;
}

/* Places behind the point that leave four digits or so. */
static int places(double us) { return us < 100 ? 2 : us < 10000 ? 1 : 0; }

/* What of `after` is not in `before`, word by word. */
static void changes(const char *before, const char *after, char *text, size_t bytes) {
  char copy[AUTOTUNE_TEXT_BYTES], padded[AUTOTUNE_TEXT_BYTES + 2], wanted[AUTOTUNE_TEXT_BYTES + 2], *rest = copy;
  size_t used = 0;
  snprintf(copy, sizeof copy, "%s", after);
  snprintf(padded, sizeof padded, " %s ", before);
  *text = 0;
  for (char *word; (word = strsep(&rest, " "));) {
    snprintf(wanted, sizeof wanted, " %s ", word);
    if (!*word || strstr(padded, wanted) || used >= bytes) continue;
    used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? " " : "", word);
  }
}

/* Below this the built-in choice's times are as steady as those of a quiet machine. */
static const double quiet = 0.02;

/* " (times differ by 7 %; 1.12x was not confirmed)"; nothing on a quiet machine. */
static void describe_noise(const autotune_case *c, char *text, size_t bytes) {
  const bool is_noisy = c->noise > quiet, is_lost = !c->result.is_better && c->seen > 1 + quiet;
  char noise[48] = "", lost[48] = "";
  if (is_noisy) snprintf(noise, sizeof noise, "times differ by %.0f %%", fmin(c->noise, 9) * 100);
  if (is_lost) snprintf(lost, sizeof lost, "%.3fx was not confirmed", fmin(c->seen, 999));
  *text = 0;
  if (is_noisy || is_lost) snprintf(text, bytes, " (%s%s%s)", noise, is_noisy && is_lost ? "; " : "", lost);
}

/* ---- Progress -------------------------------------------------------------------------------- */

static int terminal_width(void) {
  struct winsize size;
  const int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  return width < LEAST_WIDTH ? LEAST_WIDTH : width;
}

typedef struct line {
  char text[512];
  size_t used;
} line;

static void put(line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(line *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsnprintf(l->text + l->used, sizeof l->text - l->used, format, args);
  va_end(args);
  if (n > 0) l->used += (size_t)n;
  if (l->used >= sizeof l->text) l->used = sizeof l->text - 1;
}

static void put_seconds(line *l, double s) {
  if (s < 60)
    put(l, "%.0f s", ceil(s));
  else if (s < 3600)
    put(l, "%.0f:%02.0f min", floor(s / 60), floor(fmod(s, 60)));
  else
    put(l, "%.0f:%02.0f h", floor(s / 3600), floor(fmod(s, 3600) / 60));
}

void ws_autotune_report_clear(autotune_report *r) {
  if (!r->is_shown) return;
  fputs("\r\033[K", stderr);
  fflush(stderr);
  r->is_shown = false;
}

/* Seconds: this search to the end of its budget, the others as long as those that are over, or
 * their budget. */
static double time_left(const autotune_report *r, const wsgemm_autotune_step *step) {
  const double here = fmax(0, step->budget_ms - step->elapsed_ms) * 1e-3,
               before = ws_bench_now() - r->begin_s - step->elapsed_ms * 1e-3;
  const double each = r->n_begun > 1 ? before / (r->n_begun - 1) : step->budget_ms * 1e-3;
  return here + each * (r->n_cases - r->case_idx - 1);
}

static void draw(autotune_report *r, const wsgemm_autotune_step *step) {
  double share = step->budget_ms > 0 ? fmin(1, step->elapsed_ms / step->budget_ms) : 0;
  if (r->is_exhaustive) share = fmin(1, (double)r->n_candidates / step->n_candidates);
  const int filled = (int)(share * BAR_WIDTH);
  line l = {0};
  put(&l, "%d/%d %s %s [%.*s%*s] ", r->case_idx + 1, r->n_cases, r->current->routine, r->current->name, filled,
      "####################", BAR_WIDTH - filled, "");
  if (step->best_us > 0 && step->built_in_us > 0)
    put(&l, "%.3fx %.*f us, ", step->built_in_us / step->best_us, places(step->best_us), step->best_us);
  put_seconds(&l, r->is_exhaustive ? ws_bench_now() - r->begin_s : time_left(r, step));
  put(&l, " %s, %d of %d survive", r->is_exhaustive ? "so far" : "left", step->n_survivors, step->n_candidates);
  if (step->candidate) put(&l, ", now %s", step->candidate);
  if (step->best && *step->best) put(&l, ", best %s", step->best);
  fprintf(stderr, "\r\033[K%.*s", terminal_width() - 1, l.text);
  fflush(stderr);
  r->is_shown = true;
}

/* ---- Candidates ------------------------------------------------------------------------------ */

static autotune_candidate *find_candidate(autotune_report *r, const char *text) {
  for (int i = 0; i < r->n_candidates; i++)
    if (strcmp(r->candidates[i].text, text) == 0) return &r->candidates[i];
  if (r->n_candidates == r->room) {
    const int room = r->room ? 2 * r->room : 64;
    autotune_candidate *more = realloc(r->candidates, sizeof *more * (size_t)room);
    if (!more) return NULL;
    r->candidates = more;
    r->room = room;
  }
  autotune_candidate *added = &r->candidates[r->n_candidates++];
  *added = (autotune_candidate){0};
  snprintf(added->text, sizeof added->text, "%s", text);
  return added;
}

static bool add_run(autotune_candidate *c, double us) {
  if (c->n_runs == c->room) {
    const int room = c->room ? 2 * c->room : 8;
    double *more = realloc(c->us, sizeof *more * (size_t)room);
    if (!more) return false;
    c->us = more;
    c->room = room;
  }
  c->us[c->n_runs++] = us;
  return true;
}

static void take_note(autotune_report *r, const wsgemm_autotune_step *step) {
  char text[AUTOTUNE_TEXT_BYTES];
  snprintf(text, sizeof text, "%s", step->candidate ? step->candidate : "");
  autotune_candidate *c = find_candidate(r, text);
  if (!c || (step->us > 0 && !add_run(c, step->us))) {
    r->is_out_of_memory = true;
    return;
  }
  c->model = step->model;
  c->is_refused = c->is_refused || step->us < 0;
}

static void drop_candidates(autotune_report *r) {
  for (int i = 0; i < r->n_candidates; i++) free(r->candidates[i].us);
  r->n_candidates = 0;
}

/* ---- Log ------------------------------------------------------------------------------------- */

/* Of rows with a COARSE_FACTOR of their own also that. */
static void put_tile(FILE *f, const char *row, bool has_coarse) {
  wsgemm_kernel_info info;
  if (!ws_cli_kernel(row, &info)) return;
  fprintf(f, ",\"tile\":\"%dx%d\"", info.bm, info.bn);
  if (!has_coarse && info.coarse_factor > 0) fprintf(f, ",\"coarse\":%d", info.coarse_factor);
}

static void log_candidate(autotune_report *r, autotune_candidate *c) {
  static char commit[WS_BENCH_COMMIT_BYTES];
  const char *rest = c->text;
  char ignored[8];
  const bool has_coarse = ws_tuning_value(c->text, "coarse", ignored, sizeof ignored);
  ws_tuning_word word;
  if (!commit[0]) ws_bench_commit(NULL, commit);
  fprintf(r->log, "{\"suite\":\"landscape\"");
  ws_cli_put_member(r->log, "routine", r->current->routine);
  ws_cli_put_member(r->log, "case", r->current->product);
  ws_cli_put_member(r->log, "numerics", r->math);
  if (r->beta != 0) fprintf(r->log, ",\"beta\":%.17g", r->beta);
  while (ws_tuning_next_word(&rest, &word)) {
    fprintf(r->log, ",\"%s\":", word.key);
    ws_tuning_put_json_value(r->log, &word);
    if (strcmp(word.key, "row") == 0) put_tile(r->log, word.value, has_coarse);
  }
  ws_cli_put_member(r->log, "device", r->device);
  fprintf(r->log, ",\"ours\":%.6g,\"unit\":\"us\",\"samples\":%d,\"model\":%.4g", ws_bench_median(c->us, c->n_runs), c->n_runs,
          c->model);
  ws_cli_put_member(r->log, "commit", commit);
  ws_cli_put_member(r->log, "date", r->date);
  fputs("}\n", r->log);
}

/* ---- The parts in turn ----------------------------------------------------------------------- */

void ws_autotune_report_begin(autotune_report *r, int n_cases) {
  const time_t now = time(NULL);
  struct tm utc;
  const char *terminal = getenv("TERM");
  strftime(r->date, sizeof r->date, "%Y-%m-%d", gmtime_r(&now, &utc));
  r->n_cases = n_cases;
  r->begin_s = ws_bench_now();
  r->is_terminal = isatty(STDERR_FILENO) && !(terminal && strcmp(terminal, "dumb") == 0);
}

void ws_autotune_report_case(autotune_report *r, autotune_case *c, int case_idx) {
  drop_candidates(r);
  r->current = c;
  r->case_idx = case_idx;
  r->n_begun++;
  r->drawn_s = 0;
}

void ws_autotune_report_step(autotune_report *r, const wsgemm_autotune_step *step) {
  take_note(r, step);
  r->current->noise = step->noise;
  r->current->seen = step->best_us > 0 ? step->built_in_us / step->best_us : 0;
  if (r->is_quiet || !r->is_terminal || ws_bench_now() - r->drawn_s < redraw_s) return;
  draw(r, step);
  r->drawn_s = ws_bench_now();
}

bool ws_autotune_report_result(autotune_report *r) {
  const wsgemm_autotune_result *result = &r->current->result;
  char kept[AUTOTUNE_TEXT_BYTES], noise[128];
  if (!r->is_quiet && !r->is_terminal) {
    describe_noise(r->current, noise, sizeof noise);
    changes(result->before, result->after, kept, sizeof kept);
    fprintf(stderr, "%d/%d %s %s: %.*f us, was %.*f us, %.3fx%s%s%s%s\n", r->case_idx + 1, r->n_cases, r->current->routine,
            r->current->name, places(result->after_us), result->after_us, places(result->before_us), result->before_us,
            gain_of(result), *kept ? ", " : "", kept, noise, result->is_interrupted ? " (interrupted)" : "");
  }
  if (!r->log) return true;
  for (int i = 0; i < r->n_candidates; i++)
    if (r->candidates[i].n_runs > 0 && !r->candidates[i].is_refused) log_candidate(r, &r->candidates[i]);
  return fflush(r->log) == 0 && !ferror(r->log);
}

void ws_autotune_report_left_out(autotune_report *r, const char *why) {
  if (r->is_quiet || r->is_terminal) return;
  fprintf(stderr, "%d/%d %s %s: left out, %s\n", r->case_idx + 1, r->n_cases, r->current->routine, r->current->name, why);
}

void ws_autotune_report_candidates(autotune_report *r) {
  const wsgemm_autotune_result *result = &r->current->result;
  printf("%s %s: %d candidates, by predicted time in parts of the built-in choice's (*)\n", r->current->routine, r->current->name,
         r->n_candidates);
  for (int i = 0; i < r->n_candidates; i++)
    printf("%5d %c %8.3f  %s\n", i + 1, strcmp(r->candidates[i].text, result->before) == 0 ? '*' : ' ', r->candidates[i].model,
           r->candidates[i].text);
}

void ws_autotune_report_free(autotune_report *r) {
  drop_candidates(r);
  free(r->candidates);
}

/* ---- Summary --------------------------------------------------------------------------------- */

static void print_us(double us) {
  if (us > 0)
    printf("  %11.1f", us);
  else
    printf("  %11s", "-");
}

void ws_autotune_print_summary(const autotune_case *cases, int n_cases) {
  int width = 5, n_done = 0, n_gains = 0;
  double log_gains = 0, noisiest = 0;
  for (int i = 0; i < n_cases; i++) {
    if (cases[i].state != AUTOTUNE_DONE) continue;
    const int length = (int)(strlen(cases[i].routine) + 1 + strlen(cases[i].name));
    if (length > width) width = length;
    n_done++;
  }
  if (n_done == 0) return;
  printf("%-*s  %11s  %11s  %6s  %s\n", width, "shape", "before us", "after us", "gain", "kept");
  for (int i = 0; i < n_cases; i++) {
    const autotune_case *c = &cases[i];
    char kept[AUTOTUNE_TEXT_BYTES], noise[128];
    if (c->state != AUTOTUNE_DONE) continue;
    const double gain = gain_of(&c->result);
    printf("%s %-*s", c->routine, width - (int)strlen(c->routine) - 1, c->name);
    print_us(c->result.before_us);
    print_us(c->result.after_us);
    changes(c->result.before, c->result.after, kept, sizeof kept);
    if (gain > 0)
      printf("  %6.3f", gain);
    else
      printf("  %6s", "-");
    describe_noise(c, noise, sizeof noise);
    noisiest = fmax(noisiest, c->noise);
    printf("  %s%s%s\n", *kept ? kept : "as it was", noise, c->result.n_refused ? " (some were refused: their C differs)" : "");
    if (gain <= 0) continue;
    log_gains += log(gain);
    n_gains++;
  }
  if (n_gains > 1) printf("%-*s  %11s  %11s  %6.3f\n", width, "geometric mean", "", "", exp(log_gains / n_gains));
  if (noisiest > quiet)
    printf("The machine was busy, or its clock changed: the built-in choice's own times differed by up to %.0f %%. Only gains\n"
           "that showed again beside it were kept; a search on a quiet machine finds more.\n",
           fmin(noisiest, 9) * 100);
}
