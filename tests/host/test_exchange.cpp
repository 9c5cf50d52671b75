/* test_exchange.cpp - a model of the blocks of a cluster that sum parts of k (gemm_wgmma_once.cuh):
 * all interleavings of what they do after their last k blocks are walked through, and sums on their
 * way land whenever they like. A part lands only where nobody still reads stages, or, where parts
 * have room of their own, in a block that has begun, and in no block that has ended; a share is added
 * up only when all of its parts are there, in the order of k; and nobody waits for ever. The steps
 * are recorded from exchange_parts of pipeline.cuh, which the kernel runs.
 *
 * Also that the model finds what it is for: without the meeting a part lands in a stage that is
 * being read, or in a block that has not begun, and without the wait parts are missed, and land in a
 * block that has ended. */
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

constexpr int max_blocks = 4, max_consumers = 2, max_threads = max_blocks * max_consumers;
enum class fault { none, no_meeting, no_wait };

/* What a consumer does: the model has one thread for each. */
enum class act { read, arrive, wait_met, send, wait_parts, add };
struct step {
  act what;
  int which; /* send: to which block; add: which part */
};

struct recorder {
  int block;
  bool apart; /* a block arrives when it begins */
  fault leaves_out;
  std::vector<step> &steps;
  int rank() const { return block; }
  void meet() const {
    if (leaves_out == fault::no_meeting) return;
    if (!apart) steps.push_back({act::arrive, 0});
    steps.push_back({act::wait_met, 0});
  }
  void send(int to) const { steps.push_back({act::send, to}); }
  void wait_parts() const {
    if (leaves_out != fault::no_wait) steps.push_back({act::wait_parts, 0});
  }
  void add(int part) const { steps.push_back({act::add, part}); }
};

struct state {
  std::array<uint8_t, max_threads> at{};
  bool landed[max_threads][max_blocks] = {};
};

struct outcome {
  int n_too_early = 0, n_into_the_void = 0, n_missed = 0, n_stuck = 0, n_ends = 0;
  size_t n_states = 0;
};

