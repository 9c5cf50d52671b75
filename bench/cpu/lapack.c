/* lapack.c - how fast LAPACK's dgetrf and dpotrf are on libwsgemm_blas: Netlib's LAPACK, which calls
 * the BLAS that it finds, beside those of another BLAS library's own making (OpenBLAS), in turn in
 * one process.
 *
 *   bench_lapack [--blas FILE] [--lapack FILE] [--peer FILE] [--routines lu,u,l] [--n N,N,...]
 *                [--threads N] [--samples N] [--json FILE] [--commit ID]
 *
 * Routines: dgetrf, dpotrf of the upper, and of the lower triangle. One thread is timed by the time
 * that it has a processor, several by the clock. Every result is tried: A x against the product of
 * its factors with x. Rates are those of the lower quartile of times. The peer is loaded before
 * libwsgemm_blas, whose names are global, and so keeps to itself. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/clock.h"
#include "bench/harness/device.h"
#include "bench/harness/peers_cpu.h"
#include "bench/harness/random.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"

enum { MOST_SAMPLES = 64 };

typedef void getrf_fn(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
typedef void potrf_fn(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t uplo_length);

typedef struct lapack {
  getrf_fn *getrf;
  potrf_fn *potrf;
} lapack;

typedef enum factoring { LU, CHOLESKY_UPPER, CHOLESKY_LOWER, N_FACTORINGS } factoring;
static const char *const names[N_FACTORINGS] = {"dgetrf", "dpotrf, upper", "dpotrf, lower"};
static const char *const letters[N_FACTORINGS] = {"lu", "u", "l"};

typedef struct matrices {
  int n;
  double *a, *factored, *x, *y, *z;
  int *pivots;
} matrices;

static struct {
  const char *blas, *lapack, *peer, *routines, *sizes;
  int n_threads, n_samples;
  FILE *json;
} options = {"build/release/libwsgemm_blas.so",
             "/usr/lib/x86_64-linux-gnu/lapack/liblapack.so.3",
             NULL,
             "lu,u,l",
             "1024,2050,4096,4100",
             1,
             9,
             NULL};
static bench_peer peer;
static ws_bench_device device;
static char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];

static void fail(const char *what, const char *why) {
  fprintf(stderr, "bench_lapack: %s: %s\n", what, why);
  exit(1);
}

static void *function_of(void *library, const char *name) {
  void *const address = dlsym(library, name);
  if (!address) fail(name, dlerror());
  return address;
}

/* ---- matrices -------------------------------------------------------------------------------- */

static double *vector_of(size_t n) {
  double *x = aligned_alloc(4096, (n * sizeof *x + 4095) / 4096 * 4096);
  if (!x) fail("memory", "none left");
  memset(x, 0, n * sizeof *x);
  return x;
}

/* The diagonal is as large as Cholesky's needs it. */
static matrices make(int n) {
  uint64_t state = 2026;
  const size_t size = (size_t)n;
  matrices m = {n,
                vector_of(size * size),
                vector_of(size * size),
                vector_of(size),
                vector_of(size),
                vector_of(size),
                calloc(size, sizeof(int))};
  if (!m.pivots) fail("memory", "none left");
  for (size_t i = 0; i < size * size; i++) m.a[i] = ws_random_unit(&state) - 0.5;
  for (size_t i = 0; i < size; i++) m.x[i] = ws_random_unit(&state) - 0.5;
  return m;
}

static void make_definite(matrices *m) {
  const size_t n = (size_t)m->n;
  for (size_t j = 0; j < n; j++) {
    m->a[j + j * n] = (double)n;
    for (size_t i = 0; i < j; i++) m->a[i + j * n] = m->a[j + i * n];
  }
}

static void release(const matrices *m) { free(m->a), free(m->factored), free(m->x), free(m->y), free(m->z), free(m->pivots); }

/* y = T x for a triangle of the factors, or its transpose. */
static void times_triangle(const matrices *m, bool upper, bool transposed, bool unit, const double *x, double *y) {
  const size_t n = (size_t)m->n;
  memset(y, 0, n * sizeof *y);
  for (size_t j = 0; j < n; j++) {
    const double *column = m->factored + j * n;
    for (size_t i = upper ? 0 : j + unit; i < (upper ? j + 1 : n); i++)
      y[transposed ? j : i] += column[i] * x[transposed ? i : j];
    if (unit) y[j] += x[j];
  }
}

