/* One Level 3 call on made-up data, judged against the reference of gemm: what `verify` tries on
 * each kernel besides products. */
#ifndef WSGEMM_CLI_LEVEL3_TRIAL_H
#define WSGEMM_CLI_LEVEL3_TRIAL_H

#include "check.h"
#include "trial.h"
#include "wsgemm.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct ws_level3_trial {
  wsgemm_type type; /* F32, F64, C32 or C64 */
  wsgemm_routine routine;
  wsgemm_layout layout;
  wsgemm_side side;
  wsgemm_uplo uplo;
  wsgemm_op trans;
  wsgemm_diag diag;
  int64_t m, n, k; /* those that the routine has; C of the others is n x n */
} ws_level3_trial;

/* Whether the routine has the type, and the op: of complex matrices syrk and syr2k have no conjugate
 * transpose, herk and her2k only that. */
bool ws_level3_trial_is_legal(const ws_level3_trial *t);

/* Runs it on h. What must not be read holds NaN. Of routines that write a triangle both are called
 * for, one after the other. True: the result is right, *out says how right (of trsm the residual
 * over its bound). False: *why says what went wrong. */
bool ws_level3_trial_run(wsgemm_handle *h, const ws_level3_trial *t, int64_t max_terms, uint64_t seed, ws_check *out,
                         char why[WS_TRIAL_WHY_BYTES]);

/* "dtrsm left lower T unit 37 x 13", into text. */
void ws_level3_trial_describe(const ws_level3_trial *t, char *text, size_t bytes);

#endif
