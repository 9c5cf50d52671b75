/* threads.h - the pool of worker threads, made on first need, one for the process. */
#ifndef WS_CPU_THREADS_H
#define WS_CPU_THREADS_H
#include <stdbool.h>

/* What a worker runs; worker 0 is the caller. Every worker may come late or never: fn must see to
 * it that worker 0 returns only when the work is done. */
typedef void ws_worker_fn(void *context, int worker);

/* Runs fn on up to n_workers workers, the calling thread as worker 0, all in the caller's
 * floating-point environment and on processors that the caller may run on, and returns when all
 * that came have left. Calls
 * begin(context, n) first, with the number of workers that may come: fewer than asked for if
 * threads cannot be made, 1 if another call is using the pool. */
void ws_pool_run(int n_workers, ws_worker_fn *begin, ws_worker_fn *fn, void *context);

/* For fork handlers (library.c): nobody may hold the pool's lock while the process is copied; the
 * child has no workers. */
void ws_pool_lock(void);
void ws_pool_unlock(void);
void ws_pool_unlock_in_child(void);

/* Tells the processor, and after many rounds the operating system, that this thread waits for
 * another. */
void ws_relax(unsigned *round);
#endif
