/* epilogue.h - what an epilogue does to elements of C, for the paths that do it themselves before
 * they round. */
#ifndef WS_CPU_EPILOGUE_H
#define WS_CPU_EPILOGUE_H
#include "core/problem.h"
#include "cpu/rows.h"

/* x = out_scale act(x + bias) + residual, for the m x n elements of C from (i, j) on; x holds alpha
 * sum + beta C of them in floats (in doubles for a C of F64). Reads a residual that is C itself: C
 * must be as it was. */
void ws_epilogue_apply(const ws_problem *p, const ws_cpu_row *row, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n,
                       void *x, int64_t ldx);

/* What the product has not done of the epilogue: the steps of all elements (if `walks`;
 * has_product: they hold one, which alpha and beta are in), and the column sums. */
void ws_epilogue_walk(const ws_call *call, const ws_problem *p, bool walks, bool has_product);
#endif
