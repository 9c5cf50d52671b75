/* cancel.h - puts off the cancellation of the calling thread (pthread_cancel).
 *
 * A thread cancelled inside a call would leave a lock, the pool or a file's lock held for ever.
 * WS_UNCANCELLED, first in a block, puts that off until the block is left: a cancel that is pending
 * then acts where the caller next allows it. It stands where the library may wait, open files or
 * call a driver or a callback with something in its hands: in each function of the API that does so
 * (src/api), on the way to a device (ops/gemm.c), in the first call and before a fork (library.c),
 * and round the use of the pool (cpu/threads.c). Other products have no point at which a thread can
 * be cancelled. A pair costs 0.02 us. */
#ifndef WS_CANCEL_H
#define WS_CANCEL_H
#include <pthread.h>

static inline int ws_cancel_put_off(void) {
  int old;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
  return old;
}
static inline void ws_cancel_as_before(const int *old) {
  int unused;
  pthread_setcancelstate(*old, &unused);
}

#define WS_UNCANCELLED __attribute__((cleanup(ws_cancel_as_before), unused)) const int ws_cancel_state = ws_cancel_put_off()

#endif
