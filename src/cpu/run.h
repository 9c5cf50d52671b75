/* run.h - what is left to do for a product on the CPU when it is planned. */
#ifndef WS_CPU_RUN_H
#define WS_CPU_RUN_H
#include "cpu/plan.h"

/* A planned product, without an epilogue. */
void ws_cpu_run(const ws_problem *p, const ws_plan *plan);
/* C = beta C for the whole batch. */
void ws_cpu_scale(const ws_problem *p, const ws_cpu_row *row);
/* A product with a structured operand, or a region of C. */
wsgemm_status ws_cpu_structured(const ws_call *call, const ws_problem *p);
/* A product with an epilogue; ALLOC_FAILED: see wsgemm_gemm. */
wsgemm_status ws_cpu_gemm_epilogue(const ws_call *call, const ws_problem *p);
#endif
