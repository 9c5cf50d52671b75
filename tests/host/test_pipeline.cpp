/* test_pipeline.cpp - a model of the barriers of cuda/kernels/gemm_wgmma.cuh where two consumers
 * play ping-pong, all of whose interleavings are walked through: a stage is read only when it is
 * full and filled only when it has been read, whatever TMA does first, and nobody waits for ever.
 * Places, parities and the beginning of a turn are not written here: every thread's steps are
 * recorded from cuda/mainloop/pipeline.cuh, which the kernel runs. As in the kernel, a waiter knows
 * no more than the parity of its round.
 *
 * Also that the model finds what it is for: without `begun` (begin_item) a consumer takes the round
 * before its own, which it did not watch, for its own; and if one warp of a consumer says it has
 * begun before the others know that they may, these can wait for ever. */
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <unordered_set>
#include <vector>

#include "cuda/mainloop/pipeline.cuh"

extern "C" {
#include "support/check.h"
}

namespace {

constexpr int max_blocks = 2, max_stages = 4, n_consumers = 2, n_slots = 2, max_warps = 2;
/* the producer, then each consumer's warps */
constexpr int threads_of_block = 1 + n_consumers * max_warps;

/* Who says that a consumer has begun: nobody, its first warp for itself, or when all of its warps
 * have met (as the kernel). */
enum class begun_by { nobody, first_warp, all_warps };

struct protocol {
  /* blocks of a cluster, which fill each other's stages; k blocks of an item */
  int n_blocks, n_stages, n_k, n_items;
  int n_warps; /* of a consumer: 2, or 1 that stands for them all */
  begun_by begun;
  /* Each block fills its stages for the first item before its producer hears of it from another, and
   * for itself alone. */
  bool begins_early;
  int n_early() const { return begins_early ? std::min(n_k, n_stages) : 0; }
};

/* ---- Steps: each waits for something, and then counts some things up ------------------------- */

/* What a thread has done so often. Of all but the stages there is one in a thread's own block. */
enum counter {
  filled,
  released = filled + max_stages,
  heard = released + max_stages,
  published = heard + n_slots,
  begun = published + n_slots,
  met,
  n_counters
};
using counts = std::array<uint8_t, n_counters>;

enum class wait_for { slot_empty, slot_full, stage_empty, stage_full, consumer_begun, own_warps };

struct step {
  wait_for what;
  int place; /* of the stage or slot, or which consumer */
  uint32_t parity;
  int round; /* the round that is meant; own_warps: how often they have met then */
  counts done{};
};

/* Records the steps of a thread, which it makes in the order of its program: no step depends on
 * what others do. */
struct recorder {
  const protocol &p;
  int consumer, warp, n_met = 0;
  std::vector<step> steps{};

