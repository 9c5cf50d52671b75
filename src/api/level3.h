/* level3.h - what each routine of Level 3 takes, and the checks of a call's arguments. */
#ifndef WS_API_LEVEL3_H
#define WS_API_LEVEL3_H
#include "api/arguments.h"

/* What a routine has. Those of one triangle have n alone for the size of C; those that work in
 * place have B for C, or C beside it. */
typedef struct ws_routine_traits {
  const char *name;
  bool has_side, has_m, has_k, has_transb, has_diag, has_b, has_beta;
  bool has_trans;  /* trans, in the words of syrk and its kin */
  bool has_transa; /* op(A) may be any of the four */
  bool is_hermitian, is_in_place;
} ws_routine_traits;

/* By wsgemm_routine; of others nothing is known. */
extern const ws_routine_traits ws_routines[WSGEMM_TRSM + 1];

/* What only the descriptor form can get wrong. */
wsgemm_status ws_level3_check_desc(wsgemm_handle *h, const wsgemm_level3_desc *d);
/* What was checked, as ws_level3_run takes it: column-major, c where the result goes. */
void ws_level3_normalize(wsgemm_level3_desc *d);
/* A wsgemm_level3_desc as the caller has it: enums, type, scalars, sizes, leading dimensions,
 * strides. */
wsgemm_status ws_level3_check(wsgemm_handle *h, const wsgemm_level3_desc *d);
/* Nothing is to be done, and no pointer looked at: as in the reference BLAS. */
bool ws_level3_is_nothing(const wsgemm_level3_desc *d);
/* Those that are read or written are there; in check mode, they do not overlap. */
wsgemm_status ws_level3_check_pointers(wsgemm_handle *h, const wsgemm_level3_desc *d, bool wants_overlaps);

/* Of a scalar of a type: its parts. */
static inline void ws_scalar_parts(wsgemm_type type, const wsgemm_scalar *x, double *re, double *im) {
  *im = 0;
  switch (type) {
  case WSGEMM_F64:
    *re = x->d;
    break;
  case WSGEMM_C32:
    *re = x->c.re, *im = x->c.im;
    break;
  case WSGEMM_C64:
    *re = x->z.re, *im = x->z.im;
    break;
  default:
    *re = x->s;
  }
}
static inline bool ws_scalar_is(wsgemm_type type, const wsgemm_scalar *x, double value) {
  double re, im;
  ws_scalar_parts(type, x, &re, &im);
  return re == value && im == 0;
}
#endif
