/* problem.h - from the arguments of a public call to a problem. */
#ifndef WS_API_PROBLEM_H
#define WS_API_PROBLEM_H
#include "core/problem.h"

/* Of wsgemm_packed. */
#define WS_PACKED_MAGIC UINT64_C(0x77737061636b6564)

/* A checked descriptor as a problem; of its pointers nothing is checked. */
wsgemm_status ws_problem_of(wsgemm_handle *h, const wsgemm_gemm_desc *desc, ws_problem *p);
/* INVALID_VALUE: a packed operand is none, or not the problem's. */
wsgemm_status ws_check_packed(wsgemm_handle *h, const ws_problem *p);
#endif
