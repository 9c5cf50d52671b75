/* problem.h - a product as the layers below the API see it: checked, column-major, each operand
 * where and how it lies in memory.
 *
 * The API makes it from a call's arguments (src/api/gemm.c); lower layers make others from it (its
 * transpose, chunks of it, one without its epilogue), and never change the one that they were
 * given. */
#ifndef WS_PROBLEM_H
#define WS_PROBLEM_H
#include <stdbool.h>
#include <stdint.h>

#include "core/matrix.h"
#include "core/scale.h"
#include "core/tuned.h"
#include "wsgemm.h"

/* ---- epilogue -----------------------------------------------------------------------------------
 * See wsgemm_epilogue, for C as it is in the problem: a row-major product is computed as its
 * transpose, so the caller's columns are rows here. */
typedef struct ws_epilogue {
  wsgemm_epilogue activation;
  bool transposed;   /* the caller's C is row-major: its columns are rows here */
  bool bias_per_row; /* bias[i] to row i of the problem's C; else bias[j] to column j */
  wsgemm_type type_bias;
  const void *bias, *residual; /* NULL: none */
  void *column_sums;           /* of the caller's columns; NULL: none */
  int64_t stride_bias, ld_residual, stride_residual, stride_column_sums;
  double out_scale;
} ws_epilogue;

/* ---- packed operands: api/packed.c ----------------------------------------------------------- */

/* Of a problem's operands, their packed forms (NULL: none). transposed: the caller's C is
 * row-major, so its a is the problem's b. */
typedef struct ws_packed_pair {
  const wsgemm_packed *a, *b;
  bool transposed;
} ws_packed_pair;

/* ---- problem ------------------------------------------------------------------------------------
 * C = alpha op(A) op(B) + beta C, column-major, checked, with m, n >= 1. */
typedef struct ws_problem {
  int64_t m, n, k, batch_count;
  ws_matrix a, b; /* m x k and k x n, of one type */
  ws_result c;
  ws_scale scale;          /* alpha, beta and what is known of them */
  wsgemm_math math;        /* INHERIT: the handle's */
  const ws_tuning *tuning; /* what the search tries; NULL: looked up */
  bool has_epilogue, has_packed;
  /* Of one with a region of C: another product that is added to the same C, after it has been, for each
   * block of k: syr2k on the CPU. Its C and sizes are the same, its beta is 1. NULL: none. */
  const struct ws_problem *second;
  /* One operand is triangular and C is the other one (same data, ld, stride, no op): trmm. */
  bool in_place;
  ws_epilogue epilogue;  /* if has_epilogue, else never looked at */
  ws_packed_pair packed; /* if has_packed, likewise */
} ws_problem;

/* An operand in its packed form, in device memory; made of the A, or B, of `of`, of which all else
 * is not looked at. */
struct wsgemm_packed {
  uint64_t magic;
  ws_problem of;
  bool is_a;
  int device, n_slices; /* of the numerics class that it was made for */
  char *memory;
};
/* A residual in C's own memory: what is there before the call. */
static inline bool ws_residual_is_c(const ws_problem *p) {
  const ws_epilogue *e = &p->epilogue;
  return e->residual == p->c.data && e->ld_residual == p->c.ld && (p->batch_count == 1 || e->stride_residual == p->c.stride);
}

/* t: C^T = op(B)^T op(A)^T, for a row C whose elements follow each other (m = 1, ldc = 1), without its
 * epilogue and packed forms. Field by field: a copy of all is felt by the smallest products. */
static inline void ws_transpose_problem(const ws_problem *p, ws_problem *t) {
  t->m = p->n, t->n = p->m, t->k = p->k, t->batch_count = p->batch_count;
  t->a = p->b, t->a.trans = !p->b.trans;
  t->b = p->a, t->b.trans = !p->a.trans;
  t->c = p->c, t->c.ld = p->n;
  t->c.region = (uint8_t)ws_region_transposed(p->c.region);
  t->scale = p->scale, t->math = p->math, t->tuning = p->tuning, t->second = p->second, t->in_place = p->in_place;
  t->has_epilogue = t->has_packed = false;
}

/* The problem's numerics class: its own, or the call's. */
static inline wsgemm_math ws_math_of(const ws_call *call, const ws_problem *p) {
  return p->math != WSGEMM_MATH_INHERIT ? p->math : (wsgemm_math)call->settings.math;
}

/* A product as gemm's: no structure, no region. */
static inline bool ws_is_plain(const ws_problem *p) {
  return (p->a.structure | p->b.structure | p->c.region | p->c.real_diagonal) == 0;
}

/* An operand is symmetric, Hermitian or triangular. */
static inline bool ws_is_structured(const ws_problem *p) { return p->a.structure != WS_GENERAL || p->b.structure != WS_GENERAL; }

/* k = 0 or alpha = 0: C = beta C, A and B are not read. */
static inline bool ws_product_is_zero(const ws_problem *p) { return p->k == 0 || p->scale.alpha_zero; }
/* C has no element. */
static inline bool ws_is_empty(const ws_problem *p) { return p->m == 0 || p->n == 0 || p->batch_count == 0; }
#endif
