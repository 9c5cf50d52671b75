/* autotune.c - the command `wsgemm autotune`: options, and a search for each case.
 *
 * SIGINT only sets a flag, which the search asks for after every measurement: what was found by
 * then is kept, and the table comes as ever. The handler serves once, so that a second SIGINT ends
 * the process. */
#define _GNU_SOURCE
#include "autotune.h"
#include "bench/harness/device.h"
#include "gpu.h"
#include "tuning_lines.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_THREADS = 256, MAX_DEVICES = 64 };

static const struct {
  const char *name;
  wsgemm_math math;
} maths[] = {{"default", WSGEMM_MATH_DEFAULT}, {"pedantic", WSGEMM_MATH_PEDANTIC}, {"tf32", WSGEMM_MATH_TF32}};

static void print_help(void) {
  ws_cli_print_usage("autotune");
  printf("Measures, shape by shape, which kernel, tile, COARSE_FACTOR, policy and blocking is fastest on\n"
         "this machine, and keeps it in a file that every program with wsgemm reads. Results keep their\n"
         "bits. Matrices are column-major, as BLAS has them: of C-ordered ones M and N change places.\n\n"
         "What is tuned:\n"
         "  --routine s,d,c,z,h,b   sgemm, dgemm, ... (default: s); or ssymm, dsyrk, cher2k, strsm, ...\n"
         "  --ops NN,NT,...         A and B as they are (N), transposed (T) or conjugated too (C);\n"
         "                          Level 3: that of A, and of B for gemmtr\n"
         "  --side left|right       where the structured matrix of symm, hemm, trmm, trsm stands\n"
         "  --uplo lower|upper      which triangle Level 3 reads or writes (default: lower)\n"
         "  --shapes LIST           sets, shapes MxNxK, squares N, files with a shape a line, separated\n"
         "                          by commas (default: square). Level 3 takes M and N, or for syrk and\n"
         "                          its kin N and K. Sets:\n");
  ws_shapes_print_sets();
  printf("  --device cpu|N          N: a GPU, counted from 0 (default: cpu)\n"
         "  --math M                default, pedantic or tf32\n"
         "  --beta X                a real number; what half precision on a GPU has for a beta other than 0\n"
         "                          serves long epilogues, too (default: 0)\n"
         "  --threads N             calls that may use up to N threads (default: all)\n\n"
         "How:\n"
         "  --budget MS             milliseconds for a shape (default: 80 on a GPU, 1000 on the CPU)\n"
         "  --exhaustive            measure every candidate, up to 5 times while the budget lasts\n"
         "  --seed N                other random numbers\n"
         "  --resume                leave out shapes that the file has already (not for Level 3 on a GPU)\n"
         "  --dry-run               only list the candidates; nothing is measured or written\n\n"
         "Where it goes:\n"
         "  --out FILE              default: the user's file ('wsgemm tune show' prints its name)\n"
         "  --log FILE.jsonl        append the time of every candidate, a JSON object a line\n\n"
         "Ctrl-C ends the search and keeps what was found until then (exit code 130).\n");
}

/* ---- Options --------------------------------------------------------------------------------- */

/* "s", "sgemm", "dtrsm": also several by commas. */
static int take_routines(autotune_request *r, char *list) {
  r->n_routines = 0;
  for (char *word; (word = strsep(&list, ","));) {
    autotune_routine found;
    if (!ws_autotune_find_routine(word, &found))
      return ws_cli_usage("autotune",
                          "autotune: --routine '%.40s' is none of s, d, c, z, h, b (or sgemm, ...), ssymm, dtrsm, ...", word);
    bool is_there = false;
    for (int i = 0; i < r->n_routines; i++)
      is_there = is_there || (r->routines[i].type == found.type && r->routines[i].routine == found.routine);
    if (!is_there) r->routines[r->n_routines++] = found;
  }
  return WS_EXIT_OK;
}

/* One of two words. */
static int take_either(const char *option, const char *text, const char *first, const char *second, bool *is_second) {
  *is_second = strcmp(text, second) == 0;
  if (*is_second || strcmp(text, first) == 0) return WS_EXIT_OK;
  return ws_cli_usage("autotune", "autotune: %s '%.40s' is neither %s nor %s", option, text, first, second);
}

