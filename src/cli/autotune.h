/* autotune.h - what the files of `wsgemm autotune` share.
 *
 * autotune.c reads the options and runs the searches; autotune_report.c shows them: the progress on
 * stderr, the log of every candidate, the candidates of a dry run, the table at the end. */
#ifndef WSGEMM_CLI_AUTOTUNE_H
#define WSGEMM_CLI_AUTOTUNE_H

#include "cli.h"
#include "shapes.h"

#include <stdio.h>

enum { AUTOTUNE_TEXT_BYTES = sizeof((wsgemm_autotune_result *)0)->before };

typedef enum autotune_state {
  AUTOTUNE_WAITING,
  AUTOTUNE_DONE,
  AUTOTUNE_SKIPPED, /* the file has it */
  AUTOTUNE_WITHOUT_CHOICE,
  AUTOTUNE_FAILED
} autotune_state;

/* A product to be tuned, and what became of it. */
typedef struct autotune_case {
  wsgemm_type type;
  char op_a, op_b; /* n, t or c */
  ws_shape shape;
  char routine[8], product[64], name[96]; /* "sgemm", "nn 4096x4096x4096", "nn 4096x4096x4096 beta=1" */
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
