/* products.h - runs a product of general operands: plans it, and makes the launches of its plan. */
#ifndef WS_CUDA_PRODUCTS_H
#define WS_CUDA_PRODUCTS_H
#include "cuda/host/executor.h"
#include "cuda/host/gemm_plan.h"

wsgemm_status ws_run_gemm(ws_executor *x, const ws_problem *p);

/* A part of C of a planned product without epilogue, with the whole's row and so the bits of the
 * whole; memory: for the operands' other form, if they need one. */
wsgemm_status ws_run_part(ws_executor *x, const ws_gemm_plan *whole, const ws_problem *part, char *memory, int64_t bytes);
/* Whether it has such parts, besides itself. */
bool ws_has_parts(const ws_gemm_plan *plan);
#endif
