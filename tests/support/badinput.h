/* badinput.h - what the bad-input tables of gemm and of Level 3 share: the operands of the good call,
 * in which a refused one writes nothing; something that is no handle; the judge of a refusal. */
#ifndef WSGEMM_TESTS_BADINPUT_H
#define WSGEMM_TESTS_BADINPUT_H

#include "gemm_call.h"

enum { M = 3, N = 4, K = 5, ROOM = 400 /* elements: enough for every ld used here */ };

struct operands {
  _Alignas(16) unsigned char a[ROOM * 16], b[ROOM * 16], c[ROOM * 16];
  unsigned char before_b[ROOM * 16], before_c[ROOM * 16];
};

/* A of zeros, B and C of random bytes. */
void operands_fill(struct operands *x);
bool operands_are_as_filled(const struct operands *x);

/* Memory that no call has made a handle of. */
wsgemm_handle *no_handle(void);

/* One row's answer: the status and words that check_refusal asks for, and nothing written. */
struct refusal {
  wsgemm_status answer;
  const char *argument, *value, *least; /* each stands in last_error; "": not asked for */
};
void check_refused(const char *what, wsgemm_status status, const struct refusal *refusal, const struct operands *x);

/* That the text of an explain function tells an error. */
void check_explains_error(const char *what, const char *text);

#endif
