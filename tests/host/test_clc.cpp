/* test_clc.cpp - the protocol of Cluster Launch Control (cuda/sched/clc_protocol.cuh) on a
 * simulated device: it keeps every rule of clc_machine.h under all orders of events tried, and each
 * mutant of it (clc_mutants.h) is found out by the rule that it breaks.
 *
 * Orders tried: for small grids all that differ from a plain order at few places, for grids up to
 * 200 items random ones. Compiled and model-checked, never run on hardware. */
#include "clc_mutants.h"
#include "clc_runs.h"
#include "cuda/sched/clc_protocol.cuh"

using namespace clc_machine;

namespace {

template <class Clc> void run_thread(machine &m, const Clc &clc, int64_t n_items) {
  ws::clc::for_each_item(clc, n_items, [&](int64_t item_idx) { m.body(clc.t, item_idx, n_pauses_of(item_idx)); });
}

rule run_protocol(const shape &launch, chooser &order, tally &sum) {
  machine m(pool(), launch, order);
  const rule broken = m.run([&](int t) {
    if (launch.cluster_blocks == 1)
      run_thread(m, primitives<1>{m, t}, launch.n_items);
    else
      run_thread(m, primitives<2>{m, t}, launch.n_items);
  });
  for (size_t i = 0; i < sum.size(); i++) sum[i] += m.seen[i];
  return broken;
}

rule run_mutant(mutant which, const shape &launch, chooser &order) {
  machine m(pool(), launch, order);
  const int n_items = which == mutant::works_when_idle ? launch.n_items + launch.cluster_blocks : launch.n_items;
  return m.run([&](int t) {
    if (launch.cluster_blocks == 1)
      run_thread(m, mutated<1>(m, t, which, n_items), n_items);
    else
      run_thread(m, mutated<2>(m, t, which, n_items), n_items);
  });
}

/* ---- Cases ----------------------------------------------------------------------------------- */

void small_grids() {
  /* items, blocks of a cluster, threads of a block, clusters that fit, priority kernels;
   * deviations */
  static const struct {
    shape launch;
    int n_deviations;
  } grids[] = {{{1, 1, 1, 1, 0}, 4}, {{2, 1, 1, 2, 1}, 4}, {{3, 1, 1, 2, 1}, 3}, {{3, 1, 2, 1, 1}, 3}, {{4, 1, 2, 2, 1}, 2},
               {{2, 1, 3, 2, 1}, 2}, {{1, 2, 1, 1, 0}, 4}, {{3, 2, 1, 1, 1}, 3}, {{4, 2, 2, 1, 1}, 2}, {{5, 2, 1, 2, 1}, 2}};
  for (const auto &grid : grids)
    for (const bool events_first : {false, true}) {
      const shape &s = grid.launch;
      const int n_deviations = grid.n_deviations - (check_scale() > 1);
      bounded_chooser order(n_deviations, events_first);
      tally sum{};
      rule broken;
      do {
        broken = run_protocol(s, order, sum);
      } while (broken == rule::none && order.advance());
      CHECK(broken == rule::none, "%d items, clusters of %d, %d threads, %d fit, order %lld: %s", s.n_items, s.cluster_blocks,
            s.n_threads, s.n_resident, sum[orders], rule_text(broken));
      printf("  %d items, clusters of %d, %d threads, %d fit, %d deviations, events %s:", s.n_items, s.cluster_blocks,
             s.n_threads, s.n_resident, n_deviations, events_first ? "early" : "late");
      print(sum);
    }
}

void random_orders() {
  for (const int cluster_blocks : {1, 2}) {
    check_random random = check_random_from(uint64_t(cluster_blocks));
    tally sum{};
    for (int i = 0; i < 6000 / check_scale(); i++) {
      const shape launch = random_shape(random, cluster_blocks, 1, 200);
      const rule broken = run_in_random_order(random, launch, [&](chooser &c) { return run_protocol(launch, c, sum); });
      CHECK(broken == rule::none, "order %d: %d items, clusters of %d, %d threads, %d fit: %s", i, launch.n_items, cluster_blocks,
            launch.n_threads, launch.n_resident, rule_text(broken));
    }
    printf("  clusters of %d:", cluster_blocks);
    print(sum);
    for (size_t i = 0; i < sum.size(); i++) {
      const bool is_of_clusters = i == bytes_before_arrival || i == rank_1_first || i == blocks_apart;
      CHECK(sum[i] > 0 || (is_of_clusters && cluster_blocks == 1), "clusters of %d: no %s were seen", cluster_blocks,
            count_text(count(i)));
    }
  }
}

struct mutant_row {
  mutant which;
  const char *name;
  rule breaks, or_first;
  int clusters, n_threads;
};

void try_mutant(const mutant_row &row, int cluster_blocks) {
  check_random random = check_random_from(1000 + uint64_t(row.which));
  const int n_orders = std::max(100, 400 / check_scale());
  std::array<int, size_t(rule::n_rules)> n_found{};
  for (int i = 0; i < n_orders; i++) {
    const shape launch = random_shape(random, cluster_blocks, row.n_threads, 40);
    const rule broken = run_in_random_order(random, launch, [&](chooser &c) { return run_mutant(row.which, launch, c); });
    n_found[size_t(broken)]++;
    CHECK(broken == row.breaks || broken == row.or_first || broken == rule::none, "%s, clusters of %d: %s", row.name,
          cluster_blocks, rule_text(broken));
  }
  printf("  clusters of %d, %-32s %3d of %d orders: %s\n", cluster_blocks, row.name, n_found[size_t(row.breaks)], n_orders,
         rule_text(row.breaks));
  if (row.breaks == rule::none)
    CHECK(n_found[0] == n_orders, "%s, clusters of %d, is harmless", row.name, cluster_blocks);
  else
    CHECK(n_found[size_t(row.breaks)] > 0, "%s, clusters of %d, was not found out", row.name, cluster_blocks);
}

void mutants() {
  static const mutant_row rows[] = {
#define CLC_MUTANT(name, breaks, or_first, clusters, n_threads) \
  {mutant::name, #name, rule::breaks, rule::or_first, clusters, n_threads},
      CLC_MUTANTS(CLC_MUTANT)
#undef CLC_MUTANT
  };
  std::array<bool, size_t(rule::n_rules)> is_broken{};
  for (const mutant_row &row : rows) {
    is_broken[size_t(row.breaks)] = true;
    for (const int cluster_blocks : {1, 2})
      if (row.clusters & cluster_blocks) try_mutant(row, cluster_blocks);
  }
  for (size_t i = 0; i < is_broken.size(); i++) CHECK(is_broken[i], "no mutant breaks this rule: %s", rule_text(rule(i)));
}

const check_case cases[] = {{"small_grids", small_grids}, {"random_orders", random_orders}, {"mutants", mutants}};

} // namespace

CHECK_MAIN("clc", cases)
