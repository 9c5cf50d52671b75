/* gemm.h - a product, checked: to the backend in whose memory it lies. */
#ifndef WS_OPS_GEMM_H
#define WS_OPS_GEMM_H
#include "core/backend.h"

wsgemm_status ws_gemm(const ws_call *call, const ws_problem *p);
/* See wsgemm_get_workspace_size. */
wsgemm_status ws_gemm_workspace_bytes(const ws_call *call, const ws_problem *p, size_t *bytes);
/* How ws_gemm would run it, in words; the product itself is the caller's to name. */
void ws_gemm_explain(const ws_call *call, const ws_problem *p, ws_text *t);
#endif
