/* launch_state.h - what a launch needs in device memory that must be clean when it begins: the ticket queue and the barrier. Both leave
 * themselves clean, so it is zeroed once. No two launches that may run at the same time share one. Shared by C and CUDA. */
#ifndef WS_CUDA_LAUNCH_STATE_H
#define WS_CUDA_LAUNCH_STATE_H
#include "grid_barrier.h"
#include "sched.h"

typedef struct ws_launch_state {
  ws_ticket_queue queue;
  ws_grid_barrier barrier;
} ws_launch_state;

/* States of a device: for so many streams and captured launches together (1.5 MiB). The first of them with a split product also get memory
 * for its partial sums (128 MiB in all), the others do without. Memory for operands in another form (800 MiB, cc 9.0) is all streams' but for
 * the last of it, the first captured launch's (device.c). */
enum { WS_N_STATES = 4096, WS_N_SUMS = 4, WS_SUMS_BYTES = 32 << 20, WS_N_COPIES = 2, WS_COPIES_BYTES = 400 << 20 };
#endif
