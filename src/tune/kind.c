/* kind.c - what a product or a triangular system has in common with those that a line of its
 * serves, as far as that is no matter of a backend: routine, side, triangle, types, ops. */
#include "tune/tuning.h"

enum { N_ROUTINES = WSGEMM_TRSM + 1 };

const char *ws_tuning_routine_name(int routine) {
  static const char *const names[N_ROUTINES] = {"gemm",
#define ROUTINE_NAME(enumerator, name) [WSGEMM_##enumerator] = (name),
                                                WSGEMM_ROUTINE_MAP(ROUTINE_NAME)
#undef ROUTINE_NAME
  };
  return names[routine];
}

bool ws_tuning_has_side(int routine) {
  return routine == WSGEMM_SYMM || routine == WSGEMM_HEMM || routine == WSGEMM_TRMM || routine == WSGEMM_TRSM;
}

bool ws_tuning_has_uplo(int routine) { return routine > WSGEMM_HEMM; }

static int routine_of_structure(int structure) {
  return structure == WS_SYMMETRIC ? WSGEMM_SYMM : structure == WS_HERMITIAN ? WSGEMM_HEMM : WSGEMM_TRMM;
}

ws_tuning_kind ws_tuning_kind_of(const ws_problem *p) {
  ws_tuning_kind kind = {.type = p->a.type, .type_c = p->c.type, .a_trans = p->a.trans, .b_trans = p->b.trans};
  if (ws_is_plain(p)) return kind;
  const bool is_right = p->b.structure != WS_GENERAL;
  const ws_matrix *structured = is_right ? &p->b : &p->a;
  if (structured->structure == WS_GENERAL) {
    kind.routine = p->c.real_diagonal ? WSGEMM_HERK : WSGEMM_SYRK;
    kind.is_upper = p->c.region == WS_UPPER;
    return kind;
  }
  kind.routine = (uint8_t)routine_of_structure(structured->structure);
  kind.is_right = is_right, kind.in_place = p->in_place;
  kind.is_upper = ws_tuning_has_uplo(kind.routine) && structured->stored_upper;
  return kind;
}

ws_tuning_kind ws_tuning_kind_of_system(const ws_system *s) {
  return (ws_tuning_kind){.routine = WSGEMM_TRSM,
                          .is_right = s->is_right,
                          .is_upper = s->a.stored_upper,
                          .type = s->a.type,
                          .type_c = s->x.type,
                          .a_trans = s->a.trans};
}
