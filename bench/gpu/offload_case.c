/* offload_case.c - see offload_case.h. */
#include "offload_case.h"

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness/random.h"
#include "operands.h"

const struct offload_routine_row offload_routines[OFFLOAD_N_ROUTINES] = {
    {"gemm", WSGEMM_GEMMTR, true}, {"symm", WSGEMM_SYMM, true}, {"syrk", WSGEMM_SYRK, false},
    {"syr2k", WSGEMM_SYR2K, true}, {"trmm", WSGEMM_TRMM, true}, {"trsm", WSGEMM_TRSM, false},
};

static bool is_triangular(const offload_case *t) { return t->routine == OFFLOAD_TRMM || t->routine == OFFLOAD_TRSM; }

/* ---- matrices ---------------------------------------------------------------------------------- */

typedef struct range {
  const offload_case *t;
  char *from;
  size_t n; /* real numbers */
  uint64_t seed;
  double scale;
} range;

static void *fill_range(void *context) {
  const range *r = context;
  uint64_t random = r->seed;
  for (size_t i = 0; i < r->n; i++) put_real(r->t->type, r->from, i, (2 * ws_random_unit(&random) - 1) * r->scale);
  return NULL;
}

/* A triangle's elements are so small that its powers neither grow nor vanish. */
static void fill(const offload_case *t, int which) {
  enum { N_THREADS = 16 };
  const offload_matrix *x = &t->of[which];
  const size_t real = type_bytes(t->type) / (is_complex(t->type) ? 2 : 1);
  const size_t n = x->bytes / real, share = (n + N_THREADS - 1) / N_THREADS;
  const double scale = is_triangular(t) && which == 0 ? 1 / (double)t->m : 1;
  pthread_t thread[N_THREADS];
  range of[N_THREADS];
  int n_threads = 0;
  for (size_t first = 0; first < n; first += share, n_threads++) {
    of[n_threads] =
        (range){t, (char *)x->host + first * real, n - first < share ? n - first : share, 7 + first * 3 + (size_t)which, scale};
    if (pthread_create(&thread[n_threads], NULL, fill_range, &of[n_threads]) != 0) {
      fill_range(&of[n_threads]);
      of[n_threads].n = 0;
    }
  }
  for (int i = 0; i < n_threads; i++)
    if (of[i].n > 0) pthread_join(thread[i], NULL);
}

static void set_sides(offload_case *t) {
  const bool is_update = t->routine == OFFLOAD_SYRK || t->routine == OFFLOAD_SYR2K;
  const int64_t m = t->m, n = t->n, k = t->k;
  const bool *trans = t->is_transposed;
  t->of[2].rows = is_update ? n : m, t->of[2].cols = n;
  if (t->routine == OFFLOAD_GEMM) {
    t->of[0].rows = trans[0] ? k : m, t->of[0].cols = trans[0] ? m : k;
    t->of[1].rows = trans[1] ? n : k, t->of[1].cols = trans[1] ? k : n;
  } else if (is_update) {
    t->of[0].rows = t->of[1].rows = n, t->of[0].cols = t->of[1].cols = k;
  } else {
    t->of[0].rows = t->of[0].cols = t->of[1].rows = m, t->of[1].cols = n;
  }
}

bool offload_make(offload_case *t) {
  set_sides(t);
  for (int i = 0; i < 3; i++) {
    offload_matrix *x = &t->of[i];
    x->bytes = (size_t)(x->rows * x->cols) * type_bytes(t->type);
    if (i == 1 && !offload_routines[t->routine].has_b) continue;
    if (!t->is_pinned)
      x->host = malloc(x->bytes);
    else if (cudaHostAlloc(&x->host, x->bytes, cudaHostAllocPortable) != cudaSuccess)
      x->host = NULL;
    if (!x->host) return false;
    fill(t, i);
  }
  return true;
}

void offload_drop(offload_case *t) {
  for (int i = 0; i < 3; i++)
    if (t->is_pinned)
      cudaFreeHost(t->of[i].host);
    else
      free(t->of[i].host);
}

/* ---- what is counted --------------------------------------------------------------------------- */

double offload_flops(const offload_case *t) {
  const double m = (double)t->m, n = (double)t->n, k = (double)t->k;
  const double of_complex = is_complex(t->type) ? 4 : 1;
  switch (t->routine) {
  case OFFLOAD_GEMM:
    return of_complex * 2 * m * n * k;
  case OFFLOAD_SYMM:
    return of_complex * 2 * m * m * n;
  case OFFLOAD_SYRK:
    return of_complex * n * n * k;
  case OFFLOAD_SYR2K:
    return of_complex * 2 * n * n * k;
  default:
    return of_complex * m * m * n;
  }
}

double offload_bytes_in(const offload_case *t) {
  const bool is_triangle = t->routine == OFFLOAD_SYMM || is_triangular(t);
  const double a = (double)t->of[0].bytes / (is_triangle ? 2 : 1);
  return a + (double)t->of[t->routine == OFFLOAD_TRSM ? 2 : 1].bytes * (t->routine != OFFLOAD_SYRK);
}

