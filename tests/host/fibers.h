/* fibers.h - threads of control that take turns inside one thread of the system: who runs next is
 * always said, never left to chance.
 *
 * Each fiber calls `live` again and again, and after each life switches to the fiber that this
 * names; the next switch to it begins a new life. A fiber must not be left in the middle of a life.
 * Knows AddressSanitizer and ThreadSanitizer, which must be told of every change of stack. */
#ifndef WSGEMM_TESTS_FIBERS_H
#define WSGEMM_TESTS_FIBERS_H
#include <cstddef>
#include <functional>
#include <memory>
#include <ucontext.h>
#include <vector>

class fibers {
public:
  static constexpr int caller = -1; /* the stack from which the fibers were made */

  explicit fibers(int n_fibers);
  ~fibers();
  fibers(const fibers &) = delete;
  fibers &operator=(const fibers &) = delete;

  std::function<int(int)> live; /* one life of a fiber; value: who is next */
  void switch_to(int fiber);    /* returns when somebody switches back */

private:
  struct stack {
    ucontext_t context;
    std::unique_ptr<char[]> memory;
    const void *bottom = nullptr;
    size_t n_bytes = 0;
    void *fake_stack = nullptr; /* AddressSanitizer's */
    void *tsan_fiber = nullptr;
  };
  std::vector<stack> stacks; /* fiber i at i + 1, the caller at 0 */
  int current = caller, previous = caller;

  static void enter(unsigned int high, unsigned int low);
  void prepare(stack &s);
  void loop();
  void arrived(void *fake_stack);
};

#endif
