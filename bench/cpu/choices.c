/* choices.c - how good the choices of a call are: those of the model, and those of tuning at its
 * default budget, beside the best of all candidates, on shapes drawn at random.
 *
 *   bench_choices [--device N] [--routines spbd] [--count N] [--seed N] [--ops nn] [--multiple N]
 *   [--budget MS] [--threads N]
 *                 [--beta X] [--name TEXT] [--json FILE] [--commit ID] [--dump FILE]
 *
 * Routines: s, p (sgemm in PEDANTIC), t (in TF32), d, c, z, h, b, i and j (hgemm and bgemm in
 * PEDANTIC). m, n, k are log-uniform in 16 .. 8192, rounded up to multiples of N. name: that of
 * the GPU, for the file. dump: every candidate's time, for fitting models. Each shape's
 * candidates are all measured twice, with other operands and in another order: the first pass
 * names the best, the second one (several, of short products) times it, the model's choice and
 * the tuned one, so that the best is not just the luckiest. Where the mode also allows the other
 * arithmetic (slices, multiply-adds), or half precision other orders of summation, those candidates
 * count too. Only the public API is used; nothing is written to the user's tuning file. */
#define _GNU_SOURCE
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/clock.h"
#include "bench/harness/device.h"
#include "bench/harness/random.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "wsgemm.h"

enum {
  CPU_PASS_MS = 1500,
  TIMED_PASSES = 3,
  TIMED_MS = 500,
  MOST_CANDIDATES = 1024,
  MOST_SAMPLES = 16,
  TEXT = 192,
  MOST_WAYS = 24
};

typedef struct timed {
  char text[TEXT];
  double us[MOST_SAMPLES];
  int n;
} timed;

typedef struct pass {
  timed *of;
  int n, n_refused;
} pass;

static const struct routine {
  char letter;
  const char *name, *mode;
  wsgemm_type type;
  wsgemm_math math;
} routines[] = {
    {'s', "sgemm", "default", WSGEMM_F32, WSGEMM_MATH_DEFAULT},   {'p', "sgemm", "pedantic", WSGEMM_F32, WSGEMM_MATH_PEDANTIC},
    {'t', "sgemm", "tf32", WSGEMM_F32, WSGEMM_MATH_TF32},         {'d', "dgemm", "default", WSGEMM_F64, WSGEMM_MATH_DEFAULT},
    {'c', "cgemm", "default", WSGEMM_C32, WSGEMM_MATH_DEFAULT},   {'z', "zgemm", "default", WSGEMM_C64, WSGEMM_MATH_DEFAULT},
    {'h', "hgemm", "default", WSGEMM_F16, WSGEMM_MATH_DEFAULT},   {'b', "bgemm", "default", WSGEMM_BF16, WSGEMM_MATH_DEFAULT},
    {'i', "hgemm", "pedantic", WSGEMM_F16, WSGEMM_MATH_PEDANTIC}, {'j', "bgemm", "pedantic", WSGEMM_BF16, WSGEMM_MATH_PEDANTIC}};

static struct {
  int device, count, n_threads, multiple;
  uint64_t seed;
  double budget_ms, beta;
  const char *routines, *name, *ops;
  FILE *json, *dump;
} options = {.device = -1, .count = 60, .multiple = 1, .ops = "nn", .seed = 1, .budget_ms = -1, .routines = "s"};
static char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];

static void fail(const char *what) {
  fprintf(stderr, "bench_choices: %s: %s\n", what, wsgemm_last_error());
  exit(1);
}

static double now_ms(void) { return ws_bench_now() * 1e3; }