  void wait(wait_for what, int place, uint32_t parity, int round) { steps.push_back({what, place, parity, round}); }
  void count(int what) { steps.back().done[size_t(what)]++; }
  void meet() {
    count(met);
    wait(wait_for::own_warps, 0, 0, ++n_met);
  }
};

/* The policy of ping_pong::begin_item; nth: the k block, of all, that the consumer is about to
 * read. */
struct recorded_barriers {
  recorder &r;
  int nth;
  void wait_begun(int consumer, uint32_t parity) const { r.wait(wait_for::consumer_begun, consumer, parity, 0); }
  void wait_full(int place, uint32_t parity) const { r.wait(wait_for::stage_full, place, parity, nth / r.p.n_stages); }
  void meet_consumer() const {
    if (r.p.begun == begun_by::all_warps) r.meet();
  }
  void arrive_begun() const {
    if (r.warp == 0) r.count(begun);
  }
};

template <int N_STAGES> std::vector<step> producer_steps(const protocol &p, int block) {
  recorder r{p, 0, 0};
  ws::pipeline_stage<N_STAGES> stage;
  ws::pipeline_stage<n_slots> slot;
  for (int k_block = 0; k_block < p.n_early(); k_block++) {
    r.wait(wait_for::stage_empty, k_block, stage.empty_parity(), 0);
    r.count(filled + k_block);
  }
  stage.advance(p.n_early());
  /* the last one says that there are no more */
  for (int item = 0; item <= p.n_items; item++, slot.advance()) {
    if (block == 0) {
      r.wait(wait_for::slot_empty, slot.place, slot.empty_parity(), item / n_slots);
      r.count(published + slot.place);
    } else {
      r.wait(wait_for::slot_full, slot.place, slot.full_parity(), item / n_slots);
      r.count(heard + slot.place);
    }
    for (int k_block = item == 0 ? p.n_early() : 0; item < p.n_items && k_block < p.n_k; k_block++, stage.advance()) {
      r.wait(wait_for::stage_empty, stage.place, stage.empty_parity(), (item * p.n_k + k_block) / N_STAGES);
      r.count(filled + stage.place);
    }
  }
  return r.steps;
}

template <int N_STAGES> std::vector<step> consumer_steps(const protocol &p, int consumer, int warp) {
  recorder r{p, consumer, warp};
  ws::pipeline_stage<N_STAGES> stage;
  ws::pipeline_stage<n_slots> slot;
  uint32_t turn = 0;
  for (int item = 0; item <= p.n_items; item++) {
    /* They hear of an item together; the first one stands for them. */
    if (warp == 0) r.wait(wait_for::slot_full, slot.place, slot.full_parity(), item / n_slots);
    if (item == 0 && warp > 0) r.wait(wait_for::own_warps, 0, 0, 0);
    r.meet();
    if (warp == 0) r.count(heard + slot.place);
    slot.advance();
    if (item == p.n_items) break;
    if (!ws::ping_pong::owns_item<n_consumers>(turn++, consumer)) {
      stage.advance(p.n_k);
      continue;
    }
    if (p.begun != begun_by::nobody) ws::ping_pong::begin_item<n_consumers>(recorded_barriers{r, item * p.n_k}, turn - 1, stage);
    r.meet(); /* a warpgroup multiplies together; its first warp stands for it */
    int before = -1;
    for (int k_block = 0; k_block < p.n_k; k_block++, stage.advance()) {
      if (warp > 0) continue;
      r.wait(wait_for::stage_full, stage.place, stage.full_parity(), (item * p.n_k + k_block) / N_STAGES);
      if (before >= 0) r.count(released + before);
      before = stage.place;
    }
    if (warp == 0) r.count(released + before);
  }
  return r.steps;
}

template <int N_STAGES> std::vector<step> steps_of(const protocol &p, int thread) {
  const int in_block = thread % threads_of_block;
  if (in_block > 0 && (in_block - 1) % max_warps >= p.n_warps) return {};
  if (in_block == 0) return producer_steps<N_STAGES>(p, thread / threads_of_block);
  return consumer_steps<N_STAGES>(p, (in_block - 1) / max_warps, (in_block - 1) % max_warps);
}

/* ---- The walk -------------------------------------------------------------------------------- */

/* How far each thread is, and of each stage of each block (last) how many copies from each block
 * have landed. */
struct state {
  std::array<uint8_t, max_blocks * threads_of_block> at{};
  uint8_t landed[max_blocks][max_blocks][max_stages] = {};
};

struct outcome {
  int n_early_reads = 0, n_early_fills = 0, n_stuck = 0, n_ends = 0;
  size_t n_states = 0;
};

class walker {
public:
  explicit walker(const protocol &p) : p(p) {
    for (int t = 0; t < p.n_blocks * threads_of_block; t++) {
      steps.push_back(p.n_stages == 2 ? steps_of<2>(p, t) : p.n_stages == 3 ? steps_of<3>(p, t) : steps_of<4>(p, t));
      std::vector<counts> sums(1);
      for (const step &s : steps.back()) {
        counts sum = sums.back();
        for (size_t i = 0; i < sum.size(); i++) sum[i] = uint8_t(sum[i] + s.done[i]);
        sums.push_back(sum);
      }
      done.push_back(sums);
    }
  }

  outcome walk() {
    reach(state{});
    while (!todo.empty() && result.n_early_reads + result.n_early_fills == 0) {
      const state s = todo.back();
      todo.pop_back();
      follow(s);
    }
    result.n_states = seen.size();
    return result;
  }

private:
  const protocol p;
  std::vector<std::vector<step>> steps;
  std::vector<std::vector<counts>> done; /* by thread, before each step and at the end */
  std::unordered_set<std::string> seen;
  std::vector<state> todo;
  outcome result;

  void reach(const state &s) {
    if (seen.insert(std::string(reinterpret_cast<const char *>(&s), sizeof s)).second) todo.push_back(s);
  }
  int of_thread(const state &s, int t, int what) const { return done[size_t(t)][s.at[size_t(t)]][size_t(what)]; }
  int sum_of(const state &s, int what) const {
    int sum = 0;
    for (size_t t = 0; t < steps.size(); t++) sum += of_thread(s, int(t), what);
    return sum;
  }
  int n_filled(const state &s, int block, int stage) const { return of_thread(s, block * threads_of_block, filled + stage); }
  /* How many copies that another block made for itself alone are not to land in a block. */
  int n_not_sent(int to, int from, int stage) const { return to != from && stage < p.n_early(); }

  /* How many rounds of what the thread's step waits for are complete. */
  int n_complete(const state &s, int t, const step &next) const {
    const int block = t / threads_of_block, first = block * threads_of_block;
    switch (next.what) {
    case wait_for::slot_empty:
      return sum_of(s, heard + next.place) / (n_consumers * p.n_blocks + p.n_blocks - 1);
    case wait_for::slot_full:
      return of_thread(s, 0, published + next.place);
    case wait_for::stage_empty:
      return sum_of(s, released + next.place) / p.n_blocks;
    case wait_for::stage_full: {
      int n = n_filled(s, block, next.place);
      for (int from = 0; from < p.n_blocks; from++)
        n = std::min<int>(n, s.landed[block][from][next.place] + n_not_sent(block, from, next.place));
      return n;
    }
    case wait_for::consumer_begun:
      return of_thread(s, first + 1 + next.place * max_warps, begun);
    default:
      return of_thread(s, first + 1 + ((t - first - 1) ^ 1), met); /* of the other warp */
    }
  }

