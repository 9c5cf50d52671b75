/* One multiplication on made-up data, judged against the reference: what `verify` and `doctor` are
 * made of. */
#ifndef WSGEMM_CLI_TRIAL_H
#define WSGEMM_CLI_TRIAL_H

#include "check.h"
#include "wsgemm.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct ws_trial {
  wsgemm_type type;
  wsgemm_layout layout;
  wsgemm_op transa, transb;
  int64_t m, n, k;
  /* elements between the columns (rows) of each matrix; they hold NaN and must go on doing so */
  int64_t padding;
  wsgemm_cdouble alpha, beta; /* rounded to the type */
  bool on_gpu;                /* on the one that ws_gpu_open opened last */
  /* small integers, so that the product must be exact; else uniform in (-1, 1) */
  bool has_integers;
} ws_trial;

enum { WS_TRIAL_WHY_BYTES = 256 };

/* Runs it on h. With beta = 0, C holds NaN before. True: C is right (exact, with has_integers),
 * *out says how right. False: *why says what went wrong, be it a failing call, a wrong element, or
 * an element of the padding that was written. */
bool ws_trial_run(wsgemm_handle *h, const ws_trial *t, int64_t max_terms, uint64_t seed, ws_check *out,
                  char why[WS_TRIAL_WHY_BYTES]);

/* "37 x 13 x 64 NT row-major", into text. */
void ws_trial_describe(const ws_trial *t, char *text, size_t bytes);

/* The tile round whose edges a kernel is tried: of the CPU its register tile mr x nr; on a GPU 8 x
 * 8, as its own would take long to check. */
void ws_trial_tile(const wsgemm_kernel_info *kernel, int *mr, int *nr);

#endif
