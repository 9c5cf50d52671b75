/* backend.h - the CPU's backend. */
#ifndef WS_CPU_BACKEND_H
#define WS_CPU_BACKEND_H
#include "core/backend.h"
#include "cpu/plan.h"

extern const ws_backend ws_cpu_backend; /* its entry in the table of backends */

wsgemm_status ws_cpu_gemm(const ws_call *call, const ws_problem *p, int device);
wsgemm_status ws_cpu_grouped(const ws_call *call, const ws_groups *groups, int device);
void ws_cpu_explain(const ws_call *call, const ws_problem *p, int device, ws_text *t);
wsgemm_status ws_cpu_solve(const ws_call *call, const ws_system *s, int device);
void ws_cpu_explain_solve(const ws_call *call, const ws_system *s, int device, ws_text *t);
void ws_cpu_describe(ws_text *t);
#endif