/* |A x - factors x|, in units of |A| |x| n eps. */
static double residual(const matrices *m, factoring f) {
  const size_t n = (size_t)m->n;
  if (f == LU) {
    times_triangle(m, true, false, false, m->x, m->z);
    times_triangle(m, false, false, true, m->z, m->y);
    for (size_t i = n; i-- > 0;) {
      const size_t other = (size_t)m->pivots[i] - 1;
      const double y = m->y[i];
      m->y[i] = m->y[other], m->y[other] = y;
    }
  } else {
    times_triangle(m, f == CHOLESKY_UPPER, f == CHOLESKY_LOWER, false, m->x, m->z);
    times_triangle(m, f == CHOLESKY_UPPER, f == CHOLESKY_UPPER, false, m->z, m->y);
  }
  double worst = 0, norm = 0;
  memset(m->z, 0, n * sizeof *m->z);
  for (size_t j = 0; j < n; j++)
    for (size_t i = 0; i < n; i++) {
      m->z[i] += m->a[i + j * n] * m->x[j];
      norm = fmax(norm, fabs(m->a[i + j * n]));
    }
  for (size_t i = 0; i < n; i++) worst = fmax(worst, fabs(m->z[i] - m->y[i]));
  return worst / (norm * (double)n * (double)n * 0x1p-53);
}

/* ---- timing ---------------------------------------------------------------------------------- */

static double seconds_of(const lapack *of, const matrices *m, factoring f) {
  int info = 0;
  memcpy(m->factored, m->a, (size_t)m->n * (size_t)m->n * sizeof *m->a);
  const double begin = ws_bench_now();
  if (f == LU)
    of->getrf(&m->n, &m->n, m->factored, &m->n, m->pivots, &info);
  else
    of->potrf(f == CHOLESKY_UPPER ? "U" : "L", &m->n, m->factored, &m->n, &info, 1);
  const double seconds = ws_bench_now() - begin;
  if (info != 0) fail(names[f], "info is not 0");
  return seconds;
}

