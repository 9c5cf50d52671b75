/* threads.h - the pool of worker threads, made on first need, one for the process. */
#ifndef WS_CPU_THREADS_H
#define WS_CPU_THREADS_H
#include <stdbool.h>
#include <stdint.h>

/* What a worker runs; worker 0 is the caller. Every worker may come late or never: fn must see to
 * it that worker 0 returns only when the work is done. */
typedef void ws_worker_fn(void *context, int worker);

typedef struct ws_pool_job {
  int n_workers;  /* at most */
  bool needs_all; /* waits for every worker's own share */
  /* First, with the number of workers that may come: fewer than asked for if threads cannot be made, 1
   * if another call is using the pool. */
  ws_worker_fn *begin;
  ws_worker_fn *fn;
  void *context;
} ws_pool_job;

/* Runs fn on up to n_workers workers, the calling thread as worker 0, all in the caller's
 * floating-point environment and on processors that the caller may run on, and returns when all
 * that came have left. A worker leaves when it finds nothing to do, and comes again when it is called
 * again: fn may run several times on it. */
void ws_pool_run(const ws_pool_job *job);

/* For fn. There is something to do again; by any worker. */
void ws_pool_call(void);
/* By worker 0, now and then: workers that rest (rest.h) are called if the job has taken long. */
void ws_pool_offer(void);
/* By worker 0, which has waited so long for others to end their work. */
void ws_pool_waited(int64_t ns);
int64_t ws_pool_now(void); /* ns */

/* For fork handlers (library.c): nobody may hold the pool's lock while the process is copied; the
 * child has no workers. */
void ws_pool_lock(void);
void ws_pool_unlock(void);
void ws_pool_unlock_in_child(void);

/* Tells the processor, and after many rounds the operating system, that worker 0 waits for
 * others. */
void ws_relax(unsigned *round);
#endif