  bool passes(const state &s, int t, const step &next) {
    const int n = n_complete(s, t, next);
    if (next.what == wait_for::own_warps) return n >= next.round || p.n_warps == 1;
    if ((uint32_t(n) & 1) == next.parity) return false;
    const bool is_of_empty = next.what == wait_for::slot_empty || next.what == wait_for::stage_empty;
    if (is_of_empty) result.n_early_fills += n != next.round;
    if (next.what == wait_for::slot_full || next.what == wait_for::stage_full) result.n_early_reads += n != next.round + 1;
    return true;
  }

  /* A thread has met the other warp, and nobody else can tell when it goes on: then it does so
   * first. */
  bool is_private(const state &s, size_t t) {
    if (s.at[t] == steps[t].size()) return false;
    const step &next = steps[t][s.at[t]];
    return next.what == wait_for::own_warps && next.done == counts{} && passes(s, int(t), next);
  }

  /* All that can happen next. */
  void follow(const state &s) {
    bool is_end = true, is_stuck = true;
    for (size_t t = 0; t < steps.size(); t++) {
      if (!is_private(s, t)) continue;
      state next = s;
      next.at[t]++;
      return reach(next);
    }
    for (size_t t = 0; t < steps.size(); t++) {
      if (s.at[t] == steps[t].size()) continue;
      is_end = false;
      if (!passes(s, int(t), steps[t][s.at[t]])) continue;
      state next = s;
      next.at[t]++;
      reach(next), is_stuck = false;
    }
    for (int to = 0; to < p.n_blocks; to++)
      for (int from = 0; from < p.n_blocks; from++)
        for (int stage = 0; stage < p.n_stages; stage++) {
          if (s.landed[to][from][stage] >= n_filled(s, from, stage) - n_not_sent(to, from, stage)) continue;
          state next = s;
          next.landed[to][from][stage]++;
          reach(next), is_stuck = false;
        }
    result.n_ends += is_stuck && is_end;
    result.n_stuck += is_stuck && !is_end;
  }
};

void check_protocol(const protocol &p) {
  const auto walk_with = [&](begun_by begun) {
    protocol other = p;
    other.begun = begun;
    return walker(other).walk();
  };
  const outcome o = walk_with(begun_by::all_warps);
  printf("  %d blocks, %d stages, %d k blocks, %d items, %s: %zu states\n", p.n_blocks, p.n_stages, p.n_k, p.n_items,
         p.begins_early ? "early" : "not early", o.n_states);
  CHECK(o.n_early_reads == 0 && o.n_early_fills == 0 && o.n_stuck == 0 && o.n_ends == 1,
        "%d blocks, %d stages, %d k blocks, %d items: of %zu states %d read and %d fill a stage too early, %d are stuck, %d the "
        "end",
        p.n_blocks, p.n_stages, p.n_k, p.n_items, o.n_states, o.n_early_reads, o.n_early_fills, o.n_stuck, o.n_ends);
  /* With more k blocks than stages the last to be filled has waited for another to be read, and
   * that one's reader for the first; with half as many or less a stage comes back to whom it was
   * before. */
  const bool is_needed = p.n_k <= p.n_stages && 2 * p.n_k > p.n_stages;
  CHECK((walk_with(begun_by::nobody).n_early_reads > 0) == is_needed, "%d blocks, %d stages, %d k blocks: `begun` is %s",
        p.n_blocks, p.n_stages, p.n_k, is_needed ? "not missed" : "missed");
  if (p.n_warps == 1) return;
  const bool is_meeting_needed =
      p.n_k < p.n_stages && p.n_items >= 3; /* the next item's first stage fits into the pipeline, too */
  CHECK((walk_with(begun_by::first_warp).n_stuck > 0) == is_meeting_needed,
        "%d blocks, %d stages, %d k blocks: that warps meet is %s", p.n_blocks, p.n_stages, p.n_k,
        is_meeting_needed ? "not missed" : "missed");
}

void one_block() {
  for (int n_stages = 2; n_stages <= max_stages; n_stages++)
    for (int n_k = 1; n_k <= 2 * n_stages + 1; n_k++) {
      check_protocol({1, n_stages, n_k, 5, 2, begun_by::all_warps, true});
      check_protocol({1, n_stages, n_k, 5, 2, begun_by::all_warps, false});
    }
}

/* A consumer's warps meet inside their block: one for all of them leaves few enough states. Of 3
 * stages there are millions. */
void clusters() {
  for (int n_k = check_scale() > 1 ? 3 : 1; n_k <= 4; n_k++) {
    check_protocol({2, 2, n_k, 3, 1, begun_by::all_warps, true});
    check_protocol({2, 2, n_k, 3, 1, begun_by::all_warps, false});
  }
}

const check_case cases[] = {{"one_block", one_block}, {"clusters", clusters}};

} // namespace

CHECK_MAIN("pipeline", cases)
