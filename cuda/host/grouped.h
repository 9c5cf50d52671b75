/* grouped.h - ragged groups whose sizes are in device memory, as one launch. */
#ifndef WS_CUDA_HOST_GROUPED_H
#define WS_CUDA_HOST_GROUPED_H
#include "core/groups.h"
#include "cuda/host/executor.h"

wsgemm_status ws_run_grouped(ws_executor *x, const ws_groups *groups);
#endif
