/* clc_machine.cpp - see clc_machine.h: first the device and who goes on when, then the primitives,
 * each with the rules it checks. Compiled and model-checked, never run on hardware. */
#include "clc_machine.h"

#include <algorithm>

namespace clc_machine {

const char *rule_text(rule broken) {
  static const char *const texts[] = {"no rule is broken",
#define CLC_RULE(name, text) text,
                                      CLC_RULES(CLC_RULE)
#undef CLC_RULE
  };
  return texts[size_t(broken)];
}

const char *count_text(count which) {
  static const char *const texts[] = {
#define CLC_COUNT(name, text) text,
      CLC_COUNTS(CLC_COUNT)
#undef CLC_COUNT
  };
  return texts[which];
}

void clock::join(const clock &other) {
  for (size_t i = 0; i < thread.size(); i++) thread[i] = std::max(thread[i], other.thread[i]);
  for (size_t i = 0; i < result.size(); i++) result[i] = std::max(result[i], other.result[i]);
}

/* ---- The device ------------------------------------------------------------------------------ */

static int n_clusters_of(const shape &launch) { return (launch.n_items + launch.cluster_blocks - 1) / launch.cluster_blocks; }

machine::machine(fibers &pool, const shape &launch, chooser &order)
    : pool(pool), launch(launch), order(order), n_visits(size_t(launch.n_items) * max_threads), owner(size_t(launch.n_items), -1),
      n_grid_clusters(n_clusters_of(launch)), n_priority_left(launch.n_priority) {}

rule machine::run(const std::function<void(int)> &thread_program) {
  program = &thread_program;
  pool.live = [this](int t) { return live(t); };
  seen[orders]++;
  const int first = next(fibers::caller);
  if (first != fibers::caller) pool.switch_to(first);
  if (broken != rule::none) {
    for (int t = 0; t < n_fibers; t++)
      if (thread(t).is_alive) pool.switch_to(t); /* to unwind */
    return broken;
  }
  for (int item_idx = 0; item_idx < launch.n_items; item_idx++)
    for (int rank = 0; rank < launch.n_threads; rank++)
      if (n_visits[size_t(item_idx * max_threads + rank)] == 0) return rule::item_never;
  return rule::none;
}

int machine::live(int t) {
  thread(t).is_alive = true;
  running_thread = t;
  try {
    (*program)(t);
  } catch (const stopped &) {
    thread(t).is_alive = false;
    return fibers::caller;
  }
  thread(t).is_alive = false;
  exit_thread(t);
  return next(t);
}

void machine::fail(rule which) {
  report(which);
  throw stopped{};
}

/* The end of a thread's step; returns at the beginning of its next one. */
void machine::pause(int t) {
  const int to = next(t);
  if (to != t) pool.switch_to(to);
  running_thread = t;
  if (broken != rule::none) throw stopped{};
}

/* Lets the device go on until a thread is to make a step: its fiber; or the caller's, when all is
 * over. */
int machine::next(int running) {
  while (broken == rule::none) {
    list_actions(running);
    if (actions.empty()) {
      const bool is_over = next_cluster == n_grid_clusters &&
                           std::none_of(clusters.begin(), clusters.end(), [](const cluster_state &c) { return c.is_resident; });
      if (!is_over) report(why_stuck());
      break;
    }
    if (++seen[choices] > most_choices) {
      report(rule::deadlock);
      break;
    }
    const action a = actions[order.choose(actions)];
    if (a.kind == action::step) return a.index;
    perform(a);
  }
  return fibers::caller;
}

void machine::list_actions(int running) {
  actions.clear();
  const auto is_ready = [this](int t) { return thread(t).state == thread_state::ready; };
  if (running != fibers::caller && is_ready(running)) actions.push_back({action::step, running});
  for (int t = 0; t < launch.n_resident * max_cluster_threads; t++)
    if (t != running && is_ready(t)) actions.push_back({action::step, t});
  bool has_room = false;
  for (int slot = 0; slot < launch.n_resident; slot++) {
    const cluster_state &c = clusters[size_t(slot)];
    has_room |= !c.is_resident;
    if (!c.is_resident) continue;
    for (int rank = 0; rank < launch.cluster_blocks; rank++) {
      if (c.uncompleted >> rank & 1) actions.push_back({action::complete, slot * max_cluster_blocks + rank});
      if (c.is_decided && (c.unwritten >> rank & 1)) actions.push_back({action::write, slot * max_cluster_blocks + rank});
      if (!c.block[size_t(rank)].has_started) actions.push_back({action::start, slot * max_cluster_blocks + rank});
    }
    if (c.is_asked && !c.is_decided) actions.push_back({action::decide, slot});
  }
  const bool has_work = next_cluster < n_grid_clusters;
  if (has_work && has_room && !is_priority) actions.push_back({action::launch, 0});
  if (is_priority) actions.push_back({action::priority_goes, 0});
  if (has_work && !is_priority && n_priority_left > 0) actions.push_back({action::priority_comes, 0});
}

void machine::perform(action a) {
  const size_t slot = size_t(a.index / max_cluster_blocks);
  const int rank = a.index % max_cluster_blocks;
  switch (a.kind) {
  case action::write:
    return write_result(clusters[slot], rank);
  case action::complete:
    return complete(slot, rank);
  case action::start:
    return start_block(slot, rank);
  case action::decide:
    return decide(clusters[size_t(a.index)]);
  case action::launch:
    return launch_cluster();
  case action::priority_goes:
    is_priority = false;
    return;
  default:
    is_priority = true;
    n_priority_left--;
  }
}

void machine::launch_cluster() {
  cluster_state &c = *std::find_if(clusters.begin(), clusters.end(), [](const cluster_state &slot) { return !slot.is_resident; });
  c = cluster_state{};
  c.is_resident = true;
  c.first_ctaid = next_cluster++ * launch.cluster_blocks;
  seen[launches_after_refusal] += was_refused;
}

void machine::start_block(size_t slot, int rank) {
  cluster_state &c = clusters[slot];
  c.block[size_t(rank)].has_started = true;
  seen[blocks_apart] += c.sync.n_arrived > 0;
  for (int i = 0; i < launch.n_threads; i++) {
    const int t = int(slot) * max_cluster_threads + rank * max_threads + i;
    thread(t) = thread_state{};
    thread(t).state = thread_state::ready;
    tick(t);
  }
}

void machine::decide(cluster_state &c) {
  const bool has_work = next_cluster < n_grid_clusters, is_granted = has_work && !is_priority;
  c.answer = {is_granted, is_granted ? next_cluster++ * launch.cluster_blocks : -1};
  c.is_decided = true;
  was_refused |= has_work && !is_granted;
  seen[grants] += is_granted;
  seen[refusals_with_work_left] += has_work && !is_granted;
}

void machine::write_result(cluster_state &c, int rank) {
  block_state &b = c.block[size_t(rank)];
  b.last = c.answer;
  b.n_written++;
  c.unwritten &= ~(1u << rank);
  c.uncompleted |= 1u << rank;
}

void machine::complete(size_t slot, int rank) {
  cluster_state &c = clusters[slot];
  block_state &b = c.block[size_t(rank)];
  seen[bytes_before_arrival] += b.pending_arrivals > 0;
  seen[rank_1_first] += rank > 0 && (c.uncompleted | c.unwritten) & 1;
  b.n_completed++;
  b.completed_in_phase++;
  b.tx_bytes -= 16;
  c.uncompleted &= ~(1u << rank);
  if ((c.unwritten | c.uncompleted) == 0) c.is_asked = c.is_decided = false;
  complete_phase_if_due(slot, rank);
}

void machine::complete_phase_if_due(size_t slot, int rank) {
  block_state &b = clusters[slot].block[size_t(rank)];
  if (b.pending_arrivals > 0 || b.tx_bytes != 0) return;
  if (b.completed_in_phase != 1) return report(rule::wrong_bytes);
  b.visible = b.n_completed;
  b.n_phases++;
  b.pending_arrivals = b.n_arrivals;
  b.completed_in_phase = 0;
  for (int i = 0; i < launch.n_threads; i++) {
    thread_state &waiter = thread(int(slot) * max_cluster_threads + rank * max_threads + i);
    if (waiter.state == thread_state::at_barrier && (b.n_phases & 1) != waiter.parity) waiter.state = thread_state::ready;
  }
}

rule machine::why_stuck() const {
  for (const cluster_state &c : clusters)
    for (const block_state &b : c.block)
      if (c.is_resident && b.tx_bytes != 0) return rule::wrong_bytes;
  return rule::deadlock;
}

void machine::exit_thread(int t) {
  cluster_state &c = cluster(t);
  block_state &b = block(t);
  const int rank = block_rank(t), first = t - thread_rank(t);
  thread(t).state = thread_state::exited;
  b.n_exited++;
  meet_if_all(cluster_of(t), rank);
  meet_if_all(cluster_of(t), of_cluster);
  meet_if_all(cluster_of(t), of_library);
  if (b.n_exited < launch.n_threads) return;
  uint32_t n_seen = 0;
  for (int u = first; u < first + launch.n_threads; u++) n_seen = std::max(n_seen, thread(u).seen.result[size_t(rank)]);
  if (n_seen < b.n_requested) return report(rule::write_after_exit);
  if (++c.n_blocks_exited == launch.cluster_blocks) c.is_resident = false;
}

/* ---- Meeting --------------------------------------------------------------------------------- */

machine::meeting &machine::meeting_at(size_t slot, int rank) {
  cluster_state &c = clusters[slot];
  if (rank == of_cluster) return c.sync;
  return rank == of_library ? c.block[0].library_sync : c.block[size_t(rank)].sync;
}

/* Ends the meeting of a block, or of the cluster, if all of its threads that have not exited are
 * there. */
void machine::meet_if_all(size_t slot, int rank) {
  cluster_state &c = clusters[slot];
  meeting &m = meeting_at(slot, rank);
  int n_expected = 0;
  for (int r = 0; r < launch.cluster_blocks; r++)
    if (rank < 0 || rank == r) n_expected += launch.n_threads - c.block[size_t(r)].n_exited;
  if (m.n_arrived == 0 || m.n_arrived < n_expected) return;
  for (const int t : m.waiting) {
    thread(t).seen.join(m.seen);
    thread(t).released.join(m.released);
    thread(t).state = thread_state::ready;
  }
  m = meeting{};
}

void machine::sync(int t, int rank, bool waits) {
  pause(t);
  meeting &m = meeting_at(cluster_of(t), rank < 0 ? rank : block_rank(t));
  m.n_arrived++;
  m.seen.join(thread(t).seen);
  m.released.join(thread(t).released);
  if (waits) {
    m.waiting.push_back(t);
    thread(t).state = thread_state::at_sync;
  }
  meet_if_all(cluster_of(t), rank);
  pause(t);
}

/* ---- Barrier --------------------------------------------------------------------------------- */

void machine::check_barrier_ready(int t, int rank, const void *barrier_at) {
  const block_state &b = cluster(t).block[size_t(rank)];
  const bool is_seen = b.is_init && thread(t).seen.thread[in_cluster(b.init_by)] >= b.init_at;
  if (!is_seen || (rank != block_rank(t) && !b.is_init_released)) fail(rule::barrier_not_ready);
  if (b.barrier_at != barrier_at) fail(rule::barrier_not_ready);
}

void machine::init_barrier(int t, uint32_t n_arrivals, const void *barrier_at) {
  pause(t);
  block_state &b = block(t);
  b.is_init = true;
  b.init_by = t;
  b.init_at = tick(t);
  b.n_arrivals = b.pending_arrivals = int32_t(n_arrivals);
  b.barrier_at = barrier_at;
}

void machine::release_barrier_init(int t) {
  if (block(t).is_init && block(t).init_by == t) block(t).is_init_released = true;
}

void machine::arrive_expect_tx(int t, uint32_t n_bytes, const void *barrier_at) {
  pause(t);
  check_barrier_ready(t, block_rank(t), barrier_at);
  block_state &b = block(t);
  if (b.pending_arrivals == 0) fail(rule::wrong_bytes);
  b.tx_bytes += int32_t(n_bytes);
  b.pending_arrivals--;
  complete_phase_if_due(cluster_of(t), block_rank(t));
}

void machine::sleep_until_complete(int t, uint32_t parity) {
  if ((block(t).n_phases & 1) != parity) return;
  thread(t).parity = parity;
  thread(t).state = thread_state::at_barrier;
  pause(t);
}

void machine::wait(int t, uint32_t parity) {
  pause(t);
  check_barrier_ready(t, block_rank(t));
  sleep_until_complete(t, parity);
  uint32_t &n_seen = thread(t).seen.result[size_t(block_rank(t))];
  n_seen = std::max(n_seen, block(t).visible);
}

bool machine::try_wait(int t, uint32_t parity, bool is_of_cluster, const void *barrier_at) {
  pause(t);
  check_barrier_ready(t, block_rank(t), barrier_at);
  const uint32_t next_phase = block(t).n_phases + 1;
  if ((block(t).n_phases & 1) == parity && thread(t).n_refused < next_phase) {
    thread(t).n_refused = next_phase;
    return false;
  }
  sleep_until_complete(t, parity);
  uint32_t &n_seen = thread(t).seen.result[size_t(block_rank(t))];
  if (is_of_cluster || launch.cluster_blocks == 1) n_seen = std::max(n_seen, block(t).visible);
  return true;
}

/* ---- Requests and results -------------------------------------------------------------------- */

/* Covers this thread's own reads, not those of others that it has seen. */
void machine::release_result_reads(int t) { thread(t).released.thread[in_cluster(t)] = thread(t).seen.thread[in_cluster(t)]; }

void machine::acquire_result_reads(int t) { thread(t).acquired.join(thread(t).released); }

/* A block's result may be written over by thread t's request if each of its threads has read it
 * before, and has handed it over. */
void machine::check_reads(int t, int rank) {
  const block_state &b = cluster(t).block[size_t(rank)];
  const int first = t - t % max_cluster_threads + rank * max_threads;
  for (int u = first; u < first + launch.n_threads; u++) {
    if (thread(u).n_read < b.n_requested) fail(rule::overwritten_before_read);
    const uint32_t read_at = thread(u).read_at;
    const size_t i = in_cluster(u);
    if (thread(t).seen.thread[i] < read_at) fail(rule::overwritten_before_read);
    if (thread(t).acquired.thread[i] >= read_at) continue;
    fail(thread(t).released.thread[i] < read_at ? rule::release_fence_missing : rule::acquire_fence_missing);
  }
}

void machine::request(int t, bool multicast, const void *result_at, const void *barrier_at) {
  pause(t);
  cluster_state &c = cluster(t);
  const int cluster_first = t - t % max_cluster_threads;
  if (c.refusal_seen) fail(rule::request_after_refusal);
  for (int rank = 0; rank < launch.cluster_blocks; rank++) {
    bool is_running = false; /* and known to be */
    for (int u = cluster_first + rank * max_threads; u < cluster_first + rank * max_threads + launch.n_threads; u++)
      is_running |= thread(t).seen.thread[in_cluster(u)] > 0;
    if (!is_running) fail(rule::cluster_not_running);
    if (c.block[size_t(rank)].n_exited == launch.n_threads) fail(rule::write_after_exit);
  }
  if (thread(t).seen.result[size_t(block_rank(t))] < block(t).n_requested) fail(rule::request_not_alone);
  const unsigned to = multicast ? (1u << launch.cluster_blocks) - 1 : 1u << block_rank(t);
  for (int rank = 0; rank < launch.cluster_blocks; rank++) {
    if (!(to >> rank & 1)) continue;
    check_barrier_ready(t, rank, barrier_at);
    check_reads(t, rank);
    c.block[size_t(rank)].n_requested++;
    c.block[size_t(rank)].result_at = result_at;
  }
  c.unwritten = to;
  c.is_asked = true;
}

result machine::read_result(int t, const void *result_at) {
  pause(t);
  if (block(t).result_at != result_at) fail(rule::read_before_completion);
  thread_state &reader = thread(t);
  const uint32_t n_seen = reader.seen.result[size_t(block_rank(t))];
  if (n_seen <= reader.n_read) fail(rule::read_before_completion);
  if (block(t).n_written > n_seen) fail(rule::overwritten_before_read);
  reader.n_read = n_seen;
  reader.read_at = tick(t);
  return block(t).last;
}

bool machine::is_canceled(int t, result r) {
  cluster(t).refusal_seen |= !r.is_granted;
  return r.is_granted;
}

int machine::first_ctaid(result r) {
  if (!r.is_granted) fail(rule::refusal_decoded);
  return r.first_ctaid;
}

/* ---- Work ------------------------------------------------------------------------------------ */

void machine::body(int t, int64_t item_idx, int n_pauses) {
  pause(t);
  thread_state &worker = thread(t);
  if (item_idx < 0 || item_idx >= launch.n_items) fail(rule::no_such_item);
  if (in_cluster(t) == 0 && block(t).n_requested <= worker.n_read) fail(rule::request_not_ahead);

  const uint32_t n_before = worker.n_entered++;
  const int first = t - thread_rank(t);
  for (int u = first; n_before > 0 && u < first + launch.n_threads; u++) {
    const bool has_left = thread(u).n_left >= n_before && worker.seen.thread[in_cluster(u)] >= thread(u).left_at[n_before & 1];
    if (!has_left) fail(rule::bodies_overlap);
  }

  int &done_by = owner[size_t(item_idx)];
  if (done_by < 0) done_by = ctaid(t);
  if (done_by != ctaid(t) || n_visits[size_t(item_idx) * max_threads + size_t(thread_rank(t))]++ > 0) fail(rule::item_twice);
  std::vector<int64_t> &base = cluster(t).base;
  if (base.size() <= worker.n_read) base.resize(worker.n_read + 1, -1);
  int64_t &round_base = base[worker.n_read];
  if (round_base < 0) round_base = item_idx - block_rank(t);
  if (round_base != item_idx - block_rank(t)) fail(rule::not_neighbours);

  for (int i = 0; i < n_pauses; i++) pause(t);
  worker.n_left++;
  worker.left_at[worker.n_left & 1] = tick(t);
}

} // namespace clc_machine
