/* structured.c - products with structure or a region, by filled-in copies: slow, and to be replaced
 * by reading structured operands in packing. */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "cpu/backend.h"
#include "cpu/paths.h"
#include "cpu/run.h"

static void negate_im(wsgemm_type type, char *x) {
  if (type == WSGEMM_C32) ((wsgemm_cfloat *)(void *)x)->im = -((wsgemm_cfloat *)(void *)x)->im;
  if (type == WSGEMM_C64) ((wsgemm_cdouble *)(void *)x)->im = -((wsgemm_cdouble *)(void *)x)->im;
}
static void clear_im(wsgemm_type type, char *x) {
  if (type == WSGEMM_C32) ((wsgemm_cfloat *)(void *)x)->im = 0;
  if (type == WSGEMM_C64) ((wsgemm_cdouble *)(void *)x)->im = 0;
}
static void set_one(wsgemm_type type, char *x) {
  if (type == WSGEMM_F32 || type == WSGEMM_C32)
    *(float *)(void *)x = 1;
  else
    *(double *)(void *)x = 1;
}

/* X filled in, rows x cols as it is stored. */
static char *filled(const ws_matrix *x, int64_t batch, int64_t rows, int64_t cols) {
  const int bytes = ws_types[x->type].bytes;
  char *copy = calloc((size_t)(rows * cols), (size_t)bytes);
  if (!copy) return NULL;
  const char *from = (const char *)x->data + batch * x->stride * bytes;
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = 0; i < rows; i++) {
      char *to = copy + (i + j * rows) * bytes;
      const bool is_stored = x->structure == WS_GENERAL || (x->stored_upper ? i <= j : i >= j);
      if (!is_stored && ws_is_triangular(x->structure)) continue;
      if (i == j && x->structure == WS_UNIT_TRIANGULAR) {
        set_one(x->type, to);
        continue;
      }
      memcpy(to, from + (is_stored ? i + j * x->ld : j + i * x->ld) * bytes, (size_t)bytes);
      if (!is_stored && x->structure == WS_HERMITIAN) negate_im(x->type, to);
      if (i == j && x->structure == WS_HERMITIAN) clear_im(x->type, to);
    }
  return copy;
}

static bool run_one(const ws_call *call, const ws_problem *given, int64_t batch) {
  const int bytes = ws_types[given->c.type].bytes;
  ws_problem p = *given;
  const int64_t ar = p.a.trans ? p.k : p.m, ac = p.a.trans ? p.m : p.k, br = p.b.trans ? p.n : p.k, bc = p.b.trans ? p.k : p.n;
  char *a = filled(&p.a, batch, ar, ac), *b = filled(&p.b, batch, br, bc);
  char *c = calloc((size_t)(p.m * p.n), (size_t)bytes);
  const bool ok = a && b && c;
  if (ok) {
    p.batch_count = 1, p.in_place = false;
    p.a.data = a, p.a.ld = ar, p.a.structure = 0, p.b.data = b, p.b.ld = br, p.b.structure = 0;
    p.c.data = c, p.c.ld = p.m, p.c.region = 0, p.c.real_diagonal = false;
    for (int64_t j = 0; j < p.n && !p.scale.beta_zero; j++)
      for (int64_t i = 0; i < p.m; i++)
        if (ws_region_has(given->c.region, i, j)) {
          memcpy(c + (i + j * p.m) * bytes, ws_c_at(given, batch, i, j, bytes), (size_t)bytes);
          if (i == j && given->c.real_diagonal) clear_im(p.c.type, c + (i + j * p.m) * bytes);
        }
    ws_cpu_gemm(call, &p, 0);
    for (int64_t j = 0; j < p.n; j++)
      for (int64_t i = 0; i < p.m; i++)
        if (ws_region_has(given->c.region, i, j)) {
          if (i == j && given->c.real_diagonal) clear_im(p.c.type, c + (i + j * p.m) * bytes);
          memcpy(ws_c_at(given, batch, i, j, bytes), c + (i + j * p.m) * bytes, (size_t)bytes);
        }
  }
  free(a), free(b), free(c);
  return ok;
}

wsgemm_status ws_cpu_structured(const ws_call *call, const ws_problem *given) {
  ws_problem p = *given;
  if (ws_product_is_zero(given)) { /* any operands will do */
    p.k = 0, p.a.structure = p.b.structure = 0, p.a.trans = p.b.trans = false;
  }
  for (int64_t batch = 0; batch < p.batch_count; batch++)
    if (!run_one(call, &p, batch)) return ws_fail(call->h, WSGEMM_ALLOC_FAILED, "no memory for filled-in copies");
  return WSGEMM_SUCCESS;
}