static int64_t size_drawn(uint64_t *state) {
  const int64_t size = ws_random_size(state, 16, 8192);
  return (size + options.multiple - 1) / options.multiple * options.multiple;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static double median(const timed *t) {
  double us[MOST_SAMPLES];
  if (t->n == 0) return HUGE_VAL;
  memcpy(us, t->us, (size_t)t->n * sizeof us[0]);
  return ws_bench_median(us, t->n);
}

static timed *find(pass *p, const char *text) {
  for (int i = 0; i < p->n; i++)
    if (strcmp(p->of[i].text, text) == 0) return &p->of[i];
  return NULL;
}

static int note(void *user, const wsgemm_autotune_step *step) {
  pass *p = user;
  timed *t = find(p, step->candidate);
  if (step->us < 0) {
    p->n_refused++;
    return 0;
  }
  if (!t && p->n < MOST_CANDIDATES) {
    t = &p->of[p->n++];
    *t = (timed){.n = 0};
    snprintf(t->text, sizeof t->text, "%s", step->candidate);
  }
  if (t && t->n < MOST_SAMPLES) t->us[t->n++] = step->us;
  return 0;
}

/* false: nothing to choose. */
static bool run_pass(wsgemm_handle *h, const wsgemm_gemm_desc *d, uint64_t seed, pass *p, wsgemm_autotune_result *result) {
  wsgemm_autotune_options o = WSGEMM_AUTOTUNE_OPTIONS_INIT;
  o.device = options.device, o.is_exhaustive = 1, o.seed = seed, o.file = "", o.progress = note, o.user = p, o.result = result;
  o.budget_ms = options.device < 0 ? CPU_PASS_MS : HUGE_VAL;
  const wsgemm_status status = wsgemm_autotune(h, d, &o);
  if (status == WSGEMM_NOT_SUPPORTED) return false;
  if (status) fail("exhaustive search");
  return true;
}

/* Passes in a row, for medians over more than the 5 runs of one: products of a few microseconds
 * differ by 10 % from run to run. */
static bool time_all(wsgemm_handle *h, const wsgemm_gemm_desc *d, uint64_t seed, pass *p) {
  enum { SEEDS = 16 }; /* that no other pass takes */
  wsgemm_autotune_result unused;
  const double begin = now_ms();
  for (int i = 0; i < TIMED_PASSES && (i == 0 || now_ms() - begin < TIMED_MS); i++)
    if (!run_pass(h, d, seed + SEEDS * (uint64_t)i, p, &unused)) return false;
  return true;
}

static const timed *best_of(const pass *p) {
  const timed *best = &p->of[0];
  for (int i = 1; i < p->n; i++)
    if (median(&p->of[i]) < median(best)) best = &p->of[i];
  return best;
}

/* ---- shapes ---------------------------------------------------------------------------------- */

typedef struct outcome {
  double model_us, tuned_us, best_us, same_us, cold_ms;
  int n_candidates, n_refused;
  char model[TEXT], tuned[TEXT], best[TEXT];
} outcome;

/* A handle of the mode that is made to use a row. */
static wsgemm_handle *forced(const struct routine *r, const char *row) {
  wsgemm_handle *h;
  if (wsgemm_create(&h) || wsgemm_set_math(h, r->math) || wsgemm_set_kernel(h, row)) fail("handle");
  return h;
}

/* What the mode also allows: for FP32 in DEFAULT the other arithmetic. Handles that are made to
 * use it; their number. */
static int other_arithmetic(const struct routine *r, int64_t k, const char *chosen, wsgemm_handle **h) {
  enum { LEAST_SLICED_K = 128, N_WAYS = 3 };
  static const struct {
    char letter;
    const char *rows[2];
  } sliced[N_WAYS] = {{'s', {"sgemm_f16x3_128x64x64_c2_x1", "sgemm_f16x3_64x64x64_c2_x1"}},
                      {'c', {"cgemm_f16x3_64x64x32_c2_x1", "cgemm_f16x3_32x64x32_c2_x1"}},
                      {'t', {"sgemm_f16x1_128x64x64_c1_x1", "sgemm_f16x1_64x64x64_c1_x1"}}};
  int way = 0;
  while (way < N_WAYS && sliced[way].letter != r->letter) way++;
  if (way == N_WAYS || options.device < 0 || k < LEAST_SLICED_K) return 0;
  if (strstr(chosen, "f16x")) {
    if (wsgemm_create(&h[0]) || wsgemm_set_math(h[0], WSGEMM_MATH_PEDANTIC)) fail("handle");
    return 1;
  }
  for (int n = 0; n < 2; n++) h[n] = forced(r, sliced[way].rows[n]);
  return 2;
}

/* The order in which a row of half precision sums, as far as rows differ in it: by the parts of k of
 * its name; none for rows that are not weighed against these. */
static void order_of(const wsgemm_kernel_info *row, char text[TEXT]) {
  const bool is_wgmma = strcmp(row->family, "wgmma") == 0;
  const char *parts = strcmp(row->family, "direct") == 0 ? strstr(row->name, "_g")
                      : strcmp(row->family, "flat") == 0 ? strstr(row->name, "_s")
                                                         : NULL;
  if (is_wgmma)
    snprintf(text, TEXT, "wgmma %d", row->cluster_splits);
  else
    snprintf(text, TEXT, "%s", parts ? parts : "");
}

/* Rows of half precision that sum in other orders than the chosen one, of which a search tries none:
 * a handle for one row of each order. */
static int other_orders(const struct routine *r, const char *chosen, wsgemm_handle **h) {
  static char seen[MOST_WAYS + 1][TEXT];
  int n_seen = 1;
  seen[0][0] = '\0';
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < wsgemm_kernel_count() && n_seen <= MOST_WAYS; i++) {
      wsgemm_kernel_info row = {.struct_bytes = sizeof row};
      char order[TEXT];
      if (wsgemm_get_kernel_info(i, &row) || strcmp(row.backend, "cuda") != 0 || row.type != r->type) continue;
      const bool is_chosen = strncmp(chosen, row.name, strlen(row.name)) == 0;
      order_of(&row, order);
      bool is_new = order[0] != '\0';
      for (int s = 0; s < n_seen; s++) is_new &= strcmp(seen[s], order) != 0;
      if (pass == 0 ? !is_chosen : !is_new) continue;
      if (pass == 0)
        snprintf(seen[0], TEXT, "%s", order);
      else
        snprintf(seen[n_seen], TEXT, "%s", order), h[n_seen++ - 1] = forced(r, row.name);
    }
  return n_seen - 1;
}

