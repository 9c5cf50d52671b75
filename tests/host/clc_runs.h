/* clc_runs.h - what the tests over clc_machine.h run: the fibers, shapes of grids, and how long an
 * item takes. */
#ifndef WSGEMM_TESTS_CLC_RUNS_H
#define WSGEMM_TESTS_CLC_RUNS_H
#include <algorithm>
#include <cstdio>

#include "clc_choosers.h"
#include "clc_machine.h"

namespace clc_machine {

inline fibers &pool() {
  static fibers all(n_fibers);
  return all;
}

/* Work of different length: no pauses for most items, a few for others. */
inline int n_pauses_of(int64_t item_idx) { return int(item_idx * 7 % 5 == 0) + int(item_idx % 3 == 1) * 2; }

inline void print(const tally &sum) {
  for (size_t i = 0; i < sum.size(); i++)
    if (sum[i] > 0) printf(" %lld %s,", sum[i], count_text(count(i)));
  printf(" no rule broken\n");
}

/* A random shape: mostly small grids, in which the end is never far. */
inline shape random_shape(check_random &random, int cluster_blocks, int least_threads, int most_items) {
  shape launch;
  launch.n_items = int(check_random_in(&random, 1, check_random_in(&random, 0, 3) == 0 ? most_items : std::min(most_items, 12)));
  launch.cluster_blocks = cluster_blocks;
  launch.n_threads = int(check_random_in(&random, least_threads, max_threads));
  launch.n_resident = int(check_random_in(&random, 1, max_clusters));
  launch.n_priority = int(check_random_in(&random, 0, 12));
  return launch;
}

template <class Run> rule run_in_random_order(check_random &random, const shape &launch, const Run &run) {
  if (check_random_in(&random, 0, 1) == 0) {
    weighted_chooser order(random);
    return run(order);
  }
  priority_chooser order(random, int(check_random_in(&random, 0, 6)), launch.n_items * launch.n_threads * 10);
  return run(order);
}

} // namespace clc_machine
#endif