template <int N_BLOCKS, int N_SHARERS> class walker {
public:
  walker(int n_consumers, bool apart, fault leaves_out)
      : n_threads(N_BLOCKS * n_consumers), n_consumers(n_consumers), apart(apart) {
    for (int t = 0; t < n_threads; t++) {
      steps.push_back({{act::read, 0}, {act::read, 1}});
      if (apart) steps.back().insert(steps.back().begin(), {act::arrive, 0});
      ws::exchange_parts<N_BLOCKS, N_SHARERS>(recorder{t / n_consumers, apart, leaves_out, steps.back()});
    }
  }

  outcome walk() {
    reach(state{});
    while (!todo.empty()) {
      const state s = todo.back();
      todo.pop_back();
      follow(s);
    }
    result.n_states = seen.size();
    return result;
  }

  /* Each sharer adds all parts, from the first on. */
  bool adds_in_order() const {
    for (int t = 0; t < n_threads; t++) {
      int next = 0;
      for (const step &s : steps[size_t(t)])
        if (s.what == act::add && s.which != next++) return false;
      if (next != (t / n_consumers < N_SHARERS ? N_BLOCKS : 0)) return false;
    }
    return true;
  }

private:
  const int n_threads, n_consumers;
  const bool apart;
  std::vector<std::vector<step>> steps;
  std::unordered_set<std::string> seen;
  std::vector<state> todo;
  outcome result;

  void reach(const state &s) {
    if (seen.insert(std::string(reinterpret_cast<const char *>(&s), sizeof s)).second) todo.push_back(s);
  }
  bool has_done(const state &s, int t, act what, int which) const {
    for (int i = 0; i < s.at[size_t(t)]; i++)
      if (steps[size_t(t)][size_t(i)].what == what && steps[size_t(t)][size_t(i)].which == which) return true;
    return false;
  }
  bool has_ended(const state &s, int t) const { return s.at[size_t(t)] == steps[size_t(t)].size(); }
  /* of another block's part of the block's share */
  bool are_there(const state &s, int block, int part) const {
    for (int t = part * n_consumers; t < (part + 1) * n_consumers; t++)
      if (!s.landed[t][block]) return false;
    return true;
  }

  bool passes(const state &s, int t, const step &next) const {
    const int block = t / n_consumers;
    if (next.what == act::wait_met)
      for (int other = 0; other < n_threads; other++)
        if (!has_done(s, other, act::arrive, 0)) return false;
    if (next.what == act::wait_parts)
      for (int part = 0; part < N_BLOCKS; part++)
        if (part != block && !are_there(s, block, part)) return false;
    return true;
  }

  void land(const state &s, int from, int to) {
    bool all_ended = true;
    for (int t = to * n_consumers; t < (to + 1) * n_consumers; t++) {
      result.n_too_early += apart ? !has_done(s, t, act::arrive, 0) : !has_done(s, t, act::read, 1);
      all_ended = all_ended && has_ended(s, t);
    }
    result.n_into_the_void += all_ended;
    state next = s;
    next.landed[from][to] = true;
    reach(next);
  }

  void follow(const state &s) {
    bool is_end = true, is_stuck = true;
    for (int t = 0; t < n_threads; t++) {
      if (has_ended(s, t)) continue;
      is_end = false;
      const step &next = steps[size_t(t)][s.at[size_t(t)]];
      if (!passes(s, t, next)) continue;
      const int block = t / n_consumers;
      if (next.what == act::add && next.which != block) result.n_missed += !are_there(s, block, next.which);
      state after = s;
      after.at[size_t(t)]++;
      reach(after), is_stuck = false;
    }
    for (int t = 0; t < n_threads; t++)
      for (int to = 0; to < N_SHARERS; to++)
        if (!s.landed[t][to] && has_done(s, t, act::send, to)) land(s, t, to), is_stuck = false;
    result.n_ends += is_stuck && is_end;
    result.n_stuck += is_stuck && !is_end;
  }
};

template <int N_BLOCKS, int N_SHARERS> void check_blocks(int n_consumers, bool apart) {
  const char *const where = apart ? "apart" : "in stages";
  walker<N_BLOCKS, N_SHARERS> as_it_is(n_consumers, apart, fault::none);
  CHECK(as_it_is.adds_in_order(), "%d blocks, %d of them with a share: parts are added in another order", N_BLOCKS, N_SHARERS);
  const outcome o = as_it_is.walk();
  printf("  %d blocks of %d consumers, %d with a share, parts %s: %zu states\n", N_BLOCKS, n_consumers, N_SHARERS, where,
         o.n_states);
  CHECK(o.n_too_early + o.n_into_the_void + o.n_missed + o.n_stuck == 0 && o.n_ends == 1,
        "%d blocks of %d consumers, parts %s: %d land too early, %d in blocks that have ended, %d are missed; %d stuck, %d ends",
        N_BLOCKS, n_consumers, where, o.n_too_early, o.n_into_the_void, o.n_missed, o.n_stuck, o.n_ends);
  const outcome unmet = walker<N_BLOCKS, N_SHARERS>(n_consumers, apart, fault::no_meeting).walk();
  CHECK(unmet.n_too_early > 0, "%d blocks, parts %s: that the cluster meets is not missed", N_BLOCKS, where);
  const outcome unwaited = walker<N_BLOCKS, N_SHARERS>(n_consumers, apart, fault::no_wait).walk();
  CHECK(unwaited.n_missed > 0 && unwaited.n_into_the_void > 0, "%d blocks: the wait for parts is not missed", N_BLOCKS);
}

void clusters() {
  for (const bool apart : {false, true}) {
    check_blocks<2, 2>(1, apart);
    check_blocks<2, 2>(2, apart);
    check_blocks<3, 3>(1, apart);
    check_blocks<4, 2>(1, apart);
  }
}

const check_case cases[] = {{"clusters", clusters}};

} // namespace

CHECK_MAIN("exchange", cases)
