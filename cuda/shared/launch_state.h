/* launch_state.h - what a launch needs in device memory that must be clean when it begins: the
 * ticket queue and the barrier. Both leave themselves clean, so it is zeroed once. No two launches
 * that may run at the same time share one. Shared by C and CUDA. */
#ifndef WS_CUDA_LAUNCH_STATE_H
#define WS_CUDA_LAUNCH_STATE_H
#include "cuda/sched/sched.h"
#include "cuda/shared/grid_barrier.h"

typedef struct ws_launch_state {
  ws_ticket_queue queue;
  ws_grid_barrier barrier;
} ws_launch_state;

/* In each context: states (1.5 MiB), memory for partial sums (128 MiB), and for copies of operands
 * (at most 400 MiB). Who is lent which: lending.h. */
enum { WS_N_STATES = 4096, WS_N_SUMS = 4, WS_SUMS_BYTES = 32 << 20, WS_COPIES_BYTES = 400 << 20 };
#endif