static int take_ops(autotune_request *r, char *list) {
  r->n_ops = 0;
  for (char *word; (word = strsep(&list, ","));) {
    for (char *p = word; *p; p++) *p = *p >= 'A' && *p <= 'Z' ? (char)(*p + 'a' - 'A') : *p;
    if (strlen(word) != 2 || !strchr("ntc", word[0]) || !strchr("ntc", word[1]))
      return ws_cli_usage("autotune", "autotune: --ops '%.40s' is no pair of N, T, C, such as NT", word);
    bool is_there = false;
    for (int i = 0; i < r->n_ops; i++) is_there = is_there || memcmp(r->ops[i], word, 2) == 0;
    if (!is_there) memcpy(r->ops[r->n_ops++], word, 2);
  }
  return WS_EXIT_OK;
}

static int take_device(autotune_request *r, const char *text) {
  int64_t ordinal = -1;
  if (strcmp(text, "cpu") != 0 && !ws_cli_int64(text, 0, MAX_DEVICES - 1, &ordinal))
    return ws_cli_usage("autotune", "autotune: --device '%.40s' is neither cpu nor a GPU's number", text);
  r->device = (int)ordinal;
  return WS_EXIT_OK;
}

static int take_math(autotune_request *r, const char *text) {
  for (size_t i = 0; i < sizeof maths / sizeof *maths; i++) {
    if (strcmp(text, maths[i].name) != 0) continue;
    r->math = maths[i].math;
    r->math_name = maths[i].name;
    return WS_EXIT_OK;
  }
  return ws_cli_usage("autotune", "autotune: --math '%.40s' is none of default, pedantic, tf32", text);
}

static int take_file(const char *option, const char *path, const char **out) {
  if (!*path) return ws_cli_usage("autotune", "autotune: %s needs the name of a file", option);
  *out = path;
  return WS_EXIT_OK;
}

enum { ROUTINE = 256, OPS, SIDE, UPLO, SHAPES, DEVICE, MATH, BETA, BUDGET, THREADS, SEED, OUT, LOG, RESUME, DRY_RUN, EXHAUSTIVE };

static const struct option long_options[] = {{"routine", required_argument, NULL, ROUTINE},
                                             {"ops", required_argument, NULL, OPS},
                                             {"side", required_argument, NULL, SIDE},
                                             {"uplo", required_argument, NULL, UPLO},
                                             {"shapes", required_argument, NULL, SHAPES},
                                             {"device", required_argument, NULL, DEVICE},
                                             {"math", required_argument, NULL, MATH},
                                             {"beta", required_argument, NULL, BETA},
                                             {"budget", required_argument, NULL, BUDGET},
                                             {"threads", required_argument, NULL, THREADS},
                                             {"seed", required_argument, NULL, SEED},
                                             {"out", required_argument, NULL, OUT},
                                             {"log", required_argument, NULL, LOG},
                                             {"resume", no_argument, NULL, RESUME},
                                             {"dry-run", no_argument, NULL, DRY_RUN},
                                             {"exhaustive", no_argument, NULL, EXHAUSTIVE},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int take_option(autotune_request *r, int found) {
  switch (found) {
  case ROUTINE:
    return take_routines(r, optarg);
  case OPS:
    return take_ops(r, optarg);
  case SIDE:
    return take_either("--side", optarg, "left", "right", &r->is_right);
  case UPLO:
    return take_either("--uplo", optarg, "lower", "upper", &r->is_upper);
  case SHAPES:
    return ws_shapes_add(&r->shapes, "autotune", optarg);
  case DEVICE:
    return take_device(r, optarg);
  case MATH:
    return take_math(r, optarg);
  case BETA:
    if (ws_cli_double(optarg, &r->beta) && isfinite((float)r->beta)) return WS_EXIT_OK;
    return ws_cli_usage("autotune", "autotune: --beta '%.40s' is no number that a float holds", optarg);
  case BUDGET:
    if (ws_cli_double(optarg, &r->budget_ms) && r->budget_ms >= 0 && r->budget_ms <= 1e9) return WS_EXIT_OK;
    return ws_cli_usage("autotune", "autotune: --budget '%.40s' is no number of milliseconds", optarg);
  case THREADS:
    if (ws_cli_int64(optarg, 1, MAX_THREADS, &r->n_threads)) return WS_EXIT_OK;
    return ws_cli_usage("autotune", "autotune: --threads '%.40s' is no number from 1 to %d", optarg, MAX_THREADS);
  case SEED:
    if (ws_cli_int64(optarg, 0, INT64_MAX, &r->seed)) return WS_EXIT_OK;
    return ws_cli_usage("autotune", "autotune: --seed '%.40s' is no number", optarg);
  case OUT:
    return take_file("--out", optarg, &r->out);
  case LOG:
    return take_file("--log", optarg, &r->log);
  case RESUME:
    r->is_resumed = true;
    return WS_EXIT_OK;
  case DRY_RUN:
    r->is_dry = true;
    return WS_EXIT_OK;
  default:
    r->is_exhaustive = true;
    return WS_EXIT_OK;
  }
}

static int take_options(autotune_request *r, int argc, char **argv, bool *is_help) {
  char squares[] = "square";
  opterr = 0;
  optind = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
    *is_help = found == 'h';
    if (*is_help) return WS_EXIT_OK;
    if (found == '?' || found == ':') return ws_cli_bad_option("autotune", argc, argv, found);
    const int code = take_option(r, found);
    if (code != WS_EXIT_OK) return code;
  }
  if (optind < argc) return ws_cli_usage("autotune", "autotune: unexpected argument '%.60s'", argv[optind]);
  if (r->is_dry && r->budget_ms > 0)
    return ws_cli_usage("autotune", "autotune: --dry-run measures nothing; it takes no --budget");
  if (r->budget_ms == 0) r->is_dry = true;
  if (r->is_dry && r->log) return ws_cli_usage("autotune", "autotune: --dry-run measures nothing that --log could tell");
  if (r->is_dry && r->is_exhaustive) return ws_cli_usage("autotune", "autotune: --dry-run and --exhaustive exclude each other");
  return r->shapes.n ? WS_EXIT_OK : ws_shapes_add(&r->shapes, "autotune", squares);
}

