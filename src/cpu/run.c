/* run.c - runs a planned product by the path that the plan names; scales C where there is no
 * product. */
#include "cpu/run.h"

#include "core/tile.h"
#include "cpu/paths.h"

void ws_cpu_run(const ws_problem *given, const ws_plan *plan) {
  ws_problem transposed;
  /* which transposes by itself */
  const bool is_transposed = plan->transposed && plan->path != WS_PATH_VECTOR;
  if (is_transposed) {
    ws_transpose_problem(given, &transposed);
    if (plan->c_by_rows) transposed.c.ld = given->c.ld;
  }
  const ws_problem *p = is_transposed ? &transposed : given;
  switch (plan->path) {
  case WS_PATH_DIRECT:
    ws_direct_run(p, plan);
    return;
  case WS_PATH_DOTS:
    ws_dots_run(p, plan);
    return;
  case WS_PATH_VECTOR:
    ws_vector_run(p, plan);
    return;
  case WS_PATH_HALF:
    ws_half_run(p, plan);
    return;
  case WS_PATH_PACKED:
    break;
  }
  if (ws_packed_run(p, plan)) return;
  /* Out of memory: the same sums in the same order, slower, with nothing to allocate. */
  ws_plan frugal = *plan;
  frugal.path = WS_PATH_DIRECT;
  frugal.pack_a = true;
  frugal.n_threads = 1;
  ws_direct_run(p, &frugal);
}

static void scale_s(float *c, int64_t n, const ws_scale *s) {
  for (int64_t i = 0; i < n; i++) c[i] = s->beta_zero ? 0 : s->beta.s[0] * c[i];
}

static void scale_d(double *c, int64_t n, const ws_scale *s) {
  for (int64_t i = 0; i < n; i++) c[i] = s->beta_zero ? 0 : s->beta.d[0] * c[i];
}

static void scale_c(wsgemm_cfloat *c, int64_t n, const ws_scale *s) {
  for (int64_t i = 0; i < n; i++) {
    wsgemm_cfloat r = {0, 0};
    if (!s->beta_zero) r.re = s->beta.s[0] * c[i].re, r.im = s->beta.s[0] * c[i].im;
    if (!s->beta_real) r.re -= s->beta.s[1] * c[i].im, r.im += s->beta.s[1] * c[i].re;
    c[i] = r;
  }
}

static void scale_z(wsgemm_cdouble *c, int64_t n, const ws_scale *s) {
  for (int64_t i = 0; i < n; i++) {
    wsgemm_cdouble r = {0, 0};
    if (!s->beta_zero) r.re = s->beta.d[0] * c[i].re, r.im = s->beta.d[0] * c[i].im;
    if (!s->beta_real) r.re -= s->beta.d[1] * c[i].im, r.im += s->beta.d[1] * c[i].re;
    c[i] = r;
  }
}

static void scale_half(uint16_t *c, int64_t n, const ws_scale *s, const ws_convert_set *convert, wsgemm_type type) {
  enum { MOST = 512 };
  float x[MOST];
  for (int64_t i = 0; i < n; i += MOST) {
    const int64_t rows = ws_min(MOST, n - i);
    if (!s->beta_zero) convert->widen[type](rows, 1, c + i, rows, x, rows);
    scale_s(x, rows, s);
    convert->narrow[type](rows, 1, x, rows, c + i, rows);
  }
}

void ws_cpu_scale(const ws_problem *p, const ws_cpu_row *row) {
  for (int64_t batch = 0; batch < p->batch_count; batch++)
    for (int64_t j = 0; j < p->n; j++) {
      void *column = ws_c_at(p, batch, 0, j, ws_types[p->c.type].bytes);
      switch (p->c.type) {
      case WSGEMM_F32:
        scale_s(column, p->m, &p->scale);
        break;
      case WSGEMM_F64:
        scale_d(column, p->m, &p->scale);
        break;
      case WSGEMM_C32:
        scale_c(column, p->m, &p->scale);
        break;
      case WSGEMM_C64:
        scale_z(column, p->m, &p->scale);
        break;
      case WSGEMM_F16:
      case WSGEMM_BF16:
        scale_half(column, p->m, &p->scale, row->convert, p->c.type);
        break;
      }
    }
}
