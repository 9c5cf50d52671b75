/* `wsgemm verify`: multiplies with every kernel that this machine can run, calls Level 3 on it, and
 * checks the results against the reference.
 *
 * Shapes lie around the edges of each kernel's register tile and its k block; every shape meets all
 * pairs of ops in both layouts, with padded leading dimensions, scalars that vary from case to
 * case, and NaN wherever nothing may be read. */
#include "bench/harness/random.h"
#include "cli.h"
#include "level3_trial.h"
#include "trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* m = m_tiles * mr + m_more, and n likewise. */
static const struct shape {
  int m_tiles, m_more, n_tiles, n_more;
  int64_t k;
  bool is_quick;
} shapes[] = {
    {0, 1, 0, 1, 1, true},    {1, 0, 1, 0, 0, true},      {1, 0, 1, 0, 1, false},   {1, -1, 1, 1, 2, true},
    {1, 1, 1, -1, 3, true},   {2, 1, 0, 1, 17, true},     {0, 1, 2, 1, 64, true},   {2, -1, 2, -1, 33, false},
    {2, 0, 3, 2, 65, false},  {3, 3, 2, 1, 255, false},   {1, 2, 2, 0, 257, true},  {2, 1, 1, 1, 385, false},
    {1, 0, 2, 0, 513, false}, {0, 101, 0, 97, 80, false}, {0, 64, 0, 64, 64, true}, {0, 130, 0, 131, 300, false},
};

typedef struct {
  bool is_quick;
  const char *kernel; /* NULL: all */
  int64_t n_threads;
  uint64_t seed;
} request;

typedef struct {
  int64_t n_cases, n_checked, n_failed;
  double worst;
  char worst_case[64];
} tally;

static void print_help(void) {
  ws_cli_print_usage("verify");
  printf("Runs every kernel on shapes around its tile's edges, with all transpositions, both layouts and\n"
         "random scalars, and the routines of Level 3 (symm ... trsm), and compares each element with a\n"
         "reference in doubled precision. The bound is gamma_{k+2} (|alpha| |A| |B| + |beta| |C|), for\n"
         "trsm's residual 8 gamma_{k+2} |A| |X|: err/bound must stay below 1.\n\n"
         "  --quick         fewer shapes\n"
         "  --kernel NAME   this kernel only ('wsgemm info' lists them)\n"
         "  --threads N     use at most N threads\n"
         "  --seed N        other random numbers\n");
}

/* Scalars of a case: every pairing of the simple ones comes round, and general ones often. */
static void set_scalars(ws_trial *t, int64_t case_idx, uint64_t *random_state) {
  const double simple[] = {1, 0, -1};
  double *parts[4] = {&t->alpha.re, &t->alpha.im, &t->beta.re, &t->beta.im};
  for (int i = 0; i < 4; i++) *parts[i] = (double)(int64_t)ws_random(random_state) * 0x1p-62;
  const int64_t alpha_idx = case_idx % 5, beta_idx = case_idx / 5 % 4;
  if (alpha_idx < 3) t->alpha = (wsgemm_cdouble){simple[alpha_idx], 0};
  if (beta_idx < 3) t->beta = (wsgemm_cdouble){simple[beta_idx], 0};
}

/* A failure is printed at once, on stderr. */
static void add_case(const char *kernel, const char *description, bool ok, const ws_check *check, const char *why, tally *sum) {
  if (!ok && ++sum->n_failed <= 3) ws_cli_fail("%s: %s: %s", kernel, description, why);
  sum->n_cases++;
  sum->n_checked += check->n_checked;
  if (check->worst <= sum->worst && sum->n_cases > 1) return;
  sum->worst = check->worst;
  snprintf(sum->worst_case, sizeof sum->worst_case, "%s", description);
}

