/* clc_mutants.h - the primitives of the simulated device as the protocol sees them; and the same
 * with one thing wrong, or harmlessly different: each mutant drops, moves or doubles a call, and
 * names the rule that this breaks.
 *
 * The protocol's text is always that of cuda/sched/clc_protocol.cuh. Compiled and model-checked,
 * never run on hardware. */
#ifndef WSGEMM_TESTS_CLC_MUTANTS_H
#define WSGEMM_TESTS_CLC_MUTANTS_H
#include "clc_machine.h"

namespace clc_machine {

template <int CLUSTER_BLOCKS> struct primitives {
  using result = clc_machine::result;
  static constexpr int cluster_blocks = CLUSTER_BLOCKS;
  machine &m;
  const int t;

  bool is_first_thread() const { return m.thread_rank(t) == 0; }
  int own_ctaid() const { return m.ctaid(t); }
  int block_rank() const { return m.block_rank(t); }
  void sync_block() const { m.sync(t, m.block_rank(t)); }
  void sync_cluster() const { m.sync(t, machine::of_cluster); }
  void init_barrier() const { m.init_barrier(t); }
  void release_barrier_init() const { m.release_barrier_init(t); }
  void arrive_expect_tx(uint32_t n_bytes) const { m.arrive_expect_tx(t, n_bytes); }
  void wait(uint32_t parity) const { m.wait(t, parity); }
  void acquire_result_reads() const { m.acquire_result_reads(t); }
  void release_result_reads() const { m.release_result_reads(t); }
  void request() const { m.request(t, false); }
  void request_multicast() const { m.request(t, true); }
  result read_result() const { return m.read_result(t); }
  bool is_canceled(result r) const { return m.is_canceled(t, r); }
  int first_ctaid(result r) const { return m.first_ctaid(r); }
};

/* X(name, rule it breaks, rule that is at times broken first, clusters of 1, 2 or both (3), least
 * threads of a block) */
#define CLC_MUTANTS(X)                                                   \
  X(asks_after_refusal, request_after_refusal, none, 3, 1)               \
  X(takes_refusal_for_grant, refusal_decoded, none, 3, 1)                \
  X(decodes_before_asking_whether, refusal_decoded, none, 3, 1)          \
  X(never_waits, read_before_completion, none, 3, 1)                     \
  X(waits_for_the_phase_before, read_before_completion, deadlock, 3, 1)  \
  X(keeps_its_parity, read_before_completion, deadlock, 3, 1)            \
  X(waits_in_first_thread_only, read_before_completion, none, 3, 2)      \
  X(meets_only_once, overwritten_before_read, bodies_overlap, 3, 2)      \
  X(meets_its_cluster_only_once, overwritten_before_read, none, 2, 1)    \
  X(asks_before_the_sync, overwritten_before_read, none, 3, 2)           \
  X(never_acquires, acquire_fence_missing, none, 3, 1)                   \
  X(acquires_after_the_request, acquire_fence_missing, none, 3, 1)       \
  X(acquires_before_the_sync, acquire_fence_missing, none, 3, 2)         \
  X(never_releases, release_fence_missing, none, 3, 1)                   \
  X(releases_before_the_read, release_fence_missing, none, 3, 1)         \
  X(releases_after_the_sync, release_fence_missing, none, 3, 2)          \
  X(releases_in_first_thread_only, release_fence_missing, none, 3, 2)    \
  X(releases_in_asking_block_only, release_fence_missing, none, 2, 1)    \
  X(expects_8_bytes, wrong_bytes, none, 3, 1)                            \
  X(expects_32_bytes, wrong_bytes, none, 3, 1)                           \
  X(arrives_without_bytes, wrong_bytes, none, 3, 1)                      \
  X(never_arrives, wrong_bytes, none, 3, 1)                              \
  X(arrives_twice, wrong_bytes, none, 3, 1)                              \
  X(arrives_in_asking_block_only, wrong_bytes, none, 2, 1)               \
  X(asks_for_its_own_block_only, wrong_bytes, none, 2, 1)                \
  X(meets_only_its_block, cluster_not_running, none, 2, 1)               \
  X(leaves_with_a_request_under_way, write_after_exit, none, 3, 1)       \
  X(leaves_when_idle, write_after_exit, none, 2, 1)                      \
  X(leaves_its_cluster, write_after_exit, none, 2, 1)                    \
  X(keeps_its_item, item_twice, none, 3, 1)                              \
  X(adds_no_rank, item_twice, none, 2, 1)                                \
  X(starts_by_stealing, item_never, none, 3, 1)                          \
  X(drops_a_grant, item_never, none, 3, 1)                               \
  X(never_initialises, barrier_not_ready, none, 3, 1)                    \
  X(never_releases_initialisation, barrier_not_ready, none, 2, 1)        \
  X(does_not_meet_first, barrier_not_ready, none, 1, 2)                  \
  X(asks_twice, request_not_alone, request_after_refusal, 3, 1)          \
  X(asks_in_both_blocks, request_not_alone, request_after_refusal, 2, 1) \
  X(asks_after_the_work, request_not_ahead, none, 3, 1)                  \
  X(meets_without_waiting, bodies_overlap, none, 3, 2)                   \
  X(crosses_ranks, not_neighbours, none, 2, 1)                           \
  X(works_when_idle, no_such_item, none, 2, 1)                           \
  X(meets_once_too_often, deadlock, none, 3, 2)                          \
  /* Harmless: orders and additions that are right too. */               \
  X(arrives_after_the_request, none, none, 3, 1)                         \
  X(meets_before_leaving, none, none, 3, 1)                              \
  X(acquires_in_every_thread, none, none, 3, 1)

enum class mutant {
#define CLC_MUTANT(name, breaks, or_first, clusters, n_threads) name,
  CLC_MUTANTS(CLC_MUTANT)
#undef CLC_MUTANT
};

template <int CLUSTER_BLOCKS> struct mutated : primitives<CLUSTER_BLOCKS> {
  using right = primitives<CLUSTER_BLOCKS>;
  using result = typename right::result;
  using right::m, right::t;
  const mutant which;
  const int n_items;
  mutable int n_syncs = 0, n_waits = 0, n_grants = 0, item = right::own_ctaid();
  mutable bool has_asked = false, owes_request = false, owes_arrival = false, is_leaving = false;

  mutated(machine &m, int t, mutant which, int n_items) : right{m, t}, which(which), n_items(n_items) {}
  bool is(mutant other) const { return which == other; }
  bool asks() const { return right::is_first_thread() && right::block_rank() == 0; }

  int own_ctaid() const { return is(mutant::starts_by_stealing) ? n_items : right::own_ctaid(); }

  void sync_block() const { meet(right::block_rank()); }
  void sync_cluster() const { meet(machine::of_cluster); }
  void meet(int rank) const {
    const bool is_first = n_syncs++ == 0;
    if (is(mutant::does_not_meet_first) && is_first) return;
    if (is(mutant::meets_only_once) && !is_first) return;
    if (is(mutant::meets_only_its_block) || (is(mutant::meets_its_cluster_only_once) && !is_first)) rank = right::block_rank();
    if (is(mutant::acquires_before_the_sync)) right::acquire_result_reads();
    if (is(mutant::meets_once_too_often) && is_first && right::is_first_thread()) m.sync(t, rank);
    m.sync(t, rank, is_first || right::is_first_thread() || !is(mutant::meets_without_waiting));
    if (is(mutant::releases_after_the_sync)) right::release_result_reads();
    if (is(mutant::acquires_in_every_thread)) right::acquire_result_reads();
  }

  void init_barrier() const {
    if (!is(mutant::never_initialises)) right::init_barrier();
  }
  void release_barrier_init() const {
    if (!is(mutant::never_releases_initialisation)) right::release_barrier_init();
  }

  void arrive_expect_tx(uint32_t n_bytes) const {
    owes_arrival = is(mutant::arrives_after_the_request) && asks();
    if (is(mutant::never_arrives) || owes_arrival) return;
    if (is(mutant::arrives_in_asking_block_only) && right::block_rank() != 0) return;
    if (is(mutant::expects_8_bytes)) n_bytes = 8;
    if (is(mutant::expects_32_bytes)) n_bytes = 32;
    if (is(mutant::arrives_without_bytes)) n_bytes = 0;
    right::arrive_expect_tx(n_bytes);
    if (is(mutant::arrives_twice)) right::arrive_expect_tx(n_bytes);
    if (is(mutant::asks_in_both_blocks) && !asks()) right::request_multicast();
  }

  void acquire_result_reads() const {
    if (is(mutant::never_acquires) || is(mutant::acquires_after_the_request) || is(mutant::acquires_before_the_sync)) return;
    right::acquire_result_reads();
  }
  void ask() const {
    m.request(t, CLUSTER_BLOCKS > 1 && !is(mutant::asks_for_its_own_block_only));
    if (is(mutant::asks_twice)) m.request(t, CLUSTER_BLOCKS > 1);
  }
  void request() const {
    owes_request = is(mutant::asks_after_the_work);
    if (!has_asked && !owes_request) ask();
    has_asked = false;
    if (is(mutant::acquires_after_the_request)) right::acquire_result_reads();
    if (owes_arrival) right::arrive_expect_tx(16);
  }
  void request_multicast() const { request(); }

  void wait(uint32_t parity) const {
    n_waits++;
    if (owes_request) ask();
    is_leaving =
        (is(mutant::leaves_with_a_request_under_way) && n_waits == 2) || (is(mutant::leaves_when_idle) && item >= n_items);
    if (is_leaving || is(mutant::never_waits)) return;
    if (is(mutant::waits_in_first_thread_only) && !right::is_first_thread()) return;
    if (is(mutant::waits_for_the_phase_before)) parity ^= 1;
    if (is(mutant::keeps_its_parity)) parity = 0;
    right::wait(parity);
    if (is(mutant::releases_before_the_read)) right::release_result_reads();
  }

  result read_result() const {
    if (is_leaving) return {false, -1};
    const result r = right::read_result();
    if (is(mutant::decodes_before_asking_whether)) right::first_ctaid(r);
    return r;
  }
  bool is_canceled(result r) const {
    if (is_leaving) return false;
    const bool is_granted = right::is_canceled(r);
    n_grants += is_granted;
    if (is(mutant::drops_a_grant) && n_grants == 2) return false;
    if (is(mutant::leaves_its_cluster) && right::block_rank() == 1) return false;
    if (is(mutant::meets_before_leaving) && !is_granted) m.sync(t, CLUSTER_BLOCKS > 1 ? machine::of_cluster : 0);
    return is_granted || is(mutant::asks_after_refusal) || is(mutant::takes_refusal_for_grant);
  }
  int first_ctaid(result r) const {
    if (is(mutant::asks_after_refusal) && !r.is_granted) return n_items;
    int first = right::first_ctaid(r);
    if (is(mutant::keeps_its_item)) first = right::own_ctaid() - right::block_rank();
    if (is(mutant::adds_no_rank)) first -= right::block_rank();
    if (is(mutant::crosses_ranks)) first += 1 - 2 * right::block_rank();
    item = first + right::block_rank();
    return first;
  }

  void release_result_reads() const {
    const bool is_elsewhere = is(mutant::never_releases) || is(mutant::releases_before_the_read) ||
                              is(mutant::releases_after_the_sync) ||
                              (is(mutant::releases_in_first_thread_only) && !right::is_first_thread()) ||
                              (is(mutant::releases_in_asking_block_only) && right::block_rank() != 0);
    if (!is_elsewhere) right::release_result_reads();
    has_asked = is(mutant::asks_before_the_sync) && asks();
    if (!has_asked) return;
    right::acquire_result_reads();
    ask();
  }
};

} // namespace clc_machine
#endif