/* ---- The searches ---------------------------------------------------------------------------- */

static volatile sig_atomic_t is_interrupted;

static void interrupt(int signal_number) {
  (void)signal_number;
  is_interrupted = 1;
}

/* Where SIGINT is ignored, as for jobs in the background, it stays so. */
static void watch_interrupts(void) {
  struct sigaction now, ours = {.sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND};
  is_interrupted = 0;
  if (sigaction(SIGINT, NULL, &now) == 0 && now.sa_handler != SIG_IGN) sigaction(SIGINT, &ours, NULL);
}

static int on_step(void *report, const wsgemm_autotune_step *step) {
  ws_autotune_report_step(report, step);
  return is_interrupted;
}

typedef struct tally {
  int n_done, n_kept, n_skipped, n_without_choice, n_failed;
} tally;

/* Told of the search's failure. False: the others would fail of the same. */
static bool take_failure(autotune_report *report, autotune_case *c, wsgemm_status status, tally *sum) {
  if (status == WSGEMM_NOT_SUPPORTED) {
    c->state = AUTOTUNE_WITHOUT_CHOICE;
    sum->n_without_choice++;
    ws_autotune_report_left_out(report, ws_cli_why(status));
    return true;
  }
  sum->n_failed++;
  ws_cli_fail("%s %s: %s", c->routine, c->name, ws_cli_why(status));
  return status == WSGEMM_ALLOC_FAILED;
}

/* False: there is no use in going on. */
static bool search(wsgemm_handle *h, const autotune_request *r, autotune_report *report, autotune_case *c, tally *sum) {
  wsgemm_autotune_options options = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  options.device = r->device;
  options.is_exhaustive = r->is_exhaustive;
  options.budget_ms = r->is_dry ? 0 : r->budget_ms;
  options.seed = (uint64_t)r->seed;
  options.file = r->out;
  options.progress = on_step;
  options.user = report;
  options.result = &c->result;
  const wsgemm_status status = ws_autotune_run(h, r, c, &options);
  ws_autotune_report_clear(report);
  const bool is_done = status == WSGEMM_SUCCESS || status == WSGEMM_FILE_ERROR;
  bool goes_on = true;
  c->state = is_done ? AUTOTUNE_DONE : AUTOTUNE_FAILED;
  sum->n_done += is_done;
  sum->n_kept += status == WSGEMM_SUCCESS && (c->result.is_better || !c->result.is_interrupted);
  if (is_done && r->is_dry) ws_autotune_report_candidates(report);
  if (is_done && !r->is_dry && !ws_autotune_report_result(report)) {
    sum->n_failed++;
    ws_cli_fail("%s: %s", r->log, strerror(errno));
    goes_on = false;
  }
  if (report->is_out_of_memory) {
    sum->n_failed++;
    ws_cli_fail("out of memory for the candidates of %s %s", c->routine, c->name);
    goes_on = false;
  }
  return (status == WSGEMM_SUCCESS || take_failure(report, c, status, sum)) && goes_on;
}

