/* bench.c - the command `wsgemm bench`: options, peers, the run through the chosen suites, and the
 * start of Python for pictures.
 *
 * The environment is cleaned before any peer is loaded, and the commit asked for before that too: a
 * fork with a peer's threads running would disturb them. How a figure comes about is said in
 * bench_measure.c and, shorter, in the help below. */
#define _GNU_SOURCE
#include "bench.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_SUITES = 32, MAX_RANDOM = 4096, MAX_THREADS = 1024 };

typedef struct options {
  const bench_suite *suites[MAX_SUITES];
  const char *peers[BENCH_MAX_PEERS];
  const char *json, *results, *commit, *plot;
  int n_suites, n_peers;
  bool no_peers, allow_slow;
  bool draws;    /* --seed or --count was given */
  bool measures; /* an option says what to measure, or how */
} options;

static void print_help(void) {
  ws_cli_print_usage("bench");
  fputs("Times wsgemm and other BLAS libraries side by side in one process, in turn, on the same\n"
        "matrices (uniform(-1,1), alpha 1, beta 0; in suite update 1), and checks that their results\n"
        "agree. A rate is the median of many samples, in GF/s; the speedup is that of wsgemm over the\n"
        "other library: above 1, wsgemm is faster.\n\n"
        "What is measured:\n"
        "  --suite NAME[,NAME...]    suites to run, or all but demo: all (--list shows them; default: demo)\n"
        "  --routine s,d,c,z,h,b     only these routines; h and b are those of suite half. What a suite does\n"
        "                            not run is named, with the reason\n"
        "  --seed N, --count N       suites random, wide, update: which shapes are drawn (default: 1), and\n"
        "                            how many\n"
        "  --shapes LIST             instead of the suite's shapes: sets, shapes MxNxK, squares N, files with\n"
        "                            a shape a line, separated by commas. Sets:\n",
        stdout);
  ws_shapes_print_sets();
  fputs("  --threads N               thread count instead of the suite's (all: the library's default)\n"
        "  --samples N               samples of each library or setting (fewer if the budget ends first, at\n"
        "                            least 5)\n"
        "  --min-time MS             one sample lasts at least so many milliseconds\n"
        "  --budget S                seconds for one case\n"
        "  --processor-time          count the time that the thread has a processor, not the time that\n"
        "                            passes: on a busy machine, with --threads 1\n\n"
        "Against what:\n"
        "  --peer PATH[:PREFIX]      a CBLAS library with 32-bit integers (OpenBLAS, BLIS); repeatable.\n"
        "                            PREFIX stands before its function names (scipy_ is found by itself).\n"
        "                            Default: libopenblas.so.0, scipy-openblas32 in ./.venv, and the\n"
        "                            libraries listed (with commas) in WSGEMM_BENCH_PEERS. A peer that\n"
        "                            lacks a routine has a dash in the table; what no peer has is named, and\n"
        "                            not run\n"
        "  --no-peers                wsgemm alone\n"
        "  --allow-slow-peer         compare even if a peer runs without the machine's AVX-512\n\n"
        "Where it goes (besides the table on stdout):\n"
        "  --json FILE               append one JSON object a line for each case and peer\n"
        "  --results DIR             replace DIR/<device>/<suite>.jsonl (whole suites only)\n"
        "  --commit ID               for these files; default: WSGEMM_COMMIT, or git's HEAD\n"
        "  --list                    list the suites\n\n"
        "Pictures:\n"
        "  --plot DIR                draw what stands in the results (those of --results, or bench/results)\n"
        "                            as PNG and SVG into DIR/<device>/. Measures before only if another\n"
        "                            option says what, or how. Runs python3, or what WSGEMM_PYTHON names,\n"
        "                            which needs wsgemm's Python package and matplotlib: in the sources of\n"
        "                            wsgemm, pip install . matplotlib\n\n"
        "OPENBLAS_*, GOTO_*, BLIS_* and OMP_* variables are removed first, since they distort peers.\n"
        "\"peak\" is the rate over that of a pure multiply-add loop, timed in turn with the others.\n",
        stdout);
}

static int print_list(void) {
  for (int i = 0; i < ws_bench_n_suites; i++)
    printf("%-10s %-5s %s\n", ws_bench_suites[i].name, ws_bench_suites[i].routines, ws_bench_suites[i].what);
  return WS_EXIT_OK;
}

/* ---- Options --------------------------------------------------------------------------------- */