/* What the mode also allows, and no search from the chosen row on tries; handles, of which there are
 * so many. */
static int other_ways(const struct routine *r, int64_t k, const char *chosen, wsgemm_handle *h[MOST_WAYS]) {
  const bool is_half = r->type == WSGEMM_F16 || r->type == WSGEMM_BF16;
  if (!is_half) return other_arithmetic(r, k, chosen, h);
  return options.device < 0 || r->math == WSGEMM_MATH_PEDANTIC ? 0 : other_orders(r, chosen, h);
}

static wsgemm_handle *handle_of(const struct routine *r) {
  wsgemm_handle *h;
  if (wsgemm_create(&h) || wsgemm_set_math(h, r->math) || wsgemm_set_num_threads(h, options.n_threads)) fail("handle");
  return h;
}

static double us_of(pass *p, const char *text) {
  const timed *t = find(p, text);
  return t ? median(t) : NAN;
}

static void dump(const struct routine *r, const wsgemm_gemm_desc *d, const pass *p) {
  for (int i = 0; options.dump && i < p->n; i++)
    fprintf(options.dump, "%c%.2s %lld %lld %lld %.3f %s\n", r->letter, options.ops, (long long)d->m, (long long)d->n,
            (long long)d->k, median(&p->of[i]), p->of[i].text);
}

/* Candidates of other handles beside the best so far, which was named by a time of `named_us`; what
 * is dumped is timed in any case. */
static void weigh_others(const struct routine *r, const wsgemm_gemm_desc *d, double named_us, outcome *out) {
  static timed named[MOST_CANDIDATES], again[MOST_CANDIDATES];
  wsgemm_handle *others[MOST_WAYS];
  wsgemm_autotune_result unused;
  const int n_others = other_ways(r, d->k, out->model, others);
  for (int i = 0; i < n_others; i++) {
    pass a = {named, 0, 0}, b = {again, 0, 0};
    if (run_pass(others[i], d, 3, &a, &unused)) {
      const timed *best = best_of(&a);
      const bool is_better = median(best) < named_us;
      out->n_candidates += a.n;
      if ((is_better || options.dump) && time_all(others[i], d, 4, &b)) dump(r, d, &b);
      if (is_better && b.n > 0) {
        named_us = median(best), out->best_us = us_of(&b, best->text);
        snprintf(out->best, TEXT, "%s", best->text);
      }
    }
    wsgemm_destroy(others[i]);
  }
}

