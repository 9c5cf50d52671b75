/* groups.h - many products of one kind as the layers below the API see them: what they share, and where
 * the sizes and places of each are. All in terms of the problem, column-major: the arrays of a row-major
 * call are exchanged as its operands are. */
#ifndef WS_GROUPS_H
#define WS_GROUPS_H
#include "core/problem.h"

typedef struct ws_groups {
  ws_problem of_all; /* one of the batch; strides are from group to group */
  int64_t count;
  wsgemm_ragged ragged;
  int index_bytes;
  const void *ends;     /* of ragged ones */
  bool arrays_are_here; /* these, and those below, are in host memory */
  /* NULL: of_all has it */
  const void *m, *n, *k, *lda, *ldb, *ldc;
  const void *const *a, *const *b;
  void *const *c;
  const void *alpha, *beta; /* of all groups, in device memory (both); NULL: those of of_all */
} ws_groups;

static inline int64_t ws_index_at(const void *array, int index_bytes, int64_t i) {
  return index_bytes == 8 ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

static inline int64_t ws_group_end(const ws_groups *groups, int64_t group) {
  return group < 0 ? 0 : ws_index_at(groups->ends, groups->index_bytes, group);
}

static inline const void *ws_moved(const void *data, int64_t n, int bytes) {
  return data ? (const char *)data + n * bytes : NULL;
}

/* Takes what lies before the group off what is ragged; *p has all of it. */
static inline void ws_cut_ragged(const ws_groups *groups, int64_t group, ws_problem *p) {
  const int64_t begin = ws_group_end(groups, group - 1), length = ws_group_end(groups, group) - begin;
  const int bytes = ws_types[p->a.type].bytes, c_bytes = ws_types[p->c.type].bytes;
  const bool of_m = groups->ragged == WSGEMM_RAGGED_M, of_k = groups->ragged == WSGEMM_RAGGED_K;
  *(of_k ? &p->k : of_m ? &p->m : &p->n) = length;
  if (of_k || of_m) p->a.data = ws_moved(p->a.data, begin * (p->a.trans == of_m ? p->a.ld : 1), bytes);
  if (of_k || !of_m) p->b.data = ws_moved(p->b.data, begin * (p->b.trans == of_k ? p->b.ld : 1), bytes);
  if (of_k) return;
  p->c.data = (char *)p->c.data + begin * (of_m ? 1 : p->c.ld) * c_bytes;
  if (!p->has_epilogue) return;
  ws_epilogue *e = &p->epilogue;
  e->residual = ws_moved(e->residual, begin * (of_m ? 1 : e->ld_residual), c_bytes);
  if (e->bias_per_row == of_m) e->bias = ws_moved(e->bias, begin, ws_types[e->type_bias].bytes);
}

/* Whether groups differ in their places alone. */
static inline bool ws_groups_are_alike(const ws_groups *groups) {
  return groups->ragged == WSGEMM_RAGGED_NONE && !groups->m && !groups->n && !groups->k && !groups->lda && !groups->ldb &&
         !groups->ldc;
}

/* Whether anything but ends is an array. */
static inline bool ws_groups_have_arrays(const ws_groups *groups) {
  return groups->m || groups->n || groups->k || groups->lda || groups->ldb || groups->ldc || groups->a || groups->b || groups->c;
}

/* Whether they are a strided batch. */
static inline bool ws_groups_are_batch(const ws_groups *groups) {
  return groups->ragged == WSGEMM_RAGGED_NONE && !ws_groups_have_arrays(groups);
}

/* What all groups share, for ws_set_group. */
static inline ws_problem ws_shared_by_groups(const ws_groups *groups) {
  ws_problem p = groups->of_all;
  p.a.stride = p.b.stride = p.c.stride = 0;
  if (p.has_epilogue) p.epilogue.stride_bias = p.epilogue.stride_residual = 0;
  return p;
}

static inline void ws_set_sizes(const ws_groups *groups, int64_t group, ws_problem *p) {
  const ws_problem *all = &groups->of_all;
  const int bytes = groups->index_bytes;
  p->m = groups->m ? ws_index_at(groups->m, bytes, group) : all->m;
  p->n = groups->n ? ws_index_at(groups->n, bytes, group) : all->n;
  p->k = groups->k ? ws_index_at(groups->k, bytes, group) : all->k;
  p->a.ld = groups->lda ? ws_index_at(groups->lda, bytes, group) : all->a.ld;
  p->b.ld = groups->ldb ? ws_index_at(groups->ldb, bytes, group) : all->b.ld;
  p->c.ld = groups->ldc ? ws_index_at(groups->ldc, bytes, group) : all->c.ld;
}

/* The product of a group, of any group's, or of what they share: whatever groups may differ in is set, and nothing
 * else, as copies of a problem are felt beside small products. */
static inline void ws_set_group(const ws_groups *groups, int64_t group, ws_problem *p) {
  const ws_problem *all = &groups->of_all;
  const int bytes = ws_types[all->a.type].bytes, c_bytes = ws_types[all->c.type].bytes;
  const bool is_ragged = groups->ragged != WSGEMM_RAGGED_NONE;
  const bool of_k = groups->ragged == WSGEMM_RAGGED_K, of_m = groups->ragged == WSGEMM_RAGGED_M;
  if (!ws_groups_are_alike(groups)) ws_set_sizes(groups, group, p);
  /* what is ragged has one place for all groups */
  const bool one_a = is_ragged && (of_k || of_m), one_b = is_ragged && !of_m, one_c = is_ragged && !of_k;
  p->a.data = groups->a ? groups->a[group] : one_a ? all->a.data : ws_moved(all->a.data, group * all->a.stride, bytes);
  p->b.data = groups->b ? groups->b[group] : one_b ? all->b.data : ws_moved(all->b.data, group * all->b.stride, bytes);
  if (groups->c)
    p->c.data = groups->c[group];
  else
    p->c.data = one_c || !all->c.data ? all->c.data : (char *)all->c.data + group * all->c.stride * c_bytes;
  if (p->has_epilogue) {
    const ws_epilogue *e = &all->epilogue;
    p->epilogue.bias = ws_moved(e->bias, group * e->stride_bias, ws_types[e->type_bias].bytes);
    p->epilogue.residual = one_c ? e->residual : ws_moved(e->residual, group * e->stride_residual, c_bytes);
  }
  if (is_ragged) ws_cut_ragged(groups, group, p);
}

static inline void ws_product_of_group(const ws_groups *groups, int64_t group, ws_problem *p) {
  *p = ws_shared_by_groups(groups);
  ws_set_group(groups, group, p);
}
#endif
