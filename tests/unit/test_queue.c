/* test_queue.c - src/cpu/queue.h alone: each item exactly once under every policy, whatever the
 * threads' timing, over reused phases; and, in one thread, the promises of each policy against a
 * plain model. Made to be run under ThreadSanitizer too: the workers read what the leader wrote
 * before it filled the queue through an ordinary variable. */
#define _GNU_SOURCE
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "cpu/queue.h"

enum { MAX_THREADS = 16, MAX_ITEMS = 3000 };
static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL};

/* ---- One thread, against a model ------------------------------------------------------------- */

struct model {
  wsgemm_policy policy;
  int n_ranges;
  int64_t lo[MAX_THREADS], hi[MAX_THREADS];
};

static struct model model_of(wsgemm_policy policy, int n_workers, int64_t n_items) {
  struct model model = {policy, policy == WSGEMM_POLICY_FIXED_WORK ? 1 : n_workers, {0}, {0}};
  int64_t next = 0;
  for (int w = 0; w < model.n_ranges; w++) {
    model.lo[w] = next;
    next += n_items / model.n_ranges + (w < n_items % model.n_ranges);
    model.hi[w] = next;
  }
  return model;
}

/* Whether the model allows this answer to this worker; takes the item out. */
static bool model_allows(struct model *model, int worker, bool taken, int64_t item) {
  const int own = model->policy == WSGEMM_POLICY_FIXED_WORK ? 0 : worker;
  if (model->lo[own] < model->hi[own]) return taken && item == model->lo[own]++;
  if (model->policy != WSGEMM_POLICY_STEAL) return !taken;
  int64_t longest = 0;
  for (int w = 0; w < model->n_ranges; w++)
    if (model->hi[w] - model->lo[w] > longest) longest = model->hi[w] - model->lo[w];
  if (longest == 0) return !taken;
  for (int w = 0; w < model->n_ranges; w++)
    if (model->hi[w] - model->lo[w] == longest && item == model->hi[w] - 1) {
      model->hi[w]--;
      return taken;
    }
  return false;
}

static void against_model(void) {
  struct check_random random = check_random_from(3);
  static ws_queue queue;
  for (int round = 0; round < 6000 / check_scale(); round++) {
    const wsgemm_policy policy = policies[round % 3];
    const int n_workers = (int)check_random_in(&random, 1, MAX_THREADS);
    const int64_t n_items = check_random_in(&random, 0, 100);
    bool allowed = true;
    ws_queue_init(&queue, policy, n_workers);
    for (int phase = 0; phase < 2; phase++) {
      struct model model = model_of(policy, n_workers, n_items);
      /* asks seldom, so that there is something to steal */
      const int lazy = (int)check_random_in(&random, 0, n_workers - 1);
      ws_queue_fill(&queue, n_items);
      for (int64_t step = 0; step < 4 * n_items + 50; step++) {
        int worker = (int)check_random_in(&random, 0, n_workers - 1);
        if (worker == lazy && step % 8 != 0) worker = (worker + 1) % n_workers;
        int64_t item = -1;
        const bool taken = ws_queue_take(&queue, worker, &item);
        allowed = allowed && model_allows(&model, worker, taken, item);
      }
      for (int worker = 0; worker < n_workers; worker++) { /* drain, then nobody gets anything */
        int64_t item = -1;
        bool taken;
        do {
          taken = ws_queue_take(&queue, worker, &item);
          allowed = allowed && model_allows(&model, worker, taken, item);
        } while (taken && allowed);
      }
      for (int w = 0; w < model.n_ranges; w++) allowed = allowed && model.lo[w] == model.hi[w];
    }
    CHECK(allowed, "policy %d, %d workers, %lld items", (int)policy, n_workers, (long long)n_items);
  }
}

/* The largest number of items, and numbers near 2^31: the two halves of a word do not run into each
 * other. */
static void many_items(void) {
  static ws_queue queue;
  const int64_t n_items = WS_MAX_ITEMS - 1;
  int64_t item = -1;
  ws_queue_init(&queue, WSGEMM_POLICY_STEAL, 2);
  ws_queue_fill(&queue, n_items);
  CHECK(ws_queue_take(&queue, 0, &item) && item == 0, "first of worker 0: %lld", (long long)item);
  CHECK(ws_queue_take(&queue, 1, &item) && item == (n_items + 1) / 2, "first of worker 1: %lld", (long long)item);
  ws_queue_init(&queue, WSGEMM_POLICY_STEAL, 2);
  atomic_store(&queue.range[1].word, ws_range_word((uint64_t)n_items - 3, (uint64_t)n_items));
  CHECK(ws_queue_take(&queue, 0, &item) && item == n_items - 1, "stolen: %lld", (long long)item);
  CHECK(ws_queue_take(&queue, 1, &item) && item == n_items - 3, "own: %lld", (long long)item);
  CHECK(ws_queue_take(&queue, 0, &item) && item == n_items - 2, "stolen: %lld", (long long)item);
  CHECK(!ws_queue_take(&queue, 0, &item) && !ws_queue_take(&queue, 1, &item), "an item too many: %lld", (long long)item);
}