static bool run_shape(const struct routine *r, const wsgemm_gemm_desc *d, outcome *out) {
  static timed first[MOST_CANDIDATES], second[MOST_CANDIDATES];
  pass one = {first, 0, 0}, two = {second, 0, 0};
  wsgemm_autotune_result result;
  wsgemm_handle *h = handle_of(r);
  const bool is_choice = run_pass(h, d, 1, &one, &result) && time_all(h, d, 2, &two);
  if (is_choice) {
    *out = (outcome){.n_candidates = one.n, .n_refused = one.n_refused + two.n_refused};
    snprintf(out->model, TEXT, "%s", result.before), snprintf(out->best, TEXT, "%s", best_of(&one)->text);
    out->model_us = us_of(&two, out->model), out->best_us = out->same_us = us_of(&two, out->best);
    dump(r, d, &two);
    weigh_others(r, d, median(best_of(&one)), out);
    wsgemm_autotune_options o = WSGEMM_AUTOTUNE_OPTIONS_INIT;
    o.device = options.device, o.budget_ms = options.budget_ms, o.file = "", o.result = &result, o.seed = 5;
    const double begin = now_ms();
    if (wsgemm_autotune(h, d, &o)) fail("search");
    out->cold_ms = now_ms() - begin;
    snprintf(out->tuned, TEXT, "%s", result.after);
    out->tuned_us = us_of(&two, out->tuned);
  }
  wsgemm_destroy(h);
  return is_choice;
}

static void write_json(const struct routine *r, const char *shape, const char *policy, double us, const char *chosen,
                       const outcome *out) {
  if (!options.json) return;
  const ws_bench_result line = {.suite = "choices",
                                .routine = r->name,
                                .case_name = shape,
                                .policy = policy,
                                .device = options.name,
                                .peer = "best of all candidates",
                                .ours = us,
                                .theirs = out->best_us,
                                .unit = "us",
                                .ratio = out->best_us / us,
                                .commit = commit,
                                .date = date};
  ws_bench_result_begin(options.json, &line);
  ws_bench_result_text(options.json, "math", r->mode);
  ws_bench_result_number(options.json, "threads", options.n_threads);
  ws_bench_result_number(options.json, "candidates", out->n_candidates);
  ws_bench_result_number(options.json, "same_bits", out->same_us);
  ws_bench_result_number(options.json, "cold_ms", out->cold_ms);
  ws_bench_result_text(options.json, "chosen", chosen);
  ws_bench_result_text(options.json, "best", out->best);
  ws_bench_result_end(options.json);
}

