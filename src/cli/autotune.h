/* autotune.h - what the files of `wsgemm autotune` share.
 *
 * autotune.c reads the options and runs the searches; autotune_cases.c knows what is searched for,
 * and whether a file has it; autotune_report.c shows the searches: the progress on stderr, the log
 * of every candidate, the candidates of a dry run, the table at the end. */
#ifndef WSGEMM_CLI_AUTOTUNE_H
#define WSGEMM_CLI_AUTOTUNE_H

#include "cli.h"
#include "gpu.h"
#include "shapes.h"

#include <stdio.h>

enum { AUTOTUNE_TEXT_BYTES = sizeof((wsgemm_autotune_result *)0)->before };

/* gemm (routine 0), or a wsgemm_routine, of a type. */
typedef struct autotune_routine {
  wsgemm_type type;
  int routine;
} autotune_routine;

enum { AUTOTUNE_MOST_OPS = 9, AUTOTUNE_MOST_ROUTINES = WS_N_TYPES + WSGEMM_TRSM * WS_N_TYPES };

typedef struct autotune_request {
  autotune_routine routines[AUTOTUNE_MOST_ROUTINES];
  char ops[AUTOTUNE_MOST_OPS][2];
  int n_routines, n_ops, device; /* device -1: the CPU */
  bool is_right, is_upper;       /* Level 3: the structured matrix; the triangle */
  ws_shapes shapes;
  wsgemm_math math;
  const char *math_name, *out, *log;
  double budget_ms, beta; /* budget below 0: the library's */
  int64_t n_threads, seed;
  bool is_resumed, is_dry, is_exhaustive;
} autotune_request;

typedef enum autotune_state {
  AUTOTUNE_WAITING,
  AUTOTUNE_DONE,
  AUTOTUNE_SKIPPED, /* the file has it */
  AUTOTUNE_WITHOUT_CHOICE,
  AUTOTUNE_FAILED
} autotune_state;

/* A product, or a Level 3 call, to be tuned, and what became of it. */
typedef struct autotune_case {
  autotune_routine of;
  char op_a, op_b; /* n, t or c */
  ws_shape shape;  /* Level 3: of m and k, 0 where the routine has none */
  /* "sgemm", "nn 4096x4096x4096", "nn 4096x4096x4096 beta=1"; "strsm", "left lower n 4096x100" */
  char routine[8], product[96], name[128];
  autotune_state state;
  wsgemm_autotune_result result;
  /* as last reported; the gain of the fastest candidate as last measured, which may be luck */
  double noise, seen;
} autotune_case;

/* A candidate of the case at hand. */
typedef struct autotune_candidate {
  char text[AUTOTUNE_TEXT_BYTES];
  double model, *us; /* of each run */
  int n_runs, room;
  bool is_refused;
} autotune_candidate;

typedef struct autotune_report {
  const char *math;
  double beta;
  FILE *log; /* NULL: none */
  char device[160], date[16];
  bool is_quiet, is_exhaustive, is_terminal, is_shown, is_out_of_memory;
  double begin_s, drawn_s;
  int n_cases, case_idx, n_begun;
  autotune_case *current;
  autotune_candidate *candidates;
  int n_candidates, room;
} autotune_report;

/* ---- autotune_cases.c ------------------------------------------------------------------------- */

/* "s", "sgemm", "dtrsm". false: there is no such routine. */
bool ws_autotune_find_routine(const char *word, autotune_routine *found);
/* NULL: out of memory. */
autotune_case *ws_autotune_make_cases(const autotune_request *r, int *n_cases);
/* The search. */
wsgemm_status ws_autotune_run(wsgemm_handle *h, const autotune_request *r, const autotune_case *c,
                              const wsgemm_autotune_options *options);

/* What a file has, and for which machine it is asked. */
typedef struct autotune_known {
  char *lines; /* NULL: nothing is left out */
  const char *gpu_name;
  char processor[96], isa[16];
  int n_units, n_workers;
} autotune_known;
int ws_autotune_read_known(autotune_known *k, const autotune_request *r, const ws_gpu_facts *gpu);
bool ws_autotune_is_known(const autotune_known *k, wsgemm_handle *h, const autotune_request *r, const autotune_case *c);

/* ---- autotune_report.c ------------------------------------------------------------------------ */

void ws_autotune_report_begin(autotune_report *r, int n_cases);
void ws_autotune_report_case(autotune_report *r, autotune_case *c, int case_idx);
/* Takes note of a step, and redraws the progress. */
void ws_autotune_report_step(autotune_report *r, const wsgemm_autotune_step *step);
/* Takes the progress off the screen, for other lines. */
void ws_autotune_report_clear(autotune_report *r);
/* After a search: its line where there is no terminal, and its candidates to the log. False: the
 * log cannot be written, as errno says. */
bool ws_autotune_report_result(autotune_report *r);
/* For a case without a choice. */
void ws_autotune_report_left_out(autotune_report *r, const char *why);
/* The candidates, in the order in which they were reported, to stdout. */
void ws_autotune_report_candidates(autotune_report *r);
void ws_autotune_report_free(autotune_report *r);

/* The table of all that was tuned, to stdout. */
void ws_autotune_print_summary(const autotune_case *cases, int n_cases);

#endif