static const char *shapes(int n) { return n == 1 ? "shape" : "shapes"; }

static void print_end(const autotune_request *r, const autotune_case *cases, int n_cases, const tally *sum) {
  char *file = r->out ? strdup(r->out) : ws_tuning_user_file();
  const char *where = file && *file ? file : "no file";
  const int n_known = sum->n_skipped, n_plain = sum->n_without_choice;
  if (!r->is_dry) ws_autotune_print_summary(cases, n_cases);
  if (sum->n_done > 0 && !r->is_dry) printf("\n%d of %d %s kept in %s\n", sum->n_kept, sum->n_done, shapes(sum->n_done), where);
  if (r->is_dry) printf("\nnothing was measured or written%s\n", r->budget_ms == 0 ? ": the budget is 0" : "");
  if (n_known > 0) printf("%d %s left out: %s has %s already\n", n_known, shapes(n_known), where, n_known == 1 ? "it" : "them");
  if (n_plain > 0) printf("%d %s left out: there is nothing to choose\n", n_plain, shapes(n_plain));
  free(file);
}

static int search_all(wsgemm_handle *h, const autotune_request *r, const autotune_known *k, autotune_report *report,
                      autotune_case *cases, int n_cases) {
  tally sum = {0};
  bool goes_on = true;
  watch_interrupts();
  ws_autotune_report_begin(report, n_cases);
  for (int i = 0; i < n_cases && goes_on && !is_interrupted; i++) {
    if (ws_autotune_is_known(k, h, r, &cases[i])) {
      cases[i].state = AUTOTUNE_SKIPPED;
      sum.n_skipped++;
      continue;
    }
    ws_autotune_report_case(report, &cases[i], i);
    goes_on = search(h, r, report, &cases[i], &sum);
  }
  print_end(r, cases, n_cases, &sum);
  if (is_interrupted) {
    int n_left = 0;
    for (int i = 0; i < n_cases; i++) n_left += cases[i].state == AUTOTUNE_WAITING;
    ws_cli_fail("interrupted: what was found is kept; %d of %d %s not reached", n_left, n_cases, shapes(n_cases));
    return WS_EXIT_INTERRUPTED;
  }
  if (sum.n_failed == 0 && sum.n_without_choice == n_cases) return ws_cli_fail("no shape leaves anything to choose");
  return sum.n_failed > 0 ? WS_EXIT_FAILED : WS_EXIT_OK;
}

/* ---- The run --------------------------------------------------------------------------------- */

static int open_device(const autotune_request *r, ws_gpu_facts *gpu, char *device, size_t bytes) {
  char why[WS_GPU_WHY_BYTES];
  int n_devices;
  if (r->device < 0) {
    const ws_bench_device cpu = ws_bench_device_cpu();
    snprintf(device, bytes, "%s", cpu.name);
    return WS_EXIT_OK;
  }
  if (ws_gpu_find(&n_devices, why) != WS_GPU_READY) return ws_cli_fail("--device %d: %s", r->device, why);
  if (r->device >= n_devices)
    return ws_cli_fail("--device %d: there %s %d GPU%s, counted from 0", r->device, n_devices == 1 ? "is" : "are", n_devices,
                       n_devices == 1 ? "" : "s");
  if (!ws_gpu_open(r->device, gpu, why)) return ws_cli_fail("--device %d: %s", r->device, why);
  snprintf(device, bytes, "%s", gpu->name);
  return WS_EXIT_OK;
}

