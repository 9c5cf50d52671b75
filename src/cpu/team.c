/* team.c - steps of items over the tile queue and the thread pool.
 *
 * Invariant: `left` counts the items of the current step that are not done, and one more while the
 * step is being opened. Whoever takes it to zero opens the next step: he writes step and left,
 * fills the queues, raises `opened`, and only then gives up the one of his own; so a step whose
 * items are all done by quick workers cannot be followed by the next one while its opener is still
 * filling, and `opened` never falls. A worker that has taken an item reads `step` afterwards: the
 * step cannot change before that item is done, so the two belong together even if the worker fell
 * asleep on the way. */
#include "cpu/team.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "cpu/queue.h"
#include "cpu/threads.h"

/* Those of the team that has the pool, the only one of several workers; 32 KiB that no caller needs
 * to have on its stack. */
static ws_queue queues[WS_N_KINDS];

typedef struct team {
  const ws_team_job *job;
  _Alignas(64) _Atomic int64_t opened; /* steps opened so far; n_steps + 1: all is done */
  _Alignas(64) _Atomic int64_t left;
  _Atomic int64_t step;
  int n_workers;
} team;

/* Whether this was the last: acq_rel, so that he sees every item's writes, and hands them on by
 * filling the queues. */
static bool one_done(team *t) { return atomic_fetch_sub_explicit(&t->left, 1, memory_order_acq_rel) == 1; }

/* Opens the first step from `step` on that has items; the following ones too, for as long as the
 * others are done with each before we are. */
static void open_steps(team *t, int64_t step) {
  do {
    int64_t n_items[WS_N_KINDS] = {0, 0};
    for (; step < t->job->n_steps; step++) {
      t->job->count(t->job->context, step, n_items);
      if (n_items[0] + n_items[1] > 0) break;
    }
    const bool is_end = step >= t->job->n_steps;
    atomic_store_explicit(&t->step, step, memory_order_relaxed);
    atomic_store_explicit(&t->left, is_end ? 0 : n_items[0] + n_items[1] + 1, memory_order_relaxed);
    if (!is_end)
      for (int kind = 0; kind < WS_N_KINDS; kind++) ws_queue_fill(&queues[kind], n_items[kind]);
    /* pairs with the acquire in lead */
    atomic_store_explicit(&t->opened, ++step, memory_order_release);
    if (is_end) return;
    ws_pool_call();
  } while (one_done(t));
}

static void begin(void *context, int n_workers) {
  team *t = context;
  t->n_workers = n_workers;
  if (t->job->begin) t->job->begin(t->job->context, n_workers);
  if (n_workers == 1) return;
  for (int kind = 0; kind < WS_N_KINDS; kind++) ws_queue_init(&queues[kind], t->job->policy, n_workers);
  open_steps(t, 0);
}

static void work_alone(const ws_team_job *job) {
  for (int64_t step = 0; step < job->n_steps; step++) {
    int64_t n_items[WS_N_KINDS];
    job->count(job->context, step, n_items);
    for (int kind = 0; kind < WS_N_KINDS; kind++)
      for (int64_t i = 0; i < n_items[kind]; i++) job->item(job->context, 0, step, kind, i);
  }
}

/* Takes items for as long as there are some. */
static void take_items(team *t, int worker) {
  const ws_team_job *job = t->job;
  for (int kind = 0; kind < WS_N_KINDS; kind++) {
    int64_t item_idx;
    while (ws_queue_take(&queues[kind], worker, &item_idx)) {
      const int64_t step = atomic_load_explicit(&t->step, memory_order_relaxed);
      job->item(job->context, worker, step, kind, item_idx);
      if (one_done(t)) open_steps(t, step + 1);
      if (worker == 0) ws_pool_offer();
    }
  }
}

/* The step after those seen, when it is open. */
static int64_t wait_for_step(team *t, int64_t seen) {
  int64_t opened = atomic_load_explicit(&t->opened, memory_order_acquire);
  if (opened != seen) return opened;
  const int64_t begin = ws_pool_now();
  for (unsigned round = 0; (opened = atomic_load_explicit(&t->opened, memory_order_acquire)) == seen;) ws_relax(&round);
  ws_pool_waited(ws_pool_now() - begin);
  return opened;
}

/* Worker 0 stays until all is done; the others leave, and are called again to each step. */
static void work(void *context, int worker) {
  team *t = context;
  if (t->n_workers == 1)
    work_alone(t->job);
  else if (worker > 0)
    take_items(t, worker);
  else
    for (int64_t opened = 0; (opened = wait_for_step(t, opened)) <= t->job->n_steps;) take_items(t, 0);
}

/* A queue numbers its items in 32 bits. The first two steps are the largest of any job. */
static bool fits_queue(const ws_team_job *job) {
  for (int64_t step = 0; step < 2 && step < job->n_steps; step++) {
    int64_t n_items[WS_N_KINDS];
    job->count(job->context, step, n_items);
    if (n_items[0] >= WS_MAX_ITEMS || n_items[1] >= WS_MAX_ITEMS) return false;
  }
  return true;
}

void ws_team_run(const ws_team_job *job) {
  team t;
  t.job = job;
  atomic_init(&t.opened, 0);
  atomic_init(&t.left, 0);
  atomic_init(&t.step, 0);
  const ws_pool_job pool_job = {job->n_threads > 1 && fits_queue(job) ? job->n_threads : 1,
                                job->policy == WSGEMM_POLICY_FIXED_BLOCKS, begin, work, &t};
  ws_pool_run(&pool_job);
}
