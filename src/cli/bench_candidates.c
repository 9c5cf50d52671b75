/* bench_candidates.c - the matrices of a problem, and the loops that call wsgemm or another library
 * on them.
 *
 * All candidates work on the same A, B and C: separate copies lie on other physical pages, and
 * their cache conflicts would be measured instead of the libraries. alpha = 1 throughout, and beta
 * is 0, or 1 in a suite that adds to C. Small problems have a few sets of matrices, used in turn,
 * which together stay within half of the L2. The loops differ only in the call they make, so that no
 * candidate pays for a wrapper. */
#include "bench.h"
#include "bench/harness/random.h"
#include "types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* the gap keeps A, B and C from starting in the same cache set */
enum { MAX_SETS = 4, PAGE_ALIGN = 2 << 20, GAP_BYTES = 128 };
/* Of a batch: products, and the bytes of all, which stay in L3. */
enum { MOST_OF_BATCH = 1024, BATCH_BYTES = 4 << 20 };

bool ws_bench_is_double(wsgemm_type type) { return ws_cli_types[type].part_bytes == sizeof(double); }

bool ws_bench_is_half(wsgemm_type type) { return type == WSGEMM_F16 || type == WSGEMM_BF16; }

char ws_bench_type_letter(wsgemm_type type) { return ws_cli_types[type].letter; }

double ws_bench_flops(const bench_shape *shape) {
  const int multiply_add_flops = ws_cli_types[shape->type].n_parts == 2 ? 8 : 2;
  /* A triangle of C, or a product with one: half of a square product (the diagonal's share, 1 / n, is
   * left out); syr2k, her2k: two of those. */
  const bool is_half = shape->routine == WSGEMM_SYRK || shape->routine == WSGEMM_HERK || shape->routine == WSGEMM_GEMMTR ||
                       ws_bench_is_triangular(shape->routine);
  return (is_half ? 0.5 : 1) * multiply_add_flops * (double)shape->m * (double)shape->n * (double)shape->k;
}

void ws_bench_routine(const bench_shape *shape, char name[BENCH_ROUTINE_BYTES]) {
  static const char *const routines[] = {"gemm", "symm", "hemm", "syrk", "herk", "syr2k", "her2k", "gemmtr", "trmm", "trsm"};
  snprintf(name, BENCH_ROUTINE_BYTES, "%c%s", ws_bench_type_letter(shape->type), routines[shape->routine]);
}

static size_t round_up(size_t value, size_t to) { return (value + to - 1) / to * to; }

/* uniform(-1, 1): the same numbers in every run. */
static double uniform(uint64_t *state) { return 2 * ws_random_unit(state) - 1; }

static void fill(char *at, size_t bytes, wsgemm_type type, uint64_t *state) {
  if (ws_bench_is_half(type)) {
    for (size_t i = 0; i < bytes / 2; i++) ws_cli_set(type, at, (int64_t)i, uniform(state));
  } else if (ws_bench_is_double(type)) {
    double *x = (double *)(void *)at;
    for (size_t i = 0; i < bytes / sizeof *x; i++) x[i] = uniform(state);
  } else {
    float *x = (float *)(void *)at;
    for (size_t i = 0; i < bytes / sizeof *x; i++) x[i] = (float)uniform(state);
  }
}

static size_t largest(size_t a, size_t b, size_t c) { return a > b ? (a > c ? a : c) : (b > c ? b : c); }

/* All A, one after the other, then all B and all C; as far apart as the largest of the three. */
static void lay_out_batch(bench_problem *p, size_t stride_bytes) {
  p->set_bytes = stride_bytes;
  p->b_offset = round_up(stride_bytes * (size_t)p->n_sets + GAP_BYTES, 64);
  p->c_offset = 2 * p->b_offset;
}