static int add_suites(options *o, char *list) {
  for (char *name; (name = strsep(&list, ","));) {
    if (strcmp(name, "all") == 0) {
      for (int i = 0; i < ws_bench_n_suites && o->n_suites < MAX_SUITES; i++)
        if (strcmp(ws_bench_suites[i].name, "demo") != 0) o->suites[o->n_suites++] = &ws_bench_suites[i];
      continue;
    }
    const bench_suite *suite = ws_bench_find_suite(name);
    if (!suite) return ws_cli_usage("bench", "bench: there is no suite '%.40s'; --list shows them", name);
    if (o->n_suites == MAX_SUITES) return ws_cli_usage("bench", "bench: too many suites");
    o->suites[o->n_suites++] = suite;
  }
  return WS_EXIT_OK;
}

/* Keeps the letters of "s,d,c,z,h,b" in place. */
static int take_routines(bench_session *s, char *list) {
  char *out = list;
  for (const char *p = list; *p; p++) {
    if (*p == ',') continue;
    if (!strchr("sdczhb", *p)) return ws_cli_usage("bench", "bench: routines are s, d, c, z, h, b");
    *out++ = *p;
  }
  *out = 0;
  if (out == list) return ws_cli_usage("bench", "bench: routines are s, d, c, z, h, b");
  s->routines = list;
  return WS_EXIT_OK;
}

static int take_threads(bench_session *s, const char *text) {
  int64_t n = wsgemm_default_num_threads();
  if (strcmp(text, "all") != 0 && !ws_cli_int64(text, 1, MAX_THREADS, &n))
    return ws_cli_usage("bench", "bench: --threads takes 1 to %d, or all", MAX_THREADS);
  s->n_threads = (int)n;
  return WS_EXIT_OK;
}

static int take_positive(const char *option, const char *text, double unit, double *out) {
  if (!ws_cli_double(text, out) || !(*out > 0) || !(*out < 1e6))
    return ws_cli_usage("bench", "bench: %s takes a number above 0", option);
  *out *= unit;
  return WS_EXIT_OK;
}

enum {
  SUITE = 256,
  ROUTINE,
  SHAPES,
  THREADS,
  SAMPLES,
  MIN_TIME,
  BUDGET,
  PEER,
  NO_PEERS,
  ALLOW_SLOW,
  JSON,
  RESULTS,
  COMMIT,
  PLOT,
  SEED,
  COUNT,
  PROCESSOR_TIME,
  LIST
};

static const struct option long_options[] = {{"suite", required_argument, NULL, SUITE},
                                             {"routine", required_argument, NULL, ROUTINE},
                                             {"shapes", required_argument, NULL, SHAPES},
                                             {"threads", required_argument, NULL, THREADS},
                                             {"samples", required_argument, NULL, SAMPLES},
                                             {"min-time", required_argument, NULL, MIN_TIME},
                                             {"budget", required_argument, NULL, BUDGET},
                                             {"peer", required_argument, NULL, PEER},
                                             {"no-peers", no_argument, NULL, NO_PEERS},
                                             {"allow-slow-peer", no_argument, NULL, ALLOW_SLOW},
                                             {"json", required_argument, NULL, JSON},
                                             {"results", required_argument, NULL, RESULTS},
                                             {"commit", required_argument, NULL, COMMIT},
                                             {"plot", required_argument, NULL, PLOT},
                                             {"seed", required_argument, NULL, SEED},
                                             {"count", required_argument, NULL, COUNT},
                                             {"processor-time", no_argument, NULL, PROCESSOR_TIME},
                                             {"list", no_argument, NULL, LIST},
                                             {"help", no_argument, NULL, 'h'},
                                             {NULL, 0, NULL, 0}};