/* The folder of a path, or the first one above it that is there. */
static void folder_of(char *path) {
  struct stat found;
  do {
    char *slash = strrchr(path, '/');
    if (!slash) strcpy(path, ".");
    if (slash) slash[slash == path] = 0;
  } while (stat(path, &found) != 0 && errno == ENOENT && strcmp(path, ".") != 0 && strcmp(path, "/") != 0);
}

/* Nothing is measured that could not be kept: what can be known in advance about writing is
 * reported now. */
static int check_file(const autotune_request *r) {
  char *path = r->out ? strdup(r->out) : ws_tuning_user_file();
  struct stat found;
  int code = WS_EXIT_OK;
  if (!path) return ws_cli_fail("out of memory");
  if (!*path) {
    code = ws_cli_fail("there is no file to keep what is found (WSGEMM_TUNE=off, or no home folder): give --out FILE");
  } else if (stat(path, &found) == 0 && !S_ISREG(found.st_mode)) {
    code = ws_cli_fail("%s: not a regular file", path);
  } else {
    char *folder = strdup(path);
    if (folder) folder_of(folder);
    if (!folder || access(folder, W_OK | X_OK) != 0 ||
        (stat(folder, &found) == 0 && !S_ISDIR(found.st_mode) && (errno = ENOTDIR)))
      code = ws_cli_fail("%s: %s", path, strerror(errno));
    free(folder);
  }
  free(path);
  return code;
}

static int open_log(const autotune_request *r, autotune_report *report) {
  if (!r->log) return WS_EXIT_OK;
  report->log = fopen(r->log, "ae");
  return report->log ? WS_EXIT_OK : ws_cli_fail("%s: %s", r->log, strerror(errno));
}

static int close_log(const autotune_request *r, autotune_report *report) {
  if (!report->log || fclose(report->log) == 0) return WS_EXIT_OK;
  return ws_cli_fail("%s: %s", r->log, strerror(errno));
}

static int run(wsgemm_handle *h, const autotune_request *r) {
  autotune_report report = {.math = r->math_name, .beta = r->beta, .is_quiet = r->is_dry, .is_exhaustive = r->is_exhaustive};
  ws_gpu_facts gpu = {0};
  autotune_known known = {0};
  int n_cases = 0;
  const wsgemm_status status = wsgemm_set_num_threads(h, (int)r->n_threads);
  int code = status == WSGEMM_SUCCESS ? WS_EXIT_OK : ws_cli_fail("%s", ws_cli_why(status));
  if (code == WS_EXIT_OK) code = open_device(r, &gpu, report.device, sizeof report.device);
  if (code == WS_EXIT_OK && !r->is_dry) code = check_file(r);
  if (code == WS_EXIT_OK && r->is_resumed) code = ws_autotune_read_known(&known, r, &gpu);
  if (code == WS_EXIT_OK) code = open_log(r, &report);
  if (code == WS_EXIT_OK) {
    autotune_case *cases = ws_autotune_make_cases(r, &n_cases);
    code = cases ? search_all(h, r, &known, &report, cases, n_cases) : ws_cli_fail("out of memory");
    free(cases);
  }
  const int closed = close_log(r, &report);
  ws_autotune_report_free(&report);
  free(known.lines);
  return code == WS_EXIT_OK ? closed : code;
}

int ws_cmd_autotune(int argc, char **argv) {
  autotune_request r = {.routines = {{WSGEMM_F32, 0}},
                        .ops = {{'n', 'n'}},
                        .n_routines = 1,
                        .n_ops = 1,
                        .device = -1,
                        .math = WSGEMM_MATH_DEFAULT,
                        .math_name = "default",
                        .budget_ms = -1,
                        .seed = 1};
  bool is_help = false;
  wsgemm_handle *h;
  int code = take_options(&r, argc, argv, &is_help);
  if (is_help) print_help();
  if (code == WS_EXIT_OK && !is_help) code = ws_cli_check_environment();
  if (code == WS_EXIT_OK && !is_help) {
    const wsgemm_status status = wsgemm_create(&h);
    code = status == WSGEMM_SUCCESS ? run(h, &r) : ws_cli_fail("%s", ws_cli_why(status));
    if (status == WSGEMM_SUCCESS) wsgemm_destroy(h);
  }
  free(r.shapes.at);
  return code;
}
