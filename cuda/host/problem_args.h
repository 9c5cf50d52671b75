/* problem_args.h - a problem as arguments of its kernels. */
#ifndef WS_CUDA_PROBLEM_ARGS_H
#define WS_CUDA_PROBLEM_ARGS_H
#include "core/problem.h"
#include "cuda/shared/kernel_args.h"

/* Whether what is at so many steps and strides (in elements) begins at multiples of so many
 * bytes. */
bool ws_is_aligned(const void *pointer, int64_t step, int64_t stride, int element_bytes, int bytes);

ws_operand ws_operand_a(const ws_problem *p);
ws_operand ws_operand_b(const ws_problem *p);

ws_half_c_type ws_half_c_type_of(wsgemm_type type);
/* Whether an epilogue changes C, and does not only sum its columns. */
bool ws_has_steps(const ws_problem *p);
/* Nothing but alpha A B goes into C, and that in 16 bits; nor (simple) anything that takes the
 * stores of an item long. */
bool ws_has_plain_store(const ws_problem *p);
bool ws_is_simple(const ws_problem *p);
ws_epilogue_args ws_epilogue_args_of(const ws_problem *p);
/* All but grid, scheduler and parts of k. */
ws_region_args ws_region_args_of(const ws_problem *p);
ws_gemm_args ws_gemm_args_of(const ws_problem *p);
ws_column_sums_args ws_column_sums_args_of(const ws_problem *p);

/* The product whose result is C transposed: m and n, and A and B, are exchanged. C is as it was. */
ws_problem ws_problem_across(const ws_problem *p);
/* Whether rows that take maps (tma_maps.h) compute that one. */
static inline bool ws_maps_are_across(const ws_problem *p) { return p->a.trans && p->b.trans; }
#endif
