/* threads.c - the pool of worker threads.
 *
 * No thread exists before the first call that wants one. A call that finds the pool taken by another call does not wait: it runs
 * alone (its bits are the same). A job is published by raising `generation`; a worker that sees it enters unless the job is
 * closed already, so the caller never waits for a worker that is slow to wake. Workers spin for a short time after a job, then
 * sleep. After fork() the child starts with an empty pool.
 *
 * Invariant: `entry` counts the workers inside the job, plus CLOSED once the caller is through; job fields are written only
 * while it is CLOSED with nobody inside. */
#include "cpu/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "cpu/place.h"
#include "cpu/queue.h"
#include "cpu/workspace.h"

#define CLOSED UINT32_C(0x80000000)
/* How long a worker looks for the next job before it sleeps: some times the cost of waking it (about 50 us). */
#define SPIN_NS INT64_C(200000)

static struct {
  pthread_mutex_t lock; /* guards sleeping and waking, and thread creation */
  pthread_cond_t wake;
  _Atomic bool taken; /* a caller owns the pool */
  _Alignas(64) _Atomic uint32_t generation;
  _Alignas(64) _Atomic uint32_t entry;
  _Alignas(64) _Atomic int n_asleep;
  int n_created; /* threads besides the callers; written by the owner only */
  /* the job */
  int n_workers;
  ws_worker_fn *fn;
  void *context;
  ws_places places;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .entry = CLOSED};

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_cpu(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void ws_relax(unsigned *round) {
  if (++*round % 256 == 0)
    sched_yield();
  else
    pause_cpu();
}

static void wait_for_job(uint32_t seen) {
  const int64_t begin = now_ns();
  for (unsigned round = 1; atomic_load_explicit(&pool.generation, memory_order_acquire) == seen; round++) {
    pause_cpu();
    if (round % 64 == 0 && now_ns() - begin > SPIN_NS) break;
  }
  if (atomic_load(&pool.generation) != seen) return;
  pthread_mutex_lock(&pool.lock);
  atomic_fetch_add(&pool.n_asleep, 1); /* seq_cst against the caller's raise of generation: one of us sees the other */
  while (atomic_load(&pool.generation) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
  atomic_fetch_sub(&pool.n_asleep, 1);
  pthread_mutex_unlock(&pool.lock);
}

static bool enter_job(void) {
  uint32_t entry = atomic_load_explicit(&pool.entry, memory_order_acquire);
  while (!(entry & CLOSED))
    if (atomic_compare_exchange_weak_explicit(&pool.entry, &entry, entry + 1, memory_order_acquire, memory_order_acquire))
      return true;
  return false;
}

static void *worker_main(void *arg) {
  const int worker = (int)(intptr_t)arg;
  uint32_t seen = 0;
  for (;;) {
    wait_for_job(seen);
    seen = atomic_load_explicit(&pool.generation, memory_order_acquire);
    if (!enter_job()) continue;
    /* The job entered may be newer than `seen`; then it must not be entered again. No newer one can start before we leave. */
    seen = atomic_load_explicit(&pool.generation, memory_order_acquire);
    if (worker < pool.n_workers) {
      ws_places_claim(&pool.places);
      pool.fn(pool.context, worker);
    }
    atomic_fetch_sub_explicit(&pool.entry, 1, memory_order_release);
  }
  return NULL;
}

static void before_fork(void) {
  pthread_mutex_lock(&pool.lock);
  ws_workspace_lock();
}

static void after_fork_parent(void) {
  ws_workspace_unlock();
  pthread_mutex_unlock(&pool.lock);
}

/* Only the forking thread lives on here: no workers, nobody in a job. */
static void after_fork_child(void) {
  ws_workspace_unlock();
  pthread_mutex_unlock(&pool.lock);
  pthread_cond_init(&pool.wake, NULL);
  atomic_store(&pool.taken, false);
  atomic_store(&pool.entry, CLOSED);
  atomic_store(&pool.generation, 0);
  atomic_store(&pool.n_asleep, 0);
  pool.n_created = 0;
}

void ws_pool_watch_forks(void) { pthread_atfork(before_fork, after_fork_parent, after_fork_child); }

/* Makes threads until there are n besides the caller; fewer if the system gives no more. They take no signals: those are the
 * program's own threads' business. */
static void create_threads(int n) {
  if (pool.n_created >= n) return;
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attr;
  if (pthread_attr_init(&attr) == 0) {
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    while (pool.n_created < n && pthread_create(&thread, &attr, worker_main, (void *)(intptr_t)(pool.n_created + 1)) == 0)
      pool.n_created++;
    pthread_attr_destroy(&attr);
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void publish(int n_workers, ws_worker_fn *fn, void *context) {
  pool.n_workers = n_workers;
  pool.fn = fn;
  pool.context = context;
  ws_places_clear(&pool.places);
  ws_places_claim(&pool.places);
  atomic_store_explicit(&pool.entry, 0, memory_order_release); /* pairs with the acquire in enter_job */
  atomic_fetch_add(&pool.generation, 1);
  if (atomic_load(&pool.n_asleep) > 0) {
    pthread_mutex_lock(&pool.lock);
    pthread_cond_broadcast(&pool.wake);
    pthread_mutex_unlock(&pool.lock);
    sched_yield(); /* a worker woken on this processor gets it at once, and moves away (place.c) */
  }
}

void ws_pool_run(int n_workers, ws_worker_fn *begin, ws_worker_fn *fn, void *context) {
  if (n_workers > WS_MAX_WORKERS) n_workers = WS_MAX_WORKERS;
  if (n_workers <= 1 || atomic_exchange_explicit(&pool.taken, true, memory_order_acquire)) {
    begin(context, 1);
    fn(context, 0);
    return;
  }
  create_threads(n_workers - 1);
  if (n_workers > pool.n_created + 1) n_workers = pool.n_created + 1;
  begin(context, n_workers);
  unsigned round = 0;
  if (n_workers > 1) publish(n_workers, fn, context);
  fn(context, 0);
  if (n_workers > 1) {
    atomic_fetch_or_explicit(&pool.entry, CLOSED, memory_order_acq_rel);
    while (atomic_load_explicit(&pool.entry, memory_order_acquire) != CLOSED) ws_relax(&round);
  }
  atomic_store_explicit(&pool.taken, false, memory_order_release);
}
