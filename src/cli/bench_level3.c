/* bench_level3.c - the loops that call Level 3 routines of wsgemm or another library, and triangles
 * that may be multiplied by and solved for any number of times.
 *
 * All calls are column-major, left, lower, without transposition, non-unit; alpha = 1 and beta = 0.
 * wsgemm is called by descriptor: one call for all routines; the others by CBLAS. */
#include "bench.h"
#include "types.h"

#include <stdio.h>
#include <string.h>

bool ws_bench_is_triangular(wsgemm_routine routine) { return routine == WSGEMM_TRMM || routine == WSGEMM_TRSM; }

/* A diagonal of 1 and -1, and what is below it so small that its powers are no larger: B keeps its
 * size, call after call. Elements beside the triangle stay as they are. */
void ws_bench_level3_triangle(const bench_problem *p, char *a) {
  const int n_parts = ws_cli_types[p->shape.type].n_parts;
  const double scale = 0x1p-20 / (double)p->shape.n;
  for (int64_t j = 0; j < p->shape.n; j++)
    for (int64_t i = j; i < p->shape.n; i++)
      for (int part = 0; part < n_parts; part++) {
        const int64_t at = (i + j * p->lda) * n_parts + part;
        const double x = ws_cli_get(p->shape.type, a, at);
        ws_cli_set(p->shape.type, a, at, i > j ? x * scale : part ? 0 : x < 0 ? -1 : 1);
      }
}

static void *set_at(const bench_problem *p, int64_t call, size_t offset) {
  return p->block + (size_t)(call & (p->n_sets - 1)) * p->set_bytes + offset;
}

/* The call on one set of matrices. */
static wsgemm_level3_desc desc_of(const bench_problem *p, int64_t call) {
  const bool has_k = p->shape.routine >= WSGEMM_SYRK && p->shape.routine <= WSGEMM_GEMMTR;
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  d.routine = p->shape.routine, d.type = p->shape.type, d.uplo = WSGEMM_LOWER;
  d.m = has_k ? 0 : p->shape.m, d.n = p->shape.n, d.k = has_k ? p->shape.k : 0;
  d.alpha = ws_cli_scalar(d.type, (wsgemm_cdouble){1, 0}), d.beta = ws_cli_scalar(d.type, (wsgemm_cdouble){0, 0});
  d.lda = p->lda, d.ldb = p->ldb, d.ldc = p->ldc;
  d.a = set_at(p, call, 0), d.b = set_at(p, call, p->b_offset);
  d.c = ws_bench_is_triangular(d.routine) ? NULL : set_at(p, call, p->c_offset);
  return d;
}

double ws_bench_level3_own(const bench_candidate *candidate, int64_t n_calls) {
  wsgemm_status bad = WSGEMM_SUCCESS;
  const double start = ws_bench_now();
  for (int64_t i = 0; i < n_calls; i++) {
    const wsgemm_level3_desc d = desc_of(candidate->problem, i);
    bad |= wsgemm_level3(candidate->handle, &d);
  }
  const double seconds = ws_bench_now() - start;
  return bad == WSGEMM_SUCCESS ? seconds : -1;
}

int ws_bench_level3_coarse_factor(const bench_candidate *candidate) {
  const wsgemm_level3_desc d = desc_of(candidate->problem, 0);
  char text[4096], *rest = text, *key, *value;
  int64_t factor = -1;
  wsgemm_level3_explain(candidate->handle, &d, text, sizeof text);
  while (ws_cli_next_line(&rest, &key, &value))
    if (strcmp(key, "coarse_factor") == 0 && !ws_cli_int64(value, 1, INT32_MAX, &factor)) factor = -1;
  return (int)factor;
}

/* ---- CBLAS ----------------------------------------------------------------------------------- */

/* Other names that routines go by, without the letter of the type: gemmtr is the reference BLAS's, gemmt older. */
static const struct {
  wsgemm_routine routine;
  const char *name;
} other_names[] = {{WSGEMM_GEMMTR, "gemmt"}};

bool ws_bench_level3_find(const bench_peer *peer, const bench_shape *shape, void (**routine)(void)) {
  char name[BENCH_ROUTINE_BYTES], symbol[32];
  ws_bench_routine(shape, name);
  snprintf(symbol, sizeof symbol, "cblas_%s", name);
  bool found = ws_bench_peer_find(peer, symbol, routine);
  for (size_t i = 0; !found && i < sizeof other_names / sizeof *other_names; i++) {
    snprintf(symbol, sizeof symbol, "cblas_%c%s", ws_bench_type_letter(shape->type), other_names[i].name);
    found = other_names[i].routine == shape->routine && ws_bench_peer_find(peer, symbol, routine);
  }
  return found;
}