static int take_option(bench_session *s, options *o, int found) {
  int64_t count;
  if (found != RESULTS && found != COMMIT && found != PLOT) o->measures = true;
  switch (found) {
  case SUITE:
    return add_suites(o, optarg);
  case ROUTINE:
    return take_routines(s, optarg);
  case SHAPES:
    return ws_shapes_add(&s->shapes, "bench", optarg);
  case THREADS:
    return take_threads(s, optarg);
  case SAMPLES:
    if (!ws_cli_int64(optarg, 1, 10000, &count)) return ws_cli_usage("bench", "bench: --samples takes 1 to 10000");
    s->timing.n_samples = (int)count;
    return WS_EXIT_OK;
  case MIN_TIME:
    return take_positive("--min-time", optarg, 1e-3, &s->timing.min_time_s);
  case BUDGET:
    return take_positive("--budget", optarg, 1, &s->timing.budget_s);
  case PEER:
    if (o->n_peers == BENCH_MAX_PEERS) return ws_cli_usage("bench", "bench: at most %d peers", BENCH_MAX_PEERS);
    o->peers[o->n_peers++] = optarg;
    return WS_EXIT_OK;
  case NO_PEERS:
    o->no_peers = true;
    return WS_EXIT_OK;
  case ALLOW_SLOW:
    o->allow_slow = true;
    return WS_EXIT_OK;
  case JSON:
    o->json = optarg;
    return WS_EXIT_OK;
  case RESULTS:
    o->results = optarg;
    return WS_EXIT_OK;
  case PROCESSOR_TIME:
    s->by_processor_time = true;
    return WS_EXIT_OK;
  case PLOT:
    o->plot = optarg;
    return WS_EXIT_OK;
  case SEED:
    if (!ws_cli_int64(optarg, 0, INT64_MAX, &count))
      return ws_cli_usage("bench", "bench: --seed takes 0 to %lld", (long long)INT64_MAX);
    s->seed = (uint64_t)count;
    o->draws = true;
    return WS_EXIT_OK;
  case COUNT:
    if (!ws_cli_int64(optarg, 1, MAX_RANDOM, &count)) return ws_cli_usage("bench", "bench: --count takes 1 to %d", MAX_RANDOM);
    s->n_random = (int)count;
    o->draws = true;
    return WS_EXIT_OK;
  default:
    o->commit = optarg;
    return WS_EXIT_OK;
  }
}

/* ---- The run --------------------------------------------------------------------------------- */

static void print_head(bench_session *s, const char *removed) {
  double peak = 0;
  for (int i = 0; i < 9; i++) { /* the first ones wake the core */
    const double rate = ws_bench_peak_flops(false) * 1000 / ws_bench_peak_run(false, 1, 1000);
    if (rate > peak) peak = rate;
  }
  ws_bench_line(s, "wsgemm %s (%s) on %s; multiply-add peak of one core %.0f GF/s single (%s)", wsgemm_version_string(),
                s->commit, s->device.name, peak * 1e-9, ws_bench_peak_isa());
  for (int i = 0; i < s->n_peers; i++) ws_bench_line(s, "peer %d: %s, %s", i + 1, s->peers[i].name, s->peers[i].path);
  if (!s->n_peers) ws_bench_line(s, "no peer: wsgemm is timed alone");
  if (*removed) ws_bench_line(s, "removed from the environment: %s", removed);
  for (char **at = environ; *at; at++)
    if (!strncmp(*at, "WSGEMM_", 7) && strncmp(*at, "WSGEMM_COMMIT=", 14) && strncmp(*at, "WSGEMM_BENCH_PEERS=", 19) &&
        strncmp(*at, "WSGEMM_PYTHON=", 14))
      ws_bench_line(s, "in force: %s", *at);
  ws_bench_line(s, "%s", "");
}

static int run(bench_session *s, options *o) {
  const int bad_environment = ws_cli_check_environment();
  if (bad_environment != WS_EXIT_OK) return bad_environment;
  char removed[512];

  s->device = ws_bench_device_cpu();
  ws_bench_commit(o->commit, s->commit);
  ws_bench_date(s->date);
  ws_bench_clean_environment(removed, sizeof removed);
  if (!o->no_peers) s->n_peers = ws_bench_load_peers(o->peers, o->n_peers, o->allow_slow, s->peers, s->error, sizeof s->error);
  if (s->n_peers < 0) return ws_cli_fail("%s", s->error);
  s->progress_bar = isatty(STDERR_FILENO);
  if (o->json && !(s->json = fopen(o->json, "ae"))) return ws_cli_fail("cannot open %s: %s", o->json, strerror(errno));

  if (s->by_processor_time) ws_bench_use_processor_time();
  print_head(s, removed);
  if (s->by_processor_time) ws_bench_line(s, "times are the thread's processor time\n");
  for (int i = 0; i < o->n_suites; i++) {
    if (o->results && !ws_bench_begin_results(s, o->results)) return ws_cli_fail("%s", s->error);
    const bool good = ws_bench_run_suite(s, o->suites[i]);
    ws_bench_progress(s, 0, 0, NULL);
    if (!good) {
      ws_bench_drop_results(s);
      return ws_cli_fail("%s", s->error);
    }
    if (o->results && !ws_bench_keep_results(s, o->results, o->suites[i]->name)) return ws_cli_fail("%s", s->error);
  }
  if (!s->n_suites_run) return ws_cli_fail("bench: nothing was run; the lines above say why");
  if (s->json) {
    const bool written = !ferror(s->json);
    if (fclose(s->json) || !written) return ws_cli_fail("cannot write %s: %s", o->json, strerror(errno));
    s->json = NULL;
  }
  return WS_EXIT_OK;
}

