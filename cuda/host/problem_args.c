/* problem_args.c - see problem_args.h. */
#include "cuda/host/problem_args.h"

#include <string.h>

bool ws_is_aligned(const void *pointer, int64_t step, int64_t stride, int element_bytes, int bytes) {
  return (((uintptr_t)pointer | (uintptr_t)(step * element_bytes) | (uintptr_t)(stride * element_bytes)) &
          (uintptr_t)(bytes - 1)) == 0;
}

static ws_operand operand_of(const ws_matrix *x, bool along_k) {
  const int bytes = ws_types[x->type].bytes;
  ws_operand op = {
      .data = x->data, .step_mn = along_k ? x->ld : 1, .step_k = along_k ? 1 : x->ld, .stride = x->stride, .conj = x->conj};
  const bool is_vectors = ws_is_aligned(x->data, x->ld, x->stride, bytes, 16);
  if (along_k)
    op.mode = is_vectors ? WS_COPY_VECTORS_K : WS_COPY_ALONG_K;
  else
    op.mode = is_vectors ? WS_COPY_VECTORS_MN : WS_COPY_ALONG_MN;
  op.whole_elements = ws_is_aligned(x->data, x->ld, x->stride, bytes, bytes);
  op.pairs = ws_is_aligned(x->data, x->ld, x->stride, bytes, 4);
  return op;
}

ws_operand ws_operand_a(const ws_problem *p) { return operand_of(&p->a, p->a.trans); }

ws_operand ws_operand_b(const ws_problem *p) { return operand_of(&p->b, !p->b.trans); }

ws_half_c_type ws_half_c_type_of(wsgemm_type type) {
  return type == WSGEMM_F16 ? WS_HALF_C_F16 : type == WSGEMM_BF16 ? WS_HALF_C_BF16 : WS_HALF_C_F32;
}

bool ws_has_steps(const ws_problem *p) {
  const ws_epilogue *e = &p->epilogue;
  return p->has_epilogue && (e->activation || e->bias || e->residual || e->out_scale != 1);
}

bool ws_is_simple(const ws_problem *p) {
  const bool are_quick = !ws_has_steps(p) || (!p->epilogue.residual && p->epilogue.activation <= WSGEMM_EPILOGUE_RELU);
  return p->scale.beta_zero && ws_is_half(p->c.type) && are_quick;
}

bool ws_has_plain_store(const ws_problem *p) { return ws_is_simple(p) && !ws_has_steps(p); }

ws_epilogue_args ws_epilogue_args_of(const ws_problem *p) {
  if (!ws_has_steps(p)) return (ws_epilogue_args){0};
  const ws_epilogue *e = &p->epilogue;
  return (ws_epilogue_args){.is_any = true,
                            .activation = (int32_t)e->activation,
                            .bias_per_row = e->bias_per_row,
                            .type_bias = (int32_t)ws_half_c_type_of(e->type_bias),
                            .bias = e->bias,
                            .residual = e->residual,
                            .stride_bias = e->stride_bias,
                            .ld_residual = e->ld_residual,
                            .stride_residual = e->stride_residual,
                            .out_scale = e->out_scale};
}

ws_region_args ws_region_args_of(const ws_problem *p) {
  return (ws_region_args){.region = p->c.region, .real_diagonal = p->c.real_diagonal};
}

ws_gemm_args ws_gemm_args_of(const ws_problem *p) {
  ws_gemm_args args = {.m = p->m, .n = p->n, .k = p->k, .c = p->c.data, .ldc = p->c.ld, .stride_c = p->c.stride};
  args.a = ws_operand_a(p);
  args.b = ws_operand_b(p);
  args.region = ws_region_args_of(p);
  const bool of_a = ws_is_triangular((ws_structure)p->a.structure), of_b = ws_is_triangular((ws_structure)p->b.structure);
  args.triangular = of_a ? 1 : of_b ? 2 : 0;
  args.triangle = (int32_t)ws_triangle_of(of_a ? &p->a : &p->b);
  memcpy(&args.alpha, &p->scale.alpha, sizeof args.alpha);
  memcpy(&args.beta, &p->scale.beta, sizeof args.beta);
  args.beta_zero = p->scale.beta_zero;
  args.c_vectors = ws_is_aligned(p->c.data, p->c.ld, p->c.stride, ws_types[p->c.type].bytes, 16);
  args.type_c = (int32_t)ws_half_c_type_of(p->c.type);
  args.epilogue = ws_epilogue_args_of(p);
  return args;
}

ws_column_sums_args ws_column_sums_args_of(const ws_problem *p) {
  return (ws_column_sums_args){.m = p->m,
                               .n = p->n,
                               .n_batch = p->batch_count,
                               .c = p->c.data,
                               .ldc = p->c.ld,
                               .stride_c = p->c.stride,
                               .sums = p->epilogue.column_sums,
                               .stride_sums = p->epilogue.stride_column_sums,
                               .transposed = p->epilogue.transposed,
                               .type_c = (int32_t)ws_half_c_type_of(p->c.type)};
}

ws_problem ws_problem_across(const ws_problem *p) {
  ws_problem across = *p;
  across.m = p->n, across.n = p->m;
  across.a = p->b, across.a.trans = !p->b.trans;
  across.b = p->a, across.b.trans = !p->a.trans;
  return across;
}
