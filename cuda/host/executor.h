/* executor.h - makes launches, in their order, on one device and stream, and gets for them what
 * they need of memory (lending.h). */
#ifndef WS_CUDA_EXECUTOR_H
#define WS_CUDA_EXECUTOR_H
#include "cuda/host/launch.h"

/* A call on its way: where to, and with which memory. What of the handle may change meanwhile it
 * has from its beginning. */
typedef struct ws_executor {
  const ws_call *call;
  ws_device *device;
  CUstream stream;
  ws_caller_workspace workspace;
  ws_loan loan;
  /* the first bytes of the workspace, which launches that need sums must leave alone */
  int64_t n_taken;
  /* the first bytes of the memory for copies, which whoever asks for it next leaves alone */
  int64_t n_held;
  bool has_written; /* a launch that writes C has been made */
} ws_executor;

/* In the context of the handle's stream. On failure nothing is to be closed. */
wsgemm_status ws_executor_open(ws_executor *x, const ws_call *call, int ordinal, bool *is_pushed);
/* status: how it went. */
wsgemm_status ws_executor_close(ws_executor *x, bool is_pushed, wsgemm_status status);

/* Memory for copies: the caller's workspace, or of the library's own at least need->least bytes. */
wsgemm_status ws_executor_copies(ws_executor *x, const ws_copies_need *need, char **memory, int64_t *bytes);

/* To the first that fails, or for which there are no sums (list->lacks_sums). What the list needs
 * is there before its first launch, and later lists of the call need no more; so ALLOC_FAILED tells
 * that nothing has been launched that writes C: a launch that fails after that is a
 * DEVICE_ERROR. */
wsgemm_status ws_execute(ws_executor *x, ws_launch_list *list);
#endif
