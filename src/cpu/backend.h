/* backend.h - the CPU's backend: its entry in the table of backends, and what its files tell each other of running a product. */
#ifndef WS_CPU_BACKEND_H
#define WS_CPU_BACKEND_H
#include "core/backend.h"
#include "cpu/plan.h"

extern const ws_backend ws_cpu_backend;

wsgemm_status ws_cpu_gemm(const ws_call *call, const ws_problem *p, int device);
void ws_cpu_explain(const ws_call *call, const ws_problem *p, int device, ws_text *t);
void ws_cpu_describe(ws_text *t);

/* A planned product, without an epilogue. */
void ws_cpu_run(const ws_problem *p, const ws_plan *plan);
/* C = beta C for the whole batch. */
void ws_cpu_scale(const ws_problem *p, const ws_cpu_row *row);
/* A product with an epilogue; ALLOC_FAILED: see wsgemm_gemm. */
wsgemm_status ws_cpu_gemm_epilogue(const ws_call *call, const ws_problem *p);
#endif