bool ws_bench_problem_make(bench_problem *p, const bench_shape *shape) {
  const bool row = shape->layout == WSGEMM_ROW_MAJOR;
  const bool ta = shape->transa == WSGEMM_TRANS || shape->transa == WSGEMM_CONJ_TRANS;
  const bool tb = shape->transb == WSGEMM_TRANS || shape->transb == WSGEMM_CONJ_TRANS;
  const size_t element = (size_t)ws_cli_types[shape->type].bytes;
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  const size_t warm_bytes = shape->batched ? BATCH_BYTES : l2 > 0 ? (size_t)l2 / 2 : 256 << 10;
  const int most_sets = shape->batched ? MOST_OF_BATCH : MAX_SETS;
  uint64_t state = 1;

  memset(p, 0, sizeof *p);
  p->shape = *shape;
  p->lda = (row == ta ? shape->m : shape->k) + shape->more_a;
  p->ldb = (row == tb ? shape->k : shape->n) + shape->more_b;
  p->ldc = (row ? shape->n : shape->m) + shape->more_c;
  const size_t a_bytes = element * (size_t)p->lda * (size_t)(row == ta ? shape->k : shape->m);
  const size_t b_bytes = element * (size_t)p->ldb * (size_t)(row == tb ? shape->n : shape->k);
  p->c_bytes = element * (size_t)p->ldc * (size_t)(row ? shape->m : shape->n);
  p->c_more_bytes = element * (size_t)shape->more_c;
  p->b_offset = round_up(a_bytes + GAP_BYTES, 64);
  p->c_offset =
      ws_bench_is_triangular(shape->routine) ? p->b_offset : round_up(p->b_offset + b_bytes + GAP_BYTES, 64); /* B is C */
  p->set_bytes = round_up(p->c_offset + p->c_bytes + GAP_BYTES, 64);
  p->n_sets = 1;
  while (p->n_sets < most_sets && 2 * (size_t)p->n_sets * p->set_bytes <= warm_bytes) p->n_sets *= 2;
  if (shape->batched) lay_out_batch(p, largest(a_bytes, b_bytes, p->c_bytes));
  p->block_bytes = round_up(p->set_bytes * (size_t)p->n_sets + (shape->batched ? p->c_offset : 0), PAGE_ALIGN);
  p->block = aligned_alloc(PAGE_ALIGN, p->block_bytes);
  if (!p->block) return false;
  memset(p->block, 0, p->block_bytes); /* first touch, gaps included */
  for (int set = 0; set < p->n_sets; set++) {
    char *at = p->block + (size_t)set * p->set_bytes;
    fill(at, a_bytes, shape->type, &state);
    fill(at + p->b_offset, b_bytes, shape->type, &state);
    if (ws_bench_is_triangular(shape->routine)) ws_bench_level3_triangle(p, at);
    if (shape->adds) fill(at + p->c_offset, p->c_bytes, shape->type, &state);
  }
  if (!ws_bench_is_triangular(shape->routine) && !shape->adds) return true;
  p->c_before = malloc(p->c_bytes);
  if (!p->c_before) ws_bench_problem_free(p);
  if (p->c_before) memcpy(p->c_before, p->block + p->c_offset, p->c_bytes);
  return p->c_before != NULL;
}

void ws_bench_problem_reset(const bench_problem *p) {
  char *c = p->block + p->c_offset;
  const wsgemm_routine r = p->shape.routine;
  if (p->c_before)
    memcpy(c, p->c_before, p->c_bytes);
  else
    memset(c, r == 0 || r == WSGEMM_SYMM || r == WSGEMM_HEMM ? 0xff : 0, p->c_bytes);
}

void ws_bench_problem_free(bench_problem *p) {
  free(p->block);
  free(p->c_before);
  p->block = p->c_before = NULL;
}

/* ---- Calling loops: one per library and type ------------------------------------------------- */

static void *set_at(const bench_problem *p, int64_t call, size_t offset) {
  return p->block + (size_t)(call & (p->n_sets - 1)) * p->set_bytes + offset;
}

