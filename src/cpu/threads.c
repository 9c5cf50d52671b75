/* threads.c - the pool of worker threads.
 *
 * No thread exists before the first call that wants one. A call that finds the pool taken by
 * another call does not wait: it runs alone (its bits are the same). A job is published by raising
 * `generation`; a worker that sees it enters unless the job is closed already, so the caller never
 * waits for a worker that is slow to wake. Workers spin for a short time after a job, then sleep.
 * After fork() the child starts with an empty pool.
 *
 * A worker computes as the caller would: each job carries the caller's floating-point environment,
 * affinity and real-time priority, and the exception flags that a worker raises become the
 * caller's. What a thread inherits of the one that makes it counts for nothing, but for what the
 * system does not let it change back: nice, policies below SCHED_OTHER, filters of system calls.
 *
 * Invariant: `entry` counts the workers inside the job, plus CLOSED once the caller is through; job
 * fields are written only while it is CLOSED with nobody inside. */
#define _GNU_SOURCE
#include "cpu/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "core/cancel.h"
#include "core/processors.h"
#include "cpu/fp_state.h"
#include "cpu/place.h"
#include "cpu/queue.h"
#include "cpu/workspace.h"

#define CLOSED UINT32_C(0x80000000)
/* How long a worker looks for the next job before it sleeps: some times the cost of waking it
 * (about 50 us). */
#define SPIN_NS INT64_C(200000)

/* Real-time policy and priority of a thread; SCHED_OTHER and 0 for all that has none. */
typedef struct schedule {
  int policy, priority;
} schedule;

static struct {
  pthread_mutex_t lock; /* guards sleeping and waking; `taken` guards thread creation */
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
  ws_fp_control fp_control;
  _Atomic unsigned fp_raised; /* flags of all workers but the caller */
  ws_affinity affinity;
  unsigned affinity_count; /* how often it has changed; 0: it is not known */
  schedule schedule;
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

/* A real-time thread yields to none of a lower priority, which a worker has until it has followed
 * its caller: after about a millisecond it sleeps now and then, so that such a worker on its
 * processor comes to that. */
static void yield_cpu(unsigned round) {
  enum { LONG = 1 << 14, NS = 20000 };
  if (round < LONG || pool.schedule.policy == SCHED_OTHER)
    sched_yield();
  else
    nanosleep(&(struct timespec){.tv_nsec = NS}, NULL);
}

void ws_relax(unsigned *round) {
  if (++*round % 256 == 0)
    yield_cpu(*round);
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
  /* seq_cst against the caller's raise of generation: one of us sees the other */
  atomic_fetch_add(&pool.n_asleep, 1);
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

/* Its place in the process: a name of its own, not that of the thread that made it. */
static void introduce_worker(void) {
#if defined(__linux__)
  prctl(PR_SET_NAME, "wsgemm");
#endif
}

static schedule own_schedule(void) {
  schedule s = {SCHED_OTHER, 0};
#if defined(__linux__)
  struct sched_param param;
  const int policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  if ((policy == SCHED_FIFO || policy == SCHED_RR) && sched_getparam(0, &param) == 0)
    s = (schedule){policy, param.sched_priority};
#endif
  return s;
}

/* What a worker has taken from callers so far. */
typedef struct followed {
  unsigned affinity_count;
  schedule schedule;
} followed;

/* What the system refuses stays as it is. Nothing is asked for that is so already: in a sandbox the
 * question may end the process. */
static void follow_caller(followed *f) {
  /* The policy first: on the processor of a real-time caller that waits for it, a worker without
   * would get no time to take it. */
#if defined(__linux__)
  const struct sched_param param = {.sched_priority = pool.schedule.priority};
  if (f->schedule.policy != pool.schedule.policy || f->schedule.priority != pool.schedule.priority)
    (void)!sched_setscheduler(0, pool.schedule.policy, &param);
#endif
  f->schedule = pool.schedule;
  if (f->affinity_count != pool.affinity_count) {
    ws_affinity own;
    ws_affinity_get(&own);
    if (!ws_affinity_equal(&own, &pool.affinity)) ws_affinity_set(&pool.affinity);
  }
  f->affinity_count = pool.affinity_count;
}

static void work_as_caller(int worker, followed *f) {
  follow_caller(f);
  ws_places_claim(&pool.places);
  ws_fp_enter(&pool.fp_control);
  pool.fn(pool.context, worker);
  const unsigned raised = ws_fp_raised();
  /* handed over by the release of `entry` */
  if (raised) atomic_fetch_or_explicit(&pool.fp_raised, raised, memory_order_relaxed);
}

static void *worker_main(void *arg) {
  const int worker = (int)(intptr_t)arg;
  uint32_t seen = 0;
  followed f = {0, own_schedule()};
  introduce_worker();
  for (;;) {
    wait_for_job(seen);
    seen = atomic_load_explicit(&pool.generation, memory_order_acquire);
    if (!enter_job()) continue;
    /* The job entered may be newer than `seen`; then it must not be entered again. No newer one can
     * start before we leave. */
    seen = atomic_load_explicit(&pool.generation, memory_order_acquire);
    if (worker < pool.n_workers) work_as_caller(worker, &f);
    atomic_fetch_sub_explicit(&pool.entry, 1, memory_order_release);
  }
  return NULL;
}

void ws_pool_lock(void) { pthread_mutex_lock(&pool.lock); }
void ws_pool_unlock(void) { pthread_mutex_unlock(&pool.lock); }

/* Only the forking thread lives on here: no workers, nobody in a job. */
void ws_pool_unlock_in_child(void) {
  pthread_mutex_unlock(&pool.lock);
  pthread_cond_init(&pool.wake, NULL);
  atomic_store(&pool.taken, false);
  atomic_store(&pool.entry, CLOSED);
  atomic_store(&pool.generation, 0);
  atomic_store(&pool.n_asleep, 0);
  pool.n_created = 0;
}

/* Signals that no worker takes: all but those that tell a thread of a fault of its own, which must
 * reach the program's handler as they would from the caller. */
static void mask_of_workers(sigset_t *mask) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  sigfillset(mask);
  for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) sigdelset(mask, faults[i]);
}

