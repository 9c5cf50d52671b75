/* products.h - runs a product of general operands: plans it, and makes the launches of its plan. */
#ifndef WS_CUDA_PRODUCTS_H
#define WS_CUDA_PRODUCTS_H
#include "cuda/host/executor.h"
#include "cuda/host/gemm_plan.h"

wsgemm_status ws_run_gemm(ws_executor *x, const ws_problem *p);
#endif
