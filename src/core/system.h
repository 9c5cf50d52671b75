/* system.h - a triangular system as the layers below the API see it: checked, column-major. */
#ifndef WS_SYSTEM_H
#define WS_SYSTEM_H
#include "core/matrix.h"
#include "core/scale.h"
#include "core/tuned.h"

/* op(A) X = alpha B (A m x m), or X op(A) = alpha B (is_right, A n x n), for each of a batch; B and
 * X m x n, with m, n >= 1. X may be B's own memory (same data, ld, stride). alpha is not 0. */
typedef struct ws_system {
  int64_t m, n, batch_count;
  ws_matrix a; /* TRIANGULAR or UNIT_TRIANGULAR */
  ws_matrix b; /* GENERAL, no op */
  ws_result x;
  bool is_right;
  ws_scale scale;          /* alpha; beta is 0 */
  wsgemm_math math;        /* INHERIT: the handle's */
  const ws_tuning *tuning; /* what the search tries; NULL: looked up */
} ws_system;
#endif
