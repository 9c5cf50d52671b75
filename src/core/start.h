/* start.h - the first call: what the library finds out once about machine, environment and devices
 * (src/library.c). */
#ifndef WS_START_H
#define WS_START_H
#include <stdatomic.h>
#include <stdbool.h>

extern _Atomic bool ws_is_started;
void ws_start_once(void);
static inline void ws_start(void) {
  if (!atomic_load_explicit(&ws_is_started, memory_order_acquire)) ws_start_once();
}
#endif
