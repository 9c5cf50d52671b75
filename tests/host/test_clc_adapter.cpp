/* test_clc_adapter.cpp - the adapters of Cluster Launch Control, cuda/sched/clc.cuh and
 * foreach.cuh, compiled for the host over the simulated device (clc_device.h): they keep every rule
 * of clc_machine.h, and each fault of clc_source_mutants.py that is theirs is found out by the rule
 * that it breaks. Compiled and model-checked, never run on hardware. */
#include "clc_device.h"
#include "clc_runs.h"

/* The adapters in namespace `right`, and each mutant of theirs in a namespace of its name. */
#include "clc_adapter_variants.h"

using namespace clc_machine;

namespace {

template <class Sched> rule run_adapter(const shape &launch, chooser &order, tally &sum) {
  machine m(pool(), launch, order);
  device = &m;
  const ws_sched_args args = {uint32_t(launch.n_items), 0, nullptr, 0, 0};
  const rule broken = m.run([&](int t) {
    Sched sched(args);
    sched.for_each_item([&](int64_t item_idx) { m.body(t, item_idx, n_pauses_of(item_idx)); });
  });
  for (size_t i = 0; i < sum.size(); i++) sum[i] += m.seen[i];
  return broken;
}

using run_function = rule (*)(const shape &, chooser &, tally &);

/* ---- Cases ----------------------------------------------------------------------------------- */

void check_small_grid(const char *name, run_function run, const shape &s, int n_deviations) {
  for (const bool events_first : {false, true}) {
    bounded_chooser order(n_deviations - (check_scale() > 1), events_first);
    tally sum{};
    rule broken;
    do {
      broken = run(s, order, sum);
    } while (broken == rule::none && order.advance());
    CHECK(broken == rule::none, "%s, %d items, %d threads, %d fit, order %lld: %s", name, s.n_items, s.n_threads, s.n_resident,
          sum[orders], rule_text(broken));
    printf("  %s, %d items, %d threads, %d fit, %d deviations:", name, s.n_items, s.n_threads, s.n_resident, n_deviations);
    print(sum);
  }
}

void small_grids() {
  for (const run_function run : {run_adapter<right::ws::sched_clc>, run_adapter<right::ws::sched_foreach>}) {
    const char *const name = run == run_adapter<right::ws::sched_clc> ? "clc" : "foreach";
    check_small_grid(name, run, {2, 1, 1, 2, 1}, 3);
    check_small_grid(name, run, {3, 1, 2, 1, 1}, 2);
  }
  check_small_grid("clc in pairs", run_adapter<right::ws::sched_clc_pair>, {3, 2, 1, 1, 1}, 2);
  check_small_grid("clc in pairs", run_adapter<right::ws::sched_clc_pair>, {4, 2, 2, 1, 1}, 2);
}

void check_in_random_orders(const char *name, run_function run, int cluster_blocks) {
  check_random random = check_random_from(uint64_t(name[0]) + uint64_t(cluster_blocks));
  tally sum{};
  for (int i = 0; i < 2000 / check_scale(); i++) {
    const shape launch = random_shape(random, cluster_blocks, 1, 200);
    const rule broken = run_in_random_order(random, launch, [&](chooser &order) { return run(launch, order, sum); });
    CHECK(broken == rule::none, "%s, order %d: %d items, %d threads, %d fit: %s", name, i, launch.n_items, launch.n_threads,
          launch.n_resident, rule_text(broken));
  }
  CHECK(sum[grants] > 0 && sum[refusals_with_work_left] > 0 && sum[launches_after_refusal] > 0, "%s: not all was seen", name);
  printf("  %s:", name);
  print(sum);
}

void random_orders() {
  check_in_random_orders("clc", run_adapter<right::ws::sched_clc>, 1);
  check_in_random_orders("foreach", run_adapter<right::ws::sched_foreach>, 1);
  check_in_random_orders("clc in pairs", run_adapter<right::ws::sched_clc_pair>, 2);
}

struct mutant_row {
  const char *name;
  rule breaks;
  int cluster_blocks;
  run_function run;
};

/* The schedulers of one namespace. */
template <class Clc, class Pair, class Foreach> run_function runner(int cluster_blocks, bool is_of_foreach) {
  return is_of_foreach ? run_adapter<Foreach> : cluster_blocks == 2 ? run_adapter<Pair> : run_adapter<Clc>;
}

void mutants() {
  static const mutant_row rows[] = {
#define CLC_MUTANT(name, breaks, cluster_blocks, is_of_foreach) \
  {#name, rule::breaks, cluster_blocks,                         \
   runner<name::ws::sched_clc, name::ws::sched_clc_pair, name::ws::sched_foreach>(cluster_blocks, is_of_foreach)},
      CLC_ADAPTER_MUTANTS(CLC_MUTANT)
#undef CLC_MUTANT
  };
  const int n_orders = std::max(100, 400 / check_scale());
  for (const mutant_row &row : rows) {
    check_random random = check_random_from(2000 + uint64_t(&row - rows));
    std::array<int, size_t(rule::n_rules)> n_found{};
    tally sum{};
    for (int i = 0; i < n_orders; i++) {
      const shape launch = random_shape(random, row.cluster_blocks, 1, 40);
      n_found[size_t(run_in_random_order(random, launch, [&](chooser &order) { return row.run(launch, order, sum); }))]++;
    }
    printf("  %-34s %3d of %d orders, others %3d: %s\n", row.name, n_found[size_t(row.breaks)], n_orders,
           n_orders - n_found[0] - n_found[size_t(row.breaks)], rule_text(row.breaks));
    CHECK(n_found[size_t(row.breaks)] > 0, "%s was not found out", row.name);
  }
}

const check_case cases[] = {{"small_grids", small_grids}, {"random_orders", random_orders}, {"mutants", mutants}};

} // namespace

CHECK_MAIN("clc_adapter", cases)