#define OWN_LOOP(letter, scalar, ONE, ZERO)                                                                                    \
  static double own_##letter(const bench_candidate *candidate, int64_t n_calls) {                                              \
    const bench_problem *p = candidate->problem;                                                                               \
    const bench_shape *x = &p->shape;                                                                                          \
    const scalar one = ONE, beta = x->adds ? one : (scalar)ZERO;                                                               \
    wsgemm_status bad = WSGEMM_SUCCESS;                                                                                        \
    const double start = ws_bench_now();                                                                                       \
    for (int64_t i = 0; i < n_calls; i++)                                                                                      \
      bad |= wsgemm_##letter##gemm(candidate->handle, x->layout, x->transa, x->transb, x->m, x->n, x->k, one, set_at(p, i, 0), \
                                   p->lda, set_at(p, i, p->b_offset), p->ldb, beta, set_at(p, i, p->c_offset), p->ldc);        \
    const double seconds = ws_bench_now() - start;                                                                             \
    return bad == WSGEMM_SUCCESS ? seconds : -1;                                                                               \
  }
OWN_LOOP(s, float, 1, 0)
OWN_LOOP(d, double, 1, 0)
OWN_LOOP(c, wsgemm_cfloat, {.re = 1}, {0})
OWN_LOOP(z, wsgemm_cdouble, {.re = 1}, {0})
OWN_LOOP(h, float, 1, 0)
OWN_LOOP(b, float, 1, 0)

/* AS: a number is passed as it is, or (&) by its address. */
#define PEER_LOOP(letter, scalar, ONE, ZERO, AS)                                                                           \
  static double peer_##letter(const bench_candidate *candidate, int64_t n_calls) {                                         \
    const bench_problem *p = candidate->problem;                                                                           \
    const bench_shape *x = &p->shape;                                                                                      \
    const int m = (int)x->m, n = (int)x->n, k = (int)x->k, lda = (int)p->lda, ldb = (int)p->ldb, ldc = (int)p->ldc;        \
    const scalar one = ONE, beta = x->adds ? one : (scalar)ZERO;                                                           \
    const double start = ws_bench_now();                                                                                   \
    for (int64_t i = 0; i < n_calls; i++)                                                                                  \
      candidate->peer->letter##gemm((int)x->layout, (int)x->transa, (int)x->transb, m, n, k, AS one, set_at(p, i, 0), lda, \
                                    set_at(p, i, p->b_offset), ldb, AS beta, set_at(p, i, p->c_offset), ldc);              \
    return ws_bench_now() - start;                                                                                         \
  }
PEER_LOOP(s, float, 1, 0, )
PEER_LOOP(d, double, 1, 0, )
PEER_LOOP(c, wsgemm_cfloat, {.re = 1}, {0}, &)
PEER_LOOP(z, wsgemm_cdouble, {.re = 1}, {0}, &)

static double (*const own_loops[])(const bench_candidate *,
                                   int64_t) = {[WSGEMM_F32] = own_s, [WSGEMM_F64] = own_d, [WSGEMM_C32] = own_c,
                                               [WSGEMM_C64] = own_z, [WSGEMM_F16] = own_h, [WSGEMM_BF16] = own_b};
static double (*const peer_loops[])(const bench_candidate *, int64_t) = {
    [WSGEMM_F32] = peer_s, [WSGEMM_F64] = peer_d, [WSGEMM_C32] = peer_c, [WSGEMM_C64] = peer_z};

