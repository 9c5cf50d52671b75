/* grouped.c - wsgemm_gemm_grouped: the descriptor as groups of products (core/groups.h), each checked as
 * gemm's is, before the first one is run.
 *
 * What all groups share goes through the checks of a gemm descriptor; what each has of its own is
 * checked here, and an error names the group. */
#include "ops/grouped.h"
#include "api/arguments.h"
#include "api/problem.h"
#include "core/groups.h"
#include "core/status.h"
#include "core/tile.h"

static bool is_ragged(const wsgemm_grouped_desc *d) { return d->ragged != WSGEMM_RAGGED_NONE; }

static wsgemm_status check_desc(wsgemm_handle *h, const wsgemm_grouped_desc *d) {
  if (!d) return ws_fail(h, WSGEMM_INVALID_POINTER, "desc is NULL");
  if (d->struct_bytes != sizeof *d)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "struct_bytes is %zu; it must be %zu", d->struct_bytes, sizeof *d);
  if ((int)d->ragged < 0 || d->ragged > WSGEMM_RAGGED_K)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "ragged is %d; it must be 0 .. %d", (int)d->ragged, WSGEMM_RAGGED_K);
  if (d->index_bytes != 4 && d->index_bytes != 8)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "index_bytes is %d; it must be 4 or 8", d->index_bytes);
  const wsgemm_status status = ws_check_size(h, "group_count", d->group_count);
  if (status) return status;
  if (!is_ragged(d) && d->offsets) return ws_fail(h, WSGEMM_INVALID_VALUE, "offsets are given, but ragged is 0");
  const bool of_m = d->ragged == WSGEMM_RAGGED_M, of_n = d->ragged == WSGEMM_RAGGED_N, of_k = d->ragged == WSGEMM_RAGGED_K;
  const struct {
    const char *name;
    bool is_there, is_ragged;
  } arrays[] = {{"m_array", d->m_array, of_m},         {"n_array", d->n_array, of_n},
                {"k_array", d->k_array, of_k},         {"a_array", d->a_array, of_m || of_k},
                {"b_array", d->b_array, of_n || of_k}, {"c_array", d->c_array, of_m || of_n}};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
    if (arrays[i].is_there && arrays[i].is_ragged)
      return ws_fail(h, WSGEMM_INVALID_VALUE, "%s is given, but that is ragged: offsets say it", arrays[i].name);
  return WSGEMM_SUCCESS;
}

/* What all groups share, as a descriptor of gemm; what each has of its own is 0, or the least that may be. */
static wsgemm_gemm_desc shared_of(const wsgemm_grouped_desc *d) {
  const bool has_sizes = d->m_array || d->n_array || d->k_array || d->lda_array || d->ldb_array || d->ldc_array;
  wsgemm_gemm_desc s = WSGEMM_GEMM_DESC_INIT;
  s.layout = d->layout, s.transa = d->transa, s.transb = d->transb;
  s.type_a = d->type_a, s.type_b = d->type_b, s.type_c = d->type_c, s.type_scalar = d->type_scalar;
  s.math = d->math, s.epilogue = d->epilogue;
  s.m = has_sizes ? 0 : d->m, s.n = has_sizes ? 0 : d->n, s.k = has_sizes ? 0 : d->k;
  s.alpha = d->alpha, s.beta = d->beta;
  s.a = d->a, s.b = d->b, s.c = d->c;
  s.lda = d->lda_array ? 1 : d->lda, s.ldb = d->ldb_array ? 1 : d->ldb, s.ldc = d->ldc_array ? 1 : d->ldc;
  s.stride_a = d->stride_a, s.stride_b = d->stride_b, s.stride_c = d->stride_c;
  s.bias_per = d->bias_per, s.type_bias = d->type_bias, s.bias = d->bias, s.stride_bias = d->stride_bias;
  s.residual = d->residual, s.ld_residual = d->ld_residual, s.stride_residual = d->stride_residual;
  s.out_scale = d->out_scale;
  const bool are_batch = !has_sizes && !is_ragged(d) && !d->a_array && !d->b_array && !d->c_array;
  if (are_batch) s.batch_count = d->group_count; /* whose span is checked */
  return s;
}

