/* fibers.cpp - see fibers.h; over ucontext, whose switch costs a fifth of a microsecond (two system
 * calls for the signal mask). */
#include "fibers.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#define FIBERS_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define FIBERS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBERS_ASAN 1
#elif __has_feature(thread_sanitizer)
#define FIBERS_TSAN 1
#endif
#endif

#ifdef FIBERS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef FIBERS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

static constexpr size_t stack_bytes = 256 * 1024; /* a sanitizer's frames are large */

fibers::fibers(int n_fibers) : stacks(size_t(n_fibers) + 1) {
#ifdef FIBERS_TSAN
  stacks[0].tsan_fiber = __tsan_get_current_fiber();
#endif
  for (size_t i = 1; i < stacks.size(); i++) prepare(stacks[i]);
}

void fibers::prepare(stack &s) {
  s.memory.reset(new char[stack_bytes]);
  s.bottom = s.memory.get();
  s.n_bytes = stack_bytes;
  if (getcontext(&s.context) != 0) {
    perror("getcontext");
    abort();
  }
  s.context.uc_stack.ss_sp = s.memory.get();
  s.context.uc_stack.ss_size = stack_bytes;
  s.context.uc_link = nullptr;
  const uint64_t self = reinterpret_cast<uintptr_t>(this); /* makecontext hands over ints only */
  makecontext(&s.context, reinterpret_cast<void (*)()>(enter), 2, unsigned(self >> 32), unsigned(self));
#ifdef FIBERS_TSAN
  s.tsan_fiber = __tsan_create_fiber(0);
#endif
}

fibers::~fibers() {
#ifdef FIBERS_TSAN
  for (size_t i = 1; i < stacks.size(); i++) __tsan_destroy_fiber(stacks[i].tsan_fiber);
#endif
}

void fibers::enter(unsigned int high, unsigned int low) {
  reinterpret_cast<fibers *>(uintptr_t(uint64_t(high) << 32 | low))->loop();
}

void fibers::loop() {
  arrived(nullptr);
  for (;;) {
    const int to = live(current);
    if (to != current) switch_to(to);
  }
}

void fibers::arrived([[maybe_unused]] void *fake_stack) {
#ifdef FIBERS_ASAN
  stack &left = stacks[size_t(previous + 1)];
  __sanitizer_finish_switch_fiber(fake_stack, &left.bottom, &left.n_bytes);
#endif
}

void fibers::switch_to(int fiber) {
  stack &from = stacks[size_t(current + 1)], &to = stacks[size_t(fiber + 1)];
  previous = current;
  current = fiber;
#ifdef FIBERS_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.n_bytes);
#endif
#ifdef FIBERS_TSAN
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
  if (swapcontext(&from.context, &to.context) != 0) {
    perror("swapcontext");
    abort();
  }
  arrived(from.fake_stack);
}
