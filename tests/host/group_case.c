/* group_case.c - see group_case.h. */
#include "group_case.h"

#include "core/groups.h"
#include "cuda/host/problem_args.h"

static ws_matrix operand_of(wsgemm_op op, wsgemm_type type, const void *data, int64_t ld, int64_t stride) {
  return (ws_matrix){.data = data,
                     .ld = ld,
                     .stride = stride,
                     .type = type,
                     .trans = op != WSGEMM_NO_TRANS,
                     .conj = op == WSGEMM_CONJ_TRANS && (type == WSGEMM_C32 || type == WSGEMM_C64)};
}

static ws_problem problem_of(const wsgemm_grouped_desc *d) {
  const bool is_double = d->type_a == WSGEMM_F64 || d->type_a == WSGEMM_C64;
  ws_problem p = {.m = d->m, .n = d->n, .k = d->k, .batch_count = 1};
  p.a = operand_of(d->transa, d->type_a, d->a, d->lda, d->stride_a);
  p.b = operand_of(d->transb, d->type_b, d->b, d->ldb, d->stride_b);
  p.c = (ws_result){.data = d->c, .ld = d->ldc, .stride = d->stride_c, .type = d->type_c};
  if (is_double)
    ws_set_scale_d(&p.scale, d->alpha.d, 0, d->beta.d, 0);
  else
    ws_set_scale_s(&p.scale, d->alpha.s, 0, d->beta.s, 0);
  p.has_epilogue = d->epilogue || d->bias || d->residual || d->out_scale != 1;
  if (p.has_epilogue)
    p.epilogue = (ws_epilogue){.activation = d->epilogue,
                               .bias_per_row = d->bias_per == WSGEMM_BIAS_PER_ROW,
                               .type_bias = d->type_bias,
                               .bias = d->bias,
                               .residual = d->residual,
                               .stride_bias = d->stride_bias,
                               .ld_residual = d->ld_residual,
                               .stride_residual = d->stride_residual,
                               .out_scale = d->out_scale};
  return p;
}

static ws_groups groups_of(const wsgemm_grouped_desc *d) {
  return (ws_groups){.of_all = problem_of(d),
                     .count = d->group_count,
                     .ragged = d->ragged,
                     .index_bytes = d->index_bytes,
                     .ends = d->offsets,
                     .m = d->m_array,
                     .n = d->n_array,
                     .k = d->k_array,
                     .lda = d->lda_array,
                     .ldb = d->ldb_array,
                     .ldc = d->ldc_array,
                     .a = d->a_array,
                     .b = d->b_array,
                     .c = d->c_array};
}

int group_case_bytes(wsgemm_type type) { return ws_types[type].bytes; }

ws_group_args group_case_args(const wsgemm_grouped_desc *d) {
  const ws_problem p = problem_of(d);
  const bool of_m = d->ragged == WSGEMM_RAGGED_M, of_n = d->ragged == WSGEMM_RAGGED_N, of_k = d->ragged == WSGEMM_RAGGED_K;
  const int bytes = ws_types[d->type_a].bytes;
  ws_group_args args = {.common.gemm = ws_gemm_args_of(&p)};
  args.a = (ws_group_matrix){d->a, d->a_array, d->lda_array, d->lda, of_m || of_k ? 0 : d->stride_a, p.a.trans, bytes};
  args.b = (ws_group_matrix){d->b, d->b_array, d->ldb_array, d->ldb, of_n || of_k ? 0 : d->stride_b, !p.b.trans, bytes};
  args.c = (ws_group_matrix){.data = d->c,
                             .array = (const void *const *)d->c_array,
                             .ld_array = d->ldc_array,
                             .ld = d->ldc,
                             .stride = of_m || of_n ? 0 : d->stride_c,
                             .bytes = ws_types[d->type_c].bytes};
  args.ends = d->offsets, args.m = d->m_array, args.n = d->n_array, args.k = d->k_array;
  args.ragged = (int32_t)d->ragged, args.index_bytes = d->index_bytes, args.n_groups = (int32_t)d->group_count;
  args.reads_operands = !ws_product_is_zero(&p);
  args.bias_bytes = ws_types[d->type_bias].bytes;
  return args;
}

ws_gemm_args group_case_product(const wsgemm_grouped_desc *d, int64_t group) {
  const ws_groups groups = groups_of(d);
  ws_problem p;
  ws_product_of_group(&groups, group, &p);
  ws_gemm_args args = ws_gemm_args_of(&p);
  if (ws_product_is_zero(&p)) args.k = 0;
  return args;
}
