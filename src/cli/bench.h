/* bench.h - what the files of `wsgemm bench` share.
 *
 * bench.c reads the options; bench_suites.c holds the one table of suites and cuts a suite into
 * cases; bench_run.c, bench_steal.c and bench_busy.c turn a case into candidates; bench_candidates.c owns the
 * matrices and the calling loops; bench_measure.c times candidates in turn; bench_peak.c measures
 * the FMA peak; bench_load.c watches other processes; bench_report.c writes tables and JSON lines.
 * Clock, medians, random shapes, peers and the form of a JSON line are those of all benches:
 * bench/harness.
 *
 * A candidate is one contestant on one problem. All candidates of a measurement run in one process,
 * in turn, on the same memory. */
#ifndef WSGEMM_CLI_BENCH_H
#define WSGEMM_CLI_BENCH_H

#include "bench/harness/clock.h"
#include "bench/harness/device.h"
#include "bench/harness/peers_cpu.h"
#include "bench/harness/random_shapes.h"
#include "bench/harness/result.h"
#include "bench/harness/stats.h"
#include "cli.h"
#include "shapes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ---- Problems and candidates ----------------------------------------------------------------- */

typedef struct bench_shape {
  wsgemm_type type;
  wsgemm_routine routine; /* 0: gemm; else a square of the size m = n = k */
  wsgemm_layout layout;
  wsgemm_op transa, transb;
  int64_t m, n, k;
  /* elements by which lda, ldb and ldc are longer than they must be */
  int64_t more_a, more_b, more_c;
  bool batched; /* a batch of such products, as many as there are sets of matrices, is one call; of a peer a loop */
  bool adds;    /* beta is 1, else 0; of gemm alone, not batched */
} bench_shape;

/* Matrices of one shape: n_sets triples A, B, C, one after the other in one block. */
typedef struct bench_problem {
  bench_shape shape;
  int64_t lda, ldb, ldc;
  int n_sets; /* a power of two */
  char *block;
  size_t block_bytes, set_bytes, b_offset, c_offset;
  size_t c_bytes, c_more_bytes; /* of C; of what is behind each of its columns or rows */
  char *c_before;               /* trmm, trsm, adds: what C held before the first call; else NULL */
} bench_problem;

/* Fills A and B with uniform(-1, 1), and C where it is read: for trmm and trsm, whose B it is, with an A by which any
 * number of calls leaves C as large as it is. False: out of memory. */
bool ws_bench_problem_make(bench_problem *p, const bench_shape *shape);
void ws_bench_problem_free(bench_problem *p);
/* Makes set 0's C what it was, or else NaN (of which a triangle is written: 0) before the results of
 * two candidates are compared. */
void ws_bench_problem_reset(const bench_problem *p);
double ws_bench_flops(const bench_shape *shape);
/* "sgemm", "zherk" */
enum { BENCH_ROUTINE_BYTES = 12 };
void ws_bench_routine(const bench_shape *shape, char name[BENCH_ROUTINE_BYTES]);
char ws_bench_type_letter(wsgemm_type type);
bool ws_bench_is_double(wsgemm_type type); /* or of pairs of doubles */
bool ws_bench_is_half(wsgemm_type type);

typedef struct bench_candidate bench_candidate;
struct bench_candidate {
  const char *label;
  /* Seconds that n_calls calls took; below 0: a call failed. */
  double (*run)(const bench_candidate *candidate, int64_t n_calls);
  const bench_problem *problem; /* NULL for the FMA peak */
  wsgemm_handle *handle;        /* wsgemm candidates */
  bench_peer *peer;             /* candidates of another library */
  void (*peer_level3)(void);    /* its routine, of the type that this has in CBLAS; gemm: NULL */
  int n_threads;
  bool double_precision; /* FMA peak */
  double flops;          /* of one call */
  /* Filled in by ws_bench_measure. */
  int64_t n_calls;  /* of one sample */
  double call_s;    /* seconds of one call, median over the samples */
  double spread;    /* (upper quartile - lower quartile) / median */
  double *sample_s; /* seconds of one call in each sample */
  int n_samples;
};

/* bench_level3.c: the calling loops of Level 3 routines, and A for those that are triangular. */
double ws_bench_level3_own(const bench_candidate *candidate, int64_t n_calls);
double ws_bench_level3_peer(const bench_candidate *candidate, int64_t n_calls);
int ws_bench_level3_coarse_factor(const bench_candidate *candidate); /* -1: not known */
/* The peer's routine, under one of its names, into *routine; false: it has none. */
bool ws_bench_level3_find(const bench_peer *peer, const bench_shape *shape, void (**routine)(void));
bool ws_bench_is_triangular(wsgemm_routine routine);
void ws_bench_level3_triangle(const bench_problem *p, char *a);

/* A candidate of wsgemm with a handle of its own; coarse_factor 0: automatic. False: the library
 * refused a setting. */
bool ws_bench_own_candidate(bench_candidate *candidate, const char *label, const bench_problem *p, int n_threads,
                            wsgemm_policy policy, int coarse_factor);
bool ws_bench_peer_has(const bench_peer *peer, const bench_shape *shape);
/* Of a peer that has the routine. */
void ws_bench_peer_candidate(bench_candidate *candidate, bench_peer *peer, const bench_problem *p, int n_threads);
void ws_bench_peak_candidate(bench_candidate *candidate, bool double_precision, int n_threads);
void ws_bench_candidate_free(bench_candidate *candidate);

/* ---- Measuring ------------------------------------------------------------------------------- */

typedef struct bench_timing {
  int n_samples;     /* of each candidate, if the budget allows */
  double min_time_s; /* one sample lasts at least this long */
  double budget_s;   /* for one measurement; but at least BENCH_MIN_ROUNDS turns are taken */
} bench_timing;

