/* threads.c - the pool of worker threads.
 *
 * No thread exists before the first call that wants one. A call that finds the pool taken by
 * another call does not wait: it runs alone (its bits are the same). A job is published, and workers
 * are called to more of it, by raising `generation`; a worker that sees it enters unless the job is
 * closed already, and leaves when it finds nothing to do. So the caller never waits for a worker that
 * is slow to wake, moves to another processor or has lost the one it had, but for one in the middle
 * of an item. After such a wait the workers rest (rest.h), and jobs are published to them only once
 * they have taken LATE_NS. Workers spin for a short time after a job, then sleep. After fork() the
 * child starts with an empty pool.
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
#include "cpu/rest.h"
#include "cpu/workspace.h"

#define CLOSED UINT32_C(0x80000000)
/* How long a worker looks for the next job before it sleeps: some times the cost of waking it
 * (about 50 us). */
#define SPIN_NS INT64_C(200000)
/* What a worker has been without a processor, and its caller has waited, to be taken for the work of
 * others: more than interrupts take, less than a time slice (3 ms and more). */
#define LOST_NS INT64_C(500000)
/* Jobs that take longer gain by a worker even where others use its processor, too: one time slice. */
#define LATE_NS INT64_C(4000000)

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
  int n_created; /* threads besides the callers; written by the owner only, as the next three */
  ws_rest rest;
  int64_t begun_ns, waited_ns; /* the job: its beginning, and what the caller has waited in it */
  bool is_late;                /* it was not published at once */
  /* the job */
  bool is_open; /* published, and not closed yet */
  unsigned job; /* its number */
  int n_workers;
  ws_worker_fn *fn;
  void *context;
  ws_places places;
  ws_fp_control fp_control;
  _Atomic unsigned fp_raised; /* flags of all workers but the caller */
  _Atomic bool has_lost;      /* a worker was without a processor for LOST_NS in the middle of it */
  ws_affinity affinity;
  unsigned affinity_count; /* how often it has changed; 0: it is not known */
  schedule schedule;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER, .entry = CLOSED};

static int64_t clock_ns(clockid_t clock) {
  struct timespec t;
  return clock_gettime(clock, &t) == 0 ? (int64_t)t.tv_sec * 1000000000 + t.tv_nsec : 0;
}

int64_t ws_pool_now(void) { return clock_ns(CLOCK_MONOTONIC); }

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
static void yield_cpu(unsigned round, int policy) {
  enum { LONG = 1 << 14, NS = 20000 };
  if (round < LONG || policy == SCHED_OTHER)
    sched_yield();
  else
    nanosleep(&(struct timespec){.tv_nsec = NS}, NULL);
}

void ws_relax(unsigned *round) {
  if (++*round % 256 == 0)
    yield_cpu(*round, pool.schedule.policy);
  else
    pause_cpu();
}

/* What a worker has taken from callers so far, and when it last looked at its clocks. */
typedef struct followed {
  unsigned affinity_count;
  schedule schedule;
  unsigned job;            /* in which it has looked for a place */
  int64_t wall_ns, cpu_ns; /* 0: it has slept since */
} followed;