/* n_calls batches of all sets. */
static double own_batched(const bench_candidate *candidate, int64_t n_calls) {
  const bench_problem *p = candidate->problem;
  const bench_shape *x = &p->shape;
  const int64_t stride = (int64_t)p->set_bytes / ws_cli_types[x->type].bytes;
  wsgemm_gemm_desc d = WSGEMM_GEMM_DESC_INIT;
  d.layout = x->layout, d.transa = x->transa, d.transb = x->transb;
  d.type_a = d.type_b = d.type_c = d.type_scalar = x->type;
  d.m = x->m, d.n = x->n, d.k = x->k, d.batch_count = p->n_sets;
  d.alpha = ws_cli_scalar(x->type, (wsgemm_cdouble){1, 0}), d.beta = ws_cli_scalar(x->type, (wsgemm_cdouble){0, 0});
  d.a = set_at(p, 0, 0), d.b = set_at(p, 0, p->b_offset), d.c = set_at(p, 0, p->c_offset);
  d.lda = p->lda, d.ldb = p->ldb, d.ldc = p->ldc;
  d.stride_a = d.stride_b = d.stride_c = stride;
  wsgemm_status bad = WSGEMM_SUCCESS;
  const double start = ws_bench_now();
  for (int64_t i = 0; i < n_calls; i++) bad |= wsgemm_gemm(candidate->handle, &d);
  const double seconds = ws_bench_now() - start;
  return bad == WSGEMM_SUCCESS ? seconds : -1;
}

static double peer_batched(const bench_candidate *candidate, int64_t n_calls) {
  return peer_loops[candidate->problem->shape.type](candidate, n_calls * candidate->problem->n_sets);
}

static double flops_of(const bench_problem *p) { return ws_bench_flops(&p->shape) * (p->shape.batched ? p->n_sets : 1); }

static double peak(const bench_candidate *candidate, int64_t n_calls) {
  return ws_bench_peak_run(candidate->double_precision, candidate->n_threads, n_calls);
}

/* ---- Candidates ------------------------------------------------------------------------------ */

bool ws_bench_own_candidate(bench_candidate *candidate, const char *label, const bench_problem *p, int n_threads,
                            wsgemm_policy policy, int coarse_factor) {
  memset(candidate, 0, sizeof *candidate);
  candidate->label = label;
  candidate->run = p->shape.routine ? ws_bench_level3_own : p->shape.batched ? own_batched : own_loops[p->shape.type];
  candidate->problem = p;
  candidate->n_threads = n_threads;
  candidate->flops = flops_of(p);
  if (wsgemm_create(&candidate->handle) == WSGEMM_SUCCESS &&
      wsgemm_set_num_threads(candidate->handle, n_threads) == WSGEMM_SUCCESS &&
      wsgemm_set_policy(candidate->handle, policy) == WSGEMM_SUCCESS &&
      wsgemm_set_coarse_factor(candidate->handle, coarse_factor) == WSGEMM_SUCCESS)
    return true;
  ws_bench_candidate_free(candidate);
  return false;
}

bool ws_bench_peer_has(const bench_peer *peer, const bench_shape *shape) {
  void (*routine)(void);
  return !shape->routine || ws_bench_level3_find(peer, shape, &routine); /* of gemm the harness has made sure */
}

void ws_bench_peer_candidate(bench_candidate *candidate, bench_peer *peer, const bench_problem *p, int n_threads) {
  memset(candidate, 0, sizeof *candidate);
  candidate->label = peer->name;
  candidate->run = p->shape.routine ? ws_bench_level3_peer : p->shape.batched ? peer_batched : peer_loops[p->shape.type];
  candidate->problem = p;
  candidate->peer = peer;
  candidate->n_threads = n_threads;
  candidate->flops = flops_of(p);
  if (p->shape.routine) ws_bench_level3_find(peer, &p->shape, &candidate->peer_level3);
}

void ws_bench_peak_candidate(bench_candidate *candidate, bool double_precision, int n_threads) {
  memset(candidate, 0, sizeof *candidate);
  candidate->label = "FMA peak";
  candidate->run = peak;
  candidate->n_threads = n_threads;
  candidate->double_precision = double_precision;
  candidate->flops = ws_bench_peak_flops(double_precision) * n_threads;
}

void ws_bench_candidate_free(bench_candidate *candidate) {
  if (candidate->handle) wsgemm_destroy(candidate->handle);
  free(candidate->sample_s);
  memset(candidate, 0, sizeof *candidate);
}