static wsgemm_status make_groups(wsgemm_handle *h, const wsgemm_grouped_desc *d, ws_groups *groups) {
  const wsgemm_gemm_desc shared = shared_of(d);
  ws_problem *all = &groups->of_all;
  const wsgemm_status status = ws_problem_of(h, &shared, all);
  if (status) return status;
  const bool transposed = d->layout == WSGEMM_ROW_MAJOR;
  all->batch_count = 1;
  all->m = transposed ? d->n : d->m, all->n = transposed ? d->m : d->n, all->k = d->k;
  groups->count = d->group_count;
  groups->index_bytes = d->index_bytes;
  groups->ends = d->offsets;
  groups->ragged = d->ragged;
  if (transposed && d->ragged == WSGEMM_RAGGED_M) groups->ragged = WSGEMM_RAGGED_N;
  if (transposed && d->ragged == WSGEMM_RAGGED_N) groups->ragged = WSGEMM_RAGGED_M;
  groups->m = transposed ? d->n_array : d->m_array, groups->n = transposed ? d->m_array : d->n_array, groups->k = d->k_array;
  groups->lda = transposed ? d->ldb_array : d->lda_array, groups->ldb = transposed ? d->lda_array : d->ldb_array;
  groups->ldc = d->ldc_array;
  groups->a = transposed ? d->b_array : d->a_array, groups->b = transposed ? d->a_array : d->b_array;
  groups->c = d->c_array;
  return WSGEMM_SUCCESS;
}

/* ---- each group ------------------------------------------------------------------------------ */

static wsgemm_status fail_group(wsgemm_handle *h, int64_t group, const char *what, int64_t value, int64_t least) {
  return ws_fail(h, WSGEMM_INVALID_VALUE, "group %lld: %s is %lld; it must be at least %lld", (long long)group, what,
                 (long long)value, (long long)least);
}

static wsgemm_status check_ends(wsgemm_handle *h, const ws_groups *groups, int64_t group) {
  const ws_problem *all = &groups->of_all;
  const int64_t total = groups->ragged == WSGEMM_RAGGED_M ? all->m : groups->ragged == WSGEMM_RAGGED_N ? all->n : all->k;
  const int64_t begin = ws_group_end(groups, group - 1), end = ws_group_end(groups, group);
  if (end < begin) return fail_group(h, group, "its offset", end, begin);
  if (end > total)
    return ws_fail(h, WSGEMM_INVALID_VALUE, "group %lld: its offset is %lld; there are only %lld", (long long)group,
                   (long long)end, (long long)total);
  return WSGEMM_SUCCESS;
}

/* Names as the caller has them. */
static wsgemm_status check_group(wsgemm_handle *h, const ws_problem *p, int64_t group, bool transposed) {
  const int64_t a_length = p->a.trans ? p->k : p->m, b_length = p->b.trans ? p->n : p->k;
  const struct {
    const char *name;
    int64_t value, least;
  } parts[] = {
      {transposed ? "n" : "m", p->m, 0},
      {transposed ? "m" : "n", p->n, 0},
      {"k", p->k, 0},
      {transposed ? "ldb" : "lda", p->a.ld, ws_max(1, a_length)},
      {transposed ? "lda" : "ldb", p->b.ld, ws_max(1, b_length)},
      {"ldc", p->c.ld, ws_max(1, p->m)},
      {"ld_residual", p->has_epilogue && p->epilogue.residual ? p->epilogue.ld_residual : ws_max(1, p->m), ws_max(1, p->m)}};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
    if (parts[i].value < parts[i].least) return fail_group(h, group, parts[i].name, parts[i].value, parts[i].least);
  const uint64_t all = (uint64_t)(p->m | p->n | p->k | p->a.ld | p->b.ld | p->c.ld);
  if (all >> 30) { /* else nothing can overflow */
    const int bytes = ws_types[p->a.type].bytes;
    wsgemm_status status = ws_check_ld(h, parts[3].name, a_length, p->a.trans ? p->m : p->k, p->a.ld, bytes);
    if (!status) status = ws_check_ld(h, parts[4].name, b_length, p->b.trans ? p->k : p->n, p->b.ld, bytes);
    if (!status) status = ws_check_ld(h, "ldc", p->m, p->n, p->c.ld, ws_types[p->c.type].bytes);
    if (status) return status;
  }
  if (ws_is_empty(p)) return WSGEMM_SUCCESS;
  const char *missing = !p->c.data ? "c" : NULL;
  if (!ws_product_is_zero(p) && !p->b.data) missing = transposed ? "a" : "b";
  if (!ws_product_is_zero(p) && !p->a.data) missing = transposed ? "b" : "a";
  return missing ? ws_fail(h, WSGEMM_INVALID_POINTER, "group %lld: %s is NULL", (long long)group, missing) : WSGEMM_SUCCESS;
}