static void run_routine(const struct routine *r) {
  uint64_t state = options.seed;
  ws_bench_mean model = {0}, tuned = {0}, same = {0}, tuned_same = {0};
  double ms = 0;
  for (int i = 0; i < options.count; i++) {
    const int64_t m = size_drawn(&state), n = size_drawn(&state), k = size_drawn(&state);
    wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
    d.type_a = d.type_b = d.type_c = d.type_scalar = r->type;
    if (r->type == WSGEMM_F16 || r->type == WSGEMM_BF16) d.type_scalar = WSGEMM_F32;
    if (options.ops[0] == 't') d.transa = WSGEMM_TRANS;
    if (options.ops[1] == 't') d.transb = WSGEMM_TRANS;
    d.m = m, d.n = n, d.k = k, d.lda = options.ops[0] == 't' ? k : m, d.ldb = options.ops[1] == 't' ? n : k, d.ldc = m;
    if (r->type == WSGEMM_F64 || r->type == WSGEMM_C64)
      d.alpha.d = 1, d.beta.d = options.beta;
    else
      d.alpha.s = 1, d.beta.s = (float)options.beta;
    outcome out;
    char shape[64];
    snprintf(shape, sizeof shape, "%.2s %lldx%lldx%lld", options.ops, (long long)m, (long long)n, (long long)k);
    if (!run_shape(r, &d, &out)) {
      printf("%-8s %-20s nothing to choose\n", r->name, shape);
      continue;
    }
    write_json(r, shape, "model", out.model_us, out.model, &out);
    write_json(r, shape, "tuned", out.tuned_us, out.tuned, &out);
    ws_bench_mean_add(&model, out.best_us / out.model_us), ws_bench_mean_add(&tuned, out.best_us / out.tuned_us);
    ws_bench_mean_add(&same, out.same_us / out.model_us), ws_bench_mean_add(&tuned_same, out.same_us / out.tuned_us);
    ms += out.cold_ms;
    printf("%s %-9s %-18s %4d %9.1f us  model %.3f tuned %.3f  (same bits %.3f %.3f) %6.1f ms refused %d | %s | %s\n", r->name,
           r->mode, shape + 3, out.n_candidates, out.best_us, out.best_us / out.model_us, out.best_us / out.tuned_us,
           out.same_us / out.model_us, out.same_us / out.tuned_us, out.cold_ms, out.n_refused, out.model + 4, out.best + 4);
    fflush(stdout);
  }
  if (model.n == 0) return;
  printf("= %s %s, %d shapes: model %.3f (worst %.3f), tuned %.3f (worst %.3f); of the same bits %.3f (%.3f), %.3f (%.3f); %.1f "
         "ms a shape\n",
         r->name, r->mode, model.n, ws_bench_mean_of(&model), model.least, ws_bench_mean_of(&tuned), tuned.least,
         ws_bench_mean_of(&same), same.least, ws_bench_mean_of(&tuned_same), tuned_same.least, ms / model.n);
}

int main(int argc, char **argv) {
  static const struct option longs[] = {
      {"device", 1, 0, 'd'},  {"routines", 1, 0, 'r'}, {"count", 1, 0, 'c'},  {"seed", 1, 0, 's'}, {"budget", 1, 0, 'b'},
      {"name", 1, 0, 'n'},    {"json", 1, 0, 'j'},     {"dump", 1, 0, 'u'},   {"ops", 1, 0, 'o'},  {"multiple", 1, 0, 'm'},
      {"threads", 1, 0, 't'}, {"beta", 1, 0, 'a'},     {"commit", 1, 0, 'k'}, {0, 0, 0, 0}};
  const char *given = NULL;
  for (int found; (found = getopt_long(argc, argv, "", longs, NULL)) != -1;) switch (found) {
    case 'd':
      options.device = atoi(optarg);
      break;
    case 'r':
      options.routines = optarg;
      break;
    case 'c':
      options.count = atoi(optarg);
      break;
    case 's':
      options.seed = strtoull(optarg, NULL, 10);
      break;
    case 'b':
      options.budget_ms = atof(optarg);
      break;
    case 'a':
      options.beta = atof(optarg);
      break;
    case 'k':
      given = optarg;
      break;
    case 'n':
      options.name = optarg;
      break;
    case 't':
      options.n_threads = atoi(optarg);
      break;
    case 'o':
      options.ops = optarg;
      break;
    case 'm':
      options.multiple = atoi(optarg);
      break;
    case 'u':
      if (!(options.dump = fopen(optarg, "w"))) fail(optarg);
      break;
    case 'j':
      if (!(options.json = fopen(optarg, "w"))) fail(optarg);
      break;
    default:
      return 2;
    }
  const ws_bench_device cpu = ws_bench_device_cpu();
  ws_bench_commit(given, commit);
  ws_bench_date(date);
  if (!options.name) options.name = options.device < 0 ? cpu.name : "?";
  setenv("WSGEMM_TUNE", "off", 1);
  for (const char *letter = options.routines; *letter; letter++)
    for (size_t i = 0; i < sizeof routines / sizeof routines[0]; i++)
      if (routines[i].letter == *letter) run_routine(&routines[i]);
  if (options.json && fclose(options.json) != 0) fail("json");
  return 0;
}