/* ---- Many threads ---------------------------------------------------------------------------- */

struct crew {
  ws_queue queue;
  int n_workers, n_phases;
  int64_t n_items[64]; /* per phase */
  int payload;         /* plain on purpose: written by the leader before it fills */
  atomic_int phase;    /* n_phases: done */
  atomic_llong n_done; /* items done in this phase */
  atomic_int times_taken[MAX_ITEMS];
  atomic_llong n_wrong_payload;
};

struct member {
  struct crew *crew;
  int worker;
  pthread_t thread;
};

static void dawdle(struct check_random *random) {
  const unsigned long long rng = check_random_bits(random) % 16;
  if (rng == 0)
    sched_yield();
  else if (rng < 4)
    for (volatile int spin = 0; spin < (int)(rng * 40);) spin = spin + 1;
}

static void work(struct crew *crew, int worker, struct check_random *random) {
  int64_t item;
  while (ws_queue_take(&crew->queue, worker, &item)) {
    if (crew->payload != atomic_load_explicit(&crew->phase, memory_order_relaxed)) atomic_fetch_add(&crew->n_wrong_payload, 1);
    atomic_fetch_add_explicit(&crew->times_taken[item], 1, memory_order_relaxed);
    dawdle(random);
    atomic_fetch_add_explicit(&crew->n_done, 1, memory_order_release);
  }
}

static void *member_main(void *argument) {
  const struct member *member = argument;
  struct check_random random = check_random_from(100 + (unsigned)member->worker);
  while (atomic_load(&member->crew->phase) < member->crew->n_phases) {
    work(member->crew, member->worker, &random);
    sched_yield();
  }
  return NULL;
}

static void lead(struct crew *crew) {
  struct check_random random = check_random_from(99);
  for (int phase = 0; phase < crew->n_phases; phase++) {
    const int64_t n_items = crew->n_items[phase];
    for (int64_t i = 0; i < MAX_ITEMS; i++) atomic_store_explicit(&crew->times_taken[i], 0, memory_order_relaxed);
    atomic_store(&crew->n_done, 0);
    atomic_store(&crew->phase, phase);
    crew->payload = phase;
    ws_queue_fill(&crew->queue, n_items);
    while (atomic_load_explicit(&crew->n_done, memory_order_acquire) < n_items) {
      work(crew, 0, &random);
      sched_yield();
    }
    int64_t n_wrong = 0;
    for (int64_t i = 0; i < MAX_ITEMS; i++)
      n_wrong += atomic_load_explicit(&crew->times_taken[i], memory_order_relaxed) != (i < n_items);
    CHECK(n_wrong == 0, "policy %d, %d workers, phase %d: %lld of %lld items not taken exactly once", (int)crew->queue.policy,
          crew->n_workers, phase, (long long)n_wrong, (long long)n_items);
  }
  atomic_store(&crew->phase, crew->n_phases);
}

static void exactly_once(void) {
  static struct crew crew;
  struct check_random random = check_random_from(4);
  for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
    for (int n_workers = 1; n_workers <= MAX_THREADS; n_workers++) {
      struct member members[MAX_THREADS];
      ws_queue_init(&crew.queue, policies[p], n_workers);
      crew.n_workers = n_workers;
      crew.n_phases = check_scale() > 1 ? 6 : 24;
      for (int phase = 0; phase < crew.n_phases; phase++)
        crew.n_items[phase] = check_random_in(&random, 0, phase % 3 == 0 ? n_workers + 2 : phase % 3 == 1 ? 100 : MAX_ITEMS);
      atomic_store(&crew.phase, 0);
      crew.payload = 0;
      for (int w = 1; w < n_workers; w++) {
        members[w].crew = &crew;
        members[w].worker = w;
        REQUIRE(pthread_create(&members[w].thread, NULL, member_main, &members[w]) == 0, "thread %d", w);
      }
      lead(&crew);
      for (int w = 1; w < n_workers; w++) pthread_join(members[w].thread, NULL);
      CHECK(atomic_load(&crew.n_wrong_payload) == 0, "%lld items were taken without what was written before the filling",
            atomic_load(&crew.n_wrong_payload));
    }
}

static const struct check_case cases[] = {
    {"against_model", against_model}, {"many_items", many_items}, {"exactly_once", exactly_once}};
CHECK_MAIN("queue", cases)