double offload_bytes_out(const offload_case *t) {
  return (double)t->of[2].bytes / (t->routine == OFFLOAD_SYRK || t->routine == OFFLOAD_SYR2K ? 2 : 1);
}

/* ---- the call ---------------------------------------------------------------------------------- */

static wsgemm_gemm_desc gemm_desc(const offload_case *t, const offload_place *x) {
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.type_a = d.type_b = d.type_c = t->type;
  d.type_scalar = is_half(t->type) ? WSGEMM_F32 : t->type;
  d.transa = t->is_transposed[0] ? WSGEMM_TRANS : WSGEMM_NO_TRANS,
  d.transb = t->is_transposed[1] ? WSGEMM_TRANS : WSGEMM_NO_TRANS;
  d.m = t->m, d.n = t->n, d.k = t->k, d.lda = x->ld[0], d.ldb = x->ld[1], d.ldc = x->ld[2];
  d.a = x->memory[0], d.b = x->memory[1], d.c = x->memory[2];
  memcpy(&d.alpha, scalar_of(t->type, 1), is_wide(t->type) ? 16 : 8);
  return d;
}

static wsgemm_status call_level3(const offload_case *t, wsgemm_handle *h, const offload_place *x) {
  const bool is_in_place = t->routine == OFFLOAD_TRSM;
  wsgemm_level3_desc d = WSGEMM_LEVEL3_DESC_INIT;
  d.routine = offload_routines[t->routine].level3, d.type = t->type, d.uplo = WSGEMM_LOWER, d.diag = WSGEMM_UNIT;
  d.m = t->m, d.n = t->n, d.k = t->k, d.lda = x->ld[0], d.ldb = x->ld[1], d.ldc = x->ld[2];
  d.a = x->memory[0], d.b = x->memory[is_in_place ? 2 : 1], d.c = is_in_place ? NULL : x->memory[2];
  if (is_in_place) d.ldb = x->ld[2];
  memcpy(&d.alpha, scalar_of(t->type, 1), is_wide(t->type) ? 16 : 8);
  return wsgemm_level3(h, &d);
}

offload_place offload_host(const offload_case *t) {
  offload_place place;
  for (int i = 0; i < 3; i++) place.memory[i] = t->of[i].host, place.ld[i] = t->of[i].rows;
  return place;
}

wsgemm_status offload_call(const offload_case *t, wsgemm_handle *h, const offload_place *where) {
  if (t->routine != OFFLOAD_GEMM) return call_level3(t, h, where);
  const wsgemm_gemm_desc d = gemm_desc(t, where);
  return wsgemm_gemm(h, &d);
}

bool offload_is_on_gpus(const offload_case *t, wsgemm_handle *h) {
  char text[4096];
  const offload_place host = offload_host(t);
  const wsgemm_gemm_desc d = gemm_desc(t, &host);
  if (t->routine != OFFLOAD_GEMM) return true;
  wsgemm_explain(h, &d, text, sizeof text);
  return strstr(text, "backend: offload") != NULL;
}

/* ---- the same in device memory ----------------------------------------------------------------- */

static size_t line_bytes(const offload_case *t, int64_t rows) { return (size_t)rows * type_bytes(t->type); }

bool offload_to_device(const offload_case *t, offload_place *where) {
  *where = (offload_place){.memory = {NULL, NULL, NULL}};
  for (int i = 0; i < 3; i++) {
    const offload_matrix *x = &t->of[i];
    const int64_t unit = (line_bytes(t, x->rows) < 128 ? 16 : 256) / (int64_t)type_bytes(t->type);
    where->ld[i] = (x->rows + unit - 1) / unit * unit;
    if (!x->host) continue;
    const size_t pitch = line_bytes(t, where->ld[i]), bytes = line_bytes(t, x->rows);
    if (cudaMalloc(&where->memory[i], pitch * (size_t)x->cols) != cudaSuccess) return false;
    if (cudaMemcpy2D(where->memory[i], pitch, x->host, bytes, bytes, (size_t)x->cols, cudaMemcpyHostToDevice) != cudaSuccess)
      return false;
  }
  return true;
}

void offload_drop_device(offload_place *where) {
  for (int i = 0; i < 3; i++) cudaFree(where->memory[i]);
}

/* Some columns at once, as C may be larger than what memory is left. */
bool offload_is_equal(const offload_case *t, const offload_place *where) {
  const offload_matrix *c = &t->of[2];
  const size_t bytes = line_bytes(t, c->rows), pitch = line_bytes(t, where->ld[2]);
  const int64_t piece = 1 + (64 << 20) / (int64_t)bytes;
  char *columns = malloc((size_t)piece * bytes);
  bool is_same = columns != NULL;
  for (int64_t first = 0; first < c->cols && is_same; first += piece) {
    const size_t n = (size_t)(c->cols - first < piece ? c->cols - first : piece);
    is_same = cudaMemcpy2D(columns, bytes, (const char *)where->memory[2] + (size_t)first * pitch, pitch, bytes, n,
                           cudaMemcpyDeviceToHost) == cudaSuccess &&
              memcmp(columns, (const char *)c->host + (size_t)first * bytes, n * bytes) == 0;
  }
  free(columns);
  return is_same;
}
