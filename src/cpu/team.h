/* team.h - a job of many items in a few steps, processed by a team of threads under a schedule
 * policy.
 *
 * Step s has two kinds of items, all independent of each other; step s + 1 begins when every item
 * of step s is done, and sees all that they wrote. Nobody waits for a worker as such, only for
 * items: who comes late joins in, who never comes is not missed (under FIXED_BLOCKS everybody's own
 * share waits for him). */
#ifndef WS_CPU_TEAM_H
#define WS_CPU_TEAM_H
#include <stdint.h>

#include "wsgemm.h"

enum { WS_ITEM_FIRST = 0, WS_ITEM_SECOND = 1, WS_N_KINDS = 2 };

typedef struct ws_team_job {
  wsgemm_policy policy;
  int n_threads; /* at most */
  int64_t n_steps;
  void *context;
  /* Once, before all else, with the number of workers there will be; may prepare memory for each.
   * NULL: there is nothing to do. */
  void (*begin)(void *context, int n_workers);
  /* How many items of each kind step s has. */
  void (*count)(void *context, int64_t step, int64_t n_items[WS_N_KINDS]);
  void (*item)(void *context, int worker, int64_t step, int kind, int64_t item_idx);
} ws_team_job;

void ws_team_run(const ws_team_job *job);
#endif
