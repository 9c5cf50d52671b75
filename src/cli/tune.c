/* tune.c - the command `wsgemm tune`: shows what was tuned, writes it out as text, merges such text
 * into a file, empties a file.
 *
 * Which lines are valid is the library's business; what a line says is taken apart here only to be
 * shown. */
#define _GNU_SOURCE
#include "cli.h"
#include "tuning_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct request {
  const char *file; /* as given; NULL: the user's */
  char *path;       /* its name; "" for none */
  const char *output, *input;
  bool of_table, as_json, is_sure;
} request;

static void print_help(void) {
  ws_cli_print_usage("tune");
  printf("Looks at the file in which 'wsgemm autotune' keeps what it finds, and which every program with\n"
         "wsgemm reads: $WSGEMM_TUNE, else wsgemm/tuning in $XDG_CACHE_HOME or ~/.cache.\n\n"
         "  show              a table of what was found, by device\n"
         "  export            its lines as they are, to be imported elsewhere\n"
         "  import FILE|-     merge lines into the file ('-': from standard input)\n"
         "  clear --yes       empty the file\n\n"
         "  --file FILE       this file instead\n"
         "  --table           show, export: the table that comes with the library instead\n"
         "  --json            show: as a JSON list\n"
         "  -o, --output FILE export: to a file, not to standard output\n");
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* What lines are sorted by, and shown under. */
typedef struct row {
  const char *line;
  /* call: the routine, and of Level 3 side and triangle */
  char device[256], routine[16], call[40], numerics[16], ops[16], shape[96], setting[256];
  int64_t m, n, k, batch;
  double before_us, after_us;
  int position;
} row;

static int64_t whole(const char *line, const char *key) {
  char text[32];
  int64_t value = 0;
  return ws_tuning_value(line, key, text, sizeof text) && ws_cli_int64(text, 0, INT64_MAX, &value) ? value : 0;
}

/* "AMD EPYC, avx512/48K/1024K, 2 processors, wsgemm 0.1.0" */
static void describe_device(const char *line, char *text, size_t bytes) {
  char name[128], arch[64], version[32];
  ws_tuning_value(line, "device", name, sizeof name);
  ws_tuning_value(line, "arch", arch, sizeof arch);
  ws_tuning_value(line, "version", version, sizeof version);
  const int64_t units = whole(line, "units"), workers = whole(line, "workers");
  const int used = snprintf(text, bytes, "%s, %s, %" PRId64 " %s", name, arch, units,
                            strncmp(arch, "sm_", 3) == 0 ? "SMs"
                            : units == 1                 ? "processor"
                                                         : "processors");
  if (used < 0 || (size_t)used >= bytes) return;
  char limit[48] = "";
  if (workers > 0 && workers != units) snprintf(limit, sizeof limit, " (calls of up to %" PRId64 ")", workers);
  snprintf(text + used, bytes - (size_t)used, "%s, wsgemm %s", limit, version);
}

/* The words from "row" to "before_us": the row alone, then what differs from the model's choice. */
static void describe_setting(const char *line, char *text, size_t bytes) {
  ws_tuning_word word;
  size_t used = 0;
  bool is_inside = false;
  *text = 0;
  while (ws_tuning_next_word(&line, &word) && strcmp(word.key, "before_us") != 0) {
    const bool is_row = strcmp(word.key, "row") == 0;
    is_inside = is_inside || is_row;
    if (!is_inside || used >= bytes) continue;
    used += (size_t)snprintf(text + used, bytes - used, "%s%s%s%s", used ? " " : "", is_row ? "" : word.key, is_row ? "" : "=",
                             word.value);
  }
}

static void read_row(const char *line, int position, row *r) {
  char type[16], type_c[16], access[16], side[8], uplo[8];
  ws_tuning_word first;
  *r = (row){.line = line, .position = position};
  describe_device(line, r->device, sizeof r->device);
  ws_tuning_value(line, "type", type, sizeof type);
  ws_tuning_value(line, "type_c", type_c, sizeof type_c);
  ws_tuning_value(line, "access", access, sizeof access);
  ws_tuning_value(line, "numerics", r->numerics, sizeof r->numerics);
  ws_tuning_value(line, "ops", r->ops, sizeof r->ops);
  const char *words = line;
  ws_tuning_next_word(&words, &first);
  ws_tuning_value(line, "side", side, sizeof side);
  ws_tuning_value(line, "uplo", uplo, sizeof uplo);
  const bool is_other = strcmp(type, type_c) != 0;
  snprintf(r->routine, sizeof r->routine, "%.4s%.6s%s%.4s", type, first.key, is_other ? ">" : "", is_other ? type_c : "");
  snprintf(r->call, sizeof r->call, "%s%s%s%s%s", r->routine, *side ? " " : "", side, *uplo ? " " : "", uplo);
  r->m = whole(line, "m");
  r->n = whole(line, "n");
  r->k = whole(line, "k");
  r->batch = whole(line, "batch");
  int used = snprintf(r->shape, sizeof r->shape, "%" PRId64 "x%" PRId64 "x%" PRId64, r->m, r->n, r->k);
  if (r->batch > 1) snprintf(r->shape + used, sizeof r->shape - (size_t)used, " x%" PRId64, r->batch);
  describe_setting(line, r->setting, sizeof r->setting);
  if (ws_tuning_is(line, "store", "in_place")) strncat(r->setting, " (in place)", sizeof r->setting - strlen(r->setting) - 1);
  if (strchr(access, 's')) strncat(r->setting, " (unaligned)", sizeof r->setting - strlen(r->setting) - 1);
  if (ws_tuning_is(line, "store", "full") && strcmp(type, type_c) == 0) /* C in FP32 has no other */
    strncat(r->setting, " (beta or epilogue)", sizeof r->setting - strlen(r->setting) - 1);
  r->before_us = ws_tuning_number(line, "before_us");
  r->after_us = ws_tuning_number(line, "after_us");
}

static int by_number(int64_t x, int64_t y) { return (x > y) - (x < y); }

static int by_row(const void *x, const void *y) {
  const row *a = x, *b = y;
  const int orders[] = {strcmp(a->device, b->device), strcmp(a->call, b->call),      strcmp(a->numerics, b->numerics),
                        strcmp(a->ops, b->ops),       by_number(a->m, b->m),         by_number(a->n, b->n),
                        by_number(a->k, b->k),        by_number(a->batch, b->batch), by_number(a->position, b->position)};
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    if (orders[i]) return orders[i];
  return 0;
}

/* Sorted; NULL: out of memory. Cuts the text into lines, which the rows point to. */
static row *read_rows(char *text, int *n_rows) {
  const int n = ws_tuning_count_lines(text);
  row *rows = calloc((size_t)n + 1, sizeof *rows);
  *n_rows = 0;
  if (!rows) return NULL;
  for (const char *line; *n_rows < n && (line = ws_tuning_next_line(&text)); (*n_rows)++) read_row(line, *n_rows, &rows[*n_rows]);
  qsort(rows, (size_t)*n_rows, sizeof *rows, by_row);
  return rows;
}

static double gain_of(const row *r) { return r->before_us > 0 && r->after_us > 0 ? r->before_us / r->after_us : 0; }

/* ---- show ------------------------------------------------------------------------------------ */

static void widen(int *width, const char *text) {
  if ((int)strlen(text) > *width) *width = (int)strlen(text);
}

static void print_table(const row *rows, int n_rows) {
  int w_routine = 7, w_numerics = 8, w_shape = 10;
  for (int i = 0; i < n_rows; i++) {
    widen(&w_routine, rows[i].call);
    widen(&w_numerics, rows[i].numerics);
    widen(&w_shape, rows[i].shape);
  }
  for (int i = 0; i < n_rows; i++) {
    const row *r = &rows[i];
    if (i == 0 || strcmp(r->device, rows[i - 1].device) != 0)
      printf("%s%s\n  %-*s  %-*s  %-3s  %-*s  %11s  %11s  %6s  %s\n", i ? "\n" : "", r->device, w_routine, "routine", w_numerics,
             "numerics", "ops", w_shape, "m x n x k", "before us", "after us", "gain", "kernel and what was tuned");
    printf("  %-*s  %-*s  %-3s  %-*s  %11.1f  %11.1f  %6.3f  %s\n", w_routine, r->call, w_numerics, r->numerics, r->ops, w_shape,
           r->shape, r->before_us, r->after_us, gain_of(r), r->setting);
  }
}

static void print_json(const row *rows, int n_rows) {
  printf("[");
  for (int i = 0; i < n_rows; i++) {
    const char *line = rows[i].line;
    ws_tuning_word word;
    printf("%s\n  {\"routine\": ", i ? "," : "");
    ws_cli_put_json(stdout, rows[i].routine);
    ws_tuning_next_word(&line, &word); /* the routine's name */
    while (ws_tuning_next_word(&line, &word)) {
      if (strcmp(word.key, "crc") == 0) continue;
      printf(", ");
      ws_cli_put_json(stdout, word.key);
      printf(": ");
      ws_tuning_put_json_value(stdout, &word);
    }
    printf(", \"gain\": %.4f}", gain_of(&rows[i]));
  }
  printf("\n]\n");
}

/* NULL, with errno. A device may have no end: texts are far shorter than 64 MiB. */
static char *read_stream(FILE *f, size_t *length) {
  enum { MOST_BYTES = 64 << 20 };
  char *text = NULL;
  size_t room = 0;
  *length = 0;
  for (;;) {
    if (*length > MOST_BYTES) {
      free(text);
      errno = EFBIG;
      return NULL;
    }
    if (room - *length < 4096) {
      char *more = realloc(text, room = 2 * room + 8192);
      if (!more) break;
      text = more;
    }
    const size_t n = fread(text + *length, 1, room - *length - 1, f);
    *length += n;
    if (n > 0) continue;
    text[*length] = 0;
    return text;
  }
  free(text);
  errno = ENOMEM;
  return NULL;
}

/* The whole file, with its NUL bytes as line ends; NULL with errno. */
static char *read_file(const char *path) {
  FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
  if (!f) return NULL;
  size_t length;
  errno = 0;
  char *text = read_stream(f, &length);
  const int why = !text ? errno : ferror(f) ? errno ? errno : EIO : 0;
  if (f != stdin) fclose(f);
  if (why) {
    free(text);
    errno = why;
    return NULL;
  }
  for (size_t i = 0; i < length; i++)
    if (!text[i]) text[i] = '\n';
  return text;
}

/* NULL with errno; EINVAL: it is no file. A pipe is not waited for. */
static char *read_tuning_file(const request *r) {
  struct stat s;
  if (stat(r->path, &s) != 0 || S_ISREG(s.st_mode)) return read_file(r->path);
  errno = EINVAL;
  return NULL;
}

/* Of the file, whether the library takes them or not. */
static int count_lines(const request *r) {
  char *text = *r->path ? read_tuning_file(r) : NULL;
  const int n = text ? ws_tuning_count_lines(text) : 0;
  free(text);
  return n;
}

/* A file that was named must be one that can be read. */
static int check_readable(const request *r) {
  if (r->of_table) return WS_EXIT_OK;
  if (!*r->path) return ws_cli_fail("there is no tuning file: WSGEMM_TUNE=off, or no home folder");
  char *text = read_tuning_file(r);
  const bool is_read = text;
  free(text);
  if (is_read || (errno == ENOENT && !r->file)) return WS_EXIT_OK;
  return ws_cli_fail("%s: %s", r->path, errno == EINVAL ? "not a file" : strerror(errno));
}

/* The lines to show or export; NULL, reported: there are none to be had. An empty file has none,
 * but one without a valid line is not ours. */
static char *readable_lines(const request *r, int *n_damaged) {
  if (check_readable(r) != WS_EXIT_OK) return NULL;
  char *text = ws_tuning_lines(r->file, r->of_table);
  if (!text) {
    ws_cli_fail("out of memory");
    return NULL;
  }
  const int n = ws_tuning_count_lines(text), n_all = r->of_table ? n : count_lines(r);
  *n_damaged = n_all > n ? n_all - n : 0;
  if (n > 0 || *n_damaged == 0) return text;
  ws_cli_fail("%s: no line in it can be read: not a tuning file, damaged, or of another version", r->path);
  free(text);
  return NULL;
}

static int show(const request *r) {
  int n_rows, n_damaged;
  char *text = readable_lines(r, &n_damaged);
  if (!text) return WS_EXIT_FAILED;
  row *rows = read_rows(text, &n_rows);
  if (!rows) {
    free(text);
    return ws_cli_fail("out of memory");
  }
  if (r->as_json) {
    print_json(rows, n_rows);
  } else {
    print_table(rows, n_rows);
    printf("%s%d shape%s in %s\n", n_rows ? "\n" : "", n_rows, n_rows == 1 ? "" : "s",
           r->of_table ? "the library's table" : r->path);
    if (n_damaged)
      printf("%d line%s damaged, superseded or of another version, and not used\n", n_damaged, n_damaged == 1 ? " is" : "s are");
  }
  free(rows);
  free(text);
  return WS_EXIT_OK;
}

/* ---- export, import, clear ------------------------------------------------------------------- */

static int export_lines(const request *r) {
  static const char header[] = "# wsgemm tuning 1\n";
  int code = WS_EXIT_OK, n_damaged;
  char *text = readable_lines(r, &n_damaged);
  if (!text) return WS_EXIT_FAILED;
  FILE *f = r->output ? fopen(r->output, "we") : stdout;
  bool good = f;
  if (f) {
    if (strncmp(text, header, strlen(header)) != 0) fputs(header, f);
    fputs(text, f);
    good = fflush(f) == 0 && !ferror(f);
    if (f != stdout) good = fclose(f) == 0 && good;
  }
  if (!good && r->output) code = ws_cli_fail("%s: %s", r->output, strerror(errno));
  if (good && r->output) {
    const int n = ws_tuning_count_lines(text);
    printf("%d line%s written to %s\n", n, n == 1 ? "" : "s", r->output);
  }
  free(text);
  return code;
}

static int import_lines(const request *r) {
  if (!*r->path) return ws_cli_fail("there is no tuning file: WSGEMM_TUNE=off, or no home folder; give --file FILE");
  const char *name = strcmp(r->input, "-") == 0 ? "standard input" : r->input;
  char *text = read_file(r->input);
  int n_valid = 0;
  if (!text) return ws_cli_fail("%s: %s", name, strerror(errno));
  const int n_all = ws_tuning_count_lines(text);
  const wsgemm_status status = n_all ? wsgemm_tuning_import(text, r->file, &n_valid) : WSGEMM_SUCCESS;
  free(text);
  if (n_all == 0) return ws_cli_fail("%s: there is no line of tuning in it", name);
  if (status == WSGEMM_INVALID_VALUE) return ws_cli_fail("%s: none of its %d lines is valid", name, n_all);
  if (status != WSGEMM_SUCCESS) return ws_cli_fail("%s", ws_cli_why(status));
  printf("%d line%s imported into %s", n_valid, n_valid == 1 ? "" : "s", r->path);
  if (n_all > n_valid) printf(", %d left out as damaged or of another version", n_all - n_valid);
  printf("\n");
  return WS_EXIT_OK;
}

static int clear(const request *r) {
  if (!*r->path) return ws_cli_fail("there is no tuning file: WSGEMM_TUNE=off, or no home folder; give --file FILE");
  if (!r->is_sure) return ws_cli_usage("tune", "tune: clear empties %s; say --yes", r->path);
  const int n = count_lines(r);
  const wsgemm_status status = wsgemm_tuning_clear(r->file);
  if (status != WSGEMM_SUCCESS) return ws_cli_fail("%s", ws_cli_why(status));
  printf("%d line%s removed from %s\n", n, n == 1 ? "" : "s", r->path);
  return WS_EXIT_OK;
}

/* ---- Command line ---------------------------------------------------------------------------- */

enum { FILE_NAME = 256, TABLE, JSON, YES };

/* Which options each action takes, and whether a file follows. */
static const struct action {
  const char *name;
  int (*run)(const request *r);
  bool takes_table, takes_json, takes_output, takes_yes, takes_input;
} actions[] = {
    {"show", show, true, true, false, false, false},
    {"export", export_lines, true, false, true, false, false},
    {"import", import_lines, false, false, false, false, true},
    {"clear", clear, false, false, false, true, false},
};
enum { N_ACTIONS = sizeof actions / sizeof *actions };

static int take_action(const char *word, const struct action **action) {
  for (int i = 0; i < N_ACTIONS; i++)
    if (strcmp(actions[i].name, word) == 0) *action = &actions[i];
  return *action ? WS_EXIT_OK : ws_cli_usage("tune", "tune: '%.40s' is none of show, export, import, clear", word);
}

static int check_options(const request *r, const struct action *a) {
  const char *stray = r->of_table && !a->takes_table  ? "--table"
                      : r->as_json && !a->takes_json  ? "--json"
                      : r->output && !a->takes_output ? "--output"
                      : r->is_sure && !a->takes_yes   ? "--yes"
                                                      : NULL;
  if (stray) return ws_cli_usage("tune", "tune: %s takes no %s", a->name, stray);
  if (r->of_table && r->file) return ws_cli_usage("tune", "tune: --table and --file exclude each other");
  return WS_EXIT_OK;
}

static int take_words(request *r, int argc, char **argv, const struct action **action) {
  if (optind == argc) return ws_cli_usage("tune", "tune: say what to do: show, export, import or clear");
  int code = take_action(argv[optind], action);
  if (code == WS_EXIT_OK) code = check_options(r, *action);
  if (code != WS_EXIT_OK) return code;
  const int n_more = argc - optind - 1;
  if (!(*action)->takes_input && n_more) return ws_cli_usage("tune", "tune: unexpected argument '%.60s'", argv[optind + 1]);
  if ((*action)->takes_input && n_more != 1) return ws_cli_usage("tune", "tune: import takes one file, or '-'");
  if (n_more) r->input = argv[optind + 1];
  return WS_EXIT_OK;
}

static int take_options(request *r, int argc, char **argv, bool *is_help) {
  static const struct option options[] = {{"file", required_argument, NULL, FILE_NAME},
                                          {"table", no_argument, NULL, TABLE},
                                          {"json", no_argument, NULL, JSON},
                                          {"yes", no_argument, NULL, YES},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
  optind = 0;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":ho:", options, NULL)) != -1;) {
    switch (found) {
    case FILE_NAME:
      if (!*optarg) return ws_cli_usage("tune", "tune: --file needs the name of a file");
      r->file = optarg;
      break;
    case TABLE:
      r->of_table = true;
      break;
    case JSON:
      r->as_json = true;
      break;
    case YES:
      r->is_sure = true;
      break;
    case 'o':
      r->output = optarg;
      break;
    case 'h':
      *is_help = true;
      return WS_EXIT_OK;
    default:
      return ws_cli_bad_option("tune", argc, argv, found);
    }
  }
  return WS_EXIT_OK;
}

int ws_cmd_tune(int argc, char **argv) {
  request r = {0};
  const struct action *action = NULL;
  bool is_help = false;
  int code = take_options(&r, argc, argv, &is_help);
  if (is_help) print_help();
  if (code == WS_EXIT_OK && !is_help) code = take_words(&r, argc, argv, &action);
  if (code != WS_EXIT_OK || is_help) return code;
  r.path = r.file ? strdup(r.file) : ws_tuning_user_file();
  code = r.path ? action->run(&r) : ws_cli_fail("out of memory");
  free(r.path);
  return code;
}