static void report(factoring f, int n, double ours, double theirs) {
  const double operations = (f == LU ? 2.0 : 1.0) / 3 * n * n * (double)n * 1e-9;
  char case_name[32];
  snprintf(case_name, sizeof case_name, "n=%d", n);
  printf("%-14s %6d %8.4f s %6.1f GF/s   peer %8.4f s %6.1f   speedup %.3f\n", names[f], n, ours, operations / ours, theirs,
         operations / theirs, theirs / ours);
  fflush(stdout);
  if (!options.json) return;
  const ws_bench_result r = {.suite = "lapack",
                             .routine = names[f],
                             .case_name = case_name,
                             .policy = "auto",
                             .device = device.name,
                             .peer = peer.name,
                             .ours = operations / ours,
                             .theirs = operations / theirs,
                             .unit = "GF/s",
                             .ratio = theirs / ours,
                             .commit = commit,
                             .date = date};
  ws_bench_result_begin(options.json, &r);
  ws_bench_result_number(options.json, "threads", options.n_threads);
  ws_bench_result_text(options.json, "clock", options.n_threads == 1 ? "processor time" : "wall");
  ws_bench_result_number(options.json, "samples", options.n_samples);
  ws_bench_result_end(options.json);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void compare(const lapack of[2], factoring f, int n) {
  enum { MOST_RESIDUAL = 1 };
  double seconds[2][MOST_SAMPLES];
  matrices m = make(n);
  if (f != LU) make_definite(&m);
  for (int sample = -1; sample < options.n_samples; sample++)
    for (int arm = 0; arm < 2; arm++) {
      const double s = seconds_of(&of[arm], &m, f);
      if (sample >= 0) seconds[arm][sample] = s;
      if (sample < 0 && !(residual(&m, f) < MOST_RESIDUAL))
        fail(names[f], arm ? "the peer's result is wrong" : "the result is wrong");
    }
  for (int arm = 0; arm < 2; arm++) qsort(seconds[arm], (size_t)options.n_samples, sizeof seconds[arm][0], by_size);
  report(f, n, ws_bench_quantile(seconds[0], options.n_samples, 0.25), ws_bench_quantile(seconds[1], options.n_samples, 0.25));
  release(&m);
}

/* ---- libraries ------------------------------------------------------------------------------- */

static void load(lapack of[2]) {
  char text[512], error[512];
  ws_bench_clean_environment(text, sizeof text);
  snprintf(text, sizeof text, "%d", options.n_threads);
  setenv("OPENBLAS_NUM_THREADS", text, 1); /* of whichever BLAS does Level 1 and 2 */
  bench_peer peers[BENCH_MAX_PEERS];
  const int n_peers = ws_bench_load_peers(&options.peer, options.peer ? 1 : 0, false, peers, error, sizeof error);
  if (n_peers < 1) fail("peer", n_peers < 0 ? error : "none found");
  peer = peers[0];
  if (!ws_bench_peer_find(&peer, "dgetrf_", &of[1].getrf) || !ws_bench_peer_find(&peer, "dpotrf_", &of[1].potrf))
    fail(peer.name, "has no dgetrf_ and dpotrf_");
  if (!ws_bench_peer_threads(&peer, options.n_threads)) fail(peer.name, "does not take this number of threads");
  void *const blas = dlopen(options.blas, RTLD_NOW | RTLD_GLOBAL);
  if (!blas) fail("libwsgemm_blas", dlerror());
  void *const netlib = dlopen(options.lapack, RTLD_NOW | RTLD_LOCAL);
  if (!netlib) fail("LAPACK", dlerror());
  void *getrf = function_of(netlib, "dgetrf_"), *potrf = function_of(netlib, "dpotrf_");
  void *set_threads = function_of(blas, "openblas_set_num_threads");
  void (*limit)(int);
  memcpy(&of[0].getrf, &getrf, sizeof getrf), memcpy(&of[0].potrf, &potrf, sizeof potrf);
  memcpy(&limit, &set_threads, sizeof limit);
  limit(options.n_threads);
}

static void take_options(int argc, char **argv) {
  static const struct option longs[] = {
      {"blas", 1, 0, 'b'},    {"lapack", 1, 0, 'l'},  {"peer", 1, 0, 'p'}, {"routines", 1, 0, 'r'}, {"n", 1, 0, 'n'},
      {"threads", 1, 0, 't'}, {"samples", 1, 0, 's'}, {"json", 1, 0, 'j'}, {"commit", 1, 0, 'c'},   {0, 0, 0, 0}};
  const char *given = NULL;
  for (int found; (found = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
    if (found == 'b') options.blas = optarg;
    if (found == 'l') options.lapack = optarg;
    if (found == 'p') options.peer = optarg;
    if (found == 'r') options.routines = optarg;
    if (found == 'n') options.sizes = optarg;
    if (found == 't') options.n_threads = atoi(optarg);
    if (found == 's') options.n_samples = atoi(optarg);
    if (found == 'c') given = optarg;
    if (found == 'j' && !(options.json = fopen(optarg, "a"))) fail(optarg, "cannot be written");
    if (found == '?') exit(2);
  }
  if (options.n_threads < 1 || options.n_samples < 1 || options.n_samples > MOST_SAMPLES)
    fail("--threads, --samples", "out of range");
  ws_bench_commit(given, commit);
  ws_bench_date(date);
}

static bool is_wanted(factoring f) {
  char *copy = strdup(options.routines), *rest = copy;
  bool found = false;
  for (char *word; copy && (word = strsep(&rest, ","));) found |= strcmp(word, letters[f]) == 0;
  free(copy);
  return found;
}

int main(int argc, char **argv) {
  lapack of[2];
  take_options(argc, argv);
  device = ws_bench_device_cpu();
  load(of);
  if (options.n_threads == 1) ws_bench_use_processor_time();
  printf("LAPACK %s on %s; peer %s; threads: %d, by %s\n", options.lapack, options.blas, peer.name, options.n_threads,
         options.n_threads == 1 ? "processor time" : "the clock");
  for (factoring f = LU; f < N_FACTORINGS; f++)
    for (const char *at = options.sizes; is_wanted(f) && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
      const int n = atoi(at);
      if (n < 1 || n > 32768) fail("--n", "a size is out of range");
      compare(of, f, n);
    }
  if (options.json && fclose(options.json) != 0) fail("json", "cannot be written");
  return 0;
}
