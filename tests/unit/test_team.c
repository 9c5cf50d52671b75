/* test_team.c - src/cpu/team.c alone: every item of every step exactly once, and none before all of
 * the step before, over long rows of tiny steps with more workers than processors, so that whoever
 * opens a step is often put to sleep in the middle of it. */
#include "support/check.h"

#include <stdatomic.h>
#include <string.h>

#include "cpu/queue.h"
#include "cpu/team.h"

static const wsgemm_policy policies[] = {WSGEMM_POLICY_FIXED_WORK, WSGEMM_POLICY_FIXED_BLOCKS, WSGEMM_POLICY_STEAL};
enum { MOST_ITEMS = 40, PERIOD = 61 }; /* the numbers of items repeat after PERIOD steps */

struct ledger {
  int64_t n_items[PERIOD][WS_N_KINDS];
  int64_t n_before[PERIOD + 1]; /* steps with items among the first i of a period */
  /* plain on purpose: the turn (see turn_of) in which an item was last done */
  int64_t done[2][WS_N_KINDS * MOST_ITEMS];
  _Atomic int64_t n_done, n_too_early, n_twice;
};

/* The steps that have items, numbered from 1; even and odd turns write different halves of the
 * ledger. */
static int64_t turn_of(const struct ledger *ledger, int64_t step) {
  return step / PERIOD * ledger->n_before[PERIOD] + ledger->n_before[step % PERIOD] + 1;
}

static int64_t items_of(const struct ledger *ledger, int64_t step) {
  return ledger->n_items[step % PERIOD][WS_ITEM_FIRST] + ledger->n_items[step % PERIOD][WS_ITEM_SECOND];
}

static void begin(void *context, int n_workers) {
  (void)context;
  (void)n_workers;
}

static void count(void *context, int64_t step, int64_t n_items[WS_N_KINDS]) {
  const struct ledger *ledger = context;
  memcpy(n_items, ledger->n_items[step % PERIOD], sizeof ledger->n_items[0]);
}

static void item(void *context, int worker, int64_t step, int kind, int64_t item_idx) {
  struct ledger *ledger = context;
  (void)worker;
  const int64_t turn = turn_of(ledger, step);
  int64_t before = step - 1;
  while (before >= 0 && items_of(ledger, before) == 0) before--;
  if (before >= 0)
    for (int64_t i = 0; i < items_of(ledger, before); i++)
      if (ledger->done[(turn - 1) % 2][i] != turn - 1) atomic_fetch_add(&ledger->n_too_early, 1);
  const int64_t here = item_idx + (kind == WS_ITEM_SECOND ? ledger->n_items[step % PERIOD][WS_ITEM_FIRST] : 0);
  if (ledger->done[turn % 2][here] >= turn) atomic_fetch_add(&ledger->n_twice, 1);
  ledger->done[turn % 2][here] = turn;
  atomic_fetch_add(&ledger->n_done, 1);
}

/* most: how many items of a kind a step has at most. Few items leave most ranges of the queue
 * empty. */
static void run(wsgemm_policy policy, int n_threads, int64_t n_steps, int most, struct check_random *rng) {
  static struct ledger ledger;
  memset(&ledger, 0, sizeof ledger);
  for (int s = 0; s < PERIOD; s++) {
    for (int kind = 0; kind < WS_N_KINDS; kind++) ledger.n_items[s][kind] = check_random_in(rng, 0, most);
    ledger.n_before[s + 1] = ledger.n_before[s] + (items_of(&ledger, s) > 0);
  }
  int64_t n_expected = 0;
  for (int64_t s = 0; s < n_steps; s++) n_expected += items_of(&ledger, s);
  const ws_team_job job = {policy, n_threads, n_steps, &ledger, begin, count, item};
  ws_team_run(&job);
  CHECK(ledger.n_done == n_expected && ledger.n_too_early == 0 && ledger.n_twice == 0,
        "policy %d, %d threads, up to %d items: %lld items of %lld done, %lld twice, %lld times before the step before",
        (int)policy, n_threads, most, (long long)ledger.n_done, (long long)n_expected, (long long)ledger.n_twice,
        (long long)ledger.n_too_early);
}

static void long_rows_of_steps(void) {
  struct check_random rng = check_random_from(60);
  static const int n_threads[] = {1, 2, 3, 5, 16}, most[] = {1, 3, MOST_ITEMS};
  for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
    for (size_t t = 0; t < sizeof n_threads / sizeof n_threads[0]; t++)
      for (size_t i = 0; i < sizeof most / sizeof most[0]; i++)
        run(policies[p], n_threads[t], 6000 / check_scale(), most[i], &rng);
}

/* Jobs that are over before the workers have come: late ones enter the next job, or none. */
static void many_jobs(void) {
  struct check_random rng = check_random_from(61);
  for (int i = 0; i < 6000 / check_scale(); i++)
    run(policies[check_random_in(&rng, 0, 2)], (int)check_random_in(&rng, 1, 16), check_random_in(&rng, 0, 9), 3, &rng);
}

static const struct check_case cases[] = {{"long_rows_of_steps", long_rows_of_steps}, {"many_jobs", many_jobs}};
CHECK_MAIN("team", cases)
