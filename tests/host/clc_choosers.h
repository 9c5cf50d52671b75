/* clc_choosers.h - orders of events for clc_machine.h: random ones of two kinds, and all that
 * differ little from a plain one. */
#ifndef WSGEMM_TESTS_CLC_CHOOSERS_H
#define WSGEMM_TESTS_CLC_CHOOSERS_H
#include "clc_machine.h"

extern "C" {
#include "support/check.h"
}

namespace clc_machine {

/* Each thread and each kind of event has a weight for the whole run, 1, 10 or 100, and the running
 * thread another one: so some runs starve a thread, hold back results or launches, or change
 * threads at every step. */
class weighted_chooser : public chooser {
public:
  explicit weighted_chooser(check_random &random) : random(random) {
    for (int &w : of_thread) w = weight();
    for (int &w : of_kind) w = weight();
    of_running = weight();
  }
  size_t choose(const std::vector<action> &actions) override {
    long long total = 0;
    for (size_t i = 0; i < actions.size(); i++) total += weight_of(actions, i);
    long long at = check_random_in(&random, 0, total - 1);
    size_t i = 0;
    while (at >= weight_of(actions, i)) at -= weight_of(actions, i++);
    return i;
  }

private:
  check_random &random;
  std::array<int, n_fibers> of_thread;
  std::array<int, action::n_kinds> of_kind;
  int of_running;

  int weight() {
    static const int weights[] = {1, 10, 100};
    return weights[check_random_in(&random, 0, 2)];
  }
  long long weight_of(const std::vector<action> &actions, size_t i) const {
    const action &a = actions[i];
    return a.kind != action::step ? of_kind[a.kind] : (long long)of_thread[size_t(a.index)] * (i == 0 ? of_running : 1);
  }
};

/* Strict priorities, drawn for the run; at a few random steps who would go next becomes the last of
 * all. */
class priority_chooser : public chooser {
public:
  priority_chooser(check_random &random, int n_changes, int n_steps) {
    for (long long &p : priority) p = check_random_in(&random, 1, 1 << 20);
    for (int i = 0; i < n_changes; i++) change_at.push_back(check_random_in(&random, 0, n_steps));
  }
  size_t choose(const std::vector<action> &actions) override {
    const size_t best = first_of(actions);
    bool changes = false;
    for (const long long at : change_at) changes |= at == n_chosen;
    n_chosen++;
    if (!changes) return best;
    priority[slot_of(actions[best])] = -n_chosen;
    return first_of(actions);
  }

private:
  std::array<long long, n_fibers + action::n_kinds> priority;
  std::vector<long long> change_at;
  long long n_chosen = 0;

  static size_t slot_of(const action &a) { return a.kind == action::step ? size_t(a.index) : size_t(n_fibers) + a.kind; }
  size_t first_of(const std::vector<action> &actions) const {
    size_t best = 0;
    for (size_t i = 1; i < actions.size(); i++)
      if (priority[slot_of(actions[i])] > priority[slot_of(actions[best])]) best = i;
    return best;
  }
};

/* One after the other, all orders with at most so many deviations from a plain one: a thread runs
 * until it has to wait, then the next one; events come as late as they can, or as early. Each run
 * follows the one before as far as it can, and then deviates once more. */
class bounded_chooser : public chooser {
public:
  bounded_chooser(int n_deviations, bool events_first) : n_allowed(n_deviations), events_first(events_first) {}
  size_t choose(const std::vector<action> &actions) override {
    if (depth == path.size()) path.push_back({0, actions.size()});
    const size_t plain = plain_choice(actions), choice = path[depth++].choice;
    return choice == 0 ? plain : choice == plain ? 0 : choice;
  }
  /* Makes ready for the next order; false: that was the last. */
  bool advance() {
    depth = 0;
    int n_made = 0;
    for (const decision &d : path) n_made += d.choice > 0;
    while (!path.empty()) {
      decision &last = path.back();
      const int n_before = n_made - (last.choice > 0);
      if (last.choice + 1 < last.n_choices && n_before < n_allowed) {
        last.choice++;
        return true;
      }
      n_made = n_before;
      path.pop_back();
    }
    return false;
  }

private:
  struct decision {
    size_t choice, n_choices; /* 0: the plain one */
  };
  std::vector<decision> path;
  size_t depth = 0;
  const int n_allowed;
  const bool events_first;

  size_t plain_choice(const std::vector<action> &actions) const {
    for (size_t i = 0; events_first && i < actions.size(); i++)
      if (actions[i].kind != action::step && actions[i].kind != action::priority_comes) return i;
    return 0;
  }
};

} // namespace clc_machine
#endif