static void run_case(wsgemm_handle *h, const char *kernel, const ws_trial *t, uint64_t seed, tally *sum) {
  const int64_t max_terms = 20000000;
  char why[WS_TRIAL_WHY_BYTES], description[64];
  ws_check check;
  ws_trial_describe(t, description, sizeof description);
  const bool ok = ws_trial_run(h, t, max_terms, seed, &check, why);
  add_case(kernel, description, ok, &check, why, sum);
}

/* Every routine with all that it can be asked for, on sizes around the tile's edges and the k
 * block. */
static void run_level3(wsgemm_handle *h, const wsgemm_kernel_info *kernel, const request *r, tally *sum) {
  const int64_t sizes[][3] = {{kernel->bm + 1, kernel->bn - 1, 7}, {2 * kernel->bm - 1, 2 * kernel->bn + 1, 40}, {70, 300, 290}};
  uint64_t random_state = r->seed + 1;
  for (size_t s = 0; s < (r->is_quick ? 1 : sizeof sizes / sizeof *sizes); s++)
    for (int idx = 0; idx < 9 * 32; idx++) {
      const ws_level3_trial t = {.type = kernel->type,
                                 .routine = (wsgemm_routine)(WSGEMM_SYMM + idx / 32),
                                 .layout = (idx + idx / 2 + (int)s) % 2 ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR,
                                 .trans = (wsgemm_op)(WSGEMM_NO_TRANS + idx % 4),
                                 .side = idx / 4 % 2 ? WSGEMM_RIGHT : WSGEMM_LEFT,
                                 .uplo = idx / 8 % 2 ? WSGEMM_LOWER : WSGEMM_UPPER,
                                 .diag = idx / 16 % 2 ? WSGEMM_UNIT : WSGEMM_NON_UNIT,
                                 .m = sizes[s][0],
                                 .n = sizes[s][1],
                                 .k = sizes[s][2]};
      char why[WS_TRIAL_WHY_BYTES], description[64];
      ws_check check;
      if (!ws_level3_trial_is_legal(&t)) continue;
      ws_level3_trial_describe(&t, description, sizeof description);
      const bool ok = ws_level3_trial_run(h, &t, 2000000, ws_random(&random_state), &check, why);
      add_case(kernel->name, description, ok, &check, why, sum);
    }
}

static tally run_shapes(wsgemm_handle *h, const wsgemm_kernel_info *kernel, const request *r) {
  tally sum = {0};
  uint64_t random_state = r->seed;
  int mr, nr;
  ws_trial_tile(kernel, &mr, &nr);
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    if (r->is_quick && !shapes[s].is_quick) continue;
    for (int pair = 0; pair < 32; pair++) {
      ws_trial t = {.type = kernel->type,
                    .layout = pair & 16 ? WSGEMM_ROW_MAJOR : WSGEMM_COL_MAJOR,
                    .transa = (wsgemm_op)(WSGEMM_NO_TRANS + pair % 4),
                    .transb = (wsgemm_op)(WSGEMM_NO_TRANS + pair / 4 % 4),
                    .m = shapes[s].m_tiles * mr + shapes[s].m_more,
                    .n = shapes[s].n_tiles * nr + shapes[s].n_more,
                    .k = shapes[s].k,
                    .padding = sum.n_cases % 3};
      set_scalars(&t, sum.n_cases, &random_state);
      run_case(h, kernel->name, &t, ws_random(&random_state), &sum);
    }
  }
  return sum;
}

/* True: all its cases are right. */
static bool verify_kernel(wsgemm_handle *h, const char *kernel, const request *r) {
  wsgemm_kernel_info info;
  const wsgemm_status status = wsgemm_set_kernel(h, kernel);
  if (status != WSGEMM_SUCCESS || !ws_cli_kernel(kernel, &info)) {
    ws_cli_fail("%s: %s", kernel, ws_cli_why(status));
    return false;
  }
  tally sum = run_shapes(h, &info, r);
  if (ws_cli_types[info.type].part_bytes > 2) run_level3(h, &info, r, &sum);
  printf("%-24s %6" PRId64 " %10" PRId64 "  %9.3g  %-32s %s\n", kernel, sum.n_cases, sum.n_checked, sum.worst, sum.worst_case,
         sum.n_failed ? "WRONG" : "ok");
  fflush(stdout);
  return sum.n_failed == 0;
}