enum { COL = WSGEMM_COL_MAJOR, LEFT = WSGEMM_LEFT, LOWER = WSGEMM_LOWER, N = WSGEMM_NO_TRANS, NON_UNIT = WSGEMM_NON_UNIT };

/* One call of each routine: `scalar` is what alpha is passed as, `of_beta` beta. */
#define PEER_CALLS(name, scalar, of_beta)                                                                                        \
  static void name(const bench_candidate *x, scalar one, of_beta zero, const void *a, void *b, void *c) {                        \
    const bench_problem *p = x->problem;                                                                                         \
    const int n = (int)p->shape.n, lda = (int)p->lda, ldb = (int)p->ldb, ldc = (int)p->ldc;                                      \
    void (*const routine)(void) = x->peer_level3;                                                                                \
    switch (p->shape.routine) {                                                                                                  \
    case WSGEMM_SYMM:                                                                                                            \
    case WSGEMM_HEMM:                                                                                                            \
      ((void (*)(int, int, int, int, int, scalar, const void *, int, const void *, int, of_beta, void *, int))routine)(          \
          COL, LEFT, LOWER, n, n, one, a, lda, b, ldb, zero, c, ldc);                                                            \
      break;                                                                                                                     \
    case WSGEMM_SYRK:                                                                                                            \
    case WSGEMM_HERK:                                                                                                            \
      ((void (*)(int, int, int, int, int, scalar, const void *, int, of_beta, void *, int))routine)(COL, LOWER, N, n, n, one, a, \
                                                                                                    lda, zero, c, ldc);          \
      break;                                                                                                                     \
    case WSGEMM_SYR2K:                                                                                                           \
    case WSGEMM_HER2K:                                                                                                           \
      ((void (*)(int, int, int, int, int, scalar, const void *, int, const void *, int, of_beta, void *, int))routine)(          \
          COL, LOWER, N, n, n, one, a, lda, b, ldb, zero, c, ldc);                                                               \
      break;                                                                                                                     \
    case WSGEMM_GEMMTR:                                                                                                          \
      ((void (*)(int, int, int, int, int, int, scalar, const void *, int, const void *, int, of_beta, void *, int))routine)(     \
          COL, LOWER, N, N, n, n, one, a, lda, b, ldb, zero, c, ldc);                                                            \
      break;                                                                                                                     \
    default:                                                                                                                     \
      ((void (*)(int, int, int, int, int, int, int, scalar, const void *, int, void *, int))routine)(                            \
          COL, LEFT, LOWER, N, NON_UNIT, n, n, one, a, lda, b, ldb);                                                             \
    }                                                                                                                            \
  }
PEER_CALLS(call_with_float, float, float)
PEER_CALLS(call_with_double, double, double)
PEER_CALLS(call_with_pointer, const void *, const void *)
PEER_CALLS(call_with_pointer_float, const void *, float)
PEER_CALLS(call_with_pointer_double, const void *, double)

double ws_bench_level3_peer(const bench_candidate *candidate, int64_t n_calls) {
  const bench_problem *p = candidate->problem;
  const wsgemm_type type = p->shape.type;
  /* complex scalars go by address; those of herk are real, and beta of her2k */
  const bool by_address = (type == WSGEMM_C32 || type == WSGEMM_C64) && p->shape.routine != WSGEMM_HERK;
  const bool is_her2k = p->shape.routine == WSGEMM_HER2K, is_double = ws_bench_is_double(type);
  const wsgemm_scalar one = ws_cli_scalar(type, (wsgemm_cdouble){1, 0}), zero = ws_cli_scalar(type, (wsgemm_cdouble){0, 0});
  const double start = ws_bench_now();
  for (int64_t i = 0; i < n_calls; i++) {
    const void *a = set_at(p, i, 0);
    void *b = set_at(p, i, p->b_offset), *c = set_at(p, i, p->c_offset);
    if (is_her2k && is_double)
      call_with_pointer_double(candidate, &one, 0, a, b, c);
    else if (is_her2k)
      call_with_pointer_float(candidate, &one, 0, a, b, c);
    else if (by_address)
      call_with_pointer(candidate, &one, &zero, a, b, c);
    else if (is_double)
      call_with_double(candidate, 1, 0, a, b, c);
    else
      call_with_float(candidate, 1, 0, a, b, c);
  }
  return ws_bench_now() - start;
}
