/* result.h - one line of a result file: a JSON object with the members that every bench writes,
 * in their order, then what else it has to say.
 *
 *   ws_bench_result_begin(f, &result);
 *   ws_bench_result_number(f, "samples", 21);
 *   ws_bench_result_end(f);
 *
 * tools/readme_tables.py --check holds the lines in bench/results to the members below. */
#ifndef WSGEMM_BENCH_RESULT_H
#define WSGEMM_BENCH_RESULT_H
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ws_bench_result {
  const char *suite, *routine, *case_name;
  const char *policy; /* who works on what; "none" where the library has no say */
  const char *device;
  const char *peer; /* "OpenBLAS 0.3.21 Cooperlake": version and core; "wsgemm ..." for itself; "none": then there is no theirs */
  double ours, theirs;
  const char *unit;
  double ratio; /* above 1: ours is better */
  const char *commit, *date;
} ws_bench_result;

/* The members of r, then `tuning` if WSGEMM_TUNE is set: "off" (the model alone, without the
 * library's own table) or "a file". */
void ws_bench_result_begin(FILE *f, const ws_bench_result *r);
void ws_bench_result_text(FILE *f, const char *name, const char *text);
void ws_bench_result_number(FILE *f, const char *name, double value);
void ws_bench_result_end(FILE *f); /* the line is written out */

/* A JSON string. Bytes beyond ASCII (of a processor's name) become characters of Latin-1: valid
 * whatever they are. */
void ws_bench_put_json(FILE *f, const char *text);

enum { WS_BENCH_COMMIT_BYTES = 48 };
/* The commit that is measured: the one given, else WSGEMM_COMMIT, else git's HEAD, else
 * "unknown". */
void ws_bench_commit(const char *given, char text[WS_BENCH_COMMIT_BYTES]);

#ifdef __cplusplus
}
#endif
#endif