static int verify_all(wsgemm_handle *h, const request *r) {
  int n_run = 0, n_wrong = 0, n_skipped = 0;
  printf("%-24s %6s %10s  %9s  %-32s %s\n", "kernel", "cases", "elements", "err/bound", "worst at (m x n x k)", "result");
  for (int row = 0; row < wsgemm_kernel_count(); row++) {
    const char *kernel = wsgemm_kernel_name(row);
    if (r->kernel && strcmp(r->kernel, kernel) != 0) continue;
    if (!ws_cli_row_takes_host_memory(row)) {
      n_skipped++;
      printf("%-24s %s\n", kernel,
             wsgemm_kernel_usable(row) ? "for GPU memory: ctest -L gpu verifies it" : "not on this machine");
      continue;
    }
    n_run++;
    n_wrong += !verify_kernel(h, kernel, r);
  }
  if (n_wrong) return ws_cli_fail("%d of %d kernels give wrong results", n_wrong, n_run);
  if (n_run == 0) return ws_cli_fail("no kernel was verified");
  printf("\n%d kernel%s verified", n_run, n_run == 1 ? "" : "s");
  if (n_skipped) printf(", %d not verified", n_skipped);
  printf("\n");
  return WS_EXIT_OK;
}

static int take_options(int argc, char **argv, request *r, bool *is_help) {
  enum { QUICK = 256, KERNEL, THREADS, SEED };
  static const struct option options[] = {
      {"quick", no_argument, NULL, QUICK},
      {"kernel", required_argument, NULL, KERNEL},
      {"threads", required_argument, NULL, THREADS},
      {"seed", required_argument, NULL, SEED},
      {"help", no_argument, NULL, 'h'},
      {0},
  };
  int64_t seed;
  wsgemm_kernel_info unused;
  optind = 0;
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
    switch (found) {
    case QUICK:
      r->is_quick = true;
      break;
    case KERNEL:
      r->kernel = optarg;
      if (!ws_cli_kernel(optarg, &unused)) return ws_cli_usage("verify", "verify: no kernel is called '%s'", optarg);
      break;
    case THREADS:
      if (!ws_cli_int64(optarg, 1, 256, &r->n_threads))
        return ws_cli_usage("verify", "verify: --threads '%s' is no number from 1 to 256", optarg);
      break;
    case SEED:
      if (!ws_cli_int64(optarg, 0, INT64_MAX, &seed)) return ws_cli_usage("verify", "verify: --seed '%s' is no number", optarg);
      r->seed = (uint64_t)seed;
      break;
    case 'h':
      *is_help = true;
      return WS_EXIT_OK;
    default:
      return ws_cli_bad_option("verify", argc, argv, found);
    }
  }
  if (optind < argc) return ws_cli_usage("verify", "verify: unexpected argument '%s'", argv[optind]);
  return WS_EXIT_OK;
}

int ws_cmd_verify(int argc, char **argv) {
  request r = {.seed = 1};
  bool is_help = false;
  int code = take_options(argc, argv, &r, &is_help);
  if (is_help) print_help();
  if (code == WS_EXIT_OK && !is_help) code = ws_cli_check_environment();
  if (code != WS_EXIT_OK || is_help) return code;

  wsgemm_handle *h;
  wsgemm_status status = wsgemm_create(&h);
  if (status != WSGEMM_SUCCESS) return ws_cli_fail("%s", ws_cli_why(status));
  status = wsgemm_set_num_threads(h, (int)r.n_threads);
  code = status == WSGEMM_SUCCESS ? verify_all(h, &r) : ws_cli_fail("%s", ws_cli_why(status));
  wsgemm_destroy(h);
  return code;
}