/* ---- Pictures -------------------------------------------------------------------------------- */

/* `python3 -m wsgemm.plot`, but what cannot be imported is reported in one line. */
static char launcher[] = "import sys\n"
                         "try:\n"
                         "    from wsgemm.plot.__main__ import main\n"
                         "except Exception as error:\n"
                         "    why = ' '.join(f'{type(error).__name__}: {error}'.split())\n"
                         "    sys.exit(f'wsgemm: --plot: {sys.executable} cannot import wsgemm.plot ({why}); '\n"
                         "             f'in the sources of wsgemm: {sys.executable} -m pip install . matplotlib; '\n"
                         "             'or name another Python in WSGEMM_PYTHON')\n"
                         "sys.exit(main())\n";

static int draw(const char *results, const char *folder) {
  const char *named = getenv("WSGEMM_PYTHON"), *python = named && *named ? named : "python3";
  char name[512], from[4096], to[4096];
  char *words[] = {name, "-c", launcher, from, to, NULL};
  pid_t child;
  int status = 0;
  if (snprintf(name, sizeof name, "%s", python) >= (int)sizeof name ||
      snprintf(from, sizeof from, "--results=%s", results) >= (int)sizeof from ||
      snprintf(to, sizeof to, "--out=%s", folder) >= (int)sizeof to)
    return ws_cli_fail("--plot: a path is too long");
  fflush(NULL);
  const int error = posix_spawnp(&child, python, NULL, NULL, words, environ);
  if (error)
    return ws_cli_fail("--plot: cannot run %s: %s; pictures need Python with wsgemm and matplotlib, WSGEMM_PYTHON can name it",
                       python, strerror(error));
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return ws_cli_fail("--plot: cannot wait for %s: %s", python, strerror(errno));
  if (WIFSIGNALED(status)) return ws_cli_fail("--plot: %s was ended by signal %d", python, WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? WS_EXIT_OK : WS_EXIT_FAILED; /* it has said why */
}

int ws_cmd_bench(int argc, char **argv) {
  static bench_session session; /* large, and one run is all there is */
  options o = {0};
  session.seed = 1;
  opterr = 0;
  optind = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", long_options, NULL)) != -1;) {
    if (found == 'h') {
      print_help();
      return WS_EXIT_OK;
    }
    if (found == LIST) return print_list();
    if (found == '?' || found == ':') return ws_cli_bad_option("bench", argc, argv, found);
    const int code = take_option(&session, &o, found);
    if (code != WS_EXIT_OK) return code;
  }
  if (optind < argc) return ws_cli_usage("bench", "bench: '%.60s' is not an option", argv[optind]);
  if (o.no_peers && o.n_peers) return ws_cli_usage("bench", "bench: --peer and --no-peers exclude each other");
  if (o.results && (session.shapes.n || session.routines || session.n_threads))
    return ws_cli_usage("bench", "bench: --results keeps whole suites; it cannot go with --shapes, --routine or --threads");
  if (session.by_processor_time && session.n_threads != 1)
    return ws_cli_usage("bench", "bench: --processor-time needs --threads 1");
  bool has_random = false;
  for (int i = 0; i < o.n_suites; i++) has_random |= o.suites[i]->n_random > 0;
  if (o.draws && !has_random) return ws_cli_usage("bench", "bench: --seed and --count belong to suites random, wide, update");
  const bool only_draws = o.plot && !o.measures;
  if (!o.n_suites && !only_draws) o.suites[o.n_suites++] = ws_bench_find_suite("demo");
  const int code = only_draws ? WS_EXIT_OK : run(&session, &o);
  free(session.shapes.at);
  return code == WS_EXIT_OK && o.plot ? draw(o.results ? o.results : "bench/results", o.plot) : code;
}
