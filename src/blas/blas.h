/* blas.h - what the files of the BLAS library share: who calls, errors, the log, the other BLAS.
 *
 * libwsgemm_blas computes nothing: an entry point (fortran.c, cblas.c) checks its arguments as the
 * reference BLAS does (arguments.h) and calls wsgemm.h's public function, always in column-major
 * terms. Level 1 and 2 are the system's (forward.c, peer.c). */
#ifndef WS_BLAS_BLAS_H
#define WS_BLAS_BLAS_H

#include <stdbool.h>
#include <stdint.h>

#include "wsgemm.h"

#define WS_BLAS_EXPORT __attribute__((visibility("default")))
#define WS_BLAS_COLD __attribute__((cold, noinline))
#define WS_BLAS_INLINE static inline __attribute__((always_inline))

typedef enum ws_blas_routine {
#define ROUTINE(name, family, letter) WS_BLAS_##name,
#include "blas/routines.def"
#undef ROUTINE
  WS_BLAS_N_ROUTINES
} ws_blas_routine;

extern const char *const ws_blas_names[WS_BLAS_N_ROUTINES]; /* "dgemm" */

/* How a routine was called: it decides the numbers and the handler of argument errors. */
typedef enum ws_blas_way { WS_FORTRAN = 0, WS_COL_MAJOR = 1, WS_ROW_MAJOR = 2, WS_64 = 4 } ws_blas_way;

typedef struct ws_blas_caller {
  ws_blas_routine routine;
  int way; /* ws_blas_way, one of the first three | WS_64 */
} ws_blas_caller;

/* Reports bad argument number `info` of the Fortran routine (arguments in the order that Fortran has
 * after row-major was exchanged) to xerbla_ or cblas_xerbla. Value: false. */
WS_BLAS_COLD bool ws_blas_bad(ws_blas_caller caller, int info);

/* Says on stderr why a call with good arguments was not computed. */
WS_BLAS_COLD void ws_blas_failed(ws_blas_routine routine, wsgemm_status status);

/* Calls are counted if WSGEMM_BLAS_LOG was 1 as the library was loaded. */
extern bool ws_blas_is_logged;
WS_BLAS_COLD void ws_blas_count(ws_blas_routine routine, double n_products);

/* An entry point begins its work: n_products multiply-adds, for the log. */
WS_BLAS_INLINE void ws_blas_begin(ws_blas_routine routine, double n_products) {
  if (__builtin_expect(ws_blas_is_logged, 0)) ws_blas_count(routine, n_products);
}
WS_BLAS_INLINE void ws_blas_end(ws_blas_routine routine, wsgemm_status status) {
  if (__builtin_expect(status != WSGEMM_SUCCESS, 0)) ws_blas_failed(routine, status);
}

/* A function of the BLAS that does Level 1 and 2, or of names with 64 of the one with 64-bit integers,
 * loaded on first need; NULL if there is none. */
void *ws_blas_peer_function(const char *name);
/* Limits that BLAS's threads, at once if it is loaded, else as it is; if it has OpenBLAS's control. */
void ws_blas_limit_peer(int n_threads);
/* Which BLAS that is for a name, or why there is none. */
const char *ws_blas_peer_text(const char *name);

#endif