static void wait_for_job(uint32_t seen, followed *f) {
  int64_t begin = ws_pool_now();
  for (unsigned round = 1; atomic_load_explicit(&pool.generation, memory_order_acquire) == seen; round++) {
    pause_cpu();
    if (round % 64 != 0) continue;
    if (!(atomic_load_explicit(&pool.entry, memory_order_relaxed) & CLOSED)) { /* more may come */
      if (round % 256 == 0) yield_cpu(round, f->schedule.policy);
      begin = ws_pool_now();
    } else if (ws_pool_now() - begin > SPIN_NS) {
      break;
    }
  }
  if (atomic_load(&pool.generation) != seen) return;
  f->wall_ns = 0;
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

/* What a worker has to change before it works as its caller does. */
typedef struct change {
  bool of_schedule, of_affinity;
  int processor; /* -1: it stays */
  schedule schedule;
  ws_affinity affinity;
} change;

/* Inside a job: whether there is nothing to change. A place is looked for once in a job, under the
 * caller's affinity. */
static bool is_settled(followed *f, change *c) {
  c->of_schedule = f->schedule.policy != pool.schedule.policy || f->schedule.priority != pool.schedule.priority;
  c->of_affinity = f->affinity_count != pool.affinity_count;
  c->processor = -1;
  if (c->of_schedule) c->schedule = f->schedule = pool.schedule;
  if (c->of_affinity) c->affinity = pool.affinity, f->affinity_count = pool.affinity_count;
  if (c->of_schedule || c->of_affinity) return false;
  if (f->job != pool.job) c->processor = ws_places_claim(&pool.places);
  f->job = pool.job;
  return c->processor < 0;
}

/* Outside: a thread may wait long for the processor that it is moved to. What the system refuses stays
 * as it is. Nothing is asked for that is so already: in a sandbox the question may end the process. */
static void settle(const change *c) {
  /* the policy first: on a real-time caller's processor a worker without would get no time to take it */
#if defined(__linux__)
  const struct sched_param param = {.sched_priority = c->schedule.priority};
  if (c->of_schedule) (void)!sched_setscheduler(0, c->schedule.policy, &param);
#endif
  if (c->of_affinity) {
    ws_affinity own;
    ws_affinity_get(&own);
    if (!ws_affinity_equal(&own, &c->affinity)) ws_affinity_set(&c->affinity);
  }
  if (c->processor >= 0) ws_place_move(c->processor);
}

/* Looks whether the worker has lost its processor meanwhile: its own clock, a system call, is read
 * once in a millisecond, and after long work. */
static void work_and_watch(int worker, followed *f) {
  enum { PERIOD_NS = 1000000 };
  const int64_t begin = ws_pool_now();
  if (begin - f->wall_ns > PERIOD_NS) f->wall_ns = begin, f->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  pool.fn(pool.context, worker);
  const int64_t end = ws_pool_now();
  if (end - begin < LOST_NS) return;
  const int64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  if (end - f->wall_ns - (cpu_ns - f->cpu_ns) > LOST_NS) atomic_store_explicit(&pool.has_lost, true, memory_order_relaxed);
  f->wall_ns = end, f->cpu_ns = cpu_ns;
}

/* What is stored here is handed over by the release of `entry`. */
static void work_as_caller(int worker, followed *f) {
  ws_fp_enter(&pool.fp_control);
  work_and_watch(worker, f);
  const unsigned raised = ws_fp_raised();
  if (raised) atomic_fetch_or_explicit(&pool.fp_raised, raised, memory_order_relaxed);
}

static void *worker_main(void *arg) {
  const int worker = (int)(intptr_t)arg;
  uint32_t seen = 0;
  followed f = {0, own_schedule(), 0, 0, 0};
  change c;
  introduce_worker();
  for (bool is_ready = true;;) {
    if (is_ready) wait_for_job(seen, &f);
    is_ready = true;
    seen = atomic_load_explicit(&pool.generation, memory_order_acquire);
    if (!enter_job()) continue;
    /* The job entered may be newer than `seen`; then it must not be entered again for nothing. No newer
     * one can start before we leave. */
    seen = atomic_load_explicit(&pool.generation, memory_order_acquire);
    if (worker < pool.n_workers) {
      is_ready = is_settled(&f, &c);
      if (is_ready) work_as_caller(worker, &f);
    }
    atomic_fetch_sub_explicit(&pool.entry, 1, memory_order_release);
    if (!is_ready) settle(&c);
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
  pool.is_open = pool.is_late = false;
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
  atomic_store_explicit(&pool.has_lost, false, memory_order_relaxed);
}

/* Whether somebody had to be woken. */
static bool call_workers(void) {
  atomic_fetch_add(&pool.generation, 1);
  if (atomic_load(&pool.n_asleep) == 0) return false;
  pthread_mutex_lock(&pool.lock);
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  return true;
}

void ws_pool_call(void) {
  if (pool.is_open) call_workers();
}

static void publish(void) {
  publish_caller();
  ws_places_clear(&pool.places);
  ws_places_claim(&pool.places);
  pool.is_open = true;
  /* pairs with the acquire in enter_job */
  atomic_store_explicit(&pool.entry, 0, memory_order_release);
  /* a worker woken on this processor gets it at once, and moves away (place.c) */
  if (call_workers()) sched_yield();
}

void ws_pool_offer(void) {
  if (!pool.is_late || pool.is_open || ws_pool_now() - pool.begun_ns < LATE_NS) return;
  publish();
}

void ws_pool_waited(int64_t ns) { pool.waited_ns += ns; }

static void close_job(void) {
  const int64_t begin = ws_pool_now();
  unsigned round = 0;
  pool.is_late = false;
  if (!pool.is_open) return;
  atomic_fetch_or_explicit(&pool.entry, CLOSED, memory_order_acq_rel);
  while (atomic_load_explicit(&pool.entry, memory_order_acquire) != CLOSED) ws_relax(&round);
  pool.is_open = false;
  const unsigned raised = atomic_load_explicit(&pool.fp_raised, memory_order_relaxed);
  if (raised) ws_fp_raise(raised);
  if (!atomic_load_explicit(&pool.has_lost, memory_order_relaxed)) return;
  const int64_t now = ws_pool_now(), waited = pool.waited_ns + now - begin;
  /* beside a long job a wait is nothing */
  if (waited > LOST_NS && 2 * waited > now - pool.begun_ns) ws_rest_begin(&pool.rest, now, waited);
}

static void run_by_team(const ws_pool_job *job, int n_workers) {
  pool.n_workers = n_workers;
  pool.fn = job->fn;
  pool.context = job->context;
  pool.job++;
  pool.begun_ns = ws_pool_now();
  pool.waited_ns = 0;
  pool.is_late = !job->needs_all && ws_rest_is_on(&pool.rest, pool.begun_ns);
  if (!pool.is_late) publish();
  job->fn(job->context, 0);
  close_job();
}

void ws_pool_run(const ws_pool_job *job) {
  int n_workers = job->n_workers < WS_MAX_WORKERS ? job->n_workers : WS_MAX_WORKERS;
  if (n_workers <= 1 || atomic_exchange_explicit(&pool.taken, true, memory_order_acquire)) {
    job->begin(job->context, 1);
    job->fn(job->context, 0);
    return;
  }
  /* also in a handler that repairs a fault of this thread's: others are at work for it */
  WS_UNCANCELLED;
  create_threads(n_workers - 1);
  if (n_workers > pool.n_created + 1) n_workers = pool.n_created + 1;
  job->begin(job->context, n_workers);
  if (n_workers > 1)
    run_by_team(job, n_workers);
  else
    job->fn(job->context, 0);
  atomic_store_explicit(&pool.taken, false, memory_order_release);
}
