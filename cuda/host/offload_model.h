/* offload_model.h - how long a product of host matrices takes on GPUs, and on the CPU: by rates that are
 * measured once a process has used a GPU, by those of an H200 and its host before. */
#ifndef WS_CUDA_OFFLOAD_MODEL_H
#define WS_CUDA_OFFLOAD_MODEL_H
#include "cuda/host/offload_plan.h"
#include "cuda/host/offload_site.h"

/* Bytes a second: of a link, each way; of one thread that copies to and from slots while others do. */
typedef struct ws_offload_rates {
  double in, out, thread;
  bool is_measured; /* the link */
} ws_offload_rates;
ws_offload_rates ws_offload_rates_get(void);
/* The link, if nobody has yet: through the site's slots and memory, for about a millisecond. */
void ws_offload_measure(const ws_offload_site *site);
/* A thread has copied so many bytes from or to a slot. */
void ws_offload_note_copy(int64_t bytes, int64_t nanoseconds);
int64_t ws_offload_nanoseconds(void);

/* Seconds: on so many devices with so many copying threads; on the CPU. */
typedef struct ws_offload_times {
  double link, staging, device, all, cpu;
} ws_offload_times;
ws_offload_times ws_offload_model(const ws_offload_plan *plan, int n_devices, int n_threads);
#endif
