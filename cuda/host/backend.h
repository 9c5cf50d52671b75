/* backend.h - the GPU backend. */
#ifndef WS_CUDA_BACKEND_H
#define WS_CUDA_BACKEND_H
#include "core/backend.h"

struct ws_executor;

/* Its entry in the table of backends. */
extern const ws_backend ws_cuda_backend;
/* Where tuning measures on a GPU. */
extern const struct ws_arena_class ws_cuda_arena;
/* A product as ws_run_gemm takes it, such as those that Level 3 calls are cut into. */
wsgemm_status ws_cuda_product(const ws_call *call, const ws_problem *p, int device);
/* Of any kind, by an executor that is open. */
wsgemm_status ws_run_problem(struct ws_executor *x, const ws_problem *p);
/* The functions of the table (core/backend.h). */
bool ws_cuda_start(void);
ws_place ws_cuda_place(const ws_call *call, const ws_problem *p, int *device, wsgemm_status *status);
wsgemm_status ws_cuda_gemm(const ws_call *call, const ws_problem *p, int device);
wsgemm_status ws_cuda_grouped(const ws_call *call, const ws_groups *groups, int device);
wsgemm_status ws_cuda_solve(const ws_call *call, const ws_system *s, int device);
void ws_cuda_explain_solve(const ws_call *call, const ws_system *s, int device, ws_text *t);
wsgemm_status ws_cuda_solve_workspace_bytes(const ws_call *call, const ws_system *s, int device, size_t *bytes);
void ws_cuda_explain(const ws_call *call, const ws_problem *p, int device, ws_text *t);
wsgemm_status ws_cuda_workspace_bytes(const ws_call *call, const ws_problem *p, int device, size_t *bytes);
wsgemm_status ws_cuda_set_workspace(wsgemm_handle *h, void *workspace, size_t bytes);
wsgemm_status ws_cuda_packed_bytes(const ws_call *call, const ws_problem *p, bool is_a, int device, int *n_slices, size_t *bytes);
wsgemm_status ws_cuda_prepack(const ws_call *call, const wsgemm_packed *packed);
bool ws_cuda_is_on(const void *memory, int device);
wsgemm_status ws_cuda_fallback_count(wsgemm_handle *h, int device, int64_t *count);
void ws_cuda_describe(ws_text *t);
#endif
