/* groups.h - groups of any type as one launch, by the kernels that some rows have for them
 * (rows/groups.h); their sizes and places may be in device memory. */
#ifndef WS_CUDA_HOST_GROUPS_H
#define WS_CUDA_HOST_GROUPS_H
#include "core/groups.h"
#include "cuda/host/executor.h"

/* Ends that the host knows, up to WS_GROUPED_MOST_GIVEN, as a kernel is given them; else zeros. */
ws_grouped_ends ws_given_ends(const ws_groups *groups);

/* NOT_SUPPORTED, of groups whose arrays are in host memory without a word: each is to be launched alone. */
wsgemm_status ws_run_groups(ws_executor *x, const ws_groups *groups);
#endif