/* Of groups whose arrays the host cannot read: the most of any, or of all. */
static wsgemm_status check_sizes(wsgemm_handle *h, const wsgemm_grouped_desc *d) {
  wsgemm_status status = ws_check_size(h, "m", d->m);
  if (!status) status = ws_check_size(h, "n", d->n);
  return status ? status : ws_check_size(h, "k", d->k);
}
static wsgemm_status check_pointers(wsgemm_handle *h, const ws_groups *groups, bool transposed) {
  const ws_problem *p = &groups->of_all;
  const char *missing = !p->c.data && !groups->c ? "c" : NULL;
  if (!ws_product_is_zero(p) && !p->b.data && !groups->b) missing = transposed ? "a" : "b";
  if (!ws_product_is_zero(p) && !p->a.data && !groups->a) missing = transposed ? "b" : "a";
  return missing ? ws_fail(h, WSGEMM_INVALID_POINTER, "%s is NULL", missing) : WSGEMM_SUCCESS;
}

static wsgemm_status check_groups(wsgemm_handle *h, const ws_groups *groups, bool transposed) {
  ws_problem p = ws_shared_by_groups(groups);
  const bool are_alike = ws_groups_are_alike(groups);
  for (int64_t group = 0; group < groups->count; group++) {
    wsgemm_status status = groups->ends ? check_ends(h, groups, group) : WSGEMM_SUCCESS;
    if (status) return status;
    ws_set_group(groups, group, &p);
    if (are_alike && group > 0 && p.a.data && p.b.data && p.c.data) continue;
    status = check_group(h, &p, group, transposed);
    if (status) return status;
  }
  return WSGEMM_SUCCESS;
}

wsgemm_status wsgemm_gemm_grouped(wsgemm_handle *handle, const wsgemm_grouped_desc *desc) {
  wsgemm_handle *h = ws_handle(handle);
  if (!h) return ws_fail_handle();
  wsgemm_status status = check_desc(h, desc);
  ws_groups groups = {.count = 0};
  if (!status) status = make_groups(h, desc, &groups);
  if (status || groups.count == 0) return status;
  if (is_ragged(desc) && !desc->offsets) return ws_fail(h, WSGEMM_INVALID_POINTER, "offsets is NULL");
  ws_call call;
  ws_call_begin(&call, h);
  const bool transposed = desc->layout == WSGEMM_ROW_MAJOR;
  int device;
  status = ws_groups_locate(&call, &groups, &device);
  if (status) return status;
  groups.arrays_are_here = device < 0;
  if (!groups.arrays_are_here) {
    status = check_sizes(h, desc);
    if (status) return status;
    if (groups.of_all.m == 0 || groups.of_all.n == 0) return WSGEMM_SUCCESS;
    status = check_pointers(h, &groups, transposed);
    return status ? status : ws_grouped_on_device(&call, &groups, device);
  }
  status = check_groups(h, &groups, transposed);
  return status ? status : ws_grouped(&call, &groups);
}