enum { BENCH_MIN_ROUNDS = 5 };

/* Checks that candidates on one problem agree, then times all candidates in turn. False with one
 * line in error. */
bool ws_bench_measure(bench_candidate *candidates, int n_candidates, const bench_timing *timing, char *error, size_t bytes);

/* The first half of it: checks, and leaves in each candidate n_calls (that fill min_time_s) and a
 * first call_s. */
bool ws_bench_prepare(bench_candidate *candidates, int n_candidates, double min_time_s, bool threaded, char *error, size_t bytes);

/* Makes a candidate ready for its turn: its thread count set, and the threads of the candidate
 * before asleep. False: not possible. */
bool ws_bench_enter(const bench_candidate *candidate, bool threaded);
/* seconds; the longest wait for threads to fall asleep since this was last asked */
double ws_bench_take_longest_park(void);

/* ---- FMA peak -------------------------------------------------------------------------------- */

double ws_bench_peak_flops(bool double_precision); /* of one call of the peak loop, one thread */
double ws_bench_peak_run(bool double_precision, int n_threads, int64_t n_calls);
const char *ws_bench_peak_isa(void);

/* ---- The rest of the machine ----------------------------------------------------------------- */

void ws_bench_load_begin(void);
/* share of all cores that others used since then; below 0: not known */
double ws_bench_load_others(void);

/* ---- Session, cases, reports ----------------------------------------------------------------- */

typedef struct bench_case {
  bench_shape shape;
  int n_threads;
  char name[WS_RANDOM_CASE_BYTES];    /* "n=1024", "m=1 n=4096 k=4096", "NT row n=1024", that of a random shape */
  int shape_class;                    /* of a random shape; -1: none */
  bench_peer *peers[BENCH_MAX_PEERS]; /* those that have the routine, in the session's order */
  int n_peers;
} bench_case;

typedef struct bench_session {
  bench_peer peers[BENCH_MAX_PEERS];
  int n_peers;
  ws_bench_device device;
  char commit[WS_BENCH_COMMIT_BYTES], date[WS_BENCH_DATE_BYTES];
  bench_timing timing;  /* 0 in a field: the suite's own choice */
  const char *routines; /* NULL: the suite's own */
  ws_shapes shapes;     /* none: the suite's own */
  int n_threads;        /* 0: the suite's own */
  uint64_t seed;        /* of suite random */
  int n_random;         /* its shapes; 0: the suite's own number */
  int n_suites_run;
  FILE *json, *results;
  char *results_text; /* what was written to results so far */
  size_t results_bytes;
  bool progress_bar;
  bool by_processor_time;
  char error[512];
} bench_session;

typedef struct bench_suite bench_suite;
struct bench_suite {
  const char *name, *what, *routines;
  bool (*run)(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);
  const wsgemm_routine *level3; /* closed with 0; NULL: gemm */
  const int64_t *sizes;         /* squares, closed with 0; or NULL */
  const bench_shape *shapes;
  int n_shapes;
  int64_t first, last, step; /* squares by range, if step > 0 */
  int64_t complex_limit;     /* complex squares beyond this are left out; 0: none */
  bool one_thread, all_threads, all_ops;
  int n_random; /* shapes drawn at random, in place of sizes and shapes; 0: none */
  bool batched; /* products of a batch */
  bool is_wide; /* these are of the class `wide`: else of four classes by turns */
  bool adds;    /* they add to C, and are padded */
  bench_timing timing;
};

extern const bench_suite ws_bench_suites[];
extern const int ws_bench_n_suites;
const bench_suite *ws_bench_find_suite(const char *name);

/* Runs a whole suite: its cases, table and JSON lines; what it leaves out is reported. Counts it in
 * n_suites_run if it had a case. False with one line in s->error, as for every runner. */
bool ws_bench_run_suite(bench_session *s, const bench_suite *suite);

/* The runners that the table of suites names. */
bool ws_bench_run_peers(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);
bool ws_bench_run_scan(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);
bool ws_bench_run_dips(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);
bool ws_bench_run_policies(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);
bool ws_bench_run_coarse(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);
bool ws_bench_run_half(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);
bool ws_bench_run_steal(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);
bool ws_bench_run_busy(bench_session *s, const bench_suite *suite, const bench_case *cases, int n_cases);

bench_timing ws_bench_suite_timing(const bench_session *s, const bench_suite *suite);

/* One JSON line: one case against one other candidate. Fields below 0 are left out. */
typedef struct bench_record {
  const char *suite, *case_name, *policy, *peer, *unit;
  const char *shape_class; /* of a random shape, or NULL */
  char routine[BENCH_ROUTINE_BYTES];
  int n_threads, n_samples;
  int coarse_factor;       /* asked for; 0: automatic */
  int coarse_factor_taken; /* by the library */
  double ours, theirs;     /* in unit */
  double ratio;            /* above 1: ours is better */
  double peak_fraction, spread;
  double idle_s, busy_s, busy_share, over_ideal; /* suites steal, busy */
} bench_record;

bench_record ws_bench_record(const bench_suite *suite, const bench_case *c);
void ws_bench_emit(bench_session *s, const bench_record *r);
void ws_bench_line(bench_session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void ws_bench_progress(bench_session *s, int done, int total, const char *label);
/* Collect a suite's records from here on; then either put them in folder/<device>/<suite>.jsonl, or
 * forget them. */
bool ws_bench_begin_results(bench_session *s, const char *folder);
bool ws_bench_keep_results(bench_session *s, const char *folder, const char *suite);
void ws_bench_drop_results(bench_session *s);

#endif