/* What the process gives a thread by default is little under some limits (RLIMIT_STACK); but it has
 * room for what the C library takes of a stack, such as thread-local variables. */
static void set_stack(pthread_attr_t *attr) {
  const size_t needed_bytes = 256 * 1024; /* twice what the header asks of callers */
  size_t bytes;
  if (pthread_attr_getstacksize(attr, &bytes) == 0) (void)pthread_attr_setstacksize(attr, bytes + needed_bytes);
}

/* Makes threads until there are n besides the caller; fewer if the system gives no more. */
static void create_threads(int n) {
  if (pool.n_created >= n) return;
  sigset_t mask, old;
  mask_of_workers(&mask);
  pthread_sigmask(SIG_SETMASK, &mask, &old);
  pthread_attr_t attr;
  if (pthread_attr_init(&attr) == 0) {
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    set_stack(&attr);
    pthread_t thread;
    while (pool.n_created < n && pthread_create(&thread, &attr, worker_main, (void *)(intptr_t)(pool.n_created + 1)) == 0)
      pool.n_created++;
    pthread_attr_destroy(&attr);
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* What the workers take from the calling thread. */
static void publish_caller(void) {
  ws_affinity now;
  ws_affinity_get(&now);
  if (now.bytes > 0 && !ws_affinity_equal(&now, &pool.affinity)) pool.affinity = now, pool.affinity_count++;
  pool.schedule = own_schedule();
  pool.fp_control = ws_fp_control_of_caller();
  atomic_store_explicit(&pool.fp_raised, 0, memory_order_relaxed);
}

static void publish(int n_workers, ws_worker_fn *fn, void *context) {
  pool.n_workers = n_workers;
  pool.fn = fn;
  pool.context = context;
  publish_caller();
  ws_places_clear(&pool.places);
  ws_places_claim(&pool.places);
  /* pairs with the acquire in enter_job */
  atomic_store_explicit(&pool.entry, 0, memory_order_release);
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
  /* also in a handler that repairs a fault of this thread's: others are at work for it */
  WS_UNCANCELLED;
  create_threads(n_workers - 1);
  if (n_workers > pool.n_created + 1) n_workers = pool.n_created + 1;
  begin(context, n_workers);
  unsigned round = 0;
  if (n_workers > 1) publish(n_workers, fn, context);
  fn(context, 0);
  if (n_workers > 1) {
    atomic_fetch_or_explicit(&pool.entry, CLOSED, memory_order_acq_rel);
    while (atomic_load_explicit(&pool.entry, memory_order_acquire) != CLOSED) ws_relax(&round);
    const unsigned raised = atomic_load_explicit(&pool.fp_raised, memory_order_relaxed);
    if (raised) ws_fp_raise(raised);
  }
  atomic_store_explicit(&pool.taken, false, memory_order_release);
}
