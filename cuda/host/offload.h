/* offload.h - host matrices on GPUs, as the table of backends sees them. */
#ifndef WS_CUDA_OFFLOAD_H
#define WS_CUDA_OFFLOAD_H
#include "core/backend.h"

/* Products of host matrices that the handle's devices are to compute. */
bool ws_offload_takes(const ws_call *call, const ws_problem *p);
extern const ws_backend ws_offload_backend;
#endif
